//! Files on disk: what was applied the last time, and what was written for other programs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use linerate_kernel::file;
use linerate_kernel::inventory::Root;
use linerate_tune::guest::{MANAGER, NETWORK, State, is_ours};
use linerate_tune::kept_file;
use linerate_tune::state_folder::StateError;

const NAME: &str = "interfaces.json";

/// The folder of the state, by its path from a root.
pub(super) struct Store {
    root: Root,
    folder: PathBuf,
}

impl Store {
    pub(super) fn at(root: Root, folder: PathBuf) -> Self {
        Self { root, folder }
    }

    /// Held until it is dropped.
    pub(super) fn lock(&self) -> Result<File, String> {
        let lock = || {
            let folder = self.root.make_directories(&self.folder, 0o755)?;
            let folder = folder.readable()?;
            file::lock(&folder)?;
            Ok(folder)
        };
        lock().map_err(|error: io::Error| {
            let folder = self.root.path(&self.folder);
            format!("cannot lock {}: {error}", folder.display())
        })
    }

    /// Nothing, where nothing was applied yet.
    pub(super) fn read(&self) -> Result<State, String> {
        let file = self.file();
        let text = kept_file::read(&self.root, &file);
        let Some(text) = text.map_err(|error| error.to_string())? else {
            return Ok(State::default());
        };
        serde_json::from_str(&text).map_err(|error| {
            format!(
                "{} is not a state file of interfaces ({error}); remove it, and everything declared is applied again",
                self.root.path(&file).display()
            )
        })
    }

    pub(super) fn write(&self, state: &State) -> Result<(), String> {
        let text = serde_json::to_string_pretty(state).map_err(|error| error.to_string())?;
        replace(&self.root, self.file(), &text)
    }

    fn file(&self) -> PathBuf {
        self.folder.join(NAME)
    }
}

/// Gives a file a text: all of it or, where that fails, what was there before.
pub(super) fn replace(root: &Root, path: impl AsRef<Path>, text: &str) -> Result<(), String> {
    kept_file::write(root, path, text).map_err(|error| error.to_string())
}

/// The files that we wrote for other programs, and the `.link` files of `tune persist`; by their path from `/`.
pub(super) fn files(root: &Root) -> Result<[BTreeMap<String, String>; 2], String> {
    let say = |error: StateError| error.to_string();
    let (mut ours, mut links) = (BTreeMap::new(), BTreeMap::new());
    let take = |all: &mut BTreeMap<String, String>, path: String| -> Result<(), String> {
        let text = kept_file::read(root, &path).map_err(say)?;
        all.extend(text.map(|text| (path, text)));
        Ok(())
    };
    take(&mut ours, MANAGER.to_owned())?;
    for name in kept_file::names(root, NETWORK).map_err(say)? {
        let path = format!("{NETWORK}/{name}");
        if is_ours(&name) {
            take(&mut ours, path)?;
        } else if name
            .strip_suffix(".link")
            .is_some_and(|stem| stem.starts_with("10-linerate-"))
        {
            take(&mut links, path)?;
        }
    }
    Ok([ours, links])
}
