//! Figures and strangers' strings as reports spell them.

use crate::chart::Unit;
use linerate_model::plain_text::PlainText;
use linerate_model::units::{BitRate, Nanos};
pub(crate) use linerate_model::units::{grouped as count, percent, whole};
pub(crate) use linerate_model::words::{when, with};

/// A share of time, in whole percent that say `<1 %` rather than hide.
pub(crate) fn time_share(share: f64) -> String {
    if share > 0.0 && share < 0.005 {
        "<1 %".to_owned()
    } else {
        format!("{:.0} %", share * 100.0)
    }
}

/// A rate: `95.3 Mbit/s`.
pub(crate) fn rate(bps: u64) -> String {
    BitRate(bps).to_string()
}

/// Two ends of an interval of rates in the unit of the upper one, with as many digits as tell them
/// apart, at most six: `95.2 to 95.4 Mbit/s`, `941.48 to 941.52 Mbit/s`.
pub(crate) fn rates(low: u64, high: u64) -> String {
    interval(low as f64, high as f64, |value, places| {
        format!("{value:.places$}")
    })
}

/// The same of a difference: `+796.9 to +797.5 Mbit/s`, `−12.0 to +8.0 Mbit/s`.
pub(crate) fn signed_rates(low: i64, high: i64) -> String {
    interval(low as f64, high as f64, |value, places| {
        format!("{value:+.places$}").replace('-', "−")
    })
}

fn interval(low: f64, high: f64, print: impl Fn(f64, usize) -> String) -> String {
    // Three digits of 999.5 and more are 1000, which have the next unit.
    let (unit, scale) = Unit::Rate.prefix(low.abs().max(high.abs()) / 0.9995);
    let (low, high) = (low / scale, high / scale);
    let before = low.abs().max(high.abs()).max(1.0).log10().floor();
    let mut pair = (String::new(), String::new());
    for digits in [3.0, 4.0, 5.0, 6.0_f64] {
        let places = usize::try_from(whole(digits - 1.0 - before)).unwrap_or(0);
        pair = (print(low, places), print(high, places));
        if pair.0 != pair.1 {
            break;
        }
    }
    format!("{} to {} {unit}", pair.0, pair.1)
}

/// A time in seconds with two decimals: `10.02 s`.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{:.2} s", Nanos(ns).as_secs_f64())
}

/// A time in microseconds: `12.0 ms`.
pub(crate) fn micros(us: f64) -> String {
    Nanos(whole(us * 1e3)).to_string()
}

/// A value in words, or that it is not known.
pub(crate) fn known<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "not known".to_owned(), words)
}

/// A string that is not yet [`PlainText`], as one line.
pub(crate) fn plain(text: &str) -> String {
    PlainText::from(text).into()
}

/// A name in at most `most` characters: what is too long loses its middle, since names differ at either end.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    let kept = most.saturating_sub(1);
    let behind = kept / 2;
    let front = name.chars().take(kept - behind);
    let back = name.chars().skip(count - behind);
    front.chain(['…']).chain(back).collect()
}

/// A number that JSON can hold.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_rates_has_one_unit() {
        assert_eq!(rates(952_000_000, 1_020_000_000), "0.95 to 1.02 Gbit/s");
        assert_eq!(rates(95_200_000, 95_400_000), "95.2 to 95.4 Mbit/s");
        assert_eq!(rates(0, 12), "0.0 to 12.0 bit/s");
        assert_eq!(
            signed_rates(796_840_000, 797_460_000),
            "+796.8 to +797.5 Mbit/s"
        );
        assert_eq!(
            signed_rates(-1_200_000_000, 8_000_000),
            "−1.20 to +0.01 Gbit/s"
        );
        assert_eq!(rates(941_480_000, 941_520_000), "941 to 942 Mbit/s");
        assert_eq!(rates(941_480_000, 941_490_000), "941.48 to 941.49 Mbit/s");
        assert_eq!(rates(7, 7), "7.00000 to 7.00000 bit/s");
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(shortened("node01.example", 14), "node01.example");
        assert_eq!(shortened("rack-a-node01.example", 9), "rack…mple");
        assert_eq!(shortened("über", 3), "ü…r");
        assert_eq!(shortened("ab", 1), "…");
        assert_eq!(shortened("ab", 0), "…");
    }

    #[test]
    fn small_shares_do_not_vanish() {
        assert_eq!(percent(0.0014), "0.14 %");
        assert_eq!(percent(0.000_000_15), "0.000015 %");
        assert_eq!(time_share(0.001), "<1 %");
        assert_eq!(time_share(0.0), "0 %");
    }

    #[test]
    fn a_stranger_s_escape_sequence_stays_a_character() {
        assert_eq!(plain("a\x1b[2Jb\n"), r"a\u{1b}[2Jb\n");
    }
}
