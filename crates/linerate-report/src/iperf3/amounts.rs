//! iperf3's ways of writing amounts, which it has from iperf2: at most four places, no sign of the base.

/// An amount of bytes (or bytes per second) in `format`: one of `kmgtKMGT`, `a` for the best unit in
/// bits, `A` for the best in bytes. Bits are counted in thousands, bytes in 1024s.
pub(crate) fn amount(bytes: f64, format: char) -> String {
    written(scaled(bytes, format), 2)
}

/// The same with three decimals below 1, as iperf2 has it since 2.1.
pub(crate) fn fine_amount(bytes: f64, format: char) -> String {
    written(scaled(bytes, format), 3)
}

/// A value, its unit's prefix and its unit.
fn scaled(bytes: f64, format: char) -> (f64, &'static str, &'static str) {
    let in_bytes = format.is_ascii_uppercase();
    let (base, mut value) = if in_bytes {
        (1024.0, bytes)
    } else {
        (1000.0, bytes * 8.0)
    };
    let fixed = "kmgt".find(format.to_ascii_lowercase()).map(|at| at + 1);
    let mut power = 0;
    while fixed.map_or(value >= base && power < 4, |fixed| power < fixed) {
        value /= base;
        power += 1;
    }
    let prefix = ["", "K", "M", "G", "T"][power];
    (value, prefix, if in_bytes { "Byte" } else { "bit" })
}

fn written((value, prefix, unit): (f64, &str, &str), most: usize) -> String {
    let decimals = match value {
        value if value < 0.9995 => most,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:4.decimals$} {prefix}{unit}")
}

/// As C's `%.2g`: two significant digits, no trailing zeros.
pub(crate) fn two_digits(value: f64) -> String {
    let scientific = format!("{value:.1e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        let trimmed = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            text
        };
        trimmed.to_owned()
    };
    if (-4..2).contains(&exponent) {
        let decimals = usize::try_from(1 - exponent).unwrap_or(0);
        return trim(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_as_iperf3_writes_them() {
        for (bytes, format, text) in [
            (0.0, 'A', "0.00 Byte"),
            (1_047_728.0, 'A', "1023 KByte"),
            (2_836_267_008.0, 'A', "2.64 GByte"),
            (32_768.0, 'A', "32.0 KByte"),
            (163_840.0, 'a', "1.31 Mbit"),
            (2.8e9, 'a', "22.4 Gbit"),
            (3_092_000_000.0, 'M', "2949 MByte"),
            (1000.0, 'k', "8.00 Kbit"),
            (916_762.0, 'A', " 895 KByte"),
            (2e18, 'A', "1818989 TByte"),
        ] {
            assert_eq!(amount(bytes, format), text);
        }
    }

    #[test]
    fn below_1_iperf2_has_three_decimals() {
        for (bytes, format, text) in [
            (0.0, 'a', "0.000 bit"),
            (15_625_000.0, 'g', "0.125 Gbit"),
            (100.0 * 1024.0, 'M', "0.098 MByte"),
            (163_840.0, 'a', "1.31 Mbit"),
        ] {
            assert_eq!(fine_amount(bytes, format), text);
        }
    }

    #[test]
    fn percentages_have_two_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (12.34, "12"),
            (99.6, "1e+02"),
            (100.0, "1e+02"),
            (0.123, "0.12"),
            (0.000_012, "1.2e-05"),
            (9.96, "10"),
        ] {
            assert_eq!(two_digits(value), text);
        }
    }
}
