//! Raw records as files: `raw/ab/HASH.json.zst`, where `ab` begins the hash. A file is named after the SHA-256 of what
//! it holds, uncompressed, so that it never changes and a second one of the same content is the same file.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest;
use linerate_model::hexadecimal;
use linerate_model::watch::UnixMillis;

use crate::error::ArchiveError;

/// The end of a record's name, after its hash.
const ENDING: &str = ".json.zst";
/// The end of the name of a file that is being written.
const PART: &str = ".part";
const LEVEL: i32 = 3;
/// The longest record, bytes of JSON.
pub const LONGEST_RECORD: usize = 1 << 30;

/// SHA-256 of a record's JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordHash([u8; 32]);

impl RecordHash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
        Self(hash)
    }
}

impl fmt::Display for RecordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal::digits(&self.0))
    }
}

impl FromStr for RecordHash {
    type Err = ArchiveError;

    fn from_str(text: &str) -> Result<Self, ArchiveError> {
        let damaged = || ArchiveError::Damaged(format!("'{text}' is not the hash of a record"));
        hexadecimal::bytes(text).map(Self).ok_or_else(damaged)
    }
}

/// A record's file, on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) hash: RecordHash,
    /// Of the file.
    pub(crate) bytes: u64,
}

/// A file that was found below `raw`.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// None: the file of a record that was never finished.
    pub(crate) hash: Option<RecordHash>,
    pub(crate) bytes: u64,
    pub(crate) changed: UnixMillis,
}

/// The folder `raw` of an archive.
#[derive(Debug)]
pub(crate) struct Objects {
    raw: PathBuf,
    /// Makes the names of unfinished files differ.
    part: AtomicU64,
}

impl Objects {
    pub(crate) fn open(folder: &Path) -> Result<Self, ArchiveError> {
        let raw = folder.join("raw");
        make_folder(&raw)?;
        Ok(Self {
            raw,
            part: AtomicU64::new(0),
        })
    }

    pub(crate) fn path(&self, hash: RecordHash) -> PathBuf {
        let name = hash.to_string();
        self.raw.join(&name[..2]).join(name + ENDING)
    }

    /// Writes a record. Its file, its name and its folder are on disk when this returns.
    pub(crate) fn put(&self, json: &[u8]) -> Result<Object, ArchiveError> {
        let what = "write the record";
        if json.len() > LONGEST_RECORD {
            let why = format!(
                "it has {} bytes, and {LONGEST_RECORD} are allowed",
                json.len()
            );
            return Err(ArchiveError::UnfitValue {
                what: "a record",
                why,
            });
        }
        let hash = RecordHash::of(json);
        let path = self.path(hash);
        if let Some(bytes) = self.again(&path)? {
            return Ok(Object { hash, bytes });
        }
        let compressed =
            zstd::bulk::compress(json, LEVEL).map_err(ArchiveError::file(what, &path))?;
        let folder = path.parent().unwrap_or(&self.raw);
        make_folder(folder)?;
        let part = self.part.fetch_add(1, Ordering::Relaxed);
        let part = folder.join(format!("{hash}.{}.{part}{PART}", std::process::id()));
        let written = write(&part, &compressed)
            .and_then(|()| fs::rename(&part, &path))
            .and_then(|()| sync_folder(folder));
        if let Err(error) = written {
            drop(fs::remove_file(&part));
            return Err(ArchiveError::file(what, &path)(error));
        }
        Ok(Object {
            hash,
            bytes: compressed.len() as u64,
        })
    }

    /// The size of a record's file that is there already. It becomes new again, so that no sweep takes it away.
    fn again(&self, path: &Path) -> Result<Option<u64>, ArchiveError> {
        let what = "use the record that is there";
        let touched = OpenOptions::new().append(true).open(path).and_then(|file| {
            file.set_modified(SystemTime::now())?;
            file.sync_all()?;
            file.metadata()
        });
        match touched {
            Ok(metadata) => {
                // Whoever wrote it may not have synced the folder yet.
                sync_folder(path.parent().unwrap_or(&self.raw))
                    .map_err(ArchiveError::file(what, path))?;
                Ok(Some(metadata.len()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ArchiveError::file(what, path)(error)),
        }
    }

    /// A record's JSON; `None` where its file is not there.
    pub(crate) fn get(&self, hash: RecordHash) -> Result<Option<Vec<u8>>, ArchiveError> {
        let path = self.path(hash);
        let compressed = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ArchiveError::file("read the record", &path)(error)),
        };
        let damaged = |why: &str| ArchiveError::Damaged(format!("{}: {why}", path.display()));
        let json = unpack(&compressed).map_err(|error| damaged(&error.to_string()))?;
        if RecordHash::of(&json) != hash {
            return Err(damaged("its content has another hash"));
        }
        Ok(Some(json))
    }

    /// Removes a record's file; how many bytes it had, `None` where it was not there.
    pub(crate) fn remove(&self, hash: RecordHash) -> Result<Option<u64>, ArchiveError> {
        remove(&self.path(hash))
    }

    /// Calls this with every file below `raw`.
    pub(crate) fn each(
        &self,
        mut with: impl FnMut(Found) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        for folder in entries(&self.raw)? {
            if !folder.is_dir() {
                continue;
            }
            for path in entries(&folder)? {
                // A part may have taken its name, or be gone, since.
                if let Some(found) = look(path)? {
                    with(found)?;
                }
            }
        }
        Ok(())
    }
}

/// Removes a file; its size, `None` where it was not there.
pub(crate) fn remove(path: &Path) -> Result<Option<u64>, ArchiveError> {
    let removed = fs::metadata(path).and_then(|metadata| {
        fs::remove_file(path)?;
        Ok(metadata.len())
    });
    match removed {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ArchiveError::file("remove the record", path)(error)),
    }
}

fn look(path: PathBuf) -> Result<Option<Found>, ArchiveError> {
    let metadata = match fs::symlink_metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ArchiveError::file("look at", &path)(error)),
    };
    let changed = metadata.modified().ok();
    let name = path.file_name().and_then(|name| name.to_str());
    let hash = name.and_then(|name| name.strip_suffix(ENDING)?.parse().ok());
    Ok(Some(Found {
        hash,
        bytes: metadata.len(),
        changed: changed.map_or(UnixMillis(0), millis),
        path,
    }))
}

fn millis(time: SystemTime) -> UnixMillis {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let what = ArchiveError::file("list", folder);
    let list = || {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()
    };
    list().map_err(what)
}

/// At most [`LONGEST_RECORD`] bytes.
pub(crate) fn unpack(compressed: &[u8]) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    zstd::stream::read::Decoder::new(compressed)?
        .take(LONGEST_RECORD as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > LONGEST_RECORD {
        return Err(io::Error::other("it is longer than any record"));
    }
    Ok(bytes)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a folder that only its user reads, unless it is there; its name is on disk when this returns.
pub(crate) fn make_folder(path: &Path) -> Result<(), ArchiveError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let make = || {
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
                return Ok(());
            }
            made => made?,
        }
        path.parent().map_or(Ok(()), sync_folder)
    };
    make().map_err(ArchiveError::file("make the folder", path))
}

/// Waits until the names in a folder are on disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    File::open(path)?.sync_all()
}

/// Now, by this machine's clock.
pub(crate) fn now() -> UnixMillis {
    millis(SystemTime::now())
}
