//! Runs made after a test to decide its findings: what each one changed, and what it gave.
//!
//! The raw part ([`CounterRun`]) is kept in the record, in the order in which the runs were made; what it says
//! of a finding ([`Tested`]) is derived each time it is shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::{DEFAULT_UDP_BLOCK, Direction, Pace, Plan, Protocol};
use crate::record::Outcome;
use crate::units::{BitRate, Bytes, Nanos};

/// The one thing that a run has otherwise than the test whose finding it tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Variation {
    /// Socket buffers asked for (`-w`).
    Window {
        /// Size given with `-w`; the kernel doubles it.
        bytes: Bytes,
    },
    /// Connections (`-P`).
    Streams {
        /// How many.
        streams: u16,
    },
    /// Pacing by the kernel, all streams together (`--fq-rate`).
    Pacing {
        /// Bit/s.
        bps: BitRate,
    },
    /// Maximum segment size (`-M`).
    SegmentSize {
        /// TCP payload of a segment, as `-M` takes it.
        bytes: u16,
    },
    /// One stream of datagrams, evenly at a rate (`-u -b`).
    Datagrams {
        /// Bit/s of payload.
        bps: BitRate,
    },
    /// The other direction (`-R`).
    OtherDirection,
    /// Another congestion control (`-C`).
    Congestion {
        /// The kernel's name: `cubic`.
        name: String,
    },
    /// No rate asked for.
    Unpaced,
}

impl Variation {
    /// The plan with this changed.
    pub fn applied(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        let each =
            |rate: BitRate, plan: &Plan| BitRate((rate.0 / u64::from(plan.streams.max(1))).max(1));
        match self {
            Self::Window { bytes } => plan.window_bytes = Some(*bytes),
            Self::Streams { streams } => plan.streams = *streams,
            Self::Pacing { bps } => plan.kernel_pacing_bps = Some(each(*bps, &plan)),
            Self::SegmentSize { bytes } => plan.mss_bytes = Some(*bytes),
            Self::Datagrams { bps } => {
                plan.streams = 1;
                plan.rate_bps = Some(*bps);
                plan.rate_is_default = false;
                plan.protocol = Protocol::Udp;
                plan.pace = Pace::Spin;
                plan.block_bytes = DEFAULT_UDP_BLOCK;
                // What means nothing for datagrams, or is TCP's way of pacing.
                plan.kernel_pacing_bps = None;
                plan.window_bytes = None;
                plan.mss_bytes = None;
                plan.congestion = None;
                (plan.mptcp, plan.nodelay, plan.zerocopy) = (false, false, false);
            }
            Self::OtherDirection => {
                plan.direction = match plan.direction {
                    Direction::Send => Direction::Receive,
                    Direction::Receive => Direction::Send,
                    Direction::Both => Direction::Both,
                }
            }
            Self::Congestion { name } => plan.congestion = Some(name.clone().into()),
            Self::Unpaced => {
                plan.rate_bps = None;
                plan.rate_is_default = false;
                plan.kernel_pacing_bps = None;
            }
        }
        plan
    }
}

impl fmt::Display for Variation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window { bytes } => write!(f, "sockets of {bytes} (-w)"),
            Self::Streams { streams } => write!(f, "{streams} streams (-P {streams})"),
            Self::Pacing { bps } => write!(f, "pacing at {bps}"),
            Self::SegmentSize { bytes } => write!(f, "segments of {bytes} bytes (-M)"),
            Self::Datagrams { bps } => write!(f, "UDP at {bps}"),
            Self::OtherDirection => f.write_str("the other direction"),
            Self::Congestion { name } => write!(f, "{name} (-C)"),
            Self::Unpaced => f.write_str("no rate limit"),
        }
    }
}

/// One run of a counter-test; figures of the direction that the findings are about. What is not known is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterRun {
    /// What it had otherwise; absent = nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<Variation>,
    /// How it ended.
    pub outcome: Outcome,
    /// Time that was measured.
    #[serde(default)]
    pub span_ns: Nanos,
    /// Goodput of the plateau, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<f64>,
    /// Lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_bps: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_bps: Option<f64>,
    /// Mean of the smoothed round-trip time, µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<f64>,
    /// Least round-trip time, µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<f64>,
    /// Segments sent again, or datagrams lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Segments with data, or datagrams, sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Median of what lay unread at the receiver, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_bytes: Option<f64>,
    /// Of a run of datagrams: what the path let pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passage: Option<Passage>,
}

/// What a path let pass of datagrams sent at a constant rate, as their receiver counted them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// Payload sent, bit/s.
    pub offered_bps: f64,
    /// Payload that arrived in the second half of the time, bit/s.
    pub delivered_bps: f64,
    /// Share of the second half's datagrams that were lost on the path, 0 to 1.
    pub lost_share: f64,
    /// What arrived in the first half beyond that rate, bytes.
    pub beyond_bytes: f64,
    /// How much longer the second half's datagrams were on their way than the fastest of all, µs: the time that they waited
    /// in a queue.
    pub waited_us: f64,
    /// Payload of a datagram, bytes.
    pub datagram_bytes: f64,
}

impl CounterRun {
    /// A run that could not be made.
    pub fn failed(variation: Option<Variation>, error: String) -> Self {
        Self::without_figures(
            variation,
            Outcome::Failed {
                error: error.into(),
            },
        )
    }

    /// A run of which nothing is known yet.
    pub fn without_figures(variation: Option<Variation>, outcome: Outcome) -> Self {
        Self {
            variation,
            outcome,
            span_ns: Nanos::ZERO,
            goodput_bps: None,
            low_bps: None,
            high_bps: None,
            rtt_us: None,
            min_rtt_us: None,
            lost: None,
            sent: None,
            unread_bytes: None,
            passage: None,
        }
    }
}

/// What may limit a rate, and how likely it is by all runs together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Likely {
    /// The finding that it would be.
    pub id: String,
    /// 0 to 1; all of them together are 1.
    pub probability: f64,
}

/// Why a diagnosis went no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// One cause stands.
    OneStands,
    /// No further run would tell the causes apart.
    NothingSeparates,
    /// There was more to try.
    Stopped,
}

/// What one test and the runs that followed it say of the cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The causes, the likeliest first; those that are hardly possible are left out.
    pub causes: Vec<Likely>,
    /// Why no more was tried.
    pub ended: Ended,
}

/// What counter-tests make of a finding, or of a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It came as the finding predicts, and as it would not without it.
    Confirmed,
    /// It came otherwise: the finding is withdrawn.
    Refuted,
    /// The figures do not decide.
    Undecided,
}

/// What a counter-test measures, as a ratio of the changed runs to those as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Payload that the receiving application read over the plateau, bit/s.
    Goodput,
    /// Share of the segments sent again, or of the datagrams lost.
    Loss,
    /// Round-trip time.
    RoundTrip,
    /// What lies unread at the receiver.
    Unread,
}

/// One change tried against one finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterTest {
    /// What was changed.
    pub variation: Variation,
    /// The command that does it again.
    pub command: String,
    /// What was compared.
    pub measure: Measure,
    /// Changed runs that could be compared with those around them.
    pub pairs: usize,
    /// With the change, over as it was: the mean of the pairs; absent where none could be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The ratio that divides what the finding predicts from what it does not.
    pub threshold: f64,
    /// Whether the finding predicts more than that.
    pub predicts_more: bool,
    /// What follows.
    pub verdict: Verdict,
    /// What was seen and what it means, a sentence.
    pub sentence: String,
}

/// What the counter-tests say of a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// All of them together.
    pub verdict: Verdict,
    /// In words: `confirmed by …`, `refuted: …`.
    pub sentence: String,
    /// Each.
    pub tests: Vec<CounterTest>,
}
