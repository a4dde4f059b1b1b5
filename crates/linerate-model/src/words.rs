//! Shares in words, and parts of a sentence that stand there only sometimes.

/// A text where a condition holds; nothing else.
pub const fn when(condition: bool, text: &str) -> &str {
    if condition { text } else { "" }
}

/// A value in words; nothing where there is none.
pub fn with<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map(words).unwrap_or_default()
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
        format!("{percent:.*} %", places(digits))
    }
}

/// A number of digits for a format.
#[expect(clippy::cast_possible_truncation, reason = "a small number of digits")]
pub fn places(digits: f64) -> usize {
    digits as usize
}
