//! Sixteen hosts, each with an sshd of its own, from one command.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::harness::{Bed, LONG, alone, beside, number, run, say, start, wait_until};

/// Each way, for each host.
const RATE: Option<&str> = Some("100mbit");
/// What far ends leave is gone in this time, after the end that they served.
const SOON: Duration = Duration::from_secs(60);
/// No mesh of these takes longer.
const MESH: Duration = Duration::from_secs(600);

#[test]
fn sixteen_hosts_are_reached_by_ssh_and_leave_nothing() {
    let _beside = beside();
    let Some(bed) = Bed::new("sixteen_hosts_are_reached_by_ssh", 16, RATE) else {
        return;
    };
    for node in &bed.nodes {
        let output = bed.ssh(
            &node.name,
            "hostname; echo $SSH_CONNECTION; touch /tmp/mine",
        );
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], node.name, "{output:?}");
        assert!(lines[1].contains(&node.address), "{said}");
        // Each has its own files, and no process is left of a connection that ended.
        assert_eq!(node.files(), ["/tmp/mine"]);
        let gone = wait_until(SOON, || node.processes().is_empty());
        assert!(gone, "{}: {:?}", node.name, node.processes());
    }
    let output = bed.ssh("node07", "sleep 300 </dev/null >/dev/null 2>&1 & true");
    assert!(output.status.success(), "{output:?}");
    // The connection's own process ends a moment after its client.
    let mut left = Vec::new();
    let one = wait_until(SOON, || {
        left = bed.nodes[6].processes();
        left.len() == 1
    });
    assert!(one && left[0].ends_with("sleep 300"), "{left:?}");
    let pid = left[0].split(':').next().unwrap().to_owned();
    drop(bed);
    // With the host, what runs on it has ended.
    let gone = wait_until(SOON, || {
        std::fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |words| words.is_empty())
    });
    assert!(gone, "{pid} runs on");
}

/// What is left on the hosts and here: nothing but the program in its cache.
#[track_caller]
fn nothing_is_left(bed: &Bed, what: &str) {
    let left = || {
        let mut left = bed.processes();
        for node in &bed.nodes {
            let files = node.files();
            let kept = |path: &&String| {
                let name = path.strip_prefix("/root/.cache").unwrap_or(path);
                let program = name.strip_prefix("/linerate/linerate-");
                !(name.is_empty()
                    || name == "/linerate"
                    || program.is_some_and(|hash| hash.len() == 64))
            };
            let files = files.iter().filter(kept).cloned();
            let name = &node.name;
            left.extend(
                files
                    .chain(node.processes())
                    .map(|left| format!("{name}: {left}")),
            );
        }
        left
    };
    let gone = wait_until(SOON, || left().is_empty());
    assert!(gone, "{what}: left: {:#?}", left());
}

#[test]
fn a_host_that_never_had_the_program_gets_it() {
    let _alone = alone();
    let Some(bed) = Bed::new("a_host_that_never_had_the_program_gets_it", 2, None) else {
        return;
    };
    let facts = || run(&mut bed.on("node01", "host --json"), LONG).expect(0);
    let copied = facts();
    let found = facts();
    let bytes = std::fs::metadata(bed.program()).unwrap().len();
    say(&format!(
        "facts of a host over ssh: {:.2} s with the copy of {bytes} bytes, {:.2} s without",
        copied.took.as_secs_f64(),
        found.took.as_secs_f64()
    ));
    assert!(copied.out.contains("node01"), "{}", copied.out);
    let files = bed.nodes[0].files();
    let program = files
        .iter()
        .find(|path| path.starts_with("/root/.cache/linerate/"));
    let program = program.unwrap_or_else(|| panic!("no program in {files:?}"));
    let sent = std::fs::read(bed.program()).unwrap();
    assert!(bed.nodes[0].read(program) == sent, "{program} differs");
    assert!(bed.nodes[1].files().is_empty(), "nobody asked for it");
    nothing_is_left(&bed, "afterwards");
    // A copy that is broken off is begun anew, and none of it stays.
    for millis in [50, 100, 200, 400] {
        let mut broken = start(&mut bed.on("node02", "host --json"));
        std::thread::sleep(Duration::from_millis(millis));
        broken.kill();
        drop(broken);
        nothing_is_left(&bed, &format!("killed after {millis} ms"));
    }
    run(&mut bed.on("node[01-02]", "host --json"), LONG).expect(0);
    nothing_is_left(&bed, "at last");
}

/// A mesh of all sixteen, with short tests.
const WORDS: &str = "-t 1";

fn mesh(bed: &Bed, folder: &str) -> std::process::Command {
    let mut command = bed.linerate("mesh node[01-16] --json --output");
    command
        .arg(bed.folder().join(folder))
        .args(["--via", &bed.via(), "--"]);
    command.args(WORDS.split_whitespace());
    command
}

/// When a test had data under way, by the clock of this end.
fn span(pair: &Value) -> Option<(u64, u64)> {
    let of = |name: &str| pair.get("span")?.get(name)?.as_u64();
    Some((of("begin")?, of("end")?))
}

/// Tests of one host that overlap.
fn overlaps(pairs: &[Value]) -> Vec<String> {
    let mut of_host: BTreeMap<&str, Vec<(u64, u64, String)>> = BTreeMap::new();
    for pair in pairs {
        let Some((begin, end)) = span(pair) else {
            continue;
        };
        let [from, to] = ["from", "to"].map(|end| pair[end].as_str().unwrap());
        for host in [from, to] {
            let what = format!("{from} > {to}");
            of_host.entry(host).or_default().push((begin, end, what));
        }
    }
    let mut found = Vec::new();
    for (host, mut spans) in of_host {
        spans.sort();
        let two = spans.windows(2).filter(|two| two[1].0 < two[0].1);
        found.extend(two.map(|two| format!("{host}: {} and {}", two[0].2, two[1].2)));
    }
    found
}

#[test]
fn a_mesh_of_sixteen_takes_no_host_twice_at_once() {
    let _alone = alone();
    let Some(bed) = Bed::new("a_mesh_of_sixteen", 16, RATE) else {
        return;
    };
    let done = run(&mut mesh(&bed, "mesh"), MESH);
    let document = done.json();
    let pairs = document["pairs"].as_array().unwrap();
    // What was slow, perhaps for other work on this machine, is tested again alone.
    let (again, due): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair["alone"] == true);
    let different: BTreeSet<_> = due
        .iter()
        .map(|pair| (pair["from"].as_str().unwrap(), pair["to"].as_str().unwrap()))
        .collect();
    assert_eq!(different.len(), 16 * 15);
    assert_eq!(due.len(), 16 * 15);
    let measured = pairs.iter().all(|pair| pair["outcome"] == "measured");
    assert!(measured, "{document:#}\n{}", done.error);
    let spans: Vec<_> = due.iter().copied().filter_map(span).collect();
    assert_eq!(spans.len(), due.len(), "a test has no recorded time");
    assert_eq!(overlaps(pairs), Vec::<String>::new());
    let [rounds, bound] = ["/rounds", "/bound"].map(|place| number(&document, place));
    assert!(rounds * 10 <= bound * 11, "{rounds} rounds for {bound}");
    let first = spans.iter().map(|span| span.0).min().unwrap();
    let last = spans.iter().map(|span| span.1).max().unwrap();
    say(&format!(
        "{rounds} rounds of tests of 1 s, {bound} at least: {:.1} s from the first byte to the last, {} tests made again, \
         {:.1} s in all; causes {}",
        (last - first) as f64 / 1e9,
        again.len(),
        done.took.as_secs_f64(),
        document["causes"]
    ));
    nothing_is_left(&bed, "after the mesh");
}

#[test]
#[ignore = "minutes: make kill"]
fn a_mesh_that_is_killed_leaves_nothing() {
    let _alone = alone();
    let Some(bed) = Bed::new("a_mesh_that_is_killed", 16, RATE) else {
        return;
    };
    // The first seconds have the most different steps: reaching the hosts, copying, starting, the first rounds.
    let seed = u64::from(std::process::id());
    let mut random = seed | 1;
    say(&format!("seed {seed}"));
    for place in 0..20 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let after = Duration::from_millis(random % 20_000);
        let mut running = start(&mut mesh(&bed, &format!("mesh{place}")));
        let ended = wait_until(after, || running.ended());
        assert!(!ended, "{place}: {}", running.error());
        running.signal("KILL");
        drop(running);
        nothing_is_left(&bed, &format!("{place}: killed after {after:?}"));
        say(&format!("{place}: killed after {after:?}: nothing is left"));
    }
}
