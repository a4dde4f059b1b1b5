//! A finding being written.

use linerate_model::finding::{Expected, Figure, Finding};
use linerate_model::record::Role;
use linerate_model::remedy::{Fix, Remedy};

use crate::would_pass::WouldPass;

/// A finding being written.
pub(crate) struct Draft(pub(crate) Finding);

impl Draft {
    pub(crate) fn share(mut self, share: f64) -> Self {
        self.0.share_of_time = Some(share.clamp(0.0, 1.0));
        self
    }

    pub(crate) fn figures(mut self, figures: impl IntoIterator<Item = Option<Figure>>) -> Self {
        self.0.figures.extend(figures.into_iter().flatten());
        self
    }

    pub(crate) fn remedy(mut self, host: Role, fix: Fix) -> Self {
        self.0.remedy = Some(Remedy { host, fix });
        self
    }

    /// The rate to expect after the remedy, ± a share of it, and what would limit then.
    pub(crate) fn expected(mut self, rate_bps: f64, uncertainty: f64, then: &str) -> Self {
        self.0.expected = (rate_bps.is_finite() && rate_bps > 0.0).then(|| Expected {
            rate_bps,
            low_bps: rate_bps * (1.0 - uncertainty),
            high_bps: rate_bps * (1.0 + uncertainty),
            then: then.to_owned(),
        });
        self
    }

    /// Where the same would have been enough.
    pub(crate) fn would_pass(mut self, passes: Option<WouldPass>) -> Self {
        if let Some(passes) = passes {
            self.0.would_pass = Some(passes.sentence);
            self.0.figures.extend(passes.figures);
        }
        self
    }

    pub(crate) fn next(mut self, command: String) -> Self {
        self.0.next = Some(command);
        self
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the last word of every rule, each of which may find nothing"
    )]
    pub(crate) fn done(self) -> Option<Finding> {
        Some(self.0)
    }
}
