//! `linerate test --source --target`: files from disk to disk, and which stage holds them up.

use std::fs;
use std::path::Path;
use std::process::Command;

use linerate_testing::{Need, skipped};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::copies::{noise, shares};
use crate::harness::{
    Hosts, LINERATE, LONG, Server, alone, beside, findings, run, say, start, wait_until,
};

/// Options of `unshare` for namespaces in which an ordinary user may mount.
const USER_AND_MOUNT: [&str; 4] = ["--user", "--map-root-user", "--mount", "--"];

fn on_disk() -> TempDir {
    TempDir::with_prefix_in("transfer-", env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A server that takes files into a folder.
fn taking(folder: &Path) -> Server {
    Server::linerate(&["--allow-target", folder.to_str().unwrap()])
}

fn send(server: &Server, source: &Path, target: &Path, words: &str) -> Command {
    let mut command = server.client(words);
    command
        .arg("--source")
        .arg(source)
        .arg("--target")
        .arg(target);
    command
}

#[test]
fn a_folder_arrives_equal_and_its_stages_are_measured_alone() {
    let _beside = beside();
    let (from, to) = (on_disk(), on_disk());
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("a/empty")).unwrap();
    fs::write(tree.join("big"), noise((20 << 20) + 4711)).unwrap();
    for number in 0..100 {
        fs::write(tree.join(format!("a/{number}")), noise(number)).unwrap();
    }
    let server = taking(to.path());
    let done = run(&mut send(&server, &tree, to.path(), "-P 3 --json"), LONG);
    let document = done.expect(0).json();
    let transfer = &document["transfer"];
    assert_eq!(transfer["checksums_agree"], true);
    assert_eq!(transfer["files"], 101);
    assert!(transfer["on_disk_ns"].as_u64() >= transfer["handed_over_ns"].as_u64());
    shares(&document);
    for cell in [
        "read",
        "memory-to-memory",
        "disk-to-memory",
        "memory-to-disk",
    ] {
        let cells = transfer["cells"].as_array().unwrap();
        let found = cells.iter().find(|one| one["cell"] == cell).unwrap();
        assert!(found["rate_bps"].as_f64() > Some(0.0), "{cell}: {found}");
    }
    let compared = Command::new("diff")
        .arg("-r")
        .arg(&tree)
        .arg(to.path().join("tree"))
        .output()
        .unwrap();
    assert!(compared.status.success(), "{compared:?}");
    // The cells left nothing.
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);
    // A second time everything is there already, and stays as it is.
    let again = run(&mut send(&server, &tree, to.path(), "--json"), LONG);
    let again = again.expect(4).json();
    assert_eq!(findings(&again)[0], "disk-write");
    assert!(
        again["transfer"]["target"]["error"]
            .as_str()
            .unwrap()
            .contains("exists")
    );
}

#[test]
fn a_server_takes_files_only_where_it_may() {
    let _beside = beside();
    let (from, to) = (on_disk(), on_disk());
    let source = from.path().join("file");
    fs::write(&source, "data").unwrap();
    let allowed = to.path().join("allowed");
    fs::create_dir(&allowed).unwrap();
    std::os::unix::fs::symlink(to.path(), allowed.join("out")).unwrap();
    let server = taking(&allowed);
    for (target, says) in [
        (to.path().to_owned(), "operator allowed"),
        (allowed.join(".."), "operator allowed"),
        (allowed.join("out"), "operator allowed"),
        (allowed.join("missing"), "cannot be opened"),
        ("allowed".into(), "no absolute path"),
    ] {
        let done = run(&mut send(&server, &source, &target, ""), LONG);
        assert!(
            done.error.contains(says),
            "{}: {}",
            target.display(),
            done.error
        );
        assert_ne!(done.code(), Some(0));
    }
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);
    let open = Server::linerate(&[]);
    let done = run(&mut send(&open, &source, &allowed, ""), LONG);
    assert!(done.error.contains("--allow-target"), "{}", done.error);
    // The server is as good as before.
    run(&mut send(&server, &source, &allowed, "--no-cells"), LONG).expect(0);
    assert_eq!(fs::read_to_string(allowed.join("file")).unwrap(), "data");
}

#[test]
fn a_full_disk_ends_the_run_with_what_was_written() {
    let _beside = beside();
    let (from, to) = (on_disk(), on_disk());
    let source = from.path().join("file");
    fs::write(&source, noise(64 << 20)).unwrap();
    let script = "mount -t tmpfs -o size=8m none \"$DIR\" || exit 77
        \"$LINERATE\" serve -B 127.0.0.1 -p 0 --allow-target \"$DIR\" --json-stream > \"$OUT\" & server=$!
        until port=$(grep -o '\"port\":[0-9]*' \"$OUT\" | head -n 1 | cut -d: -f2) && [ -n \"$port\" ]; do
            kill -0 $server || exit 78; done
        \"$LINERATE\" test 127.0.0.1 -p $port --source \"$SOURCE\" --target \"$DIR\" --json; code=$?
        kill $server; exit $code";
    let mut command = Command::new("unshare");
    command
        .args(USER_AND_MOUNT)
        .args(["sh", "-c", script])
        .env("LINERATE", LINERATE)
        .env("DIR", to.path())
        .env("OUT", from.path().join("out"))
        .env("SOURCE", &source);
    let done = run(&mut command, LONG);
    if done.code() == Some(77) || done.error.contains("unshare:") {
        return skipped(
            Need::UserNamespaces,
            "a transfer to a full disk",
            &done.error,
        );
    }
    let document = done.expect(4).json();
    assert_eq!(findings(&document)[0], "disk-write");
    let target = &document["transfer"]["target"];
    assert!(
        target["error"].as_str().unwrap().contains("No space left"),
        "{target}"
    );
    let written = target["bytes"].as_u64().unwrap();
    assert!((1 << 20..=8 << 20).contains(&written), "{written}");
    assert_eq!(document["transfer"]["checksums_agree"], Value::Null);
}

#[test]
fn a_slow_network_is_not_taken_for_a_disk() {
    let _alone = alone();
    let Some(hosts) = Hosts::new("a transfer over a slow network") else {
        return;
    };
    let (from, to) = (on_disk(), on_disk());
    let source = from.path().join("file");
    fs::write(&source, noise(24 << 20)).unwrap();
    hosts
        .a
        .tc("qdisc add dev a0 root tbf rate 100mbit burst 32k latency 20ms");
    let words = format!("--allow-target {}", to.path().display());
    let server = hosts.b.serve(&words);
    let mut command = hosts.client(&server, "--json --no-cells");
    command
        .arg("--source")
        .arg(&source)
        .arg("--target")
        .arg(to.path());
    let document = run(&mut command, LONG).expect(0).json();
    let [read, network, written] = shares(&document);
    say(&format!(
        "source {read:.2}, network {network:.2}, target {written:.2}"
    ));
    assert!(network > 0.5, "{}", document["transfer"]["time"]);
    let found = findings(&document);
    assert!(!found[0].starts_with("disk-"), "{found:?}");
    assert_eq!(fs::read(to.path().join("file")).unwrap(), noise(24 << 20));
}

#[test]
fn a_client_that_is_killed_leaves_a_server_that_serves() {
    let _beside = beside();
    let (from, to) = (on_disk(), on_disk());
    let source = from.path().join("file");
    fs::write(&source, noise(64 << 20)).unwrap();
    let server = taking(to.path());
    // 64 MiB would take 50 s at this rate.
    let client = start(&mut send(&server, &source, to.path(), "-b 10M --no-cells"));
    let begun = || fs::metadata(to.path().join("file")).is_ok_and(|file| file.len() > 0);
    assert!(wait_until(LONG, begun), "nothing was written");
    drop(client);
    let small = from.path().join("small");
    fs::write(&small, "data").unwrap();
    run(&mut send(&server, &small, to.path(), "--no-cells"), LONG).expect(0);
    assert_eq!(fs::read_to_string(to.path().join("small")).unwrap(), "data");
    // It holds nothing of the one that is gone.
    let open = || {
        let links = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
        links
            .filter_map(|one| fs::read_link(one.ok()?.path()).ok())
            .any(|file| file.starts_with(to.path()))
    };
    assert!(wait_until(LONG, || !open()), "its file is still open");
}

#[test]
fn what_the_user_stops_is_no_fault_of_a_disk() {
    let _beside = beside();
    let (from, to) = (on_disk(), on_disk());
    let source = from.path().join("file");
    fs::write(&source, noise(64 << 20)).unwrap();
    let server = taking(to.path());
    let client = start(&mut send(&server, &source, to.path(), "-b 10M --json"));
    let begun = || fs::metadata(to.path().join("file")).is_ok_and(|file| file.len() > 0);
    assert!(wait_until(LONG, begun), "nothing was written");
    client.signal("INT");
    let document = client.wait(LONG).expect(0).json();
    assert_eq!(document["outcome"]["how"], "interrupted");
    let found = findings(&document);
    assert!(!found.iter().any(|id| id.starts_with("disk-")), "{found:?}");
    assert_eq!(document["transfer"]["checksums_agree"], Value::Null);
    assert_eq!(document["transfer"]["cells"].as_array().unwrap().len(), 0);
}

#[test]
fn what_the_user_stops_between_files_is_no_fault_of_the_copy() {
    let _beside = beside();
    let (from, to) = (on_disk(), on_disk());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..3000 {
        fs::write(tree.join(number.to_string()), noise(4096)).unwrap();
    }
    let server = taking(to.path());
    // They would take 10 s at this rate.
    let client = start(&mut send(&server, &tree, to.path(), "-b 10M --json"));
    let begun = || fs::read_dir(to.path().join("tree")).is_ok_and(|files| files.count() > 10);
    assert!(wait_until(LONG, begun), "nothing was written");
    client.signal("INT");
    let document = client.wait(LONG).expect(0).json();
    assert_eq!(document["outcome"]["how"], "interrupted");
    let transfer = &document["transfer"];
    assert!(transfer["files"].as_u64() < Some(3000), "{transfer}");
    assert_eq!(transfer["checksums_agree"], Value::Null);
    let found = findings(&document);
    assert!(!found.contains(&"checksum".to_owned()), "{found:?}");
}

#[test]
fn a_stock_server_and_other_directions_are_refused() {
    let _beside = beside();
    let from = on_disk();
    let source = from.path().join("file");
    fs::write(&source, "data").unwrap();
    let mut command = Command::new(LINERATE);
    command
        .args(["test", "127.0.0.1", "-R", "--target", "/tmp", "--source"])
        .arg(&source);
    run(&mut command, LONG).expect(2);
    let mut command = Command::new(LINERATE);
    command.args([
        "test",
        "127.0.0.1",
        "--target",
        "/tmp",
        "--source",
        "/dev/null",
    ]);
    let done = run(&mut command, LONG);
    assert!(
        done.error.contains("neither a file nor a folder"),
        "{}",
        done.error
    );
}
