//! The kernel's table of TCP sockets, of all processes: what `ss -ti` shows, fast enough to be read a
//! hundred times a second.
//!
//! Asked over `NETLINK_SOCK_DIAG` (`net/ipv4/inet_diag.c`, `net/ipv4/tcp_diag.c`) with the request that tells
//! IPv4 and IPv6 in one walk (`TCPDIAG_GETSOCK`): a walk passes every bucket of the hash table, of which a large
//! host has half a million, so the second walk of `SOCK_DIAG_BY_FAMILY` would cost as much again. The kernel
//! picks the sockets of a [`SocketFilter`] itself. No privilege is needed: an ordinary user sees every
//! socket of the network namespace, only not which process holds another user's.
//!
//! A socket that closes while the table is read may be missing from it, and one that lives may be: the walk
//! goes on by number within a bucket. So one that is missing once is not yet gone.

mod filter;
mod message;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_model::units::Nanos;
use rustix::net::netlink::SOCK_DIAG;

use crate::KernelError;
use crate::netlink::{Netlink, push_attribute};

pub use filter::{Condition, SocketFilter};
pub use message::{SocketMemory, TcpSocket};

/// `TCPDIAG_GETSOCK`: all address families.
const ASK: u16 = 18;
/// `SOCK_DIAG_BY_FAMILY`, as which the kernel tells of destroyed sockets.
const TOLD: u16 = 20;
/// `INET_DIAG_REQ_BYTECODE`.
const BYTECODE: u16 = 1;
/// Extensions, a bit each at their number less one: `INFO`, `VEGASINFO` (which is BBR's too), `CONG`, `SKMEMINFO`.
const EXTENSIONS: u8 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6;
/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY`, as bits.
const DESTROYED: u32 = 1 | 1 << 2;
/// `TCP_LISTEN`.
const LISTEN: u32 = 10;
/// From `SYN_SENT` to CLOSING, without `TIME_WAIT`, whose account the kernel no longer holds, and LISTEN.
const CONNECTED: u32 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// A question to the table, to be asked again and again.
#[derive(Debug)]
pub struct TcpTable {
    netlink: Netlink,
}

impl TcpTable {
    /// The table of the calling thread's network namespace; it stays with it.
    ///
    /// # Errors
    /// No netlink socket of this kind: a kernel without `CONFIG_INET_DIAG`, or a filter of system calls.
    pub fn open() -> Result<Self, KernelError> {
        let netlink = Netlink::open_to(Some(SOCK_DIAG)).map_err(KernelError::of(
            "open",
            "a socket to the kernel's table of TCP sockets (sock_diag)",
        ))?;
        Ok(Self { netlink })
    }

    /// Hands over each connection of the filter, with the instant at which the kernel looked at it. Whether
    /// the table was told whole: false, and something may be missing.
    ///
    /// # Errors
    /// The kernel's: `ENOENT` where it has no `tcp_diag`, `EINVAL` for a filter that does not fit ([`SocketFilter::fits`]);
    /// `WouldBlock` after a second without an answer.
    pub fn connections(
        &mut self,
        filter: &SocketFilter,
        take: impl FnMut(Nanos, &TcpSocket<'_>),
    ) -> io::Result<bool> {
        self.ask(CONNECTED, EXTENSIONS, filter, take)
    }

    /// The ports that are listened on now, in order, each once.
    ///
    /// # Errors
    /// As [`TcpTable::connections`].
    pub fn listening_ports(&mut self) -> io::Result<Vec<u16>> {
        let mut ports = Vec::new();
        self.ask(1 << LISTEN, 0, &SocketFilter::default(), |_, socket| {
            ports.push(socket.local.port());
        })?;
        ports.sort_unstable();
        ports.dedup();
        Ok(ports)
    }

    fn ask(
        &mut self,
        states: u32,
        extensions: u8,
        filter: &SocketFilter,
        mut take: impl FnMut(Nanos, &TcpSocket<'_>),
    ) -> io::Result<bool> {
        // struct inet_diag_req: family, lengths of the addresses, extensions; the socket (empty); states; dbs.
        let mut body = vec![0, 0, 0, extensions];
        body.resize(52, 0);
        body.extend(states.to_ne_bytes());
        body.extend([0; 4]);
        if !filter.fits() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        if !filter.program().is_empty() {
            push_attribute(&mut body, BYTECODE, filter.program());
        }
        self.netlink.dump(ASK, &body, |at, answer| {
            if let Some(socket) = message::parse(answer) {
                take(at, &socket);
            }
        })
    }
}

/// Hears the kernel's last word on each TCP socket of the network namespace that it destroys.
#[derive(Debug)]
pub struct Destroyed {
    netlink: Netlink,
}

impl Destroyed {
    /// Begins to listen.
    ///
    /// # Errors
    /// `EPERM` where this kernel lets only root hear it.
    pub fn open() -> Result<Self, KernelError> {
        let object = "the destroyed sockets that the kernel reports (sock_diag)";
        let netlink = Netlink::open_to(Some(SOCK_DIAG))
            .and_then(|netlink| netlink.join(DESTROYED).map(|()| netlink))
            .map_err(KernelError::of("listen to", object))?;
        Ok(Self { netlink })
    }

    /// Hands over what was told since the last time, without waiting. False where more was told than the socket
    /// holds, so that some are missing.
    pub fn each(&mut self, mut take: impl FnMut(&TcpSocket<'_>)) -> bool {
        let mut whole = true;
        for _ in 0..MOST_TOLD {
            let heard = self.netlink.heard(|kind, body| {
                if let (TOLD, Some(socket)) = (kind, message::parse(body)) {
                    take(&socket);
                }
            });
            match heard {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => whole = false,
            }
        }
        whole
    }
}

/// As many messages are heard at once; the rest wait for the next time.
const MOST_TOLD: usize = 4096;

impl AsFd for Destroyed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}
