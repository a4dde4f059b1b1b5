//! Two hosts compared.

use linerate_model::host::{Fact, Weight};
use linerate_tune::difference::compare;

use crate::hosts::host;

#[test]
fn a_host_does_not_differ_from_itself() {
    let facts = host("dtn");
    assert_eq!(compare(&facts, &facts).differences, []);
}

#[test]
fn disks_are_compared_by_name_and_a_missing_one_is_one_line() {
    let a = host("store");
    let mut b = host("store");
    let Fact::Known(devices) = &mut b.storage.devices else {
        panic!("no devices");
    };
    devices.retain(|one| one.device.name != *"sdd" && one.device.name != *"sdd1");
    for one in devices {
        one.device.number.minor += 1;
        if let Some(scheduler) = &mut one.queue.scheduler {
            scheduler.chosen = "bfq".into();
        }
        if let Some(array) = &mut one.array {
            array.degraded = Some(1);
            array.sync_action = Some("recover".into());
            array.sync_speed_kib = Some(70_000);
        }
    }
    let differences = compare(&a, &b).differences;
    let of = |name: &str| -> Vec<(String, bool)> {
        let path = format!("storage.devices.{name}.");
        let of = differences.iter().filter(|one| one.path.starts_with(&path));
        of.filter(|one| one.weight != Weight::Noise)
            .map(|one| {
                let matters = matches!(one.weight, Weight::Matters { .. });
                (one.path[path.len()..].to_owned(), matters)
            })
            .collect()
    };
    assert_eq!(of("sda"), [("queue.scheduler.chosen".to_owned(), true)]);
    assert_eq!(of("sdd"), [("size".to_owned(), false)]);
    assert_eq!(of("md0"), [("array.degraded".to_owned(), true)]);
}

#[test]
fn what_matters_is_told_from_noise() {
    let a = host("dtn");
    let mut b = host("dtn");
    b.system.boot_id = Fact::Known("2".to_owned());
    b.system.hostname = Fact::Known("dtn2".to_owned());
    let set = |key: &str, value: &str, facts: &mut linerate_model::host::HostFacts| {
        facts
            .sysctls
            .insert(key.to_owned(), Fact::Known(value.to_owned()));
    };
    set("net.ipv4.tcp_rmem", "4096 131072 6291456", &mut b);
    set("net.ipv4.tcp_fin_timeout", "30", &mut b);
    b.sysctls
        .insert("net.core.rmem_max".to_owned(), Fact::unknown("not there"));
    if let Fact::Known(interfaces) = &mut b.interfaces {
        let eth0 = interfaces
            .iter_mut()
            .find(|one| one.name == "eth0")
            .unwrap();
        eth0.mtu = Fact::Known(1500);
        eth0.mac = Some("02:00:00:00:00:99".to_owned());
        eth0.statistics = Fact::unknown("not read");
    }
    let differences = compare(&a, &b).differences;
    let weight = |path: &str| {
        let one = differences.iter().find(|one| one.path == path);
        one.map(|one| one.weight.clone())
    };
    for path in ["sysctls.net.ipv4.tcp_rmem", "interfaces.eth0.mtu"] {
        assert!(
            matches!(weight(path), Some(Weight::Matters { .. })),
            "{path}: {differences:?}"
        );
    }
    assert_eq!(
        weight("sysctls.net.ipv4.tcp_fin_timeout"),
        Some(Weight::Other)
    );
    assert_eq!(weight("sysctls.net.core.rmem_max"), Some(Weight::Unknown));
    for path in ["system.boot_id", "system.hostname", "interfaces.eth0.mac"] {
        assert_eq!(weight(path), Some(Weight::Noise), "{path}");
    }
}

/// The kernel reports `unknown` as the state of tunnels and of the loopback interface: that is a value.
#[test]
fn a_value_that_reads_unknown_is_known() {
    let a = host("dtn");
    let mut b = host("dtn");
    if let Fact::Known(interfaces) = &mut b.interfaces {
        for one in interfaces.iter_mut().filter(|one| one.name == "eth0") {
            one.operstate = Fact::Known("unknown".to_owned());
        }
    }
    let differences = compare(&a, &b).differences;
    let [one] = differences.as_slice() else {
        panic!("one difference, not {differences:?}");
    };
    assert_eq!(one.path, "interfaces.eth0.operstate");
    assert_eq!(
        (one.b.as_deref(), &one.weight),
        (Some("unknown"), &Weight::Other)
    );
}

#[test]
fn interfaces_of_other_names_are_paired() {
    let a = host("dtn");
    let mut b = host("dtn");
    if let Fact::Known(interfaces) = &mut b.interfaces {
        let eth0 = interfaces
            .iter_mut()
            .find(|one| one.name == "eth0")
            .unwrap();
        eth0.name = "enp59s0f0".to_owned();
        eth0.mtu = Fact::Known(1500);
    }
    let compared = compare(&a, &b);
    assert_eq!(
        compared.pairs,
        [("eth0".to_owned(), "enp59s0f0".to_owned())]
    );
    let matters: Vec<&str> = compared
        .differences
        .iter()
        .filter(|one| matches!(one.weight, Weight::Matters { .. }))
        .map(|one| one.path.as_str())
        .collect();
    assert_eq!(matters, ["interfaces.eth0.mtu"]);
}

#[test]
fn the_keys_of_paired_interfaces_are_compared() {
    let mut a = host("dtn");
    let mut b = host("dtn");
    if let Fact::Known(interfaces) = &mut b.interfaces {
        for one in interfaces.iter_mut().filter(|one| one.name == "eth0") {
            one.name = "ens1.5".to_owned();
        }
    }
    let known = |value: &str| Fact::Known(value.to_owned());
    for (facts, key, value) in [
        (&mut a, "eth0.accept_ra", "1"),
        (&mut b, "ens1/5.accept_ra", "0"),
    ] {
        facts
            .sysctls
            .insert(format!("net.ipv6.conf.{key}"), known(value));
    }
    for key in ["veth7.accept_ra", "all.seg6_enabled"] {
        b.sysctls.insert(format!("net.ipv6.conf.{key}"), known("1"));
    }
    let differences = compare(&a, &b).differences;
    let found = |path: &str| {
        let one = differences.iter().find(|one| one.path == path);
        one.map(|one| (one.a.as_deref(), one.b.as_deref(), one.weight.clone()))
    };
    assert_eq!(
        found("sysctls.net.ipv6.conf.eth0.accept_ra"),
        Some((Some("1"), Some("0"), Weight::Other))
    );
    assert_eq!(
        found("sysctls.net.ipv6.conf.veth7.accept_ra"),
        Some((None, Some("1"), Weight::Noise))
    );
    assert_eq!(
        found("sysctls.net.ipv6.conf.all.seg6_enabled"),
        Some((None, Some("1"), Weight::Other))
    );
}
