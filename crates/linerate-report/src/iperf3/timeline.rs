//! What the events of a test have told so far: its streams, where its parts begin, what each moved.

use std::collections::BTreeMap;

use linerate_model::plan::Plan;
use linerate_model::progress::{Interval, StreamInterval, StreamOpened};
use linerate_model::record::Flow;
use linerate_model::units::Nanos;

#[derive(Debug, Clone, Default)]
pub(super) struct Timeline {
    /// The plan in force, once it is known.
    plan: Option<Plan>,
    /// The data streams, in the order of their ids.
    pub(super) streams: Vec<StreamOpened>,
    seen: BTreeMap<u32, Seen>,
}

/// A part's first instant; iperf3's clock begins anew after the omitted part.
#[derive(Debug, Clone, Copy, Default)]
struct Begins {
    omitted: Option<Nanos>,
    kept: Option<Nanos>,
}

/// What a stream's intervals have told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    begins: Begins,
    /// Payload bytes after the omitted part.
    pub(super) bytes: u64,
    /// From the first to the last instant after the omitted part, s.
    pub(super) seconds: f64,
    /// Segments sent again after the omitted part; absent where no interval told.
    pub(super) retransmits: Option<u64>,
}

/// A span on iperf3's clock, s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Span {
    pub(super) start: f64,
    pub(super) end: f64,
    /// Its length.
    pub(super) seconds: f64,
}

/// An interval on iperf3's clock.
#[derive(Debug, Clone)]
pub(super) struct Shown<'a> {
    /// Whether it lies in the omitted part.
    pub(super) omitted: bool,
    pub(super) streams: Vec<ShownStream<'a>>,
}

/// A stream in an interval.
#[derive(Debug, Clone)]
pub(super) struct ShownStream<'a> {
    pub(super) socket: i64,
    /// By the stream's own stamps.
    pub(super) span: Span,
    pub(super) moved: &'a StreamInterval,
}

impl Begins {
    fn span(&mut self, omitted: bool, from: Nanos, to: Nanos) -> Span {
        let part = if omitted {
            &mut self.omitted
        } else {
            &mut self.kept
        };
        let begin = *part.get_or_insert(from);
        Span {
            start: from.since(begin).as_secs_f64(),
            end: to.since(begin).as_secs_f64(),
            seconds: to.since(from).as_secs_f64(),
        }
    }
}

impl Span {
    /// `bytes` over this span, a second.
    pub(super) fn rate(self, bytes: u64) -> f64 {
        per_second(bytes, self.seconds)
    }
}

/// Bytes a second; 0 where no time passed.
pub(super) fn per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 / seconds
    } else {
        0.0
    }
}

impl Timeline {
    /// With the plan, where it is known from the start.
    pub(super) fn new(plan: Option<Plan>) -> Self {
        Self {
            plan,
            ..Self::default()
        }
    }

    pub(super) fn set_plan(&mut self, plan: &Plan) {
        self.plan = Some(plan.clone());
    }

    pub(super) fn open(&mut self, streams: &[StreamOpened]) {
        self.streams = streams.to_vec();
    }

    /// The plan, if it was told.
    pub(super) fn told(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// The plan, or what the streams show of it.
    pub(super) fn plan(&self) -> Plan {
        self.plan
            .clone()
            .unwrap_or_else(|| super::plan_of(&self.streams))
    }

    /// The socket's number of a stream; its id where it is not known.
    pub(super) fn socket(&self, id: u32) -> i64 {
        let opened = self.streams.iter().find(|stream| stream.id == id);
        opened.map_or(i64::from(id), |stream| i64::from(stream.socket))
    }

    /// What a stream's intervals have told.
    pub(super) fn seen(&self, id: u32) -> Option<&Seen> {
        self.seen.get(&id)
    }

    /// Books an interval. `None` = it is not worth a line: next to no time passed and nothing moved.
    pub(super) fn book<'a>(&mut self, interval: &'a Interval) -> Option<Shown<'a>> {
        let streams: Vec<_> = interval
            .streams
            .iter()
            .map(|moved| self.book_stream(interval.omitted, moved))
            .collect();
        let short = self.plan().interval_ns.as_secs_f64() / 10.0;
        let worth = |stream: &ShownStream| stream.moved.bytes > 0 || stream.span.seconds >= short;
        streams.iter().any(worth).then_some(Shown {
            omitted: interval.omitted,
            streams,
        })
    }

    fn book_stream<'a>(&mut self, omitted: bool, moved: &'a StreamInterval) -> ShownStream<'a> {
        let seen = self.seen.entry(moved.id).or_default();
        let span = seen.begins.span(omitted, moved.from_ns, moved.to_ns);
        if !omitted {
            seen.bytes = seen.bytes.saturating_add(moved.bytes);
            seen.seconds = span.end;
            if let Some(tcp) = &moved.tcp {
                seen.retransmits = Some(
                    seen.retransmits
                        .unwrap_or(0)
                        .saturating_add(tcp.retransmits),
                );
            }
        }
        ShownStream {
            socket: self.socket(moved.id),
            span,
            moved,
        }
    }
}

impl<'a> Shown<'a> {
    /// The streams of one direction.
    pub(super) fn of(&self, flow: Flow) -> impl Iterator<Item = &ShownStream<'a>> {
        self.streams
            .iter()
            .filter(move |stream| stream.moved.flow == flow)
    }

    /// The time of a direction's streams together: the mean of theirs, because each was read at its
    /// own instant; one that stopped well before the others has no say.
    pub(super) fn span(&self, flow: Flow) -> Span {
        let most =
            |of: fn(&Span) -> f64| self.of(flow).map(|one| of(&one.span)).fold(0.0, f64::max);
        let (latest, longest) = (most(|span| span.end), most(|span| span.seconds));
        let runs = |stream: &&ShownStream| stream.span.end >= latest - longest / 10.0;
        let running: Vec<Span> = self.of(flow).filter(runs).map(|one| one.span).collect();
        let mean = |of: fn(&Span) -> f64| {
            running.iter().map(of).sum::<f64>() / (running.len() as f64).max(1.0)
        };
        Span {
            start: mean(|span| span.start),
            end: mean(|span| span.end),
            seconds: mean(|span| span.seconds),
        }
    }

    /// What the streams of one direction moved together.
    pub(super) fn sum(&self, flow: Flow) -> Sum {
        Sum::of(self.of(flow).map(|stream| stream.moved))
    }
}

/// What several streams moved in an interval.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    /// Their number.
    pub(super) streams: u32,
    /// Whether this end sends them.
    pub(super) sends: bool,
    /// Payload bytes.
    pub(super) bytes: u64,
    /// Segments sent again; absent at a receiver.
    pub(super) retransmits: Option<u64>,
    /// Datagrams sent or expected.
    pub(super) packets: u64,
    /// Datagrams missing.
    pub(super) lost: i64,
    /// Mean of the streams' jitters, ms.
    pub(super) jitter_ms: f64,
}

impl Sum {
    pub(super) fn of<'a>(streams: impl IntoIterator<Item = &'a StreamInterval>) -> Self {
        let mut sum = Self::default();
        for moved in streams {
            sum.streams += 1;
            sum.sends = moved.sends;
            sum.bytes = sum.bytes.saturating_add(moved.bytes);
            if let Some(tcp) = &moved.tcp {
                let before = sum.retransmits.unwrap_or(0);
                sum.retransmits = Some(before.saturating_add(tcp.retransmits));
            }
            if let Some(udp) = &moved.udp {
                sum.packets = sum.packets.saturating_add(udp.packets);
                sum.lost = sum.lost.saturating_add(udp.lost);
                sum.jitter_ms += udp.jitter_ns as f64 / 1e6;
            }
        }
        sum.jitter_ms /= f64::from(sum.streams.max(1));
        sum
    }

    pub(super) fn lost_percent(self) -> f64 {
        lost_percent(self.lost, self.packets)
    }
}

/// Lost datagrams of those expected, %: never negative, whatever came late.
pub(super) fn lost_percent(lost: i64, packets: u64) -> f64 {
    if packets == 0 {
        0.0
    } else {
        (100.0 * lost.max(0) as f64 / packets as f64).min(100.0)
    }
}
