//! Tests of the room as its callers see it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod alerts;
mod cause;
mod change_points;
mod dispatch;
mod dispatch_properties;
mod dispatch_restarts;
mod plan;
mod plans;
mod psconfig;
mod reference;
mod roll_out;
mod rounds;
mod simulated;
mod trunk;
