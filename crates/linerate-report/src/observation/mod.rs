//! An observation as text, JSON and lines of progress: what each connection did, and why it was not faster.

mod document;
mod page;
mod progress;

use linerate_analysis::evidence::Evidence;
use linerate_model::finding::Finding;
use linerate_model::observation::{Connection, Observation, Sighting};
use linerate_model::record::RecordError;

use crate::json;
use crate::view::{DirectionView, IntervalView, LedgerView, RunView};

pub use progress::Watching;

/// Connections beyond these, in the order of what they moved, are listed without being explained.
const MOST_EXPLAINED: usize = 256;

/// An observation as it is shown.
#[derive(Debug)]
pub struct ObservationView<'a> {
    observation: &'a Observation,
    /// Those that moved most first.
    connections: Vec<ConnectionView<'a>>,
}

/// A connection as it is shown.
#[derive(Debug)]
struct ConnectionView<'a> {
    connection: &'a Connection,
    /// Absent where it moved too little to explain it.
    explained: Option<Explained>,
}

/// What the rules made of a connection.
#[derive(Debug)]
struct Explained {
    directions: Vec<DirectionView>,
    findings: Vec<Finding>,
    ledger: LedgerView,
    intervals: Vec<IntervalView>,
}

impl<'a> ObservationView<'a> {
    /// The view; `explain` is asked for the findings of each connection that moved enough.
    pub fn of(
        observation: &'a Observation,
        explain: &mut dyn FnMut(&Evidence<'_>) -> Vec<Finding>,
    ) -> Self {
        let mut connections: Vec<ConnectionView<'a>> = observation
            .connections
            .iter()
            .map(|connection| ConnectionView {
                connection,
                explained: None,
            })
            .collect();
        connections.sort_by_key(|one| {
            let [out, inn] = one.connection.moved();
            std::cmp::Reverse(out.saturating_add(inn))
        });
        for one in connections.iter_mut().take(MOST_EXPLAINED) {
            if !one.connection.is_worth_explaining() {
                continue;
            }
            one.explained = observation.run_of(one.connection).map(|run| {
                let evidence = Evidence::of(&run);
                let view = RunView::of(&evidence, &explain(&evidence));
                Explained {
                    directions: view.directions,
                    findings: view.findings,
                    ledger: view.ledger,
                    intervals: view.intervals,
                }
            });
        }
        Self {
            observation,
            connections,
        }
    }

    /// Connections that moved enough to explain them.
    fn explained(&self) -> usize {
        let explained = |one: &&ConnectionView<'_>| one.explained.is_some();
        self.connections.iter().filter(explained).count()
    }

    /// The report for people: at most 100 columns wide.
    pub fn text(&self) -> String {
        page::write(self)
    }

    /// The report as one JSON document, without a newline at its end.
    pub fn json(&self) -> String {
        json::lines(&document::members(self))
    }

    /// The last line of a stream of JSON: the whole document as an event named `end`.
    pub fn end_line(&self) -> String {
        json::end_line(document::members(self))
    }
}

/// What happened, as a line of JSON without its newline.
pub fn line(sighting: &Sighting) -> String {
    serde_json::Value::Object(json::event(sighting)).to_string()
}

/// The observation as bytes for a file, with a newline at the end.
pub fn to_json(observation: &Observation) -> Vec<u8> {
    crate::record::bytes_of(observation)
}

/// Reads an observation. A newer schema is refused by name before the rest is looked at.
pub fn from_json(bytes: &[u8]) -> Result<Observation, RecordError> {
    crate::record::of_other_kind(bytes)
}
