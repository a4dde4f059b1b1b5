//! Opening the data streams, of TCP and SCTP by connecting, of UDP by a handshake that survives lost datagrams.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{clock, socket};
use linerate_model::plan::Protocol;
use linerate_model::progress::Event;
use linerate_model::record::{Note, Role};
use linerate_model::units::Nanos;
use linerate_wire::control::ClientEvent;
use linerate_wire::udp::{HANDSHAKE_REQUEST, TokenHandshake, is_answer};

use crate::budget::Budget;
use crate::error::EngineError;
use crate::negotiation::{byte_budget, stream_id};
use crate::sockets;
use crate::stream::{self, StreamContext, StreamHandle, StreamSocket, StreamStage, Streams};
use crate::stream_file;

use super::{PATIENCE, Session};

/// How long an opening datagram may stay unanswered before it is sent again: to a linerate often,
/// since a repeat is harmless there, to a stock server seldom, since it takes the repeat for data.
const REPEAT_TO_OURS: Nanos = Nanos::from_millis(250);
const REPEAT_TO_STOCK: Nanos = Nanos::from_millis(1000);
/// How long to go on.
const HANDSHAKE_PATIENCE: Nanos = Nanos::from_millis(10_000);

/// A UDP stream that waits for its answer.
struct Opening {
    socket: UdpSocket,
    request: Vec<u8>,
    answered: bool,
    repeats: u32,
}

impl Session<'_> {
    /// Opens all streams, starts their threads, and waits until the server starts the test.
    pub(super) fn open_streams(&mut self) -> Result<(), EngineError> {
        self.measure_idle()?;
        if self.before.is_none() {
            self.read_before();
        }
        let sockets = match self.plan.protocol {
            Protocol::Tcp | Protocol::Sctp => self.open_connected()?,
            Protocol::Udp => self.open_udp()?,
        };
        let (bytes, added) = byte_budget(&self.plan, self.extended());
        let transfer = self.options.transfer.as_ref();
        // A transfer ends with its source: frames are no part of the bytes that are planned.
        let bytes = bytes.filter(|_| transfer.is_none());
        let streams = Streams {
            role: Role::Client,
            plan: Arc::clone(&self.plan),
            gate: Arc::clone(&self.gate),
            budget: Arc::new(Budget::new(bytes)),
            pool: Arc::clone(&self.pool),
            peer_extended: self.extended(),
            wide_counters: self.options.wide_counters,
            round_trip: self.link.round_trip(),
        };
        let contexts = (0_u16..).zip(&sockets).map(|(index, (_, repeats))| {
            let mut context = streams.context(index);
            context.handshake_repeats = *repeats;
            context.transfer = transfer.is_some();
            context
        });
        let contexts: Vec<StreamContext> = contexts.collect();
        let opened = contexts.iter().zip(&sockets);
        let opened = opened.map(|(context, (socket, _))| stream::describe(context, socket));
        (self.observe)(&Event::Opened {
            streams: opened.collect(),
        });
        if added > 0 {
            self.notes.push(Note {
                id: "blocks-rounded-up".into(),
                text: format!(
                    "iperf3 counts whole blocks, and UDP moves whole datagrams: {added} bytes were added to the \
                     requested amount"
                )
                .into(),
            });
        }
        if self.options.strict {
            self.check_granted(&sockets)?;
        }
        let path = self.options.file.as_deref();
        let sends = contexts.iter().map(|context| context.sends);
        let files = stream_file::open_for(path, sends).map_err(|source| EngineError::File {
            path: path.unwrap_or(Path::new("")).to_owned(),
            source,
        })?;
        for ((mut context, (socket, _)), file) in contexts.into_iter().zip(sockets).zip(files) {
            context.file = file;
            let id = context.id;
            let outlet = transfer.map(|transfer| StreamStage::Outlet(transfer.source.outlet()));
            match StreamHandle::spawn(context, socket, outlet) {
                Ok(handle) => self.streams.push(handle),
                Err(source) => {
                    self.gate.cut();
                    return Err(self.stream_error(id, source));
                }
            }
        }
        self.wait_for_start()
    }

    /// Refuses what the kernel did not grant.
    fn check_granted(&self, sockets: &[(StreamSocket, u32)]) -> Result<(), EngineError> {
        let tcp = self.plan.protocol == Protocol::Tcp;
        // iperf3's UDP streams pass the label over.
        if tcp && self.plan.flow_label.is_some() && self.remote.is_ipv4() {
            return Err(EngineError::FlowLabel {
                address: self.remote.ip().to_string(),
            });
        }
        sockets
            .iter()
            .try_for_each(|(socket, _)| sockets::check_buffers(socket, &self.plan))
    }

    fn wait_for_start(&mut self) -> Result<(), EngineError> {
        let patience = clock::monotonic().plus(PATIENCE);
        while !self.started {
            match self.next(patience, "waiting for the test to start") {
                Ok(ClientEvent::TestRunning) => self.started = true,
                Ok(_) => {}
                Err(error) => {
                    self.gate.cut();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn open_connected(&mut self) -> Result<Vec<(StreamSocket, u32)>, EngineError> {
        let mut sockets = Vec::new();
        for index in 0..self.plan.total_streams() {
            let cookie = self.cookie.as_bytes();
            let stream = sockets::open_stream(&self.plan, self.remote, index, cookie)
                .map_err(|source| self.stream_error(stream_id(index), source))?;
            sockets.push((StreamSocket::Stream(stream), 0));
        }
        Ok(sockets)
    }

    fn stream_error(&self, id: u32, source: io::Error) -> EngineError {
        EngineError::Stream {
            id,
            address: self.remote.to_string(),
            source,
        }
    }

    fn open_udp(&mut self) -> Result<Vec<(StreamSocket, u32)>, EngineError> {
        let token = self.hello.as_ref().and_then(|hello| hello.udp_token);
        let total = self.plan.total_streams();
        let mut openings = Vec::new();
        for index in 0..total {
            let socket = sockets::open_udp(&self.plan, self.remote, index)
                .map_err(|source| self.stream_error(stream_id(index), source))?;
            let request = match token {
                Some(token) => TokenHandshake {
                    token,
                    stream: index,
                }
                .encode()
                .to_vec(),
                None => HANDSHAKE_REQUEST.to_vec(),
            };
            openings.push(Opening {
                socket,
                request,
                answered: false,
                repeats: 0,
            });
        }
        if token.is_some() {
            self.shake_hands(&mut openings, REPEAT_TO_OURS)?;
        } else {
            // A stock server takes one stream after the other, and the order gives the ids.
            for opening in &mut openings {
                self.shake_hands(std::slice::from_mut(opening), REPEAT_TO_STOCK)?;
            }
        }
        let repeats: u32 = openings.iter().map(|opening| opening.repeats).sum();
        if repeats > 0 {
            self.notes.push(Note {
                id: "udp-handshake-repeated".into(),
                text: format!(
                    "{repeats} opening datagrams were lost or late and were repeated; a stock server may count \
                     each as a lost datagram"
                ).into(),
            });
        }
        Ok(openings
            .into_iter()
            .map(|opening| (StreamSocket::Udp(opening.socket), opening.repeats))
            .collect())
    }

    /// Sends the opening datagrams until each is answered, or the server starts the test, which
    /// proves that it took them all.
    fn shake_hands(&mut self, openings: &mut [Opening], repeat: Nanos) -> Result<(), EngineError> {
        let deadline = clock::monotonic().plus(HANDSHAKE_PATIENCE);
        let mut again = Nanos::ZERO;
        let mut first = true;
        loop {
            let now = clock::monotonic();
            if openings.iter().all(|opening| opening.answered) || self.started {
                return Ok(());
            }
            if now >= deadline {
                let text = "the server did not answer its opening datagram; a firewall may pass TCP and drop UDP on this port";
                return Err(
                    self.stream_error(stream_id(0), io::Error::new(io::ErrorKind::TimedOut, text))
                );
            }
            if now >= again {
                for opening in openings.iter_mut().filter(|opening| !opening.answered) {
                    // A refusal or a full queue is like a loss: it is sent again.
                    drop(socket::send(opening.socket.as_fd(), &opening.request));
                    opening.repeats += u32::from(!first);
                }
                (again, first) = (now.plus(repeat), false);
            }
            self.await_answers(openings, again.min(deadline))?;
        }
    }

    fn await_answers(&mut self, openings: &mut [Opening], until: Nanos) -> Result<(), EngineError> {
        let waiting: Vec<usize> = (0..openings.len())
            .filter(|index| !openings[*index].answered)
            .collect();
        let mut entries: Vec<PollEntry<'_>> = Vec::with_capacity(waiting.len() + 1);
        let read = Interest::READ;
        entries.push(PollEntry::new(self.link.stream().as_fd(), read));
        entries.extend(
            waiting
                .iter()
                .map(|index| PollEntry::new(openings[*index].socket.as_fd(), read)),
        );
        let woken = poll::wait(&mut entries, Some(until.since(clock::monotonic())));
        let control = entries[0].readiness();
        let ready: Vec<usize> = waiting
            .iter()
            .zip(&entries[1..])
            .filter(|(_, entry)| entry.readiness().readable || entry.readiness().error)
            .map(|(index, _)| *index)
            .collect();
        drop(entries);
        woken.map_err(EngineError::host("waiting for the server"))?;
        for index in ready {
            let opening = &mut openings[index];
            let mut answer = [0_u8; 64];
            match opening.socket.peek(&mut answer) {
                Ok(length) if is_answer(&answer[..length]) => {
                    drop(opening.socket.recv(&mut answer));
                    opening.answered = true;
                }
                // Data overtook the answer: the stream stands, and the datagram stays for its receiver.
                Ok(_) => opening.answered = true,
                // A refusal that an ICMP message brought; reading it clears it.
                Err(_) => {}
            }
        }
        if control.any() {
            self.hear_while_opening()?;
        }
        Ok(())
    }

    /// Reads what the server has said meanwhile, without waiting.
    fn hear_while_opening(&mut self) -> Result<(), EngineError> {
        while !self.started {
            let soon = clock::monotonic().plus(Nanos(1_000_000));
            match self.hear_in_time(&[], soon, "opening the streams")? {
                None => break,
                Some(event) => self.started = event == ClientEvent::TestRunning,
            }
        }
        Ok(())
    }
}
