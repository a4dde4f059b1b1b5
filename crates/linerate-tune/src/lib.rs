//! What of a host's settings is wrong for its task, and what they should be: checks over the facts of a host,
//! and the difference between two hosts.
//!
//! A check reads facts and a target (rate, round-trip time, flows, role) and says that something is wrong, with a
//! computed value, its reason and the risk of setting it; that it is right; or that it cannot know, and what would
//! tell. What cannot be seen is never passed.
//!
//! [`profile`] reads how settings should be, and [`plan`] says what would have to be changed for it, in which order, at
//! which risk, and who else sets it.
//!
//! [`settings`] is how single settings are read, saved, written and restored; [`live`] does it to the running kernel and
//! is the only part that touches one.
//!
//! [`guest`] holds a guest's data-plane interfaces against a declaration of them.
//!
//! What it is not: it reads no facts (`linerate_kernel::inventory` does), and a check or a plan changes nothing.
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

pub mod apply;
mod audit;
mod block;
mod case;
pub mod checks;
pub mod connectivity;
pub mod difference;
mod dirty;
pub mod guest;
pub mod journal;
pub mod kept_file;
pub mod live;
pub mod majority;
pub mod persist;
pub mod plan;
pub mod profile;
pub mod restore;
pub mod rooted;
pub mod settings;
#[expect(clippy::disallowed_types, reason = "the journal is a file")]
pub mod state_folder;
pub mod verify;

pub use audit::audit;
