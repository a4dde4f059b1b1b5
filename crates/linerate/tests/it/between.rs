//! Tests between two far hosts: children of this machine that stand for hosts, and network namespaces.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linerate_model::record::Outcome;
use serde_json::Value;

use crate::harness::{
    Done, Folder, Hosts, LINERATE, LONG, Running, alone, assert_balanced, beside, record, run,
    start, wait_until,
};

/// Children that stand for hosts. The binary is found on their path, so that nothing is copied.
const CHILDREN: &str = "env LINERATE_HOST={host} sh -c";

/// A name of a host that no other test uses: a host takes one test at a time.
fn host() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("h{}-{number}", std::process::id())
}

/// `linerate test` with children as hosts.
fn test(words: &str) -> Command {
    through(CHILDREN, words)
}

fn through(via: &str, words: &str) -> Command {
    let beside = Path::new(LINERATE).parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(LINERATE);
    command
        // This binary is large, and its checksum slow on a loaded machine.
        .args(["test", "--connect-timeout", "60s", "--via", via])
        .args(words.split_whitespace())
        .env("PATH", format!("{beside}:{path}"))
        .env("XDG_CACHE_HOME", "/dev/null");
    command
}

/// All processes that descend from one, with their command lines.
fn descendants(pid: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children
            .split_whitespace()
            .filter_map(|text| text.parse().ok())
        {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push((child, line));
            found.extend(descendants(child));
        }
    }
    found
}

/// The far end of a running test that runs this command.
#[track_caller]
fn far(running: &Running, verb: &str) -> u32 {
    let mut pid = None;
    let found = wait_until(LONG, || {
        let begins = format!("linerate {verb} ");
        pid = descendants(running.pid())
            .into_iter()
            .find(|(_, line)| line.starts_with(&begins))
            .map(|(pid, _)| pid);
        pid.is_some()
    });
    assert!(found, "no far {verb}: {}", running.error());
    pid.unwrap()
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{name} {pid}")])
        .status();
    assert!(sent.unwrap().success(), "kill -{name} {pid}");
}

#[track_caller]
fn runs(running: &Running) {
    let moves = wait_until(LONG, || running.out().contains("\"interval\""));
    assert!(moves, "{}{}", running.out(), running.error());
}

/// None of them lives any more.
#[track_caller]
fn are_gone(pids: &[(u32, String)]) {
    let lives = |pid: u32| {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state
            .rsplit(") ")
            .next()
            .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    let gone = wait_until(LONG, || !pids.iter().any(|(pid, _)| lives(*pid)));
    let left: Vec<_> = pids.iter().filter(|(pid, _)| lives(*pid)).collect();
    assert!(gone, "left behind: {left:?}");
}

#[test]
fn a_report_says_which_host_was_which_and_the_record_comes_back() {
    let _beside = beside();
    let folder = Folder::new();
    let (from, to, file) = (host(), host(), folder.file("record.json"));
    let words = format!(
        "--from {from} --to {to} -n 20M --json -o {}",
        file.display()
    );
    let document = run(&mut test(&words), LONG).expect(0).json();
    assert_balanced(&document, "between two hosts");
    assert_eq!(document["client"]["name"], from.as_str());
    assert_eq!(document["server"]["name"], to.as_str());
    assert_eq!(document["plan"]["direction"], "send");
    let kept = record(&file);
    let names = kept.host_names.clone().unwrap();
    assert_eq!(
        (&*names.client, &*names.server),
        (from.as_str(), to.as_str())
    );
    assert!(kept.client.is_some() && kept.server.is_some());
    let shown = run(Command::new(LINERATE).arg("show").arg(&file), LONG).expect(0);
    let arrow = format!("{from} (127.0.0.1:");
    assert!(shown.out.contains(&arrow), "{}", shown.out);
}

#[test]
fn all_directions_and_protocols_go_between_two_hosts() {
    let _beside = beside();
    for (words, flows) in [
        ("-n 5M -R", &["server_to_client"][..]),
        ("-n 5M --bidir", &["client_to_server", "server_to_client"]),
        ("-n 5M -P 4 -4", &["client_to_server"]),
        ("-u -b 5M -n 200K", &["client_to_server"]),
        ("-u -b 5M -n 200K -R", &["server_to_client"]),
    ] {
        let words = format!("--from {} --to {} {words} --json", host(), host());
        let document = run(&mut test(&words), LONG).expect(0).json();
        assert_balanced(&document, &words);
        let directions = document["summary"]["directions"].as_array().unwrap();
        let found: BTreeSet<&str> = directions
            .iter()
            .filter_map(|direction| direction["flow"].as_str())
            .collect();
        assert_eq!(found, flows.iter().copied().collect(), "{words}");
    }
}

#[test]
fn this_host_may_be_either_end() {
    let _beside = beside();
    let far = host();
    for (words, names) in [
        (format!("ssh://{far}"), ["localhost", &far]),
        (format!("--from {far} --to localhost"), [&far, "localhost"]),
        (format!("--from {far} --to {far}"), [&far, &far]),
    ] {
        let done = run(&mut test(&format!("{words} -n 1M --json")), LONG).expect(0);
        let document = done.json();
        let found = [&document["client"]["name"], &document["server"]["name"]];
        assert_eq!(found, names, "{words}");
    }
}

#[test]
fn a_stream_of_events_ends_with_the_report() {
    let _beside = beside();
    let words = format!(
        "--from {} --to {} -t 1 -i 0.2 --json-stream",
        host(),
        host()
    );
    let done = run(&mut test(&words), LONG).expect(0);
    let lines: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    assert_eq!(names[..3], ["connected", "opened", "started"], "{names:?}");
    assert!(names.contains(&"interval"), "{names:?}");
    assert_eq!(names.iter().filter(|name| **name == "end").count(), 1);
    let end = lines.last().unwrap();
    assert_eq!(end["event"], "end");
    assert!(end["server"]["name"].is_string());
}

#[test]
fn several_tests_of_one_client_share_its_server() {
    let _alone = alone();
    let words = format!(
        "--from {} --to {} -t 1 -w 16K --counter-test --json",
        host(),
        host()
    );
    let done = run(&mut test(&words), Duration::from_secs(240)).expect(0);
    let document = done.json();
    let runs = document["counter_runs"].as_array().unwrap();
    // On a loaded machine the first finding may be one that no run decides.
    let decided = done.error.contains("Counter-tests of");
    assert_eq!(decided, !runs.is_empty(), "{}", done.error);
    for run in runs {
        assert!(run["goodput_bps"].is_number(), "{run}\n{}", done.error);
    }
    let words = format!("--from {} --to {} -t 1 --rfc6349 --json", host(), host());
    let document = run(&mut test(&words), Duration::from_secs(240))
        .expect(0)
        .json();
    let runs = document["rfc6349"]["runs"].as_array().unwrap();
    assert!(runs.len() > 1, "{document}");
}

#[test]
fn exit_codes_are_those_of_a_test_here() {
    let _beside = beside();
    let words = format!("--from {} --to {} -t 2 --expect >=999T", host(), host());
    let done = run(&mut test(&words), LONG).expect(7);
    let errors = done.error.lines().filter(|line| line.contains("error:"));
    assert_eq!(errors.count(), 1, "{}", done.error);
}

#[test]
fn a_host_that_cannot_be_had_is_named() {
    let _beside = beside();
    let (good, bad) = (host(), host());
    let via = format!(
        "sh -c 'if test $0 = {bad}; then echo no such place >&2; exit 255; fi; exec sh -c \"$1\"' {{host}}"
    );
    for words in [
        format!("--from {good} --to {bad} -n 1M"),
        format!("--from {bad} --to {good} -n 1M"),
    ] {
        let done = run(&mut through(&via, &words), LONG).expect(3);
        let named = done.error.contains(&bad) && done.error.contains("no such place");
        assert!(named && done.out.is_empty(), "{}{}", done.out, done.error);
    }
}

#[test]
fn a_host_runs_one_such_test_at_a_time_and_says_whose() {
    let _beside = beside();
    let [one, two, three] = [host(), host(), host()];
    let words = format!("--from {one} --to {two} -t 60 -i 0.2 --json-stream");
    let first = start(&mut test(&words));
    runs(&first);
    for words in [
        format!("--from {three} --to {two} -n 1M"),
        format!("--from {one} --to {three} -n 1M"),
    ] {
        let busy = run(&mut test(&words), LONG).expect(3);
        let whose = format!("another test runs on this host: test from {one} to {two}, started by");
        assert!(busy.error.contains(&whose), "{}", busy.error);
    }
    first.signal("INT");
    first.wait(LONG).expect(0);
    let words = format!("--from {two} --to {one} -n 1M");
    run(&mut test(&words), LONG).expect(0);
}

#[test]
fn the_token_is_on_no_command_line() {
    let _beside = beside();
    let words = format!(
        "--from {} --to {} -t 60 -i 0.2 --json-stream",
        host(),
        host()
    );
    let running = start(&mut test(&words));
    runs(&running);
    let environment = std::fs::read(format!("/proc/{}/environ", far(&running, "serve"))).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let token = environment
        .split('\0')
        .find_map(|variable| variable.strip_prefix("LINERATE_SESSION_TOKEN="))
        .unwrap();
    assert_eq!(token.len(), 36);
    for (pid, line) in descendants(running.pid()) {
        assert!(!line.contains(token), "{pid}: {line}");
    }
    let others = descendants(running.pid());
    running.signal("INT");
    let ended = running.wait(LONG).expect(0);
    let end: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
    assert_eq!(end["outcome"]["how"], "interrupted");
    are_gone(&others);
}

#[test]
fn a_server_that_is_killed_leaves_what_was_measured() {
    let _beside = beside();
    let folder = Folder::new();
    let (from, to, file) = (host(), host(), folder.file("record.json"));
    let words = format!(
        "--from {from} --to {to} -t 60 -i 0.2 --json-stream -o {}",
        file.display()
    );
    let running = start(&mut test(&words));
    runs(&running);
    signal(far(&running, "serve"), "KILL");
    let ended = running.wait(LONG).expect(4);
    let why = format!("the server on {to}: linerate was killed there by signal 9");
    assert!(ended.error.contains(&why), "{}", ended.error);
    assert!(matches!(record(&file).outcome, Outcome::Failed { .. }));
}

#[test]
fn a_client_that_is_killed_is_named() {
    let _beside = beside();
    let (from, to) = (host(), host());
    let words = format!("--from {from} --to {to} -t 60 -i 0.2 --json-stream");
    let running = start(&mut test(&words));
    runs(&running);
    let others = descendants(running.pid());
    signal(far(&running, "test"), "KILL");
    let ended = running.wait(LONG).expect(3);
    let why = format!("{from}: linerate was killed there by signal 9");
    assert!(ended.error.contains(&why), "{}", ended.error);
    are_gone(&others);
}

#[test]
fn nothing_is_left_when_this_end_is_killed() {
    let _beside = beside();
    let words = format!(
        "--from {} --to {} -t 60 -i 0.2 --json-stream",
        host(),
        host()
    );
    let mut running = start(&mut test(&words));
    runs(&running);
    let others = descendants(running.pid());
    assert!(
        others.iter().any(|(_, line)| line.contains("serve")),
        "{others:?}"
    );
    running.kill();
    are_gone(&others);
}

#[test]
fn a_client_that_hangs_is_given_up_with_what_it_did() {
    let _beside = beside();
    let (from, to) = (host(), host());
    let words = format!("--from {from} --to {to} -t 2 -i 0.2 --json-stream");
    let running = start(&mut test(&words));
    runs(&running);
    let others = descendants(running.pid());
    signal(far(&running, "test"), "STOP");
    let ended = running.wait(LONG).expect(3);
    let why = format!("{from}: no end within");
    assert!(ended.error.contains(&why), "{}", ended.error);
    assert!(
        ended.error.contains("while the test ran"),
        "{}",
        ended.error
    );
    are_gone(&others);
}

/// Two hosts in namespaces, `a` and `b`, and how they are reached.
fn namespaces(what: &str) -> Option<(Hosts, String)> {
    let hosts = Hosts::new(what)?;
    let via = format!(
        "sh -c 'case $0 in a) p={};; b) p={};; esac; exec nsenter -t $p --user --net --preserve-credentials -- sh -c \"$1\"' {{host}}",
        hosts.a.pid(),
        hosts.b.pid()
    );
    Some((hosts, via))
}

fn between(via: &str, words: &str) -> Done {
    run(&mut through(via, words), LONG)
}

#[test]
fn the_end_that_can_dial_dials_and_the_data_goes_as_asked() {
    let _beside = beside();
    let Some((hosts, via)) = namespaces("who dials between two hosts") else {
        return;
    };
    // Both can: the first one dials.
    let document = between(&via, "--from a --to b -n 5M --json")
        .expect(0)
        .json();
    assert_eq!(document["client"]["name"], "a");
    assert_eq!(
        document["control"]["remote"]
            .as_str()
            .unwrap()
            .split(':')
            .next(),
        Some("192.0.2.2")
    );
    // b has an address of its link alone, by which it reaches a, and one that a has no way to.
    hosts.b.ip("address flush dev b0");
    hosts.b.ip("address add 169.254.7.2/24 dev b0");
    hosts.b.ip("address add 10.77.0.1/32 dev lo");
    hosts.b.ip("route add 192.0.2.1/32 dev b0 src 169.254.7.2");
    hosts.a.ip("address add 169.254.7.1/24 dev a0");
    for (words, sender) in [
        ("--from a --to b", "server"),
        ("--from a --to b -R", "client"),
        ("--from b --to a", "client"),
        ("--from b --to a -R", "server"),
    ] {
        let done = between(&via, &format!("{words} -n 5M --json")).expect(0);
        let document = done.json();
        assert_eq!(document["client"]["name"], "b", "{words}");
        assert_eq!(document["server"]["name"], "a", "{words}");
        let flow = document["summary"]["directions"][0]["flow"]
            .as_str()
            .unwrap();
        assert!(flow.starts_with(sender), "{words}: {flow}");
        assert_balanced(&document, words);
    }
    let text = between(&via, "--from a --to b -n 1M").expect(0);
    let swapped = "a cannot connect to b, so b runs the client and a the server.";
    assert!(text.error.contains(swapped), "{}", text.error);
    // What names something of a cannot be kept where b dials.
    let bound = between(&via, "--from a --to b -n 1M -B 192.0.2.1").expect(3);
    assert!(bound.error.contains("with -B"), "{}", bound.error);
    // Neither.
    hosts.a.ip("link set a0 down");
    let neither = between(&via, "--from a --to b -n 1M").expect(3);
    for said in [
        "neither host can connect to the other",
        "nothing was sent",
        "10.77.0.1",
    ] {
        assert!(neither.error.contains(said), "{}", neither.error);
    }
}

#[test]
fn the_address_to_dial_can_be_chosen() {
    let _beside = beside();
    let Some((hosts, via)) = namespaces("the address between two hosts") else {
        return;
    };
    hosts.a.ip("address add 198.51.100.1/24 dev a0");
    hosts.b.ip("address add 198.51.100.2/24 dev b0");
    for (choice, address) in [
        ("198.51.100.0/24", "198.51.100.2"),
        ("192.0.2.0/24", "192.0.2.2"),
        ("b0", "192.0.2.2"),
    ] {
        let words = format!("--from a --to b -n 1M --json --address {choice}");
        let document = between(&via, &words).expect(0).json();
        let remote = document["control"]["remote"].as_str().unwrap();
        assert!(
            remote.starts_with(&format!("{address}:")),
            "{choice}: {remote}"
        );
    }
    let none = between(&via, "--from a --to b -n 1M --address 203.0.113.0/24").expect(3);
    assert!(none.error.contains("no address to dial"), "{}", none.error);
}
