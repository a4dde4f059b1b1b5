//! Meshes of made-up hosts: rates with noise from a seed, faults that are known.

use linerate_model::mesh::{
    Mesh, MeshFigures, MeshGroup, MeshGroupKind, MeshHost, MeshOutcome, MeshStream, MeshTest,
    SCHEMA_VERSION,
};
use linerate_model::plain_text::PlainText;
use linerate_watch::cause::{to_confirm, to_repeat};
use linerate_watch::rounds::{Asked, Pair, schedule};

/// What a test gets where nothing is wrong, bit/s.
pub(crate) const RATE: f64 = 9.4e9;

/// `SplitMix64`, and a normal distribution by Box and Muller.
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.bits() % limit as u64).unwrap()
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Something that is wrong; `left` is the share of the rate that is left, 0 to 1.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    Out {
        host: usize,
        left: f64,
    },
    In {
        host: usize,
        left: f64,
    },
    Both {
        host: usize,
        left: f64,
    },
    Dead {
        host: usize,
    },
    Pair {
        from: usize,
        to: usize,
        left: f64,
    },
    /// What the members of the group receive.
    GroupIn {
        group: usize,
        left: f64,
    },
    /// What the members of the group send and receive.
    GroupBoth {
        group: usize,
        left: f64,
    },
    /// The uplink of a rack carries this many tests at full rate, each way.
    Uplink {
        rack: usize,
        tests: f64,
    },
    /// One member of a bond between a rack and the others, each way: `ports` of every `of` source ports are slow.
    Bond {
        rack: usize,
        of: u16,
        left: f64,
    },
}

/// A made-up cluster.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    pub(crate) hosts: usize,
    pub(crate) racks: usize,
    /// The standard deviation of a test, as a share.
    pub(crate) noise: f64,
    pub(crate) faults: Vec<Fault>,
    /// Share of the tests that did not run.
    pub(crate) missing: f64,
    /// Source ports that each test spreads its streams over.
    pub(crate) ports: u16,
    pub(crate) both: bool,
    /// The standard deviation of the logarithm of what tests take of a shared link.
    pub(crate) unfairness: f64,
    pub(crate) seed: u64,
}

impl Cluster {
    pub(crate) fn healthy(hosts: usize, noise: f64, seed: u64) -> Self {
        let racks = if hosts >= 16 { hosts / 8 } else { 2 };
        Self {
            hosts,
            racks,
            noise,
            faults: Vec::new(),
            missing: 0.0,
            ports: 0,
            both: false,
            unfairness: 0.1,
            seed,
        }
    }

    pub(crate) fn with(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    pub(crate) fn rack_of(&self, host: usize) -> usize {
        host * self.racks / self.hosts
    }

    /// The groups: racks, then two kernels that know nothing of racks.
    pub(crate) fn groups(&self) -> Vec<MeshGroup> {
        let of_rack = |rack| {
            (0..self.hosts)
                .filter(|&host| self.rack_of(host) == rack)
                .collect()
        };
        let mut groups: Vec<MeshGroup> = (0..self.racks)
            .map(|rack| {
                group(
                    "rack",
                    &format!("rack{rack}"),
                    MeshGroupKind::Place,
                    of_rack(rack),
                )
            })
            .collect();
        let old: Vec<usize> = (0..self.hosts).filter(|host| host % 3 == 1).collect();
        let new: Vec<usize> = (0..self.hosts).filter(|host| host % 3 != 1).collect();
        groups.push(group("kernel", "5.14.0-503", MeshGroupKind::Fact, old));
        groups.push(group("kernel", "6.1.0-25", MeshGroupKind::Fact, new));
        groups
    }

    /// All pairs in rounds, then what should be repeated alone.
    pub(crate) fn measured(&self) -> Mesh {
        let mut mesh = self.rounds();
        self.repeat(&mut mesh);
        mesh
    }

    /// All pairs in rounds.
    pub(crate) fn rounds(&self) -> Mesh {
        let mut dice = Dice(self.seed);
        let schedule = schedule(self.hosts, &Asked::All, self.both, self.seed);
        let mut tests = Vec::new();
        for (round, pairs) in schedule.rounds.iter().enumerate() {
            for pair in pairs {
                let mut test = self.test(*pair, pairs, &mut dice);
                test.round = u32::try_from(round).unwrap();
                if dice.unit() < self.missing {
                    test.outcome = MeshOutcome::NotRun {
                        why: PlainText::from("the budget is spent"),
                    };
                }
                tests.push(test);
            }
        }
        Mesh {
            schema_version: SCHEMA_VERSION,
            started_unix_s: 0,
            hosts: (0..self.hosts)
                .map(|host| MeshHost {
                    name: name(host),
                    unreachable: None,
                })
                .collect(),
            groups: self.groups(),
            rounds: u32::try_from(schedule.rounds.len()).unwrap(),
            bound: u32::try_from(schedule.bound).unwrap(),
            options: PlainText::from("-t 5"),
            both: self.both,
            wave: false,
            expected_bps: None,
            via: None,
            tests,
        }
    }

    /// Repeats what should be, rounds together and then pairs alone, as the driver does.
    pub(crate) fn repeat(&self, mesh: &mut Mesh) {
        let mut dice = Dice(self.seed ^ 0x5555);
        let rounds = if self.both {
            Vec::new()
        } else {
            to_repeat(mesh)
        };
        for (at, pairs) in rounds.iter().enumerate() {
            for pair in pairs {
                let mut test = self.test(*pair, pairs, &mut dice);
                test.round = mesh.rounds + u32::try_from(at).unwrap();
                mesh.tests.push(test);
            }
        }
        let mut left = 24_usize;
        loop {
            let pairs = to_confirm(mesh);
            if pairs.is_empty() || left == 0 {
                return;
            }
            for pair in pairs.into_iter().take(left) {
                let mut test = self.test(pair, &[pair], &mut dice);
                test.alone = true;
                mesh.tests.push(test);
                left -= 1;
            }
        }
    }

    fn test(&self, pair: Pair, at_once: &[Pair], dice: &mut Dice) -> MeshTest {
        let mut left = (self.noise * dice.normal()).exp();
        let mut dead = false;
        for fault in &self.faults {
            match fault {
                Fault::Dead { host } => dead |= [pair.from, pair.to].contains(host),
                other => left *= self.left(other, pair, at_once),
            }
        }
        let outcome = if dead {
            MeshOutcome::Failed {
                stage: PlainText::from("connecting"),
                why: PlainText::from("timed out"),
            }
        } else {
            let (streams, sum) = self.streams(pair, left * RATE, dice);
            MeshOutcome::Measured(figures(sum, streams))
        };
        test(pair, outcome)
    }

    /// What a fault leaves of a test.
    fn left(&self, fault: &Fault, pair: Pair, at_once: &[Pair]) -> f64 {
        let touched = |touched: bool, left: f64| if touched { left } else { 1.0 };
        match *fault {
            Fault::Out { host, left } => touched(pair.from == host, left),
            Fault::In { host, left } => touched(pair.to == host, left),
            Fault::Both { host, left } => touched(pair.from == host || pair.to == host, left),
            Fault::Pair { from, to, left } => touched(pair == Pair::new(from, to), left),
            Fault::GroupIn { group, left } => {
                touched(self.groups()[group].members.contains(&pair.to), left)
            }
            Fault::GroupBoth { group, left } => {
                let members = &self.groups()[group].members;
                touched(
                    members.contains(&pair.from) || members.contains(&pair.to),
                    left,
                )
            }
            Fault::Uplink { rack, tests } => {
                let leaves =
                    |pair: &Pair| self.rack_of(pair.from) == rack && self.rack_of(pair.to) != rack;
                let enters = |pair: &Pair| leaves(&pair.reversed());
                // Connections divide a link unevenly.
                let weight = |pair: &Pair| {
                    let place = (pair.from * self.hosts + pair.to) as u64;
                    (self.unfairness * Dice(self.seed ^ (place << 20)).normal()).exp()
                };
                let sum = |crosses: &dyn Fn(&Pair) -> bool| -> f64 {
                    at_once
                        .iter()
                        .filter(|pair| crosses(pair))
                        .map(weight)
                        .sum()
                };
                let sharing = if leaves(&pair) {
                    sum(&leaves)
                } else if enters(&pair) {
                    sum(&enters)
                } else {
                    return 1.0;
                };
                (tests * weight(&pair) / sharing).min(1.0)
            }
            Fault::Bond { rack, of, left } if self.ports == 0 => {
                // The only flow of a pair has one port, so that it always takes the same member.
                let crosses = (self.rack_of(pair.from) == rack) != (self.rack_of(pair.to) == rack);
                let place = (pair.from * self.hosts + pair.to) as u64;
                let member = Dice(self.seed ^ (place << 20)).below(usize::from(of));
                touched(crosses && member == 0, left)
            }
            Fault::Dead { .. } | Fault::Bond { .. } => 1.0,
        }
    }

    /// The streams of a test by port, and their sum.
    fn streams(&self, pair: Pair, rate: f64, dice: &mut Dice) -> (Vec<MeshStream>, f64) {
        if self.ports == 0 {
            return (Vec::new(), rate);
        }
        let one = rate / f64::from(self.ports);
        let stream = |port: u16| {
            let mut goodput_bps = one * (0.1 * dice.normal()).exp();
            for fault in &self.faults {
                if let Fault::Bond { rack, of, left } = fault {
                    let crosses =
                        (self.rack_of(pair.from) == *rack) != (self.rack_of(pair.to) == *rack);
                    let member = usize::from(port) + pair.from + pair.to;
                    if crosses && member.is_multiple_of(usize::from(*of)) {
                        goodput_bps *= left;
                    }
                }
            }
            MeshStream {
                source_port: port,
                goodput_bps,
                retransmitted: None,
            }
        };
        let streams: Vec<MeshStream> = (50_000..50_000 + self.ports).map(stream).collect();
        let sum = streams.iter().map(|stream| stream.goodput_bps).sum();
        (streams, sum)
    }
}

pub(crate) fn name(host: usize) -> PlainText {
    PlainText::from(format!("node{host:02}"))
}

pub(crate) fn group(of: &str, name: &str, kind: MeshGroupKind, members: Vec<usize>) -> MeshGroup {
    MeshGroup {
        of: PlainText::from(of),
        kind,
        name: PlainText::from(name),
        members,
    }
}

pub(crate) fn test(pair: Pair, outcome: MeshOutcome) -> MeshTest {
    MeshTest {
        from: pair.from,
        to: pair.to,
        round: 0,
        alone: false,
        source_port: None,
        span: None,
        outcome,
        record: None,
    }
}

pub(crate) fn figures(goodput_bps: f64, streams: Vec<MeshStream>) -> MeshFigures {
    MeshFigures {
        goodput_bps,
        interval_bps: None,
        retransmitted: None,
        rtt: None,
        finding: None,
        streams,
    }
}
