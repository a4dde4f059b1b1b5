//! Source ports of the same hosts at two levels of goodput: one member of a bond is bad, or the hash spreads unevenly.

use std::collections::BTreeMap;

use linerate_model::mesh::{Mesh, MeshCauseKind, MeshDirection, MeshOutcome};

use super::matrix::{Matrix, figures};
use super::robust;
use super::scope::Scope;

/// Fewer ports of a pair than this show no levels.
const FEWEST_PORTS: usize = 4;
/// The slow ports are at most this share of all.
const MOST_SLOW: f64 = 0.6;
/// The lower level as a share of the upper one.
const LEFT: f64 = 0.8;
/// The levels are this many times apart of what ports of one level vary by …
const APART: f64 = 5.0;
/// … and the gap between the slowest fast and the fastest slow port is this many times that.
const GAP: f64 = 1.5;
/// No ports agree better than this, as a share.
const LEAST_NOISE: f64 = 0.02;
/// A port through which nothing passed has this share of the upper level.
const NOTHING: f64 = 0.01;
/// Share of a scope's pairs that have to show two levels.
const SCORE: f64 = 0.7;
/// Share of a scope's pairs in which a port has to be slow to be listed.
const LISTED: f64 = 0.6;

/// Slow ports of some hosts.
#[derive(Debug, Clone)]
pub(super) struct SlowPorts {
    /// Whose.
    pub(super) scope: Scope,
    /// Those that are slow for most pairs, ascending.
    pub(super) ports: Vec<u16>,
    /// By pair the slow ports and all.
    pub(super) slow: usize,
    pub(super) all: usize,
    /// The lower level as a share of the upper one, the median of the pairs.
    pub(super) left: f64,
}

/// The two levels of one pair.
struct Levels {
    slow: Vec<u16>,
    all: usize,
    left: f64,
}

/// Slow ports, the most pairs first.
pub(super) fn causes(mesh: &Mesh, matrix: &Matrix, scopes: &[Scope]) -> Vec<SlowPorts> {
    let samples = samples(mesh, matrix);
    let levels: BTreeMap<usize, Option<Levels>> = samples
        .iter()
        .map(|(&cell, ports)| (cell, split(ports)))
        .collect();
    let mut open: BTreeMap<usize, &Levels> = levels
        .iter()
        .filter_map(|(&cell, levels)| Some((cell, levels.as_ref()?)))
        .collect();
    let everything = everything(matrix);
    let mut found = Vec::new();
    // Each turn closes at least three pairs.
    loop {
        let gain = |scope: &&Scope| scope.cells().filter(|cell| open.contains_key(cell)).count();
        let shows = |scope: &&Scope| {
            let known = scope
                .cells()
                .filter(|cell| levels.contains_key(cell))
                .count();
            gain(scope) >= 3 && gain(scope) as f64 >= SCORE * known as f64
        };
        let several = scopes.iter().chain(&everything).filter(shows);
        let best = several.reduce(|best, next| {
            let (one, other) = (gain(&best), gain(&next));
            if other > one || (other == one && next.len() < best.len()) {
                next
            } else {
                best
            }
        });
        let Some(best) = best else { break };
        let those: Vec<&Levels> = best.cells().filter_map(|cell| open.remove(&cell)).collect();
        found.extend(described(mesh, best.clone(), &those));
    }
    for (cell, levels) in open
        .into_iter()
        .filter(|(_, levels)| levels.slow.len() >= 2)
    {
        let (from, to) = (matrix.cells[cell].from, matrix.cells[cell].to);
        let scope = Scope::pair(mesh, &[(from, to, cell)]);
        found.extend(scope.and_then(|scope| described(mesh, scope, &[levels])));
    }
    found
}

/// The whole mesh as one scope.
fn everything(matrix: &Matrix) -> Vec<Scope> {
    let hosts: Vec<usize> = (0..matrix.hosts).collect();
    vec![Scope {
        kind: MeshCauseKind::Trunk,
        name: "all pairs".to_owned(),
        direction: MeshDirection::Both,
        from: hosts.clone(),
        to: hosts,
        blocks: vec![(0..matrix.cells.len()).collect()],
        members: Vec::new(),
    }]
}

/// By cell the ports with the logarithm of their goodput; none where nothing passed.
type Samples = BTreeMap<usize, Vec<(u16, Option<f64>)>>;

fn samples(mesh: &Mesh, matrix: &Matrix) -> Samples {
    let mut samples = Samples::new();
    for test in mesh
        .tests
        .iter()
        .filter(|test| !test.alone && test.from.max(test.to) < matrix.hosts)
    {
        let Some(cell) = matrix.at(test.from, test.to) else {
            continue;
        };
        let ports = samples.entry(cell).or_default();
        let log = |bps: f64| (bps > 0.0).then(|| bps.ln());
        let failed = matches!(test.outcome, MeshOutcome::Failed { .. });
        match (figures(test), test.source_port) {
            (Some(figures), _) if !figures.streams.is_empty() => {
                ports.extend(
                    figures
                        .streams
                        .iter()
                        .map(|stream| (stream.source_port, log(stream.goodput_bps))),
                );
            }
            (Some(figures), Some(port)) => ports.push((port, log(figures.goodput_bps))),
            (None, Some(port)) if failed => ports.push((port, None)),
            _ => {}
        }
    }
    samples.retain(|_, ports| {
        ports.len() >= FEWEST_PORTS && ports.iter().any(|port| port.1.is_some())
    });
    samples
}

/// The two levels, where there are two: the split with the greatest variance between its sides (Otsu).
fn split(ports: &[(u16, Option<f64>)]) -> Option<Levels> {
    let most = ports
        .iter()
        .filter_map(|port| port.1)
        .fold(f64::NEG_INFINITY, f64::max);
    let mut sorted: Vec<(u16, f64)> = ports
        .iter()
        .map(|&(port, rate)| (port, rate.unwrap_or(most + NOTHING.ln())))
        .collect();
    sorted.sort_unstable_by(|one, other| one.1.total_cmp(&other.1));
    let mean =
        |side: &[(u16, f64)]| side.iter().map(|port| port.1).sum::<f64>() / side.len() as f64;
    let between = |at: usize| {
        let (low, high) = sorted.split_at(at);
        (low.len() * high.len()) as f64 * (mean(high) - mean(low)).powi(2)
    };
    let at = (1..sorted.len())
        .filter(|at| *at as f64 <= MOST_SLOW * sorted.len() as f64)
        .max_by(|one, other| between(*one).total_cmp(&between(*other)))?;
    let (low, high) = sorted.split_at(at);
    let rates = |side: &[(u16, f64)]| -> Vec<f64> { side.iter().map(|port| port.1).collect() };
    let (below, above) = (
        robust::midpoint(&mut rates(low))?,
        robust::midpoint(&mut rates(high))?,
    );
    let around = |side: &[(u16, f64)], middle: f64| -> Vec<f64> {
        side.iter().map(|port| port.1 - middle).collect()
    };
    // Each level varies by itself; the one with more ports says more.
    let mut residuals = around(high, above);
    residuals.extend(around(low, below));
    let noise = robust::spread(&mut residuals).max(LEAST_NOISE);
    let gap = high[0].1 - low[low.len() - 1].1;
    let apart = above - below;
    (apart > -LEFT.ln() && apart > APART * noise && gap > GAP * noise).then(|| Levels {
        slow: low.iter().map(|port| port.0).collect(),
        all: sorted.len(),
        left: (-apart).exp(),
    })
}

/// The cause that these pairs make.
fn described(mesh: &Mesh, mut scope: Scope, pairs: &[&Levels]) -> Option<SlowPorts> {
    let mut often: BTreeMap<u16, usize> = BTreeMap::new();
    for port in pairs.iter().flat_map(|levels| &levels.slow) {
        *often.entry(*port).or_default() += 1;
    }
    let most = |times: usize| times as f64 >= LISTED * pairs.len() as f64;
    let ports: Vec<u16> = often
        .into_iter()
        .filter(|(_, times)| most(*times))
        .map(|(port, _)| port)
        .collect();
    let whose = ends(mesh, &scope);
    let slow: usize = pairs.iter().map(|levels| levels.slow.len()).sum();
    let all: usize = pairs.iter().map(|levels| levels.all).sum();
    scope.name = if ports.is_empty() {
        format!("{whose}, {slow} of {all} source ports")
    } else {
        let words: Vec<String> = ports.iter().take(8).map(u16::to_string).collect();
        let more = if ports.len() > 8 { ", …" } else { "" };
        format!("{whose} ports {}{more}", words.join(", "))
    };
    scope.kind = MeshCauseKind::Port;
    let left = robust::midpoint(&mut pairs.iter().map(|levels| levels.left).collect::<Vec<_>>())?;
    Some(SlowPorts {
        scope,
        ports,
        slow,
        all,
        left,
    })
}

/// The hosts of the scope in the form of a trunk or a pair.
fn ends(mesh: &Mesh, scope: &Scope) -> String {
    let one = scope
        .from
        .first()
        .map_or("", |&host| mesh.hosts[host].name.as_str());
    match (scope.kind, scope.direction) {
        (MeshCauseKind::HostOut, _) => format!("{one} > others"),
        (MeshCauseKind::HostIn, _) => format!("others > {one}"),
        (MeshCauseKind::Host, _) => format!("{one} <> others"),
        (MeshCauseKind::Group, MeshDirection::Out) => format!("{} > all", scope.name),
        (MeshCauseKind::Group, MeshDirection::In) => format!("all > {}", scope.name),
        _ => scope.name.clone(),
    }
}
