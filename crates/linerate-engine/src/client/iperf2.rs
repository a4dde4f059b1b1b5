//! A test of an iperf2's server: its streams are all there is, and what it reports of UDP.
//!
//! Over TCP such a server says nothing of what arrived. It closes its side when it has read everything, so that what the kernel
//! saw acknowledged is known to have been read.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{clock, socket, tcp};
use linerate_model::plan::{Direction, End, Plan, Protocol};
use linerate_model::progress::Event;
use linerate_model::record::{
    ControlFacts, EndRecord, Kind, Note, Outcome, PeerResults, PeerStream, Role, RunRecord,
    SCHEMA_VERSION,
};
use linerate_model::units::Nanos;
use linerate_wire::iperf2::ack::{ACK_BYTES, Ack};
use linerate_wire::iperf2::datagram::{Head, Layout};
use linerate_wire::iperf2::header::{
    Amount, Extension, First, IsochronousSettings, Start, TcpHeader, UdpHeader, flag, upper,
};
use linerate_wire::iperf2::isochronous::Frame;
use linerate_wire::iperf2::report::Form;
use linerate_wire::iperf2::{DEFAULT_UDP_RATE, Version};
use socket2::SockRef;

use super::{ClientOptions, Ended, SAMPLE_BYTES, random_cookie};
use crate::budget::Budget;
use crate::error::EngineError;
use crate::gate::Gate;
use crate::half::Before;
use crate::intervals::Intervals;
use crate::sample_pool::SamplePool;
use crate::sockets;
use crate::stream::iperf2::{Flow, Reported};
use crate::stream::{self, DataSocket, StreamContext, StreamHandle, StreamSocket, Streams};

/// How often a running test is looked at.
const LOOK: Nanos = Nanos::from_millis(100);
/// How much longer than asked a server that sends may take.
const OVERTIME: Nanos = Nanos::from_millis(5000);
/// A UDP server that is asked to send is asked again so often, and so many times.
const ASK_AGAIN: Nanos = Nanos::from_millis(250);
const ASKED: u32 = 12;
/// A TCP server has read everything and closed its side by then.
const CLOSE_PATIENCE: Nanos = Nanos::from_millis(3000);
/// The header has 31 bits for a number of bytes.
const MOST_BYTES: u64 = 0x7FFF_FFFF;
/// Datagrams shorter than this have no room for a header, and go without one.
const LEAST_WITH_HEADER: u64 = 80;

/// Runs a test to its end.
pub(super) fn run(
    plan: &Plan,
    options: &ClientOptions,
    stop: BorrowedFd<'_>,
    observe: &mut dyn FnMut(&Event),
) -> Result<Ended, EngineError> {
    check(plan, options)?;
    let mut test = Test::open(plan, options)?;
    let event = Event::Connected {
        control: test.control.clone(),
        cookie: test.cookie.clone().into(),
        at_unix_ms: test.started_at_unix_ms,
    };
    observe(&event);
    test.start(observe)?;
    let start = test.gate.open();
    observe(&Event::Started);
    let mut intervals = Intervals::new(&test.plan, start, test.streams.len());
    let ended = test.follow(start, stop, &mut intervals, observe);
    observe(&Event::Ending);
    Ok(test.conclude(ended, &mut intervals, observe))
}

/// Refuses what this wire does not carry.
fn check(plan: &Plan, options: &ClientOptions) -> Result<(), EngineError> {
    let too_many = bytes_a_stream(plan).is_some_and(|each| each > MOST_BYTES);
    let refused = [
        (plan.protocol == Protocol::Sctp, "SCTP (--sctp)"),
        (plan.mptcp, "MPTCP (-m)"),
        (plan.omit_ns > Nanos::ZERO, "an omitted part (-O)"),
        (
            matches!(plan.end, End::Blocks(_)),
            "a number of blocks (-k)",
        ),
        (
            too_many && plan.direction != Direction::Send,
            "2 GiB or more of a stream from the server (-n)",
        ),
        (plan.precision.is_some(), "--precision"),
        (options.transfer.is_some(), "a transfer of files (--source)"),
        (options.credentials.is_some(), "credentials (--username)"),
        (options.cookie.is_some(), "a session token"),
    ];
    match refused.into_iter().find(|(is, _)| *is) {
        None => Ok(()),
        Some((_, what)) => Err(EngineError::NotOverIperf2 { what }),
    }
}

/// Why a test ended before its time.
enum Early {
    /// The user stopped it.
    Stopped,
    /// What failed.
    Failed(String),
}

struct Test<'a> {
    plan: Arc<Plan>,
    options: &'a ClientOptions,
    remote: SocketAddr,
    cookie: String,
    control: ControlFacts,
    started_at_unix_ms: u64,
    before: Before,
    gate: Arc<Gate>,
    pool: Arc<SamplePool>,
    /// In the order of their ids, until their threads have them.
    sockets: Vec<(StreamSocket, Flow)>,
    streams: Vec<StreamHandle>,
}

impl<'a> Test<'a> {
    fn open(plan: &Plan, options: &'a ClientOptions) -> Result<Self, EngineError> {
        let host = linerate_kernel::host::facts();
        let mut last = None;
        for remote in sockets::resolve(plan)? {
            let mut plan = super::fit(plan, options.fit_datagrams, remote.ip());
            if plan.protocol == Protocol::Udp && plan.rate_bps.is_none() {
                plan.rate_bps = Some(linerate_model::units::BitRate(DEFAULT_UDP_RATE));
                plan.rate_is_default = true;
            }
            let began = clock::monotonic();
            let opened = match plan.protocol {
                Protocol::Udp => open_udp(&plan, remote),
                Protocol::Tcp | Protocol::Sctp => open_tcp(&plan, remote),
            };
            let sockets = match opened {
                Ok(opened) => opened,
                Err(source) => {
                    last = Some(EngineError::Connect {
                        address: remote,
                        source,
                    });
                    continue;
                }
            };
            let took = clock::monotonic().since(began);
            let pool = SamplePool::new(SAMPLE_BYTES, u64::MAX);
            let first = sockets.first().map(|(socket, _)| socket);
            let local = first.map(|socket| sockets::address(SockRef::from(socket).local_addr()));
            let is_tcp = plan.protocol == Protocol::Tcp;
            return Ok(Self {
                control: ControlFacts {
                    local: local.unwrap_or_default().into(),
                    remote: remote.to_string().into(),
                    mss_bytes: first.and_then(|socket| tcp::mss(socket.as_fd()).ok()),
                    connect_ns: is_tcp.then_some(took),
                    iperf2: Some("iperf 2".into()),
                    ..ControlFacts::default()
                },
                before: Before::read(host, remote.ip(), &pool),
                plan: Arc::new(plan),
                options,
                remote,
                cookie: random_cookie()?.text().into_owned(),
                started_at_unix_ms: clock::wall().0 / 1_000_000,
                gate: Arc::new(Gate::new().map_err(EngineError::host("making event descriptors"))?),
                pool,
                sockets,
                streams: Vec::new(),
            });
        }
        Err(last.unwrap_or(EngineError::Resolve {
            host: plan.host.to_string(),
            reason: "it has no address".to_owned(),
        }))
    }

    /// Gives every stream its thread.
    fn start(&mut self, observe: &mut dyn FnMut(&Event)) -> Result<(), EngineError> {
        let each = bytes_a_stream(&self.plan);
        let streams = Streams {
            role: Role::Client,
            plan: Arc::clone(&self.plan),
            gate: Arc::clone(&self.gate),
            budget: Arc::new(Budget::new(None)),
            pool: Arc::clone(&self.pool),
            peer_extended: false,
            wide_counters: false,
            round_trip: sockets::longest_round_trip(self.sockets.iter().map(|(socket, _)| socket)),
        };
        let sockets = std::mem::take(&mut self.sockets);
        let with: Vec<_> = (0_u16..)
            .zip(sockets)
            .map(|(index, (socket, flow))| {
                let sent = flow.read_before;
                let context = StreamContext {
                    cookie_bytes: 0,
                    budget: Arc::new(Budget::new(each.map(|each| each.saturating_sub(sent)))),
                    iperf2: Some(flow),
                    ..streams.context(index)
                };
                (context, socket)
            })
            .collect();
        observe(&Event::Opened {
            streams: with
                .iter()
                .map(|(context, socket)| stream::describe(context, socket))
                .collect(),
        });
        for (context, socket) in with {
            let id = context.id;
            match StreamHandle::spawn(context, socket, None) {
                Ok(handle) => self.streams.push(handle),
                Err(source) => {
                    self.gate.cut();
                    return Err(EngineError::Stream {
                        id,
                        address: self.remote.to_string(),
                        source,
                    });
                }
            }
        }
        Ok(())
    }

    /// Follows the streams until all have ended.
    fn follow(
        &self,
        start: Nanos,
        stop: BorrowedFd<'_>,
        intervals: &mut Intervals,
        observe: &mut dyn FnMut(&Event),
    ) -> Result<(), Early> {
        let ends_at = self.plan.ends_at(start);
        let mut moved = (start, 0_u64);
        loop {
            let now = clock::monotonic();
            if let Some(interval) = intervals.take(now, &self.streams) {
                observe(&Event::Interval(interval));
            }
            if self.streams.iter().all(StreamHandle::is_finished) {
                return Ok(());
            }
            if ends_at.is_some_and(|end| now >= end) && self.plan.client_sends() {
                self.gate.close();
            }
            if ends_at.is_some_and(|end| now >= end.plus(OVERTIME)) {
                let text = "the server did not end the test in time";
                return Err(Early::Failed(text.to_owned()));
            }
            let bytes = self.streams.iter().map(|it| it.live.latest().bytes).sum();
            if bytes > moved.1 {
                moved = (now, bytes);
            }
            if now.since(moved.0) > self.plan.idle_timeout_ns {
                let idle = self.plan.idle_timeout_ns;
                return Err(Early::Failed(format!("nothing moved for {idle}")));
            }
            let wake = intervals.wake().min(now.plus(LOOK));
            let until = ends_at
                .filter(|end| *end > now)
                .map_or(wake, |end| end.min(wake));
            let mut entries = [
                PollEntry::new(self.gate.news_fd(), Interest::READ),
                PollEntry::new(stop, Interest::READ),
            ];
            drop(poll::wait(&mut entries, Some(until.since(now))));
            if entries[1].readiness().any() {
                return Err(Early::Stopped);
            }
            self.gate.hear();
        }
    }

    /// Ends the streams and writes the record.
    fn conclude(
        mut self,
        ended: Result<(), Early>,
        intervals: &mut Intervals,
        observe: &mut dyn FnMut(&Event),
    ) -> Ended {
        self.gate.close();
        if matches!(ended, Err(Early::Failed(_))) || (ended.is_err() && !self.plan.client_sends()) {
            self.gate.cut();
        }
        let reported: Vec<Arc<OnceLock<Reported>>> = self
            .streams
            .iter()
            .map(|it| Arc::clone(&it.reported))
            .collect();
        let (records, sockets, _) = stream::join_all(&mut self.streams);
        let stopped = self.gate.stopped().unwrap_or_default();
        if let Some(interval) = intervals.last(&records, stopped) {
            observe(&Event::Interval(interval));
        }
        let half = self
            .before
            .finish(Role::Client, &self.options.software, &self.gate, records);
        let mut notes = Vec::new();
        if self.plan.protocol == Protocol::Tcp {
            let said = await_close(&sockets, &half);
            if let Some(version) = said.version {
                self.control.iperf2 = Some(format!("iperf {version}").into());
            }
            notes.push(said.note());
        }
        let block = self.plan.block_bytes.count();
        let peer_results = peer_results(&half, &reported, block, &mut notes);
        if self.plan.protocol == Protocol::Udp
            && self.plan.direction == Direction::Send
            && peer_results.is_none()
        {
            notes.push(note(
                "the server did not report what arrived, so nothing is known of it: is an iperf 2 server for UDP \
                 (iperf -s -u) or linerate serve running there?"
                    .to_owned(),
            ));
        }
        let failed = half.streams.iter().find_map(|stream| stream.error.clone());
        let outcome = match (ended, failed) {
            (Err(Early::Stopped), _) => Outcome::Interrupted,
            (Err(Early::Failed(error)), _) => Outcome::Failed {
                error: error.into(),
            },
            (Ok(()), Some(error)) => Outcome::Failed { error },
            (Ok(()), None) => Outcome::Completed,
        };
        let record = RunRecord {
            schema_version: SCHEMA_VERSION,
            kind: Kind::Test,
            written_by: Role::Client,
            software: self.options.software.clone(),
            started_at_unix_ms: self.started_at_unix_ms,
            plan: Plan::clone(&self.plan),
            outcome,
            cookie: self.cookie.into(),
            control: self.control,
            client: Some(half),
            server: None,
            peer_results,
            clock: None,
            notes,
            latency: None,
            counter_runs: Vec::new(),
            cells: Vec::new(),
            host_names: None,
        };
        Ended {
            record,
            failure: None,
        }
    }
}

fn note(text: String) -> Note {
    Note {
        id: "iperf2-server".into(),
        text: text.into(),
    }
}

/// What each stream moves of a test that ends by bytes: the plan counts all of them.
fn bytes_a_stream(plan: &Plan) -> Option<u64> {
    let all = plan.byte_target()?.count();
    Some(all / u64::from(plan.streams.max(1)))
}

fn first(plan: &Plan) -> First {
    let version2 = match plan.direction {
        Direction::Send => 0,
        Direction::Receive | Direction::Both => flag::VERSION2,
    };
    let amount = match plan.end {
        End::TimeNs(time) => {
            Amount::Time(u32::try_from(time.0.div_ceil(10_000_000)).unwrap_or(u32::MAX))
        }
        End::Bytes(_) | End::Blocks(_) => {
            let each = bytes_a_stream(plan).unwrap_or(0).min(MOST_BYTES);
            Amount::Bytes(u32::try_from(each).unwrap_or(u32::MAX))
        }
    };
    First {
        flags: flag::EXTEND | version2,
        streams: u32::from(plan.streams),
        port: u32::from(plan.port),
        block_bytes: u32::try_from(plan.block_bytes.count()).unwrap_or(u32::MAX),
        window_or_rate: 0,
        amount,
    }
}

fn extension(plan: &Plan) -> Extension {
    Extension {
        kind: 0,
        length: 0,
        upper: match plan.direction {
            Direction::Send => 0,
            Direction::Receive => upper::REVERSE,
            Direction::Both => upper::FULL_DUPLEX,
        },
        lower: 0,
        version: Version::SPOKEN,
        reserved: 0,
        tos: u16::from(plan.tos),
        rate: plan.rate_bps.map_or(0, |rate| rate.0),
        write_prefetch: 0,
        barrier_us: Some(0),
    }
}

/// Opens the TCP streams and sends their headers.
fn open_tcp(plan: &Plan, remote: SocketAddr) -> std::io::Result<Vec<(StreamSocket, Flow)>> {
    let header = TcpHeader {
        first: first(plan),
        extension: Some(extension(plan)),
        start: None,
        isochronous: None,
        congestion: None,
        key: None,
    };
    let header = header.encode();
    // What is sent is payload as well; who only receives sends nothing.
    let sent = match plan.direction {
        Direction::Receive => 0,
        Direction::Send | Direction::Both => header.len() as u64,
    };
    let mut streams: Vec<TcpStream> = Vec::new();
    // All stand before the first of them sends.
    for _ in 0..plan.streams {
        streams.push(sockets::connect_stream(
            plan,
            remote,
            plan.connect_timeout_ns,
        )?);
    }
    let mut standing = Vec::new();
    let mut back = Vec::new();
    for stream in streams {
        if socket::send(stream.as_fd(), &header)? != header.len() {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        if plan.direction == Direction::Both {
            back.push((StreamSocket::Stream(stream.try_clone()?), Flow::tcp(0)));
        }
        standing.push((StreamSocket::Stream(stream), Flow::tcp(sent)));
    }
    standing.append(&mut back);
    Ok(standing)
}

/// Opens the UDP flows; those that the server sends begin by a datagram that asks for it.
fn open_udp(plan: &Plan, remote: SocketAddr) -> std::io::Result<Vec<(StreamSocket, Flow)>> {
    let block = plan.block_bytes.count();
    let mut header = Vec::new();
    if block >= LEAST_WITH_HEADER {
        // 16 of the datagram, 24 and 40.
        let told = 80 << 1 | flag::HAS_LENGTH;
        let mut first = first(plan);
        first.flags |= flag::WIDE_NUMBERS | told;
        if plan.direction != Direction::Send {
            first.flags |= flag::UDP_TESTS;
        }
        let mut extension = extension(plan);
        if plan.direction == Direction::Both {
            extension.upper |= upper::NO_REPORT;
        }
        header = UdpHeader {
            first,
            extension,
            frame: Frame::default(),
            start: Start::default(),
            isochronous: IsochronousSettings::default(),
        }
        .encode();
    }
    let length = usize::try_from(block).unwrap_or(0).max(16);
    header.truncate(length - 16);
    let reports = plan.direction == Direction::Send;
    let flow = || Flow {
        header: header.clone(),
        ..Flow::udp(Layout::Bytes16, Form::Wide, reports)
    };
    let mut standing = Vec::new();
    let mut back = Vec::new();
    for index in 0..plan.streams {
        let socket = sockets::open_udp(plan, remote, index)?;
        match plan.direction {
            Direction::Both => back.push((StreamSocket::Udp(socket.try_clone()?), flow())),
            Direction::Send | Direction::Receive => {}
        }
        standing.push((StreamSocket::Udp(socket), flow()));
    }
    if plan.direction == Direction::Receive {
        let sockets = standing.iter().filter_map(|(socket, _)| match socket {
            StreamSocket::Udp(socket) => Some(socket),
            StreamSocket::Stream(_) => None,
        });
        ask(&sockets.collect::<Vec<_>>(), &header, length)?;
    }
    standing.append(&mut back);
    Ok(standing)
}

/// Asks a server to send on each of these sockets, until something comes on all of them: it may begin when it knows of every flow.
fn ask(sockets: &[&UdpSocket], header: &[u8], length: usize) -> std::io::Result<()> {
    let mut datagram = vec![0; length];
    datagram[16..16 + header.len()].copy_from_slice(header);
    let mut silent: Vec<&UdpSocket> = sockets.to_vec();
    for _ in 0..ASKED {
        for socket in &silent {
            // Always the first of the flow.
            let _ = Head::at(1, clock::wall()).encode(Layout::Bytes16, &mut datagram);
            socket::send(socket.as_fd(), &datagram)?;
        }
        let until = clock::monotonic().plus(ASK_AGAIN);
        while !silent.is_empty() && clock::monotonic() < until {
            let mut entries: Vec<PollEntry<'_>> = silent
                .iter()
                .map(|socket| PollEntry::new(socket.as_fd(), Interest::READ))
                .collect();
            let left = until.since(clock::monotonic());
            poll::wait(&mut entries, Some(left))?;
            let ready: Vec<bool> = entries.iter().map(|it| it.readiness().any()).collect();
            drop(entries);
            for (socket, _) in silent.iter().zip(&ready).filter(|(_, ready)| **ready) {
                if let Some(error) = socket.take_error()? {
                    return Err(error);
                }
            }
            let mut ready = ready.into_iter();
            silent.retain(|_| ready.next() != Some(true));
        }
        if silent.is_empty() {
            return Ok(());
        }
    }
    Err(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        "the server sends nothing; one before iperf 2.0.14 does not know --reverse, and linerate wants a TCP test from \
         here first",
    ))
}

/// What a TCP server said in the end.
struct Said {
    version: Option<Version>,
    /// Streams that it was sent, and those of them whose end it has read.
    sent: usize,
    closed: usize,
}

impl Said {
    fn note(&self) -> Note {
        note(match (self.sent, self.closed) {
            (0, _) => "iperf 2 reports nothing to its client over TCP: of the sender's end nothing is known".to_owned(),
            (sent, closed) if sent == closed => "iperf 2 reports nothing to its client over TCP: what the server's kernel \
                 acknowledged is the goodput, and the server closed its connections when it had read all of it"
                .to_owned(),
            (sent, closed) => format!(
                "iperf 2 reports nothing to its client over TCP: what the server's kernel acknowledged is the goodput; of \
                 {sent} connections the server closed {closed} after reading all of it"
            ),
        })
    }
}

/// Waits until the server has read all that it was sent, and reads what it answered to the header.
fn await_close(sockets: &[DataSocket], half: &EndRecord) -> Said {
    let until = clock::monotonic().plus(CLOSE_PATIENCE);
    let mut said = Said {
        version: None,
        sent: 0,
        closed: 0,
    };
    let both = half.streams.iter().any(|stream| !stream.sends);
    for (socket, _) in sockets.iter().zip(&half.streams).filter(|(_, it)| it.sends) {
        let Some(StreamSocket::Stream(stream)) = &socket.socket else {
            continue;
        };
        said.sent += 1;
        if both {
            // The end was read by the stream the other way.
            said.closed += 1;
            continue;
        }
        let mut answer = Vec::new();
        // A peer that goes on sending has answered enough.
        while clock::monotonic() < until {
            let mut bytes = [0; 256];
            match socket::receive(stream.as_fd(), &mut bytes) {
                Ok(0) => {
                    said.closed += 1;
                    break;
                }
                Ok(length) => {
                    let room = ACK_BYTES.saturating_sub(answer.len());
                    answer.extend(&bytes[..length.min(room)]);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let left = until.since(clock::monotonic());
                    let mut entries = [PollEntry::new(stream.as_fd(), Interest::READ)];
                    if left == Nanos::ZERO || poll::wait(&mut entries, Some(left)).is_err() {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        said.version = said.version.or(Ack::decode(&answer).map(|ack| ack.version));
    }
    said
}

/// The reports of the flows that were sent; absent where none came.
fn peer_results(
    half: &EndRecord,
    reported: &[Arc<OnceLock<Reported>>],
    block: u64,
    notes: &mut Vec<Note>,
) -> Option<PeerResults> {
    let mut streams = Vec::new();
    let mut old = false;
    for (stream, reported) in half.streams.iter().zip(reported) {
        let Some(Reported { report, datagram }) = reported.get().filter(|_| stream.sends) else {
            continue;
        };
        // 2.0.x numbers datagrams from 0 on: it takes our first, which has the 1, for one after a lost one. And it counts the
        // bytes of the last datagram in the place of those of the first.
        let is_old = datagram.get(12).is_some_and(|byte| byte & 0x80 != 0);
        old |= is_old;
        let lost = report.lost.saturating_sub(u64::from(is_old));
        streams.push(PeerStream {
            id: stream.id,
            bytes: report.bytes + if is_old { block } else { 0 },
            retransmits: -1,
            jitter_s: report.jitter.as_secs_f64(),
            errors: i64::try_from(lost).unwrap_or(i64::MAX),
            packets: report.datagrams,
            end_time_s: report.lasted.as_secs_f64(),
            omitted_errors: None,
            omitted_packets: None,
        });
    }
    if old {
        notes.push(note(
            "iperf 2.0 counts a datagram that comes late as lost and as out of order".to_owned(),
        ));
    }
    (!streams.is_empty()).then(|| PeerResults {
        sender_has_retransmits: -1,
        streams,
        ..PeerResults::default()
    })
}
