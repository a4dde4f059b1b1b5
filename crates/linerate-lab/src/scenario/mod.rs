//! A lab as a file: the path, the hosts, the test and what is expected of it.
//!
//! [`Scenario::parse`] reads the text of such a file into types that cannot be wrong; what is wrong in the
//! text is named with its line.

mod error;
mod types;

pub use error::ScenarioError;
pub use types::{
    Cross, CrossKind, DEFAULT_CONGESTION, Expect, Family, HostSpec, Mode, ModeWish, PathSpec,
    RateRange, Scenario, TestSpec, Way,
};
