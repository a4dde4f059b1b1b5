//! iperf3's `-J` document and its `--json-stream` lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_model::plan::{Direction, Plan, Protocol};
use linerate_model::progress::{Event, Interval};
use linerate_model::record::{Flow, RunRecord};
use serde_json::{Map, Value, json};

use super::json_start::Start;
use super::summary::Summary;
use super::timeline::{Shown, ShownStream, Span, Sum, Timeline};
use super::{Iperf3Settings, error_text, json_end, stopped_early};

/// How many intervals the documents of all tests of a server may keep together, each stream of one counted.
#[derive(Debug, Clone)]
pub struct IntervalRoom(Arc<AtomicUsize>);

impl IntervalRoom {
    /// Room for so many: a stream of an interval takes about 2 KB.
    pub fn new(streams: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(streams)))
    }

    fn take(&self, streams: usize) -> bool {
        let left = |room: usize| room.checked_sub(streams);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
            .is_ok()
    }
}

/// The JSON of one test. Whatever happens, what it gives out is valid JSON.
#[derive(Debug)]
pub struct Json {
    settings: Iperf3Settings,
    timeline: Timeline,
    start: Start,
    intervals: Vec<Value>,
    /// Where it is shared: with what this test took of it.
    room: Option<(IntervalRoom, usize)>,
    /// Intervals for which there was no room.
    left_out: u64,
    /// Why the test did not end as planned, in iperf3's words.
    error: Option<String>,
}

impl Drop for Json {
    fn drop(&mut self) {
        if let Some((room, taken)) = &self.room {
            room.0.fetch_add(*taken, Ordering::Relaxed);
        }
    }
}

impl Json {
    /// For a test. A client knows its plan; a server tells it with [`Self::set_plan`] once it has it.
    pub fn new(settings: Iperf3Settings, plan: Option<Plan>) -> Self {
        Self {
            settings,
            timeline: Timeline::new(plan),
            start: Start::default(),
            intervals: Vec::new(),
            room: None,
            left_out: 0,
            error: None,
        }
    }

    /// What the `error` key of the test's end says: iperf3's sentence ([`super::ErrorCode::sentence`]).
    pub fn set_error(&mut self, error: String) {
        self.error = Some(error);
    }

    /// The document of a test that completed, as a value: what a client gets for `--get-server-output`.
    pub fn document(mut self, record: &RunRecord) -> Value {
        self.timeline.set_plan(&record.plan);
        let summary = Summary::new(record, &self.timeline);
        let end = json_end::value(&self.settings, &self.timeline, &summary);
        Value::Object(self.whole(end, Map::new()))
    }

    /// The same, keeping intervals only while there is room for them; the document says how many are left out.
    #[must_use]
    pub fn within(mut self, room: &IntervalRoom) -> Self {
        self.room = Some((room.clone(), 0));
        self
    }

    /// The plan in force, as soon as it is known: before [`Event::Opened`] at the latest.
    pub fn set_plan(&mut self, plan: &Plan) {
        self.timeline.set_plan(plan);
    }

    /// What TCP sockets have as buffers before any stream stands, bytes: sent from, received into.
    pub fn set_buffers(&mut self, send: u64, receive: u64) {
        self.start.set_buffers(send, receive);
    }

    /// Takes an event in; the lines are those of `--json-stream`, none without it.
    pub fn event(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Connected {
                control,
                cookie,
                at_unix_ms,
            } => {
                self.start.connected(control, cookie, *at_unix_ms);
                Vec::new()
            }
            Event::Opened { streams } => {
                self.timeline.open(streams);
                Vec::new()
            }
            Event::Started => {
                self.start.started();
                if self.settings.json_stream {
                    vec![line("start", &self.start_value())]
                } else {
                    Vec::new()
                }
            }
            Event::Interval(interval) => self.interval(interval),
            Event::Ending | Event::Warning { .. } => Vec::new(),
        }
    }

    /// The end of a test that has a record.
    pub fn end(&mut self, record: &RunRecord) -> Vec<String> {
        self.timeline.set_plan(&record.plan);
        let end = json_end::value(
            &self.settings,
            &self.timeline,
            &Summary::new(record, &self.timeline),
        );
        let mut rest = self.texts();
        if let Some(peer) = record
            .peer_results
            .as_ref()
            .filter(|_| self.settings.get_server_output)
        {
            if let Some(text) = &peer.output_json {
                // A peer's JSON that is none is still worth showing.
                let (key, value) = match serde_json::from_str(text) {
                    Ok(value) => ("server_output_json", value),
                    Err(_) => ("server_output_text", json!(text)),
                };
                insert(&mut rest, key, value);
            }
            if let Some(text) = &peer.output_text {
                insert(&mut rest, "server_output_text", json!(text));
            }
        }
        if let Some(error) = self.error.take().or_else(|| error_text(record)) {
            rest.insert("error".to_owned(), json!(error));
        }
        self.finish(end, rest)
    }

    /// The end of a test without a summary, since it came to nothing or broke off: `error` is what could not be done and
    /// why; absent where the peer ended it without a failure.
    pub fn failed(&mut self, error: Option<&str>) -> Vec<String> {
        self.end_with(json!({}), error)
    }

    /// The end of a test that somebody stopped before its streams ran: `error` says who.
    pub fn stopped_early(&mut self, error: &str) -> Vec<String> {
        let end = stopped_early::end(&self.settings, &self.timeline.plan());
        self.end_with(end, Some(error))
    }

    fn end_with(&mut self, end: Value, error: Option<&str>) -> Vec<String> {
        let mut rest = self.texts();
        if let Some(error) = error {
            rest.insert("error".to_owned(), json!(error));
        }
        self.finish(end, rest)
    }

    fn texts(&self) -> Map<String, Value> {
        let plan = self.timeline.plan();
        let texts = [
            ("title", plan.title.map(String::from)),
            ("extra_data", plan.extra_data.map(String::from)),
        ]
        .into_iter();
        texts
            .filter_map(|(key, text)| Some((key.to_owned(), json!(text?))))
            .collect()
    }

    fn start_value(&self) -> Value {
        self.start.value(&self.settings, &self.timeline)
    }

    fn interval(&mut self, interval: &Interval) -> Vec<String> {
        let Some(shown) = self.timeline.book(interval) else {
            return Vec::new();
        };
        let value = interval_value(&self.timeline.plan(), &shown);
        let lines = if self.settings.json_stream {
            vec![line("interval", &value)]
        } else {
            Vec::new()
        };
        // A stream of lines may run for weeks: its intervals are kept only when they are wanted again.
        if !self.settings.json_stream || self.settings.json_stream_full {
            let streams = interval.streams.len().max(1);
            let fits = self.room.as_mut().is_none_or(|(room, taken)| {
                let fits = room.take(streams);
                *taken += if fits { streams } else { 0 };
                fits
            });
            if fits {
                self.intervals.push(value);
            } else {
                self.left_out += 1;
            }
        }
        lines
    }

    fn finish(&mut self, end: Value, rest: Map<String, Value>) -> Vec<String> {
        let mut lines = Vec::new();
        if self.settings.json_stream {
            for event in ["error", "server_output_json", "server_output_text"] {
                lines.extend(rest.get(event).map(|value| line(event, value)));
            }
            lines.push(line("end", &end));
        }
        if !self.settings.json_stream || self.settings.json_stream_full {
            lines.push(pretty(&Value::Object(self.whole(end, rest)), 0));
        }
        lines
    }

    fn whole(&mut self, end: Value, rest: Map<String, Value>) -> Map<String, Value> {
        let mut document = Map::new();
        document.insert("start".to_owned(), self.start_value());
        let intervals = std::mem::take(&mut self.intervals);
        document.insert("intervals".to_owned(), Value::Array(intervals));
        document.insert("end".to_owned(), end);
        document.extend(rest);
        if self.left_out > 0 {
            let text = format!(
                "{} intervals are left out: the tests of this server have more than it keeps; --json-stream keeps none",
                self.left_out
            );
            document.insert("warning".to_owned(), json!(text));
        }
        document
    }
}

fn line(event: &str, data: &Value) -> String {
    json!({"event": event, "data": data}).to_string()
}

/// A key a line, indented by tabs; the objects of a list follow one another on a line, as cJSON has it.
pub(super) fn pretty(value: &Value, depth: usize) -> String {
    match value {
        Value::Object(object) => {
            let tabs = "\t".repeat(depth + 1);
            let line = |(key, value): (&String, &Value)| {
                let key = Value::from(key.as_str());
                format!("{tabs}{key}:\t{}", pretty(value, depth + 1))
            };
            let lines: Vec<String> = object.iter().map(line).collect();
            let end = "\t".repeat(depth);
            match lines.join(",\n") {
                empty if empty.is_empty() => format!("{{\n{end}}}"),
                lines => format!("{{\n{lines}\n{end}}}"),
            }
        }
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(|one| pretty(one, depth + 1)).collect();
            format!("[{}]", values.join(", "))
        }
        plain => plain.to_string(),
    }
}

/// A number as iperf3 writes it: whole ones without a fraction.
pub(super) fn number(value: f64) -> Value {
    if !value.is_finite() {
        return json!(0);
    }
    if value.fract() == 0.0 && value.abs() < 9e15 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and within the bounds just checked"
        )]
        return json!(value as i64);
    }
    json!(value)
}

/// What each direction is called: in a test of both, the server's is the reverse one.
pub(super) fn named(plan: &Plan, name: &str, flow: Flow) -> String {
    let reverse = plan.direction == Direction::Both && flow == Flow::ServerToClient;
    if reverse {
        format!("{name}_bidir_reverse")
    } else {
        name.to_owned()
    }
}

/// The object's first keys.
pub(super) fn head(span: Span, bytes: u64, rate: f64) -> Map<String, Value> {
    let mut object = Map::new();
    insert(&mut object, "start", number(span.start));
    insert(&mut object, "end", number(span.end));
    insert(&mut object, "seconds", number(span.seconds));
    insert(&mut object, "bytes", json!(bytes));
    insert(&mut object, "bits_per_second", number(rate * 8.0));
    object
}

pub(super) fn insert(object: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    object.insert(key.to_owned(), value.into());
}

/// What the kernel does not tell is -1, as iperf3 has it.
pub(super) fn or_unknown(value: Option<u64>) -> Value {
    value.map_or_else(|| json!(-1), |value| json!(value))
}

fn interval_value(plan: &Plan, shown: &Shown) -> Value {
    let flows = super::flows(plan).iter();
    let streams = flows.clone().flat_map(|flow| shown.of(*flow));
    let streams = streams.map(|stream| {
        let moved = (stream.span, Sum::of([stream.moved]));
        moved_value(plan, shown.omitted, moved, Some(stream))
    });
    let mut interval = Map::new();
    insert(&mut interval, "streams", streams.collect::<Vec<_>>());
    for flow in flows.filter(|flow| shown.of(**flow).next().is_some()) {
        let moved = (shown.span(*flow), shown.sum(*flow));
        let sum = moved_value(plan, shown.omitted, moved, None);
        insert(&mut interval, &named(plan, "sum", *flow), sum);
    }
    Value::Object(interval)
}

/// Of a stream, or of all together where none is given.
fn moved_value(
    plan: &Plan,
    omitted: bool,
    (span, sum): (Span, Sum),
    stream: Option<&ShownStream>,
) -> Value {
    let mut object = Map::new();
    if let Some(stream) = stream {
        insert(&mut object, "socket", stream.socket);
    }
    object.extend(head(span, sum.bytes, span.rate(sum.bytes)));
    if plan.protocol == Protocol::Tcp {
        if let Some(retransmits) = sum.retransmits {
            insert(&mut object, "retransmits", retransmits);
        }
        if let Some(tcp) = stream.and_then(|stream| stream.moved.tcp) {
            insert(&mut object, "snd_cwnd", tcp.snd_cwnd_bytes);
            insert(&mut object, "snd_wnd", or_unknown(tcp.snd_wnd_bytes));
            insert(&mut object, "rtt", tcp.rtt_us);
            insert(&mut object, "rttvar", tcp.rttvar_us);
            insert(&mut object, "pmtu", tcp.pmtu_bytes);
            insert(&mut object, "reorder", or_unknown(tcp.reord_seen));
        }
    }
    if plan.protocol == Protocol::Udp && sum.sends {
        insert(&mut object, "packets", sum.packets);
    } else if plan.protocol == Protocol::Udp {
        insert(&mut object, "jitter_ms", number(sum.jitter_ms));
        insert(&mut object, "lost_packets", sum.lost);
        insert(&mut object, "packets", sum.packets);
        insert(&mut object, "lost_percent", number(sum.lost_percent()));
    }
    insert(&mut object, "omitted", omitted);
    insert(&mut object, "sender", sum.sends);
    Value::Object(object)
}
