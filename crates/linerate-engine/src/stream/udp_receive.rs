//! Receiving over UDP: batches of merged datagrams, each datagram judged by its own counter.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_kernel::poll::Interest;
use linerate_kernel::{clock, socket, udp};
use linerate_model::plan::{Direction, End};
use linerate_model::progress::UdpInterval;
use linerate_model::record::UdpCounts;
use linerate_model::units::Nanos;
use linerate_wire::iperf2::datagram::Head;
use linerate_wire::iperf2::report::Report;
use linerate_wire::jitter::{Jitter, Transit};
use linerate_wire::sequence::SequenceTracker;
use linerate_wire::transits::{self, TransitCollector};
use linerate_wire::udp::{CounterWidth, DataHeader, HANDSHAKE_ANSWER};

use super::iperf2::{self, Flow};
use super::recorder::{Recorder, UdpSample};
use super::{RECEIVER_DRAIN_BOUND, StreamContext, StreamResult};

/// Datagrams (or merged ones) a system call, and of all streams of a test together.
const MESSAGES: usize = 4;
const ALL_MESSAGES: usize = 64;
/// The longest datagram, or merged ones.
const MESSAGE_BYTES: usize = 65_536;
/// Datagrams in a merged buffer, at most (`UDP_MAX_SEGMENTS`, Linux 6.9; 64 before).
const MOST_MERGED: u64 = 128;
/// Buffers that may wait on another CPU (`net.core.netdev_max_backlog`, by default).
const BACKLOG: u32 = 1000;
/// After the end, this long without a datagram (and two round trips) means that no more will come.
const QUIET: Nanos = Nanos::from_millis(50);
/// Over iperf2's wire what the network reordered is read for so long after the end of a flow, while more comes.
const AFTER_END: Nanos = Nanos::from_millis(50);
/// A `-n` test over a stock sender ends when nothing came for this long: what is missing is lost.
const STARVED: Nanos = Nanos::from_millis(2000);

/// What a stream receives into, and what it keeps of the time that datagrams took, where its test has so many at this end,
/// bytes.
pub(crate) fn buffer_bytes(streams: usize) -> usize {
    messages(streams) * MESSAGE_BYTES + transits::bytes(streams)
}

fn messages(streams: usize) -> usize {
    (ALL_MESSAGES / streams.max(1)).clamp(1, MESSAGES)
}

pub(super) fn run(context: &StreamContext, stream: UdpSocket) -> StreamResult {
    let mut recorder = Recorder::new(context, stream.as_fd());
    let mut receiver = Receiver::new(context);
    if recorder.wait_for_start(None) {
        receiver.pump(context, stream.as_fd(), &mut recorder);
    }
    let ended = receiver.ended.as_ref().map(|ended| ended.datagrams);
    receiver.counts.peer_sent = context.peer_sent.told().or(ended);
    receiver.attribute_tail(stream.as_fd());
    recorder.drained = receiver
        .counts
        .peer_sent
        .is_some_and(|sent| receiver.tracker.counts().unique >= sent);
    let sample = receiver.sample();
    let counts = receiver.final_counts();
    recorder.finish_udp(stream, &sample, counts)
}

struct Receiver {
    tracker: SequenceTracker,
    jitter: Jitter,
    transit: Transit,
    transits: TransitCollector,
    width: CounterWidth,
    counts: UdpCounts,
    omitting: bool,
    drops: Drops,
    /// The last send stamp that was looked at.
    last_stamp: Option<Nanos>,
    /// Over iperf2's wire: the flow has ended.
    ended: Option<FlowEnd>,
}

/// The end of a flow over iperf2's wire.
struct FlowEnd {
    datagrams: u64,
    at: Nanos,
    /// The datagram that told it, as far as a report needs it.
    head: Vec<u8>,
}

/// What of the missing datagrams this socket dropped.
///
/// The kernel stamps its count of drops on each buffer as it queues it, and counts a buffer of merged datagrams once, so the
/// gap in front of it tells how many datagrams they were. Where the sender moved to another CPU, buffers of the old one may
/// come, and be dropped, after later ones of the new one: what is counted beyond a gap was missing in one before.
#[derive(Debug, Default)]
struct Drops {
    /// The kernel's count on the last delivery.
    seen: u32,
    /// Dropped buffers.
    buffers: u64,
    /// Dropped datagrams.
    datagrams: u64,
    /// Missing datagrams, of the last [`BACKLOG`] buffers, whose drop was not counted (yet).
    unexplained: u64,
    /// Buffers since the last of these.
    since: u32,
}

impl Drops {
    /// Books a gap of so many datagrams in front of a buffer that holds `merged` and is stamped with `drops`.
    fn book(&mut self, gap: u64, drops: u32, merged: u64) {
        let grown = u64::from(drops.wrapping_sub(self.seen));
        self.seen = drops;
        self.buffers += grown;
        let here = gap.min(grown.saturating_mul(MOST_MERGED));
        if self.since > BACKLOG {
            self.unexplained = 0;
        }
        let beyond = grown.saturating_sub(gap.div_ceil(merged.max(1)));
        let earlier = beyond.saturating_mul(merged).min(self.unexplained);
        self.unexplained -= earlier;
        self.datagrams += here + earlier;
        self.since = self.since.saturating_add(1);
        if gap > here {
            self.unexplained += gap - here;
            self.since = 0;
        }
    }
}

impl Receiver {
    fn new(context: &StreamContext) -> Self {
        let counts = UdpCounts {
            handshake_repeats: context.handshake_repeats,
            ..UdpCounts::default()
        };
        Self {
            tracker: SequenceTracker::default(),
            jitter: Jitter::default(),
            transit: Transit::default(),
            transits: TransitCollector::new(context.plan.ends_at(Nanos::ZERO), context.streams),
            width: CounterWidth::from_parameter(context.wide_counters),
            counts,
            omitting: context.plan.omit_ns.0 > 0,
            drops: Drops::default(),
            last_stamp: None,
            ended: None,
        }
    }

    fn pump(&mut self, context: &StreamContext, fd: BorrowedFd<'_>, recorder: &mut Recorder<'_>) {
        // Without the counter the drops are known at the end only.
        drop(udp::enable_drop_counter(fd));
        let mut batch = udp::Receiver::new(messages(context.streams), MESSAGE_BYTES);
        let mut drain = None;
        let mut heard = clock::monotonic();
        self.take_early(context, recorder);
        while !context.gate.is_cut() {
            let now = clock::monotonic();
            if recorder.due(now) {
                recorder.tick_udp(now, &self.sample());
                self.transit.look_anew();
                self.mark_omitted(recorder);
            }
            if self
                .ended
                .as_ref()
                .is_some_and(|ended| now.since(ended.at) > AFTER_END)
            {
                return self.tell(context, fd, recorder);
            }
            if context.gate.stopped().is_some() {
                let began = *drain.get_or_insert(now);
                if self.is_complete(context, now, began, heard) {
                    return;
                }
            } else if self.is_starved(context, now, heard) {
                return;
            }
            match batch.receive(fd) {
                Ok(messages) => {
                    heard = clock::monotonic();
                    for index in 0..messages {
                        self.take(context, fd, batch.message(index), heard, recorder);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.ended.is_some() {
                        return self.tell(context, fd, recorder);
                    }
                    let soon = drain.map(|_| now.plus(Nanos::from_millis(5)));
                    recorder.wait(fd, Interest::READ, soon);
                }
                // The sender over the same socket hears of it here, or not at all.
                Err(error)
                    if context.plan.direction == Direction::Both
                        && iperf2::is_left(context, &error, now) =>
                {
                    iperf2::leave(context, recorder, &error, now);
                }
                // A refusal is the echo of something that we sent, a signal is none of ours.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionRefused
                    ) => {}
                Err(error) => {
                    recorder.fail("receiving datagrams", &error);
                    return;
                }
            }
        }
    }

    fn take(
        &mut self,
        context: &StreamContext,
        fd: BorrowedFd<'_>,
        message: udp::Message<'_>,
        now: Nanos,
        recorder: &mut Recorder<'_>,
    ) {
        let mut drops = Some(message.drops.unwrap_or(0));
        let mut bytes = 0;
        let mut run: Option<(u64, u64)> = None;
        // Datagrams of one stamp, which are booked together.
        let mut batch: Option<(Nanos, u64)> = None;
        for datagram in message.data.chunks(message.segment.max(1)) {
            if context.handshake.as_deref() == Some(datagram) {
                // Our answer was lost: the peer asks again.
                drop(socket::send(fd, &HANDSHAKE_ANSWER));
                continue;
            }
            let highest = self.highest_so_far(run);
            let Some((counter, sent)) = self.number(context, datagram, highest, now) else {
                continue;
            };
            if let Some(drops) = drops.take() {
                let merged = message.data.len().div_ceil(message.segment.max(1));
                self.attribute(counter, drops, merged as u64);
            }
            bytes += datagram.len() as u64;
            batch = match batch {
                Some((of, count)) if of == sent => Some((of, count + 1)),
                other => {
                    self.book_transit(other, now);
                    if self.last_stamp != Some(sent) {
                        // Datagrams of one batch left at one instant: their differences would be zeros by
                        // construction, and drown those of the path.
                        self.last_stamp = Some(sent);
                        self.jitter.record(sent, now);
                        self.transit.record(sent, now);
                    }
                    Some((sent, 1))
                }
            };
            run = match run {
                Some((first, count)) if first.checked_add(count) == Some(counter) => {
                    Some((first, count + 1))
                }
                other => {
                    self.record(other);
                    Some((counter, 1))
                }
            };
        }
        self.record(run);
        self.book_transit(batch, now);
        if bytes > 0 {
            recorder.moved(now, bytes);
        }
    }

    /// A datagram's counter, from 1 on, and when it was sent; `None` where it counts as none.
    fn number(
        &mut self,
        context: &StreamContext,
        datagram: &[u8],
        highest: u64,
        now: Nanos,
    ) -> Option<(u64, Nanos)> {
        if let Some(flow) = &context.iperf2 {
            return self.number_iperf2(flow, datagram, highest, now);
        }
        let Some(header) = DataHeader::decode(self.width, datagram) else {
            self.counts.malformed += 1;
            return None;
        };
        let counter = self.width.whole(header.counter, || highest);
        Some((counter, header.sent()))
    }

    fn number_iperf2(
        &mut self,
        flow: &Flow,
        datagram: &[u8],
        highest: u64,
        now: Nanos,
    ) -> Option<(u64, Nanos)> {
        let Some(head) = Head::decode(flow.layout, datagram) else {
            self.counts.malformed += 1;
            return None;
        };
        let counts_last = flow.layout.counts_last();
        let Some(datagrams) = head.ends(highest) else {
            let first = i64::from(!counts_last);
            let counter = u64::try_from(head.number.saturating_add(first)).ok()?;
            return Some((counter, head.sent()));
        };
        if self.ended.is_some() {
            // The same once more: the report is under way.
            return None;
        }
        // 2.0.6 tells fewer than it sent.
        let datagrams = datagrams.max(highest);
        self.ended = Some(FlowEnd {
            datagrams,
            at: now,
            head: datagram[..flow.layout.bytes()].to_vec(),
        });
        counts_last.then(|| (datagrams, head.sent()))
    }

    /// Counts what came before the flow had this socket.
    fn take_early(&mut self, context: &StreamContext, recorder: &mut Recorder<'_>) {
        let Some(flow) = &context.iperf2 else {
            return;
        };
        for early in &flow.early {
            let head = &early.head[..early.bytes.min(early.head.len())];
            let highest = self.tracker.counts().highest;
            if let Some((counter, sent)) = self.number_iperf2(flow, head, highest, early.came) {
                self.tracker.record(counter);
                self.jitter.record(sent, early.came);
                self.transit.record(sent, early.came);
                self.transits.record(sent, early.came, 1);
                recorder.moved(early.came, early.bytes as u64);
            }
        }
    }

    /// Reports what was counted to the sender of a flow that has ended.
    fn tell(&mut self, context: &StreamContext, fd: BorrowedFd<'_>, recorder: &Recorder<'_>) {
        let (Some(flow), Some(ended)) = (&context.iperf2, &self.ended) else {
            return;
        };
        let seen = self.tracker.counts();
        let report = Report {
            bytes: recorder.bytes,
            lasted: recorder.lasted(),
            lost: ended.datagrams.saturating_sub(seen.unique),
            out_of_order: seen.reordered,
            datagrams: ended.datagrams,
            jitter: self.jitter.smoothed(),
            transit: None,
        };
        flow.report(fd, report, &ended.head);
    }

    fn highest_so_far(&self, run: Option<(u64, u64)>) -> u64 {
        let of_run = run.map_or(0, |(first, count)| first.saturating_add(count - 1));
        self.tracker.counts().highest.max(of_run)
    }

    fn record(&mut self, run: Option<(u64, u64)>) {
        if let Some((first, count)) = run {
            self.tracker.record_run(first, count);
        }
    }

    /// Books how long so many datagrams of one stamp, which were read at `now`, were on their way.
    fn book_transit(&mut self, batch: Option<(Nanos, u64)>, now: Nanos) {
        if let Some((sent, datagrams)) = batch {
            self.transits.record(sent, now, datagrams);
        }
    }

    /// Books what is missing before `first`, the first of so many datagrams that came `merged` in a buffer.
    fn attribute(&mut self, first: u64, drops: u32, merged: u64) {
        let gap = first.saturating_sub(self.tracker.counts().highest + 1);
        self.drops.book(gap, drops, merged);
        self.counts.socket_drops_buffers = Some(self.drops.buffers);
        self.counts.socket_drops = Some(self.drops.datagrams);
    }

    /// What was dropped after the last delivery: the socket itself is asked.
    fn attribute_tail(&mut self, fd: BorrowedFd<'_>) {
        let Ok(socket::MemoryInfo { drops, .. }) = socket::memory(fd) else {
            return;
        };
        let sent = self
            .counts
            .peer_sent
            .unwrap_or_else(|| self.tracker.counts().highest);
        self.attribute(sent.saturating_add(1), drops, 1);
    }

    fn mark_omitted(&mut self, recorder: &Recorder<'_>) {
        if self.omitting && !recorder.omitting() {
            self.omitting = false;
            self.counts.unique_omitted = self.tracker.counts().unique;
            self.counts.highest_omitted = self.tracker.counts().highest;
            self.transits.omit();
        }
    }

    /// Whether everything came that will come.
    fn is_complete(&self, context: &StreamContext, now: Nanos, began: Nanos, heard: Nanos) -> bool {
        let quiet =
            now.since(heard.max(began)) > QUIET.plus(Nanos(context.round_trip.0.saturating_mul(2)));
        let told = context.peer_sent.told();
        let all = told.is_some_and(|sent| self.tracker.counts().unique >= sent);
        let waiting_to_be_told = context.peer_extended && told.is_none();
        all || (quiet && !waiting_to_be_told) || now.since(began) > RECEIVER_DRAIN_BOUND
    }

    /// A `-n` test in reverse from a stock sender, whose last datagrams were lost, never gets its bytes.
    fn is_starved(&self, context: &StreamContext, now: Nanos, heard: Nanos) -> bool {
        !matches!(context.plan.end, End::TimeNs(_))
            && self.tracker.counts().received > 0
            && now.since(heard) > STARVED
    }

    fn sample(&self) -> UdpSample {
        let counts = self.tracker.counts();
        let missing = i64::try_from(counts.missing()).unwrap_or(i64::MAX);
        UdpSample {
            values: [
                counts.received,
                counts.unique,
                counts.duplicates,
                counts.reordered,
                counts.highest,
                self.counts.socket_drops.unwrap_or(0),
                self.transit.over_least().0,
            ],
            live: UdpInterval {
                packets: counts.highest,
                lost: missing,
                out_of_order: counts.reordered,
                jitter_ns: self.jitter.smoothed().0,
            },
        }
    }

    fn final_counts(self) -> UdpCounts {
        let seen = self.tracker.counts();
        let distribution = self.jitter.distribution();
        let quantile = |permille| distribution.quantile(permille).unwrap_or_default().0;
        UdpCounts {
            received: seen.received,
            unique: seen.unique,
            duplicates: seen.duplicates,
            reordered: seen.reordered,
            too_old: seen.too_old,
            highest: seen.highest,
            jitter_ns: (seen.received > 1).then(|| self.jitter.smoothed().0),
            transit_change_ns: distribution
                .max()
                .map(|most| [quantile(500), quantile(900), quantile(990), most.0]),
            transits: Some(self.transits.finish()),
            ..self.counts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BACKLOG, Drops};

    fn booked(buffers: impl IntoIterator<Item = (u64, u32)>) -> u64 {
        let mut drops = Drops::default();
        for (gap, count) in buffers {
            drops.book(gap, count, 40);
        }
        drops.datagrams
    }

    #[test]
    fn gaps_with_counted_drops_are_this_socket_s_and_others_the_path_s() {
        assert_eq!(booked([(0, 0), (120, 3), (80, 5)]), 200);
        assert_eq!(booked([(120, 0), (0, 0), (7, 0)]), 0);
        // A buffer holds no more than the kernel merges.
        assert_eq!(booked([(1000, 1)]), 128);
        // The path's losses stay the path's where the socket drops as well.
        assert_eq!(booked([(400, 0), (120, 3), (80, 5), (40, 6)]), 240);
    }

    #[test]
    fn buffers_that_are_dropped_after_later_ones_are_found_in_the_gap_before() {
        assert_eq!(booked([(400, 0), (0, 10)]), 400);
        assert_eq!(booked([(400, 0), (0, 4), (120, 13)]), 520);
        // After so many buffers none of them waits any more.
        let much_later = (0..=BACKLOG + 1).map(|_| (0, 0));
        assert_eq!(
            booked([(400, 0)].into_iter().chain(much_later).chain([(0, 10)])),
            0
        );
    }
}
