//! What the tests of several rooms share. Only tests import this room (as a dev-dependency); no program contains it.
//!
//! - A test that cannot run on this machine calls [`skipped`], which `make test` counts and lists, and which fails the
//!   test where the machine is known to have what is missing.
//! - A test that has to run in namespaces of its own runs again there by [`in_namespaces`], which makes sure that it
//!   did run.
//! - [`fixture`] makes the records of runs that never were, [`disks`] those of disks.
//!
//! ```
//! use linerate_testing::{Need, skipped};
//!
//! fn a_test() {
//!     if std::net::UdpSocket::bind("[::1]:0").is_err() {
//!         return skipped(Need::Ipv6, "datagrams over IPv6", "no IPv6 loopback");
//!     }
//!     // Assertions follow.
//! }
//! ```

pub mod disks;
pub mod fixture;
mod namespaces;
mod skips;

pub use namespaces::{USER_AND_NETWORK, in_namespaces};
pub use skips::{EXPECTED, Need, SKIPS, skipped};
