//! Rules that look at how rate, bytes in flight and round trip follow one another through the run.

use linerate_model::column::Column;
use linerate_model::record::{Role, RunRecord};
use linerate_model::remedy::{BufferSizes, Fix};
use linerate_testing::fixture::{self, Loss, Traffic};

use super::{explain, ids, tcp};

const MSS: f64 = 1448.0;

/// A run whose rate is `levels` (second from which on, share of 100 Mbit/s), and whose round trip is
/// `rtt_us(second)`; the bytes in flight are what Little's law says.
fn run(levels: &[(f64, f64)], rtt_us: impl Fn(f64) -> f64) -> RunRecord {
    shaped(&traffic(levels), levels, rtt_us)
}

fn traffic(levels: &[(f64, f64)]) -> Traffic {
    Traffic {
        rate_bps: 100e6,
        levels: levels.to_vec(),
        min_rtt_us: 20_000,
        rtt_us: 30_000,
        retransmits: 0,
        ..Traffic::default()
    }
}

fn shaped(traffic: &Traffic, levels: &[(f64, f64)], rtt_us: impl Fn(f64) -> f64) -> RunRecord {
    let mut record = fixture::run(&tcp(), traffic);
    let end = record.client.as_mut().unwrap();
    let start = end.start_ns.0;
    let stream = &mut end.streams[0];
    let seconds: Vec<f64> = stream
        .samples
        .at_ns()
        .iter()
        .map(|at| at.saturating_sub(start) as f64 / 1e9)
        .collect();
    let level = |second: f64| {
        let past = levels.iter().rev().find(|(from, _)| *from <= second);
        past.map_or(1.0, |(_, share)| *share)
    };
    let whole = |value: f64| linerate_model::units::whole(value);
    let rtts: Vec<u64> = seconds
        .iter()
        .map(|second| whole(rtt_us(*second)))
        .collect();
    let least: Vec<u64> = rtts
        .iter()
        .scan(u64::MAX, |least, rtt| {
            *least = (*least).min(*rtt);
            Some(*least)
        })
        .collect();
    let flight = seconds
        .iter()
        .map(|second| whole(level(*second) * traffic.rate_bps * rtt_us(*second) / 8e6 / MSS))
        .collect();
    let columns = [
        ("rtt_us", rtts.clone()),
        ("min_rtt_us", least),
        ("rttvar_us", vec![300; rtts.len()]),
        ("unacked_packets", flight),
    ];
    for (name, values) in columns {
        stream.samples.insert(name, values).unwrap();
    }
    record
}

/// A share that falls as others come, saw-toothed.
const SHARES: [(f64, f64); 9] = [
    (1.0, 0.8),
    (2.0, 0.6),
    (3.0, 0.5),
    (4.0, 0.55),
    (5.0, 0.4),
    (6.0, 0.45),
    (7.0, 0.35),
    (8.0, 0.4),
    (9.0, 0.3),
];

#[test]
fn a_rate_that_follows_what_is_in_flight_behind_a_long_round_trip_is_a_share() {
    // The handshake saw the path before the queue.
    let rtt = |second: f64| if second < 0.2 { 20_000.0 } else { 37_000.0 };
    let findings = explain(&run(&SHARES, rtt));
    assert_eq!(findings[0].id, "congested", "{findings:#?}");
    assert!(
        findings[0].sentence.starts_with(
            "Other traffic shares the bottleneck: the RTT stays at 37.0 ms or more (minimum 20.0 ms)"
        ),
        "{}",
        findings[0].sentence
    );
    assert!(
        !findings
            .iter()
            .any(|finding| ["unstable", "path-full"].contains(&finding.id.as_str()))
    );
    // The same rates without a queue are a sender that comes and goes; nobody else shows.
    assert!(!ids(&run(&SHARES, |_| 20_500.0)).contains(&"congested".to_owned()));
    // A reader that closes its window now and then holds the sender as well.
    let slow = Traffic {
        receive_window: 0.37,
        ..traffic(&SHARES)
    };
    let found = ids(&shaped(&slow, &SHARES, rtt));
    assert!(!found.contains(&"congested".to_owned()), "{found:?}");
    // Its own queue: more in flight, a longer round trip, the same rate.
    let own = |second: f64| {
        if second < 0.2 {
            20_000.0
        } else {
            30_000.0 + 2_000.0 * (second % 5.0)
        }
    };
    assert_eq!(ids(&run(&[], own)), ["path-full"]);
}

#[test]
fn others_that_come_and_go_leave_the_queue_as_it_was() {
    let levels = [(3.0, 0.4), (7.0, 1.0)];
    let away = |second: f64| (3.0..7.0).contains(&second);
    let rtt = |slower: f64| {
        move |second: f64| match second {
            second if !(1.0..9.0).contains(&second) => 20_000.0,
            second if away(second) => slower,
            _ => 30_000.0,
        }
    };
    let findings = explain(&run(&levels, rtt(31_000.0)));
    assert_eq!(findings[0].id, "congested", "{findings:#?}");
    assert!(
        findings[0].sentence.contains(
            "this sender got 40.0 Mbit/s then and 100 Mbit/s otherwise, with a queue of 11.0 ms compared with 10.0 ms"
        ),
        "{}",
        findings[0].sentence
    );
    let others = |record: &RunRecord| ids(record).contains(&"congested".to_owned());
    // The queue of so many bytes takes 2.5 times as long where the path itself became slower.
    assert!(!others(&run(&levels, rtt(45_000.0))));
    // Nothing at all came through: a stall.
    let stalled = [(3.0, 0.0), (7.0, 1.0)];
    let found = ids(&run(&stalled, rtt(31_000.0)));
    assert!(found.contains(&"stall".to_owned()), "{found:?}");
    assert!(
        ["congested", "unstable"]
            .iter()
            .all(|id| !found.contains(&(*id).to_owned())),
        "{found:?}"
    );
}

#[test]
fn without_the_senders_samples_nobodys_share_is_told() {
    let rtt = |second: f64| if second < 0.2 { 20_000.0 } else { 37_000.0 };
    let blind = fixture::against_stock(run(&SHARES, rtt), Role::Client);
    let found = ids(&blind);
    assert!(
        !found
            .iter()
            .any(|id| ["congested", "path-change"].contains(&id.as_str())),
        "{found:?}"
    );
}

#[test]
fn a_round_trip_that_steps_and_stays_is_another_path() {
    let levels = [(4.0, 0.6), (6.0, 0.64), (8.0, 0.68)];
    let up = |second: f64| if second < 4.0 { 22_000.0 } else { 80_000.0 };
    let findings = explain(&run(&levels, up));
    assert_eq!(findings[0].id, "path-change", "{findings:#?}");
    assert!(
        findings[0].sentence.starts_with("The path changed after 4"),
        "{}",
        findings[0].sentence
    );
    // It is no queue, so nobody says that the path is full.
    assert!(!findings.iter().any(|finding| finding.id == "path-full"));
    let down = |second: f64| if second < 4.0 { 80_000.0 } else { 22_000.0 };
    assert_eq!(explain(&run(&[], down))[0].id, "path-change");
    // A queue that comes with a slower link follows the bytes in flight: no other path.
    let queue = |second: f64| {
        if second < 4.0 {
            22_000.0
        } else {
            80_000.0 + 4_000.0 * (second - 4.0)
        }
    };
    assert!(!ids(&run(&[(4.0, 0.3)], queue)).contains(&"path-change".to_owned()));
    // Nor does one whose overflow was repaired first: cut to two thirds, it grows and waits longer again.
    let repaired = |second: f64| match second {
        _ if second < 4.0 => 22_000.0,
        _ if second < 4.6 => 120_000.0,
        _ => 80_000.0 + 4_000.0 * (second - 4.6),
    };
    assert!(!ids(&run(&[(4.0, 0.3)], repaired)).contains(&"path-change".to_owned()));
    // One that came back was no change that stays.
    let blip = |second: f64| {
        if (4.0..5.0).contains(&second) {
            80_000.0
        } else {
            22_000.0
        }
    };
    assert!(!ids(&run(&[], blip)).contains(&"path-change".to_owned()));
}

#[test]
fn two_levels_in_turn_are_bimodal() {
    let turns: Vec<(f64, f64)> = (1..10)
        .map(|second| (f64::from(second), if second % 2 == 1 { 0.25 } else { 1.0 }))
        .collect();
    // As much in flight all the time: a slower path makes it wait longer.
    let rtt = |second: f64| {
        if second < 0.2 {
            20_000.0
        } else if (1.0..10.0).contains(&second) && second % 2.0 >= 1.0 {
            100_000.0
        } else {
            25_000.0
        }
    };
    let findings = explain(&run(&turns, rtt));
    assert_eq!(findings[0].id, "bimodal", "{findings:#?}");
    assert!(
        findings[0]
            .sentence
            .contains("25.0 Mbit/s for 44 % of the time")
            && findings[0].sentence.contains("9 changes"),
        "{}",
        findings[0].sentence
    );
    // Three levels are not two, and one change is a step.
    let wild: Vec<(f64, f64)> = (1..10_usize)
        .map(|second| (second as f64, [0.2, 1.0, 0.5][second % 3]))
        .collect();
    assert!(!ids(&run(&wild, rtt)).contains(&"bimodal".to_owned()));
    assert!(!ids(&run(&[(5.0, 0.25)], rtt)).contains(&"bimodal".to_owned()));
}

/// Losses behind a queue at the beginning, then a low rate that creeps up without one.
fn spoilt(algorithm: &str, window: u64) -> RunRecord {
    let levels: Vec<(f64, f64)> = (2..10)
        .map(|second| (f64::from(second), 0.4 + 0.02 * f64::from(second)))
        .collect();
    let traffic = Traffic {
        losses: vec![Loss {
            at_s: 1.5,
            segments: 300,
            window_packets: window,
            rtt_us: 35_000,
        }],
        ..traffic(&levels)
    };
    let rtt = |second: f64| {
        if (0.3..1.6).contains(&second) {
            35_000.0
        } else {
            20_500.0
        }
    };
    let mut record = shaped(&traffic, &levels, rtt);
    for end in [&mut record.client, &mut record.server] {
        end.as_mut().unwrap().streams[0].congestion = Some(algorithm.into());
    }
    record
}

#[test]
fn a_long_way_back_from_one_loss_is_the_congestion_controls() {
    // Half of 3,000 segments at one in 20 ms: 30 s.
    let findings = explain(&spoilt("reno", 3000));
    assert_eq!(findings[0].id, "congestion-control", "{findings:#?}");
    let remedy = findings[0].remedy.as_ref().unwrap();
    assert_eq!(remedy.fix, Fix::Congestion("cubic".to_owned()));
    let expected = findings[0].expected.as_ref().unwrap();
    assert!((90e6..110e6).contains(&expected.rate_bps), "{expected:?}");
    assert!(!findings.iter().any(|finding| finding.id == "path-full"));
    // CUBIC is back from that after 13 s at the latest; with a window of 100 segments after 4.2 s.
    assert_eq!(explain(&spoilt("cubic", 3000))[0].id, "congestion-control");
    assert!(!ids(&spoilt("cubic", 100)).contains(&"congestion-control".to_owned()));
    // What BBR does after a loss is not known here.
    assert!(!ids(&spoilt("bbr", 3000)).contains(&"congestion-control".to_owned()));
}

#[test]
fn directions_that_differ_are_told_and_equal_ones_are_not() {
    let plan = linerate_model::plan::Plan {
        direction: linerate_model::plan::Direction::Both,
        ..tcp()
    };
    let mut record = fixture::run(&plan, &Traffic::default());
    assert!(!ids(&record).contains(&"asymmetric".to_owned()));
    // The server's own sending: a fifth of it.
    for end in [&mut record.client, &mut record.server] {
        let end = end.as_mut().unwrap();
        let stream = end.streams.last_mut().unwrap();
        for name in ["app_bytes", "bytes_acked", "bytes_sent", "bytes_received"] {
            if let Some(values) = stream.samples.named(name) {
                let fifth = values.iter().map(|value| value / 5).collect();
                stream.samples.insert(name, fifth).unwrap();
            }
        }
    }
    let found = ids(&record);
    assert_eq!(
        found.iter().filter(|id| *id == "asymmetric").count(),
        1,
        "{found:?}"
    );
    assert_ne!(found[0], "asymmetric");
}

#[test]
fn a_guest_whose_cpu_was_taken_is_told() {
    let busy = Traffic {
        sender_cpu: 0.99,
        rate_bps: 3e9,
        rtt_us: 20_100,
        min_rtt_us: 20_000,
        retransmits: 0,
        ..Traffic::default()
    };
    let stolen = |share: u64| {
        let mut record = fixture::run(&tcp(), &busy);
        let counters = &mut record.client.as_mut().unwrap().counters;
        let rows = counters.len() as u64;
        let values = (0..rows).map(|row| row * share).collect();
        counters.insert("cpu1.steal_ms", values).unwrap();
        record
    };
    // 30 ms of each tenth of a second.
    let findings = explain(&stolen(30));
    assert_eq!(findings[0].id, "virtualisation-limit", "{findings:#?}");
    assert!(
        findings[0]
            .sentence
            .contains("gave 30 % of CPU 1 to other tasks"),
        "{}",
        findings[0].sentence
    );
    assert!(findings.iter().any(|finding| finding.id == "sender-cpu"));
    assert_eq!(ids(&stolen(5))[0], "sender-cpu");
    // A kernel that does not tell what is stolen.
    assert_eq!(ids(&fixture::run(&tcp(), &busy))[0], "sender-cpu");
}

#[test]
fn a_windows_bursts_are_no_levels() {
    // A window that leaves in one burst each 60 ms: every second tenth of a second has twice as much.
    let turns: Vec<(f64, f64)> = (1..90)
        .map(|tenth| {
            (
                f64::from(tenth) / 10.0,
                if tenth % 2 == 1 { 0.5 } else { 1.0 },
            )
        })
        .collect();
    let traffic = Traffic {
        min_rtt_us: 60_000,
        ..traffic(&turns)
    };
    let found = ids(&shaped(&traffic, &turns, |_| 60_000.0));
    assert!(!found.contains(&"bimodal".to_owned()), "{found:?}");
}

/// A run over 60 ms whose bytes leave in bursts: of each 150 ms the path works for 80, at 94 Mbit/s.
fn in_bursts(buffer: u64) -> RunRecord {
    let traffic = Traffic {
        rate_bps: 94e6 * 80.0 / 150.0,
        rtt_us: 100_000,
        min_rtt_us: 60_000,
        retransmits: 0,
        congestion_window_bytes: 1_500_000,
        notsent_bytes: 0,
        send_buffer_bytes: buffer,
        ..Traffic::default()
    };
    let mut record = fixture::run(&tcp(), &traffic);
    let end = record.client.as_mut().unwrap();
    end.host.tcp_wmem = Some([4096, 16_384, buffer]);
    let start = end.start_ns.0;
    let samples = &mut end.streams[0].samples;
    let whole = linerate_model::units::whole;
    let turn = |at: &u64| {
        let ms = at.saturating_sub(start) as f64 / 1e6;
        ((ms / 150.0).floor(), (ms % 150.0 / 80.0).min(1.0))
    };
    let burst = 94e6 * 0.08 / 8.0;
    let at = samples.at_ns().to_vec();
    let acked: Vec<u64> = at
        .iter()
        .map(|at| whole((turn(at).0 + turn(at).1) * burst))
        .collect();
    let flight: Vec<u64> = at
        .iter()
        .map(|at| whole((1.05 - turn(at).1) * burst / MSS))
        .collect();
    let columns = [
        ("bytes_acked", acked),
        ("unacked_packets", flight),
        ("delivery_rate_bytes_per_s", vec![94_000_000 / 8; at.len()]),
    ];
    for (name, values) in columns {
        samples.insert(name, values).unwrap();
    }
    record
}

fn with_column(mut record: RunRecord, name: &str, value: u64) -> RunRecord {
    let samples = &mut record.client.as_mut().unwrap().streams[0].samples;
    samples.insert(name, vec![value; samples.len()]).unwrap();
    record
}

#[test]
fn bursts_past_a_small_send_buffer_are_its_doing_and_no_full_path() {
    let findings = explain(&in_bursts(65_536));
    assert_eq!(findings[0].id, "send-buffer", "{findings:#?}");
    assert_eq!(
        findings[0].sentence,
        "The client (alpha)'s send buffer (the tcp_wmem maximum, 64.0 KiB) limited the rate: bursts of up to 964 KiB \
         exceeded it, then the sender waited for buffer space while the path was idle; 50.1 Mbit/s on average, but \
         94.0 Mbit/s at times"
    );
    assert!(!findings.iter().any(|one| one.id == "path-full"));
    let expected = findings[0].expected.as_ref().unwrap();
    assert!((93e6..95e6).contains(&expected.rate_bps), "{expected:?}");
    assert_eq!(
        findings[0].remedy.as_ref().unwrap().fix,
        Fix::SendBuffer(BufferSizes {
            first: Some([4096, 16_384]),
            most: 4_194_304,
        })
    );
    // A buffer that holds more than what is in flight, or data that waits behind it: the buffer is large enough.
    for record in [
        in_bursts(2_626_560),
        with_column(in_bursts(65_536), "notsent_bytes", 900_000),
    ] {
        let findings = explain(&record);
        assert_eq!(findings[0].id, "path-full", "{findings:#?}");
        assert!(
            findings[0].sentence.starts_with(
                "The path is full only at times, or its rate varies: it carried 94.0 Mbit/s at times, 50.1 Mbit/s on average; \
             it has a standing queue of 40.0 ms"
            ),
            "{}",
            findings[0].sentence
        );
    }
}

#[test]
fn a_buffer_that_the_bytes_in_flight_fill_in_stretches_is_the_limit() {
    // More than half of it is in flight, and never 1.5 times as much.
    let mut record = in_bursts(660_000);
    let samples = &mut record.client.as_mut().unwrap().streams[0].samples;
    let flight = samples.column(Column::unacked_packets).unwrap();
    let flight: Vec<u64> = flight.iter().map(|packets| *packets.max(&280)).collect();
    samples.insert(Column::unacked_packets, flight).unwrap();
    let findings = explain(&record);
    assert_eq!(findings[0].id, "send-buffer", "{findings:#?}");
    assert!(
        findings[0].sentence.contains("in flight of a buffer of"),
        "{}",
        findings[0].sentence
    );
    let expected = findings[0].expected.as_ref().unwrap();
    assert!((93e6..95e6).contains(&expected.rate_bps), "{expected:?}");
}

#[test]
fn a_path_that_is_never_short_of_bytes_is_full_at_its_mean() {
    let fed = with_column(in_bursts(65_536), "unacked_packets", 700);
    let findings = explain(&fed);
    assert_eq!(findings[0].id, "path-full", "{findings:#?}");
    assert!(
        findings[0]
            .sentence
            .starts_with("The path is full at 50.1 Mbit/s"),
        "{}",
        findings[0].sentence
    );
}

#[test]
fn a_path_that_is_full_only_before_a_loss_is_not_full_at_its_mean() {
    // A queue of 10 ms before each of four losses, none in the mean; the path ran dry in between.
    let mut record = in_bursts(2_626_560);
    let samples = &mut record.client.as_mut().unwrap().streams[0].samples;
    let rows = samples.len();
    let lost = |row: usize| 5 * (5 * row / rows) as u64;
    let grown = |row: usize| lost((row + 15).min(rows - 1)) > lost(row);
    let rtt = |row| if grown(row) { 70_000 } else { 61_000 };
    let columns = [
        ("total_retrans_packets", (0..rows).map(lost).collect()),
        ("rtt_us", (0..rows).map(rtt).collect()),
    ];
    for (name, values) in columns {
        samples.insert(name, values).unwrap();
    }
    let says = |record: &RunRecord| {
        let findings = explain(record);
        assert_eq!(findings[0].id, "path-full", "{findings:#?}");
        findings[0].sentence.clone()
    };
    assert_eq!(
        says(&record),
        "The path is full only at times: it carried 94.0 Mbit/s at times, 50.1 Mbit/s on average; segments were lost \
         only after a queue of 10.0 ms had grown (RTT then 70.0 ms, minimum 60.0 ms)"
    );
    // Never short of bytes, it is full at what arrived.
    let fed = with_column(record, "unacked_packets", 700);
    assert_eq!(
        says(&fed),
        "The path is full: segments were lost only after a queue of 10.0 ms had grown (RTT then 70.0 ms, minimum \
         60.0 ms); 50.1 Mbit/s arrived"
    );
}

#[test]
fn where_the_kernel_does_not_tell_of_the_bursts_the_mean_is_all_there_is() {
    for (missing, begins) in [
        ("unacked_packets", "The path is full at 50.1 Mbit/s"),
        ("notsent_bytes", "The path is full only at times"),
    ] {
        let mut record = in_bursts(65_536);
        let stream = &mut record.client.as_mut().unwrap().streams[0];
        let mut kept = linerate_model::series::Series::new(stream.samples.at_ns().to_vec());
        for name in stream.samples.names().filter(|name| *name != missing) {
            kept.insert(name, stream.samples.named(name).unwrap().to_vec())
                .unwrap();
        }
        stream.samples = kept;
        let findings = explain(&record);
        let full = findings.iter().find(|one| one.id == "path-full").unwrap();
        assert!(full.sentence.starts_with(begins), "{}", full.sentence);
    }
}

#[test]
fn a_path_that_an_early_exit_filled_at_last_is_neither_full_nor_growing_back() {
    let levels = [
        (0.0, 0.03),
        (1.0, 0.05),
        (2.0, 0.08),
        (3.0, 0.12),
        (4.0, 0.18),
        (5.0, 0.27),
        (6.0, 0.4),
        (7.0, 0.6),
        (8.0, 0.8),
        (8.5, 1.0),
    ];
    let lost = |at_s: f64| {
        let traffic = Traffic {
            slow_start_left: Some((0.2, 17)),
            losses: vec![Loss {
                at_s,
                segments: 230,
                window_packets: 5000,
                rtt_us: 30_000,
            }],
            ..traffic(&levels)
        };
        let rtt = |second: f64| {
            let queued = second >= 9.0 || (at_s - 0.2..at_s).contains(&second);
            if queued { 30_000.0 } else { 20_300.0 }
        };
        let record = shaped(&traffic, &levels, rtt);
        ids(&with_column(
            record,
            "delivery_rate_bytes_per_s",
            12_500_000,
        ))
    };
    let found = lost(9.3);
    assert_eq!(found[0], "early-slow-start-exit", "{found:?}");
    for never in ["path-full", "congestion-control", "unstable"] {
        assert!(!found.contains(&never.to_owned()), "{found:?}");
    }
    // Lost early, the rest is the way back, or something else.
    let found = lost(1.0);
    assert_ne!(found[0], "early-slow-start-exit", "{found:?}");
}

#[test]
fn a_queue_in_the_mean_does_not_hide_a_long_way_back() {
    let mut levels: Vec<(f64, f64)> = (2..9)
        .map(|second| (f64::from(second), 0.4 + 0.02 * f64::from(second)))
        .collect();
    levels.push((9.0, 1.0));
    let traffic = Traffic {
        losses: vec![Loss {
            at_s: 1.5,
            segments: 300,
            window_packets: 3000,
            rtt_us: 60_000,
        }],
        ..traffic(&levels)
    };
    let rtt = |second: f64| match second {
        0.3..1.6 | 9.0.. => 60_000.0,
        _ => 23_000.0,
    };
    let findings = explain(&shaped(&traffic, &levels, rtt));
    assert_eq!(findings[0].id, "congestion-control", "{findings:#?}");
    assert!(!findings.iter().any(|one| one.id == "path-full"));
}

#[test]
fn what_cubic_would_reach_is_promised_where_enough_was_lost_by_chance() {
    // Reno at 200 ms, single losses at any window: by RFC 9438 CUBIC reaches more.
    let reno = |losses: usize, seconds: f64| {
        let each = seconds / (losses as f64 + 1.0);
        let lost = (0..losses).map(|turn| Loss {
            at_s: 1.0 + each * (turn as f64 + 0.3 * (turn % 3) as f64),
            segments: 1,
            rtt_us: 200_100,
            window_packets: if turn == 0 {
                300
            } else {
                60 + (turn as u64 * 29) % 45
            },
        });
        let traffic = Traffic {
            seconds,
            rate_bps: 4.4e6,
            rtt_us: 200_100,
            min_rtt_us: 200_000,
            losses: lost.collect(),
            congestion_window_bytes: 75 * 1448,
            in_flight_bytes: 75 * 1448,
            ..traffic(&[(0.0, 4.0), (1.0, 1.0)])
        };
        let mut record = fixture::run(&tcp(), &traffic);
        for stream in &mut record.client.as_mut().unwrap().streams {
            stream.congestion = Some("reno".into());
        }
        let found = explain(&record);
        let one = found.iter().find(|one| one.id == "congestion-control");
        one.unwrap_or_else(|| panic!("{found:#?}")).clone()
    };
    let often = reno(130, 900.0);
    assert!(often.expected.is_some(), "{}", often.sentence);
    assert!(
        often.sentence.ends_with(" is possible"),
        "{}",
        often.sentence
    );
    let few = reno(9, 60.0);
    assert_eq!(few.expected, None);
    assert!(few.sentence.ends_with("seems possible"), "{}", few.sentence);
}
