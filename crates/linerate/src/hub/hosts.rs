//! Sessions with the hosts of a plan: a thread each, which connects, asks for facts, notices the end and connects again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_fleet::enrolled::Arrivals;
use linerate_fleet::{Ask, Event, Reach, Session};
use linerate_kernel::clock;
use linerate_model::host::HostFacts;
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use linerate_watch::watched::Reach as WatchedReach;
use linerate_wire::agent::Word;

use super::Happened;
use crate::between::far;
use crate::between::reach::Surroundings;

/// The first try after a failed one comes after this time, the next ones after twice the time each.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_AT_MOST: Duration = Duration::from_secs(300);
/// How often it is looked whether a session still stands.
const LOOK: Duration = Duration::from_millis(500);
/// How often a host says what it is like where nothing is wrong with it.
const FACTS_EVERY: Duration = Duration::from_secs(86_400);
/// However much is wrong with it, it says so no more often than this.
const FACTS_AGAIN: Duration = Duration::from_secs(5);
/// A host says what it is like within this time.
const FACTS_WITHIN: Nanos = Nanos::from_millis(20_000);
/// Facts are no longer than this, bytes.
const MOST_FACTS: usize = 8 << 20;
/// So many hosts say at the same time what they are like; the facts that wait for the driver are among them.
const FACTS_AT_ONCE: usize = 8;
/// The stack of a thread that waits for a session.
const STACK: usize = 256 << 10;

/// A host that answers.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) session: Session,
    pub(super) surroundings: Surroundings,
}

/// Who makes the connection to a host's agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialler {
    /// The hub, by ssh.
    Hub,
    /// The agent.
    Agent,
}

impl Dialler {
    /// How a host of a plan is reached; `None` where it has no agent.
    pub(super) const fn of(reach: &WatchedReach) -> Option<Self> {
        match reach {
            WatchedReach::Ssh => Some(Self::Hub),
            WatchedReach::Agent => Some(Self::Agent),
            WatchedReach::Linerate(_) | WatchedReach::Iperf3(_) => None,
        }
    }
}

/// The hosts to which sessions are kept, by name.
pub(super) struct Hosts {
    reach: Arc<Reach>,
    /// Agents that connected; absent = the hub takes none.
    arrivals: Option<Arc<Arrivals>>,
    told: Sender<Happened>,
    permits: Arc<Permits>,
    facts_permits: Arc<Permits>,
    kept: BTreeMap<String, Kept>,
}

struct Kept {
    dialler: Dialler,
    end: Arc<End>,
    facts_wanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hosts {
    /// `at_once` bounds how many hosts are connected to at the same time.
    pub(super) fn new(
        reach: Reach,
        arrivals: Option<Arc<Arrivals>>,
        at_once: usize,
        told: Sender<Happened>,
    ) -> Self {
        Self {
            reach: Arc::new(reach),
            arrivals,
            told,
            permits: Permits::of(at_once.max(1)),
            facts_permits: Permits::of(FACTS_AT_ONCE),
            kept: BTreeMap::new(),
        }
    }

    /// Keeps sessions to these hosts, and ends those to others.
    pub(super) fn keep(&mut self, names: &BTreeMap<String, Dialler>) {
        if let Some(arrivals) = &self.arrivals {
            let dialling = names.iter().filter(|(_, by)| **by == Dialler::Agent);
            arrivals.expect(dialling.map(|(name, _)| name.clone()));
        }
        self.kept.retain(|name, kept| {
            let stays = names.get(name) == Some(&kept.dialler);
            if !stays {
                // Its thread ends by itself; nobody waits for it.
                kept.end.set();
            }
            stays
        });
        for (name, dialler) in names {
            if !self.kept.contains_key(name) {
                let kept = self.start(name, *dialler);
                self.kept.insert(name.clone(), kept);
            }
        }
    }

    fn start(&self, name: &str, dialler: Dialler) -> Kept {
        let end = Arc::new(End::default());
        let facts_wanted = Arc::new(AtomicBool::new(false));
        let keeper = Keeper {
            name: name.to_owned(),
            dialler,
            reach: self.reach.clone(),
            arrivals: self.arrivals.clone(),
            told: self.told.clone(),
            permits: self.permits.clone(),
            facts_permits: self.facts_permits.clone(),
            end: end.clone(),
            facts_wanted: facts_wanted.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("host".to_owned())
            .stack_size(STACK)
            .spawn(move || keeper.run());
        if let Err(error) = &thread {
            let why = format!("no thread for its session: {error}").into();
            keeper_away(&self.told, name, why);
        }
        Kept {
            dialler,
            end,
            facts_wanted,
            thread: thread.ok(),
        }
    }

    /// Asks a host what it is like now, as soon as it answers.
    pub(super) fn ask_facts(&self, name: &str) {
        if let Some(kept) = self.kept.get(name) {
            kept.facts_wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Ends all sessions and waits for their threads.
    pub(super) fn end(&mut self) {
        for kept in self.kept.values() {
            kept.end.set();
        }
        for kept in self.kept.values_mut() {
            if let Some(thread) = kept.thread.take() {
                drop(thread.join());
            }
        }
        self.kept.clear();
    }
}

fn keeper_away(told: &Sender<Happened>, name: &str, why: PlainText) {
    // The hub may have ended.
    drop(told.send(Happened::Away(name.to_owned(), why)));
}

/// The thread of one host.
struct Keeper {
    name: String,
    dialler: Dialler,
    reach: Arc<Reach>,
    arrivals: Option<Arc<Arrivals>>,
    told: Sender<Happened>,
    permits: Arc<Permits>,
    facts_permits: Arc<Permits>,
    end: Arc<End>,
    /// Somebody wants to know what the host is like now.
    facts_wanted: Arc<AtomicBool>,
}

impl Keeper {
    fn run(self) {
        let mut pause = AGAIN;
        while !self.end.is_set() {
            let opened = self.open();
            // Somebody else may keep sessions to this host by now.
            if self.end.is_set() {
                return;
            }
            match opened {
                Some(Ok(standing)) => {
                    pause = AGAIN;
                    self.stand(standing);
                }
                Some(Err(why)) => {
                    keeper_away(&self.told, &self.name, why.into());
                    self.end.wait(pause);
                    pause = (pause * 2).min(AGAIN_AT_MOST);
                }
                None => return,
            }
        }
    }

    /// Connects; `None` where the hub ends meanwhile.
    fn open(&self) -> Option<Result<Standing, String>> {
        let session = match self.dialler {
            Dialler::Hub => {
                let _permit = self.permits.take(&self.end)?;
                Session::open(&self.name, &self.reach).map_err(|error| error.trouble.to_string())
            }
            Dialler::Agent => self.arrival()?,
        };
        let standing = |session| {
            let stop = || self.end.is_set();
            let surroundings =
                far::surroundings(&session, &stop).map_err(|failure| failure.why.to_string())?;
            Ok(Standing {
                session,
                surroundings,
            })
        };
        Some(session.and_then(standing))
    }

    /// Waits until the host's agent connects.
    fn arrival(&self) -> Option<Result<Session, String>> {
        let Some(arrivals) = &self.arrivals else {
            return Some(Err(
                "this hub takes no agents: start it with --agents".to_owned()
            ));
        };
        let mut first = arrivals.take(&self.name, Duration::ZERO);
        if first.is_none() {
            keeper_away(&self.told, &self.name, "its agent is not connected".into());
        }
        while first.is_none() {
            if self.end.is_set() {
                return None;
            }
            first = arrivals.take(&self.name, LOOK);
        }
        first.map(Ok)
    }

    /// Whether the host's agent connected anew: the session that stands is a former one's.
    fn is_replaced(&self) -> bool {
        let arrivals = self.arrivals.as_ref();
        self.dialler == Dialler::Agent && arrivals.is_some_and(|all| all.has(&self.name))
    }

    /// Whether the host is to say what it is like, so long after it did.
    fn wants_facts(&self, since: Duration) -> bool {
        let every = if self.facts_wanted.load(Ordering::Relaxed) {
            FACTS_AGAIN
        } else {
            FACTS_EVERY
        };
        since >= every
    }

    /// Waits as long as the session stands.
    fn stand(&self, standing: Standing) {
        let standing = Arc::new(standing);
        let up = Happened::Up(self.name.clone(), standing.clone());
        if self.told.send(up).is_err() {
            return;
        }
        let mut told_facts: Option<Instant> = None;
        let mut gathering: Option<JoinHandle<()>> = None;
        while !self.end.is_set() {
            if self.is_replaced() {
                let why = "its agent connected anew";
                drop(
                    self.told
                        .send(Happened::Lost(self.name.clone(), why.into())),
                );
                return;
            }
            if !standing.session.is_open() {
                let why = "its agent ended or did not answer for 30 s";
                drop(
                    self.told
                        .send(Happened::Lost(self.name.clone(), why.into())),
                );
                return;
            }
            // One at a time: an answer that comes late is no change back.
            if gathering.as_ref().is_none_or(JoinHandle::is_finished)
                && told_facts.is_none_or(|at| self.wants_facts(at.elapsed()))
                && let Some(permit) = self.facts_permits.try_take()
            {
                self.facts_wanted.store(false, Ordering::Relaxed);
                told_facts = Some(Instant::now());
                gathering = self.gather(standing.clone(), permit);
            }
            self.end.wait(LOOK);
        }
    }

    /// Asks in a thread of its own: facts are large, and this one keeps what it once used.
    fn gather(&self, standing: Arc<Standing>, permit: Permit) -> Option<JoinHandle<()>> {
        let (told, name) = (self.told.clone(), self.name.clone());
        let gather = move || {
            if let Some(facts) = facts(&standing.session) {
                let facts = Box::new(facts);
                drop(told.send(Happened::Facts(name, facts, permit)));
            }
        };
        let thread = std::thread::Builder::new().name("facts".to_owned());
        // Without a thread they are asked for the next time.
        thread.spawn(gather).ok()
    }
}

/// What a host says of itself; `None` where that cannot be read.
fn facts(session: &Session) -> Option<HostFacts> {
    let words = ["host", "--json"].map(Word::from);
    let mut asked = session.ask(Ask::new(words)).ok()?;
    let mut out = Vec::new();
    let until = clock::monotonic().plus(FACTS_WITHIN);
    loop {
        let left = until.since(clock::monotonic());
        match asked.next(Some(left)).ok()? {
            Event::Out(bytes) if out.len() + bytes.len() <= MOST_FACTS => {
                out.extend_from_slice(&bytes);
            }
            // What is longer is not the facts of a host.
            Event::Out(_) => return None,
            Event::Ended(_) => return linerate_report::host::from_json(&out).ok(),
            Event::Err(_) | Event::File(..) => {}
        }
    }
}

/// A moment that comes once, and wakes who waits.
#[derive(Debug, Default)]
pub(super) struct End {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl End {
    pub(super) fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    pub(super) fn is_set(&self) -> bool {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for it, at most so long.
    pub(super) fn wait(&self, most: Duration) {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.changed
                .wait_timeout_while(is_set, most, |is_set| !*is_set),
        );
    }
}

/// How many of something there may be at once.
pub(super) struct Permits {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Permits {
    fn of(free: usize) -> Arc<Self> {
        Arc::new(Self {
            free: Mutex::new(free),
            freed: Condvar::new(),
        })
    }

    fn take(self: &Arc<Self>, end: &End) -> Option<Permit> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            if end.is_set() {
                return None;
            }
            let woken = self.freed.wait_timeout(free, LOOK);
            free = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= 1;
        Some(Permit(self.clone()))
    }

    fn try_take(self: &Arc<Self>) -> Option<Permit> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.checked_sub(1)?;
        Some(Permit(self.clone()))
    }
}

/// One of them, given back when it is dropped.
pub(super) struct Permit(Arc<Permits>);

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
