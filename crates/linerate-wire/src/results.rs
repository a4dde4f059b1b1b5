//! What each end counted: the JSON both exchange after state 13.

use serde_json::{Value, json};

use linerate_model::plain_text::{PlainLines, PlainText};
use linerate_model::record::PeerStream;

use crate::error::ProtocolError;
use crate::json::{self, Bounds, Keys};

/// The longest results accepted by default, in bytes; upstream has no bound.
pub const MAX_RESULTS_BYTES: usize = 16 * 1024 * 1024;
/// The longest results of a client, which has no output to send: 256 streams take 100 KB.
pub const MAX_CLIENT_RESULTS_BYTES: usize = 1024 * 1024;
/// Streams in one message: 128 in each direction, and room for what we do not know.
const MAX_STREAMS: usize = 1024;

/// A server's results may hold its output as JSON.
const BOUNDS: Bounds = Bounds {
    depth: 64,
    values: 1_000_000,
};
/// A client's hold streams only, twelve values each. Without this bound, 1 MiB of them takes 40 MiB to parse.
const CLIENT_BOUNDS: Bounds = Bounds {
    depth: 64,
    values: 16 * MAX_STREAMS,
};

/// One end's results.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// Processor time of the process in % of one core.
    pub cpu_util_total: f64,
    /// The part of it in user mode.
    pub cpu_util_user: f64,
    /// The part of it in the kernel.
    pub cpu_util_system: f64,
    /// 1 or 0 from a sender; −1 from a receiver.
    pub sender_has_retransmits: i64,
    /// The congestion control in use.
    pub congestion_used: Option<PlainText>,
    /// The server's output where it runs with JSON and the client asked for it.
    pub server_output_json: Option<Value>,
    /// The server's output as text where the client asked for it.
    pub server_output_text: Option<PlainLines>,
    /// The streams, in the order of their ids.
    pub streams: Vec<PeerStream>,
}

impl Results {
    /// The JSON as iperf3 3.21 writes it. Figures that are not finite become 0, since a stock
    /// peer gives up the whole exchange at a `null`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut results = json!({
            "cpu_util_total": finite(self.cpu_util_total),
            "cpu_util_user": finite(self.cpu_util_user),
            "cpu_util_system": finite(self.cpu_util_system),
            "sender_has_retransmits": self.sender_has_retransmits,
        });
        if let Some(name) = &self.congestion_used {
            results["congestion_used"] = name.as_str().into();
        }
        if let Some(output) = &self.server_output_json {
            results["server_output_json"] = output.clone();
        }
        if let Some(output) = &self.server_output_text {
            results["server_output_text"] = output.as_str().into();
        }
        results["streams"] = self.streams.iter().map(stream_value).collect();
        results.to_string().into_bytes()
    }

    /// Reads a peer's results. What a stock peer requires is required here too, and named where it is missing.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ProtocolError> {
        Self::read(bytes, BOUNDS)
    }

    /// The same for the results of a client, which have no output: at most 16384 values.
    pub fn from_client_json(bytes: &[u8]) -> Result<Self, ProtocolError> {
        Self::read(bytes, CLIENT_BOUNDS)
    }

    fn read(bytes: &[u8], bounds: Bounds) -> Result<Self, ProtocolError> {
        let mut map = json::object("results", bytes, bounds)?;
        let server_output_json = map.swap_remove("server_output_json");
        let keys = Keys::new(&map, "results", String::new());
        let mut results = Self {
            cpu_util_total: required_number(&keys, "cpu_util_total")?,
            cpu_util_user: required_number(&keys, "cpu_util_user")?,
            cpu_util_system: required_number(&keys, "cpu_util_system")?,
            sender_has_retransmits: required_integer(&keys, "sender_has_retransmits")?,
            congestion_used: keys.text("congestion_used"),
            server_output_json,
            server_output_text: keys.text("server_output_text"),
            streams: Vec::new(),
        };
        let streams = map.get("streams").and_then(Value::as_array);
        let streams = keys.required("streams", "array", streams)?;
        if streams.len() > MAX_STREAMS {
            return Err(ProtocolError::Json {
                message: "results",
                reason: format!(
                    "they contain {} streams, at most 1024 are read",
                    streams.len()
                )
                .into(),
            });
        }
        let read = streams.iter().enumerate();
        results.streams = read
            .map(|(index, stream)| read_stream(index, stream))
            .collect::<Result<_, _>>()?;
        Ok(results)
    }
}

fn stream_value(stream: &PeerStream) -> Value {
    let mut value = json!({
        "id": stream.id,
        "bytes": stream.bytes,
        "retransmits": stream.retransmits,
        "jitter": finite(stream.jitter_s),
        "errors": stream.errors,
    });
    // Both or neither: a stock peer refuses one alone.
    let omitted = stream.omitted_errors.zip(stream.omitted_packets);
    if let Some((errors, _)) = omitted {
        value["omitted_errors"] = errors.into();
    }
    value["packets"] = stream.packets.into();
    if let Some((_, packets)) = omitted {
        value["omitted_packets"] = packets.into();
    }
    // Always 0 upstream.
    value["start_time"] = 0.0.into();
    value["end_time"] = finite(stream.end_time_s);
    value
}

fn read_stream(index: usize, value: &Value) -> Result<PeerStream, ProtocolError> {
    let map = value.as_object().ok_or_else(|| ProtocolError::MissingKey {
        message: "results",
        key: format!("streams[{index}]").into(),
        expected: "object",
    })?;
    let keys = Keys::new(map, "results", format!("streams[{index}]."));
    let id = keys.count("id").and_then(|id| u32::try_from(id).ok());
    let bytes = keys.count("bytes");
    let packets = keys.count("packets");
    let omitted = keys
        .integer("omitted_errors")
        .zip(keys.count("omitted_packets"));
    Ok(PeerStream {
        id: keys.required("id", "number", id)?,
        bytes: keys.required("bytes", "number", bytes)?,
        retransmits: required_integer(&keys, "retransmits")?,
        jitter_s: required_number(&keys, "jitter")?,
        errors: required_integer(&keys, "errors")?,
        omitted_errors: omitted.map(|(errors, _)| errors),
        packets: keys.required("packets", "number", packets)?,
        omitted_packets: omitted.map(|(_, packets)| packets),
        // Servers before 3.2 send no time.
        end_time_s: keys.number("end_time").unwrap_or(0.0),
    })
}

fn required_number(keys: &Keys<'_>, key: &str) -> Result<f64, ProtocolError> {
    let found = keys.number(key);
    keys.required(key, "number", found)
}

fn required_integer(keys: &Keys<'_>, key: &str) -> Result<i64, ProtocolError> {
    let found = keys.integer(key);
    keys.required(key, "number", found)
}

fn finite(number: f64) -> Value {
    if number.is_finite() {
        number.into()
    } else {
        0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = r#"{"id":1,"bytes":5,"retransmits":0,"jitter":0,"errors":0,"packets":0}"#;

    fn results(streams: &str) -> String {
        format!(
            r#"{{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":1,"streams":{streams}}}"#
        )
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = |text: &str| Results::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(error("{}").contains("'cpu_util_total'"));
        assert!(error(&results("{}")).contains("'streams'"));
        assert!(error(&results("[5]")).contains("'streams[0]'"));
        let second = format!("[{STREAM},{}]", STREAM.replace("bytes", "bites"));
        assert!(error(&results(&second)).contains("'streams[1].bytes'"));
        let wide = STREAM.replace(r#""id":1"#, r#""id":4294967296"#);
        assert!(error(&results(&format!("[{wide}]"))).contains("'streams[0].id'"));
    }

    #[test]
    fn the_oldest_form_is_read() {
        let read = Results::from_json(results(&format!("[{STREAM}]")).as_bytes()).unwrap();
        assert_eq!(read.streams[0].bytes, 5);
        assert_eq!(read.streams[0].omitted_packets, None);
    }

    #[test]
    fn not_a_number_does_not_cost_the_results() {
        let text = results(&format!(
            "[{}]",
            STREAM.replace(r#""jitter":0"#, r#""jitter":null"#)
        ));
        let read = Results::from_json(text.as_bytes()).unwrap();
        assert!(read.streams[0].jitter_s.abs() < f64::EPSILON);
    }

    #[test]
    fn omitted_figures_come_in_pairs() {
        let mut ours = Results {
            streams: vec![PeerStream::default()],
            ..Results::default()
        };
        ours.streams[0].omitted_errors = Some(3);
        ours.cpu_util_user = f64::NAN;
        let text = String::from_utf8(ours.to_json()).unwrap();
        assert!(
            !text.contains("omitted") && !text.contains("null"),
            "{text}"
        );
        ours.streams[0].omitted_packets = Some(4);
        let text = String::from_utf8(ours.to_json()).unwrap();
        assert!(text.contains(r#""errors":0,"omitted_errors":3,"packets":0,"omitted_packets":4,"#));
    }

    #[test]
    fn too_many_streams_are_refused() {
        let streams = vec![STREAM; MAX_STREAMS + 1].join(",");
        assert!(Results::from_json(results(&format!("[{streams}]")).as_bytes()).is_err());
    }
}
