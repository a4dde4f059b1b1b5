//! The path on virtual time, and the scenario files.

mod messages;
mod presets;
mod reading;
