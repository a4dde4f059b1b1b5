//! The file of a probe: it has no name, nobody else may open it, and it is gone with its descriptor.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use linerate_kernel::directory::Directory;
use linerate_kernel::file_system;
use linerate_model::probe::{Direct, ProbeEnd};
use linerate_model::units::Bytes;

use super::error::ProbeError;
use super::{load, thread_load};

/// The smallest block of a pattern, which direct I/O has to take.
const BLOCK: usize = 4096;

/// The file, with room for all of it.
#[derive(Debug)]
pub(super) struct Scratch {
    file: File,
    size: Bytes,
    direct: Direct,
}

impl Scratch {
    /// Makes the file, and keeps room for it where the file system can.
    pub(super) fn make(
        folder: &Path,
        directory: &Directory,
        size: Bytes,
    ) -> Result<Self, ProbeError> {
        let file = directory
            .nameless(0o600)
            .map_err(|source| ProbeError::Make {
                folder: folder.to_owned(),
                source,
            })?;
        let no_room = |source| ProbeError::Allocate {
            folder: folder.to_owned(),
            size,
            source,
        };
        if !file_system::allocate(&file, size).map_err(no_room)? {
            file.set_len(size.0).map_err(no_room)?;
        }
        let direct = direct_io(&file);
        Ok(Self { file, size, direct })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn size(&self) -> Bytes {
        self.size
    }

    pub(super) fn direct(&self) -> Direct {
        self.direct
    }

    /// Multiple at which buffers begin.
    pub(super) fn alignment(&self) -> usize {
        match self.direct {
            Direct::Yes { memory, .. } => usize::try_from(memory).unwrap_or(BLOCK).max(BLOCK),
            _ => BLOCK,
        }
    }

    pub(super) fn set_direct(&self, direct: bool) -> io::Result<()> {
        file_system::set_direct(&self.file, direct)
    }

    /// What was written is on disk when this returns `None`.
    pub(super) fn sync(&self, stop: BorrowedFd<'_>) -> Option<ProbeEnd> {
        thread_load::sync(&self.file, stop).unwrap_or_else(|error| Some(load::failed(&error)))
    }

    /// Has the kernel drop what it holds of the file; `None` where it was asked to.
    pub(super) fn evict(&self, stop: BorrowedFd<'_>) -> Option<ProbeEnd> {
        self.sync(stop).or_else(|| {
            let evicted = file_system::evict(&self.file);
            evicted.err().map(|error| load::failed(&error))
        })
    }

    /// Some file systems take `O_DIRECT` and go by the page cache: after so much was written, it shows.
    pub(super) fn look_for_pages(&mut self, written: Bytes) {
        if matches!(self.direct, Direct::Yes { .. })
            && let Ok(cached) = file_system::cached(&self.file, written)
            && cached.0 > written.0 / 2
        {
            self.direct = Direct::Kept;
        }
    }
}

/// Whether the file system passes the page cache by: as it says, and where it does not say, by trying.
fn direct_io(file: &File) -> Direct {
    let stated = match file_system::direct_alignment(file) {
        Ok(None) => return Direct::Refused,
        Ok(Some(stated)) => Some(stated),
        Err(_) => None,
    };
    let [memory, offset] = stated.map_or([BLOCK; 2], |stated| [stated.memory, stated.offset]);
    if offset > BLOCK {
        return Direct::TooCoarse {
            offset: offset as u64,
        };
    }
    let tried = file_system::set_direct(file, true)
        .and_then(|()| file_system::try_direct(file, memory.max(BLOCK)));
    match tried {
        Ok(()) => Direct::Yes {
            memory: memory as u64,
            offset: offset as u64,
        },
        Err(_) => Direct::Refused,
    }
}
