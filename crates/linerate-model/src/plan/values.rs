//! Values of options as people type them: times, marks, CPUs, shares.

use crate::plan::Pace;
use crate::units::Nanos;

/// A number of seconds, with a fraction if need be: `10`, `0.5`, `3s`.
///
/// # Errors
/// What is expected instead, as for the others here.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    match text.trim_end_matches('s').parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(Nanos::from_secs_f64(seconds)),
        _ => Err("expected a number of seconds, such as 10 or 0.5".to_owned()),
    }
}

/// A time with its unit: 10ms, 2.5s, 1m; a bare number is seconds.
///
/// # Errors
/// What is expected instead.
pub fn duration(text: &str) -> Result<Nanos, String> {
    let units = [
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let (number, scale) = units
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
        .unwrap_or((text, 1.0));
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => {
            Ok(Nanos::from_secs_f64(number * scale))
        }
        _ => Err("expected a time, such as 10ms, 2.5s or 1m".to_owned()),
    }
}

/// `sleep` or `spin`.
pub(super) fn pace(text: &str) -> Result<Pace, String> {
    match text {
        "sleep" => Ok(Pace::Sleep),
        "spin" => Ok(Pace::Spin),
        _ => Err("expected sleep or spin".to_owned()),
    }
}

/// A share of 1 as `2%` or `0.5%`: a bare number could be either a share or percent.
///
/// # Errors
/// Any other text.
pub fn precision(text: &str) -> Result<f64, String> {
    let digits = text.strip_suffix('%').map(str::trim);
    match digits.and_then(|digits| digits.parse::<f64>().ok()) {
        Some(percent) if percent.is_finite() && percent > 0.0 => Ok(percent / 100.0),
        _ => Err("expected a percentage, such as 2% or 0.5%".to_owned()),
    }
}

/// A byte in decimal, hexadecimal or octal, as iperf3 reads it.
pub(super) fn tos(text: &str) -> Result<u8, String> {
    let parsed = if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        u8::from_str_radix(hex, 16)
    } else if text.len() > 1 && text.starts_with('0') {
        u8::from_str_radix(&text[1..], 8)
    } else {
        text.parse()
    };
    parsed.map_err(|_| "expected a number from 0 to 255, decimal, 0x… or 0…".to_owned())
}

/// A DSCP value or its name (RFC 2474, 2597, 3246, 5865, 8622).
pub(super) fn dscp(text: &str) -> Result<u8, String> {
    let lower = text.to_ascii_lowercase();
    let digit = |at: usize| lower.as_bytes().get(at).map(|byte| byte.wrapping_sub(b'0'));
    match (lower.as_str(), lower.len()) {
        ("ef", _) => return Ok(46),
        ("va", _) => return Ok(44),
        ("le", _) => return Ok(1),
        (name, 3) if name.starts_with("cs") => {
            if let Some(class @ 0..=7) = digit(2) {
                return Ok(class << 3);
            }
        }
        (name, 4) if name.starts_with("af") => {
            if let (Some(class @ 1..=4), Some(drop @ 1..=3)) = (digit(2), digit(3)) {
                return Ok(class << 3 | drop << 1);
            }
        }
        _ => {}
    }
    tos(text).ok().filter(|value| *value < 64).ok_or_else(|| {
        "expected a number from 0 to 63 or one of af11 … af43, cs0 … cs7, ef, va, le".to_owned()
    })
}

/// `n` or `n,m`.
pub(super) fn affinity(text: &str) -> Result<(u16, Option<u16>), String> {
    let (client, server) = match text.split_once([',', '/']) {
        Some((client, server)) => (client, Some(server)),
        None => (text, None),
    };
    let cpu = |text: &str| {
        text.parse().map_err(|_| {
            "expected CPU numbers: the client's, or the client's and the server's as in 2,3"
                .to_owned()
        })
    };
    Ok((cpu(client)?, server.map(cpu).transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dscp_names_have_their_values() {
        for (name, value) in [
            ("ef", 46),
            ("cs1", 8),
            ("af11", 10),
            ("af43", 38),
            ("0x2e", 46),
            ("63", 63),
        ] {
            assert_eq!(dscp(name), Ok(value), "{name}");
        }
        for wrong in ["64", "af44", "af50", "cs8", "x"] {
            assert!(dscp(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, ns) in [
            ("250us", 250_000),
            ("10ms", 10_000_000),
            ("2.5s", 2_500_000_000),
            ("1m", 60_000_000_000),
            ("1h", 3_600_000_000_000),
            ("3", 3_000_000_000),
        ] {
            assert_eq!(duration(text), Ok(Nanos(ns)), "{text}");
        }
        for wrong in ["", "s", "-1s", "1d", "nans"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
