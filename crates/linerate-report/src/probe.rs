//! A probe of a disk: as text for people, and as one JSON document.

use linerate_analysis::probe::{self, Figures, unsteady};
use linerate_model::block::BlockDevice;
use linerate_model::finding::Finding;
use linerate_model::probe::{Direct, Engine, FioRun, NoRing, Pattern, PatternRun, Probe, ProbeEnd};
use linerate_model::storage::FioWay;
use linerate_model::units::{Bytes, Nanos};
use serde::Serialize;

use crate::text::layout::Page;
use crate::text::{Charset, Style};
use crate::view::FindingView;
use crate::words::{self, count, percent, plain, whole};

/// A probe with its figures and what was found.
#[derive(Debug, Serialize)]
pub struct ProbeView<'a> {
    #[serde(flatten)]
    probe: &'a Probe,
    /// One for each of `runs`, null where nothing was measured.
    figures: Vec<Option<Figures>>,
    findings: &'a [Finding],
}

impl<'a> ProbeView<'a> {
    /// With the findings about it, the verdict first.
    pub fn of(probe: &'a Probe, findings: &'a [Finding]) -> Self {
        let precise = probe.precision.is_some();
        let figures = probe.runs.iter().map(|run| Figures::of(run, precise));
        Self {
            probe,
            figures: figures.collect(),
            findings,
        }
    }

    /// One JSON document, without a newline at its end.
    pub fn json(&self) -> String {
        crate::json::of_kind("disk_probe", self)
    }

    /// For people, at most 100 columns wide.
    pub fn text(&self, style: Style) -> String {
        let probe = self.probe;
        let mut page = Page::default();
        page.entry("Disk", &place(probe));
        page.entry("File", &file(probe));
        page.gap();
        page.line(&format!(
            "{:<14}{:>9}{:>11}{:>9}{:>10}{:>10}{:>10}{:>10}  by second",
            "pattern", "MB/s", "IOPS", "± 95 %", "p50", "p99", "p99.9", "max"
        ));
        for (run, figures) in probe.runs.iter().zip(&self.figures) {
            row(&mut page, run, figures.as_ref(), style);
        }
        page.gap();
        remarks(&mut page, probe);
        if let Some(fio) = &probe.fio {
            fio_rows(&mut page, fio);
        }
        for (number, finding) in self.findings.iter().enumerate() {
            let is_verdict = number == 0;
            let view = FindingView {
                finding,
                is_verdict,
            };
            let text = format!("{}: {}", finding.id, plain(&finding.sentence));
            page.entry(view.label(), &text);
        }
        page.entry("Written", &wear(probe));
        page.finish()
    }
}

/// The line of a terminal while a pattern runs.
pub fn progress(pattern: Pattern, requests_per_second: f64) -> String {
    format!(
        "{}: {} IOPS, {} MB/s",
        pattern.name(),
        count(whole(requests_per_second)),
        megabytes(requests_per_second * pattern.block() as f64)
    )
}

fn megabytes(bytes_per_second: f64) -> String {
    let megabytes = bytes_per_second / 1e6;
    if megabytes < 9.995 {
        format!("{megabytes:.2}")
    } else if megabytes < 99.95 {
        format!("{megabytes:.1}")
    } else {
        format!("{megabytes:.0}")
    }
}

fn place(probe: &Probe) -> String {
    let place = &probe.place;
    let kind = words::known(place.file_system.as_ref(), |kind| plain(kind));
    let at = words::with(place.mounted_at.as_ref(), |at| {
        format!(" mounted at {}", plain(at))
    });
    let on = match (&place.device, &place.disk) {
        (Some(device), Some(disk)) => format!(" on {} of {}", plain(&device.name), described(disk)),
        (Some(device), None) => format!(" on {}", described(device)),
        _ if place.network => ", on another host or by FUSE".to_owned(),
        _ => ", whose device the kernel does not name".to_owned(),
    };
    format!(
        "{}: {kind}{at}{on}, {} free",
        plain(&place.folder),
        place.free
    )
}

fn described(device: &BlockDevice) -> String {
    let size = words::with(device.size, |size| format!(", {size}"));
    let model = words::with(device.model.as_ref(), |model| format!(", {}", plain(model)));
    let rotates = match device.rotational {
        Some(true) => ", reports to rotate",
        Some(false) => ", reports not to rotate",
        None => "",
    };
    format!(
        "{} ({}{size}{model}{rotates})",
        plain(&device.name),
        device.number
    )
}

fn file(probe: &Probe) -> String {
    let direct = match probe.direct {
        Direct::Yes { .. } => "direct I/O".to_owned(),
        Direct::Kept => {
            "no direct I/O: the file system accepts O_DIRECT and keeps the pages".to_owned()
        }
        Direct::Refused => "no direct I/O: the file system has none for this file".to_owned(),
        Direct::TooCoarse { offset } => {
            format!("no direct I/O: only in blocks of {}", Bytes(offset))
        }
    };
    let engine = probe.runs.iter().map(|run| run.engine);
    let engine = engine
        .filter(|engine| *engine != Engine::OneThread)
        .map(by)
        .next();
    let engine = words::with(engine, |engine| format!(", {engine}"));
    let layout = words::with(probe.layout, |layout| {
        let rate = layout.bytes.0 as f64 / layout.time_ns.as_secs_f64().max(1e-9);
        format!("; written for the first time at {} MB/s", megabytes(rate))
    });
    format!("{} of random data, {direct}{engine}{layout}", probe.file)
}

fn by(engine: Engine) -> String {
    let because = match engine {
        Engine::IoUring => return "io_uring".to_owned(),
        Engine::OneThread => return "one thread".to_owned(),
        Engine::Threads { because } => because,
    };
    let why = match because {
        NoRing::Forbidden => {
            "io_uring is forbidden (kernel.io_uring_disabled or a filter of system calls)"
                .to_owned()
        }
        NoRing::Absent => "this kernel, or a filter of system calls, has no io_uring".to_owned(),
        NoRing::TooOld => "this kernel's io_uring is older than Linux 5.6".to_owned(),
        NoRing::NoMemory => "io_uring may not lock its memory (ulimit -l)".to_owned(),
        NoRing::Other { errno } => format!("io_uring failed ({})", error(errno)),
    };
    format!("threads with pread and pwrite, because {why}")
}

fn error(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}

fn row(page: &mut Page, run: &PatternRun, figures: Option<&Figures>, style: Style) {
    let name = run.pattern.name();
    let Some(figures) = figures else {
        let why = words::known(run.ended, why);
        page.wrapped(
            &format!("{name:<14}"),
            &format!("nothing was measured: {why}"),
        );
        return;
    };
    let interval = figures.iops_high.map_or_else(String::new, |high| {
        percent((high - figures.iops) / figures.iops)
    });
    let time = |time: Option<Nanos>| time.map_or_else(String::new, |time| time.to_string());
    page.line(&format!(
        "{name:<14}{:>9}{:>11}{interval:>9}{:>10}{:>10}{:>10}{:>10}  {}",
        megabytes(figures.bytes_per_second),
        count(whole(figures.iops)),
        time(figures.p50_ns),
        time(figures.p99_ns),
        time(figures.p999_ns),
        time(Some(figures.max_ns)),
        steps(&figures.by_second, style),
    ));
    for text in row_remarks(run, figures) {
        page.wrapped("    ", &text);
    }
}

/// The rate by second, each as a share of the highest; at most 14, of which each is then the mean of several.
fn steps(by_second: &[u64], style: Style) -> String {
    const MOST: usize = 14;
    let letters: &[char] = match style.charset() {
        Charset::Unicode => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        Charset::Ascii => &['.', ':', '-', '=', '+', '*', '#', '@'],
    };
    let each = by_second.len().div_ceil(MOST).max(1);
    let sums: Vec<u64> = by_second
        .chunks_exact(each)
        .map(|some| some.iter().sum())
        .collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let letter = |sum: u64| {
        let top = letters.len() - 1;
        let at = whole(sum as f64 / most as f64 * top as f64);
        letters[usize::try_from(at).unwrap_or(top).min(top)]
    };
    sums.into_iter().map(letter).collect()
}

fn row_remarks(run: &PatternRun, figures: &Figures) -> Vec<String> {
    let mut remarks = Vec::new();
    if let (Some(handed), Some(sync)) = (figures.handed_over_bytes_per_second, run.sync_ns) {
        remarks.push(format!(
            "{} were handed over at {} MB/s, and the fsync took {sync}; the rate above is until they were on disk",
            run.bytes,
            megabytes(handed)
        ));
    }
    if run.pattern == Pattern::Buffered && run.sync_ns.is_none() {
        remarks.push("the fsync did not end: the rate above is the page cache's".to_owned());
    }
    if let Some(unsteady) = unsteady(run).filter(|_| run.ended.is_none()) {
        remarks.push(format!("not steady: {}", unsteady.reason()));
    }
    if let Some(others) = probe::by_others(run).filter(|others| others.0 > 0)
        && others.0 as f64 >= run.bytes.0 as f64 / 100.0
    {
        let share = percent(others.0 as f64 / run.bytes.0.max(1) as f64);
        remarks.push(format!(
            "meanwhile the disk moved {others} for others ({share} of what it moved for the probe)"
        ));
    }
    if let Some(ended) = run.ended {
        remarks.push(format!("ended early: {}", why(ended)));
    }
    remarks
}

fn why(ended: ProbeEnd) -> String {
    match ended {
        ProbeEnd::Stopped => "it was stopped".to_owned(),
        ProbeEnd::Budget => {
            "its share of the day's budget of bytes written is used up (--budget)".to_owned()
        }
        ProbeEnd::NoAnswer => "the disk did not answer in time".to_owned(),
        ProbeEnd::NoAccount => {
            "how much was written could not be kept, and without it there is no daily budget"
                .to_owned()
        }
        ProbeEnd::Failed { errno } => format!("the kernel reported: {}", error(errno)),
    }
}

fn remarks(page: &mut Page, probe: &Probe) {
    if let Some(text) = unseen(probe) {
        page.entry("Others", &text);
    }
    if let Some(ended) = probe.ended {
        let text = format!(
            "early: {}; what was measured until then is above",
            why(ended)
        );
        page.entry("Ended", &text);
    }
}

/// What is not known of those who use the disk as well.
fn unseen(probe: &Probe) -> Option<String> {
    let place = &probe.place;
    let counted = place.disk.as_ref().or(place.device.as_ref())?;
    let below: Vec<String> = counted.below.iter().map(|name| plain(name)).collect();
    (!below.is_empty()).then(|| {
        format!(
            "only those that use {} were looked for: those that use {} otherwise do not show",
            plain(&counted.name),
            below.join(", ")
        )
    })
}

fn fio_rows(page: &mut Page, fio: &FioRun) {
    let exit = match fio.exit_code {
        Some(0) => String::new(),
        Some(code) => format!(", exit code {code}"),
        None => ", ended by a signal".to_owned(),
    };
    let cut = words::when(fio.cut, ", ended early (--fio-seconds, --budget or Ctrl-C)");
    page.entry(
        "fio",
        &format!("{} jobs in the same file{exit}{cut}", fio.jobs.len()),
    );
    for job in &fio.jobs {
        for way in &job.ways {
            page.wrapped(
                "            ",
                &format!("{}: {}", plain(&job.name), fio_way(way)),
            );
        }
    }
    if fio.exit_code != Some(0) && !fio.said.is_empty() {
        page.wrapped("            ", &plain(&fio.said));
    }
    page.gap();
}

fn fio_way(way: &FioWay) -> String {
    let p99 = words::with(way.p99_ns, |p99| format!(", p99 {}", Nanos(whole(p99))));
    format!(
        "{} {} MB/s, {} IOPS{p99}",
        plain(&way.name),
        megabytes(way.bytes_per_second),
        count(whole(way.iops))
    )
}

fn wear(probe: &Probe) -> String {
    let wear = &probe.wear;
    let all = Bytes(wear.before.0.saturating_add(wear.written.0));
    format!(
        "{} by this probe, {all} today of a daily budget of {} (--budget)",
        wear.written, wear.budget
    )
}

#[cfg(test)]
mod tests {
    use linerate_model::block::BlockKind;
    use linerate_model::latency::Latencies;
    use linerate_model::probe::{ProbePlace, SCHEMA_VERSION, Wear};
    use linerate_testing::disks::device;

    use super::*;

    fn run(pattern: Pattern, requests: u64) -> PatternRun {
        let mut latency = Latencies::default();
        (0..requests).for_each(|number| latency.add(Nanos(1_000_000 + number * 100)));
        PatternRun {
            pattern,
            direct: true,
            engine: Engine::Threads {
                because: NoRing::Forbidden,
            },
            ticks: vec![requests / 200; 240],
            ramp_ticks: 40,
            measured_ns: Nanos::from_millis(10_000),
            requests,
            latency,
            bytes: Bytes(requests * pattern.block()),
            sync_ns: None,
            device: None,
            busy: Vec::new(),
            cached: None,
            ended: None,
        }
    }

    fn probe() -> Probe {
        let mut cut = run(Pattern::RandomRead, 0);
        cut.ended = Some(ProbeEnd::Failed { errno: 5 });
        Probe {
            schema_version: SCHEMA_VERSION,
            started_at_unix_ms: 0,
            kernel: None,
            place: ProbePlace {
                folder: "/data\x1b[2J".into(),
                file_system: Some("ext4".into()),
                mounted_at: Some("/".into()),
                size: Bytes(1 << 40),
                free: Bytes(1 << 39),
                network: false,
                device: None,
                disk: None,
            },
            direct: Direct::Refused,
            file: Bytes(1 << 30),
            layout: None,
            precision: None,
            spindles: None,
            runs: vec![run(Pattern::SequentialWrite, 5000), cut],
            ended: Some(ProbeEnd::Failed { errno: 5 }),
            fio: Some(FioRun {
                jobs: Vec::new(),
                exit_code: Some(1),
                cut: false,
                said: "fio: no such job".into(),
            }),
            wear: Wear {
                written: Bytes(5000 << 20),
                before: Bytes(1 << 30),
                budget: Bytes(16 << 30),
            },
        }
    }

    #[test]
    fn the_text_says_how_and_what_is_missing() {
        let probe = probe();
        let text = ProbeView::of(&probe, &[]).text(Style::plain());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            r"/data\u{1b}[2J: ext4 mounted at /, whose device the kernel does not name",
            "no direct I/O: the file system has none",
            "because io_uring is forbidden",
            "seq-write 524 500 0 % 1.26 ms",
            "rand-read nothing was measured: the kernel reported: Input/output error",
            "fio: no such job",
            "5.88 GiB today of a daily budget of 16.0 GiB",
        ] {
            assert!(flat.contains(part), "no '{part}' in:\n{text}");
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }

    #[test]
    fn devices_below_the_one_that_was_looked_at_are_named() {
        let mut probe = probe();
        probe.place.device = Some(device("sda1", BlockKind::Partition { number: 1 }, &["sda"]));
        probe.place.disk = Some(device("sda", BlockKind::Disk, &[]));
        assert_eq!(unseen(&probe), None);
        probe.place.disk = None;
        probe.place.device = Some(device("md0", BlockKind::Disk, &["sda2", "sdb2"]));
        let text = ProbeView::of(&probe, &[]).text(Style::plain());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let part = "Others only those that use md0 were looked for: those that use sda2, sdb2 otherwise do not show";
        assert!(flat.contains(part), "{text}");
    }

    #[test]
    fn the_document_has_the_raw_counts_and_the_figures() {
        let probe = probe();
        let document = ProbeView::of(&probe, &[]).json();
        let value: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(value["kind"], "disk_probe");
        assert_eq!(value["figures"][0]["iops"], 500.0);
        assert_eq!(value["figures"][1], serde_json::Value::Null);
        assert_eq!(value["runs"][0]["pattern"], "seq-write");
        let read: Probe = serde_json::from_value(value).unwrap();
        assert_eq!(read, probe);
    }

    #[test]
    fn a_long_run_has_few_steps() {
        let text = steps(&(1..=120).collect::<Vec<u64>>(), Style::plain());
        assert!(text.chars().count() <= 14, "{text}");
        assert_eq!(steps(&[0, 7], Style::plain()), "▁█");
    }
}
