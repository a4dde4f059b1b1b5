//! After the last byte: the word to the server, the results, both ends' halves, and the record.

use std::fmt::Display;
use std::sync::Arc;

use linerate_kernel::clock;
use linerate_model::bounds::Extent;
use linerate_model::clock::{ClockOffset, ClockPair};
use linerate_model::plan::Protocol;
use linerate_model::progress::Event;
use linerate_model::record::{
    EndRecord, Kind, Note, Outcome, PeerResults, Role, RunRecord, SCHEMA_VERSION,
};
use linerate_model::series::MAX_CELLS;
use linerate_model::transfer::MAX_RING_SAMPLES;
use linerate_model::units::Nanos;
use linerate_wire::control::ClientEvent;

use crate::control::Turn;
use crate::error::EngineError;
use crate::intervals::Intervals;
use crate::results;
use crate::stream::{self, DataSocket};

use super::{
    Ended, Ending, Missed, RECORD_LEAST, RECORD_MOST, RECORD_TIME, RESULTS_PATIENCE,
    SERVER_STOPPED, Session, pairing,
};

/// How long a stock server may take to answer before the data of a block that was cut short ends.
const REST_OF_BLOCK: Nanos = Nanos::from_millis(150);

/// What the client does then, for errors.
const DOING: &str = "waiting for its results";

/// What the server told after the test, as far as it got.
#[derive(Default)]
struct FromPeer {
    results: Option<PeerResults>,
    half: Option<EndRecord>,
    clock_after: Option<ClockOffset>,
}

impl Session<'_> {
    /// Exchanges what there is to exchange and writes the record, one-sided if it must be.
    pub(super) fn conclude(mut self, mut ending: Ending, mut intervals: Intervals) -> Ended {
        let mut peer = FromPeer::default();
        let mut failed = ending.is_failure();
        let mut gathered = None;
        if !failed {
            let told = self.tell_end();
            // Where nothing more comes, our half is made while the server makes its own.
            let done = self.plan.protocol != Protocol::Udp
                && self
                    .streams
                    .iter()
                    .all(|stream| stream.sends && stream.is_finished());
            if told.is_ok() && done {
                gathered = Some(self.gather(&mut intervals));
            }
            let sockets = gathered.as_ref().map_or(&[][..], |(_, sockets)| sockets);
            let confirmed = told.and_then(|()| self.await_confirmation(sockets));
            if let Err(missed) = confirmed {
                let what = "the server did not confirm the end of the test";
                self.miss(what, &missed);
                ending = ending.or_failed(what, missed);
                failed = true;
            }
        }
        if failed {
            self.gate.cut();
        } else {
            self.gate.peer_has_stopped();
        }
        let (half, sockets) = gathered.unwrap_or_else(|| self.gather(&mut intervals));
        if !failed && matches!(ending, Ending::Planned) {
            self.measure_after();
        }
        let latency = self.probing.finish();
        if !failed {
            if let Err(missed) = self.exchange_results(&half, &mut peer) {
                let what = "the server's results are missing";
                self.miss(what, &missed);
                if peer.results.is_none() {
                    ending = ending.or_failed(what, missed);
                }
            }
        } else if matches!(ending, Ending::PeerInterrupted) {
            // The server is gone; nothing more can be asked of it.
            drop(self.link.flush());
        }
        drop(sockets);
        // A write may fail while what was under way arrives.
        if let Some(failed @ Ending::Failed(_)) = self.ended_by_file() {
            ending = failed;
        }
        if let (Ending::Planned, Some(stage)) = (&ending, self.failed_target.take()) {
            ending = stage;
        }
        if let (Ending::Planned | Ending::StreamsEnded, Some(error)) =
            (&ending, all_streams_failed(&half))
        {
            ending = Ending::Failed(Missed::Failed(error, None));
        }
        let mut ended = self.record(ending, half, peer);
        ended.record.latency = latency.map(Box::new);
        ended
    }

    fn miss(&mut self, what: &str, reason: &dyn Display) {
        let text = format!("{what}: {reason}; this record has only the client's side");
        (self.observe)(&Event::Warning {
            text: text.clone().into(),
        });
        self.notes.push(Note {
            id: "one-sided".into(),
            text: text.into(),
        });
    }

    /// Tells what was sent and that the test is over.
    fn tell_end(&mut self) -> Result<(), Missed> {
        if self.extended() {
            let finishing = stream::finishing(&self.streams);
            let sent = self.link.machine.send_finishing(finishing);
            sent.map_err(|error| self.protocol(error))?;
        }
        let ended = self.link.machine.end_test();
        ended.map_err(|error| self.protocol(error))?;
        // What the server said before may tell more than that nothing can be sent to it.
        drop(self.link.flush());
        Ok(())
    }

    /// Waits for the server to be ready for results.
    ///
    /// iperf3 3.15 waits ten seconds for the rest of a block that was cut short, unless the data ends.
    fn await_confirmation(&mut self, sockets: &[DataSocket]) -> Result<(), Missed> {
        let began = clock::monotonic();
        let mut unfinished = sockets.iter().filter(|socket| socket.unfinished).peekable();
        if unfinished.peek().is_some() {
            match self.heard(began.plus(REST_OF_BLOCK))? {
                None => unfinished.for_each(DataSocket::end),
                Some(ClientEvent::ExchangeResults) => return Ok(()),
                Some(event) => self.hear_finishing(event),
            }
        }
        let mut until = began.plus(RESULTS_PATIENCE);
        loop {
            match self.after(until)? {
                ClientEvent::ExchangeResults => return Ok(()),
                ClientEvent::Stored(stored) => {
                    // The disk has its time; the server bounds it.
                    until = clock::monotonic().plus(RESULTS_PATIENCE);
                    self.failed_target = self.hear_stored(stored);
                }
                event => self.hear_finishing(event),
            }
        }
    }

    /// The next event of the server after the test.
    fn after(&mut self, until: Nanos) -> Result<ClientEvent, Missed> {
        self.heard(until)?.ok_or_else(|| {
            let silent = self.silent(DOING);
            Missed::Failed("no answer in time".to_owned(), Some(silent))
        })
    }

    /// The same; nothing when it does not come in time.
    fn heard(&mut self, until: Nanos) -> Result<Option<ClientEvent>, Missed> {
        let stop: Vec<_> = self.impatience().into_iter().collect();
        let missed = |reason: String, error| Err(Missed::Failed(reason, Some(error)));
        match self.link.turn(&stop, until) {
            Ok(Turn::Event(ClientEvent::ServerError { code, errno })) => {
                missed(super::refusal(code, errno), self.refused(code, errno))
            }
            Ok(Turn::Event(ClientEvent::ServerTerminated)) => {
                missed(SERVER_STOPPED.to_owned(), self.terminated())
            }
            Ok(Turn::Event(event)) => Ok(Some(event)),
            Ok(Turn::TimedOut) => Ok(None),
            Ok(Turn::Woken(_)) => {
                self.leave();
                Err(Missed::Left)
            }
            Err(error) => missed(error.to_string(), self.link_error(error, DOING)),
        }
    }

    /// This end's half, and the streams' sockets.
    fn gather(&mut self, intervals: &mut Intervals) -> (EndRecord, Vec<DataSocket>) {
        // The threads' own bounds end them.
        let (records, sockets, _) = stream::join_all(&mut self.streams);
        let stopped = self.gate.stopped().unwrap_or_default();
        if let Some(interval) = intervals.last(&records, stopped) {
            (self.observe)(&Event::Interval(interval));
        }
        let before = self.before.take().unwrap_or_default();
        let mut half = before.finish(Role::Client, &self.options.software, &self.gate, records);
        half.stage = self.options.transfer.as_ref().map(|transfer| {
            transfer.source.stop();
            transfer.source.record()
        });
        (half, sockets)
    }

    fn exchange_results(&mut self, half: &EndRecord, peer: &mut FromPeer) -> Result<(), Missed> {
        let ours = results::of_half(half);
        let sent = self.link.machine.send_results(&ours);
        sent.map_err(|error| self.protocol(error))?;
        let until = clock::monotonic().plus(RESULTS_PATIENCE);
        let stop: Vec<_> = self.impatience().into_iter().collect();
        loop {
            let came = self.after(until);
            let came = match peer.results {
                None => came.map_err(|missed| self.without_results(missed)),
                Some(_) => came,
            };
            match came? {
                ClientEvent::PeerResults(theirs) => {
                    let theirs = results::from_peer(theirs);
                    let bytes: u64 = theirs.streams.iter().map(|stream| stream.bytes).sum();
                    peer.results = Some(theirs);
                    if self.extended() {
                        let most = record_bound(bytes, half);
                        self.exchange_clocks(&stop, "comparing clocks", |machine| {
                            machine.request_end(most)
                        })?;
                        peer.clock_after = ClockOffset::estimate(&self.exchanges);
                    }
                }
                ClientEvent::EndRecord(json) => match read_half(&json, half) {
                    Ok(half) => peer.half = Some(half),
                    Err(reason) => {
                        self.miss("the server's part of the record cannot be read", &reason);
                    }
                },
                ClientEvent::DisplayResults => break,
                _ => {}
            }
        }
        let done = self.link.machine.done();
        done.map_err(|error| self.protocol(error))?;
        let sent = self.link.flush_until(until);
        sent.map_err(|error| self.link_error(error, "ending the session").into())
    }

    /// Why the results did not come, with what came of them.
    fn without_results(&self, missed: Missed) -> Missed {
        let source = match &missed {
            Missed::Failed(_, Some(EngineError::Control { source, .. })) => Some(source),
            Missed::Failed(_, Some(EngineError::Protocol { .. })) => None,
            _ => return missed,
        };
        EngineError::Results {
            address: self.remote.to_string(),
            reason: missed.to_string(),
            errno: source.and_then(std::io::Error::raw_os_error).unwrap_or(0),
            unread: self.link.machine.unread(),
        }
        .into()
    }

    fn record(self, ending: Ending, half: EndRecord, mut peer: FromPeer) -> Ended {
        if let Some(theirs) = &mut peer.half {
            pairing::number(&half, theirs, peer.results.as_mut());
        }
        let clock = self.clock_before.map(|before| ClockPair {
            before,
            after: peer.clock_after,
        });
        let mut failure = None;
        let outcome = match ending {
            Ending::Planned => Outcome::Completed,
            Ending::Stage(error) => Outcome::Failed {
                error: error.into(),
            },
            Ending::Interrupted | Ending::Left => Outcome::Interrupted,
            Ending::PeerInterrupted => Outcome::PeerInterrupted,
            Ending::Failed(missed) => {
                let error = missed.to_string().into();
                if let Missed::Failed(_, cause) = missed {
                    failure = cause;
                }
                Outcome::Failed { error }
            }
            Ending::StreamsEnded => Outcome::Failed {
                error: "every data stream ended before the test did; see the streams' errors"
                    .into(),
            },
        };
        let record = RunRecord {
            schema_version: SCHEMA_VERSION,
            kind: Kind::Test,
            written_by: Role::Client,
            software: self.options.software.clone(),
            started_at_unix_ms: self.started_at_unix_ms,
            plan: Arc::unwrap_or_clone(self.plan),
            outcome,
            cookie: self.cookie.text().into_owned().into(),
            control: self.control,
            client: Some(half),
            server: peer.half,
            peer_results: peer.results,
            clock,
            notes: self.notes,
            latency: None,
            counter_runs: Vec::new(),
            cells: Vec::new(),
            host_names: None,
        };
        Ended { record, failure }
    }
}

/// Reads the server's half, unless it holds more than a record may. Of its samples so many are kept that the record can
/// be read again, beside those of `ours`.
fn read_half(json: &[u8], ours: &EndRecord) -> Result<EndRecord, String> {
    let told = |error: serde_json::Error| error.to_string();
    let extent = Extent::of_end(&mut serde_json::Deserializer::from_slice(json)).map_err(told)?;
    extent.check().map_err(|error| error.to_string())?;
    let mut half: EndRecord = serde_json::from_slice(json).map_err(told)?;
    if let Some(stage) = &mut half.stage {
        stage.ring.samples.truncate(MAX_RING_SAMPLES);
    }
    half.bound_transits();
    let room = MAX_CELLS.saturating_sub(ours.cells());
    // Each stream keeps two rows at least; a record of 256 streams with a few more cells than that always has room.
    while half.cells() > room && half.streams.iter().any(|stream| stream.samples.len() > 2) {
        half = half.thinned(2);
    }
    Ok(half)
}

/// The peer's half should arrive in a few seconds at the rate that was measured.
fn record_bound(peer_bytes: u64, half: &EndRecord) -> u64 {
    let span = half.end_ns.since(half.start_ns).0.max(1);
    let moved = half
        .streams
        .iter()
        .map(|stream| stream.app_bytes)
        .sum::<u64>()
        .max(peer_bytes);
    let in_time = u128::from(moved) * u128::from(RECORD_TIME.0) / u128::from(span);
    u64::try_from(in_time)
        .unwrap_or(RECORD_MOST)
        .clamp(RECORD_LEAST, RECORD_MOST)
}

/// A test of which every stream failed has failed, with the first stream's reason.
fn all_streams_failed(half: &EndRecord) -> Option<String> {
    let all = half.streams.iter().all(|stream| stream.error.is_some());
    if all {
        half.streams.first()?.error.as_deref().map(str::to_owned)
    } else {
        None
    }
}
