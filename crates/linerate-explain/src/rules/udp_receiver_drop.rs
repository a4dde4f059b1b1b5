//! `udp-receiver-drop`: the receiver's socket was full; the path had delivered.
//!
//! Any datagram that the receiving kernel counts as dropped at the socket (`SO_RXQ_OVFL`): a limit from
//! 0.1 % of what was sent on, a note below (propose).

use linerate_model::finding::{Finding, Quantity};
use linerate_model::remedy::Fix;
use linerate_model::units::Bytes;

use crate::draft::limit_if;
use crate::facts::case::{Case, capital};
use crate::words;

const MATTERS: f64 = 1e-3;
/// The least buffer that is worth a try, bytes.
const LEAST_TRY: u64 = 4 << 20;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let counts = case.direction.ledger.total.datagrams.as_ref()?;
    let sent = counts.sent.filter(|sent| *sent > 0)?;
    let dropped = counts.socket_dropped.filter(|dropped| *dropped > 0)?;
    let share = dropped as f64 / sent as f64;
    let receiver = case.direction.flow.receiver();
    let buffer = case
        .receiver()?
        .streams_of(case.direction.flow)
        .filter_map(|stream| stream.receive_buffer_bytes)
        .max();
    let of = buffer.map_or_else(String::new, |bytes| {
        format!(" of {}", words::size(bytes as f64))
    });
    let sentence = format!(
        "{} of {} datagrams ({}) were dropped in the receiver's socket, after the path had delivered them: {} did \
         not read its buffer{of} in time",
        words::count(dropped),
        words::count(sent),
        words::percent(share),
        case.receiving_host()
    );
    let enough = buffer
        .unwrap_or(0)
        .saturating_mul(4)
        .max(LEAST_TRY)
        .next_power_of_two()
        .min(256 << 20);
    let severity = limit_if(share >= MATTERS);
    let draft = case
        .finding("udp-receiver-drop", severity, capital(&sentence))
        .sender(Quantity::Datagrams, sent)
        .receiver(Quantity::Dropped, dropped)
        .receiver("receive buffer, bytes", buffer)
        .receiver(
            "CPU share of the receiving threads",
            case.cpu_share(receiver),
        )
        .receiver("growth of RcvbufErrors on the host", rcvbuf_errors(case));
    let refused = case
        .receiver()?
        .host
        .rmem_max
        .is_some_and(|most| most < enough);
    let draft = if refused {
        draft.remedy(receiver, Fix::ReceiveBufferLimit(Bytes(enough)))
    } else {
        draft.remedy(receiver, Fix::Window(Some(Bytes(enough))))
    };
    draft
        .again(|plan| plan.window_bytes = Some(Bytes(enough)))
        .done()
}

/// The kernel keeps one count for each address family.
fn rcvbuf_errors(case: &Case<'_>) -> Option<f64> {
    let growth = &case.receiver()?.protocol_growth;
    let counts = ["Udp.RcvbufErrors", "Udp6.RcvbufErrors"];
    counts
        .iter()
        .filter_map(|name| growth.get(*name))
        .map(|count| *count as f64)
        .reduce(|a, b| a + b)
}
