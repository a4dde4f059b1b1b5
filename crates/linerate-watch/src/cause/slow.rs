//! What makes tests slow: effects on the logarithm of goodput, fitted one after the other.
//!
//! The level of a mesh is the median of the tests that a candidate does not touch, and the candidate's effect the
//! distance of its own tests' median from there, so that a candidate may touch half of the mesh. Of all candidates
//! whose tests are slow enough and agree, the one that leaves the least to explain is taken, its effect is subtracted, and
//! the search goes on. A group therefore comes before its hosts: it explains as much at once as all of them together.

use linerate_model::mesh::{MeshCauseKind, MeshDirection};

use super::matrix::Matrix;
use super::scope::Scope;
use super::{robust, shared};

/// The smallest effect of a host or a group that is named.
const HOST_LEFT: f64 = 0.95;
/// The smallest effect of a trunk that is named.
const TRUNK_LEFT: f64 = 0.90;
/// Share of a candidate's tests that have to be slow by at least half of its effect.
const SCORE: f64 = 0.7;
/// Effects of hosts vary: one has to be below the others' median by this many times their spread.
const APART: f64 = 3.5;
/// With fewer hosts the spread of the others' effects is not known.
const HOSTS_FOR_SPREAD: usize = 6;
/// The quantile of all tests that a candidate has to be slower than to be looked at: one may touch nearly all of them.
const HIGH: f64 = 0.97;
/// No tests agree better than this, as a share.
const LEAST_NOISE: f64 = 0.01;
/// Standard errors from which on an effect is asked about, or certain without having been asked about.
const ASKED: f64 = 3.0;
const CERTAIN: f64 = 6.0;
/// What a block costs, in standard deviations of one test.
const BLOCK_COSTS: f64 = 3.0;
/// The standard error of a median is this many times that of a mean.
const MEDIAN_ERROR: f64 = 1.2533;
/// Too few hosts to tell a host from a link.
const FEWEST_HOSTS: usize = 4;

/// A cause with its effect.
#[derive(Debug, Clone)]
pub(super) struct Effect {
    pub(super) scope: Scope,
    /// By cell of the scope what is added to the logarithm of the rate.
    pub(super) on: Vec<(usize, f64)>,
    /// Whether the effect grows with how many tests run at once.
    pub(super) shared: bool,
    /// Whether it is far beyond the noise.
    pub(super) certain: bool,
}

/// A mesh with its effects.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    /// The level without any effect.
    pub(super) level: f64,
    /// The standard deviation of one test.
    pub(super) noise: f64,
    pub(super) effects: Vec<Effect>,
    /// By cell the rate less level and effects; absent where there is none, or a shared link limits it.
    pub(super) rest: Vec<Option<f64>>,
}

/// Fits the effects; cells for which `left_out` is true take no part.
pub(super) fn fit(matrix: &Matrix, scopes: &[Scope], left_out: &[bool]) -> Fit {
    let rates = matrix.cells.iter().zip(left_out);
    let mut rest: Vec<Option<f64>> = rates
        .map(|(cell, out)| cell.rate.filter(|_| !out))
        .collect();
    let mut effects: Vec<Effect> = Vec::new();
    let few = too_few(matrix);
    // Each scope is taken once.
    for _ in 0..if few { 0 } else { scopes.len() } {
        let Some(candidate) = best(matrix, scopes, &rest, &effects) else {
            break;
        };
        for &(cell, effect) in &candidate.on {
            let left = rest[cell].map(|rate| rate - effect);
            // Tests that share a link divide it as they like: what is left of them says nothing of hosts.
            rest[cell] = left.filter(|_| !candidate.shared || effect > TRUNK_LEFT.ln());
        }
        effects.push(candidate);
    }
    let effects = both_ways(scopes, effects);
    let mut values: Vec<f64> = rest.iter().flatten().copied().collect();
    let level = if few {
        upper_half(&mut values)
    } else {
        robust::midpoint(&mut values)
    };
    let level = level.unwrap_or(0.0);
    let mut residuals: Vec<f64> = values.iter().map(|value| value - level).collect();
    let noise = if few {
        LEAST_NOISE
    } else {
        noise(&mut residuals, 2 * effects.len())
    };
    for value in rest.iter_mut().flatten() {
        *value -= level;
    }
    Fit {
        level,
        noise,
        effects,
        rest,
    }
}

/// Two effects that are the two directions of one scope become its effect.
fn both_ways(scopes: &[Scope], mut effects: Vec<Effect>) -> Vec<Effect> {
    let whole = scopes
        .iter()
        .filter(|scope| scope.direction == MeshDirection::Both && scope.blocks.len() == 2);
    for scope in whole {
        let part = |block: usize| {
            let is_it = |effect: &Effect| {
                effect.scope.blocks.len() == 1 && effect.scope.blocks[0] == scope.blocks[block]
            };
            effects.iter().position(is_it)
        };
        if let (Some(one), Some(other)) = (part(0), part(1)) {
            let other = effects[other].clone();
            let first = &mut effects[one];
            first.scope = scope.clone();
            first.on.extend(&other.on);
            first.shared |= other.shared;
            first.certain |= other.certain;
            effects.retain(|effect| effect.scope != other.scope);
        }
    }
    effects
}

/// Whether so few hosts were measured that a slow host and a slow link look the same.
fn too_few(matrix: &Matrix) -> bool {
    let mut measured = vec![false; matrix.hosts];
    for cell in matrix.cells.iter().filter(|cell| !cell.failed()) {
        measured[cell.from] = true;
        measured[cell.to] = true;
    }
    measured.iter().filter(|host| **host).count() < FEWEST_HOSTS
}

/// The median of the upper half: among few hosts most tests may touch the slow one.
fn upper_half(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(|one, other| other.total_cmp(one));
    let half = values.len().div_ceil(2);
    robust::midpoint(&mut values[..half])
}

/// The standard deviation of a test, from what is left after `fitted` effects.
fn noise(residuals: &mut [f64], fitted: usize) -> f64 {
    let tests = residuals.len() as f64;
    let free = (tests - 1.0 - fitted as f64).max(1.0);
    (robust::spread(residuals) * (tests / free).sqrt()).max(LEAST_NOISE)
}

/// A candidate with what it leaves unexplained.
struct Candidate {
    effect: Effect,
    loss: f64,
    noise: f64,
}

/// The candidate that leaves the least to explain.
fn best(
    matrix: &Matrix,
    scopes: &[Scope],
    rest: &[Option<f64>],
    taken: &[Effect],
) -> Option<Effect> {
    let mut all: Vec<f64> = rest.iter().flatten().copied().collect();
    let high = robust::quantile(&mut all, HIGH)?;
    let new = scopes
        .iter()
        .filter(|scope| !taken.iter().any(|effect| effect.scope == **scope));
    let near = new.filter(|scope| {
        // A link that is divided may be slow in some rounds only.
        let share = if scope.kind == MeshCauseKind::Trunk {
            0.1
        } else {
            0.5
        };
        let low = |block: &Vec<usize>| robust::quantile(&mut values(block, rest), share);
        let is_low = |low: f64| low < high + HOST_LEFT.ln();
        scope
            .blocks
            .iter()
            .all(|block| low(block).is_some_and(is_low))
    });
    let candidates: Vec<Candidate> = near
        .filter_map(|scope| candidate(matrix, scope, rest))
        .collect();
    let noise = candidates
        .iter()
        .map(|one| one.noise)
        .fold(f64::INFINITY, f64::min);
    let cost =
        |one: &Candidate| one.loss / noise + BLOCK_COSTS * one.effect.scope.blocks.len() as f64;
    let least = candidates.into_iter().reduce(|best, next| {
        if cost(&next) < cost(&best) {
            next
        } else {
            best
        }
    });
    least.map(|one| one.effect)
}

fn values(cells: &[usize], rest: &[Option<f64>]) -> Vec<f64> {
    cells.iter().filter_map(|&cell| rest[cell]).collect()
}

/// The smallest effect of this kind that is named, on the logarithm.
fn floor(scope: &Scope) -> f64 {
    match scope.kind {
        MeshCauseKind::Trunk => TRUNK_LEFT.ln(),
        _ => HOST_LEFT.ln(),
    }
}

/// The scope's effect where its tests are slow, agree and are far enough from the others.
fn candidate(matrix: &Matrix, scope: &Scope, rest: &[Option<f64>]) -> Option<Candidate> {
    let mut inside = vec![false; rest.len()];
    scope.cells().for_each(|cell| inside[cell] = true);
    let outside = rest.iter().zip(&inside).filter(|(_, inside)| !**inside);
    let mut outside: Vec<f64> = outside.filter_map(|(rate, _)| *rate).collect();
    if outside.len() < 2 {
        return None;
    }
    let level = robust::midpoint(&mut outside)?;
    let blocks: Vec<Block> = scope
        .blocks
        .iter()
        .map(|block| Block::of(matrix, scope, block, rest, level))
        .collect::<Option<_>>()?;
    if !members_are_slow(scope, rest, level) || !apart(matrix, scope, &blocks, rest, level) {
        return None;
    }
    let mut residuals: Vec<f64> = outside.iter().map(|rate| rate - level).collect();
    residuals.extend(blocks.iter().flat_map(|block| &block.residuals));
    let loss = residuals.iter().map(|residual| residual.abs()).sum();
    let tests = residuals.len();
    let noise = noise(&mut residuals, blocks.len());
    let errors = blocks.iter().map(|block| {
        let error =
            MEDIAN_ERROR * noise * (1.0 / block.slow as f64 + 1.0 / outside.len() as f64).sqrt();
        -block.effect / error
    });
    let errors = errors.fold(f64::INFINITY, f64::min);
    // The noise of few tests is itself uncertain.
    let few = 1.0 + 6.0 / tests as f64;
    (errors >= ASKED * few).then(|| Candidate {
        effect: Effect {
            scope: scope.clone(),
            shared: blocks.iter().any(|block| block.shared),
            certain: errors >= CERTAIN * few,
            on: blocks.into_iter().flat_map(|block| block.on).collect(),
        },
        loss,
        noise,
    })
}

/// One block's effect.
struct Block {
    /// The median of the tests that it slows.
    effect: f64,
    /// How many those are.
    slow: usize,
    on: Vec<(usize, f64)>,
    residuals: Vec<f64>,
    shared: bool,
}

impl Block {
    fn of(
        matrix: &Matrix,
        scope: &Scope,
        cells: &[usize],
        rest: &[Option<f64>],
        level: f64,
    ) -> Option<Self> {
        let tests: Vec<(usize, f64)> = cells
            .iter()
            .filter_map(|&cell| Some((cell, rest[cell]? - level)))
            .collect();
        let constant = Self::constant(scope, &tests);
        let shared = (scope.kind == MeshCauseKind::Trunk)
            .then(|| Self::shared(matrix, scope, &tests))
            .flatten();
        let loss = |block: &Self| {
            block
                .residuals
                .iter()
                .map(|residual| residual.abs())
                .sum::<f64>()
        };
        match (constant, shared) {
            (Some(constant), Some(shared)) if loss(&constant) <= loss(&shared) => Some(constant),
            (constant, shared) => shared.or(constant),
        }
    }

    /// Every test is slow by about the same share.
    fn constant(scope: &Scope, tests: &[(usize, f64)]) -> Option<Self> {
        let mut distances: Vec<f64> = tests.iter().map(|test| test.1).collect();
        let effect = robust::midpoint(&mut distances)?;
        let slow = distances
            .iter()
            .filter(|distance| **distance < effect / 2.0)
            .count();
        let agree = slow as f64 >= SCORE * tests.len() as f64;
        (tests.len() >= 2 && effect < floor(scope) && agree).then(|| Self {
            effect,
            slow: tests.len(),
            on: tests.iter().map(|&(cell, _)| (cell, effect)).collect(),
            residuals: distances.iter().map(|distance| distance - effect).collect(),
            shared: false,
        })
    }

    /// The tests of a round divide a capacity.
    fn shared(matrix: &Matrix, scope: &Scope, tests: &[(usize, f64)]) -> Option<Self> {
        let link = shared::link(matrix, tests)?;
        let is_limited = |limit: &&shared::Limit| limit.effect < TRUNK_LEFT.ln();
        let limited: Vec<(f64, &shared::Limit)> = tests
            .iter()
            .zip(&link)
            .filter(|(_, limit)| is_limited(limit))
            .map(|(test, limit)| (test.1, limit))
            .collect();
        // Where the rest is as fast as elsewhere, the slow ones have something else in common than the link.
        let touched = limited
            .iter()
            .filter(|(distance, limit)| *distance < limit.effect / 3.0);
        let agree = touched.count() as f64 >= SCORE * limited.len() as f64;
        let mut slow: Vec<f64> = limited.iter().map(|(_, limit)| limit.distance).collect();
        let effect = robust::midpoint(&mut slow)?;
        (slow.len() >= 3 && agree && effect < floor(scope)).then(|| Self {
            effect,
            slow: slow.len(),
            on: tests
                .iter()
                .zip(&link)
                .map(|(test, limit)| (test.0, limit.effect))
                .collect(),
            residuals: link
                .iter()
                .map(|limit| limit.distance - limit.effect)
                .collect(),
            shared: true,
        })
    }
}

/// Whether each member of a group is slow by itself.
fn members_are_slow(scope: &Scope, rest: &[Option<f64>], level: f64) -> bool {
    scope.members.iter().all(|cells| {
        let median = robust::midpoint(&mut values(cells, rest));
        median.is_none_or(|median| median - level < floor(scope))
    })
}

/// Whether a host is further from the level than the other hosts' spread explains.
fn apart(
    matrix: &Matrix,
    scope: &Scope,
    blocks: &[Block],
    rest: &[Option<f64>],
    level: f64,
) -> bool {
    let host = matches!(
        scope.kind,
        MeshCauseKind::Host | MeshCauseKind::HostOut | MeshCauseKind::HostIn
    );
    if !host || matrix.hosts < HOSTS_FOR_SPREAD {
        return true;
    }
    let directions: &[bool] = match scope.direction {
        MeshDirection::Out => &[true],
        MeshDirection::In => &[false],
        MeshDirection::Both => &[true, false],
    };
    directions.iter().zip(blocks).all(|(&sends, block)| {
        let others = (0..matrix.hosts).filter(|host| scope.from != [*host]);
        let mut effects: Vec<f64> = others
            .filter_map(|other| {
                let cell = |host| {
                    if sends {
                        matrix.at(other, host)
                    } else {
                        matrix.at(host, other)
                    }
                };
                let cells: Vec<usize> = (0..matrix.hosts)
                    .filter(|host| scope.from != [*host])
                    .filter_map(cell)
                    .collect();
                robust::midpoint(&mut values(&cells, rest))
            })
            .collect();
        let Some(middle) = robust::midpoint(&mut effects) else {
            return true;
        };
        let mut distances: Vec<f64> = effects.iter().map(|effect| effect - middle).collect();
        // The spread of few hosts is itself uncertain.
        let few = 1.0 + 3.0 / distances.len() as f64;
        block.effect - (middle - level) < -APART * few * robust::spread(&mut distances)
    })
}
