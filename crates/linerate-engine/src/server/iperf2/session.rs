//! One test of an iperf2's client, from its streams to its record.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::tcp;
use linerate_kernel::{clock, socket};
use linerate_model::plan::{Direction, End, MAX_STREAMS, Plan, Protocol};
use linerate_model::progress::Event;
use linerate_model::record::{
    ControlFacts, EndRecord, Kind, Note, Outcome, Role, RunRecord, SCHEMA_VERSION,
};
use linerate_model::units::Nanos;
use linerate_wire::iperf2::Version;
use linerate_wire::iperf2::ack::{Ack, Times};
use linerate_wire::iperf2::caller::{Caller, Way};
use linerate_wire::iperf2::datagram::{Head, Layout};
use socket2::SockRef;

use super::super::limits::BUSY;
use super::super::place::Place;
use super::super::refusal::Refusal;
use super::super::running::{Concluded, Running, Watch, outcome};
use super::super::{Arrival, Cause, Entry, ServerEvent, Shared};
use super::door::{UNPROVED, tell_refusal};
use super::plan::{Part, bytes_a_stream, plan};
use super::{key, refusal};
use crate::budget::Budget;
use crate::gate::Gate;
use crate::half::Before;
use crate::intervals::Intervals;
use crate::sample_pool::Share;
use crate::sockets;
use crate::stream::iperf2::{Flow, Reported};
use crate::stream::{self, DataSocket, StreamContext, StreamHandle, StreamSocket, Streams};

/// The streams of a test have come by then: a client opens all of them at once.
const STREAMS_PATIENCE: Nanos = Nanos::from_millis(3000);
/// How often a running test is looked at.
const LOOK: Nanos = Nanos::from_millis(100);
/// How much longer than it said a client may take.
const OVERTIME: Nanos = Nanos::from_millis(40_000);
/// A UDP flow that has been silent for so long has ended without saying so; one of a slow rate has longer gaps.
const SILENCE: Nanos = Nanos::from_millis(10_000);
/// Gaps between the datagrams of a flow that may be missing.
const GAPS: u64 = 8;
/// How long a client that listens for connections back may take to accept one.
const CONNECT_PATIENCE: Nanos = Nanos::from_millis(5000);
/// A report is sent again each time the end of the flow comes again: until it has not come for the first time, and for the second at most.
const QUIET_AFTER_REPORT: Nanos = Nanos::from_millis(300);
const REPORT_PATIENCE: Nanos = Nanos::from_millis(3000);
/// How often the report of one flow is sent again at most.
const MOST_REPORTS: u32 = 20;
/// Less than this share of what a client said it would do means that its user stopped it.
const STOPPED_SHARE: f64 = 0.9;

/// The first stream of a test.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) caller: Caller,
    pub(super) over_udp: bool,
    pub(super) peer: SocketAddr,
    /// When it came: before the test begins, which waits for all streams.
    pub(super) came: Nanos,
    /// Of its datagrams.
    pub(super) layout: Layout,
    /// TCP: bytes that were read to know that.
    pub(super) read: usize,
    /// The port of ours that it came to.
    pub(super) port: u16,
}

/// Runs a test to its end; it tells the observer all there is to tell.
pub(super) fn run(shared: &Shared, entry: &Entry, place: Place, opened: Opened, first: Arrival) {
    let (test, peer) = (place.number, opened.peer);
    let mut session = Session {
        shared,
        entry,
        place,
        opened,
        shares: Vec::new(),
    };
    if let Err(Refusal { cause, reason }) = session.serve(first) {
        // A test that was admitted has begun: its end is always told.
        let bounded = session.opened.over_udp && session.place.admitted.is_none();
        let refused = ServerEvent::Refused {
            test: Some(test),
            peer,
            reason: reason.into(),
            cause,
        };
        tell_refusal(shared, bounded, refused);
    }
}

struct Session<'a> {
    shared: &'a Shared,
    entry: &'a Entry,
    place: Place,
    opened: Opened,
    /// What the samples of the records take, until they are dropped.
    shares: Vec<Share>,
}

/// A stream that stands, before its thread is made.
struct Standing {
    socket: StreamSocket,
    flow: Flow,
    /// It was opened by this end.
    back: bool,
}

impl Session<'_> {
    fn serve(&mut self, first: Arrival) -> Result<(), Refusal> {
        let mut plan = self.plan(Part::First);
        self.admit(&mut plan)?;
        // An iperf2 sends with its header, before this server knows of a test.
        let before = self.before().without_interface_counters();
        let arrivals = self.gather(first, plan.streams);
        // Those that did not come are no part of the test.
        plan.streams = u16::try_from(arrivals.len()).unwrap_or(plan.streams);
        let came = plan.streams;
        let streams = self.stand(&plan, arrivals)?;
        let complete = self.test(plan, before, streams)?;
        if self.opened.caller.way == Way::Tradeoff && complete {
            let mut plan = self.plan(Part::Back);
            // As many as came, whatever was said.
            plan.streams = came;
            self.check(&plan)?;
            let before = self.before();
            let streams = self.connect_back(plan.streams)?;
            plan.streams = u16::try_from(streams.len()).unwrap_or(plan.streams);
            self.test(plan, before, streams)?;
        }
        Ok(())
    }

    fn plan(&self, part: Part) -> Plan {
        let Opened {
            caller,
            over_udp,
            peer,
            port,
            ..
        } = &self.opened;
        let mut plan = plan(caller, *over_udp, peer.ip(), *port, part);
        plan.interval_ns = self.shared.options.interval;
        plan.send_timeout_ns = self.shared.options.send_timeout;
        plan
    }

    fn before(&self) -> Before {
        let host = linerate_kernel::host::facts();
        Before::read(host, self.opened.peer.ip(), &self.shared.pool)
    }

    /// Whether this client may run this test.
    fn admit(&mut self, plan: &mut Plan) -> Result<(), Refusal> {
        let Opened {
            caller, over_udp, ..
        } = &self.opened;
        if plan.streams > MAX_STREAMS {
            return Err(refusal(format!(
                "{} streams requested, {MAX_STREAMS} allowed",
                plan.streams
            )));
        }
        let sends = matches!(caller.way, Way::ToClient | Way::FullDuplex);
        let limits_rate = self.shared.options.limits.rate.is_some();
        let reason = match caller.way {
            Way::Bounceback if caller.bounceback.is_none() => Some(
                "its requests (--bounceback-request) have less than 64 bytes or more than 64 KiB, or its replies \
                 (--bounceback-reply) none or more than 64 KiB",
            ),
            Way::Bounceback if limits_rate && has_longer_replies(caller) => Some(
                "its replies (--bounceback-reply) are longer than its requests, and this server's limit of the rate counts what \
                 it receives",
            ),
            _ if caller.has_key => Some("it shows a permit key, and this server has none"),
            _ if caller.is_isochronous && sends => Some(
                "isochronous traffic from the server (--isochronous, --burst-period) is not sent",
            ),
            _ => None,
        };
        if let Some(reason) = reason {
            return Err(refusal(reason));
        }
        self.check(plan)?;
        let wants_proof = *over_udp && caller.way != Way::ToServer;
        let now = clock::monotonic();
        let address = self.opened.peer.ip();
        if wants_proof && !self.shared.sessions().proofs.holds(address, now) {
            return Err(refusal(UNPROVED));
        }
        self.place
            .admit(plan)
            .map_err(|reason| Refusal::code(BUSY, reason))?;
        // UDP to an address that may not have asked for it would let anybody direct this server's traffic at anybody.
        if wants_proof && !self.shared.sessions().proofs.take(address, now) {
            return Err(refusal(UNPROVED));
        }
        (self.shared.observe)(ServerEvent::Accepted {
            test: self.place.number,
            peer: self.opened.peer,
            user: None,
            buffers: None,
        });
        Ok(())
    }

    fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        let refused = self.shared.options.limits.refuse(plan);
        refused.map_or(Ok(()), |(code, reason)| Err(Refusal::code(code, reason)))
    }

    /// Waits for the other streams of the test: for all of them, but not for long.
    fn gather(&self, first: Arrival, streams: u16) -> Vec<Arrival> {
        let mut arrivals = vec![first];
        let until = clock::monotonic().plus(STREAMS_PATIENCE);
        while arrivals.len() < usize::from(streams) && clock::monotonic() < until {
            let mut entries = [
                PollEntry::new(self.entry.news.as_fd(), Interest::READ),
                PollEntry::new(self.shared.terminate.as_fd(), Interest::READ),
            ];
            let left = until.since(clock::monotonic());
            drop(poll::wait(&mut entries, Some(left)));
            if entries[1].readiness().any() {
                break;
            }
            drop(self.entry.news.clear());
            while let Some(arrival) = self.entry.next_arrival() {
                arrivals.push(arrival);
            }
        }
        // Who comes from here on begins a test of its own.
        self.entry.lock().iperf2 = None;
        while let Some(arrival) = self.entry.next_arrival() {
            arrivals.push(arrival);
        }
        arrivals
    }

    /// All streams of the first part: those that came, those that go the other way over the same sockets, and those back.
    fn stand(&self, plan: &Plan, arrivals: Vec<Arrival>) -> Result<Vec<Standing>, Refusal> {
        let caller = &self.opened.caller;
        let no = |error: std::io::Error| {
            Refusal::new(Cause::Host, format!("its streams cannot be used: {error}"))
        };
        let mut standing = Vec::new();
        let mut duplicates = Vec::new();
        for arrival in arrivals {
            let socket = match arrival {
                Arrival::Stream(stream) => {
                    self.shared
                        .congestion
                        .settle(&stream, self.opened.peer, None);
                    self.answer(&stream);
                    StreamSocket::Stream(stream)
                }
                Arrival::Flow(socket, early) => {
                    let mut flow = self.flow();
                    flow.early = early;
                    if caller.way == Way::FullDuplex {
                        let duplicate = StreamSocket::Udp(socket.try_clone().map_err(no)?);
                        duplicates.push(duplicate);
                    }
                    standing.push(Standing {
                        socket: StreamSocket::Udp(socket),
                        flow,
                        back: false,
                    });
                    continue;
                }
                Arrival::Udp(..) | Arrival::Probe(_) => continue,
            };
            if let (StreamSocket::Stream(stream), Way::FullDuplex) = (&socket, caller.way) {
                duplicates.push(StreamSocket::Stream(stream.try_clone().map_err(no)?));
            }
            let payload = self.opened.read.saturating_sub(caller.apart());
            // The header of a reverse test is all that its client sends.
            let payload = if caller.way == Way::ToClient {
                0
            } else {
                payload
            };
            let mut flow = Flow::tcp(payload as u64);
            flow.bounceback = caller.bounceback;
            standing.push(Standing {
                socket,
                flow,
                back: false,
            });
        }
        standing.extend(duplicates.into_iter().map(|socket| Standing {
            flow: match socket {
                StreamSocket::Stream(_) => Flow::tcp(0),
                StreamSocket::Udp(_) => Flow {
                    reports: false,
                    ..self.flow()
                },
            },
            socket,
            back: false,
        }));
        if caller.way == Way::Dual {
            standing.extend(self.connect_back(plan.streams)?);
        }
        Ok(standing)
    }

    /// UDP: how this client's flows are laid out.
    fn flow(&self) -> Flow {
        let Opened { caller, layout, .. } = &self.opened;
        let reports =
            !caller.no_report && matches!(caller.way, Way::ToServer | Way::Dual | Way::Tradeoff);
        Flow::udp(*layout, caller.report_form(*layout), reports)
    }

    /// Answers a TCP header as iperf2's server does; clients that do not read it leave it.
    fn answer(&self, stream: &TcpStream) {
        let caller = &self.opened.caller;
        if !caller.takes_ack {
            return;
        }
        let wall = || {
            let now = clock::wall();
            let head = Head::at(0, now);
            [head.seconds, head.microseconds]
        };
        let ack = Ack {
            flags: 0,
            version: Version::SPOKEN,
            times: caller.trip_times.map(|sent| Times {
                sent,
                came: wall(),
                answered: wall(),
            }),
        };
        // A new connection's send buffer takes it at once.
        drop(socket::send(stream.as_fd(), &ack.encode()));
    }

    /// Opens streams to where the client listens.
    fn connect_back(&self, streams: u16) -> Result<Vec<Standing>, Refusal> {
        let Opened {
            caller,
            over_udp,
            peer,
            ..
        } = &self.opened;
        let port = caller.port.unwrap_or(linerate_wire::iperf2::DEFAULT_PORT);
        let mut target = *peer;
        target.set_port(port);
        let plan = self.plan(Part::Back);
        (0..streams)
            .map(|index| {
                let opened = if *over_udp {
                    sockets::open_udp(&plan, target, index).map(StreamSocket::Udp)
                } else {
                    sockets::connect_stream(&plan, target, CONNECT_PATIENCE)
                        .map(StreamSocket::Stream)
                };
                let socket = opened.map_err(|error| {
                    refusal(format!(
                        "it wants a connection back (-d, -r) to its port {port}, which failed: {error}; a firewall may drop \
                         it, where --reverse or --full-duplex works"
                    ))
                })?;
                let flow = match socket {
                    StreamSocket::Stream(_) => Flow::tcp(0),
                    StreamSocket::Udp(_) => self.flow(),
                };
                Ok(Standing {
                    socket,
                    flow,
                    back: true,
                })
            })
            .collect()
    }

    /// One part of the test, to its record. Says whether it ran to its end.
    fn test(
        &mut self,
        plan: Plan,
        before: Before,
        standing: Vec<Standing>,
    ) -> Result<bool, Refusal> {
        (self.shared.observe)(ServerEvent::Asked {
            test: self.place.number,
            plan: Box::new(plan.clone()),
        });
        let control = self.control_facts(&standing);
        let started_at_unix_ms = clock::wall().0 / 1_000_000;
        self.tell(Event::Connected {
            control: control.clone(),
            cookie: self.place.cookie.text().into_owned().into(),
            at_unix_ms: started_at_unix_ms,
        });
        let mut running = self.start(plan, before, standing)?;
        running.control = control;
        running.started_at_unix_ms = started_at_unix_ms;
        let start = running.gate.open();
        self.tell(Event::Started);
        let mut intervals = Intervals::new(&running.plan, start, running.streams.len());
        let ended = self.follow(&running, start, &mut intervals);
        self.tell(Event::Ending);
        let Concluded {
            record,
            cause,
            in_order,
        } = self.conclude(running, ended, &mut intervals);
        let complete = record.outcome == Outcome::Completed;
        (self.shared.observe)(ServerEvent::Finished {
            test: self.place.number,
            record: Box::new(record),
            cause,
            in_order,
        });
        Ok(complete)
    }

    /// Gives every stream its thread.
    fn start(
        &self,
        plan: Plan,
        before: Before,
        standing: Vec<Standing>,
    ) -> Result<Running, Refusal> {
        let no = |what: &str, error: std::io::Error| {
            Refusal::new(Cause::Host, format!("{what}: {error}"))
        };
        let gate = Arc::new(Gate::new().map_err(|error| no("making event descriptors", error))?);
        let plan = Arc::new(plan);
        let each = bytes_a_stream(&self.opened.caller);
        let streams = Streams {
            role: Role::Server,
            plan: Arc::clone(&plan),
            gate: Arc::clone(&gate),
            budget: Arc::new(Budget::new(None)),
            pool: Arc::clone(&self.shared.pool),
            peer_extended: false,
            wide_counters: false,
            round_trip: sockets::longest_round_trip(standing.iter().map(|stream| &stream.socket)),
        };
        let mut running = Running::new(Arc::clone(&plan), Arc::clone(&gate), before);
        let mut opened = Vec::new();
        for (stream, index) in standing.into_iter().zip(0_u16..) {
            let context = StreamContext {
                read_rate: self.read_rate(&plan),
                cookie_bytes: self.apart(stream.back),
                active_opener: stream.back,
                // Each moves as many, none the share of another.
                budget: Arc::new(Budget::new(each)),
                iperf2: Some(stream.flow),
                ..streams.context(index)
            };
            if let Err(error) = sockets::configure(&stream.socket, &plan, self.opened.peer) {
                gate.cut();
                return Err(no("setting up its streams", error));
            }
            opened.push(stream::describe(&context, &stream.socket));
            match StreamHandle::spawn(context, stream.socket, None) {
                Ok(handle) => running.streams.push(handle),
                Err(error) => {
                    gate.cut();
                    return Err(no("no thread for a data stream", error));
                }
            }
        }
        self.tell(Event::Opened { streams: opened });
        Ok(running)
    }

    /// Bytes of the kernel's count that neither end's application counts.
    fn apart(&self, back: bool) -> u64 {
        let Opened {
            caller,
            over_udp,
            read,
            ..
        } = &self.opened;
        let bytes = match caller.way {
            _ if back || *over_udp => 0,
            Way::ToClient => *read,
            _ => caller.apart(),
        };
        bytes as u64
    }

    /// A slow application's rate for each of the streams.
    fn read_rate(&self, plan: &Plan) -> Option<linerate_model::units::BitRate> {
        let all = self.shared.options.read_rate?;
        let streams = u64::from(plan.total_streams().max(1));
        Some(linerate_model::units::BitRate((all.0 / streams).max(1)))
    }

    /// Follows the streams until all have ended, or says what ended the test.
    fn follow(
        &self,
        running: &Running,
        start: Nanos,
        intervals: &mut Intervals,
    ) -> Result<(), Refusal> {
        let limits = &self.shared.options.limits;
        let planned = match running.plan.end {
            End::TimeNs(Nanos::ZERO) => Some(start.plus(limits.duration)),
            _ => running.plan.ends_at(start).map(|end| end.plus(OVERTIME)),
        };
        let mut watch = Watch::new(start, limits.bytes_that_matter(&running.plan));
        let mut silence = Silence::new(&running.plan, start);
        // Our senders end by this clock; the client's by its own.
        let sends_until = running
            .plan
            .ends_at(start)
            .filter(|_| running.plan.direction != Direction::Send);
        loop {
            let now = clock::monotonic();
            if let Some(interval) = intervals.take(now, &running.streams) {
                self.tell(Event::Interval(interval));
            }
            if running.streams.iter().all(StreamHandle::is_finished) {
                return Ok(());
            }
            if sends_until.is_some_and(|until| now >= until) {
                running.gate.close();
            }
            watch.look(now, self.shared, running, planned, None)?;
            silence.look(now, running)?;
            let mut until = intervals.wake().min(now.plus(LOOK));
            if let Some(end) = sends_until.filter(|end| *end > now) {
                until = until.min(end);
            }
            let mut entries = [
                PollEntry::new(running.gate.news_fd(), Interest::READ),
                PollEntry::new(self.shared.terminate.as_fd(), Interest::READ),
            ];
            drop(poll::wait(&mut entries, Some(until.since(now))));
            if entries[1].readiness().any() {
                return Err(Refusal::server_stopped());
            }
            running.gate.hear();
        }
    }

    /// Ends the streams and writes the record.
    fn conclude(
        &mut self,
        mut running: Running,
        ended: Result<(), Refusal>,
        intervals: &mut Intervals,
    ) -> Concluded {
        running.gate.close();
        if ended.is_err() {
            running.gate.cut();
        }
        let reported: Vec<_> = running
            .streams
            .iter()
            .map(|it| Arc::clone(&it.reported))
            .collect();
        let (records, sockets, shares) = stream::join_all(&mut running.streams);
        self.shares.extend(shares);
        let stopped = running.gate.stopped().unwrap_or_default();
        if let Some(interval) = intervals.last(&records, stopped) {
            self.tell(Event::Interval(interval));
        }
        let before = std::mem::take(&mut running.before);
        let software = &self.shared.options.software;
        let half = before.finish(Role::Server, software, &running.gate, records);
        if ended.is_ok() {
            let sends: Vec<bool> = half.streams.iter().map(|stream| stream.sends).collect();
            report_again(&sockets, &sends, &reported, self.shared);
        }
        drop(sockets);
        let stopped_early = ended.is_ok() && was_stopped(&running.plan, &half, self.opened.came);
        let in_order = ended.is_ok();
        let (outcome, cause) = match outcome(ended, Ok(())) {
            (Outcome::Completed, _) if stopped_early => {
                (Outcome::PeerInterrupted, Some(Cause::ClientStopped))
            }
            other => other,
        };
        let record = RunRecord {
            schema_version: SCHEMA_VERSION,
            kind: Kind::Test,
            written_by: Role::Server,
            software: software.clone(),
            started_at_unix_ms: running.started_at_unix_ms,
            notes: notes(&self.opened, &running.plan),
            plan: Plan::clone(&running.plan),
            outcome,
            cookie: self.place.cookie.text().into_owned().into(),
            control: running.control,
            client: None,
            server: Some(half),
            peer_results: None,
            clock: None,
            latency: None,
            counter_runs: Vec::new(),
            cells: Vec::new(),
            host_names: None,
        };
        Concluded {
            record,
            cause,
            in_order,
        }
    }

    fn control_facts(&self, standing: &[Standing]) -> ControlFacts {
        let first = standing.first().map(|stream| &stream.socket);
        let local = first.map(|socket| sockets::address(SockRef::from(socket).local_addr()));
        ControlFacts {
            local: local.unwrap_or_default().into(),
            remote: self.opened.peer.to_string().into(),
            mss_bytes: first.and_then(|socket| tcp::mss(socket.as_fd()).ok()),
            iperf2: Some(self.opened.caller.name().into()),
            ..ControlFacts::default()
        }
    }

    fn tell(&self, event: Event) {
        (self.shared.observe)(ServerEvent::Progress {
            test: self.place.number,
            event,
        });
    }
}

/// Whether a client of `--bounceback` is sent more than it sends.
fn has_longer_replies(caller: &Caller) -> bool {
    let asked = caller.bounceback.as_ref();
    asked.is_some_and(|asked| asked.reply_bytes > asked.request_bytes)
}

/// What the client did not say, and what of its figures differs from ours.
fn notes(opened: &Opened, plan: &Plan) -> Vec<Note> {
    let caller = key(&opened.caller);
    let mut unsaid = Vec::new();
    if caller.streams.is_none() {
        unsaid.push("how many streams it has, so each connection is a test");
    }
    if plan.end == End::TimeNs(Nanos::ZERO) {
        unsaid.push("how long its test takes, so whether it was stopped is not known");
    }
    if opened.over_udp && caller.rate.is_none() {
        unsaid.push("its rate");
    }
    let sends = plan.direction != Direction::Receive;
    let mut text = format!(
        "{}: no control connection, so the client's kernel, host and samples are not known",
        caller.name()
    );
    if sends && !opened.over_udp && caller.bounceback.is_none() {
        text.push_str("; its own report is what it wrote, with what still was in its send buffer");
    }
    if let Some(bounceback) = &caller.bounceback {
        let bytes = bounceback.reply_bytes;
        text.push_str("; it measures round trips (--bounceback), which are its own figures: each request was answered with ");
        text.push_str(&bytes.to_string());
        text.push_str(" bytes, which are not counted here");
    }
    if !unsaid.is_empty() {
        text.push_str("; it does not say ");
        text.push_str(&unsaid.join(", nor "));
    }
    vec![Note {
        id: "iperf2-client".into(),
        text: text.into(),
    }]
}

/// Tells a UDP flow whose end was lost, or whose client is gone, from a slow one: by its rate.
struct Silence {
    longest: Option<Nanos>,
    bytes: u64,
    since: Nanos,
}

impl Silence {
    fn new(plan: &Plan, start: Nanos) -> Self {
        let gap = plan
            .rate_bps
            .map_or(Nanos::ZERO, |rate| rate.time_for(plan.block_bytes));
        let longest = SILENCE.max(Nanos(gap.0.saturating_mul(GAPS)));
        Self {
            longest: (plan.protocol == Protocol::Udp).then_some(longest),
            bytes: 0,
            since: start,
        }
    }

    fn look(&mut self, now: Nanos, running: &Running) -> Result<(), Refusal> {
        let bytes = running
            .streams
            .iter()
            .map(|it| it.live.latest().bytes)
            .sum();
        if bytes != self.bytes {
            (self.bytes, self.since) = (bytes, now);
        }
        match self.longest {
            Some(longest) if now.since(self.since) > longest => Err(Refusal::new(
                Cause::ClientSilent,
                format!("no datagram came for {longest}, and none that ends the test"),
            )),
            _ => Ok(()),
        }
    }
}

/// Sends the reports of flows again whose end comes again: the first was lost then.
fn report_again(
    sockets: &[DataSocket],
    sends: &[bool],
    reported: &[Arc<OnceLock<Reported>>],
    shared: &Shared,
) {
    let mut flows: Vec<(&UdpSocket, &Reported, bool, u32)> = sockets
        .iter()
        .zip(sends)
        .zip(reported)
        .filter_map(|((socket, sends), reported)| match &socket.socket {
            // Of a sender it is what the client reported: only its socket is kept, so that a repeat finds somebody.
            Some(StreamSocket::Udp(socket)) => Some((socket, reported.get()?, *sends, 0)),
            _ => None,
        })
        .collect();
    let last = clock::monotonic().plus(REPORT_PATIENCE);
    let mut until = clock::monotonic().plus(QUIET_AFTER_REPORT);
    let mut datagram = [0; 2048];
    while !flows.is_empty() && clock::monotonic() < until.min(last) {
        let fds = flows.iter().map(|(socket, ..)| socket.as_fd());
        let fds = fds.chain([shared.terminate.as_fd()]);
        let mut entries: Vec<PollEntry<'_>> =
            fds.map(|fd| PollEntry::new(fd, Interest::READ)).collect();
        let left = until.min(last).since(clock::monotonic());
        drop(poll::wait(&mut entries, Some(left)));
        let ready: Vec<bool> = entries.iter().map(|it| it.readiness().any()).collect();
        drop(entries);
        if ready.last() == Some(&true) {
            return;
        }
        let mut ready = ready.into_iter();
        flows.retain_mut(|(socket, reported, sends, sent)| {
            if ready.next() != Some(true) {
                return true;
            }
            match socket::receive(socket.as_fd(), &mut datagram) {
                // Only an end brings a report, and only one that is as long.
                Ok(length) if length < reported.datagram.len() || datagram[0] & 0x80 == 0 => true,
                Ok(_) => {
                    *sent += 1;
                    if !*sends {
                        until = clock::monotonic().plus(QUIET_AFTER_REPORT);
                        drop(socket::send(socket.as_fd(), &reported.datagram));
                    }
                    *sent < MOST_REPORTS
                }
                Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
            }
        });
    }
}

/// A client whose user stops it ends its streams as one does that is done, only sooner than it said.
fn was_stopped(plan: &Plan, half: &EndRecord, came: Nanos) -> bool {
    let receivers = || half.streams.iter().filter(|stream| !stream.sends);
    if receivers().next().is_none() {
        return false;
    }
    match plan.end {
        End::TimeNs(Nanos::ZERO) | End::Blocks(_) => false,
        End::TimeNs(planned) => {
            let last = receivers().filter_map(|stream| stream.last_byte_ns).max();
            let took = last.unwrap_or_default().since(came);
            (took.0 as f64) < planned.0 as f64 * STOPPED_SHARE
                && planned.since(took) > Nanos::from_millis(200)
        }
        End::Bytes(bytes) if plan.protocol == Protocol::Tcp => {
            receivers().map(|stream| stream.app_bytes).sum::<u64>() < bytes.0
        }
        End::Bytes(_) => false,
    }
}
