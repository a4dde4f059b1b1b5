//! The listening sockets, and connections that have not yet said who they are.

use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_kernel::{clock, sctp, socket, udp};
use linerate_model::plan::{Family, Plan, Protocol};
use linerate_model::units::Nanos;
use linerate_wire::cookie::COOKIE_BYTES;
use linerate_wire::iperf2::caller::{Caller, LEAST, Opening, of_connection};
use linerate_wire::iperf2::header::LONGEST_HEADER;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::EngineError;
use crate::sockets;

use super::occupancy::{self, Site};
use super::{ADMISSION_PATIENCE, MOST_PENDING, ServerOptions};

/// Ports that the kernel is asked for where any will do.
const PORTS_TRIED: usize = 16;
/// Connections that the kernel may hold for us.
const BACKLOG: i32 = 512;

/// `EMFILE` and `ENFILE` on Linux.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;
/// How long to leave waiting connections alone when there is no descriptor for them.
const NO_DESCRIPTORS_PAUSE: Duration = Duration::from_millis(10);

/// All sockets that a server listens on: TCP and UDP, a pair for each family.
pub(super) struct Listeners {
    pub(super) tcp: Vec<TcpListener>,
    pub(super) udp: Vec<UdpListener>,
    /// The first so many of each are the server's own, the others iperf2's.
    own: (usize, usize),
    /// Why there are none of iperf2.
    without_iperf2: Option<EngineError>,
}

/// The socket that UDP's opening datagrams come to.
pub(super) struct UdpListener {
    pub(super) socket: UdpSocket,
    pub(super) port: u16,
}

impl Listeners {
    pub(super) fn open(options: &ServerOptions) -> Result<Self, EngineError> {
        let mut listeners = Self::open_own(options)?;
        listeners.own = (listeners.tcp.len(), listeners.udp.len());
        let port = options.iperf2_port.filter(|_| options.answers_iperf2());
        // A port that is any one is not told to anybody, and one that was passed in is there.
        let is_other = |port: &u16| {
            let there = |address: SocketAddr| address.port() == *port;
            *port != 0 && *port != options.port && !listeners.addresses().into_iter().any(there)
        };
        let Some(port) = port.filter(is_other) else {
            return Ok(listeners);
        };
        let beside = ServerOptions {
            port,
            inherited: Vec::new(),
            ..options.clone()
        };
        match is_free(&beside).and_then(|()| Self::open_all(&beside)) {
            Ok(more) => {
                listeners.tcp.extend(more.tcp);
                listeners.udp.extend(more.udp);
            }
            Err(error) => listeners.without_iperf2 = Some(error),
        }
        Ok(listeners)
    }

    /// A server with no sockets yet.
    const fn none() -> Self {
        Self {
            tcp: Vec::new(),
            udp: Vec::new(),
            own: (0, 0),
            without_iperf2: None,
        }
    }

    fn open_own(options: &ServerOptions) -> Result<Self, EngineError> {
        if !options.inherited.is_empty() {
            return Self::inherit(options);
        }
        // The kernel chooses a port that is free for TCP over one family; for UDP, or the other, somebody may have it.
        for _ in 1..PORTS_TRIED {
            match Self::open_all(options) {
                Err(EngineError::Host { source, .. })
                    if options.port == 0 && source.kind() == io::ErrorKind::AddrInUse => {}
                opened => return opened,
            }
        }
        Self::open_all(options)
    }

    fn open_all(options: &ServerOptions) -> Result<Self, EngineError> {
        let mut listeners = Self::none();
        let mut port = options.port;
        let addresses = wanted(options);
        let alone = addresses.len() == 1;
        let mut last = None;
        for address in addresses {
            match listeners.add(SocketAddr::new(address, port), options) {
                Ok(bound) => port = bound,
                // A host without one of the families serves on the other.
                Err(source) if !alone && is_missing_family(&source) => {
                    last = Some((address, source));
                }
                Err(source) => return Err(cannot_listen(address, port, source)),
            }
        }
        match last {
            Some((address, source)) if listeners.tcp.is_empty() => {
                Err(cannot_listen(address, port, source))
            }
            _ => Ok(listeners),
        }
    }

    fn add(&mut self, address: SocketAddr, options: &ServerOptions) -> io::Result<u16> {
        let tcp = raw(address, Type::STREAM, options)?;
        tcp.listen(BACKLOG)?;
        let tcp = TcpListener::from(tcp);
        let bound = tcp.local_addr()?;
        self.udp.push(open_udp(bound, options)?);
        self.tcp.push(tcp);
        Ok(bound.port())
    }

    /// Where other listeners belong that serve the same clients: an address of each family.
    pub(super) fn beside(&self) -> Vec<SocketAddr> {
        self.udp[..self.own.1]
            .iter()
            .filter_map(|listener| listener.socket.local_addr().ok())
            .collect()
    }

    /// Takes listening TCP sockets that were passed in, and opens the UDP ones beside them.
    fn inherit(options: &ServerOptions) -> Result<Self, EngineError> {
        let fail = EngineError::host("taking over the sockets that were passed in");
        let mut listeners = Self::none();
        for passed in &options.inherited {
            let socket = Socket::from(passed.try_clone().map_err(fail)?);
            socket.set_nonblocking(true).map_err(fail)?;
            if socket.r#type().map_err(fail)? == Type::STREAM {
                let tcp = TcpListener::from(socket);
                let address = tcp.local_addr().map_err(fail)?;
                let mut beside = vec![address];
                if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
                    // It may take IPv4 too, and our UDP sockets have one family each.
                    beside.push(SocketAddr::new(
                        Ipv4Addr::UNSPECIFIED.into(),
                        address.port(),
                    ));
                }
                for address in beside {
                    let udp = open_udp(address, options).map_err(fail)?;
                    listeners.udp.push(udp);
                }
                listeners.tcp.push(tcp);
            }
        }
        if listeners.tcp.is_empty() {
            let source = io::Error::new(
                io::ErrorKind::InvalidInput,
                "none of them is a TCP socket (ListenStream=)",
            );
            return Err(fail(source));
        }
        Ok(listeners)
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        local_addresses(&self.tcp[..self.own.0])
    }

    pub(super) fn iperf2_addresses(&self) -> Vec<SocketAddr> {
        local_addresses(&self.tcp[self.own.0..])
    }

    pub(super) fn take_iperf2_failure(&mut self) -> Option<EngineError> {
        self.without_iperf2.take()
    }
}

/// Whether nobody has the port over UDP: to bind with `SO_REUSEADDR`, as listeners do whose streams share their port, is granted beside
/// a socket that has it too, which would lose its datagrams to ours.
fn is_free(options: &ServerOptions) -> Result<(), EngineError> {
    for address in wanted(options) {
        let domain = Domain::for_address(SocketAddr::new(address, options.port));
        let bind = || {
            let socket = Socket::new(domain, Type::DGRAM, None)?;
            if address.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            socket.bind(&SockAddr::from(SocketAddr::new(address, options.port)))
        };
        match bind() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(cannot_listen(address, options.port, error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn local_addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    listeners
        .iter()
        .filter_map(|listener| listener.local_addr().ok())
        .collect()
}

fn wanted(options: &ServerOptions) -> Vec<IpAddr> {
    match (options.bind, options.family) {
        (Some(address), _) => vec![address],
        (None, Family::V4) => vec![Ipv4Addr::UNSPECIFIED.into()],
        (None, Family::V6) => vec![Ipv6Addr::UNSPECIFIED.into()],
        (None, Family::Any) => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
    }
}

/// `EAFNOSUPPORT` and `EADDRNOTAVAIL` on Linux: a family that this host does not have.
pub(super) fn is_missing_family(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(97 | 99))
}

fn cannot_listen(address: IpAddr, port: u16, source: io::Error) -> EngineError {
    let advice = match source.kind() {
        io::ErrorKind::AddrInUse => {
            " (another server, perhaps an iperf3, has the port; choose one with -p)"
        }
        io::ErrorKind::PermissionDenied => {
            " (ports below 1024 need privileges; choose one with -p)"
        }
        io::ErrorKind::AddrNotAvailable => {
            " (no interface of this host has the address; `ip address` lists them, without -B all are served)"
        }
        _ => "",
    };
    EngineError::Host {
        operation: format!("listening on {}{advice}", SocketAddr::new(address, port)),
        source,
    }
}

fn raw(address: SocketAddr, kind: Type, options: &ServerOptions) -> io::Result<Socket> {
    let raw = Socket::new(Domain::for_address(address), kind, None)?;
    bound(raw, address, options.bind_device.as_deref())
}

/// Opens a listener of SCTP, whose connections begin with the buffers that a test asks for.
pub(super) fn open_sctp(
    addresses: &[SocketAddr],
    plan: &Plan,
    options: &ServerOptions,
) -> io::Result<TcpListener> {
    let Some((first, others)) = addresses.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let raw = Socket::from(sctp::stream_socket(sockets::family(*first))?);
    sockets::set_buffers(&raw, plan)?;
    let raw = bound(raw, *first, options.bind_device.as_deref())?;
    if !others.is_empty() {
        sctp::add_addresses(&raw, others)?;
    }
    raw.listen(BACKLOG)?;
    Ok(raw.into())
}

/// Binds a socket that does not block, and takes one family alone.
pub(super) fn bound(raw: Socket, address: SocketAddr, device: Option<&str>) -> io::Result<Socket> {
    raw.set_nonblocking(true)?;
    if address.is_ipv6() {
        raw.set_only_v6(true)?;
    }
    if let Some(device) = device {
        socket::bind_device(&raw, device)?;
    }
    socket::set_reuse_address(&raw, true)?;
    raw.bind(&SockAddr::from(address))?;
    Ok(raw)
}

fn open_udp(address: SocketAddr, options: &ServerOptions) -> io::Result<UdpListener> {
    let socket = UdpSocket::from(raw(address, Type::DGRAM, options)?);
    udp::enable_packet_info(socket.as_fd())?;
    let port = address.port();
    Ok(UdpListener { socket, port })
}

/// A connection that has not yet sent its 37 bytes.
pub(super) struct Pending {
    /// TCP or SCTP.
    pub(super) protocol: Protocol,
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) deadline: Nanos,
    /// What it has sent, as far as it was read.
    bytes: [u8; LONGEST_HEADER],
    have: usize,
    /// Bytes to read before it is looked at again.
    wanted: usize,
    /// It may still be an iperf2's.
    may_be_iperf2: bool,
}

/// What reading brought.
pub(super) enum Read {
    Whole([u8; COOKIE_BYTES]),
    /// An iperf2's client, whose header was read.
    Iperf2(Caller),
    Partly,
    Gone,
}

impl Pending {
    /// Bytes that came.
    pub(super) fn received(&self) -> usize {
        self.have
    }

    /// Reads what is there, never more than the cookie: the rest belongs to the connection's owner.
    pub(super) fn read(&mut self) -> Read {
        loop {
            while self.have < self.wanted {
                match self.stream.read(&mut self.bytes[self.have..self.wanted]) {
                    Ok(0) => return Read::Gone,
                    Ok(bytes) => self.have += bytes,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Read::Partly,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return Read::Gone,
                }
            }
            if self.may_be_iperf2 {
                match of_connection(&self.bytes[..self.have]) {
                    Opening::Iperf2(caller) => return Read::Iperf2(caller),
                    // A header is never longer than there is room for it.
                    Opening::Partial { bytes }
                        if (self.have + 1..=LONGEST_HEADER).contains(&bytes) =>
                    {
                        self.wanted = bytes;
                        continue;
                    }
                    Opening::Partial { .. } | Opening::Other => {
                        self.may_be_iperf2 = false;
                        self.wanted = COOKIE_BYTES.max(self.have);
                        continue;
                    }
                }
            }
            let mut cookie = [0; COOKIE_BYTES];
            cookie.copy_from_slice(&self.bytes[..COOKIE_BYTES]);
            return Read::Whole(cookie);
        }
    }
}

/// A connection of a well-behaved client has sent its 37 bytes by then, with its first packet.
const PROMPT: Nanos = Nanos::from_millis(1000);

/// Accepts what waits. When too many are on their way, the oldest goes where it is late, or else that of the address with
/// the most.
pub(super) fn accept_all(
    listener: &TcpListener,
    protocol: Protocol,
    iperf2: bool,
    pending: &mut Vec<Pending>,
) {
    let may_be_iperf2 = iperf2 && protocol == Protocol::Tcp;
    for _ in 0..BACKLOG {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            // No descriptors: the connections still wait, and asking again at once would only spin.
            Err(error) if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) => {
                std::thread::sleep(NO_DESCRIPTORS_PAUSE);
                return;
            }
            // Nobody waits any more, or the peer is gone already.
            Err(_) => return,
        };
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        let now = clock::monotonic();
        let deadline = now.plus(ADMISSION_PATIENCE);
        if pending.len() >= MOST_PENDING {
            pending.remove(least_missed(pending, deadline));
        }
        pending.push(Pending {
            protocol,
            stream,
            peer,
            deadline,
            bytes: [0; LONGEST_HEADER],
            have: 0,
            wanted: if may_be_iperf2 { LEAST } else { COOKIE_BYTES },
            may_be_iperf2,
        });
    }
}

/// Which of them goes; `newest` is the deadline that one more has.
fn least_missed(pending: &[Pending], newest: Nanos) -> usize {
    let late = pending
        .first()
        .is_some_and(|oldest| newest.since(oldest.deadline) > PROMPT);
    let site = |one: &Pending| Site::of(one.peer.ip());
    let most = occupancy::most_frequent(pending.iter().map(site)).filter(|_| !late);
    most.and_then(|most| pending.iter().position(|one| site(one) == most))
        .unwrap_or(0)
}
