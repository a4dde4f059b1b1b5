//! A TCP direction's charts: what both kernels told of each stream.
//!
//! Names are those of `struct tcp_info` (include/uapi/linux/tcp.h). The segments in flight are counted as the
//! kernel does (`tcp_packets_in_flight`, include/net/tcp.h): sent and not acknowledged, less those acknowledged
//! selectively or believed lost, plus those sent again.

use linerate_model::column::Column;

use super::collect::{Ground, Sampled};
use super::{Chart, Line, Panel, Shape, Stroke};

/// `snd_ssthresh` while none is set (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u64 = 0x7fff_ffff;
/// `tcpi_min_rtt` while none was measured.
const NOT_MEASURED: u64 = u32::MAX as u64;
/// More streams than this have a chart for each end.
const TOGETHER: usize = 2;

pub(super) fn charts(ground: &Ground<'_>) -> Vec<Chart> {
    let mut charts = rates(ground);
    let others = [
        congestion_window,
        in_flight,
        round_trips,
        retransmits,
        buffers,
    ];
    charts.extend(others.map(|chart| chart(ground)));
    charts
}

/// What moved at each end, each stream.
fn rates(ground: &Ground<'_>) -> Vec<Chart> {
    let lines = |of: &[Sampled<'_>], column: Column, kind: usize, what: &str, stroke: Stroke| {
        let rate = |stream: &Sampled<'_>| stream.rate_line(ground, column, kind, what, stroke);
        of.iter().map(rate).collect::<Vec<Line>>()
    };
    let (sender, receiver) = (&ground.sender, &ground.receiver);
    let (read, acked) = (Column::app_bytes, Column::bytes_acked);
    let window = ground.window();
    if sender.len().max(receiver.len()) <= TOGETHER {
        let mut both = lines(receiver, read, 0, "read", Stroke::Plain);
        both.extend(lines(sender, acked, 1, "acknowledged", Stroke::Dashed));
        let about = format!(
            "Payload read by the receiving application, and acknowledged at the sending kernel; mean over {window}"
        );
        return vec![ground.chart(Panel::Streams, about, both)];
    }
    vec![
        ground.chart(
            Panel::StreamsRead,
            format!("Payload read by the receiving application; mean over {window}"),
            lines(receiver, read, 0, "", Stroke::Plain),
        ),
        ground.chart(
            Panel::StreamsAcknowledged,
            format!("Payload acknowledged at the sending kernel; mean over {window}"),
            lines(sender, acked, 0, "", Stroke::Plain),
        ),
    ]
}

fn congestion_window(ground: &Ground<'_>) -> Chart {
    let lines = ground.sender.iter().flat_map(|stream| {
        let set = |_, segments| (segments < NO_THRESHOLD).then_some(segments);
        let window = stream.segments_as_bytes(Column::snd_cwnd_packets, any);
        let threshold = stream.segments_as_bytes(Column::snd_ssthresh_packets, set);
        [
            stream.line(0, "congestion window", Stroke::Plain, Shape::Curve, window),
            stream.line(1, "ssthresh", Stroke::Dotted, Shape::Step, threshold),
        ]
    });
    let about = "The sending kernel's congestion window and slow-start threshold (none until the first loss or exit of slow start), segments times segment size";
    ground.chart(Panel::CongestionWindow, about, lines)
}

fn in_flight(ground: &Ground<'_>) -> Chart {
    let lines = ground.sender.iter().flat_map(|stream| {
        let column = |column: Column| stream.stream.samples.column(column).unwrap_or_default();
        let sacked = column(Column::sacked_packets);
        let lost = column(Column::lost_packets);
        let again = column(Column::retrans_packets);
        let at = |values: &[u64], row: usize| values.get(row).copied().unwrap_or(0);
        let flight = stream.segments_as_bytes(Column::unacked_packets, |row, sent| {
            let left = sent
                .saturating_sub(at(sacked, row))
                .saturating_sub(at(lost, row));
            Some(left.saturating_add(at(again, row)))
        });
        let window = stream.gauge(Column::snd_wnd_bytes, any);
        [
            stream.line(0, "in flight", Stroke::Plain, Shape::Curve, flight),
            stream.line(1, "receive window", Stroke::Dotted, Shape::Step, window),
        ]
    });
    let about = "Sent and not yet acknowledged, as the sending kernel counts it, compared with the window that the \
         receiver last advertised";
    ground.chart(Panel::InFlight, about, lines)
}

fn round_trips(ground: &Ground<'_>) -> Chart {
    let lines = ground.sender.iter().flat_map(|stream| {
        let known = |_, us| (us > 0 && us < NOT_MEASURED).then_some(us);
        let [smoothed, least] =
            [Column::rtt_us, Column::min_rtt_us].map(|column| stream.gauge(column, known));
        [
            stream.line(0, "smoothed", Stroke::Plain, Shape::Curve, smoothed),
            stream.line(1, "least", Stroke::Dotted, Shape::Step, least),
        ]
    });
    let about = "Smoothed round-trip time of the sending kernel (RFC 6298), and the minimum of its filter window";
    ground.chart(Panel::Rtt, about, lines)
}

fn retransmits(ground: &Ground<'_>) -> Chart {
    let lines = ground.sender.iter().map(|stream| {
        let again = stream.windowed(ground, Column::total_retrans_packets, None);
        stream.line(0, "", Stroke::Filled, Shape::Step, again)
    });
    let about = format!("Segments retransmitted, in each {}", ground.window());
    ground.chart(Panel::Retransmits, about, lines)
}

fn buffers(ground: &Ground<'_>) -> Chart {
    let unsent = ground.sender.iter().map(|stream| {
        let unsent = stream.gauge(Column::notsent_bytes, any);
        stream.line(0, "not yet sent", Stroke::Plain, Shape::Curve, unsent)
    });
    let unread = ground.receiver.iter().map(|stream| {
        let unread = stream.gauge(Column::unread_bytes, any);
        stream.line(1, "unread", Stroke::Dashed, Shape::Curve, unread)
    });
    let about =
        "In the sender's buffer and not yet sent; received and not yet read by the application";
    ground.chart(Panel::Buffers, about, unsent.chain(unread))
}

/// A value that always means something.
#[expect(clippy::unnecessary_wraps, reason = "a gauge may know nothing")]
const fn any(_: usize, value: u64) -> Option<u64> {
    Some(value)
}
