//! `linerate explain` on the logs of two real glusterds: commands that met, then a lock that is stuck because a peer does
//! not answer.
//!
//! Both run in a process namespace whose first process is the test, and so do the bricks that they start: all end with
//! it. Their files are in memory, in mount namespaces.

use std::process::Command;
use std::time::{Duration, Instant};

use linerate_testing::{Need, in_namespaces, skipped};
use serde_json::Value;

use crate::harness::{
    Done, LONG, Running, beside, lacks_programs, linerate, run, start, wait_until,
};

const APART: [&str; 6] = [
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];
/// Two hosts with a link between them, of which the second is a network namespace.
const SETUP: &str = "ip link set lo up
mount -t tmpfs tmpfs /run
ip netns add b
ip link add a0 type veth peer name b0 netns b
ip address add 192.0.2.1/30 dev a0
ip link set a0 up
ip -n b address add 192.0.2.2/30 dev b0
ip -n b link set b0 up
ip -n b link set lo up
";
/// A glusterd without a past, in the foreground, where `/run` is its own.
const GLUSTERD: &str = "set -e
mkdir /run/gluster /run/brick
mount -t tmpfs tmpfs /var/lib/glusterd
mount -t tmpfs tmpfs /var/log/glusterfs
exec glusterd --no-daemon --log-file /var/log/glusterfs/glusterd.log";
const LOG: &str = "/var/log/glusterfs/glusterd.log";
const HISTORY: &str = "/var/log/glusterfs/cmd_history.log";
const REFUSED: &str = "Another transaction is in progress";
/// How often something asks for the volume while it is locked.
const EVERY: Duration = Duration::from_secs(5);
/// For so long it is refused.
const STUCK: Duration = Duration::from_secs(61);

fn words(words: &str) -> impl Iterator<Item = &str> {
    words.split_whitespace()
}

/// A command on the first host.
fn gluster(asked: &str) -> Command {
    let mut command = Command::new("gluster");
    command.arg("--mode=script").args(words(asked));
    command
}

fn ask(asked: &str) -> Done {
    run(&mut gluster(asked), LONG)
}

/// Asks until it succeeds.
#[track_caller]
fn succeeds(asked: &str) -> String {
    let mut done = None;
    let well = wait_until(LONG, || done.insert(ask(asked)).status.success());
    let done = done.unwrap();
    assert!(well, "{done:?}");
    done.out
}

/// The two daemons, with a volume over both.
struct Pair {
    _a: Running,
    b: Running,
}

impl Pair {
    fn new() -> Self {
        // The first one's folders are those of the test, which reads its log.
        let a = start(Command::new("sh").args(["-c", GLUSTERD]));
        let mut apart = Command::new("ip");
        apart.args(words("netns exec b unshare --mount sh -c"));
        let b = start(apart.arg(format!("mount -t tmpfs tmpfs /run\n{GLUSTERD}")));
        succeeds("pool list");
        succeeds("peer probe 192.0.2.2");
        let joined = || {
            ask("peer status")
                .out
                .contains("Peer in Cluster (Connected)")
        };
        assert!(wait_until(LONG, joined), "{}", log());
        succeeds("volume create home0 192.0.2.1:/run/brick/x 192.0.2.2:/run/brick/x force");
        succeeds("volume start home0");
        Self { _a: a, b }
    }

    /// A command on the second host.
    fn on_b(&self, asked: &str) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.b.pid().to_string();
        command.args(["-t", &pid, "--mount", "--net", "gluster", "--mode=script"]);
        command.args(words(asked));
        command
    }
}

fn log() -> String {
    std::fs::read_to_string(LOG).unwrap()
}

/// The first finding about the log, and all that is said about it.
fn explained(files: &[&str]) -> (Value, String) {
    let explain = |words: &str| run(linerate(words).args(files), LONG).expect(0);
    let document = explain("explain --json").json();
    let first = document["transcripts"][0]["parts"][0]["findings"][0].clone();
    let text = explain("explain").out;
    assert!(!text.contains("Not read"), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    (first, words.join(" "))
}

/// Commands at the same time, again until one was refused.
fn meet() {
    for _ in 0..100 {
        let at_once = [(); 4].map(|()| start(&mut gluster("volume status home0")));
        let refused = at_once
            .map(|running| running.wait(LONG))
            .iter()
            .any(|done| done.error.contains(REFUSED) || done.out.contains(REFUSED));
        if refused {
            return;
        }
    }
    panic!("400 commands, and no two met: {}", log());
}

/// A command of which the second host is never heard again, and those that ask until it was long enough.
fn be_stuck(pair: &Pair) -> Running {
    pair.b.signal("STOP");
    let profile = start(&mut gluster("volume profile home0 start"));
    let received = || log().contains("Received volume profile req for volume home0");
    assert!(wait_until(LONG, received), "{}", log());
    let mut first = None;
    loop {
        let now = Instant::now();
        let done = ask("volume profile home0 info");
        let refused = done.out.contains(REFUSED) || done.error.contains(REFUSED);
        assert!(refused, "{done:?}");
        if now.saturating_duration_since(*first.get_or_insert_with(Instant::now)) >= STUCK {
            return profile;
        }
        std::thread::sleep(EVERY);
    }
}

fn inside() {
    let mut pair = Pair::new();
    meet();
    let (first, text) = explained(&[LOG, HISTORY]);
    assert_eq!(first["id"], "cluster-lock", "{text}");
    assert_eq!(first["severity"], "note", "{text}");
    assert!(text.contains("two commands met, which is normal"), "{text}");
    assert!(!text.contains("was stuck"), "{text}");
    let (_, alone) = explained(&[LOG]);
    assert!(alone.contains("two commands met"), "{alone}");
    assert!(!alone.contains("was stuck"), "{alone}");

    let _profile = be_stuck(&pair);
    let identity = std::fs::read_to_string("/var/lib/glusterd/glusterd.info").unwrap();
    let holder = identity.lines().find_map(|line| line.strip_prefix("UUID="));
    let cause = "A peer probably does not answer although it is \"Connected\": the lock of volume home0 was stuck for";
    for files in [&[LOG][..], &[LOG, HISTORY]] {
        let (first, text) = explained(files);
        assert_eq!(first["id"], "cluster-lock", "{text}");
        assert_eq!(first["severity"], "limit", "{text}");
        let sentence = first["sentence"].as_str().unwrap();
        assert!(sentence.starts_with(cause), "{sentence}");
        assert!(sentence.contains(holder.unwrap()), "{sentence}");
    }
    // The advice finds the peer, and the lock is free as soon as its glusterd ends.
    let here = ask("pool list").expect(0).out;
    assert_eq!(here.matches("Connected").count(), 2, "{here}");
    let mut there = start(&mut pair.on_b("pool list"));
    assert!(!wait_until(EVERY, || there.ended()), "{}", there.out());
    pair.b.kill();
    succeeds("volume status home0");
}

#[test]
fn a_stuck_lock_is_told_from_commands_that_met() {
    let test = "gluster::a_stuck_lock_is_told_from_commands_that_met";
    if !linerate_kernel::namespace::is_root() {
        return skipped(Need::Root, test, "only root sets a brick's attributes");
    }
    if lacks_programs(test, &["glusterd", "gluster", "ip", "unshare", "nsenter"]) {
        return;
    }
    let _beside = beside();
    in_namespaces(&APART, test, SETUP, inside);
}
