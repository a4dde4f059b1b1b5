//! Block devices and files: what stands below a file, how fast it is ([`probe`]), and what a power cut leaves of it.
//!
//! [`stack`] says which devices a path is on and what these stand on, [`watch`] reads what the kernel counts of them.
//!
//! What it is not: it judges nothing (that is for `linerate-explain`), prints nothing, and knows no other host.

pub mod crash;
mod error;
pub mod place;
pub mod probe;
pub mod stack;
pub mod watch;

pub use error::StorageError;
