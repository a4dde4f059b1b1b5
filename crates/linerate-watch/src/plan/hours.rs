//! Hours of the day in which tests run.

const DAY_MINUTES: usize = 1440;
const DAY_SECONDS: f64 = 86_400.0;
/// Periods are looked at for so many days where they do not divide a day.
const DAYS: f64 = 30.0;

/// Which minutes of the day are allowed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hours {
    /// Allowed minutes before each minute of the day, and of the whole day at the end.
    before: Vec<u16>,
}

impl Hours {
    /// From spans of minutes since midnight, which may pass midnight; none = the whole day.
    pub(super) fn of(spans: &[(u16, u16)]) -> Self {
        let allowed = |minute: usize| {
            let within = |(from, until): &(u16, u16)| {
                let (from, until) = (usize::from(*from), usize::from(*until));
                if from < until {
                    (from..until).contains(&minute)
                } else {
                    minute >= from || minute < until
                }
            };
            spans.is_empty() || spans.iter().any(within)
        };
        let mut before = vec![0];
        let mut sum = 0;
        for minute in 0..DAY_MINUTES {
            sum += u16::from(allowed(minute));
            before.push(sum);
        }
        Self { before }
    }

    /// Allowed seconds of a day.
    pub(super) fn seconds(&self) -> f64 {
        f64::from(self.before[DAY_MINUTES]) * 60.0
    }

    /// Whether every minute of these is one of the others.
    pub(super) fn is_within(&self, others: &Self) -> bool {
        let own = self.before.windows(2).zip(others.before.windows(2));
        own.into_iter()
            .all(|(own, other)| own[0] == own[1] || other[0] < other[1])
    }

    /// How many periods a day leave time for a test that books so long, s.
    pub(super) fn periods_a_day(&self, period: f64, booked: f64) -> f64 {
        if self.seconds() >= DAY_SECONDS {
            return DAY_SECONDS / period;
        }
        let days = if DAY_SECONDS % period == 0.0 {
            1.0
        } else {
            (period / DAY_SECONDS).ceil().max(1.0) * DAYS
        };
        let mut count = 0.0;
        let mut begin = 0.0;
        while begin < days * DAY_SECONDS {
            let end = begin + period;
            if self.until(end) - self.until(begin) >= booked {
                count += 1.0;
            }
            begin = end;
        }
        count / days
    }

    /// Allowed seconds from the beginning of a day to a moment some days later.
    fn until(&self, moment: f64) -> f64 {
        let days = (moment / DAY_SECONDS).floor();
        let minute = (moment - days * DAY_SECONDS) / 60.0;
        let whole = usize::try_from(linerate_model::units::whole(minute.floor()));
        let whole = whole.unwrap_or(0).min(DAY_MINUTES - 1);
        let (before, after) = (self.before[whole], self.before[whole + 1]);
        let part = f64::from(after - before) * (minute - minute.floor()) * 60.0;
        days * self.seconds() + f64::from(before) * 60.0 + part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_may_pass_midnight_and_periods_without_any_do_not_count() {
        let night = Hours::of(&[(1320, 360)]);
        assert!((night.seconds() - 28_800.0).abs() < 1e-9);
        let six_hours = night.periods_a_day(21_600.0, 20.0);
        assert!((six_hours - 2.0).abs() < 1e-9, "{six_hours}");
        let hourly = night.periods_a_day(3600.0, 20.0);
        assert!((hourly - 8.0).abs() < 1e-9, "{hourly}");
        let weekly = night.periods_a_day(7.0 * 86_400.0, 20.0);
        assert!((weekly * 7.0 - 1.0).abs() < 0.05, "{weekly}");
        let all = Hours::of(&[]);
        assert!(night.is_within(&all) && !all.is_within(&night) && night.is_within(&night));
        assert!((all.periods_a_day(21_600.0, 20.0) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_test_that_does_not_fit_into_its_hours_is_never_due() {
        let minute = Hours::of(&[(0, 1)]);
        assert!(minute.periods_a_day(3600.0, 61.0) < 1e-9);
        assert!((minute.periods_a_day(3600.0, 60.0) - 1.0).abs() < 1e-9);
    }
}
