//! Where iperf3's lines go: standard output or `--logfile`, with `--timestamps` before them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::PoisonError;

use linerate_kernel::{clock, process};
use linerate_model::plain_text::{for_terminal, json_for_terminal};

use crate::action::Failure;
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
            json: common.json,
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

    /// Writes text.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        let Some(log) = &self.log else {
            return if self.json {
                self.printer.json(text.trim_end_matches('\n'))
            } else {
                self.printer.print(text)
            };
        };
        // Whoever reads the file does so on a terminal.
        let text = if self.json {
            json_for_terminal(text)
        } else {
            for_terminal(text, false)
        };
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(text.as_bytes())
    }
}
