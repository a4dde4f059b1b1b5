//! The server: many clients at once, each on threads of its own.
//!
//! One thread accepts: it reads the 37 bytes that tell a control connection from a data stream, hands
//! data streams to the test that waits for them, and answers UDP's opening datagrams, but only those
//! that come from the address of a control connection. Everything that waits for a peer has a bound.

mod congestion;
mod limits;
mod listen;
mod running;
mod session;
mod telling;
mod udp_accept;

use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_kernel::clock;
use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::{DEFAULT_PORT, Family, Plan};
use linerate_model::progress::Event;
use linerate_model::record::{RunRecord, Software};
use linerate_model::units::{BitRate, Nanos};
use linerate_wire::cookie::Cookie;

use crate::auth::Verifier;
use crate::error::EngineError;

pub use limits::{Network, NetworkError, ServerLimits};

use congestion::AcceptedCongestion;
use limits::Occupancy;
use listen::{Listeners, Pending};

/// A connection that has not sent its 37 bytes by then is closed.
const COOKIE_PATIENCE: Nanos = Nanos::from_millis(5000);
/// Connections that may be on their way to their 37 bytes.
const MOST_PENDING: usize = 512;
/// How long ended sessions may take to leave.
const LEAVE_PATIENCE: Nanos = Nanos::from_millis(10_000);

/// Makes the text that a client asked for with `--get-server-output`.
pub type ServerOutput = Arc<dyn Fn(&RunRecord, &[Event]) -> String + Send + Sync>;

/// How to serve.
#[derive(Clone)]
pub struct ServerOptions {
    /// How it names itself.
    pub software: Software,
    /// The port; 0 = any free one.
    pub port: u16,
    /// The address to listen on; absent = all of both families.
    pub bind: Option<IpAddr>,
    /// The interface to listen on.
    pub bind_device: Option<String>,
    /// Families to listen on.
    pub family: Family,
    /// Sockets that were passed in listening (systemd's socket activation).
    pub inherited: Vec<Arc<OwnedFd>>,
    /// End after one test.
    pub one_off: bool,
    /// Bounds.
    pub limits: ServerLimits,
    /// Who may test; absent = everybody.
    pub verifier: Option<Arc<Verifier>>,
    /// Between two intervals of progress.
    pub interval: Nanos,
    /// Tests that run may go on for this long after the server is asked to finish.
    pub grace: Nanos,
    /// For clients that ask for the server's report.
    pub output: Option<ServerOutput>,
    /// All TCP streams of a test together are read no faster than this: an application that is slow on
    /// purpose.
    pub read_rate: Option<BitRate>,
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions")
            .field("port", &self.port)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            software: crate::software(),
            port: DEFAULT_PORT,
            bind: None,
            bind_device: None,
            family: Family::Any,
            inherited: Vec::new(),
            one_off: false,
            limits: ServerLimits::default(),
            verifier: None,
            interval: Nanos::from_millis(1000),
            grace: Nanos::from_millis(10_000),
            output: None,
            read_rate: None,
        }
    }
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
        /// What it will run.
        plan: Box<Plan>,
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
    },
    /// A client was turned away, or failed before its streams ran.
    Refused {
        /// The client.
        peer: SocketAddr,
        /// Why.
        reason: PlainText,
    },
}

/// Where a server tells. It is called from the threads of the tests.
pub type Observer = Arc<dyn Fn(ServerEvent) + Send + Sync>;

/// A data stream that came for a test.
#[derive(Debug)]
pub(crate) enum Arrival {
    Tcp(TcpStream),
    /// With the place of the stream and the opening datagram that announced it.
    Udp(UdpSocket, Option<u16>, Vec<u8>),
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
    /// TCP streams still expected.
    expected_tcp: usize,
    /// UDP streams still expected from a stock client.
    expected_stock_udp: usize,
    /// The token of a linerate's UDP streams, and which of them came.
    token: Option<[u8; 16]>,
    came: Vec<u16>,
    expected_ours: u16,
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
    pub(crate) terminate: EventFd,
    sessions: Mutex<Sessions>,
    left: EventFd,
}

#[derive(Default)]
struct Sessions {
    by_cookie: HashMap<Cookie, Arc<Entry>>,
    occupancy: Occupancy,
    /// Addresses from which a stock client is opening UDP streams: those carry no identity.
    opening_udp: Vec<IpAddr>,
    running: usize,
    counted: u64,
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the turn to open UDP streams without a token from an address. False = somebody else has it.
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

    fn leave(&self, cookie: &Cookie, peer: IpAddr) {
        let mut sessions = self.sessions();
        sessions.by_cookie.remove(cookie);
        sessions.occupancy.leave(peer);
        sessions.running -= 1;
        drop(sessions);
        drop(self.left.raise());
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
        // Where it cannot be raised, fewer clients fit, and those that do not are told so.
        drop(process::raise_descriptor_limit());
        let listeners = Listeners::open(&options)?;
        let congestion = if options.inherited.is_empty() {
            AcceptedCongestion::prepare(&listeners.tcp)
        } else {
            AcceptedCongestion::untouched()
        };
        let event = || {
            EventFd::new().map_err(|source| EngineError::Host {
                operation: "making event descriptors".to_owned(),
                source,
            })
        };
        let shared = Shared {
            options,
            observe,
            congestion,
            terminate: event()?,
            sessions: Mutex::new(Sessions::default()),
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

    /// Serves until `finish` (running tests may end within the grace) or `stop` (they are ended at
    /// once) becomes readable, or one test is over and that was asked for.
    pub fn run(self, finish: BorrowedFd<'_>, stop: BorrowedFd<'_>) -> Result<(), EngineError> {
        let fail = |source| EngineError::Host {
            operation: "waiting for clients".to_owned(),
            source,
        };
        let mut pending: Vec<Pending> = Vec::new();
        loop {
            let (done, finish_now, stop_now) =
                self.turn(&mut pending, finish, stop).map_err(fail)?;
            if stop_now {
                self.wind_down(Nanos::ZERO, stop);
                return Ok(());
            }
            if finish_now {
                let grace = self.shared.options.grace;
                self.wind_down(grace, stop);
                return Ok(());
            }
            if done {
                return Ok(());
            }
        }
    }

    /// One wait and what came of it. Gives back: one-off test over, asked to finish, asked to stop.
    fn turn(
        &self,
        pending: &mut Vec<Pending>,
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
        let waiting = pending.iter().map(|connection| connection.stream.as_fd());
        let fixed = [finish, stop, self.shared.left.as_fd()].into_iter();
        let mut entries: Vec<PollEntry<'_>> = fixed
            .chain(tcp)
            .chain(udp)
            .chain(waiting)
            .map(|fd| PollEntry::new(fd, read))
            .collect();
        let now = clock::monotonic();
        let until = pending.iter().map(|connection| connection.deadline).min();
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
        let pending_from = udp_from + self.listeners.udp.len();
        let mut done = false;
        if ready[2] {
            drop(self.shared.left.clear());
            done = self.shared.options.one_off && self.one_off_is_over();
        }
        self.read_pending(pending, &ready[pending_from..]);
        for (listener, _) in self
            .listeners
            .tcp
            .iter()
            .zip(&ready[tcp_from..])
            .filter(|(_, ready)| **ready)
        {
            listen::accept_all(listener, pending, MOST_PENDING, COOKIE_PATIENCE);
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
        sessions.counted > 0 && sessions.running == 0
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
                    self.place(Cookie::from_peer(cookie), connection);
                }
                listen::Read::Partly | listen::Read::Gone => drop(pending.remove(index)),
            }
        }
    }

    /// A connection has said its cookie: it is a data stream of a test, or a new test.
    fn place(&self, cookie: Cookie, connection: Pending) {
        let mut sessions = self.shared.sessions();
        if let Some(entry) = sessions.by_cookie.get(&cookie).cloned() {
            drop(sessions);
            let mut state = entry.lock();
            if state.expected_tcp > 0 {
                state.expected_tcp -= 1;
                entry.bring(state, Arrival::Tcp(connection.stream));
            }
            return;
        }
        let peer = connection.peer;
        let address = peer.ip().to_canonical();
        let limits = &self.shared.options.limits;
        let refused = if !limits.allows(address) {
            Err("its network is not allowed")
        } else if self.shared.options.one_off && sessions.counted > 0 {
            Err("one test was asked for and it runs already")
        } else {
            sessions.occupancy.enter(address, limits)
        };
        if let Err(reason) = refused {
            drop(sessions);
            self.refuse(&connection, reason);
            return;
        }
        let Ok(news) = EventFd::new() else {
            sessions.occupancy.leave(address);
            drop(sessions);
            self.refuse(&connection, "the server has no file descriptors left");
            return;
        };
        let entry = Arc::new(Entry {
            peer: address,
            news,
            state: Mutex::new(EntryState::default()),
        });
        sessions.by_cookie.insert(cookie, Arc::clone(&entry));
        sessions.counted += 1;
        sessions.running += 1;
        let test = sessions.counted;
        drop(sessions);
        let shared = Arc::clone(&self.shared);
        let place = Place {
            shared: Arc::clone(&shared),
            cookie,
            address,
        };
        let spawned = std::thread::Builder::new()
            .name(format!("test {test}"))
            .stack_size(512 << 10)
            .spawn(move || {
                // Leaves the server's books when the thread ends, however it ends.
                let _place = place;
                session::run(&shared, &entry, test, cookie, connection.stream, peer);
            });
        if let Err(error) = spawned {
            // The closure, and with it its place in the books, was dropped.
            (self.shared.observe)(ServerEvent::Refused {
                peer,
                reason: format!("no thread for it: {error}").into(),
            });
        }
    }

    fn refuse(&self, connection: &Pending, reason: &str) {
        // iperf3's way to say so; the peer may be gone already.
        drop(linerate_kernel::socket::send(
            connection.stream.as_fd(),
            &[0xFF],
        ));
        (self.shared.observe)(ServerEvent::Refused {
            peer: connection.peer,
            reason: reason.into(),
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

/// A test's place in the server's books.
struct Place {
    shared: Arc<Shared>,
    cookie: Cookie,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.leave(&self.cookie, self.address);
    }
}

/// Waits for the last test to leave, for a bound, or for `stop`.
fn wait_until_left(shared: &Shared, bound: Nanos, stop: Option<BorrowedFd<'_>>) {
    let until = clock::monotonic().plus(bound);
    let read = Interest::READ;
    loop {
        let left = until.since(clock::monotonic());
        if shared.sessions().running == 0 || left == Nanos::ZERO {
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
