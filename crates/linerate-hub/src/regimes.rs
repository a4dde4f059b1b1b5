//! Levels of a pair's goodput.

use crate::view::pair::Regime;
use crate::view::run::RunRow;

/// The levels of these tests, the latest of which is the first.
pub(crate) fn of(_runs: &[RunRow]) -> Vec<Regime> {
    Vec::new()
}
