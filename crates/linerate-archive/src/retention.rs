//! Which records stay, and what goes when the disk is full.

use linerate_model::watch::{RunId, UnixMillis};
use rusqlite::{Connection, OptionalExtension as _};

use crate::archive::Archive;
use crate::days::{self, DAY};
use crate::error::ArchiveError;
use crate::events::clamped;
use crate::objects::{self, RecordHash};
use crate::reserve::space;
use crate::runs::{count, counted};

/// How long what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Records of tests that were due so long ago are removed, unless they are kept for ever, ms.
    pub raw_millis: u64,
    /// Days that ended so long ago get a row each, ms.
    pub day_millis: u64,
    /// A record's file that no row names is removed when it is so old, ms.
    pub orphan_millis: u64,
    /// So many events stay.
    pub events: u64,
}

impl Default for Retention {
    /// 60 days, 400 days, one day, 100,000 events.
    fn default() -> Self {
        Self {
            raw_millis: 60 * DAY,
            day_millis: 400 * DAY,
            orphan_millis: DAY,
            events: 100_000,
        }
    }
}

/// Why a record is kept for ever. Records of tests that failed are, without being named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keep {
    /// One of the first of a regime.
    Regime,
    /// It belongs to an alert.
    Alert,
    /// Somebody wants it.
    Pinned,
}

impl Keep {
    /// Its word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Regime => "regime",
            Self::Alert => "alert",
            Self::Pinned => "pinned",
        }
    }
}

/// What retention did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retained {
    /// Records removed.
    pub records: u64,
    /// Bytes of their files.
    pub record_bytes: u64,
    /// Files removed that no row named.
    pub orphans: u64,
    /// Bytes of those.
    pub orphan_bytes: u64,
    /// Days made or made anew.
    pub days: u64,
    /// Events removed.
    pub events: u64,
}

/// Records that one transaction takes.
const BATCH: u32 = 200;
/// Days that one transaction makes.
const DAYS: usize = 2000;
/// Key of [`counted`]: records removed because the disk was full.
const FULL: &str = "records removed from a full disk";
/// Conditions of a record that may go.
const MAY_GO: &str =
    "record IS NOT NULL AND outcome != 'failed' AND run NOT IN (SELECT run FROM kept)";

/// Marks a run (`?1`) as one whose record is kept for a reason (`?2`), and takes that back.
const KEEP: &str = "INSERT OR IGNORE INTO kept VALUES (?1, ?2)";
const LET_GO: &str = "DELETE FROM kept WHERE run = ?1 AND why = ?2";

/// A run whose record goes.
struct Leaving {
    run: i64,
    hash: RecordHash,
}

impl Archive {
    /// Keeps a run's record for ever; `false` where the run is not known.
    ///
    /// # Errors
    /// The database's.
    pub fn keep(&self, id: RunId, why: Keep) -> Result<bool, ArchiveError> {
        self.mark(id, why, KEEP)
    }

    /// Takes back what [`Self::keep`] said for this reason; `false` where the run is not known.
    ///
    /// # Errors
    /// The database's.
    pub fn let_go(&self, id: RunId, why: Keep) -> Result<bool, ArchiveError> {
        self.mark(id, why, LET_GO)
    }

    /// The same for many at once, in one transaction and in order: `true` keeps, `false` lets go. Runs that are not known
    /// are passed over.
    ///
    /// # Errors
    /// The database's.
    pub fn keep_all(&self, marks: &[(RunId, Keep, bool)]) -> Result<(), ArchiveError> {
        let marks = marks.to_vec();
        self.write(move |connection| {
            marks.iter().try_for_each(|(id, why, keep)| {
                mark(connection, *id, *why, if *keep { KEEP } else { LET_GO }).map(drop)
            })
        })
    }

    fn mark(&self, id: RunId, why: Keep, sql: &'static str) -> Result<bool, ArchiveError> {
        self.write(move |connection| mark(connection, id, why, sql))
    }

    /// Removes what is older than the rules say, and makes the rows of old days. Rows of runs stay for ever.
    ///
    /// # Errors
    /// The first that occurs; what was done before it stays done.
    pub fn retain(&self, now: UnixMillis, rules: &Retention) -> Result<Retained, ArchiveError> {
        let mut retained = Retained::default();
        let oldest = now.0.saturating_sub(rules.raw_millis);
        let condition = format!("{MAY_GO} AND due < {}", clamped(oldest));
        loop {
            let (records, bytes) = self.remove_records(&condition, now)?;
            retained.records += records;
            retained.record_bytes += bytes;
            if records == 0 {
                break;
            }
        }
        let day = UnixMillis(now.0.saturating_sub(rules.day_millis));
        loop {
            // Readers hold up nobody; a transaction that writes is short.
            let due = self.read(|connection| days::due(connection, day, DAYS))?;
            let made = due.len() as u64;
            if made == 0 {
                break;
            }
            self.write(move |connection| {
                due.iter().try_for_each(|one| days::make(connection, one))
            })?;
            retained.days += made;
        }
        let events = rules.events;
        retained.events = self.write(move |connection| {
            let sql = "DELETE FROM event WHERE event <= (SELECT max(event) FROM event) - ?1";
            let removed = connection
                .execute(sql, [clamped(events)])
                .map_err(ArchiveError::database("remove old events"))?;
            Ok(removed as u64)
        })?;
        self.sweep(now, rules, &mut retained)?;
        Ok(retained)
    }

    /// How many records were removed because the disk was full, since the archive was made.
    ///
    /// # Errors
    /// The database's.
    pub fn removed_from_full_disk(&self) -> Result<u64, ArchiveError> {
        self.read(|connection| counted(connection, FULL))
    }

    /// Removes records of some runs, the oldest first, at most [`BATCH`]; how many, and their bytes.
    fn remove_records(&self, condition: &str, now: UnixMillis) -> Result<(u64, u64), ArchiveError> {
        let _alone = self.records_may_go();
        let sql =
            format!("SELECT run, record FROM run WHERE {condition} ORDER BY id LIMIT {BATCH}");
        let leaving = self.read(|connection| leaving(connection, &sql))?;
        let records = leaving.len() as u64;
        if records == 0 {
            return Ok((0, 0));
        }
        let unused = self.write(move |connection| forget(connection, &leaving, now))?;
        let mut bytes = 0;
        for hash in unused {
            bytes += self.objects.remove(hash)?.unwrap_or(0);
        }
        Ok((records, bytes))
    }

    /// Removes the oldest records that may go until a record of `needed` bytes fits well; whether it removed any.
    pub(crate) fn make_room(&self, needed: usize) -> Result<bool, ArchiveError> {
        self.reserve.release();
        let removed = self.remove_for(needed as u64);
        self.reserve.refill();
        removed
    }

    fn remove_for(&self, needed: u64) -> Result<bool, ArchiveError> {
        let (_, whole) = space(&self.folder)?;
        // A fiftieth of the disk, but no more than 64 MiB: the next tests shall not find it full again.
        let wanted = needed.saturating_mul(2) + (whole / 50).min(64 << 20);
        let mut any = false;
        // Each turn removes records, and their number is finite.
        loop {
            let (records, _) = match self.remove_records(MAY_GO, objects::now()) {
                // What was removed may be enough already.
                Err(ArchiveError::Full { .. }) if any => return Ok(true),
                other => other?,
            };
            if records == 0 {
                return Ok(any);
            }
            any = true;
            self.write(move |connection| count(connection, FULL, records))?;
            if space(&self.folder)?.0 >= wanted {
                return Ok(true);
            }
        }
    }

    /// Removes files that no row names.
    fn sweep(
        &self,
        now: UnixMillis,
        rules: &Retention,
        retained: &mut Retained,
    ) -> Result<(), ArchiveError> {
        let mut old = Vec::new();
        self.objects.each(|found| {
            if now.since(found.changed) >= rules.orphan_millis {
                old.push(found);
            }
            Ok(())
        })?;
        for found in old {
            let _alone = self.records_may_go();
            let named = match found.hash {
                Some(hash) => self.read(|connection| is_named(connection, hash))?,
                None => false,
            };
            if named {
                continue;
            }
            if let Some(bytes) = objects::remove(&found.path)? {
                retained.orphans += 1;
                retained.orphan_bytes += bytes;
            }
        }
        Ok(())
    }
}

/// Marks a run's record, or takes the mark away; `false` where the run is not known.
fn mark(
    connection: &Connection,
    id: RunId,
    why: Keep,
    sql: &'static str,
) -> Result<bool, ArchiveError> {
    let what = ArchiveError::database;
    let run = connection
        .query_row(
            "SELECT run FROM run WHERE id = ?1",
            [id.to_string()],
            |row| row.get::<_, i64>(0),
        )
        .optional()
        .map_err(what("find a test"))?;
    if let Some(run) = run {
        connection
            .execute(sql, (run, why.word()))
            .map_err(what("keep a record"))?;
    }
    Ok(run.is_some())
}

fn leaving(connection: &Connection, sql: &str) -> Result<Vec<Leaving>, ArchiveError> {
    let what = ArchiveError::database;
    let mut select = connection.prepare(sql).map_err(what("list old records"))?;
    let rows = select
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))
        .map_err(what("list old records"))?;
    rows.map(|row| {
        let (run, hash) = row.map_err(what("list old records"))?;
        let hash = hash.parse()?;
        Ok(Leaving { run, hash })
    })
    .collect()
}

/// Takes the records out of their rows; those that no row names any more.
fn forget(
    connection: &Connection,
    leaving: &[Leaving],
    now: UnixMillis,
) -> Result<Vec<RecordHash>, ArchiveError> {
    for one in leaving {
        connection
            .execute(
                "UPDATE run SET record = NULL, record_bytes = NULL, record_gone = ?2 WHERE run = ?1",
                (one.run, clamped(now.0)),
            )
            .map_err(ArchiveError::database("remove records"))?;
    }
    let mut unused = Vec::new();
    for one in leaving {
        if !is_named(connection, one.hash)? {
            unused.push(one.hash);
        }
    }
    Ok(unused)
}

pub(crate) fn is_named(connection: &Connection, hash: RecordHash) -> Result<bool, ArchiveError> {
    connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM run WHERE record = ?1)",
            [hash.to_string()],
            |row| row.get(0),
        )
        .map_err(ArchiveError::database("look for a record's test"))
}
