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

/// Days from 1970-01-01 to a date; `None` where there is no such date, or it is earlier.
pub fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    // In years that begin on the first of March, as in `civil`.
    let (year, march_month) = match month {
        1 | 2 => (year.checked_sub(1)?, month + 9),
        3..=12 => (year, month - 3),
        _ => return None,
    };
    let of_year = (153 * march_month + 2) / 5 + day.checked_sub(1)?;
    let of_era = year % 400;
    let days =
        (year / 400).checked_mul(146_097)? + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    let days = days.checked_sub(719_468)?;
    let (_, found, found_day) = civil(days);
    ((found, found_day) == (month, day)).then_some(days)
}

/// A moment as people write it: `@1795578012` (seconds since 1970), `2026-11-25`, `2026-11-25 03:40`,
/// `2026-11-25T03:40:12.345+01:00`. UTC where it has no offset. `None` for everything else.
pub fn moment(text: &str) -> Option<UnixMillis> {
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>| -> Option<u64> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && digits.contains(&text.len())).then(|| text.parse().ok())?
    };
    if let Some(seconds) = text.strip_prefix('@') {
        return Some(UnixMillis(number(seconds, 1..=12)? * 1000));
    }
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.splitn(3, '-');
    let mut part = |digits| number(parts.next()?, digits..=digits);
    let day = days(part(4)?, part(2)?, part(2)?)?.checked_mul(DAY)?;
    let Some(time) = time else {
        return Some(UnixMillis(day));
    };
    let (clock, is_ahead, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (&time[..at], time[at..].starts_with('+'), &time[at + 1..]),
        None => (time, false, ""),
    };
    let has_zulu = time.contains(['Z', 'z']);
    let offset = if offset.is_empty() && !time.ends_with(['+', '-']) {
        0
    } else {
        let (hours, minutes) = offset.split_once(':')?;
        let (hours, minutes) = (number(hours, 2..=2)?, number(minutes, 2..=2)?);
        let is_fine = !has_zulu && hours <= 23 && minutes <= 59;
        is_fine.then_some((hours * 60 + minutes) * 60_000)?
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?, 2..=2)?, number(parts.next()?, 2..=2)?);
    let (second, millis) = match parts.next() {
        None => (0, 0),
        Some(text) => {
            let (second, part) = text.split_once('.').unwrap_or((text, "0"));
            let digits = number(part, 1..=9)?;
            let width = u32::try_from(part.len()).ok()?;
            (number(second, 2..=2)?, digits * 1000 / 10_u64.pow(width))
        }
    };
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let local = day + (hour * 3600 + minute * 60 + second) * 1000 + millis;
    let utc = if is_ahead {
        local.checked_sub(offset)?
    } else {
        local + offset
    };
    Some(UnixMillis(utc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        let at = 1_795_578_012_345;
        for (text, expected) in [
            ("2026-11-25T03:40:12.345Z", Some(at)),
            ("2026-11-25 03:40:12.345", Some(at)),
            ("2026-11-25T04:40:12.345+01:00", Some(at)),
            ("2026-11-24T22:10:12.345-05:30", Some(at)),
            ("2026-11-25 03:40", Some(at - 12_345)),
            ("2026-11-25", Some(at / DAY * DAY)),
            ("@1795578012", Some(at - 345)),
            ("2000-02-29", Some(951_782_400_000)),
            ("1970-01-01T00:00:00+01:00", None),
            ("1969-12-31", None),
            ("2023-02-29", None),
            ("2026-13-01", None),
            ("2026-11-00", None),
            ("2026-11-25T24:00", None),
            ("2026-11-25T03:40+", None),
            ("2026-11-25T03:40Z01:00", None),
            ("2026-11-25T03:40+24:00", None),
            ("2026-11-25T03:40+01:60", None),
            ("2026-11-25T03:40:1", None),
            ("0000-01-01", None),
            ("@", None),
            ("@-1", None),
            ("yesterday", None),
            ("", None),
            ("2026-11-25T03:40:12.€", None),
        ] {
            assert_eq!(moment(text), expected.map(UnixMillis), "{text}");
        }
        for day in (0..200_000).step_by(97) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), Some(day));
        }
    }

    #[test]
    fn moments_are_written_in_utc() {
        let at = UnixMillis(1_795_578_012_345);
        assert_eq!(rfc3339(at), "2026-11-25T03:40:12.345Z");
        assert_eq!(rfc3339(UnixMillis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(civil(951_782_400_000 / DAY), (2000, 2, 29));
    }
}
