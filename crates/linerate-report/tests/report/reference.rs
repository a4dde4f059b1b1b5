//! docs/reference/{record,report}.md against documents that have every field.

use std::collections::BTreeSet;

use linerate_analysis::evidence::Evidence;
use linerate_model::counter_test::{CounterRun, Passage, Variation};
use linerate_model::fingerprint::{Fingerprint, Key, Subject};
use linerate_model::latency::Latencies;
use linerate_model::plan::{End, Plan, Protocol};
use linerate_model::record::{
    HostNames, Note, Outcome, PeerResults, PeerStream, RunRecord, SCHEMA_VERSION, UdpCounts,
    ZerocopyCounts,
};
use linerate_model::tcp_info::{FIELDS, LENGTH, TcpFacts, TcpInfo};
use linerate_model::transfer::{
    Cell, CellRun, Medium, RingRecord, RingSample, StagePlace, StageRecord, StageRole,
};
use linerate_model::transit::{TransitSlice, Transits};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_model::working_latency::{LatencyProbes, ProbePhase};
use linerate_testing::fixture::{self, Traffic};
use serde_json::Value;

use linerate_report::compare::{Comparison, Grouped, Side};
use linerate_report::view::RunView;

const RECORD: &str = include_str!("../../../../docs/reference/record.md");
const REPORT: &str = include_str!("../../../../docs/reference/report.md");

/// The rows of the table below a heading, each a field's path and its other cells.
fn rows<'a>(document: &'a str, heading: &str) -> Vec<(&'a str, Vec<&'a str>)> {
    let heading = format!("\n## {heading}\n");
    let (_, section) = document.split_once(&heading).expect("the heading");
    let section = section.split("\n## ").next().unwrap_or_default();
    let row = |line: &'a str| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ");
        let path = cells.next()?.strip_suffix('`')?;
        Some((path, cells.collect()))
    };
    section.lines().filter_map(row).collect()
}

fn paths_of(document: &str, heading: &str) -> Vec<String> {
    let rows = rows(document, heading).into_iter();
    rows.map(|(path, _)| path.to_owned()).collect()
}

/// Every path that is documented, from the root of the record.
fn documented() -> Vec<String> {
    let mut paths = paths_of(RECORD, "The run");
    let times = || paths_of(RECORD, "A distribution of times");
    for phase in ["idle", "loaded", "after"] {
        for path in paths_of(RECORD, "A phase of the probes") {
            let path = format!("latency.{phase}.{path}");
            match path.rsplit('.').next() {
                Some("round_trips" | "own_delays" | "connects" | "handshakes") => {
                    paths.extend(times().iter().map(|inner| format!("{path}.{inner}")));
                }
                _ => paths.push(path),
            }
        }
    }
    for role in ["client", "server"] {
        for path in paths_of(RECORD, "An end") {
            let inner = match path.as_str() {
                "streams[].samples" | "counters" => paths_of(RECORD, "A series"),
                "streams[].tcp" => paths_of(RECORD, "The kernel's account of a stream"),
                _ => {
                    paths.push(format!("{role}.{path}"));
                    continue;
                }
            };
            paths.extend(inner.iter().map(|inner| format!("{role}.{path}.{inner}")));
        }
    }
    paths
}

/// A stage with a sample.
fn stage(medium: Medium) -> StageRecord {
    StageRecord {
        medium,
        on_disk: Some(Nanos(1)),
        ring: RingRecord {
            samples: vec![RingSample::default()],
            ..RingRecord::default()
        },
        error: Some("e".into()),
        ..fixture::stage(StageRole::Target)
    }
}

/// Every optional field filled in; what excludes each other stands in several records.
fn whole() -> [RunRecord; 3] {
    let plan = Plan {
        rate_bps: Some(BitRate(1)),
        kernel_pacing_bps: Some(BitRate(1)),
        window_bytes: Some(Bytes(1)),
        mss_bytes: Some(1),
        sctp_streams: Some(1),
        sctp_bind: vec!["::1".into()],
        congestion: Some("cubic".into()),
        flow_label: Some(1),
        bind: Some("::1".into()),
        bind_device: Some("eth0".into()),
        client_port: Some(1),
        client_cpu: Some(0),
        server_cpu: Some(0),
        precision: Some(0.02),
        latency: true,
        expect: ">= 1G".parse().ok(),
        provisioned_bps: Some(BitRate(1)),
        receive_timeout_ns: Some(Nanos(1)),
        send_timeout_ns: Some(Nanos(1)),
        title: Some("t".into()),
        extra_data: Some("x".into()),
        omit_ns: Nanos(1_000_000_000),
        ..Plan::new("server")
    };
    let mut record = fixture::run(
        &plan,
        &Traffic {
            link_mbit_per_s: Some(1),
            ..Traffic::default()
        },
    );
    for end in [
        record.client.as_mut().expect("a client"),
        record.server.as_mut().expect("a server"),
    ] {
        let kernel = (Key::of(Subject::Kernel), "6.1".into());
        end.host.fingerprint = Some(Fingerprint::of([kernel]));
        let stream = &mut end.streams[0];
        stream.tcp = Some(TcpFacts::from(&TcpInfo::new([1; LENGTH], LENGTH)));
        stream.udp = Some(UdpCounts {
            socket_drops: Some(0),
            jitter_ns: Some(0),
            transit_change_ns: Some([0; 4]),
            transits: Some(Transits {
                omitted: 0,
                slices: vec![TransitSlice {
                    from_ns: Nanos(0),
                    to_ns: Nanos(0),
                    least_ns: 0,
                    most_above_ns: 0,
                    sum_above_ns: 0,
                    above: vec![[0, 1]],
                }],
            }),
            peer_sent: Some(0),
            ..UdpCounts::default()
        });
        stream.zerocopy = Some(ZerocopyCounts::default());
        stream.unread_bytes = Some(0);
        stream.file_bytes = Some(0);
        stream.error = Some("e".into());
        stream.too_long = true;
    }
    record.control.iperf2 = Some("iperf 2.1.8".into());
    record.peer_results = Some(PeerResults {
        congestion: Some("cubic".into()),
        streams: vec![PeerStream {
            omitted_errors: Some(0),
            omitted_packets: Some(0),
            ..PeerStream::default()
        }],
        output_text: Some("".into()),
        output_json: Some("".into()),
        ..PeerResults::default()
    });
    let mut times = Latencies::default();
    times.add(Nanos(1));
    let phase = ProbePhase {
        round_trips: times.clone(),
        own_delays: times.clone(),
        connects: times.clone(),
        handshakes: times,
        ..ProbePhase::default()
    };
    record.latency = Some(Box::new(LatencyProbes {
        missing: Some("m".into()),
        idle: phase.clone(),
        loaded: phase.clone(),
        after: phase,
        ..LatencyProbes::default()
    }));
    record.host_names = Some(HostNames {
        client: "a".into(),
        server: "b".into(),
    });
    record.notes.push(Note {
        id: "n".into(),
        text: "t".into(),
    });
    let counter_run = |variation, outcome| CounterRun {
        variation: Some(variation),
        outcome,
        span_ns: Nanos(1),
        goodput_bps: Some(1.0),
        low_bps: Some(1.0),
        high_bps: Some(1.0),
        rtt_us: Some(1.0),
        min_rtt_us: Some(1.0),
        lost: Some(0),
        sent: Some(1),
        unread_bytes: Some(0.0),
        passage: Some(Passage {
            offered_bps: 1.0,
            delivered_bps: 1.0,
            lost_share: 0.0,
            beyond_bytes: 0.0,
            waited_us: 0.0,
            datagram_bytes: 1.0,
        }),
    };
    let failed = Outcome::Failed { error: "e".into() };
    record.counter_runs = [
        Variation::Window { bytes: Bytes(1) },
        Variation::Streams { streams: 4 },
        Variation::Pacing { bps: BitRate(1) },
        Variation::Congestion {
            name: "cubic".to_owned(),
        },
    ]
    .map(|variation| counter_run(variation, failed.clone()))
    .to_vec();
    record.cells = vec![CellRun {
        cell: Cell::Read,
        outcome: failed,
        bytes: Bytes(1),
        time: Nanos(1),
    }];
    let mut bytes = record.clone();
    for end in [&mut bytes.client, &mut bytes.server] {
        end.as_mut().expect("an end").stage = Some(stage(Medium::Memory));
    }
    let disk = stage(Medium::Disk(StagePlace {
        file_system: Some("xfs".into()),
        device: Some("sdb1".into()),
        cached: Some(Bytes(0)),
        still_cached: Some(Bytes(0)),
        device_bytes: Some(Bytes(0)),
        ..StagePlace::default()
    }));
    for end in [&mut record.client, &mut record.server] {
        end.as_mut().expect("an end").stage = Some(disk.clone());
    }
    bytes.plan.end = End::Bytes(Bytes(1));
    bytes.outcome = Outcome::Failed { error: "e".into() };
    let mut blocks = record.clone();
    blocks.plan.end = End::Blocks(1);
    [record, bytes, blocks]
}

/// The paths of a value: names of maps whose keys are data become `*`, series' steps are leaves.
fn paths(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        // A series' steps, not a waterfall's.
        Value::Array(items)
            if path.rsplit('.').next() == Some("steps") && !items.iter().any(Value::is_object) =>
        {
            found.insert(path.to_owned());
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| paths(&format!("{path}[]"), item, found)),
        Value::Object(members) => {
            let by_data = matches!(
                path.rsplit('.').next(),
                Some("columns" | "protocol_growth" | "facts")
            );
            for (name, inner) in members {
                let name = if by_data { "*" } else { name };
                let dot = if path.is_empty() { "" } else { "." };
                paths(&format!("{path}{dot}{name}"), inner, found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[test]
fn every_field_of_a_record_is_documented_and_nothing_else() {
    let mut found = BTreeSet::new();
    for record in whole() {
        paths("", &serde_json::to_value(record).unwrap(), &mut found);
    }
    let documented: Vec<String> = documented();
    let unique: BTreeSet<String> = documented.iter().cloned().collect();
    assert_eq!(unique.len(), documented.len(), "a path is documented twice");
    let missing: Vec<_> = found.difference(&unique).collect();
    let surplus: Vec<_> = unique.difference(&found).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "not documented: {missing:#?}\nno such field: {surplus:#?}"
    );
}

#[test]
fn every_field_has_a_unit_or_none_a_place_and_a_meaning() {
    for (document, heading) in [
        (RECORD, "The run"),
        (RECORD, "A phase of the probes"),
        (RECORD, "A distribution of times"),
        (RECORD, "An end"),
        (RECORD, "A series"),
        (REPORT, "Where the time and where the rate went"),
        (REPORT, "One-way delay"),
        (REPORT, "Working latency"),
        (REPORT, "A comparison"),
        (REPORT, "A comparison by a fact"),
    ] {
        for (path, cells) in rows(document, heading) {
            assert_eq!(cells.len(), 3, "{path}");
            assert!(cells.iter().all(|cell| !cell.trim().is_empty()), "{path}");
        }
    }
    assert!(RECORD.contains(&format!("schema version {SCHEMA_VERSION}.")));
}

#[test]
fn the_kernel_s_fields_are_those_that_are_read() {
    let rows = rows(RECORD, "The kernel's account of a stream");
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    let fields: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
    assert_eq!(names, fields);
    let units = [
        ("_bytes_per_s", "bytes/s"),
        ("_us", "µs"),
        ("_ms", "ms"),
        ("_bytes", "bytes"),
        ("_packets", "segments"),
    ];
    for ((name, cells), field) in rows.iter().zip(FIELDS) {
        assert_eq!(cells[1..], [field.since, field.meaning], "{name}");
        let unit = units.iter().find(|(suffix, _)| name.ends_with(suffix));
        assert!(unit.is_none_or(|(_, unit)| cells[0] == *unit), "{name}");
    }
}

/// Paths of a value below its root, those of one subtree as a leaf.
fn below(value: &Value, leaf: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    paths("", value, &mut found);
    let cut = |path: String| match path.split_once(leaf) {
        Some((head, _)) if !leaf.is_empty() => format!("{head}{leaf}"),
        _ => path,
    };
    found.into_iter().map(cut).collect()
}

fn of_table(heading: &str) -> BTreeSet<String> {
    paths_of(REPORT, heading).into_iter().collect()
}

#[test]
fn what_the_report_says_of_time_and_rate_is_documented() {
    let [record, ..] = whole();
    let view = RunView::of(&Evidence::of(&record), &[]);
    let mut direction = serde_json::to_value(&view.directions[0]).unwrap();
    let members = direction.as_object_mut().unwrap();
    let ours = [
        "rates",
        "time_budget",
        "time_budget_unknown",
        "bands",
        "waterfall",
        "waterfall_unknown",
    ];
    members.retain(|name, _| ours.contains(&name.as_str()));
    assert_eq!(
        below(&direction, ""),
        of_table("Where the time and where the rate went")
    );
}

#[test]
fn a_one_way_delay_is_documented() {
    let plan = Plan {
        protocol: Protocol::Udp,
        ..Plan::new("server")
    };
    let mut found = BTreeSet::new();
    let mut record = fixture::run(&plan, &Traffic::default());
    // Known in one of them, and not in the other.
    for clock in [record.clock, None] {
        record.clock = clock;
        let view = RunView::of(&Evidence::of(&record), &[]);
        let delay = &view.directions[0].delay;
        paths("delay", &serde_json::to_value(delay).unwrap(), &mut found);
    }
    assert!(found.remove("delay.one_way"), "null without pings");
    assert!(found.remove("delay.one_way.drift_ppm"), "null: no drift");
    let mut documented = of_table("One-way delay");
    assert!(documented.remove("delay.one_way.drift_ppm"));
    assert_eq!(found, documented);
}

#[test]
fn what_the_report_says_of_latency_is_documented() {
    let [record, ..] = whole();
    let view = RunView::of(&Evidence::of(&record), &[]);
    let latency = serde_json::to_value(&view.latency).unwrap();
    let times = below(&latency["idle"]["message"], "");
    for name in ["own_delay", "connect", "handshake"] {
        assert_eq!(below(&latency["idle"][name], ""), times, "{name}");
    }
    for phase in ["loaded", "after"] {
        let paths = |phase: &str| below(&latency[phase], "");
        assert_eq!(paths(phase), paths("idle"), "{phase}");
    }
    let same = |path: &String| path.starts_with("loaded.") || path.starts_with("after.");
    let leaves = [
        "idle.own_delay",
        "idle.connect",
        "idle.handshake",
        "loaded_connection",
        "idle_responsiveness",
    ];
    let leaf = |path: String| {
        let found = leaves
            .iter()
            .find(|leaf| path.starts_with(&format!("{leaf}.")));
        found.map_or(path, |leaf| (*leaf).to_owned())
    };
    let found: BTreeSet<String> = below(&latency, "")
        .into_iter()
        .filter(|path| !same(path))
        .map(leaf)
        .collect();
    assert_eq!(found, of_table("Working latency"));
}

#[test]
fn a_comparison_is_documented() {
    let [first, other, _] = whole().map(|record| {
        let evidence = Evidence::of(&record);
        RunView::of(&evidence, &linerate_explain::explain(&evidence))
    });
    let sides = [Side::of("a", vec![&first]), Side::of("b", vec![&other])];
    let comparison = serde_json::to_value(Comparison::of(&sides)).unwrap();
    let found = below(&comparison, ".time_budget");
    // The first side is compared with nothing.
    let found: BTreeSet<String> = found
        .into_iter()
        .filter(|path| !path.ends_with(".against_first"))
        .collect();
    assert_eq!(found, of_table("A comparison"));
}

#[test]
fn a_comparison_by_a_fact_is_documented() {
    let [first, ..] = whole();
    let mut later = first.clone();
    later.started_at_unix_ms += 1;
    let facts = [
        (Key::of(Subject::Kernel), "6.6".into()),
        (Key::of(Subject::Microcode), "0xf4".into()),
    ];
    let mut views = [first, later].map(|record| RunView::of(&Evidence::of(&record), &[]));
    for end in [&mut views[1].client, &mut views[1].server] {
        end.host.fingerprint = Some(Fingerprint::of(facts.clone()));
        end.host.cpus = Some(2);
    }
    let grouped = Grouped::of("kernel", &views, 0.05).unwrap();
    let mut found = below(&serde_json::to_value(&grouped).unwrap(), "");
    // Of the first group.
    found.remove("groups[].directions[].effect");
    assert_eq!(found, of_table("A comparison by a fact"));
}
