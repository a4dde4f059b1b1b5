//! The carrier's process and its streams, or the connection in its place.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use linerate_kernel::clock;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{Bond, ChildSettings, signal_group, spawn_bound};
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;

/// Bytes of standard error that are kept.
const KEPT: usize = 4 << 10;
/// What a pipe takes without blocking once it is writable, bytes (`PIPE_BUF`).
const PIPE_BUF: usize = 4096;
/// How often an ending process is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// `SIGTERM` and `SIGKILL`.
const TERMINATE: i32 = 15;
const KILL: i32 = 9;

/// Where bytes for the agent go.
#[derive(Debug)]
pub(super) enum Sink {
    Pipe(ChildStdin),
    Socket(UnixStream),
}

/// Where the agent's bytes come from.
#[derive(Debug)]
enum Source {
    Pipe(ChildStdout),
    Socket(UnixStream),
}

impl AsFd for Sink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pipe(pipe) => pipe.as_fd(),
            Self::Socket(socket) => socket.as_fd(),
        }
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pipe(pipe) => pipe.as_fd(),
            Self::Socket(socket) => socket.as_fd(),
        }
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.write(bytes),
            Self::Socket(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.read(piece),
            Self::Socket(socket) => socket.read(piece),
        }
    }
}

/// A carrier that runs, or a connection. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Far {
    /// Absent where the agent itself connected.
    child: Option<Child>,
    /// Absent once the far end has been told that no more comes.
    pub(super) stdin: Option<Sink>,
    stdout: Source,
    stderr: Option<ChildStderr>,
    said: Vec<u8>,
}

impl Far {
    /// Starts the carrier, bound to this thread.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A terminal's Ctrl-C is for us.
            .process_group(0);
        let settings = ChildSettings {
            bond: Bond::Terminate,
            ..ChildSettings::default()
        };
        let mut child = spawn_bound(&mut command, &settings)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (stdin, Some(stdout), stderr) = streams else {
            return Err(io::Error::other("it has no standard output"));
        };
        Ok(Self {
            child: Some(child),
            stdin: stdin.map(Sink::Pipe),
            stdout: Source::Pipe(stdout),
            stderr,
            said: Vec::new(),
        })
    }

    /// A connection that an agent made.
    pub(super) fn over(stream: UnixStream) -> io::Result<Self> {
        Ok(Self {
            child: None,
            stdin: Some(Sink::Socket(stream.try_clone()?)),
            stdout: Source::Socket(stream),
            stderr: None,
            said: Vec::new(),
        })
    }

    /// Waits, at most so long, until there is something to read, `also` is readable, or, where `writes`, something may
    /// be written. Keeps what came on standard error; `None` where nothing came on standard output, an empty piece at
    /// its end.
    pub(super) fn receive<'p>(
        &mut self,
        piece: &'p mut [u8],
        patience: Nanos,
        writes: bool,
        also: Option<&linerate_kernel::event::EventFd>,
    ) -> io::Result<Option<&'p [u8]>> {
        let mut entries = vec![PollEntry::new(self.stdout.as_fd(), Interest::READ)];
        if let Some(also) = also {
            entries.push(PollEntry::new(also.as_fd(), Interest::READ));
        }
        if let Some(stdin) = self.stdin.as_ref().filter(|_| writes) {
            entries.push(PollEntry::new(stdin.as_fd(), Interest::WRITE));
        }
        if let Some(stderr) = &self.stderr {
            entries.push(PollEntry::new(stderr.as_fd(), Interest::READ));
        }
        poll::wait(&mut entries, Some(patience))?;
        let readable = entries[0].readiness().any();
        let said = entries.last().is_some_and(|last| last.readiness().any());
        drop(entries);
        if said {
            self.hear(piece);
        }
        if !readable {
            return Ok(None);
        }
        loop {
            match self.stdout.read(piece) {
                Ok(length) => return Ok(Some(&piece[..length])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes what stands on standard error, if anything does.
    pub(super) fn hear(&mut self, piece: &mut [u8]) {
        let Some(stderr) = &mut self.stderr else {
            return;
        };
        let mut entries = [PollEntry::new(stderr.as_fd(), Interest::READ)];
        let ready = poll::wait(&mut entries, Some(Nanos::ZERO)).is_ok();
        if !ready || !entries[0].readiness().any() {
            return;
        }
        match stderr.read(piece) {
            Ok(0) | Err(_) => self.stderr = None,
            Ok(length) => {
                self.said.extend_from_slice(&piece[..length]);
                let more = self.said.len().saturating_sub(KEPT);
                self.said.drain(..more);
            }
        }
    }

    /// What standard error has had, the last 4 KiB.
    pub(super) fn heard(&self) -> String {
        String::from_utf8_lossy(&self.said).into_owned()
    }

    /// The last line on standard error that says something.
    pub(super) fn last_words(&self) -> PlainText {
        let said = self.heard();
        let line = said.lines().rfind(|line| !line.trim().is_empty());
        PlainText::from(line.unwrap_or_default().trim())
    }

    /// Writes as much as the pipe takes now; 0 where it takes nothing.
    pub(super) fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stdin) = &mut self.stdin else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut entries = [PollEntry::new(stdin.as_fd(), Interest::WRITE)];
        poll::wait(&mut entries, Some(Nanos::ZERO))?;
        if !entries[0].readiness().any() {
            return Ok(0);
        }
        stdin.write(&bytes[..bytes.len().min(PIPE_BUF)])
    }

    /// Ends it: first by the end of its input, then by signals. Returns once it is gone.
    pub(super) fn end(&mut self, grace: Nanos) {
        self.stdin = None;
        if let Source::Socket(socket) = &self.stdout {
            drop(socket.shutdown(Shutdown::Both));
        }
        let Some(first) = self.child.as_ref().map(Child::id) else {
            return;
        };
        let mut piece = [0; 4096];
        if !self.has_ended(grace) {
            drop(signal_group(first, TERMINATE));
            if !self.has_ended(Nanos::from_millis(1000)) {
                drop(signal_group(first, KILL));
            }
        }
        drop(self.child.as_mut().map(Child::wait));
        self.hear(&mut piece);
    }

    /// Whether it has ended within so long. Its output is thrown away meanwhile, so that it does not wait for us.
    fn has_ended(&mut self, patience: Nanos) -> bool {
        let until = clock::monotonic().plus(patience);
        let mut piece = [0; 4096];
        let mut open = true;
        loop {
            match self.child.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => {}
                Some(Ok(Some(_)) | Err(_)) | None => return true,
            }
            let left = until.since(clock::monotonic());
            if left == Nanos::ZERO {
                return false;
            }
            if open {
                let look = Nanos::from_millis(20).min(left);
                let came = self.receive(&mut piece, look, false, None);
                open = !matches!(came, Ok(Some([])) | Err(_));
            } else {
                std::thread::sleep(LOOK);
            }
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.end(Nanos::ZERO);
    }
}
