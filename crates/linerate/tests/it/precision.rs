//! Tests that end when their rate is known: `--precision`.

use std::process::Command;

use crate::harness::{LONG, Server, alone, assert_balanced, beside, iperf3, measured, number, run};

/// Far longer than a paced rate on loopback needs.
const MOST_NS: u64 = 60_000_000_000;

#[track_caller]
fn ends_early(server: &Server, words: &str) {
    let document = run(
        &mut server
            .free()
            .client(&format!("{words} --precision 10% -t 60 --json")),
        LONG,
    )
    .expect(0)
    .json();
    let precision = &document["precision"];
    assert_eq!(precision["reached"], true, "{words}: {precision}");
    let after = number(&document, "/precision/after_ns");
    assert!(
        (7_000_000_000..MOST_NS).contains(&after),
        "{words}: {after}"
    );
    for direction in precision["directions"].as_array().unwrap() {
        let half = direction["half_width"].as_f64().unwrap();
        assert!(half <= 0.10, "{words}: {half}");
    }
    assert_eq!(document["outcome"]["how"], "completed", "{words}");
    assert_balanced(&document, words);
}

#[test]
fn a_steady_rate_ends_the_test_early_both_ways() {
    measured(beside, || {
        let server = Server::linerate(&[]);
        ends_early(&server, "-b 30M");
        ends_early(&server, "-b 30M -R");
    });
}

#[test]
fn both_directions_and_several_streams_end_early() {
    measured(beside, || {
        let server = Server::linerate(&[]);
        ends_early(&server, "-b 10M -P 3 --bidir");
    });
}

#[test]
fn datagrams_that_the_server_tells_of_end_the_test_early() {
    measured(beside, || {
        let server = Server::linerate(&[]);
        ends_early(&server, "-u -b 10M -P 2");
        ends_early(&server, "-u -b 10M --bidir");
    });
}

#[test]
fn a_stock_server_s_test_ends_early_and_is_confirmed() {
    measured(beside, || {
        let Some(binary) = iperf3("a precision towards iperf3") else {
            return;
        };
        let server = Server::stock(&mut Command::new(binary));
        ends_early(&server, "-b 30M");
        // It paces whole blocks: of 1 MiB, four a second would come, which no short test averages out.
        ends_early(&server, "-b 30M -R -l 8K");
        // What arrives over UDP a stock server does not tell before the end.
        let refused = run(&mut server.free().client("-u -b 10M --precision 5%"), LONG).expect(3);
        assert!(refused.error.contains("--precision"), "{}", refused.error);
        assert!(refused.error.contains("-R"), "{}", refused.error);
        // It takes the next test all the same.
        run(&mut server.free().client("-t 1"), LONG).expect(0);
    });
}

#[test]
fn what_is_not_reached_is_said_with_what_it_would_take() {
    measured(alone, || {
        let server = Server::linerate(&[]);
        // Nothing on loopback is that steady for as short a time.
        let done = run(&mut server.client("--precision 0.05% -t 8"), LONG).expect(0);
        assert!(
            done.out.contains("Precision   not reached: "),
            "{}",
            done.out
        );
        assert!(done.out.contains("at most 8 s"), "{}", done.out);
    });
}
