//! One test that was due.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{Holding, RunClass, RunId, UnixMillis, WatchOutcome, WatchRun};
use serde::Serialize;

use crate::store::OutcomeKind;

/// A run as a row of tables, JSON and CSV. Figures are null where it did not measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RunRow {
    /// What it is known by.
    pub(crate) id: RunId,
    /// The task.
    pub(crate) task: PlainText,
    /// The sending host.
    pub(crate) from: PlainText,
    /// The receiving host.
    pub(crate) to: PlainText,
    /// Why it was due.
    pub(crate) class: RunClass,
    /// From when on it might run.
    pub(crate) due: UnixMillis,
    /// When it began; null = it did not.
    pub(crate) started: Option<UnixMillis>,
    /// When it ended, or when it was known that it would not run.
    pub(crate) ended: UnixMillis,
    /// What it came to.
    pub(crate) outcome: OutcomeKind,
    /// What was being done when it failed.
    pub(crate) stage: Option<PlainText>,
    /// The word for why it did not run.
    pub(crate) reason: Option<&'static str>,
    /// Why it did not measure, as a sentence.
    pub(crate) why: Option<PlainText>,
    /// The tests that held what it needed.
    pub(crate) held: Vec<Holding>,
    /// Payload at the receiving application, bit/s.
    pub(crate) goodput_bps: Option<f64>,
    /// The lower end of its 95 % interval, bit/s.
    pub(crate) low_bps: Option<f64>,
    /// The upper end.
    pub(crate) high_bps: Option<f64>,
    /// Share of segments that were retransmitted, 0 to 1.
    pub(crate) retransmitted: Option<f64>,
    /// Share of datagrams that were lost, 0 to 1.
    pub(crate) lost: Option<f64>,
    /// Round-trip time, ns.
    pub(crate) rtt_ns: Option<u64>,
    /// Ids of the findings.
    pub(crate) findings: Vec<String>,
    /// Whether other traffic used the link.
    pub(crate) with_traffic: bool,
}

impl From<WatchRun> for RunRow {
    fn from(run: WatchRun) -> Self {
        let mut row = Self {
            outcome: OutcomeKind::of(&run),
            id: run.id,
            task: run.task,
            from: run.from,
            to: run.to,
            class: run.class,
            due: run.due,
            started: run.started,
            ended: run.ended,
            stage: None,
            reason: None,
            why: None,
            held: Vec::new(),
            goodput_bps: None,
            low_bps: None,
            high_bps: None,
            retransmitted: None,
            lost: None,
            rtt_ns: None,
            findings: Vec::new(),
            with_traffic: false,
        };
        match run.outcome {
            WatchOutcome::Measured(figures) => {
                row.goodput_bps = Some(figures.goodput_bps);
                (row.low_bps, row.high_bps) = figures.interval_bps.unzip();
                row.retransmitted = figures.retransmitted;
                row.lost = figures.lost;
                row.rtt_ns = figures.rtt.map(|rtt| rtt.0);
                row.findings = figures.findings;
                row.with_traffic = figures.with_traffic;
            }
            WatchOutcome::Failed { stage, why } => {
                row.stage = Some(stage);
                row.why = Some(why);
            }
            WatchOutcome::NotRun { reason, why, held } => {
                row.reason = Some(reason.word());
                row.why = Some(why);
                row.held = held;
            }
            WatchOutcome::Invalid { why } => row.why = Some(why),
        }
        row
    }
}

impl RunRow {
    /// Why it did not measure, its stage before it.
    pub(crate) fn reason_words(&self) -> Option<String> {
        let why = self.why.as_ref()?;
        Some(match &self.stage {
            Some(stage) => format!("{stage}: {why}"),
            None => why.to_string(),
        })
    }
}
