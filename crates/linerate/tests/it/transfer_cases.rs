//! Transfers whose limit is known, because their disks and their network were made as slow as that: which stage is named.
//!
//! `make transfer-cases` makes all of them; three of them, with shorter files, are in `make test`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use crate::harness::copies::{Case, Limit, MIB, Told, cases, judge, noise};
use crate::harness::{
    Hosts, LONG, Server, Volume, alone, asked, beside, lacks_programs, run, start, wait_until,
};

/// What the network carries: 400 Mbit/s on the wire, B/s of payload in segments of 1,448 bytes.
const NETWORK: u64 = 50_000_000 * 1448 / 1514;

/// Keeps a file in memory until it is dropped: what is mapped is not let go.
struct Mapped(Child);

impl Mapped {
    fn new(file: &Path) -> Self {
        const MAP: &str = "import mmap, sys
file = open(sys.argv[1], 'rb')
data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(data[at] for at in range(0, len(data), 4096))
print('mapped', flush=True)
sys.stdin.read()";
        let mut python = Command::new("python3");
        python.args(["-c", MAP]).arg(file);
        let mut child = python
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        assert_eq!(line, "mapped\n");
        Self(child)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Makes the files of a case, which memory forgets then: the rate of the disk that all of this machine's volumes are on, B/s.
fn fill(from: &Volume, case: &Case) -> f64 {
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let (files, bytes) = case.files;
    let all: Vec<Vec<u8>> = (0..files).map(|_| noise(bytes)).collect();
    let began = Instant::now();
    for (number, bytes) in all.iter().enumerate() {
        fs::write(tree.join(number.to_string()), bytes).unwrap();
    }
    from.forget();
    // Of small files the rate is not the disk's.
    let large = files == 1;
    let rate = (files * bytes) as f64 / began.elapsed().as_secs_f64();
    if large { rate } else { f64::INFINITY }
}

/// Makes a case: what it said.
fn transfer(hosts: &Hosts, case: &Case, from: &Volume, to: &Volume) -> Value {
    let tree = from.path().join("tree");
    let mapped = (case.told == Told::First("source-cached")).then(|| Mapped::new(&tree.join("0")));
    let server = hosts
        .b
        .serve(&format!("--allow-target {}", to.path().display()));
    let slow = [(from, case.source), (to, case.target)];
    let slow = slow.map(|(volume, limit)| volume.slow(limit.as_slice()).unwrap());
    let mut client = hosts.client(&server, "--json --no-cells");
    client.args(case.words.split_whitespace());
    client.arg("--source").arg(&tree);
    client.arg("--target").arg(to.path());
    let code = if case.told == Told::Full { 4 } else { 0 };
    let done = run(&mut client, LONG).expect(code);
    drop((slow, server, mapped));
    done.json()
}

#[test]
fn the_stage_that_was_made_slow_is_named() {
    let what = "transfers whose limit is known";
    if lacks_programs(what, &["losetup", "mkfs.ext4", "python3"]) {
        return;
    }
    let _alone = alone();
    let Some(hosts) = Hosts::new(what) else {
        return;
    };
    hosts
        .a
        .tc("qdisc add dev a0 root tbf rate 400mbit burst 128k latency 20ms");
    let all = asked("LINERATE_TRANSFER_CASES").is_some();
    let unit = if all { 384 } else { 192 };
    let mut cases = cases(NETWORK, 60, unit);
    if !all {
        cases.truncate(3);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut wrong = Vec::new();
    for case in &cases {
        let full = case.told == Told::Full;
        let room = (case.files.0 * case.files.1 / MIB) as u64 + 128;
        let sizes = [room, if full { 128 } else { room }];
        let volumes = sizes.map(|mib| Volume::new(folder, mib));
        let [Ok(from), Ok(to)] = &volumes else {
            let (need, why) = volumes.into_iter().find_map(Result::err).unwrap();
            return skipped(need, what, &why);
        };
        let rate = fill(from, case);
        if rate < 2.0 * NETWORK as f64 {
            let why = format!("its disk writes {:.0} MB/s", rate / 1e6);
            return skipped(Need::QuietMachine, what, &why);
        }
        let document = transfer(&hosts, case, from, to);
        if let Err(why) = judge(case, &document) {
            wrong.push(why);
        }
        if !full {
            let mut compare = Command::new("diff");
            compare.arg("-r").arg(from.path().join("tree"));
            run(compare.arg(to.path().join("tree")), LONG).expect(0);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn memory_that_a_hanging_disk_keeps_is_counted() {
    let what = "a transfer to a disk that hangs";
    if lacks_programs(what, &["losetup", "mkfs.ext4"]) {
        return;
    }
    let _beside = beside();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let from = tempfile::tempdir_in(folder).unwrap();
    let [big, small] = ["big", "small"].map(|name| from.path().join(name));
    fs::write(&big, noise(8 * MIB)).unwrap();
    fs::write(&small, "data").unwrap();
    let to = match Volume::new(folder, 128) {
        Ok(to) => to,
        Err((need, why)) => return skipped(need, what, &why),
    };
    let free = tempfile::tempdir_in(folder).unwrap();
    // Three eighths of it hold one transfer, and not two.
    let mut words = vec!["--max-memory", "400M"];
    for target in [to.path(), free.path()] {
        words.extend(["--allow-target", target.to_str().unwrap()]);
    }
    let server = Server::linerate(&words);
    let send = |source: &Path, target: &Path| {
        let mut client = server.client("--no-cells");
        client.arg("--source").arg(source);
        client.arg("--target").arg(target);
        client
    };
    let sockets = || {
        let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
        let links = open.filter_map(|one| fs::read_link(one.ok()?.path()).ok());
        links
            .filter(|link| link.to_string_lossy().starts_with("socket:"))
            .count()
    };
    let idle = sockets();
    // A byte a second.
    let hanging = match to.slow(&[Limit::Write(1)]) {
        Ok(hanging) => hanging,
        Err(why) => return skipped(Need::Throttle, what, &why.to_string()),
    };
    // Threads that write and wait for the disk.
    let hang = || {
        let threads = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
        let states =
            threads.filter_map(|one| fs::read_to_string(one.ok()?.path().join("stat")).ok());
        states
            .filter(|state| state.contains("(target ") && state.contains(") D "))
            .count()
    };
    let client = start(&mut send(&big, to.path()));
    assert!(
        wait_until(LONG, || hang() > 0),
        "nothing waits for the disk"
    );
    drop(client);
    // Its session is over, and its disk has not answered.
    assert!(wait_until(LONG, || sockets() == idle), "{}", sockets());
    let says = run(&mut send(&small, free.path()), LONG).error;
    assert!(says.contains("--max-memory"), "{says}");
    drop(hanging);
    let is_taken = wait_until(LONG, || {
        let done = run(&mut send(&small, free.path()), LONG);
        done.code() == Some(0)
    });
    assert!(is_taken, "the disk answers, and its memory is still held");
}
