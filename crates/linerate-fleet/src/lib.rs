//! Reaches the hosts of a cluster.
//!
//! [`nodes`] reads, folds and combines sets of host names. It is pure: what it needs of files is an argument.

pub mod nodes;
