//! `stall`: no byte came through for more than a second while the test ran.
//!
//! Longest gap over 1 s where the direction is measured, also before the first and after the last byte;
//! not where a block at the rate asked for takes that long. A time in which a stream's own thread took no
//! sample counts too: the process did not run, and what moved meanwhile was not seen moving. A connection that was
//! only watched may rest: there a gap counts where its sender's kernel had data outstanding all the while.

use linerate_analysis::evidence::Place;
use linerate_model::column::Column;
use linerate_model::finding::{Finding, Severity};
use linerate_model::record::{EndRecord, StreamRecord};
use linerate_model::units::BitRate;

use crate::facts::case::Case;
use crate::words;

/// A gap of this length is a stall, ns.
const LONG_NS: u64 = 1_000_000_000;
/// Data is outstanding all the while from this share of it on.
const MOSTLY: f64 = 0.9;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let direction = case.direction;
    let (end, place) = match direction.measured_at {
        Place::ReceivingApplication => (case.receiver()?, "arrived at the receiving application"),
        Place::Acknowledged => (case.sender()?, "was acknowledged"),
        Place::SendingApplication => (case.sender()?, "was sent"),
    };
    let Gap { from, to, stopped } = longest_gap(case, end)?;
    if case.record().is_observation() && !outstanding(case, end.start_ns.0, from, to) {
        return None;
    }
    let long = to - from;
    let run = end.end_ns.since(end.start_ns).0.max(1);
    let share = long as f64 / run as f64;
    let what = stopped.map_or_else(|| format!("Nothing {place}"), |stopped| stopped.words(case));
    let sentence = format!(
        "{what} for {}, from {} to {} of the run",
        words::seconds(long),
        words::seconds(from),
        words::seconds(to)
    );
    let name = if stopped.is_some() {
        "longest time without a sample, ns"
    } else {
        "longest time without a byte, ns"
    };
    let mut finding = case
        .finding("stall", Severity::Limit, sentence)
        .share(share)
        .figures([
            case.receiver_figure(name, Some(long as f64)),
            case.sender_figure("retransmission timeouts", timeouts(case)),
        ])
        .next(case.again(|_| {}))
        .done()?;
    finding.span_ns = Some([from, to]);
    Some(finding)
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

/// A time in which nothing moved, ns since the start.
struct Gap {
    from: u64,
    to: u64,
    /// What did not run, where that is the reason.
    stopped: Option<Stopped>,
}

/// What did not run at the measuring end.
#[derive(Clone, Copy)]
enum Stopped {
    /// All its threads of the direction.
    Process,
    /// The thread of this stream.
    Thread(u32),
}

impl Stopped {
    fn words(self, case: &Case<'_>) -> String {
        let receiving = case.direction.measured_at == Place::ReceivingApplication;
        let (kind, host) = if receiving {
            ("receiving", case.receiving_host())
        } else {
            ("sending", case.sending_host())
        };
        match self {
            Self::Process => format!(
                "On {host} the {kind} process took no sample (it did not run, or its host stood still)"
            ),
            Self::Thread(id) => {
                format!(
                    "On {host} the {kind} thread of stream {id} took no sample (it did not run)"
                )
            }
        }
    }
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

fn timeouts(case: &Case<'_>) -> Option<f64> {
    let streams = case.sender()?.streams_of(case.direction.flow);
    let counts: Option<Vec<u64>> = streams
        .map(|stream| stream.tcp.as_ref()?.total_rto)
        .collect();
    counts.map(|counts| counts.iter().sum::<u64>() as f64)
}
