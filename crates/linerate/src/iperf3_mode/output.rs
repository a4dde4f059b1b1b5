//! Where iperf3's lines go: standard output or `--logfile`, with `--timestamps` before them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::PoisonError;

use linerate_kernel::{clock, process};

use crate::action::Failure;
use crate::iperf3_arguments::Iperf3Common;
use crate::printer::Printer;

/// The sink of all lines.
pub(super) struct Output {
    printer: Printer,
    log: Option<Mutex<File>>,
    timestamps: Option<String>,
}

impl Output {
    /// Opens the log file, to which lines are added, as iperf3 does.
    pub(super) fn open(common: &Iperf3Common, printer: &Printer) -> Result<Self, Failure> {
        let log = match &common.logfile {
            None => None,
            Some(path) => {
                let opened = OpenOptions::new().create(true).append(true).open(path);
                Some(Mutex::new(opened.map_err(|error| {
                    super::fail(
                        printer,
                        &format!("unable to open log file {}: {error}", path.display()),
                    )
                })?))
            }
        };
        let timestamps = common.timestamps.clone().filter(|_| !common.json);
        Ok(Self {
            printer: Printer::new(),
            log,
            timestamps,
        })
    }

    /// Writes lines.
    pub(super) fn lines(&self, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.write(&self.text(lines))
    }

    /// Lines as they are written, with the time of now where that was asked for.
    pub(super) fn text(&self, lines: &[String]) -> String {
        let stamp = self.timestamps.as_ref().map_or_else(String::new, |format| {
            process::local_label(clock::wall(), format)
        });
        let mut text = String::new();
        for line in lines {
            text.push_str(&stamp);
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Writes text as it is.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        match &self.log {
            Some(log) => log
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .write_all(text.as_bytes()),
            None => self.printer.print(text),
        }
    }
}
