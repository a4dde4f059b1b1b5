//! A UDP direction's charts: what was sent, what arrived, what did not.

use linerate_analysis::delay::{DelaySpan, Delays};
use linerate_model::column::Column;
use linerate_model::units::{Nanos, whole};

use super::collect::{Ground, Sampled};
use super::{Chart, Line, Panel, Point, Shape, Stroke};

pub(super) fn charts(ground: &Ground<'_>, delays: Option<&Delays>) -> Vec<Chart> {
    let delays = delays.map(|delays| delay(ground, delays));
    [rates(ground), losses(ground)]
        .into_iter()
        .chain(delays)
        .collect()
}

fn rates(ground: &Ground<'_>) -> Chart {
    let rate = |kind, what, stroke| {
        move |stream: &Sampled<'_>| stream.rate_line(ground, Column::app_bytes, kind, what, stroke)
    };
    let received = ground
        .receiver
        .iter()
        .map(rate(0, "received", Stroke::Plain));
    let sent = ground.sender.iter().map(rate(1, "sent", Stroke::Dashed));
    let about = format!(
        "Payload handed to the sending kernel, and read by the receiving application; mean over {}",
        ground.window()
    );
    ground.chart(Panel::Streams, about, received.chain(sent))
}

fn losses(ground: &Ground<'_>) -> Chart {
    let mut lines = Vec::new();
    for stream in &ground.receiver {
        let points = missing(ground, stream);
        lines.push(stream.line(0, "not delivered", Stroke::Filled, Shape::Step, points));
        for (kind, column, what) in [
            (1, Column::socket_drops, "dropped in the receiver's socket"),
            (2, Column::reordered, "reordered"),
            (3, Column::duplicates, "duplicated"),
        ] {
            let points = stream.windowed(ground, column, None);
            if points.iter().any(|point| point.value > Some(0)) {
                lines.push(stream.line(kind, what, Stroke::Dashed, Shape::Step, points));
            }
        }
    }
    let about = format!(
        "Datagrams in each {}: counters passed by and not seen (late ones come back later), and what became of others",
        ground.window()
    );
    ground.chart(Panel::Datagrams, about, lines)
}

fn delay(ground: &Ground<'_>, delays: &Delays) -> Chart {
    let role = ground.flow.receiver();
    let line = |name: &str, colour, stroke, of: fn(&DelaySpan) -> u64| {
        let value = |span: &DelaySpan| Some(of(span) / 1000);
        let spans = delays.over_time.iter();
        let begins = spans.clone().map(|span| Point {
            at_ns: ground.axis.at(role, span.from_ns),
            value: value(span),
        });
        let end = spans.last().map(|span| Point {
            at_ns: ground.axis.at(role, span.to_ns),
            value: value(span),
        });
        Line::steps(name, colour, stroke, begins.chain(end).collect())
    };
    let lines = [
        line("largest", 3, Stroke::Dashed, |span| span.spread.most_ns),
        line("99 %", 1, Stroke::Plain, |span| span.spread.p99_ns),
        line("median", 0, Stroke::Strong, |span| span.spread.median_ns),
        line("lowest", 2, Stroke::Plain, |span| span.spread.least_ns),
    ];
    let from = "From the stamp that the sender writes to when the receiving application has read the datagram";
    match &delays.one_way {
        Some(one_way) => {
            let uncertainty = Nanos(one_way.uncertainty_ns);
            let about = format!(
                "{from}; all values may be off by the same amount, at most ±{uncertainty}, and are exact if both directions take equally long"
            );
            ground.chart(Panel::Delay, about, lines)
        }
        None => Chart {
            title: "Delay above the fastest datagram",
            ..ground.chart(Panel::Delay, from.to_owned(), lines)
        },
    }
}

/// What the highest counter grew by, less what was seen for the first time.
fn missing(ground: &Ground<'_>, stream: &Sampled<'_>) -> Vec<Point> {
    let highest = stream.windowed(ground, Column::highest, None);
    let seen = stream.windowed(ground, Column::unique, None);
    highest
        .into_iter()
        .zip(seen)
        .map(|(highest, seen)| Point {
            value: highest
                .value
                .zip(seen.value)
                .map(|(all, seen)| whole(all as f64 - seen as f64)),
            ..highest
        })
        .collect()
}
