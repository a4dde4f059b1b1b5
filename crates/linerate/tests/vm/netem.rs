//! The lab's engine by netem and tbf, on a kernel that has them.

use serde_json::Value;

use crate::disturbance::measured;
use crate::images::images;
use crate::machine::{Build, Disk, Machine, System};

/// A path of 20 Mbit/s, 40 ms and a queue of one of both: 100 kB.
const SHAPED: &str = "rate = \"20M\"\nrtt = \"40ms\"\nqueue = \"100kB\"\n";

/// Runs a scenario in the guest; the document of `linerate lab run --json`.
#[track_caller]
fn run(machine: &mut Machine<'_>, text: &str) -> Value {
    machine.write("/root/path.toml", text);
    let done = machine.run(
        "linerate lab run /root/path.toml --json 2>/root/errors || { cat /root/errors; exit 1; }",
    );
    assert_eq!(done.code, 0, "{}", done.text);
    let document: Value =
        serde_json::from_str(&done.text).unwrap_or_else(|error| panic!("{error}\n{}", done.text));
    crate::say(&format!(
        "{}: goodput {}, {}",
        document["scenario"]["name"],
        document["test"]["summary"]["goodput_bps"],
        document["lab"]["path"]
    ));
    document
}

fn number(of: &Value, place: &str) -> f64 {
    let found = of.pointer(place).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no {place} in {of:#}"))
}

#[test]
fn a_lab_by_netem_and_tbf() {
    let Some(images) = images("a_lab_by_netem_and_tbf") else {
        return;
    };
    measured(
        || (),
        || {
            let disk = Disk::new(images);
            let mut machine = Machine::boot(&disk, &Build::new(System::Small, &[]));
            shaped(&mut machine);
            lossy(&mut machine);
            batches(&mut machine);
            without_queues(&mut machine);
            machine.power_off();
        },
    );
}

/// Delay, rate and a change: what the ends saw is what was asked for, by the disciplines that are named.
fn shaped(machine: &mut Machine<'_>) {
    let document = run(
        machine,
        &format!(
            "name = \"shaped\"\nengine = \"netem\"\n[path]\n{SHAPED}[[path.change]]\nat = \"2s\"\nrate = \"2M\"\n[test]\nargs = \"-t 6\"\n"
        ),
    );
    let lab = &document["lab"];
    assert_eq!(lab["in_force"]["engine"], "netem");
    assert_eq!(lab["in_force"]["mode"], "packet");
    assert_eq!(lab["in_force"]["queued_by"], Value::Null);
    let forward = &lab["path"]["forward"];
    assert_eq!(forward["disciplines"], serde_json::json!(["netem", "tbf"]));
    assert_eq!(forward["changes"], 1);
    assert_eq!(forward["lost"], 0);
    // Less than the first rate's share of payload for the whole time, and more than half of the second one's.
    let goodput = number(&document, "/test/summary/goodput_bps");
    assert!((1e6..20e6).contains(&goodput), "{goodput}");
    // 2 s of the first rate, 4 s of the second one and a queue, where the first alone would carry 120 Mbit. A busy
    // machine may make the change 2 s late.
    let delivered = 8.0 * number(forward, "/delivered_bytes");
    let most = 2.0 * 20e6 + 4.0 * 2e6 + 8.0 * 100e3 + 2.0 * (20e6 - 2e6);
    assert!((6e6..most).contains(&delivered), "{delivered} of {most}");
}

/// An idle path that loses: its round trip is the one that was asked for, and losses are counted at both places.
fn lossy(machine: &mut Machine<'_>) {
    let document = run(
        machine,
        &format!(
            "name = \"lossy\"\nengine = \"netem\"\n[path]\n{SHAPED}[path.forward]\nloss = 0.02\n[test]\nargs = \"-t 4 -b 4M\"\n"
        ),
    );
    let round_trip = number(&document, "/test/summary/min_rtt_us");
    assert!((40e3..45e3).contains(&round_trip), "{round_trip}");
    let forward = &document["lab"]["path"]["forward"];
    let (lost, delivered) = (
        number(forward, "/lost"),
        number(forward, "/delivered_packets"),
    );
    // Of some 800 packets a few are lost, and far fewer than a tenth.
    assert!(
        lost > 0.0 && lost < 0.1 * (delivered + lost),
        "{lost} of {delivered}"
    );
    assert!(number(&document, "/test/summary/retransmits") > 0.0);
    assert_eq!(document["lab"]["path"]["back"]["lost"], 0);

    // What only the receiver of datagrams can tell: the disciplines do not count it.
    let document = run(
        machine,
        "name = \"wild\"\nengine = \"netem\"\n[path]\nrtt = \"10ms\"\n[path.forward]\n\
         loss = { model = \"gilbert\", p = 0.02, r = 0.5 }\nduplicate = 0.05\n\
         reorder = { fraction = 0.1, delay = \"40ms\" }\n[test]\nargs = \"-u -b 2M -l 1000 -t 4\"\n",
    );
    let forward = &document["lab"]["path"]["forward"];
    assert_eq!(forward["disciplines"], serde_json::json!(["netem"]));
    assert_eq!(forward["queue_dropped"], Value::Null, "no tbf, no queue");
    let datagrams = "/test/summary/directions/0/datagrams";
    for seen in ["path_lost", "duplicated", "reordered"] {
        let count = number(&document, &format!("{datagrams}/{seen}"));
        assert!(count > 0.0, "{seen} of {document:#}");
    }
}

/// Datagrams that leave their host in batches meet the disciplines one by one.
fn batches(machine: &mut Machine<'_>) {
    let document = run(
        machine,
        "name = \"batches\"\nengine = \"netem\"\n[path]\nrtt = \"10ms\"\n[path.forward]\nloss = 0.05\n\
         [test]\nargs = \"-u -l 100 -b 20M -t 2\"\n",
    );
    let datagrams = "/test/summary/directions/0/datagrams";
    let of = |what: &str| number(&document, &format!("{datagrams}/{what}"));
    let (sent, path_lost) = (of("sent"), of("path_lost"));
    let forward = &document["lab"]["path"]["forward"];
    let lost = number(forward, "/lost");
    let met = lost + number(forward, "/delivered_packets") + number(forward, "/held_packets");
    // What the machine itself drops between two interfaces neither meets the disciplines nor arrives.
    let dropped = number(&document, "/lab/backlog_dropped");
    assert!(met + dropped >= sent, "{met} and {dropped} of {sent}");
    // Beside the datagrams, the control connection and neighbour discovery may lose a packet.
    let others = met + dropped - sent;
    assert!(others < 0.05 * sent, "{others} beside {sent}");
    // Counted by the batch, it would be a third or a half of what did not arrive.
    let slack = 0.01 * sent;
    assert!(
        lost > 0.03 * sent && path_lost <= lost + dropped + slack,
        "{lost} and {dropped} dropped of {sent}; {path_lost} did not arrive"
    );
    assert!(
        lost <= path_lost + others + slack,
        "{lost}; {path_lost} did not arrive, {others} others"
    );
}

/// Where NFQUEUE is not to be had, netem is taken for what it can do, and what it cannot is named.
fn without_queues(machine: &mut Machine<'_>) {
    machine.write(
        "/etc/modprobe.d/no-queues.conf",
        "install nfnetlink_queue /bin/false",
    );
    let loaded = machine.run("grep -q ^nfnetlink_queue /proc/modules").code;
    assert_eq!(loaded, 1, "nothing has asked for it yet");
    let document = run(
        machine,
        "name = \"instead\"\n[path]\nrtt = \"10ms\"\n[test]\nargs = \"-t 1 -b 4M\"\n",
    );
    let force = &document["lab"]["in_force"];
    assert_eq!(force["engine"], "netem");
    let why = force["instead"].as_str().unwrap();
    assert!(why.contains("nfnetlink_queue"), "{why}");
    let refused = machine.run("linerate lab run policed");
    assert_ne!(refused.code, 0);
    for words in ["nfnetlink_queue", "netem", "'policer'"] {
        assert!(refused.text.contains(words), "{words}: {}", refused.text);
    }
}
