//! The record as a file.

use linerate_model::plan::Plan;
use linerate_model::record::{EndRecord, RecordError, RunRecord};
use linerate_model::series::Series;
use linerate_model::tcp_info::FIELDS;
use linerate_report::text::Style;
use linerate_report::{json, record, text};
use linerate_testing::fixture::{self, Traffic};

use crate::runs;

#[test]
fn a_record_that_was_kept_shows_identically() {
    for (name, made) in runs::all() {
        let back = record::from_json(&record::to_json(&made)).unwrap();
        assert_eq!(back, made, "{name}");
        assert_eq!(
            text::report(&runs::view(&back), Style::plain()),
            text::report(&runs::view(&made), Style::plain()),
            "{name}"
        );
        assert_eq!(
            json::document(&runs::view(&back), &back),
            json::document(&runs::view(&made), &made),
            "{name}"
        );
    }
}

#[test]
fn a_newer_schema_is_refused_and_an_unknown_field_is_not() {
    let made = fixture::run(
        &runs::tcp(),
        &Traffic {
            seconds: 0.2,
            ..Traffic::default()
        },
    );
    let text = String::from_utf8(record::to_json(&made)).unwrap();
    let newer = text.replacen("\"schema_version\":1", "\"schema_version\":2", 1);
    assert_eq!(
        record::from_json(newer.as_bytes()),
        Err(RecordError::Newer { found: 2 })
    );
    // Newer and of another shape altogether: still the clear word.
    let error = record::from_json(br#"{"schema_version": 7, "runs": []}"#)
        .unwrap_err()
        .to_string();
    assert!(error.contains("schema version 7"), "{error}");
    let unknown = text.replacen('{', r#"{"colour":"blue","#, 1);
    assert_eq!(record::from_json(unknown.as_bytes()).unwrap(), made);
}

#[test]
fn what_is_no_record_says_why() {
    for (input, why) in [
        (&b""[..], "it is empty"),
        (b"hello", "it is not a JSON object"),
        (b"{}", "it has no schema_version"),
        (b"{\"schema_version\":0}", "its schema_version is 0"),
        (b"{\"schema_version\":1}", "missing field"),
        (b"[1,2]", "it is not a JSON object"),
        (b"{\"schema_version\":1,\"start\":", "EOF"),
        (b"\xff\xfe", "it is not a JSON object"),
    ] {
        let error = record::from_json(input).unwrap_err();
        assert!(matches!(error, RecordError::NotARecord { .. }), "{error}");
        assert!(
            error.to_string().contains(why),
            "{}: {error}",
            String::from_utf8_lossy(input)
        );
    }
}

/// A small generator of noise.
struct Noise(u64);

impl Noise {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % (most + 1)
    }
}

#[expect(clippy::unwrap_used, reason = "a test may panic")]
/// Replaces what the fixture keeps flat by what eight busy streams on 10 Gbit/s do: 20 columns vary at a
/// sender, 12 at a receiver, whose kernel has little to count.
fn shake(end: &mut EndRecord, noise: &mut Noise) {
    for stream in &mut end.streams {
        let at: Vec<u64> = stream
            .samples
            .at_ns()
            .iter()
            .map(|at| at + noise.up_to(400_000))
            .collect();
        let rows = at.len();
        let mut series = Series::new(at);
        for name in FIELDS
            .iter()
            .map(|field| field.name)
            .chain(["app_bytes", "unread_bytes"])
        {
            let values = if stream.sends {
                sending(name, rows, noise)
            } else {
                receiving(name, rows, noise)
            };
            series
                .insert(
                    name,
                    values.unwrap_or_else(|| vec![noise.up_to(90_000); rows]),
                )
                .unwrap();
        }
        stream.samples = series;
    }
}

/// A counter that grows by at least `step` a row.
fn counter(rows: usize, step: u64, spread: u64, noise: &mut Noise) -> Vec<u64> {
    let mut sum = 0;
    let grow = |_| {
        sum += step + noise.up_to(spread);
        sum
    };
    (0..rows).map(grow).collect()
}

fn gauge(rows: usize, least: u64, spread: u64, noise: &mut Noise) -> Vec<u64> {
    (0..rows).map(|_| least + noise.up_to(spread)).collect()
}

fn sending(name: &str, rows: usize, noise: &mut Noise) -> Option<Vec<u64>> {
    Some(match name {
        "app_bytes" => counter(rows, 1, 2, noise)
            .iter()
            .map(|writes| writes * 1_048_576)
            .collect(),
        "bytes_acked" | "bytes_sent" => counter(rows, 1_400_000, 200_000, noise),
        "segs_out" | "segs_in" | "data_segs_out" | "delivered_packets" => {
            counter(rows, 900, 150, noise)
        }
        "busy_time_us" => counter(rows, 9900, 200, noise),
        "rwnd_limited_us" | "sndbuf_limited_us" => counter(rows, 0, 1, noise)
            .iter()
            .map(|ticks| ticks * 4000)
            .collect(),
        "total_retrans_packets" => counter(rows, 0, 1, noise),
        "rtt_us" => gauge(rows, 40_000, 500, noise),
        "rttvar_us" => gauge(rows, 20, 90, noise),
        "rto_us" => gauge(rows, 60, 1, noise)
            .iter()
            .map(|ticks| ticks * 4000)
            .collect(),
        "unacked_packets" | "snd_cwnd_packets" => gauge(rows, 4300, 60, noise),
        "pacing_rate_bytes_per_s" | "delivery_rate_bytes_per_s" => {
            gauge(rows, 150_000_000, 2_000_000, noise)
        }
        "notsent_bytes" => gauge(rows, 0, 1_000_000, noise),
        "snd_wnd_bytes" => gauge(rows, 24_000, 20, noise)
            .iter()
            .map(|units| units * 128)
            .collect(),
        _ => return None,
    })
}

fn receiving(name: &str, rows: usize, noise: &mut Noise) -> Option<Vec<u64>> {
    Some(match name {
        "app_bytes" | "bytes_received" => counter(rows, 1_400_000, 200_000, noise),
        "segs_out" | "segs_in" | "data_segs_in" => counter(rows, 900, 150, noise),
        "rcv_rtt_us" => gauge(rows, 40_000, 900, noise),
        "rcv_space_bytes" | "rcv_ssthresh_bytes" => gauge(rows, 6_000_000, 3000, noise),
        "rcv_wnd_bytes" => gauge(rows, 24_000, 90, noise)
            .iter()
            .map(|units| units * 128)
            .collect(),
        "unread_bytes" => gauge(rows, 0, 90_000, noise),
        "rcv_mss_bytes" => gauge(rows, 1448, 1, noise),
        "rcv_ooopack_packets" => counter(rows, 0, 1, noise),
        _ => return None,
    })
}

#[test]
fn a_minute_of_eight_streams_at_10_ms_stays_below_10_mb() {
    let plan = Plan {
        streams: 8,
        ..runs::tcp()
    };
    let mut made: RunRecord = fixture::run(
        &plan,
        &Traffic {
            seconds: 60.0,
            ..Traffic::default()
        },
    );
    let mut noise = Noise(42);
    for end in [made.client.as_mut().unwrap(), made.server.as_mut().unwrap()] {
        shake(end, &mut noise);
    }
    let rows: usize = [&made.client, &made.server]
        .iter()
        .flat_map(|end| &end.as_ref().unwrap().streams)
        .map(|stream| stream.samples.len())
        .sum();
    assert!(rows >= 96_000, "{rows}");
    let size = record::to_json(&made).len();
    assert!(size < 10_000_000, "{size} bytes");
}
