//! The rate at which the sending application sent.

use linerate_model::plan::{Plan, Protocol};
use linerate_model::record::{Flow, RunRecord, StreamRecord};

/// What it wrote from its first byte to its last, and one interval between two blocks, since n blocks take n intervals
/// at the rate asked for, bit/s. Without the sender's half of the record, what the peer's results say.
pub(crate) fn rate_bps(record: &RunRecord, flow: Flow) -> Option<f64> {
    let Some(end) = record.end(flow.sender()) else {
        return told_bps(record, flow);
    };
    let bytes: f64 = end
        .streams_of(flow)
        .map(|stream| stream.app_bytes.saturating_sub(stream.omitted_bytes) as f64)
        .sum();
    let begin = |stream: &StreamRecord| stream.omit_until_ns.or(stream.first_byte_ns);
    let from = end.streams_of(flow).filter_map(begin).min()?;
    let to = end
        .streams_of(flow)
        .filter_map(|stream| stream.last_byte_ns)
        .max()?;
    let span_ns = to.since(from).0 as f64;
    let span_ns = span_ns + block_interval_ns(&record.plan, bytes, span_ns);
    (span_ns > 0.0).then(|| bytes * 8e9 / span_ns)
}

fn told_bps(record: &RunRecord, flow: Flow) -> Option<f64> {
    let told = &record.peer_results.as_ref()?.streams;
    let streams = record.end(flow.receiver())?.streams_of(flow);
    let rate = |stream: &StreamRecord| {
        let told = told.iter().find(|told| told.id == stream.id)?;
        (told.end_time_s > 0.0).then(|| told.bytes as f64 * 8.0 / told.end_time_s)
    };
    streams.map(rate).sum()
}

/// Time between two blocks of a stream, ns: at the rate asked for, else as they were sent.
fn block_interval_ns(plan: &Plan, bytes: f64, span_ns: f64) -> f64 {
    let block = plan.block_bytes.count() as f64;
    let streams = f64::from(plan.streams.max(1));
    if let Some(rate) = plan.rate_bps.map(|rate| rate.bits_per_second() as f64) {
        if rate <= 0.0 {
            return 0.0;
        }
        // A paced TCP sender writes a millisecond of traffic at a time, at most a block.
        let written = if plan.protocol == Protocol::Udp {
            block
        } else {
            block.min((rate / 8e3).max(1448.0))
        };
        return written * 8e9 / rate;
    }
    let blocks = bytes / block.max(1.0) / streams;
    if blocks >= 2.0 {
        span_ns / (blocks - 1.0)
    } else {
        0.0
    }
}
