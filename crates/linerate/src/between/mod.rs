//! Tests between two hosts of which either may be far away.

pub(crate) mod reach;
pub(crate) mod roles;
