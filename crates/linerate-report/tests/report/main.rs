//! Reports of made-up runs against checked-in files, and what the formats promise.

mod document;
mod kept;
mod live;
mod questions;
mod observed;
mod runs;
mod texts;
