//! `linerate observe`: watch connections of other programs, show them live, explain them, keep the record.

use std::os::fd::AsFd as _;

use linerate_engine::observe;
use linerate_explain::explain;
use linerate_model::observation::{Observation, Sighting, Watch};
use linerate_report::observation::{self, ObservationView, Watching};

use crate::action::Failure;
use crate::arguments::{Format, ObserveArguments};
use crate::keep::{Keep, Kept};
use crate::printer::{Printer, columns, rows};
use crate::signals;

/// Watches until the time is over, the process has ended or the user stops it.
pub(crate) fn run(arguments: &ObserveArguments, printer: &Printer) -> Result<(), Failure> {
    let watch = arguments.watch().map_err(Failure::Usage)?;
    let format = arguments.format.format();
    let signals = signals::take_stops()?;
    // Before anything is seen, so that nothing is lost to a wrong path.
    let mut keep = arguments
        .output
        .as_deref()
        .map(|path| Keep::open(path, Kept::Record))
        .transpose()?;
    let mut live = Live {
        printer,
        format,
        watching: Watching::default(),
        failed: None,
    };
    let seen = observe::run(&watch, signals.as_fd(), &mut |sighting| {
        live.show(sighting);
    })?;
    // What follows is computing: a second Ctrl-C may end it.
    signals::release(&signals, &[signals::INTERRUPT]);
    let lost = live.failed.take();
    let kept = keep
        .as_mut()
        .map_or(Ok(()), |keep| keep.write(&observation::to_json(&seen)));
    show(&seen, format, printer)?;
    kept?;
    lost.map_or(Ok(()), |error| Err(Failure::Output(error)))?;
    if seen.connections.is_empty() {
        return Err(Failure::Incomplete(nobody(&watch)));
    }
    Ok(())
}

/// Prints what there is to say about an observation, as `observe` does at its end and `show` does again.
pub(crate) fn show(seen: &Observation, format: Format, printer: &Printer) -> Result<(), Failure> {
    let view = ObservationView::of(seen, &mut explain);
    match format {
        Format::Text => printer.print(&view.text())?,
        Format::Json => printer.json(&view.json())?,
        Format::JsonStream => printer.json(&view.end_line())?,
    }
    Ok(())
}

/// Why there is nothing to report, and what to do.
fn nobody(watch: &Watch) -> String {
    let advice = if watch.pid.is_some() {
        "does the process own its connections itself, in this network namespace?"
    } else if watch.listening && !watch.ports.is_empty() {
        "is the port listened on here? leave --listen away for connections that this host opens"
    } else if watch.ports.is_empty() && watch.peers.is_empty() {
        "none came up in this network namespace"
    } else {
        "is it the port or address of the connection itself (`ss -tn` lists them), in this network namespace?"
    };
    format!("no matching TCP connection was seen: {advice}")
}

/// Shows what happens while it happens.
struct Live<'a> {
    printer: &'a Printer,
    format: Format,
    watching: Watching,
    failed: Option<std::io::Error>,
}

impl Live<'_> {
    fn show(&mut self, sighting: &Sighting) {
        if let Sighting::Warning { text } = sighting {
            self.printer.tell(&format!("linerate: warning: {text}"));
        }
        if self.watching.begins_to_wait(sighting) {
            self.printer
                .tell("linerate: waiting: no matching connection yet");
        }
        let shown = match self.format {
            Format::Json => Ok(()),
            Format::JsonStream => self.printer.json(&observation::line(sighting)),
            Format::Text if self.printer.is_terminal() => self
                .watching
                .table(sighting, columns(), rows())
                .map_or(Ok(()), |lines| self.printer.table(&lines)),
            Format::Text => self
                .watching
                .line(sighting)
                .map_or(Ok(()), |text| self.printer.line(&text)),
        };
        if let Err(error) = shown {
            self.failed.get_or_insert(error);
        }
    }
}
