//! What makes tests of a mesh slow, or fail.
//!
//! Four searches, each over the same candidates (hosts, groups, trunks) and each on what the one before it left:
//! source ports at two levels; failures, by a greedy set cover; effects on the logarithm of goodput; single pairs. What is
//! named is then joined with the findings of its tests and with what its hosts have in common.
//!
//! Thresholds: a host or a group is named from −5 % on, a trunk from −10 %, a pair from −12 % when it was slow again
//! alone. Each also has to be beyond the mesh's own noise. With two or three hosts a slow host and a slow link look the
//! same: pairs are named then.

mod failures;
mod matrix;
mod pairs;
mod ports;
pub(crate) mod robust;
mod scope;
mod shared;
mod slow;

use std::collections::BTreeMap;

use linerate_model::mesh::{Mesh, MeshCause, MeshCauseKind, MeshDirection, MeshGroup};
use linerate_model::plain_text::PlainText;

use crate::rounds::Pair;
use matrix::{Alone, Matrix};
use pairs::Standing;
use ports::SlowPorts;
use scope::Scope;
use slow::{Effect, Fit};

/// A pair that runs alone is slow below this share of the level.
const SLOW: f64 = 0.88;
/// How many tests of a host, a group or a trunk that is not certain are repeated alone.
const REPEATS: usize = 4;
/// How many rounds are repeated before a shared link is named.
const ROUNDS_AGAIN: usize = 3;
/// A finding is named when more than this share of a cause's tests have it …
const VOTES: f64 = 0.5;
/// … and this many times the share of the other tests.
const MORE_THAN_OTHERS: f64 = 1.5;
/// What a failed test counts beside slow ones, where these count by the logarithm of what they lost.
const FAILURE_WEIGHS: f64 = 3.0;

/// What makes tests of the mesh slow or fail, the likeliest first; empty where nothing does.
///
/// Tests that ran alone ([`to_confirm`]) decide what a single round left open.
pub fn causes(mesh: &Mesh) -> Vec<MeshCause> {
    Judged::of(mesh).causes()
}

/// The pairs whose tests should be repeated while no other test runs, the slowest first; those that already were are not
/// among them. Where the source port of the first test is known, the repeat should use it: another may take another way. At most twice as many as there are hosts, and [`causes`] needs none of them to be certain of large effects.
pub fn to_confirm(mesh: &Mesh) -> Vec<Pair> {
    Judged::of(mesh).to_confirm()
}

/// Rounds that should be run once more, all tests of each together, before a link that they share is named: it limits them
/// again, where a busy moment of the hosts does not. Those that were repeated are not among them; the slowest come first.
pub fn to_repeat(mesh: &Mesh) -> Vec<Vec<Pair>> {
    Judged::of(mesh).to_repeat()
}

/// Something that is named.
struct Named {
    scope: Scope,
    effect: Option<Effect>,
    ports: Option<SlowPorts>,
}

impl Named {
    fn of_ports(ports: SlowPorts) -> Self {
        Self {
            scope: ports.scope.clone(),
            effect: None,
            ports: Some(ports),
        }
    }
}

/// A mesh with all that was found.
struct Judged<'a> {
    mesh: &'a Mesh,
    matrix: Matrix,
    fit: Fit,
    named: Vec<Named>,
    /// Effects that wait for tests alone.
    waiting: Vec<Effect>,
    /// Failures that no host, group or trunk explains.
    open: Vec<bool>,
}

impl<'a> Judged<'a> {
    fn of(mesh: &'a Mesh) -> Self {
        let matrix = Matrix::of(mesh);
        let scopes = scope::all(mesh, &matrix);
        let ports = ports::causes(mesh, &matrix, &scopes);
        let mut left_out = vec![false; matrix.cells.len()];
        ports
            .iter()
            .flat_map(|found| found.scope.cells())
            .for_each(|cell| left_out[cell] = true);
        let failures = failures::causes(mesh, &matrix, &scopes);
        let mut open: Vec<bool> = matrix.cells.iter().map(matrix::Cell::failed).collect();
        if failures.is_empty() && open.iter().all(|failed| *failed) {
            open.fill(false);
        }
        let mut fit = slow::fit(&matrix, &scopes, &left_out);
        let (certain, waiting): (Vec<Effect>, Vec<Effect>) = std::mem::take(&mut fit.effects)
            .into_iter()
            .partition(|effect| {
                effect.certain
                    || (!effect.shared && slow_alone(&matrix, fit.level, effect) == Some(true))
            });
        // What is not named explains no pair either.
        for &(cell, effect) in waiting.iter().flat_map(|effect| &effect.on) {
            if let Some(rest) = &mut fit.rest[cell] {
                *rest += effect;
            }
        }
        let mut named: Vec<Named> = ports.into_iter().map(Named::of_ports).collect();
        named.extend(merged(&failures, &certain));
        for cell in named.iter().flat_map(|one| one.scope.cells()) {
            open[cell] = false;
        }
        let standing = |cell: &usize| pairs::standing(&matrix, &fit, *cell, open[*cell]);
        let cells = 0..matrix.cells.len();
        let mut single: Vec<usize> = cells
            .filter(|cell| standing(cell) == Some(Standing::Named))
            .collect();
        let flows = pairs::flows(&matrix, &fit, &scopes, &mut single);
        named.extend(flows.map(Named::of_ports));
        let pairs = pairs::scopes(mesh, &matrix, &single);
        named.extend(pairs.into_iter().map(|scope| Named {
            scope,
            effect: None,
            ports: None,
        }));
        Self {
            mesh,
            matrix,
            fit,
            named,
            waiting,
            open,
        }
    }

    /// How far a cell is below the level, on the logarithm.
    fn distance(&self, cell: usize) -> Option<f64> {
        Some(self.matrix.cells[cell].rate? - self.fit.level)
    }

    /// Which cells are slow or failed.
    fn bad(&self) -> Vec<bool> {
        let open = |cell: usize| {
            let standing = pairs::standing(&self.matrix, &self.fit, cell, self.open[cell]);
            matches!(standing, Some(Standing::Named | Standing::Asked))
        };
        let cells = self.matrix.cells.iter().enumerate();
        let mut bad: Vec<bool> = cells
            .map(|(cell, tested)| tested.failed() || open(cell))
            .collect();
        let effects = self.named.iter().filter_map(|one| one.effect.as_ref());
        for &(cell, effect) in effects.flat_map(|effect| &effect.on) {
            bad[cell] |= effect < 0.0
                && self
                    .distance(cell)
                    .is_none_or(|distance| distance < effect / 2.0);
        }
        bad
    }

    fn causes(&self) -> Vec<MeshCause> {
        let bad = self.bad();
        let mut causes: Vec<(f64, MeshCause)> = self
            .named
            .iter()
            .map(|one| (self.weight(one, &bad), self.cause(one, &bad)))
            .collect();
        causes.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut named: Vec<MeshCause> = Vec::new();
        for (_, cause) in causes {
            // That one direction of some hosts is slow says nothing where both were named.
            let again = |one: &MeshCause| {
                one.direction == MeshDirection::Both
                    && (one.kind, &one.from, &one.to) == (cause.kind, &cause.from, &cause.to)
            };
            if !named.iter().any(again) {
                named.push(cause);
            }
        }
        named
    }

    /// How much a cause explains.
    fn weight(&self, one: &Named, bad: &[bool]) -> f64 {
        if let Some(ports) = &one.ports {
            return ports.scope.len() as f64 * (-ports.left.ln()).min(FAILURE_WEIGHS);
        }
        let cells = one.scope.cells().filter(|&cell| bad[cell]);
        let lost = |cell| {
            self.distance(cell)
                .map_or(FAILURE_WEIGHS, |distance| -distance)
        };
        cells
            .map(|cell| lost(cell).clamp(0.0, FAILURE_WEIGHS))
            .sum()
    }

    fn cause(&self, one: &Named, bad: &[bool]) -> MeshCause {
        let cells: Vec<usize> = one.scope.cells().collect();
        let explained: Vec<usize> = cells.iter().copied().filter(|&cell| bad[cell]).collect();
        let all_bad = bad.iter().filter(|bad| **bad).count();
        let failed = explained
            .iter()
            .filter(|&&cell| self.matrix.cells[cell].failed())
            .count();
        let distances = explained.iter().filter_map(|&cell| self.distance(cell));
        let left = robust::midpoint(&mut distances.collect::<Vec<_>>());
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let mut cause = MeshCause {
            kind: one.scope.kind,
            name: PlainText::from(one.scope.name.clone()),
            direction: one.scope.direction,
            from: one.scope.from.clone(),
            to: one.scope.to.clone(),
            ports: Vec::new(),
            share: share(explained.len(), all_bad),
            explained: explained.len(),
            touched: cells.len(),
            failed,
            left: left.map(|left| left.exp().min(1.0)),
            capacity_bps: self.capacity(one),
            slow_alone: self.slow_alone(one),
            findings: self.findings(
                if one.ports.is_some() {
                    &cells
                } else {
                    &explained
                },
                &cells,
            ),
            in_common: self.in_common(&one.scope),
        };
        if let Some(ports) = &one.ports {
            cause.ports.clone_from(&ports.ports);
            cause.share = share(ports.slow, ports.all);
            cause.explained = ports.slow;
            cause.touched = ports.all;
            cause.left = (ports.left > 0.0).then_some(ports.left);
        }
        cause
    }

    /// The sum of a trunk's tests where it stopped growing, of each direction the smaller one.
    fn capacity(&self, one: &Named) -> Option<f64> {
        one.effect.as_ref().filter(|effect| effect.shared)?;
        let of_block = |block: &Vec<usize>| {
            let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
            for &cell in block {
                if let Some(distance) = self.distance(cell) {
                    rounds
                        .entry(self.matrix.cells[cell].round)
                        .or_default()
                        .push(distance.exp());
                }
            }
            shared::capacity(rounds.values())
        };
        let least = one
            .scope
            .blocks
            .iter()
            .filter_map(of_block)
            .reduce(f64::min)?;
        Some(least * self.fit.level.exp())
    }

    fn slow_alone(&self, one: &Named) -> Option<bool> {
        if let Some(effect) = &one.effect {
            return slow_alone(&self.matrix, self.fit.level, effect);
        }
        let alone = one.scope.cells().filter_map(|cell| {
            let tested = &self.matrix.cells[cell];
            match tested.alone? {
                Alone::Failed => Some(true),
                Alone::Rate(rate) => Some(rate - self.fit.level < SLOW.ln()),
            }
        });
        majority(alone)
    }

    /// The findings that most of the explained tests have, and the others do not have as often.
    fn findings(&self, explained: &[usize], cells: &[usize]) -> Vec<(String, usize)> {
        let count = |cells: &mut dyn Iterator<Item = usize>| {
            let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
            let mut measured = 0_usize;
            for cell in cells
                .map(|cell| &self.matrix.cells[cell])
                .filter(|cell| !cell.failed())
            {
                measured += 1;
                let mut own: Vec<&str> = cell.findings.iter().map(String::as_str).collect();
                own.sort_unstable();
                own.dedup();
                for finding in own {
                    *votes.entry(finding).or_default() += 1;
                }
            }
            (votes, measured)
        };
        let others = (0..self.matrix.cells.len()).filter(|cell| !cells.contains(cell));
        let (votes, measured) = count(&mut explained.iter().copied());
        let (among_others, others) = count(&mut others.into_iter());
        let share = |votes: usize, measured: usize| votes as f64 / measured.max(1) as f64;
        let telling = votes.into_iter().filter(|&(finding, votes)| {
            let elsewhere = share(among_others.get(finding).copied().unwrap_or(0), others);
            let here = share(votes, measured);
            here > VOTES && here > MORE_THAN_OTHERS * elsewhere
        });
        let mut telling: Vec<(String, usize)> = telling
            .map(|(finding, votes)| (finding.to_owned(), votes))
            .collect();
        telling.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        telling
    }

    /// The groups that have exactly the cause's hosts as members, but the cause's own.
    fn in_common(&self, scope: &Scope) -> Vec<PlainText> {
        let mut hosts = scope.from.clone();
        hosts.sort_unstable();
        let about_hosts = scope.to.is_empty();
        let same = |group: &&MeshGroup| {
            let mut members = group.members.clone();
            members.sort_unstable();
            let its_own = scope.kind == MeshCauseKind::Group && scope::name_of(group) == scope.name;
            about_hosts && members == hosts && !its_own
        };
        let groups = self.mesh.groups.iter().filter(same);
        groups
            .map(|group| PlainText::from(format!("{} {}", group.of, group.name)))
            .collect()
    }

    fn to_repeat(&self) -> Vec<Vec<Pair>> {
        let mut rounds: BTreeMap<u32, f64> = BTreeMap::new();
        let named = self.named.iter().filter_map(|one| one.effect.as_ref());
        for effect in named.chain(&self.waiting).filter(|effect| effect.shared) {
            for &(cell, on) in &effect.on {
                let cell = &self.matrix.cells[cell];
                if on < SLOW.ln() / 2.0 && !cell.again {
                    *rounds.entry(cell.round).or_default() += on;
                }
            }
        }
        let mut rounds: Vec<(u32, f64)> = rounds.into_iter().collect();
        rounds.sort_by(|one, other| one.1.total_cmp(&other.1));
        let pairs = |(round, _): &(u32, f64)| {
            let cells = self.matrix.cells.iter().filter(|cell| cell.round == *round);
            cells.map(|cell| Pair::new(cell.from, cell.to)).collect()
        };
        rounds.iter().take(ROUNDS_AGAIN).map(pairs).collect()
    }

    fn to_confirm(&self) -> Vec<Pair> {
        let not_yet = |cell: &usize| self.matrix.cells[*cell].alone.is_none();
        let links = self.named.iter().filter_map(|one| one.effect.as_ref());
        let links = links.filter(|effect| effect.scope.kind == MeshCauseKind::Trunk);
        let repeats = |effect: &Effect| -> Vec<usize> {
            let asked = effect.on.iter().any(|(cell, _)| !not_yet(cell));
            let cells = effect
                .on
                .iter()
                .filter(|(_, on)| !asked && *on < SLOW.ln() / 2.0);
            let cells: Vec<usize> = cells.map(|(cell, _)| *cell).collect();
            let apart = cells.len().div_ceil(REPEATS).max(1);
            cells.into_iter().step_by(apart).collect()
        };
        let mut cells: Vec<usize> = self.waiting.iter().chain(links).flat_map(repeats).collect();
        let mut single: Vec<usize> = (0..self.matrix.cells.len())
            .filter(|&cell| {
                let standing = pairs::standing(&self.matrix, &self.fit, cell, self.open[cell]);
                matches!(standing, Some(Standing::Asked | Standing::Named)) && not_yet(&cell)
            })
            .collect();
        let rest = |cell: &usize| self.fit.rest[*cell].unwrap_or(f64::NEG_INFINITY);
        single.sort_by(|one, other| rest(one).total_cmp(&rest(other)));
        cells.extend(single);
        let mut pairs: Vec<Pair> = Vec::new();
        for cell in cells {
            let pair = Pair::new(self.matrix.cells[cell].from, self.matrix.cells[cell].to);
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        pairs.truncate(2 * self.matrix.hosts);
        pairs
    }
}

/// Failures and effects of the same hosts are one cause.
fn merged(failures: &[Scope], effects: &[Effect]) -> Vec<Named> {
    let same = |one: &Scope, other: &Scope| {
        (one.kind, &one.from, &one.to, one.direction)
            == (other.kind, &other.from, &other.to, other.direction)
    };
    let failing = failures
        .iter()
        .filter(|scope| !effects.iter().any(|effect| same(scope, &effect.scope)));
    let failing = failing.map(|scope| Named {
        scope: scope.clone(),
        effect: None,
        ports: None,
    });
    let slow = effects.iter().map(|effect| Named {
        scope: effect.scope.clone(),
        effect: Some(effect.clone()),
        ports: None,
    });
    failing.chain(slow).collect()
}

/// Whether the tests of an effect were slow again alone, by half of it; absent = none ran alone.
fn slow_alone(matrix: &Matrix, level: f64, effect: &Effect) -> Option<bool> {
    let alone = effect
        .on
        .iter()
        .filter(|(_, on)| *on < 0.0)
        .filter_map(|&(cell, on)| {
            let tested = &matrix.cells[cell];
            match tested.alone? {
                Alone::Failed => Some(true),
                Alone::Rate(_) => Some(tested.alone_rate()? - level < on / 2.0),
            }
        });
    majority(alone)
}

/// What most of them say; absent = nobody says anything.
fn majority(votes: impl Iterator<Item = bool>) -> Option<bool> {
    let votes: Vec<bool> = votes.collect();
    let yes = votes.iter().filter(|vote| **vote).count();
    (!votes.is_empty()).then_some(2 * yes > votes.len())
}
