//! Files in the place of generated payload, between two linerates: what the streams of a test need of the stages at its ends.
//!
//! The stages are another room's (`linerate-storage`): here they are what gives bytes to a stream and what takes them, without
//! ever blocking.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use linerate_model::transfer::StageRecord;
use linerate_model::units::{Bytes, Nanos};
use linerate_wire::extension::TargetAsked;

pub use crate::stream_file::Filled;

/// A stage gives up when nothing moves for this long: a disk that other programs keep busy moves a piece in that time, one that
/// hangs does not.
pub(crate) const STORE_STALL: Nanos = Nanos::from_millis(120_000);
/// The last fsync of a target takes as long as the disk needs for what the page cache held for it.
pub(crate) const SYNC_BOUND: Nanos = Nanos::from_millis(1_800_000);
/// How often a server tells how far its target is.
pub(crate) const STORED_EVERY: Nanos = Nanos::from_millis(500);

/// What is sent.
pub trait Source: Debug + Send + Sync {
    /// Begins to read.
    fn start(&self);
    /// What one stream sends.
    fn outlet(&self) -> Box<dyn Outlet>;
    /// Ends reading; waits for no disk.
    fn stop(&self);
    /// What was read so far.
    fn record(&self) -> StageRecord;
}

/// What one stream sends.
pub trait Outlet: Send {
    /// Readable where [`Outlet::fill`] would give something else than [`Filled::NotYet`].
    fn fd(&self) -> BorrowedFd<'_>;
    /// Makes sure that there are [`Outlet::bytes`].
    ///
    /// # Errors
    /// Why the source gives no more.
    fn fill(&mut self) -> io::Result<Filled>;
    /// What is to be sent next.
    fn bytes(&mut self) -> &[u8];
    /// So many of them were.
    fn sent(&mut self, bytes: usize);
}

/// What takes what arrives.
pub trait Target: Debug + Send + Sync {
    /// Begins to write.
    fn start(&self);
    /// What one stream receives into.
    fn inlet(&self) -> Box<dyn Inlet>;
    /// All streams have ended: the rest is written, then comes fsync. Returns at once.
    fn end(&self);
    /// Readable where all is on disk, or the target has failed.
    fn finished_fd(&self) -> BorrowedFd<'_>;
    /// Bytes of files that were written.
    fn progress(&self) -> Bytes;
    /// Why it writes no more.
    fn failed(&self) -> Option<String>;
    /// Ends writing; waits for no disk.
    fn stop(&self);
    /// Keeps this for as long as any part of the target is in memory: a thread that waits for a disk ends when that answers.
    fn keep(&self, what: Box<dyn Any + Send>);
    /// What was written so far.
    fn record(&self) -> StageRecord;
}

/// What one stream receives into.
pub trait Inlet: Send {
    /// Readable where [`Inlet::room`] would give some.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Where to receive next; nothing where the ring is full.
    ///
    /// # Errors
    /// Why the target takes no more.
    fn room(&mut self) -> io::Result<Option<&mut [u8]>>;
    /// So many bytes were received there.
    ///
    /// # Errors
    /// They are no frames of files, or not the bytes that the source read.
    fn received(&mut self, bytes: usize) -> io::Result<()>;
    /// The stream has ended.
    ///
    /// # Errors
    /// It ended within a frame.
    fn ended(&mut self) -> io::Result<()>;
}

/// What a client sends in a transfer, and where the server is to put it.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// This end's source.
    pub source: Arc<dyn Source>,
    /// The server's target.
    pub target: TargetAsked,
}

/// Opens the target that a client asks for, or says why not.
pub type OpenTarget = dyn Fn(&TargetAsked) -> Result<Arc<dyn Target>, String> + Send + Sync;

/// What a server does for clients that ask for a target.
#[derive(Clone)]
pub struct Targets(pub Arc<OpenTarget>);

/// Memory of a target, from its opening to its end: its ring and what its threads and streams hold beside it.
pub const TARGET_BYTES: usize = 96 << 20;
