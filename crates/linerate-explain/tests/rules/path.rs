//! Black holes, bloated queues, an early end of slow start, and the rate to expect after a remedy.

use linerate_model::column::Column;
use linerate_model::finding::Severity;
use linerate_model::record::{Role, RunRecord};
use linerate_model::remedy::{BufferSizes, Fix};
use linerate_model::tcp_info::TcpFacts;
use linerate_model::units::{Bytes, Nanos};
use linerate_testing::fixture::{self, Traffic};

use super::{explain, ids, quiet, tcp, verdict};

/// Nothing but the cookie passed; the kernel had `timeouts` timeouts.
fn swallowed(timeouts: u64) -> RunRecord {
    let mut record = fixture::run(&tcp(), &quiet());
    let stream = &mut record.client.as_mut().unwrap().streams[0];
    let rows = stream.samples.len();
    let acked = stream.cookie_bytes + 1;
    for (column, value) in [("bytes_acked", acked), ("delivered_packets", 2)] {
        stream.samples.insert(column, vec![value; rows]).unwrap();
    }
    stream.tcp = Some(TcpFacts {
        total_rto: Some(timeouts),
        bytes_acked: Some(acked),
        ..TcpFacts::default()
    });
    stream.drained = false;
    stream.app_bytes = 47_784;
    let far = &mut record.server.as_mut().unwrap().streams[0];
    far.app_bytes = 0;
    far.tcp = None;
    far.drained = false;
    (far.first_byte_ns, far.last_byte_ns) = (None, None);
    record
}

#[test]
fn segments_that_vanish_while_small_ones_pass_are_a_black_hole() {
    let findings = explain(&swallowed(5));
    assert_eq!(findings[0].id, "mtu-black-hole", "{findings:#?}");
    assert!(
        findings[0].sentence.starts_with(
            "Segments of 1.41 KiB sent by the client (alpha) vanish on the path without an ICMP message: 5 timeouts"
        ),
        "{}",
        findings[0].sentence
    );
    assert_eq!(
        findings[0].next.as_deref(),
        Some("linerate test server -M 1200")
    );
    assert!(findings.iter().all(|finding| finding.id != "cannot-tell"));
    // One timeout may be one packet; small segments are none that an MTU would stop.
    assert_ne!(ids(&swallowed(1))[0], "mtu-black-hole");
    let mut small = swallowed(5);
    let stream = &mut small.client.as_mut().unwrap().streams[0];
    let rows = stream.samples.len();
    stream
        .samples
        .insert(Column::snd_mss_bytes, vec![524; rows])
        .unwrap();
    assert_ne!(ids(&small)[0], "mtu-black-hole");
    // Where the peer's half never came, the path may have died for small ones too.
    let mut silent = swallowed(5);
    silent.server = None;
    silent.peer_results = None;
    assert!(!ids(&silent).contains(&"mtu-black-hole".to_owned()));
}

#[test]
fn a_kernel_that_found_the_size_by_itself_tells_of_the_hole() {
    let mut record = fixture::run(&tcp(), &quiet());
    let stream = &mut record.client.as_mut().unwrap().streams[0];
    let rows = stream.samples.len();
    let cut = rows / 3;
    let sizes = (0..rows)
        .map(|row| if row < cut { 1448 } else { 1024 })
        .collect();
    stream.samples.insert(Column::snd_mss_bytes, sizes).unwrap();
    let acked = stream.samples.column(Column::bytes_acked).unwrap().to_vec();
    let late = (0..rows)
        .map(|row| if row < cut { 0 } else { acked[row] })
        .collect();
    stream.samples.insert(Column::bytes_acked, late).unwrap();
    stream.tcp.as_mut().unwrap().total_rto = Some(3);
    let finding = explain(&record).remove(0);
    assert_eq!(finding.id, "mtu-black-hole");
    assert!(
        finding
            .sentence
            .contains("until its kernel tried segments of 1.00 KiB;"),
        "{}",
        finding.sentence
    );
    // Told by an ICMP message, it is path MTU discovery at work.
    let mut told = record;
    let stream = &mut told.client.as_mut().unwrap().streams[0];
    let sizes = (0..rows)
        .map(|row| if row < cut { 1500 } else { 1076 })
        .collect();
    stream.samples.insert(Column::pmtu_bytes, sizes).unwrap();
    assert!(!ids(&told).contains(&"mtu-black-hole".to_owned()));
}

#[test]
fn a_queue_of_many_round_trips_is_bloat() {
    let bloated = Traffic {
        rate_bps: 18.8e6,
        rtt_us: 311_000,
        min_rtt_us: 30_400,
        ..Traffic::default()
    };
    let findings = explain(&fixture::run(&tcp(), &bloated));
    assert_eq!(findings[0].id, "path-full");
    assert_eq!(findings[1].id, "bufferbloat");
    assert_eq!(findings[1].severity, Severity::Note);
    assert!(
        findings[1]
            .sentence
            .starts_with("The queue at the bottleneck delays everything that passes it by 281 ms"),
        "{}",
        findings[1].sentence
    );
    // A queue of one bandwidth-delay product, also of a long path, is what CUBIC needs.
    for (rtt_us, min_rtt_us) in [(41_000, 10_100), (310_000, 160_000)] {
        let usual = Traffic {
            rtt_us,
            min_rtt_us,
            ..bloated.clone()
        };
        assert_eq!(ids(&fixture::run(&tcp(), &usual)), ["path-full"]);
    }
    let stock = fixture::against_stock(fixture::run(&tcp(), &bloated), Role::Client);
    assert!(!ids(&stock).contains(&"bufferbloat".to_owned()));
}

#[test]
fn slow_start_that_ended_without_a_loss_is_told_where_nothing_else_explains_the_rate() {
    let early = Traffic {
        rate_bps: 110e6,
        slow_start_left: Some((0.2, 190)),
        congestion_window_bytes: 560_000,
        in_flight_bytes: 550_000,
        ..quiet()
    };
    let finding = verdict(&tcp(), &early);
    assert_eq!(finding.id, "early-slow-start-exit");
    assert!(
        finding
            .sentence
            .contains("left slow start after 0.20 s at 190 segments"),
        "{}",
        finding.sentence
    );
    // A window that has not grown since, a loss before, or a threshold that was there from the first sample.
    let stood = Traffic {
        slow_start_left: Some((0.2, 300)),
        ..early.clone()
    };
    assert_eq!(verdict(&tcp(), &stood).id, "cannot-tell");
    let remembered = Traffic {
        slow_start_left: Some((0.0, 190)),
        ..early.clone()
    };
    assert_eq!(verdict(&tcp(), &remembered).id, "cannot-tell");
    // A full path took its time, and is full.
    let full = Traffic {
        slow_start_left: Some((0.2, 190)),
        ..Traffic::default()
    };
    assert_eq!(ids(&fixture::run(&tcp(), &full)), ["path-full"]);
    assert_eq!(verdict(&tcp(), &quiet()).id, "cannot-tell");
}

#[test]
fn slow_start_that_was_most_of_the_run_is_its_limit() {
    let short = Traffic {
        seconds: 2.0,
        ramp_s: 0.01,
        levels: vec![(0.0, 0.05), (0.5, 0.3), (1.0, 1.0)],
        slow_start_left: Some((1.1, 3000)),
        ..quiet()
    };
    let findings = explain(&fixture::run(&tcp(), &short));
    assert_eq!(findings[0].id, "slow-start", "{findings:#?}");
    assert_eq!(findings[0].severity, Severity::Limit);
    assert!(
        findings[0]
            .sentence
            .starts_with("Slow start took 1.10 s, 55 % of the run")
    );
    let (remedy, expected) = (
        findings[0].remedy.clone().unwrap(),
        findings[0].expected.clone().unwrap(),
    );
    assert_eq!(remedy.fix, Fix::Duration(Nanos::from_millis(30_000)));
    assert!((800e6..900e6).contains(&expected.rate_bps), "{expected:?}");
    assert!(findings.iter().all(|finding| finding.id != "cannot-tell"));
    // Over soon, it is not what limited; a queue at the end changes nothing.
    let soon = Traffic {
        slow_start_left: Some((0.2, 3000)),
        ..short.clone()
    };
    let findings = explain(&fixture::run(&tcp(), &soon));
    let limits = |finding: &linerate_model::finding::Finding| {
        finding.id == "slow-start" && finding.severity == Severity::Limit
    };
    assert!(!findings.iter().any(limits), "{findings:#?}");
    let full = Traffic {
        rtt_us: 80_000,
        ..short.clone()
    };
    assert_eq!(ids(&fixture::run(&tcp(), &full)), ["slow-start"]);
    // Slow start took a quarter of it, and the queue stood for the rest: the path is the answer.
    let longer = Traffic {
        seconds: 5.0,
        slow_start_left: Some((1.1, 3000)),
        ..full
    };
    let found = ids(&fixture::run(&tcp(), &longer));
    assert_eq!(found[0], "path-full", "{found:?}");
    let stock = fixture::against_stock(fixture::run(&tcp(), &short), Role::Client);
    assert!(!ids(&stock).contains(&"slow-start".to_owned()));
}

#[test]
fn a_wider_window_carries_in_proportion_until_the_link_or_loss() {
    let traffic = Traffic {
        rate_bps: 620e6,
        receive_window: 0.95,
        receive_window_bytes: 3_100_000,
        in_flight_bytes: 3_090_000,
        rtt_us: 40_000,
        min_rtt_us: 39_900,
        congestion_window_bytes: 9_000_000,
        retransmits: 0,
        ..Traffic::default()
    };
    // tcp_rmem goes from 6 MiB to 16 MiB.
    let finding = verdict(&tcp(), &traffic);
    let expected = finding.expected.unwrap();
    assert!(
        (expected.rate_bps / 620e6 - 16.0 / 6.0).abs() < 0.02,
        "{expected:?}"
    );
    assert!(expected.then.starts_with("the receive window again"));
    // A send buffer has a segment of 64 KiB past it, now and then: 256 KiB become 1 MiB, and carry 3.4 times as much.
    let held = Traffic {
        rate_bps: 90e6,
        send_buffer: 0.9,
        send_buffer_bytes: 262_144,
        in_flight_bytes: 225_000,
        rtt_us: 20_000,
        min_rtt_us: 19_900,
        congestion_window_bytes: 9_000_000,
        retransmits: 0,
        ..Traffic::default()
    };
    let mut record = fixture::run(&tcp(), &held);
    record.client.as_mut().unwrap().host.tcp_wmem = Some([4096, 16_384, 262_144]);
    let finding = explain(&record).remove(0);
    assert_eq!(
        finding.remedy.unwrap().fix,
        Fix::SendBuffer(BufferSizes {
            first: Some([4096, 16_384]),
            most: 1_048_576,
        })
    );
    let rate_bps = finding.expected.unwrap().rate_bps;
    assert!((rate_bps / 90e6 - 17.0 / 5.0).abs() < 0.02, "{rate_bps}");

    let mut linked = fixture::run(&tcp(), &traffic);
    for end in [&mut linked.client, &mut linked.server] {
        let interface = end.as_mut().unwrap().interface.as_mut().unwrap();
        (interface.kind, interface.speed_mbit_per_s) = (None, Some(1000));
    }
    let expected = explain(&linked).remove(0).expected.unwrap();
    assert_eq!(
        (expected.rate_bps, expected.then.as_str()),
        (941_482_444.0, "the link")
    );

    // A larger -w carries in proportion, where both hosts grant it.
    let mut plan = tcp();
    plan.window_bytes = Some(Bytes(262_144));
    let mut record = fixture::run(&plan, &super::window_limited());
    let limits = |record: &mut linerate_model::record::RunRecord, most| {
        record.client.as_mut().unwrap().host.wmem_max = most;
        record.server.as_mut().unwrap().host.rmem_max = most;
    };
    limits(&mut record, Some(67_108_864));
    let finding = explain(&record).remove(0);
    let (remedy, expected) = (finding.remedy.unwrap(), finding.expected.unwrap());
    assert_eq!(remedy.fix, Fix::Window(Some(Bytes(524_288))));
    assert!(
        (expected.rate_bps / (2.0 * 143e6) - 1.0).abs() < 0.02,
        "{expected:?}"
    );
    // Where they do not, or do not say, autotuning may go to where nothing of this run tells.
    for most in [None, Some(262_144)] {
        limits(&mut record, most);
        let finding = explain(&record).remove(0);
        assert_eq!(finding.remedy.unwrap().fix, Fix::Window(None));
        assert_eq!(finding.expected, None);
    }
}

#[test]
fn a_burst_and_then_a_level_with_a_queue_is_a_shaper_s() {
    let shaped = Traffic {
        levels: vec![(0.0, 5.0), (2.0, 1.0)],
        rtt_us: 80_000,
        ..quiet()
    };
    let findings = explain(&fixture::run(&tcp(), &shaped));
    assert_eq!(findings[0].id, "shaper", "{findings:#?}");
    assert!(
        findings[0]
            .sentence
            .starts_with("The rate dropped from 4.50 Gbit/s to 900 Mbit/s after 2.00 s"),
        "{}",
        findings[0].sentence
    );
    // A small step, one that came back, one near the end, and one without a queue are none.
    let near = [
        vec![(0.0, 1.3), (2.0, 1.0)],
        vec![(0.0, 5.0), (2.0, 1.0), (5.0, 4.0)],
        vec![(0.0, 5.0), (9.0, 1.0)],
    ];
    for levels in near {
        let traffic = Traffic {
            levels,
            ..shaped.clone()
        };
        let found = ids(&fixture::run(&tcp(), &traffic));
        assert!(!found.contains(&"shaper".to_owned()), "{traffic:#?}");
    }
    let flat = Traffic {
        rtt_us: 40_300,
        ..shaped.clone()
    };
    assert!(!ids(&fixture::run(&tcp(), &flat)).contains(&"shaper".to_owned()));
    let stock = fixture::against_stock(fixture::run(&tcp(), &shaped), Role::Client);
    assert!(!ids(&stock).contains(&"shaper".to_owned()));
}

#[test]
fn marks_are_told_where_neither_queue_nor_loss_explains_the_rate() {
    let marked = |traffic: &Traffic, marks: u64| {
        let mut record = fixture::run(&tcp(), traffic);
        let stream = &mut record.client.as_mut().unwrap().streams[0];
        let rows = stream.samples.len() as u64;
        let values = (0..rows).map(|row| marks * row / (rows - 1)).collect();
        stream
            .samples
            .insert(Column::delivered_ce_packets, values)
            .unwrap();
        record
    };
    let finding = explain(&marked(&quiet(), 900)).remove(0);
    assert_eq!(finding.id, "ecn");
    assert!(
        finding.sentence.contains("900 of 773,"),
        "{}",
        finding.sentence
    );
    // A few marks hold nobody; a full path is full; without the count nothing is said.
    assert_eq!(ids(&marked(&quiet(), 20))[0], "cannot-tell");
    assert_eq!(ids(&marked(&Traffic::default(), 900)), ["path-full"]);
    let stock = fixture::against_stock(marked(&quiet(), 900), Role::Client);
    assert!(!ids(&stock).contains(&"ecn".to_owned()));
}

#[test]
fn reordering_without_repeats_is_told_by_how_often_it_was_seen() {
    let seen = |traffic: &Traffic, times: u64| {
        let mut record = fixture::run(&tcp(), traffic);
        let stream = &mut record.client.as_mut().unwrap().streams[0];
        let rows = stream.samples.len();
        stream
            .samples
            .insert(Column::reord_seen, vec![times; rows])
            .unwrap();
        record
    };
    let finding = explain(&seen(&quiet(), 80_000)).remove(0);
    assert_eq!(finding.id, "reordering");
    assert!(
        finding
            .sentence
            .starts_with("The kernel saw reordering 80,000 times in 773,"),
        "{}",
        finding.sentence
    );
    assert_eq!(ids(&seen(&quiet(), 800))[0], "cannot-tell");
    // A full path is full all the same; who else uses it should know.
    let full = |times| ids(&seen(&Traffic::default(), times));
    assert_eq!(full(80_000), ["path-full", "reordering"]);
    assert_eq!(full(2_000), ["path-full"]);
    let stock = fixture::against_stock(seen(&quiet(), 80_000), Role::Client);
    assert!(!ids(&stock).contains(&"reordering".to_owned()));
}

/// A run at 920 Mbit/s over interfaces of 1 Gbit/s.
fn on_a_gigabit_link(remote: &str, mss: u64) -> RunRecord {
    let traffic = Traffic {
        rate_bps: 920e6,
        ..Traffic::default()
    };
    let mut record = fixture::run(&tcp(), &traffic);
    for end in [&mut record.client, &mut record.server] {
        let end = end.as_mut().unwrap();
        let interface = end.interface.as_mut().unwrap();
        (interface.kind, interface.speed_mbit_per_s) = (None, Some(1000));
        for stream in &mut end.streams {
            stream.remote = remote.into();
            let rows = stream.samples.len();
            stream
                .samples
                .insert(Column::snd_mss_bytes, vec![mss; rows])
                .unwrap();
        }
    }
    record
}

#[test]
fn a_link_is_full_by_the_framing_of_its_own_packets() {
    // 914 Mbit/s are 98.5 % of the payload that IPv6 carries on it, 927 Mbit/s of IPv4's.
    for (remote, mss, full) in [
        ("[2001:db8::2]:5201", 1428, true),
        ("192.0.2.2:5201", 1448, false),
    ] {
        let findings = explain(&on_a_gigabit_link(remote, mss));
        let said = findings
            .iter()
            .any(|finding| finding.sentence.starts_with("The link is full"));
        assert_eq!(said, full, "{remote}: {findings:#?}");
    }
}
