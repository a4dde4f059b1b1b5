//! Checks of a node's health: which checks a file asks for, how their results are judged, and what to tell the cluster's controller.
//!
//! [`settings`] reads `check.toml` into [`Check`]s. A process of its own carries one out and answers with items, which
//! [`judge`] has judged. [`memory`] keeps the states of the last runs; a check is *bad* when it failed in so many of them.
//! [`slurm`] reads what `sinfo` says and decides: drain, hold back, resume, or leave alone.
//!
//! What it is not: it opens no file, starts no process and reads no clock. The binary does that.
//!
//! ```
//! use linerate_check::settings::Settings;
//!
//! let settings = Settings::parse("check.toml", "[[mount]]\npath = \"/home\"\ntype = \"nfs4\"\n").unwrap();
//! assert_eq!(settings.checks[0].name, "mount /home");
//! assert_eq!(settings.checks[0].drain.unwrap().to_string(), "2 of 3");
//! ```

pub mod judge;
pub mod memory;
pub mod settings;
pub mod slurm;

pub use settings::{Check, Settings, What};
