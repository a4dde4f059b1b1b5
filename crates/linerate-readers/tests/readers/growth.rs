//! CPU time grows with the input's length and not faster, and what would take too much memory is refused by name.

use std::fmt::Write as _;

use linerate_explain::transcript::explain;
use linerate_kernel::clock;
use linerate_model::transcript::Given;
use linerate_model::units::Nanos;
use linerate_readers::{MOST_OPEN, MOST_PARTS, MOST_VALUES, read};
use linerate_report::transcript;

/// Lines that one line of input stands for: so many times as long an input takes so many times as long.
const TIMES: usize = 4;
/// Twice that is not linear, with room for a busy machine; what grows with the square takes sixteen times as long.
const MOST_RATIO: f64 = 9.0;
/// Lines of the shorter input.
const LINES: usize = 4000;
/// A busy machine is asked again so often.
const TRIES: usize = 8;

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, at| {
        let _ = writeln!(text, "{}", line(at));
        text
    })
}

fn connection(id: usize) -> String {
    format!("[{id}] local 10.0.0.1 port 40000 connected with 10.0.0.2 port 5001")
}

fn row(stream: &str, from: usize, behind: &str) -> String {
    let to = from + 1;
    format!("[{stream}]  {from}.0-{to}.0 sec  110 MBytes  923 Mbits/sec{behind}")
}

/// Reads, explains and prints: the CPU time of it, which waiting for a CPU is no part of.
fn time(text: &str) -> Nanos {
    let begun = clock::thread_cpu();
    let read = read("generated", text.as_bytes()).unwrap();
    let reading = explain(vec![read], Given::default());
    assert!(!transcript::report(&reading).is_empty());
    assert!(!transcript::document(&reading).is_empty());
    clock::thread_cpu().since(begun)
}

/// Holds the time of an input against that of one [`TIMES`] as long.
#[track_caller]
fn is_linear(name: &str, input: impl Fn(usize) -> String) {
    let (short, long) = (input(LINES), input(LINES * TIMES));
    let (mut least_short, mut least_long) = (Nanos(u64::MAX), Nanos(u64::MAX));
    let mut ratio = f64::INFINITY;
    for _ in 0..TRIES {
        least_short = least_short.min(time(&short));
        least_long = least_long.min(time(&long));
        ratio = least_long.0 as f64 / least_short.0 as f64;
        if ratio < MOST_RATIO {
            return;
        }
    }
    panic!(
        "{name}: {TIMES} times the input takes {ratio:.1} times as long ({} ns, {} ns)",
        least_short.0, least_long.0
    );
}

#[test]
fn repeated_totals_of_iperf_take_linear_time() {
    let total = |stream: &str, end: &str| {
        format!("[{stream}]  0.0-10.0 sec  1.10 GBytes  942 Mbits/sec  {end}")
    };
    is_linear("sums", |count| lines(count, |_| total("SUM", "")));
    is_linear("one stream", |count| lines(count, |_| total("3", "")));
    is_linear("streams", |count| {
        lines(count, |at| total(&at.to_string(), ""))
    });
    is_linear("iperf3's sums", |count| {
        lines(count, |at| total("SUM", ["0 sender", "receiver"][at % 2]))
    });
    is_linear("iperf3's streams with sums", |count| {
        lines(count / 2, |at| {
            let stream = total(&at.to_string(), "0 sender");
            format!("{stream}\n{}", total("SUM", "0 sender"))
        })
    });
    is_linear("connections and totals", |count| {
        let connections = lines(count / 2, connection);
        connections + &lines(count / 2, |at| total(&at.to_string(), ""))
    });
}

#[test]
fn intervals_of_iperf_take_linear_time() {
    is_linear("two streams with sums", |count| {
        lines(2, connection)
            + &lines(count / 3, |at| {
                ["0", "1", "SUM"].map(|one| row(one, at, "")).join("\n")
            })
    });
    is_linear("two streams", |count| {
        lines(2, connection)
            + &lines(count / 2, |at| {
                ["0", "1"].map(|one| row(one, at, "")).join("\n")
            })
    });
    is_linear("many streams with a window", |count| {
        let streams = count / 5;
        (0..4).fold(lines(streams, connection), |text, from| {
            text + &lines(streams, |id| {
                row(&id.to_string(), from, "   0   3.05 MBytes")
            })
        })
    });
    is_linear("datagrams and disorder", |count| {
        lines(1, connection)
            + &lines(count / 2, |_| {
                "[0]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec   0.005 ms    0/  893 (0%)\n\
                 [0]  0.0-10.0 sec  3 datagrams received out-of-order"
                    .to_owned()
            })
    });
}

#[test]
fn csv_and_json_take_linear_time() {
    let csv = |id: usize, from: usize, more: &str| {
        let to = from + 1;
        format!(
            "20260101000000,10.0.0.1,5001,10.0.0.2,40000,{id},{from}.0-{to}.0,117000000,936000000{more}"
        )
    };
    is_linear("streams", |count| lines(count, |at| csv(at, 0, "")));
    is_linear("intervals", |count| lines(count, |at| csv(3, at, "")));
    is_linear("datagrams", |count| {
        lines(count, |_| csv(3, 0, ",0.1,2,1000,0.2,0"))
    });
    let total = |at: usize| {
        format!(r#"{{"socket":{at},"start":0,"end":10,"bytes":125,"bits_per_second":100}}"#)
    };
    is_linear("totals in JSON", |count| {
        let streams: Vec<String> = (0..count / 2)
            .map(|at| format!(r#"{{"sender":{0},"receiver":{0}}}"#, total(at)))
            .collect();
        let streams = streams.join(",");
        format!(r#"{{"start":{{}},"intervals":[],"end":{{"streams":[{streams}]}}}}"#)
    });
    is_linear("devices in JSON", |count| {
        let volumes: Vec<String> = (0..count)
            .map(|at| format!(r#"{{"volume":{at}}}"#))
            .collect();
        let volumes = volumes.join(",");
        format!(
            r#"[{{"name":"r","devices":[{volumes}],"connections":[{{"name":"p","peer_devices":[{volumes}]}}]}}]"#
        )
    });
}

#[test]
fn disks_and_clusters_take_linear_time() {
    is_linear("locks", |count| {
        lines(count, |at| {
            format!(
                "[2012-12-13 15:40:07.881363] E [f.c:277:f] 0-glusterd: Unable to get lock for uuid: a{at}, lock held by: b{at}"
            )
        })
    });
    is_linear("locks and peers that do not answer", |count| {
        lines(count / 2, |at| {
            let time = format!(
                "[2012-12-13 {:02}:{:02}:{:02}.1]",
                at / 3600,
                at / 60 % 60,
                at % 60
            );
            format!(
                "{time} E [f.c:277:f] 0-glusterd: Unable to get lock for uuid: a{at}, lock held by: b{at}\n\
                 {time} E [rpc-clnt.c:1:call_bail] 0-management: bailing out frame type(glusterd mgmt v3) op(--(2)) xid = 0x1 sent = \
                 2012-12-13 00:00:00.1. timeout = 600 for 10.0.0.2:24007"
            )
        })
    });
    let heading = "Device: wrqm/s w/s wMB/s avgqu-sz await r/s %util\n";
    is_linear("stacked devices", |count| {
        let devices = |name: &str| {
            lines(count / 2, |at| {
                format!("{name}{at} 1.00 2.00 3.00 4.00 5.00 6.00 99.00")
            })
        };
        format!("{heading}{}{}", devices("sd"), devices("md"))
    });
    is_linear("disks in two files", |count| {
        let disks = lines(count / 2, |at| {
            format!("253 {at} dm-{at} 487 0 3884 1 2 3 4 5 6 7 8")
        });
        let queues = lines(count / 2, |at| {
            format!("dm-{at} 1.00 2.00 3.00 4.00 5.00 6.00 99.00")
        });
        format!("{disks}{heading}{queues}")
    });
}

#[test]
fn replicas_arrays_and_probes_take_linear_time() {
    is_linear("events of DRBD", |count| {
        lines(count / 2, |at| {
            format!(
                "2026-11-23T02:23:15+00:00 change resource name:r role:Primary\n2026-11-23T02:23:16+00:00 change peer-device name:r \
                 conn-name:p{at} volume:{at} replication:SyncSource out-of-sync:5"
            )
        })
    });
    is_linear("arrays and their disks", |count| {
        let arrays = lines(count / 8, |at| {
            format!(
                "md{at} : active raid1 sda{at}[0] sdb{at}[1]\n      9 blocks super 1.2 [2/2] [UU]"
            )
        });
        let heading = "Device: wrqm/s w/s wMB/s avgqu-sz await r/s %util\n";
        let rows = lines(count / 8, |at| {
            ["md", "sda", "sdb"]
                .map(|name| format!("{name}{at} 1.00 2.00 3.00 4.00 5.00 6.00 1.00"))
                .join("\n")
        });
        format!("{arrays}{heading}{rows}")
    });
    is_linear("locks of volumes", |count| {
        lines(count / 2, |at| {
            format!(
                "[2026-11-23 02:09:03.1 +0000] W [g.c:5:f] 0-management: Lock for v{0} held by h{at}\n\
                 [2026-11-23 02:09:03.2 +0000]  : volume set v{0} a b : SUCCESS",
                at % 7
            )
        })
    });
    is_linear("jobs of fio", |count| {
        let job = r#"{"jobname":"a","error":0,"write":{"total_ios":1,"iops":1.0,"bw_bytes":1}}"#;
        let options: Vec<String> = (0..count / 2).map(|at| format!(r#""o{at}":"1""#)).collect();
        format!(
            r#"{{"fio version":"3","global options":{{{}}},"jobs":[{}]}}"#,
            options.join(","),
            vec![job; count / 2].join(",")
        )
    });
    is_linear("power cuts", |count| {
        lines(count / 2, |at| {
            format!(r#"{{"fs":"ext4","opts":"o{at}","cut":"log","before":"{at}s","new":"EMPTY"}}"#)
        })
    });
    is_linear("lines around", |count| {
        lines(count, |at| format!("mdadm: message {at}"))
    });
}

#[track_caller]
fn refused(text: &str, words: &str) {
    let error = read("generated", text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains(words), "no '{words}' in: {error}");
    assert!(error.contains("cut it to the runs in question"), "{error}");
}

#[test]
fn too_many_of_something_is_refused_by_name() {
    let runs = |count: usize| {
        lines(count, |_| {
            "20260101000000,10.0.0.1,5001,10.0.0.2,40000,3,0.0-10.0,117,936".to_owned()
        })
    };
    let many = read("generated", runs(MOST_PARTS).as_bytes()).unwrap();
    assert_eq!(many.parts.len(), MOST_PARTS);
    refused(&runs(MOST_PARTS + 1), "more than 16384 tests and tables");

    let inside = |count: usize| {
        lines(count, |id| {
            format!("{}\n{}", connection(id), row(&id.to_string(), 0, ""))
                + &format!("\n{}", row(&id.to_string(), 1, ""))
        })
    };
    assert!(read("generated", inside(MOST_OPEN).as_bytes()).is_ok());
    refused(
        &inside(MOST_OPEN + 1),
        "more than 256 tests that run at the same time",
    );

    let words = "rto:1 rtt:2 cwnd:3 ".repeat(64) + "\n";
    refused(
        &words.repeat(MOST_VALUES / 192 + 1),
        "more than 4194304 words and values",
    );
    let values = format!("[{}0]\n", "0,".repeat(MOST_VALUES));
    refused(
        &format!("[{{\"a\":{values}}}]"),
        "more than 4194304 words and values",
    );
}

#[test]
fn json_that_is_read_again_and_again_is_refused() {
    // Every line begins a value that ends only with the input, and none is of a known kind.
    refused(&"{\"a\":\n".repeat(5000), "more than 16 levels of JSON");
    // Of a document within a few others nothing is lost.
    let run = r#"{"start":{},"intervals":[{"streams":[],"sum":{"start":0,"end":1,"bytes":125,"bits_per_second":1000}}]}"#;
    let within = format!("{{\"results\":\n{{\"first\":\n{run}\n}}\n}}\n");
    assert_eq!(read("generated", within.as_bytes()).unwrap().parts.len(), 1);
}
