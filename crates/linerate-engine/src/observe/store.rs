//! The samples of one watched connection, kept so that resting costs nothing and memory is bounded.
//!
//! A sample in which nothing changed is not kept, except the last one before the next change: a curve between two
//! kept samples is then flat where nothing moved. When all stores together are full, the largest keeps every
//! second of its samples and takes new ones half as often.

use linerate_model::column::Column;
use linerate_model::series::Series;
use linerate_model::units::Nanos;

use crate::samples::Columns;

/// Rows in a chunk.
const CHUNK_ROWS: usize = 256;

/// Samples of one connection.
#[derive(Debug)]
pub(super) struct Store {
    columns: Vec<Column>,
    chunks: Vec<Vec<u64>>,
    rows: usize,
    /// The latest sample, where it is not kept yet.
    held: Option<Held>,
    every: Nanos,
    thinned: u32,
}

#[derive(Debug)]
struct Held {
    row: Vec<u64>,
    /// As the last kept one, but for its instant.
    same: bool,
}

impl Store {
    /// A store for these columns, sampled at this cadence.
    pub(super) fn new(columns: Vec<Column>, every: Nanos) -> Self {
        Self {
            columns,
            chunks: Vec::new(),
            rows: 0,
            held: None,
            every,
            thinned: 1,
        }
    }

    /// Takes a sample; `values` are in the order of the columns.
    pub(super) fn push(&mut self, at: Nanos, values: &[u64]) {
        debug_assert_eq!(values.len(), self.columns.len(), "a value a column");
        let row = || {
            let mut row = Vec::with_capacity(values.len() + 1);
            row.push(at.0);
            row.extend_from_slice(values);
            row
        };
        let Some(last) = self.last() else {
            self.keep(&row());
            return;
        };
        let since = Nanos(at.0.saturating_sub(last[0]));
        if last[1..] == *values && self.held.as_ref().is_none_or(|held| held.same) {
            self.held = Some(Held {
                row: row(),
                same: true,
            });
            return;
        }
        if let Some(Held { row, same: true }) = self.held.take() {
            self.keep(&row);
        }
        // Samples come a little early or late: a quarter of the cadence is none.
        if since.0 >= self.every.0 - self.every.0 / 4 {
            self.held = None;
            self.keep(&row());
        } else {
            self.held = Some(Held {
                row: row(),
                same: false,
            });
        }
    }

    /// The latest sample with its instant first.
    pub(super) fn latest(&self) -> Option<&[u64]> {
        self.held
            .as_ref()
            .map(|held| held.row.as_slice())
            .or_else(|| self.last())
    }

    /// The latest value of a column.
    pub(super) fn value(&self, column: Column) -> Option<u64> {
        let column = self.columns.iter().position(|each| *each == column)?;
        self.latest()?.get(column + 1).copied()
    }

    /// Numbers that it keeps.
    pub(super) fn cells(&self) -> usize {
        self.rows * self.width()
    }

    /// Keeps every second row, and takes new ones half as often.
    pub(super) fn thin(&mut self) {
        let width = self.width();
        let old = std::mem::take(&mut self.chunks);
        self.rows = 0;
        for row in old
            .iter()
            .flat_map(|chunk| chunk.chunks_exact(width))
            .step_by(2)
        {
            self.keep(row);
        }
        self.every = Nanos(self.every.0.saturating_mul(2));
        self.thinned = self.thinned.saturating_mul(2);
    }

    /// 1 = every sample with a change was kept.
    pub(super) const fn thinned(&self) -> u32 {
        self.thinned
    }

    /// All rows as columns, the latest sample included.
    pub(super) fn into_series(mut self) -> Series {
        if let Some(held) = self.held.take() {
            self.keep(&held.row);
        }
        let columns = Columns::of(self.width(), self.rows, self.chunks);
        columns.finish(self.columns.iter().copied())
    }

    fn width(&self) -> usize {
        self.columns.len() + 1
    }

    fn last(&self) -> Option<&[u64]> {
        self.chunks.last()?.chunks_exact(self.width()).next_back()
    }

    fn keep(&mut self, row: &[u64]) {
        let full = CHUNK_ROWS * row.len();
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < full => chunk.extend_from_slice(row),
            // The first chunk grows as it must: most connections rest.
            None => self.chunks.push(row.to_vec()),
            Some(_) => {
                let mut chunk = Vec::with_capacity(full);
                chunk.extend_from_slice(row);
                self.chunks.push(chunk);
            }
        }
        self.rows += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Nanos = Nanos(10);

    fn store() -> Store {
        Store::new(vec![Column::bytes_acked, Column::bytes_received], EVERY)
    }

    #[test]
    fn resting_costs_two_rows_and_keeps_the_curve_flat() {
        let mut store = store();
        for at in 0..100 {
            store.push(Nanos(at * 10), &[5, 6]);
        }
        assert_eq!(store.rows, 1);
        assert_eq!(store.latest(), Some([990, 5, 6].as_slice()));
        store.push(Nanos(1000), &[7, 6]);
        assert_eq!(store.value(Column::bytes_acked), Some(7));
        let series = store.into_series();
        assert_eq!(series.at_ns(), &[0, 990, 1000]);
        assert_eq!(
            series.column(Column::bytes_acked),
            Some([5, 5, 7].as_slice())
        );
    }

    #[test]
    fn thinning_halves_what_was_kept_and_what_comes() {
        let mut store = store();
        for at in 0..1000 {
            store.push(Nanos(at * 10), &[at, 0]);
        }
        assert_eq!((store.rows, store.cells()), (1000, 3000));
        store.thin();
        assert_eq!((store.rows, store.thinned()), (500, 2));
        for at in 1000..1100 {
            store.push(Nanos(at * 10), &[at, 0]);
        }
        assert_eq!(store.rows, 550);
        assert_eq!(store.value(Column::bytes_acked), Some(1099));
        let series = store.into_series();
        assert!(series.at_ns().windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(series.last(Column::bytes_acked), Some(1099));
    }

    #[test]
    fn a_single_sample_is_a_series() {
        let mut store = store();
        store.push(Nanos(3), &[1, 2]);
        assert_eq!(store.into_series().len(), 1);
    }
}
