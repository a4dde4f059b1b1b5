//! fio on a job file, in the same nameless file: nothing is left of it either, and it can touch nothing else.

use std::io::{self, Read};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use linerate_kernel::clock;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{self, ChildSettings, PidFd};
use linerate_model::units::{Bytes, Nanos};

use super::error::ProbeError;

/// fio writes its results after SIGINT; then it is killed.
const PATIENCE: Nanos = Nanos::from_millis(10_000);
/// How often its writes are looked at.
const LOOK: Nanos = Nanos::from_millis(100);
/// More than this of its output is not kept.
const MOST_OUTPUT: u64 = 16 << 20;
const INTERRUPT: i32 = 2;
const KILL: i32 = 9;
/// Options of a job that name no file, start no program and write no log (fio's HOWTO).
const ALLOWED: &[&str] = &[
    "blockalign",
    "blocksize",
    "blocksize_range",
    "bs",
    "bs_unaligned",
    "bsrange",
    "bssplit",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffered",
    "clat_percentiles",
    "dedupe_percentage",
    "description",
    "direct",
    "end_fsync",
    "fallocate",
    "fdatasync",
    "filesize",
    "fsync",
    "fsync_on_close",
    "group_reporting",
    "hipri",
    "invalidate",
    "io_limit",
    "io_size",
    "iodepth",
    "iodepth_batch",
    "iodepth_batch_complete",
    "iodepth_batch_complete_max",
    "iodepth_batch_complete_min",
    "iodepth_batch_submit",
    "iodepth_low",
    "ioengine",
    "lat_percentiles",
    "latency_percentile",
    "latency_target",
    "latency_window",
    "loops",
    "name",
    "new_group",
    "nice",
    "norandommap",
    "number_ios",
    "numjobs",
    "overwrite",
    "percentage_random",
    "percentile_list",
    "prio",
    "prioclass",
    "ramp_time",
    "randrepeat",
    "randseed",
    "random_distribution",
    "random_generator",
    "rate",
    "rate_iops",
    "rate_min",
    "rate_process",
    "readwrite",
    "refill_buffers",
    "runtime",
    "rw",
    "rw_sequencer",
    "rwmixread",
    "rwmixwrite",
    "scramble_buffers",
    "size",
    "slat_percentiles",
    "softrandommap",
    "startdelay",
    "stonewall",
    "sync",
    "sync_file_range",
    "thinktime",
    "thinktime_blocks",
    "thinktime_spin",
    "thread",
    "time_based",
    "unified_rw_reporting",
    "wait_for",
    "wait_for_previous",
    "zero_buffers",
];
/// Engines that read and write files and nothing else.
const ENGINES: &[&str] = &[
    "io_uring", "libaio", "mmap", "posixaio", "psync", "pvsync", "pvsync2", "sync", "vsync",
];
const SIZES: [&str; 2] = ["size", "filesize"];

/// What fio printed, and how it ended.
#[derive(Debug)]
pub struct FioOutput {
    /// Standard output: notes, and then JSON.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code; `None`: a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether its time, or the day's budget, was over before it ended, or the user ended it.
    pub cut: bool,
}

/// A job file that was read and holds nothing that a probe does not allow.
#[derive(Debug, Clone)]
pub struct Job {
    path: PathBuf,
    /// The largest size that it names.
    largest: Bytes,
}

impl Job {
    /// Reads and judges a job file.
    ///
    /// # Errors
    /// Where it cannot be read, and where it has an option that may touch another file or start a program.
    pub fn open(path: &Path) -> Result<Self, ProbeError> {
        let refuse = |why: String| ProbeError::Fio {
            file: path.to_owned(),
            why,
        };
        // Absolute: fio runs in another folder.
        let path = std::fs::canonicalize(path)
            .map_err(|error| refuse(format!("cannot find this job file: {error}")))?;
        let text = std::fs::read_to_string(&path)
            .map_err(|error| refuse(format!("cannot read this job file: {error}")))?;
        let largest = judge(&text).map_err(refuse)?;
        Ok(Self { path, largest })
    }

    /// Whether a file of this size is enough.
    pub(super) fn fits(&self, size: Bytes) -> Result<(), ProbeError> {
        if self.largest <= size {
            return Ok(());
        }
        Err(ProbeError::Fio {
            file: self.path.clone(),
            why: format!(
                "its size of {} is larger than the file of the probe, {size}; give --size, or a smaller size in the job",
                self.largest
            ),
        })
    }
}

/// The largest size in a job file, or why it is refused.
fn judge(text: &str) -> Result<Bytes, String> {
    let mut largest = Bytes(0);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_comment = line.starts_with('#') || line.starts_with(';');
        let is_section = line.starts_with('[') && line.ends_with(']');
        if line.is_empty() || is_comment || is_section {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, value) = (key.trim(), value.trim());
        let at = format!("line {}", number + 1);
        if !ALLOWED.contains(&key) {
            return Err(format!(
                "{at}: the option '{key}' is not allowed in a probe: only options that name no file and start no program are, because fio has to stay in the file of the probe"
            ));
        }
        // fio replaces variables and has bc compute what is in brackets.
        if let Some(letter) = value.chars().find(|letter| "$`()".contains(*letter)) {
            return Err(format!(
                "{at}: '{letter}' in a value is not allowed in a probe"
            ));
        }
        if key == "ioengine" && !ENGINES.contains(&value) {
            return Err(format!(
                "{at}: the engine '{value}' is not allowed in a probe; these are: {}",
                ENGINES.join(", ")
            ));
        }
        if SIZES.contains(&key) {
            largest = largest.max(
                size(value).ok_or_else(|| format!("{at}: the size '{value}' is not understood"))?,
            );
        }
    }
    Ok(largest)
}

/// A size as fio reads it: K, M, G of 1024, also as KiB, MB …; a share of the file is no more than the file.
fn size(text: &str) -> Option<Bytes> {
    if text.ends_with('%') {
        return Some(Bytes(0));
    }
    let short = text
        .trim_end_matches(['b', 'B'])
        .trim_end_matches(['i', 'I']);
    short.to_ascii_uppercase().parse().ok()
}

/// Runs fio on the job, in the file, for at most so long; `stop` ends it, and so does the end of `allowance`.
pub(super) fn run(
    job: &Job,
    file: BorrowedFd<'_>,
    size: Bytes,
    most: Nanos,
    allowance: Bytes,
    stop: BorrowedFd<'_>,
) -> Result<(FioOutput, Ended), ProbeError> {
    let failed = |what: &str, error: &io::Error| ProbeError::Fio {
        file: job.path.clone(),
        why: format!("{what}: {error}"),
    };
    let mut command = Command::new("fio");
    command
        .args(["--output-format=json", "--eta=never", "--thread"])
        .arg(format!("--filename=/proc/self/fd/{}", file.as_raw_fd()))
        .arg(format!("--size={}", size.0))
        .arg(&job.path)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let settings = ChildSettings {
        kept: Some(file),
        largest_file: Some(size),
        ..ChildSettings::default()
    };
    let mut child = process::spawn_bound(&mut command, &settings)
        .map_err(|error| failed("cannot start fio (is it installed?)", &error))?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let ended = until_ended(&mut child, most, allowance, stop)
        .map_err(|error| failed("cannot wait for fio", &error));
    let ended = ended.inspect_err(|_| drop(child.kill()))?;
    let output = FioOutput {
        stdout: text(stdout),
        stderr: text(stderr),
        exit_code: child.wait().map_err(|error| failed("fio", &error))?.code(),
        cut: ended.cut.is_some(),
    };
    Ok((output, ended))
}

/// How fio's run went.
pub(super) struct Ended {
    /// Why it was ended; `None`: it ended by itself.
    pub(super) cut: Option<Cut>,
    /// What it wrote.
    pub(super) written: Bytes,
}

/// Why fio was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// By the user.
    Stopped,
    /// Its time was over.
    Time,
    /// Nothing more may be written today.
    Budget,
}

/// Waits for the end, which time, patience and the kernel's kill bring about at the latest.
fn until_ended(
    child: &mut Child,
    most: Nanos,
    allowance: Bytes,
    stop: BorrowedFd<'_>,
) -> io::Result<Ended> {
    let process = PidFd::open(child.id())?;
    let until = clock::monotonic().plus(most);
    let mut ended = Ended {
        cut: None,
        written: Bytes(0),
    };
    let mut kill_at: Option<Nanos> = None;
    loop {
        let mut entries = [
            PollEntry::new(process.as_fd(), Interest::READ),
            PollEntry::new(stop, Interest::READ),
        ];
        // A stop that stands would else wake it again and again.
        let waited = if kill_at.is_some() { 1 } else { 2 };
        poll::wait(&mut entries[..waited], Some(LOOK))?;
        if entries[0].readiness().readable {
            return Ok(ended);
        }
        // 0 once it has ended and was not waited for.
        let written = process::disk_use(child.id()).unwrap_or_default().written;
        ended.written = ended.written.max(written);
        let now = clock::monotonic();
        let stopped = kill_at.is_none() && entries[1].readiness().readable;
        let cut = if stopped {
            Some(Cut::Stopped)
        } else if ended.written >= allowance {
            Some(Cut::Budget)
        } else {
            (now >= until).then_some(Cut::Time)
        };
        match kill_at {
            None if cut.is_some() => {
                ended.cut = cut;
                process.signal(INTERRUPT)?;
                kill_at = Some(now.plus(PATIENCE));
            }
            Some(at) if now >= at => process.signal(KILL)?,
            _ => {}
        }
    }
}

/// Reads to the end beside everything else: fio waits where nobody reads.
fn collect(from: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    let mut from = from?;
    let read = move || {
        let mut kept = Vec::new();
        drop(from.by_ref().take(MOST_OUTPUT).read_to_end(&mut kept));
        drop(io::copy(&mut from, &mut io::sink()));
        kept
    };
    std::thread::Builder::new().spawn(read).ok()
}

fn text(collected: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = collected.and_then(|thread| thread.join().ok());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_stays_in_its_file_is_allowed() {
        let text = "; a comment\n[global]\nioengine=libaio\ndirect=1\ntime_based\n\n# another\n[one]\n\
            rw = randread\nbs=4k\nsize=256M\n[two]\nsize=1GiB\n[three]\nsize=50%\n";
        assert_eq!(judge(text), Ok(Bytes(1 << 30)));
    }

    #[test]
    fn what_may_touch_something_else_is_refused() {
        for (line, part) in [
            ("filename=/dev/sda", "'filename' is not allowed"),
            ("directory=/", "'directory'"),
            ("include other.fio", "'include other.fio'"),
            ("exec_prerun=rm -rf /", "'exec_prerun'"),
            ("write_bw_log=/etc/x", "'write_bw_log'"),
            ("ioengine=external:/tmp/evil.so", "the engine"),
            ("ioengine=libblkio", "the engine"),
            ("size=${SIZE}", "'$' in a value"),
            ("size=`id`", "'`' in a value"),
            ("bs=(4*1024)", "'(' in a value"),
            ("size=huge", "not understood"),
            ("unlink=1", "'unlink'"),
        ] {
            let why = judge(&format!("[job]\n{line}\n")).unwrap_err();
            assert!(
                why.starts_with("line 2: ") && why.contains(part),
                "{line}: {why}"
            );
        }
    }
}
