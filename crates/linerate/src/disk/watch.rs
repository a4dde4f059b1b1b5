//! `linerate disk watch`: what block devices do, live and as a record.

use std::os::fd::AsFd as _;
use std::path::PathBuf;

use clap::Args;
use linerate_model::disk_watch::{DiskPlan, DiskWatch};
use linerate_model::units::Nanos;
use linerate_report::disk_watch::{self, DiskWatchView};
use linerate_storage::watch;

use crate::action::Failure;
use crate::arguments::{Format, FormatArguments, duration, seconds};
use crate::keep::{Keep, Kept};
use crate::printer::{Printer, columns, rows};
use crate::signals;

use super::replication::Watching;

/// Between two samples: the least and the most. The kernel counts busy time in ticks of up to 10 ms.
const INTERVALS: [Nanos; 2] = [Nanos::from_millis(100), Nanos::from_millis(3_600_000)];

// `linerate disk watch`.
#[derive(Args, Debug, Clone)]
pub(crate) struct DiskWatchArguments {
    /// Files, folders or devices (`/home`, `sda`, `/dev/vg0/home`); without any, all block devices
    #[arg(value_name = "PATH|DEVICE")]
    paths: Vec<String>,
    /// Seconds to watch [default: until Ctrl-C]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Nanos>,
    /// Time between two readings, 100ms to 1h
    #[arg(short = 'i', long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    interval: Nanos,
    /// Save the record to this file; `linerate show` and `explain` read it
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArguments,
}

impl DiskWatchArguments {
    fn plan(&self) -> Result<DiskPlan, String> {
        let [least, most] = INTERVALS;
        if !(least..=most).contains(&self.interval) {
            return Err(format!(
                "--interval: {} asked for; {least} to {most} is possible",
                self.interval
            ));
        }
        if self.time == Some(Nanos::ZERO) {
            return Err("-t: 0 seconds show nothing".to_owned());
        }
        Ok(DiskPlan {
            paths: self.paths.iter().map(|path| path.as_str().into()).collect(),
            time_ns: self.time,
            interval_ns: self.interval,
        })
    }
}

/// Watches until the time is over or the user stops it.
pub(super) fn run(arguments: &DiskWatchArguments, printer: &Printer) -> Result<(), Failure> {
    let plan = arguments.plan().map_err(Failure::Usage)?;
    let format = arguments.format.format();
    let signals = signals::take_stops()?;
    // Before anything is seen, so that nothing is lost to a wrong path.
    let mut keep = arguments
        .output
        .as_deref()
        .map(|path| Keep::open(path, Kept::Record))
        .transpose()?;
    let mut lost = None;
    let mut replication = Watching::default();
    let mut seen = watch::run(&plan, signals.as_fd(), &mut |devices, reading| {
        replication.look(devices, reading.to_ns);
        let shown = match format {
            Format::Json => Ok(()),
            Format::JsonStream => printer.json(&disk_watch::event(devices, reading)),
            Format::Text if printer.is_terminal() => {
                printer.table(&disk_watch::table(devices, reading, columns(), rows()))
            }
            Format::Text => {
                let heading = (reading.from_ns == Nanos::ZERO).then(disk_watch::heading);
                let heading = heading.map_or(Ok(()), |heading| printer.line(&heading));
                heading.and_then(|()| printer.line(&disk_watch::line(devices, reading)))
            }
        };
        if let Err(error) = shown {
            lost.get_or_insert(error);
        }
    })
    .map_err(|error| Failure::File(error.to_string()))?;
    let (replication, notes) = replication.finish();
    seen.replication = replication;
    seen.notes.extend(notes);
    // What follows is computing: a second Ctrl-C may end it.
    signals::release(&signals, &[signals::INTERRUPT]);
    let kept = keep
        .as_mut()
        .map_or(Ok(()), |keep| keep.write(&disk_watch::to_json(&seen)));
    show(&seen, format, printer)?;
    kept?;
    lost.map_or(Ok(()), |error| Err(Failure::Output(error)))
}

/// Prints what there is to say about a record, as `disk watch` does at its end and `show` does again.
pub(crate) fn show(seen: &DiskWatch, format: Format, printer: &Printer) -> Result<(), Failure> {
    let view = DiskWatchView::of(seen, linerate_explain::disk::explain(seen));
    match format {
        Format::Text => printer.print(&view.text())?,
        Format::Json => printer.json(&view.json())?,
        Format::JsonStream => printer.json(&view.end_line())?,
    }
    Ok(())
}
