//! The dispatcher, an event at a time, and whole days of large plans.

use linerate_model::units::{BitRate, Bytes};
use linerate_model::watch::{
    NotRun, RunClass, RunId, UnixMillis, WatchFigures, WatchOutcome, WatchRun,
};
use linerate_watch::dispatch::{
    Action, Dispatcher, End, Ending, Finished, GRACE_MILLIS, Lease, OVERHEAD_MILLIS, OpenPair,
    PairMemory, Progress, Request, RequestError, Resumption, Taken,
};
use linerate_watch::simulation::{Conditions, Event, Happening, overlaps, simulate};
use linerate_watch::watched::{Duplex, Maintenance, Reach, Sampling, Segment, Task, Watched};

use crate::plans::{DAY, GIGABIT, HOUR, MINUTE, SECOND, host, hosts, like_esnet, mesh, plan, task};

const NOW: UnixMillis = UnixMillis(1_764_000_000_123);
const BOOKED: u64 = 10 * SECOND + OVERHEAD_MILLIS;

/// Tests that are due at the beginning of each period.
fn fixed(task: Task) -> Task {
    let mut task = task;
    task.schedule.sampling = Sampling::Fixed;
    task
}

fn connected(watched: Watched, now: UnixMillis) -> Dispatcher {
    let hosts = watched.hosts.len();
    let mut dispatcher = Dispatcher::new(watched, 1, now);
    for host in 0..hosts {
        dispatcher.handle_connected(now, host);
    }
    dispatcher
}

#[derive(Default)]
struct Actions {
    leases: Vec<Lease>,
    rows: Vec<WatchRun>,
    checks: Vec<usize>,
    cancelled: usize,
}

fn taken(dispatcher: &mut Dispatcher) -> Actions {
    let mut taken = Actions::default();
    while let Some(action) = dispatcher.poll_action() {
        match action {
            Action::Start { lease, .. } => taken.leases.push(lease),
            Action::Row(row) => taken.rows.push(*row),
            Action::Check { host, .. } => taken.checks.push(host),
            Action::Cancel { .. } => taken.cancelled += 1,
        }
    }
    taken
}

/// Ticks whenever the dispatcher wants it, until there is something to do.
fn wait(dispatcher: &mut Dispatcher) -> (UnixMillis, Actions) {
    for _ in 0..10_000 {
        let at = dispatcher.poll_timeout().unwrap();
        dispatcher.handle_tick(at);
        let taken = taken(dispatcher);
        if !(taken.leases.is_empty() && taken.rows.is_empty() && taken.checks.is_empty()) {
            return (at, taken);
        }
    }
    panic!("the dispatcher wants nothing");
}

fn measured(lease: &Lease, at: UnixMillis) -> Finished {
    Finished {
        started: Some(lease.granted),
        ended: at,
        bytes: Some(Bytes(1_000_000)),
        ending: Ending::Measured(WatchFigures {
            goodput_bps: 8e9,
            ..WatchFigures::default()
        }),
    }
}

fn failed(lease: &Lease, at: UnixMillis, end: Option<End>) -> Finished {
    Finished {
        ending: Ending::Failed {
            stage: "connect".into(),
            why: "connection refused".into(),
            at: end,
        },
        started: None,
        ..measured(lease, at)
    }
}

fn not_run(row: &WatchRun) -> (NotRun, &str) {
    let WatchOutcome::NotRun { reason, why, .. } = &row.outcome else {
        panic!("it ran: {row:?}");
    };
    (*reason, why)
}

#[test]
fn a_test_gets_a_lease_when_it_is_due_and_a_row_when_it_ends() {
    let mut dispatcher = connected(plan(hosts(2), vec![task("t", &[(0, 1)], HOUR)]), NOW);
    let (at, first) = wait(&mut dispatcher);
    let lease = &first.leases[0];
    assert_eq!((lease.due, lease.granted), (at, at));
    assert_eq!(lease.expiry, at.plus_millis(BOOKED + GRACE_MILLIS));
    assert_eq!((lease.id.epoch, lease.id.grant), (NOW.0, 1));
    assert_eq!(lease.client, End::From);
    assert_eq!(dispatcher.leases().count(), 1);
    let end = at.plus_millis(11_000);
    assert_eq!(
        dispatcher.handle_finished(end, lease.id, measured(lease, end)),
        Taken::Yes
    );
    let rows = taken(&mut dispatcher).rows;
    assert_eq!(
        (rows[0].id, rows[0].due, rows[0].ended),
        (lease.run, at, end)
    );
    assert!(
        matches!(&rows[0].outcome, WatchOutcome::Measured(figures) if figures.goodput_bps > 7e9)
    );
    assert_eq!(
        dispatcher.handle_finished(end, lease.id, measured(lease, end)),
        Taken::Late
    );
    assert!(taken(&mut dispatcher).rows.is_empty(), "no second row");
}

#[test]
fn a_lease_that_nobody_answers_expires_and_frees_its_hosts() {
    let watched = plan(hosts(2), vec![fixed(task("t", &[(0, 1), (1, 0)], HOUR))]);
    let mut dispatcher = connected(watched, NOW);
    let (_, first) = wait(&mut dispatcher);
    let lease = &first.leases[0];
    assert_eq!(first.leases.len(), 1, "the hosts are in use");
    let (at, then) = wait(&mut dispatcher);
    assert_eq!(at, lease.expiry);
    assert!(
        matches!(&then.rows[0].outcome, WatchOutcome::Failed { stage, .. } if stage == "report")
    );
    assert_eq!((then.rows[0].id, then.cancelled), (lease.run, 1));
    assert_eq!(
        (&then.leases[0].from, &then.leases[0].to),
        (&lease.to, &lease.from)
    );
    assert_eq!(
        dispatcher.handle_finished(at, lease.id, measured(lease, at)),
        Taken::Late
    );
}

#[test]
fn a_missed_test_names_who_held_what_for_how_long() {
    // Eleven tests of ten minutes want the same host within an hour.
    let mut long = task("long", &mesh(4), HOUR);
    long.load_millis = 10 * MINUTE;
    let watched = plan(hosts(4), vec![fixed(long)]);
    let conditions = Conditions::default();
    let from = UnixMillis(NOW.0 / HOUR * HOUR);
    let simulated = simulate(&watched, &conditions, from, from.plus_millis(HOUR));
    assert_eq!(simulated.figures.due, 12);
    assert_eq!(simulated.figures.measured, 10, "{:?}", simulated.figures);
    for row in &simulated.rows {
        if let WatchOutcome::NotRun { reason, why, held } = &row.outcome {
            assert_eq!(*reason, NotRun::Missed);
            assert!(why.contains("long h") && why.contains(" min"), "{why}");
            let longest = &held[0];
            assert!(longest.resource == row.from || longest.resource == row.to);
            assert_eq!(longest.millis, 10 * MINUTE + OVERHEAD_MILLIS);
            assert!(held.len() >= 5 && held.is_sorted_by(|a, b| a.millis >= b.millis));
        }
    }
}

#[test]
fn confirming_tests_never_keep_another_pair_from_being_tested_twice_in_a_row() {
    // A host is tested to confirm without a break. A regular test of its other pair can wait for longer than one of these takes.
    let period = 24 * SECOND;
    let every = |name, pair, period| fixed(task(name, &[pair], period));
    let tasks = vec![every("u", (0, 1), period), every("t", (1, 2), 100 * HOUR)];
    let mut dispatcher = connected(plan(hosts(3), tasks), NOW);
    let confirm = |number| Request {
        from: "h1".into(),
        to: "h2".into(),
        class: RunClass::Confirm,
        number,
        ..on_demand(NOW, 12 * HOUR)
    };
    for number in 0..400 {
        dispatcher.handle_request(NOW, &confirm(number)).unwrap();
    }
    let mut outcomes = Vec::new();
    let mut then = taken(&mut dispatcher);
    while outcomes.len() < 40 {
        let rows = then.rows.iter().filter(|row| row.task.as_str() == "u");
        outcomes.extend(rows.map(|row| row.started.is_some()));
        let running = dispatcher.leases().next().cloned();
        then = if let Some(lease) = running {
            let end = lease.granted.plus_millis(BOOKED);
            // What was missed meanwhile has its row first.
            while let Some(at) = dispatcher.poll_timeout().filter(|at| *at < end) {
                dispatcher.handle_tick(at);
            }
            dispatcher.handle_finished(end, lease.id, measured(&lease, end));
            taken(&mut dispatcher)
        } else {
            wait(&mut dispatcher).1
        };
    }
    let twice = outcomes.windows(2).any(|two| two == [false, false]);
    assert!(!twice, "{outcomes:?}");
    assert!(outcomes.contains(&false), "{outcomes:?}");
}

#[test]
fn a_lost_agent_is_the_reason_of_the_tests_that_were_due_meanwhile() {
    let watched = plan(hosts(3), vec![task("t", &[(0, 1), (2, 1), (0, 2)], HOUR)]);
    let from = UnixMillis(NOW.0 / HOUR * HOUR);
    let lost = Event {
        at: from,
        what: Happening::Lost(1),
    };
    let conditions = Conditions {
        events: vec![lost],
        ..Conditions::default()
    };
    let simulated = simulate(&watched, &conditions, from, from.plus_millis(5 * HOUR));
    assert_eq!((simulated.rows.len(), simulated.figures.measured), (15, 5));
    let away: Vec<_> = simulated.rows.iter().filter(|row| row.to == "h1").collect();
    assert_eq!(away.len(), 10);
    for row in away {
        let (reason, why) = not_run(row);
        assert_eq!(reason, NotRun::AgentAway);
        assert!(
            why.starts_with("the agent of h1 was not connected for"),
            "{why}"
        );
    }
}

#[test]
fn a_result_of_an_agent_that_comes_back_before_its_lease_expires_counts() {
    let mut dispatcher = connected(plan(hosts(2), vec![task("t", &[(0, 1)], HOUR)]), NOW);
    let (at, first) = wait(&mut dispatcher);
    let lease = &first.leases[0];
    dispatcher.handle_started(at, lease.id);
    dispatcher.handle_lost(at.plus_millis(1_000), 1);
    assert!(taken(&mut dispatcher).rows.is_empty());
    let back = at.plus_millis(12_000);
    dispatcher.handle_connected(back, 1);
    dispatcher.handle_finished(back, lease.id, measured(lease, back));
    assert!(matches!(
        taken(&mut dispatcher).rows[0].outcome,
        WatchOutcome::Measured(_)
    ));
}

#[test]
fn a_test_that_does_not_count_forgets_no_failures() {
    let mut dispatcher = connected(plan(hosts(2), vec![task("t", &[(0, 1)], HOUR)]), NOW);
    let mut classes = Vec::new();
    while classes.len() < 5 {
        let (at, then) = wait(&mut dispatcher);
        let Some(lease) = then.leases.first() else {
            continue;
        };
        classes.push(lease.class);
        let mut finished = failed(lease, at, None);
        if classes.len() == 3 {
            finished.ending = Ending::Invalid {
                why: "the hub stopped it".into(),
            };
        }
        dispatcher.handle_finished(at, lease.id, finished);
        drop(taken(&mut dispatcher));
    }
    // A first failure would be followed by a confirming test.
    assert_eq!(classes[1], RunClass::Confirm);
    assert_eq!(classes[2..], [RunClass::Regular; 3]);
}

#[test]
fn a_test_that_fails_is_tried_again_and_then_less_and_less_often() {
    let mut dispatcher = connected(plan(hosts(2), vec![task("t", &[(0, 1)], HOUR)]), NOW);
    let (mut rests, mut due) = (Vec::new(), Vec::new());
    let mut last_failure: Option<UnixMillis> = None;
    let mut classes = Vec::new();
    while classes.len() < 7 {
        let (at, then) = wait(&mut dispatcher);
        for row in &then.rows {
            assert_eq!(not_run(row).0, NotRun::BackingOff);
            assert!(not_run(row).1.contains("tests in a row failed"), "{row:?}");
        }
        due.extend(then.rows);
        let Some(lease) = then.leases.first() else {
            continue;
        };
        rests.extend(last_failure.map(|failure| at.since(failure)));
        classes.push(lease.class);
        dispatcher.handle_finished(at, lease.id, failed(lease, at, None));
        last_failure = Some(at);
        due.extend(taken(&mut dispatcher).rows);
    }
    assert_eq!(
        classes[..3],
        [RunClass::Regular, RunClass::Confirm, RunClass::Regular]
    );
    assert!((30 * SECOND..90 * SECOND).contains(&rests[0]), "{rests:?}");
    for (rest, periods) in rests[1..].iter().zip([1, 2, 4, 8, 8]) {
        assert!(
            (periods * HOUR..(periods + 2) * HOUR).contains(rest),
            "{rests:?}"
        );
    }
    let mut periods: Vec<u64> = due
        .iter()
        .filter(|row| row.class == RunClass::Regular)
        .map(|row| row.due.0 / HOUR)
        .collect();
    periods.sort_unstable();
    assert!(
        periods.windows(2).all(|two| two[0] + 1 == two[1]),
        "a row for each period: {periods:?}"
    );
    // One that measures ends it.
    let outlook = |dispatcher: &Dispatcher, at| dispatcher.outlook(at, "t", "h0", "h1").unwrap();
    let at = last_failure.unwrap();
    assert_eq!(outlook(&dispatcher, at).failures_in_a_row, 7);
    assert!(outlook(&dispatcher, at).rests_until.is_some());
    let id = dispatcher
        .handle_request(at, &on_demand(at, 5 * MINUTE))
        .unwrap();
    let lease = taken(&mut dispatcher).leases.remove(0);
    assert_eq!(lease.run, id);
    dispatcher.handle_finished(at, lease.id, measured(&lease, at));
    assert_eq!(outlook(&dispatcher, at).failures_in_a_row, 0);
    assert!(outlook(&dispatcher, at).rests_until.is_none());
}

fn on_demand(at: UnixMillis, within: u64) -> Request {
    Request {
        task: "t".into(),
        from: "h0".into(),
        to: "h1".into(),
        class: RunClass::OnDemand,
        due: at,
        deadline: at.plus_millis(within),
        number: 1,
        load_millis: None,
    }
}

#[test]
fn a_host_that_fails_is_checked_and_costs_its_peers_no_slot() {
    // Everything is due to h3, which fails; the others test each other.
    let watched = plan(
        hosts(4),
        vec![task(
            "t",
            &[(0, 3), (1, 3), (2, 3), (0, 1), (1, 2), (2, 0)],
            10 * MINUTE,
        )],
    );
    let from = UnixMillis(NOW.0 / DAY * DAY);
    let at = |hours| from.plus_millis(hours * HOUR);
    let event = |at, what| Event { at, what };
    let conditions = Conditions {
        events: vec![
            event(at(1), Happening::Fails(3)),
            event(at(5), Happening::Works(3)),
        ],
        ..Conditions::default()
    };
    let simulated = simulate(&watched, &conditions, from, at(8));
    let to_h3 = |row: &&WatchRun| row.to == "h3" && row.due >= at(1) && row.due < at(4);
    let failed = |row: &&WatchRun| matches!(row.outcome, WatchOutcome::Failed { .. });
    let tried = simulated.rows.iter().filter(to_h3).filter(failed).count();
    assert!((2..=6).contains(&tried), "{tried} tests were tried");
    let reasons: Vec<_> = simulated
        .rows
        .iter()
        .filter(to_h3)
        .filter(|row| !failed(row))
        .map(not_run)
        .collect();
    assert!(
        reasons
            .iter()
            .all(|(reason, _)| *reason == NotRun::BackingOff)
    );
    assert!(
        reasons
            .iter()
            .any(|(_, why)| why.starts_with("h3 could not be reached for"))
    );
    // Half an hour is the longest between two checks.
    let late = |row: &&WatchRun| row.to == "h3" && row.due >= at(6);
    assert!(
        simulated
            .rows
            .iter()
            .filter(late)
            .all(|row| row.started.is_some())
    );
    let others = |row: &&WatchRun| row.to != "h3" && row.started.is_none();
    assert_eq!(simulated.rows.iter().filter(others).count(), 0);
}

#[test]
fn budgets_of_hosts_and_segments_hold_and_are_a_reason() {
    let mut watched = plan(hosts(3), vec![task("t", &[(0, 1), (1, 2)], 10 * MINUTE)]);
    watched.hosts[1].budget.seconds_a_day = Some(600.0);
    watched.segments.push(Segment {
        name: "uplink".into(),
        capacity: None,
        budget: linerate_watch::watched::Budget {
            bytes_a_day: Some(Bytes(20_000_000_000)),
            seconds_a_day: None,
        },
    });
    watched.hosts[0].segments.push(0);
    let from = UnixMillis(NOW.0 / DAY * DAY);
    let simulated = simulate(
        &watched,
        &Conditions::default(),
        from,
        from.plus_millis(2 * DAY),
    );
    // A full bucket and two days, at 10 s and 1.25 GB a test.
    let uses = |name: &str| {
        let of_host = simulated
            .rows
            .iter()
            .filter(|row| row.from == name || row.to == name);
        of_host.filter(|row| row.started.is_some()).count()
    };
    assert!(uses("h1") <= 180 && uses("h1") > 170, "{}", uses("h1"));
    assert!(uses("h0") <= 48, "{}", uses("h0"));
    let spent = simulated.figures.not_run[&NotRun::Budget];
    assert_eq!(spent + simulated.figures.measured, 576);
    let whys: Vec<&str> = simulated
        .rows
        .iter()
        .filter(|row| row.started.is_none())
        .map(|row| not_run(row).1)
        .collect();
    for name in ["h1", "segment uplink"] {
        let begin = format!("the budget of {name} was spent for");
        assert!(whys.iter().any(|why| why.starts_with(&begin)), "{name}");
    }
}

#[test]
fn hours_and_maintenance_are_reasons() {
    let mut watched = plan(hosts(3), vec![task("t", &[(0, 1), (1, 2)], HOUR)]);
    watched.tasks[0].schedule.hours = vec![(1_320, 360)];
    let from = UnixMillis(NOW.0 / DAY * DAY);
    watched.maintenance.push(Maintenance {
        hosts: vec![2],
        from_unix_s: from.0 / 1_000,
        until_unix_s: from.0 / 1_000 + 7_200,
        why: "new switch".into(),
    });
    let simulated = simulate(
        &watched,
        &Conditions::default(),
        from,
        from.plus_millis(DAY),
    );
    let figures = simulated.figures;
    assert_eq!((figures.due, figures.measured), (48, 14), "{figures:?}");
    assert_eq!(figures.not_run[&NotRun::Hours], 32);
    assert_eq!(figures.not_run[&NotRun::Maintenance], 2);
    let whys = simulated.rows.iter().filter(|row| row.started.is_none());
    assert!(
        whys.map(|row| not_run(row).1)
            .any(|why| why.ends_with(": new switch"))
    );
}

#[test]
fn a_busy_link_defers_a_test_and_marks_it_at_last() {
    let mut watched = plan(hosts(2), vec![task("t", &[(0, 1)], HOUR)]);
    watched.tasks[0].quiet = Some(0.1);
    let from = UnixMillis(NOW.0 / HOUR * HOUR);
    let uses = |hours: u64, share: f64| Event {
        at: from.plus_millis(hours * HOUR),
        what: Happening::Traffic(1, share),
    };
    // Others use the link for two hours.
    let conditions = Conditions {
        events: vec![uses(0, 0.5), uses(2, 0.0)],
        ..Conditions::default()
    };
    let simulated = simulate(&watched, &conditions, from, from.plus_millis(4 * HOUR));
    let with_traffic: Vec<bool> = simulated
        .rows
        .iter()
        .map(|row| matches!(&row.outcome, WatchOutcome::Measured(figures) if figures.with_traffic))
        .collect();
    assert_eq!(
        with_traffic,
        [true, true, false, false],
        "{:?}",
        simulated.rows
    );
    let late = &simulated.rows[0];
    assert!(
        late.deadline.since(late.started.unwrap()) < 3 * MINUTE,
        "it waited as long as it could"
    );
}

#[test]
fn segments_are_shared_by_rate_and_light_tests_hold_only_a_slot() {
    let mut hosts = hosts(6);
    for host in &mut hosts[..3] {
        host.segments.push(0);
    }
    for host in &mut hosts {
        host.link = Some(BitRate(10 * GIGABIT));
    }
    let across = [(0, 3), (1, 4), (2, 5)];
    let mut heavy = fixed(task("heavy", &across, HOUR));
    heavy.rate = Some(BitRate(4 * GIGABIT));
    let mut light = fixed(task("light", &across, HOUR));
    light.rate = Some(BitRate(GIGABIT / 10));
    let mut watched = plan(hosts, vec![heavy, light]);
    watched.segments.push(Segment {
        name: "uplink".into(),
        capacity: Some(BitRate(10 * GIGABIT)),
        budget: linerate_watch::watched::Budget::default(),
    });
    let starts = |watched: &Watched| {
        let mut dispatcher = connected(watched.clone(), UnixMillis(NOW.0 / HOUR * HOUR - 1));
        let (_, then) = wait(&mut dispatcher);
        let names = then.leases.iter().map(|lease| lease.task.to_string());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(starts(&watched), "heavy heavy light light light");
    watched.segments[0].capacity = None;
    assert_eq!(starts(&watched), "heavy light light light");
    watched.segments[0].capacity = Some(BitRate(12 * GIGABIT));
    assert_eq!(starts(&watched), "heavy heavy heavy light light light");
    watched.tasks[0].rate = None;
    watched.tasks[1].pairs.clear();
    assert_eq!(starts(&watched), "heavy", "as fast as the link");
}

#[test]
fn an_independent_host_sends_and_receives_at_once() {
    let mut watched = plan(
        hosts(3),
        vec![fixed(task("t", &[(0, 1), (1, 2), (1, 0)], HOUR))],
    );
    let count = |watched: &Watched| {
        let mut dispatcher = connected(watched.clone(), UnixMillis(NOW.0 / HOUR * HOUR - 1));
        wait(&mut dispatcher).1.leases.len()
    };
    assert_eq!(count(&watched), 1);
    for host in &mut watched.hosts {
        host.duplex = Duplex::Independent;
    }
    assert_eq!(count(&watched), 2);
}

#[test]
fn the_end_that_can_dial_is_the_client() {
    let mut nat = host("nat");
    nat.listens = false;
    let mut served = host("served");
    served.reach = Reach::Iperf3(5201);
    let mut hidden = nat.clone();
    hidden.name = "hidden".into();
    let hosts = vec![host("open"), nat, served, hidden];
    let pairs = [(0, 1), (1, 0), (2, 0), (2, 1), (1, 2), (1, 3)];
    let watched = plan(hosts, vec![task("t", &pairs, HOUR)]);
    let from = UnixMillis(NOW.0 / HOUR * HOUR);
    let mut dispatcher = connected(watched.clone(), from);
    let mut clients = Vec::new();
    while clients.len() < 6 {
        let (at, then) = wait(&mut dispatcher);
        for row in then.rows {
            assert_eq!(not_run(&row).0, NotRun::Unreachable);
            clients.push((row.from.to_string(), row.to.to_string(), None));
        }
        for lease in then.leases {
            clients.push((
                lease.from.to_string(),
                lease.to.to_string(),
                Some(lease.client),
            ));
            dispatcher.handle_finished(at, lease.id, measured(&lease, at));
        }
        taken(&mut dispatcher);
    }
    clients.sort_by_key(|(from, to, _)| (from.clone(), to.clone()));
    let expected = [
        ("nat", "hidden", None),
        ("nat", "open", Some(End::From)),
        ("nat", "served", Some(End::From)),
        ("open", "nat", Some(End::To)),
        ("served", "nat", Some(End::To)),
        ("served", "open", Some(End::To)),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(from, to, end)| (from.to_owned(), to.to_owned(), end))
        .collect();
    assert_eq!(clients, expected);
}

#[test]
fn a_host_that_runs_something_else_gets_the_test_later() {
    let watched = plan(hosts(2), vec![task("t", &[(0, 1)], HOUR)]);
    let from = UnixMillis(NOW.0 / HOUR * HOUR);
    let busy = |until| Conditions {
        events: vec![Event {
            at: from,
            what: Happening::Busy(1, until),
        }],
        ..Conditions::default()
    };
    let until = from.plus_millis(3 * HOUR + HOUR / 2);
    let simulated = simulate(&watched, &busy(until), from, from.plus_millis(5 * HOUR));
    assert_eq!(simulated.rows.len(), 5);
    for row in &simulated.rows[..3] {
        let WatchOutcome::NotRun {
            reason: NotRun::Missed,
            held,
            why,
        } = &row.outcome
        else {
            panic!("{row:?}");
        };
        assert!(why.starts_with("h1 ran something else for"), "{why}");
        assert_eq!((held[0].resource.as_str(), held.len()), ("h1", 1));
    }
    assert!(simulated.rows[4].started.is_some());
}

#[test]
fn requests_are_checked_and_are_one_test_however_often_they_are_sent() {
    let mut dispatcher = connected(plan(hosts(2), vec![task("t", &[(0, 1)], HOUR)]), NOW);
    let request = on_demand(NOW, MINUTE);
    let id = dispatcher.handle_request(NOW, &request).unwrap();
    assert_eq!(dispatcher.handle_request(NOW, &request), Ok(id));
    let then = taken(&mut dispatcher);
    assert_eq!((then.leases.len(), then.leases[0].run), (1, id));
    let mut other = |change: &dyn Fn(&mut Request)| {
        let mut other = request.clone();
        change(&mut other);
        dispatcher.handle_request(NOW, &other)
    };
    assert!(matches!(
        other(&|r| r.to = "x".into()),
        Err(RequestError::UnknownPair { .. })
    ));
    assert_eq!(
        other(&|r| r.class = RunClass::Regular),
        Err(RequestError::Regular)
    );
    let short = RequestError::TooShort {
        needed: BOOKED,
        given: SECOND,
    };
    assert_eq!(other(&|r| r.deadline = NOW.plus_millis(SECOND)), Err(short));
}

#[test]
fn a_new_plan_drops_what_it_no_longer_has_and_keeps_the_rest() {
    let watched = plan(
        hosts(3),
        vec![fixed(task("t", &[(0, 1), (1, 0), (2, 1)], HOUR))],
    );
    let mut dispatcher = connected(watched, NOW);
    let (at, first) = wait(&mut dispatcher);
    let lease = &first.leases[0];
    let waiting: Vec<RunId> = dispatcher
        .outstanding()
        .filter(|id| *id != lease.run)
        .collect();
    assert_eq!(waiting.len(), 2);
    // The hosts change places, and the pair that runs is the only one left.
    let mut hosts = hosts(3);
    hosts.reverse();
    let place = |name: &str| hosts.iter().position(|host| host.name == name).unwrap();
    let pair = (place(&lease.from), place(&lease.to));
    let mut new = fixed(task("t", &[pair], HOUR));
    new.pairs.push(crate::plans::pair(pair.1, pair.0));
    dispatcher.handle_plan(at, plan(hosts.clone(), vec![new]));
    let then = taken(&mut dispatcher);
    let dropped: Vec<_> = then
        .rows
        .iter()
        .map(|row| (not_run(row).0, waiting.contains(&row.id)))
        .collect();
    assert!(dropped.iter().all(|row| *row == (NotRun::Dropped, true)) && !dropped.is_empty());
    assert!(then.leases.is_empty(), "what runs goes on");
    let end = at.plus_millis(11_000);
    assert_eq!(
        dispatcher.handle_finished(end, lease.id, measured(lease, end)),
        Taken::Yes
    );
    let then = taken(&mut dispatcher);
    assert_eq!((then.rows.len(), then.rows[0].id), (1, lease.run));
    assert_eq!(then.leases.len(), 2 - dropped.len(), "what waited starts");
    // The same plan again changes nothing.
    let next = dispatcher.outlook(end, "t", &lease.from, &lease.to);
    let same = dispatcher.watched().clone();
    dispatcher.handle_plan(end, same);
    assert_eq!(dispatcher.outlook(end, "t", &lease.from, &lease.to), next);
    assert!(taken(&mut dispatcher).rows.is_empty());
}

#[test]
fn tests_that_were_due_while_the_hub_was_away_have_rows_with_the_ids_that_they_would_have_had() {
    let watched = plan(hosts(2), vec![task("t", &[(0, 1)], HOUR)]);
    let from = UnixMillis(NOW.0 / DAY * DAY);
    let at = |hours: u64| from.plus_millis(hours * HOUR);
    let whole = simulate(&watched, &Conditions::default(), from, at(24));
    let hub_away = Happening::HubAway {
        until: at(15),
        keeps_leases: true,
    };
    let conditions = Conditions {
        events: vec![Event {
            at: at(5),
            what: hub_away,
        }],
        ..Conditions::default()
    };
    let broken = simulate(&watched, &conditions, from, at(24));
    let ids = |rows: &[WatchRun]| -> Vec<RunId> { rows.iter().map(|row| row.id).collect() };
    assert_eq!(ids(&broken.rows), ids(&whole.rows));
    assert!(broken.twice.is_empty());
    assert_eq!(broken.figures.not_run, [(NotRun::HubAway, 10)].into());
    assert_eq!(not_run(&broken.rows[5]).1, "the hub did not run for 10 h");
}

#[test]
fn a_long_absence_is_folded() {
    let watched = plan(hosts(2), vec![task("t", &[(0, 1)], HOUR)]);
    let memory = |last_due| PairMemory {
        task: "t".into(),
        from: "h0".into(),
        to: "h1".into(),
        last_due,
        failures_in_a_row: 0,
        latest: None,
    };
    let rows = |away: u64, memory: PairMemory| {
        let past = Resumption {
            seen: UnixMillis(NOW.0 - away),
            progress: Progress {
                at: UnixMillis(NOW.0 - away),
                ..Progress::default()
            },
            pairs: vec![memory],
            ..Resumption::default()
        };
        let mut dispatcher = Dispatcher::resume(watched.clone(), 1, NOW, &past);
        taken(&mut dispatcher).rows
    };
    let some = rows(100 * HOUR, memory(None));
    assert!((48..=50).contains(&some.len()), "{}", some.len());
    let (reason, why) = not_run(&some[0]);
    assert_eq!(reason, NotRun::HubAway);
    let count: usize = why
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .max()
        .unwrap();
    assert!(
        (98..=101).contains(&(count + some.len() - 1)),
        "{why}, {}",
        some.len()
    );
    assert!(some.windows(2).all(|two| two[0].due < two[1].due));
    // If only the first row was archived, the next restart goes on after it.
    let again = rows(100 * HOUR, memory(Some(some[0].due)));
    let ids = |rows: &[WatchRun]| -> Vec<RunId> { rows.iter().map(|row| row.id).collect() };
    assert_eq!(ids(&again), ids(&some[1..]));
    // Ten years: a year's tests, and no longer than for a week.
    let ten_years = rows(3_650 * DAY, memory(None));
    let why = not_run(&ten_years[0]).1;
    let count: usize = why
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .filter(|count| *count != 3_650)
        .max()
        .unwrap();
    assert!((8_700..=8_760).contains(&count), "{why}");
}

/// What is known of a hub that was seen last when a test from h0 to h1 was due and had no row.
fn with_open(task: &str, seen: UnixMillis) -> Resumption {
    let open = OpenPair::new(task.into(), "h0".into(), "h1".into(), seen);
    Resumption {
        seen,
        progress: Progress {
            at: seen,
            open: vec![open],
            fresh: Vec::new(),
        },
        ..Resumption::default()
    }
}

#[test]
fn a_hub_that_does_not_know_its_leases_waits_until_they_are_over() {
    let watched = plan(hosts(2), vec![fixed(task("t", &[(0, 1)], HOUR))]);
    let seen = UnixMillis(NOW.0 / HOUR * HOUR);
    let past = with_open("t", seen);
    let now = past.seen.plus_millis(MINUTE);
    let mut dispatcher = Dispatcher::resume(watched, 1, now, &past);
    dispatcher.handle_connected(now, 0);
    dispatcher.handle_connected(now, 1);
    let (at, then) = wait(&mut dispatcher);
    assert_eq!(then.leases[0].due, past.seen);
    assert_eq!(at, now.plus_millis(BOOKED + GRACE_MILLIS));
}

#[test]
fn an_open_test_of_a_pair_that_left_the_plan_meanwhile_has_one_row() {
    let seen = UnixMillis(NOW.0 / HOUR * HOUR);
    let past = Resumption {
        leases: Some(Vec::new()),
        ..with_open("old", seen)
    };
    let rows = |past: &Resumption| {
        let watched = plan(hosts(2), vec![fixed(task("t", &[(0, 1)], HOUR))]);
        let now = seen.plus_millis(MINUTE);
        let mut dispatcher = Dispatcher::resume(watched, 1, now, past);
        let actions = std::iter::from_fn(|| dispatcher.poll_action());
        let rows = actions.filter_map(|action| match action {
            Action::Row(run) if run.task == "old" => Some(*run),
            _ => None,
        });
        rows.collect::<Vec<WatchRun>>()
    };
    let found = rows(&past);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(not_run(&found[0]).0, NotRun::Dropped);
    // The next start knows that row, and makes the same one if it was lost.
    assert_eq!(rows(&past)[0].id, found[0].id);
    let memory = PairMemory {
        task: "old".into(),
        from: "h0".into(),
        to: "h1".into(),
        last_due: Some(seen),
        failures_in_a_row: 0,
        latest: None,
    };
    let past = Resumption {
        pairs: vec![memory],
        ..past
    };
    assert_eq!(rows(&past), []);
}

#[test]
fn a_day_of_a_plan_like_esnets_leaves_out_at_most_one_test_in_a_thousand() {
    let watched = like_esnet();
    let pairs: usize = watched.tasks.iter().map(|task| task.pairs.len()).sum();
    assert_eq!((pairs, watched.tasks.len()), (5_040, 53));
    let from = UnixMillis(NOW.0 / DAY * DAY);
    let simulated = simulate(
        &watched,
        &Conditions::default(),
        from,
        from.plus_millis(DAY),
    );
    let figures = &simulated.figures;
    assert_eq!(figures.due, 4 * 5_040);
    assert!(figures.not_run_share() <= 0.001, "{figures:?}");
    assert_eq!((figures.overlaps, simulated.twice.len()), (0, 0));
    let (_, busiest) = figures.busiest.as_ref().unwrap();
    assert!((0.45..0.55).contains(busiest), "{figures:?}");
    assert!(figures.wait_p99_millis < 2 * MINUTE, "{figures:?}");
    for row in &simulated.rows {
        if let WatchOutcome::NotRun { reason, held, .. } = &row.outcome {
            assert!(*reason == NotRun::Missed && !held.is_empty(), "{row:?}");
        }
    }
}

#[test]
fn a_day_of_a_thousand_hosts_with_twelve_tests_each() {
    let pairs: Vec<(usize, usize)> = (0..1_000)
        .flat_map(|from| (1..=12).map(move |k| (from, (from + k * k * 5 + k) % 1_000)))
        .collect();
    let watched = plan(hosts(1_000), vec![task("t", &pairs, DAY)]);
    let from = UnixMillis(NOW.0 / DAY * DAY);
    let simulated = simulate(
        &watched,
        &Conditions::default(),
        from,
        from.plus_millis(DAY),
    );
    assert_eq!(
        (simulated.figures.due, simulated.rows.len()),
        (12_000, 12_000)
    );
    assert!(
        simulated.figures.measured >= 11_990,
        "{:?}",
        simulated.figures
    );
    assert_eq!(overlaps(&watched, &simulated.rows), []);
}

#[test]
fn a_plan_that_cannot_fit_still_has_a_row_for_each_test() {
    let mut watched = like_esnet();
    for task in &mut watched.tasks {
        task.schedule.period_millis = HOUR;
        task.schedule.slip_millis = None;
    }
    let from = UnixMillis(NOW.0 / DAY * DAY);
    let until = from.plus_millis(2 * HOUR);
    let simulated = simulate(&watched, &Conditions::default(), from, until);
    let figures = &simulated.figures;
    assert_eq!((figures.due, simulated.rows.len()), (10_080, 10_080));
    assert_eq!((figures.overlaps, simulated.twice.len()), (0, 0));
    let missed = figures.not_run[&NotRun::Missed];
    assert!(
        missed > 1_000 && figures.measured + missed == 10_080,
        "{figures:?}"
    );
    let (_, busiest) = figures.busiest.as_ref().unwrap();
    assert!(
        *busiest > 0.9,
        "the busiest host hardly pauses: {figures:?}"
    );
    for row in &simulated.rows {
        if let WatchOutcome::NotRun { held, .. } = &row.outcome {
            let ours = |name: &str| name == row.from.as_str() || name == row.to.as_str();
            assert!(
                !held.is_empty() && held.iter().all(|held| ours(&held.resource)),
                "{row:?}"
            );
        }
    }
}

#[test]
fn overlaps_are_found() {
    let watched = plan(hosts(3), vec![task("t", &[(0, 1), (1, 2)], HOUR)]);
    let from = UnixMillis(NOW.0 / DAY * DAY);
    let mut rows = simulate(
        &watched,
        &Conditions::default(),
        from,
        from.plus_millis(HOUR),
    )
    .rows;
    assert_eq!(overlaps(&watched, &rows), []);
    rows[1].started = rows[0].started;
    let found = overlaps(&watched, &rows);
    assert_eq!((found.len(), found[0].of.as_str()), (1, "h1"));
}

#[test]
fn what_comes_next_of_all_pairs_is_what_comes_next_of_each() {
    let pairs = mesh(4);
    let watched = plan(
        hosts(4),
        vec![fixed(task("t", &pairs, HOUR)), task("u", &pairs, DAY)],
    );
    let mut dispatcher = connected(watched, NOW);
    // All tests of a task are due at once: some run, and the others wait.
    let (at, then) = wait(&mut dispatcher);
    assert!(!then.leases.is_empty());
    let all = dispatcher.coming(at, usize::MAX);
    assert!(all.is_sorted_by_key(|test| test.due));
    assert!(all.iter().any(|test| test.blocked.is_some()));
    for task in ["t", "u"] {
        for &(from, to) in &pairs {
            let [from, to] = [from, to].map(|host| format!("h{host}"));
            let outlook = dispatcher.outlook(at, task, &from, &to).unwrap();
            let own = all.iter().filter(|test| {
                (&*test.task, &*test.from, &*test.to) == (task, from.as_str(), to.as_str())
            });
            let (due, waiting): (Vec<_>, Vec<_>) = own.partition(|test| test.due > at);
            let dues: Vec<UnixMillis> = due.iter().map(|test| test.due).collect();
            assert_eq!(dues, outlook.next_due.into_iter().collect::<Vec<_>>());
            let parts = |test: &linerate_watch::dispatch::Waiting| {
                (test.class, test.due, test.deadline, test.blocked.clone())
            };
            let expected: Vec<_> = outlook.waiting.iter().map(parts).collect();
            let found = waiting
                .iter()
                .map(|test| (test.class, test.due, test.deadline, test.blocked.clone()));
            assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }
    assert_eq!(dispatcher.coming(at, 5), all[..5]);
}
