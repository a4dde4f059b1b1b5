//! The cause of made-up meshes, over many seeds.

use linerate_model::mesh::{
    Mesh, MeshCause, MeshCauseKind, MeshDirection, MeshGroupKind, MeshOutcome,
};
use linerate_watch::cause::{causes, to_confirm};
use linerate_watch::rounds::Pair;

use crate::simulated::{Cluster, Dice, Fault, RATE, figures, group, test};

/// How many seeds each share is counted over.
const SEEDS: u64 = 200;
const NOISES: [f64; 3] = [0.01, 0.03, 0.05];

/// A number of hosts from 4 to 64, small ones more often.
fn hosts(dice: &mut Dice) -> usize {
    const SIZES: [usize; 12] = [4, 5, 6, 7, 8, 8, 9, 12, 16, 16, 24, 32];
    match dice.below(40) {
        0 => 64,
        at => SIZES[at % SIZES.len()],
    }
}

/// Asserts that at least `share` of the seeds give what is wanted.
fn mostly(what: &str, share: f64, trial: impl Fn(u64) -> Result<(), String>) {
    let misses: Vec<String> = (0..SEEDS).filter_map(|seed| trial(seed).err()).collect();
    let right = 1.0 - misses.len() as f64 / SEEDS as f64;
    let shown: Vec<&String> = misses.iter().take(5).collect();
    assert!(
        right >= share,
        "{what}: {:.1} % right, such as {shown:#?}",
        100.0 * right
    );
}

fn said(causes: &[MeshCause]) -> String {
    let words = causes.iter().map(|cause| {
        format!(
            "{:?} {} {:?} ({} of {}, left {:?})",
            cause.kind, cause.name, cause.direction, cause.explained, cause.touched, cause.left
        )
    });
    words.collect::<Vec<_>>().join("; ")
}

fn named_first(
    cluster: &Cluster,
    mesh: &Mesh,
    wanted: impl Fn(&MeshCause) -> bool,
) -> Result<(), String> {
    let causes = causes(mesh);
    let first = causes.first().is_some_and(wanted);
    if first {
        Ok(())
    } else {
        Err(format!(
            "{} hosts, {:?}: {}",
            cluster.hosts,
            cluster.faults,
            said(&causes)
        ))
    }
}

fn of_host(kind: MeshCauseKind, host: usize) -> impl Fn(&MeshCause) -> bool {
    move |cause| cause.kind == kind && cause.from == [host]
}

/// A cluster of a random size for a seed, with the dice for its fault.
fn cluster(seed: u64, noise: f64) -> (Cluster, Dice) {
    let mut dice = Dice(seed.wrapping_mul(77) + 5);
    let hosts = hosts(&mut dice);
    (Cluster::healthy(hosts, noise, seed), dice)
}

#[test]
fn a_healthy_mesh_has_no_cause() {
    for noise in NOISES {
        mostly(&format!("healthy, noise {noise}"), 0.98, |seed| {
            let (cluster, _) = cluster(seed, noise);
            let before = causes(&cluster.rounds());
            let after = causes(&cluster.measured());
            if before.is_empty() && after.is_empty() {
                return Ok(());
            }
            Err(format!(
                "{} hosts: {} / {}",
                cluster.hosts,
                said(&before),
                said(&after)
            ))
        });
    }
}

#[test]
fn slow_out_is_named_first() {
    for noise in NOISES {
        mostly(&format!("slow out, noise {noise}"), 0.95, |seed| {
            let (cluster, mut dice) = cluster(seed, noise);
            let host = dice.below(cluster.hosts);
            let cluster = cluster.with(Fault::Out {
                host,
                left: dice.between(0.1, 0.75),
            });
            named_first(
                &cluster,
                &cluster.measured(),
                of_host(MeshCauseKind::HostOut, host),
            )
        });
    }
}

#[test]
fn slow_in_is_named_first() {
    for noise in NOISES {
        mostly(&format!("slow in, noise {noise}"), 0.95, |seed| {
            let (cluster, mut dice) = cluster(seed, noise);
            let host = dice.below(cluster.hosts);
            let cluster = cluster.with(Fault::In {
                host,
                left: dice.between(0.1, 0.75),
            });
            named_first(
                &cluster,
                &cluster.measured(),
                of_host(MeshCauseKind::HostIn, host),
            )
        });
    }
}

#[test]
fn slow_both_ways_is_named_first() {
    for noise in NOISES {
        mostly(&format!("slow both, noise {noise}"), 0.95, |seed| {
            let (cluster, mut dice) = cluster(seed, noise);
            let host = dice.below(cluster.hosts);
            let cluster = cluster.with(Fault::Both {
                host,
                left: dice.between(0.1, 0.75),
            });
            named_first(
                &cluster,
                &cluster.measured(),
                of_host(MeshCauseKind::Host, host),
            )
        });
    }
}

#[test]
fn a_dead_host_is_named_first() {
    for noise in NOISES {
        mostly(&format!("dead host, noise {noise}"), 0.95, |seed| {
            let (cluster, mut dice) = cluster(seed, noise);
            let host = dice.below(cluster.hosts);
            let cluster = cluster.with(Fault::Dead { host });
            let dead = of_host(MeshCauseKind::Host, host);
            named_first(&cluster, &cluster.measured(), |cause| {
                dead(cause) && cause.left.is_none() && cause.share > 0.9
            })
        });
    }
}

#[test]
fn a_group_is_named_first() {
    for noise in NOISES {
        mostly(&format!("group in, noise {noise}"), 0.95, |seed| {
            let (cluster, mut dice) = cluster(seed, noise);
            let groups = cluster.groups();
            let usable: Vec<usize> = (0..groups.len())
                .filter(|&group| {
                    groups[group].members.len() >= 2
                        && groups[group].members.len() + 2 <= cluster.hosts
                })
                .collect();
            let group = usable[dice.below(usable.len())];
            let members = groups[group].members.clone();
            let cluster = cluster.with(Fault::GroupIn {
                group,
                left: dice.between(0.1, 0.75),
            });
            named_first(&cluster, &cluster.measured(), |cause| {
                cause.kind == MeshCauseKind::Group
                    && cause.direction == MeshDirection::In
                    && cause.from == members
            })
        });
    }
}

#[test]
fn a_group_that_touches_most_of_the_mesh_is_named_first() {
    for noise in NOISES {
        mostly(&format!("group both, noise {noise}"), 0.95, |seed| {
            let (mut cluster, mut dice) = cluster(seed, noise);
            cluster.hosts = cluster.hosts.max(6);
            let group = dice.below(cluster.racks);
            let members = cluster.groups()[group].members.clone();
            let cluster = cluster.with(Fault::GroupBoth {
                group,
                left: dice.between(0.1, 0.75),
            });
            named_first(&cluster, &cluster.measured(), |cause| {
                cause.kind == MeshCauseKind::Group
                    && cause.direction == MeshDirection::Both
                    && cause.from == members
            })
        });
    }
}

#[test]
fn a_shared_trunk_is_named_first() {
    for noise in NOISES {
        mostly(&format!("trunk, noise {noise}"), 0.95, |seed| {
            let (mut cluster, mut dice) = cluster(seed, noise);
            // Two hosts a side are at most once in one round in the same direction.
            cluster.hosts = cluster.hosts.max(6);
            cluster.unfairness = dice.between(0.0, 0.4);
            let rack = dice.below(cluster.racks);
            let members = (0..cluster.hosts)
                .filter(|&host| cluster.rack_of(host) == rack)
                .count();
            // A round has at most about half of the members' tests in each direction.
            let tests = (members as f64 / 4.0).max(1.0) * dice.between(0.4, 1.0);
            let cluster = cluster.with(Fault::Uplink { rack, tests });
            let rack_of = |hosts: &[usize]| hosts.iter().all(|&host| cluster.rack_of(host) == rack);
            named_first(&cluster, &cluster.measured(), |cause| {
                cause.kind == MeshCauseKind::Trunk
                    && cause.direction == MeshDirection::Both
                    && (rack_of(&cause.from) || rack_of(&cause.to))
                    && cause.from.len() + cause.to.len() == cluster.hosts
            })
        });
    }
}

#[test]
fn a_bad_member_of_a_bond_is_named_first() {
    for noise in NOISES {
        mostly(&format!("bond, noise {noise}"), 0.95, |seed| {
            let (mut cluster, mut dice) = cluster(seed, noise);
            cluster.hosts = cluster.hosts.min(16);
            cluster.racks = 2;
            cluster.ports = 64;
            let of = [2, 4, 8][dice.below(3)];
            let cluster = cluster.with(Fault::Bond {
                rack: 0,
                of,
                left: dice.between(0.02, 0.5),
            });
            named_first(&cluster, &cluster.measured(), |cause| {
                cause.kind == MeshCauseKind::Port
                    && cause.from.len() + cause.to.len() == cluster.hosts
                    && (cause.share - 1.0 / f64::from(of)).abs() < 0.05
            })
        });
    }
}

#[test]
fn flows_over_a_bad_member_are_one_cause() {
    mostly("flows, noise 0.03", 0.95, |seed| {
        let (mut cluster, mut dice) = cluster(seed, 0.03);
        cluster.hosts = cluster.hosts.max(12);
        cluster.racks = 2;
        let of = [2, 4][dice.below(2)];
        let cluster = cluster.with(Fault::Bond {
            rack: 0,
            of,
            left: dice.between(0.05, 0.6),
        });
        named_first(&cluster, &cluster.measured(), |cause| {
            cause.kind == MeshCauseKind::Port && cause.from.len() + cause.to.len() == cluster.hosts
        })
    });
}

#[test]
fn weak_and_strong_faults_are_named_first() {
    for percent in [15, 20, 40, 60, 90] {
        let left = 1.0 - f64::from(percent) / 100.0;
        mostly(&format!("out by {percent} %, noise 0.03"), 0.95, |seed| {
            let (cluster, mut dice) = cluster(seed, 0.03);
            let host = dice.below(cluster.hosts);
            let cluster = cluster.with(Fault::Out { host, left });
            named_first(
                &cluster,
                &cluster.measured(),
                of_host(MeshCauseKind::HostOut, host),
            )
        });
    }
}

#[test]
fn tests_that_did_not_run_hide_no_host() {
    mostly("a quarter missing", 0.95, |seed| {
        let (mut cluster, mut dice) = cluster(seed, 0.03);
        cluster.hosts = cluster.hosts.max(6);
        cluster.missing = 0.25;
        let host = dice.below(cluster.hosts);
        let cluster = cluster.with(Fault::In {
            host,
            left: dice.between(0.1, 0.75),
        });
        named_first(
            &cluster,
            &cluster.measured(),
            of_host(MeshCauseKind::HostIn, host),
        )
    });
}

#[test]
fn two_faults_are_both_named_and_nothing_else() {
    mostly("slow out and dead", 0.95, |seed| {
        let (mut cluster, mut dice) = cluster(seed, 0.03);
        cluster.hosts = cluster.hosts.max(8);
        let out = dice.below(cluster.hosts);
        let dead = (out + 1 + dice.below(cluster.hosts - 1)) % cluster.hosts;
        let cluster = cluster
            .with(Fault::Out {
                host: out,
                left: 0.5,
            })
            .with(Fault::Dead { host: dead });
        let causes = causes(&cluster.measured());
        let has = |kind, host| causes.iter().any(|cause| of_host(kind, host)(cause));
        let right =
            has(MeshCauseKind::HostOut, out) && has(MeshCauseKind::Host, dead) && causes.len() == 2;
        if right {
            Ok(())
        } else {
            Err(format!("{:?}: {}", cluster.faults, said(&causes)))
        }
    });
    mostly("slow in and a trunk", 0.9, |seed| {
        let (mut cluster, mut dice) = cluster(seed, 0.03);
        cluster.hosts = cluster.hosts.max(12);
        let host = dice.below(cluster.hosts);
        let cluster = cluster
            .with(Fault::In { host, left: 0.5 })
            .with(Fault::Uplink {
                rack: 0,
                tests: 1.0,
            });
        let causes = causes(&cluster.measured());
        let has = |kind| causes.iter().any(|cause| cause.kind == kind);
        let slow_in = causes.iter().any(of_host(MeshCauseKind::HostIn, host));
        if slow_in && has(MeshCauseKind::Trunk) {
            Ok(())
        } else {
            Err(format!("{:?}: {}", cluster.faults, said(&causes)))
        }
    });
}

#[test]
fn a_slow_pair_is_named_once_it_was_slow_again_alone() {
    for (left, noise) in [(0.75, 0.01), (0.6, 0.03), (0.1, 0.05)] {
        mostly(&format!("pair, {left} left, noise {noise}"), 0.95, |seed| {
            let (cluster, mut dice) = cluster(seed, noise);
            let from = dice.below(cluster.hosts);
            let to = (from + 1 + dice.below(cluster.hosts - 1)) % cluster.hosts;
            let cluster = cluster.with(Fault::Pair { from, to, left });
            named_first(&cluster, &cluster.measured(), |cause| {
                cause.kind == MeshCauseKind::Pair
                    && (&cause.from, &cause.to) == (&vec![from], &vec![to])
                    && cause.slow_alone == Some(true)
            })
        });
    }
}

#[test]
fn a_pair_that_is_fast_alone_is_no_cause() {
    let cluster = Cluster::healthy(8, 0.01, 1);
    let mut mesh = cluster.rounds();
    slow_down(&mut mesh, Pair::new(2, 5), 0.8);
    assert_eq!(to_confirm(&mesh), [Pair::new(2, 5)]);
    assert_eq!(causes(&mesh), []);
    cluster.repeat(&mut mesh);
    assert_eq!(causes(&mesh), []);
    assert_eq!(to_confirm(&mesh), [], "asked about once");
}

/// Leaves this share of a pair's rate.
fn slow_down(mesh: &mut Mesh, pair: Pair, left: f64) {
    for test in mesh
        .tests
        .iter_mut()
        .filter(|test| Pair::new(test.from, test.to) == pair)
    {
        if let MeshOutcome::Measured(figures) = &mut test.outcome {
            figures.goodput_bps *= left;
        }
    }
}

fn fail(mesh: &mut Mesh, fails: impl Fn(Pair) -> bool) {
    for test in mesh
        .tests
        .iter_mut()
        .filter(|test| fails(Pair::new(test.from, test.to)))
    {
        test.outcome = MeshOutcome::Failed {
            stage: "connecting".into(),
            why: "refused".into(),
        };
    }
}

#[test]
fn two_or_three_hosts_name_pairs() {
    for hosts in [2, 3] {
        let cluster = Cluster::healthy(hosts, 0.01, 4).with(Fault::Out { host: 0, left: 0.4 });
        let causes = causes(&cluster.measured());
        assert_eq!(causes.len(), hosts - 1, "{}", said(&causes));
        assert!(
            causes
                .iter()
                .all(|cause| cause.kind == MeshCauseKind::Pair && cause.from == [0])
        );
        assert_eq!(
            linerate_watch::cause::causes(&Cluster::healthy(hosts, 0.03, 4).measured()),
            []
        );
    }
}

#[test]
fn three_hosts_name_a_dead_one() {
    let mut mesh = Cluster::healthy(3, 0.01, 4).rounds();
    fail(&mut mesh, |pair| pair.from == 1 || pair.to == 1);
    let causes = causes(&mesh);
    assert!(
        causes.len() == 1 && of_host(MeshCauseKind::Host, 1)(&causes[0]),
        "{}",
        said(&causes)
    );
    assert_eq!(
        (causes[0].explained, causes[0].failed, causes[0].left),
        (4, 4, None)
    );
}

#[test]
fn where_nothing_works_nobody_is_blamed() {
    let mut mesh = Cluster::healthy(6, 0.01, 4).rounds();
    fail(&mut mesh, |_| true);
    assert_eq!(causes(&mesh), []);
}

#[test]
fn a_host_out_of_reach_is_a_cause_though_no_test_began() {
    let mut mesh = Cluster::healthy(6, 0.01, 4).rounds();
    mesh.hosts[3].unreachable = Some("no route to host".into());
    for test in mesh
        .tests
        .iter_mut()
        .filter(|test| test.from == 3 || test.to == 3)
    {
        test.outcome = MeshOutcome::NotRun {
            why: "node03 is unreachable".into(),
        };
    }
    let causes = causes(&mesh);
    assert!(
        causes.len() == 1 && of_host(MeshCauseKind::Host, 3)(&causes[0]),
        "{}",
        said(&causes)
    );
    assert_eq!((causes[0].explained, causes[0].touched), (10, 10));
}

#[test]
fn a_rack_without_power_is_one_cause() {
    let mut mesh = Cluster::healthy(16, 0.01, 4).rounds();
    fail(&mut mesh, |pair| pair.from < 8 || pair.to < 8);
    let causes = causes(&mesh);
    assert_eq!(causes.len(), 1, "{}", said(&causes));
    assert_eq!(
        (causes[0].kind, causes[0].name.as_str()),
        (MeshCauseKind::Group, "rack0")
    );
}

#[test]
fn findings_and_facts_join_a_cause() {
    let cluster = Cluster::healthy(8, 0.01, 4).with(Fault::In { host: 6, left: 0.5 });
    let mut mesh = cluster.measured();
    for test in &mut mesh.tests {
        if let MeshOutcome::Measured(figures) = &mut test.outcome {
            let finding = if test.to == 6 {
                "receiver-cpu"
            } else {
                "line-rate"
            };
            figures.finding = Some(finding.to_owned());
        }
    }
    mesh.groups
        .push(group("driver", "ixgbe 4.3", MeshGroupKind::Fact, vec![6]));
    let causes = causes(&mesh);
    assert_eq!(causes[0].findings, [("receiver-cpu".to_owned(), 7)]);
    assert_eq!(causes[0].in_common, ["driver ixgbe 4.3"]);
    assert_eq!(
        (causes[0].explained, causes[0].touched, causes[0].share),
        (7, 7, 1.0)
    );
    assert!((causes[0].left.unwrap() - 0.5).abs() < 0.03);
}

#[test]
fn a_trunk_has_a_capacity() {
    let cluster = Cluster::healthy(16, 0.01, 9).with(Fault::Uplink {
        rack: 1,
        tests: 1.5,
    });
    let causes = causes(&cluster.measured());
    assert_eq!(causes[0].kind, MeshCauseKind::Trunk, "{}", said(&causes));
    let capacity = causes[0].capacity_bps.unwrap() / RATE;
    assert!((capacity - 1.5).abs() < 0.15, "{capacity}");
}

#[test]
fn the_ports_of_one_pair_are_listed() {
    let mut mesh = Cluster::healthy(2, 0.01, 9).rounds();
    mesh.tests.clear();
    for port in 50_000_u16..50_064 {
        let left = if port % 4 == 1 { 0.3 } else { 1.0 };
        let mut test = test(
            Pair::new(0, 1),
            MeshOutcome::Measured(figures(left * RATE, Vec::new())),
        );
        test.source_port = Some(port);
        mesh.tests.push(test);
    }
    let causes = causes(&mesh);
    assert_eq!(causes.len(), 1, "{}", said(&causes));
    assert_eq!(causes[0].kind, MeshCauseKind::Port);
    assert_eq!(
        causes[0].ports,
        (50_000..50_064)
            .filter(|port| port % 4 == 1)
            .collect::<Vec<u16>>()
    );
    assert_eq!(
        (causes[0].share, causes[0].explained, causes[0].touched),
        (0.25, 16, 64)
    );
}

#[test]
fn an_empty_mesh_has_no_cause() {
    let mut mesh = Cluster::healthy(4, 0.01, 9).rounds();
    mesh.tests.clear();
    assert_eq!(causes(&mesh), []);
    mesh.hosts.clear();
    mesh.groups.clear();
    assert_eq!(causes(&mesh), []);
    assert_eq!(to_confirm(&mesh), []);
}

/// A mesh of eight hosts in two racks in which nothing was wrong; the machine that carried them was busy from round 6 to 10.
/// By round: sender > receiver, % of the expected rate.
const BUSY_ROUNDS: [&str; 14] = [
    "0>7 100, 1>6 100, 2>5 100, 3>4 100",
    "7>1 100, 0>2 100, 6>3 100, 5>4 100",
    "2>7 100, 3>1 100, 4>0 100, 5>6 100",
    "7>3 100, 2>4 100, 1>5 100, 0>6 100",
    "4>7 99, 5>3 100, 6>2 99, 0>1 99",
    "7>5 100, 4>6 100, 3>0 100, 2>1 100",
    "6>7 82, 0>5 84, 1>4 85, 2>3 85",
    "7>0 37, 6>1 53, 5>2 38, 4>3 53",
    "1>7 93, 2>0 81, 3>6 80, 4>5 81",
    "7>2 18, 1>3 34, 0>4 32, 6>5 3",
    "3>7 89, 4>2 64, 5>1 90, 6>0 64",
    "7>4 89, 3>5 100, 2>6 100, 1>0 100",
    "5>7 100, 6>4 100, 0>3 100, 1>2 100",
    "7>6 100, 5>0 100, 4>1 100, 3>2 100",
];

#[test]
fn rounds_in_which_the_hosts_were_busy_are_no_shared_link() {
    let cluster = Cluster::healthy(8, 0.005, 1);
    let mut mesh = cluster.rounds();
    mesh.tests.clear();
    for (round, line) in BUSY_ROUNDS.iter().enumerate() {
        for one in line.split(", ") {
            let (pair, percent) = one.split_once(' ').unwrap();
            let (from, to) = pair.split_once('>').unwrap();
            let rate = percent.parse::<f64>().unwrap() / 100.0 * RATE;
            let outcome = MeshOutcome::Measured(figures(rate, Vec::new()));
            let mut test = test(
                Pair::new(from.parse().unwrap(), to.parse().unwrap()),
                outcome,
            );
            test.round = u32::try_from(round).unwrap();
            mesh.tests.push(test);
        }
    }
    let first = said(&causes(&mesh));
    assert!(
        first.starts_with("Trunk"),
        "unrepeated it looks like a link: {first}"
    );
    cluster.repeat(&mut mesh);
    assert_eq!(said(&causes(&mesh)), "");
}
