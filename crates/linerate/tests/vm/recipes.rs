//! Recipes that people really applied, on the disk of a real Debian: each dead or harmful key is named with file and
//! line by the audit after the next boot.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::audit::{FAR, audit, firing};
use crate::images::images;
use crate::machine::{Build, Card, Disk, Machine, System};

const FILE: &str = "/etc/sysctl.d/90-recipe.conf";

/// What the audit of a guest that booted with a recipe says of its lines.
fn named(recipe: &str) -> Option<BTreeSet<(String, u32)>> {
    let images = images(recipe)?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../linerate-tune/tests/tune/recipes")
        .join(recipe);
    let text = std::fs::read_to_string(path).unwrap();
    let disk = Disk::new(images);
    let mut build = Build::new(System::Small, &[]);
    let mut machine = Machine::boot(&disk, &build);
    machine.write(FILE, text.trim_end());
    machine.power_off();

    // Room enough for the task, so that memory is no question.
    build = Build::new(System::Debian, &[Card::Queues(2)]);
    build.memory_mib = 8192;
    let mut machine = Machine::boot(&disk, &build);
    let audit = audit(&mut machine, FAR);
    machine.power_off();
    Some(lines(&audit))
}

/// Check and line of every verdict that names the recipe's file.
fn lines(audit: &Value) -> BTreeSet<(String, u32)> {
    let mut lines = BTreeSet::new();
    for (check, verdict) in firing(audit) {
        for place in verdict["set_by"].as_array().unwrap() {
            let place = place.as_str().unwrap();
            let line = place
                .strip_prefix(FILE)
                .and_then(|end| end.strip_prefix(':'));
            let line = line.unwrap_or_else(|| panic!("{check}: {place}"));
            lines.insert((check.to_owned(), line.parse().unwrap()));
        }
    }
    lines
}

#[track_caller]
fn expect(recipe: &str, wanted: &[(&str, u32)]) {
    let Some(named) = named(recipe) else { return };
    let wanted: BTreeSet<(String, u32)> = wanted
        .iter()
        .map(|(check, line)| ((*check).to_owned(), *line))
        .collect();
    assert_eq!(named, wanted, "{recipe}");
}

#[test]
fn a_vendor_s_guide_of_2012() {
    expect(
        "vendor-10g-2012.conf",
        &[
            ("H01", 2),
            ("H01", 3),
            ("H05", 4),
            ("H04", 7),
            ("H04", 8),
            ("H02", 9),
            ("H03", 10),
            ("T01", 11),
            ("T02", 12),
            ("H02", 13),
        ],
    );
}

#[test]
fn a_testbed_s_hosts() {
    expect(
        "exogeni-host.conf",
        &[
            ("H04", 2),
            ("H04", 3),
            ("T01", 6),
            ("T02", 7),
            ("H05", 8),
            ("H02", 9),
            ("T07", 9),
        ],
    );
}

#[test]
fn a_route_of_536_km() {
    expect(
        "bwnet-10g-2017.conf",
        &[
            ("T01", 4),
            ("T02", 5),
            ("H05", 6),
            ("H02", 7),
            ("T07", 7),
            ("H01", 9),
            ("H02", 10),
        ],
    );
}

#[test]
fn a_laboratory_of_2002() {
    expect("lanl-2002.conf", &[("T02", 3), ("T01", 4), ("H03", 5)]);
}

/// 128 MiB are window by half on this kernel: most of 10 Gbit/s at 60 ms, not all of it.
#[test]
fn what_a_measurement_network_advises() {
    expect("perfsonar-autotuning.conf", &[("T01", 2), ("T02", 3)]);
}
