//! `linerate prove --boots` in a guest that restarts itself by kexec: Debian's systemd starts the unit after each boot. QEMU
//! is the firmware and the boot loader: what it boots when it is started anew is the default.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::images::{Images, Kernel, images};
use crate::machine::{Build, Disk, Drive, Machine, System};
use crate::say;

/// Thirteen boots and twelve tests, also where other work has most of the machine.
const LONG: Duration = Duration::from_secs(6000);
const SHOW: &str = "linerate prove --boots-show --json";
/// The process of the unit.
const MAIN: &str = "systemctl show -p MainPID --value linerate-boots.service";
/// What a boot of the series has on its command line.
const MARK: &str = "linerate.boot=";

/// A Debian with a disk that has its own kernel on it, for kexec.
fn build(disk: &Disk, images: &Images) -> Build {
    let folder = disk.file("kernels");
    std::fs::create_dir(&folder).unwrap();
    let file = |from: std::path::PathBuf, name: &str| {
        std::fs::copy(from, folder.join(name)).unwrap();
    };
    file(images.kernel(Kernel::Cloud), "vmlinuz-cloud");
    file(images.first_stage(Kernel::Cloud), "initrd.img-cloud");
    let path = std::env::var("PATH").unwrap_or_default();
    let made = Command::new("mkfs.ext4")
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .args(["-q", "-F", "-d"])
        .arg(&folder)
        .arg(disk.file("drive0"))
        .arg("64M")
        .status();
    assert!(made.unwrap().success(), "mkfs.ext4");
    let mut build = Build::new(System::Debian, &[]);
    build.drives = vec![Drive::of(64)];
    build
}

/// Starts a series, and leaves the guest in its first boot of it.
#[track_caller]
fn begin(machine: &mut Machine<'_>, build: &Build, boots: [&str; 2], options: &str) {
    machine.ok("mkdir -p /boot /mnt && mount -o ro /dev/vdc /mnt && cp /mnt/*-cloud /boot/ && umount /mnt && sync");
    let [before, after] = boots;
    let refused = machine.run(&format!("linerate prove --boots '{before}' '{after}'"));
    assert!(
        refused.code == 1 && refused.text.contains("with --yes the host restarts now"),
        "{}",
        refused.text
    );
    machine.ok(&format!(
        "linerate prove --boots '{before}' '{after}' --yes --settle 10 {options}"
    ));
    machine.comes_back(build);
    let line = machine.ok("cat /proc/cmdline");
    assert!(line.contains(MARK), "{line}");
}

/// Waits until the guest has gone down for its default, boots that, and returns what the series gave.
#[track_caller]
fn ended(mut machine: Machine<'_>, disk: &Disk, build: &Build) -> Value {
    machine.ends(LONG);
    drop(machine);
    let mut machine = Machine::boot(disk, build);
    let line = machine.ok("cat /proc/cmdline");
    assert!(!line.contains(MARK), "{line}");
    let over = format!(
        "timeout 80 bash -c 'until {SHOW} | grep -q \"\\\"over\\\": *true\"; do sleep 0.5; done'"
    );
    machine.ok(&over);
    // Nothing is left that would start again.
    machine.ok("test ! -e /etc/systemd/system/linerate-boots.service && [ $(cat /sys/kernel/kexec_loaded) = 0 ]");
    say(&machine.run("linerate prove --boots-show").text);
    let shown = machine.run(SHOW).text;
    machine.power_off();
    serde_json::from_str(shown.lines().next().unwrap_or_default())
        .or_else(|_| serde_json::from_str(&shown))
        .unwrap()
}

#[test]
#[ignore = "ten minutes: make test-vm-matrix"]
fn page_table_isolation_is_slower_and_told_so() {
    let Some(images) = images("page_table_isolation_is_slower_and_told_so") else {
        return;
    };
    let disk = Disk::new(images);
    let build = build(&disk, images);
    let mut machine = Machine::boot(&disk, &build);
    // The default has mitigations=off; the last word counts.
    let boots = ["/boot/vmlinuz-cloud", "/boot/vmlinuz-cloud pti=on"];
    begin(&mut machine, &build, boots, "--pairs 6 -t 2 -- -l 1K");
    let document = ended(machine, &disk, &build);
    let proof = &document["proof"];
    say(&format!(
        "{}\nratios {}",
        proof["sentence"], proof["ratios"]
    ));
    assert_eq!(proof["verdict"], "worse", "{proof}");
    assert_eq!(proof["ratios"].as_array().unwrap().len(), 6);
}

#[test]
#[ignore = "ten minutes or more: make test-vm-matrix"]
fn two_boots_of_one_kernel_are_no_effect_and_a_power_cut_gives_the_default() {
    let Some(images) =
        images("two_boots_of_one_kernel_are_no_effect_and_a_power_cut_gives_the_default")
    else {
        return;
    };
    let disk = Disk::new(images);
    let build = build(&disk, images);
    let mut machine = Machine::boot(&disk, &build);
    let boots = ["/boot/vmlinuz-cloud", "/boot/vmlinuz-cloud"];
    begin(
        &mut machine,
        &build,
        boots,
        "--min-effect 10% -t 2 -- -l 128K",
    );
    machine.cut_power();
    let mut machine = Machine::boot(&disk, &build);
    let line = machine.ok("cat /proc/cmdline");
    assert!(!line.contains(MARK), "{line}");
    // The unit goes on from the default.
    machine.comes_back(&build);
    let line = machine.ok("cat /proc/cmdline");
    assert!(line.contains(MARK), "{line}");
    machine.ok(&format!(
        "timeout 80 bash -c 'until [ $({MAIN}) != 0 ]; do sleep 0.1; done'; kill -KILL $({MAIN})"
    ));
    let document = ended(machine, &disk, &build);
    let proof = &document["proof"];
    say(&format!(
        "{}\nratios {}",
        proof["sentence"], proof["ratios"]
    ));
    assert_eq!(proof["verdict"], "no_effect", "{proof}");
    assert!(proof["ratios"].as_array().unwrap().len() >= 6, "{proof}");
}
