//! Figures as sentences spell them, with their units.

use linerate_model::units::{BitRate, Bytes, Nanos, three_digits};
pub(crate) use linerate_model::units::{grouped as count, whole};
pub(crate) use linerate_model::words::percent;

/// Name of a figure: segments that DSACK reported as duplicates.
pub(crate) const RECEIVED_TWICE: &str = "segments reported as duplicates (DSACK)";
/// Name of a figure: what a path carried while its mean was far below.
pub(crate) const CARRIED: &str = "carried at times, bit/s";

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
