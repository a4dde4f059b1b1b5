//! iperf3's ways of reading numbers: they take what stands at the beginning and pass over the rest.
//!
//! Where there is no number at all, iperf3 reads a zero; here that is refused, but for the time of a test and the
//! intervals.

use std::num::IntErrorKind;

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The sign's length: 0 or 1.
fn sign(text: &str) -> usize {
    usize::from(text.starts_with(['+', '-']))
}

/// As `atoi` of the C library of GNU: a whole decimal number, of which the lowest 32 bits count.
pub(super) fn whole(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let end = sign(text) + digits(&text[sign(text)..]);
    let number: i64 = match text[..end].parse::<i64>() {
        Ok(number) => number,
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => i64::MAX,
        Err(error) if *error.kind() == IntErrorKind::NegOverflow => i64::MIN,
        Err(_) => return None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "as the C library does, with which scripts were tried"
    )]
    let number = i64::from(number as i32);
    Some(number)
}

/// As `atof` where a text without a number is a zero; what is infinite, or not a number, is nothing.
pub(super) fn decimal_or_zero(text: &str) -> Option<f64> {
    let unsigned = text.trim_start().trim_start_matches(['+', '-']);
    let starts_with = |name: &str| {
        unsigned
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    if starts_with("inf") || starts_with("nan") {
        return None;
    }
    Some(decimal(text).map_or(0.0, |(number, _)| number))
}

/// As `strtol` with base 0: decimal, `0x` hexadecimal or `0` octal; and what follows the number.
pub(super) fn any_base(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start();
    let body = &text[sign(text)..];
    let (radix, prefix) = match body.as_bytes() {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => (16, 2),
        [b'0', ..] => (8, 0),
        _ => (10, 0),
    };
    let length = body[prefix..]
        .chars()
        .take_while(|c| c.is_digit(radix))
        .count();
    let magnitude = i64::from_str_radix(&body[prefix..prefix + length], radix).ok()?;
    let number = if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    };
    Some((number, &body[prefix + length..]))
}

/// As `atof`: a decimal number with fraction and exponent, `.3` too; and what follows it.
fn decimal(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let mut end = sign(text);
    end += digits(&text[end..]);
    if text[end..].starts_with('.') {
        end += 1 + digits(&text[end + 1..]);
    }
    if text[end..].starts_with(['e', 'E']) {
        let exponent = end + 1 + sign(&text[end + 1..]);
        if digits(&text[exponent..]) > 0 {
            end = exponent + digits(&text[exponent..]);
        }
    }
    let number = text[..end].parse::<f64>().ok();
    Some((number.filter(|number| number.is_finite())?, &text[end..]))
}

/// A size (`base` 1024) or rate (`base` 1000) with at most one of K, M, G, T.
pub(super) fn amount(text: &str, base: u32) -> Option<u64> {
    let (number, rest) = decimal(text)?;
    let power = match rest.chars().next() {
        None => 0,
        Some('k' | 'K') => 1,
        Some('m' | 'M') => 2,
        Some('g' | 'G') => 3,
        Some('t' | 'T') => 4,
        Some(_) => return None,
    };
    let value = number * f64::from(base).powi(power);
    if !(0.0..9.2e18).contains(&value) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "within the bounds checked above; iperf3 truncates too"
    )]
    let number = value as u64;
    Some(number)
}

/// A DSCP name, or its number from 0 to 63; the answer is the type-of-service byte.
pub(super) fn dscp(text: &str) -> Option<u8> {
    let name = text.to_ascii_lowercase();
    let class = |text: &str| {
        text.parse::<u8>()
            .ok()
            .filter(|number| text.len() == 1 && *number < 8)
    };
    match name.as_str() {
        "ef" => return Some(46 << 2),
        "va" => return Some(44 << 2),
        "lowdelay" => return Some(0x10),
        "throughput" => return Some(0x08),
        "reliability" => return Some(0x04),
        _ => {}
    }
    if let Some(selector) = name.strip_prefix("cs").and_then(class) {
        return Some(selector << 5);
    }
    // RFC 2597: afxy is 8x + 2y.
    if let Some([x @ b'1'..=b'4', y @ b'1'..=b'3']) = name.strip_prefix("af").map(str::as_bytes) {
        return Some(((x - b'0') * 8 + (y - b'0') * 2) << 2);
    }
    let (number, rest) = any_base(text)?;
    u8::try_from(number)
        .ok()
        .filter(|number| *number < 64 && rest.is_empty())
        .map(|number| number << 2)
}
