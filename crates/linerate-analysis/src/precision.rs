//! Ending a test when its rate is known well enough.
//!
//! Looking at an interval again and again, and stopping when it is narrow, stops more often than by chance
//! when it is too narrow. So there are few looks, the first after 5 s and each at half again the time of the one
//! before; a test ends only when two looks in a row are satisfied; the interval must rest on as many independent
//! samples as its width needs to be known; and the interval of such a run, in the test and in its report, is
//! wider than that of a run of fixed length by [`statistics::LOOKED_AT`]. The simulations below hold its coverage
//! at about what a run of fixed length has.

use linerate_model::plan::Plan;
use linerate_model::precision::FIRST_LOOK;
use linerate_model::units::Nanos;

use crate::statistics::{self, Plateau};

/// Independent samples below which the width of an interval is not believed.
const ENOUGH: f64 = 60.0;

/// The plateau of a run: with the interval that its plan calls for.
pub fn plateau(plan: &Plan, rates: &[f64]) -> Option<Plateau> {
    let mut plateau = statistics::plateau(rates)?;
    if plan.precision.is_some() {
        plateau.estimate = plateau.estimate.looked_at();
    }
    Some(plateau)
}

/// Half the width of an interval as a share of its mean; infinite where there is none.
pub fn half_width(plateau: &Plateau) -> f64 {
    let estimate = &plateau.estimate;
    if estimate.mean > 0.0 {
        (estimate.high - estimate.mean) / estimate.mean
    } else {
        f64::INFINITY
    }
}

/// Whether a plateau is known within a share of its mean.
pub fn reached(plateau: &Plateau, precision: f64) -> bool {
    plateau.unsteady.is_none()
        && plateau.estimate.independent >= ENOUGH
        && half_width(plateau) <= precision
}

/// How long a run at this variation would have to be, as a multiple of what it was; `None` where no longer.
pub fn times_longer(plateau: &Plateau, precision: f64) -> Option<f64> {
    let by_width = (half_width(plateau) / precision).powi(2);
    let by_samples = ENOUGH / plateau.estimate.independent.max(1.0);
    let times = by_width.max(by_samples);
    (times.is_finite() && times > 1.0).then_some(times)
}

/// When to look, and whether to stop.
#[derive(Debug, Clone)]
pub struct Looks {
    precision: f64,
    next: Nanos,
    satisfied: bool,
}

impl Looks {
    /// For this precision, a share of the mean.
    pub const fn new(precision: f64) -> Self {
        Self {
            precision,
            next: FIRST_LOOK,
            satisfied: false,
        }
    }

    /// How much of the measured time must have passed for the next look.
    pub const fn next(&self) -> Nanos {
        self.next
    }

    /// Looks at the plateaus of all directions; true = the test may end.
    pub fn look(&mut self, plateaus: &[Option<Plateau>]) -> bool {
        self.next = Nanos(self.next.0 / 2 * 3);
        let now = !plateaus.is_empty()
            && plateaus.iter().all(|plateau| {
                plateau
                    .as_ref()
                    .is_some_and(|plateau| reached(plateau, self.precision))
            });
        std::mem::replace(&mut self.satisfied, now) && now
    }
}

#[cfg(test)]
mod tests;
