//! Runs: appending, reading, and the state of each pair.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis, WatchOutcome, WatchRun};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::events::{self, EventKind, clamped};
use crate::objects::{Object, RecordHash};
use crate::row;

/// What became of a run that was to be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Appended {
    /// It is a new row.
    New,
    /// The archive has that test already, and keeps the row that it has.
    Known,
    /// It took the place of a row that says less: a late result. [`Archive::late_results`] counts these.
    Replaced,
}

/// A run, as the archive has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The run.
    pub run: WatchRun,
    /// Its record; absent = it never had one, or the record is gone.
    pub record: Option<RecordHash>,
    /// When retention removed its record; absent = it did not.
    pub record_gone: Option<UnixMillis>,
    /// The version of the definitions by which its figures were computed; 0 = not known.
    pub computed_by: u32,
}

/// What became of a test, as a word alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutcomeKind {
    /// [`WatchOutcome::Measured`].
    Measured,
    /// [`WatchOutcome::Failed`].
    Failed,
    /// [`WatchOutcome::NotRun`].
    NotRun,
    /// [`WatchOutcome::Invalid`].
    Invalid,
}

impl OutcomeKind {
    /// Of an outcome.
    pub const fn of(outcome: &WatchOutcome) -> Self {
        match outcome {
            WatchOutcome::Measured(_) => Self::Measured,
            WatchOutcome::Failed { .. } => Self::Failed,
            WatchOutcome::NotRun { .. } => Self::NotRun,
            WatchOutcome::Invalid { .. } => Self::Invalid,
        }
    }

    /// Its word for programs, that of the record's JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Failed => "failed",
            Self::NotRun => "not_run",
            Self::Invalid => "invalid",
        }
    }

    /// Which of two outcomes of one test stays: the higher.
    fn rank(word: &str) -> u8 {
        match word {
            "not_run" => 0,
            "failed" => 1,
            _ => 2,
        }
    }
}

/// Which runs. Without a condition it is all of them, at most `limit`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    /// Of this task alone.
    pub task: Option<PlainText>,
    /// From this host alone.
    pub from: Option<PlainText>,
    /// To this host alone.
    pub to: Option<PlainText>,
    /// Due at or after this moment.
    pub since: Option<UnixMillis>,
    /// Due before this moment.
    pub until: Option<UnixMillis>,
    /// With one of these outcomes; empty = any.
    pub kinds: Vec<OutcomeKind>,
    /// At most so many; 0 = all.
    pub limit: usize,
    /// Older than this one: the last of the page before.
    pub before: Option<RunId>,
}

/// A pair of a task, as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct PairState {
    /// The task.
    pub task: PlainText,
    /// The sending host.
    pub from: PlainText,
    /// The receiving host.
    pub to: PlainText,
    /// The test that was due last, of those in the archive.
    pub latest: Stored,
    /// The one of those that measured, which was due last; absent = none ever did.
    pub measured: Option<Stored>,
    /// How many tests failed since one last measured or was invalid. Those that did not run are passed over.
    pub failures_in_a_row: u32,
}

impl Archive {
    /// Keeps a run and its record (the JSON of a `RunRecord`). Once this returns, both are on disk.
    ///
    /// A test is known by its id, so that appending it again changes nothing. Of two outcomes of one test the archive keeps
    /// the one that says more, whichever comes first: not run, failed, then measured or invalid.
    ///
    /// # Errors
    /// [`ArchiveError::Full`] after raw records that retention may remove were removed and there is still no room;
    /// [`ArchiveError::Unfit`] for a run with another due time than its id, or with a figure that is no finite number.
    pub fn append(&self, run: &WatchRun, record: Option<&[u8]>) -> Result<Appended, ArchiveError> {
        check(run)?;
        let mut result = self.append_once(run, record);
        if matches!(result, Err(ArchiveError::Full { .. }))
            && self.make_room(record.map_or(0, <[u8]>::len))?
        {
            result = self.append_once(run, record);
        }
        result
    }

    fn append_once(&self, run: &WatchRun, record: Option<&[u8]>) -> Result<Appended, ArchiveError> {
        let _stay = self.records_stay();
        let object = record.map(|json| self.objects.put(json)).transpose()?;
        let (run, computed_by) = (run.clone(), self.figures_version());
        self.write(move |connection| append(connection, &run, object, computed_by))
    }

    /// The run of this id.
    ///
    /// # Errors
    /// The database's; a damaged row.
    pub fn run(&self, id: RunId) -> Result<Option<Stored>, ArchiveError> {
        self.read(|connection| run(connection, id))
    }

    /// The JSON of a run's record; absent = the run is not known, never had one, or the record is gone.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] where the file is not there, or not what was written.
    pub fn record(&self, id: RunId) -> Result<Option<Vec<u8>>, ArchiveError> {
        let _stay = self.records_stay();
        let Some(hash) = self.run(id)?.and_then(|stored| stored.record) else {
            return Ok(None);
        };
        match self.objects.get(hash)? {
            Some(json) => Ok(Some(json)),
            // Another process may have removed both since.
            None if self.run(id)?.is_none_or(|stored| stored.record.is_none()) => Ok(None),
            None => Err(ArchiveError::Damaged(format!(
                "the record of test {id} is missing: {}",
                self.objects.path(hash).display()
            ))),
        }
    }

    /// Runs, those due last first.
    ///
    /// # Errors
    /// The database's; a damaged row.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<Stored>, ArchiveError> {
        let mut found = Vec::new();
        self.each_run(filter, false, |stored| {
            found.push(stored);
            Ok(())
        })?;
        Ok(found)
    }

    /// Calls this with each run that [`Self::runs`] would return, and holds one at a time; `oldest_first` turns the order.
    ///
    /// # Errors
    /// As [`Self::runs`]; that of `with`.
    pub fn each_run(
        &self,
        filter: &RunFilter,
        oldest_first: bool,
        mut with: impl FnMut(Stored) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let what = ArchiveError::database;
        let (sql, parameters) = select(filter, oldest_first);
        self.read(|connection| {
            let mut select = connection.prepare(&sql).map_err(what("list tests"))?;
            let mut rows = select
                .query(params_from_iter(parameters))
                .map_err(what("list tests"))?;
            while let Some(row) = rows.next().map_err(what("list tests"))? {
                with(row::stored(row)?)?;
            }
            Ok(())
        })
    }

    /// Every pair that a run was appended of, in the order of task and hosts.
    ///
    /// # Errors
    /// The database's; a damaged row.
    pub fn pairs(&self) -> Result<Vec<PairState>, ArchiveError> {
        let what = ArchiveError::database;
        self.read(|connection| {
            let mut measured = std::collections::HashMap::new();
            let list = |which: &str| {
                format!(
                    "SELECT {}, failures, pair_state.pair FROM pair_state JOIN run ON run.run = pair_state.{which}
                     JOIN pair ON pair.pair = run.pair ORDER BY task, sender, receiver",
                    row::COLUMNS
                )
            };
            let each = |which: &str, with: &mut dyn FnMut(u64, u32, Stored)| {
                let mut select = connection.prepare(&list(which)).map_err(what("list pairs"))?;
                let mut rows = select.query([]).map_err(what("list pairs"))?;
                while let Some(row) = rows.next().map_err(what("list pairs"))? {
                    let own = |row: &Row<'_>| Ok((row.get("failures")?, row.get("pair")?));
                    let (failures, pair) = own(row).map_err(what("list pairs"))?;
                    with(pair, failures, row::stored(row)?);
                }
                Ok::<_, ArchiveError>(())
            };
            each("measured", &mut |pair, _, stored| {
                measured.insert(pair, stored);
            })?;
            let mut pairs = Vec::new();
            each("latest", &mut |pair, failures, latest| {
                pairs.push(PairState {
                    task: latest.run.task.clone(),
                    from: latest.run.from.clone(),
                    to: latest.run.to.clone(),
                    latest,
                    measured: measured.remove(&pair),
                    failures_in_a_row: failures,
                });
            })?;
            Ok(pairs)
        })
    }

    /// How many rows a late result has replaced, since the archive was made.
    ///
    /// # Errors
    /// The database's.
    pub fn late_results(&self) -> Result<u64, ArchiveError> {
        self.read(|connection| counted(connection, LATE))
    }
}

/// Key of [`counted`]: rows that a late result replaced.
const LATE: &str = "late results";

/// How often something happened.
pub(crate) fn counted(connection: &Connection, what: &str) -> Result<u64, ArchiveError> {
    let times = connection
        .query_row("SELECT times FROM counted WHERE what = ?1", [what], |row| {
            row.get(0)
        })
        .optional()
        .map_err(ArchiveError::database("read a count"))?;
    Ok(times.unwrap_or(0))
}

/// Counts that something happened so often again.
pub(crate) fn count(connection: &Connection, what: &str, times: u64) -> Result<(), ArchiveError> {
    connection
        .execute(
            "INSERT INTO counted VALUES (?1, ?2) ON CONFLICT (what) DO UPDATE SET times = times + excluded.times",
            (what, clamped(times)),
        )
        .map_err(ArchiveError::database("count"))?;
    Ok(())
}

fn check(run: &WatchRun) -> Result<(), ArchiveError> {
    let unfit = |why| Err(ArchiveError::Unfit { id: run.id, why });
    if run.id.due() != run.due {
        return unfit("its id says another time at which it was due");
    }
    Ok(())
}

pub(crate) fn run(connection: &Connection, id: RunId) -> Result<Option<Stored>, ArchiveError> {
    let what = ArchiveError::database;
    let sql = format!(
        "SELECT {} FROM run JOIN pair USING (pair) WHERE run.id = ?1",
        row::COLUMNS
    );
    let mut select = connection.prepare(&sql).map_err(what("find a test"))?;
    let mut rows = select
        .query([id.to_string()])
        .map_err(what("find a test"))?;
    let row = rows.next().map_err(what("find a test"))?;
    row.map(row::stored).transpose()
}

/// The statement that lists what a filter asks for, and its parameters.
fn select(filter: &RunFilter, oldest_first: bool) -> (String, Vec<Value>) {
    let mut conditions = Vec::new();
    let mut parameters = Vec::new();
    let mut and = |condition: &str, value: String| {
        parameters.push(Value::Text(value));
        conditions.push(condition.replace('?', &format!("?{}", parameters.len())));
    };
    let pairs = [
        ("task = ?", &filter.task),
        ("sender = ?", &filter.from),
        ("receiver = ?", &filter.to),
    ];
    for (condition, text) in pairs {
        if let Some(text) = text {
            and(condition, text.to_string());
        }
    }
    // An id begins with the time at which its test was due.
    if let Some(since) = filter.since {
        and("run.id >= ?", RunId::of(since, 0).to_string());
    }
    if let Some(until) = filter.until {
        and("run.id < ?", RunId::of(until, 0).to_string());
    }
    if let Some(before) = filter.before {
        and("run.id < ?", before.to_string());
    }
    if !filter.kinds.is_empty() {
        let words = filter.kinds.iter().map(|kind| format!("'{}'", kind.word()));
        let words = words.collect::<Vec<_>>().join(", ");
        conditions.push(format!("outcome IN ({words})"));
    }
    // Of one pair or a few, all runs are looked at; else runs are looked at in their order until there are enough.
    let tables = if filter.from.is_some() && filter.to.is_some() {
        "pair CROSS JOIN run"
    } else {
        "run CROSS JOIN pair"
    };
    let columns = row::COLUMNS;
    let mut sql = format!("SELECT {columns} FROM {tables} USING (pair)");
    if !conditions.is_empty() {
        sql += " WHERE ";
        sql += &conditions.join(" AND ");
    }
    sql += if oldest_first {
        " ORDER BY run.id"
    } else {
        " ORDER BY run.id DESC"
    };
    if filter.limit > 0 {
        sql.extend([" LIMIT ", &filter.limit.to_string()]);
    }
    (sql, parameters)
}

/// Writes a run, in a transaction.
fn append(
    connection: &Connection,
    run: &WatchRun,
    object: Option<Object>,
    computed_by: u32,
) -> Result<Appended, ArchiveError> {
    let pair = pair(connection, run)?;
    let appended = match known(connection, run.id)? {
        None => Appended::New,
        Some(known) if known.pair != pair => {
            let why = "the archive has a test of other hosts with this id";
            return Err(ArchiveError::Unfit { id: run.id, why });
        }
        Some(known) => {
            let word = row::word(&run.outcome);
            if OutcomeKind::rank(word) <= OutcomeKind::rank(&known.outcome) {
                attach(connection, run, &known, object)?;
                return Ok(Appended::Known);
            }
            count(connection, LATE, 1)?;
            Appended::Replaced
        }
    };
    let number = put(connection, run, pair, object, computed_by)?;
    put_findings(connection, number, &run.outcome)?;
    put_state(connection, pair, number, run, appended)?;
    events::record(connection, EventKind::Run, &run.id.to_string())?;
    Ok(appended)
}

/// The row that the archive has of a test.
struct Known {
    number: i64,
    pair: i64,
    outcome: String,
    /// Whether it has a record, or had one.
    record: bool,
}

fn known(connection: &Connection, id: RunId) -> Result<Option<Known>, ArchiveError> {
    connection
        .query_row(
            "SELECT run, pair, outcome, record IS NOT NULL OR record_gone IS NOT NULL FROM run WHERE id = ?1",
            [id.to_string()],
            |row| {
                Ok(Known {
                    number: row.get(0)?,
                    pair: row.get(1)?,
                    outcome: row.get(2)?,
                    record: row.get(3)?,
                })
            },
        )
        .optional()
        .map_err(ArchiveError::database("find a test"))
}

/// Gives a row its record, where the row came without it.
fn attach(
    connection: &Connection,
    run: &WatchRun,
    known: &Known,
    object: Option<Object>,
) -> Result<(), ArchiveError> {
    let Some(object) = object.filter(|_| !known.record) else {
        return Ok(());
    };
    // A record of another outcome would not explain this one.
    if self::run(connection, run.id)?.is_none_or(|stored| stored.run != *run) {
        return Ok(());
    }
    connection
        .execute(
            "UPDATE run SET record = ?2, record_bytes = ?3 WHERE run = ?1",
            (known.number, object.hash.to_string(), clamped(object.bytes)),
        )
        .map_err(ArchiveError::database("add a record to its test"))?;
    Ok(())
}

fn pair(connection: &Connection, run: &WatchRun) -> Result<i64, ArchiveError> {
    let what = ArchiveError::database;
    let names = (&*run.task, &*run.from, &*run.to);
    let sql = "SELECT pair FROM pair WHERE task = ?1 AND sender = ?2 AND receiver = ?3";
    let known = connection
        .query_row(sql, names, |row| row.get(0))
        .optional();
    if let Some(pair) = known.map_err(what("find a pair"))? {
        return Ok(pair);
    }
    let sql = "INSERT INTO pair (task, sender, receiver) VALUES (?1, ?2, ?3)";
    connection.execute(sql, names).map_err(what("add a pair"))?;
    Ok(connection.last_insert_rowid())
}

/// Writes the row itself; its number.
fn put(
    connection: &Connection,
    run: &WatchRun,
    pair: i64,
    object: Option<Object>,
    computed_by: u32,
) -> Result<i64, ArchiveError> {
    let mut values = row::values(run)?;
    values.0.insert(0, Value::Integer(pair));
    values.0.push(Value::Integer(computed_by.into()));
    match object {
        Some(object) => {
            values.0.push(Value::Text(object.hash.to_string()));
            values.0.push(Value::Integer(clamped(object.bytes)));
        }
        None => values.0.extend([Value::Null, Value::Null]),
    }
    connection
        .query_row(row::UPSERT, params_from_iter(values.parameters()), |row| {
            row.get(0)
        })
        .map_err(ArchiveError::database("add a test"))
}

pub(crate) fn put_findings(
    connection: &Connection,
    number: i64,
    outcome: &WatchOutcome,
) -> Result<(), ArchiveError> {
    let what = ArchiveError::database;
    connection
        .execute("DELETE FROM finding WHERE run = ?1", [number])
        .map_err(what("replace findings"))?;
    let WatchOutcome::Measured(figures) = outcome else {
        return Ok(());
    };
    for (place, finding) in (0_i64..).zip(&figures.findings) {
        connection
            .execute(
                "INSERT INTO finding VALUES (?1, ?2, ?3)",
                (number, place, finding),
            )
            .map_err(what("add a finding"))?;
    }
    Ok(())
}

/// Brings the state of a pair up to date.
fn put_state(
    connection: &Connection,
    pair: i64,
    number: i64,
    run: &WatchRun,
    appended: Appended,
) -> Result<(), ArchiveError> {
    let what = ArchiveError::database;
    let before: Option<(String, u32)> = connection
        .query_row(
            "SELECT run.id, failures FROM pair_state JOIN run ON run.run = latest WHERE pair_state.pair = ?1",
            [pair],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()
        .map_err(what("read the state of a pair"))?;
    let failures = match before {
        None if appended == Appended::New => failures_after(0, &run.outcome),
        Some((latest, failures)) if appended == Appended::New && latest < run.id.to_string() => {
            failures_after(failures, &run.outcome)
        }
        _ => return rebuild_state(connection, pair),
    };
    let measured = matches!(run.outcome, WatchOutcome::Measured(_)).then_some(number);
    connection
        .execute(
            "INSERT INTO pair_state VALUES (?1, ?2, ?3, ?4) ON CONFLICT (pair) DO UPDATE SET
                latest = excluded.latest, measured = coalesce(excluded.measured, measured), failures = excluded.failures",
            (pair, number, measured, failures),
        )
        .map_err(what("change the state of a pair"))?;
    Ok(())
}

/// Failures in a row after one more run.
fn failures_after(failures: u32, outcome: &WatchOutcome) -> u32 {
    match outcome {
        WatchOutcome::Measured(_) | WatchOutcome::Invalid { .. } => 0,
        WatchOutcome::Failed { .. } => failures.saturating_add(1),
        WatchOutcome::NotRun { .. } => failures,
    }
}

/// The same from all runs of the pair, where a run came late or changed.
fn rebuild_state(connection: &Connection, pair: i64) -> Result<(), ArchiveError> {
    connection
        .execute(
            "INSERT OR REPLACE INTO pair_state SELECT ?1,
                (SELECT run FROM run WHERE pair = ?1 ORDER BY id DESC LIMIT 1),
                (SELECT run FROM run WHERE pair = ?1 AND outcome = 'measured' ORDER BY id DESC LIMIT 1),
                (SELECT count(*) FROM run WHERE pair = ?1 AND outcome = 'failed' AND id > coalesce(
                    (SELECT id FROM run WHERE pair = ?1 AND outcome IN ('measured', 'invalid') ORDER BY id DESC LIMIT 1), ''))",
            [pair],
        )
        .map_err(ArchiveError::database("rebuild the state of a pair"))?;
    Ok(())
}
