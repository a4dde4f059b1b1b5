//! An audit as text.

use std::collections::BTreeMap;

use linerate_model::audit::{Area, Audit, Change, Outcome, ToPeer, Verdict};

use super::storage;
use crate::text::layout::Page;
use crate::words::{self, plain};

/// Where the text of a verdict begins.
const HEAD: usize = 15;

/// The audit for people: what is not as it should be with what to set, then what cannot be known; with `all` also
/// what holds and what does not apply.
pub fn report(audit: &Audit, all: bool) -> String {
    let mut page = Page::default();
    let storage = audit.target.area == Area::Storage;
    if storage {
        storage::head(&mut page, audit);
    } else {
        head(&mut page, audit);
    }
    page.gap();
    let (mut firing, mut unknown, mut holds, mut apart) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for verdict in &audit.verdicts {
        match &verdict.outcome {
            Outcome::Fires { .. } => firing.push(verdict),
            Outcome::CannotKnow { why } => unknown.push((verdict, why)),
            Outcome::Holds { read } => holds.push((verdict, read)),
            Outcome::DoesNotApply { why } => apart.push((verdict, why)),
        }
    }
    if storage {
        storage::fires(&mut page, &firing);
    } else {
        for verdict in &firing {
            fires(&mut page, verdict, "", "");
        }
    }
    let firing = firing.len();
    if firing == 0 {
        page.line("No findings.");
    }
    by_reason(&mut page, "Cannot be known", &unknown);
    if all {
        let list = if storage { storage::list } else { list };
        list(&mut page, "As it should be", &holds);
        list(&mut page, "Not applicable", &apart);
    }
    page.gap();
    page.line(&format!(
        "{firing} to look at, {} unknown, {} passed, {} not applicable{}",
        unknown.len(),
        holds.len(),
        apart.len(),
        words::when(!all, " (--all lists them)")
    ));
    page.finish()
}

fn head(page: &mut Page, audit: &Audit) {
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
    let product = words::with(target.product(), |product| format!("; {product} in flight"));
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
    let (rtt, rate, link) = (found.rtt, found.rate_bps, found.peer_link_bps);
    words.extend(rtt.map(|rtt| format!("{rtt} there and back ({})", found.rtt_how)));
    words.extend(rate.map(|rate| format!("{rate} reached ({})", found.rate_how)));
    words.extend(link.map(|rate| format!("its link has {rate}")));
    words.push(match found.packet {
        Some(packet) if packet.untried_above => format!(
            "packets of {} bytes arrive unfragmented, the largest that the interface sends",
            packet.bytes
        ),
        Some(packet) => format!(
            "packets of {} bytes arrive unfragmented, larger ones do not",
            packet.bytes
        ),
        None => "whether large packets arrive unfragmented is not known".to_owned(),
    });
    words.join("; ")
}

/// A verdict; `subject` stands before its sentence, and `others` are all that have it too.
pub(super) fn fires(page: &mut Page, verdict: &Verdict, subject: &str, others: &str) {
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
    page.wrapped(&format!("{head} "), &plain(&format!("{subject}{sentence}")));
    for change in changes {
        detail(page, "set", &self::change(change));
    }
    if !others.is_empty() && !changes.is_empty() {
        detail(page, "also", &plain(&format!("on {others}")));
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
    let now = words::with(change.now.as_ref(), |now| format!(" (now: {now})"));
    plain(&format!(
        "{} = {}{now}: {}",
        change.advised.setting(),
        change.advised.value(),
        change.why
    ))
}

/// The same reason once, with all the checks that it keeps from an answer.
fn by_reason(page: &mut Page, title: &str, unknown: &[(&Verdict, &String)]) {
    let mut reasons: Vec<(&str, Vec<&Verdict>)> = Vec::new();
    for (verdict, why) in unknown {
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
                many if many.len() > storage::MOST_NAMES => {
                    format!("{check} {}", storage::brief_names(many))
                }
                many => format!("{check} {}", many.join(" ")),
            })
            .collect();
        page.wrapped("  ", &plain(&format!("{}: {why}", names.join(", "))));
    }
}

fn list(page: &mut Page, title: &str, verdicts: &[(&Verdict, &String)]) {
    page.gap();
    page.line(title);
    for (verdict, text) in verdicts {
        let subject = verdict.subject.as_ref();
        let subject = words::with(subject, |subject| format!("{subject}: "));
        let head = format!("  {:<4} ", verdict.check);
        page.wrapped(&head, &plain(&format!("{subject}{text}")));
    }
}
