//! Tests of the room as its callers see it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cause;
mod rounds;
mod simulated;
mod trunk;
