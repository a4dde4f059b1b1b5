//! Connections that were only watched, from one end: the same causes, without what the other end would tell.

use linerate_analysis::evidence::Evidence;
use linerate_model::finding::Finding;
use linerate_model::observation::Observation;
use linerate_model::record::Role;
use linerate_model::series::Series;
use linerate_testing::fixture::{self, Loss, Traffic};

use super::{quiet, tcp, window_limited};

/// What a watcher at one end of a run saw of its only stream.
fn watched(traffic: &Traffic, at: Role) -> Observation {
    fixture::watched(&fixture::run(&tcp(), traffic), at, 0).unwrap()
}

fn explain(seen: &Observation) -> Vec<Finding> {
    let run = seen.run_of(&seen.connections[0]).unwrap();
    linerate_explain::explain(&Evidence::of(&run))
}

fn ids(seen: &Observation) -> Vec<String> {
    explain(seen)
        .into_iter()
        .map(|finding| finding.id)
        .collect()
}

fn slow_program() -> Traffic {
    Traffic {
        application: 0.7,
        rate_bps: 200e6,
        ..quiet()
    }
}

fn small_send_buffer() -> Traffic {
    Traffic {
        rate_bps: 80e6,
        send_buffer: 0.6,
        send_buffer_bytes: 425_984,
        in_flight_bytes: 400_000,
        ..quiet()
    }
}

#[test]
fn the_sender_s_host_names_what_limits_as_a_test_does() {
    for (traffic, id) in [
        (Traffic::default(), "path-full"),
        (window_limited(), "receive-window"),
        (small_send_buffer(), "send-buffer"),
        (slow_program(), "sender-application"),
    ] {
        let run = fixture::run(&tcp(), &traffic);
        let tested = linerate_explain::explain(&Evidence::of(&run));
        assert_eq!(tested[0].id, id, "the test itself");
        assert_eq!(ids(&watched(&traffic, Role::Client)), [id]);
        // Half of it missed, the rest says the same.
        let late = fixture::watched(&run, Role::Client, 400).unwrap();
        assert_eq!(ids(&late), [id], "from its middle on");
    }
}

#[test]
fn words_are_those_of_this_host_and_the_peer() {
    let finding = explain(&watched(&window_limited(), Role::Client)).remove(0);
    assert_eq!(
        finding.sentence,
        "The receive window of the peer (192.0.2.2) limited the rate 100 % of the time (median 212 KiB, RTT 12.0 ms: \
         at most 145 Mbit/s); it is not known whether the peer (192.0.2.2) read too slowly: its kernel was not \
         observed; run `linerate observe` there"
    );
    assert_eq!(
        finding.next.as_deref(),
        Some("linerate test 192.0.2.2 -P 4")
    );
    let places: Vec<&str> = finding
        .figures
        .iter()
        .map(|figure| figure.place.as_str())
        .collect();
    assert!(
        places.iter().all(|place| *place == "this host's kernel"),
        "{places:?}"
    );
    let slow = explain(&watched(&slow_program(), Role::Client)).remove(0);
    assert!(
        slow.sentence
            .starts_with("This host's application had written nothing"),
        "{}",
        slow.sentence
    );
    assert_eq!(slow.next.as_deref(), Some("linerate test 192.0.2.2"));
}

#[test]
fn loss_by_chance_is_seen_while_it_is_watched() {
    let loss = |at_s, segments, window_packets| Loss {
        at_s,
        segments,
        rtt_us: 40_200,
        window_packets,
    };
    let traffic = Traffic {
        rate_bps: 25e6,
        levels: vec![(0.0, 3.0), (1.0, 1.0)],
        noise: 0.0,
        losses: vec![
            loss(0.8, 2, 900),
            loss(1.6, 1, 300),
            loss(3.1, 1, 120),
            loss(4.0, 1, 210),
            loss(7.2, 2, 90),
            loss(9.1, 1, 180),
        ],
        congestion_window_bytes: 310 * 1448,
        in_flight_bytes: 300 * 1448,
        ..quiet()
    };
    let seen = watched(&traffic, Role::Client);
    assert_eq!(ids(&seen)[0], "random-loss");
    // What was repeated before the first sample is none of its figures.
    let run = fixture::run(&tcp(), &traffic);
    let late = fixture::watched(&run, Role::Client, 500).unwrap();
    let late = late.run_of(&late.connections[0]).unwrap();
    let path = Evidence::of(&late).directions[0].path.unwrap();
    assert_eq!(path.retransmits, Some(3));
}

#[test]
fn the_receiver_s_host_tells_of_its_own_reader_alone() {
    let unread = Traffic {
        unread_bytes: 3_000_000,
        ..window_limited()
    };
    let seen = watched(&unread, Role::Server);
    let findings = explain(&seen);
    assert_eq!(findings[0].id, "receiver-application");
    assert!(
        findings[0]
            .sentence
            .starts_with("This host's application read too slowly")
    );
    let seen = watched(&window_limited(), Role::Server);
    let findings = explain(&seen);
    assert_eq!(findings[0].id, "cannot-tell");
    assert!(
        findings[0].sentence.contains("was not observed"),
        "{}",
        findings[0].sentence
    );
    assert_eq!(findings[0].next, None);
}

#[test]
fn a_program_that_rests_is_no_stall_and_one_that_waits_is() {
    let mut seen = watched(&slow_program(), Role::Client);
    let samples = &seen.connections[0].samples;
    let with_gap = |busy: bool| {
        let at = samples.at_ns();
        let middle = at.len() / 2;
        let gap = 3_000_000_000;
        // Three seconds in which nothing changed but, if it waits, the clock of what is outstanding; then the sample
        // before it goes on, which is kept.
        let mut rows: Vec<(u64, usize, bool)> = Vec::new();
        for (row, at) in at.iter().enumerate() {
            if row == middle {
                rows.push((at + gap - 10_000_000, middle - 1, true));
            }
            let later = row >= middle;
            rows.push((at + if later { gap } else { 0 }, row, later));
        }
        let mut series = Series::new(rows.iter().map(|(at, _, _)| *at).collect());
        for name in samples.names() {
            let waits = u64::from(busy && name == "busy_time_us") * 3_000_000;
            let column = samples.named(name).unwrap();
            let value =
                |(_, row, later): &(u64, usize, bool)| column[*row] + u64::from(*later) * waits;
            series
                .insert(name, rows.iter().map(value).collect())
                .unwrap();
        }
        series
    };
    let (rests, waits) = (with_gap(false), with_gap(true));
    seen.end_ns = seen
        .end_ns
        .plus(linerate_model::units::Nanos(3_000_000_000));
    seen.connections[0].samples = rests;
    assert!(
        !ids(&seen).contains(&"stall".to_owned()),
        "{:?}",
        ids(&seen)
    );
    seen.connections[0].samples = waits;
    assert_eq!(ids(&seen)[0], "stall");
}

#[test]
fn nothing_that_moved_is_nothing_to_explain() {
    let mut seen = watched(&quiet(), Role::Client);
    let samples = &seen.connections[0].samples;
    let mut still = Series::new(samples.at_ns().to_vec());
    for name in samples.names() {
        let first = samples.named(name).unwrap()[0];
        still.insert(name, vec![first; samples.len()]).unwrap();
    }
    seen.connections[0].samples = still;
    assert!(seen.run_of(&seen.connections[0]).is_none());
    seen.connections[0].samples = Series::default();
    assert!(seen.run_of(&seen.connections[0]).is_none());
}

#[test]
fn the_whole_connection_is_booked_however_late_it_was_seen() {
    let run = fixture::run(&tcp(), &Traffic::default());
    let whole = run.client.as_ref().unwrap().streams[0].tcp.clone().unwrap();
    let late = fixture::watched(&run, Role::Client, 500).unwrap();
    let late = late.run_of(&late.connections[0]).unwrap();
    let evidence = Evidence::of(&late);
    let entry = &evidence.ledger.directions[0].total;
    assert_eq!(entry.bytes_acked, whole.bytes_acked);
    assert_eq!((entry.written, entry.read), (None, None));
    assert!(evidence.ledger.balanced(), "{:?}", evidence.ledger);
    // The rate is of what was watched alone.
    let direction = &evidence.directions[0];
    assert!(direction.bytes < whole.bytes_acked.unwrap() * 6 / 10);
    assert_eq!(evidence.ledger.directions[0].unknown.len(), 1);
}
