//! The one view that every format shows.

mod direction;
mod end;
mod finding;
mod intervals;
mod limits;
mod precision;
mod stream;
mod summary;

use linerate_analysis::evidence::Evidence;
use linerate_analysis::judgement::Judgement;
use linerate_analysis::ledger::DirectionLedger;
use linerate_analysis::transfer::Transfer;
use linerate_analysis::working_latency::WorkingLatency;
use linerate_model::clock::ClockPair;
use linerate_model::counter_test::Diagnosis;
use linerate_model::finding::Finding;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::Plan;
use linerate_model::record::{Kind, Note, Outcome, Role, Software};
use linerate_model::units::Nanos;
use serde::Serialize;

pub(crate) use direction::told;
pub use direction::{DirectionView, Figures, MeasuredAt};
pub use end::{CpuView, EndView};
pub(crate) use finding::FindingView;
pub use intervals::{IntervalView, StreamIntervalView};
pub(crate) use intervals::{edges, interpolated};
pub use limits::{BudgetView, RatesView, StepView, WaterfallView};
pub use precision::{DirectionPrecision, PrecisionView};
pub use stream::{StreamEndView, StreamView};
pub use summary::SummaryView;

/// A run as it is shown. Times in ns, amounts in bytes, rates in bit/s unless a name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunView {
    /// Schema version of the record.
    pub schema_version: u32,
    /// Kind of the record.
    pub kind: Kind,
    /// The end that wrote it.
    pub written_by: Role,
    /// The writer.
    pub software: Software,
    /// Wall-clock label of the start, ms since 1970-01-01 UTC.
    pub started_at_unix_ms: u64,
    /// The plan in force, its title included.
    pub plan: Plan,
    /// How the run ended.
    pub outcome: Outcome,
    /// The control connection.
    pub control: ControlView,
    /// The end that opened the control connection.
    pub client: EndView,
    /// The end that listened.
    pub server: EndView,
    /// The run's figures in one place: the sum over the directions.
    pub summary: SummaryView,
    /// Each direction.
    pub directions: Vec<DirectionView>,
    /// Whether the rate is what was wanted; absent where nothing was.
    pub expect: Option<Judgement>,
    /// Whether the rate is known as well as was asked for; absent where nothing was.
    pub precision: Option<PrecisionView>,
    /// What became of files; absent where none were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// Round trips of small messages before, under and after the load; absent where they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<WorkingLatency>,
    /// What was found, the verdict first.
    pub findings: Vec<Finding>,
    /// How likely each cause is by the runs that followed; absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
    /// The book.
    pub ledger: LedgerView,
    /// Each stream, both ends side by side.
    pub streams: Vec<StreamView>,
    /// What moved when, at the plan's interval.
    pub intervals: Vec<IntervalView>,
    /// The server's monotonic clock minus the client's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockPair>,
    /// Remarks on how the run went.
    pub notes: Vec<Note>,
}

/// The control connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ControlView {
    /// The writer's address and port.
    pub local: PlainText,
    /// The peer's address and port.
    pub remote: PlainText,
    /// Time that it took to open.
    pub connect_ns: Option<Nanos>,
    /// Its maximum segment size, bytes.
    pub mss_bytes: Option<u32>,
}

/// The book and how it came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerView {
    /// Whether every equation that could be tested holds; absent where none could be.
    pub balanced: Option<bool>,
    /// Equations that could be tested.
    pub equations: usize,
    /// Of them, those that hold.
    pub hold: usize,
    /// The pages.
    pub directions: Vec<DirectionLedger>,
}

impl RunView {
    /// The view of a record, by its evidence, and of what was found in it.
    pub fn of(evidence: &Evidence<'_>, findings: &[Finding]) -> Self {
        let record = evidence.record;
        let directions: Vec<DirectionView> = evidence
            .directions
            .iter()
            .map(|direction| DirectionView::of(record, direction, findings))
            .collect();
        Self {
            schema_version: record.schema_version,
            kind: record.kind,
            written_by: record.written_by,
            software: record.software.clone(),
            started_at_unix_ms: record.started_at_unix_ms,
            plan: record.plan.clone(),
            outcome: record.outcome.clone(),
            control: ControlView {
                local: record.control.local.clone(),
                remote: record.control.remote.clone(),
                connect_ns: record.control.connect_ns,
                mss_bytes: record.control.mss_bytes,
            },
            client: EndView::of(record, Role::Client),
            server: EndView::of(record, Role::Server),
            summary: SummaryView::of(record, &directions),
            expect: Judgement::of(evidence),
            precision: PrecisionView::of(evidence),
            transfer: Transfer::of(evidence.record),
            latency: WorkingLatency::of(record),
            findings: findings.to_vec(),
            diagnosis: None,
            ledger: LedgerView::of(evidence),
            streams: stream::views(record, evidence),
            intervals: intervals::views(record, evidence),
            clock: record.clock,
            notes: record.notes.clone(),
            directions,
        }
    }

    /// The client's or the server's view.
    pub fn end(&self, role: Role) -> &EndView {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }
}

impl LedgerView {
    fn of(evidence: &Evidence<'_>) -> Self {
        let directions = evidence.ledger.directions.clone();
        let checks = || directions.iter().flat_map(|direction| &direction.checks);
        let equations = checks().count();
        let hold = checks().filter(|check| check.holds).count();
        Self {
            balanced: (equations > 0).then_some(hold == equations),
            equations,
            hold,
            directions,
        }
    }
}
