//! Single pairs that no host, group or trunk explains. A pair is one test, so it counts once it was slow again alone.

use std::collections::BTreeMap;

use linerate_model::mesh::{Mesh, MeshCauseKind};

use super::matrix::{Alone, Matrix};
use super::ports::SlowPorts;
use super::robust;
use super::scope::Scope;
use super::slow::Fit;

/// The smallest effect of a pair: rate as a share of what is expected of it.
const LEFT: f64 = 0.88;
/// A pair is slow from this many standard deviations of a test on.
const APART: f64 = 3.5;
/// A pair that did not run alone is named below this share of what is expected …
const CERTAIN_LEFT: f64 = 0.7;
/// … and from this many standard deviations on.
const CERTAIN: f64 = 6.0;

/// So many slow pairs of one trunk are flows over a bad member of it …
const FLOWS: usize = 3;
/// … where they are at least this share of its pairs, and at most that: a bond has at most 16 members.
const LEAST_FLOWS: f64 = 1.0 / 16.0;
const MOST_FLOWS: f64 = 0.6;
/// Share of all slow pairs that these have to be.
const MOSTLY: f64 = 0.8;

/// What is known of a slow or failed pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was slow or failed again alone, or is so by far that it need not run again.
    Named,
    /// It should run again alone.
    Asked,
    /// Alone it is as fast as others.
    Cleared,
}

/// The standing of a cell, where it is slow beyond the effects or failed; `open` says that no cause explains its failure.
pub(super) fn standing(matrix: &Matrix, fit: &Fit, cell: usize, open: bool) -> Option<Standing> {
    let tested = &matrix.cells[cell];
    if tested.failed() {
        return open.then_some(Standing::Named);
    }
    let distance = fit.rest[cell]?;
    if distance >= LEFT.ln().min(-APART * fit.noise) {
        return None;
    }
    Some(match tested.alone {
        Some(Alone::Failed) => Standing::Named,
        Some(Alone::Rate(alone)) => {
            let expected = tested.rate? - distance;
            if alone - expected < LEFT.ln() {
                Standing::Named
            } else {
                Standing::Cleared
            }
        }
        None if distance < CERTAIN_LEFT.ln().min(-CERTAIN * fit.noise) => Standing::Named,
        None => Standing::Asked,
    })
}

/// A scope for each named pair; both directions of a pair are one.
pub(super) fn scopes(mesh: &Mesh, matrix: &Matrix, named: &[usize]) -> Vec<Scope> {
    let mut pairs = BTreeMap::<_, Vec<_>>::new();
    for &cell in named {
        let (from, to) = (matrix.cells[cell].from, matrix.cells[cell].to);
        pairs
            .entry((from.min(to), from.max(to)))
            .or_default()
            .push((from, to, cell));
    }
    pairs
        .values()
        .filter_map(|cells| Scope::pair(mesh, cells))
        .collect()
}

/// Slow pairs without a host in common that cross one trunk: each is a flow, and some flows take a bad member of a bond.
/// What they explain is taken out of `named`.
pub(super) fn flows(
    matrix: &Matrix,
    fit: &Fit,
    scopes: &[Scope],
    named: &mut Vec<usize>,
) -> Option<SlowPorts> {
    let crossing = |scope: &Scope| -> Vec<usize> {
        scope.cells().filter(|cell| named.contains(cell)).collect()
    };
    let fits = |scope: &Scope, cells: &[usize]| {
        let share = cells.len() as f64 / scope.len().max(1) as f64;
        let hosts = |end: fn(&super::matrix::Cell) -> usize| {
            let mut hosts: Vec<usize> =
                cells.iter().map(|&cell| end(&matrix.cells[cell])).collect();
            hosts.sort_unstable();
            hosts.dedup();
            hosts.len()
        };
        cells.len() >= FLOWS
            && cells.len() as f64 >= MOSTLY * named.len() as f64
            && (LEAST_FLOWS..=MOST_FLOWS).contains(&share)
            && hosts(|cell| cell.from) >= 2
            && hosts(|cell| cell.to) >= 2
    };
    let trunks = scopes
        .iter()
        .filter(|scope| scope.kind == MeshCauseKind::Trunk);
    let found = trunks
        .map(|scope| (scope, crossing(scope)))
        .filter(|(scope, cells)| fits(scope, cells));
    let (trunk, cells) = found.reduce(|best, next| {
        let better = next.1.len() > best.1.len()
            || (next.1.len() == best.1.len() && next.0.len() < best.0.len());
        if better { next } else { best }
    })?;
    let all = trunk.len();
    let distances = cells
        .iter()
        .filter_map(|&cell| Some(matrix.cells[cell].rate? - fit.level));
    let left = robust::midpoint(&mut distances.collect::<Vec<_>>()).map_or(0.0, f64::exp);
    let scope = Scope {
        kind: MeshCauseKind::Port,
        name: format!("{}, {} of {all} pairs", trunk.name, cells.len()),
        blocks: vec![cells.clone()],
        ..trunk.clone()
    };
    named.retain(|cell| !cells.contains(cell));
    Some(SlowPorts {
        scope,
        ports: Vec::new(),
        slow: cells.len(),
        all,
        left,
    })
}
