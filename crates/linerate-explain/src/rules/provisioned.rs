//! `provisioned`: what was delivered against the rate that was bought (`--provisioned`), below or above.
//!
//! Sellers count differently: payload, IP packets, or the whole line with preamble, frames and gaps. Less than was
//! bought arrives where even the whole line is more than 1 % below it; more does where the payload alone is more
//! than 1 % above it; between the two it is as bought, by one count or another. The 95 % interval decides, so a
//! run whose rate wavers is not held against a rate. What a token bucket let pass before it was empty is told
//! apart: the plateau is judged, not the average.

use std::fmt::Write as _;

use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::End;
use linerate_model::units::Nanos;

use crate::draft::CaseDraft;
use crate::facts::case::Case;
use crate::words;

/// A rate this much off is as bought: clocks, rounding and a policer's own tolerance.
const TOLERANCE: f64 = 0.01;
/// An average this many times the plateau shows a burst at the beginning.
const BURST: f64 = 1.05;
/// A run shorter than this may lie in the burst that a bucket lets pass, ns.
const LONG: u64 = 60_000_000_000;

/// What the payload's rate is by other counts.
struct Counts {
    line: f64,
    ip: f64,
}

/// The answer.
enum Delivered {
    Below,
    AsBought,
    Above,
}

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let bought = case.plan().provisioned_bps?.bits_per_second() as f64;
    let plateau = case.direction.plateau?;
    let rate = plateau.estimate.mean;
    let [low, high] = [plateau.estimate.low, plateau.estimate.high];
    if plateau.unsteady.is_some() || !high.is_finite() || rate <= 0.0 {
        let draft = cannot_be_told(case, bought, "the rate was not steady");
        return draft.next(longer(case)).done();
    }
    let counts = match counts(case) {
        Ok(counts) => counts,
        Err(why) => return cannot_be_told(case, bought, why).done(),
    };
    let delivered = if high * counts.line < (1.0 - TOLERANCE) * bought {
        Delivered::Below
    } else if low > (1.0 + TOLERANCE) * bought {
        Delivered::Above
    } else {
        Delivered::AsBought
    };
    let mut sentence = sentence(case, bought, rate, &counts, &delivered);
    let burst = burst_bytes(case, rate);
    if let Some(bytes) = burst {
        let _ = write!(
            sentence,
            "; about {} passed before that at a higher rate, as a token bucket allows",
            words::size(bytes)
        );
    }
    let short = case.direction.span_ns < LONG;
    let next = (short && matches!(delivered, Delivered::Above)).then(|| longer(case));
    case.finding("provisioned", Severity::Note, sentence)
        .sender("contracted rate, bit/s", bought)
        .sender("rate with IP's and TCP's headers, bit/s", rate * counts.ip)
        .sender("rate on the line, bit/s", rate * counts.line)
        .sender("burst before the plateau, bytes", burst)
        .rate()
        .next(next)
        .done()
}

fn sentence(
    case: &Case<'_>,
    bought: f64,
    rate: f64,
    counts: &Counts,
    delivered: &Delivered,
) -> String {
    let by_count = format!(
        "{} of payload is {} of IP packets and {} on the line",
        words::rate(rate),
        words::rate(rate * counts.ip),
        words::rate(rate * counts.line)
    );
    let bought_rate = words::rate(bought);
    match delivered {
        Delivered::Below => {
            let asked = case
                .asked()
                .filter(|asked| *asked * counts.line < bought)
                .map_or_else(String::new, |asked| {
                    format!(
                        "; the test requested only {}, so whether more is delivered was not tested",
                        words::rate(asked)
                    )
                });
            format!(
                "{} below the contracted {bought_rate}: {by_count}{asked}",
                words::percent(1.0 - rate * counts.line / bought)
            )
        }
        Delivered::Above => {
            let why = if case.direction.span_ns < LONG {
                "a token bucket may not be empty yet: only a longer run shows whether the rate is enforced"
            } else {
                "the rate is not enforced, or the contracted rate is higher than given"
            };
            format!(
                "{} above the contracted {bought_rate}, even counting payload only: {by_count}; {why}",
                words::percent(rate / bought - 1.0)
            )
        }
        Delivered::AsBought => format!("As contracted ({bought_rate}): {by_count}"),
    }
}

fn cannot_be_told<'a>(case: &'a Case<'_>, bought: f64, why: &str) -> CaseDraft<'a> {
    let sentence = format!(
        "Cannot tell whether the contracted {} is delivered: {why}",
        words::rate(bought)
    );
    case.finding("provisioned", Severity::Note, sentence)
}

/// How many times its payload a packet is, as IP and as the line count it; why it is not known.
fn counts<'a>(case: &Case<'a>) -> Result<Counts, &'a str> {
    let framing = case.direction.framing.as_ref().map_err(String::as_str)?;
    let payload = framing.payload as f64;
    let line = framing.wire() as f64;
    Ok(Counts {
        ip: (line - framing.ethernet as f64) / payload,
        line: line / payload,
    })
}

/// What came before the plateau above its rate, bytes.
fn burst_bytes(case: &Case<'_>, plateau_bps: f64) -> Option<f64> {
    let direction = case.direction;
    let from = direction.plateau?.from;
    let before = direction.rates_bps.get(..from)?;
    let step = direction.grid_step_ns as f64 / 1e9;
    let more: f64 = before
        .iter()
        .map(|rate| (rate - plateau_bps) * step / 8.0)
        .sum();
    let average = linerate_analysis::statistics::mean(before);
    (average > BURST * plateau_bps).then_some(more)
}

/// The same for long enough that a bucket is empty.
fn longer(case: &Case<'_>) -> String {
    case.again(|plan| {
        if !matches!(plan.end, End::TimeNs(span) if span.0 >= LONG) {
            plan.end = End::TimeNs(Nanos(LONG));
        }
    })
}
