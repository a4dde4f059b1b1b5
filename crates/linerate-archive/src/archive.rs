//! An open archive: its connections, its writer, its records.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::ArchiveError;
use crate::events::{self, EventId};
use crate::objects::{self, Objects};
use crate::reserve::Reserve;
use crate::schema;
use crate::writer::Writer;

pub(crate) const DATABASE: &str = "archive.sqlite3";
/// For so long a connection waits for another process that writes.
const BUSY: Duration = Duration::from_secs(30);
/// So many connections of readers stay open while nobody reads.
const IDLE_READERS: usize = 8;

/// An open archive. Share it between threads by reference; see the crate's documentation for what holds.
///
/// Several processes may have one archive open, but only one of them may call [`Archive::retain`].
pub struct Archive {
    pub(crate) folder: PathBuf,
    pub(crate) objects: Objects,
    pub(crate) reserve: Reserve,
    writer: Writer,
    readers: Mutex<Vec<Connection>>,
    newest: Arc<AtomicU64>,
    /// Held shared from the record to its row; held alone to remove records.
    gate: RwLock<()>,
    computed_by: u32,
}

impl Archive {
    /// Opens the archive in a folder, or makes one there. An older schema is brought to [`SCHEMA`](crate::SCHEMA).
    ///
    /// # Errors
    /// [`ArchiveError::Newer`] for a schema that this build does not know; files that cannot be made or read.
    pub fn open(folder: &Path) -> Result<Self, ArchiveError> {
        objects::make_folder(folder)?;
        let mut connection = connect(folder, OpenFlags::SQLITE_OPEN_CREATE)?;
        schema::migrate(&mut connection, folder)?;
        objects::sync_folder(folder).map_err(ArchiveError::file("sync", folder))?;
        let newest = Arc::new(AtomicU64::new(events::newest(&connection)?));
        let committed = Arc::clone(&newest);
        let writer = Writer::start(connection, move |connection| {
            if let Ok(event) = events::newest(connection) {
                committed.fetch_max(event, Ordering::Release);
            }
        })
        .map_err(ArchiveError::file("start the writer of", folder))?;
        Ok(Self {
            objects: Objects::open(folder)?,
            reserve: Reserve::keep(folder),
            folder: folder.to_owned(),
            writer,
            readers: Mutex::new(Vec::new()),
            newest,
            gate: RwLock::new(()),
            computed_by: 0,
        })
    }

    /// The same for an archive that is there already.
    ///
    /// # Errors
    /// [`ArchiveError::NoArchive`]; as [`Self::open`].
    pub fn open_existing(folder: &Path) -> Result<Self, ArchiveError> {
        if !folder.join(DATABASE).is_file() {
            return Err(ArchiveError::NoArchive(folder.to_owned()));
        }
        Self::open(folder)
    }

    /// Says by which version of their definitions the figures of appended runs are computed: [`crate::Stored::computed_by`].
    /// Without it they count as computed by version 0, and [`Self::recompute`] computes them again.
    #[must_use]
    pub fn with_figures_of(mut self, version: u32) -> Self {
        self.computed_by = version;
        self
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The event that was committed last through this value: cheap enough to ask often.
    pub fn newest_event(&self) -> EventId {
        EventId(self.newest.load(Ordering::Acquire))
    }

    pub(crate) fn figures_version(&self) -> u32 {
        self.computed_by
    }

    /// Does this in a transaction of the writer, and returns after its commit.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        self.writer.write(work)
    }

    /// Calls this with a connection of its own, in one transaction: what it reads is of one moment.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        let idle = self.idle_readers().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => connect(&self.folder, OpenFlags::empty())?,
        };
        let reading = connection
            .transaction()
            .map_err(ArchiveError::database("begin to read"))?;
        let result = work(&reading);
        drop(reading);
        let mut idle = self.idle_readers();
        if idle.len() < IDLE_READERS {
            idle.push(connection);
        }
        result
    }

    fn idle_readers(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// While it is held, no record is removed.
    pub(crate) fn records_stay(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// While it is held, nobody is between a record and its row.
    pub(crate) fn records_may_go(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(folder: &Path, also: OpenFlags) -> Result<Connection, ArchiveError> {
    let what = ArchiveError::database;
    let path = folder.join(DATABASE);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | also;
    let connection = Connection::open_with_flags(&path, flags).map_err(what("be opened"))?;
    connection.busy_timeout(BUSY).map_err(what("be opened"))?;
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;",
        )
        .map_err(what("be opened"))?;
    Ok(connection)
}
