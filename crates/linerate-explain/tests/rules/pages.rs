//! Each finding has its page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings")
}

/// All ids: of rules, of what only a transcript or a capture shows, and of probes of disks.
fn ids() -> BTreeSet<&'static str> {
    linerate_explain::rule_ids()
        .chain(linerate_explain::reading_ids())
        .chain(linerate_explain::probe_ids())
        .collect()
}

#[test]
fn each_finding_has_its_page_with_its_four_parts() {
    for id in ids() {
        let path = folder().join(format!("{id}.md"));
        let page = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
        assert!(page.starts_with(&format!("# {id}\n")), "{id}: its title");
        for part in [
            "## What it means",
            "## How it is decided",
            "## What to do",
            "## What can fool it",
        ] {
            let body = page.split_once(part).map(|(_, body)| body.trim());
            assert!(body.is_some_and(|body| body.len() > 40), "{id}: {part}");
        }
    }
}

#[test]
fn no_page_is_left_without_its_finding_and_the_list_names_each() {
    let list = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let ids = ids();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if stem == "README" {
            continue;
        }
        assert!(
            ids.contains(stem.as_str()),
            "docs/findings/{stem}.md belongs to no finding"
        );
        assert!(
            list.contains(&format!("- [{stem}]({stem}.md): ")),
            "docs/findings/README.md does not list {stem}"
        );
    }
}

/// The first argument of each call that begins a finding in a source, where it is a literal.
fn literals(source: &str) -> Vec<String> {
    let calls = ["finding(", "Finding::new(", "Draft::new("];
    calls
        .iter()
        .flat_map(|call| source.match_indices(call))
        .filter_map(|(at, call)| {
            let rest = source[at + call.len()..].trim_start();
            let literal = rest.strip_prefix('"')?.split('"').next()?;
            Some(literal.to_owned())
        })
        .collect()
}

#[test]
fn every_id_that_the_sources_give_is_known() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (ids, mut seen) = (ids(), 0);
    for room in ["transcript", "capture", "rules"] {
        for entry in std::fs::read_dir(sources.join(room)).unwrap() {
            let path = entry.unwrap().path();
            let source = std::fs::read_to_string(&path).unwrap();
            for id in literals(&source) {
                assert!(ids.contains(id.as_str()), "{}: '{id}'", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 60, "{seen} ids in the sources");
}
