//! Random plans, random events: what always holds.

use std::collections::BTreeMap;

use linerate_model::units::{BitRate, Bytes};
use linerate_model::watch::{NotRun, RunClass, UnixMillis, WatchOutcome, WatchRun};
use linerate_watch::simulation::{
    Conditions, Event, Happening, Rates, Simulated, script, simulate,
};
use linerate_watch::watched::{Budget, Duplex, Reach, Sampling, Schedule, Segment, Task, Watched};
use proptest::prelude::*;

use crate::plans::{GIGABIT, HOUR, MINUTE, SECOND, hosts, mesh, pair, plan};

const FROM: UnixMillis = UnixMillis(1_763_942_400_000);
const SPAN: u64 = 8 * HOUR;

fn schedules() -> impl Strategy<Value = Schedule> {
    let slips = prop_oneof![Just(None), (0..HOUR).prop_map(Some)];
    let samplings = prop_oneof![
        4 => Just(Sampling::Stratified),
        1 => Just(Sampling::Poisson),
        1 => Just(Sampling::Fixed),
    ];
    let hours = prop_oneof![3 => Just(Vec::new()), 1 => Just(vec![(60, 300)])];
    (3_u64..120, slips, samplings, hours).prop_map(|(minutes, slip_millis, sampling, hours)| {
        Schedule {
            period_millis: minutes * MINUTE,
            slip_millis,
            sampling,
            hours,
        }
    })
}

fn tasks(count: usize) -> impl Strategy<Value = Vec<Task>> {
    let rates = prop_oneof![
        Just(None),
        Just(Some(BitRate(4 * GIGABIT))),
        Just(Some(BitRate(GIGABIT / 20)))
    ];
    let pairs = proptest::sample::subsequence(mesh(count), 1..=(count * (count - 1)).min(12));
    let quiet = prop_oneof![3 => Just(None), 1 => Just(Some(0.2))];
    let task = (schedules(), rates, pairs, 1_u64..60, quiet);
    let task = task.prop_map(|(schedule, rate, pairs, seconds, quiet)| Task {
        name: "t".into(),
        options: Vec::new(),
        load_millis: seconds * SECOND,
        rate,
        pairs: pairs.into_iter().map(|(from, to)| pair(from, to)).collect(),
        schedule,
        expected: None,
        quiet,
    });
    proptest::collection::vec(task, 1..4).prop_map(|mut tasks| {
        for (place, task) in tasks.iter_mut().enumerate() {
            task.name = format!("t{place}").into();
        }
        tasks
    })
}

fn plans() -> impl Strategy<Value = Watched> {
    let host = (
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(None), Just(Some(BitRate(10 * GIGABIT)))],
        0..6_u8,
        proptest::bool::weighted(0.2),
        prop_oneof![3 => Just(None), 1 => (100.0..2_000.0).prop_map(Some)],
    );
    let hosts_and_tasks = (2_usize..8)
        .prop_flat_map(move |count| (proptest::collection::vec(host.clone(), count), tasks(count)));
    let capacity = prop_oneof![Just(None), Just(Some(BitRate(9 * GIGABIT)))];
    (hosts_and_tasks, capacity, any::<bool>()).prop_map(|((kinds, tasks), capacity, limited)| {
        let mut hosts = hosts(kinds.len());
        for (host, (independent, segment, link, reach, deaf, seconds)) in
            hosts.iter_mut().zip(kinds)
        {
            if independent {
                host.duplex = Duplex::Independent;
            }
            host.segments.extend(segment.then_some(0));
            host.link = link;
            host.listens = !deaf;
            host.budget.seconds_a_day = seconds;
            host.reach = match reach {
                0 => Reach::Ssh,
                1 => Reach::Linerate(5201),
                _ => Reach::Agent,
            };
        }
        let budget = Budget {
            bytes_a_day: limited.then_some(Bytes(500_000_000_000)),
            seconds_a_day: None,
        };
        let mut watched = plan(hosts, tasks);
        watched.segments.push(Segment {
            name: "s".into(),
            capacity,
            budget,
        });
        watched
    })
}

/// The hub is away for up to 60 of the shortest periods in a row: more than 48 of them are folded into one row.
fn rates() -> impl Strategy<Value = Rates> {
    (
        0_usize..6,
        0_usize..4,
        0_usize..4,
        0_usize..4,
        MINUTE..3 * HOUR,
    )
        .prop_map(|(away, fails, busy, hub_away, longest_millis)| Rates {
            away,
            fails,
            busy,
            hub_away,
            longest_millis,
        })
}

fn conditions(watched: &Watched, seed: u64, rates: &Rates) -> Conditions {
    let span = (FROM, FROM.plus_millis(SPAN));
    let mut events = script(seed, watched.hosts.len(), span, rates);
    for event in &mut events {
        // A row for several tests counts where the last of them is due in the span.
        if let Happening::HubAway { until, .. } = &mut event.what {
            *until = span.1.min(*until);
        }
    }
    for k in 0..40 {
        let at = FROM.plus_millis(k * 11 * MINUTE);
        let host = usize::try_from(k).unwrap() % watched.hosts.len();
        let class = if k % 2 == 0 {
            RunClass::OnDemand
        } else {
            RunClass::Confirm
        };
        let asked = Happening::Asked {
            task: 0,
            pair: host,
            class,
        };
        events.push(Event { at, what: asked });
        let traffic = Happening::Traffic(host, 0.3);
        events.push(Event { at, what: traffic });
    }
    Conditions {
        seed,
        failures: 0.05,
        events,
        ..Conditions::default()
    }
}

fn run(watched: &Watched, conditions: &Conditions) -> Simulated {
    simulate(watched, conditions, FROM, FROM.plus_millis(SPAN))
}

/// For how many tests a row is: after a long absence of the hub one row is for all but the latest 48, and says so.
fn folded(row: &WatchRun) -> u64 {
    let WatchOutcome::NotRun {
        reason: NotRun::HubAway,
        why,
        ..
    } = &row.outcome
    else {
        return 1;
    };
    let tests = why.split_once("this row is for ").map(|(_, tests)| tests);
    let count = tests.and_then(|tests| tests.split(' ').next());
    count.map_or(1, |count| count.parse().unwrap())
}

/// Each pair has one row for each period that lies in the span, or a row that says that it is for several.
fn one_row_a_period(watched: &Watched, rows: &[WatchRun]) -> Result<(), TestCaseError> {
    type Pair<'a> = (&'a str, &'a str, &'a str);
    let mut found: BTreeMap<Pair<'_>, Vec<(UnixMillis, u64)>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.class == RunClass::Regular) {
        let names = (row.task.as_str(), row.from.as_str(), row.to.as_str());
        found.entry(names).or_default().push((row.due, folded(row)));
    }
    for task in &watched.tasks {
        let period = task.schedule.period_millis;
        for pair in &task.pairs {
            let (from, to) = (&watched.hosts[pair.from].name, &watched.hosts[pair.to].name);
            let mut dues = found
                .remove(&(&*task.name, &**from, &**to))
                .unwrap_or_default();
            let in_order = dues.clone();
            dues.sort_unstable();
            prop_assert_eq!(
                &dues,
                &in_order,
                "rows of a pair come in the order of their tests"
            );
            if task.schedule.sampling == Sampling::Poisson {
                let ends = [(FROM.plus_millis(SPAN), 1)];
                let edges: Vec<_> = [(FROM, 1)].into_iter().chain(dues).chain(ends).collect();
                let mut gaps = edges
                    .windows(2)
                    .map(|two| (two[1].0.since(two[0].0), two[1].1));
                prop_assert!(gaps.all(|(gap, count)| gap <= 3 * period || count > 1));
                continue;
            }
            let first = FROM.0.div_ceil(period);
            let last = (FROM.0 + SPAN) / period;
            let of_row = |(due, count): &(UnixMillis, u64)| {
                let period = due.0 / period;
                period + 1 - count..=period
            };
            let periods = dues.iter().flat_map(of_row);
            let periods: Vec<u64> = periods.filter(|k| (first..last).contains(k)).collect();
            prop_assert_eq!(periods, (first..last).collect::<Vec<_>>());
        }
    }
    prop_assert!(found.is_empty());
    Ok(())
}

/// Seconds that tests of a host used, from any moment to any other, against its budget.
fn budgets_hold(watched: &Watched, rows: &[WatchRun]) -> Result<(), TestCaseError> {
    for host in &watched.hosts {
        let Some(a_day) = host.budget.seconds_a_day else {
            continue;
        };
        let uses = rows
            .iter()
            .filter(|row| row.from == host.name || row.to == host.name);
        let mut uses: Vec<(UnixMillis, UnixMillis)> = uses
            .filter_map(|row| Some((row.started?, row.ended)))
            .collect();
        uses.sort_unstable();
        for begin in 0..uses.len() {
            let mut used = 0.0;
            for (started, ended) in &uses[begin..] {
                used += ended.since(*started) as f64 / 1e3;
                let refilled = a_day * started.since(uses[begin].0) as f64 / 86_400e3;
                // A lease that expires is booked as its load lasts, and its row says how long the hub waited.
                prop_assert!(
                    used <= a_day + refilled + 20.0,
                    "{used} of {a_day} + {refilled}"
                );
            }
        }
    }
    Ok(())
}

/// Each row says what it has to.
fn rows_are_whole(rows: &[WatchRun]) -> Result<(), TestCaseError> {
    for row in rows {
        prop_assert!(row.due <= row.ended && row.due == row.id.due());
        if let WatchOutcome::NotRun { reason, why, held } = &row.outcome {
            prop_assert!(row.started.is_none() && !why.is_empty());
            match reason {
                NotRun::Missed => {}
                // The host without an agent.
                NotRun::AgentAway => prop_assert_eq!(held.len(), 1),
                _ => prop_assert!(held.is_empty()),
            }
            prop_assert!(held.iter().all(|held| held.millis > 0));
        } else {
            let began = row.started.unwrap_or(row.ended);
            prop_assert!(row.due <= began && began <= row.ended);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn whatever_happens_each_test_has_one_row_and_none_overlap(
        watched in plans(), seed in any::<u64>(), rates in rates(),
    ) {
        let simulated = run(&watched, &conditions(&watched, seed, &rates));
        prop_assert_eq!(&simulated.twice, &[]);
        prop_assert_eq!(simulated.figures.overlaps, 0);
        one_row_a_period(&watched, &simulated.rows)?;
        rows_are_whole(&simulated.rows)?;
    }

    #[test]
    fn budgets_hold_whatever_is_asked_for(watched in plans(), seed in any::<u64>()) {
        let simulated = run(&watched, &conditions(&watched, seed, &Rates::default()));
        budgets_hold(&watched, &simulated.rows)?;
    }

    #[test]
    fn the_same_seed_gives_the_same_rows(
        watched in plans(), seed in any::<u64>(), rates in rates(),
    ) {
        let conditions = conditions(&watched, seed, &rates);
        prop_assert_eq!(run(&watched, &conditions).rows, run(&watched, &conditions).rows);
    }

    #[test]
    fn a_plan_that_changes_leaves_no_test_without_a_row(
        watched in plans(), seed in any::<u64>(), rates in rates(), at in 0..SPAN, kept in any::<u32>(),
    ) {
        let mut fewer = watched.clone();
        let mut bit = 0;
        for task in &mut fewer.tasks {
            task.pairs.retain(|_| {
                bit += 1;
                kept >> (bit % 32) & 1 == 1
            });
        }
        let mut conditions = conditions(&watched, seed, &rates);
        let what = Happening::Plan(Box::new(fewer.clone()));
        conditions.events.push(Event { at: FROM.plus_millis(at), what });
        let simulated = run(&watched, &conditions);
        prop_assert_eq!(&simulated.twice, &[]);
        prop_assert_eq!(simulated.figures.overlaps, 0);
        let kept = |row: &WatchRun| {
            fewer.tasks.iter().any(|task| task.name == row.task && task.pairs.iter().any(|pair| {
                fewer.hosts[pair.from].name == row.from && fewer.hosts[pair.to].name == row.to
            }))
        };
        let rows: Vec<WatchRun> = simulated.rows.iter().filter(|row| kept(row)).cloned().collect();
        one_row_a_period(&fewer, &rows)?;
    }
}
