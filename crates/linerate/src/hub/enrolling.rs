//! Agents that dial in: where they connect, invitations, and their list.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linerate_fleet::enrolled::listener::{Office, listen as serve};
use linerate_fleet::enrolled::register::{read_private, write_private};
use linerate_fleet::enrolled::{Arrivals, Authority, EnrolledError, Listening, Register};
use linerate_kernel::clock;
use linerate_model::watch::UnixMillis;
use linerate_wire::enrol::Invitation;

use super::arguments::{
    AgentCommand, FolderArguments, RevokeArguments, TokenArguments, TokenCommand,
};
use super::clock::HubClock;
use super::folder;
use crate::action::Failure;
use crate::printer::Printer;

/// The part of the hub's folder that is about agents.
const AGENTS: &str = "agents";
/// Where the hub last took agents.
const ADDRESS: &str = "address";
/// An invitation is valid no longer.
const LONGEST_MILLIS: u64 = 30 * 86_400_000;

/// Where agents connect.
pub(super) struct Agents {
    pub(super) listening: Listening,
    pub(super) arrivals: Arc<Arrivals>,
}

/// Takes agents from now on.
pub(super) fn listen(
    address: SocketAddr,
    folder: &Path,
    clock: HubClock,
) -> Result<Agents, Failure> {
    let folder = folder.join(AGENTS);
    let authority = Authority::open(&folder, clock.now())?;
    let listener = TcpListener::bind(address).map_err(|error| {
        Failure::Usage(format!(
            "cannot listen for agents on {address}: {error}; --agents names another address"
        ))
    })?;
    let arrivals = Arc::new(Arrivals::default());
    let office = Office {
        authority,
        register: Register::open(&folder)?,
        arrivals: arrivals.clone(),
        now: Box::new(move || clock.now()),
        log: Box::new(|line| Printer::new().tell(&format!("linerate hub: {line}"))),
    };
    let listening = serve(listener, office)?;
    let text = listening.address().to_string();
    write_private(&folder.join(ADDRESS), text.as_bytes())?;
    Ok(Agents {
        listening,
        arrivals,
    })
}

/// `linerate hub token`.
pub(super) fn token(command: &TokenCommand, printer: &Printer) -> Result<(), Failure> {
    match command {
        TokenCommand::New(arguments) => invite(arguments, printer),
    }
}

/// `linerate hub agent`.
pub(super) fn agent(command: &AgentCommand, printer: &Printer) -> Result<(), Failure> {
    match command {
        AgentCommand::List(arguments) => list(arguments, printer),
        AgentCommand::Revoke(arguments) => revoke(arguments, printer),
    }
}

pub(super) fn now() -> UnixMillis {
    UnixMillis(clock::wall().0 / 1_000_000)
}

impl FolderArguments {
    fn agents(&self) -> Result<PathBuf, Failure> {
        Ok(folder::given_or_usual(self.folder.as_ref())?.join(AGENTS))
    }
}

fn invite(arguments: &TokenArguments, printer: &Printer) -> Result<(), Failure> {
    let now = now();
    let ttl = arguments.ttl.0 / 1_000_000;
    if ttl == 0 || ttl > LONGEST_MILLIS {
        return Err(Failure::Usage(
            "--ttl: more than 0 and at most 30 days".to_owned(),
        ));
    }
    let folder = arguments.folder.agents()?;
    let hub = match &arguments.address {
        Some(address) => address.clone(),
        None => address(&folder)?,
    };
    let authority = Authority::open(&folder, now)?;
    let mut random = [0; 32];
    linerate_kernel::thread::random(&mut random)
        .map_err(|error| Failure::File(format!("cannot read random numbers: {error}")))?;
    let invitation = Invitation {
        hub,
        // Digits of the kernel's random bytes; a hash of them is as hard to guess.
        token: linerate_fleet::enrolled::sha256(&random),
        pin: authority.pin(),
    };
    let text = invitation.to_string();
    if text.parse::<Invitation>().is_err() {
        return Err(Failure::Usage(format!(
            "--address {}: not HOST:PORT",
            invitation.hub
        )));
    }
    let expires = now.plus_millis(ttl);
    let entered = Register::open(&folder)?.change(|book| {
        book.invite(now, &invitation.token, expires, arguments.uses);
        Ok(())
    })?;
    entered.map_err(|refusal| Failure::Refused(refusal.to_string()))?;
    Ok(printer.line(&text)?)
}

/// Where the hub takes agents.
fn address(folder: &Path) -> Result<String, Failure> {
    let unknown = || {
        Failure::Usage(
            "no hub of this folder has taken agents yet: start it with --agents, or say with --address HOST:PORT where \
             hosts reach it"
                .to_owned(),
        )
    };
    let text = read_private(&folder.join(ADDRESS))?.ok_or_else(unknown)?;
    let address: SocketAddr = text.trim().parse().map_err(|_| unknown())?;
    if !address.ip().is_unspecified() {
        return Ok(address.to_string());
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").map_err(|_| unknown())?;
    Ok(format!("{}:{}", name.trim(), address.port()))
}

fn list(arguments: &FolderArguments, printer: &Printer) -> Result<(), Failure> {
    let register = Register::open(&arguments.agents()?)?;
    let now = now();
    let lines = register.look(|book| {
        let line = |(name, agent): (&str, &linerate_fleet::enrolled::book::Agent)| {
            let days = agent
                .not_after()
                .map_or(0, |until| until.since(now).div_ceil(86_400_000));
            match agent.revoked {
                Some(_) => format!("{name}: revoked"),
                None => format!("{name}: its certificate is valid for {days} more days"),
            }
        };
        book.agents().map(line).collect::<Vec<_>>()
    })?;
    if lines.is_empty() {
        printer.line("no agent has enrolled")?;
    }
    for line in lines {
        printer.line(&line)?;
    }
    Ok(())
}

fn revoke(arguments: &RevokeArguments, printer: &Printer) -> Result<(), Failure> {
    let register = Register::open(&arguments.folder.agents()?)?;
    let now = now();
    let name = &arguments.name;
    let known = register.change(|book| Ok(book.revoke(now, name)))?;
    if known.unwrap_or(false) {
        return Ok(printer.line(&format!("{name} is revoked"))?);
    }
    Err(Failure::Usage(format!(
        "no agent has enrolled as '{}'; `linerate hub agent list` names those that have",
        linerate_model::plain_text::PlainText::from(name.as_str())
    )))
}

impl From<EnrolledError> for Failure {
    fn from(error: EnrolledError) -> Self {
        Self::File(error.to_string())
    }
}
