//! Asking hosts, many at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use linerate_fleet::{Ask, Event, FleetError, Reach, Session, Trouble, each};
use linerate_kernel::process::raise_descriptor_limit;
use linerate_kernel::thread::SignalFd;
use linerate_model::host::HostFacts;
use linerate_model::units::Nanos;
use linerate_report::host as report;
use linerate_wire::agent::{Outcome, Word, compress, decompress};

use super::arguments::ReachArguments;
use crate::action::Failure;
use crate::printer::Printer;
use crate::signals;

/// How often it is looked whether the user wants to stop.
const LOOK: Nanos = Nanos::from_millis(250);
/// No answer of a host is longer, bytes.
const MOST: usize = linerate_wire::agent::MOST_BODY;
/// A command that a signal ended has the code that a shell gives it.
const BY_SIGNAL: i32 = 128;
/// What the report's style depends on; the same on all hosts, so that equal answers are equal.
const LOCALE: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// What a host answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) host: String,
    pub(super) reply: Result<Reply, FleetError>,
}

impl Answer {
    /// The facts that it answered.
    pub(super) fn facts(&self) -> Option<HostFacts> {
        let reply = self.reply.as_ref().ok()?;
        report::from_json(&reply.out_bytes()).ok()
    }
}

/// What a command gave. Kept compressed: there may be hundreds.
#[derive(Debug)]
pub(super) struct Reply {
    out: Vec<u8>,
    err: Vec<u8>,
    outcome: Outcome,
}

impl Reply {
    fn out_bytes(&self) -> Vec<u8> {
        decompress(&self.out).unwrap_or_default()
    }

    /// Its standard output.
    pub(super) fn out(&self) -> String {
        String::from_utf8_lossy(&self.out_bytes()).into_owned()
    }

    /// Its standard error.
    pub(super) fn err(&self) -> String {
        let bytes = decompress(&self.err).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Its exit code.
    pub(super) fn code(&self) -> u8 {
        let code = match self.outcome {
            Outcome::Code(code) => code,
            Outcome::Signal(signal) => BY_SIGNAL + signal,
            // Those are errors of the session.
            Outcome::Refused(_) | Outcome::Busy(_) => 1,
        };
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

/// A question to many hosts.
pub(super) struct Gathering<'p> {
    reach: Reach,
    ask: Ask,
    printer: &'p Printer,
    stop: SignalFd,
    stopped: AtomicBool,
    answered: AtomicUsize,
    failed: AtomicUsize,
}

impl<'p> Gathering<'p> {
    pub(super) fn new(
        reach: &ReachArguments,
        words: Vec<Word>,
        files: Vec<(String, Vec<u8>)>,
        printer: &'p Printer,
    ) -> Result<Self, Failure> {
        // Three pipes a host; where the limit stays, some hosts say so.
        drop(raise_descriptor_limit());
        let locale = LOCALE.map(|name| (name.to_owned(), std::env::var(name).unwrap_or_default()));
        Ok(Self {
            reach: reach.reach()?,
            ask: Ask {
                words,
                files,
                environment: locale.to_vec(),
                exclusive: None,
            },
            printer,
            stop: signals::take_stops()?,
            stopped: AtomicBool::new(false),
            answered: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
        })
    }

    /// Asks all of them. A signal to stop ends what runs there; what was answered until then is kept.
    pub(super) fn run(&self, hosts: &[String], fan_out: usize) -> Result<Vec<Answer>, Failure> {
        self.progress(hosts.len())?;
        let answers = each(hosts, fan_out, |host| {
            let reply = self.of(host);
            let count = if reply.is_ok() {
                &self.answered
            } else {
                &self.failed
            };
            count.fetch_add(1, Ordering::Relaxed);
            // The output may be gone; the last write says so.
            drop(self.progress(hosts.len()));
            let host = host.to_owned();
            Answer { host, reply }
        });
        signals::release(&self.stop, &[signals::INTERRUPT, signals::TERMINATE]);
        Ok(answers)
    }

    fn progress(&self, all: usize) -> std::io::Result<()> {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let (answered, failed) = (count(&self.answered), count(&self.failed));
        let failed = match failed {
            0 => String::new(),
            failed => format!(", {failed} did not"),
        };
        self.printer
            .status(&format!("{answered} of {all} hosts answered{failed}"))
    }

    fn is_stopped(&self) -> bool {
        if matches!(self.stop.read(), Ok(Some(_))) {
            self.stopped.store(true, Ordering::Relaxed);
            // A second one ends the program at once.
            signals::release(&self.stop, &[signals::INTERRUPT, signals::TERMINATE]);
        }
        self.stopped.load(Ordering::Relaxed)
    }

    fn of(&self, host: &str) -> Result<Reply, FleetError> {
        if self.is_stopped() {
            return Err(stopped(host));
        }
        let session = Session::open(host, &self.reach)?;
        let mut asked = session.ask(self.ask.clone())?;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        loop {
            let event = match asked.next(Some(LOOK)) {
                Err(FleetError {
                    trouble: Trouble::Silent { patience: LOOK, .. },
                    ..
                }) => {
                    if self.is_stopped() {
                        return Err(stopped(host));
                    }
                    continue;
                }
                event => event?,
            };
            match event {
                Event::Out(bytes) => keep(&mut out, &bytes, host)?,
                Event::Err(bytes) => keep(&mut err, &bytes, host)?,
                Event::File(..) => {}
                Event::Ended(outcome) => {
                    let packed = |bytes: &[u8]| {
                        compress(bytes).map_err(|source| FleetError {
                            host: host.to_owned(),
                            trouble: Trouble::Frame { source },
                        })
                    };
                    return Ok(Reply {
                        out: packed(&out)?,
                        err: packed(&err)?,
                        outcome,
                    });
                }
            }
        }
    }
}

fn keep(all: &mut Vec<u8>, bytes: &[u8], host: &str) -> Result<(), FleetError> {
    all.extend_from_slice(bytes);
    if all.len() <= MOST {
        return Ok(());
    }
    Err(FleetError {
        host: host.to_owned(),
        trouble: Trouble::OutOfTurn {
            what: format!("an answer of more than {MOST} bytes"),
        },
    })
}

fn stopped(host: &str) -> FleetError {
    FleetError {
        host: host.to_owned(),
        trouble: Trouble::Ended {
            phase: linerate_fleet::Phase::Running,
            said: "it was stopped here".into(),
        },
    }
}
