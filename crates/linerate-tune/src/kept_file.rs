//! Files that keep settings over a boot: written so that a reader and a power cut see the old file or the new one,
//! never a part of it. Each is named by its path from a root, and no link leads out of that, whoever changes links below
//! it meanwhile.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use linerate_kernel::directory::Replacement;
use linerate_kernel::inventory::Root;

use crate::state_folder::{StateError, failed};

/// The text of a file; `None` where there is none.
///
/// # Errors
/// One that cannot be read, is no text, or longer than 4 MiB.
pub fn read(root: &Root, path: impl AsRef<Path>) -> Result<Option<String>, StateError> {
    match root.whole_text(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", &root.path(path))(error)),
    }
}

/// The names of what is in a folder; none where there is no folder.
///
/// # Errors
/// One that cannot be read.
pub fn names(root: &Root, folder: &str) -> Result<Vec<String>, StateError> {
    match root.directory(folder).and_then(|folder| folder.names()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(failed("read", &root.path(folder))),
    }
}

/// Puts a file there, in the place of a link too, on disk when this returns. Folders are made as they are needed, for
/// other programs to read in them, whatever the caller's umask is.
///
/// # Errors
/// Those of the file system; the file is then as it was.
pub fn write(root: &Root, path: impl AsRef<Path>, text: &str) -> Result<(), StateError> {
    let path = path.as_ref();
    // NetworkManager reads no keyfile that others may read; the rest is no secret.
    let secret = path.extension().is_some_and(|end| end == "nmconnection");
    let mode = match (secret, text.starts_with("#!")) {
        (true, _) => 0o600,
        (false, true) => 0o755,
        (false, false) => 0o644,
    };
    let put = || {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = root.make_directories(above, 0o755)?;
        let mut new = Replacement::begin(folder.share()?, 0o600)?;
        new.file().write_all(text.as_bytes())?;
        new.file().set_permissions(Permissions::from_mode(mode))?;
        new.take(name)?;
        folder.sync()
    };
    put().map_err(failed("write", &root.path(path)))
}

/// Removes a file, or a link, on disk when this returns; one that is not there is no error.
///
/// # Errors
/// Those of the file system.
pub fn remove(root: &Root, path: impl AsRef<Path>) -> Result<(), StateError> {
    let remove = || {
        let (folder, name) = root.entry(path.as_ref())?;
        folder.remove(name)?;
        folder.sync()
    };
    match remove() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(failed("remove", &root.path(&path))),
    }
}
