//! The scenarios of the repository.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read the repository's files"
)]

use std::collections::BTreeSet;
use std::path::Path;

use linerate_lab::scenario::{Claim, Family, PRESETS, Scenario};

/// Every scenario of the folder, with the name of its file.
fn all() -> Vec<(String, Scenario)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = std::fs::read_dir(&folder).expect("the folder of the scenarios");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut all: Vec<_> = paths
        // Stars are in a folder of their own.
        .filter(|path| path.is_file())
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a file");
            let file = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .expect("a name");
            let scenario = Scenario::parse(file, &text).unwrap_or_else(|error| panic!("{error}"));
            (file.to_owned(), scenario)
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn each_reads_and_says_what_it_shows_and_expects() {
    for (file, scenario) in all() {
        assert_eq!(scenario.name, file);
        assert!(scenario.about.len() > 20, "{file}: {}", scenario.about);
        assert!(!scenario.expect.top.is_empty(), "{file} expects no finding");
        assert!(
            scenario.expect.goodput.is_some(),
            "{file} expects no goodput"
        );
        let seconds = scenario.test.duration().expect("a duration").as_secs_f64();
        // What grows by a segment a round trip shows its mean only after several losses, few losses show no mean, and a
        // rate is foretold only from dozens.
        let most = match file.as_str() {
            "reno-eight-streams-200ms" => 120.0,
            "loss-every-5000-20ms" | "small-mss-536" => 80.0,
            "reno-100ms" | "random-loss-24ms" | "shallow-queue-four-streams" => 40.0,
            "mtu-576-loss-20ms" | "random-loss-10ms" | "random-loss-20ms" | "random-loss-60ms" => {
                26.0
            }
            _ => 10.0,
        };
        assert!((2.0..=most).contains(&seconds), "{file} takes {seconds} s");
    }
}

#[test]
fn there_are_enough_of_each_kind() {
    let all = all();
    let healthy = all
        .iter()
        .filter(|(file, _)| file.starts_with("healthy-"))
        .count();
    let ipv6 = all
        .iter()
        .filter(|(_, scenario)| scenario.family == Family::Ipv6)
        .count();
    assert!(all.len() >= 40, "{}", all.len());
    assert!(healthy >= 10, "{healthy} healthy ones");
    assert!(ipv6 >= 6, "{ipv6} over IPv6");
    let expected: BTreeSet<&str> = all
        .iter()
        .flat_map(|(_, scenario)| &scenario.expect.top)
        .map(String::as_str)
        .collect();
    // The causes that a path and two hosts can show. What other tools print (units-mixed, counter-wrap) and
    // what a hypervisor does (virtualisation-limit) is no path's.
    for cause in [
        "asymmetric",
        "bimodal",
        "bufferbloat",
        "congested",
        "congestion-control",
        "early-slow-start-exit",
        "ecn",
        "mtu-black-hole",
        "path-change",
        "path-full",
        "policer",
        "random-loss",
        "rate-capped",
        "receive-window",
        "receiver-application",
        "receiver-cpu",
        "reordering",
        "send-buffer",
        "sender-application",
        "sender-cpu",
        "shaper",
        "slow-start",
        "small-mss",
        "stall",
        "summary-hides-ramp",
        "udp-path-loss",
        "udp-receiver-drop",
        "udp-sender-short",
        "unstable",
    ] {
        assert!(expected.contains(cause), "no scenario shows {cause}");
    }
}

#[test]
fn each_claims_something_that_counters_can_show() {
    for (file, scenario) in all() {
        let claims = scenario.claims();
        let more_than_delay = claims.iter().any(|(_, claim)| *claim != Claim::Delays);
        // Of a test that is over before the path is full, the path shows nothing but its delay.
        let short = scenario.expect.top.iter().any(|id| id == "slow-start");
        assert!(
            more_than_delay || short || file.starts_with("healthy-"),
            "{file}: {claims:?}"
        );
    }
}

#[test]
fn healthy_ones_expect_nothing_but_health() {
    let healthy = |id: &String| ["path-full", "rate-capped"].contains(&id.as_str());
    for (file, scenario) in all() {
        if file.starts_with("healthy-") {
            assert!(scenario.expect.top.iter().all(healthy), "{file}");
        }
    }
    let presets = PRESETS
        .iter()
        .filter(|preset| preset.name.starts_with("wan-"));
    for preset in presets {
        let scenario = preset.scenario().expect("it reads");
        assert_eq!(scenario.expect.top, ["path-full"], "{}", preset.name);
    }
}
