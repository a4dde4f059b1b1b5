//! Where agents connect: bounded in connections that have not proved who they are, and in the time that they may take.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_kernel::clock;
use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_model::units::Nanos;
use linerate_model::watch::UnixMillis;
use linerate_wire::agent::Header;
use linerate_wire::enrol::{AGENT, ENROL, Reply, Request, decode, encode};
use rustls::{Connection, ServerConfig, ServerConnection};

use super::book::{Signed, is_name};
use super::{Arrivals, Authority, EnrolledError, Refusal, Register, sha256};
use crate::session::{Session, locked};
use crate::tunnel::{Tunnel, TunnelError};

/// So many connections may be without a name at once, of all addresses together.
pub const MOST_STRANGERS: usize = 64;
/// So many agents may be connected at once.
const MOST_AGENTS: usize = 20_000;
/// A connection has so long until it has proved who it is, and until an enrolment is over.
const PATIENCE: Nanos = Nanos::from_millis(10_000);
/// A connection that is refused has so long to read why.
const FAREWELL: Nanos = Nanos::from_millis(2_000);
/// What is said of an agent whose sessions nobody takes.
const UNPLANNED: &str =
    "; the plan has no host of this name with reach = \"agent\", so no tests run on it";
/// The stack of a thread that makes a handshake: TLS needs some.
const STACK: usize = 512 << 10;
/// The stack of a thread that carries an agent's bytes. It is another thread, so that what the handshake used is free again:
/// there may be thousands.
const CARRYING: usize = 128 << 10;

/// What a listener works with.
pub struct Office {
    /// Signs.
    pub authority: Authority,
    /// Knows who may connect.
    pub register: Register,
    /// Where sessions go.
    pub arrivals: Arc<Arrivals>,
    /// The time.
    pub now: Box<dyn Fn() -> UnixMillis + Send + Sync>,
    /// Takes lines for an administrator: who enrolled, who was refused and why.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// A listener that runs. Dropping it ends it and all connections.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    end: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.end.raise());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Takes agents from now on, in threads of its own.
///
/// # Errors
/// Where TLS or the thread cannot be had.
pub fn listen(listener: TcpListener, office: Office) -> Result<Listening, EnrolledError> {
    let fail = |source| EnrolledError::File {
        what: "listen for agents at",
        path: "its socket".into(),
        source,
    };
    listener.set_nonblocking(true).map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    let tls = office.authority.server((office.now)())?;
    let end = Arc::new(EventFd::new().map_err(fail)?);
    let shared = Arc::new(Shared {
        office,
        tls,
        end: end.clone(),
        strangers: Arc::default(),
        agents: Arc::default(),
        complained: Mutex::new(Nanos::ZERO),
    });
    let thread = std::thread::Builder::new()
        .name("agents".to_owned())
        .stack_size(STACK)
        .spawn(move || accept(&listener, &shared))
        .map_err(fail)?;
    Ok(Listening {
        address,
        end,
        thread: Some(thread),
    })
}

struct Shared {
    office: Office,
    tls: Arc<ServerConfig>,
    end: Arc<EventFd>,
    strangers: Arc<AtomicUsize>,
    agents: Arc<AtomicUsize>,
    complained: Mutex<Nanos>,
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let mut entries = [
            PollEntry::new(listener.as_fd(), Interest::READ),
            PollEntry::new(shared.end.as_fd(), Interest::READ),
        ];
        let waited = poll::wait(&mut entries, None);
        let [_, ended] = entries.map(|entry| entry.readiness().any());
        if ended || waited.is_err() {
            return;
        }
        match listener.accept() {
            Ok((tcp, peer)) => shared.admit(tcp, peer.ip()),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            // No descriptor is left: the next try comes a little later.
            Err(_) => std::thread::sleep(Nanos::from_millis(50).as_duration()),
        }
    }
}

/// One of a bounded number; it is given back at the end.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |now: usize| (now < most).then_some(now + 1);
        count
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .ok()
            .map(|_| Self(count.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Starts a thread for a connection; beyond the bound it is closed at once.
    fn admit(self: &Arc<Self>, tcp: TcpStream, peer: IpAddr) {
        let Some(place) = Place::take(&self.strangers, MOST_STRANGERS) else {
            self.complain(&format!(
                "{MOST_STRANGERS} connections wait to prove who they are; one from {peer} was closed"
            ));
            return;
        };
        let shared = self.clone();
        let serving = std::thread::Builder::new()
            .name("agent".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                if let Err(error) = shared.serve(tcp, peer, place) {
                    shared.complain(&format!("agent at {peer}: {error}"));
                }
            });
        // Without a thread the connection is closed.
        drop(serving);
    }

    /// A line at most every second: whoever connects cannot fill a log.
    fn complain(&self, line: &str) {
        let now = clock::monotonic();
        let mut last = locked(&self.complained);
        if *last == Nanos::ZERO || now.since(*last) >= Nanos::from_millis(1_000) {
            *last = now;
            drop(last);
            (self.office.log)(line);
        }
    }

    fn serve(
        self: &Arc<Self>,
        tcp: TcpStream,
        peer: IpAddr,
        place: Place,
    ) -> Result<(), TunnelError> {
        let until = clock::monotonic().plus(PATIENCE);
        let tls = ServerConnection::new(self.tls.clone())?;
        let tunnel = Tunnel::shake(tcp, Connection::from(tls), until)?;
        let certificate = tunnel.certificate().map(|one| sha256(one));
        match (tunnel.protocol(), certificate) {
            (Some(AGENT), Some(certificate)) => self.attend(tunnel, peer, certificate, place),
            (Some(ENROL), certificate) => self.enrol(tunnel, certificate.as_deref(), until),
            _ => Err(rustls::Error::General(
                "it speaks no protocol of agents, or shows no certificate".to_owned(),
            )
            .into()),
        }
    }

    /// Lets an agent in: its bytes are carried by a thread of their own from now on, and its session is put where it is waited
    /// for.
    fn attend(
        self: &Arc<Self>,
        mut tunnel: Tunnel,
        peer: IpAddr,
        certificate: String,
        place: Place,
    ) -> Result<(), TunnelError> {
        let register = &self.office.register;
        let holder = register.look(|book| book.holder(&certificate).map(str::to_owned));
        let name = match holder {
            Ok(Ok(name)) => name,
            Ok(Err(refusal)) => {
                say_bye(&mut tunnel, &refusal.to_string());
                tunnel.close();
                return Err(refused(&refusal));
            }
            Err(error) => return Err(rustls::Error::General(error.to_string()).into()),
        };
        let (inside, outside) = UnixStream::pair()?;
        let Some(agent) = Place::take(&self.agents, MOST_AGENTS) else {
            say_bye(&mut tunnel, "the hub has too many agents connected");
            return Ok(());
        };
        drop(place);
        if self.office.arrivals.is_unexpected(&name) {
            self.complain(&format!("agent {name} has connected{UNPLANNED}"));
        }
        let ended = Arc::new(AtomicBool::new(false));
        let (shared, its_end) = (self.clone(), ended.clone());
        let carrying = std::thread::Builder::new()
            .name("agent".to_owned())
            .stack_size(CARRYING)
            .spawn(move || {
                let _agent = agent;
                let carried = shared.carry(tunnel, &outside, &certificate);
                its_end.store(true, Ordering::SeqCst);
                // The session learns that it has ended.
                drop(outside);
                if let Err(error) = carried {
                    shared.complain(&format!("agent at {peer}: {error}"));
                }
            });
        carrying?;
        match Session::over(&name, inside) {
            Ok(session) if !ended.load(Ordering::SeqCst) => self.office.arrivals.put(session),
            Ok(_) => {}
            Err(error) => self.complain(&error.to_string()),
        }
        Ok(())
    }

    /// Carries an agent's bytes until one side ends.
    fn carry(
        &self,
        tunnel: Tunnel,
        outside: &UnixStream,
        certificate: &str,
    ) -> Result<(), TunnelError> {
        let allowed = || self.office.register.allows(certificate);
        match tunnel.carry(outside, Some(self.end.as_fd()), &allowed) {
            // An agent that goes away has its row on the page of hosts.
            Err(TunnelError::Closed) => Ok(()),
            carried => carried,
        }
    }

    /// Answers one request for a certificate.
    fn enrol(
        &self,
        mut tunnel: Tunnel,
        certificate: Option<&str>,
        until: Nanos,
    ) -> Result<(), TunnelError> {
        let mut bytes = Vec::new();
        let request = loop {
            tunnel.receive(&mut bytes, until)?;
            match decode::<Request>(&bytes) {
                Ok(None) => {}
                Ok(Some(request)) => break request,
                Err(error) => return Err(rustls::Error::General(error.to_string()).into()),
            }
        };
        let reply = match (request, certificate) {
            (Request::Enrol { token, name, csr }, _) => self.enrolled(&token, &name, &csr),
            (Request::Renew { csr }, Some(certificate)) => self.renewed(certificate, &csr),
            (Request::Renew { .. }, None) => Err("it shows no certificate to renew".to_owned()),
        };
        let reply = reply.unwrap_or_else(|why| {
            self.complain(&format!("an agent was not enrolled: {why}"));
            Reply::Refused { why: why.into() }
        });
        if let Ok(bytes) = encode(&reply) {
            tunnel.send(&bytes, until)?;
        }
        tunnel.close();
        Ok(())
    }

    fn enrolled(&self, token: &str, name: &str, csr: &str) -> Result<Reply, String> {
        let office = &self.office;
        let now = (office.now)();
        if !is_name(name) {
            return Err(Refusal::Name(name.into()).to_string());
        }
        let signed = office.authority.sign(csr, name, now);
        let signed = signed.map_err(|error| error.to_string())?;
        let entry = Signed {
            sha256: &signed.sha256,
            key: &signed.key,
            not_after: signed.not_after,
        };
        office
            .register
            .change(|book| book.enrol(now, token, name, &entry))
            .map_err(|error| error.to_string())?
            .map_err(|refusal| refusal.to_string())?;
        let note = if office.arrivals.is_unexpected(name) {
            UNPLANNED
        } else {
            ""
        };
        (office.log)(&format!("agent {name} has enrolled{note}"));
        Ok(Reply::Certified {
            certificate: signed.pem,
            authority: office.authority.pem().to_owned(),
            not_after: signed.not_after.0,
        })
    }

    fn renewed(&self, certificate: &str, csr: &str) -> Result<Reply, String> {
        let office = &self.office;
        let holder = office
            .register
            .look(|book| book.holder(certificate).map(str::to_owned));
        let name = holder
            .map_err(|error| error.to_string())?
            .map_err(|refusal| refusal.to_string())?;
        let signed = office.authority.sign(csr, &name, (office.now)());
        let signed = signed.map_err(|error| error.to_string())?;
        let entry = Signed {
            sha256: &signed.sha256,
            key: &signed.key,
            not_after: signed.not_after,
        };
        office
            .register
            .change(|book| book.renew(certificate, &entry))
            .map_err(|error| error.to_string())?
            .map_err(|refusal| refusal.to_string())?;
        Ok(Reply::Certified {
            certificate: signed.pem,
            authority: office.authority.pem().to_owned(),
            not_after: signed.not_after.0,
        })
    }
}

fn refused(refusal: &Refusal) -> TunnelError {
    TunnelError::Tls(rustls::Error::General(refusal.to_string()))
}

/// Tells an agent why it is not served.
fn say_bye(tunnel: &mut Tunnel, why: &str) {
    let header = Header::Bye { why: why.into() };
    if let Ok(frame) = linerate_wire::agent::encode(&header, &[]) {
        // One who does not read it does not learn it.
        drop(tunnel.send(&frame, clock::monotonic().plus(FAREWELL)));
    }
}
