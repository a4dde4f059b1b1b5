//! When the tests of a pair are due.

use linerate_model::watch::UnixMillis;

use super::identity::Hash;
use crate::watched::{Sampling, Schedule};

/// How much time a test has at least beyond what it takes, ms: timers are not exact.
pub(super) const SLACK_MILLIS: u64 = 2_000;

pub(super) const DAY_MILLIS: u64 = 86_400_000;

/// Poisson sampling goes by blocks of so many periods, each with a series of its own. Gaps of a Poisson process are
/// memoryless, so that the blocks in a row are one, and the tests of any time are found without those before.
const BLOCK_PERIODS: u64 = 64;

/// At most so many tests a block.
const BLOCK_NUMBERS: u64 = 1 << 10;

/// A test that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    /// The number of its period; where the sampling is Poisson's, of its block and its place in that.
    pub(super) number: u64,
    pub(super) at: UnixMillis,
}

/// The moments of a pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments<'a> {
    pub(super) schedule: &'a Schedule,
    /// Hash of the seed and of what is tested.
    pub(super) key: u64,
    /// How long a test takes, ms.
    pub(super) booked: u64,
}

impl Moments<'_> {
    pub(super) fn period(&self) -> u64 {
        self.schedule.period_millis.max(1_000)
    }

    /// The first that is due at a moment or later.
    pub(super) fn first_from(&self, moment: UnixMillis) -> Due {
        if self.schedule.sampling == Sampling::Poisson {
            return self.poisson_from(moment);
        }
        let due = self.in_period(moment.0 / self.period());
        if due.at >= moment {
            due
        } else {
            self.in_period(due.number + 1)
        }
    }

    /// The last that is due before a moment.
    pub(super) fn last_before(&self, moment: UnixMillis) -> Option<Due> {
        let before = |due: &Due| due.at < moment;
        if self.schedule.sampling == Sampling::Poisson {
            let block = moment.0 / self.block_millis();
            let blocks = [Some(block), block.checked_sub(1)];
            let last = |block| self.in_block(block).take_while(before).last();
            return blocks.into_iter().flatten().find_map(last);
        }
        let period = moment.0 / self.period();
        let periods = [Some(period), period.checked_sub(1)];
        let dues = periods.into_iter().flatten();
        dues.map(|period| self.in_period(period)).find(before)
    }

    /// The one after that.
    pub(super) fn after(&self, due: Due) -> Due {
        if self.schedule.sampling == Sampling::Poisson {
            self.poisson_from(due.at.plus_millis(1))
        } else {
            self.in_period(due.number + 1)
        }
    }

    /// By when a test has to have ended: never after the next one is due, where it can end by then.
    pub(super) fn deadline(&self, due: Due) -> UnixMillis {
        let least = due.at.plus_millis(self.booked + SLACK_MILLIS);
        let next = self.after(due).at;
        let wanted = match (self.schedule.slip_millis, self.schedule.sampling) {
            (Some(slip), _) => due.at.plus_millis(slip),
            (None, Sampling::Poisson) => next,
            (None, _) => UnixMillis((due.number + 1).saturating_mul(self.period())),
        };
        wanted.min(next).max(least)
    }

    /// How many tests are due from a test on, that one included, until before another one.
    pub(super) fn count(&self, first: Due, end: Due) -> u64 {
        if self.schedule.sampling == Sampling::Poisson {
            end.at.since(first.at).div_ceil(self.period())
        } else {
            end.number.saturating_sub(first.number)
        }
    }

    fn in_period(&self, period: u64) -> Due {
        let begin = period.saturating_mul(self.period());
        let room = self.period().saturating_sub(self.booked + SLACK_MILLIS);
        let hash = Hash::new().number(self.key).number(period);
        let at = match self.schedule.sampling {
            Sampling::Fixed => begin,
            _ if self.schedule.hours.is_empty() => begin + hash.below(room),
            _ => self.in_hours(begin, room, hash),
        };
        Due {
            number: period,
            at: UnixMillis(at),
        }
    }

    /// A moment in the part of the period that the hours allow; anywhere where they allow none.
    fn in_hours(&self, begin: u64, room: u64, hash: Hash) -> u64 {
        let mut open: Vec<(u64, u64)> = Vec::new();
        let mut from = UnixMillis(begin);
        let end = begin.saturating_add(room);
        // Each turn passes a window; a period has few, and no more than this many are looked at.
        for _ in 0..2_000 {
            let Some((opens, closes)) = opening(&self.schedule.hours, from, self.booked) else {
                break;
            };
            if opens.0 >= end {
                break;
            }
            open.push((opens.0, closes.0.min(end)));
            from = closes.plus_millis(1);
        }
        let length = |(opens, closes): &(u64, u64)| closes - opens;
        let mut left = hash.below(open.iter().map(length).sum());
        for window in &open {
            if left < length(window) {
                return window.0 + left;
            }
            left -= length(window);
        }
        open.first()
            .map_or(begin + hash.below(room), |window| window.0)
    }

    fn block_millis(&self) -> u64 {
        self.period().saturating_mul(BLOCK_PERIODS)
    }

    fn poisson_from(&self, moment: UnixMillis) -> Due {
        let block = moment.0 / self.block_millis();
        let found = self.in_block(block).find(|due| due.at >= moment);
        found.unwrap_or_else(|| {
            let next = self.in_block(block + 1).next();
            next.unwrap_or(Due {
                number: (block + 1) * BLOCK_NUMBERS,
                at: UnixMillis((block + 1).saturating_mul(self.block_millis())),
            })
        })
    }

    /// The tests of a block. Gaps are exponential and at most three periods; at the edges of a block half of that, so
    /// that the gap between two blocks is no longer.
    fn in_block(&self, block: u64) -> impl Iterator<Item = Due> {
        let (period, key) = (self.period(), self.key);
        let begin = block.saturating_mul(self.block_millis());
        let end = begin.saturating_add(self.block_millis());
        let half = period.saturating_mul(3) / 2;
        let mut at = begin;
        (0..BLOCK_NUMBERS).map_while(move |place| {
            let hash = Hash::new().number(key).number(block).number(place);
            let gap = -(1.0 - hash.unit()).ln() * period as f64;
            let gap = linerate_model::units::whole(gap).clamp(1, period.saturating_mul(3));
            let next = at + if place == 0 { gap.min(half) } else { gap };
            let last = next >= end && end - at > half;
            at = if last { at + half } else { next };
            (at < end).then_some(Due {
                number: block * BLOCK_NUMBERS + place,
                at: UnixMillis(at),
            })
        })
    }
}

/// From when on and until when a test of this length may begin by the hours, at a moment or later.
///
/// Windows are in minutes since midnight, UTC; one whose ends are equal lasts all day. None where no window is long
/// enough.
pub(super) fn opening(
    hours: &[(u16, u16)],
    moment: UnixMillis,
    booked: u64,
) -> Option<(UnixMillis, UnixMillis)> {
    const MINUTE: u64 = 60_000;
    if hours.is_empty() {
        return Some((moment, UnixMillis(u64::MAX)));
    }
    let window = |&(from, until): &(u16, u16)| {
        let [from, until] = [from, until].map(|minute| u64::from(minute) * MINUTE % DAY_MILLIS);
        let length = (until + DAY_MILLIS - from) % DAY_MILLIS;
        if length == 0 {
            return Some((moment, UnixMillis(u64::MAX)));
        }
        let room = length.checked_sub(booked)?;
        let passed = (moment.0 % DAY_MILLIS + DAY_MILLIS - from) % DAY_MILLIS;
        let opens = moment.plus_millis(if passed <= room {
            0
        } else {
            DAY_MILLIS - passed
        });
        let closes = opens.plus_millis(if passed <= room { room - passed } else { room });
        Some((opens, closes))
    };
    hours.iter().filter_map(window).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn schedule(sampling: Sampling) -> Schedule {
        Schedule {
            period_millis: 6 * HOUR,
            slip_millis: None,
            sampling,
            hours: Vec::new(),
        }
    }

    fn moments(schedule: &Schedule, key: u64) -> Moments<'_> {
        Moments {
            schedule,
            key,
            booked: 16_500,
        }
    }

    #[test]
    fn each_period_has_one_test_which_can_end_in_it() {
        let schedule = schedule(Sampling::Stratified);
        for key in 0..50 {
            let moments = moments(&schedule, key);
            let mut due = moments.first_from(UnixMillis(1_000 * HOUR));
            for _ in 0..20 {
                let deadline = moments.deadline(due);
                assert_eq!(due.at.0 / (6 * HOUR), due.number);
                assert_eq!(deadline.0, (due.number + 1) * 6 * HOUR);
                assert!(due.at.plus_millis(16_500 + SLACK_MILLIS) <= deadline);
                let next = moments.after(due);
                assert_eq!(next.number, due.number + 1);
                assert_eq!(moments.last_before(next.at), Some(due));
                assert_eq!(moments.first_from(due.at.plus_millis(1)), next);
                due = next;
            }
        }
    }

    #[test]
    fn a_test_does_not_wait_beyond_the_next_one() {
        let mut schedule = schedule(Sampling::Stratified);
        schedule.slip_millis = Some(6 * HOUR);
        for key in 0..200 {
            let moments = moments(&schedule, key);
            let due = moments.first_from(UnixMillis(0));
            let deadline = moments.deadline(due);
            assert!(deadline <= moments.after(due).at || deadline.since(due.at) < 20_000);
            assert!(deadline.since(due.at) <= 6 * HOUR);
        }
    }

    #[test]
    fn poissons_gaps_are_at_most_three_periods_and_one_on_average() {
        let schedule = schedule(Sampling::Poisson);
        let moments = moments(&schedule, 7);
        let begin = moments.first_from(UnixMillis(0));
        let (mut due, mut longest) = (begin, 0);
        for _ in 0..5_000 {
            let next = moments.after(due);
            assert!(next.at > due.at && next.number > due.number);
            assert_eq!(moments.last_before(next.at), Some(due));
            longest = longest.max(next.at.since(due.at));
            due = next;
        }
        let mean = due.at.since(begin.at) as f64 / 5_000.0 / (6.0 * HOUR as f64);
        assert!((0.9..1.1).contains(&mean), "{mean}");
        assert!((12 * HOUR..=18 * HOUR).contains(&longest), "{longest}");
    }

    #[test]
    fn tests_are_due_within_the_hours_where_the_period_has_some() {
        let mut schedule = schedule(Sampling::Stratified);
        schedule.period_millis = 24 * HOUR;
        schedule.hours = vec![(1_320, 360)];
        let mut early = 0;
        for key in 0..200 {
            let at = moments(&schedule, key)
                .first_from(UnixMillis(48 * HOUR))
                .at
                .0
                % DAY_MILLIS;
            assert!(!(6 * HOUR..22 * HOUR).contains(&at), "{at}");
            early += u32::from(at < 6 * HOUR);
        }
        assert!((120..180).contains(&early), "{early}");
    }

    #[test]
    fn a_window_opens_when_a_test_can_end_within_it() {
        let hours = [(1_320, 360)];
        let opens = |hour: u64, booked| opening(&hours, UnixMillis(hour * HOUR), booked);
        assert_eq!(opens(23, 0).unwrap().0, UnixMillis(23 * HOUR));
        assert_eq!(opens(12, 0).unwrap().0, UnixMillis(22 * HOUR));
        assert_eq!(opens(5, 2 * HOUR).unwrap().0, UnixMillis(22 * HOUR));
        assert_eq!(opens(5, 9 * HOUR), None);
        assert!(opening(&[], UnixMillis(5), 9 * HOUR).is_some());
        assert!(opening(&[(60, 60)], UnixMillis(5), 9 * HOUR).is_some());
    }
}
