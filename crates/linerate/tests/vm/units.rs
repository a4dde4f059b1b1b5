//! The units of `packaging/systemd` in a real Debian: confined as `systemd-analyze security` counts it, and working.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::images::images;
use crate::machine::{Build, Card, Disk, Machine, System};
use crate::say;

/// Writes a unit of ours where the guest's systemd finds it.
#[track_caller]
pub(crate) fn install(machine: &mut Machine<'_>, unit: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    let text = std::fs::read_to_string(path.join(unit)).unwrap();
    machine.write(&format!("/etc/systemd/system/{unit}"), &text);
    machine.ok("systemctl daemon-reload");
}

/// The exposure of a unit (0 to 10) is at most this.
#[track_caller]
pub(crate) fn is_exposed_no_more_than(machine: &mut Machine<'_>, unit: &str, most: f64) {
    let text = machine.ok(&format!("systemd-analyze security --no-pager {unit}"));
    let last = text.lines().last().unwrap_or_default();
    let (_, figure) = last.split_once(&format!("{unit}: ")).unwrap_or_default();
    let figure: f64 = figure.split(' ').next().unwrap().parse().unwrap();
    say(&format!("exposure of {unit}: {figure}"));
    assert!(figure <= most, "{text}");
}

/// A test against a port of the guest; the record.
#[track_caller]
fn record(machine: &mut Machine<'_>, port: u16, words: &str) -> Value {
    let text = machine.ok(&format!(
        "rm -f /root/record.json; linerate test 127.0.0.1 -p {port} {words} -o /root/record.json >/dev/null && cat /root/record.json"
    ));
    let record: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record["outcome"]["how"], "completed", "{words}: {text}");
    record
}

/// What a server has read of its host: the names of counters, and facts with their values.
fn read_of_the_host(record: &Value) -> BTreeSet<String> {
    let server = &record["server"];
    let names = |place: &str| {
        let found = server.pointer(place).and_then(Value::as_object);
        let found = found.unwrap_or_else(|| panic!("no {place} in {server}"));
        let names = found.keys().map(|name| format!("{place}/{name}"));
        names.collect::<Vec<String>>()
    };
    let facts = server["host"].as_object().unwrap().iter();
    facts
        .map(|(name, value)| format!("{name}: {value}"))
        .chain(names("/counters/columns"))
        .chain(names("/interface_counters/before"))
        .chain(names("/interface"))
        .collect()
}

#[test]
fn the_server_is_confined_and_serves() {
    let Some(images) = images("the_server_is_confined_and_serves") else {
        return;
    };
    let disk = Disk::new(images);
    let mut machine = Machine::boot(&disk, &Build::new(System::Debian, &[Card::User]));
    for unit in ["linerate.socket", "linerate.service"] {
        install(&mut machine, unit);
    }
    machine.ok("systemctl --quiet enable --now linerate.socket");
    // The first client's connection starts the service.
    assert_eq!(machine.run("systemctl is-active linerate").code, 3);
    let confined = record(&mut machine, 5201, "-t 1");
    machine.ok("systemctl is-active linerate");
    is_exposed_no_more_than(&mut machine, "linerate.service", 2.0);
    for words in [
        "-n 1M -R",
        "-n 1M --bidir -P 4",
        "-n 1M -R --zerocopy",
        "-t 1 -A 0,1 -R",
        "-u -b 5M -t 1",
        "-u -b 5M -t 1 -R",
        "-u -b 5M -t 1 --bidir -P 2 --pace spin",
    ] {
        record(&mut machine, 5201, words);
    }
    // What it reads of its host is what a server reads that may do all.
    machine.ok("systemd-run --quiet --collect --unit free linerate serve -p 5301 && \
        timeout 30 bash -c 'until (exec 3<>/dev/tcp/127.0.0.1/5301) 2>/dev/null; do sleep 0.05; done'");
    let free = record(&mut machine, 5301, "-t 1");
    let (confined, free) = (read_of_the_host(&confined), read_of_the_host(&free));
    let differing: Vec<&String> = confined.symmetric_difference(&free).collect();
    assert!(differing.is_empty(), "{differing:#?}");
    // It is one process from the first test to the last, and ends in order.
    assert_eq!(
        machine.ok("systemctl show --value -p NRestarts linerate"),
        "0"
    );
    let status = machine.ok("cat /proc/$(systemctl show --value -p MainPID linerate)/status");
    for line in ["CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "no {line} in {status}");
    }
    machine.ok("systemctl stop linerate.socket linerate.service");
    assert_eq!(
        machine.ok("systemctl show --value -p Result linerate"),
        "success"
    );
    let said = machine.ok("journalctl --no-pager -o cat -u linerate");
    assert!(
        said.contains("test 8: ") && !said.contains("refused"),
        "{said}"
    );
    machine.power_off();
}

#[test]
fn declared_interfaces_are_made_by_a_confined_service() {
    let Some(images) = images("declared_interfaces_are_made_by_a_confined_service") else {
        return;
    };
    let disk = Disk::new(images);
    let build = Build::new(System::Debian, &[Card::User, Card::User]);
    let mut machine = Machine::boot(&disk, &build);
    let unit = "linerate-interfaces.service";
    install(&mut machine, unit);
    let declare = |machine: &mut Machine<'_>, mtu: u32| {
        machine.write(
            "/etc/linerate/interfaces.toml",
            &format!(
                "[[interface]]\nmac = \"52:54:00:00:00:01\"\nname = \"data0\"\naddresses = [\"10.77.0.1/24\"]\nmtu = {mtu}\n\
                 allow_default_route = true\n"
            ),
        );
    };
    let state = "ip -o link show enp0s3 | grep -o 'mtu [0-9]*'; ip -o -4 address show enp0s3 | grep -o 'inet [0-9.]*'";
    declare(&mut machine, 1400);
    machine.ok(&format!(
        "systemctl start {unit} || {{ journalctl --no-pager -o cat -u {unit}; exit 1; }}"
    ));
    assert_eq!(machine.ok(state), "mtu 1400\ninet 10.77.0.1");
    // networkd was told, by a file and by `networkctl`.
    machine.ok("grep -ql Unmanaged=yes /etc/systemd/network/*");
    machine.ok("timeout 30 bash -c 'until networkctl list --no-legend --no-pager enp0s3 | grep -q unmanaged; do sleep 0.1; done'");
    declare(&mut machine, 1300);
    machine.ok(&format!("systemctl reload {unit}"));
    assert_eq!(machine.ok(state), "mtu 1300\ninet 10.77.0.1");
    machine.ok("ip link set enp0s3 mtu 1200");
    machine.ok(&format!("systemctl restart {unit}"));
    assert_eq!(machine.ok(state), "mtu 1300\ninet 10.77.0.1");
    is_exposed_no_more_than(&mut machine, unit, 2.0);
    let said = machine.ok(&format!("journalctl --no-pager -o cat -u {unit}"));
    assert!(!said.contains("failed"), "{said}");
    machine.power_off();
}
