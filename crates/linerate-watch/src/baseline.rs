//! What a pair's tests gave so far: its level, and where that changed.
//!
//! Only tests that measured are here, and none that other traffic disturbed: a failure is never a zero.

use std::collections::VecDeque;

use linerate_model::watch::{RunId, UnixMillis, WatchFigures};
use serde::{Deserialize, Serialize};

use crate::cause::robust;
use crate::change_points::{ChangePoint, Options, change_points};

/// Tests that are kept.
const KEPT: usize = 120;
/// Tests of the current regime that make a baseline, the latest.
const LATEST: usize = 30;
/// With fewer tests there is no baseline.
const FEWEST: usize = 5;
/// No tests agree better than this, as a share.
const LEAST_DEVIATION: f64 = 0.01;

/// So many tests show what a level is like.
pub const FIRST: usize = 3;

/// What a pair's tests give as long as nothing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The median, bit/s of payload.
    pub median_bps: f64,
    /// The standard deviation of one test, as a share of the median: that of a normal distribution with the tests' median
    /// absolute deviation, 0.01 or more.
    pub deviation: f64,
    /// Tests that it rests on, 5 to 30.
    pub runs: usize,
}

/// A time in which a pair had one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regime {
    /// When the last test before it ended; absent = it is the first.
    pub last_before: Option<UnixMillis>,
    /// When its first test ended.
    pub since: UnixMillis,
    /// The geometric mean of its tests, bit/s of payload.
    pub level_bps: f64,
    /// Its tests.
    pub runs: usize,
}

/// The latest 120 valid tests of a pair.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    samples: VecDeque<Sample>,
    /// Where the level changed, of [`Self::samples`].
    changes: Vec<ChangePoint>,
}

/// One test.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    id: RunId,
    ended: UnixMillis,
    /// The natural logarithm of its goodput in bit/s.
    log: f64,
}

impl History {
    /// Adds a test that measured; it has to be later than those before. Whether it counts: one that other traffic disturbed,
    /// or through which nothing passed, does not.
    pub fn add(&mut self, id: RunId, ended: UnixMillis, figures: &WatchFigures) -> bool {
        let counts =
            !figures.with_traffic && figures.goodput_bps.is_finite() && figures.goodput_bps > 0.0;
        let later = self.samples.back().is_none_or(|last| last.ended <= ended);
        if !counts || !later {
            return false;
        }
        self.samples.push_back(Sample {
            id,
            ended,
            log: figures.goodput_bps.ln(),
        });
        if self.samples.len() > KEPT {
            self.samples.pop_front();
        }
        self.find_changes();
        true
    }

    /// Forgets the tests that ended in a time, both ends included.
    pub fn forget(&mut self, from: UnixMillis, until: UnixMillis) {
        self.samples
            .retain(|sample| !(from..=until).contains(&sample.ended));
        self.find_changes();
    }

    fn find_changes(&mut self) {
        let logs: Vec<f64> = self.samples.iter().map(|sample| sample.log).collect();
        self.changes = change_points(&logs, &Options::GOODPUT);
    }

    /// The regimes, the first one first; empty without a test.
    pub fn regimes(&self) -> Vec<Regime> {
        let mut ends: Vec<usize> = self.changes.iter().map(|change| change.index).collect();
        ends.insert(0, 0);
        ends.push(self.samples.len());
        let regime = |ends: &[usize]| {
            let samples = self.samples.range(ends[0]..ends[1]);
            let runs = samples.len();
            Some(Regime {
                last_before: Some(self.samples.get(ends[0].checked_sub(1)?)?.ended),
                since: self.samples.get(ends[0])?.ended,
                level_bps: (samples.map(|sample| sample.log).sum::<f64>() / runs as f64).exp(),
                runs,
            })
        };
        let first = |ends: &[usize]| {
            let samples = self.samples.range(..ends[1]);
            let runs = samples.len();
            Some(Regime {
                last_before: None,
                since: self.samples.front()?.ended,
                level_bps: (samples.map(|sample| sample.log).sum::<f64>() / runs as f64).exp(),
                runs,
            })
        };
        ends.windows(2)
            .filter_map(|ends| {
                if ends[0] == 0 {
                    first(ends)
                } else {
                    regime(ends)
                }
            })
            .collect()
    }

    /// The first three tests of each regime but the first: where that one began is not known.
    pub fn firsts(&self) -> Vec<RunId> {
        let ends = self.changes.iter().skip(1).map(|change| change.index);
        let ends = ends.chain([self.samples.len()]);
        let begins = self.changes.iter().map(|change| change.index).zip(ends);
        let first = |(begin, end): (usize, usize)| self.ids(begin..end.min(begin + FIRST));
        begins.flat_map(first).collect()
    }

    /// The first three tests that are left.
    pub fn first(&self) -> Vec<RunId> {
        self.ids(0..FIRST.min(self.samples.len()))
    }

    fn ids(&self, range: std::ops::Range<usize>) -> Vec<RunId> {
        self.samples.range(range).map(|sample| sample.id).collect()
    }

    /// Whether a test is one of these.
    pub fn has(&self, id: RunId) -> bool {
        self.samples.iter().any(|sample| sample.id == id)
    }

    /// The baseline of the current regime; absent where there are fewer than 5 tests.
    pub fn baseline(&self) -> Option<Baseline> {
        let count = self.samples.len();
        let regime = self.changes.last().map_or(0, |change| change.index);
        let first = regime
            .max(count.saturating_sub(LATEST))
            .min(count.checked_sub(FEWEST)?);
        let mut logs: Vec<f64> = self
            .samples
            .range(first..)
            .map(|sample| sample.log)
            .collect();
        let median = robust::midpoint(&mut logs)?;
        let mut residuals: Vec<f64> = logs.iter().map(|log| log - median).collect();
        Some(Baseline {
            median_bps: median.exp().round(),
            deviation: robust::spread(&mut residuals).max(LEAST_DEVIATION),
            runs: logs.len(),
        })
    }

    /// The current regime, where its level is lower than that of the one before.
    pub fn fall(&self) -> Option<Regime> {
        let fell = self
            .changes
            .last()
            .is_some_and(|change| change.after < change.before);
        self.regimes().pop().filter(|_| fell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(goodput_bps: f64) -> WatchFigures {
        WatchFigures {
            goodput_bps,
            ..WatchFigures::default()
        }
    }

    fn add(history: &mut History, at: u64, figures: &WatchFigures) -> bool {
        let at = UnixMillis(at);
        history.add(RunId::of(at, 0), at, figures)
    }

    fn history(levels: &[(u64, f64)]) -> History {
        let mut history = History::default();
        let mut at = 0;
        for &(runs, level) in levels {
            for run in 0..runs {
                at += 1;
                let noise = [0.99, 1.0, 1.01, 1.0][usize::try_from(run % 4).unwrap()];
                assert!(add(&mut history, at, &figures(level * noise)));
            }
        }
        history
    }

    #[test]
    fn a_baseline_is_that_of_the_current_regime() {
        let history = history(&[(40, 9.4e9), (12, 4e9)]);
        let baseline = history.baseline().unwrap();
        assert!(
            (baseline.median_bps / 4e9 - 1.0).abs() < 1e-6,
            "{baseline:?}"
        );
        assert_eq!(baseline.runs, 12);
        let regimes = history.regimes();
        assert_eq!(regimes.len(), 2);
        assert_eq!((regimes[0].since, regimes[0].runs), (UnixMillis(1), 40));
        assert_eq!(regimes[1].last_before, Some(UnixMillis(40)));
        assert_eq!(history.fall(), Some(regimes[1]));
        let ids = |first: u64| [0, 1, 2].map(|more| RunId::of(UnixMillis(first + more), 0));
        assert_eq!(history.firsts(), ids(41));
        assert_eq!(history.first(), ids(1));
        assert!(history.has(ids(52)[0]) && !history.has(ids(53)[0]));
    }

    #[test]
    fn disturbed_tests_and_zeros_do_not_count_and_few_tests_say_nothing() {
        let mut history = history(&[(4, 9.4e9)]);
        assert_eq!(history.baseline(), None);
        let disturbed = WatchFigures {
            with_traffic: true,
            ..figures(1e9)
        };
        assert!(!add(&mut history, 9, &disturbed));
        assert!(!add(&mut history, 9, &figures(0.0)));
        assert!(add(&mut history, 9, &figures(9.4e9)));
        assert_eq!(history.baseline().map(|baseline| baseline.runs), Some(5));
        history.forget(UnixMillis(9), UnixMillis(9));
        assert_eq!((history.baseline(), history.fall()), (None, None));
        assert_eq!(History::default().regimes(), []);
    }

    #[test]
    fn it_rests_on_thirty_tests_at_most() {
        let baseline = history(&[(200, 1e9)]).baseline().unwrap();
        assert_eq!((baseline.runs, baseline.deviation), (30, LEAST_DEVIATION));
    }
}
