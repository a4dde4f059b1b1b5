//! The messages between two linerates: the byte 76, then a frame with one JSON object whose only
//! key names the message: `{"ping":{"n":1}}`.
//!
//! A client offers the extension with the key `linerate` in its parameters; nothing of it goes
//! over a wire whose other end is stock. Keys that are unknown inside a message are ignored, so
//! that a message can grow; an unknown message is an error.

use linerate_model::hexadecimal;
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the extension, from 1.
    pub version: u32,
    /// The program and its version, for people.
    #[serde(deserialize_with = "read_software")]
    pub software: PlainText,
    /// What the client must show in each UDP handshake, see [`crate::udp::TokenHandshake`];
    /// 32 hexadecimal digits on the wire.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_token",
        deserialize_with = "read_token"
    )]
    pub udp_token: Option<[u8; 16]>,
    /// The answer to [`TargetAsked`]; absent where none was asked for, and of a server that knows no transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetAnswer>,
    /// The client asked for a probe connection, and the first TCP connection with the test's cookie is one, see
    /// [`crate::probe`]; absent where it did not ask, and of a server that knows none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probe: bool,
}

/// Where the server is to put what arrives, in the client's parameters: the streams then carry frames of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetAsked {
    /// A folder of the server's; absent = what arrives is checked and dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PlainText>,
    /// Past the page cache, where the file system can.
    pub direct: bool,
    /// The files stay there; otherwise they have no names and are gone when the test ends.
    pub keep: bool,
}

/// The server's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetAnswer {
    /// Why it does not take files there; absent = it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<PlainText>,
}

/// How far the server's target is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Bytes of files that were written, or checked and dropped.
    pub bytes: u64,
    /// Why it writes no more: the client ends the transfer, and hears in the record what was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PlainText>,
}

/// What the sending side of some streams had written when it stopped. The receiver knows from it
/// what to wait for, and loss can be counted up to the last datagram sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finishing {
    /// The streams this side sends on.
    pub streams: Vec<FinishingStream>,
}

/// One stream of [`Finishing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// The streams that this side receives on.
    pub streams: Vec<ReceivedStream>,
}

/// One stream of [`Received`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedStream {
    /// The positional id of the stream.
    pub id: u32,
    /// When it was counted, on the server's monotonic clock.
    pub at_ns: u64,
    /// All bytes read, the omitted part included.
    pub bytes: u64,
}

/// A message between two linerates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// C→S: send back a pong.
    Ping {
        /// The client's number for it.
        n: u64,
    },
    /// C→S: enough pings, create the streams.
    Ready {},
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
        #[serde(rename = "received_ns")]
        received: Nanos,
        /// When this answer was written, on the same clock (`sent_ns` on the wire).
        #[serde(rename = "sent_ns")]
        sent: Nanos,
    },
    /// S→C: the server's half of the record: JSON bytes that are not looked into here, but cut out by hand.
    #[serde(skip)]
    End(Vec<u8>),
    /// Both ways: this side has stopped sending.
    Finishing(Finishing),
    /// S→C: what has arrived, while the test runs.
    Received(Received),
    /// S→C: how far the target is, now and then until its last fsync has returned.
    Stored(Stored),
}

impl Message {
    /// The name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ping { .. } => "ping",
            Self::Ready {} => "ready",
            Self::EndRequest { .. } => "end_request",
            Self::Hello(_) => "hello",
            Self::Pong { .. } => "pong",
            Self::End(_) => "end",
            Self::Finishing(_) => "finishing",
            Self::Received(_) => "received",
            Self::Stored(_) => "stored",
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
        if let Self::End(record) = self {
            return [END_OPENING, record, END_CLOSING].concat();
        }
        // Numbers and texts alone: it cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
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
            let (length, bound) = (bytes.len(), MAX_MESSAGE_BYTES);
            return Err(ProtocolError::too_long("linerate message", length, bound));
        }
        serde_json::from_slice(bytes).map_err(|error| ProtocolError::Extension {
            reason: beginning(&error.to_string(), 200),
        })
    }
}

/// What a peer says of its program, as far as it is printed.
pub(crate) fn software(text: &str) -> PlainText {
    beginning(text, SOFTWARE_CHARS)
}

fn read_software<'de, D: Deserializer<'de>>(input: D) -> Result<PlainText, D::Error> {
    String::deserialize(input).map(|text| software(&text))
}

#[expect(clippy::ref_option, reason = "serde's signature")]
fn write_token<S: Serializer>(token: &Option<[u8; 16]>, to: S) -> Result<S::Ok, S::Error> {
    token
        .as_ref()
        .map(|token| hexadecimal::digits(token))
        .serialize(to)
}

fn read_token<'de, D: Deserializer<'de>>(input: D) -> Result<Option<[u8; 16]>, D::Error> {
    let wrong = || D::Error::custom("the udp_token of its hello is not 32 hexadecimal digits");
    let text = Option::<String>::deserialize(input)?;
    text.map(|text| hexadecimal::bytes(&text).ok_or_else(wrong))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_wire_is_written_down() {
        let text = |message: Message| String::from_utf8(message.to_json()).unwrap();
        assert_eq!(text(Message::Ping { n: 3 }), r#"{"ping":{"n":3}}"#);
        assert_eq!(text(Message::Ready {}), r#"{"ready":{}}"#);
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
            target: None,
            probe: false,
        };
        assert_eq!(
            text(Message::Hello(hello)),
            format!(
                r#"{{"hello":{{"version":1,"software":"l","udp_token":"{}"}}}}"#,
                "ab".repeat(16)
            )
        );
        assert_eq!(Message::Ready {}.encode()[..5], [76, 0, 0, 0, 12]);
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
            Just(Message::Ready {}),
            any::<u64>().prop_map(|max_bytes| Message::EndRequest { max_bytes }),
            (any::<u32>(), "[ -~]{0,40}", any::<Option<[u8; 16]>>()).prop_map(
                |(version, software, udp_token)| Message::Hello(Hello {
                    version,
                    software: software.into(),
                    udp_token,
                    target: None,
                    probe: version % 2 == 1,
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
