//! What is known of one ordered pair of hosts.

use linerate_analysis::mesh::{goodput, pair_goodput};
use linerate_analysis::statistics::median;
use linerate_model::mesh::{MeshFigures, MeshOutcome, MeshTest};
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;

/// An ordered pair of hosts.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A host and itself.
    Own,
    /// No test of this pair was planned.
    NotDue,
    /// Tests were planned, and none began.
    NotRun(Box<Failure>),
    /// No test was measured, and at least one began and failed.
    Failed(Box<Failure>),
    /// At least one test was measured.
    Measured(Box<Figures>),
}

/// Why a pair has no rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was being done when the first test failed; absent where none began.
    pub stage: Option<PlainText>,
    /// Why.
    pub why: PlainText,
    /// How many tests of this pair failed or did not begin.
    pub tests: usize,
    /// The file of a record of it, below the mesh's folder.
    pub record: Option<PlainText>,
}

/// What was measured of a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Goodput, bit/s: the median of its tests.
    pub goodput_bps: f64,
    /// The 95 % interval, bit/s, of its only test.
    pub interval_bps: Option<(f64, f64)>,
    /// Goodput as a share of [`super::MeshView::expected_bps`]: 1 is as expected.
    pub share: f64,
    /// Tests that were measured, without those that ran alone.
    pub tests: usize,
    /// Tests that failed or did not begin.
    pub failed: usize,
    /// Share of segments that were retransmitted, 0 to 1: the median of its tests.
    pub retransmitted: Option<f64>,
    /// Round-trip time: the median of its tests.
    pub rtt: Option<Nanos>,
    /// The first finding of the first test that has one.
    pub finding: Option<PlainText>,
    /// Goodput of its repeats while no other test ran, bit/s: the median.
    pub alone_bps: Option<f64>,
    /// The file of the record of its first test, below the mesh's folder.
    pub record: Option<PlainText>,
}

/// How much of the expected rate a pair reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Less than 10 %.
    Least,
    /// 10 to 30 %.
    Low,
    /// 30 to 50 %.
    Third,
    /// 50 to 70 %.
    Half,
    /// 70 to 90 %.
    Most,
    /// 90 % and more.
    Full,
}

impl Level {
    /// All of them, the highest first.
    pub const ALL: [Self; 6] = [
        Self::Full,
        Self::Most,
        Self::Half,
        Self::Third,
        Self::Low,
        Self::Least,
    ];

    /// That of a share.
    pub fn of(share: f64) -> Self {
        let reached = |level: &&Self| share >= level.least();
        *Self::ALL.iter().find(reached).unwrap_or(&Self::Least)
    }

    /// The lowest share that has it, 0 to 1.
    pub const fn least(self) -> f64 {
        match self {
            Self::Full => 0.9,
            Self::Most => 0.7,
            Self::Half => 0.5,
            Self::Third => 0.3,
            Self::Low => 0.1,
            Self::Least => 0.0,
        }
    }

    /// `90 % and more`, `30 to 50 %`, `below 10 %`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Full => "90 % and more",
            Self::Most => "70 to 90 %",
            Self::Half => "50 to 70 %",
            Self::Third => "30 to 50 %",
            Self::Low => "10 to 30 %",
            Self::Least => "below 10 %",
        }
    }
}

impl Cell {
    /// Of the tests of one pair; 100 % is `expected_bps`.
    pub(super) fn of(tests: &[&MeshTest], expected_bps: Option<f64>) -> Self {
        let first = || tests.iter().filter(|test| !test.alone);
        let measured = first().filter(|test| goodput(test).is_some()).count();
        let alone = tests.iter().filter(|test| test.alone);
        let alone: Vec<f64> = alone.filter_map(|test| goodput(test)).collect();
        // A repeat says what the pair can do, and counts where it is all there is.
        let shown = pair_goodput(tests).or_else(|| median(&alone));
        match (shown, expected_bps) {
            (Some(goodput_bps), Some(expected)) => Self::Measured(Box::new(Figures {
                goodput_bps,
                share: goodput_bps / expected.max(1.0),
                tests: if measured > 0 { measured } else { alone.len() },
                failed: first().count() - measured,
                alone_bps: median(&alone),
                ..figures(tests)
            })),
            _ => failure(tests),
        }
    }

    /// What was measured.
    pub fn figures(&self) -> Option<&Figures> {
        match self {
            Self::Measured(figures) => Some(figures),
            _ => None,
        }
    }

    /// The file of its record, below the mesh's folder.
    pub fn record(&self) -> Option<&PlainText> {
        match self {
            Self::Own | Self::NotDue => None,
            Self::NotRun(failure) | Self::Failed(failure) => failure.record.as_ref(),
            Self::Measured(figures) => figures.record.as_ref(),
        }
    }
}

/// The figures of a test that was measured.
pub(super) const fn measured(test: &MeshTest) -> Option<&MeshFigures> {
    match &test.outcome {
        MeshOutcome::Measured(figures) => Some(figures),
        MeshOutcome::Failed { .. } | MeshOutcome::NotRun { .. } => None,
    }
}

/// What does not depend on the expected rate.
fn figures(tests: &[&MeshTest]) -> Figures {
    let all = || tests.iter().filter_map(|test| measured(test));
    let again: Vec<f64> = all().filter_map(|one| one.retransmitted).collect();
    let times = all().filter_map(|one| one.rtt.map(Nanos::as_secs_f64));
    let times: Vec<f64> = times.collect();
    let mut intervals = all().map(|one| one.interval_bps);
    let interval = intervals.next().flatten();
    let with_record = |test: &&&MeshTest| test.record.is_some() && measured(test).is_some();
    let kept = tests.iter().find(with_record);
    Figures {
        goodput_bps: 0.0,
        interval_bps: interval.filter(|_| intervals.next().is_none()),
        share: 0.0,
        tests: 0,
        failed: 0,
        retransmitted: median(&again),
        rtt: median(&times).map(Nanos::from_secs_f64),
        finding: all().find_map(|one| one.finding.as_deref().map(PlainText::from)),
        alone_bps: None,
        record: kept.and_then(|test| test.record.clone()),
    }
}

fn failure(tests: &[&MeshTest]) -> Cell {
    let why = tests.iter().find_map(|test| match &test.outcome {
        MeshOutcome::Failed { stage, why } => Some((Some(stage), why)),
        _ => None,
    });
    let not_run = || {
        tests.iter().find_map(|test| match &test.outcome {
            MeshOutcome::NotRun { why } => Some((None, why)),
            _ => None,
        })
    };
    let Some((stage, why)) = why.or_else(not_run) else {
        return Cell::NotDue;
    };
    let failure = Box::new(Failure {
        stage: stage.cloned(),
        why: why.clone(),
        tests: tests.len(),
        record: tests.iter().find_map(|test| test.record.clone()),
    });
    if failure.stage.is_some() {
        Cell::Failed(failure)
    } else {
        Cell::NotRun(failure)
    }
}
