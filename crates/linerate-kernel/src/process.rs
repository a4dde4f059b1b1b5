//! The process as a whole and its children: going to the background, children that do not outlive it,
//! and local time for labels.
#![expect(
    unsafe_code,
    reason = "daemon, rlimits, prctl, pidfds, localtime_r and strftime are C"
)]

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use linerate_model::units::Nanos;

use crate::option::check;

/// The longest label that [`local_label`] makes, bytes.
const LONGEST_LABEL: usize = 256;

/// Goes to the background: a new session, `/` as the working folder, standard streams on /dev/null
/// (`daemon(3)`).
///
/// To be called while the process has one thread: the others would not come along.
pub fn go_to_background() -> io::Result<()> {
    // SAFETY: daemon takes two integers and touches no memory of ours.
    if unsafe { libc::daemon(0, 0) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// CPUs in a `cpu_set_t`.
const MOST_CPUS: usize = 8 * size_of::<libc::cpu_set_t>();

/// Where and how a child runs.
#[derive(Debug, Clone, Default)]
pub struct ChildSettings<'a> {
    /// The network namespace that it starts in; `None`: ours.
    pub namespace: Option<BorrowedFd<'a>>,
    /// The CPUs that it is held to; empty: ours. Up to 1024 are understood.
    pub cpus: Vec<usize>,
    /// Added to its niceness, 0 to 19.
    pub nice: i32,
}

/// Starts a child that the kernel kills when the calling thread ends, however that comes about.
///
/// # Errors
/// Those of starting it; those of `setns` where its namespace cannot be entered.
pub fn spawn_bound(command: &mut Command, settings: &ChildSettings<'_>) -> io::Result<Child> {
    let namespace = settings.namespace.map(|fd| fd.as_raw_fd());
    let nice = settings.nice;
    let cpus = settings.cpus.clone();
    let parent = std::process::id().cast_signed();
    // SAFETY: between fork and exec only system calls are made, nothing is allocated; the namespace's
    // descriptor is borrowed until the child has started.
    unsafe {
        command.pre_exec(move || {
            if let Some(fd) = namespace {
                check(libc::setns(fd, libc::CLONE_NEWNET))?;
            }
            if !cpus.is_empty() {
                let mut mask: libc::cpu_set_t = std::mem::zeroed();
                for cpu in cpus.iter().filter(|cpu| **cpu < MOST_CPUS) {
                    libc::CPU_SET(*cpu, &mut mask);
                }
                check(libc::sched_setaffinity(
                    0,
                    size_of::<libc::cpu_set_t>(),
                    &raw const mask,
                ))?;
            }
            if nice != 0 {
                check(libc::setpriority(libc::PRIO_PROCESS, 0, nice))?;
            }
            let killed = libc::SIGKILL as libc::c_ulong;
            check(libc::prctl(libc::PR_SET_PDEATHSIG, killed))?;
            // The parent may have ended before the line above.
            if libc::getppid() == parent {
                Ok(())
            } else {
                Err(io::Error::from_raw_os_error(libc::ESRCH))
            }
        })
    };
    command.spawn()
}

/// Starts a child in a session of its own: no terminal's signal reaches it, and it outlives us. So it keeps none
/// of the descriptors that we inherited: what waits for their end, a lock or a pipe, would wait for the child.
///
/// # Errors
/// Those of starting it. Linux 5.11 for the descriptors; an older kernel leaves them open.
pub fn spawn_detached(command: &mut Command) -> io::Result<Child> {
    let detach = || {
        // SAFETY: no pointer is passed; descriptors are marked, none is closed before exec.
        unsafe {
            check(libc::setsid())?;
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
        }
        Ok(())
    };
    // SAFETY: between fork and exec two system calls are made.
    unsafe { command.pre_exec(detach) };
    command.spawn()
}

/// A process as a descriptor, readable once it has ended: its number may then belong to another.
#[derive(Debug)]
pub struct PidFd {
    fd: OwnedFd,
}

impl PidFd {
    /// The process of this number. Linux 5.3.
    ///
    /// # Errors
    /// `ESRCH` where there is none.
    pub fn open(pid: u32) -> io::Result<Self> {
        let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: no pointer is passed.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let fd = check(libc::c_int::try_from(fd).unwrap_or(-1))?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Sends it a signal; one that has ended is no error.
    ///
    /// # Errors
    /// `EPERM` where it is another user's.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let null = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: a null pointer asks for the kernel's own siginfo.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.fd.as_raw_fd(),
                signal,
                null,
                0,
            )
        };
        match check(libc::c_int::try_from(sent).unwrap_or(-1)) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            other => other.map(drop),
        }
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Adds to the calling thread's niceness, 0 to 19: the more, the smaller its share of a contended CPU.
///
/// # Errors
/// None is known.
pub fn be_nicer(by: i32) -> io::Result<()> {
    // SAFETY: no pointer is passed; 0 is the calling thread.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, by) }).map(drop)
}

/// When a process was started, in ticks since boot: with its number it names it for good. `None` where
/// there is none, or it has ended and only waits for its parent (`/proc/PID/stat`, the fields `state` and
/// `starttime`).
pub fn start_ticks(pid: u32) -> Option<u64> {
    start_ticks_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn start_ticks_in(stat: &str) -> Option<u64> {
    // The name may hold anything, also brackets and blanks.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The effective user.
pub fn user() -> u32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Raises the number of descriptors that this process may have to what its host allows it
/// (`RLIMIT_NOFILE`, soft to hard), and gives back that number.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a live value of the right type.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: as above.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limit.rlim_cur)
}

/// An instant of the wall clock in the local time zone, in a format of `strftime(3)`. Empty where the
/// format gives nothing, or more than 255 bytes.
pub fn local_label(wall: Nanos, format: &str) -> String {
    let Ok(format) = CString::new(format) else {
        return String::new();
    };
    let seconds = libc::time_t::try_from(wall.0 / 1_000_000_000).unwrap_or(0);
    let mut fields = MaybeUninit::<libc::tm>::zeroed();
    let mut label = [0_u8; LONGEST_LABEL];
    // SAFETY: both pointers are to live values of the right type; an all-zero `tm` is a valid one, so it
    // may be read even if localtime_r fails; strftime writes at most the length that it is given.
    let length = unsafe {
        libc::localtime_r(&raw const seconds, fields.as_mut_ptr());
        libc::strftime(
            label.as_mut_ptr().cast(),
            label.len(),
            format.as_ptr(),
            fields.as_ptr(),
        )
    };
    String::from_utf8_lossy(&label[..length.min(LONGEST_LABEL)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let raised = raise_descriptor_limit().unwrap();
        assert!(raised >= 3);
        assert_eq!(raise_descriptor_limit().unwrap(), raised);
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let mut child = std::thread::spawn(|| {
            spawn_bound(Command::new("sleep").arg("60"), &ChildSettings::default()).unwrap()
        })
        .join()
        .unwrap();
        let fd = PidFd::open(child.id());
        // Killed by the kernel, not by us.
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()),
            Some(9)
        );
        // It may have been gone before it was opened; if not, it is known as ended now.
        if let Ok(fd) = fd {
            fd.signal(15).unwrap();
        }
        assert!(PidFd::open(u32::MAX).is_err());
    }

    #[test]
    fn a_process_has_a_start() {
        let own = start_ticks(std::process::id()).unwrap();
        assert!(own > 0);
        assert_eq!(start_ticks(u32::MAX), None);
        let stat =
            |state| format!("7 (a) b) {state} 1 7 7 0 -1 4 0 0 0 0 3 4 0 0 20 0 1 0 4711 9 9");
        assert_eq!(start_ticks_in(&stat("S")), Some(4711));
        assert_eq!(start_ticks_in(&stat("Z")), None);
        assert_eq!(start_ticks_in("7 (a"), None);
    }

    #[test]
    fn labels_follow_their_format() {
        let wall = Nanos(1_795_000_000_000_000_000);
        assert_eq!(local_label(wall, "%Y-%%").len(), 6);
        assert_eq!(local_label(wall, "plain"), "plain");
        assert_eq!(local_label(wall, ""), "");
        assert_eq!(local_label(wall, "a\0b"), "");
        assert_eq!(local_label(wall, &"%Y".repeat(200)), "");
    }
}
