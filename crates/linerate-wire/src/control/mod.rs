//! The control connection: two machines that turn bytes into events and verbs into bytes.
//!
//! Between stock ends, after the cookie (C = client, S = server):
//! S 9 → C parameters → S 10 → streams → S 1, 2 → … → C 4 → S 13 → C results → S results → S 14 →
//! C 16. Between two linerates, with our messages (`76`) in between:
//! S 9 → C parameters with the key `linerate` → S hello → C ping ↔ S pong … → C ready → S 10 →
//! streams → S 1, 2 → … (S received …) → C finishing → C 4 → S finishing → S 13 → C results → S results →
//! C ping ↔ S pong … → C `end_request` → S end → S 14 → C 16.
//!
//! After an error or an end (denied, terminated, done) a machine is closed: it takes no more
//! input and keeps what it still has to transmit. A machine never waits: a peer that stops in the
//! middle of a message (CVE-2023-7250) is the caller's to time out.

mod client;
mod reader;
mod server;
mod session;

pub use client::{ClientControl, ClientEvent, ClientSide};
pub use server::{ServerControl, ServerEvent, ServerSide};
pub use session::{Control, Side};

use crate::extension::MAX_END_BYTES;
use crate::results::{MAX_CLIENT_RESULTS_BYTES, MAX_RESULTS_BYTES};

/// How much a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest results, in bytes; at most 64 MiB count.
    pub results_bytes: usize,
    /// Events that may wait for the caller.
    pub events: usize,
}

impl Default for Limits {
    /// For a client: results of 16 MiB, since they may hold the server's output.
    fn default() -> Self {
        Self {
            results_bytes: MAX_RESULTS_BYTES,
            events: 64,
        }
    }
}

impl Limits {
    /// For a server: results of 1 MiB, many times what the most streams take.
    pub fn for_server() -> Self {
        Self {
            results_bytes: MAX_CLIENT_RESULTS_BYTES,
            ..Self::default()
        }
    }

    fn results_bound(&self) -> usize {
        self.results_bytes.min(MAX_END_BYTES)
    }
}
