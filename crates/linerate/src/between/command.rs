//! A command of linerate on a far host: its lines as they come, its talk, its files.

use std::collections::BTreeMap;

use linerate_fleet::{Ask, Asked, Event, FleetError, Session, Trouble};
use linerate_kernel::clock;
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use linerate_wire::agent::Outcome;

use super::failure::{FarFailure, Stage};

/// A line is no longer; a command that writes more without a line end is none of ours.
const LONGEST_LINE: usize = 4 << 20;
/// A command writes no more standard output in all, bytes: a test of an hour with 128 streams that reports every
/// second writes a sixth of it.
const MOST_OUTPUT: u64 = 1 << 30;
/// A command whose lines are kept writes no more of them.
const MOST_LINES: usize = 1_000;
/// As much of its talk is kept, bytes.
const MOST_TALK: usize = 16 << 10;
/// No pause between two looks at a condition is longer.
const SLICE: Nanos = Nanos::from_millis(50);

/// A running command.
pub(super) struct FarCommand {
    asked: Asked,
    stage: Stage,
    host: String,
    lines: Lines,
    /// Standard error.
    talk: String,
    files: BTreeMap<usize, Vec<u8>>,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// A line of standard output, without its end.
    Line(String),
    /// Something of standard error.
    Talk(String),
    /// It ended.
    Ended(Outcome),
}

impl FarCommand {
    /// Starts it.
    pub(super) fn start(session: &Session, stage: Stage, ask: Ask) -> Result<Self, FarFailure> {
        let asked = session
            .ask(ask)
            .map_err(|error| FarFailure::of(stage, error))?;
        Ok(Self {
            asked,
            stage,
            host: session.host().to_owned(),
            lines: Lines::default(),
            talk: String::new(),
            files: BTreeMap::new(),
        })
    }

    /// What comes next; `None` where nothing does within `patience`.
    pub(super) fn next(&mut self, patience: Nanos) -> Result<Option<Heard>, FarFailure> {
        let until = clock::monotonic().plus(patience);
        loop {
            if let Some(line) = self.lines.next() {
                return Ok(Some(Heard::Line(line)));
            }
            // What has come already is taken, however late it is.
            match self.asked.next(Some(until.since(clock::monotonic()))) {
                Ok(Event::Out(bytes)) => self.take(&bytes)?,
                Ok(Event::Err(bytes)) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    if self.talk.len() + text.len() <= MOST_TALK {
                        self.talk.push_str(&text);
                    }
                    return Ok(Some(Heard::Talk(text)));
                }
                Ok(Event::File(at, bytes)) => {
                    self.files.insert(at, bytes);
                }
                Ok(Event::Ended(outcome)) => {
                    return Ok(Some(Heard::Ended(outcome)));
                }
                Err(FleetError {
                    trouble: Trouble::Silent { .. },
                    ..
                }) => return Ok(None),
                Err(error) => return Err(FarFailure::of(self.stage, error)),
            }
        }
    }

    /// Runs it to its end: its lines, where it succeeded.
    pub(super) fn lines(
        mut self,
        within: Nanos,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<String>, FarFailure> {
        let until = clock::monotonic().plus(within);
        let mut lines = Vec::new();
        loop {
            match self.next(SLICE)? {
                Some(Heard::Line(_)) if lines.len() == MOST_LINES => {
                    let why = format!("it wrote more than {MOST_LINES} lines");
                    return Err(FarFailure::at(self.stage, &self.host, why));
                }
                Some(Heard::Line(line)) => lines.push(line),
                Some(Heard::Ended(outcome)) if outcome.is_success() => return Ok(lines),
                Some(Heard::Ended(outcome)) => return Err(self.failed(&outcome)),
                Some(Heard::Talk(_)) | None => {}
            }
            // Also where it says something all the time.
            if stop() {
                return Err(FarFailure::stopped(self.stage));
            }
            if clock::monotonic() >= until {
                return Err(self.hung(within));
            }
        }
    }

    /// It ended in another way than it should have.
    pub(super) fn failed(&self, outcome: &Outcome) -> FarFailure {
        let said = self.last_words();
        let why = match outcome {
            Outcome::Code(_) if !said.is_empty() => said.to_string(),
            Outcome::Code(code) => {
                format!("linerate ended there with code {code} and said nothing")
            }
            Outcome::Signal(signal) => {
                format!(
                    "linerate was killed there by signal {signal} while {}",
                    self.stage
                )
            }
            Outcome::Refused(why) => why.to_string(),
            Outcome::Busy(by) => return FarFailure::busy(self.stage, &self.host, by),
        };
        FarFailure::at(self.stage, &self.host, why)
    }

    /// It did not end in time.
    pub(super) fn hung(&self, within: Nanos) -> FarFailure {
        FarFailure::at(
            self.stage,
            &self.host,
            format!("no end within {within} while {}", self.stage),
        )
    }

    /// Its standard error in one line.
    pub(super) fn last_words(&self) -> PlainText {
        let lines = self
            .talk
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("; ").into()
    }

    pub(super) fn file(&mut self, at: usize) -> Option<Vec<u8>> {
        self.files.remove(&at).filter(|bytes| !bytes.is_empty())
    }

    pub(super) fn cancel(&self) {
        self.asked.cancel();
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), FarFailure> {
        self.lines
            .push(bytes)
            .map_err(|why| FarFailure::at(self.stage, &self.host, why))
    }
}

/// Standard output, cut into lines. Each byte is looked at once.
#[derive(Debug, Default)]
struct Lines {
    held: Vec<u8>,
    /// How much of `held` was given out as lines.
    given: usize,
    /// Up to here there is no further line end.
    searched: usize,
    /// Bytes in all.
    came: u64,
}

impl Lines {
    /// Takes bytes that came, after all lines before were given out.
    fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.came = self.came.saturating_add(bytes.len() as u64);
        if self.came > MOST_OUTPUT {
            return Err(format!("it wrote more than {MOST_OUTPUT} bytes"));
        }
        self.held.drain(..std::mem::take(&mut self.given));
        self.searched = self.held.len();
        if self.held.len() > LONGEST_LINE {
            return Err(format!("it wrote a line of more than {LONGEST_LINE} bytes"));
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole line, without its end.
    fn next(&mut self) -> Option<String> {
        let rest = &self.held[self.searched..];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.held.len();
            return None;
        };
        let end = self.searched + length;
        let line = String::from_utf8_lossy(&self.held[self.given..end]).into_owned();
        self.given = end + 1;
        self.searched = self.given;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(lines: &mut Lines) -> Vec<String> {
        std::iter::from_fn(|| lines.next()).collect()
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = "one\n\nthree\nlast without end";
        for cut in 1..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(cut) {
                lines.push(piece).unwrap();
                found.extend(drained(&mut lines));
            }
            assert_eq!(found, ["one", "", "three"], "{cut}");
        }
    }

    #[test]
    fn eight_mebibytes_of_line_ends_are_looked_at_once_and_none_is_moved() {
        let mut lines = Lines::default();
        lines.push(&vec![b'\n'; 8 << 20]).unwrap();
        for _ in 0..1_000 {
            assert_eq!(lines.next().as_deref(), Some(""));
        }
        // Nothing behind a line is searched or moved for it.
        assert_eq!((lines.given, lines.searched), (1_000, 1_000));
        assert_eq!(lines.held.len(), 8 << 20);
    }

    #[test]
    fn a_line_without_end_and_output_without_end_are_refused() {
        let piece = vec![b'x'; LONGEST_LINE];
        let mut lines = Lines::default();
        lines.push(&piece).unwrap();
        assert_eq!(lines.next(), None);
        lines.push(b"x").unwrap();
        let why = lines.push(b"x").unwrap_err();
        assert!(why.contains("a line of more than"), "{why}");
        let mut lines = Lines {
            came: MOST_OUTPUT,
            ..Lines::default()
        };
        let why = lines.push(b"\n").unwrap_err();
        assert!(why.contains("1073741824 bytes"), "{why}");
    }
}
