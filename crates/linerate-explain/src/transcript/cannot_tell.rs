//! `cannot-tell`: the output holds no evidence of a cause.

use std::fmt::Write as _;

use linerate_model::finding::{Figure, Finding, Severity};
use linerate_model::transcript::{Given, Side, Span, Tool};
use linerate_model::units::whole;

use super::digest::Digest;
use super::{ethernet, ramp};
use crate::draft::Draft;

/// Below this share of a line nothing says that the line is the right one.
const ON_LINE: f64 = 0.8;

pub(super) fn judge(digest: &Digest<'_>, given: &Given) -> Option<Finding> {
    let bps = digest.settled()?;
    let mut figures = vec![Figure::new("rate, bit/s", bps, "all streams")];
    let mut sentence = String::new();
    if let Some(line) = digest
        .test
        .mss_bytes
        .and_then(|mss| ethernet::above(bps, mss, digest.headers()))
        .filter(|line| bps >= ON_LINE * line.bps)
    {
        sentence = format!(
            "{} is {:.1} % of what {} carries {} ({:.0} Mbit/s); ",
            digest.rate(bps),
            bps / line.bps * 100.0,
            line.line,
            line.how,
            line.bps / 1e6
        );
        figures.push(Figure::new(
            "payload that the line carries, bit/s",
            line.bps,
            line.line,
        ));
    }
    let windows = digest
        .test
        .rows
        .iter()
        .any(|row| row.span == Span::Interval && row.window_bytes.is_some());
    let lost = digest.received.and_then(|row| row.datagrams?.lost);
    let why = match (digest.test.tool, digest.test.side) {
        _ if digest.is_udp() && lost == Some(0) => {
            "no datagram was lost, and the requested rate is not printed".to_owned()
        }
        _ if digest.is_udp() => {
            "the output has no received count, or no total of all streams".to_owned()
        }
        _ if digest.is_sctp() => {
            "it is SCTP, of which iperf3 prints neither retransmits nor windows".to_owned()
        }
        _ if windows => "the congestion window varies and there are no retransmits".to_owned(),
        (_, Some(Side::Server)) => {
            "the receiver's output has neither retransmits nor the congestion window".to_owned()
        }
        (Tool::Iperf2, _) => {
            "iperf 1 and 2 print only the sender's rate, no retransmits and no congestion window"
                .to_owned()
        }
        _ => "these rows have no congestion window".to_owned(),
    };
    let rate = digest.rate(bps);
    let _ = if ramp::buffer_carries(bps, given) {
        write!(
            sentence,
            "{rate} is what the given buffer carries at the given RTT; the output alone does not show whether the \
             buffer was the limit: {why}"
        )
    } else {
        write!(
            sentence,
            "the output does not show what limits {rate}: {why}"
        )
    };
    let seconds = whole(digest.seconds().unwrap_or(10.0)).clamp(10, 600);
    Draft::new("cannot-tell", Severity::Note, sentence)
        .figures(figures)
        .next(format!("linerate test {} -t {seconds}", digest.host()))
        .done()
}
