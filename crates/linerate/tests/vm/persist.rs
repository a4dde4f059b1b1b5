//! What was confirmed outlives a boot of a real Debian; what nobody confirmed does not outlive its time, nor a power cut.

use crate::images::images;
use crate::machine::{Build, Card, Disk, Machine, System};
use crate::units::{install, is_exposed_no_more_than};

const PROFILE: &str = r#"
[sysctl]
"net.ipv4.tcp_rmem" = "4096 131072 20000000"
"net.ipv4.tcp_wmem" = "4096 16384 20000000"
"net.ipv4.tcp_mtu_probing" = 1

[interface.enp0s2]
txqueuelen = 2000
mtu = 1450
"#;

const STATE: &str = "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_mtu_probing; \
    ip -o link show enp0s2 | grep -o 'mtu [0-9]*'; ip -o link show enp0s2 | grep -o 'qlen [0-9]*'";
const APPLIED: &str = "net.ipv4.tcp_rmem = 4096\t131072\t20000000\nnet.ipv4.tcp_wmem = 4096\t16384\t20000000\n\
    net.ipv4.tcp_mtu_probing = 1\nmtu 1450\nqlen 2000";

/// Waits until the settings are these.
#[track_caller]
fn becomes(machine: &mut Machine<'_>, wanted: &str) {
    machine.write("/run/state", STATE);
    machine.write("/run/wanted", wanted);
    let done = machine.run(
        "timeout 40 bash -c 'until bash /run/state | diff /run/wanted - > /run/diff; do sleep 0.1; done'; cat /run/diff",
    );
    assert_eq!(done.text, "", "not as wanted");
}

#[test]
fn tuned_booted_verified() {
    let Some(images) = images("tuned_booted_verified") else {
        return;
    };
    let disk = Disk::new(images);
    let build = Build::new(System::Debian, &[Card::Queues(2)]);
    let mut machine = Machine::boot(&disk, &build);
    let unit = "linerate-tune-recover.service";
    install(&mut machine, unit);
    is_exposed_no_more_than(&mut machine, unit, 2.5);
    machine.ok("systemctl --quiet enable linerate-tune-recover");
    // A .network file of the card alone, over whose MTU what is persisted has to win.
    machine.ok(
        "cd /etc/systemd/network && sed 's/^MACAddress=.*/Name=enp0s2/' 10-tap0.network > 05-own.network \
         && printf '\\n[Link]\\nMTUBytes=1500\\n' >> 05-own.network && networkctl reload \
         && timeout 60 bash -c 'until grep -q 05-own.network /run/systemd/netif/links/*; do sleep 0.1; done'",
    );
    machine.write("/root/profile.toml", PROFILE);
    let before = machine.ok(STATE);

    // systemd's timer brings back what nobody confirms.
    machine.ok("linerate tune apply /root/profile.toml --allow link-flap --over systemd-networkd --confirm-within 8s");
    assert_eq!(machine.ok(STATE), APPLIED);
    machine.ok("systemctl list-timers --all --no-pager | grep linerate-tune-rollback");
    becomes(&mut machine, &before);

    // What is confirmed and persisted is there after the boot, and verified.
    machine.ok(
        "linerate tune apply /root/profile.toml --allow link-flap --over systemd-networkd && linerate tune confirm && linerate tune persist",
    );
    let drop_in = "/etc/systemd/network/05-own.network.d/95-linerate.conf";
    let text = machine.ok(&format!("cat {drop_in}"));
    assert!(text.contains("[Link]\nMTUBytes=1450"), "{text}");
    machine.power_off();
    let mut machine = Machine::boot(&disk, &build);
    becomes(&mut machine, APPLIED);
    machine.ok("linerate tune verify");
    // Somebody else's hand is told.
    machine.ok("sysctl -q net.ipv4.tcp_mtu_probing=2");
    assert_eq!(machine.run("linerate tune verify").code, 1);
    machine.ok("sysctl -q net.ipv4.tcp_mtu_probing=1; linerate tune verify");

    // The power goes while other values wait to be confirmed: the boot has what was persisted.
    machine.write(
        "/root/other.toml",
        "[sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 30000000\"",
    );
    machine.ok("linerate tune apply /root/other.toml --confirm-within 1h");
    machine.cut_power();
    let mut machine = Machine::boot(&disk, &build);
    becomes(&mut machine, APPLIED);
    machine.ok("systemctl is-active linerate-tune-recover");
    let status = machine.ok("linerate tune status");
    assert!(status.contains("ended"), "{status}");

    // And without the files, the boot after has what was there at first.
    machine.ok("linerate tune persist --remove");
    assert_eq!(machine.run(&format!("cat {drop_in}")).code, 1);
    machine.power_off();
    let mut machine = Machine::boot(&disk, &build);
    becomes(&mut machine, &before);
    machine.power_off();
}
