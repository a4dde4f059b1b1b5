//! Values of `linerate explain`: amounts as other tools print them.

use linerate_model::plan::values::duration;
use linerate_model::units::{Bytes, Nanos};

/// What the runs of a diagnosis may take together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    Time(Nanos),
    Data(Bytes),
}

impl Default for Budget {
    fn default() -> Self {
        Self::Time(Nanos::from_millis(60_000))
    }
}

impl std::fmt::Display for Budget {
    /// As [`budget`] reads it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{}s", time.as_secs_f64()),
            Self::Data(bytes) => write!(f, "{}B", bytes.count()),
        }
    }
}

/// `90s`, `2min`, `2G`, `500MB`.
pub(crate) fn budget(text: &str) -> Result<Budget, String> {
    let time = duration(text).map(Budget::Time);
    let budget = time.or_else(|_| amount(text).map(Budget::Data));
    let some = |budget: &Budget| !matches!(budget, Budget::Time(Nanos(0)) | Budget::Data(Bytes(0)));
    budget.ok().filter(some).ok_or_else(|| {
        "expected a time, such as 90s, or an amount of data, such as 2G or 500MB".to_owned()
    })
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
        _ => Err("expected an amount, such as 65284.93754MiB, 68456MB or 4096".to_owned()),
    }
}

/// `1536M:5632M:512M`.
pub(super) fn amounts(text: &str) -> Result<[Bytes; 3], String> {
    let parts: Vec<Bytes> = text.split(':').map(amount).collect::<Result<_, _>>()?;
    match parts.as_slice() {
        [first, last, step] if step.0 > 0 && first <= last => Ok([*first, *last, *step]),
        _ => Err("expected first, last and step, such as 1536M:5632M:512M".to_owned()),
    }
}
