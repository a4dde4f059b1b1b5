//! Which segments the wire loses.

use super::random::Random;
use super::settings::Loss;

/// A loss model at work. It is asked segment by segment, in the order of the wire.
#[derive(Debug, Clone)]
pub(super) struct LossModel {
    model: Loss,
    random: Random,
    /// Segments that pass before the next one that is lost, where the model is one of gaps.
    gap: u64,
    /// Gilbert's state.
    bad: bool,
    /// Whether the last segment was lost.
    lost_last: bool,
}

/// What became of some segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Hits {
    /// Segments lost.
    pub(super) segments: u64,
    /// Runs of lost segments that began among them.
    pub(super) runs: u64,
}

impl LossModel {
    pub(super) fn new(model: Loss, random: Random) -> Self {
        let mut this = Self {
            model,
            random,
            gap: 0,
            bad: false,
            lost_last: false,
        };
        this.gap = this.next_gap();
        this
    }

    /// Changes the model; one that is the same goes on where it was.
    pub(super) fn set(&mut self, model: Loss) {
        if model != self.model {
            self.model = model;
            self.bad = false;
            self.gap = self.next_gap();
        }
    }

    /// Whether the model can lose anything.
    pub(super) fn is_idle(&self) -> bool {
        self.model == Loss::None
    }

    /// Asks about the next `segments`.
    pub(super) fn ask(&mut self, segments: u32) -> Hits {
        match self.model {
            Loss::None => Hits::default(),
            Loss::Independent(_) | Loss::Every(_) => self.ask_gaps(u64::from(segments)),
            Loss::Gilbert { .. } => self.ask_each(segments),
        }
    }

    fn next_gap(&mut self) -> u64 {
        match self.model {
            Loss::Independent(odds) => self.random.misses(odds),
            Loss::Every(nth) => nth.get() - 1,
            Loss::None | Loss::Gilbert { .. } => u64::MAX,
        }
    }

    fn ask_gaps(&mut self, segments: u64) -> Hits {
        let mut hits = Hits::default();
        let mut left = segments;
        // Ends: each turn takes at least one segment off.
        while self.gap < left {
            hits.segments += 1;
            hits.runs += u64::from(self.gap > 0 || !self.lost_last);
            left -= self.gap + 1;
            self.lost_last = true;
            self.gap = self.next_gap();
        }
        if left > 0 {
            self.gap -= left;
            self.lost_last = false;
        }
        hits
    }

    fn ask_each(&mut self, segments: u32) -> Hits {
        let Loss::Gilbert { p, r, bad, good } = self.model else {
            return Hits::default();
        };
        let mut hits = Hits::default();
        for _ in 0..segments {
            let lost = self.random.happens(if self.bad { bad } else { good });
            hits.segments += u64::from(lost);
            hits.runs += u64::from(lost && !self.lost_last);
            self.lost_last = lost;
            if self.random.happens(if self.bad { r } else { p }) {
                self.bad = !self.bad;
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::path::Probability;

    fn odds(share: f64) -> Probability {
        Probability::new(share).unwrap()
    }

    fn model(loss: Loss) -> LossModel {
        LossModel::new(loss, Random::new(3, 0))
    }

    /// Lost segments and runs among `count` asked one at a time.
    fn one_by_one(loss: Loss, count: u32) -> Hits {
        let mut model = model(loss);
        (0..count)
            .map(|_| model.ask(1))
            .fold(Hits::default(), |sum, hits| Hits {
                segments: sum.segments + hits.segments,
                runs: sum.runs + hits.runs,
            })
    }

    #[test]
    fn independent_loss_keeps_to_its_binomial_interval() {
        for share in [1e-4, 1e-2, 0.3] {
            let count = 2_000_000;
            let hits = one_by_one(Loss::Independent(odds(share)), count);
            let mean = f64::from(count) * share;
            let deviation = (mean * (1.0 - share)).sqrt();
            assert!(
                (hits.segments as f64 - mean).abs() < 4.0 * deviation,
                "{share}: {hits:?}"
            );
        }
    }

    #[test]
    fn every_nth_is_exactly_that() {
        let mut model = model(Loss::Every(NonZeroU64::new(5).unwrap()));
        let lost: Vec<u32> = (1..=20).filter(|_| model.ask(1).segments == 1).collect();
        assert_eq!(lost, [5, 10, 15, 20]);
    }

    #[test]
    fn super_segments_meet_the_odds_of_each_of_their_segments() {
        let count = 40_000;
        let hits_of = |segments: u32| {
            let mut model = model(Loss::Independent(odds(0.001)));
            let hits: u64 = (0..count * 40 / segments)
                .map(|_| model.ask(segments).segments)
                .sum();
            hits
        };
        // The gaps are drawn alike, so it makes no difference at all how the segments are handed in.
        assert_eq!(hits_of(1), hits_of(40));
    }

    #[test]
    fn gilberts_bursts_have_the_length_that_was_asked_for() {
        let (p, r) = (0.001, 0.25);
        let loss = Loss::Gilbert {
            p: odds(p),
            r: odds(r),
            bad: Probability::ALWAYS,
            good: Probability::NEVER,
        };
        let hits = one_by_one(loss, 4_000_000);
        let burst = hits.segments as f64 / hits.runs as f64;
        assert!((burst * r - 1.0).abs() < 0.05, "mean burst {burst}");
        // The share of time in the bad state is p / (p + r).
        let share = hits.segments as f64 / 4e6;
        assert!((share / (p / (p + r)) - 1.0).abs() < 0.1, "share {share}");
    }

    #[test]
    fn a_model_that_does_not_change_goes_on() {
        let every = Loss::Every(NonZeroU64::new(3).unwrap());
        let mut model = model(every);
        assert_eq!(model.ask(2).segments, 0);
        model.set(every);
        assert_eq!(model.ask(1).segments, 1);
        model.set(Loss::None);
        assert!(model.is_idle());
        assert_eq!(model.ask(1000), Hits::default());
    }
}
