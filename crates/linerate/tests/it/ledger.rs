//! The bytes add up, wherever they were counted and however the test ended.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{
    Folder, Hosts, LONG, Server, alone, assert_balanced, findings, linerate, measured, number, run,
    start, wait_until,
};

/// The totals of a document's only direction.
fn total(document: &Value) -> &Value {
    &document["ledger"]["directions"][0]["total"]
}

/// Waits until a client with `--json-stream` shows that something moves.
#[track_caller]
fn wait_for_interval(client: &crate::harness::Running) {
    let moves = wait_until(Duration::from_secs(20), || {
        client.out().contains("\"event\":\"interval\"")
    });
    assert!(moves, "{}{}", client.out(), client.error());
}

/// The document in the last line of a `--json-stream`.
#[track_caller]
fn end_of(out: &str) -> Value {
    let last = out.lines().last().unwrap_or_default();
    let document: Value = serde_json::from_str(last).unwrap();
    assert_eq!(document["event"], "end", "{last:.300}");
    document
}

#[test]
fn twenty_gibibytes_are_exact_at_every_place() {
    let _alone = alone();
    let server = Server::linerate(&[]);
    let limit = Duration::from_secs(290);
    let document = run(&mut server.client("-n 20G --json"), limit)
        .expect(0)
        .json();
    let total = total(&document);
    let all = 20 << 30;
    assert_eq!(number(total, "/written"), all);
    assert_eq!(number(total, "/read"), all);
    let once = number(total, "/bytes_sent") - number(total, "/bytes_retrans");
    assert_eq!(once, all + 37);
    assert_eq!(number(total, "/bytes_acked"), all + 37 + 2);
    assert_eq!(number(total, "/bytes_received"), all + 37 + 1);
    for empty in ["/notsent", "/in_flight", "/unread"] {
        assert_eq!(number(total, empty), 0, "{empty}");
    }
    assert_balanced(&document, "-n 20G");
}

#[test]
fn odd_amounts_are_exact() {
    let _alone = alone();
    let server = Server::linerate(&[]);
    for words in [
        "-n 1000001",
        "-n 1000001 -P 7",
        "-n 1000001 -R -P 3",
        "-k 33 -l 1001",
        "-n 1000001 --bidir",
        "-n 1",
    ] {
        let document = run(&mut server.client(&format!("{words} --json")), LONG)
            .expect(0)
            .json();
        let wanted = match words {
            "-k 33 -l 1001" => 33 * 1001,
            "-n 1" => 1,
            _ => 1_000_001,
        };
        for direction in document["ledger"]["directions"].as_array().unwrap() {
            assert_eq!(number(direction, "/total/written"), wanted, "{words}");
            assert_eq!(number(direction, "/total/read"), wanted, "{words}");
        }
        assert_balanced(&document, words);
    }
}

#[test]
fn intervals_add_up_to_the_total() {
    let _alone = alone();
    let server = Server::linerate(&[]);
    for words in [
        "-t 2 -i 0.3",
        "-t 1 -R -P 4 -i 0.2",
        "-t 2 -i 0.5 -u -b 100M",
        "-t 1 -i 0.4 --bidir",
        "-t 1 -O 1 -i 0.3",
    ] {
        let document = run(&mut server.client(&format!("{words} --json")), LONG)
            .expect(0)
            .json();
        let directions = document["summary"]["directions"].as_array().unwrap();
        for direction in directions {
            let intervals: Vec<&Value> = document["intervals"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|interval| interval["flow"] == direction["flow"])
                .collect();
            assert!(
                intervals.len() >= 3,
                "{words}: {} intervals",
                intervals.len()
            );
            let sum: u64 = intervals.iter().map(|of| number(of, "/bytes")).sum();
            assert_eq!(sum, number(direction, "/bytes"), "{words}");
            for interval in intervals {
                let span = number(interval, "/to_ns") - number(interval, "/from_ns");
                let rate = number(interval, "/bytes") as f64 * 8e9 / span as f64;
                let said = interval["bps"].as_f64().unwrap();
                assert!(
                    (rate - said).abs() <= 1.0 + rate / 1e6,
                    "{words}: {rate} and {said}"
                );
                let streams = interval["streams"].as_array().unwrap();
                let of_streams: u64 = streams.iter().map(|of| number(of, "/bytes")).sum();
                assert_eq!(of_streams, number(interval, "/bytes"), "{words}");
            }
        }
    }
}

#[test]
fn a_test_cut_off_with_ctrl_c_is_complete_and_balanced_at_both_ends() {
    let _alone = alone();
    for words in ["-P 2", "-R", "--bidir -P 2", "-u -b 200M", "-u -b 200M -R"] {
        let folder = Folder::new();
        let server = Server::linerate(&["--one-off", "-o", folder.path().to_str().unwrap()]);
        let client = start(&mut server.client(&format!("-t 60 -i 0.2 {words} --json-stream")));
        wait_for_interval(&client);
        client.signal("INT");
        let document = end_of(&client.wait(Duration::from_secs(20)).expect(0).out);
        server.ends().expect(0);
        assert_eq!(document["outcome"]["how"], "interrupted", "{words}");
        assert_eq!(document["server"]["known"], true, "{words}");
        assert_balanced(&document, words);
        for direction in document["ledger"]["directions"].as_array().unwrap() {
            let (written, read) = (
                number(direction, "/total/written"),
                number(direction, "/total/read"),
            );
            assert!(read > 0, "{words}");
            if words.starts_with("-u") {
                assert!(written >= read, "{words}");
            } else {
                assert_eq!(written, read, "{words}: two linerates drain to the end");
            }
        }
        let kept = folder.records();
        assert_eq!(kept.len(), 1, "{words}");
        assert_eq!(document["cookie"], *kept[0].cookie, "{words}");
    }
}

#[test]
fn a_small_receive_buffer_is_named_as_the_place_of_udp_loss() {
    measured(alone, || {
        let server = Server::linerate(&[]);
        for words in ["-R", ""] {
            let document = run(
                &mut server.client(&format!("-u -b 0 -w 4K -t 1 {words} --json")),
                LONG,
            )
            .expect(0)
            .json();
            let found = findings(&document);
            assert!(
                found.iter().any(|id| id == "udp-receiver-drop"),
                "{words}: {found:?}"
            );
            assert!(
                !found.iter().any(|id| id == "udp-path-loss"),
                "{words}: {found:?}"
            );
            let lost = number(total(&document), "/datagrams/lost");
            assert!(lost > 0, "{words}");
            assert_eq!(
                number(total(&document), "/datagrams/socket_dropped"),
                lost,
                "{words}"
            );
            assert_balanced(&document, words);
        }
    });
}

#[test]
fn udp_lost_in_a_queue_is_lost_on_the_path() {
    measured(alone, || {
        let Some(hosts) = Hosts::new("UDP through a queue of 20 Mbit/s") else {
            return;
        };
        hosts
            .a
            .tc("qdisc add dev a0 root tbf rate 20mbit burst 32kb latency 20ms");
        let server = hosts.b.serve("");
        let document = run(&mut hosts.client(&server, "-u -b 50M -t 2 --json"), LONG)
            .expect(0)
            .json();
        let found = findings(&document);
        assert!(found.iter().any(|id| id == "udp-path-loss"), "{found:?}");
        assert!(
            !found.iter().any(|id| id == "udp-receiver-drop"),
            "{found:?}"
        );
        let datagrams = &total(&document)["datagrams"];
        // 20 of 50 Mbit/s pass.
        assert!(
            number(datagrams, "/lost") * 3 > number(datagrams, "/sent"),
            "{datagrams}"
        );
        assert_eq!(number(datagrams, "/path_lost"), number(datagrams, "/lost"));
        let sentence = document["findings"][0]["sentence"].as_str().unwrap();
        assert!(sentence.contains("interface a0 dropped"), "{sentence}");
        assert_balanced(&document, "a queue of 20 Mbit/s");
    });
}

#[test]
fn what_is_sent_into_a_path_that_fails_is_lost_also_at_the_end() {
    measured(alone, || {
        let Some(hosts) = Hosts::new("UDP through a link that goes down") else {
            return;
        };
        let server = hosts.b.serve("");
        let client = start(&mut hosts.client(&server, "-u -b 20M -t 3 -i 0.2 --json-stream"));
        wait_for_interval(&client);
        hosts.b.ip("link set b0 down");
        let ending = wait_until(Duration::from_secs(20), || {
            client.out().contains("\"event\":\"ending\"")
        });
        assert!(ending, "{}", client.out());
        hosts.b.ip("link set b0 up");
        let document = end_of(&client.wait(LONG).expect(0).out);
        let datagrams = &total(&document)["datagrams"];
        assert!(
            findings(&document).iter().any(|id| id == "udp-path-loss"),
            "{datagrams}"
        );
        let (sent, delivered) = (number(datagrams, "/sent"), number(datagrams, "/delivered"));
        assert!(delivered > 0);
        assert_eq!(number(datagrams, "/path_lost"), sent - delivered);
        // The link went down in the first third.
        assert!(2 * delivered < sent, "{datagrams}");
        assert_balanced(&document, "a link that goes down");
    });
}

#[test]
fn a_server_that_is_killed_leaves_what_the_client_measured() {
    let _alone = alone();
    for words in ["", "-R", "-u -b 50M -R"] {
        let folder = Folder::new();
        let file = folder.file("run.json");
        let mut server = Server::linerate(&[]);
        let mut command = server.client(&format!("-t 30 -i 0.2 {words} --json-stream -o"));
        let client = start(command.arg(&file));
        wait_for_interval(&client);
        server.process.kill();
        let done = client.wait(LONG).expect(4);
        let document = end_of(&done.out);
        assert_eq!(document["outcome"]["how"], "failed", "{words}");
        assert_eq!(document["server"]["known"], false, "{words}");
        assert!(number(&document, "/client/bytes") > 0, "{words}");
        assert!(
            done.error.contains("the test failed before its end"),
            "{}",
            done.error
        );
        let shown = run(linerate("show --json").arg(&file), LONG)
            .expect(0)
            .json();
        assert_eq!(shown["ledger"], document["ledger"], "{words}");
    }
}

#[test]
fn a_client_that_is_killed_leaves_the_server_serving() {
    let _alone = alone();
    let server = Server::linerate(&[]);
    for words in ["", "-R", "-u -b 50M", "-u -b 50M -R"] {
        let mut client = start(&mut server.client(&format!("-t 30 -i 0.2 {words} --json-stream")));
        wait_for_interval(&client);
        client.kill();
        let document = run(&mut server.client("-n 1M --json"), LONG)
            .expect(0)
            .json();
        assert_balanced(&document, words);
    }
    // Each of them is told of, once it ended.
    let told = wait_until(Duration::from_secs(50), || {
        (1..=8).all(|test| {
            server
                .process
                .out()
                .matches(&format!("test {test}: "))
                .count()
                == 2
        })
    });
    assert!(told, "{}", server.process.out());
}

#[test]
fn a_path_that_fails_for_good_gives_a_one_sided_record_and_says_so() {
    let _alone = alone();
    let Some(hosts) = Hosts::new("a path that fails for good") else {
        return;
    };
    for (words, sent) in [("-u -b 20M", "/datagrams/sent"), ("-b 20M", "/written")] {
        hosts.b.ip("link set b0 up");
        let server = hosts.b.serve("");
        let mut command = hosts.client(&server, &format!("{words} -t 1 -i 0.2 --json-stream"));
        let client = start(command.stdin(Stdio::null()));
        wait_for_interval(&client);
        hosts.b.ip("link set b0 down");
        let done = client.wait(LONG).expect(4);
        let document = end_of(&done.out);
        assert_eq!(document["outcome"]["how"], "failed", "{words}");
        assert_eq!(document["notes"][0]["id"], "one-sided", "{words}");
        assert!(number(total(&document), sent) > 0, "{words}");
    }
}

/// The kernel counts a segment as sent before its own queue refuses it, and again when it is sent.
#[test]
fn a_queue_of_the_own_host_that_drops_leaves_the_ledger_balanced() {
    let _alone = alone();
    let Some(hosts) = Hosts::new("TCP through a short queue of its own host") else {
        return;
    };
    hosts
        .a
        .tc("qdisc add dev a0 root tbf rate 1mbit burst 8kb latency 200ms");
    let server = hosts.b.serve("");
    for words in ["-t 2", "-n 300K", "-t 2 -P 3"] {
        let document = run(&mut hosts.client(&server, &format!("{words} --json")), LONG)
            .expect(0)
            .json();
        assert_balanced(&document, words);
        assert!(number(total(&document), "/read") > 0, "{words}");
    }
    // Over before the first reading of a series: what the first burst lost is in the counters of before and after.
    hosts
        .a
        .tc("qdisc replace dev a0 root tbf rate 400mbit burst 3kb limit 6kb");
    let folder = Folder::new();
    let file = folder.file("run.json");
    let mut command = hosts.client(&server, "-n 40K --json -o");
    let document = run(command.arg(&file), LONG).expect(0).json();
    assert_balanced(&document, "a burst into a short queue");
    let record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let dropped = |when: &str| {
        let counted = format!("/client/interface_counters/{when}/qdisc_dropped");
        number(&record, &counted)
    };
    assert!(dropped("after") > dropped("before"), "{record:.300}");
}
