//! `scripts/test.sh`, with a `make` and a `cargo` that only print.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::repository;

const PASSES: &str = "\
echo '     Running tests/it/main.rs (target/fast/deps/it-1)'
echo 'test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";
const SKIPS: &str =
    "printf 'test\\tlinerate a::b\\tnetem\\ta path\\tno netem\\n' >>\"$LINERATE_SKIPS\"";

/// A folder of programs, removed at the end.
struct Programs(TempDir);

impl Programs {
    fn new(programs: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (program, script) in programs {
            let path = folder.path().join(program);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    /// What the script prints where these programs come first.
    fn test(&self) -> (String, Option<i32>) {
        let path = std::env::var("PATH").unwrap();
        let Output { stdout, status, .. } = Command::new(repository("scripts/test.sh"))
            .env("PATH", format!("{}:{path}", self.0.path().display()))
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        (String::from_utf8(stdout).unwrap(), status.code())
    }
}

#[test]
fn all_steps_run_and_the_last_line_sums_them_up() {
    let make = format!("[ \"$2\" != test-vm ] || {{ {PASSES}; {SKIPS}; }}");
    let (text, code) = Programs::new(&[("make", &make), ("cargo", PASSES)]).test();
    for step in ["check", "test-vm"] {
        assert!(
            text.contains(&format!("{step} ended with 0\n")),
            "{step}: {text}"
        );
    }
    assert!(
        text.contains("  no netem [netem]\n    linerate a::b: a path\n"),
        "{text}"
    );
    assert!(
        text.ends_with("\n15 passed, 0 failed, 1 skipped\n"),
        "{text}"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn a_step_that_fails_fails_all_and_the_later_ones_run() {
    let make = format!("[ \"$2\" != test-vm ] || {{ {PASSES}; }}");
    let cargo = format!("case \"$*\" in *--doc*) exit 3 ;; esac\n{PASSES}");
    let (text, code) = Programs::new(&[("make", &make), ("cargo", &cargo)]).test();
    assert!(
        text.contains(
            "\nfailed:\n    cargo test --workspace --locked --profile fast --no-fail-fast --doc ended with 3\n"
        ),
        "{text}"
    );
    assert!(
        text.ends_with("\n12 passed, 1 failed, 0 skipped\n"),
        "{text}"
    );
    assert_eq!(code, Some(3));
}

#[test]
fn where_the_lints_fail_no_test_runs() {
    let (text, code) = Programs::new(&[("make", "exit 2"), ("cargo", PASSES)]).test();
    assert!(
        text.ends_with("\n0 passed, 1 failed, 0 skipped\n"),
        "{text}"
    );
    assert_eq!(code, Some(2));
}

/// A test may leave a process behind that keeps the output open.
#[test]
fn what_a_test_left_running_is_not_waited_for() {
    let cargo = format!("{PASSES}\nsleep 60 >&2 & echo $! >>\"$(dirname \"$0\")/left\"");
    let programs = Programs::new(&[("make", ":"), ("cargo", &cargo)]);
    let begun = Instant::now();
    let (text, code) = programs.test();
    let took = begun.elapsed();
    let left = std::fs::read_to_string(programs.0.path().join("left")).unwrap();
    let ended = Command::new("kill")
        .args(left.split_whitespace())
        .status()
        .unwrap();
    assert!(
        ended.success(),
        "one had ended before the script did: {took:?}"
    );
    assert!(
        text.ends_with("\n12 passed, 0 failed, 0 skipped\n"),
        "{text}"
    );
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(50), "{took:?}");
}
