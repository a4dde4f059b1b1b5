//! What is advised where a window, a buffer or a thread limits, and the rate to expect then.

use linerate_model::plan::Plan;
use linerate_model::record::Role;
use linerate_model::remedy::{BufferSizes, Fix};
use linerate_model::units::Bytes;

use crate::draft::CaseDraft;
use crate::facts::case::Case;
use crate::facts::limit;
use crate::facts::repeats;

/// A buffer is advised within these bounds, bytes.
pub(crate) const LEAST_BUFFER: u64 = 128 << 10;

pub(crate) const MOST_BUFFER: u64 = 1 << 30;

/// A buffer that does not limit: twice the bandwidth-delay product of each stream (of the link where it
/// is known, else of the rate) and at least twice what there is, as a power of two of at least 128 KiB. Where the
/// link is not known it is one step on the way: what it gives can still be told from this run.
pub(crate) fn enough_bytes(case: &Case<'_>, now: Option<f64>) -> Option<u64> {
    let rtt = case.path().rtt_us?;
    let bandwidth = case.rate()?.max(case.link_bps().unwrap_or(0.0)) / case.streams();
    let need = (2.0 * bandwidth * rtt / 8e6).max(2.0 * now.unwrap_or(0.0));
    let bytes = crate::words::whole(need.ceil()).clamp(LEAST_BUFFER, MOST_BUFFER);
    Some(bytes.next_power_of_two())
}

/// The rate to expect where the bound that holds it becomes `factor` times as large, bit/s, and what limits
/// then: the window carries in proportion until the link, or what loss allows, is reached.
pub(crate) fn widened(
    case: &Case<'_>,
    factor: f64,
    bound: &'static str,
) -> Option<(f64, &'static str)> {
    let rate = case.rate()?;
    let link = limit::link_payload_bps(case).map(|bps| (bps, "the link"));
    let loss = repeats::loss_bound_bps(case).map(|bps| (bps.max(rate), "loss"));
    [Some((rate * factor, bound)), link, loss]
        .into_iter()
        .flatten()
        .reduce(|a, b| if b.0 < a.0 { b } else { a })
}

/// The same test without buffers asked for.
pub(crate) fn autotuned(plan: &mut Plan) {
    plan.window_bytes = None;
}

/// The three values of `tcp_rmem` or `tcp_wmem` that leave room for `bytes` of payload; half of a buffer is
/// counted as overhead.
pub(crate) fn three_values(now: Option<[u64; 3]>, bytes: u64) -> BufferSizes {
    BufferSizes {
        first: now.map(|[least, initial, _]| [least, initial]),
        most: bytes.saturating_mul(2),
    }
}

/// Bytes that a buffer holds, with those that lie past it.
pub(crate) fn held(buffer: u64, past: u64) -> f64 {
    buffer.saturating_add(past).max(1) as f64
}

/// The rate to expect with the three values of [`three_values`] in place of `now`: in proportion to the largest and
/// the bytes that lie `past` it in either case.
pub(crate) fn expect_wider<'a>(
    draft: CaseDraft<'a>,
    now: Option<[u64; 3]>,
    bytes: u64,
    past: u64,
    bound: &'static str,
) -> CaseDraft<'a> {
    let factor = now.map(|[_, _, most]| held(bytes.saturating_mul(2), past) / held(most, past));
    let wider = factor
        .filter(|factor| *factor > 1.0)
        .and_then(|factor| widened(draft.about, factor, bound));
    match wider {
        Some((rate, then)) => draft.expected(rate, 0.15, then),
        None => draft,
    }
}

/// The largest buffers that a program may ask for, of the receiver and of the sender.
fn grants(case: &Case<'_>) -> [Option<u64>; 2] {
    [
        case.receiver().and_then(|end| end.host.rmem_max),
        case.sender().and_then(|end| end.host.wmem_max),
    ]
}

/// The same test with `-w`, where both hosts would grant it; else with more streams, each with a window of its own.
pub(crate) fn ask_for(draft: CaseDraft<'_>, bytes: u64) -> CaseDraft<'_> {
    let case = draft.about;
    let mut grants = grants(case).into_iter().flatten();
    if grants.any(|most| most < bytes) {
        let streams = case.plan().streams.saturating_mul(4).min(32);
        return draft.again(|plan| plan.streams = streams);
    }
    draft.again(|plan| plan.window_bytes = Some(Bytes(bytes)))
}

/// A window of this many times the one that was asked for is worth asking for.
pub(crate) const WORTH_ASKING: f64 = 1.5;

/// The remedy where a window was asked for (`-w`): a larger one, in proportion to which the rate grows (with the bytes
/// that lie `past` it), where both hosts grant it; else none, since autotuning is not bound by what a program may ask for.
pub(crate) fn ask_for_more<'a>(
    draft: CaseDraft<'a>,
    host: Role,
    past: u64,
    bound: &'static str,
) -> CaseDraft<'a> {
    let case = draft.about;
    let limits = grants(case);
    let granted = limits.into_iter().flatten().min();
    let asked = case.plan().window_bytes.map(Bytes::count);
    let more = || {
        let granted = granted.filter(|_| limits.iter().all(Option::is_some))?;
        let now = asked.map(|asked| asked.min(granted))?;
        let wanted = enough_bytes(case, Some(now as f64))?.min(granted);
        // The kernel doubles what is asked for.
        let factor = held(wanted.saturating_mul(2), past) / held(now.saturating_mul(2), past);
        let (rate, then) = widened(case, factor, bound)?;
        (factor >= WORTH_ASKING).then_some((wanted, rate, then))
    };
    match more() {
        Some((wanted, rate, then)) => draft
            .remedy(host, Fix::Window(Some(Bytes(wanted))))
            .expected(rate, 0.15, then),
        None => draft.remedy(host, Fix::Window(None)),
    }
}
