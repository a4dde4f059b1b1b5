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

    /// Refuses this value for a reason, where that is the case.
    ///
    /// # Errors
    /// The reason.
    pub fn refuse(&self, case: bool, reason: impl Into<String>) -> Result<()> {
        if case {
            Err(self.wrong(reason))
        } else {
            Ok(())
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

#[cfg(test)]
mod tests {
    #![expect(
        clippy::redundant_closure_for_method_calls,
        reason = "a method by its name is for one lifetime, and `read` takes what is for any"
    )]

    use super::*;
    use crate::Key;

    const TOP: Section = Section::of("the file", &[&[Key::of("key", "what fits")]]);

    /// What `read` makes of a value.
    fn read<T>(typed: &str, read: impl FnOnce(&Value<'_>) -> Result<T>) -> Result<T> {
        let text = format!("key = {typed}");
        let document = Document::parse("x.toml", &text, &[])?;
        read(document.top(&TOP)?.needed("key")?)
    }

    fn refused<T: std::fmt::Debug>(
        typed: &str,
        by: impl FnOnce(&Value<'_>) -> Result<T>,
    ) -> String {
        let error = read(typed, by).unwrap_err().to_string();
        let said = error.strip_prefix(&format!("x.toml:1: key = {typed}: "));
        said.expect(&error).replace(" (expected: what fits)", "")
    }

    #[test]
    fn values_are_read_as_what_they_are() {
        assert_eq!(
            read("\" a  b \"", |value| value.text().map(str::to_owned)),
            Ok(" a  b ".to_owned())
        );
        assert_eq!(
            read("\" a  b \"", |value| value.words()),
            Ok("a b".to_owned())
        );
        assert_eq!(read("\" 9 \"", |value| value.parsed()), Ok(9));
        assert_eq!(read("true", |value| value.boolean()), Ok(true));
        assert_eq!(read("1_500.5", |value| value.number()), Ok(1500.5));
        assert_eq!(read("3", |value| value.number()), Ok(3.0));
        assert_eq!(read("0x10", |value| value.whole(1..=16_u8)), Ok(16));
        let words = [("on", 1), ("off", 0)];
        assert_eq!(read("\"off\"", |value| value.word(&words)), Ok(0));
        for typed in ["1_000", "\"1000\""] {
            let digits = read(typed, |value| value.amount(|text| Ok(text.to_owned())));
            assert_eq!(digits, Ok("1000".to_owned()), "{typed}");
        }
    }

    #[test]
    fn what_a_value_is_not_is_said() {
        let whole = |value: &Value<'_>| value.whole(1..=9_u8);
        for typed in ["0", "10", "256", "-1", "1.0", "\"1\""] {
            assert_eq!(refused(typed, whole), "not a whole number from 1 to 9");
        }
        for typed in ["nan", "inf", "\"1\"", "0x10"] {
            assert_eq!(refused(typed, |value| value.number()), "not a number");
        }
        let amount = |value: &Value<'_>| value.amount(|_| Err::<(), _>("too much".to_owned()));
        assert_eq!(refused("1", amount), "too much");
        // Its digits are those of ten, and it is sixteen.
        assert_eq!(refused("0x10", amount), "neither a text nor a number");
        assert_eq!(
            refused("1", |value| value.words()),
            "not a text in quotation marks"
        );
        assert_eq!(
            refused("1", |value| value.boolean()),
            "neither true nor false"
        );
        assert_eq!(
            refused("\"x\"", |value| value.parsed::<u8>()),
            "invalid digit found in string"
        );
        assert_eq!(
            refused("\"of\"", |value| value.word(&[("on", 1), ("off", 0)])),
            "unknown word; did you mean 'off'?"
        );
        assert_eq!(refused("1", |value| value.pairs().map(drop)), "not a table");
        assert_eq!(refused("1", |value| value.list().map(drop)), "not a list");
        let table = refused("{ a = 1 }", |value| value.list().map(drop));
        assert!(table.contains("two brackets"), "{table}");
        assert_eq!(refused("1", |value| value.refuse(true, "why")), "why");
        assert_eq!(read("1", |value| value.refuse(false, "why")), Ok(()));
    }

    #[test]
    fn what_is_expected_is_said_once_and_of_a_long_value_its_first_line() {
        let typed = "[\n  1,\n]";
        let said = read(typed, |value| value.text().map(drop))
            .unwrap_err()
            .to_string();
        assert_eq!(
            said,
            "x.toml:1: key = [ …: not a text in quotation marks (expected: what fits)"
        );
        let said = read("1", |value| value.refuse(true, "only what fits"));
        assert_eq!(
            said.unwrap_err().to_string(),
            "x.toml:1: key = 1: only what fits"
        );
    }

    #[test]
    fn elements_and_entries_are_values_of_their_own() {
        let lines = |value: &Value<'_>| -> Result<Vec<(usize, u8)>> {
            let all = value.elements();
            let all = all.iter().map(|one| Ok((one.line(), one.whole(0..=9)?)));
            all.collect()
        };
        assert_eq!(read("[\n1,\n2]", lines), Ok(vec![(2, 1), (3, 2)]));
        assert_eq!(read("7", lines), Ok(vec![(1, 7)]));
        let said = read("[\n1,\n20]", lines).unwrap_err().to_string();
        assert_eq!(said, "x.toml:3: key = 20: not a whole number from 0 to 9");
        let pairs = |value: &Value<'_>| -> Result<Vec<String>> {
            let pairs = value.pairs()?;
            let names = pairs
                .iter()
                .map(|(key, value)| format!("{key} {}", value.name()));
            Ok(names.collect())
        };
        assert_eq!(
            read("{ \"a.b\" = 1 }", pairs),
            Ok(vec!["a.b key.\"a.b\"".to_owned()])
        );
    }
}
