//! Where a run remembers: in memory (/run) what is of this boot, on disk (/var/lib) a drain that stands.

use std::fs::File;
use std::path::{Path, PathBuf};

use linerate_check::memory::Memory;
use linerate_check::settings::Settings;
use linerate_kernel::{file, host, process};
use linerate_model::plain_text::PlainText;

use super::arguments::PlaceArguments;
use super::children::{Ask, Remembered, ask};
use super::order::{self, Order};
use super::{FILE_LIMIT, Mode, done, text};
use crate::action::Failure;

const RUN: &str = "/run/linerate/check";
const STATE: &str = "/var/lib/linerate/check";
/// In the folder in memory.
const SETTINGS: &str = "settings.json";
/// By which a node is known to the health checks that Slurm starts: all that is in their environment.
const NODE: &str = "SLURMD_NODENAME";

/// The folders of a node.
pub(super) struct Folders {
    /// The node's name at the controller.
    pub(super) node: String,
    /// In memory; `None`: nothing is remembered.
    run: Option<PathBuf>,
    /// On disk.
    lasting: PathBuf,
    /// In [`Self::run`].
    file: &'static str,
    boot: String,
    /// Children that hang.
    pub(super) remembered: Remembered,
}

impl Folders {
    pub(super) fn of(place: &PlaceArguments, mode: Mode) -> Result<Self, Failure> {
        let node = node(place)?;
        let own = || run_folder().filter(|_| mode == Mode::Plain || process::user() == 0);
        let run = place.run_folder.clone().or_else(own);
        let run = run.map(|folder| folder.join(&node));
        if let Some(folder) = &run {
            order::make_folder(&folder.join("children"))
                .map_err(|error| Failure::cannot("make", folder, &error))?;
        } else if mode != Mode::Plain {
            return Err(Failure::Refused(format!(
                "what Slurm's runs have found is in {RUN}, which only root reads and writes: run it as root"
            )));
        }
        let state = place.state_folder.as_deref().unwrap_or(Path::new(STATE));
        Ok(Self {
            lasting: state.join(format!("{node}.json")),
            node,
            remembered: Remembered::at(run.as_deref()),
            run,
            // What Slurm's runs have found is not changed by a run that somebody makes to look.
            file: if mode == Mode::Plain {
                "checks.json"
            } else {
                "slurm.json"
            },
            boot: host::boot_id().unwrap_or_default(),
        })
    }

    /// The right to run: two at once would count each other's runs, and begin each other's checks twice.
    pub(super) fn turn(&self) -> Result<Option<File>, Failure> {
        let Some(folder) = &self.run else {
            return Ok(None);
        };
        let path = folder.join("lock");
        let cannot = |error: std::io::Error| Failure::cannot("lock", &path, &error);
        let lock = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(cannot)?;
        if file::try_lock(&lock).map_err(cannot)? {
            return Ok(Some(lock));
        }
        Err(Failure::Busy(
            "another run of linerate check is under way on this node; nothing was done".to_owned(),
        ))
    }

    /// What is remembered; after a boot only a drain.
    pub(super) fn memory(&self, notes: &mut Vec<PlainText>) -> Memory {
        let Some(folder) = &self.run else {
            return Memory::new(&self.boot);
        };
        match std::fs::read_to_string(folder.join(self.file)) {
            Ok(text) => {
                match Memory::parse(&text, &self.boot) {
                    Some(memory) if !memory.is_unread => return memory,
                    Some(memory) => return self.with_lasting(memory, notes),
                    None => {}
                }
                notes
                    .push("what earlier runs had found could not be read, and is forgotten".into());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                notes.push(format!("cannot read what earlier runs found: {error}").into());
            }
        }
        self.with_lasting(Memory::new(&self.boot), notes)
    }

    /// With the drain that stands on disk, as long as none is known here; where that cannot be read, the next run tries again.
    fn with_lasting(&self, mut memory: Memory, notes: &mut Vec<PlainText>) -> Memory {
        let asked = Ask {
            name: "lasting memory",
            order: Order::Read {
                path: self.lasting.clone(),
            },
            limit: FILE_LIMIT,
        };
        let kept = text(&ask(&asked, &self.remembered));
        memory.is_unread = kept.is_err();
        match kept {
            Ok(kept) => {
                let kept = kept.and_then(|text| Memory::parse(&text, &self.boot));
                if let Some(kept) = kept.filter(|_| memory.drained.is_none()) {
                    memory.drained = kept.drained;
                    memory.comment = kept.comment;
                }
            }
            Err(why) => {
                let file = self.lasting.display();
                notes.push(format!("cannot read {file}: {why}").into());
            }
        }
        memory
    }

    /// Keeps the checks for a run that cannot read them.
    pub(super) fn keep_settings(&self, settings: &Settings) {
        let Some(folder) = &self.run else { return };
        let text = serde_json::to_string(settings).unwrap_or_default();
        // Without them only such a run fails.
        drop(order::write(
            &folder.join(SETTINGS),
            Some(&text),
            order::OURS,
        ));
    }

    /// The checks of the last run.
    pub(super) fn settings(&self) -> Option<Settings> {
        let text = std::fs::read_to_string(self.run.as_ref()?.join(SETTINGS)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps what is of this boot.
    pub(super) fn keep(&self, memory: &Memory, notes: &mut Vec<PlainText>) {
        let Some(folder) = &self.run else {
            return;
        };
        let path = folder.join(self.file);
        if let Err(error) = order::write(&path, Some(&memory.text()), order::OURS) {
            notes.push(format!("cannot write {}: {error}", path.display()).into());
        }
    }

    /// Keeps a drain, or that there is none, so that it outlives a boot.
    pub(super) fn keep_for_good(&self, memory: &Memory, notes: &mut Vec<PlainText>) {
        self.keep(memory, notes);
        let order = Order::Write {
            path: self.lasting.clone(),
            text: memory.lasting().map(|lasting| lasting.text()),
            mode: order::OURS,
        };
        let asked = Ask {
            name: "lasting memory",
            order,
            limit: FILE_LIMIT,
        };
        if let Err(why) = done(&ask(&asked, &self.remembered)) {
            let file = self.lasting.display();
            let note =
                format!("cannot write {file}: {why}; after a reboot this node is not resumed");
            notes.push(note.into());
        }
    }
}

/// Only root writes to /run; others have a folder of their own in memory where they are logged in.
fn run_folder() -> Option<PathBuf> {
    if process::user() == 0 {
        return Some(RUN.into());
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR")?;
    Some(Path::new(&own).join("linerate/check"))
}

fn node(place: &PlaceArguments) -> Result<String, Failure> {
    let given = place.node.clone().or_else(|| std::env::var(NODE).ok());
    let node = given.unwrap_or_else(|| {
        let name = host::name();
        name.split('.').next().unwrap_or_default().to_owned()
    });
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if node.is_empty() || node.starts_with('.') || !node.chars().all(is_plain) {
        return Err(Failure::Usage(format!(
            "'{node}' is no node's name: letters, digits, '-', '_' and '.'"
        )));
    }
    Ok(node)
}
