//! `linerate disk probe`: what it measures, what it refuses, and that nothing is left of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linerate_testing::{Need, skipped};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    Done, LINERATE, LONG, alone, beside, lacks_namespaces, lacks_programs, run, start, wait_until,
};

/// Options of `unshare` for namespaces in which an ordinary user may mount.
const USER_AND_MOUNT: [&str; 4] = ["--user", "--map-root-user", "--mount", "--"];
const UNSHARE: &str = "unshare";

/// A folder on the disk that the build is on: `/tmp` may be memory.
struct Bench {
    folder: TempDir,
    state: TempDir,
}

impl Bench {
    fn new() -> Self {
        let on_disk = || TempDir::with_prefix_in("probe-", env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self {
            folder: on_disk(),
            state: on_disk(),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("XDG_STATE_HOME", self.state.path())
            .env("PROBE", LINERATE)
            .env("DIR", self.path());
        command
    }

    /// The probe of the folder with these words.
    fn probe(&self, words: &str) -> Command {
        let mut command = self.command(LINERATE);
        command.args(["disk", "probe", "--json"]).arg(self.path());
        command.args(words.split_whitespace());
        command
    }

    /// A script in namespaces where it may mount; it exits with 77 where it cannot.
    fn apart(&self, script: &str) -> Done {
        let mut command = self.command(UNSHARE);
        command.args(USER_AND_MOUNT).args(["sh", "-c", script]);
        run(&mut command, LONG)
    }

    fn assert_nothing_is_left(&self, when: &str) {
        let left: Vec<PathBuf> = fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(left.is_empty(), "{when}: {left:?}");
    }

    fn written_today(&self) -> u64 {
        let path = self.state.path().join("linerate/disk-probe-written.json");
        let Ok(text) = fs::read_to_string(path) else {
            return 0;
        };
        let kept: Value = serde_json::from_str(&text).unwrap();
        let disks = kept["disks"].as_object().unwrap();
        disks.values().map(|bytes| bytes.as_u64().unwrap()).sum()
    }
}

fn document(done: &Done) -> Value {
    serde_json::from_str(&done.out)
        .unwrap_or_else(|error| panic!("{error}: {}{}", done.out, done.error))
}

fn runs(document: &Value) -> &Vec<Value> {
    document["runs"].as_array().unwrap()
}

#[test]
fn all_patterns_are_measured_and_nothing_is_left() {
    let _turn = beside();
    let bench = Bench::new();
    let done = run(&mut bench.probe("-t 1 --size 32M"), LONG).expect(0);
    bench.assert_nothing_is_left("at its end");
    let document = document(&done);
    assert_eq!(document["kind"], "disk_probe");
    let names: Vec<&str> = runs(&document)
        .iter()
        .map(|run| run["pattern"].as_str().unwrap())
        .collect();
    let expected = [
        "seq-read",
        "rand-read",
        "rand-read-32",
        "sync",
        "buffered",
        "rand-write",
        "rand-write-32",
        "seq-write",
    ];
    assert_eq!(names, expected);
    for (run, figures) in runs(&document)
        .iter()
        .zip(document["figures"].as_array().unwrap())
    {
        let requests = run["requests"].as_u64().unwrap();
        assert!(requests > 0, "{run}");
        let buckets = run["latency"]["buckets"].as_array().unwrap();
        let counted: u64 = buckets.iter().map(|one| one[1].as_u64().unwrap()).sum();
        assert_eq!(counted, requests, "{}", run["pattern"]);
        let iops = figures["iops"].as_f64().unwrap();
        let span = run["measured_ns"].as_f64().unwrap() / 1e9;
        assert!((iops * span - requests as f64).abs() < 1.0, "{figures}");
        assert_eq!(run["ended"], Value::Null);
    }
    let buffered = &runs(&document)[4];
    assert_eq!(buffered["bytes"], 32 << 20);
    assert!(buffered["sync_ns"].as_u64().is_some());
    let written = document["wear"]["written"].as_u64().unwrap();
    assert_eq!(bench.written_today(), written);
    assert!(written > 3 * (32 << 20), "{written}");
}

#[test]
fn the_text_names_the_disk_and_every_pattern() {
    let _turn = beside();
    let bench = Bench::new();
    let mut command = bench.command(LINERATE);
    command.args(["disk", "probe", "-t", "1", "--size", "16M"]);
    command.args(["--only", "rand-read,sync"]).arg(bench.path());
    let done = run(&mut command, LONG).expect(0);
    for part in [
        "Disk  ",
        "16.0 MiB of random data",
        "rand-read ",
        "sync  ",
        "daily budget",
    ] {
        assert!(done.out.contains(part), "no '{part}' in:\n{}", done.out);
    }
    assert!(!done.out.contains("seq-read"), "{}", done.out);
}

#[test]
fn a_device_a_file_and_sizes_beyond_what_is_free_are_refused() {
    let _turn = beside();
    let bench = Bench::new();
    let refused = |words: &[&str], part: &str| {
        let mut command = bench.command(LINERATE);
        command.args(["disk", "probe"]).args(words);
        let done = run(&mut command, LONG).expect(2);
        assert!(done.error.contains(part), "{words:?}: {}", done.error);
    };
    refused(&["/dev/null"], "never to a device");
    refused(&["/proc/version"], "not a directory");
    let folder = bench.path().to_str().unwrap();
    refused(&[folder, "--size", "1000T"], "too large");
    refused(&[folder, "--size", "1M"], "too small");
    refused(&[folder, "--only", "sideways"], "seq-write");
    bench.assert_nothing_is_left("refused");
    assert_eq!(bench.written_today(), 0);
    // Every block device of this machine.
    for entry in fs::read_dir("/dev").unwrap() {
        use std::os::unix::fs::FileTypeExt as _;
        let path = entry.unwrap().path();
        let kind = path.metadata().map(|facts| facts.file_type());
        if kind.is_ok_and(|kind| kind.is_block_device()) {
            refused(&[path.to_str().unwrap()], "never to a device");
        }
    }
}

#[test]
fn memory_is_refused_by_its_name() {
    let _turn = beside();
    let bench = Bench::new();
    for (what, mount, part) in [
        ("a tmpfs", "mount -t tmpfs none \"$DIR\"", "in RAM (tmpfs)"),
        ("a ramfs", "mount -t ramfs none \"$DIR\"", "in RAM (ramfs)"),
        (
            "an overlay over a tmpfs",
            "mount -t tmpfs none \"$DIR\" && mkdir \"$DIR/l\" \"$DIR/u\" \"$DIR/w\" \"$DIR/m\" && \
             mount -t overlay none -o lowerdir=\"$DIR/l\",upperdir=\"$DIR/u\",workdir=\"$DIR/w\" \"$DIR/m\" && DIR=$DIR/m",
            "in RAM (overlay over tmpfs)",
        ),
    ] {
        let script =
            format!("{{ {mount}; }} || exit 77; exec \"$PROBE\" disk probe --yes \"$DIR\"");
        let done = bench.apart(&script);
        if lacks_namespaces(what, &done) {
            continue;
        }
        let done = done.expect(1);
        assert!(done.error.contains(part), "{what}: {}", done.error);
    }
}

#[test]
fn a_read_only_mount_is_refused() {
    let _turn = beside();
    let bench = Bench::new();
    let done = bench.apart(
        "{ mount --bind \"$DIR\" \"$DIR\" && mount -o remount,bind,ro \"$DIR\"; } || exit 77; \
         exec \"$PROBE\" disk probe \"$DIR\"",
    );
    if lacks_namespaces("a read-only mount", &done) {
        return;
    }
    let done = done.expect(1);
    assert!(
        done.error.contains("read-only file system"),
        "{}",
        done.error
    );
}

#[test]
fn what_may_be_on_another_host_needs_a_yes() {
    let _turn = beside();
    let what = "a file system by FUSE";
    if lacks_programs(what, &["fuse2fs", "mkfs.ext4", UNSHARE]) {
        return;
    }
    let bench = Bench::new();
    let probe = "\"$PROBE\" disk probe --json -t 1 --only rand-read --size 16M";
    // The image holds 2 GiB, sparse, so that there is room for 16 MiB.
    let script = format!(
        "mkdir \"$DIR/m\" && truncate -s 2G \"$DIR/image\" && mkfs.ext4 -q \"$DIR/image\" && \
         fuse2fs -o rw \"$DIR/image\" \"$DIR/m\" 2>/dev/null || exit 77; \
         {probe} \"$DIR/m\"; echo refused $?; {probe} --yes \"$DIR/m\"; code=$?; umount \"$DIR/m\"; exit $code"
    );
    let done = bench.apart(&script);
    if lacks_namespaces(what, &done) {
        return;
    }
    let done = done.expect(0);
    let (refused, report) = done.out.split_once('\n').unwrap();
    assert_eq!(refused, "refused 1", "{}", done.error);
    assert!(done.error.contains("add --yes"), "{}", done.error);
    let report: Value = serde_json::from_str(report).unwrap();
    assert_eq!(report["place"]["network"], true);
    assert_eq!(report["place"]["device"], Value::Null);
    assert!(report["runs"][0]["requests"].as_u64().unwrap() > 0);
}

#[test]
fn a_full_disk_is_refused_and_a_loop_device_on_memory_is_memory() {
    let _turn = beside();
    let what = "file systems on loop devices";
    if lacks_programs(what, &["mkfs.ext4", "losetup", UNSHARE]) {
        return;
    }
    let bench = Bench::new();
    // In a mount namespace alone: loop devices want the machine's root.
    let run_as_root = |script: &str| {
        let mut command = bench.command(UNSHARE);
        run(command.args(["--mount", "sh", "-c", script]), LONG)
    };
    let lacks = |done: &Done| {
        let lacks = done.code() == Some(77) || done.error.contains("unshare:");
        if lacks {
            skipped(Need::LoopDevices, what, done.error.trim());
        }
        lacks
    };
    let full = "mkdir \"$DIR/m\" && truncate -s 1500M \"$DIR/image\" && mkfs.ext4 -q \"$DIR/image\" && \
        mount -o loop \"$DIR/image\" \"$DIR/m\" && fallocate -l 350M \"$DIR/m/full\" || exit 77; \
        \"$PROBE\" disk probe \"$DIR/m\"; code=$?; umount \"$DIR/m\"; rm -r \"$DIR/image\" \"$DIR/m\"; exit $code";
    let done = run_as_root(full);
    if lacks(&done) {
        return;
    }
    let done = done.expect(1);
    assert!(done.error.contains("is nearly full"), "{}", done.error);
    let memory = "mkdir \"$DIR/t\" \"$DIR/m\" && mount -t tmpfs none \"$DIR/t\" && truncate -s 64M \"$DIR/t/image\" && \
        mkfs.ext4 -q \"$DIR/t/image\" && mount -o loop \"$DIR/t/image\" \"$DIR/m\" || exit 77; \
        \"$PROBE\" disk probe \"$DIR/m\"; code=$?; umount \"$DIR/m\" \"$DIR/t\"; exit $code";
    let done = run_as_root(memory);
    if lacks(&done) {
        return;
    }
    let done = done.expect(1);
    assert!(done.error.contains("is a file in tmpfs"), "{}", done.error);
}

#[test]
fn what_a_day_may_write_is_written_and_no_more() {
    let _turn = beside();
    let bench = Bench::new();
    let words = "-t 1 --size 16M --only seq-write,seq-read --budget 20M";
    let done = run(&mut bench.probe(words), LONG).expect(0);
    let first = document(&done);
    // The reads need none of it.
    assert_eq!(first["ended"], Value::Null);
    let ends: Vec<&Value> = runs(&first)
        .iter()
        .map(|run| &run["ended"]["why"])
        .collect();
    assert_eq!(ends, [&Value::Null, &Value::from("budget")]);
    assert_eq!(first["wear"]["written"], 20 << 20);
    assert_eq!(bench.written_today(), 20 << 20);
    let done = run(&mut bench.probe(words), LONG).expect(1);
    assert!(
        done.error.contains("daily budget is 20.0 MiB"),
        "{}",
        done.error
    );
    bench.assert_nothing_is_left("out of budget");
}

#[test]
fn ctrl_c_ends_it_with_what_was_measured() {
    let _turn = beside();
    let bench = Bench::new();
    let probe = start(&mut bench.probe("-t 600 --size 16M --only seq-read"));
    // The file is written: the pattern begins.
    assert!(wait_until(LONG, || bench.written_today() > 0));
    probe.signal("INT");
    let done = probe.wait(LONG).expect(4);
    let document = document(&done);
    assert_eq!(document["ended"]["why"], "stopped");
    assert_eq!(document["file"], 16 << 20);
    bench.assert_nothing_is_left("after Ctrl-C");
}

/// Has the kernel refuse `io_uring_setup` (425 on all architectures) and becomes the command behind it.
const WITHOUT_RING: &str = "
import ctypes, os, struct, sys
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050000 | 1), (0x06, 0, 0, 0x7fff0000)]
filter = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
program = Program(len(steps), ctypes.addressof(filter))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn without_a_ring_threads_do_it_and_the_report_says_so() {
    let _turn = beside();
    let what = "a kernel that forbids io_uring";
    if lacks_programs(what, &["python3"]) {
        return;
    }
    let bench = Bench::new();
    let mut command = bench.command("python3");
    command.args(["-c", WITHOUT_RING, LINERATE, "disk", "probe", "--json"]);
    command.arg(bench.path());
    command.args(["-t", "1", "--size", "16M", "--only"]);
    command.arg("seq-write,rand-read-32,rand-write-32");
    let done = run(&mut command, LONG);
    if done.code() == Some(77) {
        return skipped(Need::Seccomp, what, "no filter can be set");
    }
    let document = document(&done.expect(0));
    assert_eq!(runs(&document).len(), 3);
    for run in runs(&document) {
        assert_eq!(run["engine"]["engine"], "threads", "{run}");
        assert_eq!(run["engine"]["because"]["reason"], "forbidden", "{run}");
        assert!(run["requests"].as_u64().unwrap() > 0);
    }
    bench.assert_nothing_is_left("by threads");
}

/// Moments at random, up to the length of a probe of two patterns.
fn killed_at_random_moments(times: u32) {
    let bench = Bench::new();
    for time in 0..times {
        let mut number = [0_u8; 2];
        linerate_kernel::thread::random(&mut number).unwrap();
        let millis = u64::from(u16::from_ne_bytes(number)) % 3000;
        let mut probe =
            start(&mut bench.probe("-t 1 --size 32M --only rand-write,sync --budget 1T"));
        // A moment is what is tested here.
        std::thread::sleep(Duration::from_millis(millis));
        probe.kill();
        bench.assert_nothing_is_left(&format!("killed after {millis} ms, number {time}"));
    }
}

#[test]
fn nothing_is_left_after_kill_9() {
    let _turn = beside();
    killed_at_random_moments(10);
}

#[test]
#[ignore = "takes two minutes"]
fn nothing_is_left_after_kill_9_at_fifty_moments() {
    let _turn = beside();
    killed_at_random_moments(50);
}

#[test]
fn fio_runs_its_job_in_the_file_of_the_probe() {
    let _turn = beside();
    let what = "fio in the file of the probe";
    if lacks_programs(what, &["fio"]) {
        return;
    }
    let bench = Bench::new();
    let job = bench.state.path().join("job.fio");
    let text =
        "[global]\nioengine=psync\ntime_based\nruntime=1\n[mixed]\nrw=randrw\nbs=8k\nsize=16M\n";
    fs::write(&job, text).unwrap();
    let with = |more: &str| {
        let mut command = bench.probe(&format!("-t 1 --size 16M --only rand-read {more}"));
        run(command.arg("--with-fio").arg(&job), LONG)
    };
    let document = document(&with("").expect(0));
    let fio = &document["fio"];
    assert_eq!(
        (&fio["exit_code"], &fio["cut"]),
        (&0.into(), &false.into()),
        "{fio}"
    );
    let ways = fio["jobs"][0]["ways"].as_array().unwrap();
    assert!(
        ways.iter().all(|way| way["iops"].as_f64().unwrap() > 0.0),
        "{fio}"
    );
    assert_eq!(ways.len(), 2, "{fio}");
    bench.assert_nothing_is_left("after fio");
    // Its time is bounded, and it writes its results all the same.
    fs::write(&job, text.replace("runtime=1", "runtime=1h")).unwrap();
    let document = self::document(&with("--fio-seconds 1").expect(0));
    assert_eq!(document["fio"]["cut"], true);
    assert_eq!(document["fio"]["jobs"][0]["name"], "mixed");
    // Nothing is begun with a job that may touch something else, or has no room.
    for (line, part) in [
        ("filename=/dev/sda", "'filename' is not allowed"),
        ("size=17M", "larger than the file of the probe"),
    ] {
        fs::write(&job, format!("[job]\nrw=write\n{line}\n")).unwrap();
        let before = bench.written_today();
        let done = with("").expect(2);
        assert!(done.error.contains(part), "{}", done.error);
        assert_eq!(bench.written_today(), before);
    }
}

/// A group of processes whose direct I/O on one disk is throttled (control groups 1), gone when dropped.
struct Throttled(PathBuf);

impl Throttled {
    fn new(disk: &str, iops: u32) -> std::io::Result<Self> {
        let name = format!("linerate-it-{}", std::process::id());
        let group = Self(Path::new("/sys/fs/cgroup/blkio").join(name));
        fs::create_dir(&group.0)?;
        for way in ["read", "write"] {
            let file = group.0.join(format!("blkio.throttle.{way}_iops_device"));
            fs::write(file, format!("{disk} {iops}"))?;
        }
        Ok(group)
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.0));
    }
}

#[test]
fn a_disk_of_120_iops_is_one_of_120_iops() {
    let _turn = alone();
    let what = "a throttled disk";
    let bench = Bench::new();
    let first =
        document(&run(&mut bench.probe("-t 1 --size 16M --only rand-read"), LONG).expect(0));
    let place = &first["place"];
    let disk = if place["disk"].is_null() {
        &place["device"]
    } else {
        &place["disk"]
    };
    if disk.is_null() || first["direct"]["direct"] != "yes" {
        return skipped(
            Need::DirectIo,
            what,
            "no direct I/O on a disk that the kernel names",
        );
    }
    let number = |part: &str| disk["number"][part].as_u64().unwrap();
    let number = format!("{}:{}", number("major"), number("minor"));
    let group = match Throttled::new(&number, 120) {
        Ok(group) => group,
        Err(why) => return skipped(Need::Throttle, what, &why.to_string()),
    };
    let mut command = bench.command("sh");
    command.args([
        "-c",
        "echo $$ > \"$GROUP/cgroup.procs\" && exec \"$@\"",
        "sh",
    ]);
    command.env("GROUP", &group.0).arg(LINERATE);
    command.args(["disk", "probe", "--json", "--size", "16M"]);
    command
        .args(["--only", "rand-read-32,rand-write-32"])
        .arg(bench.path());
    let document = document(&run(&mut command, LONG).expect(0));
    for figures in document["figures"].as_array().unwrap() {
        let iops = figures["iops"].as_f64().unwrap();
        assert!((117.0..=123.0).contains(&iops), "{figures}");
    }
    // The kernel lets 12 requests through each 100 ms, and a second may hold one such slice more or less.
    let flat = |figures: &Value| figures["shape"]["is"] == "flat";
    if !document["figures"].as_array().unwrap().iter().all(flat) {
        return;
    }
    let findings = document["findings"].as_array().unwrap();
    if findings[0]["id"] == "disk-shared" {
        let why = findings[0]["sentence"].as_str().unwrap();
        return skipped(Need::QuietMachine, "the verdict on a throttled disk", why);
    }
    assert_eq!(findings[0]["id"], "disk-cap", "{findings:?}");
    let cap = findings[0]["figures"][0]["value"].as_f64().unwrap();
    assert!((117.0..=123.0).contains(&cap), "{cap}");
}
