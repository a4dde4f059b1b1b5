//! One thread a stream: it owns the socket, moves the bytes and takes the samples.
//!
//! A socket is never touched by another thread while its stream runs: a question from outside would
//! wait for the socket lock (2 ms at speed). Sockets are non-blocking, and no wait goes past the next
//! sample, so the cadence holds on a slow path and on a stalled one.

#[cfg(test)]
mod delay_tests;
pub(crate) mod iperf2;
mod recorder;
mod tcp_receive;
mod tcp_send;
mod udp_receive;
mod udp_send;

use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use linerate_kernel::{socket, tcp, thread};
use linerate_model::plan::{End, Plan, Protocol};
use linerate_model::progress::StreamOpened;
use linerate_model::record::{Flow, Role, StreamRecord};
use linerate_model::units::{BitRate, Nanos};
use linerate_wire::cookie::COOKIE_BYTES;
use linerate_wire::extension::{Finishing, FinishingStream};
use linerate_wire::pacing::Pacer;
use socket2::SockRef;

pub(crate) use udp_receive::buffer_bytes as udp_receive_bytes;

use crate::budget::Budget;
use crate::gate::Gate;
use crate::live::LiveCell;
use crate::negotiation::stream_id;
use crate::sample_pool::{SamplePool, Share};
use crate::sockets::address;
use crate::stream_file::StreamFile;
use crate::transfer::{Inlet, Outlet, STORE_STALL};

/// How long a `-t` test's senders wait for the last acknowledgement after the end.
pub(crate) const DRAIN_BOUND: Nanos = Nanos::from_millis(2000);
/// How long a server's sender waits for a stock client, which need not read on after the end.
pub(crate) const STOCK_DRAIN_BOUND: Nanos = Nanos::from_millis(250);
/// How long a receiver waits for the peer's end of data, which the sender bounds by itself.
pub(crate) const RECEIVER_DRAIN_BOUND: Nanos = Nanos::from_millis(5000);
/// How long `-n` and `-k` tests may make no progress while draining.
pub(crate) const STALL_BOUND: Nanos = Nanos::from_millis(10_000);

/// How soon after the end of a test a stock server hears of it: it divides by the time until then, so that its figure is too
/// low by as much. A five-hundredth of the test, from 2 to 20 ms.
pub(crate) fn prompt(end: End) -> Nanos {
    let span = match end {
        End::TimeNs(span) => span.0,
        End::Bytes(_) | End::Blocks(_) => u64::MAX,
    };
    Nanos((span / 500).clamp(2_000_000, 20_000_000))
}

/// So much lateness of a thread is made good; what is older, after a stall, is given up.
const PACER_DEBT: Nanos = Nanos::from_millis(20);
/// Over TCP and SCTP a sender also waits for windows, and the average is what was asked for; a stock peer expects it of UDP, too.
const PACER_DEBT_FOR_AVERAGE: Nanos = Nanos::from_millis(1000);

/// The pacer of a sender, where a rate was asked for.
fn pacer(context: &StreamContext) -> Option<Pacer> {
    context
        .plan
        .rate_bps
        .map(|rate| match context.plan.protocol {
            _ if !context.peer_extended => Pacer::new(rate, PACER_DEBT_FOR_AVERAGE),
            Protocol::Tcp | Protocol::Sctp => Pacer::gentle(rate, PACER_DEBT_FOR_AVERAGE),
            Protocol::Udp => Pacer::gentle(rate, PACER_DEBT),
        })
}

/// What a stream's thread is given.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of a stream"
)]
pub(crate) struct StreamContext {
    pub(crate) id: u32,
    pub(crate) flow: Flow,
    pub(crate) sends: bool,
    pub(crate) plan: Arc<Plan>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) budget: Arc<Budget>,
    /// What its samples may take, with those of other streams.
    pub(crate) pool: Arc<SamplePool>,
    pub(crate) live: Arc<LiveCell>,
    /// The peer is a linerate: ends of data are told in band, counts are told after the test.
    pub(crate) peer_extended: bool,
    /// Streams of this test at this end, which share memory.
    pub(crate) streams: usize,
    /// CPU to run on.
    pub(crate) cpu: Option<usize>,
    /// TCP: this end reads no faster, for a test with a slow application.
    pub(crate) read_rate: Option<BitRate>,
    /// Cookie bytes written or read on this connection.
    pub(crate) cookie_bytes: u64,
    /// This end connected.
    pub(crate) active_opener: bool,
    /// 64-bit counters in datagrams.
    pub(crate) wide_counters: bool,
    /// Round-trip time of the control connection, for the quiet time of a drain.
    pub(crate) round_trip: Nanos,
    /// UDP: repeats of the opening datagram.
    pub(crate) handshake_repeats: u32,
    /// UDP, server: the opening datagram that is answered again when it comes again.
    pub(crate) handshake: Option<Vec<u8>>,
    /// UDP: what the peer says it sent.
    pub(crate) peer_sent: Arc<PeerSent>,
    /// TCP: a file in the place of generated payload.
    pub(crate) file: Option<StreamFile>,
    /// The test is a transfer of files.
    pub(crate) transfer: bool,
    /// The peer is an iperf2.
    pub(crate) iperf2: Option<iperf2::Flow>,
}

impl StreamContext {
    /// How long a test that ends by bytes may make no progress while it drains.
    fn stall_bound(&self) -> Nanos {
        if self.transfer {
            STORE_STALL
        } else {
            STALL_BOUND
        }
    }
}

/// A stream's end of a transfer.
pub(crate) enum StreamStage {
    /// What it sends.
    Outlet(Box<dyn Outlet>),
    /// What it receives into.
    Inlet(Box<dyn Inlet>),
}

/// What the streams of a test have in common at one end.
pub(crate) struct Streams {
    pub(crate) role: Role,
    pub(crate) plan: Arc<Plan>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) pool: Arc<SamplePool>,
    pub(crate) peer_extended: bool,
    /// Datagrams have 64-bit counters, whoever the peer is.
    pub(crate) wide_counters: bool,
    pub(crate) round_trip: Nanos,
}

impl Streams {
    /// What the thread of the stream opened as number `index` is given.
    pub(crate) fn context(&self, index: u16) -> StreamContext {
        let plan = &self.plan;
        let flow = plan.flow_of(index);
        let is_client = self.role == Role::Client;
        let cpu = if is_client {
            plan.client_cpu
        } else {
            plan.server_cpu
        };
        StreamContext {
            id: stream_id(index),
            flow,
            sends: flow == Flow::sent_by(self.role),
            plan: Arc::clone(plan),
            gate: Arc::clone(&self.gate),
            budget: Arc::clone(&self.budget),
            pool: Arc::clone(&self.pool),
            live: Arc::default(),
            peer_extended: self.peer_extended,
            streams: usize::from(plan.total_streams()),
            cpu: cpu.map(usize::from),
            read_rate: None,
            cookie_bytes: if plan.protocol == Protocol::Udp {
                0
            } else {
                COOKIE_BYTES as u64
            },
            active_opener: is_client,
            wide_counters: self.peer_extended || self.wide_counters,
            round_trip: self.round_trip,
            handshake_repeats: 0,
            handshake: None,
            peer_sent: Arc::default(),
            file: None,
            transfer: false,
            iperf2: None,
        }
    }
}

/// The number of datagrams that the peer says it sent; unknown at first.
#[derive(Debug, Default)]
pub(crate) struct PeerSent(AtomicU64);

impl PeerSent {
    pub(crate) fn tell(&self, datagrams: u64) {
        self.0.store(datagrams.saturating_add(1), Ordering::Release);
    }

    pub(crate) fn told(&self) -> Option<u64> {
        self.0.load(Ordering::Acquire).checked_sub(1)
    }
}

/// A stream's socket.
#[derive(Debug)]
pub(crate) enum StreamSocket {
    /// TCP's, or SCTP's in the one-to-one style, which the same calls serve.
    Stream(TcpStream),
    Udp(UdpSocket),
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stream(socket) => socket.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }
}

/// What a stream's thread gives back.
#[derive(Debug)]
pub(crate) struct StreamResult {
    pub(crate) record: StreamRecord,
    pub(crate) socket: DataSocket,
    /// What the record's samples take, until the record is dropped.
    pub(crate) share: Share,
}

/// A stream's socket, which stays open until the whole test is over.
#[derive(Debug)]
pub(crate) struct DataSocket {
    pub(crate) socket: Option<StreamSocket>,
    /// A stock server lacks the end of its last block.
    pub(crate) unfinished: bool,
}

impl DataSocket {
    /// Tells the peer that nothing more comes.
    pub(crate) fn end(&self) {
        if let Some(StreamSocket::Stream(stream)) = &self.socket {
            drop(stream.shutdown(Shutdown::Write));
        }
    }
}

/// A stream that runs.
#[derive(Debug)]
pub(crate) struct StreamHandle {
    pub(crate) id: u32,
    pub(crate) flow: Flow,
    pub(crate) sends: bool,
    pub(crate) live: Arc<LiveCell>,
    pub(crate) peer_sent: Arc<PeerSent>,
    /// Over iperf2's wire: the report of a flow.
    pub(crate) reported: Arc<OnceLock<iperf2::Reported>>,
    finished: Arc<AtomicBool>,
    thread: JoinHandle<StreamResult>,
}

impl StreamHandle {
    /// Starts the thread; it waits at the gate.
    pub(crate) fn spawn(
        context: StreamContext,
        socket: StreamSocket,
        stage: Option<StreamStage>,
    ) -> std::io::Result<Self> {
        let (id, flow, sends) = (context.id, context.flow, context.sends);
        let (live, peer_sent) = (Arc::clone(&context.live), Arc::clone(&context.peer_sent));
        let iperf2 = context.iperf2.as_ref();
        let reported = iperf2
            .map(|iperf2| Arc::clone(&iperf2.reported))
            .unwrap_or_default();
        let finished = Arc::new(AtomicBool::new(false));
        let finish = Arc::clone(&finished);
        let thread = std::thread::Builder::new()
            .name(format!("stream {id}"))
            .stack_size(256 << 10)
            .spawn(move || {
                let result = run(&context, socket, stage);
                finish.store(true, Ordering::Release);
                context.gate.report_finished();
                result
            })?;
        Ok(Self {
            id,
            flow,
            sends,
            live,
            peer_sent,
            reported,
            finished,
            thread,
        })
    }

    /// Whether the stream has nothing more to do; its thread then ends at once.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire) || self.thread.is_finished()
    }

    /// Waits for the thread, which the gate bounds. `None` if it panicked.
    pub(crate) fn join(self) -> Option<StreamResult> {
        self.thread.join().ok()
    }
}

/// Waits for all of them. What a thread that panicked had is lost with it.
pub(crate) fn join_all(
    streams: &mut Vec<StreamHandle>,
) -> (Vec<StreamRecord>, Vec<DataSocket>, Vec<Share>) {
    let (mut records, mut sockets, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for result in streams.drain(..).filter_map(StreamHandle::join) {
        records.push(result.record);
        sockets.push(result.socket);
        shares.push(result.share);
    }
    (records, sockets, shares)
}

fn run(context: &StreamContext, socket: StreamSocket, stage: Option<StreamStage>) -> StreamResult {
    if let Some(cpu) = context.cpu {
        // A CPU that is not there is reported by the plan's check on the client; here it is no reason to fail.
        drop(thread::set_affinity(&[cpu]));
    }
    drop(thread::set_timer_slack(Nanos(1)));
    match (socket, context.sends) {
        (StreamSocket::Stream(socket), true) => {
            let outlet = match stage {
                Some(StreamStage::Outlet(outlet)) => Some(outlet),
                Some(StreamStage::Inlet(_)) | None => None,
            };
            tcp_send::run(context, socket, outlet)
        }
        (StreamSocket::Stream(socket), false) => {
            let inlet = match stage {
                Some(StreamStage::Inlet(inlet)) => Some(inlet),
                Some(StreamStage::Outlet(_)) | None => None,
            };
            tcp_receive::run(context, socket, inlet)
        }
        (StreamSocket::Udp(socket), true) => udp_send::run(context, socket),
        (StreamSocket::Udp(socket), false) => udp_receive::run(context, socket),
    }
}

/// What can be said of a stream's socket once it stands.
pub(crate) fn describe(context: &StreamContext, stream: &StreamSocket) -> StreamOpened {
    let (fd, socket) = (stream.as_fd(), SockRef::from(stream));
    StreamOpened {
        id: context.id,
        flow: context.flow,
        sends: context.sends,
        socket: shown_number(context.id),
        local: address(socket.local_addr()).into(),
        remote: address(socket.peer_addr()).into(),
        // Nothing but TCP's sockets answer.
        mss_bytes: tcp::mss(fd).ok(),
        send_buffer_bytes: socket::send_buffer(fd).ok().map(|bytes| bytes as u64),
        receive_buffer_bytes: socket::receive_buffer(fd).ok().map(|bytes| bytes as u64),
    }
}

/// The number that iperf3 would show: its first data socket is descriptor 5, and its scripts look for that.
fn shown_number(id: u32) -> i32 {
    let index = i32::try_from(id.saturating_sub(2)).unwrap_or(0);
    index.saturating_mul(2).saturating_add(5)
}

/// What the senders among `streams` have sent, from the last figures that they showed.
pub(crate) fn finishing(streams: &[StreamHandle]) -> Finishing {
    let senders = streams.iter().filter(|stream| stream.sends).map(|stream| {
        let figures = stream.live.latest();
        FinishingStream {
            id: stream.id,
            bytes: figures.bytes,
            packets: figures.udp.map_or(0, |udp| udp.packets),
        }
    });
    Finishing {
        streams: senders.collect(),
    }
}

/// Tells the receivers among `streams` what the peer says it sent.
pub(crate) fn tell_receivers(streams: &[StreamHandle], told: &Finishing) {
    for told in &told.streams {
        if let Some(stream) = streams
            .iter()
            .find(|stream| stream.id == told.id && !stream.sends)
        {
            stream.peer_sent.tell(told.packets);
        }
    }
}
