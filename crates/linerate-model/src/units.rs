//! Amounts with their unit: bytes, bits per second, nanoseconds.
//!
//! Sizes are spelled with binary prefixes (KiB = 2^10), rates with decimal ones (kbit/s = 10^3),
//! and the two are never mixed. What a user types keeps iperf3's letters: a size's `K` is 1024,
//! a rate's `K` is 1000.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A text that is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}: {reason}")]
pub struct UnitError {
    text: String,
    expected: &'static str,
    reason: &'static str,
}

/// A count of bytes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BitRate(pub u64);

/// A span of time, or an instant on some end's monotonic clock, in nanoseconds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Bytes {
    /// The number of bytes.
    pub const fn count(self) -> u64 {
        self.0
    }

    /// As options take a size: `32M`, `512K`, `1000`.
    pub fn as_option(self) -> String {
        with_letter(self.0, 1024)
    }
}

impl BitRate {
    /// As options take a rate: `1G`, `86M`, `1500`.
    pub fn as_option(self) -> String {
        with_letter(self.0, 1000)
    }

    /// Three digits, and the unit in which they are: `1.54`, `Gbit/s`.
    pub fn in_unit(self) -> (String, &'static str) {
        prefixed(
            self.0,
            1000.0,
            &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"],
        )
    }

    /// The rate as a whole number of bit/s.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The rate of `bytes` in `span`; `None` where the span is empty.
    pub fn of(bytes: Bytes, span: Nanos) -> Option<Self> {
        if span.0 == 0 {
            return None;
        }
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000 / u128::from(span.0);
        Some(Self(u64::try_from(bits).unwrap_or(u64::MAX)))
    }

    /// The time that `bytes` take at this rate; the longest span where the rate is zero.
    pub fn time_for(self, bytes: Bytes) -> Nanos {
        if self.0 == 0 {
            return Nanos(u64::MAX);
        }
        let nanos = u128::from(bytes.0) * 8 * 1_000_000_000 / u128::from(self.0);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// From whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// From seconds; negative and absurd values are clamped to what fits.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "clamped: float casts saturate"
    )]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9).round().max(0.0) as u64)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// As the standard library's type.
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The span from `earlier` to this instant, zero where `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// This instant and a span, held at the largest value.
    #[must_use]
    pub const fn plus(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A number with the letter of the largest unit that divides it.
fn with_letter(value: u64, base: u64) -> String {
    // With a letter it is read as a floating-point number, which holds this much.
    let exact = value > 0 && value < 1 << 53;
    let units =
        [(4, "T"), (3, "G"), (2, "M"), (1, "K")].map(|(power, letter)| (base.pow(power), letter));
    let divides = |(unit, _): &(u64, &str)| exact && value.is_multiple_of(*unit);
    match units.into_iter().find(divides) {
        Some((unit, letter)) => format!("{}{letter}", value / unit),
        None => value.to_string(),
    }
}

/// Splits `12.5M` into number and multiplier; `base` is 1000 or 1024.
fn scaled(text: &str, expected: &'static str, base: f64) -> Result<u64, UnitError> {
    let fail = |reason| UnitError {
        text: text.to_owned(),
        expected,
        reason,
    };
    let trimmed = text.trim();
    let (digits, power) = match trimmed.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&trimmed[..at], 1),
        Some((at, 'm' | 'M')) => (&trimmed[..at], 2),
        Some((at, 'g' | 'G')) => (&trimmed[..at], 3),
        Some((at, 't' | 'T')) => (&trimmed[..at], 4),
        Some((_, last)) if last.is_ascii_digit() || last == '.' => (trimmed, 0),
        Some(_) => return Err(fail("its suffix is none of K, M, G, T")),
        None => return Err(fail("it is empty")),
    };
    if power == 0
        && let Ok(whole) = digits.parse::<u64>()
    {
        return Ok(whole);
    }
    if !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(fail(
            "it is not a number followed by at most one of K, M, G, T",
        ));
    }
    let number: f64 = digits
        .parse()
        .map_err(|_| fail("it does not begin with a number"))?;
    let value = number * base.powi(power);
    if value >= 9.2e18 {
        return Err(fail("it is too large"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked against the bound above"
    )]
    Ok(value.round() as u64)
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        scaled(text, "a size (bytes, or with K, M, G, T of 1024)", 1024.0).map(Self)
    }
}

impl Bytes {
    /// An amount of traffic, which is sold and counted in thousands as rates are: `20T` is 20,000,000,000,000 bytes.
    ///
    /// # Errors
    /// A text that is no number with at most one of K, M, G, T.
    pub fn of_traffic(text: &str) -> Result<Self, UnitError> {
        scaled(
            text,
            "an amount (bytes, or with K, M, G, T of 1000)",
            1000.0,
        )
        .map(Self)
    }
}

impl FromStr for BitRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        scaled(text, "a rate (bit/s, or with K, M, G, T of 1000)", 1000.0).map(Self)
    }
}

/// Three significant digits, as iperf prints them: `9.41`, `94.1`, `941`.
pub fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A count with separators: `82,213`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of 0 to 1 in percent: `83 %`, `4.2 %`, `0.26 %`, `0.0031 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent <= 0.0 {
        "0 %".to_owned()
    } else if percent >= 9.95 {
        format!("{percent:.0} %")
    } else if percent >= 0.995 {
        format!("{percent:.1} %")
    } else {
        let digits = (1.0 - percent.log10().floor()).clamp(1.0, 9.0);
        let places = usize::try_from(whole(digits)).unwrap_or(9);
        format!("{percent:.places$} %")
    }
}

/// The nearest whole number, zero for what is negative or no number.
#[expect(clippy::cast_possible_truncation, reason = "float casts saturate")]
pub fn whole(value: f64) -> u64 {
    value.round().max(0.0) as u64
}

/// `value` with the largest of `units` (each `base` times the one before) that leaves it at least 1.
fn prefixed(value: u64, base: f64, units: &[&'static str]) -> (String, &'static str) {
    let mut scaled = value as f64;
    let mut unit = 0;
    while unit + 1 < units.len() && scaled >= base * 0.9995 {
        scaled /= base;
        unit += 1;
    }
    if unit == 0 {
        (value.to_string(), units[0])
    } else {
        (three_digits(scaled), units[unit])
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let (number, unit) = prefixed(self.0, 1024.0, &units);
        f.pad(&format!("{number} {unit}"))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.in_unit();
        f.pad(&format!("{number} {unit}"))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.as_secs_f64();
        let text = if self.0 == 0 {
            "0 s".to_owned()
        } else if seconds < 1e-3 {
            format!("{} µs", three_digits(seconds * 1e6))
        } else if seconds < 1.0 {
            format!("{} ms", three_digits(seconds * 1e3))
        } else {
            format!("{} s", three_digits(seconds))
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        assert_eq!("1K".parse::<Bytes>().unwrap(), Bytes(1024));
        assert_eq!(Bytes::of_traffic("1.5K").unwrap(), Bytes(1500));
        assert_eq!("1k".parse::<BitRate>().unwrap(), BitRate(1000));
        assert_eq!("1.5G".parse::<BitRate>().unwrap(), BitRate(1_500_000_000));
        assert_eq!(
            "18446744073709551615".parse::<Bytes>().unwrap(),
            Bytes(u64::MAX)
        );
    }

    #[test]
    fn an_option_is_read_as_the_same_amount() {
        assert_eq!(Bytes(32 << 20).as_option(), "32M");
        assert_eq!(BitRate(1_000_000_000_000).as_option(), "1T");
        // More than a floating-point number holds stays without a letter.
        let large = BitRate(9_007_199_254_740_993_000);
        assert_eq!(large.as_option().parse::<BitRate>().unwrap(), large);
    }

    #[test]
    fn counts_are_grouped_and_rounded() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [1.5, -3.0, f64::NAN, f64::INFINITY].map(whole),
            [2, 0, 0, u64::MAX]
        );
    }

    #[test]
    fn nonsense_is_named() {
        for text in [
            "",
            "x",
            "1X",
            "1MM",
            "-1",
            "K",
            "1e9",
            "nan",
            "inf",
            "99999999T",
        ] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")), "{error}");
        }
    }

    #[test]
    fn rates_and_times_do_not_wrap() {
        assert_eq!(
            BitRate::of(Bytes(u64::MAX), Nanos(1)),
            Some(BitRate(u64::MAX))
        );
        assert_eq!(BitRate::of(Bytes(5), Nanos(0)), None);
        assert_eq!(
            BitRate(8_000_000).time_for(Bytes(1_000_000)),
            Nanos::from_millis(1000)
        );
        assert_eq!(BitRate(0).time_for(Bytes(1)), Nanos(u64::MAX));
    }

    #[test]
    fn amounts_are_spelled_out() {
        assert_eq!(Bytes(1_048_576).to_string(), "1.00 MiB");
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(BitRate(941_500_000).to_string(), "942 Mbit/s");
        assert_eq!(BitRate(999_990_000).to_string(), "1.00 Gbit/s");
        assert_eq!(Nanos(66_900_000).to_string(), "66.9 ms");
    }
}
