//! What makes tests fail: a greedy set cover. A failure has no rate, so it is judged apart from slow tests.

use linerate_model::mesh::{Mesh, MeshCauseKind};

use super::matrix::Matrix;
use super::robust;
use super::scope::Scope;

/// Share of a scope's tests that have to fail.
const SCORE: f64 = 0.7;
/// Share of a trunk's tests that have to fail: a host's failures alone can make up much of a small trunk.
const TRUNK_SCORE: f64 = 0.9;
/// The rate, as a share of the mesh's upper quartile, below which a test counts like one that failed, once others of the
/// same scope failed.
const NEARLY_FAILED: f64 = 0.3;

/// The scopes that explain the failures, those with the most first; the rest is left to pairs.
pub(super) fn causes(mesh: &Mesh, matrix: &Matrix, scopes: &[Scope]) -> Vec<Scope> {
    let mut open: Vec<bool> = matrix
        .cells
        .iter()
        .map(super::matrix::Cell::failed)
        .collect();
    let unreachable = |host: usize| mesh.hosts[host].unreachable.is_some();
    let known = mesh.hosts.iter().any(|host| host.unreachable.is_some());
    // Where nothing works, no difference says why.
    if !known && open.iter().all(|failed| *failed) {
        return Vec::new();
    }
    let bad = bad(matrix);
    let mut found = Vec::new();
    // Each turn closes at least one failure.
    loop {
        let gain = |scope: &Scope| scope.cells().filter(|&cell| open[cell]).count();
        let gone = |scope: &Scope| scope.kind == MeshCauseKind::Host && unreachable(scope.from[0]);
        let eligible = scopes
            .iter()
            .filter(|scope| gone(scope) || fails(scope, &bad));
        let gains = eligible.map(|scope| (gain(scope), scope));
        let least = |scope: &Scope| if gone(scope) { 1 } else { least(scope) };
        let gains = gains.filter(|(gain, scope)| *gain >= least(scope));
        // The most failures explained, then the fewest tests touched; of equals the first.
        let best = gains.reduce(|best, next| {
            let better = next.0 > best.0 || (next.0 == best.0 && next.1.len() < best.1.len());
            if better { next } else { best }
        });
        let Some((_, best)) = best else { break };
        best.cells().for_each(|cell| open[cell] = false);
        found.push(best.clone());
    }
    found
}

/// Which tests failed or nearly did.
fn bad(matrix: &Matrix) -> Vec<bool> {
    let mut rates: Vec<f64> = matrix.cells.iter().filter_map(|cell| cell.rate).collect();
    let floor = robust::quantile(&mut rates, 0.75).map(|level| level + NEARLY_FAILED.ln());
    let is_bad =
        |rate: Option<f64>| rate.is_none_or(|rate| floor.is_some_and(|floor| rate < floor));
    matrix.cells.iter().map(|cell| is_bad(cell.rate)).collect()
}

/// How many failures make a scope more than a pair.
const fn least(scope: &Scope) -> usize {
    match scope.kind {
        MeshCauseKind::Trunk => 3,
        _ => 2,
    }
}

fn fails(scope: &Scope, bad: &[bool]) -> bool {
    let share = |cells: &[usize]| {
        let failed = cells.iter().filter(|&&cell| bad[cell]).count();
        failed as f64 / cells.len().max(1) as f64
    };
    let needed = if scope.kind == MeshCauseKind::Trunk {
        TRUNK_SCORE
    } else {
        SCORE
    };
    let all: Vec<usize> = scope.cells().collect();
    share(&all) >= needed && scope.members.iter().all(|cells| share(cells) >= needed)
}
