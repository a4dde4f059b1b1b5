//! A hub that dies and starts again leaves no test without a row, and makes up none.

use linerate_model::watch::{NotRun, RunClass, UnixMillis, WatchOutcome, WatchRun};
use linerate_watch::dispatch::{Dispatcher, OpenPair, Progress};
use linerate_watch::simulation::{Conditions, Event, Happening, Simulated, simulate};
use linerate_watch::watched::{Sampling, Task, Watched};

use crate::plans::{HOUR, MINUTE, SECOND, hosts, plan, task};

/// A whole hour.
const FROM: UnixMillis = UnixMillis(1_763_942_400_000);
const PERIOD: u64 = 3 * MINUTE;

/// A test at the beginning of every third minute.
fn fixed(pairs: &[(usize, usize)]) -> Watched {
    let mut task: Task = task("t", pairs, PERIOD);
    task.schedule.sampling = Sampling::Fixed;
    plan(hosts(3), vec![task])
}

fn at(millis: u64, what: Happening) -> Event {
    let at = FROM.plus_millis(millis);
    Event { at, what }
}

fn dies(from: u64, until: u64, keeps_leases: bool) -> Event {
    let until = FROM.plus_millis(until);
    let what = Happening::HubAway {
        until,
        keeps_leases,
    };
    at(from, what)
}

fn simulated(watched: &Watched, events: Vec<Event>, span: u64) -> Simulated {
    let conditions = Conditions {
        events,
        ..Conditions::default()
    };
    let simulated = simulate(watched, &conditions, FROM, FROM.plus_millis(span));
    assert!(simulated.twice.is_empty());
    simulated
}

/// In which periods regular tests of the pair to this host were due.
fn periods(rows: &[WatchRun], to: &str) -> Vec<u64> {
    let regular = |row: &&WatchRun| row.class == RunClass::Regular && row.to == *to;
    let rows = rows.iter().filter(regular);
    rows.map(|row| row.due.since(FROM) / PERIOD).collect()
}

fn is_hub_away(row: &WatchRun) -> bool {
    let reason = NotRun::HubAway;
    matches!(&row.outcome, WatchOutcome::NotRun { reason: found, .. } if *found == reason)
}

/// The hub dies during a test whose agent never reports, and is away for an hour. Then it waits a minute for the report, with the
/// rows of that hour behind it, and dies in that minute.
#[test]
fn rows_that_waited_for_a_report_when_the_hub_died_again_are_not_lost() {
    for (tests_before, keeps_leases) in [(0, false), (0, true), (5, false), (5, true)] {
        let begin = tests_before * PERIOD;
        let back = begin + HOUR;
        let events = vec![
            at(begin + 2 * SECOND, Happening::Lost(0)),
            dies(begin + 5 * SECOND, back, true),
            dies(back + 30 * SECOND, back + 40 * SECOND, keeps_leases),
        ];
        let simulated = simulated(&fixed(&[(0, 1)]), events, 3 * HOUR);
        let all: Vec<u64> = (0..60).collect();
        let case = format!("{tests_before} tests before, leases kept: {keeps_leases}");
        assert_eq!(periods(&simulated.rows, "h1"), all, "{case}");
    }
}

#[test]
fn a_pair_that_is_new_at_a_restart_has_no_test_of_before() {
    let (dead, back) = (HOUR + 5 * SECOND, HOUR + 20 * MINUTE);
    let more = Happening::Plan(Box::new(fixed(&[(0, 1), (0, 2)])));
    for keeps_leases in [false, true] {
        let events = vec![
            dies(dead, back, keeps_leases),
            at(dead + MINUTE, more.clone()),
        ];
        let simulated = simulated(&fixed(&[(0, 1)]), events, 2 * HOUR);
        assert_eq!(
            periods(&simulated.rows, "h1"),
            (0..40).collect::<Vec<u64>>()
        );
        assert_eq!(
            periods(&simulated.rows, "h2"),
            (27..40).collect::<Vec<u64>>()
        );
        let mut away = simulated.rows.iter().filter(|row| is_hub_away(row));
        assert!(away.all(|row| row.to == *"h1"));
    }
}

#[test]
fn a_row_for_several_tests_is_for_all_that_have_none() {
    let events = vec![dies(MINUTE, 170 * MINUTE, false)];
    let rows = simulated(&fixed(&[(0, 1)]), events, 4 * HOUR).rows;
    let found = periods(&rows, "h1");
    assert_eq!(found[0], 0);
    // Those of the latest 48 periods have a row each, those before one together.
    assert_eq!(found[1..], (8..80).collect::<Vec<u64>>());
    let WatchOutcome::NotRun { why, .. } = &rows[1].outcome else {
        panic!("it ran: {:?}", rows[1]);
    };
    assert!(why.contains("this row is for 8 tests"), "{why}");
}

#[test]
fn progress_names_the_pairs_with_tests_that_have_no_row() {
    let mut dispatcher = Dispatcher::new(fixed(&[(0, 1), (0, 2)]), 1, FROM.plus_millis(1));
    let open = |to: &str, since: u64| {
        let since = FROM.plus_millis(since);
        OpenPair::new("t".into(), "h0".into(), to.into(), since)
    };
    let progress = |at: u64, open: Vec<OpenPair>| Progress {
        at: FROM.plus_millis(at),
        open,
        fresh: Vec::new(),
    };
    // None was due yet.
    let first = dispatcher.progress();
    assert_eq!((first.open.len(), first.fresh.len()), (0, 2));
    dispatcher.handle_tick(FROM.plus_millis(PERIOD));
    let both = vec![open("h1", PERIOD), open("h2", PERIOD)];
    assert_eq!(dispatcher.progress(), progress(PERIOD, both));
    // The agents are away, and each test has a row when the next one is due.
    let later = 2 * PERIOD - SECOND;
    dispatcher.handle_tick(FROM.plus_millis(later));
    assert_eq!(dispatcher.progress(), progress(later, Vec::new()));
}
