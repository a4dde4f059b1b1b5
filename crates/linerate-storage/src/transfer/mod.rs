//! The two ends of a copy from disk to disk: a [`Source`] that reads files into a ring, and a [`Target`] that writes them out of
//! one. Between them are streams, which this room does not know: each takes pieces by an [`Outlet`] and hands them over by an
//! [`Inlet`], and neither ever waits for a disk.
//!
//! Both rings are bounded, and keep time: while a ring is empty, who takes pieces waits, while it is full, who brings them.
//! Threads are not joined: one that waits for a disk in the kernel cannot be called back. What it uses, it holds itself.

pub mod frame;
mod place;
mod ring;
mod sink;
mod source;
mod target;

use std::io;
use std::path::PathBuf;

pub use source::{Outlet, Source};
pub use target::{Inlet, Target};

/// The longest part of a file that is read, sent and written at once, bytes.
pub const PIECE: usize = 1 << 20;
/// What a ring holds at most, bytes.
pub const RING: usize = 64 << 20;
/// Threads that read, or write.
const THREADS: u32 = 4;
/// Direct I/O wants buffers, offsets and lengths at multiples of this, bytes, or of less.
const ALIGNMENT: usize = 4096;

/// How files are read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Past the page cache where the file system can (`O_DIRECT`), files of a [`PIECE`] and more.
    Direct,
    /// By the page cache.
    Buffered,
}

/// What an outlet has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// Bytes to send.
    Bytes,
    /// None yet.
    NotYet,
    /// None any more.
    End,
}

/// Why files cannot be read or taken.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// Nothing of this name, or it cannot be opened.
    #[error("cannot read {path}: {source}")]
    Source {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Neither a file nor a folder.
    #[error("{path} is neither a file nor a folder; a transfer reads files, and no devices")]
    NoFile {
        /// What was named.
        path: PathBuf,
    },
    /// Too much to list.
    #[error("{path} has more than {most} entries; transfer its folders one after the other")]
    TooMany {
        /// The folder.
        path: PathBuf,
        /// How many are listed.
        most: usize,
    },
    /// The target takes no writes.
    #[error("cannot write to the folder {path}: its file system is mounted read-only")]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// The kernel gives no descriptors.
    #[error("making event descriptors: {0}")]
    Host(#[from] io::Error),
}
