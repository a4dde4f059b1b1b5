//! Plans tests between many hosts and finds what makes them slow.
//!
//! [`rounds`] puts tests into rounds in which no host takes part twice.
//! [`cause`] names what makes them slow or fail.
//! [`trunk`] finds what a link between two sets of hosts carries.
//! [`expectation`] says what a test has to show, [`baseline`] what a pair showed before.
//! [`alert`] makes alerts of results.
//! [`change_points`] finds where the level of a series changed.
//! [`roll_out`] changes hosts a few at a time.
//! [`watched`] says what is tested regularly.
//! [`dispatch`] decides which test runs when, and why one did not.
//! [`why`] says why a pair has no result.
//! [`simulation`] runs a plan on virtual time.
//! [`plan`] reads it from `watch.toml` and says what it costs.
//! [`psconfig`] reads it from a template of perfSONAR's pSConfig.
//!
//! What it is not: it reaches no host, reads no clock and writes no file. Drivers in the binary do that.
//!
//! ```
//! use linerate_watch::rounds::{Asked, schedule};
//!
//! let schedule = schedule(4, &Asked::All, false, 0);
//! assert_eq!((schedule.rounds.len(), schedule.bound), (6, 6));
//! ```

pub mod alert;
pub mod baseline;
pub mod cause;
pub mod change_points;
pub mod dispatch;
pub mod expectation;
pub mod plan;
pub mod psconfig;
mod random;
pub mod roll_out;
pub mod rounds;
pub mod simulation;
pub mod trunk;
pub mod watched;
pub mod why;
