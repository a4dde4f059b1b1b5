#![expect(
    unsafe_code,
    reason = "the calls relative to a directory take raw descriptors and texts"
)]
//! Directories held by a descriptor, and files opened, made, renamed and removed relative to them.
//!
//! A program that renames a directory or exchanges a link while a program works in it changes where a path leads, not where
//! a descriptor leads. So a program that may write where others may write as well (root in `/tmp`) opens the directory
//! once and names what is in it by single names. [`Access`] never follows a link in the last place.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libc::c_int;

use crate::option::check;
use crate::thread::random;

/// Of so many random names one is free, unless somebody knows them beforehand.
const NAME_TRIES: u32 = 16;
/// Not inherited by other programs, no controlling terminal, no wait for the other end of a pipe.
pub(crate) const ALWAYS: c_int = libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;

/// What a file of a [`Directory`] is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access(c_int);

impl Access {
    /// To read.
    pub const READ: Self = Self(libc::O_RDONLY);
    /// To read and write.
    pub const CHANGE: Self = Self(libc::O_RDWR);
    /// To read, and to write at the end.
    pub const APPEND: Self = Self(libc::O_RDWR | libc::O_APPEND);

    /// The same for a file that is made where there is none, with mode 0666 but for the umask.
    #[must_use]
    pub const fn or_make(self) -> Self {
        Self(self.0 | libc::O_CREAT)
    }
}

/// A directory, held by a descriptor (`O_PATH`). It stays the same one whatever becomes of its path.
#[derive(Debug)]
pub struct Directory(OwnedFd);

impl Directory {
    /// Opens a directory by its path. The kernel follows links on the way and in the last place, by its rules
    /// (`fs.protected_symlinks`).
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EACCES` (also for a link that may not be followed).
    pub fn open(path: &Path) -> io::Result<Self> {
        // What stands beside a plain name stands here.
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        open_at(None, path, libc::O_PATH | libc::O_DIRECTORY, 0).map(Self)
    }

    /// The same, but for a link in the last place, which is refused.
    ///
    /// # Errors
    /// `ENOTDIR` for a link; otherwise as [`Self::open`].
    pub fn open_no_link(path: &Path) -> io::Result<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        open_at(None, path, flags, 0).map(Self)
    }

    /// A directory that another call has opened.
    pub(crate) fn held(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// The same directory by another descriptor.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn share(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Owner, mode, device and number, of the directory that is held.
    ///
    /// # Errors
    /// None is known.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.share().map(|same| File::from(same.0))?.metadata()
    }

    /// Where the directory or file that a descriptor holds is now (`/proc/self/fd`); ` (deleted)` is added by the
    /// kernel where it is nowhere.
    ///
    /// # Errors
    /// Where `/proc` is not mounted.
    pub fn path_of(descriptor: impl AsFd) -> io::Result<PathBuf> {
        std::fs::read_link(proc_name(descriptor.as_fd()))
    }

    /// The directory, open to be read, locked or synced.
    ///
    /// # Errors
    /// `EACCES` where it may not be read.
    pub fn readable(&self) -> io::Result<File> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        open_at(Some(self.as_fd()), Path::new("."), flags, 0).map(File::from)
    }

    /// What has this name, a link itself and not what it leads to: to look at, neither to read nor to write.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn look(&self, name: &OsStr) -> io::Result<File> {
        self.at(name, libc::O_PATH | libc::O_NOFOLLOW, 0)
    }

    /// What this name leads to, links followed by the kernel: to look at, neither to read nor to write.
    ///
    /// # Errors
    /// `ENOENT` where there is nothing; `EACCES` for a link that may not be followed.
    pub fn look_behind_links(&self, name: &OsStr) -> io::Result<File> {
        self.at(name, libc::O_PATH, 0)
    }

    /// Opens what this name leads to, or makes it there, as `O_CREAT` does: links are followed by the kernel, by its
    /// rules (`fs.protected_symlinks`, `fs.protected_regular`), and the file is not emptied.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn make_behind_links(&self, name: &OsStr) -> io::Result<File> {
        self.at(name, libc::O_WRONLY | libc::O_CREAT, 0o666)
    }

    /// Opens a regular file of this directory.
    ///
    /// # Errors
    /// `InvalidInput` for a link and for what is no regular file; otherwise those of `open`.
    pub fn file(&self, name: &OsStr, access: Access) -> io::Result<File> {
        let opened = self.at(name, access.0 | libc::O_NOFOLLOW, 0o666);
        regular(opened.map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => {
                let why = "it is a symbolic link, which is not followed here; remove it";
                io::Error::new(io::ErrorKind::InvalidInput, why)
            }
            _ => error,
        })?)
    }

    /// Makes a file that nobody else has, open to be written (`O_EXCL`): a link of that name is in the way too.
    ///
    /// # Errors
    /// `EEXIST` where something has the name.
    pub fn make(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        self.at(name, flags, mode)
    }

    /// Makes a directory in this one, with exactly this mode, and opens it.
    ///
    /// # Errors
    /// `EEXIST`; those of `mkdirat`.
    pub fn make_directory(&self, name: &OsStr, mode: u32) -> io::Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let text = text(name)?;
        // SAFETY: the text ends with a NUL and outlives the call; the descriptor is open.
        check(unsafe { libc::mkdirat(self.0.as_raw_fd(), text.as_ptr(), mode) })?;
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let made = self.at(name, flags, 0).map(|file| Self(file.into()))?;
        // Whatever the caller's umask is.
        made.readable()?
            .set_permissions(std::fs::Permissions::from_mode(mode))?;
        Ok(made)
    }

    /// Gives what has the first name the second, in place of what had that; a link there is replaced.
    ///
    /// # Errors
    /// Those of `renameat`.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let (folder, from, to) = (self.0.as_raw_fd(), text(from)?, text(to)?);
        // SAFETY: both texts end with a NUL and outlive the call; the descriptor is open.
        check(unsafe { libc::renameat(folder, from.as_ptr(), folder, to.as_ptr()) }).map(drop)
    }

    /// Gives a file a second name that nothing has.
    ///
    /// # Errors
    /// `EEXIST`; those of `linkat`.
    fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let (folder, from, to) = (self.0.as_raw_fd(), text(from)?, text(to)?);
        // SAFETY: as above; without AT_SYMLINK_FOLLOW a link is not followed.
        check(unsafe { libc::linkat(folder, from.as_ptr(), folder, to.as_ptr(), 0) }).map(drop)
    }

    /// Removes a file, or a link itself.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`; those of `unlinkat`.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        let text = text(name)?;
        // SAFETY: the text ends with a NUL and outlives the call; the descriptor is open.
        check(unsafe { libc::unlinkat(self.0.as_raw_fd(), text.as_ptr(), 0) }).map(drop)
    }

    /// Where the link of this name points; it need not be there.
    ///
    /// # Errors
    /// `EINVAL` for what is no link; where `/proc` is not mounted.
    pub fn link_target(&self, name: &OsStr) -> io::Result<PathBuf> {
        // A magic link leads to the directory that is held, and readlink does not follow the last name.
        std::fs::read_link(proc_name(self.as_fd()).join(name))
    }

    /// The names in it, in no order; those that are no text are left out.
    ///
    /// # Errors
    /// `EACCES` where it may not be read; where `/proc` is not mounted.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(proc_name(self.as_fd()))?;
        Ok(entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect())
    }

    /// Waits until the names in it are on disk (`fsync`).
    ///
    /// # Errors
    /// Those of `fsync`.
    pub fn sync(&self) -> io::Result<()> {
        self.readable()?.sync_all()
    }

    fn at(&self, name: &OsStr, flags: c_int, mode: u32) -> io::Result<File> {
        open_at(Some(self.as_fd()), Path::new(name), flags, mode).map(File::from)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A new file that takes a name when it is whole. Until then it has a random name (`.linerate-….part`, 64 bits of
/// `getrandom`) in the directory of the name that it will take, made with `O_EXCL | O_NOFOLLOW`; dropped, it is gone.
#[derive(Debug)]
pub struct Replacement {
    directory: Directory,
    /// None once it has its name.
    temporary: Option<OsString>,
    file: File,
}

impl Replacement {
    /// Begins a file in this directory; the umask takes bits of the mode away.
    ///
    /// # Errors
    /// `EACCES` and the others of `open`.
    pub fn begin(directory: Directory, mode: u32) -> io::Result<Self> {
        for _ in 0..NAME_TRIES {
            match Self::named(&directory, mode) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => {
                    let (temporary, file) = other?;
                    return Ok(Self {
                        directory,
                        temporary: Some(temporary),
                        file,
                    });
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn named(directory: &Directory, mode: u32) -> io::Result<(OsString, File)> {
        let mut number = [0_u8; 8];
        random(&mut number)?;
        // Programs that read all files of a folder (NetworkManager, systemd, sysctl) pass hidden ones over.
        let name = format!(".linerate-{:016x}.part", u64::from_ne_bytes(number));
        let name = OsString::from(name);
        let file = directory.make(&name, mode)?;
        Ok((name, file))
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its name, in place of what had that (a link itself, not what it leads to), once its bytes are
    /// on disk.
    ///
    /// # Errors
    /// Those of `fsync` and `renameat`; then what had the name still has it, and the new file is gone.
    pub fn take(mut self, name: &OsStr) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(temporary) = &self.temporary {
            self.directory.rename(temporary, name)?;
        }
        self.temporary = None;
        Ok(())
    }

    /// The same for a name that nothing has.
    ///
    /// # Errors
    /// `EEXIST` where something has it; otherwise as [`Self::take`].
    pub fn take_free(self, name: &OsStr) -> io::Result<()> {
        self.file.sync_all()?;
        // Dropping it removes the first name.
        self.temporary
            .as_ref()
            .map_or(Ok(()), |temporary| self.directory.link(temporary, name))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            drop(self.directory.remove(temporary));
        }
    }
}

/// Whether both are one file.
///
/// # Errors
/// None is known.
pub fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// What the kernel calls an open descriptor of this process.
pub fn proc_name(descriptor: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

/// The file, where it is a regular one.
pub(crate) fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let why = "it is not a regular file";
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// `openat(2)`, from a directory or the current one.
pub(crate) fn open_at(
    directory: Option<BorrowedFd<'_>>,
    path: &Path,
    flags: c_int,
    mode: u32,
) -> io::Result<OwnedFd> {
    let from = directory.map_or(libc::AT_FDCWD, |directory| directory.as_raw_fd());
    let text = text(path.as_os_str())?;
    loop {
        // SAFETY: the text ends with a NUL and outlives the call; the mode is a variable argument of its type.
        match check(unsafe { libc::openat(from, text.as_ptr(), flags | ALWAYS, mode) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // SAFETY: the call has just given us this descriptor, which nobody else has.
            other => return other.map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) }),
        }
    }
}

/// A name as the kernel takes it.
pub(crate) fn text(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::tempdir;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names = Directory::open(folder).unwrap().names().unwrap();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_replacement_is_there_whole_or_not_at_all() {
        let folder = tempdir().unwrap();
        let held = Directory::open(folder.path()).unwrap();
        let name = OsStr::new("file");
        let begin = || Replacement::begin(held.share().unwrap(), 0o600).unwrap();
        let (one, other) = (begin(), begin());
        let parts = names(folder.path());
        assert_eq!(parts.len(), 2);
        for name in &parts {
            let random = name.strip_prefix(".linerate-").unwrap();
            let random = random.strip_suffix(".part").unwrap();
            assert_eq!(random.len(), 16, "{name}");
        }
        drop((one, other));
        assert_eq!(names(folder.path()), Vec::<String>::new());

        let mut first = begin();
        first.file().write_all(b"first").unwrap();
        first.take_free(name).unwrap();
        let taken = begin().take_free(name).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        // A link of that name is replaced; what it leads to is not touched.
        let link = OsStr::new("link");
        symlink("file", folder.path().join(link)).unwrap();
        let mut second = begin();
        second.file().write_all(b"second").unwrap();
        second.take(link).unwrap();
        assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"first");
        assert_eq!(fs::read(folder.path().join("link")).unwrap(), b"second");
        // A directory cannot be replaced by a file.
        held.make_directory(OsStr::new("full"), 0o700).unwrap();
        begin().take(OsStr::new("full")).unwrap_err();
        assert_eq!(names(folder.path()), ["file", "full", "link"]);
    }

    #[test]
    fn a_directory_stays_the_one_that_was_opened() {
        let folder = tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::create_dir(&old).unwrap();
        let held = Directory::open(&old).unwrap();
        fs::rename(&old, &new).unwrap();
        symlink("/", &old).unwrap();
        held.make(OsStr::new("file"), 0o600).unwrap();
        assert!(new.join("file").exists());
        assert!(Directory::open_no_link(&old).is_err());
        assert_eq!(
            Directory::path_of(&held).unwrap(),
            fs::canonicalize(new).unwrap()
        );
    }

    #[test]
    fn files_of_a_directory_are_no_links_and_no_pipes() {
        let folder = tempdir().unwrap();
        fs::write(folder.path().join("secret"), "theirs").unwrap();
        for (target, name) in [
            ("secret", "link"),
            ("/dev/null", "device"),
            ("x", "dangling"),
        ] {
            symlink(target, folder.path().join(name)).unwrap();
        }
        let held = Directory::open(folder.path()).unwrap();
        for name in ["link", "device", "dangling"].map(OsStr::new) {
            for access in [
                Access::READ,
                Access::CHANGE.or_make(),
                Access::APPEND.or_make(),
            ] {
                let error = held.file(name, access).unwrap_err();
                assert!(error.to_string().contains("a symbolic link"), "{error}");
            }
            let error = held.make(name, 0o600).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert!(!folder.path().join("x").exists());
        let error = Directory::open(Path::new("/dev"))
            .unwrap()
            .file(OsStr::new("null"), Access::READ)
            .unwrap_err();
        assert!(error.to_string().contains("no regular file"), "{error}");

        let mut made = held
            .file(OsStr::new("made"), Access::APPEND.or_make())
            .unwrap();
        made.write_all(b"text").unwrap();
        let mut text = String::new();
        let mut made = held.file(OsStr::new("made"), Access::READ).unwrap();
        made.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        let inner = held.make_directory(OsStr::new("inner"), 0o751).unwrap();
        let mode = inner.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o751);
    }
}
