//! Files below a folder that stands for `/`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// No file that is read here is longer; the rest of a longer one is left out by refusing it.
const LONGEST: u64 = 4 << 20;
/// Links from one name to the next; the kernel's own bound is 40.
const MOST_LINKS: usize = 40;

/// A folder that stands for `/`: the machine's own, or a copy of another machine's files.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    /// This machine's own files.
    pub fn of_this_machine() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A folder that stands for `/`.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Whether files are this machine's own.
    pub fn is_this_machine(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// What a name is told as: links are not looked at.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A file's text, or why there is none.
    pub(super) fn text(&self, path: &str) -> Result<String, String> {
        let say = |error: io::Error| format!("cannot read {path}: {error}");
        let at = self.resolved(path).map_err(say)?;
        let metadata = std::fs::metadata(&at).map_err(say)?;
        if metadata.len() > LONGEST {
            return Err(format!("{path} is longer than {LONGEST} bytes"));
        }
        // A pipe or a device would make the reader wait.
        if !metadata.is_file() {
            return Err(format!("{path} is no file"));
        }
        let bytes = std::fs::read(at).map_err(say)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file's text, with the error of the system.
    pub(crate) fn whole_text(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        let file = File::open(self.resolved(path)?)?;
        file.take(LONGEST + 1).read_to_string(&mut text)?;
        if text.len() as u64 > LONGEST {
            let why = format!("it is longer than {LONGEST} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(text)
    }

    /// Gives a file that is there another text, in one call, as files of the kernel want it.
    pub(crate) fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.resolved(path)?)?;
        file.write_all(format!("{text}\n").as_bytes())
    }

    /// The trimmed text of a small file.
    pub(crate) fn word(&self, path: &str) -> Result<String, String> {
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
            .map_err(|_| format!("{path} holds '{word}', which is not understood"))
    }

    /// The names in a folder, ascending; none where there is no such folder.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .resolved(path)
            .and_then(std::fs::read_dir)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// Whether there is something.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.entry(path)
            .and_then(|at| at.symlink_metadata())
            .is_ok()
    }

    /// The last name that a link leads to.
    pub(super) fn link_name(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.entry(path).ok()?).ok()?;
        target.file_name()?.to_str().map(str::to_owned)
    }

    /// Where a name leads after all links, as a path below the folder.
    pub(super) fn target(&self, path: &str) -> Option<String> {
        let target = self.walked(Path::new(path)).ok()?;
        let below = target.strip_prefix(&self.0).ok()?;
        Some(format!("/{}", below.to_str()?))
    }

    /// Where a name leads after all links, which stay below the folder: see [`Self::entry`].
    ///
    /// # Errors
    /// `ELOOP` after 40 links.
    pub fn resolved(&self, path: &str) -> io::Result<PathBuf> {
        if self.is_this_machine() {
            return Ok(self.path(path));
        }
        self.walked(Path::new(path))
    }

    /// Where a name itself stands, to be written anew or removed: links before it are followed, it is not. An absolute
    /// link begins at the folder, and no `..` leads above it, as in a machine that has it as its root
    /// (`path_resolution(7)`); what is not there yet stands where it would be made. Nobody may change links meanwhile: the
    /// names are looked at one after the other, and the whole path is used after that.
    ///
    /// # Errors
    /// `ELOOP` after 40 links; `EINVAL` for a path without a last name.
    pub fn entry(&self, path: &str) -> io::Result<PathBuf> {
        if self.is_this_machine() {
            return Ok(self.path(path));
        }
        let path = Path::new(path);
        let name = path.file_name();
        let name = name.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        Ok(self
            .walked(path.parent().unwrap_or(Path::new("")))?
            .join(name))
    }

    fn walked(&self, path: &Path) -> io::Result<PathBuf> {
        let mut left = names_backwards(path);
        let mut below = PathBuf::new();
        let mut links = 0;
        // Each turn takes a name, and only so many links add some.
        while let Some(name) = left.pop() {
            if name == ".." {
                below.pop();
                continue;
            }
            let Ok(target) = std::fs::read_link(self.0.join(&below).join(&name)) else {
                below.push(name);
                continue;
            };
            links += 1;
            if links > MOST_LINKS {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            if target.is_absolute() {
                below = PathBuf::new();
            }
            left.extend(names_backwards(&target));
        }
        Ok(self.0.join(below))
    }
}

/// The names of a path, the last one first; `..` is one.
fn names_backwards(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    names.collect()
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
        assert!(root.text("/dev/null").unwrap_err().contains("no file"));
    }
    #[test]
    fn links_stay_below_the_folder() {
        use std::fs;
        use std::os::unix::fs::symlink;

        let above = std::env::temp_dir().join(format!("linerate-root-{}", std::process::id()));
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
        let root = Root::at(&folder);
        // What the link names is below the folder where that has it, and else nowhere.
        assert_eq!(
            root.resolved("/absolute/file").unwrap(),
            folder.join(outside.strip_prefix("/").unwrap()).join("file")
        );
        assert!(root.text("/absolute/file").is_err());
        assert_eq!(root.names("/absolute"), Vec::<String>::new());
        assert_eq!(root.text("/srv/here/upward/file").unwrap(), "inside");
        assert_eq!(root.text("/../../etc/file").unwrap(), "inside");
        assert_eq!(root.text("/srv/file").unwrap(), "inside");
        assert_eq!(root.target("/srv/here/upward/file").unwrap(), "/etc/file");
        assert_eq!(
            root.resolved("/etc/new/a/b").unwrap(),
            folder.join("nowhere/yet/a/b")
        );
        // The name itself, where a file is written anew.
        assert_eq!(root.entry("/srv/file").unwrap(), folder.join("srv/file"));
        assert_eq!(
            root.entry("/srv/here/upward/file").unwrap(),
            folder.join("etc/file")
        );
        assert!(root.entry("/").is_err());
        let endless = root.resolved("/loop").unwrap_err();
        assert_eq!(endless.raw_os_error(), Some(libc::ELOOP));
        fs::remove_dir_all(above).unwrap();
    }
}
