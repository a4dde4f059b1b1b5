//! A host's agent that tests nothing: it proves who it is over TLS, speaks the frames of a real one, and answers each test with
//! the record of a real one.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_agent::dial::{BackOff, dial};
use linerate_agent::identity::Identity;
use linerate_fleet::session::HEARTBEAT;
use linerate_fleet::tunnel::{Tunnel, TunnelError};
use linerate_kernel::clock;
use linerate_model::units::Nanos;
use linerate_wire::agent::{
    Ask, Frame, FrameReader, Header, Hello, Outcome, PROTOCOL, Stream, Word, encode,
};
use serde_json::json;

use super::sample::Sample;

/// The stack of an agent's thread.
const STACK: usize = 256 << 10;
/// A connection that stood for so long counts as one that works, as with a real agent.
const STOOD: Duration = Duration::from_secs(10);
/// How often a server looks whether its client has ended.
const LOOK: Duration = Duration::from_millis(25);
/// How often an agent looks whether it is to end.
const SLICE: Duration = Duration::from_secs(1);
/// A large piece of output is cut, as a real agent does.
const PIECE: usize = 256 << 10;
/// How long a frame may take to be sent.
const SENDING: Nanos = Nanos::from_millis(30_000);

/// What all agents share.
#[derive(Debug)]
pub(super) struct Crowd {
    sample: Sample,
    /// How long a test takes from the client's command to its record.
    load: Duration,
    hub: SocketAddr,
    over: AtomicBool,
    next_port: AtomicU16,
    /// Ports whose client has ended.
    ended: Mutex<BTreeSet<u16>>,
    connected: AtomicUsize,
    dialled: AtomicU64,
    facts: AtomicU64,
    tested: AtomicU64,
    /// What went wrong; empty = nothing.
    wrong: Mutex<Vec<String>>,
}

impl Crowd {
    pub(super) fn new(sample: Sample, load: Duration, hub: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            sample,
            load,
            hub,
            over: AtomicBool::new(false),
            next_port: AtomicU16::new(10_000),
            ended: Mutex::default(),
            connected: AtomicUsize::new(0),
            dialled: AtomicU64::new(0),
            facts: AtomicU64::new(0),
            tested: AtomicU64::new(0),
            wrong: Mutex::default(),
        })
    }

    /// Starts the agent of a host, the one of this number.
    pub(super) fn join(self: &Arc<Self>, number: usize, identity: Identity) -> JoinHandle<()> {
        let crowd = self.clone();
        let agent = move || Agent::new(&crowd, number, identity).run();
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn(agent).unwrap()
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// How many are connected now.
    pub(super) fn connected(&self) -> usize {
        self.connected.load(Ordering::SeqCst)
    }

    /// How many connections were tried.
    pub(super) fn dialled(&self) -> u64 {
        self.dialled.load(Ordering::SeqCst)
    }

    /// How often an agent told what its host is like.
    pub(super) fn facts(&self) -> u64 {
        self.facts.load(Ordering::SeqCst)
    }

    /// How many records were sent.
    pub(super) fn tested(&self) -> u64 {
        self.tested.load(Ordering::SeqCst)
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        self.wrong.lock().unwrap().clone()
    }

    fn port(&self) -> u16 {
        let next = |port: u16| Some(if port >= 60_000 { 10_000 } else { port + 1 });
        let order = Ordering::SeqCst;
        self.next_port
            .fetch_update(order, order, next)
            .unwrap_or(10_000)
    }
}

/// The address of a host.
pub(super) fn address(number: usize) -> IpAddr {
    let [.., high, low] = u32::try_from(number).unwrap().to_be_bytes();
    Ipv4Addr::new(10, 1, high, low).into()
}

/// What an agent has to say at a moment.
struct Later {
    at: Instant,
    ask: u64,
    /// The port of its server, for a client.
    port: u16,
}

struct Agent<'a> {
    crowd: &'a Crowd,
    number: usize,
    identity: Identity,
    chance: RandomState,
    chances: u64,
    /// Servers that wait for their client to end.
    serving: Vec<(u64, u16)>,
    /// Clients that run.
    testing: Vec<Later>,
}

impl<'a> Agent<'a> {
    fn new(crowd: &'a Crowd, number: usize, identity: Identity) -> Self {
        Self {
            crowd,
            number,
            identity,
            chance: RandomState::new(),
            chances: 0,
            serving: Vec::new(),
            testing: Vec::new(),
        }
    }

    fn run(&mut self) {
        let mut back_off = BackOff::default();
        while !self.crowd.is_over() {
            let hub = self.crowd.hub.to_string();
            let began = Instant::now();
            self.crowd.dialled.fetch_add(1, Ordering::SeqCst);
            if let Ok(tunnel) = dial(&hub, &self.identity) {
                self.crowd.connected.fetch_add(1, Ordering::SeqCst);
                let ended = self.attend(tunnel);
                self.crowd.connected.fetch_sub(1, Ordering::SeqCst);
                self.serving.clear();
                self.testing.clear();
                if let Err(why) = ended {
                    self.crowd.wrong.lock().unwrap().push(why);
                }
            }
            if began.elapsed() >= STOOD {
                back_off.reset();
            }
            self.chances += 1;
            let until = Instant::now() + back_off.next(self.chance.hash_one(self.chances));
            while Instant::now() < until && !self.crowd.is_over() {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Serves the hub until the connection ends.
    fn attend(&mut self, mut tunnel: Tunnel) -> Result<(), String> {
        let hello = Header::Hello(Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            host: self.identity.name.as_str().into(),
            ..Hello::default()
        });
        let mut reader = FrameReader::default();
        let mut bytes = Vec::new();
        let mut beaten = Instant::now();
        let mut sent = send(&mut tunnel, &hello, &[]);
        while sent.is_ok() && !self.crowd.is_over() {
            let now = Instant::now();
            if now.duration_since(beaten) >= HEARTBEAT.as_duration() {
                beaten = now;
                sent = send(&mut tunnel, &Header::Heartbeat, &[]);
            }
            sent = sent.and_then(|()| self.say_what_is_due(&mut tunnel));
            if sent.is_err() {
                return Ok(());
            }
            let until = clock::monotonic().plus(self.patience(beaten));
            match tunnel.receive(&mut bytes, until) {
                Ok(()) => {}
                Err(TunnelError::Silent) => continue,
                Err(_) => return Ok(()),
            }
            reader.push(&std::mem::take(&mut bytes));
            loop {
                match reader.frame() {
                    Ok(Some(frame)) => sent = sent.and_then(|()| self.take(&mut tunnel, frame)),
                    Ok(None) => break,
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// How long nothing is to be said.
    fn patience(&self, beaten: Instant) -> Nanos {
        let now = Instant::now();
        let beat = (beaten + HEARTBEAT.as_duration()).saturating_duration_since(now);
        let due = self.testing.iter().map(|test| test.at);
        let due = due.map(|at| at.saturating_duration_since(now)).min();
        let look = (!self.serving.is_empty()).then_some(LOOK);
        let soonest = [Some(beat), due, look].into_iter().flatten().min();
        let soonest = soonest.unwrap_or(SLICE).min(SLICE);
        // A deadline that has passed already is taken for silence.
        Nanos::from_millis(u64::try_from(soonest.as_millis()).unwrap().max(1))
    }

    fn say_what_is_due(&mut self, tunnel: &mut Tunnel) -> Result<(), TunnelError> {
        let now = Instant::now();
        while let Some(at) = self.testing.iter().position(|test| test.at <= now) {
            let test = self.testing.swap_remove(at);
            let record = self.crowd.sample.record();
            for piece in record.chunks(PIECE) {
                let header = Header::Output {
                    ask: test.ask,
                    to: Stream::File(0),
                };
                send(tunnel, &header, piece)?;
            }
            answer(tunnel, test.ask, Outcome::Code(0))?;
            self.crowd.tested.fetch_add(1, Ordering::SeqCst);
            self.crowd.ended.lock().unwrap().insert(test.port);
        }
        let over = |(_, port): &(u64, u16)| self.crowd.ended.lock().unwrap().remove(port);
        while let Some(at) = self.serving.iter().position(over) {
            let (ask, _) = self.serving.swap_remove(at);
            answer(tunnel, ask, Outcome::Code(0))?;
        }
        Ok(())
    }

    fn take(&mut self, tunnel: &mut Tunnel, frame: Frame) -> Result<(), TunnelError> {
        match frame.header {
            Header::Ask(ask) => self.obey(tunnel, &ask),
            Header::Cancel { ask } => {
                let before = self.serving.len() + self.testing.len();
                self.serving.retain(|(own, _)| *own != ask);
                self.testing.retain(|test| test.ask != ask);
                if before == self.serving.len() + self.testing.len() {
                    return Ok(());
                }
                answer(tunnel, ask, Outcome::Signal(15))
            }
            _ => Ok(()),
        }
    }

    fn obey(&mut self, tunnel: &mut Tunnel, ask: &Ask) -> Result<(), TunnelError> {
        let texts = ask.words.iter().filter_map(|word| match word {
            Word::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let words: Vec<&str> = texts.collect();
        match words.as_slice() {
            ["host", ..] => {
                self.crowd.facts.fetch_add(1, Ordering::SeqCst);
                let facts = self.crowd.sample.facts(&self.identity.name);
                print(tunnel, ask.ask, &facts)
            }
            ["reach", ..] => print(tunnel, ask.ask, &self.surroundings(&words)),
            ["serve", ..] => {
                let port = self.crowd.port();
                self.crowd.ended.lock().unwrap().remove(&port);
                self.serving.push((ask.ask, port));
                let at = SocketAddr::new(address(self.number), port);
                let line = json!({ "event": "listening", "address": at, "port": port });
                let header = Header::Output {
                    ask: ask.ask,
                    to: Stream::Out,
                };
                send(tunnel, &header, format!("{line}\n").as_bytes())
            }
            ["test", _, "-p", port, ..] => {
                let port = port.parse().unwrap_or_default();
                self.testing.push(Later {
                    at: Instant::now() + self.crowd.load,
                    ask: ask.ask,
                    port,
                });
                Ok(())
            }
            other => {
                let what = format!("{}: asked for {other:?}", self.identity.name);
                self.crowd.wrong.lock().unwrap().push(what);
                answer(tunnel, ask.ask, Outcome::Refused("unknown".into()))
            }
        }
    }

    /// What `linerate reach` prints: all that is asked for can be connected to.
    fn surroundings(&self, words: &[&str]) -> Vec<u8> {
        let asked = words.iter().filter_map(|word| word.parse().ok());
        let answers = asked.map(|address: SocketAddr| json!({ "address": address }));
        let said = json!({
            "namespace": self.identity.name,
            "reached": null,
            "addresses": [{ "address": address(self.number), "prefix": 16, "interface": "eth0" }],
            "answers": answers.collect::<Vec<_>>(),
        });
        format!("{said}\n").into_bytes()
    }
}

fn send(tunnel: &mut Tunnel, header: &Header, body: &[u8]) -> Result<(), TunnelError> {
    let frame = encode(header, body).unwrap();
    tunnel.send(&frame, clock::monotonic().plus(SENDING))
}

fn answer(tunnel: &mut Tunnel, ask: u64, outcome: Outcome) -> Result<(), TunnelError> {
    send(tunnel, &Header::Answer { ask, outcome }, &[])
}

/// All of what a command writes, and its end.
fn print(tunnel: &mut Tunnel, ask: u64, text: &[u8]) -> Result<(), TunnelError> {
    let to = Stream::Out;
    send(tunnel, &Header::Output { ask, to }, text)?;
    answer(tunnel, ask, Outcome::Code(0))
}
