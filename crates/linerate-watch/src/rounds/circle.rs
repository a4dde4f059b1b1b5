//! The circle method for all pairs: one host stays, the others turn around a circle, and those opposite each other
//! are a pair.

use super::Pair;

/// The rounds of all pairs of `hosts` hosts: unordered ones where both directions run `at_once`, else each round
/// again at the end, the other way.
pub(super) fn rounds(hosts: usize, at_once: bool) -> Vec<Vec<Pair>> {
    if hosts < 2 {
        return Vec::new();
    }
    // With an odd number of hosts, whoever is opposite of the one that is not there rests.
    let circle = hosts + hosts % 2 - 1;
    let there: Vec<Vec<Pair>> = (0..circle).map(|turn| round(hosts, circle, turn)).collect();
    if at_once {
        return there;
    }
    let reversed = |round: &Vec<Pair>| round.iter().map(|pair| pair.reversed()).collect();
    let back: Vec<Vec<Pair>> = there.iter().map(reversed).collect();
    there.into_iter().chain(back).collect()
}

/// One round: `turn` is where the circle stands, `circle` how many hosts turn.
fn round(hosts: usize, circle: usize, turn: usize) -> Vec<Pair> {
    let stays = Pair::new(turn, circle);
    let opposite = |distance: usize| {
        let ahead = (turn + distance) % circle;
        let behind = (turn + circle - distance) % circle;
        Pair::new(ahead, behind)
    };
    let pairs = std::iter::once(stays).chain((1..=circle / 2).map(opposite));
    let exists = |pair: &Pair| pair.from.max(pair.to) < hosts;
    // Each host sends first in about half of the rounds.
    let alternate = |pair: Pair| {
        if turn.is_multiple_of(2) {
            pair
        } else {
            pair.reversed()
        }
    };
    pairs.filter(exists).map(alternate).collect()
}
