//! What is expected before a test, and what a test is held against: `linerate expect`, `test --expect`,
//! `test --provisioned`.

use std::time::Duration;

use linerate_testing::{Need, skipped};
use serde_json::Value;

use crate::harness::{
    Done, Folder, LONG, Server, alone, beside, lacks_a_lab, linerate, measured, run, say, start,
    wait_until,
};

#[test]
fn a_path_is_answered_as_text_and_as_json() {
    let _beside = beside();
    let words = "expect --rate 10G --rtt 60ms --mtu 9000 --loss 1e-6 -t 10 -P 2 -C cubic";
    let text = run(&mut linerate(words), LONG).expect(0).out;
    for part in [
        "10.0 Gbit/s of Ethernet, RTT 60.0 ms, MTU 9000, IPv4, 2 streams of cubic",
        "9.90 Gbit/s at most: 8,948 of every 9,038 bytes",
        "as this host is configured",
        "as tuned",
        "net.ipv4.tcp_rmem",
        "not in these figures",
    ] {
        assert!(text.contains(part), "no '{part}' in:\n{text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let json = run(&mut linerate(&format!("{words} --json")), LONG)
        .expect(0)
        .json();
    assert_eq!(json["bdp_bytes"], 75_000_000);
    assert_eq!(json["question"]["mtu_bytes"], 9000);
    let tuned = json["tuned"]["plateau_bps"][1].as_f64().unwrap();
    let most = json["framing"]["goodput_bps"].as_f64().unwrap();
    assert!(tuned <= most * 1.000_001, "{tuned} of {most}");
}

#[test]
fn a_question_that_cannot_be_names_its_option() {
    let _beside = beside();
    for (words, named) in [
        ("--rtt 60ms", "--rate"),
        ("--rate 10G", "--rtt"),
        ("--rate 0 --rtt 60ms", "--rate"),
        ("--rate 10Q --rtt 60ms", "--rate"),
        ("--rate 10G --rtt 60", "--rtt"),
        ("--rate 10G --rtt 0ms", "--rtt"),
        ("--rate 10G --rtt 60ms --mtu 60", "--mtu"),
        ("--rate 10G --rtt 60ms --loss 1", "--loss"),
        ("--rate 10G --rtt 60ms -P 0", "-P"),
        ("--rate 10G --rtt 60ms -t 0", "-t"),
        ("--rate 10G --rtt 60ms -w 0", "--window"),
        ("--rate 10G --rtt 60ms -6 --to 192.0.2.1", "--to"),
        ("--rate 10G --rtt 60ms --to nowhere", "--to"),
    ] {
        let done = run(&mut linerate(&format!("expect {words}")), LONG).expect(2);
        assert!(done.error.contains(named), "{words}: {}", done.error);
        assert_eq!(done.out, "", "{words}");
    }
}

/// A test that is held against what is wanted. One that does not decide (exit code 8: the machine was busy with
/// something else, and the interval is wide) is made again, at most twice.
#[track_caller]
fn held_against(server: &Server, words: &str, wanted: &str, code: i32) -> Done {
    const INCONCLUSIVE: i32 = 8;
    let once = || {
        let mut command = server.client(&format!("{words} --expect"));
        run(command.arg(wanted), LONG)
    };
    let mut done = once();
    for _ in 0..2 {
        if code == INCONCLUSIVE || done.code() != Some(INCONCLUSIVE) {
            break;
        }
        done = once();
    }
    done.expect(code)
}

/// The document of such a test.
#[track_caller]
fn test(server: &Server, words: &str, wanted: &str, code: i32) -> Value {
    held_against(server, &format!("{words} --json"), wanted, code).json()
}

#[test]
fn a_rate_passes_fails_or_is_not_decided_and_show_says_the_same() {
    measured(beside, || {
        let server = Server::linerate(&[]);
        for words in [
            "-b 20M -t 2",
            "-b 20M -t 2 -R",
            "-u -b 20M -t 2",
            "-b 20M -t 2 --bidir",
        ] {
            let passed = test(&server, words, ">= 10M", 0);
            assert_eq!(passed["expect"]["verdict"], "pass", "{words}");
            let failed = test(&server, words, "> 40M", 7);
            assert_eq!(failed["expect"]["verdict"], "fail", "{words}");
            assert_eq!(failed["plan"]["expect"], "> 40M");
        }
        // Over before there were samples enough for an interval.
        let short = test(&server, "-n 100K", ">= 1M", 8);
        assert_eq!(short["expect"]["verdict"], "inconclusive");
        let folder = Folder::new();
        let file = folder.file("run.json");
        let words = format!("-b 20M -t 2 --provisioned 20M -o {}", file.display());
        let told = held_against(&server, &words, ">=50%", 0);
        assert!(
            told.out
                .contains("Expected    PASS: >= 50% wanted of 20.0 Mbit/s"),
            "{}",
            told.out
        );
        let shown = run(linerate("show").arg(&file), LONG).expect(0);
        assert!(
            told.out.ends_with(&shown.out),
            "{}\n{}",
            told.out,
            shown.out
        );
    });
}

#[test]
fn a_test_that_was_stopped_never_passes() {
    measured(beside, || {
        let server = Server::linerate(&[]);
        let client = start(&mut server.client("-b 20M -t 60 --expect >=1M"));
        let runs = wait_until(Duration::from_secs(20), || client.out().contains(" s  "));
        assert!(runs, "{}", client.out());
        client.signal("INT");
        let done = client.wait(LONG).expect(8);
        assert!(done.out.contains("INCONCLUSIVE"), "{}", done.out);
        assert!(done.error.contains("does not decide"), "{}", done.error);
    });
}

#[test]
fn less_than_was_bought_and_more_are_told() {
    measured(beside, || {
        let server = Server::linerate(&[]);
        for (bought, words) in [
            ("40M", "below the contracted 40.0 Mbit/s"),
            ("20M", "As contracted (20.0 Mbit/s)"),
            ("10M", "above the contracted 10.0 Mbit/s"),
        ] {
            let told = run(
                &mut server.client(&format!("-b 20M -t 2 --provisioned {bought}")),
                LONG,
            )
            .expect(0);
            // Without its line breaks.
            let text = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(words), "{bought}:\n{}", told.out);
        }
    });
}

/// The answer of `expect` for a path, and what a lab of that path gives.
#[test]
fn what_is_expected_of_a_path_is_what_the_lab_gives() {
    let _alone = alone();
    let folder = Folder::new();
    for (name, rate, rtt, path) in [
        ("healthy", "100M", "20ms", ""),
        ("lossy", "200M", "20ms", "[path.forward]\nloss = 1e-3\n"),
    ] {
        let scenario = folder.with(
            &format!("{name}.toml"),
            format!(
                "name = \"{name}\"\n[path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\nqueue = \"1x\"\n{path}\
                 [sender]\ntcp_wmem = \"4096 16384 33554432\"\n[receiver]\ntcp_rmem = \"4096 131072 33554432\"\n"
            ),
        );
        let lossy = !path.is_empty();
        let omit = if lossy { "-t 12 -O 2" } else { "-t 8" };
        let loss = if lossy { "--loss 1e-3" } else { "" };
        let words = format!("expect --rate {rate} --rtt {rtt} --mtu 1500 -C cubic {loss} --json");
        let expected = run(&mut linerate(&words), LONG).expect(0).json();
        let expected = expected["tuned"]["plateau_bps"][1].as_f64().unwrap();
        // A full path is arithmetic; under loss some dozen losses decide.
        let within = if lossy { 0.35 } else { 0.02 };
        // A run that the machine disturbed shows nothing; it is made again, three times at most.
        let mut held = None;
        for _ in 0..3 {
            let words = format!("lab run {} --json -- {omit}", scenario.display());
            let done = run(&mut linerate(&words), LONG);
            if lacks_a_lab("expectations in the lab", &done.error) {
                return;
            }
            let told = done.expect(0).json();
            let measured = told["test"]["summary"]["goodput_bps"].as_f64().unwrap();
            say(&format!(
                "{name}: expected {expected:.0}, measured {measured:.0} bit/s"
            ));
            let near = (measured / expected - 1.0).abs() < within;
            let disturbed = told["lab"]["bottleneck"]
                .as_array()
                .is_some_and(|why| !why.is_empty());
            held = Some((near, disturbed, measured));
            if near || !disturbed {
                break;
            }
        }
        let (near, disturbed, measured) = held.unwrap();
        if disturbed && !near {
            skipped(
                Need::QuietMachine,
                "an expectation in the lab",
                "the machine disturbed each of three runs",
            );
            continue;
        }
        assert!(near, "{name}: {measured} where {expected} was expected");
    }
}
