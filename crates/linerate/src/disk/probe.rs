//! `linerate disk probe`: patterns of requests on a new file, and what they say of the disk.

use std::os::fd::AsFd as _;
use std::path::PathBuf;

use clap::Args;
use linerate_explain::probe::explain;
use linerate_kernel::thread::SignalFd;
use linerate_model::precision::DEFAULT_MOST;
use linerate_model::probe::{FioRun, Pattern, Probe, ProbeEnd, Raid, Spindles};
use linerate_model::transcript::Part;
use linerate_model::units::{Bytes, Nanos};
use linerate_report::probe::{ProbeView, progress};
use linerate_storage::probe::fio::{FioOutput, Job};
use linerate_storage::probe::{self, ProbeError, Progress, Request};

use crate::action::Failure;
use crate::arguments::seconds;
use crate::printer::Printer;
use crate::signals;

/// Measured time of a pattern where no other is asked for.
const USUAL_TIME: Nanos = Nanos::from_millis(10_000);

// `linerate disk probe`.
#[derive(Args, Debug, Clone)]
pub(crate) struct ProbeArguments {
    /// The directory; never a device. The file in it has no name and is gone when the probe ends, however it ends
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Only these patterns: seq-write and seq-read (1 MiB, 4 at a time), rand-read and rand-write (4 KiB, one at a time),
    /// rand-read-32 and rand-write-32 (32 at a time), sync (4 KiB and fdatasync), buffered (1 MiB, and an fsync at the end)
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', value_parser = pattern)]
    only: Vec<Pattern>,
    /// Measured seconds of each pattern, 1 to 3600, after 2 s of ramp [default: 10]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = pattern_time)]
    seconds: Option<Nanos>,
    /// End a pattern once its rate is known within ± this percentage, such as 2%; --seconds is then the limit [default: 120]
    #[arg(long, value_name = "PERCENT", value_parser = precision)]
    precision: Option<f64>,
    /// Size of the file (K, M, G of 1024), at most a tenth of what is free [default: 1G, or less where that is too much]
    #[arg(long, value_name = "BYTES")]
    size: Option<Bytes>,
    /// What all probes of a day (UTC) of one user, by one probe at a time, may write to each device that is probed: flash wears by writing [default: a tenth of the disk, at least 16G]
    #[arg(long, value_name = "BYTES")]
    budget: Option<Bytes>,
    /// Also where the directory is on another host, whose network and server the probe then loads, or on a thin pool or a snapshot, whose room it takes
    #[arg(long)]
    yes: bool,
    /// The disk is made of N rotating disks: also says what they should give. Disks and arrays do not report this reliably
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), requires = "rpm")]
    spindles: Option<u32>,
    /// Their rotations per minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1000..=100_000), requires = "spindles")]
    rpm: Option<u32>,
    /// Their mean seek time, milliseconds [default: 8.5, that of disks with 7200 rpm]
    #[arg(long, value_name = "MS", value_parser = milliseconds, requires = "spindles")]
    seek: Option<f64>,
    /// How they are joined: raid0, raid1, raid10, raid5, raid6 [default: raid0]
    #[arg(long, value_name = "LEVEL", value_parser = raid, requires = "spindles")]
    raid: Option<Raid>,
    /// Then run fio on this job file, in the same file. Options that name a file or start a program are refused
    #[arg(long, value_name = "FILE")]
    with_fio: Option<PathBuf>,
    /// Seconds after which fio is ended, 1 to 3600
    #[arg(long, value_name = "SECONDS", value_parser = pattern_time, default_value = "60", requires = "with_fio")]
    fio_seconds: Nanos,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

fn named<T: Copy>(
    all: &[T],
    name: impl Fn(T) -> &'static str,
    what: &str,
    text: &str,
) -> Result<T, String> {
    let found = all.iter().copied().find(|one| name(*one) == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
        format!("no such {what}; these are: {}", names.join(", "))
    })
}

fn pattern(text: &str) -> Result<Pattern, String> {
    named(Pattern::ALL, Pattern::name, "pattern", text)
}

fn raid(text: &str) -> Result<Raid, String> {
    named(Raid::ALL, Raid::name, "level", text)
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let sensible = number.filter(|number| (0.0..=1000.0).contains(number));
    sensible.ok_or_else(|| "expected milliseconds, such as 8.5".to_owned())
}

fn precision(text: &str) -> Result<f64, String> {
    linerate_model::plan::values::precision(text)
}

fn pattern_time(text: &str) -> Result<Nanos, String> {
    let time = seconds(text)?;
    if (Nanos::from_millis(1000)..=Nanos::from_millis(3_600_000)).contains(&time) {
        Ok(time)
    } else {
        Err("1 to 3600 seconds are possible".to_owned())
    }
}

pub(super) fn run(arguments: &ProbeArguments, printer: &Printer) -> Result<(), Failure> {
    let request = arguments.request()?;
    let signals = signals::take_stops()?;
    let (mut probe, fio) = probe::run(&request, signals.as_fd(), &mut |happens| {
        // A terminal that is gone does not end a probe.
        drop(printer.status(&status(happens)));
    })?;
    finish(&mut probe, fio, &signals, arguments.json, printer)
}

fn finish(
    probe: &mut Probe,
    fio: Option<Result<FioOutput, ProbeError>>,
    signals: &SignalFd,
    json: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    signals::release(signals, &[signals::INTERRUPT, signals::TERMINATE]);
    let mut failed = None;
    match fio {
        Some(Ok(output)) => probe.fio = Some(fio_run(&output)),
        Some(Err(error)) => failed = Some(error.into()),
        None => {}
    }
    let findings = explain(probe);
    let view = ProbeView::of(probe, &findings);
    if json {
        printer.json(&view.json())?;
    } else {
        printer.print(&view.text(printer.style()))?;
    }
    failed.or_else(|| incomplete(probe)).map_or(Ok(()), Err)
}

/// What ended it early, for the exit code; a probe whose budget was used up has done what it may.
fn incomplete(probe: &Probe) -> Option<Failure> {
    let what = match probe.ended? {
        ProbeEnd::Stopped => "the probe was stopped",
        ProbeEnd::Budget => return None,
        ProbeEnd::NoAnswer => "the disk did not answer in time",
        ProbeEnd::NoAccount => "what was written could not be kept for the daily budget",
        ProbeEnd::Failed { .. } => "the disk or the file system reported an error",
    };
    Some(Failure::Incomplete(format!(
        "{what}; the report has what was measured until then"
    )))
}

fn status(happens: Progress) -> String {
    match happens {
        Progress::Layout => "the file is written for the first time".to_owned(),
        Progress::Pattern { pattern, rate } => progress(pattern, rate),
        Progress::Fio => "fio runs".to_owned(),
    }
}

fn fio_run(output: &FioOutput) -> FioRun {
    let read = linerate_readers::read("fio", output.stdout.as_bytes());
    let parts = read.map(|transcript| transcript.parts).unwrap_or_default();
    let jobs = parts.into_iter().filter_map(|part| match part {
        Part::Fio(jobs) => Some(jobs),
        _ => None,
    });
    FioRun {
        jobs: jobs.flatten().collect(),
        exit_code: output.exit_code,
        cut: output.cut,
        said: output.stderr.trim().into(),
    }
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        let text = error.to_string();
        match error {
            ProbeError::Device { .. }
            | ProbeError::NotDirectory { .. }
            | ProbeError::TooLarge { .. }
            | ProbeError::TooSmall { .. }
            | ProbeError::Fio { .. } => Self::Usage(text),
            ProbeError::Ram { .. }
            | ProbeError::NoDisk { .. }
            | ProbeError::ReadOnly { .. }
            | ProbeError::Network { .. }
            | ProbeError::SharedRoom { .. }
            | ProbeError::TooFull { .. }
            | ProbeError::Budget { .. } => Self::Refused(text),
            ProbeError::Open { .. }
            | ProbeError::Make { .. }
            | ProbeError::Allocate { .. }
            | ProbeError::State { .. } => Self::File(text),
        }
    }
}

impl ProbeArguments {
    fn request(&self) -> Result<Request, Failure> {
        let patterns = if self.only.is_empty() {
            Pattern::ALL.to_vec()
        } else {
            self.only.clone()
        };
        let usual = self.precision.map_or(USUAL_TIME, |_| DEFAULT_MOST);
        let spindles = self.spindles.zip(self.rpm).map(|(count, rpm)| Spindles {
            count,
            rpm,
            // HGST Ultrastar 7K4000: 8.2; Deskstar 7K1000.C: 8.5 (their specifications).
            seek_ms: self.seek.unwrap_or(8.5),
            raid: self.raid.unwrap_or(Raid::Raid0),
        });
        let fio = self
            .with_fio
            .as_ref()
            .map(|path| Job::open(path).map(|job| (job, self.fio_seconds)));
        Ok(Request {
            folder: self.folder.clone(),
            patterns,
            time: self.seconds.unwrap_or(usual),
            precision: self.precision,
            size: self.size,
            network: self.yes,
            budget: self.budget,
            state: state_folder()?,
            spindles,
            fio: fio.transpose()?,
        })
    }
}

/// Where it is kept what was written today (XDG Base Directory Specification).
fn state_folder() -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).filter(|folder| !folder.is_empty());
    let state = folder("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".local/state")));
    let state = state.map(|state| state.join("linerate"));
    state.ok_or_else(|| {
        Failure::Usage(
            "neither XDG_STATE_HOME nor HOME is set: set one, so that the daily budget of bytes written can be kept"
                .to_owned(),
        )
    })
}
