//! The private folder of an agent: made with the first file, removed with the agent.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// How its name begins.
const NAME: &str = "linerate-agent-";

/// None until it is needed.
#[derive(Debug, Default)]
pub(super) struct Folder {
    path: Mutex<Option<PathBuf>>,
}

impl Folder {
    /// A new folder in it, for the files of one command.
    ///
    /// # Errors
    /// Those of making it.
    pub(super) fn of(&self, ask: u64) -> io::Result<PathBuf> {
        let mut held = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        let path = match &*held {
            Some(path) => path.clone(),
            None => held.insert(made()?).clone(),
        };
        let own = path.join(ask.to_string());
        private().create(&own)?;
        Ok(own)
    }

    /// Removes it with all that is in it.
    pub(super) fn remove(&self) {
        let mut held = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = held.take() {
            // Where it cannot be removed, nobody is left to be told.
            drop(fs::remove_dir_all(path));
        }
    }
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// In the first folder that takes it.
fn made() -> io::Result<PathBuf> {
    let mut random = [0; 8];
    linerate_kernel::thread::random(&mut random)?;
    let name = format!("{NAME}{:016x}", u64::from_ne_bytes(random));
    let places = [std::env::temp_dir(), "/dev/shm".into(), "/var/tmp".into()];
    let mut last = io::Error::other("there is no folder");
    for place in places {
        let path = place.join(&name);
        match private().create(&path) {
            Ok(()) => return Ok(path),
            Err(error) => last = error,
        }
    }
    Err(last)
}
