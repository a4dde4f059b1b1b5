//! What `linerate serve --json-stream` reports, as far as another linerate acts on it.

use std::net::SocketAddr;

use linerate_model::plain_text::PlainText;
use serde::{Deserialize, Serialize};

/// A line of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Announcement {
    /// It listens. The first line, one for each address family.
    Listening {
        /// Address and port.
        address: SocketAddr,
        /// The port, which the kernel chose where 0 was asked for.
        port: u16,
    },
    /// A connection was turned away, or failed before its streams ran.
    Refused {
        /// Whose.
        peer: SocketAddr,
        /// Why.
        reason: PlainText,
    },
    /// Something that a running test reports.
    Progress {
        /// The event.
        of: Step,
    },
    /// A test ended, and its document follows.
    Finished,
    /// Anything else.
    #[serde(other)]
    Other,
}

/// An event of a test, by its name alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// `connected`, `opened`, `started`, `interval` …
    pub(crate) event: String,
}

impl Announcement {
    /// A line; `None` where it is no JSON of a server.
    pub(crate) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// Whether the streams of a test were let go.
    pub(crate) fn is_start(&self) -> bool {
        matches!(self, Self::Progress { of } if of.event == "started")
    }

    /// As a line, without its newline.
    pub(crate) fn line(&self) -> String {
        // Numbers and texts alone: it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back() {
        let listening = Announcement::Listening {
            address: "[::1]:5".parse().unwrap(),
            port: 5,
        };
        let line = listening.line();
        assert_eq!(
            line,
            r#"{"event":"listening","address":"[::1]:5","port":5}"#
        );
        assert_eq!(Announcement::read(&line), Some(listening));
    }

    #[test]
    fn only_what_is_acted_on_is_looked_at() {
        let read = |line| Announcement::read(line).unwrap();
        let started = read(r#"{"event":"progress","test":1,"of":{"event":"started"}}"#);
        assert!(started.is_start());
        let finished = read(r#"{"event":"finished","test":1,"of":{"event":"end","kind":"run"}}"#);
        assert_eq!(finished, Announcement::Finished);
        let interval = read(r#"{"event":"progress","test":1,"of":{"event":"interval","bps":1}}"#);
        assert!(!interval.is_start());
        assert_eq!(
            read(r#"{"event":"limits","clients":3}"#),
            Announcement::Other
        );
        for wrong in [
            "",
            "listening on 127.0.0.1:5",
            "{}",
            r#"{"event":"listening"}"#,
        ] {
            assert_eq!(Announcement::read(wrong), None, "{wrong}");
        }
    }
}
