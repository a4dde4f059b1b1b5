//! `slow-start`: the ramp took so much of the run that the average hides the plateau.
//!
//! The ramp is more than 15 % of the run and the whole run's rate at least 10 % below the plateau's; a
//! cut that changes nothing is no ramp.

use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::End;
use linerate_model::units::Nanos;

use crate::case::Case;
use crate::limit::Limit;
use crate::words;

const LONG: f64 = 0.15;
const HIDES: f64 = 0.90;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let direction = case.direction;
    let ramp = direction.ramp_ns()?;
    let share = ramp as f64 / direction.span_ns.max(1) as f64;
    let plateau = direction.plateau?.estimate.mean;
    let whole = direction.whole_run_bps()?;
    if case.udp() || case.limit == Some(Limit::Asked) || share <= LONG || whole >= HIDES * plateau {
        return None;
    }
    let sentence = format!(
        "The ramp took {}, {} of the run: the average of the whole run ({}) hides the plateau ({})",
        words::seconds(ramp),
        words::percent(share),
        words::rate(whole),
        words::rate(plateau)
    );
    let seconds = (ramp / 1_000_000_000 + 1).saturating_mul(10).clamp(30, 600);
    case.finding("slow-start", Severity::Note, sentence)
        .share(share)
        .figures([
            case.sender_figure("ramp, ns", Some(ramp as f64)),
            case.sender_figure("whole run, bit/s", Some(whole)),
            case.rate_figure(),
        ])
        .next(case.again(|plan| plan.end = End::TimeNs(Nanos::from_millis(seconds * 1000))))
        .done()
}
