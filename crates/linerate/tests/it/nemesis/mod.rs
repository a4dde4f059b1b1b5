//! A hub, its agents and their connections, of which some die, stop or lose their disk at any moment: afterwards each test that was
//! due has one row, and what the API once showed is still so.
//!
//! Two minutes of it run with all other tests; `make nemesis` takes two hours (`LINERATE_NEMESIS_SECONDS`), from the seed
//! `LINERATE_NEMESIS_SEED` on.

mod bed;
mod faults;
mod relay;
mod verdict;
mod watcher;

use std::time::{Duration, Instant};

use crate::harness::{beside, lacks_programs, say};
use crate::hub::PATIENCE;
use bed::Bed;
use faults::Nemesis;
use watcher::Watcher;

/// How long there are faults where nobody says it: then everything is mended, and the rows are counted.
const SHORT: u64 = 90;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
}

#[test]
fn whatever_dies_each_due_test_has_one_row_and_no_result_is_lost() {
    if lacks_programs("faults of a hub and its agents", &["sh", "kill"]) {
        return;
    }
    let _beside = beside();
    let seconds = number("LINERATE_NEMESIS_SECONDS").unwrap_or(SHORT);
    let seed = number("LINERATE_NEMESIS_SEED").unwrap_or(20);
    say(&format!("nemesis: {seconds} s from the seed {seed}"));
    let bed = Bed::new(seconds);
    let mut nemesis = Nemesis::start(&bed, seed);
    let watcher = Watcher::start(bed.pages());
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        nemesis.step();
        std::thread::sleep(Duration::from_millis(20));
    }
    nemesis.mend_all();
    nemesis.wait_for_tests(&watcher, PATIENCE);
    let span = nemesis.stop();
    let shown = watcher.stop();
    bed.assert_quiet();
    let done = nemesis.done();
    say(&format!("nemesis: {done}"));
    let verdict = verdict::of(&bed.archive(), &bed.hosts, span, &shown);
    say(&format!("nemesis: {verdict}"));
    assert_eq!(
        verdict.wrong,
        Vec::<String>::new(),
        "seed {seed}\n{}",
        nemesis.log()
    );
}
