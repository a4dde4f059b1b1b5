//! Days of a pair: how many tests there were, how they ended, and the distribution of what they measured.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
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

/// Makes the days of all runs that were due before a moment; how many.
pub(crate) fn make(connection: &Connection, before: UnixMillis) -> Result<u64, ArchiveError> {
    let what = ArchiveError::database;
    // A late result makes its day anew: it has another count.
    let sql = "WITH
        counted AS (
            SELECT pair, due / ?2 AS day, sum(outcome = 'measured') AS measured, sum(outcome = 'failed') AS failed,
                sum(outcome = 'not_run') AS not_run, sum(outcome = 'invalid') AS invalid
            FROM run WHERE due < ?1 GROUP BY pair, day),
        new AS (
            SELECT counted.* FROM counted LEFT JOIN day USING (pair, day)
            WHERE (day.measured, day.failed, day.not_run, day.invalid)
                IS NOT (counted.measured, counted.failed, counted.not_run, counted.invalid)),
        ranked AS (
            SELECT pair, due / ?2 AS day, goodput,
                row_number() OVER (PARTITION BY pair, due / ?2 ORDER BY goodput) AS rank,
                count(*) OVER (PARTITION BY pair, due / ?2) AS of
            FROM run JOIN new ON new.pair = run.pair AND new.day = run.due / ?2
            WHERE run.outcome = 'measured' AND due < ?1)
        INSERT OR REPLACE INTO day
        SELECT new.pair, new.day, new.measured, new.failed, new.not_run, new.invalid,
            min(goodput),
            min(CASE WHEN rank * 4 >= of THEN goodput END),
            min(CASE WHEN rank * 2 >= of THEN goodput END),
            min(CASE WHEN rank * 4 >= of * 3 THEN goodput END),
            max(goodput)
        FROM new LEFT JOIN ranked USING (pair, day) GROUP BY new.pair, new.day";
    let made = connection
        .execute(sql, (clamped(before.0 / DAY * DAY), clamped(DAY)))
        .map_err(what("make days"))?;
    Ok(made as u64)
}
