//! Runs made after a test to decide its findings: what each one changed, and what it gave.
//!
//! The raw part ([`CounterRun`]) is kept in the record, in the order in which the runs were made; what it says
//! of a finding ([`Tested`]) is derived each time it is shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::{DEFAULT_UDP_BLOCK, Direction, Plan, Protocol};
use crate::record::Outcome;
use crate::units::{BitRate, Bytes, Nanos};

/// The one thing that a run has otherwise than the test whose finding it tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Variation {
    /// Socket buffers asked for (`-w`).
    Window {
        /// Bytes.
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
        /// Bytes.
        bytes: u16,
    },
    /// Datagrams at a rate, all streams together (`-u -b`).
    Datagrams {
        /// Bit/s of payload.
        bps: BitRate,
    },
    /// The other direction (`-R`).
    OtherDirection,
    /// Another congestion control (`-C`).
    Congestion {
        /// Its name.
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
                plan.rate_bps = Some(each(*bps, &plan));
                plan.rate_is_default = false;
                plan.protocol = Protocol::Udp;
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
        }
    }
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
    /// Goodput.
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
