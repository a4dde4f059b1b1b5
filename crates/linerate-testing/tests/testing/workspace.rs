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
    for folder in crates() {
        let manifest = folder.join("Cargo.toml");
        let found = line(&read(&manifest), "rust-version");
        let wanted = Some("rust-version.workspace = true");
        assert_eq!(found.as_deref(), wanted, "{}", manifest.display());
    }
    // The fuzz targets are a workspace of their own.
    let workspace = line(&read(&repository("Cargo.toml")), "rust-version");
    assert!(workspace.is_some());
    assert_eq!(
        line(&read(&repository("fuzz/Cargo.toml")), "rust-version"),
        workspace
    );
}
