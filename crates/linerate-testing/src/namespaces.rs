//! A test that runs itself again, alone in its process, in namespaces that `unshare` made before the process had a
//! second thread.

use std::io::Write as _;
use std::process::{Command, Output};

use crate::skips::{Need, skipped};

/// Environment variable: the test that runs again.
pub(crate) const AGAIN: &str = "LINERATE_TEST_AGAIN";
/// The options of `unshare` for a network namespace in which an ordinary user has the rights of root.
pub const USER_AND_NETWORK: [&str; 3] = ["--user", "--map-root-user", "--net"];
/// The words of the shell once the namespaces exist, and once the set-up has succeeded.
const APART: &str = "linerate-testing: in namespaces";
const READY: &str = "linerate-testing: set up";

/// Runs `work`, the body of the test named `test` (with its modules), in new namespaces: the options of `unshare` that
/// make them, such as `--net`. The shell commands `setup` run there first; each must succeed.
///
/// The test is skipped where the namespaces or the set-up cannot be had. What the test writes to its standard error
/// shows on the outer one's.
///
/// # Panics
///
/// Where `work` panics, and where the test binary did not run exactly this one test.
#[track_caller]
pub fn in_namespaces(unshare: &[&str], test: &str, setup: &str, work: impl FnOnce()) {
    if std::env::var_os(AGAIN).is_some_and(|again| again == test) {
        return work();
    }
    let program = std::env::current_exe()
        .unwrap_or_else(|error| panic!("{test}: cannot name the test binary: {error}"));
    let script = format!(
        "set -e\necho '{APART}'\n{setup}\necho '{READY}'\nexec \"$0\" --exact \"$1\" --nocapture"
    );
    let output = Command::new("unshare")
        .args(unshare)
        .args(["sh", "-c", &script])
        .arg(program)
        .arg(test)
        .env(AGAIN, test)
        .output();
    match output {
        Ok(output) => judge(test, &output),
        Err(error) => skipped(Need::Programs, test, &format!("unshare: {error}")),
    }
}

#[track_caller]
fn judge(test: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    let told = String::from_utf8_lossy(&output.stdout);
    let reached = |mark: &str| told.lines().any(|line| line == mark);
    if !reached(APART) {
        return skipped(
            Need::UserNamespaces,
            test,
            &format!("no namespaces: {said}"),
        );
    }
    if !reached(READY) {
        return skipped(Need::VirtualLinks, test, &format!("set-up failed: {said}"));
    }
    for line in said.lines() {
        repeat(line);
    }
    let ran = output.status.success() && told.contains("\ntest result: ok. 1 passed;");
    // Indented, so that no reader of the log takes the inner result for an outer one.
    let inner = format!("{told}{said}").replace('\n', "\n    ");
    assert!(
        ran,
        "{test}, run again in namespaces, {}, which is not one passed test:\n    {inner}",
        output.status
    );
}

/// A skip passes libtest's capture, as it did inside.
#[expect(
    clippy::print_stderr,
    reason = "what a test prints belongs to its output"
)]
fn repeat(line: &str) {
    if line.starts_with("skipped: ") {
        drop(writeln!(std::io::stderr(), "{line}"));
    } else {
        eprintln!("{line}");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn judged(code: i32, told: &str) -> Result<(), String> {
        let output = Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: format!("{APART}\n{READY}\n{told}").into_bytes(),
            stderr: b"why\n".to_vec(),
        };
        std::panic::catch_unwind(|| judge("a::test", &output))
            .map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
    }

    #[test]
    fn only_one_passed_test_is_a_success() {
        assert_eq!(
            judged(0, "\ntest result: ok. 1 passed; 0 failed;\n"),
            Ok(())
        );
        // The name matches no test, which libtest calls a success.
        let none = judged(0, "\ntest result: ok. 0 passed; 0 failed;\n").unwrap_err();
        assert!(none.contains("not one passed test"), "{none}");
        let failed = judged(101, "\ntest result: FAILED. 0 passed; 1 failed;\n").unwrap_err();
        assert!(failed.contains("\n    test result: FAILED"), "{failed}");
        assert!(failed.contains("\n    why"), "{failed}");
        // The process ended before its test did.
        assert!(judged(0, "").is_err());
    }
}
