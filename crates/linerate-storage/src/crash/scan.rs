//! Walks a tree for files that a power cut damaged. Reads names and inodes of all files, asks for the extents of those that
//! were changed within the window, and reads data only where the caller wants it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use linerate_kernel::clock;
use linerate_kernel::directory::Directory;
use linerate_kernel::mount_table::{self, Mount};
use linerate_kernel::tree::{self, EntryFacts, EntryKind};
use linerate_model::plain_text::PlainText;
use linerate_model::storage::{
    CrashScan, Exposure, FoundCounts, ScanCounts, ScanWindow, SuspectFile, WindowSource,
};
use linerate_model::units::Nanos;
use linerate_model::watch::UnixMillis;

use super::last_boot::this_boot;
use super::suspect::{Seen, look};
use super::{CrashError, Writeback, exposure, known, last_boot};

/// What the last boot wrote in so long before its end is looked at, at least, ms. ext4 and XFS were seen to lose files up to
/// 41 s after they were written.
const WINDOW_MS: u64 = 60_000;
/// The clock is asked after so many entries.
const TURN: u64 = 256;

/// Which files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Those written before the end of the last boot.
    LastBoot,
    /// Those changed from one moment to another.
    Given(UnixMillis, UnixMillis),
}

/// How to scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanOptions {
    /// Which files are looked at.
    pub since: Since,
    /// Whether data are read, for zeros that were written.
    pub read: bool,
    /// Whether file systems that are mounted below the folder are scanned as well.
    pub cross_mounts: bool,
    /// Whether file systems of servers, and in memory, are scanned.
    pub any_file_system: bool,
    /// Ends the scan after so long.
    pub limit: Option<Nanos>,
    /// So many files are listed; all are counted.
    pub most_listed: usize,
}

/// Scans a folder. `tell` gets the counts now and then.
///
/// # Errors
/// Where the folder cannot be opened, its file system is not a disk's of this host, or the last boot has left no trace.
pub fn scan(
    folder: &Path,
    options: &ScanOptions,
    tell: &mut dyn FnMut(&ScanCounts),
) -> Result<CrashScan, CrashError> {
    let begun = clock::monotonic();
    let root = Directory::open(folder).map_err(CrashError::folder(folder))?;
    let unknown = |source| CrashError::Mount {
        path: folder.to_owned(),
        source,
    };
    let mount = mount_table::of_descriptor(&root).map_err(unknown)?;
    let held = tree::held(&root).map_err(unknown)?;
    if let Some(mount) = mount.as_ref().filter(|_| !options.any_file_system) {
        is_this_host_s_disk(folder, mount)?;
    }
    let exposure = mount
        .as_ref()
        .and_then(|mount| exposure(&mount.kind, &mount.options.join(","), Writeback::read()));
    let window = window(options.since, exposure.as_ref())?;
    let mut walk = Walk {
        root,
        device: held.device,
        options,
        exposed_from: exposure.as_ref().map(|exposure| {
            UnixMillis(
                window
                    .cut_unix_ms
                    .0
                    .saturating_sub(exposure.longest_ns.0 / 1_000_000),
            )
        }),
        window: &window,
        end: options
            .limit
            .map(|limit| Nanos(begun.0.saturating_add(limit.0))),
        until_turn: TURN,
        cut_short: false,
        pending: vec![PathBuf::new()],
        counts: ScanCounts::default(),
        found: FoundCounts {
            zeros: options.read.then_some(0),
            ..FoundCounts::default()
        },
        files: Vec::new(),
        tell,
    };
    if walk.exposed_from.is_some() {
        walk.counts.exposed = Some(0);
    }
    walk.run().map_err(CrashError::folder(folder))?;
    let (counts, found, cut_short, mut files) =
        (walk.counts, walk.found, walk.cut_short, walk.files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let of = |field: fn(&Mount) -> PlainText| mount.as_ref().map(field);
    Ok(CrashScan {
        folder: escaped(folder.as_os_str()),
        file_system: of(|mount| mount.kind.as_str().into()),
        source: of(|mount| mount.source.as_str().into()),
        options: of(|mount| mount.options.join(",").into()),
        window,
        exposure,
        counts,
        found,
        files,
        cut_short,
        took_ns: Nanos(clock::monotonic().0 - begun.0),
    })
}

fn is_this_host_s_disk(folder: &Path, mount: &Mount) -> Result<(), CrashError> {
    let (path, file_system) = (folder.to_owned(), mount.kind.clone());
    if known::is_network(&file_system) {
        return Err(CrashError::Network { path, file_system });
    }
    if known::is_memory(&file_system) {
        return Err(CrashError::Memory { path, file_system });
    }
    Ok(())
}

fn window(since: Since, exposure: Option<&Exposure>) -> Result<ScanWindow, CrashError> {
    match since {
        Since::Given(from, until) => Ok(ScanWindow {
            from_unix_ms: from,
            until_unix_ms: until,
            cut_unix_ms: until,
            source: WindowSource::Given,
        }),
        Since::LastBoot => {
            let begun = this_boot().ok_or(CrashError::NoLastBoot)?;
            let boot = last_boot(Path::new("/"), begun).ok_or(CrashError::NoLastBoot)?;
            let exposed = exposure.map_or(0, |exposure| exposure.longest_ns.0 / 1_000_000);
            let cut = boot.earliest_unix_ms;
            Ok(ScanWindow {
                from_unix_ms: UnixMillis(cut.0.saturating_sub(exposed.max(WINDOW_MS))),
                until_unix_ms: boot.latest_unix_ms,
                cut_unix_ms: cut,
                source: WindowSource::LastBoot(boot),
            })
        }
    }
}

struct Walk<'a> {
    root: Directory,
    device: (u32, u32),
    options: &'a ScanOptions,
    window: &'a ScanWindow,
    /// Files changed since then may have been in memory when power was cut.
    exposed_from: Option<UnixMillis>,
    /// By the monotonic clock.
    end: Option<Nanos>,
    until_turn: u64,
    cut_short: bool,
    /// Directories to read, below the root. No link is followed and none is entered twice, so it becomes empty.
    pending: Vec<PathBuf>,
    counts: ScanCounts,
    found: FoundCounts,
    files: Vec<SuspectFile>,
    tell: &'a mut dyn FnMut(&ScanCounts),
}

impl Walk<'_> {
    fn run(&mut self) -> std::io::Result<()> {
        while let Some(path) = self.pending.pop() {
            match self.directory(&path) {
                Ok(()) => {}
                Err(error) if path.as_os_str().is_empty() => return Err(error),
                Err(error) if is_gone(&error) => self.counts.vanished += 1,
                Err(_) => self.counts.unreadable_directories += 1,
            }
            if self.cut_short {
                break;
            }
        }
        (self.tell)(&self.counts);
        Ok(())
    }

    fn directory(&mut self, path: &Path) -> std::io::Result<()> {
        let directory = tree::directory_below(&self.root, path)?;
        let by_name = Directory::from(directory.try_clone()?);
        self.counts.directories += 1;
        tree::entries(&directory, |name| {
            self.entry(&by_name, path, name);
            !self.cut_short
        })
    }

    fn entry(&mut self, directory: &Directory, path: &Path, name: &OsStr) {
        self.turn();
        let facts = match tree::entry(directory, name) {
            Ok(facts) => facts,
            Err(error) if is_gone(&error) => return self.counts.vanished += 1,
            Err(_) => return self.counts.unreadable_files += 1,
        };
        if facts.kind == EntryKind::Other {
            return;
        }
        if !self.may_enter(directory, name, &facts) {
            return self.counts.other_mounts += 1;
        }
        match facts.kind {
            EntryKind::Directory => self.pending.push(path.join(name)),
            EntryKind::File => self.file(directory, path, name, &facts),
            EntryKind::Other => {}
        }
    }

    /// Asks the clock now and then.
    fn turn(&mut self) -> bool {
        self.until_turn -= 1;
        if self.until_turn == 0 {
            self.until_turn = TURN;
            (self.tell)(&self.counts);
            self.cut_short |= self.end.is_some_and(|end| clock::monotonic() >= end);
        }
        !self.cut_short
    }

    /// Whether an entry is on the same mount, or another one may be entered.
    fn may_enter(&self, directory: &Directory, name: &OsStr, facts: &EntryFacts) -> bool {
        let is_other = facts.is_mount_root.unwrap_or(facts.device != self.device);
        if !is_other || (self.options.cross_mounts && self.options.any_file_system) {
            return true;
        }
        // What is mounted cannot be opened where it hangs; to look at its number never does.
        let mount = || mount_table::of_descriptor(directory.look(name).ok()?).ok()?;
        self.options.cross_mounts
            && mount().is_none_or(|mount| is_this_host_s_disk(Path::new(""), &mount).is_ok())
    }

    fn file(&mut self, directory: &Directory, path: &Path, name: &OsStr, facts: &EntryFacts) {
        self.counts.files += 1;
        let (from, until) = (self.window.from_unix_ms, self.window.until_unix_ms);
        let times = [facts.modified, facts.changed];
        let within = |from: UnixMillis| times.iter().any(|at| (from..=until).contains(at));
        if self.exposed_from.is_some_and(within) {
            *self.counts.exposed.get_or_insert(0) += 1;
        }
        if !within(from) {
            if times.iter().all(|at| *at < from) {
                self.counts.older += 1;
                let is_empty = facts.size.0 == 0 && !known::is_empty_on_purpose(name);
                self.counts.older_empty += u64::from(is_empty);
            }
            return;
        }
        self.counts.in_window += 1;
        let read = self.options.read;
        let seen = look(directory, name, facts, read, &mut || self.turn());
        match seen {
            Ok(Seen::Sound) => {}
            Ok(Seen::KnownEmpty) => self.counts.known_empty += 1,
            Ok(Seen::Sparse) => self.counts.sparse += 1,
            Ok(Seen::Changing) => self.counts.changing += 1,
            Ok(Seen::Suspect(kind, data_end)) => {
                self.found.add(kind);
                if self.files.len() < self.options.most_listed {
                    self.files.push(SuspectFile {
                        path: escaped(path.join(name).as_os_str()),
                        kind,
                        size: facts.size,
                        data_end,
                        modified_unix_ms: facts.modified,
                        changed_unix_ms: facts.changed,
                    });
                }
            }
            Err(error) if is_gone(&error) => self.counts.vanished += 1,
            Err(_) => self.counts.unreadable_files += 1,
        }
    }
}

/// Removed, or replaced by what is no file or directory, since its name was read.
fn is_gone(error: &std::io::Error) -> bool {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => true,
        // The kernel's own means that the file system cannot tell where data are.
        ErrorKind::InvalidInput => error.raw_os_error().is_none(),
        _ => false,
    }
}

/// A path as text that tells all paths apart: bytes that are no UTF-8 as `\xff`, a backslash as `\\`.
fn escaped(path: &OsStr) -> PlainText {
    let mut text = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, r"\x{byte:02x}");
        }
    }
    text.as_str().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_is_escaped_so_that_names_stay_different() {
        let name = |bytes: &[u8]| escaped(OsStr::from_bytes(bytes)).as_str().to_owned();
        assert_eq!(name(b"a\xffb\xc3\xa9"), "a\\xffb\u{e9}");
        assert_eq!(name(br"a\xff"), r"a\\xff");
        assert_eq!(name(b"a\x1b[2J\n"), r"a\u{1b}[2J\n");
    }
}
