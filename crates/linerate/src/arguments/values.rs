//! Values of options: amounts, times, marks, CPUs.

use linerate_model::plan::Pace;
use linerate_model::units::{Bytes, Nanos};

/// A number of seconds, with a fraction if need be.
pub(crate) fn seconds(text: &str) -> Result<Nanos, String> {
    match text.trim_end_matches('s').parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(Nanos::from_secs_f64(seconds)),
        _ => Err("a number of seconds is wanted, such as 10 or 0.5".to_owned()),
    }
}

/// `sleep` or `spin`.
pub(super) fn pace(text: &str) -> Result<Pace, String> {
    match text {
        "sleep" => Ok(Pace::Sleep),
        "spin" => Ok(Pace::Spin),
        _ => Err("sleep or spin is wanted".to_owned()),
    }
}

/// `2%`, or `0.5%`: a bare number could be either a share or percent.
pub(super) fn precision(text: &str) -> Result<f64, String> {
    let digits = text.strip_suffix('%').map(str::trim);
    match digits.and_then(|digits| digits.parse::<f64>().ok()) {
        Some(percent) if percent.is_finite() && percent > 0.0 => Ok(percent / 100.0),
        _ => Err("a percentage is wanted, such as 2% or 0.5%".to_owned()),
    }
}

/// A time with its unit: 10ms, 2.5s, 1m; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Nanos, String> {
    let (number, scale) = match text {
        text if text.ends_with("us") => (&text[..text.len() - 2], 1e-6),
        text if text.ends_with("ms") => (&text[..text.len() - 2], 1e-3),
        text if text.ends_with('s') => (&text[..text.len() - 1], 1.0),
        text if text.ends_with('m') => (&text[..text.len() - 1], 60.0),
        text if text.ends_with('h') => (&text[..text.len() - 1], 3600.0),
        text => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => {
            Ok(Nanos::from_secs_f64(number * scale))
        }
        _ => Err("a time is wanted, such as 10ms, 2.5s or 1m".to_owned()),
    }
}

/// An amount with its unit spelled out: 65284.93754MiB, 68456MB, 4096; or with iperf's letters of 1024.
pub(super) fn amount(text: &str) -> Result<Bytes, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "B" => 1.0,
        "KiB" | "K" => 1024.0,
        "MiB" | "M" => 1_048_576.0,
        "GiB" | "G" => 1_073_741_824.0,
        "TiB" | "T" => 1_099_511_627_776.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => f64::NAN,
    };
    match digits.parse::<f64>().map(|number| number * factor) {
        Ok(bytes) if (0.0..9e18).contains(&bytes) => Ok(Bytes(linerate_model::units::whole(bytes))),
        _ => Err("an amount is wanted, such as 65284.93754MiB, 68456MB or 4096".to_owned()),
    }
}

/// `1536M:5632M:512M`.
pub(super) fn amounts(text: &str) -> Result<[Bytes; 3], String> {
    let parts: Vec<Bytes> = text.split(':').map(amount).collect::<Result<_, _>>()?;
    match parts.as_slice() {
        [first, last, step] if step.0 > 0 && first <= last => Ok([*first, *last, *step]),
        _ => Err("first, last and step are wanted, such as 1536M:5632M:512M".to_owned()),
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
    parsed.map_err(|_| "a number from 0 to 255 is wanted, decimal, 0x… or 0…".to_owned())
}

/// A DSCP value or its name (RFC 2474, 2597, 3246, 5865).
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
    match tos(text) {
        Ok(value) if value < 64 => Ok(value),
        _ => Err(
            "a number from 0 to 63 or one of af11 … af43, cs0 … cs7, ef, va, le is wanted"
                .to_owned(),
        ),
    }
}

/// `n` or `n,m`.
pub(super) fn affinity(text: &str) -> Result<(u16, Option<u16>), String> {
    let wrong = |_| {
        "CPU numbers are wanted: the client's, or the client's and the server's as in 2,3"
            .to_owned()
    };
    match text.split_once([',', '/']) {
        Some((client, server)) => Ok((
            client.parse().map_err(wrong)?,
            Some(server.parse().map_err(wrong)?),
        )),
        None => Ok((text.parse().map_err(wrong)?, None)),
    }
}
