//! `--json-stream`: one line a JSON object, `{"event": "…", …}`.

use linerate_model::progress::Event;
use linerate_model::record::RunRecord;
use linerate_model::units::{BitRate, Bytes};
use serde_json::Value;

use crate::json;
use crate::view::RunView;

/// An event as a line, without its newline. Intervals get `bps`, bit/s over their own duration.
pub fn line(event: &Event) -> String {
    let mut members = json::event(event);
    if let Event::Interval(interval) = event
        && let Some(Value::Array(streams)) = members.get_mut("streams")
    {
        for (stream, shown) in interval.streams.iter().zip(streams) {
            let rate = BitRate::of(Bytes(stream.bytes), stream.to_ns.since(stream.from_ns));
            shown["bps"] = json::value(&rate);
        }
    }
    Value::Object(members).to_string()
}

/// The event of a line that [`line`] made; `None` for other lines.
pub fn read(line: &str) -> Option<Event> {
    let Ok(Value::Object(mut members)) = serde_json::from_str(line) else {
        return None;
    };
    let Some(Value::String(name)) = members.remove("event") else {
        return None;
    };
    let inner = if members.is_empty() {
        Value::String(name)
    } else {
        Value::Object(std::iter::once((name, Value::Object(members))).collect())
    };
    serde_json::from_value(inner).ok()
}

/// The last line: the whole document as an event named `end`, without its newline.
pub fn end_line(view: &RunView, record: &RunRecord) -> String {
    json::end_line(json::members(view, record))
}
