//! Receiving over TCP and SCTP: large reads that shrink as streams grow, into a buffer that stays in the cache.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_kernel::poll::Interest;
use linerate_kernel::{clock, socket, tcp};
use linerate_model::plan::{Direction, End, Protocol};
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::stream_file::StreamFile;
use crate::transfer::Inlet;

use super::recorder::Recorder;
use super::{RECEIVER_DRAIN_BOUND, StreamContext, StreamResult, iperf2};

/// What a read copies to: small enough to stay in the cache, since nothing looks at it.
const SCRATCH: usize = 32 << 10;
/// The largest read of all streams together.
const ALL_READS: usize = 4 << 20;
/// The largest read of one.
const LARGEST_READ: usize = 1 << 20;
/// The smallest.
const SMALLEST_READ: usize = 64 << 10;
/// A stock peer does not close its side when it has stopped: this long without a byte after it said that
/// it had, and two round trips, means that nothing more is under way.
const QUIET: Nanos = Nanos::from_millis(30);
/// The same over SCTP, whose receivers hold an acknowledgement back for 200 ms (`net.sctp.sack_timeout`), which a sender of long
/// messages waits for.
const QUIET_OF_SCTP: Nanos = Nanos::from_millis(250);

pub(super) fn run(
    context: &StreamContext,
    stream: TcpStream,
    inlet: Option<Box<dyn Inlet>>,
) -> StreamResult {
    let mut recorder = Recorder::new(context, stream.as_fd());
    // A server's streams begin at its own word; a client's at that or at the server's first byte, whichever
    // comes first. Where it sends as well, a byte too early must not make it write.
    let receives_only = context.plan.direction == Direction::Receive;
    let first = (context.active_opener && receives_only).then(|| stream.as_fd());
    if recorder.wait_for_start(first) && prepare_file(context, &mut recorder) {
        let iperf2 = context.iperf2.as_ref();
        match (inlet, iperf2.and_then(|flow| flow.bounceback.as_ref())) {
            (Some(inlet), _) => store(context, stream.as_fd(), &mut recorder, inlet),
            (None, Some(asked)) => iperf2::answer(context, asked, stream.as_fd(), &mut recorder),
            (None, None) => pump(context, stream.as_fd(), &mut recorder),
        }
    }
    recorder.unread = recorder.unread(stream.as_fd());
    let drained = recorder.drained;
    let result = recorder.finish_stream(stream);
    if drained && context.peer_extended {
        // Tells the sender that everything was read.
        result.socket.end();
    }
    result
}

/// Empties the file that the stream writes into, if there is one. False = it cannot be written into.
fn prepare_file(context: &StreamContext, recorder: &mut Recorder<'_>) -> bool {
    match context.file.as_ref().map(StreamFile::empty) {
        Some(Err(error)) => {
            recorder.fail_by_file("emptying the file of -F", &error);
            false
        }
        _ => true,
    }
}

fn pump(context: &StreamContext, fd: BorrowedFd<'_>, recorder: &mut Recorder<'_>) {
    let mut scratch = vec![0_u8; SCRATCH];
    let largest = if context.read_rate.is_some() {
        SMALLEST_READ
    } else {
        LARGEST_READ
    };
    let most = (ALL_READS / context.streams.max(1)).clamp(SMALLEST_READ, largest);
    let mut drain = Drain::default();
    let mut slowness = Slowness::default();
    while !context.gate.is_cut() {
        let now = clock::monotonic();
        if recorder.due(now) {
            recorder.tick_stream(now, fd);
        }
        if context.gate.stopped().is_some() && drain.is_over(context, now, recorder.bytes) {
            return;
        }
        if now < slowness.next {
            recorder.wait(fd, Interest::NONE, Some(slowness.next));
            continue;
        }
        let read = if context.file.is_some() {
            socket::receive(fd, &mut scratch)
        } else if context.plan.skip_receive_copy && context.plan.protocol == Protocol::Tcp {
            tcp::discard(fd, most)
        } else {
            socket::receive_over(fd, &mut scratch, most)
        };
        match read {
            Ok(0) => {
                recorder.drained = true;
                return;
            }
            Ok(bytes) => {
                slowness.read(context.read_rate, now, bytes as u64);
                if let Some(file) = &context.file {
                    if !keep(context, file, fd, recorder, &scratch[..bytes]) {
                        return;
                    }
                } else {
                    recorder.moved(clock::monotonic(), bytes as u64);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                recorder.wait(fd, Interest::READ, drain.wake(now));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                // A stock sender may reset the connection once the test is over.
                if context.gate.stopped().is_none() {
                    recorder.fail("receiving", &error);
                }
                return;
            }
        }
    }
}

/// Receives straight into the pieces of a transfer's target. Where its ring is full nothing is read, so that the receive window
/// holds the sender.
fn store(
    context: &StreamContext,
    fd: BorrowedFd<'_>,
    recorder: &mut Recorder<'_>,
    mut inlet: Box<dyn Inlet>,
) {
    let mut drain = Drain::default();
    while !context.gate.is_cut() {
        let now = clock::monotonic();
        if recorder.due(now) {
            recorder.tick_stream(now, fd);
        }
        if context.gate.stopped().is_some() && drain.is_over(context, now, recorder.bytes) {
            return;
        }
        let read = match inlet.room() {
            Ok(Some(room)) => socket::receive(fd, room),
            Ok(None) => {
                recorder.wait(inlet.fd(), Interest::READ, drain.wake(now));
                continue;
            }
            Err(error) => return recorder.fail_by_file("storing what arrived", &error),
        };
        let taken = match read {
            Ok(0) => {
                recorder.drained = true;
                inlet.ended()
            }
            Ok(bytes) => {
                recorder.moved(clock::monotonic(), bytes as u64);
                inlet.received(bytes)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                recorder.wait(fd, Interest::READ, drain.wake(now));
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                if context.gate.stopped().is_none() {
                    recorder.fail_by_file("receiving", &error);
                }
                return;
            }
        };
        if let Err(error) = taken {
            return recorder.fail_by_file("storing what arrived", &error);
        }
        if recorder.drained {
            return;
        }
    }
}

/// Writes what was received into the file, and counts what was written. False = the stream is over.
fn keep(
    context: &StreamContext,
    file: &StreamFile,
    fd: BorrowedFd<'_>,
    recorder: &mut Recorder<'_>,
    mut bytes: &[u8],
) -> bool {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(written) => {
                bytes = &bytes[written..];
                recorder.moved(clock::monotonic(), written as u64);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && !context.gate.is_cut() => {
                let now = clock::monotonic();
                if recorder.due(now) {
                    recorder.tick_stream(now, fd);
                }
                recorder.wait(file.fd(), Interest::WRITE, None);
            }
            Err(error) => {
                recorder.fail_by_file("writing the file of -F", &error);
                return false;
            }
        }
    }
    true
}

/// An application that reads no faster than it is told to: it leaves the rest to the socket's buffer.
#[derive(Default)]
struct Slowness {
    next: Nanos,
}

impl Slowness {
    /// After a read, the next one may come when the rate has paid for it; time that was not used is lost.
    fn read(&mut self, rate: Option<BitRate>, now: Nanos, bytes: u64) {
        if let Some(rate) = rate {
            self.next = self.next.max(now).plus(rate.time_for(Bytes(bytes)));
        }
    }
}

/// How long reading goes on after the end of the test.
#[derive(Default)]
struct Drain {
    began: Option<Nanos>,
    bytes: u64,
    moved: Nanos,
}

impl Drain {
    fn is_over(&mut self, context: &StreamContext, now: Nanos, bytes: u64) -> bool {
        let began = *self.began.get_or_insert(now);
        if bytes != self.bytes || self.moved == Nanos::ZERO {
            (self.bytes, self.moved) = (bytes, now);
        }
        let quiet = now.since(self.moved);
        if !context.peer_extended
            && let Some(stopped) = context.gate.peer_stopped()
        {
            let quiet_at_end = match context.plan.protocol {
                Protocol::Sctp => QUIET_OF_SCTP,
                Protocol::Tcp | Protocol::Udp => QUIET,
            };
            let bound = quiet_at_end.plus(Nanos(context.round_trip.0.saturating_mul(2)));
            if quiet > bound && now.since(stopped) > bound {
                return true;
            }
        }
        match context.plan.end {
            End::TimeNs(_) => now.since(began) > RECEIVER_DRAIN_BOUND,
            End::Bytes(_) | End::Blocks(_) => quiet > context.stall_bound(),
        }
    }

    /// While draining, look again soon.
    fn wake(&self, now: Nanos) -> Option<Nanos> {
        self.began.map(|_| now.plus(Nanos::from_millis(5)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reader_keeps_to_its_rate_and_saves_nothing_up() {
        let rate = Some(BitRate(8_000_000));
        let mut slowness = Slowness::default();
        slowness.read(rate, Nanos(1_000_000), 1000);
        assert_eq!(slowness.next, Nanos(2_000_000));
        // Late by 5 ms: the next one is not sooner for it.
        slowness.read(rate, Nanos(7_000_000), 1000);
        assert_eq!(slowness.next, Nanos(8_000_000));
        slowness.read(None, Nanos(7_000_000), 1000);
        assert_eq!(slowness.next, Nanos(8_000_000));
    }
}
