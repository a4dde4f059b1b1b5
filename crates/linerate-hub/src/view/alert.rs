//! An alert in words: what is broken, since when, why, what to do.

use linerate_model::alert::{
    Alert, AlertFinding, AlertKind, AlertPair, AlertState, Compared, FloorOf, HostChange, Silence,
};
use linerate_model::counter_test::Verdict;
use linerate_model::mesh::MeshDirection;
use linerate_model::plain_text::PlainText;
use linerate_model::units::{BitRate, whole};
use linerate_model::watch::UnixMillis;
use linerate_watch::alert::PASSES_THAT_END;
use serde::Serialize;

use crate::moment::minute;
use crate::shared::Shared;
use crate::store::StoreError;

/// The finding of a path that carries all it can.
const PATH_FULL: &str = "path-full";
/// A link of which a path carries this share carries what it should.
const NEARLY: f64 = 0.9;

/// An alert with the words for it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AlertView {
    /// What is broken, in a few words.
    pub(crate) title: String,
    /// Why, as far as tests say.
    pub(crate) why: Vec<String>,
    /// What to do: sentences, of which those in backquotes are commands.
    pub(crate) what_to_do: Vec<String>,
    /// The silence that mutes it: until when, who and why; null = none does.
    pub(crate) silenced: Option<String>,
    /// The alert itself.
    #[serde(flatten)]
    pub(crate) alert: Alert,
}

impl AlertView {
    pub(crate) fn of(alert: &Alert, silences: &[Silence], now: UnixMillis) -> Self {
        let silence = silences.iter().find(|silence| silence.covers(alert, now));
        Self {
            title: title(alert),
            why: why(alert),
            what_to_do: what_to_do(alert),
            silenced: silence.map(|silence| {
                let until = minute(silence.until);
                format!("until {until} by {}: {}", silence.by, silence.why)
            }),
            alert: alert.clone(),
        }
    }

    /// Those that are not resolved: what fires first, then what began first.
    pub(crate) fn open(alerts: &[Alert], silences: &[Silence], now: UnixMillis) -> Vec<Self> {
        let open = |alert: &&Alert| alert.state != AlertState::Resolved;
        let mut views: Vec<Self> = alerts
            .iter()
            .filter(open)
            .map(|alert| Self::of(alert, silences, now))
            .collect();
        views.sort_by_key(|view| {
            let firing = view.alert.state == AlertState::Firing;
            (!firing, view.silenced.is_some(), view.alert.since)
        });
        views
    }

    /// All of a time, open ones first.
    pub(crate) fn all(shared: &Shared, since: UnixMillis) -> Result<Vec<Self>, StoreError> {
        let now = shared.now();
        let alerts = shared.store().alerts(since)?;
        let silences = shared.store().silences(now)?;
        let mut views = Self::open(&alerts, &silences, now);
        let over = |alert: &&Alert| alert.state == AlertState::Resolved;
        let over = alerts.iter().filter(over);
        views.extend(over.map(|alert| Self::of(alert, &silences, now)));
        Ok(views)
    }
}

fn title(alert: &Alert) -> String {
    let name = alert.cause.name.replace(" > ", " → ");
    let what = match (alert.kind, alert.cause.direction) {
        (AlertKind::Slow, MeshDirection::Out) => "sends slowly",
        (AlertKind::Slow, MeshDirection::In) => "receives slowly",
        (AlertKind::Slow, _) => "is slow",
        (AlertKind::Failing, _) => "fails",
        (AlertKind::Silent, _) => "has no results",
        (AlertKind::Changed, _) => "is slower than before",
    };
    let open = |pair: &&AlertPair| pair.state != AlertState::Resolved;
    let (open, all) = (alert.pairs.iter().filter(open).count(), alert.pairs.len());
    match (alert.state, all) {
        (_, 0 | 1) => format!("{name} {what}"),
        (AlertState::Resolved, _) => format!("{name} {what}: {all} pairs"),
        _ if open == all => format!("{name} {what}: {all} pairs"),
        _ => format!("{name} {what}: {open} of {all} pairs"),
    }
}

fn why(alert: &Alert) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(finding) = &alert.finding {
        said.push(finding.sentence.to_string());
        said.extend(votes(finding));
    }
    said.extend(alert.host_changes.iter().take(3).map(seen));
    let pairs = alert.current_pairs().into_iter();
    let worst = pairs.filter_map(|pair| pair.compared.as_ref().map(|c| (pair, c)));
    let worst = worst.min_by(|a, b| {
        (a.1.goodput_bps / a.1.floor_bps).total_cmp(&(b.1.goodput_bps / b.1.floor_bps))
    });
    if let Some((pair, compared)) = worst.filter(|_| alert.kind.is_of_rate()) {
        said.push(format!(
            "{} → {}: {}",
            pair.from,
            pair.to,
            comparison(compared)
        ));
        said.extend(good_again(pair));
    }
    let mut reasons: Vec<String> = Vec::new();
    for pair in &alert.pairs {
        if let Some(failure) = &pair.failure {
            let reason = if failure.stage.is_empty() {
                failure.why.to_string()
            } else {
                format!("{}: {}", failure.stage, failure.why)
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    said.extend(reasons.into_iter().take(3));
    if let Some(common) = in_common(&alert.cause.in_common) {
        said.push(common);
    }
    if said.is_empty() {
        said.push(match alert.state {
            AlertState::Resolved => "No finding named a cause.".to_owned(),
            _ => "No finding names a cause yet.".to_owned(),
        });
    }
    said
}

/// `The latest test showed 92.8 Mbit/s, as expected; 1 of 2 such tests in a row that end the alert.`
fn good_again(pair: &AlertPair) -> Option<String> {
    let latest = pair.runs.first()?.goodput_bps?;
    (pair.passes > 0 && pair.state != AlertState::Resolved).then(|| {
        format!(
            "The latest test showed {}, as expected; {} of {PASSES_THAT_END} such tests in a row that end the alert.",
            rate(latest),
            pair.passes
        )
    })
}

fn votes(finding: &AlertFinding) -> Option<String> {
    let (of, all) = finding.votes;
    let tests = (all > 1).then(|| format!("{of} of {all} bad tests have this finding"));
    let counter = finding
        .counter_test
        .as_ref()
        .map(|test| match test.verdict {
            Verdict::Confirmed => format!("a counter-test confirmed it: {}", test.sentence),
            Verdict::Refuted => format!("a counter-test refuted it: {}", test.sentence),
            Verdict::Undecided => format!("a counter-test did not decide: {}", test.sentence),
        });
    let said: Vec<String> = tests.into_iter().chain(counter).collect();
    let mut said = said.join("; ");
    if let Some(first) = said.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    (!said.is_empty()).then(|| format!("{}.", said.trim_end_matches('.')))
}

fn in_common(common: &[PlainText]) -> Option<String> {
    let common: Vec<&str> = common.iter().map(|fact| &**fact).collect();
    (!common.is_empty()).then(|| format!("Only its hosts have {}.", common.join(", ")))
}

/// `4.10 Gbit/s at 2026-11-25 03:40 UTC, expected at least 8.40 Gbit/s by the plan; 9.40 Gbit/s is usual.`
pub(crate) fn comparison(compared: &Compared) -> String {
    let floor = match compared.floor_of {
        FloorOf::Given => "the plan",
        FloorOf::SenderLink => "the sender's link",
        FloorOf::ReceiverLink => "the receiver's link",
        FloorOf::Segment => "a segment's capacity",
        FloorOf::Paced => "the paced rate",
        FloorOf::Settings => "the hosts' settings",
        FloorOf::Baseline => "its own earlier tests",
    };
    let before = compared
        .baseline_bps
        .map_or_else(String::new, |bps| format!("; {} is usual", rate(bps)));
    let at = compared
        .ended
        .map_or_else(String::new, |at| format!(" at {}", minute(at)));
    format!(
        "{}{at}, expected at least {} by {floor}{before}.",
        rate(compared.goodput_bps),
        rate(compared.floor_bps)
    )
}

/// `On b, kernel changed from 5.14 to 6.1.`
pub(crate) fn change(change: &HostChange) -> String {
    format!("On {}, {}.", change.host, changed(change))
}

/// What changed, where it is clear on which host: `kernel changed from 5.14 to 6.1`.
pub(crate) fn changed(change: &HostChange) -> String {
    let fact = &change.fact;
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => format!("{fact} changed from {before} to {after}"),
        (None, Some(after)) => format!("{fact} is new: {after}"),
        (Some(before), None) => format!("{fact} is gone; it was {before}"),
        (None, None) => format!("{fact} changed"),
    }
}

/// A change with the moment when it was first seen.
fn seen(one: &HostChange) -> String {
    let when = minute(one.first_after);
    format!("On {}, {} (seen {when}).", one.host, changed(one))
}

fn what_to_do(alert: &Alert) -> Vec<String> {
    let mut steps = Vec::new();
    if let Some(finding) = &alert.finding
        && let Some(remedy) = &finding.remedy
    {
        let (setting, value) = (remedy.fix.setting(), remedy.fix.value());
        steps.push(match (&finding.host, remedy.fix.is_option()) {
            (_, true) => format!("Test with `{setting} {value}`."),
            (Some(host), false) => format!("On {host}, set `{setting}` to `{value}`."),
            (None, false) => format!("Set `{setting}` to `{value}`."),
        });
    }
    let Some(pair) = alert.pairs.first() else {
        return steps;
    };
    if alert.kind.is_of_rate() {
        steps.extend(path_is_full(alert));
    }
    let ends = format!("{} {}", word(&pair.from), word(&pair.to));
    match alert.kind {
        AlertKind::Failing | AlertKind::Silent => {
            steps.push(format!(
                "See what stood in the way: `linerate watch why {ends}`"
            ));
        }
        _ if steps.is_empty() => {
            steps.push(format!(
                "Compare both hosts with what is advised: `linerate host audit --on {},{}`",
                word(&pair.from),
                word(&pair.to)
            ));
        }
        _ => {}
    }
    steps
}

/// A path that carries less than expected needs its operator, not another setting of a host.
fn path_is_full(alert: &Alert) -> Option<String> {
    let finding = alert.finding.as_ref()?;
    let verdict = finding.counter_test.as_ref().map(|test| test.verdict);
    if finding.id != PATH_FULL || verdict == Some(Verdict::Refuted) {
        return None;
    }
    let open = |pair: &&AlertPair| pair.state != AlertState::Resolved;
    let mut pairs = alert.pairs.iter().filter(open);
    let compared = pairs.find_map(|pair| pair.compared.as_ref())?;
    let carries = rate(compared.goodput_bps);
    let link = compared
        .link_bps
        .filter(|link| compared.goodput_bps < NEARLY * link);
    let cause = &alert.cause;
    let place = match (cause.to.first(), cause.direction) {
        (Some(to), _) if cause.from.len() == 1 && cause.to.len() == 1 => {
            format!("on the way from {} to {to}", cause.from[0])
        }
        (Some(_), _) => format!("of {}", cause.name),
        (None, MeshDirection::Out) => format!("on the way out of {}", cause.name),
        (None, MeshDirection::In) => format!("on the way into {}", cause.name),
        (None, MeshDirection::Both) => format!("next to {}", cause.name),
    };
    Some(match link {
        Some(link) => format!(
            "The path carries only {carries} of the {} that the plan has as link: check the port, shaper or policer {place}.",
            rate(link)
        ),
        None => format!(
            "The path carries only {carries}: ask who runs it about the bottleneck {place}."
        ),
    })
}

/// A host's name as a word of a shell's command line.
fn word(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:@/+,".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}

/// `4.10 Gbit/s`.
pub(crate) fn rate(bps: f64) -> String {
    BitRate(whole(bps)).to_string()
}

#[cfg(test)]
mod tests {
    use linerate_model::alert::{AlertCause, AlertId, AlertRun, RunShows};
    use linerate_model::mesh::MeshCauseKind;
    use linerate_model::watch::{RunClass, RunId};

    use super::*;

    fn slow(finding: Option<&str>, link_bps: Option<f64>, passes: u32) -> Alert {
        let at = UnixMillis(1_795_578_012_345);
        let pair = AlertPair {
            from: "node2".into(),
            to: "node1".into(),
            kind: AlertKind::Slow,
            state: AlertState::Firing,
            since: at,
            compared: Some(Compared {
                goodput_bps: 18.8e6,
                ended: Some(at),
                interval_bps: None,
                floor_bps: 80e6,
                floor_of: FloorOf::Given,
                baseline_bps: Some(94e6),
                link_bps,
            }),
            failure: None,
            passes,
            runs: vec![AlertRun {
                id: RunId::of(at, 1),
                class: RunClass::Confirm,
                ended: at,
                shows: RunShows::Pass,
                goodput_bps: Some(92.8e6),
            }],
        };
        Alert {
            id: AlertId::of(at, 1),
            task: "all".into(),
            kind: AlertKind::Slow,
            state: AlertState::Firing,
            cause: AlertCause {
                kind: MeshCauseKind::Pair,
                name: "node2 > node1".into(),
                direction: MeshDirection::Out,
                from: vec!["node2".into()],
                to: vec!["node1".into()],
                in_common: Vec::new(),
            },
            since: at,
            fired: Some(at),
            until: None,
            merged_into: None,
            accepted: None,
            changed: at,
            finding: finding.map(|id| AlertFinding {
                id: id.to_owned(),
                sentence: "The path is full at 18.8 Mbit/s.".into(),
                remedy: None,
                host: None,
                page: PlainText::default(),
                counter_test: None,
                votes: (1, 1),
            }),
            host_changes: Vec::new(),
            pairs: vec![pair],
        }
    }

    #[test]
    fn figures_are_those_of_the_bad_test_and_a_good_one_is_named_as_such() {
        let words = why(&slow(None, None, 1));
        assert_eq!(
            words,
            [
                "node2 → node1: 18.8 Mbit/s at 2026-11-25 03:40 UTC, expected at least 80.0 Mbit/s by the plan; 94.0 Mbit/s is usual.",
                "The latest test showed 92.8 Mbit/s, as expected; 1 of 2 such tests in a row that end the alert.",
            ]
        );
        assert_eq!(why(&slow(None, None, 0)).len(), 1);
    }

    #[test]
    fn remedies_are_commands_that_exist_and_a_full_path_is_not_the_hosts() {
        assert_eq!(
            what_to_do(&slow(None, None, 0)),
            ["Compare both hosts with what is advised: `linerate host audit --on node2,node1`"]
        );
        assert_eq!(
            what_to_do(&slow(Some("path-full"), Some(100e6), 0)),
            [
                "The path carries only 18.8 Mbit/s of the 100 Mbit/s that the plan has as link: check the port, shaper or policer on the way from node2 to node1."
            ]
        );
        assert_eq!(
            what_to_do(&slow(Some("path-full"), None, 0)),
            [
                "The path carries only 18.8 Mbit/s: ask who runs it about the bottleneck on the way from node2 to node1."
            ]
        );
    }
}
