//! The hub with a thousand agents, each of which is tested every two minutes: what it takes of this machine, and whether each test
//! has its row.
//!
//! The hub is the real one, in a process of its own. The agents are threads of this one: their connections, certificates and
//! frames are real, their tests are not. A short crowd of 200 is part of all tests; `make crowd` has a thousand for some minutes
//! (`LINERATE_CROWD_MINUTES`), `LINERATE_CROWD_AGENTS` as many as it says.

mod agent;
mod gauge;
mod past;
mod sample;
mod verdict;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_agent::enrol::enrol;
use linerate_agent::identity::Identity;
use linerate_archive::Archive;
use linerate_kernel::clock;
use linerate_model::watch::UnixMillis;
use linerate_wire::enrol::Invitation;

use crate::harness::{
    Folder, LONG, Running, asked, beside, free_port, linerate, run, say, start, wait_until,
};
use crate::hub::PATIENCE;
use agent::Crowd;
use gauge::{Reader, Usage};
use sample::Sample;

/// A crowd, and how long it is looked at.
#[derive(Debug, Clone, Copy)]
struct Size {
    agents: usize,
    /// One test of each pair in this time, seconds.
    period: u64,
    /// How long a test of the sample is, seconds.
    test: u32,
    /// How long the hub is measured, seconds.
    seconds: u64,
    /// Tests of each pair that the archive has already.
    past: u64,
}

impl Size {
    /// 1,000 agents with 12 tests a day each, at 60 times the speed; where nobody says how long, a small crowd.
    fn asked() -> Self {
        let minutes = asked("LINERATE_CROWD_MINUTES");
        let agents = asked("LINERATE_CROWD_AGENTS").and_then(|agents| agents.try_into().ok());
        match minutes {
            Some(minutes) => Self {
                agents: agents.unwrap_or(1_000),
                period: 120,
                test: 10,
                seconds: minutes * 60,
                // As many as alerts remember.
                past: 120,
            },
            None => Self {
                agents: agents.unwrap_or(200),
                period: 20,
                test: 3,
                seconds: 30,
                past: 10,
            },
        }
    }

    /// Resident memory that the hub may take, MB: 250 with a thousand agents, of which 40 without one.
    fn most_memory(&self) -> f64 {
        40.0 + 0.21 * self.agents as f64
    }
}

fn now() -> UnixMillis {
    UnixMillis(clock::wall().0 / 1_000_000)
}

/// A folder for a hub, and its ports.
struct Bed {
    folder: Folder,
    pages: u16,
    agents: u16,
    hosts: Vec<String>,
}

impl Bed {
    fn new(size: Size) -> Self {
        let folder = Folder::new();
        let hosts: Vec<String> = (0..size.agents).map(|at| format!("node{at:04}")).collect();
        let bed = Self {
            folder,
            pages: free_port(),
            agents: free_port(),
            hosts,
        };
        let last = size.agents - 1;
        let mut plan = format!(
            "[[host]]\nnames = \"node[0000-{last:04}]\"\nlink = \"1G\"\n[[task]]\nname = \"ring\"\ntest = \"-t {} -b 100M\"\n\
             every = \"{}s\"\npairs = [\n",
            size.test, size.period
        );
        for [from, to] in bed.pairs() {
            writeln!(plan, "  [\"{from}\", \"{to}\"],").unwrap();
        }
        bed.folder.with("watch.toml", plan + "]\n");
        bed
    }

    /// Each host sends to the next.
    fn pairs(&self) -> BTreeSet<[String; 2]> {
        let next = self.hosts.iter().cycle().skip(1);
        let pairs = self.hosts.iter().zip(next);
        pairs.map(|(from, to)| [from.clone(), to.clone()]).collect()
    }

    fn data(&self) -> PathBuf {
        self.folder.file("data")
    }

    fn pages(&self) -> String {
        format!("127.0.0.1:{}", self.pages)
    }

    fn at(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.agents))
    }

    fn hub(&self) -> Running {
        let words = format!("hub --listen {} --agents {}", self.pages(), self.at());
        let mut command = linerate(&words);
        command.arg("--folder").arg(self.data());
        let hub = start(command.arg(self.folder.file("watch.toml")));
        let listens = wait_until(PATIENCE, || hub.out().contains("agents connect to"));
        assert!(listens, "{}{}", hub.out(), hub.error());
        hub
    }

    /// Enrols all hosts, as `linerate agent --enrol` does.
    fn enrol(&self) -> Vec<Identity> {
        let mut command = linerate(&format!("hub token new --uses {}", self.hosts.len()));
        let done = run(command.arg("--folder").arg(self.data()), LONG).expect(0);
        let invitation: Invitation = done.out.trim().parse().unwrap();
        let hub = self.at().to_string();
        let (hub, invitation) = (&hub, &invitation);
        let enrol_some = |some: &[String]| -> Vec<Identity> {
            let one = |host: &String| {
                let folder = self.folder.file(&format!("state-{host}"));
                enrol(hub, invitation, host, &folder).unwrap()
            };
            some.iter().map(one).collect()
        };
        std::thread::scope(|scope| {
            let parts = self.hosts.chunks(self.hosts.len().div_ceil(8));
            let parts: Vec<_> = parts
                .map(|some| scope.spawn(move || enrol_some(some)))
                .collect();
            let parts = parts.into_iter().map(|part| part.join().unwrap());
            parts.flatten().collect()
        })
    }

    /// Reads the archive of a hub that has ended.
    fn archive(&self) -> Archive {
        Archive::open_existing(&self.data()).unwrap()
    }
}

/// Waits until all agents are connected; how long that took.
#[track_caller]
fn wait_for_all(crowd: &Crowd, hub: &Running, agents: usize) -> Duration {
    let began = Instant::now();
    let all = wait_until(PATIENCE, || crowd.connected() == agents);
    assert!(all, "{} of {agents}\n{}", crowd.connected(), hub.error());
    began.elapsed()
}

/// Hub, agents and pages for a while; what came of it, in lines.
fn watch(bed: &Bed, size: Size, hub: &Running) -> Usage {
    let pairs = bed.pairs();
    let [from, to] = pairs.first().unwrap();
    let paths = [
        "/".to_owned(),
        format!("/pair?task=ring&from={from}&to={to}"),
        "/metrics".to_owned(),
    ];
    let reader = Reader::start(&bed.pages(), &paths);
    let before = Usage::of(hub.pid());
    let until = Instant::now() + Duration::from_secs(size.seconds);
    let mut last = before;
    while Instant::now() < until {
        std::thread::sleep(Duration::from_secs(size.seconds.min(30)));
        let now = Usage::of(hub.pid());
        say(&format!(
            "crowd: hub {:.1} MB, {:.3} cores, {} threads",
            now.resident,
            now.cores_since(&last),
            now.threads
        ));
        last = now;
    }
    let after = Usage::of(hub.pid());
    say(&format!(
        "crowd: {} agents, {} s: hub at most {:.1} MB, {:.3} cores",
        size.agents,
        size.seconds,
        after.most,
        after.cores_since(&before)
    ));
    say(&format!("crowd: pages: {}", reader.stop()));
    after
}

/// All agents, which end with this.
struct Agents {
    crowd: Arc<Crowd>,
    threads: Vec<JoinHandle<()>>,
}

impl Agents {
    /// Enrols all hosts and starts their agents; returns once all are connected and said what they are like.
    fn start(bed: &Bed, sample: Sample, hub: &Running) -> Self {
        let began = Instant::now();
        let identities = bed.enrol();
        say(&format!("crowd: enrolled in {}", seconds(began.elapsed())));
        // A test of ten seconds in one: 60 times the speed would leave less than the hub's own steps take.
        let crowd = Crowd::new(sample, Duration::from_secs(1), bed.at());
        let join = |(number, identity)| crowd.join(number, identity);
        let threads = identities.into_iter().enumerate().map(join).collect();
        let count = bed.hosts.len();
        let took = wait_for_all(&crowd, hub, count);
        say(&format!(
            "crowd: all connected after {}, {} connections tried",
            seconds(took),
            crowd.dialled()
        ));
        let told = wait_until(PATIENCE, || crowd.facts() >= count as u64);
        assert!(told, "{} facts\n{}", crowd.facts(), hub.error());
        Self { crowd, threads }
    }

    /// Waits until so many more tests have been made.
    #[track_caller]
    fn wait_for_tests(&self, more: usize, hub: &Running) {
        let before = self.crowd.tested();
        let made = wait_until(PATIENCE, || self.crowd.tested() > before + more as u64);
        assert!(made, "{}", hub.error());
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.crowd.end();
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// All agents come back at once to a hub that is killed and starts again.
fn kill(bed: &Bed, mut hub: Running, crowd: &Crowd) -> Running {
    hub.kill();
    let (began, tried) = (Instant::now(), crowd.dialled());
    assert!(wait_until(PATIENCE, || crowd.connected() == 0));
    let hub = bed.hub();
    wait_for_all(crowd, &hub, bed.hosts.len());
    say(&format!(
        "crowd: all connected {} after the hub was killed, {} connections tried",
        seconds(began.elapsed()),
        crowd.dialled() - tried
    ));
    hub
}

#[test]
fn a_hub_with_many_agents_stays_small_and_loses_no_test() {
    let _beside = beside();
    let size = Size::asked();
    let sample = Sample::make(size.test);
    let bytes = sample.bytes();
    say(&format!("crowd: {size:?}, records of {bytes} bytes"));
    let bed = Bed::new(size);
    past::write(&bed.data(), &bed.pairs(), size.past, now());
    let (since, began) = (now(), Instant::now());
    let hub = bed.hub();
    say(&format!(
        "crowd: the hub started in {}",
        seconds(began.elapsed())
    ));
    let agents = Agents::start(&bed, sample, &hub);

    let steady = now();
    let usage = watch(&bed, size, &hub);
    let steady = [steady, now()];
    assert!(usage.most < size.most_memory(), "{usage:?}");

    let hub = kill(&bed, hub, &agents.crowd);
    agents.wait_for_tests(size.agents / 4, &hub);
    hub.signal("TERM");
    let done = hub.wait(PATIENCE).expect(0);
    let span = [since, now()];
    let period = size.period * 1_000;
    let verdict = verdict::of(&bed.archive(), &bed.pairs(), period, span, steady);
    let sent = agents.crowd.tested();
    say(&format!("crowd: {sent} records sent; {verdict}"));
    assert_eq!(agents.crowd.wrong(), Vec::<String>::new());
    assert_eq!(verdict.wrong, Vec::<String>::new(), "{}", done.error);
    assert!(verdict.measured > 0, "{verdict}");
}
