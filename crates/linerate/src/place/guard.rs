//! What restores settings when the process that changed them is gone without having done it: a second process that
//! holds the old values and waits for the end of a pipe.
//!
//! It is in a session of its own, so that Ctrl-C does not reach it, and in the same network namespace. A machine that
//! loses power needs none of it: nothing that is set here outlives the kernel.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use linerate_kernel::process;
use linerate_model::tuning::Object;
use linerate_tune::live::Live;
use linerate_tune::settings::{Saved, Settings};

use crate::action::Failure;

/// The running program's own file, even where it was replaced since.
const OURSELVES: &str = "/proc/self/exe";
const READY: &str = "ready\n";
const DONE: &str = "done\n";

/// A process that restores what it was told of, unless it hears that it is not needed.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    tell: Option<ChildStdin>,
}

impl Guard {
    /// Starts it with these old values; it holds them when this returns, and the lock until it ends.
    pub(super) fn start(
        saved: &[(Object, Saved)],
        lock: Option<BorrowedFd<'_>>,
    ) -> Result<Self, Failure> {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::Setting(format!(
                "cannot start the process that restores the settings if this one is killed: {why}; nothing was changed"
            ))
        };
        let mut command = Command::new(OURSELVES);
        command
            .arg0("linerate")
            .arg("settings-guard")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child =
            process::spawn_detached(&mut command, lock).map_err(|error| failed(&error))?;
        let (Some(mut tell), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(&"it has no pipes"));
        };
        let text = serde_json::json!(saved).to_string();
        writeln!(tell, "{text}").map_err(|error| failed(&error))?;
        let mut said = String::new();
        BufReader::new(out)
            .read_line(&mut said)
            .map_err(|error| failed(&error))?;
        if said != READY {
            return Err(failed(&"it did not take the old values"));
        }
        Ok(Self {
            child,
            tell: Some(tell),
        })
    }

    /// All is as it was: it has nothing to do.
    pub(super) fn dismiss(mut self) {
        if let Some(mut tell) = self.tell.take() {
            // Where it is gone already, nothing waits that could restore.
            drop(tell.write_all(DONE.as_bytes()));
        }
        drop(self.child.wait());
    }
}

/// Holds old values from standard input until its end, and restores them unless told that it is not needed.
pub(crate) fn stand() -> Result<(), Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::Setting(format!("cannot read the old values: {why}"))
    };
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| failed(&error))?;
    let saved: Vec<(Object, Saved)> =
        serde_json::from_str(&line).map_err(|error| failed(&error))?;
    let mut out = std::io::stdout();
    out.write_all(READY.as_bytes())?;
    out.flush()?;
    line.clear();
    // Ends with the process that holds the other end, or its word.
    let told = input.read_line(&mut line);
    if told.is_ok() && line == DONE {
        return Ok(());
    }
    let wrong = restore_all(&mut Live::default(), &saved);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Failure::Setting(wrong.join("; ")))
    }
}

/// Restores what is not as it was, the last first; what could not be.
pub(super) fn restore_all(settings: &mut dyn Settings, saved: &[(Object, Saved)]) -> Vec<String> {
    saved
        .iter()
        .rev()
        .filter_map(|(object, saved)| {
            let now = settings.save(object);
            if now.is_ok_and(|now| now == *saved) {
                return None;
            }
            settings
                .restore(object, saved)
                .err()
                .map(|error| error.to_string())
        })
        .collect()
}
