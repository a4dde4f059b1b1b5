//! `unstable`: no single figure describes the run.
//!
//! The plateau's own judgement (`statistics::plateau`): it begins in the second half, or its halves differ;
//! either way by more than 10 % and more than their intervals explain. Not said of a rate that was asked for, nor where the first cause is one that makes a rate waver (loss,
//! marks, a stall, a shaper, an early end of slow start, a run over before the end of it, a ramp without loss up to a window, waits for room in a send buffer or for a CPU): that is said already. Nor, while the parts differ
//! by less than 40 %, of two directions that are full at once.

use linerate_analysis::statistics::{Unsteady, mean, mser5};
use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::facts::limit::Limit;
use crate::facts::slices;
use crate::phrases;
use crate::words;

/// Two parts of a run within this ratio of one another are what two directions do to each other.
const SHARED: f64 = 0.6;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let plateau = case.direction.plateau?;
    let reason = plateau
        .unsteady
        .filter(|reason| *reason != Unsteady::TooShort)?;
    if case.limit == Some(Limit::Asked)
        || plateau.estimate.mean <= 0.0
        || waits_at_home(case)
        || grows_back(case)
        || (reason == Unsteady::LateSettling && opens_up(case))
    {
        return None;
    }
    let rates = &case.direction.rates_bps;
    // The two parts that the judgement compared.
    let (rates, cut, names) = if reason == Unsteady::LateSettling {
        let names = ["before it settled, bit/s", "after it settled, bit/s"];
        (rates.as_slice(), mser5(rates)?, names)
    } else {
        let names = [
            "first half of the plateau, bit/s",
            "second half of the plateau, bit/s",
        ];
        let rest = rates.get(plateau.from..)?;
        (rest, rest.len() / 2, names)
    };
    let (first, second) = rates.split_at(cut);
    let (first, second) = (mean(first), mean(second));
    if first.min(second) >= SHARED * first.max(second) && shares_with_the_other_way(case) {
        return None;
    }
    let (before, after) = (words::rate(first), words::rate(second));
    let varied = if reason == Unsteady::LateSettling {
        format!(
            "The rate did not settle in the first half of the run ({before} before it settled, {after} after)"
        )
    } else {
        format!("The two halves of the plateau differ by more than 10 % ({before}, then {after})")
    };
    let sentence = format!("{varied}; no single figure describes this run");
    case.finding("unstable", Severity::Note, sentence)
        .figure(names[0], first, case.rate_place())
        .figure(names[1], second, case.rate_place())
        .three_times_as_long()
        .done()
}

/// Whether the rate wavers because its sender waits for something of its own host.
fn waits_at_home(case: &Case<'_>) -> bool {
    (case.limit == Some(Limit::SendBuffer) && case.waits_for_room().is_some())
        || waits_for_a_cpu(case)
}

/// Threads that wait for a CPU so much of the time are held back by a quota or by other programs.
const WAITS: f64 = 0.25;

/// Whether the rate is what others leave of a CPU.
fn waits_for_a_cpu(case: &Case<'_>) -> bool {
    let flow = case.direction.flow;
    let role = match case.limit {
        Some(Limit::SenderCpu) => flow.sender(),
        Some(Limit::ReceiverCpu) => flow.receiver(),
        _ => return false,
    };
    phrases::run_delay(case, role).is_some_and(|share| share >= WAITS)
}

/// Whether data goes both ways at once and fills both: each direction's acknowledgements wait in the queue of the
/// other's data and come in bunches, so that the rates waver.
fn shares_with_the_other_way(case: &Case<'_>) -> bool {
    let other = case
        .evidence
        .directions
        .iter()
        .find(|other| other.flow != case.direction.flow);
    other.is_some_and(|other| {
        case.full().is_some() && Case::new(case.evidence, other).full().is_some()
    })
}

/// Whether the rate rose, without a loss, until a window or a buffer stopped it: a ramp that took most of a short run.
fn opens_up(case: &Case<'_>) -> bool {
    matches!(
        case.limit,
        Some(Limit::SendBuffer | Limit::ReceiveWindow | Limit::ReceiverApplication)
    ) && case.path().retransmits == Some(0)
}

/// Whether it is the congestion control that wavers, on a path that it fills: whenever a queue stood the path
/// carried about the same, so the low rates are those without a queue, on the way back from a loss.
fn grows_back(case: &Case<'_>) -> bool {
    case.full().is_some()
        && slices::of(case)
            .and_then(|slices| slices::capacity(case, slices))
            .is_some_and(|capacity| capacity.steady)
}
