//! What a power cut leaves of files: a scan for damaged ones, and a matrix of power cuts that were made.

mod matrix;
mod scan;

pub use matrix::{line, matrix};
pub use scan::report;
