//! Collecting how long datagrams were on their way, in memory that does not grow with their number or the time.

use linerate_model::transit::{
    MOST_BUCKETS, MOST_ENTRIES, TransitSlice, Transits, bucket_above, lowest, middle,
};
use linerate_model::units::Nanos;

/// Slices and histogram entries of all streams of a test at one end.
const ALL_SLICES: usize = 256;
const ALL_ENTRIES: usize = MOST_ENTRIES;
/// Slices that a stream may have, however many streams there are: with very many of them fewer stay, because of their entries.
const LEAST_SLICES: usize = 8;
/// The shortest slice, and what one lasts in a longer test as long as there is room: a drift of 50 ppm moves it by 50 µs.
const SHORTEST: Nanos = Nanos::from_millis(100);
const SECOND: Nanos = Nanos::from_millis(1000);
/// Slices of a short test.
const SHORT_TEST_SLICES: u64 = 64;
/// How far below the lowest value a base is put that was too high, the first time; then twice as far.
const MARGIN_NS: u64 = 16_000;
/// Differences that are looked at together.
const TOGETHER: usize = 256;

/// Bytes that a collector holds at most, where its test has so many streams at this end.
pub const fn bytes(streams: usize) -> usize {
    let open = 16 * TOGETHER + 8 * MOST_BUCKETS;
    // Twice: neighbours are merged into new ones.
    open + 2 * 16 * (most_entries(streams) + MOST_BUCKETS)
}

const fn most_entries(streams: usize) -> usize {
    ALL_ENTRIES / if streams == 0 { 1 } else { streams }
}

/// What the datagrams of one stream take. A datagram costs a few nanoseconds.
#[derive(Debug)]
pub struct TransitCollector {
    done: Transits,
    most_slices: usize,
    most_entries: usize,
    span: Nanos,
    open: Option<Open>,
    /// Differences of the open slice that are not in its histogram yet, with their datagrams.
    recent: Vec<(i64, u64)>,
    /// The open slice's histogram.
    counts: Vec<u64>,
}

/// The slice that datagrams come into.
#[derive(Debug)]
struct Open {
    from: Nanos,
    to: Nanos,
    /// What the histogram and its figures are above of; absent = it is empty.
    base: Option<i64>,
    /// The lowest difference: the base, or above it.
    least: i64,
    /// How often a base was too high.
    lowered: u32,
    most_above: u64,
    sum_above: u128,
    count: u64,
}

impl TransitCollector {
    /// For a stream of a test that lasts so long (`None` = nobody knows), with so many streams at this end.
    pub fn new(lasts: Option<Nanos>, streams: usize) -> Self {
        let most_slices = (ALL_SLICES / streams.max(1)).max(LEAST_SLICES);
        let lasts = lasts.unwrap_or_default().0;
        let even = (lasts / SHORT_TEST_SLICES).clamp(SHORTEST.0, SECOND.0);
        Self {
            done: Transits::default(),
            most_slices,
            most_entries: most_entries(streams),
            span: Nanos(even.max(lasts / most_slices as u64)),
            open: None,
            recent: Vec::with_capacity(TOGETHER),
            counts: Vec::new(),
        }
    }

    /// So many datagrams that say they were sent at `sent`, on the sender's clock, arrived at `arrived`, on ours.
    #[inline]
    pub fn record(&mut self, sent: Nanos, arrived: Nanos, datagrams: u64) {
        let fits = self
            .open
            .as_mut()
            .filter(|open| arrived.since(open.from) < self.span);
        if let Some(open) = fits {
            open.to = arrived;
        } else {
            self.begin(arrived);
        }
        let difference = arrived.0.wrapping_sub(sent.0).cast_signed();
        self.recent.push((difference, datagrams));
        if self.recent.len() == TOGETHER {
            self.count_recent();
        }
    }

    /// All that came so far is not counted any more, but for its number.
    pub fn omit(&mut self) {
        self.close();
        self.done.omitted += self.done.count();
        self.done.slices.clear();
    }

    /// What was collected.
    pub fn finish(mut self) -> Transits {
        self.close();
        self.done
    }

    fn begin(&mut self, arrived: Nanos) {
        self.close();
        self.open = Some(Open {
            from: arrived,
            to: arrived,
            base: None,
            least: i64::MAX,
            lowered: 0,
            most_above: 0,
            sum_above: 0,
            count: 0,
        });
    }

    fn count_recent(&mut self) {
        let (Some(open), Some(lowest)) = (
            &mut self.open,
            self.recent.iter().map(|(difference, _)| *difference).min(),
        ) else {
            return;
        };
        open.least = open.least.min(lowest);
        let base = match open.base {
            Some(base) if lowest >= base => base,
            Some(base) => open.lower(base, lowest, &mut self.counts),
            None => lowest,
        };
        open.base = Some(base);
        for (difference, datagrams) in self.recent.drain(..) {
            let above = difference.abs_diff(base);
            open.most_above = open.most_above.max(above);
            open.sum_above += u128::from(above) * u128::from(datagrams);
            open.count += datagrams;
            add(&mut self.counts, bucket_above(above), datagrams);
        }
    }

    fn close(&mut self) {
        self.count_recent();
        let Some((open, base)) = self.open.take().and_then(|open| {
            let base = open.base?;
            Some((open, base))
        }) else {
            return;
        };
        let too_low = open.least.abs_diff(base);
        if too_low > 0 {
            move_all(&mut self.counts, |at| {
                middle(at).min(open.most_above).saturating_sub(too_low)
            });
        }
        let sum = u128::from(too_low) * u128::from(open.count);
        let sum = open.sum_above.saturating_sub(sum);
        let counts = self.counts.drain(..).enumerate();
        let above = counts.filter(|(_, count)| *count > 0);
        self.done.slices.push(TransitSlice {
            from_ns: open.from,
            to_ns: open.to,
            least_ns: open.least,
            most_above_ns: open.most_above.saturating_sub(too_low),
            sum_above_ns: u64::try_from(sum).unwrap_or(u64::MAX),
            above: above.map(|(at, count)| [lowest(at), count]).collect(),
        });
        while self.done.slices.len() > self.most_slices
            || (self.done.slices.len() > 1 && self.done.entries() > self.most_entries)
        {
            self.done = self.done.merged(2);
            self.span = Nanos(self.span.0.saturating_mul(2));
        }
    }
}

impl Open {
    /// A base that is low enough for a value below the last one. Where delays fall all the time, as in a queue that empties,
    /// it goes further and further below, so that values are moved seldom, and by much more than a bucket.
    fn lower(&mut self, base: i64, lowest: i64, counts: &mut Vec<u64>) -> i64 {
        let margin = MARGIN_NS << self.lowered.min(32);
        let margin = i64::try_from(margin.min(self.most_above / 4)).unwrap_or(0);
        let lower = lowest.saturating_sub(margin);
        let by = base.abs_diff(lower);
        move_all(counts, |at| {
            middle(at).min(self.most_above).saturating_add(by)
        });
        self.lowered += 1;
        self.most_above = self.most_above.saturating_add(by);
        self.sum_above += u128::from(by) * u128::from(self.count);
        lower
    }
}

/// Gives each bucket's datagrams another value.
fn move_all(counts: &mut Vec<u64>, to: impl Fn(usize) -> u64) {
    let before = std::mem::take(counts);
    for (at, count) in before.into_iter().enumerate() {
        if count > 0 {
            add(counts, bucket_above(to(at)), count);
        }
    }
}

fn add(counts: &mut Vec<u64>, at: usize, count: u64) {
    if at >= counts.len() {
        counts.resize(at + 1, 0);
    }
    counts[at] += count;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECONDS: fn(u64) -> Nanos = |seconds| Nanos(seconds * 1_000_000_000);

    #[test]
    fn every_datagram_is_in_a_slice_or_was_omitted() {
        let mut collector = TransitCollector::new(Some(SECONDS(10)), 1);
        for n in 0..1000 {
            collector.record(Nanos(n), Nanos(n * 1_000_000), 3);
        }
        collector.omit();
        for n in 1000..5000_u64 {
            collector.record(
                Nanos(n * 1_000_000),
                Nanos(n * 1_000_000 + 40_000 + n % 7),
                2,
            );
        }
        let transits = collector.finish();
        assert_eq!((transits.omitted, transits.count()), (3000, 8000));
        assert!((20..=64).contains(&transits.slices.len()));
        assert!(transits.slices.iter().all(|slice| slice.least_ns == 40_000));
        let [first, .., last] = &transits.slices[..] else {
            panic!("one slice")
        };
        assert_eq!(first.from_ns.0 / 1_000_000, 1000);
        assert_eq!(last.to_ns.0 / 1_000_000, 4999);
        let none = TransitCollector::new(None, 1).finish();
        assert_eq!(none, Transits::default());
    }

    #[test]
    fn a_queue_that_empties_is_measured_to_a_hundredth() {
        // The delay falls from 80 ms to 1 ms within a slice: each datagram is the fastest so far.
        let mut collector = TransitCollector::new(Some(SECONDS(64)), 1);
        let sent = |n: u64| 5_000_000_000 + n * 10_000;
        let delay = |n: u64| 80_000_000 - n * 1000;
        for n in 0..79_000 {
            collector.record(Nanos(sent(n)), Nanos(sent(n) + delay(n)), 1);
        }
        let transits = collector.finish();
        let slice = &transits.slices[0];
        assert_eq!(
            slice.most_above_ns + slice.least_ns.unsigned_abs(),
            80_000_000
        );
        let half = slice.count() / 2;
        let mut below = 0;
        let median = slice.values().find(|(_, count)| {
            below += count;
            below >= half
        });
        let found = median.unwrap().0 as f64 + slice.least_ns as f64;
        let exact = f64::midpoint(80e6, slice.least_ns as f64);
        assert!((found / exact - 1.0).abs() < 0.01, "{found} {exact}");
        let mean = slice.sum_above_ns as f64 / slice.count() as f64 + slice.least_ns as f64;
        assert!((mean / exact - 1.0).abs() < 0.001, "{mean} {exact}");
    }

    #[test]
    fn an_endless_test_of_many_streams_takes_no_more_memory() {
        let mut collector = TransitCollector::new(None, 128);
        for n in 0..200_000_u64 {
            let scattered = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            collector.record(Nanos(scattered >> 20), Nanos(n * 90_000_000), 1);
        }
        let transits = collector.finish();
        assert_eq!(transits.count(), 200_000);
        assert!(transits.slices.len() <= LEAST_SLICES);
        assert!(transits.entries() <= most_entries(128).max(MOST_BUCKETS));
    }

    proptest! {
        #[test]
        fn whatever_stamps_say_nothing_is_lost(
            stamps in prop::collection::vec((any::<u64>(), any::<u64>(), 1_u64..100), 0..600),
            streams in 1_usize..300,
        ) {
            let mut collector = TransitCollector::new(Some(Nanos(1)), streams);
            let all: u64 = stamps.iter().map(|(_, _, count)| count).sum();
            for (sent, arrived, count) in stamps {
                collector.record(Nanos(sent), Nanos(arrived), count);
            }
            prop_assert_eq!(collector.finish().count(), all);
        }
    }
}
