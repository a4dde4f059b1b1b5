//! The static binary that `make release` makes, in a root that has nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_testing::{Need, skipped};

use super::{Children, PATIENCE};
use crate::harness::{Folder, beside, lacks_namespaces, run, say};

fn binary(what: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../release/linerate");
    if path.exists() {
        return Some(path);
    }
    skipped(
        Need::StaticBinary,
        what,
        "there is no release/linerate (make release)",
    );
    None
}

#[test]
fn the_static_binary_runs_in_an_empty_root() {
    let _beside = beside();
    let Some(binary) = binary("an empty root") else {
        return;
    };
    let folder = Folder::new();
    std::fs::copy(&binary, folder.file("linerate")).unwrap();
    let within = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--root"])
            .arg(folder.path());
        run(command.arg("/linerate").args(words), PATIENCE)
    };
    let done = within(&["--version"]);
    if lacks_namespaces("an empty root", &done) {
        return;
    }
    assert_eq!(done.code(), Some(0), "{}", done.error);
    assert!(done.out.starts_with("linerate "), "{}", done.out);
    let done = within(&["expect", "--rate", "10G", "--rtt", "60ms"]);
    assert_eq!(done.code(), Some(0), "{}", done.error);
    // There is no /proc: facts are unknown, and that is no error.
    let done = within(&["host"]);
    assert_eq!(done.code(), Some(0), "{}", done.error);
    // Its input is at its end.
    let done = within(&["agent", "--stdio"]);
    assert_eq!(done.code(), Some(0), "{}", done.error);
    assert!(done.out.contains("\"kind\":\"hello\""), "{}", done.out);
}

#[test]
fn the_static_binary_gets_onto_a_host_by_itself() {
    let _beside = beside();
    let Some(binary) = binary("the static binary on a host") else {
        return;
    };
    let children = Children::new();
    let mut command = Command::new(binary);
    command.args([
        "expect",
        "--rate",
        "10G",
        "--rtt",
        "60ms",
        "--on",
        "n1",
        "--via",
        &children.via(),
    ]);
    let done = run(&mut command, PATIENCE);
    assert_eq!(done.code(), Some(0), "{}", done.error);
    say(&format!(
        "the static binary, copied and asked: {:.2} s",
        done.took.as_secs_f64()
    ));
}
