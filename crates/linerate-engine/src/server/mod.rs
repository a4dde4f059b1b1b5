//! The server: many clients at once, each on threads of its own.
//!
//! One thread accepts: it reads the 37 bytes that tell a control connection from a data stream, hands
//! data streams to the test that waits for them, and answers UDP's opening datagrams, but only those
//! that come from the address of a control connection. Everything that waits for a peer has a bound, and
//! so has the sum of all tests: [`occupancy`] gives out places, streams and memory, and all samples share one
//! [`SamplePool`].

mod congestion;
mod echo;
mod iperf2;
mod limits;
mod listen;
mod occupancy;
mod options;
mod place;
mod refusal;
mod running;
mod sctp_listen;
mod session;
mod storing;
mod telling;
mod udp_accept;

use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_kernel::clock;
use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{process, socket};
use linerate_model::plain_text::PlainText;
use linerate_model::plan::{Plan, Protocol};
use linerate_model::progress::Event;
use linerate_model::record::RunRecord;
use linerate_model::units::Nanos;
use linerate_wire::control::ServerControl;
use linerate_wire::cookie::Cookie;

use crate::error::EngineError;
use crate::sample_pool::SamplePool;
use crate::stream::iperf2::Early;

pub use crate::sockets::SocketBuffers;
pub use limits::{Network, NetworkError, ServerLimits};
pub use linerate_wire::frame::Unread;
pub use options::{OwnReport, ServerOptions, ServerOutput};

use congestion::AcceptedCongestion;
use iperf2::heard::Heard;
use iperf2::proof::Proofs;
use limits::NO_COOKIE;
use listen::{Listeners, Pending};
use occupancy::{Occupancy, Origin};
use place::Lent;
pub(crate) use place::{Held, Place};
use sctp_listen::SctpListeners;

/// A connection that has not sent its 37 bytes by then is closed, and so is one whose parameters and credentials have not come
/// as long after those.
const ADMISSION_PATIENCE: Nanos = Nanos::from_millis(5000);
/// Connections that may be on their way to their 37 bytes.
const MOST_PENDING: usize = 512;
/// How long ended sessions may take to leave.
const LEAVE_PATIENCE: Nanos = Nanos::from_millis(10_000);

/// What ended a test, or kept it from running, by the side that it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The client said that its user stopped it.
    ClientStopped,
    /// The client ended the session before its test, and says nothing of a failure.
    ClientDone,
    /// The client closed the control connection.
    ClientClosed,
    /// The control connection failed, with the kernel's errno where it was the kernel.
    Control(Option<i32>),
    /// The client sent what this protocol does not have.
    NotUnderstood,
    /// The client did not say or do what it was its turn to.
    ClientSilent,
    /// This server was stopped.
    ServerStopped,
    /// The client's parameters or results could not be read.
    Message {
        /// iperf3's error number.
        code: i32,
        /// The kernel's errno where the connection failed, 0 where it did not.
        errno: i32,
        /// What came of the message, where not all of it came.
        unread: Option<Unread>,
    },
    /// This server gave up, or refused; the client was told iperf3's error number.
    Code(i32),
    /// The same, with the kernel's errno.
    System(i32, i32),
    /// This server turned the connection away before it read what was asked.
    TurnedAway,
    /// This host refused something that every test needs.
    Host,
}

/// What a server tells. `test` counts its tests from 1.
#[derive(Debug)]
pub enum ServerEvent {
    /// A control connection was taken.
    Accepted {
        /// The test's number.
        test: u64,
        /// The client.
        peer: SocketAddr,
        /// The user, where authentication is asked for.
        user: Option<PlainText>,
        /// What its TCP streams start with.
        buffers: Option<SocketBuffers>,
    },
    /// Something that a running test tells.
    Progress {
        /// The test's number.
        test: u64,
        /// What.
        event: Event,
    },
    /// A test has ended.
    Finished {
        /// The test's number.
        test: u64,
        /// Its record: the server's side.
        record: Box<RunRecord>,
        /// What ended it, where it did not complete.
        cause: Option<Cause>,
        /// Whether its end was told by the client or made here; not where it broke off.
        in_order: bool,
    },
    /// What a client asks for, before it is admitted or refused; of an iperf2, before each part of its test.
    Asked {
        /// The test's number.
        test: u64,
        /// The test, as far as its parameters tell.
        plan: Box<Plan>,
    },
    /// A client was turned away, or failed before its streams ran.
    Refused {
        /// Its number, where one was given to it.
        test: Option<u64>,
        /// The client.
        peer: SocketAddr,
        /// Why.
        reason: PlainText,
        /// The same by its kind.
        cause: Cause,
    },
}

/// Why a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEnd {
    /// It was asked to.
    Stopped,
    /// The one test that it was for is over.
    OneOff,
    /// No test began for as long as it was to wait ([`ServerOptions::wait`], [`ServerOptions::one_off_patience`]).
    NoTest,
}

/// Where a server tells. It is called from the threads of the tests.
pub type Observer = Arc<dyn Fn(ServerEvent) + Send + Sync>;

/// A data stream that came for a test.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Over TCP or SCTP.
    Stream(TcpStream),
    /// With the place of the stream and the opening datagram that announced it.
    Udp(UdpSocket, Option<u16>, Vec<u8>),
    /// The probe connection.
    Probe(TcpStream),
    /// Of an iperf2 over UDP, with the datagrams that came before it had a socket.
    Flow(UdpSocket, Vec<Early>),
}

/// A test that is known to the accepting thread.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) peer: IpAddr,
    pub(crate) news: EventFd,
    pub(crate) state: Mutex<EntryState>,
}

#[derive(Debug, Default)]
pub(crate) struct EntryState {
    arrivals: VecDeque<Arrival>,
    /// A probe connection is still expected: over TCP, before any stream.
    expects_probe: bool,
    /// TCP streams still expected.
    expected_tcp: usize,
    /// SCTP streams still expected.
    expected_sctp: usize,
    /// UDP streams still expected from a stock client.
    expected_stock_udp: usize,
    /// The token of a linerate's UDP streams, and which of them came.
    token: Option<[u8; 16]>,
    came: Vec<u16>,
    expected_ours: u16,
    /// Streams of an iperf2 that may join.
    iperf2: Option<iperf2::Door>,
}

impl Entry {
    pub(crate) fn lock(&self) -> MutexGuard<'_, EntryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_arrival(&self) -> Option<Arrival> {
        self.lock().arrivals.pop_front()
    }

    fn bring(&self, mut state: MutexGuard<'_, EntryState>, arrival: Arrival) {
        state.arrivals.push_back(arrival);
        drop(state);
        drop(self.news.raise());
    }
}

/// What all threads of a server share.
pub(crate) struct Shared {
    pub(crate) options: ServerOptions,
    pub(crate) observe: Observer,
    congestion: AcceptedCongestion,
    /// The listeners of SCTP, while a test wants them.
    sctp: SctpListeners,
    /// For the samples of all tests.
    pub(crate) pool: Arc<SamplePool>,
    /// Records are made for clients one at a time,
    pub(crate) turn: Mutex<()>,
    /// and credentials looked at.
    pub(crate) credentials: Mutex<()>,
    pub(crate) terminate: EventFd,
    sessions: Mutex<Sessions>,
    /// Where flows of an iperf2 may come from.
    heard: Mutex<Heard>,
    left: EventFd,
}

#[derive(Default)]
struct Sessions {
    by_cookie: HashMap<Cookie, Arc<Entry>>,
    occupancy: Occupancy,
    /// Addresses from which a stock client is opening UDP streams: those carry no identity.
    opening_udp: Vec<IpAddr>,
    /// Addresses that UDP may be sent to which nobody agreed upon over TCP.
    proofs: Proofs,
    /// When it was told last that flows of an iperf2 are turned away.
    told_of_udp: Nanos,
    counted: u64,
    /// When the last test ended; zero before the first.
    quiet_since: Nanos,
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the turn to open UDP streams without a token from an address. False = another client has it.
    pub(crate) fn take_udp_turn(&self, peer: IpAddr) -> bool {
        let mut sessions = self.sessions();
        let free = !sessions.opening_udp.contains(&peer);
        if free {
            sessions.opening_udp.push(peer);
        }
        free
    }

    pub(crate) fn give_up_udp_turn(&self, peer: IpAddr) {
        self.sessions()
            .opening_udp
            .retain(|address| *address != peer);
    }

    /// Takes memory for what may outlive its session: all of it, or none where there is less.
    fn lend(shared: &Arc<Self>, bytes: usize) -> Option<Lent> {
        let held = shared
            .sessions()
            .occupancy
            .hold(bytes, &shared.options.limits);
        let lent = Lent {
            shared: Arc::clone(shared),
            bytes: held,
        };
        (held == bytes).then_some(lent)
    }

    /// Takes memory for what is sent to a client: as much of `wanted` bytes as there is.
    pub(crate) fn hold(&self, wanted: usize) -> Held<'_> {
        let bytes = self.sessions().occupancy.hold(wanted, &self.options.limits);
        Held {
            shared: self,
            bytes,
        }
    }
}

/// A server that listens.
pub struct Server {
    listeners: Listeners,
    shared: Arc<Shared>,
}

impl Server {
    /// Opens the sockets.
    pub fn bind(options: ServerOptions, observe: Observer) -> Result<Self, EngineError> {
        let mut options = options;
        // Where it cannot be raised, fewer streams fit, and those that do not are refused.
        if let Ok(descriptors) = process::raise_descriptor_limit() {
            options.limits = options.limits.within_descriptors(descriptors);
        }
        let listeners = Listeners::open(&options)?;
        let congestion = if options.inherited.is_empty() {
            AcceptedCongestion::prepare(&listeners.tcp)
        } else {
            AcceptedCongestion::untouched()
        };
        let event = || EventFd::new().map_err(EngineError::host("making event descriptors"));
        let limits = &options.limits;
        let shared = Shared {
            pool: SamplePool::new(limits.sample_bytes(), limits.samples_per_second),
            turn: Mutex::new(()),
            credentials: Mutex::new(()),
            sctp: SctpListeners::beside(&listeners, &options),
            options,
            observe,
            congestion,
            terminate: event()?,
            sessions: Mutex::new(Sessions::default()),
            heard: Mutex::default(),
            left: event()?,
        };
        Ok(Self {
            listeners,
            shared: Arc::new(shared),
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.addresses()
    }

    /// Where it listens for iperf2's clients beside these.
    pub fn iperf2_addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iperf2_addresses()
    }

    /// Why it does not listen for iperf2's clients on their own port, where it was to; once.
    pub fn take_iperf2_failure(&mut self) -> Option<EngineError> {
        self.listeners.take_iperf2_failure()
    }

    /// The bounds in force.
    pub fn limits(&self) -> &ServerLimits {
        &self.shared.options.limits
    }

    /// Serves until `finish` (running tests may end within the grace) or `stop` (they are ended at
    /// once) becomes readable, one test is over and that was asked for, or no test begins for as long as it waits.
    pub fn run(
        self,
        finish: BorrowedFd<'_>,
        stop: BorrowedFd<'_>,
    ) -> Result<ServerEnd, EngineError> {
        let mut pending: Vec<Pending> = Vec::new();
        let started = clock::monotonic();
        loop {
            let turn = self.turn(&mut pending, self.idle_until(started), finish, stop);
            let (done, finish_now, stop_now) =
                turn.map_err(EngineError::host("waiting for clients"))?;
            let idle_until = self.idle_until(started);
            if idle_until.is_some_and(|until| clock::monotonic() >= until) {
                // Connections that have not said what they want yet.
                self.wind_down(Nanos::ZERO, stop);
                return Ok(ServerEnd::NoTest);
            }
            if stop_now || finish_now {
                let grace = if stop_now {
                    Nanos::ZERO
                } else {
                    self.shared.options.grace
                };
                self.wind_down(grace, stop);
                return Ok(ServerEnd::Stopped);
            }
            if done {
                return Ok(ServerEnd::OneOff);
            }
        }
    }

    /// When it ends because no test has begun; absent while one runs, and where it waits as long as it takes.
    fn idle_until(&self, started: Nanos) -> Option<Nanos> {
        let options = &self.shared.options;
        let sessions = self.shared.sessions();
        let first = options
            .one_off_patience
            .filter(|_| options.one_off && sessions.counted == 0)
            .map(|patience| started.plus(patience));
        let next = options
            .wait
            .filter(|_| sessions.occupancy.tests() == 0)
            .map(|wait| sessions.quiet_since.max(started).plus(wait));
        first.into_iter().chain(next).min()
    }

    /// One wait and what came of it. Gives back: one-off test over, asked to finish, asked to stop.
    fn turn(
        &self,
        pending: &mut Vec<Pending>,
        idle_until: Option<Nanos>,
        finish: BorrowedFd<'_>,
        stop: BorrowedFd<'_>,
    ) -> io::Result<(bool, bool, bool)> {
        let read = Interest::READ;
        let tcp = self.listeners.tcp.iter().map(AsFd::as_fd);
        let udp = self
            .listeners
            .udp
            .iter()
            .map(|listener| listener.socket.as_fd());
        let sctp = self.shared.sctp.open();
        let sctp = sctp.as_ref().map_or(&[][..], |open| &open[..]);
        let waiting = pending.iter().map(|connection| connection.stream.as_fd());
        let fixed = [finish, stop, self.shared.left.as_fd()].into_iter();
        let mut entries: Vec<PollEntry<'_>> = fixed
            .chain(tcp)
            .chain(udp)
            .chain(sctp.iter().map(AsFd::as_fd))
            .chain(waiting)
            .map(|fd| PollEntry::new(fd, read))
            .collect();
        let now = clock::monotonic();
        let deadlines = pending.iter().map(|connection| connection.deadline);
        let until = deadlines.chain(idle_until).min();
        poll::wait(&mut entries, until.map(|until| until.since(now)))?;
        let ready: Vec<bool> = entries
            .iter()
            .map(|entry| {
                let readiness = entry.readiness();
                readiness.readable || readiness.hangup || readiness.error
            })
            .collect();
        drop(entries);
        let (tcp_from, udp_from) = (3, 3 + self.listeners.tcp.len());
        let sctp_from = udp_from + self.listeners.udp.len();
        let pending_from = sctp_from + sctp.len();
        let mut done = false;
        if ready[2] {
            drop(self.shared.left.clear());
            done = self.shared.options.one_off && self.one_off_is_over();
        }
        self.read_pending(pending, &ready[pending_from..]);
        for (protocol, listeners, from) in [
            (Protocol::Tcp, &self.listeners.tcp[..], tcp_from),
            (Protocol::Sctp, sctp, sctp_from),
        ] {
            for (listener, _) in listeners
                .iter()
                .zip(&ready[from..])
                .filter(|(_, ready)| **ready)
            {
                let iperf2 = self.shared.options.answers_iperf2();
                listen::accept_all(listener, protocol, iperf2, pending);
            }
        }
        for (listener, _) in self
            .listeners
            .udp
            .iter()
            .zip(&ready[udp_from..])
            .filter(|(_, ready)| **ready)
        {
            udp_accept::accept_all(listener, &self.shared);
        }
        Ok((done, ready[0], ready[1]))
    }

    fn one_off_is_over(&self) -> bool {
        let sessions = self.shared.sessions();
        sessions.counted > 0 && sessions.occupancy.present() == 0
    }

    fn read_pending(&self, pending: &mut Vec<Pending>, ready: &[bool]) {
        let now = clock::monotonic();
        let mut index = 0;
        // `ready` describes the connections in the order that they had; those that leave are skipped over.
        for ready in ready {
            let verdict = if *ready {
                pending[index].read()
            } else {
                listen::Read::Partly
            };
            match verdict {
                listen::Read::Partly if pending[index].deadline > now => index += 1,
                listen::Read::Whole(cookie) => {
                    let connection = pending.remove(index);
                    if self.shared.options.answers_iperf2() {
                        let address = connection.peer.ip();
                        self.shared.sessions().proofs.note(address, now);
                    }
                    self.place(Cookie::from_peer(cookie), connection);
                }
                listen::Read::Iperf2(caller) => {
                    let connection = pending.remove(index);
                    let address = connection.peer.ip();
                    self.shared.sessions().proofs.note(address, now);
                    iperf2::door::connected(&self.shared, &caller, connection);
                }
                listen::Read::Partly => drop(pending.remove(index)),
                listen::Read::Gone => self.broke_off(&pending.remove(index)),
            }
        }
    }

    /// A connection that ended amid its cookie. iperf3 says so to it and counts it as a test; we do not count one that sent
    /// nothing, as probes of a port do.
    fn broke_off(&self, connection: &Pending) {
        let options = &self.shared.options;
        if !options.strict || connection.received() == 0 || connection.protocol != Protocol::Tcp {
            return;
        }
        say_no_cookie(connection);
        let mut sessions = self.shared.sessions();
        if !options.one_off || sessions.counted > 0 {
            return;
        }
        sessions.counted = 1;
        drop(sessions);
        (self.shared.observe)(ServerEvent::Refused {
            test: Some(1),
            peer: connection.peer,
            reason: format!(
                "it sent {} of the 37 bytes of its cookie",
                connection.received()
            )
            .into(),
            cause: Cause::Message {
                code: NO_COOKIE,
                errno: 0,
                unread: None,
            },
        });
        drop(self.shared.left.raise());
    }

    /// A connection has said its cookie: it is a data stream of a test, or a new test.
    fn place(&self, cookie: Cookie, connection: Pending) {
        let peer = connection.peer;
        let address = peer.ip().to_canonical();
        let limits = &self.shared.options.limits;
        if !limits.allows(address) {
            self.refuse(&connection, "its network is not allowed");
            return;
        }
        let token = self.shared.options.token.as_ref();
        if token.is_some_and(|token| !token.is_same(&cookie)) {
            say_no_cookie(&connection);
            self.turned_away(&connection, "it does not have this server's session token");
            return;
        }
        let sessions = self.shared.sessions();
        if let Some(entry) = sessions.by_cookie.get(&cookie).cloned() {
            drop(sessions);
            let mut state = entry.lock();
            if state.expects_probe && connection.protocol == Protocol::Tcp {
                state.expects_probe = false;
                entry.bring(state, Arrival::Probe(connection.stream));
                return;
            }
            let expected = match connection.protocol {
                Protocol::Sctp => &mut state.expected_sctp,
                Protocol::Tcp | Protocol::Udp => &mut state.expected_tcp,
            };
            if *expected > 0 {
                *expected -= 1;
                entry.bring(state, Arrival::Stream(connection.stream));
            } else if token.is_some() {
                drop(state);
                self.refuse(
                    &connection,
                    "a test with its session token has not ended yet",
                );
            }
            return;
        }
        if connection.protocol != Protocol::Tcp {
            drop(sessions);
            self.refuse(&connection, "its SCTP association belongs to no test");
            return;
        }
        drop(sessions);
        let handle = connection.stream.try_clone().ok();
        let (origin, state) = (Origin::Proved, EntryState::default());
        let taken = Place::take(&self.shared, cookie, peer, handle, origin, state);
        let (entry, place) = match taken {
            Ok(taken) => taken,
            Err(reason) => return self.refuse(&connection, reason),
        };
        let (number, shared) = (place.number, Arc::clone(&self.shared));
        let spawned = std::thread::Builder::new()
            .name(format!("test {number}"))
            .stack_size(512 << 10)
            .spawn(move || session::run(&shared, &entry, place, connection.stream, peer));
        if let Err(error) = spawned {
            // The closure, and with it the place, was dropped.
            (self.shared.observe)(ServerEvent::Refused {
                test: None,
                peer,
                reason: format!("no thread for it: {error}").into(),
                cause: Cause::Host,
            });
        }
    }

    fn refuse(&self, connection: &Pending, reason: &str) {
        // iperf3's way to say so; the peer may be gone already.
        drop(socket::send(connection.stream.as_fd(), &[0xFF]));
        self.turned_away(connection, reason);
    }

    fn turned_away(&self, connection: &Pending, reason: &str) {
        (self.shared.observe)(ServerEvent::Refused {
            test: None,
            peer: connection.peer,
            reason: reason.into(),
            cause: Cause::TurnedAway,
        });
    }

    /// Takes no more clients, lets tests end within `grace`, then ends them.
    fn wind_down(self, grace: Nanos, stop: BorrowedFd<'_>) {
        let Self { listeners, shared } = self;
        drop(listeners);
        wait_until_left(&shared, grace, Some(stop));
        drop(shared.terminate.raise());
        wait_until_left(&shared, LEAVE_PATIENCE, None);
    }
}

/// Says to a connection, as iperf3 does, that its cookie is none.
fn say_no_cookie(connection: &Pending) {
    let mut machine = ServerControl::default();
    machine.error(NO_COOKIE, 0);
    if let Some(frame) = machine.poll_transmit() {
        drop(socket::send(connection.stream.as_fd(), &frame));
    }
}

/// Waits for the last test to leave, for a bound, or for `stop`.
fn wait_until_left(shared: &Shared, bound: Nanos, stop: Option<BorrowedFd<'_>>) {
    let until = clock::monotonic().plus(bound);
    let read = Interest::READ;
    loop {
        let left = until.since(clock::monotonic());
        if shared.sessions().occupancy.present() == 0 || left == Nanos::ZERO {
            return;
        }
        let mut entries = vec![PollEntry::new(shared.left.as_fd(), read)];
        entries.extend(stop.map(|stop| PollEntry::new(stop, read)));
        drop(poll::wait(&mut entries, Some(left)));
        if entries
            .get(1)
            .is_some_and(|entry| entry.readiness().readable)
        {
            return;
        }
        drop(shared.left.clear());
    }
}
