//! The tests of a mesh as one cell for each ordered pair.

use linerate_analysis::mesh::{goodput, pair_goodput};
use linerate_model::mesh::{Mesh, MeshFigures, MeshOutcome, MeshTest};

use super::robust;

/// What was measured from one host to another.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The round of its first test.
    pub(super) round: u32,
    /// Whether its round was repeated.
    pub(super) again: bool,
    /// The natural logarithm of its goodput in bit/s; absent = none was measured.
    pub(super) rate: Option<f64>,
    /// What it came to when it ran alone; absent = it did not.
    pub(super) alone: Option<Alone>,
    /// The findings of its tests.
    pub(super) findings: Vec<String>,
}

/// What a repeat without other tests came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Alone {
    /// The natural logarithm of its goodput.
    Rate(f64),
    /// It failed.
    Failed,
}

impl Cell {
    /// Whether it failed in its round, and again alone where it ran alone.
    pub(super) fn failed(&self) -> bool {
        self.rate.is_none()
    }

    /// The rate alone.
    pub(super) fn alone_rate(&self) -> Option<f64> {
        match self.alone {
            Some(Alone::Rate(rate)) => Some(rate),
            _ => None,
        }
    }
}

/// The cells that were tried, in the order of their hosts.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) hosts: usize,
    pub(super) cells: Vec<Cell>,
    /// By sender and receiver the place of the cell.
    at: Vec<Option<usize>>,
}

impl Matrix {
    pub(super) fn of(mesh: &Mesh) -> Self {
        let hosts = mesh.hosts.len();
        let mut tests: Vec<&MeshTest> =
            mesh.tests.iter().filter(|test| tried(mesh, test)).collect();
        tests.sort_by_key(|test| (test.from, test.to, test.alone, test.round));
        let same =
            |one: &&MeshTest, other: &&MeshTest| (one.from, one.to) == (other.from, other.to);
        let cells: Vec<Cell> = tests.chunk_by(same).filter_map(cell).collect();
        let mut at = vec![None; hosts * hosts];
        for (place, cell) in cells.iter().enumerate() {
            at[cell.from * hosts + cell.to] = Some(place);
        }
        Self { hosts, cells, at }
    }

    /// The place of a pair's cell.
    pub(super) fn at(&self, from: usize, to: usize) -> Option<usize> {
        self.at[from * self.hosts + to]
    }
}

/// The figures of a test through which data passed.
pub(super) fn figures(test: &MeshTest) -> Option<&MeshFigures> {
    match &test.outcome {
        MeshOutcome::Measured(figures) if figures.goodput_bps > 0.0 => Some(figures),
        _ => None,
    }
}

/// Whether the test says something: it began, or one of its hosts cannot be reached.
fn tried(mesh: &Mesh, test: &MeshTest) -> bool {
    let host = |place: usize| mesh.hosts.get(place);
    let (Some(from), Some(to)) = (host(test.from), host(test.to)) else {
        return false;
    };
    let reached = from.unreachable.is_none() && to.unreachable.is_none();
    test.from != test.to && !(reached && matches!(test.outcome, MeshOutcome::NotRun { .. }))
}

/// The cell of one pair's tests; those that ran alone come last.
fn cell(tests: &[&MeshTest]) -> Option<Cell> {
    let first = tests.first()?;
    let mut alone: Vec<f64> = tests
        .iter()
        .filter(|test| test.alone)
        .filter_map(|test| Some(goodput(test)?.ln()))
        .collect();
    let repeated = tests.iter().any(|test| test.alone);
    let alone_rate = robust::midpoint(&mut alone);
    let alone = alone_rate.map(Alone::Rate);
    let alone = alone.or_else(|| repeated.then_some(Alone::Failed));
    let rate = pair_goodput(tests).map(f64::ln);
    let together = || tests.iter().filter(|test| !test.alone);
    let findings = tests
        .iter()
        .filter_map(|test| figures(test)?.finding.clone());
    Some(Cell {
        from: first.from,
        to: first.to,
        round: first.round,
        // What failed in its round and passes alone did not fail for good.
        rate: rate.or(alone_rate),
        again: together().any(|test| test.round != first.round),
        alone,
        findings: findings.collect(),
    })
}
