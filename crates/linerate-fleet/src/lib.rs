//! Reaches the hosts of a cluster.
//!
//! [`nodes`] reads, combines and folds sets of host names. It is pure: groups and files are arguments.
//!
//! What it is not: it opens no connection yet.
//!
//! ```
//! use linerate_fleet::nodes::{NodeSet, Sources};
//!
//! let set = NodeSet::read("node[01-04]!node02,gpu1", &Sources::none())?;
//! assert_eq!(set.to_string(), "gpu1,node[01,03-04]");
//! assert_eq!(set.names().count(), 4);
//! # Ok::<(), linerate_fleet::nodes::NodesError>(())
//! ```

pub mod nodes;
