//! Questions that take more than one run.
//!
//! [`grade`] runs scenarios of the lab again and again and holds what was found against what they expect;
//! [`remedy`] applies what the findings advise and holds what is then measured against what they promised.
//!
//! [`until`] applies one remedy after the other until a finding comes first that asks for none.
//!
//! [`counter_test`] says which runs would decide a finding, and what they make of it; [`diagnosis`] which run separates the
//! likeliest causes, until one stands.
//!
//! [`prove`] says whether a change helped, from runs before and after in turn, and [`sweep`] measures every combination
//! of factors; [`interval`] says how well their means are known.
//!
//! [`boots`] compares two boots of a host, in turns that each restart it.
//!
//! [`rfc6349`] goes through the steps of that RFC and computes its metrics.
//!
//! [`to_peer`] finds out what an audit of a host wants to know of the path to its peer.
//!
//! What it is not: it makes no path and starts no program. The caller passes in how to run one thing once.
//!
//! ```
//! use linerate_experiment::grade::{self, Observed, Rounds};
//! use linerate_lab::scenario::Scenario;
//!
//! let text = "name = \"full\"\n[path]\nrate = \"100M\"\n[expect]\ntop = \"path-full\"\ngoodput = \"85M..95M\"";
//! let scenarios = [Scenario::parse("full.toml", text).unwrap()];
//! let run = |_: &Scenario, seed, _attempt| {
//!     Ok(Observed { seed, findings: vec!["path-full".to_owned()], goodput_bps: Some(94e6), ..Observed::default() })
//! };
//! let report = grade::run(&scenarios, Rounds { runs: 3, seeds_from: 0, attempts: grade::ATTEMPTS }, run, |_| ());
//! assert!(report.passed());
//! ```

mod aligned;
pub mod boots;
pub mod counter_test;
pub mod diagnosis;
pub mod grade;
pub mod in_lab;
pub mod interval;
pub mod measured;
pub mod prove;
mod random;
pub mod remedy;
pub mod rfc6349;
pub mod sweep;
pub mod to_peer;
pub mod until;
