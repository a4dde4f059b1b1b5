//! A terminal that does not show what is typed.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The terminal of this process.
const TERMINAL: &str = "/dev/tty";

/// Shows `prompt` on the terminal of this process and reads a line from it without showing what is typed. It waits for
/// that as long as it takes.
///
/// # Errors
/// `ENXIO` where the process has no terminal.
pub fn read_hidden(prompt: &str) -> io::Result<String> {
    let mut terminal = OpenOptions::new().read(true).write(true).open(TERMINAL)?;
    let hidden = Hidden::on(terminal.try_clone()?)?;
    terminal.write_all(prompt.as_bytes())?;
    let mut line = String::new();
    BufReader::new(&terminal).read_line(&mut line)?;
    drop(hidden);
    // The line end that was typed was not shown either.
    terminal.write_all(b"\n")?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Shows what is typed again once it ends.
struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    fn on(terminal: File) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing anyway.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
