//! The lab around the path: network namespaces as hosts, a router between them, and the engine in it.
//!
//! ```text
//! sender ── eth0 ─── to-sender ┐        ┌ to-receiver ─── eth0 ── receiver
//!                              ├ router ┤
//! cross-sender ── to-cross-sender ┘        └ port4 ── cross-receiver
//! ```
//!
//! What the router forwards waits in a queue of its kernel; a thread asks the [path](crate::path) what
//! becomes of it. Everything hangs on descriptors and threads of one process: when it ends, even by
//! `kill -9`, the kernel removes namespaces, interfaces and rules, and kills the programs that were started
//! on the hosts. Nothing of the machine's own is touched.
//!
//! That is the engine by packet queues. The other one leaves it to the kernel: netem and tbf on the router's
//! interfaces do what the path is to do, and count what they count.
//!
//! A [star](crate::star) has many hosts and a router for each switch: [`StarLab`].

mod disciplines;
mod engine;
mod error;
mod host;
mod in_force;
mod ip;
mod lab;
mod lane;
mod lateness;
mod orders;
mod probe;
mod queues;
mod share;
mod star;

pub use disciplines::{Shaped, Shaping};
pub use engine::{Account, other_labs};
pub use error::LabError;
pub use host::{Host, INTERFACE};
pub use in_force::HostInForce;
pub use lab::{InForce, Isolation, Lab, LabReport, isolate};
pub use lateness::Lateness;
pub use probe::{Passage, Probes, one_way};
pub use queues::{Passed, Progress};
pub use share::{CpuInForce, CpuMeter, CpuShare};
pub use star::{StandingHost, StandingSwitch, StarLab};
