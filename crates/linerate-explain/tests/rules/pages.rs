//! Each finding has its page.

use std::path::Path;

#[test]
fn each_rule_has_its_page_with_its_four_parts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings");
    for id in linerate_explain::rule_ids() {
        let path = folder.join(format!("{id}.md"));
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
fn no_page_is_left_without_its_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings");
    let ids: Vec<&str> = linerate_explain::rule_ids().collect();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            stem == "README" || ids.contains(&stem.as_str()),
            "docs/findings/{stem}.md belongs to no rule"
        );
    }
}
