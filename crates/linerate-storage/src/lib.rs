//! Block devices and files of this machine.
//!
//! [`stack`] says which devices a path is on and what these stand on, [`watch`] reads what the kernel counts of them,
//! [`probe`] measures how fast a directory's disk is, [`transfer`] reads and writes the files of a copy between hosts, and [`crash`] finds or makes what a power cut leaves of files.
//!
//! What it is not: it judges nothing (that is for `linerate-explain`), prints nothing, and knows no other host.
//!
//! ```
//! use linerate_kernel::inventory::Root;
//! use linerate_model::disk_watch::DiskPlaceKind;
//! use linerate_storage::stack::Stack;
//!
//! let stack = Stack::read(&Root::of_this_machine()).unwrap();
//! let place = stack.place("/proc").unwrap();
//! // The files of /proc are on no disk.
//! assert!(matches!(place.on, DiskPlaceKind::FileSystem { devices, .. } if devices.is_empty()));
//! ```

pub mod crash;
mod error;
pub mod place;
pub mod probe;
pub mod stack;
pub mod transfer;
pub mod watch;

pub use error::StorageError;
