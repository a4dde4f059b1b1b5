//! Why a set of host names could not be read.

/// Each message quotes what it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodesError {
    /// An operator without a set on each side.
    #[error("'{0}': an operator (, ! & ^) needs a set of hosts before and after it")]
    Operand(String),
    /// Brackets that do not match.
    #[error("'{0}': a bracket is missing, or one too many")]
    Bracket(String),
    /// Not a range.
    #[error("'{range}' is no range of numbers: {why}; write for example 1-8, 01-64,70 or 1-8/2")]
    Range {
        /// What was written.
        range: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not a name that a host can have.
    #[error(
        "'{name}' is no host name: {why}; names have letters, digits, '.', '-', '_', ':' and '@', and begin with none \
         of '-', '.' and ':'"
    )]
    Name {
        /// What was written.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// More names than [`MOST_NAMES`](super::MOST_NAMES).
    #[error("more than 1,000,000 host names in one set")]
    TooMany,
    /// A group that no source has.
    #[error("no group '{group}' in {source_name}; it has {known}")]
    Group {
        /// The group.
        group: String,
        /// The source that was asked.
        source_name: String,
        /// Groups that it has.
        known: String,
    },
    /// A source of groups that was not read.
    #[error("no source of groups '{0}'")]
    Source(String),
    /// Groups that contain themselves, or too deeply nested.
    #[error("groups contain each other: {0}")]
    Nested(String),
    /// A file that could not be read.
    #[error("cannot read the hosts in {file}: {why}")]
    File {
        /// Its name.
        file: String,
        /// Why.
        why: String,
    },
    /// A line of a file of groups or of an inventory.
    #[error("{file}, line {line}: {why}")]
    Line {
        /// Its name.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A group in a file of YAML.
    #[error("{file}, {entry}: {why}")]
    Entry {
        /// Its name.
        file: String,
        /// The group or host.
        entry: String,
        /// What is wrong.
        why: String,
    },
}
