//! Made-up meshes: healthy, and each with something that makes it slow, with the causes as they are found.

use linerate_model::mesh::{
    Mesh, MeshCause, MeshCauseKind, MeshDirection, MeshFigures, MeshGroup, MeshGroupKind, MeshHost,
    MeshOutcome, MeshSpan, MeshStream, MeshTest, SCHEMA_VERSION,
};
use linerate_model::units::Nanos;

/// A mesh with its name and its causes.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    pub(crate) mesh: Mesh,
    pub(crate) causes: Vec<MeshCause>,
}

/// All of them.
pub(crate) fn all() -> Vec<Made> {
    vec![
        healthy("mesh_healthy", 16),
        slow_receiver("mesh_slow_receiver", 16),
        trunk("mesh_trunk", 16),
        dead("mesh_dead", 16),
        ports("mesh_ports", 4),
        uneven("mesh_uneven", 40),
        ring("mesh_ring", 12),
        nothing("mesh_nothing"),
    ]
}

/// Folds `node01`, `node02`, `node04` into `node[01-02,04]`, as far as these tests need it.
pub(crate) fn fold(names: &[&str]) -> String {
    let numbers = names.iter().map(|name| {
        let digits = name.strip_prefix("node")?;
        digits.parse::<usize>().ok()
    });
    let Some(numbers) = numbers.collect::<Option<Vec<usize>>>() else {
        return names.join(",");
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let runs = runs.iter().map(|(first, last)| match last - first {
        0 => format!("{first:02}"),
        _ => format!("{first:02}-{last:02}"),
    });
    match names {
        [one] => (*one).to_owned(),
        _ => format!("node[{}]", runs.collect::<Vec<_>>().join(",")),
    }
}

/// Between `low` and `high`, the same for the same pair each time.
fn noise(from: usize, to: usize, low: f64, high: f64) -> f64 {
    let mut state = (from * 8191 + to * 131 + 7) as u64;
    for _ in 0..3 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^= state >> 29;
    }
    low + (high - low) * ((state >> 40) as f64 / f64::from(1_u32 << 24))
}

/// A full mesh of so many hosts, where each pair reaches a share of 9.4 Gbit/s.
pub(crate) fn full(count: usize, share: impl Fn(usize, usize) -> f64) -> Mesh {
    let host = |number: usize| MeshHost {
        name: format!("node{:02}", number + 1).into(),
        unreachable: None,
    };
    let mut mesh = Mesh {
        schema_version: SCHEMA_VERSION,
        started_unix_s: 1_795_564_800,
        hosts: (0..count).map(host).collect(),
        groups: Vec::new(),
        rounds: u32::try_from(2 * (count - 1)).unwrap_or(1),
        bound: u32::try_from(2 * (count - 1)).unwrap_or(1),
        options: "-t 2".into(),
        both: false,
        wave: false,
        expected_bps: None,
        via: None,
        tests: Vec::new(),
    };
    for from in 0..count {
        for to in (0..count).filter(|to| *to != from) {
            let goodput = 9.4e9 * share(from, to) * noise(from, to, 0.97, 1.0);
            let goodput = goodput.round();
            mesh.tests.push(measured(from, to, count, goodput));
        }
    }
    mesh
}

fn measured(from: usize, to: usize, count: usize, goodput_bps: f64) -> MeshTest {
    let round = u32::try_from((from + to) % (2 * (count - 1))).unwrap_or(0);
    let begin = Nanos::from_millis(u64::from(round) * 3200);
    MeshTest {
        from,
        to,
        round,
        alone: false,
        source_port: None,
        span: Some(MeshSpan {
            begin,
            end: begin.plus(Nanos::from_millis(2100)),
        }),
        outcome: MeshOutcome::Measured(MeshFigures {
            goodput_bps,
            interval_bps: Some(((goodput_bps * 0.99).round(), (goodput_bps * 1.01).round())),
            retransmitted: Some(0.0),
            rtt: Some(Nanos(210_000)),
            finding: None,
            streams: Vec::new(),
        }),
        record: Some(format!("records/node{:02}-node{:02}.json", from + 1, to + 1).into()),
    }
}

fn cause(kind: MeshCauseKind, name: &str, direction: MeshDirection, from: Vec<usize>) -> MeshCause {
    MeshCause {
        kind,
        name: name.into(),
        direction,
        from,
        to: Vec::new(),
        ports: Vec::new(),
        share: 1.0,
        explained: 0,
        touched: 0,
        failed: 0,
        left: None,
        capacity_bps: None,
        slow_alone: None,
        findings: Vec::new(),
        in_common: Vec::new(),
    }
}

pub(crate) fn healthy(name: &'static str, count: usize) -> Made {
    Made {
        name,
        mesh: full(count, |_, _| 1.0),
        causes: Vec::new(),
    }
}

/// What the seventh host receives is slow, and one test of it failed.
pub(crate) fn slow_receiver(name: &'static str, count: usize) -> Made {
    let mut mesh = full(count, |_, to| if to == 6 { 0.31 } else { 1.0 });
    let slow: Vec<usize> = (0..mesh.tests.len())
        .filter(|at| mesh.tests[*at].to == 6)
        .collect();
    for at in &slow {
        if let MeshOutcome::Measured(figures) = &mut mesh.tests[*at].outcome {
            figures.finding = Some("receiver-cpu".to_owned());
            figures.retransmitted = Some(0.0026);
        }
    }
    mesh.tests[slow[2]].outcome = MeshOutcome::Failed {
        stage: "connecting".into(),
        why: "timed out after 10 s".into(),
    };
    mesh.tests[slow[2]].span = None;
    let causes = vec![MeshCause {
        explained: slow.len(),
        touched: slow.len(),
        failed: 1,
        left: Some(0.31),
        findings: vec![("receiver-cpu".to_owned(), slow.len() - 1)],
        in_common: vec!["kernel 2.6.32-042stab059.7".into()],
        ..cause(MeshCauseKind::HostIn, "node07", MeshDirection::In, vec![6])
    }];
    Made { name, mesh, causes }
}

/// Two racks that share a link of a quarter of what they ask for.
pub(crate) fn trunk(name: &'static str, count: usize) -> Made {
    let half = count / 2;
    let mut mesh = full(count, |from, to| {
        if from % 2 == 0 && to % 2 == 1 {
            0.24
        } else {
            1.0
        }
    });
    for rack in 0..2 {
        mesh.groups.push(MeshGroup {
            of: "group".into(),
            kind: MeshGroupKind::Place,
            name: format!("rack{}", rack + 1).into(),
            members: (0..count).filter(|host| host % 2 == rack).collect(),
        });
    }
    let causes = vec![MeshCause {
        to: (0..count).filter(|host| host % 2 == 1).collect(),
        explained: half * half,
        touched: half * half,
        left: Some(0.24),
        capacity_bps: Some(2.26e9),
        slow_alone: Some(false),
        ..cause(
            MeshCauseKind::Trunk,
            "rack1 > rack2",
            MeshDirection::Out,
            (0..count).filter(|host| host % 2 == 0).collect(),
        )
    }];
    Made { name, mesh, causes }
}

/// The third host cannot be reached.
pub(crate) fn dead(name: &'static str, count: usize) -> Made {
    let mut mesh = full(count, |_, _| 1.0);
    mesh.hosts[2].unreachable =
        Some("ssh: connect to host node03 port 22: No route to host".into());
    let mut lost = 0;
    for test in &mut mesh.tests {
        if test.from == 2 || test.to == 2 {
            lost += 1;
            test.span = None;
            test.record = None;
            test.outcome = MeshOutcome::NotRun {
                why: "node03 is unreachable".into(),
            };
        }
    }
    let causes = vec![MeshCause {
        explained: lost,
        touched: lost,
        failed: lost,
        ..cause(MeshCauseKind::Host, "node03", MeshDirection::Both, vec![2])
    }];
    Made { name, mesh, causes }
}

/// Each fourth source port from the first host is slow.
pub(crate) fn ports(name: &'static str, count: usize) -> Made {
    let mut mesh = full(count, |_, _| 1.0);
    for test in &mut mesh.tests {
        let bad = test.from == 0;
        let MeshOutcome::Measured(figures) = &mut test.outcome else {
            continue;
        };
        let stream = |number: u16| {
            let slow = bad && number % 4 == 1;
            let share = if slow { 0.12 } else { 1.0 };
            MeshStream {
                source_port: 40_000 + number,
                goodput_bps: (1.47e8 * share * noise(usize::from(number), test.to, 0.94, 1.0))
                    .round(),
                retransmitted: Some(if slow { 0.02 } else { 0.0 }),
            }
        };
        figures.streams = (0..64).map(stream).collect();
        test.source_port = Some(40_000);
    }
    let causes = vec![MeshCause {
        ports: (0..16).map(|number| 40_001 + 4 * number).collect(),
        share: 0.25,
        explained: 16 * (count - 1),
        touched: 64 * (count - 1),
        left: Some(0.12),
        ..cause(
            MeshCauseKind::Port,
            "node01 > others ports 40001, 40005, …",
            MeshDirection::Out,
            vec![0],
        )
    }];
    Made { name, mesh, causes }
}

/// Every pair has a rate of its own, one failed and one has a failure beside its rate.
pub(crate) fn uneven(name: &'static str, count: usize) -> Made {
    let mut mesh = full(count, |from, to| noise(to, from, 0.04, 1.0));
    mesh.tests[3].outcome = MeshOutcome::Failed {
        stage: "connecting".into(),
        why: "refused".into(),
    };
    let mut again = mesh.tests[mesh.tests.len() / 2].clone();
    again.outcome = MeshOutcome::Failed {
        stage: "sending".into(),
        why: "reset by the peer".into(),
    };
    mesh.tests.push(again);
    Made {
        name,
        mesh,
        causes: Vec::new(),
    }
}

/// Each host sends to the next alone.
pub(crate) fn ring(name: &'static str, count: usize) -> Made {
    let mut mesh = full(count, |_, _| 1.0);
    mesh.tests.retain(|test| test.to == (test.from + 1) % count);
    (mesh.rounds, mesh.bound) = (3, 2);
    Made {
        name,
        mesh,
        causes: Vec::new(),
    }
}

/// Nothing was measured.
fn nothing(name: &'static str) -> Made {
    let mut mesh = full(3, |_, _| 1.0);
    for test in &mut mesh.tests {
        test.span = None;
        test.outcome = MeshOutcome::Failed {
            stage: "connecting".into(),
            why: "refused".into(),
        };
    }
    Made {
        name,
        mesh,
        causes: Vec::new(),
    }
}
