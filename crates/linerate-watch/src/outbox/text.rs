//! Alerts as people read them: what is broken, since when, what limits, what to set, whether a counter-test agreed.

use std::fmt::Write as _;

use linerate_model::alert::{
    Alert, AlertFinding, AlertKind, AlertPair, AlertState, Compared, FloorOf, HostChange,
};
use linerate_model::counter_test::Verdict;
use linerate_model::mesh::{MeshCauseKind, MeshDirection};
use linerate_model::units::BitRate;
use linerate_model::watch::UnixMillis;

use crate::expectation::whole;

/// Pairs that are listed.
const LISTED: usize = 20;

/// One line: `FIRING: node1 > node2 is slow: 4.10 Gbit/s, at least 8.46 Gbit/s expected by its earlier tests (uplink)`.
pub fn subject(alert: &Alert) -> String {
    let state = match alert.state {
        AlertState::Suspect => "SUSPECT",
        AlertState::Firing => "FIRING",
        AlertState::Resolved => "RESOLVED",
    };
    format!("{state}: {} ({})", what(alert), alert.task)
}

/// Several lines of plain text.
pub fn body(alert: &Alert) -> String {
    let mut text = format!("{}.\nSince {}", what(alert), moment(alert.since));
    if let Some(fired) = alert.fired {
        let _ = write!(text, ", confirmed {}", moment(fired));
    }
    match (alert.until, alert.merged_into) {
        (Some(until), None) => drop(write!(text, ", ended {}", moment(until))),
        (_, Some(into)) => drop(write!(text, "; alert {into} has its pairs now")),
        (None, None) => {}
    }
    text.push_str(".\n");
    if let Some(finding) = &alert.finding {
        text.push_str(&of_finding(finding));
    }
    for change in &alert.host_changes {
        let _ = writeln!(text, "Changed in the meantime: {}.", of_change(change));
    }
    text.push_str("\nPairs:\n");
    for pair in alert.pairs.iter().take(LISTED) {
        let _ = writeln!(text, "  {}", of_pair(pair));
    }
    if alert.pairs.len() > LISTED {
        let _ = writeln!(text, "  and {} more", alert.pairs.len() - LISTED);
    }
    let _ = writeln!(text, "\nTask {}, alert {}", alert.task, alert.id);
    text
}

/// What is broken, in a clause.
fn what(alert: &Alert) -> String {
    let cause = &alert.cause;
    let place = match (cause.kind, cause.direction) {
        (MeshCauseKind::Pair | MeshCauseKind::Port | MeshCauseKind::Trunk, _)
        | (_, MeshDirection::Both) => cause.name.to_string(),
        (_, MeshDirection::Out) => format!("data from {}", cause.name),
        (_, MeshDirection::In) => format!("data to {}", cause.name),
    };
    let is = match alert.kind {
        AlertKind::Slow => "is slow",
        AlertKind::Failing => "fails",
        AlertKind::Silent => "has had no result for 2.5 periods",
        AlertKind::Changed => "is slower than it was",
    };
    match alert.pairs.as_slice() {
        [pair] => match detail(pair) {
            Some(detail) => format!("{place} {is}: {detail}"),
            None => format!("{place} {is}"),
        },
        pairs => format!("{place} {is}: {} pairs", pairs.len()),
    }
}

/// What the latest test of a pair showed.
fn detail(pair: &AlertPair) -> Option<String> {
    if let Some(failure) = &pair.failure {
        let stage = &failure.stage;
        return Some(if stage.is_empty() {
            failure.why.to_string()
        } else {
            format!("{stage}: {}", failure.why)
        });
    }
    let compared = pair
        .compared
        .as_ref()
        .filter(|_| pair.kind != AlertKind::Failing)?;
    Some(of_rates(compared))
}

fn of_rates(compared: &Compared) -> String {
    let rate = |bps: f64| BitRate(whole(bps));
    let of = match compared.floor_of {
        FloorOf::Given => "as the plan says",
        FloorOf::SenderLink => "by the sender's link",
        FloorOf::ReceiverLink => "by the receiver's link",
        FloorOf::Segment => "by the segment's capacity",
        FloorOf::Paced => "by its pacing",
        FloorOf::Settings => "by the hosts' settings",
        FloorOf::Baseline => "by its earlier tests",
    };
    format!(
        "{}, at least {} expected {of}",
        rate(compared.goodput_bps),
        rate(compared.floor_bps)
    )
}

fn of_finding(finding: &AlertFinding) -> String {
    let sentence = finding.sentence.trim_end_matches('.');
    let mut text = match finding.votes {
        (votes, pairs) if pairs > 1 => {
            format!("What limits ({votes} of {pairs} pairs): {sentence}.\n")
        }
        _ => format!("What limits: {sentence}.\n"),
    };
    if let Some(remedy) = &finding.remedy {
        let on = finding
            .host
            .as_ref()
            .map(|host| format!(" on {host}"))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "To do{on}: set {} to {}.",
            remedy.fix.setting(),
            remedy.fix.value()
        );
    }
    text.push_str(
        match finding.counter_test.as_ref().map(|test| test.verdict) {
            None => "No counter-test has run yet.\n",
            Some(Verdict::Confirmed) => "A counter-test agreed.\n",
            Some(Verdict::Refuted) => "A counter-test disagreed: look for another cause.\n",
            Some(Verdict::Undecided) => "A counter-test did not decide.\n",
        },
    );
    if let Some(test) = &finding.counter_test {
        let _ = writeln!(text, "  {}", test.sentence);
    }
    text
}

fn of_change(change: &HostChange) -> String {
    let (host, fact) = (&change.host, &change.fact);
    let seen = moment(change.first_after);
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => format!("{fact} {before} -> {after} on {host}, seen {seen}"),
        (None, Some(after)) => format!("{fact} {after} is new on {host}, seen {seen}"),
        (before, None) => {
            let before = before.as_ref().map_or("", |before| before);
            format!("{fact} {before} is gone from {host}, seen {seen}")
        }
    }
}

fn of_pair(pair: &AlertPair) -> String {
    let state = pair.state.word();
    let detail = detail(pair)
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    format!(
        "{} > {}, {}, {state}{detail}",
        pair.from,
        pair.to,
        pair.kind.word()
    )
}

/// `2026-11-25 03:33 UTC`.
fn moment(at: UnixMillis) -> String {
    let text = rfc3339(at);
    format!("{} {} UTC", &text[..10], &text[11..16])
}

/// `2026-11-25T03:33:41.000Z`; what is later than the year 9999 is its end.
pub(super) fn rfc3339(at: UnixMillis) -> String {
    let millis = at.0.min(253_402_300_799_999);
    let (days, of_day) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Year, month and day of a number of days since 1970-01-01, counted in eras of 400 years that begin on the first of March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (year + era * 400 + u64::from(month <= 2), month, day)
}
