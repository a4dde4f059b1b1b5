//! What a probe of a disk shows: caps, bursts, caches, what a sync costs, and whether the disks give what they should.

use linerate_analysis::probe::{
    self, Expected, FLAT, FLAT_REQUESTS, Figures, LEAST_HALF_ROTATION, Shape,
};
use linerate_model::block::BlockDevice;
use linerate_model::finding::{Finding, Severity};
use linerate_model::probe::{Direct, Pattern, PatternRun, Probe};
use linerate_model::units::{Bytes, Nanos, grouped, percent, whole};

use crate::draft::Draft;
use crate::facts::case::capital;

/// In the order of the alphabet.
pub(crate) const IDS: [&str; 6] = [
    "disk-cap",
    "disk-shared",
    "fsync-cost",
    "page-cache",
    "spindles",
    "write-cache",
];
/// Two rates that differ by no more than this are one: what a rate of a pattern agrees to with other tools.
const SAME: f64 = 0.02;
/// Others that moved more than this share of a pattern's bytes change its figures by more than a probe is exact to.
const SHARED: f64 = 0.05;

/// A pattern with its figures.
struct Measured<'a> {
    run: &'a PatternRun,
    figures: Figures,
}

/// What a probe shows, the verdict first.
pub fn explain(probe: &Probe) -> Vec<Finding> {
    let precise = probe.precision.is_some();
    let measured: Vec<Measured<'_>> = probe
        .runs
        .iter()
        .filter_map(|run| {
            let figures = Figures::of(run, precise)?;
            Some(Measured { run, figures })
        })
        .collect();
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(page_cache(probe));
    findings.extend(shared(&measured));
    // Rates that the page cache made say nothing of the disk.
    if matches!(probe.direct, Direct::Yes { .. }) {
        findings.extend(caps(probe, &measured));
        findings.extend(steps(&measured));
        findings.extend(measured.iter().filter_map(|one| spindles(probe, one)));
        if findings.is_empty() {
            findings.extend(no_cap(probe, &measured));
        }
    }
    findings.extend(write_cache(probe, &measured));
    findings.extend(sync_cost(&measured));
    if findings.is_empty() {
        findings.push(nothing(&measured));
    }
    findings
}

fn find<'a, 'b>(measured: &'b [Measured<'a>], pattern: Pattern) -> Option<&'b Measured<'a>> {
    measured.iter().find(|one| one.run.pattern == pattern)
}

fn megabytes(bytes_per_second: f64) -> String {
    let megabytes = bytes_per_second / 1e6;
    if megabytes < 99.95 {
        format!("{megabytes:.1} MB/s")
    } else {
        format!("{megabytes:.0} MB/s")
    }
}

fn page_cache(probe: &Probe) -> Option<Finding> {
    let why = match probe.direct {
        Direct::Yes { .. } => return None,
        Direct::Kept => {
            "the file system accepts O_DIRECT and keeps the pages in memory all the same"
        }
        Direct::Refused => "the file system has no direct I/O",
        Direct::TooCoarse { .. } => {
            "the file system has direct I/O only in blocks larger than 4 KiB"
        }
    };
    let sentence = format!(
        "{why}: rates of reads and writes are those of the page cache; only the patterns sync and buffered, which wait for the disk, show the disk"
    );
    Draft::new("page-cache", Severity::Fault, sentence).done()
}

/// Rates that are flat and the same for two patterns that a disk would serve at different rates.
fn caps(probe: &Probe, measured: &[Measured<'_>]) -> Vec<Finding> {
    let pairs = [
        (
            [Pattern::RandomReadDeep, Pattern::RandomWriteDeep],
            "reads and writes of 4 KiB, 32 at a time, have",
        ),
        (
            [Pattern::RandomRead, Pattern::RandomReadDeep],
            "reads of 4 KiB have, one and 32 at a time,",
        ),
        (
            [Pattern::RandomWrite, Pattern::RandomWriteDeep],
            "writes of 4 KiB have, one and 32 at a time,",
        ),
        (
            [Pattern::SequentialRead, Pattern::SequentialWrite],
            "reads and writes of 1 MiB have",
        ),
    ];
    // A medium that rotates reads and writes one after the other at the same rate.
    let like_streams = rotates(probe).is_some();
    let mut findings: Vec<Finding> = Vec::new();
    for (patterns, what) in pairs {
        let [Some(one), Some(other)] = patterns.map(|pattern| find(measured, pattern)) else {
            continue;
        };
        // One cap of requests is said once.
        let random = one.run.pattern.random();
        if (random && !findings.is_empty()) || (!random && like_streams) {
            continue;
        }
        findings.extend(cap(one, other, what));
    }
    findings
}

fn cap(one: &Measured<'_>, other: &Measured<'_>, what: &str) -> Option<Finding> {
    let level = |of: &Measured<'_>| second_half(&of.figures);
    let flat = |of: &Measured<'_>| of.figures.shape == Shape::Flat;
    let (rate, second) = (level(one)?, level(other)?);
    let same = (rate - second).abs() <= SAME * rate.max(second);
    if !(flat(one) && flat(other) && same) {
        return None;
    }
    let mean = f64::midpoint(rate, second);
    let (cap, unit, value) = if one.run.pattern.random() {
        let iops = whole(mean);
        (format!("{} IOPS", grouped(iops)), "IOPS", mean)
    } else {
        let bytes = mean * one.run.pattern.block() as f64;
        (megabytes(bytes), "bytes/s", bytes)
    };
    let flatness = if FLAT * mean < FLAT_REQUESTS {
        "two requests a second"
    } else {
        "1 %"
    };
    let sentence = format!(
        "A cap of {cap} limits this disk: {what} the same rate, flat to {flatness} in the second half. A medium serves them differently, so it is a limit of the volume or of the path to it: of a cloud volume or a hypervisor, choose a higher one"
    );
    Draft::new("disk-cap", Severity::Limit, sentence)
        .figure(format!("cap, {unit}"), value, "this process")
        .done()
}

/// Mean of the second half of the measured seconds, requests a second.
fn second_half(figures: &Figures) -> Option<f64> {
    let seconds = figures.measured_seconds();
    let half = &seconds[seconds.len() / 2..];
    let sum: u64 = half.iter().sum();
    (!half.is_empty()).then(|| sum as f64 / half.len() as f64)
}

fn steps(measured: &[Measured<'_>]) -> Vec<Finding> {
    let step = |one: &Measured<'_>| {
        let Shape::StepDown {
            after_seconds,
            before,
            after,
        } = one.figures.shape
        else {
            return None;
        };
        // What began elsewhere is known to be the cause.
        if share_of_others(one.run).is_some_and(|(_, share)| share > SHARED) {
            return None;
        }
        let cause = if one.run.pattern.writes() {
            "a write cache that is full, or a burst allowance, heat, or load that began elsewhere"
        } else {
            "a burst allowance, heat, or load that began elsewhere"
        };
        let sentence = format!(
            "{} fell from {} to {} IOPS after {after_seconds} s: {cause}. Plan with the lower rate; a longer run (--seconds 60) shows whether it stays",
            one.run.pattern.name(),
            grouped(whole(before)),
            grouped(whole(after)),
        );
        Draft::new("disk-cap", Severity::Limit, sentence)
            .figure("rate before the step, IOPS", before, "this process")
            .figure("rate after it, IOPS", after, "this process")
            .done()
    };
    measured.iter().filter_map(step).collect()
}

/// What the disk moved for others, and that as a share of the pattern's bytes.
fn share_of_others(run: &PatternRun) -> Option<(Bytes, f64)> {
    let others = probe::by_others(run)?;
    Some((others, others.0 as f64 / run.bytes.0.max(1) as f64))
}

/// A rate that is flat was not disturbed.
fn shared(measured: &[Measured<'_>]) -> Option<Finding> {
    let worst = measured
        .iter()
        .filter(|one| one.figures.shape != Shape::Flat)
        .filter_map(|one| share_of_others(one.run).map(|(others, share)| (one, others, share)))
        .max_by(|(_, _, one), (_, _, other)| one.total_cmp(other))?;
    let (one, others, share) = worst;
    if share <= SHARED {
        return None;
    }
    let sentence = format!(
        "Others used the disk as well: during {} it moved {others} that were not the probe's, {} of the probe's {}. {}The figures are too low by an unknown amount; repeat on a quiet disk",
        one.run.pattern.name(),
        percent(share),
        one.run.bytes,
        names(one.run, others),
    );
    Draft::new("disk-shared", Severity::Fault, sentence)
        .figure("moved for others, bytes", others.0, "/proc/diskstats")
        .done()
}

/// Who read or wrote meanwhile, on whatever disk, where that explains at least half of what the disk moved for others. What was
/// written before and comes from the page cache now has no process.
fn names(run: &PatternRun, others: Bytes) -> String {
    let sum: u64 = run.busy.iter().map(|one| one.read.0 + one.written.0).sum();
    if sum < others.0 / 2 {
        return "Processes that this user sees did not move that much meanwhile: other users, or data written before. "
            .to_owned();
    }
    let names: Vec<String> = run
        .busy
        .iter()
        .map(|one| {
            let sum = Bytes(one.read.0.saturating_add(one.written.0));
            format!("{} (pid {}, {sum})", one.program, one.pid)
        })
        .collect();
    format!("Most was read and written by {}. ", names.join(", "))
}

/// A disk that is said to rotate: by the user, or by itself.
fn rotates(probe: &Probe) -> Option<(Nanos, String)> {
    if let Some(spindles) = probe.spindles {
        let half = Nanos::from_secs_f64(30.0 / f64::from(spindles.rpm));
        return Some((half, format!("at {} rpm", grouped(spindles.rpm.into()))));
    }
    let reports = |device: &Option<BlockDevice>| {
        let device = device.as_ref();
        device.is_some_and(|device| device.rotational == Some(true))
    };
    (reports(&probe.place.device) || reports(&probe.place.disk)).then(|| {
        let which = "of the fastest disks, at 15,000 rpm".to_owned();
        (LEAST_HALF_ROTATION, which)
    })
}

fn write_cache(probe: &Probe, measured: &[Measured<'_>]) -> Option<Finding> {
    let sync = find(measured, Pattern::Sync)?;
    let median = sync.figures.p50_ns?;
    let (half, which) = rotates(probe)?;
    if median >= half {
        return None;
    }
    let reported = if probe.spindles.is_none() {
        ". In a virtual machine this may mean nothing: its disks often claim to rotate"
    } else {
        ""
    };
    let sentence = format!(
        "A write cache answers syncs: half of them took {median} or less, and half a rotation {which} takes {half}. Synced data is lost in a power cut unless this cache has a battery or flash{reported}"
    );
    Draft::new("write-cache", Severity::Note, sentence)
        .figure(
            "median of write and fdatasync, ns",
            median.0,
            "this process",
        )
        .done()
}

fn sync_cost(measured: &[Measured<'_>]) -> Option<Finding> {
    let sync = find(measured, Pattern::Sync);
    let buffered = find(measured, Pattern::Buffered)
        .and_then(|one| Some((&one.figures, one.figures.handed_over_bytes_per_second?)));
    let mut parts = Vec::new();
    if let Some(one) = sync {
        let median = one.figures.p50_ns?;
        parts.push(format!(
            "a program that syncs each write of 4 KiB makes {} a second (median {median})",
            grouped(whole(one.figures.iops))
        ));
    }
    if let Some((figures, handed)) = buffered {
        parts.push(format!(
            "the page cache took a file at {}, and with the fsync it was on disk at {}",
            megabytes(handed),
            megabytes(figures.bytes_per_second)
        ));
    }
    if parts.is_empty() {
        return None;
    }
    let sentence = capital(&parts.join("; "));
    Draft::new("fsync-cost", Severity::Note, sentence)
        .figure(
            "synced writes a second",
            sync.map(|one| one.figures.iops),
            "this process",
        )
        .figure(
            "buffered until on disk, bytes/s",
            buffered.map(|(figures, _)| figures.bytes_per_second),
            "this process",
        )
        .done()
}

fn spindles(probe: &Probe, one: &Measured<'_>) -> Option<Finding> {
    let spindles = probe.spindles?;
    let Expected { low, high } = probe::expected(probe, one.run.pattern)?;
    let iops = one.figures.iops;
    let range = format!("{} to {} IOPS", grouped(whole(low)), grouped(whole(high)));
    let disks = format!(
        "{} × {} rpm as {} should give {range}",
        spindles.count,
        grouped(spindles.rpm.into()),
        spindles.raid.name()
    );
    let name = one.run.pattern.name();
    let got = grouped(whole(iops));
    let (severity, sentence) = if iops < low {
        let disks_worth = iops / low * f64::from(spindles.count);
        (
            Severity::Limit,
            format!(
                "{name}: {got} IOPS, and {disks}: that is what {disks_worth:.1} of them give. A disk is missing or slow, the array is rebuilding, or others use it"
            ),
        )
    } else if iops > high {
        (
            Severity::Note,
            format!(
                "{name}: {got} IOPS, and {disks}: more than disks give, so a cache answered. A larger --size shows the disks"
            ),
        )
    } else {
        (
            Severity::Healthy,
            format!(
                "{name}: {got} IOPS, and {disks}, depending on how far the heads move in the file"
            ),
        )
    };
    Draft::new("spindles", severity, sentence)
        .figure("measured, IOPS", iops, "this process")
        .figure("with a mean seek, IOPS", low, "formula")
        .figure("without seeks, IOPS", high, "formula")
        .done()
}

/// That no cap and no step showed, or that none could; `None` where no pattern passed the page cache by.
fn no_cap(probe: &Probe, measured: &[Measured<'_>]) -> Option<Finding> {
    let mut direct = measured.iter().filter(|one| one.run.direct);
    let longest = direct.clone().map(|one| one.run.measured_ns).max()?;
    let (severity, sentence) = if direct.all(|one| one.figures.shape == Shape::Unknown) {
        let needed = 2 * probe::LEAST_SECONDS;
        let sentence = format!(
            "This probe was too short to tell a cap: {needed} s needed for a pattern, and the longest was measured for {longest} (--seconds {needed}, without --precision)"
        );
        (Severity::Note, sentence)
    } else {
        let sentence = format!(
            "No cap and no step showed in {longest} per pattern: the rates are the disk's own, as far as a file of {} tells (a cache of the disk or its controller may hold it)",
            probe.file,
        );
        (Severity::Healthy, sentence)
    };
    Draft::new("disk-speed", severity, sentence).done()
}

/// The verdict where there is no other.
fn nothing(measured: &[Measured<'_>]) -> Finding {
    let sentence = if measured.is_empty() {
        "Nothing was measured, so this probe says nothing of the disk"
    } else {
        "What was measured does not show the disk: no pattern passed the page cache by, and no fsync ended"
    };
    Draft::new("disk-speed", Severity::Note, sentence.to_owned()).finding
}

#[cfg(test)]
mod tests;
