//! A finding being written.

use linerate_model::finding::{Expected, Figure, Finding, Label, Severity};
use linerate_model::plan::{End, Plan};
use linerate_model::record::Role;
use linerate_model::remedy::{Fix, Remedy};
use linerate_model::units::Nanos;

use crate::facts::case::Case;
use crate::would_pass::WouldPass;

/// Name of a figure: the rate of a direction.
pub(crate) const RATE: &str = "goodput of the plateau, bit/s";

/// A finding being written about `A`: a [`Case`], or nothing more than its sentence names.
pub(crate) struct Draft<A = ()> {
    pub(crate) finding: Finding,
    pub(crate) about: A,
}

/// A finding about a direction being written.
pub(crate) type CaseDraft<'a> = Draft<&'a Case<'a>>;

/// What a figure can be made of; there is none where the value is not known or not finite.
pub(crate) trait Value {
    fn known(self) -> Option<f64>;
}

impl Value for f64 {
    fn known(self) -> Option<f64> {
        Some(self)
    }
}

impl Value for u32 {
    fn known(self) -> Option<f64> {
        Some(self.into())
    }
}

impl Value for u64 {
    fn known(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl Value for usize {
    fn known(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl<V: Value> Value for Option<V> {
    fn known(self) -> Option<f64> {
        self.and_then(Value::known)
    }
}

/// A limit where that holds, else a note.
pub(crate) const fn limit_if(limits: bool) -> Severity {
    if limits {
        Severity::Limit
    } else {
        Severity::Note
    }
}

impl<A> Draft<A> {
    /// The share of the time that it explains, 0 to 1; absent where it is not known.
    pub(crate) fn share(mut self, share: impl Into<Option<f64>>) -> Self {
        self.finding.share_of_time = share.into().map(|share| share.clamp(0.0, 1.0));
        self
    }

    /// A figure, with the place where it was measured.
    pub(crate) fn figure(
        mut self,
        label: impl Into<Label>,
        value: impl Value,
        place: impl Into<String>,
    ) -> Self {
        let value = value.known().filter(|value| value.is_finite());
        let figure = value.map(|value| Figure::new(label, value, place));
        self.finding.figures.extend(figure);
        self
    }

    /// Figures with their places.
    pub(crate) fn figures(mut self, figures: impl IntoIterator<Item = Figure>) -> Self {
        self.finding.figures.extend(figures);
        self
    }

    pub(crate) fn remedy(mut self, host: Role, fix: Fix) -> Self {
        self.finding.remedy = Some(Remedy { host, fix });
        self
    }

    /// The rate to expect after the remedy, ± a share of it, and what would limit then.
    pub(crate) fn expected(mut self, rate_bps: f64, uncertainty: f64, then: &str) -> Self {
        self.finding.expected = (rate_bps.is_finite() && rate_bps > 0.0).then(|| Expected {
            rate_bps,
            low_bps: rate_bps * (1.0 - uncertainty),
            high_bps: rate_bps * (1.0 + uncertainty),
            then: then.to_owned(),
        });
        self
    }

    /// Where the same would have been enough.
    pub(crate) fn would_pass(mut self, passes: Option<WouldPass>) -> Self {
        let Some(WouldPass { sentence, figures }) = passes else {
            return self;
        };
        self.finding.would_pass = Some(sentence);
        self.figures(figures)
    }

    pub(crate) fn next(mut self, command: impl Into<Option<String>>) -> Self {
        self.finding.next = command.into();
        self
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the last word of every rule, each of which may find nothing"
    )]
    pub(crate) fn done(self) -> Option<Finding> {
        Some(self.finding)
    }
}

impl Draft {
    /// A finding of a whole transcript or capture.
    pub(crate) fn new(id: &str, severity: Severity, sentence: String) -> Self {
        let finding = Finding::new(id, severity, sentence);
        Self { finding, about: () }
    }
}

impl Draft<&Case<'_>> {
    /// A figure of the sending kernel.
    pub(crate) fn sender(self, label: impl Into<Label>, value: impl Value) -> Self {
        let place = self.about.kernel(self.about.direction.flow.sender());
        self.figure(label, value, place)
    }

    /// A figure of the receiving host.
    pub(crate) fn receiver(self, label: impl Into<Label>, value: impl Value) -> Self {
        let place = self.about.kernel(self.about.direction.flow.receiver());
        self.figure(label, value, place)
    }

    /// The direction's rate.
    pub(crate) fn rate(self) -> Self {
        let (rate, place) = (self.about.rate(), self.about.rate_place());
        self.figure(RATE, rate, place)
    }

    /// The round trips of the plateau, mean and minimum.
    pub(crate) fn round_trips(self) -> Self {
        let path = self.about.path();
        self.sender("rtt mean, µs", path.rtt_us)
            .sender("rtt minimum, µs", path.min_rtt_us)
    }

    /// What the sending host should change.
    pub(crate) fn sender_remedy(self, fix: Fix) -> Self {
        let host = self.about.direction.flow.sender();
        self.remedy(host, fix)
    }

    /// The same test again, with four times as many streams, 128 at most.
    pub(crate) fn with_more_streams(self) -> Self {
        self.again(|plan| plan.streams = plan.streams.saturating_mul(4).min(128))
    }

    /// The same test again, for another time.
    pub(crate) fn for_seconds(self, seconds: u64) -> Self {
        let span = Nanos::from_millis(seconds.saturating_mul(1000));
        self.again(|plan| plan.end = End::TimeNs(span))
    }

    /// The same test again, three times as long, within 30 s and 10 minutes.
    pub(crate) fn three_times_as_long(self) -> Self {
        let seconds = self.about.direction.span_ns / 1_000_000_000;
        self.for_seconds(seconds.saturating_mul(3).clamp(30, 600))
    }

    /// The same test again, with one thing changed.
    pub(crate) fn again(self, change: impl FnOnce(&mut Plan)) -> Self {
        let command = self.about.again(change);
        self.next(command)
    }
}
