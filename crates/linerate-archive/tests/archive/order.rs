//! The order in which runs come, and how often, never changes what the archive has.

use linerate_archive::{Archive, PairState, RunFilter, Stored};
use linerate_model::watch::{WatchOutcome, WatchRun};
use proptest::prelude::*;
use tempfile::tempdir;

use crate::runs::{START, failed, invalid, measured, not_run, run};

/// What an archive has, but for the order of its events.
type Content = (Vec<Stored>, Vec<PairState>);

fn content(appended: &[(WatchRun, Option<Vec<u8>>)]) -> Content {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    for (run, record) in appended {
        archive.append(run, record.as_deref()).unwrap();
    }
    let found = archive.verify().unwrap();
    assert!(found.is_sound(), "{found:?}");
    (
        archive.runs(&RunFilter::default()).unwrap(),
        archive.pairs().unwrap(),
    )
}

/// One test of a pair, with one of its outcomes. Two that measured are one test that is told of twice: they are equal.
fn appended(test: u8, outcome: u8) -> (WatchRun, Option<Vec<u8>>) {
    let conclusive = if test % 5 == 4 {
        invalid()
    } else {
        measured(f64::from(test) * 1e9)
    };
    let outcome: WatchOutcome = match outcome {
        0 => not_run(),
        1 => failed(),
        _ => conclusive,
    };
    let mut run = run(START + u64::from(test) * 1000, u128::from(test), outcome);
    run.to = ["b", "c"][usize::from(test % 2)].into();
    let record = match &run.outcome {
        WatchOutcome::Measured(_) => Some(format!("{{\"of\": {test}}}").into_bytes()),
        WatchOutcome::Failed { .. } if test.is_multiple_of(3) => {
            Some(b"{\"failed\": true}".to_vec())
        }
        _ => None,
    };
    (run, record)
}

/// Tests and their outcomes, in the order in which they come.
type Told = Vec<(u8, u8)>;

fn sequences() -> impl Strategy<Value = (Told, Told)> {
    let told = proptest::collection::vec((0..8_u8, 0..3_u8), 1..14);
    told.prop_flat_map(|told| {
        let again = proptest::collection::vec(0..told.len(), 0..6);
        let more = told.clone();
        let other = again.prop_flat_map(move |again| {
            let mut all = more.clone();
            all.extend(again.iter().map(|at| more[*at]));
            Just(all).prop_shuffle()
        });
        (Just(told), other)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn order_and_repeats_change_nothing((told, other) in sequences()) {
        let of = |told: &[(u8, u8)]| {
            let all: Vec<_> = told.iter().map(|(test, outcome)| appended(*test, *outcome)).collect();
            content(&all)
        };
        prop_assert_eq!(of(&told), of(&other));
    }
}

#[test]
fn the_state_of_a_pair_is_that_of_its_runs_however_they_came() {
    let tests = [(1, 2), (2, 1), (3, 0), (5, 1)];
    let mut states = Vec::new();
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        // Test 3 is of the pair of the odd ones as well.
        let all: Vec<_> = order
            .iter()
            .map(|at| appended(tests[*at].0 | 1, tests[*at].1))
            .collect();
        states.push(content(&all).1);
    }
    assert_eq!(states[0], states[1]);
    assert_eq!(states[0], states[2]);
    let [pair] = states.swap_remove(0).try_into().unwrap();
    assert_eq!(pair.latest.run.due.0, START + 5000);
    assert_eq!(pair.measured.unwrap().run.due.0, START + 1000);
    // Of test 3 the failure stays; test 5 failed as well.
    assert_eq!(pair.failures_in_a_row, 2);
}
