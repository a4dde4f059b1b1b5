//! glusterd's log: locks that are stuck, and locks of commands that met.
//!
//! From 3.6 on a volume's lock is freed by a timer after 180 s (`gd_mgmt_v3_unlock_timer_cbk` in glusterd-locks.c); before,
//! the lock of the cluster stayed until the frame timeout of 30 min. Measured with 10.3: a peer that is stopped and still
//! `Connected` leaves the lock with the node that asked.

use std::collections::HashMap;

use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::storage::{GlusterEvent, GlusterKind, GlusterLock};
use linerate_model::transcript::{Part, Transcript};

use crate::draft::Draft;

/// A lock that is held for so long without a command that succeeds is stuck, s.
pub(super) const STUCK_S: f64 = 60.0;
/// After so long a lock is another one: the timer has freed it, s.
const TIMER_S: f64 = 180.0;
/// The longest frame timeout, s: so long after it did not answer, a peer is named.
const FRAME_S: f64 = 1800.0;

/// What to do about a lock that is stuck.
const STEPS: &str = "Run `timeout 5 gluster pool list` on each node and restart glusterd where it hangs (bricks and mounts keep \
running); if it hangs nowhere, look for a gluster command that still runs, and only then restart glusterd on the holder. linerate \
changed nothing";
/// What is normal, and what is left to do.
const MET: &str = "two commands met, which is normal. Find what runs gluster at the same time (cron, monitoring on several nodes); \
there is nothing to free";

/// When commands on each volume succeeded (`cmd_history.log`), of any node.
#[derive(Default)]
pub(super) struct History<'a> {
    /// In their order, s since 1970.
    succeeded: HashMap<&'a str, Vec<f64>>,
    /// Commands and their outcome are in the input.
    is_given: bool,
}

impl<'a> History<'a> {
    pub(super) fn of(transcripts: &'a [Transcript]) -> Self {
        let parts = transcripts.iter().flat_map(|transcript| &transcript.parts);
        let events = parts.filter_map(|part| match part {
            Part::Gluster(events) => Some(events),
            _ => None,
        });
        let mut history = Self::default();
        for event in events.flatten() {
            history.is_given |= is_command(event);
            if let (GlusterKind::Succeeded(Some(volume)), Some(at)) = (&event.kind, event.at_s) {
                let volume = volume.as_str();
                history.succeeded.entry(volume).or_default().push(at);
            }
        }
        for times in history.succeeded.values_mut() {
            times.sort_by(f64::total_cmp);
        }
        history
    }

    /// The first success on a volume after this line, s since 1970.
    fn after(&self, volume: &str, line: &GlusterEvent) -> Option<f64> {
        let (times, from) = (self.succeeded.get(volume)?, line.at_s?);
        let at = times.partition_point(|time| *time <= from);
        times.get(at).copied()
    }
}

/// Peers that glusterd says did not answer, in the order of time, s since 1970.
struct Silences<'a>(Vec<(f64, &'a PlainText)>);

impl<'a> Silences<'a> {
    fn of(events: &'a [GlusterEvent]) -> Self {
        let silent = events.iter().filter_map(|event| match &event.kind {
            GlusterKind::Silent(peer) => Some((event.at_s?, peer)),
            _ => None,
        });
        let mut all: Vec<_> = silent.collect();
        all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Self(all)
    }

    /// The first one while a lock was held, or for so long that it may be why.
    fn during(&self, run: &Run<'_>) -> Option<&'a PlainText> {
        let from = run.first.at_s?;
        let at = self.0.partition_point(|(time, _)| *time < from);
        let (time, peer) = self.0.get(at)?;
        (time - from <= FRAME_S).then_some(peer)
    }
}

/// Lines about one lock and one holder, with no command that succeeded between them.
struct Run<'a> {
    lock: &'a GlusterLock,
    first: &'a GlusterEvent,
    last: &'a GlusterEvent,
    lines: usize,
    freed: Option<&'a GlusterEvent>,
}

impl Run<'_> {
    /// From the first line to the last, s; to the timer where that freed it.
    fn seconds(&self) -> Option<f64> {
        let end = self.freed.unwrap_or(self.last);
        Some(end.at_s? - self.first.at_s?)
    }

    /// From the first line to a command that succeeded, s.
    fn free_after(&self, history: &History<'_>) -> Option<f64> {
        let volume = self.lock.volume.as_ref()?;
        Some(history.after(volume.as_str(), self.last)? - self.first.at_s?)
    }
}

pub(super) fn log(events: &[GlusterEvent], history: &History<'_>) -> (String, Vec<Finding>) {
    let title = format!("glusterd's log: {} line(s)", events.len());
    let locks = longest(runs(events, history), history);
    let silences = Silences::of(events);
    let mut findings: Vec<Finding> = locks
        .iter()
        .map(|lock| held(lock, &silences, history))
        .collect();
    let stuck = locks.iter().any(|lock| lock.case == Case::Stuck);
    findings.sort_by_key(|finding| finding.severity != Severity::Limit);
    let lock = |event: &&GlusterEvent| matches!(event.kind, GlusterKind::OfLock);
    let errors = events
        .iter()
        .filter(|event| event.level == "E" && !lock(event));
    let explained = |kind: &GlusterKind| {
        matches!(kind, GlusterKind::Held(_)) || matches!(kind, GlusterKind::Silent(_)) && stuck
    };
    let other = errors.filter(|event| !explained(&event.kind)).count();
    if other > 0 {
        findings.push(Finding::new(
            "log-errors",
            Severity::Note,
            format!("{other} other lines of the log are errors"),
        ));
    }
    let failed = |lock: bool| {
        let of = |event: &&GlusterEvent| event.kind == GlusterKind::Failed { for_lock: lock };
        events.iter().filter(of).count()
    };
    let (for_lock, else_failed) = (failed(true), failed(false));
    if for_lock + else_failed > 0 {
        findings.push(Finding::new(
            "log-errors",
            Severity::Note,
            format!(
                "cmd_history.log: {for_lock} commands failed for another transaction, {else_failed} for other reasons"
            ),
        ));
    }
    (title, findings)
}

/// A line of `cmd_history.log`.
fn is_command(event: &GlusterEvent) -> bool {
    matches!(
        event.kind,
        GlusterKind::Succeeded(_) | GlusterKind::Failed { .. }
    )
}

/// Whether the timer has freed a lock between two lines, or the frame timeout where it has no timer.
fn far(lock: &GlusterLock, from: &GlusterEvent, to: &GlusterEvent) -> bool {
    let longest = if lock.volume.is_some() {
        TIMER_S
    } else {
        FRAME_S
    };
    let times = from.at_s.zip(to.at_s);
    times.is_some_and(|(from, to)| to - from > longest)
}

/// Lines about locks, parted where a command on the volume succeeded or the timer freed it, or another holds it.
fn runs<'a>(events: &'a [GlusterEvent], history: &History<'_>) -> Vec<Run<'a>> {
    let between = |volume: &str, from: &GlusterEvent, to: &GlusterEvent| {
        let free = history.after(volume, from).zip(to.at_s);
        free.is_some_and(|(free, to)| free < to)
    };
    let mut all: Vec<Run<'a>> = Vec::new();
    // The run of each lock that may go on; of the old lock by its asker as well.
    let mut open: HashMap<(&str, &str), usize> = HashMap::new();
    for event in events {
        match &event.kind {
            GlusterKind::Held(lock) => {
                let volume = lock.volume.as_ref().map_or("", |name| name.as_str());
                let asker = lock.asker.as_ref().map_or("", |name| name.as_str());
                let going = open.get(&(volume, asker)).copied().filter(|at| {
                    let run = &all[*at];
                    run.lock == lock
                        && !far(lock, run.last, event)
                        && !between(volume, run.last, event)
                });
                if let Some(run) = going.and_then(|at| all.get_mut(at)) {
                    run.last = event;
                    run.lines += 1;
                } else {
                    open.insert((volume, asker), all.len());
                    all.push(Run {
                        lock,
                        first: event,
                        last: event,
                        lines: 1,
                        freed: None,
                    });
                }
            }
            GlusterKind::Freed(volume) => {
                if let Some(at) = open.remove(&(volume.as_str(), "")) {
                    all[at].freed = Some(event);
                }
            }
            _ => {}
        }
    }
    all
}

/// What a run of lines is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Case {
    /// Held so long that its command does not go on.
    Stuck,
    /// Commands at the same time.
    Met,
    /// Either of them.
    Open,
    /// The lock of the whole cluster, held by the node that asks for it.
    LeftBehind,
    /// The lock of the whole cluster, held by another node.
    Elsewhere,
}

impl Case {
    fn of(run: &Run<'_>, history: &History<'_>) -> Self {
        let (lock, seconds) = (run.lock, run.seconds());
        let is_short = |seconds: f64| seconds < STUCK_S;
        // The cluster's lock that the asker holds itself was left behind: no second command holds it.
        let own = lock.volume.is_none() && lock.asker.as_ref() == Some(&lock.holder);
        let free = run.free_after(history).is_some_and(is_short);
        let close = run.lines > 1 && !own;
        match seconds {
            // It was held for as long as the timer runs, also where its first lines are not in the input.
            _ if run.freed.is_some() => Self::Stuck,
            Some(seconds) if !is_short(seconds) => Self::Stuck,
            _ if free => Self::Met,
            Some(_) if close => Self::Met,
            _ if lock.volume.is_some() => Self::Open,
            _ if own => Self::LeftBehind,
            _ => Self::Elsewhere,
        }
    }
}

/// The longest run of a lock and a case.
struct Longest<'a> {
    case: Case,
    run: Run<'a>,
    /// Other runs.
    more: usize,
    /// The first line of the last run.
    last: &'a GlusterEvent,
}

/// In the order of their first lines.
fn longest<'a>(runs: Vec<Run<'a>>, history: &History<'_>) -> Vec<Longest<'a>> {
    let mut all: Vec<Longest<'a>> = Vec::new();
    let mut places = HashMap::new();
    for run in runs {
        let (case, last) = (Case::of(&run, history), run.first);
        let place = *places.entry((run.lock, case)).or_insert(all.len());
        let Some(known) = all.get_mut(place) else {
            all.push(Longest {
                case,
                run,
                more: 0,
                last,
            });
            continue;
        };
        known.more += 1;
        known.last = last;
        if run.seconds() > known.run.seconds() {
            known.run = run;
        }
    }
    all
}

/// What is said of a lock.
fn held(longest: &Longest<'_>, silences: &Silences<'_>, history: &History<'_>) -> Finding {
    let run = &longest.run;
    let silent = silences.during(run);
    let (times, last) = (longest.more + 1, &longest.last.at);
    let often = match (run.lines, times) {
        (1, 1) => String::new(),
        (lines, 1) => format!(" ({lines} lines)"),
        (lines, _) => {
            format!(" ({lines} line(s); the longest of {times} times, the last from {last} on)")
        }
    };
    let severity = match longest.case {
        Case::Met | Case::Open => Severity::Note,
        Case::Stuck | Case::LeftBehind | Case::Elsewhere => Severity::Limit,
    };
    let text = said(longest.case, run, &often, silent, history);
    let source = || format!("line {}", run.first.line);
    Draft::new("cluster-lock", severity, text)
        .figure("held, s", run.seconds(), source())
        .figure("lines", run.lines, source())
        .finding
}

fn said(
    case: Case,
    run: &Run<'_>,
    often: &str,
    silent: Option<&PlainText>,
    history: &History<'_>,
) -> String {
    let lock = run.lock;
    let (what, whose, at) = (what(lock), whose(lock), &run.first.at);
    let beginning = format!("{at}: {what} is {whose}{often}");
    match case {
        Case::Stuck => {
            let seconds = run.seconds().unwrap_or_default();
            let end = run
                .freed
                .map_or("", |_| ", until glusterd's timer freed it");
            let known = if history.is_given {
                ", with no command that succeeded"
            } else {
                "; the history of commands (cmd_history.log) is not in the input"
            };
            format!(
                "{}: {what} was stuck for {seconds:.0} s from {at} on, {whose}{often}{end}{known}. {STEPS}",
                cause(lock, silent)
            )
        }
        Case::Met => {
            let within = match run.free_after(history) {
                Some(free) if run.lines == 1 => format!("free again within {}", span(free)),
                _ => format!("all within {}", span(run.seconds().unwrap_or_default())),
            };
            format!("{beginning}, {within}: {MET}")
        }
        Case::Open => format!(
            "{beginning}: two commands met, or the beginning of a lock that is stuck; look again after {STUCK_S:.0} s"
        ),
        Case::LeftBehind => format!(
            "{}: {beginning}: a command that did not finish left it behind. {STEPS}",
            cause(lock, silent)
        ),
        Case::Elsewhere => format!(
            "{beginning}. Find the node by `gluster pool list`, look for a gluster command that still runs there and wait for it \
             before anything else. linerate changed nothing"
        ),
    }
}

fn what(lock: &GlusterLock) -> String {
    match &lock.volume {
        Some(volume) => format!("the lock of volume {volume}"),
        None => "glusterd's cluster lock".to_owned(),
    }
}

fn whose(lock: &GlusterLock) -> String {
    let holder = &lock.holder;
    match &lock.asker {
        Some(asker) if asker == holder => format!("held by the requesting node itself ({asker})"),
        Some(asker) => format!("held by another node: {holder} holds it, {asker} asks"),
        None => format!(
            "held by node {holder} (this node's own UUID is in /var/lib/glusterd/glusterd.info)"
        ),
    }
}

/// Why a lock is stuck; the peer is known once the frame timeout is over.
fn cause(lock: &GlusterLock, silent: Option<&PlainText>) -> String {
    if let Some(peer) = silent {
        return format!("The peer {peer} does not answer although it is \"Connected\"");
    }
    let timer = if lock.volume.is_some() {
        ""
    } else {
        " (3.5 and before have no timer: the lock stays up to the frame timeout of 30 min)"
    };
    format!("A peer probably does not answer although it is \"Connected\"{timer}")
}

/// A short time.
fn span(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1000.0)
    } else {
        format!("{seconds:.0} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_s: f64, kind: GlusterKind) -> GlusterEvent {
        GlusterEvent {
            line: 1,
            at: format!("{at_s}").into(),
            at_s: Some(at_s),
            level: "W".into(),
            kind,
            message: "".into(),
        }
    }

    fn lock(volume: Option<&str>) -> GlusterKind {
        GlusterKind::Held(GlusterLock {
            volume: volume.map(Into::into),
            asker: None,
            holder: "a node".into(),
        })
    }

    fn cases(events: &[GlusterEvent]) -> Vec<Case> {
        let history = History::default();
        let runs = runs(events, &history);
        runs.iter().map(|run| Case::of(run, &history)).collect()
    }

    #[test]
    fn a_lock_that_the_timer_freed_was_stuck_however_few_lines_tell() {
        let freed = || GlusterKind::Freed("home0".into());
        let late = [
            event(170.0, lock(Some("home0"))),
            event(175.0, lock(Some("home0"))),
            event(180.0, freed()),
        ];
        assert_eq!(cases(&late), [Case::Stuck]);
        assert_eq!(cases(&late[..2]), [Case::Met]);
    }

    #[test]
    fn only_the_lock_of_a_volume_is_another_one_after_the_timer() {
        let twice = |volume| [event(0.0, lock(volume)), event(200.0, lock(volume))];
        assert_eq!(cases(&twice(Some("home0"))), [Case::Open, Case::Open]);
        assert_eq!(cases(&twice(None)), [Case::Stuck]);
    }
}
