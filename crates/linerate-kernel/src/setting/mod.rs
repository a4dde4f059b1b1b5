//! What the kernel lets us change of a host: one function a setting, each one attempt.
//!
//! What acts on interfaces and on keys of `net.*` acts in the calling thread's network namespace. Nothing here
//! remembers what was before; `linerate_tune::settings` does. What is a file is written below a
//! [`Root`](crate::inventory::Root), so that a folder can stand for `/`.

mod address;
pub mod emulation;
mod governor;
mod link;
pub mod qdisc;
mod steering;
mod sysctl;

pub use crate::ethtool::change::{
    CoalescingChange, FeatureState, Ring, features, set_channels, set_coalescing, set_features,
    set_ring,
};
pub(crate) use address::address_message;
pub use address::{Change, RouteOver, change_address, change_route};
pub use governor::{governors, set_governor};
pub use link::{rename, set_gso_max_segments, set_mtu, set_tx_queue_len, set_up};
pub use steering::{set_interrupt_cpus, set_queue_cpus};
pub use sysctl::path_of as sysctl_path;
pub use sysctl::{set_sysctl, sysctl};
