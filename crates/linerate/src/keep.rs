//! Files that the program writes: whole or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::action::Failure;

/// What a file is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The record of a run.
    Record,
    /// A report as HTML.
    Page,
    /// A figure as SVG.
    Figure,
}

impl Kept {
    const fn name(self) -> &'static str {
        match self {
            Self::Record => "keep the record in",
            Self::Page => "write the HTML report to",
            Self::Figure => "write the SVG figure to",
        }
    }

    /// What there is all the same.
    const fn left(self) -> &'static str {
        match self {
            Self::Record => {
                "the report on standard output is complete, and --json there holds all samples"
            }
            Self::Page => {
                "nothing that was measured is lost by that, and `linerate show RECORD --html FILE` makes it of a kept record"
            }
            Self::Figure => {
                "nothing that was measured is lost by that, and `linerate show RECORD --svg FILE` makes it of a kept record"
            }
        }
    }
}

/// A file that is written whole or not at all. It is made before what it is to hold is there, so that
/// nothing that was measured is lost to a wrong path, and written by way of a second file, so that an
/// older one is replaced at once.
pub(crate) struct Keep {
    what: Kept,
    path: PathBuf,
    /// Where a regular file grows until it is whole; none where the path is a device or a pipe, or where
    /// this program's own output goes, which is written as it stands: renaming over it would replace it.
    temporary: Option<PathBuf>,
    file: File,
}

impl Keep {
    pub(crate) fn open(path: &Path, what: Kept) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::File(format!(
                "cannot {} {}: {error}",
                what.name(),
                path.display()
            ))
        };
        if let Some(file) = as_it_stands(path) {
            let file = file.map_err(failed)?;
            return Ok(Self {
                what,
                path: path.to_path_buf(),
                temporary: None,
                file,
            });
        }
        let path = behind_links(path);
        let mut name = path
            .file_name()
            .map(OsStr::to_os_string)
            .unwrap_or_default();
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = File::create(&temporary).map_err(failed)?;
        Ok(Self {
            what,
            path,
            temporary: Some(temporary),
            file,
        })
    }

    /// Whether it is a regular file, which can be written a second time.
    pub(crate) fn is_replaced_at_once(&self) -> bool {
        self.temporary.is_some()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes).and_then(|()| {
            let Some(temporary) = &self.temporary else {
                return Ok(());
            };
            self.file.sync_all()?;
            std::fs::rename(temporary, &self.path)
        });
        written.map_err(|error| {
            Failure::File(format!(
                "cannot {} {}: {error}; {}",
                self.what.name(),
                self.path.display(),
                self.what.left()
            ))
        })
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Gone already where the file was written.
            drop(std::fs::remove_file(temporary));
        }
    }
}

/// What the path names, opened, where that is no regular file, or the one that standard output or error goes
/// to: then by the same descriptor, so that neither overwrites the other.
fn as_it_stands(path: &Path) -> Option<std::io::Result<File>> {
    let there = std::fs::metadata(path).ok()?;
    let same = |output: &str| {
        std::fs::metadata(output)
            .is_ok_and(|output| (output.dev(), output.ino()) == (there.dev(), there.ino()))
    };
    if same("/dev/stdout") {
        return Some(
            std::io::stdout()
                .as_fd()
                .try_clone_to_owned()
                .map(File::from),
        );
    }
    if same("/dev/stderr") {
        return Some(
            std::io::stderr()
                .as_fd()
                .try_clone_to_owned()
                .map(File::from),
        );
    }
    (!there.is_file()).then(|| linerate_kernel::file::append_without_waiting(path))
}

/// Where a path leads, also where nothing is there yet; so a link still is one afterwards.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&path) {
            // An absolute one replaces the whole path.
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => break,
        }
    }
    path
}

/// Links that the kernel follows, at most (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
