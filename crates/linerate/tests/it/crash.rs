//! `linerate crash`: a scan of hostile folders, and power cuts that leave nothing behind.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use crate::harness::{
    Done, Folder, LINERATE, LONG, assert_harmless, beside, has, lacks_namespaces, linerate, run,
    start, wait_until,
};

fn scan(folder: &Path, words: &str) -> Done {
    let mut command = linerate("crash scan");
    command.arg(folder).args(words.split_whitespace());
    run(&mut command, LONG)
}

/// The document of a scan of all times, also where the folder is in memory.
fn all(folder: &Path, words: &str) -> Value {
    let done = scan(folder, &format!("--since @0 --yes --json {words}"));
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

fn paths(document: &Value) -> Vec<(&str, &str)> {
    let files = document["files"].as_array().unwrap().iter();
    files
        .map(|file| {
            (
                file["path"].as_str().unwrap(),
                file["kind"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_scan_finds_files_without_data_among_all_that_a_folder_can_have() {
    let _turn = beside();
    let folder = Folder::new();
    let dir = folder.path();
    folder.with("sound", "text");
    folder.with("empty", "");
    folder.with("x.lock", "");
    folder.with("zeros", [0; 9000]);
    fs::write(dir.join(OsStr::from_bytes(b"not\xff\\utf\x1b[2J")), "").unwrap();
    fs::create_dir_all(dir.join("deep/er")).unwrap();
    fs::write(dir.join("deep/er/empty"), "").unwrap();
    symlink("..", dir.join("deep/loop")).unwrap();
    symlink("/dev/zero", dir.join("device")).unwrap();
    symlink("nowhere", dir.join("dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
    let made = Command::new("mkfifo")
        .arg(dir.join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    // A device of that number reads zeros for ever; only root may make one.
    drop(
        Command::new("mknod")
            .arg(dir.join("zero"))
            .args(["c", "1", "5"])
            .stderr(Stdio::null())
            .status(),
    );

    let document = all(dir, "");
    let empty = [
        ("deep/er/empty", "empty"),
        ("empty", "empty"),
        (r"not\xff\\utf\u{1b}[2J", "empty"),
    ];
    assert_eq!(paths(&document), empty);
    assert_eq!(document["kind"], "crash-scan");
    assert_eq!(document["counts"]["known_empty"], 1);
    assert_eq!(document["counts"]["files"], 6);
    assert_eq!(document["found"]["zeros"], Value::Null);
    let read = all(dir, "--read");
    assert!(paths(&read).contains(&("zeros", "zeros")), "{read}");
    assert_eq!(read["found"]["zeros"], 1);
    let one = all(dir, "--list 1");
    assert_eq!(
        (paths(&one).len(), &one["found"]["empty"]),
        (1, &Value::from(3))
    );

    let text = scan(dir, "--since 1h --yes");
    assert_eq!(text.code(), Some(1), "{text:?}");
    assert_harmless(&text.out, "a scan");
    assert!(
        text.out.contains("3 empty, 0 allocated and never written"),
        "{}",
        text.out
    );
    // Nothing was changed then.
    let none = scan(
        dir,
        "--since 2001-02-03 --until 2001-02-04T10:00+01:00 --yes",
    );
    assert_eq!(none.code(), Some(0), "{none:?}");
    assert!(
        none.out.contains("1970") || none.out.contains("2001-02-04 09:00:00 UTC"),
        "{}",
        none.out
    );
    for (words, code, says) in [
        ("--since yesterday", 2, "not a moment such as"),
        ("--until 2h", 2, "--until needs --since TIME"),
        ("--since 1h --until 2h", 2, "--since is after --until"),
        ("--since 2999-01-01", 2, "after now"),
    ] {
        let done = scan(dir, words);
        assert_eq!(done.code(), Some(code), "{done:?}");
        assert!(done.error.contains(says), "{words}: {}", done.error);
    }
    let missing = scan(&dir.join("none"), "");
    assert_eq!(missing.code(), Some(5), "{missing:?}");
    let file = scan(&dir.join("sound"), "");
    assert_eq!(file.code(), Some(5), "{file:?}");
    let memory = scan(Path::new("/proc"), "");
    assert_eq!(memory.code(), Some(2), "{memory:?}");
    assert!(
        memory.error.contains("is on proc, which is memory"),
        "{}",
        memory.error
    );
}

#[test]
fn a_scan_ends_while_others_make_and_remove_what_it_reads() {
    let _turn = beside();
    let folder = Folder::new();
    let dir = folder.path();
    let over = AtomicBool::new(false);
    let busy = |number: u32| {
        let mut round = 0_u32;
        while !over.load(Ordering::Relaxed) {
            let name = dir.join(format!("{number}-{}", round % 50));
            drop(fs::create_dir(&name));
            drop(fs::write(name.join("file"), [1; 5000]));
            drop(fs::remove_dir_all(&name));
            drop(symlink("/", &name));
            drop(fs::remove_file(&name));
            round += 1;
        }
    };
    std::thread::scope(|scope| {
        for number in 0..3 {
            scope.spawn({
                let busy = &busy;
                move || busy(number)
            });
        }
        for _ in 0..20 {
            let document = all(dir, "--read");
            let unreadable = &document["counts"]["unreadable_files"];
            assert_eq!(unreadable, 0, "{document}");
            assert!(document["counts"]["directories"].as_u64().unwrap() < 1000);
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_may_not_be_read_is_counted_and_empty_files_are_found_all_the_same() {
    let _turn = beside();
    let what = "a scan as another user";
    let folder = Folder::new();
    let dir = folder.path();
    folder.with("closed", "text");
    folder.with("closed-empty", "");
    fs::create_dir(dir.join("locked")).unwrap();
    let shut = "chmod 711 . && chmod 755 . && chmod 0 closed closed-empty locked";
    let shut = Command::new("sh")
        .args(["-c", shut])
        .current_dir(dir)
        .status();
    assert!(shut.unwrap().success());
    // The folder of builds may be closed to others.
    let copy = folder.file("linerate");
    let mut command = if linerate_kernel::namespace::is_root() {
        fs::copy(LINERATE, &copy).unwrap();
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&copy);
        command
    } else {
        Command::new(LINERATE)
    };
    command
        .args(["crash", "scan", "--since", "@0", "--yes", "--json"])
        .arg(dir);
    let done = run(&mut command, LONG);
    if done.error.contains("setpriv") {
        return skipped(Need::Root, what, &done.error);
    }
    let document: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
    assert_eq!(paths(&document), [("closed-empty", "empty")]);
    assert_eq!(document["counts"]["unreadable_files"], 1);
    assert_eq!(document["counts"]["unreadable_directories"], 1);
    drop(
        Command::new("chmod")
            .arg("755")
            .arg(dir.join("locked"))
            .status(),
    );
}

#[test]
fn other_file_systems_are_left_out_unless_asked_for() {
    let _turn = beside();
    let what = "a scan across mounts";
    let folder = Folder::new();
    let script = format!(
        "cd {} && mkdir memory same && : >same/empty && mount -t tmpfs t memory && : >memory/empty && mkdir again \
         && mount --bind . again || exit 77\n\
         for words in '' --cross-mounts '--cross-mounts --yes'; do {LINERATE} crash scan . --since @0 --json $words; done",
        folder.path().display()
    );
    let mut command = Command::new("unshare");
    let options = if linerate_kernel::namespace::is_root() {
        &["--mount"][..]
    } else {
        &["--mount", "--map-root-user"][..]
    };
    let done = run(command.args(options).args(["sh", "-c", &script]), LONG);
    if lacks_namespaces(what, &done) {
        return;
    }
    let stream = serde_json::Deserializer::from_str(&done.out).into_iter::<Value>();
    let documents: Vec<Value> = stream.map(Result::unwrap).collect();
    if documents.len() < 3 {
        return skipped(
            Need::UserNamespaces,
            what,
            "the temporary folder is in memory",
        );
    }
    assert_eq!(paths(&documents[0]), [("same/empty", "empty")]);
    assert_eq!(documents[0]["counts"]["other_mounts"], 2);
    let across = [("again/same/empty", "empty"), ("same/empty", "empty")];
    assert_eq!(paths(&documents[1]), across);
    assert_eq!(documents[1]["counts"]["other_mounts"], 1);
    assert_eq!(paths(&documents[2]).len(), 3);
}

/// Whether power cuts can be made here: one is.
fn lacks_loop_devices(what: &str, folder: &Folder) -> bool {
    if !linerate_kernel::namespace::is_root() {
        skipped(Need::LoopDevices, what, "not root");
        return true;
    }
    let done = cuts(folder, "--fs ext4 --json");
    let works = done.code() == Some(0);
    if !works {
        skipped(
            Need::LoopDevices,
            what,
            &format!("{} {}", done.out, done.error),
        );
    }
    !works
}

fn cuts(folder: &Folder, words: &str) -> Done {
    let mut command = linerate("crash test --dir");
    command.arg(folder.path()).args(words.split_whitespace());
    run(&mut command, LONG)
}

/// Loop devices over a file of this folder: the kernel's name of an unnamed one begins with that.
fn loops(folder: &Folder) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").unwrap().flatten();
    devices
        .filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok())
        .filter(|file| Path::new(file).starts_with(folder.path()))
        .collect()
}

fn assert_nothing_left(folder: &Folder) {
    let gone = wait_until(LONG, || loops(folder).is_empty());
    assert!(gone, "{:?}", loops(folder));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("linerate-crash"), "{mounts}");
}

#[test]
fn power_cuts_are_kept_and_explained() {
    let _turn = beside();
    let (folder, kept) = (Folder::new(), Folder::new());
    if lacks_loop_devices("power cuts", &folder) {
        return;
    }
    let file = kept.file("cuts.jsonl");
    let done = cuts(
        &folder,
        &format!("--fs ext4,ext4 --keep {}", file.display()),
    );
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(
        done.out.contains("\nfallocate-write    NUL"),
        "{}",
        done.out
    );
    let explained = run(linerate("explain").arg(&file), LONG);
    let verdict = "empty files without fsync: new, rename-new;";
    assert!(explained.out.contains(verdict), "{}", explained.out);
    assert!(done.out.contains(verdict), "{}", done.out);
    assert!(
        explained.out.contains("with fsync none is ever empty"),
        "{}",
        explained.out
    );
    let text = fs::read_to_string(&file).unwrap();
    let rows = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(
        rows.clone()
            .all(|row| row["fs"] == "ext4" && row["kernel"].is_string())
    );
    assert_eq!(
        rows.filter(|row| row["before"] == "other-fsync").count(),
        11
    );
    assert_nothing_left(&folder);
}

#[test]
fn nothing_is_left_of_power_cuts_that_were_killed() {
    let _turn = beside();
    let folder = Folder::new();
    if lacks_loop_devices("power cuts that are killed", &folder) {
        return;
    }
    // Two at once, killed after 0, 1, 2 … of their cuts and some moments more.
    for round in 0..12_u64 {
        let command = || {
            let mut command = linerate("crash test --json --fs ext4,xfs,btrfs --dir");
            command.arg(folder.path());
            command
        };
        let mut both = [start(&mut command()), start(&mut command())];
        let enough = usize::try_from(round).unwrap();
        let first = &both[0];
        assert!(wait_until(LONG, || first.out().lines().count() >= enough));
        std::thread::sleep(Duration::from_millis(round * 7 % 40));
        for running in &mut both {
            running.child.kill().unwrap();
            running.child.wait().unwrap();
        }
        assert_nothing_left(&folder);
    }
}

#[test]
fn two_runs_at_once_disturb_nobody() {
    let _turn = beside();
    let folder = Folder::new();
    if lacks_loop_devices("two runs of power cuts", &folder) {
        return;
    }
    let command = || {
        let mut command = linerate("crash test --json --fs ext4 --dir");
        command.arg(folder.path());
        command
    };
    let both = [start(&mut command()), start(&mut command())];
    for done in both.map(|running| running.wait(LONG)) {
        assert_eq!(done.code(), Some(0), "{done:?}");
    }
    assert_nothing_left(&folder);
}

#[test]
fn what_is_missing_for_power_cuts_is_said_with_what_to_do() {
    let _turn = beside();
    let what = "power cuts without a loop device, without a program, without room";
    let folder = Folder::new();
    if lacks_loop_devices(what, &folder) {
        return;
    }
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        let script = format!("cd {} && {script}", folder.path().display());
        run(command.args(["--mount", "sh", "-c", &script]), LONG)
    };
    let done = inside(&format!(
        "mkdir small && mount -t tmpfs -o size=100m t small && {LINERATE} crash test --dir small; c=$?; umount small; rmdir small; exit $c"
    ));
    assert_eq!(done.code(), Some(5), "{done:?}");
    assert!(done.error.contains("(--dir)"), "{}", done.error);
    let done = inside(&format!(
        "mount -t tmpfs t /dev && {LINERATE} crash test --fs ext4 --dir ."
    ));
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.out.contains("modprobe loop"), "{done:?}");
    let done = inside(&format!(
        "mount -t tmpfs t /usr/sbin && {LINERATE} crash test --fs xfs --dir ."
    ));
    assert_eq!(done.code(), Some(3), "{done:?}");
    let words = "Not cut     xfs: cannot make a file system with mkfs.xfs: it is not installed; install the";
    assert!(done.out.contains(words), "{}", done.out);
    if has("setpriv") {
        fs::set_permissions(
            folder.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let copy = folder.file("linerate");
        fs::copy(LINERATE, &copy).unwrap();
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", "65534", "--clear-groups"])
            .arg(&copy)
            .args(["crash", "test"]);
        let done = run(&mut command, LONG);
        assert_eq!(done.code(), Some(3), "{done:?}");
        assert!(
            done.error.contains("needs root") && done.error.contains("sudo"),
            "{}",
            done.error
        );
        fs::remove_file(copy).unwrap();
    }
    assert_nothing_left(&folder);
}
