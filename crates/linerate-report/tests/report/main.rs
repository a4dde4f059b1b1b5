//! Reports of made-up runs against checked-in files, and what the formats promise.

mod compare;
mod document;
mod kept;
mod live;
mod observed;
mod pictures;
mod questions;
mod reference;
mod runs;
mod texts;
mod tree;
