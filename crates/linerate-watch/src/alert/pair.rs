//! One pair: healthy, suspect or firing, by its results and by their absence.

use std::collections::VecDeque;

use linerate_model::alert::{
    AlertFailure, AlertFinding, AlertId, AlertKind, AlertRun, AlertState, Compared, FloorOf,
    RunShows,
};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::{NotRun, RunClass, RunId, UnixMillis, WatchOutcome, WatchRun};
use serde::{Deserialize, Serialize};

use super::trouble::Trouble;
use super::{Mark, Worth};
use crate::baseline::{Baseline, FIRST, History, Regime};
use crate::change_points::Cusum;
use crate::expectation::{self, Bounds, Floor};
use crate::watched::Expected;

/// Tests that are kept for an alert.
const RECENT: usize = 8;
/// A pair fires when so many …
const BAD: usize = 3;
/// … of its latest tests are bad.
const OF: usize = 4;
/// Tests in a row that fail, that resolve, or that withdraw a suspicion.
pub(super) const IN_A_ROW: usize = 2;
/// Spans that a baseline leaves out, the latest.
const SPANS: usize = 32;
/// When the tests that confirm are due, ms after the first bad one: both end within ten minutes.
const CONFIRM_AFTER: [u64; IN_A_ROW] = [2 * MINUTE, 6 * MINUTE];
/// When a failed test is tried again, ms.
const RETRY_AFTER: u64 = MINUTE;
/// A confirming test that has not come so long after it was due is not waited for, ms.
const LOST_AFTER: u64 = 15 * MINUTE;
/// No result for so many halves of a period is silence.
const SILENT_HALVES: u64 = 5;
/// So many tests in a row for which the hub had no time put silence off by a period each: it confirms another alert.
const MOST_MISSED: u32 = 2;
/// The smallest fall below the baseline that is [`AlertKind::Changed`], as a share of what is left.
const LEAST_FALL: f64 = 0.05;

const MINUTE: u64 = 60_000;

/// What the plan says of a pair.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rules {
    pub(super) period_millis: u64,
    /// The options of its tests: with others, other rates are usual.
    pub(super) options: Vec<String>,
    pub(super) expected: Option<Expected>,
    pub(super) bounds: Bounds,
}

/// A pair and how it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Watch {
    pub(super) task: PlainText,
    pub(super) from: PlainText,
    pub(super) to: PlainText,
    /// The tests that had a result, the latest first.
    recent: VecDeque<AlertRun>,
    /// From when on silence is counted: the last result, or a time without tests that was meant.
    heard: UnixMillis,
    /// When what was wrong before was over.
    #[serde(default)]
    pub(super) repaired: UnixMillis,
    /// Whether that was a rate, and no failure or silence.
    #[serde(default)]
    pub(super) repaired_rate: bool,
    /// Tests since the last result for which the hub had no time.
    #[serde(default)]
    missed: u32,
    /// When the last test that was not bad ended; absent = none was seen.
    good: Option<UnixMillis>,
    /// Why the latest test had no figures.
    failure: Option<AlertFailure>,
    drift: Cusum,
    /// A regime that began until then needs no alert.
    accepted: UnixMillis,
    /// When tests ended that say nothing of what is usual, also after a restart: both ends are included.
    #[serde(default)]
    left_out: VecDeque<(UnixMillis, UnixMillis)>,
    /// The options of the tests; absent = an older program wrote this.
    #[serde(default)]
    options: Option<Vec<String>>,
    /// Whether the latest due test waited for an agent, and of which host; empty where an older program wrote its row.
    #[serde(default)]
    pub(super) away: Option<PlainText>,
    pub(super) trouble: Option<Trouble>,
    /// The open alert that this pair is in.
    pub(super) alert: Option<AlertId>,
    /// The first tests since it is watched, or since its level was said to be right; absent = an older program wrote this.
    #[serde(default)]
    began: Option<Vec<RunId>>,
    /// The first tests of the regimes that began after that, whose records are kept.
    #[serde(default)]
    firsts: Vec<RunId>,
    /// What follows for records, in order.
    #[serde(skip)]
    pub(super) marks: Vec<Mark>,
    /// By when the test ends that runs now: its result may still come.
    #[serde(skip)]
    running: Option<UnixMillis>,
    /// Filled again from the archive after a restart.
    #[serde(skip)]
    pub(super) history: History,
    #[serde(skip)]
    pub(super) rules: Option<Rules>,
}

/// Where a rate stands beside the baseline, for [`AlertKind::Changed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Below it by the least fall.
    Low,
    /// Neither.
    Between,
    /// Below it by less than half of the least fall.
    Usual,
}

/// What follows for a pair.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// A confirming test is due then.
    Confirm(UnixMillis),
    /// The finding's counter-test is due.
    CounterTest(String),
    /// Something is wrong that was not before.
    Began,
    /// It changed.
    Changed,
    /// It is over, or was never confirmed.
    Ended,
}

impl Watch {
    pub(super) fn new(task: &PlainText, from: &PlainText, to: &PlainText, now: UnixMillis) -> Self {
        Self {
            task: task.clone(),
            from: from.clone(),
            to: to.clone(),
            recent: VecDeque::new(),
            heard: now,
            repaired: UnixMillis(0),
            repaired_rate: false,
            missed: 0,
            good: None,
            failure: None,
            drift: Cusum::default(),
            accepted: UnixMillis(0),
            left_out: VecDeque::new(),
            options: None,
            away: None,
            trouble: None,
            alert: None,
            began: Some(Vec::new()),
            firsts: Vec::new(),
            marks: Vec::new(),
            running: None,
            history: History::default(),
            rules: None,
        }
    }

    /// After a restart nothing is silent before a period has passed. With other options, other rates are usual.
    pub(super) fn begin(&mut self, now: UnixMillis, rules: Rules) -> Vec<Step> {
        let other = |options: &Vec<String>| *options != rules.options;
        let is_other = self.options.as_ref().is_some_and(other);
        self.options = Some(rules.options.clone());
        let grace = rules.period_millis / 2 * (SILENT_HALVES - 2);
        self.heard = self.heard.max(UnixMillis(now.0.saturating_sub(grace)));
        self.rules = Some(rules);
        if is_other {
            self.begin_anew(now)
        } else {
            Vec::new()
        }
    }

    /// What is usual is not known any more; only that tests fail or are missing stays true.
    fn begin_anew(&mut self, now: UnixMillis) -> Vec<Step> {
        self.leave_out(UnixMillis(0), now);
        self.began = Some(Vec::new());
        self.drift = Cusum::default();
        self.accepted = now;
        let Some(trouble) = &mut self.trouble else {
            return Vec::new();
        };
        (trouble.baseline, trouble.low) = (None, 0);
        if trouble.kind == AlertKind::Changed {
            self.trouble = None;
            return vec![Step::Ended];
        }
        Vec::new()
    }

    /// Tests that ended in a time, both ends included, say nothing of what is usual.
    fn leave_out(&mut self, from: UnixMillis, until: UnixMillis) {
        self.history.forget(from, until);
        self.left_out.push_back((from, until));
        if self.left_out.len() > SPANS {
            self.left_out.pop_front();
        }
    }

    pub(super) fn state(&self) -> AlertState {
        match &self.trouble {
            None => AlertState::Resolved,
            Some(trouble) if trouble.firing => AlertState::Firing,
            Some(_) => AlertState::Suspect,
        }
    }

    pub(super) fn recent(&self) -> impl Iterator<Item = &AlertRun> {
        self.recent.iter()
    }

    pub(super) fn failure(&self) -> Option<&AlertFailure> {
        self.failure.as_ref()
    }

    /// The baseline that is compared with: while something is wrong, that of before.
    pub(super) fn baseline(&self) -> Option<Baseline> {
        let held = self.trouble.as_ref().and_then(|trouble| trouble.baseline);
        held.or_else(|| self.history.baseline())
    }

    pub(super) fn floor(&self) -> Option<Floor> {
        let rules = self.rules.as_ref()?;
        expectation::floor(rules.expected, &rules.bounds, self.baseline().as_ref())
    }

    /// The level is what it should be.
    pub(super) fn accept(&mut self, now: UnixMillis) -> Vec<Step> {
        if let Some(since) = self.trouble.as_ref().map(|trouble| trouble.since) {
            self.leave_out(UnixMillis(0), UnixMillis(since.0.saturating_sub(1)));
            let began = self.history.first();
            let keep = |id: &RunId| Mark::Keep(*id, Worth::Regime);
            self.marks.extend(began.iter().map(keep));
            self.began = Some(began);
        }
        self.accepted = now;
        self.drift = Cusum::default();
        self.trouble
            .take()
            .map(|_| Step::Ended)
            .into_iter()
            .collect()
    }

    /// When something is due that no result brings about.
    pub(super) fn timeout(&self) -> Option<UnixMillis> {
        let lost = self
            .trouble
            .as_ref()
            .and_then(|trouble| trouble.pending.iter().min());
        let lost = lost.map(|due| due.plus_millis(LOST_AFTER));
        [lost, self.silent_at()].into_iter().flatten().min()
    }

    /// Where something fires already, that there are no results says nothing more.
    fn silent_at(&self) -> Option<UnixMillis> {
        let firing = self.trouble.as_ref().is_some_and(|trouble| trouble.firing);
        let period = self.rules.as_ref().filter(|_| !firing)?.period_millis;
        let silent = self.heard.plus_millis(period / 2 * SILENT_HALVES);
        Some(silent.max(self.running.unwrap_or(silent)))
    }

    /// A test of the pair began that ends by then. Nothing is silent before.
    pub(super) fn handle_lease(&mut self, expiry: UnixMillis) {
        self.running = Some(expiry);
    }

    pub(super) fn handle_time(&mut self, now: UnixMillis) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(trouble) = &mut self.trouble {
            let before = trouble.pending.len();
            trouble
                .pending
                .retain(|due| due.plus_millis(LOST_AFTER) > now);
            if trouble.pending.len() < before && trouble.pending.is_empty() {
                steps.extend(trouble.ask(now, &[RETRY_AFTER]));
            }
        }
        if self.silent_at().is_some_and(|at| at <= now) {
            steps.push(self.fall_silent());
        }
        steps
    }

    fn fall_silent(&mut self) -> Step {
        let heard = self.heard;
        if let Some(trouble) = &mut self.trouble {
            trouble.kind = AlertKind::Silent;
            trouble.firing = true;
            return Step::Changed;
        }
        let mut trouble = self.new_trouble(AlertKind::Silent, heard);
        trouble.firing = true;
        self.trouble = Some(trouble);
        Step::Began
    }

    fn new_trouble(&self, kind: AlertKind, since: UnixMillis) -> Trouble {
        let good = self.good.unwrap_or(since);
        Trouble::new(kind, since, good, self.history.baseline())
    }

    /// A test that ended before this program started: it makes up the baseline.
    pub(super) fn handle_past(&mut self, run: &WatchRun) {
        let out = |(from, until): &(UnixMillis, UnixMillis)| (*from..=*until).contains(&run.ended);
        if let WatchOutcome::Measured(figures) = &run.outcome
            && !self.left_out.iter().any(out)
        {
            self.history.add(run.id, run.ended, figures);
        }
    }

    /// What became of a test. `finding` is what limits it.
    pub(super) fn handle_run(
        &mut self,
        now: UnixMillis,
        run: &WatchRun,
        finding: Option<AlertFinding>,
    ) -> Vec<Step> {
        let before = (self.state(), self.kind());
        let waited = run.class == RunClass::Confirm && self.take_pending();
        self.running = None;
        if let WatchOutcome::NotRun { reason, why, held } = &run.outcome {
            let host = held.first().map(|held| held.resource.clone());
            self.away = (*reason == NotRun::AgentAway).then(|| host.unwrap_or_default());
            let mut steps = self.handle_not_run(now, *reason, why, run.ended, waited);
            // The next test may begin at once.
            if self.silent_at().is_some_and(|at| at <= run.ended) {
                steps.push(self.fall_silent());
            }
            return steps;
        }
        if self.recent.iter().any(|known| known.id == run.id) {
            // After a restart it is read again, and is not in the history, which was not written down.
            if !self.history.has(run.id) {
                self.handle_past(run);
            }
            return Vec::new();
        }
        let (floor, baseline) = (self.floor(), self.baseline());
        let Some(shows) = expectation::shows(&run.outcome, floor, baseline.as_ref()) else {
            return Vec::new();
        };
        self.remember(run, shows);
        if let WatchOutcome::Invalid { why } = &run.outcome {
            return self.handle_no_result(why);
        }
        self.heard = self.heard.max(run.ended);
        (self.missed, self.away) = (0, None);
        let mut steps = self.end_silence(run.ended, shows);
        let level = self.count(run, baseline);
        steps.extend(self.judge(now, run.ended, shows, level));
        let is_new = before != (AlertState::Firing, self.kind());
        if self.state() == AlertState::Firing && is_new {
            self.mark_evidence();
        }
        let changed = self.kind() == Some(AlertKind::Changed);
        let is_bad = shows == RunShows::Fail || (changed && level == Level::Low);
        self.describe(run, is_bad, floor, finding, &mut steps);
        if shows == RunShows::Pass && self.trouble.is_none() {
            self.good = Some(run.ended);
            self.failure = None;
        }
        steps
    }

    fn kind(&self) -> Option<AlertKind> {
        self.trouble.as_ref().map(|trouble| trouble.kind)
    }

    /// The tests that made it fire are kept: those since the first bad one, and the bad ones that decided.
    fn mark_evidence(&mut self) {
        let Some(since) = self.trouble.as_ref().map(|trouble| trouble.since) else {
            return;
        };
        let is_bad = |run: &AlertRun| matches!(run.shows, RunShows::Fail | RunShows::Failed);
        let tests = self.recent.iter().enumerate();
        let evidence =
            tests.filter(|(place, run)| run.ended >= since || (*place < OF && is_bad(run)));
        let keep = evidence.map(|(_, run)| Mark::Keep(run.id, Worth::Alert));
        self.marks.extend(keep);
    }

    /// The first tests of each level are kept. Where a level began may become clearer with later tests.
    fn mark_regimes(&mut self, counted: RunId) {
        if let Some(began) = self.began.as_mut().filter(|began| began.len() < FIRST) {
            began.push(counted);
            self.marks.push(Mark::Keep(counted, Worth::Regime));
        }
        let firsts = self.history.firsts();
        let new = firsts.iter().filter(|id| !self.firsts.contains(id));
        let new = new.map(|id| Mark::Keep(*id, Worth::Regime));
        let began = self.began.as_deref().unwrap_or_default();
        let gone = self
            .firsts
            .iter()
            .filter(|id| !firsts.contains(id) && !began.contains(id) && self.history.has(**id));
        let marks: Vec<Mark> = new.chain(gone.map(|id| Mark::LetGo(*id))).collect();
        self.marks.extend(marks);
        self.firsts = firsts;
    }

    /// Whether a confirming test was waited for.
    fn take_pending(&mut self) -> bool {
        let pending = self.trouble.as_mut().map(|trouble| &mut trouble.pending);
        pending.is_some_and(|pending| {
            let waited = !pending.is_empty();
            pending.drain(..usize::from(waited));
            waited
        })
    }

    fn handle_not_run(
        &mut self,
        now: UnixMillis,
        reason: NotRun,
        why: &PlainText,
        ended: UnixMillis,
        waited: bool,
    ) -> Vec<Step> {
        // Nobody meant to test, or nobody could have: the pair is not to blame. One that rests after failures is no news.
        if matches!(
            reason,
            NotRun::Hours
                | NotRun::Maintenance
                | NotRun::HubAway
                | NotRun::Dropped
                | NotRun::BackingOff
        ) {
            self.heard = self.heard.max(ended);
        } else if reason == NotRun::Missed && self.missed < MOST_MISSED {
            self.missed += 1;
            let period = self.rules.as_ref().map_or(0, |rules| rules.period_millis);
            self.heard = self.heard.plus_millis(period);
        } else {
            let steps = self.handle_no_result(why);
            if !steps.is_empty() && !waited {
                return steps;
            }
        }
        match &mut self.trouble {
            Some(trouble) if waited && trouble.pending.is_empty() => {
                trouble.ask(now, &[2 * MINUTE])
            }
            _ => Vec::new(),
        }
    }

    /// Keeps why there is no result, for the silence that follows from it.
    fn handle_no_result(&mut self, why: &PlainText) -> Vec<Step> {
        let kind = self.trouble.as_ref().map(|trouble| trouble.kind);
        if kind.is_some_and(|kind| kind != AlertKind::Silent) {
            return Vec::new();
        }
        self.failure = Some(AlertFailure {
            stage: PlainText::default(),
            why: why.clone(),
        });
        kind.map(|_| Step::Changed).into_iter().collect()
    }

    /// A result ends a silence; a bad one goes on as what it is: nothing was repaired.
    fn end_silence(&mut self, ended: UnixMillis, shows: RunShows) -> Vec<Step> {
        let Some(trouble) = self
            .trouble
            .as_mut()
            .filter(|trouble| trouble.kind == AlertKind::Silent)
        else {
            return Vec::new();
        };
        trouble.kind = match shows {
            RunShows::Failed => AlertKind::Failing,
            RunShows::Fail => AlertKind::Slow,
            RunShows::Pass | RunShows::Inconclusive => {
                self.trouble = None;
                return vec![Step::Ended];
            }
        };
        (trouble.bad, trouble.passes, trouble.asked) = (ended, 0, 0);
        Vec::new()
    }

    fn remember(&mut self, run: &WatchRun, shows: RunShows) {
        let goodput_bps = match &run.outcome {
            WatchOutcome::Measured(figures) => Some(figures.goodput_bps),
            _ => None,
        };
        self.recent.push_front(AlertRun {
            id: run.id,
            class: run.class,
            ended: run.ended,
            shows,
            goodput_bps,
        });
        self.recent.truncate(RECENT);
    }

    /// Counts the rate for baseline and drift; where it stands beside the baseline.
    fn count(&mut self, run: &WatchRun, baseline: Option<Baseline>) -> Level {
        let WatchOutcome::Measured(figures) = &run.outcome else {
            return Level::Between;
        };
        let counts = self.history.add(run.id, run.ended, figures);
        if counts {
            self.mark_regimes(run.id);
        }
        let Some(baseline) = baseline.filter(|_| counts) else {
            return Level::Between;
        };
        let (value, level) = (figures.goodput_bps.ln(), baseline.median_bps.ln());
        self.drift.add(value, level, baseline.deviation);
        if value < level - LEAST_FALL {
            Level::Low
        } else if value < level - LEAST_FALL / 2.0 {
            Level::Between
        } else {
            Level::Usual
        }
    }

    /// Whether goodput fell for longer than chance explains, though no test fails.
    fn fell(&self) -> bool {
        let drift = self.drift.drift().is_some_and(|drift| drift >= LEAST_FALL);
        drift || self.fallen().is_some()
    }

    /// The current regime, where it is a fall that nobody accepted, with the baseline before it: of fewer than five tests
    /// nobody knows what was usual.
    fn fallen(&self) -> Option<(Regime, Baseline)> {
        let regime = self.history.fall()?;
        let before = self.before(regime.since)?;
        (regime.since > self.accepted).then_some((regime, before))
    }

    fn judge(
        &mut self,
        now: UnixMillis,
        ended: UnixMillis,
        shows: RunShows,
        level: Level,
    ) -> Vec<Step> {
        match self.state() {
            AlertState::Resolved => self.judge_healthy(now, ended, shows),
            AlertState::Suspect => self.judge_suspect(now, ended, shows, level),
            AlertState::Firing => self.judge_firing(now, ended, shows, level),
        }
    }

    fn judge_healthy(&mut self, now: UnixMillis, ended: UnixMillis, shows: RunShows) -> Vec<Step> {
        let (kind, after): (AlertKind, &[u64]) = match shows {
            RunShows::Fail => (AlertKind::Slow, &CONFIRM_AFTER),
            RunShows::Failed => (AlertKind::Failing, &[RETRY_AFTER]),
            RunShows::Pass | RunShows::Inconclusive
                if self.has_own_measure() && self.is_clear() && self.fell() =>
            {
                (AlertKind::Changed, &CONFIRM_AFTER)
            }
            RunShows::Pass | RunShows::Inconclusive => return Vec::new(),
        };
        let mut trouble = self.new_trouble(kind, ended);
        if let Some((regime, before)) = self.fallen().filter(|_| kind == AlertKind::Changed) {
            trouble.since = regime.since;
            trouble.good = regime.last_before.unwrap_or(trouble.good);
            trouble.baseline = Some(before);
        }
        let mut steps = vec![Step::Began];
        steps.extend(trouble.ask(now, after));
        self.trouble = Some(trouble);
        steps.extend(self.fire_where_confirmed());
        steps
    }

    /// Whether the plan compares this pair with its own past; where it says a rate, that rate is enough.
    fn has_own_measure(&self) -> bool {
        let expected = self.rules.as_ref().and_then(|rules| rules.expected);
        matches!(expected, Some(Expected::Auto | Expected::OfBaseline(_)))
    }

    /// The latest test passes, or tests in a row do not decide: a single one of these shows nothing yet.
    fn is_clear(&self) -> bool {
        let mut latest = self.recent.iter().take(IN_A_ROW);
        let undecided = |run: &AlertRun| run.shows == RunShows::Inconclusive;
        !self.recent.front().is_some_and(undecided) || latest.all(undecided)
    }

    /// The baseline before a regime began.
    fn before(&self, since: UnixMillis) -> Option<Baseline> {
        let mut earlier = self.history.clone();
        earlier.forget(since, UnixMillis(u64::MAX));
        earlier.baseline()
    }

    fn judge_suspect(
        &mut self,
        now: UnixMillis,
        ended: UnixMillis,
        shows: RunShows,
        level: Level,
    ) -> Vec<Step> {
        let Some(trouble) = &mut self.trouble else {
            return Vec::new();
        };
        match shows {
            RunShows::Fail | RunShows::Failed => {
                trouble.kind = if shows == RunShows::Fail {
                    AlertKind::Slow
                } else {
                    AlertKind::Failing
                };
                trouble.bad = ended;
                trouble.passes = 0;
            }
            RunShows::Pass if trouble.kind == AlertKind::Changed => match level {
                Level::Low => trouble.low += 1,
                Level::Between | Level::Usual => trouble.passes += 1,
            },
            RunShows::Pass => trouble.passes += 1,
            RunShows::Inconclusive if trouble.kind == AlertKind::Changed => {
                trouble.low += usize::from(level == Level::Low);
            }
            RunShows::Inconclusive => {}
        }
        if trouble.passes >= IN_A_ROW {
            if trouble.kind == AlertKind::Changed {
                self.accepted = ended;
            }
            self.drift = Cusum::default();
            self.trouble = None;
            return vec![Step::Ended];
        }
        let mut steps: Vec<Step> = self.fire_where_confirmed();
        let open = self.trouble.as_mut().filter(|trouble| !trouble.firing);
        if let Some(trouble) = open.filter(|trouble| trouble.pending.is_empty()) {
            steps.extend(trouble.ask(now, &CONFIRM_AFTER[..1]));
        }
        if steps.is_empty() {
            steps.push(Step::Changed);
        }
        steps
    }

    /// Fires where the latest tests say so.
    fn fire_where_confirmed(&mut self) -> Vec<Step> {
        let kind = self.confirmed();
        let Some(trouble) = &mut self.trouble else {
            return Vec::new();
        };
        let Some(kind) = kind.or_else(|| (trouble.low >= IN_A_ROW).then_some(AlertKind::Changed))
        else {
            return Vec::new();
        };
        (trouble.kind, trouble.firing, trouble.passes, trouble.asked) = (kind, true, 0, 0);
        vec![Step::Changed]
    }

    /// What is wrong by the latest tests that decide: two failures in a row, or three bad tests of four.
    fn confirmed(&self) -> Option<AlertKind> {
        let decide = self
            .recent
            .iter()
            .map(|run| run.shows)
            .filter(|shows| *shows != RunShows::Inconclusive);
        let latest: Vec<RunShows> = decide.take(OF).collect();
        let count = |shows: RunShows| latest.iter().filter(|one| **one == shows).count();
        if latest.len() >= IN_A_ROW
            && latest[..IN_A_ROW]
                .iter()
                .all(|shows| *shows == RunShows::Failed)
        {
            return Some(AlertKind::Failing);
        }
        let (slow, failed) = (count(RunShows::Fail), count(RunShows::Failed));
        let kind = if slow > failed {
            AlertKind::Slow
        } else {
            AlertKind::Failing
        };
        (slow + failed >= BAD).then_some(kind)
    }

    fn judge_firing(
        &mut self,
        now: UnixMillis,
        ended: UnixMillis,
        shows: RunShows,
        level: Level,
    ) -> Vec<Step> {
        let kind = self.confirmed();
        let Some(trouble) = &mut self.trouble else {
            return Vec::new();
        };
        match shows {
            RunShows::Fail | RunShows::Failed => {
                trouble.kind = kind.unwrap_or(trouble.kind);
                (trouble.bad, trouble.passes, trouble.asked) = (ended, 0, 0);
            }
            RunShows::Pass if level != Level::Usual && trouble.kind == AlertKind::Changed => {
                (trouble.bad, trouble.passes, trouble.asked) = (ended, 0, 0);
            }
            RunShows::Pass => trouble.passes += 1,
            RunShows::Inconclusive => {}
        }
        if trouble.passes >= IN_A_ROW {
            let (since, bad) = (trouble.since, trouble.bad);
            self.trouble = None;
            // What was wrong is no part of what is normal.
            self.leave_out(since, bad);
            self.drift = Cusum::default();
            return vec![Step::Ended];
        }
        let mut steps = vec![Step::Changed];
        if trouble.passes > 0 && trouble.pending.is_empty() {
            steps.extend(trouble.ask(now, &CONFIRM_AFTER[..1]));
        }
        steps
    }

    /// Keeps what the latest bad test says.
    fn describe(
        &mut self,
        run: &WatchRun,
        is_bad: bool,
        floor: Option<Floor>,
        finding: Option<AlertFinding>,
        steps: &mut Vec<Step>,
    ) {
        if let WatchOutcome::Failed { stage, why } = &run.outcome {
            self.failure = Some(AlertFailure {
                stage: stage.clone(),
                why: why.clone(),
            });
        }
        let Some(trouble) = &mut self.trouble else {
            return;
        };
        let WatchOutcome::Measured(figures) = &run.outcome else {
            return;
        };
        let changed = trouble.kind == AlertKind::Changed;
        let baseline_bps = trouble.baseline.map(|baseline| baseline.median_bps);
        // A change that breaks no floor is compared with what was before.
        let of_change = |bps: f64| Floor {
            bps: bps * (1.0 - LEAST_FALL),
            of: FloorOf::Baseline,
        };
        let floor = if changed {
            baseline_bps.map(of_change)
        } else {
            floor
        };
        // A test that is as expected says nothing of what is wrong.
        let below = floor.filter(|floor| is_bad && figures.goodput_bps < floor.bps);
        if let Some(floor) = below {
            let bounds = self.rules.as_ref().map(|rules| rules.bounds);
            trouble.compared = Some(Compared {
                goodput_bps: figures.goodput_bps,
                ended: Some(run.ended),
                interval_bps: figures.interval_bps,
                floor_bps: floor.bps.round(),
                floor_of: floor.of,
                baseline_bps,
                link_bps: bounds.and_then(|bounds| bounds.link_bps()),
            });
        }
        if let Some(finding) = finding.filter(|_| is_bad || changed) {
            steps.extend(trouble.count_finding(finding));
        }
    }
}
