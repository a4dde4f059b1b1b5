//! Ways to write a file, and what it has afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use linerate_kernel::mounts::sync_file_system;

/// Size of each file, bytes.
const SIZE: usize = 65_536;
static OLD: [u8; SIZE] = [b'o'; SIZE];
static NEW: [u8; SIZE] = [b'n'; SIZE];

/// Names of the files, which are those of what was done to them; the second: whether fsync was.
const PATTERNS: [(&str, bool); 10] = [
    ("new", false),
    ("new-fsync", true),
    ("rename-over", false),
    ("rename-over-fsync", true),
    ("truncate-rewrite", false),
    ("append", false),
    ("in-place", false),
    ("fallocate-write", false),
    ("create-only", false),
    ("rename-new", false),
];
/// Of these there is an old version.
const HAVE_OLD: [&str; 5] = [
    "rename-over",
    "rename-over-fsync",
    "truncate-rewrite",
    "append",
    "in-place",
];

/// Makes the old versions, and waits until they are on the disk.
pub(super) fn prepare(folder: &Path) -> io::Result<()> {
    for name in HAVE_OLD {
        new_file(folder, name)?.write_all(&OLD)?;
    }
    sync_file_system(&File::open(folder)?)
}

/// Writes each file in its way, and syncs none.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    let rename = |name: &str| fs::rename(folder.join(format!("{name}.tmp")), folder.join(name));
    new_file(folder, "new")?.write_all(&NEW)?;
    new_file(folder, "rename-over.tmp")?.write_all(&NEW)?;
    rename("rename-over")?;
    new_file(folder, "truncate-rewrite")?.write_all(&NEW)?;
    let mut append = OpenOptions::new();
    append
        .append(true)
        .open(folder.join("append"))?
        .write_all(&NEW)?;
    let mut in_place = OpenOptions::new();
    in_place
        .write(true)
        .open(folder.join("in-place"))?
        .write_all(&NEW)?;
    let mut allocated = new_file(folder, "fallocate-write")?;
    linerate_kernel::file::allocate(&allocated, SIZE as u64)?;
    allocated.write_all(&NEW)?;
    new_file(folder, "create-only")?;
    new_file(folder, "rename-new.tmp")?.write_all(&NEW)?;
    rename("rename-new")
}

/// Another program's fsync of another file, and the ways with fsync.
pub(super) fn write_synced(folder: &Path) -> io::Result<()> {
    for name in ["other", "new-fsync", "rename-over-fsync.tmp"] {
        let mut file = new_file(folder, name)?;
        file.write_all(&NEW)?;
        file.sync_all()?;
    }
    fs::rename(
        folder.join("rename-over-fsync.tmp"),
        folder.join("rename-over-fsync"),
    )
}

fn new_file(folder: &Path, name: &str) -> io::Result<File> {
    File::create(folder.join(name))
}

/// What each file has; those with fsync only where they were written.
pub(super) fn results(folder: &Path, with_synced: bool) -> io::Result<Vec<(&'static str, String)>> {
    PATTERNS
        .iter()
        .filter(|(_, synced)| with_synced || !synced)
        .map(|(name, _)| Ok((*name, result(folder, name)?)))
        .collect()
}

fn result(folder: &Path, name: &str) -> io::Result<String> {
    let bytes = match fs::read(folder.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let is_there = folder.join(format!("{name}.tmp")).exists();
            return Ok(if is_there {
                "absent(tmp there)"
            } else {
                "absent"
            }
            .to_owned());
        }
        other => other?,
    };
    Ok(name_of(&bytes))
}

/// `old`, `new`, `EMPTY`, `NUL×65536` …
fn name_of(bytes: &[u8]) -> String {
    let is_nul = |part: &[u8]| part.iter().all(|byte| *byte == 0);
    let (first, rest) = bytes.split_at(SIZE.min(bytes.len()));
    let name = match (bytes.len(), rest.len()) {
        (0, _) => "EMPTY",
        (SIZE, _) if bytes == NEW => "new",
        (SIZE, _) if bytes == OLD => "old",
        (_, SIZE) if first == OLD && rest == NEW => "old+new",
        (length, _) if is_nul(bytes) => return format!("NUL×{length}"),
        (_, 1..) if first == OLD && is_nul(rest) => "old+NUL",
        (length, _) => {
            let nul = bytes
                .iter()
                .fold(0_u64, |nul, byte| nul + u64::from(*byte == 0));
            return format!("mixed {length} B, {nul} NUL");
        }
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_have_names() {
        let old_new = [&OLD[..], &NEW].concat();
        let old_nul = [&OLD[..], &[0; 9]].concat();
        for (bytes, name) in [
            (&b""[..], "EMPTY"),
            (&NEW, "new"),
            (&OLD, "old"),
            (&old_new, "old+new"),
            (&old_nul, "old+NUL"),
            (&[0; 7], "NUL×7"),
            (b"n\0o", "mixed 3 B, 1 NUL"),
        ] {
            assert_eq!(name_of(bytes), name);
        }
    }

    #[test]
    fn without_a_cut_all_is_new() {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path()).unwrap();
        write(folder.path()).unwrap();
        write_synced(folder.path()).unwrap();
        for (name, result) in results(folder.path(), true).unwrap() {
            let expected = match name {
                "create-only" => "EMPTY",
                "append" => "old+new",
                _ => "new",
            };
            assert_eq!(result, expected, "{name}");
        }
    }
}
