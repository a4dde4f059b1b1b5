//! A document and its tables.

use std::collections::BTreeMap;

use linerate_model::nearest::{self, nearest};
use toml::Spanned;
use toml::de::{DeString, DeTable};

use crate::value::Value;
use crate::{DocumentError, Section};

type Result<T> = std::result::Result<T, DocumentError>;

/// A text that is TOML.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    sections: &'static [&'static Section],
    entries: DeTable<'a>,
}

impl<'a> Document<'a> {
    /// Parses a text; `file` is its name in messages. `sections` are those of the document that stand for themselves: a
    /// message about a key in the wrong place names the right one of them.
    ///
    /// # Errors
    /// [`DocumentError::Syntax`].
    pub fn parse(
        file: &'a str,
        text: &'a str,
        sections: &'static [&'static Section],
    ) -> Result<Self> {
        let entries = DeTable::parse(text).map_err(|error| DocumentError::Syntax {
            file: file.to_owned(),
            line: line(text, error.span().map_or(0, |span| span.start)),
            reason: error.message().to_owned(),
        })?;
        Ok(Self {
            file,
            text,
            sections,
            entries: entries.into_inner(),
        })
    }

    /// The top of the document.
    ///
    /// # Errors
    /// [`DocumentError::UnknownKey`].
    pub fn top(&'a self, section: &'static Section) -> Result<Table<'a>> {
        Table::new(self, section, &self.entries, 0)
    }

    /// An error about settings that cannot be combined, or about the document as a whole.
    pub fn contradiction(&self, reason: impl Into<String>) -> DocumentError {
        DocumentError::Contradiction {
            file: self.file.to_owned(),
            reason: reason.into(),
        }
    }

    /// The line of a place in the text, from 1 on.
    pub(crate) fn line(&self, at: usize) -> usize {
        line(self.text, at)
    }
}

fn line(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    1 + before.bytes().filter(|byte| *byte == b'\n').count()
}

/// A table all of whose keys are known.
#[derive(Debug, Clone)]
pub struct Table<'a> {
    document: &'a Document<'a>,
    section: &'static Section,
    line: usize,
    values: BTreeMap<&'a str, Value<'a>>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(
        document: &'a Document<'a>,
        section: &'static Section,
        entries: &'a DeTable<'a>,
        at: usize,
    ) -> Result<Self> {
        let mut table = Self {
            document,
            section,
            line: document.line(at),
            values: BTreeMap::new(),
        };
        for (key, found) in entries {
            let name = key.get_ref().as_ref();
            let known = section.key(name).ok_or_else(|| table.unknown(key))?;
            let value = Value::new(document, name, known.holds, found);
            table.values.insert(name, value);
        }
        Ok(table)
    }

    fn unknown(&self, key: &Spanned<DeString<'_>>) -> DocumentError {
        let typed = key.get_ref().as_ref();
        let known: Vec<&str> = self.section.names().collect();
        let mut sections = self.document.sections.iter();
        let elsewhere = sections.find(|section| section.key(typed).is_some());
        let hint = match (nearest(typed, known.iter().copied()), elsewhere) {
            (None, Some(section)) => format!("it belongs to {}", section.title),
            _ => nearest::hint(typed, &known),
        };
        DocumentError::UnknownKey {
            file: self.document.file.to_owned(),
            line: self.document.line(key.span().start),
            section: self.section.title,
            key: typed.to_owned(),
            hint,
        }
    }

    /// This table, with the values of `base` for those of its keys that this one does not have and that `keep` names.
    #[must_use]
    pub fn over(&self, base: &Self, keep: impl Fn(&str) -> bool) -> Self {
        let mut both = self.clone();
        for (name, value) in base.values.iter().filter(|(name, _)| keep(name)) {
            both.values.entry(name).or_insert_with(|| value.clone());
        }
        both
    }

    /// The value of a key.
    pub fn value(&self, name: &str) -> Option<&Value<'a>> {
        self.values.get(name)
    }

    /// All values, in the order of their keys' names.
    pub fn values(&self) -> impl Iterator<Item = &Value<'a>> {
        self.values.values()
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// [`DocumentError::Missing`].
    pub fn needed(&self, name: &'static str) -> Result<&Value<'a>> {
        self.value(name).ok_or_else(|| DocumentError::Missing {
            file: self.document.file.to_owned(),
            line: self.line,
            section: self.section.title,
            key: name,
            expected: self.section.key(name).map_or("", |key| key.holds),
        })
    }

    /// The value of a key, read by `read`; `None` where the key is absent.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Value<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.value(name).map(read).transpose()
    }

    /// The same, with a value for a key that is absent.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn or<T>(
        &self,
        name: &str,
        default: T,
        read: impl FnOnce(&Value<'a>) -> Result<T>,
    ) -> Result<T> {
        Ok(self.read(name, read)?.unwrap_or(default))
    }

    /// The table that a key holds; one without values where the key is absent.
    ///
    /// # Errors
    /// It is not a table, and [`DocumentError::UnknownKey`].
    pub fn table(&self, name: &str, section: &'static Section) -> Result<Self> {
        let absent = Self {
            section,
            values: BTreeMap::new(),
            ..self.clone()
        };
        self.or(name, absent, |value| value.table(section))
    }

    /// The elements of a list, each read by `read`; none where the key is absent.
    ///
    /// # Errors
    /// It is not a list, and those of `read`.
    pub fn read_all<T>(
        &self,
        name: &str,
        read: impl FnMut(&Value<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let list = self.read(name, Value::list)?.unwrap_or_default();
        list.iter().map(read).collect()
    }
}
