//! Files that keep settings over a boot: written so that a reader and a power cut see the old file or the new one,
//! never a part of it. Each is named by its path from a root, and no link leads out of that.

use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use linerate_kernel::inventory::Root;

use crate::state_folder::{StateError, failed, sync_folder, write_new};

/// No such file is longer.
const LONGEST: u64 = 4 << 20;

/// The text of a file; `None` where there is none.
///
/// # Errors
/// One that cannot be read, or is no text.
pub fn read(root: &Root, path: &str) -> Result<Option<String>, StateError> {
    let mut text = String::new();
    let read = root
        .resolved(path)
        .and_then(File::open)
        .and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", &root.path(path))(error)),
    }
}

/// The names of what is in a folder; none where there is no folder.
///
/// # Errors
/// One that cannot be read.
pub fn names(root: &Root, folder: &str) -> Result<Vec<String>, StateError> {
    match root.resolved(folder).and_then(std::fs::read_dir) {
        Ok(entries) => Ok(entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed("read", &root.path(folder))(error)),
    }
}

/// Puts a file there, in the place of a link too, on disk when this returns. Folders are made as they are needed.
///
/// # Errors
/// Those of the file system; the file is then as it was.
pub fn write(root: &Root, path: &str, text: &str) -> Result<(), StateError> {
    let path = &entry(root, path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    make(folder).map_err(failed("make the folder", folder))?;
    let mut begun = path.as_os_str().to_owned();
    // Nothing reads names that end so: not systemd, not NetworkManager, not sysctl.
    begun.push(".linerate-begun");
    let begun = PathBuf::from(begun);
    // NetworkManager reads no keyfile that others may read; the rest is no secret.
    let secret = path.extension().is_some_and(|end| end == "nmconnection");
    let mode = match (secret, text.starts_with("#!")) {
        (true, _) => 0o600,
        (false, true) => 0o755,
        (false, false) => 0o644,
    };
    write_new(&begun, text.as_bytes(), Some(Permissions::from_mode(mode)))?;
    if let Err(error) = std::fs::rename(&begun, path) {
        drop(std::fs::remove_file(&begun));
        return Err(failed("write", path)(error));
    }
    sync_folder(folder)
}

/// Makes a folder that is not there, with those above it. Other programs read in them, whatever the caller's umask is.
fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    folder.parent().map_or(Ok(()), make)?;
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => {
            other.and_then(|()| std::fs::set_permissions(folder, Permissions::from_mode(0o755)))
        }
    }
}

/// Removes a file, or a link, on disk when this returns; one that is not there is no error.
///
/// # Errors
/// Those of the file system.
pub fn remove(root: &Root, path: &str) -> Result<(), StateError> {
    let path = &entry(root, path)?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("remove", path)(error)),
        Ok(()) => sync_folder(path.parent().unwrap_or(Path::new("/"))),
    }
}

/// Where a file is written or removed.
fn entry(root: &Root, path: &str) -> Result<PathBuf, StateError> {
    root.entry(path).map_err(failed("find", &root.path(path)))
}
