//! What can go wrong with disks and files.

use std::io;

use linerate_model::block::DeviceNumber;

/// Why something of disks or files could not be done.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The kernel does not describe its devices here.
    #[error("cannot read the block devices of this host: {reason}")]
    Unreadable {
        /// What it said.
        reason: String,
    },
    /// A path that cannot be looked at.
    #[error("cannot look at {path}: {source}")]
    Path {
        /// The path.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A device file without a device.
    #[error(
        "{path} is the device file of {number}, which this kernel does not have: was the disk removed? (`lsblk` lists those that it has)"
    )]
    Device {
        /// The path.
        path: String,
        /// The number.
        number: DeviceNumber,
    },
    /// A path on no mount that is visible here.
    #[error(
        "{path} is on a file system that is not among the mounts of this process (/proc/self/mountinfo)"
    )]
    Mount {
        /// The path.
        path: String,
    },
    /// Nothing to watch.
    #[error("{reason}")]
    Nothing {
        /// Why not, and what to do.
        reason: String,
    },
}
