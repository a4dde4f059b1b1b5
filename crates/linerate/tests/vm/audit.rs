//! Audits of guests as they come: what a network engineer would say of them, and nothing else.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::images::{Kernel, images};
use crate::machine::{Build, Card, Disk, Machine, System};

/// The task: one flow of 10 Gbit/s over 60 ms, 71.5 MiB on the way.
pub(crate) const FAR: &str = "--rate 10G --rtt 60ms";

/// The audit of a guest for a task.
#[track_caller]
pub(crate) fn audit(machine: &mut Machine<'_>, task: &str) -> Value {
    let done = machine.run(&format!("linerate host audit {task} --json"));
    serde_json::from_str(&done.text).unwrap_or_else(|error| panic!("{error}\n{}", done.text))
}

/// The verdicts that fire, with their checks.
pub(crate) fn firing(audit: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let verdicts = audit["verdicts"].as_array().unwrap().iter();
    verdicts.filter_map(|verdict| {
        let check = verdict["check"].as_str().unwrap();
        (verdict["outcome"] == "fires").then_some((check, verdict))
    })
}

/// The checks that fire, with what of: `Q01 enp0s2`.
fn complaints(audit: &Value) -> BTreeSet<String> {
    firing(audit)
        .map(|(check, verdict)| match verdict["subject"].as_str() {
            Some(subject) => format!("{check} {subject}"),
            None => check.to_owned(),
        })
        .collect()
}

/// The value that is recommended for a setting.
fn recommended<'a>(audit: &'a Value, setting: &str) -> Vec<&'a str> {
    firing(audit)
        .flat_map(|(_, verdict)| verdict["changes"].as_array().unwrap())
        .filter(|change| change["setting"] == setting)
        .map(|change| change["value"].as_str().unwrap())
        .collect()
}

#[track_caller]
fn expect(audit: &Value, wanted: &[&str]) {
    let wanted: BTreeSet<String> = wanted.iter().map(|&one| one.to_owned()).collect();
    let said: Vec<&Value> = firing(audit).map(|(_, one)| &one["sentence"]).collect();
    assert_eq!(complaints(audit), wanted, "{said:#?}");
}

/// Windows of 6 and 4 MiB and no pacing are wrong for 10 Gbit/s at 60 ms, and nothing else is; of a LAN's task
/// nothing is wrong at all but pacing.
#[test]
fn debian_as_it_comes() {
    let Some(images) = images("debian_as_it_comes") else {
        return;
    };
    let disk = Disk::new(images);
    let mut build = Build::new(System::Debian, &[Card::Queues(2), Card::User]);
    build.memory_mib = 8192;
    let mut machine = Machine::boot(&disk, &build);
    let far = audit(&mut machine, FAR);
    expect(&far, &["T01", "T02", "Q01 enp0s2", "Q01 enp0s3"]);
    assert_eq!(
        recommended(&far, "net.ipv4.tcp_rmem"),
        ["4096 131072 300000000"],
        "2 × 75 MB / 0.5 of the buffer that is window before Linux 6.6"
    );
    assert_eq!(
        recommended(&far, "net.ipv4.tcp_wmem"),
        ["4096 16384 150000000"]
    );
    assert_eq!(
        recommended(&far, "qdisc of each queue of enp0s2, under mq"),
        ["fq"]
    );
    // What QEMU gave the guest is what the facts say.
    let facts: Value = serde_json::from_str(&machine.ok("linerate host --json")).unwrap();
    let interfaces = facts["interfaces"].as_array().unwrap();
    let card = interfaces.iter().find(|one| one["name"] == "enp0s2");
    let card = card.unwrap();
    assert_eq!(card["channels"]["combined"], 2, "{card:#}");
    assert_eq!(card["rings"]["rx"], 256, "{card:#}");
    assert_eq!(card["addresses"][0], "10.9.0.2/24", "{card:#}");

    // Nothing was sent, so nothing was wrong with a short way either: 1 Gbit/s over 1 ms.
    let near = audit(&mut machine, "--rate 1G --rtt 1ms --interface enp0s2");
    expect(&near, &["Q01 enp0s2"]);
    // The kernel's own mq has no handle, so that its leaves cannot be named: a new one takes the default for them.
    machine
        .ok("sysctl -q net.core.default_qdisc=fq && tc qdisc replace dev enp0s2 root handle 1: mq");
    let near = audit(&mut machine, "--rate 1G --rtt 1ms --interface enp0s2");
    expect(&near, &[]);
    // What is recommended is all that is missing.
    machine.ok(
        "sysctl -q net.ipv4.tcp_rmem='4096 131072 300000000' net.ipv4.tcp_wmem='4096 16384 150000000'",
    );
    let far = audit(&mut machine, &format!("{FAR} --interface enp0s2"));
    expect(&far, &[]);
    machine.power_off();
}

/// A guest of 768 MiB is too small for that, and its buffers are not recommended larger than they could become.
#[test]
fn a_guest_with_too_little_memory() {
    let Some(images) = images("a_guest_with_too_little_memory") else {
        return;
    };
    let disk = Disk::new(images);
    let build = Build::new(System::Small, &[Card::Queues(2)]);
    let mut machine = Machine::boot(&disk, &build);
    machine.ok("ip address add 10.9.0.2/24 dev eth0; ip link set eth0 up");
    let far = audit(&mut machine, FAR);
    expect(&far, &["T01", "T02", "T13", "Q01 eth0"]);
    let rmem = recommended(&far, "net.ipv4.tcp_rmem");
    assert_eq!(rmem.len(), 1, "{rmem:?}");
    let most = machine.ok("echo $(($(cut -f2 /proc/sys/net/ipv4/tcp_mem) * 4096))");
    assert_eq!(rmem[0], format!("4096 131072 {most}"));
    machine.power_off();
}

/// A card with real rings: the generic kernel's e1000e.
#[test]
#[ignore = "the whole matrix"]
fn a_card_of_intel() {
    let Some(images) = images("a_card_of_intel") else {
        return;
    };
    let disk = Disk::new(images);
    let mut build = Build::new(System::Debian, &[Card::E1000e]);
    build.kernel = Kernel::Generic;
    build.memory_mib = 8192;
    let mut machine = Machine::boot(&disk, &build);
    let far = audit(&mut machine, FAR);
    crate::say(
        &machine
            .run("linerate host; linerate host audit --rate 10G --rtt 60ms")
            .text,
    );
    expect(&far, &["T01", "T02", "Q01 enp0s2"]);
    machine.power_off();
}
