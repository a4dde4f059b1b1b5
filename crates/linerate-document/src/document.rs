//! A document and its tables.

use std::collections::BTreeMap;

use linerate_model::nearest;
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

    /// Whether the document has this key at its top: it may tell which kind of document it is.
    pub fn has(&self, key: &str) -> bool {
        self.entries
            .keys()
            .any(|name| name.get_ref().as_ref() == key)
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
        let hint = elsewhere.map_or_else(
            || nearest::hint(typed, &known),
            |section| format!("it belongs to {}", section.title),
        );
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
            document: self.document,
            section,
            line: self.line,
            values: BTreeMap::new(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    const TOP: Section = Section::of(
        "the file",
        &[
            &[Key::of("name", "text"), Key::of("path", "[path]")],
            &[Key::of("many", "list of numbers")],
        ],
    );
    const PATH: Section = Section::of(
        "[path]",
        &[&[Key::of("rate", "bit/s"), Key::of("delay", "time")]],
    );

    fn document(text: &str) -> Document<'_> {
        Document::parse("x.toml", text, &[&TOP, &PATH]).unwrap()
    }

    /// What is said of a text whose top and path are read.
    fn said(text: &str) -> String {
        let read = |document: &Document<'_>| -> Result<()> {
            let path = document.top(&TOP)?.table("path", &PATH)?;
            path.needed("rate").map(drop)
        };
        let document = Document::parse("x.toml", text, &[&TOP, &PATH]);
        let error = document.and_then(|document| read(&document)).unwrap_err();
        error.to_string()
    }

    #[test]
    fn what_is_wrong_with_a_table_is_named_with_its_line() {
        for (text, message) in [
            (
                "name = \"x\"\n\nnmae = 1\n",
                "x.toml:3: unknown key 'nmae' in the file: did you mean 'name'?",
            ),
            (
                "rate = 1\n",
                "x.toml:1: unknown key 'rate' in the file: it belongs to [path]",
            ),
            (
                "[path]\ncolour = 1\n",
                "x.toml:2: unknown key 'colour' in [path]: known here: rate, delay",
            ),
            (
                "\n\n[path]\ndelay = 1\n",
                "x.toml:3: [path] needs the key 'rate': bit/s",
            ),
            (
                "name = \"x\"\npath = 3\n",
                "x.toml:2: path = 3: not a table (expected: [path])",
            ),
        ] {
            assert_eq!(said(text), message);
        }
        let broken = said("name = \"x\"\n[path\n");
        assert!(broken.starts_with("x.toml:2: invalid TOML: "), "{broken}");
        let whole = document("").contradiction("a and b");
        assert_eq!(whole.to_string(), "x.toml: a and b");
    }

    #[test]
    fn an_absent_key_has_its_default_and_an_absent_table_no_values() {
        let document = document("many = [1, 2]\n");
        let top = document.top(&TOP).unwrap();
        assert_eq!(top.read("name", Value::text), Ok(None));
        assert_eq!(top.or("name", "none", Value::text), Ok("none"));
        let number = |value: &Value<'_>| value.whole(1..=9_u8);
        assert_eq!(top.read_all("many", number), Ok(vec![1, 2]));
        assert_eq!(top.read_all("name", number), Ok(vec![]));
        let path = top.table("path", &PATH).unwrap();
        assert_eq!(path.values().count(), 0);
        assert!(matches!(
            path.needed("rate"),
            Err(DocumentError::Missing {
                section: "[path]",
                ..
            })
        ));
    }

    #[test]
    fn a_document_says_which_keys_it_has() {
        let document = document("name = \"x\"\n[path]\nrate = 1\n");
        assert!(document.has("path") && !document.has("rate"));
    }

    #[test]
    fn a_table_over_another_has_its_own_values_first() {
        let below = document("[path]\nrate = 1\ndelay = 2\n");
        let above = document("[path]\nrate = 3\n");
        let path = |document| Document::top(document, &TOP)?.table("path", &PATH);
        let (below, above) = (path(&below).unwrap(), path(&above).unwrap());
        let raw = |table: &Table<'_>| -> Vec<String> {
            let values = table.values();
            values
                .map(|value| format!("{} {}", value.name(), value.raw()))
                .collect()
        };
        assert_eq!(raw(&above.over(&below, |_| true)), ["delay 2", "rate 3"]);
        let kept = above.over(&below, |name| name != "delay");
        assert_eq!(raw(&kept), ["rate 3"]);
    }
}
