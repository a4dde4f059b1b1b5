//! Sending over TCP and SCTP: large non-blocking writes from one buffer that all streams share, as a program writes, and where the
//! copying is what limits the rate, by reference through a pipe.

use std::io::ErrorKind::{self, InvalidInput, PermissionDenied, Unsupported};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_kernel::poll::Interest;
use linerate_kernel::splice::Spliced;
use linerate_kernel::{clock, sctp, socket, tcp};
use linerate_model::plan::{DEFAULT_TCP_BLOCK, End, Plan, Protocol};
use linerate_model::record::ZerocopyCounts;
use linerate_model::tcp_info::TcpFacts;
use linerate_model::units::Nanos;

use crate::buffer;
use crate::gate::FileEnd;
use crate::stream_file::{Filled, Source};
use crate::transfer::Outlet;

use super::recorder::Recorder;
use super::{DRAIN_BOUND, STOCK_DRAIN_BOUND, StreamContext, StreamResult, pacer, prompt};

/// A paced stream writes at most this much of its time at once.
const PACED_WRITE: Nanos = Nanos::from_millis(1);

/// What the pipes of all streams may hold together, bytes, if each stream's 256 KiB let them: a quarter of what an ordinary
/// user's may.
const ALL_PIPES: usize = 16 << 20;

/// How often it is looked at whether the CPU holds the sender, whatever the interval of the samples.
const LOOK_AFTER: Nanos = Nanos::from_millis(10);
/// Computing, or waiting for a CPU, for this share of the time, a sender is held by its CPU.
const HELD_BY_CPU: f64 = 0.7;
/// Below this rate of all streams together copying costs next to nothing, bit/s.
const FAST_BPS: f64 = 5e9;

/// How payload gets to the kernel.
enum Way<'a> {
    /// It is copied.
    Copied,
    /// It is read from a file and copied.
    File(Source<'a>),
    /// It is what a transfer's source has read.
    Stage(Box<dyn Outlet>),
    /// Its pages go through a pipe.
    Spliced(Spliced),
    /// `MSG_ZEROCOPY`.
    Zerocopy(ZerocopyCounts),
}

impl<'a> Way<'a> {
    /// Where the kernel has no zero-copy sends, the record shows that none were made.
    fn of(context: &'a StreamContext, fd: BorrowedFd<'_>, outlet: Option<Box<dyn Outlet>>) -> Self {
        let plan = &context.plan;
        if let Some(outlet) = outlet {
            Self::Stage(outlet)
        } else if let Some(file) = &context.file {
            let block = chunk(context).min(buffer::LENGTH as u64);
            Self::File(Source::new(file, usize::try_from(block).unwrap_or(1)))
        } else if plan.zerocopy
            && plan.protocol == Protocol::Tcp
            && tcp::enable_zerocopy(fd).is_ok()
        {
            Self::Zerocopy(ZerocopyCounts::default())
        } else {
            Self::Copied
        }
    }

    /// Hands up to `length` bytes over; says how many went, and whether the kernel has room for no more.
    fn write(&mut self, fd: BorrowedFd<'_>, length: usize) -> std::io::Result<(usize, bool)> {
        let length = length.min(buffer::LENGTH);
        match self {
            Self::Spliced(spliced) => match spliced.send(fd, length) {
                Ok((sent, asked)) => return Ok((sent, sent < asked)),
                // Forbidden, or nothing for this socket.
                Err(error)
                    if matches!(error.kind(), PermissionDenied | Unsupported | InvalidInput) =>
                {
                    *self = Self::Copied;
                }
                Err(error) => return Err(error),
            },
            Self::Zerocopy(counts) => match tcp::send_zerocopy(fd, buffer::pattern(), length) {
                Ok(written) => {
                    counts.asked += 1;
                    return Ok((written, written < length));
                }
                // No room to account for pinned pages: this one is sent with a copy.
                Err(error) if error.raw_os_error() == Some(ENOBUFS) => self.read_completions(fd),
                Err(error) => return Err(error),
            },
            Self::File(source) => {
                let bytes = source.bytes(length);
                let asked = bytes.len();
                let written = socket::send(fd, bytes)?;
                source.sent(written);
                return Ok((written, written < asked));
            }
            Self::Stage(outlet) => {
                let bytes = outlet.bytes();
                let asked = bytes.len().min(length);
                let written = socket::send(fd, &bytes[..asked])?;
                outlet.sent(written);
                return Ok((written, written < asked));
            }
            Self::Copied => {}
        }
        let written = socket::send_repeated(fd, buffer::pattern(), length)?;
        Ok((written, written < length))
    }

    fn read_completions(&mut self, fd: BorrowedFd<'_>) {
        if let Self::Zerocopy(counts) = self
            && let Ok(completions) = tcp::zerocopy_completions(fd)
        {
            counts.completed += completions.completed;
            counts.copied += completions.copied;
        }
    }

    /// Whether there is something to send. Where a file has nothing, it is waited for; where it has ended or cannot be read, the
    /// test ends; where a transfer has no more for this stream, the stream does.
    fn fill(&mut self, most: u64, context: &StreamContext, recorder: &mut Recorder<'_>) -> Filled {
        let doing = match self {
            Self::File(source) => match source.fill(usize::try_from(most).unwrap_or(usize::MAX)) {
                Ok(Filled::Bytes) => return Filled::Bytes,
                Ok(Filled::NotYet) => {
                    if recorder.wait(source.fd(), Interest::READ, None).any() {
                        source.mark_readable();
                    }
                    return Filled::NotYet;
                }
                Ok(Filled::End) => {
                    context.gate.end_by_file(FileEnd::Sent);
                    None
                }
                Err(error) => Some(("reading the file of -F", error)),
            },
            Self::Stage(outlet) => match outlet.fill() {
                Ok(Filled::NotYet) => {
                    recorder.wait(outlet.fd(), Interest::READ, None);
                    return Filled::NotYet;
                }
                Ok(filled) => return filled,
                Err(error) => Some(("reading the source", error)),
            },
            Self::Copied | Self::Spliced(_) | Self::Zerocopy(_) => return Filled::Bytes,
        };
        if let Some((doing, error)) = doing {
            recorder.fail_by_file(doing, &error);
        }
        // A server's client does not hear of it: the stream is silent until the test is over, as iperf3's is.
        recorder.wait(context.gate.stop_fd(), Interest::NONE, None);
        Filled::NotYet
    }

    /// Waits for room in the send buffer, or until a sample is due; whether it pays to write again.
    fn has_room(
        &mut self,
        fd: BorrowedFd<'_>,
        recorder: &Recorder<'_>,
        until: Option<Nanos>,
    ) -> bool {
        let ready = recorder.wait(fd, Interest::WRITE, until);
        if ready.error {
            self.read_completions(fd);
        }
        ready.writable || ready.hangup || (ready.error && !matches!(self, Self::Zerocopy(_)))
    }
}

/// Looks whether the copying limits the rate.
///
/// Elsewhere payload is copied, as programs do: pages by reference make a receiver on the same machine offer half the window, as
/// the segments that reach it are accounted for by how they were made.
struct Copying {
    /// Whether the plan leaves it to us.
    free: bool,
    at: Nanos,
    busy: Nanos,
    bytes: u64,
}

impl Copying {
    fn new(plan: &Plan, from_file: bool, recorder: &Recorder<'_>) -> Self {
        // Who asks for a size of writes, a rate or zero-copy sends gets those.
        let free = plan.protocol == Protocol::Tcp
            && plan.block_bytes == DEFAULT_TCP_BLOCK
            && plan.rate_bps.is_none()
            && plan.kernel_pacing_bps.is_none()
            && !plan.zerocopy
            && !plan.mptcp
            && !from_file;
        Self {
            free,
            at: clock::monotonic(),
            busy: recorder.busy(),
            bytes: recorder.bytes,
        }
    }

    /// The way from here on, where it is another one: since the last look the thread computed, or waited for a CPU, most of the
    /// time, at a rate at which copying counts.
    fn look(
        &mut self,
        now: Nanos,
        context: &StreamContext,
        fd: BorrowedFd<'_>,
        recorder: &Recorder<'_>,
    ) -> Option<Way<'static>> {
        if !self.free || now.since(self.at) < LOOK_AFTER {
            return None;
        }
        let before = (self.at, self.busy, self.bytes);
        (self.at, self.busy, self.bytes) = (now, recorder.busy(), recorder.bytes);
        let time = self.at.since(before.0).0 as f64;
        let held = self.busy.since(before.1).0 as f64 >= HELD_BY_CPU * time;
        let bits = (self.bytes - before.2) as f64 * 8.0 * context.streams as f64;
        if !held || bits * 1e9 < FAST_BPS * time {
            return None;
        }
        self.free = false;
        // Paced segments are small, and cutting them off pages costs more than copying (12 instead of 39 Gbit/s with BBR).
        let paced = tcp::congestion(fd).is_ok_and(|name| name.starts_with("bbr"));
        if paced {
            return None;
        }
        let most = (ALL_PIPES / context.streams.max(1)).min(2 * buffer::LENGTH);
        Spliced::new(fd, buffer::pages(), most)
            .ok()
            .map(Way::Spliced)
    }
}

pub(super) fn run(
    context: &StreamContext,
    stream: TcpStream,
    outlet: Option<Box<dyn Outlet>>,
) -> StreamResult {
    let mut recorder = Recorder::new(context, stream.as_fd());
    let mut way = Way::of(context, stream.as_fd(), outlet);
    // Made now, and not when the test runs.
    buffer::pattern();
    let mut unfinished = false;
    if recorder.wait_for_start(None) {
        unfinished = pump(context, stream.as_fd(), &mut recorder, &mut way);
        drain(context, &stream, &mut recorder);
        way.read_completions(stream.as_fd());
    }
    let discarded = !recorder.drained && (context.peer_extended || is_sctp(context));
    let cut_off = discarded && context.peer_extended;
    let mut result = recorder.finish_stream(stream);
    result.record.spliced = matches!(way, Way::Spliced(_));
    result.record.zerocopy = match way {
        Way::Zerocopy(counts) => Some(counts),
        Way::Copied | Way::File(_) | Way::Stage(_) | Way::Spliced(_) => None,
    };
    if discarded && let Some(socket) = &result.socket.socket {
        // What was not delivered within the bound is discarded when the socket is closed, not left to the network after the
        // test. TCP's kernel bounds what is left; an association would wait for its peer for ten minutes and more.
        drop(socket2::SockRef::from(socket).set_linger(Some(std::time::Duration::ZERO)));
    }
    if cut_off {
        result.socket.socket = None;
    } else {
        result.socket.unfinished = unfinished;
    }
    result
}

/// Bytes that are claimed and paced at once.
fn chunk(context: &StreamContext) -> u64 {
    let block = context.plan.block_bytes.count();
    match context.plan.rate_bps {
        // iperf3 reads whole blocks, and counts none that it has not read to its end.
        _ if !context.peer_extended => block,
        // A write is a message.
        _ if context.plan.protocol == Protocol::Sctp => block,
        Some(rate) => {
            let of_time = rate.bits_per_second() / 8 * PACED_WRITE.0 / 1_000_000_000;
            of_time.clamp(block.min(1448), block)
        }
        None if context.plan.block_bytes == DEFAULT_TCP_BLOCK => buffer::LENGTH as u64,
        None => block,
    }
}

/// Writes until the test stops; whether a stock peer, which reads whole blocks, lacks the end of one.
fn pump(
    context: &StreamContext,
    fd: BorrowedFd<'_>,
    recorder: &mut Recorder<'_>,
    way: &mut Way<'_>,
) -> bool {
    let chunk = chunk(context).min(buffer::LENGTH as u64);
    let mut pacer = pacer(context);
    let (mut claimed, mut claimed_while_omitting) = (0_u64, false);
    let (mut full, mut begun) = (false, false);
    let generated = matches!(way, Way::Copied | Way::Zerocopy(_));
    let mut copying = Copying::new(&context.plan, !generated, recorder);
    loop {
        let now = clock::monotonic();
        let stopped = context.gate.stopped();
        let finishing = stopped.filter(|_| begun);
        let until = finishing.and_then(|stopped| end_of_block(context, stopped));
        if stopped.is_some() && until.is_none_or(|until| now >= until) {
            break;
        }
        if recorder.due(now) {
            recorder.tick_stream(now, fd);
            way.read_completions(fd);
            if claimed_while_omitting && !recorder.omitting() && (context.peer_extended || !begun) {
                // What was claimed for the omitted part does not count against the budget.
                (claimed, claimed_while_omitting) = (0, false);
            }
        }
        if let Some(other) = copying.look(now, context, fd, recorder) {
            *way = other;
        }
        if claimed == 0 {
            if let Some(Err(until)) = pacer.as_mut().map(|pacer| pacer.ready(now, chunk)) {
                recorder.wait(fd, Interest::NONE, Some(until));
                continue;
            }
            claimed_while_omitting = recorder.omitting();
            claimed = if claimed_while_omitting {
                chunk
            } else {
                context.budget.claim(chunk)
            };
            if claimed == 0 {
                return false;
            }
        }
        // Without a word of room nothing is tried: to a segment that was cut short the kernel appends without asking
        // for room (`tcp_sendmsg_locked`), so trying at every sample would put more in flight than the buffer holds.
        full = full && !way.has_room(fd, recorder, until);
        if full {
            continue;
        }
        match way.fill(claimed, context, recorder) {
            Filled::Bytes => {}
            Filled::NotYet => continue,
            Filled::End => break,
        }
        match way.write(fd, usize::try_from(claimed).unwrap_or(usize::MAX)) {
            Ok((written, no_more)) => {
                claimed -= written as u64;
                begun = claimed > 0;
                recorder.moved(clock::monotonic(), written as u64);
                full = no_more;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => full = true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                recorder.fail("sending", &error);
                break;
            }
        }
    }
    if !claimed_while_omitting {
        context.budget.give_back(claimed);
    }
    begun && !ends_in_band(context)
}

/// Whether a sender that has finished closes its side of the connection before the end of the test. Some stock servers take that
/// for a lost connection, so their senders close it after the results. A file is the exception: its last block is rarely whole,
/// and only the close makes a stock server read it.
fn ends_in_band(context: &StreamContext) -> bool {
    context.peer_extended
        || !context.active_opener
        || context.file.is_some()
        || context.iperf2.is_some()
}

/// Until when a block that was begun may still be written after the end of the test: a stock server waits for the rest of it.
fn end_of_block(context: &StreamContext, stopped: Nanos) -> Option<Nanos> {
    let finishes = !ends_in_band(context) && !context.gate.is_cut();
    finishes.then(|| stopped.plus(prompt(context.plan.end)))
}

/// `ENOBUFS` on Linux.
const ENOBUFS: i32 = 105;

/// Waits until the peer has everything, within a bound, still sampling.
fn drain(context: &StreamContext, stream: &TcpStream, recorder: &mut Recorder<'_>) {
    let fd = stream.as_fd();
    if recorder.error.is_some() {
        return;
    }
    let end_in_band = ends_in_band(context);
    if end_in_band && stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    // SCTP has no half-closed state: `shutdown` ends the association when the peer's kernel has everything, and the peer's
    // application reads the rest and then the end.
    let awaits_close = context.peer_extended && !is_sctp(context);
    let by_bytes = !matches!(context.plan.end, End::TimeNs(_));
    let mut progress = (clock::monotonic(), u64::MAX);
    let mut pause = Nanos(200_000);
    let longest_pause = Nanos(if end_in_band { 5_000_000 } else { 500_000 });
    let mut woken = false;
    while !context.gate.is_cut() {
        let now = clock::monotonic();
        if recorder.due(now) {
            recorder.tick_stream(now, fd);
        }
        let left = unacknowledged(context, fd);
        if left < progress.1 {
            progress = if by_bytes {
                (now, left)
            } else {
                (progress.0, left)
            };
        }
        if left == 0 && (!awaits_close || closed_by_peer(fd, recorder)) {
            // An association that was aborted has nothing left either.
            let aborted = || matches!(socket2::SockRef::from(&fd).take_error(), Ok(Some(_)));
            recorder.drained = !(is_sctp(context) && aborted());
            return;
        }
        let (bound, since) = drain_bound(context, by_bytes, progress.0);
        if now.since(since) > bound || (!end_in_band && has_arrived(context, fd, now, progress.0)) {
            return;
        }
        // The peer closes its side when it has read everything, which wakes us; a stock peer does not. What woke us without
        // being that stays there, and waiting for it would not be waiting.
        let interest = if awaits_close && !woken {
            Interest::READ
        } else {
            Interest::NONE
        };
        let ready = recorder.wait(fd, interest, Some(now.plus(pause)));
        woken = ready.any();
        if ready.hangup
            && let Ok(Some(error)) = socket2::SockRef::from(&fd).take_error()
        {
            recorder.fail("waiting for the peer to read the rest", &error);
            return;
        }
        pause = Nanos((pause.0 * 2).min(longest_pause.0));
    }
}

fn is_sctp(context: &StreamContext) -> bool {
    context.plan.protocol == Protocol::Sctp
}

/// What the peer's kernel has not acknowledged, in bytes; of SCTP with the kernel's overhead.
fn unacknowledged(context: &StreamContext, fd: BorrowedFd<'_>) -> u64 {
    match context.plan.protocol {
        Protocol::Sctp => sctp::unacknowledged(fd),
        Protocol::Tcp | Protocol::Udp => tcp::unacknowledged(fd),
    }
    .unwrap_or(0)
}

/// How long to drain, and since when.
fn drain_bound(context: &StreamContext, by_bytes: bool, progress: Nanos) -> (Nanos, Nanos) {
    let stopped = context.gate.stopped();
    // iperf2's receiver reads to the end of the connection.
    let is_iperf3 = !context.peer_extended && context.iperf2.is_none();
    match stopped {
        Some(stopped) if is_iperf3 && !context.active_opener => (STOCK_DRAIN_BOUND, stopped),
        _ if by_bytes => (context.stall_bound(), progress),
        // A stock server divides by the time until it hears of the end.
        _ if is_iperf3 => (prompt(context.plan.end), stopped.unwrap_or(progress)),
        _ => (
            DRAIN_BOUND,
            stopped.map_or(progress, |stopped| progress.max(stopped)),
        ),
    }
}

/// Whether what is not acknowledged waits for nothing but a delayed acknowledgement (up to 40 ms): all of it was sent, nothing
/// is lost, and two round trips have passed.
fn has_arrived(context: &StreamContext, fd: BorrowedFd<'_>, now: Nanos, since: Nanos) -> bool {
    let trips = Nanos(context.round_trip.0.saturating_mul(2)).plus(Nanos::from_millis(2));
    now.since(since) > trips
        && tcp::unsent(fd).is_ok_and(|bytes| bytes == 0)
        && tcp::info(fd).is_ok_and(|info| {
            let facts = TcpFacts::from(&info);
            facts.ca_state == Some(0) && facts.retransmits.unwrap_or(0) == 0
        })
}

/// Whether the receiver read to the end and closed its side in turn.
fn closed_by_peer(fd: BorrowedFd<'_>, recorder: &mut Recorder<'_>) -> bool {
    let mut scrap = [0_u8; 64];
    match socket::receive(fd, &mut scrap) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            false
        }
        Err(error) => {
            recorder.fail("waiting for the peer to read the rest", &error);
            true
        }
    }
}
