//! A connection to the agent on a host: commands are asked for over it, several at once.

mod asked;
mod child;
mod opening;
mod traffic;

#[cfg(test)]
mod tests;

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use linerate_model::units::Nanos;
use linerate_wire::agent::{FileIn, Header, Hello, Word, encode};

pub use asked::{Asked, Event};

use crate::bootstrap::Binary;
use crate::carrier::Carrier;
use crate::error::{FleetError, Trouble};
use opening::Opening;
use traffic::Traffic;

/// A connection is given up where no frame comes for so long; the other end sends one every [`HEARTBEAT`].
pub const SILENCE: Nanos = Nanos::from_millis(30_000);
/// How often a frame is sent where there is nothing to say.
pub const HEARTBEAT: Nanos = Nanos::from_millis(5_000);
/// Connecting to a host takes no longer where nobody says otherwise.
pub const USUAL_CONNECT_TIMEOUT: Nanos = Nanos::from_millis(10_000);
/// A session's thread needs little.
const STACK: usize = 256 << 10;

/// How hosts are reached. Clones share the binaries and the password.
#[derive(Debug, Clone)]
pub struct Reach {
    /// What carries bytes to a host.
    pub carrier: Carrier,
    /// What is copied to hosts that do not have it.
    pub binaries: Arc<[Binary]>,
    /// How the agents become root; `None`: they stay the user who is reached.
    pub elevation: Option<Elevation>,
    /// A host that does not answer for so long while connecting is given up.
    pub connect_timeout: Nanos,
}

/// sudo on the far side.
#[derive(Clone)]
pub struct Elevation {
    password: Arc<dyn Fn() -> Result<String, String> + Send + Sync>,
}

impl Elevation {
    /// `password` is asked each time that a host's sudo wants one; it says why there is none.
    pub fn new(password: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self {
            password: Arc::new(password),
        }
    }

    fn password(&self) -> Result<String, String> {
        (self.password)()
    }
}

impl std::fmt::Debug for Elevation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Elevation")
    }
}

/// A command of linerate that a host is to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// Its arguments, without the program's name.
    pub words: Vec<Word>,
    /// Files that go along, by name and content; [`Word::In`] is the index of one. 8 MiB together at most.
    pub files: Vec<(String, Vec<u8>)>,
    /// Variables of its environment; an empty value removes one.
    pub environment: Vec<(String, String)>,
    /// Who asks, where the host may run no other command that is exclusive at the same time.
    pub exclusive: Option<String>,
}

impl Ask {
    /// A command with these arguments, and nothing else.
    pub fn new<W: Into<Word>>(words: impl IntoIterator<Item = W>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// The command line as a person reads it.
    fn command(&self) -> String {
        let words = self.words.iter().map(|word| match word {
            Word::Text(text) => text.clone(),
            Word::In(at) => self
                .files
                .get(*at)
                .map_or_else(String::new, |(name, _)| name.clone()),
            Word::Out(at) => format!("OUT{at}"),
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// An agent that runs on a host for as long as this value lives. Dropping it ends the commands that run there, and
/// waits until the carrier has ended, at most some seconds.
#[derive(Debug)]
pub struct Session {
    host: String,
    hello: Hello,
    traffic: Arc<Traffic>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Session {
    /// Connects to a host: finds or copies linerate there and starts its agent.
    ///
    /// # Errors
    /// Why the host cannot be had.
    pub fn open(host: &str, reach: &Reach) -> Result<Self, FleetError> {
        Self::start(host, Way::Reach(Box::new(reach.clone())))
    }

    /// Takes the connection that a host's agent made: `stream` carries its frames both ways.
    ///
    /// # Errors
    /// Where no agent's hello comes within some seconds, or one of another version.
    pub fn over(host: &str, stream: UnixStream) -> Result<Self, FleetError> {
        Self::start(host, Way::Stream(stream))
    }

    /// Starts an agent on this host, without a carrier; `host` is what it is called.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn here(host: &str) -> Result<Self, FleetError> {
        Self::start(host, Way::Here)
    }

    fn start(host: &str, way: Way) -> Result<Self, FleetError> {
        let (opened, is_open) = mpsc::sync_channel(1);
        let name = host.to_owned();
        // The carrier is bound to the life of this thread, which therefore starts it.
        let thread = std::thread::Builder::new()
            .name("session".to_owned())
            .stack_size(STACK)
            .spawn(move || run(&name, way, &opened))
            .map_err(|error| no_thread(host, &error))?;
        match is_open.recv() {
            Ok(Ok((hello, traffic))) => Ok(Self {
                host: host.to_owned(),
                hello,
                traffic,
                thread: Mutex::new(Some(thread)),
            }),
            Ok(Err(error)) => {
                drop(thread.join());
                Err(error)
            }
            Err(_) => Err(Trouble::OutOfTurn {
                what: "an end of its session's thread".to_owned(),
            }
            .of(host)),
        }
    }

    /// Whether the host still answers, as far as is known.
    pub fn is_open(&self) -> bool {
        self.traffic.is_open()
    }

    /// The host, as it was named.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What the agent says of itself.
    pub const fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Starts a command there. Several may run at once.
    ///
    /// # Errors
    /// Where the ask is too large, or the connection has ended.
    pub fn ask(&self, ask: Ask) -> Result<Asked, FleetError> {
        let command = ask.command();
        let too_large = |source| {
            Trouble::Ask {
                command: command.clone(),
                source,
            }
            .of(&self.host)
        };
        let (number, events) = self.traffic.begin()?;
        let asked = Asked::new(self.traffic.clone(), number, events);
        let body: Vec<u8> = ask
            .files
            .iter()
            .flat_map(|(_, bytes)| bytes)
            .copied()
            .collect();
        let files = ask.files.into_iter().map(|(name, bytes)| FileIn {
            name,
            length: bytes.len() as u64,
        });
        let header = Header::Ask(linerate_wire::agent::Ask {
            ask: number,
            words: ask.words,
            files: files.collect(),
            environment: ask.environment,
            exclusive: ask.exclusive,
        });
        let frame = encode(&header, &body).map_err(too_large)?;
        self.traffic.send(&frame)?;
        Ok(asked)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.traffic.close();
        let thread = self.thread.lock().map(|mut thread| thread.take());
        if let Ok(Some(thread)) = thread {
            drop(thread.join());
        }
    }
}

fn no_thread(host: &str, error: &std::io::Error) -> FleetError {
    Trouble::Carrier {
        program: "a thread".to_owned(),
        why: error.to_string(),
    }
    .of(host)
}

/// How an agent is had.
enum Way {
    /// By a carrier.
    Reach(Box<Reach>),
    /// On this host.
    Here,
    /// It connected.
    Stream(UnixStream),
}

type Opened = Result<(Hello, Arc<Traffic>), FleetError>;

/// A session's thread: opens it, then reads frames until it ends.
fn run(host: &str, way: Way, opened: &mpsc::SyncSender<Opened>) {
    let opening = match way {
        Way::Reach(reach) => Opening::start(host, &reach),
        Way::Here => Opening::here(host),
        Way::Stream(stream) => Opening::over(host, stream),
    };
    let result = opening.and_then(Opening::run);
    let (hello, far, reader) = match result {
        Ok(open) => open,
        Err(error) => {
            drop(opened.send(Err(error)));
            return;
        }
    };
    match Traffic::new(host, far, reader) {
        Ok((traffic, mut incoming)) => {
            let traffic = Arc::new(traffic);
            // The opener waits for it, or has given up: then the traffic ends at once.
            if opened.send(Ok((hello, traffic.clone()))).is_err() {
                traffic.close();
            }
            incoming.run(&traffic);
        }
        Err(error) => drop(opened.send(Err(error))),
    }
}

/// A lock whose holder panicked protects nothing that could be half done here.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
