//! How much of this machine its hypervisor gave to others while a test measured.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use linerate_kernel::counters;
use linerate_testing::{Need, skipped};

use super::say;

/// A test that fails while less than this share of the machine was stolen has failed; runs of experiments and of the lab
/// are called disturbed from about there.
const STOLEN: f64 = 0.02;
/// How often it is tried while more was.
const ATTEMPTS: u32 = 3;

/// Runs a test of what was measured, with the machine kept as `keep` does.
///
/// What fails while CPU time of the machine was stolen shows nothing of linerate: it is made again, and said
/// to be skipped where that goes on. What other programs of this machine take is no excuse.
pub(crate) fn measured<Guard>(keep: fn() -> Guard, test: impl Fn()) {
    let _kept = keep();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let watch = || {
        let before = counters::machine().unwrap();
        move || {
            let now = counters::machine().unwrap();
            now.since(before).stolen_share().unwrap_or(0.0)
        }
    };
    let shown = watched(test, watch, |stolen| {
        let percent = 100.0 * stolen;
        say(&format!(
            "{name} failed while the hypervisor gave {percent:.0} % of this machine to others"
        ));
    });
    if !shown {
        let why = format!("the hypervisor took this machine in each of {ATTEMPTS} attempts");
        skipped(Need::QuietMachine, name, &why);
    }
}

/// `watch` begins to look at the machine; what it gives back tells the share that was stolen. False where no attempt
/// showed anything.
fn watched<Look: Fn() -> f64>(
    test: impl Fn(),
    watch: impl Fn() -> Look,
    tell: impl Fn(f64),
) -> bool {
    (0..ATTEMPTS).any(|_| {
        let stolen = watch();
        let Err(failed) = catch_unwind(AssertUnwindSafe(&test)) else {
            return true;
        };
        let stolen = stolen();
        if stolen < STOLEN {
            resume_unwind(failed);
        }
        tell(stolen);
        false
    })
}

#[test]
#[should_panic(expected = "a fault of linerate's")]
fn a_failure_on_a_machine_of_its_own_is_one() {
    watched(|| panic!("a fault of linerate's"), || || 0.019, |_| ());
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
        let shown = watched(test, || || 0.5, |_| ());
        (shown, tried.get())
    };
    assert_eq!(succeeds_at(1), (true, 1));
    assert_eq!(succeeds_at(2), (true, 2));
    assert_eq!(succeeds_at(9), (false, ATTEMPTS));
}
