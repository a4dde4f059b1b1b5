//! Which paths are up: a small file for each, in a folder of the user's own. It says where the process is
//! that holds the path, and nothing hangs on it: the path lives as long as that process.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use linerate_kernel::process;
use linerate_lab::runner::{Host, Lab};
use linerate_lab::scenario::{Family, Scenario};
use serde::{Deserialize, Serialize};

use crate::action::Failure;

/// The longest name of a path.
const LONGEST_NAME: usize = 64;

/// A path that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    /// Its name.
    pub(super) name: String,
    /// The scenario's name.
    pub(super) scenario: String,
    /// What the scenario is about.
    pub(super) about: String,
    /// The process that holds it, and when that was started.
    pub(super) pid: u32,
    start_ticks: u64,
    pub(super) hosts: Vec<HeldHost>,
}

/// A host of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldHost {
    pub(super) name: String,
    pub(super) ipv4: String,
    pub(super) ipv6: String,
    /// A file that is its network namespace.
    pub(super) namespace: PathBuf,
    /// The CPUs of its programs.
    pub(super) cpus: Vec<usize>,
}

impl Held {
    /// A path that this process holds.
    pub(super) fn by_us(name: &str, scenario: &Scenario, lab: &Lab) -> Self {
        let pid = std::process::id();
        let host = |host: &Host| HeldHost {
            name: host.name().to_owned(),
            ipv4: host.address(Family::Ipv4).to_string(),
            ipv6: host.address(Family::Ipv6).to_string(),
            namespace: host.namespace_file(),
            cpus: host.cpus().to_vec(),
        };
        Self {
            name: name.to_owned(),
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            pid,
            start_ticks: process::start_ticks(pid).unwrap_or(0),
            hosts: lab.hosts().iter().map(host).collect(),
        }
    }

    /// Whether the process that held it still lives.
    pub(super) fn is_up(&self) -> bool {
        process::start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// The folder of all of them.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// The user's: `$XDG_RUNTIME_DIR/linerate-lab`, else `/tmp/linerate-lab-UID`. To be asked for before the
    /// process is set apart, while the user is still itself.
    pub(super) fn open() -> Result<Self, Failure> {
        let user = process::user();
        let path = match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("linerate-lab"),
            _ => PathBuf::from(format!("/tmp/linerate-lab-{user}")),
        };
        let facts = match fs::symlink_metadata(&path) {
            // It is made when there is something to note.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self(path)),
            other => other.map_err(|error| file("look at", &path, &error))?,
        };
        if facts.is_dir() && facts.uid() == user && facts.mode() & 0o022 == 0 {
            return Ok(Self(path));
        }
        Err(Failure::File(format!(
            "{} is not a folder that only this user writes to, so it is not believed; remove it, or set XDG_RUNTIME_DIR",
            path.display()
        )))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// The path of this name that is up; forgets one that is not.
    pub(super) fn find(&self, name: &str) -> Result<Option<Held>, Failure> {
        check_name(name)?;
        let path = self.file(name);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| file("read", &path, &error))?,
        };
        match serde_json::from_slice::<Held>(&bytes) {
            Ok(held) if held.is_up() => Ok(Some(held)),
            // Its process was killed: the kernel has removed all that it held.
            Ok(_) => self.forget(name).map(|()| None),
            Err(error) => Err(Failure::File(format!("{}: {error}", path.display()))),
        }
    }

    /// All that are up, by their names.
    pub(super) fn all(&self) -> Result<Vec<Held>, Failure> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| file("read", &self.0, &error))?,
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name().into_string().ok()?;
                name.strip_suffix(".json").map(str::to_owned)
            })
            .collect();
        names.sort();
        let found = names.iter().map(|name| self.find(name));
        found.filter_map(Result::transpose).collect()
    }

    /// Says that a path is up.
    pub(super) fn keep(&self, held: &Held) -> Result<(), Failure> {
        let made = fs::DirBuilder::new().mode(0o700).create(&self.0);
        if let Err(error) = made
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(file("make the folder", &self.0, &error));
        }
        let path = self.file(&held.name);
        let temporary = path.with_extension(format!("{}.part", held.pid));
        let written = serde_json::to_vec_pretty(held)
            .map_err(std::io::Error::from)
            .and_then(|bytes| fs::write(&temporary, bytes))
            .and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|error| file("write", &path, &error))
    }

    /// Forgets a path, and the folder with the last one.
    pub(super) fn forget(&self, name: &str) -> Result<(), Failure> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(file("remove", &path, &error)),
            _ => {
                // It stays while another path is noted in it.
                drop(fs::remove_dir(&self.0));
                Ok(())
            }
        }
    }
}

/// A name is a file's as well.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |each: char| each.is_ascii_alphanumeric() || matches!(each, '.' | '-' | '_');
    if name.chars().all(plain)
        && name.len() <= LONGEST_NAME
        && !name.starts_with(['.', '-'])
        && !name.is_empty()
    {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "'{name}' is no name for a path: up to {LONGEST_NAME} letters, digits, dots, dashes and underscores, a letter or digit first"
    )))
}

fn file(operation: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::File(format!("cannot {operation} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["a", "wan-60ms", "x.1_2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "../x", "a/b", "-x", "a b", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
