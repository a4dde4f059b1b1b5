//! The control connection: a wire machine on one side, a non-blocking socket on the other.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{clock, tcp};
use linerate_model::record::ControlFacts;
use linerate_model::tcp_info::TcpFacts;
use linerate_model::units::Nanos;
use linerate_wire::control::{Control, Side};
use linerate_wire::error::ProtocolError;
use socket2::SockRef;

use crate::sockets;

/// A server cannot clamp the segments of a connection that it accepted: where its client did not, it writes small
/// pieces.
const PIECE: usize = 536;

/// While more than this waits for a peer that does not read, bytes, nothing is read from it: what it asks meanwhile would be
/// answered into memory. In turn, neither end ever waits for the other to read so much before it reads itself.
const MOST_UNSENT: usize = 64 << 10;

/// What a turn brought.
#[derive(Debug)]
pub(crate) enum Turn<E> {
    /// The peer said something.
    Event(E),
    /// One of the other descriptors became readable: its place in the list.
    Woken(usize),
    /// The time is up.
    TimedOut,
}

/// Why the control connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("the peer closed the control connection")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Nothing can be written.
    #[error(transparent)]
    Unsent(io::Error),
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// A control connection and its machine.
#[derive(Debug)]
pub(crate) struct Link<S: Side> {
    stream: TcpStream,
    pub(crate) machine: Control<S>,
    out: Vec<u8>,
    out_at: usize,
    pieces: usize,
    closed: bool,
    /// What was read behind the last event, and how much of it the machine has.
    input: Vec<u8>,
    input_at: usize,
}

impl<S: Side> Link<S> {
    /// A connection that this end opened, with its segments clamped.
    pub(crate) const fn opened(stream: TcpStream, machine: Control<S>) -> Self {
        Self {
            stream,
            machine,
            out: Vec::new(),
            out_at: 0,
            pieces: usize::MAX,
            closed: false,
            input: Vec::new(),
            input_at: 0,
        }
    }

    /// A connection that this end accepted.
    pub(crate) fn accepted(stream: TcpStream, machine: Control<S>) -> Self {
        let clamped = sockets::has_clamped_segments(&stream);
        Self {
            pieces: if clamped { usize::MAX } else { PIECE },
            ..Self::opened(stream, machine)
        }
    }

    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// What the kernel says of the connection to `peer`.
    pub(crate) fn facts(&self, peer: SocketAddr) -> ControlFacts {
        ControlFacts {
            local: sockets::address(SockRef::from(&self.stream).local_addr()).into(),
            remote: peer.to_string().into(),
            mss_bytes: tcp::mss(&self.stream).ok(),
            ..ControlFacts::default()
        }
    }

    /// Its smoothed round-trip time; zero where it is not known.
    pub(crate) fn round_trip(&self) -> Nanos {
        let facts = tcp::info(&self.stream).map(|info| TcpFacts::from(&info));
        let rtt_us = facts.ok().and_then(|facts| facts.rtt_us).unwrap_or(0);
        Nanos(rtt_us.saturating_mul(1000))
    }

    /// Writes what is to be written and waits for the peer, for one of `others` or for `until`.
    pub(crate) fn turn(
        &mut self,
        others: &[BorrowedFd<'_>],
        until: Nanos,
    ) -> Result<Turn<S::Event>, LinkError> {
        loop {
            if let Some(event) = self.machine.poll_event() {
                return Ok(Turn::Event(event));
            }
            if self.closed {
                return Err(LinkError::Closed);
            }
            // Answers before what else was said.
            let pending = self.flush()?;
            if self.input_at < self.input.len() {
                self.digest()?;
                continue;
            }
            let now = clock::monotonic();
            if now >= until {
                return Ok(Turn::TimedOut);
            }
            let mut entries = Vec::with_capacity(1 + others.len());
            entries.push(PollEntry::new(
                self.stream.as_fd(),
                Interest {
                    read: self.out.len() - self.out_at <= MOST_UNSENT,
                    write: pending,
                },
            ));
            entries.extend(others.iter().map(|fd| PollEntry::new(*fd, Interest::READ)));
            if poll::wait(&mut entries, Some(until.since(now)))? == 0 {
                continue;
            }
            let own = entries[0].readiness();
            let woken = entries[1..]
                .iter()
                .position(|entry| entry.readiness().readable);
            drop(entries);
            if own.readable || own.hangup || own.error {
                self.read()?;
                continue;
            }
            if let Some(index) = woken {
                return Ok(Turn::Woken(index));
            }
        }
    }

    /// Writes as much as goes at once. True = something is left.
    pub(crate) fn flush(&mut self) -> Result<bool, LinkError> {
        while let Some(bytes) = self.machine.poll_transmit() {
            self.out.drain(..self.out_at);
            self.out_at = 0;
            if self.out.is_empty() {
                self.out = bytes;
            } else {
                self.out.extend_from_slice(&bytes);
            }
        }
        while self.out_at < self.out.len() {
            let end = self.out.len().min(self.out_at.saturating_add(self.pieces));
            match self.stream.write(&self.out[self.out_at..end]) {
                Ok(0) => return Err(LinkError::Unsent(io::ErrorKind::WriteZero.into())),
                Ok(written) => self.out_at += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LinkError::Unsent(error)),
            }
        }
        // A record that was sent is gone.
        self.out = Vec::new();
        self.out_at = 0;
        Ok(false)
    }

    /// Writes everything, within a bound; for a last word before closing.
    pub(crate) fn flush_until(&mut self, until: Nanos) -> Result<(), LinkError> {
        while self.flush()? {
            let left = until.since(clock::monotonic());
            if left == Nanos::ZERO {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            let mut entries = [PollEntry::new(self.stream.as_fd(), Interest::WRITE)];
            poll::wait(&mut entries, Some(left))?;
        }
        Ok(())
    }

    /// Throws away what the peer still sends, until it closes the connection, `other` is readable or the time is up: to
    /// close before it does would take what was written last away from it. True = `other` is readable.
    pub(crate) fn drain_until(&mut self, other: BorrowedFd<'_>, until: Nanos) -> bool {
        loop {
            let left = until.since(clock::monotonic());
            let mut entries = [self.stream.as_fd(), other]
                .map(|descriptor| PollEntry::new(descriptor, Interest::READ));
            if left == Nanos::ZERO || poll::wait(&mut entries, Some(left)).is_err() {
                return false;
            }
            let [own, woken] = entries.map(|entry| entry.readiness());
            if woken.readable {
                return true;
            }
            let mut bytes = [0_u8; 16 << 10];
            let read =
                (own.readable || own.hangup || own.error).then(|| self.stream.read(&mut bytes));
            match read {
                Some(Ok(0)) => return false,
                Some(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => return false,
                _ => {}
            }
        }
    }

    /// Gives the machine what was read, up to the next event.
    fn digest(&mut self) -> Result<(), LinkError> {
        let mut input = &self.input[self.input_at..];
        let handled = self.machine.handle_to_event(&mut input);
        self.input_at = self.input.len() - input.len();
        Ok(handled?)
    }

    fn read(&mut self) -> Result<(), LinkError> {
        let mut bytes = [0_u8; 16 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => {
                self.closed = true;
                Ok(())
            }
            Ok(length) => {
                self.input.clear();
                self.input.extend_from_slice(&bytes[..length]);
                self.input_at = 0;
                self.digest()
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use linerate_wire::control::{ServerControl, ServerEvent};
    use linerate_wire::extension::{Hello, Message};
    use linerate_wire::frame;
    use linerate_wire::parameters::{Extension, Parameters};

    use super::*;

    /// A server that a linerate may ping.
    fn greeting() -> ServerControl {
        let mut machine = ServerControl::default();
        machine.ask_parameters().unwrap();
        let offer = Parameters {
            linerate: Some(Extension {
                version: 1,
                software: "test".into(),
                sample_ns: None,
                received_ns: None,
                spin: false,
                target: None,
                probe: false,
            }),
            ..Parameters::default()
        };
        machine
            .handle_input(&frame::encode(&offer.to_json()))
            .unwrap();
        machine.poll_event().unwrap();
        let hello = Hello {
            version: 1,
            software: "test".into(),
            udp_token: None,
            target: None,
            probe: false,
        };
        machine.send_hello(hello).unwrap();
        machine
    }

    #[test]
    fn a_peer_that_asks_and_does_not_read_is_not_heard_any_more() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        peer.set_nonblocking(true).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        for socket in [&peer, &stream] {
            let socket = socket2::SockRef::from(socket);
            socket.set_send_buffer_size(4096).unwrap();
            socket.set_recv_buffer_size(4096).unwrap();
        }
        let mut link = Link::opened(stream, greeting());
        let ping = Message::Ping { n: 1 }.encode();
        let asked = ping.repeat(1000);
        let (mut written, mut answered) = (0, 0);
        let mut turns_in_vain = 0;
        // What the two sockets hold is answered; then nothing moves any more.
        while turns_in_vain < 3 {
            let before = (written, answered);
            written += peer.write(&asked[written % ping.len()..]).unwrap_or(0);
            let until = clock::monotonic().plus(Nanos::from_millis(20));
            while let Turn::Event(ServerEvent::Ping { n }) = link.turn(&[], until).unwrap() {
                link.machine.send_pong(n, until, until).unwrap();
                answered += 1;
            }
            turns_in_vain = if before == (written, answered) {
                turns_in_vain + 1
            } else {
                0
            };
        }
        let waits = written - answered * ping.len();
        assert!(waits > 0, "the rest waits in the kernel");
        let unsent = link.out.len() - link.out_at;
        // One read of 16 KiB may be answered after the bound was last looked at.
        let pong = Message::Pong {
            n: 1,
            received: clock::monotonic(),
            sent: clock::monotonic(),
        };
        let most = MOST_UNSENT + ((16 << 10) / ping.len() + 1) * pong.encode().len();
        assert!(unsent > MOST_UNSENT && unsent <= most, "{unsent}");
    }
}
