//! Tests of the room as its callers see it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod alerts;
mod cause;
mod change_points;
mod outbox;
mod roll_out;
mod rounds;
mod simulated;
mod trunk;
