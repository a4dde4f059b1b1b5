//! What the counts of a probe's pattern come to: rate with interval, latencies, and how the rate went over time.

use linerate_model::probe::{Pattern, PatternRun, Probe, TICK, TICKS_PER_SECOND as TICKS};
use linerate_model::units::{Bytes, Nanos};
use serde::Serialize;

use crate::statistics::{self, Estimate, HALVES_MAY_DIFFER, Unsteady};

/// A rate that differs from its mean by no more than this in any second is flat: to the percent,
pub const FLAT: f64 = 0.01;
/// or by no more than so many requests, as a second has two ends.
pub const FLAT_REQUESTS: f64 = 2.0 * OFF_BY;
/// So many seconds of the second half of a rate show whether it is flat: half of the usual 10.
pub const LEAST_SECONDS: usize = 5;
/// A count of a second is off by one at either end.
const OFF_BY: f64 = 1.0;
/// A step is this many times what the rate wavers by on either side of it.
const CLEAR: f64 = 4.0;
/// Seconds on either side of a step.
const LEAST_SIDE: usize = 2;

/// Figures of a pattern. There are none where nothing was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Requests a second over the measured time.
    pub iops: f64,
    /// Lower end of its 95 % interval; absent where there is none (a file written once, too few ticks).
    pub iops_low: Option<f64>,
    /// Upper end.
    pub iops_high: Option<f64>,
    /// Bytes a second over the measured time; of a buffered pattern until they were on disk.
    pub bytes_per_second: f64,
    /// Of a buffered pattern: bytes a second until they were handed to the page cache.
    pub handed_over_bytes_per_second: Option<f64>,
    /// Half of the requests took no longer.
    pub p50_ns: Option<Nanos>,
    /// 99 %.
    pub p99_ns: Option<Nanos>,
    /// 99.9 %.
    pub p999_ns: Option<Nanos>,
    /// All of them.
    pub max_ns: Nanos,
    /// Requests in each whole second since the pattern began, ramp included.
    pub by_second: Vec<u64>,
    /// Of these, how many are the ramp.
    pub ramp_seconds: usize,
    /// How the rate went over time.
    pub shape: Shape,
}

/// How a rate went over time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Shape {
    /// The run is too short to say.
    Unknown,
    /// In each second of its second half the same, to the percent.
    Flat,
    /// High at first, then low.
    StepDown {
        /// Seconds since the pattern began.
        after_seconds: usize,
        /// Mean before, requests a second.
        before: f64,
        /// Mean after it.
        after: f64,
    },
    /// Neither.
    Varied,
}

impl Figures {
    /// Of one pattern; `precision` whether the run's length was decided by its interval.
    pub fn of(run: &PatternRun, precision: bool) -> Option<Self> {
        let seconds = run.measured_ns.as_secs_f64();
        if run.requests == 0 || seconds <= 0.0 {
            return None;
        }
        let iops = run.requests as f64 / seconds;
        let half = half_width(run, precision).filter(|half| half.is_finite());
        let block = run.pattern.block() as f64;
        let handing = run
            .sync_ns
            .map(|sync| run.measured_ns.since(sync).as_secs_f64())
            .filter(|span| *span > 0.0);
        let by_second = by_second(run);
        let ramp_seconds = run.ramp_ticks / TICKS;
        Some(Self {
            iops,
            iops_low: half.map(|half| (iops - half).max(0.0)),
            iops_high: half.map(|half| iops + half),
            bytes_per_second: iops * block,
            handed_over_bytes_per_second: handing.map(|span| run.requests as f64 * block / span),
            p50_ns: run.latency.quantile(0.5),
            p99_ns: run.latency.quantile(0.99),
            p999_ns: run.latency.quantile(0.999),
            max_ns: run.latency.max(),
            shape: shape(run, &by_second),
            by_second,
            ramp_seconds,
        })
    }

    /// The measured seconds among [`Figures::by_second`].
    pub fn measured_seconds(&self) -> &[u64] {
        self.by_second.get(self.ramp_seconds..).unwrap_or_default()
    }
}

/// Why the rate of a pattern is not called steady; `None` = it is, or is not to be.
pub fn unsteady(run: &PatternRun) -> Option<Unsteady> {
    (run.pattern != Pattern::Buffered)
        .then(|| statistics::plateau(&rates(run))?.unsteady)
        .flatten()
}

/// Requests a second of each whole tick of the measured time.
fn rates(run: &PatternRun) -> Vec<f64> {
    let measured = usize::try_from(run.measured_ns.0 / TICK.0).unwrap_or(usize::MAX);
    let tick = |at: usize| run.ticks.get(at).copied().unwrap_or(0) as f64 / TICK.as_secs_f64();
    let until = run.ramp_ticks.saturating_add(measured);
    (run.ramp_ticks..until).map(tick).collect()
}

/// Rates of so many ticks together that a count of each is off by no more than a percent where it is off by one, and
/// no more than leaves enough of them: a throttle that lets requests through each 100 ms is no rate that wavers.
pub fn samples(rates: &[f64]) -> Vec<f64> {
    let each = statistics::mean(rates) * TICK.as_secs_f64();
    let together = [1, 2, 4, 10, TICKS]
        .into_iter()
        .take_while(|ticks| rates.len() / ticks >= statistics::LEAST_SAMPLES);
    let found = together
        .clone()
        .find(|ticks| each * *ticks as f64 * FLAT >= OFF_BY);
    let ticks = found.or_else(|| together.last()).unwrap_or(1);
    rates.chunks_exact(ticks).map(statistics::mean).collect()
}

fn half_width(run: &PatternRun, precision: bool) -> Option<f64> {
    if run.pattern == Pattern::Buffered {
        return None;
    }
    let rates = samples(&rates(run));
    if rates.len() < statistics::LEAST_SAMPLES {
        return None;
    }
    let mut estimate: Estimate = statistics::estimate(&rates);
    if precision {
        estimate = estimate.looked_at();
    }
    Some(estimate.high - estimate.mean)
}

/// Requests of each second that is whole.
fn by_second(run: &PatternRun) -> Vec<u64> {
    let measured = usize::try_from(run.measured_ns.0 / TICK.0).unwrap_or(usize::MAX);
    let whole = run.ramp_ticks.saturating_add(measured) / TICKS;
    let second = |number: usize| {
        let ticks = run.ticks.iter().skip(number * TICKS).take(TICKS);
        ticks.sum::<u64>()
    };
    (0..whole).map(second).collect()
}

fn shape(run: &PatternRun, by_second: &[u64]) -> Shape {
    if run.pattern == Pattern::Buffered {
        return Shape::Unknown;
    }
    let all: Vec<f64> = by_second.iter().map(|count| *count as f64).collect();
    if let Some(step) = step_down(&all) {
        return step;
    }
    let measured = all.get(run.ramp_ticks / TICKS..).unwrap_or_default();
    let second_half = &measured[measured.len() / 2..];
    if second_half.len() < LEAST_SECONDS {
        return Shape::Unknown;
    }
    let mean = statistics::mean(second_half);
    let allowed = (FLAT * mean).max(FLAT_REQUESTS);
    if mean > 0.0 && second_half.iter().all(|one| (one - mean).abs() <= allowed) {
        Shape::Flat
    } else {
        Shape::Varied
    }
}

/// The split into a higher and a lower level that leaves least, where the levels are clearly apart.
fn step_down(all: &[f64]) -> Option<Shape> {
    let last = all.len().checked_sub(LEAST_SIDE)?;
    // The first second also has the begin in it.
    let spread = |side: &[f64]| statistics::deviation(side);
    let left = |at: usize| {
        let squares = |side: &[f64]| spread(side).powi(2) * (side.len() as f64 - 1.0);
        squares(&all[..at]) + squares(&all[at..])
    };
    let at = (LEAST_SIDE..=last).min_by(|one, other| left(*one).total_cmp(&left(*other)))?;
    let (before, after) = (statistics::mean(&all[..at]), statistics::mean(&all[at..]));
    let wavers = spread(&all[..at]).max(spread(&all[at..])).max(OFF_BY);
    let drop = before - after;
    (drop > HALVES_MAY_DIFFER * before && drop > CLEAR * wavers).then_some(Shape::StepDown {
        after_seconds: at,
        before,
        after,
    })
}

/// Bytes that the device of a pattern moved for others: more than the pattern's own. `None` where the kernel does not
/// count them, or where the page cache moves the pattern's bytes when it likes.
pub fn by_others(run: &PatternRun) -> Option<Bytes> {
    let work = run.device?;
    if !run.direct {
        return None;
    }
    let [read, written] = if run.pattern.writes() {
        [0, run.bytes.0]
    } else {
        [run.bytes.0, 0]
    };
    let others = work.read.0.saturating_sub(read) + work.written.0.saturating_sub(written);
    Some(Bytes(others))
}

/// What so many disks should give, requests of 4 KiB a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Expected {
    /// Where each request costs a mean seek and half a rotation, and requests collect on slow disks.
    pub low: f64,
    /// Where no head moves: half a rotation alone.
    pub high: f64,
}

/// What the disks that the user names should give for a random pattern; `None` for others.
///
/// A disk gives 1000 / (seek + 30000/rpm) requests a second, and at most 1000 / (30000/rpm) where its head stays, as in a
/// small file on a large disk. A write costs 2 requests on a mirror of two, as many as disks on raid1, 4 on raid5 (old data and
/// old parity are read, both are written: Patterson, Gibson, Katz, SIGMOD 1988), 6 on raid6.
///
/// `d` requests at a time, each of which is sent when another has ended, collect on disks that happen to be slow: at exponential
/// times `n d / (n + d − 1)` of `n` disks work (a closed network of alike queues: Lazowska and others, Quantitative System
/// Performance, 1984, chapter 5). That is the lower end. Where each falls on a disk of its own accord, `n (1 − (1 − 1/n)^d)`
/// have something to do on average: the upper end.
pub fn expected(probe: &Probe, pattern: Pattern) -> Option<Expected> {
    use linerate_model::probe::Raid;
    let spindles = probe.spindles?;
    if !pattern.random() {
        return None;
    }
    let rotation_ms = 30_000.0 / f64::from(spindles.rpm);
    let disks = f64::from(spindles.count);
    let cost = match (pattern.writes(), spindles.raid) {
        (false, _) | (true, Raid::Raid0) => 1.0,
        (true, Raid::Raid10) => 2.0,
        (true, Raid::Raid1) => disks,
        (true, Raid::Raid5) => 4.0,
        (true, Raid::Raid6) => 6.0,
    };
    // Requests on the disks at a time; those of one parity's write come in two steps.
    let steps = match (pattern.writes(), spindles.raid) {
        (true, Raid::Raid5 | Raid::Raid6) => 2.0,
        _ => 1.0,
    };
    let under_way = pattern.depth() as f64 * cost / steps;
    let at_once = |busy: f64| match pattern.depth() {
        1 => 1.0 / steps,
        _ => busy / cost,
    };
    let fewest = at_once(disks * under_way / (disks + under_way - 1.0));
    let most = at_once(disks * (1.0 - (1.0 - 1.0 / disks).powf(under_way)));
    Some(Expected {
        low: fewest * 1000.0 / (spindles.seek_ms + rotation_ms),
        high: most * 1000.0 / rotation_ms,
    })
}

/// Time of half a rotation of the fastest disks that are made, 15,000 a minute.
pub const LEAST_HALF_ROTATION: Nanos = Nanos::from_millis(2);

#[cfg(test)]
mod tests {
    use linerate_model::latency::Latencies;
    use linerate_model::probe::{DeviceWork, Engine};

    use super::*;

    fn run(pattern: Pattern, by_second: &[u64]) -> PatternRun {
        let ticks: Vec<u64> = by_second
            .iter()
            .flat_map(|count| (0..20).map(move |tick| count / 20 + u64::from(tick < count % 20)))
            .collect();
        let measured = by_second.len() - 2;
        let requests = by_second[2..].iter().sum();
        let mut latency = Latencies::default();
        (0..requests).for_each(|_| latency.add(Nanos(1_000_000)));
        PatternRun {
            pattern,
            direct: true,
            engine: Engine::IoUring,
            ticks,
            ramp_ticks: 40,
            measured_ns: Nanos::from_millis(1000 * measured as u64),
            requests,
            latency,
            bytes: Bytes(by_second.iter().sum::<u64>() * pattern.block()),
            sync_ns: None,
            device: None,
            busy: Vec::new(),
            cached: None,
            ended: None,
        }
    }

    #[test]
    fn a_capped_volume_is_flat_and_a_busy_one_is_not() {
        let flat = [
            3200, 3001, 3000, 2999, 3000, 3001, 3000, 2999, 3000, 3000, 3001, 3000,
        ];
        let figures = Figures::of(&run(Pattern::RandomRead, &flat), false).unwrap();
        assert_eq!(figures.shape, Shape::Flat);
        assert!((figures.iops - 3000.0).abs() < 1.0, "{figures:?}");
        assert!(figures.iops_high.unwrap() < 3050.0, "{figures:?}");
        assert_eq!(figures.measured_seconds().len(), 10);
        assert!((figures.bytes_per_second - figures.iops * 4096.0).abs() < 1e-6);
        // 120 IOPS: a count of a second may be one off at either end.
        for (last, shape) in [(118, Shape::Flat), (116, Shape::Varied)] {
            let slow = [120, 121, 120, 119, 120, 120, 121, 119, 120, 120, 120, last];
            let figures = Figures::of(&run(Pattern::RandomRead, &slow), false).unwrap();
            assert_eq!(figures.shape, shape);
        }
        let busy = [
            3000, 3100, 2900, 3050, 3000, 2800, 3100, 2950, 3060, 3000, 2890, 3100,
        ];
        let figures = Figures::of(&run(Pattern::RandomRead, &busy), false).unwrap();
        assert_eq!(figures.shape, Shape::Varied);
        let short = Figures::of(&run(Pattern::RandomRead, &flat[..8]), false).unwrap();
        assert_eq!(short.shape, Shape::Unknown);
    }

    #[test]
    fn few_requests_are_counted_over_longer_spans() {
        let of = |rate: f64, ticks: usize| samples(&vec![rate; ticks]).len();
        assert_eq!(of(3000.0, 200), 200);
        assert_eq!(of(900.0, 200), 50);
        assert_eq!(of(120.0, 200), 10);
        // As many as there must be, and no fewer than there are.
        assert_eq!(of(1.0, 40), 10);
        assert_eq!(of(1.0, 7), 7);
        assert_eq!(of(0.0, 0), 0);
    }

    #[test]
    fn a_bucket_that_is_empty_is_a_step_down() {
        let burst = [
            3000, 3010, 2990, 3000, 3005, 300, 300, 301, 299, 300, 300, 300,
        ];
        let figures = Figures::of(&run(Pattern::RandomWriteDeep, &burst), false).unwrap();
        let Shape::StepDown {
            after_seconds,
            before,
            after,
        } = figures.shape
        else {
            panic!("{figures:?}");
        };
        assert_eq!(after_seconds, 5);
        assert!((before - 3001.0).abs() < 1.0 && (after - 300.0).abs() < 1.0);
        assert!(unsteady(&run(Pattern::RandomWriteDeep, &burst)).is_some());
        // Up, and down by less than what it wavers by.
        for other in [
            [
                300, 300, 301, 299, 300, 3000, 3000, 3001, 2999, 3000, 3000, 3000,
            ],
            [
                900, 1100, 950, 1050, 1000, 800, 1000, 750, 950, 850, 800, 900,
            ],
        ] {
            let figures = Figures::of(&run(Pattern::RandomWriteDeep, &other), false).unwrap();
            assert!(
                !matches!(figures.shape, Shape::StepDown { .. }),
                "{figures:?}"
            );
        }
    }

    #[test]
    fn the_fsync_is_inside_the_clock() {
        let mut once = run(Pattern::Buffered, &[0, 0, 100, 100]);
        once.measured_ns = Nanos::from_millis(4000);
        once.sync_ns = Some(Nanos::from_millis(2000));
        let figures = Figures::of(&once, false).unwrap();
        let mib = 1_048_576.0;
        assert!((figures.bytes_per_second - 50.0 * mib).abs() < 1.0);
        assert!((figures.handed_over_bytes_per_second.unwrap() - 100.0 * mib).abs() < 1.0);
        assert_eq!(figures.iops_low, None);
        once.requests = 0;
        assert_eq!(Figures::of(&once, false), None);
    }

    #[test]
    fn what_others_moved_is_what_is_too_much() {
        let mut read = run(Pattern::RandomRead, &[100; 12]);
        assert_eq!(by_others(&read), None);
        read.device = Some(DeviceWork {
            read: Bytes(read.bytes.0 + 5000),
            written: Bytes(700),
        });
        assert_eq!(by_others(&read), Some(Bytes(5700)));
        read.direct = false;
        assert_eq!(by_others(&read), None);
    }

    #[test]
    fn spindles_give_what_the_formula_says() {
        use linerate_model::probe::{Raid, Spindles};
        let with = |count, raid| {
            let mut probe = probe();
            probe.spindles = Some(Spindles {
                count,
                rpm: 7200,
                seek_ms: 8.5,
                raid,
            });
            probe
        };
        let one = expected(&with(1, Raid::Raid0), Pattern::RandomRead).unwrap();
        assert!(
            (one.low - 78.9).abs() < 0.1 && (one.high - 240.0).abs() < 0.1,
            "{one:?}"
        );
        // One request at a time is one disk's, however many there are.
        let array = with(36, Raid::Raid10);
        assert_eq!(expected(&array, Pattern::RandomRead), Some(one));
        assert_eq!(expected(&array, Pattern::RandomWrite), Some(one));
        let shares = |of: Expected| [of.low / one.low, of.high / one.high];
        let near = |of: Expected, wanted: [f64; 2]| {
            let mut all = shares(of).into_iter().zip(wanted);
            let is_near = all.all(|(got, wanted)| (got - wanted).abs() < 0.01);
            assert!(is_near, "{of:?}");
        };
        // 36 · 32 / 67 of the 36 disks work, and (35/36)^32 = 40.6 % of them have nothing to do at most.
        let deep = expected(&array, Pattern::RandomReadDeep).unwrap();
        near(deep, [17.19, 21.38]);
        // Each write is two of 64 requests.
        let writes = expected(&array, Pattern::RandomWriteDeep).unwrap();
        near(writes, [11.64, 15.03]);
        let raid5 = expected(&with(4, Raid::Raid5), Pattern::RandomWriteDeep).unwrap();
        near(raid5, [0.955, 1.0]);
        // One disk has all of them.
        let single = expected(&with(1, Raid::Raid0), Pattern::RandomReadDeep).unwrap();
        near(single, [1.0, 1.0]);
        let raid5 = expected(&with(4, Raid::Raid5), Pattern::RandomWrite).unwrap();
        assert!((raid5.low / one.low - 0.5).abs() < 0.01, "{raid5:?}");
        assert_eq!(expected(&array, Pattern::SequentialRead), None);
    }

    fn probe() -> Probe {
        serde_json::from_value(serde_json::json!({
            "schema_version": 1, "started_at_unix_ms": 0, "kernel": null,
            "place": { "folder": "/", "size": 0, "free": 0, "network": false },
            "direct": { "direct": "refused" }, "file": 0, "runs": [],
            "wear": { "written": 0, "before": 0, "budget": 0 }
        }))
        .unwrap()
    }
}
