//! Files that keep what was confirmed: one folder a case, with `case.json` (what was confirmed; what of the host is
//! other than in `hosts/`) and the folder `files` that is to come out. And the example profiles.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_model::host::{Fact, HostFacts, Keeper, Setting};
use linerate_model::tuning::Object;
use linerate_tune::persist::networkd::{DropIns, NetworkFile};
use linerate_tune::persist::{Confirmed, Kept, Others, files};
use linerate_tune::plan::plan;
use linerate_tune::profile::parse;
use serde::Deserialize;

use crate::hosts::{folder, host};

#[derive(Deserialize)]
struct Case {
    host: String,
    confirmed: Vec<Value>,
    #[serde(default)]
    running: Vec<String>,
    #[serde(default)]
    settings: Vec<Setting>,
    /// The kind of each interface that is another than in the host.
    #[serde(default)]
    kinds: BTreeMap<String, String>,
    /// `.link` files that are there.
    #[serde(default)]
    links: Vec<String>,
    /// The `.network` file of an interface: its path and its lines.
    #[serde(default)]
    networks: BTreeMap<String, (String, Vec<String>)>,
    /// The drop-ins of others beside each of those, in the same form.
    #[serde(default)]
    drop_ins: Vec<(String, Vec<String>)>,
    /// What irqbalance was told.
    #[serde(default)]
    told: Option<String>,
    #[serde(default)]
    left_out: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Value {
    object: Object,
    value: String,
}

impl Case {
    fn facts(&self) -> HostFacts {
        let mut facts = host(&self.host);
        facts.settings = Fact::Known(self.settings.clone());
        facts.keepers = self
            .running
            .iter()
            .map(|name| Keeper {
                name: name.clone(),
                running: Fact::Known(true),
                told: Fact::Known(self.told.clone()),
            })
            .collect();
        if let Fact::Known(interfaces) = &mut facts.interfaces {
            for one in interfaces {
                if let Some(kind) = self.kinds.get(&one.name) {
                    one.kind.clone_from(kind);
                }
            }
        }
        facts
    }

    fn kept(&self) -> Kept {
        let confirmed: Vec<Confirmed> = self
            .confirmed
            .iter()
            .map(|one| Confirmed {
                object: one.object.clone(),
                value: one.value.clone(),
                set: "20261121-120000".to_owned(),
            })
            .collect();
        let drop_in = |(path, lines): &(String, Vec<String>)| {
            let (_, name) = path.rsplit_once('/').unwrap();
            (name.to_owned(), (path.clone(), lines.join("\n")))
        };
        let drop_ins: DropIns = self.drop_ins.iter().map(drop_in).collect();
        let networks = self.networks.iter().map(|(name, (path, lines))| {
            let network = NetworkFile {
                path: path.clone(),
                text: lines.join("\n"),
                drop_ins: drop_ins.clone(),
            };
            (name.clone(), network)
        });
        let others = Others {
            links: self.links.clone(),
            networks: networks.collect(),
        };
        files(&confirmed, &self.facts(), &others, "20261121-120000")
    }
}

fn texts(folder: &Path, below: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts(&path, below, found);
        } else {
            let name = path.strip_prefix(below).unwrap().display().to_string();
            found.insert(format!("/{name}"), std::fs::read_to_string(&path).unwrap());
        }
    }
}

fn cases() -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder().join("persist")).unwrap();
    let mut cases: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

#[test]
fn each_case_gives_its_files() {
    let cases = cases();
    assert!(cases.len() >= 5, "{cases:?}");
    for path in cases {
        let name = path.display();
        let text = std::fs::read_to_string(path.join("case.json")).unwrap();
        let case: Case =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let kept = case.kept();
        let mut wanted = BTreeMap::new();
        texts(&path.join("files"), &path.join("files"), &mut wanted);
        let made: BTreeMap<String, String> = kept
            .files
            .iter()
            .map(|file| (file.path.clone(), file.text.clone()))
            .collect();
        assert_eq!(made, wanted, "{name}");
        assert_eq!(kept.warnings, case.warnings, "{name}");
        let left: Vec<String> = kept
            .left_out
            .iter()
            .map(|(object, why)| format!("{object}: {why}"))
            .collect();
        assert_eq!(left, case.left_out, "{name}");
    }
}

#[test]
fn the_example_profiles_are_profiles_without_old_advice() {
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
    let mut seen = 0;
    for entry in std::fs::read_dir(profiles).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let wishes = parse(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        let plan = plan(&host("dtn"), &wishes);
        assert!(plan.refused.is_empty(), "{name}: {:?}", plan.refused);
        for step in &plan.steps {
            assert!(step.warnings.is_empty(), "{name}: {step:?}");
        }
        seen += 1;
    }
    assert!(seen >= 3, "{seen}");
}

/// The script as irqbalance runs it, with a folder in place of /proc.
#[test]
fn the_policy_script_sets_the_queues_of_its_device_in_turn_and_nothing_else() {
    let text = std::fs::read_to_string(
        folder().join("persist/interrupts-of-irqbalance/files/etc/linerate/irqbalance-policy"),
    )
    .unwrap();
    let proc = tempfile::tempdir().unwrap();
    let proc = proc.path();
    let script = proc.join("script");
    std::fs::write(
        &script,
        text.replace("/proc/", &format!("{}/", proc.display())),
    )
    .unwrap();
    for (number, name) in [
        ("24", "eth0-TxRx-0"),
        ("25", "eth0-TxRx-5"),
        ("26", "eth0"),
        ("27", "eth0-TxRx-50"),
    ] {
        let interrupt = proc.join("irq").join(number);
        std::fs::create_dir_all(interrupt.join(name)).unwrap();
        std::fs::write(interrupt.join("smp_affinity_list"), "0-7\n").unwrap();
    }
    std::fs::create_dir_all(proc.join("irq/28")).unwrap();
    let asked = |device: &str, number: &str| {
        let output = std::process::Command::new("/bin/sh")
            .arg(&script)
            .args([device, number])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && errors.is_empty(), "{errors}");
        let cpus = proc.join("irq").join(number).join("smp_affinity_list");
        let cpus = std::fs::read_to_string(cpus).unwrap_or_default();
        (String::from_utf8(output.stdout).unwrap(), cpus)
    };
    let gave = |said: &str, cpus: &str| (said.to_owned(), cpus.to_owned());
    let card = "/sys/bus/pci/devices/0000:3b:00.0";
    assert_eq!(
        asked("/sys/bus/pci/devices/0000:3b:00.1", "24"),
        gave("", "0-7\n")
    );
    assert_eq!(asked("/sys", "24"), gave("", "0-7\n"));
    assert_eq!(asked(card, "24"), gave("ban=true\n", "0\n"));
    // Four CPUs in turn: the sixth queue has the second.
    assert_eq!(asked(card, "25"), gave("ban=true\n", "1\n"));
    assert_eq!(asked(card, "26"), gave("", "0-7\n"));
    assert_eq!(asked(card, "27"), gave("", "0-7\n"));
    assert_eq!(asked(card, "28"), gave("", ""));
    assert_eq!(asked(card, "no-such-interrupt"), gave("", ""));
}
