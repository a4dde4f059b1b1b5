//! What can be wrong with a document.

/// Why a document cannot be used. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The text is not TOML.
    #[error("{file}:{line}: invalid TOML: {reason}")]
    Syntax {
        /// The file, as the caller named it.
        file: String,
        /// From 1 on.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A key that this table does not have.
    #[error("{file}:{line}: unknown key '{key}' in {section}: {hint}")]
    UnknownKey {
        /// The file, as the caller named it.
        file: String,
        /// From 1 on.
        line: usize,
        /// The table: `[path]` …
        section: &'static str,
        /// The key as typed.
        key: String,
        /// What was probably meant, or what is known.
        hint: String,
    },
    /// A required key is absent.
    #[error("{file}:{line}: {section} needs the key '{key}': {expected}")]
    Missing {
        /// The file, as the caller named it.
        file: String,
        /// The line at which the table begins.
        line: usize,
        /// The table.
        section: &'static str,
        /// As it must be written.
        key: &'static str,
        /// What it holds.
        expected: &'static str,
    },
    /// A value that its key cannot have.
    #[error("{file}:{line}: {key} = {found}: {reason}{}", in_brackets(.reason, .expected))]
    Value {
        /// The file, as the caller named it.
        file: String,
        /// From 1 on.
        line: usize,
        /// As typed.
        key: String,
        /// The value as typed: its first line.
        found: String,
        /// What is wrong with it.
        reason: String,
        /// What the key holds; empty where the reason says it.
        expected: &'static str,
    },
    /// Settings that cannot be combined.
    #[error("{file}: {reason}")]
    Contradiction {
        /// The file, as the caller named it.
        file: String,
        /// What contradicts what, and what to do.
        reason: String,
    },
}

impl DocumentError {
    /// An error about a value in a line of a file that is not TOML.
    pub fn in_line(file: &str, line: usize, key: &str, found: &str, reason: String) -> Self {
        Self::Value {
            file: file.to_owned(),
            line,
            key: key.to_owned(),
            found: found.to_owned(),
            reason,
            expected: "",
        }
    }
}

/// What is expected, where the reason does not say it already.
fn in_brackets(reason: &str, expected: &str) -> String {
    if reason.contains(expected) {
        return String::new();
    }
    format!(" (expected: {expected})")
}
