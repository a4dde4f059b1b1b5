//! Each rule against made-up runs: the case it is for, the near miss, and the missing figure.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::disallowed_methods,
    reason = "the pages of the findings are files"
)]

mod losses;
mod observed;
mod pages;
mod path;
mod provisioned;
mod shape;
mod transfer;
mod would_pass;

use linerate_analysis::evidence::Evidence;
use linerate_model::column::Column;
use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::{DEFAULT_UDP_BLOCK, DEFAULT_UDP_RATE, Direction, Plan, Protocol};
use linerate_model::record::{EndRecord, Outcome, Role, RunRecord};
use linerate_model::remedy::{BufferSizes, Fix};
use linerate_model::series::Series;
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_testing::fixture::{self, Traffic};

fn explain(record: &RunRecord) -> Vec<Finding> {
    let findings = linerate_explain::explain(&Evidence::of(record));
    for finding in &findings {
        let known = linerate_explain::rule_ids().any(|id| id == finding.id);
        assert!(known, "{} is not among the ids of the rules", finding.id);
    }
    findings
}

fn tcp() -> Plan {
    Plan::new("server")
}

fn udp(rate: u64) -> Plan {
    Plan {
        protocol: Protocol::Udp,
        block_bytes: DEFAULT_UDP_BLOCK,
        rate_bps: (rate > 0).then_some(BitRate(rate)),
        ..tcp()
    }
}

fn ids(record: &RunRecord) -> Vec<String> {
    explain(record)
        .into_iter()
        .map(|finding| finding.id)
        .collect()
}

fn verdict(plan: &Plan, traffic: &Traffic) -> Finding {
    explain(&fixture::run(plan, traffic)).remove(0)
}

/// A 1 Gbit/s-or-more path of 12 ms, held by a small window of the receiver.
fn window_limited() -> Traffic {
    Traffic::window_limited()
}

/// A path of 40 ms without queue and without loss, 1 Gbit/s reached.
fn quiet() -> Traffic {
    Traffic {
        rate_bps: 900e6,
        rtt_us: 40_300,
        min_rtt_us: 40_000,
        retransmits: 0,
        receive_window_bytes: 20_000_000,
        congestion_window_bytes: 4_600_000,
        in_flight_bytes: 4_550_000,
        send_buffer_bytes: 40_000_000,
        ..Traffic::default()
    }
}

fn one_host() -> Traffic {
    Traffic {
        rate_bps: 40e9,
        rtt_us: 80,
        min_rtt_us: 20,
        retransmits: 0,
        in_flight_bytes: 400_000,
        one_host: true,
        ..Traffic::default()
    }
}

/// Of SCTP only the applications' bytes, the hosts' CPUs and the interfaces are known.
#[test]
fn of_sctp_nothing_is_said_that_only_tcps_counters_show() {
    let sctp = |rate: Option<u64>| Plan {
        protocol: Protocol::Sctp,
        block_bytes: linerate_model::plan::DEFAULT_SCTP_BLOCK,
        rate_bps: rate.map(BitRate),
        ..tcp()
    };
    let busy = Traffic {
        receiver_cpu: 0.99,
        ..quiet()
    };
    for (plan, traffic, verdict) in [
        (sctp(None), quiet(), "cannot-tell"),
        (sctp(None), window_limited(), "cannot-tell"),
        (sctp(None), busy, "receiver-cpu"),
        (sctp(Some(800_000_000)), quiet(), "rate-capped"),
    ] {
        let record = fixture::run(&plan, &traffic);
        let findings = explain(&record);
        assert_eq!(findings[0].id, verdict, "{findings:#?}");
        for finding in &findings {
            for word in [
                "TCP",
                "congestion window",
                "retransmi",
                "receive window",
                "RTT",
                "segment",
            ] {
                assert!(!finding.sentence.contains(word), "{finding:#?}");
            }
        }
        let evidence = Evidence::of(&record);
        let direction = &evidence.directions[0];
        assert!(direction.path.is_none() && direction.unread_bytes.is_none());
        assert!(direction.ledger.balanced(), "{:#?}", direction.ledger);
        assert_eq!(
            direction.ledger.checks.len(),
            1,
            "written = read, and no kernel's"
        );
    }
}

#[test]
fn a_healthy_path_is_full_and_nothing_alarms() {
    for direction in [Direction::Send, Direction::Receive, Direction::Both] {
        for streams in [1, 8] {
            let plan = Plan {
                direction,
                streams,
                ..tcp()
            };
            let findings = explain(&fixture::run(&plan, &Traffic::default()));
            assert_eq!(
                findings.len(),
                plan.total_streams() as usize / streams as usize,
                "{findings:#?}"
            );
            assert!(
                findings
                    .iter()
                    .all(|finding| finding.id == "path-full"
                        && finding.severity == Severity::Healthy)
            );
        }
    }
    let sentence = verdict(&tcp(), &Traffic::default()).sentence;
    assert_eq!(
        sentence,
        "The path is full at 95.4 Mbit/s: it has a standing queue of 30.9 ms (RTT 41.0 ms, minimum 10.1 ms)"
    );
}

#[test]
fn a_small_receive_window_is_named_with_its_ceiling_and_the_next_command() {
    let finding = verdict(&tcp(), &window_limited());
    assert_eq!(
        finding.sentence,
        "The receive window of the server (beta) limited the rate 100 % of the time (median 212 KiB, RTT 12.0 ms: at \
         most 145 Mbit/s)"
    );
    assert_eq!(
        finding.share_of_time.map(|share| (share * 100.0).round()),
        Some(100.0)
    );
    // Both hosts refuse -w 512K (rmem_max), so streams are the counter-test.
    assert_eq!(finding.next.as_deref(), Some("linerate test server -P 4"));

    let mut record = fixture::run(&tcp(), &window_limited());
    record.server.as_mut().unwrap().host.rmem_max = Some(1 << 26);
    record.client.as_mut().unwrap().host.wmem_max = None;
    assert_eq!(
        explain(&record)[0].next.as_deref(),
        Some("linerate test server -w 512K")
    );
    record
        .server
        .as_mut()
        .unwrap()
        .interface
        .as_mut()
        .unwrap()
        .kind = None;
    record
        .server
        .as_mut()
        .unwrap()
        .interface
        .as_mut()
        .unwrap()
        .speed_mbit_per_s = Some(10_000);
    assert_eq!(
        explain(&record)[0].next.as_deref(),
        Some("linerate test server -w 32M")
    );
}

#[test]
fn a_window_that_was_asked_for_is_said_to_be_the_limit() {
    let plan = Plan {
        window_bytes: Some(Bytes(262_144)),
        direction: Direction::Receive,
        ..tcp()
    };
    let finding = verdict(&plan, &window_limited());
    assert_eq!(finding.id, "receive-window");
    assert!(
        finding
            .sentence
            .starts_with("The receive window of the client (alpha)"),
        "{}",
        finding.sentence
    );
    assert!(
        finding
            .sentence
            .ends_with("; -w 256K sets this limit: omit it"),
        "{}",
        finding.sentence
    );
    assert_eq!(finding.remedy.as_ref().unwrap().host, Role::Client);
    assert_eq!(finding.next.as_deref(), Some("linerate test server -R"));
}

#[test]
fn autotuning_at_its_bound_names_the_sysctl() {
    let traffic = Traffic {
        rate_bps: 620e6,
        receive_window: 0.95,
        receive_window_bytes: 3_100_000,
        in_flight_bytes: 3_090_000,
        rtt_us: 40_000,
        min_rtt_us: 39_900,
        congestion_window_bytes: 9_000_000,
        ..Traffic::default()
    };
    let finding = verdict(&tcp(), &traffic);
    assert!(
        finding
            .sentence
            .ends_with("autotuning has reached the tcp_rmem maximum"),
        "{}",
        finding.sentence
    );
    let remedy = finding.remedy.unwrap();
    assert_eq!(
        remedy.fix,
        Fix::ReceiveBuffer(BufferSizes {
            first: Some([4096, 131_072]),
            most: 16_777_216,
        })
    );
}

#[test]
fn behind_a_standing_queue_the_window_is_not_the_limit() {
    let traffic = Traffic {
        receive_window: 0.9,
        receive_window_bytes: 490_000,
        rtt_us: 41_000,
        min_rtt_us: 10_100,
        ..Traffic::default()
    };
    assert_eq!(ids(&fixture::run(&tcp(), &traffic)), ["path-full"]);
    // A window of a few segments meets delayed ACKs, which are no queue.
    let tiny = Traffic {
        receive_window_bytes: 8000,
        in_flight_bytes: 7000,
        rate_bps: 2e6,
        ..traffic
    };
    assert_eq!(verdict(&tcp(), &tiny).id, "receive-window");
}

#[test]
fn the_windows_autotuning_lag_is_a_near_miss() {
    let traffic = Traffic {
        receive_window: 0.19,
        ..quiet()
    };
    assert_eq!(ids(&fixture::run(&tcp(), &traffic)), ["cannot-tell"]);
    let noted = explain(&fixture::run(
        &tcp(),
        &Traffic {
            receive_window: 0.3,
            ..quiet()
        },
    ));
    let note = noted
        .iter()
        .find(|finding| finding.id == "receive-window")
        .unwrap();
    assert_eq!(note.severity, Severity::Note);
    assert_eq!(noted[0].id, "cannot-tell");
}

#[test]
fn a_stock_receiver_leaves_its_application_in_the_dark() {
    let record = fixture::against_stock(fixture::run(&tcp(), &window_limited()), Role::Server);
    let finding = &explain(&record)[0];
    assert_eq!(finding.id, "receive-window");
    assert!(
        finding
            .sentence
            .contains("a stock iperf3 does not report it"),
        "{}",
        finding.sentence
    );
}

#[test]
fn a_slow_reader_is_told_from_a_small_window() {
    let traffic = Traffic {
        unread_bytes: 2_900_000,
        receive_window_bytes: 40_000,
        ..window_limited()
    };
    let finding = verdict(&tcp(), &traffic);
    assert_eq!(finding.id, "receiver-application");
    assert_eq!(
        finding.sentence,
        "The server (beta)'s application read too slowly: 2.77 MiB were unread in its socket (median), so its \
         receive window limited the sender 100 % of the time"
    );
    // It reads large pieces now and then: half of the buffer is free when it is looked at.
    let pieces = Traffic {
        unread_bytes: 200_000,
        receive_window_bytes: 290_000,
        ..traffic.clone()
    };
    assert_eq!(verdict(&tcp(), &pieces).id, "receiver-application");
    let near = Traffic {
        unread_bytes: 100_000,
        receive_window_bytes: 217_088,
        ..window_limited()
    };
    assert_eq!(verdict(&tcp(), &near).id, "receive-window");
    // The receiver alone shows it too, in front of a stock sender.
    let plan = Plan {
        direction: Direction::Receive,
        ..tcp()
    };
    let record = fixture::against_stock(fixture::run(&plan, &traffic), Role::Server);
    assert_eq!(explain(&record)[0].id, "receiver-application");
}

#[test]
fn a_reader_that_leaves_data_while_its_thread_idles_is_the_limit_whatever_round_trips_show() {
    // It reads 64 KiB every 93 ms; what nobody reads is acknowledged late, which looks like a queue (as measured).
    let traffic = Traffic {
        unread_bytes: 33_000,
        receive_window_bytes: 60_000,
        in_flight_bytes: 28_000,
        congestion_window_bytes: 30_000,
        receive_window: 0.05,
        rate_bps: 5.4e6,
        rtt_us: 29_000,
        min_rtt_us: 11_900,
        ..Traffic::default()
    };
    let first = |computes: u64, waits: u64, unread_bytes: u64| {
        let traffic = Traffic {
            unread_bytes,
            ..traffic.clone()
        };
        let mut record = fixture::run(&tcp(), &traffic);
        thread_times(record.server.as_mut().unwrap(), computes, waits);
        explain(&record).remove(0)
    };
    let finding = first(1, 10, traffic.unread_bytes);
    assert_eq!(finding.id, "receiver-application");
    assert!(
        finding
            .sentence
            .contains("for at least 89 % of the time its thread was idle"),
        "{}",
        finding.sentence
    );
    // A thread that computes or waits for a CPU most of the time could not have read it …
    assert_eq!(first(30, 30, traffic.unread_bytes).id, "path-full");
    // … and two segments may have come just now.
    assert_eq!(first(1, 10, 2 * 1448).id, "path-full");
}

#[test]
fn a_send_buffer_is_found_by_its_clock_and_by_the_bytes_in_flight() {
    let by_clock = Traffic {
        send_buffer: 0.7,
        send_buffer_bytes: 200_000,
        in_flight_bytes: 190_000,
        rate_bps: 38e6,
        ..quiet()
    };
    let finding = verdict(&tcp(), &by_clock);
    assert_eq!(finding.id, "send-buffer");
    assert!(
        finding
            .sentence
            .starts_with("The client (alpha)'s send buffer limited the rate 70 % of the time"),
        "{}",
        finding.sentence
    );

    // The clock says 4 %; in flight stands at the buffer, far below congestion window and receive window.
    let standing = Traffic {
        send_buffer: 0.04,
        send_buffer_bytes: 1_048_576,
        in_flight_bytes: 900_000,
        notsent_bytes: 0,
        rate_bps: 180e6,
        congestion_window_bytes: 5_000_000,
        ..quiet()
    };
    let finding = verdict(&tcp(), &standing);
    assert_eq!(finding.id, "send-buffer");
    assert_eq!(
        finding.share_of_time.map(|share| (share * 100.0).round()),
        Some(100.0)
    );
    assert_ne!(
        verdict(
            &tcp(),
            &Traffic {
                notsent_bytes: 800_000,
                ..standing.clone()
            }
        )
        .id,
        "send-buffer"
    );
    assert_ne!(
        verdict(
            &tcp(),
            &Traffic {
                congestion_window_bytes: 950_000,
                ..standing
            }
        )
        .id,
        "send-buffer"
    );
}

#[test]
fn a_sender_with_nothing_to_send_is_told_from_one_that_computes() {
    let idle = Traffic {
        application: 0.6,
        sender_cpu: 0.2,
        ..quiet()
    };
    let finding = verdict(&tcp(), &idle);
    assert_eq!(finding.id, "sender-application");
    assert_eq!(
        finding.sentence,
        "The client (alpha)'s application had written nothing to send 60 % of the time; its threads were on the \
         CPU only 20 % of the time, so something else delayed them"
    );
    let busy = Traffic {
        sender_cpu: 0.98,
        ..idle
    };
    assert_eq!(verdict(&tcp(), &busy).id, "sender-cpu");
    assert_eq!(verdict(&tcp(), &busy).severity, Severity::Limit);
    assert_eq!(
        verdict(
            &tcp(),
            &Traffic {
                receiver_cpu: 0.99,
                ..quiet()
            }
        )
        .id,
        "receiver-cpu"
    );
    // A queue between two hosts is the path's, whatever the threads do.
    assert_eq!(
        verdict(
            &tcp(),
            &Traffic {
                sender_cpu: 0.99,
                ..Traffic::default()
            }
        )
        .id,
        "path-full"
    );
}

#[test]
fn one_host_is_never_called_a_network() {
    for (traffic, id) in [
        (
            Traffic {
                sender_cpu: 0.99,
                ..one_host()
            },
            "sender-cpu",
        ),
        (
            Traffic {
                receiver_cpu: 0.97,
                receive_window: 0.6,
                ..one_host()
            },
            "receiver-cpu",
        ),
        (one_host(), "path-full"),
        (
            Traffic {
                receive_window: 0.7,
                ..one_host()
            },
            "path-full",
        ),
        (
            Traffic {
                send_buffer: 0.7,
                ..one_host()
            },
            "path-full",
        ),
    ] {
        let findings = explain(&fixture::run(&tcp(), &traffic));
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(
            (findings[0].id.as_str(), findings[0].severity),
            (id, Severity::Healthy)
        );
        assert!(findings[0].sentence.contains("no network was measured"));
    }
    // A window that really is small is still named, also where the rest of the time is the larger part
    // (-w 8K between two namespaces, as measured).
    let small = Traffic {
        receive_window: 0.39,
        application: 0.13,
        receive_window_bytes: 12_288,
        in_flight_bytes: 13_032,
        unread_bytes: 12_288,
        rate_bps: 2.57e9,
        ..one_host()
    };
    assert_eq!(verdict(&tcp(), &small).id, "receive-window");
}

#[test]
fn segments_that_arrived_twice_were_not_lost() {
    let overtaken = Traffic {
        retransmits: 400,
        received_twice: 372,
        overtaken: 90,
        rate_bps: 60e6,
        ..quiet()
    };
    let finding = verdict(&tcp(), &overtaken);
    assert_eq!(finding.id, "reordering");
    assert_eq!(
        finding.sentence,
        "Reordering limited the rate 100 % of the time, because the sender took it for loss: 400 of 51,944 segments \
         were retransmitted (0.77 %), and the receiver reported 372 of those as duplicates (DSACK); packets of one \
         stream take several paths, for example through a per-packet load balancer, bonded links or several queues"
    );
    assert_eq!(
        finding.next.as_deref(),
        Some("linerate test server -u -b 60M")
    );
    // Some loss is always repaired twice: it stays loss, and its sentence says how much was needless.
    let lost = Traffic {
        received_twice: 40,
        ..overtaken.clone()
    };
    let finding = verdict(&tcp(), &lost);
    assert_eq!(finding.id, "network-loss");
    assert!(
        finding.sentence.contains(
            "400 of 51,944 segments were retransmitted, 40 of them duplicates (DSACK) (0.77 %"
        ),
        "{}",
        finding.sentence
    );
    // So few at so short a round trip hold nobody down.
    let few = Traffic {
        retransmits: 14,
        received_twice: 14,
        rate_bps: 950e6,
        rtt_us: 83,
        min_rtt_us: 40,
        seconds: 1.0,
        ..quiet()
    };
    assert!(!ids(&fixture::run(&tcp(), &few)).contains(&"reordering".to_owned()));
    let slow = Traffic {
        rate_bps: 950e6,
        retransmits: 1400,
        received_twice: 1400,
        overtaken: 300,
        ..few
    };
    assert!(!ids(&fixture::run(&tcp(), &slow)).contains(&"network-loss".to_owned()));
    assert_eq!(verdict(&tcp(), &slow).id, "reordering");
    // A path that duplicates makes the receiver report as much, and more than was sent again shows it; where
    // nothing was seen to overtake, nothing did.
    for (received_twice, seen) in [(500, 90), (372, 0)] {
        let duplicating = Traffic {
            received_twice,
            overtaken: seen,
            ..overtaken.clone()
        };
        assert_eq!(verdict(&tcp(), &duplicating).id, "network-loss");
    }
    // A rate far beyond what a congestion control that heeds loss can reach was not held by it.
    let fast = Traffic {
        retransmits: 23_000,
        rate_bps: 900e6,
        ..quiet()
    };
    assert!(!ids(&fixture::run(&tcp(), &fast)).contains(&"network-loss".to_owned()));
    // A standing queue explains what was sent again before any of this.
    let queue = Traffic {
        received_twice: 21,
        overtaken: 5,
        ..Traffic::default()
    };
    assert_eq!(verdict(&tcp(), &queue).id, "path-full");
}

#[test]
fn loss_without_a_queue_is_not_a_full_path() {
    let traffic = Traffic {
        retransmits: 400,
        rate_bps: 60e6,
        ..quiet()
    };
    let finding = verdict(&tcp(), &traffic);
    assert_eq!(finding.id, "network-loss");
    assert_eq!(
        finding.sentence,
        "Loss without a queue limited the rate 100 % of the time: 400 of 51,944 segments were retransmitted \
         (0.77 %; RTT 40.3 ms, minimum 40.0 ms): random loss, a shallow queue or a policer"
    );
    assert_eq!(finding.next.as_deref(), Some("linerate test server -P 4"));
    assert_eq!(
        verdict(
            &tcp(),
            &Traffic {
                retransmits: 2,
                ..traffic
            }
        )
        .id,
        "cannot-tell"
    );
}

#[test]
fn a_link_at_its_speed_is_full() {
    let mut record = fixture::run(
        &tcp(),
        &Traffic {
            rate_bps: 941e6,
            link_mbit_per_s: Some(1000),
            ..quiet()
        },
    );
    for end in [
        record.client.as_mut().unwrap(),
        record.server.as_mut().unwrap(),
    ] {
        end.interface.as_mut().unwrap().kind = None;
    }
    assert_eq!(
        explain(&record)[0].sentence,
        "The link is full: 941 Mbit/s of payload on an interface of 1.00 Gbit/s"
    );
    // The speed of a veth is made up.
    record
        .client
        .as_mut()
        .unwrap()
        .interface
        .as_mut()
        .unwrap()
        .kind = Some("veth".into());
    record
        .server
        .as_mut()
        .unwrap()
        .interface
        .as_mut()
        .unwrap()
        .kind = Some("veth".into());
    assert_eq!(explain(&record)[0].id, "cannot-tell");
}

#[test]
fn bbr_fills_a_path_without_a_queue() {
    let plan = Plan {
        congestion: Some("bbr".into()),
        ..tcp()
    };
    assert_eq!(verdict(&plan, &quiet()).id, "path-full");
}

#[test]
fn a_rate_that_was_asked_for_is_no_limit() {
    let plan = Plan {
        rate_bps: Some(BitRate(50_000_000)),
        ..tcp()
    };
    let traffic = Traffic {
        rate_bps: 50e6,
        application: 0.8,
        ..Traffic::default()
    };
    let findings = explain(&fixture::run(&plan, &traffic));
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id, "rate-capped");
    assert_eq!(findings[0].next.as_deref(), Some("linerate test server"));
    let short = Traffic {
        rate_bps: 47e6,
        ..traffic
    };
    assert_eq!(verdict(&plan, &short).id, "sender-application");
}

#[test]
fn the_default_rate_of_udp_is_said_as_such() {
    let plan = Plan {
        rate_is_default: true,
        ..udp(DEFAULT_UDP_RATE.0)
    };
    let findings = explain(&fixture::run(
        &plan,
        &Traffic {
            rate_bps: 1e6,
            ..Traffic::default()
        },
    ));
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id, "rate-capped");
    assert!(
        findings[0]
            .sentence
            .ends_with("use -b RATE, or -b 0 for unlimited")
    );
    assert_eq!(
        findings[0].next.as_deref(),
        Some("linerate test server -u -b 0")
    );
}

#[test]
fn datagrams_dropped_in_the_socket_are_never_put_on_the_path() {
    let traffic = Traffic {
        rate_bps: 100e6,
        socket_dropped: 9000,
        ..Traffic::default()
    };
    let findings = explain(&fixture::run(&udp(100_000_000), &traffic));
    assert_eq!(findings[0].id, "udp-receiver-drop");
    assert!(
        findings[0]
            .sentence
            .contains("dropped in the receiver's socket")
    );
    assert!(findings.iter().all(|finding| finding.id != "udp-path-loss"));
    assert!(matches!(
        findings[0].remedy.as_ref().unwrap().fix,
        Fix::ReceiveBufferLimit(_)
    ));

    let both = Traffic {
        path_lost: 300,
        ..traffic
    };
    let record = fixture::run(&udp(100_000_000), &both);
    assert_eq!(
        ids(&record),
        ["udp-receiver-drop", "udp-path-loss", "rate-capped"]
    );
    let loss = explain(&record)[1].sentence.clone();
    assert!(
        loss.contains("were lost on the path, before the socket of the server (beta)"),
        "{loss}"
    );
}

#[test]
fn loss_that_a_stock_receiver_tells_is_not_split() {
    let traffic = Traffic {
        rate_bps: 100e6,
        path_lost: 2000,
        ..Traffic::default()
    };
    let record = fixture::against_stock(fixture::run(&udp(100_000_000), &traffic), Role::Server);
    let finding = &explain(&record)[0];
    assert_eq!(finding.id, "udp-path-loss");
    assert!(finding.sentence.ends_with(
        "lost, on the path or in the socket of the server: a stock iperf3 does not report socket drops, so linerate cannot tell where"
    ));
    assert_eq!(
        finding.next.as_deref(),
        Some("linerate test server -u -b 87M")
    );
}

#[test]
fn a_few_lost_datagrams_are_a_note() {
    let traffic = Traffic {
        rate_bps: 100e6,
        path_lost: 3,
        ..Traffic::default()
    };
    let findings = explain(&fixture::run(&udp(100_000_000), &traffic));
    assert_eq!(findings[0].id, "rate-capped");
    assert_eq!(
        (findings[1].id.as_str(), findings[1].severity),
        ("udp-path-loss", Severity::Note)
    );
}

#[test]
fn a_sender_that_falls_short_is_no_path() {
    let traffic = Traffic {
        rate_bps: 809e6,
        path_lost: 20,
        sender_cpu: 0.99,
        ..Traffic::default()
    };
    let finding = verdict(&udp(4_000_000_000), &traffic);
    assert_eq!(finding.id, "udp-sender-short");
    assert_eq!(
        finding.sentence,
        "The client (alpha) sent 805 Mbit/s of the requested 4.00 Gbit/s (20 %); its sending thread is on the CPU 99 \
         % of the time; whether the path carries more was not tested"
    );
    let enough = Traffic {
        rate_bps: 3.9e9,
        ..Traffic::default()
    };
    assert_eq!(verdict(&udp(4_000_000_000), &enough).id, "rate-capped");
}

#[test]
fn udp_without_a_rate_names_the_sending_cpu_or_the_first_queue() {
    let traffic = Traffic {
        rate_bps: 5e9,
        sender_cpu: 0.99,
        ..Traffic::default()
    };
    assert_eq!(verdict(&udp(0), &traffic).id, "sender-cpu");
    assert_eq!(
        verdict(
            &udp(0),
            &Traffic {
                sender_cpu: 0.5,
                ..traffic
            }
        )
        .id,
        "path-full"
    );
}

#[test]
fn two_levels_are_not_a_mean() {
    let traffic = Traffic {
        levels: vec![(6.5, 0.25)],
        ..Traffic::default()
    };
    let findings = explain(&fixture::run(&tcp(), &traffic));
    assert_eq!(findings[0].id, "unstable");
    assert!(
        findings[0]
            .sentence
            .contains("no single figure describes this run"),
        "{}",
        findings[0].sentence
    );
    let wavering = Traffic {
        levels: vec![(6.5, 0.97)],
        ..Traffic::default()
    };
    assert_eq!(ids(&fixture::run(&tcp(), &wavering)), ["path-full"]);
}

#[test]
fn a_long_ramp_hides_the_plateau() {
    let findings = explain(&fixture::run(
        &tcp(),
        &Traffic {
            ramp_s: 4.0,
            ..Traffic::default()
        },
    ));
    assert_eq!(findings[0].id, "path-full");
    assert_eq!(findings[1].id, "slow-start");
    assert!(
        findings[1].sentence.contains("hides the plateau (95."),
        "{}",
        findings[1].sentence
    );
    assert_eq!(
        ids(&fixture::run(
            &tcp(),
            &Traffic {
                ramp_s: 0.9,
                ..Traffic::default()
            }
        )),
        ["path-full"]
    );
}

#[test]
fn a_stall_is_said_with_its_place_in_the_run() {
    let record = fixture::run(
        &tcp(),
        &Traffic {
            levels: vec![(3.0, 0.0), (5.0, 1.0)],
            ..Traffic::default()
        },
    );
    let stall = &explain(&record)[0];
    assert_eq!(stall.id, "stall");
    assert_eq!(
        stall.sentence,
        "Nothing arrived at the receiving application for 2.00 s, from 3.00 s to 5.00 s of the run"
    );
    assert_eq!(stall.span_ns, Some([3_000_000_000, 5_000_000_000]));
    let short = Traffic {
        levels: vec![(3.0, 0.0), (3.9, 1.0)],
        ..Traffic::default()
    };
    assert!(!ids(&fixture::run(&tcp(), &short)).contains(&"stall".to_owned()));
}

#[test]
fn a_path_that_dies_has_stalled_to_the_end() {
    let mut record = fixture::run(
        &tcp(),
        &Traffic {
            levels: vec![(7.0, 0.0)],
            ..Traffic::default()
        },
    );
    let end = record.server.as_mut().unwrap();
    end.streams[0].last_byte_ns = Some(end.start_ns.plus(Nanos::from_millis(7000)));
    let stall = &explain(&record)[0];
    assert!(
        stall
            .sentence
            .ends_with("for 3.00 s, from 7.00 s to 10.0 s of the run"),
        "{}",
        stall.sentence
    );
}

#[test]
fn slow_blocks_at_the_rate_asked_for_are_no_stall() {
    let plan = Plan {
        rate_bps: Some(BitRate(4_000_000)),
        block_bytes: Bytes(1 << 20),
        ..tcp()
    };
    let record = fixture::run(
        &plan,
        &Traffic {
            rate_bps: 4e6,
            levels: vec![(3.0, 0.0), (5.0, 1.0)],
            ..Traffic::default()
        },
    );
    assert!(!ids(&record).contains(&"stall".to_owned()));
}

#[test]
fn a_ledger_that_does_not_balance_comes_first() {
    let mut record = fixture::run(&tcp(), &window_limited());
    record.server.as_mut().unwrap().streams[0].app_bytes -= 1_000_000;
    let findings = explain(&record);
    assert_eq!(
        (findings[0].id.as_str(), findings[0].severity),
        ("ledger-imbalance", Severity::Fault)
    );
    assert!(
        findings[0]
            .sentence
            .contains("(difference 1,000,000); trust the receiving application's figure"),
        "{}",
        findings[0].sentence
    );
    assert_eq!(findings[1].id, "receive-window");
}

#[test]
fn an_interface_that_counts_less_is_only_a_note() {
    let mut record = fixture::run(&tcp(), &Traffic::default());
    let pair = record
        .client
        .as_mut()
        .unwrap()
        .interface_counters
        .as_mut()
        .unwrap();
    pair.after.tx_bytes = pair.before.tx_bytes + 5;
    let findings = explain(&record);
    assert_eq!(findings[0].id, "path-full");
    assert_eq!(
        (findings[1].id.as_str(), findings[1].severity),
        ("ledger-imbalance", Severity::Note)
    );
}

#[test]
fn a_stock_sender_cannot_be_explained_and_the_reason_is_said() {
    let plan = Plan {
        direction: Direction::Receive,
        ..tcp()
    };
    let record = fixture::against_stock(fixture::run(&plan, &Traffic::default()), Role::Server);
    let finding = &explain(&record)[0];
    assert_eq!(finding.id, "cannot-tell");
    assert!(
        finding.sentence.contains("the sender is a stock iperf3"),
        "{}",
        finding.sentence
    );
    assert_eq!(
        finding.next.as_deref(),
        Some("linerate serve # on the server, instead of iperf3")
    );
}

#[test]
fn an_old_kernel_is_said_to_be_the_reason() {
    let mut record = fixture::run(&tcp(), &Traffic::default());
    let stream = &mut record.client.as_mut().unwrap().streams[0];
    let mut old = Series::new(stream.samples.at_ns().to_vec());
    old.insert(
        Column::app_bytes,
        stream.samples.column(Column::app_bytes).unwrap().to_vec(),
    )
    .unwrap();
    stream.samples = old;
    let finding = &explain(&record)[0];
    assert_eq!(finding.id, "cannot-tell");
    assert!(
        finding.sentence.contains("Linux 4.10"),
        "{}",
        finding.sentence
    );
}

#[test]
fn a_run_too_short_to_tell_says_so() {
    let mut record = fixture::run(
        &tcp(),
        &Traffic {
            seconds: 0.05,
            ramp_s: 0.0,
            ..Traffic::default()
        },
    );
    for end in [
        record.client.as_mut().unwrap(),
        record.server.as_mut().unwrap(),
    ] {
        shorten(end);
    }
    let finding = &explain(&record)[0];
    assert_eq!(finding.id, "cannot-tell");
    assert!(
        finding.sentence.contains("too short"),
        "{}",
        finding.sentence
    );
}

fn shorten(end: &mut EndRecord) {
    for stream in &mut end.streams {
        stream.samples = stream.samples.thinned(100);
        stream.last_byte_ns = stream.first_byte_ns.map(|at| at.plus(Nanos(4_000_000)));
    }
}

#[test]
fn nothing_measured_is_a_fault_and_not_a_zero() {
    let mut record = fixture::run(&tcp(), &Traffic::default());
    record.client = None;
    record.server = None;
    record.outcome = Outcome::Failed {
        error: "connect to 192.0.2.2:5201: connection refused".into(),
    };
    let finding = &explain(&record)[0];
    assert_eq!(finding.severity, Severity::Fault);
    assert_eq!(
        finding.sentence,
        "Nothing was measured: connect to 192.0.2.2:5201: connection refused"
    );
}

#[test]
fn each_direction_has_its_own_verdict() {
    let plan = Plan {
        direction: Direction::Both,
        ..tcp()
    };
    let mut record = fixture::run(&plan, &Traffic::default());
    let other = fixture::run(&plan, &window_limited());
    for (end, from) in [
        (record.client.as_mut().unwrap(), other.client.unwrap()),
        (record.server.as_mut().unwrap(), other.server.unwrap()),
    ] {
        end.streams[1] = from.streams[1].clone();
        end.interface_counters = from.interface_counters;
    }
    assert_eq!(ids(&record), ["receive-window", "path-full"]);
    let findings = explain(&record);
    assert!(
        findings[0]
            .sentence
            .starts_with("The receive window of the client (alpha)"),
        "{}",
        findings[0].sentence
    );
    assert_eq!(
        findings[0].next.as_deref(),
        Some("linerate test server --bidir -P 4")
    );
}

#[test]
fn no_figure_is_infinite() {
    for traffic in [Traffic::default(), window_limited(), quiet(), one_host()] {
        for finding in explain(&fixture::run(&tcp(), &traffic)) {
            assert!(
                finding
                    .figures
                    .iter()
                    .all(|figure| figure.value.is_finite()),
                "{finding:#?}"
            );
            assert!(finding.sentence.len() < 300, "{}", finding.sentence);
        }
    }
}

#[test]
fn of_two_losses_of_datagrams_the_larger_is_the_answer() {
    // 95 % sent, 15 % dropped, as measured with -w 4K at 3 Gbit/s.
    let traffic = Traffic {
        rate_bps: 2.87e9,
        ramp_s: 0.0,
        socket_dropped: 360_000,
        ..Traffic::default()
    };
    assert_eq!(
        ids(&fixture::run(&udp(3_000_000_000), &traffic)),
        ["udp-receiver-drop", "udp-sender-short"]
    );
    let short = Traffic {
        socket_dropped: 20_000,
        ..traffic
    };
    assert_eq!(verdict(&udp(3_000_000_000), &short).id, "udp-sender-short");
    let path = Traffic {
        path_lost: 200_000,
        ..short
    };
    assert_eq!(verdict(&udp(3_000_000_000), &path).id, "udp-path-loss");
}

/// Two network namespaces of one machine, whose names say nothing.
fn namespaces(plan: &Plan, traffic: &Traffic) -> RunRecord {
    let here = Traffic {
        one_host: true,
        ..traffic.clone()
    };
    let mut record = fixture::run(plan, &here);
    let host = &mut record.server.as_mut().unwrap().host;
    host.network_namespace = Some(7);
    host.hostname = Some("beta".into());
    record
}

fn both_ends(record: &mut RunRecord) -> [&mut EndRecord; 2] {
    [
        record.client.as_mut().unwrap(),
        record.server.as_mut().unwrap(),
    ]
}

/// Books how the threads of an end spent their time, %.
fn thread_times(end: &mut EndRecord, computes: u64, waits: u64) {
    for stream in &mut end.streams {
        let at = stream.samples.at_ns().to_vec();
        for (name, share) in [("thread_cpu_ns", computes), ("thread_wait_ns", waits)] {
            let of = |instant: &u64| (instant - at[0]) * share / 100;
            let column = at.iter().map(of).collect();
            stream.samples.insert(name, column).unwrap();
        }
    }
}

/// Takes the rows between two instants out of a stream's samples, seconds since the start.
fn silence(end: &mut EndRecord, stream: usize, from: u64, to: u64) {
    let start = end.start_ns.0;
    let samples = &mut end.streams[stream].samples;
    let kept: Vec<usize> = (0..samples.len())
        .filter(|row| {
            let since = samples.at_ns()[*row] - start;
            since <= from * 1_000_000_000 || since >= to * 1_000_000_000
        })
        .collect();
    let pick = |values: &[u64]| kept.iter().map(|row| values[*row]).collect::<Vec<u64>>();
    let mut thin = Series::new(pick(samples.at_ns()));
    for name in samples.names() {
        thin.insert(name, pick(samples.named(name).unwrap()))
            .unwrap();
    }
    *samples = thin;
}

#[test]
fn equal_names_are_not_one_machine() {
    let mut record = fixture::run(&tcp(), &quiet());
    record.server.as_mut().unwrap().host.hostname = Some("alpha".into());
    assert_eq!(ids(&record), ["cannot-tell"]);
    // Without boots the loopback interface shows it; with them it does not.
    for end in both_ends(&mut record) {
        end.interface.as_mut().unwrap().name = "lo".into();
    }
    assert!(!explain(&record)[0].sentence.contains("no network"));
    for end in both_ends(&mut record) {
        end.host.boot_id = None;
        end.host.network_namespace = None;
    }
    assert!(
        explain(&record)[0]
            .sentence
            .contains("no network was measured")
    );
    // A stream from an address to itself shows one machine, but nothing of its namespaces.
    for end in both_ends(&mut record) {
        end.interface.as_mut().unwrap().name = "eth0".into();
        for stream in &mut end.streams {
            stream.remote = stream.local.clone();
        }
    }
    let findings = explain(&record);
    assert!(
        !findings[0].sentence.contains("no network"),
        "{findings:#?}"
    );
    assert!(!findings[0].sentence.contains("alpha"), "{findings:#?}");
}

#[test]
fn two_namespaces_of_one_machine_are_a_path() {
    let findings = explain(&namespaces(&tcp(), &Traffic::default()));
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id, "path-full");
    assert!(findings[0].sentence.contains("a standing queue of 30.9 ms"));

    let lossy = Traffic {
        retransmits: 400,
        rate_bps: 60e6,
        ..quiet()
    };
    assert_eq!(ids(&namespaces(&tcp(), &lossy)), ["network-loss"]);

    for (traffic, id, part) in [
        (one_host(), "path-full", "two network namespaces"),
        (
            Traffic {
                sender_cpu: 0.99,
                ..one_host()
            },
            "sender-cpu",
            "share one machine's CPUs",
        ),
        (
            Traffic {
                receiver_cpu: 0.99,
                ..one_host()
            },
            "receiver-cpu",
            "share one machine's CPUs",
        ),
    ] {
        let findings = explain(&namespaces(&tcp(), &traffic));
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(
            (findings[0].id.as_str(), findings[0].severity),
            (id, Severity::Healthy)
        );
        let sentence = &findings[0].sentence;
        assert!(sentence.contains(part), "{sentence}");
        assert!(!sentence.contains("no network was measured"), "{sentence}");
    }
}

#[test]
fn a_thread_that_waits_for_a_cpu_is_not_an_idle_application() {
    // -P 8 over loopback on two busy cores, as measured.
    let busy = Traffic {
        application: 0.59,
        sender_cpu: 0.1,
        receiver_cpu: 0.1,
        ..one_host()
    };
    let plan = Plan {
        streams: 8,
        ..tcp()
    };
    assert_eq!(ids(&fixture::run(&plan, &busy)), ["path-full"]);
    let mut record = fixture::run(&plan, &busy);
    thread_times(record.client.as_mut().unwrap(), 30, 68);
    let findings = explain(&record);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id, "sender-cpu");
    assert!(
        findings[0].sentence.contains(
            "the sending thread is on the CPU 30 % of the time and waits for a CPU 68 % of the time"
        ),
        "{}",
        findings[0].sentence
    );
    let mut record = fixture::run(&plan, &busy);
    thread_times(record.server.as_mut().unwrap(), 30, 68);
    assert_eq!(ids(&record), ["receiver-cpu"]);
    // What others leave of a CPU wavers.
    let wavering = Traffic {
        levels: vec![(6.5, 0.6)],
        ..busy.clone()
    };
    let mut record = fixture::run(&plan, &wavering);
    thread_times(record.client.as_mut().unwrap(), 30, 68);
    assert_eq!(ids(&record), ["sender-cpu"]);
    let mut record = fixture::run(&plan, &busy);
    thread_times(record.client.as_mut().unwrap(), 30, 60);
    assert_eq!(ids(&record), ["path-full"]);
    // What all threads fill of the host's cores and what each waits are not added up.
    let mut record = fixture::run(
        &plan,
        &Traffic {
            sender_cpu: 0.5,
            ..busy
        },
    );
    let end = record.client.as_mut().unwrap();
    end.host.cpus = Some(8);
    thread_times(end, 10, 50);
    assert_eq!(ids(&record), ["path-full"]);
}

#[test]
fn a_paced_sender_idles_by_design() {
    for direction in [Direction::Send, Direction::Receive] {
        let plan = Plan {
            rate_bps: Some(BitRate(50_000_000)),
            direction,
            ..tcp()
        };
        // The rate was written, and less arrived.
        let traffic = Traffic {
            rate_bps: 47e6,
            application: 0.8,
            ..quiet()
        };
        let mut record = fixture::run(&plan, &traffic);
        let sender = match direction {
            Direction::Receive => record.server.as_mut(),
            _ => record.client.as_mut(),
        };
        sender.unwrap().streams[0].app_bytes = 62_500_000;
        let findings = explain(&record);
        assert!(
            findings
                .iter()
                .all(|finding| finding.id != "sender-application"),
            "{findings:#?}"
        );
        assert!(
            findings.iter().any(|finding| finding.id == "cannot-tell"
                && finding.sentence.contains("Of the requested 50.0 Mbit/s")),
            "{findings:#?}"
        );
        // A stall explains what was not written.
        let stalled = Traffic {
            levels: vec![(3.0, 0.0), (5.0, 1.0)],
            rate_bps: 50e6,
            ..traffic
        };
        let found = ids(&fixture::run(&plan, &stalled));
        assert_eq!(found[0], "stall");
        assert!(
            !found.contains(&"sender-application".to_owned()),
            "{found:?}"
        );
        // Nor is idling a note beside another cause.
        let window = Traffic {
            rate_bps: 20e6,
            application: 0.3,
            receive_window: 0.65,
            ..window_limited()
        };
        let found = ids(&fixture::run(&plan, &window));
        assert!(
            !found.contains(&"sender-application".to_owned()),
            "{found:?}"
        );
    }
}

#[test]
fn a_gap_between_samples_is_a_stopped_process() {
    let mut record = fixture::run(&tcp(), &Traffic::default());
    silence(record.server.as_mut().unwrap(), 0, 3, 5);
    let stall = &explain(&record)[0];
    assert_eq!(stall.id, "stall");
    assert_eq!(
        stall.sentence,
        "The receiving process on the server (beta) did not run, or its host was suspended: it took no sample for \
         2.00 s, from 3.00 s to 5.00 s of the run"
    );
    // The sender's gap is not at the measuring end.
    let mut record = fixture::run(&tcp(), &Traffic::default());
    silence(record.client.as_mut().unwrap(), 0, 3, 5);
    assert!(!ids(&record).contains(&"stall".to_owned()));
    // One thread of two is not the process.
    let two = Plan {
        streams: 2,
        ..tcp()
    };
    let mut record = fixture::run(&two, &Traffic::default());
    silence(record.server.as_mut().unwrap(), 0, 3, 5);
    assert!(
        explain(&record)[0]
            .sentence
            .contains("The receiving thread of stream 1 on the server (beta) did not run"),
    );
    // At a second a sample, two seconds are no more than a late one.
    let slow = Plan {
        sample_ns: Nanos(1_000_000_000),
        ..tcp()
    };
    let mut record = fixture::run(&slow, &Traffic::default());
    silence(record.server.as_mut().unwrap(), 0, 3, 5);
    assert!(!ids(&record).contains(&"stall".to_owned()));
    // However slow the blocks that were asked for: samples are taken all the same.
    let rare = Plan {
        rate_bps: Some(BitRate(4_000_000)),
        ..tcp()
    };
    let mut record = fixture::run(
        &rare,
        &Traffic {
            rate_bps: 4e6,
            ..Traffic::default()
        },
    );
    silence(record.server.as_mut().unwrap(), 0, 3, 5);
    assert_eq!(ids(&record)[0], "stall");
}

#[test]
fn two_directions_that_fill_the_path_make_one_another_waver() {
    let plan = Plan {
        direction: Direction::Both,
        ..tcp()
    };
    let settles = |from: f64| Traffic {
        levels: vec![(0.0, from), (7.0, 1.0)],
        ..Traffic::default()
    };
    let found = ids(&fixture::run(&plan, &settles(0.7)));
    assert!(found.iter().all(|id| id == "path-full"), "{found:?}");
    // One direction alone has no such excuse, nor has a rate that doubles.
    assert_eq!(ids(&fixture::run(&tcp(), &settles(0.7)))[0], "unstable");
    assert_eq!(ids(&fixture::run(&plan, &settles(0.5)))[0], "unstable");
}

#[test]
fn a_late_settling_is_said_with_the_levels_around_the_cut() {
    let findings = explain(&fixture::run(
        &tcp(),
        &Traffic {
            levels: vec![(0.0, 0.5), (7.0, 1.0)],
            ..Traffic::default()
        },
    ));
    assert_eq!(findings[0].id, "unstable");
    assert!(
        findings[0].sentence.contains("(47.") && findings[0].sentence.contains("settled, 95."),
        "{}",
        findings[0].sentence
    );
}

/// A short UDP test: so many datagrams of 1460 bytes at 1 Mbit/s.
fn few_datagrams(count: u64, every_ns: u64) -> RunRecord {
    let plan = udp(1_000_000);
    let bits = (count * 1460 * 8) as f64;
    let seconds = (count * every_ns) as f64 / 1e9;
    let mut record = fixture::run(
        &plan,
        &Traffic {
            rate_bps: bits / seconds,
            seconds,
            ramp_s: 0.0,
            noise: 0.0,
            ..Traffic::default()
        },
    );
    for end in both_ends(&mut record) {
        let start = end.start_ns;
        let stream = &mut end.streams[0];
        stream.last_byte_ns = Some(start.plus(Nanos((count - 1) * every_ns)));
        stream.app_bytes = count * 1460;
        let counts = stream.udp.as_mut().unwrap();
        if stream.sends {
            counts.sent = count;
        } else {
            counts.received = count;
            counts.unique = count;
            counts.highest = count;
            counts.peer_sent = Some(count);
        }
        // The control connection takes its time.
        end.end_ns = end.end_ns.plus(Nanos::from_millis(15));
    }
    record
}

#[test]
fn short_udp_runs_do_not_contradict_themselves() {
    // -u -n 10K -b 1M: seven datagrams, one each 11.68 ms.
    assert_eq!(ids(&few_datagrams(7, 11_680_000)), ["rate-capped"]);
    // Too few to say that they came too slowly.
    let findings = explain(&few_datagrams(7, 14_000_000));
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(
        (findings[0].id.as_str(), findings[0].severity),
        ("cannot-tell", Severity::Note)
    );
    assert_eq!(ids(&few_datagrams(40, 14_000_000)), ["udp-sender-short"]);
}

#[test]
fn a_linerate_whose_half_is_missing_is_no_stock_iperf3() {
    let missing = |plan: &Plan, traffic: &Traffic| {
        let mut record = fixture::against_stock(fixture::run(plan, traffic), Role::Server);
        record.control.peer_software = Some("linerate 0.1.0".into());
        record
    };
    let back = Plan {
        direction: Direction::Receive,
        ..tcp()
    };
    let lost = Traffic {
        rate_bps: 100e6,
        path_lost: 2000,
        ..Traffic::default()
    };
    for record in [
        missing(&tcp(), &window_limited()),
        missing(&back, &Traffic::default()),
        missing(&udp(100_000_000), &lost),
    ] {
        let finding = &explain(&record)[0];
        assert!(
            finding.sentence.contains("part of the record")
                && finding.sentence.contains("did not arrive"),
            "{}",
            finding.sentence
        );
        let next = finding.next.clone().unwrap_or_default();
        assert!(!finding.sentence.contains("iperf3"), "{}", finding.sentence);
        assert!(!next.contains("iperf3"), "{next}");
    }
}

#[test]
fn what_arrived_was_not_nothing() {
    let mut record = fixture::run(&tcp(), &Traffic::default());
    for end in both_ends(&mut record) {
        for stream in &mut end.streams {
            stream.last_byte_ns = stream.first_byte_ns;
        }
    }
    let findings = explain(&record);
    let finding = findings
        .iter()
        .find(|finding| finding.id == "cannot-tell")
        .unwrap();
    assert_eq!(finding.severity, Severity::Note);
    assert!(finding.sentence.contains("arrived"), "{}", finding.sentence);
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity != Severity::Fault
                && !finding
                    .sentence
                    .to_lowercase()
                    .contains("nothing was measured")),
        "{findings:#?}"
    );
}

#[test]
fn a_full_link_comes_before_the_windows() {
    let traffic = Traffic {
        rate_bps: 941e6,
        link_mbit_per_s: Some(1000),
        receive_window: 0.8,
        receive_window_bytes: 3_000_000,
        in_flight_bytes: 2_900_000,
        retransmits: 2000,
        ..quiet()
    };
    let real = |traffic: &Traffic| {
        let mut record = fixture::run(&tcp(), traffic);
        for end in both_ends(&mut record) {
            end.interface.as_mut().unwrap().kind = None;
        }
        record
    };
    assert_eq!(ids(&real(&traffic)), ["path-full"]);
    let below = Traffic {
        rate_bps: 850e6,
        ..traffic
    };
    assert_eq!(ids(&real(&below))[0], "receive-window");
}

#[test]
fn a_link_is_full_only_at_what_it_can_carry() {
    let on_a_link = |rate_bps: f64, speed: u64| Traffic {
        rate_bps,
        receive_window: 0.95,
        link_mbit_per_s: Some(speed),
        ..window_limited()
    };
    let real = |traffic: &Traffic| {
        let mut record = fixture::run(&tcp(), traffic);
        for end in both_ends(&mut record) {
            end.interface.as_mut().unwrap().kind = None;
        }
        explain(&record).remove(0)
    };
    // 941.5 of 1000 Mbit/s is all that MTU 1500 leaves: the window then only bounds the queue.
    let full = on_a_link(940e6, 1000);
    assert_eq!(real(&full).id, "path-full");
    // Below it, or above the speed that the interface states, the window is what limits.
    for (rate, speed) in [(905e6, 1000), (1.8e9, 1000)] {
        let finding = real(&on_a_link(rate, speed));
        assert_eq!(finding.id, "receive-window", "{}", finding.sentence);
    }
    // A full link is no excuse for a receiver that does not read.
    let idle = Traffic {
        application: 0.6,
        receive_window: 0.0,
        ..on_a_link(940e6, 1000)
    };
    assert_eq!(real(&idle).id, "sender-application");
}
