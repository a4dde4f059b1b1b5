//! Times as `watch.toml` writes them.

use linerate_model::calendar;
use linerate_model::plan::values;

/// A time with its unit, in ms: `30s`, `10m`, `6h`, `7d`.
///
/// # Errors
/// What is expected instead.
pub(super) fn millis(text: &str) -> Result<u64, String> {
    if text.trim().ends_with(|last: char| last.is_ascii_digit()) {
        return Err("it has no unit: s, m, h or d".to_owned());
    }
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<f64>().ok());
    let nanos = match days {
        Some(days) if days.is_finite() && days >= 0.0 => days * 86_400e9,
        _ => {
            values::duration(text)
                .map_err(|_| "not a time such as 30s, 10m, 6h or 7d".to_owned())?
                .0 as f64
        }
    };
    Ok(linerate_model::units::whole(nanos / 1e6))
}

/// Hours of the day, in minutes since midnight: `22:00-06:00`.
///
/// # Errors
/// What is expected instead.
pub(super) fn hours(text: &str) -> Result<(u16, u16), String> {
    let wrong = || "not hours such as 22:00-06:00".to_owned();
    let minutes = |text: &str| {
        let (hour, minute) = text.trim().split_once(':')?;
        let number = |digits: &str| {
            let plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u16>().ok().filter(|_| plain)
        };
        let (hour, minute) = (number(hour)?, number(minute)?);
        (minute < 60 && hour * 60 + minute <= 1440).then_some(hour * 60 + minute)
    };
    let (from, until) = text.split_once('-').ok_or_else(wrong)?;
    let (from, until) = (
        minutes(from).ok_or_else(wrong)?,
        minutes(until).ok_or_else(wrong)?,
    );
    if from == until {
        return Err("it begins when it ends".to_owned());
    }
    Ok((from % 1440, until))
}

/// A date and time with its offset (RFC 3339), as seconds since 1970: `2026-12-01T22:00:00Z`.
///
/// # Errors
/// What is expected instead.
pub(super) fn unix_seconds(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let time = text.get("2026-12-01".len()..).unwrap_or_default();
    let has_offset = time.contains(['Z', 'z', '+', '-']);
    let at = calendar::moment(text).filter(|_| has_offset);
    at.map(|at| at.0 / 1000).ok_or_else(|| {
        "not a date and time with an offset from UTC, such as 2026-12-01T22:00:00Z".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_unit() {
        for (text, time) in [
            ("30s", 30_000),
            ("10m", 600_000),
            ("6h", 21_600_000),
            ("1.5d", 129_600_000),
        ] {
            assert_eq!(millis(text), Ok(time));
        }
        for wrong in ["", "d", "-1d", "nand", "6 hours"] {
            assert!(millis(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hours_are_minutes_since_midnight() {
        assert_eq!(hours("22:00-06:00"), Ok((1320, 360)));
        assert_eq!(hours("00:00 - 24:00"), Ok((0, 1440)));
        for wrong in [
            "",
            "22-6",
            "22:00",
            "22:60-23:00",
            "24:01-01:00",
            "6:00-7:00",
            "06:00-06:00",
        ] {
            assert!(hours(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dates_are_those_of_rfc_3339() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2026-12-01 22:00:00.5Z", 1_796_162_400),
            ("2026-12-01T22:00+01:00", 1_796_158_800),
            ("2026-12-01T22:00:00-05:30", 1_796_182_200),
        ] {
            assert_eq!(unix_seconds(text), Ok(seconds), "{text}");
        }
        for wrong in [
            "",
            "2026-12-01",
            "2026-12-01T22:00:00",
            "2026-02-29T00:00Z",
            "2026-13-01T00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-12-01T24:00Z",
            "2026-12-01T22Z",
            "2026-12-01T2:0:0:0Z",
            "2026/12/01T00:00Z",
            "2026-12-0é22:00Z",
        ] {
            assert!(unix_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
