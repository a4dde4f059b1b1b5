//! Where the time and where the rate went: sums that are exact, and classes that follow from the samples.

use linerate_analysis::evidence::{DirectionEvidence, Evidence};
use linerate_analysis::time_budget::{Class, TimeBudget};
use linerate_analysis::waterfall::{LineRate, StepKind, Waterfall};
use linerate_model::plan::{DEFAULT_UDP_BLOCK, Plan, Protocol};
use linerate_model::record::{Role, RunRecord};
use linerate_model::series::Series;
use linerate_model::units::BitRate;
use linerate_testing::fixture::{self, Traffic};
use proptest::prelude::*;

fn tcp() -> Plan {
    Plan::new("server")
}

fn direction(record: &RunRecord) -> DirectionEvidence {
    Evidence::of(record).directions.remove(0)
}

fn budget(traffic: &Traffic) -> TimeBudget {
    direction(&fixture::run(&tcp(), traffic)).budget.unwrap()
}

fn waterfall(plan: &Plan, traffic: &Traffic) -> Waterfall {
    direction(&fixture::run(plan, traffic)).waterfall.unwrap()
}

fn taken(waterfall: &Waterfall, kind: StepKind) -> i64 {
    let of_kind = waterfall.steps.iter().filter(|step| step.kind == kind);
    of_kind.map(|step| step.bps).sum()
}

fn balances(waterfall: &Waterfall) -> bool {
    i128::from(waterfall.line_bps) - waterfall.taken_bps() == i128::from(waterfall.goodput_bps)
}

/// Puts values into a column of the sender, from row to row.
fn set(record: &mut RunRecord, column: &str, of: impl Fn(usize, u64) -> u64) {
    for stream in &mut record.client.as_mut().unwrap().streams {
        let mut made = Series::new(stream.samples.at_ns().to_vec());
        for name in stream.samples.names() {
            let values = stream.samples.named(name).unwrap();
            let changed: Vec<u64> = if name == column {
                values
                    .iter()
                    .enumerate()
                    .map(|(row, value)| of(row, *value))
                    .collect()
            } else {
                values.to_vec()
            };
            made.insert(name, changed).unwrap();
        }
        stream.samples = made;
    }
}

/// A path of 1 Gbit/s with room to spare.
fn roomy() -> Traffic {
    Traffic {
        rtt_us: 20_100,
        min_rtt_us: 20_000,
        link_mbit_per_s: Some(1000),
        retransmits: 0,
        ..Traffic::default()
    }
}

#[test]
fn a_standing_queue_is_a_path_that_is_filled() {
    let found = budget(&Traffic::default());
    assert!(found.share(Class::FillingPath) > 0.999, "{found:?}");
    assert!((found.network() - 1.0).abs() < 1e-9);
}

#[test]
fn a_congestion_window_without_a_queue_is_no_full_path() {
    let found = budget(&roomy());
    assert!(found.share(Class::CongestionWindow) > 0.999, "{found:?}");
}

#[test]
fn bytes_in_flight_at_the_peers_window_are_held_by_it_where_the_clock_pauses() {
    let traffic = Traffic {
        receive_window: 0.6,
        receive_window_bytes: 400_000,
        in_flight_bytes: 399_000,
        congestion_window_bytes: 900_000,
        ..roomy()
    };
    let found = budget(&traffic);
    assert!(found.share(Class::ReceiveWindow) > 0.99, "{found:?}");
}

#[test]
fn behind_a_deep_queue_a_window_bounds_only_the_queue() {
    let traffic = Traffic {
        receive_window: 0.9,
        receive_window_bytes: 400_000,
        in_flight_bytes: 399_000,
        congestion_window_bytes: 900_000,
        ..Traffic::default()
    };
    assert!(budget(&traffic).share(Class::FillingPath) > 0.99);
}

#[test]
fn bytes_in_flight_that_stand_at_the_send_buffer_mean_the_send_buffer() {
    let traffic = Traffic {
        send_buffer: 0.07,
        send_buffer_bytes: 1_048_576,
        in_flight_bytes: 700_000,
        congestion_window_bytes: 4_000_000,
        notsent_bytes: 0,
        ..roomy()
    };
    assert!(budget(&traffic).share(Class::SendBuffer) > 0.99);
}

#[test]
fn a_little_in_flight_and_nothing_unsent_is_the_application_although_the_clock_says_busy() {
    let traffic = Traffic {
        in_flight_bytes: 50_000,
        congestion_window_bytes: 900_000,
        notsent_bytes: 0,
        ..roomy()
    };
    assert!(budget(&traffic).share(Class::Application) > 0.99);
}

#[test]
fn recovery_and_timeouts_are_told_by_the_kernels_state() {
    let mut record = fixture::run(&tcp(), &roomy());
    // Of ten seconds at 10 ms: two in recovery, one without acknowledgements.
    set(&mut record, "ca_state", |row, _| match row {
        300..=499 => 3,
        500..=599 => 4,
        _ => 0,
    });
    let found = direction(&record);
    let budget = found.budget.unwrap();
    let seconds = |class| budget.times.of(class) as f64 / 1e9;
    assert!((seconds(Class::Recovery) - 2.0).abs() < 0.02, "{budget:?}");
    assert!((seconds(Class::Timeout) - 1.0).abs() < 0.02, "{budget:?}");
    let bands: Vec<Class> = found.bands.iter().map(|band| band.class).collect();
    assert_eq!(
        bands,
        [
            Class::CongestionWindow,
            Class::Recovery,
            Class::Timeout,
            Class::CongestionWindow
        ]
    );
    assert_eq!(found.stream_bands[0].bands, found.bands);
}

#[test]
fn clocks_that_tick_in_jiffies_lose_no_time() {
    let mut record = fixture::run(
        &tcp(),
        &Traffic {
            receive_window: 0.5,
            receive_window_bytes: 10_000_000,
            ..roomy()
        },
    );
    for column in ["busy_time_us", "rwnd_limited_us"] {
        set(&mut record, column, |_, value| value / 4000 * 4000);
    }
    let found = direction(&record).budget.unwrap();
    // A large window that is never filled does not limit, and jiffies make no idle time.
    assert!(found.share(Class::Application) < 0.001, "{found:?}");
    assert_eq!(found.times.of(Class::ReceiveWindow), 0);
}

#[test]
fn what_the_sender_does_not_tell_is_said() {
    let udp = Plan {
        protocol: Protocol::Udp,
        block_bytes: DEFAULT_UDP_BLOCK,
        ..tcp()
    };
    let why = direction(&fixture::run(&udp, &Traffic::default()))
        .budget
        .unwrap_err();
    assert!(why.contains("UDP"), "{why}");
    let mut stock = fixture::against_stock(fixture::run(&tcp(), &roomy()), Role::Client);
    stock
        .server
        .as_mut()
        .unwrap()
        .interface
        .as_mut()
        .unwrap()
        .kind = None;
    let found = direction(&stock);
    assert!(found.budget.unwrap_err().contains("stock iperf3"));
    assert!(found.bands.is_empty());
    // The rate that is missing is then nobody's.
    let waterfall = found.waterfall.unwrap();
    assert!(balances(&waterfall));
    assert!(
        taken(&waterfall, StepKind::NotKnown) > 800_000_000,
        "{waterfall:?}"
    );
}

#[test]
fn the_line_is_the_slower_interface_where_its_speed_can_be_true() {
    let found = waterfall(&tcp(), &roomy());
    // Its kind is veth: a made-up speed.
    assert_eq!(found.line, LineRate::MostSeen);
    let mut record = fixture::run(&tcp(), &roomy());
    for end in [
        record.client.as_mut().unwrap(),
        record.server.as_mut().unwrap(),
    ] {
        end.interface.as_mut().unwrap().kind = None;
    }
    record
        .server
        .as_mut()
        .unwrap()
        .interface
        .as_mut()
        .unwrap()
        .speed_mbit_per_s = Some(500);
    let found = direction(&record).waterfall.unwrap();
    assert_eq!(
        (found.line, found.line_bps),
        (LineRate::ServerInterface, 500_000_000)
    );
    // 1448 of 1538 bytes are payload.
    assert_eq!(taken(&found, StepKind::Framing), 500_000_000 - 470_741_222);
    assert!(
        taken(&found, StepKind::CongestionWindow) > 370_000_000,
        "{found:?}"
    );
    record
        .server
        .as_mut()
        .unwrap()
        .interface
        .as_mut()
        .unwrap()
        .speed_mbit_per_s = Some(10);
    let slow = direction(&record).waterfall.unwrap();
    assert_eq!(slow.line, LineRate::MostSeen, "faster than its interface");
    assert!(balances(&slow));
}

#[test]
fn a_full_path_is_its_own_line() {
    let found = waterfall(&tcp(), &Traffic::default());
    assert_eq!(found.line, LineRate::PathSeenFull);
    let beside: i64 = found
        .steps
        .iter()
        .filter(|step| step.kind != StepKind::Framing)
        .map(|step| step.bps)
        .sum();
    assert!(beside.unsigned_abs() < found.line_bps / 20, "{found:?}");
}

#[test]
fn a_beginning_that_was_faster_gives() {
    let traffic = Traffic {
        ramp_s: 0.0,
        levels: vec![(2.0, 0.4)],
        ..Traffic::default()
    };
    let found = waterfall(&tcp(), &traffic);
    assert!(taken(&found, StepKind::Ramp) < 0, "{found:?}");
    assert!(balances(&found));
}

#[test]
fn datagrams_go_where_they_were_lost() {
    let plan = Plan {
        protocol: Protocol::Udp,
        block_bytes: DEFAULT_UDP_BLOCK,
        rate_bps: Some(BitRate(100_000_000)),
        ..tcp()
    };
    let traffic = Traffic {
        rate_bps: 100e6,
        path_lost: 300,
        socket_dropped: 9000,
        ..Traffic::default()
    };
    let found = waterfall(&plan, &traffic);
    let rate = |datagrams: u64| datagrams * DEFAULT_UDP_BLOCK.count() * 8 / 10;
    assert_eq!(found.line, LineRate::MostSeen);
    assert!(
        taken(&found, StepKind::Loss)
            .unsigned_abs()
            .abs_diff(rate(300))
            < 100,
        "{found:?}"
    );
    assert!(
        taken(&found, StepKind::ReceiverDrop)
            .unsigned_abs()
            .abs_diff(rate(9000))
            < 1000,
        "{found:?}"
    );
    assert!(balances(&found));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn line_less_steps_is_goodput_to_the_bit(
        rate in 1e4_f64..4e10,
        ramp in 0.0_f64..3.0,
        noise in 0.0_f64..0.9,
        late in 0.1_f64..4.0,
        clocks in (0.0_f64..1.0, 0.0_f64..1.0, 0.0_f64..1.0),
        windows in (1_000_u64..50_000_000, 1_000_u64..50_000_000, 1_000_u64..50_000_000),
        rtt in (50_u64..200_000, 1.0_f64..3.0),
        link in proptest::option::of(1_u64..400_000),
        streams in 1_u16..4,
        udp in any::<bool>(),
        stock in proptest::option::of(any::<bool>()),
    ) {
        let traffic = Traffic {
            seconds: 4.0,
            rate_bps: rate,
            ramp_s: ramp,
            noise,
            levels: vec![(2.0, late)],
            application: clocks.0 * 0.3,
            send_buffer: clocks.1 * 0.3,
            receive_window: clocks.2 * 0.3,
            congestion_window_bytes: windows.0,
            receive_window_bytes: windows.1,
            in_flight_bytes: windows.2,
            min_rtt_us: rtt.0,
            rtt_us: linerate_model::units::whole(rtt.0 as f64 * rtt.1),
            link_mbit_per_s: link,
            ..Traffic::default()
        };
        let plan = Plan {
            streams,
            protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
            block_bytes: if udp { DEFAULT_UDP_BLOCK } else { tcp().block_bytes },
            ..tcp()
        };
        let mut record = fixture::run(&plan, &traffic);
        for end in [record.client.as_mut().unwrap(), record.server.as_mut().unwrap()] {
            end.interface.as_mut().unwrap().kind = None;
        }
        let record = match stock {
            Some(true) => fixture::against_stock(record, Role::Client),
            Some(false) => fixture::against_stock(record, Role::Server),
            None => record,
        };
        let found = direction(&record);
        if let Ok(waterfall) = &found.waterfall {
            prop_assert!(balances(waterfall), "{:?}", waterfall);
            for step in waterfall.steps.iter().filter(|step| step.kind != StepKind::Ramp) {
                prop_assert!(step.bps >= 0, "{:?}", waterfall);
            }
            prop_assert!(waterfall.line_bps >= waterfall.goodput_bps.max(waterfall.plateau_bps));
        } else {
            prop_assert!(udp && stock == Some(false), "{:?}", found.waterfall);
        }
        if let Ok(budget) = &found.budget {
            let parts = budget.times.parts_of(1_000_000);
            prop_assert_eq!(parts.iter().sum::<u64>(), 1_000_000);
            let shares: f64 = Class::ALL.into_iter().map(|class| budget.share(class)).sum();
            prop_assert!((shares - 1.0).abs() < 1e-12);
        }
        for pair in found.bands.windows(2) {
            prop_assert!(pair[0].to_ns <= pair[1].from_ns);
            prop_assert!(pair[0].class != pair[1].class || pair[0].to_ns < pair[1].from_ns);
        }
    }
}
