//! `linerate prove` between two guests, each with a kernel of its own: what helps is a gain, a longer transmit queue is
//! none, and both are said with their interval.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::images::images;
use crate::machine::{Build, Card, Disk, Machine, System};
use crate::say;

/// The server, at the end of a path of 60 ms whose first hop is the guest that it is in.
const SERVER: &str = "10.8.1.2";
/// Both comparisons take less, also where other work has most of the machine.
const LONG: Duration = Duration::from_secs(480);

/// A path of 10 Mbit/s and 60 ms in the far guest: its card, a bottleneck with its queue, the server's namespace. The
/// near guest's own card keeps the queueing discipline whose queue is in question.
const PATH: &str = "ip address add 10.8.0.2/24 dev eth0 && ip link set eth0 up \
    && echo 1 > /proc/sys/net/ipv4/ip_forward && ip netns add server \
    && ip link add r0 type veth peer name s0 netns server \
    && ip address add 10.8.1.1/24 dev r0 && ip link set r0 up \
    && ip -n server address add 10.8.1.2/24 dev s0 && ip -n server link set s0 up && ip -n server link set lo up \
    && ip -n server route add default via 10.8.1.1 \
    && modprobe sch_netem && tc qdisc add dev r0 root netem delay 30ms rate 10mbit limit 200 \
    && tc -n server qdisc add dev s0 root netem delay 30ms limit 2000";

/// Half of 64 KiB for data: 4.4 Mbit/s at 60 ms.
const NARROW: &str = "[sysctl]\n\"net.ipv4.tcp_wmem\" = [4096, 16384, 65536]";
const WIDE: &str = "[sysctl]\n\"net.ipv4.tcp_wmem\" = [4096, 16384, 4194304]";
const STATE: &str = "sysctl -n net.ipv4.tcp_wmem; cat /sys/class/net/eth0/tx_queue_len; \
    tc qdisc show dev eth0 | grep -o '^qdisc [a-z_]*'";

/// Compares two profiles in the near guest; what it printed.
#[track_caller]
fn prove(near: &mut Machine<'_>, [before, after]: [&str; 2], options: &str) -> String {
    near.write("/root/before.toml", before);
    near.write("/root/after.toml", after);
    near.ok(&format!(
        "rm -f /run/proof*; (linerate prove --before /root/before.toml --after /root/after.toml --peer {SERVER} {options} \
         > /run/proof 2> /run/proof-said; echo $? > /run/proof-code) > /dev/null 2>&1 &"
    ));
    let end = Instant::now() + LONG;
    let ended = "timeout 20 bash -c 'until [ -s /run/proof-code ]; do sleep 0.2; done'";
    while near.run(ended).code != 0 {
        assert!(Instant::now() < end, "{}", near.ok("cat /run/proof-said"));
    }
    let code = near.ok("cat /run/proof-code");
    let said = near.ok("cat /run/proof-said /run/proof");
    assert_eq!(code, "0", "{said}");
    near.ok("cat /run/proof")
}

/// The guest that sends, and the one with the path and the server; both have run a test.
#[track_caller]
fn guests<'d>(disk: &'d Disk, other: &'d Disk) -> [Machine<'d>; 2] {
    let wire = disk.file("wire");
    let listen = Build::new(System::Small, &[Card::Listen(wire.clone())]);
    let mut near = Machine::boot(disk, &listen);
    let connect = Build::new(System::Small, &[Card::Connect(wire)]);
    let mut far = Machine::boot(other, &connect);
    far.ok(PATH);
    // What one run learned of the path is not the next one's; and where QEMU runs late, packets come late together, which
    // HyStart takes for a queue: a run that leaves slow start for it does not fill the path in its seconds.
    near.ok(
        "echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save; echo 0 > /sys/module/tcp_cubic/parameters/hystart",
    );
    near.ok("ip address add 10.8.0.1/24 dev eth0 && ip link set eth0 up && ip route add default via 10.8.0.2");
    far.ok("ip netns exec server linerate serve > /run/serve 2>&1 & \
        timeout 30 bash -c 'until ip netns exec server ss -ltn | grep -q :5201; do sleep 0.1; done'");
    near.ok(&format!(
        "timeout 30 bash -c 'until ping -c1 -W1 {SERVER}; do :; done'"
    ));
    // The first runs are slow: QEMU translates what the guests have not run yet.
    for _ in 0..2 {
        near.ok(&format!("linerate test {SERVER} -t 2"));
    }
    [near, far]
}

#[test]
#[ignore = "a minute and a half: make test-vm-matrix"]
fn a_window_helps_at_60_ms() {
    let Some(images) = images("a_window_helps_at_60_ms") else {
        return;
    };
    let (disk, other) = (Disk::new(images), Disk::new(images));
    let [mut near, far] = guests(&disk, &other);
    let state = near.ok(STATE);
    let text = prove(&mut near, [NARROW, WIDE], "--pairs 6 -t 2 -- -O 1");
    say(&text);
    let sentence = text.lines().next().unwrap_or_default();
    assert!(
        sentence.starts_with("After against before: +") && sentence.contains(" ± "),
        "{text}"
    );
    assert!(text.contains("Interval  95 %"), "{text}");
    assert_eq!(near.ok(STATE), state);
    near.power_off();
    far.power_off();
}

#[test]
#[ignore = "three minutes: make test-vm-matrix"]
fn a_longer_transmit_queue_is_no_effect() {
    let Some(images) = images("a_longer_transmit_queue_is_no_effect") else {
        return;
    };
    let (disk, other) = (Disk::new(images), Disk::new(images));
    let [mut near, far] = guests(&disk, &other);
    let state = near.ok(STATE);
    say(&format!("before: {}", state.replace('\n', ", ")));
    let lengths = [1000, 10_000].map(|length| format!("[interface.eth0]\ntxqueuelen = {length}"));
    let lengths = lengths.each_ref().map(String::as_str);
    // Twice as many pairs as a gain takes: other work on the machine scatters them by some percent.
    let text = prove(
        &mut near,
        lengths,
        "--min-effect 10% --pairs 12 -t 2 --json -- -O 1",
    );
    let document: Value = serde_json::from_str(&text).unwrap();
    let proof = &document["proof"];
    say(&format!(
        "{}\n{}\nratios {}",
        proof["sentence"], proof["effect"], proof["ratios"]
    ));
    assert_eq!(proof["verdict"], "no_effect", "{proof}");
    // The sentence is the first line of the text, too.
    let sentence = proof["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("no effect") && sentence.contains("between "),
        "{sentence}"
    );
    let share = &proof["effect"]["share"];
    let [low, high] = ["low", "high"].map(|end| share[end].as_f64().unwrap());
    assert!(-0.1 <= low && low <= high && high <= 0.1, "{share}");
    let wanted = serde_json::json!([["txqueuelen of eth0", "1000", "10000"]]);
    assert_eq!(document["settings"], wanted);
    assert_eq!(near.ok(STATE), state);
    near.power_off();
    far.power_off();
}
