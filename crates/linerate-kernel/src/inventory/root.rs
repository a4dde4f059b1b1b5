//! Files below a folder that stands for `/`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustix::fs::{CWD, OFlags};

use crate::directory::{Directory, open_at, regular};
use crate::rooted_path;

/// A longer file is refused.
const LONGEST: u64 = 4 << 20;
/// The same for files of the kernel, which say beforehand that they are empty: `/proc/interrupts` of a machine with a
/// thousand CPUs has tens of megabytes.
const LONGEST_OF_KERNEL: u64 = 64 << 20;

/// A folder that stands for `/`: the machine's own, or a copy of another machine's files, in which the kernel resolves
/// each path as below a root of its own (`RESOLVE_IN_ROOT`): no link and no `..` leads out of it, whoever changes
/// links meanwhile. The folder is held by a descriptor from its opening on.
#[derive(Debug, Clone)]
pub struct Root {
    folder: PathBuf,
    /// None for the machine's own files, which need no kernel that knows `openat2`.
    held: Option<Arc<Directory>>,
}

impl Root {
    /// This machine's own files.
    pub fn of_this_machine() -> Self {
        Self {
            folder: PathBuf::from("/"),
            held: None,
        }
    }

    /// Opens a folder that stands for `/`.
    ///
    /// # Errors
    /// What is no folder; `Unsupported` before Linux 5.6.
    pub fn at(folder: &Path) -> io::Result<Self> {
        let held = Directory::open(folder)?;
        rooted_path::open(&held, Path::new("/"), OFlags::PATH)?;
        Ok(Self {
            folder: folder.to_owned(),
            held: Some(Arc::new(held)),
        })
    }

    /// Whether files are this machine's own.
    pub fn is_this_machine(&self) -> bool {
        self.held.is_none()
    }

    /// The folder, as it was named.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder without links and dots.
    ///
    /// # Errors
    /// Where `/proc` is not mounted.
    pub fn real_folder(&self) -> io::Result<PathBuf> {
        self.held
            .as_ref()
            .map_or_else(|| Ok(self.folder.clone()), Directory::path_of)
    }

    /// The path as messages print it: links are not looked at.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.folder.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A file's text, or why there is none.
    pub(crate) fn text(&self, path: &str) -> Result<String, String> {
        let bytes = self.bytes(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => format!("{path} is not a file"),
            _ => format!("cannot read {path}: {error}"),
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first 4096 bytes of a file, in one call: of a file of the kernel that is written entry by entry those of the
    /// first entries.
    pub(crate) fn beginning(&self, path: &str) -> Result<String, String> {
        let failed = |error: io::Error| format!("cannot read {path}: {error}");
        let opened = self.open(Path::new(path), OFlags::RDONLY).map_err(failed)?;
        let mut file = regular(opened.into()).map_err(failed)?;
        let mut bytes = vec![0; 4096];
        let read = file.read(&mut bytes).map_err(failed)?;
        Ok(String::from_utf8_lossy(&bytes[..read]).into_owned())
    }

    /// A file's text, with the error of the system.
    ///
    /// # Errors
    /// Those of `open` and `read`; `InvalidInput` for what is no regular file, `InvalidData` for what is no text,
    /// `FileTooLarge` for what is too long.
    pub fn whole_text(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let bytes = self.bytes(path)?;
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// A regular file's bytes; a pipe or a device would make the reader wait.
    fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let file = regular(self.open(path.as_ref(), OFlags::RDONLY)?.into())?;
        let too_long = |bound: u64| {
            let why = format!("it is longer than {bound} bytes");
            Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
        };
        if file.metadata()?.len() > LONGEST {
            return too_long(LONGEST);
        }
        let mut bytes = Vec::new();
        file.take(LONGEST_OF_KERNEL + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST_OF_KERNEL {
            return too_long(LONGEST_OF_KERNEL);
        }
        Ok(bytes)
    }

    /// Gives a file that is there another text, in one call, as files of the kernel want it.
    ///
    /// # Errors
    /// `ENOENT` where there is none; otherwise those of `open` and `write`.
    pub fn write(&self, path: impl AsRef<Path>, text: &str) -> io::Result<()> {
        // Emptied once it is known what it is.
        let file: File = self.open(path.as_ref(), OFlags::WRONLY)?.into();
        let mut file = regular(file)?;
        file.set_len(0)?;
        file.write_all(format!("{text}\n").as_bytes())
    }

    /// A directory that is there, links followed.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn directory(&self, path: impl AsRef<Path>) -> io::Result<Directory> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        self.open(path.as_ref(), flags).map(Directory::held)
    }

    /// The same; the directory is made where there is none, with those above it, each with exactly this mode and on
    /// disk when this returns.
    ///
    /// # Errors
    /// `ENOENT` for a link that leads to nothing; otherwise those of `mkdir` and `open`.
    pub fn make_directories(&self, path: impl AsRef<Path>, mode: u32) -> io::Result<Directory> {
        let path = path.as_ref();
        let absent = match self.directory(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => error,
            other => return other,
        };
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(absent);
        };
        let above = self.make_directories(above, mode)?;
        match above.make_directory(name, mode) {
            // Another process has made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.directory(path),
            Err(error) => Err(error),
            Ok(made) => above.sync().map(|()| made),
        }
    }

    /// The directory that an entry stands in, links on the way followed, and the entry's name; it need not be there.
    ///
    /// # Errors
    /// `EINVAL` for a path without a last name; otherwise those of `open`.
    pub fn entry<'a>(&self, path: &'a Path) -> io::Result<(Directory, &'a OsStr)> {
        let (above, name) = parts(path)?;
        Ok((self.directory(above)?, name))
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        match &self.held {
            None => open_at(CWD, &self.path(path), flags, 0),
            Some(root) => rooted_path::open(root, path, flags),
        }
    }

    /// The trimmed text of a small file.
    ///
    /// # Errors
    /// What could not be read and why, or that it is empty.
    pub fn word(&self, path: &str) -> Result<String, String> {
        let text = self.text(path)?;
        match text.trim() {
            "" => Err(format!("{path} is empty")),
            text => Ok(text.to_owned()),
        }
    }

    /// The value that a small file holds.
    pub(crate) fn value<T: FromStr>(&self, path: &str) -> Result<T, String> {
        let word = self.word(path)?;
        word.parse()
            .map_err(|_| format!("{path} contains '{word}', which is not understood"))
    }

    /// The names in a folder, ascending; none where there is no such folder.
    pub fn names(&self, path: &str) -> Vec<String> {
        let names = self.directory(path).and_then(|folder| folder.names());
        let mut names = names.unwrap_or_default();
        names.sort_unstable();
        names
    }

    /// Whether there is something.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.open(Path::new(path), OFlags::PATH | OFlags::NOFOLLOW)
            .is_ok()
    }

    /// The last name that a link leads to.
    pub(super) fn link_name(&self, path: &str) -> Option<String> {
        let (folder, name) = self.entry(Path::new(path)).ok()?;
        let target = folder.link_target(name).ok()?;
        target.file_name()?.to_str().map(str::to_owned)
    }

    /// Where a name leads after all links, as a path below the folder; `None` where that is not there.
    pub(super) fn target(&self, path: &str) -> Option<String> {
        let found = self.open(Path::new(path), OFlags::PATH).ok()?;
        let found = Directory::path_of(found).ok()?;
        let below = found.strip_prefix(self.real_folder().ok()?).ok()?;
        Some(format!("/{}", below.to_str()?))
    }
}

/// What is before the last name, and the last name.
fn parts(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let parts = path.parent().zip(path.file_name());
    parts.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_says_its_name() {
        let root = Root::of_this_machine();
        let error = root.text("/proc/sys/none").unwrap_err();
        assert!(error.starts_with("cannot read /proc/sys/none: "), "{error}");
        assert!(
            root.value::<u64>("/proc/sys/kernel/ostype")
                .unwrap_err()
                .contains("Linux")
        );
        assert_eq!(root.names("/no/such/folder"), Vec::<String>::new());
        assert!(root.text("/dev/null").unwrap_err().contains("not a file"));
    }
    #[test]
    fn links_stay_below_the_folder() {
        use std::fs;
        use std::os::unix::fs::symlink;

        let above = tempfile::tempdir().unwrap();
        let above = above.path();
        let folder = above.join("image");
        for made in ["image/etc", "image/srv/here", "etc", "srv/here"] {
            fs::create_dir_all(above.join(made)).unwrap();
        }
        fs::write(above.join("etc/file"), "outside").unwrap();
        fs::write(folder.join("etc/file"), "inside").unwrap();
        let outside = above.join("etc");
        symlink(&outside, folder.join("absolute")).unwrap();
        symlink("../../../../etc", folder.join("srv/here/upward")).unwrap();
        symlink("/etc/file", folder.join("srv/file")).unwrap();
        symlink("/nowhere/yet", folder.join("etc/new")).unwrap();
        symlink("loop", folder.join("loop")).unwrap();
        let root = Root::at(&folder).unwrap();
        // What the link names is below the folder where that has it, and else nowhere.
        assert!(root.text("/absolute/file").is_err());
        assert_eq!(root.names("/absolute"), Vec::<String>::new());
        assert_eq!(root.text("/srv/here/upward/file").unwrap(), "inside");
        assert_eq!(root.text("/../../etc/file").unwrap(), "inside");
        assert_eq!(root.text("/srv/file").unwrap(), "inside");
        assert_eq!(root.target("/srv/here/upward/file").unwrap(), "/etc/file");
        assert_eq!(root.target("/etc/new"), None);
        assert_eq!(root.link_name("/etc/new").as_deref(), Some("yet"));
        assert_eq!(root.link_name("/srv/here/upward").as_deref(), Some("etc"));
        assert!(root.has("/etc/new") && !root.has("/nowhere/yet"));
        // The name itself, where a file is written anew.
        let stands = |path: &str| {
            let (folder, name) = root.entry(Path::new(path)).unwrap();
            Directory::path_of(folder).unwrap().join(name)
        };
        let real = root.real_folder().unwrap();
        assert_eq!(stands("/srv/file"), real.join("srv/file"));
        assert_eq!(stands("/srv/here/upward/file"), real.join("etc/file"));
        assert!(root.entry(Path::new("/")).is_err());
        root.make_directories("/srv/here/upward/a/b", 0o750)
            .unwrap();
        assert!(folder.join("etc/a/b").is_dir());
        assert!(!above.join("etc/a").exists());
        // A directory in the place of a link that leads nowhere would be another one than the link names.
        assert!(root.make_directories("/etc/new/a", 0o755).is_err());
        root.write("/srv/file", "changed").unwrap();
        assert_eq!(root.whole_text("/etc/file").unwrap(), "changed\n");
        assert_eq!(
            fs::read_to_string(above.join("etc/file")).unwrap(),
            "outside"
        );
        let endless = root.whole_text("/loop").unwrap_err();
        assert_eq!(endless.raw_os_error(), Some(libc::ELOOP));
        assert!(Root::at(&folder.join("etc/file")).is_err());
    }
}
