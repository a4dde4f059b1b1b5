//! Any set of pairs in few rounds: an edge colouring where a colour is a round.
//!
//! A pair takes a round in which both its hosts are free. Where there is none, hosts swap two rounds along a path
//! (Kempe's chain) that begins at one host and does not end at the other. Between two disjoint sets such a path always
//! exists (Kőnig), so the rounds are as many as the busiest host's tests. Elsewhere a further round is opened where none
//! of the paths is of use.

use std::collections::BTreeSet;

use super::Pair;
use crate::random::Random;

/// A lower bound of the number of rounds: the tests of the busiest host, and in each connected part the tests divided
/// by how many fit at once.
pub(super) fn bound(hosts: usize, edges: &BTreeSet<Pair>) -> usize {
    let mut busy = vec![0_usize; hosts];
    for edge in edges {
        busy[edge.from] += 1;
        busy[edge.to] += 1;
    }
    let part = parts(hosts, edges);
    let mut members = vec![0_usize; hosts];
    let mut tests = vec![0_usize; hosts];
    for host in 0..hosts {
        members[part[host]] += 1;
    }
    for edge in edges {
        tests[part[edge.from]] += 1;
    }
    let dense = tests.iter().zip(&members);
    let dense = dense.map(|(tests, members)| tests.div_ceil((members / 2).max(1)));
    busy.iter().copied().chain(dense).max().unwrap_or(0)
}

/// For each host the smallest host that tests connect it with.
fn parts(hosts: usize, edges: &BTreeSet<Pair>) -> Vec<usize> {
    let mut part: Vec<usize> = (0..hosts).collect();
    // Each pass carries the smallest place along every pair; it ends when nothing changes, at most after `hosts` passes.
    for _ in 0..hosts {
        let mut changed = false;
        for edge in edges {
            let least = part[edge.from].min(part[edge.to]);
            changed |= part[edge.from] != least || part[edge.to] != least;
            part[edge.from] = least;
            part[edge.to] = least;
        }
        if !changed {
            break;
        }
    }
    part
}

/// Orders of the pairs that are tried before more rounds than one in twenty beyond the bound, or one, are accepted.
const ORDERS: usize = 16;

/// The pairs in rounds; `bound` is how many rounds there are at least.
pub(super) fn rounds(
    hosts: usize,
    edges: BTreeSet<Pair>,
    bound: usize,
    random: &mut Random,
) -> Vec<Vec<Pair>> {
    let mut edges: Vec<Pair> = edges.into_iter().collect();
    let mut fewest = in_a_random_order(hosts, &mut edges, bound, random);
    for _ in 1..ORDERS {
        if fewest.len() <= bound + (bound / 20).max(1) {
            break;
        }
        let other = in_a_random_order(hosts, &mut edges, bound, random);
        if other.len() < fewest.len() {
            fewest = other;
        }
    }
    fewest
}

/// The pairs in rounds, taken in a random order.
fn in_a_random_order(
    hosts: usize,
    edges: &mut [Pair],
    bound: usize,
    random: &mut Random,
) -> Vec<Vec<Pair>> {
    random.shuffle(edges);
    let mut colouring = Colouring {
        round_of: vec![0; edges.len()],
        at: vec![vec![None; hosts]; bound],
        edges,
    };
    for edge in 0..edges.len() {
        colouring.add(edge);
    }
    let mut rounds = vec![Vec::new(); colouring.at.len()];
    for (edge, round) in edges.iter().zip(&colouring.round_of) {
        rounds[*round].push(*edge);
    }
    for round in &mut rounds {
        round.sort_unstable();
    }
    rounds
}

/// Which pair each host is in, by round.
struct Colouring<'a> {
    edges: &'a [Pair],
    /// The round of each pair that was added.
    round_of: Vec<usize>,
    /// By round and host the pair.
    at: Vec<Vec<Option<usize>>>,
}

impl Colouring<'_> {
    /// Gives the pair a round.
    fn add(&mut self, edge: usize) {
        let Pair { from, to } = self.edges[edge];
        let free = |host: usize| -> Vec<usize> {
            let rounds = 0..self.at.len();
            rounds
                .filter(|&round| self.at[round][host].is_none())
                .collect()
        };
        let (free_from, free_to) = (free(from), free(to));
        let common = free_from.iter().find(|round| free_to.contains(round));
        let round = common
            .copied()
            .or_else(|| self.swap(from, to, &free_from, &free_to));
        let round = round.unwrap_or_else(|| {
            self.at
                .push(vec![None; self.at.first().map_or(0, Vec::len)]);
            self.at.len() - 1
        });
        self.place(edge, round);
    }

    fn place(&mut self, edge: usize, round: usize) {
        let Pair { from, to } = self.edges[edge];
        self.round_of[edge] = round;
        self.at[round][from] = Some(edge);
        self.at[round][to] = Some(edge);
    }

    /// Makes a round that is free at `from` free at `to` as well, and returns it.
    fn swap(
        &mut self,
        from: usize,
        to: usize,
        free_from: &[usize],
        free_to: &[usize],
    ) -> Option<usize> {
        for &wanted in free_from {
            for &other in free_to {
                let (path, end) = self.path(to, wanted, other);
                if end != from {
                    self.exchange(&path, wanted, other);
                    return Some(wanted);
                }
            }
        }
        None
    }

    /// The pairs in alternately the one and the other round from a host on, and the host where they end.
    fn path(&self, start: usize, one: usize, other: usize) -> (Vec<usize>, usize) {
        let (mut host, mut round, mut next) = (start, one, other);
        let mut path = Vec::new();
        // A host has one pair a round, and the start has none in the other round: no host comes twice.
        while let Some(edge) = self.at[round][host] {
            path.push(edge);
            let Pair { from, to } = self.edges[edge];
            host = if from == host { to } else { from };
            (round, next) = (next, round);
        }
        (path, host)
    }

    /// Swaps the two rounds along a path.
    fn exchange(&mut self, path: &[usize], one: usize, other: usize) {
        for &edge in path {
            let Pair { from, to } = self.edges[edge];
            let round = self.round_of[edge];
            self.at[round][from] = None;
            self.at[round][to] = None;
        }
        for &edge in path {
            let round = if self.round_of[edge] == one {
                other
            } else {
                one
            };
            self.place(edge, round);
        }
    }
}
