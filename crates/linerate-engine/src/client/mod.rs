//! The client: connects, lets the streams go, ends the test and gathers what both ends know.

mod conclude;
mod idle;
mod iperf2;
mod latency;
mod options;
mod pairing;
mod precision;
mod probes;
mod streams;

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use linerate_kernel::{clock, thread};
use linerate_model::bounds::MAX_RECORD_BYTES;
use linerate_model::clock::{ClockOffset, Exchange};
use linerate_model::plan::{End, Plan, Protocol};
use linerate_model::progress::Event;
use linerate_model::record::{ControlFacts, HostFacts, Note, RunRecord};
use linerate_model::units::Nanos;
use linerate_wire::control::{ClientControl, ClientEvent, ClientSide};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::ProtocolError;
use linerate_wire::extension::{Hello, Stored};

use crate::auth;
use crate::control::{Link, LinkError, Turn};
use crate::error::{EngineError, was_let_fall};
use crate::gate::{FileEnd, Gate};
use crate::half::Before;
use crate::intervals::Intervals;
use crate::negotiation::{self, parameters};
use crate::sample_pool::SamplePool;
use crate::stream::{self, StreamHandle};
use crate::{IPERF3_VERSION, sockets};

use self::idle::Idle;
use self::latency::Probing;
use self::precision::Watch;
use self::probes::Phase;

/// A silent server before the test: stock ones answer at once, ours may have a queue for UDP streams.
const PATIENCE: Nanos = Nanos::from_millis(30_000);
/// A silent server after the test, longer than it may take to drain.
const RESULTS_PATIENCE: Nanos = Nanos::from_millis(15_000);
/// How long the server's last word may come after the end of its data streams.
const LAST_WORD: Nanos = Nanos::from_millis(200);
/// Why nothing more comes of a server whose user stopped it.
const SERVER_STOPPED: &str = "the server was stopped";
/// Exchanges of clocks, and the longest time to spend on them.
const PINGS: u64 = 8;
const PING_TIME: Nanos = Nanos::from_millis(200);
/// The peer's half may take this long to arrive, at the rate that was measured.
const RECORD_TIME: Nanos = Nanos::from_millis(3000);
/// Bounds of its size.
const RECORD_LEAST: u64 = 256 << 10;
const RECORD_MOST: u64 = MAX_RECORD_BYTES as u64;

/// Memory for the samples of all streams of a test.
const SAMPLE_BYTES: usize = 192 << 20;

pub use options::{ClientOptions, DatagramFit, fit};
pub(crate) use precision::TOLD_EVERY;

/// A test whose streams have run.
#[derive(Debug)]
pub struct Ended {
    /// What was measured.
    pub record: RunRecord,
    /// What the outcome [`Failed`](linerate_model::record::Outcome::Failed) came of, where it was not the data streams.
    pub failure: Option<EngineError>,
}

/// Runs a test to its end.
///
/// `stop` ends it early when it becomes readable; what was measured until then is in the record.
/// Once streams have run, failures are told in the record's outcome; before, as an error.
pub fn run(
    plan: &Plan,
    options: &ClientOptions,
    stop: BorrowedFd<'_>,
    observe: &mut dyn FnMut(&Event),
) -> Result<Ended, EngineError> {
    plan.check()?;
    latency::check(plan, options)?;
    if options.iperf2 {
        return iperf2::run(plan, options, stop, observe);
    }
    let mut session = Session::connect(plan, options, stop, observe)?;
    session.agree()?;
    session.check_precision()?;
    session.open_streams()?;
    let (ending, intervals) = session.measure();
    Ok(session.conclude(ending, intervals))
}

/// Why the running part ended.
#[derive(Debug)]
enum Ending {
    /// As planned.
    Planned,
    /// By the user.
    Interrupted,
    /// By the user, who does not wait for the server.
    Left,
    /// By the server's user.
    PeerInterrupted,
    /// By the end of all streams before the end of the test.
    StreamsEnded,
    /// By a stage of a transfer, which can go on no more: what was stored is asked for all the same.
    Stage(String),
    /// By a failure; the control connection may be gone.
    Failed(Missed),
}

impl Ending {
    /// Whether nothing more is asked of the server.
    const fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::Failed(_) | Self::StreamsEnded | Self::PeerInterrupted | Self::Left
        )
    }

    /// What would have ended as planned has failed; other reasons stay. A stream that has left waits for nothing.
    fn or_failed(self, what: &str, missed: Missed) -> Self {
        match (self, missed) {
            (_, Missed::Left) => Self::Left,
            (Self::Planned, Missed::Failed(reason, error)) => {
                Self::Failed(Missed::Failed(format!("{what}: {reason}"), error))
            }
            (other, _) => other,
        }
    }
}

/// Why something did not come from the server.
#[derive(Debug)]
enum Missed {
    /// The user left.
    Left,
    /// A sentence, and the error that it came of where there is one.
    Failed(String, Option<EngineError>),
}

impl From<EngineError> for Missed {
    fn from(error: EngineError) -> Self {
        Self::Failed(error.to_string(), Some(error))
    }
}

impl std::fmt::Display for Missed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Left => f.write_str("the user did not wait for it"),
            Self::Failed(reason, _) => f.write_str(reason),
        }
    }
}

struct Session<'a> {
    plan: Arc<Plan>,
    options: &'a ClientOptions,
    stop: BorrowedFd<'a>,
    observe: &'a mut dyn FnMut(&Event),
    link: Link<ClientSide>,
    cookie: Cookie,
    control: ControlFacts,
    remote: std::net::SocketAddr,
    started_at_unix_ms: u64,
    hello: Option<Hello>,
    exchanges: Vec<Exchange>,
    clock_before: Option<ClockOffset>,
    notes: Vec<Note>,
    gate: Arc<Gate>,
    pool: Arc<SamplePool>,
    /// What this host is, until `before` has it.
    host: HostFacts,
    before: Option<Before>,
    streams: Vec<StreamHandle>,
    /// The server said that the test starts before the last UDP stream was answered.
    started: bool,
    /// The server told what it had sent.
    peer_finished: bool,
    /// Bytes that a transfer's target has stored, as it says.
    stored: u64,
    /// The target failed after the last byte had arrived.
    failed_target: Option<Ending>,
    /// The probes of `--latency`, and what came of them.
    probing: Probing,
}

impl<'a> Session<'a> {
    fn connect(
        plan: &Plan,
        options: &'a ClientOptions,
        stop: BorrowedFd<'a>,
        observe: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, EngineError> {
        let (stream, remote, took) = sockets::connect_control(plan, options.control_keepalive)?;
        if let Some(asked) = options.control_keepalive {
            sockets::check_keepalive(&stream, asked)?;
        }
        let cookie = options.cookie.map_or_else(random_cookie, Ok)?;
        let mut plan = fit(plan, options.fit_datagrams, remote.ip());
        if options.endless {
            plan.end = End::TimeNs(Nanos::ZERO);
        }
        let name = format!("{} {}", options.software.name, options.software.version);
        let target = options.transfer.as_ref().map(|one| one.target.clone());
        let mut asked = parameters(&plan, &name, IPERF3_VERSION, options.extended, target);
        asked.get_server_output = options.want_server_output;
        asked.udp_counters_64bit = options.wide_counters;
        if let Some(credentials) = &options.credentials {
            asked.authtoken = Some(auth::token(credentials, clock::wall())?.into());
        }
        let machine = ClientControl::new(cookie, asked);
        let mut link = Link::opened(stream, machine);
        let control = ControlFacts {
            connect_ns: Some(took),
            ..link.facts(remote)
        };
        // Until the server answers there is time to look around.
        if let Err(LinkError::Io(source) | LinkError::Unsent(source)) = link.flush() {
            return Err(EngineError::Connect {
                address: remote,
                source,
            });
        }
        Ok(Self {
            plan: Arc::new(plan),
            options,
            stop,
            observe,
            link,
            host: linerate_kernel::host::facts(),
            cookie,
            control,
            remote,
            started_at_unix_ms: clock::wall().0 / 1_000_000,
            hello: None,
            exchanges: Vec::new(),
            clock_before: None,
            notes: Vec::new(),
            gate: Arc::new(Gate::new().map_err(EngineError::host("making event descriptors"))?),
            pool: SamplePool::new(SAMPLE_BYTES, u64::MAX),
            before: None,
            streams: Vec::new(),
            started: false,
            peer_finished: false,
            stored: 0,
            failed_target: None,
            probing: Probing::Off,
        })
    }

    fn extended(&self) -> bool {
        self.hello.is_some()
    }

    /// Parameters, hello and clocks, until the server wants the streams. A server that refuses the parameters, or
    /// closes when it has them, was connected to as well.
    fn agree(&mut self) -> Result<(), EngineError> {
        let agreed = self.reach_agreement();
        let connected = match &agreed {
            Ok(()) | Err(EngineError::Refused { code: 1.., .. }) => true,
            Err(EngineError::Control { .. } | EngineError::StoppedEarly) => {
                !self.link.machine.is_unanswered()
            }
            Err(_) => false,
        };
        if connected {
            let event = Event::Connected {
                control: self.control.clone(),
                cookie: self.cookie.text().into_owned().into(),
                at_unix_ms: self.started_at_unix_ms,
            };
            (self.observe)(&event);
        }
        agreed
    }

    fn reach_agreement(&mut self) -> Result<(), EngineError> {
        let patience = clock::monotonic().plus(PATIENCE);
        loop {
            match self.next(patience, "agreeing on the test")? {
                ClientEvent::CreateStreams => return self.check_target(),
                ClientEvent::Hello(hello) => {
                    self.control.peer_software = Some(hello.software.clone());
                    self.hello = Some(hello);
                    self.exchange_clocks(&[self.stop], "comparing clocks", ClientControl::ready)?;
                    self.clock_before = ClockOffset::estimate(&self.exchanges);
                    // Read while the server gets ready, too.
                    self.read_before();
                }
                _ => {}
            }
        }
    }

    fn read_before(&mut self) {
        let host = std::mem::take(&mut self.host);
        self.before = Some(Before::read(host, self.remote.ip(), &self.pool));
    }

    /// A server that stores nothing would take frames for payload.
    fn check_target(&mut self) -> Result<(), EngineError> {
        if self.options.transfer.is_none() {
            return Ok(());
        }
        let hello = self.hello.as_ref();
        let reason = match hello.map(|hello| hello.target.clone()) {
            Some(Some(answer)) => match answer.refused {
                None => return Ok(()),
                Some(reason) => reason.to_string(),
            },
            Some(None) => {
                "it is a linerate that does not know transfers; install this version there"
                    .to_owned()
            }
            None => "it is no linerate; run `linerate serve` there".to_owned(),
        };
        self.leave();
        Err(EngineError::Target {
            address: self.remote.to_string(),
            reason,
        })
    }

    /// Refuses a precision of what nobody tells before the end.
    fn check_precision(&mut self) -> Result<(), EngineError> {
        let unseen = self.plan.protocol == Protocol::Udp && self.plan.client_sends();
        if self.plan.precision.is_none() || !unseen || self.extended() {
            return Ok(());
        }
        self.leave();
        Err(EngineError::Unseen {
            address: self.remote.to_string(),
        })
    }

    /// Some questions and answers on the idle connection: one alone, and the others on each other's heels, so that they
    /// take two round trips; `then` goes behind the last question.
    fn exchange_clocks(
        &mut self,
        stops: &[BorrowedFd<'_>],
        doing: &'static str,
        then: impl FnOnce(&mut ClientControl) -> Result<(), ProtocolError>,
    ) -> Result<(), EngineError> {
        self.exchanges.clear();
        let until = clock::monotonic().plus(PING_TIME);
        let first = self.ask_clock(0..1)?;
        self.hear_clock(first, stops, doing)?;
        let more = clock::monotonic() < until;
        let others = self.ask_clock(1..if more { PINGS } else { 1 })?;
        then(&mut self.link.machine).map_err(|error| self.protocol(error))?;
        let sent = self.link.flush();
        sent.map_err(|error| self.link_error(error, doing))?;
        self.hear_clock(others, stops, doing)
    }

    /// Puts questions; gives back when each was put.
    fn ask_clock(&mut self, numbers: Range<u64>) -> Result<BTreeMap<u64, Nanos>, EngineError> {
        let mut asked = BTreeMap::new();
        for n in numbers {
            asked.insert(n, clock::monotonic());
            let ping = self.link.machine.send_ping(n);
            ping.map_err(|error| self.protocol(error))?;
        }
        Ok(asked)
    }

    /// Waits for the answers.
    fn hear_clock(
        &mut self,
        mut asked: BTreeMap<u64, Nanos>,
        stops: &[BorrowedFd<'_>],
        doing: &'static str,
    ) -> Result<(), EngineError> {
        let patience = clock::monotonic().plus(PATIENCE);
        while !asked.is_empty() {
            if let ClientEvent::Pong {
                n,
                received,
                sent: answered,
            } = self.hear(stops, patience, doing)?
                && let Some(sent) = asked.remove(&n)
            {
                self.exchanges.push(Exchange {
                    sent_ns: sent.0,
                    peer_received_ns: received.0,
                    peer_sent_ns: answered.0,
                    received_ns: clock::monotonic().0,
                });
            }
        }
        Ok(())
    }

    /// The next event of the server before the test; its refusals are errors.
    fn next(&mut self, until: Nanos, doing: &'static str) -> Result<ClientEvent, EngineError> {
        self.hear(&[self.stop], until, doing)
    }

    /// The server's next event; its refusals, its silence, and the first of `stops` that becomes readable, are errors.
    fn hear(
        &mut self,
        stops: &[BorrowedFd<'_>],
        until: Nanos,
        doing: &'static str,
    ) -> Result<ClientEvent, EngineError> {
        let said = self.hear_in_time(stops, until, doing)?;
        said.ok_or_else(|| self.silent(doing))
    }

    /// The same; nothing when it does not come in time.
    fn hear_in_time(
        &mut self,
        stops: &[BorrowedFd<'_>],
        until: Nanos,
        doing: &'static str,
    ) -> Result<Option<ClientEvent>, EngineError> {
        match self.link.turn(stops, until) {
            Ok(Turn::Event(ClientEvent::Denied)) => Err(EngineError::Busy {
                address: self.remote.to_string(),
            }),
            Ok(Turn::Event(ClientEvent::ServerError { code, errno })) => {
                Err(self.refused(code, errno))
            }
            Ok(Turn::Event(ClientEvent::ServerTerminated)) => Err(self.terminated()),
            Ok(Turn::Event(event)) => Ok(Some(event)),
            Ok(Turn::Woken(_)) => {
                self.leave();
                Err(EngineError::StoppedEarly)
            }
            Ok(Turn::TimedOut) => Ok(None),
            Err(error) => Err(self.link_error(error, doing)),
        }
    }

    /// The server gave up.
    fn refused(&self, code: i32, errno: i32) -> EngineError {
        EngineError::Refused {
            address: self.remote.to_string(),
            reason: refusal(code, errno),
            code,
            errno,
        }
    }

    /// The server's user stopped it.
    fn terminated(&self) -> EngineError {
        EngineError::Refused {
            address: self.remote.to_string(),
            reason: SERVER_STOPPED.to_owned(),
            code: 0,
            errno: 0,
        }
    }

    /// The server says nothing.
    fn silent(&self, doing: &'static str) -> EngineError {
        let text = "the server did not answer in time";
        self.failed(
            doing,
            std::io::Error::new(std::io::ErrorKind::TimedOut, text),
        )
    }

    fn failed(&self, doing: &'static str, source: std::io::Error) -> EngineError {
        EngineError::Control {
            address: self.remote.to_string(),
            doing,
            source,
        }
    }

    fn link_error(&self, error: LinkError, doing: &'static str) -> EngineError {
        let address = self.remote.to_string();
        match error {
            LinkError::Protocol(source) => EngineError::Protocol { address, source },
            LinkError::Io(source) | LinkError::Unsent(source)
                if was_let_fall(&source) && self.link.machine.is_unanswered() =>
            {
                EngineError::Connect {
                    address: self.remote,
                    source,
                }
            }
            LinkError::Io(source) | LinkError::Unsent(source) => EngineError::Control {
                address,
                doing,
                source,
            },
            LinkError::Closed => {
                let text = if self.options.credentials.is_some() {
                    "the server closed the connection; newer iperf3 servers do so when they refuse the credentials"
                } else {
                    "the server closed the connection"
                };
                let source = std::io::Error::new(std::io::ErrorKind::ConnectionAborted, text);
                EngineError::Control {
                    address,
                    doing,
                    source,
                }
            }
        }
    }

    fn protocol(&self, source: ProtocolError) -> EngineError {
        EngineError::Protocol {
            address: self.remote.to_string(),
            source,
        }
    }

    /// Lets the streams go and follows them until something ends the test.
    fn measure(&mut self) -> (Ending, Intervals) {
        if let Some(transfer) = &self.options.transfer {
            transfer.source.start();
        }
        let start = self.gate.open();
        (self.observe)(&Event::Started);
        self.probing.enter(Phase::Ramp);
        let mut intervals = Intervals::new(&self.plan, start, self.streams.len());
        let ending = self.follow(start, &mut intervals);
        self.probing.enter(Phase::Pause);
        (self.observe)(&Event::Ending);
        (self.stop_streams(ending), intervals)
    }

    fn follow(&mut self, start: Nanos, intervals: &mut Intervals) -> Ending {
        let end = self.plan.ends_at(start).unwrap_or(Nanos(u64::MAX / 2));
        let mut watch = Watch::new(&self.plan, start, &self.streams);
        let mut idle = Idle::new(&self.plan, start);
        let mut loaded = self.probing.loaded_at(&self.plan, start);
        loop {
            let now = clock::monotonic();
            if loaded.take_if(|at| now >= *at).is_some() {
                self.probing.enter(Phase::Loaded);
            }
            if let Some(interval) = intervals.take(now, &self.streams) {
                (self.observe)(&Event::Interval(interval));
            }
            let precise = watch
                .as_mut()
                .is_some_and(|watch| watch.take(now, &self.streams));
            if now >= end || precise || self.has_moved_everything() {
                return Ending::Planned;
            }
            if let Some(ending) = self.ended_by_file() {
                return ending;
            }
            if self.all_ended() {
                // The last of them may have ended after its end was looked for.
                if self.has_moved_everything() {
                    return Ending::Planned;
                }
                return self.ended_by_file().unwrap_or_else(|| self.why_all_ended());
            }
            if let Some(reason) = idle.look(now, &self.streams, self.stored) {
                return Ending::Failed(EngineError::Idle { reason }.into());
            }
            // In reverse from a stock server only the count tells when -n is reached.
            let counting =
                matches!(self.plan.end, End::Bytes(_) | End::Blocks(_)) && !self.extended();
            let look = if counting {
                now.plus(Nanos::from_millis(10))
            } else {
                Nanos(u64::MAX / 2)
            };
            let watched = watch.as_ref().map_or(look, Watch::wake);
            let until = end
                .min(intervals.wake())
                .min(look)
                .min(watched)
                .min(loaded.unwrap_or(look))
                .min(idle.wake());
            let gate = Arc::clone(&self.gate);
            match self.link.turn(&[self.stop, gate.news_fd()], until) {
                Ok(Turn::Woken(0)) if self.options.leave_at_once => return self.leave(),
                Ok(Turn::Woken(0)) => return Ending::Interrupted,
                Ok(Turn::Woken(_)) => gate.hear(),
                Ok(Turn::TimedOut) => {}
                Ok(Turn::Event(ClientEvent::Received(told))) => {
                    if let Some(watch) = &mut watch {
                        watch.hear(clock::monotonic(), &told);
                    }
                }
                Ok(Turn::Event(event)) => {
                    if let Some(ending) = self.hear_while_running(event) {
                        return ending;
                    }
                }
                Err(error) => {
                    return Ending::Failed(self.link_error(error, "the test ran").into());
                }
            }
        }
    }

    /// Tells the server that the user has stopped the test, and waits for nothing.
    fn leave(&mut self) -> Ending {
        self.link.machine.terminate();
        drop(self.link.flush());
        Ending::Left
    }

    /// What wakes who waits for the server at the end: the user, where he does not wait either.
    fn impatience(&self) -> Option<BorrowedFd<'a>> {
        self.options.leave_at_once.then_some(self.stop)
    }

    /// What a server says before the end of the test: it ends the test where it is its last word.
    fn hear_while_running(&mut self, event: ClientEvent) -> Option<Ending> {
        match event {
            ClientEvent::ServerTerminated => Some(Ending::PeerInterrupted),
            ClientEvent::Stored(stored) => self.hear_stored(stored),
            ClientEvent::ServerError { code, errno } => {
                let reason = format!("the server gave up: {}", refusal(code, errno));
                let error = Some(self.refused(code, errno));
                Some(Ending::Failed(Missed::Failed(reason, error)))
            }
            event => {
                self.hear_finishing(event);
                None
            }
        }
    }

    /// A target that can store no more ends the test.
    fn hear_stored(&mut self, stored: Stored) -> Option<Ending> {
        self.stored = stored.bytes;
        let reason = stored.error?;
        Some(Ending::Stage(format!("the target: {reason}")))
    }

    fn hear_finishing(&mut self, event: ClientEvent) {
        if let ClientEvent::Finishing(told) = event {
            stream::tell_receivers(&self.streams, &told);
            self.peer_finished = true;
        }
    }

    /// Whether a `-n` or `-k` test is complete in every direction.
    fn has_moved_everything(&self) -> bool {
        let (Some(target), _) = negotiation::byte_budget(&self.plan, self.extended()) else {
            return false;
        };
        // A sender that failed has finished, too.
        let sent = self.moved(|stream| stream.sends);
        let by_source = self.options.transfer.is_some();
        let senders_done = (by_source || sent >= target || !self.plan.client_sends())
            && self
                .streams
                .iter()
                .filter(|stream| stream.sends)
                .all(StreamHandle::is_finished);
        let mut receivers = self
            .streams
            .iter()
            .filter(|stream| !stream.sends)
            .peekable();
        if receivers.peek().is_none() {
            return senders_done;
        }
        if self.extended() && self.plan.protocol == Protocol::Udp {
            return senders_done && self.peer_finished;
        }
        let counted = !self.extended() && self.moved(|stream| !stream.sends) >= target;
        senders_done && (counted || receivers.all(StreamHandle::is_finished))
    }

    /// Bytes of some streams after the omitted part.
    fn moved(&self, which: impl Fn(&StreamHandle) -> bool) -> u64 {
        let streams = self.streams.iter().filter(|stream| which(stream));
        let bytes = streams.map(|stream| {
            let omitted = stream.live.at_omit_end().map_or(0, |figures| figures.bytes);
            stream.live.latest().bytes.saturating_sub(omitted)
        });
        bytes.sum()
    }

    /// A test ends with its file.
    pub(super) fn ended_by_file(&self) -> Option<Ending> {
        Some(match self.gate.file_end()? {
            FileEnd::Sent => Ending::Planned,
            FileEnd::Failed { error, .. } if self.options.transfer.is_some() => {
                Ending::Stage(error.clone())
            }
            FileEnd::Failed { error, errno } => {
                let failure = EngineError::File {
                    path: self.options.file.clone().unwrap_or_default(),
                    source: std::io::Error::from_raw_os_error(*errno),
                };
                Ending::Failed(Missed::Failed(error.clone(), Some(failure)))
            }
        })
    }

    /// A test whose streams have all ended before their time has failed.
    fn all_ended(&self) -> bool {
        self.gate.finished() >= self.streams.len() as u64
    }

    /// The streams of a server that ends or gives up close first; its last word, or the end of its control connection,
    /// says more.
    fn why_all_ended(&mut self) -> Ending {
        match self.link.turn(&[], clock::monotonic().plus(LAST_WORD)) {
            Ok(Turn::Event(event)) => self
                .hear_while_running(event)
                .unwrap_or(Ending::StreamsEnded),
            Ok(_) => Ending::StreamsEnded,
            Err(error) => Ending::Failed(self.link_error(error, "the test ran").into()),
        }
    }

    /// Senders first, so that what is under way arrives; then the word to the server.
    fn stop_streams(&mut self, ending: Ending) -> Ending {
        self.gate.close();
        if ending.is_failure() || matches!(ending, Ending::Stage(_)) {
            self.gate.cut();
            return ending;
        }
        let until = clock::monotonic().plus(RESULTS_PATIENCE);
        while self
            .streams
            .iter()
            .any(|stream| stream.sends && !stream.is_finished())
        {
            let gate = Arc::clone(&self.gate);
            let stop = self.impatience();
            let others: Vec<_> = [gate.news_fd()].into_iter().chain(stop).collect();
            match self.link.turn(&others, until) {
                Ok(Turn::Woken(0)) => gate.hear(),
                Ok(Turn::Woken(_)) => {
                    self.gate.cut();
                    return self.leave();
                }
                Ok(Turn::TimedOut) => break,
                Ok(Turn::Event(event)) => {
                    if let Some(ended) = self.hear_while_running(event) {
                        self.gate.cut();
                        // What a user stopped ends within a part of a file.
                        let stopped = matches!(ending, Ending::Interrupted);
                        let by_stage = matches!(ended, Ending::Stage(_));
                        return if stopped && by_stage { ending } else { ended };
                    }
                }
                Err(error) => {
                    self.gate.cut();
                    return Ending::Failed(self.link_error(error, "draining").into());
                }
            }
        }
        if !self.extended() && self.plan.client_sends() {
            std::thread::sleep(self.settle().as_duration());
        }
        ending
    }

    /// A stock server counts what it has read when it hears that the test is over: the time that it gets to read the last bytes.
    /// It divides by this time as well, which therefore is a thousandth of the test; where bytes were asked for, all of them
    /// count more.
    fn settle(&self) -> Nanos {
        let ran = clock::monotonic()
            .since(self.gate.started().unwrap_or_default())
            .0;
        Nanos(match self.plan.end {
            End::TimeNs(_) => (ran / 1000).clamp(1_000_000, 10_000_000),
            End::Bytes(_) | End::Blocks(_) => (ran / 500).clamp(5_000_000, 20_000_000),
        })
    }
}

/// A cookie that nobody can guess, from 36 random bytes of the kernel.
///
/// # Errors
/// Where the kernel has no random bytes.
pub fn random_cookie() -> Result<Cookie, EngineError> {
    let mut random = [0_u8; 36];
    thread::random(&mut random).map_err(EngineError::host("asking the kernel for random bytes"))?;
    Ok(Cookie::from_random(random))
}

/// What a server's error number means (upstream's `iperf_api.h`).
fn refusal(code: i32, errno: i32) -> String {
    let reason = match code {
        106 => "it takes only clients that have its session token (LINERATE_SESSION_TOKEN)",
        27 => "the requested or reached rate is above its limit",
        37 => "the requested duration is above its limit",
        142 => "it refused the credentials",
        114 => {
            "it does not run these parameters: more streams (-P, --bidir) than it allows, or a value out of its range"
        }
        121 => {
            "it is busy: it has not enough capacity for the streams or the memory of this test now; fewer streams \
             (-P) may fit, and its log shows details"
        }
        160 => "too little moved, or the test took longer than it allows",
        _ => "it gave up",
    };
    let errno = if errno == 0 {
        String::new()
    } else {
        format!(", {}", std::io::Error::from_raw_os_error(errno))
    };
    format!("{reason} (iperf3 error {code}{errno})")
}
