//! Rates between two readings of a device's counters.

use linerate_model::disk_watch::{DiskTotals, RequestTotals, WatchedDevice};
use linerate_model::units::Nanos;
use serde::Serialize;

/// A busy time may exceed what is possible by this share of the queue …
const NEAR: f64 = 0.02;
/// … and by this time, ms: both counters are rounded, older kernels to jiffies of up to 10 ms.
const ROUNDING_MS: f64 = 10.0;

/// What a device did in some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DiskRates {
    /// How long it was, ns.
    pub span_ns: Nanos,
    /// Reads.
    pub read: RequestRates,
    /// Writes.
    pub write: RequestRates,
    /// Discards; absent where the kernel does not count them.
    pub discard: Option<RequestRates>,
    /// Flushes a second; absent where the kernel does not count them.
    pub flushes_per_s: Option<f64>,
    /// How long a flush took on average, ms; absent where there was none.
    pub flush_await_ms: Option<f64>,
    /// Requests under way on average, those in the scheduler's queue included. From Linux 5.0 on it is the sum of what
    /// requests took, which is booked when they end.
    pub queue: f64,
    /// Requests that were under way at both ends while none ended.
    pub stuck: f64,
    /// How much of the time at least one was.
    pub busy: Busy,
}

/// Requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RequestRates {
    /// Requests that ended, a second.
    pub per_s: f64,
    /// Requests that joined another one, a second.
    pub merged_per_s: f64,
    /// What they moved, byte/s.
    pub bytes_per_s: f64,
    /// How long one took on average, with its time in the scheduler's queue, ms; absent where none ended.
    pub await_ms: Option<f64>,
    /// Mean size of one, bytes; absent where none ended.
    pub mean_bytes: Option<f64>,
}

/// The share of the time with at least one request under way. It does not say how much more a device could do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "is", content = "share", rename_all = "snake_case")]
pub enum Busy {
    /// This share, 0 to 1.
    Share(f64),
    /// At most this: Linux 5.0 to 6.9 count a jiffy for each moment at which requests begin or end, and said more than
    /// requests took together.
    AtMost(f64),
}

impl Busy {
    /// The share, or its upper bound.
    pub const fn share(self) -> f64 {
        match self {
            Self::Share(share) | Self::AtMost(share) => share,
        }
    }

    fn of(busy_ms: f64, weighted_ms: f64, span_ms: f64) -> Self {
        let most = weighted_ms.min(span_ms);
        if busy_ms > most * (1.0 + NEAR) + ROUNDING_MS {
            Self::AtMost((most / span_ms).min(1.0))
        } else {
            Self::Share((busy_ms / span_ms).min(1.0))
        }
    }
}

impl RequestRates {
    fn between(before: RequestTotals, now: RequestTotals, seconds: f64) -> Self {
        let grown = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let ios = grown(now.ios, before.ios);
        let bytes = grown(now.bytes, before.bytes);
        let of_each = |sum: f64| (ios > 0.0).then(|| sum / ios);
        Self {
            per_s: ios / seconds,
            merged_per_s: grown(now.merges, before.merges) / seconds,
            bytes_per_s: bytes / seconds,
            await_ms: of_each(grown(now.ms, before.ms)),
            mean_bytes: of_each(bytes),
        }
    }

    /// The share of the requests that joined another one, 0 to 1; absent where there was none.
    pub fn merged_share(&self) -> Option<f64> {
        let all = self.per_s + self.merged_per_s;
        (all > 0.0).then(|| self.merged_per_s / all)
    }
}

impl DiskRates {
    /// The rates between two readings; `None` where no time passed.
    pub fn between(before: &DiskTotals, now: &DiskTotals, span: Nanos) -> Option<Self> {
        if span == Nanos::ZERO {
            return None;
        }
        let seconds = span.as_secs_f64();
        let grown = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let flush = now.flush.map(|now| (before.flush.unwrap_or_default(), now));
        let weighted_ms = grown(now.weighted_ms, before.weighted_ms);
        let busy_ms = grown(now.busy_ms, before.busy_ms);
        // What is under way at either end is in the busy time and not yet in the sum of what requests took.
        let idle = before.in_flight == 0 && now.in_flight == 0;
        let none_ended = now.done() == before.done();
        let stuck = before.in_flight.min(now.in_flight);
        let stuck = if none_ended { stuck as f64 } else { 0.0 };
        Some(Self {
            span_ns: span,
            read: RequestRates::between(before.read, now.read, seconds),
            write: RequestRates::between(before.write, now.write, seconds),
            discard: now
                .discard
                .map(|now| RequestRates::between(before.discard.unwrap_or_default(), now, seconds)),
            flushes_per_s: flush.map(|(before, now)| grown(now.0, before.0) / seconds),
            flush_await_ms: flush.and_then(|(before, now)| {
                let count = grown(now.0, before.0);
                (count > 0.0).then(|| grown(now.1, before.1) / count)
            }),
            queue: (weighted_ms / (seconds * 1e3)).max(stuck),
            stuck,
            busy: if idle {
                Busy::of(busy_ms, weighted_ms, seconds * 1e3)
            } else {
                Busy::Share((busy_ms / (seconds * 1e3)).min(1.0))
            },
        })
    }

    /// Whether it did something, or has something to do.
    pub fn is_active(&self) -> bool {
        let flushes = self.flushes_per_s.unwrap_or(0.0);
        self.requests_per_s() > 0.0 || self.queue > 0.0 || flushes > 0.0
    }

    /// Over all the time that a device was watched; `None` where the kernel counted nothing.
    pub fn of(watched: &WatchedDevice) -> Option<Self> {
        let at = watched.samples.at_ns();
        Self::during(watched, Nanos(*at.first()?), Nanos(*at.last()?))
    }

    /// Between the first and the last sample of a time; `None` where it has not two.
    pub fn during(watched: &WatchedDevice, from: Nanos, until: Nanos) -> Option<Self> {
        let at = watched.samples.at_ns();
        let first = at.partition_point(|instant| *instant < from.0);
        let last = at
            .partition_point(|instant| *instant <= until.0)
            .checked_sub(1)?;
        let span = Nanos(at.get(last)?.checked_sub(*at.get(first)?)?);
        let rows = DiskTotals::rows(&watched.samples);
        Self::between(rows.get(first)?, rows.get(last)?, span)
    }

    /// Those of each interval between two samples.
    pub fn each(watched: &WatchedDevice) -> impl Iterator<Item = (Nanos, Self)> {
        let at = watched.samples.at_ns();
        let rows = DiskTotals::rows(&watched.samples);
        (1..rows.len()).filter_map(move |row| {
            let span = Nanos(at[row].saturating_sub(at[row - 1]));
            Some((
                Nanos(at[row]),
                Self::between(&rows[row - 1], &rows[row], span)?,
            ))
        })
    }

    /// Requests of all kinds that end, a second.
    pub fn requests_per_s(&self) -> f64 {
        let discards = self.discard.map_or(0.0, |discard| discard.per_s);
        self.read.per_s + self.write.per_s + discards
    }

    /// What reads and writes move, byte/s.
    pub fn bytes_per_s(&self) -> f64 {
        self.read.bytes_per_s + self.write.bytes_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(ios: u64, busy_ms: u64, weighted_ms: u64) -> DiskTotals {
        DiskTotals {
            write: RequestTotals {
                ios,
                merges: ios * 3,
                bytes: ios * 4096,
                ms: weighted_ms,
            },
            busy_ms,
            weighted_ms,
            ..DiskTotals::default()
        }
    }

    #[test]
    fn figures_are_those_of_iostat() {
        let span = Nanos::from_millis(2000);
        let rates = DiskRates::between(&totals(10, 5, 5), &totals(210, 1005, 2405), span).unwrap();
        assert!((rates.write.per_s - 100.0).abs() < 1e-9);
        assert_eq!(rates.write.merged_share(), Some(0.75));
        assert_eq!(rates.write.await_ms, Some(12.0));
        assert_eq!(rates.write.mean_bytes, Some(4096.0));
        assert_eq!((rates.queue, rates.busy), (1.2, Busy::Share(0.5)));
        assert_eq!((rates.read.await_ms, rates.flush_await_ms), (None, None));
        assert_eq!(
            DiskRates::between(&totals(1, 1, 1), &totals(2, 2, 2), Nanos::ZERO),
            None
        );
    }

    #[test]
    fn a_busy_time_that_no_request_took_is_an_upper_bound() {
        let span = Nanos::from_millis(1000);
        let sampled = DiskRates::between(&totals(0, 0, 0), &totals(100, 400, 60), span).unwrap();
        assert_eq!(sampled.busy, Busy::AtMost(0.06));
        let rounded = DiskRates::between(&totals(0, 0, 0), &totals(100, 68, 60), span).unwrap();
        assert_eq!(rounded.busy, Busy::Share(0.068));
    }
}
