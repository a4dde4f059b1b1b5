//! `linerate disk watch`: which devices a path is on, what they did, and iostat's figures beside ours.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use super::harness::{
    Folder, LONG, Loop, alone, assert_harmless, lacks_programs, linerate, measured, run, say,
    start, wait_until,
};

/// A folder on a disk, which a temporary one may not be; `None`, with a word, where there is none.
fn on_disk(what: &str) -> Option<String> {
    let folder = env!("CARGO_MANIFEST_DIR");
    let done = run(&mut linerate(&format!("disk watch {folder} -t 0.05")), LONG);
    if done.error.contains("no block device of this host") {
        skipped(Need::Disk, what, done.error.trim());
        return None;
    }
    done.expect(0);
    Some(folder.to_owned())
}

#[test]
fn a_folder_is_followed_to_its_disk_and_shown_again() {
    let Some(folder) = on_disk("a_folder_is_followed_to_its_disk_and_shown_again") else {
        return;
    };
    let kept = Folder::new();
    let file = kept.file("seen.json");
    let mut command = linerate(&format!("disk watch {folder} -t 1 -i 100ms -o"));
    let done = run(command.arg(&file), LONG).expect(0);
    assert_harmless(&done.out, "a report");
    assert!(
        done.out.contains(&format!("Watched {folder} (")),
        "{}",
        done.out
    );
    let document = run(linerate("show --json").arg(&file), LONG)
        .expect(0)
        .json();
    let place = &document["places"][0]["on"];
    let name = place["devices"][0].as_str().unwrap();
    let devices = document["devices"].as_array().unwrap();
    assert!(
        devices.iter().any(|one| one["device"]["name"] == name),
        "{document:#}"
    );
    let rows = document["devices"][0]["samples"]["rows"].as_u64();
    assert!(rows >= Some(5), "{document:#}");
    // The same at the end, shown, and explained; progress stands before it.
    for words in ["show", "explain"] {
        let shown = run(linerate(words).arg(&file), LONG).expect(0).out;
        assert!(done.out.ends_with(&shown), "{words}: {shown}\n{}", done.out);
    }
    let refused = run(linerate("compare").arg(&file).arg(&file), LONG).expect(5);
    assert!(
        refused.error.contains("record of disks"),
        "{}",
        refused.error
    );
}

#[test]
fn a_stop_ends_it_with_its_report() {
    if on_disk("a_stop_ends_it_with_its_report").is_none() {
        return;
    }
    let running = start(&mut linerate("disk watch -i 100ms --json-stream"));
    assert!(wait_until(LONG, || running.out().contains("interval")));
    running.signal("INT");
    let done = running.wait(LONG).expect(0);
    let last: Value = serde_json::from_str(done.out.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["ended"]),
        (&"end".into(), &"stopped".into())
    );
    assert!(!last["findings"].as_array().unwrap().is_empty(), "{last:#}");
}

#[test]
fn what_cannot_be_watched_says_why() {
    for (words, code, why) in [
        ("/proc", 5, "no block device of this host"),
        ("/no/such/file", 5, "cannot look at /no/such/file"),
        ("-i 1ms", 2, "100 ms to"),
        ("-t 0", 2, "0 seconds"),
        ("-i none", 2, "--interval"),
    ] {
        let done = run(&mut linerate(&format!("disk watch {words}")), LONG).expect(code);
        assert!(done.error.contains(why), "{words}: {}", done.error);
        assert_eq!(done.out, "");
    }
}

#[test]
fn figures_are_those_of_iostat() {
    let what = "figures_are_those_of_iostat";
    if lacks_programs(what, &["iostat", "losetup"]) || on_disk(what).is_none() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("disk-watch-{}", std::process::id()));
    let device = match Loop::new(file, 64) {
        Ok(device) => device,
        Err(why) => return skipped(Need::Root, what, &why),
    };
    measured(alone, || beside_iostat(&device));
}

/// Both watch for longer than the work lasts, so that both count all of it.
fn beside_iostat(device: &Loop) {
    const SECONDS: u32 = 6;
    let name = device.name();
    let ours = start(&mut linerate(&format!(
        "disk watch {name} -t {SECONDS} --json-stream"
    )));
    let mut iostat = Command::new("iostat");
    iostat.args(["-dxy", "-o", "JSON", name, &SECONDS.to_string(), "1"]);
    let theirs = start(iostat.env("LC_ALL", "C"));
    assert!(wait_until(LONG, || ours.out().contains("interval")));
    let mut work = Command::new("dd");
    work.args(["if=/dev/zero", "bs=16k", "count=1500", "oflag=direct"]);
    run(
        work.arg(format!("of={}", device.device)),
        Duration::from_secs(4),
    )
    .expect(0);
    let document: Value =
        serde_json::from_str(ours.wait(LONG).expect(0).out.lines().last().unwrap()).unwrap();
    let iostat = theirs.wait(LONG).expect(0).json();
    let devices = document["devices"].as_array().unwrap();
    let one = devices
        .iter()
        .find(|one| one["device"]["name"] == name)
        .unwrap();
    let title = one["title"].as_str().unwrap();
    assert!(
        title.starts_with(&format!("loop of {}", device.file.display())),
        "{title}"
    );
    let ours = &one["rates"];
    let theirs = &iostat["sysstat"]["hosts"][0]["statistics"][0]["disk"][0];
    let mib = 1_048_576.0;
    let written = theirs["wMB/s"].as_f64().map(|amount| amount * mib);
    let written = written.or_else(|| theirs["wkB/s"].as_f64().map(|amount| amount * 1024.0));
    let share = ours["busy"]["share"].as_f64().map(|share| share * 100.0);
    // The kernel counts whole jiffies: where that is more than all requests took together, ours says so.
    let used = theirs["util"].as_f64();
    let used = if ours["busy"]["is"] == "at_most" {
        assert!(used > share, "{one:#}");
        share
    } else {
        used
    };
    for (what, ours, theirs) in [
        (
            "writes/s",
            ours["write"]["per_s"].as_f64(),
            theirs["w/s"].as_f64(),
        ),
        ("written", ours["write"]["bytes_per_s"].as_f64(), written),
        (
            "await",
            ours["write"]["await_ms"].as_f64(),
            theirs["w_await"].as_f64(),
        ),
        ("queue", ours["queue"].as_f64(), theirs["aqu-sz"].as_f64()),
        ("busy", share, used),
    ] {
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        say(&format!("{what}: {ours:.3}, iostat {theirs:.3}"));
        // iostat prints two decimals.
        let near = (ours - theirs).abs() <= 0.02 * theirs + 0.01;
        assert!(near, "{what}: {ours}, iostat {theirs}\n{one:#}");
    }
    let below = one["device"]["below"].as_array().unwrap();
    assert!(
        !below.is_empty(),
        "a loop device stands on the disk of its file: {one:#}"
    );
}
