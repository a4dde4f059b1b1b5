//! The working latency of a test with `--latency`, and its responsiveness in round trips a minute.
//!
//! As draft-ietf-ippm-responsiveness-08 has it for connections without TLS ("Aggregating the Measurements", the TCP-only
//! case), with `TM` the mean of the shortest 95 %:
//!
//! ```text
//! separate          = 60 s / ((TM(connect) + TM(message)) / 2)
//! loaded connection = 60 s / TM(round trip of the loaded connections)
//! responsiveness    = (separate + loaded connection) / 2
//! ```
//!
//! `connect` is the draft's `tcp_f`: a new TCP connection. `message` stands for `http_f`: a message of 64 bytes and its echo,
//! on a connection of their own. For `http_l`, a request within a loaded connection, stands the sending kernel's smoothed
//! round trip of each loaded connection at each sample, since nothing can be asked within a stream of iperf3's; it is without
//! the time that data waits in the sender's and the receiver's sockets. Without load nothing but `separate` exists.

use linerate_model::column::Column;
use linerate_model::latency::Latencies;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::Protocol;
use linerate_model::record::{EndRecord, Flow, RunRecord};
use linerate_model::units::Nanos;
use linerate_model::working_latency::ProbePhase;
use serde::Serialize;

/// The share of the shortest times that counts (the draft's `TMP`).
pub const TRIMMED: f64 = 0.95;
const MINUTE_NS: f64 = 60e9;

/// What the probes of a test show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkingLatency {
    /// Why nothing was measured, or nothing more from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<PlainText>,
    /// Before the data streams were opened.
    pub idle: PhaseFigures,
    /// While they sent, after the ramp.
    pub loaded: PhaseFigures,
    /// After the last byte had arrived.
    pub after: PhaseFigures,
    /// The sending kernels' smoothed round trips of the loaded TCP connections, at each sample of the loaded phase.
    pub loaded_connection: Times,
    /// How much longer the median of the messages is under load than before.
    pub growth_ns: Option<i64>,
    /// Before the load.
    pub idle_responsiveness: Responsiveness,
    /// Under it.
    pub responsiveness: Responsiveness,
}

/// A phase of the probes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseFigures {
    /// How long it lasted.
    pub span_ns: Nanos,
    /// Messages sent.
    pub sent: u64,
    /// Of them, without an answer when the test was over.
    pub unanswered: u64,
    /// Messages that were due and not sent, since too many waited for their answers: in no other figure.
    pub left_out: u64,
    /// New connections that were refused, or did not stand when the phase was over.
    pub connects_failed: u64,
    /// From when a message was due until its answer was read.
    pub message: Times,
    /// Of that, until this program sent it.
    pub own_delay: Times,
    /// New connections.
    pub connect: Times,
    /// The same handshakes by the client's kernel alone.
    pub handshake: Times,
}

/// A distribution of times; absent figures are those of none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// The median.
    pub median_ns: Option<Nanos>,
    /// 99 % are no longer.
    pub p99_ns: Option<Nanos>,
    /// The longest.
    pub max_ns: Option<Nanos>,
    /// The mean of the shortest 95 %.
    pub trimmed_mean_ns: Option<Nanos>,
}

/// Round trips a minute, with each part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Responsiveness {
    /// By all parts that there are.
    pub per_minute: Option<f64>,
    /// Of connections beside the loaded ones.
    pub separate_per_minute: Option<f64>,
    /// Of the loaded connections.
    pub loaded_connection_per_minute: Option<f64>,
    /// Which parts are not in it, and why.
    pub without: Vec<PlainText>,
}

impl WorkingLatency {
    /// Of a record; `None` where nobody asked for it.
    pub fn of(record: &RunRecord) -> Option<Self> {
        let probes = record.latency.as_ref()?;
        let idle = PhaseFigures::of(&probes.idle);
        let loaded = PhaseFigures::of(&probes.loaded);
        let loaded_connection = Times::of(&round_trips(record, &probes.loaded));
        let growth = loaded.message.median_ns.zip(idle.message.median_ns);
        let signed = |time: Nanos| i64::try_from(time.0).unwrap_or(i64::MAX);
        let mut without = Vec::new();
        if record.plan.protocol != Protocol::Tcp {
            without.push("the loaded connections: they are not of TCP".into());
        } else if loaded_connection.count == 0 {
            without.push("the loaded connections: their sender has no samples".into());
        }
        Some(Self {
            missing: probes.missing.clone(),
            after: PhaseFigures::of(&probes.after),
            growth_ns: growth.map(|(loaded, idle)| signed(loaded) - signed(idle)),
            idle_responsiveness: Responsiveness::of(&idle, None, Vec::new()),
            responsiveness: Responsiveness::of(&loaded, loaded_connection.trimmed_mean_ns, without),
            idle,
            loaded,
            loaded_connection,
        })
    }

    /// Whether anything was measured under load.
    pub fn is_measured(&self) -> bool {
        self.loaded.message.count > 0
    }
}

impl PhaseFigures {
    fn of(phase: &ProbePhase) -> Self {
        Self {
            span_ns: phase.to_ns.since(phase.from_ns),
            sent: phase.sent,
            unanswered: phase.unanswered,
            left_out: phase.left_out,
            connects_failed: phase.connects_failed,
            message: Times::of(&phase.round_trips),
            own_delay: Times::of(&phase.own_delays),
            connect: Times::of(&phase.connects),
            handshake: Times::of(&phase.handshakes),
        }
    }
}

impl Times {
    fn of(all: &Latencies) -> Self {
        Self {
            count: all.count(),
            median_ns: all.quantile(0.5),
            p99_ns: all.quantile(0.99),
            max_ns: Some(all.max()).filter(|_| all.count() > 0),
            trimmed_mean_ns: all.trimmed_mean(TRIMMED),
        }
    }
}

impl Responsiveness {
    fn of(phase: &PhaseFigures, loaded: Option<Nanos>, mut without: Vec<PlainText>) -> Self {
        let (connect, message) = (phase.connect, phase.message);
        if message.count == 0 {
            without.push("messages: none was answered".into());
        }
        if connect.count == 0 {
            without.push("new connections: none stood in time".into());
        }
        let times = [connect, message].map(|times| times.trimmed_mean_ns);
        let separate = per_minute(&times.into_iter().flatten().collect::<Vec<_>>());
        let loaded = per_minute(loaded.as_slice());
        let parts: Vec<f64> = separate.into_iter().chain(loaded).collect();
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        Self {
            // The draft's weights: half is that of the separate connections, whatever it consists of.
            per_minute: separate.map(|_| mean),
            separate_per_minute: separate,
            loaded_connection_per_minute: loaded,
            without,
        }
    }
}

/// A minute in round trips of the mean of these times; `None` of none.
fn per_minute(times: &[Nanos]) -> Option<f64> {
    let sum: f64 = times.iter().map(|time| time.0 as f64).sum();
    (sum > 0.0).then(|| MINUTE_NS / (sum / times.len() as f64))
}

/// The loaded phase on an end's clock: both let their streams go at the start, but for half a round trip.
pub fn span_at(record: &RunRecord, phase: &ProbePhase, end: &EndRecord) -> Option<[u64; 2]> {
    let start = record.client.as_ref()?.start_ns;
    let at = |instant: Nanos| end.start_ns.plus(instant.since(start)).0;
    (phase.to_ns > phase.from_ns).then(|| [at(phase.from_ns), at(phase.to_ns)])
}

/// The sending kernels' round trips of the TCP streams in a phase.
fn round_trips(record: &RunRecord, phase: &ProbePhase) -> Latencies {
    let mut all = Latencies::default();
    for flow in record.flows() {
        add_round_trips(&mut all, record, phase, *flow);
    }
    all
}

fn add_round_trips(all: &mut Latencies, record: &RunRecord, phase: &ProbePhase, flow: Flow) {
    let Some(end) = record.end(flow.sender()) else {
        return;
    };
    let Some([from, to]) = span_at(record, phase, end) else {
        return;
    };
    for stream in end.streams_of(flow) {
        let rows = stream.samples.at_ns().iter();
        let trips = stream.samples.column(Column::rtt_us).unwrap_or(&[]);
        for (at, us) in rows.zip(trips) {
            if (from..=to).contains(at) && *us > 0 {
                all.add(Nanos(us.saturating_mul(1000)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::plan::Plan;
    use linerate_model::working_latency::LatencyProbes;
    use linerate_testing::fixture::{self, Traffic};

    use super::*;

    fn times(millis: &[u64]) -> Latencies {
        let mut all = Latencies::default();
        for millis in millis {
            all.add(Nanos::from_millis(*millis));
        }
        all
    }

    fn phase(messages: &[u64], connects: &[u64]) -> PhaseFigures {
        PhaseFigures::of(&ProbePhase {
            round_trips: times(messages),
            connects: times(connects),
            ..ProbePhase::default()
        })
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found / expected - 1.0).abs() < 0.01)
    }

    #[test]
    fn the_formula_is_that_of_the_draft() {
        // 60 / 0.1, 60 / 0.2, and their mean.
        let loaded = Some(Nanos::from_millis(200));
        let found = Responsiveness::of(&phase(&[80; 40], &[120; 5]), loaded, Vec::new());
        assert!(near(found.separate_per_minute, 600.0), "{found:?}");
        assert!(near(found.loaded_connection_per_minute, 300.0), "{found:?}");
        assert!(near(found.per_minute, 450.0), "{found:?}");
        assert!(found.without.is_empty());
    }

    #[test]
    fn one_in_twenty_may_be_long() {
        let mut messages = vec![80; 38];
        messages.extend([10_000, 10_000]);
        let found = Responsiveness::of(&phase(&messages, &[120; 5]), None, Vec::new());
        assert!(near(found.per_minute, 600.0), "{found:?}");
    }

    #[test]
    fn what_is_missing_has_no_weight_and_is_named() {
        let found = Responsiveness::of(&phase(&[100; 40], &[]), None, Vec::new());
        assert!(near(found.per_minute, 600.0), "{found:?}");
        assert_eq!(found.without.len(), 1);
        let none = Responsiveness::of(&phase(&[], &[]), Some(Nanos(1)), Vec::new());
        assert_eq!((none.per_minute, none.without.len()), (None, 2));
    }

    #[test]
    fn the_loaded_connection_counts_while_it_is_loaded() {
        let plan = Plan {
            latency: true,
            ..Plan::new("h")
        };
        let mut record = fixture::run(&plan, &Traffic::default());
        let client = record.client.as_ref().unwrap();
        let samples = &client.streams[0].samples;
        let rtt = samples.column(Column::rtt_us).unwrap();
        let middle = samples.len() / 2;
        let [from, to] = [middle, middle + 9].map(|row| Nanos(samples.at_ns()[row]));
        let mean = rtt[middle..middle + 10].iter().sum::<u64>() as f64 / 10.0;
        assert_eq!(WorkingLatency::of(&record), None);
        record.latency = Some(Box::new(LatencyProbes {
            loaded: ProbePhase {
                from_ns: from,
                to_ns: to,
                round_trips: times(&[10; 20]),
                connects: times(&[10; 2]),
                ..ProbePhase::default()
            },
            ..LatencyProbes::default()
        }));
        let found = WorkingLatency::of(&record).unwrap();
        assert_eq!(found.loaded_connection.count, 10);
        let per_minute = found.responsiveness.loaded_connection_per_minute;
        assert!(near(per_minute, 60e6 / mean), "{per_minute:?}, {mean} µs");
        record.plan.protocol = Protocol::Udp;
        record.client.as_mut().unwrap().streams.clear();
        let found = WorkingLatency::of(&record).unwrap().responsiveness;
        assert_eq!(
            (found.loaded_connection_per_minute, found.without.len()),
            (None, 1)
        );
        assert!(near(found.per_minute, 6000.0), "{found:?}");
    }
}
