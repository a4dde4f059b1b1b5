//! When the archive's disk will be full.

use std::collections::BTreeMap;

use linerate_model::watch::UnixMillis;
use serde::Serialize;

use crate::archive::Archive;
use crate::days::DAY;
use crate::error::ArchiveError;
use crate::events::clamped;
use crate::reserve::space;
use crate::retention::Retention;

/// What the archive takes, how fast it grows, and when its disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// Bytes of the database.
    pub database_bytes: u64,
    /// Bytes of the records.
    pub record_bytes: u64,
    /// Tests in the archive.
    pub tests: u64,
    /// Bytes that are free on its disk.
    pub free_bytes: u64,
    /// Over how many days the growth was taken, at most 30; absent = the archive spans less than an hour.
    pub over_days: Option<f64>,
    /// Tests a day.
    pub tests_a_day: f64,
    /// Growth of the database a day, bytes.
    pub database_a_day: f64,
    /// New records a day, bytes.
    pub records_a_day: f64,
    /// Those of them that are kept for ever, bytes.
    pub kept_a_day: f64,
    /// When the disk is full, if nothing else writes to it and the growth stays; absent = not within 20 years, or the growth
    /// is not known.
    pub full_at: Option<UnixMillis>,
}

/// The growth is taken over so many days before now.
const WINDOW: u64 = 30;
/// No forecast reaches further, days.
const HORIZON: u32 = 20 * 365;

/// What the tests of the window add up to.
struct Recent {
    first: Option<u64>,
    tests: u64,
    bytes: u64,
    kept: u64,
}

impl Archive {
    /// How the archive grows under these rules.
    ///
    /// # Errors
    /// The database's; where the disk cannot be asked.
    pub fn forecast(&self, now: UnixMillis, rules: &Retention) -> Result<Forecast, ArchiveError> {
        let from = now.0.saturating_sub(WINDOW * DAY);
        let (free, _) = space(&self.folder)?;
        let (tests, record_bytes) =
            self.sums("SELECT count(*), coalesce(sum(record_bytes), 0) FROM run")?;
        let (pages, size) =
            self.sums("SELECT page_count, page_size FROM pragma_page_count, pragma_page_size")?;
        let database_bytes = pages.saturating_mul(size);
        let recent = self.recent(from)?;
        let span = recent.first.map(|first| now.0.saturating_sub(first));
        let over_days = span
            .map(|span| span as f64 / DAY as f64)
            .filter(|days| *days >= 1.0 / 24.0);
        let a_day = |amount: u64| over_days.map_or(0.0, |days| amount as f64 / days);
        let row = database_bytes as f64 / tests.max(1) as f64;
        let mut forecast = Forecast {
            database_bytes,
            record_bytes,
            tests,
            free_bytes: free,
            over_days,
            tests_a_day: a_day(recent.tests),
            database_a_day: a_day(recent.tests) * row,
            records_a_day: a_day(recent.bytes),
            kept_a_day: a_day(recent.kept),
            full_at: None,
        };
        forecast.full_at = forecast.full(now, &self.leaving_by_day(now, rules)?, rules);
        Ok(forecast)
    }

    fn recent(&self, from: u64) -> Result<Recent, ArchiveError> {
        self.read(|connection| {
            connection
                .query_row(
                    "SELECT min(due), count(*), coalesce(sum(record_bytes), 0), coalesce(sum(
                        CASE WHEN outcome = 'failed' OR run IN (SELECT run FROM kept) THEN record_bytes END), 0)
                     FROM run WHERE due >= ?1",
                    [clamped(from)],
                    |row| {
                        Ok(Recent {
                            first: row.get(0)?,
                            tests: row.get(1)?,
                            bytes: row.get(2)?,
                            kept: row.get(3)?,
                        })
                    },
                )
                .map_err(ArchiveError::database("sum up its tests"))
        })
    }

    fn sums(&self, sql: &str) -> Result<(u64, u64), ArchiveError> {
        self.read(|connection| {
            connection
                .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
                .map_err(ArchiveError::database("say how large it is"))
        })
    }

    /// How many bytes of the records that are there today leave on each coming day.
    fn leaving_by_day(
        &self,
        now: UnixMillis,
        rules: &Retention,
    ) -> Result<BTreeMap<u64, f64>, ArchiveError> {
        let what = ArchiveError::database;
        self.read(|connection| {
            let mut select = connection
                .prepare(
                    "SELECT max(0, due + ?1 - ?2) / ?3, sum(record_bytes) FROM run WHERE record IS NOT NULL
                        AND outcome != 'failed' AND run NOT IN (SELECT run FROM kept) GROUP BY 1",
                )
                .map_err(what("sum up its records"))?;
            let rows = select
                .query_map(
                    (clamped(rules.raw_millis), clamped(now.0), clamped(DAY)),
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .map_err(what("sum up its records"))?;
            rows.map(|row| row.map_err(what("sum up its records"))).collect()
        })
    }
}

impl Forecast {
    /// Day by day: what comes, less what retention removes.
    fn full(
        &self,
        now: UnixMillis,
        leaving: &BTreeMap<u64, f64>,
        rules: &Retention,
    ) -> Option<UnixMillis> {
        self.over_days?;
        let raw_days = rules.raw_millis / DAY;
        let mut free = self.free_bytes as f64;
        for day in 0..HORIZON {
            let at = u64::from(day);
            let mut leaves = leaving.get(&at).copied().unwrap_or(0.0);
            if at >= raw_days {
                leaves += self.records_a_day - self.kept_a_day;
            }
            free -= self.database_a_day + self.records_a_day - leaves;
            if free <= 0.0 {
                return Some(now.plus_millis(at.saturating_mul(DAY)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_leave_after_a_while_and_rows_do_not() {
        let rules = Retention::default();
        let forecast = Forecast {
            database_bytes: 0,
            record_bytes: 0,
            tests: 1,
            free_bytes: 100_000,
            over_days: Some(1.0),
            tests_a_day: 1.0,
            database_a_day: 1000.0,
            records_a_day: 100.0,
            kept_a_day: 0.0,
            full_at: None,
        };
        let full = |forecast: &Forecast, leaving: &[(u64, f64)]| {
            let leaving = leaving.iter().copied().collect();
            forecast
                .full(UnixMillis(0), &leaving, &rules)
                .map(|at| at.0 / DAY)
        };
        // 60 days of 1,100 bytes, then 1,000 a day: the other 34,000 last for 34 days.
        assert_eq!(full(&forecast, &[]), Some(93));
        assert_eq!(full(&forecast, &[(5, 2000.0)]), Some(95));
        let unknown = Forecast {
            over_days: None,
            ..forecast
        };
        assert_eq!(full(&unknown, &[]), None);
        let slow = Forecast {
            database_a_day: 1.0,
            ..forecast
        };
        assert_eq!(full(&slow, &[]), None);
    }
}
