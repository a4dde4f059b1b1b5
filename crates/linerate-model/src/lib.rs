//! The nouns of linerate: units, the plan of a test, samples, the record of a run, findings and remedies, a host and
//! what is to be set on it.
//!
//! What it is not: it opens no socket, reads no clock, no file and no environment, and derives nothing from a record:
//! that is for `linerate-analysis`.
//!
//! ```
//! use linerate_model::units::{BitRate, Bytes};
//!
//! assert_eq!("1G".parse::<BitRate>().unwrap().bits_per_second(), 1_000_000_000);
//! assert_eq!("1M".parse::<Bytes>().unwrap().count(), 1_048_576);
//! ```

pub mod alert;
pub mod audit;
pub mod bars;
pub mod block;
pub mod bounds;
pub mod calendar;
pub mod capture;
pub mod change_set;
pub mod check;
pub mod clock;
pub mod column;
pub mod counter_test;
pub mod csv;
pub mod disk_watch;
pub mod expectation;
pub mod finding;
pub mod fingerprint;
pub mod hexadecimal;
pub mod host;
pub mod host_limit;
pub mod latency;
pub mod mesh;
pub mod nearest;
pub mod observation;
pub mod plain_text;
pub mod plan;
pub mod precision;
pub mod probe;
pub mod progress;
pub mod record;
pub mod remedy;
pub mod roll_out;
pub mod series;
pub mod storage;
pub mod tcp_info;
pub mod transcript;
pub mod transfer;
pub mod transit;
pub mod tuning;
pub mod units;
pub mod wanted;
pub mod watch;
pub mod words;
pub mod working_latency;
