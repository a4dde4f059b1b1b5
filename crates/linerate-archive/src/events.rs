//! What happened, in the order of the commits: what a page that is open is sent.

use linerate_model::watch::UnixMillis;
use rusqlite::Connection;

use crate::archive::Archive;
use crate::error::ArchiveError;

/// The place of an event in the order of commits, from 1. 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventId(pub u64);

/// Something that changed in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its place.
    pub id: EventId,
    /// Of what kind.
    pub kind: EventKind,
    /// Of what: the id of a run, an alert or a silence, the name of a host. It may have been written by a host: escape it.
    pub subject: String,
    /// Who did it, and when; absent = nobody in person.
    pub by: Option<(String, UnixMillis)>,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A run was appended, or a late result took its place.
    Run,
    /// An alert began or changed.
    Alert,
    /// A silence began or changed.
    Silence,
    /// A host's facts became others.
    Facts,
    /// Somebody said that the new level of an alert's pairs is right.
    Accepted,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Run,
        Self::Alert,
        Self::Silence,
        Self::Facts,
        Self::Accepted,
    ];

    /// Its word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Alert => "alert",
            Self::Silence => "silence",
            Self::Facts => "facts",
            Self::Accepted => "accepted",
        }
    }
}

impl Archive {
    /// Events after one, the oldest first, at most `limit`. [`Self::retain`] removes old ones, so a reader that was away
    /// for long finds a gap between its last event and the first that it gets, and has to read anew.
    ///
    /// # Errors
    /// The database's.
    pub fn events(&self, after: EventId, limit: usize) -> Result<Vec<Event>, ArchiveError> {
        let what = ArchiveError::database;
        self.read(|connection| {
            let mut select = connection
                .prepare(
                    "SELECT event, kind, subject, by, at FROM event WHERE event > ?1 ORDER BY event LIMIT ?2",
                )
                .map_err(what("list events"))?;
            let rows = select
                .query_map((clamped(after.0), clamped(limit as u64)), |row| {
                    let by: (Option<String>, Option<u64>) = (row.get(3)?, row.get(4)?);
                    Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?, by))
                })
                .map_err(what("list events"))?;
            rows.map(|row| {
                let (id, kind, subject, (by, at)) = row.map_err(what("list events"))?;
                let known = EventKind::ALL.into_iter().find(|one| one.word() == kind);
                let kind = known
                    .ok_or_else(|| ArchiveError::Damaged(format!("event {id} is of no kind")))?;
                Ok(Event {
                    id: EventId(id),
                    kind,
                    subject,
                    by: by.zip(at.map(UnixMillis)),
                })
            })
            .collect()
        })
    }
}

impl Archive {
    /// Adds that somebody accepted the new level of an alert's pairs.
    ///
    /// # Errors
    /// The database's.
    pub fn put_acceptance(
        &self,
        alert: &str,
        by: &str,
        at: UnixMillis,
    ) -> Result<(), ArchiveError> {
        let (alert, by) = (alert.to_owned(), by.to_owned());
        self.write(move |connection| {
            connection
                .execute(
                    "INSERT INTO event (kind, subject, by, at) VALUES (?1, ?2, ?3, ?4)",
                    (EventKind::Accepted.word(), &alert, &by, clamped(at.0)),
                )
                .map_err(ArchiveError::database("add an event"))?;
            Ok(())
        })
    }
}

/// As SQLite takes it.
pub(crate) fn clamped(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn record(
    connection: &Connection,
    kind: EventKind,
    subject: &str,
) -> Result<(), ArchiveError> {
    connection
        .execute(
            "INSERT INTO event (kind, subject) VALUES (?1, ?2)",
            (kind.word(), subject),
        )
        .map_err(ArchiveError::database("add an event"))?;
    Ok(())
}

/// The newest event; 0 = none yet.
pub(crate) fn newest(connection: &Connection) -> Result<u64, ArchiveError> {
    connection
        .query_row("SELECT coalesce(max(event), 0) FROM event", [], |row| {
            row.get(0)
        })
        .map_err(ArchiveError::database("read the newest event"))
}
