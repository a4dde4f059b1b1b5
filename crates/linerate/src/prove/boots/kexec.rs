//! This host, booted by kexec: the next kernel is loaded into memory by kexec-tools, and a reset, a cut of power or a plain
//! reboot forgets it. The boot loader and its default are never touched.

use std::process::Command;
use std::time::Duration;

use linerate_experiment::boots::{BootId, Entry, Machine, Running};
use linerate_experiment::measured::Measured;
use linerate_experiment::prove::{Side, Turn};

use super::entry;
use super::series::{JournalFile, Series};
use super::unit;
use crate::action::Failure;
use crate::host_limit::serving::Serving;
use crate::place::{Gave, HostPlace, Place as _, Wanted};
use crate::printer::Printer;
use crate::{prove, signals};

/// Where this host reaches itself.
const LOOPBACK: &str = "127.0.0.1";

/// Refuses a host without kexec.
pub(super) fn required() -> Result<(), Failure> {
    let run = Command::new("kexec").arg("--version").output();
    if run.is_err() {
        return Err(Failure::Refused(
            "kexec is not installed, which loads the next boot (Debian: kexec-tools); nothing was changed"
                .to_owned(),
        ));
    }
    if loaded().is_none() {
        return Err(Failure::Refused(
            "this kernel cannot load another one (/sys/kernel/kexec_loaded is not there); nothing was changed"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Whether a kernel is loaded; `None` where there is no kexec.
fn loaded() -> Option<bool> {
    let text = std::fs::read_to_string("/sys/kernel/kexec_loaded").ok()?;
    Some(text.trim() != "0")
}

/// Forgets what is loaded.
pub(super) fn unload() -> Result<(), String> {
    match loaded() {
        Some(true) => kexec(&["-a".to_owned(), "-u".to_owned()]),
        _ => Ok(()),
    }
}

fn kexec(words: &[String]) -> Result<(), String> {
    let output = Command::new("kexec")
        .args(words)
        .output()
        .map_err(|error| format!("cannot run kexec: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("kexec {} failed: {}", words.join(" "), said.trim()))
}

/// This host.
pub(super) struct Kexec<'a> {
    series: &'a Series,
    journal: &'a mut JournalFile,
    printer: &'a Printer,
}

impl<'a> Kexec<'a> {
    pub(super) fn new(
        series: &'a Series,
        journal: &'a mut JournalFile,
        printer: &'a Printer,
    ) -> Self {
        Self {
            series,
            journal,
            printer,
        }
    }

    fn measure(&self) -> Result<Measured, Failure> {
        let stop = signals::take_stops()?;
        let mut words = self.series.words.clone();
        // Ends with the test.
        let mut server = None;
        let peer = if let Some(peer) = &self.series.peer {
            peer.as_str()
        } else {
            let serving = Serving::start(LOOPBACK, &stop)?;
            words.extend(["-p".to_owned(), serving.port.clone()]);
            server = Some(serving);
            LOOPBACK
        };
        let no_lock = || Err(Failure::Setting("no setting is changed".to_owned()));
        let mut place = HostPlace::prepare(peer, [], stop, no_lock)?;
        let gave = place.measure(Wanted {
            wishes: &[],
            words: &words,
            scenario: None,
            seed: 0,
        })?;
        drop(server);
        Ok(match gave {
            Gave::Measured(measured) => *measured,
            Gave::Impossible(why) => Measured::failed(why),
            Gave::Stopped => Measured::failed("it was stopped"),
        })
    }
}

fn text(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .map_err(|error| format!("cannot read {path}: {error}"))
}

/// Waits until the host has been up for so long.
fn settle(seconds: u32) -> Result<(), String> {
    let up = text("/proc/uptime")?;
    let up = up.split(' ').next().and_then(|up| up.parse::<f64>().ok());
    let left = up.map_or(0.0, |up| f64::from(seconds) - up);
    if left > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(left));
    }
    Ok(())
}

impl Machine for Kexec<'_> {
    fn boot(&mut self) -> Result<BootId, String> {
        text("/proc/sys/kernel/random/boot_id").map(BootId)
    }

    fn running(&mut self) -> Result<Running, String> {
        Ok(entry::running(&text("/proc/cmdline")?, &self.series.id))
    }

    fn write(&mut self, entry: &Entry) -> Result<(), String> {
        self.journal.write(entry)
    }

    fn unset_next(&mut self) -> Result<(), String> {
        unload()
    }

    fn set_next(&mut self, side: Side) -> Result<(), String> {
        kexec(&self.series.entries.load(side, &self.series.id))
    }

    fn restart(&mut self) -> Result<(), String> {
        unit::restart(loaded() == Some(true))
    }

    fn test(&mut self, turn: Turn) -> Measured {
        let measured = settle(self.series.settle_s)
            .map_err(Failure::File)
            .and_then(|()| self.measure())
            .unwrap_or_else(|failure| Measured::failed(failure.to_string()));
        self.printer.tell(&format!(
            "pair {}, {}: {}",
            turn.pair,
            turn.side.word(),
            prove::said(&measured)
        ));
        measured
    }

    fn dismiss(&mut self) -> Result<(), String> {
        unit::remove()
    }
}
