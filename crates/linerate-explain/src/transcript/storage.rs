//! `iostat -x` and `/proc/diskstats`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;

use linerate_model::finding::{Figure, Finding, Severity};
use linerate_model::storage::{Array, Device, Diskstats, FirstBlock, Iostat, IostatBlock};
use linerate_model::transcript::{Given, Part, Transcript};
use linerate_model::units::{grouped, whole};

use crate::draft::Draft;

/// From this share of the time on a device is called busy, %.
const BUSY: f64 = 80.0;
/// From this mean queue on a busy device is full: one that serves several requests at once is busy with one.
const FULL: f64 = 2.0;
/// A mean write time above this is none, ms: the block layer gives up a request after 30 s (`BLK_MAX_TIMEOUT` of the
/// kernel allows 5 s to minutes; SCSI's and virtio's default is 30 s). So a field with few writes has not wrapped.
const LONGEST: f64 = 30_000.0;
/// Where a 32-bit field begins again.
const WRAP: f64 = 4_294_967_296.0;
/// Two figures of one thing may differ by this share: both are averages of their own clock.
const NEAR: f64 = 0.05;

/// From this share of a device's writes on merging is worth a word …
const MOSTLY: f64 = 0.9;
/// … where there are so many, a second.
const MANY: f64 = 1000.0;

/// Columns by their meaning; sysstat renamed them in version 12.
const WRITES: [&str; 1] = ["w/s"];
const MERGED_WRITES: [&str; 1] = ["wrqm/s"];
const WRITTEN: [&str; 2] = ["wMB/s", "wkB/s"];
const REQUEST: [&str; 3] = ["avgrq-sz", "areq-sz", "wareq-sz"];
const QUEUE: [&str; 2] = ["avgqu-sz", "aqu-sz"];
/// Kinds of requests with a wait of their own, from sysstat 10.1 on; flushes from 12.1.5 on.
const KINDS: [[&str; 2]; 4] = [
    ["r/s", "r_await"],
    ["w/s", "w_await"],
    ["d/s", "d_await"],
    ["f/s", "f_await"],
];
const USED: [&str; 1] = ["%util"];

/// Arrays whose `/proc/mdstat` stands in the same transcript, by name.
pub(super) type Known<'a> = HashMap<&'a str, &'a Array>;

/// The arrays of a transcript; the last reading counts.
pub(super) fn known(transcript: &Transcript) -> Known<'_> {
    let arrays = transcript.parts.iter().filter_map(|part| match part {
        Part::Arrays(held) => Some(&held.arrays),
        _ => None,
    });
    let arrays = arrays.flatten();
    arrays.map(|array| (array.name.as_str(), array)).collect()
}

pub(super) fn iostat(iostat: &Iostat, known: &Known<'_>) -> (String, Option<String>, Vec<Finding>) {
    let blocks = &iostat.blocks;
    let title = format!(
        "iostat -x: {} block(s), {} device(s)",
        blocks.len(),
        blocks.first().map_or(0, |block| block.devices.len())
    );
    let mut findings = Vec::new();
    let mut recomputed = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| blocks.get(at));
        if before.is_some_and(|before| same(before, block)) {
            recomputed.push(format!(
                "block {} is identical to the one before: the same reading twice",
                at + 1
            ));
            continue;
        }
        let boot = at == 0 && may_be_since_boot(iostat);
        findings.extend(stacked(block, known, boot));
        let busy = busy(block);
        if boot {
            recomputed.push(
                "block 1 is the mean since boot, unless iostat ran with -y or the paste begins later: no verdict on it"
                    .to_owned(),
            );
        } else {
            findings.extend(busy);
        }
        recomputed.extend(little(block));
    }
    (
        title,
        (!recomputed.is_empty()).then(|| recomputed.join("; ")),
        findings,
    )
}

/// Whether the first block may be the mean since boot: behind the banner, or before blocks that differ from it.
fn may_be_since_boot(iostat: &Iostat) -> bool {
    match iostat.first {
        FirstBlock::SinceBoot => true,
        FirstBlock::Interval => false,
        FirstBlock::Unknown => match iostat.blocks.as_slice() {
            [first, second, ..] => !same(first, second),
            _ => false,
        },
    }
}

fn same(one: &IostatBlock, other: &IostatBlock) -> bool {
    one.columns == other.columns
        && one.devices.len() == other.devices.len()
        && one
            .devices
            .iter()
            .zip(&other.devices)
            .all(|(a, b)| a.name == b.name && a.values == b.values)
}

fn value(block: &IostatBlock, device: &Device, names: &[&str]) -> Option<f64> {
    block.value(device, names).map(|printed| printed.value)
}

/// A device that others carry: md and device-mapper.
fn is_stacked(device: &Device) -> bool {
    device.name.starts_with("md")
        || device.name.starts_with("dm-")
        || device.name.starts_with("drbd")
}

fn busy(block: &IostatBlock) -> Option<Finding> {
    let used: Vec<(&Device, f64)> = block
        .devices
        .iter()
        .filter_map(|device| Some((device, value(block, device, &USED)?)))
        .filter(|(device, used)| {
            let name = &device.name;
            *used >= BUSY && !name.starts_with("md") && !name.starts_with("dm-")
        })
        .collect();
    if used.is_empty() {
        return None;
    }
    let text: Vec<String> = used
        .iter()
        .map(|(device, used)| format!("{} {used:.0} %", device.name))
        .collect();
    let (severity, verdict) = limit_of(block, &used);
    let figures = used
        .iter()
        .map(|(device, used)| Figure::new("busy, % of the time", *used, &*device.name));
    let who = who(block, used.len());
    let sentence = format!("{who}: {} of the time{verdict}", text.join(", "));
    Draft::new("disk-busy", severity, sentence)
        .figures(figures)
        .done()
}

/// Whether busy devices are the limit: those are in which requests queue.
fn limit_of(block: &IostatBlock, used: &[(&Device, f64)]) -> (Severity, String) {
    let waits = |device: &Device| value(block, device, &QUEUE).is_some_and(|queue| queue >= FULL);
    let devices = used.iter().map(|(device, _)| *device);
    let full: Vec<&Device> = devices.filter(|device| waits(device)).collect();
    if full.is_empty() {
        let text = ", which does not say that it is full: requests hardly queue";
        return (Severity::Note, text.to_owned());
    }
    let names: Vec<&str> = full.iter().map(|device| device.name.as_str()).collect();
    let which = match (full.len() == used.len(), full.len()) {
        (true, 1) => "the disk is the limit".to_owned(),
        (true, _) => "the disks are the limit".to_owned(),
        (false, _) => format!("the limit is {}, where requests queue", names.join(", ")),
    };
    let kind = requests(block, &full);
    (
        Severity::Limit,
        format!("; {which}, further {kind} will queue"),
    )
}

/// `Both members are busy`, of so many.
fn who(block: &IostatBlock, busy: usize) -> String {
    let all = block.devices.iter().filter(|device| !is_stacked(device));
    let all = all.count();
    let name = if block.devices.iter().any(is_stacked) {
        "members"
    } else {
        "disks"
    };
    match (busy, all) {
        (1, 1) => "The disk is busy".to_owned(),
        (2, 2) => format!("Both {name} are busy"),
        (one, all) if one == all => format!("All {all} {name} are busy"),
        (1, all) => format!("1 of {all} {name} is busy"),
        (some, all) => format!("{some} of {all} {name} are busy"),
    }
}

/// What devices are asked for: reads, writes or both.
fn requests(block: &IostatBlock, devices: &[&Device]) -> &'static str {
    let sum = |names: &[&str]| -> f64 {
        let each = devices.iter();
        each.filter_map(|device| value(block, device, names)).sum()
    };
    let (reads, writes) = (sum(&["r/s"]), sum(&WRITES));
    let share = reads / (reads + writes);
    match share {
        _ if share >= 0.8 => "reads",
        _ if share <= 0.2 => "writes",
        _ => "reads and writes",
    }
}

/// What the members of stacked devices wrote, a second.
struct Members {
    /// Writes and merged writes of each, as a sum.
    terms: String,
    writes: f64,
    merged: f64,
    /// The fewest and the most writes of one.
    range: (f64, f64),
    /// The fewest and the most that were merged for each written; `None` where nothing was written.
    factors: Option<(f64, f64)>,
    /// What they wrote in the unit of the column, as terms and their sum, where all have it.
    amount: Option<(String, f64)>,
    /// How many.
    count: usize,
}

impl Members {
    /// `None` where there is none, or not all have the figures.
    fn of(block: &IostatBlock, members: &[&Device]) -> Option<Self> {
        let members = || members.iter().copied();
        let each: Vec<(f64, f64)> = members()
            .map(|device| {
                Some((
                    value(block, device, &WRITES)?,
                    value(block, device, &MERGED_WRITES)?,
                ))
            })
            .collect::<Option<_>>()?;
        let amounts: Option<Vec<f64>> = members()
            .map(|device| value(block, device, &WRITTEN))
            .collect();
        let writes: Vec<f64> = each.iter().map(|(writes, _)| *writes).collect();
        let wrote = each.iter().filter(|(writes, _)| *writes > 0.0);
        let factors: Vec<f64> = wrote.map(|(writes, merged)| merged / writes).collect();
        Some(Self {
            terms: sum_of(&each, |(writes, merged)| format!("({writes} + {merged})")),
            count: writes.len(),
            range: range(&writes)?,
            writes: writes.iter().sum(),
            merged: each.iter().map(|(_, merged)| merged).sum(),
            factors: range(&factors),
            amount: amounts.map(|each| (sum_of(&each, f64::to_string), each.iter().sum())),
        })
    }
}

/// Terms of a sum that are written out; of more the number is said.
const TERMS: usize = 16;

/// A sum of terms: `1 + 2 + 3`.
fn sum_of<T>(terms: &[T], write: impl Fn(&T) -> String) -> String {
    let mut words: Vec<String> = terms.iter().take(TERMS).map(write).collect();
    if terms.len() > TERMS {
        words.push(format!("… ({} more)", terms.len() - TERMS));
    }
    words.join(" + ")
}

/// What a stacked device asks for, against what its members write.
fn stacked(block: &IostatBlock, known: &Known<'_>, boot: bool) -> Vec<Finding> {
    let (tops, below): (Vec<&Device>, Vec<&Device>) =
        block.devices.iter().partition(|device| is_stacked(device));
    let Some(members) = Members::of(block, &below) else {
        return Vec::new();
    };
    if tops.is_empty() {
        let each = block.devices.iter();
        return each
            .filter_map(|device| merged_alone(block, device))
            .collect();
    }
    let by_name: HashMap<&str, usize> = below
        .iter()
        .enumerate()
        .map(|(at, device)| (device.name.as_str(), at))
        .collect();
    let mut seen = HashSet::new();
    tops.into_iter()
        .filter_map(|top| {
            let Some(array) = known.get(top.name.as_str()) else {
                return merged(block, top, &members, boot);
            };
            // A name that stands there twice is of one array.
            if !seen.insert(top.name.as_str()) {
                return None;
            }
            let shown = array.members.iter();
            // In the order of the block.
            let shown: BTreeSet<usize> = shown
                .filter_map(|one| by_name.get(one.name.as_str()).copied())
                .collect();
            let shown: Vec<&Device> = shown.into_iter().map(|at| below[at]).collect();
            in_array(block, top, array, &Members::of(block, &shown)?)
        })
        .collect()
}

/// A stacked device whose array is known: how often each write was written, and how much of that was merged.
fn in_array(
    block: &IostatBlock,
    top: &Device,
    array: &Array,
    members: &Members,
) -> Option<Finding> {
    let writes = value(block, top, &WRITES).filter(|writes| *writes > 0.0)?;
    let copies = array.copies()?;
    let all = members.writes + members.merged;
    let shown = members.count;
    let whole = shown == array.members.len();
    let level = array.level.as_ref()?;
    let factor = all / writes;
    let should = copies as f64;
    let said = if !whole {
        format!(
            "{shown} of its {} members are shown, so the {copies} times that {level} writes cannot be checked",
            array.members.len()
        )
    } else if (factor / should - 1.0).abs() < 2.0 * NEAR {
        format!(
            "{factor:.2} times those of {}, as {level} with {copies} copies makes them",
            top.name
        )
    } else {
        format!(
            "{factor:.2} times those of {}, where {level} with {copies} copies makes {copies}: metadata, another writer, or requests \
             that were split",
            top.name
        )
    };
    let sentence = format!(
        "{}: {} = {} writes/s at its members, {said}; {:.0} % of them were merged before they reached the disks{}",
        top.name,
        members.terms,
        round(all),
        members.merged / all.max(f64::MIN_POSITIVE) * 100.0,
        if whole {
            bytes(block, top, members)
        } else {
            String::new()
        },
    );
    Draft::new("writes-merged", Severity::Note, sentence)
        .figure("writes/s requested", writes, &*top.name)
        .figure("writes/s of the members", members.writes, "members")
        .figure("merged writes/s of the members", members.merged, "members")
        .done()
}

/// `; 2.98 + 2.98 = 5.96 MB/s for 2.98, 2.00 times`.
fn bytes(block: &IostatBlock, top: &Device, members: &Members) -> String {
    let Some((whole, (terms, sum))) = value(block, top, &WRITTEN)
        .filter(|whole| *whole > 0.0)
        .zip(members.amount.as_ref())
    else {
        return String::new();
    };
    format!(
        "; {terms} = {} {} for its {whole}, {:.2} times",
        round(*sum),
        unit(block),
        sum / whole
    )
}

fn unit(block: &IostatBlock) -> &'static str {
    if block.columns.iter().any(|name| name == "wMB/s") {
        "MB/s"
    } else {
        "kB/s"
    }
}

/// A device with nothing above it that is shown, most of whose writes had been merged.
fn merged_alone(block: &IostatBlock, device: &Device) -> Option<Finding> {
    let writes = value(block, device, &WRITES).filter(|writes| *writes > 0.0)?;
    let merged = value(block, device, &MERGED_WRITES)?;
    let all = writes + merged;
    if merged < MOSTLY * all || all < MANY {
        return None;
    }
    let mb_s = value(block, device, &["wMB/s"]);
    let kib_s = mb_s
        .map(|mib| mib * 1024.0)
        .or_else(|| value(block, device, &["wkB/s"]));
    let sizes = kib_s.map_or_else(String::new, |kib| {
        format!(
            ", {} KiB each, from pieces of {} KiB",
            round(kib / writes),
            round(kib / all)
        )
    });
    let sentence = format!(
        "{}: {} of {} writes/s ({:.0} %) were merged before they reached the device, which got {} writes/s{sizes}",
        device.name,
        grouped(whole(merged)),
        grouped(whole(all)),
        merged / all * 100.0,
        round(writes),
    );
    Draft::new("writes-merged", Severity::Note, sentence)
        .figure("writes/s of the device", writes, &*device.name)
        .figure("merged writes/s of the device", merged, &*device.name)
        .done()
}

fn merged(block: &IostatBlock, top: &Device, members: &Members, boot: bool) -> Option<Finding> {
    let writes = value(block, top, &WRITES).filter(|writes| *writes > 0.0)?;
    let all = members.writes + members.merged;
    let twice = (all / writes / 2.0 - 1.0).abs() < NEAR;
    let sentence = if all / writes > 1.0 - NEAR && all / writes < 1.0 + NEAR {
        format!(
            "{} = {} writes/s are the {writes} of {} above them: {:.0} % of the members' writes had been merged{}",
            members.terms,
            round(all),
            top.name,
            members.merged / all * 100.0,
            amounts(block, top, members)
        )
    } else if twice {
        format!(
            "{} = {} writes/s are 2 times the {writes} of {} above them, as a mirror of two copies makes them: {:.0} % of the \
             members' writes had been merged",
            members.terms,
            round(all),
            top.name,
            members.merged / all * 100.0,
        )
    } else {
        // Few writes, or a mean since boot, say nothing about merging.
        if boot || writes < MANY {
            return None;
        }
        let (low, high) = members.factors?;
        let (few, many) = members.range;
        format!(
            "{writes} writes/s{} at {}, but {few:.0} to {many:.0} writes/s at each member shown: {low:.0} to \
             {high:.0} merged per write",
            size(block, top, writes),
            top.name
        )
    };
    Draft::new("writes-merged", Severity::Note, sentence)
        .figure("writes/s requested", writes, &*top.name)
        .figure("writes/s of the members", members.writes, "members")
        .figure("merged writes/s of the members", members.merged, "members")
        .done()
}

fn round(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `; 15.37 + 14.67 = 30.04 MB/s`.
fn amounts(block: &IostatBlock, top: &Device, members: &Members) -> String {
    let Some((whole, (terms, sum))) = value(block, top, &WRITTEN).zip(members.amount.as_ref())
    else {
        return String::new();
    };
    let unit = unit(block);
    let verb = if (sum - whole).abs() <= 0.02 * whole.max(1.0) {
        "as above"
    } else {
        "not the printed value above"
    };
    format!("; {terms} = {} {unit}, {verb} ({whole})", round(*sum))
}

/// ` × 4 KiB = 257.64 MiB/s (the column says MB)`.
fn size(block: &IostatBlock, top: &Device, writes: f64) -> String {
    let Some(request) = value(block, top, &REQUEST) else {
        return String::new();
    };
    let sectors = block.columns.iter().any(|name| name == "avgrq-sz");
    let kib = if sectors { request / 2.0 } else { request };
    let mib = writes * kib / 1024.0;
    let printed = value(block, top, &["wMB/s"]).map_or("", |printed| {
        if (mib - printed).abs() < 0.005 * mib {
            " (the column says MB)"
        } else {
            ""
        }
    });
    format!(" × {} KiB = {mib:.2} MiB/s{printed}", round(kib))
}

fn range(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    Some((low, values.iter().copied().fold(low, f64::max)))
}

/// Little's law: requests a second times their wait is the queue.
fn little(block: &IostatBlock) -> Option<String> {
    let mut best: Option<(f64, String)> = None;
    for device in &block.devices {
        let waits = waits(block, device)?;
        let queue = value(block, device, &QUEUE)?;
        let expected: f64 = waits
            .iter()
            .map(|(requests, wait)| requests * wait / 1000.0)
            .sum();
        if queue < 0.5 || expected <= 0.0 {
            continue;
        }
        let off = (expected / queue - 1.0).abs();
        let verb = if off < 0.15 {
            "agrees with"
        } else {
            "disagrees with"
        };
        let tautology = if block
            .columns
            .iter()
            .any(|name| name == "svctm" || name == "await")
        {
            ""
        } else {
            "; from Linux 5.0 on no check, as the queue is computed from these times"
        };
        let text = format!(
            "queue and wait of {}: Little's law {verb} the queue ({} = {expected:.2}, printed {queue}){tautology}",
            device.name,
            waits
                .iter()
                .map(|(requests, wait)| format!("{} × {wait} ms", round(*requests)))
                .collect::<Vec<_>>()
                .join(" + ")
        );
        // The device with the shortest queue says most: its figures have most digits that count.
        if best.is_none() || off >= 0.15 {
            best = Some((off, text));
        }
    }
    best.map(|(_, text)| text)
}

/// Requests a second and their wait, ms: of all together where that is printed, else of each kind that came.
fn waits(block: &IostatBlock, device: &Device) -> Option<Vec<(f64, f64)>> {
    if let Some(wait) = value(block, device, &["await"]) {
        let requests = value(block, device, &["r/s"])? + value(block, device, &WRITES)?;
        return Some(vec![(requests, wait)]);
    }
    let kinds = KINDS.iter().filter_map(|[rate, wait]| {
        Some((
            value(block, device, &[rate])?,
            value(block, device, &[wait])?,
        ))
    });
    let kinds: Vec<(f64, f64)> = kinds.filter(|(requests, _)| *requests > 0.0).collect();
    (!kinds.is_empty()).then_some(kinds)
}

pub(super) fn diskstats(lines: &[Diskstats], known: &Known<'_>, given: &Given) -> Vec<Finding> {
    let mut last: HashMap<&str, &Diskstats> = HashMap::new();
    let mut written: HashMap<&str, u64> = HashMap::new();
    let mut between = Vec::new();
    for line in lines {
        let Some(before) = last.insert(&line.device, line) else {
            continue;
        };
        // Counters that go back are those of another device under the same name, or wrapped: no difference.
        let grown = |at: usize| line.fields[at].checked_sub(before.fields[at]);
        if let Some((sectors, writes)) = grown(6).zip(grown(4)) {
            written.insert(&line.device, sectors);
            between.extend((writes > 0).then_some((line, sectors, writes)));
        }
    }
    if between.is_empty() {
        return lines.iter().flat_map(|line| disk(line, given)).collect();
    }
    // Between two readings is what happened; since boot is not.
    let arrays = known.iter().filter_map(|(name, array)| {
        let top = *written.get(name).filter(|sectors| **sectors > 0)?;
        let each = array
            .members
            .iter()
            .map(|one| written.get(one.name.as_str()));
        let below: u64 = each.map(Option::<&u64>::copied).sum::<Option<u64>>()?;
        Some(factor(array, top, below))
    });
    let mut findings: Vec<Finding> = arrays.collect();
    findings.sort_by(|one, other| one.sentence.cmp(&other.sentence));
    findings.extend(between.iter().map(|(line, sectors, writes)| {
        let each = *sectors as f64 / *writes as f64;
        let sentence = format!(
            "{}: {} writes between the two readings, {} sectors each ({} KiB)",
            line.device,
            grouped(*writes),
            round(each),
            round(each / 2.0)
        );
        Draft::new("write-size", Severity::Note, sentence)
            .figure("sectors a write", each, format!("line {}", line.line))
            .finding
    }));
    findings
}

/// What an array wrote to its members for what was written to it, between two readings.
fn factor(array: &Array, top: u64, below: u64) -> Finding {
    let factor = below as f64 / top as f64;
    let level = array.level.as_ref().map_or("", |level| level.as_str());
    let should = match array.copies() {
        Some(copies) if (factor / copies as f64 - 1.0).abs() < NEAR => {
            format!("as {level} with {copies} copies should have")
        }
        Some(copies) => format!("where {level} with {copies} copies should have {copies}"),
        None => format!("for {level}"),
    };
    let sentence = format!(
        "{}: {} sectors were written to it between the two readings, and {} to its {} members: factor {factor:.2}, {should}",
        array.name,
        grouped(top),
        grouped(below),
        array.members.len(),
    );
    Draft::new("writes-merged", Severity::Note, sentence)
        .figure("written below for each written above", factor, &*array.name)
        .finding
}

fn disk(line: &Diskstats, given: &Given) -> Vec<Finding> {
    let field = |at: usize| line.fields.get(at).copied().unwrap_or(0) as f64;
    let (writes, sectors, spent, weighted) = (field(4), field(6), field(7), field(10));
    let place = format!("line {}", line.line);
    let mut findings = Vec::new();
    if writes > 0.0 {
        let each = sectors / writes;
        let exact = line.fields[4].checked_mul(whole(each)) == Some(line.fields[6]);
        let size = if exact {
            format!("exactly {each:.0} sectors a write")
        } else {
            format!("{each:.1} sectors a write")
        };
        let mut sentence = format!("{}: {size} ({} KiB)", line.device, round(each / 2.0));
        let mut figures = vec![Figure::new("sectors a write", each, &place)];
        if spent > 0.0 && spent < WRAP {
            let _ = write!(sentence, "; mean write time {:.1} ms", spent / writes);
            figures.push(Figure::new(
                "mean write time without a wrap, ms",
                spent / writes,
                &place,
            ));
            let more = WRAP / writes;
            if more < LONGEST {
                let _ = write!(
                    sentence,
                    " plus k × {more:.1} ms if that 32-bit field wrapped k times"
                );
                figures.push(Figure::new("more for each wrap, ms", more, &place));
            }
        }
        let draft = Draft::new("write-size", Severity::Note, sentence).figures(figures);
        findings.push(draft.finding);
    }
    if (0.5 * WRAP..WRAP).contains(&weighted) {
        findings.push(weighted_field(line, weighted, given));
    }
    findings
}

/// The weighted time grows by the queue depth each millisecond.
fn weighted_field(line: &Diskstats, weighted: f64, given: &Given) -> Finding {
    let period = |depth: f64| WRAP / 1000.0 / depth;
    let at = match given.queue_depth.filter(|depth| *depth > 0.0) {
        Some(depth) => format!("it would wrap every {:.0} s at a queue depth of {depth:.0}", period(depth)),
        None => "it wraps every 4,294,967 s divided by the queue depth, which iostat prints (--queue-depth)".to_owned(),
    };
    let share = weighted / WRAP * 100.0;
    let sentence = format!(
        "{}: the weighted-time field is at {share:.0} % of 2^32; {at}: do not trust mean queue depths from this field",
        line.device,
    );
    let place = format!("line {}", line.line);
    Draft::new("counter-wrap", Severity::Fault, sentence)
        .figure("weighted time, % of 2^32", share, place)
        .figure(
            "time between two wraps, s",
            given.queue_depth.map(period),
            "given",
        )
        .finding
}

/// The mean queue of each device: of its last block first.
pub(super) fn queues(iostat: &Iostat) -> impl Iterator<Item = (&str, f64)> {
    iostat.blocks.iter().rev().flat_map(|block| {
        let devices = block.devices.iter();
        devices.filter_map(|device| Some((device.name.as_str(), value(block, device, &QUEUE)?)))
    })
}
