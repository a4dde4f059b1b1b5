//! Slurm's controller: what it says of all nodes, and what it is told of this one.

use std::path::Path;
use std::time::{Duration, Instant};

use linerate_check::memory::{Drained, Memory};
use linerate_check::settings::{Check, Settings, SlurmLaw};
use linerate_check::slurm::{Case, Node, Reason, after_drain, decide, format, nodes};
use linerate_kernel::thread;
use linerate_model::check::{Act, Held, Idle, Outcome, State, Told};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use linerate_report::check as report;

use super::children::{Ask, Ended, ask};
use super::folders::Folders;
use super::order::Order;

/// `sinfo` and `scontrol` give up after about 9 s where the controller is silent.
const ANSWER: Duration = Duration::from_secs(10);
/// Less than this is not enough to drain a node and to look whether others did as well.
const TO_DRAIN: Duration = Duration::from_secs(12);
/// The controller's times are whole seconds: after this all nodes that drained in the same one are seen.
const SETTLED: Duration = Duration::from_millis(2_100);
/// In `scontrol show node`.
const COMMENT: &str = "Comment=";

/// One run's dealings with the controller.
pub(super) struct Turn<'a> {
    settings: &'a Settings,
    folders: &'a Folders,
    memory: &'a mut Memory,
    deadline: Instant,
    pub(super) notes: Vec<PlainText>,
    /// Whether the node is held back for the first time.
    pub(super) is_new_hold: bool,
}

/// Why the node should be drained: the reason, the check and since when it fails.
struct Wanted {
    reason: Reason,
    since: UnixMillis,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        folders: &'a Folders,
        memory: &'a mut Memory,
        deadline: Instant,
    ) -> Self {
        Self {
            settings,
            folders,
            memory,
            deadline,
            notes: Vec::new(),
            is_new_hold: false,
        }
    }

    /// Decides, and acts where `really`.
    pub(super) fn take(&mut self, outcomes: &[Outcome], now: UnixMillis, really: bool) -> Told {
        let bad = self.memory.bad(&self.settings.checks);
        let wanted = bad.first().and_then(|check| self.wanted(check, outcomes));
        let names: Vec<String> = bad.iter().map(|check| check.name.clone()).collect();
        let resume = bad.iter().all(|check| check.resume);
        let well = Act::Nothing { why: Idle::Well };
        // A node that is well, and was, asks nothing of the controller.
        let is_quiet = wanted.is_none() && self.memory.drained.is_none();
        if is_quiet && (self.memory.comment.is_none() || !really) {
            let why = self.idle(outcomes);
            return self.told(Act::Nothing { why }, false, None);
        }
        let said = match self.nodes() {
            Ok(said) => said,
            Err(why) => return self.told(Act::Unknown { why: why.into() }, false, None),
        };
        self.forget_what_is_over(&said, really);
        let act = self.decide(&said, wanted.as_ref());
        if !really {
            return self.told(act, false, None);
        }
        if let Some(drained) = &mut self.memory.drained
            && drained.add(&bad)
        {
            self.folders.keep_for_good(self.memory, &mut self.notes);
        }
        if let Some(told) = self.go_on(&said, wanted.as_ref()) {
            return told;
        }
        match act {
            Act::Drain { .. } => {
                let drained = |reason: &Reason| Drained {
                    reason: reason.text.clone(),
                    signed: None,
                    at: now,
                    checks: names,
                    resume,
                };
                match &wanted {
                    Some(wanted) => self.drain(wanted, drained(&wanted.reason)),
                    None => self.told(well, false, None),
                }
            }
            Act::Hold { held, ref reason } => {
                self.comment(held, reason);
                self.told(act, true, None)
            }
            Act::Resume => self.resume(),
            act => {
                if wanted.is_none() {
                    self.take_comment_back();
                }
                self.told(act, false, None)
            }
        }
    }

    /// Why nothing is done where no check has failed often enough.
    fn idle(&self, outcomes: &[Outcome]) -> Idle {
        let drains = |outcome: &Outcome| {
            let mut checks = self.settings.checks.iter();
            let check = checks.find(|check| *check.name == *outcome.check);
            outcome.state == State::Fail && check.is_some_and(|check| check.drain.is_some())
        };
        if outcomes.iter().any(drains) {
            Idle::NotOftenEnough
        } else {
            Idle::Well
        }
    }

    /// After a drain whose end a run did not see: what was left of it.
    fn go_on(&mut self, said: &[Node], wanted: Option<&Wanted>) -> Option<Told> {
        let drained = self.memory.drained.as_ref()?;
        if drained.signed.is_some() {
            return None;
        }
        let reason = drained.reason.as_str().into();
        let Some(wanted) = wanted else {
            self.sign(said);
            return None;
        };
        Some(self.after_drain(said, wanted, Act::Drain { reason }))
    }

    fn told(&self, act: Act, done: bool, trouble: Option<String>) -> Told {
        Told {
            node: self.folders.node.as_str().into(),
            act,
            done,
            trouble: trouble.map(Into::into),
        }
    }

    fn wanted(&self, check: &Check, outcomes: &[Outcome]) -> Option<Wanted> {
        let outcome = outcomes
            .iter()
            .find(|outcome| *outcome.check == *check.name)?;
        let words = outcome.worst().map(report::words).unwrap_or_default();
        Some(Wanted {
            reason: Reason::of(outcome, &words),
            since: self.memory.failing_since(&check.name)?,
        })
    }

    fn case<'c>(&'c self, nodes: &'c [Node], wanted: Option<&'c Wanted>) -> Case<'c> {
        let drained = self.memory.drained.as_ref();
        Case {
            node: &self.folders.node,
            nodes,
            wanted: wanted.map(|wanted| (&wanted.reason, wanted.since)),
            drained,
            well_for: drained.map_or(0, |drained| {
                self.memory.well_for(&drained.checks, &self.settings.checks)
            }),
            law: &self.settings.slurm,
        }
    }

    fn decide(&self, nodes: &[Node], wanted: Option<&Wanted>) -> Act {
        decide(&self.case(nodes, wanted))
    }

    fn own<'n>(&self, nodes: &'n [Node]) -> Option<&'n Node> {
        nodes.iter().find(|node| node.name == self.folders.node)
    }

    /// A drain that somebody ended or took over is no longer ours.
    fn forget_what_is_over(&mut self, nodes: &[Node], really: bool) {
        let Some(own) = self.own(nodes) else { return };
        let taken_over = Act::Nothing {
            why: Idle::TakenOver,
        };
        let is_over = !own.state.is_drained() || self.decide(nodes, None) == taken_over;
        if really && self.memory.drained.is_some() && is_over {
            self.memory.drained = None;
            self.folders.keep_for_good(self.memory, &mut self.notes);
        }
    }

    fn drain(&mut self, wanted: &Wanted, drained: Drained) -> Told {
        // Nodes that fail together see each other.
        let wait = self.settings.slurm.wait.0;
        std::thread::sleep(Duration::from_nanos(if wait == 0 {
            0
        } else {
            random() % wait
        }));
        if self.left() < TO_DRAIN {
            let why =
                "too little of the deadline is left to drain the node and to look at the others";
            return self.told(Act::Unknown { why: why.into() }, false, None);
        }
        let act = match self.nodes() {
            Ok(said) => self.decide(&said, Some(wanted)),
            Err(why) => Act::Unknown { why: why.into() },
        };
        let reason = match &act {
            Act::Drain { reason } => reason,
            Act::Hold { held, reason } => {
                self.comment(*held, reason);
                return self.told(act, true, None);
            }
            _ => return self.told(act, false, None),
        };
        // Written before it is done: a run that is ended in between knows its own drain again.
        self.memory.drained = Some(drained);
        self.folders.keep_for_good(self.memory, &mut self.notes);
        if let Err(why) = self.update(&["State=DRAIN", &format!("Reason={reason}")]) {
            // It may have been done all the same, so it stays remembered: the next run sees.
            return self.told(act, false, Some(why));
        }
        std::thread::sleep(SETTLED);
        match self.nodes() {
            Ok(said) => self.after_drain(&said, wanted, act),
            // The next run reads the signature.
            Err(why) => self.told(
                act,
                true,
                Some(format!("it could not be read again: {why}")),
            ),
        }
    }

    fn after_drain(&mut self, said: &[Node], wanted: &Wanted, act: Act) -> Told {
        if !self.is_ours(said) {
            // Somebody has changed it meanwhile: it is theirs.
            self.memory.drained = None;
            self.folders.keep_for_good(self.memory, &mut self.notes);
            let why = Idle::TakenOver;
            return self.told(Act::Nothing { why }, false, None);
        }
        if let Some(held) = after_drain(&self.case(said, Some(wanted))) {
            let trouble = self.update(&["State=RESUME"]).err();
            if trouble.is_none() {
                self.memory.drained = None;
                self.folders.keep_for_good(self.memory, &mut self.notes);
            }
            let reason: PlainText = wanted.reason.text.as_str().into();
            self.comment(held, &reason);
            return self.told(Act::TakeBack { held, reason }, trouble.is_none(), trouble);
        }
        self.sign(said);
        self.take_comment_back();
        self.told(act, true, None)
    }

    /// Whether the node stands as it was drained.
    fn is_ours(&self, said: &[Node]) -> bool {
        let (Some(own), Some(drained)) = (self.own(said), &self.memory.drained) else {
            return false;
        };
        let same = own.reason.as_deref() == Some(drained.reason.as_str());
        same && own.state.is_drained() && !own.state.reboots()
    }

    /// Remembers who drained it and when, as the controller says.
    fn sign(&mut self, said: &[Node]) {
        let own = self.own(said);
        let signed = own.map(|own| (own.user.clone(), own.time.clone()));
        if let Some(drained) = &mut self.memory.drained {
            drained.signed = signed;
        }
        self.folders.keep_for_good(self.memory, &mut self.notes);
    }

    fn resume(&mut self) -> Told {
        // What a person changed meanwhile stands. Between this answer and the update remains a moment.
        let act = match self.nodes() {
            Ok(said) => self.decide(&said, None),
            Err(why) => Act::Unknown { why: why.into() },
        };
        if act != Act::Resume {
            return self.told(act, false, None);
        }
        if let Err(why) = self.update(&["State=RESUME"]) {
            return self.told(act, false, Some(why));
        }
        self.memory.drained = None;
        self.folders.keep_for_good(self.memory, &mut self.notes);
        self.take_comment_back();
        self.told(act, true, None)
    }

    /// Says at the controller that the node is held back, where no comment of others stands.
    fn comment(&mut self, held: Held, reason: &str) {
        let text = report::held_comment(held, reason);
        self.is_new_hold = self.memory.comment.is_none();
        if self.memory.comment.as_ref() == Some(&text) {
            return;
        }
        let there = self.comment_there();
        let may = match (&there, &self.memory.comment) {
            (Ok(None), _) => true,
            (Ok(Some(there)), Some(ours)) => there == ours,
            _ => false,
        };
        if may && let Err(why) = self.update(&[&format!("{COMMENT}{text}")]) {
            self.notes.push(format!("no comment was set: {why}").into());
        }
        self.memory.comment = Some(text);
    }

    fn take_comment_back(&mut self) {
        let Some(ours) = self.memory.comment.clone() else {
            return;
        };
        match self.comment_there() {
            Ok(Some(there)) if there == ours => {
                if let Err(why) = self.update(&[COMMENT]) {
                    self.notes
                        .push(format!("the comment was not removed: {why}").into());
                    return;
                }
            }
            Ok(_) => {}
            Err(why) => {
                self.notes
                    .push(format!("the comment was not removed: {why}").into());
                return;
            }
        }
        self.memory.comment = None;
    }

    /// The comment that stands at the controller.
    fn comment_there(&self) -> Result<Option<String>, String> {
        let node = &self.folders.node;
        let said = self.ask("scontrol", &["show", "node", node])?;
        let mut lines = said.lines().map(str::trim);
        let text = lines.find_map(|line| line.strip_prefix(COMMENT));
        Ok(text.filter(|text| !text.is_empty()).map(str::to_owned))
    }

    fn update(&self, words: &[&str]) -> Result<(), String> {
        let node = format!("NodeName={}", self.folders.node);
        let words = [&["update", &node], words].concat();
        self.ask("scontrol", &words).map(drop)
    }

    fn nodes(&self) -> Result<Vec<Node>, String> {
        let mark = format!("{:016x}", random());
        let wanted = format(&mark);
        let said = self.ask(
            "sinfo",
            &["--noheader", "--all", "--Node", "--format", &wanted],
        )?;
        nodes(&said, &mark).ok_or_else(|| "sinfo prints something else than nodes".to_owned())
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// What a program of Slurm prints.
    fn ask(&self, program: &str, words: &[&str]) -> Result<String, String> {
        let law = &self.settings.slurm;
        let run = std::iter::once(path_of(law, program))
            .chain(words.iter().map(|word| (*word).to_owned()));
        let limit = ANSWER.min(self.left());
        if limit.is_zero() {
            return Err(format!("no time is left to ask {program}"));
        }
        let asked = Ask {
            name: program,
            order: Order::Become {
                run: run.collect(),
                environment: environment(law),
            },
            limit,
        };
        let reply = ask(&asked, &self.folders.remembered);
        match reply.ended {
            Ended::By(Some(0)) => Ok(String::from_utf8_lossy(&reply.out).into_owned()),
            Ended::By(_) => {
                let said = reply.error.trim();
                let said = if said.is_empty() { "it failed" } else { said };
                Err(format!("{program}: {said}"))
            }
            Ended::Silent(_) | Ended::StillHangs { .. } => {
                Err(format!("{program} does not answer: is slurmctld well?"))
            }
            Ended::NotBegun(why) => Err(format!("{program}: {why}")),
        }
    }
}

fn path_of(law: &SlurmLaw, program: &str) -> String {
    let own = law.programs.as_ref();
    own.map_or_else(
        || program.to_owned(),
        |folder| Path::new(folder).join(program).display().to_string(),
    )
}

/// Times in UTC and in the form that is read here, whatever the operator has set.
fn environment(law: &SlurmLaw) -> Vec<(String, String)> {
    let mut all = vec![
        ("TZ", "UTC"),
        ("LC_ALL", "C"),
        ("SLURM_TIME_FORMAT", "standard"),
    ];
    all.extend(law.conf.as_deref().map(|conf| ("SLURM_CONF", conf)));
    all.into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Random, so that nodes do not act in step and a reason cannot forge rows. Where the kernel has none, it is 0.
fn random() -> u64 {
    let mut bytes = [0; 8];
    match thread::random(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => 0,
    }
}
