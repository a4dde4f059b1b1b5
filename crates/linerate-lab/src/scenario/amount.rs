//! Amounts as a scenario writes them: `1G`, `60ms`, `1.5MB`, `1x`.
//!
//! Stricter than the command line, since a file outlives the moment in which a letter was clear: a time and
//! a size name their unit, and nothing between bits and bytes is guessed.

use linerate_document::{DocumentError, Value};
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::path::Probability;

/// Splits `12.5 Mbit/s` into number and unit.
fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number = digits
        .parse::<f64>()
        .map_err(|_| "does not begin with a number".to_owned())?;
    Ok((number, unit.trim_start()))
}

/// `number × factor` as a whole number.
fn scale(number: f64, factor: f64) -> Result<u64, String> {
    let value = number * factor;
    if value >= 9.2e18 {
        return Err("too large".to_owned());
    }
    Ok(linerate_model::units::whole(value))
}

/// A rate: bit/s, with k, M or G of 1000.
pub(crate) fn bits(text: &str) -> Result<BitRate, String> {
    let (number, unit) = split(text)?;
    let prefix = unit.strip_suffix("bit/s").unwrap_or(unit);
    let factor = match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return Err(wrong_rate_unit(number, unit)),
    };
    scale(number, factor).map(BitRate)
}

fn wrong_rate_unit(number: f64, unit: &str) -> String {
    let letter = unit.chars().next().unwrap_or_default();
    if unit.contains('B') {
        format!(
            "'{unit}' reads as bytes, and rates are in bit/s: say {number}{letter} for {number} {letter}bit/s"
        )
    } else if matches!(unit, "kb" | "Kb" | "Mb" | "Gb" | "kbps" | "Mbps" | "Gbps") {
        format!("'{unit}' is easily taken for bytes: say {number}{letter} or {number}{letter}bit/s")
    } else {
        format!("'{unit}' is none of k, M, G (of 1000 bit/s)")
    }
}

/// A size: bytes, with kB, MB, GB of 1000 or KiB, MiB, GiB of 1024.
fn bytes(text: &str) -> Result<Bytes, String> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" | "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "k" | "K" | "KB" => return Err(format!("'{unit}' may mean 1000 or 1024: say kB or KiB")),
        "M" | "G" => {
            return Err(format!(
                "'{unit}' may mean a power of 1000 or of 1024: say {unit}B or {unit}iB"
            ));
        }
        _ => {
            return Err(format!(
                "'{unit}' is none of B, kB, MB, GB (of 1000), KiB, MiB, GiB (of 1024)"
            ));
        }
    };
    scale(number, factor).map(Bytes)
}

/// A time: ns, us, ms, s or min.
fn nanos(text: &str) -> Result<Nanos, String> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "" if number == 0.0 => 1.0,
        "" => return Err(format!("no unit: say {number}ms or {number}s")),
        _ => return Err(format!("'{unit}' is none of us, ms, s, min")),
    };
    scale(number, factor).map(Nanos)
}

/// How long a queue is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum QueueSize {
    /// In bytes.
    Bytes(Bytes),
    /// As a multiple of rate × round trip at the start.
    Multiple(f64),
}

/// A size, or a multiple such as `0.5x`.
pub(super) fn queue(text: &str) -> Result<QueueSize, String> {
    match text.trim().strip_suffix('x') {
        Some(number) => {
            let (number, rest) = split(number)?;
            if !rest.is_empty() || number > 1000.0 {
                return Err("a multiple of rate × rtt is a number up to 1000 and an x".to_owned());
            }
            Ok(QueueSize::Multiple(number))
        }
        None => bytes(text).map(QueueSize::Bytes),
    }
}

/// A share from 0 to 1.
pub(super) fn share(value: &Value<'_>) -> Result<Probability, DocumentError> {
    let share = Probability::new(value.number()?);
    share.ok_or_else(|| value.wrong("not between 0 and 1"))
}

/// A rate that a lab can make.
pub(crate) fn rate(value: &Value<'_>) -> Result<BitRate, DocumentError> {
    let rate = value.amount(bits)?;
    let beyond = !(1000..=400_000_000_000).contains(&rate.0);
    value.refuse(beyond, "a rate is at least 1 kbit/s and at most 400 Gbit/s")?;
    Ok(rate)
}

/// A size in bytes.
pub(super) fn size(value: &Value<'_>) -> Result<Bytes, DocumentError> {
    value.amount(bytes)
}

/// A time no longer than `most`.
pub(crate) fn span(value: &Value<'_>, most: Nanos) -> Result<Nanos, DocumentError> {
    let span = value.amount(nanos)?;
    value.refuse(span > most, format!("longer than {most}"))?;
    Ok(span)
}

/// A time above 0, no longer than `most`.
pub(crate) fn positive_span(value: &Value<'_>, most: Nanos) -> Result<Nanos, DocumentError> {
    let span = span(value, most)?;
    value.refuse(span == Nanos::ZERO, "must be above 0")?;
    Ok(span)
}

/// `None` where the value is the text `off`.
pub(super) fn unless<'a, T>(
    off: &str,
    read: impl FnOnce(&Value<'a>) -> Result<T, DocumentError>,
) -> impl FnOnce(&Value<'a>) -> Result<Option<T>, DocumentError> {
    move |value| match value.text() {
        Ok(text) if text == off => Ok(None),
        _ => read(value).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read() {
        assert_eq!(bits("1G"), Ok(BitRate(1_000_000_000)));
        assert_eq!(bits("2.5 Gbit/s"), Ok(BitRate(2_500_000_000)));
        assert_eq!(bits("64000"), Ok(BitRate(64_000)));
        assert_eq!(bytes("1.5MB"), Ok(Bytes(1_500_000)));
        assert_eq!(bytes("64 KiB"), Ok(Bytes(65_536)));
        assert_eq!(nanos("60ms"), Ok(Nanos(60_000_000)));
        assert_eq!(nanos("2us"), nanos("2 µs"));
        assert_eq!(nanos("0"), Ok(Nanos::ZERO));
        assert_eq!(queue("1x"), Ok(QueueSize::Multiple(1.0)));
        assert_eq!(queue("1.5MB"), Ok(QueueSize::Bytes(Bytes(1_500_000))));
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        for (refused, hint) in [
            (bits("1Gb").err(), "say 1G"),
            (bits("1GB").err(), "bytes"),
            (bits("100Mbps").err(), "say 100M"),
            (bits("1T").err(), "none of k, M, G"),
            (bits("fast").err(), "begin with a number"),
            (bits("99999999999G").err(), "too large"),
            (bits("1.2.3M").err(), "begin with a number"),
            (bytes("64K").err(), "kB or KiB"),
            (bytes("4M").err(), "MB or MiB"),
            (bytes("4Mbit").err(), "none of B"),
            (nanos("60").err(), "60ms"),
            (nanos("60m").err(), "none of us, ms, s, min"),
            (nanos("-1s").err(), "begin with a number"),
            (queue("1xx").err(), "multiple"),
            (queue("1000000x").err(), "up to 1000"),
        ] {
            let text = refused.unwrap_or_default();
            assert!(text.contains(hint), "'{text}' lacks '{hint}'");
        }
    }
}
