//! The client's probes: small messages on a connection of their own and new connections, in three phases of the test.
//!
//! A message is due every [`EVERY`], and its round trip counts from then, so that a late answer delays no figure behind it.
//! At most [`MOST_UNANSWERED`] wait for their answers, fewer than a new connection may send at once; a message that is due
//! meanwhile is left out and counted as that.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::JoinHandle;

use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{clock, socket, tcp, thread};
use linerate_model::plan::{End, Plan};
use linerate_model::tcp_info::TcpFacts;
use linerate_model::units::Nanos;
use linerate_model::working_latency::{LatencyProbes, ProbePhase};
use linerate_wire::probe::{self, PROBE_BYTES};
use socket2::Socket;

use crate::sockets;

/// From one message's due time to the next one's.
const EVERY: Nanos = Nanos::from_millis(25);
/// From one new connection's to the next one's.
const CONNECT_EVERY: Nanos = Nanos::from_millis(200);
/// Messages without an answer at a time: the initial window is of ten segments (RFC 6928).
const MOST_UNANSWERED: usize = 8;
/// The idle phase lasts so long, and until so many answers have come, but no longer than the last.
pub(super) const IDLE_LEAST: Nanos = Nanos::from_millis(1000);
pub(super) const IDLE_ANSWERS: u64 = 20;
pub(super) const IDLE_MOST: Nanos = Nanos::from_millis(4000);
/// The phase after the load.
pub(super) const AFTER: Nanos = Nanos::from_millis(1000);
/// How long answers of the last phase may still take.
const LAST_ANSWERS: Nanos = Nanos::from_millis(500);
/// The ramp that is left out: a third of the planned time, and at most so much; with bytes or blocks, the last.
const RAMP_MOST: Nanos = Nanos::from_millis(10_000);
const RAMP_OF_BYTES: Nanos = Nanos::from_millis(1000);

/// A phase of the test. Nothing is sent in [`Phase::Pause`]; in [`Phase::Ramp`] nothing is counted, and the connection's
/// retransmission timer gets used to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    Pause,
    Idle,
    Ramp,
    Loaded,
    After,
    End,
}

impl Phase {
    const ALL: [Self; 6] = [
        Self::Pause,
        Self::Idle,
        Self::Ramp,
        Self::Loaded,
        Self::After,
        Self::End,
    ];

    fn of(number: u8) -> Self {
        Self::ALL
            .get(usize::from(number))
            .copied()
            .unwrap_or(Self::End)
    }
}

/// When the probes of the loaded phase begin, after the streams were let go.
pub(super) fn ramp(plan: &Plan) -> Nanos {
    let ramp = match plan.end {
        End::TimeNs(span) => Nanos(span.0 / 3).min(RAMP_MOST),
        End::Bytes(_) | End::Blocks(_) => RAMP_OF_BYTES,
    };
    plan.omit_ns.plus(ramp)
}

/// What the session and the probes' thread share.
struct Shared {
    phase: AtomicU8,
    news: EventFd,
    answered: AtomicU64,
    broken: AtomicBool,
}

/// The probes' thread; dropping it ends it without a result.
pub(super) struct Probes {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<LatencyProbes>>,
}

impl Probes {
    /// Opens the probe connection and starts the thread, in [`Phase::Idle`].
    pub(super) fn start(plan: &Arc<Plan>, remote: SocketAddr, cookie: &[u8]) -> io::Result<Self> {
        let stream = sockets::open_probe(plan, remote, cookie)?;
        let shared = Arc::new(Shared {
            phase: AtomicU8::new(Phase::Idle as u8),
            news: EventFd::new()?,
            answered: AtomicU64::new(0),
            broken: AtomicBool::new(false),
        });
        let prober = Prober::new(Arc::clone(plan), remote, stream, Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("latency".to_owned())
            .spawn(move || prober.run())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.shared.phase.store(phase as u8, Ordering::Release);
        drop(self.shared.news.raise());
    }

    /// Answers that have come.
    pub(super) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Acquire)
    }

    /// Whether the probe connection has ended by itself.
    pub(super) fn is_broken(&self) -> bool {
        self.shared.broken.load(Ordering::Acquire)
    }

    /// What was measured.
    pub(super) fn finish(mut self) -> LatencyProbes {
        self.enter(Phase::End);
        let thread = self.thread.take();
        let measured = thread.and_then(|thread| thread.join().ok());
        measured.unwrap_or_else(|| none("the thread of the probes failed"))
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.enter(Phase::End);
    }
}

/// A record that says why there is nothing in it.
pub(super) fn none(reason: &str) -> LatencyProbes {
    LatencyProbes {
        missing: Some(reason.into()),
        message_bytes: u32::try_from(PROBE_BYTES).unwrap_or(u32::MAX),
        every_ns: EVERY,
        connect_every_ns: CONNECT_EVERY,
        ..LatencyProbes::default()
    }
}

/// A message that waits for its answer.
struct Waiting {
    number: u64,
    due: Nanos,
    phase: Phase,
}

/// A connection that is being opened.
struct Connecting {
    socket: Socket,
    began: Nanos,
    phase: Phase,
}

/// What the thread has.
struct Prober {
    plan: Arc<Plan>,
    remote: SocketAddr,
    stream: TcpStream,
    shared: Arc<Shared>,
    measured: LatencyProbes,
    phase: Phase,
    waiting: VecDeque<Waiting>,
    numbers: u64,
    next_message: Nanos,
    connecting: Option<Connecting>,
    next_connect: Nanos,
    answer: [u8; PROBE_BYTES],
    have: usize,
}

impl Prober {
    fn new(plan: Arc<Plan>, remote: SocketAddr, stream: TcpStream, shared: Arc<Shared>) -> Self {
        Self {
            plan,
            remote,
            stream,
            shared,
            measured: LatencyProbes {
                missing: None,
                ..none("")
            },
            phase: Phase::Pause,
            waiting: VecDeque::with_capacity(MOST_UNANSWERED),
            numbers: 0,
            next_message: Nanos::ZERO,
            connecting: None,
            next_connect: Nanos::ZERO,
            answer: [0; PROBE_BYTES],
            have: 0,
        }
    }

    fn run(mut self) -> LatencyProbes {
        // Without it a wait ends up to 50 µs late.
        drop(thread::set_timer_slack(Nanos(1)));
        if let Err(error) = self.measure() {
            self.measured.missing = Some(format!("the probe connection failed: {error}").into());
            self.shared.broken.store(true, Ordering::Release);
        }
        for one in std::mem::take(&mut self.waiting) {
            if let Some(phase) = self.counts(one.phase) {
                phase.unanswered += 1;
            }
        }
        self.give_up_connecting();
        self.enter(Phase::End, clock::monotonic());
        self.measured
    }

    fn measure(&mut self) -> io::Result<()> {
        let mut until = None;
        loop {
            let now = clock::monotonic();
            let phase = Phase::of(self.shared.phase.load(Ordering::Acquire));
            if phase != self.phase {
                self.enter(phase, now);
            }
            if phase == Phase::End {
                let last = *until.get_or_insert(now.plus(LAST_ANSWERS));
                if self.waiting.is_empty() || now >= last {
                    return Ok(());
                }
            } else if phase != Phase::Pause {
                self.send_due(now)?;
                self.connect_due(now);
            }
            self.wait(until)?;
            self.read_answers()?;
        }
    }

    fn enter(&mut self, phase: Phase, now: Nanos) {
        if let Some(left) = self.counts(self.phase) {
            left.to_ns = now;
        }
        self.give_up_connecting();
        self.phase = phase;
        if let Some(entered) = self.counts(phase) {
            entered.from_ns = now;
        }
        (self.next_message, self.next_connect) = (now, now);
    }

    /// Where what belongs to a phase is counted.
    fn counts(&mut self, phase: Phase) -> Option<&mut ProbePhase> {
        match phase {
            Phase::Idle => Some(&mut self.measured.idle),
            Phase::Loaded => Some(&mut self.measured.loaded),
            Phase::After => Some(&mut self.measured.after),
            Phase::Pause | Phase::Ramp | Phase::End => None,
        }
    }

    /// Sends what is due by now, or counts it as left out: as many as were due while this thread had no CPU.
    fn send_due(&mut self, now: Nanos) -> io::Result<()> {
        // A message that was lost under load holds up the answers behind it until it is repeated.
        let left = |one: &Waiting| one.phase != Phase::After;
        if self.phase == Phase::After && self.waiting.front().is_some_and(left) {
            self.next_message = now.plus(EVERY);
            return Ok(());
        }
        while self.next_message <= now {
            let due = self.next_message;
            self.next_message = due.plus(EVERY);
            let full = self.waiting.len() >= MOST_UNANSWERED;
            if full {
                if let Some(counts) = self.counts(self.phase) {
                    counts.left_out += 1;
                }
                continue;
            }
            let number = self.numbers;
            self.numbers += 1;
            if socket::send(&self.stream, &probe::encode(number))? != PROBE_BYTES {
                return Err(io::ErrorKind::WriteZero.into());
            }
            let delay = clock::monotonic().since(due);
            let phase = self.phase;
            if let Some(counts) = self.counts(phase) {
                counts.sent += 1;
                counts.own_delays.add(delay);
            }
            self.waiting.push_back(Waiting { number, due, phase });
        }
        Ok(())
    }

    /// Begins a new connection, one at a time.
    fn connect_due(&mut self, now: Nanos) {
        if self.phase == Phase::Ramp || self.next_connect > now || self.connecting.is_some() {
            return;
        }
        self.next_connect = now.plus(CONNECT_EVERY);
        let began = clock::monotonic();
        match sockets::begin_connection(&self.plan, self.remote) {
            Ok(socket) => {
                self.connecting = Some(Connecting {
                    socket,
                    began,
                    phase: self.phase,
                });
            }
            Err(_) => self.count_failed(self.phase),
        }
    }

    fn count_failed(&mut self, phase: Phase) {
        if let Some(counts) = self.counts(phase) {
            counts.connects_failed += 1;
        }
    }

    fn give_up_connecting(&mut self) {
        if let Some(one) = self.connecting.take() {
            self.count_failed(one.phase);
        }
    }

    /// Waits for an answer, a connection, another phase, or for what is due.
    fn wait(&mut self, until: Option<Nanos>) -> io::Result<()> {
        let next = match self.phase {
            Phase::Pause => None,
            Phase::End => until,
            Phase::Ramp => Some(self.next_message),
            _ if self.connecting.is_some() => Some(self.next_message),
            _ => Some(self.next_message.min(self.next_connect)),
        };
        let mut entries = Vec::with_capacity(3);
        entries.push(PollEntry::new(self.shared.news.as_fd(), Interest::READ));
        entries.push(PollEntry::new(self.stream.as_fd(), Interest::READ));
        if let Some(one) = &self.connecting {
            entries.push(PollEntry::new(one.socket.as_fd(), Interest::WRITE));
        }
        poll::wait(
            &mut entries,
            next.map(|next| next.since(clock::monotonic())),
        )?;
        let told = entries[0].readiness().any();
        let stands = entries.get(2).is_some_and(|one| one.readiness().any());
        drop(entries);
        if told {
            drop(self.shared.news.clear());
        }
        if stands {
            self.connected(clock::monotonic());
        }
        Ok(())
    }

    fn connected(&mut self, now: Nanos) {
        let Some(one) = self.connecting.take() else {
            return;
        };
        if !matches!(socket::pending_error(&one.socket), Ok(None)) {
            return self.count_failed(one.phase);
        }
        // After a repeated packet the kernel has no sample of the handshake (RFC 6298, section 3).
        let info = tcp::info(&one.socket).ok();
        let facts = info.map(|info| TcpFacts::from(&info)).unwrap_or_default();
        let repeated = facts.total_retrans_packets != Some(0);
        let round_trip = facts.rtt_us.filter(|rtt| *rtt > 0 && !repeated);
        if let Some(counts) = self.counts(one.phase) {
            counts.connects.add(now.since(one.began));
            if let Some(us) = round_trip {
                counts.handshakes.add(Nanos(us.saturating_mul(1000)));
            }
        }
    }

    fn read_answers(&mut self) -> io::Result<()> {
        loop {
            match socket::receive(&self.stream, &mut self.answer[self.have..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.have += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.have == PROBE_BYTES {
                self.have = 0;
                self.answered(clock::monotonic())?;
            }
        }
    }

    /// An answer is whole: answers come in the order of the questions.
    fn answered(&mut self, now: Nanos) -> io::Result<()> {
        let number = probe::number(&self.answer);
        let asked = self.waiting.pop_front();
        let Some(one) = asked.filter(|one| Some(one.number) == number) else {
            let text = "the server sent something else than its probes' answers";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        };
        if let Some(counts) = self.counts(one.phase) {
            counts.round_trips.add(now.since(one.due));
        }
        self.shared.answered.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::units::Bytes;

    use super::*;

    #[test]
    fn a_third_of_the_test_is_its_ramp() {
        let mut plan = Plan::new("h");
        plan.end = End::TimeNs(Nanos::from_millis(3000));
        assert_eq!(ramp(&plan), Nanos::from_millis(1000));
        plan.omit_ns = Nanos::from_millis(2000);
        assert_eq!(ramp(&plan), Nanos::from_millis(3000));
        plan.end = End::TimeNs(Nanos::from_millis(600_000));
        assert_eq!(ramp(&plan), Nanos::from_millis(12_000));
        plan.end = End::Bytes(Bytes(1));
        assert_eq!(ramp(&plan), Nanos::from_millis(3000));
    }
}
