//! DRBD: states in words with advice, progress, settings, refusals.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use linerate_model::finding::{Figure, Finding, Severity};
use linerate_model::storage::{
    ConnectionState as State, DiskState as Disk, Drbd, DrbdGeneration, DrbdMeasured, DrbdMessage,
    DrbdMessageKind as Kind, DrbdSettings, DrbdStatus, DrbdSync, Role,
};
use linerate_model::transcript::{Given, Part, Transcript};
use linerate_model::units::{Bytes, grouped, whole};

use super::drbd_advice::{NOBODY, Volumes, advice, first_sync, split_brain};
use crate::draft::Draft;
use crate::replication::are_of_one_resource;
use crate::replication::limit::{self as limits, Limit, Seen, kib};

/// DRBD 8.4's default of `c-max-rate`, KiB/s.
const DEFAULT_RATE: f64 = 102_400.0;
/// What gigabit Ethernet carries with MTU 1500 and timestamps, bit/s.
const GIGABIT: f64 = 941.5e6;
/// Said behind advice.
const UNTOUCHED: &str = "linerate changed nothing";

pub(super) fn status(status: &DrbdStatus, given: &Given) -> (String, Vec<Finding>) {
    let devices = &status.devices;
    let title = match &status.version {
        Some(version) => format!("DRBD {version}: {} device(s)", devices.len()),
        None => format!("DRBD: {} device(s)", devices.len()),
    };
    if devices.is_empty() {
        return (title, vec![nothing(status)]);
    }
    let volumes = Volumes::of(devices);
    let mut findings: Vec<Finding> = devices
        .iter()
        .flat_map(|one| device(one, &volumes, given))
        .collect();
    findings.extend(events(status));
    (title, findings)
}

/// No device is printed.
fn nothing(status: &DrbdStatus) -> Finding {
    let nine = |version: &str| !version.starts_with('8') && !version.starts_with('0');
    let is_nine = status.version.as_ref().is_some_and(|one| nine(one));
    let sentence = if status.is_proc && is_nine {
        "From version 9 on /proc/drbd lists no devices: `drbdsetup status --json --verbose --statistics` and `drbdsetup show \
         --show-defaults` print what linerate reads"
            .to_owned()
    } else {
        "No resource is configured on this host: nothing is replicated. If there should be one, `drbdadm up all` sets up \
         what its configuration names"
            .to_owned()
    };
    Finding::new("replication-state", Severity::Note, sentence)
}

fn device(device: &Drbd, volumes: &Volumes<'_>, given: &Given) -> Vec<Finding> {
    let advice = advice(device, volumes);
    let healthy = matches!(device.connection, State::Connected | State::Established)
        && device.disks.iter().all(|disk| *disk == Disk::UpToDate);
    let severity = match &advice {
        Some(advice) if advice.is_fault => Severity::Limit,
        _ if healthy => Severity::Healthy,
        _ => Severity::Note,
    };
    let place = format!("line {}", device.line);
    let advice = advice.map_or_else(String::new, |advice| format!(". {}", advice.text));
    let untouched = match severity {
        Severity::Limit => format!(". {UNTOUCHED}"),
        _ => String::new(),
    };
    let state = Draft::new(
        "replication-state",
        severity,
        format!("{}{advice}{untouched}", in_words(device)),
    )
    .figure("out of sync, KiB", device.out_of_sync_kib, place)
    .finding;
    let mut findings = vec![state];
    findings.extend(
        device
            .sync
            .as_ref()
            .map(|sync| progress(device, sync, given)),
    );
    findings
}

/// The state of a device and of its peer.
fn in_words(device: &Drbd) -> String {
    let name = &device.name;
    if device.connection == State::Unconfigured {
        return format!("Device {name}: it is not configured (Unconfigured)");
    }
    let left = device
        .out_of_sync_kib
        .filter(|kib| *kib > 0)
        .map_or_else(String::new, |kib| {
            format!("; {} are out of sync", Bytes(kib.saturating_mul(1024)))
        });
    format!(
        "Device {name}: {}; this end is {} with {} data, the peer is {} with {} data{left}",
        connection(&device.connection),
        role(&device.roles[0]),
        disk(&device.disks[0]),
        role(&device.roles[1]),
        disk(&device.disks[1]),
    )
}

fn connection(state: &State) -> String {
    let words = match state {
        State::WfConnection | State::Connecting => {
            "waits for the peer to connect: nothing is replicated"
        }
        State::StandAlone => {
            "does not try to connect: the connection was dropped, by hand or after a split brain"
        }
        State::Connected => "connected",
        State::SyncSource => "sends missing data to the peer",
        State::SyncTarget => "receives missing data from the peer",
        State::PausedSyncS | State::PausedSyncT => "a synchronisation is paused",
        State::VerifyS | State::VerifyT => "both ends compare their data",
        State::Established => "connected, nothing to synchronise",
        State::NetworkFailure | State::BrokenPipe | State::Timeout | State::ProtocolError => {
            "lost its connection"
        }
        State::Unconnected | State::TearDown => "lost its connection and tries again",
        State::Disconnecting => "closes its connection",
        State::WfReportParams => "has just connected",
        State::StartingSyncS
        | State::StartingSyncT
        | State::WfBitMapS
        | State::WfBitMapT
        | State::WfSyncUuid => "is about to synchronise",
        State::Ahead => "is ahead: the peer takes writes more slowly than they come",
        State::Behind => "is behind: it misses writes of the peer until it is synchronised",
        State::Off => "connected, not replicating",
        State::Unconfigured | State::Other(_) => {
            return format!("connection state {}", state.name());
        }
    };
    format!("{words} ({})", state.name())
}

fn role(role: &Role) -> String {
    match role {
        Role::Primary => "primary".to_owned(),
        Role::Secondary => "secondary".to_owned(),
        Role::Unknown => "unknown".to_owned(),
        Role::Other(text) if text.is_empty() => "unknown".to_owned(),
        Role::Other(text) => text.to_lowercase(),
    }
}

fn disk(state: &Disk) -> String {
    match state {
        Disk::UpToDate => "up-to-date".to_owned(),
        Disk::Inconsistent => "inconsistent (not usable alone)".to_owned(),
        Disk::DUnknown => "unknown".to_owned(),
        Disk::Diskless => "no".to_owned(),
        Disk::Other(text) if text.is_empty() => "unknown".to_owned(),
        other => other.name().to_lowercase(),
    }
}

fn progress(device: &Drbd, sync: &DrbdSync, given: &Given) -> Finding {
    let mut sentence = format!("Device {}: ", device.name);
    let mut figures = Vec::new();
    let place = format!("line {}", device.line);
    let done = if sync.verifies { "compared" } else { "done" };
    match (sync.left_mib, sync.whole_mib.filter(|mib| *mib > 0.0)) {
        (Some(left), Some(all)) => {
            let share = (1.0 - left / all) * 100.0;
            let _ = write!(sentence, "{share:.3} % {done}, {left:.0} MiB left");
            figures.push(Figure::new("done, %", share, &place));
        }
        (left, _) => {
            sentence.push_str(&sync.done_percent.map_or_else(
                || "synchronising".to_owned(),
                |share| format!("{} % {done}", share.value),
            ));
            sentence
                .push_str(&left.map_or_else(String::new, |left| format!(", {left:.0} MiB left")));
        }
    }
    if let Some(speed) = sync.kib_per_second.filter(|speed| *speed > 0.0) {
        sentence.push_str(&time_left(sync, speed));
        if let Some(left) = sync.left_mib {
            figures.push(Figure::new("time left, s", left * 1024.0 / speed, &place));
        }
        let of_default = speed / DEFAULT_RATE * 100.0;
        let of_line = speed * 8192.0 / GIGABIT * 100.0;
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
        if !sync.verifies {
            sentence.push_str(&near(of_default, of_line));
            let _ = write!(
                sentence,
                ". Without both ends' `drbdsetup show --show-defaults` the candidates are: {}",
                limits::candidates(&seen(device, sync, given), None)
            );
        }
    }
    if let Some(want) = sync.want_kib_per_second {
        let _ = write!(
            sentence,
            ". The controller of this end, the target, asks for {} KiB/s",
            kib(want)
        );
        figures.push(Figure::new("asked for by the target, KiB/s", want, &place));
    }
    if sync.stalled {
        sentence.push_str(". The kernel calls it stalled: nothing moved for a while; look at the link and at both disks");
    }
    Draft::new("resync-rate", Severity::Note, sentence)
        .figures(figures)
        .finding
}

/// What is seen of a resynchronisation at one end.
fn seen(device: &Drbd, sync: &DrbdSync, given: &Given) -> Seen {
    Seen {
        rate: sync.kib_per_second.unwrap_or(0.0),
        want: sync.want_kib_per_second,
        application: device.waiting.application.is_some_and(|count| count > 0),
        link: limits::link(given),
        is_nine: device.is_nine(),
        ..Seen::default()
    }
}

/// ` at 99,236 KiB/s = 5:59:59, as printed (5:59:58)`.
fn time_left(sync: &DrbdSync, speed: f64) -> String {
    let Some(left) = sync.left_mib else {
        return format!(" at {} KiB/s", kib(speed));
    };
    let seconds = whole((left * 1024.0 / speed).floor());
    let printed = sync.finish_s.map_or_else(String::new, |printed| {
        let near = printed.abs_diff(seconds) <= 2.max(seconds / 500);
        let verb = if near { "as printed" } else { "but printed is" };
        format!(", {verb} ({})", clock(printed))
    });
    format!(
        " at {} KiB/s = {}{printed}",
        grouped(whole(speed)),
        clock(seconds)
    )
}

/// What the rate is near to.
fn near(of_default: f64, of_line: f64) -> String {
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

/// What `events2` shows between its lines: how fast blocks were copied, and how long that was paused.
fn events(status: &DrbdStatus) -> Vec<Finding> {
    let mut last = HashMap::new();
    let mut sums: HashMap<usize, (f64, f64, f64)> = HashMap::new();
    for change in &status.changes {
        let before = last.insert(change.device, change);
        let Some((before, (from, to))) =
            before.and_then(|before| Some((before, before.at_s.zip(change.at_s)?)))
        else {
            continue;
        };
        // Past midnight the time of day begins again.
        let seconds = (to - from).rem_euclid(86_400.0);
        let sum = sums.entry(change.device).or_default();
        match (
            &before.connection,
            before.out_of_sync_kib.zip(change.out_of_sync_kib),
        ) {
            (State::SyncSource | State::SyncTarget, Some((was, is))) if is <= was => {
                sum.0 += (was - is) as f64;
                sum.1 += seconds;
            }
            (State::PausedSyncS | State::PausedSyncT, _) => sum.2 += seconds,
            _ => {}
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(device, _)| *device);
    let moved = sums
        .into_iter()
        .filter(|(_, (kib, seconds, _))| *kib > 0.0 && *seconds > 0.0);
    moved
        .filter_map(|(at, (copied, seconds, paused))| {
            let device = status.devices.get(at)?;
            let rate = copied / seconds;
            let paused = if paused > 0.0 {
                format!("; it was paused for {paused:.1} s")
            } else {
                String::new()
            };
            let sentence = format!(
                "Device {}: {} KiB were synchronised in {seconds:.1} s = {} KiB/s{paused}. Without both ends' `drbdsetup show \
                 --show-defaults` the candidates for its limit are: {}",
                device.name,
                kib(copied),
                kib(rate),
                limits::candidates(&Seen { rate, ..Seen::default() }, None),
            );
            let place = format!("line {}", device.line);
            Draft::new("resync-rate", Severity::Note, sentence)
                .figure("rate of the resynchronisation, KiB/s", rate, place)
                .done()
        })
        .collect()
}

/// `drbdsetup show`: what it means for a resynchronisation.
pub(super) fn settings(all: &[DrbdSettings]) -> (String, Vec<Finding>) {
    let title = format!("DRBD's settings: {} resource(s)", all.len());
    (title, all.iter().map(of_settings).collect())
}

fn of_settings(held: &DrbdSettings) -> Finding {
    let name = &held.resource;
    let said = |value: Option<f64>, unit: &str| {
        value.map_or_else(
            || "not printed".to_owned(),
            |value| format!("{} {unit}", kib(value)),
        )
    };
    let protocol = held.protocol.as_ref();
    let protocol = protocol.map_or_else(String::new, |one| format!(", protocol {one}"));
    let most = said(held.max_rate_kib_s, "KiB/s");
    let sentence = match (
        held.plan_ahead_tenths,
        limits::in_flight(held, &Seen::default()).zip(held.max_rate_kib_s),
    ) {
        (Some(0.0), _) => format!(
            "Resource {name}{protocol}: c-plan-ahead is 0, so a resynchronisation asks for resync-rate ({}) and nothing adapts it",
            said(held.resync_rate_kib_s, "KiB/s")
        ),
        (_, Some((fill, cap))) if cap > 0.0 => format!(
            "Resource {name}{protocol}: a resynchronisation keeps {} KiB in flight ({}) up to {most} (c-max-rate), which \
             it reaches only while a request takes at most {:.1} ms; beside an application it goes down to {} (c-min-rate)",
            kib(fill),
            limits::bound(held, &Seen::default()),
            fill / cap * 1000.0,
            said(held.min_rate_kib_s, "KiB/s"),
        ),
        _ => format!(
            "Resource {name}{protocol}: c-fill-target and c-max-rate are not both printed; `drbdsetup show --show-defaults` prints them"
        ),
    };
    let place = format!("line {}", held.line);
    Draft::new("resync-rate", Severity::Note, sentence)
        .figure("c-max-rate, KiB/s", held.max_rate_kib_s, &*place)
        .figure("c-fill-target, KiB", held.fill_target_kib, &*place)
        .figure("c-min-rate, KiB/s", held.min_rate_kib_s, place)
        .finding
}

/// Measured resynchronisations: each has its limit.
pub(super) fn measured(all: &[DrbdMeasured]) -> (String, Vec<Finding>) {
    let title = format!(
        "DRBD: {} resynchronisation(s) with their settings",
        all.len()
    );
    let findings = all.iter().filter_map(|one| {
        let [least, most] = one.rate_kib_s;
        let seen = Seen {
            rate: f64::midpoint(least, most),
            want: one.want_kib_s.map(|[_, most]| most),
            application: one.application_writes,
            ..Seen::default()
        };
        let limit = limits::limit(&seen, &one.settings)?;
        Draft::new(
            "resync-rate",
            Severity::Limit,
            format!(
                "{}: {}",
                one.label,
                limits::words(&limit, &seen, &one.settings)
            ),
        )
        .figure(
            "rate of the resynchronisation, KiB/s",
            seen.rate,
            format!("line {}", one.line),
        )
        .done()
    });
    (title, findings.collect())
}

/// `drbdadm show-gi`.
pub(super) fn generation(held: &DrbdGeneration) -> (String, Vec<Finding>) {
    let names = [
        "its data are consistent",
        "they are up to date",
        "it is primary",
        "it is connected",
        "all blocks were being marked for a full synchronisation",
        "the peer's disk is outdated or inconsistent",
        "it crashed as primary and has not seen its peer since",
    ];
    let set = names.iter().zip(&held.flags).filter(|(_, set)| **set);
    let words: Vec<&str> = set.map(|(name, _)| *name).collect();
    let words = if words.is_empty() {
        "no flag is set".to_owned()
    } else {
        words.join(", ")
    };
    let tracked = held
        .uuids
        .get(1)
        .is_some_and(|uuid| uuid.chars().any(|c| c != '0'));
    let tracked = if tracked {
        "; what the peer misses is recorded, so that only this has to be copied"
    } else {
        ""
    };
    let log = if held.needs_activity_log {
        "; the activity log is applied when the disk is attached"
    } else {
        ""
    };
    let sentence = format!("The metadata say: {words}{tracked}{log}");
    (
        "drbdadm show-gi: generations of the data".to_owned(),
        vec![Finding::new("replication-state", Severity::Note, sentence)],
    )
}

/// Refusals and reports: each kind once, and a split brain once for each direction.
pub(super) fn messages(all: &[DrbdMessage]) -> (String, Vec<Finding>) {
    let title = format!("DRBD's messages: {} line(s)", all.len());
    let mut said = std::collections::HashSet::new();
    let once = all
        .iter()
        .filter(|message| said.insert((message.kind, from_this_node(message))));
    let findings = once.filter_map(|one| {
        let (severity, sentence) = message(one, all)?;
        Some(Finding::new("replication-state", severity, sentence))
    });
    (title, findings.collect())
}

/// A split brain was solved with this node's data.
fn from_this_node(message: &DrbdMessage) -> bool {
    message.kind == Kind::SplitBrainSolved && message.text.contains("Sync from this node")
}

fn message(message: &DrbdMessage, all: &[DrbdMessage]) -> Option<(Severity, String)> {
    let text = &message.text;
    let limit = |sentence: String| (Severity::Limit, sentence);
    Some(match message.kind {
        Kind::NoUpToDateData => limit(no_data(all)),
        Kind::SplitBrain => limit(format!(
            "Both ends were written to while they were apart, and DRBD dropped the connection. See both ends' disks first \
             (`drbdadm dstate RESOURCE`): one that is Outdated or Inconsistent has the old data. {}. {UNTOUCHED}",
            split_brain("RESOURCE")
        )),
        Kind::SplitBrainSolved => limit(solved(message)),
        Kind::Unrelated => limit(
            "The two ends' data have no common history: check that both devices belong to one resource before any \
             full synchronisation overwrites one of them"
                .to_owned(),
        ),
        Kind::StateRefused => limit(format!("DRBD refused a change of state: '{text}'")),
        Kind::UnknownOption => (
            Severity::Note,
            "The tool does not know the option: with module 8.4 the tools of version 8.4 run, which have neither --json \
             nor --color; `drbdsetup status --verbose --statistics` prints what linerate reads"
                .to_owned(),
        ),
        Kind::NotConfigured => (
            Severity::Note,
            format!("The configuration has no such resource: '{text}'"),
        ),
        Kind::Detail => return None,
    })
}

/// `Need access to UpToDate data`: no end has any yet, or the one that has them is away. The state behind it tells.
fn no_data(all: &[DrbdMessage]) -> String {
    let refused = all
        .iter()
        .enumerate()
        .filter(|(_, one)| one.kind == Kind::NoUpToDateData);
    let states: Vec<&str> = refused
        .filter_map(|(at, _)| {
            let behind = all[at + 1..].iter();
            let mut details = behind.take_while(|one| one.kind == Kind::Detail);
            details.find_map(|one| Some(one.text.as_str().split_once(" state = {")?.1))
        })
        .collect();
    let never_synchronised = |state: &&str| {
        state.contains("cs:Connected ") && state.contains("ds:Inconsistent/Inconsistent ")
    };
    if states.is_empty() {
        return format!(
            "DRBD refused the state, as it reaches no up-to-date data; the states of the disks are not in the input \
             (`drbdadm dstate RESOURCE`). {NOBODY}. Only where both ends are connected and Inconsistent, as after their \
             first setup: {}. {UNTOUCHED}",
            first_sync("RESOURCE")
        );
    }
    if states.iter().all(never_synchronised) {
        return format!(
            "DRBD refused the state, as neither end has up-to-date data. {}. {UNTOUCHED}",
            first_sync("RESOURCE")
        );
    }
    format!("DRBD refused the state. {NOBODY}. {UNTOUCHED}")
}

/// A split brain that the kernel solved by its policies.
fn solved(message: &DrbdMessage) -> String {
    let (from, whose) = if from_this_node(message) {
        ("this node", "the peer's")
    } else {
        ("the peer", "this node's")
    };
    format!(
        "Both ends were written to while they were apart, and DRBD has chosen already, by after-sb-0pri to 2pri: it copies from \
         {from}, and {whose} writes of that time are dropped. The connection stays, and nothing is to be done for it; if those \
         writes are needed, look for them in a backup"
    )
}

/// A device that is synchronised, seen from one end.
type Syncing<'a> = (&'a Drbd, &'a DrbdSync);

/// Resynchronisations whose settings are in the transcripts as well: one answer where both ends' settings and states
/// are there, else candidates.
pub(super) fn together(transcripts: &[Transcript], given: &Given) -> Vec<Finding> {
    let parts = || transcripts.iter().flat_map(|transcript| &transcript.parts);
    let settings = parts().filter_map(|part| match part {
        Part::DrbdSettings(all) => Some(all),
        _ => None,
    });
    let mut held: BTreeMap<&str, Vec<&DrbdSettings>> = BTreeMap::new();
    for one in settings.flatten() {
        held.entry(one.resource.as_str()).or_default().push(one);
    }
    let devices = parts().filter_map(|part| match part {
        Part::Drbd(status) => Some(&status.devices),
        _ => None,
    });
    let syncs = devices
        .flatten()
        .filter_map(|device| Some((device, device.copying()?)))
        .filter(|(_, sync)| sync.kib_per_second.is_some_and(|rate| rate > 0.0));
    let minors = minors(&held);
    // Source and target of each resource.
    let mut ends: BTreeMap<&str, [Option<Syncing<'_>>; 2]> = BTreeMap::new();
    for (device, sync) in syncs {
        let end = match device.connection {
            State::SyncSource => 0,
            State::SyncTarget => 1,
            _ => continue,
        };
        if let Some(resource) = resource_of(device, &minors) {
            ends.entry(resource).or_default()[end].get_or_insert((device, sync));
        }
    }
    let found = ends.into_iter();
    found
        .filter_map(|(resource, ends)| of_ends(held.get(resource)?, ends, given))
        .collect()
}

/// Which resource a minor number is of; none where the settings do not agree.
fn minors<'a>(held: &BTreeMap<&'a str, Vec<&'a DrbdSettings>>) -> HashMap<u64, Option<&'a str>> {
    let mut minors = HashMap::new();
    for (resource, all) in held {
        for minor in all.iter().filter_map(|one| one.minor) {
            let known = minors.entry(minor).or_insert(Some(*resource));
            *known = known.filter(|name| name == resource);
        }
    }
    minors
}

/// The resource of a device: as printed, or by its minor number.
fn resource_of<'a>(device: &'a Drbd, minors: &HashMap<u64, Option<&'a str>>) -> Option<&'a str> {
    if let Some(name) = &device.resource {
        return Some(name.as_str());
    }
    let minor: u64 = device.name.as_str().parse().ok()?;
    *minors.get(&minor)?
}

/// What limits the synchronisation of one resource.
fn of_ends(
    held: &[&DrbdSettings],
    [source, target]: [Option<Syncing<'_>>; 2],
    given: &Given,
) -> Option<Finding> {
    let own = *held.first()?;
    let (device, sync) = target.or(source)?;
    let mut seen = seen(device, sync, given);
    // Requests of the application wait where it runs.
    seen.application |=
        source.is_some_and(|(device, _)| device.waiting.application.is_some_and(|count| count > 0));
    let states = source.is_some() && target.is_some();
    let pair = |other: &&&DrbdSettings| are_of_one_resource(own, other);
    let missing = match (held.iter().find(pair), states) {
        (None, true) => Some("the settings of the other end are not in the input"),
        (_, false) => Some("the state of the other end is not in the input"),
        (Some(other), true) if !are_ends(own, other) => Some("the settings of the two ends differ"),
        (Some(_), true) => None,
    };
    let limit = limits::limit(&seen, own);
    let (severity, what) = match (limit, missing) {
        (Some(limit), None) => {
            let unseen = match limit {
                Limit::FillTarget { .. } => {
                    ". A slow disk or path looks the same in these figures: records of `linerate disk watch` at both ends and of \
                     `linerate observe` tell them apart"
                }
                _ => "",
            };
            let words = limits::words(&limit, &seen, own);
            (Severity::Limit, format!("{words}{unseen}"))
        }
        (_, missing) => (
            Severity::Note,
            format!(
                "what limits it is not known, as {}; the candidates are: {}",
                missing.unwrap_or("a setting is missing"),
                limits::candidates(&seen, Some(own))
            ),
        ),
    };
    let sentence = format!("Device {}: {what}", device.name);
    let place = format!("line {}", device.line);
    Draft::new("resync-rate", severity, sentence)
        .figure("rate of the resynchronisation, KiB/s", seen.rate, place)
        .done()
}

/// Settings of the two ends of one resource that agree on how to synchronise.
fn are_ends(one: &DrbdSettings, other: &DrbdSettings) -> bool {
    let rates = |held: &DrbdSettings| {
        [
            held.plan_ahead_tenths,
            held.fill_target_kib,
            held.max_rate_kib_s,
            held.min_rate_kib_s,
            held.resync_rate_kib_s,
            held.max_buffers,
        ]
    };
    are_of_one_resource(one, other) && rates(one) == rates(other)
}
