//! Recipes that people really applied, as files of a host: each dead or harmful key is named with file and line.

use std::collections::BTreeSet;

use linerate_kernel::inventory::{NoKernel, Root, collect};
use linerate_model::audit::Outcome;
use tempfile::TempDir;

use crate::hosts::{far, folder};

/// A folder that stands for `/`, removed at the end.
struct FakeRoot(TempDir);

impl FakeRoot {
    fn new() -> Self {
        let root = Self(TempDir::new().unwrap());
        root.write("proc/sys/kernel/osrelease", "6.18.1-amd64\n");
        root.write("proc/meminfo", "MemTotal:       67108864 kB\n");
        root
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// What the audit says of the file: check and line.
fn named(recipe: &str) -> BTreeSet<(String, u32)> {
    let root = FakeRoot::new();
    let text = std::fs::read_to_string(folder().join("recipes").join(recipe)).unwrap();
    root.write("etc/sysctl.d/90-recipe.conf", &text);
    let facts = collect(&Root::at(root.0.path()).unwrap(), &NoKernel, 0);
    let audit = linerate_tune::audit(&facts, None, &far()).unwrap();
    let mut named = BTreeSet::new();
    for verdict in audit.firing() {
        let Outcome::Fires { set_by, .. } = &verdict.outcome else {
            continue;
        };
        for place in set_by {
            let line = place.strip_prefix("/etc/sysctl.d/90-recipe.conf:").unwrap();
            named.insert((verdict.check.clone(), line.parse().unwrap()));
        }
    }
    named
}

fn expect(recipe: &str, wanted: &[(&str, u32)]) {
    let wanted: BTreeSet<(String, u32)> = wanted
        .iter()
        .map(|(check, line)| ((*check).to_owned(), *line))
        .collect();
    assert_eq!(named(recipe), wanted, "{recipe}");
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
            ("H06", 11),
            ("H02", 13),
        ],
    );
}

#[test]
fn a_testbed_s_hosts() {
    expect(
        "exogeni-host.conf",
        &[("H04", 2), ("H04", 3), ("H06", 6), ("H05", 8), ("H02", 9)],
    );
}

#[test]
fn a_route_of_536_km() {
    expect(
        "bwnet-10g-2017.conf",
        &[("H05", 6), ("H02", 7), ("H01", 9), ("H02", 10)],
    );
}

#[test]
fn a_laboratory_of_2002() {
    expect("lanl-2002.conf", &[("H06", 4), ("H03", 5)]);
}

#[test]
fn a_recipe_that_is_still_right_is_left_alone() {
    expect("perfsonar-autotuning.conf", &[]);
}

#[test]
fn every_recipe_is_held() {
    let names: BTreeSet<String> = std::fs::read_dir(folder().join("recipes"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn the_profile_of_tuned_that_lowers_the_default_is_named() {
    let root = FakeRoot::new();
    root.write("etc/tuned/active_profile", "network-throughput\n");
    root.write(
        "usr/lib/tuned/profiles/network-throughput/tuned.conf",
        "[main]\nsummary=x\ninclude=throughput-performance\n\n[sysctl]\nnet.ipv4.tcp_rmem=\"4096 131072 16777216\"\nnet.ipv4.tcp_wmem=4096 16384 16777216\n",
    );
    root.write(
        "etc/sysctl.d/10-x.conf",
        "net.ipv4.tcp_wmem = 4096 16384 33554432\n",
    );
    let facts = collect(&Root::at(root.0.path()).unwrap(), &NoKernel, 0);
    let audit = linerate_tune::audit(&facts, None, &far()).unwrap();
    let by = |id: &str| -> Vec<String> {
        let firing = audit.firing().filter(|verdict| verdict.check == id);
        firing
            .flat_map(|verdict| match &verdict.outcome {
                Outcome::Fires { set_by, .. } => set_by.clone(),
                _ => Vec::new(),
            })
            .collect()
    };
    let file = "/usr/lib/tuned/profiles/network-throughput/tuned.conf";
    assert_eq!(by("H06"), [format!("{file}:6")]);
    assert_eq!(
        by("H07"),
        ["/etc/sysctl.d/10-x.conf:1".to_owned(), format!("{file}:7")]
    );
}
