//! A test whose streams run: following it, holding it to its bounds, and concluding it.

use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_kernel::{clock, socket};
use linerate_model::plan::{End, Plan};
use linerate_model::progress::Event;
use linerate_model::record::{
    ControlFacts, EndRecord, Kind, Outcome, PeerResults, Role, RunRecord, SCHEMA_VERSION,
};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_wire::control::ServerEvent as Said;
use linerate_wire::udp::HANDSHAKE_ANSWER;
use serde::Serialize;

use crate::control::Turn;
use crate::gate::{FileEnd, Gate};
use crate::half::Before;
use crate::intervals::Intervals;
use crate::results;
use crate::stream::{self, StreamHandle};
use crate::transfer::STORE_STALL;

use super::limits::{
    ANSWER_BYTES, EXPIRED, FILE, NOTHING_RECEIVED, RATE_TOO_HIGH, UNUSABLE_RESULTS,
};
use super::refusal::Refusal;
use super::session::{ANSWER_AGAIN, PATIENCE, Session};
use super::storing::Storing;
use super::telling::Telling;
use super::{Cause, Held, OwnReport, Shared};

/// How much longer than planned a client may take to end its test, as with iperf3.
const OVERTIME: Nanos = Nanos::from_millis(40_000);
/// For how long a stock client's opening datagram is answered again.
const ANSWER_UNTIL: Nanos = Nanos::from_millis(10_000);
/// One sample in so many, where hardly any of them fits: the first and the last.
const MOST_LEFT_OUT: usize = 1 << 22;
/// How often a running test is looked at.
const LOOK: Nanos = Nanos::from_millis(100);

/// A test that has a record.
pub(super) struct Concluded {
    pub(super) record: RunRecord,
    /// What ended it, where it did not complete.
    pub(super) cause: Option<Cause>,
    /// Whether the end was told, or made here.
    pub(super) in_order: bool,
}

/// A test whose streams run.
pub(super) struct Running {
    pub(super) plan: Arc<Plan>,
    pub(super) gate: Arc<Gate>,
    pub(super) streams: Vec<StreamHandle>,
    pub(super) before: Before,
    /// Duplicates of a stock client's UDP sockets, to answer again on, and when to.
    pub(super) answer_again: Vec<std::net::UdpSocket>,
    pub(super) events: Vec<Event>,
    /// Where the client asked for our report: figures of so many streams in an interval can still be kept for it.
    pub(super) keep_events: Option<usize>,
    /// How often the client wants to be told what arrives.
    pub(super) told_every_ns: Option<u64>,
    pub(super) control: ControlFacts,
    pub(super) started_at_unix_ms: u64,
}

impl<'a> Session<'a> {
    /// Follows the streams; `Ok` inside where the client said that the test is over, else what ended it.
    pub(super) fn measure(
        &mut self,
        running: &mut Running,
    ) -> Result<(Result<(), Refusal>, Intervals), Refusal> {
        if let Err(error) = self.link.machine.start_test() {
            running.gate.cut();
            return Err(error.into());
        }
        drop(self.link.flush());
        if let Some(target) = self.target() {
            target.start();
        }
        let start = running.gate.open();
        self.tell(&Event::Started);
        running.keep(Event::Started);
        let mut intervals = Intervals::new(&running.plan, start, running.streams.len());
        let ending = self.follow(running, start, &mut intervals);
        self.tell(&Event::Ending);
        Ok((ending, intervals))
    }

    fn follow(
        &mut self,
        running: &mut Running,
        start: Nanos,
        intervals: &mut Intervals,
    ) -> Result<(), Refusal> {
        let planned = match running.plan.end {
            End::TimeNs(Nanos::ZERO) => {
                let longest = self.shared.options.limits.duration;
                Some(start.plus(running.plan.omit_ns).plus(longest))
            }
            _ => running.plan.ends_at(start).map(|end| end.plus(OVERTIME)),
        };
        let matters = self.shared.options.limits.bytes_that_matter(&running.plan);
        let mut watch = Watch::new(start, matters);
        let mut told_finishing = false;
        let target = self.target();
        let mut storing = Storing::default();
        let mut telling = Telling::new(running.told_every_ns, start, running.streams.len());
        loop {
            let now = clock::monotonic();
            if let Some(interval) = intervals.take(now, &running.streams) {
                let event = Event::Interval(interval);
                self.tell(&event);
                running.keep(event);
            }
            let stored = target.as_ref().map(|target| target.progress());
            watch.look(now, self.shared, running, planned, stored)?;
            let failed = running.failed_by_file();
            if let Some(target) = &target {
                let error = target.failed().or(failed.map(|refusal| refusal.reason));
                if let Some(stored) = storing.take(now, target.as_ref(), error)
                    && !matches!(self.link.flush(), Ok(true))
                {
                    drop(self.link.machine.send_stored(stored));
                }
            } else if let Some(refusal) = failed {
                return Err(refusal);
            }
            if !told_finishing && self.extended && senders_finished(running) {
                told_finishing = true;
                // A linerate ends a -n test when it knows that everything was sent.
                let finishing = stream::finishing(&running.streams);
                self.link.machine.send_finishing(finishing)?;
            }
            if let Some(received) = telling.take(now, &running.streams).filter(|_| self.extended)
                // A client that does not read is not told more.
                && !matches!(self.link.flush(), Ok(true))
            {
                // Refused where the client's end of the test has come with what was heard last, and is heard next.
                drop(self.link.machine.send_received(received));
            }
            running.answer_stock_clients(now, start);
            let gate = Arc::clone(&running.gate);
            let until = intervals.wake().min(now.plus(LOOK)).min(telling.wake());
            let others = [gate.news_fd(), self.shared.terminate.as_fd()];
            match self.link.turn(&others, until)? {
                Turn::Woken(0) => gate.hear(),
                Turn::Woken(_) => return Err(Refusal::server_stopped()),
                Turn::Event(Said::TestEnd) => return Ok(()),
                Turn::Event(Said::ClientTerminated) => return Err(Refusal::client_stopped()),
                Turn::Event(Said::Done) => return Err(Refusal::client_done()),
                Turn::Event(Said::Finishing(told)) => {
                    stream::tell_receivers(&running.streams, &told);
                }
                Turn::TimedOut | Turn::Event(_) => {}
            }
        }
    }

    /// Drains, exchanges results, and writes the record.
    pub(super) fn conclude(
        &mut self,
        running: &mut Running,
        mut ended: Result<(), Refusal>,
        intervals: &mut Intervals,
    ) -> Concluded {
        running.answer_again.clear();
        running.gate.close();
        match ended.as_ref().map_err(|refusal| refusal.cause) {
            Ok(()) => running.gate.peer_has_stopped(),
            Err(cause) => {
                running.gate.cut();
                if cause == Cause::ServerStopped {
                    self.link.machine.terminate();
                } else {
                    self.tell_why(cause);
                }
            }
        }
        if ended.is_ok() && self.extended && !running.told_everything() {
            self.wait_for_senders(running);
            // Told already where a -n test ran to its end; the second telling is refused by the machine.
            let finishing = stream::finishing(&running.streams);
            drop(self.link.machine.send_finishing(finishing));
            drop(self.link.flush());
        }
        let (records, sockets, shares) = stream::join_all(&mut running.streams);
        self.shares.extend(shares);
        // A write may fail while what was under way arrives.
        let target = self.target();
        if let Some(target) = &target
            && ended.is_ok()
            && let Err(refusal) = self.store_the_rest(target.as_ref())
        {
            self.tell_why(refusal.cause);
            ended = Err(refusal);
        }
        if let Some(target) = &target {
            target.stop();
        }
        // What ends a target is in its record, which the client gets.
        let failed = running.failed_by_file().filter(|_| target.is_none());
        if let Some(refusal) = failed.filter(|_| ended.is_ok()) {
            self.tell_why(refusal.cause);
            ended = Err(refusal);
        }
        if let Some(interval) = intervals.last(&records, running.gate.stopped().unwrap_or_default())
        {
            let event = Event::Interval(interval);
            self.tell(&event);
            running.keep(event);
        }
        // Asked for before our half is made: the client makes its own meanwhile.
        let asked = match ended {
            Ok(()) => self.ask_for_results(),
            Err(_) => Ok(()),
        };
        let before = std::mem::take(&mut running.before);
        let software = &self.shared.options.software;
        let mut half = before.finish(Role::Server, software, &running.gate, records);
        half.stage = target.map(|target| target.record());
        let not_stored = half.stage.as_ref().and_then(|stage| stage.error.clone());
        let mut peer = None;
        let exchanged = match asked {
            Ok(()) if ended.is_ok() => self.exchange(running, &half, &mut peer),
            asked => asked,
        };
        if let Err(refusal) = &exchanged {
            self.tell_why(refusal.cause);
        }
        drop(
            self.link
                .flush_until(clock::monotonic().plus(Nanos::from_millis(1000))),
        );
        drop(sockets);
        // iperf3 sums up what was measured then, and only then.
        let in_order = matches!(
            ended.as_ref().map_err(|refusal| refusal.cause),
            Ok(()) | Err(Cause::ClientStopped | Cause::ServerStopped | Cause::System(FILE, _))
        );
        let (mut outcome, cause) = outcome(ended, exchanged);
        if let (Outcome::Completed, Some(error)) = (&outcome, not_stored) {
            outcome = Outcome::Failed { error };
        }
        Concluded {
            record: self.record(running, outcome, half, peer),
            cause,
            in_order,
        }
    }

    /// Our senders end by their own bounds; the link is served meanwhile.
    fn wait_for_senders(&mut self, running: &Running) {
        let until = clock::monotonic().plus(PATIENCE);
        while !senders_finished(running) {
            match self.link.turn(&[running.gate.news_fd()], until) {
                Ok(Turn::Woken(_)) => running.gate.hear(),
                Ok(Turn::Event(Said::Finishing(told))) => {
                    stream::tell_receivers(&running.streams, &told);
                }
                Ok(Turn::Event(_)) => {}
                Ok(Turn::TimedOut) | Err(_) => return,
            }
        }
    }

    fn record(
        &self,
        running: &Running,
        outcome: Outcome,
        half: EndRecord,
        peer_results: Option<PeerResults>,
    ) -> RunRecord {
        RunRecord {
            schema_version: SCHEMA_VERSION,
            kind: Kind::Test,
            written_by: Role::Server,
            software: self.shared.options.software.clone(),
            started_at_unix_ms: running.started_at_unix_ms,
            plan: Plan::clone(&running.plan),
            outcome,
            cookie: self.place.cookie.text().into_owned().into(),
            control: running.control.clone(),
            client: None,
            server: Some(half),
            peer_results,
            clock: None,
            notes: Vec::new(),
            latency: None,
            counter_runs: Vec::new(),
            cells: Vec::new(),
            host_names: None,
        }
    }

    /// Sends our half as JSON of at most `bound` bytes, and no more than there is memory for: where it is longer, it has every
    /// second sample, or fewer, and says so. What is held for it is given back when the client has read it.
    fn send_half(&mut self, half: &EndRecord, bound: u64) -> Result<Held<'a>, Refusal> {
        let shared = self.shared;
        let wanted = usize::try_from(bound).unwrap_or(usize::MAX);
        let full = json_bytes(half);
        let most = wanted.min(shared.options.limits.record_bytes());
        let mut held = shared.hold(full.min(most));
        // A short one is part of what its test was admitted with.
        let json = if full <= held.bytes || full <= ANSWER_BYTES.min(wanted) {
            to_json(half, full)
        } else {
            // One at a time: a copy with fewer samples takes memory as well. A caller that needs none does not wait.
            let _turn = shared.turn.lock();
            let factor = full.div_ceil(held.bytes.max(1)).next_power_of_two();
            let mut factor = factor.clamp(2, MOST_LEFT_OUT);
            loop {
                let mut fewer = half.thinned(factor);
                // Some kilobytes, which a slow path carries as slowly as samples.
                if factor == MOST_LEFT_OUT && json_bytes(&fewer) > held.bytes {
                    fewer.host.fingerprint = None;
                }
                let length = json_bytes(&fewer);
                if length <= held.bytes || factor == MOST_LEFT_OUT {
                    break to_json(&fewer, length);
                }
                factor = (factor * 8).min(MOST_LEFT_OUT);
            }
        };
        held.keep(json.len());
        self.link.machine.send_end(json)?;
        self.link.flush()?;
        Ok(held)
    }

    fn ask_for_results(&mut self) -> Result<(), Refusal> {
        self.link.machine.exchange_results()?;
        self.link.flush()?;
        Ok(())
    }

    fn exchange(
        &mut self,
        running: &Running,
        half: &EndRecord,
        peer: &mut Option<PeerResults>,
    ) -> Result<(), Refusal> {
        let until = clock::monotonic().plus(PATIENCE.plus(PATIENCE));
        // For what is on its way to the client.
        let mut held = None;
        loop {
            let unread = |session: &Self, refusal| match peer {
                None => session.unread(UNUSABLE_RESULTS, refusal),
                Some(_) => refusal,
            };
            let said = self.next(until);
            match said.map_err(|refusal| unread(self, refusal))? {
                Said::PeerResults(theirs) => {
                    *peer = Some(results::from_peer(theirs));
                    let mut ours = results::of_half(half);
                    if let (Some(_), Some(output)) =
                        (running.keep_events, &self.shared.options.output)
                    {
                        let without_samples = half.thinned(usize::MAX);
                        let so_far =
                            self.record(running, Outcome::Completed, without_samples, peer.clone());
                        match output(&so_far, &running.events) {
                            OwnReport::Text(text) => ours.server_output_text = Some(text.into()),
                            OwnReport::Json(document) => ours.server_output_json = Some(document),
                        }
                    }
                    self.link.machine.send_results(&ours)?;
                    if !self.extended {
                        self.link.machine.display_results()?;
                    }
                }
                Said::Ping { n } => self.pong(n)?,
                Said::EndRequested { max_bytes } => {
                    // The answers about our clock first.
                    self.link.flush()?;
                    held = Some(self.send_half(half, max_bytes)?);
                    self.link.machine.display_results()?;
                }
                Said::Done => {
                    drop(held);
                    return Ok(());
                }
                Said::ClientTerminated => {
                    let reason = "the client stopped".to_owned();
                    return Err(Refusal::new(Cause::ClientStopped, reason));
                }
                _ => {}
            }
        }
    }
}

impl Running {
    /// A test without streams yet.
    pub(super) fn new(plan: Arc<Plan>, gate: Arc<Gate>, before: Before) -> Self {
        Self {
            plan,
            gate,
            streams: Vec::new(),
            before,
            answer_again: Vec::new(),
            events: Vec::new(),
            keep_events: None,
            told_every_ns: None,
            control: ControlFacts::default(),
            started_at_unix_ms: 0,
        }
    }

    /// Keeps an interval for the client that wants our report, while there is room for it.
    fn keep(&mut self, event: Event) {
        let of = |event: &Event| match event {
            Event::Interval(interval) => interval.streams.len().max(1),
            _ => 1,
        };
        if let Some(room) = &mut self.keep_events
            && let Some(left) = room.checked_sub(of(&event))
        {
            *room = left;
            self.events.push(event);
        }
    }

    /// A stock client's opening datagram was answered once; if nothing comes, the answer was lost.
    fn answer_stock_clients(&mut self, now: Nanos, start: Nanos) {
        if self.answer_again.is_empty() {
            return;
        }
        if now.since(start) > ANSWER_UNTIL {
            self.answer_again.clear();
            return;
        }
        let silent = self
            .streams
            .iter()
            .filter(|stream| !stream.sends)
            .any(|stream| stream.live.latest().bytes == 0);
        if silent && now.since(start) > ANSWER_AGAIN {
            for socket in &self.answer_again {
                drop(socket::send(socket.as_fd(), &HANDSHAKE_ANSWER));
            }
        } else if !silent {
            self.answer_again.clear();
        }
    }

    /// Why the file of `-F` ends the test, if it does.
    fn failed_by_file(&self) -> Option<Refusal> {
        let FileEnd::Failed { error, errno } = self.gate.file_end()? else {
            return None;
        };
        Some(Refusal::new(Cause::System(FILE, *errno), error.clone()))
    }

    /// Bytes that arrived; absent where no stream receives any more.
    fn received(&self) -> Option<u64> {
        let receivers = self.streams.iter().filter(|stream| !stream.sends);
        receivers
            .clone()
            .any(|stream| !stream.is_finished())
            .then(|| receivers.map(|stream| stream.live.latest().bytes).sum())
    }

    /// Whether there is nothing to tell about what was sent.
    fn told_everything(&self) -> bool {
        self.streams.iter().all(|stream| !stream.sends)
    }
}

/// How a test ended, and what ended it where it did not complete.
pub(super) fn outcome(
    ended: Result<(), Refusal>,
    exchanged: Result<(), Refusal>,
) -> (Outcome, Option<Cause>) {
    let (refusal, doing) = match (ended, exchanged) {
        (Ok(()), Ok(())) => return (Outcome::Completed, None),
        (Ok(()), Err(refusal)) => (refusal, "exchanging results: "),
        (Err(refusal), _) => (refusal, ""),
    };
    let cause = refusal.cause;
    let outcome = match cause {
        Cause::ClientStopped | Cause::ClientDone if doing.is_empty() => Outcome::PeerInterrupted,
        Cause::ServerStopped if doing.is_empty() => Outcome::Interrupted,
        _ => Outcome::Failed {
            error: format!("{doing}{}", refusal.reason).into(),
        },
    };
    (outcome, Some(cause))
}

fn senders_finished(running: &Running) -> bool {
    let mut senders = running
        .streams
        .iter()
        .filter(|stream| stream.sends)
        .peekable();
    senders.peek().is_some() && senders.all(StreamHandle::is_finished)
}

/// What a server holds a running test to.
pub(super) struct Watch {
    moved: (Nanos, u64),
    /// When the last byte was received, and how many were until then.
    received: (Nanos, u64),
    /// Fewer bytes than this are none.
    matters: u64,
    window: (Nanos, u64),
}

impl Watch {
    pub(super) fn new(start: Nanos, matters: u64) -> Self {
        Self {
            moved: (start, 0),
            received: (start, 0),
            matters,
            window: (start, 0),
        }
    }

    pub(super) fn look(
        &mut self,
        now: Nanos,
        shared: &Shared,
        running: &Running,
        planned: Option<Nanos>,
        stored: Option<Bytes>,
    ) -> Result<(), Refusal> {
        let limits = &shared.options.limits;
        let bytes: u64 = running
            .streams
            .iter()
            .map(|stream| stream.live.latest().bytes)
            .sum();
        let progress = bytes + stored.map_or(0, |bytes| bytes.0);
        if progress >= self.moved.1.saturating_add(self.matters) {
            self.moved = (now, progress);
        }
        let idle = now.since(self.moved.0);
        // A disk may be busy with other things for longer than a network may.
        let (longest_idle, most) = match stored {
            Some(_) => (limits.idle.max(STORE_STALL), limits.transfer),
            None => (limits.idle, limits.duration),
        };
        // Where a file was sent whole nothing moves until the client ends the test.
        if idle > longest_idle && running.gate.file_end().is_none() {
            let text = format!("less than {} B moved in {idle}", self.matters);
            return Err(Refusal::code(EXPIRED, text));
        }
        if let Some(timeout) = shared.options.receive_timeout
            && let Some(received) = running.received()
        {
            if received > self.received.1 {
                self.received = (now, received);
            }
            if now.since(self.received.0) > timeout {
                let text = "idle timeout for receiving data".to_owned();
                return Err(Refusal::code(NOTHING_RECEIVED, text));
            }
        }
        if planned.is_some_and(|planned| now > planned) {
            let text = "it did not end its test in time".to_owned();
            return Err(Refusal::code(EXPIRED, text));
        }
        // One that ends by time is late by a while at most; bytes end when they end.
        let overtime = match running.plan.end {
            End::TimeNs(_) => OVERTIME,
            End::Bytes(_) | End::Blocks(_) => Nanos::ZERO,
        };
        if let Some(start) = running.gate.started()
            && now.since(start) > most.plus(running.plan.omit_ns).plus(overtime)
        {
            let text = format!("it ran longer than the {most} allowed");
            return Err(Refusal::code(EXPIRED, text));
        }
        let span = now.since(self.window.0);
        if span >= limits.rate_window {
            let rate = BitRate::of(Bytes(bytes - self.window.1), span);
            self.window = (now, bytes);
            if let (Some(most), Some(rate)) = (limits.rate, rate)
                && rate > most
            {
                let text = format!("{rate} reached, {most} allowed");
                return Err(Refusal::code(RATE_TOO_HIGH, text));
            }
        }
        Ok(())
    }
}

/// How long a value is as JSON.
fn json_bytes(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    drop(serde_json::to_writer(&mut counter, value));
    counter.0
}

/// A value as JSON of a length that is known.
fn to_json(value: &impl Serialize, length: usize) -> Vec<u8> {
    let mut json = Vec::with_capacity(length);
    drop(serde_json::to_writer(&mut json, value));
    json
}
