//! `getopt_long` as iperf3 uses it: clustered letters, attached and separate values, abbreviated
//! long options, `--`, words between the options.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::error::Iperf3ArgumentError as Error;
use super::options::{Argument, SPELLINGS, Spelling};

/// One option of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// How it is spelled in full.
    pub(super) spelling: Spelling,
    /// As it was typed: `-b` or `--bitrate`.
    pub(super) typed: String,
    /// Its argument; options that require one always have it.
    pub(super) value: Option<OsString>,
}

/// One piece of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Option(Found),
    /// A word that is neither an option nor an argument of one.
    Word(OsString),
}

/// Reads a command line piece by piece; the first refusal ends it.
pub(super) struct Scanner<I> {
    words: I,
    /// What is left of a cluster of letters.
    cluster: Vec<u8>,
    only_words: bool,
}

impl<I: Iterator<Item = OsString>> Scanner<I> {
    /// Over the words after the program's name.
    pub(super) fn new(words: I) -> Self {
        Self {
            words,
            cluster: Vec::new(),
            only_words: false,
        }
    }

    /// The next piece, `None` at the end.
    pub(super) fn next_piece(&mut self) -> Result<Option<Piece>, Error> {
        if !self.cluster.is_empty() {
            return self.letter().map(|found| Some(Piece::Option(found)));
        }
        let Some(word) = self.words.next() else {
            return Ok(None);
        };
        let bytes = word.as_bytes();
        if self.only_words || bytes.len() < 2 || bytes[0] != b'-' {
            return Ok(Some(Piece::Word(word)));
        }
        if bytes == b"--" {
            self.only_words = true;
            return self.next_piece();
        }
        if let Some(long) = bytes.strip_prefix(b"--") {
            return self.long(long).map(|found| Some(Piece::Option(found)));
        }
        self.cluster = bytes[1..].to_vec();
        self.letter().map(|found| Some(Piece::Option(found)))
    }

    fn letter(&mut self) -> Result<Found, Error> {
        let cluster = std::mem::take(&mut self.cluster);
        let letter = char::from(cluster[0]);
        let spelling = SPELLINGS
            .iter()
            .find(|spelling| spelling.short.chars().eq([letter]))
            .ok_or_else(|| {
                let text = String::from_utf8_lossy(&cluster);
                Error::UnknownShort(text.chars().take(1).collect())
            })?;
        let rest = &cluster[1..];
        let typed = format!("-{letter}");
        let value = match spelling.argument {
            Argument::Required if rest.is_empty() => {
                Some(self.words.next().ok_or(Error::ShortNeedsArgument(letter))?)
            }
            Argument::Required => Some(os(rest)),
            Argument::Optional if is_debug_level(spelling, rest) => Some(os(rest)),
            Argument::Optional | Argument::None => {
                self.cluster = rest.to_vec();
                None
            }
        };
        Ok(Found {
            spelling: *spelling,
            typed,
            value,
        })
    }

    fn long(&mut self, text: &[u8]) -> Result<Found, Error> {
        let (name, attached) = match text.iter().position(|byte| *byte == b'=') {
            Some(at) => (&text[..at], Some(os(&text[at + 1..]))),
            None => (text, None),
        };
        let spelling = *spelled(name)?;
        let name = spelling.long;
        let value = match (spelling.argument, attached) {
            (Argument::None, Some(_)) => return Err(Error::TakesNoArgument(name)),
            (Argument::Required, None) => {
                Some(self.words.next().ok_or(Error::LongNeedsArgument(name))?)
            }
            (_, attached) => attached,
        };
        Ok(Found {
            spelling,
            typed: format!("--{name}"),
            value,
        })
    }
}

/// `-d2` and `-d3` carry a level. `-d1`, `-d4` and `-d6` are what they are to iperf3: `-d` and `-1`,
/// `-4`, `-6`.
fn is_debug_level(spelling: &Spelling, rest: &[u8]) -> bool {
    spelling.long == "debug" && matches!(rest, b"2" | b"3")
}

/// The option that `name` spells or abbreviates.
fn spelled(name: &[u8]) -> Result<&'static Spelling, Error> {
    if let Some(exact) = SPELLINGS
        .iter()
        .find(|spelling| spelling.long.as_bytes() == name)
    {
        return Ok(exact);
    }
    let typed = || String::from_utf8_lossy(name).into_owned();
    let candidates: Vec<_> = SPELLINGS
        .iter()
        .filter(|spelling| spelling.long.as_bytes().starts_with(name))
        .collect();
    match candidates.as_slice() {
        [] => Err(Error::UnknownLong(typed())),
        [one] => Ok(one),
        several => {
            let long = several.iter().map(|spelling| spelling.long);
            Err(Error::Ambiguous(typed(), long.collect()))
        }
    }
}

fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

impl Found {
    /// The argument as text. What is not UTF-8 keeps its readable part, and no number has any.
    pub(super) fn text(&self) -> String {
        self.value
            .as_ref()
            .map(|value| value.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The argument as a path.
    pub(super) fn path(&self) -> std::path::PathBuf {
        self.value.clone().unwrap_or_default().into()
    }

    /// As typed, with its argument.
    pub(super) fn shown(&self) -> String {
        match &self.value {
            Some(value) => format!("{} {}", self.typed, value.to_string_lossy()),
            None => self.typed.clone(),
        }
    }

    /// iperf3's refusal of this option's value.
    pub(super) fn refuse(&self, text: impl Into<String>) -> Error {
        Error::detailed(text, Some(format!("given: {}", self.shown())))
    }
}
