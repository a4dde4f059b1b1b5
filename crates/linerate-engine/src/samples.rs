//! Where a stream's thread keeps its samples: flat rows in chunks, so that keeping one never copies
//! the ones before, and with a bound: when it is full, every second row goes and the cadence halves.

use linerate_model::series::{MAX_ROWS, Series};
use linerate_model::units::Nanos;

/// Memory for the samples of all streams of a test at one end.
const BUDGET_BYTES: usize = 192 << 20;
/// Rows in a chunk.
const CHUNK_ROWS: usize = 256;

/// Rows of one stream.
#[derive(Debug)]
pub(crate) struct SampleStore {
    names: Vec<&'static str>,
    chunks: Vec<Vec<u64>>,
    rows: usize,
    most_rows: usize,
    every: Nanos,
    next: Nanos,
    thinned: u32,
}

impl SampleStore {
    /// A store for a stream of a test with `streams` streams at this end. `names` are the columns
    /// beside the instant.
    pub(crate) fn new(names: Vec<&'static str>, every: Nanos, streams: usize) -> Self {
        let row_bytes = (names.len() + 1) * size_of::<u64>();
        let most_rows = (BUDGET_BYTES / streams.max(1) / row_bytes).clamp(CHUNK_ROWS, MAX_ROWS);
        Self {
            names,
            chunks: Vec::new(),
            rows: 0,
            most_rows,
            every,
            next: Nanos::ZERO,
            thinned: 1,
        }
    }

    /// Begins the cadence at `start`, where the first sample is due: before the first byte.
    pub(crate) fn begin(&mut self, start: Nanos) {
        self.next = start;
    }

    /// When the next sample is due.
    pub(crate) const fn next(&self) -> Nanos {
        self.next
    }

    /// Sets the next instant on the grid after `now`: a late sample does not shift those after it.
    pub(crate) fn advance(&mut self, now: Nanos) {
        let behind = now.since(self.next).0 / self.every.0.max(1);
        self.next = self
            .next
            .plus(Nanos(self.every.0.saturating_mul(behind + 1)));
    }

    /// Keeps a row; `values` are in the order of the names.
    pub(crate) fn push(&mut self, at: Nanos, values: impl IntoIterator<Item = u64>) {
        let width = self.names.len() + 1;
        if self.rows == self.most_rows {
            self.thin();
        }
        if self
            .chunks
            .last()
            .is_none_or(|chunk| chunk.len() >= CHUNK_ROWS * width)
        {
            self.chunks.push(Vec::with_capacity(CHUNK_ROWS * width));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(at.0);
            chunk.extend(values);
            debug_assert_eq!(
                chunk.len() % width,
                0,
                "a row has another width than its names"
            );
            self.rows += 1;
        }
    }

    /// 1 = every sample was kept.
    pub(crate) const fn thinned(&self) -> u32 {
        self.thinned
    }

    /// All rows as columns.
    pub(crate) fn into_series(self) -> Series {
        let width = self.names.len() + 1;
        let column = |of: usize| -> Vec<u64> {
            self.chunks
                .iter()
                .flat_map(|chunk| chunk.chunks_exact(width).map(move |row| row[of]))
                .collect()
        };
        let mut series = Series::new(column(0));
        for (index, name) in self.names.iter().enumerate() {
            let inserted = series.insert(*name, column(index + 1));
            debug_assert!(inserted.is_ok(), "every column has a value a row");
        }
        series
    }

    fn thin(&mut self) {
        let width = self.names.len() + 1;
        let mut kept = 0;
        let mut chunks: Vec<Vec<u64>> = Vec::new();
        for row in self
            .chunks
            .iter()
            .flat_map(|chunk| chunk.chunks_exact(width))
            .step_by(2)
        {
            if chunks
                .last()
                .is_none_or(|chunk| chunk.len() >= CHUNK_ROWS * width)
            {
                chunks.push(Vec::with_capacity(CHUNK_ROWS * width));
            }
            if let Some(chunk) = chunks.last_mut() {
                chunk.extend_from_slice(row);
            }
            kept += 1;
        }
        self.chunks = chunks;
        self.rows = kept;
        self.every = Nanos(self.every.0.saturating_mul(2));
        self.thinned = self.thinned.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let mut store = SampleStore::new(vec!["a", "b"], Nanos(10), 1);
        for row in 0..1000 {
            store.push(Nanos(row), [row * 2, row * 3]);
        }
        let series = store.into_series();
        assert_eq!(series.len(), 1000);
        assert_eq!(series.column("b").unwrap()[999], 2997);
    }

    #[test]
    fn a_full_store_thins_and_says_so() {
        let mut store = SampleStore::new(vec!["a"], Nanos(10), 1 << 20);
        assert_eq!(store.most_rows, CHUNK_ROWS);
        for row in 0..=CHUNK_ROWS as u64 {
            store.push(Nanos(row), [row]);
        }
        assert_eq!((store.thinned(), store.every), (2, Nanos(20)));
        let series = store.into_series();
        assert_eq!(series.len(), CHUNK_ROWS / 2 + 1);
        assert_eq!(series.at_ns()[1], 2);
    }

    #[test]
    fn a_late_sample_does_not_shift_the_grid() {
        let mut store = SampleStore::new(vec![], Nanos(10), 1);
        store.begin(Nanos(100));
        assert_eq!(store.next(), Nanos(100));
        store.advance(Nanos(101));
        assert_eq!(store.next(), Nanos(110));
        store.advance(Nanos(137));
        assert_eq!(store.next(), Nanos(140));
        store.advance(Nanos(140));
        assert_eq!(store.next(), Nanos(150));
    }
}
