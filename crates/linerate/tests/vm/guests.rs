//! What the other tests rely on: a cable that can be pulled, a power cut that loses what was not flushed, a disk that
//! can be slowed, two guests on one wire.

use crate::images::images;
use crate::machine::{Build, Disk, Machine, System};
use crate::pair::pair;

#[test]
fn a_power_cut_loses_what_was_not_flushed() {
    let Some(images) = images("a_power_cut_loses_what_was_not_flushed") else {
        return;
    };
    let disk = Disk::new(images);
    let build = Build::new(System::Small, &[]);
    let mut machine = Machine::boot(&disk, &build);
    machine.ok("echo flushed > /root/flushed && sync /root/flushed /root && sync");
    // With two operations a second, the guest's own write-back cannot save what follows.
    machine.monitor.disk(2);
    machine.ok("echo lost > /root/lost");
    let boot = machine.boot.clone();
    machine.cut_power();

    let mut machine = Machine::boot(&disk, &build);
    assert_ne!(machine.boot, boot);
    assert_eq!(machine.ok("cat /root/flushed"), "flushed");
    assert_eq!(machine.run("cat /root/lost").code, 1);
    machine.power_off();
}

#[test]
fn two_guests_on_one_wire_and_a_pulled_cable() {
    let Some(images) = images("two_guests_on_one_wire_and_a_pulled_cable") else {
        return;
    };
    let disks = [Disk::new(images), Disk::new(images)];
    let [mut near, far] = pair(&disks, 768, [vec![], vec![]]);
    near.ok("timeout 20 bash -c 'until ping -c1 -W1 10.0.0.2; do :; done'");
    let carrier = |machine: &mut Machine<'_>, wanted: u8| {
        machine.ok(&format!(
            "timeout 20 bash -c 'until [ $(cat /sys/class/net/eth0/carrier) = {wanted} ]; do :; done'"
        ));
    };
    near.monitor.link(0, false);
    carrier(&mut near, 0);
    assert_eq!(near.run("ping -c1 -W1 10.0.0.2").code, 1);
    near.monitor.link(0, true);
    carrier(&mut near, 1);
    near.ok("timeout 20 bash -c 'until ping -c1 -W1 10.0.0.2; do :; done'");
    near.power_off();
    far.power_off();
}
