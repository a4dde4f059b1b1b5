//! What hardware says of itself: disks, memory, processors; and the clock.

use linerate_check::judge;
use linerate_kernel::clock as kernel_clock;
use linerate_kernel::inventory::Root;
use linerate_model::check::{Found, Item, State};
use linerate_model::units::Nanos;
use serde_json::Value;

use super::{cannot_tell, nothing, run};

const BLOCKS: &str = "/sys/block";
const CONTROLLERS: &str = "/sys/devices/system/edac/mc";

pub(super) fn clock(wanted: Nanos) -> Vec<Item> {
    vec![match kernel_clock::synchronisation() {
        Ok((follows, error)) => judge::clock(follows, error, wanted),
        Err(error) => cannot_tell("", format!("cannot ask the kernel's clock: {error}")),
    }]
}

/// Errors since the last run, and how many were corrected until now.
pub(super) fn ecc(before: Option<u64>) -> (Vec<Item>, u64) {
    let root = Root::of_this_machine();
    let (corrected, uncorrected, controllers) = memory_errors(&root);
    let exceptions = machine_checks(&root);
    if controllers == 0 && exceptions.is_none() {
        let why = "this machine has no driver for its memory controller (EDAC), and counts no machine checks";
        return (vec![cannot_tell("", why)], 0);
    }
    let item = judge::memory(corrected, before, uncorrected, exceptions.unwrap_or(0));
    (vec![item], corrected)
}

/// Corrected and uncorrected errors of all memory controllers, and how many those are (Documentation/admin-guide/RAS, `ce_count` and
/// `ue_count`).
fn memory_errors(root: &Root) -> (u64, u64, usize) {
    let mut controllers = root.names(CONTROLLERS);
    controllers.retain(|name| name.starts_with("mc"));
    let sum = |file: &str| -> u64 {
        let paths = controllers
            .iter()
            .map(|name| format!("{CONTROLLERS}/{name}/{file}"));
        paths
            .filter_map(|path| root.word(&path).ok()?.parse::<u64>().ok())
            .sum()
    };
    (sum("ce_count"), sum("ue_count"), controllers.len())
}

/// Machine-check exceptions of all CPUs: the row `MCE:` of /proc/interrupts; x86 only. The row `MCP:` counts polls.
fn machine_checks(root: &Root) -> Option<u64> {
    let text = root.whole_text("/proc/interrupts").ok()?;
    let row = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("MCE:"))?;
    let counts = row
        .split_whitespace()
        .map_while(|word| word.parse::<u64>().ok());
    Some(counts.sum())
}

/// Each disk's own verdict (`smartctl --health`).
pub(super) fn smart() -> Vec<Item> {
    let root = Root::of_this_machine();
    let mut disks = root.names(BLOCKS);
    // What has no device below it is made by software.
    disks.retain(|name| {
        let file = |file: &str| format!("{BLOCKS}/{name}/{file}");
        let is = |path: &str, value: &str| root.word(&file(path)).is_ok_and(|word| word == value);
        // Optical drives, empty ones, and paths of an NVMe namespace that has a name of its own.
        let is_none = name.starts_with("sr") || is("size", "0") || is("hidden", "1");
        !is_none && root.path(file("device")).exists()
    });
    if disks.is_empty() {
        return nothing();
    }
    disks.iter().map(|name| health(name)).collect()
}

fn health(disk: &str) -> Item {
    // A disk that sleeps is left asleep.
    let device = format!("/dev/{disk}");
    let done = run(&[
        "smartctl",
        "--json",
        "--nocheck=standby",
        "--health",
        &device,
    ]);
    let out = match done {
        Ok(done) => done.stdout,
        Err(error) => {
            let why = format!("smartctl: {error}; it is in the package smartmontools");
            return cannot_tell(disk, why);
        }
    };
    let document: Option<Value> = serde_json::from_slice(&out).ok();
    let passed = document
        .as_ref()
        .and_then(|document| document["smart_status"]["passed"].as_bool());
    match passed {
        Some(passed) => {
            let state = if passed { State::Ok } else { State::Fail };
            Item::new(disk, state, Found::DiskHealth { passed })
        }
        None => cannot_tell(
            disk,
            "smartctl gives no verdict: the disk may be virtual, or root is needed",
        ),
    }
}
