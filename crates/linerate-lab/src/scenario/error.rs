//! What can be wrong with a scenario.

/// Why a scenario cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The text is no TOML.
    #[error("{file}:{line}: not TOML: {reason}")]
    Syntax {
        /// The file, as named by the caller.
        file: String,
        /// The line, from 1 on.
        line: usize,
        /// What the parser says.
        reason: String,
    },
}
