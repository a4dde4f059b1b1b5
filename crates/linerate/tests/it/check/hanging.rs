//! File systems that do not answer: a run ends all the same, says so, and nothing piles up.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_testing::{Need, in_namespaces, skipped};

use crate::harness::{Done, LINERATE, LONG, beside, lacks_programs, run, wait_until};

const APART: [&str; 5] = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
const SETUP: &str = "mount -t tmpfs tmpfs /run
mkdir /run/at
truncate -s 16M /run/image
mkfs.ext4 -qF /run/image
";
/// So many runs meet the same file system.
const RUNS: usize = 100;
/// Of a run; it is far above what one takes, as a loaded machine may be slow.
const DEADLINE: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Done {
    run(Command::new("sh").args(["-ec", script]), LONG).expect(0)
}

fn config(limit: &str) {
    let text = format!(
        "deadline = \"{} s\"\n[[mount]]\npath = \"/run/at\"\nlimit = \"{limit}\"\n",
        DEADLINE.as_secs()
    );
    fs::write("/run/check.toml", text.replace(" s\"", "s\"")).unwrap();
}

fn check() -> Done {
    let mut command = Command::new(LINERATE);
    command.args("check --json --config /run/check.toml --run-folder /run/memory".split(' '));
    run(&mut command, LONG)
}

/// Children of runs that are still there.
fn left() -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|one| fs::read(one.path().join("cmdline")).ok());
    lines
        .filter(|line| line.windows(6).any(|words| words == b"\0--one"))
        .count()
}

#[track_caller]
fn a_hundred_runs(most_left: usize) {
    for number in 1..=RUNS {
        let begun = Instant::now();
        let done = check().expect(1);
        assert!(
            begun.elapsed() < DEADLINE,
            "run {number}: {:?}",
            begun.elapsed()
        );
        let document = done.json();
        let item = &document["outcomes"][0]["items"][0];
        assert_eq!(
            item["found"]["what"], "no-answer",
            "run {number}: {document}"
        );
        assert_eq!(item["state"], "fail");
        let left = left();
        assert!(left <= most_left, "run {number}: {left} children are left");
    }
}

/// Thaws it whatever happens: a frozen file system cannot be unmounted.
struct Frozen;

impl Drop for Frozen {
    fn drop(&mut self) {
        drop(run(
            Command::new("fsfreeze").args(["--unfreeze", "/run/at"]),
            LONG,
        ));
    }
}

/// A frozen file system answers everything but writes, and whoever writes waits in the kernel (state D).
fn frozen() {
    shell("mount -o loop /run/image /run/at");
    config("8s");
    assert_eq!(check().expect(0).json()["state"], "ok");
    config("300ms");
    shell("fsfreeze --freeze /run/at");
    let frozen = Frozen;
    assert_eq!(shell("ls /run/at && stat -f /run/at").code(), Some(0));
    a_hundred_runs(1);
    assert_eq!(left(), 1, "the one that cannot be ended");
    drop(frozen);
    assert!(wait_until(LONG, || left() == 0));
    config("8s");
    assert_eq!(check().expect(0).json()["state"], "ok");
    shell("umount /run/at");
}

/// A file system in user space whose process stands still: whoever asks it can be killed.
fn silent() {
    shell(
        "fuse2fs -f /run/image /run/at > /run/fuse 2>&1 & echo $! > /run/pid; until mountpoint -q /run/at; do sleep 0.1; done",
    );
    config("8s");
    assert_eq!(check().expect(0).json()["state"], "ok");
    config("300ms");
    shell("kill -STOP $(cat /run/pid)");
    a_hundred_runs(0);
    shell("kill -CONT $(cat /run/pid)");
    config("8s");
    assert_eq!(check().expect(0).json()["state"], "ok");
    shell("umount /run/at");
}

fn inside() {
    frozen();
    silent();
}

#[test]
fn a_hundred_runs_on_a_file_system_that_hangs_leave_one_child_at_most() {
    let test = "check::hanging::a_hundred_runs_on_a_file_system_that_hangs_leave_one_child_at_most";
    if !linerate_kernel::namespace::is_root() {
        return skipped(Need::Root, test, "only root freezes a file system");
    }
    if lacks_programs(test, &["fsfreeze", "fuse2fs", "mkfs.ext4", "unshare"]) {
        return;
    }
    let _beside = beside();
    in_namespaces(&APART, test, SETUP, inside);
}
