//! What is shown, complete: pages, JSON, CSV and metrics are drawn from these, and derive nothing.

pub(crate) mod alert;
pub(crate) mod audit;
pub(crate) mod cell;
pub(crate) mod grid;
pub(crate) mod host;
pub(crate) mod pair;
pub(crate) mod plan;
pub(crate) mod run;
