//! `mtu-black-hole`: large segments vanish without a word, small ones pass.
//!
//! A stream of the sender had at least two timeouts (or is in the second one), nothing of its data was
//! acknowledged but what the cookie fits in, its segments are larger than 600 bytes, the kernel's path MTU did
//! not fall, and the control connection, whose segments are small, carried the results. Or: the same until the
//! kernel probed for a smaller segment by itself (`tcp_mtu_probing`), whereupon data passed.

use linerate_model::column::Column;
use linerate_model::finding::{Finding, Severity};
use linerate_model::record::{Flow, StreamRecord};
use linerate_model::remedy::Fix;

use crate::facts::case::{Case, capital};
use crate::words;

/// Segments of this size pass everywhere: IPv4 promises 576 bytes.
const SMALL_SEGMENT: u64 = 600;
/// One timeout may be a lost packet.
const TIMEOUTS: u64 = 2;
/// A segment size that fits what is left of 1280 bytes in IPv6.
const TRY_MSS: u16 = 1200;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    if case.udp() || !small_ones_pass(case) {
        return None;
    }
    let stream = case
        .sender()?
        .streams_of(case.direction.flow)
        .find(|stream| swallowed(stream, case.direction.flow))?;
    let facts = stream.tcp.as_ref()?;
    let sizes = stream.samples.column(Column::snd_mss_bytes)?;
    let (first, last) = (*sizes.first()?, *sizes.last()?);
    let came_through = if last < first {
        format!(
            ", until its kernel tried segments of {}",
            words::size(last as f64)
        )
    } else {
        ", while the control connection's small ones passed".to_owned()
    };
    let sentence = format!(
        "Segments of {} sent by {} vanish on the path without an ICMP message: {} timeouts and nothing \
         acknowledged{came_through}; probably a tunnel or link with a smaller MTU whose ICMP messages are filtered",
        words::size(first as f64),
        case.sending_host(),
        words::count(timeouts(stream)?),
    );
    case.finding("mtu-black-hole", Severity::Limit, capital(&sentence))
        .share(1.0)
        .sender("segment size at first, bytes", first)
        .sender("segment size at last, bytes", last)
        .sender("timeouts", timeouts(stream))
        .sender("acknowledged, cookie included, bytes", facts.bytes_acked)
        .sender("segments sent", facts.data_segs_out)
        .sender("kernel's path MTU, bytes", facts.pmtu_bytes)
        .sender_remedy(Fix::MtuProbing)
        .again(|plan| plan.mss_bytes = Some(TRY_MSS))
        .done()
}

/// The other half of the record, or the peer's results, came over the control connection after the test.
fn small_ones_pass(case: &Case<'_>) -> bool {
    let both = case.sender().is_some() && case.receiver().is_some();
    both || case.record().peer_results.is_some()
}

fn timeouts(stream: &StreamRecord) -> Option<u64> {
    let facts = stream.tcp.as_ref()?;
    facts.total_rto.or(facts.retransmits)
}

/// Whether nothing of the stream's data was acknowledged as long as its segments were as large as at first.
fn swallowed(stream: &StreamRecord, flow: Flow) -> bool {
    judge_stream(stream, flow).unwrap_or(false)
}

fn judge_stream(stream: &StreamRecord, flow: Flow) -> Option<bool> {
    let samples = &stream.samples;
    let sizes = samples.column(Column::snd_mss_bytes)?;
    let first = *sizes.first()?;
    let large = sizes.iter().take_while(|size| **size == first).count();
    let acked = *samples.column(Column::bytes_acked)?.get(large - 1)?;
    let around = match flow {
        Flow::ClientToServer => stream.cookie_bytes,
        Flow::ServerToClient => 0,
    } + u64::from(stream.active_opener);
    let told = samples.column(Column::pmtu_bytes)?;
    let until = large.min(told.len() - 1);
    let silent = told[until] >= told[0];
    Some(first > SMALL_SEGMENT && acked <= around && silent && timeouts(stream)? >= TIMEOUTS)
}
