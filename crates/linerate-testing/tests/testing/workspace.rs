//! What the crates of the workspace declare.

use std::path::PathBuf;

use crate::repository;

fn crates() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository("crates")).unwrap();
    let folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(folders.len() > 10, "{folders:?}");
    folders
}

fn read(path: &PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Clippy's `incompatible_msrv` and cargo know the oldest Rust of a crate only where its manifest names one.
#[test]
fn every_crate_inherits_the_oldest_rust() {
    let line = |text: &str, key: &str| {
        let mut lines = text.lines();
        lines.find(|line| line.starts_with(key)).map(str::to_owned)
    };
    for folder in crates().into_iter().chain([repository("fuzz")]) {
        let manifest = folder.join("Cargo.toml");
        let found = line(&read(&manifest), "rust-version");
        let wanted = Some("rust-version.workspace = true");
        assert_eq!(found.as_deref(), wanted, "{}", manifest.display());
    }
}

/// The other rooms are pure: the workspace's `clippy.toml` holds for them.
const MAY_READ_THE_WORLD: [&str; 9] = [
    "linerate",
    "linerate-archive",
    "linerate-engine",
    "linerate-agent",
    "linerate-fleet",
    "linerate-hub",
    "linerate-kernel",
    "linerate-storage",
    "linerate-testing",
];

#[test]
fn every_other_room_is_pure() {
    for folder in crates() {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let own = folder.join("clippy.toml").exists();
        let may = MAY_READ_THE_WORLD.contains(&name.as_str());
        assert_eq!(own, may, "a clippy.toml of {name}'s own");
    }
}

#[test]
fn a_pure_room_has_no_file_no_environment_and_no_clock() {
    let lints = read(&repository("clippy.toml"));
    let (types, methods) = lints.split_once("disallowed-methods").unwrap();
    let forbids = |list: &str, path: &str| list.contains(&format!("{{ path = \"{path}\","));
    for path in [
        "std::fs::File",
        "std::fs::OpenOptions",
        "std::process::Command",
    ] {
        assert!(forbids(types, path), "{path}");
    }
    let functions = [
        "canonicalize copy create_dir create_dir_all exists hard_link metadata read read_dir read_link",
        "read_to_string remove_dir remove_dir_all remove_file rename set_permissions symlink_metadata write",
    ];
    for function in functions.iter().flat_map(|names| names.split(' ')) {
        assert!(
            forbids(methods, &format!("std::fs::{function}")),
            "{function}"
        );
    }
    for function in ["var", "var_os", "vars", "vars_os", "args", "temp_dir"] {
        assert!(
            forbids(methods, &format!("std::env::{function}")),
            "{function}"
        );
    }
    for clock in ["Instant", "SystemTime"] {
        assert!(
            forbids(methods, &format!("std::time::{clock}::now")),
            "{clock}"
        );
    }
}

/// Of the room that reaches hosts, what names them and what folds their answers is pure.
#[test]
fn sets_of_hosts_and_folded_answers_touch_nothing() {
    let source = repository("crates/linerate-fleet/src");
    let nodes = std::fs::read_dir(source.join("nodes")).unwrap();
    let mut files: Vec<PathBuf> = nodes.map(|entry| entry.unwrap().path()).collect();
    files.push(source.join("answers.rs"));
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let text = read(&file);
        let code = text.split("#[cfg(test)]").next().unwrap();
        for path in [
            "std::fs",
            "std::env",
            "std::net",
            "std::process",
            "std::time",
            "linerate_kernel",
        ] {
            assert!(!code.contains(path), "{path} in {}", file.display());
        }
    }
}
