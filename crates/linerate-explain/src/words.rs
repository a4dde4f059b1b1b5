//! Figures as sentences spell them, with their units.

use linerate_model::units::{BitRate, Bytes, Nanos, three_digits};
pub(crate) use linerate_model::units::{grouped as count, whole};

/// Name of a figure: segments that DSACK reported as duplicates.
pub(crate) const RECEIVED_TWICE: &str = "segments reported as duplicates (DSACK)";
/// Name of a figure: what a path carried while its mean was far below.
pub(crate) const CARRIED: &str = "carried at times, bit/s";

/// A share of 0 to 1 in percent: `83 %`, `4.2 %`, `0.26 %`, `0.0031 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent <= 0.0 {
        "0 %".to_owned()
    } else if percent >= 9.95 {
        format!("{percent:.0} %")
    } else if percent >= 0.995 {
        format!("{percent:.1} %")
    } else {
        let digits = (1.0 - percent.log10().floor()).clamp(1.0, 9.0);
        format!("{percent:.*} %", whole_usize(digits))
    }
}

/// A rate in bit/s: `95.3 Mbit/s`.
pub(crate) fn rate(bps: f64) -> String {
    BitRate(whole(bps)).to_string()
}

/// An amount in bytes: `212 KiB`.
pub(crate) fn size(bytes: f64) -> String {
    Bytes(whole(bytes)).to_string()
}

/// A time in microseconds: `12.0 ms`.
pub(crate) fn micros(us: f64) -> String {
    Nanos(whole(us * 1e3)).to_string()
}

/// A time in nanoseconds, in seconds: `2.10 s`.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{} s", three_digits(Nanos(ns).as_secs_f64()))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "clamped to 1 to 9 by the caller"
)]
fn whole_usize(value: f64) -> usize {
    value as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_keep_two_digits_that_mean_something() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.832, "83 %"),
            (0.0999, "10 %"),
            (0.042, "4.2 %"),
            (0.0026, "0.26 %"),
            (0.000_031, "0.0031 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), text);
        }
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
    }
}
