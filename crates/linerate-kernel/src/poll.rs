#![expect(unsafe_code, reason = "ppoll takes a pointer to the entries")]
//! Waiting for descriptors, with a timeout in nanoseconds and without allocation.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};

use linerate_model::units::Nanos;

use crate::option::check;

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
    /// Both.
    pub const BOTH: Self = Self {
        read: true,
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
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PollEntry<'fd> {
    raw: libc::pollfd,
    descriptor: PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> PollEntry<'fd> {
    /// An entry that waits for `interest` on `fd`.
    pub fn new(fd: BorrowedFd<'fd>, interest: Interest) -> Self {
        let raw = libc::pollfd {
            fd: fd.as_raw_fd(),
            events: events(interest),
            revents: 0,
        };
        Self {
            raw,
            descriptor: PhantomData,
        }
    }

    /// Waits for something else from now on.
    pub fn set_interest(&mut self, interest: Interest) {
        self.raw.events = events(interest);
    }

    /// What the last [`wait`] found; nothing before the first.
    pub fn readiness(&self) -> Readiness {
        let has = |bits| self.raw.revents & bits != 0;
        Readiness {
            readable: has(libc::POLLIN),
            writable: has(libc::POLLOUT),
            error: has(libc::POLLERR | libc::POLLNVAL),
            hangup: has(libc::POLLHUP),
        }
    }
}

impl std::fmt::Debug for PollEntry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PollEntry")
            .field("fd", &self.raw.fd)
            .field("readiness", &self.readiness())
            .finish_non_exhaustive()
    }
}

fn events(interest: Interest) -> libc::c_short {
    let read = if interest.read { libc::POLLIN } else { 0 };
    let write = if interest.write { libc::POLLOUT } else { 0 };
    read | write
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
        entry.raw.revents = 0;
    }
    let time = timeout.map(timespec);
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = libc::nfds_t::try_from(entries.len()).unwrap_or(libc::nfds_t::MAX);
    // SAFETY: `PollEntry` is a transparent `pollfd`, there are `count` of them, borrowed mutably for
    // the call; the time is null or lives in this frame; no signal mask is passed.
    let ready = unsafe { libc::ppoll(entries.as_mut_ptr().cast(), count, time, std::ptr::null()) };
    match check(ready) {
        Ok(ready) => Ok(usize::try_from(ready).unwrap_or(0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

fn timespec(span: Nanos) -> libc::timespec {
    // SAFETY: a timespec is integers; zeroing covers the padding that some targets have.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    time.tv_sec = libc::time_t::try_from(span.0 / 1_000_000_000).unwrap_or(libc::time_t::MAX);
    time.tv_nsec = libc::c_long::try_from(span.0 % 1_000_000_000).unwrap_or(0);
    time
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
            PollEntry::new(one.as_fd(), Interest::BOTH),
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
        entries[0].set_interest(Interest::READ);
        assert_eq!(wait(&mut entries, None).unwrap(), 1);
        assert!(entries[0].readiness().readable);
    }
}
