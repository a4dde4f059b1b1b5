//! Reports of made-up runs against checked-in files, and what the formats promise.

mod document;
mod kept;
mod live;
mod observed;
mod questions;
mod runs;
mod texts;
