//! The verdict names what holds a path, in network namespaces that are made so.

use std::time::Duration;

use linerate_testing::{Need, skipped};

use crate::harness::{Host, Hosts, LONG, alone, checks, findings, measured, number, run};

/// Below, round trips are short. There bbr paces what the window would allow, and the kernel's clocks share the
/// time between the two; reno waits for the window alone.
const RENO: &str = "-C reno";

/// The findings of a test of three seconds over TCP.
#[track_caller]
fn verdict(hosts: &Hosts, words: &str) -> Vec<String> {
    let server = hosts.b.serve("--one-off");
    let document = run(
        &mut hosts.client(&server, &format!("-t 3 {words} --json")),
        LONG,
    )
    .expect(0)
    .json();
    server.ends().expect(0);
    assert_eq!(document["ledger"]["balanced"], true);
    let found = findings(&document);
    assert!(!found.is_empty());
    found
}

/// Makes the receive buffers of a host's TCP small, and its acknowledgements wait a quarter of a millisecond for
/// their turn; false where its sysctls cannot be set.
fn small_buffers(host: &Host, device: &str, what: &str) -> bool {
    if let Err(why) = host.sysctl("net.ipv4.tcp_rmem", "4096 65536 65536") {
        skipped(Need::NamespaceSysctls, what, &why);
        return false;
    }
    host.tc(&format!(
        "qdisc add dev {device} root tbf rate 2mbit burst 2kb latency 1s"
    ));
    true
}

#[test]
fn a_small_receive_buffer_is_the_receive_window() {
    measured(alone, || {
        let what = "a path with a small receive buffer";
        let Some(hosts) = Hosts::new(what) else {
            return;
        };
        if small_buffers(&hosts.b, "b0", what) {
            let found = verdict(&hosts, RENO);
            assert_eq!(found[0], "receive-window", "{found:?}");
            assert!(!found.iter().any(|id| id == "path-full"), "{found:?}");
        }
    });
}

#[test]
fn a_small_receive_buffer_at_the_client_is_the_receive_window_in_reverse() {
    measured(alone, || {
        let what = "a path with a small receive buffer, in reverse";
        let Some(hosts) = Hosts::new(what) else {
            return;
        };
        if small_buffers(&hosts.a, "a0", what) {
            let found = verdict(&hosts, &format!("-R {RENO}"));
            assert_eq!(found[0], "receive-window", "{found:?}");
            assert!(!found.iter().any(|id| id == "path-full"), "{found:?}");
        }
    });
}

#[test]
fn a_slow_queue_is_a_full_path() {
    measured(alone, || {
        let Some(hosts) = Hosts::new("a path with a slow queue") else {
            return;
        };
        hosts
            .a
            .tc("qdisc add dev a0 root tbf rate 100mbit burst 64kb latency 100ms");
        for words in ["", "-P 4"] {
            let found = verdict(&hosts, words);
            assert_eq!(found[0], "path-full", "{words}: {found:?}");
            assert!(
                !found.iter().any(|id| id == "receive-window"),
                "{words}: {found:?}"
            );
        }
    });
}

#[test]
fn a_rate_that_was_asked_for_is_not_the_paths() {
    measured(alone, || {
        let Some(hosts) = Hosts::new("a path that is asked for little") else {
            return;
        };
        let found = verdict(&hosts, "-b 20M");
        assert_eq!(found[0], "rate-capped", "{found:?}");
    });
}

/// Frames longer than the far end takes vanish, and no message says so: data stalls, but the control
/// connection's segments are small from the first.
#[test]
fn where_large_packets_vanish_the_result_still_comes() {
    measured(alone, || {
        let Some(hosts) = Hosts::new("a path where large packets vanish") else {
            return;
        };
        // One packet a segment, so that the far end sees their real length.
        hosts.a.ip("link set a0 gso_max_segs 1");
        hosts.b.ip("link set b0 mtu 600");
        hosts.b.ip("route replace 192.0.2.0/30 dev b0 advmss 1460");
        let server = hosts.b.serve("");
        let done = run(
            &mut hosts.client(&server, "-t 2 --json"),
            Duration::from_secs(50),
        );
        let document = done.json();
        assert!(number(&document, "/ledger/directions/0/total/written") > 0);
        // The server's half came through, and says that nothing arrived.
        assert_eq!(document["server"]["known"], true, "{}", done.error);
        assert_eq!(number(&document, "/ledger/directions/0/total/read"), 0);
        let broken: Vec<_> = checks(&document)
            .into_iter()
            .filter(|check| !check.holds)
            .collect();
        assert!(broken.is_empty(), "{broken:?}");
        assert!(
            done.code() == Some(0) || done.code() == Some(4),
            "{:?}",
            done.code()
        );
    });
}
