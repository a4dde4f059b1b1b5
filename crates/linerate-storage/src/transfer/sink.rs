//! The files of a target: made below its folder and nowhere else, written in any order, whole when all their bytes are there.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use linerate_kernel::directory::{Directory, is_same};
use linerate_kernel::{clock, file_system};

use super::frame::{Header, Kind};
use super::ring::Piece;
use super::{ALIGNMENT, Access, PIECE, place};

/// Files that are open at once, at most: a source sends one after the other, over few streams.
const MOST_OPEN: usize = 4096;
/// Names of folders that wait for their headers, bytes: a stream that loses packets may be far behind the others.
const MOST_MADE: usize = 16 << 20;
/// Folders that are kept open.
const FOLDERS_KEPT: usize = 256;
/// Files that wait for their fsync: the kernel writes them together, and one commit of the journal serves them all.
const SYNCED_TOGETHER: usize = 64;
/// What a folder's owner may do while files are made in it, and afterwards.
const OWNERS: u32 = 0o700;

/// A file that is being written.
#[derive(Debug)]
struct Written {
    name: Arc<[u8]>,
    size: u64,
    /// Bytes that have not come.
    left: AtomicU64,
    file: OnceLock<Result<(File, AtomicBool), (String, i32)>>,
}

/// Where files go.
#[derive(Debug)]
pub(super) struct Sink {
    folder: Directory,
    /// Files get no names.
    nameless: bool,
    access: Access,
    files: Mutex<HashMap<u32, Arc<Written>>>,
    folders: Mutex<HashMap<Vec<u8>, Arc<Directory>>>,
    /// Folders that were made before their header came, and the bytes of their names.
    made: Mutex<(HashSet<Vec<u8>>, usize)>,
    /// Files that are whole, and not yet on disk.
    whole: Mutex<Vec<Arc<Written>>>,
    /// Those that did not get there.
    lost: Mutex<Vec<Arc<Written>>>,
    /// Bytes that were written past the page cache.
    pub(super) direct_bytes: AtomicU64,
    pub(super) moving_ns: AtomicU64,
    pub(super) opening_ns: AtomicU64,
}

/// Adds the time of some work.
fn timed<T>(sum: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let began = clock::monotonic();
    let done = work();
    sum.fetch_add(clock::monotonic().since(began).0, Ordering::AcqRel);
    done
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink {
    pub(super) fn new(folder: Directory, access: Access, nameless: bool) -> Self {
        Self {
            folder,
            nameless,
            access,
            files: Mutex::default(),
            folders: Mutex::default(),
            made: Mutex::default(),
            whole: Mutex::default(),
            lost: Mutex::default(),
            direct_bytes: AtomicU64::new(0),
            moving_ns: AtomicU64::new(0),
            opening_ns: AtomicU64::new(0),
        }
    }

    /// Writes a piece; whether its file is whole now.
    pub(super) fn write(&self, piece: &mut Piece) -> io::Result<bool> {
        let header = piece.header;
        if header.kind == Kind::Folder {
            if !self.nameless {
                timed(&self.opening_ns, || {
                    self.make_folder(&piece.name, header.mode)
                })?;
            }
            return Ok(false);
        }
        let written = timed(&self.opening_ns, || self.open(&header, &piece.name))?;
        let Some(Ok((file, direct))) = written.file.get() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        timed(&self.moving_ns, || self.write_at(file, direct, piece))?;
        let length = u64::from(header.length);
        let left = written
            .left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                left.checked_sub(length)
            });
        match left {
            Ok(left) if left == length => {
                timed(&self.opening_ns, || self.finish(&header, &written))?;
                if header.size < PIECE as u64 {
                    // Small files are written together. A file system without it does all the work in fsync.
                    drop(timed(&self.moving_ns, || {
                        file_system::begin_to_write_back(file)
                    }));
                }
                held(&self.whole).push(Arc::clone(&written));
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(_) => Err(io::Error::other("a part of it came twice")),
        }
    }

    /// The file of a piece, made by whoever has its first piece.
    fn open(&self, header: &Header, name: &Arc<[u8]>) -> io::Result<Arc<Written>> {
        let mut files = held(&self.files);
        if !files.contains_key(&header.file) && files.len() >= MOST_OPEN {
            let error = format!("more than {MOST_OPEN} files were begun and not ended");
            return Err(io::Error::other(error));
        }
        let written = files.entry(header.file).or_insert_with(|| {
            Arc::new(Written {
                name: Arc::clone(name),
                size: header.size,
                left: AtomicU64::new(header.size),
                file: OnceLock::new(),
            })
        });
        let written = Arc::clone(written);
        drop(files);
        if written.size != header.size {
            return Err(io::Error::other(
                "its size changed between two of its parts",
            ));
        }
        let made = written.file.get_or_init(|| {
            let file = self.make(name);
            let file =
                file.map_err(|error| (error.to_string(), error.raw_os_error().unwrap_or(0)))?;
            let large = header.size >= PIECE as u64;
            let direct = large && self.access == Access::Direct && place::make_direct(&file);
            Ok((file, AtomicBool::new(direct)))
        });
        match made {
            Ok(_) => Ok(written),
            Err((error, errno)) => {
                let kind = io::Error::from_raw_os_error(*errno).kind();
                Err(io::Error::new(kind, error.clone()))
            }
        }
    }

    fn make(&self, name: &[u8]) -> io::Result<File> {
        if self.nameless {
            return self.folder.nameless(0o600);
        }
        let (folder, name) = self.parent_of(name)?;
        folder.make(name, 0o600)
    }

    /// The folder that a name is in, entered, and the last part of the name.
    fn parent_of<'a>(&self, name: &'a [u8]) -> io::Result<(Arc<Directory>, &'a OsStr)> {
        let slash = name.iter().rposition(|byte| *byte == b'/');
        let (folder, last) = match slash {
            None => (Arc::new(self.folder.share()?), name),
            Some(slash) => (self.enter(&name[..slash])?, &name[slash + 1..]),
        };
        Ok((folder, OsStr::from_bytes(last)))
    }

    /// A folder that the source has, with its mode; one that was there before keeps its own.
    fn make_folder(&self, name: &[u8], mode: u32) -> io::Result<()> {
        let folder = self.enter(name)?;
        let mut made = held(&self.made);
        let is_ours = made.0.remove(name);
        if is_ours {
            made.1 -= name.len();
        }
        drop(made);
        if is_ours {
            let mode = Permissions::from_mode(mode & 0o777 | OWNERS);
            folder.readable()?.set_permissions(mode)?;
        }
        Ok(())
    }

    /// A folder below the target, entered from its parent, made where it is missing: its owner's until its header says more.
    fn enter(&self, name: &[u8]) -> io::Result<Arc<Directory>> {
        if let Some(known) = held(&self.folders).get(name) {
            return Ok(Arc::clone(known));
        }
        let (parent, last) = self.parent_of(name)?;
        let folder = match parent.enter(last) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_in(&parent, last, name)?
            }
            entered => entered?,
        };
        let mut folders = held(&self.folders);
        // Another thread may have entered it as well: all have the same, so that it is not idle while one of them uses it.
        let folder = folders
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(folder));
        let folder = Arc::clone(folder);
        if folders.len() < FOLDERS_KEPT {
            return Ok(folder);
        }
        // In those that nobody holds nothing is being made.
        let idle: Vec<_> = folders
            .extract_if(|_, folder| Arc::strong_count(folder) == 1)
            .collect();
        drop(folders);
        for (_, folder) in idle {
            folder.sync()?;
        }
        Ok(folder)
    }

    /// Makes the folder of this name, and of this last part of it, in its parent, where another thread has not been faster.
    fn make_in(&self, parent: &Directory, last: &OsStr, name: &[u8]) -> io::Result<Directory> {
        let mut made = held(&self.made);
        if made.1 >= MOST_MADE {
            return Err(io::Error::other(
                "too many folders were made and not announced",
            ));
        }
        match parent.make_directory(last, OWNERS) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => parent.enter(last),
            Err(error) => Err(error),
            Ok(folder) => {
                made.0.insert(name.to_owned());
                made.1 += name.len();
                Ok(folder)
            }
        }
    }

    /// Writes a piece where it belongs; directly, the end of a file is written to the next multiple of the alignment.
    fn write_at(&self, file: &File, direct: &AtomicBool, piece: &mut Piece) -> io::Result<()> {
        let (offset, length) = (piece.header.offset, piece.header.length as usize);
        let mut is_direct = direct.load(Ordering::Acquire);
        let mut done = 0;
        while done < length {
            let to = if is_direct {
                length.next_multiple_of(ALIGNMENT)
            } else {
                length
            };
            match file.write_at(&piece.room.bytes()[done..to], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => done += bytes,
                Err(error) if is_direct && error.kind() == io::ErrorKind::InvalidInput => {
                    file_system::set_direct(file, false)?;
                    direct.store(false, Ordering::Release);
                    is_direct = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if is_direct {
            self.direct_bytes.fetch_add(length as u64, Ordering::AcqRel);
        }
        Ok(())
    }

    /// All bytes of a file are there.
    fn finish(&self, header: &Header, written: &Written) -> io::Result<()> {
        held(&self.files).remove(&header.file);
        let Some(Ok((file, _))) = written.file.get() else {
            return Ok(());
        };
        if !header.size.is_multiple_of(ALIGNMENT as u64) && header.size >= PIECE as u64 {
            file.set_len(header.size)?;
        }
        if !self.nameless {
            file.set_permissions(Permissions::from_mode(header.mode & 0o777))?;
        }
        Ok(())
    }

    /// Waits until the files that are whole are on disk, where there are enough of them.
    pub(super) fn sync_some(&self) -> io::Result<()> {
        let mut whole = held(&self.whole);
        if whole.len() < SYNCED_TOGETHER {
            return Ok(());
        }
        let files = std::mem::take(&mut *whole);
        drop(whole);
        timed(&self.moving_ns, || self.sync_all(files))
    }

    /// Has files on disk, as many as can be; the first error.
    fn sync_all(&self, files: Vec<Arc<Written>>) -> io::Result<()> {
        let mut first = Ok(());
        for one in files {
            let Some(Ok((file, _))) = one.file.get() else {
                continue;
            };
            if let Err(error) = file.sync_all() {
                first = first.and(Err(error));
                held(&self.lost).push(one);
            }
        }
        first
    }

    /// After a failure: removes the files that are not whole or not on disk, so that none is taken for one that is; what cannot be
    /// removed stays.
    pub(super) fn clean_up(&self) {
        let whole = std::mem::take(&mut *held(&self.whole));
        drop(self.sync_all(whole));
        let mut parts = std::mem::take(&mut *held(&self.lost));
        parts.extend(held(&self.files).drain().map(|(_, part)| part));
        for part in parts {
            if let (Some(Ok((file, _))), false) = (part.file.get(), self.nameless) {
                drop(self.remove(&part.name, file));
            }
        }
    }

    /// Removes a file, where its name is still its own.
    fn remove(&self, name: &[u8], file: &File) -> io::Result<()> {
        let (folder, name) = self.parent_of(name)?;
        if is_same(&folder.look(name)?, file)? {
            folder.remove(name)?;
        }
        Ok(())
    }

    /// Waits until everything is on disk; how many files are not whole.
    pub(super) fn sync(&self) -> io::Result<usize> {
        let whole = std::mem::take(&mut *held(&self.whole));
        self.sync_all(whole)?;
        if !self.nameless {
            for folder in held(&self.folders).values() {
                folder.sync()?;
            }
            self.folder.sync()?;
        }
        Ok(held(&self.files).len())
    }
}
