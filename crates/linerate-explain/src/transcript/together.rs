//! What only several transcripts together say.

use std::collections::HashMap;

use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::{Given, Part, Transcript};

use super::datagrams::{lost_share, payload_of};
use super::digest::{self, Digest, Guests};
use super::{drbd, ethernet, probes, storage};
use crate::draft::Draft;

/// Runs that are compared with each other at most.
const MOST: usize = 8;
/// Rates are different from here on.
const DIFFERENT: f64 = 1.1;

pub(super) fn explain(transcripts: &[Transcript], given: &Given) -> Vec<Finding> {
    let mut findings = Vec::new();
    let guests: Vec<Guests> = transcripts.iter().map(digest::guests).collect();
    let digests: Vec<(usize, Digest<'_>)> = transcripts
        .iter()
        .zip(&guests)
        .enumerate()
        .flat_map(|(number, (transcript, guests))| {
            let parts = transcript.parts.iter().enumerate();
            parts.filter_map(move |(part, what)| match what {
                Part::Test(test) if test.inside.is_none() => {
                    Some((number, Digest::of(test, transcript, part, guests)))
                }
                _ => None,
            })
        })
        .take(MOST)
        .collect();
    for (at, (number, one)) in digests.iter().enumerate() {
        // Runs of one file may be of different hosts; two named files are to be compared.
        for (_, other) in digests[at + 1..]
            .iter()
            .filter(|(other, _)| other != number)
        {
            match (one.is_udp(), other.is_udp()) {
                (false, false) => findings.extend(tcp(one, other, given)),
                (true, true) => findings.extend(udp(one, other, given)),
                _ => {}
            }
        }
    }
    findings.extend(disks(transcripts));
    findings.extend(drbd::together(transcripts, given));
    findings.extend(probes::together(transcripts, given));
    findings
}

/// A run by its file and line.
fn name(digest: &Digest<'_>) -> String {
    format!("{} (line {})", digest.name, digest.test.lines[0])
}

fn tcp(one: &Digest<'_>, other: &Digest<'_>, given: &Given) -> Vec<Finding> {
    let (Some(a), Some(b)) = (one.settled(), other.settled()) else {
        return Vec::new();
    };
    if a <= 0.0 || b <= 0.0 {
        return Vec::new();
    }
    if one.is_loopback() != other.is_loopback() {
        let (host, path) = if one.is_loopback() {
            (one, other)
        } else {
            (other, one)
        };
        return vec![below_host(host, path)];
    }
    let (slow, fast) = if a <= b { (one, other) } else { (other, one) };
    let mut findings = Vec::new();
    findings.extend(per_connection(slow, fast));
    findings.extend(window(slow, fast));
    if findings.is_empty() {
        findings.extend(factor(one, other, given));
    }
    findings
}

fn below_host(host: &Digest<'_>, path: &Digest<'_>) -> Finding {
    let (can, does) = (host.average().unwrap_or(0.0), path.average().unwrap_or(0.0));
    let share = does / can.max(1.0);
    let (path_name, host_name) = (name(path), name(host));
    let (does_rate, can_rate) = (path.rate(does), host.rate(can));
    let sentence = if share > 0.7 {
        format!(
            "{does_rate} of {path_name} are near the local throughput limit, {can_rate} of {host_name}"
        )
    } else {
        let how = if share < 0.5 { "far below" } else { "below" };
        format!(
            "{does_rate} of {path_name} are {how} the local throughput limit, {can_rate} of {host_name} ({:.0} %): \
             the driver, the interface or the path is the limit, not copying or TCP on this host",
            share * 100.0
        )
    };
    Draft::new("cannot-tell", Severity::Note, sentence)
        .figure("rate, bit/s", does, path.name)
        .figure("rate through loopback, bit/s", can, host.name)
        .finding
}

/// More streams passed what one stream held.
fn per_connection(slow: &Digest<'_>, fast: &Digest<'_>) -> Option<Finding> {
    let (a, b) = (slow.settled()?, fast.settled()?);
    let (few, many) = (slow.streams.len(), fast.streams.len());
    if many <= few || few == 0 || b / a < DIFFERENT {
        return None;
    }
    let full = ethernet::filled(b, fast.test.mss_bytes, fast.headers(), 0.006);
    let uneven = super::levels::judge(slow).is_some();
    let (id, why) = if full.is_some() && few == 1 {
        (
            "cannot-tell",
            "one stream did not reach or sustain it; suspect one core or one queue",
        )
    } else {
        ("receive-window", "so the limit was per connection")
    };
    let one = if few == 1 {
        "a single stream's".to_owned()
    } else {
        format!("the {few} streams'")
    };
    let level = if uneven {
        slow.rates_between(&slow.plateau())
    } else {
        slow.rate(a)
    };
    Draft::new(
        id,
        Severity::Limit,
        format!(
            "{many} streams carry {} ({}), more than {one} {level} ({}): {why}",
            fast.rate(b),
            name(fast),
            name(slow),
        ),
    )
    .figure("rate of more streams, bit/s", b, fast.name)
    .figure("rate of fewer streams, bit/s", a, slow.name)
    .done()
}

/// A window that was asked for, and a higher rate with it.
fn window(slow: &Digest<'_>, fast: &Digest<'_>) -> Option<Finding> {
    let (a, b) = (slow.settled()?, fast.settled()?);
    let asked = fast.test.asked.window_bytes?;
    let before = slow.test.asked.window_bytes;
    if before.is_some_and(|before| before >= asked)
        || b / a < DIFFERENT
        || slow.streams.len() != fast.streams.len()
    {
        return None;
    }
    let sentence = format!(
        "With a window of {} the plateau is {} instead of {}, {:.1} times as high: the window was the limit \
             before ({} and {})",
        linerate_model::units::Bytes(linerate_model::units::whole(asked)),
        fast.rate(b),
        slow.rate(a),
        b / a,
        name(fast),
        name(slow)
    );
    Draft::new("receive-window", Severity::Limit, sentence)
        .figure("plateau, bit/s", b, fast.name)
        .figure("plateau before, bit/s", a, slow.name)
        .done()
}

fn factor(one: &Digest<'_>, other: &Digest<'_>, given: &Given) -> Option<Finding> {
    let (a, b) = (one.average()?, other.average()?);
    let (low, high) = if a <= b { (one, other) } else { (other, one) };
    let ratio = a.max(b) / a.min(b).max(1.0);
    if ratio < DIFFERENT {
        return None;
    }
    let why = given.changed.as_ref().map_or_else(
        || "the output does not show what changed".to_owned(),
        |changed| format!("reported change: {changed}"),
    );
    Draft::new(
        "cannot-tell",
        Severity::Note,
        format!(
            "{} is better than {} by {ratio:.1} times ({} and {}); {why}",
            name(high),
            name(low),
            high.rate(a.max(b)),
            low.rate(a.min(b))
        ),
    )
    .figure("better by, times", ratio, high.name)
    .done()
}

fn udp(one: &Digest<'_>, other: &Digest<'_>, given: &Given) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let (Some(a), Some(b)) = (payload_of(one), payload_of(other))
        && (a - b).abs() > 1.0
    {
        findings.push(Finding::new(
            "cannot-tell",
            Severity::Note,
            format!(
                "{} sends datagrams of {a:.0} bytes, {} of {b:.0}: their losses are not comparable, because losing \
                 one fragment loses the whole datagram",
                name(one),
                name(other)
            ),
        ));
        return findings;
    }
    let (Some(a), Some(b)) = (lost_share(one), lost_share(other)) else {
        return findings;
    };
    let (lossy, clean, share) = if a > b {
        (one, other, a)
    } else {
        (other, one, b)
    };
    let rates = lossy.average().zip(clean.average());
    let same = rates.is_some_and(|(a, b)| (a / b.max(1.0) - 1.0).abs() < 0.05);
    if !same || share < 1e-3 || a.min(b) > 0.1 * share {
        return findings;
    }
    let settings = given.changed.as_ref().filter(|changed| {
        let changed = changed.to_ascii_lowercase();
        changed.contains("sysctl") || changed.contains("buffer") || changed.contains("rmem")
    });
    let why = match (settings, &given.changed) {
        (Some(changed), _) => format!(
            "only {changed} changed, so the earlier loss happened in host buffers, not on the path"
        ),
        (None, Some(changed)) => format!("reported change: {changed}"),
        (None, None) => "what changed is not in the output (--changed)".to_owned(),
    };
    findings.push(Finding::new(
        if settings.is_some() {
            "udp-receiver-drop"
        } else {
            "cannot-tell"
        },
        Severity::Note,
        format!(
            "At the same rate {} loses {:.1} %, {} {:.4} %: {why}",
            name(lossy),
            share * 100.0,
            name(clean),
            a.min(b) * 100.0
        ),
    ));
    findings
}

/// A disk's field that wraps, with the queue that iostat shows for the same device.
fn disks(transcripts: &[Transcript]) -> Vec<Finding> {
    let parts = || transcripts.iter().flat_map(|transcript| &transcript.parts);
    let mut queues: HashMap<&str, f64> = HashMap::new();
    for part in parts() {
        if let Part::Iostat(iostat) = part {
            for (name, depth) in storage::queues(iostat) {
                queues.entry(name).or_insert(depth);
            }
        }
    }
    let mut findings = Vec::new();
    for part in parts() {
        let Part::Diskstats(lines) = part else {
            continue;
        };
        for line in lines {
            let queue = queues.get(line.device.as_str()).copied();
            if let Some(depth) = queue.filter(|depth| *depth >= 1.0) {
                findings.push(Finding::new(
                    "counter-wrap",
                    Severity::Note,
                    format!(
                        "{}: at the queue depth of {depth:.0} that iostat shows, the weighted-time field of /proc/diskstats wraps every {:.0} s",
                        line.device,
                        4_294_967.296 / depth
                    ),
                ));
            }
        }
    }
    findings
}
