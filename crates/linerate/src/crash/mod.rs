//! `linerate crash`: files that a power cut damaged, and power cuts on an image.

pub(crate) mod arguments;

use std::time::{Duration, Instant};

use linerate_explain::transcript::explain;
use linerate_model::storage::{CrashRun, ScanCounts};
use linerate_model::transcript::{Given, Part, Transcript};
use linerate_model::units::grouped;
use linerate_model::watch::UnixMillis;
use linerate_report::crash::{line, matrix, report};
use linerate_report::transcript;
use linerate_storage::crash::CrashError;
use linerate_storage::crash::cut::{Bench, FileSystemKind, plan};
use linerate_storage::crash::scan::{ScanOptions, Since, scan};

use crate::action::Failure;
use crate::keep::{Keep, Kept};
use crate::place::unix_ms;
use crate::printer::Printer;
use arguments::{CrashArguments, CrashCommand, ScanArguments, SinceWords, TestArguments};

/// So many files are listed as text, and as JSON.
const LISTED: (usize, usize) = (50, 100_000);
/// How often a terminal shows how far a scan is.
const STATUS: Duration = Duration::from_millis(500);

pub(crate) fn run(arguments: &CrashArguments, printer: &Printer) -> Result<(), Failure> {
    match &arguments.command {
        CrashCommand::Scan(arguments) => run_scan(arguments, printer),
        CrashCommand::Test(arguments) => run_test(arguments, printer),
    }
}

impl From<CrashError> for Failure {
    fn from(error: CrashError) -> Self {
        let text = error.to_string();
        match error {
            CrashError::Network { .. } | CrashError::Memory { .. } | CrashError::NoLastBoot => {
                Self::Usage(text)
            }
            CrashError::NotRoot | CrashError::Kernel(_) => Self::Setting(text),
            CrashError::Folder { .. }
            | CrashError::Mount { .. }
            | CrashError::NoRoom { .. }
            | CrashError::Image { .. } => Self::File(text),
        }
    }
}

fn run_scan(arguments: &ScanArguments, printer: &Printer) -> Result<(), Failure> {
    let now = UnixMillis(unix_ms());
    let since = match arguments.since {
        SinceWords::Boot if arguments.until.is_some() => {
            let why =
                "--until needs --since TIME: with --since boot the window ends with the last boot";
            return Err(Failure::Usage(why.to_owned()));
        }
        SinceWords::Boot => Since::LastBoot,
        SinceWords::Time(from) => {
            let until = arguments.until.map_or(now, |until| until.at(now));
            let from = from.at(now);
            if from > until {
                let why = "--since is after --until, or after now: no file can have been changed between them";
                return Err(Failure::Usage(why.to_owned()));
            }
            Since::Given(from, until)
        }
    };
    let listed = if arguments.json { LISTED.1 } else { LISTED.0 };
    let options = ScanOptions {
        since,
        read: arguments.read,
        cross_mounts: arguments.cross_mounts,
        any_file_system: arguments.yes,
        limit: arguments.limit,
        most_listed: arguments.list.unwrap_or(listed),
    };
    let mut shown = Instant::now();
    let found = scan(&arguments.folder, &options, &mut |counts| {
        if shown.elapsed() >= STATUS {
            shown = Instant::now();
            // Whoever closed the output hears of it from the report.
            drop(printer.status(&status(counts)));
        }
    })?;
    printer.outcome(arguments.json, ("crash-scan", &found), || report(&found))?;
    if found.found.all() > 0 {
        return Err(Failure::Said);
    }
    if found.cut_short {
        let why = "the time limit ended the scan, and nothing was found until then";
        return Err(Failure::Incomplete(why.to_owned()));
    }
    Ok(())
}

fn status(counts: &ScanCounts) -> String {
    format!(
        "{} files, {} of the window",
        grouped(counts.files),
        grouped(counts.in_window)
    )
}

fn run_test(arguments: &TestArguments, printer: &Printer) -> Result<(), Failure> {
    let mut kinds: Vec<FileSystemKind> = Vec::new();
    for name in &arguments.fs {
        if !kinds.contains(&name.kind()) {
            kinds.push(name.kind());
        }
    }
    let cuts = plan(&kinds, arguments.window);
    let mut keep = match &arguments.keep {
        Some(path) => Some(Keep::open(path, Kept::PowerCuts)?),
        None => None,
    };
    let mut bench = Bench::set_up(&arguments.dir, &cuts)?;
    let (mut runs, mut written): (Vec<CrashRun>, std::io::Result<()>) = (Vec::new(), Ok(()));
    bench.run(&cuts, &mut |run| {
        written = if arguments.json {
            printer.json(&line(&run))
        } else {
            printer.status(&format!(
                "{} of {}: {} {}",
                runs.len() + 1,
                cuts.len(),
                run.file_system,
                run.options
            ))
        };
        runs.push(run);
        written.is_ok()
    });
    written?;
    if let Some(keep) = &mut keep {
        let lines: String = runs.iter().map(|run| line(run) + "\n").collect();
        keep.write(lines.as_bytes())?;
    }
    if !arguments.json {
        printer.print(&matrix(&runs))?;
        printer.print(&format!("\n{}", explained(&runs)))?;
    }
    match runs.iter().filter(|run| run.error.is_some()).count() {
        0 => Ok(()),
        failed if failed == runs.len() => Err(Failure::Setting(
            "no power cut could be made, for the reasons above".to_owned(),
        )),
        failed => Err(Failure::Incomplete(format!(
            "{failed} of {} power cuts could not be made, for the reasons above",
            runs.len()
        ))),
    }
}

/// What `linerate explain` says of the same cuts.
fn explained(runs: &[CrashRun]) -> String {
    let transcript = Transcript {
        name: "linerate crash test".into(),
        parts: vec![Part::Crashes(runs.to_vec())],
        not_understood: Vec::new(),
    };
    transcript::report(&explain(vec![transcript], Given::default()))
}
