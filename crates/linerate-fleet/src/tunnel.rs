//! A TLS 1.3 connection, driven without blocking: its handshake within a deadline, then messages, or bytes carried between
//! it and a local socket.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

use linerate_kernel::clock;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_model::units::Nanos;
use rustls::Connection;
use rustls::pki_types::CertificateDer;

/// How often it is asked whether the other end may still be served.
const LOOK: Nanos = Nanos::from_millis(500);
/// A connection that is closed takes what is left within this time.
const FLUSH: Nanos = Nanos::from_millis(1_000);
/// Bytes that are taken at once, from the local socket and of what was decrypted: on the stack of each connection's thread.
const PIECE: usize = 4 << 10;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// Nothing came in time.
    #[error("the other end did not answer in time")]
    Silent,
    /// The other end closed the connection.
    #[error("the other end closed the connection")]
    Closed,
    /// TLS failed: among others, the other end's certificate is not accepted, or ours is not.
    #[error("{}", of_tls(.0))]
    Tls(#[from] rustls::Error),
    /// The system's words.
    #[error("{0}")]
    System(#[from] io::Error),
    /// The other end may no longer be served.
    #[error("its certificate was revoked")]
    Revoked,
}

/// Our own reasons stand alone; those of TLS say what they are about.
fn of_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::General(why) => why.clone(),
        error => format!("TLS: {error}"),
    }
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub struct Tunnel {
    tcp: TcpStream,
    tls: Connection,
}

impl Tunnel {
    /// Makes the handshake, at most until `until` (monotonic).
    ///
    /// # Errors
    /// Why it failed; a handshake that drips in byte by byte ends at the same deadline.
    pub fn shake(tcp: TcpStream, tls: Connection, until: Nanos) -> Result<Self, TunnelError> {
        tcp.set_nonblocking(true)?;
        // Frames are small and answers are waited for; where it cannot be set, it is slower.
        drop(tcp.set_nodelay(true));
        let mut tunnel = Self { tcp, tls };
        while tunnel.tls.is_handshaking() || tunnel.tls.wants_write() {
            tunnel.step(until)?;
        }
        Ok(tunnel)
    }

    /// The protocol that both ends agreed on.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// The certificate that the other end showed, if it did.
    pub fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.peer_certificates()?.first()
    }

    /// Sends all of it, at most until `until`.
    ///
    /// # Errors
    /// Why it could not be sent.
    pub fn send(&mut self, bytes: &[u8], until: Nanos) -> Result<(), TunnelError> {
        self.tls.writer().write_all(bytes)?;
        while self.tls.wants_write() {
            self.step(until)?;
        }
        Ok(())
    }

    /// Adds what comes next to `bytes`, at most until `until`.
    ///
    /// # Errors
    /// Why nothing came.
    pub fn receive(&mut self, bytes: &mut Vec<u8>, until: Nanos) -> Result<(), TunnelError> {
        let before = bytes.len();
        loop {
            let taken = self.take(bytes);
            if bytes.len() > before {
                // Where the other end closed behind it, the next call says so.
                return Ok(());
            }
            taken?;
            self.step(until)?;
        }
    }

    /// Ends the connection in an orderly way; waits at most a second.
    pub fn close(mut self) {
        self.tls.send_close_notify();
        self.flush();
    }

    fn flush(&mut self) {
        let until = clock::monotonic().plus(FLUSH);
        while self.tls.wants_write() {
            if self.step(until).is_err() {
                return;
            }
        }
    }

    /// Waits until the connection can go on, and goes on.
    fn step(&mut self, until: Nanos) -> Result<(), TunnelError> {
        let left = until.since(clock::monotonic());
        if left == Nanos::ZERO {
            return Err(TunnelError::Silent);
        }
        let interest = Interest {
            read: true,
            write: self.tls.wants_write(),
        };
        let mut entries = [PollEntry::new(self.tcp.as_fd(), interest)];
        poll::wait(&mut entries, Some(left))?;
        let ready = entries[0].readiness();
        if ready.writable {
            self.write()?;
        }
        if ready.readable || ready.error || ready.hangup {
            self.read()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), TunnelError> {
        passing(self.tls.write_tls(&mut self.tcp))?;
        Ok(())
    }

    fn read(&mut self) -> Result<(), TunnelError> {
        if passing(self.tls.read_tls(&mut self.tcp))? == Some(0) {
            return Err(TunnelError::Closed);
        }
        if let Err(error) = self.tls.process_new_packets() {
            // The other end learns why, where it still listens.
            drop(self.write());
            return Err(error.into());
        }
        Ok(())
    }

    /// Takes what was decrypted.
    fn take(&mut self, bytes: &mut Vec<u8>) -> Result<(), TunnelError> {
        let mut piece = [0; PIECE];
        loop {
            match self.tls.reader().read(&mut piece) {
                Ok(0) => return Err(TunnelError::Closed),
                Ok(length) => bytes.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(TunnelError::Closed);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Carries bytes both ways between the connection and a local socket, until one of them ends, `stop` is readable, or
    /// `is_allowed` says no: it is asked before each piece, and twice a second. Returns where it was the local end or
    /// `stop`.
    ///
    /// # Errors
    /// Why the connection ended.
    pub fn carry(
        mut self,
        plain: &UnixStream,
        stop: Option<BorrowedFd<'_>>,
        is_allowed: &dyn Fn() -> bool,
    ) -> Result<(), TunnelError> {
        plain.set_nonblocking(true)?;
        let mut pending = Vec::new();
        // What came with the handshake.
        let mut closed = self.take(&mut pending).err();
        loop {
            if !is_allowed() {
                self.flush();
                return Err(TunnelError::Revoked);
            }
            if pending.is_empty()
                && let Some(why) = closed
            {
                return Err(why);
            }
            let ready = self.wait(plain, stop, !pending.is_empty(), closed.is_none())?;
            if ready.stop {
                self.close();
                return Ok(());
            }
            if ready.to_plain && !write_some(plain, &mut pending) {
                self.close();
                return Ok(());
            }
            if ready.from_plain && !self.pass(plain)? {
                self.close();
                return Ok(());
            }
            if ready.writable {
                self.write()?;
            }
            if ready.readable && closed.is_none() && pending.is_empty() {
                closed = self.read().and_then(|()| self.take(&mut pending)).err();
            }
        }
    }

    /// Takes a piece from the local socket; whether that goes on.
    fn pass(&mut self, mut plain: &UnixStream) -> Result<bool, TunnelError> {
        let mut piece = [0; PIECE];
        match passing(plain.read(&mut piece)) {
            Ok(Some(0)) | Err(_) => Ok(false),
            Ok(Some(length)) => {
                self.tls.writer().write_all(&piece[..length])?;
                Ok(true)
            }
            Ok(None) => Ok(true),
        }
    }

    fn wait(
        &self,
        plain: &UnixStream,
        stop: Option<BorrowedFd<'_>>,
        has_pending: bool,
        is_open: bool,
    ) -> Result<Ready, TunnelError> {
        let writes = self.tls.wants_write();
        let outside = Interest {
            read: !has_pending && is_open,
            write: writes,
        };
        let inside = Interest {
            // What the other end does not take is not taken from here.
            read: !writes,
            write: has_pending,
        };
        let mut entries = vec![
            PollEntry::new(self.tcp.as_fd(), outside),
            PollEntry::new(plain.as_fd(), inside),
        ];
        entries.extend(stop.map(|stop| PollEntry::new(stop, Interest::READ)));
        poll::wait(&mut entries, Some(LOOK))?;
        let [tcp, local] = [entries[0].readiness(), entries[1].readiness()];
        let broken = |one: poll::Readiness| one.error || one.hangup;
        Ok(Ready {
            readable: tcp.readable || broken(tcp),
            writable: writes && tcp.writable,
            from_plain: local.readable || broken(local),
            to_plain: has_pending && (local.writable || broken(local)),
            stop: entries.get(2).is_some_and(|stop| stop.readiness().any()),
        })
    }
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "a descriptor's readiness each"
)]
struct Ready {
    readable: bool,
    writable: bool,
    from_plain: bool,
    to_plain: bool,
    stop: bool,
}

/// Writes what the local socket takes; whether it is still there.
fn write_some(mut plain: &UnixStream, pending: &mut Vec<u8>) -> bool {
    match passing(plain.write(pending)) {
        Ok(written) => {
            pending.drain(..written.unwrap_or(0));
            if pending.is_empty() {
                // A record's memory is not kept for the next heartbeat.
                *pending = Vec::new();
            }
            true
        }
        Err(_) => false,
    }
}

/// `None` where it is to be tried again.
fn passing(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(length) => Ok(Some(length)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
