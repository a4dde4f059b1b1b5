//! Token buckets: what the tests of a host or a segment may use up in a day.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};

use super::moments::DAY_MILLIS;
use crate::watched::Budget;

/// What is left of a budget, for a later start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetLevel {
    /// A host, or `segment` and its name.
    pub name: PlainText,
    /// Bytes of payload that are left; less than 0 where tests used more than expected; absent = not limited.
    pub bytes: Option<f64>,
    /// Seconds that are left; absent = not limited.
    pub seconds: Option<f64>,
}

/// What a test takes of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cost {
    pub(super) bytes: f64,
    pub(super) seconds: f64,
}

/// The budget of a host or a segment.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    pub(super) name: PlainText,
    bytes: Option<Level>,
    seconds: Option<Level>,
    at: UnixMillis,
}

/// A bucket that refills evenly.
#[derive(Debug, Clone, Copy)]
struct Level {
    a_day: f64,
    left: f64,
}

impl Level {
    fn full(a_day: f64) -> Self {
        let left = a_day;
        Self { a_day, left }
    }

    fn refill(&mut self, millis: u64) {
        let more = self.a_day * millis as f64 / DAY_MILLIS as f64;
        self.left = (self.left + more).min(self.a_day);
    }

    /// How long until so much is left, ms; none where a day's worth is not enough.
    fn wait(self, need: f64) -> Option<u64> {
        if need <= self.left {
            return Some(0);
        }
        let days = (need - self.left) / self.a_day;
        let possible = need <= self.a_day && days.is_finite();
        possible.then(|| linerate_model::units::whole(days * DAY_MILLIS as f64) + 1)
    }
}

impl Bucket {
    /// A full one.
    pub(super) fn new(name: PlainText, budget: Budget, now: UnixMillis) -> Self {
        let bytes = budget.bytes_a_day.map(|bytes| bytes.count() as f64);
        Self {
            name,
            bytes: bytes.map(Level::full),
            seconds: budget.seconds_a_day.map(Level::full),
            at: now,
        }
    }

    pub(super) fn is_limited(&self) -> bool {
        self.bytes.is_some() || self.seconds.is_some()
    }

    fn levels(&mut self) -> impl Iterator<Item = &mut Level> {
        self.bytes.iter_mut().chain(&mut self.seconds)
    }

    fn refill(&mut self, now: UnixMillis) {
        let millis = now.since(self.at);
        self.levels().for_each(|level| level.refill(millis));
        self.at = self.at.max(now);
    }

    /// From when on it has enough; none where a day's worth is not enough.
    pub(super) fn enough_at(&mut self, now: UnixMillis, cost: Cost) -> Option<UnixMillis> {
        self.refill(now);
        let bytes = self.bytes.map_or(Some(0), |level| level.wait(cost.bytes));
        let seconds = self
            .seconds
            .map_or(Some(0), |level| level.wait(cost.seconds));
        Some(now.plus_millis(bytes?.max(seconds?)))
    }

    /// Takes what a test is expected to use.
    pub(super) fn debit(&mut self, now: UnixMillis, cost: Cost) {
        self.refill(now);
        if let Some(level) = &mut self.bytes {
            level.left -= cost.bytes;
        }
        if let Some(level) = &mut self.seconds {
            level.left -= cost.seconds;
        }
    }

    /// Replaces what was expected by what was used.
    pub(super) fn settle(&mut self, now: UnixMillis, expected: Cost, used: Cost) {
        let difference = Cost {
            bytes: used.bytes - expected.bytes,
            seconds: used.seconds - expected.seconds,
        };
        self.debit(now, difference);
        self.levels().for_each(|level| level.refill(0));
    }

    /// When it was last refilled.
    pub(super) const fn at(&self) -> UnixMillis {
        self.at
    }

    pub(super) fn level(&self) -> BudgetLevel {
        BudgetLevel {
            name: self.name.clone(),
            bytes: self.bytes.map(|level| level.left),
            seconds: self.seconds.map(|level| level.left),
        }
    }

    /// Goes on with what was left at a moment; nothing where that is not known.
    pub(super) fn go_on(&mut self, left: Option<&BudgetLevel>, at: UnixMillis) {
        let bytes = left.and_then(|left| left.bytes).unwrap_or(0.0);
        let seconds = left.and_then(|left| left.seconds).unwrap_or(0.0);
        if let Some(level) = &mut self.bytes {
            level.left = bytes.min(level.a_day);
        }
        if let Some(level) = &mut self.seconds {
            level.left = seconds.min(level.a_day);
        }
        self.at = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::units::Bytes;

    #[test]
    fn a_bucket_refills_evenly_and_holds_a_day() {
        let budget = Budget {
            bytes_a_day: Some(Bytes(86_400_000)),
            seconds_a_day: None,
        };
        let mut bucket = Bucket::new("a".into(), budget, UnixMillis(0));
        let cost = |bytes| Cost {
            bytes,
            seconds: 1e9,
        };
        assert_eq!(
            bucket.enough_at(UnixMillis(0), cost(86_400_001.0)),
            None,
            "more than a day"
        );
        bucket.debit(UnixMillis(0), cost(86_400_000.0));
        let ready = bucket.enough_at(UnixMillis(0), cost(1_000.0)).unwrap();
        assert_eq!(ready, UnixMillis(1_001));
        assert_eq!(bucket.enough_at(ready, cost(1_000.0)), Some(ready));
        // The test used less than expected.
        bucket.debit(ready, cost(1_000.0));
        bucket.settle(ready, cost(1_000.0), cost(0.0));
        assert_eq!(bucket.enough_at(ready, cost(1_000.0)), Some(ready));
        bucket.settle(ready, cost(1e12), cost(0.0));
        let level = bucket.level().bytes.unwrap();
        assert!((level - 86_400_000.0).abs() < 1.0, "{level}");
    }

    #[test]
    fn a_bucket_goes_on_where_it_was() {
        let budget = Budget {
            bytes_a_day: None,
            seconds_a_day: Some(864.0),
        };
        let mut bucket = Bucket::new("a".into(), budget, UnixMillis(0));
        bucket.go_on(None, UnixMillis(0));
        let cost = Cost {
            bytes: 5.0,
            seconds: 10.0,
        };
        assert_eq!(
            bucket.enough_at(UnixMillis(0), cost),
            Some(UnixMillis(1_000_001))
        );
    }
}
