//! Rounds of tests in which no host takes part twice.
//!
//! All ordered pairs go by the circle method: n − 1 rounds where n is even, n where it is odd, then the same rounds the
//! other way. Any other set of pairs is an edge colouring: between disjoint sets it needs as many rounds as
//! the busiest host has tests, otherwise seldom more than one more.

mod circle;
mod colour;
mod estimate;

use std::collections::BTreeSet;

use crate::random::Random;
pub use estimate::{Costs, Estimate};

/// A test: data from one host to another, by the hosts' places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The sending host.
    pub from: usize,
    /// The receiving host.
    pub to: usize,
}

impl Pair {
    /// Data from one host to another.
    pub const fn new(from: usize, to: usize) -> Self {
        Self { from, to }
    }

    /// The other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self::new(self.to, self.from)
    }

    /// The same for both directions: the smaller place first.
    const fn unordered(self) -> Self {
        if self.from > self.to {
            self.reversed()
        } else {
            self
        }
    }
}

/// Which tests are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Every host to every other.
    All,
    /// Each host to the next one, the last to the first.
    Ring,
    /// Each host to as many random others as this; each also receives from as many.
    Random(usize),
    /// Each of the first hosts to each of the second. Both sets may have hosts in common.
    Between(Vec<usize>, Vec<usize>),
    /// These, such as what a broken run has left to do.
    These(Vec<Pair>),
}

/// Tests in rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The tests of each round. Where both directions run at once, they follow each other.
    pub rounds: Vec<Vec<Pair>>,
    /// No schedule of these tests has fewer rounds than this.
    pub bound: usize,
    /// Whether the two directions of a pair run at once.
    pub both: bool,
}

impl Schedule {
    /// How many tests there are.
    pub fn tests(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }
}

/// Puts the tests between `hosts` hosts into rounds.
///
/// With `both`, a pair's two directions run at once, and each is there however few of them were asked for. A pair that
/// is asked for twice is there once; a host and itself, and places from `hosts` on, are left out. The same seed gives the
/// same rounds.
pub fn schedule(hosts: usize, asked: &Asked, both: bool, seed: u64) -> Schedule {
    let mut random = Random::new(seed);
    let pairs = pairs(hosts, asked, &mut random);
    let edges: BTreeSet<Pair> = if both {
        pairs.into_iter().map(Pair::unordered).collect()
    } else {
        pairs
    };
    let complete = hosts * hosts.saturating_sub(1) / if both { 2 } else { 1 };
    let bound = colour::bound(hosts, &edges);
    let rounds = if edges.len() == complete {
        circle::rounds(hosts, both)
    } else {
        colour::rounds(hosts, edges, bound, &mut random)
    };
    let directions = |pair: Pair| [Some(pair), both.then(|| pair.reversed())];
    let round = |round: Vec<Pair>| round.into_iter().flat_map(directions).flatten().collect();
    Schedule {
        rounds: rounds.into_iter().map(round).collect(),
        bound,
        both,
    }
}

/// The pairs that are asked for, each once.
fn pairs(hosts: usize, asked: &Asked, random: &mut Random) -> BTreeSet<Pair> {
    let every = |offsets: &[usize], order: &[usize]| -> BTreeSet<Pair> {
        let from = |place: usize| {
            let to = move |offset: &usize| order[(place + offset) % order.len()];
            offsets
                .iter()
                .map(move |offset| Pair::new(order[place], to(offset)))
        };
        (0..order.len()).flat_map(from).collect()
    };
    let mut order: Vec<usize> = (0..hosts).collect();
    let mut offsets: Vec<usize> = (1..hosts).collect();
    let asked = match asked {
        Asked::All => every(&offsets, &order),
        Asked::Ring => every(&[1], &order),
        // Each offset along a random circle of hosts is a permutation without a fixed point.
        Asked::Random(others) => {
            random.shuffle(&mut order);
            random.shuffle(&mut offsets);
            offsets.truncate(*others);
            every(&offsets, &order)
        }
        Asked::Between(from, to) => {
            let pairs_of = |&one| to.iter().map(move |&other| Pair::new(one, other));
            from.iter().flat_map(pairs_of).collect()
        }
        Asked::These(pairs) => pairs.iter().copied().collect(),
    };
    let fits = |pair: &Pair| pair.from != pair.to && pair.from.max(pair.to) < hosts;
    asked.into_iter().filter(fits).collect()
}
