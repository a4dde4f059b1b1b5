//! The view of a mesh: everything that any format shows.

use std::collections::BTreeMap;

use linerate_analysis::mesh::goodput;
use linerate_analysis::statistics::{median, quantile};
use linerate_model::mesh::{Mesh, MeshCause, MeshGroupKind, MeshOutcome, MeshTest};
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;

use super::cause::{self, CauseView};
use super::cell::{Cell, Figures, Level};
use super::failure::{self, FailureView};
use super::fold::FoldedView;
use super::marks::Marks;
use super::order::{self, Order};
use super::ports::{self, PortsView};
use crate::words;

/// Names as one folded text: `node[01-60,62-64]`.
pub type Fold<'a> = &'a dyn Fn(&[&str]) -> String;

/// 100 % is what this share of the tests stays below: a fast tenth, so that many slow tests do not lower it.
const FAST: f64 = 0.9;
/// Without a cause, fewer slow pairs than this share of all are chance.
const CHANCE: f64 = 0.02;
/// So many slowest pairs are named.
const MOST_SLOWEST: usize = 5;

/// What a view is made from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// What makes tests of it slow, the likeliest first.
    pub causes: &'a [MeshCause],
    /// How names are folded.
    pub fold: Fold<'a>,
}

/// A mesh as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshView {
    /// Seconds since 1970 when it began.
    pub started_unix_s: u64,
    /// Options of each test.
    pub options: PlainText,
    /// Whether both directions of a pair ran at once.
    pub both: bool,
    /// Whether the tests of a round began at the same moment.
    pub wave: bool,
    /// The hosts, in the order of the mesh.
    pub hosts: Vec<HostView>,
    /// All their names, folded.
    pub names: String,
    /// How many tests came to what.
    pub counts: Counts,
    /// The rounds and their time.
    pub rounds: Rounds,
    /// The rate that is 100 %, bit/s; absent = nothing was measured.
    pub expected_bps: Option<f64>,
    /// Whether that rate came from the caller and not from the tests.
    pub expected_given: bool,
    /// What to say first.
    pub verdict: Verdict,
    /// The causes, the likeliest first.
    pub causes: Vec<CauseView>,
    /// That pairs are slow which no cause touches; what most pairs have in common.
    pub notes: Vec<String>,
    /// Hosts that behave alike as one; absent = hardly any do.
    pub folded: Option<FoldedView>,
    /// The slowest pairs, the slowest first: at most five.
    pub slowest: Vec<PairView>,
    /// Tests that failed or did not begin, by reason, the most frequent first.
    pub failures: Vec<FailureView>,
    /// Goodput by source port, the most uneven pair first; empty where ports were not spread.
    pub ports: Vec<PortsView>,
    /// The hosts by name.
    pub by_name: Order,
    /// The hosts by group and similarity; absent = the same as by name, or there are too many.
    pub by_similarity: Option<Order>,
    /// What is known of the pairs for which tests were due.
    cells: BTreeMap<(usize, usize), Cell>,
}

/// A host of the matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct HostView {
    /// Its name.
    pub name: PlainText,
    /// Why no test could use it.
    pub unreachable: Option<PlainText>,
    /// The smallest group of hosts at one place that it belongs to.
    pub group: Option<PlainText>,
    /// What it sends.
    pub out: Margin,
    /// What it receives.
    pub inbound: Margin,
}

/// All that a host sends, or receives.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Margin {
    /// Goodput, bit/s: the median of its measured pairs.
    pub goodput_bps: Option<f64>,
    /// The same as a share of the expected rate.
    pub share: Option<f64>,
    /// Pairs that were measured.
    pub measured: usize,
    /// Pairs that failed or did not begin.
    pub failed: usize,
}

/// How many tests came to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All tests that were due.
    pub tests: usize,
    /// Those that were measured.
    pub measured: usize,
    /// Those that began and failed.
    pub failed: usize,
    /// Those that did not begin.
    pub not_run: usize,
    /// Ordered pairs for which a test was due.
    pub pairs: usize,
    /// Ordered pairs of these hosts.
    pub possible: usize,
}

/// The rounds and their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rounds {
    /// How many were planned.
    pub planned: u32,
    /// In how many data flowed.
    pub run: u32,
    /// The fewest that these tests need.
    pub bound: u32,
    /// From the first byte of the first test to the last of the last.
    pub elapsed: Option<Nanos>,
}

/// What to say first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How bad it is.
    pub kind: VerdictKind,
    /// In words.
    pub sentence: String,
}

/// How bad the result of a mesh is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerdictKind {
    /// Nothing is slower than the rest.
    Healthy,
    /// A cause was found.
    Cause,
    /// Tests failed, and no cause is known.
    Unexplained,
}

/// A pair with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct PairView {
    /// The sending host's place.
    pub from: usize,
    /// The receiving host's.
    pub to: usize,
    /// What was measured.
    pub figures: Figures,
}

impl MeshView {
    /// Pairs that reach less than 90 % of the expected rate.
    pub fn below_expected(&self) -> usize {
        reach_less(&self.cells, Level::Full.least())
    }

    /// Of a mesh and its causes.
    pub fn of(source: &Source<'_>) -> Self {
        let mesh = source.mesh;
        let expected_bps = mesh.expected_bps.or_else(|| fast(mesh));
        let cells = cells(mesh, expected_bps);
        let hosts = hosts(mesh, &cells);
        let marks = Marks::of(mesh.hosts.len(), &cells);
        let names: Vec<&str> = mesh.hosts.iter().map(|host| &*host.name).collect();
        let by_name = order::by_name(&hosts);
        let by_similarity = order::by_similarity(&hosts, &marks, &by_name);
        let counts = counts(mesh, &cells);
        let causes: Vec<CauseView> = source
            .causes
            .iter()
            .map(|cause| CauseView::of(cause, source))
            .collect();
        let slowest = slowest(&cells);
        Self {
            started_unix_s: mesh.started_unix_s,
            options: mesh.options.clone(),
            both: mesh.both,
            wave: mesh.wave,
            names: words::plain(&(source.fold)(&names)),
            rounds: rounds(mesh),
            verdict: verdict(&counts, &causes, &cells, mesh.expected_bps.is_some()),
            notes: notes(source.causes, &cells),
            folded: FoldedView::of(source, &marks, &cells),
            failures: failure::all(source),
            ports: ports::all(mesh),
            expected_given: mesh.expected_bps.is_some(),
            hosts,
            counts,
            expected_bps,
            causes,
            slowest,
            by_name,
            by_similarity,
            cells,
        }
    }

    /// What is known of a pair, by places of its hosts.
    pub fn cell(&self, from: usize, to: usize) -> &Cell {
        match self.cells.get(&(from, to)) {
            Some(cell) => cell,
            None if from == to => &Cell::Own,
            None => &Cell::NotDue,
        }
    }

    /// The name of a host.
    pub(super) fn name(&self, host: usize) -> &str {
        self.hosts.get(host).map_or("?", |host| &*host.name)
    }

    /// `goodput in % of 9.41 Gbit/s, the rate that the fastest tenth of the tests reaches`.
    pub(super) fn scale(&self) -> String {
        let Some(expected) = self.expected_bps else {
            return "nothing was measured".to_owned();
        };
        let how = if self.expected_given {
            "the expected rate"
        } else {
            "the rate that the fastest tenth of the tests reaches"
        };
        format!("goodput in % of {}, {how}", bit_rate(expected))
    }
}

/// A rate in words: `9.41 Gbit/s`.
pub(super) fn bit_rate(bps: f64) -> String {
    words::rate(words::whole(bps))
}

/// `1 test`, `240 tests`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    let plural = words::when(count != 1, "s");
    format!("{} {noun}{plural}", grouped(count))
}

/// A count with separators.
pub(super) fn grouped(count: usize) -> String {
    words::count(u64::try_from(count).unwrap_or(u64::MAX))
}

/// The rate that the fastest tenth of the tests reaches, bit/s.
fn fast(mesh: &Mesh) -> Option<f64> {
    let tests = mesh.tests.iter().filter(|test| !test.alone);
    let rates: Vec<f64> = tests.filter_map(goodput).collect();
    quantile(&rates, FAST).or_else(|| {
        let rates: Vec<f64> = mesh.tests.iter().filter_map(goodput).collect();
        quantile(&rates, FAST)
    })
}

fn cells(mesh: &Mesh, expected_bps: Option<f64>) -> BTreeMap<(usize, usize), Cell> {
    let mut pairs: BTreeMap<(usize, usize), Vec<&MeshTest>> = BTreeMap::new();
    let count = mesh.hosts.len();
    for test in &mesh.tests {
        if test.from < count && test.to < count {
            pairs.entry((test.from, test.to)).or_default().push(test);
        }
    }
    pairs
        .into_iter()
        .map(|(pair, tests)| (pair, Cell::of(&tests, expected_bps)))
        .collect()
}

fn hosts(mesh: &Mesh, cells: &BTreeMap<(usize, usize), Cell>) -> Vec<HostView> {
    let count = mesh.hosts.len();
    let (mut out, mut inbound) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for ((from, to), cell) in cells.iter().filter(|((from, to), _)| from != to) {
        out[*from].push(cell);
        inbound[*to].push(cell);
    }
    let view = |(at, host): (usize, &linerate_model::mesh::MeshHost)| HostView {
        name: host.name.clone(),
        unreachable: host.unreachable.clone(),
        group: group(mesh, at),
        out: margin(&out[at]),
        inbound: margin(&inbound[at]),
    };
    mesh.hosts.iter().enumerate().map(view).collect()
}

/// The smallest place with several of the hosts, but not with all.
fn group(mesh: &Mesh, host: usize) -> Option<PlainText> {
    let told = mesh.groups.iter().filter(|group| {
        group.kind == MeshGroupKind::Place
            && (2..mesh.hosts.len()).contains(&group.members.len())
            && group.members.contains(&host)
    });
    told.min_by_key(|group| group.members.len())
        .map(|group| group.name.clone())
}

pub(super) fn margin(cells: &[&Cell]) -> Margin {
    let figures = || cells.iter().filter_map(|cell| cell.figures());
    let rates: Vec<f64> = figures().map(|figures| figures.goodput_bps).collect();
    let shares: Vec<f64> = figures().map(|figures| figures.share).collect();
    let failed = |cell: &&&Cell| matches!(cell, Cell::Failed(_) | Cell::NotRun(_));
    Margin {
        goodput_bps: median(&rates),
        share: median(&shares),
        measured: rates.len(),
        failed: cells.iter().filter(failed).count(),
    }
}

fn counts(mesh: &Mesh, cells: &BTreeMap<(usize, usize), Cell>) -> Counts {
    let hosts = mesh.hosts.len();
    let mut counts = Counts {
        tests: mesh.tests.len(),
        pairs: cells.len(),
        possible: hosts.saturating_mul(hosts.saturating_sub(1)),
        ..Counts::default()
    };
    for test in &mesh.tests {
        match &test.outcome {
            MeshOutcome::Measured(_) => counts.measured += 1,
            MeshOutcome::Failed { .. } => counts.failed += 1,
            MeshOutcome::NotRun { .. } => counts.not_run += 1,
        }
    }
    counts
}

fn rounds(mesh: &Mesh) -> Rounds {
    let spans = || mesh.tests.iter().filter_map(|test| test.span);
    let begin = spans().map(|span| span.begin).min();
    let end = spans().map(|span| span.end).max();
    let ran = mesh
        .tests
        .iter()
        .filter(|test| test.span.is_some() && !test.alone);
    Rounds {
        planned: mesh.rounds,
        run: ran
            .map(|test| test.round.saturating_add(1))
            .max()
            .unwrap_or(0),
        bound: mesh.bound,
        elapsed: begin.zip(end).map(|(begin, end)| end.since(begin)),
    }
}

fn slowest(cells: &BTreeMap<(usize, usize), Cell>) -> Vec<PairView> {
    let measured = |(&(from, to), cell): (&(usize, usize), &Cell)| {
        let figures = cell.figures()?.clone();
        Some(PairView { from, to, figures })
    };
    let mut all: Vec<PairView> = cells.iter().filter_map(measured).collect();
    all.sort_by(|a, b| a.figures.share.total_cmp(&b.figures.share));
    all.truncate(MOST_SLOWEST);
    all
}

/// Pairs that reach less than this share of the expected rate.
fn reach_less(cells: &BTreeMap<(usize, usize), Cell>, share: f64) -> usize {
    let figures = cells.values().filter_map(Cell::figures);
    figures.filter(|one| one.share < share).count()
}

fn verdict(
    counts: &Counts,
    causes: &[CauseView],
    cells: &BTreeMap<(usize, usize), Cell>,
    given: bool,
) -> Verdict {
    let lost = counts.failed + counts.not_run;
    let slow = reach_less(cells, Level::Most.least());
    let below = reach_less(cells, Level::Full.least());
    let many = slow as f64 > CHANCE * cells.len() as f64;
    let (kind, sentence) = match causes {
        _ if counts.tests == 0 => (
            VerdictKind::Unexplained,
            "No test was planned: a mesh needs at least two hosts.".to_owned(),
        ),
        [first, ..] => (VerdictKind::Cause, first.sentence.clone()),
        [] if counts.measured == 0 => (
            VerdictKind::Unexplained,
            format!("None of {} was measured.", counted(counts.tests, "test")),
        ),
        [] if many => (
            VerdictKind::Unexplained,
            format!(
                "{} of {} reach less than 70 % of the expected rate{}, and no cause explains them. {}",
                grouped(slow),
                counted(cells.len(), "pair"),
                words::with((lost > 0).then_some(lost), |lost| {
                    format!(", {} failed or did not begin", counted(lost, "test"))
                }),
                spread(cells)
            ),
        ),
        [] if lost > 0 => (
            VerdictKind::Unexplained,
            format!(
                "{} of {} failed or did not begin, and no cause explains them. {}",
                grouped(lost),
                counted(counts.tests, "test"),
                spread(cells)
            ),
        ),
        [] if given && below > 0 => (
            VerdictKind::Unexplained,
            format!(
                "No host, group, link or pair is slower than the others, but {} of {} reach less than 90 % of the expected \
                 rate. {}",
                grouped(below),
                counted(cells.len(), "pair"),
                spread(cells)
            ),
        ),
        [] => (
            VerdictKind::Healthy,
            format!(
                "No host, group, link or pair is slower than the others. {}",
                spread(cells)
            ),
        ),
    };
    Verdict { kind, sentence }
}

fn notes(causes: &[MeshCause], cells: &BTreeMap<(usize, usize), Cell>) -> Vec<String> {
    let notes = [unexplained(causes, cells), common(cells)];
    notes.into_iter().flatten().collect()
}

/// The first finding that most pairs have: what limits all of them alike makes none of them slower than the others.
fn common(cells: &BTreeMap<(usize, usize), Cell>) -> Option<String> {
    let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
    for figures in cells.values().filter_map(Cell::figures) {
        if let Some(finding) = &figures.finding {
            *votes.entry(finding.as_str()).or_default() += 1;
        }
    }
    let (finding, pairs) = votes.into_iter().max_by_key(|(_, pairs)| *pairs)?;
    (2 * pairs > cells.len()).then(|| {
        format!(
            "In {} of {} the first finding is {finding}.",
            grouped(pairs),
            counted(cells.len(), "pair")
        )
    })
}

fn unexplained(causes: &[MeshCause], cells: &BTreeMap<(usize, usize), Cell>) -> Option<String> {
    let slow = cells.iter().filter(|((from, to), cell)| {
        let slow = cell
            .figures()
            .is_some_and(|one| one.share < Level::Most.least());
        slow && !causes.iter().any(|cause| cause::touches(cause, *from, *to))
    });
    let slow = slow.count();
    let many = !causes.is_empty() && slow as f64 > CHANCE * cells.len() as f64;
    many.then(|| {
        format!(
            "{} of {} reach less than 70 % of the expected rate and are part of no cause.",
            grouped(slow),
            counted(cells.len(), "pair")
        )
    })
}

/// `The median pair reaches 9.40 Gbit/s, the slowest 9.12 Gbit/s.`
fn spread(cells: &BTreeMap<(usize, usize), Cell>) -> String {
    let figures = cells.values().filter_map(Cell::figures);
    let rates: Vec<f64> = figures.map(|figures| figures.goodput_bps).collect();
    let least = rates.iter().copied().min_by(f64::total_cmp);
    words::with(median(&rates).zip(least), |(median, least)| {
        format!(
            "The median pair reaches {}, the slowest {}.",
            bit_rate(median),
            bit_rate(least)
        )
    })
}
