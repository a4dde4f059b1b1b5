//! What streams over iperf2's wire do otherwise: the heads of datagrams, how a flow ends, and what a server reports of it.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

use linerate_kernel::poll::Interest;
use linerate_kernel::{clock, socket};
use linerate_model::record::Flow as RecordFlow;
use linerate_model::units::Nanos;
use linerate_wire::iperf2::bounceback::{self, Bounceback};
use linerate_wire::iperf2::datagram::{Head, Layout};
use linerate_wire::iperf2::report::{Form, Report};

use super::StreamContext;
use super::recorder::Recorder;

/// A sender repeats the datagram that ends its flow this often, until it is answered: as 2.1 and as 2.0 do.
const END_AGAIN: Nanos = Nanos::from_millis(10);
const END_AGAIN_2_0: Nanos = Nanos::from_millis(250);
/// And for so long.
const END_PATIENCE: Nanos = Nanos::from_millis(2000);
/// So many of them where nobody answers, each after twice the time; a peer that has seen one has closed its socket, and refuses the next.
const ENDS_UNANSWERED: u32 = 8;
/// A client that began when its first flow came ends so much earlier at most.
const CLOCKS_APART: Nanos = Nanos::from_millis(3500);
/// An iperf2 has taken all flows back by then.
const LISTENS_AGAIN: Nanos = Nanos::from_millis(1000);
/// The longest report is one of 128 bytes; 2.0.5's server sends a whole datagram back.
const LONGEST_REPORT: usize = 2048;

/// What is different in a stream over iperf2's wire.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    /// UDP: of the heads of datagrams.
    pub(crate) layout: Layout,
    /// UDP: how the report is written.
    pub(crate) form: Form,
    /// UDP: a report follows the last datagram; a receiver writes it, a sender awaits it.
    pub(crate) reports: bool,
    /// Payload that was read with the header, bytes.
    pub(crate) read_before: u64,
    /// UDP: datagrams that came before the flow had a socket of its own.
    pub(crate) early: Vec<Early>,
    /// UDP: what stands behind the head of each datagram that is sent.
    pub(crate) header: Vec<u8>,
    /// TCP: each request is answered.
    pub(crate) bounceback: Option<Bounceback>,
    /// The report that was written, or read.
    pub(crate) reported: Arc<OnceLock<Reported>>,
}

/// A report as it went over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Reported {
    pub(crate) report: Report,
    pub(crate) datagram: Vec<u8>,
}

/// A datagram that came before its flow had a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Early {
    /// Its first bytes.
    pub(crate) head: [u8; 16],
    /// All of them, a count.
    pub(crate) bytes: usize,
    pub(crate) came: Nanos,
}

impl Early {
    /// A datagram that came.
    pub(crate) fn of(datagram: &[u8], came: Nanos) -> Self {
        let mut head = [0; 16];
        let length = datagram.len().min(head.len());
        head[..length].copy_from_slice(&datagram[..length]);
        Self {
            head,
            bytes: datagram.len(),
            came,
        }
    }
}

impl Flow {
    /// A TCP stream, of whose payload so many bytes were read already.
    pub(crate) fn tcp(read_before: u64) -> Self {
        Self {
            read_before,
            ..Self::udp(Layout::Bytes16, Form::Wide, false)
        }
    }

    /// A UDP flow.
    pub(crate) fn udp(layout: Layout, form: Form, reports: bool) -> Self {
        Self {
            layout,
            form,
            reports,
            read_before: 0,
            early: Vec::new(),
            header: Vec::new(),
            bounceback: None,
            reported: Arc::default(),
        }
    }

    /// Writes a report and remembers it. A host that sent less than it would get is none that wants it.
    pub(super) fn report(&self, fd: BorrowedFd<'_>, report: Report, last: &[u8]) {
        if !self.reports {
            return;
        }
        let datagram = report.encode(self.form, last);
        if report.bytes >= datagram.len() as u64 {
            drop(socket::send(fd, &datagram));
            drop(self.reported.set(Reported { report, datagram }));
        }
    }
}

/// Answers each request until one says that it is the last, or the client ends. Whatever of a request was read before stands in
/// `bounceback`.
pub(super) fn answer(
    context: &StreamContext,
    bounceback: &Bounceback,
    fd: BorrowedFd<'_>,
    recorder: &mut Recorder<'_>,
) {
    let (request, reply) = (bounceback.request_bytes, bounceback.reply_bytes);
    let mut message = vec![0; request.max(reply)];
    message[..bounceback.head.len()].copy_from_slice(&bounceback.head);
    // How much of a request has come; or, of a reply, how much is out.
    let (mut come, mut out) = (bounceback.head.len(), None);
    while !context.gate.is_cut() && context.gate.stopped().is_none() {
        let now = clock::monotonic();
        if recorder.due(now) {
            recorder.tick_stream(now, fd);
        }
        if come == request && out.is_none() {
            come = 0;
            let is_last = bounceback::is_last(&message);
            if !is_last {
                let now = clock::wall();
                bounceback::stamp(&mut message, now, now);
                out = Some(0);
            }
        }
        let (moved, interest) = match out {
            Some(out) => (socket::send(fd, &message[out..reply]), Interest::WRITE),
            None => (
                socket::receive(fd, &mut message[come..request]),
                Interest::READ,
            ),
        };
        match (moved, &mut out) {
            (Ok(bytes), Some(sent)) => {
                *sent += bytes;
                if *sent == reply {
                    out = None;
                }
            }
            (Ok(0), None) => {
                recorder.drained = true;
                return;
            }
            (Ok(bytes), None) => {
                come += bytes;
                recorder.moved(clock::monotonic(), bytes as u64);
            }
            (Err(error), _) if error.kind() == io::ErrorKind::WouldBlock => {
                recorder.wait(fd, interest, None);
            }
            (Err(error), _) if error.kind() == io::ErrorKind::Interrupted => {}
            (Err(error), _) => return recorder.fail("answering requests", &error),
        }
    }
}

/// How a sender numbers and stamps its datagrams.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbering {
    layout: Layout,
    /// From the monotonic clock to the time of day, which the heads carry.
    to_wall: Nanos,
}

impl Numbering {
    pub(super) fn of(flow: &Flow) -> Self {
        Self {
            layout: flow.layout,
            to_wall: clock::wall().since(clock::monotonic()),
        }
    }

    /// Writes the head of the datagram that is sent as number `counter`, from 1 on.
    pub(super) fn stamp(self, now: Nanos, counter: u64, datagram: &mut [u8]) {
        let first = u64::from(self.layout.counts_last());
        let number = counter.saturating_sub(1).saturating_add(first);
        self.write(now, i64::try_from(number).unwrap_or(i64::MAX), datagram);
    }

    fn write(self, now: Nanos, number: i64, datagram: &mut [u8]) {
        // A datagram too short for its head cannot be planned.
        let _ = Head::at(number, now.plus(self.to_wall)).encode(self.layout, datagram);
    }
}

/// Ends a flow of `sent` datagrams by `datagram`: it is sent until the receiver reports what it counted, or nobody answers. Says
/// whether it was one of the flow's.
pub(super) fn end(
    context: &StreamContext,
    flow: &Flow,
    fd: BorrowedFd<'_>,
    recorder: &mut Recorder<'_>,
    datagram: &mut [u8],
    sent: u64,
) -> bool {
    let numbering = Numbering::of(flow);
    let counts = flow.layout.counts_last();
    let every = if counts { END_AGAIN } else { END_AGAIN_2_0 };
    let until = clock::monotonic().plus(END_PATIENCE);
    let mut number = i64::try_from(sent).unwrap_or(i64::MAX);
    let mut is_out = false;
    for round in 0_u32.. {
        let now = clock::monotonic();
        if context.gate.is_cut() || now >= until || (!flow.reports && round >= ENDS_UNANSWERED) {
            break;
        }
        number = number.saturating_add(i64::from(counts || round == 0 && sent == 0));
        numbering.write(now, -number, datagram);
        let went = socket::send(fd, datagram);
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if !flow.reports && is_out && went.as_ref().is_err_and(refused) {
            break;
        }
        let out = went.is_ok();
        if out && counts && !is_out {
            recorder.moved(now, datagram.len() as u64);
        }
        is_out |= out;
        let wait = if flow.reports {
            every
        } else {
            Nanos(END_AGAIN.0 << round)
        };
        if await_report(flow, fd, recorder, now.plus(wait)) {
            break;
        }
    }
    is_out && counts
}

/// Whether an error says that nobody waits for the flows that a server was asked for: the client has ended by its own clock, or
/// its address was forged. `ECONNREFUSED` is a host's answer, `EHOSTUNREACH` a firewall's (RFC 1122, section 4.2.3.9). An iperf2
/// that listens for flows back opens its socket anew after each, and refuses those that come meanwhile.
pub(super) fn is_left(context: &StreamContext, error: &io::Error, now: Nanos) -> bool {
    let ran = context.gate.started().map(|start| now.since(start));
    if context.active_opener && ran.is_none_or(|ran| ran < LISTENS_AGAIN) {
        return false;
    }
    let is_server = context.sends == (context.flow == RecordFlow::ServerToClient);
    is_server && context.iperf2.is_some() && matches!(error.raw_os_error(), Some(111 | 113))
}

/// Ends the whole test that was left: a host says so once a second for all of its flows together.
pub(super) fn leave(
    context: &StreamContext,
    recorder: &mut Recorder<'_>,
    error: &io::Error,
    now: Nanos,
) {
    let start = context.gate.started();
    let end = start.and_then(|start| context.plan.ends_at(start));
    if end.is_some_and(|end| end.since(now) > CLOCKS_APART) {
        recorder.fail("sending datagrams to who asked for them", error);
        context.gate.cut();
    } else {
        context.gate.close();
    }
}

/// Waits for the receiver's report.
fn await_report(
    flow: &Flow,
    fd: BorrowedFd<'_>,
    recorder: &mut Recorder<'_>,
    until: Nanos,
) -> bool {
    let mut datagram = [0; LONGEST_REPORT];
    // Each round reads a datagram or waits.
    while clock::monotonic() < until {
        let interest = if flow.reports {
            Interest::READ
        } else {
            Interest::NONE
        };
        recorder.pause(fd, interest, until);
        if !flow.reports {
            continue;
        }
        match socket::receive(fd, &mut datagram) {
            Ok(length) => {
                if let Some((_, report)) = Report::decode(&datagram[..length]) {
                    let datagram = datagram[..length].to_vec();
                    drop(flow.reported.set(Reported { report, datagram }));
                    return true;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Nobody is there any more; there may be again before the time is up.
            Err(_) => recorder.pause(fd, Interest::NONE, until),
        }
    }
    false
}
