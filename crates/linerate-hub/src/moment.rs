//! Moments and spans as pages write them: UTC, without a clock.

use linerate_model::calendar::civil;
use linerate_model::watch::UnixMillis;

/// A day in ms.
pub(crate) const DAY: u64 = 86_400_000;
/// An hour in ms.
pub(crate) const HOUR: u64 = 3_600_000;

/// `2026-11-25`.
pub(crate) fn day(at: UnixMillis) -> String {
    let (year, month, day) = civil(at.0 / DAY);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-11-25 03:40 UTC`.
pub(crate) fn minute(at: UnixMillis) -> String {
    format!("{} {} UTC", day(at), clock(at))
}

/// `03:40`.
pub(crate) fn clock(at: UnixMillis) -> String {
    let minutes = at.0 / 60_000;
    format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60)
}

/// A span in its largest unit, rounded down: `40 s`, `12 min`, `5 h`, `9 d`.
pub(crate) fn span(millis: u64) -> String {
    match millis {
        0..60_000 => format!("{} s", millis / 1000),
        60_000..HOUR => format!("{} min", millis / 60_000),
        HOUR..172_800_000 => format!("{} h", millis / HOUR),
        _ => format!("{} d", millis / DAY),
    }
}

/// How long ago: `12 min ago`; of what is to come `in 12 min`.
pub(crate) fn ago(at: UnixMillis, now: UnixMillis) -> String {
    if at > now {
        format!("in {}", span(at.since(now)))
    } else {
        format!("{} ago", span(now.since(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        let at = UnixMillis(1_795_578_012_345);
        assert_eq!(minute(at), "2026-11-25 03:40 UTC");
        assert_eq!(day(UnixMillis(951_782_400_000)), "2000-02-29");
        assert_eq!(day(UnixMillis(0)), "1970-01-01");
    }

    #[test]
    fn spans_have_one_unit() {
        for (millis, text) in [
            (0, "0 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (3_600_000, "1 h"),
            (172_799_999, "47 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(span(millis), text);
        }
        assert_eq!(ago(UnixMillis(5000), UnixMillis(2000)), "in 3 s");
    }
}
