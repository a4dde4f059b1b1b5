//! How names are folded: to the same text as by `ClusterShell` 1.9, so that sets can be compared by eye and by `diff`.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Numbers;
use super::number::Number;

/// The numbers that stand in each hole; the names are all combinations.
pub(super) type Vector = Vec<BTreeSet<Number>>;

/// With more vectors than this, only neighbours are compared: comparing all takes the square of their number.
const MOST_COMPARED: usize = 4096;

/// Numbers as they stand in a name: one as it is, several in brackets.
pub(super) fn ranges(numbers: &BTreeSet<Number>) -> String {
    let folded = Runs::of(numbers);
    if numbers.len() == 1 {
        folded
    } else {
        format!("[{folded}]")
    }
}

/// Writes runs of numbers that follow one another.
struct Runs {
    written: String,
    start: u64,
    last: u64,
    /// Distance of the numbers of the run, from its second number on.
    step: Option<u64>,
    /// Width of the run where its first number begins with a zero. Then all have that width.
    width: Option<usize>,
}

impl Runs {
    fn of(numbers: &BTreeSet<Number>) -> String {
        let mut all = numbers.iter();
        let Some(first) = all.next() else {
            return String::new();
        };
        let mut runs = Self {
            written: String::new(),
            start: first.value(),
            last: first.value(),
            step: None,
            width: width(first),
        };
        for number in all {
            runs.push(number);
        }
        runs.end(true);
        runs.written
    }

    fn push(&mut self, number: &Number) {
        let value = number.value();
        let other_width = match self.width {
            Some(width) => number.digits() != width,
            None => number.padded(),
        };
        // Numbers are in the order of their widths, so that a narrower one may be larger.
        let distance = value.wrapping_sub(self.last);
        let other_step = self.step.is_some_and(|step| step != distance);
        if other_width || other_step {
            let contiguous = self.step.is_none_or(|step| step == 1);
            self.end(contiguous || other_width);
            if contiguous || other_width {
                (self.start, self.width) = (value, width(number));
            } else {
                self.start = self.last;
            }
            self.step = (!other_width).then_some(distance);
        } else {
            self.step = Some(distance);
        }
        self.last = value;
    }

    /// Writes the run: as a range where its numbers follow one another, else one by one, the last only if `whole`.
    fn end(&mut self, whole: bool) {
        match self.step {
            Some(1) => {
                let last = self.last;
                self.one(self.start);
                let width = self.width.unwrap_or(0);
                // Writing to a string does not fail.
                let _ = write!(self.written, "-{last:0width$}");
            }
            step => {
                let step = step.unwrap_or(1).max(1);
                let mut value = self.start;
                while value < self.last {
                    self.one(value);
                    value = value.saturating_add(step);
                }
                if whole {
                    self.one(self.last);
                }
            }
        }
    }

    fn one(&mut self, value: u64) {
        if !self.written.is_empty() {
            self.written.push(',');
        }
        let width = self.width.unwrap_or(0);
        let _ = write!(self.written, "{value:0width$}");
    }
}

fn width(number: &Number) -> Option<usize> {
    number.padded().then(|| number.digits())
}

/// The vectors that together have these numbers, and no combination twice.
pub(super) fn vectors(all: &BTreeSet<Numbers>) -> Vec<Vector> {
    let holes = all.first().map_or(0, Vec::len);
    let each: Vector = (0..holes)
        .map(|hole| all.iter().map(|numbers| numbers[hole].clone()).collect())
        .collect();
    if each.iter().map(BTreeSet::len).product::<usize>() == all.len() {
        return vec![each];
    }
    let single = |numbers: &Numbers| numbers.iter().map(|one| [one.clone()].into()).collect();
    merged(all.iter().map(single).collect())
}

/// Merges vectors that differ in one hole: neighbours in the order of their sizes and first numbers until none does any
/// more, then each with each.
fn merged(mut vectors: Vec<Vector>) -> Vec<Vector> {
    let mut all = false;
    loop {
        vectors.sort_by_cached_key(order);
        let mut changed = false;
        let mut at = 0;
        while at + 1 < vectors.len() {
            let mut other = at + 1;
            while other < vectors.len() {
                if let Some(both) = of_two(&vectors[at], &vectors[other]) {
                    changed = true;
                    vectors[at] = both;
                    vectors.remove(other);
                } else if all {
                    other += 1;
                } else {
                    break;
                }
            }
            at += 1;
        }
        if !changed {
            if all || vectors.len() > MOST_COMPARED {
                return vectors;
            }
            all = true;
        }
    }
}

type Order = (
    std::cmp::Reverse<usize>,
    Vec<(std::cmp::Reverse<usize>, String, String)>,
);

/// Larger vectors first, then those with more numbers in the first hole, then by the text of the first and last number.
fn order(vector: &Vector) -> Order {
    let size = vector.iter().map(BTreeSet::len).product();
    let text =
        |number: Option<&Number>| number.map_or_else(String::new, |one| one.text().to_owned());
    let holes = vector.iter().map(|numbers| {
        let count = std::cmp::Reverse(numbers.len());
        (count, text(numbers.first()), text(numbers.last()))
    });
    (std::cmp::Reverse(size), holes.collect())
}

/// Two vectors as one, where they differ in one hole only.
fn of_two(one: &Vector, other: &Vector) -> Option<Vector> {
    let mut differing = one
        .iter()
        .zip(other)
        .enumerate()
        .filter(|(_, (a, b))| a != b);
    let Some((hole, (a, b))) = differing.next() else {
        return Some(one.clone());
    };
    let mergeable = a.is_disjoint(b) || a.is_subset(b) || b.is_subset(a);
    if differing.next().is_some() || !mergeable {
        return None;
    }
    let mut both = one.clone();
    both[hole].extend(b.iter().cloned());
    Some(both)
}

/// All combinations of a vector, the last hole changing first.
pub(super) fn product(vector: &Vector) -> Vec<Numbers> {
    vector.iter().fold(vec![Vec::new()], |done, numbers| {
        done.iter()
            .flat_map(|before| {
                numbers.iter().map(move |one| {
                    let mut longer = before.clone();
                    longer.push(one.clone());
                    longer
                })
            })
            .collect()
    })
}
