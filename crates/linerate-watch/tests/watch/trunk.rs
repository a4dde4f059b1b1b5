//! Ramps over links of known capacity.

use linerate_model::mesh::{MeshOutcome, MeshTest, TrunkEnd, TrunkRamp};
use linerate_watch::rounds::Pair;
use linerate_watch::trunk::{Ramp, TrunkError};

use crate::simulated::{Dice, RATE, figures, test};

/// Runs a ramp; `outcome` makes a test's outcome of its place and how many run at once.
fn ramp(pairs: usize, outcome: impl Fn(usize, usize) -> MeshOutcome) -> TrunkRamp {
    let from: Vec<usize> = (0..pairs).collect();
    let to: Vec<usize> = (pairs..2 * pairs).collect();
    let mut ramp = Ramp::new(&from, &to).unwrap();
    let mut steps = 0;
    while let Some(step) = ramp.poll_step() {
        let tests: Vec<MeshTest> = step
            .iter()
            .enumerate()
            .map(|(place, pair)| test(*pair, outcome(place, step.len())))
            .collect();
        ramp.handle_tests(tests);
        steps += 1;
        assert!(steps <= 12);
    }
    ramp.finish(0, Vec::new(), "-t 5".into())
}

fn measured(goodput_bps: f64) -> MeshOutcome {
    let mut figures = figures(goodput_bps, Vec::new());
    figures.interval_bps = Some((0.98 * goodput_bps, 1.02 * goodput_bps));
    MeshOutcome::Measured(figures)
}

fn failed() -> MeshOutcome {
    MeshOutcome::Failed {
        stage: "connecting".into(),
        why: "refused".into(),
    }
}

#[test]
fn the_capacity_is_the_sum_where_it_stops() {
    for links in [0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0] {
        let ramp = ramp(40, |place, at_once| {
            let noise = (0.02 * Dice((place * 64 + at_once) as u64).normal()).exp();
            measured(noise * RATE * (links / at_once as f64).min(1.0))
        });
        assert_eq!(ramp.ended, TrunkEnd::Saturated, "{links}");
        let capacity = ramp.capacity_bps.unwrap() / RATE;
        assert!((capacity / links - 1.0).abs() < 0.03, "{links}: {capacity}");
        assert!(ramp.fairness.unwrap() > 0.99);
        assert_eq!(ramp.losers, [] as [usize; 0]);
    }
}

#[test]
fn a_link_that_carries_all_pairs_has_no_known_capacity() {
    let ramp = ramp(5, |_, _| measured(RATE));
    assert_eq!(
        ramp.steps
            .iter()
            .map(|step| step.tests.len())
            .collect::<Vec<_>>(),
        [1, 2, 4, 5]
    );
    assert_eq!(
        (ramp.ended, ramp.capacity_bps),
        (TrunkEnd::NoMorePairs, None)
    );
    assert_eq!(ramp.steps[3].sum_bps, Some(5.0 * RATE));
    let (low, high) = ramp.steps[3].interval_bps.unwrap();
    assert!((high - low) / (0.04 * RATE * 5.0_f64.sqrt()) - 1.0 < 1e-9);
}

#[test]
fn losers_have_less_than_half_of_the_median_or_failed() {
    let ramp = ramp(4, |place, at_once| match (place, at_once) {
        (3, 4) => failed(),
        (1, 4) => measured(0.1 * RATE),
        _ => measured(RATE / at_once as f64),
    });
    assert_eq!(ramp.ended, TrunkEnd::Saturated);
    let ramp = ramp_of_four_at_once(&[1.0, 0.1, 1.0, 1.0]);
    assert_eq!(ramp.losers, [1]);
    assert!((ramp.fairness.unwrap() - 3.1 * 3.1 / (4.0 * 3.01)).abs() < 1e-9);
}

/// One pair, two, then these shares of a rate.
fn ramp_of_four_at_once(shares: &[f64; 4]) -> TrunkRamp {
    ramp(4, |place, at_once| {
        measured(if at_once == 4 {
            shares[place] * RATE
        } else {
            RATE
        })
    })
}

#[test]
fn a_step_that_fails_ends_the_ramp_without_a_rate() {
    let ramp = ramp(8, |_, at_once| {
        if at_once >= 2 {
            failed()
        } else {
            measured(RATE)
        }
    });
    assert_eq!(ramp.ended, TrunkEnd::Failed);
    assert_eq!((ramp.capacity_bps, ramp.steps[1].sum_bps), (None, None));
    assert_eq!(ramp.losers, [0, 1]);
}

#[test]
fn uncertain_sums_go_on() {
    let wide = |place: usize, at_once: usize| {
        let mut figures = figures(RATE / at_once as f64, Vec::new());
        figures.interval_bps = (place == 0).then_some((0.0, 3.0 * RATE));
        figures.interval_bps = figures.interval_bps.or(Some((0.0, 2.0 * RATE)));
        MeshOutcome::Measured(figures)
    };
    assert_eq!(ramp(2, wide).ended, TrunkEnd::NoMorePairs);
}

#[test]
fn no_host_is_in_two_pairs() {
    let mut ramp = Ramp::new(&[0, 1, 2, 3], &[2, 3, 4, 5]).unwrap();
    assert_eq!(ramp.most(), 3);
    let mut last = Vec::new();
    while let Some(step) = ramp.poll_step() {
        last = step.to_vec();
        ramp.handle_tests(
            last.iter()
                .map(|pair| test(*pair, measured(RATE)))
                .collect(),
        );
    }
    assert_eq!(last, [Pair::new(0, 4), Pair::new(1, 5), Pair::new(2, 3)]);
    assert!(matches!(Ramp::new(&[1], &[1]), Err(TrunkError::NoPair)));
    assert!(matches!(Ramp::new(&[], &[1]), Err(TrunkError::NoPair)));
}
