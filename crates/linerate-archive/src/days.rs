//! Days of a pair: how many tests there were, how they ended, and the distribution of what they measured.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis};
use rusqlite::Connection;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::events::clamped;

/// A day, ms.
pub(crate) const DAY: u64 = 24 * 60 * 60 * 1000;

/// The tests of a pair that were due in one day (UTC).
#[derive(Debug, Clone, PartialEq)]
pub struct Day {
    /// Its beginning.
    pub begins: UnixMillis,
    /// Tests that measured.
    pub measured: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that did not run.
    pub not_run: u64,
    /// Tests that do not count.
    pub invalid: u64,
    /// Goodput, bit/s: least, lower quartile, median, upper quartile, most (nearest rank); absent = nothing was measured.
    pub goodput_bps: Option<[f64; 5]>,
}

impl Archive {
    /// The days of a pair that [`Self::retain`] has made so far, the oldest first.
    ///
    /// # Errors
    /// The database's.
    pub fn days(
        &self,
        task: &PlainText,
        from: &PlainText,
        to: &PlainText,
    ) -> Result<Vec<Day>, ArchiveError> {
        let what = ArchiveError::database;
        self.read(|connection| {
            let mut select = connection
                .prepare(
                    "SELECT day, measured, failed, not_run, invalid, least, quarter, median, three_quarters, most
                     FROM day JOIN pair USING (pair) WHERE task = ?1 AND sender = ?2 AND receiver = ?3 ORDER BY day",
                )
                .map_err(what("list days"))?;
            let rows = select
                .query_map((&**task, &**from, &**to), |row| {
                    let least: Option<f64> = row.get(5)?;
                    let goodput_bps = match least {
                        None => None,
                        Some(least) => Some([
                            least,
                            row.get(6)?,
                            row.get(7)?,
                            row.get(8)?,
                            row.get(9)?,
                        ]),
                    };
                    Ok(Day {
                        begins: UnixMillis(row.get::<_, u64>(0)?.saturating_mul(DAY)),
                        measured: row.get(1)?,
                        failed: row.get(2)?,
                        not_run: row.get(3)?,
                        invalid: row.get(4)?,
                        goodput_bps,
                    })
                })
                .map_err(what("list days"))?;
            rows.map(|row| row.map_err(what("list days"))).collect()
        })
    }
}

/// A pair and a day, since 1970, of which there is no row, or one that a late result has made wrong.
pub(crate) struct Due {
    pair: i64,
    day: u64,
}

/// What is due of the days that begin before a moment, at most `limit`.
pub(crate) fn due(
    connection: &Connection,
    before: UnixMillis,
    limit: usize,
) -> Result<Vec<Due>, ArchiveError> {
    let what = ArchiveError::database;
    let sql = "WITH counted AS (
            SELECT pair, due / ?2 AS day, sum(outcome = 'measured') AS measured, sum(outcome = 'failed') AS failed,
                sum(outcome = 'not_run') AS not_run, sum(outcome = 'invalid') AS invalid
            FROM run WHERE due < ?1 GROUP BY pair, due / ?2)
        SELECT counted.pair, counted.day FROM counted
        LEFT JOIN day ON day.pair = counted.pair AND day.day = counted.day
        WHERE (day.measured, day.failed, day.not_run, day.invalid)
            IS NOT (counted.measured, counted.failed, counted.not_run, counted.invalid)
        LIMIT ?3";
    let mut select = connection.prepare(sql).map_err(what("list days"))?;
    let rows = select
        .query_map(
            (
                clamped(before.0 / DAY * DAY),
                clamped(DAY),
                clamped(limit as u64),
            ),
            |row| {
                Ok(Due {
                    pair: row.get(0)?,
                    day: row.get(1)?,
                })
            },
        )
        .map_err(what("list days"))?;
    rows.map(|row| row.map_err(what("list days"))).collect()
}

/// Makes the row of a day.
pub(crate) fn make(connection: &Connection, due: &Due) -> Result<(), ArchiveError> {
    let what = ArchiveError::database;
    let begins = |day: u64| RunId::of(UnixMillis(day.saturating_mul(DAY)), 0).to_string();
    let mut select = connection
        .prepare("SELECT outcome, goodput FROM run WHERE pair = ?1 AND id >= ?2 AND id < ?3 ORDER BY goodput")
        .map_err(what("make a day"))?;
    let rows = select
        .query_map((due.pair, begins(due.day), begins(due.day + 1)), |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<f64>>(1)?))
        })
        .map_err(what("make a day"))?;
    let mut goodputs = Vec::new();
    let (mut failed, mut not_run, mut invalid) = (0_u64, 0_u64, 0_u64);
    for row in rows {
        let (outcome, goodput) = row.map_err(what("make a day"))?;
        match outcome.as_str() {
            "failed" => failed += 1,
            "not_run" => not_run += 1,
            "invalid" => invalid += 1,
            _ => goodputs.extend(goodput),
        }
    }
    let quantile = |quarters: usize| {
        // The nearest rank, from 1.
        let rank = (goodputs.len() * quarters).div_ceil(4).max(1);
        goodputs.get(rank - 1).copied()
    };
    connection
        .execute(
            "INSERT OR REPLACE INTO day VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            rusqlite::params![
                due.pair,
                clamped(due.day),
                clamped(goodputs.len() as u64),
                clamped(failed),
                clamped(not_run),
                clamped(invalid),
                quantile(0),
                quantile(1),
                quantile(2),
                quantile(3),
                quantile(4),
            ],
        )
        .map_err(what("make a day"))?;
    Ok(())
}
