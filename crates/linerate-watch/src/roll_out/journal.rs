//! The journal as text: one JSON object a line.

use super::entry::{Entry, JOURNAL_VERSION};

/// Why a journal cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// There is no complete first line: nothing was changed anywhere.
    #[error("the journal has no beginning: no node was changed; start the roll-out again")]
    Empty,
    /// A line is not an entry.
    #[error("line {line} of the journal is damaged: {reason}")]
    Damaged {
        /// Which, from 1 on.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// An entry does not follow from those before it.
    #[error("line {line} of the journal does not follow from the lines before it: {reason}")]
    Misplaced {
        /// Which, from 1 on.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer build wrote it.
    #[error(
        "the journal has version {found}, this build reads up to {JOURNAL_VERSION}: use the newer linerate"
    )]
    Newer {
        /// Its version.
        found: u64,
    },
}

/// The entries of a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// In their order.
    pub entries: Vec<Entry>,
    /// How many bytes of the text they are. What follows is a line that was cut: remove it before adding another.
    pub bytes: usize,
}

/// The entry as a line of the journal, its end included.
pub fn line(entry: &Entry) -> String {
    // Strings, numbers and lists of these: nothing that JSON cannot write.
    let text = serde_json::to_string(entry).unwrap_or_default();
    text + "\n"
}

/// Reads a journal. A last line without its end was cut while it was written, and what it says did not happen.
pub fn read(text: &str) -> Result<Journal, JournalError> {
    let bytes = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..bytes].lines().enumerate();
    let entry = |(place, line): (usize, &str)| {
        if place == 0 {
            refuse_newer(line)?;
        }
        serde_json::from_str(line).map_err(|error| JournalError::Damaged {
            line: place + 1,
            reason: error.to_string(),
        })
    };
    let entries = lines.map(entry).collect::<Result<_, _>>()?;
    Ok(Journal { entries, bytes })
}

/// A newer version may have other entries: it is refused before they are read.
fn refuse_newer(line: &str) -> Result<(), JournalError> {
    let value: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(JOURNAL_VERSION) => Err(JournalError::Newer { found }),
        _ => Ok(()),
    }
}
