//! A lab as a file: the path, the hosts, the test and what is expected of it.
//!
//! [`Scenario::parse`] reads the text of such a file into types that cannot be wrong; what is wrong in the
//! text is named with its line. [`keys`] defines every key once, [`PRESETS`] are paths that many have.
//!
//! [`Scenario::claims`] says what a path is to do, [`Scenario::check_claims`] whether it did.
//!
//! What it is not: it opens no file and makes no path.
//!
//! ```
//! use linerate_lab::scenario::{Mode, Scenario};
//!
//! let scenario = Scenario::parse("long.toml", "name = \"long\"\n[path]\nrtt = \"60ms\"\n").unwrap();
//! assert_eq!(scenario.path.rtt().to_string(), "60.0 ms");
//! assert_eq!(scenario.resolved_mode(), Mode::Bulk);
//!
//! let error = Scenario::parse("long.toml", "name = \"long\"\n[path]\nrt = \"60ms\"\n").unwrap_err();
//! assert_eq!(error.to_string(), "long.toml:3: unknown key 'rt' in [path]: did you mean 'rtt'?");
//! ```

pub(crate) mod amount;
mod beyond_netem;
mod claims;
mod consistency;
pub mod keys;
mod presets;
pub(crate) mod read;
mod read_path;
mod test_arguments;
mod types;

pub use beyond_netem::LEAST_REORDERED;
pub use claims::{Checked, Claim, Standing};
pub use consistency::PACKET_MODE_LIMIT;
pub use presets::{PRESETS, Preset};
pub use types::{
    Cross, CrossKind, DEFAULT_CONGESTION, EngineWish, Expect, Family, HostSpec, Mode, ModeWish,
    PathSpec, RateRange, Scenario, ShareRange, TestSpec, Way,
};
