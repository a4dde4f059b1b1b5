//! Sets of host names: what they mean and how they are folded.

mod operators;
mod sources;

use linerate_fleet::nodes::{NodeSet, NodesError, Sources};

/// The set of a text that has no groups and no files.
fn read(text: &str) -> Result<NodeSet, NodesError> {
    NodeSet::read(text, &Sources::none())
}

/// Its names, one after the other.
fn names(text: &str) -> Vec<String> {
    read(text).map_or_else(|error| vec![error.to_string()], |set| set.names().collect())
}

/// As it is printed.
fn folded(text: &str) -> String {
    read(text).map_or_else(|error| error.to_string(), |set| set.to_string())
}
