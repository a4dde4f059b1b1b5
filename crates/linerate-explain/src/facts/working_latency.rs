//! What the probes of `--latency` show: how much longer messages take under load, and what holds them.
//!
//! Three witnesses. The *programs* at both ends: a message counts from when it was due until its answer was read, so it waits
//! for a CPU too. The *client's kernel*: the handshake of a new connection, which the server's kernel answers by itself. The
//! *sending kernel*: the round trip of the loaded connection. What all three see stands between the two kernels: in the
//! sending host's queueing discipline, which reports its length, or in the path. What the programs alone see is no queue of
//! the network, but a message that was lost and retransmitted, or a program that waited. A handshake with a retransmitted packet is
//! not timed.

use linerate_analysis::statistics;
use linerate_analysis::working_latency::{Times, WorkingLatency, span_at};
use linerate_model::column::{Column, CpuTime};
use linerate_model::record::{EndRecord, Role};
use linerate_model::series::grown;

use crate::facts::case::Case;

/// Probes of a phase that tell a median.
const ENOUGH: u64 = 10;
/// A witness saw the growth where it saw this share of it.
const SEEN: f64 = 0.5;
/// Where the CPUs of a host were busy for this share of the time, what waits may wait for them.
const SATURATED: f64 = 0.95;

/// How messages fared, times in µs.
#[derive(Debug, Clone)]
pub(crate) struct Latency {
    pub(crate) idle_us: f64,
    pub(crate) loaded_us: f64,
    /// The kernel's handshakes, medians before and under load.
    pub(crate) handshake_us: Option<(f64, f64)>,
    /// Median round trip of the loaded TCP connections.
    pub(crate) loaded_connection_us: Option<f64>,
    /// What the sending host's queueing discipline held on average, bytes, and how long that takes at the test's rate.
    pub(crate) qdisc: Option<(f64, f64)>,
    /// How long this program took on average until it sent a message that was due.
    pub(crate) own_delay_us: f64,
    /// The busiest of the two hosts, and how busy its CPUs were on average, 0 to 1.
    pub(crate) busiest: Option<(Role, f64)>,
    pub(crate) per_minute: Option<f64>,
}

/// What holds the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The sending host's queueing discipline.
    Qdisc,
    /// The path.
    Path,
    /// Something between the two kernels, on the one host that both ends are on.
    OneHost,
    /// The CPUs of a host were busy, which makes kernels late too: it cannot be told.
    Processors,
    /// The programs, or loss: the kernels saw nothing of it in what arrived at once.
    Programs,
    /// The kernels tell too little.
    Unknown,
}

/// Of a test with enough probes before and under load.
pub(crate) fn of(case: &Case<'_>) -> Option<Latency> {
    let found = WorkingLatency::of(case.record())?;
    let (idle, loaded) = (&found.idle, &found.loaded);
    if idle.message.count.min(loaded.message.count) < ENOUGH {
        return None;
    }
    let handshakes = median_us(&idle.handshake).zip(median_us(&loaded.handshake));
    Some(Latency {
        idle_us: median_us(&idle.message)?,
        loaded_us: median_us(&loaded.message)?,
        handshake_us: handshakes,
        loaded_connection_us: median_us(&found.loaded_connection),
        qdisc: qdisc(case),
        own_delay_us: loaded
            .own_delay
            .trimmed_mean_ns
            .map_or(0.0, |time| time.0 as f64 / 1e3),
        busiest: [Role::Client, Role::Server]
            .into_iter()
            .filter_map(|role| Some((role, busy(case, role)?)))
            .max_by(|one, other| one.1.total_cmp(&other.1)),
        per_minute: found.responsiveness.per_minute,
    })
}

impl Latency {
    pub(crate) fn growth_us(&self) -> f64 {
        self.loaded_us - self.idle_us
    }

    /// What made the messages later.
    pub(crate) fn holder(&self, case: &Case<'_>) -> Holder {
        let seen = |growth: f64| growth >= SEEN * self.growth_us();
        let by_handshakes = self.handshake_us.map(|(idle, loaded)| seen(loaded - idle));
        let idle = self.handshake_us.map_or(self.idle_us, |(idle, _)| idle);
        let by_connection = self.loaded_connection_us.map(|loaded| seen(loaded - idle));
        let busy = self.busiest.is_some_and(|(_, share)| share >= SATURATED);
        match (by_handshakes, by_connection) {
            (Some(false), _) => Holder::Programs,
            _ if busy || seen(self.own_delay_us) || case.without_network() => Holder::Processors,
            (None, _) | (_, Some(false)) => Holder::Unknown,
            _ if self.qdisc.is_some_and(|(_, waits_us)| seen(waits_us)) => Holder::Qdisc,
            _ if case.one_host() => Holder::OneHost,
            (Some(true), _) => Holder::Path,
        }
    }
}

/// Whether probes went beside the load without waiting for it: its queue, if any, is its own.
pub(crate) fn others_pass(case: &Case<'_>) -> bool {
    let waited = |latency: &Latency, long: f64| latency.growth_us() >= SEEN * long;
    of(case).is_some_and(|latency| {
        let grown = latency.loaded_connection_us.map(|us| us - latency.idle_us);
        grown.is_some_and(|grown| grown > 0.0 && !waited(&latency, grown))
    })
}

fn median_us(times: &Times) -> Option<f64> {
    Some(times.median_ns?.0 as f64 / 1e3)
}

/// What waited in the sending host's root qdisc while the path was loaded.
fn qdisc(case: &Case<'_>) -> Option<(f64, f64)> {
    let sender = case.sender()?;
    let [from, to] = loaded(case, sender)?;
    let values = sender.counters.column(Column::qdisc_backlog_bytes)?;
    let held: Vec<f64> = values[from..to].iter().map(|bytes| *bytes as f64).collect();
    let (held, rate) = (statistics::mean(&held), case.rate()?);
    (rate > 0.0).then_some((held, held * 8e6 / rate))
}

/// The mean share of the time in which a host's CPUs were busy while the path was loaded.
fn busy(case: &Case<'_>, role: Role) -> Option<f64> {
    let end = case.record().end(role)?;
    let [from, to] = loaded(case, end)?;
    let span_ns = grown(&end.counters.at_ns()[from..to])?;
    let all = end.counters.cpus(CpuTime::Busy);
    let busy_ms: Vec<f64> = all
        .iter()
        .filter_map(|(_, values)| Some(grown(values.get(from..to)?)? as f64))
        .collect();
    (span_ns > 0 && !busy_ms.is_empty())
        .then(|| (statistics::mean(&busy_ms) * 1e6 / span_ns as f64).min(1.0))
}

/// The rows of an end's counters in the loaded phase; at least two.
fn loaded(case: &Case<'_>, end: &EndRecord) -> Option<[usize; 2]> {
    let phase = &case.record().latency.as_ref()?.loaded;
    let [from, to] = span_at(case.record(), phase, end)?;
    let at = end.counters.at_ns();
    let rows = [
        at.partition_point(|one| *one < from),
        at.partition_point(|one| *one <= to),
    ];
    (rows[1] >= rows[0] + 2).then_some(rows)
}
