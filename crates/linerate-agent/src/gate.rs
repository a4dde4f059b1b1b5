//! Between a hub and the agent that runs commands: every ask is checked by the law before it goes on, and what it takes is
//! booked before it begins.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_fleet::tunnel::{Tunnel, TunnelError};
use linerate_kernel::clock;
use linerate_model::plain_text::PlainText;
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_model::watch::UnixMillis;
use linerate_wire::agent::{Ask, Frame, FrameReader, Header, Outcome, Word, encode};

use crate::law::{Books, BytesIn as _, Deed, Grant, Law, Refusal, Rule, Spent};

/// The stack of a thread that passes frames on.
const STACK: usize = 256 << 10;

/// What the words of an ask amount to, or why no law allows them.
pub type Reading = dyn Fn(&Ask) -> Result<Deed, Refusal> + Send + Sync;

/// A law and its books. They outlive connections: a new one does not begin at nothing.
pub struct Gate {
    law: Law,
    read: Box<Reading>,
    now: Box<dyn Fn() -> UnixMillis + Send + Sync>,
    state: Mutex<State>,
}

struct State {
    spent: Spent,
    running: BTreeMap<u64, Running>,
    /// When the last command ended, or the connection began. Monotonic.
    rested: Nanos,
    /// Whether the connection is about to end: nothing begins any more.
    leaves: bool,
}

/// How a connection ended where nothing went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It was stopped here.
    Stopped,
    /// No command ran for as long as was asked for.
    Rested,
    /// The hub ended it and said why.
    Told(PlainText),
}

struct Running {
    rate: Option<BitRate>,
    is_both: bool,
    booked: Bytes,
    /// When the bytes were taken.
    taken: UnixMillis,
    /// Monotonic.
    began: Nanos,
    until: Option<Nanos>,
}

impl Gate {
    /// `read` says what the words of an ask amount to; `now` is the time.
    pub fn new(
        law: Law,
        spent: Spent,
        read: Box<Reading>,
        now: Box<dyn Fn() -> UnixMillis + Send + Sync>,
    ) -> Self {
        Self {
            law,
            read,
            now,
            state: Mutex::new(State {
                spent,
                running: BTreeMap::new(),
                rested: Nanos::ZERO,
                leaves: false,
            }),
        }
    }

    /// Allows an ask, adds the options of its grant, and books what it takes.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn begin(&self, ask: &mut Ask) -> Result<(), Refusal> {
        let deed = (self.read)(ask)?;
        let now = (self.now)();
        let mut state = self.locked();
        if state.leaves {
            return Err(Rule::Verbs.refuses("the connection ends"));
        }
        if state.running.contains_key(&ask.ask) {
            return Err(Rule::Verbs.refuses(format!("there is a command {} already", ask.ask)));
        }
        let running = state.running.iter();
        let books = Books {
            running: running.map(|(ask, one)| (*ask, one.rate)).collect(),
            spent: state.spent.on(now),
        };
        let grant = self.law.permit(&deed, now, &books)?;
        if self.law.bytes_a_day.is_some() {
            // What is not on disk could be spent again after a restart.
            let taken = state.spent.take(now, grant.booked);
            taken.map_err(|error| Rule::BytesADay.refuses(error.to_string()))?;
        }
        let began = clock::monotonic();
        let Grant {
            rate,
            booked,
            within,
            options,
        } = grant;
        ask.words.extend(options.into_iter().map(Word::from));
        let is_both = match &deed {
            Deed::Test(load) | Deed::Serve(load) => load.is_both,
            _ => false,
        };
        let running = Running {
            rate,
            is_both,
            booked,
            taken: now,
            began,
            until: within.map(|within| began.plus(within)),
        };
        state.running.insert(ask.ask, running);
        Ok(())
    }

    /// A command has ended: bytes that it cannot have moved are given back. `ran` is whether it began at all.
    pub fn end(&self, ask: u64, ran: bool) {
        let mut state = self.locked();
        state.rested = clock::monotonic();
        if let Some(running) = state.running.remove(&ask) {
            self.settle(&mut state, &running, ran);
        }
    }

    fn settle(&self, state: &mut State, running: &Running, ran: bool) {
        if self.law.bytes_a_day.is_none() {
            return;
        }
        let elapsed = clock::monotonic().since(running.began);
        let moved = running.rate.map_or(0, |rate| rate.bytes_in(elapsed));
        let moved = moved.saturating_mul(if running.is_both { 2 } else { 1 });
        let moved = if ran { moved } else { 0 };
        let left = Bytes(running.booked.0.saturating_sub(moved));
        // Where that cannot be written, the bytes stay spent.
        drop(state.spent.give_back(running.taken, left));
    }

    /// The commands that take longer than they may, each once.
    fn overdue(&self) -> Vec<u64> {
        let now = clock::monotonic();
        let mut state = self.locked();
        let late = state.running.iter_mut();
        let late = late.filter_map(|(ask, running)| {
            let is_late = running.until.is_some_and(|until| now >= until);
            is_late.then(|| {
                running.until = None;
                *ask
            })
        });
        late.collect()
    }

    /// Whether no command has run for `rest`; none begins any more then. A test is several commands, one after the other.
    fn leaves(&self, rest: Nanos) -> bool {
        let mut state = self.locked();
        let rested = clock::monotonic().since(state.rested);
        state.leaves = state.leaves || state.running.is_empty() && rested >= rest;
        state.leaves
    }

    /// The connection ended, and with it all that ran.
    fn clear(&self) {
        let mut state = self.locked();
        for (_, running) in std::mem::take(&mut state.running) {
            self.settle(&mut state, &running, true);
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a hub until one end ends or `stop` is readable: `to` and `from` are the agent's standard input and output.
    /// Dropping `to` at the end ends the agent. `rest` is asked twice a second: once it names a time, the connection ends as
    /// soon as no command has run for that time.
    ///
    /// # Errors
    /// Why the connection ended, where neither `stop` nor the agent ended it.
    pub fn serve(
        &self,
        tunnel: Tunnel,
        to: impl Write + Send,
        from: impl Read + Send,
        stop: Option<BorrowedFd<'_>>,
        rest: &dyn Fn() -> Option<Nanos>,
    ) -> Result<Ended, TunnelError> {
        {
            let mut state = self.locked();
            state.rested = clock::monotonic();
            state.leaves = false;
        }
        let rested = Cell::new(false);
        let (inside, outside) = UnixStream::pair()?;
        let to_hub = Mutex::new(inside.try_clone()?);
        let to_agent = Mutex::new(Some(to));
        let bye = Mutex::new(None);
        let carried = std::thread::scope(|scope| {
            let thread = || std::thread::Builder::new().stack_size(STACK);
            let (from_hub, to_hub, to_agent, bye) = (&inside, &to_hub, &to_agent, &bye);
            let asks = thread().spawn_scoped(scope, move || {
                self.pass_asks(from_hub, to_agent, to_hub, bye);
                // Its end of input ends the agent.
                drop(lock(to_agent).take());
                drop(from_hub.shutdown(Shutdown::Both));
            });
            let answers = thread().spawn_scoped(scope, move || {
                self.pass_answers(from, to_hub);
                drop(from_hub.shutdown(Shutdown::Both));
            });
            let carried = asks.and(answers).map_err(TunnelError::from).and_then(|_| {
                tunnel.carry(&outside, stop, &|| {
                    for ask in self.overdue() {
                        drop(write_frame(to_agent, &Header::Cancel { ask }, &[]));
                    }
                    rested.set(rest().is_some_and(|rest| self.leaves(rest)));
                    !rested.get()
                })
            });
            drop(outside.shutdown(Shutdown::Both));
            carried
        });
        self.clear();
        let said = lock(&bye).take();
        match (carried, said) {
            (Err(TunnelError::Revoked), _) if rested.get() => Ok(Ended::Rested),
            (Ok(()) | Err(TunnelError::Closed), Some(said)) => Ok(Ended::Told(said)),
            (carried, _) => carried.map(|()| Ended::Stopped),
        }
    }

    /// From the hub to the agent, until one of them ends.
    fn pass_asks<W: Write>(
        &self,
        mut from_hub: &UnixStream,
        to_agent: &Mutex<Option<W>>,
        to_hub: &Mutex<UnixStream>,
        bye: &Mutex<Option<PlainText>>,
    ) {
        let mut reader = FrameReader::default();
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = match from_hub.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            reader.push(&piece[..length]);
            loop {
                match reader.frame() {
                    Ok(None) => break,
                    Ok(Some(frame)) => {
                        if let Header::Bye { why } = &frame.header {
                            *lock(bye) = Some(why.clone());
                            return;
                        }
                        if self.pass_ask(frame, to_agent, to_hub).is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        *lock(bye) = Some(error.to_string().into());
                        return;
                    }
                }
            }
        }
    }

    fn pass_ask<W: Write>(
        &self,
        frame: Frame,
        to_agent: &Mutex<Option<W>>,
        to_hub: &Mutex<UnixStream>,
    ) -> io::Result<()> {
        let Header::Ask(mut ask) = frame.header else {
            return write_frame(to_agent, &frame.header, &frame.body);
        };
        match self.begin(&mut ask) {
            Ok(()) => write_frame(to_agent, &Header::Ask(ask), &frame.body),
            // The hub learns that the connection ended, which is no refusal.
            Err(_) if self.locked().leaves => Err(io::ErrorKind::BrokenPipe.into()),
            Err(refusal) => {
                let answer = Header::Answer {
                    ask: ask.ask,
                    outcome: Outcome::Refused(refusal.to_string().into()),
                };
                send(to_hub, &answer, &[])
            }
        }
    }

    /// From the agent to the hub, until one of them ends.
    fn pass_answers(&self, mut from: impl Read, to_hub: &Mutex<UnixStream>) {
        let mut reader = FrameReader::default();
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = match from.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            reader.push(&piece[..length]);
            while let Ok(Some(frame)) = reader.frame() {
                if let Header::Answer { ask, outcome } = &frame.header {
                    let ran = !matches!(outcome, Outcome::Refused(_) | Outcome::Busy(_));
                    self.end(*ask, ran);
                }
                if send(to_hub, &frame.header, &frame.body).is_err() {
                    return;
                }
            }
        }
    }
}

fn write_frame<W: Write>(
    to_agent: &Mutex<Option<W>>,
    header: &Header,
    body: &[u8],
) -> io::Result<()> {
    let frame = encode(header, body).map_err(io::Error::other)?;
    let mut to = lock(to_agent);
    let to = to.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    to.write_all(&frame)?;
    to.flush()
}

fn send(to_hub: &Mutex<UnixStream>, header: &Header, body: &[u8]) -> io::Result<()> {
    let frame = encode(header, body).map_err(io::Error::other)?;
    lock(to_hub).write_all(&frame)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
