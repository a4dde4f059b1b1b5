//! What `--on` prints.

use std::time::Duration;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use super::{Children, PATIENCE, linerate_by, ran};
use crate::harness::{alone, beside, say, start, wait_until};

/// Each host in a network of its own; n3's receive buffers are smaller, n5 cannot be reached.
const HOSTS: &str = r#"
host=$1
case $host in
    n5) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255 ;;
    n3) rmem="4096 1000 2000" ;;
    *) rmem="4096 131072 6291456" ;;
esac
exec unshare --user --map-root-user --net sh -c 'echo "$1" >/proc/sys/net/ipv4/tcp_rmem || exit 77; exec sh -c "$2"' sh "$rmem" "$2"
"#;

#[test]
fn who_differs_from_most_hosts_is_named_with_what_the_others_have() {
    let _beside = beside();
    let children = Children::new();
    let script = children.home.with("hosts.sh", HOSTS);
    let via = format!(
        "{} sh {} {{host}}",
        children.environment(),
        script.display()
    );
    let done = ran(&mut linerate_by(&via, "n[1-4,6]", "host diff"));
    if done.code() != Some(0) {
        return skipped(
            Need::NamespaceSysctls,
            "hosts that differ",
            done.error.trim(),
        );
    }
    assert!(done.out.starts_with("n[1-2,4,6]: as most hosts are\nn3:\n  net.ipv4.tcp_rmem 4096 1000 2000, others 4096 131072 6291456"), "{}", done.out);
    assert_eq!(done.error, "");

    let done = ran(&mut linerate_by(&via, "n[1-6]", "host"));
    assert_eq!(done.code(), Some(11), "{}", done.error);
    assert!(
        done.out.contains("\nn3:\n  net.ipv4.tcp_rmem "),
        "{}",
        done.out
    );
    assert!(done.error.contains("n5: the connection ended while connecting: ssh: connect to host n5 port 22: No route to host\n"), "{}", done.error);
    assert!(
        done.error.contains("1 of 6 hosts did not answer"),
        "{}",
        done.error
    );

    let done = ran(&mut linerate_by(&via, "n[3-5]", "host diff --json"));
    assert_eq!(done.code(), Some(11));
    let lines: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines
            .iter()
            .map(|line| line["host"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["n3", "n4", "n5"]
    );
    assert!(
        lines[2]["error"]
            .as_str()
            .unwrap()
            .contains("No route to host")
    );
    assert!(lines[2].get("code").is_none());
}

#[test]
fn equal_texts_are_printed_once_and_codes_are_the_highest() {
    let _beside = beside();
    let children = Children::new();
    let file = children.home.with("mine.conf", "net.core.rmem_max 1\n");
    let done = ran(&mut children.linerate("n[01-03]", &format!("tune plan {}", file.display())));
    assert_eq!(done.code(), Some(5), "{}", done.error);
    // The file is named as it is here, without its folder there.
    assert!(
        done.error
            .contains("n[01-03]: linerate: error: mine.conf:1"),
        "{}",
        done.error
    );
    let done = ran(&mut children.linerate("n[01-03]", "expect --rate 10G --rtt 60ms"));
    assert_eq!(done.code(), Some(0), "{}", done.error);
    assert_eq!(done.out.matches("Goodput").count(), 1);
    assert!(done.out.starts_with("n[01-03]:\nExpect "), "{}", done.out);
    let done = ran(&mut children.linerate("n[2,1]", "expect --rate 10G --rtt 60ms --json"));
    let lines: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (lines[0]["host"].as_str(), lines[0]["code"].as_u64()),
        (Some("n1"), Some(0))
    );
    assert!(lines[0]["document"].is_object());
}

#[test]
fn what_cannot_be_is_refused_before_any_host_is_reached() {
    let _beside = beside();
    let children = Children::new();
    for (on, words, names) in [
        ("n1!n1", "host", "empty"),
        ("n[", "host", "n["),
        ("n1", "host --fan-out 0", "--fan-out"),
        ("n1", "host diff a b", "--on"),
        ("n1", "tune plan /nowhere/x.toml", "/nowhere/x.toml"),
    ] {
        let done = ran(&mut children.linerate(on, words));
        assert!(done.error.contains(names), "{on} {words}: {}", done.error);
        assert!([Some(2), Some(5)].contains(&done.code()), "{on} {words}");
    }
    let done = ran(&mut linerate_by("sh -c", "n1", "host"));
    assert!(done.error.contains("{host}"), "{}", done.error);
    assert!(!children.home.file(".cache").exists());
}

/// 100 MB, in kB as `VmHWM` has it.
const MOST_MEMORY_KB: u64 = 100_000;

#[test]
fn facts_of_two_hundred_hosts_take_little_memory_here_and_little_text() {
    let _alone = alone();
    let children = Children::new();
    // All of them share the folder: the binary is copied once before.
    drop(children.open("n1"));
    let mut command = children.linerate("n[001-200]", "host");
    let begun = std::time::Instant::now();
    let near = start(&mut command);
    let status = format!("/proc/{}/status", near.pid());
    let mut most = 0;
    let ended = wait_until(PATIENCE, || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let Some(line) = line else { return true };
        most = line.trim().trim_end_matches(" kB").parse().unwrap();
        false
    });
    let done = near.wait(Duration::from_secs(60));
    let took = begun.elapsed();
    assert!(ended);
    assert_eq!(done.code(), Some(0), "{}", done.error);
    say(&format!(
        "facts of 200 children: {:.1} s, {most} kB at most here",
        took.as_secs_f64()
    ));
    assert!(
        done.out.contains("n[001-200]: nothing that matters"),
        "{}",
        done.out
    );
    assert!(done.out.lines().count() < 120, "{}", done.out);
    assert!(most > 0 && most < MOST_MEMORY_KB, "{most} kB");
    children.assert_gone("after 200 hosts");
}
