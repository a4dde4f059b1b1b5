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
mod sockets;
mod storage;
mod table;

use std::borrow::Cow;

use linerate_model::plain_text::PlainText;
use linerate_model::transcript::{Line, Part, Transcript};

/// Lines that are kept of those which nobody understood.
const KEPT: usize = 1000;
/// The most that is read, bytes.
pub const MOST_BYTES: usize = 64 << 20;

/// Why nothing could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is nothing in it.
    #[error("reading {name}: it holds no text")]
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
        /// Its text.
        text: PlainText,
    },
}

/// The layouts, in words.
pub const KNOWN: &str = "iperf 1/2 text and CSV (-y C), iperf3 text, JSON (-J) and JSON stream, `ss -ti`, tables of \
transfers (amount, duration, rate), iostat -x, /proc/diskstats, /proc/drbd, drbdsetup status --json, \
glusterd logs, sinfo, vgs and lvs, packet captures (pcap, pcapng), and linerate's own records";

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
    let (parts, not_understood) = Pages::default().read(text);
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
}

impl<'a> Input<'a> {
    fn new(number: usize, raw: &'a str) -> Self {
        let marks = |c: char| c.is_whitespace() || matches!(c, '•' | '>' | '|');
        let mut text = raw.trim_start_matches(marks).trim_end();
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

/// The readers, and what they have read.
#[derive(Default)]
struct Pages {
    parts: Vec<Part>,
    tests: iperf::Tests,
    tables: table::Tables,
    storage: storage::Storage,
    sockets: sockets::Sockets,
    stream: json::Stream,
    lost: Vec<Line>,
}

impl Pages {
    fn read(mut self, text: &str) -> (Vec<Part>, Vec<Line>) {
        let mut rest = text;
        let mut number = 0;
        while !rest.is_empty() {
            let (raw, after) = rest.split_once('\n').unwrap_or((rest, ""));
            number += 1;
            let first = raw.trim_start();
            let document = first.starts_with('{') || first == "[" || first.starts_with("[{");
            if let Some(length) = document
                .then(|| self.document(number, rest))
                .flatten()
                .filter(|length| *length > 0)
            {
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
            if !self.line(&input) && self.lost.len() < KEPT {
                self.lost.push(input.quoted());
            }
            rest = after;
        }
        self.stream.finish(&mut self.parts);
        self.tests.finish(&mut self.parts);
        (self.parts, self.lost)
    }

    /// A JSON value at the beginning of `text`: the bytes that it takes.
    fn document(&mut self, number: usize, text: &str) -> Option<usize> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
        let value = match values.next()? {
            Ok(value) => value,
            Err(error) => return self.cut(&error, number, text),
        };
        let length = values.byte_offset();
        let lines = text[..length].matches('\n').count();
        let known = self.stream.take(&value, number, &mut self.parts)
            || json::take(&value, [number, number + lines], &mut self.parts)
            || storage::take_json(&value, number, &mut self.parts);
        known.then_some(length)
    }

    /// iperf3's document that ends in the middle, because its program was killed: the bytes that it takes.
    fn cut(&mut self, error: &serde_json::Error, number: usize, text: &str) -> Option<usize> {
        let whole = if error.is_eof() {
            text
        } else {
            // What stands behind it begins a line of its own.
            let before = text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1));
            text[..before.map(str::len).sum()].trim_end_matches('\n')
        };
        let value = json::completed(whole)?;
        let lines = [number, number + whole.trim_end().matches('\n').count()];
        json::take(&value, lines, &mut self.parts).then_some(whole.len())
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
        if let Some(typed) = command::typed(input.text) {
            self.tables.end();
            self.storage.end();
            self.sockets.end();
            self.tests.typed(input, typed, &mut self.parts);
            return true;
        }
        self.tests.take(input, &mut self.parts)
            || csv::take(input, &mut self.parts)
            || self.storage.take(input, &mut self.parts)
            || self.sockets.take(input, &mut self.parts)
            || self.tables.take(input, &mut self.parts)
    }
}
