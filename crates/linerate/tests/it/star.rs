//! `linerate lab` with stars: many hosts, switches and trunks.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use super::harness::{
    Done, Folder, LINERATE, LONG, alone, beside, linerate, measured, number, run, say, start,
    start_with, wait_until,
};
use super::lab::{GONE, Machine, alive, children, lab, moments, noted, number_or_float};

/// Two racks of two hosts; what `more` says comes behind.
fn racks(more: &str) -> String {
    format!(
        "name = \"racks\"\nabout = \"two racks\"\n[star]\nrate = \"40M\"\n\
         [[star.switch]]\nname = \"rack1\"\nhosts = \"node[1-2]\"\n\
         [[star.switch]]\nname = \"rack2\"\nhosts = \"node[3-4]\"\n\
         [[star.trunk]]\nbetween = [\"rack1\", \"rack2\"]\nrate = \"80M\"\nmembers = 4\n{more}"
    )
}

/// A star that is up, and goes down with this.
pub(super) struct Up {
    pub(super) folder: Folder,
    hosts: Value,
    holder: u64,
}

impl Up {
    /// `None`, with a word, where this machine cannot have one.
    pub(super) fn new(what: &str, text: &str) -> Option<Self> {
        let folder = Folder::new();
        let file = folder.with("star.toml", text);
        let file = file.to_str().unwrap();
        lab(what, &mut noted(&folder, &["up", "x", "--scenario", file]))?.expect(0);
        let list = run(&mut noted(&folder, &["list", "--json"]), LONG)
            .expect(0)
            .json();
        Some(Self {
            holder: number(&list, "/0/pid"),
            hosts: list[0]["hosts"].clone(),
            folder,
        })
    }

    pub(super) fn exec(&self, host: &str, command: &[&str]) -> Command {
        let mut words = vec!["exec", "x", host, "--"];
        words.extend(command);
        noted(&self.folder, &words)
    }

    fn address(&self, host: &str) -> String {
        self.address_of(host, "ipv4")
    }

    fn address_of(&self, host: &str, family: &str) -> String {
        let hosts = self.hosts.as_array().unwrap();
        let found = hosts.iter().find(|one| one["name"] == host).unwrap();
        found[family].as_str().unwrap().to_owned()
    }

    /// A test from one host to another; its document.
    fn test(&self, from: &str, to: &str, options: &[&str]) -> Value {
        self.test_at(from, to, "ipv4", options)
    }

    fn test_at(&self, from: &str, to: &str, family: &str, options: &[&str]) -> Value {
        let serve = [LINERATE, "serve", "--one-off"];
        let server = start(&mut self.exec(to, &serve));
        assert!(wait_until(LONG, || listens(&server)), "{}", server.error());
        let address = self.address_of(to, family);
        let mut words = vec![LINERATE, "test", &address, "--json"];
        words.extend(options);
        let done = run(&mut self.exec(from, &words), LONG);
        server.signal("TERM");
        let told = done.expect(0).json();
        server.wait(LONG);
        told
    }

    /// Bytes that each of the interfaces of a switch whose names begin so has sent.
    fn sent(&self, switch: &str, prefix: &str) -> Vec<u64> {
        let done = run(&mut self.exec(switch, &["cat", "/proc/net/dev"]), LONG).expect(0);
        let lines = done.out.lines().map(str::trim_start);
        let ours = lines.filter(|line| line.starts_with(prefix));
        let sent = |line: &str| line.split_whitespace().nth(9)?.parse().ok();
        ours.map(|line| sent(line).unwrap()).collect()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(noted(&self.folder, &["down", "--all"]).output());
    }
}

/// Whether the server of a star's host listens: one of its descendants has said so.
fn listens(server: &super::harness::Running) -> bool {
    server.out().contains("istening") || server.error().contains("istening")
}

fn goodput(told: &Value) -> f64 {
    number_or_float(told, "/summary/goodput_bps")
}

#[test]
fn a_star_stays_up_for_commands_and_goes_down() {
    let _beside = beside();
    let Some(star) = Up::new("a star", &racks("[expect]\nkind = \"none\"\n")) else {
        return;
    };
    let list = run(&mut noted(&star.folder, &["list", "--json"]), LONG)
        .expect(0)
        .json();
    assert_eq!(list[0]["hosts"][2]["switch"], "rack2");
    assert_eq!(list[0]["switches"][1]["name"], "rack2");
    assert_eq!(list[0]["expect"]["kind"], Value::Null);
    let text = run(&mut noted(&star.folder, &["list"]), LONG).expect(0).out;
    assert!(text.contains(&star.address("node3")), "{text}");
    let groups = run(&mut noted(&star.folder, &["list", "--groups", "x"]), LONG)
        .expect(0)
        .out;
    assert_eq!(groups, "rack1: node[1-2]\nrack2: node[3-4]\n");
    // A program learns where it is.
    let print = [
        "sh",
        "-c",
        "echo $LINERATE_LAB $LINERATE_LAB_HOST $LINERATE_LAB_ADDRESS",
    ];
    let told = run(&mut star.exec("node3", &print), LONG).expect(0).out;
    assert_eq!(told, format!("x node3 {}\n", star.address("node3")));
    let nobody = run(&mut star.exec("node5", &["true"]), LONG).expect(2);
    assert!(nobody.error.contains("node[1-4]"), "{}", nobody.error);
    let seven = run(&mut star.exec("node1", &["sh", "-c", "exit 7"]), LONG).expect(7);
    assert_eq!(seven.error, "");
    // A path's commands do not take it.
    let file = star.folder.file("star.toml");
    let refused = run(&mut linerate(&format!("lab run {}", file.display())), LONG).expect(2);
    assert!(refused.error.contains("lab up"), "{}", refused.error);
    let grade = format!("lab grade {}", star.folder.path().display());
    let refused = run(&mut linerate(&grade), LONG).expect(2);
    assert!(refused.error.contains("left out"), "{}", refused.error);
    // What runs ends with it, on hosts and switches.
    let sleeping = start(&mut star.exec("node4", &["sleep", "60"]));
    assert!(wait_until(LONG, || children(sleeping.pid()).len() == 1));
    let left = "sleep 600 >/dev/null 2>&1 & echo $!";
    let left = run(&mut star.exec("rack1", &["sh", "-c", left]), LONG)
        .expect(0)
        .out;
    let left: u64 = left.trim().parse().unwrap();
    let down = run(&mut noted(&star.folder, &["down", "x"]), LONG).expect(0);
    assert!(down.out.contains("x is down"), "{}", down.out);
    let slept = sleeping.wait(LONG).expect(3);
    assert!(slept.error.contains("taken down"), "{}", slept.error);
    assert!(wait_until(GONE, || !alive(star.holder) && !alive(left)));
    assert!(!star.folder.file("linerate-lab").exists());
}

#[test]
fn bytes_pass_through_a_host_untouched() {
    let _beside = beside();
    let Some(star) = Up::new("standard streams of a host", &racks("")) else {
        return;
    };
    let bytes: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let file = star.folder.with("bytes", &bytes);
    let copy: PathBuf = star.folder.file("copy");
    let mut cat = star.exec("node2", &["cat"]);
    cat.stdin(std::fs::File::open(file).unwrap());
    cat.stdout(std::fs::File::create(&copy).unwrap());
    assert!(cat.status().unwrap().success());
    assert!(std::fs::read(copy).unwrap() == bytes);
    // The end of its input reaches the command.
    let mut cat = start_with(&mut star.exec("node2", &["cat"]), Stdio::null());
    assert!(wait_until(LONG, || cat.ended()));
}

/// A link never carries more than its rate, and all of it in one of three tests: what else runs on this machine may hold
/// a test back.
fn holds(what: &str, share: impl Fn() -> f64) {
    let full = |attempt: u32| {
        let share = share();
        assert!(share <= 1.01, "{what}: {share}");
        if share < 0.95 {
            say(&format!(
                "{what}: {share:.3} of its rate in attempt {attempt}"
            ));
        }
        share >= 0.95
    };
    assert!((1..=3).any(full), "{what}: it never carried its rate");
}

#[test]
fn links_have_the_rates_of_their_file() {
    let more = "[[star.host]]\nhosts = \"node2\"\nrate_out = \"10M\"\n\
                [[star.host]]\nhosts = \"node4\"\nrate_in = \"15M\"\n";
    measured(alone, || {
        let Some(star) = Up::new("rates of links", &racks(more)) else {
            return;
        };
        // 1448 bytes of payload in 1538 on the wire.
        for (from, to, rate) in [
            ("node1", "node3", 40.0),
            ("node1", "node2", 40.0),
            ("node2", "node3", 10.0),
            ("node3", "node4", 15.0),
            ("node4", "node1", 40.0),
        ] {
            let expected = rate * 1e6 * 1448.0 / 1538.0;
            holds(&format!("{from} to {to}"), || {
                goodput(&star.test(from, to, &["-t", "2"])) / expected
            });
        }
        // IPv6 takes the same links, with 20 bytes more in each packet.
        holds("IPv6", || {
            let told = star.test_at("node1", "node3", "ipv6", &["-t", "2"]);
            goodput(&told) / (40e6 * 1428.0 / 1538.0)
        });
        assert!(star.sent("rack1", "trunk1-").iter().sum::<u64>() > 1_000_000);
    });
}

#[test]
fn the_ports_of_a_connection_choose_the_member_of_a_trunk() {
    let more = "[[star.trunk.member]]\nnumber = 3\nrate = \"2M\"\n";
    measured(alone, || {
        let Some(star) = Up::new("members of a trunk", &racks(more)) else {
            return;
        };
        // One port is fast and another slow, and each of them again the same.
        let once = |port: u16| {
            let port = port.to_string();
            goodput(&star.test("node1", "node3", &["-t", "1", "--cport", &port]))
        };
        // What else runs on this machine may hold a test back on a fast member.
        let rate = |port: u16| {
            let mut tries = (0..3).map(|_| once(port));
            let between = |rate: &f64| (3e6..30e6).contains(rate);
            tries.find(|rate| !between(rate)).unwrap_or(10e6)
        };
        let (mut slow, mut fast) = (None, None);
        for port in 40_000..40_040 {
            let rate = rate(port);
            assert!(!(3e6..30e6).contains(&rate), "{port}: {rate}");
            if rate < 3e6 {
                slow.get_or_insert(port);
            } else {
                fast.get_or_insert(port);
            }
            if slow.is_some() && fast.is_some() {
                break;
            }
        }
        let (slow, fast) = (slow.unwrap(), fast.unwrap());
        let again = [rate(slow), rate(fast)];
        assert!(
            again[0] < 3e6 && again[1] > 30e6,
            "{slow}, {fast}: {again:?}"
        );
    });
}

#[test]
fn many_connections_use_all_members_of_a_trunk() {
    let _beside = beside();
    let Some(star) = Up::new("all members of a trunk", &racks("")) else {
        return;
    };
    star.test("node1", "node3", &["-t", "1", "-P", "64"]);
    for switch in ["rack1", "rack2"] {
        let sent = star.sent(switch, "trunk1-");
        assert_eq!(sent.len(), 4);
        assert!(sent.iter().all(|bytes| *bytes > 1000), "{switch}: {sent:?}");
    }
}

#[test]
fn a_dead_host_is_not_reached() {
    let _beside = beside();
    let more = "[[star.host]]\nhosts = \"node2\"\ndown = \"link\"\n\
                [[star.host]]\nhosts = \"node3\"\ndown = \"host\"\n";
    let Some(star) = Up::new("a dead host", &racks(more)) else {
        return;
    };
    let test = |from: &str, to: &str| {
        let address = star.address(to);
        let words = [
            LINERATE,
            "test",
            &address,
            "-t",
            "1",
            "--connect-timeout",
            "1000",
        ];
        run(&mut star.exec(from, &words), LONG)
    };
    for (from, to) in [("node1", "node2"), ("node1", "node3"), ("node2", "node1")] {
        let done = test(from, to);
        assert_ne!(done.code(), Some(0), "{from} to {to}");
        assert!(done.error.contains("cannot connect"), "{}", done.error);
    }
    run(&mut star.exec("node2", &["true"]), LONG).expect(0);
    let refused = run(&mut star.exec("node3", &["true"]), LONG).expect(3);
    assert!(
        refused.error.contains("node3 of x is down"),
        "{}",
        refused.error
    );
}

#[test]
fn a_switch_that_delays_makes_round_trips_long() {
    let more = "[[star.host]]\nhosts = \"node[1-4]\"\nrate = \"20M\"\n";
    let text = racks(more).replace(
        "hosts = \"node[3-4]\"",
        "hosts = \"node[3-4]\"\ndelay = \"5ms\"",
    );
    measured(alone, || {
        let Some(star) = Up::new("a delay", &text) else {
            return;
        };
        for (from, to, least, most) in [
            ("node1", "node3", 5_000.0, 10_000.0),
            ("node4", "node3", 10_000.0, 15_000.0),
            ("node1", "node2", 0.0, 5_000.0),
        ] {
            let told = star.test(from, to, &["-t", "1"]);
            let rtt = number_or_float(&told, "/summary/min_rtt_us");
            assert!((least..most).contains(&rtt), "{from} to {to}: {rtt} µs");
        }
    });
}

#[test]
fn a_star_that_is_killed_leaves_nothing() {
    let _alone = alone();
    let host = Machine::now();
    let Some(star) = Up::new("a killed star", &racks("")) else {
        return;
    };
    let mut running = start(&mut star.exec("node1", &["sleep", "60"]));
    assert!(wait_until(LONG, || children(running.pid()).len() == 1));
    let sleep = u64::from(children(running.pid())[0]);
    // The kernel ends the command when the one who waits for it is killed.
    running.kill();
    assert!(wait_until(GONE, || !alive(sleep)));
    let running = start(&mut star.exec("node3", &["sleep", "60"]));
    assert!(wait_until(LONG, || children(running.pid()).len() == 1));
    let sleep = u64::from(children(running.pid())[0]);
    kill(star.holder);
    let done = running.wait(LONG).expect(3);
    assert!(done.error.contains("taken down"), "{}", done.error);
    assert!(wait_until(GONE, || !alive(star.holder) && !alive(sleep)));
    let list = run(&mut noted(&star.folder, &["list", "--json"]), LONG)
        .expect(0)
        .json();
    assert_eq!(list, serde_json::json!([]));
    host.assert_untouched();
}

fn kill(pid: u64) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -9 {pid}")])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn a_command_ends_with_whoever_started_it() {
    let _beside = beside();
    let what = "a command that ends with its caller";
    if super::harness::lacks_programs(what, &["setpriv"]) {
        return;
    }
    let Some(star) = Up::new(what, &racks("")) else {
        return;
    };
    // As a mesh starts it: with the kernel's promise to kill it when its parent ends. Entering a user namespace is a
    // change of rights, at which the kernel can forget that.
    let exec = star.exec("node1", &["sleep", "60"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "setpriv --pdeathsig KILL \"$@\" & wait", "sh"]);
    shell.arg(exec.get_program()).args(exec.get_args());
    for (name, value) in exec.get_envs() {
        shell.env(name, value.unwrap());
    }
    let mut shell = start(&mut shell);
    let mut seen = Vec::new();
    let deep = wait_until(LONG, || {
        let execs = children(shell.pid());
        seen = execs.iter().flat_map(|pid| children(*pid)).collect();
        seen.iter().any(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n")
        })
    });
    assert!(deep);
    shell.kill();
    assert!(wait_until(GONE, || seen
        .iter()
        .all(|pid| !alive(u64::from(*pid)))));
}

#[test]
fn a_star_whose_making_is_killed_is_up_or_not_there() {
    let _beside = beside();
    if Up::new("a star that is killed while it comes up", &racks("")).is_none() {
        return;
    }
    for moment in moments(5) {
        let folder = Folder::new();
        let file = folder.with("star.toml", racks(""));
        let file = file.to_str().unwrap();
        let mut up = start(&mut noted(&folder, &["up", "x", "--scenario", file]));
        // A moment within the time that it takes.
        let moment = moment / 10;
        std::thread::sleep(moment);
        let holders = children(up.pid());
        up.kill();
        // Whatever came up can be taken down, and its holder ends.
        let settled = wait_until(LONG, || {
            let down = run(&mut noted(&folder, &["down", "--all"]), LONG);
            down.code() == Some(0) && holders.iter().all(|pid| !alive(u64::from(*pid)))
        });
        assert!(settled, "killed after {moment:?}: {holders:?}");
    }
}

#[test]
fn what_is_wrong_with_a_star_is_named() {
    let _beside = beside();
    let folder = Folder::new();
    let up = |text: &str| -> Done {
        let file = folder.with("a.toml", text);
        let words = ["up", "x", "--scenario", file.to_str().unwrap()];
        run(&mut noted(&folder, &words), LONG)
    };
    for (from, to, message) in [
        (
            "node[3-4]",
            "node[2-4]",
            "a.toml:10: hosts = \"node[2-4]\": there is a node2 already",
        ),
        (
            "rate = \"40M\"",
            "rate = \"40Mb\"",
            "a.toml:4: rate = \"40Mb\": ",
        ),
        ("members", "member", "a.toml:14: member = 4: not a list"),
        (
            "\"rack2\"]",
            "\"rack3\"]",
            "a.toml:12: between = \"rack3\": no such switch",
        ),
    ] {
        let done = up(&racks("").replace(from, to)).expect(2);
        assert!(done.error.contains(message), "{}", done.error);
    }
    let wrong = racks("[[star.host]]\nhosts = \"node1\"\ncongestion = \"no-such\"\n");
    let done = up(&wrong);
    if super::harness::lacks_a_lab("a wrong congestion control on a star", &done.error) {
        return skipped(Need::UserNamespaces, "a wrong star", done.error.trim());
    }
    let done = done.expect(3);
    assert!(
        done.error.contains("no-such") && done.error.contains("node1"),
        "{}",
        done.error
    );
    let list = run(&mut noted(&folder, &["list", "--json"]), LONG)
        .expect(0)
        .json();
    assert_eq!(list, serde_json::json!([]));
    let groups = run(&mut noted(&folder, &["list", "--groups", "x"]), LONG).expect(2);
    assert!(groups.error.contains("no path named x"), "{}", groups.error);
    assert!(wait_until(Duration::from_secs(1), || {
        !folder.file("linerate-lab/x.json").exists()
    }));
}
