//! Where a stream's thread keeps its samples: flat rows in chunks, so that keeping one never copies
//! the ones before, and within its share of the [`SamplePool`]: when that is used up, every second row goes and the
//! time between two samples doubles.

use std::borrow::{Borrow, Cow};
use std::sync::Arc;

use linerate_model::plain_text::PlainText;
use linerate_model::series::{MAX_ROWS, Series};
use linerate_model::units::Nanos;

use crate::sample_pool::{SamplePool, Share};

/// Rows in a chunk.
pub(crate) const CHUNK_ROWS: usize = 64;

/// Rows of one stream, or of a host.
#[derive(Debug)]
pub(crate) struct SampleStore {
    names: Vec<Cow<'static, str>>,
    chunks: Vec<Vec<u64>>,
    rows: usize,
    /// Between two samples, as asked for.
    asked: Nanos,
    next: Nanos,
    thinned: u32,
    share: Share,
}

impl SampleStore {
    /// A store within a pool. `names` are the columns beside the instant.
    pub(crate) fn new<N: Into<Cow<'static, str>>>(
        names: Vec<N>,
        every: Nanos,
        pool: &Arc<SamplePool>,
    ) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            chunks: Vec::new(),
            rows: 0,
            asked: every,
            next: Nanos::ZERO,
            thinned: 1,
            share: pool.share(every),
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
        self.thinned = self.thinned.max(self.share.stretch());
        let every = self.asked.0.saturating_mul(u64::from(self.thinned)).max(1);
        let behind = now.since(self.next).0 / every;
        self.next = self.next.plus(Nanos(every.saturating_mul(behind + 1)));
    }

    /// Keeps a row; `values` are in the order of the names.
    pub(crate) fn push(&mut self, at: Nanos, values: impl IntoIterator<Item = u64>) {
        let width = self.width();
        if self.rows >= MAX_ROWS || !self.has_room() {
            self.thin();
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

    /// 1 = every sample was kept, and taken when it was due; n = one in n.
    pub(crate) const fn thinned(&self) -> u32 {
        self.thinned
    }

    /// The names of the columns beside the instant.
    pub(crate) fn names(&self) -> &[Cow<'static, str>] {
        &self.names
    }

    /// All rows as columns.
    pub(crate) fn series(&self) -> Series {
        Columns::of(self.width(), self.rows, &self.chunks)
            .finish(self.names.iter().map(AsRef::as_ref))
    }

    /// All rows as columns, and the share that they still take. One chunk after the other goes, so that the rows
    /// hardly stand twice.
    pub(crate) fn into_series(self) -> (Series, Share) {
        let columns = Columns::of(self.width(), self.rows, self.chunks);
        let series = columns.finish(self.names.iter().map(AsRef::as_ref));
        (series, self.share)
    }

    fn width(&self) -> usize {
        self.names.len() + 1
    }

    /// Whether a row fits, into the last chunk or into a new one that the pool grants.
    fn has_room(&mut self) -> bool {
        let full = CHUNK_ROWS * self.width();
        if self.chunks.last().is_some_and(|chunk| chunk.len() < full) {
            return true;
        }
        let granted = self.share.grow(full * size_of::<u64>());
        if granted {
            self.chunks.push(Vec::with_capacity(full));
        }
        granted
    }

    /// Keeps every second row. What is left of a store with anything in it has room for a row in its last chunk.
    fn thin(&mut self) {
        let width = self.width();
        let full = CHUNK_ROWS * width;
        let before = self.chunks.len();
        let (mut chunks, mut seen): (Vec<Vec<u64>>, usize) = (Vec::new(), 0);
        for chunk in std::mem::take(&mut self.chunks) {
            for row in chunk.chunks_exact(width) {
                if seen.is_multiple_of(2) {
                    if chunks.last().is_none_or(|chunk| chunk.len() >= full) {
                        chunks.push(Vec::with_capacity(full));
                    }
                    if let Some(chunk) = chunks.last_mut() {
                        chunk.extend_from_slice(row);
                    }
                }
                seen += 1;
            }
        }
        if chunks.last().is_some_and(|chunk| chunk.len() >= full) {
            chunks.push(Vec::with_capacity(full));
        }
        self.share
            .shrink(before.saturating_sub(chunks.len()) * full * size_of::<u64>());
        self.rows = seen.div_ceil(2);
        self.chunks = chunks;
        self.thinned = self.thinned.saturating_mul(2);
    }
}

/// Columns that are made of rows: the instant's first.
pub(crate) struct Columns(Vec<Vec<u64>>);

impl Columns {
    /// Those of so many rows in chunks; each chunk that is given away goes as soon as it was read.
    pub(crate) fn of(
        width: usize,
        rows: usize,
        chunks: impl IntoIterator<Item = impl Borrow<Vec<u64>>>,
    ) -> Self {
        let mut columns: Vec<Vec<u64>> = (0..width).map(|_| Vec::with_capacity(rows)).collect();
        for chunk in chunks {
            for row in chunk.borrow().chunks_exact(width) {
                for (column, value) in columns.iter_mut().zip(row) {
                    column.push(*value);
                }
            }
        }
        Self(columns)
    }

    /// With the names of the columns beside the instant.
    pub(crate) fn finish(self, names: impl Iterator<Item = impl Into<PlainText>>) -> Series {
        let mut columns = self.0.into_iter();
        let mut series = Series::new(columns.next().unwrap_or_default());
        for (name, column) in names.zip(columns) {
            let inserted = series.insert(name, column);
            debug_assert!(inserted.is_ok(), "every column has a value a row");
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(bytes: usize) -> Arc<SamplePool> {
        SamplePool::new(bytes, u64::MAX)
    }

    #[test]
    fn rows_become_columns() {
        let mut store = SampleStore::new(vec!["a", "b"], Nanos(10), &pool(1 << 20));
        for row in 0..1000 {
            store.push(Nanos(row), [row * 2, row * 3]);
        }
        let (series, _) = store.into_series();
        assert_eq!(series.len(), 1000);
        assert_eq!(series.named("b").unwrap()[999], 2997);
    }

    #[test]
    fn a_full_store_keeps_every_second_row_and_says_so() {
        let pool = pool(4 * CHUNK_ROWS * 16);
        let mut store = SampleStore::new(vec!["a"], Nanos(10), &pool);
        for row in 0..=4 * CHUNK_ROWS as u64 {
            store.push(Nanos(row), [row]);
        }
        assert_eq!(store.thinned(), 2);
        assert!(pool.bytes() <= 4 * CHUNK_ROWS * 16, "{}", pool.bytes());
        store.begin(Nanos(100));
        store.advance(Nanos(100));
        assert_eq!(store.next(), Nanos(120), "and samples half as often");
        let (series, share) = store.into_series();
        assert_eq!(series.len(), 2 * CHUNK_ROWS + 1);
        assert_eq!(series.at_ns()[1], 2);
        assert!(pool.bytes() > 0);
        drop(share);
        assert_eq!(pool.bytes(), 0);
    }

    #[test]
    fn a_store_with_one_chunk_goes_on() {
        let pool = pool(1);
        let mut store = SampleStore::new(vec!["a"], Nanos(10), &pool);
        for row in 0..10_000 {
            store.push(Nanos(row), [row]);
        }
        let at: Vec<u64> = store.into_series().0.at_ns().to_vec();
        assert!(at.len() <= CHUNK_ROWS && at.len() >= CHUNK_ROWS / 2);
        assert_eq!((at[0], *at.last().unwrap()), (0, 9999));
    }

    #[test]
    fn many_stores_sample_less_often() {
        let pool = SamplePool::new(1 << 20, 1_500);
        let every = Nanos::from_millis(1);
        let mut stores: Vec<SampleStore> = (0..4)
            .map(|_| SampleStore::new(Vec::<&str>::new(), every, &pool))
            .collect();
        stores[0].advance(Nanos::ZERO);
        assert_eq!(stores[0].next(), Nanos::from_millis(4));
        assert_eq!(stores[0].thinned(), 4);
    }

    #[test]
    fn a_late_sample_does_not_shift_the_grid() {
        let mut store = SampleStore::new(Vec::<&str>::new(), Nanos(10), &pool(1));
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
