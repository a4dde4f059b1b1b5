//! The law of a host: what a hub may have it do. It is a file that only root can change, and it bounds the sum of all tests.
//!
//! [`Law::permit`] is pure: the time, what runs and what was spent today are arguments ([`Books`]).

mod file;
mod keys;
mod spent;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use linerate_engine::server::Network;
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_model::watch::UnixMillis;

pub use keys::TOP;
pub use spent::Spent;

/// Where the law is where nobody names another file.
pub const USUAL: &str = "/etc/linerate/agent.toml";
/// A test may last no longer where the law does not say.
const USUAL_SECONDS: Nanos = Nanos::from_millis(300_000);
const DAY_MILLIS: u64 = 86_400_000;
const MINUTE_MILLIS: u64 = 60_000;
/// A server waits so long for its client, which sends nothing meanwhile.
pub const SERVER_WAIT: Nanos = Nanos::from_millis(60_000);
/// The load of a server whose asker does not say how long its test is.
pub const AS_ALLOWED: Nanos = Nanos(u64::MAX);
/// Connecting, draining, writing the record.
const MARGIN: Nanos = Nanos::from_millis(20_000);

/// What a hub may have a host do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Law {
    /// Most bit/s of all tests together, each direction; absent = any.
    pub max_rate: Option<BitRate>,
    /// Longest test, its omitted part counted.
    pub max_seconds: Nanos,
    /// Most bytes of all tests of a day (UTC); absent = any.
    pub bytes_a_day: Option<Bytes>,
    /// Networks of the hosts that it tests with; none = any.
    pub peers: Vec<Network>,
    /// When tests may begin, minutes of a day (UTC), from and until; none = always.
    pub hours: Vec<(u32, u32)>,
    /// What it does at all.
    pub verbs: Vec<Verb>,
}

/// A kind of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Throughput tests, and what they need: a server, trying connections.
    Test,
    /// Saying what the host is like.
    Facts,
    /// Changing settings of the host.
    Tune,
}

/// Each verb's word in the file.
pub const VERBS: [(&str, Verb); 3] = [
    ("test", Verb::Test),
    ("facts", Verb::Facts),
    ("tune", Verb::Tune),
];

/// A rule of the law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Most bit/s of all tests.
    MaxRate,
    /// Longest test.
    MaxSeconds,
    /// Most bytes of a day.
    BytesADay,
    /// Networks of peers.
    Peers,
    /// When tests may begin.
    Hours,
    /// What may be done at all.
    Verbs,
}

impl Rule {
    /// Its key in the file.
    pub const fn key(self) -> &'static str {
        match self {
            Self::MaxRate => "max_rate",
            Self::MaxSeconds => "max_seconds",
            Self::BytesADay => "bytes_a_day",
            Self::Peers => "peers",
            Self::Hours => "hours",
            Self::Verbs => "verbs",
        }
    }
}

/// A rule that forbids something, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host's law forbids it ({}): {why}", rule.key())]
pub struct Refusal {
    /// The rule.
    pub rule: Rule,
    /// What was asked for, and what is allowed.
    pub why: String,
}

impl Rule {
    /// A refusal by this rule.
    pub fn refuses(self, why: impl Into<String>) -> Refusal {
        Refusal {
            rule: self,
            why: why.into(),
        }
    }
}

/// What a command amounts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// It says what the host is like.
    Facts,
    /// It opens connections to these addresses and sends nothing.
    Reach(Vec<IpAddr>),
    /// A test to a server.
    Test(Load),
    /// A server for one test; its load is what its options bound.
    Serve(Load),
    /// It changes settings.
    Tune,
}

/// The load of a test at most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    /// The other host; absent = any that comes.
    pub peer: Option<IpAddr>,
    /// How long bytes flow in a test, the omitted part counted. A server of [`AS_ALLOWED`] serves as long as the law allows.
    pub seconds: Nanos,
    /// All streams together, each direction, and of a server both directions; absent = as fast as it goes.
    pub rate: Option<BitRate>,
    /// Both directions at once.
    pub is_both: bool,
    /// Tests that follow the first one: those that decide its finding.
    pub more: u32,
}

/// What is allowed, and on which terms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// What it may send or receive, bit/s; absent = nothing, or any.
    pub rate: Option<BitRate>,
    /// Bytes that are taken from today's at once.
    pub booked: Bytes,
    /// The command is ended after this time; absent = it is short.
    pub within: Option<Nanos>,
    /// Options that are added to it.
    pub options: Vec<String>,
}

/// What runs, and what was spent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Books {
    /// The rates of what runs, by the number of its ask.
    pub running: BTreeMap<u64, Option<BitRate>>,
    /// Bytes of today.
    pub spent: Bytes,
}

impl Default for Law {
    fn default() -> Self {
        Self {
            max_rate: None,
            max_seconds: USUAL_SECONDS,
            bytes_a_day: None,
            peers: Vec::new(),
            hours: Vec::new(),
            verbs: vec![Verb::Test, Verb::Facts],
        }
    }
}

impl Law {
    /// Allows a command or names the rule that forbids it.
    ///
    /// # Errors
    /// The first rule that forbids it, in the order of [`Rule`]'s checks: verbs, hours, peers, seconds, rate, bytes.
    pub fn permit(&self, deed: &Deed, now: UnixMillis, books: &Books) -> Result<Grant, Refusal> {
        self.has(deed.verb())?;
        match deed {
            Deed::Facts | Deed::Tune => Ok(Grant::default()),
            Deed::Reach(peers) => {
                self.is_open(now)?;
                for peer in peers {
                    self.is_peer(Some(*peer))?;
                }
                Ok(Grant::default())
            }
            Deed::Test(load) => {
                self.is_open(now)?;
                self.is_peer(load.peer)?;
                self.is_one(load)?;
                let mut grant = self.load(load, books)?;
                grant.within = Some(times(load.seconds.plus(MARGIN), load.more));
                Ok(grant)
            }
            Deed::Serve(load) => self.serve(load, now, books),
        }
    }

    /// Counter-tests vary streams and pacing: the rate of the first test bounds none of them.
    fn is_one(&self, load: &Load) -> Result<(), Refusal> {
        if load.more > 0 && self.max_rate.is_some() {
            return Err(Rule::MaxRate.refuses("the rate of counter-tests has no bound"));
        }
        Ok(())
    }

    /// A server is asked for with the length and the rate of its test, and enforces both. It does not know its client yet.
    fn serve(&self, load: &Load, now: UnixMillis, books: &Books) -> Result<Grant, Refusal> {
        self.is_open(now)?;
        self.is_one(load)?;
        let bounded = Load {
            seconds: if load.seconds == AS_ALLOWED {
                self.max_seconds
            } else {
                load.seconds
            },
            ..load.clone()
        };
        let mut grant = self.load(&bounded, books)?;
        let mut options = vec![
            "--max-clients=1".to_owned(),
            format!("--wait={}ms", SERVER_WAIT.0 / 1_000_000),
            format!("--max-duration={}ms", bounded.seconds.0 / 1_000_000),
        ];
        let most = bounded.rate.map(enforced);
        options.extend(most.map(|rate| format!("--max-rate={}", rate.0)));
        let networks = self.peers.iter();
        options.extend(networks.map(|one| format!("--allow={}/{}", one.address(), one.prefix())));
        grant.options = options;
        let one = SERVER_WAIT.plus(bounded.seconds).plus(MARGIN);
        grant.within = Some(times(one, load.more));
        Ok(grant)
    }

    fn has(&self, verb: Verb) -> Result<(), Refusal> {
        if self.verbs.contains(&verb) {
            return Ok(());
        }
        let word = VERBS.iter().find(|(_, one)| *one == verb);
        let word = word.map_or("", |(word, _)| word);
        Err(Rule::Verbs.refuses(format!("'{word}' is not among its verbs")))
    }

    fn is_open(&self, now: UnixMillis) -> Result<(), Refusal> {
        let minute = (now.0 % DAY_MILLIS) / MINUTE_MILLIS;
        let minute = u32::try_from(minute).unwrap_or(0);
        let within = |(from, until): &(u32, u32)| {
            if from < until {
                (*from..*until).contains(&minute)
            } else {
                minute >= *from || minute < *until
            }
        };
        if self.hours.is_empty() || self.hours.iter().any(within) {
            return Ok(());
        }
        let clock = |minute: u32| format!("{:02}:{:02}", minute / 60, minute % 60);
        let hours = self.hours.iter();
        let hours = hours.map(|(from, until)| format!("{}-{}", clock(*from), clock(*until)));
        let hours = hours.collect::<Vec<_>>().join(", ");
        Err(Rule::Hours.refuses(format!(
            "it is {} UTC; tests may begin at {hours}",
            clock(minute)
        )))
    }

    fn is_peer(&self, peer: Option<IpAddr>) -> Result<(), Refusal> {
        if self.peers.is_empty() {
            return Ok(());
        }
        let Some(peer) = peer else {
            return Err(Rule::Peers.refuses("the peer is named and not an address"));
        };
        if self.peers.iter().any(|network| network.contains(peer)) {
            return Ok(());
        }
        Err(Rule::Peers.refuses(format!("{peer} is in none of its networks")))
    }

    fn load(&self, load: &Load, books: &Books) -> Result<Grant, Refusal> {
        if load.seconds > self.max_seconds {
            return Err(Rule::MaxSeconds.refuses(format!(
                "a test of {} was asked for; at most {} are allowed",
                load.seconds, self.max_seconds
            )));
        }
        if let Some(most) = self.max_rate {
            let Some(rate) = load.rate else {
                return Err(Rule::MaxRate.refuses(format!(
                    "a test without -b was asked for; at most {most} are allowed"
                )));
            };
            let others = books.running.values().flatten();
            let others = others.fold(0, |sum: u64, rate| sum.saturating_add(rate.0));
            if rate.0.saturating_add(others) > most.0 {
                let beside = match others {
                    0 => String::new(),
                    _ => format!(" beside {} of other tests", BitRate(others)),
                };
                return Err(Rule::MaxRate.refuses(format!(
                    "{rate} was asked for{beside}; at most {most} are allowed"
                )));
            }
        }
        let booked = load.bytes();
        if let Some(most) = self.bytes_a_day {
            let Some(bytes) = booked else {
                return Err(Rule::BytesADay.refuses("a test without -b has no bound of bytes"));
            };
            if books.spent.0.saturating_add(bytes.0) > most.0 {
                return Err(Rule::BytesADay.refuses(format!(
                    "up to {bytes} were asked for and {} of {most} are spent today (UTC)",
                    books.spent
                )));
            }
        }
        Ok(Grant {
            rate: load.rate,
            booked: booked.unwrap_or_default(),
            ..Grant::default()
        })
    }
}

impl Load {
    /// The most bytes that it moves; absent = it has no bound.
    pub fn bytes(&self) -> Option<Bytes> {
        let directions = if self.is_both { 2 } else { 1 };
        let times = u64::from(self.more).saturating_add(1) * directions;
        self.rate
            .map(|rate| Bytes(rate.bytes_in(self.seconds).saturating_mul(times)))
    }
}

/// What a server that is asked for at a rate enforces, averaged over 5 s: sending catches up after a pause, and a block is
/// sent as a whole.
const fn enforced(rate: BitRate) -> BitRate {
    BitRate(rate.0.saturating_add(rate.0 / 10).saturating_add(1_000_000))
}

/// The time of one test and some more.
fn times(one: Nanos, more: u32) -> Nanos {
    Nanos(one.0.saturating_mul(u64::from(more).saturating_add(1)))
}

/// What a rate amounts to.
pub(crate) trait BytesIn {
    /// Bytes in this time, rounded up.
    fn bytes_in(self, time: Nanos) -> u64;
}

impl BytesIn for BitRate {
    fn bytes_in(self, time: Nanos) -> u64 {
        let bits = u128::from(self.0) * u128::from(time.0);
        u64::try_from(bits.div_ceil(8_000_000_000)).unwrap_or(u64::MAX)
    }
}

impl Deed {
    /// What it needs to be allowed at all.
    pub const fn verb(&self) -> Verb {
        match self {
            Self::Facts => Verb::Facts,
            Self::Reach(_) | Self::Test(_) | Self::Serve(_) => Verb::Test,
            Self::Tune => Verb::Tune,
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs = self.verbs.iter().filter_map(|verb| {
            let found = VERBS.iter().find(|(_, one)| one == verb);
            found.map(|(word, _)| *word)
        });
        write!(out, "{}", verbs.collect::<Vec<_>>().join(", "))?;
        if let Some(rate) = self.max_rate {
            write!(out, "; at most {rate}")?;
        }
        write!(out, "; tests of at most {}", self.max_seconds)?;
        if let Some(bytes) = self.bytes_a_day {
            write!(out, "; at most {bytes} a day")?;
        }
        if !self.peers.is_empty() {
            write!(out, "; peers in {} networks", self.peers.len())?;
        }
        if !self.hours.is_empty() {
            write!(out, "; at {} times of a day", self.hours.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
