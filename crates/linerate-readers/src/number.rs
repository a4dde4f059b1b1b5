//! Printed numbers and their units.

use linerate_model::transcript::Printed;

/// A number with half of its last digit: `2.10` is 2.1 ± 0.005, `1.5e-05` is 1.5e-05 ± 0.05e-05.
pub(crate) fn printed(text: &str) -> Option<Printed> {
    let first = text
        .strip_prefix(['-', '+'])
        .unwrap_or(text)
        .chars()
        .next()?;
    if !(first.is_ascii_digit() || first == '.') || text.len() > 40 {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let places = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    let exponent: i32 = exponent.parse().ok()?;
    let places = i32::try_from(places).ok()?;
    let half = 0.5 * 10_f64.powi(exponent.checked_sub(places)?);
    (value.is_finite() && half.is_finite()).then_some(Printed { value, half })
}

/// The factor of a size: `MBytes`, `MByte`, `KBytes`, `Bytes`, `MiB`; iperf's letters are of 1024.
pub(crate) fn size_factor(unit: &str) -> Option<f64> {
    let stem = unit
        .strip_suffix("Bytes")
        .or_else(|| unit.strip_suffix("Byte"))
        .or_else(|| unit.strip_suffix("iB"))
        .or_else(|| unit.strip_suffix('B'))?;
    Some(match stem {
        "" => 1.0,
        "K" | "k" => 1024.0,
        "M" => 1_048_576.0,
        "G" => 1_073_741_824.0,
        "T" => 1_099_511_627_776.0,
        _ => return None,
    })
}

/// The factor of a rate to bit/s: `Mbits/sec`, `Gbits/sec`, `MBytes/sec`.
pub(crate) fn rate_factor(unit: &str) -> Option<f64> {
    let stem = unit
        .strip_suffix("/sec")
        .or_else(|| unit.strip_suffix("/s"))?;
    if stem.ends_with("Bytes") || stem.ends_with("Byte") {
        return size_factor(stem).map(|factor| factor * 8.0);
    }
    Some(
        match stem
            .strip_suffix("bits")
            .or_else(|| stem.strip_suffix("bit"))?
        {
            "" => 1.0,
            "K" | "k" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            _ => return None,
        },
    )
}

/// A size with its unit. Whole bytes are exact.
pub(crate) fn size(number: &str, unit: &str) -> Option<Printed> {
    let (number, factor) = (printed(number)?, size_factor(unit)?);
    if number.value < 0.0 {
        return None;
    }
    Some(if unit.starts_with("Byte") {
        Printed::exact(number.value)
    } else {
        number.times(factor)
    })
}

/// A rate with its unit, in bit/s.
pub(crate) fn rate(number: &str, unit: &str) -> Option<Printed> {
    let (number, factor) = (printed(number)?, rate_factor(unit)?);
    (number.value >= 0.0).then(|| number.times(factor))
}

/// What `-b 4000M` or `-w 256k` asks for, with letters of `base`.
pub(crate) fn lettered(text: &str, base: f64) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].chars().next() {
        None => 0,
        Some('k' | 'K') => 1,
        Some('m' | 'M') => 2,
        Some('g' | 'G') => 3,
        Some('t' | 'T') => 4,
        Some(_) => return None,
    };
    let value: f64 = digits.parse().ok()?;
    (value.is_finite() && value >= 0.0).then(|| value * base.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_say_how_much_is_known() {
        let two = printed("2.10").unwrap();
        assert_eq!((two.value, two.half), (2.1, 0.005));
        let tiny = printed("1.5e-05").unwrap();
        assert!((tiny.half - 0.5e-6).abs() < 1e-12);
        assert_eq!(printed("inf"), None);
        assert_eq!(printed("1-2"), None);
        assert_eq!(size("51200", "Byte"), Some(Printed::exact(51_200.0)));
        assert_eq!(
            rate("942", "Mbits/sec").map(|it| (it.value, it.half)),
            Some((942e6, 5e5))
        );
        assert_eq!(
            rate("1", "MBytes/sec").map(|it| (it.value, it.half)),
            Some((8_388_608.0, 4_194_304.0))
        );
        assert_eq!(lettered("256k", 1024.0), Some(262_144.0));
        assert_eq!(lettered("12Q", 1024.0), None);
    }
}
