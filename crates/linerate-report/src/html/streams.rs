//! Each stream at both ends, and what moved in each interval.

use linerate_model::plan::Protocol;
use linerate_model::units::{Bytes, Nanos};
use maud::{Markup, html};

use crate::markup;
use crate::text::{arrow, way};
use crate::view::{RunView, StreamEndView, StreamView};
use crate::words::{count, known, micros, rate};

/// More intervals than this are left to the JSON document.
const MOST_INTERVALS: usize = 2000;

pub(super) fn sections(view: &RunView) -> Markup {
    html! {
        @if !view.streams.is_empty() { (streams(view)) }
        @if !view.intervals.is_empty() { (intervals(view)) }
    }
}

fn streams(view: &RunView) -> Markup {
    let protocol = view.plan.protocol;
    let mut columns = vec!["Stream", "Client", "Server", "Bytes"];
    columns.extend_from_slice(match protocol {
        Protocol::Tcp => &["Retransmits", "RTT mean", "Congestion control", "MSS"],
        Protocol::Udp => &["Lost", "Reordered", "Duplicated", "Jitter"],
        // Nothing of the kernel's is read.
        Protocol::Sctp => &[],
    });
    columns.extend(["Send buffer", "Receive buffer", "Samples", "Remarks"]);
    let rows = html! {
        @for stream in &view.streams {
            tr {
                th scope="row" title=(way(stream.flow)) { (stream.id) " " (arrow(stream.flow)) }
                td { (stream.client_address) }
                td { (stream.server_address) }
                @for cell in cells(stream, protocol) { td class="number" { (cell) } }
                td { (remarks(stream)) }
            }
        }
    };
    html! {
        section class="streams" {
            h2 { "Streams" }
            (markup::table(&columns, 0..0, &rows))
            p class="about" {
                "Buffers as granted, at the sender and at the receiver; samples at the sender, at the receiver."
            }
        }
    }
}

fn cells(stream: &StreamView, protocol: Protocol) -> Vec<String> {
    let [sender, receiver] = [&stream.sender, &stream.receiver].map(Option::as_ref);
    let buffer = |bytes: Option<u64>| known(bytes, |bytes| Bytes(bytes).to_string());
    let samples = |end: Option<&StreamEndView>| {
        let samples = end.and_then(|end| end.samples);
        samples.map_or_else(|| "none".to_owned(), |samples| count(samples as u64))
    };
    let mut cells = vec![known(stream.bytes, count)];
    match protocol {
        Protocol::Tcp => cells.extend(transport(stream)),
        Protocol::Udp => cells.extend(datagrams(stream)),
        Protocol::Sctp => {}
    }
    cells.push(buffer(sender.and_then(|end| end.send_buffer_bytes)));
    cells.push(buffer(receiver.and_then(|end| end.receive_buffer_bytes)));
    cells.push(format!("{}, {}", samples(sender), samples(receiver)));
    cells
}

fn transport(stream: &StreamView) -> [String; 4] {
    [
        known(stream.retransmits, count),
        known(stream.rtt_us, micros),
        known(stream.congestion.as_deref(), str::to_owned),
        known(stream.mss_bytes, |mss| format!("{mss} B")),
    ]
}

fn datagrams(stream: &StreamView) -> [String; 4] {
    let counts = stream.datagrams.as_ref();
    [
        known(counts.and_then(|counts| counts.lost), count),
        known(counts.and_then(|counts| counts.reordered), count),
        known(counts.and_then(|counts| counts.duplicated), count),
        known(stream.jitter_ns, |jitter| Nanos(jitter).to_string()),
    ]
}

/// What went wrong with it, or bounds what is known of it.
fn remarks(stream: &StreamView) -> String {
    let mut remarks = Vec::new();
    for (name, end) in [("sender", &stream.sender), ("receiver", &stream.receiver)] {
        let Some(end) = end else {
            remarks.push(format!("{name}: not known"));
            continue;
        };
        if end.told_by_peer {
            remarks.push(format!(
                "{name}: only its total, as a stock peer reported it"
            ));
        }
        if end.drained == Some(false) {
            remarks.push(format!("{name}: cut off before all was through"));
        }
        remarks.extend(
            end.thinned
                .filter(|factor| *factor > 1)
                .map(|factor| format!("{name}: one sample in {factor} was kept")),
        );
        remarks.extend(end.error.as_ref().map(|error| format!("{name}: {error}")));
    }
    remarks.join("; ")
}

fn intervals(view: &RunView) -> Markup {
    let seconds = |ns: u64| format!("{:.2}", ns as f64 / 1e9);
    let rows = html! {
        @for interval in view.intervals.iter().take(MOST_INTERVALS) {
            tr {
                td { (way(interval.flow)) }
                td class="number" { (seconds(interval.from_ns)) }
                td class="number" { (seconds(interval.to_ns)) }
                td class="number" { (count(interval.bytes)) }
                td class="number" { (known(interval.bps, rate)) }
            }
        }
    };
    html! {
        section class="intervals" {
            details {
                summary { "Intervals (" (view.intervals.len()) ")" }
                (markup::table(&["Direction", "From, s", "To, s", "Bytes", "Rate"], 0..0, &rows))
                @if let Some(more @ 1..) = view.intervals.len().checked_sub(MOST_INTERVALS) {
                    p { "and " (more) " more, which `linerate show --json` lists" }
                }
            }
        }
    }
}
