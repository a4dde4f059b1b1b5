//! A copy of the archive, made while it is written.

use std::fs;
use std::io;
use std::path::Path;

use linerate_model::watch::UnixMillis;
use rusqlite::Connection;
use serde::Serialize;

use crate::archive::{Archive, DATABASE};
use crate::error::ArchiveError;
use crate::events::clamped;
use crate::objects::{self, Objects, RecordHash};

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Backup {
    /// Tests.
    pub tests: u64,
    /// Files of records, as hard links.
    pub linked: u64,
    /// Files of records, as copies: to another file system.
    pub copied: u64,
    /// Tests whose record was removed while the backup was made. Its row there says so.
    pub gone: u64,
}

impl Archive {
    /// Copies the archive to a folder that is not there yet. The copy is of one moment; tests go on being appended
    /// meanwhile, but this process removes no record until it is made. It is an archive: open it, verify it.
    ///
    /// Records are hard links where the folder is on the same file system. They never change, but a disk that breaks takes
    /// both with it.
    ///
    /// # Errors
    /// [`ArchiveError::Exists`] where the folder has an archive; files that cannot be made.
    pub fn backup(&self, to: &Path, now: UnixMillis) -> Result<Backup, ArchiveError> {
        let database = to.join(DATABASE);
        if database.exists() {
            return Err(ArchiveError::Exists(database));
        }
        objects::make_folder(to)?;
        let part = to.join(format!("{DATABASE}.part"));
        let _stay = self.records_stay();
        drop(fs::remove_file(&part));
        let backup = self.copy(to, &part, now)?;
        fs::rename(&part, &database)
            .and_then(|()| objects::sync_folder(to))
            .map_err(ArchiveError::file("finish the backup", &database))?;
        Ok(backup)
    }

    fn copy(&self, to: &Path, part: &Path, now: UnixMillis) -> Result<Backup, ArchiveError> {
        let what = ArchiveError::database;
        let copy = self.copy_database(part)?;
        let objects = Objects::open(to)?;
        let tests = copy
            .query_row("SELECT count(*) FROM run", [], |row| row.get(0))
            .map_err(what("be copied"))?;
        let mut backup = Backup {
            tests,
            ..Backup::default()
        };
        for hash in hashes(&copy)? {
            match self.copy_record(&objects, hash)? {
                Copied::Linked => backup.linked += 1,
                Copied::Anew => backup.copied += 1,
                Copied::Gone => {
                    let sql = "UPDATE run SET record = NULL, record_bytes = NULL, record_gone = ?2 WHERE record = ?1";
                    let gone = copy
                        .execute(sql, (hash.to_string(), clamped(now.0)))
                        .map_err(what("be copied"))?;
                    backup.gone += gone as u64;
                }
            }
        }
        copy.close()
            .map_err(|(_, error)| what("be copied")(error))?;
        Ok(backup)
    }

    /// SQLite's online backup, in one step: a snapshot that no writer waits for.
    fn copy_database(&self, part: &Path) -> Result<Connection, ArchiveError> {
        let what = ArchiveError::database;
        let mut copy = Connection::open(part).map_err(what("make its copy"))?;
        self.read(|connection| {
            let backup =
                rusqlite::backup::Backup::new(connection, &mut copy).map_err(what("be copied"))?;
            backup.step(-1).map_err(what("be copied"))?;
            Ok(())
        })?;
        copy.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL")
            .map_err(what("be copied"))?;
        Ok(copy)
    }

    fn copy_record(&self, to: &Objects, hash: RecordHash) -> Result<Copied, ArchiveError> {
        let (from, path) = (self.objects.path(hash), to.path(hash));
        let Some(folder) = path.parent() else {
            return Ok(Copied::Gone);
        };
        objects::make_folder(folder)?;
        match fs::hard_link(&from, &path) {
            Ok(()) => Ok(Copied::Linked),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Copied::Linked),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Copied::Gone),
            Err(_) => match self.objects.get(hash)? {
                Some(json) => to.put(&json).map(|_| Copied::Anew),
                None => Ok(Copied::Gone),
            },
        }
    }
}

enum Copied {
    Linked,
    Anew,
    Gone,
}

fn hashes(connection: &Connection) -> Result<Vec<RecordHash>, ArchiveError> {
    let what = ArchiveError::database;
    let mut select = connection
        .prepare("SELECT DISTINCT record FROM run WHERE record IS NOT NULL ORDER BY record")
        .map_err(what("list records"))?;
    let rows = select
        .query_map([], |row| row.get::<_, String>(0))
        .map_err(what("list records"))?;
    rows.map(|hash| hash.map_err(what("list records"))?.parse())
        .collect()
}
