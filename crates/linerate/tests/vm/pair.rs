//! Two small guests on one wire: `n1` is 10.0.0.1, `n2` 10.0.0.2.

use crate::machine::{Build, Card, Disk, Drive, Machine, System};

/// Boots both, each with disks of its own.
#[track_caller]
pub(crate) fn pair(
    disks: &[Disk; 2],
    memory_mib: u32,
    drives: [Vec<Drive>; 2],
) -> [Machine<'_>; 2] {
    let wire = disks[0].file("wire");
    let ends = [
        (1, Card::Listen(wire.clone()), &disks[0]),
        (2, Card::Connect(wire), &disks[1]),
    ];
    let mut drives = drives.into_iter();
    // Both boot at once.
    let powered = ends.map(|(number, card, disk)| {
        let mut build = Build::new(System::Small, &[card]);
        build.memory_mib = memory_mib;
        build.drives = drives.next().unwrap_or_default();
        (number, Machine::power_on(disk, &build), build)
    });
    powered.map(|(number, mut machine, build)| {
        machine.answers(&build);
        machine.ok(&format!(
            "hostname n{number}; ip address add 10.0.0.{number}/24 dev eth0; ip link set eth0 up"
        ));
        machine
    })
}
