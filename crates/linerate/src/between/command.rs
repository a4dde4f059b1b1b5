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
/// As much of its talk is kept, bytes.
const MOST_TALK: usize = 16 << 10;
/// No pause between two looks at a condition is longer.
const SLICE: Nanos = Nanos::from_millis(50);

/// A running command.
pub(super) struct FarCommand {
    asked: Asked,
    stage: Stage,
    host: String,
    /// Standard output that is no whole line yet.
    part: Vec<u8>,
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
            part: Vec::new(),
            talk: String::new(),
            files: BTreeMap::new(),
        })
    }

    /// What comes next; `None` where nothing does within `patience`.
    pub(super) fn next(&mut self, patience: Nanos) -> Result<Option<Heard>, FarFailure> {
        let until = clock::monotonic().plus(patience);
        loop {
            if let Some(line) = self.whole_line() {
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
        self.part.extend_from_slice(bytes);
        if self.part.len() > LONGEST_LINE && !self.part.contains(&b'\n') {
            let why = format!("it wrote a line of more than {LONGEST_LINE} bytes");
            return Err(FarFailure::at(self.stage, &self.host, why));
        }
        Ok(())
    }

    fn whole_line(&mut self) -> Option<String> {
        let end = self.part.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.part.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }
}
