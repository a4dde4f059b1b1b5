//! Probes of a real disk.
#![expect(clippy::unwrap_used, reason = "a test's helpers fail like the test")]

mod beside_fio;
mod transfer;
