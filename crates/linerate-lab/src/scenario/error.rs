//! What can be wrong with a scenario.

/// Why a scenario cannot be used. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The text is no TOML.
    #[error("{file}:{line}: this is not TOML: {reason}")]
    Syntax {
        /// The file, as the caller named it.
        file: String,
        /// The line.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A key that is not known here.
    #[error("{file}:{line}: {section} has no key '{key}': {hint}")]
    UnknownKey {
        /// The file, as the caller named it.
        file: String,
        /// The line.
        line: usize,
        /// Where it stands: `[path]` …
        section: &'static str,
        /// The key as typed.
        key: String,
        /// What was probably meant.
        hint: String,
    },
    /// A key that is needed and absent.
    #[error("{file}:{line}: {section} needs the key '{key}': {expected}")]
    Missing {
        /// The file, as the caller named it.
        file: String,
        /// The line at which the section begins.
        line: usize,
        /// Where it belongs.
        section: &'static str,
        /// The key.
        key: &'static str,
        /// What it holds.
        expected: &'static str,
    },
    /// A value that cannot be.
    #[error("{file}:{line}: {key} = {found}: {reason} (expected: {expected})")]
    Value {
        /// The file, as the caller named it.
        file: String,
        /// The line.
        line: usize,
        /// The key.
        key: String,
        /// The value as typed.
        found: String,
        /// What is wrong with it.
        reason: String,
        /// What the key holds.
        expected: &'static str,
    },
    /// Settings that cannot go together.
    #[error("{file}: {reason}")]
    Contradiction {
        /// The file, as the caller named it.
        file: String,
        /// What contradicts what, and what to do.
        reason: String,
    },
}
