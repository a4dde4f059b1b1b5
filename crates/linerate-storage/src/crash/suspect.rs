//! Whether a file lost its data, without reading them unless asked to.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;

use linerate_kernel::directory::{Access, Directory};
use linerate_kernel::extent::{Layout, data_from, hole_from, layout};
use linerate_kernel::tree::{self, EntryFacts};
use linerate_model::storage::SuspectKind;
use linerate_model::units::Bytes;

use super::known;

/// Data are read in pieces of so many bytes.
const PIECE: usize = 1 << 20;

/// What a look at a file gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Sound,
    /// Empty, which its name explains.
    KnownEmpty,
    /// Holes without space.
    Sparse,
    /// It changed meanwhile.
    Changing,
    /// The kind, and where its data end.
    Suspect(SuspectKind, Option<Bytes>),
}

/// Looks at a regular file. `go_on` is asked between pieces of data that are read.
pub(super) fn look(
    directory: &Directory,
    name: &OsStr,
    facts: &EntryFacts,
    read: bool,
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<Seen> {
    if facts.size.0 == 0 {
        return Ok(if known::is_empty_on_purpose(name) {
            Seen::KnownEmpty
        } else {
            Seen::Suspect(SuspectKind::Empty, None)
        });
    }
    let file = directory.file(name, Access::READ)?;
    if !is_same(&tree::held(&file)?, facts) {
        return Ok(Seen::Changing);
    }
    let seen = extents(&file, name, facts)?;
    let seen = match seen {
        Seen::Sound if read && is_all_zeros(&file, facts.size.0, go_on)? => {
            Seen::Suspect(SuspectKind::Zeros, None)
        }
        other => other,
    };
    Ok(if is_same(&tree::held(&file)?, facts) {
        seen
    } else {
        Seen::Changing
    })
}

fn is_same(now: &EntryFacts, before: &EntryFacts) -> bool {
    (now.size, now.modified, now.changed) == (before.size, before.modified, before.changed)
}

fn extents(file: &File, name: &OsStr, facts: &EntryFacts) -> io::Result<Seen> {
    let size = facts.size.0;
    let Some(last) = layout_of(file, size - 1, size, false)? else {
        return seek_extents(file, name, facts);
    };
    if last.data_end.is_some() {
        return Ok(Seen::Sound);
    }
    // What looks unwritten may be dirty in memory.
    let Some(found) = layout_of(file, 0, size, true)? else {
        return seek_extents(file, name, facts);
    };
    Ok(match found.data_end {
        Some(end) if end == size => Seen::Sound,
        _ if known::is_preallocated(name) => Seen::Sound,
        None if found.has_unwritten => Seen::Suspect(SuspectKind::NoData, None),
        // A file with holes between data was made with holes: an image of a disk, a database.
        Some(end) if found.is_gapless => Seen::Suspect(SuspectKind::NulTail, Some(Bytes(end))),
        _ => Seen::Sparse,
    })
}

/// The layout of a range; `None` where the file system does not map extents.
fn layout_of(file: &File, from: u64, to: u64, sync: bool) -> io::Result<Option<Layout>> {
    match layout(file, from, to, sync) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        // ENOTTY has no kind of its own.
        Err(error) if error.raw_os_error() == Some(NO_SUCH_IOCTL) => Ok(None),
        other => other.map(Some),
    }
}

/// `ENOTTY`.
const NO_SUCH_IOCTL: i32 = 25;

/// The same where only lseek knows of holes; pages that somebody has read count as data there.
fn seek_extents(file: &File, name: &OsStr, facts: &EntryFacts) -> io::Result<Seen> {
    let size = facts.size.0;
    if data_from(file, 0)?.is_none() {
        // A block may hold attributes and no data, where there is more than one to hold.
        let own = if size > facts.block.0 {
            facts.block.0
        } else {
            0
        };
        return Ok(match facts.allocated.0 > own {
            true if known::is_preallocated(name) => Seen::Sound,
            true => Seen::Suspect(SuspectKind::NoData, None),
            false => Seen::Sparse,
        });
    }
    if data_from(file, size - 1)?.is_some() || known::is_preallocated(name) {
        return Ok(Seen::Sound);
    }
    let end = end_of_data(file, size)?;
    if data_from(file, 0)? != Some(0) || hole_from(file, 0)?.is_some_and(|hole| hole < end) {
        return Ok(Seen::Sparse);
    }
    Ok(Seen::Suspect(SuspectKind::NulTail, Some(Bytes(end))))
}

/// The least offset behind which there are no data. Whether data follow changes once as the offset grows, so that halving
/// finds it: 64 questions at most.
fn end_of_data(file: &File, size: u64) -> io::Result<u64> {
    let (mut data, mut none) = (0, size - 1);
    while data + 1 < none {
        let middle = data + (none - data) / 2;
        match data_from(file, middle)? {
            Some(at) => data = at.max(middle),
            None => none = middle,
        }
    }
    Ok(none)
}

/// Whether a file has data and all of them are NUL; ends at the first byte that is not.
fn is_all_zeros(file: &File, size: u64, go_on: &mut dyn FnMut() -> bool) -> io::Result<bool> {
    let mut piece = vec![0_u8; PIECE];
    let Some(mut at) = data_from(file, 0)? else {
        return Ok(false);
    };
    while at < size && go_on() {
        let read = match file.read_at(&mut piece, at) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        if read == 0 {
            break;
        }
        if piece[..read].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        // Holes are not read: they may be far larger than any disk.
        at = data_from(file, at + read as u64)?.unwrap_or(size);
    }
    Ok(at >= size)
}

#[cfg(test)]
mod tests {
    use linerate_testing::{Need, skipped};
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    struct Case(tempfile::TempDir);

    impl Case {
        fn seen(&self, name: &str, read: bool) -> Seen {
            let folder = Directory::open(self.0.path()).unwrap();
            let name = OsStr::new(name);
            let facts = tree::entry(&folder, name).unwrap();
            look(&folder, name, &facts, read, &mut || true).unwrap()
        }

        fn make(&self, name: &str, size: u64, data: &[(u64, u64, u8)]) -> File {
            let file = File::create(self.0.path().join(name)).unwrap();
            file.set_len(size).unwrap();
            for (at, many, byte) in data {
                let bytes = vec![*byte; usize::try_from(*many).unwrap()];
                file.write_all_at(&bytes, *at).unwrap();
            }
            file.sync_all().unwrap();
            file
        }
    }

    #[test]
    fn holes_data_and_zeros_are_told_apart() {
        let case = Case(tempfile::tempdir().unwrap());
        let m = 1 << 20;
        case.make("empty", 0, &[]);
        case.make("x.lock", 0, &[]);
        case.make("sparse", 4 * m, &[]);
        case.make("image", 4 * m, &[(0, 4096, 1), (m, 4096, 1)]);
        case.make("late", 4 * m, &[(m, 4096, 1)]);
        case.make("sound", 9000, &[(0, 9000, 1)]);
        case.make("zeros", 3 * m, &[(0, 3 * m, 0)]);
        let tail = case.make("tail", 4 * m, &[(0, m, 1)]);
        if tail.metadata().unwrap().blocks() * 512 >= 4 * m {
            return skipped(
                Need::Root,
                "holes",
                "the file system of TMPDIR has no sparse files",
            );
        }
        assert_eq!(
            case.seen("empty", false),
            Seen::Suspect(SuspectKind::Empty, None)
        );
        assert_eq!(case.seen("x.lock", false), Seen::KnownEmpty);
        for name in ["sparse", "image", "late"] {
            assert_eq!(case.seen(name, true), Seen::Sparse, "{name}");
        }
        assert_eq!(case.seen("sound", true), Seen::Sound);
        assert_eq!(case.seen("zeros", false), Seen::Sound);
        assert_eq!(
            case.seen("zeros", true),
            Seen::Suspect(SuspectKind::Zeros, None)
        );
        assert_eq!(
            case.seen("tail", true),
            Seen::Suspect(SuspectKind::NulTail, Some(Bytes(m)))
        );
    }
}
