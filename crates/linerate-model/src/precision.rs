//! When a test that ends once its rate is known well enough is looked at, and how long it may last.

use crate::units::Nanos;

/// When the interval is checked first; nothing ends there, because two checks in a row must pass.
pub const FIRST_LOOK: Nanos = Nanos::from_millis(5000);
/// The second one, at which a test may end: as short as it can be.
pub const LEAST: Nanos = Nanos::from_millis(7500);
/// A test that is not told how long it may last lasts at most this long.
pub const DEFAULT_MOST: Nanos = Nanos::from_millis(120_000);
