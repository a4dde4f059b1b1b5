//! Power cuts of file systems on an image: files are written, the file system is shut down as if its disk had vanished, it is
//! mounted again, and the files are looked at.
//!
//! Nothing outlives the process, however it ends: the image has no name, its loop device frees itself with its last user, and
//! what is mounted is in a mount namespace of this process alone.

mod bench;
mod image;
mod pattern;
mod plan;
#[cfg(test)]
mod tests;

pub use bench::{Bench, Results};
pub use plan::{Before, Cut, FileSystemKind, How, plan};
