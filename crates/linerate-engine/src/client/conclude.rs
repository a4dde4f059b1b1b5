//! After the last byte: the word to the server, the results, both ends' halves, and the record.

use std::net::Shutdown;
use std::sync::Arc;

use linerate_kernel::clock;
use linerate_model::bounds::Extent;
use linerate_model::clock::{ClockOffset, ClockPair};
use linerate_model::plan::Protocol;
use linerate_model::progress::Event;
use linerate_model::record::{
    EndRecord, Kind, Note, Outcome, PeerResults, Role, RunRecord, SCHEMA_VERSION, StreamRecord,
};
use linerate_model::series::MAX_CELLS;
use linerate_model::units::Nanos;
use linerate_wire::control::ClientEvent;

use crate::control::Turn;
use crate::half::Before;
use crate::intervals::Intervals;
use crate::results;
use crate::stream::{self, StreamHandle, StreamResult, StreamSocket};

use super::{Ending, RECORD_LEAST, RECORD_MOST, RECORD_TIME, RESULTS_PATIENCE, Session};

/// How long a stock server may take to answer before the data of a block that was cut short ends.
const REST_OF_BLOCK: Nanos = Nanos::from_millis(150);

/// What the server told after the test, as far as it got.
#[derive(Default)]
struct FromPeer {
    results: Option<PeerResults>,
    half: Option<EndRecord>,
    clock_after: Option<ClockOffset>,
}

/// A stream's socket, which stays open until the results were exchanged.
struct DataSocket {
    socket: Option<StreamSocket>,
    /// A stock server lacks the end of its last block.
    unfinished: bool,
}

impl DataSocket {
    fn end(&self) {
        if let Some(StreamSocket::Tcp(stream)) = &self.socket {
            drop(stream.shutdown(Shutdown::Write));
        }
    }
}

impl Session<'_> {
    /// Exchanges what there is to exchange and writes the record, one-sided if it must be.
    pub(super) fn conclude(mut self, mut ending: Ending, mut intervals: Intervals) -> RunRecord {
        let mut peer = FromPeer::default();
        let mut failed = ending.is_failure();
        let mut gathered = None;
        if !failed {
            let told = self.tell_end();
            // Where nothing more comes, our half is made while the server makes its own.
            let done = self.plan.protocol == Protocol::Tcp
                && self
                    .streams
                    .iter()
                    .all(|stream| stream.sends && stream.is_finished());
            if told.is_ok() && done {
                gathered = Some(self.gather(&mut intervals));
            }
            let sockets = gathered.as_ref().map_or(&[][..], |(_, sockets)| sockets);
            let confirmed = told.and_then(|()| self.await_confirmation(sockets));
            if let Err(reason) = confirmed {
                let what = "the server did not confirm the end of the test";
                self.miss(what, &reason);
                ending = ending.or_failed(what, &reason);
                failed = true;
            }
        }
        if failed {
            self.gate.cut();
        } else {
            self.gate.peer_has_stopped();
        }
        let (half, sockets) = gathered.unwrap_or_else(|| self.gather(&mut intervals));
        if !failed {
            if let Err(reason) = self.exchange_results(&half, &mut peer) {
                let what = "the server's results are missing";
                self.miss(what, &reason);
                if peer.results.is_none() {
                    ending = ending.or_failed(what, &reason);
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
        if let (Ending::Planned | Ending::StreamsEnded, Some(error)) =
            (&ending, all_streams_failed(&half))
        {
            ending = Ending::Failed(error);
        }
        self.record(ending, half, peer)
    }

    fn miss(&mut self, what: &str, reason: &str) {
        let text = format!("{what}: {reason}; this record holds the client's side only");
        (self.observe)(&Event::Warning {
            text: text.clone().into(),
        });
        self.notes.push(Note {
            id: "one-sided".into(),
            text: text.into(),
        });
    }

    /// Tells what was sent and that the test is over.
    fn tell_end(&mut self) -> Result<(), String> {
        if self.extended() {
            self.link
                .machine
                .send_finishing(stream::finishing(&self.streams))
                .map_err(|error| error.to_string())?;
        }
        self.link
            .machine
            .end_test()
            .map_err(|error| error.to_string())?;
        // What the server said before may tell more than that nothing can be sent to it.
        drop(self.link.flush());
        Ok(())
    }

    /// Waits for the server to be ready for results.
    ///
    /// iperf3 3.15 waits ten seconds for the rest of a block that was cut short, unless the data ends.
    fn await_confirmation(&mut self, sockets: &[DataSocket]) -> Result<(), String> {
        let began = clock::monotonic();
        let mut unfinished = sockets.iter().filter(|socket| socket.unfinished).peekable();
        if unfinished.peek().is_some() {
            match self.link.turn(&[], began.plus(REST_OF_BLOCK)) {
                Ok(Turn::TimedOut) => unfinished.for_each(DataSocket::end),
                Ok(Turn::Event(ClientEvent::ExchangeResults)) => return Ok(()),
                Ok(Turn::Event(event)) => self.hear_finishing(event),
                Ok(Turn::Woken(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        let until = began.plus(RESULTS_PATIENCE);
        loop {
            match self.after(until)? {
                ClientEvent::ExchangeResults => return Ok(()),
                event => self.hear_finishing(event),
            }
        }
    }

    /// The next event of the server after the test.
    fn after(&mut self, until: Nanos) -> Result<ClientEvent, String> {
        match self.link.turn(&[], until) {
            Ok(Turn::Event(ClientEvent::ServerError { code, errno })) => {
                Err(super::refusal(code, errno))
            }
            Ok(Turn::Event(ClientEvent::ServerTerminated)) => {
                Err("the server was stopped".to_owned())
            }
            Ok(Turn::Event(event)) => Ok(event),
            Ok(_) => Err("no answer in time".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// This end's half, and the streams' sockets.
    fn gather(&mut self, intervals: &mut Intervals) -> (EndRecord, Vec<DataSocket>) {
        let (records, sockets): (Vec<StreamRecord>, Vec<_>) = self
            .join()
            .into_iter()
            .map(|result| {
                let StreamResult {
                    socket, unfinished, ..
                } = result;
                (result.record, DataSocket { socket, unfinished })
            })
            .unzip();
        let stopped = self.gate.stopped().unwrap_or_default();
        if let Some(interval) = intervals.last(&records, stopped) {
            (self.observe)(&Event::Interval(interval));
        }
        (self.own_half(records), sockets)
    }

    /// Waits for the threads, whose own bounds end them.
    fn join(&mut self) -> Vec<StreamResult> {
        self.streams
            .drain(..)
            .filter_map(StreamHandle::join)
            .collect()
    }

    fn own_half(&mut self, records: Vec<StreamRecord>) -> EndRecord {
        let start = self.gate.started().unwrap_or_default();
        let end = self.gate.stopped().unwrap_or(start);
        let before = self.before.take().unwrap_or_else(Before::nothing);
        before.finish(Role::Client, &self.options.software, start, end, records)
    }

    fn exchange_results(&mut self, half: &EndRecord, peer: &mut FromPeer) -> Result<(), String> {
        let ours = results::of_streams(&half.streams, half.start_ns, half.end_ns, half.cpu);
        self.link
            .machine
            .send_results(&ours)
            .map_err(|error| error.to_string())?;
        let until = clock::monotonic().plus(RESULTS_PATIENCE);
        loop {
            match self.after(until)? {
                ClientEvent::PeerResults(theirs) => {
                    let theirs = results::from_peer(theirs);
                    let bytes: u64 = theirs.streams.iter().map(|stream| stream.bytes).sum();
                    peer.results = Some(theirs);
                    if self.extended() {
                        let most = record_bound(bytes, half);
                        self.exchange_clocks(&[], "comparing clocks", |machine| {
                            machine.request_end(most)
                        })
                        .map_err(|error| error.to_string())?;
                        peer.clock_after = ClockOffset::estimate(&self.exchanges);
                    }
                }
                ClientEvent::EndRecord(json) => match read_half(&json, half) {
                    Ok(half) => peer.half = Some(half),
                    Err(reason) => {
                        self.miss("the server's half of the record cannot be read", &reason);
                    }
                },
                ClientEvent::DisplayResults => break,
                _ => {}
            }
        }
        self.link
            .machine
            .done()
            .map_err(|error| error.to_string())?;
        self.link
            .flush_until(until)
            .map_err(|error| error.to_string())
    }

    fn record(self, ending: Ending, half: EndRecord, peer: FromPeer) -> RunRecord {
        let clock = self.clock_before.map(|before| ClockPair {
            before,
            after: peer.clock_after,
        });
        RunRecord {
            schema_version: SCHEMA_VERSION,
            kind: Kind::Test,
            written_by: Role::Client,
            software: self.options.software.clone(),
            started_at_unix_ms: self.started_at_unix_ms,
            plan: Arc::unwrap_or_clone(self.plan),
            outcome: match ending {
                Ending::Planned => Outcome::Completed,
                Ending::Interrupted => Outcome::Interrupted,
                Ending::PeerInterrupted => Outcome::PeerInterrupted,
                Ending::Failed(error) => Outcome::Failed {
                    error: error.into(),
                },
                Ending::StreamsEnded => Outcome::Failed {
                    error: "every data stream ended before the test did; see the streams' errors"
                        .into(),
                },
            },
            cookie: self.cookie.text().into_owned().into(),
            control: self.control,
            client: Some(half),
            server: peer.half,
            peer_results: peer.results,
            clock,
            notes: self.notes,
            counter_runs: Vec::new(),
        }
    }
}

/// Reads the server's half, unless it holds more than a record may. Of its samples so many are kept that the record can
/// be read again, beside those of `ours`.
fn read_half(json: &[u8], ours: &EndRecord) -> Result<EndRecord, String> {
    let told = |error: serde_json::Error| error.to_string();
    let extent = Extent::of_end(&mut serde_json::Deserializer::from_slice(json)).map_err(told)?;
    extent.check().map_err(|error| error.to_string())?;
    let mut half: EndRecord = serde_json::from_slice(json).map_err(told)?;
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
