//! The path on virtual time, and the scenario files.

mod claims;
mod course;
mod messages;
mod presets;
mod properties;
mod reading;
mod reference;
mod scenarios;
mod stars;
mod tables;
