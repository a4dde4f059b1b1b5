//! A pattern by `io_uring`: one thread keeps its requests on their way.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use linerate_kernel::ring::{Ring, RingEvent};
use linerate_model::probe::{Engine, NoRing, Pattern, ProbeEnd, TICK};
use linerate_model::units::Nanos;

use super::load::{Course, Done, Over, PATIENCE, Task, Watch, failed, now, short};
use super::meter::Meter;
use super::noise::Noise;

/// A ring for the task, or why there is none.
pub(super) fn ring(file: &File, task: &Task, stop: BorrowedFd<'_>) -> Result<Ring, NoRing> {
    let block = usize::try_from(task.pattern.block()).unwrap_or(usize::MAX);
    Ring::new(file, [task.pattern.depth(), block, task.alignment], stop)
}

pub(super) fn run(ring: Ring, task: &Task, tell: &mut dyn FnMut(Pattern, f64)) -> io::Result<Done> {
    let began = now();
    let depth = task.pattern.depth();
    let mut load = Load {
        ring,
        block: usize::try_from(task.pattern.block()).unwrap_or(usize::MAX),
        writes: task.pattern.writes(),
        course: Course::new(task),
        noise: Noise::new(task.seed),
        sent: vec![Nanos::ZERO; depth],
        meter: Meter::new(began, task.ramp),
        bytes: 0,
        over: false,
        ended: None,
    };
    let mut watch = Watch::new(task, began, tell);
    let mut end = load.keep_going(&mut watch)?;
    if load.ended == Some(ProbeEnd::Stopped) {
        end = now();
    } else {
        load.drain()?;
    }
    let mut done = Done::new(Engine::IoUring, load.meter, end, load.bytes);
    done.ended = load.ended;
    Ok(done)
}

struct Load {
    ring: Ring,
    block: usize,
    writes: bool,
    course: Course,
    noise: Noise,
    /// When each slot's request was sent.
    sent: Vec<Nanos>,
    meter: Meter,
    bytes: u64,
    /// Nothing more is sent.
    over: bool,
    ended: Option<ProbeEnd>,
}

impl Load {
    /// Until the pattern is over; gives the end of the measured time.
    fn keep_going(&mut self, watch: &mut Watch<'_>) -> io::Result<Nanos> {
        for slot in 0..self.sent.len() {
            self.send(slot)?;
        }
        self.ring.tick(TICK)?;
        let mut events = Vec::new();
        // A tick comes ten times a second, and the watch ends it.
        loop {
            self.ring.wait(&mut events)?;
            let instant = now();
            for event in events.drain(..) {
                match event {
                    RingEvent::Done(slot, result) => self.received(slot, result, instant)?,
                    RingEvent::Stop => self.end(ProbeEnd::Stopped),
                    RingEvent::Tick if watch.over(instant, || self.meter.clone()) => {
                        self.over = true;
                        return Ok(instant);
                    }
                    RingEvent::Tick => self.ring.tick(TICK)?,
                }
            }
            let idle = self.over && self.ring.under_way() == 0;
            if idle || self.ended == Some(ProbeEnd::Stopped) {
                return Ok(instant);
            }
        }
    }

    /// What is under way comes back, and is not measured any more.
    fn drain(&mut self) -> io::Result<()> {
        let until = now().plus(PATIENCE);
        self.ring.tick(TICK)?;
        let mut events = Vec::new();
        while self.ring.under_way() > 0 && self.ended != Some(ProbeEnd::Stopped) {
            self.ring.wait(&mut events)?;
            for event in events.drain(..) {
                match event {
                    RingEvent::Done(_, Ok(bytes)) => self.bytes += bytes as u64,
                    RingEvent::Done(_, Err(error)) => self.end(failed(&error)),
                    RingEvent::Stop => self.end(ProbeEnd::Stopped),
                    RingEvent::Tick if now() >= until => {
                        self.end(ProbeEnd::NoAnswer);
                        return Ok(());
                    }
                    RingEvent::Tick => self.ring.tick(TICK)?,
                }
            }
        }
        Ok(())
    }

    fn received(
        &mut self,
        slot: usize,
        result: io::Result<usize>,
        instant: Nanos,
    ) -> io::Result<()> {
        match result {
            Ok(bytes) if bytes == self.block => {
                self.bytes += bytes as u64;
                self.meter.ended(self.sent[slot], instant);
                self.send(slot)?;
            }
            Ok(_) => self.end(failed(&short())),
            Err(error) => self.end(failed(&error)),
        }
        Ok(())
    }

    /// Sends the next request in a slot that is free.
    fn send(&mut self, slot: usize) -> io::Result<()> {
        if self.over {
            return Ok(());
        }
        let offset = match self.course.next(&mut self.noise) {
            Ok(offset) => offset,
            Err(Over::Whole) => {
                self.over = true;
                return Ok(());
            }
            Err(Over::Budget) => {
                self.end(ProbeEnd::Budget);
                return Ok(());
            }
        };
        if self.writes
            && let Some(buffer) = self.ring.buffer(slot)
        {
            self.noise.fill(buffer);
        }
        self.sent[slot] = now();
        if self.writes {
            self.ring.write(slot, self.block, offset)?;
        } else {
            self.ring.read(slot, self.block, offset)?;
        }
        // All that ended together, sent together, would end together again: the disk would have nothing to do meanwhile.
        // A single one is sent by the wait for it.
        if self.sent.len() > 1 {
            self.ring.send()?;
        }
        Ok(())
    }

    /// The first reason stays, but for the user's.
    fn end(&mut self, why: ProbeEnd) {
        self.over = true;
        if self.ended.is_none() || why == ProbeEnd::Stopped {
            self.ended = Some(why);
        }
    }
}
