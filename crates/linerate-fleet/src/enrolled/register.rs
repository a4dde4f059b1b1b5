//! The book of a hub on disk: `linerate hub` reads and changes it, and so does `linerate hub token` meanwhile.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use linerate_model::hexadecimal;

use super::EnrolledError;
use super::book::{Book, Refusal};
use crate::session::locked;

/// The book.
const BOOK: &str = "agents.json";
/// Held while the book is changed.
const LOCK: &str = "agents.lock";

/// What says that a file is another one than before.
type Stamp = (u64, i64, i64, u64);

/// A book in a folder.
#[derive(Debug)]
pub struct Register {
    folder: PathBuf,
    seen: Mutex<Option<Seen>>,
}

/// A book as it was read.
#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    book: Book,
    /// SHA-256 of the certificates that may be served: each connection asks for its own twice a second.
    served: HashSet<String>,
}

impl Register {
    /// Of this folder, which is made where it is not there: for its owner alone.
    ///
    /// # Errors
    /// Those of making it.
    pub fn open(folder: &Path) -> Result<Self, EnrolledError> {
        make_private(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            seen: Mutex::default(),
        })
    }

    /// Changes the book: on disk before this returns, and not at all where `change` refuses.
    ///
    /// # Errors
    /// Those of the files.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut Book) -> Result<T, Refusal>,
    ) -> Result<Result<T, Refusal>, EnrolledError> {
        let lock = self.folder.join(LOCK);
        let file = private().truncate(false).open(&lock);
        let file = file.map_err(failed("open", &lock))?;
        give_to_owner(&file, &self.folder).map_err(failed("give to the hub's user", &lock))?;
        linerate_kernel::file::lock(&file).map_err(failed("lock", &lock))?;
        let mut book = self.read()?.map_or_else(Book::default, |seen| seen.book);
        let done = change(&mut book);
        if done.is_ok() {
            let path = self.folder.join(BOOK);
            let text = serde_json::to_vec_pretty(&book).map_err(|error| EnrolledError::Broken {
                path: path.clone(),
                why: error.to_string(),
            })?;
            write_private(&path, &text)?;
        }
        Ok(done)
    }

    /// Looks something up, in the book as it is now.
    ///
    /// # Errors
    /// Those of the file.
    pub fn look<T>(&self, look: impl FnOnce(&Book) -> T) -> Result<T, EnrolledError> {
        self.with(|seen| match seen {
            Some(seen) => look(&seen.book),
            None => look(&Book::default()),
        })
    }

    /// Whether this certificate's agent may be served: not where the book cannot be read.
    pub fn allows(&self, certificate: &str) -> bool {
        self.with(|seen| seen.is_some_and(|seen| seen.served.contains(certificate)))
            .unwrap_or(false)
    }

    /// With the book as it is now; `None` where there is none.
    fn with<T>(&self, with: impl FnOnce(Option<&Seen>) -> T) -> Result<T, EnrolledError> {
        let path = self.folder.join(BOOK);
        let now = match fs::metadata(&path) {
            Ok(metadata) => stamp(&metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(with(None)),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let mut seen = locked(&self.seen);
        if seen.as_ref().is_none_or(|before| before.stamp != now) {
            *seen = self.read()?;
        }
        Ok(with(seen.as_ref()))
    }

    fn read(&self) -> Result<Option<Seen>, EnrolledError> {
        let path = self.folder.join(BOOK);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let metadata = file.metadata().map_err(failed("read", &path))?;
        let mut text = Vec::new();
        io::Read::read_to_end(&mut file, &mut text).map_err(failed("read", &path))?;
        let book: Book = serde_json::from_slice(&text).map_err(|error| EnrolledError::Broken {
            path,
            why: error.to_string(),
        })?;
        Ok(Some(Seen {
            stamp: stamp(&metadata),
            served: book.served().map(str::to_owned).collect(),
            book,
        }))
    }
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    (
        metadata.ino(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.len(),
    )
}

fn private() -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).create(true).mode(0o600);
    options
}

fn failed<'p>(
    what: &'static str,
    path: &'p Path,
) -> impl FnOnce(io::Error) -> EnrolledError + use<'p> {
    move |source| EnrolledError::File {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Makes a folder that only its owner reads.
///
/// # Errors
/// Those of making it.
pub fn make_private(folder: &Path) -> Result<(), EnrolledError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder).map_err(failed("make", folder))
}

/// Replaces a file that only its owner reads, and returns once it is on disk.
///
/// # Errors
/// Those of writing it.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), EnrolledError> {
    let mut random = [0; 8];
    linerate_kernel::thread::random(&mut random).map_err(EnrolledError::Random)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", hexadecimal::digits(&random)));
    let new = PathBuf::from(name);
    let write = || {
        let mut file = private().create_new(true).open(&new)?;
        give_to_owner(&file, path.parent().unwrap_or(Path::new(".")))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|error| {
        // Where it cannot be removed, its random name does no harm.
        drop(fs::remove_file(&new));
        failed("write", path)(error)
    })
}

/// A file that root makes in the folder of a hub that runs as another user becomes that user's.
fn give_to_owner(file: &File, folder: &Path) -> io::Result<()> {
    let owner = fs::metadata(folder)?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (owner.uid(), owner.gid()) || linerate_kernel::process::user() != 0
    {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// Reads a file that only its owner may read or write; `None` where there is none.
///
/// # Errors
/// Where others may read it, and those of reading it.
pub fn read_private(path: &Path) -> Result<Option<String>, EnrolledError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path)(error)),
    };
    let mode = file.metadata().map_err(failed("read", path))?.mode();
    if mode & 0o077 != 0 {
        return Err(EnrolledError::Open {
            path: path.to_owned(),
        });
    }
    let mut text = String::new();
    io::Read::read_to_string(&mut file, &mut text).map_err(failed("read", path))?;
    Ok(Some(text))
}
