//! Reaches the hosts of a cluster.
//!
//! [`nodes`] reads, combines and folds sets of host names. It is pure: groups and files are arguments.
//!
//! [`session`] connects to the agent on a host ([`carrier`]: ssh or another command line; [`bootstrap`]: linerate brings
//! itself along) and asks it to run commands. [`fan_out`] does so for many hosts at once, and [`answers`] puts equal
//! answers together.
//!
//! [`enrolled`] is the other way round: agents that enrolled with this hub connect to it over TLS ([`tunnel`]), and each
//! connection becomes a session.
//!
//! What it is not: it chooses no hosts, judges no answers and prints nothing. The agent itself is in the binary.
//!
//! ```
//! use linerate_fleet::nodes::{NodeSet, Sources};
//!
//! let set = NodeSet::read("node[01-04]!node02,gpu1", &Sources::none())?;
//! assert_eq!(set.to_string(), "gpu1,node[01,03-04]");
//! assert_eq!(set.names().count(), 4);
//! # Ok::<(), linerate_fleet::nodes::NodesError>(())
//! ```

pub mod answers;
pub mod bootstrap;
pub mod carrier;
pub mod enrolled;
pub mod error;
pub mod fan_out;
pub mod nodes;
pub mod session;
pub mod tunnel;

pub use error::{FleetError, Phase, Trouble};
pub use fan_out::each;
pub use session::{Ask, Asked, Elevation, Event, Reach, Session};
