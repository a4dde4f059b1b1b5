//! Other tools' output as transcripts: what was printed, with the precision of its digits.
//!
//! A layout is recognised by its lines, so prompts, blank lines, cut ends and several runs in one file
//! are read; a line that nobody knows is named with its number and never guessed at.
//!
//! Packet captures, which are no text, are read by [`capture`].
//!
//! What it is not: it judges nothing (`linerate-explain` does) and reads no file; text comes in as an
//! argument.
//!
//! ```
//! let text = "[  3]  0.0-10.0 sec  1.10 GBytes   942 Mbits/sec\n";
//! let transcript = linerate_readers::read("pasted", text.as_bytes()).unwrap();
//! assert_eq!((transcript.parts.len(), transcript.not_understood.len()), (1, 0));
//! ```

pub mod capture;
mod command;
mod csv;
mod iperf;
mod json;
mod number;
mod nuttcp;
mod sockets;
mod storage;
mod table;

use std::borrow::Cow;

use linerate_model::plain_text::PlainText;
use linerate_model::transcript::{Line, Part, Transcript};
use serde::de::IgnoredAny;

/// Lines that are kept of those which nobody understood.
const KEPT: usize = 1000;
/// The most that is read, bytes.
pub const MOST_BYTES: usize = 64 << 20;
/// The most that is kept of an input: words of lines that a reader takes, and values of JSON documents. What is made
/// of one takes up to about 100 bytes.
pub const MOST_VALUES: usize = 1 << 22;
/// The most tests, tables and the like in an input; each is explained by itself.
pub const MOST_PARTS: usize = 1 << 14;
/// The most tests of one log that wait for rows at the same time: each row is held against all of them.
pub const MOST_OPEN: usize = 256;
/// JSON is looked at once more for each document around it that is of no known kind: in all at most so many times
/// the input's length.
const MOST_READINGS: usize = 16;

/// Why nothing could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is nothing in it.
    #[error("reading {name}: it contains no text")]
    Empty {
        /// The input.
        name: PlainText,
    },
    /// More than [`MOST_BYTES`].
    #[error(
        "reading {name}: {bytes} bytes are more than the {MOST_BYTES} that are read; cut it to the runs in question"
    )]
    TooLarge {
        /// The input.
        name: PlainText,
        /// Its size.
        bytes: usize,
    },
    /// More of something than is read.
    #[error(
        "reading {name}: it has more than {most} {what}, counted up to line {line}; cut it to the runs in question"
    )]
    TooMany {
        /// The input.
        name: PlainText,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        most: usize,
        /// The line where the limit was reached.
        line: usize,
    },
    /// It is packed, and nothing here unpacks.
    #[error("reading {name}: it is packed; unpack it first: `{program} {name} | linerate explain`")]
    Packed {
        /// The input.
        name: PlainText,
        /// The program that unpacks it.
        program: &'static str,
    },
    /// It begins as a packet capture does, and ends within its header.
    #[error(
        "reading {name}: a packet capture that ends within its header; capture again, or copy the whole file"
    )]
    NoCapture {
        /// The input.
        name: PlainText,
    },
    /// No line has a known layout.
    #[error(
        "reading {name}: its layout is unknown; line {line} is the first that was not understood: '{text}'. Known are {KNOWN}"
    )]
    Unknown {
        /// The input.
        name: PlainText,
        /// The first line's number.
        line: usize,
        /// That line, escaped.
        text: PlainText,
    },
}

/// The layouts, in words.
pub const KNOWN: &str = "iperf 1/2 text and CSV (-y C), iperf3 text, JSON (-J) and JSON stream, nuttcp text, `ss -ti`, tables of \
transfers (amount, duration, rate), iostat -x (text and JSON), /proc/diskstats, /proc/mdstat, mounts, /proc/drbd, drbdsetup \
status, events2 and show, drbdadm show-gi, glusterd logs, gluster's answers (text and XML), sinfo, vgs, lvs and pvs (text and \
JSON), fio JSON, iozone, summaries of rsync, scp and mbuffer, packet captures (pcap, pcapng), and linerate's own records";

/// Reads what was pasted under `name`. Bytes that are no UTF-8 are replaced.
pub fn read(name: &str, bytes: &[u8]) -> Result<Transcript, ReadError> {
    if capture::is_capture(bytes) {
        let mut reader = capture::Reader::new(name);
        reader.push(bytes);
        return reader.finish();
    }
    let name = PlainText::from(name);
    if let Some(program) = capture::packed(bytes) {
        return Err(ReadError::Packed { name, program });
    }
    if bytes.len() > MOST_BYTES {
        return Err(ReadError::TooLarge {
            name,
            bytes: bytes.len(),
        });
    }
    let text = text_of(bytes);
    let text = without_colours(text.strip_prefix('\u{feff}').unwrap_or(&text));
    let text = text.as_ref();
    if text.trim().is_empty() {
        return Err(ReadError::Empty { name });
    }
    let (parts, not_understood) = Pages::of(text).read(text).map_err(|beyond| {
        let Beyond { what, most, line } = beyond;
        let name = name.clone();
        ReadError::TooMany {
            name,
            what,
            most,
            line,
        }
    })?;
    match not_understood.first() {
        Some(first) if parts.is_empty() => Err(ReadError::Unknown {
            name,
            line: first.number,
            text: first.text.clone(),
        }),
        None if parts.is_empty() => Err(ReadError::Empty { name }),
        _ => Ok(Transcript {
            name,
            parts,
            not_understood,
        }),
    }
}

/// The text of a file: UTF-8, or UTF-16 with its mark (as Windows' shells write it); lines may end as they like.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    let units = |big: bool| -> String {
        let units = bytes[2..].chunks_exact(2).map(|pair| {
            let pair = [pair[0], pair[1]];
            if big {
                u16::from_be_bytes(pair)
            } else {
                u16::from_le_bytes(pair)
            }
        });
        char::decode_utf16(units)
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    let text = match bytes {
        [0xff, 0xfe, ..] => Cow::Owned(units(false)),
        [0xfe, 0xff, ..] => Cow::Owned(units(true)),
        _ => String::from_utf8_lossy(bytes),
    };
    if text.contains('\r') && !text.contains('\n') {
        return Cow::Owned(text.replace('\r', "\n"));
    }
    text
}

/// A text without the escape sequences by which terminals are told colours (ECMA-48, `ESC [` to a letter).
fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let parameters = |c: char| matches!(c, ' '..='?');
        let rest = piece.trim_start_matches(parameters);
        let end = rest.chars().next().filter(|end| matches!(end, '@'..='~'));
        plain.push_str(end.map_or(piece, |end| &rest[end.len_utf8()..]));
    }
    Cow::Owned(plain)
}

/// What stands behind the time that `iperf3 --timestamps` puts before each line, where that is iperf's.
fn behind_time(text: &str) -> Option<&str> {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    const MARKS: [&str; 4] = ["AM", "PM", "UTC", "GMT"];
    let clock = |word: &str| word.matches(':').count() >= 1;
    let number = |word: &str| {
        let digit = |c: char| c.is_ascii_digit();
        word.contains(digit)
            && word
                .chars()
                .all(|c| digit(c) || matches!(c, ':' | '.' | ',' | '-' | '/' | '+' | 'T' | 'Z'))
    };
    let mut rest = text;
    let (mut words, mut clocks) = (0, 0);
    while let Some((word, behind)) = rest.split_once(char::is_whitespace) {
        let named = DAYS.contains(&word) || MONTHS.contains(&word) || MARKS.contains(&word);
        if !(named || number(word)) || words == 7 {
            break;
        }
        clocks += usize::from(clock(word));
        words += 1;
        rest = behind.trim_start();
    }
    let rule = rest.len() > 3 && rest.chars().all(|c| matches!(c, '-' | ' '));
    let ours = rest.starts_with('[') || rule || iperf::is_header(rest);
    (clocks == 1 && ours).then_some(rest)
}

/// A line as the readers see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) number: usize,
    /// Without spaces and list marks around it, and without `^C`.
    pub(crate) text: &'a str,
    /// `^C` stood before it.
    pub(crate) stopped: bool,
    /// How many bytes of spaces and list marks stood before it.
    pub(crate) indent: usize,
}

impl<'a> Input<'a> {
    fn new(number: usize, raw: &'a str) -> Self {
        let marks = |c: char| c.is_whitespace() || matches!(c, '•' | '>' | '|');
        let mut text = raw.trim_start_matches(marks);
        let indent = raw.len() - text.len();
        text = text.trim_end();
        let mut stopped = false;
        while let Some(rest) = text.strip_prefix("^C") {
            text = rest.trim_start();
            stopped = true;
        }
        let text = behind_time(text).unwrap_or(text);
        Self {
            number,
            text,
            stopped,
            indent,
        }
    }

    /// The line for a list of those that were not understood.
    pub(crate) fn quoted(&self) -> Line {
        Line {
            number: self.number,
            text: self.text.chars().take(200).collect(),
        }
    }
}

/// A limit that an input goes beyond.
#[derive(Debug, Clone, Copy)]
struct Beyond {
    what: &'static str,
    most: usize,
    line: usize,
}

/// The readers, and what they have read.
#[derive(Default)]
struct Pages {
    parts: Vec<Part>,
    tests: iperf::Tests,
    csv: csv::Lines,
    nuttcp: nuttcp::Tests,
    tables: table::Tables,
    storage: storage::Storage,
    sockets: sockets::Sockets,
    stream: json::Stream,
    lost: Vec<Line>,
    /// Words and values that were taken.
    values: usize,
    /// Bytes of JSON that may still be looked at.
    json_bytes: usize,
}

impl Pages {
    fn of(text: &str) -> Self {
        Self {
            json_bytes: MOST_READINGS.saturating_mul(text.len()),
            ..Self::default()
        }
    }

    fn read(mut self, text: &str) -> Result<(Vec<Part>, Vec<Line>), Beyond> {
        let mut rest = text;
        let mut number = 0;
        while !rest.is_empty() {
            let (raw, after) = rest.split_once('\n').unwrap_or((rest, ""));
            number += 1;
            let first = raw.trim_start();
            let document = first.starts_with('{') || first == "[" || first.starts_with("[{");
            let taken = if document {
                self.document(number, rest)?
            } else {
                None
            };
            if let Some(length) = taken.filter(|length| *length > 0) {
                self.check(number)?;
                let used = &rest[..length];
                // The value may end within a line: what stands behind it there is not looked at.
                let lines = used.matches('\n').count();
                number += lines;
                rest = rest[length..]
                    .split_once('\n')
                    .map_or("", |(_, after)| after);
                continue;
            }
            let input = Input::new(number, raw);
            if self.line(&input) {
                self.values += words(input.text);
                self.check(number)?;
            } else if self.lost.len() < KEPT {
                self.lost.push(input.quoted());
            }
            rest = after;
        }
        self.stream.finish(&mut self.parts);
        self.tests.finish(&mut self.parts);
        self.lost.extend(self.storage.finish(&mut self.parts));
        self.lost.truncate(KEPT);
        Ok((self.parts, self.lost))
    }

    fn check(&self, line: usize) -> Result<(), Beyond> {
        let beyond = |what, most| Err(Beyond { what, most, line });
        if self.values > MOST_VALUES {
            return beyond("words and values", MOST_VALUES);
        }
        if self.parts.len() > MOST_PARTS {
            return beyond("tests and tables", MOST_PARTS);
        }
        if self.tests.open() > MOST_OPEN {
            return beyond("tests that run at the same time", MOST_OPEN);
        }
        Ok(())
    }

    /// A JSON value at the beginning of `text`: the bytes that it takes.
    fn document(&mut self, number: usize, text: &str) -> Result<Option<usize>, Beyond> {
        // Its end is looked for before anything is made of it.
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let length = match value {
            Ok(_) => values.byte_offset(),
            Err(error) => return self.cut(&error, number, text),
        };
        let text = &text[..length];
        self.look_at(text, number)?;
        let count = values_in(text, number)?;
        let Ok(value) = serde_json::from_str::<serde_json::Value>(text) else {
            return Ok(None);
        };
        let lines = text.matches('\n').count();
        let known = self.stream.take(&value, number, &mut self.parts)
            || json::take(&value, [number, number + lines], &mut self.parts)
            || self.storage.document(&value, number, &mut self.parts);
        self.values += if known { count } else { 0 };
        Ok(known.then_some(length))
    }

    /// A document that ends in the middle, because its program was killed: the bytes that it takes.
    fn cut(
        &mut self,
        error: &serde_json::Error,
        number: usize,
        text: &str,
    ) -> Result<Option<usize>, Beyond> {
        let whole = if error.is_eof() {
            text
        } else {
            // What stands behind it begins a line of its own.
            let before = text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1));
            text[..before.map(str::len).sum()].trim_end_matches('\n')
        };
        self.look_at(whole, number)?;
        let lines = [number, number + whole.trim_end().matches('\n').count()];
        let known = match Self::closed(json::completed(whole), number)? {
            Some((value, count)) if json::take_cut(&value, lines, &mut self.parts) => count,
            _ => match Self::closed(json::closed(whole), number)? {
                Some((value, count)) if self.storage.document(&value, number, &mut self.parts) => {
                    count
                }
                _ => return Ok(None),
            },
        };
        self.values += known;
        Ok(Some(whole.len()))
    }

    /// A document that was closed by its reader, and the values in it.
    fn closed(
        document: Option<String>,
        line: usize,
    ) -> Result<Option<(serde_json::Value, usize)>, Beyond> {
        let Some(document) = document else {
            return Ok(None);
        };
        let count = values_in(&document, line)?;
        Ok(serde_json::from_str(&document)
            .ok()
            .map(|value| (value, count)))
    }

    /// Takes note of JSON that was looked at.
    fn look_at(&mut self, json: &str, line: usize) -> Result<(), Beyond> {
        let left = self.json_bytes.checked_sub(json.len());
        self.json_bytes = left.ok_or(Beyond {
            what: "levels of JSON around its documents",
            most: MOST_READINGS,
            line,
        })?;
        Ok(())
    }

    fn line(&mut self, input: &Input<'_>) -> bool {
        if input.text.is_empty() {
            self.tests.stopped(input);
            return true;
        }
        if input
            .text
            .chars()
            .all(|c| matches!(c, '-' | '=' | '_' | ' ' | '*' | '.'))
        {
            return true;
        }
        // Output of drbdadm and of lvdisplay that looks like a prompt.
        let answer = input.text.starts_with("# No currently configured DRBD")
            || input.text.starts_with("# open ");
        if let Some(typed) = command::typed(input.text).filter(|_| !answer) {
            self.tables.end();
            self.lost.extend(self.storage.finish(&mut self.parts));
            self.storage.typed(input.text);
            self.sockets.end();
            self.nuttcp.end();
            self.tests.typed(input, typed, &mut self.parts);
            return true;
        }
        self.storage.before_iperf(input)
            || self.tests.take(input, &mut self.parts)
            || self.csv.take(input, &mut self.parts)
            || self.nuttcp.take(input, &mut self.parts)
            || self.storage.take(input, &mut self.parts)
            || self.sockets.take(input, &mut self.parts)
            || self.tables.take(input, &mut self.parts)
            || self.storage.around(input, &mut self.parts)
    }
}

/// The words of a line, which blanks, commas, semicolons and bars part.
fn words(text: &str) -> usize {
    let between = |byte: &u8| matches!(byte, b' ' | b'\t' | b',' | b';' | b'|');
    let begin = |pair: &[u8]| between(&pair[0]) && !between(&pair[1]);
    1 + text
        .as_bytes()
        .windows(2)
        .filter(|pair| begin(pair))
        .count()
}

/// The values in a JSON text, at most: each stands behind a bracket, a brace or a comma.
fn values_in(json: &str, line: usize) -> Result<usize, Beyond> {
    let before = |byte: &u8| matches!(byte, b'[' | b'{' | b',');
    let count = json.bytes().filter(before).count();
    if count > MOST_VALUES {
        return Err(Beyond {
            what: "words and values",
            most: MOST_VALUES,
            line,
        });
    }
    Ok(count)
}
