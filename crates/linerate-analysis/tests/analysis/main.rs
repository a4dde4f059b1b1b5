//! Figures derived from made-up runs.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod derived;
mod limits;
