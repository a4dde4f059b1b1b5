//! A test whose streams run: following it, holding it to its bounds, and concluding it.

use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_kernel::{clock, socket};
use linerate_model::plan::{End, Plan};
use linerate_model::progress::Event;
use linerate_model::record::{
    ControlFacts, EndRecord, Kind, Outcome, PeerResults, Role, RunRecord, SCHEMA_VERSION,
    StreamRecord,
};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_wire::control::ServerEvent as Said;
use linerate_wire::udp::HANDSHAKE_ANSWER;

use crate::control::Turn;
use crate::gate::Gate;
use crate::half::Before;
use crate::intervals::Intervals;
use crate::results;
use crate::stream::{self, StreamHandle};

use super::Shared;
use super::limits::{EXPIRED, RATE_TOO_HIGH};
use super::session::{ANSWER_AGAIN, PATIENCE, Refusal, Session};
use super::telling::Telling;

/// How much longer than planned a client may take to end its test.
const OVERTIME: Nanos = Nanos::from_millis(30_000);
/// For how long a stock client's opening datagram is answered again.
const ANSWER_UNTIL: Nanos = Nanos::from_millis(10_000);
/// How often a running test is looked at.
const LOOK: Nanos = Nanos::from_millis(100);

/// Why the running part ended.
pub(super) enum Ending {
    /// The client said so.
    TestEnd,
    /// The client's user stopped it.
    ClientTerminated,
    /// This server was stopped.
    Stopped,
    /// A bound was reached: iperf3's error number and a sentence.
    Bound(i32, String),
    /// The control connection failed.
    Lost(String),
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
    /// The client asked for our report.
    pub(super) keep_events: bool,
    /// How often the client wants to be told what arrives.
    pub(super) told_every_ns: Option<u64>,
    pub(super) control: ControlFacts,
    pub(super) started_at_unix_ms: u64,
}

impl Session<'_> {
    pub(super) fn measure(
        &mut self,
        running: &mut Running,
    ) -> Result<(Ending, Intervals), Refusal> {
        if let Err(error) = self.link.machine.start_test() {
            running.gate.cut();
            return Err(error.into());
        }
        drop(self.link.flush());
        let start = running.gate.open();
        self.tell(&Event::Started);
        let mut intervals = Intervals::new(&running.plan, start, running.streams.len());
        let ending = self.follow(running, start, &mut intervals);
        self.tell(&Event::Ending);
        Ok((ending, intervals))
    }

    fn follow(&mut self, running: &mut Running, start: Nanos, intervals: &mut Intervals) -> Ending {
        let planned = match running.plan.end {
            End::TimeNs(Nanos(0)) | End::Bytes(_) | End::Blocks(_) => None,
            End::TimeNs(span) => Some(start.plus(running.plan.omit_ns).plus(span).plus(OVERTIME)),
        };
        let mut watch = Watch::new(start);
        let mut told_finishing = false;
        let mut telling = Telling::new(running.told_every_ns, start, running.streams.len());
        loop {
            let now = clock::monotonic();
            if let Some(interval) = intervals.take(now, &running.streams) {
                let event = Event::Interval(interval);
                self.tell(&event);
                if running.keep_events {
                    running.events.push(event);
                }
            }
            if let Some(ending) = watch.look(now, self.shared, running, planned) {
                return ending;
            }
            if !told_finishing && self.extended && senders_finished(running) {
                told_finishing = true;
                // A linerate ends a -n test when it knows that everything was sent.
                if let Err(error) = self
                    .link
                    .machine
                    .send_finishing(stream::finishing(&running.streams))
                {
                    return Ending::Lost(error.to_string());
                }
            }
            if let Some(received) = telling.take(now, &running.streams).filter(|_| self.extended)
                // A client that does not read is not told more.
                && !matches!(self.link.flush(), Ok(true))
                && let Err(error) = self.link.machine.send_received(received)
            {
                return Ending::Lost(error.to_string());
            }
            running.answer_stock_clients(now, start);
            let gate = Arc::clone(&running.gate);
            let until = intervals.wake().min(now.plus(LOOK)).min(telling.wake());
            match self
                .link
                .turn(&[gate.news_fd(), self.shared.terminate.as_fd()], until)
            {
                Ok(Turn::Woken(0)) => gate.hear(),
                Ok(Turn::Woken(_)) => return Ending::Stopped,
                Ok(Turn::Event(Said::TestEnd)) => return Ending::TestEnd,
                Ok(Turn::Event(Said::ClientTerminated | Said::Done)) => {
                    return Ending::ClientTerminated;
                }
                Ok(Turn::Event(Said::Finishing(told))) => {
                    stream::tell_receivers(&running.streams, &told);
                }
                Ok(Turn::TimedOut | Turn::Event(_)) => {}
                Err(error) => return Ending::Lost(error.to_string()),
            }
        }
    }

    /// Drains, exchanges results, and writes the record.
    pub(super) fn conclude(
        &mut self,
        running: &mut Running,
        ending: Ending,
        intervals: &mut Intervals,
    ) -> RunRecord {
        running.answer_again.clear();
        running.gate.close();
        let complete = matches!(ending, Ending::TestEnd);
        if complete {
            running.gate.peer_has_stopped();
        } else {
            running.gate.cut();
        }
        match &ending {
            Ending::Stopped => self.link.machine.terminate(),
            Ending::Bound(code, _) => self.link.machine.error(*code, 0),
            _ => {}
        }
        if complete && self.extended && !running.told_everything() {
            self.wait_for_senders(running);
            // Told already where a -n test ran to its end; the second telling is refused by the machine.
            drop(
                self.link
                    .machine
                    .send_finishing(stream::finishing(&running.streams)),
            );
            drop(self.link.flush());
        }
        let (records, sockets): (Vec<StreamRecord>, Vec<_>) = running
            .streams
            .drain(..)
            .filter_map(StreamHandle::join)
            .map(|result| (result.record, result.socket))
            .unzip();
        if let Some(interval) = intervals.last(&records, running.gate.stopped().unwrap_or_default())
        {
            let event = Event::Interval(interval);
            self.tell(&event);
            if running.keep_events {
                running.events.push(event);
            }
        }
        // Asked for before our half is made: the client makes its own meanwhile.
        let asked = if complete {
            self.ask_for_results()
        } else {
            Ok(())
        };
        let start = running.gate.started().unwrap_or_default();
        let end = running.gate.stopped().unwrap_or(start);
        let before = std::mem::replace(&mut running.before, Before::nothing());
        let half = before.finish(
            Role::Server,
            &self.shared.options.software,
            start,
            end,
            records,
        );
        let mut peer = None;
        let exchanged = match asked {
            Ok(()) if complete => self.exchange(running, &half, &mut peer),
            asked => asked,
        };
        drop(
            self.link
                .flush_until(clock::monotonic().plus(Nanos::from_millis(1000))),
        );
        drop(sockets);
        let outcome = match (ending, exchanged) {
            (Ending::TestEnd, Ok(())) => Outcome::Completed,
            (Ending::TestEnd, Err(Refusal::Gone(reason) | Refusal::Error(_, reason))) => {
                Outcome::Failed {
                    error: format!("exchanging results: {reason}").into(),
                }
            }
            (Ending::ClientTerminated, _) => Outcome::PeerInterrupted,
            (Ending::Stopped, _) => Outcome::Interrupted,
            (Ending::Bound(_, error) | Ending::Lost(error), _) => Outcome::Failed {
                error: error.into(),
            },
        };
        self.record(running, outcome, half, peer)
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
            cookie: self.cookie.text().into_owned().into(),
            control: running.control.clone(),
            client: None,
            server: Some(half),
            peer_results,
            clock: None,
            notes: Vec::new(),
            counter_runs: Vec::new(),
        }
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
        loop {
            match self.next(until)? {
                Said::PeerResults(theirs) => {
                    *peer = Some(results::from_peer(theirs));
                    let mut ours =
                        results::of_streams(&half.streams, half.start_ns, half.end_ns, half.cpu);
                    if let (true, Some(output)) = (running.keep_events, &self.shared.options.output)
                    {
                        let so_far =
                            self.record(running, Outcome::Completed, half.clone(), peer.clone());
                        ours.server_output_text = Some(output(&so_far, &running.events).into());
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
                    self.link.machine.send_end(within(half, max_bytes))?;
                    self.link.machine.display_results()?;
                }
                Said::Done => return Ok(()),
                Said::ClientTerminated => {
                    return Err(Refusal::Gone("the client stopped".to_owned()));
                }
                _ => {}
            }
        }
    }
}

impl Running {
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

    /// Whether there is nothing to tell about what was sent.
    fn told_everything(&self) -> bool {
        self.streams.iter().all(|stream| !stream.sends)
    }
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
struct Watch {
    moved: (Nanos, u64),
    window: (Nanos, u64),
}

impl Watch {
    fn new(start: Nanos) -> Self {
        Self {
            moved: (start, 0),
            window: (start, 0),
        }
    }

    fn look(
        &mut self,
        now: Nanos,
        shared: &Shared,
        running: &Running,
        planned: Option<Nanos>,
    ) -> Option<Ending> {
        let limits = &shared.options.limits;
        let bytes: u64 = running
            .streams
            .iter()
            .map(|stream| stream.live.latest().bytes)
            .sum();
        if bytes > self.moved.1 {
            self.moved = (now, bytes);
        }
        let idle = now.since(self.moved.0);
        if idle > limits.idle {
            return Some(Ending::Bound(EXPIRED, format!("nothing moved for {idle}")));
        }
        if planned.is_some_and(|planned| now > planned) {
            return Some(Ending::Bound(
                EXPIRED,
                "it did not end its test in time".to_owned(),
            ));
        }
        if let (Some(most), Some(start)) = (limits.duration, running.gate.started())
            && now.since(start) > most.plus(running.plan.omit_ns).plus(OVERTIME)
        {
            return Some(Ending::Bound(
                EXPIRED,
                format!("it ran longer than the {most} allowed"),
            ));
        }
        let span = now.since(self.window.0);
        if span >= limits.rate_window {
            let rate = BitRate::of(Bytes(bytes - self.window.1), span);
            self.window = (now, bytes);
            if let (Some(most), Some(rate)) = (limits.rate, rate)
                && rate > most
            {
                return Some(Ending::Bound(
                    RATE_TOO_HIGH,
                    format!("{rate} reached, {most} allowed"),
                ));
            }
        }
        None
    }
}

/// Our half as JSON of at most `bound` bytes: where it is longer, samples are thinned and say so.
fn within(half: &EndRecord, bound: u64) -> Vec<u8> {
    let mut factor: usize = 1;
    loop {
        let mut thinner = half.clone();
        if factor > 1 {
            for stream in &mut thinner.streams {
                stream.samples = stream.samples.thinned(factor);
                stream.thinned = stream
                    .thinned
                    .saturating_mul(u32::try_from(factor).unwrap_or(u32::MAX));
            }
            thinner.counters = thinner.counters.thinned(factor);
        }
        let json = serde_json::to_vec(&thinner).unwrap_or_default();
        if json.len() as u64 <= bound || factor > 1 << 22 {
            return json;
        }
        factor *= 2;
    }
}
