//! The one place that writes to standard output and standard error: data there, talk here.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::action::Failure;

/// Writes whole lines; the last line of a terminal may be a status that the next line replaces.
#[derive(Debug)]
pub(crate) struct Printer {
    terminal: bool,
    status: Mutex<bool>,
}

impl Printer {
    pub(crate) fn new() -> Self {
        Self {
            terminal: io::stdout().is_terminal(),
            status: Mutex::new(false),
        }
    }

    /// Whether somebody watches.
    pub(crate) const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Writes text to standard output, as it is.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        self.clear_status(&mut out)?;
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Writes a line to standard output.
    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        self.clear_status(&mut out)?;
        writeln!(out, "{text}")?;
        out.flush()
    }

    /// Shows a line on a terminal that the next one replaces.
    pub(crate) fn status(&self, text: &str) -> io::Result<()> {
        if !self.terminal {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        write!(out, "\r\x1b[K{text}")?;
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = true;
        out.flush()
    }

    /// Tells a person something on standard error.
    pub(crate) fn tell(&self, text: &str) {
        drop(self.clear_status(&mut io::stdout().lock()));
        // Nobody is left to be told that standard error is gone.
        drop(writeln!(io::stderr().lock(), "{text}"));
    }

    /// Says why the program failed.
    pub(crate) fn complain(&self, failure: &Failure) {
        let silent = matches!(failure, Failure::Said)
            || matches!(failure, Failure::Inner { why, .. } if why.is_empty())
            || matches!(failure, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe);
        if !silent {
            self.tell(&format!("linerate: error: {failure}"));
        }
    }

    fn clear_status(&self, out: &mut impl Write) -> io::Result<()> {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *status) {
            write!(out, "\r\x1b[K")?;
            out.flush()?;
        }
        Ok(())
    }
}

/// Columns of the terminal.
pub(crate) fn columns() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0).max(20))
}
