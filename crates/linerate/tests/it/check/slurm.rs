//! A real slurmctld with three slurmds on one machine: what `linerate check --slurm` tells it, and what it leaves alone.
//!
//! All of it runs in network, mount and process namespaces, its files in memory: all ends with the test.

use std::fs;
use std::net::TcpStream;
use std::process::Command;

use linerate_testing::{Need, in_namespaces, skipped};
use serde_json::Value;

use crate::harness::{
    Done, LINERATE, LONG, Running, beside, lacks_programs, run, say, start, wait_until,
};

const APART: [&str; 6] = [
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];
/// The controller's address is on an interface that is not loopback: getaddrinfo with `AI_ADDRCONFIG` finds none otherwise.
const SETUP: &str = "ip link set lo up
ip link add s0 type veth peer name s1
ip address add 192.0.2.1/30 dev s0
ip link set s0 up
ip link set s1 up
mount -t tmpfs tmpfs /run
mkdir -p /etc/slurm
mount -t tmpfs tmpfs /etc/slurm
mkdir -p /run/munge /run/slurm /run/spool /run/node /run/mount
head -c 1024 /dev/urandom > /run/munge/key
chmod 400 /run/munge/key
chmod 755 /run/munge
for n in n1 n2 n3; do echo 0 > /run/node/$n; mkdir -p /run/spool/$n; done
";
const CONF: &str = "ClusterName=lab
SlurmctldHost=ctl(192.0.2.1)
SlurmUser=root
AuthType=auth/munge
StateSaveLocation=/run/spool
SlurmdSpoolDir=/run/spool/%n
SlurmctldPidFile=/run/slurm/ctl.pid
SlurmdPidFile=/run/slurm/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=1
HealthCheckProgram=/run/health-check
HealthCheckInterval=3
HealthCheckNodeState=ANY
NodeName=n1 NodeHostname=n1 NodeAddr=192.0.2.1 Port=7001 CPUs=1 RealMemory=100
NodeName=n2 NodeHostname=n2 NodeAddr=192.0.2.1 Port=7002 CPUs=1 RealMemory=100
NodeName=n3 NodeHostname=n3 NodeAddr=192.0.2.1 Port=7003 CPUs=1 RealMemory=100
PartitionName=main Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP
";
/// What Slurm starts: as packaging/slurm/health-check, with the binary under test, and only while a test wants it.
const HEALTH_CHECK: &str = "#!/bin/sh\n[ -e /run/health-check-on ] || exit 0\nexec ";
/// Its verdict is a file's: 0 well, 2 failed, 3 unknown.
const CHECKS: &str = "[[command]]
name = \"probe\"
run = [\"/bin/sh\", \"-c\", \"exit $(cat /run/node/$SLURMD_NODENAME)\"]
[slurm]
wait = \"100ms\"
";
const CONFIG: &str = "/run/check.toml";
const NODES: [&str; 3] = ["n1", "n2", "n3"];
const WORDS: [&str; 8] = [
    "check",
    "--slurm",
    "--config",
    CONFIG,
    "--run-folder",
    "/run/memory",
    "--state-folder",
    "/run/lasting",
];

/// A scenario with its name.
type Named<F> = (&'static str, F);

struct Cluster {
    _munged: Running,
    controller: Running,
    _nodes: Vec<Running>,
}

fn words(words: &str) -> impl Iterator<Item = &str> {
    words.split_whitespace()
}

/// A program in a host of this name.
fn on(host: &str, command: &str) -> Running {
    let script = format!("hostname {host}; exec {command}");
    start(Command::new("unshare").args(["--uts", "sh", "-c", &script]))
}

impl Cluster {
    fn new() -> Self {
        fs::write("/etc/slurm/slurm.conf", CONF).unwrap();
        fs::write(
            "/run/health-check",
            format!("{HEALTH_CHECK}{LINERATE} {}\n", WORDS.join(" ")),
        )
        .unwrap();
        run(
            Command::new("chmod").args(["755", "/run/health-check"]),
            LONG,
        )
        .expect(0);
        fs::write(CONFIG, CHECKS).unwrap();
        let munged = "--force --foreground --key-file /run/munge/key --socket /run/munge/munge.socket.2 \
            --pid-file /run/munge/pid --log-file /run/munge/log --seed-file /run/munge/seed";
        let munged = start(Command::new("munged").args(words(munged)));
        let answers = || run(Command::new("munge").arg("--no-input"), LONG).code() == Some(0);
        assert!(wait_until(LONG, answers), "{}", munged.error());
        let nodes = NODES.iter().map(|node| on(node, "slurmd -D")).collect();
        // A controller that finds nobody at their ports marks them as not responding, for a while.
        let all_listen = || {
            [7001, 7002, 7003]
                .iter()
                .all(|port| TcpStream::connect(("192.0.2.1", *port)).is_ok())
        };
        assert!(wait_until(LONG, all_listen));
        let cluster = Self {
            _munged: munged,
            controller: on("ctl", "slurmctld -D"),
            _nodes: nodes,
        };
        cluster.wait_for("n1 n2 n3", "idle");
        cluster
    }

    /// A node as `sinfo` shows it: state, then reason.
    fn node(node: &str) -> (String, String) {
        let done = sinfo(&["-N", "-n", node, "-o", "%T %E"]).expect(0);
        let line = done.out.trim();
        let (state, reason) = line.split_once(' ').unwrap_or((line, ""));
        (state.to_owned(), reason.to_owned())
    }

    #[track_caller]
    fn wait_for(&self, nodes: &str, state: &str) {
        for node in words(nodes) {
            let is_there = || {
                let done = sinfo(&["-N", "-n", node, "-o", "%T"]);
                done.code() == Some(0) && done.out.trim() == state
            };
            assert!(
                wait_until(LONG, is_there),
                "{node} is not {state}: {:?}\n{}",
                sinfo(&["-N", "-o", "%N %T %E"]),
                self.controller.error()
            );
        }
    }

    #[track_caller]
    fn assert_node(&self, node: &str, state: &str, reason: &str) {
        self.wait_for(node, state);
        let (found, why) = Cluster::node(node);
        assert!(why.starts_with(reason), "{node}: {found} {why}");
    }

    /// All nodes well and idle, nothing remembered.
    #[track_caller]
    fn reset(&self) {
        fs::write(CONFIG, CHECKS).unwrap();
        for folder in ["/run/memory", "/run/lasting"] {
            drop(fs::remove_dir_all(folder));
        }
        for node in NODES {
            verdict(node, 0);
            if Cluster::node(node).0.starts_with("drain") {
                update(node, &["State=RESUME"]);
            }
            update(node, &["Comment="]);
        }
        self.wait_for("n1 n2 n3", "idle");
    }
}

fn sinfo(words: &[&str]) -> Done {
    run(Command::new("sinfo").arg("--noheader").args(words), LONG)
}

#[track_caller]
fn update(node: &str, words: &[&str]) {
    let node = format!("NodeName={node}");
    run(
        Command::new("scontrol").args(["update", &node]).args(words),
        LONG,
    )
    .expect(0);
}

fn comment(node: &str) -> String {
    let done = run(Command::new("scontrol").args(["show", "node", node]), LONG).expect(0);
    let mut lines = done.out.lines().map(str::trim);
    let text = lines.find_map(|line| line.strip_prefix("Comment="));
    text.unwrap_or_default().to_owned()
}

fn verdict(node: &str, code: u8) {
    fs::write(format!("/run/node/{node}"), code.to_string()).unwrap();
}

/// A run as Slurm starts it: nothing in its environment but the node's name.
fn health_check(node: &str) -> Command {
    let mut command = Command::new(LINERATE);
    command.args(WORDS).arg("--json");
    command.env_clear().env("SLURMD_NODENAME", node);
    command
}

/// What a run did, or why it did nothing.
#[track_caller]
fn check(node: &str) -> String {
    act(&run(&mut health_check(node), LONG).expect(0).json())
}

fn act(document: &Value) -> String {
    let controller = &document["controller"];
    let act = &controller["act"];
    let words = [
        &act["action"],
        &act["why"],
        &act["held"]["by"],
        &controller["trouble"],
    ];
    let words = words.iter().filter_map(|word| word.as_str());
    words.collect::<Vec<_>>().join(" ")
}

/// Runs until the node is drained; which run that was.
#[track_caller]
fn drained_after(node: &str) -> usize {
    for number in 1..=3 {
        if check(node) == "drain" {
            return number;
        }
    }
    panic!("{node} was not drained by three runs");
}

/// A check that fails drains at the second run; one that is well again for three runs resumes.
fn drain_and_resume(cluster: &Cluster) {
    verdict("n1", 2);
    assert_eq!(check("n1"), "nothing not-often-enough");
    cluster.assert_node("n1", "idle", "none");
    assert_eq!(check("n1"), "drain");
    cluster.assert_node("n1", "drained", "LR:probe it ended with 2");
    assert_eq!(check("n1"), "nothing still-failing");
    verdict("n1", 0);
    assert_eq!(check("n1"), "nothing not-yet-well");
    // What is unknown is not well.
    verdict("n1", 3);
    assert_eq!(check("n1"), "nothing not-yet-well");
    verdict("n1", 0);
    assert_eq!(check("n1"), "nothing not-yet-well");
    assert_eq!(check("n1"), "nothing not-yet-well");
    assert_eq!(check("n1"), "resume");
    cluster.assert_node("n1", "idle", "none");
    assert_eq!(check("n1"), "nothing well");
}

fn an_administrator_drained_it_before(cluster: &Cluster) {
    update(
        "n1",
        &["State=DRAIN", "Reason=replace the fan | 'asap' today"],
    );
    verdict("n1", 2);
    check("n1");
    assert_eq!(check("n1"), "nothing foreign");
    verdict("n1", 0);
    for _ in 0..4 {
        assert_eq!(check("n1"), "nothing well");
    }
    cluster.assert_node("n1", "drained", "replace the fan | 'asap' today");
}

fn an_administrator_changed_it_after(cluster: &Cluster) {
    verdict("n1", 2);
    assert_eq!(drained_after("n1"), 2);
    update("n1", &["Reason=mine now"]);
    verdict("n1", 0);
    assert_eq!(check("n1"), "nothing foreign");
    for _ in 0..3 {
        assert_eq!(check("n1"), "nothing well");
    }
    cluster.assert_node("n1", "drained", "mine now");
}

/// Without what was remembered nobody knows whose reason it is; and a controller that has lost its state shows none.
fn what_was_remembered_is_lost(cluster: &mut Cluster) {
    verdict("n1", 2);
    assert_eq!(drained_after("n1"), 2);
    fs::remove_dir_all("/run/memory").unwrap();
    fs::remove_dir_all("/run/lasting").unwrap();
    verdict("n1", 0);
    for _ in 0..4 {
        assert_eq!(check("n1"), "nothing well");
    }
    cluster.assert_node("n1", "drained", "LR:probe");
    cluster.reset();
    verdict("n1", 2);
    assert_eq!(drained_after("n1"), 2);
    cluster.controller.kill();
    // -c: without the state that it has saved.
    cluster.controller = on("ctl", "slurmctld -D -c");
    cluster.wait_for("n1", "idle");
    // It still fails, and is drained again.
    assert_eq!(check("n1"), "drain");
    cluster.assert_node("n1", "drained", "LR:probe");
}

fn the_controller_is_silent(cluster: &mut Cluster) {
    verdict("n1", 2);
    check("n1");
    cluster.controller.signal("STOP");
    let silent = run(&mut health_check("n1"), LONG).expect(0);
    cluster.controller.signal("CONT");
    let document = silent.json();
    assert!(act(&document).starts_with("unknown sinfo"), "{document}");
    assert_eq!(document["state"], "fail");
    cluster.wait_for("n1", "idle");
    assert_eq!(check("n1"), "drain");
    // Drained, and the controller is gone: it is not resumed without an answer.
    verdict("n1", 0);
    check("n1");
    check("n1");
    // It saves its state at its end.
    cluster.controller.signal("TERM");
    assert!(wait_until(LONG, || cluster.controller.ended()));
    let gone = act(&run(&mut health_check("n1"), LONG).expect(0).json());
    assert!(gone.starts_with("unknown sinfo"), "{gone}");
    cluster.controller = on("ctl", "slurmctld -D");
    cluster.wait_for("n1", "drained");
    // A controller that has just begun may call that an invalid state, and do it all the same.
    let resumed = check("n1");
    assert!(resumed.starts_with("resume"), "{resumed}");
    cluster.wait_for("n1", "idle");
}

/// All nodes fail at the same moment: one is drained, the others say why not, and take that back when all is well.
fn all_nodes_fail_at_once(cluster: &Cluster) {
    let together = |expected: &str| {
        let running = NODES.map(|node| start(&mut health_check(node)));
        let acts = running.map(|running| act(&running.wait(LONG).expect(0).json()));
        say(&format!("all nodes: {acts:?} ({expected})"));
        acts
    };
    for node in NODES {
        verdict(node, 2);
    }
    together("first run");
    let acts = together("second run");
    let states = || NODES.map(|node| Cluster::node(node).0);
    let drained = |states: &[String; 3]| states.iter().filter(|state| *state == "drained").count();
    assert_eq!(drained(&states()), 1, "{:?} {acts:?}", states());
    let held = |act: &&String| act.starts_with("hold ") || act.starts_with("take-back ");
    assert_eq!(acts.iter().filter(held).count(), 2, "{acts:?}");
    together("third run");
    assert_eq!(drained(&states()), 1, "{:?}", states());
    let comments = NODES.map(comment);
    let explains =
        |text: &&String| text.starts_with("LR:probe") && text.contains(" - not drained, ");
    assert_eq!(comments.iter().filter(explains).count(), 2, "{comments:?}");
    for node in NODES {
        verdict(node, 0);
    }
    for _ in 0..3 {
        together("well");
    }
    cluster.wait_for("n1 n2 n3", "idle");
    assert_eq!(NODES.map(comment), ["", "", ""]);
}

fn a_check_that_flaps(cluster: &Cluster) {
    for code in [2, 0, 0, 2, 0, 0, 2, 3, 3, 2, 0, 0] {
        verdict("n1", code);
        let expected = if code == 2 {
            "nothing not-often-enough"
        } else {
            "nothing well"
        };
        assert_eq!(check("n1"), expected);
    }
    cluster.assert_node("n1", "idle", "none");
    // Every second run is two of three.
    for (code, expected) in [
        (2, "nothing not-often-enough"),
        (0, "nothing well"),
        (2, "drain"),
    ] {
        verdict("n1", code);
        assert_eq!(check("n1"), expected);
    }
}

/// A reboot empties /run: what was found is forgotten, the drain is not.
fn a_reboot(cluster: &Cluster) {
    verdict("n1", 2);
    assert_eq!(drained_after("n1"), 2);
    fs::remove_dir_all("/run/memory").unwrap();
    verdict("n1", 0);
    assert_eq!(check("n1"), "nothing not-yet-well");
    assert_eq!(check("n1"), "nothing not-yet-well");
    assert_eq!(check("n1"), "resume");
    cluster.wait_for("n1", "idle");
}

/// A name and an output that no column holds: the first 20 letters name the check, and the drain is known again.
fn a_long_reason(cluster: &Cluster) {
    let checks = CHECKS
        .replace("\"probe\"", "\"scratch of the whole floor\"")
        .replace(
            "exit $",
            "yes 'x;\u{e9}\\\"' | head -c 900 | tr '\\\\n' ' '; exit $",
        );
    fs::write(CONFIG, checks).unwrap();
    verdict("n1", 2);
    assert_eq!(drained_after("n1"), 2);
    let listed = run(Command::new("sinfo").args(["-R", "--noheader"]), LONG)
        .expect(0)
        .out;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.starts_with("LR:scratchofthewhol"), "{listed}");
    cluster.assert_node("n1", "drained", "LR:scratchofthewhol ");
    let (_, reason) = Cluster::node("n1");
    assert!(reason.len() > 80 && reason.len() <= 160, "{reason}");
    verdict("n1", 0);
    check("n1");
    check("n1");
    assert_eq!(check("n1"), "resume");
}

fn two_at_once(cluster: &Cluster) {
    let slow = CHECKS.replace("exit $", "touch /run/begun; sleep 2; exit $");
    fs::write(CONFIG, slow).unwrap();
    drop(fs::remove_file("/run/begun"));
    verdict("n1", 2);
    let first = start(&mut health_check("n1"));
    assert!(wait_until(LONG, || fs::exists("/run/begun").unwrap()));
    let second = run(&mut health_check("n1"), LONG).expect(0);
    assert!(second.error.contains("another run"), "{second:?}");
    assert!(second.out.is_empty(), "{second:?}");
    first.wait(LONG).expect(0);
    cluster.assert_node("n1", "idle", "none");
    assert_eq!(check("n1"), "drain");
}

/// A file system that does not answer, one whose server has died, one that the kernel made read-only: each by its own kind of check,
/// started by slurmd itself.
fn mounts_that_fail(cluster: &Cluster) {
    let image = "/run/mount/image";
    let shell = |script: &str| run(Command::new("sh").args(["-ec", script]), LONG).expect(0);
    fs::write("/run/health-check-on", "").unwrap();
    for (kind, check, break_it, mend_it, reason) in [
        (
            "hang",
            "[[mount]]\npath = \"/run/disk\"\nlimit = \"2s\"\n",
            "fsfreeze --freeze /run/disk",
            "fsfreeze --unfreeze /run/disk",
            "LR:mount/run/disk no answer for",
        ),
        (
            "stale",
            "[[mount]]\npath = \"/run/disk\"\n",
            "kill -9 $(cat /run/mount/pid)",
            "umount -l /run/disk; fuse2fs -f /run/mount/image2 /run/disk > /run/mount/log 2>&1 & until mountpoint -q /run/disk; do sleep 0.1; done",
            "LR:mount/run/disk cannot open it",
        ),
        (
            "read-only",
            "[read_only]\n",
            "echo 1 > /sys/fs/ext4/$(basename $(findmnt -no SOURCE /run/disk))/trigger_fs_error; until findmnt -no FS-OPTIONS /run/disk | grep -Eq '^ro|emergency_ro'; do sleep 0.1; done",
            "umount /run/disk; fsck.ext4 -fy /run/mount/image >/dev/null || true; mount -o loop,errors=remount-ro /run/mount/image /run/disk",
            "LR:read-only",
        ),
    ] {
        say(&format!("slurmd's own health check: {kind}"));
        shell(&format!(
            "truncate -s 16M {image}; mkdir -p /run/disk; mkfs.ext4 -qF {image}"
        ));
        if kind == "stale" {
            shell(
                "cp /run/mount/image /run/mount/image2; fuse2fs -f /run/mount/image /run/disk > /run/mount/log 2>&1 & echo $! > /run/mount/pid; until mountpoint -q /run/disk; do sleep 0.1; done",
            );
        } else {
            shell(&format!(
                "mount -o loop,errors=remount-ro {image} /run/disk"
            ));
        }
        // The other nodes look at something else.
        for node in ["n2", "n3"] {
            verdict(node, 0);
        }
        fs::write(
            CONFIG,
            format!("deadline = \"40s\"\n{check}[slurm]\nwait = \"100ms\"\n"),
        )
        .unwrap();
        shell(break_it);
        let drained = || {
            NODES
                .iter()
                .filter(|node| Cluster::node(node).0 == "drained")
                .count()
        };
        // All three see the same mount: the cap of one holds.
        let one = wait_until(LONG, || drained() == 1);
        let first = NODES.iter().find(|node| Cluster::node(node).0 == "drained");
        let why = first.map(|node| Cluster::node(node).1);
        shell(mend_it);
        assert!(one, "{kind}: {} are drained", drained());
        let why = why.unwrap_or_default();
        assert!(why.starts_with(reason), "{kind}: {why}");
        cluster.wait_for("n1 n2 n3", "idle");
        shell("umount /run/disk");
    }
    fs::remove_file("/run/health-check-on").unwrap();
}

fn plan_shows_and_does_nothing(cluster: &Cluster) {
    verdict("n1", 2);
    check("n1");
    let mut plan = Command::new(LINERATE);
    plan.args(["check", "plan"]).args(&WORDS[2..]);
    plan.env_clear().env("SLURMD_NODENAME", "n1");
    for _ in 0..2 {
        let said = run(&mut plan, LONG).expect(0);
        assert!(
            said.out.contains("n1 would be drained: LR:probe"),
            "{said:?}"
        );
        cluster.assert_node("n1", "idle", "none");
    }
    assert_eq!(check("n1"), "drain");
}

fn inside() {
    let mut cluster = Cluster::new();
    mounts_that_fail(&cluster);
    cluster.reset();
    let scenarios: [Named<fn(&Cluster)>; 9] = [
        ("drain and resume", drain_and_resume),
        (
            "drained by an administrator before",
            an_administrator_drained_it_before,
        ),
        (
            "changed by an administrator after",
            an_administrator_changed_it_after,
        ),
        ("all nodes fail at once", all_nodes_fail_at_once),
        ("flapping", a_check_that_flaps),
        ("reboot", a_reboot),
        ("long reason", a_long_reason),
        ("two checks at once", two_at_once),
        ("plan", plan_shows_and_does_nothing),
    ];
    for (name, scenario) in scenarios {
        say(&format!("Slurm: {name}"));
        scenario(&cluster);
        cluster.reset();
    }
    let changing: [Named<fn(&mut Cluster)>; 2] = [
        ("reason and memory lost", what_was_remembered_is_lost),
        ("silent controller", the_controller_is_silent),
    ];
    for (name, scenario) in changing {
        say(&format!("Slurm: {name}"));
        scenario(&mut cluster);
        cluster.reset();
    }
}

#[test]
fn slurm_is_told_what_it_should_be_and_no_more() {
    let test = "check::slurm::slurm_is_told_what_it_should_be_and_no_more";
    if !linerate_kernel::namespace::is_root() {
        return skipped(Need::Root, test, "slurmd runs as root");
    }
    let programs = [
        "slurmctld",
        "slurmd",
        "sinfo",
        "scontrol",
        "munged",
        "fuse2fs",
        "mkfs.ext4",
        "ip",
        "unshare",
    ];
    if lacks_programs(test, &programs) {
        return;
    }
    let _beside = beside();
    in_namespaces(&APART, test, SETUP, inside);
}
