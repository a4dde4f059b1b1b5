//! `linerate agent --stdio`: runs commands of this program for a linerate on another host, which sends them as frames
//! over standard input.
//!
//! It ends with its input, with SIGTERM, and where no frame comes for [`SILENCE`]; whatever still runs ends with it, and
//! its folder is removed.
//!
//! `linerate agent --hub HOST:PORT` ([`dialled`]) connects to a hub by itself and starts an `agent --stdio` for each connection;
//! what that may run is said by [`reading`] and the host's law.

mod dialled;
mod exclusive;
mod folder;
mod reading;
mod task;

use std::collections::BTreeMap;
use std::io::{self, Read as _, Stdin, Stdout, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use clap::Args;
use linerate_fleet::session::{HEARTBEAT, SILENCE};
use linerate_kernel::clock;
use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::thread::SignalFd;
use linerate_model::units::Nanos;
use linerate_wire::agent::{Ask, Frame, FrameReader, Header, Hello, Outcome, PROTOCOL, encode};
use linerate_wire::enrol::Invitation;

use crate::action::Failure;
use crate::printer::Printer;
use crate::signals;
use folder::Folder;
use task::Task;

/// No more commands run at once.
const MOST_TASKS: usize = 32;
/// A thread of a command needs little.
const STACK: usize = 512 << 10;
/// Commands are killed on the way out, and waited for so long: a thread of one may wait for a reader of its output.
const LEAVE: Nanos = Nanos::from_millis(3_000);
/// Environment variable: the host's name, where several stand for hosts on one machine.
pub(crate) const HOST: &str = "LINERATE_HOST";

// `linerate agent`.
#[derive(Args, Debug, Clone)]
pub(crate) struct AgentArguments {
    /// Frames come on standard input and go to standard output
    #[arg(long, hide = true, conflicts_with = "hub")]
    stdio: bool,
    /// SHA-256 of this binary
    #[arg(long, value_name = "HEX", default_value = "", hide = true)]
    hash: String,
    /// Connect to the hub at this address and serve it; try again whenever the connection ends
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "stdio")]
    pub(super) hub: Option<String>,
    /// Enrol first, with what `linerate hub token new` printed. Once this host has enrolled with it, it is not used again
    #[arg(long, value_name = "INVITATION", requires = "hub")]
    pub(super) enrol: Option<Invitation>,
    /// The name to enrol with, as the hub's watch.toml has it [default: the host's name]
    #[arg(long, value_name = "NAME", requires = "enrol")]
    pub(super) name: Option<String>,
    /// What a hub may have this host do; only root may be able to change the file [default: /etc/linerate/agent.toml, and where there is
    /// none, tests of up to 300 s and facts]
    #[arg(long, value_name = "FILE", requires = "hub")]
    pub(super) law: Option<PathBuf>,
    /// Keep key, certificate and the count of today's bytes in this folder [default: /var/lib/linerate-agent, for other users than root
    /// ~/.local/state/linerate-agent]
    #[arg(long, value_name = "FOLDER", requires = "hub")]
    pub(super) state: Option<PathBuf>,
}

/// What the threads of an agent share.
pub(super) struct Agent {
    out: Mutex<Stdout>,
    running: Mutex<BTreeMap<u64, Arc<EventFd>>>,
    /// Notified where a command has ended.
    ended: Condvar,
    is_closed: AtomicBool,
    folder: Folder,
}

pub(crate) fn run(arguments: &AgentArguments, printer: &Printer) -> Result<(), Failure> {
    match &arguments.hub {
        Some(hub) => dialled::run(hub, arguments, printer),
        None => over_stdio(arguments),
    }
}

fn over_stdio(arguments: &AgentArguments) -> Result<(), Failure> {
    let stop = signals::take(&[signals::TERMINATE, signals::INTERRUPT, signals::HANGUP])?;
    let agent = Arc::new(Agent {
        out: Mutex::new(io::stdout()),
        running: Mutex::default(),
        ended: Condvar::new(),
        is_closed: AtomicBool::new(false),
        folder: Folder::default(),
    });
    agent.send(&Header::Hello(hello(&arguments.hash)), &[])?;
    let ended = listen(&agent, &stop);
    if let Err(why) = &ended {
        agent.send_now(&Header::Bye {
            why: why.as_str().into(),
        });
    }
    agent.close();
    ended.map_err(Failure::File)
}

/// The name of this host, where several stand for hosts on one machine.
fn stand_in() -> Option<String> {
    std::env::var(HOST).ok().filter(|name| !name.is_empty())
}

/// A text of the kernel; empty where it cannot be read.
fn of_kernel(name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
    text.unwrap_or_default().trim().to_owned()
}

fn hello(hash: &str) -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        hash: hash.into(),
        host: stand_in().unwrap_or_else(|| of_kernel("hostname")).into(),
        user: linerate_kernel::process::user(),
        kernel: of_kernel("osrelease").into(),
        arch: std::env::consts::ARCH.into(),
    }
}

/// Reads frames until the connection ends.
///
/// # Errors
/// Where it ends for another reason than the end of its input or a signal, in words.
fn listen(agent: &Arc<Agent>, stop: &SignalFd) -> Result<(), String> {
    let input = io::stdin();
    let mut reader = FrameReader::default();
    let mut piece = vec![0; 64 << 10];
    let mut heard = clock::monotonic();
    let mut beaten = heard;
    loop {
        let now = clock::monotonic();
        if now.since(beaten) >= HEARTBEAT {
            agent.send_now(&Header::Heartbeat);
            beaten = now;
        }
        if now.since(heard) >= SILENCE {
            return Err(format!("nothing came for {SILENCE}"));
        }
        match next(&input, &mut piece, stop, beaten.plus(HEARTBEAT).since(now))
            .map_err(|error| format!("reading standard input: {error}"))?
        {
            Came::Nothing => continue,
            Came::End => return Ok(()),
            Came::Bytes(length) => reader.push(&piece[..length]),
        }
        heard = clock::monotonic();
        while let Some(frame) = reader.frame().map_err(|error| error.to_string())? {
            agent.take(frame)?;
        }
    }
}

enum Came {
    Nothing,
    Bytes(usize),
    /// Of the input, or a signal to end.
    End,
}

fn next(input: &Stdin, piece: &mut [u8], stop: &SignalFd, patience: Nanos) -> io::Result<Came> {
    let mut entries = [
        PollEntry::new(input.as_fd(), Interest::READ),
        PollEntry::new(stop.as_fd(), Interest::READ),
    ];
    poll::wait(&mut entries, Some(patience))?;
    let [came, stopped] = entries.map(|entry| entry.readiness().any());
    if stopped {
        return Ok(Came::End);
    }
    if !came {
        return Ok(Came::Nothing);
    }
    // Past the buffer of `Stdin`, which poll knows nothing of.
    let mut file = std::fs::File::from(input.as_fd().try_clone_to_owned()?);
    match file.read(piece) {
        Ok(0) => Ok(Came::End),
        Ok(length) => Ok(Came::Bytes(length)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Came::Nothing),
        Err(error) => Err(error),
    }
}

impl Agent {
    /// Does what a frame says.
    fn take(self: &Arc<Self>, frame: Frame) -> Result<(), String> {
        match frame.header {
            Header::Ask(ask) => self.begin(ask, frame.body),
            Header::Cancel { ask } => {
                if let Some(cancel) = self.locked().get(&ask) {
                    drop(cancel.raise());
                }
            }
            Header::Heartbeat => {}
            Header::Bye { .. }
            | Header::Hello(_)
            | Header::Output { .. }
            | Header::Answer { .. } => {
                return Err("a frame came that only an agent sends".to_owned());
            }
        }
        Ok(())
    }

    /// Starts a thread for a command, or says why not.
    fn begin(self: &Arc<Self>, ask: Ask, body: Vec<u8>) {
        let number = ask.ask;
        let refuse = |why: String| {
            let outcome = Outcome::Refused(why.into());
            drop(self.send(
                &Header::Answer {
                    ask: number,
                    outcome,
                },
                &[],
            ));
        };
        let cancel = match EventFd::new() {
            Ok(cancel) => Arc::new(cancel),
            Err(error) => return refuse(error.to_string()),
        };
        {
            let mut running = self.locked();
            if running.len() >= MOST_TASKS {
                drop(running);
                return refuse(format!("{MOST_TASKS} commands run already"));
            }
            if running.insert(number, cancel.clone()).is_some() {
                drop(running);
                return refuse(format!("there is a command {number} already"));
            }
        }
        let agent = self.clone();
        let started = std::thread::Builder::new()
            .name("command".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                let outcome = Task::new(&agent, &ask, &cancel).run(&body);
                agent.forget(number);
                drop(agent.send(
                    &Header::Answer {
                        ask: number,
                        outcome,
                    },
                    &[],
                ));
            });
        if let Err(error) = started {
            self.forget(number);
            refuse(error.to_string());
        }
    }

    /// A command has ended.
    fn forget(&self, number: u64) {
        self.locked().remove(&number);
        self.ended.notify_all();
    }

    /// Kills what still runs, and removes the folder once nothing writes to it any more.
    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.folder.close();
        let running = self.locked();
        for cancel in running.values() {
            drop(cancel.raise());
        }
        let some = |running: &mut BTreeMap<_, _>| !running.is_empty();
        let waited = self
            .ended
            .wait_timeout_while(running, LEAVE.as_duration(), some);
        // A command that is left is bound to a thread, which ends with this process.
        drop(waited);
        self.folder.remove();
    }

    /// Whether the agent ends: commands are killed, and nothing is sent of them.
    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<EventFd>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a frame; it waits while nobody reads.
    fn send(&self, header: &Header, body: &[u8]) -> io::Result<()> {
        if self.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let frame = encode(header, body).map_err(io::Error::other)?;
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(&frame)?;
        out.flush()
    }

    /// Sends a frame where that does not wait; nobody may be there to read it.
    fn send_now(&self, header: &Header) {
        let Ok(mut out) = self.out.try_lock() else {
            return;
        };
        let mut entries = [PollEntry::new(out.as_fd(), Interest::WRITE)];
        let ready = poll::wait(&mut entries, Some(Nanos::ZERO)).is_ok();
        let ready = ready && entries[0].readiness().writable;
        if let Ok(frame) = encode(header, &[])
            && ready
        {
            drop(out.write_all(&frame).and_then(|()| out.flush()));
        }
    }
}
