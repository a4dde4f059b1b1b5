//! The hosts of a roll-out: sessions that stand, and what is asked over them.

use std::sync::{Arc, Mutex, PoisonError};

use linerate_fleet::{Ask, Event, FleetError, Reach, Session, Trouble};
use linerate_kernel::clock;
use linerate_model::change_set::SetView;
use linerate_model::units::Nanos;
use linerate_watch::roll_out::Change;
use linerate_wire::agent::{MOST_BODY, Outcome, Word};
use serde::Deserialize;

use crate::between::far;
use crate::between::reach::Surroundings;

/// How often it is looked whether a command takes too long.
const LOOK: Nanos = Nanos::from_millis(250);
/// A short command has ended by then.
const SOON: Nanos = Nanos::from_millis(30_000);
/// Stands for a host's name in the words of a change.
const HOST: &str = "{host}";

/// A host that answers.
pub(super) struct Standing {
    pub(super) session: Session,
    pub(super) surroundings: Surroundings,
}

/// The hosts, each in its place.
pub(super) struct Hosts {
    names: Vec<String>,
    reach: Reach,
    change: Change,
    standing: Vec<Mutex<Option<Arc<Standing>>>>,
}

/// What a command gave.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) code: i32,
    pub(super) out: Vec<u8>,
    error: String,
}

impl Said {
    /// Its standard error in one line.
    pub(super) fn why(&self) -> String {
        let lines = self.error.lines().map(str::trim);
        let lines = lines.map(|line| line.strip_prefix("linerate: error: ").unwrap_or(line));
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        if lines.is_empty() {
            return format!("linerate ended there with code {}", self.code);
        }
        lines.join("; ").replace(":;", ":")
    }
}

#[derive(Deserialize)]
struct Sets {
    sets: Vec<SetView>,
}

impl Hosts {
    pub(super) fn new(names: Vec<String>, reach: Reach, change: Change) -> Self {
        let standing = names.iter().map(|_| Mutex::default()).collect();
        Self {
            names,
            reach,
            change,
            standing,
        }
    }

    pub(super) fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    pub(super) const fn change(&self) -> &Change {
        &self.change
    }

    /// The session that stands, or a new one.
    pub(super) fn at(&self, host: usize) -> Result<Arc<Standing>, String> {
        let standing = self.slot(host).clone();
        match standing {
            Some(standing) if standing.session.is_open() => Ok(standing),
            _ => self.open(host),
        }
    }

    /// A new session. The old one ends when nobody uses it any more.
    pub(super) fn open(&self, host: usize) -> Result<Arc<Standing>, String> {
        drop(self.slot(host).take());
        let session = Session::open(self.name(host), &self.reach)
            .map_err(|error| error.trouble.to_string())?;
        let surroundings =
            far::surroundings(&session, &|| false).map_err(|failure| failure.why.to_string())?;
        let standing = Arc::new(Standing {
            session,
            surroundings,
        });
        *self.slot(host) = Some(Arc::clone(&standing));
        Ok(standing)
    }

    fn slot(&self, host: usize) -> std::sync::MutexGuard<'_, Option<Arc<Standing>>> {
        let slot = self.standing[host].lock();
        slot.unwrap_or_else(PoisonError::into_inner)
    }

    /// `linerate tune apply` of the change with these words behind its own.
    pub(super) fn apply(
        &self,
        host: usize,
        more: &[String],
        within: Nanos,
    ) -> Result<Said, String> {
        let change = &self.change;
        let own = ["--json", "--confirm-within"].map(str::to_owned);
        let time = format!("{}ms", change.confirm_within.0 / 1_000_000);
        let options = change.options.iter().chain(&own).chain([&time]);
        let mut words = self.words(host, "apply", options);
        // What follows a `--` is the last of all.
        let last = more.iter().position(|word| word == "--");
        let (more, last) = more.split_at(last.unwrap_or(more.len()));
        words.extend(more.iter().cloned().map(Word::Text));
        words.extend((0..change.files.len()).map(Word::In));
        words.extend(last.iter().cloned().map(Word::Text));
        let files = change.files.iter();
        let files = files.map(|file| (file.name.clone(), file.text.clone().into_bytes()));
        self.ask(host, words, files.collect(), within)
    }

    /// Another command of `linerate tune` about the host's sets of changes.
    pub(super) fn tune(&self, host: usize, command: &str, more: &[&str]) -> Result<Said, String> {
        let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        let words = self.words(host, command, more.iter());
        self.ask(host, words, Vec::new(), SOON)
    }

    /// The host's sets of changes, the oldest first.
    pub(super) fn sets(&self, host: usize) -> Result<Vec<SetView>, String> {
        let said = self.tune(host, "status", &["--json"])?;
        let sets: Sets = serde_json::from_slice(&said.out)
            .map_err(|error| format!("its sets of changes cannot be read: {error}"))?;
        if said.code != 0 {
            return Err(said.why());
        }
        Ok(sets.sets)
    }

    fn words<'a>(
        &'a self,
        host: usize,
        command: &str,
        options: impl Iterator<Item = &'a String>,
    ) -> Vec<Word> {
        let filled = self.change.place.iter().chain(options);
        let filled = filled.map(|word| Word::Text(word.replace(HOST, self.name(host))));
        ["tune", command]
            .map(Word::from)
            .into_iter()
            .chain(filled)
            .collect()
    }

    /// Runs a command to its end.
    fn ask(
        &self,
        host: usize,
        words: Vec<Word>,
        files: Vec<(String, Vec<u8>)>,
        within: Nanos,
    ) -> Result<Said, String> {
        let standing = self.at(host)?;
        let said = |error: FleetError| error.trouble.to_string();
        let ask = Ask {
            words,
            files,
            ..Ask::default()
        };
        let mut asked = standing.session.ask(ask).map_err(said)?;
        let until = clock::monotonic().plus(within);
        let (mut out, mut error) = (Vec::new(), Vec::new());
        loop {
            match asked.next(Some(LOOK)) {
                Ok(Event::Out(bytes)) => out.extend_from_slice(&bytes),
                Ok(Event::Err(bytes)) => error.extend_from_slice(&bytes),
                Ok(Event::File(..)) => {}
                Ok(Event::Ended(Outcome::Code(code))) => {
                    return Ok(Said {
                        code,
                        out,
                        error: String::from_utf8_lossy(&error).into_owned(),
                    });
                }
                Ok(Event::Ended(outcome)) => return Err(format!("it did not end: {outcome:?}")),
                Err(FleetError {
                    trouble: Trouble::Silent { patience: LOOK, .. },
                    ..
                }) if clock::monotonic() < until => {}
                Err(FleetError {
                    trouble: Trouble::Silent { patience: LOOK, .. },
                    ..
                }) => {
                    asked.cancel();
                    return Err(format!("no end within {within}"));
                }
                Err(error) => return Err(said(error)),
            }
            if out.len().max(error.len()) > MOST_BODY {
                asked.cancel();
                return Err(format!("an answer of more than {MOST_BODY} bytes"));
            }
        }
    }
}
