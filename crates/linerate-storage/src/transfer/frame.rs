//! What a stream of a transfer carries: parts of files, each with a header of 64 bytes in network order, the file's name where
//! the stream has not just had it, and the part's bytes.

use twox_hash::XxHash3_128;

use super::{ALIGNMENT, PIECE};

/// Bytes of a header.
pub const HEADER: usize = 64;
/// The longest name of a file below its folder, bytes.
pub const MAX_NAME: usize = 4096;
/// The longest part of a name between slashes, bytes (`NAME_MAX`).
const MAX_COMPONENT: usize = 255;
/// The deepest folder.
const MAX_DEPTH: usize = 128;
/// `LRT1`.
const MAGIC: u32 = 0x4c52_5431;

/// What a header announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A part of a file.
    Part,
    /// A folder, which may stay empty.
    Folder,
}

/// What stands before each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Bytes of the name that follows; 0 = the name of this stream's last header.
    pub name: u16,
    /// The file's number, from 0 on.
    pub file: u32,
    /// Bytes of the part, at most [`PIECE`].
    pub length: u32,
    /// Where in the file it begins: a multiple of 4096, and so is the length, but for the last part.
    pub offset: u64,
    /// The whole file's size.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// The XXH3 of the part, 128 bits.
    pub digest: u128,
}

/// Why bytes are no header or no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It begins otherwise.
    #[error("what arrived is no frame of a transfer")]
    Magic,
    /// A length or offset that cannot be.
    #[error("a frame of file {file} does not hold together: {what}")]
    Bounds {
        /// The file's number.
        file: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// A name that could lead out of the target.
    #[error("'{name}' is no name of a file below a folder: {why}")]
    Name {
        /// The name, escaped.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
}

impl Header {
    /// Whether the part is the end of its file.
    pub const fn is_last(&self) -> bool {
        self.offset + self.length as u64 == self.size
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let kind: u16 = match self.kind {
            Kind::Part => 1,
            Kind::Folder => 2,
        };
        bytes[0..4].copy_from_slice(&MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&kind.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.name.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.file.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.size.to_be_bytes());
        bytes[32..36].copy_from_slice(&self.mode.to_be_bytes());
        bytes[48..64].copy_from_slice(&self.digest.to_be_bytes());
        bytes
    }

    /// Reads it, whatever the bytes are.
    ///
    /// # Errors
    /// They are no header, or it announces what cannot be.
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Self, FrameError> {
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        if word(0) != MAGIC {
            return Err(FrameError::Magic);
        }
        let file = word(8);
        let bounds = |what| FrameError::Bounds { file, what };
        let kind = match word(4) >> 16 {
            1 => Kind::Part,
            2 => Kind::Folder,
            _ => return Err(bounds("its kind is unknown")),
        };
        let header = Self {
            kind,
            name: u16::try_from(word(4) & 0xffff).unwrap_or(u16::MAX),
            file,
            length: word(12),
            offset: long(16),
            size: long(24),
            mode: word(32),
            digest: u128::from(long(48)) << 64 | u128::from(long(56)),
        };
        if usize::from(header.name) > MAX_NAME {
            return Err(bounds("its name is too long"));
        }
        if header.length as usize > PIECE {
            return Err(bounds("it is longer than a piece"));
        }
        let end = header.offset.checked_add(u64::from(header.length));
        if end.is_none_or(|end| end > header.size) {
            return Err(bounds("it ends behind the end of its file"));
        }
        if header.length == 0 && header.size > 0 {
            return Err(bounds("it has no bytes"));
        }
        let aligned = |bytes: u64| bytes.is_multiple_of(ALIGNMENT as u64);
        if !aligned(header.offset) || !(header.is_last() || aligned(u64::from(header.length))) {
            return Err(bounds("it does not begin and end where direct I/O can"));
        }
        if kind == Kind::Folder && header.size > 0 {
            return Err(bounds("a folder has bytes"));
        }
        Ok(header)
    }
}

/// Whether a name from outside leads to a place below a folder and nowhere else.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &[u8]) -> Result<(), FrameError> {
    let wrong = |why| {
        Err(FrameError::Name {
            name: name.escape_ascii().to_string(),
            why,
        })
    };
    if name.is_empty() || name.len() > MAX_NAME {
        return wrong("it is empty or too long");
    }
    if name.contains(&0) {
        return wrong("it holds a NUL");
    }
    let mut depth = 0;
    for component in name.split(|byte| *byte == b'/') {
        depth += 1;
        match component {
            b"" => return wrong("a part of it is empty"),
            b"." | b".." => return wrong("it leads to another folder"),
            long if long.len() > MAX_COMPONENT => return wrong("a part of it is too long"),
            _ => {}
        }
    }
    if depth > MAX_DEPTH {
        return wrong("it is too deep");
    }
    Ok(())
}

/// The digest of a part's bytes.
pub fn digest(bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot(bytes)
}

/// What a part adds to the checksum of a transfer, so that it also covers which file, and where in it.
pub fn weight(header: &Header, name: &[u8]) -> u128 {
    let mut all = Vec::with_capacity(32 + name.len());
    all.extend_from_slice(&header.digest.to_be_bytes());
    all.extend_from_slice(&header.offset.to_be_bytes());
    all.extend_from_slice(&header.size.to_be_bytes());
    all.extend_from_slice(name);
    XxHash3_128::oneshot(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            kind: Kind::Part,
            name: 3,
            file: 7,
            length: 5,
            offset: 1 << 40,
            size: (1 << 40) + 5,
            mode: 0o644,
            digest: u128::MAX - 1,
        }
    }

    #[test]
    fn a_header_survives_the_wire() {
        let folder = Header {
            kind: Kind::Folder,
            length: 0,
            offset: 0,
            size: 0,
            ..header()
        };
        for header in [header(), folder] {
            assert_eq!(Header::decode(&header.encode()), Ok(header));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(Header::decode(&[0; HEADER]), Err(FrameError::Magic));
        let wrong = |change: fn(&mut Header)| {
            let mut header = header();
            change(&mut header);
            Header::decode(&header.encode()).is_err()
        };
        assert!(wrong(|header| header.name = 4097));
        assert!(wrong(|header| header.length = (1 << 20) + 1));
        assert!(wrong(|header| header.size -= 1));
        assert!(wrong(|header| header.offset = u64::MAX));
        assert!(wrong(|header| header.offset -= 1));
        assert!(wrong(|header| header.size += 1));
        assert!(wrong(|header| header.length = 0));
        assert!(wrong(|header| header.kind = Kind::Folder));
        let mut unknown = header().encode();
        unknown[5] = 9;
        assert!(Header::decode(&unknown).is_err());
    }

    #[test]
    fn names_stay_below_their_folder() {
        for good in [&b"a"[..], b"a/b c/\xff\xfe", b"..a/b..", &[b'x'; 255]] {
            assert_eq!(check_name(good), Ok(()));
        }
        let deep = [b"a/".repeat(128), b"a".to_vec()].concat();
        for bad in [
            &b""[..],
            b"/x",
            b"x/",
            b"a//b",
            b"../x",
            b"a/../b",
            b"a/./b",
            b"a\0b",
            &[b'x'; 256],
            &deep,
        ] {
            assert!(check_name(bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn the_checksum_tells_parts_places_and_names_apart() {
        let one = weight(&header(), b"a");
        assert_ne!(one, weight(&header(), b"b"));
        let elsewhere = Header {
            offset: 0,
            ..header()
        };
        assert_ne!(one, weight(&elsewhere, b"a"));
        assert_ne!(digest(b"x"), digest(b"y"));
    }
}
