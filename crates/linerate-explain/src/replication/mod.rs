//! What limits a resynchronisation of DRBD, by the records of both ends: `linerate disk watch` at each, and `linerate
//! observe` of the connection between them.
//!
//! DRBD's own figures tell its settings' limits. The disks' counters and the connection's tell those behind them: without
//! these a small `c-fill-target` and a slow disk or path look alike, and no limit is named.

pub(crate) mod limit;

use std::fmt::Write as _;

use linerate_analysis::disk::DiskRates;
use linerate_analysis::evidence::Evidence;
use linerate_analysis::statistics::median;
use linerate_analysis::time_budget::Class;
use linerate_model::disk_watch::{DiskWatch, WatchedDevice};
use linerate_model::finding::{Finding, Severity};
use linerate_model::observation::{Connection, Observation};
use linerate_model::storage::{ConnectionState, Drbd, DrbdSettings};
use linerate_model::transcript::Given;
use linerate_model::units::Nanos;

use crate::draft::Draft;
use limit::{Limit, Seen, SlowDisk};

/// From this share of the time on a disk is busy.
const BUSY: f64 = 0.9;
/// From so many requests on, on average, some wait: with fewer the disk waits for them.
const WAITING: f64 = 2.0;
/// An application with fewer requests a second delays nothing that one would see.
const APPLICATION: f64 = 10.0;
/// A rate is taken over no less time: DRBD asks ten times a second.
const STEP: Nanos = Nanos::from_millis(1000);
/// Clocks of the two hosts differ by less, ms.
const CLOCKS: u64 = 60_000;
/// What a connection's verdict may be where the connection is the limit; other verdicts are of the programs at its ends.
pub(crate) const OF_THE_CONNECTION: [&str; 11] = [
    "congested",
    "mtu-black-hole",
    "network-loss",
    "path-full",
    "policer",
    "random-loss",
    "rate-capped",
    "receive-window",
    "reordering",
    "send-buffer",
    "shaper",
];
/// A connection that waits for data for a smaller part of the time always has some.
const SHORT_OF_DATA: f64 = 0.1;

/// What both ends' records say together of each resynchronisation.
pub fn together(watched: &[DiskWatch], connections: &[Observation], given: &Given) -> Vec<Finding> {
    let ends: Vec<End<'_>> = watched.iter().flat_map(ends).collect();
    let mut targets: Vec<&End<'_>> = ends.iter().filter(|end| !end.is_source).collect();
    let mut found = Vec::new();
    for source in ends.iter().filter(|end| end.is_source) {
        if let Some(at) = targets.iter().position(|target| source.is_pair(target)) {
            let target = targets.remove(at);
            found.push(of_both([source, target], connections, given));
        }
    }
    found
}

/// What one end's record says: candidates.
pub(crate) fn alone(record: &DiskWatch) -> Vec<Finding> {
    ends(record).iter().map(of_one).collect()
}

/// Whether these are the settings of the two ends of one resource.
pub(crate) fn are_of_one_resource(one: &DrbdSettings, other: &DrbdSettings) -> bool {
    let [own, peer] = &one.addresses;
    own.is_some()
        && other.addresses == [peer.clone(), own.clone()]
        && one.resource == other.resource
}

/// No record tells.
#[derive(Debug, Clone, Copy)]
struct NotWatched;

/// A device that was synchronised while it was watched, at one end.
struct End<'a> {
    record: &'a DiskWatch,
    settings: &'a DrbdSettings,
    host: &'a str,
    minor: u64,
    is_nine: bool,
    is_source: bool,
    /// KiB/s.
    rate: f64,
    want: Option<f64>,
    application: bool,
    /// The disk below where requests always waited, if there is one.
    disk: Result<Option<SlowDisk>, NotWatched>,
}

impl End<'_> {
    fn is_pair(&self, other: &Self) -> bool {
        let span = |record: &DiskWatch| {
            let length = record.end_ns.since(record.start_ns).0 / 1_000_000;
            let from = record.started_at_unix_ms;
            (from, from.saturating_add(length).saturating_add(CLOCKS))
        };
        let ((from, until), (other_from, other_until)) = (span(self.record), span(other.record));
        from <= other_until
            && other_from <= until
            && are_of_one_resource(self.settings, other.settings)
    }
}

fn ends(record: &DiskWatch) -> Vec<End<'_>> {
    let Some(held) = &record.replication else {
        return Vec::new();
    };
    let of = |settings| end(record, settings);
    held.settings.iter().filter_map(of).collect()
}

fn end<'a>(record: &'a DiskWatch, settings: &'a DrbdSettings) -> Option<End<'a>> {
    let minor = settings.minor?;
    let number = minor.to_string();
    let readings = record.replication.iter().flat_map(|held| &held.readings);
    let states: Vec<(Nanos, &Drbd)> = readings
        .filter_map(|reading| {
            let mut devices = reading.devices.iter();
            let device = devices.find(|device| device.name == *number)?;
            device.copying().map(|_| (reading.at_ns, device))
        })
        .collect();
    let (from, until) = (states.first()?.0, states.last()?.0);
    let last = states.last()?.1;
    let is_source = match last.connection {
        ConnectionState::SyncSource => true,
        ConnectionState::SyncTarget => false,
        _ => return None,
    };
    let asked = states
        .iter()
        .filter_map(|(_, device)| device.sync?.want_kib_per_second);
    let waits = states
        .iter()
        .filter(|(_, device)| device.waiting.application.is_some_and(|count| count > 0));
    let often = waits.count() * 2 > states.len();
    let host = record.host.hostname.as_deref().unwrap_or("a host");
    let replicated = record.device(&format!("drbd{number}"));
    let used = replicated.and_then(|one| DiskRates::during(one, from, until));
    Some(End {
        record,
        settings,
        host,
        minor,
        is_nine: last.is_nine(),
        is_source,
        rate: median(&rates(&states))?,
        want: median(&asked.collect::<Vec<_>>()),
        // DRBD's own reads and writes are not counted at its device.
        application: often || used.is_some_and(|rates| rates.requests_per_s() >= APPLICATION),
        disk: replicated.ok_or(NotWatched).and_then(|one| {
            let end = if is_source { "source" } else { "target" };
            slow_disk(record, one, [from, until], (end, host))
        }),
    })
}

/// KiB/s between readings that are a second apart at least.
fn rates(states: &[(Nanos, &Drbd)]) -> Vec<f64> {
    let mut rates = Vec::new();
    let mut before: Option<(Nanos, u64)> = None;
    for (at, device) in states {
        let Some(left) = device.out_of_sync_kib else {
            continue;
        };
        let Some((from, more)) = before else {
            before = Some((*at, left));
            continue;
        };
        let span = at.since(from);
        if span < STEP {
            continue;
        }
        before = Some((*at, left));
        // What an application dirties meanwhile can make it grow.
        rates.extend(
            more.checked_sub(left)
                .map(|moved| moved as f64 / span.as_secs_f64()),
        );
    }
    rates
}

/// The disk below a replicated device where requests always waited, if there is one.
fn slow_disk(
    record: &DiskWatch,
    replicated: &WatchedDevice,
    [from, until]: [Nanos; 2],
    (end, host): (&'static str, &str),
) -> Result<Option<SlowDisk>, NotWatched> {
    let mut slow: Option<SlowDisk> = None;
    let mut leaves = 0;
    for name in record.below(&replicated.device) {
        let one = record.device(name).ok_or(NotWatched)?;
        if !one.device.below.is_empty() {
            continue;
        }
        let rates = DiskRates::during(one, from, until).ok_or(NotWatched)?;
        leaves += 1;
        let waits = rates.busy.share() >= BUSY && rates.queue >= WAITING;
        if waits && slow.as_ref().is_none_or(|other| rates.queue > other.queue) {
            slow = Some(SlowDisk {
                end,
                name: format!("{name} of {host}"),
                busy: rates.busy.share(),
                queue: rates.queue,
                did: [rates.requests_per_s(), rates.bytes_per_s()],
            });
        }
    }
    if leaves == 0 {
        Err(NotWatched)
    } else {
        Ok(slow)
    }
}

fn of_both([source, target]: [&End<'_>; 2], connections: &[Observation], given: &Given) -> Finding {
    // The target asks by its own settings; the source delays by its own.
    let settings = DrbdSettings {
        min_rate_kib_s: source.settings.min_rate_kib_s,
        ..target.settings.clone()
    };
    let path = path([source, target], connections);
    let disks = [source, target].map(|end| end.disk.as_ref().ok());
    let unknown = [
        ("the disk of the source", disks[0].is_none()),
        ("the disk of the target", disks[1].is_none()),
        ("the connection", path.is_err() && given.link.is_none()),
    ];
    let disks = disks.into_iter().flatten().flatten();
    let seen = Seen {
        rate: target.rate,
        want: target.want,
        application: source.application || target.application,
        link: limit::link(given),
        disk: disks
            .max_by(|one, other| one.queue.total_cmp(&other.queue))
            .cloned(),
        path: path.ok().flatten(),
        is_nine: target.is_nine,
    };
    let between = format!("{} → {}", source.host, target.host);
    let unknown: Vec<&str> = unknown
        .into_iter()
        .filter_map(|(what, is)| is.then_some(what))
        .collect();
    let Some(found) = limit::limit(&seen, &settings) else {
        let words = format!(
            "what limits it is not told by these settings; the candidates are: {}",
            limit::candidates(&seen, Some(&settings))
        );
        return finding(target, &between, Severity::Note, &words);
    };
    let mut words = limit::words(&found, &seen, &settings);
    // What remains where nothing else shows: only if all was watched.
    let remains = matches!(found, Limit::FillTarget { .. } | Limit::Answer(_));
    let may_be_other = remains && !unknown.is_empty();
    if may_be_other {
        let _ = write!(
            words,
            ". But {} may be the limit as well: not watched (`linerate disk watch` at both ends, `linerate observe` of \
             the connection)",
            unknown.join(" or ")
        );
    }
    let severity = if may_be_other || matches!(found, Limit::Answer(_)) {
        Severity::Note
    } else {
        Severity::Limit
    };
    finding(target, &between, severity, &words)
}

fn of_one(end: &End<'_>) -> Finding {
    let seen = Seen {
        rate: end.rate,
        want: end.want,
        application: end.application,
        disk: end.disk.clone().ok().flatten(),
        is_nine: end.is_nine,
        ..Seen::default()
    };
    let words = format!(
        "one end does not tell what limits it; the candidates are: {}. `linerate explain` of both ends' records of `linerate disk \
         watch`, and of `linerate observe` of the connection, tells",
        limit::candidates(&seen, Some(end.settings))
    );
    finding(end, end.host, Severity::Note, &words)
}

fn finding(end: &End<'_>, place: &str, severity: Severity, words: &str) -> Finding {
    let (resource, minor) = (&end.settings.resource, end.minor);
    let sentence = format!("Resource {resource}, drbd{minor} ({place}): {words}");
    Draft::new("resync-rate", severity, sentence)
        .figure("rate of the resynchronisation, KiB/s", end.rate, end.host)
        .finding
}

/// What limited the connection that carried the blocks (DRBD has a second one for answers), where it was the limit. It has to be
/// observed at its sender, whose kernel alone knows.
fn path(
    [source, target]: [&End<'_>; 2],
    connections: &[Observation],
) -> Result<Option<String>, NotWatched> {
    // `ipv4 10.0.0.1:7789` there, `10.0.0.1:7789` here. One end of a connection has a port of its own choice.
    let addresses =
        [source, target].map(|end| end.settings.addresses[0].as_deref().unwrap_or_default());
    let addresses =
        addresses.map(|address| address.split_ascii_whitespace().last().unwrap_or_default());
    let host = |address: &str| address.rsplit_once(':').map(|(host, _)| host.to_owned());
    let is_of_ends = |one: &Connection| {
        let (local, remote) = (one.local.as_str(), one.remote.as_str());
        let sends_there = host(local) == host(addresses[0]) && host(remote) == host(addresses[1]);
        sends_there && (local == addresses[0] || remote == addresses[1])
    };
    let all = connections.iter().flat_map(|seen| {
        let connections = seen.connections.iter().filter(|one| is_of_ends(one));
        connections.map(move |one| (seen, one))
    });
    let largest = all.max_by_key(|(_, one)| one.moved()[0]);
    let (seen, one) = largest.ok_or(NotWatched)?;
    let run = seen.run_of(one).ok_or(NotWatched)?;
    let evidence = Evidence::of(&run);
    let verdict = crate::explain(&evidence).into_iter().next();
    let verdict = verdict.ok_or(NotWatched)?;
    let is_limit = OF_THE_CONNECTION.contains(&verdict.id.as_str()) && !is_short_of_data(&evidence);
    Ok(is_limit.then_some(verdict.sentence))
}

/// Whether the connection waited for blocks now and then: a queue that a few requests make is not the path's limit.
fn is_short_of_data(evidence: &Evidence<'_>) -> bool {
    let budgets = evidence
        .directions
        .iter()
        .filter_map(|one| one.budget.as_ref().ok());
    let mut shares = budgets.map(|budget| budget.share(Class::Application));
    !shares.any(|share| share < SHORT_OF_DATA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::block::BlockKind;
    use linerate_model::disk_watch::{DiskTotals, RequestTotals};
    use linerate_model::storage::{DrbdSync, Replication, ReplicationReading};
    use linerate_testing::disks;

    const SECONDS: u64 = 10;

    /// A disk that does so many requests of 64 KiB a second, with so many waiting, and is busy for so many ms of each.
    fn disk(name: &str, requests: u64, queue: u64, busy_ms: u64) -> WatchedDevice {
        let row = |second: u64| DiskTotals {
            write: RequestTotals {
                ios: second * requests,
                merges: 0,
                bytes: second * requests * 65_536,
                ms: second * queue * 1000,
            },
            busy_ms: second * busy_ms,
            weighted_ms: second * queue * 1000,
            ..DiskTotals::default()
        };
        let rows: Vec<DiskTotals> = (1..=SECONDS).map(row).collect();
        disks::watched(disks::device(name, BlockKind::Disk, &[]), &rows)
    }

    fn settings(resource: &str, ends: [&str; 2]) -> DrbdSettings {
        DrbdSettings {
            resource: resource.into(),
            addresses: ends.map(|end| Some(format!("ipv4 {end}:7789").into())),
            minor: Some(3),
            fill_target_kib: Some(1024.0),
            ..DrbdSettings::defaults()
        }
    }

    /// One end while so many KiB are synchronised each second, of which the target asks for `want`.
    fn end(target: bool, kib: u64, disk: WatchedDevice, settings: DrbdSettings) -> DiskWatch {
        let name = disk.device.name.to_string();
        let above = disks::device("drbd3", BlockKind::Drbd, &[&name]);
        let none: Vec<DiskTotals> = vec![DiskTotals::default(); usize::try_from(SECONDS).unwrap()];
        let mut record = disks::record(vec![disk, disks::watched(above, &none)]);
        record.host.hostname = Some(if target { "b" } else { "a" }.into());
        let at = record.devices[0].samples.at_ns().to_vec();
        let readings = at.iter().zip(0..).map(|(at, second)| ReplicationReading {
            at_ns: Nanos(*at),
            devices: vec![Drbd {
                name: "3".into(),
                connection: if target {
                    ConnectionState::SyncTarget
                } else {
                    ConnectionState::SyncSource
                },
                out_of_sync_kib: Some(10_000_000 - second * kib),
                sync: Some(DrbdSync {
                    want_kib_per_second: target.then_some(kib as f64),
                    ..DrbdSync::default()
                }),
                ..Drbd::default()
            }],
        });
        record.replication = Some(Replication {
            settings: vec![settings],
            readings: readings.collect(),
        });
        record
    }

    const A: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
    const B: [&str; 2] = ["10.0.0.2", "10.0.0.1"];

    fn idle() -> WatchedDevice {
        disk("sda", 50, 1, 300)
    }

    /// What both ends' records say together.
    fn said(watched: &[DiskWatch]) -> Finding {
        let mut all = together(watched, &[], &Given::default());
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[test]
    fn a_disk_that_always_has_requests_waiting_is_the_limit_of_its_end() {
        let source = end(false, 5000, idle(), settings("r0", A));
        let slow = end(true, 5000, disk("sdb", 80, 12, 1000), settings("r0", B));
        let finding = said(&[source.clone(), slow]);
        assert_eq!(finding.severity, Severity::Limit);
        assert!(
            finding.sentence.starts_with(
                "Resource r0, drbd3 (a → b): the disk of the target limits it: sdb of b was busy 100 % of the time with 12.0 \
                 requests waiting or in service, at 80 requests and 5.00 MiB a second; 5,000 KiB/s are synchronised"
            ),
            "{}",
            finding.sentence
        );
        // A disk that is busy with one request after the other waits for them; one whose many requests take a small part of
        // the turnaround is another's.
        for disk in [disk("sdb", 80, 1, 1000), disk("sdb", 20_000, 12, 1000)] {
            let target = end(true, 5000, disk, settings("r0", B));
            let finding = said(&[source.clone(), target]);
            assert!(
                finding.sentence.contains("c-fill-target limits it"),
                "{}",
                finding.sentence
            );
        }
    }

    #[test]
    fn what_was_not_watched_may_be_the_limit() {
        let source = end(false, 5000, idle(), settings("r0", A));
        let mut target = end(true, 5000, idle(), settings("r0", B));
        let finding = said(&[source.clone(), target.clone()]);
        assert_eq!(finding.severity, Severity::Note);
        assert!(
            finding
                .sentence
                .contains("But the connection may be the limit as well"),
            "{}",
            finding.sentence
        );
        // A link that carries far more, and no disk.
        target.devices.remove(0);
        let given = Given {
            link: Some(linerate_model::units::BitRate(10_000_000_000)),
            ..Given::default()
        };
        let finding = together(&[source, target], &[], &given).remove(0);
        assert_eq!(finding.severity, Severity::Note);
        let expected = "But the disk of the target may be the limit as well";
        assert!(finding.sentence.contains(expected), "{}", finding.sentence);
    }

    #[test]
    fn other_addresses_and_other_times_are_no_pair_and_one_end_has_candidates() {
        let source = end(false, 5000, idle(), settings("r0", A));
        let other = end(true, 5000, idle(), settings("r0", ["10.0.0.2", "10.0.0.9"]));
        let mut late = end(true, 5000, idle(), settings("r0", B));
        late.started_at_unix_ms = 3_600_000;
        assert_eq!(
            together(&[source.clone(), other, late], &[], &Given::default()),
            []
        );
        let alone = alone(&source);
        assert_eq!((alone.len(), alone[0].severity), (1, Severity::Note));
        let sentence = &alone[0].sentence;
        assert!(
            sentence.contains("the candidates are: c-max-rate"),
            "{sentence}"
        );
    }

    #[test]
    fn the_rate_is_the_median_so_that_a_ramp_does_not_hide_a_cap() {
        let capped = || DrbdSettings {
            max_rate_kib_s: Some(4096.0),
            ..settings("r0", A)
        };
        let mut source = end(false, 3950, idle(), capped());
        let addresses = settings("r0", B).addresses;
        let mut target = end(
            true,
            3950,
            idle(),
            DrbdSettings {
                addresses,
                ..capped()
            },
        );
        for record in [&mut source, &mut target] {
            let readings = &mut record.replication.as_mut().unwrap().readings;
            // The first second of a synchronisation is slow.
            let ramp = readings[0].devices[0].out_of_sync_kib.unwrap() - 3900;
            readings[0].devices[0].out_of_sync_kib = Some(ramp);
        }
        let finding = said(&[source, target]);
        assert_eq!(finding.severity, Severity::Limit);
        let expected = "c-max-rate limits it: 3,950 KiB/s are 96 %";
        assert!(finding.sentence.contains(expected), "{}", finding.sentence);
    }

    #[test]
    fn a_device_that_an_application_uses_is_limited_by_it() {
        let target = end(true, 700, idle(), settings("r0", B));
        let mut source = end(false, 700, idle(), settings("r0", A));
        for reading in &mut source.replication.as_mut().unwrap().readings {
            reading.devices[0].waiting.application = Some(1);
        }
        let finding = said(&[target, source]);
        assert!(
            finding.sentence.contains("the application limits it"),
            "{}",
            finding.sentence
        );
    }

    #[test]
    fn a_record_whose_samples_were_thinned_still_tells_of_its_disk() {
        let source = end(false, 5000, idle(), settings("r0", A));
        let mut slow = end(true, 5000, disk("sdb", 80, 12, 1000), settings("r0", B));
        // DRBD was read at other moments than the disks.
        for reading in &mut slow.replication.as_mut().unwrap().readings {
            reading.at_ns.0 += 1_000_000;
        }
        let finding = said(&[source, slow]);
        assert!(
            finding
                .sentence
                .contains("the disk of the target limits it"),
            "{}",
            finding.sentence
        );
    }
}
