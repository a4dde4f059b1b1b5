//! Skips that are counted: a real one, of this binary started again, and logs and skips as the summary reads them.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail like the test")]

mod script;
mod summary;
mod workspace;

use std::path::PathBuf;
use std::process::Command;

use linerate_testing::{EXPECTED, Need, SKIPS, skipped};

/// A file or folder of the repository.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// A file of this process's own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn with(name: &str, text: &str) -> Self {
        let name = format!("linerate-testing-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[test]
fn a_skip_is_written_down_and_fails_where_it_is_not_expected() {
    const TEST: &str = "a_skip_is_written_down_and_fails_where_it_is_not_expected";
    const INSIDE: &str = "LINERATE_TESTING_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return skipped(Need::Tbf, "a bucket", "this kernel\nhas none");
    }
    let skips = Scratch::with("skips", "");
    let again = |expected: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--test-threads=2"])
            .env(INSIDE, "1")
            .env(SKIPS, &skips.0)
            .env(EXPECTED, expected)
            .output()
            .unwrap()
    };
    let written = || std::fs::read_to_string(&skips.0).unwrap();

    let allowed = again("userns veth");
    let (told, said) = (allowed.stdout, allowed.stderr);
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("\ntest result: ok. 1 passed;"), "{told}");
    // libtest keeps to itself what a test that passes prints; this it does not.
    assert_eq!(said, b"skipped: a bucket: this kernel\nhas none\n");
    let package = env!("CARGO_PKG_NAME");
    let line = written();
    assert!(line.starts_with(&format!("test\t{package} ")), "{line}");
    assert!(
        line.ends_with("\ttbf\ta bucket\tthis kernel has none\n"),
        "{line}"
    );

    let refused = again("veth tbf");
    let told = String::from_utf8(refused.stdout).unwrap();
    assert!(told.contains("expected to have tbf"), "{told}");
    assert_eq!(refused.status.code(), Some(101));
    assert_eq!(written(), line);
}
