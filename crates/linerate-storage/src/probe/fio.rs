//! fio on a job file, in the same nameless file: nothing is left of it either, and it can touch nothing else.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use linerate_kernel::clock;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{self, ChildSettings, PidFd};
use linerate_kernel::process_io;
use linerate_model::units::{Bytes, Nanos};
use rustix::fs::{MemfdFlags, memfd_create};

use super::error::ProbeError;

/// fio writes its results after SIGINT; then it is killed, and waited for as long: the kernel ends nobody who waits for a disk.
const PATIENCE: Nanos = Nanos::from_millis(10_000);
/// How often its writes are looked at.
const LOOK: Nanos = Nanos::from_millis(100);
/// More than this of its output is not kept.
const MOST_OUTPUT: u64 = 16 << 20;
/// fio splits lines that do not fit into its buffer (4096 bytes, `__parse_jobs_ini` of init.c), and takes the rest for another.
const LONGEST_LINE: usize = 1000;
/// A longer file is no job.
const MOST_INPUT: u64 = 1 << 20;
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
    /// What fio is given: the lines that were judged, and nothing else.
    lines: String,
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
        let text =
            read(path).map_err(|error| refuse(format!("cannot read this job file: {error}")))?;
        let (lines, largest) = judge(&text).map_err(refuse)?;
        Ok(Self {
            path: path.to_owned(),
            lines,
            largest,
        })
    }

    /// The lines that were judged in a file without a name: what becomes of the user's file meanwhile does not matter.
    fn file(&self) -> io::Result<File> {
        let mut file = File::from(memfd_create(c"fio-job", MemfdFlags::CLOEXEC)?);
        file.write_all(self.lines.as_bytes())?;
        file.rewind()?;
        Ok(file)
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

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(MOST_INPUT + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MOST_INPUT {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(text)
}

/// The lines of a job file that say something, and the largest size in them; or why it is refused.
fn judge(text: &str) -> Result<(String, Bytes), String> {
    let (mut lines, mut largest) = (String::new(), Bytes(0));
    for (number, line) in text.lines().enumerate() {
        let at = |why: String| format!("line {}: {why}", number + 1);
        let line = whole(line).map_err(at)?;
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if !(line.starts_with('[') && line.ends_with(']')) {
            largest = largest.max(option(line).map_err(at)?);
        }
        lines.push_str(line);
        lines.push('\n');
    }
    Ok((lines, largest))
}

/// A line that fio reads as this one and no other, without blanks around it.
fn whole(line: &str) -> Result<&str, String> {
    if line.len() > LONGEST_LINE {
        return Err(format!(
            "longer than {LONGEST_LINE} bytes: fio splits long lines, so that what is judged is not what it reads"
        ));
    }
    let line = line.trim();
    if line
        .chars()
        .any(|letter| letter.is_control() && letter != '\t')
    {
        return Err("a NUL or another control character is not allowed in a probe".to_owned());
    }
    if line.ends_with('\\') {
        return Err(
            "a backslash that continues the line is not allowed in a probe: write it as one line"
                .to_owned(),
        );
    }
    Ok(line)
}

/// The size that an option names, 0 for others; or why it is refused.
fn option(line: &str) -> Result<Bytes, String> {
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    let (key, value) = (key.trim(), value.trim());
    if !ALLOWED.contains(&key) {
        return Err(format!(
            "the option '{key}' is not allowed in a probe: only options that name no file and start no program are, because fio has to stay in the file of the probe"
        ));
    }
    // fio replaces variables and has bc compute what is in brackets.
    if let Some(letter) = value.chars().find(|letter| "$`()".contains(*letter)) {
        return Err(format!("'{letter}' in a value is not allowed in a probe"));
    }
    if key == "ioengine" && !ENGINES.contains(&value) {
        return Err(format!(
            "the engine '{value}' is not allowed in a probe; these are: {}",
            ENGINES.join(", ")
        ));
    }
    if SIZES.contains(&key) {
        return size(value).ok_or_else(|| format!("the size '{value}' is not understood"));
    }
    Ok(Bytes(0))
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

/// Runs fio on the job, in the file, for at most so long; `stop` ends it, and so does the end of `allowance`. What it printed,
/// or that it did not end.
pub(super) fn run(
    job: &Job,
    file: BorrowedFd<'_>,
    size: Bytes,
    most: Nanos,
    allowance: Bytes,
    stop: BorrowedFd<'_>,
) -> Result<(Result<FioOutput, ProbeError>, Ended), ProbeError> {
    let refuse = |why: String| ProbeError::Fio {
        file: job.path.clone(),
        why,
    };
    let failed = |what: &str, error: &io::Error| refuse(format!("{what}: {error}"));
    let lines = job
        .file()
        .map_err(|error| failed("cannot keep the job in memory", &error))?;
    let mut command = Command::new("fio");
    command
        .args(["--output-format=json", "--eta=never", "--thread=1"])
        .arg(format!("--filename=/proc/self/fd/{}", file.as_raw_fd()))
        .arg(format!("--size={}", size.0))
        // The job is read from standard input.
        .arg("-")
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::from(lines))
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
    let ended = until_ended(&child, most, PATIENCE, allowance, stop);
    // Whatever it may have started holds its output, which is read to the end.
    drop(process::signal_group(child.id(), KILL));
    let ended = ended.map_err(|error| failed("cannot wait for fio", &error))?;
    if ended.cut == Some(Cut::NoEnd) {
        let why = format!(
            "fio did not end, pid {}: it waits for the disk, and ends when that answers",
            child.id()
        );
        return Ok((Err(refuse(why)), ended));
    }
    let output = FioOutput {
        stdout: text(stdout),
        stderr: text(stderr),
        exit_code: child.wait().map_err(|error| failed("fio", &error))?.code(),
        cut: ended.cut.is_some(),
    };
    Ok((Ok(output), ended))
}

/// How fio's run went.
#[derive(Debug)]
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
    /// It was killed and is still there.
    NoEnd,
}

/// Waits for the end of a child that leads a process group. When it is to end, its group is interrupted, and after some
/// patience killed; after as much again nobody waits for it. A stop of the user shortens each wait.
fn until_ended(
    child: &Child,
    most: Nanos,
    patience: Nanos,
    allowance: Bytes,
    stop: BorrowedFd<'_>,
) -> io::Result<Ended> {
    let process = PidFd::open(child.id())?;
    let until = clock::monotonic().plus(most);
    let mut ended = Ended {
        cut: None,
        written: Bytes(0),
    };
    // The signal that it was sent last, and until when that may take.
    let mut sent: Option<(i32, Nanos)> = None;
    loop {
        let mut entries = [
            PollEntry::new(process.as_fd(), Interest::READ),
            PollEntry::new(stop, Interest::READ),
        ];
        // A stop that stands would else wake it again and again.
        let was_stopped = ended.cut == Some(Cut::Stopped);
        let waited = if was_stopped { 1 } else { 2 };
        poll::wait(&mut entries[..waited], Some(LOOK))?;
        if entries[0].readiness().readable {
            return Ok(ended);
        }
        // 0 once it has ended and was not waited for.
        let written = process_io::of(child.id()).map_or(Bytes(0), |io| Bytes(io.written_bytes));
        ended.written = ended.written.max(written);
        let now = clock::monotonic();
        let stopped = !was_stopped && entries[1].readiness().readable;
        if stopped {
            ended.cut = Some(Cut::Stopped);
        } else if ended.cut.is_none() && ended.written >= allowance {
            ended.cut = Some(Cut::Budget);
        } else if ended.cut.is_none() && now >= until {
            ended.cut = Some(Cut::Time);
        }
        let signal = match sent {
            None => ended.cut.map(|_| INTERRUPT),
            Some((_, at)) if now < at && !stopped => None,
            Some((INTERRUPT, _)) => Some(KILL),
            Some(_) => {
                ended.cut = Some(Cut::NoEnd);
                return Ok(ended);
            }
        };
        if let Some(signal) = signal {
            process::signal_group(child.id(), signal)?;
            sent = Some((signal, now.plus(patience)));
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
    use std::io::{BufRead as _, BufReader};

    use linerate_kernel::event::EventFd;

    use super::*;

    #[test]
    fn a_job_that_stays_in_its_file_is_allowed() {
        let text = "; a comment\n[global]\nioengine=libaio\ndirect=1\ntime_based\n\n# another\n[one]\n\
            rw = randread\nbs=4k\nsize=256M\n[two]\nsize=1GiB\n[three]\nsize=50%\n";
        let lines = "[global]\nioengine=libaio\ndirect=1\ntime_based\n[one]\nrw = randread\nbs=4k\nsize=256M\n\
            [two]\nsize=1GiB\n[three]\nsize=50%\n";
        assert_eq!(judge(text), Ok((lines.to_owned(), Bytes(1 << 30))));
    }

    #[test]
    fn fio_reads_what_was_judged_whatever_becomes_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.fio");
        std::fs::write(&path, "# mine\n[job]\n  bs=4k  \n").unwrap();
        let job = Job::open(&path).unwrap();
        std::fs::write(&path, "[job]\nfilename=/dev/sda\n").unwrap();
        let mut read = String::new();
        job.file().unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, "[job]\nbs=4k\n");
        let error = Job::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 2: the option 'filename'"), "{error}");
        let large = format!("# {}\n", "x".repeat(900)).repeat(1300);
        std::fs::write(&path, large).unwrap();
        let error = Job::open(&path).unwrap_err().to_string();
        assert!(error.contains("larger than 1 MiB"), "{error}");
    }

    #[test]
    fn lines_that_fio_may_read_as_others_are_refused() {
        let padded = |length: usize| format!("description={}", "x".repeat(length - 12));
        assert!(judge(&padded(1000)).is_ok());
        let hidden = format!("{}filename=/dev/sda", padded(4095));
        let comment = format!("# {}filename=/dev/sda", "x".repeat(4093));
        for (text, part) in [
            (padded(1001).as_str(), "longer than 1000 bytes"),
            (hidden.as_str(), "longer than"),
            (comment.as_str(), "longer than"),
            ("bs=4k\0\n", "a NUL"),
            ("#\0\n", "a NUL"),
            ("bs=4k\rfilename=/dev/sda", "control character"),
            ("description=a \\\nfilename=/dev/sda", "a backslash"),
            ("# a \\ \nbs=4k", "a backslash"),
        ] {
            let why = judge(text).unwrap_err();
            assert!(why.starts_with("line 1: ") && why.contains(part), "{why}");
        }
    }

    /// A program in a group of its own that has said a word.
    fn started(script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
        // A shell cannot trap what was ignored when it was started, as by nohup.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT", "sh", "-c", script])
            .process_group(0)
            .stdout(Stdio::piped());
        let mut child = process::spawn_bound(&mut command, &ChildSettings::default()).unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        (child, said)
    }

    #[test]
    fn what_does_not_hear_is_killed_with_all_that_it_started() {
        let (mut child, mut said) = started("trap '' INT; sleep 300 & echo ready; wait");
        let stop = EventFd::new().unwrap();
        let patience = Nanos::from_millis(50);
        let all = Bytes(u64::MAX);
        let ended = until_ended(&child, Nanos::ZERO, patience, all, stop.as_fd()).unwrap();
        assert_eq!(ended.cut, Some(Cut::Time));
        assert_eq!(child.wait().unwrap().code(), None);
        // Ends when nobody holds the other end.
        assert_eq!(said.read_to_end(&mut Vec::new()).unwrap(), 0);
    }

    #[test]
    fn a_stop_shortens_the_patience() {
        let (mut child, mut said) =
            started("trap 'echo heard' INT; echo ready; sleep 300 & while :; do wait; done");
        let stop = EventFd::new().unwrap();
        let hour = Nanos::from_millis(3_600_000);
        let all = Bytes(u64::MAX);
        let ended = std::thread::scope(|scope| {
            let waits =
                scope.spawn(|| until_ended(&child, Nanos::ZERO, hour, all, stop.as_fd()).unwrap());
            let mut heard = String::new();
            said.read_line(&mut heard).unwrap();
            assert_eq!(heard, "heard\n");
            stop.raise().unwrap();
            waits.join().unwrap()
        });
        assert_eq!(ended.cut, Some(Cut::Stopped));
        assert_eq!(child.wait().unwrap().code(), None);
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
            ("thread=0", "'thread'"),
        ] {
            let why = judge(&format!("[job]\n{line}\n")).unwrap_err();
            assert!(
                why.starts_with("line 2: ") && why.contains(part),
                "{line}: {why}"
            );
        }
    }
}
