//! The one place that writes to standard output and standard error: data there, talk here.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::action::Failure;

/// Writes whole lines; the last line of a terminal may be a status that the next line replaces.
#[derive(Debug)]
pub(crate) struct Printer {
    terminal: bool,
    /// Lines of status that stand at the end, the cursor on the last of them.
    status: Mutex<usize>,
}

impl Printer {
    pub(crate) fn new() -> Self {
        Self {
            terminal: io::stdout().is_terminal(),
            status: Mutex::new(0),
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
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = 1;
        out.flush()
    }

    /// Shows lines on a terminal that the next ones replace; there must be fewer than it has rows.
    pub(crate) fn table(&self, lines: &[String]) -> io::Result<()> {
        if !self.terminal {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        self.clear_status(&mut out)?;
        write!(out, "{}", lines.join("\n"))?;
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = lines.len();
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
        let lines = std::mem::take(&mut *status);
        if lines > 0 {
            // To the first of them, and all below it erased.
            if lines > 1 {
                write!(out, "\x1b[{}A", lines - 1)?;
            }
            write!(out, "\r\x1b[J")?;
            out.flush()?;
        }
        Ok(())
    }
}

/// Rows of the terminal.
pub(crate) fn rows() -> usize {
    terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0).max(4))
}

/// Columns of the terminal.
pub(crate) fn columns() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0).max(20))
}
