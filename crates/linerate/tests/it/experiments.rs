//! Questions of several runs: counter-tests, RFC 6349, a remedy applied in a lab.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::harness::{
    Folder, LONG, Server, alone, iperf3, lacks_a_lab, linerate, measured, number, record, run, say,
    start, wait_until,
};

/// What is counted of the runs that followed a test.
#[track_caller]
fn counter_runs(document: &Value) -> &Vec<Value> {
    document["counter_runs"].as_array().expect("a list")
}

#[test]
fn counter_tests_follow_a_test_and_are_kept_with_it() {
    measured(alone, || {
        let folder = Folder::new();
        let file = folder.file("run.json");
        let server = Server::linerate(&[]);
        let words = format!("-b 50M -t 1 --counter-test --json -o {}", file.display());
        let done = run(&mut server.client(&words), LONG).expect(0);
        let document = done.json();
        // 50 Mbit/s are reached on loopback, and the one change is not to ask for them.
        assert!(
            done.error.contains("The first finding is rate-capped"),
            "{}",
            done.error
        );
        let changes: Vec<&str> = counter_runs(&document)
            .iter()
            .map(|run| {
                run.pointer("/variation/change")
                    .and_then(Value::as_str)
                    .unwrap_or("-")
            })
            .collect();
        assert_eq!(changes, ["unpaced", "-", "unpaced"]);
        let test = &document["counter_tests"][0];
        assert_eq!(
            (test["finding"].as_str(), test["verdict"].as_str()),
            (Some("rate-capped"), Some("confirmed"))
        );
        assert!(test["ratio"].as_f64().expect("a ratio") > 2.0, "{test}");
        assert_eq!(
            document.pointer("/findings/0/tested/verdict"),
            Some(&Value::from("confirmed"))
        );
        // The record is the test's, with the runs beside it, and is judged again when it is shown.
        let kept = record(&file);
        assert_eq!(
            (kept.counter_runs.len(), kept.plan.rate_bps.is_some()),
            (3, true)
        );
        let shown = run(&mut linerate(&format!("show {}", file.display())), LONG).expect(0);
        assert!(
            shown
                .out
                .contains("Confirmed: with no rate limit goodput is"),
            "{}",
            shown.out
        );
    });
}

#[test]
fn counter_tests_wait_for_a_server_of_one_test_at_a_time() {
    measured(alone, || {
        let Some(program) = iperf3("counter-tests against a stock server") else {
            return;
        };
        let server = Server::iperf3(&mut Command::new(program));
        let done = run(
            &mut server.client("-b 50M -t 1 --counter-test --json"),
            LONG,
        )
        .expect(0);
        let document = done.json();
        let runs = counter_runs(&document);
        assert_eq!(runs.len(), 3, "{}", done.error);
        for run in runs {
            assert_eq!(
                run.pointer("/outcome/how"),
                Some(&Value::from("completed")),
                "{run}"
            );
        }
    });
}

#[test]
fn a_stop_in_the_middle_keeps_the_test_and_the_runs_before_it() {
    measured(alone, || {
        let server = Server::linerate(&[]);
        let mut command = server.client("-b 50M -t 2 --counter-test --json-stream");
        let mut client = start(&mut command);
        let seen = wait_until(LONG, || {
            client.out().contains("\"counter_run\"") || client.ended()
        });
        assert!(seen, "{}", client.error());
        client.signal("INT");
        let done = client.wait(Duration::from_secs(30)).expect(0);
        let last = done.out.lines().last().expect("the end's line");
        let document: Value = serde_json::from_str(last).expect("it is JSON");
        assert_eq!(document["event"], "end");
        let runs = counter_runs(&document).len();
        assert!((1..3).contains(&runs), "{runs} runs");
        assert_eq!(
            document.pointer("/outcome/how"),
            Some(&Value::from("completed"))
        );
    });
}

#[test]
fn the_steps_of_rfc_6349_give_its_figures() {
    measured(alone, || {
        let ours = Server::linerate(&[]);
        let mut documents = vec![
            run(&mut ours.client("--rfc6349 -t 0.5 --json"), LONG)
                .expect(0)
                .json(),
        ];
        if let Some(program) = iperf3("RFC 6349 against a stock server") {
            let stock = Server::iperf3(&mut Command::new(program));
            documents.push(
                run(&mut stock.client("--rfc6349 -t 0.5 --json"), LONG)
                    .expect(0)
                    .json(),
            );
        }
        for document in documents {
            let report = &document["rfc6349"];
            assert!(number(report, "/path_mtu/value") >= 1500, "{report}");
            assert!(number(report, "/base_rtt/value") > 0);
            assert!(number(report, "/bottleneck/value") > 1_000_000);
            let runs = report["runs"].as_array().expect("a list");
            assert!(!runs.is_empty(), "{report}");
            for run in runs {
                let ratio = run
                    .pointer("/metrics/transfer_time_ratio")
                    .and_then(Value::as_f64);
                assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{run}");
            }
        }
    });
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (words, names) in [
        ("h --rfc6349 -u", "--udp"),
        ("h --rfc6349 --counter-test", "--counter-test"),
        ("h --rfc6349 -w 1M", "--window"),
    ] {
        let done = run(&mut linerate(&format!("test {words}")), LONG).expect(2);
        assert!(done.error.contains(names), "{words}: {}", done.error);
    }
}

#[test]
fn a_remedy_is_applied_to_the_path_whose_record_names_it() {
    measured(alone, || {
        let folder = Folder::new();
        let scenario = folder.with(
        "small.toml",
        "name = \"small\"\n[path]\nrate = \"200M\"\nrtt = \"20ms\"\n[sender]\ntcp_wmem = \"4096 16384 33554432\"\n[receiver]\n\
         tcp_rmem = \"4096 131072 262144\"\n[test]\nargs = \"-t 3\"\n",
    );
        let (scenario, before) = (scenario.display(), folder.file("before.json"));
        let first = run(
            &mut linerate(&format!(
                "lab run {scenario} --json -- -o {}",
                before.display()
            )),
            LONG,
        );
        if lacks_a_lab("a remedy in a lab", &first.error) {
            return;
        }
        let first = first.expect(0).json();
        assert_eq!(
            first.pointer("/test/findings/0/id"),
            Some(&Value::from("receive-window"))
        );
        let second = run(
            &mut linerate(&format!(
                "lab run {scenario} --json --remedy-of {}",
                before.display()
            )),
            LONG,
        )
        .expect(0);
        assert!(
            second.error.contains(
                "Remedy for receive-window: on the lab's receiver, set net.ipv4.tcp_rmem = "
            ),
            "{}",
            second.error
        );
        let rate = |document: &Value| number(document, "/test/summary/goodput_bps");
        let second = second.json();
        assert!(
            rate(&second) * 2 > rate(&first) * 3,
            "{} and {}",
            rate(&first),
            rate(&second)
        );
        // A record whose findings name no remedy is said to be one.
        let after = folder.file("healthy.json");
        let server = Server::linerate(&[]);
        let words = format!("-b 5M -t 1 --json -o {}", after.display());
        run(&mut server.client(&words), LONG).expect(0);
        let done = run(
            &mut linerate(&format!(
                "lab run {scenario} --remedy-of {}",
                after.display()
            )),
            LONG,
        )
        .expect(1);
        assert!(
            done.error
                .contains("names no remedy to apply: found was rate-capped"),
            "{}",
            done.error
        );
    });
}

#[test]
fn a_policer_and_a_short_queue_are_told_apart_by_what_waits() {
    const POLICED: &str = "name = \"policed\"\n[path]\nrate = \"100M\"\nrtt = \"20ms\"\nqueue = \"300kB\"\n\
        [path.forward]\npolicer = { rate = \"25M\", burst = 40000 }\n[test]\nargs = \"-t 6\"\n[expect]\ntop = \"policer\"\n";
    const SHORT: &str = "name = \"short\"\n[path]\nrate = \"25M\"\nrtt = \"15ms\"\nqueue = \"9kB\"\n[test]\n\
        args = \"-t 6\"\n[expect]\ntop = [\"network-loss\", \"path-full\"]\n";
    measured(alone, || {
        let (folder, kept) = (Folder::new(), Folder::new());
        folder.with("policed.toml", POLICED);
        folder.with("short.toml", SHORT);
        let words = format!(
            "lab grade {} --diagnose --json --keep {}",
            folder.path().display(),
            kept.path().display()
        );
        let done = run(&mut linerate(&words), 4 * LONG);
        if lacks_a_lab("diagnoses across a lab's paths", &done.error) {
            return;
        }
        for row in done.json().as_array().expect("rows") {
            let run = &row["runs"][0];
            // Of what a late lab carried nothing is known: the grade made it again, and says so where that goes on.
            if run["disturbed"] != false {
                say(&format!(
                    "{}: the lab was late in each attempt",
                    row["name"]
                ));
                continue;
            }
            let seed = run["seed"].as_u64().expect("a seed");
            let name = row["name"].as_str().expect("a name");
            let kept = record(&kept.file(&format!("{name}-{seed}.json")));
            let runs = &kept.counter_runs;
            assert!((1..=6).contains(&runs.len()), "{runs:?}");
            let first = run["findings"][0].as_str().unwrap_or("-");
            let right: &[&str] = if name == "short" {
                &["network-loss", "path-full"]
            } else {
                &["policer"]
            };
            assert!(right.contains(&first), "{run}\n{runs:?}");
            for passage in runs.iter().filter_map(|run| run.passage) {
                if passage.lost_share > 0.1 {
                    assert!(
                        (22e6..25.2e6).contains(&passage.delivered_bps),
                        "{passage:?}"
                    );
                    // Nine kilobytes take 2.9 ms at 25 Mbit/s.
                    assert_eq!(passage.waited_us > 1000.0, name == "short", "{passage:?}");
                }
            }
        }
    });
}

#[test]
fn a_diagnosis_is_refused_where_it_cannot_be_made_and_ends_with_its_budget() {
    for (words, why) in [
        (
            "test 127.0.0.1 --diagnose --counter-test",
            "cannot be used with",
        ),
        ("test 127.0.0.1 --diagnose -u", "cannot be used with"),
        ("test 127.0.0.1 --budget 30s", "--diagnose"),
        ("test 127.0.0.1 --diagnose --budget 0s", "such as 90s"),
        ("test 127.0.0.1 --diagnose --budget soon", "such as 90s"),
    ] {
        let done = run(&mut linerate(words), LONG).expect(2);
        assert!(done.error.contains(why), "{words}: {}", done.error);
    }
    let server = Server::linerate(&[]);
    let done = run(
        &mut server.client("-t 1 --diagnose --budget 1kB --json"),
        LONG,
    )
    .expect(0);
    assert!(counter_runs(&done.json()).is_empty());
    assert!(
        done.error.contains("budget is used up")
            || done.error.contains("none of this kind can decide"),
        "{}",
        done.error
    );
}
