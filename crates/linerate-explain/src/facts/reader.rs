//! Whether the receiving program leaves data unread although it could read it.
//!
//! A program that reads as fast as it can leaves data in its socket only while its thread computes or waits for a CPU. For
//! the rest of the time in which data lay there, it did not want it: the program is the limit, whatever windows and round
//! trips show. They mislead: the kernel acknowledges late what nobody reads, so that round trips grow as behind a queue.

use linerate_analysis::statistics::mean;
use linerate_model::column::Column;
use linerate_model::record::StreamRecord;

use crate::facts::case::Case;

/// Less than so many segments unread may have come just now.
const SEGMENTS: u64 = 2;
/// Data lay unread for so much of the time in which the program could have read it. Measured: 0.7 to 0.9 with a slow
/// reader, 0 where the path or the window is the limit.
const LEAVES: f64 = 0.5;
/// Fewer samples than these show nothing.
const ENOUGH: usize = 50;

/// Whether it does so for half of the time or more.
pub(crate) fn leaves_data(case: &Case<'_>) -> bool {
    leaves(case).is_some_and(|share| share >= LEAVES)
}

/// Share of the plateau with data unread and the reading thread idle, at least; `None` where the receiver does not tell.
pub(crate) fn leaves(case: &Case<'_>) -> Option<f64> {
    if case.udp() || case.next_door() {
        return None;
    }
    let role = case.direction.flow.receiver();
    let threads = case.threads(role)?;
    // On the receiver's clock.
    let [from, to] = case.direction.plateau_span_ns()?;
    let segments = SEGMENTS * case.path().mss_bytes?;
    let lies = |stream: &StreamRecord| {
        let unread = stream.samples.column(Column::unread_bytes)?;
        let within = stream.samples.at_ns().iter().zip(unread);
        let within: Vec<f64> = within
            .filter(|(at, _)| (from..=to).contains(*at))
            .map(|(_, bytes)| f64::from(u8::from(*bytes > segments)))
            .collect();
        (within.len() >= ENOUGH).then(|| mean(&within))
    };
    let all: Option<Vec<f64>> = case
        .receiver()?
        .streams_of(case.direction.flow)
        .map(lies)
        .collect();
    let all = all.filter(|shares| !shares.is_empty())?;
    Some(mean(&all) - threads.computes - threads.waits)
}
