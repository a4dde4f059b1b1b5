//! The bookkeeping that all kinds of stream share: bytes, instants, samples, the omitted part.

use std::fs::File;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use linerate_kernel::poll::{self, Interest, PollEntry, Readiness};
use linerate_kernel::{clock, socket, tcp};
use linerate_model::column::Column;
use linerate_model::plan::Protocol;
use linerate_model::progress::UdpInterval;
use linerate_model::record::{StreamRecord, UdpCounts};
use linerate_model::series::Series;
use linerate_model::tcp_info::{FIELDS, Field, TcpFacts, TcpInfo};
use linerate_model::units::Nanos;
use socket2::SockRef;

use crate::gate::FileEnd;
use crate::half::thread_cpu;
use crate::live::{LiveFigures, LiveTcp};
use crate::samples::SampleStore;
use crate::sockets::address;
use crate::stream_file::StreamFile;

use super::{DataSocket, StreamContext, StreamResult, StreamSocket};

/// Reading the run delay costs a file read: ten times a second is enough.
const WAIT_EVERY: Nanos = Nanos::from_millis(100);
/// The controller looks at intervals of 10 ms and more.
const SHOW_EVERY: Nanos = Nanos::from_millis(9);
/// A datagram longer than the path MTU that the kernel knows.
const EMSGSIZE: i32 = 90;
/// Columns of every stream, beside the kernel's. SCTP's have no `unread_bytes`: the kernel tells the length of the next message
/// alone.
const COMMON: [Column; 4] = [
    Column::app_bytes,
    Column::unread_bytes,
    Column::thread_cpu_ns,
    Column::thread_wait_ns,
];
/// What an MPTCP socket's own report is believed for: it answers for one of its subflows, which may carry a part of the bytes and
/// end before the connection does. iperf3 prints the same.
const OF_A_SUBFLOW: [Column; 8] = [
    Column::snd_mss_bytes,
    Column::pmtu_bytes,
    Column::rtt_us,
    Column::rttvar_us,
    Column::snd_cwnd_packets,
    Column::total_retrans_packets,
    Column::reord_seen,
    Column::snd_wnd_bytes,
];
/// Columns of a UDP stream.
pub(super) const UDP_COLUMNS: [Column; 7] = [
    Column::datagrams,
    Column::unique,
    Column::duplicates,
    Column::reordered,
    Column::highest,
    Column::socket_drops,
    Column::transit_over_least_ns,
];

/// What a UDP stream tells at a sample, in the order of [`UDP_COLUMNS`], and for the live line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UdpSample {
    pub(super) values: [u64; UDP_COLUMNS.len()],
    pub(super) live: UdpInterval,
}

/// A stream's bookkeeping.
pub(super) struct Recorder<'a> {
    context: &'a StreamContext,
    /// The socket's addresses: a connection that has ended does not know them any more.
    local: String,
    remote: String,
    pub(super) bytes: u64,
    first: Option<Nanos>,
    last: Option<Nanos>,
    omit_ends: Option<Nanos>,
    omitted_until: Option<Nanos>,
    omitted_bytes: u64,
    store: SampleStore,
    fields: Vec<&'static Field>,
    /// Columns of a sample.
    width: usize,
    /// MPTCP: what the first subflow reported last before it was closed.
    subflow: Option<TcpInfo>,
    /// The sample that is being taken, kept for its memory.
    values: Vec<u64>,
    shown: Nanos,
    finishing: bool,
    schedstat: Option<File>,
    wait_read: Nanos,
    wait_ns: u64,
    sampling_ns: u64,
    pub(super) error: Option<String>,
    too_long: bool,
    pub(super) drained: bool,
    pub(super) unread: Option<u64>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(context: &'a StreamContext, fd: BorrowedFd<'_>) -> Self {
        let mut names = COMMON.to_vec();
        let mut fields = Vec::new();
        if context.plan.protocol == Protocol::Udp {
            names.extend(UDP_COLUMNS);
        } else if context.plan.protocol == Protocol::Sctp {
            names.retain(|column| *column != Column::unread_bytes);
        } else if let Ok(info) = tcp::info(fd) {
            let believed =
                |field: &Field| !context.plan.mptcp || OF_A_SUBFLOW.contains(&field.column());
            fields = FIELDS
                .iter()
                .filter(|field| info.value(field).is_some() && believed(field))
                .collect();
            names.extend(fields.iter().map(|field| field.column()));
        }
        let socket = SockRef::from(&fd);
        Self {
            context,
            local: address(socket.local_addr()),
            remote: address(socket.peer_addr()),
            bytes: context.iperf2.as_ref().map_or(0, |flow| flow.read_before),
            first: None,
            last: None,
            omit_ends: None,
            omitted_until: None,
            omitted_bytes: 0,
            width: names.len(),
            store: SampleStore::new(names, context.plan.sample_ns, &context.pool),
            values: Vec::with_capacity(fields.len().max(UDP_COLUMNS.len())),
            fields,
            subflow: None,
            shown: Nanos::ZERO,
            finishing: false,
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            wait_read: Nanos::ZERO,
            wait_ns: 0,
            sampling_ns: 0,
            error: None,
            too_long: false,
            drained: false,
            unread: None,
        }
    }

    /// Waits at the gate. False = the test was called off before it began.
    ///
    /// A receiver may give its socket as `first`: a byte that arrives there says that the peer has begun, and
    /// opens the gate for all. The word on the control connection may come later, and a window that fills
    /// until then spoils the ramp.
    pub(super) fn wait_for_start(&mut self, mut first: Option<BorrowedFd<'_>>) -> bool {
        let gate = &self.context.gate;
        loop {
            if gate.is_cut() {
                return false;
            }
            if let Some(start) = gate.started() {
                self.store.begin(start);
                let omit = self.context.plan.omit_ns;
                self.omit_ends = (omit.0 > 0).then(|| start.plus(omit));
                return true;
            }
            let word = PollEntry::new(gate.start_fd(), Interest::READ);
            let mut entries = [
                word.clone(),
                first.map_or(word, |fd| PollEntry::new(fd, Interest::READ)),
            ];
            let waited = poll::wait(&mut entries, None);
            if let Some(fd) = first.filter(|_| waited.is_ok() && entries[1].readiness().any()) {
                if has_a_byte(fd) {
                    gate.open();
                }
                // An end of data or an error is no beginning; the control connection tells what it means.
                first = None;
            }
        }
    }

    /// Whether the test is in the part that summaries leave out.
    pub(super) const fn omitting(&self) -> bool {
        self.omit_ends.is_some()
    }

    /// Payload moved.
    pub(super) fn moved(&mut self, now: Nanos, bytes: u64) {
        self.bytes += bytes;
        if self.first.is_none() {
            self.first = Some(now);
        }
        self.last = Some(now);
    }

    /// The latest instant that a wait may last to.
    pub(super) fn deadline(&self) -> Nanos {
        self.omit_ends
            .map_or(self.store.next(), |ends| ends.min(self.store.next()))
    }

    /// Whether [`Recorder::tick_stream`] or [`Recorder::tick_udp`] is due.
    pub(super) fn due(&self, now: Nanos) -> bool {
        now >= self.deadline()
    }

    /// What the kernel knows of the connection. A closed subflow of MPTCP has forgotten its counters: its last report stays.
    fn info(&mut self, fd: BorrowedFd<'_>) -> Option<TcpInfo> {
        let info = tcp::info(fd).ok();
        if !self.context.plan.mptcp {
            return info;
        }
        let open = |info: &TcpInfo| TcpFacts::from(info).state != Some(CLOSE);
        if let Some(info) = info.filter(open) {
            self.subflow = Some(info);
        }
        self.subflow.clone()
    }

    /// The kernel's count of bytes that this end has not read; absent where it keeps none.
    pub(super) fn unread(&self, fd: BorrowedFd<'_>) -> Option<u64> {
        let counted = self.context.plan.protocol == Protocol::Tcp;
        counted.then(|| tcp::unread(fd).ok()).flatten()
    }

    /// Takes a sample of TCP or SCTP and marks the end of the omitted part.
    pub(super) fn tick_stream(&mut self, now: Nanos, fd: BorrowedFd<'_>) {
        let began = clock::thread_cpu();
        let unread = match self.context.plan.protocol {
            Protocol::Sctp => None,
            _ if self.context.sends => Some(0),
            _ => Some(self.unread(fd).unwrap_or(0)),
        };
        let info = self.info(fd);
        self.values.clear();
        if let Some(info) = &info {
            let values = self
                .fields
                .iter()
                .map(|field| info.value(field).unwrap_or(0));
            self.values.extend(values);
        }
        self.keep((now, began), unread);
        if self.is_worth_showing(now) {
            let tcp = info
                .as_ref()
                .map(|info| LiveTcp::from(&TcpFacts::from(info)));
            self.show(LiveFigures {
                at: now,
                bytes: self.bytes,
                tcp,
                udp: None,
            });
        }
        self.book_sampling(began);
    }

    /// Takes a UDP sample and marks the end of the omitted part.
    pub(super) fn tick_udp(&mut self, now: Nanos, sample: &UdpSample) {
        let began = clock::thread_cpu();
        self.values.clear();
        self.values.extend(sample.values);
        self.keep((now, began), Some(0));
        if self.is_worth_showing(now) {
            self.show(LiveFigures {
                at: now,
                bytes: self.bytes,
                tcp: None,
                udp: Some(sample.live),
            });
        }
        self.book_sampling(began);
    }

    /// Keeps a sample that was begun at an instant and at a point of this thread's CPU time.
    fn keep(&mut self, (now, began): (Nanos, Nanos), unread: Option<u64>) {
        if now.since(self.wait_read) >= WAIT_EVERY {
            self.wait_read = now;
            self.wait_ns = self.read_wait().unwrap_or(self.wait_ns);
        }
        let common = [Some(self.bytes), unread, Some(began.0), Some(self.wait_ns)];
        let common = common.into_iter().flatten();
        if self.values.len() + common.clone().count() == self.width {
            self.store
                .push(now, common.chain(self.values.iter().copied()));
        }
        if now >= self.store.next() {
            self.store.advance(now);
        }
    }

    /// Nobody looks more often than this, but the end of the omitted part and of the stream count exactly.
    fn is_worth_showing(&self, now: Nanos) -> bool {
        let omit_is_over = self.omit_ends.is_some_and(|ends| now >= ends);
        now.since(self.shown) >= SHOW_EVERY || omit_is_over || self.finishing
    }

    fn show(&mut self, figures: LiveFigures) {
        self.shown = figures.at;
        if self.omit_ends.is_some_and(|ends| figures.at >= ends) {
            self.omit_ends = None;
            self.omitted_until = Some(figures.at);
            self.omitted_bytes = self.bytes;
            self.context.live.show_omitted(figures);
        } else {
            self.context.live.show(figures);
        }
    }

    /// CPU time: an interrupt's or another thread's time in between is no cost of sampling.
    fn book_sampling(&mut self, began: Nanos) {
        self.sampling_ns += clock::thread_cpu().since(began).0;
    }

    /// Time that this thread has computed, or waited for a CPU.
    pub(super) fn busy(&self) -> Nanos {
        clock::thread_cpu().plus(Nanos(self.read_wait().unwrap_or(0)))
    }

    /// Time that this thread was runnable and did not run: the second figure of schedstat, ns.
    fn read_wait(&self) -> Option<u64> {
        let mut text = [0_u8; 64];
        let length = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..length])
            .ok()?
            .split_ascii_whitespace()
            .nth(1)?
            .parse()
            .ok()
    }

    /// Waits for `interest` on the socket, for the test's end (or, when it has ended, for the cut),
    /// or for `until`, and never past the next sample; says what the socket is ready for.
    pub(super) fn wait(
        &self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        until: Option<Nanos>,
    ) -> Readiness {
        let gate = &self.context.gate;
        let until = until.map_or(self.deadline(), |until| until.min(self.deadline()));
        let timeout = until.since(clock::monotonic());
        let signal = if gate.stopped().is_some() {
            gate.cut_fd()
        } else {
            gate.stop_fd()
        };
        let mut entries = [
            PollEntry::new(signal, Interest::READ),
            PollEntry::new(fd, interest),
        ];
        let count = if interest.read || interest.write {
            2
        } else {
            1
        };
        // A failure to wait is no failure of the stream: the loop's bounds hold all the same.
        drop(poll::wait(&mut entries[..count], Some(timeout)));
        entries[1].readiness()
    }

    /// Waits for `interest` on the socket until an instant, or until the test is cut, whatever samples are due.
    pub(super) fn pause(&self, fd: BorrowedFd<'_>, interest: Interest, until: Nanos) {
        let count = if interest.read || interest.write {
            2
        } else {
            1
        };
        let mut entries = [
            PollEntry::new(self.context.gate.cut_fd(), Interest::READ),
            PollEntry::new(fd, interest),
        ];
        let timeout = until.since(clock::monotonic());
        drop(poll::wait(&mut entries[..count], Some(timeout)));
    }

    /// From the first payload to the last.
    pub(super) fn lasted(&self) -> Nanos {
        let last = self.last.unwrap_or_default();
        last.since(self.first.unwrap_or(last))
    }

    /// Notes why the stream ended before its time.
    pub(super) fn fail(&mut self, doing: &str, error: &io::Error) {
        if self.error.is_none() {
            self.error = Some(format!("{doing} on stream {}: {error}", self.context.id));
            self.too_long = error.raw_os_error() == Some(EMSGSIZE);
        }
    }

    /// The stream's file cannot be used, which ends the whole test.
    pub(super) fn fail_by_file(&mut self, doing: &str, error: &io::Error) {
        self.fail(doing, error);
        self.context.gate.end_by_file(FileEnd::Failed {
            error: self.error.clone().unwrap_or_default(),
            errno: error.raw_os_error().unwrap_or(0),
        });
    }

    /// What a TCP or SCTP stream gives back, with the kernel's last word where it has one.
    pub(super) fn finish_stream(mut self, stream: TcpStream) -> StreamResult {
        let fd = stream.as_fd();
        self.finishing = true;
        self.tick_stream(clock::monotonic(), fd);
        let mut facts = self.info(fd).as_ref().map(TcpFacts::from);
        if self.context.plan.mptcp {
            facts = facts.as_ref().map(of_a_subflow);
        }
        let congestion = tcp::congestion(fd).ok().map(Into::into);
        let mut result = self.finish(StreamSocket::Stream(stream));
        let word = |value: Option<u64>| u32::try_from(value?).ok();
        result.record.congestion = congestion;
        result.record.mss_bytes = facts.as_ref().and_then(|facts| word(facts.snd_mss_bytes));
        result.record.path_mtu_bytes = facts.as_ref().and_then(|facts| word(facts.pmtu_bytes));
        result.record.tcp = facts;
        result
    }

    /// What a UDP stream gives back.
    pub(super) fn finish_udp(
        mut self,
        stream: UdpSocket,
        sample: &UdpSample,
        counts: UdpCounts,
    ) -> StreamResult {
        self.finishing = true;
        self.tick_udp(clock::monotonic(), sample);
        let mut result = self.finish(StreamSocket::Udp(stream));
        result.record.udp = Some(counts);
        result
    }

    fn finish(self, socket: StreamSocket) -> StreamResult {
        let fd = socket.as_fd();
        let thinned = self.store.thinned();
        let empty = self.store_is_empty();
        let (samples, share) = self.store.into_series();
        let record = StreamRecord {
            id: self.context.id,
            flow: self.context.flow,
            sends: self.context.sends,
            local: self.local.into(),
            remote: self.remote.into(),
            congestion: None,
            mss_bytes: None,
            path_mtu_bytes: None,
            window_asked_bytes: self.context.plan.window_bytes,
            send_buffer_bytes: socket::send_buffer(fd).ok().map(|bytes| bytes as u64),
            receive_buffer_bytes: socket::receive_buffer(fd).ok().map(|bytes| bytes as u64),
            first_byte_ns: self.first,
            last_byte_ns: self.last,
            omit_until_ns: self.omitted_until,
            app_bytes: self.bytes,
            omitted_bytes: self.omitted_bytes,
            file_bytes: self.context.file.as_ref().and_then(StreamFile::size),
            cookie_bytes: self.context.cookie_bytes,
            active_opener: self.context.active_opener,
            unread_bytes: self.unread,
            drained: self.drained,
            tcp: None,
            udp: None,
            spliced: false,
            zerocopy: None,
            cpu: thread_cpu(),
            samples: if empty { Series::default() } else { samples },
            thinned,
            sampling_ns: self.sampling_ns,
            error: self.error.map(Into::into),
            too_long: self.too_long,
        };
        StreamResult {
            record,
            socket: DataSocket {
                socket: Some(socket),
                unfinished: false,
            },
            share,
        }
    }

    fn store_is_empty(&self) -> bool {
        self.first.is_none() && self.store.next() == Nanos::ZERO
    }
}

/// `TCP_CLOSE`, as `TCP_INFO` has it.
const CLOSE: u64 = 7;

/// Those of [`OF_A_SUBFLOW`].
fn of_a_subflow(facts: &TcpFacts) -> TcpFacts {
    TcpFacts {
        snd_mss_bytes: facts.snd_mss_bytes,
        pmtu_bytes: facts.pmtu_bytes,
        rtt_us: facts.rtt_us,
        rttvar_us: facts.rttvar_us,
        snd_cwnd_packets: facts.snd_cwnd_packets,
        total_retrans_packets: facts.total_retrans_packets,
        reord_seen: facts.reord_seen,
        snd_wnd_bytes: facts.snd_wnd_bytes,
        ..TcpFacts::default()
    }
}

/// Whether a byte waits to be read.
fn has_a_byte(fd: BorrowedFd<'_>) -> bool {
    let mut byte = [std::mem::MaybeUninit::uninit()];
    SockRef::from(&fd)
        .peek(&mut byte)
        .is_ok_and(|bytes| bytes > 0)
}
