//! An alert in words: what is broken, since when, why, what to do.

use linerate_model::alert::{
    Alert, AlertFinding, AlertKind, AlertPair, AlertState, Compared, FloorOf, HostChange, Silence,
};
use linerate_model::counter_test::Verdict;
use linerate_model::mesh::MeshDirection;
use linerate_model::plain_text::PlainText;
use linerate_model::units::{BitRate, whole};
use linerate_model::watch::UnixMillis;
use serde::Serialize;

use crate::moment;
use crate::shared::Shared;
use crate::store::StoreError;

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
                let until = crate::moment::minute(silence.until);
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
    let worst = alert
        .pairs
        .iter()
        .filter_map(|pair| pair.compared.as_ref().map(|c| (pair, c)));
    let worst = worst.min_by(|a, b| {
        (a.1.goodput_bps / a.1.floor_bps).total_cmp(&(b.1.goodput_bps / b.1.floor_bps))
    });
    if let Some((pair, compared)) =
        worst.filter(|_| matches!(alert.kind, AlertKind::Slow | AlertKind::Changed))
    {
        said.push(format!(
            "{} → {}: {}",
            pair.from,
            pair.to,
            comparison(compared)
        ));
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
        said.push("No finding names a cause yet.".to_owned());
    }
    said
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

/// `4.10 Gbit/s, expected at least 8.40 Gbit/s (90 % of its baseline …)`.
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
        .map_or_else(String::new, |bps| format!("; before {}", rate(bps)));
    format!(
        "{}, expected at least {} by {floor}{before}.",
        rate(compared.goodput_bps),
        rate(compared.floor_bps)
    )
}

/// `On b, kernel changed from 5.14 to 6.1.`
pub(crate) fn change(change: &HostChange) -> String {
    let HostChange {
        host,
        fact,
        before,
        after,
        ..
    } = change;
    match (before, after) {
        (Some(before), Some(after)) => {
            format!("On {host}, {fact} changed from {before} to {after}.")
        }
        (None, Some(after)) => format!("On {host}, {fact} is new: {after}."),
        (Some(before), None) => format!("On {host}, {fact} is gone; it was {before}."),
        (None, None) => format!("On {host}, {fact} changed."),
    }
}

/// A change with the moment when it was first seen.
fn seen(one: &HostChange) -> String {
    let sentence = change(one);
    let when = moment::minute(one.first_after);
    format!("{} (seen {when}).", sentence.trim_end_matches('.'))
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
