//! What a record of block devices says: whether one was at its limit, and whether writes become what they should.

use linerate_analysis::disk::{Account, Busy, DiskRates, Saturation, accounts};
use linerate_model::disk_watch::{DiskWatch, WatchedDevice};
use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::units::{Bytes, Nanos, whole};

use crate::draft::Draft;

/// From this share of the time on a device is called busy.
const BUSY: f64 = 0.8;
/// Amounts of a stack agree within this share: what is under way at either end of the time is on one side only.
const NEAR: f64 = 0.05;
/// Writes below this are not added up, bytes: metadata would be a large part of them.
const WORTH_ADDING: u64 = 64 << 20;

/// What is to be said of the disks, the verdict first.
pub fn explain(record: &DiskWatch) -> Vec<Finding> {
    let mut findings: Vec<Finding> = limits(record);
    if findings.is_empty() {
        findings.extend(busiest(record));
    }
    findings.extend(accounts(&record.devices).iter().filter_map(factor));
    findings.sort_by_key(crate::rank);
    findings
}

/// Devices that showed their limit. Of a device and one below it, the lower one is the cause.
fn limits(record: &DiskWatch) -> Vec<Finding> {
    let shown: Vec<(&WatchedDevice, Saturation)> = record
        .devices
        .iter()
        .filter_map(|watched| Some((watched, Saturation::of(watched)?)))
        .collect();
    let below = |watched: &WatchedDevice| {
        shown
            .iter()
            .any(|(other, _)| watched.device.below.contains(&other.device.name))
    };
    let lowest = shown.iter().filter(|(watched, _)| !below(watched));
    lowest
        .map(|(watched, saturation)| limit(watched, *saturation))
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

/// What the busiest of the lowest devices did, where nothing showed a limit.
fn busiest(record: &DiskWatch) -> Option<Finding> {
    let is_lowest = |watched: &&WatchedDevice| {
        let mut others = record.devices.iter();
        !others.any(|other| watched.device.below.contains(&other.device.name))
    };
    let lowest = record.devices.iter().filter(is_lowest);
    let counted = lowest.filter_map(|watched| Some((watched, DiskRates::of(watched)?)));
    let (watched, rates) = counted.max_by(|(_, one), (_, other)| {
        let both = (one.busy.share(), other.busy.share());
        both.0
            .total_cmp(&both.1)
            .then(one.queue.total_cmp(&other.queue))
    })?;
    let name = watched.device.name.as_str();
    let busy = busy_text(rates.busy);
    let span = Nanos(rates.span_ns.0);
    if rates.busy.share() < BUSY {
        let sentence = format!(
            "No device was at its limit in {:.0} s: the busiest, {name}, was busy {busy} of the time, at {}",
            span.as_secs_f64(),
            did(&rates)
        );
        return figures(
            Draft::new("disk-room", Severity::Healthy, sentence),
            name,
            Some(rates),
        )
        .done();
    }
    let sentence = format!(
        "{name} was busy {busy} of the time, at {}. That does not show whether it has room: a device that works on \
         several requests at once is busy with one. A longer watch, while the load varies, shows whether more \
         requests bring more",
        did(&rates)
    );
    figures(
        Draft::new("disk-busy", Severity::Note, sentence),
        name,
        Some(rates),
    )
    .done()
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
