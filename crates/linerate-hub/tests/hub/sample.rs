//! Ten hosts with 60 days of tests, several of which are wrong in different ways.

use linerate_hub::live::{
    AgentState, ChannelState, DueTest, EndedTests, PlanSummary, ReachedBy, RunningTest, Snapshot,
    TaskSummary,
};
use linerate_hub::memory::MemoryStore;
use linerate_hub::shared::Shared;
use linerate_model::alert::{
    Alert, AlertCause, AlertCounterTest, AlertFailure, AlertFinding, AlertId, AlertKind, AlertPair,
    AlertRun, AlertState, Compared, FloorOf, HostChange, RunShows,
};
use linerate_model::counter_test::Verdict;
use linerate_model::host::{Driver, Fact, HostFacts, Interface, Link};
use linerate_model::mesh::{MeshCauseKind, MeshDirection};
use linerate_model::plain_text::PlainText;
use linerate_model::plan::Plan;
use linerate_model::record::Role;
use linerate_model::remedy::{BufferSizes, Fix, Remedy};
use linerate_model::units::{BitRate, Nanos, whole};
use linerate_model::watch::{
    Holding, NotRun, RunClass, RunId, UnixMillis, WatchFigures, WatchOutcome, WatchRun,
};
use linerate_testing::fixture;

/// The hub's time: 2026-11-25 03:40 UTC.
pub(crate) const NOW: UnixMillis = UnixMillis(1_795_578_012_345);
/// A name that must stay text.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\"'&";
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const PERIOD: u64 = 6 * HOUR;
const HOSTS: [&str; 10] = [
    "ams1", "fra1", "gru1", "jnb1", "lon1", "nyc1", "sfo1", "sin1", "syd1", "tok1",
];

/// Where they are: degrees north and east.
const PLACES: [[f64; 2]; 10] = [
    [52.3, 4.9],
    [50.1, 8.7],
    [-23.5, -46.6],
    [-26.2, 28.0],
    [51.5, -0.1],
    [40.7, -74.0],
    [37.8, -122.4],
    [1.4, 103.8],
    [-33.9, 151.2],
    [35.7, 139.7],
];
/// What fra1 sends with since its update, bytes.
const SMALL_BUFFER: f64 = 4_194_304.0;

pub(crate) fn before(millis: u64) -> UnixMillis {
    UnixMillis(NOW.0 - millis)
}

/// A number of 0 to 1 that looks random.
fn noise(seed: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

fn hash(texts: &[&str], number: u64) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    let start = 0xcbf2_9ce4_8422_2325 ^ number.wrapping_mul(0x100_0000_01b3);
    bytes.fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// A run of a pair that was due at a moment.
pub(crate) fn run(
    task: &str,
    from: &str,
    to: &str,
    due: UnixMillis,
    outcome: WatchOutcome,
) -> WatchRun {
    let began = !matches!(outcome, WatchOutcome::NotRun { .. });
    WatchRun {
        id: RunId::of(due, u128::from(hash(&[task, from, to], due.0))),
        task: task.into(),
        from: from.into(),
        to: to.into(),
        class: RunClass::Regular,
        due,
        deadline: due.plus_millis(PERIOD),
        started: began.then(|| due.plus_millis(MINUTE)),
        ended: due.plus_millis(if began { MINUTE + 12_000 } else { HOUR }),
        outcome,
    }
}

/// A test that measured.
pub(crate) fn measured(bps: f64, spread: f64, finding: &str) -> WatchOutcome {
    WatchOutcome::Measured(WatchFigures {
        goodput_bps: bps,
        interval_bps: Some((bps * (1.0 - spread), bps * (1.0 + spread))),
        whole_bps: Some(bps * 0.97),
        ramp: Some(Nanos(400_000_000)),
        retransmitted: Some(0.000_02),
        lost: None,
        rtt: Some(Nanos(81_000_000)),
        sender_cpu: Some(0.4),
        receiver_cpu: Some(0.7),
        findings: vec![finding.to_owned()],
        with_traffic: false,
    })
}

/// A test that failed.
pub(crate) fn failed(stage: &str, why: &str) -> WatchOutcome {
    WatchOutcome::Failed {
        stage: stage.into(),
        why: why.into(),
    }
}

/// The round trip between two hosts by fibres that are half as long again as the way over the ground, ms.
fn round_trip(from: &str, to: &str) -> f64 {
    let place = |host: &str| HOSTS.iter().position(|known| *known == host);
    let (Some(from), Some(to)) = (place(from), place(to)) else {
        return 0.4;
    };
    let [a, b] = [PLACES[from], PLACES[to]].map(|place| place.map(f64::to_radians));
    let half = |angle: f64| (angle / 2.0).sin().powi(2);
    let chord = half(b[0] - a[0]) + a[0].cos() * b[0].cos() * half(b[1] - a[1]);
    12_742.0 * chord.sqrt().asin() * 0.015
}

/// What a pair reaches when nothing is wrong, bit/s.
fn level(from: &str, to: &str) -> f64 {
    2.2e9 + 7.2e9 * noise(hash(&[from, to], 7))
}

/// What fra1 reaches with the small buffer, bit/s.
fn with_small_buffer(to: &str) -> f64 {
    SMALL_BUFFER * 8000.0 / round_trip("fra1", to) * 0.97
}

fn away(host: &str) -> WatchOutcome {
    WatchOutcome::NotRun {
        reason: NotRun::AgentAway,
        why: format!("{host} has not been connected for 13 h: its last heartbeat was at 14:31 UTC")
            .into(),
        held: Vec::new(),
    }
}

fn missed() -> WatchOutcome {
    WatchOutcome::NotRun {
        reason: NotRun::Missed,
        why: "lon1 sent other tests until the deadline".into(),
        held: vec![
            Holding {
                resource: "lon1 sends".into(),
                by: "backbone lon1 > ams1".into(),
                millis: 3 * HOUR,
            },
            Holding {
                resource: "segment transatlantic".into(),
                by: "backbone nyc1 > lon1".into(),
                millis: 40 * MINUTE,
            },
        ],
    }
}

/// What a pair's test came to, `age` before now.
fn outcome(from: &str, to: &str, due: UnixMillis) -> WatchOutcome {
    let age = NOW.since(due);
    let seed = hash(&[from, to], due.0);
    let base = level(from, to);
    if (from, to) == ("tok1", "syd1") && age < 20 * HOUR {
        return failed("connecting", "syd1 port 5201 did not answer within 10 s");
    }
    if [from, to].contains(&"jnb1") && age < 13 * HOUR {
        return away("jnb1");
    }
    if (from, to) == ("lon1", "nyc1") && (2 * DAY..5 * DAY).contains(&age) {
        return missed();
    }
    if noise(seed ^ 3) < 0.012 {
        return failed(
            "transferring",
            "the control connection was reset by the peer",
        );
    }
    if noise(seed ^ 4) < 0.02 {
        return missed();
    }
    if noise(seed ^ 5) < 0.004 {
        return WatchOutcome::Invalid {
            why: "the sender's clock stepped during the test".into(),
        };
    }
    let bps = match (from, to) {
        ("fra1", _) if age < 10 * HOUR => with_small_buffer(to),
        ("fra1", _) if age > 35 * DAY => 0.82 * base,
        ("lon1", "nyc1") if age < 2 * HOUR => 0.41 * base,
        _ => base,
    };
    let finding = match (from, to) {
        ("fra1", _) if age < 10 * HOUR => "send-buffer",
        ("lon1", "nyc1") if age < 2 * HOUR => "network-loss",
        _ => "path-full",
    };
    let mut outcome = measured(bps * (0.985 + 0.03 * noise(seed)), 0.008, finding);
    if let WatchOutcome::Measured(figures) = &mut outcome {
        figures.rtt = Some(Nanos(whole(round_trip(from, to) * 1e6)));
    }
    outcome
}

/// The store and what the hub does.
pub(crate) fn filled() -> MemoryStore {
    let store = MemoryStore::default();
    for from in HOSTS {
        for to in HOSTS.into_iter().filter(|to| *to != from) {
            let phase = whole(noise(hash(&[from, to], 1)) * PERIOD as f64 * 0.9);
            for period in (0..240).rev() {
                let due = before(period * PERIOD + phase + 3 * MINUTE);
                let run = run("backbone", from, to, due, outcome(from, to, due));
                let record = (period == 0
                    && matches!(run.outcome, WatchOutcome::Measured(_))
                    && ["ams1", "fra1"].contains(&from))
                .then(record);
                store.append(run, record);
            }
        }
    }
    for (from, to) in [
        ("store-1", "tape-1"),
        ("store-2", "tape-1"),
        ("store-3", "tape-2"),
        ("store-4", "tape-3"),
        ("store-5", "tape-4"),
    ] {
        for day in (0..60).rev() {
            let due = before(day * DAY + 2 * HOUR);
            let bps = 9.1e9 + 0.3e9 * noise(hash(&[from], day));
            store.append(
                run("to tape", from, to, due, measured(bps, 0.01, "path-full")),
                None,
            );
        }
    }
    alerts(&store);
    facts(&store);
    store
}

/// 5,112 pairs of 72 hosts with two tests each, and a year of four tests a day of one pair.
pub(crate) fn mesh() -> MemoryStore {
    let store = MemoryStore::default();
    let names: Vec<String> = (1..=72)
        .map(|number| format!("site{number:02}-ps.example.net"))
        .collect();
    for from in &names {
        for to in names.iter().filter(|to| *to != from) {
            for age in [PERIOD, MINUTE] {
                let due = before(age + hash(&[from, to], 2) % HOUR);
                let bps = 9.9e9 * noise(hash(&[from, to], 3));
                store.append(
                    run("mesh", from, to, due, measured(bps, 0.01, "path-full")),
                    None,
                );
            }
        }
    }
    for period in (0..1460).rev() {
        let due = before(period * PERIOD + 2 * HOUR);
        let outcome = outcome("lon1", "nyc1", due);
        store.append(run("year", "lon1", "nyc1", due, outcome), None);
    }
    store
}

/// The JSON of a record.
pub(crate) fn record() -> Vec<u8> {
    let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
    linerate_report::record::to_json(&record)
}

fn change(host: &str, fact: &str, was: &str, is: &str, age: u64) -> HostChange {
    HostChange {
        host: host.into(),
        fact: fact.into(),
        before: Some(was.into()),
        after: Some(is.into()),
        last_before: before(age + HOUR),
        first_after: before(age),
    }
}

fn changes() -> Vec<HostChange> {
    vec![
        change(
            "fra1",
            "kernel",
            "5.14.0-503",
            "6.1.0-28",
            10 * HOUR + 20 * MINUTE,
        ),
        change(
            "fra1",
            "net.ipv4.tcp_wmem",
            "4096 16384 1073741824",
            "4096 16384 4194304",
            10 * HOUR + 20 * MINUTE,
        ),
        change("fra1", "eth0 mtu", "1500", "9000", 35 * DAY),
    ]
}

fn pair(from: &str, to: &str, kind: AlertKind, state: AlertState, age: u64) -> AlertPair {
    AlertPair {
        from: from.into(),
        to: to.into(),
        kind,
        state,
        since: before(age),
        compared: None,
        failure: None,
        passes: 0,
        runs: Vec::new(),
    }
}

fn alert(name: &str, kind: AlertKind, state: AlertState, age: u64, pairs: Vec<AlertPair>) -> Alert {
    let cause = match pairs.as_slice() {
        [_] => MeshCauseKind::Pair,
        _ => MeshCauseKind::HostOut,
    };
    Alert {
        id: AlertId::of(before(age), u128::from(hash(&[name], age))),
        task: "backbone".into(),
        kind,
        state,
        cause: AlertCause {
            kind: cause,
            name: name.into(),
            direction: if cause == MeshCauseKind::Pair {
                MeshDirection::Both
            } else {
                MeshDirection::Out
            },
            from: vec![pairs[0].from.clone()],
            to: Vec::new(),
            in_common: Vec::new(),
        },
        since: before(age),
        fired: (state != AlertState::Suspect).then(|| before(age - 9 * MINUTE)),
        until: (state == AlertState::Resolved).then(|| before(age - 3 * HOUR)),
        changed: before(age - 9 * MINUTE),
        merged_into: None,
        accepted: None,
        finding: None,
        host_changes: Vec::new(),
        pairs,
    }
}

fn below(bps: f64, base: f64) -> Compared {
    Compared {
        goodput_bps: bps,
        interval_bps: Some((bps * 0.99, bps * 1.01)),
        floor_bps: base * 0.9,
        floor_of: FloorOf::Baseline,
        baseline_bps: Some(base),
        ended: Some(before(20 * MINUTE)),
        link_bps: None,
    }
}

fn alerts(store: &MemoryStore) {
    let slow = |to: &&str| {
        let mut pair = pair("fra1", to, AlertKind::Slow, AlertState::Firing, 9 * HOUR);
        pair.compared = Some(below(with_small_buffer(to), level("fra1", to)));
        let latest = linerate_hub::store::RunFilter {
            from: Some("fra1".into()),
            to: Some((*to).into()),
            limit: 1,
            ..Default::default()
        };
        if let Some(run) = linerate_hub::store::Store::runs(store, &latest)
            .unwrap()
            .first()
        {
            pair.runs = vec![AlertRun {
                id: run.id,
                class: RunClass::Confirm,
                ended: run.ended,
                shows: RunShows::Fail,
                goodput_bps: Some(with_small_buffer(to)),
            }];
        }
        pair
    };
    let pairs: Vec<AlertPair> = HOSTS
        .iter()
        .filter(|to| !["fra1", "jnb1"].contains(to))
        .map(slow)
        .collect();
    let mut fra1 = alert("fra1", AlertKind::Slow, AlertState::Firing, 9 * HOUR, pairs);
    fra1.finding = Some(AlertFinding {
        id: "send-buffer".to_owned(),
        sentence: format!(
            "The send buffer of fra1 limited the test 97 % of the time: 4.00 MiB allow {} at {:.0} ms.",
            BitRate(whole(SMALL_BUFFER * 8000.0 / round_trip("fra1", "syd1"))),
            round_trip("fra1", "syd1")
        )
        .into(),
        remedy: Some(Remedy {
            host: Role::Client,
            fix: Fix::SendBuffer(BufferSizes { first: Some([4096, 16384]), most: 618_138_200 }),
        }),
        host: Some("fra1".into()),
        page: "docs/findings/send-buffer.md".into(),
        counter_test: Some(AlertCounterTest {
            ended: before(8 * HOUR),
            verdict: Verdict::Confirmed,
            sentence: "with four streams goodput was 3.9 times as high".into(),
        }),
        votes: (8, 8),
    });
    fra1.host_changes = changes().into_iter().take(2).collect();
    store.put_alert(fra1);
    let mut failing = pair(
        "tok1",
        "syd1",
        AlertKind::Failing,
        AlertState::Firing,
        19 * HOUR,
    );
    failing.failure = Some(AlertFailure {
        stage: "connecting".into(),
        why: "syd1 port 5201 did not answer within 10 s".into(),
    });
    store.put_alert(alert(
        "tok1 > syd1",
        AlertKind::Failing,
        AlertState::Firing,
        19 * HOUR,
        vec![failing],
    ));
    let mut suspect = pair("lon1", "nyc1", AlertKind::Slow, AlertState::Suspect, HOUR);
    let base = level("lon1", "nyc1");
    suspect.compared = Some(below(base * 0.41, base));
    store.put_alert(alert(
        "lon1 > nyc1",
        AlertKind::Slow,
        AlertState::Suspect,
        HOUR,
        vec![suspect],
    ));
    let over = pair(
        "sin1",
        "ams1",
        AlertKind::Slow,
        AlertState::Resolved,
        3 * DAY,
    );
    store.put_alert(alert(
        "sin1 > ams1",
        AlertKind::Slow,
        AlertState::Resolved,
        3 * DAY,
        vec![over],
    ));
}

fn network_card() -> Interface {
    Interface {
        name: "eth0".to_owned(),
        index: 2,
        kind: "hardware".to_owned(),
        up: true,
        mtu: Fact::Known(9000),
        addresses: Fact::Known(vec!["192.0.2.10/24".to_owned()]),
        driver: Fact::Known(Driver {
            name: "ice".to_owned(),
            ..Driver::default()
        }),
        link: Fact::Known(Link {
            speed_mbps: Some(10_000),
            ..Link::default()
        }),
        ..Interface::default()
    }
}

fn facts(store: &MemoryStore) {
    for host in HOSTS {
        let mut facts = HostFacts::default();
        let kernel = if host == "fra1" {
            "6.1.0-28"
        } else {
            "5.14.0-503"
        };
        facts.system.kernel = Fact::Known(kernel.to_owned());
        facts.system.distribution = Fact::Known("Rocky Linux 9.5".to_owned());
        facts.system.architecture = Fact::Known("x86_64".to_owned());
        facts.system.memory_bytes = Fact::Known(68_719_476_736);
        facts.system.virtual_machine = Fact::Known(None);
        facts.processors.model = Fact::Known("AMD EPYC 9354 32-Core Processor".to_owned());
        let small = host == "fra1";
        for (key, value) in [
            ("net.ipv4.tcp_congestion_control", "cubic"),
            ("net.ipv4.tcp_rmem", "4096 131072 1073741824"),
            (
                "net.ipv4.tcp_wmem",
                if small {
                    "4096 16384 4194304"
                } else {
                    "4096 16384 1073741824"
                },
            ),
            ("net.core.default_qdisc", "fq"),
            ("net.core.rmem_max", "1073741824"),
            ("net.core.wmem_max", "1073741824"),
        ] {
            let value = Fact::Known(value.to_owned());
            facts.sysctls.insert(key.to_owned(), value);
        }
        facts.interfaces = Fact::Known(vec![network_card()]);
        store.put_facts(
            host,
            before(20 * MINUTE),
            serde_json::to_vec(&facts).unwrap(),
        );
    }
    for change in changes() {
        store.put_change(change);
    }
}

/// Puts a pair of hosts whose names would be tags into the store.
pub(crate) fn hostile(store: &MemoryStore) {
    let why = format!("no route to {HOSTILE}");
    let run = run(HOSTILE, HOSTILE, "b", before(HOUR), failed(HOSTILE, &why));
    store.append(run, None);
    let mut pair = pair(HOSTILE, "b", AlertKind::Failing, AlertState::Firing, HOUR);
    pair.failure = Some(AlertFailure {
        stage: HOSTILE.into(),
        why: why.into(),
    });
    let mut alert = alert(
        HOSTILE,
        AlertKind::Failing,
        AlertState::Firing,
        HOUR,
        vec![pair],
    );
    alert.task = HOSTILE.into();
    alert.finding = Some(AlertFinding {
        id: "x".to_owned(),
        sentence: HOSTILE.into(),
        remedy: None,
        host: None,
        page: PlainText::default(),
        counter_test: None,
        votes: (1, 1),
    });
    store.put_alert(alert);
    store.put_change(change(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOUR));
}

/// What the hub does.
pub(crate) fn lively(shared: &Shared) {
    shared.live().update(|live| *live = snapshot());
}

fn snapshot() -> Snapshot {
    let agent = |host: &str| AgentState {
        host: host.into(),
        reach: ReachedBy::Agent,
        connected: host != "jnb1",
        last_seen: Some(before(if host == "jnb1" { 13 * HOUR } else { 4000 })),
        software: Some("linerate 0.1.0".into()),
        why: (host == "jnb1").then(|| "its last heartbeat was at 14:31 UTC".into()),
    };
    let stores = ["store-1", "store-2", "store-3", "store-4", "store-5"].map(|host| AgentState {
        reach: ReachedBy::Ssh,
        ..agent(host)
    });
    let tapes = ["tape-1", "tape-2", "tape-3", "tape-4"].map(|host| AgentState {
        reach: ReachedBy::Iperf3,
        connected: false,
        last_seen: None,
        software: None,
        ..agent(host)
    });
    let stores = stores.into_iter().chain(tapes);
    let test = |from: &str, to: &str, class, age: u64| RunningTest {
        id: RunId::of(before(age), 1),
        task: "backbone".into(),
        from: from.into(),
        to: to.into(),
        class,
        started: before(age),
        until: before(age).plus_millis(30_000),
    };
    let due = |from: &str, to: &str, class, after: u64, waits: Option<&str>| DueTest {
        task: "backbone".into(),
        from: from.into(),
        to: to.into(),
        class,
        due: NOW.plus_millis(after),
        deadline: NOW.plus_millis(after + 4 * HOUR),
        waits_for: waits.map(PlainText::from),
    };
    Snapshot {
        plan_trouble: None,
        agents: HOSTS.into_iter().map(agent).chain(stores).collect(),
        running: vec![
            test("ams1", "sin1", RunClass::Regular, 7000),
            test("lon1", "nyc1", RunClass::Confirm, 2000),
        ],
        next: vec![
            due(
                "ams1",
                "fra1",
                RunClass::Regular,
                0,
                Some("ams1 sends to sin1"),
            ),
            due("sfo1", "tok1", RunClass::Regular, 3 * MINUTE, None),
            due("lon1", "nyc1", RunClass::Confirm, 5 * MINUTE, None),
        ],
        channels: vec![
            ChannelState {
                name: "alertmanager".into(),
                broken: None,
                broken_since: None,
                waiting: 0,
            },
            ChannelState {
                name: "mail".into(),
                broken: Some("mail.example.net port 25: connection refused".into()),
                broken_since: Some(before(2 * HOUR)),
                waiting: 3,
            },
        ],
        plan: PlanSummary {
            tasks: vec![
                TaskSummary {
                    name: "backbone".into(),
                    options: "-t 10 --omit 2".into(),
                    pairs: 90,
                    period_millis: PERIOD,
                    sampling: "at a random moment of each period",
                },
                TaskSummary {
                    name: "to tape".into(),
                    options: "-t 20 -P 4".into(),
                    pairs: 5,
                    period_millis: DAY,
                    sampling: "at a random moment of each period",
                },
            ],
            pairs: 95,
            names: None,
            tests_a_day: 365.0,
            ignored: vec!["contexts".into()],
        },
        ended: EndedTests {
            measured: 21_000,
            failed: 212,
            not_run: 390,
            invalid: 80,
        },
    }
}
