//! Frames of an open session: what came goes to the asks that wait for it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
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

/// Output of all commands of a session that nobody has taken yet takes no more memory than this, bytes: a frame of a few
/// hundred bytes unpacks to 8 MiB.
pub(super) const MOST_QUEUED: usize = 64 << 20;
/// A queued piece takes so much memory beside its bytes.
const PIECE_COST: usize = 64;

/// Bytes that are read at once; each session has so many for itself.
const PIECE: usize = 16 << 10;

/// What comes for an ask.
pub(super) enum Incoming {
    Output(Stream, Vec<u8>),
    Ended(Outcome),
}

impl Incoming {
    /// The memory that it takes, bytes.
    fn cost(&self) -> usize {
        match self {
            Self::Output(_, bytes) => bytes.len().saturating_add(PIECE_COST),
            Self::Ended(_) => 0,
        }
    }
}

/// Where the events of an ask come.
#[derive(Debug)]
pub(super) struct Events {
    receiver: Receiver<Incoming>,
    of_ask: Arc<AtomicUsize>,
    of_session: Arc<AtomicUsize>,
}

impl Events {
    /// The next event; without `patience` as soon as there is one.
    pub(super) fn next(&self, patience: Option<Nanos>) -> Result<Incoming, RecvTimeoutError> {
        let came = match patience {
            None => self
                .receiver
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(patience) => self.receiver.recv_timeout(patience.as_duration()),
        }?;
        self.taken(came.cost());
        Ok(came)
    }

    fn taken(&self, cost: usize) {
        self.of_ask.fetch_sub(cost, Ordering::SeqCst);
        self.of_session.fetch_sub(cost, Ordering::SeqCst);
    }
}

/// The sender is gone by then ([`Traffic::forget`]), so nothing is added meanwhile.
impl Drop for Events {
    fn drop(&mut self) {
        self.taken(self.of_ask.load(Ordering::SeqCst));
    }
}

/// Who waits for the events of an ask.
#[derive(Debug)]
struct Waiting {
    sender: Sender<Incoming>,
    queued: Arc<AtomicUsize>,
}

/// What a session's thread and those who ask share.
#[derive(Debug)]
pub(super) struct Traffic {
    host: String,
    stdin: Mutex<Option<Sink>>,
    waiting: Mutex<BTreeMap<u64, Waiting>>,
    /// Memory of the output of all asks that nobody has taken yet, bytes.
    queued: Arc<AtomicUsize>,
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
            queued: Arc::default(),
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
    pub(super) fn begin(&self) -> Result<(u64, Events), FleetError> {
        let (sender, receiver) = channel();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = locked(&self.waiting);
        if let Some(error) = self.end.get() {
            return Err(error.clone());
        }
        let queued = Arc::<AtomicUsize>::default();
        let events = Events {
            receiver,
            of_ask: queued.clone(),
            of_session: self.queued.clone(),
        };
        waiting.insert(number, Waiting { sender, queued });
        Ok((number, events))
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

    /// Memory of output that nobody has taken yet, bytes.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
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
                self.hand_over(ask, Incoming::Output(to, frame.body))?;
            }
            Header::Answer { ask, outcome } => {
                self.hand_over(ask, Incoming::Ended(outcome))?;
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
    fn hand_over(&self, ask: u64, incoming: Incoming) -> Result<(), Trouble> {
        let waiting = locked(&self.waiting);
        let Some(one) = waiting.get(&ask) else {
            return Ok(());
        };
        let cost = incoming.cost();
        one.queued.fetch_add(cost, Ordering::SeqCst);
        let before = self.queued.fetch_add(cost, Ordering::SeqCst);
        if before.saturating_add(cost) > MOST_QUEUED {
            return Err(Trouble::TooMuch { most: MOST_QUEUED });
        }
        drop(one.sender.send(incoming));
        Ok(())
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
        let mut piece = vec![0; PIECE];
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
