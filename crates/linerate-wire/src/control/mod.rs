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
