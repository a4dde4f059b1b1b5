//! A TOML document that is read so that whatever is wrong in it is named with its line.

use std::ops::{Range, RangeInclusive};

use linerate_model::nearest;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Why a document cannot be used. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is no TOML.
    #[error("{file}:{line}: this is not TOML: {reason}")]
    Syntax {
        /// The file, as the caller named it.
        file: String,
        /// The line.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A key that is not known there.
    #[error("{file}:{line}: {section} has no key '{key}': {hint}")]
    UnknownKey {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// Where it stands.
        section: &'static str,
        /// The key as it was typed.
        key: String,
        /// What was probably meant.
        hint: String,
    },
    /// A value that cannot be.
    #[error("{file}:{line}: {key} = {found}: {reason}")]
    Value {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// The key.
        key: String,
        /// The value as it was typed: its first line.
        found: String,
        /// What is wrong with it, and what would do.
        reason: String,
    },
}

type Result<T> = std::result::Result<T, DocumentError>;

/// A key with its place.
pub type Key<'a> = Spanned<DeString<'a>>;
/// A value with its place.
pub type Value<'a> = Spanned<DeValue<'a>>;

/// The text that is read, and its name.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The file, as messages name it.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl<'t> Document<'t> {
    /// The whole of it.
    ///
    /// # Errors
    /// [`DocumentError::Syntax`].
    pub fn top(&self) -> Result<Spanned<DeTable<'t>>> {
        DeTable::parse(self.text).map_err(|error| DocumentError::Syntax {
            file: self.file.to_owned(),
            line: self.line(&error.span().unwrap_or_default()),
            reason: error.message().to_owned(),
        })
    }

    /// The line of a place in the text, from 1 on.
    pub fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        1 + before.bytes().filter(|byte| *byte == b'\n').count()
    }

    /// A value as it was typed.
    pub fn raw(&self, value: &Value<'_>) -> &'t str {
        self.text.get(value.span()).unwrap_or_default()
    }

    /// An error about a key that is none of those known.
    pub fn unknown(&self, section: &'static str, key: &Key<'_>, known: &[&str]) -> DocumentError {
        let typed = key.get_ref().as_ref();
        DocumentError::UnknownKey {
            file: self.file.to_owned(),
            line: self.line(&key.span()),
            section,
            key: typed.to_owned(),
            hint: nearest::hint(typed, known),
        }
    }

    /// An error about a value.
    pub fn wrong(&self, key: &str, value: &Value<'_>, reason: impl Into<String>) -> DocumentError {
        DocumentError::Value {
            file: self.file.to_owned(),
            line: self.line(&value.span()),
            key: key.to_owned(),
            found: words(self.raw(value).lines().next().unwrap_or_default()),
            reason: reason.into(),
        }
    }

    /// Refuses a table with a key that is none of those known.
    ///
    /// # Errors
    /// [`DocumentError::UnknownKey`].
    pub fn known(&self, section: &'static str, table: &DeTable<'_>, known: &[&str]) -> Result<()> {
        let unknown = table
            .keys()
            .find(|key| !known.contains(&key.get_ref().as_ref()));
        unknown.map_or(Ok(()), |key| Err(self.unknown(section, key, known)))
    }

    /// A table.
    ///
    /// # Errors
    /// It is something else, as for those below.
    pub fn table<'v, 'x>(&self, key: &str, value: &'v Value<'x>) -> Result<&'v DeTable<'x>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.wrong(key, value, "it is no table")),
        }
    }

    /// A list.
    pub fn list<'v, 'x>(&self, key: &str, value: &'v Value<'x>) -> Result<&'v [Value<'x>]> {
        match value.get_ref() {
            DeValue::Array(list) => Ok(list),
            _ => Err(self.wrong(key, value, "it is no list")),
        }
    }

    /// `true` or `false`.
    pub fn switch(&self, key: &str, value: &Value<'_>) -> Result<bool> {
        match value.get_ref() {
            DeValue::Boolean(on) => Ok(*on),
            _ => Err(self.wrong(key, value, "it is neither true nor false")),
        }
    }

    /// A text, as it is.
    pub fn text_of<'v>(&self, key: &str, value: &'v Value<'_>) -> Result<&'v str> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong(key, value, "it is no text in quotation marks")),
        }
    }

    /// The words of a text, with single blanks between them.
    pub fn words_of(&self, key: &str, value: &Value<'_>) -> Result<String> {
        self.text_of(key, value).map(words)
    }

    /// A text that is something else's.
    pub fn parsed<T>(&self, key: &str, value: &Value<'_>) -> Result<T>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        self.words_of(key, value)?
            .parse()
            .map_err(|error: T::Err| self.wrong(key, value, error.to_string()))
    }

    /// A whole number within bounds.
    pub fn whole(&self, key: &str, value: &Value<'_>, range: RangeInclusive<u64>) -> Result<u64> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                let reason = format!("it is no whole number from {least} to {most}");
                self.wrong(key, value, reason)
            })
    }
}

/// A text with its blanks made single.
pub(crate) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
