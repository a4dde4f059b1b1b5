//! The stars of the repository.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read the repository's files"
)]

use std::path::Path;

use linerate_lab::star::{Down, Star, is_star};
use linerate_model::mesh::MeshCauseKind;

/// Every star of the folder, with the name of its file.
fn all() -> Vec<(String, Star)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/star");
    let entries = std::fs::read_dir(&folder).expect("the folder of the stars");
    let mut all: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("a file");
            let file = path.file_stem().and_then(|stem| stem.to_str());
            let file = file.expect("a name").to_owned();
            assert!(is_star(&text), "{file}");
            let star = Star::parse(&file, &text).unwrap_or_else(|error| panic!("{error}"));
            (file, star)
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn each_says_what_is_planted_and_what_has_to_be_found() {
    for (file, star) in all() {
        assert_eq!(star.name, file);
        assert!(star.about.len() > 20, "{file}: {}", star.about);
        let expected = star.expect.as_ref();
        let expected = expected.unwrap_or_else(|| panic!("{file} expects nothing"));
        assert_eq!(
            expected.kind.is_none(),
            file.starts_with("healthy"),
            "{file}"
        );
        for name in &expected.names {
            let parts: Vec<&str> = name
                .split([' ', '>', '<'])
                .filter(|part| !part.is_empty())
                .collect();
            let known = |part: &&str| {
                let hosts = star.hosts.iter().map(|host| host.name.as_str());
                let mut all = hosts.chain(star.switches.iter().map(|switch| switch.name.as_str()));
                all.any(|name| name == *part)
            };
            assert!(parts.iter().all(known), "{file} has no {name}");
        }
    }
}

#[test]
fn every_kind_of_cause_but_a_pair_is_planted() {
    let kinds: Vec<_> = all()
        .into_iter()
        .map(|(_, star)| star.expect.and_then(|expected| expected.kind))
        .collect();
    for kind in [
        MeshCauseKind::HostOut,
        MeshCauseKind::HostIn,
        MeshCauseKind::Host,
        MeshCauseKind::Group,
        MeshCauseKind::Trunk,
        MeshCauseKind::Port,
    ] {
        assert!(kinds.contains(&Some(kind)), "{kind:?}");
    }
    assert!(kinds.contains(&None));
}

/// What is said to be wrong is wrong by the file's own figures, and nothing else.
#[test]
fn what_is_planted_is_in_the_figures() {
    for (file, star) in all() {
        let usual = star.hosts.iter().map(|host| host.rate_out).max().unwrap();
        let odd: Vec<&str> = star
            .hosts
            .iter()
            .filter(|host| host.rate_out != usual || host.rate_in != usual || host.down.is_some())
            .map(|host| host.name.as_str())
            .collect();
        let expected = star.expect.expect("an expectation");
        let host = matches!(
            expected.kind,
            Some(MeshCauseKind::HostOut | MeshCauseKind::HostIn | MeshCauseKind::Host)
        );
        if host {
            assert_eq!(odd, expected.names, "{file}");
        } else {
            assert!(odd.is_empty(), "{file}");
        }
        // What the hosts of the smaller side can send together fits into any member of a trunk, or not.
        let on = |switch: usize| star.hosts.iter().filter(move |host| host.switch == switch);
        let least_side = (0..star.switches.len())
            .map(|switch| on(switch).map(|host| host.rate_out.0).sum::<u64>())
            .filter(|sum| *sum > 0)
            .min()
            .unwrap();
        let members = star.trunks.iter().flat_map(|trunk| &trunk.members);
        let narrow = members.filter(|member| member.rate.0 < least_side).count();
        let planted = match expected.kind {
            Some(MeshCauseKind::Trunk | MeshCauseKind::Port) => 1,
            _ => 0,
        };
        // A host that sends less leaves the trunk as wide as it was.
        assert_eq!(narrow, planted, "{file}");
        let dead = star
            .hosts
            .iter()
            .filter(|host| host.down == Some(Down::Host));
        assert_eq!(dead.count() > 0, file == "dead-host", "{file}");
    }
}
