//! What a power cut leaves of files: [`scan`] looks for files that one has damaged, [`cut`] makes power cuts of file systems
//! on an image and looks at what is left.

pub mod cut;
mod exposure;
mod known;
mod last_boot;
pub mod scan;
mod suspect;

use std::io;
use std::path::{Path, PathBuf};

pub use exposure::{Writeback, exposure};
pub use last_boot::last_boot;

use linerate_kernel::KernelError;

/// Why a scan or a power cut could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// The folder to scan, or the one of the image.
    #[error("cannot open the folder {}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Its mount.
    #[error("cannot find out which file system {} is on: {source}", path.display())]
    Mount {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A server has the files.
    #[error(
        "{} is on {file_system}, so the power cut of a server counts and not this host's: scan on the server, or use --yes",
        path.display()
    )]
    Network {
        /// Which.
        path: PathBuf,
        /// Type of its file system.
        file_system: String,
    },
    /// No disk has the files.
    #[error("{} is on {file_system}, which is memory and keeps nothing over a power cut; --yes scans it anyway", path.display())]
    Memory {
        /// Which.
        path: PathBuf,
        /// Type of its file system.
        file_system: String,
    },
    /// No trace of an earlier boot.
    #[error(
        "cannot tell when the last boot ended: no log of this host is older than this boot; use --since TIME"
    )]
    NoLastBoot,
    /// Loop devices and mounts are root's.
    #[error(
        "crash test needs root to attach loop devices and mount file systems: use sudo, or a virtual machine"
    )]
    NotRoot,
    /// No room for the image.
    #[error(
        "the image needs {needed} bytes in {}, which has {free} free: choose a folder with more room (--dir)",
        path.display()
    )]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// Bytes that the images take.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The image.
    #[error("cannot {operation} the image in {}: {source}", path.display())]
    Image {
        /// What was tried.
        operation: &'static str,
        /// The folder.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// What the kernel refused.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl CrashError {
    fn folder(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Folder { path, source }
    }
}
