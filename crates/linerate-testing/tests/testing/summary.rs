//! `scripts/test-summary.sh` and `scripts/skipped.sh`.

use std::process::Command;

use crate::{Scratch, repository};

/// What two binaries, the fuzz targets and the doc tests write.
const LOG: &str = "\
   Compiling linerate v0.1.0 (/linerate)
     Running unittests src/main.rs (target/fast/deps/linerate-1)

running 1200 tests
test keys::none ... ok
test slow::by_hand ... ignored, a minute
skipped: a path: no netem

test result: ok. 1200 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.13s

     Running tests/it/main.rs (target/fast/deps/it-1)

running 3 tests
test lab::one ... ok
test lab::two ... ok

test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s

     Running tests/seeds.rs (target/fast/deps/seeds-1)
auth: 12345 executions, the slowest took 6 ms
test fuzz::auth ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out

   Doc-tests linerate_model

running 0 tests

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

make test: cargo test ended with 0
make test: make test-vm ended with 0
";

/// The summary of a log and of skips, and whether it calls them good.
fn summary(log: &str, skips: &str) -> (String, bool) {
    let name = std::thread::current()
        .name()
        .unwrap_or_default()
        .replace(':', "-");
    let log = Scratch::with(&format!("{name}-log"), log);
    let skips = Scratch::with(&format!("{name}-skips"), skips);
    let output = Command::new(repository("scripts/test-summary.sh"))
        .args([&skips.0, &log.0])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "", "awk complains");
    (
        String::from_utf8(output.stdout).unwrap(),
        output.status.success(),
    )
}

fn last(text: &str) -> &str {
    text.lines().last().unwrap()
}

#[test]
fn passed_tests_are_summed_and_what_was_ignored_is_named() {
    let (text, good) = summary(LOG, "");
    assert_eq!(last(&text), "1,204 passed, 0 failed, 0 skipped");
    assert!(
        text.contains("\n    slow::by_hand ... ignored, a minute\n"),
        "{text}"
    );
    assert!(good);
}

#[test]
fn a_test_that_skips_is_not_passed_and_stands_below_its_reason() {
    let skips = "\
test\tlinerate lab::one\tnetem\ta path\tno netem
test\tlinerate lab::one\tnetem\ta path\tno netem
test\tlinerate lab::one\tprograms\tits end\ttc: not installed
test\tlinerate lab::two\tnetem\ttwo paths\tno netem
step\tadvisories\tadvisories\tadvisories\tno database
";
    let (text, good) = summary(LOG, skips);
    assert_eq!(last(&text), "1,202 passed, 0 failed, 3 skipped");
    let listed = "\
skipped, in whole or in part:
  no netem [netem]
    linerate lab::one: a path
    linerate lab::two: two paths
  tc: not installed [programs]
    linerate lab::one: its end
  no database [advisories]
    advisories
";
    assert!(text.contains(listed), "{text}");
    assert!(good);
}

#[test]
fn a_test_that_fails_is_counted_once() {
    let log = LOG
        .replace("test lab::two ... ok", "test lab::two ... FAILED")
        .replace(
            "\ntest result: ok. 3 passed; 0 failed",
            "\nfailures:\n\n---- lab::two stdout ----\n\nthread 'lab::two' panicked at lab.rs:2:5:\nno path\n\n\n\
             failures:\n    lab::two\n\ntest result: FAILED. 2 passed; 1 failed",
        )
        .replace("cargo test ended with 0", "cargo test ended with 101");
    let (text, good) = summary(&log, "test\tlinerate lab::two\tnetem\tits end\tno netem\n");
    assert_eq!(last(&text), "1,203 passed, 1 failed, 0 skipped");
    let failed = "\nfailed:\n    lab::two\n        thread 'lab::two' panicked at lab.rs:2:5:\n        no path\n\n";
    assert!(text.contains(failed), "{text}");
    assert!(!good);
}

#[test]
fn what_ends_without_a_result_fails_whatever_its_exit_code() {
    // A test binary that was killed, or in which something called exit(0).
    let log = LOG.replace("test result: ok. 3 passed", "no result");
    let (text, good) = summary(&log, "");
    assert_eq!(last(&text), "1,201 passed, 1 failed, 0 skipped");
    assert!(text.contains("it-1): ended without a result\n"), "{text}");
    assert!(!good);

    let (text, good) = summary(&LOG.replace("vm ended with 0", "vm ended with 2"), "");
    assert_eq!(last(&text), "1,204 passed, 1 failed, 0 skipped");
    assert!(text.contains("\n    make test-vm ended with 2\n"), "{text}");
    assert!(!good);

    let failed = "test fuzz::auth ... FAILED\n\n---- fuzz::auth stdout ----\nits input\n\ntest result: FAILED. 0 passed; 1 failed";
    let log = LOG.replace(
        "test fuzz::auth ... ok\n\ntest result: ok. 1 passed; 0 failed",
        failed,
    );
    let (text, good) = summary(&log, "");
    assert_eq!(last(&text), "1,203 passed, 1 failed, 0 skipped");
    assert!(
        text.contains("\n    fuzz::auth\n        its input\n"),
        "{text}"
    );
    assert!(!good);
}

#[test]
fn a_filter_that_chooses_no_test_fails() {
    let none = "ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out";
    let log = LOG.replace(
        "ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        none,
    );
    let (text, good) = summary(&log, "");
    assert_eq!(last(&text), "1,201 passed, 1 failed, 0 skipped");
    assert!(text.contains("the filter chose no test"), "{text}");
    assert!(!good);
}

#[test]
fn nothing_passed_is_no_success() {
    let (text, good) = summary("", "");
    assert_eq!(last(&text), "0 passed, 0 failed, 0 skipped");
    assert!(!good);
}

#[test]
fn a_step_that_is_skipped_is_written_down_or_fails() {
    let skips = Scratch::with("step-skips", "");
    let step = |expected: &str| {
        Command::new(repository("scripts/skipped.sh"))
            .args(["advisories", "the licences' advisories", "no database"])
            .env(linerate_testing::SKIPS, &skips.0)
            .env(linerate_testing::EXPECTED, expected)
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(step("userns veth"));
    let written = std::fs::read_to_string(&skips.0).unwrap();
    let columns = ["step", "the licences' advisories", "advisories"];
    assert!(written.starts_with(&columns.join("\t")), "{written}");
    assert!(written.ends_with("\tno database\n"), "{written}");
    assert!(!step("userns advisories veth"));
    assert_eq!(std::fs::read_to_string(&skips.0).unwrap(), written);
}
