//! The one place that writes to standard output and standard error: data there, talk here.
//!
//! What comes from outside is plain already ([`linerate_model::plain_text`]). Should anything else that a terminal obeys
//! have got into a text, it ends here as its visible escape; only our own colours pass, and those where there are any.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::PoisonError;

use linerate_model::plain_text::{for_terminal, json_for_terminal};
use linerate_report::text::{Charset, Style};
use serde::Serialize;

use crate::action::Failure;

/// Writes whole lines; the last line of a terminal may be a status that the next line replaces.
#[derive(Debug)]
pub(crate) struct Printer {
    terminal: bool,
    /// Whether a report may have colours where standard output goes.
    colours: bool,
    /// Lines of status that stand at the end, the cursor on the last of them.
    status: Mutex<usize>,
}

impl Printer {
    pub(crate) fn new() -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            terminal,
            colours: style_here(terminal).has_colour(),
            status: Mutex::new(0),
        }
    }

    /// Whether somebody watches.
    pub(crate) const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// How a report is set where standard output goes: for the terminal there, or plainly.
    pub(crate) fn style(&self) -> Style {
        style_here(self.terminal)
    }

    /// What may be written of a text to standard output.
    fn fit<'t>(&self, text: &'t str) -> Cow<'t, str> {
        for_terminal(text, self.colours)
    }

    /// Writes text to standard output.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        self.write(&self.fit(text), "")
    }

    /// Writes a line to standard output.
    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        self.write(&self.fit(text), "\n")
    }

    /// Writes JSON and a line end to standard output.
    pub(crate) fn json(&self, document: &str) -> io::Result<()> {
        self.write(&json_for_terminal(document), "\n")
    }

    /// Writes a row of a table for other programs (CSV) to standard output, with the line end that such tables have.
    pub(crate) fn row(&self, row: &str) -> io::Result<()> {
        self.write(&for_terminal(row, false), "\r\n")
    }

    /// Writes what came out: as a document of this kind, or as text.
    pub(crate) fn outcome(
        &self,
        json: bool,
        (kind, fields): (&str, &impl Serialize),
        text: impl FnOnce() -> String,
    ) -> io::Result<()> {
        if json {
            self.json(&linerate_report::json::of_kind(kind, fields))
        } else {
            self.print(&text())
        }
    }

    fn write(&self, text: &str, end: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        self.clear_status(&mut out)?;
        out.write_all(text.as_bytes())?;
        out.write_all(end.as_bytes())?;
        out.flush()
    }

    /// Shows a line on a terminal that the next one replaces.
    pub(crate) fn status(&self, text: &str) -> io::Result<()> {
        if !self.terminal {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        write!(out, "\r\x1b[K{}", self.fit(text))?;
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
        out.write_all(self.fit(&lines.join("\n")).as_bytes())?;
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = lines.len();
        out.flush()
    }

    /// Tells a person something on standard error.
    pub(crate) fn tell(&self, text: &str) {
        // Only a terminal has a status. Any other output is not waited for, where another thread may be in a write
        // to it that blocks.
        if self.terminal {
            drop(self.clear_status(&mut io::stdout().lock()));
        }
        // Nobody is left to be told that standard error is gone.
        drop(writeln!(
            io::stderr().lock(),
            "{}",
            for_terminal(text, false)
        ));
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

/// The style where standard output goes, which is a terminal or is not.
fn style_here(terminal: bool) -> Style {
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    style(terminal.then(columns), environment)
}

/// The style for a terminal of so many columns, or for a file or a pipe.
///
/// The locale is the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set (POSIX.1-2024, 8.2); where none is, UTF-8
/// is taken for granted, as files have it. Colours are for terminals, and for those whose user does not forbid
/// them (<https://no-color.org>) and that have any.
fn style(terminal: Option<usize>, environment: impl Fn(&str) -> Option<String>) -> Style {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(&environment);
    let unicode = locale.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    });
    let dumb = environment("TERM").is_none_or(|name| name == "dumb");
    let plain = Style::plain().with_charset(if unicode {
        Charset::Unicode
    } else {
        Charset::Ascii
    });
    match terminal {
        Some(columns) => plain
            .of_columns(columns)
            .with_colour(!dumb && environment("NO_COLOR").is_none()),
        None => plain,
    }
}

pub(crate) fn rows() -> usize {
    terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0).max(4))
}

pub(crate) fn columns() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0).max(20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(terminal: Option<usize>, set: &[(&str, &str)]) -> Style {
        style(terminal, |name| {
            let found = set.iter().find(|(of, _)| *of == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_pipe_is_plain_whatever_the_terminal_would_be() {
        assert_eq!(of(None, &[("TERM", "xterm-256color")]), Style::plain());
        assert_eq!(of(None, &[("LANG", "de_DE.UTF-8")]), Style::plain());
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        let ascii = |set: &[(&str, &str)]| of(Some(80), set).charset() == Charset::Ascii;
        assert!(ascii(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(ascii(&[("LANG", "de_DE.ISO-8859-1")]));
        assert!(!ascii(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!ascii(&[]));
        assert_eq!(of(None, &[("LC_ALL", "POSIX")]).charset(), Charset::Ascii);
    }

    #[test]
    fn colours_need_a_terminal_that_has_them_and_a_user_who_wants_them() {
        let xterm = ("TERM", "xterm");
        assert!(of(Some(120), &[xterm]).has_colour());
        for set in [&[xterm, ("NO_COLOR", "1")][..], &[("TERM", "dumb")], &[]] {
            assert!(!of(Some(120), set).has_colour(), "{set:?}");
        }
        assert_eq!(of(Some(120), &[xterm]).columns(), 120);
    }
}
