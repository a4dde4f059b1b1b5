//! Files below a folder that stands for `/`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
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

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A file's text, or why there is none.
    pub(super) fn text(&self, path: &str) -> Result<String, String> {
        let say = |error: io::Error| format!("cannot read {path}: {error}");
        let at = self.resolved(path);
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
        std::fs::read_to_string(self.resolved(path))
    }

    /// Gives a file that is there another text, in one call, as files of the kernel want it.
    pub(crate) fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.resolved(path))?;
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
        let mut names: Vec<String> = std::fs::read_dir(self.path(path))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// Whether there is something.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// The last name that a link leads to.
    pub(super) fn link_name(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        target.file_name()?.to_str().map(str::to_owned)
    }

    /// Where a name leads after all links, as a path below the folder.
    pub(super) fn target(&self, path: &str) -> Option<String> {
        let target = self.resolved(path);
        let below = target.strip_prefix(&self.0).ok()?;
        Some(format!("/{}", below.to_str()?))
    }

    /// Follows links of the file itself; those to an absolute path stay below the folder, as they would in a
    /// machine that has it as its root.
    fn resolved(&self, path: &str) -> PathBuf {
        let mut at = self.path(path);
        for _ in 0..MOST_LINKS {
            let Ok(target) = std::fs::read_link(&at) else {
                break;
            };
            at = if target.is_absolute() {
                self.path(&target.to_string_lossy())
            } else {
                plain(&at.parent().unwrap_or(&self.0).join(target))
            };
        }
        at
    }
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
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
}
