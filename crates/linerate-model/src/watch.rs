//! Regular tests between hosts: what became of each one that was due, and what is said of a pair meanwhile.
//!
//! A test that was asked for always ends as a [`WatchRun`]. One that did not measure has no rate: a failure is never a
//! zero, and a gap is never a line between its neighbours.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::units::Nanos;

/// Milliseconds since 1970-01-01 00:00 UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// This many milliseconds later.
    #[must_use]
    pub const fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds since an earlier moment; 0 where that one is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// What a test is known by: a UUID of version 7 (RFC 9562, section 5.7) made of the moment at which it is due and of a
/// hash of what is tested. The same due test therefore has the same id after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(u128);

impl RunId {
    /// The id of what is due at a moment; of `hash`, 74 bits are taken.
    pub const fn of(due: UnixMillis, hash: u128) -> Self {
        let time = (due.0 as u128 & 0xffff_ffff_ffff) << 80;
        let high = (hash >> 62 & 0xfff) << 64;
        let low = hash & 0x3fff_ffff_ffff_ffff;
        Self(time | 0x7 << 76 | high | 0x2 << 62 | low)
    }

    /// When it was due.
    pub const fn due(self) -> UnixMillis {
        UnixMillis((self.0 >> 80) as u64)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        f.write_str(&parts.join("-"))
    }
}

/// A text that is no [`RunId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the id of a test: expected 32 hexadecimal digits as 8-4-4-4-12")]
pub struct RunIdError(PlainText);

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let lengths = text.split('-').map(str::len);
        let digits = || text.bytes().all(|c| c == b'-' || c.is_ascii_hexdigit());
        if lengths.eq([8, 4, 4, 4, 12])
            && digits()
            && let Ok(number) = u128::from_str_radix(&text.replace('-', ""), 16)
        {
            return Ok(Self(number));
        }
        Err(RunIdError(text.into()))
    }
}

impl TryFrom<String> for RunId {
    type Error = RunIdError;

    fn try_from(text: String) -> Result<Self, RunIdError> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.to_string()
    }
}

/// Why a test was due; the more urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunClass {
    /// Somebody asked for it now.
    OnDemand,
    /// It confirms or refutes that a pair is slow.
    Confirm,
    /// Its schedule says so.
    Regular,
}

/// A test that was due, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchRun {
    /// What it is known by.
    pub id: RunId,
    /// The task of the plan that it belongs to.
    pub task: PlainText,
    /// The sending host.
    pub from: PlainText,
    /// The receiving host.
    pub to: PlainText,
    /// Why it was due.
    pub class: RunClass,
    /// From when on it might run.
    pub due: UnixMillis,
    /// By when it had to have ended.
    pub deadline: UnixMillis,
    /// When it began; absent = it did not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started: Option<UnixMillis>,
    /// When it ended, or when it was known that it would not run.
    pub ended: UnixMillis,
    /// What became of it: the key `outcome`, beside it the figures or the reason.
    #[serde(flatten)]
    pub outcome: WatchOutcome,
}

/// What became of a test that was due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum WatchOutcome {
    /// It ran.
    Measured(WatchFigures),
    /// It began and failed.
    Failed {
        /// What was being done.
        stage: PlainText,
        /// Why it failed.
        why: PlainText,
    },
    /// It did not begin.
    NotRun {
        /// Why not, as a word for programs.
        reason: NotRun,
        /// The same as a sentence, with what stood in its way.
        why: PlainText,
        /// The tests that held what it needed, where [`NotRun::Missed`], the longest first; the host without an agent, where
        /// [`NotRun::AgentAway`].
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        held: Vec<Holding>,
    },
    /// It ran, but what it measured does not count.
    Invalid {
        /// Why not.
        why: PlainText,
    },
}

/// Why a test did not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotRun {
    /// What it needs was in use by other tests until its deadline.
    Missed,
    /// An agent was not connected.
    AgentAway,
    /// The pair or a host failed before, and is tried less often for a while.
    BackingOff,
    /// A budget of bytes or seconds is spent.
    Budget,
    /// Its schedule allows no test at these hours.
    Hours,
    /// A window of maintenance.
    Maintenance,
    /// Neither host can connect to the other.
    Unreachable,
    /// Other traffic used the link.
    BusyLink,
    /// The hub did not run.
    HubAway,
    /// A host's own rules forbid it.
    Refused,
    /// The plan was changed, and no longer has it.
    Dropped,
}

impl NotRun {
    /// Every reason.
    pub const ALL: [Self; 11] = [
        Self::Missed,
        Self::AgentAway,
        Self::BackingOff,
        Self::Budget,
        Self::Hours,
        Self::Maintenance,
        Self::Unreachable,
        Self::BusyLink,
        Self::HubAway,
        Self::Refused,
        Self::Dropped,
    ];

    /// Its word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Missed => "missed",
            Self::AgentAway => "agent-away",
            Self::BackingOff => "backing-off",
            Self::Budget => "budget",
            Self::Hours => "hours",
            Self::Maintenance => "maintenance",
            Self::Unreachable => "unreachable",
            Self::BusyLink => "busy-link",
            Self::HubAway => "hub-away",
            Self::Refused => "refused",
            Self::Dropped => "dropped",
        }
    }
}

/// Something that a test needed, and who had it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holding {
    /// What was held: `node1`, `node1 sends`, `segment uplink`.
    pub resource: PlainText,
    /// What held it: a test as `TASK FROM > TO`, or the reason in words, such as an agent that was not connected.
    pub by: PlainText,
    /// For how long of the time in which the test was due, ms.
    pub millis: u64,
}

/// The figures of a test that ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WatchFigures {
    /// Payload at the receiving application, bit/s, over the plateau.
    pub goodput_bps: f64,
    /// The 95 % interval of it, bit/s; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval_bps: Option<(f64, f64)>,
    /// Payload at the receiving application over the whole test, bit/s; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub whole_bps: Option<f64>,
    /// How long the rate grew before the plateau; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ramp: Option<Nanos>,
    /// Share of segments that were retransmitted, 0 to 1; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retransmitted: Option<f64>,
    /// Share of UDP's datagrams that were lost, 0 to 1; absent = not UDP, or not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lost: Option<f64>,
    /// Smoothed round-trip time, median over the plateau; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt: Option<Nanos>,
    /// CPU time of the sending process per time, 0 to the number of CPUs; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sender_cpu: Option<f64>,
    /// The same of the receiving process.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receiver_cpu: Option<f64>,
    /// Ids of the findings, the first one first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub findings: Vec<String>,
    /// Whether other traffic used the link: such a test is in no baseline.
    #[serde(skip_serializing_if = "is_false", default)]
    pub with_traffic: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_due_test_has_the_same_id_and_tells_when_it_was_due() {
        let due = UnixMillis(1_764_038_400_123);
        let id = RunId::of(due, u128::MAX);
        assert_eq!(id, RunId::of(due, u128::MAX));
        assert_ne!(id, RunId::of(due, 1));
        assert_eq!(id.due(), due);
        let text = id.to_string();
        assert_eq!((&text[14..15], &text[19..20]), ("7", "b"));
        assert_eq!(text.parse(), Ok(id));
        assert!("0-0".parse::<RunId>().is_err());
    }

    #[test]
    fn a_failure_has_no_rate() {
        let run = WatchRun {
            id: RunId::of(UnixMillis(5), 9),
            task: "uplink".into(),
            from: "a".into(),
            to: "b".into(),
            class: RunClass::Regular,
            due: UnixMillis(5),
            deadline: UnixMillis(9),
            started: None,
            ended: UnixMillis(9),
            outcome: WatchOutcome::NotRun {
                reason: NotRun::AgentAway,
                why: "a is not connected".into(),
                held: Vec::new(),
            },
        };
        let text = serde_json::to_string(&run).unwrap();
        assert!(
            !text.contains("bps") && text.contains("\"agent-away\""),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<WatchRun>(&text).unwrap(), run);
    }

    #[test]
    fn words_of_reasons_are_those_of_json() {
        for reason in NotRun::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
        }
    }
}
