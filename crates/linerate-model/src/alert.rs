//! What is wrong between hosts: an alert with the pairs inside it, the tests that it rests on and what limits them; and
//! silences, which mute its notifications.
//!
//! An alert holds what was measured and what it was compared with, as data. Remedies become text where they are shown.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::counter_test;
use crate::mesh::{MeshCauseKind, MeshDirection};
use crate::plain_text::PlainText;
use crate::remedy::Remedy;
use crate::watch::{RunClass, RunId, RunIdError, UnixMillis};

/// The id of an alert: a UUID of version 7, made of the moment at which it began and of a hash of what it is about. The same
/// alert therefore has the same id after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AlertId(RunId);

impl AlertId {
    /// The id of an alert that began then; of `hash`, 74 bits are taken.
    pub const fn of(since: UnixMillis, hash: u128) -> Self {
        Self(RunId::of(since, hash))
    }
}

impl fmt::Display for AlertId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for AlertId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        text.parse().map(Self)
    }
}

/// Something that is wrong, from its first bad test until it is repaired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// Its id.
    pub id: AlertId,
    /// The task of the plan whose tests show it.
    pub task: PlainText,
    /// What is wrong.
    pub kind: AlertKind,
    /// Suspect, firing or resolved.
    pub state: AlertState,
    /// Where it is: one pair, or what several pairs have in common.
    pub cause: AlertCause,
    /// When the first of its bad tests ended; of silence, when the last result came.
    pub since: UnixMillis,
    /// When it began to fire; absent = it did not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fired: Option<UnixMillis>,
    /// When it ended; absent = it has not. One that ended without having fired was a suspicion that tests did not confirm.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<UnixMillis>,
    /// The alert that has its pairs now, where they turned out to have one cause; absent = it ended otherwise, or has not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub merged_into: Option<AlertId>,
    /// Who said that its new level is right, which ended it; absent = nobody did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub accepted: Option<Acceptance>,
    /// When anything of it changed last.
    pub changed: UnixMillis,
    /// What limits its tests; absent = no finding says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub finding: Option<AlertFinding>,
    /// What changed on its hosts between the last good test and the first bad one, the latest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub host_changes: Vec<HostChange>,
    /// The pairs that are slow, fail or are silent, and those of them that recovered; the first to be so first.
    pub pairs: Vec<AlertPair>,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertKind {
    /// Goodput is below what is expected.
    Slow,
    /// Tests fail.
    Failing,
    /// No test has had a result for 2.5 periods.
    Silent,
    /// Goodput is lower than it was for long, though not below what is expected.
    Changed,
}

impl AlertKind {
    /// Whether tests have results, whose rate is too low.
    pub const fn is_of_rate(self) -> bool {
        matches!(self, Self::Slow | Self::Changed)
    }
}

/// Somebody said that what the pairs of an alert show now is what they should show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    /// When.
    pub at: UnixMillis,
    /// Who: a user, or a name that somebody gave where the hub has no users.
    pub by: PlainText,
}

impl AlertPair {
    /// Whether it fires only because it showed more before: another level could be the right one now.
    pub fn is_below_its_past(&self) -> bool {
        let past = |compared: &Compared| compared.floor_of == FloorOf::Baseline;
        self.kind.is_of_rate()
            && self.state == AlertState::Firing
            && self.compared.as_ref().is_some_and(past)
    }
}

impl Alert {
    /// Its pairs that are not over; of an alert that is over, all of them.
    pub fn current_pairs(&self) -> Vec<&AlertPair> {
        let open = |pair: &&AlertPair| pair.state != AlertState::Resolved;
        let pairs: Vec<&AlertPair> = self.pairs.iter().filter(open).collect();
        if pairs.is_empty() {
            self.pairs.iter().collect()
        } else {
            pairs
        }
    }
}

impl AlertKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Slow, Self::Failing, Self::Silent, Self::Changed];

    /// Its word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Failing => "failing",
            Self::Silent => "silent",
            Self::Changed => "changed",
        }
    }
}

/// How far an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertState {
    /// A test was bad, and confirming tests are due. Nobody is notified.
    Suspect,
    /// Confirmed.
    Firing,
    /// Over, or never confirmed.
    Resolved,
}

impl AlertState {
    /// Its word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Suspect => "suspect",
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}

/// Where the fault is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AlertCause {
    /// What kind of thing it is.
    pub kind: MeshCauseKind,
    /// Its name for people: `node17`, `node17 > node20`, `rack2`.
    pub name: PlainText,
    /// Which of its data is meant.
    pub direction: MeshDirection,
    /// The hosts that it is about; of a pair or a trunk the senders.
    pub from: Vec<PlainText>,
    /// Of a pair or a trunk the receivers; else empty.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub to: Vec<PlainText>,
    /// What its hosts have and the others do not: `kernel 5.14.0-503`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub in_common: Vec<PlainText>,
}

/// One pair of an alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlertPair {
    /// The sending host.
    pub from: PlainText,
    /// The receiving host.
    pub to: PlainText,
    /// What is wrong with this pair.
    pub kind: AlertKind,
    /// How far it is; a pair may recover while others of the same cause have not.
    pub state: AlertState,
    /// When its first bad test ended; of silence, when its last result came.
    pub since: UnixMillis,
    /// The latest test that showed less than is expected, and what it was compared with; absent = none did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compared: Option<Compared>,
    /// Why its latest failed test failed, or its latest due test did not run; absent = none did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<AlertFailure>,
    /// Tests in a row that passed after that; two end it.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub passes: u32,
    /// The tests that decide, regular and confirming ones, the latest first; at most 8.
    pub runs: Vec<AlertRun>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// A measured rate and what it was compared with; rates are bit/s of payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What was measured.
    pub goodput_bps: f64,
    /// When that test ended; absent = an older program wrote this.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended: Option<UnixMillis>,
    /// The 95 % interval of it; absent = not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval_bps: Option<(f64, f64)>,
    /// The least that is expected.
    pub floor_bps: f64,
    /// What the floor follows from.
    pub floor_of: FloorOf,
    /// The median of the pair's own tests before; absent = there were too few.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub baseline_bps: Option<f64>,
    /// The slower one of both hosts' links by the plan; absent = the plan has neither.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link_bps: Option<f64>,
}

/// What a floor follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FloorOf {
    /// The plan says the rate.
    Given,
    /// Rate of the sender's link.
    SenderLink,
    /// Rate of the receiver's link.
    ReceiverLink,
    /// Capacity of a segment that the test passes.
    Segment,
    /// The rate that the test is paced to.
    Paced,
    /// What the hosts' settings and the path allow.
    Settings,
    /// The pair's own earlier tests.
    Baseline,
}

/// Why a test has no figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertFailure {
    /// What was being done; empty for a test that did not begin.
    pub stage: PlainText,
    /// Why it failed, or did not begin.
    pub why: PlainText,
}

/// A test that an alert rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AlertRun {
    /// Which.
    pub id: RunId,
    /// Whether it was regular, a confirmation or asked for.
    pub class: RunClass,
    /// When it ended.
    pub ended: UnixMillis,
    /// What it shows.
    pub shows: RunShows,
    /// Payload at the receiving application, bit/s; absent = it measured nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub goodput_bps: Option<f64>,
}

/// What a test shows of what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunShows {
    /// The whole interval is at or above the floor, or it was measured and nothing is expected.
    Pass,
    /// The whole interval is below the floor.
    Fail,
    /// The interval has the floor in it, or the test does not count.
    Inconclusive,
    /// It failed.
    Failed,
}

/// What limits, and what would change it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlertFinding {
    /// The rule's stable name, such as `receive-window`.
    pub id: String,
    /// What it says of the latest bad test.
    pub sentence: PlainText,
    /// What to change; absent = the rule advises no setting.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub remedy: Option<Remedy>,
    /// The name of the host that needs the remedy; absent = there is no remedy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<PlainText>,
    /// The page that explains it, a path in the project; empty = there is none.
    #[serde(skip_serializing_if = "str::is_empty", default)]
    pub page: PlainText,
    /// What its counter-test showed; absent = none has run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub counter_test: Option<AlertCounterTest>,
    /// Bad tests that have it, of all bad tests of the alert.
    pub votes: (usize, usize),
}

/// What the counter-test of a finding showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlertCounterTest {
    /// When it ended.
    pub ended: UnixMillis,
    /// Confirmed, refuted or undecided.
    pub verdict: counter_test::Verdict,
    /// In words, as [`counter_test::Tested`] has it.
    pub sentence: PlainText,
}

/// A fact of a host that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostChange {
    /// Which host.
    pub host: PlainText,
    /// What changed: `kernel`, `net.ipv4.tcp_rmem`, `eth0 mtu`.
    pub fact: PlainText,
    /// What it was; absent = there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<PlainText>,
    /// What it is; absent = it is gone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<PlainText>,
    /// When it was last seen as it was.
    pub last_before: UnixMillis,
    /// When it was first seen as it is.
    pub first_after: UnixMillis,
}

/// A time in which alerts that match are not sent. They stay visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Its number, unique in an archive.
    pub id: u64,
    /// What an alert has to match, all of it; a silence without matchers matches nothing.
    pub matchers: Vec<Matcher>,
    /// From when on.
    pub since: UnixMillis,
    /// Until when; this moment is no longer in it.
    pub until: UnixMillis,
    /// Who made it.
    pub by: PlainText,
    /// Why.
    pub why: PlainText,
}

/// One condition of a [`Silence`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matcher {
    /// What is looked at.
    pub of: MatcherOf,
    /// Its value; `*` stands for any text, such as `node1*`. Case counts.
    pub pattern: PlainText,
}

/// What a [`Matcher`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatcherOf {
    /// The id of the alert.
    Alert,
    /// The task.
    Task,
    /// The word of the kind.
    Kind,
    /// The id of the finding.
    Finding,
    /// The sending or the receiving host of each pair.
    Host,
    /// The sending host of each pair.
    From,
    /// The receiving host of each pair.
    To,
}

impl Silence {
    /// Whether it mutes the alert at this moment: each pair of the alert that is not resolved has to match.
    pub fn covers(&self, alert: &Alert, now: UnixMillis) -> bool {
        (self.since..self.until).contains(&now)
            && !self.matchers.is_empty()
            && alert.current_pairs().into_iter().all(|pair| {
                self.matchers
                    .iter()
                    .all(|matcher| matcher.matches(alert, pair))
            })
    }
}

impl Matcher {
    /// Whether an alert matches, by one of its pairs.
    fn matches(&self, alert: &Alert, pair: &AlertPair) -> bool {
        let is = |text: &str| is_like(&self.pattern, text);
        match self.of {
            MatcherOf::Alert => is(&alert.id.to_string()),
            MatcherOf::Task => is(&alert.task),
            MatcherOf::Kind => is(pair.kind.word()),
            MatcherOf::Finding => alert
                .finding
                .as_ref()
                .is_some_and(|finding| is(&finding.id)),
            MatcherOf::Host => is(&pair.from) || is(&pair.to),
            MatcherOf::From => is(&pair.from),
            MatcherOf::To => is(&pair.to),
        }
    }
}

/// Whether the text is like the pattern, whose `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else {
            return false;
        };
        text = &text[at + part.len()..];
    }
    text.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert() -> Alert {
        let since = UnixMillis(1_764_038_400_000);
        let pair = |from: &str, to: &str| AlertPair {
            from: from.into(),
            to: to.into(),
            kind: AlertKind::Slow,
            state: AlertState::Firing,
            since,
            compared: Some(Compared {
                goodput_bps: 4.1e9,
                ended: Some(since),
                interval_bps: Some((4.0e9, 4.2e9)),
                floor_bps: 8.4e9,
                floor_of: FloorOf::Baseline,
                baseline_bps: Some(9.4e9),
                link_bps: Some(1e10),
            }),
            failure: None,
            passes: 0,
            runs: Vec::new(),
        };
        Alert {
            id: AlertId::of(since, 7),
            task: "uplink".into(),
            kind: AlertKind::Slow,
            state: AlertState::Firing,
            cause: AlertCause {
                kind: MeshCauseKind::HostOut,
                name: "node1".into(),
                direction: MeshDirection::Out,
                from: vec!["node1".into()],
                to: Vec::new(),
                in_common: Vec::new(),
            },
            since,
            fired: Some(since.plus_millis(600_000)),
            until: None,
            merged_into: None,
            accepted: None,
            changed: since.plus_millis(600_000),
            finding: Some(AlertFinding {
                id: "receive-window".to_owned(),
                sentence: "evil\u{1b}[2Jname".into(),
                remedy: None,
                host: None,
                page: PlainText::default(),
                counter_test: None,
                votes: (3, 3),
            }),
            host_changes: Vec::new(),
            pairs: vec![pair("node1", "node2"), pair("node1", "node3")],
        }
    }

    fn silence(of: MatcherOf, pattern: &str) -> Silence {
        Silence {
            id: 1,
            matchers: vec![Matcher {
                of,
                pattern: pattern.into(),
            }],
            since: UnixMillis(10),
            until: UnixMillis(20),
            by: "ops".into(),
            why: "cable".into(),
        }
    }

    #[test]
    fn json_gives_the_same_alert_and_foreign_text_stays_text() {
        let alert = alert();
        let text = serde_json::to_string(&alert).unwrap();
        assert!(
            !text.contains('\u{1b}') && text.contains("\"host-out\""),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Alert>(&text).unwrap(), alert);
        assert_eq!(alert.id.to_string().parse(), Ok(alert.id));
    }

    #[test]
    fn a_silence_covers_what_each_pair_matches_while_it_lasts() {
        let mut alert = alert();
        let covers =
            |alert: &Alert, of, pattern: &str| silence(of, pattern).covers(alert, UnixMillis(10));
        assert!(covers(&alert, MatcherOf::Host, "node1"));
        assert!(covers(&alert, MatcherOf::To, "node*"));
        assert!(covers(&alert, MatcherOf::Finding, "receive-window"));
        assert!(covers(&alert, MatcherOf::Alert, &alert.id.to_string()));
        assert!(
            !covers(&alert, MatcherOf::Host, "node2"),
            "the other pair is loud"
        );
        assert!(!silence(MatcherOf::Task, "uplink").covers(&alert, UnixMillis(20)));
        let empty = Silence {
            matchers: Vec::new(),
            ..silence(MatcherOf::Task, "")
        };
        assert!(!empty.covers(&alert, UnixMillis(10)));
        alert.pairs[1].state = AlertState::Resolved;
        assert!(covers(&alert, MatcherOf::Host, "node2"));
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, like) in [
            ("node*", "node1", true),
            ("*", "", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "ac", false),
            ("a*a", "a", false),
            ("a", "ab", false),
            ("*b*", "abc", true),
        ] {
            assert_eq!(is_like(pattern, text), like, "{pattern} {text}");
        }
    }

    #[test]
    fn words_of_kinds_and_states_are_those_of_json() {
        for kind in AlertKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
        for state in [
            AlertState::Suspect,
            AlertState::Firing,
            AlertState::Resolved,
        ] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
    }
}
