//! A TCP direction's charts: what both kernels told of each stream.
//!
//! Names are those of `struct tcp_info` (include/uapi/linux/tcp.h). The segments in flight are counted as the
//! kernel does (`tcp_packets_in_flight`, include/net/tcp.h): sent and not acknowledged, less those acknowledged
//! selectively or believed lost, plus those sent again.

use linerate_model::column::Column;

use super::collect::{Ground, Sampled};
use super::{Chart, Line, Panel, Shape, Stroke, Unit};

/// `snd_ssthresh` while none is set (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u64 = 0x7fff_ffff;
/// `tcpi_min_rtt` while none was measured.
const NOT_MEASURED: u64 = u32::MAX as u64;
/// More streams than this have a chart for each end.
const TOGETHER: usize = 2;

pub(super) fn charts(ground: &Ground<'_>) -> Vec<Chart> {
    let mut charts = rates(ground);
    charts.push(congestion_window(ground));
    charts.push(in_flight(ground));
    charts.push(round_trips(ground));
    charts.push(retransmits(ground));
    charts.push(buffers(ground));
    charts
}

/// What moved at each end, each stream.
fn rates(ground: &Ground<'_>) -> Vec<Chart> {
    let lines = |of: &[Sampled<'_>],
                 column: Column,
                 kind: usize,
                 what: &str,
                 stroke: Stroke|
     -> Vec<Line> {
        of.iter()
            .map(|stream| {
                stream.line(
                    kind,
                    what,
                    stroke,
                    Shape::Step,
                    stream.windowed(ground, column, Some(8_000_000_000)),
                )
            })
            .collect()
    };
    let window = ground.window();
    if ground.sender.len().max(ground.receiver.len()) <= TOGETHER {
        let mut both = lines(
            &ground.receiver,
            Column::app_bytes,
            0,
            "read",
            Stroke::Plain,
        );
        both.extend(lines(
            &ground.sender,
            Column::bytes_acked,
            1,
            "acknowledged",
            Stroke::Dashed,
        ));
        let about = format!(
            "Payload read by the receiving application, and acknowledged at the sending kernel; mean over {window}"
        );
        return vec![ground.chart(
            Panel::Streams,
            "Rate of each stream, both ends",
            about,
            Unit::Rate,
            both,
        )];
    }
    let read = lines(&ground.receiver, Column::app_bytes, 0, "", Stroke::Plain);
    let acknowledged = lines(&ground.sender, Column::bytes_acked, 0, "", Stroke::Plain);
    vec![
        ground.chart(
            Panel::StreamsRead,
            "Rate of each stream at the receiver",
            format!("Payload read by the receiving application; mean over {window}"),
            Unit::Rate,
            read,
        ),
        ground.chart(
            Panel::StreamsAcknowledged,
            "Rate of each stream at the sender",
            format!("Payload acknowledged at the sending kernel; mean over {window}"),
            Unit::Rate,
            acknowledged,
        ),
    ]
}

fn congestion_window(ground: &Ground<'_>) -> Chart {
    let mut lines = Vec::new();
    for stream in &ground.sender {
        let window =
            stream.segments_as_bytes(Column::snd_cwnd_packets, |_, segments| Some(segments));
        lines.push(stream.line(0, "congestion window", Stroke::Plain, Shape::Curve, window));
        let threshold = stream.segments_as_bytes(Column::snd_ssthresh_packets, |_, segments| {
            (segments < NO_THRESHOLD).then_some(segments)
        });
        lines.push(stream.line(1, "ssthresh", Stroke::Dotted, Shape::Step, threshold));
    }
    let about = "The sending kernel's congestion window and slow-start threshold (none until the first loss or exit of slow start), segments times segment size".to_owned();
    ground.chart(
        Panel::CongestionWindow,
        "Congestion window and ssthresh",
        about,
        Unit::Bytes,
        lines,
    )
}

fn in_flight(ground: &Ground<'_>) -> Chart {
    let mut lines = Vec::new();
    for stream in &ground.sender {
        let column = |column: Column| stream.stream.samples.column(column);
        let (sacked, lost, again) = (
            column(Column::sacked_packets),
            column(Column::lost_packets),
            column(Column::retrans_packets),
        );
        let at = |column: Option<&[u64]>, row: usize| {
            column
                .and_then(|values| values.get(row).copied())
                .unwrap_or(0)
        };
        let flight = stream.segments_as_bytes(Column::unacked_packets, |row, sent| {
            Some(
                sent.saturating_sub(at(sacked, row))
                    .saturating_sub(at(lost, row))
                    .saturating_add(at(again, row)),
            )
        });
        lines.push(stream.line(0, "in flight", Stroke::Plain, Shape::Curve, flight));
        let window = stream.gauge(Column::snd_wnd_bytes, |_, bytes| Some(bytes));
        lines.push(stream.line(1, "receive window", Stroke::Dotted, Shape::Step, window));
    }
    let about = "Sent and not yet acknowledged, as the sending kernel counts it, compared with the window that the \
        receiver last advertised".to_owned();
    ground.chart(
        Panel::InFlight,
        "Bytes in flight and receive window",
        about,
        Unit::Bytes,
        lines,
    )
}

fn round_trips(ground: &Ground<'_>) -> Chart {
    let mut lines = Vec::new();
    for stream in &ground.sender {
        let known = |_: usize, us: u64| (us > 0 && us < NOT_MEASURED).then_some(us);
        lines.push(stream.line(
            0,
            "smoothed",
            Stroke::Plain,
            Shape::Curve,
            stream.gauge(Column::rtt_us, known),
        ));
        lines.push(stream.line(
            1,
            "least",
            Stroke::Dotted,
            Shape::Step,
            stream.gauge(Column::min_rtt_us, known),
        ));
    }
    let about = "Smoothed round-trip time of the sending kernel (RFC 6298), and the minimum of its filter window".to_owned();
    ground.chart(Panel::Rtt, "Round-trip time", about, Unit::Micros, lines)
}

fn retransmits(ground: &Ground<'_>) -> Chart {
    let lines = ground
        .sender
        .iter()
        .map(|stream| {
            stream.line(
                0,
                "",
                Stroke::Filled,
                Shape::Step,
                stream.windowed(ground, Column::total_retrans_packets, None),
            )
        })
        .collect();
    let about = format!("Segments retransmitted, in each {}", ground.window());
    ground.chart(Panel::Retransmits, "Retransmits", about, Unit::Count, lines)
}

fn buffers(ground: &Ground<'_>) -> Chart {
    let mut lines = Vec::new();
    for stream in &ground.sender {
        let unsent = stream.gauge(Column::notsent_bytes, |_, bytes| Some(bytes));
        lines.push(stream.line(0, "not yet sent", Stroke::Plain, Shape::Curve, unsent));
    }
    for stream in &ground.receiver {
        let unread = stream.gauge(Column::unread_bytes, |_, bytes| Some(bytes));
        lines.push(stream.line(1, "unread", Stroke::Dashed, Shape::Curve, unread));
    }
    let about =
        "In the sender's buffer and not yet sent; received and not yet read by the application"
            .to_owned();
    ground.chart(
        Panel::Buffers,
        "Waiting in the socket buffers",
        about,
        Unit::Bytes,
        lines,
    )
}
