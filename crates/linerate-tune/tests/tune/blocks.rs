//! Settings of block devices and of dirty pages: saved, changed and restored, each is what it was.

use std::path::Path;

use linerate_kernel::inventory::Root;
use linerate_model::tuning::{BlockSetting as S, Object};
use linerate_testing::{Need, skipped};
use linerate_tune::live::Live;
use linerate_tune::rooted::Rooted;
use linerate_tune::settings::{Saved, Settings};

use crate::hosts::host;

fn of(device: &str, setting: S) -> Object {
    let device = device.to_owned();
    Object::Block { device, setting }
}

fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("{text}\n")).unwrap();
}

fn there_and_back(settings: &mut dyn Settings, object: &Object, value: &str) -> Saved {
    let saved = settings.save(object).unwrap();
    assert_ne!(saved.value, value, "{object} is so already");
    settings.write(object, value).unwrap();
    assert_eq!(settings.read(object).unwrap(), value);
    settings.restore(object, &saved).unwrap();
    assert_eq!(settings.save(object).unwrap(), saved);
    saved
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("sda/queue/scheduler", "none [mq-deadline] bfq"),
        ("sda/queue/nr_requests", "64"),
        ("sda/queue/read_ahead_kb", "128"),
        ("md0/md/sync_speed_min", "50000 (local)"),
        ("md0/md/sync_speed_max", "200000 (system)"),
    ] {
        put(folder.path(), &format!("sys/class/block/{path}"), text);
    }
    folder
}

#[test]
fn settings_of_devices_come_back() {
    let (one, other) = (folder(), folder());
    let mut live = Live::below(Root::at(one.path()).unwrap());
    let mut rooted = Rooted::below(Root::at(other.path()).unwrap());
    for settings in [&mut live as &mut dyn Settings, &mut rooted] {
        let saved = there_and_back(settings, &of("sda", S::Scheduler), "none");
        assert_eq!(
            (saved.value.as_str(), saved.detail.as_str()),
            ("mq-deadline", "64")
        );
        there_and_back(settings, &of("sda", S::NrRequests), "256");
        there_and_back(settings, &of("sda", S::ReadAheadKb), "4096");
        let saved = there_and_back(settings, &of("md0", S::SyncSpeedMax), "400000");
        assert_eq!(saved.value, "system");
        let saved = there_and_back(settings, &of("md0", S::SyncSpeedMin), "system");
        assert_eq!(saved.value, "50000");
    }
}

#[test]
fn a_scheduler_that_comes_back_brings_its_requests() {
    let folder = folder();
    let mut live = Live::below(Root::at(folder.path()).unwrap());
    let object = of("sda", S::Scheduler);
    let saved = live.save(&object).unwrap();
    live.write(&object, "none").unwrap();
    // As the kernel does with another scheduler.
    put(
        folder.path(),
        "sys/class/block/sda/queue/nr_requests",
        "1023",
    );
    assert_ne!(live.save(&object).unwrap(), saved);
    live.restore(&object, &saved).unwrap();
    assert_eq!(live.save(&object).unwrap(), saved);
}

#[test]
fn what_is_no_device_is_named() {
    let folder = folder();
    let mut live = Live::below(Root::at(folder.path()).unwrap());
    for (name, part) in [
        ("../sda", "not the name"),
        ("", "not the name"),
        ("sdz", "there is no device sdz"),
    ] {
        let error = live.read(&of(name, S::Scheduler)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = live.save(&of("sda", S::SyncSpeedMin)).unwrap_err();
    assert!(
        error.to_string().contains("no md/sync_speed_min"),
        "{error}"
    );
}

/// The kernel's own files: a loop device without a file, which stores nothing.
#[test]
fn a_queue_of_the_running_kernel_comes_back() {
    let test = "blocks::a_queue_of_the_running_kernel_comes_back";
    let idle = std::fs::read_dir("/sys/class/block").ok().and_then(|all| {
        let mut names: Vec<String> = all
            .filter_map(|one| one.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with("loop"))
            .collect();
        names.sort_unstable();
        let size = |name: &String| std::fs::read_to_string(format!("/sys/class/block/{name}/size"));
        names.retain(|name| size(name).is_ok_and(|size| size.trim() == "0"));
        names.pop()
    });
    let Some(name) = idle else {
        return skipped(Need::Root, test, "there is no loop device without a file");
    };
    let mut live = Live::default();
    let read_ahead = of(&name, S::ReadAheadKb);
    let saved = live.save(&read_ahead).unwrap();
    if let Err(error) = live.restore(&read_ahead, &saved) {
        return skipped(Need::Root, test, &error.to_string());
    }
    there_and_back(&mut live, &read_ahead, "333332");
    let scheduler = of(&name, S::Scheduler);
    let facts = linerate_kernel::inventory::collect(
        &Root::of_this_machine(),
        &linerate_kernel::inventory::NoKernel,
        0,
    );
    // A device without size is no storage of the host.
    assert!(facts.storage.device(&name).is_none());
    let path = format!("/sys/class/block/{name}/queue/scheduler");
    let offered = std::fs::read_to_string(path).unwrap();
    let now = live.read(&scheduler).unwrap();
    let other = offered
        .split_whitespace()
        .find(|word| !word.starts_with('[') && *word != now);
    let Some(other) = other else {
        return skipped(Need::Root, test, "this kernel has one scheduler alone");
    };
    let before = live.save(&scheduler).unwrap();
    there_and_back(&mut live, &scheduler, other);
    // Requests that were set by hand come back with it.
    live.write(&of(&name, S::NrRequests), "17").unwrap();
    let saved = there_and_back(&mut live, &scheduler, other);
    assert_eq!(saved.detail, "17");
    live.write(&of(&name, S::NrRequests), &before.detail)
        .unwrap();
    assert_eq!(live.save(&scheduler).unwrap(), before);
}

#[test]
fn a_profile_sets_devices_and_refuses_what_they_have_not() {
    let profile = "[block.sda]\nscheduler = \"bfq\"\nread_ahead_kb = 1024\nnr_requests = 128\n\n[block.md0]\nsync_speed_max = 400000\nsync_speed_min = \"system\"\n\n[block.sdz]\nscheduler = \"none\"\n\n[block.nvme0n1]\nsync_speed_max = 9\n";
    let wishes = linerate_tune::profile::parse("p.toml", profile).unwrap();
    let plan = linerate_tune::plan::plan(&host("store"), &wishes);
    let steps: Vec<String> = plan
        .steps
        .iter()
        .map(|step| format!("{}: {} → {}", step.object, step.now, step.wanted))
        .collect();
    assert_eq!(
        steps,
        [
            "sync_speed_max of md0: system → 400000",
            // The scheduler before what it changes.
            "scheduler of sda: mq-deadline → bfq",
            "nr_requests of sda: 64 → 128",
            "read_ahead_kb of sda: 128 → 1024",
        ]
    );
    let fulfilled: Vec<String> = plan.fulfilled.iter().map(ToString::to_string).collect();
    assert_eq!(fulfilled, ["sync_speed_min of md0"]);
    let refused: Vec<&str> = plan.refused.iter().map(|one| one.why.as_str()).collect();
    assert_eq!(
        refused,
        [
            "there is no block device sdz",
            "nvme0n1 has no md/sync_speed_max"
        ]
    );
    for wrong in [
        "[block.sda]\nscheduler = \"fast\"",
        "[block.sda]\nnr_requests = 0",
        "[block.md0]\nsync_speed_max = \"slow\"",
        "[block.sda]\nqueue_depth = 3",
    ] {
        assert!(
            linerate_tune::profile::parse("p.toml", wrong).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn limits_of_dirty_pages_come_back_by_the_key_in_force() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "proc/sys/vm/dirty_bytes", "0");
    put(folder.path(), "proc/sys/vm/dirty_ratio", "20");
    let key = |key: &str| Object::Sysctl {
        key: key.to_owned(),
    };
    let root = || Root::at(folder.path()).unwrap();
    let (mut live, mut rooted) = (Live::below(root()), Rooted::below(root()));
    for settings in [&mut live as &mut dyn Settings, &mut rooted] {
        let object = key("vm.dirty_bytes");
        let saved = settings.save(&object).unwrap();
        assert_eq!((saved.value.as_str(), saved.detail.as_str()), ("0", "20"));
        settings.write(&object, "1000000000").unwrap();
        // As the kernel does.
        put(folder.path(), "proc/sys/vm/dirty_ratio", "0");
        settings.restore(&object, &saved).unwrap();
        assert_eq!(settings.read(&key("vm.dirty_ratio")).unwrap(), "20");
        put(folder.path(), "proc/sys/vm/dirty_bytes", "0");
        assert_eq!(settings.save(&object).unwrap(), saved);
    }
    let profile = "[sysctl]\n\"vm.dirty_bytes\" = 1000000\n\"vm.dirty_ratio\" = 10\n\"vm.dirty_background_bytes\" = 0\n";
    let wishes = linerate_tune::profile::parse("p.toml", profile).unwrap();
    let plan = linerate_tune::plan::plan(&host("store"), &wishes);
    assert!(plan.steps.is_empty(), "{plan:?}");
    assert_eq!(plan.refused.len(), 3, "{plan:?}");
    assert!(plan.refused.iter().any(|one| one.why.contains("one limit")));
}
