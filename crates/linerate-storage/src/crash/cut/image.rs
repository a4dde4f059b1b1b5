//! An image without a name, with its room reserved.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use linerate_kernel::directory::Directory;
use linerate_kernel::extent::{data_from, hole_from};
use linerate_kernel::file::allocate;
use linerate_kernel::file_system;

use crate::crash::CrashError;

const PIECE: usize = 1 << 20;
/// What an image leaves free of its file system at least, bytes: others write there too.
const LEAVE: u64 = 64 << 20;

/// Where images are made.
#[derive(Debug)]
pub(super) struct Images {
    folder: Directory,
    path: PathBuf,
}

impl Images {
    pub(super) fn in_folder(path: &Path) -> Result<Self, CrashError> {
        let folder = Directory::open(path).map_err(CrashError::folder(path))?;
        let path = path.to_owned();
        Ok(Self { folder, path })
    }

    /// Refuses images that do not fit.
    pub(super) fn check_room(&self, bytes: u64) -> Result<(), CrashError> {
        let found = file_system::of(&self.folder).map_err(self.cannot("measure the room for"))?;
        let free = found.free.0;
        let needed = bytes.saturating_add(LEAVE);
        if free >= needed {
            return Ok(());
        }
        Err(CrashError::NoRoom {
            path: self.path.clone(),
            needed,
            free,
        })
    }

    /// An image of zeros. Its room is reserved: a disk that fills up meanwhile would look like a loss.
    pub(super) fn make(&self, bytes: u64) -> Result<File, CrashError> {
        let image = self.folder.nameless(0o600);
        let image = image.map_err(self.cannot("make"))?;
        allocate(&image, bytes).map_err(self.cannot("reserve room for"))?;
        Ok(image)
    }

    /// Another image with the same data.
    pub(super) fn copy(&self, image: &File) -> Result<File, CrashError> {
        let size = image.metadata().map_err(self.cannot("copy"))?.len();
        let copy = self.make(size)?;
        copy_data(image, &copy, size).map_err(self.cannot("copy"))?;
        Ok(copy)
    }

    fn cannot(&self, operation: &'static str) -> impl FnOnce(io::Error) -> CrashError {
        let path = self.path.clone();
        move |source| CrashError::Image {
            operation,
            path,
            source,
        }
    }
}

/// Holes stay holes: the copy has zeros there already.
fn copy_data(from: &File, to: &File, size: u64) -> io::Result<()> {
    let mut piece = vec![0_u8; PIECE];
    let mut at = 0;
    while let Some(begin) = data_from(from, at)? {
        let end = hole_from(from, begin)?.unwrap_or(size);
        at = begin;
        while at < end {
            let most = usize::try_from(end - at).map_or(PIECE, |left| left.min(PIECE));
            let read = from.read_at(&mut piece[..most], at)?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            to.write_all_at(&piece[..read], at)?;
            at += read as u64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_no_name_and_its_copy_the_same_data() {
        let folder = tempfile::tempdir().unwrap();
        let images = Images::in_folder(folder.path()).unwrap();
        let image = images.make(4 << 20).unwrap();
        image.write_all_at(b"data", 3 << 20).unwrap();
        let copy = images.copy(&image).unwrap();
        let mut read = [0; 5];
        copy.read_exact_at(&mut read, 3 << 20).unwrap();
        assert_eq!(&read, b"data\0");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let error = images.check_room(u64::MAX).unwrap_err().to_string();
        assert!(error.contains("--dir"), "{error}");
    }
}
