//! A run in one line, for a server's log.

use linerate_model::record::Outcome;
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::way;
use crate::view::{DirectionView, RunView};

/// Who, which way, how much, how fast, and how it ended.
pub(super) fn one_line(view: &RunView) -> String {
    let directions: Vec<String> = view.directions.iter().map(direction).collect();
    let outcome = match &view.outcome {
        Outcome::Completed => String::new(),
        Outcome::Interrupted => "; the server was stopped".to_owned(),
        Outcome::PeerInterrupted => "; the client stopped it".to_owned(),
        Outcome::Failed { error } => format!("; failed: {error}"),
    };
    format!(
        "{}, {}{outcome}",
        view.control.remote,
        directions.join(", ")
    )
}

fn direction(direction: &DirectionView) -> String {
    let figures = &direction.figures;
    let known = figures
        .bytes
        .zip(figures.span_ns)
        .zip(figures.whole_run_bps);
    let text = known.map_or_else(
        || "nothing was measured".to_owned(),
        |((bytes, span), rate)| format!("{} in {}, {}", Bytes(bytes), Nanos(span), BitRate(rate)),
    );
    format!("{}: {text}", way(direction.flow))
}
