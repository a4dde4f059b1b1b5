//! Sets of host names as `ClusterShell` writes them: `node[01-64,70]`, `r[1-2]sw[1-8/2]`, `@compute!@broken`.
//!
//! A name is split into text and numbers; names with the same text form a *pattern*, whose numbers are folded. A number keeps
//! its leading zeros: `node1` and `node01` are two hosts.
//!
//! - `A,B` or `A B`: all of both; `A!B`: without B; `A&B`: in both; `A^B`: in one of them. From left to right.
//! - `[1-8/2]`: every second number.
//! - `@group`, `@source:group`, `@*`: from [`Groups`].
//! - `^FILE` where a name is expected: the sets in a file.

mod error;
mod fold;
mod groups;
mod inventory;
mod number;
mod read;
mod yaml;

pub use error::NodesError;
pub use groups::Groups;
pub use inventory::inventory;
pub use read::Sources;
pub use yaml::{groups_in_yaml, inventory_in_yaml};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use number::Number;

/// No set has more names.
pub const MOST_NAMES: usize = 1_000_000;
/// Takes the place of a number in a pattern. No host name has it.
const HOLE: &str = "%s";

/// The numbers of one name, in the order of its pattern's holes.
type Numbers = Vec<Number>;

/// A set of host names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSet {
    patterns: BTreeMap<String, BTreeSet<Numbers>>,
}

impl NodeSet {
    /// Reads a set; `sources` has the groups and files that it may name.
    pub fn read(text: &str, sources: &Sources<'_>) -> Result<Self, NodesError> {
        read::set(text, sources)
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.patterns.values().map(BTreeSet::len).sum()
    }

    /// Whether it has no name.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The names, by pattern and number.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.patterns.iter().flat_map(|(pattern, all)| {
            let vectors = fold::vectors(all);
            let numbers: Vec<Numbers> = vectors.iter().flat_map(fold::product).collect();
            numbers.into_iter().map(|numbers| {
                let texts = numbers.iter().map(ToString::to_string);
                fill(pattern, texts)
            })
        })
    }

    /// Adds the names of another set.
    pub fn add(&mut self, other: &Self) -> Result<(), NodesError> {
        for (pattern, numbers) in &other.patterns {
            let here = self.patterns.entry(pattern.clone()).or_default();
            here.extend(numbers.iter().cloned());
        }
        if self.len() > MOST_NAMES {
            return Err(NodesError::TooMany);
        }
        Ok(())
    }

    /// Removes the names of another set.
    pub fn remove(&mut self, other: &Self) {
        self.keep(|pattern, numbers| !other.has(pattern, numbers));
    }

    /// Removes the names that are not in another set.
    pub fn intersect(&mut self, other: &Self) {
        self.keep(|pattern, numbers| other.has(pattern, numbers));
    }

    /// Leaves the names that are in one of both sets.
    pub fn differ(&mut self, other: &Self) -> Result<(), NodesError> {
        let mut rest = other.clone();
        rest.remove(self);
        self.remove(other);
        self.add(&rest)
    }

    fn has(&self, pattern: &str, numbers: &Numbers) -> bool {
        let here = self.patterns.get(pattern);
        here.is_some_and(|all| all.contains(numbers))
    }

    fn keep(&mut self, keeps: impl Fn(&str, &Numbers) -> bool) {
        self.patterns.retain(|pattern, all| {
            all.retain(|numbers| keeps(pattern, numbers));
            !all.is_empty()
        });
    }
}

/// Folded, as `nodeset --fold` prints it. It reads back to the same set.
impl fmt::Display for NodeSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (pattern, all) in &self.patterns {
            for vector in fold::vectors(all) {
                if !std::mem::take(&mut first) {
                    out.write_str(",")?;
                }
                let texts = vector.iter().map(fold::ranges);
                out.write_str(&fill(pattern, texts))?;
            }
        }
        Ok(())
    }
}

/// A pattern with its holes filled.
fn fill(pattern: &str, mut with: impl Iterator<Item = String>) -> String {
    let mut parts = pattern.split(HOLE);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        filled.push_str(&with.next().unwrap_or_default());
        filled.push_str(part);
    }
    filled
}
