//! What a record shows: figures derived from raw facts, each computed again whenever it is asked for.
//!
//! From a [`RunRecord`](linerate_model::record::RunRecord): the [`ledger`] books its bytes at each place, [`evidence`] gathers what
//! rules judge (with the [`time_budget`], the [`waterfall`] and the [`losses`] of each direction), [`judgement`] holds the rate against
//! what was wanted, and [`statistics`] tells the plateau and its interval.
//!
//! What it is not: it imports the model alone, opens no socket, reads no clock, no file and no environment, and finds
//! no fault; that is for `linerate-explain`.
//!
//! ```
//! use linerate_analysis::ledger::Ledger;
//! use linerate_model::plan::Plan;
//! use linerate_testing::fixture;
//!
//! let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
//! assert!(Ledger::of(&record).balanced());
//! ```

pub mod apportion;
pub mod counter_run;
pub mod credit;
pub mod delay;
pub mod disk;
pub mod ends;
pub mod evidence;
pub mod framing;
pub mod judgement;
pub mod ledger;
pub mod losses;
pub mod mesh;
mod moments;
mod passage;
pub mod precision;
pub mod probe;
pub mod queue;
pub mod round_trip;
mod sending;
pub mod statistics;
pub mod time_budget;
pub mod transfer;
mod triage;
pub mod waterfall;
pub mod working_latency;
