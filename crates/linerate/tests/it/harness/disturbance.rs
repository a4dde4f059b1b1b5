//! How much of this machine was left to a test.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use linerate_kernel::counters::{self, MachineTime};

use super::{say, skipped};

/// A test that fails while less than this share of the machine went to others has failed.
const OTHERS: f64 = 0.1;
/// How often it is tried while others have more.
const ATTEMPTS: u32 = 3;
/// Milliseconds of a tick in `/proc/PID/stat`: `USER_HZ` is 100 wherever this runs (`proc(5)`).
const TICK_MS: u64 = 10;

/// What the whole machine and this process with the children that it waited for used until now, ms.
struct Used {
    machine: MachineTime,
    own: u64,
}

impl Used {
    fn now() -> Self {
        Self {
            machine: counters::machine().unwrap(),
            own: own(&std::fs::read_to_string("/proc/self/stat").unwrap()),
        }
    }

    /// The shares of the machine since then that its hypervisor and that other processes took.
    fn shares(&self) -> (f64, f64) {
        let now = Self::now();
        let grown = now.machine.since(self.machine);
        let others = grown.busy.saturating_sub(now.own - self.own);
        let share = |part: u64| part as f64 / grown.all.max(1) as f64;
        (share(grown.stolen), share(others))
    }
}

/// User and system time with that of children, ms: fields 14 to 17.
fn own(stat: &str) -> u64 {
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields = fields.split_whitespace().skip(11).take(4);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
    ticks * TICK_MS
}

/// Runs a test of what was measured, with the machine kept as `keep` does.
///
/// What fails while others have a tenth of the machine and more shows nothing of linerate: it is made again, and
/// said to be skipped where that goes on.
pub(crate) fn measured<Guard>(keep: fn() -> Guard, test: impl Fn()) {
    let _kept = keep();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let watch = || {
        let before = Used::now();
        move || before.shares()
    };
    let shown = watched(test, watch, |(stolen, others)| {
        say(&format!(
            "{name} failed while the hypervisor had {:.0} % of this machine and other programs {:.0} %",
            100.0 * stolen,
            100.0 * others
        ));
    });
    if !shown {
        let why = format!("others had this machine in each of {ATTEMPTS} attempts");
        skipped(name, &why);
    }
}

/// `watch` begins to look at the machine; what it gives back tells what the hypervisor and other programs had.
/// False where no attempt showed anything.
fn watched<Look: Fn() -> (f64, f64)>(
    test: impl Fn(),
    watch: impl Fn() -> Look,
    tell: impl Fn((f64, f64)),
) -> bool {
    (0..ATTEMPTS).any(|_| {
        let look = watch();
        let Err(failed) = catch_unwind(AssertUnwindSafe(&test)) else {
            return true;
        };
        let (stolen, others) = look();
        if stolen + others < OTHERS {
            resume_unwind(failed);
        }
        tell((stolen, others));
        false
    })
}

#[test]
fn the_time_of_a_process_and_its_children_is_read() {
    let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 300 4000 20 0 1 0 5 6";
    assert_eq!(own(stat), 43_300);
}

#[test]
#[should_panic(expected = "a fault of linerate's")]
fn a_failure_on_a_machine_of_its_own_is_one() {
    watched(
        || panic!("a fault of linerate's"),
        || || (0.05, 0.04),
        |_| (),
    );
}

#[test]
fn a_failure_while_others_have_the_machine_is_tried_again() {
    let tried = Cell::new(0);
    let succeeds_at = |attempt| {
        tried.set(0);
        let test = || {
            tried.set(tried.get() + 1);
            assert!(tried.get() >= attempt, "disturbed");
        };
        let shown = watched(test, || || (0.5, 0.0), |_| ());
        (shown, tried.get())
    };
    assert_eq!(succeeds_at(1), (true, 1));
    assert_eq!(succeeds_at(2), (true, 2));
    assert_eq!(succeeds_at(9), (false, ATTEMPTS));
}
