//! Opening sockets as the plan asks.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::tcp::{self, Keepalive};
use linerate_kernel::{clock, sctp, socket, udp};
use linerate_model::plan::{Family, Plan, Protocol};
use linerate_model::tcp_info::TcpFacts;
use linerate_model::units::{Bytes, Nanos};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::EngineError;

/// The control connection's segments stay this small, so that its messages still arrive on a path
/// where large packets vanish. A `TCP_MAXSEG` set before connecting clamps both ends.
const CONTROL_MSS_V4: u32 = 536;
/// IPv6 guarantees 1280 bytes (RFC 8200); less 60 bytes of headers and room for a tunnel.
const CONTROL_MSS_V6: u32 = 1180;
/// Unacknowledged control data for this long means that the peer is gone.
const CONTROL_USER_TIMEOUT: Nanos = Nanos::from_millis(20_000);
/// How an idle control connection is probed, so that a peer that is gone is noticed in 20 s as well.
const CONTROL_KEEPALIVE: Keepalive = Keepalive {
    idle_s: Some(5),
    interval_s: Some(5),
    count: Some(3),
};

/// What a UDP socket asks for where the user asks for nothing: the default of most hosts, 208 KiB, is a
/// fifth of a millisecond at 10 Gbit/s, and what it loses would be the tool's own loss.
const UDP_RECEIVE_BUFFER: usize = 4 << 20;

/// The addresses of a host in the families that the plan allows.
pub(crate) fn resolve(plan: &Plan) -> Result<Vec<SocketAddr>, EngineError> {
    let host = plan.host.trim_start_matches('[').trim_end_matches(']');
    let fail = |reason: String| EngineError::Resolve {
        host: plan.host.to_string(),
        reason,
    };
    let found: Vec<SocketAddr> = (host, plan.port)
        .to_socket_addrs()
        .map_err(|error| fail(error.to_string()))?
        .collect();
    let wanted: Vec<SocketAddr> = found
        .into_iter()
        .filter(|address| match plan.family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        })
        .collect();
    if wanted.is_empty() {
        return Err(fail(
            "it has no address of the requested family; omit -4 or -6".to_owned(),
        ));
    }
    Ok(wanted)
}

/// Connects the control connection: to the first address that answers; whom, and how long it took.
pub(crate) fn connect_control(
    plan: &Plan,
    keepalive: Option<Keepalive>,
) -> Result<(TcpStream, SocketAddr, Nanos), EngineError> {
    let deadline = clock::monotonic().plus(plan.connect_timeout_ns);
    let mut last = None;
    for address in resolve(plan)? {
        let began = clock::monotonic();
        match connect_one(plan, keepalive, address, deadline) {
            Ok((stream, remote)) => return Ok((stream, remote, clock::monotonic().since(began))),
            Err(error) => last = Some((address, error)),
        }
    }
    Err(match last {
        Some((address, source)) => EngineError::Connect { address, source },
        None => EngineError::Resolve {
            host: plan.host.to_string(),
            reason: "it has no address".to_owned(),
        },
    })
}

fn connect_one(
    plan: &Plan,
    keepalive: Option<Keepalive>,
    address: SocketAddr,
    deadline: Nanos,
) -> io::Result<(TcpStream, SocketAddr)> {
    let raw = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    tcp::set_mss(&raw, control_mss(address))?;
    bind_local(&raw, plan, address, 0)?;
    let stream = connect(raw, address, deadline)?;
    prepare_control(&stream, keepalive, plan.send_timeout_ns)?;
    let remote = stream.peer_addr()?;
    Ok((stream, remote))
}

fn control_mss(address: SocketAddr) -> u32 {
    if address.is_ipv4() {
        CONTROL_MSS_V4
    } else {
        CONTROL_MSS_V6
    }
}

/// Whether the end that opened this control connection clamped its segments.
pub(crate) fn has_clamped_segments(stream: &TcpStream) -> bool {
    let Ok(peer) = stream.peer_addr() else {
        return false;
    };
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    tcp::mss(stream).is_ok_and(|mss| mss <= control_mss(peer))
}

/// What both ends set on a control connection. Who asks for probes of its own, or for a time in which data must be
/// acknowledged, gets those; a user timeout would end the connection before its last probe.
pub(crate) fn prepare_control(
    stream: &TcpStream,
    keepalive: Option<Keepalive>,
    send_timeout: Option<Nanos>,
) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    tcp::set_nodelay(stream, true)?;
    tcp::set_keepalive(stream, keepalive.unwrap_or(CONTROL_KEEPALIVE))?;
    match (send_timeout, keepalive) {
        (Some(timeout), _) => tcp::set_user_timeout(stream, timeout),
        (None, None) => tcp::set_user_timeout(stream, CONTROL_USER_TIMEOUT),
        (None, Some(_)) => Ok(()),
    }
}

/// Refuses keepalive probes that would take at least as long as the idle time before them, as iperf3 does.
pub(crate) fn check_keepalive(stream: &TcpStream, asked: Keepalive) -> Result<(), EngineError> {
    let doing = "reading the keepalive of the control connection";
    let in_force = tcp::keepalive(stream).map_err(EngineError::host(doing))?;
    if asked.idle_s.is_some() && in_force.probes_outlast_idle() {
        return Err(EngineError::Keepalive { in_force });
    }
    Ok(())
}

/// Connects a non-blocking socket within a bound.
fn connect(raw: Socket, address: SocketAddr, deadline: Nanos) -> io::Result<TcpStream> {
    raw.set_nonblocking(true)?;
    match raw.connect(&SockAddr::from(address)) {
        Ok(()) => return Ok(raw.into()),
        Err(error) if error.raw_os_error() == Some(EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    loop {
        let left = deadline.since(clock::monotonic());
        if left == Nanos::ZERO {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "no answer within the time for connecting",
            ));
        }
        let mut entries = [PollEntry::new(raw.as_fd(), Interest::WRITE)];
        if poll::wait(&mut entries, Some(left))? > 0 {
            break;
        }
    }
    match socket::pending_error(&raw)? {
        Some(error) => Err(error),
        None => Ok(raw.into()),
    }
}

/// `EINPROGRESS` on Linux.
const EINPROGRESS: i32 = 115;

fn bind_local(raw: &Socket, plan: &Plan, remote: SocketAddr, port: u16) -> io::Result<()> {
    if let Some(device) = &plan.bind_device {
        socket::bind_device(raw, device)?;
    }
    let address = match &plan.bind {
        Some(name) => local_address(name, remote)?,
        None if port == 0 => return Ok(()),
        None if remote.is_ipv4() => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    if port != 0 {
        socket::set_reuse_address(raw, true)?;
    }
    let local = SocketAddr::new(address, port);
    raw.bind(&SockAddr::from(local)).map_err(|error| {
        let advice = if error.kind() == io::ErrorKind::AddrNotAvailable {
            "; no interface of this host has it (-B)"
        } else {
            ""
        };
        io::Error::new(
            error.kind(),
            format!("the local address {local} cannot be used: {error}{advice}"),
        )
    })
}

/// Binds an SCTP socket to each address of `-X`.
fn bind_all(raw: &Socket, plan: &Plan, remote: SocketAddr, port: u16) -> io::Result<()> {
    if let Some(device) = &plan.bind_device {
        socket::bind_device(raw, device)?;
    }
    for name in &plan.sctp_bind {
        let local = SocketAddr::new(local_address(name, remote)?, port);
        sctp::add_addresses(raw, &[local]).map_err(|error| {
            let text = format!("the local address {local} cannot be used: {error} (-X)");
            io::Error::new(error.kind(), text)
        })?;
    }
    Ok(())
}

fn local_address(name: &str, remote: SocketAddr) -> io::Result<IpAddr> {
    let same_family = |address: &SocketAddr| address.is_ipv4() == remote.is_ipv4();
    let found = (name, 0).to_socket_addrs()?.find(same_family);
    found.map(|address| address.ip()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::AddrNotAvailable,
            format!("'{name}' has no address of the family of {}", remote.ip()),
        )
    })
}

/// An address and port as text; empty where there is none.
pub(crate) fn address(address: io::Result<SockAddr>) -> String {
    let address = address.ok().and_then(|address| address.as_socket());
    address.map_or_else(String::new, |address| address.to_string())
}

/// The kernel's name of an address's family.
pub(crate) const fn family(address: SocketAddr) -> socket::Family {
    if address.is_ipv4() {
        socket::Family::V4
    } else {
        socket::Family::V6
    }
}

/// The local port of data stream `index`, where the plan fixes ports.
fn client_port(plan: &Plan, index: u16) -> u16 {
    plan.client_port
        .map_or(0, |first| first.saturating_add(index))
}

/// Opens a TCP or SCTP data stream and writes its cookie.
pub(crate) fn open_stream(
    plan: &Plan,
    remote: SocketAddr,
    index: u16,
    cookie: &[u8],
) -> io::Result<TcpStream> {
    let raw = match plan.protocol {
        Protocol::Sctp => Socket::from(sctp::stream_socket(family(remote))?),
        _ if plan.mptcp => Socket::from(socket::mptcp_stream_socket(family(remote))?),
        _ => Socket::new(Domain::for_address(remote), Type::STREAM, None)?,
    };
    configure(&raw, plan, remote)?;
    let port = client_port(plan, index);
    if plan.sctp_bind.is_empty() {
        bind_local(&raw, plan, remote, port)?;
    } else {
        bind_all(&raw, plan, remote, port)?;
    }
    let stream = connect(
        raw,
        remote,
        clock::monotonic().plus(plan.connect_timeout_ns),
    )?;
    write_cookie(&stream, cookie)?;
    Ok(stream)
}

fn write_cookie(stream: &TcpStream, cookie: &[u8]) -> io::Result<()> {
    // A new connection's send buffer takes 37 bytes at once.
    if socket::send(stream.as_fd(), cookie)? != cookie.len() {
        return Err(io::Error::new(
            io::ErrorKind::WriteZero,
            "the kernel did not take the connection's cookie",
        ));
    }
    Ok(())
}

/// Connects a TCP data stream that begins with payload.
pub(crate) fn connect_stream(
    plan: &Plan,
    remote: SocketAddr,
    patience: Nanos,
) -> io::Result<TcpStream> {
    let raw = Socket::new(Domain::for_address(remote), Type::STREAM, None)?;
    configure(&raw, plan, remote)?;
    bind_local(&raw, plan, remote, 0)?;
    connect(raw, remote, clock::monotonic().plus(patience))
}

/// A TCP socket that takes the way of the data streams, and begins no connection yet.
fn beside_streams(plan: &Plan, remote: SocketAddr) -> io::Result<Socket> {
    let raw = Socket::new(Domain::for_address(remote), Type::STREAM, None)?;
    if plan.tos != 0 {
        socket::set_tos(&raw, plan.tos)?;
    }
    bind_local(&raw, plan, remote, 0)?;
    raw.set_nonblocking(true)?;
    Ok(raw)
}

/// Opens the probe connection and writes its cookie.
pub(crate) fn open_probe(plan: &Plan, remote: SocketAddr, cookie: &[u8]) -> io::Result<TcpStream> {
    let raw = beside_streams(plan, remote)?;
    let until = clock::monotonic().plus(plan.connect_timeout_ns);
    let stream = connect(raw, remote, until)?;
    tcp::set_nodelay(&stream, true)?;
    write_cookie(&stream, cookie)?;
    Ok(stream)
}

/// Begins a connection to the server that is closed, by a reset, when it stands.
pub(crate) fn begin_connection(plan: &Plan, remote: SocketAddr) -> io::Result<Socket> {
    let raw = beside_streams(plan, remote)?;
    raw.set_linger(Some(std::time::Duration::ZERO))?;
    match raw.connect(&SockAddr::from(remote)) {
        Err(error) if error.raw_os_error() != Some(EINPROGRESS) => Err(error),
        _ => Ok(raw),
    }
}

/// Opens a UDP data stream, connected to the server; the handshake is the caller's.
pub(crate) fn open_udp(plan: &Plan, remote: SocketAddr, index: u16) -> io::Result<UdpSocket> {
    let raw = Socket::new(Domain::for_address(remote), Type::DGRAM, None)?;
    configure(&raw, plan, remote)?;
    bind_local(&raw, plan, remote, client_port(plan, index))?;
    raw.connect(&SockAddr::from(remote))?;
    raw.set_nonblocking(true)?;
    Ok(raw.into())
}

/// The buffers of a socket, bytes; the kernel reports twice what it granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketBuffers {
    /// `SO_SNDBUF`.
    pub send: u64,
    /// `SO_RCVBUF`.
    pub receive: u64,
}

impl SocketBuffers {
    /// Refuses buffers that are smaller than the plan asks for, as iperf3 does.
    pub(crate) fn check(self, plan: &Plan) -> Result<(), EngineError> {
        let granted = self.send.min(self.receive);
        match plan.window_bytes.map(Bytes::count) {
            Some(asked) if granted < asked => Err(EngineError::Buffers { asked, granted }),
            _ => Ok(()),
        }
    }
}

/// Refuses a socket whose buffers are smaller than the plan asks for, as iperf3 does, though not of SCTP; the kernel reports
/// twice what it granted.
pub(crate) fn check_buffers(raw: impl AsFd, plan: &Plan) -> Result<(), EngineError> {
    if plan.window_bytes.is_none() || plan.protocol == Protocol::Sctp {
        return Ok(());
    }
    buffers(raw.as_fd())
        .map_err(EngineError::host("reading the size of a socket buffer"))?
        .check(plan)
}

fn buffers(raw: BorrowedFd<'_>) -> io::Result<SocketBuffers> {
    Ok(SocketBuffers {
        send: socket::send_buffer(raw)? as u64,
        receive: socket::receive_buffer(raw)? as u64,
    })
}

/// What a plan's TCP streams start with, read from a socket made for it.
pub(crate) fn tcp_buffers(plan: &Plan, remote: SocketAddr) -> io::Result<SocketBuffers> {
    let raw = Socket::new(Domain::for_address(remote), Type::STREAM, None)?;
    set_buffers(&raw, plan)?;
    buffers(raw.as_fd())
}

pub(crate) fn set_buffers(raw: &impl AsFd, plan: &Plan) -> io::Result<()> {
    let Some(window) = plan.window_bytes else {
        return Ok(());
    };
    let bytes = usize::try_from(window.count()).unwrap_or(usize::MAX);
    socket::set_send_buffer(raw, bytes)?;
    socket::set_receive_buffer(raw, bytes)
}

/// Sets what the plan asks of a data socket, at either end.
pub(crate) fn configure(raw: &impl AsFd, plan: &Plan, remote: SocketAddr) -> io::Result<()> {
    set_buffers(raw, plan)?;
    if plan.tos != 0 {
        socket::set_tos(raw, plan.tos)?;
    }
    if let Some(rate) = plan.kernel_pacing_bps {
        socket::set_max_pacing_rate(raw, rate)?;
    }
    if let (Some(label), SocketAddr::V6(remote)) = (plan.flow_label, remote) {
        socket::set_flow_label(raw, *remote.ip(), label)?;
    }
    match plan.protocol {
        Protocol::Tcp => {
            if let Some(mss) = plan.mss_bytes {
                tcp::set_mss(raw, u32::from(mss))?;
            }
            if let Some(timeout) = plan.send_timeout_ns {
                tcp::set_user_timeout(raw, timeout)?;
            }
            if plan.nodelay {
                tcp::set_nodelay(raw, true)?;
            }
            if let Some(name) = &plan.congestion {
                tcp::set_congestion(raw, name).map_err(|error| {
                    io::Error::new(error.source.kind(), format!("{error}; net.ipv4.tcp_available_congestion_control lists what this host has"))
                })?;
            }
        }
        Protocol::Sctp => {
            // iperf3 passes smaller ones over.
            if let Some(mss) = plan.mss_bytes.filter(|mss| *mss >= 512) {
                sctp::set_max_segment(raw, u32::from(mss))?;
            }
            if plan.nodelay {
                sctp::set_nodelay(raw, true)?;
            }
            if let Some(streams) = plan.sctp_streams {
                sctp::set_streams(raw, streams)?;
            }
        }
        Protocol::Udp => {
            if plan.dont_fragment {
                socket::set_dont_fragment(raw, family(remote))?;
            }
            if plan.window_bytes.is_none() {
                // The kernel grants as much of it as net.core.rmem_max allows.
                socket::set_receive_buffer(raw, UDP_RECEIVE_BUFFER)?;
            }
            // A kernel without merging (before 5.0) or without the counter still measures.
            drop(udp::enable_gro(raw));
        }
    }
    Ok(())
}

/// The longest round trip of some streams; zero where none is known.
pub(crate) fn longest_round_trip(streams: impl Iterator<Item = impl AsFd>) -> Nanos {
    let trips = streams.filter_map(|stream| {
        let info = tcp::info(stream.as_fd()).ok()?;
        TcpFacts::from(&info).rtt_us
    });
    Nanos(trips.max().unwrap_or(0).saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use linerate_testing::{Need, skipped};

    use super::*;

    /// What the accepting end says of a connection whose other end clamped its segments to so much, or not at all.
    fn seen_as_clamped(listener: &TcpListener, mss: Option<u32>) -> bool {
        let to = listener.local_addr().unwrap();
        let raw = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
        if let Some(mss) = mss {
            tcp::set_mss(&raw, mss).unwrap();
        }
        raw.connect(&SockAddr::from(to)).unwrap();
        has_clamped_segments(&listener.accept().unwrap().0)
    }

    #[test]
    fn a_control_connection_has_its_own_probes_or_those_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        prepare_control(&stream, None, None).unwrap();
        assert_eq!(tcp::keepalive(&stream).unwrap(), CONTROL_KEEPALIVE);
        let timeout = || {
            let raw = socket2::SockRef::from(&stream);
            raw.tcp_user_timeout().unwrap()
        };
        assert_eq!(timeout(), Some(CONTROL_USER_TIMEOUT.as_duration()));
        let asked = Keepalive {
            idle_s: Some(60),
            interval_s: Some(7),
            count: Some(2),
        };
        prepare_control(&stream, Some(asked), Some(Nanos::from_millis(900))).unwrap();
        assert_eq!(tcp::keepalive(&stream).unwrap(), asked);
        assert_eq!(timeout(), Some(std::time::Duration::from_millis(900)));
    }

    #[test]
    fn a_buffer_that_the_kernel_cuts_is_refused_where_that_is_wanted() {
        let raw = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let remote = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut plan = Plan::new("h");
        check_buffers(&raw, &plan).unwrap();
        plan.window_bytes = Some(linerate_model::units::Bytes(16 << 10));
        configure(&raw, &plan, remote).unwrap();
        check_buffers(&raw, &plan).unwrap();
        plan.window_bytes = Some(linerate_model::units::Bytes(1 << 30));
        configure(&raw, &plan, remote).unwrap();
        assert!(matches!(
            check_buffers(&raw, &plan),
            Err(EngineError::Buffers { asked, granted }) if asked == 1 << 30 && granted < asked
        ));
    }

    #[test]
    fn a_server_sees_whether_its_client_clamped() {
        let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(seen_as_clamped(&v4, Some(CONTROL_MSS_V4)));
        assert!(!seen_as_clamped(&v4, None));
        assert!(!seen_as_clamped(&v4, Some(1000)));
        match TcpListener::bind("[::1]:0") {
            Ok(v6) => {
                assert!(seen_as_clamped(&v6, Some(CONTROL_MSS_V6)));
                assert!(!seen_as_clamped(&v6, None));
            }
            Err(error) => skipped(
                Need::Ipv6,
                "a clamped connection over IPv6",
                &error.to_string(),
            ),
        }
    }
}
