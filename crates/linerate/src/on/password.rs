//! The password for sudo on other hosts: of a file, or of whoever sits at the terminal. It is on no command line and in no
//! environment.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use linerate_kernel::terminal;

use crate::input;

/// Environment variable: the file with the password.
pub(super) const FILE: &str = "LINERATE_BECOME_PASSWORD_FILE";
/// No password is longer, bytes.
const MOST: usize = 4096;

/// Reads it.
pub(super) fn read() -> Result<String, String> {
    match std::env::var_os(FILE).filter(|path| !path.is_empty()) {
        Some(path) => of_file(Path::new(&path)),
        None => terminal::read_hidden("Password for sudo on the hosts: ").map_err(|error| {
            format!("there is no terminal to ask for it ({error}), and {FILE} names no file")
        }),
    }
}

/// The first line of a file that nobody else may read.
fn of_file(path: &Path) -> Result<String, String> {
    let failed = |why: &str| format!("{FILE} {}: {why}", path.display());
    let metadata = std::fs::metadata(path).map_err(|error| failed(&error.to_string()))?;
    if metadata.is_file() && metadata.mode() & 0o077 != 0 {
        return Err(failed("others may read it; chmod 600 it"));
    }
    let text = input::string(path, MOST).map_err(|error| failed(&error.to_string()))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(failed("its first line is empty")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mode = |mode| {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        std::fs::write(file.path(), "a b\nc\n").unwrap();
        mode(0o640);
        assert!(of_file(file.path()).unwrap_err().contains("chmod 600"));
        mode(0o600);
        assert_eq!(of_file(file.path()).as_deref(), Ok("a b"));
        std::fs::write(file.path(), "\n").unwrap();
        assert!(of_file(file.path()).unwrap_err().contains("empty"));
    }
}
