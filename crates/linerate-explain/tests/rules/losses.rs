//! What lost the segments: a policer, chance, a queue, or what the samples do not tell.

use linerate_model::column::Column;
use linerate_model::record::{Role, RunRecord};
use linerate_model::series::Series;
use linerate_testing::fixture::{self, Loss, Traffic};

use super::{explain, ids, quiet, tcp, verdict};

fn loss(at_s: f64, segments: u64, window_packets: u64) -> Loss {
    Loss {
        at_s,
        segments,
        rtt_us: 40_200,
        window_packets,
    }
}

/// A policer at 90 Mbit/s behind a gigabit line of 40 ms: a burst passed for a second, then three runs at one
/// window.
fn policed() -> Traffic {
    Traffic {
        rate_bps: 90e6,
        levels: vec![(0.0, 3.0), (1.0, 1.0)],
        noise: 0.0,
        losses: vec![
            loss(1.0, 500, 1300),
            loss(4.0, 6, 340),
            loss(6.5, 4, 338),
            loss(9.0, 8, 341),
        ],
        congestion_window_bytes: 310 * 1448,
        in_flight_bytes: 300 * 1448,
        ..quiet()
    }
}

/// Single losses at any window, after a slow start that had carried more.
pub(crate) fn by_chance() -> Traffic {
    Traffic {
        losses: vec![
            loss(0.8, 2, 900),
            loss(1.6, 1, 300),
            loss(3.1, 1, 120),
            loss(4.0, 1, 210),
            loss(7.2, 2, 90),
            loss(9.1, 1, 180),
        ],
        rate_bps: 25e6,
        ..policed()
    }
}

/// The same for so long that 96 losses came.
fn by_chance_often() -> Traffic {
    let mut many = by_chance();
    many.seconds = 90.0;
    // Irregular distances of 0.4 to 1.2 s, and windows of 90 to 210.
    let mut at_s = 9.5;
    for turn in 0..90_u64 {
        at_s += 0.4 + 0.1 * ((turn * 5) % 9) as f64;
        many.losses.push(loss(at_s, 1, 90 + (turn * 70) % 121));
    }
    many
}

#[test]
fn a_policer_is_told_by_its_burst_its_window_and_its_rate() {
    let finding = verdict(&tcp(), &policed());
    assert_eq!(finding.id, "policer", "{}", finding.sentence);
    assert!(
        finding.sentence.starts_with(
            "Consistent with a policer at about 90.0 Mbit/s: 270 Mbit/s passed until 500 segments were \
             retransmitted, at a window of 1,300, then 3 more losses at the same rate (518 segments in total)"
        ),
        "{}",
        finding.sentence
    );
    assert_eq!(
        finding.next.as_deref(),
        Some("linerate test server --fq-rate 81M")
    );
    let expected = finding.expected.unwrap();
    assert!((expected.rate_bps - 81e6).abs() < 1.0, "{expected:?}");
    // Slow start's loss alone, where what was under way then passed as tokens came …
    let mut once = policed();
    once.losses.truncate(1);
    assert_eq!(verdict(&tcp(), &once).id, "policer");
    // … and where it passed as fast as before: a shallow queue that was overrun early.
    once.levels = vec![(0.0, 3.0), (1.08, 1.0)];
    assert_eq!(verdict(&tcp(), &once).id, "network-loss");
    // A part of the window is no more than a congestion control grows by.
    once.levels = policed().levels;
    once.losses[0].segments = 200;
    assert_eq!(verdict(&tcp(), &once).id, "network-loss");
}

/// A bucket of a second's tokens and more, then losses all the time, at windows that differ.
fn spent(levels: Vec<(f64, f64)>, segments: u64) -> Traffic {
    let losses = (0..80_u64).map(|turn| {
        let window = 90 + (turn * 70) % 121;
        loss(2.0 + 0.1 * turn as f64, segments, window)
    });
    Traffic {
        levels,
        losses: losses.collect(),
        ..policed()
    }
}

#[test]
fn a_policer_is_told_by_a_constant_rate_while_losses_go_on() {
    let constant = vec![(0.0, 2.0), (1.5, 1.0)];
    let finding = verdict(&tcp(), &spent(constant.clone(), 5));
    assert_eq!(finding.id, "policer", "{}", finding.sentence);
    let bucket = finding.sentence.contains(" with a bucket of about 15.");
    assert!(bucket, "{}", finding.sentence);
    // Single segments at any window, by chance.
    assert_ne!(verdict(&tcp(), &spent(constant, 1)).id, "policer");
    // Nothing passed beyond the rate.
    assert_ne!(verdict(&tcp(), &spent(Vec::new(), 5)).id, "policer");
    // The rate wavers by a quarter from second to second.
    let wavers =
        (3..10).map(|second| (f64::from(second), if second % 3 == 0 { 0.75 } else { 1.25 }));
    let levels = [(0.0, 2.0), (1.5, 1.0)].into_iter().chain(wavers).collect();
    assert_ne!(verdict(&tcp(), &spent(levels, 5)).id, "policer");
    // A queue grew before the losses, as in front of a line that became slower.
    let mut queued = spent(vec![(0.0, 2.0), (1.5, 1.0)], 5);
    for loss in &mut queued.losses {
        loss.rtt_us = 90_000;
    }
    assert_ne!(verdict(&tcp(), &queued).id, "policer");
}

#[test]
fn a_policer_s_bucket_may_let_more_pass_once() {
    // The bucket was full when slow start's recovery was over: until the next loss a sixth more passed.
    let until = |at_s: f64| {
        let mut traffic = Traffic {
            levels: vec![(0.0, 3.0), (1.0, 1.17), (at_s, 1.0)],
            ..policed()
        };
        traffic.losses.insert(1, loss(at_s, 2, 340));
        traffic
    };
    assert_eq!(verdict(&tcp(), &until(1.5)).id, "policer");
    // Not for a third of the time: then it is no one rate.
    assert_eq!(verdict(&tcp(), &until(3.5)).id, "network-loss");
}

#[test]
fn what_a_shallow_queue_does_as_well_is_no_policer() {
    // The path never carried more than the later rate.
    let level = Traffic {
        levels: Vec::new(),
        ..policed()
    };
    assert_eq!(verdict(&tcp(), &level).id, "network-loss");
    // Reno falls to half: what it passed at most tells less.
    let mut plan = tcp();
    plan.congestion = Some("reno".into());
    let little = Traffic {
        levels: vec![(0.0, 1.4), (1.0, 1.0)],
        ..policed()
    };
    assert_eq!(verdict(&tcp(), &little).id, "policer");
    assert_ne!(verdict(&plan, &little).id, "policer");
}

#[test]
fn a_bucket_of_less_than_a_round_trip_is_told_by_the_bursts_that_pass() {
    // Half a round trip at 2.2 times the later rate, then nothing, before the first loss: 1.1 times over the whole one.
    let bursts: Vec<(f64, f64)> = (0..25)
        .flat_map(|number| {
            let at = f64::from(number) * 0.04;
            [(at, 2.2), (at + 0.02, 0.0)]
        })
        .chain([(1.0, 1.0)])
        .collect();
    let small = Traffic {
        levels: bursts,
        ..policed()
    };
    let finding = verdict(&tcp(), &small);
    assert_eq!(finding.id, "policer", "{}", finding.sentence);
    assert!(
        finding.sentence.contains("198 Mbit/s passed until"),
        "{}",
        finding.sentence
    );
    // Where acknowledgements come together, as from radio that collects them, the round trip is longer too.
    let mut collected = small;
    for loss in &mut collected.losses {
        loss.rtt_us = 45_000;
    }
    assert_ne!(verdict(&tcp(), &collected).id, "policer");
}

#[test]
fn a_burst_shorter_than_two_samples_counts_where_it_came_twice() {
    // A round trip of 20 ms in which all passes within 10 ms: two samples see 1.1 times the later rate.
    let burst = |at: f64| [(at, 2.2), (at + 0.01, 0.0)];
    let rounds = |from: u32| (from..50).flat_map(|round| burst(f64::from(round) * 0.02));
    let quick = |levels: Vec<(f64, f64)>| {
        let mut traffic = Traffic {
            levels,
            rtt_us: 20_000,
            min_rtt_us: 20_000,
            ..policed()
        };
        for loss in &mut traffic.losses {
            loss.rtt_us = 20_100;
        }
        traffic
    };
    let level = [(1.0, 1.0)];
    let often = quick(rounds(0).chain(level).collect());
    let finding = verdict(&tcp(), &often);
    assert_eq!(finding.id, "policer", "{}", finding.sentence);
    assert!(
        finding.sentence.contains("198 Mbit/s passed until"),
        "{}",
        finding.sentence
    );
    let once = quick(
        [(0.0, 0.2)]
            .into_iter()
            .chain(rounds(49))
            .chain(level)
            .collect(),
    );
    assert_eq!(verdict(&tcp(), &once).id, "network-loss");
}

#[test]
fn losses_behind_a_queue_are_a_full_path_s() {
    let mut behind = policed();
    for loss in &mut behind.losses {
        loss.rtt_us = 52_000;
    }
    let findings = explain(&fixture::run(&tcp(), &behind));
    assert_eq!(findings[0].id, "path-full", "{findings:#?}");
    assert!(
        findings[0]
            .sentence
            .contains("segments were lost only after a queue of 12.0 ms had grown"),
        "{}",
        findings[0].sentence
    );
    for never in ["policer", "random-loss", "network-loss"] {
        assert!(
            findings.iter().all(|finding| finding.id != never),
            "{never}"
        );
    }
    // A healthy CUBIC run repeats hundreds of segments when it fills a queue, and stands before it.
    let full = Traffic {
        losses: vec![Loss {
            rtt_us: 48_000,
            ..loss(0.3, 600, 900)
        }],
        ..Traffic::default()
    };
    assert_eq!(ids(&fixture::run(&tcp(), &full)), ["path-full"]);
}

#[test]
fn a_round_trip_that_is_always_so_long_is_no_queue_that_grew() {
    // Acknowledgements that come late make 47 ms of 40, before a loss as at any time; slow start passed three times as much.
    let late = |rtt_us: u64, levels: &[(f64, f64)]| {
        let mut traffic = Traffic {
            rtt_us: 46_500,
            levels: levels.to_vec(),
            ..by_chance()
        };
        for loss in &mut traffic.losses {
            loss.rtt_us = rtt_us;
        }
        verdict(&tcp(), &traffic).id
    };
    let far_more = [(0.0, 3.0), (1.0, 1.0)];
    assert_eq!(late(47_000, &far_more), "random-loss");
    assert_eq!(late(50_000, &far_more), "path-full");
    assert_eq!(late(47_000, &[]), "path-full");
}

#[test]
fn late_acknowledgements_of_small_windows_are_no_queue() {
    // The last segment of a small window is acknowledged late: 27 ms of 20, and the more so the smaller the window.
    let late = |levels: &[(f64, f64)]| {
        let turns = (0..10_u64).map(|turn| Loss {
            at_s: 0.5 + 0.9 * turn as f64,
            segments: 1,
            rtt_us: 26_000 + 400 * turn,
            window_packets: 5 + turn % 2,
        });
        let traffic = Traffic {
            rtt_us: 27_000,
            min_rtt_us: 20_000,
            rate_bps: 2e6,
            levels: levels.to_vec(),
            losses: turns.collect(),
            congestion_window_bytes: 5 * 1448,
            in_flight_bytes: 5 * 1448,
            ..policed()
        };
        verdict(&tcp(), &traffic).id
    };
    let changes: Vec<_> = (0..10_u8)
        .map(|turn| (f64::from(turn), [1.0, 2.5, 0.8, 1.6][usize::from(turn % 4)]))
        .collect();
    assert_ne!(late(&changes), "path-full");
    // A slow line passes its rate whenever it loses.
    assert_eq!(late(&[]), "path-full");
}

#[test]
fn chance_loses_single_segments_at_any_window() {
    let finding = verdict(&tcp(), &by_chance());
    assert_eq!(finding.id, "random-loss", "{}", finding.sentence);
    assert!(
        finding
            .sentence
            .contains("8 of 25,582 segments were retransmitted (0.031 %), in 6 losses spread over the run without a queue"),
        "{}",
        finding.sentence
    );
    assert_eq!(finding.next.as_deref(), Some("linerate test server -P 4"));
    // What slow start lost when it overran a queue is told apart.
    let mut overran = by_chance();
    overran.losses[0] = Loss {
        segments: 900,
        rtt_us: 80_000,
        ..overran.losses[0]
    };
    let besides = verdict(&tcp(), &overran).sentence;
    assert!(
        besides.contains("6 of 26,480 segments")
            && besides.contains("in 5 losses spread over the run without a queue")
            && besides
                .contains("; too few losses to predict the rate with -P 4 (a test of about 100 s would see enough)")
            && besides.ends_with("; 900 more when a queue overflowed"),
        "{besides}"
    );
    // Six losses foretell nothing, and more of them foretell better.
    assert_eq!(finding.expected, None);
    let finding = verdict(&tcp(), &by_chance_often());
    assert_eq!(finding.id, "random-loss", "{}", finding.sentence);
    let expected = finding.expected.unwrap();
    assert!(
        (3.9..4.1).contains(&(expected.rate_bps / 25e6)),
        "{expected:?}"
    );
    let uncertainty = 1.0 - expected.low_bps / expected.rate_bps;
    assert!((0.16..0.17).contains(&uncertainty), "{uncertainty}");
    // Exactly periodic loss comes at one window: one segment at a time is still no policer.
    let mut periodic = by_chance();
    for loss in &mut periodic.losses[1..] {
        (loss.segments, loss.window_packets) = (1, 120);
    }
    assert_eq!(verdict(&tcp(), &periodic).id, "random-loss");
    // Three losses are too few to tell.
    let mut few = by_chance();
    few.losses.truncate(3);
    assert_eq!(verdict(&tcp(), &few).id, "network-loss");
}

#[test]
fn several_streams_share_a_bucket_and_chance_shows_on_each() {
    let mut plan = tcp();
    plan.streams = 4;
    let scattered = Traffic {
        losses_apart_s: 0.21,
        // What four windows of that size carry.
        rate_bps: 170e6,
        ..by_chance_often()
    };
    assert_eq!(verdict(&plan, &scattered).id, "random-loss");
    // So do all of them together where one of them by accident lost three times only.
    let mut record = fixture::run(&plan, &scattered);
    let stream = &mut record.client.as_mut().unwrap().streams[2];
    let column = "total_retrans_packets";
    let seldom = stream.samples.named(column).unwrap().iter();
    let seldom = seldom.map(|again| (*again).min(4)).collect();
    stream.samples.insert(column, seldom).unwrap();
    assert_eq!(ids(&record)[0], "random-loss");
    // All at the same moments: something that they share dropped, and it was no bucket.
    assert_eq!(verdict(&plan, &by_chance()).id, "network-loss");
    let finding = verdict(&plan, &policed());
    assert_eq!(finding.id, "policer", "{}", finding.sentence);
    // The four windows and losses are added up, and each stream is paced at its part.
    assert!(
        finding
            .sentence
            .contains("2,000 segments were retransmitted, at a window of 5,200"),
        "{}",
        finding.sentence
    );
    assert_eq!(
        finding.next.as_deref(),
        Some("linerate test server -P 4 --fq-rate 20M")
    );
    // A full queue of the same rate, seen by four streams, has shown no more than that before.
    let level = Traffic {
        levels: Vec::new(),
        ..policed()
    };
    assert_ne!(verdict(&plan, &level).id, "policer");
}

#[test]
fn losses_of_several_at_regular_distances_are_no_chance() {
    // A tiny queue, or a tiny bucket, drops each time that the window has grown back; windows differ a little.
    let regular = Traffic {
        losses: (0..12_u8)
            .map(|turn| {
                let at = f64::from(turn).mul_add(0.7, 1.0 + f64::from(turn % 3) * 0.1);
                loss(at, 4, 100 + 20 * u64::from(turn % 3))
            })
            .collect(),
        levels: Vec::new(),
        rate_bps: 25e6,
        ..policed()
    };
    assert_eq!(verdict(&tcp(), &regular).id, "network-loss");
    // One at a time, or at any distance, chance does that as well.
    let mut single = regular.clone();
    for one in &mut single.losses {
        one.segments = 1;
    }
    assert_eq!(verdict(&tcp(), &single).id, "random-loss");
    let mut scattered = regular;
    for (one, at) in scattered
        .losses
        .iter_mut()
        .zip([0.8, 1.0, 1.3, 2.9, 3.1, 3.4, 4.0, 6.6, 6.8, 7.0, 9.0, 9.3])
    {
        one.at_s = at;
    }
    assert_eq!(verdict(&tcp(), &scattered).id, "network-loss");
    // No queue that passed nine times as much in slow start is overrun there: chance comes in bursts as well.
    scattered.losses[0].window_packets = 900;
    assert_eq!(verdict(&tcp(), &scattered).id, "random-loss");
}

/// What CUBIC lost at a queue of eight packets on a line of 100 Mbit/s over 20 ms, as it was recorded: when, s, with time in
/// proportion to what was delivered, how many segments, at which window.
const SHALLOW: [(f64, u64, u64); 14] = [
    (0.2, 4, 19),
    (0.46, 1, 16),
    (0.91, 4, 20),
    (1.8, 1, 24),
    (2.5, 6, 26),
    (3.58, 3, 27),
    (4.41, 4, 29),
    (5.49, 5, 32),
    (5.85, 1, 16),
    (6.38, 4, 21),
    (6.86, 5, 19),
    (8.71, 6, 37),
    (9.07, 2, 28),
    (9.51, 4, 24),
];

/// The same, of a connection whose window is otherwise `usual` segments.
fn at_a_shallow_queue(usual: u64) -> Traffic {
    Traffic {
        rate_bps: 10.8e6,
        rtt_us: 21_200,
        min_rtt_us: 20_000,
        losses: SHALLOW
            .into_iter()
            .map(|(at_s, segments, window_packets)| Loss {
                at_s,
                segments,
                rtt_us: 21_200,
                window_packets,
            })
            .collect(),
        levels: Vec::new(),
        congestion_window_bytes: usual * 1448,
        in_flight_bytes: usual * 1448,
        ..policed()
    }
}

#[test]
fn a_queue_that_own_bursts_overrun_is_no_chance() {
    let finding = verdict(&tcp(), &at_a_shallow_queue(22));
    assert_eq!(finding.id, "network-loss", "{}", finding.sentence);
    assert!(
        finding.sentence.contains(
            "; 10 of 13 losses after the first took several segments: a shallow queue, a policer, or random loss in bursts"
        ),
        "{}",
        finding.sentence
    );
    // The same after slow start has passed three times those windows: such a queue is not there.
    let mut passed = at_a_shallow_queue(22);
    passed.losses[0].window_packets = 72;
    assert_eq!(verdict(&tcp(), &passed).id, "random-loss");
    passed.losses[0].window_packets = 60;
    assert_eq!(verdict(&tcp(), &passed).id, "network-loss");
}

#[test]
fn enough_losses_of_one_segment_at_any_window_are_chance() {
    let single = |usual: u64, losses: usize| {
        let mut traffic = at_a_shallow_queue(usual);
        traffic.losses.truncate(losses);
        for loss in &mut traffic.losses {
            loss.segments = 1;
        }
        traffic
    };
    assert_eq!(verdict(&tcp(), &single(22, 14)).id, "random-loss");
    // Four after the first are enough, three are not.
    assert_eq!(verdict(&tcp(), &single(22, 5)).id, "random-loss");
    assert_eq!(verdict(&tcp(), &single(22, 4)).id, "network-loss");
    // They are, where slow start passed 2.5 times their windows.
    let mut passed = single(22, 4);
    passed.losses[0].window_packets = 48;
    assert_eq!(verdict(&tcp(), &passed).id, "network-loss");
    passed.losses[0].window_packets = 52;
    assert_eq!(verdict(&tcp(), &passed).id, "random-loss");
    // A third of several is still chance's; half of them is not.
    let mut mixed = single(22, 14);
    for loss in &mut mixed.losses[1..4] {
        loss.segments = 2;
    }
    assert_eq!(verdict(&tcp(), &mixed).id, "random-loss");
    mixed.losses[4].segments = 2;
    mixed.losses[5].segments = 2;
    assert_eq!(verdict(&tcp(), &mixed).id, "network-loss");
    // At windows above almost all others it is the window that loses them.
    assert_eq!(verdict(&tcp(), &single(12, 14)).id, "network-loss");
}

#[test]
fn a_path_that_showed_its_queue_once_does_not_lose_without_it() {
    let mut few = at_a_shallow_queue(22);
    few.losses.truncate(4);
    for loss in &mut few.losses[1..] {
        loss.segments = 1;
    }
    assert_eq!(verdict(&tcp(), &few).id, "network-loss");
    few.losses[0].rtt_us = 38_000;
    assert_eq!(verdict(&tcp(), &few).id, "random-loss");
    // Several at a time may still be another, shallower queue.
    for loss in &mut few.losses[1..4] {
        loss.segments = 5;
    }
    assert_eq!(verdict(&tcp(), &few).id, "network-loss");
}

/// The record without a column of the sender's samples.
fn without(mut record: RunRecord, column: &str) -> RunRecord {
    for stream in &mut record.client.as_mut().unwrap().streams {
        let mut kept = Series::new(stream.samples.at_ns().to_vec());
        for name in stream.samples.names().filter(|name| *name != column) {
            let values = stream.samples.named(name).unwrap().to_vec();
            kept.insert(name, values).unwrap();
        }
        stream.samples = kept;
    }
    record
}

#[test]
fn without_the_columns_nothing_is_decided() {
    for traffic in [policed(), by_chance()] {
        let record = without(fixture::run(&tcp(), &traffic), "snd_cwnd_packets");
        assert_eq!(ids(&record)[0], "network-loss");
        let stock = fixture::against_stock(fixture::run(&tcp(), &traffic), Role::Client);
        assert_eq!(ids(&stock)[0], "cannot-tell");
    }
}

#[test]
fn small_segments_are_noted_where_loss_limits() {
    let small = |mss: u64| {
        let mut record = fixture::run(&tcp(), &by_chance_often());
        let stream = &mut record.client.as_mut().unwrap().streams[0];
        let rows = stream.samples.len();
        stream
            .samples
            .insert(Column::snd_mss_bytes, vec![mss; rows])
            .unwrap();
        record
    };
    let findings = explain(&small(524));
    assert_eq!(findings[0].id, "random-loss");
    let note = findings
        .iter()
        .find(|finding| finding.id == "small-mss")
        .unwrap();
    let expected = note.expected.as_ref().unwrap();
    assert!((expected.rate_bps / 25e6 - 1448.0 / 524.0).abs() < 0.05);
    // A tunnel's segments are no small ones; a full path does not care; without the figure nothing is said.
    assert!(!ids(&small(1348)).contains(&"small-mss".to_owned()));
    let record = without(small(524), "snd_mss_bytes");
    assert!(!ids(&record).contains(&"small-mss".to_owned()));
}
