//! From results to alerts: one state machine for each pair of each task, and one alert for what several pairs have in common.
//!
//! - A FAIL makes a pair suspect. It asks for two confirming tests within ten minutes, for the finding's counter-test, and
//!   for the facts of both hosts.
//! - A pair fires when three of its latest four tests are bad, confirmations included, and is resolved after two PASS in a
//!   row. An INCONCLUSIVE counts for neither, and a test that does not count is no result.
//! - Two failures in a row fire. A fall of goodput of 5 % or more that breaks no floor fires when two confirming tests are
//!   low as well.
//! - Where nothing fires, no result for 2.5 periods fires: a period later for each of two tests for which the hub had no
//!   time, and not while a test of the pair runs; the rest of a pair after failures does not count. What a silence ends with
//!   goes on as the same alert where it is bad.
//!
//! While something is wrong with a pair, its baseline is that of before, so that a fault does not become normal by lasting;
//! [`Alerts::accept`] makes it so. Other options of a task's tests begin a new baseline. An alert has the figures of the
//! latest test below what is expected.
//!
//! Handle what happened, then drain [`Alerts::poll_action`]. [`Alerts::poll_timeout`] says when [`Alerts::handle_time`] is due
//! next. The whole is serialisable; after a restart the driver calls [`Alerts::handle_plan`], then [`Alerts::handle_past`]
//! for each pair's latest 120 tests, the oldest first.

mod grouping;
mod pair;
mod trouble;

use std::collections::{BTreeMap, VecDeque};

use linerate_model::alert::{
    Acceptance, Alert, AlertCause, AlertCounterTest, AlertFinding, AlertId, AlertKind, AlertPair,
    AlertRun, AlertState, HostChange,
};
use linerate_model::counter_test::Verdict;
use linerate_model::mesh::{MeshCauseKind, MeshDirection};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis, WatchRun};
use serde::{Deserialize, Serialize};

use crate::baseline::{Baseline, Regime};
use crate::dispatch::Lease;
use crate::expectation::{Bounds, Floor};
use crate::watched::Watched;
use grouping::Place;
use pair::{Rules, Step, Watch};

/// Tests in a row that end what is wrong with a pair.
pub const PASSES_THAT_END: usize = pair::IN_A_ROW;
/// A host that answers says what it is like so long after its alert ended, ms.
const REPAIR: u64 = 10_000;
/// Changes of hosts that are kept, the latest.
const CHANGES: usize = 1000;

/// A pair of a task, by names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PairName {
    /// The task.
    pub task: PlainText,
    /// The sending host.
    pub from: PlainText,
    /// The receiving host.
    pub to: PlainText,
}

impl PairName {
    /// The pair of a test.
    pub fn of(run: &WatchRun) -> Self {
        Self {
            task: run.task.clone(),
            from: run.from.clone(),
            to: run.to.clone(),
        }
    }

    /// The pair that a lease is for.
    pub fn of_lease(lease: &Lease) -> Self {
        Self {
            task: lease.task.clone(),
            from: lease.from.clone(),
            to: lease.to.clone(),
        }
    }
}

/// What the driver has to do.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "actions are few and soon done")]
pub enum Action {
    /// Run a test of class [`linerate_model::watch::RunClass::Confirm`].
    AskConfirm {
        /// Which pair.
        pair: PairName,
        /// Not before this.
        at: UnixMillis,
    },
    /// Run the counter-test of a finding, after the confirming tests, and report it by [`Alerts::handle_counter_test`].
    AskCounterTest {
        /// Which pair.
        pair: PairName,
        /// The id of the finding.
        finding: String,
    },
    /// Ask a host what it is like, and report what changed by [`Alerts::handle_host_changes`]: something began to be wrong
    /// with one of its pairs, or is over.
    AskFacts {
        /// Which host.
        host: PlainText,
    },
    /// Keep and show the alert, and notify of it.
    AlertChanged(Alert),
    /// What follows for a test's record, after those before.
    Record(Mark),
}

/// What follows for the record of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It is kept for ever.
    Keep(RunId, Worth),
    /// It was kept as one of the first of a level, and is none of these: later tests show where the level began.
    LetGo(RunId),
}

/// Why a record is worth keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Worth {
    /// It is one of the first three tests of a level.
    Regime,
    /// An alert rests on it.
    Alert,
}

/// Why the new level of an alert cannot be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// There is no such alert, or it is over.
    #[error("No alert of this id is open.")]
    NotOpen,
    /// Its tests are compared with something else than earlier tests, or fail.
    #[error(
        "None of its pairs fires because it showed more before: tests that fail have no level, and a floor that follows from the plan \
         or from links changes there."
    )]
    NoLevel,
}

/// Every pair's state, and the alerts that are open.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Alerts {
    #[serde(with = "listed")]
    pairs: BTreeMap<PairName, Watch>,
    open: Vec<Alert>,
    /// The latest last.
    changes: VecDeque<HostChange>,
    /// Alerts of which a pair ended within the last [`REPAIR`]: when, and what each said had changed.
    #[serde(skip)]
    ended: BTreeMap<AlertId, (UnixMillis, Vec<HostChange>)>,
    #[serde(skip)]
    places: Vec<Place>,
    #[serde(skip)]
    actions: VecDeque<Action>,
}

impl Alerts {
    /// Takes a plan: at the start, and whenever it changes. What is no longer in it ends.
    pub fn handle_plan(&mut self, now: UnixMillis, watched: &Watched) {
        let mut rules: BTreeMap<PairName, Rules> = BTreeMap::new();
        for task in &watched.tasks {
            for pair in &task.pairs {
                let host = |place: usize| watched.hosts.get(place).map(|host| host.name.clone());
                let (Some(from), Some(to)) = (host(pair.from), host(pair.to)) else {
                    continue;
                };
                let name = PairName {
                    task: task.name.clone(),
                    from,
                    to,
                };
                let its = Rules {
                    period_millis: task.schedule.period_millis,
                    options: task.options.clone(),
                    expected: task.expected,
                    bounds: Bounds::of(watched, task, pair),
                };
                rules.insert(name, its);
            }
        }
        let gone: Vec<PairName> = self
            .pairs
            .keys()
            .filter(|name| !rules.contains_key(name))
            .cloned()
            .collect();
        for name in gone {
            self.carry_out(now, &name, vec![Step::Ended]);
            self.pairs.remove(&name);
        }
        for (name, its) in rules {
            let new = Watch::new(&name.task, &name.from, &name.to, now);
            let watch = self.pairs.entry(name.clone()).or_insert(new);
            let steps = watch.begin(now, its);
            self.carry_out(now, &name, steps);
        }
        self.places = grouping::places(watched);
    }

    /// A test of before, from the archive: only baselines follow from it. Each pair's oldest first.
    pub fn handle_past(&mut self, run: &WatchRun) {
        if let Some(watch) = self.pairs.get_mut(&PairName::of(run)) {
            watch.handle_past(run);
        }
    }

    /// What became of a test. `finding` is the first of its findings that limits it, where one does. A test that is
    /// not of the plan, or is known, changes nothing.
    pub fn handle_run(&mut self, now: UnixMillis, run: &WatchRun, finding: Option<AlertFinding>) {
        let name = PairName::of(run);
        let Some(watch) = self.pairs.get_mut(&name) else {
            return;
        };
        let steps = watch.handle_run(now, run, finding);
        self.carry_out(now, &name, steps);
    }

    /// What the counter-test of a finding showed.
    pub fn handle_counter_test(
        &mut self,
        now: UnixMillis,
        pair: &PairName,
        finding: &str,
        shown: AlertCounterTest,
    ) {
        let trouble = self
            .pairs
            .get_mut(pair)
            .and_then(|watch| watch.trouble.as_mut());
        if trouble.is_some_and(|trouble| trouble.handle_counter_test(finding, shown)) {
            self.carry_out(now, pair, vec![Step::Changed]);
        }
    }

    /// Facts of hosts that changed; those that are known may be among them.
    pub fn handle_host_changes(&mut self, now: UnixMillis, changes: &[HostChange]) {
        for change in changes {
            if !self.changes.contains(change) && !self.gives_back(change) {
                self.changes.push_back(change.clone());
            }
        }
        while self.changes.len() > CHANGES {
            self.changes.pop_front();
        }
        let ids: Vec<AlertId> = self.open.iter().map(|alert| alert.id).collect();
        for id in ids {
            self.refresh(now, id, false);
        }
    }

    /// Whether a change gave back what an alert that was just over had said had changed: it is no cause of anything.
    fn gives_back(&self, change: &HostChange) -> bool {
        self.ended.values().any(|(at, then)| {
            is_repair(change, *at) && then.iter().any(|earlier| undoes(change, earlier))
        })
    }

    /// A test began: as long as its lease lasts, its result may still come.
    pub fn handle_lease(&mut self, pair: &PairName, expiry: UnixMillis) {
        if let Some(watch) = self.pairs.get_mut(pair) {
            watch.handle_lease(expiry);
        }
    }

    /// Time passed: silence, and confirming tests that got lost.
    pub fn handle_time(&mut self, now: UnixMillis) {
        let due = self
            .pairs
            .iter()
            .filter(|(_, watch)| watch.timeout().is_some_and(|at| at <= now));
        let due: Vec<PairName> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            if let Some(watch) = self.pairs.get_mut(&name) {
                let steps = watch.handle_time(now);
                self.carry_out(now, &name, steps);
            }
        }
    }

    /// When [`Self::handle_time`] is due next; absent = nothing is waited for.
    pub fn poll_timeout(&self) -> Option<UnixMillis> {
        self.pairs.values().filter_map(Watch::timeout).min()
    }

    /// What is to be done next; absent = nothing.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Somebody says that what a pair shows now is what it should show: its alert ends, and a new baseline begins.
    pub fn accept(&mut self, now: UnixMillis, pair: &PairName) {
        if let Some(watch) = self.pairs.get_mut(pair) {
            let steps = watch.accept(now);
            self.carry_out(now, pair, steps);
        }
    }

    /// The same of each pair of an alert that fires because it showed more before; how many these are. The others stay.
    ///
    /// # Errors
    /// Where there is none.
    pub fn accept_alert(
        &mut self,
        now: UnixMillis,
        id: AlertId,
        by: &PlainText,
    ) -> Result<usize, AcceptError> {
        let alert = self.open.iter_mut().find(|alert| alert.id == id);
        let alert = alert.ok_or(AcceptError::NotOpen)?;
        let pairs = alert.pairs.iter().filter(|pair| pair.is_below_its_past());
        let pairs: Vec<PairName> = pairs
            .map(|pair| PairName {
                task: alert.task.clone(),
                from: pair.from.clone(),
                to: pair.to.clone(),
            })
            .collect();
        if pairs.is_empty() {
            return Err(AcceptError::NoLevel);
        }
        alert.accepted = Some(Acceptance {
            at: now,
            by: by.clone(),
        });
        for pair in &pairs {
            self.accept(now, pair);
        }
        Ok(pairs.len())
    }

    /// The alerts that are suspect or firing, the oldest first.
    pub fn open(&self) -> &[Alert] {
        &self.open
    }

    /// How a pair is: resolved where nothing is wrong. Absent = it is not in the plan.
    pub fn state(&self, pair: &PairName) -> Option<AlertState> {
        self.pairs.get(pair).map(Watch::state)
    }

    /// What a pair's next test is compared with; absent = nothing, or it is not known yet.
    pub fn floor(&self, pair: &PairName) -> Option<Floor> {
        self.pairs.get(pair)?.floor()
    }

    /// What a pair showed before; while it is suspect or firing, that of before.
    pub fn baseline(&self, pair: &PairName) -> Option<Baseline> {
        self.pairs.get(pair)?.baseline()
    }

    /// The levels that a pair had, the first one first.
    pub fn regimes(&self, pair: &PairName) -> Vec<Regime> {
        self.pairs
            .get(pair)
            .map(|watch| watch.history.regimes())
            .unwrap_or_default()
    }

    fn carry_out(&mut self, now: UnixMillis, name: &PairName, steps: Vec<Step>) {
        if let Some(watch) = self.pairs.get_mut(name) {
            self.actions
                .extend(watch.marks.drain(..).map(Action::Record));
        }
        let mut group = false;
        for step in steps {
            match step {
                Step::Confirm(at) => self.actions.push_back(Action::AskConfirm {
                    pair: name.clone(),
                    at,
                }),
                Step::CounterTest(finding) => self.actions.push_back(Action::AskCounterTest {
                    pair: name.clone(),
                    finding,
                }),
                Step::Ended => {
                    self.end(now, name);
                    self.ask_facts(name);
                }
                Step::Began => {
                    self.begin(now, name);
                    self.ask_facts(name);
                }
                Step::Changed => {}
            }
            group = true;
        }
        let Some(watch) = self.pairs.get(name).filter(|_| group) else {
            return;
        };
        // First the cause: an alert that ends in another one at once is nobody's concern.
        if watch.state() == AlertState::Firing {
            self.group(now, &name.task);
        }
        if let Some(id) = self.pairs.get(name).and_then(|watch| watch.alert) {
            self.refresh(now, id, true);
        }
    }

    /// What changed on a host is known before the alert fires, and what repaired it soon after.
    fn ask_facts(&mut self, name: &PairName) {
        let host = |name: &PlainText| Action::AskFacts { host: name.clone() };
        self.actions.extend([&name.from, &name.to].map(host));
    }

    /// A new alert for one pair.
    fn begin(&mut self, now: UnixMillis, name: &PairName) {
        let Some(watch) = self.pairs.get_mut(name) else {
            return;
        };
        let Some(trouble) = &watch.trouble else {
            return;
        };
        let id = AlertId::of(trouble.since, hash(name));
        watch.alert = Some(id);
        let (since, kind) = (trouble.since, trouble.kind);
        let cause = AlertCause {
            kind: MeshCauseKind::Pair,
            name: PlainText::from(format!("{} > {}", name.from, name.to)),
            direction: MeshDirection::Out,
            from: vec![name.from.clone()],
            to: vec![name.to.clone()],
            in_common: Vec::new(),
        };
        // One that ended in this moment may have begun in the same one.
        self.open.retain(|alert| alert.id != id);
        self.open.push(Alert {
            id,
            task: name.task.clone(),
            kind,
            state: AlertState::Suspect,
            cause,
            since,
            fired: None,
            until: None,
            merged_into: None,
            accepted: None,
            changed: now,
            finding: None,
            host_changes: Vec::new(),
            pairs: Vec::new(),
        });
        self.open.sort_by_key(|alert| (alert.since, alert.id));
    }

    /// Nothing is wrong with a pair any more, or it is no longer watched.
    fn end(&mut self, now: UnixMillis, name: &PairName) {
        let Some(watch) = self.pairs.get_mut(name) else {
            return;
        };
        watch.repaired = now;
        let Some(id) = watch.alert.take() else { return };
        let recent: Vec<AlertRun> = watch.recent().copied().collect();
        let alert = self.open.iter_mut().find(|alert| alert.id == id);
        self.ended
            .retain(|_, (at, _)| at.plus_millis(REPAIR) >= now);
        if let Some(alert) = &alert {
            let then = || (now, alert.host_changes.clone());
            self.ended.entry(id).or_insert_with(then).0 = now;
        }
        for pair in alert.into_iter().flat_map(|alert| &mut alert.pairs) {
            if (&pair.from, &pair.to) == (&name.from, &name.to) {
                watch.repaired_rate = pair.kind.is_of_rate();
                pair.state = AlertState::Resolved;
                pair.runs.clone_from(&recent);
            }
        }
        self.refresh(now, id, true);
    }

    /// Computes an alert from its pairs; `always` reports it even where nothing changed.
    fn refresh(&mut self, now: UnixMillis, id: AlertId, always: bool) {
        let Some(place) = self.open.iter().position(|alert| alert.id == id) else {
            return;
        };
        let before = self.open[place].clone();
        let mut alert = before.clone();
        let inside: Vec<&Watch> = self
            .pairs
            .values()
            .filter(|watch| watch.alert == Some(id))
            .collect();
        for watch in &inside {
            let Some(new) = described(watch) else {
                continue;
            };
            let same = |pair: &&mut AlertPair| (&pair.from, &pair.to) == (&new.from, &new.to);
            match alert.pairs.iter_mut().find(same) {
                Some(pair) => *pair = new,
                None => alert.pairs.push(new),
            }
        }
        alert.pairs.sort_by_key(|pair| pair.since);
        let open = || {
            alert
                .pairs
                .iter()
                .filter(|pair| pair.state != AlertState::Resolved)
        };
        if let Some(kind) = open()
            .map(|pair| pair.kind)
            .min_by_key(|kind| urgency(*kind))
        {
            alert.kind = kind;
        }
        alert.state = if open().any(|pair| pair.state == AlertState::Firing) {
            AlertState::Firing
        } else if open().next().is_none() {
            AlertState::Resolved
        } else {
            // One that fired goes on firing until its last pair is repaired.
            before.state
        };
        if alert.state == AlertState::Firing {
            alert.fired.get_or_insert(now);
        }
        if !inside.is_empty() {
            let slow = alert.kind.is_of_rate();
            alert.finding = vote(&inside).or(alert.finding.filter(|_| slow));
            alert.host_changes = changes_of(&inside, &self.changes);
        }
        if alert.state == AlertState::Resolved {
            alert.until = Some(now);
        }
        if alert == before && !always {
            return;
        }
        alert.changed = now;
        if alert.state == AlertState::Resolved {
            self.open.remove(place);
        } else {
            self.open[place] = alert.clone();
        }
        self.actions.push_back(Action::AlertChanged(alert));
    }
}

/// The pair as its alert has it.
fn described(watch: &Watch) -> Option<AlertPair> {
    let trouble = watch.trouble.as_ref()?;
    let failure = !trouble.kind.is_of_rate();
    Some(AlertPair {
        from: watch.from.clone(),
        to: watch.to.clone(),
        kind: trouble.kind,
        state: watch.state(),
        since: trouble.since,
        compared: trouble.compared.clone(),
        failure: watch.failure().filter(|_| failure).cloned(),
        passes: u32::try_from(trouble.passes).unwrap_or(u32::MAX),
        runs: watch.recent().copied().collect(),
    })
}

/// What is worse comes first.
const fn urgency(kind: AlertKind) -> u8 {
    match kind {
        AlertKind::Failing => 0,
        AlertKind::Silent => 1,
        AlertKind::Slow => 2,
        AlertKind::Changed => 3,
    }
}

/// The finding that most of the pairs have; of equals one that a counter-test confirmed, then the first.
fn vote(inside: &[&Watch]) -> Option<AlertFinding> {
    let troubles = inside.iter().filter_map(|watch| watch.trouble.as_ref());
    // What limited a pair does not say why it is silent now.
    let troubles = troubles.filter(|trouble| trouble.kind.is_of_rate());
    let findings: Vec<&AlertFinding> = troubles
        .filter_map(|trouble| trouble.finding.as_ref())
        .collect();
    let votes = |id: &str| findings.iter().filter(|finding| finding.id == id).count();
    let tested = |finding: &AlertFinding| finding.counter_test.as_ref().map(|test| test.verdict);
    let worth = |finding: &AlertFinding| {
        let confirmed = match tested(finding) {
            Some(Verdict::Confirmed) => 2,
            None | Some(Verdict::Undecided) => 1,
            Some(Verdict::Refuted) => 0,
        };
        (votes(&finding.id), confirmed)
    };
    let best = findings.iter().copied().reduce(|best, next| {
        if worth(next) > worth(best) {
            next
        } else {
            best
        }
    })?;
    Some(AlertFinding {
        votes: (votes(&best.id), inside.len()),
        ..best.clone()
    })
}

/// Facts that come and go with packages, containers and who logs in, and that no test between hosts uses: what an image or a
/// folder is mounted from. They stay on the host's page.
const NO_CAUSE: [&str; 2] = ["storage.devices.loop", "storage.mounts."];

/// What changed on the pairs' hosts in the gap between their last good test and their first bad one; the latest first.
///
/// Facts are read again once something is over: what they show then was the repair of a rate. No setting brings an agent
/// back: what its host shows then is as new as it looks.
fn changes_of(inside: &[&Watch], changes: &VecDeque<HostChange>) -> Vec<HostChange> {
    let in_gap = |change: &&HostChange| {
        inside.iter().any(|watch| {
            let its = change.host == watch.from || change.host == watch.to;
            let repair = watch.repaired_rate && is_repair(change, watch.repaired);
            let gap = watch
                .trouble
                .as_ref()
                .map(|trouble| (trouble.good, trouble.since));
            its && !repair
                && gap.is_some_and(|(good, bad)| {
                    change.first_after >= good && change.last_before <= bad
                })
        })
    };
    let may_matter = |change: &&HostChange| {
        let mut no_cause = NO_CAUSE.iter();
        !no_cause.any(|facts| change.fact.starts_with(facts))
    };
    let found = changes.iter().filter(may_matter).filter(in_gap);
    let mut found: Vec<HostChange> = found.cloned().collect();
    found.sort_by_key(|change| std::cmp::Reverse(change.first_after));
    found
}

/// Whether a change may have ended what was over at a moment.
fn is_repair(change: &HostChange, over: UnixMillis) -> bool {
    change.last_before <= over && change.first_after <= over.plus_millis(REPAIR)
}

/// Whether a change gave a fact the value back that an earlier one had taken.
fn undoes(change: &HostChange, earlier: &HostChange) -> bool {
    (&change.host, &change.fact, &change.after) == (&earlier.host, &earlier.fact, &earlier.before)
}

/// FNV-1a with 128 bits (RFC 9923) over the names, each ended by a byte that no text has.
fn hash(name: &PairName) -> u128 {
    let parts = [&name.task, &name.from, &name.to];
    let bytes = parts
        .into_iter()
        .flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(
        0x6c62_272e_07bb_0142_62b8_2175_6295_c58d,
        |hash: u128, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        },
    )
}

/// A map whose keys follow from its values, as a list.
mod listed {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::{PairName, Watch};

    pub(super) fn serialize<S: Serializer>(
        pairs: &BTreeMap<PairName, Watch>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(pairs.values())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<PairName, Watch>, D::Error> {
        let pairs = Vec::<Watch>::deserialize(from)?.into_iter();
        let name = |watch: &Watch| PairName {
            task: watch.task.clone(),
            from: watch.from.clone(),
            to: watch.to.clone(),
        };
        Ok(pairs.map(|watch| (name(&watch), watch)).collect())
    }
}
