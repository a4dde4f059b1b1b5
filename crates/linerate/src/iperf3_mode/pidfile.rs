//! The file of `-I`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use linerate_report::iperf3::ErrorCode;

use crate::input;

use super::failure::Wrong;

/// The process's number in a file, which is removed when this is dropped.
pub(super) struct Pidfile(PathBuf);

impl Pidfile {
    /// Writes it, unless a process runs that another one names.
    pub(super) fn create(path: &Path) -> Result<Self, Wrong> {
        if names_a_process(path) {
            return Err(Wrong::plain(
                "Another instance of iperf3 appears to be running".to_owned(),
            )
            .and(format!(
                "{} has the number of a process that runs; remove it if that is another program",
                path.display()
            )));
        }
        write(path).map_err(|error| {
            Wrong::of_kernel(ErrorCode::PIDFILE, &error)
                .and(format!("cannot write {}: {error}", path.display()))
        })?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

fn write(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    // As iperf3's: neither a newline nor a NUL behind it.
    write!(file, "{}", std::process::id())
}

fn names_a_process(path: &Path) -> bool {
    let Ok(text) = input::string(path, input::WRITTEN) else {
        return false;
    };
    let number = text.trim_matches(|c: char| !c.is_ascii_digit());
    !number.is_empty() && Path::new("/proc").join(number).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_the_number_alone_and_is_gone_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        let file = Pidfile::create(&path).unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written, std::process::id().to_string());
        let second = Pidfile::create(&path).err().unwrap();
        assert_eq!(
            second.lines()[0],
            "iperf3: Another instance of iperf3 appears to be running"
        );
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_cannot_be_written_is_refused_in_iperf3s_words() {
        let refused = Pidfile::create(Path::new("/nonexistent/pid"))
            .err()
            .unwrap();
        assert_eq!(
            refused.sentence,
            "unable to write PID file: No such file or directory"
        );
    }
}
