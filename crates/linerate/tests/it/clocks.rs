//! Two hosts have two clocks. A time namespace gives one machine two, so that mistakes show.

use std::process::Command;

use linerate_testing::{Need, skipped};

use crate::harness::{Folder, LINERATE, LONG, Server, alone, assert_balanced, number, record, run};

/// The server's clock is this much ahead.
const AHEAD_S: i64 = 100_000;

#[test]
fn the_clocks_offset_is_found_and_accounted_for() {
    let _alone = alone();
    // The namespace's clock begins with the first process in it: `unshare --time` forks it.
    let inside = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args([
                "--user",
                "--map-root-user",
                "--time",
                "--monotonic",
                &AHEAD_S.to_string(),
            ])
            .args(["--fork", "--kill-child", "--"])
            .args(words);
        command
    };
    match inside(&["true"]).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return skipped(Need::TimeNamespaces, "two clocks", &why);
        }
        Err(error) => return skipped(Need::Programs, "two clocks", &format!("unshare: {error}")),
    }
    let server = Server::announced(&mut inside(&[LINERATE, "serve", "-p", "0", "--one-off"]));
    let folder = Folder::new();
    let file = folder.file("run.json");
    let done = run(server.client("-t 1 --json -o").arg(&file), LONG).expect(0);
    server.ends().expect(0);
    let document = done.json();
    let kept = record(&file);
    let clock = kept.clock.unwrap();
    for offset in [clock.before, clock.after.unwrap()] {
        let off = (offset.offset_ns - AHEAD_S * 1_000_000_000).unsigned_abs();
        assert!(off <= offset.uncertainty_ns + 1_000_000, "{offset:?}");
    }
    let (client, server) = (kept.client.as_ref().unwrap(), kept.server.as_ref().unwrap());
    let apart = server.start_ns.0.abs_diff(client.start_ns.0);
    assert!(
        apart > 99_000 * 1_000_000_000,
        "the two clocks are {apart} ns apart"
    );
    assert_balanced(&document, "two clocks");
    let direction = &document["summary"]["directions"][0];
    assert!(number(direction, "/goodput_bps") > 0);
    let budget = &direction["time_budget"];
    let shares: f64 = ["application", "send_buffer", "receive_window", "network"]
        .iter()
        .map(|share| budget[share].as_f64().unwrap())
        .sum();
    assert!((shares - 1.0).abs() < 1e-6, "{budget}");
    // Spans are told since the start of the test, not on one of the clocks.
    let span = number(direction, "/span_ns");
    assert!(span < 5_000_000_000, "{span}");
    for interval in document["intervals"].as_array().unwrap() {
        assert!(number(interval, "/to_ns") < 5_000_000_000, "{interval}");
    }
}
