//! The children of a run: each does one thing, within its own limit. One that cannot be ended (it waits in the kernel, state D) is left
//! behind and remembered, and what it was to do is not begun again before it is gone.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Read, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{self, ChildSettings, PidFd};
use linerate_model::units::Nanos;
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};

use super::order::{LONGEST, Order};
use crate::lab::ourselves;
use crate::place::unix_ms;

/// Nothing that a child prints is longer, bytes. Slurm says 200 bytes of a node, and has 10,000 of them.
const MOST_OUTPUT: usize = 8 << 20;
/// A child that was killed has ended by then, unless it waits in the kernel.
const TO_END: Duration = Duration::from_millis(500);
/// How often it is looked whether what a child had started has ended.
const BETWEEN: Duration = Duration::from_millis(10);
const KILL: i32 = 9;

/// What is asked of a child.
pub(super) struct Ask<'a> {
    /// By which it is remembered where it hangs.
    pub(super) name: &'a str,
    pub(super) order: Order,
    pub(super) limit: Duration,
}

/// How a child came to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With this exit code; `None`: by a signal.
    By(Option<i32>),
    /// It did not within its limit, and was killed; `Some`: that did not end it.
    Silent(Option<u32>),
    /// It was not begun: one of an earlier run still hangs, for so long.
    StillHangs { pid: u32, since: Duration },
    /// It could not be begun.
    NotBegun(String),
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) out: Vec<u8>,
    pub(super) error: String,
    pub(super) ended: Ended,
    pub(super) took: Duration,
}

impl Reply {
    fn without(ended: Ended) -> Self {
        Self {
            out: Vec::new(),
            error: String::new(),
            ended,
            took: Duration::ZERO,
        }
    }
}

/// A child that may still hang in a later run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Hanging {
    pid: u32,
    /// With its number it names it for good.
    ticks: u64,
    since: UnixMillis,
}

/// Where children are remembered: files in memory, one each.
#[derive(Debug, Clone)]
pub(super) struct Remembered(Option<PathBuf>);

impl Remembered {
    /// In this folder; `None`: nowhere.
    pub(super) fn at(folder: Option<&Path>) -> Self {
        Self(folder.map(|folder| folder.join("children")))
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        // Names may be longer than a file's, and hold anything.
        let mut hash = DefaultHasher::new();
        name.hash(&mut hash);
        Some(self.0.as_ref()?.join(format!("{:016x}", hash.finish())))
    }

    /// The child of an earlier run that still hangs on this.
    fn hanging(&self, name: &str) -> Option<Hanging> {
        let file = self.file(name)?;
        let text = std::fs::read_to_string(&file).ok()?;
        let hanging: Option<Hanging> = serde_json::from_str(&text).ok();
        // A process that it had started may hang alone: while the group lives, its number is no other process's.
        let lives = |one: &Hanging| match process::start_ticks(one.pid) {
            Some(ticks) => ticks == one.ticks,
            None => process::group_lives(one.pid),
        };
        let alive = hanging.filter(lives);
        if alive.is_none() {
            drop(std::fs::remove_file(file));
        }
        alive
    }

    fn keep(&self, name: &str, pid: u32) {
        let (Some(file), Some(ticks)) = (self.file(name), process::start_ticks(pid)) else {
            return;
        };
        let since = UnixMillis(unix_ms());
        let hanging = Hanging { pid, ticks, since };
        // Where memory is full the check may be begun again beside the one that hangs.
        drop(std::fs::write(
            file,
            serde_json::to_string(&hanging).unwrap_or_default(),
        ));
    }

    fn forget(&self, name: &str) {
        if let Some(file) = self.file(name) {
            drop(std::fs::remove_file(file));
        }
    }
}

/// A child that runs.
struct Running {
    child: Child,
    ended: PidFd,
    out: Listener<ChildStdout>,
    error: Listener<ChildStderr>,
    begun: Instant,
    /// When it is killed, or given up where it was.
    end: Instant,
    killed: bool,
}

/// One of its pipes, until its end.
struct Listener<P> {
    pipe: Option<P>,
    said: Vec<u8>,
}

impl<P: Read + AsFd> Listener<P> {
    const fn new(pipe: P) -> Self {
        Self {
            pipe: Some(pipe),
            said: Vec::new(),
        }
    }

    /// Takes what is there, without waiting.
    fn listen(&mut self) {
        let mut piece = [0; 8192];
        while let Some(pipe) = &mut self.pipe {
            if !is_ready(&*pipe) {
                return;
            }
            match pipe.read(&mut piece) {
                Ok(length) if length > 0 => {
                    let room = MOST_OUTPUT.saturating_sub(self.said.len());
                    self.said.extend_from_slice(&piece[..length.min(room)]);
                }
                // Its end, or what ends it.
                _ => self.pipe = None,
            }
        }
    }
}

fn is_ready(fd: impl AsFd) -> bool {
    let mut entries = [PollEntry::new(fd.as_fd(), Interest::READ)];
    poll::wait(&mut entries, Some(Nanos(0))).is_ok_and(|ready| ready > 0)
}

impl Running {
    /// Takes what it has said; how it came to its end, where it did.
    fn step(&mut self, now: Instant) -> Option<Ended> {
        // Asked first: what it said before its end is then all there.
        let has_ended = is_ready(&self.ended);
        self.out.listen();
        self.error.listen();
        if has_ended {
            // What it started itself ends with it, or hangs and is waited for as it would be.
            drop(process::signal_group(self.child.id(), KILL));
            let code = self.child.wait().ok().and_then(|status| status.code());
            if self.killed && process::group_lives(self.child.id()) {
                if now < self.end {
                    std::thread::sleep(BETWEEN);
                    return None;
                }
                return Some(Ended::Silent(Some(self.child.id())));
            }
            return Some(if self.killed {
                Ended::Silent(None)
            } else {
                Ended::By(code)
            });
        }
        if now < self.end {
            return None;
        }
        if self.killed {
            return Some(Ended::Silent(Some(self.child.id())));
        }
        drop(process::signal_group(self.child.id(), KILL));
        self.killed = true;
        self.end = now + TO_END;
        None
    }
}

/// Asks them all at once, and gives back what came of each, in the same order.
pub(super) fn ask_all(asks: &[Ask<'_>], remembered: &Remembered) -> Vec<Reply> {
    let mut replies: Vec<Option<Reply>> = Vec::new();
    let mut running: Vec<Option<Running>> = Vec::new();
    for ask in asks {
        let (reply, child) = match begin(ask, remembered) {
            Ok(child) => (None, Some(child)),
            Err(ended) => (Some(Reply::without(ended)), None),
        };
        replies.push(reply);
        running.push(child);
    }
    while running.iter().any(Option::is_some) {
        wait(&running);
        let now = Instant::now();
        for (number, slot) in running.iter_mut().enumerate() {
            let Some(child) = slot else { continue };
            let Some(ended) = child.step(now) else {
                continue;
            };
            if !matches!(ended, Ended::Silent(Some(_))) {
                remembered.forget(asks[number].name);
            }
            replies[number] = Some(Reply {
                out: std::mem::take(&mut child.out.said),
                error: String::from_utf8_lossy(&child.error.said).into_owned(),
                ended,
                took: child.begun.elapsed(),
            });
            *slot = None;
        }
    }
    replies.into_iter().flatten().collect()
}

/// Asks one.
pub(super) fn ask(ask: &Ask<'_>, remembered: &Remembered) -> Reply {
    let mut replies = ask_all(std::slice::from_ref(ask), remembered);
    let none = || Reply::without(Ended::NotBegun("no reply".to_owned()));
    replies.pop().unwrap_or_else(none)
}

fn begin(ask: &Ask<'_>, remembered: &Remembered) -> Result<Running, Ended> {
    if let Some(hanging) = remembered.hanging(ask.name) {
        let since = UnixMillis(unix_ms()).since(hanging.since);
        return Err(Ended::StillHangs {
            pid: hanging.pid,
            since: Duration::from_millis(since),
        });
    }
    spawn(ask, remembered).map_err(|error| Ended::NotBegun(error.to_string()))
}

fn spawn(ask: &Ask<'_>, remembered: &Remembered) -> std::io::Result<Running> {
    let text = serde_json::to_string(&ask.order)?;
    if text.len() > LONGEST {
        return Err(std::io::Error::other(format!(
            "what is asked takes {} bytes, and {LONGEST} are the most",
            text.len()
        )));
    }
    let mut command = ourselves(["check", "--one"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // What it starts ends with it.
        .process_group(0);
    let begun = Instant::now();
    let mut child = process::spawn_bound(&mut command, &ChildSettings::default())?;
    remembered.keep(ask.name, child.id());
    let missing = || std::io::Error::other("it has no pipes");
    let ended = PidFd::open(child.id())?;
    let out = child.stdout.take().ok_or_else(missing)?;
    let error = child.stderr.take().ok_or_else(missing)?;
    let mut stdin = child.stdin.take().ok_or_else(missing)?;
    // A child that ended at once does not read it.
    drop(stdin.write_all(text.as_bytes()));
    Ok(Running {
        child,
        ended,
        out: Listener::new(out),
        error: Listener::new(error),
        begun,
        end: begun + ask.limit,
        killed: false,
    })
}

/// Waits until one has said something or has ended, or the first limit has come.
fn wait(running: &[Option<Running>]) {
    let mut entries = Vec::new();
    let mut end: Option<Instant> = None;
    for child in running.iter().flatten() {
        let pipes = [
            Some(child.ended.as_fd()),
            child.out.pipe.as_ref().map(AsFd::as_fd),
            child.error.pipe.as_ref().map(AsFd::as_fd),
        ];
        let open = pipes.into_iter().flatten();
        entries.extend(open.map(|fd| PollEntry::new(fd, Interest::READ)));
        end = Some(end.map_or(child.end, |end| end.min(child.end)));
    }
    let left = end.map(|end| end.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| u64::try_from(left.as_nanos()).ok());
    // What cannot be polled for want of memory is looked at again.
    drop(poll::wait(&mut entries, left.map(Nanos)));
}
