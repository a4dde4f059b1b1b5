//! Our own program on the hosts of a lab: `linerate serve`, and clients.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use linerate_kernel::event::EventFd;
use linerate_kernel::process::ChildSettings;
use linerate_lab::runner::Host;

use crate::action::Failure;
use crate::announcement::Announcement;

/// The running program's own file, even where it was replaced since.
const OURSELVES: &str = "/proc/self/exe";

/// Our program with these arguments.
pub(crate) fn linerate<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(OURSELVES);
    command.arg0("linerate").stdin(Stdio::null());
    command.args(arguments.into_iter().map(Into::into));
    command
}

/// A child that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) child: Child,
}

impl Drop for Program {
    fn drop(&mut self) {
        // Gone already, or about to be.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Program {
    pub(super) fn start(
        host: &Host,
        command: &mut Command,
        settings: &ChildSettings<'_>,
    ) -> Result<Self, Failure> {
        // A terminal's Ctrl-C is for us, who pass it on to whom it concerns, once.
        command.process_group(0);
        let child = host.spawn_with(command, settings)?;
        Ok(Self { child })
    }
}

/// `linerate serve` on a host, listening.
#[derive(Debug)]
pub(super) struct Serving {
    program: Program,
    /// Raised once the first test's streams run, and again once it has ended.
    pub(super) news: Arc<EventFd>,
    first: Arc<FirstTest>,
    reader: Option<JoinHandle<()>>,
}

impl Serving {
    /// Starts it and waits until it listens.
    pub(super) fn start(
        host: &Host,
        more: &[String],
        settings: &ChildSettings<'_>,
    ) -> Result<Self, Failure> {
        let mut command = linerate(["serve", "--json-stream"]);
        command
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut program = Program::start(host, &mut command, settings)?;
        let failed = |why: &str| {
            Failure::Lab(format!(
                "`linerate serve` on the lab's {} did not start: {why}",
                host.name()
            ))
        };
        let out = program
            .child
            .stdout
            .take()
            .ok_or_else(|| failed("no output"))?;
        let mut out = BufReader::new(out);
        let mut line = String::new();
        let listens = matches!(out.read_line(&mut line), Ok(length) if length > 0);
        let said = Announcement::read(&line);
        if !listens || !matches!(said, Some(Announcement::Listening { .. })) {
            return Err(failed(&complaint(program.child.stderr.take())));
        }
        let news = EventFd::new().map_err(|error| failed(&error.to_string()))?;
        let (news, first) = (Arc::new(news), Arc::new(FirstTest::default()));
        let (event, test) = (Arc::clone(&news), Arc::clone(&first));
        let reader = std::thread::spawn(move || listen(out, &event, &test));
        Ok(Self {
            program,
            news,
            first,
            reader: Some(reader),
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.program.child.id()
    }

    /// Whether the first test's streams run or have run.
    pub(super) fn has_begun(&self) -> bool {
        self.first.begun.load(Ordering::Acquire)
    }

    /// Whether the first test is over for the server.
    pub(super) fn has_ended(&self) -> bool {
        self.first.ended.load(Ordering::Acquire)
    }
}

/// How far the first test is.
#[derive(Debug, Default)]
struct FirstTest {
    begun: AtomicBool,
    ended: AtomicBool,
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.program.child.kill());
        if let Some(reader) = self.reader.take() {
            // It ends with the pipe.
            drop(reader.join());
        }
    }
}

/// Reads what the server says to its end, so that it never waits for a reader.
fn listen(mut out: BufReader<ChildStdout>, news: &EventFd, first: &FirstTest) {
    let mut line = String::new();
    while matches!(out.read_line(&mut line), Ok(length) if length > 0) {
        let said = Announcement::read(&line);
        let reached = [
            (
                said.as_ref().is_some_and(Announcement::is_start),
                &first.begun,
            ),
            (said == Some(Announcement::Finished), &first.ended),
        ];
        for (now, flag) in reached {
            if now && !flag.swap(true, Ordering::AcqRel) {
                drop(news.raise());
            }
        }
        line.clear();
    }
}

/// The last words of a program that ended.
fn complaint(stderr: Option<ChildStderr>) -> String {
    let lines = stderr.map(|stderr| BufReader::new(stderr).lines().map_while(Result::ok));
    let last = lines.and_then(Iterator::last);
    last.unwrap_or_else(|| "it said nothing".to_owned())
}
