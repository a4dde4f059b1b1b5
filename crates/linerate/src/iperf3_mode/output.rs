//! Where iperf3's lines go: standard output or `--logfile`, with `--timestamps` before them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::PoisonError;

use linerate_kernel::{clock, process};
use linerate_model::plain_text::{for_terminal, json_for_terminal};
use linerate_model::units::Nanos;
use linerate_model::words;
use linerate_report::iperf3::ErrorCode;

use super::failure::Wrong;
use crate::iperf3_arguments::Iperf3Common;
use crate::printer::Printer;

/// The sink of all lines.
pub(super) struct Output {
    printer: Printer,
    log: Option<Mutex<File>>,
    timestamps: Option<String>,
    json: bool,
}

impl Output {
    /// Opens the log file, to which lines are added, as iperf3 does.
    pub(super) fn open(common: &Iperf3Common) -> Result<Self, Wrong> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let log = common.logfile.as_ref().map(|path| {
            open(path).map(Mutex::new).map_err(|error| {
                Wrong::of_kernel(ErrorCode::LOGFILE, &error)
                    .and(format!("cannot open {}: {error}", path.display()))
            })
        });
        Ok(Self {
            printer: Printer::new(),
            log: log.transpose()?,
            timestamps: common.timestamps.clone(),
            json: common.json,
        })
    }

    pub(super) fn lines(&self, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.write(&self.text(lines))
    }

    /// Lines as they are written, with the time of now where that was asked for.
    pub(super) fn text(&self, lines: &[String]) -> String {
        if self.json {
            return stamped(lines, None, Nanos::ZERO);
        }
        stamped(lines, self.timestamps.as_deref(), clock::wall())
    }

    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        if self.log.is_some() {
            return self.write_log(text, self.json);
        }
        if self.json {
            self.printer.json(text.trim_end_matches('\n'))
        } else {
            self.printer.print(text)
        }
    }

    /// Whether lines go to a file.
    pub(super) fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// What went wrong, as text: to the log file where there is one, else to standard error.
    pub(super) fn complain(&self, wrong: &Wrong) {
        let text = stamped(&wrong.lines(), self.timestamps.as_deref(), clock::wall());
        // Nobody is left to be told that the log cannot be written.
        if self.log.is_none() || self.write_log(&text, false).is_err() {
            self.printer.tell(text.trim_end_matches('\n'));
        }
    }

    fn write_log(&self, text: &str, json: bool) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        // Whoever reads the file does so on a terminal.
        let text = if json {
            json_for_terminal(text)
        } else {
            for_terminal(text, false)
        };
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(text.as_bytes())
    }
}

/// Lines with their ends, each behind the time `at` where there is a format for it.
pub(super) fn stamped(lines: &[String], format: Option<&str>, at: Nanos) -> String {
    let stamp = words::with(format, |format| process::local_label(at, format));
    let mut text = String::new();
    for line in lines {
        text.push_str(&stamp);
        text.push_str(line);
        text.push('\n');
    }
    text
}
