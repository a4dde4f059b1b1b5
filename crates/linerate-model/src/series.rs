//! Samples as columns.
//!
//! A series is a table: a row is an instant on one end's monotonic clock, a column a counter or a
//! gauge. In memory a column is plain numbers; in a record it is written as its first value and the
//! differences from row to row (modulo 2^64, so that every `u64` survives), where `[d, n]` stands for
//! `n` equal differences `d`. A minute of eight streams at 10 ms stays below 10 MB that way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::column::{Column, CpuTime};
use crate::plain_text::PlainText;

/// The most rows a series may have.
pub const MAX_ROWS: usize = 1 << 22;
/// The most cells (rows times columns) that a series read from outside may have.
pub const MAX_CELLS: usize = 1 << 25;

/// The most columns of a series read from outside: a host's counters have some for each of its processors.
pub const MAX_COLUMNS: usize = 1 << 14;

/// Keeps the first of some rows and every second one after it: what is full has room again.
pub fn every_second<T>(rows: &mut Vec<T>) {
    let mut row = 0_usize;
    rows.retain(|_| {
        row += 1;
        row % 2 == 1
    });
}

/// A table of samples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Encoded", into = "Encoded")]
pub struct Series {
    /// When each row was taken: this end's monotonic clock, in nanoseconds.
    at_ns: Vec<u64>,
    /// Each column has as many values as there are rows.
    columns: BTreeMap<PlainText, Vec<u64>>,
}

/// A series that does not hold together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// A column has another number of values than the series has rows.
    #[error("column '{name}' has {found} values where the series has {rows} rows")]
    Length {
        /// The column.
        name: PlainText,
        /// Its number of values.
        found: usize,
        /// The number of rows.
        rows: usize,
    },
    /// More rows or cells than this build accepts.
    #[error(
        "a series of {rows} rows and {columns} columns is larger than the bound of {MAX_ROWS} rows, {MAX_COLUMNS} columns and {MAX_CELLS} cells"
    )]
    TooLarge {
        /// Rows that it says it has.
        rows: u64,
        /// Columns that it has.
        columns: usize,
    },
}

impl Series {
    /// An empty series with the given instants as rows.
    pub fn new(at_ns: Vec<u64>) -> Self {
        Self {
            at_ns,
            columns: BTreeMap::new(),
        }
    }

    /// Adds a column.
    pub fn insert(
        &mut self,
        name: impl Into<PlainText>,
        values: Vec<u64>,
    ) -> Result<(), SeriesError> {
        let name = name.into();
        if values.len() != self.at_ns.len() {
            return Err(SeriesError::Length {
                name,
                found: values.len(),
                rows: self.at_ns.len(),
            });
        }
        self.columns.insert(name, values);
        Ok(())
    }

    /// The instants, in nanoseconds of this end's monotonic clock.
    pub fn at_ns(&self) -> &[u64] {
        &self.at_ns
    }

    /// The values of a column.
    pub fn column(&self, column: Column) -> Option<&[u64]> {
        self.named(column.name())
    }

    /// The values of one of [`Series::names`].
    pub fn named(&self, name: &str) -> Option<&[u64]> {
        self.columns.get(name).map(Vec::as_slice)
    }

    /// The counters of one kind of CPU time, ms, in the order of the CPUs.
    pub fn cpus(&self, time: CpuTime) -> Vec<(u32, &[u64])> {
        let mut all: Vec<_> = self
            .columns
            .iter()
            .filter_map(|(name, values)| Some((time.cpu(name.as_str())?, values.as_slice())))
            .collect();
        all.sort_unstable_by_key(|(cpu, _)| *cpu);
        all
    }

    /// The last value of a column.
    pub fn last(&self, column: Column) -> Option<u64> {
        self.column(column)?.last().copied()
    }

    /// Last minus first value of a counter; `None` where it is absent or has fewer than two rows.
    pub fn growth(&self, column: Column) -> Option<u64> {
        grown(self.column(column)?)
    }

    /// The columns' names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.keys().map(PlainText::as_str)
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.at_ns.len()
    }

    /// How many cells the series of a record would have, from their heads alone. A few bytes of runs
    /// can say many millions, so a peer's record is asked for this before it is read.
    pub fn cells_of<'de, D: serde::Deserializer<'de>>(series: D) -> Result<usize, D::Error> {
        let head = Head::deserialize(series)?;
        let rows = usize::try_from(head.rows).unwrap_or(usize::MAX);
        Ok(rows.saturating_mul(head.columns.len() + 1))
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.at_ns.is_empty()
    }

    /// Rows times columns, the instant among them.
    pub fn cells(&self) -> usize {
        self.len().saturating_mul(self.columns.len() + 1)
    }

    /// Keeps every `factor`-th row and the last one.
    #[must_use]
    pub fn thinned(&self, factor: usize) -> Self {
        let rows = self.len();
        let keep = |values: &[u64]| {
            values
                .iter()
                .enumerate()
                .filter(|(row, _)| row % factor.max(1) == 0 || row + 1 == rows)
                .map(|(_, value)| *value)
                .collect()
        };
        Self {
            at_ns: keep(&self.at_ns),
            columns: self
                .columns
                .iter()
                .map(|(name, values)| (name.clone(), keep(values)))
                .collect(),
        }
    }
}

/// Last minus first value of a counter; `None` where it has fewer than two rows.
pub fn grown(values: &[u64]) -> Option<u64> {
    match values {
        [first, .., last] => Some(last.wrapping_sub(*first)),
        _ => None,
    }
}

/// What is looked at before the rest is believed.
#[derive(Deserialize)]
#[expect(
    clippy::zero_sized_map_values,
    reason = "serde skips a map's values, not a set's"
)]
struct Head {
    rows: u64,
    #[serde(default)]
    columns: BTreeMap<PlainText, serde::de::IgnoredAny>,
}

/// A step from one row to the next, or a run of equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Step {
    One(i64),
    Run(i64, u64),
}

/// A column as it stands in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Differences {
    first: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Step>,
}

/// A series as it stands in a record.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Encoded {
    rows: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_ns: Option<Differences>,
    #[serde(default)]
    columns: BTreeMap<PlainText, Differences>,
}

impl Differences {
    fn encode(values: &[u64]) -> Option<Self> {
        let (&first, _) = values.split_first()?;
        let mut steps = Vec::new();
        let mut run: Option<(i64, u64)> = None;
        for pair in values.windows(2) {
            let step = pair[1].wrapping_sub(pair[0]).cast_signed();
            run = match run {
                Some((same, count)) if same == step => Some((same, count + 1)),
                other => {
                    push_run(&mut steps, other);
                    Some((step, 1))
                }
            };
        }
        push_run(&mut steps, run);
        Some(Self { first, steps })
    }

    fn decode(&self, name: &str, rows: usize) -> Result<Vec<u64>, SeriesError> {
        let said = self.steps.iter().fold(1_u64, |sum, step| {
            sum.saturating_add(match step {
                Step::One(_) => 1,
                Step::Run(_, count) => *count,
            })
        });
        if said != rows as u64 {
            let found = usize::try_from(said).unwrap_or(usize::MAX);
            return Err(SeriesError::Length {
                name: name.into(),
                found,
                rows,
            });
        }
        let mut values = Vec::with_capacity(rows);
        let mut value = self.first;
        values.push(value);
        for step in &self.steps {
            let (difference, count) = match *step {
                Step::One(difference) => (difference, 1),
                Step::Run(difference, count) => (difference, count),
            };
            for _ in 0..count {
                value = value.wrapping_add_signed(difference);
                values.push(value);
            }
        }
        Ok(values)
    }
}

/// A run is worth its brackets from three equal steps on.
fn push_run(steps: &mut Vec<Step>, run: Option<(i64, u64)>) {
    match run {
        Some((step, count)) if count >= 3 => steps.push(Step::Run(step, count)),
        Some((step, count)) => steps.extend((0..count).map(|_| Step::One(step))),
        None => {}
    }
}

impl From<Series> for Encoded {
    fn from(series: Series) -> Self {
        let columns = series
            .columns
            .iter()
            .filter_map(|(name, values)| Some((name.clone(), Differences::encode(values)?)));
        Self {
            rows: series.len() as u64,
            at_ns: Differences::encode(&series.at_ns),
            columns: columns.collect(),
        }
    }
}

impl TryFrom<Encoded> for Series {
    type Error = SeriesError;

    fn try_from(encoded: Encoded) -> Result<Self, SeriesError> {
        let too_large = || SeriesError::TooLarge {
            rows: encoded.rows,
            columns: encoded.columns.len(),
        };
        let rows = usize::try_from(encoded.rows).map_err(|_| too_large())?;
        let columns = encoded.columns.len();
        if rows > MAX_ROWS || columns > MAX_COLUMNS || rows.saturating_mul(columns + 1) > MAX_CELLS
        {
            return Err(too_large());
        }
        let at_ns = match &encoded.at_ns {
            Some(differences) => differences.decode("at_ns", rows)?,
            None if rows == 0 => Vec::new(),
            None => {
                return Err(SeriesError::Length {
                    name: "at_ns".into(),
                    found: 0,
                    rows,
                });
            }
        };
        let mut series = Self::new(at_ns);
        for (name, differences) in &encoded.columns {
            series.insert(name.clone(), differences.decode(name, rows)?)?;
        }
        Ok(series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_by_keeping_every_second_sample() {
        let mut rows: Vec<u64> = (0..7).collect();
        every_second(&mut rows);
        assert_eq!(rows, [0, 2, 4, 6]);
    }
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_gives_back_every_value(values in proptest::collection::vec(any::<u64>(), 1..60), flat in 0_usize..40) {
            let mut all = values;
            let last = all.last().copied().unwrap_or(7);
            all.extend(std::iter::repeat_n(last, flat));
            let mut series = Series::new(all.clone());
            series.insert("x", all).unwrap();
            let text = serde_json::to_string(&series).unwrap();
            prop_assert_eq!(serde_json::from_str::<Series>(&text).unwrap(), series);
        }
    }

    #[test]
    fn a_flat_column_costs_one_run() {
        let mut series = Series::new((0..1000).map(|row| row * 10_000_000).collect());
        series.insert("flat", vec![5; 1000]).unwrap();
        let text = serde_json::to_string(&series).unwrap();
        assert_eq!(
            text,
            r#"{"rows":1000,"at_ns":{"first":0,"steps":[[10000000,999]]},"columns":{"flat":{"first":5,"steps":[[0,999]]}}}"#
        );
    }

    #[test]
    fn a_run_that_would_fill_the_memory_is_refused() {
        for text in [
            r#"{"rows":18446744073709551615,"at_ns":{"first":0,"steps":[[1,18446744073709551614]]}}"#,
            r#"{"rows":3,"at_ns":{"first":0,"steps":[[1,18446744073709551614]]}}"#,
            r#"{"rows":3}"#,
            r#"{"rows":2,"at_ns":{"first":0,"steps":[1]},"columns":{"a":{"first":1}}}"#,
        ] {
            assert!(serde_json::from_str::<Series>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn columns_are_bounded() {
        let of = |count: usize| {
            let columns: Vec<String> = (0..count)
                .map(|at| format!(r#""{at}":{{"first":0}}"#))
                .collect();
            let text = format!(
                r#"{{"rows":1,"at_ns":{{"first":0}},"columns":{{{}}}}}"#,
                columns.join(",")
            );
            serde_json::from_str::<Series>(&text).map(|_| ())
        };
        assert!(of(MAX_COLUMNS).is_ok());
        let error = of(MAX_COLUMNS + 1).unwrap_err().to_string();
        assert!(
            error.contains("16385 columns") && error.contains("16384 columns"),
            "{error}"
        );
    }

    #[test]
    fn thinning_keeps_the_last_row() {
        let series = Series::new((0..10).collect());
        assert_eq!(series.thinned(4).at_ns(), &[0, 4, 8, 9]);
    }
}
