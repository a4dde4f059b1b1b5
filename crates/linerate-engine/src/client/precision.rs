//! Looking at a running test's interval, where the plan asks for a precision.
//!
//! What is looked at is the series that the report will use, as far as it is known here while the test runs: what
//! this end's applications read; over TCP what its kernel was acknowledged; over UDP what the server tells. The
//! grid, the plateau and its interval are the report's own functions.

use std::sync::Arc;

use linerate_analysis::evidence::{self, Counts};
use linerate_analysis::precision::{self, Looks};
use linerate_analysis::statistics::Plateau;
use linerate_model::plan::{Plan, Protocol};
use linerate_model::record::Flow;
use linerate_model::series::every_second;
use linerate_model::units::Nanos;
use linerate_wire::extension::Received;

use crate::stream::StreamHandle;

/// How often a server is asked to tell what arrived.
pub(crate) const TOLD_EVERY: Nanos = Nanos::from_millis(20);
/// Samples of a stream that are kept; then every second one goes. The report's grid has a thousand points.
const MOST_ROWS: usize = 4096;
/// Where the report will rest on samples of the other end, this much of the precision is asked for here.
const ELSEWHERE: f64 = 0.9;

/// Where a stream's bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// By this end's application, as the report does.
    Read,
    /// By this end's kernel, from acknowledgements.
    Acknowledged,
    /// By the server, which tells.
    Told,
}

/// A stream that is followed.
struct Followed {
    id: u32,
    flow: Flow,
    source: Source,
    at_ns: Vec<u64>,
    bytes: Vec<u64>,
}

/// The looks at a test.
pub(super) struct Watch {
    plan: Arc<Plan>,
    looks: Looks,
    /// Where the measured part begins.
    from: Nanos,
    every: Nanos,
    next: Nanos,
    streams: Vec<Followed>,
}

impl Watch {
    /// `None` where the plan asks for no precision.
    pub(super) fn new(plan: &Arc<Plan>, start: Nanos, streams: &[StreamHandle]) -> Option<Self> {
        let asked = plan.precision?;
        let from = start.plus(plan.omit_ns);
        let followed = streams.iter().map(|stream| Followed {
            id: stream.id,
            flow: stream.flow,
            source: match (stream.sends, plan.protocol) {
                (false, _) => Source::Read,
                (true, Protocol::Tcp | Protocol::Sctp) => Source::Acknowledged,
                (true, Protocol::Udp) => Source::Told,
            },
            at_ns: Vec::new(),
            bytes: Vec::new(),
        });
        let streams: Vec<Followed> = followed.collect();
        let here = streams.iter().all(|stream| stream.source == Source::Read);
        Some(Self {
            plan: Arc::clone(plan),
            looks: Looks::new(if here { asked } else { ELSEWHERE * asked }),
            from,
            every: plan.sample_ns,
            next: from,
            streams,
        })
    }

    /// When [`Watch::take`] should be called.
    pub(super) fn wake(&self) -> Nanos {
        self.next
    }

    /// Takes what the streams show; true = the rate is known well enough.
    pub(super) fn take(&mut self, now: Nanos, handles: &[StreamHandle]) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now.plus(self.every);
        for stream in &mut self.streams {
            let handle = handles.iter().find(|handle| handle.id == stream.id);
            let Some(figures) = handle.map(|handle| handle.live.latest()) else {
                continue;
            };
            let bytes = match stream.source {
                Source::Read => figures.bytes,
                Source::Acknowledged => figures
                    .tcp
                    .and_then(|tcp| tcp.bytes_acked)
                    .unwrap_or(figures.bytes),
                Source::Told => continue,
            };
            if figures.at >= self.from {
                stream.push(figures.at.0, bytes);
            }
        }
        self.thin();
        now.since(self.from) >= self.looks.next() && self.look()
    }

    /// Keeps what the server told. Some tell of a stream before its first sample, as of the instant 0.
    pub(super) fn hear(&mut self, now: Nanos, told: &Received) {
        if now < self.from {
            return;
        }
        for one in &told.streams {
            let told = |stream: &&mut Followed| {
                stream.id == one.id && stream.source == Source::Told && one.at_ns > 0
            };
            if let Some(stream) = self.streams.iter_mut().find(told) {
                stream.push(one.at_ns, one.bytes);
            }
        }
    }

    fn look(&mut self) -> bool {
        let mut flows: Vec<Flow> = self.streams.iter().map(|stream| stream.flow).collect();
        flows.dedup();
        let plateaus: Vec<Option<Plateau>> = flows.iter().map(|flow| self.plateau(*flow)).collect();
        self.looks.look(&plateaus)
    }

    /// What the report would say of a direction now.
    fn plateau(&self, flow: Flow) -> Option<Plateau> {
        let streams = || self.streams.iter().filter(|stream| stream.flow == flow);
        // From where all are known to where all are.
        let from = streams()
            .map(|stream| stream.at_ns.first().copied())
            .max()??;
        let to = streams()
            .map(|stream| stream.at_ns.last().copied())
            .min()??;
        let known = streams().all(|stream| stream.at_ns.len() > 1);
        if !known || to <= from {
            return None;
        }
        let counts: Vec<Counts<'_>> = streams()
            .map(|stream| Counts {
                at_ns: &stream.at_ns,
                bytes: &stream.bytes,
            })
            .collect();
        let step = if streams().any(|stream| stream.source == Source::Told) {
            TOLD_EVERY.max(self.every)
        } else {
            self.every
        };
        let (_, rates) = evidence::rates(&counts, [from, to], step);
        precision::plateau(&self.plan, &rates)
    }

    /// Halves what is kept where it is too much.
    fn thin(&mut self) {
        let mut halved = false;
        for stream in &mut self.streams {
            if stream.at_ns.len() >= MOST_ROWS {
                stream.halve();
                halved |= stream.source != Source::Told;
            }
        }
        if halved {
            self.every = Nanos(self.every.0.saturating_mul(2));
        }
    }
}

impl Followed {
    /// A count that is no later than the last one tells nothing new.
    fn push(&mut self, at_ns: u64, bytes: u64) {
        if self.at_ns.last().is_none_or(|last| at_ns > *last) {
            self.at_ns.push(at_ns);
            self.bytes.push(bytes);
        }
    }

    fn halve(&mut self) {
        every_second(&mut self.at_ns);
        every_second(&mut self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(source: Source, flow: Flow, id: u32) -> Followed {
        Followed {
            id,
            flow,
            source,
            at_ns: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn watch(streams: Vec<Followed>) -> Watch {
        let mut plan = Plan::new("server");
        plan.precision = Some(0.02);
        Watch {
            plan: Arc::new(plan),
            looks: Looks::new(0.02),
            from: Nanos(1000),
            every: Nanos::from_millis(10),
            next: Nanos(1000),
            streams,
        }
    }

    #[test]
    fn a_steady_stream_is_known_and_one_that_is_silent_is_not() {
        let mut one = followed(Source::Acknowledged, Flow::ClientToServer, 1);
        for step in 0..800 {
            one.push(1000 + step * 10_000_000, step * 125_000);
        }
        let silent = followed(Source::Read, Flow::ServerToClient, 3);
        let watch = watch(vec![one, silent]);
        let plateau = watch.plateau(Flow::ClientToServer).unwrap();
        assert!((plateau.estimate.mean - 100e6).abs() < 1.0);
        assert!(precision::reached(&plateau, 0.02));
        assert_eq!(watch.plateau(Flow::ServerToClient), None);
    }

    #[test]
    fn what_the_server_tells_counts_from_the_measured_part_on() {
        let mut watch = watch(vec![followed(Source::Told, Flow::ClientToServer, 1)]);
        let told = |at_ns, bytes| Received {
            streams: vec![
                linerate_wire::extension::ReceivedStream {
                    id: 1,
                    at_ns,
                    bytes,
                },
                linerate_wire::extension::ReceivedStream {
                    id: 9,
                    at_ns,
                    bytes,
                },
            ],
        };
        watch.hear(Nanos(999), &told(5, 5));
        watch.hear(Nanos(1000), &told(0, 0));
        watch.hear(Nanos(1000), &told(7, 10));
        watch.hear(Nanos(1001), &told(7, 12));
        watch.hear(Nanos(1002), &told(9, 30));
        assert_eq!(watch.streams[0].at_ns, [7, 9]);
        assert_eq!(watch.streams[0].bytes, [10, 30]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut one = followed(Source::Read, Flow::ServerToClient, 1);
        for at in 0..MOST_ROWS as u64 {
            one.push(at, at);
        }
        let mut watch = watch(vec![one]);
        watch.thin();
        assert_eq!(watch.streams[0].at_ns.len(), MOST_ROWS / 2);
        assert_eq!(watch.every, Nanos::from_millis(20));
        assert_eq!(watch.streams[0].at_ns[1], 2);
    }
}
