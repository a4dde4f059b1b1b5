//! The nouns of linerate: units, the plan of a test, samples, the ledger, the record of a run,
//! evidence and findings.
//!
//! What it is not: it opens no socket, reads no clock, no file and no environment. Every figure
//! derived here is computed from what a record holds, so it can be computed again.
//!
//! ```
//! use linerate_model::units::{BitRate, Bytes};
//!
//! assert_eq!("1G".parse::<BitRate>().unwrap().bits_per_second(), 1_000_000_000);
//! assert_eq!("1M".parse::<Bytes>().unwrap().count(), 1_048_576);
//! ```

pub mod apportion;
pub mod audit;
pub mod bars;
pub mod bounds;
pub mod capture;
pub mod change_set;
pub mod clock;
pub mod column;
pub mod counter_test;
pub mod evidence;
pub mod expectation;
pub mod finding;
pub mod fixture;
pub mod host;
pub mod host_limit;
pub mod ledger;
pub mod losses;
mod moments;
pub mod nearest;
pub mod observation;
pub mod plain_text;
pub mod plan;
pub mod precision;
pub mod progress;
pub mod record;
pub mod remedy;
pub mod series;
pub mod statistics;
pub mod storage;
pub mod tcp_info;
pub mod time_budget;
pub mod transcript;
mod triage;
pub mod tuning;
pub mod units;
pub mod wanted;
pub mod waterfall;
