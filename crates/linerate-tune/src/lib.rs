//! What of a host's settings is wrong for its task, and what they should be: checks over the facts of a host,
//! and the difference between two hosts.
//!
//! A check reads facts and a target (rate, round-trip time, flows, role) and says that something is wrong, with a
//! computed value, its reason and the risk of setting it; that it is right; or that it cannot know, and what would
//! tell. What cannot be seen is never passed.
//!
//! What it is not: it reads no host (`linerate_kernel::inventory` does) and changes none.
//!
//! ```
//! use linerate_model::audit::Target;
//! use linerate_model::host::{Fact, HostFacts};
//! use linerate_model::units::{BitRate, Nanos};
//!
//! let mut facts = HostFacts::default();
//! facts.sysctls.insert("net.ipv4.tcp_wmem".to_owned(), Fact::Known("4096 16384 4194304".to_owned()));
//! let target = Target {
//!     rate_bps: Some(BitRate(10_000_000_000)),
//!     rtt: Some(Nanos::from_millis(60)),
//!     ..Target::default()
//! };
//! let audit = linerate_tune::audit(&facts, None, &target).unwrap();
//! let first = audit.firing().next().unwrap();
//! assert_eq!(first.check, "T02");
//! ```

mod audit;
mod case;
pub mod checks;
pub mod difference;

pub use audit::audit;
