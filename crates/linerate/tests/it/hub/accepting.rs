//! Somebody accepts a new level, and what retention leaves after that.

use std::time::{SystemTime, UNIX_EPOCH};

use linerate_archive::{Archive, EventId, EventKind, Retention};
use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchFigures, WatchOutcome, WatchRun};
use linerate_testing::{Need, skipped};
use serde_json::{Value, json};

use super::{Bed, Hub, PERIOD, text};
use crate::harness::beside;

/// What the pairs showed before: twice what the plan's tests are paced to.
const BEFORE: f64 = 40e6;

/// Paced tests of an undisturbed machine differ by less.
const STEADY: f64 = 1.05;

fn now() -> u64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(passed.as_millis()).unwrap()
}

/// Eight tests of each pair, the last of which ended a minute ago.
fn fill(bed: &Bed, archive: &Archive) {
    let begun = now() - 60_000 - 8 * PERIOD;
    for (pair, hash) in (0..3).zip(1..) {
        for number in 0..8 {
            let due = UnixMillis(begun + number * PERIOD);
            let run = WatchRun {
                id: RunId::of(due, hash),
                task: "ring".into(),
                from: bed.hosts[pair].as_str().into(),
                to: bed.hosts[(pair + 1) % 3].as_str().into(),
                class: RunClass::Regular,
                due,
                deadline: due.plus_millis(PERIOD),
                started: Some(due),
                ended: due.plus_millis(1_000),
                outcome: WatchOutcome::Measured(WatchFigures {
                    goodput_bps: BEFORE,
                    interval_bps: Some((BEFORE * 0.99, BEFORE * 1.01)),
                    ..WatchFigures::default()
                }),
            };
            archive.append(&run, None).unwrap();
        }
    }
}

/// Accepts what fires, until nothing is open.
fn accept_all(hub: &Hub) -> Vec<String> {
    let mut accepted = Vec::new();
    hub.wait("the end of the alerts", || {
        for alert in hub.alerts("firing") {
            let id = text(&alert["id"]).to_owned();
            let line = format!("POST /api/v1/alerts/{id}/accept");
            let (status, said) = hub.change(&line, &json!({ "by": "ann" }));
            // A pair of it may have become its own alert, or another one's, meanwhile.
            assert!([200, 400, 404].contains(&status), "{said}");
            if status == 200 {
                accepted.push(id);
            }
        }
        hub.alerts("firing").is_empty() && hub.alerts("suspect").is_empty()
    });
    accepted
}

/// The tests that a hub measured after a moment, of each pair, the oldest first.
fn measured_since(hub: &Hub, since: u64) -> Vec<Vec<RunId>> {
    let mut pairs = std::collections::BTreeMap::<String, Vec<RunId>>::new();
    for run in hub.runs().iter().rev() {
        if run["outcome"] == "measured" && run["due"].as_u64().unwrap() >= since {
            let pair = text(&run["from"]).to_owned();
            let id = text(&run["id"]).parse().unwrap();
            pairs.entry(pair).or_default().push(id);
        }
    }
    pairs.into_values().collect()
}

/// How many times the lowest rate of these tests the highest one is, of each pair in the same order.
fn spreads(hub: &Hub, since: u64) -> Vec<f64> {
    let mut pairs = std::collections::BTreeMap::<String, [f64; 2]>::new();
    for run in &hub.runs() {
        if run["outcome"] == "measured" && run["due"].as_u64().unwrap() >= since {
            let rate = run["goodput_bps"].as_f64().unwrap();
            let pair = text(&run["from"]).to_owned();
            let [least, most] = pairs.entry(pair).or_insert([rate, rate]);
            (*least, *most) = (least.min(rate), most.max(rate));
        }
    }
    pairs
        .into_values()
        .map(|[least, most]| most / least)
        .collect()
}

#[test]
fn a_level_that_was_accepted_is_the_right_one_also_after_a_restart() {
    let _beside = beside();
    let bed = Bed::new();
    bed.plan("expect = \">= 80% of baseline\"", "");
    fill(&bed, &Archive::open(&bed.folder.file("data")).unwrap());
    let begun = now();
    let mut hub = bed.start();
    hub.wait("each pair to be slow", || {
        let alerts = hub.alerts("firing");
        let pairs = alerts
            .iter()
            .flat_map(|alert| alert["pairs"].as_array().unwrap());
        pairs.filter(|pair| pair["state"] == "firing").count() == 3
    });
    let accepted = accept_all(&hub);
    assert!(!accepted.is_empty());
    let over: Vec<Value> = hub.alerts("resolved");
    let said = over
        .iter()
        .find(|alert| alert["id"] == accepted[0].as_str());
    assert_eq!(said.unwrap()["accepted"]["by"], "ann", "{over:?}");
    // Killed: what it knows is on disk.
    hub.running.kill();

    let hub = bed.start();
    let again = now();
    hub.wait("tests after the restart", || {
        let pairs = measured_since(&hub, again);
        pairs.len() == 3 && pairs.iter().all(|tests| tests.len() >= 4)
    });
    assert_eq!(hub.alerts("firing"), [] as [Value; 0]);
    let (all, late) = (measured_since(&hub, begun), measured_since(&hub, again));
    let spreads = spreads(&hub, begun);
    hub.stop();

    let archive = bed.archive();
    let events = archive.events(EventId(0), 10_000).unwrap();
    let mut acceptances = events
        .iter()
        .filter(|event| event.kind == EventKind::Accepted);
    let first = acceptances.next().unwrap();
    let (by, at) = first.by.clone().unwrap();
    assert_eq!((by.as_str(), &first.subject), ("ann", &accepted[0]));
    assert!(at.0 >= begun && at.0 <= again, "{at:?}");
    // The first tests of a level and those that an alert rests on stay, the others go.
    let rules = Retention::default();
    let later = UnixMillis(now() + rules.raw_millis + 1);
    archive.retain(later, &rules).unwrap();
    let is_kept = |id: &RunId| archive.record(*id).unwrap().is_some();
    for tests in &all {
        assert!(tests[..3].iter().all(is_kept), "{tests:?}");
    }
    for (tests, spread) in late.iter().zip(spreads) {
        // A rate that other programs of the machine changed is a level of its own.
        if spread > STEADY && tests.iter().any(is_kept) {
            let why = format!("rates of a pair differ by a factor of {spread:.2}");
            skipped(Need::QuietMachine, "records of a level that is known", &why);
            continue;
        }
        assert!(!tests.iter().any(is_kept), "{tests:?}");
    }
}
