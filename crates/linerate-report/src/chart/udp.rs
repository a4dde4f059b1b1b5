//! A UDP direction's charts: what was sent, what arrived, what did not.

use linerate_model::column::Column;
use linerate_model::units::whole;

use super::collect::{Ground, Sampled};
use super::{Chart, Panel, Point, Shape, Stroke};

pub(super) fn charts(ground: &Ground<'_>) -> Vec<Chart> {
    vec![rates(ground), losses(ground)]
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
