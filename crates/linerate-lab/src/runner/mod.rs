//! The lab around the path: network namespaces as hosts, a router between them, and the engine in it.
//!
//! ```text
//! sender ── eth0 ─── to-sender ┐        ┌ to-receiver ─── eth0 ── receiver
//!                              ├ router ┤
//! cross-sender ── to-cross-s.. ┘        └ to-cross-r.. ── cross-receiver
//! ```
//!
//! What the router forwards waits in a queue of its kernel; a thread asks the [path](crate::path) what
//! becomes of it. Everything hangs on descriptors and threads of one process: when it ends, even by
//! `kill -9`, the kernel removes namespaces, interfaces and rules, and kills the programs that were started
//! on the hosts. Nothing of the machine's own is touched.
//!
//! An engine by netem and tbf is not built: netem cannot be had in the kernels that this was made on, so it
//! could not be tried.

mod engine;
mod error;
mod host;
mod in_force;
mod ip;
mod lab;
mod lane;
mod lateness;
mod probe;
mod share;

pub use engine::{Passed, Progress, other_labs};
pub use error::LabError;
pub use host::{Host, INTERFACE};
pub use in_force::HostInForce;
pub use lab::{InForce, Isolation, Lab, LabReport, isolate};
pub use lateness::Lateness;
pub use probe::{Probes, one_way};
pub use share::{CpuInForce, CpuMeter, CpuShare};
