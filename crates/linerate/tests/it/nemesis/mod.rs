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

use crate::harness::{asked, beside, lacks_programs, say, wait_until};
use crate::hub::PATIENCE;
use bed::Bed;
use faults::Nemesis;
use watcher::Watcher;

/// How long there are faults where nobody says it: then everything is mended, and the rows are counted.
const SHORT: u64 = 90;

#[test]
fn whatever_dies_each_due_test_has_one_row_and_no_result_is_lost() {
    if lacks_programs("faults of a hub and its agents", &["sh", "kill"]) {
        return;
    }
    let _beside = beside();
    let wanted = asked("LINERATE_NEMESIS_SECONDS");
    let seconds = wanted.unwrap_or(SHORT);
    let seed = asked("LINERATE_NEMESIS_SEED").unwrap_or(20);
    say(&format!("nemesis: {seconds} s from the seed {seed}"));
    let bed = Bed::new(seconds);
    let mut nemesis = Nemesis::start(&bed, seed);
    if wanted.is_some() {
        nemesis = nemesis.aloud();
    }
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

#[test]
fn an_alert_that_ends_while_the_disk_is_full_is_over_on_pages_as_well() {
    let what = "an alert that ends while the hub's disk is full";
    if lacks_programs(what, &["sh", "kill", "unshare", "nsenter"]) {
        return;
    }
    let _beside = beside();
    let bed = Bed::new(30);
    if !bed.has_a_disk() {
        // It was said why.
        return;
    }
    bed.plan("ring", "expect = \">= 1G\"");
    let mut nemesis = Nemesis::start(&bed, 1);
    let in_state = |state: &str| {
        let told = watcher::ask(bed.pages(), "/api/v1/alerts").unwrap_or_default();
        let alerts = told["alerts"].as_array().into_iter().flatten();
        alerts.filter(|alert| alert["state"] == state).count()
    };
    let fires = wait_until(PATIENCE, || in_state("firing") > 0);
    assert!(fires, "{}", nemesis.log());
    bed.fill_disk();
    // The task goes, and its alerts end with it; nothing of that can be written.
    bed.plan("another", "");
    let is_full = wait_until(PATIENCE, || {
        bed.fill_disk();
        nemesis.log().contains("the plan was read again") && nemesis.log().contains("full")
    });
    assert!(is_full, "{}", nemesis.log());
    bed.empty_disk();
    let over = wait_until(PATIENCE, || {
        in_state("firing") == 0 && in_state("resolved") > 0
    });
    assert!(over, "{}", nemesis.log());
    nemesis.stop();
    assert!(bed.archive().verify().unwrap().is_sound());
}
