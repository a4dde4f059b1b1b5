//! The audit and the comparison, on hosts in files.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read and write the repository's files and folders of their own"
)]

mod apply;
mod blocks;
mod checks;
mod differences;
mod guest;
mod hosts;
mod live;
mod persist;
mod plan;
mod recipes;
mod reference;
