//! The running kernel's settings, in a network namespace made for the test: saved, changed and restored, each is what
//! it was. A user namespace gives an ordinary user the privilege; the test runs itself again inside.

use std::process::Command;

use linerate_kernel::inventory::Root;
use linerate_kernel::setting::qdisc::{Discipline, Disciplines};
use linerate_model::tuning::{InterfaceSetting as S, Object};
use linerate_testing::{Need, in_namespaces, skipped};
use linerate_tune::live::Live;
use linerate_tune::settings::{Saved, Settings as _};

/// Interfaces of every kind that needs no device, each with a tree of its own.
const SETUP: &str = "command -v ip tc ethtool
mount -t sysfs sysfs /sys
ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1
ip link set v0 up && ip link set v1 up
ip link add link v0 name m0 type macvlan && ip link set v0 mtu 3000 && ip link set m0 mtu 2500
ip link add br0 type bridge
ip tuntap add t0 mode tap multi_queue && ip link set t0 up
ip tuntap add t1 mode tap && ip link set t1 up
";

/// Runs one of the tests below in namespaces of its own.
fn inside(test: &str, setup: &str, work: impl FnOnce()) {
    inside_of(
        &["--user", "--map-root-user", "--net", "--mount"],
        test,
        setup,
        work,
    );
}

fn inside_of(namespaces: &[&str], test: &str, setup: &str, work: impl FnOnce()) {
    let (test, setup) = (format!("live::{test}"), format!("{SETUP}\n{setup}"));
    in_namespaces(namespaces, &test, &setup, work);
}

fn of(interface: &str, setting: S) -> Object {
    let interface = interface.to_owned();
    Object::Interface { interface, setting }
}

fn sh(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{script}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Saves, writes, reads back, restores, and asks whether all is as before: what was saved, and what `see` prints.
#[track_caller]
fn there_and_back(object: &Object, value: &str, see: &str) -> Saved {
    let mut live = Live::default();
    let saved = live.save(object).unwrap();
    let before = sh(see);
    assert_ne!(saved.value, value, "{object} is so already");
    live.write(object, value).unwrap();
    assert_eq!(live.read(object).unwrap(), value);
    assert_ne!(sh(see), before, "{object}");
    live.restore(object, &saved).unwrap();
    assert_eq!(live.save(object).unwrap(), saved);
    assert_eq!(sh(see), before, "{object}");
    saved
}

#[test]
fn keys_sizes_and_offloads_come_back() {
    inside("keys_sizes_and_offloads_come_back", "", || {
        let key = |key: &str| Object::Sysctl {
            key: key.to_owned(),
        };
        there_and_back(
            &key("net.ipv4.tcp_rmem"),
            "4096 65536 1000000",
            "cat /proc/sys/net/ipv4/tcp_rmem",
        );
        there_and_back(
            &key("net.ipv4.tcp_congestion_control"),
            "reno",
            "cat /proc/sys/net/ipv4/tcp_congestion_control",
        );
        for interface in ["v0", "br0", "t1"] {
            let see = format!("ip link show {interface}");
            there_and_back(&of(interface, S::Mtu), "1400", &see);
            there_and_back(&of(interface, S::Txqueuelen), "77", &see);
        }
        // The kernel makes what stands on it smaller, and it grows again with it.
        let saved = there_and_back(&of("v0", S::Mtu), "1300", "ip link show m0");
        assert_eq!(saved.detail, "m0=2500");
        for (setting, name) in [
            (S::Tso, "tx-tcp"),
            (S::Gso, "generic-seg"),
            (S::Gro, "generic-rec"),
        ] {
            let see = format!("ethtool -k v0 | grep {name}");
            let now = Live::default().read(&of("v0", setting)).unwrap();
            there_and_back(
                &of("v0", setting),
                if now == "on" { "off" } else { "on" },
                &see,
            );
        }
        // One bit of the group alone is kept alone.
        sh("ethtool -K v0 tx-tcp6-segmentation off");
        let saved = there_and_back(&of("v0", S::Tso), "off", "ethtool -k v0 | grep tx-tcp");
        assert!(
            saved.detail.contains("tx-tcp6-segmentation=off"),
            "{saved:?}"
        );
    });
}

#[test]
fn queueing_disciplines_come_back() {
    let setup = "tc qdisc add dev v1 root handle 5: pfifo limit 77
tc qdisc add dev v0 ingress
tc qdisc add dev br0 root handle 1: htb default 10 && tc class add dev br0 parent 1: classid 1:10 htb rate 10mbit
tc class add dev br0 parent 1: classid 1:20 htb rate 5mbit && tc qdisc add dev br0 parent 1:20 handle 20: bfifo limit 12345
tc qdisc add dev m0 root handle 7: tbf rate 10mbit burst 20k latency 50ms
";
    inside("queueing_disciplines_come_back", setup, || {
        for (interface, value) in [
            // No discipline of its own; an mq of the kernel's, without number; one by hand.
            ("v0", "pfifo"),
            ("t0", "pfifo"),
            ("v1", "pfifo_fast"),
        ] {
            let see = format!("tc qdisc show dev {interface}");
            there_and_back(&of(interface, S::Qdisc), value, &see);
        }
        // The kernel's own leaves of classes are made by hand again, and so get a number.
        for (interface, value) in [("br0", "pfifo_head_drop"), ("m0", "pfifo")] {
            let tree = || -> Vec<_> {
                let all = Disciplines::of(interface).unwrap();
                let one = |one: &Discipline| (one.kind.clone(), one.parent, one.options.clone());
                all.all().iter().map(one).collect()
            };
            let before = tree();
            let mut live = Live::default();
            let saved = live.save(&of(interface, S::Qdisc)).unwrap();
            live.write(&of(interface, S::Qdisc), value).unwrap();
            assert_eq!(live.read(&of(interface, S::Qdisc)).unwrap(), value);
            live.restore(&of(interface, S::Qdisc), &saved).unwrap();
            assert_eq!(tree(), before);
            assert_eq!(live.read(&of(interface, S::Qdisc)).unwrap(), saved.value);
        }
        // By hand: mq with leaves of two kinds, one of the kernel's.
        sh(
            "tc qdisc replace dev v0 root handle 1: mq && tc qdisc replace dev v0 parent 1:2 handle 20: bfifo limit 12345",
        );
        let saved = there_and_back(&of("v0", S::Qdisc), "pfifo", "tc qdisc show dev v0");
        assert_eq!(saved.value, "pfifo_fast, bfifo, pfifo_fast");
        assert_eq!(sh("tc qdisc show dev v0 | grep -c 'parent 1:'"), "4\n");
        // All of mq's queues get it, and mq stays.
        Live::default().write(&of("v0", S::Qdisc), "pfifo").unwrap();
        assert_eq!(
            sh("tc qdisc show dev v0 | grep -c 'pfifo .*parent 1:'"),
            "4\n"
        );
        // A setting by somebody else below the same root is taken back too; another root is built again.
        Live::default()
            .restore(&of("v0", S::Qdisc), &saved)
            .unwrap();
        sh("tc qdisc replace dev v0 root handle 9: pfifo limit 3");
        Live::default()
            .restore(&of("v0", S::Qdisc), &saved)
            .unwrap();
        assert_eq!(Live::default().save(&of("v0", S::Qdisc)).unwrap(), saved);
    });
}

#[test]
fn what_cannot_be_set_says_why_and_what_to_do() {
    inside("what_cannot_be_set_says_why_and_what_to_do", "", || {
        let mut live = Live::default();
        let mut refused = |object: &Object, value: &str, part: &str| {
            let error = live.write(object, value).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refused(
            &of("v0", S::RxRing),
            "64",
            "the driver of v0 has no such setting",
        );
        refused(&of("v0", S::Channels), "64", "does not take this value");
        refused(&of("v0", S::Mtu), "70000", "does not take this value");
        refused(&of("v0", S::AdaptiveRx), "on", "no such setting");
        refused(&of("v0", S::Qdisc), "no_such", "its module (sch_…)");
        let control = Object::Sysctl {
            key: "net.ipv4.tcp_congestion_control".to_owned(),
        };
        refused(
            &control,
            "no_such",
            "this kernel has none of this name; it has ",
        );
        let saved = live.save(&of("v0", S::Lro)).unwrap();
        assert_eq!(saved.value, "off");
        let error = live.write(&of("v0", S::Lro), "on").unwrap_err().to_string();
        assert!(error.contains("the device has it fixed"), "{error}");
    });
}

/// Root of a user namespace may not steer packets; the machine's root may, in a network namespace of the test's own.
#[test]
fn steering_comes_back() {
    const TEST: &str = "steering_comes_back";
    let work = || {
        let see = "cat /sys/class/net/v0/queues/*/?ps_cpus";
        there_and_back(&of("v0", S::RpsCpus), "0", see);
        there_and_back(&of("v0", S::XpsCpus), "0", see);
        sh("echo 1 > /sys/class/net/v0/queues/rx-2/rps_cpus");
        let saved = there_and_back(&of("v0", S::RpsCpus), "0", see);
        assert_eq!(saved.value, "off / 0 / off");
        let mut live = Live::default();
        let error = live.save(&of("t1", S::XpsCpus)).unwrap_err().to_string();
        assert!(error.contains("xps_cpus"), "{error}");
        let error = live.save(&of("v0", S::IrqCpus)).unwrap_err().to_string();
        assert!(error.contains("no interrupt"), "{error}");
    };
    if !linerate_kernel::namespace::is_root() {
        return skipped(
            Need::Root,
            "steering of packets",
            "only root may set rps_cpus",
        );
    }
    inside_of(&["--net", "--mount"], TEST, "", work);
}

#[test]
fn interrupts_come_back_each_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let put = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // The only interface that every machine has, with a device that it does not have.
    put("sys/class/net/lo/ifindex", "1\n");
    put("sys/class/net/lo/address", "00:00:00:00:00:00\n");
    put("sys/class/net/lo/device/numa_node", "-1\n");
    let names = ["lo", "lo-TxRx-0", "lo-TxRx-1", "lo-TxRx-2"];
    let mut lines = "           CPU0\n".to_owned();
    for (number, name) in (24..).zip(names) {
        lines.extend([
            " ",
            &number.to_string(),
            ":  0  IR-PCI-MSI 0-edge ",
            name,
            "\n",
        ]);
        let cpus = if name == "lo-TxRx-1" { "3" } else { "0-3" };
        put(&format!("proc/irq/{number}/smp_affinity_list"), cpus);
        put(&format!("proc/irq/{number}/effective_affinity_list"), "0");
    }
    put("proc/interrupts", &lines);
    let mut live = Live::below(linerate_kernel::inventory::Root::at(folder).unwrap());
    let object = of("lo", S::IrqCpus);
    let saved = live.save(&object).unwrap();
    assert_eq!(saved.value, "0-3 / 3 / 0-3");
    live.write(&object, "4-5").unwrap();
    assert_eq!(live.read(&object).unwrap(), "4-5");
    let of_24 = std::fs::read_to_string(folder.join("proc/irq/24/smp_affinity_list")).unwrap();
    assert_eq!(of_24, "0-3", "it is no queue's");
    live.restore(&object, &saved).unwrap();
    assert_eq!(live.save(&object).unwrap(), saved);
}

#[test]
fn governors_come_back_each_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (cpu, governor) in [(0, "powersave"), (1, "schedutil")] {
        let cpu = folder.join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq"));
        std::fs::create_dir_all(&cpu).unwrap();
        std::fs::write(cpu.join("scaling_governor"), format!("{governor}\n")).unwrap();
    }
    let mut live = Live::below(linerate_kernel::inventory::Root::at(folder).unwrap());
    let saved = live.save(&Object::Governor).unwrap();
    assert_eq!(saved.value, "powersave, schedutil");
    live.write(&Object::Governor, "performance").unwrap();
    assert_eq!(live.read(&Object::Governor).unwrap(), "performance");
    live.restore(&Object::Governor, &saved).unwrap();
    assert_eq!(live.save(&Object::Governor).unwrap(), saved);
    std::fs::remove_dir_all(folder.join("sys")).unwrap();
    assert!(
        live.save(&Object::Governor)
            .unwrap_err()
            .to_string()
            .contains("no cpufreq")
    );
}

#[test]
fn governors_are_restored_on_the_cpus_that_are_there_whatever_fails() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let cpu = |number: u32| folder.join(format!("sys/devices/system/cpu/cpu{number}/cpufreq"));
    let governor = |number: u32| cpu(number).join("scaling_governor");
    for number in 0..4 {
        std::fs::create_dir_all(cpu(number)).unwrap();
        std::fs::write(governor(number), "powersave\n").unwrap();
    }
    let mut live = Live::below(Root::at(folder).unwrap());
    let saved = live.save(&Object::Governor).unwrap();
    live.write(&Object::Governor, "performance").unwrap();
    // One is taken off line.
    std::fs::remove_dir_all(cpu(1)).unwrap();
    live.restore(&Object::Governor, &saved).unwrap();
    for number in [0, 2, 3] {
        let now = std::fs::read_to_string(governor(number)).unwrap();
        assert_eq!(now.trim(), "powersave", "CPU {number}");
    }
}
