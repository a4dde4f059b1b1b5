//! `linerate prove` and `linerate sweep`: what helped and what did not, in a lab and between two hosts, and that every
//! setting is as it was, whatever ends them.

use std::process::Command;
use std::time::Duration;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use super::harness::{
    B, Done, Folder, Host, Hosts, LONG, alone, beside, lacks_a_lab, linerate, measured, run, start,
    wait_until,
};

/// Runs what needs a lab; `None`, with a word, where this machine cannot have one.
#[track_caller]
fn in_lab(what: &str, command: &mut Command) -> Option<Done> {
    let done = run(command, Duration::from_secs(180));
    (!lacks_a_lab(what, &done.error)).then_some(done)
}

/// A window of 32 to 64 KiB: 4 to 9 Mbit/s at 60 ms, whatever a busy machine does.
const NARROW: &str = "[sysctl]\n\"net.ipv4.tcp_rmem\" = [4096, 65536, 65536]\n";
const WIDE: &str = "[sysctl]\n\"net.ipv4.tcp_rmem\" = [4096, 65536, 16777216]\n";
const SMALL: &str = "[sysctl]\n\"net.ipv4.tcp_wmem\" = [4096, 16384, 65536]\n";
const QUEUE: &str = "[interface.eth0]\ntxqueuelen = 10000\n";

#[test]
fn a_window_at_60_ms_is_a_gain_with_its_interval() {
    measured(alone, || {
        let folder = Folder::new();
        let before = folder.with("before.toml", NARROW);
        let after = folder.with("after.toml", WIDE);
        let words = format!(
            "prove --before {} --after {} --path --rate 40M --rtt 60ms --engine nfqueue --pairs 6 -t 2 --json",
            before.display(),
            after.display()
        );
        let Some(done) = in_lab("a window at 60 ms", &mut linerate(&words)) else {
            return;
        };
        let proof = &done.expect(0).json()["proof"];
        assert_eq!(proof["verdict"], "better", "{proof}");
        let low = proof.pointer("/effect/share/low").and_then(Value::as_f64);
        assert!(low.is_some_and(|low| low > 0.2), "{proof}");
        assert_eq!(proof["ratios"].as_array().map(Vec::len), Some(6));
        let by = |run: &Value| run["engine"] == "NFQUEUE";
        assert!(
            proof["runs"]
                .as_array()
                .is_some_and(|runs| runs.iter().all(by))
        );
        assert!(
            proof["order"]
                .as_str()
                .is_some_and(|order| order.contains("seed 1"))
        );
    });
}

#[test]
fn a_transmit_queue_that_nothing_uses_is_no_effect() {
    measured(alone, || {
        let folder = Folder::new();
        let after = folder.with("after.toml", QUEUE);
        let words = format!(
            "prove --after {} --path --rate 40M --rtt 4ms --pairs 4 --min-effect 20% -t 1",
            after.display()
        );
        let Some(done) = in_lab("a transmit queue", &mut linerate(&words)) else {
            return;
        };
        let done = done.expect(0);
        assert!(done.out.contains("no effect"), "{}", done.out);
        assert!(done.out.contains("noqueue"), "{}", done.out);
    });
}

#[test]
fn an_engine_is_a_lab_s() {
    let _beside = beside();
    let folder = Folder::new();
    let after = folder.with("after.toml", WIDE);
    for (place, engine, word) in [
        ("--peer 192.0.2.1", "netem", "--engine"),
        ("--path", "tun", "none of auto, nfqueue and netem"),
    ] {
        let words = format!(
            "prove --after {} {place} --engine {engine}",
            after.display()
        );
        let done = run(&mut linerate(&words), LONG).expect(2);
        assert!(done.error.contains(word), "{}", done.error);
    }
}

const SWEEP: &str = "name = \"small\"\ntest = \"-t 1\"\nrepetitions = 3\n[lab]\nrate = \"40M\"\nmax_packet = { bytes = 1500 }\n[[factor]]\nname = \"RTT\"\nvary = \"path.rtt\"\nlevels = [\"2ms\", \"4ms\"]\n[[factor]]\nname = \"MTU\"\nvary = \"interface.eth0.mtu\"\nlevels = [1500, 9000]\n";

#[test]
fn a_sweep_goes_on_where_it_was_stopped_and_refuses_another_file() {
    let _alone = alone();
    let folder = Folder::new();
    let file = folder.with("small.toml", SWEEP);
    let words = format!("sweep {}", file.display());
    let mut first = start(&mut linerate(&words));
    let seen = wait_until(LONG, || first.error().contains(" of 12: ") || first.ended());
    assert!(seen, "{}", first.error());
    if lacks_a_lab("a sweep", &first.error()) {
        return;
    }
    let second = run(&mut linerate(&words), LONG).expect(2);
    let holder = format!("another sweep (process {})", first.pid());
    assert!(second.error.contains(&holder), "{}", second.error);
    first.signal("INT");
    let stopped = first.wait(LONG).expect(4);
    assert!(
        stopped.out.contains("runs are still to be made"),
        "{}",
        stopped.out
    );

    let changed = SWEEP.replace("\"4ms\"", "\"8ms\"");
    std::fs::write(&file, changed).expect("a file");
    let refused = run(&mut linerate(&words), LONG).expect(2);
    assert!(
        refused.error.contains("small.toml:10: differs"),
        "{}",
        refused.error
    );

    std::fs::write(&file, SWEEP).expect("a file");
    let done = run(&mut linerate(&words), Duration::from_secs(120)).expect(0);
    assert!(
        done.error.contains("of which are there already"),
        "{}",
        done.error
    );
    // Two cells are measured three times, and two cannot be: the path passes 1500 bytes.
    assert!(done.out.contains("impossible: MTU 9000"), "{}", done.out);
    let results = folder.file("small");
    let shown = run(
        &mut linerate(&format!("sweep --show {}", results.display())),
        LONG,
    )
    .expect(0);
    assert_eq!(shown.out, done.out);
    let csv = run(
        &mut linerate(&format!("sweep --csv --show {}", results.display())),
        LONG,
    )
    .expect(0);
    let counted = csv
        .out
        .lines()
        .filter(|line| line.contains(",yes,"))
        .count();
    assert_eq!(counted, 6, "{}", csv.out);
    let chart = std::fs::read_to_string(results.join("chart.svg")).expect("a chart");
    assert_eq!(chart.matches(">×<").count(), 2);
    let again = run(&mut linerate(&words), LONG).expect(0);
    assert_eq!(again.out, done.out);
}

#[test]
fn what_cannot_be_proved_is_refused_before_anything_is_done() {
    let folder = Folder::new();
    let good = folder.with("good.toml", SMALL);
    let bad = folder.with("bad.toml", "[sysctl]\n\n[interface.eth0]\nmut = 9000\n");
    let [good, bad] = [good, bad].map(|file| file.display().to_string());
    for (words, code, said) in [
        (format!("prove --after {good}"), 2, "--peer"),
        (
            format!("prove --after {bad} --path"),
            5,
            "bad.toml:4: unknown key 'mut' in an interface: did you mean 'mtu'?",
        ),
        (
            format!("prove --before {good} --after {good} --path"),
            2,
            "nothing to compare",
        ),
        (
            format!("prove --after {good} --peer h --rtt 6ms"),
            2,
            "add --path",
        ),
        (
            format!("prove --after {good} --path -- --rfc6349"),
            2,
            "plain tests",
        ),
        (
            format!("prove --after {good} --path -- -o x"),
            2,
            "the lab sets -o itself",
        ),
        (
            format!("prove --after {good} --path --min-effect 0%"),
            2,
            "not a percentage",
        ),
        (
            format!("prove --after {good} --path --rtt soon"),
            2,
            "--rtt soon",
        ),
        ("sweep no-such-file.toml".to_owned(), 5, "no-such-file.toml"),
        (
            format!("sweep --show {}", folder.path().display()),
            5,
            "contains no sweep",
        ),
    ] {
        let done = run(&mut linerate(&words), LONG).expect(code);
        assert!(done.error.contains(said), "{words}\n{}", done.error);
    }
}

/// The value of a setting of a host.
fn value(host: &Host, path: &str) -> String {
    let output = host.command("cat").arg(path).output().expect("cat runs");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const WMEM: &str = "/proc/sys/net/ipv4/tcp_wmem";
const OLD: &str = "4096 16384 4194304";

/// Two hosts, the first with a value of its own to come back to.
fn two_hosts(what: &str) -> Option<Hosts> {
    let hosts = Hosts::new(what)?;
    if let Err(why) = hosts.a.sysctl("net.ipv4.tcp_wmem", &format!("'{OLD}'")) {
        skipped(Need::NamespaceSysctls, what, &why);
        return None;
    }
    Some(hosts)
}

#[test]
fn between_hosts_every_setting_is_as_it_was_afterwards() {
    let _alone = alone();
    let Some(hosts) = two_hosts("settings restored") else {
        return;
    };
    let server = hosts.b.serve("");
    let folder = Folder::new();
    let after = folder.with(
        "after.toml",
        format!("{SMALL}[interface.a0]\nmtu = 1400\ntxqueuelen = 500\n"),
    );
    let words = format!(
        "prove --after {} --state {} --peer {B} -p {} --pairs 3 -t 0.5 --json",
        after.display(),
        folder.file("state").display(),
        server.port
    );
    let done = run(&mut hosts.a.linerate(&words), LONG);
    assert!([Some(0), Some(8)].contains(&done.code()), "{}", done.error);
    let proof = &done.json()["proof"];
    let runs = proof["runs"].as_array().expect("runs");
    for run in runs {
        let mtu = if run["side"] == "after" { 1400 } else { 1500 };
        assert_eq!(run["path_mtu_bytes"], mtu, "{run}");
    }
    assert_eq!(value(&hosts.a, WMEM), OLD);
    let link = hosts.a.command("ip").args(["link", "show", "a0"]).output();
    let link = String::from_utf8_lossy(&link.expect("ip runs").stdout).into_owned();
    assert!(
        link.contains("mtu 1500") && link.contains("qlen 1000"),
        "{link}"
    );
}

#[test]
fn stopped_or_killed_in_the_middle_settings_come_back() {
    let _alone = alone();
    let Some(hosts) = two_hosts("settings restored after a kill") else {
        return;
    };
    let server = hosts.b.serve("");
    let folder = Folder::new();
    let after = folder.with("after.toml", SMALL);
    let words = format!(
        "prove --after {} --state {} --peer {B} -p {} --pairs 20 -t 5",
        after.display(),
        folder.file("state").display(),
        server.port
    );
    for signal in ["INT", "KILL"] {
        let mut running = start(&mut hosts.a.linerate(&words));
        let set = wait_until(LONG, || {
            value(&hosts.a, WMEM) == "4096 16384 65536" || running.ended()
        });
        assert!(set && !running.ended(), "{}", running.error());
        running.signal(signal);
        let done = running.wait(LONG);
        assert_ne!(done.code(), Some(0));
        let back = wait_until(LONG, || value(&hosts.a, WMEM) == OLD);
        assert!(back, "after {signal}: {}", value(&hosts.a, WMEM));
    }
}

/// What [`SMALL`] sets.
const NEW: &str = "4096 16384 65536";
const OTHER: &str = "[sysctl]\n\"net.ipv4.tcp_wmem\" = [4096, 16384, 131072]\n";

#[test]
fn while_a_change_waits_to_be_confirmed_nothing_is_measured_over_it() {
    let _alone = alone();
    let what = "a comparison while a change waits";
    let Some(hosts) = two_hosts(what) else {
        return;
    };
    let folder = Folder::new();
    let state = folder.file("state");
    let change = folder.with("change.toml", SMALL);
    let after = folder.with("after.toml", OTHER);
    let sweep = folder.with(
        "wmem.toml",
        format!(
            "name = \"wmem\"\npeer = \"{B}\"\ntest = \"-t 1\"\nrepetitions = 1\n[[factor]]\nname = \"wmem\"\n\
             vary = \"sysctl.net.ipv4.tcp_wmem\"\nlevels = [\"4096 16384 131072\", \"4096 16384 262144\"]\n"
        ),
    );
    let [state, change, after, sweep] =
        [state, change, after, sweep].map(|path| path.display().to_string());
    let linerate = |words: String| run(&mut hosts.a.linerate(&words), LONG);
    linerate(format!(
        "tune apply {change} --state {state} --confirm-within 10m"
    ))
    .expect(0);
    assert_eq!(value(&hosts.a, WMEM), NEW);
    for words in [
        format!("prove --after {after} --state {state} --peer {B}"),
        format!("sweep {sweep} --state {state}"),
    ] {
        let refused = linerate(words).expect(1);
        assert!(
            refused.error.contains("first: linerate tune confirm"),
            "{}",
            refused.error
        );
        assert_eq!(value(&hosts.a, WMEM), NEW);
    }
    linerate(format!("tune revert --state {state}")).expect(0);
    assert_eq!(value(&hosts.a, WMEM), OLD);
}

/// The process that restores what `parent` changes, where that is killed.
fn guard_of(parent: u32) -> Option<u32> {
    let parent = format!("PPid:\t{parent}\n");
    let ours = |id: &u32| {
        let file =
            |name: &str| std::fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
        file("status").contains(&parent) && file("cmdline").contains("settings-guard")
    };
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.find(ours)
}

fn signal(process: u32, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{name} to {process}"
    );
}

#[test]
fn nobody_changes_settings_while_runs_are_made_nor_before_old_values_are_back() {
    let _alone = alone();
    let Some(hosts) = two_hosts("the lock of settings") else {
        return;
    };
    let server = hosts.b.serve("");
    let folder = Folder::new();
    let state = folder.file("state").display().to_string();
    let [test, other] = [("test.toml", SMALL), ("other.toml", OTHER)]
        .map(|(name, text)| folder.with(name, text).display().to_string());
    let apply = || {
        let words = format!("tune apply {other} --state {state} --yes");
        run(&mut hosts.a.linerate(&words), LONG)
    };
    let port = server.port;
    for words in [
        format!("prove --after {test} --state {state} --peer {B} -p {port} --pairs 20 -t 5"),
        format!("tune apply {test} --state {state} --prove {B} --pairs 20 -- -p {port} -t 5"),
    ] {
        let mut running = start(&mut hosts.a.linerate(&words));
        let set = wait_until(LONG, || value(&hosts.a, WMEM) == NEW || running.ended());
        assert!(set && !running.ended(), "{}", running.error());
        let refused = apply().expect(1);
        assert!(
            refused.error.contains("another linerate"),
            "{}",
            refused.error
        );
        let guard = guard_of(running.pid()).expect("a guard");
        // As one whose driver takes long to take the old values.
        signal(guard, "STOP");
        running.signal("KILL");
        assert!(wait_until(LONG, || running.ended()));
        let refused = apply();
        let left = value(&hosts.a, WMEM);
        signal(guard, "CONT");
        assert_eq!(left, NEW, "{words}");
        let refused = refused.expect(1);
        assert!(
            refused.error.contains("another linerate"),
            "{}",
            refused.error
        );
        let back = wait_until(LONG, || value(&hosts.a, WMEM) == OLD);
        assert!(back, "{words}: {}", value(&hosts.a, WMEM));
        let free = wait_until(LONG, || apply().code() == Some(0));
        assert!(free, "{words}");
        run(
            &mut hosts.a.linerate(&format!("tune revert --state {state}")),
            LONG,
        )
        .expect(0);
        assert_eq!(value(&hosts.a, WMEM), OLD);
    }
}

/// Frames of 314 bytes carry 248, those of 1514 carry 1448: 21 % more over a bucket that counts frames.
const SMALL_PACKETS: &str = "[interface.a0]\nmtu = 300\n";
const LARGE_PACKETS: &str = "[interface.a0]\nmtu = 1500\n";

#[test]
fn an_apply_with_a_proof_applies_a_gain_and_nothing_else() {
    measured(alone, || {
        let Some(hosts) = two_hosts("an apply with a proof") else {
            return;
        };
        let a = &hosts.a;
        // Packets below 1280 bytes are no fair test of a host with IPv6; where there is none, nothing has to be switched off.
        drop(a.sysctl("net.ipv6.conf.all.disable_ipv6", "1"));
        // A queue longer than the window loses nothing, and a bucket that fills for 20 ms keeps the rate where
        // others have the CPU for less: what is left to vary is half a percent.
        a.tc("qdisc add dev a0 root tbf rate 40mbit burst 100kb latency 200ms");
        let server = hosts.b.serve("");
        let folder = Folder::new();
        let state = folder.file("state");
        let apply = |text: &str, more: &str| {
            let profile = folder.with("profile.toml", text);
            let words = format!(
                "tune apply {} --state {} --prove {B} --pairs 6 --allow link-flap {more} -- -p {} -t 1 -w 128K",
                profile.display(),
                state.display(),
                server.port
            );
            run(&mut a.linerate(&words), Duration::from_secs(120))
        };
        let mtu = || {
            let output = a.command("ip").args(["link", "show", "a0"]).output();
            let text = String::from_utf8_lossy(&output.expect("ip runs").stdout).into_owned();
            let mut words = text.split_whitespace().skip_while(|word| *word != "mtu");
            words.nth(1).map(str::to_owned).expect("an MTU")
        };
        let applied = || std::fs::read_dir(&state).is_ok_and(|names| names.flatten().count() > 1);

        let loss = apply(SMALL_PACKETS, "").expect(7);
        assert!(loss.error.contains("it shows a loss"), "{}", loss.error);
        assert!(loss.out.contains("After against before: −"), "{}", loss.out);
        assert_eq!((mtu().as_str(), applied()), ("1500", false));

        let none = apply("[interface.a0]\ntxqueuelen = 900\n", "").expect(1);
        assert!(none.error.contains("no gain was shown"), "{}", none.error);
        assert!(!applied());

        a.ip("link set a0 mtu 300");
        let gain = apply(LARGE_PACKETS, "--json --yes").expect(0).json();
        assert_eq!(gain["proof"]["verdict"], "better", "{gain}");
        assert_eq!(gain["set"]["state"], "confirmed", "{gain}");
        assert_eq!(mtu(), "1500");
        let revert = format!("tune revert --state {}", state.display());
        run(&mut a.linerate(&revert), LONG).expect(0);
        assert_eq!(mtu(), "300");
    });
}
