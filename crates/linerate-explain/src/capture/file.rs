//! A capture file: what it holds, and what it cannot show.

use linerate_model::capture::{Capture, CaptureEnd};
use linerate_model::finding::{Finding, Severity};

use crate::draft::Draft;
use crate::words;

/// What it is and hides, and findings.
pub(crate) fn explain(capture: &Capture) -> (String, Vec<Finding>) {
    let mut words = vec![title(capture)];
    words.extend(hides(capture));
    (words.join("; "), findings(capture))
}

fn title(capture: &Capture) -> String {
    let links: Vec<String> = capture
        .links
        .iter()
        .map(|link| match (link.read, link.name.as_str()) {
            (true, name) => name.to_owned(),
            (false, "unknown") => format!("link type {} (unknown, not read)", link.number),
            (false, name) => format!("{name} (link type {}, not read)", link.number),
        })
        .collect();
    let links = if links.is_empty() {
        "no interface".to_owned()
    } else {
        links.join(", ")
    };
    let connections = match capture.connections {
        0 => "no TCP connection".to_owned(),
        1 => "1 TCP connection".to_owned(),
        more => format!("{} TCP connections", words::count(more)),
    };
    let follow = match (capture.connections, capture.kept) {
        (all, kept) if kept == all => String::new(),
        (_, 0) => ", none with payload".to_owned(),
        (_, 1) => ", of which one with payload follows".to_owned(),
        (_, kept) => format!(", of which the {kept} with most payload follow"),
    };
    format!(
        "packet capture ({}; {links}): {} packets in {}, {connections}{follow}",
        capture.format.name(),
        words::count(capture.packets),
        words::seconds(capture.span_ns),
    )
}

/// What the file itself keeps from being seen.
fn hides(capture: &Capture) -> Vec<String> {
    let over = capture.passed_over;
    let mut said = Vec::new();
    let counted = [
        (over.not_ip, "packets are not IP"),
        (over.not_tcp, "are not TCP"),
        (over.fragments, "are fragments, which are not put together"),
        (
            over.headers,
            "are cut within their headers, or contradict themselves",
        ),
        (
            over.timeless,
            "have no time (simple packet blocks) and are not used",
        ),
        (
            over.connections,
            "belong to connections beyond the number that is tracked",
        ),
        (over.beyond, "lie beyond the number that is kept"),
    ];
    for (number, what) in counted {
        if number > 0 {
            said.push(format!("{} {what}", words::count(number)));
        }
    }
    if let Some(bytes) = capture.snapshot_bytes {
        said.push(format!(
            "at most {bytes} bytes of a packet are kept ({} are cut); lengths are those of the IP headers",
            words::count(capture.clipped)
        ));
    }
    if capture.unanswered > 0 {
        said.push(format!(
            "{} connections were opened and never answered here",
            words::count(capture.unanswered)
        ));
    }
    if capture.back_in_time > 0 {
        said.push(format!(
            "{} packets are older than one before them",
            words::count(capture.back_in_time)
        ));
    }
    match capture.dropped {
        Some(0) => said.push("the capturing host says that it dropped none".to_owned()),
        Some(_) => {}
        None => {
            said.push("whether the capturing host dropped packets is not in the file".to_owned());
        }
    }
    said
}

fn findings(capture: &Capture) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(dropped) = capture.dropped.filter(|packets| *packets > 0) {
        let sentence = format!(
            "The capturing host dropped {} packets in addition to the {} in the file: it may have caused the gaps below",
            words::count(dropped),
            words::count(capture.packets)
        );
        let draft = Draft::new("capture-gaps", Severity::Fault, sentence);
        let draft = draft.figure("packets dropped by the capture", dropped, "capture");
        findings.push(draft.finding);
    }
    match capture.end {
        CaptureEnd::Whole => {}
        CaptureEnd::Cut => findings.push(Finding::new(
            "capture-gaps",
            Severity::Note,
            "The file ends within a packet: it was truncated, or is still being written; everything before was read"
                .to_owned(),
        )),
        CaptureEnd::Damaged(at) => findings.push(Finding::new(
            "capture-gaps",
            Severity::Fault,
            format!(
                "The file is damaged at byte {}: what is there is not a packet, and nothing after it was read",
                words::count(at)
            ),
        )),
    }
    let unread: Vec<&str> = capture
        .links
        .iter()
        .filter(|link| !link.read && link.packets > 0)
        .map(|link| link.name.as_str())
        .collect();
    if capture.connections == 0 {
        let why = if unread.is_empty() {
            "no TCP segment is in it".to_owned()
        } else {
            format!(
                "packets of its link type ({}) are not read",
                unread.join(", ")
            )
        };
        findings.push(Finding::new(
            "cannot-tell",
            Severity::Note,
            format!("No connection can be judged: {why}"),
        ));
    }
    findings
}
