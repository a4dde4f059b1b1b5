//! A file in the place of generated payload (iperf3's `-F`): a stream sends what is in it, or writes into it what it receives.
//!
//! Each stream has a descriptor of its own, at the file's beginning, as iperf3's streams have. Descriptors do not block, so that
//! a pipe that nobody fills or empties delays neither a sample nor the end of the test.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Once};

/// `O_NONBLOCK` on Linux.
const O_NONBLOCK: i32 = 0o4000;

/// A stream's file, open.
#[derive(Debug)]
pub(crate) struct StreamFile {
    file: File,
    /// Of all streams that write into the file, the first empties it.
    emptied: Arc<Once>,
}

/// Opens the file for each stream of a test; `sends` says for each whether it reads from the file. What is there stays until the
/// test runs.
///
/// # Errors
/// Those of open(2). A stream that receives makes the file if it is missing, for its user only.
pub(crate) fn open_for(
    path: Option<&Path>,
    sends: impl Iterator<Item = bool>,
) -> io::Result<Vec<Option<StreamFile>>> {
    let emptied = Arc::new(Once::new());
    sends
        .map(|sends| {
            let open = |path| StreamFile::open(path, sends, Arc::clone(&emptied));
            path.map(open).transpose()
        })
        .collect()
}

impl StreamFile {
    fn open(path: &Path, sends: bool, emptied: Arc<Once>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.custom_flags(O_NONBLOCK);
        if sends {
            options.read(true);
        } else {
            options.write(true).create(true).truncate(false).mode(0o600);
        }
        let file = options.open(path)?;
        Ok(Self { file, emptied })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its size now, bytes; 0 for a device or a pipe.
    pub(crate) fn size(&self) -> Option<u64> {
        self.file.metadata().ok().map(|facts| facts.len())
    }

    /// Removes what was in the file, once for all streams of the test. A device or a pipe has nothing to remove.
    pub(crate) fn empty(&self) -> io::Result<()> {
        let mut done = Ok(());
        self.emptied.call_once(|| {
            let is_file = self.file.metadata().is_ok_and(|facts| facts.is_file());
            if is_file {
                done = self.file.set_len(0);
            }
        });
        done
    }

    /// Writes once.
    ///
    /// # Errors
    /// Those of write(2); `WouldBlock` where a pipe is full.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match (&self.file).write(bytes) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            other => other,
        }
    }
}

/// What a stream sends of a file: read ahead by a write's worth.
pub(crate) struct Source<'a> {
    file: &'a StreamFile,
    buffer: Box<[u8]>,
    sent: usize,
    filled: usize,
    /// A pipe that nobody has opened for writing yet looks as if it had ended: nothing is read before poll(2) says so.
    readable: bool,
}

/// What a source has.
#[derive(Debug, PartialEq, Eq)]
pub enum Filled {
    /// Bytes to send.
    Bytes,
    /// None yet: wait until the file is readable.
    NotYet,
    /// None any more.
    End,
}

impl<'a> Source<'a> {
    /// At most `block` bytes are read at once.
    pub(crate) fn new(file: &'a StreamFile, block: usize) -> Self {
        Self {
            file,
            buffer: vec![0; block].into_boxed_slice(),
            sent: 0,
            filled: 0,
            readable: false,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'a> {
        self.file.fd()
    }

    /// Notes that the file can be read, or has ended.
    pub(crate) const fn mark_readable(&mut self) {
        self.readable = true;
    }

    /// Reads up to `most` bytes where all that was read is sent.
    ///
    /// # Errors
    /// Those of read(2).
    pub(crate) fn fill(&mut self, most: usize) -> io::Result<Filled> {
        if self.sent < self.filled {
            return Ok(Filled::Bytes);
        }
        if !self.readable {
            return Ok(Filled::NotYet);
        }
        let most = most.min(self.buffer.len());
        match (&self.file.file).read(&mut self.buffer[..most]) {
            Ok(0) => Ok(Filled::End),
            Ok(length) => {
                (self.sent, self.filled) = (0, length);
                Ok(Filled::Bytes)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    Ok(Filled::NotYet)
                }
                io::ErrorKind::Interrupted => Ok(Filled::NotYet),
                _ => Err(error),
            },
        }
    }

    /// What was read and is not sent, up to `most` bytes.
    pub(crate) fn bytes(&self, most: usize) -> &[u8] {
        let rest = &self.buffer[self.sent..self.filled];
        &rest[..rest.len().min(most)]
    }

    pub(crate) const fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }
}

#[cfg(test)]
mod tests {
    use tempfile::NamedTempFile;

    use super::*;

    #[test]
    fn a_source_gives_each_byte_once_and_then_its_end() {
        let path = NamedTempFile::new().unwrap();
        std::fs::write(&path, b"abcdefg").unwrap();
        let files = open_for(Some(path.path()), [true].into_iter()).unwrap();
        let mut source = Source::new(files[0].as_ref().unwrap(), 4);
        assert_eq!(source.fill(9).unwrap(), Filled::NotYet);
        source.mark_readable();
        let mut got = Vec::new();
        while source.fill(9).unwrap() == Filled::Bytes {
            let some = source.bytes(3).to_vec();
            source.sent(some.len());
            got.extend(some);
        }
        assert_eq!(got, b"abcdefg");
        assert_eq!(source.fill(9).unwrap(), Filled::End);
    }

    #[test]
    fn the_first_of_several_receivers_empties_the_file_and_no_other_does() {
        let path = NamedTempFile::new().unwrap();
        std::fs::write(&path, b"before").unwrap();
        let files = open_for(Some(path.path()), [false, false].into_iter()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        let [one, other] = [0, 1].map(|index| files[index].as_ref().unwrap());
        one.empty().unwrap();
        assert_eq!(one.write(b"new").unwrap(), 3);
        other.empty().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(other.size(), Some(3));
    }

    #[test]
    fn a_missing_file_is_no_source_and_without_a_name_there_is_none() {
        let missing = tempfile::tempdir().unwrap().path().join("missing");
        let error = open_for(Some(&missing), [true].into_iter()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(open_for(None, [true].into_iter()).unwrap()[0].is_none());
    }
}
