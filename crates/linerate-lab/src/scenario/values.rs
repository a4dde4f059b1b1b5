//! Values of a scenario that have a unit.

use linerate_document::{DocumentError, Value};
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::amount::{self, QueueSize};
use crate::path::Probability;

type Result<T> = std::result::Result<T, DocumentError>;

/// A share from 0 to 1.
pub(super) fn share(value: &Value<'_>) -> Result<Probability> {
    let share = Probability::new(value.number()?);
    share.ok_or_else(|| value.wrong("not between 0 and 1"))
}

pub(super) fn rate(value: &Value<'_>) -> Result<BitRate> {
    let rate = value.amount(amount::rate)?;
    if (1000..=400_000_000_000).contains(&rate.0) {
        Ok(rate)
    } else {
        Err(value.wrong("a rate is at least 1 kbit/s and at most 400 Gbit/s"))
    }
}

pub(super) fn size(value: &Value<'_>) -> Result<Bytes> {
    value.amount(amount::size)
}

pub(super) fn queue(value: &Value<'_>) -> Result<QueueSize> {
    value.amount(amount::queue)
}

/// A time no longer than `most`.
pub(super) fn span(value: &Value<'_>, most: Nanos) -> Result<Nanos> {
    let span = value.amount(amount::span)?;
    if span <= most {
        Ok(span)
    } else {
        Err(value.wrong(format!("longer than {most}")))
    }
}

/// A time above 0, no longer than `most`.
pub(super) fn positive_span(value: &Value<'_>, most: Nanos) -> Result<Nanos> {
    match span(value, most)? {
        Nanos::ZERO => Err(value.wrong("must be above 0")),
        span => Ok(span),
    }
}

/// `None` where the value is the text `off`.
pub(super) fn unless<'a, T>(
    off: &str,
    read: impl FnOnce(&Value<'a>) -> Result<T>,
) -> impl FnOnce(&Value<'a>) -> Result<Option<T>> {
    move |value| match value.text() {
        Ok(text) if text == off => Ok(None),
        _ => read(value).map(Some),
    }
}
