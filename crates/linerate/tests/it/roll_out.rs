//! `linerate tune apply --on`: a change on the hosts of a star, killed and stopped on the way.

use std::path::PathBuf;
use std::process::Command;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use super::harness::{LINERATE, LONG, beside, run, start, wait_until};
use super::star::Up;

const OLD: &str = "4096 131072 6000000";
const NEW: &str = "4096 131072 8000000";
const KEY: &str = "/proc/sys/net/ipv4/tcp_rmem";

/// Hosts on one switch, with the old value.
struct Fleet {
    star: Up,
    nodes: Vec<String>,
    profile: PathBuf,
}

impl Fleet {
    fn new(what: &str, hosts: usize) -> Option<Self> {
        let text = format!(
            "name = \"rack\"\nabout = \"one rack\"\n[star]\nrate = \"20M\"\n\
             [[star.switch]]\nname = \"rack1\"\nhosts = \"node[1-{hosts}]\"\n"
        );
        let star = Up::new(what, &text)?;
        let profile = star
            .folder
            .with("fast.conf", format!("net.ipv4.tcp_rmem = {NEW}\n"));
        let fleet = Self {
            star,
            nodes: (1..=hosts).map(|host| format!("node{host}")).collect(),
            profile,
        };
        for node in &fleet.nodes {
            let write = format!("echo '{OLD}' >{KEY}");
            let done = run(&mut fleet.star.exec(node, &["sh", "-c", &write]), LONG);
            if done.code() != Some(0) {
                skipped(Need::NamespaceSysctls, what, done.error.trim());
                return None;
            }
        }
        Some(fleet)
    }

    fn journal(&self) -> PathBuf {
        self.star.folder.file("journal.jsonl")
    }

    fn noted(&self) -> String {
        std::fs::read_to_string(self.journal()).unwrap_or_default()
    }

    /// `linerate tune apply` with these words, over the star.
    fn apply(&self, words: &[&str]) -> Command {
        let via = format!("{LINERATE} lab exec x {{host}} -- sh -c");
        let mut command = Command::new(LINERATE);
        command
            .args(["tune", "apply", "--via", &via])
            .args(words)
            .env("XDG_RUNTIME_DIR", self.star.folder.path())
            .env("HOME", self.star.folder.path())
            .env_remove("XDG_CACHE_HOME");
        command
    }

    /// A new roll-out on these hosts.
    fn begin(&self, on: &str, words: &[&str]) -> Command {
        let state = self.star.folder.file("state/{host}");
        let (journal, profile) = (self.journal(), self.profile.clone());
        let mut all = vec![
            profile.to_str().unwrap(),
            "--on",
            on,
            "--state",
            state.to_str().unwrap(),
            "--journal",
            journal.to_str().unwrap(),
            "--confirm-within",
            "60s",
        ];
        all.extend(words);
        self.apply(&all)
    }

    /// What each host has.
    fn values(&self) -> Vec<String> {
        let value = |node: &String| {
            let done = run(&mut self.star.exec(node, &["cat", KEY]), LONG).expect(0);
            done.out.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        self.nodes.iter().map(value).collect()
    }

    /// Runs one until its journal has this text, and kills it.
    fn killed_at(&self, text: &str, words: &[&str]) {
        drop(std::fs::remove_file(self.journal()));
        let mut running = start(&mut self.begin("node[1-2]", words));
        assert!(
            wait_until(LONG, || self.noted().contains(text) || running.ended()),
            "{text}"
        );
        running.kill();
        let noted = self.noted();
        assert!(noted.contains(text), "{text}: {noted}\n{}", running.error());
    }
}

fn outcomes(table: &Value) -> Vec<&str> {
    let hosts = table["hosts"].as_array().unwrap();
    let outcomes = hosts.iter().map(|host| host["outcome"].as_str().unwrap());
    outcomes.collect()
}

#[test]
fn every_host_gets_the_change_and_gives_it_back() {
    let _beside = beside();
    let Some(fleet) = Fleet::new("a roll-out", 2) else {
        return;
    };
    for (words, names) in [
        (&["--prove", "node3"][..], "--canary"),
        (&["--yes"], "--yes"),
        (&["--one-per", "rack"], "--one-per rack"),
        (&["--batch", "0%"], "0%"),
    ] {
        let refused = run(&mut fleet.begin("node[1-2]", words), LONG).expect(2);
        assert!(refused.error.contains(names), "{}", refused.error);
    }
    let dry = run(&mut fleet.begin("node[1-2]", &["--dry-run"]), LONG).expect(0);
    assert!(
        dry.out.starts_with(&format!(
            "node[1-2]:\n  net.ipv4.tcp_rmem = {NEW} (now: {OLD}"
        )),
        "{}",
        dry.out
    );
    assert!(!fleet.journal().exists());
    assert_eq!(fleet.values(), [OLD, OLD]);

    let done = run(
        &mut fleet.begin("node[1-2]", &["--canary", "1", "--batch", "50%", "--json"]),
        LONG,
    )
    .expect(0);
    let table = done.json();
    assert_eq!(table["kind"], "roll_out");
    assert_eq!(outcomes(&table), ["changed", "changed"], "{table}");
    assert_eq!(table["hosts"][0]["canary"], true);
    assert_eq!(table["hosts"][1]["batch"], 1);
    // Each host with the other one, both ways.
    let tests = table["tests"].as_array().unwrap();
    let compared = tests.iter().filter(|test| test["verdict"].is_string());
    assert_eq!(compared.count(), 4, "{table}");
    assert_eq!(fleet.values(), [NEW, NEW]);

    let again = run(&mut fleet.begin("node[1-2]", &[]), LONG).expect(0);
    assert!(again.out.contains("2 unchanged"), "{}", again.out);

    let journal = fleet.journal();
    let back = ["--back", journal.to_str().unwrap()];
    let back = run(&mut fleet.apply(&back), LONG).expect(0);
    assert!(back.out.contains("2 rolled back"), "{}", back.out);
    assert_eq!(fleet.values(), [OLD, OLD]);
}

/// Loses all its packets a moment after it has the new value, as long as it has it.
const LOSES_ITS_LINK: &str = r#"
ttl=/proc/sys/net/ipv4/ip_default_ttl six=/proc/sys/net/ipv6/conf/all/disable_ipv6
old=$(cat /proc/sys/net/ipv4/tcp_rmem)
echo 1 >$six
while [ "$(cat /proc/sys/net/ipv4/tcp_rmem)" = "$old" ]; do sleep 0.1; done
sleep 1
echo 1 >$ttl
while [ "$(cat /proc/sys/net/ipv4/tcp_rmem)" != "$old" ]; do sleep 0.1; done
echo 64 >$ttl
"#;

#[test]
fn a_host_that_loses_its_link_goes_back_and_no_further_one_begins() {
    let _beside = beside();
    let Some(fleet) = Fleet::new("a roll-out that stops", 2) else {
        return;
    };
    let mut link = start(&mut fleet.star.exec("node1", &["sh", "-c", LOSES_ITS_LINK]));
    let done = run(
        &mut fleet.begin("node[1-2]", &["--max-failures", "1", "--json"]),
        LONG,
    );
    link.kill();
    let done = done.expect(9);
    let table = done.json();
    assert_eq!(outcomes(&table), ["rolled_back", "unchanged"], "{table}");
    assert_eq!(table["state"]["state"], "stopped", "{table}");
    assert_eq!(fleet.values(), [OLD, OLD]);
    assert!(done.error.contains("node1"), "{}", done.error);
}

#[test]
fn a_killed_roll_out_goes_on_or_back() {
    let _beside = beside();
    let Some(fleet) = Fleet::new("a roll-out that is killed", 2) else {
        return;
    };
    let journal = fleet.journal();
    let journal = journal.to_str().unwrap();
    for (text, option) in [
        ("\"action\":\"apply\"", "--resume"),
        ("\"entry\":\"applied\"", "--back"),
        ("\"action\":\"confirm\"", "--back"),
        ("\"entry\":\"confirmed\"", "--resume"),
    ] {
        fleet.killed_at(text, &[]);
        let done = run(&mut fleet.apply(&[option, journal, "--json"]), LONG).expect(0);
        let values = fleet.values();
        let what = format!("{text} {option}: {values:?}\n{}", done.out);
        if option == "--back" {
            assert_eq!(values, [OLD, OLD], "{what}");
        } else {
            assert_eq!(outcomes(&done.json()), ["changed", "changed"], "{what}");
            assert_eq!(values, [NEW, NEW], "{what}");
            run(&mut fleet.apply(&["--back", journal]), LONG).expect(0);
            assert_eq!(fleet.values(), [OLD, OLD], "{text}");
        }
    }
}
