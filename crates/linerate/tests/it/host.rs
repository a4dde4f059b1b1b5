//! `linerate host`: this machine's facts, which are read and never touched, and hosts in namespaces.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Folder, Hosts, LONG, beside, linerate, run, skipped};

fn document(command: &mut Command, code: i32) -> Value {
    let out = run(command, LONG).expect(code).out;
    serde_json::from_str(&out).unwrap()
}

/// The outcome of a check, the first of several.
fn outcome<'a>(audit: &'a Value, check: &str) -> &'a str {
    let verdicts = audit["verdicts"].as_array().unwrap();
    let found = verdicts.iter().find(|one| one["check"] == check);
    found.unwrap()["outcome"].as_str().unwrap()
}

#[test]
fn facts_are_written_audited_and_compared() {
    let _beside = beside();
    let folder = Folder::new();
    let text = run(&mut linerate("host"), LONG).expect(0).out;
    for word in ["Kernel", "CPUs", "lo", "net.ipv4.tcp_rmem = "] {
        assert!(text.contains(word), "no '{word}' in: {text}");
    }
    let facts = run(&mut linerate("host --json"), LONG).expect(0).out;
    let parsed: Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(parsed["kind"], "host");
    assert_eq!(parsed["schema_version"], 1);
    let file = folder.with("a.json", &facts);
    // No buffer of this world is enough for this.
    let words = format!(
        "host audit --rate 1T --rtt 10s --from {} --json",
        file.display()
    );
    let audit = document(&mut linerate(&words), 1);
    assert_eq!(audit["kind"], "host_audit");
    assert_eq!(outcome(&audit, "T06"), "fires");
    assert_eq!(outcome(&audit, "T02"), "fires");
    let same = format!("host diff {0} {0}", file.display());
    let text = run(&mut linerate(&same), LONG).expect(0).out;
    assert!(text.contains("Nothing that matters"), "{text}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let _beside = beside();
    let folder = Folder::new();
    let notes = folder.with("notes.json", "{\"kind\":\"test\"}");
    let newer = folder.with("newer.json", "{\"kind\":\"host\",\"schema_version\":99}");
    for (words, code, parts) in [
        (
            "host audit --role king".to_owned(),
            2,
            vec!["king", "measurement"],
        ),
        ("host audit --flows 0".to_owned(), 2, vec!["--flows"]),
        ("host audit --for 5s --from x".to_owned(), 2, vec!["--for"]),
        (
            "host audit --interface eth99".to_owned(),
            2,
            vec!["eth99", "lo"],
        ),
        (
            "host --root /no/such/folder".to_owned(),
            5,
            vec!["/no/such/folder"],
        ),
        (
            "host audit --from /none".to_owned(),
            5,
            vec!["cannot read", "/none"],
        ),
        (
            format!("host audit --from {}", notes.display()),
            5,
            vec!["notes.json", "'test'", "linerate host --json"],
        ),
        (
            format!("host diff {0} {0}", newer.display()),
            5,
            vec!["newer.json", "99"],
        ),
    ] {
        let done = run(&mut linerate(&words), LONG).expect(code);
        for part in parts {
            assert!(done.error.contains(part), "{words}: {}", done.error);
        }
    }
}

#[test]
fn a_folder_of_files_is_audited_for_what_it_sets() {
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.with("sysctl.conf", "net.ipv4.tcp_sack = 0\n");
    let root = file.parent().unwrap().join("root");
    std::fs::create_dir_all(root.join("etc/sysctl.d")).unwrap();
    std::fs::copy(&file, root.join("etc/sysctl.d/50-x.conf")).unwrap();
    let words = format!("host audit --root {}", root.display());
    let text = run(&mut linerate(&words), LONG).expect(1).out;
    assert!(
        text.contains("/etc/sysctl.d/50-x.conf:1 sets tcp_sack = 0"),
        "{text}"
    );
    assert!(text.contains("Cannot be known"), "{text}");
}

/// Links, layers and queueing disciplines as a real kernel tells of them, and settings of a namespace of its own.
#[test]
fn a_host_in_a_namespace_is_seen_as_it_is() {
    let _beside = beside();
    let Some(hosts) = Hosts::new("the facts of a host in a namespace") else {
        return;
    };
    let a = &hosts.a;
    a.ip("link set a0 mtu 9000");
    a.tc("qdisc replace dev a0 root tbf rate 2000mbit burst 1mb latency 50ms");
    a.ip("link add name br0 type bridge");
    a.ip("link add name d0 type veth peer name d1");
    a.ip("link set d0 master br0");
    for (key, value) in [
        ("net.ipv4.tcp_rmem", "'4096 87380 1048576'"),
        ("net.ipv4.tcp_timestamps", "0"),
    ] {
        if let Err(why) = a.sysctl(key, value) {
            return skipped(
                "the facts of a host in a namespace",
                &format!("{key}: {why}"),
            );
        }
    }
    let facts = document(&mut a.linerate("host --json"), 0);
    let interfaces = facts["interfaces"].as_array().unwrap();
    let named = |name: &str| interfaces.iter().find(|one| one["name"] == name).unwrap();
    let veth = named("a0");
    assert_eq!(veth["kind"], "veth");
    assert_eq!(veth["mtu"], 9000);
    assert_eq!(veth["addresses"][0], "192.0.2.1/30");
    assert_eq!(veth["qdiscs"][0]["kind"], "tbf");
    assert_eq!(veth["qdiscs"][0]["rate_bps"], 2_000_000_000_u64);
    assert_eq!(veth["features"]["tx-tcp-segmentation"]["on"], true);
    // The machine's sysfs shows the machine's devices, and there is no a0 among them.
    assert!(veth["queues"]["unknown"].is_string(), "{}", veth["queues"]);
    assert_eq!(named("d0")["master"], "br0");
    assert_eq!(facts["system"]["first_namespace"], false);
    assert_eq!(facts["sysctls"]["net.ipv4.tcp_rmem"], "4096 87380 1048576");

    let words = "host audit --rate 1G --rtt 100ms --json";
    let audit = document(&mut a.linerate(words), 1);
    assert_eq!(audit["interfaces"][0], "a0");
    for (check, wanted) in [
        ("T01", "fires"),
        ("H01", "fires"),
        ("L02", "cannot_know"),
        ("C05", "does_not_apply"),
        ("H08", "cannot_know"),
    ] {
        assert_eq!(outcome(&audit, check), wanted, "{check}");
    }
    // A bridge without a network card is no way out.
    assert_eq!(audit["interfaces"].as_array().unwrap().len(), 1);
}
