//! fio, iozone, programs that copy files, and power cuts.
//!
//! Sources: fio's HOWTO (`iodepth`, `direct`), cases of fio 3.33; ssh's channel window of 2 MiB (channels.h); power cuts measured
//! with ext4, XFS and btrfs of Linux 6.18.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::storage::{CopySummary, CopyTool, CrashRun, FioJob, Iozone};
use linerate_model::transcript::{Given, Part, Transcript};
use linerate_model::units::{BitRate, Bytes, grouped, whole};

use crate::draft::Draft;

/// OpenSSH's channel window, bytes (`CHAN_TCP_WINDOW_DEFAULT`: 64 × 32 KiB).
const SSH_WINDOW: f64 = 2_097_152.0;
/// How long after it was written a file without fsync can be lost in a power cut, s: ext4 with its defaults.
const WINDOW_S: f64 = 41.0;
/// iozone's largest file in automatic mode, kB: less than the memory of a host of today.
const AUTO_KB: u64 = 524_288;

fn rate(bytes_per_second: f64) -> String {
    format!("{:.1} MB/s", bytes_per_second / 1e6)
}

pub(super) fn fio(jobs: &[FioJob]) -> (String, Vec<Finding>) {
    let mut findings: Vec<Finding> = jobs.iter().flat_map(job).collect();
    findings.sort_by_key(|finding| finding.severity != Severity::Fault);
    (format!("fio: {} job(s)", jobs.len()), findings)
}

fn job(job: &FioJob) -> Vec<Finding> {
    let mut findings = Vec::new();
    let place = format!("line {}", job.line);
    if job.error != 0 {
        findings.push(Finding::new(
            "disk-speed",
            Severity::Fault,
            format!(
                "fio's job {} ended with error {}: its figures are not those of the disk",
                job.name, job.error
            ),
        ));
    }
    let option = |key: &str| job.option(key);
    let depth = option("iodepth")
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(1);
    let engine = option("ioengine").unwrap_or_default();
    let direct = option("direct") == Some("1");
    for way in &job.ways {
        let latency = way.mean_ns.map_or_else(String::new, |mean| {
            let tail = way.p99_ns.map_or_else(String::new, |tail| {
                format!(", 99 % within {:.3} ms", tail / 1e6)
            });
            format!(", {:.3} ms each{tail}", mean / 1e6)
        });
        let how = if way.name == "sync" {
            format!("{} syncs{latency}", grouped(way.requests))
        } else {
            format!(
                "{} IOPS, {}{latency}",
                grouped(whole(way.iops)),
                rate(way.bytes_per_second)
            )
        };
        let size = option("bs").map_or_else(String::new, |size| format!(" of {size}"));
        let sentence = format!("{}: {}{size}, depth {depth}: {how}", job.name, way.name);
        let draft = Draft::new("disk-speed", Severity::Note, sentence);
        findings.push(
            draft
                .figure("requests a second", way.iops, &*place)
                .figure("bytes a second", way.bytes_per_second, &*place)
                .finding,
        );
    }
    let caution = if engine.is_empty() && depth > 1 && !job.options.is_empty() {
        Some(format!(
            "no ioengine is set, which is psync on Linux: it makes one request at a time, so the depth was 1 and not {depth}"
        ))
    } else if ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&engine) && depth > 1
    {
        Some(format!(
            "the engine {engine} makes one request at a time, so iodepth {depth} had no effect"
        ))
    } else if engine == "libaio" && !direct && depth > 1 {
        Some("libaio without direct=1 is synchronous, so the depth was 1 and the page cache answered".to_owned())
    } else if !job.options.is_empty()
        && !direct
        && option("end_fsync").is_none()
        && option("fsync").is_none()
        && option("fdatasync").is_none()
    {
        Some(
            "neither direct=1 nor an fsync is set, so this is the page cache and not the disk"
                .to_owned(),
        )
    } else {
        None
    };
    findings.extend(caution.map(|text| {
        Finding::new(
            "disk-speed",
            Severity::Note,
            format!("{}: {text}", job.name),
        )
    }));
    findings
}

pub(super) fn iozone(held: &Iozone) -> (String, Vec<Finding>) {
    let title = format!("iozone: {} row(s)", held.rows.len());
    let Some((line, [file, record], rates)) =
        held.rows.iter().max_by_key(|(_, [file, _], _)| *file)
    else {
        return (title, Vec::new());
    };
    let each: Vec<String> = held
        .columns
        .iter()
        .zip(rates)
        .take(4)
        .map(|(name, kb)| format!("{name} {}", rate(kb * 1024.0)))
        .collect();
    let cache = match held.direct {
        Some(true) => "with O_DIRECT",
        _ if *file <= AUTO_KB => {
            "through the page cache: the file is smaller than the memory of most hosts, so this is not the disk; use -I, or a file of twice the memory"
        }
        _ => "without -I: the page cache answers as far as the file fits into memory",
    };
    let sentence = format!(
        "Largest file, {} in records of {}: {}; {cache}",
        Bytes(file.saturating_mul(1024)),
        Bytes(record.saturating_mul(1024)),
        each.join(", ")
    );
    let draft = Draft::new("disk-speed", Severity::Note, sentence);
    (
        title,
        vec![
            draft
                .figure("largest file, kB", *file, format!("line {line}"))
                .finding,
        ],
    )
}

pub(super) fn copies(all: &[CopySummary], given: &Given) -> (String, Vec<Finding>) {
    let title = format!("copies: {} summary line(s)", all.len());
    (title, all.iter().map(|one| copy(one, given)).collect())
}

fn copy(one: &CopySummary, given: &Given) -> Finding {
    let bytes = |value: Option<f64>| {
        value.map_or_else(
            || "an unknown amount".to_owned(),
            |bytes| Bytes(whole(bytes)).to_string(),
        )
    };
    let speed = one.bytes_per_second.map_or_else(String::new, |speed| {
        format!(" at {} ({})", rate(speed), BitRate(whole(speed * 8.0)))
    });
    let (severity, text) = match one.tool {
        CopyTool::Iperf3 | CopyTool::File => match one.bytes.zip(one.file_bytes) {
            Some((sent, has)) if has < sent => (
                Severity::Fault,
                format!(
                    "{} bytes were sent, and the file{} has {}: {:.1} % of it. iperf3 -F does not report write errors or a full disk, and does \
                     not wait for the disk: its rate is not that of a copy",
                    grouped(whole(sent)),
                    if one.name.is_empty() {
                        String::new()
                    } else {
                        format!(" {}", one.name)
                    },
                    grouped(whole(has)),
                    has / sent * 100.0
                ),
            ),
            _ => (
                Severity::Note,
                format!(
                    "iperf3 sent {} of {}",
                    bytes(one.bytes),
                    bytes(one.file_bytes)
                ),
            ),
        },
        CopyTool::Rsync => {
            let size = one.file_bytes.map_or_else(String::new, |size| {
                format!("; the files have {}", Bytes(whole(size)))
            });
            (
                Severity::Note,
                format!(
                    "rsync moved {}{speed}{size}; it is one pipeline, and many small files cost time each",
                    bytes(one.bytes)
                ),
            )
        }
        CopyTool::Scp => {
            let bound = given
                .rtt
                .map(|rtt| SSH_WINDOW / rtt.as_secs_f64())
                .filter(|bound| bound.is_finite());
            let bound = bound.map_or_else(
                || "; ssh's channel window of 2 MiB allows 2 MiB per RTT (--rtt)".to_owned(),
                |bound| {
                    format!(
                        "; ssh's channel window of 2 MiB allows {} at this RTT",
                        rate(bound)
                    )
                },
            );
            (
                Severity::Note,
                format!(
                    "scp copied {} ({}){speed}{bound}; one core per cipher is the other limit",
                    one.name,
                    bytes(one.bytes)
                ),
            )
        }
        CopyTool::Mbuffer => {
            let full = match one.buffer_percent {
                Some(share) if share >= 90.0 => {
                    format!("; the buffer was {share:.0} % full: what reads from it is the limit")
                }
                Some(share) if share <= 10.0 => {
                    format!("; the buffer was {share:.0} % full: what writes into it is the limit")
                }
                _ => String::new(),
            };
            (
                Severity::Note,
                format!("mbuffer passed {}{speed}{full}", bytes(one.bytes)),
            )
        }
    };
    Draft::new("copy-rate", severity, text)
        .figure(
            "bytes a second",
            one.bytes_per_second,
            format!("line {}", one.line),
        )
        .finding
}

/// What power cuts left, by file system and options.
pub(super) fn crashes(runs: &[CrashRun]) -> (String, Vec<Finding>) {
    let title = format!("power cuts: {} run(s)", runs.len());
    let mut groups: BTreeMap<(&str, &str), Vec<&CrashRun>> = BTreeMap::new();
    let (failed, cut): (Vec<_>, Vec<_>) = runs.iter().partition(|run| run.error.is_some());
    for run in cut {
        groups
            .entry((&run.file_system, &run.options))
            .or_default()
            .push(run);
    }
    let mut findings: Vec<Finding> = groups
        .iter()
        .map(|((name, options), runs)| group(name, options, runs))
        .collect();
    for finding in failed.into_iter().filter_map(not_cut) {
        // One reason concerns all cuts of a file system.
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings.sort_by_key(|finding| finding.severity != Severity::Limit);
    (title, findings)
}

/// A file system whose power could not be cut.
fn not_cut(run: &CrashRun) -> Option<Finding> {
    let options = with_options(&run.options);
    let sentence = format!(
        "{}{options}: not cut, {}",
        run.file_system,
        run.error.as_ref()?
    );
    Some(Finding::new("crash-exposure", Severity::Note, sentence))
}

/// ` (data=journal)`.
fn with_options(options: &str) -> String {
    if options.is_empty() {
        String::new()
    } else {
        format!(" ({options})")
    }
}

fn is_lost(result: &str) -> bool {
    result == "EMPTY" || result.starts_with("NUL")
}

fn group(name: &str, options: &str, runs: &[&CrashRun]) -> Finding {
    let mut empty = BTreeSet::new();
    let mut nul = BTreeSet::new();
    for (what, result) in runs.iter().flat_map(|run| &run.results) {
        // Nothing was written to it.
        if what == "create-only" {
            continue;
        }
        if result == "EMPTY" {
            empty.insert(what.as_str());
        } else if result.starts_with("NUL") {
            nul.insert(what.as_str());
        }
    }
    let list = |set: &BTreeSet<&str>| set.iter().copied().collect::<Vec<_>>().join(", ");
    let options = with_options(options);
    let results = runs.iter().flat_map(|run| &run.results);
    let synced: Vec<&PlainText> = results
        .filter(|(what, _)| what.ends_with("-fsync"))
        .map(|(_, result)| result)
        .collect();
    let synced = match synced.iter().any(|result| is_lost(result)) {
        true => "; even with fsync files are empty",
        false if synced.is_empty() => "",
        false => "; with fsync none is ever empty",
    };
    let window = window(runs).map_or_else(String::new, |(lost, safe)| {
        let safe = safe.map_or_else(String::new, |safe| format!(", and not at {safe:.0} s"));
        format!("; still lost {lost:.0} s after writing{safe}")
    });
    let (severity, said) = match (empty.is_empty(), nul.is_empty()) {
        (true, true) => (
            Severity::Note,
            "no file was empty or NUL without fsync".to_owned(),
        ),
        (false, true) => (
            Severity::Limit,
            format!("empty files without fsync: {}", list(&empty)),
        ),
        (true, false) => (
            Severity::Limit,
            format!("files of NUL without fsync: {}", list(&nul)),
        ),
        (false, false) => (
            Severity::Limit,
            format!(
                "empty files without fsync: {}; files of NUL: {}",
                list(&empty),
                list(&nul)
            ),
        ),
    };
    let sentence = format!(
        "{name}{options}, {} power cuts: {said}{window}{synced}",
        runs.len()
    );
    Draft::new("crash-exposure", severity, sentence)
        .figure("power cuts", runs.len(), name)
        .finding
}

/// The longest time after writing at which files were still lost, and the shortest after it at which none was, s.
fn window(runs: &[&CrashRun]) -> Option<(f64, Option<f64>)> {
    let lost = |run: &CrashRun| {
        run.results
            .iter()
            .any(|(what, result)| what != "create-only" && is_lost(result))
    };
    let times = |bad: bool| {
        runs.iter()
            .filter(move |run| lost(run) == bad)
            .filter_map(|run| run.seconds())
    };
    let longest = times(true).reduce(f64::max)?;
    let safe = times(false).filter(|time| *time > longest).reduce(f64::min);
    Some((longest, safe))
}

/// Files a second times the window, against the loss that was claimed.
pub(super) fn together(transcripts: &[Transcript], given: &Given) -> Option<Finding> {
    let (each_second, lost) = given.files_per_second.zip(given.files_lost)?;
    let runs: Vec<&CrashRun> = transcripts
        .iter()
        .flat_map(|transcript| &transcript.parts)
        .filter_map(|part| match part {
            Part::Crashes(runs) => Some(runs),
            _ => None,
        })
        .flatten()
        .collect();
    let seconds = match window(&runs) {
        Some((lost, safe)) => safe.unwrap_or(lost),
        None => WINDOW_S,
    };
    Some(loss(each_second, seconds, lost))
}

/// Whether so many files can have been lost.
fn loss(each_second: f64, seconds: f64, lost: f64) -> Finding {
    let exposed = each_second * seconds;
    let times = lost / exposed.max(f64::MIN_POSITIVE);
    let sum = format!(
        "{} files a second over a window of {seconds:.0} s are {} files that a power cut exposes",
        grouped(whole(each_second)),
        grouped(whole(exposed))
    );
    let (severity, sentence) = if times > 1.0 {
        (
            Severity::Limit,
            format!(
                "{sum}, but {} are said to be lost, {times:.1} times as many: the cut alone cannot explain it. Caches that lied, disks or \
                 nodes that were still missing, or older losses are more likely",
                grouped(whole(lost))
            ),
        )
    } else {
        (
            Severity::Note,
            format!(
                "{sum}; the {} that are said to be lost fit into it ({:.0} %)",
                grouped(whole(lost)),
                times * 100.0
            ),
        )
    };
    Draft::new("crash-exposure", severity, sentence)
        .figure("files exposed", exposed, "given")
        .figure("files said to be lost", lost, "given")
        .finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_whose_power_was_not_cut_is_no_proof_of_anything() {
        let run = |error: Option<&str>, results: &[(&str, &str)]| CrashRun {
            file_system: "xfs".into(),
            error: error.map(Into::into),
            results: results
                .iter()
                .map(|(name, result)| ((*name).into(), (*result).into()))
                .collect(),
            ..CrashRun::default()
        };
        let missing = "mkfs.xfs is not installed";
        let (_, findings) = crashes(&[run(Some(missing), &[]), run(Some(missing), &[])]);
        let sentences: Vec<&str> = findings.iter().map(|one| &*one.sentence).collect();
        assert_eq!(sentences, ["xfs: not cut, mkfs.xfs is not installed"]);
        let (_, findings) = crashes(&[run(Some(missing), &[]), run(None, &[("new", "EMPTY")])]);
        assert!(
            findings[0]
                .sentence
                .starts_with("xfs, 1 power cuts: empty files")
        );
    }

    #[test]
    fn a_loss_that_is_impossible_is_said_with_its_factor() {
        // 25 nodes of 36 disks with 100 MB/s each, in blocks of 128 MB, and 300,000 lost.
        let finding = loss(25.0 * 36.0 * 100.0 / 128.0, 41.0, 300_000.0);
        assert!(
            finding.sentence.contains("10.4 times as many"),
            "{}",
            finding.sentence
        );
        assert_eq!(finding.severity, Severity::Limit);
        let finding = loss(1000.0, 41.0, 20_500.0);
        assert!(
            finding.sentence.contains("fit into it (50 %)"),
            "{}",
            finding.sentence
        );
    }
}
