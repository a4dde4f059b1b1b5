//! A number in a host name, with its leading zeros, and ranges of them.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use super::{MOST_NAMES, NodesError};

/// Longer numbers are refused.
const MOST_DIGITS: usize = 18;

/// Digits. Shorter ones come first, then those of lesser value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Number(String);

impl Number {
    /// `digits` is one to eighteen of them.
    pub(super) fn read(digits: &str) -> Result<Self, NodesError> {
        let refused = |why| NodesError::Range {
            range: digits.to_owned(),
            why,
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refused("a number is missing"));
        }
        if digits.len() > MOST_DIGITS {
            return Err(refused("a number has more than 18 digits"));
        }
        Ok(Self(digits.to_owned()))
    }

    pub(super) fn value(&self) -> u64 {
        // At most eighteen digits.
        self.0.parse().unwrap_or(u64::MAX)
    }

    pub(super) fn digits(&self) -> usize {
        self.0.len()
    }

    pub(super) fn padded(&self) -> bool {
        self.0.len() > 1 && self.0.starts_with('0')
    }

    /// With digits before and after it.
    pub(super) fn between(&self, before: &str, after: &str) -> Result<Self, NodesError> {
        Self::read(&format!("{before}{}{after}", self.0))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What stands in brackets: `01-64,70,72-80/2`.
pub(super) fn ranges(text: &str) -> Result<BTreeSet<Number>, NodesError> {
    let mut numbers = BTreeSet::new();
    for range in text.split(',') {
        add(range.trim(), &mut numbers)?;
        if numbers.len() > MOST_NAMES {
            return Err(NodesError::TooMany);
        }
    }
    Ok(numbers)
}

fn add(range: &str, numbers: &mut BTreeSet<Number>) -> Result<(), NodesError> {
    let refused = |why| NodesError::Range {
        range: range.to_owned(),
        why,
    };
    let (bounds, step) = match range.split_once('/') {
        Some((bounds, step)) => (bounds.trim(), Some(Number::read(step.trim())?.value())),
        None => (range, None),
    };
    let Some((from, to)) = bounds.split_once('-') else {
        if step.is_some_and(|step| step != 1) {
            return Err(refused("a step needs a first and a last number"));
        }
        numbers.insert(Number::read(bounds)?);
        return Ok(());
    };
    let (from, to) = (Number::read(from.trim())?, Number::read(to.trim())?);
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(refused("the step is zero"));
    }
    // A last number of zeros alone has no width of its own.
    let wide = from.padded() || (to.padded() && to.value() > 0);
    if wide && from.digits() != to.digits() {
        return Err(refused(
            "the first and the last number have different numbers of digits, and one begins with a zero",
        ));
    }
    if from.value() > to.value() {
        return Err(refused("the first number is larger than the last"));
    }
    if (to.value() - from.value()) / step >= MOST_NAMES as u64 {
        return Err(NodesError::TooMany);
    }
    let width = if from.padded() { from.digits() } else { 0 };
    let mut value = from.value();
    while value <= to.value() {
        numbers.insert(Number(format!("{value:0width$}")));
        value = value.saturating_add(step);
    }
    Ok(())
}
