//! The rollback outside the process that applies: a timer of systemd where it looks after this machine, else a process
//! of its own session that no lost terminal ends.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linerate_kernel::process;
use linerate_tune::journal::{Rollback, Snapshot};

use super::place::{Place, now};
use crate::printer::Printer;

/// What a process that waits says first.
pub(super) const WAITS: &str = "waits";

/// Starts it. It waits when this returns.
///
/// # Errors
/// Why nothing waits.
pub(super) fn arm(
    place: &Place,
    snapshot: &Snapshot,
    printer: &Printer,
) -> Result<Rollback, String> {
    if is_systemd_s(place) {
        match by_systemd(place, snapshot) {
            Ok(rollback) => return Ok(rollback),
            Err(why) => printer.tell(&format!(
                "linerate: systemd sets no timer ({why}); a process of its own waits instead"
            )),
        }
    }
    by_process(place, snapshot)
}

/// Whether systemd's services see what we change: it is the first process, of our network namespace, and we are root.
fn is_systemd_s(place: &Place) -> bool {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    place.root.is_none()
        && Path::new("/run/systemd/system").is_dir()
        && process::user() == 0
        && namespace("1").is_some()
        && namespace("1") == namespace("self")
}

/// The command that rolls the set back.
fn words(place: &Place, id: &str) -> Vec<String> {
    let mut words = vec!["tune".to_owned(), "rollback".to_owned(), id.to_owned()];
    if let Some(folder) = &place.named_state {
        words.push("--state".to_owned());
        words.push(folder.display().to_string());
    }
    if let Some(root) = place.root_text() {
        words.push("--root".to_owned());
        words.push(root);
    }
    words
}

/// This program's file. Where hosts share a folder, another of them may have put an equal file in its place since.
fn program() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let text = program.as_os_str().as_bytes();
    Ok(match text.strip_suffix(b" (deleted)") {
        Some(path) if !program.exists() => PathBuf::from(OsStr::from_bytes(path)),
        _ => program,
    })
}

fn by_systemd(place: &Place, snapshot: &Snapshot) -> Result<Rollback, String> {
    let program = program()?;
    let unit = format!("linerate-tune-rollback-{}", snapshot.id);
    let left = snapshot.deadline.0.saturating_sub(now().0);
    let output = Command::new("systemd-run")
        .args(["--quiet", "--collect", "--unit", &unit])
        .args(["--timer-property", "AccuracySec=100ms"])
        .args(["--on-active", &format!("{}ms", left / 1_000_000)])
        .arg(program)
        .args(words(place, &snapshot.id))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("systemd-run: {error}"))?;
    if output.status.success() {
        return Ok(Rollback::Systemd { unit });
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

fn by_process(place: &Place, snapshot: &Snapshot) -> Result<Rollback, String> {
    let program = program()?;
    let mut command = Command::new(program);
    command
        .args(words(place, &snapshot.id))
        .arg("--wait")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child =
        process::spawn_detached(&mut command, None).map_err(|error| error.to_string())?;
    let mut said = String::new();
    if let Some(out) = child.stdout.take() {
        // It speaks or ends; both end the wait.
        drop(BufReader::new(out).read_line(&mut said));
    }
    let pid = child.id();
    match process::start_ticks(pid) {
        Some(start_ticks) if said.trim_end() == WAITS => Ok(Rollback::Process { pid, start_ticks }),
        _ => Err("the process that would roll back ended at once".to_owned()),
    }
}

/// Calls it off: the timer is removed; a process notices by itself that nothing is left to do.
pub(super) fn call_off(rollback: Option<&Rollback>) {
    if let Some(Rollback::Systemd { unit }) = rollback {
        // A timer that stays finds a set that is confirmed, and does nothing.
        drop(
            Command::new("systemctl")
                .args(["stop", &format!("{unit}.timer")])
                .stdin(Stdio::null())
                .output(),
        );
    }
}

/// Whether what would roll a set back still waits.
pub(super) fn waits(rollback: &Rollback) -> bool {
    match rollback {
        Rollback::Process { pid, start_ticks } => process::start_ticks(*pid) == Some(*start_ticks),
        Rollback::Systemd { unit } => Command::new("systemctl")
            .args(["is-active", "--quiet", &format!("{unit}.timer")])
            .stdin(Stdio::null())
            .status()
            .is_ok_and(|status| status.success()),
    }
}
