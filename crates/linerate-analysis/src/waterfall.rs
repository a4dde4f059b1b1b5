//! From the line's rate down to goodput: what took how much, in steps that add exactly.
//!
//! The line's rate is the slower interface's, where its speed is real and no less than what was measured; else
//! what the path was seen to pass while it was full; else the most that passed in a short while, which says
//! only that the path carries about that at least. Framing is what the headers take at this segment size
//! (RFC 6349, 4.1.1: Ethernet with preamble and gap, 38 bytes). What is missing from there to the plateau is
//! divided: repeated bytes by the kernel's count, the rest among the classes of [`crate::time_budget`], by how
//! much less was sent in the time of each than the line carries. The ramp is the plateau less the whole run.
//!
//! Everything is whole bit/s, divided by [`crate::apportion`]: line − steps = goodput, to the bit.

use serde::{Deserialize, Serialize};

use crate::apportion::apportion;
use crate::evidence::{DirectionEvidence, Place, Rows};
use crate::framing::Framing;
use crate::time_budget::Class;
use crate::triage::Triage;
use linerate_model::column::Column;
use linerate_model::plan::Protocol;
use linerate_model::record::{Flow, Role, RunRecord, StreamRecord};
use linerate_model::units::{BitRate, whole};

/// From the line's rate to goodput.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waterfall {
    /// Where it begins, bit/s on the wire.
    pub line_bps: u64,
    /// What that rate is.
    pub line: LineRate,
    /// What took how much, in order; those that took nothing are left out.
    pub steps: Vec<Step>,
    /// Goodput of the plateau, bit/s: what is left before the ramp's step.
    pub plateau_bps: u64,
    /// Goodput of the whole run, ramp included, bit/s: `line_bps` less all steps, exactly.
    pub goodput_bps: u64,
}

/// What the waterfall begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineRate {
    /// The speed of the slower interface, the client's.
    ClientInterface,
    /// The speed of the slower interface, the server's.
    ServerInterface,
    /// No interface's speed is known, or none that could be true: what passed while the path was full, with
    /// the framing added.
    PathSeenFull,
    /// The path was not seen full either: the most that passed in 40 ms, with the framing added. That is no bound: the
    /// path may carry more, and less where a queue gave out what it held at once.
    MostSeen,
}

/// One step down, or up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What took it.
    pub kind: StepKind,
    /// How much, bit/s; negative where it gave (a beginning that was faster than the plateau).
    pub bps: i64,
    /// What the figure rests on.
    pub source: String,
}

/// What a step of the waterfall is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Headers, preamble and gap around each segment.
    Framing,
    /// The path was full, and carries less than the line.
    Path,
    /// The congestion window was below what the line carries, without loss being repaired.
    CongestionWindow,
    /// Lost segments were being repaired.
    Recovery,
    /// Waiting for the retransmission timer, or for acknowledgements.
    Timeout,
    /// The peer's receive window.
    ReceiveWindow,
    /// The send buffer was full of bytes in flight.
    SendBuffer,
    /// The sending application had nothing to send, or was held to the rate asked for.
    Application,
    /// Bytes sent again (TCP), datagrams lost on the path (UDP).
    Loss,
    /// Datagrams dropped in the receiver's socket.
    ReceiverDrop,
    /// What took it is not known.
    NotKnown,
    /// The beginning was slower than the plateau.
    Ramp,
}

impl StepKind {
    /// As reports print the row: `congestion window`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Framing => "framing",
            Self::Path => "the path's own rate",
            Self::CongestionWindow => "congestion window",
            Self::Recovery => "recovery",
            Self::Timeout => "timeouts",
            Self::ReceiveWindow => "receive window",
            Self::SendBuffer => "send buffer",
            Self::Application => "application",
            Self::Loss => "loss",
            Self::ReceiverDrop => "dropped at the receiver",
            Self::NotKnown => "not known",
            Self::Ramp => "ramp",
        }
    }

    const fn of(class: Class) -> Self {
        match class {
            Class::Application => Self::Application,
            Class::SendBuffer => Self::SendBuffer,
            Class::ReceiveWindow => Self::ReceiveWindow,
            Class::CongestionWindow => Self::CongestionWindow,
            Class::Recovery => Self::Recovery,
            Class::Timeout => Self::Timeout,
            Class::FillingPath => Self::Path,
        }
    }
}

/// What passed while the path was full must be at least this share of the most that ever passed: acknowledgements
/// that bunch make a short while look up to a quarter faster.
const FULL_OF_BEST: f64 = 0.8;

impl Waterfall {
    /// The sum of all steps, bit/s.
    pub fn taken_bps(&self) -> i128 {
        self.steps.iter().map(|step| i128::from(step.bps)).sum()
    }

    pub(crate) fn of(
        record: &RunRecord,
        direction: &DirectionEvidence,
        triage: Result<&Triage, &String>,
        plateau_at_sender: Option<[u64; 2]>,
    ) -> Result<Self, String> {
        if direction.measured_at == Place::SendingApplication {
            return Err("only the sender was sampled".to_owned());
        }
        let goodput_bps = whole(direction.whole_run_bps().ok_or("nothing was measured")?);
        let udp = record.plan.protocol == Protocol::Udp;
        let plateau_bps = direction
            .plateau
            .filter(|_| !udp)
            .map_or(goodput_bps, |plateau| whole(plateau.estimate.mean));
        let framing = direction.framing.clone()?;
        let losses = if udp {
            Losses::of_datagrams(record, direction)
        } else {
            Losses::of_segments(record, direction.flow, plateau_at_sender)
        };
        let floor =
            plateau_bps
                .max(goodput_bps)
                .saturating_add(if udp { losses.total() } else { 0 });
        let (line, line_bps, payload_bps) = begin(record, direction, triage, &framing, floor);
        let mut waterfall = Self {
            line_bps,
            line,
            steps: Vec::new(),
            plateau_bps,
            goodput_bps,
        };
        waterfall.push(
            StepKind::Framing,
            line_bps.saturating_sub(payload_bps),
            framing.says(),
        );
        let missing = waterfall.lose(&losses, payload_bps.saturating_sub(plateau_bps));
        if udp {
            waterfall.push(StepKind::Application, missing, sender_held(record));
        } else {
            waterfall.limits(payload_bps, missing, triage, plateau_at_sender);
        }
        waterfall.ramp();
        Ok(waterfall)
    }

    fn push(&mut self, kind: StepKind, bps: u64, source: String) {
        if bps > 0 || kind == StepKind::Framing {
            let bps = i64::try_from(bps).unwrap_or(i64::MAX);
            self.steps.push(Step { kind, bps, source });
        }
    }

    /// Steps of what was lost; what is left of `missing`.
    fn lose(&mut self, losses: &Losses, missing: u64) -> u64 {
        let lost = losses.lost_bps.min(missing);
        self.push(StepKind::Loss, lost, losses.source.to_owned());
        let dropped = losses.dropped_bps.min(missing - lost);
        self.push(
            StepKind::ReceiverDrop,
            dropped,
            "datagrams that the receiving kernel dropped at the socket".to_owned(),
        );
        missing - lost - dropped
    }

    /// Divides what is missing among the classes.
    fn limits(
        &mut self,
        payload_bps: u64,
        missing: u64,
        triage: Result<&Triage, &String>,
        span: Option<[u64; 2]>,
    ) {
        let classified = match (triage, span) {
            (Ok(triage), Some(span)) => triage
                .budget(span)
                .map(|budget| (triage.missing(payload_bps as f64, span), budget)),
            (Err(why), _) => Err(why.clone()),
            (_, None) => Err("no plateau on the sender's clock".to_owned()),
        };
        let (weights, budget) = match classified {
            Ok(both) => both,
            Err(why) => return self.push(StepKind::NotKnown, missing, why),
        };
        let ordered: Vec<Class> = Class::NETWORK_FIRST.into_iter().rev().collect();
        let weighed: Vec<u64> = ordered
            .iter()
            .map(|class| whole(weights[*class as usize]))
            .collect();
        let parts = apportion(&weighed, missing);
        for (class, bps) in ordered.into_iter().zip(parts).rev() {
            let source = format!(
                "the sender's samples: {:.1} % of the plateau's time",
                budget.share(class) * 100.0
            );
            self.push(StepKind::of(class), bps, source);
        }
    }

    fn ramp(&mut self) {
        let taken = i128::from(self.plateau_bps) - i128::from(self.goodput_bps);
        if taken != 0 {
            self.steps.push(Step {
                kind: StepKind::Ramp,
                bps: i64::try_from(taken).unwrap_or(i64::MAX),
                source: if taken > 0 {
                    "goodput of the plateau less that of the whole run"
                } else {
                    "the whole run was faster than the plateau"
                }
                .to_owned(),
            });
        }
    }
}

/// Where to begin: what the rate is, bit/s on the wire and bit/s of payload, no less than `floor`.
fn begin(
    record: &RunRecord,
    direction: &DirectionEvidence,
    triage: Result<&Triage, &String>,
    framing: &Framing,
    floor: u64,
) -> (LineRate, u64, u64) {
    if let Some((line, bps)) = slower_interface(record).filter(|_| !record.plan.mptcp) {
        let payload = framing.payload_of(bps);
        if payload >= floor {
            return (line, bps, payload);
        }
    }
    let least = direction
        .path
        .and_then(|path| path.min_rtt_us)
        .map_or(0, whole);
    let (line, seen) = match triage {
        Ok(triage) => {
            let best = triage.best_bps();
            // A path that once passed far more was not full then: what looked like a queue was not one.
            let full = triage
                .full_path_bps(least)
                .filter(|full| *full >= FULL_OF_BEST * best);
            full.map_or((LineRate::MostSeen, best), |full| {
                (LineRate::PathSeenFull, full)
            })
        }
        Err(_) => (LineRate::MostSeen, 0.0),
    };
    let payload = whole(seen).max(floor);
    (line, framing.wire_of(payload), payload)
}

/// A link is full from this share of the payload that it can carry.
const LINK_FULL: f64 = 0.985;

/// See [`DirectionEvidence::link_full`].
pub(crate) fn link_full(record: &RunRecord, direction: &DirectionEvidence) -> bool {
    let plateau = direction.plateau.map(|plateau| plateau.estimate.mean);
    let rate = plateau.or_else(|| direction.whole_run_bps());
    let known = slower_interface(record)
        .filter(|_| !record.plan.mptcp)
        .zip(rate);
    known
        .zip(direction.framing.as_ref().ok())
        .is_some_and(|(((_, link), rate), framing)| {
            (LINK_FULL * framing.payload_of(link) as f64..=link as f64).contains(&rate)
        })
}

/// The slower of both ends' interfaces, of those whose speed is real.
pub(crate) fn slower_interface(record: &RunRecord) -> Option<(LineRate, u64)> {
    let speed = |role: Role| {
        let line = match role {
            Role::Client => LineRate::ClientInterface,
            Role::Server => LineRate::ServerInterface,
        };
        Some((line, record.end(role)?.interface.as_ref()?.speed_bps()?))
    };
    [Role::Client, Role::Server]
        .into_iter()
        .filter_map(speed)
        .reduce(|a, b| if b.1 < a.1 { b } else { a })
}

/// What was lost, bit/s of payload.
struct Losses {
    lost_bps: u64,
    dropped_bps: u64,
    source: &'static str,
}

impl Losses {
    fn total(&self) -> u64 {
        self.lost_bps.saturating_add(self.dropped_bps)
    }

    /// Bytes sent again over the plateau.
    fn of_segments(record: &RunRecord, flow: Flow, plateau: Option<[u64; 2]>) -> Self {
        let again = || -> Option<u64> {
            let span = plateau?;
            let grown = |stream: &StreamRecord| {
                let rows = Rows::within(stream, span)?;
                let bytes = rows.growth(Column::bytes_retrans)?;
                Some(bytes * 8e6 / rows.elapsed_us().max(1e-3))
            };
            let rates: Option<Vec<f64>> = record
                .end(flow.sender())?
                .streams_of(flow)
                .map(grown)
                .collect();
            Some(whole(rates?.iter().sum()))
        };
        Self {
            lost_bps: again().unwrap_or(0),
            dropped_bps: 0,
            source: "bytes that the sending kernel retransmitted over the plateau",
        }
    }

    /// Datagrams that did not arrive, the omitted part left out.
    fn of_datagrams(record: &RunRecord, direction: &DirectionEvidence) -> Self {
        let (mut lost, mut dropped) = (0_u64, 0_u64);
        let receiver = record.end(direction.flow.receiver());
        let streams = receiver
            .into_iter()
            .flat_map(|end| end.streams_of(direction.flow));
        for counts in streams.filter_map(|stream| stream.udp.as_ref()) {
            let sent = counts
                .peer_sent
                .unwrap_or(counts.highest)
                .saturating_sub(counts.highest_omitted);
            let arrived = counts.unique.saturating_sub(counts.unique_omitted);
            let missing = sent.saturating_sub(arrived);
            let here = counts.socket_drops.unwrap_or(0).min(missing);
            lost = lost.saturating_add(missing - here);
            dropped = dropped.saturating_add(here);
        }
        let rate = |datagrams: u64| {
            let bytes = linerate_model::units::Bytes(
                datagrams.saturating_mul(record.plan.block_bytes.count()),
            );
            BitRate::of(bytes, linerate_model::units::Nanos(direction.span_ns))
                .map_or(0, |rate| rate.0)
        };
        Self {
            lost_bps: rate(lost),
            dropped_bps: rate(dropped),
            source: "datagrams that did not reach the receiver's socket",
        }
    }
}

/// Why a UDP sender sent no more.
fn sender_held(record: &RunRecord) -> String {
    match record.plan.rate_bps {
        Some(rate) if record.plan.streams > 1 => {
            format!("each of {} streams requested {rate}", record.plan.streams)
        }
        Some(rate) => format!("{rate} was requested"),
        None => "the sending host did not send more".to_owned(),
    }
}
