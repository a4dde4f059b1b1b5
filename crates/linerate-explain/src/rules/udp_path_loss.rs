//! `udp-path-loss`: datagrams did not reach the receiver's socket.
//!
//! A limit from 0.1 % on, a note below (propose). Where the receiver does not tell what its socket
//! dropped, the loss is not put on the path.

use linerate_model::finding::{Finding, Quantity, Severity};

use linerate_model::units::BitRate;

use crate::command;
use crate::draft::limit_if;
use crate::facts::case::Case;
use crate::words;

/// From this share of the datagrams on a loss is more than noise.
const MATTERS: f64 = 1e-3;

/// How often the path's first queue, the sender's own, dropped meanwhile, whosever packets they were; it
/// counts a batch that segmentation offload would cut as one.
fn own_queue(case: &Case<'_>) -> String {
    let drops = || {
        let end = case.sender()?;
        let drops = end.qdisc_dropped().filter(|drops| *drops > 0)?;
        let interface = end.interface.as_ref()?;
        Some(format!(
            "; meanwhile the transmit queue of {}'s interface {} dropped {} times (a batch of datagrams counts once)",
            case.sending_host(),
            interface.name,
            words::count(drops)
        ))
    };
    drops().unwrap_or_default()
}

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let counts = case.direction.ledger.total.datagrams.as_ref()?;
    let sent = counts.sent.filter(|sent| *sent > 0)?;
    let known = counts.path_lost;
    let lost = known.or(counts.lost).filter(|lost| *lost > 0)?;
    let share = lost as f64 / sent as f64;
    let numbers = format!(
        "{} of {} datagrams ({})",
        words::count(lost),
        words::count(sent),
        words::percent(share)
    );
    let sentence = if known.is_some() {
        format!(
            "{numbers} were lost on the path, before the socket of {}{}",
            case.receiving_host(),
            own_queue(case)
        )
    } else {
        let who = case.receiving_host();
        let linerate = case.record().control.peer_software.is_some();
        let why = if case.receiver().is_none() && linerate {
            "its part of the record did not arrive".to_owned()
        } else if case.receiver().is_none() {
            let peer = case.record().control.stock_peer();
            format!("a stock {peer} does not report socket drops")
        } else {
            "its kernel does not report socket drops".to_owned()
        };
        format!(
            "{numbers} were lost, on the path or in the socket of {who}: {why}, so linerate cannot tell where"
        )
    };
    let severity = limit_if(share >= MATTERS);
    let draft = case
        .finding("udp-path-loss", severity, sentence)
        .sender(Quantity::Datagrams, sent)
        .receiver(Quantity::Lost, lost)
        .receiver("datagrams delivered", counts.delivered)
        .receiver(Quantity::Dropped, counts.socket_dropped)
        .sender(Quantity::RateSent, case.sent_bps());
    let delivered = counts.delivered? as f64 / sent as f64;
    let sent_bps = case.sent_bps().filter(|_| severity == Severity::Limit);
    let Some(bps) = sent_bps.filter(|_| delivered > 0.0) else {
        return draft.done();
    };
    let each = command::round_rate(0.9 * bps * delivered / case.streams());
    draft
        .again(|plan| {
            plan.rate_bps = Some(BitRate(each));
            plan.rate_is_default = false;
        })
        .done()
}
