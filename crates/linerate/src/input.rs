//! Files that the program reads: whole, and never more of them than a bound.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::action::Failure;

/// The most bytes of a file that people write: a profile, a scenario, a sweep, a key.
pub(crate) const WRITTEN: usize = 4 << 20;
/// The most bytes of a host's facts, and of what the program notes about runs.
pub(crate) const NOTED: usize = 64 << 20;

/// A file's bytes. It may be a pipe or a device: one byte more than `most` is read, and no other.
pub(crate) fn read(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    bytes(path, most).map_err(|error| Failure::cannot("read", path, &error))
}

pub(crate) fn text(path: &Path, most: usize) -> Result<String, Failure> {
    string(path, most).map_err(|error| Failure::cannot("read", path, &error))
}

/// As [`text`], with the bare error.
pub(crate) fn string(path: &Path, most: usize) -> std::io::Result<String> {
    let not_text = |_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(bytes(path, most)?).map_err(not_text)
}

/// As [`read`], with the bare error.
pub(crate) fn bytes(path: &Path, most: usize) -> std::io::Result<Vec<u8>> {
    whole(File::open(path)?, most)
}

/// The bytes of a file that is open.
pub(crate) fn whole(file: impl std::io::Read, most: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            format!(
                "it has more than the {most} bytes that are read of such a file; is it the right one?"
            ),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_bound_is_read() {
        let zero = Path::new("/dev/zero");
        let error = read(zero, 1000).unwrap_err().to_string();
        assert!(
            error.contains("/dev/zero") && error.contains("1000 bytes"),
            "{error}"
        );
        assert!(read(Path::new("/dev/null"), 0).unwrap().is_empty());
    }
}
