//! What a transcript of another tool shows, what it hides, and what is wrong in it.
//!
//! A figure that was printed is known to half of its last digit; rates, amounts and times are computed
//! from each other within that. What needs a second source (the round-trip time, another file) is said
//! only where that was given.

mod as_run;
mod bounceback;
mod cannot_tell;
mod counter_wrap;
mod datagrams;
mod digest;
pub(crate) mod drbd;
mod drbd_advice;
mod ethernet;
mod gluster;
mod gluster_state;
mod levels;
mod nodes;
mod path_full;
mod probes;
mod raid;
mod ramp;
mod repeats;
mod session;
mod socket_series;
mod sockets;
mod steps;
mod storage;
mod table;
mod title;
mod together;
mod window_still;
mod windows;

use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::{Explained, Given, Part, Reading, Transcript};

use crate::capture;
use digest::{Digest, Guests};

/// Transcripts, with what can be said of each and of all together.
pub fn explain(transcripts: Vec<Transcript>, given: Given) -> Reading {
    let mut explained = Vec::new();
    let history = gluster::History::of(&transcripts);
    for (number, transcript) in transcripts.iter().enumerate() {
        let guests = digest::guests(transcript);
        let arrays = storage::known(transcript);
        for part in 0..transcript.parts.len() {
            let mut said = one(transcript, part, &guests, &arrays, &history, &given);
            said.findings.sort_by_key(rank);
            explained.push(Explained {
                transcript: number,
                part,
                ..said
            });
        }
    }
    let together = together::explain(&transcripts, &given);
    Reading {
        transcripts,
        given,
        explained,
        together,
    }
}

/// What is said of one part; the places are filled in by the caller.
fn one(
    transcript: &Transcript,
    number: usize,
    guests: &Guests,
    arrays: &storage::Known<'_>,
    history: &gluster::History<'_>,
    given: &Given,
) -> Explained {
    let said = |title, recomputed, findings| Explained {
        transcript: 0,
        part: 0,
        title,
        recomputed,
        findings,
    };
    let plainly = |(title, findings)| said(title, None, findings);
    match &transcript.parts[number] {
        Part::Test(test) => {
            let digest = Digest::of(test, transcript, number, guests);
            let (recomputed, wrong) = title::recomputed(&digest);
            let mut findings = test_findings(&digest, given);
            findings.extend(wrong);
            said(title::test(&digest), recomputed, findings)
        }
        Part::Table(table) => {
            let (recomputed, findings) = table::explain(table, given);
            said(title::table(table), recomputed, findings)
        }
        Part::Sockets(sockets) => said(sockets::title(sockets), None, sockets::explain(sockets)),
        Part::Iostat(iostat) => {
            let (title, recomputed, findings) = storage::iostat(iostat, arrays);
            said(title, recomputed, findings)
        }
        Part::Diskstats(lines) => said(
            format!("/proc/diskstats: {} device(s)", lines.len()),
            None,
            storage::diskstats(lines, arrays, given),
        ),
        Part::Arrays(held) => plainly(raid::arrays(held)),
        Part::Drbd(held) => plainly(drbd::status(held, given)),
        Part::DrbdSettings(held) => plainly(drbd::settings(held)),
        Part::DrbdGeneration(held) => plainly(drbd::generation(held)),
        Part::DrbdMessages(held) => plainly(drbd::messages(held)),
        Part::DrbdMeasured(held) => plainly(drbd::measured(held)),
        Part::Gluster(events) => plainly(gluster::log(events, history)),
        Part::Fio(held) => plainly(probes::fio(held)),
        Part::Iozone(held) => plainly(probes::iozone(held)),
        Part::Copies(held) => plainly(probes::copies(held, given)),
        Part::Crashes(held) => plainly(probes::crashes(held)),
        Part::Geometry(held) => plainly(session::geometry(held)),
        Part::Session(held) => plainly(session::session(held)),
        Part::GlusterState(held) => plainly(gluster_state::state(held)),
        Part::Nodes(groups) => plainly(nodes::nodes(groups)),
        Part::Volumes(held) => plainly(raid::volumes(held)),
        Part::Capture(held) => plainly(capture::file(held)),
        Part::Conversation(held) => {
            let (title, figures, findings) = capture::conversation(held);
            said(title, figures, findings)
        }
    }
}

fn test_findings(digest: &Digest<'_>, given: &Given) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(latency) = bounceback::judge(digest) {
        return vec![latency];
    }
    if digest.is_udp() {
        findings.extend(datagrams::explain(digest, given));
        return findings;
    }
    if let Some(capped) = datagrams::tcp_capped(digest, given) {
        return vec![capped];
    }
    let wrap = counter_wrap::judge(digest, given);
    let wrapped = wrap.is_some();
    findings.extend(wrap);
    let judged = as_run::judge(digest, given);
    let known = !judged.is_empty();
    // A limit that is known makes a rate vary.
    let limited = judged
        .iter()
        .any(|finding| finding.severity == Severity::Limit);
    findings.extend(levels::judge(digest).filter(|_| !limited));
    let steady = findings.is_empty();
    // A line's payload is known in segments of TCP.
    let of_tcp = !digest.is_sctp() && !digest.may_be_sctp();
    let full = path_full::judge(digest, given)
        .filter(|_| steady && !limited && (of_tcp || digest.is_loopback()));
    let healthy = full
        .as_ref()
        .is_some_and(|finding| finding.severity == Severity::Healthy);
    findings.extend(full);
    // A rate that is a line's needs no second reason.
    let beside = |finding: &Finding| !healthy || finding.severity == Severity::Note;
    findings.extend(judged.into_iter().filter(beside));
    findings.extend(ramp::judge(digest, given));
    if !healthy && !wrapped && !known {
        let open = windows::judge(digest);
        let told = open.is_some();
        findings.extend(open);
        let window = window_still::judge(digest, given).filter(|_| !told);
        let repeats = repeats::judge(digest).filter(|_| !told);
        let known = told || window.is_some() || repeats.is_some();
        findings.extend(window);
        findings.extend(repeats);
        // Levels and a spread have said what there is to say.
        if !known && steady {
            findings.extend(cannot_tell::judge(digest, given));
        }
    }
    findings
}

/// Figures that cannot be trusted first, then what limited, then what is as it should be, then notes.
fn rank(finding: &Finding) -> u8 {
    match (finding.severity, finding.id.as_str()) {
        (Severity::Fault, _) => 0,
        // Before a figure is used, one must know what it counts.
        (_, "counter-wrap") | (Severity::Limit, _) => 1,
        (_, "bimodal" | "unstable") => 2,
        (Severity::Healthy, _) => 3,
        (_, "summary-hides-ramp") => 5,
        (_, "cannot-tell") => 4,
        (Severity::Note, _) => 6,
    }
}
