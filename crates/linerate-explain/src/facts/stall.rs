//! Whether no byte came through for more than a second.

use linerate_model::column::Column;
use linerate_model::record::{EndRecord, StreamRecord};
use linerate_model::units::BitRate;

use crate::facts::case::Case;

/// A gap of this length is a stall, ns.
const LONG_NS: u64 = 1_000_000_000;
/// Data is outstanding all the while from this share of it on.
const MOSTLY: f64 = 0.9;

/// A time in which nothing moved, ns since the start.
#[derive(Clone, Copy)]
pub(crate) struct Gap {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// What did not run, where that is the reason.
    pub(crate) stopped: Option<Stopped>,
}

/// What did not run at the measuring end.
#[derive(Clone, Copy)]
pub(crate) enum Stopped {
    /// All its threads of the direction.
    Process,
    /// The thread of this stream.
    Thread(u32),
}

/// The stall of a direction, where there was one. Asked before the limit is known, on which a stall does not depend.
pub(crate) fn of(case: &Case<'_>) -> Option<Gap> {
    let end = case.measuring_end()?;
    longest_gap(case, end).filter(|gap| {
        !case.record().is_observation() || outstanding(case, end.start_ns.0, gap.from, gap.to)
    })
}

/// The longest time in which nothing moved that counts as a stall.
fn longest_gap(case: &Case<'_>, end: &EndRecord) -> Option<Gap> {
    let direction = case.direction;
    let start = end.start_ns.0;
    let since = |at: u64| at.saturating_sub(start);
    let streams: Vec<_> = end.streams_of(direction.flow).collect();
    let first = streams
        .iter()
        .filter_map(|stream| stream.first_byte_ns)
        .min()?
        .0;
    let last = streams
        .iter()
        .filter_map(|stream| stream.last_byte_ns)
        .max()?
        .0;
    let mut gaps = vec![(0, since(first)), (since(last), since(end.end_ns.0))];
    let mut begun: Option<usize> = None;
    for (point, rate) in direction.rates_bps.iter().chain([&1.0]).enumerate() {
        match (begun, *rate <= 0.0) {
            (None, true) => begun = Some(point),
            (Some(from), false) => {
                let at = |point: usize| {
                    let into = (point as u64).saturating_mul(direction.grid_step_ns);
                    since(direction.grid_from_ns.saturating_add(into))
                };
                gaps.push((at(from), at(point)));
                begun = None;
            }
            _ => {}
        }
    }
    let expected = case.plan().rate_bps.map_or(0, |rate| {
        let block = BitRate(rate.0).time_for(case.plan().block_bytes);
        block.0.saturating_mul(2)
    });
    let without_bytes = gaps
        .into_iter()
        .filter(|(from, to)| to.saturating_sub(*from) > LONG_NS.max(expected))
        .map(|(from, to)| Gap {
            from,
            to,
            stopped: None,
        });
    // Of two of one length the last is taken: that which knows the reason.
    let stopped = streams.iter().filter_map(|stream| {
        let (from, to) = silence(case, stream)?;
        let stopped = if all_silent(case, &streams, from, to) {
            Stopped::Process
        } else {
            Stopped::Thread(stream.id)
        };
        Some(Gap {
            from: since(from),
            to: since(to),
            stopped: Some(stopped),
        })
    });
    without_bytes
        .chain(stopped)
        .max_by_key(|gap| gap.to.saturating_sub(gap.from))
}

/// Whether the sending kernel had data outstanding for nearly all of a time, by its clock.
fn outstanding(case: &Case<'_>, start: u64, from: u64, to: u64) -> bool {
    let busy = |stream: &StreamRecord| -> Option<bool> {
        let at = stream.samples.at_ns();
        // The samples around it: within a rest there is none.
        let (from, to) = (start.saturating_add(from), start.saturating_add(to));
        let first = at.partition_point(|at| *at <= from).saturating_sub(1);
        let last = at
            .partition_point(|at| *at < to)
            .min(at.len().saturating_sub(1));
        let clock = stream.samples.column(Column::busy_time_us)?;
        let span = at.get(last)?.saturating_sub(*at.get(first)?);
        let busy = clock.get(last)?.saturating_sub(*clock.get(first)?);
        Some(span > 0 && busy as f64 * 1e3 >= MOSTLY * span as f64)
    };
    case.sender().is_some_and(|end| {
        end.streams_of(case.direction.flow)
            .any(|stream| busy(stream) == Some(true))
    })
}

/// Whether every stream's thread was silent for most of that time.
fn all_silent(case: &Case<'_>, streams: &[&StreamRecord], from: u64, to: u64) -> bool {
    let overlaps = |stream: &&StreamRecord| {
        silence(case, stream).is_some_and(|(begin, end)| {
            end.min(to).saturating_sub(begin.max(from)) > (to - from) / 2
        })
    };
    streams
        .iter()
        .filter(|stream| stream.samples.len() > 1)
        .all(overlaps)
}

/// The longest time in which the thread that owns the stream took no sample, where that is longer than
/// its cadence explains: it did not run, and what moved meanwhile was not seen moving.
fn silence(case: &Case<'_>, stream: &StreamRecord) -> Option<(u64, u64)> {
    if case.record().is_observation() {
        // Samples in which nothing changed are not kept.
        return None;
    }
    let pairs = stream.samples.at_ns().windows(2);
    let longest = pairs.max_by_key(|pair| pair[1].saturating_sub(pair[0]))?;
    let cadence = case
        .plan()
        .sample_ns
        .0
        .saturating_mul(u64::from(stream.thinned.max(1)));
    let long = longest[1].saturating_sub(longest[0]);
    (long > LONG_NS.saturating_add(cadence)).then_some((longest[0], longest[1]))
}
