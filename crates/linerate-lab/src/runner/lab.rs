//! A path that is up.

use std::collections::BTreeMap;

use linerate_kernel::counters::{self, MachineTime};
use linerate_kernel::forward_rules::{self, QueueBy, ToQueue};
use linerate_kernel::namespace::{self, NetworkNamespace};
use linerate_kernel::{process, setting, thread};
use linerate_model::units::{Bytes, Nanos};
use serde::Serialize;

use super::disciplines::{DisciplineSettings, Disciplines};
use super::engine::{Account, Engine, other_labs};
use super::error::LabError;
use super::host::{self, Crossing, Host};
use super::in_force::HostInForce;
use super::queues::{Progress, QUEUES, QueueSettings, Queues};
use crate::scenario::{EngineWish, HostSpec, Mode, PACKET_MODE_LIMIT, Scenario, Way};

/// A lab of which one packet in a hundred leaves later than this, and than this share of the time that a round
/// trip takes with a full queue, may itself be what was measured.
const TOO_LATE: Nanos = Nanos::from_millis(1);
const LATE_SHARE: u64 = 20;
/// Where a scenario occupies a host's CPU, the engine's thread there waits for its turn as well: that is what was
/// asked for. Turns are 3 ms where nobody sets them (`/sys/kernel/debug/sched/base_slice_ns`), and two may come first.
const TURNS: Nanos = Nanos::from_millis(10);
/// Of fewer packets one in a hundred is so few that one moment made them late.
const ENOUGH_PACKETS: u64 = 1000;

/// How the process was set apart from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In a user namespace of its own: it has no right over anything outside.
    UserNamespace,
    /// In a network namespace of its own, as root.
    NetworkNamespace,
}

/// Sets the process apart: from here on its network is an empty one of its own, the router's. To be called
/// while the process has one thread.
///
/// # Errors
/// [`LabError::Namespaces`].
pub fn isolate() -> Result<Isolation, LabError> {
    let source = match namespace::own_user() {
        Ok(()) => return Ok(Isolation::UserNamespace),
        Err(source) => source,
    };
    if namespace::is_root() && namespace::own_network().is_ok() {
        return Ok(Isolation::NetworkNamespace);
    }
    Err(LabError::Namespaces { source })
}

/// What was really in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InForce {
    /// What carried the packets: `NFQUEUE`, or `netem` (with tbf).
    pub engine: &'static str,
    /// Why it was not the engine that comes first, where the scenario leaves the choice; `None` where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// How packets came into the queue: `nf_tables` or `nf_tables, with the xt NFQUEUE target`; `None` without a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_by: Option<&'static str>,
    /// Packet by packet or in bulk.
    pub mode: Mode,
    /// How the lab is set apart from the machine.
    pub isolation: Isolation,
    /// The seed of everything random.
    pub seed: u64,
    /// The CPUs that the engine's two threads stay on, forward and back; those of netem are the kernel's choice.
    pub engine_cpus: [Option<usize>; 2],
    /// Each host.
    pub hosts: BTreeMap<String, HostInForce>,
}

/// What a lab did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabReport {
    /// What was really in force.
    pub in_force: InForce,
    /// What the path did.
    pub path: Account,
    /// Packets that the kernel dropped before the engine heard of them; `None` where unknown, or without a queue.
    pub kernel_dropped: Option<u64>,
    /// Packets that the whole machine dropped between two interfaces of a CPU meanwhile
    /// (`net.core.netdev_max_backlog`); `None` where unknown. A lab's own, unless the machine has a network
    /// of its own that is as busy.
    pub backlog_dropped: Option<u64>,
    /// The most memory that the process which carried the path had resident, bytes; `None` where unknown. Packets
    /// that wait are the kernel's.
    pub memory_peak: Option<Bytes>,
    /// Share of the machine's CPU time that its hypervisor gave to others meanwhile; `None` where unknown.
    pub stolen: Option<f64>,
    /// Processes that ran another lab when this one came up, or when it went down. They are on the same CPUs where
    /// the machine has no more than two.
    pub other_labs: Vec<u32>,
    /// Why the lab itself may have been the bottleneck; empty where it was not, or by netem, which does not tell of
    /// lateness, where nothing else says so.
    pub bottleneck: Vec<String>,
}

/// A path, up.
#[derive(Debug)]
pub struct Lab {
    hosts: Vec<Host>,
    engine: Engine,
    in_force: InForce,
    warnings: Vec<String>,
    /// As long as this may one packet in a hundred be late.
    tolerance: Nanos,
    /// Whether nothing but the lab itself bounds what it is handed.
    unlimited: bool,
    /// CPU time of the machine at the start.
    cpu: Option<MachineTime>,
    /// What the machine had dropped before.
    backlog_dropped: Option<u64>,
    /// Those that ran when it came up.
    other_labs: Vec<u32>,
}

impl Lab {
    /// Brings it up. [`isolate`] has been called. The calling thread is then in the router's namespace, a
    /// new one; a lab that it brought up before must be down.
    ///
    /// # Errors
    /// Each names what was tried, on which host, and what to do.
    pub fn up(scenario: &Scenario, isolation: Isolation) -> Result<Self, LabError> {
        match scenario.engine {
            EngineWish::Nfqueue => Self::by(Kind::Queues, scenario, isolation),
            EngineWish::Netem => Self::by(Kind::Disciplines, scenario, isolation),
            EngineWish::Auto => match Self::by(Kind::Queues, scenario, isolation) {
                Err(queues @ LabError::Queue { .. }) => {
                    let mut lab = Self::by(Kind::Disciplines, scenario, isolation)
                        .map_err(|netem| neither(&queues, netem))?;
                    lab.in_force.instead = Some(queues.to_string());
                    Ok(lab)
                }
                made => made,
            },
        }
    }

    fn by(kind: Kind, scenario: &Scenario, isolation: Isolation) -> Result<Self, LabError> {
        let mode = kind.mode(scenario)?;
        NetworkNamespace::make()
            .and_then(|router| router.enter())
            .map_err(LabError::work("make a network namespace for", "the router"))?;
        set_up_router()?;
        let crossing = kind.crossing(mode);
        let specs = specs(scenario);
        let cpus = thread::affinity().unwrap_or_default();
        let cpus = share_out(&cpus);
        let hosts = specs
            .iter()
            .zip(1..)
            .zip(home_cpus(cpus).into_iter().cycle())
            .map(|(((name, spec), number), cpus)| Host::make(name, number, spec, crossing, &cpus))
            .collect::<Result<Vec<_>, _>>()?;
        let (engine, queued_by) = match kind {
            Kind::Queues => {
                let (queues, by) = start_queues(scenario, mode, &hosts, cpus)?;
                (Engine::Queues(queues), Some(by))
            }
            Kind::Disciplines => (
                Engine::Disciplines(start_disciplines(scenario, &hosts)?),
                None,
            ),
        };
        let in_force = InForce {
            engine: engine.name(),
            instead: None,
            queued_by,
            mode,
            isolation,
            seed: scenario.seed,
            engine_cpus: match kind {
                Kind::Queues => cpus,
                Kind::Disciplines => [None; 2],
            },
            hosts: hosts
                .iter()
                .zip(&specs)
                .map(|(host, (_, spec))| Ok((host.name().to_owned(), host.in_force(spec)?)))
                .collect::<Result<_, LabError>>()?,
        };
        Ok(Self {
            warnings: too_fast(scenario, kind, mode),
            tolerance: tolerance(scenario),
            unlimited: unlimited(scenario, mode),
            hosts,
            engine,
            in_force,
            cpu: counters::machine().ok(),
            backlog_dropped: backlog_dropped(),
            other_labs: other_labs(),
        })
    }

    /// A host by its name.
    ///
    /// # Errors
    /// [`LabError::Host`].
    pub fn host(&self, name: &str) -> Result<&Host, LabError> {
        let found = self.hosts.iter().find(|host| host.name() == name);
        found.ok_or_else(|| LabError::Host {
            name: name.to_owned(),
            hosts: self
                .hosts
                .iter()
                .map(Host::name)
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    /// All hosts: sender, receiver, then those of competing traffic.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// What is really in force.
    pub const fn in_force(&self) -> &InForce {
        &self.in_force
    }

    /// Why the lab itself may become the bottleneck, as far as that is known before anything passed.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The test begins: changes of the path count from now.
    pub fn begin(&self) {
        self.engine.begin();
    }

    /// What the path did so far.
    pub fn progress(&self) -> Account {
        self.engine.progress()
    }

    /// Whether the engine goes on.
    pub fn is_running(&self) -> bool {
        self.engine.is_running()
    }

    /// Stops the path and says what it did.
    ///
    /// # Errors
    /// [`LabError::Work`] where the engine had failed on the way.
    pub fn down(mut self) -> Result<LabReport, LabError> {
        let kernel_dropped = match self.engine {
            Engine::Queues(_) => linerate_kernel::packet_queue::dropped(&QUEUES),
            Engine::Disciplines(_) => None,
        };
        let mut others = self.other_labs;
        others.extend(other_labs());
        others.sort_unstable();
        others.dedup();
        let path = self
            .engine
            .stop()
            .map_err(LabError::work("go on with", "the path"))?;
        let cpu = counters::machine().ok().zip(self.cpu);
        let stolen = cpu.and_then(|(now, before)| now.since(before).stolen_share());
        let backlog = backlog_dropped().zip(self.backlog_dropped);
        let backlog_dropped = backlog.map(|(after, before)| after.saturating_sub(before));
        let mut bottleneck = self.warnings;
        let lags = match &path {
            Account::Queues(path) => lagging(path, self.tolerance, kernel_dropped, stolen),
            Account::Disciplines(_) => Vec::new(),
        };
        if !lags.is_empty() && self.unlimited {
            bottleneck.push(format!(
                "the path has no rate, and about {PACKET_MODE_LIMIT} is what can be decided packet by packet; a rate, or mode = \"bulk\", takes the lab out of it"
            ));
        }
        bottleneck.extend(lags);
        if let Some(dropped) = backlog_dropped.filter(|dropped| *dropped > 0) {
            bottleneck.push(format!(
                "the machine dropped {dropped} packets between two interfaces (net.core.netdev_max_backlog)"
            ));
        }
        Ok(LabReport {
            in_force: self.in_force,
            path,
            kernel_dropped,
            backlog_dropped,
            memory_peak: process::peak_memory(),
            stolen,
            other_labs: others,
            bottleneck,
        })
    }
}

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Queues,
    Disciplines,
}

impl Kind {
    /// How packets are decided by it; netem loses and delays what it is handed, so that must be single packets.
    fn mode(self, scenario: &Scenario) -> Result<Mode, LabError> {
        let keys = match self {
            Self::Queues => return Ok(scenario.resolved_mode()),
            Self::Disciplines => scenario.beyond_netem(),
        };
        if keys.is_empty() {
            Ok(Mode::Packet)
        } else {
            Err(LabError::BeyondNetem { keys })
        }
    }

    /// Nothing cuts between a host and a discipline of the router, so the host does.
    const fn crossing(self, mode: Mode) -> Crossing {
        match (self, mode) {
            (_, Mode::Bulk) => Crossing::Whole,
            (Self::Queues, Mode::Packet) => Crossing::Segments,
            (Self::Disciplines, Mode::Packet) => Crossing::Packets,
        }
    }
}

/// What to say where there are no queues and netem does not help; other errors have nothing to do with the engine.
fn neither(queues: &LabError, netem: LabError) -> LabError {
    match netem {
        LabError::BeyondNetem { .. } | LabError::Disciplines { .. } => LabError::NoEngine {
            queues: queues.to_string(),
            netem: netem.to_string(),
        },
        other => other,
    }
}

fn start_queues(
    scenario: &Scenario,
    mode: Mode,
    hosts: &[Host],
    cpus: [Option<usize>; 2],
) -> Result<(Queues, &'static str), LabError> {
    let queued_by = send_to_queues(hosts)?;
    let settings = QueueSettings {
        forward: &scenario.path.forward,
        back: &scenario.path.back,
        seed: scenario.seed,
        mode,
        cross: hosts.iter().skip(2).map(|host| host.port).collect(),
        mtu: [
            scenario.sender.mtu.min(scenario.receiver.mtu),
            HostSpec::default().mtu,
        ],
        cpus,
    };
    let queues = Queues::start(&settings).map_err(|source| LabError::Queue { source })?;
    Ok((queues, queued_by))
}

fn start_disciplines(scenario: &Scenario, hosts: &[Host]) -> Result<Disciplines, LabError> {
    let port = |at: usize| hosts.get(at).map_or("", |host| host.port_name.as_str());
    let settings = DisciplineSettings {
        forward: &scenario.path.forward,
        back: &scenario.path.back,
        seed: scenario.seed,
        // What goes forward leaves towards the receiver.
        ports: [port(1), port(0)],
        mtu: scenario.sender.mtu.max(scenario.receiver.mtu),
    };
    Disciplines::start(&settings).map_err(|source| LabError::Disciplines { source })
}

/// How late a packet in a hundred may leave. What is late by a twentieth of what the scenario itself lets round
/// trips vary, from an empty path to full queues, moves no rate or delay by more than that.
fn tolerance(scenario: &Scenario) -> Nanos {
    let full = |way| {
        let settings = scenario.path.direction(way).settings;
        let link = settings.bottleneck;
        let queue = link.map_or(Nanos::ZERO, |link| link.rate.time_for(link.queue));
        settings.delay.plus(settings.jitter).plus(queue)
    };
    let round_trip = full(Way::Forward).plus(full(Way::Back));
    let least = if scenario.sender.cpu.or(scenario.receiver.cpu).is_some() {
        TURNS
    } else {
        TOO_LATE
    };
    least.max(Nanos(round_trip.0 / LATE_SHARE))
}

/// CPUs for the engine's two threads, forward and back.
pub(super) fn share_out(cpus: &[usize]) -> [Option<usize>; 2] {
    match cpus {
        [.., back, forward] => [Some(*forward), Some(*back)],
        _ => [cpus.first().copied(); 2],
    }
}

/// CPUs of the programs on hosts that send forward and on those that send back. A host's kernel works on the
/// CPU of the thread that lets packets go to it: its programs stay there too, or what they send would
/// overtake, or be overtaken by, what the kernel sends for them when an acknowledgement comes.
fn home_cpus([forward, back]: [Option<usize>; 2]) -> [Vec<usize>; 2] {
    [back.into_iter().collect(), forward.into_iter().collect()]
}

/// Names and settings of the hosts, those of competing traffic only where there is some.
fn specs(scenario: &Scenario) -> Vec<(&'static str, HostSpec)> {
    let mut specs = vec![
        ("sender", scenario.sender.clone()),
        ("receiver", scenario.receiver.clone()),
    ];
    if !scenario.path.cross.is_empty() {
        specs.push(("cross-sender", HostSpec::default()));
        specs.push(("cross-receiver", HostSpec::default()));
    }
    specs
}

fn set_up_router() -> Result<(), LabError> {
    let place = "router";
    setting::set_up("lo", true).map_err(LabError::network(place))?;
    host::set(place, "net.ipv4.ip_forward", "1")?;
    host::set(place, "net.ipv6.conf.all.forwarding", "1")
}

/// Odd hosts (the first, the third) send forward, even ones back.
fn send_to_queues(hosts: &[Host]) -> Result<&'static str, LabError> {
    let rules: Vec<ToQueue> = hosts
        .iter()
        .zip(QUEUES.into_iter().cycle())
        .map(|(host, queue)| ToQueue {
            interface: host.port,
            queue,
        })
        .collect();
    match forward_rules::queue_forwarded(&rules) {
        Ok(QueueBy::Tables) => Ok("nf_tables"),
        Ok(QueueBy::Compat) => Ok("nf_tables, with the xt NFQUEUE target"),
        Err(source) => Err(LabError::Queue { source }),
    }
}

fn too_fast(scenario: &Scenario, kind: Kind, mode: Mode) -> Vec<String> {
    let rates = scenario
        .all_settings()
        .filter_map(|(_, settings)| settings.bottleneck.map(|link| link.rate));
    match rates.max() {
        Some(asked) if mode == Mode::Packet && asked > PACKET_MODE_LIMIT => vec![match kind {
            Kind::Queues => format!(
                "the path's rate of {asked} is more than packets can be decided on one by one (about {PACKET_MODE_LIMIT}); mode = \"bulk\" carries more"
            ),
            Kind::Disciplines => format!(
                "the path's rate of {asked} is more than {PACKET_MODE_LIMIT}, and the qdiscs get packets one by one \
                 and do not report whether they were late; engine = \"nfqueue\" with mode = \"bulk\" carries more"
            ),
        }],
        _ => Vec::new(),
    }
}

/// Where the test's data is decided on packet by packet and no rate bounds it, the lab itself may be what does.
fn unlimited(scenario: &Scenario, mode: Mode) -> bool {
    let ways = scenario.test.ways();
    let mut all = scenario.all_settings();
    mode == Mode::Packet
        && all.any(|(way, settings)| ways.contains(&way) && settings.bottleneck.is_none())
}

fn backlog_dropped() -> Option<u64> {
    let cpus = counters::softnet().ok()?;
    Some(cpus.iter().map(|cpu| u64::from(cpu.dropped)).sum())
}

fn lagging(
    path: &Progress,
    tolerance: Nanos,
    kernel_dropped: Option<u64>,
    stolen: Option<f64>,
) -> Vec<String> {
    let mut reasons = Vec::new();
    for (name, passed) in [("forward", &path.forward), ("back", &path.back)] {
        let late = passed.lateness;
        if late.p99 > tolerance && late.packets >= ENOUGH_PACKETS {
            reasons.push(format!(
                "of the packets {name}, one in a hundred left more than {} late, the latest {}{}",
                late.p99,
                late.most,
                stolen_words(stolen)
            ));
        }
        if passed.not_injected > 0 {
            reasons.push(format!(
                "{} copies or answers of packets {name} could not be sent",
                passed.not_injected
            ));
        }
    }
    let overruns = path.forward.overruns + path.back.overruns;
    let unheard = kernel_dropped.unwrap_or(0).max(overruns);
    if unheard > 0 {
        reasons.push(format!(
            "the kernel dropped {unheard} packets before the path heard of them"
        ));
    }
    reasons
}

fn stolen_words(stolen: Option<f64>) -> String {
    match stolen {
        Some(share) if share > 0.005 => format!(
            "; meanwhile the hypervisor gave {:.1} % of this machine's CPU time to others",
            100.0 * share
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_the_cpu_that_its_packets_come_from() {
        assert_eq!(share_out(&[0, 1, 2, 3]), [Some(3), Some(2)]);
        assert_eq!(home_cpus([Some(3), Some(2)]), [vec![2], vec![3]]);
        assert_eq!(share_out(&[5]), [Some(5), Some(5)]);
        assert_eq!(share_out(&[]), [None, None]);
    }

    fn scenario(text: &str) -> Scenario {
        Scenario::parse("x", &format!("name = \"x\"\n{text}")).unwrap()
    }

    #[test]
    fn a_rate_that_comes_later_is_a_rate() {
        let later = scenario(
            "mode = \"packet\"\n[path]\nrate = \"1G\"\n[[path.change]]\nat = \"2s\"\nrate = \"10G\"\n",
        );
        let warnings = too_fast(&later, Kind::Queues, Mode::Packet);
        assert!(warnings[0].contains("10.0 Gbit/s"), "{warnings:?}");
        assert!(too_fast(&later, Kind::Queues, Mode::Bulk).is_empty());
        let warnings = too_fast(&later, Kind::Disciplines, Mode::Packet);
        assert!(warnings[0].contains("do not report"), "{warnings:?}");
        assert!(!unlimited(&later, Mode::Packet));
        let free = scenario("[path]\nrtt = \"10ms\"\nloss = 1e-4\n");
        assert!(unlimited(&free, Mode::Packet) && !unlimited(&free, Mode::Bulk));
    }

    #[test]
    fn a_twentieth_of_a_full_round_trip_may_be_late() {
        // 20 ms of wire and 20 ms of queue forward; back, a queue that is never filled counts as well.
        let path = scenario(
            "[path]\nrtt = \"20ms\"\n[path.forward]\nrate = \"100M\"\nqueue = \"250kB\"\n",
        );
        assert_eq!(tolerance(&path), Nanos::from_millis(2));
        assert_eq!(tolerance(&scenario("[path]\nrtt = \"2ms\"\n")), TOO_LATE);
        assert_eq!(tolerance(&scenario("[sender]\ncpu = 0.1\n")), TURNS);
    }

    #[test]
    fn a_lab_that_lags_says_so() {
        assert!(lagging(&Progress::default(), TOO_LATE, Some(0), None).is_empty());
        let mut path = Progress::default();
        path.back.lateness.p99 = Nanos::from_millis(3);
        path.back.lateness.packets = 999;
        assert!(lagging(&path, TOO_LATE, None, None).is_empty());
        path.back.lateness.packets = 1000;
        let reasons = lagging(&path, TOO_LATE, Some(12), Some(0.1));
        assert_eq!(reasons.len(), 2);
        assert!(reasons[0].contains("packets back") && reasons[0].contains("3.00 ms"));
        assert!(reasons[0].contains("10.0 %"));
        assert!(reasons[1].contains("12 packets"));
    }
}
