//! What DRBD says of the devices that it replicates, while `linerate disk watch` watches them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use linerate_kernel::clock;
use linerate_kernel::process::{self, ChildSettings};
use linerate_model::block::{BlockDevice, BlockKind};
use linerate_model::record::Note;
use linerate_model::series::every_second;
use linerate_model::storage::{Drbd, DrbdSettings, Replication, ReplicationReading};
use linerate_model::transcript::Part;
use linerate_model::units::Nanos;
use linerate_readers::read;

use crate::input;

/// States of 8.4's devices, and its version; of version 9, the version alone.
const STATES: &str = "/proc/drbd";
/// No table of states is larger, bytes.
const LARGEST: usize = 1 << 20;
/// States of devices that are kept, 600 bytes of JSON each; then every second reading is dropped, again and again.
const MOST: usize = 8192;
/// Prints the settings. Needs root.
const PROGRAM: &str = "drbdsetup";
const ARGUMENTS: [&str; 2] = ["show", "--show-defaults"];

/// Looks at DRBD each time that the devices were read.
#[derive(Default)]
pub(super) struct Watching {
    /// `drbdsetup`, which may not answer: nobody waits for it.
    settings: Option<JoinHandle<Result<Vec<DrbdSettings>, String>>>,
    /// Those in which something was synchronised.
    readings: Vec<ReplicationReading>,
    /// Devices in them.
    rows: usize,
    looked: usize,
    every: usize,
    /// The moment that watching began.
    start: Nanos,
    version: Option<String>,
    lists_devices: bool,
}

impl Watching {
    /// Reads the states, if one of the devices is DRBD's. `at`: since watching began.
    pub(super) fn look(&mut self, devices: &[BlockDevice], at: Nanos) {
        if !devices.iter().any(|device| device.kind == BlockKind::Drbd) {
            return;
        }
        if self.settings.is_none() {
            self.settings = Some(std::thread::spawn(settings));
            self.start = Nanos(clock::monotonic().0.saturating_sub(at.0));
            self.every = 1;
        }
        self.looked += 1;
        if self.looked.is_multiple_of(self.every) {
            self.read();
        }
    }

    fn read(&mut self) {
        let Ok(bytes) = input::bytes(Path::new(STATES), LARGEST) else {
            return;
        };
        let at_ns = clock::monotonic().since(self.start);
        let parts = read(STATES, &bytes).map_or_else(|_| Vec::new(), |read| read.parts);
        let mut moving: Vec<Drbd> = Vec::new();
        for part in parts {
            let Part::Drbd(status) = part else { continue };
            self.version = status.version.map(|version| version.to_string());
            self.lists_devices |= !status.devices.is_empty();
            let devices = status.devices.into_iter();
            moving.extend(devices.filter(|one| one.copying().is_some()));
        }
        if moving.is_empty() {
            return;
        }
        self.rows += moving.len();
        self.readings.push(ReplicationReading {
            at_ns,
            devices: moving,
        });
        if self.rows > MOST && self.readings.len() > 1 {
            every_second(&mut self.readings);
            self.rows = self.readings.iter().map(|one| one.devices.len()).sum();
            self.every = self.every.saturating_mul(2);
        }
    }

    /// What was seen, with what could not be.
    pub(super) fn finish(self) -> (Option<Replication>, Vec<Note>) {
        let Some(asked) = self.settings else {
            return (None, Vec::new());
        };
        let mut notes = Vec::new();
        let mut note = |text: String| {
            notes.push(Note {
                id: "replication".into(),
                text: text.into(),
            });
        };
        if let Some(version) = self.version.filter(|_| !self.lists_devices) {
            note(format!(
                "DRBD {version} lists no devices in {STATES}: what `drbdsetup status --json --verbose --statistics` and `drbdsetup show \
                 --show-defaults` print at both ends tells `linerate explain` what limits a resynchronisation"
            ));
        }
        // Without two there is no rate to explain.
        if self.readings.len() < 2 {
            return (None, notes);
        }
        let answer = if asked.is_finished() {
            asked.join().unwrap_or_else(|_| Err("it failed".to_owned()))
        } else {
            Err("it did not answer while the disks were watched".to_owned())
        };
        let settings = answer.unwrap_or_else(|why| {
            note(format!(
                "DRBD's settings are not known, so what limits its resynchronisation is not known either: `{} {}`: {why}",
                PROGRAM,
                ARGUMENTS.join(" ")
            ));
            Vec::new()
        });
        let seen = Replication {
            settings,
            readings: self.readings,
        };
        (Some(seen), notes)
    }
}

fn settings() -> Result<Vec<DrbdSettings>, String> {
    let mut command = Command::new(PROGRAM);
    command.args(ARGUMENTS).env("PATH", process::search_path());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = process::spawn_bound(&mut command, &ChildSettings::default());
    let output = child.and_then(std::process::Child::wait_with_output);
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said
            .lines()
            .next()
            .unwrap_or("it failed without a word")
            .to_owned());
    }
    let parts = read(PROGRAM, &output.stdout)
        .map_err(|error| error.to_string())?
        .parts;
    let held = parts.into_iter().filter_map(|part| match part {
        Part::DrbdSettings(all) => Some(all),
        _ => None,
    });
    Ok(held.flatten().collect())
}
