//! `linerate host`: this machine's facts, which are read and never touched, and hosts in namespaces.

use std::process::Command;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use crate::harness::{B, Folder, Hosts, LONG, beside, linerate, measured, run};

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
                Need::NamespaceSysctls,
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

/// A path of at most 40 Mbit/s that carries packets of 1400 bytes, and then of 1500.
#[test]
fn an_audit_measures_the_way_to_its_peer() {
    measured(beside, || {
        let Some(hosts) = Hosts::new("an audit that measures its peer") else {
            return;
        };
        hosts
            .a
            .tc("qdisc replace dev a0 root tbf rate 40mbit burst 16kb latency 50ms");
        // What is larger than the receiving end's MTU is dropped without a word.
        hosts.b.ip("link set b0 mtu 1400");
        let server = hosts.b.serve("");
        let words = format!("host audit --peer {B} -p {} --json", server.port);
        let audit = document(&mut hosts.a.linerate(&words), 1);
        let (target, found) = (&audit["target"], &audit["target"]["measured"]);
        assert_eq!(found["peer"], B);
        assert_eq!(found["interface"], "a0");
        assert_eq!(audit["interfaces"][0], "a0");
        // A veth lets four bytes more in, for the tag of a VLAN (is_skb_forwardable, net/core/dev.c).
        let largest = found["packet"]["bytes"].as_u64().unwrap();
        assert!((1400..=1404).contains(&largest), "{found}");
        assert_eq!(found["packet"]["untried_above"], false);
        assert_eq!(outcome(&audit, "L02"), "fires");
        assert_eq!(target["rtt"], found["rtt"]);
        assert!(found["rtt"].as_u64().is_some_and(|rtt| rtt > 0), "{found}");
        // A veth states a speed that is made up; the bucket bounds what is measured, whatever a busy machine does.
        let rate = target["rate_bps"].as_u64().unwrap();
        assert!(rate > 0 && rate < 50_000_000, "{rate}");
        let from = target["rate_from"].as_str().unwrap();
        assert!(from.contains("the path may carry more"), "{from}");
        assert_ne!(outcome(&audit, "T02"), "cannot_know");

        hosts.b.ip("link set b0 mtu 1500");
        let words = format!(
            "host audit --peer {B} -p {} --rate 1G --rtt 60ms",
            server.port
        );
        let done = run(&mut hosts.a.linerate(&format!("{words} --json")), LONG);
        assert!([Some(0), Some(1)].contains(&done.code()), "{}", done.error);
        let audit = done.json();
        let target = &audit["target"];
        assert_eq!(target["rate_bps"], 1_000_000_000);
        assert_eq!(target["rate_from"], "given");
        assert_eq!(target["rtt_from"], "given");
        let packet = &target["measured"]["packet"];
        assert_eq!(packet["bytes"], 1500, "{packet}");
        assert_eq!(packet["untried_above"], true);
        assert_eq!(outcome(&audit, "L02"), "holds");
    });
}

#[test]
fn a_peer_that_is_not_there_is_the_failure_of_a_test() {
    let _beside = beside();
    // Nobody serves the port of tcpmux.
    let port = 1;
    let words = |verb: &str| format!("{verb} 127.0.0.1 -p {port}");
    let test = run(&mut linerate(&words("test")), LONG).expect(3);
    let audit = run(&mut linerate(&words("host audit --peer")), LONG).expect(3);
    let said = test.error.trim();
    assert!(audit.error.contains(said), "{} / {said}", audit.error);
    assert!(audit.out.is_empty(), "{}", audit.out);
    for (words, part) in [
        ("host audit --peer h --from x", "--from"),
        ("host audit --peer h --for 5s", "--for"),
        ("host audit -p 5201", "--peer"),
    ] {
        let done = run(&mut linerate(words), LONG).expect(2);
        assert!(done.error.contains(part), "{words}: {}", done.error);
    }
}

#[test]
fn storage_is_audited_apart_from_the_network() {
    let _beside = beside();
    let checks = |audit: &Value| -> Vec<String> {
        let verdicts = audit["verdicts"].as_array().unwrap();
        let name = |one: &Value| one["check"].as_str().unwrap().to_owned();
        verdicts.iter().map(name).collect()
    };
    // This machine's disks may be right or wrong.
    let out = run(&mut linerate("host audit --storage --json"), LONG);
    let audit: Value = serde_json::from_str(&out.out).unwrap();
    assert_eq!(audit["target"]["area"], "storage");
    let found = checks(&audit);
    assert!(
        found.iter().all(|check| check.starts_with('S')),
        "{found:?}"
    );
    for id in ["S01", "S05", "S12", "S16"] {
        assert!(found.iter().any(|check| check == id), "{id}: {found:?}");
    }
    let out = run(&mut linerate("host audit --json"), LONG);
    let audit: Value = serde_json::from_str(&out.out).unwrap();
    assert!(audit["target"]["area"].is_null(), "{audit}");
    assert!(!checks(&audit).iter().any(|check| check.starts_with('S')));
    for words in [
        "host audit --storage --rate 1G",
        "host audit --disk-rate 1G",
        "tune plan --storage --rtt 1ms",
        "tune apply --storage --prove localhost",
    ] {
        run(&mut linerate(words), LONG).expect(2);
    }
}

/// A degraded array below a file system without barriers, in files alone; what is set there comes back.
#[test]
fn the_storage_of_a_folder_is_audited_changed_and_restored() {
    let _beside = beside();
    let folder = Folder::new();
    let files = [
        ("sys/class/block/sda/dev", "8:0\n"),
        ("sys/class/block/sda/size", "1000000000\n"),
        ("sys/class/block/sda/queue/write_cache", "write back\n"),
        ("sys/class/block/sda/queue/read_ahead_kb", "128\n"),
        ("sys/class/block/sda/queue/nr_requests", "64\n"),
        ("sys/class/block/md0/dev", "9:0\n"),
        ("sys/class/block/md0/size", "1000000000\n"),
        ("sys/class/block/md0/slaves/sda/x", ""),
        ("sys/class/block/md0/md/level", "raid1\n"),
        ("sys/class/block/md0/md/degraded", "1\n"),
        ("sys/class/block/md0/md/sync_action", "idle\n"),
        (
            "proc/self/mountinfo",
            "27 1 9:0 / /srv rw - ext4 /dev/md0 rw,nobarrier\n",
        ),
        ("proc/sys/vm/dirty_bytes", "0\n"),
        ("proc/sys/vm/dirty_ratio", "20\n"),
    ];
    let root = folder.path().join("host");
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let words = format!("host audit --storage --root {}", root.display());
    let text = run(&mut linerate(&words), LONG).expect(1).out;
    for part in [
        "S05  /srv: nobarrier, and the cache of its disk sda",
        "S12  md0: 1 of its members is missing",
        "S16: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let profile = folder.with(
        "p.toml",
        "[block.sda]\nread_ahead_kb = 4096\nnr_requests = 128\n\n[sysctl]\n\"vm.dirty_ratio\" = 10\n",
    );
    let state = folder.path().join("state");
    let place = format!("--root {} --state {}", root.display(), state.display());
    let apply = format!("tune apply {} --yes {place}", profile.display());
    run(&mut linerate(&apply), LONG).expect(0);
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    assert_eq!(read("sys/class/block/sda/queue/read_ahead_kb"), "4096\n");
    assert_eq!(read("sys/class/block/sda/queue/nr_requests"), "128\n");
    assert_eq!(read("proc/sys/vm/dirty_ratio"), "10\n");
    run(&mut linerate(&format!("tune revert {place}")), LONG).expect(0);
    for (path, text) in files {
        assert_eq!(read(path), text, "{path}");
    }
}
