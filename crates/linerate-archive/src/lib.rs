//! The archive of regular tests: what became of each test that was due, its raw record, what the hosts were like, alerts.
//!
//! A folder holds it: `archive.sqlite3` with the figures, and below `raw` each test's record, compressed and named after
//! its hash. Records are the truth; figures can be computed from them again ([`Archive::recompute`]).
//!
//! - What [`Archive::append`] and the other writing calls acknowledge is on disk. One thread writes and takes what is
//!   waiting into one transaction; each reader has a connection of its own and waits for nobody.
//! - A record's file is there before the row that names it. Files that no row names are swept after a day.
//! - A test that did not measure has no rate, in any column and any export.
//! - Not here: what figures mean, what is due, whether an alert is right. The archive keeps what it gets; it reads the
//!   clock only to mark a file as new.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use linerate_archive::{Appended, Archive, RunFilter};
//! use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchOutcome, WatchRun};
//!
//! let folder = tempfile::tempdir()?;
//! let archive = Archive::open(folder.path())?;
//! let due = UnixMillis(1_764_038_400_000);
//! let run = WatchRun {
//!     id: RunId::of(due, 7),
//!     task: "uplink".into(),
//!     from: "a".into(),
//!     to: "b".into(),
//!     class: RunClass::Regular,
//!     due,
//!     deadline: due.plus_millis(60_000),
//!     started: Some(due),
//!     ended: due.plus_millis(2_000),
//!     outcome: WatchOutcome::Failed {
//!         stage: "connecting".into(),
//!         why: "b refused the connection".into(),
//!     },
//! };
//! assert_eq!(archive.append(&run, None)?, Appended::New);
//! assert_eq!(archive.append(&run, None)?, Appended::Known);
//! let newest = archive.runs(&RunFilter { limit: 10, ..RunFilter::default() })?;
//! assert_eq!(newest[0].run, run);
//! # Ok(())
//! # }
//! ```

mod alerts;
mod archive;
mod backup;
mod columns;
mod csv;
mod days;
mod error;
mod events;
mod facts;
mod forecast;
mod objects;
mod parquet_file;
mod recompute;
mod reserve;
mod retention;
mod row;
mod runs;
mod schema;
mod verify;
mod writer;

pub use alerts::{AlertFilter, AlertKey, SilenceKey};
pub use archive::Archive;
pub use backup::Backup;
pub use csv::CsvWriter;
pub use days::Day;
pub use error::ArchiveError;
pub use events::{Event, EventId, EventKind};
pub use facts::{Facts, FactsPut};
pub use forecast::Forecast;
pub use objects::{LONGEST_RECORD, RecordHash};
pub use recompute::Recomputed;
pub use retention::{Keep, Retained, Retention};
pub use runs::{Appended, OutcomeKind, PairState, RunFilter, Stored};
pub use schema::SCHEMA;
pub use verify::Verification;
