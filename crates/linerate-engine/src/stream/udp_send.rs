//! Sending over UDP: datagrams of exactly the asked length, segmented by the kernel in batches that hold a seventh
//! of a millisecond of traffic; up to a millisecond of it where the thread wakes too late for that; and single
//! datagrams, where the rate lets it, from a sender that spins.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_kernel::poll::Interest;
use linerate_kernel::{clock, socket, tcp, udp};
use linerate_model::plan::Pace;
use linerate_model::progress::UdpInterval;
use linerate_model::record::UdpCounts;
use linerate_model::units::{BitRate, Nanos};
use linerate_wire::pacing::{Pacer, batch_for};
use linerate_wire::udp::{CounterWidth, DataHeader};

use crate::buffer;

use super::iperf2::{self, Numbering};
use super::recorder::{Recorder, UdpSample};
use super::{DRAIN_BOUND, StreamContext, StreamResult, pacer};

/// The kernel segments at most this many datagrams of one call (`UDP_MAX_SEGMENTS`, Linux 4.18).
const MOST_SEGMENTS: usize = 64;
/// And at most this many bytes.
const MOST_BYTES: usize = 65_507;
/// Traffic of this time goes at once, so that milliseconds get the same: a sender of 1 Gbit/s took 32 % of a core so, and 36 %
/// where it was 125 µs, which varied as much.
const EVEN: Nanos = Nanos(143_000);
/// With a spinning sender: a datagram of 1460 bytes at 1 Gbit/s.
const EVEN_SPINNING: Nanos = Nanos(12_000);
/// Traffic of this time goes at once when the thread is behind by more than [`BEHIND`]: it wakes too late for less.
const COARSE: Nanos = Nanos::from_millis(1);
const BEHIND: Nanos = Nanos(500_000);
/// A spinning sender sleeps until so long before the next datagram is due.
const LONGEST_SPIN: Nanos = Nanos(200_000);
/// Over iperf2's wire the first datagram goes so long before the others.
const FIRST_ALONE: Nanos = Nanos::from_millis(20);
/// Pause after the kernel refused to send: the reason rarely goes in microseconds.
const REFUSED_PAUSE: Nanos = Nanos::from_millis(1);

pub(super) fn run(context: &StreamContext, stream: UdpSocket) -> StreamResult {
    let mut recorder = Recorder::new(context, stream.as_fd());
    let mut sender = Sender::new(context);
    if recorder.wait_for_start(None) {
        sender.pump(context, stream.as_fd(), &mut recorder);
        sender.end_flow(context, stream.as_fd(), &mut recorder);
        recorder.drained = emptied(context, stream.as_fd());
    }
    let sample = sender.sample();
    recorder.finish_udp(stream, &sample, sender.counts)
}

/// Waits until the interface's queue has taken everything, within a bound.
fn emptied(context: &StreamContext, fd: BorrowedFd<'_>) -> bool {
    let began = clock::monotonic();
    while !context.gate.is_cut() && clock::monotonic().since(began) < DRAIN_BOUND {
        if tcp::unacknowledged(fd).unwrap_or(0) == 0 {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    false
}

struct Sender {
    data: Vec<u8>,
    length: usize,
    /// Datagrams that go at once, in time and behind it.
    batch: usize,
    coarse_batch: usize,
    spins: bool,
    segmented: bool,
    width: CounterWidth,
    /// The peer is an iperf2.
    iperf2: Option<Numbering>,
    counts: UdpCounts,
    pacer: Option<Pacer>,
}

impl Sender {
    fn new(context: &StreamContext) -> Self {
        let length = usize::try_from(context.plan.block_bytes.count())
            .unwrap_or(MOST_BYTES)
            .clamp(1, MOST_BYTES);
        let most = (MOST_BYTES / length).clamp(1, MOST_SEGMENTS);
        let rate = context.plan.rate_bps;
        let spins = context.plan.pace == Pace::Spin;
        let even = if spins { EVEN_SPINNING } else { EVEN };
        let of = |span| batch_for(rate.unwrap_or(BitRate(0)), length as u64, most, span);
        let (batch, coarse_batch) = (of(even), of(COARSE));
        let mut data = vec![0; coarse_batch * length];
        for datagram in data.chunks_mut(length) {
            datagram.copy_from_slice(&buffer::pattern()[..length]);
            if let Some(flow) = &context.iperf2 {
                let behind = datagram.iter_mut().skip(flow.layout.bytes());
                behind.zip(&flow.header).for_each(|(to, from)| *to = *from);
            }
        }
        Self {
            data,
            length,
            batch,
            coarse_batch,
            spins,
            segmented: coarse_batch > 1,
            width: CounterWidth::from_parameter(context.wide_counters),
            iperf2: context.iperf2.as_ref().map(Numbering::of),
            counts: UdpCounts {
                handshake_repeats: context.handshake_repeats,
                ..UdpCounts::default()
            },
            pacer: pacer(context),
        }
    }

    fn sample(&self) -> UdpSample {
        let mut sample = UdpSample {
            live: UdpInterval {
                packets: self.counts.sent,
                ..UdpInterval::default()
            },
            ..UdpSample::default()
        };
        sample.values[0] = self.counts.sent;
        sample
    }

    fn pump(&mut self, context: &StreamContext, fd: BorrowedFd<'_>, recorder: &mut Recorder<'_>) {
        // Bytes claimed and not yet handed over.
        let (mut claimed, mut claimed_while_omitting) = (0, false);
        while context.gate.stopped().is_none() {
            let now = clock::monotonic();
            if recorder.due(now) {
                recorder.tick_udp(now, &self.sample());
                if !recorder.omitting() && claimed_while_omitting {
                    (claimed, claimed_while_omitting) = (0, false);
                    self.counts.sent_omitted = self.counts.sent;
                }
            }
            if claimed == 0 {
                let wanted = (self.datagrams(now) * self.length) as u64;
                if let Some(Err(until)) = self.pacer.as_mut().map(|pacer| pacer.ready(now, wanted))
                {
                    if !self.spins {
                        recorder.wait(fd, Interest::NONE, Some(until));
                    } else if until.since(now) > LONGEST_SPIN {
                        recorder.wait(fd, Interest::NONE, Some(Nanos(until.0 - LONGEST_SPIN.0)));
                    } else {
                        spin(context, until);
                    }
                    continue;
                }
                claimed_while_omitting = recorder.omitting();
                claimed = if claimed_while_omitting {
                    wanted
                } else {
                    context.budget.claim(wanted)
                };
                if claimed == 0 {
                    return;
                }
            }
            let length = usize::try_from(claimed)
                .unwrap_or(usize::MAX)
                .min(self.data.len());
            // An iperf2 that hears of a flow by its first datagram makes a socket for it then.
            let alone = self.iperf2.is_some() && context.active_opener && self.counts.sent == 0;
            let length = if alone {
                length.min(self.length)
            } else {
                length
            };
            match self.send(fd, length, now) {
                Ok(written) => {
                    claimed -= written as u64;
                    recorder.moved(clock::monotonic(), written as u64);
                    if alone {
                        let until = clock::monotonic().plus(FIRST_ALONE);
                        recorder.pause(fd, Interest::NONE, until);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    recorder.wait(fd, Interest::WRITE, None);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if iperf2::is_left(context, &error, now) => {
                    iperf2::leave(context, recorder, &error, now);
                    break;
                }
                Err(error) if is_passing(&error) => {
                    self.counts.send_errors += 1;
                    recorder.wait(fd, Interest::NONE, Some(now.plus(REFUSED_PAUSE)));
                }
                Err(error) => {
                    recorder.fail("sending datagrams", &error);
                    break;
                }
            }
        }
        if !claimed_while_omitting {
            context.budget.give_back(claimed);
        }
    }

    /// Over iperf2's wire the last datagram of a flow says that it is the last.
    fn end_flow(
        &mut self,
        context: &StreamContext,
        fd: BorrowedFd<'_>,
        recorder: &mut Recorder<'_>,
    ) {
        let Some(flow) = context.iperf2.as_ref().filter(|_| recorder.error.is_none()) else {
            return;
        };
        let last = &mut self.data[..self.length];
        if iperf2::end(context, flow, fd, recorder, last, self.counts.sent) {
            self.counts.sent += 1;
        }
    }

    /// How many go at once.
    fn datagrams(&self, now: Nanos) -> usize {
        let behind = self.pacer.as_ref().map(|pacer| pacer.behind(now));
        // One that spins wakes in time for the next: it makes up for what it missed datagram by datagram.
        if !self.spins && behind.is_some_and(|behind| behind > BEHIND) {
            self.coarse_batch
        } else {
            self.batch
        }
    }

    /// Sends the first `length` bytes of the buffer as datagrams; gives back how many bytes were
    /// taken, which is whole datagrams.
    fn send(&mut self, fd: BorrowedFd<'_>, length: usize, now: Nanos) -> io::Result<usize> {
        let length = if self.segmented {
            length
        } else {
            length.min(self.length)
        };
        let first = self.counts.sent + 1;
        let mut counter = first;
        for datagram in self.data[..length].chunks_mut(self.length) {
            // A datagram too short for its header cannot be planned: see the engine's rounding of -n.
            match self.iperf2 {
                Some(numbering) => numbering.stamp(now, counter, datagram),
                None => drop(DataHeader::at(now, counter).encode(self.width, datagram)),
            }
            counter += 1;
        }
        let datagrams = counter - first;
        let sent = if datagrams > 1 {
            udp::send_segments(
                fd,
                &self.data[..length],
                u16::try_from(self.length).unwrap_or(u16::MAX),
            )
        } else {
            socket::send(fd, &self.data[..length])
        };
        match sent {
            Ok(_) => {
                self.counts.sent += datagrams;
                self.counts.largest_batch = self
                    .counts
                    .largest_batch
                    .max(u32::try_from(datagrams).unwrap_or(u32::MAX));
                Ok(length)
            }
            Err(error) if datagrams > 1 && refuses_segmentation(&error) => {
                // The datagrams are larger than the MTU, or the interface cannot checksum: one by one then.
                self.segmented = false;
                self.send(fd, length, now)
            }
            Err(error) => Err(error),
        }
    }
}

/// Looks at the clock until an instant, or until the test is ended.
fn spin(context: &StreamContext, until: Nanos) {
    while clock::monotonic() < until && context.gate.stopped().is_none() {
        std::hint::spin_loop();
    }
}

/// `EIO` (no checksum offload), `EINVAL` and `EMSGSIZE` (a segment longer than the MTU).
fn refuses_segmentation(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(5 | 22 | 90))
}

/// What an ICMP message or a full queue tells, and the next send may no longer meet:
/// `ECONNREFUSED`, `EHOSTUNREACH`, `ENETUNREACH`, `ENETDOWN`, `ENOBUFS`, `EPERM` (a firewall).
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(1 | 100 | 101 | 105 | 111 | 113))
}
