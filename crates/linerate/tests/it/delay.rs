//! One-way delay of datagrams: across a path whose delay is known, and that nothing received is left out.

use serde_json::Value;

use crate::harness::{
    Folder, LONG, Server, alone, beside, lacks_a_lab, linerate, measured, number, record, run, say,
};

/// The path takes 10 ms each way.
const PATH: &str = "name = \"delayed\"\n[path]\nrate = \"100M\"\nrtt = \"20ms\"\n[test]\nargs = \"-t 3 -u -b 20M\"\n";
const WAY_NS: u64 = 10_000_000;

fn delay<'a>(document: &'a Value, at: &str) -> &'a Value {
    document
        .pointer(&format!("{at}/summary/directions/0/delay"))
        .unwrap()
}

/// Each datagram received is in the histogram, and in a part of the test.
#[track_caller]
fn assert_complete(document: &Value, at: &str) -> u64 {
    let told = delay(document, at);
    let counted = number(told, "/datagrams");
    let sum = |of: &Value, count: &dyn Fn(&Value) -> u64| -> u64 {
        of.as_array().unwrap().iter().map(count).sum()
    };
    let buckets = sum(&told["above_least"]["buckets"], &|bucket| {
        number(bucket, "/1")
    });
    let parts = sum(&told["over_time"], &|part| number(part, "/datagrams"));
    assert_eq!((buckets, parts), (counted, counted));
    counted
}

#[test]
fn a_path_of_10_ms_takes_10_ms() {
    measured(alone, || {
        let what = "a path of 10 ms";
        let folder = Folder::new();
        let file = folder.with("delayed.toml", PATH);
        for words in ["", "-- -t 3 -u -b 20M -R"] {
            let command = format!("lab run {} --json {words}", file.display());
            let done = run(&mut linerate(&command), LONG);
            if lacks_a_lab(what, &done.error) {
                return;
            }
            let document = done.expect(0).json();
            assert!(assert_complete(&document, "/test") > 1000);
            let one_way = &delay(&document, "/test")["one_way"];
            let uncertainty = number(one_way, "/uncertainty_ns");
            let [least, mean, median, p99] = ["least", "mean", "median", "p99"]
                .map(|name| number(one_way, &format!("/delay/{name}_ns")));
            say(&format!(
                "delay of a path of 10 ms {words}: lowest {least}, mean {mean}, median {median}, 99 % {p99} ns ±{uncertainty}"
            ));
            // No ping is faster than the path, and the true delay is never outside of the uncertainty.
            assert!(uncertainty >= WAY_NS, "{one_way}");
            assert!(least + uncertainty >= WAY_NS, "{one_way}");
            // Both directions take equally long: what pings and datagrams wait for a CPU is all that is left.
            assert!(
                (WAY_NS - 3_000_000..WAY_NS + 10_000_000).contains(&median),
                "{one_way}"
            );
            assert!(least <= median && median <= p99, "{one_way}");
        }
    });
}

#[test]
fn every_datagram_received_is_in_the_histogram() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let folder = Folder::new();
    for words in ["-P 3", "-R", "-O 1 --bidir"] {
        let file = folder.file("run.json");
        let command = format!("-u -b 20M -t 2 {words} --json -o");
        let document = run(server.client(&command).arg(&file), LONG)
            .expect(0)
            .json();
        let kept = record(&file);
        for end in [&kept.client, &kept.server].into_iter().flatten() {
            for stream in &end.streams {
                let counts = stream.udp.as_ref().unwrap();
                let Some(transits) = &counts.transits else {
                    assert!(stream.sends, "{words}");
                    continue;
                };
                assert!(!stream.sends && counts.received > 0, "{words}");
                let held = transits.count() + transits.omitted;
                assert_eq!(held, counts.received, "{words}");
                assert_eq!(transits.omitted > 0, words.contains("-O"), "{words}");
            }
        }
        let flow = kept.flows()[0];
        let receiver = kept.end(flow.receiver()).unwrap();
        let received = receiver.streams_of(flow).map(|stream| {
            let counts = stream.udp.as_ref().unwrap();
            counts.received - counts.transits.as_ref().unwrap().omitted
        });
        assert_eq!(assert_complete(&document, ""), received.sum::<u64>());
        let told = delay(&document, "");
        assert!(told["one_way"].is_object(), "{words}: {told}");
        assert_eq!(told["not_compared"], Value::Null, "{words}");
    }
}
