//! One test of one client, from its parameters to its record.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_kernel::event::EventFd;
use linerate_kernel::{clock, socket, thread};
use linerate_model::plan::{Direction, Plan, Protocol};
use linerate_model::progress::Event;
use linerate_model::record::{ControlFacts, Flow, Role};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_wire::control::{ServerControl, ServerEvent as Said, ServerSide};
use linerate_wire::extension::{self, Hello, TargetAnswer, TargetAsked};
use linerate_wire::parameters::Parameters;
use linerate_wire::udp::HANDSHAKE_ANSWER;

use crate::auth::Verifier;
use crate::budget::Budget;
use crate::control::{Link, Turn};
use crate::gate::Gate;
use crate::half::Before;
use crate::negotiation::{self, byte_budget};
use crate::sample_pool::Share;
use crate::sockets::{self, SocketBuffers};
use crate::stream::{self, StreamContext, StreamHandle, StreamSocket, StreamStage, Streams};
use crate::stream_file::{self, StreamFile};
use crate::transfer::{TARGET_BYTES, Target, Targets};

use super::echo::Echo;
use super::limits::{
    AFFINITY, BUFFERS, BUSY, FILE, FILE_OVER_UDP, NOT_AUTHENTICATED, STREAM_CONNECT,
    UNUSABLE_PARAMETERS,
};
use super::refusal::Refusal;
use super::running::{Concluded, Running};
use super::sctp_listen::SctpDoor;
use super::{ADMISSION_PATIENCE, Arrival, Cause, Entry, Held, Place, ServerEvent, Shared};

/// A client that says nothing when it is its turn is let go.
pub(super) const PATIENCE: Nanos = Nanos::from_millis(15_000);
/// All streams of a test have come by then.
const STREAMS_PATIENCE: Nanos = Nanos::from_millis(60_000);
/// Waiting for another client at the same address to have opened its UDP streams.
const TURN_PATIENCE: Nanos = Nanos::from_millis(25_000);
/// A stock client that did not get the answer to its opening datagram does not ask again.
pub(super) const ANSWER_AGAIN: Nanos = Nanos::from_millis(300);

/// A client that was refused has read why and closed its connection by then.
const PARTING: Nanos = Nanos::from_millis(3000);
/// How often a session that waits for streams looks whether this process can have any.
const LOOK_FOR_DESCRIPTORS: Nanos = Nanos::from_millis(500);

/// Figures of a stream in an interval that are kept for the report that a client asked for: those of an hour with four
/// streams.
const EVENTS_KEPT: usize = 14_400;
/// What each of them takes, bytes.
const EVENT_BYTES: usize = 256;

/// Runs a session to its end; it tells the observer all there is to tell.
pub(super) fn run(
    shared: &Shared,
    entry: &Entry,
    place: Place,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let test = place.number;
    let refused = |cause: Cause, reason: String| {
        (shared.observe)(ServerEvent::Refused {
            test: Some(test),
            peer,
            reason: reason.into(),
            cause,
        });
    };
    shared.congestion.settle(&stream, peer, None);
    let options = &shared.options;
    if let Err(error) =
        sockets::prepare_control(&stream, options.control_keepalive, options.send_timeout)
    {
        let reason = format!("its control connection cannot be used: {error}");
        refused(Cause::Control(error.raw_os_error()), reason);
        return;
    }
    let link = Link::accepted(stream, ServerControl::default());
    let mut session = Session {
        shared,
        entry,
        place,
        until: clock::monotonic().plus(ADMISSION_PATIENCE),
        peer,
        link,
        extended: false,
        udp_turn: false,
        sctp: None,
        shares: Vec::new(),
        events: None,
        target: None,
        echo: None,
    };
    let outcome = session.serve();
    if let Some(target) = &session.target {
        target.stop();
    }
    if session.udp_turn {
        shared.give_up_udp_turn(entry.peer);
    }
    match outcome {
        Ok(Concluded {
            record,
            cause,
            in_order,
        }) => (shared.observe)(ServerEvent::Finished {
            test,
            record: Box::new(record),
            cause,
            in_order,
        }),
        Err(refusal) => {
            let refusal = session.part(refusal);
            refused(refusal.cause, refusal.reason);
        }
    }
}

pub(super) struct Session<'a> {
    pub(super) shared: &'a Shared,
    pub(super) entry: &'a Entry,
    pub(super) place: Place,
    /// When its parameters must have come.
    until: Nanos,
    pub(super) peer: SocketAddr,
    pub(super) link: Link<ServerSide>,
    pub(super) extended: bool,
    pub(super) udp_turn: bool,
    /// Keeps SCTP's listeners open until the streams of an SCTP test have come.
    sctp: Option<SctpDoor<'a>>,
    /// What the samples of the record take, until it is dropped.
    pub(super) shares: Vec<Share>,
    /// What the intervals of the report that the client wants take.
    events: Option<Held<'a>>,
    /// Where a transfer's files go.
    pub(super) target: Option<Arc<dyn Target>>,
    /// Answers the client's probes until the session ends.
    echo: Option<Echo>,
}

impl Session<'_> {
    /// Tells the client iperf3's error number and the kernel's, where iperf3 does; what was said last stays the last word.
    pub(super) fn tell_why(&mut self, cause: Cause) {
        if let Some((code, errno)) = cause.told() {
            self.link.machine.error(code, errno);
        }
    }

    /// Tells the client why, and waits as iperf3 does until it has read that and left. Who stops the server meanwhile
    /// ends this test as well.
    fn part(&mut self, refusal: Refusal) -> Refusal {
        let cause = refusal.cause;
        self.tell_why(cause);
        let until = clock::monotonic().plus(Nanos::from_millis(1000));
        let told = cause.told().is_some() && self.link.flush_until(until).is_ok();
        if !told || !self.shared.options.strict {
            return refusal;
        }
        let until = clock::monotonic().plus(PARTING);
        if self.link.drain_until(self.shared.terminate.as_fd(), until) {
            return Refusal::server_stopped();
        }
        refusal
    }

    fn serve(&mut self) -> Result<Concluded, Refusal> {
        self.link.machine.ask_parameters()?;
        let parameters = self.parameters()?;
        let control = self.control_facts(&parameters);
        let plan = self.admit(&parameters)?;
        self.greet(&parameters)?;
        let started_at_unix_ms = clock::wall().0 / 1_000_000;
        let event = Event::Connected {
            control: control.clone(),
            cookie: self.place.cookie.text().into_owned().into(),
            at_unix_ms: started_at_unix_ms,
        };
        self.tell(&event);
        let mut running = self.open_streams(plan, &parameters)?;
        // What there is memory for, until the session ends.
        let asked = parameters.get_server_output && self.shared.options.output.is_some();
        self.events = asked.then(|| self.shared.hold(EVENTS_KEPT * EVENT_BYTES));
        running.keep_events = self.events.as_ref().map(|held| held.bytes / EVENT_BYTES);
        running.told_every_ns = parameters
            .linerate
            .as_ref()
            .and_then(|extension| extension.received_ns);
        running.control = control;
        running.started_at_unix_ms = started_at_unix_ms;
        if running.keep_events.is_some() {
            running.events.insert(0, event);
        }
        let (ended, mut intervals) = self.measure(&mut running)?;
        Ok(self.conclude(&mut running, ended, &mut intervals))
    }

    pub(super) fn tell(&self, event: &Event) {
        (self.shared.observe)(ServerEvent::Progress {
            test: self.place.number,
            event: event.clone(),
        });
    }

    fn control_facts(&self, parameters: &Parameters) -> ControlFacts {
        let extension = parameters.linerate.as_ref();
        ControlFacts {
            peer_software: extension.map(|extension| extension.software.clone()),
            ..self.link.facts(self.peer)
        }
    }

    /// The client's next word, within a bound.
    pub(super) fn next(&mut self, until: Nanos) -> Result<Said, Refusal> {
        match self.link.turn(&[self.shared.terminate.as_fd()], until)? {
            Turn::Event(said) => Ok(said),
            Turn::TimedOut => Err(Refusal::new(
                Cause::ClientSilent,
                "it sent nothing when a message from it was due".to_owned(),
            )),
            Turn::Woken(_) => Err(self.stopped()),
        }
    }

    /// This server was stopped, and tells the client.
    fn stopped(&mut self) -> Refusal {
        self.link.machine.terminate();
        drop(self.link.flush());
        Refusal::server_stopped()
    }

    /// Waits for something else than the client, which says nothing meanwhile.
    fn pause(&mut self, until: Nanos) -> Result<(), Refusal> {
        let terminate = self.shared.terminate.as_fd();
        match self.link.turn(&[terminate], until)? {
            Turn::TimedOut => Ok(()),
            Turn::Woken(_) | Turn::Event(_) => Err(Refusal::new(
                Cause::ClientStopped,
                "it or the server stopped before the test".to_owned(),
            )),
        }
    }

    /// A message of the client that could not be read: iperf3 has an error number for each, whatever the reason was.
    pub(super) fn unread(&self, code: i32, refusal: Refusal) -> Refusal {
        let errno = match refusal.cause {
            Cause::Control(errno) => errno.unwrap_or(0),
            Cause::ClientClosed | Cause::ClientSilent | Cause::NotUnderstood => 0,
            _ => return refusal,
        };
        let unread = self.link.machine.unread();
        let cause = Cause::Message {
            code,
            errno,
            unread,
        };
        Refusal::new(cause, refusal.reason)
    }

    fn parameters(&mut self) -> Result<Parameters, Refusal> {
        loop {
            let said = self.next(self.until);
            match said.map_err(|refusal| self.unread(UNUSABLE_PARAMETERS, refusal))? {
                Said::Parameters(parameters) => return Ok(parameters),
                Said::ClientTerminated => return Err(Refusal::client_stopped()),
                _ => {}
            }
        }
    }

    /// Whether this client may run this test.
    fn admit(&mut self, parameters: &Parameters) -> Result<Plan, Refusal> {
        let unusable = |reason: String| Refusal::code(UNUSABLE_PARAMETERS, reason);
        parameters
            .check()
            .map_err(|error| unusable(error.to_string()))?;
        let mut user = None;
        if let Some(verifier) = &self.shared.options.verifier {
            let verified = match parameters.authtoken.as_deref() {
                Some(token) => self.verify(verifier, token)?,
                None => Err("it sent no credentials".to_owned()),
            };
            user = Some(verified.map_err(|reason| Refusal::code(NOT_AUTHENTICATED, reason))?);
        }
        let host = self.peer.ip().to_string();
        let mut plan = negotiation::plan(
            parameters,
            &host,
            self.peer.port(),
            self.shared.options.interval,
        );
        plan.send_timeout_ns = self.shared.options.send_timeout;
        (self.shared.observe)(ServerEvent::Asked {
            test: self.place.number,
            plan: Box::new(plan.clone()),
        });
        if let Some((code, reason)) = self.shared.options.limits.refuse(&plan) {
            return Err(Refusal::code(code, reason));
        }
        let buffers = self.granted_buffers(&plan)?;
        self.check_file_and_cpu(&plan)?;
        self.place
            .admit(&mut plan)
            .map_err(|reason| Refusal::code(BUSY, reason))?;
        if plan.protocol == Protocol::Sctp {
            self.sctp = Some(self.shared.listen_for_sctp(&plan)?);
        }
        (self.shared.observe)(ServerEvent::Accepted {
            test: self.place.number,
            peer: self.peer,
            user: user.map(Into::into),
            buffers,
        });
        Ok(plan)
    }

    /// What the test's TCP streams start with, where the server is strict and can tell. Refuses a test that asks for more.
    fn granted_buffers(&self, plan: &Plan) -> Result<Option<SocketBuffers>, Refusal> {
        if !self.shared.options.strict || plan.protocol != Protocol::Tcp {
            return Ok(None);
        }
        let Ok(buffers) = sockets::tcp_buffers(plan, self.peer) else {
            return Ok(None);
        };
        match buffers.check(plan) {
            Ok(()) => Ok(Some(buffers)),
            Err(error) => Err(Refusal::code(BUFFERS, error.to_string())),
        }
    }

    /// Refuses what this server's file or CPUs do not allow.
    fn check_file_and_cpu(&self, plan: &Plan) -> Result<(), Refusal> {
        if self.shared.options.file.is_some() {
            if plan.protocol == Protocol::Udp {
                let reason = "it requested UDP, and -F needs TCP".to_owned();
                return Err(Refusal::code(FILE_OVER_UDP, reason));
            }
            if plan.direction == Direction::Both {
                let reason =
                    "it requested both directions, and -F cannot send the file that it writes"
                        .to_owned();
                return Err(Refusal::code(UNUSABLE_PARAMETERS, reason));
            }
        }
        let Some(cpu) = plan.server_cpu.filter(|_| self.shared.options.strict) else {
            return Ok(());
        };
        // On a thread of its own, which ends with it.
        let bound = std::thread::scope(|scope| {
            scope
                .spawn(|| thread::set_affinity(&[usize::from(cpu)]))
                .join()
        });
        match bound {
            Ok(Err(error)) => {
                let what = format!("it requested CPU {cpu} (-A)");
                Err(Refusal::system(AFFINITY, &error.source, &what))
            }
            _ => Ok(()),
        }
    }

    /// The user whose token this is, or why it is refused. One is looked at at a time, so that a client that sends wrong ones
    /// takes one CPU at most; who waits for that is gone with its connection, and when its time is up.
    fn verify(
        &mut self,
        verifier: &Verifier,
        token: &str,
    ) -> Result<Result<String, String>, Refusal> {
        let shared = self.shared;
        loop {
            if let Ok(_one) = shared.credentials.try_lock() {
                return Ok(verifier.verify(token, clock::wall()));
            }
            let now = clock::monotonic();
            if now >= self.until {
                return Err(Refusal::new(
                    Cause::ClientSilent,
                    "its credentials could not be looked at in time".to_owned(),
                ));
            }
            self.pause(self.until.min(now.plus(Nanos::from_millis(2))))?;
        }
    }

    /// Says hello to a linerate and answers its questions about our clock.
    fn greet(&mut self, parameters: &Parameters) -> Result<(), Refusal> {
        self.extended = parameters.linerate.is_some();
        if !self.extended {
            return Ok(());
        }
        let udp_token = (parameters.protocol == Protocol::Udp).then(|| {
            let mut token = [0_u8; 16];
            thread::random(&mut token).map(|()| token)
        });
        let udp_token = udp_token.transpose().map_err(|error| {
            let reason = format!("asking the kernel for random bytes: {error}");
            Refusal::new(Cause::Host, reason)
        })?;
        let asked = parameters.linerate.as_ref();
        let target = asked
            .and_then(|extension| extension.target.as_ref())
            .map(|target| self.open_target(parameters, target));
        let software = &self.shared.options.software;
        let hello = Hello {
            version: extension::VERSION,
            software: format!("{} {}", software.name, software.version).into(),
            udp_token,
            target: target.map(|opened| TargetAnswer {
                refused: opened.err().map(Into::into),
            }),
            probe: asked.is_some_and(|extension| extension.probe),
        };
        self.link.machine.send_hello(hello)?;
        self.entry.lock().token = udp_token;
        let until = clock::monotonic().plus(PATIENCE);
        loop {
            match self.next(until)? {
                Said::Ready => {
                    // The answers before anything else: their instants are compared.
                    self.link.flush()?;
                    return Ok(());
                }
                Said::Ping { n } => self.pong(n)?,
                Said::ClientTerminated => return Err(Refusal::client_stopped()),
                _ => {}
            }
        }
    }

    /// Opens what the client's files are to go to, or says why not.
    fn open_target(&mut self, parameters: &Parameters, asked: &TargetAsked) -> Result<(), String> {
        let sends = !parameters.reverse && !parameters.bidirectional;
        if parameters.protocol != Protocol::Tcp || !sends || self.shared.options.file.is_some() {
            return Err("files go over TCP, from the client to the server, without -F".to_owned());
        }
        let Some(Targets(open)) = &self.shared.options.targets else {
            return Err("it takes no files".to_owned());
        };
        let Some(lent) = Shared::lend(&self.place.shared, TARGET_BYTES) else {
            return Err(format!(
                "it has not the {} left that a transfer takes; try again later, or give it more by --max-memory",
                Bytes(TARGET_BYTES as u64)
            ));
        };
        let target = open(asked)?;
        target.keep(Box::new(lent));
        self.target = Some(target);
        Ok(())
    }

    pub(super) fn pong(&mut self, n: u64) -> Result<(), Refusal> {
        let now = clock::monotonic();
        Ok(self.link.machine.send_pong(n, now, now)?)
    }

    fn open_streams(&mut self, plan: Plan, parameters: &Parameters) -> Result<Running, Refusal> {
        let total = plan.total_streams();
        let ours = self.extended && plan.protocol == Protocol::Udp;
        {
            let mut state = self.entry.lock();
            state.expects_probe = plan.latency;
            match plan.protocol {
                Protocol::Tcp => state.expected_tcp = usize::from(total),
                Protocol::Sctp => state.expected_sctp = usize::from(total),
                Protocol::Udp if ours => state.expected_ours = total,
                Protocol::Udp => {}
            }
        }
        if plan.protocol == Protocol::Udp && !ours {
            self.wait_for_udp_turn()?;
            self.entry.lock().expected_stock_udp = usize::from(total);
        }
        self.link.machine.create_streams()?;
        self.link.flush()?;
        // Read while they are on their way; no payload is sent on them before all stand.
        let before = Before::read(
            linerate_kernel::host::facts(),
            self.peer.ip(),
            &self.shared.pool,
        );
        let arrivals = self.gather(&plan, ours)?;
        self.sctp = None;
        if self.udp_turn {
            self.udp_turn = false;
            self.shared.give_up_udp_turn(self.entry.peer);
        }
        self.let_them_stand(plan, parameters, before, arrivals)
    }

    /// Opening datagrams of stock clients carry no identity: one test at a time for each address.
    fn wait_for_udp_turn(&mut self) -> Result<(), Refusal> {
        let until = clock::monotonic().plus(TURN_PATIENCE);
        while !self.shared.take_udp_turn(self.entry.peer) {
            let now = clock::monotonic();
            if now >= until {
                return Err(Refusal::new(
                    Cause::ClientSilent,
                    "another client at its address did not finish opening its UDP streams"
                        .to_owned(),
                ));
            }
            self.pause(now.plus(Nanos::from_millis(10)))?;
        }
        self.udp_turn = true;
        Ok(())
    }

    /// Waits until all streams have come.
    fn gather(&mut self, plan: &Plan, ours: bool) -> Result<Vec<Arrival>, Refusal> {
        let total = usize::from(plan.total_streams());
        let mut arrivals: Vec<Arrival> = Vec::with_capacity(total);
        let last = clock::monotonic().plus(STREAMS_PATIENCE);
        // A side that only receives cannot be idle.
        let sends = plan.direction != Direction::Receive;
        let received = self.shared.options.receive_timeout.filter(|_| sends);
        let patience = received.map_or(PATIENCE, |timeout| timeout.min(PATIENCE));
        let mut until = clock::monotonic().plus(patience);
        let stock_udp = plan.protocol == Protocol::Udp && !ours;
        while arrivals.len() < total {
            let look = if stock_udp {
                ANSWER_AGAIN
            } else {
                LOOK_FOR_DESCRIPTORS
            };
            let wake = until.min(clock::monotonic().plus(look));
            let turn = self.link.turn(
                &[self.entry.news.as_fd(), self.shared.terminate.as_fd()],
                wake,
            )?;
            match turn {
                Turn::Woken(0) => {
                    drop(self.entry.news.clear());
                    while let Some(arrival) = self.entry.next_arrival() {
                        until = clock::monotonic().plus(patience).min(last);
                        match arrival {
                            Arrival::Probe(stream) => {
                                self.answer_probes(stream, plan)?;
                                // The client measures the idle path before it opens a stream.
                                until = clock::monotonic().plus(PATIENCE).min(last);
                            }
                            arrival => arrivals.push(arrival),
                        }
                    }
                }
                Turn::Woken(_) => return Err(self.stopped()),
                Turn::TimedOut if clock::monotonic() >= until => {
                    let reason = format!("{} of {total} data streams came", arrivals.len());
                    return Err(Refusal::new(Cause::ClientSilent, reason));
                }
                Turn::TimedOut if !stock_udp => self.check_descriptors()?,
                Turn::TimedOut => {
                    // The answer may have been lost, and a stock client does not ask again. A copy
                    // of it lies unread where the client only sends.
                    if let (Some(Arrival::Udp(socket, ..)), Direction::Send) =
                        (arrivals.last(), plan.direction)
                    {
                        drop(socket::send(socket.as_fd(), &HANDSHAKE_ANSWER));
                    }
                }
                Turn::Event(Said::ClientTerminated) => return Err(Refusal::client_stopped()),
                Turn::Event(Said::Done) => return Err(Refusal::client_done()),
                Turn::Event(_) => {}
            }
        }
        if ours {
            arrivals.sort_by_key(|arrival| match arrival {
                Arrival::Udp(_, place, _) => *place,
                Arrival::Stream(_) | Arrival::Flow(..) | Arrival::Probe(_) => None,
            });
        }
        Ok(arrivals)
    }

    /// Sends each message of the probe connection back, on a thread of its own.
    fn answer_probes(&mut self, stream: TcpStream, plan: &Plan) -> Result<(), Refusal> {
        let echo = Echo::spawn(stream, plan);
        self.echo = Some(echo.map_err(|error| {
            let reason = format!("cannot answer on the probe connection: {error}");
            Refusal::new(Cause::Host, reason)
        })?);
        Ok(())
    }

    /// A data stream that waits to be accepted needs a descriptor; iperf3 gives the test up where there is none.
    fn check_descriptors(&self) -> Result<(), Refusal> {
        let without = self.shared.options.strict.then(EventFd::new);
        let Some(Err(error)) = without else {
            return Ok(());
        };
        let what = "no file descriptor for a data stream";
        Err(Refusal::system(STREAM_CONNECT, &error, what))
    }

    /// Gives every stream its thread.
    fn let_them_stand(
        &mut self,
        plan: Plan,
        parameters: &Parameters,
        before: Before,
        arrivals: Vec<Arrival>,
    ) -> Result<Running, Refusal> {
        let no = |what: &str, error: std::io::Error| {
            Refusal::new(Cause::Host, format!("{what}: {error}"))
        };
        let gate = Arc::new(Gate::new().map_err(|error| no("making event descriptors", error))?);
        let plan = Arc::new(plan);
        let (bytes, _) = byte_budget(&plan, self.extended);
        // A stock client counts by its own omit timer: what we leave out, it may not.
        let bytes = bytes.filter(|_| self.extended || plan.omit_ns == Nanos::ZERO);
        let streams = Streams {
            role: Role::Server,
            plan: Arc::clone(&plan),
            gate: Arc::clone(&gate),
            budget: Arc::new(Budget::new(bytes)),
            pool: Arc::clone(&self.shared.pool),
            peer_extended: self.extended,
            wide_counters: parameters.udp_counters_64bit,
            round_trip: self.link.round_trip(),
        };
        let mut running = Running::new(Arc::clone(&plan), Arc::clone(&gate), before);
        let mut opened = Vec::new();
        let files = self.open_files(&plan)?;
        for ((arrival, file), index) in arrivals.into_iter().zip(files).zip(0_u16..) {
            let (socket, handshake) = match arrival {
                Arrival::Stream(stream) => (StreamSocket::Stream(stream), None),
                Arrival::Udp(stream, _, handshake) => (StreamSocket::Udp(stream), Some(handshake)),
                Arrival::Flow(stream, _) => (StreamSocket::Udp(stream), None),
                // Taken when it came.
                Arrival::Probe(_) => continue,
            };
            let context = StreamContext {
                read_rate: self.read_rate(usize::from(plan.total_streams())),
                handshake,
                file,
                transfer: self.target.is_some(),
                ..streams.context(index)
            };
            self.prepare(&plan, &socket, context.flow, &mut running)?;
            opened.push(stream::describe(&context, &socket));
            let inlet = self
                .target
                .as_ref()
                .map(|target| StreamStage::Inlet(target.inlet()));
            match StreamHandle::spawn(context, socket, inlet) {
                Ok(handle) => running.streams.push(handle),
                Err(error) => {
                    gate.cut();
                    return Err(no("no thread for a data stream", error));
                }
            }
        }
        let event = Event::Opened { streams: opened };
        self.tell(&event);
        running.events.push(event);
        Ok(running)
    }

    /// Opens the file of `-F` for each stream.
    fn open_files(&self, plan: &Plan) -> Result<Vec<Option<StreamFile>>, Refusal> {
        let path = self.shared.options.file.as_deref();
        let sends = |index| plan.flow_of(index) == Flow::ServerToClient;
        stream_file::open_for(path, (0..plan.total_streams()).map(sends)).map_err(|error| {
            let path = path.map(|path| path.display().to_string());
            let what = format!(
                "cannot open {} for its payload (-F)",
                path.unwrap_or_default()
            );
            Refusal::system(FILE, &error, &what)
        })
    }

    fn prepare(
        &self,
        plan: &Plan,
        socket: &StreamSocket,
        flow: Flow,
        running: &mut Running,
    ) -> Result<(), Refusal> {
        match socket {
            StreamSocket::Stream(stream) if plan.protocol == Protocol::Tcp => {
                let asked = plan.congestion.as_deref();
                self.shared.congestion.settle(stream, self.peer, asked);
            }
            StreamSocket::Udp(stream) if !self.extended && flow == Flow::ClientToServer => {
                running.answer_again.extend(stream.try_clone());
            }
            StreamSocket::Stream(_) | StreamSocket::Udp(_) => {}
        }
        sockets::configure(socket, plan, self.peer).map_err(|error| {
            running.gate.cut();
            Refusal::code(
                UNUSABLE_PARAMETERS,
                format!("cannot set up a data stream as it asks: {error}"),
            )
        })?;
        if self.shared.options.strict {
            sockets::check_buffers(socket, plan).map_err(|error| {
                running.gate.cut();
                Refusal::code(BUFFERS, error.to_string())
            })?;
        }
        Ok(())
    }

    /// A slow application's rate for each of `streams`.
    fn read_rate(&self, streams: usize) -> Option<BitRate> {
        let all = self.shared.options.read_rate?;
        Some(BitRate((all.0 / streams.max(1) as u64).max(1)))
    }
}
