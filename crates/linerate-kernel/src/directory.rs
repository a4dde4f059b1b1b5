//! Directories held by a descriptor, and files opened, made, renamed and removed relative to them.
//!
//! A program that renames a directory or exchanges a link while a program works in it changes where a path leads, not where
//! a descriptor leads. So a program that may write where others may write as well (root in `/tmp`) opens the directory
//! once and names what is in it by single names. [`Access`] never follows a link in the last place.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, mkdirat, openat, renameat, unlinkat};
use rustix::io::retry_on_intr;

use crate::thread::random;

/// Of so many random names one is free, unless somebody knows them beforehand.
const NAME_TRIES: u32 = 16;
/// Not inherited by other programs, no controlling terminal, no wait for the other end of a pipe.
pub(crate) const ALWAYS: OFlags = OFlags::CLOEXEC
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

/// What a file of a [`Directory`] is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access(OFlags);

impl Access {
    /// To read.
    pub const READ: Self = Self(OFlags::RDONLY);
    /// To read and write.
    pub const CHANGE: Self = Self(OFlags::RDWR);
    /// To read, and to write at the end.
    pub const APPEND: Self = Self(OFlags::RDWR.union(OFlags::APPEND));

    /// The same for a file that is made where there is none, with mode 0666 but for the umask.
    #[must_use]
    pub const fn or_make(self) -> Self {
        Self(self.0.union(OFlags::CREATE))
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
        open_at(CWD, path, OFlags::PATH | OFlags::DIRECTORY, 0).map(Self)
    }

    /// The same, but for a link in the last place, which is refused.
    ///
    /// # Errors
    /// `ENOTDIR` for a link; otherwise as [`Self::open`].
    pub fn open_no_link(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        open_at(CWD, path, flags, 0).map(Self)
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
        self.at(OsStr::new("."), OFlags::RDONLY | OFlags::DIRECTORY, 0)
    }

    /// What has this name, a link itself and not what it leads to: to look at, neither to read nor to write.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn look(&self, name: &OsStr) -> io::Result<File> {
        self.at(name, OFlags::PATH | OFlags::NOFOLLOW, 0)
    }

    /// What this name leads to, links followed by the kernel: to look at, neither to read nor to write.
    ///
    /// # Errors
    /// `ENOENT` where there is nothing; `EACCES` for a link that may not be followed.
    pub fn look_behind_links(&self, name: &OsStr) -> io::Result<File> {
        self.at(name, OFlags::PATH, 0)
    }

    /// Opens what this name leads to, or makes it there, as `O_CREAT` does: links are followed by the kernel, by its
    /// rules (`fs.protected_symlinks`, `fs.protected_regular`), and the file is not emptied.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn make_behind_links(&self, name: &OsStr) -> io::Result<File> {
        self.at(name, OFlags::WRONLY | OFlags::CREATE, 0o666)
    }

    /// Opens a regular file of this directory.
    ///
    /// # Errors
    /// `InvalidInput` for a link and for what is no regular file; otherwise those of `open`.
    pub fn file(&self, name: &OsStr, access: Access) -> io::Result<File> {
        let opened = self.at(name, access.0 | OFlags::NOFOLLOW, 0o666);
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
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        self.at(name, flags, mode)
    }

    /// Makes a file that has no name, open to be read and written: it is gone with its last descriptor. Where the file
    /// system has none such (`O_TMPFILE`), a new random name is made (`O_EXCL`) and removed at once.
    ///
    /// # Errors
    /// `EROFS`, `EACCES` and the others of `open`.
    pub fn nameless(&self, mode: u32) -> io::Result<File> {
        // EXCL: it cannot be given a name later either.
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL;
        let refused = match self.at(OsStr::new("."), flags, mode) {
            Ok(file) => return Ok(file),
            Err(error) => error,
        };
        // Kernels before 3.11 take it for a directory that is to be written.
        let unknown = [libc::EOPNOTSUPP, libc::EISDIR, libc::EINVAL];
        if !refused
            .raw_os_error()
            .is_some_and(|code| unknown.contains(&code))
        {
            return Err(refused);
        }
        let mut random_bytes = [0; 8];
        random(&mut random_bytes)?;
        let number = u64::from_ne_bytes(random_bytes);
        let name = OsString::from(format!(".linerate-{number:016x}.probe"));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = self.at(&name, flags, mode)?;
        self.remove(&name)?;
        Ok(file)
    }

    /// Opens a directory in this one; a link is none.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EACCES`.
    pub fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        self.at(name, flags, 0).map(|file| Self(file.into()))
    }

    /// Makes a directory in this one, with exactly this mode, and opens it.
    ///
    /// # Errors
    /// `EEXIST`; those of `mkdirat`.
    pub fn make_directory(&self, name: &OsStr, mode: u32) -> io::Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        mkdirat(self, name, Mode::from_raw_mode(mode))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
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
        Ok(renameat(self, from, self, to)?)
    }

    /// Gives a file a second name that nothing has.
    ///
    /// # Errors
    /// `EEXIST`; those of `linkat`.
    fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        // Without SYMLINK_FOLLOW a link is not followed.
        Ok(linkat(self, from, self, to, AtFlags::empty())?)
    }

    /// Removes a file, or a link itself.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`; those of `unlinkat`.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(self, name, AtFlags::empty())?)
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

    fn at(&self, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
        open_at(self.as_fd(), Path::new(name), flags, mode).map(File::from)
    }
}

impl From<File> for Directory {
    /// A directory that was opened to be read; whatever else it is, nothing will be found in it.
    fn from(opened: File) -> Self {
        Self(opened.into())
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

/// `openat(2)`, from a directory or the current one ([`CWD`]).
pub(crate) fn open_at(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: u32,
) -> io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(mode);
    Ok(retry_on_intr(|| {
        openat(directory, path, flags | ALWAYS, mode)
    })?)
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
    fn a_nameless_file_is_nowhere() {
        let folder = tempdir().unwrap();
        let held = Directory::open(folder.path()).unwrap();
        let mut file = held.nameless(0o600).unwrap();
        file.write_all(b"text").unwrap();
        assert_eq!(names(folder.path()), Vec::<String>::new());
        assert_eq!(
            file.metadata().unwrap().permissions().mode() & 0o7777,
            0o600
        );
        assert_eq!(file.metadata().unwrap().nlink(), 0);
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
        assert!(error.to_string().contains("not a regular file"), "{error}");

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
