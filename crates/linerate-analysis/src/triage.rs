//! The moments of all sending streams of a direction, laid on one grid of time.

use crate::evidence::GRID_POINTS;
use crate::moments::{self, Moment, Surroundings};
use crate::statistics::quantile;
use crate::time_budget::{self, Band, Class, ClassTimes, StreamBands, TimeBudget};
use linerate_model::record::{EndRecord, Flow};

/// A path is known by what passes it in windows at least this long, ns …
const WINDOW_NS: u64 = 100_000_000;
/// … of which most was spent filling it, and this share of the windows passed less.
const PERCENTILE: f64 = 0.95;
/// A path that was filled for less than this share of the run was not seen full.
const SEEN_FULL: f64 = 0.02;
/// Where it was not: what passed in the best window of this length, ns. Shorter ones show how
/// acknowledgements bunch, not the path.
const BURST_NS: u64 = 40_000_000;

/// Moments of all streams, and their sums on a grid.
pub(crate) struct Triage {
    streams: Vec<(u32, Vec<Moment>)>,
    from_ns: u64,
    step_ns: u64,
    steps: Vec<GridStep>,
}

/// What happened in one step of the grid.
#[derive(Debug, Clone, Copy, Default)]
struct GridStep {
    times: ClassTimes,
    /// Payload sent for the first time, bytes.
    sent: f64,
    /// Payload that passed the path, repeats included, bytes.
    passed: f64,
}

impl Triage {
    /// Classifies all moments of the streams that `sender` sent.
    pub(crate) fn of(
        sender: &EndRecord,
        flow: Flow,
        around: &Surroundings,
    ) -> Result<Self, String> {
        let streams: Vec<(u32, Vec<Moment>)> = sender
            .streams_of(flow)
            .map(|stream| Ok((stream.id, moments::of(stream, around)?)))
            .collect::<Result<_, String>>()?;
        let all = || streams.iter().flat_map(|(_, moments)| moments);
        let from_ns = all().map(|moment| moment.from_ns).min();
        let to_ns = all().map(|moment| moment.to_ns).max();
        let (Some(from_ns), Some(to_ns)) = (from_ns, to_ns.filter(|to| Some(*to) > from_ns)) else {
            return Err("too few samples of the sender's kernel".to_owned());
        };
        let most = streams
            .iter()
            .map(|(_, moments)| moments.len())
            .max()
            .unwrap_or(1) as u64;
        let points = most.clamp(1, GRID_POINTS);
        let step_ns = (to_ns - from_ns).div_ceil(points).max(1);
        let mut triage = Self {
            streams,
            from_ns,
            step_ns,
            steps: Vec::new(),
        };
        triage.steps = triage.grid(&|_| true);
        Ok(triage)
    }

    /// The time of all streams within a span of the sender's clock, by class: of moments that lie in it wholly.
    pub(crate) fn budget(&self, [from, to]: [u64; 2]) -> Result<TimeBudget, String> {
        let mut times = ClassTimes::default();
        for (_, moments) in &self.streams {
            let inside: Vec<&Moment> = moments
                .iter()
                .filter(|moment| moment.from_ns >= from && moment.to_ns <= to)
                .collect();
            if inside.is_empty() {
                return Err("too few samples of the sender's kernel over the plateau".to_owned());
            }
            for moment in inside {
                times.join(&moment.times);
            }
        }
        Ok(TimeBudget {
            times,
            span_ns: [from, to],
        })
    }

    /// What most of the streams' time went to, over the whole run.
    pub(crate) fn bands(&self) -> Vec<Band> {
        let times: Vec<ClassTimes> = self.steps.iter().map(|step| step.times).collect();
        time_budget::merge(self.from_ns, self.step_ns, &times)
    }

    /// The same for each stream.
    pub(crate) fn stream_bands(&self) -> Vec<StreamBands> {
        let of = |id: u32| {
            let steps = self.grid(&|stream| stream == id);
            let times: Vec<ClassTimes> = steps.iter().map(|step| step.times).collect();
            StreamBands {
                id,
                bands: time_budget::merge(self.from_ns, self.step_ns, &times),
            }
        };
        self.streams.iter().map(|(id, _)| of(*id)).collect()
    }

    /// What the path passed while it was full, bit/s of payload; `None` where it was not seen full.
    pub(crate) fn full_path_bps(&self, min_rtt_us: u64) -> Option<f64> {
        let mut all = ClassTimes::default();
        for step in &self.steps {
            all.join(&step.times);
        }
        let seen = all.of(Class::FillingPath) as f64;
        if seen < SEEN_FULL * all.total() as f64 {
            return None;
        }
        let window = WINDOW_NS.max(min_rtt_us.saturating_mul(2000));
        let full = |times: &ClassTimes| times.of(Class::FillingPath) * 2 > times.total();
        quantile(&self.windows(window, full), PERCENTILE)
    }

    /// The most that passed in any short window, bit/s of payload: the path carries at least about that.
    pub(crate) fn best_bps(&self) -> f64 {
        let rates = self.windows(BURST_NS, |_| true);
        rates.into_iter().fold(0.0, f64::max)
    }

    /// Rates at which payload passed in windows of the grid, bit/s, of those that `holds` takes.
    fn windows(&self, window_ns: u64, holds: impl Fn(&ClassTimes) -> bool) -> Vec<f64> {
        let steps = usize::try_from(window_ns.div_ceil(self.step_ns)).unwrap_or(usize::MAX);
        let steps = steps.clamp(1, self.steps.len().max(1));
        let span = steps as f64 * self.step_ns as f64;
        self.steps
            .windows(steps)
            .filter(|window| {
                let mut times = ClassTimes::default();
                for step in *window {
                    times.join(&step.times);
                }
                holds(&times)
            })
            .map(|window| window.iter().map(|step| step.passed).sum::<f64>() * 8e9 / span)
            .collect()
    }

    /// What was missing from `ceiling_bps` over a span of the sender's clock, by the class that the time was
    /// spent in; bits.
    pub(crate) fn missing(&self, ceiling_bps: f64, [from, to]: [u64; 2]) -> [f64; 7] {
        let mut missing = [0.0; 7];
        let ceiling = ceiling_bps * self.step_ns as f64 / 1e9;
        for (number, step) in self.steps.iter().enumerate() {
            let at = self
                .from_ns
                .saturating_add((number as u64).saturating_mul(self.step_ns));
            let total = step.times.total() as f64;
            if at < from || at >= to || total <= 0.0 {
                continue;
            }
            let lacks = (ceiling - step.sent * 8.0).max(0.0);
            for class in Class::ALL {
                missing[class.place()] += lacks * step.times.of(class) as f64 / total;
            }
        }
        missing
    }

    /// The moments of the streams that `takes` takes, divided among the steps that they reach into.
    fn grid(&self, takes: &dyn Fn(u32) -> bool) -> Vec<GridStep> {
        let end = |moments: &[Moment]| moments.last().map_or(0, |moment| moment.to_ns);
        let to_ns = self
            .streams
            .iter()
            .map(|(_, moments)| end(moments))
            .max()
            .unwrap_or(0);
        let count = to_ns.saturating_sub(self.from_ns).div_ceil(self.step_ns);
        let mut steps = vec![GridStep::default(); usize::try_from(count).unwrap_or(0)];
        for (_, moments) in self.streams.iter().filter(|(id, _)| takes(*id)) {
            for moment in moments {
                self.lay(&mut steps, moment);
            }
        }
        steps
    }

    fn lay(&self, steps: &mut [GridStep], moment: &Moment) {
        let whole = moment.to_ns.saturating_sub(moment.from_ns);
        let mut from = moment.from_ns;
        while from < moment.to_ns {
            let number = from.saturating_sub(self.from_ns) / self.step_ns;
            let next = self
                .from_ns
                .saturating_add((number + 1).saturating_mul(self.step_ns));
            let to = next.min(moment.to_ns);
            let Some(step) = usize::try_from(number)
                .ok()
                .and_then(|number| steps.get_mut(number))
            else {
                return;
            };
            let share = (to - from) as f64 / whole.max(1) as f64;
            for class in Class::ALL {
                let ns = moment.times.of(class);
                // Whole moments stay exact; a divided one only decides which class took most.
                let ns = if share < 1.0 {
                    linerate_model::units::whole(ns as f64 * share)
                } else {
                    ns
                };
                step.times.add(class, ns);
            }
            step.sent += moment.sent_bytes as f64 * share;
            step.passed += moment.passed_bytes as f64 * share;
            from = to;
        }
    }
}
