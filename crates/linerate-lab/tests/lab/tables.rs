//! What a path does, as tables: each is the whole behaviour of one setting, on virtual time.
//!
//! Where a figure follows from arithmetic, a comment says so; the others are what the seed gives.

use std::fmt::Write as _;
use std::num::NonZeroU64;

use linerate_lab::path::{
    Bottleneck, Cause, Change, Codel, Direction, DirectionSpec, Discipline, Ecn, Fate, Loss,
    MaxPacket, Packet, Policer, Probability, Reorder, Settings,
};
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::course::{Course, bottleneck, packet, plain};

const SECOND: Nanos = Nanos::from_millis(1000);

fn odds(share: f64) -> Probability {
    Probability::new(share).expect("a share")
}

/// Compares a table with what it was; blanks at line ends and around do not count.
#[track_caller]
fn same(table: &str, snapshot: &str) {
    let lines = |text: &str| {
        let trimmed: Vec<_> = text
            .trim()
            .lines()
            .map(|line| line.trim().to_owned())
            .collect();
        trimmed.join("\n")
    };
    assert_eq!(lines(table), lines(snapshot), "the table is now\n{table}");
}

/// Milliseconds with one digit behind the point.
fn millis(span: Nanos) -> String {
    format!("{:.1}", span.as_secs_f64() * 1e3)
}

#[test]
fn the_rate_counts_overhead_segment_by_segment() {
    // 100 Mbit/s × bytes / (bytes + 38 × segments): 62.7, 93.8, 97.5 and, for 43 × 1500, 97.5.
    let mut table = String::from("bytes segments IP-Mbit/s\n");
    for (bytes, segments) in [(64, 1), (576, 1), (1500, 1), (64_500, 43)] {
        let mut course = Course::new(Settings {
            bottleneck: Some(bottleneck("100M", 200_000)),
            ..plain()
        });
        let model = Packet {
            segments,
            ..packet(0, bytes)
        };
        course.load(model, "150M", Nanos::ZERO, SECOND);
        let passed = course
            .verdicts
            .iter()
            .filter(|verdict| verdict.fate == Fate::Deliver && verdict.due < SECOND);
        let mbit = passed.count() as f64 * bytes as f64 * 8.0 / 1e6;
        let _ = writeln!(table, "{bytes} {segments} {mbit:.1}");
    }
    same(
        &table,
        "bytes segments IP-Mbit/s
        64 1 62.7
        576 1 93.8
        1500 1 97.5
        64500 43 97.0",
    );
}

#[test]
fn a_full_queue_delays_by_its_length_and_drops_the_rest() {
    // Offered 20 % more than 10 Mbit/s for a second: 250 kB too much, less what the queue takes. A full
    // queue delays by its bytes / rate: 100 kB take 80 ms.
    let mut table = String::from("queue most-waited-ms most-bytes dropped delivered\n");
    for queue in [0, 10_000, 100_000, 1_000_000] {
        let mut course = Course::new(Settings {
            bottleneck: Some(bottleneck("10M", queue)),
            ..plain()
        });
        course.load(packet(0, 1462), "12M", Nanos::ZERO, SECOND);
        course.finish();
        let counters = course.direction.counters();
        let ours = counters.ours;
        let _ = writeln!(
            table,
            "{queue} {} {} {} {}",
            millis(ours.queue_time_max),
            counters.queue_bytes_max.0,
            ours.dropped.queue.packets,
            ours.delivered.packets
        );
    }
    same(
        &table,
        "queue most-waited-ms most-bytes dropped delivered
        0 1.2 1500 166 834
        10000 7.2 9000 161 839
        100000 79.2 99000 101 899
        1000000 199.8 250500 0 1000",
    );
}

#[test]
fn loss_comes_as_its_model_says() {
    let mut table = String::from("model lost runs mean-run\n");
    let gilbert = |p, r| Loss::Gilbert {
        p: odds(p),
        r: odds(r),
        bad: Probability::ALWAYS,
        good: Probability::NEVER,
    };
    for (name, loss) in [
        ("none", Loss::None),
        (
            "every-1000",
            Loss::Every(NonZeroU64::new(1000).expect("not zero")),
        ),
        ("1e-4", Loss::Independent(odds(1e-4))),
        ("1e-2", Loss::Independent(odds(1e-2))),
        ("gilbert-1e-3-0.3", gilbert(1e-3, 0.3)),
        ("gilbert-1e-4-0.05", gilbert(1e-4, 0.05)),
    ] {
        let mut course = Course::new(Settings { loss, ..plain() });
        for id in 0..500_000 {
            course.offer(Nanos(id), packet(id, 1500));
        }
        course.finish();
        let counters = course.direction.counters();
        let (lost, runs) = (counters.ours.dropped.loss.packets, counters.loss_runs);
        assert_eq!(
            (lost, counters.loss_trials > 0),
            (counters.loss_hits, name != "none")
        );
        let _ = writeln!(
            table,
            "{name} {lost} {runs} {:.2}",
            lost as f64 / runs.max(1) as f64
        );
    }
    same(&table, LOSSES);
}

const LOSSES: &str = "
model lost runs mean-run
none 0 0 0.00
every-1000 500 500 1.00
1e-4 48 48 1.00
1e-2 4987 4935 1.01
gilbert-1e-3-0.3 1693 503 3.37
gilbert-1e-4-0.05 926 43 21.53
";

#[test]
fn a_policer_passes_its_burst_and_then_its_rate() {
    // 20 Mbit/s into a policer of 8 Mbit/s and 100 kB: the bucket lasts 100 kB / (20 − 8) Mbit/s = 67 ms;
    // from then on 8 Mbit/s pass. An idle half second fills it again (8 Mbit/s × 0.5 s > 100 kB).
    let mut course = Course::new(Settings {
        policer: Some(Policer {
            rate: BitRate(8_000_000),
            burst: Bytes(100_000),
        }),
        ..plain()
    });
    course.load(packet(0, 1462), "20M", Nanos::ZERO, Nanos::from_millis(400));
    course.load(
        packet(0, 1462),
        "20M",
        Nanos::from_millis(900),
        Nanos::from_millis(1100),
    );
    let mut table = String::from("from-ms passed-Mbit/s dropped\n");
    for slice in 0..11 {
        let from = Nanos::from_millis(slice * 100);
        let to = from.plus(Nanos::from_millis(100));
        let of = |fate: fn(Fate) -> bool| {
            let all = course.verdicts.iter();
            all.filter(|verdict| fate(verdict.fate) && (from..to).contains(&verdict.due))
                .count()
        };
        let passed = of(|fate| fate == Fate::Deliver);
        let dropped = of(|fate| fate != Fate::Deliver);
        let _ = writeln!(
            table,
            "{} {:.1} {dropped}",
            slice * 100,
            passed as f64 * 1500.0 * 8.0 / 1e5
        );
    }
    same(
        &table,
        "from-ms passed-Mbit/s dropped
        0 16.0 34
        100 7.9 101
        200 8.0 99
        300 8.0 100
        400 0.0 0
        500 0.0 0
        600 0.0 0
        700 0.0 0
        800 0.0 0
        900 16.0 34
        1000 7.9 101",
    );
}

#[test]
fn a_policer_drops_in_runs_under_a_burst() {
    // 100 packets at 1 Gbit/s: a bucket of 30 passes 33, since it refills at a tenth of that rate meanwhile;
    // then one in ten.
    let mut course = Course::new(Settings {
        policer: Some(Policer {
            rate: BitRate(100_000_000),
            burst: Bytes(45_000),
        }),
        ..plain()
    });
    course.load(packet(0, 1462), "1G", Nanos::ZERO, Nanos(1_200_000));
    let fates: String = course
        .verdicts
        .iter()
        .map(|verdict| {
            if verdict.fate == Fate::Deliver {
                '+'
            } else {
                '-'
            }
        })
        .collect();
    same(
        &fates,
        "+++++++++++++++++++++++++++++++++-------+---------+---------+---------+---------+---------+---------",
    );
}

#[test]
fn codel_holds_the_queue_down_where_drop_tail_lets_it_stand() {
    // 25 % too much for 10 Mbit/s; drop-tail fills 250 kB (200 ms), CoDel drops ever more often until the
    // standing delay is near its target. The load does not answer, so it takes its time.
    let mut table = String::from("at-s drop-tail-ms codel-ms codel-drops\n");
    let course = |discipline| {
        let mut course = Course::new(Settings {
            bottleneck: Some(Bottleneck {
                discipline,
                ..bottleneck("10M", 250_000)
            }),
            ..plain()
        });
        course.load(packet(0, 1462), "12.5M", Nanos::ZERO, Nanos(8 * SECOND.0));
        course.finish();
        course
    };
    let tail = course(Discipline::DropTail);
    let codel = course(Discipline::Codel(Codel::default()));
    let around = |course: &Course, second: u64| {
        let from = Nanos(second * SECOND.0);
        let of_second: Vec<_> = course
            .verdicts
            .iter()
            .filter(|verdict| verdict.due >= from && verdict.due < from.plus(SECOND))
            .collect();
        let passed = of_second
            .iter()
            .filter(|verdict| verdict.fate == Fate::Deliver);
        let waits: Vec<u64> = passed.map(|verdict| verdict.due.0 - verdict.id).collect();
        let mean = waits.iter().sum::<u64>() / waits.len().max(1) as u64;
        (millis(Nanos(mean)), of_second.len() - waits.len())
    };
    for second in 0..8 {
        let (codel_ms, drops) = around(&codel, second);
        let _ = writeln!(
            table,
            "{second} {} {codel_ms} {drops}",
            around(&tail, second).0
        );
    }
    same(&table, CODEL);
}

const CODEL: &str = "
at-s drop-tail-ms codel-ms codel-drops
0 101.0 92.6 43
1 200.0 183.6 208
2 200.0 174.4 209
3 200.0 165.5 208
4 200.0 154.8 227
5 200.0 113.6 276
6 200.0 34.4 268
7 200.0 79.4 94
";

#[test]
fn jitter_delays_within_its_bound_and_overtakes_nothing() {
    let mut table = String::from("jitter-ms least mean most overtaken\n");
    for jitter in [0, 1, 5, 40] {
        let mut course = Course::new(Settings {
            delay: Nanos::from_millis(20),
            jitter: Nanos::from_millis(jitter),
            ..plain()
        });
        course.load(packet(0, 1462), "12M", Nanos::ZERO, Nanos(5 * SECOND.0));
        course.finish();
        let delays: Vec<u64> = course
            .verdicts
            .iter()
            .map(|verdict| verdict.due.0 - verdict.id)
            .collect();
        let mean = delays.iter().sum::<u64>() / delays.len() as u64;
        let least = delays.iter().min().copied().unwrap_or_default();
        let most = delays.iter().max().copied().unwrap_or_default();
        let _ = writeln!(
            table,
            "{jitter} {} {} {} {}",
            millis(Nanos(least)),
            millis(Nanos(mean)),
            millis(Nanos(most)),
            course.direction.counters().ours.overtaken.packets
        );
    }
    same(&table, JITTERS);
}

const JITTERS: &str = "
jitter-ms least mean most overtaken
0 20.0 20.0 20.0 0
1 20.0 20.5 21.0 0
5 20.0 22.4 25.0 0
40 20.3 37.1 59.7 0
";

#[test]
fn reordering_overtakes_what_follows_within_the_extra_delay() {
    // At 12 Mbit/s a packet comes each millisecond. A slow packet counts as overtaken where a quick one
    // followed within its extra delay: all of them at 2.5 ms, none at 0.5 ms.
    let mut table = String::from("fraction extra-ms overtaken-% most-delay-ms\n");
    for (fraction, extra_us) in [(0.0, 2500), (0.01, 500), (0.01, 2500), (0.25, 2500)] {
        let mut course = Course::new(Settings {
            delay: Nanos::from_millis(10),
            reorder: Some(Reorder {
                fraction: odds(fraction),
                delay: Nanos(extra_us * 1000),
            }),
            ..plain()
        });
        course.load(packet(0, 1462), "12M", Nanos::ZERO, Nanos(20 * SECOND.0));
        course.finish();
        let ours = course.direction.counters().ours;
        let share = 100.0 * ours.overtaken.packets as f64 / ours.delivered.packets as f64;
        let most = course
            .verdicts
            .iter()
            .map(|verdict| verdict.due.0 - verdict.id)
            .max();
        let _ = writeln!(
            table,
            "{fraction} {} {share:.2} {}",
            millis(Nanos(extra_us * 1000)),
            millis(Nanos(most.unwrap_or_default()))
        );
    }
    same(&table, REORDERS);
}

const REORDERS: &str = "
fraction extra-ms overtaken-% most-delay-ms
0 2.5 0.00 10.0
0.01 0.5 0.00 10.5
0.01 2.5 1.04 12.5
0.25 2.5 23.65 12.5
";

#[test]
fn ecn_marks_what_is_capable_above_the_threshold() {
    let mut table = String::from("ecn threshold marked delivered\n");
    for ecn in [Ecn::NotCapable, Ecn::Capable, Ecn::Marked] {
        for threshold in [None, Some(Bytes(30_000))] {
            let mut course = Course::new(Settings {
                bottleneck: Some(Bottleneck {
                    ecn_threshold: threshold,
                    ..bottleneck("10M", 1_000_000)
                }),
                ..plain()
            });
            let model = Packet {
                ecn,
                ..packet(0, 1462)
            };
            course.load(model, "12M", Nanos::ZERO, SECOND);
            course.finish();
            let ours = course.direction.counters().ours;
            let marked = course
                .verdicts
                .iter()
                .filter(|verdict| verdict.fate == Fate::DeliverMarked);
            assert_eq!(marked.count() as u64, ours.marked.packets);
            let _ = writeln!(
                table,
                "{ecn:?} {} {} {}",
                threshold.map_or("none".to_owned(), |threshold| threshold.0.to_string()),
                ours.marked.packets,
                ours.delivered.packets
            );
        }
    }
    // 2 Mbit/s too much fill 30 kB in 120 ms; of what arrives in the other 880 ms, 1000 packets a second, all is marked.
    same(
        &table,
        "ecn threshold marked delivered
        NotCapable none 0 1000
        NotCapable 30000 0 1000
        Capable none 0 1000
        Capable 30000 873 1000
        Marked none 0 1000
        Marked 30000 0 1000",
    );
}

#[test]
fn what_is_too_big_is_told_dropped_or_cut() {
    let mut table = String::from("bytes segments df icmp fate\n");
    for icmp in [true, false] {
        for (bytes, segments, dont_fragment) in [
            (1400, 1, true),
            (1401, 1, true),
            (1401, 1, false),
            (14_000, 10, true),
            (15_000, 10, true),
        ] {
            let mut course = Course::new(Settings {
                max_packet: Some(MaxPacket { bytes: 1400, icmp }),
                ..plain()
            });
            let packet = Packet {
                segments,
                dont_fragment,
                ..packet(0, bytes)
            };
            course.offer(Nanos::ZERO, packet);
            course.finish();
            let fate = course.verdicts[0].fate;
            let _ = writeln!(table, "{bytes} {segments} {dont_fragment} {icmp} {fate:?}");
        }
    }
    same(
        &table,
        "bytes segments df icmp fate
        1400 1 true true Deliver
        1401 1 true true TooBig { mtu: 1400, answer: true }
        1401 1 false true Deliver
        14000 10 true true Deliver
        15000 10 true true TooBig { mtu: 1400, answer: true }
        1400 1 true false Deliver
        1401 1 true false TooBig { mtu: 1400, answer: false }
        1401 1 false false Deliver
        14000 10 true false Deliver
        15000 10 true false TooBig { mtu: 1400, answer: false }",
    );
}

#[test]
fn what_is_cut_costs_and_is_lost_as_its_fragments() {
    let settings = Settings {
        bottleneck: Some(bottleneck("1M", 100_000)),
        max_packet: Some(MaxPacket {
            bytes: 68,
            icmp: true,
        }),
        ..plain()
    };
    let cut = Packet {
        dont_fragment: false,
        ..packet(0, 550)
    };
    let mut course = Course::new(settings);
    course.offer(Nanos::ZERO, cut);
    course.finish();
    // 530 bytes of payload in 12 fragments of up to 48: 550 + 11 × 20 bytes of IP and 12 × 38 beside, at 1 Mbit/s.
    assert_eq!(course.verdicts[0].due, Nanos((770 + 456) * 8000));
    // Each fragment has its odds: of twelve, the twelfth is lost, and with it the packet.
    let mut course = Course::new(Settings {
        loss: Loss::Every(std::num::NonZeroU64::new(12).expect("it is not 0")),
        ..settings
    });
    course.offer(Nanos::ZERO, cut);
    course.finish();
    assert_eq!(course.verdicts[0].fate, Fate::Drop(Cause::Loss));
    assert_eq!(course.direction.counters().loss_trials, 12);
}

#[test]
fn changes_come_at_their_time_after_the_test_began() {
    let settings = Settings {
        delay: Nanos::from_millis(10),
        bottleneck: Some(bottleneck("100M", 100_000)),
        ..plain()
    };
    let slower = Settings {
        bottleneck: Some(bottleneck("5M", 100_000)),
        ..settings
    };
    let longer = Settings {
        delay: Nanos::from_millis(40),
        ..settings
    };
    let at = |seconds: u64, settings| Change {
        at: Nanos(seconds * SECOND.0),
        settings,
    };
    let spec = DirectionSpec {
        settings,
        changes: vec![at(1, slower), at(2, longer)],
    };
    let mut course = Course::of(Direction::new(&spec, 1));
    // Before the test begins, nothing changes however long it takes.
    course.load(packet(0, 1462), "10M", Nanos::ZERO, Nanos(2 * SECOND.0));
    let begun = Nanos(3 * SECOND.0);
    course.run_until(begun);
    assert_eq!(course.direction.counters().changes, 0);
    course.direction.begin(begun);
    course.load(packet(0, 1462), "10M", begun, Nanos(6 * SECOND.0));
    course.finish();
    assert_eq!(course.direction.counters().changes, 2);
    let mut table = String::from("second passed-Mbit/s least-delay-ms most-delay-ms\n");
    for second in 3..6 {
        let from = Nanos(second * SECOND.0);
        let of_second = course.verdicts.iter().filter(|verdict| {
            verdict.fate == Fate::Deliver && verdict.due >= from && verdict.due < from.plus(SECOND)
        });
        let delays: Vec<u64> = of_second
            .map(|verdict| verdict.due.0 - verdict.id)
            .collect();
        let extreme = |value: Option<&u64>| millis(Nanos(value.copied().unwrap_or_default()));
        let _ = writeln!(
            table,
            "{} {:.2} {} {}",
            second - 3,
            delays.len() as f64 * 12_000.0 / 1e6,
            extreme(delays.iter().min()),
            extreme(delays.iter().max())
        );
    }
    same(&table, CHANGES);
}

const CHANGES: &str = "
second passed-Mbit/s least-delay-ms most-delay-ms
0 9.90 10.1 10.1
1 5.05 10.1 170.8
2 10.44 40.1 200.8
";

#[test]
fn competing_traffic_shares_the_bottleneck_and_is_counted_apart() {
    // Ours asks for 80 Mbit/s, the other for as much, of 100: by turns, so each gets half of it.
    let mut course = Course::new(Settings {
        bottleneck: Some(bottleneck("100M", 50_000)),
        ..plain()
    });
    // Unequal sizes, so that neither always comes just after a place has become free.
    let gap = |bytes: u64| BitRate(80_000_000).time_for(Bytes(bytes + 38)).0;
    let mut next = [0, 7];
    while next[0] < SECOND.0 {
        let cross = next[1] < next[0];
        let bytes = if cross { 1300 } else { 1462 };
        let at = next[usize::from(cross)];
        let packet = Packet {
            cross,
            ..packet(at, bytes)
        };
        course.offer(Nanos(at), packet);
        next[usize::from(cross)] += gap(bytes);
    }
    course.finish();
    let counters = course.direction.counters();
    let mbit = |bytes: u64| bytes as f64 * 8.0 / 1e6;
    let mut table = String::from("class offered delivered dropped\n");
    for (name, class) in [("ours", counters.ours), ("cross", counters.cross)] {
        let _ = writeln!(
            table,
            "{name} {:.1} {:.1} {:.1}",
            mbit(class.offered.bytes),
            mbit(class.delivered.bytes),
            mbit(class.dropped.queue.bytes)
        );
    }
    same(&table, SHARES);
}

const SHARES: &str = "
class offered delivered dropped
ours 78.0 47.1 30.8
cross 77.7 50.6 27.2
";

#[test]
fn duplicates_are_asked_for_in_their_share() {
    let mut course = Course::new(Settings {
        duplicate: odds(0.05),
        ..plain()
    });
    for id in 0..100_000 {
        course.offer(Nanos(id), packet(id, 1500));
    }
    course.finish();
    let ours = course.direction.counters().ours;
    assert_eq!(ours.delivered.packets, 100_000);
    let asked = course
        .verdicts
        .iter()
        .filter(|verdict| verdict.fate == Fate::Duplicate(1));
    assert_eq!(asked.count() as u64, ours.duplicated.packets);
    // Four standard deviations of a binomial of 100,000 and 0.05: 276.
    assert!(ours.duplicated.packets.abs_diff(5000) < 276, "{ours:?}");
}
