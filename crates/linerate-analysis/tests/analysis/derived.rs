//! Ledger and evidence, derived from made-up runs that break one thing at a time.

use linerate_analysis::evidence::{Evidence, Place};
use linerate_analysis::ledger::Ledger;
use linerate_analysis::losses::Losses;
use linerate_model::column::Column;
use linerate_model::plan::{DEFAULT_UDP_BLOCK, Direction, Plan, Protocol};
use linerate_model::record::{Role, RunRecord, StreamRecord};
use linerate_model::series::Series;
use linerate_model::units::Nanos;
use linerate_testing::fixture::{self, Loss, Traffic};

fn plan() -> Plan {
    Plan::new("server")
}

fn sender(record: &mut RunRecord) -> &mut StreamRecord {
    &mut record.client.as_mut().unwrap().streams[0]
}

fn receiver(record: &mut RunRecord) -> &mut StreamRecord {
    &mut record.server.as_mut().unwrap().streams[0]
}

fn broken(record: &RunRecord) -> Vec<String> {
    Ledger::of(record)
        .broken()
        .map(|(_, check)| format!("{} [{} {}]", check.equation, check.left, check.right))
        .collect()
}

#[test]
fn every_kind_of_run_balances() {
    for direction in [Direction::Send, Direction::Receive, Direction::Both] {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            for streams in [1, 3] {
                let mut plan = Plan {
                    direction,
                    protocol,
                    streams,
                    ..plan()
                };
                if protocol == Protocol::Udp {
                    plan.block_bytes = DEFAULT_UDP_BLOCK;
                }
                let record = fixture::run(&plan, &Traffic::default());
                assert_eq!(
                    broken(&record),
                    Vec::<String>::new(),
                    "{direction:?} {protocol:?} {streams}"
                );
                assert!(Ledger::of(&record).balanced());
                for stock in [Role::Client, Role::Server] {
                    let record = fixture::against_stock(record.clone(), stock);
                    assert_eq!(
                        broken(&record),
                        Vec::<String>::new(),
                        "{direction:?} {protocol:?} stock {stock:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_missing_byte_breaks_the_equation_of_its_place() {
    let mut record = fixture::run(&plan(), &Traffic::default());
    receiver(&mut record).app_bytes -= 1;
    assert_eq!(broken(&record).len(), 1);
    assert!(broken(&record)[0].starts_with("bytes_received − FIN = cookie + read + unread"));
}

#[test]
fn segments_dropped_by_the_local_queue_do_not_break_the_interface_bound() {
    let mut record = fixture::run(
        &plan(),
        &Traffic {
            retransmits: 30_000,
            ..Traffic::default()
        },
    );
    let end = record.client.as_mut().unwrap();
    let acked = end.streams[0].tcp.as_ref().unwrap().bytes_acked.unwrap();
    let pair = end.interface_counters.as_mut().unwrap();
    pair.after.tx_bytes = pair.before.tx_bytes + acked + 70_000;
    assert_eq!(broken(&record), Vec::<String>::new());
}

#[test]
fn a_fin_behind_unsent_data_is_no_byte_too_many() {
    let mut record = fixture::run(&plan(), &Traffic::default());
    let stream = sender(&mut record);
    stream.drained = false;
    stream.app_bytes += 5000;
    let facts = stream.tcp.as_mut().unwrap();
    facts.state = Some(4);
    facts.notsent_bytes = Some(5001);
    assert_eq!(broken(&record), Vec::<String>::new());
    // And what the kernel sent after it was asked is not more than it held.
    receiver(&mut record).drained = false;
    receiver(&mut record).tcp.as_mut().unwrap().bytes_received = Some(sent_once(&record) + 3000);
    assert_eq!(broken(&record), Vec::<String>::new());
}

fn sent_once(record: &RunRecord) -> u64 {
    let facts = record.client.as_ref().unwrap().streams[0]
        .tcp
        .as_ref()
        .unwrap();
    facts.bytes_sent.unwrap() - facts.bytes_retrans.unwrap()
}

#[test]
fn a_closed_socket_may_or_may_not_have_counted_its_fin() {
    let mut record = fixture::run(&plan(), &Traffic::default());
    let facts = sender(&mut record).tcp.as_mut().unwrap();
    facts.state = Some(7);
    assert_eq!(broken(&record), Vec::<String>::new());
    let facts = sender(&mut record).tcp.as_mut().unwrap();
    facts.bytes_acked = facts.bytes_acked.map(|bytes| bytes - 1);
    assert_eq!(broken(&record), Vec::<String>::new());
    let facts = sender(&mut record).tcp.as_mut().unwrap();
    facts.bytes_acked = facts.bytes_acked.map(|bytes| bytes - 1);
    assert_eq!(broken(&record).len(), 1);
}

#[test]
fn a_cut_off_receiver_is_held_to_a_bound_only() {
    let mut record = fixture::run(&plan(), &Traffic::default());
    let stream = receiver(&mut record);
    stream.drained = false;
    stream.app_bytes -= 4096;
    stream.unread_bytes = None;
    assert_eq!(broken(&record), Vec::<String>::new());
}

#[test]
fn an_interface_made_anew_has_no_growth() {
    let mut record = fixture::run(&plan(), &Traffic::default());
    record
        .client
        .as_mut()
        .unwrap()
        .interface_counters
        .as_mut()
        .unwrap()
        .after
        .tx_bytes = 10;
    let ledger = Ledger::of(&record);
    assert_eq!(ledger.directions[0].interface_out_bytes, None);
    assert!(ledger.balanced());
}

#[test]
fn figures_of_a_hostile_record_do_not_overflow() {
    let mut record = fixture::run(
        &Plan {
            streams: 2,
            ..plan()
        },
        &Traffic::default(),
    );
    for end in [
        record.client.as_mut().unwrap(),
        record.server.as_mut().unwrap(),
    ] {
        for stream in &mut end.streams {
            stream.app_bytes = u64::MAX;
            stream.cookie_bytes = u64::MAX;
            stream.unread_bytes = Some(u64::MAX);
            stream.last_byte_ns = Some(Nanos(u64::MAX));
            stream.samples = Series::new(vec![u64::MAX, 5, 3]);
            stream
                .samples
                .insert(Column::app_bytes, vec![u64::MAX, 0, 7])
                .unwrap();
            stream
                .samples
                .insert(Column::busy_time_us, vec![u64::MAX, 0, 7])
                .unwrap();
        }
    }
    let _ = Evidence::of(&record);
}

#[test]
fn the_plateau_and_its_budget_stand_on_two_clocks() {
    let traffic = Traffic {
        receive_window: 0.83,
        application: 0.05,
        ramp_s: 1.0,
        ..Traffic::default()
    };
    let record = fixture::run(&plan(), &traffic);
    let evidence = Evidence::of(&record);
    let direction = &evidence.directions[0];
    assert_eq!(direction.measured_at, Place::ReceivingApplication);
    let plateau = direction.plateau.unwrap();
    assert_eq!(plateau.unsteady, None);
    assert!((plateau.estimate.mean / traffic.rate_bps - 1.0).abs() < 0.01);
    let ramp = direction.ramp_ns().unwrap();
    assert!((850_000_000..1_050_000_000).contains(&ramp), "{ramp}");
    let budget = direction.clocks.clone().unwrap();
    assert!(
        (budget.receive_window - 0.83).abs() < 0.001 && (budget.application - 0.05).abs() < 0.001
    );
    let begun = budget.span_ns[0] - fixture::CLIENT_START_NS;
    assert!((ramp..1_300_000_000).contains(&begun), "{begun}");

    // Without a clock estimate the starts are laid over each other.
    let record = RunRecord {
        clock: None,
        ..record
    };
    let without = Evidence::of(&record);
    assert_eq!(
        without.directions[0].clocks.clone().unwrap().span_ns,
        budget.span_ns
    );
}

#[test]
fn bytes_without_samples_are_not_a_rate_of_zero() {
    let mut record = fixture::run(&plan(), &Traffic::default());
    receiver(&mut record).samples = Series::default();
    let evidence = Evidence::of(&record);
    assert!(evidence.directions[0].rates_bps.is_empty());
    assert_eq!(evidence.directions[0].plateau, None);
    assert!(evidence.directions[0].whole_run_bps().unwrap() > 9e7);
}

#[test]
fn what_was_written_and_never_acknowledged_is_not_counted_as_delivered() {
    let mut record =
        fixture::against_stock(fixture::run(&plan(), &Traffic::default()), Role::Server);
    let stream = sender(&mut record);
    let written = stream.app_bytes;
    stream.drained = false;
    let facts = stream.tcp.as_mut().unwrap();
    facts.state = Some(1);
    facts.bytes_acked = Some(written - 10_000 + 37 + 1);
    let evidence = Evidence::of(&record);
    assert_eq!(evidence.directions[0].measured_at, Place::Acknowledged);
    assert_eq!(evidence.directions[0].bytes, written - 10_000);
}

#[test]
fn what_lay_unread_counts_over_the_plateau_only() {
    let mut record = fixture::run(
        &plan(),
        &Traffic {
            ramp_s: 1.0,
            ..Traffic::default()
        },
    );
    let stream = receiver(&mut record);
    let rows = stream.samples.len();
    let unread = (0..rows)
        .map(|row| if row < rows / 20 { 9_000_000 } else { 100 })
        .collect();
    stream.samples.insert(Column::unread_bytes, unread).unwrap();
    assert_eq!(
        Evidence::of(&record).directions[0].unread_bytes,
        Some(100.0)
    );
}

#[test]
fn what_is_acknowledged_takes_until_the_acknowledgement() {
    let mut record =
        fixture::against_stock(fixture::run(&plan(), &Traffic::default()), Role::Server);
    let end = record.client.as_mut().unwrap();
    let written = Nanos::from_millis(9500);
    end.streams[0].last_byte_ns = Some(end.start_ns.plus(written));
    let evidence = Evidence::of(&record);
    assert_eq!(evidence.directions[0].span_ns, 10_000_000_000);
}

#[test]
fn a_stock_senders_count_may_miss_the_write_in_which_it_was_stopped() {
    let back = Plan {
        direction: Direction::Receive,
        ..plan()
    };
    let block = back.block_bytes.count();
    let told = |missed: i64| {
        let mut record =
            fixture::against_stock(fixture::run(&back, &Traffic::default()), Role::Server);
        let bytes = &mut record.peer_results.as_mut().unwrap().streams[0].bytes;
        *bytes = bytes.checked_add_signed(-missed).unwrap();
        Ledger::of(&record).balanced()
    };
    let block = i64::try_from(block).unwrap();
    assert!(told(0) && told(1) && told(block));
    assert!(!told(block + 1), "more than one write is a fault");
    assert!(!told(-1), "drained, and still less than was written");
}

/// Three streams that lose so many segments each, twice, every stream so much later than the one before, s.
fn three_streams(segments: u64, losses_apart_s: f64) -> RunRecord {
    let mut plan = plan();
    plan.streams = 3;
    let loss = |at_s: f64| Loss {
        at_s,
        segments,
        rtt_us: 12_000,
        window_packets: 100,
    };
    let traffic = Traffic {
        losses: vec![loss(2.0), loss(6.0)],
        losses_apart_s,
        noise: 0.0,
        ..Traffic::default()
    };
    fixture::run(&plan, &traffic)
}

#[test]
fn losses_of_several_streams_add_up_to_those_of_their_sender() {
    let record = three_streams(5, 0.0);
    let streams: Vec<&StreamRecord> = record.client.as_ref().unwrap().streams.iter().collect();
    let (one, all) = (
        Losses::of(streams[0]).unwrap(),
        Losses::pooled(&streams).unwrap(),
    );
    assert_eq!((one.episodes.len(), all.episodes.len()), (2, 2));
    for (one, all) in one.episodes.iter().zip(&all.episodes) {
        assert_eq!(all.segments, 3 * one.segments);
        assert_eq!(all.window_packets, 3 * one.window_packets);
        assert!((all.delivered_from / one.delivered_from - 3.0).abs() < 0.01);
        assert!((all.rtt_us - one.rtt_us).abs() < 1.0);
    }
    assert!((all.level_bps / one.level_bps - 3.0).abs() < 0.01);
    assert_eq!(Losses::pooled(&[]), None);
    let clean = fixture::run(
        &record.plan,
        &Traffic {
            retransmits: 0,
            ..Traffic::default()
        },
    );
    let streams: Vec<&StreamRecord> = clean.client.as_ref().unwrap().streams.iter().collect();
    assert_eq!(Losses::pooled(&streams), None);
}

#[test]
fn samples_far_apart_show_no_bursts() {
    let record = three_streams(5, 0.0);
    let stream = &record.client.as_ref().unwrap().streams[0];
    assert!(Losses::of(stream).unwrap().peak_bps > 0.0);
    // 10 ms apart as sampled, then 500 ms, which is more than 4 round trips of 10 ms.
    let mut sparse = stream.clone();
    sparse.samples = stream.samples.thinned(50);
    let losses = Losses::of(&sparse).unwrap();
    assert_eq!((losses.peak_bps, losses.burst_bps), (0.0, 0.0));
    assert!(losses.level_bps > 0.0);
}

#[test]
fn losses_of_several_streams_are_one_where_they_begin_together() {
    let common = |apart_s: f64| {
        let record = three_streams(1, apart_s);
        let streams: Vec<&StreamRecord> = record.client.as_ref().unwrap().streams.iter().collect();
        let losses = Losses::in_common(&streams).unwrap();
        let told = losses.episodes.iter();
        told.map(|one| (one.segments, one.window_packets))
            .collect::<Vec<_>>()
    };
    // In the same round trip three streams lose together; 40 ms apart, within one recovery, each does alone.
    assert_eq!(common(0.0), [(3, 300); 2]);
    let alone: Vec<u64> = common(0.04).iter().map(|one| one.0).collect();
    assert_eq!(alone, [1; 6]);
    // The others' windows count.
    let others = Traffic::default().congestion_window_bytes / 1448;
    assert_eq!(common(1.0)[0], (1, 100 + 2 * others));
}

/// A window that grows by half a segment each 10 ms over a round trip of 40 ms, and falls to half a round trip after
/// `loses` says so of the window and the packets sent at it.
fn sawtooth(mut loses: impl FnMut(f64, f64) -> bool) -> Losses {
    let traffic = Traffic {
        seconds: 60.0,
        rtt_us: 40_000,
        min_rtt_us: 40_000,
        retransmits: 0,
        ..Traffic::default()
    };
    let mut record = fixture::run(&plan(), &traffic);
    let samples = &mut sender(&mut record).samples;
    let times = samples.at_ns().to_vec();
    let (mut window, mut acked, mut repeats, mut due) = (40.0_f64, 0.0_f64, 0_u64, None);
    let (mut windows, mut bytes, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for at in times {
        if due.is_some_and(|due| at >= due) {
            (window, repeats, due) = ((window / 2.0).max(2.0), repeats + 1, None);
        } else if due.is_none() && loses(window, window / 4.0) {
            due = Some(at + 40_000_000);
        }
        windows.push(linerate_model::units::whole(window));
        bytes.push(linerate_model::units::whole(acked));
        repeated.push(repeats);
        acked += window / 4.0 * 1448.0;
        window += 0.5;
    }
    samples.insert(Column::snd_cwnd_packets, windows).unwrap();
    samples.insert(Column::bytes_acked, bytes).unwrap();
    samples
        .insert(Column::total_retrans_packets, repeated)
        .unwrap();
    Losses::of(sender(&mut record)).unwrap()
}

#[test]
fn windows_at_losses_rank_as_any_by_chance_and_high_where_they_are_the_reason() {
    // Each packet with the same odds, by a generator (Numerical Recipes' constants) with other seeds.
    let by_chance = |one_in: f64, seed: u32| {
        let mut state = seed;
        sawtooth(|_, packets| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1_u32 << 24) < packets / one_in
        })
    };
    // About 50 losses a run, and about 10.
    for one_in in [800.0, 5000.0] {
        let heights: Vec<f64> = (0..300)
            .filter_map(|seed| by_chance(one_in, seed * 7919 + 1).window_height)
            .collect();
        let number = heights.len() as f64;
        let mean = heights.iter().sum::<f64>() / number;
        let square = heights.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / number;
        assert!(mean.abs() < 0.2, "1 in {one_in}: {mean}");
        assert!((0.8..1.2).contains(&square.sqrt()), "{}", square.sqrt());
        let high = heights.iter().filter(|height| **height > 2.33).count();
        assert!(high as f64 <= 0.02 * number, "{high} of {number}");
    }
    // Always at 100 segments.
    let regular = sawtooth(|window, _| window >= 100.0);
    assert!(regular.later().len() > 20, "{}", regular.later().len());
    assert!(regular.window_height.unwrap() > 5.0, "{regular:?}");
    // One loss has none after it.
    let mut over = false;
    let single = sawtooth(|window, _| {
        let now = !over && window >= 100.0;
        over |= now;
        now
    });
    assert_eq!(single.window_height, None);
}
