//! The messages between two linerates: the byte 76, then a frame with one JSON object whose only
//! key names the message: `{"ping":{"n":1}}`.
//!
//! A client offers the extension with the key `linerate` in its parameters; nothing of it goes
//! over a wire whose other end is stock. Keys that are unknown inside a message are ignored, so
//! that a message can grow; an unknown message is an error.

use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{ProtocolError, beginning};
use crate::frame;
use crate::state::State;

/// The version of the extension that is spoken here.
pub const VERSION: u32 = 1;
/// The longest message but `end`, in bytes: `finishing` with 128 streams of the largest figures.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024;
/// The longest record in `end`, in bytes.
pub const MAX_END_BYTES: usize = 64 * 1024 * 1024;
/// What surrounds the record in `end`.
const END_OPENING: &[u8] = br#"{"end":"#;
const END_CLOSING: &[u8] = b"}";
/// Bytes of an `end` message beyond its record.
pub const END_ENVELOPE_BYTES: usize = END_OPENING.len() + END_CLOSING.len();

const SOFTWARE_CHARS: usize = 120;

/// S→C: the server speaks the extension too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The version of the extension, from 1.
    pub version: u32,
    /// The program and its version, for people.
    pub software: PlainText,
    /// What the client must show in each UDP handshake, see [`crate::udp::TokenHandshake`];
    /// 32 hexadecimal digits on the wire.
    pub udp_token: Option<[u8; 16]>,
}

/// What the sending side of some streams had written when it stopped. The receiver knows from it
/// what to wait for, and loss can be counted up to the last datagram sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Finishing {
    /// The streams this side sends on.
    pub streams: Vec<FinishingStream>,
}

/// One stream of [`Finishing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct FinishingStream {
    /// The positional id of the stream.
    pub id: u32,
    /// All bytes written, the omitted part included.
    pub bytes: u64,
    /// All datagrams sent, the omitted part included; 0 over TCP.
    pub packets: u64,
}

/// What has arrived so far on the streams that the server receives on, for a client that asked for it with
/// `received_ns` in its parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Received {
    /// The streams that this side receives on.
    pub streams: Vec<ReceivedStream>,
}

/// One stream of [`Received`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ReceivedStream {
    /// The positional id of the stream.
    pub id: u32,
    /// When it was counted, on the server's monotonic clock.
    pub at_ns: u64,
    /// All bytes read, the omitted part included.
    pub bytes: u64,
}

/// A message between two linerates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// C→S: send back a pong.
    Ping {
        /// The client's number for it.
        n: u64,
    },
    /// C→S: enough pings, create the streams.
    Ready,
    /// C→S: send your half of the record.
    EndRequest {
        /// The longest record the client takes, in bytes.
        max_bytes: u64,
    },
    /// S→C: the answer to the offer in the parameters.
    Hello(Hello),
    /// S→C: the answer to a ping.
    Pong {
        /// The number of the ping.
        n: u64,
        /// When the ping came, on the server's monotonic clock (`received_ns` on the wire).
        received: Nanos,
        /// When this answer was written, on the same clock (`sent_ns` on the wire).
        sent: Nanos,
    },
    /// S→C: the server's half of the record: JSON bytes that are not looked into here.
    End(Vec<u8>),
    /// Both ways: this side has stopped sending.
    Finishing(Finishing),
    /// S→C: what has arrived, while the test runs.
    Received(Received),
}

/// The messages as serde reads them; `end` is cut out by hand before.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wire {
    Ping {
        n: u64,
    },
    Ready {},
    EndRequest {
        max_bytes: u64,
    },
    Hello {
        version: u32,
        software: String,
        udp_token: Option<String>,
    },
    Pong {
        n: u64,
        received_ns: u64,
        sent_ns: u64,
    },
    Finishing(Finishing),
    Received(Received),
}

impl Message {
    /// The name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ping { .. } => "ping",
            Self::Ready => "ready",
            Self::EndRequest { .. } => "end_request",
            Self::Hello(_) => "hello",
            Self::Pong { .. } => "pong",
            Self::End(_) => "end",
            Self::Finishing(_) => "finishing",
            Self::Received(_) => "received",
        }
    }

    /// The bytes on the wire: state byte, length, JSON.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![State::Linerate.byte()];
        bytes.extend_from_slice(&frame::encode(&self.to_json()));
        bytes
    }

    /// The JSON inside the frame.
    pub fn to_json(&self) -> Vec<u8> {
        let body = match self {
            Self::End(record) => return [END_OPENING, record, END_CLOSING].concat(),
            Self::Ping { n } => json!({ "n": n }),
            Self::Ready => json!({}),
            Self::EndRequest { max_bytes } => json!({ "max_bytes": max_bytes }),
            Self::Hello(hello) => hello_body(hello),
            Self::Pong { n, received, sent } => {
                json!({ "n": n, "received_ns": received.0, "sent_ns": sent.0 })
            }
            Self::Finishing(finishing) => finishing_body(finishing),
            Self::Received(received) => received_body(received),
        };
        json!({ self.name(): body }).to_string().into_bytes()
    }

    /// Reads the JSON of a frame. The caller has bounded its length.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ProtocolError> {
        if let Some(record) = bytes
            .strip_prefix(END_OPENING)
            .and_then(|rest| rest.strip_suffix(END_CLOSING))
        {
            return Ok(Self::End(record.to_vec()));
        }
        if bytes.len() > MAX_MESSAGE_BYTES {
            return Err(ProtocolError::FrameTooLong {
                message: "linerate message",
                length: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                bound: u64::try_from(MAX_MESSAGE_BYTES).unwrap_or(u64::MAX),
            });
        }
        let wire = serde_json::from_slice(bytes).map_err(|error| ProtocolError::Extension {
            reason: beginning(&error.to_string(), 200),
        })?;
        Self::from_wire(wire)
    }

    fn from_wire(wire: Wire) -> Result<Self, ProtocolError> {
        Ok(match wire {
            Wire::Ping { n } => Self::Ping { n },
            Wire::Ready {} => Self::Ready,
            Wire::EndRequest { max_bytes } => Self::EndRequest { max_bytes },
            Wire::Hello {
                version,
                software,
                udp_token,
            } => Self::Hello(Hello {
                version,
                software: beginning(&software, SOFTWARE_CHARS),
                udp_token: udp_token.as_deref().map(token_from_hex).transpose()?,
            }),
            Wire::Pong {
                n,
                received_ns,
                sent_ns,
            } => Self::Pong {
                n,
                received: Nanos(received_ns),
                sent: Nanos(sent_ns),
            },
            Wire::Finishing(finishing) => Self::Finishing(finishing),
            Wire::Received(received) => Self::Received(received),
        })
    }
}

fn hello_body(hello: &Hello) -> Value {
    let mut body = json!({ "version": hello.version, "software": hello.software });
    if let Some(token) = &hello.udp_token {
        body["udp_token"] = crate::auth::hex(token).into();
    }
    body
}

fn finishing_body(finishing: &Finishing) -> Value {
    let streams: Vec<Value> = finishing
        .streams
        .iter()
        .map(|stream| json!({ "id": stream.id, "bytes": stream.bytes, "packets": stream.packets }))
        .collect();
    json!({ "streams": streams })
}

fn received_body(received: &Received) -> Value {
    let streams: Vec<Value> = received
        .streams
        .iter()
        .map(|stream| json!({ "id": stream.id, "at_ns": stream.at_ns, "bytes": stream.bytes }))
        .collect();
    json!({ "streams": streams })
}

fn token_from_hex(text: &str) -> Result<[u8; 16], ProtocolError> {
    crate::auth::from_hex(text).ok_or_else(|| ProtocolError::Extension {
        reason: "the udp_token of its hello is not 32 hexadecimal digits".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_wire_is_written_down() {
        let text = |message: Message| String::from_utf8(message.to_json()).unwrap();
        assert_eq!(text(Message::Ping { n: 3 }), r#"{"ping":{"n":3}}"#);
        assert_eq!(text(Message::Ready), r#"{"ready":{}}"#);
        assert_eq!(
            text(Message::EndRequest { max_bytes: 9 }),
            r#"{"end_request":{"max_bytes":9}}"#
        );
        assert_eq!(text(Message::End(b"[1]".to_vec())), r#"{"end":[1]}"#);
        let pong = Message::Pong {
            n: 1,
            received: Nanos(2),
            sent: Nanos(3),
        };
        assert_eq!(
            text(pong),
            r#"{"pong":{"n":1,"received_ns":2,"sent_ns":3}}"#
        );
        let stream = FinishingStream {
            id: 1,
            bytes: 2,
            packets: 3,
        };
        assert_eq!(
            text(Message::Finishing(Finishing {
                streams: vec![stream]
            })),
            r#"{"finishing":{"streams":[{"id":1,"bytes":2,"packets":3}]}}"#
        );
        let stream = ReceivedStream {
            id: 1,
            at_ns: 2,
            bytes: 3,
        };
        assert_eq!(
            text(Message::Received(Received {
                streams: vec![stream]
            })),
            r#"{"received":{"streams":[{"id":1,"at_ns":2,"bytes":3}]}}"#
        );
        let hello = Hello {
            version: 1,
            software: "l".into(),
            udp_token: Some([0xab; 16]),
        };
        assert_eq!(
            text(Message::Hello(hello)),
            format!(
                r#"{{"hello":{{"version":1,"software":"l","udp_token":"{}"}}}}"#,
                "ab".repeat(16)
            )
        );
        assert_eq!(Message::Ready.encode()[..5], [76, 0, 0, 0, 12]);
    }

    #[test]
    fn exactly_one_known_key() {
        for wrong in [
            "{}",
            "[]",
            "\"ready\"",
            "{\"x\":{}}",
            "{\"ping\":{}}",
            "{\"ping\":{\"n\":-1}}",
            "{\"ping\":{\"n\":1},\"ready\":{}}",
            "{\"hello\":{\"version\":1}}",
            "{\"end\":5",
            "{\"hello\":{\"version\":1,\"software\":\"\",\"udp_token\":\"abc\"}}",
        ] {
            assert!(Message::from_json(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let grown = br#"{"ping":{"n":1,"new":[]}}"#;
        assert_eq!(Message::from_json(grown).unwrap(), Message::Ping { n: 1 });
    }

    #[test]
    fn finishing_of_the_most_streams_fits() {
        let stream = FinishingStream {
            id: u32::MAX,
            bytes: u64::MAX,
            packets: u64::MAX,
        };
        let message = Message::Finishing(Finishing {
            streams: vec![stream; 128],
        });
        assert!(message.to_json().len() <= MAX_MESSAGE_BYTES);
        let stream = ReceivedStream {
            id: u32::MAX,
            at_ns: u64::MAX,
            bytes: u64::MAX,
        };
        let message = Message::Received(Received {
            streams: vec![stream; 128],
        });
        assert!(message.to_json().len() <= MAX_MESSAGE_BYTES);
    }

    fn any_message() -> impl Strategy<Value = Message> {
        let stream = (any::<u32>(), any::<u64>(), any::<u64>())
            .prop_map(|(id, bytes, packets)| FinishingStream { id, bytes, packets });
        let received = (any::<u32>(), any::<u64>(), any::<u64>())
            .prop_map(|(id, at_ns, bytes)| ReceivedStream { id, at_ns, bytes });
        prop_oneof![
            prop::collection::vec(received, 0..20)
                .prop_map(|streams| Message::Received(Received { streams })),
            any::<u64>().prop_map(|n| Message::Ping { n }),
            Just(Message::Ready),
            any::<u64>().prop_map(|max_bytes| Message::EndRequest { max_bytes }),
            (any::<u32>(), "[ -~]{0,40}", any::<Option<[u8; 16]>>()).prop_map(
                |(version, software, udp_token)| Message::Hello(Hello {
                    version,
                    software: software.into(),
                    udp_token
                })
            ),
            any::<[u64; 3]>().prop_map(|[n, received, sent]| Message::Pong {
                n,
                received: Nanos(received),
                sent: Nanos(sent)
            }),
            prop::collection::vec(any::<u8>(), 0..50).prop_map(Message::End),
            prop::collection::vec(stream, 0..20)
                .prop_map(|streams| Message::Finishing(Finishing { streams })),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(message in any_message()) {
            prop_assert_eq!(Message::from_json(&message.to_json()).unwrap(), message);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::from_json(&bytes);
        }
    }
}
