//! The matrix in a form that is quick to compare: hosts with equal rows and columns are found with it.

use std::collections::BTreeMap;

use super::cell::Cell;

/// With more hosts than this, rows are not compared: it takes time with the cube of their number.
pub(super) const MOST_HOSTS: usize = 1024;
/// Two shares of the expected rate that differ by no more are equal to the eye.
pub(super) const EQUAL: f32 = 0.2;

/// One cell, reduced to what can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mark {
    /// Nothing is known: no test was due.
    Open,
    /// Measured: the share of the expected rate, at most 1.
    Share(f32),
    /// Failed.
    Failed,
    /// Did not begin.
    NotRun,
}

/// All cells, row after row; none where there are too many hosts.
#[derive(Debug)]
pub(super) struct Marks {
    count: usize,
    cells: Vec<Mark>,
}

impl Marks {
    pub(super) fn of(count: usize, cells: &BTreeMap<(usize, usize), Cell>) -> Self {
        if count > MOST_HOSTS {
            let cells = Vec::new();
            return Self { count: 0, cells };
        }
        let mut marks = vec![Mark::Open; count * count];
        for ((from, to), cell) in cells.iter().filter(|((from, to), _)| from != to) {
            marks[from * count + to] = match cell {
                Cell::Own | Cell::NotDue => Mark::Open,
                Cell::NotRun(_) => Mark::NotRun,
                Cell::Failed(_) => Mark::Failed,
                Cell::Measured(figures) => Mark::Share(clamped(figures.share)),
            };
        }
        Self {
            count,
            cells: marks,
        }
    }

    /// Number of hosts; 0 where there are too many.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) fn at(&self, from: usize, to: usize) -> Mark {
        self.cells[from * self.count + to]
    }

    /// How much two hosts differ in what they send and receive: 0 (alike) to 1, from the pairs that both have. Hosts
    /// that have none in common differ by 1.
    pub(super) fn difference(&self, one: usize, other: usize) -> f32 {
        let (mut sum, mut compared) = (0.0, 0.0);
        for third in (0..self.count).filter(|third| ![one, other].contains(third)) {
            let out = (self.at(one, third), self.at(other, third));
            let inbound = (self.at(third, one), self.at(third, other));
            for difference in [out, inbound].into_iter().filter_map(|(a, b)| apart(a, b)) {
                sum += difference;
                compared += 1.0;
            }
        }
        if compared > 0.0 { sum / compared } else { 1.0 }
    }
}

/// What is faster than expected is no difference that anybody looks for.
#[expect(clippy::cast_possible_truncation, reason = "a share of 0 to 1")]
fn clamped(share: f64) -> f32 {
    share.clamp(0.0, 1.0) as f32
}

/// How much two cells differ; noise is no difference. `None` where one is not known.
fn apart(one: Mark, other: Mark) -> Option<f32> {
    match (one, other) {
        (Mark::Open, _) | (_, Mark::Open) => None,
        (Mark::Share(one), Mark::Share(other)) => {
            let difference = (one - other).abs();
            Some(if difference < EQUAL { 0.0 } else { difference })
        }
        (one, other) => Some(if one == other { 0.0 } else { 1.0 }),
    }
}

/// Several cells that are shown as one: which shares they have, or in what way they have none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Span {
    /// None of them is known.
    Open,
    /// Shares from the lowest to the highest.
    Shares(f32, f32),
    /// All failed, or none began.
    Same(Mark),
}

impl Span {
    pub(super) const fn of(mark: Mark) -> Self {
        match mark {
            Mark::Open => Self::Open,
            Mark::Share(share) => Self::Shares(share, share),
            mark => Self::Same(mark),
        }
    }

    /// Both together, where they can be shown as one.
    pub(super) fn with(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Open, known) | (known, Self::Open) => Some(known),
            (Self::Shares(a, b), Self::Shares(c, d)) => {
                let (low, high) = (a.min(c), b.max(d));
                (high - low <= EQUAL).then_some(Self::Shares(low, high))
            }
            (one, other) => (one == other).then_some(one),
        }
    }
}
