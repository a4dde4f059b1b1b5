//! Bytes of today, kept across restarts.

use std::path::{Path, PathBuf};

use linerate_fleet::enrolled::register::{make_private, read_private, write_private};
use linerate_model::units::Bytes;
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};

use crate::error::AgentError;

const FILE: &str = "spent.json";
const DAY_MILLIS: u64 = 86_400_000;

/// What tests of a day (UTC) took.
#[derive(Debug)]
pub struct Spent {
    path: PathBuf,
    day: Day,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Day {
    /// Days since 1970.
    day: u64,
    bytes: u64,
}

impl Spent {
    /// As the agent before left it.
    ///
    /// # Errors
    /// Those of its file: a host that does not know what it spent must not begin at 0.
    pub fn open(folder: &Path) -> Result<Self, AgentError> {
        make_private(folder)?;
        let path = folder.join(FILE);
        let day = match read_private(&path)? {
            None => Day::default(),
            Some(text) => serde_json::from_str(&text).map_err(|error| AgentError::Broken {
                folder: folder.to_owned(),
                why: format!("{FILE}: {error}"),
            })?,
        };
        Ok(Self { path, day })
    }

    /// Bytes of the day of `now`. A clock that goes back does not empty it.
    pub fn on(&mut self, now: UnixMillis) -> Bytes {
        let today = now.0 / DAY_MILLIS;
        if today > self.day.day {
            self.day = Day {
                day: today,
                bytes: 0,
            };
        }
        Bytes(self.day.bytes)
    }

    /// Takes bytes; they are on disk when this returns.
    ///
    /// # Errors
    /// Those of writing: then nothing may begin.
    pub fn take(&mut self, now: UnixMillis, bytes: Bytes) -> Result<(), AgentError> {
        if bytes.0 == 0 {
            return Ok(());
        }
        self.on(now);
        self.day.bytes = self.day.bytes.saturating_add(bytes.0);
        self.write()
    }

    /// Gives back bytes that were taken on the day of `taken` and not used.
    ///
    /// # Errors
    /// Those of writing; the bytes stay spent after a restart then.
    pub fn give_back(&mut self, taken: UnixMillis, bytes: Bytes) -> Result<(), AgentError> {
        if bytes.0 == 0 || taken.0 / DAY_MILLIS != self.day.day {
            return Ok(());
        }
        self.day.bytes = self.day.bytes.saturating_sub(bytes.0);
        self.write()
    }

    fn write(&self) -> Result<(), AgentError> {
        let text = serde_json::to_vec(&self.day).unwrap_or_default();
        Ok(write_private(&self.path, &text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spent_stays_spent_until_the_next_day() {
        let folder = tempfile::tempdir().unwrap();
        let noon = UnixMillis(20_000 * DAY_MILLIS + DAY_MILLIS / 2);
        let mut spent = Spent::open(folder.path()).unwrap();
        spent.take(noon, Bytes(700)).unwrap();
        // Killed and started again.
        let mut spent = Spent::open(folder.path()).unwrap();
        assert_eq!(spent.on(noon), Bytes(700));
        spent.give_back(noon, Bytes(200)).unwrap();
        // The clock goes back a day.
        assert_eq!(spent.on(UnixMillis(noon.0 - DAY_MILLIS)), Bytes(500));
        let mut spent = Spent::open(folder.path()).unwrap();
        assert_eq!(spent.on(noon), Bytes(500));
        assert_eq!(spent.on(UnixMillis(noon.0 + DAY_MILLIS)), Bytes(0));
        // What yesterday's test gives back is not today's.
        spent
            .take(UnixMillis(noon.0 + DAY_MILLIS), Bytes(9))
            .unwrap();
        spent.give_back(noon, Bytes(9)).unwrap();
        assert_eq!(spent.on(UnixMillis(noon.0 + DAY_MILLIS)), Bytes(9));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_taken_for_nothing_spent() {
        let folder = tempfile::tempdir().unwrap();
        write_private(&folder.path().join(FILE), b"{").unwrap();
        Spent::open(folder.path()).unwrap_err();
    }
}
