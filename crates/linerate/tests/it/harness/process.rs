//! Processes that end with the test, their output as it comes.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{LINERATE, assert_harmless, wait_until};

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    what: String,
    started: Instant,
    out: Collected,
    error: Collected,
}

#[derive(Debug)]
struct Collected {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

/// A process that ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) error: String,
    pub(crate) took: Duration,
    pub(crate) what: String,
}

/// Our binary with some words.
pub(crate) fn linerate(words: &str) -> Command {
    let mut command = Command::new(LINERATE);
    command.args(words.split_whitespace());
    command
}

/// Starts a process without standard input.
pub(crate) fn start(command: &mut Command) -> Running {
    start_with(command, Stdio::null())
}

/// Starts a process.
pub(crate) fn start_with(command: &mut Command, input: Stdio) -> Running {
    let what = format!("{command:?}");
    let mut child = command
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let out = Collected::from(child.stdout.take().unwrap());
    let error = Collected::from(child.stderr.take().unwrap());
    Running {
        child,
        what,
        started: Instant::now(),
        out,
        error,
    }
}

/// Runs a process to its end, which must come within the limit.
#[track_caller]
pub(crate) fn run(command: &mut Command, limit: Duration) -> Done {
    start(command).wait(limit)
}

/// Sends a signal to a process that the test started.
fn signal(pid: u32, name: &str) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{name} {pid}")])
        .status();
    assert!(sent.unwrap().success(), "kill -{name} {pid}");
}

impl Collected {
    fn from(source: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut source = BufReader::new(source);
            let mut line = Vec::new();
            while source
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                shared
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self {
            text,
            reader: Some(reader),
        }
    }

    fn so_far(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.so_far()
    }
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Standard output until now.
    pub(crate) fn out(&self) -> String {
        self.out.so_far()
    }

    /// Standard error until now.
    pub(crate) fn error(&self) -> String {
        self.error.so_far()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    pub(crate) fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn wait(mut self, limit: Duration) -> Done {
        let ended = wait_until(limit, || self.ended());
        assert!(
            ended,
            "{} did not end within {limit:?}\n{}{}",
            self.what,
            self.out(),
            self.error()
        );
        Done {
            status: self.child.wait().unwrap(),
            took: self.started.elapsed(),
            out: self.out.whole(),
            error: self.error.whole(),
            what: std::mem::take(&mut self.what),
        }
    }

    pub(crate) fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Done {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The exit code is the one wanted.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code(),
            Some(code),
            "{}\nstdout: {:.3000}\nstderr: {}",
            self.what,
            self.out,
            self.error
        );
        self
    }

    /// Nothing of a hostile peer's text reaches the terminal raw, on either output.
    #[track_caller]
    pub(crate) fn harmless(self) -> Self {
        assert_harmless(&self.out, &self.what);
        assert_harmless(&self.error, &self.what);
        self
    }

    /// Standard output as a document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| {
            panic!("{}: {error}\n{:.2000}\n{}", self.what, self.out, self.error)
        })
    }
}
