//! An audit as text.

use std::collections::BTreeMap;

use linerate_model::audit::{Audit, Change, Outcome, ToPeer, Verdict};

use crate::text::layout::Page;
use crate::words::plain;

/// Where the text of a verdict begins.
const HEAD: usize = 15;

/// The audit for people: what is not as it should be with what to set, then what cannot be known; with `all` also
/// what holds and what does not apply.
pub fn report(audit: &Audit, all: bool) -> String {
    let mut page = Page::default();
    page.line(&format!("linerate host audit: {}", plain(&audit.host)));
    page.entry("Task", &task(audit));
    let judged = if audit.interfaces.is_empty() {
        "none".to_owned()
    } else {
        audit.interfaces.join(", ")
    };
    page.entry("Interfaces", &plain(&judged));
    if let Some(found) = &audit.target.measured {
        page.entry("Peer", &plain(&peer(found)));
        for remark in &found.remarks {
            page.entry("", &plain(remark));
        }
    }
    page.gap();
    let mut firing = 0;
    for verdict in &audit.verdicts {
        if let Outcome::Fires { .. } = verdict.outcome {
            fires(&mut page, verdict);
            firing += 1;
        }
    }
    if firing == 0 {
        page.line("Nothing is to be complained of.");
    }
    by_reason(
        &mut page,
        audit,
        "Cannot be known",
        |outcome| match outcome {
            Outcome::CannotKnow { why } => Some(why),
            _ => None,
        },
    );
    let holds = count(audit, |outcome| matches!(outcome, Outcome::Holds { .. }));
    let apart = count(audit, |outcome| {
        matches!(outcome, Outcome::DoesNotApply { .. })
    });
    let unknown = count(audit, |outcome| {
        matches!(outcome, Outcome::CannotKnow { .. })
    });
    if all {
        list(
            &mut page,
            audit,
            "As it should be",
            |outcome| match outcome {
                Outcome::Holds { read } => Some(read),
                _ => None,
            },
        );
        list(
            &mut page,
            audit,
            "Not applicable",
            |outcome| match outcome {
                Outcome::DoesNotApply { why } => Some(why),
                _ => None,
            },
        );
    }
    page.gap();
    page.line(&format!(
        "{firing} to look at, {unknown} unknown, {holds} passed, {apart} not applicable{}",
        if all { "" } else { " (--all lists them)" }
    ));
    page.finish()
}

fn task(audit: &Audit) -> String {
    let target = &audit.target;
    let rate = match target.rate_bps {
        Some(rate) => format!("{rate} ({})", target.rate_from),
        None => format!("rate {}", target.rate_from),
    };
    let rtt = match target.rtt {
        Some(rtt) => format!("over {rtt} ({})", target.rtt_from),
        None => format!("round-trip time {}", target.rtt_from),
    };
    let product = target
        .product()
        .map_or_else(String::new, |product| format!("; {product} in flight"));
    let flows = match target.flows {
        1 => "1 flow".to_owned(),
        flows => format!("{flows} flows"),
    };
    format!("{rate} {rtt} in {flows}, role {}{product}", target.role)
}

/// What the tests to the peer found.
fn peer(found: &ToPeer) -> String {
    let mut words = vec![found.peer.clone()];
    words.extend(found.interface.iter().map(|name| format!("by {name}")));
    words.extend(
        found
            .rtt
            .map(|rtt| format!("{rtt} there and back ({})", found.rtt_how)),
    );
    words.extend(
        found
            .rate_bps
            .map(|rate| format!("{rate} reached ({})", found.rate_how)),
    );
    words.extend(
        found
            .peer_link_bps
            .map(|rate| format!("its link has {rate}")),
    );
    words.push(match found.packet {
        Some(packet) if packet.untried_above => format!(
            "packets of {} bytes arrive uncut, the largest that the interface lets out",
            packet.bytes
        ),
        Some(packet) => format!("packets of {} bytes arrive uncut, no larger", packet.bytes),
        None => "whether large packets arrive uncut is not known".to_owned(),
    });
    words.join("; ")
}

fn count(audit: &Audit, wanted: impl Fn(&Outcome) -> bool) -> usize {
    audit
        .verdicts
        .iter()
        .filter(|verdict| wanted(&verdict.outcome))
        .count()
}

fn fires(page: &mut Page, verdict: &Verdict) {
    let Outcome::Fires {
        sentence,
        changes,
        severity,
        risk,
        set_by,
    } = &verdict.outcome
    else {
        return;
    };
    let head = format!("severity {severity}  {:<4}", verdict.check);
    page.wrapped(&format!("{head} "), &plain(sentence));
    for change in changes {
        detail(page, "set", &self::change(change));
    }
    for place in set_by {
        detail(page, "by", &plain(place));
    }
    detail(
        page,
        "risk",
        &format!("{}; source: {}", risk.words(), verdict.source),
    );
    page.gap();
}

fn detail(page: &mut Page, label: &str, text: &str) {
    page.wrapped(&format!("{label:>HEAD$}  "), text);
}

fn change(change: &Change) -> String {
    let now = change
        .now
        .as_ref()
        .map_or_else(String::new, |now| format!(" (now: {now})"));
    plain(&format!(
        "{} = {}{now}: {}",
        change.advised.setting(),
        change.advised.value(),
        change.why
    ))
}

/// The same reason once, with all the checks that it keeps from an answer.
fn by_reason<'a>(
    page: &mut Page,
    audit: &'a Audit,
    title: &str,
    reason: impl Fn(&'a Outcome) -> Option<&'a String>,
) {
    let mut reasons: Vec<(&str, Vec<&Verdict>)> = Vec::new();
    for verdict in &audit.verdicts {
        let Some(why) = reason(&verdict.outcome) else {
            continue;
        };
        match reasons.iter_mut().find(|(each, _)| each == why) {
            Some((_, verdicts)) => verdicts.push(verdict),
            None => reasons.push((why, vec![verdict])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    page.gap();
    page.line(title);
    for (why, verdicts) in reasons {
        let mut subjects: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for verdict in verdicts {
            subjects
                .entry(&verdict.check)
                .or_default()
                .extend(verdict.subject.as_deref());
        }
        let names: Vec<String> = subjects
            .into_iter()
            .map(|(check, subjects)| match subjects.as_slice() {
                [] => check.to_owned(),
                [one] => format!("{check} {one}"),
                many => format!("{check} {}", many.join(" ")),
            })
            .collect();
        page.wrapped("  ", &plain(&format!("{}: {why}", names.join(", "))));
    }
}

fn list<'a>(
    page: &mut Page,
    audit: &'a Audit,
    title: &str,
    wanted: impl Fn(&'a Outcome) -> Option<&'a String>,
) {
    page.gap();
    page.line(title);
    for verdict in &audit.verdicts {
        if let Some(text) = wanted(&verdict.outcome) {
            let subject = verdict
                .subject
                .as_ref()
                .map_or_else(String::new, |subject| format!("{subject}: "));
            page.wrapped(
                &format!("  {:<4} ", verdict.check),
                &plain(&format!("{subject}{text}")),
            );
        }
    }
}
