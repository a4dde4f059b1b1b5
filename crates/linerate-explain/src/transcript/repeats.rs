//! `cannot-tell`: segments are repeated and the window follows, which has more than one cause.

use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::{Span, Stream};
use linerate_model::units::{Bytes, grouped, whole};

use super::digest::Digest;
use crate::draft::Draft;

pub(super) fn judge(digest: &Digest<'_>) -> Option<Finding> {
    let rows = || {
        digest
            .test
            .rows
            .iter()
            .filter(|row| row.span == Span::Interval && row.stream != Stream::Sum)
    };
    let by_rows: u64 = rows()
        .filter_map(|row| row.retransmits)
        .fold(0, u64::saturating_add);
    let printed = digest.total.and_then(|row| row.retransmits);
    let repeated = printed.unwrap_or(by_rows);
    if repeated == 0 {
        return None;
    }
    let windows: Vec<f64> = rows()
        .filter_map(|row| row.window_bytes)
        .map(|size| size.value)
        .collect();
    let low = windows.iter().copied().fold(f64::INFINITY, f64::min);
    let high = windows.iter().copied().fold(0.0, f64::max);
    // An interval without the column, as a receiver prints it, says nothing.
    let told: Vec<u64> = rows().filter_map(|row| row.retransmits).collect();
    let all = told.len();
    let with = told.iter().filter(|count| **count > 0).count();
    let segments = if repeated == 1 {
        "1 segment was retransmitted".to_owned()
    } else {
        format!("{} segments were retransmitted", grouped(repeated))
    };
    let window = if windows.len() > 1 && high > low {
        format!(
            " and the congestion window follows ({} to {})",
            Bytes(whole(low)),
            Bytes(whole(high))
        )
    } else {
        String::new()
    };
    let sentence = if all == 0 {
        format!(
            "{segments} in total; the output does not show whether they limited the rate, or the cause of the losses \
             (-i 1 at the sender shows when)"
        )
    } else if windows.len() > 1 && high <= low {
        format!(
            "{segments}, in {with} of {all} intervals, but the congestion window stays at {}: loss is not the limit",
            Bytes(whole(low))
        )
    } else {
        format!(
            "{segments}, in {with} of {all} intervals{window}: loss is the limit, from congestion or a policer; the \
             output does not show which"
        )
    };
    let known = !windows.is_empty();
    Draft::new("cannot-tell", Severity::Note, sentence)
        .figure("segments retransmitted", repeated, "sender")
        .figure(
            "largest congestion window, bytes",
            known.then_some(high),
            "sender",
        )
        .figure(
            "smallest congestion window, bytes",
            known.then_some(low),
            "sender",
        )
        .next(format!("linerate test {} -t 60", digest.host()))
        .done()
}
