//! `linerate disk watch` over md and LVM: the names of the levels, what they make of a write, and iostat's figures.

use serde_json::Value;

use crate::images::images;
use crate::machine::{Build, Disk, Drive, Machine, System};
use crate::replication::resource;
use crate::say;

/// A machine that is busy with something else makes a guest's disk slower than it was made.
const ATTEMPTS: u32 = 3;
/// How long disks are watched, s; all writing is within that time, by both programs' clocks.
const WATCHED: u32 = 12;

fn machine(disk: &Disk) -> Machine<'_> {
    let mut build = Build::new(System::Small, &[]);
    build.drives = vec![Drive::of(64); 4];
    build.drives.push(Drive::throttled(64, "iops-total=120"));
    Machine::boot(disk, &build)
}

/// Watches devices beside iostat, both over the same work.
fn watch(machine: &mut Machine<'_>, names: &str, work: &str) -> (Value, Value) {
    // Both began when each has printed that, or read for the first time; both end later than the work.
    machine.ok(&format!(
        "linerate disk watch {names} -t {WATCHED} --json-stream >/tmp/seen & echo $! >/tmp/watch; \
         LC_ALL=C S_TIME_FORMAT=ISO iostat -dxy -o JSON {WATCHED} 1 >/tmp/iostat & echo $! >/tmp/other; \
         timeout 30 bash -c 'until grep -q interval /tmp/seen; do sleep 0.1; done'; \
         {work}; sync"
    ));
    machine.ok(
        "timeout 60 bash -c 'while kill -0 $(cat /tmp/watch) $(cat /tmp/other) 2>/dev/null; do sleep 0.1; done'; \
         timeout 60 bash -c 'while kill -0 $(cat /tmp/other) 2>/dev/null; do sleep 0.1; done'",
    );
    let seen = machine.ok("tail -n 1 /tmp/seen");
    let seen: Value = serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}"));
    assert_eq!(seen["event"], "end", "{seen:#}");
    let iostat = machine.ok("cat /tmp/iostat");
    let iostat = serde_json::from_str(&iostat).unwrap_or_else(|error| panic!("{error}: {iostat}"));
    (seen, iostat)
}

fn device<'a>(seen: &'a Value, name: &str) -> &'a Value {
    let mut all = seen["devices"].as_array().unwrap().iter();
    let found = all.find(|one| one["device"]["name"] == name);
    found.unwrap_or_else(|| panic!("{name} in {seen:#}"))
}

/// Writes a second, what they moved, merged ones, and how long each took, within 2 % of iostat's.
fn agree(seen: &Value, iostat: &Value, names: &[&str]) {
    let disks = &iostat["sysstat"]["hosts"][0]["statistics"][0]["disk"];
    for name in names {
        let mut all = disks.as_array().unwrap().iter();
        let theirs = all.find(|disk| disk["disk_device"] == *name).unwrap();
        let ours = &device(seen, name)["rates"];
        let write = &ours["write"];
        let pairs = [
            ("writes", write["per_s"].as_f64(), theirs["w/s"].as_f64()),
            (
                "written",
                write["bytes_per_s"].as_f64(),
                theirs["wMB/s"]
                    .as_f64()
                    .map(|mib| mib * 1_048_576.0)
                    .or_else(|| theirs["wkB/s"].as_f64().map(|kib| kib * 1024.0)),
            ),
            (
                "merged",
                write["merged_per_s"].as_f64(),
                theirs["wrqm/s"].as_f64(),
            ),
            (
                "await",
                write["await_ms"].as_f64(),
                theirs["w_await"].as_f64(),
            ),
            ("queue", ours["queue"].as_f64(), theirs["aqu-sz"].as_f64()),
        ];
        for (what, ours, theirs) in pairs {
            let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
            say(&format!("{name} {what}: {ours:.3}, iostat {theirs:.3}"));
            // iostat prints two decimals.
            let near = (ours - theirs).abs() <= 0.02 * theirs + 0.01;
            assert!(near, "{name} {what}: {ours}, iostat {theirs}\n{seen:#}");
        }
    }
}

/// Written bytes at the disks for each byte at the top, and how many should be.
fn factors(seen: &Value) -> (f64, [f64; 2]) {
    let account = &seen["accounts"][0];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{account:#}"));
    let top = number(&account["top_bytes"]);
    let expected = &account["expected_bytes"];
    (
        number(&account["leaf_bytes"]) / top,
        [number(&expected[0]) / top, number(&expected[1]) / top],
    )
}

#[test]
fn an_array_is_watched_level_by_level() {
    let Some(images) = images("an_array_is_watched_level_by_level") else {
        return;
    };
    let disk = Disk::new(images);
    let mut machine = machine(&disk);
    machine.ok(
        "modprobe raid10 && mdadm --create /dev/md0 --run --assume-clean --bitmap=none --level=10 --raid-devices=4 \
         /dev/vdc /dev/vdd /dev/vde /dev/vdf 2>&1",
    );
    let work = "dd if=/dev/zero of=/dev/md0 bs=64k count=640 oflag=direct 2>&1";
    let (seen, iostat) = watch(&mut machine, "md0", work);
    assert!(
        device(&seen, "md0")["title"]
            .as_str()
            .unwrap()
            .starts_with("raid10 of 4, 512 KiB chunks"),
        "{seen:#}"
    );
    let (factor, expected) = factors(&seen);
    say(&format!("RAID10: {factor:.3} times"));
    assert!(
        expected.iter().all(|factor| (factor - 2.0).abs() < 1e-9),
        "{expected:?}"
    );
    assert!((factor - 2.0).abs() <= 0.02, "{factor}");
    agree(&seen, &iostat, &["md0", "vdc", "vdf"]);
    let text = machine.ok(
        "(sleep 1; exec dd if=/dev/zero of=/dev/md0 bs=64k count=400 oflag=direct 2>/dev/null) & \
         linerate disk watch md0 -t 5; wait",
    );
    say(&text);
    assert!(text.contains("md0        raid10 of 4"), "{text}");
    assert!(text.contains("times (2.00 expected)"), "{text}");
    at_its_limit(&mut machine);
    machine.power_off();
}

/// A disk that does 120 requests a second does no more for eight programs than for two, and is told to be at its limit. Where the guest
/// had too little of this machine to keep it busy, it is looked at again.
fn at_its_limit(machine: &mut Machine<'_>) {
    let mut said = Vec::new();
    for _ in 0..3 {
        let (rate, finding) = busy(machine);
        assert!(rate < 1.1 * 120.0, "{rate} requests a second of 120");
        let told = (finding["id"].as_str(), finding["severity"].as_str());
        say(&format!(
            "{rate:.1} requests a second: {}",
            finding["sentence"]
        ));
        if rate > 0.9 * 120.0 && told == (Some("disk-busy"), Some("limit")) {
            return;
        }
        said.push(format!("{rate:.1}: {finding}"));
    }
    panic!("three times: {said:#?}");
}

/// The rate of a disk that two and then eight programs read, and the first finding.
fn busy(machine: &mut Machine<'_>) -> (f64, Value) {
    let readers = |count: u32, seconds: u32| {
        format!(
            "for number in $(seq {count}); do timeout {seconds} dd if=/dev/vdg of=/dev/null bs=4k iflag=direct \
             skip=$((number * 1000)) 2>/dev/null & done; sleep {seconds}"
        )
    };
    let text = machine.ok(&format!(
        "linerate disk watch vdg -i 500ms -t 14 --json >/tmp/seen & echo $! >/tmp/watch; {}; {}; \
         timeout 60 bash -c 'while kill -0 $(cat /tmp/watch) 2>/dev/null; do sleep 0.1; done'; cat /tmp/seen",
        readers(2, 7),
        readers(8, 7)
    ));
    let seen: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let rate = device(&seen, "vdg")["rates"]["read"]["per_s"].as_f64();
    (rate.unwrap(), seen["findings"][0].clone())
}

#[test]
fn logical_volumes_have_their_names_and_what_they_are() {
    let Some(images) = images("logical_volumes_have_their_names_and_what_they_are") else {
        return;
    };
    let disk = Disk::new(images);
    let mut machine = machine(&disk);
    // Without udev.
    let config = "--config 'activation{udev_sync=0 udev_rules=0 monitoring=0} devices{obtain_device_list_from_udev=0}'";
    machine.ok(&format!(
        "for module in dm-mod dm-mirror dm-raid raid10; do modprobe $module; done; \
         vgcreate {config} vg-a /dev/vdc /dev/vdd /dev/vde /dev/vdf 2>&1 && \
         lvcreate {config} -y -Zn -n home --type mirror -m 1 --mirrorlog core --nosync -i 2 -L 24M vg-a 2>&1 && \
         lvcreate {config} -y -Zn -n r10 --type raid10 -m 1 -i 2 --nosync -L 24M vg-a 2>&1 && \
         lvcreate {config} -y -Zn -n st -i 4 -L 16M vg-a 2>&1"
    ));
    let write = |name: &str, mib: u32| {
        let count = mib * 16;
        format!(
            "dd if=/dev/zero of=/dev/mapper/vg--a-{name} bs=64k count={count} oflag=direct 2>&1"
        )
    };
    let work = format!(
        "{}; {}; {}",
        write("home", 20),
        write("r10", 20),
        write("st", 12)
    );
    let (seen, iostat) = watch(&mut machine, "", &work);
    let volume = |name: &str| {
        let mut all = seen["devices"].as_array().unwrap().iter();
        let found = all.find(|one| one["device"]["kind"]["name"] == format!("vg--a-{name}"));
        let found = found.unwrap_or_else(|| panic!("{name} in {seen:#}"));
        found["device"]["name"].as_str().unwrap().to_owned()
    };
    let [home, r10, st] = ["home", "r10", "st"].map(volume);
    for (name, title) in [
        (&home, "LVM vg-a/home, mirror of 2, 24.0 MiB"),
        (&r10, "LVM vg-a/r10, raid10 of 4, 24.0 MiB"),
        (&st, "LVM vg-a/st, striped of 4, 16.0 MiB"),
    ] {
        assert_eq!(device(&seen, name)["title"], title);
    }
    // All three stand on the same disks: (2 × 20 + 2 × 20 + 12) / 52.
    let (factor, expected) = factors(&seen);
    let should = 92.0 / 52.0;
    say(&format!("LVM: {factor:.3} times, {should:.3} expected"));
    assert!(
        (expected[0] - should).abs() < 1e-6 && (expected[1] - should).abs() < 1e-6,
        "{expected:?}"
    );
    assert!((factor / should - 1.0).abs() <= 0.02, "{factor} {seen:#}");
    agree(&seen, &iostat, &[&home, &st, "vdc"]);
    machine.power_off();
}

#[test]
fn a_replicated_device_is_watched_as_its_disk_is() {
    let Some(images) = images("a_replicated_device_is_watched_as_its_disk_is") else {
        return;
    };
    let disk = Disk::new(images);
    let mut machine = machine(&disk);
    let hosts = [("here", "127.0.0.1:7789"), ("there", "127.0.0.1:7790")];
    machine.write("/etc/drbd.d/r0.res", &resource("r0", 0, "vdc", hosts));
    // The other end is away: what is written goes to this disk alone.
    machine.ok(
        "mkdir -p /run/lock; hostname here; modprobe drbd; drbdadm create-md --force r0 2>&1 && drbdadm up r0 2>&1 && \
         drbdadm primary --force r0 2>&1",
    );
    let work = "dd if=/dev/zero of=/dev/drbd0 bs=64k count=640 oflag=direct 2>&1";
    let (seen, iostat) = watch(&mut machine, "drbd0", work);
    assert_eq!(
        device(&seen, "drbd0")["device"]["below"],
        serde_json::json!(["vdc"])
    );
    agree(&seen, &iostat, &["drbd0", "vdc"]);
    let (factor, expected) = factors(&seen);
    say(&format!("DRBD: {factor:.3} times, {expected:?} expected"));
    // Beside the data it writes its activity log and its bitmap.
    assert!((1.0..1.1).contains(&factor), "{factor} {seen:#}");
    let notes = seen["notes"].to_string();
    assert!(!notes.contains("DRBD"), "{notes}");
    machine.power_off();
}

#[test]
fn a_guests_disk_of_120_iops_is_probed_as_one() {
    let Some(images) = images("a_guests_disk_of_120_iops_is_probed_as_one") else {
        return;
    };
    let disk = Disk::new(images);
    let mut build = Build::new(System::Small, &[]);
    // A probe leaves 1 GiB free.
    build.drives = vec![Drive::throttled(2048, "iops-total=120")];
    let mut machine = Machine::boot(&disk, &build);
    machine.ok("mkdir /probed && mkfs.ext4 -q /dev/vdc && mount /dev/vdc /probed && sync");
    let right = (1..=ATTEMPTS).any(|attempt| {
        let right = is_probed(&mut machine);
        if !right {
            say(&format!(
                "attempt {attempt}: this machine was busy with something else, perhaps"
            ));
        }
        right
    });
    assert!(
        right,
        "120 requests a second were not measured in {ATTEMPTS} attempts"
    );
    machine.power_off();
}

/// Whether a probe says 120 requests a second, within 3, of reads and of writes; and of both where each second had them.
fn is_probed(machine: &mut Machine<'_>) -> bool {
    let probed = machine.ok(
        "linerate disk probe /probed --size 16M --only rand-read-32,rand-write-32 --json 2>/dev/null",
    );
    let probed: Value =
        serde_json::from_str(&probed).unwrap_or_else(|error| panic!("{error}: {probed}"));
    let figures = probed["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 2, "{probed:#}");
    let is_right = |iops: f64| (117.0..=123.0).contains(&iops);
    let rates: Vec<f64> = figures
        .iter()
        .map(|figure| figure["iops"].as_f64().unwrap())
        .collect();
    let finding = &probed["findings"][0];
    say(&format!(
        "random reads {:.1}, writes {:.1} IOPS; {}",
        rates[0], rates[1], finding["id"]
    ));
    let flat = figures.iter().all(|figure| figure["shape"]["is"] == "flat");
    if flat {
        assert_eq!(finding["id"], "disk-cap", "{probed:#}");
    }
    let cap = || finding["figures"][0]["value"].as_f64().unwrap();
    rates.into_iter().all(is_right) && (!flat || is_right(cap()))
}
