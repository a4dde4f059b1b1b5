//! Tests in virtual machines: the binary in real guests with a kernel and a disk of their own, which may lose their
//! network and their power. `make test-vm` runs those that are not ignored, `make test-vm-matrix` all of them;
//! `docs/guides/virtual-machine-tests.md` says what they need. Without it each says *skipped* and why.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

mod audit;
mod boots;
#[path = "../it/harness/copies.rs"]
mod copies;
mod crash;
mod disks;
#[path = "../it/harness/disturbance.rs"]
mod disturbance;
mod fleet;
mod guests;
mod images;
mod machine;
mod monitor;
mod netem;
mod network;
mod oldest;
mod pair;
mod persist;
mod port;
mod prove;
mod recipes;
mod replication;
mod roll_out;
mod rollback;
mod sctp;
mod storage_audit;
mod transfer;
mod units;
mod vlan;

use std::io::Write as _;

/// Says a figure, for whoever reads the log.
pub(crate) fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}
