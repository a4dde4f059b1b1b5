//! Where the time went and where the rate went.

use linerate_analysis::evidence::{DirectionEvidence, KernelClocks};
use linerate_analysis::time_budget::{Class, TimeBudget};
use linerate_analysis::waterfall::{LineRate, StepKind, Waterfall};
use linerate_model::observation::Clocks;
use linerate_model::record::RunRecord;
use serde::Serialize;

use crate::words;

/// One, in millionths.
const WHOLE: u64 = 1_000_000;

/// Where the time of the sending streams went over the plateau; shares of 0 to 1 in whole millionths, those of
/// the seven classes add to one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BudgetView {
    /// Nothing to send, or held to the rate asked for.
    pub application: f64,
    /// The send buffer was full of what was in flight.
    pub send_buffer: f64,
    /// The peer's receive window was full.
    pub receive_window: f64,
    /// The congestion window was full and the path was not.
    pub congestion_window: f64,
    /// Lost segments were being repaired.
    pub recovery: f64,
    /// Waiting for the retransmission timer, or for acknowledgements that did not come.
    pub timeout: f64,
    /// The path was full.
    pub filling_path: f64,
    /// The network: the last four together.
    pub network: f64,
    /// Time of all sending streams that was classified, ns.
    pub time_ns: u64,
    /// The samples that it rests on, ns since the sender was let go.
    pub span_ns: [u64; 2],
    /// What the kernel's clocks alone say (elapsed less `busy_time`, `sndbuf_limited`, `rwnd_limited`, the rest of
    /// `busy_time`); absent where they do not tell.
    pub kernel_clocks: Option<Clocks>,
}

/// The rate of a direction over time, on an even grid of at most 1000 steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RatesView {
    /// Begin of the first step, ns since the measuring end was let go.
    pub from_ns: u64,
    /// Length of a step, ns.
    pub step_ns: u64,
    /// Rate of all streams together in each step, bit/s, where the direction's goodput is measured.
    pub bps: Vec<u64>,
}

/// From the line's rate to goodput; the line less all steps is the goodput, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaterfallView {
    /// Where it begins, bit/s on the wire.
    pub line_bps: u64,
    /// What that rate is.
    pub line: LineRate,
    /// What took how much, in order.
    pub steps: Vec<StepView>,
    /// Goodput of the plateau, bit/s.
    pub plateau_bps: u64,
    /// Goodput of the whole run, bit/s.
    pub goodput_bps: u64,
}

/// One step of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepView {
    /// What took it.
    pub step: StepKind,
    /// How much, bit/s; negative where it gave.
    pub bps: i64,
    /// What is left after it, bit/s.
    pub left_bps: u64,
    /// What the figure rests on.
    pub source: String,
}

impl BudgetView {
    /// The share of a class, 0 to 1.
    pub fn share(&self, class: Class) -> f64 {
        match class {
            Class::Application => self.application,
            Class::SendBuffer => self.send_buffer,
            Class::ReceiveWindow => self.receive_window,
            Class::CongestionWindow => self.congestion_window,
            Class::Recovery => self.recovery,
            Class::Timeout => self.timeout,
            Class::FillingPath => self.filling_path,
        }
    }

    pub(super) fn of(record: &RunRecord, evidence: &DirectionEvidence) -> Option<Self> {
        let budget: &TimeBudget = evidence.budget.as_ref().ok()?;
        let start = record.end(evidence.flow.sender())?.start_ns.0;
        let parts = budget.times.parts_of(WHOLE);
        let share = |class: Class| parts[class as usize] as f64 / WHOLE as f64;
        let network = Class::ALL.into_iter().filter(|class| class.network());
        let network: u64 = network.map(|class| parts[class as usize]).sum();
        Some(Self {
            application: share(Class::Application),
            send_buffer: share(Class::SendBuffer),
            receive_window: share(Class::ReceiveWindow),
            congestion_window: share(Class::CongestionWindow),
            recovery: share(Class::Recovery),
            timeout: share(Class::Timeout),
            filling_path: share(Class::FillingPath),
            network: network as f64 / WHOLE as f64,
            time_ns: budget.times.total(),
            span_ns: budget.span_ns.map(|at| at.saturating_sub(start)),
            kernel_clocks: evidence.clocks.as_ref().ok().and_then(finite),
        })
    }
}

/// Shares that JSON can hold; `None` where one is not.
fn finite(clocks: &KernelClocks) -> Option<Clocks> {
    Some(Clocks {
        application: words::finite(clocks.application)?,
        send_buffer: words::finite(clocks.send_buffer)?,
        receive_window: words::finite(clocks.receive_window)?,
        network: words::finite(clocks.network)?,
    })
}

impl RatesView {
    pub(super) fn of(record: &RunRecord, evidence: &DirectionEvidence) -> Option<Self> {
        let role = evidence.measured_at.end(evidence.flow);
        let start = record.end(role)?.start_ns.0;
        (!evidence.rates_bps.is_empty()).then(|| Self {
            from_ns: evidence.grid_from_ns.saturating_sub(start),
            step_ns: evidence.grid_step_ns,
            bps: evidence
                .rates_bps
                .iter()
                .copied()
                .map(words::whole)
                .collect(),
        })
    }
}

impl WaterfallView {
    pub(super) fn of(evidence: &DirectionEvidence) -> Option<Self> {
        let waterfall: &Waterfall = evidence.waterfall.as_ref().ok()?;
        let mut left = waterfall.line_bps;
        let steps = waterfall.steps.iter().map(|step| {
            left = left.saturating_add_signed(step.bps.saturating_neg());
            StepView {
                step: step.kind,
                bps: step.bps,
                left_bps: left,
                source: step.source.clone(),
            }
        });
        Some(Self {
            line_bps: waterfall.line_bps,
            line: waterfall.line,
            steps: steps.collect(),
            plateau_bps: waterfall.plateau_bps,
            goodput_bps: waterfall.goodput_bps,
        })
    }
}
