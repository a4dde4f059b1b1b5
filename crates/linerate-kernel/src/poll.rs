#![expect(
    unsafe_code,
    reason = "a slice of entries is one of the kernel's as it is"
)]
//! Waiting for descriptors, with a timeout in nanoseconds and without allocation.

use std::io;
use std::os::fd::BorrowedFd;

use linerate_model::units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What to wait for. Errors and hang-ups are always reported, asked for or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interest {
    /// Data, an end of data, or a connection to accept.
    pub read: bool,
    /// Room in the send buffer, or a connect that finished.
    pub write: bool,
}

impl Interest {
    /// Errors and hang-ups only.
    pub const NONE: Self = Self {
        read: false,
        write: false,
    };
    /// Reading.
    pub const READ: Self = Self {
        read: true,
        write: false,
    };
    /// Writing.
    pub const WRITE: Self = Self {
        read: false,
        write: true,
    };
}

/// What a descriptor is ready for.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent bits of the kernel's answer"
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readiness {
    /// A read will not block: data, end of data, or an error to fetch.
    pub readable: bool,
    /// A write will not block.
    pub writable: bool,
    /// The socket has an error, or something in its error queue (a zero-copy completion).
    pub error: bool,
    /// Both directions are closed (`POLLHUP`); the peer's end of data alone is `readable`.
    pub hangup: bool,
}

impl Readiness {
    /// Whether there is anything at all.
    pub const fn any(self) -> bool {
        self.readable || self.writable || self.error || self.hangup
    }
}

/// One descriptor to wait for, and afterwards what it is ready for.
///
/// It is laid out as the kernel's `pollfd`, so a slice of entries goes to the kernel as it is.
#[derive(Debug, Clone)]
#[repr(transparent)]
pub struct PollEntry<'fd>(PollFd<'fd>);

impl<'fd> PollEntry<'fd> {
    /// An entry that waits for `interest` on `fd`.
    pub fn new(fd: BorrowedFd<'fd>, interest: Interest) -> Self {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, interest.read);
        events.set(PollFlags::OUT, interest.write);
        Self(PollFd::from_borrowed_fd(fd, events))
    }

    /// What the last [`wait`] found; nothing before the first.
    pub fn readiness(&self) -> Readiness {
        let has = |bits| self.0.revents().intersects(bits);
        Readiness {
            readable: has(PollFlags::IN),
            writable: has(PollFlags::OUT),
            error: has(PollFlags::ERR | PollFlags::NVAL),
            hangup: has(PollFlags::HUP),
        }
    }
}

/// Waits until an entry is ready or `timeout` has passed (`None`: for ever), and says how many are.
///
/// A signal ends the wait early with 0 ready. The kernel may wake late by the thread's timer slack,
/// 50 µs unless [`crate::thread::set_timer_slack`] set it, never early. No entries: it only sleeps.
///
/// # Errors
/// `EINVAL` for more entries than the limit of open files, `ENOMEM`.
pub fn wait(entries: &mut [PollEntry<'_>], timeout: Option<Nanos>) -> io::Result<usize> {
    for entry in entries.iter_mut() {
        entry.0.clear_revents();
    }
    // 2^64 ns are 585 years: no span is too long.
    let time = timeout.and_then(|span| Timespec::try_from(span.as_duration()).ok());
    // SAFETY: `PollEntry` is a transparent `PollFd`.
    let entries = unsafe { &mut *(std::ptr::from_mut(entries) as *mut [PollFd<'_>]) };
    match poll(entries, time.as_ref()) {
        Err(Errno::INTR) => Ok(0),
        ready => Ok(ready?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_timeout_below_a_millisecond_is_waited_for_and_not_rounded_up_to_one() {
        crate::thread::set_timer_slack(Nanos(1)).unwrap();
        let (one, _other) = UnixStream::pair().unwrap();
        let mut shortest = u64::MAX;
        for _ in 0..50 {
            let mut entries = [PollEntry::new(one.as_fd(), Interest::READ)];
            let before = monotonic();
            assert_eq!(wait(&mut entries, Some(Nanos(200_000))).unwrap(), 0);
            let took = monotonic().since(before).0;
            assert!(took >= 200_000, "it woke early, after {took} ns");
            assert!(!entries[0].readiness().any());
            shortest = shortest.min(took);
        }
        // poll's milliseconds could not have done this.
        assert!(shortest < 1_000_000, "the shortest wait took {shortest} ns");
    }

    #[test]
    fn readiness_is_told_apart() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut entries = [
            PollEntry::new(one.as_fd(), Interest::WRITE),
            PollEntry::new(other.as_fd(), Interest::READ),
        ];
        assert_eq!(wait(&mut entries, None).unwrap(), 1);
        let writable = Readiness {
            writable: true,
            ..Readiness::default()
        };
        assert_eq!(entries[0].readiness(), writable);
        assert!(!entries[1].readiness().any());
        drop(one);
        let mut entries = [PollEntry::new(other.as_fd(), Interest::NONE)];
        assert_eq!(wait(&mut entries, None).unwrap(), 1);
        assert!(entries[0].readiness().hangup && !entries[0].readiness().readable);
        let mut entries = [PollEntry::new(other.as_fd(), Interest::READ)];
        assert_eq!(wait(&mut entries, None).unwrap(), 1);
        assert!(entries[0].readiness().readable);
    }
}
