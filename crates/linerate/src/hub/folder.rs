//! The folder of a hub: its archive, and what it knows beside it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis};
use linerate_watch::alert::Alerts;
use linerate_watch::dispatch::{BudgetLevel, Progress, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::action::Failure;
use crate::keep::replace_with;

/// Held by the hub that writes there.
const LOCK: &str = "hub.lock";
/// What the dispatcher knew at its last tick.
const STATE: &str = "hub.json";
/// The state of each pair's alert.
const ALERTS: &str = "alerts.json";

/// The folder that this hub has for itself.
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// What a hub knows beside its archive. All rows of the time before `seen` are in the archive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// When the hub wrote it last.
    pub(crate) seen: UnixMillis,
    /// Which regular tests have a row.
    #[serde(default)]
    pub(super) progress: Progress,
    /// Grows with each start of the hub; leases of former starts have lower ones.
    pub(crate) epoch: u64,
    /// What was left of the budgets.
    #[serde(default)]
    pub(super) budgets: Vec<BudgetLevel>,
    /// Tests that were asked for and have no row yet.
    #[serde(default)]
    pub(super) requests: Vec<Asked>,
    /// Whether the hub ended by itself after that.
    #[serde(default)]
    pub(crate) ended: bool,
    /// The plan's file; absent = the hub has none.
    #[serde(default)]
    pub(crate) file: Option<PathBuf>,
    /// Why that file, which has changed, is not in force; absent = it is.
    #[serde(default)]
    pub(crate) plan_trouble: Option<PlainText>,
}

/// A test that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) run: RunId,
    pub(super) request: Request,
    /// The finding that its counter-test decides; absent = it is a test like the others of its task.
    #[serde(default)]
    pub(super) finding: Option<String>,
}

/// The alerts, and when they were written.
#[derive(Serialize, Deserialize)]
pub(super) struct AlertsState<A> {
    pub(super) seen: UnixMillis,
    pub(super) alerts: A,
}

impl Folder {
    /// Makes it where it is not there, and takes it for this process.
    pub(super) fn take(path: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(path)
            .map_err(|error| Failure::cannot("make the folder", path, &error))?;
        let name = path.join(LOCK);
        let fail = |error: std::io::Error| Failure::cannot("lock", &name, &error);
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&name)
            .map_err(fail)?;
        if !linerate_kernel::file::try_lock(&lock).map_err(fail)? {
            return Err(Failure::Usage(format!(
                "another hub writes to {}: stop it, or name another folder with --folder",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn alerts(&self) -> Result<Option<AlertsState<Alerts>>, Failure> {
        read(&self.path.join(ALERTS))
    }

    pub(super) fn write_state(&self, state: &State) -> std::io::Result<()> {
        write(&self.path.join(STATE), state)
    }

    pub(super) fn write_alerts(&self, seen: UnixMillis, alerts: &Alerts) -> std::io::Result<()> {
        write(&self.path.join(ALERTS), &AlertsState { seen, alerts })
    }
}

/// What the hub of a folder wrote last; `None` = none ever ran there.
pub(crate) fn state(path: &Path) -> Result<Option<State>, Failure> {
    read(&path.join(STATE))
}

/// The folder that somebody named, else the usual one.
pub(crate) fn given_or_usual(given: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    given.cloned().map_or_else(usual, Ok)
}

fn usual() -> Result<PathBuf, Failure> {
    if linerate_kernel::process::user() == 0 {
        return Ok("/var/lib/linerate".into());
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = set("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/share")));
    data.map(|data| data.join("linerate")).ok_or_else(|| {
        let why = "neither XDG_DATA_HOME nor HOME is set: --folder DIR says where results are kept";
        Failure::Usage(why.to_owned())
    })
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::cannot("read", path, &error)),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Failure::File(format!(
            "{} is not what a hub writes: {error}; move it away, and the hub starts without it",
            path.display()
        ))
    })
}

fn write<T: Serialize>(path: &Path, value: &T) -> std::io::Result<()> {
    replace_with(path, |file| {
        // Piece by piece: the alerts of many pairs are some MB.
        let mut file = std::io::BufWriter::with_capacity(64 << 10, file);
        serde_json::to_writer(&mut file, value).map_err(std::io::Error::from)?;
        file.flush()
    })
}
