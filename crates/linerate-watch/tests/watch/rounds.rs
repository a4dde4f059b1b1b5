//! Every asked pair exactly once, no host twice a round, few rounds.

use std::collections::BTreeSet;

use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_watch::rounds::{Asked, Costs, Pair, Schedule, schedule};
use proptest::prelude::*;

/// Checks what holds for every schedule, and returns its pairs.
fn pairs_of(schedule: &Schedule) -> BTreeSet<Pair> {
    let mut seen = BTreeSet::new();
    for round in &schedule.rounds {
        assert!(!round.is_empty(), "an empty round");
        let mut busy = BTreeSet::new();
        for &pair in round {
            assert!(seen.insert(pair), "{pair:?} twice");
            let shares_the_round = schedule.both && round.contains(&pair.reversed());
            assert_eq!(schedule.both, shares_the_round, "{pair:?}");
            if !schedule.both || pair.from < pair.to {
                assert!(busy.insert(pair.from), "{} twice in {round:?}", pair.from);
                assert!(busy.insert(pair.to), "{} twice in {round:?}", pair.to);
            }
        }
    }
    assert!(schedule.rounds.len() >= schedule.bound);
    seen
}

fn all(hosts: usize) -> BTreeSet<Pair> {
    let from = |one| (0..hosts).map(move |other| Pair::new(one, other));
    (0..hosts)
        .flat_map(from)
        .filter(|pair| pair.from != pair.to)
        .collect()
}

#[test]
fn all_pairs_need_no_round_more_than_the_bound() {
    for hosts in 0..=65 {
        for both in [false, true] {
            let schedule = schedule(hosts, &Asked::All, both, 7);
            assert_eq!(pairs_of(&schedule), all(hosts));
            let there = if hosts < 2 { 0 } else { hosts + hosts % 2 - 1 };
            let rounds = if both { there } else { 2 * there };
            assert_eq!(
                (schedule.rounds.len(), schedule.bound),
                (rounds, rounds),
                "{hosts} hosts"
            );
        }
    }
}

#[test]
fn a_ring_has_each_host_twice() {
    let pairs = pairs_of(&schedule(5, &Asked::Ring, false, 0));
    assert_eq!(
        pairs,
        (0..5).map(|host| Pair::new(host, (host + 1) % 5)).collect()
    );
    assert_eq!(schedule(6, &Asked::Ring, false, 0).rounds.len(), 2);
    assert_eq!(pairs_of(&schedule(2, &Asked::Ring, false, 0)), all(2));
    assert_eq!(schedule(1, &Asked::Ring, false, 0).rounds.len(), 0);
}

#[test]
fn what_was_asked_twice_or_of_no_host_is_left_out() {
    let asked = Asked::These(vec![
        Pair::new(0, 1),
        Pair::new(0, 1),
        Pair::new(1, 1),
        Pair::new(0, 9),
    ]);
    let pairs = pairs_of(&schedule(3, &asked, false, 0));
    assert_eq!(pairs, BTreeSet::from([Pair::new(0, 1)]));
}

#[test]
fn an_estimate_has_time_and_bytes() {
    let costs = Costs {
        test: Nanos::from_millis(5_000),
        overhead: Nanos::from_millis(1_500),
        rate: BitRate(10_000_000_000),
    };
    let estimate = schedule(16, &Asked::All, false, 0).estimate(&costs);
    assert_eq!(estimate.tests, 240);
    assert_eq!(estimate.time, Nanos::from_millis(30 * 6_500));
    assert_eq!(estimate.bytes, Bytes(240 * 6_250_000_000));
    assert_eq!(estimate.busiest, Bytes(30 * 6_250_000_000));
}

fn ceiling(bound: usize) -> usize {
    (bound * 11 / 10).max(bound + 1)
}

fn some_pairs() -> impl Strategy<Value = (usize, Vec<Pair>)> {
    let pairs = |hosts: usize| {
        let pair = (0..hosts, 0..hosts).prop_map(|(from, to)| Pair::new(from, to));
        let most = hosts * hosts;
        (
            Just(hosts),
            proptest::collection::vec(pair, 0..most.min(600)),
        )
    };
    (2_usize..40).prop_flat_map(pairs)
}

proptest! {
    #[test]
    fn any_pairs_are_there_once((hosts, pairs) in some_pairs(), both: bool, seed: u64) {
        let mut wanted: BTreeSet<Pair> = pairs.iter().copied().filter(|pair| pair.from != pair.to).collect();
        let schedule = schedule(hosts, &Asked::These(pairs), both, seed);
        if both {
            wanted = wanted.into_iter().flat_map(|pair| [pair, pair.reversed()]).collect();
        }
        prop_assert_eq!(pairs_of(&schedule), wanted);
        prop_assert!(schedule.rounds.len() <= ceiling(schedule.bound), "{} of {}", schedule.rounds.len(), schedule.bound);
    }

    #[test]
    fn disjoint_sets_need_as_many_rounds_as_the_larger_has_hosts(from in 1_usize..24, to in 1_usize..24, both: bool, seed: u64) {
        let asked = Asked::Between((0..from).collect(), (from..from + to).collect());
        let schedule = schedule(from + to, &asked, both, seed);
        prop_assert_eq!(pairs_of(&schedule).len(), from * to * if both { 2 } else { 1 });
        prop_assert_eq!(schedule.rounds.len(), from.max(to));
        prop_assert_eq!(schedule.bound, from.max(to));
    }

    #[test]
    fn random_others_are_as_many_in_as_out(hosts in 2_usize..50, others in 1_usize..12, seed: u64) {
        let schedule = schedule(hosts, &Asked::Random(others), false, seed);
        let pairs = pairs_of(&schedule);
        for host in 0..hosts {
            let wanted = others.min(hosts - 1);
            prop_assert_eq!(pairs.iter().filter(|pair| pair.from == host).count(), wanted);
            prop_assert_eq!(pairs.iter().filter(|pair| pair.to == host).count(), wanted);
        }
        prop_assert!(schedule.rounds.len() <= ceiling(schedule.bound));
    }

    #[test]
    fn the_same_seed_gives_the_same_rounds((hosts, pairs) in some_pairs(), seed: u64) {
        let asked = Asked::These(pairs);
        prop_assert_eq!(schedule(hosts, &asked, false, seed), schedule(hosts, &asked, false, seed));
    }
}
