//! What a record of block devices says: whether one was at its limit, and whether writes become what they should.

use linerate_analysis::disk::{Account, Busy, DiskRates, Saturation, accounts};
use linerate_model::disk_watch::{DiskWatch, WatchedDevice};
use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::units::{Bytes, Nanos, whole};
use linerate_model::words;

use crate::draft::Draft;

/// From this share of the time on a device is called busy.
const BUSY: f64 = 0.8;
/// … if it is for so many intervals in a row.
const LONG: usize = 3;
/// Requests at a time while a device is busy that are a burst, where it rests for more than half of the time.
const BURST: f64 = 8.0;
/// Requests that take this long without any that ends do not end: SCSI gives one up after 30 s, and a disk that reads a
/// sector again and again takes some seconds.
const STUCK: Nanos = Nanos::from_millis(3000);
/// Amounts of a stack agree within this share: what is under way at either end of the time is on one side only.
const NEAR: f64 = 0.05;
/// Writes below this are not added up, bytes: metadata would be a large part of them.
const WORTH_ADDING: u64 = 64 << 20;

/// What is to be said of the disks, the verdict first.
pub fn explain(record: &DiskWatch) -> Vec<Finding> {
    let mut findings: Vec<Finding> = stuck(record);
    findings.extend(limits(record));
    if findings.is_empty() {
        findings.extend(busiest(record));
    }
    findings.extend(accounts(&record.devices).iter().filter_map(factor));
    findings.extend(crate::replication::alone(record));
    findings.sort_by_key(crate::rank);
    findings
}

/// Devices whose requests do not end. Of a device and one below it, the lower one is the cause.
fn stuck(record: &DiskWatch) -> Vec<Finding> {
    let shown: Vec<(&WatchedDevice, Stuck)> = record
        .devices
        .iter()
        .filter_map(|watched| Some((watched, Stuck::of(watched)?)))
        .collect();
    let stuck = lowest(record, shown);
    let findings = stuck.into_iter().map(|(watched, stuck)| {
        let name = watched.device.name.as_str();
        let Stuck { requests, from, until } = stuck;
        let sentence = format!(
            "{name} did not answer: {requests:.0} request{} under way from {:.1} to {:.1} s, and none ended",
            words::when(requests > 1.0, "s"),
            from.as_secs_f64(),
            until.as_secs_f64()
        );
        Draft::new("disk-stuck", Severity::Fault, sentence)
            .figure("requests under way", requests, name)
            .figure("for so long, s", until.since(from).as_secs_f64(), name)
            .done()
    });
    findings.flatten().collect()
}

/// The longest time in which requests were under way and none ended.
struct Stuck {
    requests: f64,
    from: Nanos,
    until: Nanos,
}

impl Stuck {
    /// `None` where that was never so for as long as counts.
    fn of(watched: &WatchedDevice) -> Option<Self> {
        let spans = spans(watched, |rates| rates.stuck > 0.0);
        let longest = spans
            .into_iter()
            .max_by_key(|span| span.until.since(span.from))?;
        let long = longest.until.since(longest.from) >= STUCK;
        long.then_some(Self {
            requests: longest.least_stuck,
            from: longest.from,
            until: longest.until,
        })
    }
}

/// Intervals in a row in which something held.
struct Span {
    from: Nanos,
    until: Nanos,
    count: usize,
    least_stuck: f64,
}

fn spans(watched: &WatchedDevice, holds: impl Fn(&DiskRates) -> bool) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut goes_on = false;
    for (at, rates) in DiskRates::each(watched) {
        if !holds(&rates) {
            goes_on = false;
            continue;
        }
        match spans.last_mut().filter(|_| goes_on) {
            Some(span) => {
                span.until = at;
                span.count += 1;
                span.least_stuck = span.least_stuck.min(rates.stuck);
            }
            None => spans.push(Span {
                from: Nanos(at.0.saturating_sub(rates.span_ns.0)),
                until: at,
                count: 1,
                least_stuck: rates.stuck,
            }),
        }
        goes_on = true;
    }
    spans
}

/// Those below which none of the others is, at any depth.
fn lowest<'a, T>(
    record: &'a DiskWatch,
    shown: Vec<(&'a WatchedDevice, T)>,
) -> Vec<(&'a WatchedDevice, T)> {
    let names: Vec<&PlainText> = shown
        .iter()
        .map(|(watched, _)| &watched.device.name)
        .collect();
    let is_above = |watched: &WatchedDevice| {
        let below = record.below(&watched.device);
        below.iter().any(|name| names.contains(name))
    };
    let above: Vec<bool> = shown.iter().map(|(watched, _)| is_above(watched)).collect();
    let each = shown.into_iter().zip(above);
    each.filter_map(|(one, above)| (!above).then_some(one))
        .collect()
}

/// Devices that showed their limit.
fn limits(record: &DiskWatch) -> Vec<Finding> {
    let shown: Vec<(&WatchedDevice, Saturation)> = record
        .devices
        .iter()
        .filter_map(|watched| Some((watched, Saturation::of(watched)?)))
        .collect();
    let lowest = lowest(record, shown);
    lowest
        .into_iter()
        .map(|(watched, saturation)| limit(watched, saturation))
        .collect()
}

fn limit(watched: &WatchedDevice, saturation: Saturation) -> Finding {
    let name = watched.device.name.as_str();
    let rates = DiskRates::of(watched);
    let now = rates.map_or(String::new(), |rates| did(&rates));
    let sentence = match saturation {
        Saturation::QueueFull { share, places } => format!(
            "{name} was at its limit: its queue of {places} requests was full in {:.0} % of the samples, at {now}. \
             More requests wait above it",
            share * 100.0
        ),
        Saturation::RateFlat {
            requests_per_s,
            bytes_per_s,
            queue,
            await_ms,
        } => format!(
            "{name} was at its limit: with {:.1} instead of {:.1} requests waiting it did {:.0} instead of {:.0} \
             requests a second ({} instead of {} a second), and each took {:.1} instead of {:.1} ms",
            queue[1],
            queue[0],
            requests_per_s[1],
            requests_per_s[0],
            amount(bytes_per_s[1]),
            amount(bytes_per_s[0]),
            await_ms[1],
            await_ms[0],
        ),
    };
    let draft = Draft::new("disk-busy", Severity::Limit, sentence);
    figures(draft, name, rates).finding
}

fn figures(draft: Draft, name: &str, rates: Option<DiskRates>) -> Draft {
    let Some(rates) = rates else { return draft };
    draft
        .figure("busy, % of the time", rates.busy.share() * 100.0, name)
        .figure("mean queue, requests", rates.queue, name)
        .figure("reads, 1/s", rates.read.per_s, name)
        .figure("writes, 1/s", rates.write.per_s, name)
        .figure("read, byte/s", rates.read.bytes_per_s, name)
        .figure("written, byte/s", rates.write.bytes_per_s, name)
        .figure("mean time of a read, ms", rates.read.await_ms, name)
        .figure("mean time of a write, ms", rates.write.await_ms, name)
}

/// What the busiest of the lowest devices did, where nothing showed a limit. Its longest busy time counts, not the mean
/// over pauses.
fn busiest(record: &DiskWatch) -> Option<Finding> {
    let is_lowest = |watched: &&WatchedDevice| {
        let mut others = record.devices.iter();
        !others.any(|other| watched.device.below.contains(&other.device.name))
    };
    let lowest = record.devices.iter().filter(is_lowest);
    let counted: Vec<(&WatchedDevice, DiskRates)> = lowest
        .filter_map(|watched| Some((watched, DiskRates::of(watched)?)))
        .collect();
    let busy = counted.iter().filter_map(|(watched, _)| {
        let spans = spans(watched, |rates| rates.busy.share() >= BUSY);
        let long = spans.into_iter().filter(|span| span.count >= LONG);
        let longest = long.max_by_key(|span| span.until.since(span.from))?;
        let rates = DiskRates::during(watched, longest.from, longest.until)?;
        Some((*watched, longest, rates))
    });
    let longest = busy.max_by_key(|(_, span, _)| span.until.since(span.from));
    if let Some((watched, span, rates)) = longest {
        let name = watched.device.name.as_str();
        let sentence = format!(
            "{name} was busy {} of the time from {:.1} to {:.1} s, at {}. That does not show whether it has room: a \
             device that works on several requests at once is busy with one. A longer watch, while the load varies, \
             shows whether more requests bring more",
            busy_text(rates.busy),
            span.from.as_secs_f64(),
            span.until.as_secs_f64(),
            did(&rates)
        );
        let draft = Draft::new("disk-busy", Severity::Note, sentence);
        return figures(draft, name, Some(rates)).done();
    }
    let (watched, rates) = counted.into_iter().max_by(|(_, one), (_, other)| {
        let both = (one.busy.share(), other.busy.share());
        both.0
            .total_cmp(&both.1)
            .then(one.queue.total_cmp(&other.queue))
    })?;
    let name = watched.device.name.as_str();
    let seconds = rates.span_ns.as_secs_f64();
    let (busy, did) = (busy_text(rates.busy), did(&rates));
    let intervals = watched.samples.len().saturating_sub(1);
    let (severity, sentence) = if intervals < LONG {
        let sentence = format!(
            "{seconds:.1} s are too short to tell ({intervals} interval{}; {LONG} show a busy disk, nine a limit): \
             the busiest, {name}, was busy {busy} of the time, at {did}",
            words::when(intervals != 1, "s")
        );
        (Severity::Note, sentence)
    } else {
        let sentence = format!(
            "No device showed a limit in {seconds:.0} s: the busiest, {name}, was busy {busy} of the time, at {did}{}",
            bursts(&rates)
        );
        (Severity::Healthy, sentence)
    };
    figures(
        Draft::new("disk-room", severity, sentence),
        name,
        Some(rates),
    )
    .done()
}

/// What a mean over pauses hides.
fn bursts(rates: &DiskRates) -> String {
    let busy = rates.busy.share();
    // A time that the kernel rounded to nothing tells of no burst.
    let at_once = if busy > 0.0 { rates.queue / busy } else { 0.0 };
    if busy < 0.5 && at_once >= BURST {
        format!("; they come in bursts of about {at_once:.0} at a time, which `-i 100ms` shows")
    } else {
        String::new()
    }
}

/// `12 %`, or `at most 3 %`.
fn busy_text(busy: Busy) -> String {
    let percent = busy.share() * 100.0;
    match busy {
        Busy::Share(_) => format!("{percent:.0} %"),
        Busy::AtMost(_) => format!("at most {percent:.0} %"),
    }
}

/// `120 writes a second (480 KiB/s, 8.2 ms each) with 1.0 requests waiting or in service`.
fn did(rates: &DiskRates) -> String {
    let kinds = [(rates.read, "reads"), (rates.write, "writes")];
    let kinds = kinds.iter().filter(|(one, _)| one.per_s > 0.0);
    let mut parts: Vec<String> = kinds
        .map(|(one, kind)| {
            let took = one
                .await_ms
                .map_or(String::new(), |ms| format!(", {ms:.1} ms each"));
            format!(
                "{:.0} {kind} a second ({}/s{took})",
                one.per_s,
                amount(one.bytes_per_s)
            )
        })
        .collect();
    let flushes = rates.flushes_per_s.filter(|flushes| *flushes >= 0.5);
    parts.extend(flushes.map(|flushes| {
        let took = rates
            .flush_await_ms
            .map_or(String::new(), |ms| format!(" ({ms:.1} ms each)"));
        format!("{flushes:.0} flushes a second{took}")
    }));
    let discards = rates.discard.filter(|discard| discard.per_s > 0.0);
    parts.extend(discards.map(|discard| {
        format!(
            "{:.0} discards a second ({}/s)",
            discard.per_s,
            amount(discard.bytes_per_s)
        )
    }));
    if parts.is_empty() {
        parts.push("no reads or writes".to_owned());
    }
    format!(
        "{} with {:.1} requests waiting or in service",
        parts.join(" and "),
        rates.queue
    )
}

fn amount(bytes: f64) -> String {
    Bytes(whole(bytes)).to_string()
}

/// Writes that became more, or less, on the disks than the levels between make of them.
fn factor(account: &Account) -> Option<Finding> {
    let (factor, expected) = (account.factor()?, account.expected_factor()?);
    if account.top_bytes < WORTH_ADDING {
        return None;
    }
    let [least, most] = expected;
    if factor >= least * (1.0 - NEAR) && factor <= most * (1.0 + NEAR) {
        return None;
    }
    let join = |names: &[PlainText]| {
        let names: Vec<&str> = names.iter().map(PlainText::as_str).collect();
        names.join(", ")
    };
    let should = if (most - least).abs() < 0.005 {
        format!("{least:.2}")
    } else {
        format!("{least:.2} to {most:.2}")
    };
    let why = if factor < least {
        "a member is missing, or the rest was still on its way".to_owned()
    } else if !account.also_write.is_empty() {
        format!(
            "{} write to the same disks and were not watched",
            join(&account.also_write)
        )
    } else if let Some([name, doing]) = account.copying.first() {
        format!("{name} was copying meanwhile ({doing})")
    } else {
        "something else writes to these disks, or a level writes metadata of its own".to_owned()
    };
    let sentence = format!(
        "{} written to {} became {} on {}: {factor:.2} times, where {should} is expected; {why}",
        Bytes(account.top_bytes),
        join(&account.tops),
        Bytes(account.leaf_bytes),
        join(&account.leaves),
    );
    Draft::new("write-factor", Severity::Note, sentence)
        .figure(
            "written to the top, bytes",
            account.top_bytes,
            join(&account.tops),
        )
        .figure(
            "written to the disks, bytes",
            account.leaf_bytes,
            join(&account.leaves),
        )
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::block::BlockKind;
    use linerate_model::disk_watch::{DiskTotals, RequestTotals};
    use linerate_testing::disks;

    const MIB: u64 = 1 << 20;

    /// Seconds of so many writes of 1 MiB with such a mean queue.
    fn rows(seconds: &[(u64, u64)]) -> Vec<DiskTotals> {
        let mut totals = DiskTotals::default();
        let each = seconds.iter().map(|(writes, queue)| {
            totals.write = RequestTotals {
                ios: totals.write.ios + writes,
                merges: 0,
                bytes: totals.write.bytes + writes * MIB,
                ms: totals.write.ms + queue * 1000,
            };
            totals.busy_ms += (queue * 1000).min(1000);
            totals.weighted_ms += queue * 1000;
            totals
        });
        each.collect()
    }

    fn disk(name: &str, seconds: &[(u64, u64)]) -> WatchedDevice {
        disks::watched(disks::device(name, BlockKind::Disk, &[]), &rows(seconds))
    }

    fn mirror(seconds: &[(u64, u64)]) -> WatchedDevice {
        let kind = BlockKind::Md {
            level: "raid1".into(),
            layout: None,
            disks: Some(2),
            chunk: None,
            doing: Some("resync".into()),
        };
        let device = disks::device("md0", kind, &["sda", "sdb"]);
        disks::watched(device, &rows(seconds))
    }

    fn said(devices: Vec<WatchedDevice>) -> Vec<(String, Severity, String)> {
        let findings = explain(&disks::record(devices));
        let each = findings.into_iter();
        each.map(|one| (one.id, one.severity, one.sentence))
            .collect()
    }

    #[test]
    fn the_disk_below_is_the_limit_and_not_the_array() {
        let load: Vec<(u64, u64)> = (0..12)
            .map(|at| (100, if at < 6 { 2 } else { 16 }))
            .collect();
        let said = said(vec![
            mirror(&load),
            disk("sda", &load),
            disk("sdb", &[(1, 0); 12]),
        ]);
        assert_eq!(
            (said[0].0.as_str(), said[0].1),
            ("disk-busy", Severity::Limit)
        );
        assert!(
            said[0]
                .2
                .starts_with("sda was at its limit: with 16.0 instead of 2.0 requests"),
            "{}",
            said[0].2
        );
        let limits = said
            .iter()
            .filter(|(_, severity, _)| *severity == Severity::Limit);
        assert_eq!(limits.count(), 1, "{said:?}");
    }

    #[test]
    fn a_short_watch_is_no_all_clear_and_bursts_are_named() {
        let short = said(vec![disk("sda", &[(100, 8); 2])]);
        assert_eq!(
            (short[0].0.as_str(), short[0].1),
            ("disk-room", Severity::Note)
        );
        assert!(
            short[0]
                .2
                .starts_with("2.0 s are too short to tell (2 intervals"),
            "{}",
            short[0].2
        );
        let mut rows = rows(&[(1000, 12); 10]);
        for (second, row) in rows.iter_mut().enumerate() {
            row.busy_ms = (second as u64 + 1) * 80;
        }
        let bursts = said(vec![disks::watched(
            disks::device("sda", BlockKind::Disk, &[]),
            &rows,
        )]);
        assert!(
            bursts[0].2.contains("bursts of about 150 at a time"),
            "{}",
            bursts[0].2
        );
        for row in &mut rows {
            row.busy_ms = 0;
        }
        let rounded = said(vec![disks::watched(
            disks::device("sda", BlockKind::Disk, &[]),
            &rows,
        )]);
        assert!(!rounded[0].2.contains("bursts"), "{}", rounded[0].2);
    }

    #[test]
    fn requests_that_do_not_end_are_a_fault_of_the_lower_device() {
        let hangs = |mut rows: Vec<DiskTotals>| {
            for (second, row) in rows.iter_mut().enumerate() {
                row.in_flight = 2;
                row.busy_ms = (second as u64 + 1) * 1000;
            }
            rows
        };
        let none = hangs(rows(&[(0, 0); 6]));
        let disk = disks::watched(disks::device("sda", BlockKind::Disk, &[]), &none);
        let kind = BlockKind::Partition { number: 1 };
        let part = disks::watched(disks::device("sda1", kind, &["sda"]), &none);
        let said = said(vec![part, disk]);
        assert_eq!(
            (said[0].0.as_str(), said[0].1),
            ("disk-stuck", Severity::Fault)
        );
        assert_eq!(said.len(), 1, "{said:?}");
        let expected = "sda did not answer: 2 requests under way from 1.0 to 6.0 s, and none ended";
        assert_eq!(said[0].2, expected);
    }

    #[test]
    fn a_busy_time_before_a_pause_is_not_averaged_away() {
        let seconds: Vec<(u64, u64)> = (0..30)
            .map(|at| if at < 6 { (100, 8) } else { (0, 0) })
            .collect();
        let said = said(vec![disk("sda", &seconds)]);
        assert_eq!(
            (said[0].0.as_str(), said[0].1),
            ("disk-busy", Severity::Note)
        );
        assert!(
            said[0]
                .2
                .starts_with("sda was busy 100 % of the time from 0.0 to 6.0 s"),
            "{}",
            said[0].2
        );
    }

    #[test]
    fn a_busy_disk_may_have_room_and_a_quiet_one_has_it() {
        let busy = said(vec![disk("sda", &[(100, 8); 12])]);
        assert_eq!(
            (busy[0].0.as_str(), busy[0].1),
            ("disk-busy", Severity::Note)
        );
        assert!(
            busy[0].2.contains("does not show whether it has room"),
            "{}",
            busy[0].2
        );
        let quiet = said(vec![disk("sda", &[(0, 0); 12])]);
        assert_eq!(
            (quiet[0].0.as_str(), quiet[0].1),
            ("disk-room", Severity::Healthy)
        );
        assert!(quiet[0].2.contains("no reads or writes"), "{}", quiet[0].2);
    }

    #[test]
    fn writes_that_become_too_many_or_too_few_are_named_with_why() {
        let load = [(20, 0); 10];
        let right = said(vec![mirror(&load), disk("sda", &load), disk("sdb", &load)]);
        assert_eq!(right.len(), 1, "{right:?}");
        let more = [(40, 0); 10];
        let many = said(vec![mirror(&load), disk("sda", &load), disk("sdb", &more)]);
        assert_eq!(many[1].0, "write-factor");
        assert!(
            many[1]
                .2
                .contains("3.00 times, where 2.00 is expected; md0 was copying meanwhile (resync)"),
            "{}",
            many[1].2
        );
        let few = said(vec![
            mirror(&load),
            disk("sda", &load),
            disk("sdb", &[(0, 0); 10]),
        ]);
        assert!(
            few[1]
                .2
                .contains("1.00 times, where 2.00 is expected; a member is missing"),
            "{}",
            few[1].2
        );
    }
}
