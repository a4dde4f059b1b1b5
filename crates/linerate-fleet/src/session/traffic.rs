//! Frames of an open session: what came goes to the asks that wait for it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use linerate_kernel::clock;
use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use linerate_wire::agent::{Frame, FrameReader, Header, Outcome, Stream, encode};

use super::child::{Far, Sink};
use super::{HEARTBEAT, SILENCE, locked};
use crate::error::{FleetError, Phase, Trouble};

/// An agent that was told to end has so long before its carrier is ended.
const GRACE: Nanos = Nanos::from_millis(3_000);

/// What comes for an ask.
pub(super) enum Incoming {
    Output(Stream, Vec<u8>),
    Ended(Outcome),
}

/// What a session's thread and those who ask share.
#[derive(Debug)]
pub(super) struct Traffic {
    host: String,
    stdin: Mutex<Option<Sink>>,
    waiting: Mutex<BTreeMap<u64, Sender<Incoming>>>,
    next: AtomicU64,
    closing: AtomicBool,
    wake: Arc<EventFd>,
    /// Why the session ended.
    end: OnceLock<FleetError>,
}

impl Traffic {
    /// Of a carrier whose agent has said hello.
    pub(super) fn new(
        host: &str,
        mut far: Far,
        reader: FrameReader,
    ) -> Result<(Self, Reading), FleetError> {
        let wake = EventFd::new().map_err(|error| {
            Trouble::Carrier {
                program: "a session".to_owned(),
                why: error.to_string(),
            }
            .of(host)
        })?;
        let traffic = Self {
            host: host.to_owned(),
            stdin: Mutex::new(far.stdin.take()),
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            closing: AtomicBool::new(false),
            wake: Arc::new(wake),
            end: OnceLock::new(),
        };
        Ok((traffic, Reading { far, reader }))
    }

    /// The host, as it was named.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// A number for an ask, and where its events come.
    pub(super) fn begin(&self) -> Result<(u64, Receiver<Incoming>), FleetError> {
        let (sender, receiver) = channel();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = locked(&self.waiting);
        if let Some(error) = self.end.get() {
            return Err(error.clone());
        }
        waiting.insert(number, sender);
        Ok((number, receiver))
    }

    /// Sends a frame; it waits while the host does not take it, at most [`SILENCE`].
    pub(super) fn send(&self, frame: &[u8]) -> Result<(), FleetError> {
        let mut stdin = locked(&self.stdin);
        let sent = stdin.as_mut().map(|stdin| stdin.write_all(frame));
        match sent {
            Some(Ok(())) => Ok(()),
            // The reading thread finds out why.
            _ => Err(self.end.get().cloned().unwrap_or_else(|| self.gone())),
        }
    }

    /// Nobody waits for this ask any more; where it may still run, it is ended.
    pub(super) fn forget(&self, number: u64) {
        if locked(&self.waiting).remove(&number).is_some() {
            self.cancel(number);
        }
    }

    pub(super) fn cancel(&self, number: u64) {
        if let Ok(frame) = encode(&Header::Cancel { ask: number }, &[]) {
            // Where it cannot be sent, the far end is gone and so is the command.
            drop(self.send(&frame));
        }
    }

    /// Why the session ended; where nobody knows, that it did.
    pub(super) fn why(&self) -> FleetError {
        self.end.get().cloned().unwrap_or_else(|| self.gone())
    }

    /// Whether the session has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.end.get().is_none()
    }

    fn gone(&self) -> FleetError {
        Trouble::Ended {
            phase: Phase::Running,
            said: PlainText::default(),
        }
        .of(&self.host)
    }

    /// Ends the session.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        drop(self.wake.raise());
    }

    /// Sends a heartbeat where that does not wait.
    fn beat(&self) {
        let Ok(mut stdin) = self.stdin.try_lock() else {
            // Somebody writes: that is a sign of life.
            return;
        };
        let Some(stdin) = stdin.as_mut() else { return };
        let mut entries = [PollEntry::new(stdin.as_fd(), Interest::WRITE)];
        let ready = poll::wait(&mut entries, Some(Nanos::ZERO)).is_ok();
        if let Ok(frame) = encode(&Header::Heartbeat, &[])
            && ready
            && entries[0].readiness().any()
        {
            drop(stdin.write_all(&frame));
        }
    }

    fn take(&self, frame: Frame) -> Result<(), Trouble> {
        match frame.header {
            Header::Output { ask, to } => {
                self.hand_over(ask, Incoming::Output(to, frame.body));
            }
            Header::Answer { ask, outcome } => {
                self.hand_over(ask, Incoming::Ended(outcome));
                locked(&self.waiting).remove(&ask);
            }
            Header::Heartbeat => {}
            Header::Bye { why } => return Err(Trouble::Bootstrap { why }),
            Header::Hello(_) | Header::Ask(_) | Header::Cancel { .. } => {
                return Err(Trouble::OutOfTurn {
                    what: "a frame that only this end sends".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// One that nobody waits for any more is dropped.
    fn hand_over(&self, ask: u64, incoming: Incoming) {
        if let Some(sender) = locked(&self.waiting).get(&ask) {
            drop(sender.send(incoming));
        }
    }
}

/// The thread's part of a session.
pub(super) struct Reading {
    far: Far,
    reader: FrameReader,
}

impl Reading {
    /// Reads frames until the session ends, then ends the carrier.
    pub(super) fn run(&mut self, traffic: &Traffic) {
        let trouble = self.read(traffic);
        if let Some(stdin) = traffic
            .stdin
            .try_lock()
            .ok()
            .and_then(|mut stdin| stdin.take())
        {
            drop(stdin);
            self.far.end(if trouble.is_none() {
                GRACE
            } else {
                Nanos::from_millis(500)
            });
        } else {
            // Somebody still writes to it; this ends the write.
            self.far.end(Nanos::ZERO);
        }
        let trouble = match trouble {
            Some(Trouble::Ended { phase, .. }) => Trouble::Ended {
                phase,
                said: self.far.last_words(),
            },
            Some(trouble) => trouble,
            None => Trouble::Ended {
                phase: Phase::Running,
                said: "it was closed here".into(),
            },
        };
        // The lock keeps an ask from beginning between the two.
        let mut waiting = locked(&traffic.waiting);
        drop(traffic.end.set(trouble.of(&traffic.host)));
        waiting.clear();
    }

    /// `None` once the session was closed here.
    fn read(&mut self, traffic: &Traffic) -> Option<Trouble> {
        let mut piece = vec![0; 64 << 10];
        let mut heard = clock::monotonic();
        let mut beaten = heard;
        loop {
            // What came with the hello, or with the last piece.
            loop {
                match self.reader.frame() {
                    Ok(None) => break,
                    Ok(Some(frame)) => {
                        if let Err(trouble) = traffic.take(frame) {
                            return Some(trouble);
                        }
                    }
                    Err(source) => return Some(Trouble::Frame { source }),
                }
            }
            let now = clock::monotonic();
            if traffic.closing.load(Ordering::SeqCst) {
                return None;
            }
            if now.since(beaten) >= HEARTBEAT {
                traffic.beat();
                beaten = now;
            }
            if now.since(heard) >= SILENCE {
                let said = self.far.last_words();
                return Some(Trouble::Silent {
                    phase: Phase::Running,
                    patience: SILENCE,
                    said,
                });
            }
            let left = beaten.plus(HEARTBEAT).since(now);
            match self
                .far
                .receive(&mut piece, left, false, Some(&traffic.wake))
            {
                Ok(None) => {}
                Ok(Some([])) | Err(_) => {
                    return Some(Trouble::Ended {
                        phase: Phase::Running,
                        said: PlainText::default(),
                    });
                }
                Ok(Some(piece)) => {
                    heard = clock::monotonic();
                    self.reader.push(piece);
                }
            }
        }
    }
}
