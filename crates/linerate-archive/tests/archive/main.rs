//! The archive through its public interface.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod appending;
mod durable;
mod facts_and_alerts;
mod full_disk;
mod order;
mod output;
mod parquet;
mod rate;
mod retaining;
mod runs;
