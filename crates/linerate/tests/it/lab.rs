//! `linerate lab`: paths, tests across them, and that nothing is left of either. All of it as whoever runs
//! the tests; where that is root, once more as an ordinary user.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_testing::{Need, skipped};
use serde_json::Value;

use super::harness::{
    Done, Folder, LINERATE, LONG, Running, alone, assert_balanced, beside, lacks_a_lab,
    lacks_namespaces, lacks_programs, linerate, measured, number, run, say, start, wait_until,
};

/// Everything is gone this long after a kill.
pub(super) const GONE: Duration = Duration::from_secs(1);

/// Runs a lab; `None`, with a word, where this machine cannot have one.
#[track_caller]
pub(super) fn lab(what: &str, command: &mut Command) -> Option<Done> {
    lab_within(what, command, LONG)
}

#[track_caller]
fn lab_within(what: &str, command: &mut Command, limit: Duration) -> Option<Done> {
    let done = run(command, limit);
    (!lacks_a_lab(what, &done.error)).then_some(done)
}

#[track_caller]
fn document(what: &str, words: &str) -> Option<Value> {
    let done = lab(what, &mut linerate(&format!("lab run {words}")))?;
    Some(done.expect(0).json())
}

fn forward(document: &Value, counter: &str) -> u64 {
    number(
        document,
        &format!("/lab/path/forward/counters/ours/{counter}"),
    )
}

#[test]
fn a_shaped_path_and_the_test_across_it_tell_the_same() {
    measured(alone, || {
        let Some(told) = document("a shaped path", "shaped --json -- -t 3") else {
            return;
        };
        assert_balanced(&told["test"], "a shaped path");
        assert_eq!(told["lab"]["in_force"]["mode"], "packet");
        // The socket's, and the route's as the kernel's table has it.
        assert_eq!(
            told["lab"]["in_force"]["hosts"]["receiver"]["route_congestion"],
            "cubic"
        );
        assert_eq!(
            told.pointer("/test/summary/directions/0/congestion/0"),
            Some(&Value::from("cubic"))
        );
        // Every segment that the sender's kernel counted came by, and beside them the control connection's.
        let segments = number(&told, "/test/summary/segments");
        let offered = forward(&told, "offered/segments");
        assert!(
            (segments..segments + 200).contains(&offered),
            "{segments} segments, {offered} offered"
        );
        // 100 Mbit/s with 38 bytes beside 1500, of which 1448 are payload; the rate is counted at the receiver,
        // where a burst after a pause can be no faster.
        let goodput = number(&told, "/test/summary/whole_run_bps");
        assert!(goodput <= 94_200_000, "{goodput}");
        assert!(forward(&told, "dropped/queue/packets") > 0);
        // What was sent again was lost here.
        let again = number(&told, "/test/summary/retransmits");
        assert!(again >= forward(&told, "dropped/queue/segments"), "{again}");
    });
}

#[test]
fn policers_and_black_holes_do_what_they_are_called() {
    measured(alone, || {
        let Some(policed) = document("a policed path", "policed --json -- -t 2") else {
            return;
        };
        assert!(forward(&policed, "dropped/policer/packets") > 0);
        assert_eq!(forward(&policed, "dropped/loss/packets"), 0);
        let done = lab(
            "a black hole",
            &mut linerate("lab run black-hole --json -- -t 2"),
        )
        .unwrap();
        let hole = done.json();
        assert!(
            forward(&hole, "dropped/too_big/packets") > 0,
            "{}",
            done.error
        );
    });
}

#[test]
fn ipv6_with_marks_copies_and_answers() {
    measured(alone, || {
        let folder = Folder::new();
        let text = |name: &str, path: &str| {
            format!(
                "name = \"{name}\"\nfamily = \"ipv6\"\n[path]\nrtt = \"4ms\"\n{path}\n[sender]\nsysctl = {{ \"net.ipv4.tcp_ecn\" = \"1\" }}\n[receiver]\nsysctl = {{ \"net.ipv4.tcp_ecn\" = \"1\" }}\n[test]\nargs = \"-t 2\"\n"
            )
        };
        let run = |name: &str, path: &str| {
            let file = folder.with(&format!("{name}.toml"), text(name, path));
            document(name, &format!("{} --json", file.display()))
        };
        let Some(marked) = run("marks", "rate = \"50M\"\necn_threshold = \"20kB\"") else {
            return;
        };
        assert_balanced(&marked["test"], "marks");
        assert!(forward(&marked, "marked/packets") > 0);
        assert_eq!(
            marked["lab"]["in_force"]["hosts"]["sender"]["settings"]["net.ipv4.tcp_ecn"],
            "1"
        );
        let copied = run("copies", "rate = \"50M\"\nduplicate = 0.05").unwrap();
        assert!(number(&copied, "/lab/path/forward/injected") > 0);
        assert_eq!(number(&copied, "/lab/path/forward/not_injected"), 0);
        // The sender hears of the largest packet, and its segments become smaller.
        let told = run("answers", "max_packet = { bytes = 1400, icmp = true }").unwrap();
        assert!(number(&told, "/lab/path/forward/injected") > 0);
        assert!(forward(&told, "delivered/packets") > 100);
        let dropped = forward(&told, "dropped/too_big/packets");
        assert!(
            dropped * 10 < forward(&told, "delivered/packets"),
            "{dropped}"
        );
    });
}

#[test]
fn bulk_mode_counts_segments() {
    measured(alone, || {
        let folder = Folder::new();
        let text =
            "name = \"bulk\"\nmode = \"bulk\"\n[path]\nrtt = \"2ms\"\n[test]\nargs = \"-t 1\"\n";
        let file = folder.with("bulk.toml", text);
        let Some(told) = document("bulk mode", &format!("{} --json", file.display())) else {
            return;
        };
        let (packets, segments) = (
            forward(&told, "offered/packets"),
            forward(&told, "offered/segments"),
        );
        assert!(
            segments > 2 * packets,
            "{segments} segments in {packets} packets"
        );
        let counted = number(&told, "/test/summary/segments");
        assert!(
            segments.abs_diff(counted) < counted / 50 + 200,
            "{segments} against {counted}"
        );
    });
}

#[test]
fn bulk_mode_counts_segments_as_long_as_both_hosts_take_them() {
    measured(alone, || {
        let folder = Folder::new();
        let text = "name = \"unlike\"\nmode = \"bulk\"\n[path]\nrate = \"500M\"\nrtt = \"10ms\"\n[sender]\nmtu = 9000\n[test]\nargs = \"-t 2\"\n";
        let file = folder.with("unlike.toml", text);
        let Some(told) = document(
            "unlike hosts in bulk",
            &format!("{} --json", file.display()),
        ) else {
            return;
        };
        let (segments, counted) = (
            forward(&told, "offered/segments"),
            number(&told, "/test/summary/segments"),
        );
        assert!(
            segments.abs_diff(counted) < counted / 50 + 200,
            "{segments} against {counted}"
        );
        // 500 Mbit/s × 1448/1538 = 471 Mbit/s is all that the receiver's packets leave.
        let goodput = number(&told, "/test/summary/whole_run_bps");
        assert!(goodput <= 471_000_000, "{goodput}");
    });
}

#[test]
fn a_share_of_a_cpu_is_told_as_it_was() {
    measured(alone, || {
        let folder = Folder::new();
        let text = "name = \"share\"\n[path]\nrtt = \"2ms\"\n[receiver]\ncpu = 0.4\n[test]\nargs = \"-t 2\"\n";
        let file = folder.with("share.toml", text);
        let words = format!("lab run {} --json", file.display());
        let Some(done) = lab("a share of a CPU", &mut linerate(&words)) else {
            return;
        };
        if done.code() == Some(3) && done.error.contains("niceness") {
            return skipped(Need::Niceness, "a share of a CPU", done.error.trim());
        }
        let told = done.expect(0).json();
        let share =
            |what| number_or_float(&told, &format!("/lab/in_force/hosts/receiver/cpu/{what}"));
        assert!((share("asked") - 0.4).abs() < 1e-9);
        assert!((share("weights") - 0.4).abs() < 0.03);
        assert!(
            share("used") > 0.0 && share("used") < 0.8,
            "{}",
            share("used")
        );
        assert_eq!(
            told["lab"]["in_force"]["hosts"]["sender"]["cpu"],
            Value::Null
        );
    });
}

#[test]
fn competing_traffic_comes_from_elsewhere() {
    measured(alone, || {
        let folder = Folder::new();
        let text = "name = \"cross\"\n[path]\nrate = \"50M\"\nrtt = \"4ms\"\n[[path.cross]]\nkind = \"udp\"\nrate = \"20M\"\nfrom = \"0s\"\n[test]\nargs = \"-t 3\"\n";
        let file = folder.with("cross.toml", text);
        let Some(told) = document("competing traffic", &format!("{} --json", file.display()))
        else {
            return;
        };
        let cross = number(&told, "/lab/path/forward/counters/cross/offered/bytes");
        assert!(cross > 1_000_000, "{cross}");
        assert_balanced(&told["test"], "beside competing traffic");
    });
}

#[test]
fn two_labs_at_once_know_nothing_of_each_other() {
    measured(alone, || {
        let mut other = start(&mut linerate("lab run wan-6ms --json -- -t 3"));
        let Some(one) = document("two labs", "wan-24ms --json -- -t 1") else {
            other.kill();
            return;
        };
        let other = other.wait(LONG).expect(0).json();
        for (told, least) in [(&one, 24_000), (&other, 6_000)] {
            assert_balanced(&told["test"], "two labs");
            let rtt = number_or_float(told, "/test/summary/min_rtt_us");
            assert!(rtt >= f64::from(least), "{rtt} µs");
        }
    });
}

pub(super) fn number_or_float(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap()
}

#[test]
fn ctrl_c_ends_the_test_and_what_was_measured_is_told() {
    let _alone = alone();
    let mut command = linerate("lab run wan-6ms -- -t 30");
    // As a shell does it: the signal goes to the whole group.
    command.process_group(0);
    let mut running = start(&mut command);
    let measures = wait_until(LONG, || {
        running.out().contains("   0.00 - ") || running.ended()
    });
    assert!(measures);
    if lacks_a_lab("Ctrl-C in a lab", &running.error()) {
        return;
    }
    let kill = format!("kill -INT -{}", running.pid());
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    let done = running.wait(LONG).expect(0);
    assert!(done.took < Duration::from_secs(25), "{:?}", done.took);
    for word in ["Goodput", "Ledger balanced", "Path  ", "delivered late by"] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
}

/// Ours, with a folder of its own to note paths in.
pub(super) fn noted(folder: &Folder, words: &[&str]) -> Command {
    let mut command = Command::new(LINERATE);
    command
        .arg("lab")
        .args(words)
        .env("XDG_RUNTIME_DIR", folder.path());
    command
}

#[test]
fn a_path_stays_up_for_commands_and_goes_down() {
    let _beside = beside();
    let folder = Folder::new();
    let up = noted(&folder, &["up", "one", "--rate", "100M", "--rtt", "8ms"]);
    let Some(done) = lab("a path that stays up", &mut { up }) else {
        return;
    };
    assert!(done.expect(0).out.contains("192.0.2."));
    let again = run(&mut noted(&folder, &["up", "one"]), LONG).expect(2);
    assert!(again.error.contains("up already"), "{}", again.error);
    let list = run(&mut noted(&folder, &["list", "--json"]), LONG)
        .expect(0)
        .json();
    let holder = number(&list, "/0/pid");
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    let namespace = |host: &str| {
        let words = ["exec", "one", host, "--", "readlink", "/proc/self/ns/net"];
        run(&mut noted(&folder, &words), LONG).expect(0).out
    };
    let (sender, receiver) = (namespace("sender"), namespace("receiver"));
    assert_ne!(sender, receiver);
    assert_ne!(Path::new(sender.trim()), own);
    let words = ["exec", "one", "sender", "--", "sh", "-c", "exit 7"];
    let seven = run(&mut noted(&folder, &words), LONG).expect(7);
    assert_eq!(seven.error, "");
    let nobody = run(
        &mut noted(&folder, &["exec", "one", "nobody", "--", "true"]),
        LONG,
    )
    .expect(2);
    assert!(
        nobody.error.contains("sender, receiver"),
        "{}",
        nobody.error
    );
    // A command that still runs ends with its path.
    let words = ["exec", "one", "sender", "--", "sleep", "60"];
    let sleeping = start(&mut noted(&folder, &words));
    assert!(wait_until(LONG, || children(sleeping.pid()).len() == 1));
    run(&mut noted(&folder, &["down", "--all"]), LONG).expect(0);
    let slept = sleeping.wait(LONG).expect(3);
    assert!(slept.error.contains("taken down"), "{}", slept.error);
    assert!(wait_until(GONE, || !alive(holder)));
    let list = run(&mut noted(&folder, &["list", "--json"]), LONG)
        .expect(0)
        .json();
    assert_eq!(list, serde_json::json!([]));
    assert!(!folder.file("linerate-lab").exists());
}

#[test]
fn what_runs_on_a_host_hears_signals_and_ends_with_its_path() {
    let _beside = beside();
    let folder = Folder::new();
    // Any name that a path may have, whatever its options.
    let name = "My.Lab_1";
    let up = noted(&folder, &["up", name, "--rate", "1G"]);
    let Some(done) = lab("signals on a host", &mut { up }) else {
        return;
    };
    done.expect(0);
    let exec = |words: &[&str]| {
        let mut all = vec!["exec", name, "sender", "--"];
        all.extend(words);
        noted(&folder, &all)
    };
    let blocked = run(&mut exec(&["grep", "SigBlk", "/proc/self/status"]), LONG).expect(0);
    assert_eq!(
        blocked.out.split_whitespace().last(),
        Some("0000000000000000")
    );
    // One that listens ends at once.
    let sleeping = start(&mut exec(&["sleep", "60"]));
    assert!(wait_until(LONG, || has_child_called(
        sleeping.pid(),
        "sleep"
    )));
    sleeping.signal("TERM");
    sleeping.wait(LONG).expect(128 + 15);
    // One that does not is killed when it is asked again.
    let script = "trap '' TERM; echo deaf; exec sleep 60";
    let mut deaf = start(&mut exec(&["sh", "-c", script]));
    assert!(wait_until(LONG, || deaf.out().contains("deaf")));
    let ended = wait_until(LONG, || {
        let ended = deaf.ended();
        if !ended {
            deaf.signal("TERM");
        }
        ended
    });
    assert!(ended);
    deaf.wait(LONG).expect(128 + 9);
    // What a command left behind goes with the path.
    let words = ["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"];
    let left = run(&mut exec(&words), LONG).expect(0).out;
    let left: u64 = left.trim().parse().unwrap();
    assert!(alive(left));
    let down = run(&mut noted(&folder, &["down", name]), LONG).expect(0);
    assert!(down.out.contains("were ended: 1"), "{}", down.out);
    assert!(wait_until(GONE, || !alive(left)));
}

fn has_child_called(pid: u32, name: &str) -> bool {
    children(pid).into_iter().any(|child| {
        std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|comm| comm.trim() == name)
    })
}

#[test]
fn of_two_paths_of_one_name_at_once_one_comes_up() {
    let _beside = beside();
    let folder = Folder::new();
    let up = |rate| noted(&folder, &["up", "same", "--rate", rate]);
    let other = start(&mut up("10M"));
    let Some(one) = lab("two paths of one name", &mut up("1G")) else {
        other.wait(LONG);
        return;
    };
    let other = other.wait(LONG);
    let mut codes = [one.code(), other.code()];
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2)], "{} {}", one.error, other.error);
    assert!(format!("{}{}", one.error, other.error).contains("up already"));
    // Beside it lies something that nobody can read.
    folder.with("linerate-lab/bad.json", "{");
    let list = run(&mut noted(&folder, &["list", "--json"]), LONG).expect(0);
    assert!(list.error.contains("lab down bad"), "{}", list.error);
    let list = list.json();
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["name"], "same");
    let about = if one.code() == Some(0) {
        "rate 1G"
    } else {
        "rate 10M"
    };
    assert_eq!(list[0]["about"], about);
    let words = ["exec", "same", "receiver", "--", "true"];
    run(&mut noted(&folder, &words), LONG).expect(0);
    let down = run(&mut noted(&folder, &["down", "--all"]), LONG).expect(0);
    assert!(down.out.contains("same is down") && down.out.contains("note of bad"));
    assert!(!folder.file("linerate-lab").exists());
}

#[test]
fn what_is_wrong_with_an_option_is_said_of_the_option() {
    let _beside = beside();
    let folder = Folder::new();
    for (option, value) in [("--rate", "fast"), ("--loss", "nan"), ("--rtt", "1h")] {
        let done = run(&mut noted(&folder, &["up", "x", option, value]), LONG).expect(2);
        assert!(
            done.error.contains(option) && done.error.contains(value),
            "{}",
            done.error
        );
        assert!(
            !done.error.contains("TOML") && !done.error.contains("x:"),
            "{}",
            done.error
        );
    }
    let done = run(&mut noted(&folder, &["grade", ".", "--runs", "0"]), LONG).expect(2);
    assert!(done.error.contains("--runs"), "{}", done.error);
}

#[test]
fn a_path_that_stays_up_keeps_nothing_of_its_callers_open() {
    let _beside = beside();
    let folder = Folder::new();
    let lock = folder.file("lock");
    let up = noted(&folder, &["up", "three"]);
    // The shell leaves a descriptor open to what it starts, as flock(1) does.
    let mut command = Command::new("sh");
    command.args(["-c", "exec 9>\"$0\"; exec \"$@\""]);
    command.arg(&lock).arg(up.get_program()).args(up.get_args());
    for (name, value) in up.get_envs() {
        command.env(name, value.unwrap());
    }
    let Some(done) = lab("a holder's descriptors", &mut command) else {
        return;
    };
    done.expect(0);
    let list = run(&mut noted(&folder, &["list", "--json"]), LONG)
        .expect(0)
        .json();
    let open = format!("/proc/{}/fd", number(&list, "/0/pid"));
    let links: Vec<_> = std::fs::read_dir(open)
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .collect();
    run(&mut noted(&folder, &["down", "three"]), LONG).expect(0);
    assert!(!links.is_empty());
    assert!(!links.contains(&lock), "{links:?}");
}

#[test]
fn a_holder_that_is_killed_is_forgotten() {
    let _beside = beside();
    let folder = Folder::new();
    let Some(done) = lab("a killed holder", &mut noted(&folder, &["up", "two"])) else {
        return;
    };
    done.expect(0);
    let list = run(&mut noted(&folder, &["list", "--json"]), LONG)
        .expect(0)
        .json();
    let holder = number(&list, "/0/pid");
    let killed = Command::new("sh")
        .args(["-c", &format!("kill -9 {holder}")])
        .status();
    assert!(killed.unwrap().success());
    assert!(wait_until(GONE, || !alive(holder)));
    let list = run(&mut noted(&folder, &["list", "--json"]), LONG)
        .expect(0)
        .json();
    assert_eq!(list, serde_json::json!([]));
    let gone = run(&mut noted(&folder, &["down", "two"]), LONG).expect(2);
    assert!(gone.error.contains("no path named two"), "{}", gone.error);
}

/// A process runs: one that has ended and waits for its parent does not.
pub(super) fn alive(pid: u64) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

pub(super) fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let text = text.unwrap_or_default();
    text.split_whitespace()
        .filter_map(|each| each.parse().ok())
        .collect()
}

/// Network namespaces that some process of this user is in.
fn namespaces() -> BTreeSet<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|process| std::fs::read_link(process.path().join("ns/net")).ok())
        .map(|link| link.display().to_string())
        .collect()
}

/// Nothing is left.
const NOTHING: [String; 0] = [];

/// Kills a lab at some moment; what is left of it a second later.
fn kill_after(moment: Duration) -> Vec<String> {
    let before = namespaces();
    let mut runner: Running = start(&mut linerate("lab run wan-6ms --json -- -t 20"));
    let begin = Instant::now();
    let mut seen = BTreeSet::new();
    let mut theirs = BTreeSet::new();
    while begin.elapsed() < moment {
        seen.extend(children(runner.pid()));
        theirs.extend(namespaces().difference(&before).cloned());
        std::thread::yield_now();
    }
    seen.extend(children(runner.pid()));
    runner.kill();
    let mut left = Vec::new();
    let gone = wait_until(GONE, || {
        let processes = seen.iter().filter(|pid| alive(u64::from(**pid)));
        left = processes.map(|pid| format!("process {pid}")).collect();
        left.extend(namespaces().intersection(&theirs).cloned());
        left.is_empty()
    });
    assert_eq!(gone, left.is_empty());
    left
}

/// Moments that differ from run to run, without a pattern, from before the namespaces to amid the test.
pub(super) fn moments(count: u32) -> impl Iterator<Item = Duration> {
    let seed = u64::from(std::process::id());
    (0..count).map(move |each| {
        let mixed = (seed + u64::from(each)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Duration::from_micros((mixed >> 40) % 1_500_000)
    })
}

#[test]
fn a_killed_lab_leaves_nothing() {
    let _alone = alone();
    if document("a killed lab", "lan-1g --json -- -t 1").is_none() {
        return;
    }
    let host = Machine::now();
    for moment in moments(5) {
        assert_eq!(kill_after(moment), NOTHING, "killed after {moment:?}");
    }
    host.assert_untouched();
}

#[test]
#[ignore = "takes minutes: `make kill`"]
fn fifty_killed_labs_leave_nothing() {
    let _alone = alone();
    let host = Machine::now();
    for moment in moments(50) {
        assert_eq!(kill_after(moment), NOTHING, "killed after {moment:?}");
    }
    host.assert_untouched();
    say("50 labs were killed, and nothing was left of them");
}

/// The machine's own settings: every sysctl of its network, its interfaces, routes and rules.
pub(super) struct Machine(BTreeMap<String, String>);

impl Machine {
    pub(super) fn now() -> Self {
        let mut all = BTreeMap::new();
        collect(Path::new("/proc/sys/net"), &mut all);
        collect(Path::new("/proc/sys/user"), &mut all);
        for file in [
            "route",
            "ipv6_route",
            "if_inet6",
            "ip_tables_names",
            "ip6_tables_names",
            "netfilter/nfnetlink_queue",
        ] {
            let path = format!("/proc/net/{file}");
            if let Ok(text) = std::fs::read_to_string(&path) {
                all.insert(path, words(&text, file));
            }
        }
        let interfaces = std::fs::read_to_string("/proc/net/dev").unwrap();
        let names: Vec<&str> = interfaces
            .lines()
            .filter_map(|line| line.split(':').next())
            .collect();
        all.insert("interfaces".to_owned(), names.join(" "));
        // Where the program is and may look: the rules that a lab made for itself must not stand here.
        if let Ok(rules) = Command::new("nft").args(["list", "ruleset"]).output() {
            let rules = String::from_utf8_lossy(&rules.stdout).into_owned();
            all.insert("nft".to_owned(), rules);
        }
        assert!(all.len() > 100, "{}", all.len());
        Self(all)
    }

    #[track_caller]
    pub(super) fn assert_untouched(&self) {
        let now = Self::now();
        for (key, value) in &self.0 {
            assert_eq!(Some(value), now.0.get(key), "{key}");
        }
        assert_eq!(self.0.len(), now.0.len());
    }
}

/// Without the columns that count uses.
fn words(text: &str, file: &str) -> String {
    let counts: &[usize] = match file {
        "route" => &[4, 5],
        "ipv6_route" => &[6, 7],
        _ => &[],
    };
    let line = |line: &str| {
        let kept = line
            .split_whitespace()
            .enumerate()
            .filter(|(at, _)| !counts.contains(at));
        kept.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn collect(folder: &Path, into: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
    {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if !path.ends_with("nf_conntrack_count")
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            into.insert(path.display().to_string(), text);
        }
    }
}

#[test]
fn the_machine_is_as_it_was() {
    let _alone = alone();
    let host = Machine::now();
    if document("the machine as it was", "policed --json -- -t 1").is_some() {
        host.assert_untouched();
    }
}

#[test]
fn an_ordinary_user_has_labs_too() {
    let _alone = alone();
    let what = "an ordinary user";
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n");
    if !root {
        return skipped(Need::Root, what, "not root, so all other tests ran as one");
    }
    if lacks_programs(what, &["setpriv"]) {
        return;
    }
    // Where the program lies, another user may not look.
    let folder = Folder::new();
    let copy = folder.file("linerate");
    std::fs::copy(LINERATE, &copy).unwrap();
    for path in [folder.path(), &copy] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&copy);
    command.args(["lab", "run", "wan-24ms", "--json", "--", "-t", "1"]);
    if let Some(done) = lab(what, &mut command) {
        let told = done.expect(0).json();
        assert_eq!(told["lab"]["in_force"]["isolation"], "user_namespace");
        assert_balanced(&told["test"], what);
    }
}

/// In a user namespace that allows no further one, with all rights over itself, or without.
fn forbidden(rights: &str) -> Option<Done> {
    let what = "forbidden user namespaces";
    if lacks_programs(what, &["unshare", "setpriv"]) {
        return None;
    }
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces || exit 77; exec setpriv {rights} {LINERATE} lab run lan-1g --json -- -t 1"
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", &script]);
    let done = run(&mut command, LONG);
    (!lacks_namespaces(what, &done)).then_some(done)
}

#[test]
fn without_user_namespaces_root_has_labs_and_others_hear_why_not() {
    let _alone = alone();
    if let Some(done) = forbidden("--inh-caps=-all --bounding-set=-sys_admin") {
        let done = done.expect(3);
        for word in [
            "user namespace",
            "user.max_user_namespaces",
            "root",
            "linerate test",
        ] {
            assert!(done.error.contains(word), "{word}: {}", done.error);
        }
    }
    if let Some(done) = forbidden("--inh-caps=-all") {
        let told = done.expect(0).json();
        assert_eq!(told["lab"]["in_force"]["isolation"], "network_namespace");
    }
}

#[test]
fn what_is_wrong_with_a_scenario_is_named() {
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.with("a.toml", "name = \"a\"\n[path]\nrat = \"1G\"\n");
    let done = run(&mut linerate(&format!("lab run {}", file.display())), LONG).expect(2);
    assert!(
        done.error.contains("a.toml:3") && done.error.contains("rate"),
        "{}",
        done.error
    );
    let done = run(&mut linerate("lab run wan-60"), LONG).expect(5);
    assert!(done.error.contains("wan-60ms"), "{}", done.error);
    let file = folder.with(
        "b.toml",
        "name = \"b\"\n[sender]\ncongestion = \"no-such\"\n",
    );
    if let Some(done) = lab(
        "a wrong congestion control",
        &mut linerate(&format!("lab run {}", file.display())),
    ) {
        let done = done.expect(3);
        assert!(
            done.error.contains("no-such") && done.error.contains("cubic"),
            "{}",
            done.error
        );
    }
    let text = "name = \"c\"\n[sender]\nsysctl = { \"net.ipv4.no_such_key\" = \"1\" }\n";
    let file = folder.with("c.toml", text);
    if let Some(done) = lab(
        "a wrong setting",
        &mut linerate(&format!("lab run {}", file.display())),
    ) {
        let done = done.expect(3);
        assert!(
            done.error.contains("net.ipv4.no_such_key"),
            "{}",
            done.error
        );
    }
}

#[test]
fn paths_of_the_repositorys_scenarios_do_what_they_claim() {
    measured(alone, || {
        let what = "a few of the scenarios";
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
        let mut command = Command::new(LINERATE);
        let expected = [
            ("policer-50m-ipv6", "policer"),
            ("random-loss-20ms", "random-loss"),
            ("ecn-marking", "ecn"),
            ("black-hole-ipv6", "mtu-black-hole"),
        ];
        let only = expected.map(|(name, _)| ["--only", name]);
        let kept = Folder::new();
        command.args(["lab", "grade", folder, "--json", "--keep"]);
        command.arg(kept.path()).args(only.as_flattened());
        // 0 or 1: one of four may be told wrong, as one in a hundred is; how often that is, `make grade` tells. A run that
        // the machine disturbed is made again.
        let Some(done) = lab_within(what, &mut command, 4 * LONG) else {
            return;
        };
        let rows: Value = done.json();
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), 4);
        for row in rows {
            let run = &row["runs"][0];
            let claims = run["claims"].as_array().unwrap();
            for claim in claims.iter().filter(|claim| claim["standing"] == "refuted") {
                let disturbed = run["bottleneck"].as_array().unwrap();
                assert!(!disturbed.is_empty(), "{}: {claim}", row["name"]);
                say(&format!(
                    "{}: {claim} does not hold, but {disturbed:?}",
                    row["name"]
                ));
            }
            let shown = claims.iter().any(|claim| claim["standing"] == "shown");
            assert!(shown, "{run}");
            assert!(!run["findings"].as_array().unwrap().is_empty(), "{row}");
        }
        let right = rows.iter().filter(|row| {
            let known = expected.iter().find(|(name, _)| row["name"] == *name);
            known.is_some_and(|(_, first)| row["runs"][0]["findings"][0] == *first)
        });
        assert!(right.count() >= 3, "{rows:#?}");
        // What was kept is judged the same without a run.
        let mut again = Command::new(LINERATE);
        again.args(["lab", "grade", folder, "--json", "--kept"]);
        again.arg(kept.path()).args(only.as_flattened());
        let again = again.output().unwrap();
        assert_eq!(again.status.code(), done.status.code());
        assert_eq!(
            serde_json::from_slice::<Value>(&again.stdout).unwrap(),
            done.json()
        );
    });
}

#[test]
fn a_folder_is_graded() {
    measured(alone, || {
        let folder = Folder::new();
        let scenario = |name: &str, most: &str| {
            format!(
                "name = \"{name}\"\n[path]\nrate = \"50M\"\nrtt = \"10ms\"\n[test]\nargs = \"-t 2\"\n[expect]\ngoodput = \"1M..{most}\"\n"
            )
        };
        folder.with("good.toml", scenario("good", "50M"));
        let words = format!("lab grade {} --json --runs 2", folder.path().display());
        let Some(done) = lab("grading", &mut linerate(&words)) else {
            return;
        };
        let rows = done.expect(0).json();
        assert_eq!(rows[0]["name"], "good");
        let runs = rows[0]["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2);
        assert_ne!(runs[0]["seed"], runs[1]["seed"]);
        assert_eq!(
            (&runs[0]["engine"], &runs[0]["mode"]),
            (&"NFQUEUE".into(), &"packet".into())
        );
        assert!(
            runs[0]["findings"]
                .as_array()
                .is_some_and(|ids| !ids.is_empty())
        );
        assert!(number_or_float(&rows, "/0/runs/0/goodput_bps") > 1e6);
        // It cannot be below 2 Mbit/s.
        folder.with("bad.toml", scenario("bad", "2M"));
        let words = format!("lab grade {} --only bad", folder.path().display());
        let done = run(&mut linerate(&words), LONG).expect(1);
        assert!(
            done.out.contains("bad") && !done.out.contains("good "),
            "{}",
            done.out
        );
        assert!(done.error.contains("1 of 1"), "{}", done.error);
    });
}

#[test]
fn a_path_that_stays_up_says_what_carries_it_and_what_it_leaves_out() {
    let _beside = beside();
    let folder = Folder::new();
    let text = "name = \"fast\"\nengine = \"nfqueue\"\nmode = \"packet\"\n[path]\nrate = \"40G\"\n[receiver]\nread_rate = \"1M\"\n";
    let file = folder.with("fast.toml", text);
    let words = ["up", "fast", "--scenario", file.to_str().unwrap()];
    let Some(done) = lab("what carries a path", &mut noted(&folder, &words)) else {
        return;
    };
    let done = done.expect(0);
    assert!(done.out.contains("NFQUEUE, mode packet"), "{}", done.out);
    for word in ["may be the bottleneck: the path's rate of 40", "read_rate"] {
        assert!(done.error.contains(word), "{word}: {}", done.error);
    }
    let list = run(&mut noted(&folder, &["list", "--json"]), LONG).expect(0);
    run(&mut noted(&folder, &["down", "fast"]), LONG).expect(0);
    assert_eq!(list.json()[0]["engine"], "NFQUEUE");
}

#[test]
fn one_remedy_after_the_other_until_the_path_is_full() {
    let folder = Folder::new();
    // 64 KiB of buffer at 40 ms are 13 Mbit/s at most, of 94.
    let text = "name = \"small\"\n[path]\nrate = \"100M\"\nrtt = \"40ms\"\nqueue = \"1x\"\n[receiver]\n\
        tcp_rmem = \"4096 65536 65536\"\n[test]\nargs = \"-t 4\"\n";
    let scenario = folder.with("small.toml", text);
    measured(alone, || {
        let words = format!("lab run {} --until path-full --json", scenario.display());
        let Some(done) = lab("remedies in turn", &mut linerate(&words)) else {
            return;
        };
        let told = done.expect(0).json();
        assert_eq!(told["end"], "reached");
        let rounds = told["course"]["rounds"].as_array().expect("rounds");
        let rates: Vec<f64> = rounds
            .iter()
            .filter_map(|round| round["goodput_bps"].as_f64())
            .collect();
        assert!((2..=5).contains(&rounds.len()), "{told}");
        assert_eq!(rounds[0]["finding"], "receive-window");
        assert!(
            rates[0] < 20e6 && rates[rates.len() - 1] > 80e6,
            "{rates:?}"
        );
        // The scenario as it is at the end.
        let most = told
            .pointer("/scenario/receiver/tcp_rmem/2")
            .and_then(Value::as_u64);
        assert!(most.is_some_and(|most| most >= 262_144), "{most:?}");
    });
    let words = format!("lab run {} --until path-ful", scenario.display());
    let Some(wrong) = lab("an unknown finding", &mut linerate(&words)) else {
        return;
    };
    let wrong = wrong.expect(2);
    assert!(
        wrong.error.contains("did you mean 'path-full'?"),
        "{}",
        wrong.error
    );
}

/// Twenty of the paths that `make grade-drawn` draws by the hundred.
#[test]
fn twenty_drawn_paths_are_judged_right() {
    let words = "lab grade --drawn 20 --seeds-from 100 --json";
    measured(alone, || {
        let Some(done) = lab_within(
            "drawn paths",
            &mut linerate(words),
            Duration::from_secs(900),
        ) else {
            return;
        };
        let rows: Vec<Value> = serde_json::from_str(&done.out).expect("a list of rows");
        assert_eq!(rows.len(), 20);
        let runs: Vec<&Value> = rows
            .iter()
            .filter_map(|row| row["runs"].as_array()?.first())
            .collect();
        let any = |run: &Value, kinds: &[&str]| {
            let remarks = run["remarks"].as_array().into_iter().flatten();
            let mut kind = remarks.filter_map(|remark| remark["kind"].as_str());
            kind.any(|kind| kinds.contains(&kind))
        };
        for run in &runs {
            assert!(!any(run, &["failed"]), "{run}");
        }
        // What the machine disturbed, or what did not do what was drawn, shows nothing.
        let clear = |run: &&&Value| run["disturbed"] == false && !any(run, &["path"]);
        let judged: Vec<&&Value> = runs.iter().filter(clear).collect();
        let wrong: Vec<&&&Value> = judged
            .iter()
            .filter(|run| any(run, &["wrong_first", "absent"]))
            .collect();
        say(&format!(
            "drawn paths: {} of 20 judged, {} of them wrong",
            judged.len(),
            wrong.len()
        ));
        assert!(wrong.len() <= 3, "{wrong:#?}");
    });
}
