//! The private folder of an agent: made with the first file, removed with the agent.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How its name begins.
const NAME: &str = "linerate-agent-";

/// None until it is needed.
#[derive(Debug, Default)]
pub(super) struct Folder {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    path: Option<PathBuf>,
    is_closed: bool,
}

impl Folder {
    /// A new folder in it, for the files of one command.
    ///
    /// # Errors
    /// Those of making it; there is none after [`close`](Self::close).
    pub(super) fn of(&self, ask: u64) -> io::Result<PathBuf> {
        let mut held = self.locked();
        if held.is_closed {
            return Err(io::Error::other("the agent ends"));
        }
        let path = match &held.path {
            Some(path) => path.clone(),
            None => held.path.insert(made()?).clone(),
        };
        let own = path.join(ask.to_string());
        private().create(&own)?;
        Ok(own)
    }

    /// From now on nothing is made.
    pub(super) fn close(&self) {
        self.locked().is_closed = true;
    }

    /// Removes it with all that is in it.
    pub(super) fn remove(&self) {
        if let Some(path) = self.locked().path.take() {
            // Where it cannot be removed, nobody is left to be told.
            drop(fs::remove_dir_all(path));
        }
    }

    fn locked(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_after_the_end() {
        let folder = Folder::default();
        let own = folder.of(1).unwrap();
        assert!(own.exists());
        folder.close();
        folder.of(2).unwrap_err();
        assert!(own.exists());
        folder.remove();
        assert!(!own.parent().unwrap().exists());
        folder.of(3).unwrap_err();
    }
}
