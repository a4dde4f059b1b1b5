//! A value of a document, read as a type.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use linerate_model::nearest;
use toml::Spanned;
use toml::de::DeValue;

use crate::{Document, DocumentError, Section, Table};

type Result<T> = std::result::Result<T, DocumentError>;

/// A value with its key. What cannot be read is a [`DocumentError::Value`].
#[derive(Debug, Clone)]
pub struct Value<'a> {
    document: &'a Document<'a>,
    name: Cow<'a, str>,
    expected: &'static str,
    found: &'a Spanned<DeValue<'a>>,
}

impl<'a> Value<'a> {
    pub(crate) fn new(
        document: &'a Document<'a>,
        name: impl Into<Cow<'a, str>>,
        expected: &'static str,
        found: &'a Spanned<DeValue<'a>>,
    ) -> Self {
        Self {
            document,
            name: name.into(),
            expected,
            found,
        }
    }

    /// Its key.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its line, from 1 on.
    pub fn line(&self) -> usize {
        self.document.line(self.found.span().start)
    }

    /// The value as it was typed.
    pub fn raw(&self) -> &'a str {
        let text = self.document.text;
        text.get(self.found.span()).unwrap_or_default()
    }

    /// An error about this value.
    pub fn wrong(&self, reason: impl Into<String>) -> DocumentError {
        let (first, rest) = self.raw().split_once('\n').unwrap_or((self.raw(), ""));
        let more = if rest.is_empty() { "" } else { " …" };
        DocumentError::Value {
            file: self.document.file.to_owned(),
            line: self.line(),
            key: self.name.clone().into_owned(),
            found: words(first) + more,
            reason: reason.into(),
            expected: self.expected,
        }
    }

    /// A text, as it is.
    ///
    /// # Errors
    /// It is something else; likewise for all that follow.
    pub fn text(&self) -> Result<&'a str> {
        match self.found.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong("not a text in quotation marks")),
        }
    }

    /// The words of a text, with single blanks between them.
    pub fn words(&self) -> Result<String> {
        self.text().map(words)
    }

    /// A text that `T` reads, blanks around it left out.
    pub fn parsed<T: FromStr<Err: Display>>(&self) -> Result<T> {
        let parsed = self.text()?.trim().parse();
        parsed.map_err(|error: T::Err| self.wrong(error.to_string()))
    }

    /// One of some words, as what it stands for.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T> {
        let typed = self.text()?;
        let found = words.iter().find(|(word, _)| *word == typed);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(format!("unknown word; {}", nearest::hint(typed, &known)))
        })
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Result<bool> {
        let boolean = self.found.get_ref().as_bool();
        boolean.ok_or_else(|| self.wrong("neither true nor false"))
    }

    /// A number, whole or not.
    pub fn number(&self) -> Result<f64> {
        let number = self.digits().and_then(|digits| digits.parse::<f64>().ok());
        let number = number.filter(|number| number.is_finite());
        number.ok_or_else(|| self.wrong("not a number"))
    }

    /// A whole number in a range.
    pub fn whole<T>(&self, range: RangeInclusive<T>) -> Result<T>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let number = match self.found.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                self.wrong(format!("not a whole number from {least} to {most}"))
            })
    }

    /// A text or a number, which `read` understands or says why not.
    pub fn amount<T>(
        &self,
        read: impl FnOnce(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        let typed = match self.found.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            _ => self.digits(),
        };
        let typed = typed.ok_or_else(|| self.wrong("neither a text nor a number"))?;
        read(typed).map_err(|reason| self.wrong(reason))
    }

    /// The digits of a decimal number.
    fn digits(&self) -> Option<&'a str> {
        match self.found.get_ref() {
            // Those of 0x10 are "10", which would be read as ten.
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str()),
            DeValue::Float(number) => Some(number.as_str()),
            _ => None,
        }
    }

    /// Whether it is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.found.get_ref(), DeValue::Table(_))
    }

    /// A table with the keys of a section.
    pub fn table(&self, section: &'static Section) -> Result<Table<'a>> {
        match self.found.get_ref() {
            DeValue::Table(entries) => {
                Table::new(self.document, section, entries, self.found.span().start)
            }
            _ => Err(self.wrong("not a table")),
        }
    }

    /// The entries of a table whose keys are the user's own.
    pub fn pairs(&self) -> Result<Vec<(&'a str, Self)>> {
        let DeValue::Table(entries) = self.found.get_ref() else {
            return Err(self.wrong("not a table"));
        };
        let pairs = entries.iter().map(|(key, found)| {
            let key = key.get_ref().as_ref();
            let name = format!("{}.\"{key}\"", self.name).into();
            let this = self.clone();
            (
                key,
                Self {
                    name,
                    found,
                    ..this
                },
            )
        });
        Ok(pairs.collect())
    }

    /// The elements of a list. What the key holds is said of the list and not of each of them.
    pub fn list(&self) -> Result<Vec<Self>> {
        match self.found.get_ref() {
            DeValue::Array(values) => {
                let element = |found| Self::new(self.document, self.name.clone(), "", found);
                Ok(values.iter().map(element).collect())
            }
            DeValue::Table(_) => Err(self.wrong(
                "not a list; a table that may appear several times has two brackets: [[…]]",
            )),
            _ => Err(self.wrong("not a list")),
        }
    }

    /// The elements of a list, or the value itself where it is none.
    pub fn elements(&self) -> Vec<Self> {
        self.list().unwrap_or_else(|_| vec![self.clone()])
    }
}

/// A text with single blanks between its words.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
