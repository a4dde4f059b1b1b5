#![expect(unsafe_code, reason = "getrusage writes through a pointer")]
//! Clocks: monotonic time measures, wall time labels, CPU time books work.

use std::io;
use std::mem::MaybeUninit;

use linerate_model::units::Nanos;
use rustix::time::{ClockId, clock_gettime};

use crate::option::check;

/// CPU time of a thread or a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In the program, ns. Microsecond resolution.
    pub user: Nanos,
    /// In the kernel on the program's behalf, ns. Softirq work for its packets is mostly not in it.
    pub system: Nanos,
}

/// Time since some point in the past (boot), ns; it never steps, but does run at NTP's rate.
pub fn monotonic() -> Nanos {
    read(ClockId::Monotonic)
}

/// Time since boot, ns, that in which the machine was suspended included; it never steps.
pub fn boot() -> Nanos {
    read(ClockId::Boottime)
}

/// Time since 1970-01-01 UTC, ns. It may step: label with it, never measure.
pub fn wall() -> Nanos {
    read(ClockId::Realtime)
}

/// CPU time that the calling thread has used, ns, user and system together, to the nanosecond.
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of the calling thread. The split between user and system is scaled from ticks; their
/// sum is exact ([`thread_cpu`] reads it faster).
///
/// # Panics
/// Never on Linux: `RUSAGE_THREAD` (2.6.26) cannot fail.
pub fn thread_times() -> CpuTimes {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    assert_eq!(result, 0, "getrusage(RUSAGE_THREAD) is not supported");
    // SAFETY: it was zeroed, and integers hold any bit pattern.
    let usage = unsafe { usage.assume_init() };
    let span = |time: libc::timeval| nanos(time.tv_sec, time.tv_usec * 1000);
    CpuTimes {
        user: span(usage.ru_utime),
        system: span(usage.ru_stime),
    }
}

/// CPU time of this process and of its children that have been waited for, user and system together.
///
/// # Panics
/// Never on Linux: these cannot fail.
pub fn cpu_with_children() -> Nanos {
    let of = |who| {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel writes one rusage.
        let result = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
        assert_eq!(result, 0, "getrusage is not supported");
        // SAFETY: it was zeroed, and integers hold any bit pattern.
        let usage = unsafe { usage.assume_init() };
        let span = |time: libc::timeval| nanos(time.tv_sec, time.tv_usec * 1000).0;
        span(usage.ru_utime) + span(usage.ru_stime)
    };
    Nanos(of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN))
}

/// Whether the kernel's wall clock follows another, and the largest error that it believes in (adjtimex(2): `STA_UNSYNC`,
/// `maxerror`, which grows by 500 µs a second unless a time daemon lowers it).
///
/// # Errors
/// None is known for a call that changes nothing.
pub fn synchronisation() -> io::Result<(bool, Nanos)> {
    let mut state = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: the kernel reads `modes`, which is 0, and writes one timex.
    check(unsafe { libc::adjtimex(state.as_mut_ptr()) })?;
    // SAFETY: it was zeroed, and integers hold any bit pattern.
    let state = unsafe { state.assume_init() };
    let error = u64::try_from(state.maxerror).unwrap_or(0);
    let follows = state.status & libc::STA_UNSYNC == 0;
    Ok((follows, Nanos(error.saturating_mul(1000))))
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    nanos(time.tv_sec, time.tv_nsec)
}

/// A wall clock before 1970 reads as 0. The widths differ between targets.
fn nanos(seconds: impl TryInto<u64>, nanos: impl TryInto<u64>) -> Nanos {
    let seconds = seconds.try_into().unwrap_or(0);
    let nanos = nanos.try_into().unwrap_or(0);
    Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_does_not_go_back_and_wall_time_is_after_2020() {
        let first = monotonic();
        assert!(monotonic() >= first);
        assert!(wall() > Nanos(1_577_836_800_000_000_000));
    }

    #[test]
    fn work_uses_cpu_time() {
        let before = thread_cpu();
        let mut sum = 0_u64;
        while thread_cpu().since(before) < Nanos::from_millis(20) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let thread = thread_times();
        assert!(thread.user.plus(thread.system) >= Nanos::from_millis(20));
    }
}
