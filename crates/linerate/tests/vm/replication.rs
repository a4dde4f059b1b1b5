//! A device that DRBD replicates between two guests: what limits its resynchronisation, by the records of both ends.

use std::process::Command;

use crate::images::images;
use crate::machine::{Disk, Drive, Machine};
use crate::pair::pair;
use crate::say;

/// Large enough that no synchronisation ends while it is watched.
const MIB: u64 = 640;
/// How long it is watched, s.
const WATCHED: u32 = 12;
/// A machine that is busy with something else makes guests slower than what limits them.
const ATTEMPTS: u32 = 3;

/// What limits a synchronisation, and how that is made.
struct Case {
    what: &'static str,
    /// `r0` is on fast disks, `r1` has a slow one at its target.
    resource: &'static str,
    /// Of both ends' disks.
    options: &'static str,
    /// At the source, before and after.
    path: [&'static str; 2],
    /// At the source, while it is watched.
    work: &'static str,
    /// The finding's words.
    said: &'static str,
}

const PLAIN: Case = Case {
    what: "",
    resource: "r0",
    options: "",
    path: ["", ""],
    work: "",
    said: "c-fill-target limits it",
};

const CASES: [Case; 7] = [
    Case {
        what: "as DRBD comes",
        ..PLAIN
    },
    Case {
        what: "a larger fill target",
        options: "--c-fill-target=256k",
        ..PLAIN
    },
    Case {
        what: "a cap",
        options: "--c-fill-target=1M --c-max-rate=4M",
        said: "c-max-rate limits it",
        ..PLAIN
    },
    Case {
        what: "a fixed rate",
        options: "--c-plan-ahead=0 --resync-rate=2M",
        said: "resync-rate limits it",
        ..PLAIN
    },
    Case {
        what: "an application that writes",
        options: "--c-max-rate=20M",
        work: "dd if=/dev/zero of=/dev/drbd0 bs=4k count=100000 oflag=direct",
        said: "the application limits it",
        ..PLAIN
    },
    Case {
        what: "a slow path",
        options: "--c-fill-target=1M",
        path: [
            "tc qdisc add dev eth0 root tbf rate 24mbit burst 32k latency 400ms",
            "tc qdisc del dev eth0 root",
        ],
        said: "the connection limits it",
        ..PLAIN
    },
    Case {
        what: "a slow disk at the target",
        resource: "r1",
        options: "--c-fill-target=1M",
        said: "the disk of the target limits it",
        ..PLAIN
    },
];

fn guests(disks: &[Disk; 2]) -> [Machine<'_>; 2] {
    let drives = |second| vec![Drive::of(MIB), Drive::throttled(MIB, second)];
    let mut both = pair(disks, 512, [drives(""), drives("bps-write=2097152")]);
    for machine in &mut both {
        machine.ok("mkdir -p /run/lock; modprobe drbd");
        let first = [("n1", "10.0.0.1:7789"), ("n2", "10.0.0.2:7789")];
        let second = [("n1", "10.0.0.1:7790"), ("n2", "10.0.0.2:7790")];
        machine.write("/etc/drbd.d/r0.res", &resource("r0", 0, "vdc", first));
        machine.write("/etc/drbd.d/r1.res", &resource("r1", 1, "vdd", second));
    }
    both
}

/// A resource's file: its device's number, its disk, and the address and port of each host by name.
pub(crate) fn resource(name: &str, minor: u8, disk: &str, hosts: [(&str, &str); 2]) -> String {
    let [on, other] = hosts.map(|(host, address)| format!("on {host} {{ address {address}; }}"));
    format!(
        "resource {name} {{\n device /dev/drbd{minor};\n disk /dev/{disk};\n meta-disk internal;\n {on}\n {other}\n}}"
    )
}

fn wait_for(machine: &mut Machine<'_>, what: &str) {
    machine.ok(&format!(
        "timeout 60 bash -c 'until {what}; do sleep 0.1; done' || {{ cat /proc/drbd; exit 1; }}"
    ));
}

#[test]
fn what_limits_a_resynchronisation_is_named_from_both_ends() {
    named(
        "what_limits_a_resynchronisation_is_named_from_both_ends",
        &[0, 6],
    );
}

#[test]
#[ignore = "five minutes: make test-vm-matrix"]
fn seven_limits_of_a_resynchronisation_are_named_from_both_ends() {
    named(
        "seven_limits_of_a_resynchronisation_are_named_from_both_ends",
        &[0, 1, 2, 3, 4, 5, 6],
    );
}

/// The limit of each of these cases is named, and no other.
fn named(what: &str, cases: &[usize]) {
    let Some(images) = images(what) else {
        return;
    };
    let disks = [Disk::new(images), Disk::new(images)];
    let mut both = guests(&disks);
    for case in cases.iter().map(|number| &CASES[*number]) {
        let named = (1..=ATTEMPTS).any(|attempt| {
            let said = told(case, &mut both, &disks);
            say(&format!("{}, attempt {attempt}: {said}", case.what));
            let findings = said.matches("resync-rate: ").count();
            findings == 1 && said.contains(case.said)
        });
        assert!(named, "{}: not \"{}\"", case.what, case.said);
    }
    for machine in both {
        machine.power_off();
    }
}

fn told(case: &Case, both: &mut [Machine<'_>; 2], disks: &[Disk; 2]) -> String {
    let Case {
        resource,
        options,
        path,
        work,
        ..
    } = case;
    let number = &resource[1..];
    for machine in &mut *both {
        // Both ends are empty, and what an option does not name is as DRBD comes.
        machine.ok(&format!(
            "drbdadm create-md --force {resource} 2>&1 && drbdadm up {resource} 2>&1"
        ));
    }
    for machine in &mut *both {
        wait_for(
            machine,
            &format!("grep -q \"{number}: cs:Connected\" /proc/drbd"),
        );
    }
    // An end tells the other of its options, which takes them over.
    for machine in both.iter_mut().filter(|_| !options.is_empty()) {
        machine.ok(&format!("drbdadm disk-options {options} {resource}"));
    }
    both[0].ok(path[0]);
    both[0].ok(&format!("drbdadm primary --force {resource}"));
    for machine in &mut *both {
        wait_for(
            machine,
            &format!("grep -q \"{number}: cs:Sync\" /proc/drbd"),
        );
    }
    if !work.is_empty() {
        both[0].ok(&format!("timeout {} {work} >/dev/null 2>&1 &", WATCHED + 3));
    }
    for machine in &mut *both {
        machine.ok(&format!(
            "rm -f /tmp/*.json; linerate disk watch -t {WATCHED} -o /tmp/disks.json >/tmp/disks 2>&1 & \
             linerate observe --port 7789 --port 7790 --interval 50ms -t {WATCHED} -o /tmp/tcp.json >/tmp/tcp 2>&1 &"
        ));
    }
    let mut records = Vec::new();
    for (machine, disk) in both.iter_mut().zip(disks) {
        machine.ok("timeout 60 bash -c 'while pgrep -x linerate; do sleep 0.1; done' >/dev/null");
        for name in ["disks.json", "tcp.json"] {
            let text = machine.ok(&format!("cat /tmp/{name}"));
            let file = disk.file(name);
            std::fs::write(&file, text).unwrap();
            records.push(file);
        }
    }
    both[0].ok(path[1]);
    for machine in &mut *both {
        wait_for(
            machine,
            &format!("drbdadm secondary {resource} && drbdadm down {resource}"),
        );
    }
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("explain")
        .args(&records)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // Before it stands what each record says alone.
    let together = text.rsplit("together\n").next().unwrap_or_default();
    together.split_whitespace().collect::<Vec<_>>().join(" ")
}
