//! Alerts of simulated pairs: healthy ones are quiet, each fault fires within three tests and resolves when it is repaired.

use std::collections::{BTreeMap, HashSet};

use linerate_model::alert::{
    Alert, AlertCounterTest, AlertFinding, AlertKind, AlertState, HostChange,
};
use linerate_model::counter_test::Verdict;
use linerate_model::mesh::MeshCauseKind;
use linerate_model::plain_text::PlainText;
use linerate_model::units::BitRate;
use linerate_model::watch::{
    Holding, NotRun, RunClass, RunId, UnixMillis, WatchFigures, WatchOutcome, WatchRun,
};
use linerate_watch::alert::{AcceptError, Action, Alerts, Mark, PairName, Worth};
use linerate_watch::watched::{
    Budget, Duplex, Expected, Pair, Reach, Sampling, Schedule, Task, Watched, WatchedHost,
};

use crate::simulated::Dice;

const MINUTE: u64 = 60_000;
const PERIOD: u64 = 6 * 60 * MINUTE;
/// A period begins here.
const START: u64 = PERIOD * 80_000;
const RATE: f64 = 9.4e9;

fn plan(hosts: usize, expected: Expected) -> Watched {
    let host = |place: usize| WatchedHost {
        ports: None,
        name: format!("node{place}").into(),
        address: format!("10.0.0.{place}").into(),
        reach: Reach::Agent,
        listens: true,
        link: Some(BitRate(10_000_000_000)),
        duplex: Duplex::Exclusive,
        segments: Vec::new(),
        groups: Vec::new(),
        budget: Budget::default(),
    };
    let pair = |from: usize, to: usize| Pair {
        from,
        to,
        from_address: None,
        to_address: None,
    };
    let others = |from: usize| {
        (0..hosts)
            .filter(move |to| *to != from)
            .map(move |to| (from, to))
    };
    Watched {
        hosts: (0..hosts).map(host).collect(),
        tasks: vec![Task {
            name: "mesh".into(),
            options: Vec::new(),
            load_millis: 10_000,
            rate: None,
            pairs: (0..hosts)
                .flat_map(others)
                .map(|(from, to)| pair(from, to))
                .collect(),
            schedule: Schedule {
                period_millis: PERIOD,
                slip_millis: None,
                sampling: Sampling::Stratified,
                hours: Vec::new(),
            },
            expected: Some(expected),
            quiet: None,
        }],
        ..Watched::default()
    }
}

/// What a path gives at a moment: the share of its rate, or why there is no rate.
#[derive(Clone, Copy)]
enum Given {
    Share(f64),
    Fails,
    AgentAway,
    Missed,
    Rests,
    Invalid,
}

/// Pairs, their tests and what alerts followed.
struct World {
    alerts: Alerts,
    hosts: usize,
    dice: Dice,
    /// Tests that are due, by moment.
    due: BTreeMap<(u64, u64), (usize, usize, RunClass)>,
    number: u64,
    changed: Vec<Alert>,
    counter_tests: Vec<(PairName, String)>,
    /// What limits tests.
    finding: &'static str,
    /// The host without an agent, as the dispatcher names it.
    away: Option<&'static str>,
    /// All rows, the oldest first.
    rows: Vec<WatchRun>,
    /// Hosts whose facts were asked for.
    asked: Vec<PlainText>,
    /// Tests whose records are kept for ever.
    kept: HashSet<(RunId, Worth)>,
}

fn in_the_way(host: &str) -> Holding {
    Holding {
        resource: host.into(),
        by: "its agent".into(),
        millis: PERIOD,
    }
}

impl World {
    /// Kinds and states of node0's alerts as they change after ten healthy periods, each once.
    fn story(
        &mut self,
        periods: u64,
        given: impl Fn(usize, usize, u64) -> Given + Copy,
    ) -> Vec<(AlertKind, AlertState)> {
        self.run(0, 10, given);
        self.changed.clear();
        self.run(10, periods, given);
        let its = |alert: &&Alert| alert.cause.from == ["node0"];
        let changed = self.changed.iter().filter(its);
        let mut story: Vec<_> = changed.map(|alert| (alert.kind, alert.state)).collect();
        story.dedup();
        story
    }

    fn new(hosts: usize, expected: Expected, seed: u64) -> Self {
        let mut alerts = Alerts::default();
        alerts.handle_plan(UnixMillis(START), &plan(hosts, expected));
        Self {
            alerts,
            hosts,
            dice: Dice(seed),
            due: BTreeMap::new(),
            number: 0,
            changed: Vec::new(),
            counter_tests: Vec::new(),
            finding: "receive-window",
            away: None,
            rows: Vec::new(),
            asked: Vec::new(),
            kept: HashSet::new(),
        }
    }

    /// The tests that a host sent, which ended within these periods, the oldest first.
    fn tests_of(&self, from: &str, periods: std::ops::Range<u64>) -> Vec<RunId> {
        let within = at_period(periods.start)..at_period(periods.end);
        let its = |run: &&WatchRun| run.from == *from && within.contains(&run.ended.0);
        self.rows.iter().filter(its).map(|run| run.id).collect()
    }

    fn kept_as(&self, worth: Worth) -> HashSet<RunId> {
        let kept = self.kept.iter().filter(|(_, its)| *its == worth);
        kept.map(|(run, _)| *run).collect()
    }

    /// What a hub that starts again knows: the alerts' state, and the latest rows.
    fn restart(&mut self, now: u64, expected: Expected) {
        let state = serde_json::to_vec(&self.alerts).unwrap();
        self.alerts = serde_json::from_slice(&state).unwrap();
        self.alerts
            .handle_plan(UnixMillis(now), &plan(self.hosts, expected));
        for run in &self.rows {
            self.alerts.handle_past(run);
        }
        self.drain();
    }

    fn ask(&mut self, at: u64, from: usize, to: usize, class: RunClass) {
        self.number += 1;
        self.due.insert((at, self.number), (from, to, class));
    }

    /// Runs the tests of some periods.
    fn run(&mut self, from: u64, periods: u64, given: impl Fn(usize, usize, u64) -> Given) {
        for period in from..from + periods {
            for sender in 0..self.hosts {
                for receiver in (0..self.hosts).filter(|to| *to != sender) {
                    let within = self.dice.below(usize::try_from(PERIOD).unwrap());
                    let at = START + period * PERIOD + u64::try_from(within).unwrap();
                    self.ask(at, sender, receiver, RunClass::Regular);
                }
            }
            let end = START + (period + 1) * PERIOD;
            loop {
                let next = self
                    .due
                    .first_key_value()
                    .map_or(end, |(due, _)| due.0)
                    .min(end);
                if let Some(timeout) = self.alerts.poll_timeout().filter(|at| at.0 <= next) {
                    self.alerts.handle_time(timeout);
                    self.drain();
                    continue;
                }
                if next >= end {
                    break;
                }
                let ((at, number), (from, to, class)) = self.due.pop_first().unwrap();
                self.test(at, number, (from, to), class, given(from, to, at));
            }
        }
    }

    fn test(
        &mut self,
        at: u64,
        number: u64,
        (from, to): (usize, usize),
        class: RunClass,
        given: Given,
    ) {
        let outcome = match given {
            Given::Share(share) => self.measured(share),
            Given::Fails => WatchOutcome::Failed {
                stage: "connecting".into(),
                why: "connection timed out".into(),
            },
            Given::AgentAway => WatchOutcome::NotRun {
                reason: NotRun::AgentAway,
                why: "an agent is not connected".into(),
                held: self.away.iter().map(|host| in_the_way(host)).collect(),
            },
            Given::Rests => WatchOutcome::NotRun {
                reason: NotRun::BackingOff,
                why: "the pair rested, because 3 tests in a row failed".into(),
                held: Vec::new(),
            },
            Given::Invalid => WatchOutcome::Invalid {
                why: "the hub stopped it before its end".into(),
            },
            Given::Missed => WatchOutcome::NotRun {
                reason: NotRun::Missed,
                why: "other tests used what it needs".into(),
                held: Vec::new(),
            },
        };
        let run = WatchRun {
            id: RunId::of(UnixMillis(at), u128::from(number)),
            task: "mesh".into(),
            from: format!("node{from}").into(),
            to: format!("node{to}").into(),
            class,
            due: UnixMillis(at),
            deadline: UnixMillis(at + PERIOD),
            started: Some(UnixMillis(at)),
            ended: UnixMillis(at + 15_000),
            outcome,
        };
        let finding = AlertFinding {
            id: self.finding.to_owned(),
            sentence: "The receive window limited this test 99 % of the time".into(),
            remedy: None,
            host: None,
            page: PlainText::default(),
            counter_test: None,
            votes: (0, 0),
        };
        self.alerts
            .handle_run(UnixMillis(at + 15_000), &run, Some(finding));
        self.rows.push(run);
        self.drain();
    }

    /// Log-normal noise of 3 %, and a dip in one of 200 tests.
    fn measured(&mut self, share: f64) -> WatchOutcome {
        let dip = if self.dice.below(200) == 0 {
            self.dice.between(0.3, 0.9)
        } else {
            1.0
        };
        let rate = (RATE * (0.03 * self.dice.normal()).exp() * dip).min(9.49e9) * share;
        WatchOutcome::Measured(WatchFigures {
            goodput_bps: rate,
            interval_bps: Some((rate * 0.995, rate * 1.005)),
            ..WatchFigures::default()
        })
    }

    fn drain(&mut self) {
        while let Some(action) = self.alerts.poll_action() {
            match action {
                Action::AskConfirm { pair, at } => {
                    let place = |name: &PlainText| name.trim_start_matches("node").parse().unwrap();
                    self.ask(at.0, place(&pair.from), place(&pair.to), RunClass::Confirm);
                }
                Action::AskCounterTest { pair, finding } => {
                    self.counter_tests.push((pair, finding));
                }
                Action::AskFacts { host } => self.asked.push(host),
                Action::AlertChanged(alert) => self.changed.push(alert),
                Action::Record(Mark::Keep(run, worth)) => {
                    self.kept.insert((run, worth));
                }
                Action::Record(Mark::LetGo(run)) => {
                    self.kept.remove(&(run, Worth::Regime));
                }
            }
        }
    }

    /// The alerts that fired, as they were last.
    fn fired(&self) -> Vec<&Alert> {
        let mut last: BTreeMap<_, &Alert> = BTreeMap::new();
        for alert in self.changed.iter().filter(|alert| alert.fired.is_some()) {
            last.insert(alert.id, alert);
        }
        last.into_values()
            .filter(|alert| alert.merged_into.is_none())
            .collect()
    }

    fn only(&self) -> &Alert {
        let fired = self.fired();
        assert_eq!(fired.len(), 1, "{}", brief(&fired));
        fired[0]
    }
}

/// What an alert says, in short; moments in periods.
fn brief(alerts: &[&Alert]) -> String {
    let moment = |at: UnixMillis| (at.0 as f64 - START as f64) / PERIOD as f64;
    let one = |alert: &&Alert| {
        let runs = alert.pairs.iter().map(|pair| {
            let runs = pair.runs.iter().map(|run| {
                let rate = run.goodput_bps.map(|rate| (rate / 1e7).round() / 100.0);
                format!(
                    "{:.2} {:?} {:?} {rate:?}",
                    moment(run.ended),
                    run.class,
                    run.shows
                )
            });
            let floor = pair
                .compared
                .as_ref()
                .map(|compared| compared.floor_bps / 1e9);
            format!(
                "  {} > {} {:?} {:?} floor {floor:?}: {}",
                pair.from,
                pair.to,
                pair.kind,
                pair.state,
                runs.collect::<Vec<_>>().join(", ")
            )
        });
        let pairs = runs.collect::<Vec<_>>().join("\n");
        format!(
            "{:?} {:?} {} since {:.2} fired {:?} until {:?}\n{pairs}\n",
            alert.kind,
            alert.state,
            alert.cause.name,
            moment(alert.since),
            alert.fired.map(moment),
            alert.until.map(moment)
        )
    };
    alerts.iter().map(one).collect()
}

fn at_period(period: u64) -> u64 {
    START + period * PERIOD
}

#[test]
fn a_thousand_healthy_pair_days_fire_once_at_most() {
    for expected in [
        Expected::Auto,
        Expected::AtLeast(BitRate(8_000_000_000)),
        Expected::OfBaseline(0.9),
    ] {
        // 20 pairs for 50 days.
        let mut world = World::new(5, expected, 11);
        world.run(0, 200, |_, _, _| Given::Share(1.0));
        let fired = world.fired();
        assert!(fired.len() <= 1, "{expected:?}: {}", brief(&fired));
        assert!(
            world
                .changed
                .iter()
                .any(|alert| alert.state == AlertState::Suspect),
            "dips are suspect"
        );
        assert!(
            world
                .changed
                .iter()
                .all(|alert| alert.merged_into.is_none())
        );
    }
}

#[test]
fn a_step_fires_within_three_tests_and_resolves_after_its_repair() {
    for seed in 0..20 {
        let mut world = World::new(2, Expected::Auto, seed);
        let (broken, repaired) = (at_period(40), at_period(70));
        let given = |from: usize, _: usize, at: u64| {
            Given::Share(if from == 0 && (broken..repaired).contains(&at) {
                0.8
            } else {
                1.0
            })
        };
        world.run(0, 40, given);
        world.changed.clear();
        world.counter_tests.clear();
        world.run(40, 2, given);
        let first = world
            .changed
            .iter()
            .find(|alert| alert.state == AlertState::Firing);
        let alert = first.unwrap().clone();
        let bad = alert.pairs[0]
            .runs
            .iter()
            .filter(|run| run.ended.0 >= broken);
        assert_eq!(bad.count(), 3, "seed {seed}");
        assert_eq!(
            (alert.kind, alert.state),
            (AlertKind::Slow, AlertState::Firing)
        );
        assert_eq!(
            (alert.cause.kind, &*alert.cause.name),
            (MeshCauseKind::Pair, "node0 > node1")
        );
        let minutes = (alert.fired.unwrap().0 - alert.since.0) / MINUTE;
        assert!(minutes <= 10, "{minutes}");
        let finding = alert.finding.as_ref().unwrap();
        assert_eq!(
            (finding.id.as_str(), finding.votes),
            ("receive-window", (1, 1))
        );
        let tested = world
            .counter_tests
            .iter()
            .filter(|(pair, _)| pair.from == "node0");
        assert_eq!(tested.count(), 1, "seed {seed}");
        // It does not become normal by lasting.
        world.run(42, 28, given);
        assert_eq!(world.only().state, AlertState::Firing);
        world.run(70, 2, given);
        let alert = world.only();
        assert_eq!(alert.state, AlertState::Resolved, "seed {seed}");
        assert!(alert.until.unwrap().0 < at_period(72));
        world.run(72, 20, given);
        assert_eq!(
            world.fired().len(),
            1,
            "seed {seed}: {}",
            brief(&world.fired())
        );
    }
}

#[test]
fn a_growing_loss_fires_before_it_costs_much() {
    for seed in 0..10 {
        let mut world = World::new(2, Expected::Auto, seed);
        world.run(0, 40, |_, _, _| Given::Share(1.0));
        world.changed.clear();
        // Half a percent less with every test: the median of the last 30 would follow it.
        let given = |from: usize, _: usize, at: u64| {
            let tests = (at - at_period(40)) as f64 / PERIOD as f64;
            Given::Share(if from == 0 {
                0.995_f64.powf(tests)
            } else {
                1.0
            })
        };
        world.run(40, 30, given);
        let kinds: Vec<AlertKind> = world.fired().iter().map(|alert| alert.kind).collect();
        assert!(!kinds.is_empty(), "seed {seed}");
        world.run(70, 30, given);
        let last = world.fired();
        let last = last.last().unwrap();
        assert_eq!(
            (last.kind, last.state),
            (AlertKind::Slow, AlertState::Firing),
            "seed {seed}"
        );
        world.run(100, 3, |_, _, _| Given::Share(1.0));
        assert!(
            world.alerts.open().is_empty(),
            "seed {seed}: {:#?}",
            world.alerts.open()
        );
    }
}

#[test]
fn a_dead_path_fires_as_failing_after_two_tests() {
    let mut world = World::new(4, Expected::Auto, 3);
    let dead = |from: usize, to: usize, at: u64| {
        if (from, to) == (0, 1) && (at_period(10)..at_period(14)).contains(&at) {
            Given::Fails
        } else {
            Given::Share(1.0)
        }
    };
    world.run(0, 11, dead);
    let alert = world.only();
    assert_eq!(
        (alert.kind, alert.state),
        (AlertKind::Failing, AlertState::Firing)
    );
    let failure = alert.pairs[0].failure.as_ref().unwrap();
    assert_eq!(
        (&*failure.stage, &*failure.why),
        ("connecting", "connection timed out")
    );
    assert!(alert.fired.unwrap().0 - alert.since.0 < 5 * MINUTE);
    assert_eq!(alert.pairs[0].compared, None, "a failure is no rate");
    world.run(11, 6, dead);
    assert_eq!(world.only().state, AlertState::Resolved);
}

#[test]
fn a_dead_agent_is_silent_and_is_one_alert() {
    let mut world = World::new(6, Expected::Auto, 5);
    let away = |from: usize, to: usize, at: u64| {
        if (from == 2 || to == 2) && (at_period(10)..at_period(14)).contains(&at) {
            Given::AgentAway
        } else {
            Given::Share(1.0)
        }
    };
    world.run(0, 14, away);
    let alert = world.only();
    assert_eq!(
        (alert.kind, alert.state),
        (AlertKind::Silent, AlertState::Firing)
    );
    assert_eq!(
        (alert.cause.kind, &*alert.cause.name),
        (MeshCauseKind::Host, "node2")
    );
    assert_eq!(alert.pairs.len(), 10);
    assert!(alert.since.0 < at_period(10));
    assert_eq!(
        &*alert.pairs[0].failure.as_ref().unwrap().why,
        "an agent is not connected"
    );
    world.run(14, 1, away);
    assert_eq!(world.only().state, AlertState::Resolved);
    assert!(world.alerts.open().is_empty());
}

#[test]
fn a_pair_is_not_silent_while_its_test_runs() {
    let mut world = World::new(2, Expected::Auto, 5);
    world.run(0, 10, |_, _, _| Given::Share(1.0));
    let pair = PairName {
        task: "mesh".into(),
        from: "node0".into(),
        to: "node1".into(),
    };
    let until = |period| UnixMillis(at_period(period));
    world.alerts.handle_lease(&pair, until(14));
    let state_at = |world: &mut World, at: u64| {
        world.alerts.handle_time(UnixMillis(at));
        world.alerts.state(&pair)
    };
    assert_eq!(
        state_at(&mut world, at_period(14) - 1),
        Some(AlertState::Resolved)
    );
    let mut lasting = world.alerts.clone();
    assert_eq!(
        state_at(&mut world, at_period(14)),
        Some(AlertState::Firing)
    );
    // A test that had no result shows it, although another one begins at once.
    std::mem::swap(&mut world.alerts, &mut lasting);
    world.test(
        at_period(14),
        1_000,
        (0, 1),
        RunClass::Regular,
        Given::AgentAway,
    );
    world.alerts.handle_lease(&pair, until(15));
    assert_eq!(world.alerts.state(&pair), Some(AlertState::Firing));
}

#[test]
fn only_a_test_that_passes_ends_a_silence() {
    let mut world = World::new(2, Expected::Auto, 5);
    let given = |from: usize, _: usize, at: u64| match (from, (at - START) / PERIOD) {
        (0, 10..14) => Given::AgentAway,
        (0, 14) => Given::Invalid,
        (0, 15..18) => Given::Fails,
        _ => Given::Share(1.0),
    };
    assert_eq!(
        world.story(10, given),
        [
            (AlertKind::Silent, AlertState::Firing),
            (AlertKind::Failing, AlertState::Firing),
            (AlertKind::Failing, AlertState::Resolved),
        ]
    );
    assert!(world.only().until.unwrap().0 > at_period(18));
}

#[test]
fn a_pair_that_rests_after_failures_goes_on_failing() {
    let mut world = World::new(2, Expected::Auto, 5);
    let given = |from: usize, _: usize, at: u64| match (from, (at - START) / PERIOD) {
        (0, 10 | 15 | 24) => Given::Fails,
        (0, 11..32) => Given::Rests,
        _ => Given::Share(1.0),
    };
    assert_eq!(
        world.story(24, given),
        [
            (AlertKind::Failing, AlertState::Suspect),
            (AlertKind::Failing, AlertState::Firing),
            (AlertKind::Failing, AlertState::Resolved),
        ]
    );
    // Without a test that failed twice it is no silence either.
    world.changed.clear();
    world.run(34, 8, |_, _, _| Given::Rests);
    assert_eq!(brief(&world.fired()), "");
    assert_eq!(world.alerts.open(), []);
}

#[test]
fn one_of_three_hosts_that_is_away_is_one_alert() {
    let mut world = World::new(3, Expected::Auto, 5);
    world.away = Some("node2");
    let away = |from: usize, to: usize, at: u64| {
        if (from == 2 || to == 2) && at >= at_period(10) {
            Given::AgentAway
        } else {
            Given::Share(1.0)
        }
    };
    world.run(0, 14, away);
    let alert = world.only();
    assert_eq!(
        (alert.kind, alert.cause.kind, &*alert.cause.name),
        (AlertKind::Silent, MeshCauseKind::Host, "node2")
    );
    assert_eq!(alert.pairs.len(), 4);
    let fired = world.changed.iter().filter(|alert| alert.fired.is_some());
    assert!(
        fired.clone().all(|one| one.id == alert.id),
        "no other alert fired even for a moment"
    );
    assert!(fired.clone().all(|one| *one.cause.name == *"node2"));
}

#[test]
fn one_of_three_hosts_that_sends_slowly_is_one_alert() {
    for (seed, both) in [(8, false), (9, true)] {
        let mut world = World::new(3, Expected::Auto, seed);
        let slow = |from: usize, to: usize, at: u64| {
            let is_slow = from == 2 || (both && to == 2);
            Given::Share(if is_slow && at >= at_period(20) {
                0.5
            } else {
                1.0
            })
        };
        world.run(0, 20, slow);
        world.changed.clear();
        world.run(20, 4, slow);
        let alert = world.only();
        let (kind, pairs) = if both {
            (MeshCauseKind::Host, 4)
        } else {
            (MeshCauseKind::HostOut, 2)
        };
        assert_eq!((alert.cause.kind, &*alert.cause.name), (kind, "node2"));
        assert_eq!(alert.pairs.len(), pairs, "{}", brief(&[alert]));
    }
}

#[test]
fn an_alert_has_the_figures_of_a_bad_test_and_counts_the_good_ones() {
    let mut world = World::new(2, Expected::AtLeast(BitRate(8_000_000_000)), 3);
    let given = |from: usize, _: usize, at: u64| {
        Given::Share(if from == 0 && (at_period(6)..at_period(8)).contains(&at) {
            0.5
        } else {
            1.0
        })
    };
    world.run(0, 12, given);
    let of = |state: AlertState| {
        let mut all = world.changed.iter().rev();
        let last = all.find(|alert| alert.kind == AlertKind::Slow && alert.state == state);
        last.unwrap().pairs[0].clone()
    };
    let firing = of(AlertState::Firing);
    assert_eq!(firing.passes, 1, "{firing:#?}");
    let compared = firing.compared.unwrap();
    assert!(compared.goodput_bps < 5e9, "{compared:?}");
    assert!(compared.ended.unwrap().0 < at_period(8));
    assert_eq!(compared.link_bps, Some(1e10));
}

#[test]
fn without_five_tests_before_it_nothing_is_slower_than_before() {
    for seed in 0..20 {
        let mut world = World::new(2, Expected::Auto, seed);
        world.run(0, 3, |_, _, _| Given::Share(1.0));
        world.run(3, 5, |_, _, _| Given::Share(0.7));
        let changed = world.changed.iter();
        let bad = changed.filter(|alert| alert.kind == AlertKind::Changed);
        assert_eq!(brief(&bad.collect::<Vec<_>>()), "", "seed {seed}");
    }
}

#[test]
fn other_options_of_a_test_begin_a_new_baseline() {
    let mut world = World::new(2, Expected::Auto, 4);
    world.run(0, 40, |_, _, _| Given::Share(1.0));
    world.changed.clear();
    let mut other = plan(2, Expected::Auto);
    other.tasks[0].options = vec!["-b".to_owned(), "4G".to_owned()];
    other.tasks[0].rate = Some(BitRate(4_000_000_000));
    world.alerts.handle_plan(UnixMillis(at_period(40)), &other);
    let pair = PairName {
        task: "mesh".into(),
        from: "node0".into(),
        to: "node1".into(),
    };
    assert_eq!(world.alerts.baseline(&pair), None);
    world.run(40, 20, |_, _, _| Given::Share(0.4));
    let began = world.changed.iter().filter(|alert| alert.fired.is_some());
    assert_eq!(brief(&began.collect::<Vec<_>>()), "");
    let usual = world.alerts.baseline(&pair).unwrap().median_bps;
    assert!((usual / (0.4 * RATE) - 1.0).abs() < 0.05, "{usual}");
}

#[test]
fn what_was_wrong_is_no_part_of_what_is_usual_after_a_restart_either() {
    let mut world = World::new(2, Expected::Auto, 1);
    let given = |from: usize, _: usize, at: u64| {
        Given::Share(
            if from == 0 && (at_period(30)..at_period(60)).contains(&at) {
                0.5
            } else {
                1.0
            },
        )
    };
    world.run(0, 63, given);
    assert_eq!(world.only().state, AlertState::Resolved);
    let state = serde_json::to_string(&world.alerts).unwrap();
    let mut alerts: Alerts = serde_json::from_str(&state).unwrap();
    alerts.handle_plan(UnixMillis(at_period(63)), &plan(2, Expected::Auto));
    for row in &world.rows {
        alerts.handle_past(row);
    }
    let pair = PairName {
        task: "mesh".into(),
        from: "node0".into(),
        to: "node1".into(),
    };
    let usual = alerts.baseline(&pair).unwrap().median_bps;
    assert!((usual / RATE - 1.0).abs() < 0.05, "{usual}");
    assert_eq!(alerts.regimes(&pair).len(), 1);
}

#[test]
fn tests_that_the_hub_has_no_time_for_are_silence_only_after_a_while() {
    let mut world = World::new(2, Expected::Auto, 3);
    let given = |missed: std::ops::Range<u64>| {
        move |_: usize, _: usize, at: u64| {
            if (at_period(missed.start)..at_period(missed.end)).contains(&at) {
                Given::Missed
            } else {
                Given::Share(1.0)
            }
        }
    };
    world.run(0, 20, given(10..12));
    assert_eq!(brief(&world.fired()), "");
    world.run(20, 6, given(20..26));
    let kinds: Vec<AlertKind> = world.fired().iter().map(|alert| alert.kind).collect();
    assert_eq!(kinds, [AlertKind::Silent, AlertKind::Silent]);
}

#[test]
fn a_slow_host_is_one_alert_with_its_pairs() {
    let mut world = World::new(6, Expected::Auto, 8);
    let slow = |from: usize, _: usize, at: u64| {
        Given::Share(if from == 3 && at >= at_period(20) {
            0.5
        } else {
            1.0
        })
    };
    world.run(0, 20, slow);
    world.changed.clear();
    world.run(20, 3, slow);
    let alert = world.only();
    assert_eq!(
        (alert.cause.kind, &*alert.cause.name),
        (MeshCauseKind::HostOut, "node3")
    );
    assert_eq!(alert.pairs.len(), 5, "{alert:#?}");
    assert_eq!(alert.finding.as_ref().unwrap().votes, (5, 5));
    let merged = world
        .changed
        .iter()
        .filter_map(|alert| alert.merged_into)
        .collect::<Vec<_>>();
    assert!(merged.iter().all(|into| *into == alert.id));
    world.run(23, 2, |_, _, _| Given::Share(1.0));
    assert_eq!(world.only().state, AlertState::Resolved);
}

#[test]
fn a_fault_goes_on_after_a_restart_and_counter_tests_and_host_changes_join_it() {
    let mut world = World::new(2, Expected::Auto, 1);
    let given = |from: usize, _: usize, at: u64| {
        Given::Share(if from == 0 && at >= at_period(30) {
            0.8
        } else {
            1.0
        })
    };
    world.run(0, 30, given);
    world.changed.clear();
    world.asked.clear();
    world.run(30, 1, given);
    // What changed on its hosts is asked for once.
    assert_eq!(world.asked, ["node0", "node1"]);
    let before = world.only().clone();
    let state = serde_json::to_string(&world.alerts).unwrap();
    world.alerts = serde_json::from_str(&state).unwrap();
    world
        .alerts
        .handle_plan(UnixMillis(at_period(31)), &plan(2, Expected::Auto));
    assert_eq!(world.alerts.open(), std::slice::from_ref(&before));
    let pair = PairName {
        task: "mesh".into(),
        from: "node0".into(),
        to: "node1".into(),
    };
    let shown = AlertCounterTest {
        ended: UnixMillis(at_period(31)),
        verdict: Verdict::Confirmed,
        sentence: "confirmed by sockets of 8 MB".into(),
    };
    world.alerts.handle_counter_test(
        UnixMillis(at_period(31)),
        &pair,
        "receive-window",
        shown.clone(),
    );
    let change = |host: &str, last_before: u64, first_after: u64| HostChange {
        host: host.into(),
        fact: "kernel".into(),
        before: Some("5.14".into()),
        after: Some("6.1".into()),
        last_before: UnixMillis(last_before),
        first_after: UnixMillis(first_after),
    };
    let in_gap = change("node1", at_period(29), at_period(31));
    let changes = [
        in_gap.clone(),
        change("node1", 1, 2),
        change("node7", at_period(29), at_period(31)),
    ];
    world
        .alerts
        .handle_host_changes(UnixMillis(at_period(31)), &changes);
    world.drain();
    let alert = world.only();
    assert_eq!(alert.finding.as_ref().unwrap().counter_test, Some(shown));
    assert_eq!(alert.host_changes, [in_gap]);
    world.run(31, 3, given);
    assert_eq!(
        (world.only().id, world.only().state),
        (before.id, AlertState::Firing)
    );
    assert!(
        world
            .alerts
            .baseline(&pair)
            .is_some_and(|baseline| baseline.median_bps > 0.95 * RATE)
    );
    // The new level is said to be right.
    world.alerts.accept(UnixMillis(at_period(34)), &pair);
    world.drain();
    assert_eq!(world.only().state, AlertState::Resolved);
    world.run(34, 20, given);
    assert_eq!(world.fired().len(), 1);
}

#[test]
fn records_of_a_level_and_of_an_alert_are_kept_and_a_level_that_was_accepted_stays_so_after_a_restart()
 {
    let mut world = World::new(2, Expected::Auto, 3);
    let given = |from: usize, _: usize, at: u64| {
        Given::Share(if from == 0 && at >= at_period(30) {
            0.8
        } else {
            1.0
        })
    };
    world.run(0, 30, given);
    let mut levels: HashSet<RunId> = HashSet::new();
    for host in ["node0", "node1"] {
        levels.extend(&world.tests_of(host, 0..30)[..3]);
    }
    assert_eq!(world.kept_as(Worth::Regime), levels);
    assert_eq!(world.kept_as(Worth::Alert), HashSet::new());

    world.run(30, 20, given);
    let alert = world.only().clone();
    let slow = world.tests_of("node0", 30..50);
    let until = |run: &&WatchRun| run.ended <= alert.fired.unwrap() && slow.contains(&run.id);
    let evidence: HashSet<RunId> = world.rows.iter().filter(until).map(|run| run.id).collect();
    assert!((3..=4).contains(&evidence.len()), "{evidence:?}");
    assert_eq!(world.kept_as(Worth::Alert), evidence);
    levels.extend(&slow[..3]);
    assert_eq!(world.kept_as(Worth::Regime), levels);

    let now = UnixMillis(at_period(50));
    let by = PlainText::from("ann");
    assert_eq!(world.alerts.accept_alert(now, alert.id, &by), Ok(1));
    assert_eq!(
        world.alerts.accept_alert(now, alert.id, &by),
        Err(AcceptError::NotOpen)
    );
    world.drain();
    let accepted = world.only().accepted.clone().unwrap();
    assert_eq!((accepted.at, accepted.by), (now, by));
    assert_eq!(world.only().state, AlertState::Resolved);
    world.restart(at_period(50), Expected::Auto);
    world.run(50, 20, given);
    assert_eq!(world.fired().len(), 1, "{}", brief(&world.fired()));
    let pair = PairName {
        task: "mesh".into(),
        from: "node0".into(),
        to: "node1".into(),
    };
    let baseline = world.alerts.baseline(&pair).unwrap();
    assert!(
        (0.75..0.85).contains(&(baseline.median_bps / RATE)),
        "{baseline:?}"
    );
    assert_eq!(world.kept_as(Worth::Regime), levels);
}

#[test]
fn a_rate_that_the_plan_says_is_not_accepted_away() {
    let mut world = World::new(2, Expected::AtLeast(BitRate(8_500_000_000)), 1);
    let slow = |from: usize, _: usize, _: u64| Given::Share(if from == 0 { 0.8 } else { 1.0 });
    world.run(0, 3, slow);
    let id = world.only().id;
    let refused = world
        .alerts
        .accept_alert(UnixMillis(at_period(3)), id, &"ann".into());
    assert_eq!(refused, Err(AcceptError::NoLevel));
    world.drain();
    assert_eq!(world.only().state, AlertState::Firing);
}

#[test]
fn what_repaired_a_fault_is_no_cause_of_the_next() {
    let mut world = World::new(2, Expected::AtLeast(BitRate(8_500_000_000)), 1);
    let slow = |share: f64| {
        move |from: usize, _: usize, _: u64| Given::Share(if from == 0 { share } else { 1.0 })
    };
    world.run(0, 30, slow(1.0));
    world.run(30, 2, slow(0.8));
    let pair = PairName {
        task: "mesh".into(),
        from: "node0".into(),
        to: "node1".into(),
    };
    let over = at_period(32);
    world.alerts.accept(UnixMillis(over), &pair);
    world.drain();
    let change = |fact: &str, last_before: u64, first_after: u64| HostChange {
        host: "node0".into(),
        fact: fact.into(),
        before: None,
        after: Some("new".into()),
        last_before: UnixMillis(last_before),
        first_after: UnixMillis(first_after),
    };
    let next = change("mtu", over + 2_000, over + PERIOD);
    let changes = [
        change("tcp_wmem", over - 40_000, over + 1_000),
        next.clone(),
    ];
    world
        .alerts
        .handle_host_changes(UnixMillis(over + PERIOD), &changes);
    world.changed.clear();
    world.run(32, 2, slow(0.5));
    let fired = world.fired();
    let last = fired.iter().find(|alert| alert.since.0 > over).unwrap();
    assert_eq!(last.host_changes, [next]);
}

#[test]
fn what_is_new_on_a_host_that_comes_back_may_be_the_next_cause() {
    let mut world = World::new(2, Expected::AtLeast(BitRate(8_500_000_000)), 1);
    let given = |from: usize, _: usize, at: u64| {
        let away = (at_period(10)..at_period(14)).contains(&at);
        match (from, at >= at_period(15)) {
            (0, _) if away => Given::AgentAway,
            (0, true) => Given::Share(0.5),
            _ => Given::Share(1.0),
        }
    };
    let change = |fact: &str, before: &str, after: &str, seen: (u64, u64)| HostChange {
        host: "node0".into(),
        fact: fact.into(),
        before: Some(before.into()),
        after: Some(after.into()),
        last_before: UnixMillis(seen.0),
        first_after: UnixMillis(seen.1),
    };
    // A kernel that was tried before, and a link that was lost while the host was away.
    let tried = change("kernel", "6.1", "5.14", (at_period(3), at_period(4)));
    let down = change("operstate", "up", "down", (at_period(9), at_period(12)));
    world.run(0, 13, given);
    world
        .alerts
        .handle_host_changes(UnixMillis(at_period(13)), &[tried, down]);
    world.run(13, 2, given);
    let over = world.only();
    assert_eq!(
        (over.kind, over.state),
        (AlertKind::Silent, AlertState::Resolved)
    );
    let (before, after) = (at_period(12), over.changed.0 + 1_000);
    let kernel = change("kernel", "5.14", "6.1", (before, after));
    let up = change("operstate", "down", "up", (before, after));
    // A package that was updated meanwhile.
    let image = change("storage.devices.loop3.size", "1", "2", (before, after));
    let mounted = change(
        "storage.mounts./snap/core/2.kind",
        "1",
        "2",
        (before, after),
    );
    world
        .alerts
        .handle_host_changes(UnixMillis(after), &[kernel.clone(), up, image, mounted]);
    world.run(15, 2, given);
    let fired = world.fired();
    let last = fired.iter().find(|alert| alert.kind == AlertKind::Slow);
    assert_eq!(last.unwrap().host_changes, [kernel]);
}

#[test]
fn what_repaired_one_pair_is_no_cause_for_another() {
    let change = |before: &str, after: &str, seen: (u64, u64)| HostChange {
        host: "node0".into(),
        fact: "tcp_wmem".into(),
        before: Some(before.into()),
        after: Some(after.into()),
        last_before: UnixMillis(seen.0),
        first_after: UnixMillis(seen.1),
    };
    // node0 > node1 is slow for two periods; node0 goes away at a moment.
    let story = |away_from: u64| {
        let mut world = World::new(3, Expected::AtLeast(BitRate(8_500_000_000)), 1);
        let given = |from: usize, to: usize, at: u64| {
            let slow = (at_period(10)..at_period(12)).contains(&at);
            match (from, to) {
                (0, 1) if slow => Given::Share(0.5),
                (0, _) if at > away_from => Given::AgentAway,
                _ => Given::Share(1.0),
            }
        };
        world.run(0, 11, given);
        let small = change("4 MiB", "8 KiB", (at_period(9), at_period(11)));
        world
            .alerts
            .handle_host_changes(UnixMillis(at_period(11)), std::slice::from_ref(&small));
        world.run(11, 2, given);
        let over = world.fired()[0].clone();
        assert_eq!(
            (over.kind, over.state, over.host_changes.as_slice()),
            (AlertKind::Slow, AlertState::Resolved, [small].as_slice())
        );
        let after = over.changed.0 + 1_000;
        let large = change("8 KiB", "4 MiB", (at_period(11), after));
        world
            .alerts
            .handle_host_changes(UnixMillis(after), &[large]);
        world.run(13, 6, given);
        (over.changed.0, world)
    };
    let (over, _) = story(u64::MAX);
    let (_, world) = story(over);
    let fired = world.fired();
    let silent = fired.iter().filter(|alert| alert.kind == AlertKind::Silent);
    let changes: Vec<_> = silent.map(|alert| &alert.host_changes).collect();
    assert!(!changes.is_empty(), "{}", brief(&fired));
    assert!(
        changes.iter().all(|changes| changes.is_empty()),
        "{changes:?}"
    );
}

/// Tests in turn have one of two findings: each of these gets one counter-test, whose outcome stays with it.
#[test]
fn each_finding_of_a_fault_has_one_counter_test() {
    let mut world = World::new(2, Expected::AtLeast(BitRate(20_000_000_000)), 1);
    let pair = PairName {
        task: "mesh".into(),
        from: "node0".into(),
        to: "node1".into(),
    };
    world.run(0, 1, |_, _, _| Given::Share(1.0));
    let shown = AlertCounterTest {
        ended: UnixMillis(at_period(1)),
        verdict: Verdict::Confirmed,
        sentence: "confirmed by sockets of 8 MB".into(),
    };
    let now = UnixMillis(at_period(1));
    world
        .alerts
        .handle_counter_test(now, &pair, "receive-window", shown.clone());
    world.finding = "path-full";
    world.run(1, 1, |_, _, _| Given::Share(1.0));
    world.finding = "receive-window";
    world.run(2, 1, |_, _, _| Given::Share(1.0));
    let of_pair = world.counter_tests.iter().filter(|(one, _)| *one == pair);
    let asked: Vec<&str> = of_pair.map(|(_, finding)| finding.as_str()).collect();
    assert_eq!(asked, ["receive-window", "path-full"]);
    let alert = world.fired().into_iter().find(|alert| {
        let mut inside = alert.pairs.iter();
        inside.any(|one| (&one.from, &one.to) == (&pair.from, &pair.to))
    });
    let finding = alert.unwrap().finding.as_ref().unwrap();
    assert_eq!(
        (finding.id.as_str(), &finding.counter_test),
        ("receive-window", &Some(shown))
    );
}

#[test]
fn what_leaves_the_plan_ends() {
    let mut world = World::new(2, Expected::Auto, 2);
    world.run(0, 6, |from, _, _| {
        if from == 0 {
            Given::Fails
        } else {
            Given::Share(1.0)
        }
    });
    assert_eq!(world.only().state, AlertState::Firing);
    world
        .alerts
        .handle_plan(UnixMillis(at_period(6)), &plan(0, Expected::Auto));
    world.drain();
    assert!(world.alerts.open().is_empty());
    assert_eq!(world.only().state, AlertState::Resolved);
    assert_eq!(world.alerts.poll_timeout(), None);
}
