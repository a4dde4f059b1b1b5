#![expect(unsafe_code, reason = "scheduling calls take raw masks; signal is raw")]
//! The calling thread: its CPUs, timer slack, id, signals, and random bytes.
//!
//! A thread inherits mask, slack and blocked signals from the thread that starts it.

use std::io;
use std::mem::size_of_val;
use std::num::NonZero;

pub use libc::{SIGHUP, SIGINT, SIGTERM};
use linerate_model::units::Nanos;
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::set_current_timer_slack;

use crate::KernelError;
use crate::option::check;
pub use crate::signal::{Received, SignalFd, block_signals, unblock_signals};

/// Bits in a word of a CPU mask.
const WORD: usize = u64::BITS as usize;
/// The largest mask asked for: 65,536 CPUs. Linux is built for at most 8,192 today.
const MASK_WORDS: usize = 1024;

/// Lets the calling thread run on these CPUs only.
///
/// # Errors
/// `EINVAL` where none of them exists or a cpuset forbids them all, or a number is 65,536 or more.
pub fn set_affinity(cpus: &[usize]) -> Result<(), KernelError> {
    mask_of(cpus)
        .and_then(|mask| {
            // SAFETY: the mask lives through the call and the length is its own; 0 is this thread.
            let result = unsafe {
                libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast())
            };
            check(result).map(drop)
        })
        .map_err(KernelError::of(
            "bind the thread to CPUs",
            &format!("{cpus:?}"),
        ))
}

/// The CPUs that the calling thread may run on, ascending.
///
/// # Errors
/// None is known.
pub fn affinity() -> io::Result<Vec<usize>> {
    let mut mask = [0_u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the length given, which is the mask's.
    let result =
        unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    check(result)?;
    Ok((0..MASK_WORDS * WORD)
        .filter(|cpu| mask[cpu / WORD] >> (cpu % WORD) & 1 == 1)
        .collect())
}

/// How many CPUs' worth of time the process can use: the affinity mask and the cgroup's quota
/// taken together; at least 1.
pub fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// How late the calling thread's timers may fire, so that the kernel can bundle them. 50 µs by
/// default; 1 ns for exact pacing. 0 goes back to the default.
///
/// # Errors
/// None is known.
pub fn set_timer_slack(slack: Nanos) -> io::Result<()> {
    Ok(set_current_timer_slack(NonZero::new(slack.0))?)
}

/// Asks for short turns on the CPU for the calling thread: among threads of the same weight it is then let
/// in sooner after it wakes, for the price of being put out sooner. Takes effect from Linux 6.12 on; older
/// kernels take the wish and do nothing.
///
/// # Errors
/// `EINVAL` outside 0.1 ms to 100 ms.
pub fn set_turn(turn: Nanos) -> io::Result<()> {
    // struct sched_attr, first version: size u32, policy u32, flags u64, nice i32, priority u32, runtime,
    // deadline and period u64 each (include/uapi/linux/sched/types.h). For SCHED_OTHER the runtime is the
    // length of a turn.
    const SIZE: u32 = 48;
    let mut attributes = [0_u64; 6];
    attributes[0] = u64::from(SIZE);
    if cfg!(target_endian = "big") {
        attributes[0] <<= 32;
    }
    attributes[3] = turn.0;
    // SAFETY: the structure is as long as it says and lives through the call; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, attributes.as_ptr(), 0) };
    check(libc::c_int::try_from(result).unwrap_or(-1)).map(drop)
}

/// The calling thread's id, as it stands in `/proc/self/task`.
pub fn id() -> u32 {
    rustix::thread::gettid().as_raw_pid().cast_unsigned()
}

/// Makes a write to a closed connection an error (`EPIPE`) instead of the end of the process.
/// Rust programs start this way; libraries loaded into others do not.
///
/// # Errors
/// None is known.
pub fn ignore_sigpipe() -> io::Result<()> {
    // SAFETY: ignoring a signal installs no handler.
    if unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Fills `buffer` with random bytes from the kernel; it waits only while the system is booting.
///
/// # Errors
/// `ENOSYS` before Linux 3.17.
pub fn random(buffer: &mut [u8]) -> io::Result<()> {
    let mut rest = buffer;
    // Each round fills at least a byte.
    while !rest.is_empty() {
        let filled = retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty()))?;
        rest = &mut rest[filled..];
    }
    Ok(())
}

fn mask_of(cpus: &[usize]) -> io::Result<Vec<u64>> {
    let words = cpus.iter().max().map_or(1, |highest| highest / WORD + 1);
    if words > MASK_WORDS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut mask = vec![0_u64; words];
    for cpu in cpus {
        mask[cpu / WORD] |= 1 << (cpu % WORD);
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_the_cpu_it_was_bound_to() {
        let cpus = affinity().unwrap();
        let last = *cpus.last().unwrap();
        std::thread::spawn(move || {
            set_affinity(&[last]).unwrap();
            assert_eq!(affinity().unwrap(), [last]);
        })
        .join()
        .unwrap();
        assert_eq!(affinity().unwrap(), cpus);
        assert!(available_cpus() >= 1);
    }

    #[test]
    fn cpus_that_do_not_exist_are_named_in_the_error() {
        for cpus in [&[][..], &[65_535], &[usize::MAX]] {
            let text = set_affinity(cpus).unwrap_err().to_string();
            assert!(text.contains(&format!("CPUs {cpus:?}")), "{text}");
        }
    }

    #[test]
    fn threads_have_their_own_ids() {
        assert_ne!(std::thread::spawn(id).join().unwrap(), id());
    }

    #[test]
    fn random_bytes_differ() {
        let (mut one, mut other) = ([0; 1000], [0; 1000]);
        random(&mut one).unwrap();
        random(&mut other).unwrap();
        assert_ne!(one, other);
        random(&mut []).unwrap();
        ignore_sigpipe().unwrap();
    }
}
