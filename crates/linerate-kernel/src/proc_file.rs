//! A file of /proc or /sys that is read again and again without opening it again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Room that most files fit in.
const ROOM: usize = 16_384;
/// No file that is read here is longer; /proc/stat of the largest machines is below 1 MB.
const LONGEST: usize = 16 << 20;

/// An open file and the memory for its text.
#[derive(Debug)]
pub(crate) struct ProcFile {
    file: File,
    buffer: Vec<u8>,
}

impl ProcFile {
    pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            buffer: Vec::new(),
        })
    }

    /// The file's text as it is now.
    ///
    /// Errors: `InvalidData` where it is not UTF-8 or absurdly long; `ESRCH` where it was of a
    /// thread that has ended.
    pub(crate) fn read(&mut self) -> io::Result<&str> {
        let mut length = 0;
        loop {
            if self.buffer.len() < length + ROOM / 4 {
                self.buffer.resize(length + ROOM, 0);
            }
            let offset = u64::try_from(length).unwrap_or(u64::MAX);
            match self.file.read_at(&mut self.buffer[length..], offset)? {
                0 => break,
                count => length += count,
            }
            if length > LONGEST {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        std::str::from_utf8(&self.buffer[..length]).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

/// The trimmed text of a small file; `None` where it is not there or is empty.
pub(crate) fn word(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The number that a small file holds.
pub(crate) fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    word(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_anew_and_whole() {
        let mut file = ProcFile::open("/proc/self/stat").unwrap();
        let first = file.read().unwrap().len();
        assert!(first > 0);
        assert!(file.read().unwrap().ends_with('\n'));
        let mut long = ProcFile::open("/proc/self/smaps").unwrap();
        assert!(long.read().unwrap().contains("VmFlags"));
    }

    #[test]
    fn what_is_not_there_is_none() {
        assert_eq!(word("/proc/sys/none"), None);
        assert_eq!(number::<u64>("/proc/sys/kernel/hostname"), None);
    }
}
