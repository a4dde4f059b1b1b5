//! Single pairs that no host, group or trunk explains. A pair is one test, so it counts once it was slow again alone.

use std::collections::BTreeMap;

use linerate_model::mesh::Mesh;

use super::matrix::{Alone, Matrix};
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
