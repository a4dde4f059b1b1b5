//! The parameters as JSON, written and read.

use linerate_model::plain_text::{PlainLines, PlainText};
use serde_json::{Map, Value, json};

use super::{Extension, MAX_PARAMETERS_BYTES, Parameters, Protocol};
use crate::error::ProtocolError;
use crate::extension::software;
use crate::json::{self, Bounds, Keys};

const BOUNDS: Bounds = Bounds {
    depth: 8,
    values: 1024,
};

/// How a field stands on the wire, and where it is in [`Parameters`].
enum Field {
    /// A number, always.
    Number(fn(&mut Parameters) -> &mut u64),
    /// A number, always over UDP and never else: a 3.21 server keeps gso and gro of the test before.
    UdpNumber(fn(&mut Parameters) -> &mut u64),
    /// 1 or 0, where a [`Self::UdpNumber`] stands.
    UdpFlag(fn(&mut Parameters) -> &mut bool),
    /// A number that is left out where it is 0.
    Nonzero(fn(&mut Parameters) -> &mut u64),
    /// A number that may be absent.
    Optional(fn(&mut Parameters) -> &mut Option<u64>),
    /// `true`, or left out.
    True(fn(&mut Parameters) -> &mut bool),
    /// 1, or left out.
    One(fn(&mut Parameters) -> &mut bool),
    /// One line of text.
    Text(fn(&mut Parameters) -> &mut Option<PlainText>),
    /// Lines of text.
    Lines(fn(&mut Parameters) -> &mut Option<PlainLines>),
}

use Field::{Lines, Nonzero, Number, One, Optional, Text, True, UdpFlag, UdpNumber};

/// Every key but the transport's and ours, in the order in which iperf3 3.21 writes them.
const FIELDS: [(&str, Field); 36] = [
    ("omit", Number(|p| &mut p.omit)),
    ("server_affinity", Optional(|p| &mut p.server_affinity)),
    ("time", Number(|p| &mut p.time)),
    ("num", Number(|p| &mut p.num)),
    ("blockcount", Number(|p| &mut p.blockcount)),
    ("MSS", Nonzero(|p| &mut p.mss)),
    ("nodelay", True(|p| &mut p.nodelay)),
    ("parallel", Number(|p| &mut p.parallel)),
    ("reverse", True(|p| &mut p.reverse)),
    ("bidirectional", True(|p| &mut p.bidirectional)),
    ("mptcp", True(|p| &mut p.mptcp)),
    ("window", Nonzero(|p| &mut p.window)),
    ("len", Nonzero(|p| &mut p.len)),
    ("bandwidth", Nonzero(|p| &mut p.bandwidth)),
    ("fqrate", Nonzero(|p| &mut p.fqrate)),
    ("pacing_timer", Nonzero(|p| &mut p.pacing_timer)),
    ("burst", Nonzero(|p| &mut p.burst)),
    ("gso", UdpFlag(|p| &mut p.gso)),
    ("gso_dg_size", UdpNumber(|p| &mut p.gso_dg_size)),
    ("gso_bf_size", UdpNumber(|p| &mut p.gso_bf_size)),
    ("gro", UdpFlag(|p| &mut p.gro)),
    ("gro_bf_size", UdpNumber(|p| &mut p.gro_bf_size)),
    ("TOS", Nonzero(|p| &mut p.tos)),
    ("flowlabel", Nonzero(|p| &mut p.flowlabel)),
    ("title", Text(|p| &mut p.title)),
    ("extra_data", Lines(|p| &mut p.extra_data)),
    ("congestion", Text(|p| &mut p.congestion)),
    ("congestion_used", Text(|p| &mut p.congestion_used)),
    ("get_server_output", One(|p| &mut p.get_server_output)),
    ("udp_counters_64bit", One(|p| &mut p.udp_counters_64bit)),
    ("repeating_payload", One(|p| &mut p.repeating_payload)),
    ("zerocopy", One(|p| &mut p.zerocopy)),
    ("dont_fragment", One(|p| &mut p.dont_fragment)),
    ("authtoken", Text(|p| &mut p.authtoken)),
    ("skip_rx_copy", One(|p| &mut p.skip_rx_copy)),
    ("client_version", Text(|p| &mut p.client_version)),
];

impl Field {
    /// The value on the wire; `None` where the key is left out.
    fn written(&self, p: &mut Parameters) -> Option<Value> {
        let udp = p.protocol == Protocol::Udp;
        match self {
            Number(of) => Some((*of(p)).into()),
            UdpNumber(of) => udp.then(|| (*of(p)).into()),
            UdpFlag(of) => udp.then(|| u64::from(*of(p)).into()),
            Nonzero(of) => Some(*of(p)).filter(|number| *number != 0).map(Into::into),
            Optional(of) => of(p).map(Into::into),
            True(of) => of(p).then_some(Value::Bool(true)),
            One(of) => of(p).then(|| 1.into()),
            Text(of) => of(p).as_deref().map(Into::into),
            Lines(of) => of(p).as_deref().map(Into::into),
        }
    }

    /// Reads it; a number that is absent leaves what was assumed.
    fn read(&self, key: &str, keys: &Keys<'_>, p: &mut Parameters) {
        match self {
            Number(of) | UdpNumber(of) | Nonzero(of) => {
                let number = of(p);
                *number = keys.count(key).unwrap_or(*number);
            }
            Optional(of) => *of(p) = keys.count(key),
            True(of) => *of(p) = keys.is_true(key),
            UdpFlag(of) | One(of) => *of(p) = keys.is_nonzero(key),
            Text(of) => *of(p) = keys.text(key),
            Lines(of) => *of(p) = keys.text(key),
        }
    }
}

impl Parameters {
    /// The JSON a client sends, keys and order as iperf3 3.21 writes them, ours last.
    pub fn to_json(&self) -> Vec<u8> {
        let mut parameters = self.clone();
        let mut map = Map::new();
        map.insert(key(self.protocol).to_owned(), Value::Bool(true));
        for (key, field) in &FIELDS {
            if let Some(value) = field.written(&mut parameters) {
                map.insert((*key).to_owned(), value);
            }
        }
        if let Some(linerate) = &self.linerate {
            let mut extension =
                json!({ "version": linerate.version, "software": linerate.software });
            if let Some(nanos) = linerate.sample_ns {
                extension["sample_ns"] = nanos.into();
            }
            if let Some(nanos) = linerate.received_ns {
                extension["received_ns"] = nanos.into();
            }
            if linerate.spin {
                extension["spin"] = 1.into();
            }
            if linerate.probe {
                extension["probe"] = 1.into();
            }
            if let Some(target) = &linerate.target {
                extension["target"] = json!(target);
            }
            map.insert("linerate".to_owned(), extension);
        }
        Value::Object(map).to_string().into_bytes()
    }

    /// The JSON, where it is no longer than a server takes.
    pub(crate) fn checked_json(&self) -> Result<Vec<u8>, ProtocolError> {
        let json = self.to_json();
        if json.len() > MAX_PARAMETERS_BYTES {
            return Err(ProtocolError::OursTooLong {
                message: "parameters",
                length: u64::try_from(json.len()).unwrap_or(u64::MAX),
                bound: 8192,
                remedy: "shorten title or extra_data",
            });
        }
        Ok(json)
    }

    /// Reads a client's parameters. Only the form is judged here; [`Self::check`] judges the content.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ProtocolError> {
        if bytes.len() > MAX_PARAMETERS_BYTES {
            let (length, bound) = (bytes.len(), MAX_PARAMETERS_BYTES);
            return Err(ProtocolError::too_long("parameters", length, bound));
        }
        let map = json::object("parameters", bytes, BOUNDS)?;
        let keys = Keys::new(&map, "parameters", String::new());
        // Where a client names several transports, the last counts, as upstream.
        let named = [Protocol::Sctp, Protocol::Udp, Protocol::Tcp]
            .into_iter()
            .find(|protocol| keys.is_true(key(*protocol)));
        let mut parameters = Self {
            protocol: named.unwrap_or(Protocol::Tcp),
            ..Self::default()
        };
        if parameters.protocol == Protocol::Udp {
            parameters.len = 0; // no datagram size can be assumed for the client
        }
        for (key, field) in &FIELDS {
            field.read(key, &keys, &mut parameters);
        }
        parameters.linerate = read_extension(&keys);
        Ok(parameters)
    }
}

/// The key of a transport on the wire.
const fn key(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    }
}

/// Our own key; half of it is none.
fn read_extension(keys: &Keys<'_>) -> Option<Extension> {
    let inner = Keys::new(keys.object("linerate")?, "parameters", String::new());
    Some(Extension {
        version: u32::try_from(inner.count("version")?).ok()?,
        software: software(&inner.text::<String>("software")?),
        sample_ns: inner.count("sample_ns"),
        received_ns: inner.count("received_ns"),
        spin: inner.count("spin") == Some(1),
        target: inner
            .object("target")
            .and_then(|target| serde_json::from_value(target.clone().into()).ok()),
        probe: inner.count("probe") == Some(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Parameters {
        Parameters::from_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn written_as_a_stock_client_writes() {
        let parameters = Parameters {
            protocol: Protocol::Udp,
            len: 1460,
            bandwidth: 1_048_576,
            client_version: Some("3.21".into()),
            ..Parameters::default()
        };
        assert_eq!(
            String::from_utf8(parameters.to_json()).unwrap(),
            r#"{"udp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,"len":1460,"bandwidth":1048576,"pacing_timer":1000,"gso":0,"gso_dg_size":0,"gso_bf_size":65507,"gro":0,"gro_bf_size":65507,"client_version":"3.21"}"#
        );
    }

    #[test]
    fn a_wrong_type_is_ignored() {
        let parameters =
            read(r#"{"tcp":true,"time":"7","omit":-1,"parallel":1.5,"len":5.0,"nodelay":1}"#);
        assert_eq!(
            parameters,
            Parameters {
                len: 5,
                ..Parameters::default()
            }
        );
    }

    #[test]
    fn unknown_keys_are_ignored_in_silence() {
        assert_eq!(
            read(r#"{"tcp":true,"new":{"a":[1]}}"#),
            Parameters::default()
        );
    }

    #[test]
    fn one_transport_is_expected() {
        assert_eq!(read("{}").protocol, Protocol::Tcp);
        assert_eq!(read(r#"{"udp":true,"tcp":true}"#).protocol, Protocol::Udp);
        assert_eq!(read(r#"{"udp":true,"tcp":false}"#).protocol, Protocol::Udp);
    }

    #[test]
    fn half_an_extension_is_none() {
        let parameters = read(r#"{"tcp":true,"linerate":{"version":4294967296}}"#);
        assert_eq!(parameters.linerate, None);
        let parameters = read(r#"{"tcp":true,"linerate":{"version":1,"software":"x\u001b"}}"#);
        assert_eq!(
            parameters.linerate,
            Some(Extension {
                version: 1,
                software: r"x\u{1b}".into(),
                sample_ns: None,
                received_ns: None,
                spin: false,
                target: None,
                probe: false,
            })
        );
    }
}
