//! One direction of the path at work: the machine that decides, and the packets that wait in the kernel.
//!
//! The kernel finds a packet among those that wait by walking from the oldest on. So packets that pass in
//! order are let go together, up to a number, and one that is dropped is kept until it is the oldest:
//! nobody can tell when a dropped packet is forgotten.

use std::collections::VecDeque;
use std::io;

use linerate_kernel::packet_queue::{PacketQueue, QueuedPacket, RawSender};
use linerate_model::units::Nanos;

use super::ip::{self, Header};
use super::lateness::Histogram;
use crate::path::{Direction, Fate, Packet, Verdict};

/// What a lane could not do, or did beside its verdicts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Injected {
    /// Copies and answers that were sent.
    pub(super) sent: u64,
    /// Those that the kernel refused.
    pub(super) failed: u64,
}

/// A direction and its waiting packets.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) queue: u16,
    pub(super) direction: Direction,
    pub(super) lateness: Histogram,
    pub(super) injected: Injected,
    /// Largest packet that the test's hosts send each other, and those of competing traffic, bytes.
    mtu: [u32; 2],
    /// Bytes of each packet to keep.
    kept: usize,
    waiting: VecDeque<Waiting>,
    /// The handle of the first that waits: handles ascend by one.
    oldest: u64,
    /// All up to this one are to be let go.
    run: Option<u32>,
    /// When those were due that have been decided in this turn.
    due: Vec<Nanos>,
}

#[derive(Debug)]
struct Waiting {
    id: u32,
    state: State,
    start: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    Gone,
    Lost,
}

impl Lane {
    pub(super) fn new(queue: u16, direction: Direction, mtu: [u32; 2], kept: usize) -> Self {
        Self {
            queue,
            direction,
            lateness: Histogram::new(),
            injected: Injected::default(),
            mtu,
            kept,
            waiting: VecDeque::new(),
            oldest: 0,
            run: None,
            due: Vec::new(),
        }
    }

    /// Takes a packet that the kernel tells. One that is no IP passes as it is, without a class.
    pub(super) fn arrive(&mut self, now: Nanos, queued: &QueuedPacket<'_>, cross: bool) {
        let handle = self.oldest + self.waiting.len() as u64;
        let kept = queued.start.len().min(self.kept);
        self.waiting.push_back(Waiting {
            id: queued.id,
            state: State::Held,
            start: queued.start[..kept].into(),
        });
        let header = Header::read(queued.start);
        let mtu = if queued.is_large {
            self.mtu[usize::from(cross)]
        } else {
            queued.length
        };
        let (segments, bytes) = header.map_or((1, u64::from(queued.length)), |header| {
            let extent = header.extent(queued.length, mtu);
            (extent.segments, extent.bytes)
        });
        let packet = Packet {
            id: handle,
            bytes,
            segments,
            ecn: header.map_or_else(Default::default, |header| header.ecn),
            dont_fragment: header.is_none_or(|header| header.dont_fragment),
            cross,
        };
        self.direction.handle_packet(now, packet);
    }

    /// Carries out at most `most` verdicts that are due; whether there may be more.
    pub(super) fn decide(
        &mut self,
        now: Nanos,
        most: usize,
        queue: &mut PacketQueue,
        raw: &RawSender,
    ) -> io::Result<bool> {
        self.direction.handle_timeout(now);
        for _ in 0..most {
            let Some(verdict) = self.direction.poll() else {
                return Ok(false);
            };
            self.carry_out(verdict, queue, raw)?;
        }
        Ok(true)
    }

    /// Hands over what [`decide`](Self::decide) left, and books when that was done.
    pub(super) fn hand_over(&mut self, queue: &mut PacketQueue) -> io::Result<()> {
        self.end_run(queue)?;
        queue.flush()
    }

    /// Books how late the packets of this turn were.
    pub(super) fn book(&mut self, now: Nanos) {
        for due in self.due.drain(..) {
            self.lateness.book(now.since(due));
        }
    }

    fn carry_out(
        &mut self,
        verdict: Verdict,
        queue: &mut PacketQueue,
        raw: &RawSender,
    ) -> io::Result<()> {
        let place = verdict.id.wrapping_sub(self.oldest);
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let Some(id) = self.waiting.get(place).map(|waiting| waiting.id) else {
            return Ok(());
        };
        if let Fate::Drop(_) | Fate::TooBig { .. } = verdict.fate {
            if let Fate::TooBig { mtu, answer: true } = verdict.fate {
                let answer = ip::too_big(&self.waiting[place].start, mtu);
                self.inject(answer.as_deref(), raw);
            }
            self.waiting[place].state = State::Lost;
            return self.forget(queue);
        }
        self.due.push(verdict.due);
        self.waiting[place].state = State::Gone;
        if place == 0 && verdict.fate == Fate::Deliver {
            // The next packets may join it.
            self.run = Some(id);
            return self.forget(queue);
        }
        self.end_run(queue)?;
        match verdict.fate {
            Fate::DeliverMarked if ip::mark(&mut self.waiting[place].start) => {
                queue.accept_changed(self.queue, id, &self.waiting[place].start)?;
            }
            _ => queue.accept(self.queue, id)?,
        }
        if let Fate::Duplicate(copies) = verdict.fate {
            // Behind the packet itself.
            queue.flush()?;
            for _ in 0..copies {
                let copy = std::mem::take(&mut self.waiting[place].start);
                self.inject(Some(&copy), raw);
                self.waiting[place].start = copy;
            }
        }
        self.forget(queue)
    }

    fn inject(&mut self, packet: Option<&[u8]>, raw: &RawSender) {
        match packet.map(|packet| raw.send(packet)) {
            Some(Ok(())) => self.injected.sent += 1,
            _ => self.injected.failed += 1,
        }
    }

    /// Takes the oldest away as long as nothing more is to come of them.
    fn forget(&mut self, queue: &mut PacketQueue) -> io::Result<()> {
        while let Some(waiting) = self.waiting.front() {
            let id = waiting.id;
            match waiting.state {
                State::Held => break,
                State::Gone => {}
                State::Lost => {
                    self.end_run(queue)?;
                    queue.discard(self.queue, id)?;
                }
            }
            self.waiting.pop_front();
            self.oldest += 1;
        }
        Ok(())
    }

    fn end_run(&mut self, queue: &mut PacketQueue) -> io::Result<()> {
        match self.run.take() {
            Some(id) => queue.accept_until(self.queue, id),
            None => Ok(()),
        }
    }
}
