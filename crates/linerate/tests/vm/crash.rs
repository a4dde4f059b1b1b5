//! `linerate crash scan` over a Debian root that lost nothing, the system of the guests mounted for reading; and over what
//! a guest wrote before its power was cut.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use linerate_testing::{Need, skipped};
use serde_json::Value;

use crate::images::images;
use crate::machine::{Build, Disk, Drive, Machine, System};
use crate::say;

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");
/// Mounts the image `$0` where the machine mounts for a while, in a mount namespace of its own, and runs a script there.
const MOUNTED: &str = "mount -o ro,noload,loop \"$0\" /mnt && cd /mnt && echo mounted || exit 77\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn within(image: &std::path::Path, script: &str) -> Output {
    let script = format!("{MOUNTED}{script}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(image);
    command.output().unwrap()
}

fn scan(image: &std::path::Path, words: &str, code: i32) -> Value {
    let output = within(
        image,
        &format!("exec {LINERATE} crash scan . --json {words}"),
    );
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{error}");
    let document = out.split_once('\n').unwrap().1;
    serde_json::from_str(document).unwrap_or_else(|why| panic!("{why}: {out}"))
}

#[test]
fn a_debian_root_that_lost_nothing_has_only_what_is_usually_empty() {
    let what = "a scan of a Debian root";
    if !linerate_kernel::namespace::is_root() {
        return skipped(Need::LoopDevices, what, "not root");
    }
    let Some(images) = images(what) else { return };
    let image = images.system();
    let counted = within(&image, "find . -xdev -type f -empty | wc -l");
    if counted.status.code() == Some(77) {
        return skipped(Need::LoopDevices, what, &text(&counted.stderr));
    }
    let counted = text(&counted.stdout);
    let empty: u64 = counted.split_whitespace().last().unwrap().parse().unwrap();

    // As if everything had been written just before a power cut: what packages left empty is reported, and nothing else.
    let all = scan(&image, "--since @0 --read", 1);
    let (counts, found) = (&all["counts"], &all["found"]);
    let (files, candidates) = (&counts["files"], &counts["in_window"]);
    assert_eq!(files, candidates, "{counts}");
    assert!(files.as_u64().unwrap() > 2000, "{counts}");
    for kind in ["no_data", "nul_tail", "zeros"] {
        assert_eq!(found[kind], 0, "{kind}: {}", all["files"]);
    }
    let known = counts["known_empty"].as_u64().unwrap();
    assert_eq!(found["empty"], empty - known, "{}", all["files"]);
    assert!(empty * 100 < files.as_u64().unwrap(), "{empty} of {counts}");

    // A power cut after it was made: nothing is reported, beside how many are usually empty.
    let made = image.metadata().unwrap().modified().unwrap() + Duration::from_secs(1);
    while SystemTime::now() <= made {
        std::thread::sleep(Duration::from_millis(100));
    }
    let made = made.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let since = format!("--since @{}", made.as_secs());
    let later = scan(&image, &since, 0);
    let counts = &later["counts"];
    for kind in ["empty", "no_data", "nul_tail"] {
        assert_eq!(later["found"][kind], 0, "{}", later["files"]);
    }
    assert_eq!(
        (&counts["in_window"], &counts["older"]),
        (&Value::from(0), files)
    );
    assert_eq!(counts["older_empty"], found["empty"], "{counts}");
    say(&format!(
        "a Debian root: {files} files, of which {} are empty and {known} more by their name",
        found["empty"]
    ));
}

/// File systems, each on a disk of its own, and the files of each that the cut leaves without their data at least:
/// those that were new and never asked to be on disk.
const FILE_SYSTEMS: [(&str, &str, &[&str]); 3] = [
    ("ext4", "mkfs.ext4 -q", &["new", "allocated"]),
    ("xfs", "mkfs.xfs -q -f", &["new", "allocated"]),
    ("btrfs", "mkfs.btrfs -q -f", &[]),
];

/// Ways to write a file, in the folder of a file system. Only `safe` asks for it to be on disk; the last line makes the journal
/// write what it knows of all of them.
const WRITE: &str = "data() { head -c 65536 /dev/zero | tr '\\0' x; }
for name in rewritten replaced appended; do data > $name; done; sync -f .
data > new
data > part; mv part replaced
data > rewritten
data >> appended
fallocate -l 65536 allocated; data | dd of=allocated conv=notrunc status=none
data > part; sync part; mv part safe
data > other; sync other";

/// Names of the files that have no byte of data: empty ones, and those of NUL alone.
const WITHOUT_DATA: &str = "for name in *; do [ -d $name ] || [ \"$(tr -d '\\0' < $name | head -c 1)\" ] || echo $name; done";

#[test]
fn after_a_power_cut_the_files_without_data_are_found() {
    let Some(images) = images("after_a_power_cut_the_files_without_data_are_found") else {
        return;
    };
    let disk = Disk::new(images);
    let mut build = Build::new(System::Small, &[]);
    build.drives = vec![Drive::of(320); FILE_SYSTEMS.len()];
    let mut machine = Machine::boot(&disk, &build);
    let mount = |machine: &mut Machine<'_>, make: bool| {
        for ((kind, format, _), letter) in FILE_SYSTEMS.iter().zip('c'..) {
            let format = if make {
                format!("{format} /dev/vd{letter} &&")
            } else {
                String::new()
            };
            machine.ok(&format!(
                "modprobe {kind} && {format} mkdir -p /cut/{kind} && mount -t {kind} /dev/vd{letter} /cut/{kind}"
            ));
        }
    };
    mount(&mut machine, true);
    let began = machine.ok("date +%s");
    for (kind, ..) in FILE_SYSTEMS {
        machine.ok(&format!("cd /cut/{kind} && {WRITE}"));
    }
    // Nothing is lost that had reached QEMU, as with a disk that has no cache.
    machine.cut_power();

    let mut machine = Machine::boot(&disk, &build);
    mount(&mut machine, false);
    for (kind, _, lost) in FILE_SYSTEMS {
        let without = machine.ok(&format!("cd /cut/{kind} && {WITHOUT_DATA}"));
        let without: BTreeSet<&str> = without.lines().collect();
        let scanned = machine.run(&format!(
            "linerate crash scan /cut/{kind} --since @{began} --json"
        ));
        let document: Value = serde_json::from_str(&scanned.text)
            .unwrap_or_else(|error| panic!("{error}: {}", scanned.text));
        let files = document["files"].as_array().unwrap().iter();
        let found: BTreeSet<&str> = files
            .map(|file| file["path"].as_str().unwrap().rsplit('/').next().unwrap())
            .collect();
        say(&format!(
            "{kind}: without data {without:?}, found {found:?}"
        ));
        assert_eq!(found, without, "{kind}: {document:#}");
        assert!(
            lost.iter().all(|name| found.contains(name)),
            "{kind}: {found:?}"
        );
        assert!(
            !found.contains("safe") && !found.contains("other"),
            "{kind}: {found:?}"
        );
        assert_eq!(scanned.code, i32::from(!found.is_empty()), "{kind}");
    }
    machine.power_off();
}
