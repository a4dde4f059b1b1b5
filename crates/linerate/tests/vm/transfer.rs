//! Files from disk to disk between two guests whose disks and path are slow: which stage is named.

use std::path::PathBuf;
use std::time::Duration;

use linerate_testing::{Need, skipped};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::copies::{Case, Limit, MIB, Told, cases, judge, noise};
use crate::images::{Images, ext4, images};
use crate::machine::{Disk, Drive, Machine};
use crate::pair::pair;
use crate::say;

/// What the path carries: 8 Mbit/s on the wire, B/s of payload in segments of 1,448 bytes. Guests without KVM carry ten times that,
/// and little more than that where other work has the machine.
const NETWORK: u64 = 1_000_000 * 1448 / 1514;
/// What disks serve a second that are slow by their requests: the path carries 58 small files in that time.
const REQUESTS: u64 = 12;
/// How far a rate may be below and above what limits it, as a share.
const MARGIN: (f64, f64) = (0.15, 0.1);
/// A machine that is busy with something else makes guests slower than what limits them.
const ATTEMPTS: u32 = 3;
/// It is, where QEMU's threads that could run waited for a CPU for this share of the time.
const BUSY: f64 = 0.25;
/// No copy takes longer, and no comparison of two.
const COPY: Duration = Duration::from_secs(300);
/// The target that everything else than [`Told::Full`] goes to, and the one that is too small.
const LARGE: &str = "/large";
const SMALL: &str = "/small";
/// Of [`SMALL`], MiB.
const SMALL_MIB: u64 = 40;

/// The folder of a case's files.
fn tree(case: &Case) -> String {
    let (files, bytes) = case.files;
    format!("{files}-of-{bytes}")
}

/// A disk with the files of these cases, which no case writes: both guests have it, one to send from, one to compare with.
struct Files {
    _folder: TempDir,
    image: PathBuf,
    mib: u64,
}

impl Files {
    fn of(cases: &[Case]) -> Self {
        let folder = TempDir::with_prefix("linerate-vm-files-").unwrap();
        let all = folder.path().join("all");
        let mut mib = 0;
        for case in cases {
            let tree = all.join(tree(case));
            if tree.exists() {
                continue;
            }
            std::fs::create_dir_all(&tree).unwrap();
            let (files, bytes) = case.files;
            // Each file is another part of it.
            let bytes_of_all = noise(bytes + files);
            for number in 0..files {
                let part = &bytes_of_all[number..number + bytes];
                std::fs::write(tree.join(number.to_string()), part).unwrap();
            }
            mib += (files * bytes / MIB) as u64 + 8;
        }
        let image = folder.path().join("image");
        ext4(&all, &image, mib + mib / 16 + 32).unwrap();
        std::fs::remove_dir_all(&all).unwrap();
        Self {
            _folder: folder,
            image,
            mib,
        }
    }
}

/// Both guests, with a path as the lab's between them: a rate with a queue, and a delay.
fn guests<'d>(disks: &'d [Disk; 2], files: &Files) -> [Machine<'d>; 2] {
    let source = Drive::with(files.image.clone());
    let targets = [
        source.clone(),
        Drive::of(files.mib + 256),
        Drive::of(SMALL_MIB),
    ];
    let mut both = pair(disks, 1024, [vec![source], targets.to_vec()]);
    for machine in &mut both {
        machine.ok("mkdir /files && mount -o ro,noload /dev/vdc /files");
    }
    let [near, far] = &mut both;
    // A clock of a guest without KVM is late by milliseconds, which the burst makes up for.
    near.ok("tc qdisc add dev eth0 root tbf rate 8mbit burst 32k latency 50ms");
    // What a target of many GB of memory would keep there for as long as a copy takes.
    far.ok(&format!(
        "tc qdisc add dev eth0 root netem delay 5ms limit 10000; \
         for disk in vdd:{LARGE} vde:{SMALL}; do \
         mkdir ${{disk#*:}} && mkfs.ext4 -q -m 0 /dev/${{disk%:*}} && mount /dev/${{disk%:*}} ${{disk#*:}} || exit 1; done; sync; \
         cd /proc/sys/vm; echo 90 > dirty_ratio; echo 80 > dirty_background_ratio; echo 60000 > dirty_expire_centisecs; \
         linerate serve --max-memory 400M --allow-target {LARGE} --allow-target {SMALL} > /tmp/server 2>&1 & \
         timeout 60 bash -c 'until ss -Hltn sport = 5201 | grep -q .; do sleep 0.1; done'"
    ));
    both
}

/// A limit, as the monitor has it.
const fn throttling(limit: Limit) -> (&'static str, u64) {
    match limit {
        Limit::Read(bytes) => ("bps_rd", bytes),
        Limit::Write(bytes) => ("bps_wr", bytes),
        Limit::Reads(number) => ("iops_rd", number),
        Limit::Writes(number) => ("iops_wr", number),
    }
}

/// Reads and writes of a guest's disk so far, as QEMU's throttle counts them: it merges some of the guest's.
fn requests(machine: &mut Machine<'_>, disk: &str) -> [f64; 2] {
    let all = machine.monitor.tell("query-blockstats", &json!({}));
    let mut disks = all.as_array().unwrap().iter();
    let found = disks.find(|one| one["device"] == disk).unwrap();
    ["rd_operations", "wr_operations"].map(|name| found["stats"][name].as_f64().unwrap())
}

/// Makes a case: what it said, and reads of the source and writes of the target. What arrived is what was sent.
fn copy(case: &Case, both: &mut [Machine<'_>; 2]) -> (Value, [f64; 2]) {
    let [near, far] = both;
    let tree = tree(case);
    let full = case.told == Told::Full;
    let target = if full { SMALL } else { LARGE };
    let cached = case.told == Told::First("source-cached");
    if cached {
        // What is mapped and locked is not let go: mmap(0, length, PROT_READ, MAP_SHARED | MAP_LOCKED, file, 0).
        let map = "open F, $ARGV[0] or die; syscall(9, 0, -s F, 1, 0x2001, fileno F, 0) > 0 or die; \
                   $| = 1; print \"mapped\\n\"; sleep";
        near.ok(&format!(
            "perl -e '{map}' /files/{tree}/0 > /tmp/mapped 2>&1 & echo $! > /tmp/mapping; \
             timeout 80 bash -c 'until grep -q mapped /tmp/mapped; do sleep 0.1; done'"
        ));
    }
    near.monitor
        .throttle("drive0", case.source.map(throttling).as_slice());
    far.monitor
        .throttle("drive1", case.target.map(throttling).as_slice());
    let [before, _] = requests(near, "drive0");
    let [_, before_there] = requests(far, "drive1");
    let done = near.run_for(
        &format!(
            "linerate test 10.0.0.2 --json --no-cells {} --source /files/{tree} --target {target} 2>/tmp/errors; \
             code=$?; [ $code = {} ] || {{ cat /tmp/errors; exit 1; }}",
            case.words,
            if full { 4 } else { 0 },
        ),
        COPY,
    );
    assert_eq!(done.code, 0, "{}: {}", case.name, done.text);
    let [reads, _] = requests(near, "drive0");
    let [_, writes] = requests(far, "drive1");
    near.monitor.throttle("drive0", &[]);
    far.monitor.throttle("drive1", &[]);
    if cached {
        near.ok("kill $(cat /tmp/mapping)");
    }
    if !full {
        let compare =
            format!("echo 3 > /proc/sys/vm/drop_caches; diff -r /files/{tree} {target}/{tree}");
        let compared = far.run_for(&compare, COPY);
        assert_eq!(compared.code, 0, "{}: {}", case.name, compared.text);
    }
    far.ok(&format!("rm -rf {target}/{tree}; sync"));
    let document =
        serde_json::from_str(&done.text).unwrap_or_else(|error| panic!("{error}: {}", done.text));
    (document, [reads - before, writes - before_there])
}

/// What the limit of a case let pass, and what it lets pass, B/s or requests a second.
fn figure(case: &Case, document: &Value, [reads, writes]: [f64; 2]) -> Option<[f64; 2]> {
    let of = |name: &str| document["transfer"][name].as_f64().unwrap();
    let limit = case.source.or(case.target);
    let [passed, most] = match (case.told, limit) {
        (Told::Full, _) => return None,
        (Told::First("disk-read" | "disk-write"), Some(limit)) => match limit {
            Limit::Read(bytes) => [of("handed_over_bps") / 8.0, bytes as f64],
            Limit::Write(bytes) => [of("on_disk_bps") / 8.0, bytes as f64],
            Limit::Reads(number) => [reads * 1e9 / of("handed_over_ns"), number as f64],
            Limit::Writes(number) => [writes * 1e9 / of("on_disk_ns"), number as f64],
        },
        _ => [of("handed_over_bps") / 8.0, NETWORK as f64],
    };
    Some([passed, most])
}

/// The share of the time in which both guests could run and had no CPU, from now until it is asked for.
fn waiting(both: &[Machine<'_>; 2]) -> impl Fn(&[Machine<'_>; 2]) -> f64 + use<> {
    let sum = |both: &[Machine<'_>; 2]| {
        let [near, far] = both.each_ref().map(Machine::scheduled);
        [near[0] + far[0], near[1] + far[1]]
    };
    let before = sum(both);
    move |both| {
        let now = sum(both);
        let [ran, waited] = [0, 1].map(|which| now[which].saturating_sub(before[which]) as f64);
        waited / (ran + waited).max(1.0)
    }
}

/// Whether a copy shows its case: its rate is that of its limit, and the stage is named.
fn shown(case: &Case, both: &mut [Machine<'_>; 2]) -> Result<(), (bool, String)> {
    let (document, counted) = copy(case, both);
    let told = judge(case, &document);
    if let Some([passed, most]) = figure(case, &document, counted) {
        let share = passed / most;
        say(&format!(
            "  {passed:.0} of {most:.0} a second ({:.1} %)",
            100.0 * share
        ));
        let (below, above) = MARGIN;
        if !(1.0 - below..=1.0 + above).contains(&share) {
            let why = format!("{passed:.0} a second, and its limit lets {most:.0} pass");
            return Err((false, format!("{}: {why}", case.name)));
        }
    } else {
        let written = document["transfer"]["bytes"].as_f64().unwrap();
        let room = (SMALL_MIB << 20) as f64;
        say(&format!("  {written} bytes were written of {room}"));
        assert!(written > room / 2.0 && written < room, "{document:#}");
    }
    told.map_err(|why| (true, why))
}

/// Whether a case is shown. Where the machine was busy it is made again, and said to be skipped where it never was as slow as its
/// limit.
fn named(case: &Case, both: &mut [Machine<'_>; 2]) -> Result<(), String> {
    for attempt in 1..=ATTEMPTS {
        let waited = waiting(both);
        let Err((at_limit, why)) = shown(case, both) else {
            return Ok(());
        };
        let waited = waited(both);
        say(&format!(
            "  attempt {attempt}: {why}; the guests waited for a CPU of this machine {:.0} % of the time that they could run",
            100.0 * waited
        ));
        if waited < BUSY || attempt == ATTEMPTS && at_limit {
            return Err(why);
        }
    }
    let why = format!("it was busy in each of {ATTEMPTS} attempts");
    skipped(Need::QuietMachine, case.name, &why);
    Ok(())
}

fn all_named(cases: &[Case], images: &'static Images) {
    let files = Files::of(cases);
    let disks = [Disk::new(images), Disk::new(images)];
    let mut both = guests(&disks, &files);
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| named(case, &mut both).err())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for machine in both {
        machine.power_off();
    }
}

#[test]
fn a_slow_disk_of_a_guest_at_either_end_is_named() {
    let Some(images) = images("a_slow_disk_of_a_guest_at_either_end_is_named") else {
        return;
    };
    let all = cases(NETWORK, REQUESTS, 8);
    all_named(&[all[0], all[8]], images);
}

#[test]
#[ignore = "ten minutes: make test-vm-matrix"]
fn twelve_copies_between_guests_name_the_stage_that_was_made_slow() {
    let what = "twelve_copies_between_guests_name_the_stage_that_was_made_slow";
    let Some(images) = images(what) else {
        return;
    };
    all_named(&cases(NETWORK, REQUESTS, 32), images);
}
