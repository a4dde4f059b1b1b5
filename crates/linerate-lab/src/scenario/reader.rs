//! Reads tables of a TOML document so that whatever is wrong is named with its line.

use std::ops::Range;

use linerate_model::nearest::nearest;
use linerate_model::units::{BitRate, Bytes, Nanos};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::amount::{self, QueueSize};
use super::error::ScenarioError;
use super::keys::Section;
use crate::path::Probability;

type Result<T> = std::result::Result<T, ScenarioError>;

/// The text that is read, and its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl<'a> Document<'a> {
    /// The line of a place in the text, from 1 on.
    pub(super) fn line(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or(self.text);
        1 + before.bytes().filter(|byte| *byte == b'\n').count()
    }

    /// The tables of the text.
    pub(super) fn parse(&self) -> Result<Spanned<DeTable<'a>>> {
        DeTable::parse(self.text).map_err(|error| ScenarioError::Syntax {
            file: self.file.to_owned(),
            line: self.line(error.span().map_or(0, |span| span.start)),
            reason: error.message().to_owned(),
        })
    }

    pub(super) fn contradiction(&self, reason: impl Into<String>) -> ScenarioError {
        ScenarioError::Contradiction {
            file: self.file.to_owned(),
            reason: reason.into(),
        }
    }
}

/// A table all of whose keys are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    document: &'a Document<'a>,
    section: &'static Section,
    entries: &'a DeTable<'a>,
    line: usize,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        document: &'a Document<'a>,
        section: &'static Section,
        entries: &'a DeTable<'a>,
        span: &Range<usize>,
    ) -> Result<Self> {
        let this = Self {
            document,
            section,
            entries,
            line: document.line(span.start),
        };
        let unknown = entries
            .keys()
            .find(|key| section.key(key.get_ref()).is_none());
        unknown.map_or(Ok(this), |key| Err(this.unknown(key)))
    }

    fn unknown(&self, key: &Spanned<toml::de::DeString<'_>>) -> ScenarioError {
        let typed = key.get_ref().as_ref();
        let elsewhere = super::keys::SECTIONS
            .iter()
            .find(|section| section.key(typed).is_some());
        let hint = match (nearest(typed, self.section.names()), elsewhere) {
            (Some(meant), _) => format!("did you mean '{meant}'?"),
            (None, Some(section)) => format!("it belongs to {}", section.title),
            (None, None) => format!(
                "it has {}",
                self.section.names().collect::<Vec<_>>().join(", ")
            ),
        };
        ScenarioError::UnknownKey {
            file: self.document.file.to_owned(),
            line: self.document.line(key.span().start),
            section: self.section.title,
            key: typed.to_owned(),
            hint,
        }
    }

    /// The value of a key.
    pub(super) fn value(&self, name: &'static str) -> Option<Value<'a>> {
        let (_, value) = self.entries.iter().find(|(key, _)| key.get_ref() == name)?;
        Some(Value {
            document: self.document,
            name: name.into(),
            expected: self.section.key(name).map_or("", |key| key.holds),
            found: value,
        })
    }

    /// The value of a key that must be there.
    pub(super) fn needed(&self, name: &'static str) -> Result<Value<'a>> {
        self.value(name).ok_or_else(|| ScenarioError::Missing {
            file: self.document.file.to_owned(),
            line: self.line,
            section: self.section.title,
            key: name,
            expected: self.section.key(name).map_or("", |key| key.holds),
        })
    }

    /// The value of a key, read by `read`, where it is there.
    pub(super) fn read<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Value<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.value(name).map(|value| read(&value)).transpose()
    }
}

/// Something that a file may switch off again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Switch<T> {
    Off,
    On(T),
}

impl<T> Switch<T> {
    pub(super) fn on(self) -> Option<T> {
        match self {
            Self::Off => None,
            Self::On(value) => Some(value),
        }
    }
}

/// A value with its key.
#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    document: &'a Document<'a>,
    name: std::borrow::Cow<'static, str>,
    expected: &'static str,
    found: &'a Spanned<DeValue<'a>>,
}

impl<'a> Value<'a> {
    /// An error about this value.
    pub(super) fn wrong(&self, reason: impl Into<String>) -> ScenarioError {
        let span = self.found.span();
        let typed = self.document.text.get(span.clone()).unwrap_or_default();
        ScenarioError::Value {
            file: self.document.file.to_owned(),
            line: self.document.line(span.start),
            key: self.name.clone().into_owned(),
            found: typed.split_whitespace().collect::<Vec<_>>().join(" "),
            reason: reason.into(),
            expected: self.expected,
        }
    }

    pub(super) fn text(&self) -> Result<&'a str> {
        match self.found.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong("it is no text in quotation marks")),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool> {
        self.as_boolean()
            .ok_or_else(|| self.wrong("it is neither true nor false"))
    }

    pub(super) fn as_boolean(&self) -> Option<bool> {
        self.found.get_ref().as_bool()
    }

    /// A number, whole or not.
    pub(super) fn number(&self) -> Result<f64> {
        let digits = match self.found.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("it is no number")),
        };
        let number = digits
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        number.ok_or_else(|| self.wrong("it is no number"))
    }

    /// A whole number within bounds.
    pub(super) fn whole(&self, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
        let number = match self.found.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                self.wrong(format!(
                    "it is no whole number from {} to {}",
                    range.start(),
                    range.end()
                ))
            })
    }

    /// A share from 0 to 1.
    pub(super) fn share(&self) -> Result<Probability> {
        Probability::new(self.number()?).ok_or_else(|| self.wrong("it is not between 0 and 1"))
    }

    /// A whole number as it is, or a text that `read` understands.
    fn amount<T>(&self, read: impl FnOnce(&str) -> std::result::Result<T, String>) -> Result<T> {
        let text = match self.found.get_ref() {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("it is neither a text nor a number")),
        };
        read(text).map_err(|reason| self.wrong(reason))
    }

    pub(super) fn rate(&self) -> Result<BitRate> {
        let rate = self.amount(amount::rate)?;
        if (1000..=400_000_000_000).contains(&rate.0) {
            Ok(rate)
        } else {
            Err(self.wrong("a rate is at least 1 kbit/s and at most 400 Gbit/s"))
        }
    }

    pub(super) fn size(&self) -> Result<Bytes> {
        self.amount(amount::size)
    }

    pub(super) fn queue(&self) -> Result<QueueSize> {
        self.amount(amount::queue)
    }

    /// A time no longer than `most`.
    pub(super) fn span(&self, most: Nanos) -> Result<Nanos> {
        let span = self.amount(amount::span)?;
        if span <= most {
            Ok(span)
        } else {
            Err(self.wrong(format!("it is longer than {most}")))
        }
    }

    /// A time above 0, no longer than `most`.
    pub(super) fn positive_span(&self, most: Nanos) -> Result<Nanos> {
        match self.span(most)? {
            Nanos::ZERO => Err(self.wrong("it is 0")),
            span => Ok(span),
        }
    }

    /// Off where the value is the text `word`.
    pub(super) fn unless<T>(
        &self,
        word: &str,
        read: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<Switch<T>> {
        match self.found.get_ref() {
            DeValue::String(text) if text == word => Ok(Switch::Off),
            _ => read(self).map(Switch::On),
        }
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T> {
        let typed = self.text()?;
        let found = words.iter().find(|(word, _)| *word == typed);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known = words.iter().map(|(word, _)| *word);
            let hint = nearest(typed, known).map_or(String::new(), |meant| {
                format!("; did you mean \"{meant}\"?")
            });
            self.wrong(format!("it is none of the known words{hint}"))
        })
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.found.get_ref(), DeValue::Table(_))
    }

    pub(super) fn table(&self, section: &'static Section) -> Result<Table<'a>> {
        match self.found.get_ref() {
            DeValue::Table(entries) => {
                Table::new(self.document, section, entries, &self.found.span())
            }
            _ => Err(self.wrong("it is no table")),
        }
    }

    /// The entries of a table whose keys are the user's own.
    pub(super) fn pairs(&self) -> Result<Vec<(String, Value<'a>)>> {
        let DeValue::Table(entries) = self.found.get_ref() else {
            return Err(self.wrong("it is no table"));
        };
        let pair = |(key, value): (&Spanned<toml::de::DeString<'a>>, &'a Spanned<DeValue<'a>>)| {
            let key = key.get_ref().clone().into_owned();
            let value = Value {
                name: format!("{}.\"{key}\"", self.name).into(),
                found: value,
                ..self.clone()
            };
            (key, value)
        };
        Ok(entries.iter().map(pair).collect())
    }

    /// The elements of a list, or the value itself where it is none.
    pub(super) fn elements(&self) -> Vec<Value<'a>> {
        match self.found.get_ref() {
            DeValue::Array(values) => values
                .iter()
                .map(|value| Value {
                    found: value,
                    ..self.clone()
                })
                .collect(),
            _ => vec![self.clone()],
        }
    }

    /// Whether it is a list.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.found.get_ref(), DeValue::Array(_))
    }
}
