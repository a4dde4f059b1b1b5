//! iperf3's JSON (`-J`) and JSON stream (`--json-stream`).

use linerate_model::plan::Protocol;
use linerate_model::transcript::{
    Asked, Connection, Datagrams, End, Ending, Layout, Line, Part, Printed, Row, Side, Span,
    Stream as Whose, TestOutput, Tool, Way,
};
use serde_json::Value;

use crate::iperf::{self, ways};

/// Takes a whole document of iperf3.
pub(crate) fn take(value: &Value, lines: [usize; 2], parts: &mut Vec<Part>) -> bool {
    let known = value.get("start").is_some_and(Value::is_object)
        && (value.get("intervals").is_some()
            || value.get("end").is_some()
            || value.get("error").is_some());
    if known {
        let mut test = begun(&value["start"], lines[0], Layout::Json);
        test.lines = lines;
        for interval in value["intervals"].as_array().into_iter().flatten() {
            add_interval(&mut test, interval, lines[0]);
        }
        add_end(&mut test, &value["end"], lines[0]);
        add_error(&mut test, &value["error"], lines[0]);
        ways::push(test, parts);
    }
    known
}

/// Takes a document that [`completed`] closed, where it has a start and intervals.
pub(crate) fn take_cut(value: &Value, lines: [usize; 2], parts: &mut Vec<Part>) -> bool {
    let intervals = value["intervals"].as_array();
    value["start"].is_object()
        && intervals.is_some_and(|intervals| !intervals.is_empty())
        && take(value, lines, parts)
}

/// The beginning of a document of iperf3 that was cut, up to its last interval that is whole, closed.
pub(crate) fn completed(text: &str) -> Option<String> {
    let mut whole = None;
    // `start`, or one of `intervals`.
    open_after(text, |at, inside| match inside {
        [b'}'] => whole = Some((at, "}")),
        [b'}', b']'] => whole = Some((at, "]}")),
        _ => {}
    });
    let (last, closing) = whole?;
    Some(format!("{}{closing}", &text[..=last]))
}

/// The beginning of any document that was cut, up to its last array or object that is whole, closed.
pub(crate) fn closed(text: &str) -> Option<String> {
    let mut last = None;
    open_after(text, |at, _| last = Some(at));
    let whole = &text[..=last?];
    let open = open_after(whole, |_, _| {});
    let closing: String = open.into_iter().rev().map(char::from).collect();
    Some(format!("{whole}{closing}"))
}

/// What closes the arrays and objects that are open at the end of a text; `at_end` sees where each of the others ends,
/// and what is still open there.
fn open_after(text: &str, mut at_end: impl FnMut(usize, &[u8])) -> Vec<u8> {
    let mut inside = Vec::new();
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' => inside.push(b'}'),
            b'[' => inside.push(b']'),
            b'}' | b']' => {
                inside.pop();
                at_end(at, &inside);
            }
            _ => {}
        }
    }
    inside
}

/// A JSON stream: one object a line.
#[derive(Default)]
pub(crate) struct Stream {
    open: Option<TestOutput>,
}

impl Stream {
    /// Takes an event.
    pub(crate) fn take(&mut self, value: &Value, line: usize, parts: &mut Vec<Part>) -> bool {
        let Some(event) = value.get("event").and_then(Value::as_str) else {
            return false;
        };
        let data = &value["data"];
        match event {
            "start" => {
                self.finish(parts);
                self.open = Some(begun(data, line, Layout::JsonStream));
            }
            "interval" | "end" | "error" | "server_output_text" | "server_output_json" => {
                let test = self
                    .open
                    .get_or_insert_with(|| begun(&Value::Null, line, Layout::JsonStream));
                test.lines[1] = line;
                match event {
                    "interval" => add_interval(test, data, line),
                    "end" => add_end(test, data, line),
                    "error" => add_error(test, data, line),
                    _ => {}
                }
                if event == "end" {
                    self.finish(parts);
                }
            }
            _ => return false,
        }
        true
    }

    /// What is open ends here.
    pub(crate) fn finish(&mut self, parts: &mut Vec<Part>) {
        if let Some(test) = self.open.take() {
            ways::push(test, parts);
        }
    }
}

fn begun(start: &Value, line: usize, layout: Layout) -> TestOutput {
    let plan = &start["test_start"];
    let number = |key: &str| plan[key].as_f64().filter(|number| *number > 0.0);
    let protocol = plan["protocol"].as_str().map(iperf::protocol);
    let udp = protocol == Some(Protocol::Udp);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let port = |value: &Value| {
        value
            .as_u64()
            .and_then(|port| u16::try_from(port).ok())
            .unwrap_or(0)
    };
    let mut test = iperf::empty(
        line,
        Asked {
            host: start["connecting_to"]["host"].as_str().map(Into::into),
            udp,
            rate_bps: number("target_bitrate"),
            rate_binary_bps: None,
            time_s: number("duration"),
            streams: plan["num_streams"]
                .as_u64()
                .and_then(|count| u32::try_from(count).ok()),
            length_bytes: number("blksize"),
            reverse: plan["reverse"].as_u64() == Some(1),
            both_ways: plan["bidir"].as_u64() == Some(1),
            ..Asked::default()
        },
    );
    test.tool = Tool::Iperf3;
    test.layout = layout;
    test.version = start["version"]
        .as_str()
        .map(|version| version.trim_start_matches("iperf ").into());
    test.protocol = protocol;
    test.side = match (
        start["connecting_to"].is_object(),
        start["accepted_connection"].is_object(),
    ) {
        (true, _) => Some(Side::Client),
        (_, true) => Some(Side::Server),
        _ => None,
    };
    test.datagram_bytes = number("blksize").filter(|_| udp);
    test.mss_bytes = start["tcp_mss"]
        .as_f64()
        .or(start["tcp_mss_default"].as_f64())
        .filter(|bytes| *bytes > 0.0);
    test.connections = start["connected"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|each| Connection {
            id: id(each),
            local: text(&each["local_host"]).into(),
            local_port: port(&each["local_port"]),
            remote: text(&each["remote_host"]).into(),
            remote_port: port(&each["remote_port"]),
        })
        .collect();
    test
}

fn id(value: &Value) -> u32 {
    value["socket"]
        .as_u64()
        .and_then(|id| u32::try_from(id).ok())
        .unwrap_or(0)
}

fn add_interval(test: &mut TestOutput, interval: &Value, line: usize) {
    let streams = interval["streams"].as_array();
    for stream in streams.into_iter().flatten() {
        let span = if stream["omitted"].as_bool() == Some(true) {
            Span::Omitted
        } else {
            Span::Interval
        };
        test.rows
            .extend(row(stream, Whose::One(id(stream)), span, None, line));
        let mtu = stream["pmtu"].as_f64().filter(|bytes| *bytes > 0.0);
        test.path_mtu_bytes = mtu.or(test.path_mtu_bytes);
    }
    if streams.is_none_or(|streams| streams.len() != 1) {
        // Older versions do not say it at the start.
        test.asked.both_ways |= interval["sum_bidir_reverse"].is_object();
        for sum in [&interval["sum"], &interval["sum_bidir_reverse"]] {
            let span = if sum["omitted"].as_bool() == Some(true) {
                Span::Omitted
            } else {
                Span::Interval
            };
            test.rows.extend(row(sum, Whose::Sum, span, None, line));
        }
    }
}

fn add_end(test: &mut TestOutput, end: &Value, line: usize) {
    let streams = end["streams"].as_array().map_or(&[][..], Vec::as_slice);
    for stream in streams {
        for (key, place) in [
            ("sender", Some(End::Sender)),
            ("receiver", Some(End::Receiver)),
            ("udp", None),
        ] {
            let total = &stream[key];
            test.rows
                .extend(row(total, Whose::One(id(total)), Span::Total, place, line));
        }
    }
    test.asked.both_ways |= end["sum_sent_bidir_reverse"].is_object();
    test.congestion = end["sender_tcp_congestion"].as_str().map(Into::into);
    test.cpu_percent = end["cpu_utilization_percent"]["host_total"].as_f64();
    if streams.len() != 1 {
        let sums = [
            ("sum_sent", Some(End::Sender)),
            ("sum_received", Some(End::Receiver)),
            ("sum_sent_bidir_reverse", Some(End::Sender)),
            ("sum_received_bidir_reverse", Some(End::Receiver)),
            ("sum", None),
        ];
        for (key, place) in sums {
            test.rows
                .extend(row(&end[key], Whose::Sum, Span::Total, place, line));
        }
    }
    if test.rows.iter().any(|row| row.span == Span::Total) {
        test.ending = Ending::Whole;
    }
}

fn add_error(test: &mut TestOutput, error: &Value, number: usize) {
    if let Some(text) = error.as_str() {
        let interrupted = text.contains("interrupt");
        if interrupted && test.ending == Ending::Whole {
            test.ending = Ending::Stopped;
        }
        test.errors.push(Line {
            number,
            text: text.chars().take(200).collect(),
        });
    }
}

fn row(value: &Value, stream: Whose, span: Span, end: Option<End>, line: usize) -> Option<Row> {
    let number = |key: &str| {
        value[key]
            .as_f64()
            .filter(|number| *number >= 0.0 && number.is_finite())
    };
    let count = |key: &str| value[key].as_u64();
    let bytes = number("bytes")?;
    let (start, until) = (number("start")?, number("end")?);
    // Instants are µs in the program and bits_per_second comes from more digits than are printed.
    let instant = |value| Printed { value, half: 1e-3 };
    let bps = number("bits_per_second")?;
    Some(Row {
        line,
        stream,
        span,
        start_s: instant(start),
        end_s: instant(until.max(start)),
        bytes: Printed::exact(bytes),
        bps: Printed {
            value: bps,
            half: bps * 1e-6,
        },
        end,
        retransmits: count("retransmits"),
        window_bytes: number("snd_cwnd")
            .filter(|bytes| *bytes > 0.0)
            .map(Printed::exact),
        receive_window_bytes: number("snd_wnd")
            .filter(|bytes| *bytes > 0.0)
            .map(Printed::exact),
        rtt_us: number("rtt")
            .or(number("mean_rtt"))
            .filter(|rtt| *rtt > 0.0)
            .map(Printed::exact),
        datagrams: count("packets").map(|total| Datagrams {
            total,
            lost: count("lost_packets").filter(|lost| *lost <= total),
            lost_percent: None,
            jitter_ms: number("jitter_ms").map(Printed::exact),
        }),
        way: value["sender"]
            .as_bool()
            .map(|sends| if sends { Way::Out } else { Way::In }),
        bounces: None,
    })
}
