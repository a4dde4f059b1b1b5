//! A scan for files that a power cut damaged, for people.

use linerate_model::calendar::rfc3339;
use linerate_model::storage::{
    BootEnd, CrashScan, Exposed, Exposure, LastBoot, ScanCounts, SuspectFile, SuspectKind,
    WindowSource,
};
use linerate_model::units::{Bytes, Nanos};
use linerate_model::watch::UnixMillis;

use crate::text::layout::Page;
use crate::words::{self, count, percent, plain};

/// The scan, at most 100 columns wide but for paths.
pub fn report(scan: &CrashScan) -> String {
    let mut page = Page::default();
    page.entry("Scan", &head(scan));
    page.entry("Mount", &mount(scan));
    page.entry("Window", &window(scan));
    page.entry("Exposed", &exposed(scan));
    page.entry("Found", &found(scan));
    page.entry("Older", &older(&scan.counts));
    let left_out = left_out(&scan.counts);
    if !left_out.is_empty() {
        page.entry("Left out", &left_out.join(", "));
    }
    if scan.cut_short {
        page.entry(
            "Not all",
            "the time limit ended the scan: what is not listed may be damaged too",
        );
    }
    files(&mut page, scan);
    page.finish()
}

fn head(scan: &CrashScan) -> String {
    let counts = &scan.counts;
    format!(
        "{}: {} and {} in {}",
        plain(&scan.folder),
        many(counts.files, ["file", "files"]),
        many(counts.directories, ["directory", "directories"]),
        scan.took_ns
    )
}

/// A number and what it counts, as one of them and as several.
fn many(number: u64, [one, several]: [&str; 2]) -> String {
    let what = if number == 1 { one } else { several };
    format!("{} {what}", count(number))
}

fn mount(scan: &CrashScan) -> String {
    let (Some(file_system), Some(source)) = (&scan.file_system, &scan.source) else {
        return "not known".to_owned();
    };
    let options = words::with(scan.options.as_ref(), |options| {
        format!(" ({})", plain(options).replace(',', ", "))
    });
    format!("{} on {}{options}", plain(file_system), plain(source))
}

/// `2026-11-25 03:40:12 UTC`.
fn moment(at: UnixMillis) -> String {
    let text = rfc3339(at);
    let whole = text.get(..19).unwrap_or(&text);
    format!("{} UTC", whole.replace('T', " "))
}

fn window(scan: &CrashScan) -> String {
    let window = &scan.window;
    let span = format!(
        "files changed from {} to {}: {}",
        moment(window.from_unix_ms),
        moment(window.until_unix_ms),
        count(scan.counts.in_window)
    );
    let looked_at = scan.counts.in_window.saturating_add(scan.counts.older);
    let newer = scan.counts.files.saturating_sub(looked_at);
    let newer = words::when(
        newer > 0,
        &format!(
            "; {} newer and not examined (--since, --until)",
            many(newer, ["file is", "files are"])
        ),
    )
    .to_owned();
    match &window.source {
        WindowSource::Given => format!("{span}{newer}"),
        WindowSource::LastBoot(boot) => format!("{span}{newer}. {}", last_boot(boot)),
    }
}

fn last_boot(boot: &LastBoot) -> String {
    let apart = boot
        .latest_unix_ms
        .0
        .saturating_sub(boot.earliest_unix_ms.0);
    let end = match boot.end {
        Some(BootEnd::InOrder) => {
            ". wtmp has a record of its shutdown: it ended in order, so a power cut of this host is unlikely"
        }
        Some(BootEnd::NotInOrder) => ". It did not end in order",
        None => "",
    };
    let sure = if apart > UNSURE_MS {
        ". That leaves the time of the cut open: give it with --since TIME --until TIME if you know it"
    } else {
        ""
    };
    format!(
        "The last boot ended within the {} before this one began at {}: its latest trace is {}, of {}{sure}{end}",
        time(apart),
        moment(boot.latest_unix_ms),
        plain(&boot.trace),
        moment(boot.earliest_unix_ms),
    )
}

/// A machine that starts within this time is usual; a longer gap means that the last boot left no late trace, or that the
/// machine was off.
const UNSURE_MS: u64 = 600_000;

/// `14 min`, `190 days`.
fn time(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} hours", seconds / 3600),
        _ => format!("{} days", count(seconds / 86_400)),
    }
}

fn exposed(scan: &CrashScan) -> String {
    let Some(exposure) = &scan.exposure else {
        return "how long this file system keeps writes in memory is not known".to_owned();
    };
    let files = words::with(scan.counts.exposed, |files| {
        let from = match &scan.window.source {
            WindowSource::Given => "before the end of the window",
            WindowSource::LastBoot(_) => "before the cut or later",
        };
        let rate = files_per_second(files, scan, exposure);
        format!(
            ". {} changed in the {} {from}{rate}",
            many(files, ["file was", "files were"]),
            whole_seconds(exposure.longest_ns)
        )
    });
    let delays: Vec<String> = exposure
        .delays
        .iter()
        .map(|delay| format!("{} {}", plain(&delay.setting), whole_seconds(delay.time_ns)))
        .collect();
    let lost = match exposure.exposed {
        Exposed::Data => "a file without fsync can lose its data and keep its name",
        Exposed::Whole => "a file without fsync can be old or absent, but not empty",
    };
    format!(
        "for up to {} after it was written {lost} ({}){files}",
        whole_seconds(exposure.longest_ns),
        delays.join(" + ")
    )
}

/// Where the moment of the cut is known to less than a minute, a rate means something.
fn files_per_second(files: u64, scan: &CrashScan, exposure: &Exposure) -> String {
    let window = &scan.window;
    let open = window.until_unix_ms.0.saturating_sub(window.cut_unix_ms.0);
    let seconds = exposure.longest_ns.as_secs_f64();
    if open > 60_000 || seconds <= 0.0 || files == 0 {
        return String::new();
    }
    format!(" ({:.1} a second)", files as f64 / seconds)
}

fn whole_seconds(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    if seconds.fract() == 0.0 {
        format!("{seconds:.0} s")
    } else {
        time.to_string()
    }
}

fn found(scan: &CrashScan) -> String {
    let (found, counts) = (&scan.found, &scan.counts);
    let zeros = found.zeros.map_or_else(
        || "written zeros were not looked for (--read)".to_owned(),
        |zeros| format!("{} of zeros that were written", count(zeros)),
    );
    let share = if counts.in_window == 0 {
        String::new()
    } else {
        format!(
            " ({} of the window)",
            percent(found.all() as f64 / counts.in_window as f64)
        )
    };
    format!(
        "{}{share}: {} empty, {} allocated and never written, {} with a tail of NUL; {zeros}",
        many(found.all(), ["file", "files"]),
        count(found.empty),
        count(found.no_data),
        count(found.nul_tail)
    )
}

fn older(counts: &ScanCounts) -> String {
    if counts.older == 0 {
        return "no file is older than the window, so it is not known how many are usually empty"
            .to_owned();
    }
    format!(
        "of {} older than the window, {} are empty ({}): the usual share",
        many(counts.older, ["file", "files"]),
        count(counts.older_empty),
        percent(counts.older_empty as f64 / counts.older as f64)
    )
}

fn left_out(counts: &ScanCounts) -> Vec<String> {
    [
        (
            counts.known_empty,
            "empty with names that are usually empty",
        ),
        (counts.sparse, "sparse"),
        (counts.changing, "changed meanwhile"),
        (counts.vanished, "removed meanwhile"),
        (counts.unreadable_files, "files that could not be read"),
        (
            counts.unreadable_directories,
            "directories that could not be read",
        ),
        (counts.other_mounts, "other mounts (--cross-mounts)"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| format!("{} {what}", count(number)))
    .collect()
}

fn files(page: &mut Page, scan: &CrashScan) {
    if scan.files.is_empty() {
        return;
    }
    page.gap();
    page.line(&format!(
        "{:<10}  {:>11}  {:<23}  file",
        "", "size", "changed"
    ));
    for file in &scan.files {
        page.line(&line(file));
    }
    let more = scan.found.all().saturating_sub(scan.files.len() as u64);
    if more > 0 {
        page.line(&format!("and {} more (--list)", count(more)));
    }
}

fn line(file: &SuspectFile) -> String {
    let kind = match file.kind {
        SuspectKind::Empty => "empty",
        SuspectKind::NoData => "no data",
        SuspectKind::NulTail => "NUL tail",
        SuspectKind::Zeros => "zeros",
    };
    // A program that unpacks or copies sets the one back; the other is when it did.
    let at = file.modified_unix_ms.max(file.changed_unix_ms);
    let data = words::with(file.data_end, |end| format!(" (data up to {end})"));
    format!(
        "{kind:<10}  {:>11}  {:<23}  {}{data}",
        Bytes(file.size.0).to_string(),
        moment(at),
        plain(&file.path)
    )
}
