//! Sets of host names: what they mean and how they are folded.

#[cfg(test)]
mod operators;
#[cfg(test)]
mod sources;

#[cfg(test)]
use linerate_fleet::nodes::{NodeSet, NodesError, Sources};

/// The set of a text that has no groups and no files.
#[cfg(test)]
fn read(text: &str) -> Result<NodeSet, NodesError> {
    NodeSet::read(text, &Sources::none())
}

/// Its names, one after the other.
#[cfg(test)]
fn names(text: &str) -> Vec<String> {
    read(text).map_or_else(|error| vec![error.to_string()], |set| set.names().collect())
}

/// As it is printed.
#[cfg(test)]
fn folded(text: &str) -> String {
    read(text).map_or_else(|error| error.to_string(), |set| set.to_string())
}
