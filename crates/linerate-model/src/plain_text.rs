//! Text that a peer, a record, a transcript or a host wrote, in a form that a terminal only shows.
//!
//! A terminal obeys control characters (C0, U+007F, C1) and reorders what it shows by bidirectional marks, so a text from
//! outside could colour, overwrite or forge lines. [`PlainText`] and [`PlainLines`] cannot hold such characters: every
//! way to make one, reading it from a record included, replaces them by their visible escape, `\u{9b}`. What a program
//! prints as a whole passes [`for_terminal`] or, where it is JSON, [`json_for_terminal`].

use std::borrow::{Borrow, Cow};
use std::fmt::{self, Write as _};
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stands at the end of a text that was cut.
const CUT: char = '…';

/// Whether a terminal obeys the character or orders its neighbours by it: C0, U+007F and C1 controls, the bidirectional
/// marks, embeddings and isolates (UAX #9), and the separators of lines and paragraphs.
pub const fn acts_on_terminal(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}')
}

/// Whether the character has to be escaped in a text of several lines.
const fn acts_within_lines(c: char) -> bool {
    acts_on_terminal(c) && !matches!(c, '\n' | '\t')
}

/// Replaces each character that `acts` by its escape, and cuts what is then longer than `limit` bytes.
fn plain(text: &str, limit: usize, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    let clean = text.find(&acts).unwrap_or(text.len());
    if clean == text.len() && clean <= limit {
        return Cow::Borrowed(text);
    }
    let mut plain = text[..clean].to_owned();
    for c in text[clean..].chars() {
        if plain.len() > limit {
            break;
        }
        if acts(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    if plain.len() > limit {
        let mut end = limit - CUT.len_utf8();
        while !plain.is_char_boundary(end) {
            end -= 1;
        }
        plain.truncate(end);
        plain.push(CUT);
    }
    Cow::Owned(plain)
}

/// A text as a whole, for a terminal: line ends and tabs stay; with `colours`, so do sequences that set
/// colours (`ESC [ … m`, ECMA-48 SGR); everything else that acts on a terminal is escaped.
pub fn for_terminal(text: &str, colours: bool) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(acts_within_lines) {
        let kept = if colours { colour(&rest[at..]) } else { 0 };
        shown.push_str(&rest[..at + kept]);
        rest = &rest[at + kept..];
        if kept == 0 {
            let mut after = rest.chars();
            shown.extend(after.next().into_iter().flat_map(char::escape_default));
            rest = after.as_str();
        }
    }
    if shown.is_empty() {
        return Cow::Borrowed(text);
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// The bytes of the sequence at the beginning of `text` that sets colours; 0 where there is none.
fn colour(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else {
        return 0;
    };
    let behind = parameters.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    match behind.strip_prefix('m') {
        Some(after) => text.len() - after.len(),
        None => 0,
    }
}

/// JSON as a whole, for a terminal: what acts on a terminal becomes `\uXXXX`, which every parser reads as
/// the same character. Line ends and tabs between values stay; valid JSON has none within a string.
pub fn json_for_terminal(text: &str) -> Cow<'_, str> {
    let acts = |c: char| acts_within_lines(c) && c != '\r';
    let Some(clean) = text.find(acts) else {
        return Cow::Borrowed(text);
    };
    let mut escaped = text[..clean].to_owned();
    for c in text[clean..].chars() {
        if acts(c) {
            // All of these characters are below U+10000. Writing to a String cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// What both types share: `$name` holds text that passed `plain` with `$limit` and `$acts`.
macro_rules! plain_type {
    ($name:ident, $acts:ident) => {
        impl $name {
            /// The text, control characters already escaped.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(plain(text, Self::MAX_BYTES, $acts).into_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match plain(&text, Self::MAX_BYTES, $acts) {
                    Cow::Owned(plain) => Self(plain),
                    Cow::Borrowed(_) => Self(text),
                }
            }
        }

        impl From<&String> for $name {
            fn from(text: &String) -> Self {
                Self::from(text.as_str())
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl FromIterator<char> for $name {
            fn from_iter<I: IntoIterator<Item = char>>(text: I) -> Self {
                Self::from(String::from_iter(text))
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<String> for $name {
            fn eq(&self, other: &String) -> bool {
                self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, out)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                String::deserialize(input).map(Self::from)
            }
        }
    };
}

/// One line of foreign text: a name, a title, an error. A line end in it is escaped too, so that it cannot
/// forge a line.
///
/// ```
/// use linerate_model::plain_text::PlainText;
///
/// assert_eq!(PlainText::from("Zürich"), "Zürich");
/// assert_eq!(PlainText::from("a\u{9b}2J\nb"), r"a\u{9b}2J\nb");
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlainText(String);

impl PlainText {
    /// The longest text in bytes, its escapes included; what is longer is cut and ends with `…`. It is more than
    /// a client's parameters can carry, so a title that is too long for them is refused and not cut.
    pub const MAX_BYTES: usize = 16 << 10;
}

plain_type!(PlainText, acts_on_terminal);

/// Foreign text of several lines: a server's output. Line ends and tabs stay.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlainLines(String);

impl PlainLines {
    /// The longest text in bytes, its escapes included; what is longer is cut and ends with `…`.
    pub const MAX_BYTES: usize = 32 << 20;
}

plain_type!(PlainLines, acts_within_lines);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One of each class, with the escapes that stand for them.
    const HOSTILE: &str = "\0\x07\x1b[2J\r\x7f\u{80}\u{9b}31m\u{9f}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";
    const SHOWN: &str = r"\u{0}\u{7}\u{1b}[2J\r\u{7f}\u{80}\u{9b}31m\u{9f}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";

    /// Any text, with many of the characters that act on a terminal.
    fn foreign() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            any::<char>(),
            proptest::sample::select(
                HOSTILE
                    .chars()
                    .chain("\n\t\\\"{}…é".chars())
                    .collect::<Vec<_>>()
            )
        ];
        proptest::collection::vec(character, 0..200).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn reading_what_was_written_gives_the_same_value(text in foreign(), times in 1_usize..200) {
            let text = text.repeat(times);
            let line = PlainText::from(text.as_str());
            prop_assert!(!line.contains(acts_on_terminal) && line.len() <= PlainText::MAX_BYTES);
            let written = serde_json::to_string(&line).unwrap();
            prop_assert_eq!(serde_json::from_str::<PlainText>(&written).unwrap(), line);
            let lines = PlainLines::from(text);
            prop_assert!(!lines.contains(acts_within_lines));
            let written = serde_json::to_string(&lines).unwrap();
            prop_assert_eq!(serde_json::from_str::<PlainLines>(&written).unwrap(), lines);
        }

        #[test]
        fn json_for_a_terminal_says_the_same(text in foreign()) {
            let value = serde_json::json!({ text.as_str(): [text.as_str()] });
            for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let shown = json_for_terminal(&json);
                prop_assert!(!shown.contains(acts_within_lines), "{shown:?}");
                prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&shown).unwrap(), &value);
            }
        }

        #[test]
        fn a_terminal_gets_nothing_that_it_obeys(text in foreign()) {
            let shown = for_terminal(&text, false);
            prop_assert!(!shown.contains(acts_within_lines), "{shown:?}");
            prop_assert_eq!(for_terminal(&shown, false), shown.as_ref());
        }
    }

    #[test]
    fn each_class_is_shown_as_its_escape() {
        assert_eq!(PlainText::from(HOSTILE), SHOWN);
        assert_eq!(PlainLines::from(HOSTILE), SHOWN);
        assert_eq!(for_terminal(HOSTILE, false), SHOWN);
        assert_eq!(PlainText::from("a\n\tb"), r"a\n\tb");
        assert_eq!(PlainLines::from("a\n\tb"), "a\n\tb");
    }

    #[test]
    fn ordinary_text_is_not_touched() {
        for text in ["", "Zürich → 東京 🙂", "a\\u{9b}", "שלום"] {
            assert_eq!(PlainText::from(text), text);
            assert!(matches!(for_terminal(text, false), Cow::Borrowed(same) if same == text));
            assert!(matches!(json_for_terminal(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        for one in ["é", "\u{9b}", "€", "x"] {
            let cut = PlainText::from(one.repeat(PlainText::MAX_BYTES + 1));
            assert!(cut.ends_with(CUT) && cut.len() > PlainText::MAX_BYTES - 8);
            assert!(cut.len() <= PlainText::MAX_BYTES, "{}", cut.len());
        }
        let whole = "x".repeat(PlainText::MAX_BYTES);
        assert_eq!(PlainText::from(whole.as_str()), whole);
    }

    #[test]
    fn only_colours_pass_where_there_are_colours() {
        let text = "\x1b[1;32mok\x1b[0m \x1b[2J\x1b]0;title\x07\x1b[31";
        assert_eq!(
            for_terminal(text, true),
            "\x1b[1;32mok\x1b[0m \\u{1b}[2J\\u{1b}]0;title\\u{7}\\u{1b}[31"
        );
        assert_eq!(for_terminal("\x1b[mx", true), "\x1b[mx");
        assert_eq!(for_terminal("\x1b[1mx", false), "\\u{1b}[1mx");
    }
}
