//! `linerate self`: what this host carries with both ends on it.

use linerate_testing::{Need, skipped};

use crate::harness::{LONG, alone, linerate, measured, run, say};

#[test]
fn a_host_says_what_it_carries_by_itself() {
    measured(alone, || {
        let done = run(&mut linerate("self -t 0.5 --json"), LONG).expect(0);
        let document = done.json();
        assert_eq!(document["kind"], "host_limit");
        let paths = document["paths"].as_array().unwrap();
        assert_eq!(paths[0]["path"], "loopback");
        if let Some(veth) = paths.get(1) {
            assert_eq!(
                (&veth["path"], &veth["mtu_bytes"]),
                (&"veth".into(), &1500.into())
            );
        } else {
            let why = document["left_out"][0].as_str().unwrap();
            assert!(why.starts_with("a veth pair: "), "{why}");
            skipped(Need::VirtualLinks, "what a veth pair carries", why);
        }
        for path in paths {
            let runs = path["runs"].as_array().unwrap();
            assert_eq!(runs.len(), 6);
            for carried in runs {
                assert_eq!(carried["error"], serde_json::Value::Null, "{carried}");
                assert!(carried["goodput_bps"].as_u64().unwrap() > 0, "{carried}");
                let cost = carried["sender_seconds_per_gigabyte"].as_f64().unwrap();
                assert!(cost > 0.0, "{carried}");
            }
            assert_eq!(runs[1]["sending"], "copied", "{}", runs[1]);
            assert_eq!(runs[0]["sent_bps"], serde_json::Value::Null, "{}", runs[0]);
            assert!(runs[5]["sent_bps"].as_u64().unwrap() > 0, "{}", runs[5]);
            assert_eq!(runs[0]["datagrams"], serde_json::Value::Null, "{}", runs[0]);
            let count = |what: &str| runs[5]["datagrams"][what].as_u64();
            assert!(
                count("sent").unwrap() > count("lost").unwrap(),
                "{}",
                runs[5]
            );
            assert!(count("socket_dropped") <= count("lost"), "{}", runs[5]);
            let zerocopy = runs[2]["sending"].as_str().unwrap();
            assert!(zerocopy.starts_with("zerocopy"), "{}", runs[2]);
        }
        for timer in document["timers"].as_array().unwrap() {
            assert!(timer["late"]["count"].as_u64().unwrap() > 0, "{timer}");
        }
        assert!(document["wake_up"]["median_ns"].as_u64().unwrap() > 0);
        let time = &document["cpu_time"];
        let own = time["own"].as_f64().unwrap();
        assert!(own > 0.0 && own <= 1.0, "{time}");
        say(&format!("self: {time}"));
    });
}

#[test]
fn runs_of_no_length_are_refused() {
    for time in ["0", "0.1", "61", "x"] {
        let done = run(&mut linerate(&format!("self -t {time}")), LONG).expect(2);
        assert!(done.error.contains("-t"), "{}", done.error);
    }
}
