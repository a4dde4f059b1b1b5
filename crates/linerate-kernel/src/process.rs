//! The process as a whole and its children: going to the background, children that do not outlive it,
//! and local time for labels.
#![expect(
    unsafe_code,
    reason = "daemon, localtime_r and strftime are C; a child runs code before its program"
)]

use std::ffi::{CString, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use linerate_model::units::{Bytes, Nanos};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::param::clock_ticks_per_second;
use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, geteuid, getpid, getppid, getpriority_process, getrlimit,
    kill_process_group, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
    setpriority_process, setrlimit, setsid,
};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};

use crate::option::check;
use crate::signal::change_mask;

/// The longest label that [`local_label`] makes, bytes.
const LONGEST_LABEL: usize = 256;

/// Goes to the background: a new session, `/` as the working folder, standard streams on /dev/null
/// (`daemon(3)`).
///
/// To be called while the process has one thread: the others would not come along.
pub fn go_to_background() -> io::Result<()> {
    // SAFETY: daemon takes two integers and touches no memory of ours.
    check(unsafe { libc::daemon(0, 0) }).map(drop)
}

/// How a bound child ends when the thread that started it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bond {
    /// The kernel kills it.
    #[default]
    Kill,
    /// The kernel sends it SIGTERM, so that it can put away what it made.
    Terminate,
}

impl Bond {
    const fn signal(self) -> Signal {
        match self {
            Self::Kill => Signal::KILL,
            Self::Terminate => Signal::TERM,
        }
    }
}

/// Where and how a child runs.
#[derive(Debug, Clone, Default)]
pub struct ChildSettings<'a> {
    /// The network namespace that it starts in; `None`: ours.
    pub namespace: Option<BorrowedFd<'a>>,
    /// The CPUs that it is held to; empty: ours. Up to 1024 are understood.
    pub cpus: Vec<usize>,
    /// Added to its niceness, 0 to 19.
    pub nice: i32,
    /// How it ends with the thread that started it.
    pub bond: Bond,
    /// A descriptor of ours that it has as well, by the same number.
    pub kept: Option<BorrowedFd<'a>>,
    /// It makes no file larger than this (`RLIMIT_FSIZE`); `None`: as ours.
    pub largest_file: Option<Bytes>,
}

/// Lets every signal act on the calling thread. A child inherits what its parent has blocked (to read it from a
/// descriptor), and would never hear of it. Safe between fork and exec.
fn unblock_all() -> io::Result<()> {
    change_mask(libc::SIG_SETMASK, &[])
}

/// Starts a child that the kernel ends ([`ChildSettings::bond`]) when the calling thread ends, however that comes
/// about. No signal is blocked in it, whatever this process has blocked.
///
/// # Errors
/// Those of starting it; those of `setns` where its namespace cannot be entered.
pub fn spawn_bound(command: &mut Command, settings: &ChildSettings<'_>) -> io::Result<Child> {
    let namespace = settings.namespace.map(|fd| fd.as_raw_fd());
    let nice = settings.nice;
    let death = settings.bond.signal();
    let mut mask = CpuSet::new();
    for cpu in settings.cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU) {
        mask.set(*cpu);
    }
    let is_bound = !settings.cpus.is_empty();
    let kept = settings.kept.map(|fd| fd.as_raw_fd());
    let largest = settings.largest_file;
    let parent = getpid();
    let bind = move || {
        unblock_all()?;
        if let Some(fd) = namespace {
            // SAFETY: the descriptor is borrowed until the child has started.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            move_into_link_name_space(fd, Some(LinkNameSpaceType::Network))?;
        }
        if is_bound {
            sched_setaffinity(None, &mask)?;
        }
        if nice != 0 {
            be_nicer(nice)?;
        }
        if let Some(fd) = kept {
            // SAFETY: the descriptor is borrowed until the child has started.
            fcntl_setfd(unsafe { BorrowedFd::borrow_raw(fd) }, FdFlags::empty())?;
        }
        if let Some(Bytes(largest)) = largest {
            let mut limit = getrlimit(Resource::Fsize);
            limit.current = Some(limit.maximum.map_or(largest, |most| most.min(largest)));
            setrlimit(Resource::Fsize, limit)?;
        }
        set_parent_process_death_signal(Some(death))?;
        // The parent may have ended before the line above.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(Errno::SRCH.into())
        }
    };
    // SAFETY: between fork and exec only system calls are made, nothing is allocated.
    unsafe { command.pre_exec(bind) };
    command.spawn()
}

/// Starts a child in a session of its own: no terminal's signal reaches it, and it outlives us. So it keeps none
/// of the descriptors that we inherited: what waits for their end, a lock or a pipe, would wait for the child. Only
/// `kept` stays open in it: a lock that is to last until the child has ended too. No signal is blocked in it.
///
/// # Errors
/// Those of starting it. Linux 5.11 for the descriptors; an older kernel leaves them open.
pub fn spawn_detached(command: &mut Command, kept: Option<BorrowedFd<'_>>) -> io::Result<Child> {
    let kept = kept.map(|fd| fd.as_raw_fd());
    let detach = move || {
        unblock_all()?;
        setsid()?;
        // SAFETY: no pointer is passed; descriptors are marked, none is closed before exec.
        unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
        }
        if let Some(fd) = kept {
            // SAFETY: the descriptor is borrowed until the child has started.
            fcntl_setfd(unsafe { BorrowedFd::borrow_raw(fd) }, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made, nothing is allocated.
    unsafe { command.pre_exec(detach) };
    command.spawn()
}

/// `PATH`, and behind it where an administrator's programs are: without one, or with an empty one, these alone.
pub fn search_path() -> OsString {
    const ADMINISTRATORS: &str = "/usr/sbin:/sbin:/usr/bin:/bin";
    match std::env::var_os("PATH").filter(|path| !path.is_empty()) {
        Some(mut path) => {
            path.push(":");
            path.push(ADMINISTRATORS);
            path
        }
        None => ADMINISTRATORS.into(),
    }
}

/// Sends a signal to a process group, whose number is that of its first process. It must not have been waited for yet:
/// its number may then belong to others. A group that has ended is no error.
///
/// # Errors
/// `EPERM` where all of it is another user's; `EINVAL` for a number that is none.
pub fn signal_group(first: u32, signal: i32) -> io::Result<()> {
    let group = i32::try_from(first).ok().and_then(Pid::from_raw);
    let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
    match kill_process_group(group.ok_or(Errno::INVAL)?, signal) {
        Err(Errno::SRCH) => Ok(()),
        other => Ok(other?),
    }
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
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let fd = pidfd_open(pid.ok_or(Errno::INVAL)?, PidfdFlags::empty())?;
        Ok(Self { fd })
    }

    /// Sends it a signal; one that has ended is no error.
    ///
    /// # Errors
    /// `EPERM` where it is another user's.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
        match pidfd_send_signal(&self.fd, signal) {
            Err(Errno::SRCH) => Ok(()),
            other => Ok(other?),
        }
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Adds to the calling thread's niceness, 0 to 19: the more, the smaller its share of a contended CPU. Beyond 19
/// it stays at 19. Safe between fork and exec.
///
/// # Errors
/// None is known.
pub fn be_nicer(by: i32) -> io::Result<()> {
    let nice = niceness()?.saturating_add(by);
    Ok(setpriority_process(None, nice)?)
}

/// The niceness of the calling thread: −20 to 19, 0 where nobody set one.
///
/// # Errors
/// None is known.
pub fn niceness() -> io::Result<i32> {
    Ok(getpriority_process(None)?)
}

/// CPU time of all threads of a process since it started, to a clock tick (10 ms where `CONFIG_HZ` is what
/// userspace sees, 100): `/proc/PID/stat`, `utime` + `stime`. `None` where there is no such process.
pub fn cpu_time(pid: u32) -> Option<Nanos> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    cpu_time_in(&stat, clock_ticks_per_second())
}

fn cpu_time_in(stat: &str, ticks_per_second: u64) -> Option<Nanos> {
    // Behind the name, which may hold anything: state is the first, utime the 12th, stime the 13th.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Nanos(
        (user + system).checked_mul(1_000_000_000)? / ticks_per_second.max(1),
    ))
}

/// The most memory that this process had resident at once since it started its program (`VmHWM` of
/// `/proc/self/status`, `fs/proc/task_mmu.c`). `None` where the kernel does not tell.
pub fn peak_memory() -> Option<Bytes> {
    peak_memory_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_memory_in(status: &str) -> Option<Bytes> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024).map(Bytes)
}

/// Processes other than this one that have a thread of this name (`/proc/PID/task/TID/comm`, at most 15 bytes), of
/// any user, as far as this one's `/proc` shows them.
pub fn with_thread_named(name: &str) -> Vec<u32> {
    let own = std::process::id();
    let named = |pid: u32| {
        numbered(&format!("/proc/{pid}/task")).any(|thread| {
            std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm"))
                .is_ok_and(|comm| comm.trim_end_matches('\n') == name)
        })
    };
    let mut found: Vec<u32> = numbered("/proc")
        .filter(|pid| *pid != own && named(*pid))
        .collect();
    found.sort_unstable();
    found
}

/// Kills all processes in these network namespaces, each told by its inode, and says how many there were: what a
/// program left running there when it ended itself. Of those that this process may not look at nothing is known.
pub fn kill_in_networks(inodes: &[u64]) -> usize {
    use std::os::unix::fs::MetadataExt as _;
    let own = std::process::id();
    let inside = |pid: u32| {
        std::fs::metadata(format!("/proc/{pid}/ns/net"))
            .is_ok_and(|facts| inodes.contains(&facts.ino()))
    };
    numbered("/proc")
        .filter(|pid| *pid != own && inside(*pid))
        .filter(|pid| {
            // Between the look and the opening another may have taken its number.
            PidFd::open(*pid)
                .is_ok_and(|process| inside(*pid) && process.signal(libc::SIGKILL).is_ok())
        })
        .count()
}

/// The numbers among the names in a folder of /proc.
fn numbered(folder: &str) -> impl Iterator<Item = u32> + use<> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// When a process was started, in ticks since boot: with its number it names it for good. `None` where
/// there is none, or it has ended and only waits for its parent (`/proc/PID/stat`, the fields `state` and
/// `starttime`).
pub fn start_ticks(pid: u32) -> Option<u64> {
    start_ticks_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn start_ticks_in(stat: &str) -> Option<u64> {
    fields_of_living(stat)?.nth(18)?.parse().ok()
}

/// The fields behind `state`; `None` of a process that has ended and only waits for its parent.
fn fields_of_living(stat: &str) -> Option<impl Iterator<Item = &str>> {
    // The name may hold anything, also brackets and blanks.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then_some(fields)
}

/// Whether a process group has members that have not ended, whoever they belong to (`/proc/PID/stat`, the field `pgrp`). Its number
/// may be another's once it has none.
pub fn group_lives(first: u32) -> bool {
    let group_of = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        fields_of_living(&stat)?.nth(1)?.parse().ok()
    };
    numbered("/proc").any(|pid| group_of(pid) == Some(first))
}

/// The effective user.
pub fn user() -> u32 {
    geteuid().as_raw()
}

/// Raises the number of descriptors that this process may have to what its host allows it
/// (`RLIMIT_NOFILE`, soft to hard), and gives back that number.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current.unwrap_or(u64::MAX))
}

/// Keeps what this process frees from staying with it: a program with thousands of threads would else have many heaps, each
/// with holes. From now on glibc makes at most this many heaps, and gives large blocks back to the kernel as they are freed;
/// other C libraries stay as they are.
pub fn keep_heaps_few(heaps: u16) {
    #[cfg(target_env = "gnu")]
    {
        /// What glibc maps by itself before it adapts that to what was freed, bytes.
        const LARGE: libc::c_int = 128 << 10;
        // SAFETY: mallopt takes two integers, and changes how later calls of malloc choose their place alone.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, libc::c_int::from(heaps));
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = heaps;
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
    fn memory_that_was_touched_is_part_of_the_peak() {
        let before = peak_memory().unwrap();
        assert!(before.0 > 100_000, "{before}");
        // More than the process had: pages are resident once they are written.
        let touched = vec![1_u8; usize::try_from(before.0).unwrap() + (16 << 20)];
        std::hint::black_box(&touched);
        let after = peak_memory().unwrap();
        assert!(after.0 >= touched.len() as u64, "{before}, then {after}");
        let status = "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(peak_memory_in(status), Some(Bytes(2 << 20)));
        assert_eq!(peak_memory_in("VmHWM: many\n"), None);
    }

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
    fn a_lock_that_a_detached_child_keeps_lasts_until_the_child_ends() {
        use std::process::Stdio;

        use crate::file::try_lock;
        let path = tempfile::NamedTempFile::new().unwrap();
        let ours = path.reopen().unwrap();
        let other = path.reopen().unwrap();
        assert!(try_lock(&ours).unwrap());
        let detached = |kept| {
            let mut waits = Command::new("cat");
            spawn_detached(waits.stdin(Stdio::piped()), kept).unwrap()
        };
        let mut stranger = detached(None);
        let mut keeper = detached(Some(ours.as_fd()));
        drop(ours);
        assert!(!try_lock(&other).unwrap());
        drop(keeper.stdin.take());
        keeper.wait().unwrap();
        assert!(try_lock(&other).unwrap());
        drop(stranger.stdin.take());
        stranger.wait().unwrap();
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
    fn a_child_has_what_is_kept_for_it_and_makes_no_large_file() {
        use std::os::fd::AsFd as _;
        let file = tempfile::tempfile().unwrap();
        let mut command = Command::new("sh");
        let script = format!(
            "printf text > /proc/self/fd/{}; ulimit -f",
            file.as_fd().as_raw_fd()
        );
        command
            .args(["-c", &script])
            .stdout(std::process::Stdio::piped());
        let settings = ChildSettings {
            kept: Some(file.as_fd()),
            largest_file: Some(Bytes(1 << 20)),
            ..ChildSettings::default()
        };
        let out = spawn_bound(&mut command, &settings)
            .unwrap()
            .wait_with_output()
            .unwrap();
        // Blocks of 512 bytes.
        assert_eq!(out.stdout, b"2048\n");
        assert_eq!(file.metadata().unwrap().len(), 4);
    }

    #[test]
    fn a_child_hears_the_signals_that_its_parent_has_blocked() {
        let mask = |command: &mut Command| {
            let output = command.output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        // In a thread of its own: the mask is the thread's, and a child has that of the thread that starts it.
        std::thread::spawn(move || {
            crate::thread::block_signals(&[libc::SIGINT, libc::SIGTERM]).unwrap();
            let mut plain = Command::new("grep");
            plain.args(["SigBlk", "/proc/self/status"]);
            assert!(mask(&mut plain).contains("4002"));
            let mut bound = Command::new("grep");
            bound
                .args(["SigBlk", "/proc/self/status"])
                .stdout(std::process::Stdio::piped());
            let child = spawn_bound(&mut bound, &ChildSettings::default()).unwrap();
            let out = child.wait_with_output().unwrap().stdout;
            assert_eq!(
                String::from_utf8(out).unwrap().split_whitespace().last(),
                Some("0000000000000000")
            );
        })
        .join()
        .unwrap();
    }

    #[test]
    fn niceness_is_added_to_what_there_is() {
        // In a thread of its own, which is all that it changes.
        std::thread::spawn(|| {
            let before = niceness().unwrap();
            be_nicer(2).unwrap();
            be_nicer(1).unwrap();
            assert_eq!(niceness().unwrap(), (before + 3).min(19));
            be_nicer(100).unwrap();
            assert_eq!(niceness().unwrap(), 19);
            let mut command = Command::new("sh");
            command.args(["-c", "cut -d' ' -f19 /proc/self/stat"]);
            command.stdout(std::process::Stdio::piped());
            let settings = ChildSettings {
                nice: 5,
                ..ChildSettings::default()
            };
            let child = spawn_bound(&mut command, &settings).unwrap();
            let out = child.wait_with_output().unwrap().stdout;
            assert_eq!(String::from_utf8(out).unwrap().trim(), "19");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn cpu_time_is_that_of_user_and_kernel() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4 0 0 0 0 30 4 0 0 20 0 1 0 4711 9 9";
        assert_eq!(cpu_time_in(stat, 100), Some(Nanos::from_millis(340)));
        assert_eq!(cpu_time_in("7 (a", 100), None);
        assert!(cpu_time(std::process::id()).is_some());
        assert_eq!(cpu_time(u32::MAX), None);
    }

    #[test]
    fn threads_of_others_are_found_by_their_name() {
        let child = Command::new("sleep").arg("60").spawn();
        let mut child = child.unwrap();
        // Between fork and exec it still has our name.
        let named = || with_thread_named("sleep").contains(&child.id());
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !named() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let found = named();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
        assert!(with_thread_named("no such name at all").is_empty());
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
