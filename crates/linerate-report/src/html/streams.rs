//! Each stream at both ends, and what moved in each interval.

use linerate_model::plan::Protocol;
use linerate_model::record::Flow;
use linerate_model::units::Bytes;

use crate::markup::Markup;
use crate::text::way;
use crate::view::{RunView, StreamEndView, StreamView};
use crate::words::{count, micros, rate};

/// More intervals than this are left to the JSON document.
const MOST_INTERVALS: usize = 2000;

pub(super) fn write(body: &mut Markup, view: &RunView) {
    if !view.streams.is_empty() {
        streams(body, view);
    }
    if !view.intervals.is_empty() {
        intervals(body, view);
    }
}

fn head(body: &mut Markup, columns: &[&str]) {
    body.open("div", &[("class", "wide")]);
    body.open("table", &[]);
    body.open("thead", &[]);
    body.open("tr", &[]);
    for column in columns {
        body.element("th", &[("scope", "col")], column);
    }
    body.close("tr");
    body.close("thead");
    body.open("tbody", &[]);
}

fn foot(body: &mut Markup) {
    body.close("tbody");
    body.close("table");
    body.close("div");
}

fn known(value: Option<String>) -> String {
    value.unwrap_or_else(|| "not known".to_owned())
}

fn streams(body: &mut Markup, view: &RunView) {
    body.open("section", &[("class", "streams")]);
    body.element("h2", &[], "Streams");
    let tcp = view.plan.protocol == Protocol::Tcp;
    let mut columns = vec!["Stream", "Client", "Server", "Bytes"];
    columns.extend(if tcp {
        ["Retransmits", "RTT mean", "Congestion control", "MSS"]
    } else {
        ["Lost", "Reordered", "Duplicated", "Jitter"]
    });
    columns.extend(["Send buffer", "Receive buffer", "Samples", "Remarks"]);
    head(body, &columns);
    for stream in &view.streams {
        let arrow = match stream.flow {
            Flow::ClientToServer => "→",
            Flow::ServerToClient => "←",
        };
        body.open("tr", &[]);
        body.element(
            "th",
            &[("scope", "row"), ("title", way(stream.flow))],
            &format!("{} {arrow}", stream.id),
        );
        body.element("td", &[], &stream.client_address);
        body.element("td", &[], &stream.server_address);
        let mut cells = vec![known(stream.bytes.map(count))];
        cells.extend(if tcp {
            transport(stream)
        } else {
            datagrams(stream)
        });
        let buffer = |end: &Option<StreamEndView>, of: fn(&StreamEndView) -> Option<u64>| {
            known(
                end.as_ref()
                    .and_then(of)
                    .map(|bytes| Bytes(bytes).to_string()),
            )
        };
        cells.push(buffer(&stream.sender, |end| end.send_buffer_bytes));
        cells.push(buffer(&stream.receiver, |end| end.receive_buffer_bytes));
        let samples = |end: &Option<StreamEndView>| {
            end.as_ref()
                .and_then(|end| end.samples)
                .map_or_else(|| "none".to_owned(), |samples| count(samples as u64))
        };
        cells.push(format!(
            "{}, {}",
            samples(&stream.sender),
            samples(&stream.receiver)
        ));
        for cell in cells {
            body.element("td", &[("class", "number")], &cell);
        }
        body.element("td", &[], &remarks(stream));
        body.close("tr");
    }
    foot(body);
    body.element("p", &[("class", "about")], "Buffers as granted, at the sender and at the receiver; samples at the sender, at the receiver.");
    body.close("section");
}

fn transport(stream: &StreamView) -> [String; 4] {
    [
        known(stream.retransmits.map(count)),
        known(stream.rtt_us.map(micros)),
        known(stream.congestion.as_deref().map(str::to_owned)),
        known(stream.mss_bytes.map(|mss| format!("{mss} B"))),
    ]
}

fn datagrams(stream: &StreamView) -> [String; 4] {
    let counts = stream.datagrams.as_ref();
    [
        known(counts.and_then(|counts| counts.lost).map(count)),
        known(counts.and_then(|counts| counts.reordered).map(count)),
        known(counts.and_then(|counts| counts.duplicated).map(count)),
        known(
            stream
                .jitter_ns
                .map(|jitter| linerate_model::units::Nanos(jitter).to_string()),
        ),
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
            remarks.push(format!("{name}: only its total, as a stock peer told it"));
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

fn intervals(body: &mut Markup, view: &RunView) {
    body.open("section", &[("class", "intervals")]);
    body.open("details", &[]);
    body.element(
        "summary",
        &[],
        &format!("Intervals ({})", view.intervals.len()),
    );
    head(body, &["Direction", "From, s", "To, s", "Bytes", "Rate"]);
    for interval in view.intervals.iter().take(MOST_INTERVALS) {
        body.open("tr", &[]);
        body.element("td", &[], way(interval.flow));
        let seconds = |ns: u64| format!("{:.2}", ns as f64 / 1e9);
        for cell in [
            seconds(interval.from_ns),
            seconds(interval.to_ns),
            count(interval.bytes),
            known(interval.bps.map(rate)),
        ] {
            body.element("td", &[("class", "number")], &cell);
        }
        body.close("tr");
    }
    foot(body);
    if view.intervals.len() > MOST_INTERVALS {
        body.element(
            "p",
            &[],
            &format!(
                "and {} more, which `linerate show --json` lists",
                view.intervals.len() - MOST_INTERVALS
            ),
        );
    }
    body.close("details");
    body.close("section");
}
