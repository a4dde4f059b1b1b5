//! Dates of moments, in UTC and without a clock.

use crate::watch::UnixMillis;

/// A day in ms.
const DAY: u64 = 86_400_000;

/// Year, month (1 to 12) and day (1 to 31) of a number of days since 1970-01-01. Days are counted in eras of 400 years
/// that begin on the first of March.
pub const fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

/// RFC 3339 with milliseconds: `2026-11-25T03:40:12.345Z`.
pub fn rfc3339(at: UnixMillis) -> String {
    let (year, month, day) = civil(at.0 / DAY);
    let seconds = at.0 / 1000;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        at.0 % 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        let at = UnixMillis(1_795_578_012_345);
        assert_eq!(rfc3339(at), "2026-11-25T03:40:12.345Z");
        assert_eq!(rfc3339(UnixMillis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(civil(951_782_400_000 / DAY), (2000, 2, 29));
    }
}
