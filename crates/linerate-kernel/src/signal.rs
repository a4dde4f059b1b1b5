#![expect(unsafe_code, reason = "signal masks and signalfd are raw")]
//! Signals as a descriptor to poll.

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::option::check;

/// Bytes of a `signalfd_siginfo`; the signal's number is its first word.
const SIGNAL_LENGTH: usize = size_of::<libc::signalfd_siginfo>();

/// Keeps these signals from interrupting the calling thread and the threads it starts from now on.
///
/// Call it in `main` before the first thread, so that a [`SignalFd`] gets them. A child process
/// inherits the block too, unless it is started by [`process`](crate::process), which lifts it.
///
/// # Errors
/// `EINVAL` for a number that is no signal.
pub fn block_signals(signals: &[i32]) -> io::Result<()> {
    change_mask(libc::SIG_BLOCK, signals)
}

/// Lets these signals act on the calling thread again, at once if one is pending.
///
/// # Errors
/// `EINVAL` for a number that is no signal.
pub fn unblock_signals(signals: &[i32]) -> io::Result<()> {
    change_mask(libc::SIG_UNBLOCK, signals)
}

/// Changes which signals the calling thread blocks (`SIG_BLOCK` …). Safe between fork and exec.
pub(crate) fn change_mask(how: libc::c_int, signals: &[i32]) -> io::Result<()> {
    let set = set_of(signals)?;
    // SAFETY: the set lives through the call; the old set is not asked for.
    let result = unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(result))
    }
}

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signal: i32,
    /// The kernel itself sent it (`SI_KERNEL`): for a terminal's Ctrl-C, to all processes in its foreground, not to
    /// this one alone.
    pub by_kernel: bool,
}

/// A descriptor that becomes readable when one of its signals is pending.
#[derive(Debug)]
pub struct SignalFd {
    file: File,
}

impl SignalFd {
    /// A descriptor for signals that [`block_signals`] blocked; closed on exec.
    ///
    /// # Errors
    /// `EINVAL` for a number that is no signal, `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn new(signals: &[i32]) -> io::Result<Self> {
        let set = set_of(signals)?;
        // SAFETY: the set lives through the call; −1 asks for a new descriptor.
        let fd = check(unsafe {
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self {
            file: File::from(fd),
        })
    }

    /// Takes one pending signal, without waiting; `None` where there is none.
    ///
    /// # Errors
    /// None is known for an open signalfd.
    pub fn read(&self) -> io::Result<Option<i32>> {
        Ok(self.receive()?.map(|received| received.signal))
    }

    /// The same, with where it came from.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn receive(&self) -> io::Result<Option<Received>> {
        let mut raw = [0; SIGNAL_LENGTH];
        // struct signalfd_siginfo: number u32, errno i32, code i32 … (include/uapi/linux/signalfd.h)
        let word = |raw: &[u8; SIGNAL_LENGTH], at: usize| {
            i32::from_ne_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]])
        };
        match (&self.file).read(&mut raw) {
            Ok(_) => Ok(Some(Received {
                signal: word(&raw, 0),
                by_kernel: word(&raw, 8) == libc::SI_KERNEL,
            })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn set_of(signals: &[i32]) -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: it initialises the set that it is given.
    check(unsafe { libc::sigemptyset(set.as_mut_ptr()) })?;
    for &signal in signals {
        // SAFETY: the set was initialised above.
        check(unsafe { libc::sigaddset(set.as_mut_ptr(), signal) })?;
    }
    // SAFETY: initialised by sigemptyset.
    Ok(unsafe { set.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Interest, PollEntry, wait};
    use linerate_model::units::Nanos;

    #[test]
    fn a_blocked_signal_comes_through_the_descriptor() {
        // In a thread of its own: the mask is the thread's, and so is the signal.
        std::thread::spawn(|| {
            block_signals(&[libc::SIGHUP, libc::SIGINT]).unwrap();
            let signals = SignalFd::new(&[libc::SIGHUP, libc::SIGINT]).unwrap();
            assert_eq!(signals.read().unwrap(), None);
            // SAFETY: the signal is blocked in this thread, so nothing is interrupted.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGHUP) };
            let mut entries = [PollEntry::new(signals.as_fd(), Interest::READ)];
            assert_eq!(
                wait(&mut entries, Some(Nanos::from_millis(1000))).unwrap(),
                1
            );
            // Sent by a process, so not by the kernel.
            assert_eq!(
                signals.receive().unwrap(),
                Some(Received {
                    signal: libc::SIGHUP,
                    by_kernel: false
                })
            );
            assert_eq!(signals.read().unwrap(), None);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_number_that_is_no_signal_is_refused() {
        assert!(block_signals(&[12_345]).is_err());
        assert!(SignalFd::new(&[-1]).is_err());
    }
}
