//! A flag that many threads can poll.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd used as a level: once raised, every thread that polls it for reading wakes, and goes
/// on waking, until somebody clears it. A stop signal is raised once and never cleared.
#[derive(Debug)]
pub struct EventFd {
    file: File,
}

impl EventFd {
    /// A flag that is not raised, closed on exec.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            file: File::from(fd),
        })
    }

    /// Raises the flag; raising it again changes nothing.
    ///
    /// # Errors
    /// None is known for an open eventfd.
    pub fn raise(&self) -> io::Result<()> {
        match (&self.file).write(&1_u64.to_ne_bytes()) {
            // The counter is at its limit: it is raised.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other.map(drop),
        }
    }

    /// Lowers the flag; lowering it again changes nothing.
    ///
    /// # Errors
    /// None is known for an open eventfd.
    pub fn clear(&self) -> io::Result<()> {
        match (&self.file).read(&mut [0; 8]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other.map(drop),
        }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Interest, PollEntry, wait};
    use linerate_model::units::Nanos;

    fn raised(event: &EventFd) -> bool {
        let mut entries = [PollEntry::new(event.as_fd(), Interest::READ)];
        wait(&mut entries, Some(Nanos::ZERO)).unwrap() == 1
    }

    #[test]
    fn it_stays_raised_until_cleared() {
        let event = EventFd::new().unwrap();
        assert!(!raised(&event));
        event.raise().unwrap();
        event.raise().unwrap();
        assert!(raised(&event) && raised(&event));
        event.clear().unwrap();
        event.clear().unwrap();
        assert!(!raised(&event));
    }

    #[test]
    fn one_raise_wakes_every_thread() {
        let event = EventFd::new().unwrap();
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut entries = [PollEntry::new(event.as_fd(), Interest::READ)];
                        wait(&mut entries, Some(Nanos::from_millis(10_000))).unwrap()
                    })
                })
                .collect();
            event.raise().unwrap();
            assert!(
                waiters
                    .into_iter()
                    .all(|waiter| waiter.join().unwrap() == 1)
            );
        });
    }
}
