//! Answers of hosts, equal ones together. Pure.

use std::collections::BTreeMap;

use crate::nodes::{NodeSet, Sources};

/// Texts of more lines are not compared line by line.
const MOST_LINES: usize = 2_000;

/// Hosts that gave the same answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike<A> {
    /// The hosts, in the order in which they were given.
    pub hosts: Vec<String>,
    /// What all of them answered.
    pub answer: A,
}

/// Puts equal answers together: that of most hosts first, then in the order of their first hosts.
pub fn fold<A: Ord>(answers: impl IntoIterator<Item = (String, A)>) -> Vec<Alike<A>> {
    let mut by_answer: BTreeMap<A, (usize, Vec<String>)> = BTreeMap::new();
    for (at, (host, answer)) in answers.into_iter().enumerate() {
        let (_, hosts) = by_answer.entry(answer).or_insert((at, Vec::new()));
        hosts.push(host);
    }
    let mut alike: Vec<_> = by_answer.into_iter().collect();
    alike.sort_by_key(|(_, (first, hosts))| (usize::MAX - hosts.len(), *first));
    alike
        .into_iter()
        .map(|(answer, (_, hosts))| Alike { hosts, answer })
        .collect()
}

/// Host names as one folded set, such as `node[01-60,62-64]`.
pub fn names(hosts: &[String]) -> String {
    NodeSet::read(&hosts.join(","), &Sources::none())
        .map_or_else(|_| hosts.join(","), |set| set.to_string())
}

/// A line that one of two texts has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// Only the first one.
    First(&'a str),
    /// Only the second one.
    Second(&'a str),
}

/// The lines in which two texts differ, in their order; `None` where they have too little in common for that to be
/// shorter than the second text, or too many lines.
pub fn differing<'a>(first: &'a str, second: &'a str) -> Option<Vec<Line<'a>>> {
    let (a, b): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    if a.len().max(b.len()) > MOST_LINES {
        return None;
    }
    let common = lengths(&a, &b);
    let (mut at, mut to) = (0, 0);
    let mut lines = Vec::new();
    while at < a.len() || to < b.len() {
        let both = at < a.len() && to < b.len();
        if both && a[at] == b[to] {
            at += 1;
            to += 1;
        } else if to == b.len() || at < a.len() && common[at + 1][to] >= common[at][to + 1] {
            lines.push(Line::First(a[at]));
            at += 1;
        } else {
            lines.push(Line::Second(b[to]));
            to += 1;
        }
    }
    (lines.len() <= b.len() / 2).then_some(lines)
}

/// How many lines the rests of two texts have in common at most, from each pair of lines on.
fn lengths(a: &[&str], b: &[&str]) -> Vec<Vec<u16>> {
    let mut common = vec![vec![0_u16; b.len() + 1]; a.len() + 1];
    for at in (0..a.len()).rev() {
        for to in (0..b.len()).rev() {
            common[at][to] = if a[at] == b[to] {
                common[at + 1][to + 1] + 1
            } else {
                common[at + 1][to].max(common[at][to + 1])
            };
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_answers_stand_once_the_most_frequent_first() {
        let answers = [("n1", "b"), ("n2", "a"), ("n3", "a"), ("n4", "c")];
        let folded = fold(answers.map(|(host, answer)| (host.to_owned(), answer)));
        let shown: Vec<_> = folded
            .iter()
            .map(|alike| (names(&alike.hosts), alike.answer))
            .collect();
        let expected = [("n[2-3]", "a"), ("n1", "b"), ("n4", "c")];
        assert_eq!(
            shown,
            expected.map(|(hosts, answer)| (hosts.to_owned(), answer))
        );
    }

    #[test]
    fn only_what_differs_is_listed() {
        let majority = "a\nb\nc\nd\ne\nf\n";
        assert_eq!(differing(majority, majority), Some(vec![]));
        assert_eq!(
            differing(majority, "a\nb\nC\nd\ne\nf\n"),
            Some(vec![Line::First("c"), Line::Second("C")])
        );
        assert_eq!(differing(majority, "x\ny\n"), None);
        assert_eq!(differing(&"x\n".repeat(3000), "x\n"), None);
    }

    proptest! {
        #[test]
        fn the_second_text_is_the_first_with_the_lines_that_differ(
            a in prop::collection::vec("[ab]", 0..12),
            b in prop::collection::vec("[ab]", 0..12),
        ) {
            let (first, second) = (a.join("\n"), b.join("\n"));
            if let Some(lines) = differing(&first, &second) {
                let removed = lines.iter().filter(|line| matches!(line, Line::First(_))).count();
                let added = lines.len() - removed;
                prop_assert_eq!(first.lines().count() - removed + added, second.lines().count());
                prop_assert_eq!(lines.is_empty(), first.lines().eq(second.lines()));
            }
        }
    }
}
