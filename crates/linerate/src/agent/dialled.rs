//! `linerate agent --hub`: connects to the hub, again and again, and passes on to an `agent --stdio` what the law allows.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use linerate_agent::dial::{BackOff, dial};
use linerate_agent::enrol::{enrol, renew};
use linerate_agent::gate::{Ended, Gate};
use linerate_agent::identity::Identity;
use linerate_agent::law::{Law, Spent, USUAL};
use linerate_agent::{AgentError, error};
use linerate_fleet::tunnel::TunnelError;
use linerate_kernel::clock;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{ChildSettings, spawn_bound};
use linerate_kernel::thread::SignalFd;
use linerate_model::units::Nanos;
use linerate_model::watch::UnixMillis;

use super::{AgentArguments, reading, stand_in};
use crate::action::Failure;
use crate::lab::ourselves;
use crate::printer::Printer;
use crate::signals;

/// A connection that stood for so long counts as one that works.
const STOOD: Duration = Duration::from_secs(10);
/// Where the certificate is due, the connection ends once no command has run for so long: a test is several commands.
const REST: Nanos = Nanos::from_millis(30_000);
/// A certificate that is valid no longer than this, ms, is renewed as soon as no command runs.
const URGENT: u64 = 86_400_000;
/// Its last output still goes out.
const URGENT_REST: Nanos = Nanos::from_millis(1_000);
/// A renewal that failed is tried again after this time.
const RENEW_AGAIN: Duration = Duration::from_secs(600);
/// An agent that was told to end has so long.
const GRACE: Duration = Duration::from_secs(5);

/// Where the agent of a user other than root keeps its state.
const OF_A_USER: &str = ".local/state/linerate-agent";
const OF_ROOT: &str = "/var/lib/linerate-agent";

pub(super) fn run(hub: &str, arguments: &AgentArguments, printer: &Printer) -> Result<(), Failure> {
    let stop = signals::take(&[signals::TERMINATE, signals::INTERRUPT, signals::HANGUP])?;
    let folder = state_folder(arguments)?;
    let law = law(arguments.law.as_deref())?;
    printer.tell(&format!("linerate agent: the law of this host: {law}"));
    let spent = Spent::open(&folder)?;
    let gate = Gate::new(law, spent, Box::new(reading::read), Box::new(now));
    let Some(identity) = identity(hub, arguments, &folder, &stop, printer)? else {
        return Ok(());
    };
    let mut dialling = Dialling {
        hub,
        folder: &folder,
        identity,
        gate,
        stop: &stop,
        printer,
        renew_from: Instant::now(),
    };
    dialling.run();
    Ok(())
}

fn now() -> UnixMillis {
    UnixMillis(clock::wall().0 / 1_000_000)
}

/// The law of this file; that of the usual one where none is named; where there is none, the usual law.
fn law(path: Option<&Path>) -> Result<Law, Failure> {
    let read = Law::read(path.unwrap_or(Path::new(USUAL)));
    match read {
        Err(error::AgentError::File { source, .. })
            if path.is_none() && source.kind() == std::io::ErrorKind::NotFound =>
        {
            Ok(Law::default())
        }
        read => Ok(read?),
    }
}

fn state_folder(arguments: &AgentArguments) -> Result<PathBuf, Failure> {
    if let Some(folder) = &arguments.state {
        return Ok(folder.clone());
    }
    if linerate_kernel::process::user() == 0 {
        return Ok(OF_ROOT.into());
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    home.map(|home| PathBuf::from(home).join(OF_A_USER))
        .ok_or_else(|| {
            let why = "HOME is not set: --state FOLDER says where the agent keeps its key";
            Failure::Usage(why.to_owned())
        })
}

/// Who this host is; it enrols where it has not yet. `None` where it is to end meanwhile.
fn identity(
    hub: &str,
    arguments: &AgentArguments,
    folder: &Path,
    stop: &SignalFd,
    printer: &Printer,
) -> Result<Option<Identity>, Failure> {
    let known = Identity::open(folder)?;
    let Some(invitation) = &arguments.enrol else {
        let none = || AgentError::NotEnrolled {
            folder: folder.to_owned(),
        };
        return Ok(Some(known.ok_or_else(none)?));
    };
    if let Some(known) = known.filter(|known| known.is_of(invitation)) {
        return Ok(Some(known));
    }
    let name = arguments.name.clone().or_else(stand_in);
    let name = name.unwrap_or_else(|| super::of_kernel("hostname"));
    let mut back_off = BackOff::default();
    loop {
        match enrol(hub, invitation, &name, folder) {
            Ok(identity) => {
                printer.tell(&format!("linerate agent: enrolled as {name}"));
                return Ok(Some(identity));
            }
            // A hub that is not there yet may come.
            Err(error @ AgentError::Connect { .. }) => {
                let wait = back_off.next(chance());
                printer.tell(&format!("linerate agent: {error}; next try in {wait:.1?}"));
                if wait_for(stop, wait) {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

struct Dialling<'a> {
    hub: &'a str,
    folder: &'a Path,
    identity: Identity,
    gate: Gate,
    stop: &'a SignalFd,
    printer: &'a Printer,
    /// No renewal is tried before.
    renew_from: Instant,
}

/// How a connection ended.
enum End {
    /// For a renewal.
    Due,
    /// The hub does not serve this agent, and why.
    Rejected(String),
    /// Why.
    Other(String),
}

impl Dialling<'_> {
    /// Until a signal comes.
    fn run(&mut self) {
        let mut back_off = BackOff::default();
        loop {
            self.renew();
            let began = Instant::now();
            let end = self
                .connection()
                .unwrap_or_else(|error| End::Other(error.to_string()));
            if wait_for(self.stop, Duration::ZERO) {
                return;
            }
            if began.elapsed() >= STOOD {
                back_off.reset();
            }
            let (why, wait) = match end {
                End::Due => continue,
                // An administrator has to act first.
                End::Rejected(why) => (why, BackOff::long(chance())),
                End::Other(why) => (why, back_off.next(chance())),
            };
            self.say(&format!("{why}; next try in {wait:.1?}"));
            if wait_for(self.stop, wait) {
                return;
            }
        }
    }

    fn say(&self, what: &str) {
        self.printer.tell(&format!("linerate agent: {what}"));
    }

    /// Where that fails, the certificate is still valid for some weeks.
    fn renew(&mut self) {
        if self.rest().is_none() {
            return;
        }
        match renew(self.hub, &self.identity, self.folder) {
            Ok(new) => {
                self.identity = new;
                self.say("its certificate was renewed");
            }
            Err(error) => {
                self.renew_from = Instant::now() + RENEW_AGAIN;
                self.say(&format!("its certificate was not renewed: {error}"));
            }
        }
    }

    /// How long no command has to have run for a renewal; `None` where none is due.
    fn rest(&self) -> Option<Nanos> {
        let is_due = self.identity.is_due(now()) && Instant::now() >= self.renew_from;
        let is_urgent = self.identity.not_after.since(now()) <= URGENT;
        is_due.then_some(if is_urgent { URGENT_REST } else { REST })
    }

    /// One connection to its end; why it ended.
    fn connection(&self) -> Result<End, AgentError> {
        let tunnel = dial(self.hub, &self.identity)?;
        let failed = |source| AgentError::File {
            what: "start",
            path: "/proc/self/exe".into(),
            source,
        };
        let mut command = ourselves(["agent", "--stdio"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn_bound(&mut command, &ChildSettings::default()).map_err(failed)?;
        let streams = (child.stdin.take(), child.stdout.take());
        let served = match streams {
            (Some(to), Some(from)) => {
                self.say(&format!(
                    "connected to {} as {}",
                    self.hub, self.identity.name
                ));
                let stop = Some(self.stop.as_fd());
                self.gate.serve(tunnel, to, from, stop, &|| self.rest())
            }
            _ => Ok(Ended::Stopped),
        };
        end(&mut child);
        match served {
            Ok(Ended::Told(said)) => Ok(End::Rejected(format!(
                "the hub ended the connection: {said}"
            ))),
            Ok(Ended::Rested) => Ok(End::Due),
            Ok(Ended::Stopped) => Ok(End::Other("the connection ended here".to_owned())),
            Err(TunnelError::Closed) => Ok(End::Other("the hub closed the connection".to_owned())),
            Err(source) => Err(AgentError::Hub {
                hub: self.hub.to_owned(),
                source,
            }),
        }
    }
}

/// Its input has ended: it ends by itself, or is ended.
fn end(child: &mut Child) {
    let until = Instant::now() + GRACE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= until {
            drop(child.kill());
            drop(child.wait());
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits; whether a signal to end came.
fn wait_for(stop: &SignalFd, wait: Duration) -> bool {
    let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
    let mut entries = [PollEntry::new(stop.as_fd(), Interest::READ)];
    poll::wait(&mut entries, Some(Nanos(nanos))).is_err() || entries[0].readiness().any()
}

fn chance() -> u64 {
    let mut random = [0; 8];
    // Without chance the waits are longer, and right.
    drop(linerate_kernel::thread::random(&mut random));
    u64::from_ne_bytes(random)
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::NotEnrolled { .. } | AgentError::OpenLaw { .. } | AgentError::Law(_) => {
                Self::Usage(error.to_string())
            }
            AgentError::Refused { .. }
            | AgentError::Hub { .. }
            | AgentError::Connect { .. }
            | AgentError::Reply { .. } => Self::Far(error.to_string()),
            error => Self::File(error.to_string()),
        }
    }
}
