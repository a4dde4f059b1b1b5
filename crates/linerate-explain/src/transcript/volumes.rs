//! DRBD, glusterd, Slurm's nodes, mirrored volumes.

use std::collections::HashMap;
use std::fmt::Write as _;

use linerate_model::finding::{Figure, Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::storage::{Drbd, DrbdSync, GlusterEvent, NodeGroup, Volumes};
use linerate_model::units::{Bytes, grouped, whole};

use crate::draft::{Draft, limit_if};

/// DRBD 8.4's default of `c-max-rate`, KiB/s.
const DEFAULT_RATE: f64 = 102_400.0;
/// What gigabit Ethernet carries with MTU 1500 and timestamps, bit/s.
const GIGABIT: f64 = 941.5e6;

pub(super) fn drbd(devices: &[Drbd]) -> (String, Vec<Finding>) {
    let version = devices.iter().find_map(|device| device.version.clone());
    let title = match version {
        Some(version) => format!("DRBD {version}: {} device(s)", devices.len()),
        None => format!("DRBD: {} device(s)", devices.len()),
    };
    (title, devices.iter().flat_map(device).collect())
}

fn device(device: &Drbd) -> Vec<Finding> {
    let healthy =
        device.connection == "Connected" && device.disks.iter().all(|disk| disk == "UpToDate");
    let left = device
        .out_of_sync_kib
        .filter(|kib| *kib > 0)
        .map_or_else(String::new, |kib| {
            format!("; {} are out of sync", Bytes(kib.saturating_mul(1024)))
        });
    let severity = match device.connection.as_str() {
        "StandAlone" | "WFConnection" | "Connecting" => Severity::Limit,
        _ if healthy => Severity::Healthy,
        _ => Severity::Note,
    };
    let place = format!("line {}", device.line);
    let state = Draft::new(
        "replication-state",
        severity,
        format!(
            "Device {}: {}; this end is {} with {} data, the peer is {} with {} data{left}",
            device.name,
            connection(&device.connection),
            role(&device.roles[0]),
            disk(&device.disks[0]),
            role(&device.roles[1]),
            disk(&device.disks[1]),
        ),
    )
    .figure("out of sync, KiB", device.out_of_sync_kib, place)
    .finding;
    let mut findings = vec![state];
    findings.extend(device.sync.as_ref().map(|sync| progress(device, sync)));
    findings
}

fn connection(state: &str) -> String {
    let words = match state {
        "WFConnection" | "Connecting" => "waits for the peer to connect: nothing is replicated",
        "StandAlone" => {
            "does not try to connect: the connection was dropped, by hand or after a split brain"
        }
        "Connected" => "connected",
        "SyncSource" => "sends missing data to the peer",
        "SyncTarget" => "receives missing data from the peer",
        "PausedSyncS" | "PausedSyncT" => "a synchronisation is paused",
        "VerifyS" | "VerifyT" => "both ends compare their data",
        "Established" => "connected, nothing to synchronise",
        "NetworkFailure" | "BrokenPipe" | "Timeout" => "lost its connection",
        other => return format!("connection state {other}"),
    };
    format!("{words} ({state})")
}

fn role(role: &str) -> String {
    match role {
        "Unknown" | "" => "unknown".to_owned(),
        other => other.to_lowercase(),
    }
}

fn disk(state: &str) -> String {
    match state {
        "UpToDate" => "up-to-date".to_owned(),
        "Inconsistent" => "inconsistent (not usable alone)".to_owned(),
        "DUnknown" | "" => "unknown".to_owned(),
        "Outdated" => "outdated".to_owned(),
        "Diskless" => "no".to_owned(),
        other => other.to_lowercase(),
    }
}

fn progress(device: &Drbd, sync: &DrbdSync) -> Finding {
    let mut sentence = format!("Device {}: ", device.name);
    let mut figures = Vec::new();
    let place = format!("line {}", device.line);
    match (sync.left_mib, sync.whole_mib.filter(|mib| *mib > 0.0)) {
        (Some(left), Some(all)) => {
            let done = (1.0 - left / all) * 100.0;
            let _ = write!(sentence, "{done:.3} % done, {left:.0} MiB left");
            figures.push(Figure::new("done, %", done, &place));
        }
        (left, _) => {
            sentence.push_str(&sync.done_percent.map_or_else(
                || "synchronising".to_owned(),
                |done| format!("{} % done", done.value),
            ));
            sentence
                .push_str(&left.map_or_else(String::new, |left| format!(", {left:.0} MiB left")));
        }
    }
    if let Some(speed) = sync.kib_per_second.filter(|speed| *speed > 0.0) {
        if let Some(left) = sync.left_mib {
            let seconds = whole((left * 1024.0 / speed).floor());
            let _ = write!(
                sentence,
                " at {} KiB/s = {}",
                grouped(whole(speed)),
                clock(seconds)
            );
            if let Some(printed) = sync.finish_s {
                let near = printed.abs_diff(seconds) <= 2.max(seconds / 500);
                let verb = if near { "as printed" } else { "but printed is" };
                let _ = write!(sentence, ", {verb} ({})", clock(printed));
            }
            figures.push(Figure::new("time left, s", seconds as f64, &place));
        }
        let bps = speed * 8192.0;
        let (of_default, of_line) = (speed / DEFAULT_RATE * 100.0, bps / GIGABIT * 100.0);
        figures.push(Figure::new(
            "rate, % of c-max-rate's default",
            of_default,
            &place,
        ));
        figures.push(Figure::new(
            "rate, % of what 1 GbE carries",
            of_line,
            &place,
        ));
        sentence.push_str(&limits(of_default, of_line));
    }
    Draft::new("resync-rate", Severity::Note, sentence)
        .figures(figures)
        .finding
}

/// What the rate is near to.
fn limits(of_default: f64, of_line: f64) -> String {
    let text = format!(
        "; the rate is {of_default:.1} % of DRBD 8.4's default c-max-rate (102400 KiB/s) and {of_line:.0} % of what 1 GbE carries (941.5 Mbit/s)"
    );
    let near = |share: f64| (85.0..=102.0).contains(&share);
    match (near(of_default), near(of_line)) {
        (true, _) if (of_default - 100.0).abs() < (of_line - 100.0).abs() => {
            format!("{text}: c-max-rate is more likely the limit")
        }
        (_, true) => format!("{text}: the network is more likely the limit"),
        _ => format!("{text}: it is close to neither"),
    }
}

fn clock(seconds: u64) -> String {
    format!(
        "{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

pub(super) fn gluster(events: &[GlusterEvent]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let locks = || {
        events
            .iter()
            .filter_map(|event| Some((event, event.lock.as_ref()?)))
    };
    let mut lines: HashMap<&[PlainText; 2], usize> = HashMap::new();
    for (_, lock) in locks() {
        *lines.entry(lock).or_default() += 1;
    }
    for (event, lock) in locks() {
        // Each lock is reported once, at its first line.
        let Some(times) = lines.remove(lock) else {
            continue;
        };
        let [asker, holder] = lock;
        let often = if times > 1 {
            format!(" ({times} lines)")
        } else {
            String::new()
        };
        let (who, steps) = if asker == holder {
            (
                format!(
                    "held by the requesting node itself ({asker}): a command that did not finish left it behind"
                ),
                "Look for a gluster command that still runs on that node, wait for it, then restart glusterd there \
                 (bricks and mounts keep running), and look at `gluster peer status` and `gluster volume status`",
            )
        } else {
            (
                format!("held by another node: {holder} holds it, {asker} asks"),
                "Find the node by `gluster pool list`, look for a gluster command that still runs there and wait for it before anything else",
            )
        };
        findings.push(Finding::new(
            "cluster-lock",
            Severity::Limit,
            format!(
                "{}: glusterd's cluster lock is {who}{often}. {steps}. linerate changed nothing",
                event.at
            ),
        ));
    }
    let errors = events
        .iter()
        .filter(|event| event.level == "E" && event.lock.is_none())
        .count();
    if errors > 0 {
        findings.push(Finding::new(
            "log-errors",
            Severity::Note,
            format!("{errors} other lines of the log are errors"),
        ));
    }
    findings
}

pub(super) fn nodes(groups: &[NodeGroup]) -> (String, Vec<Finding>) {
    let all = groups
        .iter()
        .map(|group| group.count)
        .fold(0, u64::saturating_add);
    let title = format!("sinfo: {} group(s), {} nodes", groups.len(), all);
    let out = |group: &&NodeGroup| {
        let state = group.state.to_ascii_lowercase();
        ["drain", "down", "fail", "not usable", "maint", "unk"]
            .iter()
            .any(|word| state.starts_with(word))
            || state.ends_with('*')
    };
    let findings: Vec<Finding> = groups
        .iter()
        .filter(out)
        .map(|group| {
            let reason = group.reason.as_ref().map_or_else(
                || "no reason is given".to_owned(),
                |reason| format!("reason \"{reason}\""),
            );
            let partition = if group.partition.is_empty() {
                String::new()
            } else {
                format!(" of partition {}", group.partition)
            };
            Draft::new(
                "nodes-out",
                Severity::Limit,
                format!(
                    "{} nodes{partition} are {}, {reason} ({})",
                    group.count, group.state, group.names
                ),
            )
            .figure("nodes", group.count, format!("line {}", group.line))
            .finding
        })
        .collect();
    if findings.is_empty() {
        return (
            title,
            vec![Finding::new(
                "nodes-out",
                Severity::Healthy,
                "No node is drained or down".to_owned(),
            )],
        );
    }
    (title, findings)
}

pub(super) fn mirrors(held: &Volumes) -> (String, Vec<Finding>) {
    let title = format!(
        "LVM: {} volume group(s), {} logical volume(s)",
        held.groups.len(),
        held.volumes.len()
    );
    let findings = held
        .volumes
        .iter()
        .filter(|volume| volume.attributes.starts_with(['m', 'M']))
        .map(|volume| {
            let kind = &volume.attributes[..1];
            let log = match &volume.log {
                Some(log) => format!("its log is on {log}"),
                None => {
                    "mirror log in memory: full resynchronisation at each activation".to_owned()
                }
            };
            let copied = volume
                .copied_percent
                .map_or_else(String::new, |percent| format!("; {percent} % are copied"));
            Draft::new(
                "mirror-log",
                limit_if(volume.log.is_none()),
                format!(
                    "{}/{} ({}): legacy mirror segment type (attribute {kind}), {log}{copied}",
                    volume.group, volume.name, volume.size
                ),
            )
            .figure(
                "copied, %",
                volume.copied_percent,
                format!("line {}", volume.line),
            )
            .finding
        })
        .collect();
    (title, findings)
}
