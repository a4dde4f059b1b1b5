//! `counter-wrap`: a total that a 32-bit counter may have cut.
//!
//! iperf 1 and early iperf 2 count bytes in 32 bits; nothing in their layout tells them from later ones, so only
//! the kernel's own count makes it a fault. A total above 2^32, intervals that add up to it, a
//! version that is printed, or digits of newer versions show that the counter is wider.

use std::fmt::Write as _;

use linerate_model::finding::{Figure, Finding, Quantity, Severity};
use linerate_model::transcript::{Given, Layout, Row, Span, Tool};
use linerate_model::units::{Bytes, grouped, whole};

use super::digest::Digest;
use super::ethernet;
use crate::draft::Draft;

/// Where the counter begins again, bytes.
pub(super) const WRAP: f64 = 4_294_967_296.0;
/// Up to this rate candidates are listed where no link is given, bit/s.
const FASTEST: f64 = 1e9;
/// More candidates are not listed.
const MOST: u64 = 64;

pub(super) fn judge(digest: &Digest<'_>, given: &Given) -> Option<Finding> {
    let test = digest.test;
    let total = digest.total.filter(|row| row.seconds() > 0.0)?;
    let wide = test.rows.iter().any(|row| row.bytes.low() >= WRAP)
        || test.rows.iter().any(|row| row.span == Span::Interval)
        || test.version.is_some()
        || total.end_s.half < 0.04
        || matches!(test.layout, Layout::Json | Layout::JsonStream);
    let newest = test.connections.iter().any(|one| one.id == 1);
    if wide || newest || test.tool != Tool::Iperf2 || total.bytes.value >= WRAP {
        return None;
    }
    let fastest = given.link.map_or(FASTEST, |link| link.0 as f64);
    let step = WRAP * 8.0 / total.seconds();
    let most = ((fastest - total.bps.value) / step).floor();
    // At less than one wrap within the link's rate there is only one candidate.
    if most < 1.0 || ethernet::filled(total.bps.value, None, digest.headers(), 0.006).is_some() {
        return None;
    }
    Some(wrapped(digest, total, whole(most).min(MOST), given))
}

fn wrapped(digest: &Digest<'_>, total: &Row, most: u64, given: &Given) -> Finding {
    let exact = total.bytes.half == 0.0;
    let (bytes, half) = best(total);
    let place = format!("line {}", total.line);
    let candidate = |k: u64| bytes + k as f64 * WRAP;
    let amount = |value: f64| {
        if exact {
            format!("{} bytes", grouped(whole(value)))
        } else {
            Bytes(whole(value)).to_string()
        }
    };
    let mut sentence = format!(
        "{} in {:.0} s may come from a 32-bit counter (iperf 1 and early iperf 2 print this layout; later versions, \
         with 64-bit counters, do too). If so, the true total is this plus k × 2^32 bytes, {} and {:.2} Mbit/s for k \
         = 0 to {} and {:.2} Mbit/s for k = {most}",
        amount(total.bytes.value),
        total.seconds(),
        amount(bytes),
        bytes * 8.0 / total.seconds() / 1e6,
        amount(candidate(most)),
        candidate(most) * 8.0 / total.seconds() / 1e6,
    );
    if !exact {
        let _ = write!(
            sentence,
            "; {} is printed to ± {}; the printed rate narrows it to ± {} of {}, so each candidate's rate is known \
             to ± {:.2} Mbit/s",
            amount(total.bytes.value),
            Bytes(whole(total.bytes.half)),
            Bytes(whole(half)),
            amount(bytes),
            half * 8.0 / total.seconds() / 1e6
        );
    }
    let mut severity = Severity::Note;
    if let Some(kernel) = given.kernel_bytes {
        let (words, wrapped) = confirmed(kernel, bytes, half);
        sentence.push_str(&words);
        if wrapped {
            severity = Severity::Fault;
        }
    } else {
        sentence.push_str("; the kernel's byte count shows which one (--kernel-bytes)");
    }
    let figures = (0..=most).map(|k| {
        let value = candidate(k);
        let quantity = Quantity::IfWrapped {
            times: k,
            bytes: whole(value),
            exact,
        };
        Figure::new(quantity, value * 8.0 / total.seconds() / 1e6, &place)
    });
    let (host, seconds) = (digest.host(), total.seconds());
    Draft::new("counter-wrap", severity, sentence)
        .figures(figures)
        .next(format!("linerate test {host} -t {seconds:.0}"))
        .finding
}

/// The amount, narrowed by the rate where that was printed with more digits; and half its uncertainty.
fn best(total: &Row) -> (f64, f64) {
    let slack = total.start_s.half + total.end_s.half;
    let from_rate = |bps: f64, seconds: f64| bps * seconds / 8.0;
    let low = total
        .bytes
        .low()
        .max(from_rate(total.bps.low(), total.seconds() - slack));
    let high = total
        .bytes
        .high()
        .min(from_rate(total.bps.high(), total.seconds() + slack));
    if total.bytes.half == 0.0 || low > high {
        return (total.bytes.value, total.bytes.half);
    }
    (f64::midpoint(low, high), (high - low) / 2.0)
}

/// Which k the kernel's count confirms, and whether that shows that the counter wrapped.
fn confirmed(kernel: Bytes, bytes: f64, half: f64) -> (String, bool) {
    let counted = kernel.count() as f64;
    let k = ((counted - bytes) / WRAP).round().max(0.0);
    let off = (counted - bytes - k * WRAP).abs();
    if off <= half + 1e-4 * counted.max(1.0) {
        let off = if off < 1e6 {
            format!("{:.1} kB", off / 1e3)
        } else {
            Bytes(whole(off)).to_string()
        };
        let words = format!(
            "; the kernel's count of {} bytes confirms k = {k:.0} within {off}",
            grouped(kernel.count())
        );
        (words, k >= 1.0)
    } else {
        let words = format!(
            "; the kernel's count of {} bytes matches no candidate: it is {} from the nearest, k = {k:.0}",
            grouped(kernel.count()),
            Bytes(whole(off))
        );
        (words, false)
    }
}
