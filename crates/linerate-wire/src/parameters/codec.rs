//! The parameters as JSON, written and read.

use linerate_model::plain_text::PlainText;
use serde_json::{Map, Value, json};

use super::{Extension, MAX_PARAMETERS_BYTES, Parameters, Protocol};
use crate::error::{ProtocolError, beginning};
use crate::json::{self, Bounds, Keys};

const BOUNDS: Bounds = Bounds {
    depth: 8,
    values: 1024,
};
const SOFTWARE_CHARS: usize = 120;

impl Parameters {
    /// The JSON a client sends, keys and order as iperf3 3.21 writes them, ours last.
    pub fn to_json(&self) -> Vec<u8> {
        let mut map = Map::new();
        map.insert(self.protocol.key().to_owned(), Value::Bool(true));
        self.write_extent(&mut map);
        self.write_sizes_and_rates(&mut map);
        self.write_texts(&mut map);
        self.write_flags(&mut map);
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
            map.insert("linerate".to_owned(), extension);
        }
        Value::Object(map).to_string().into_bytes()
    }

    fn write_extent(&self, map: &mut Map<String, Value>) {
        put(map, "omit", self.omit);
        if let Some(core) = self.server_affinity {
            put(map, "server_affinity", core);
        }
        put(map, "time", self.time);
        put(map, "num", self.num);
        put(map, "blockcount", self.blockcount);
        put_nonzero(map, "MSS", self.mss);
        put_true(map, "nodelay", self.nodelay);
        put(map, "parallel", self.parallel);
        put_true(map, "reverse", self.reverse);
        put_true(map, "bidirectional", self.bidirectional);
        put_true(map, "mptcp", self.mptcp);
    }

    fn write_sizes_and_rates(&self, map: &mut Map<String, Value>) {
        put_nonzero(map, "window", self.window);
        put_nonzero(map, "len", self.len);
        put_nonzero(map, "bandwidth", self.bandwidth);
        put_nonzero(map, "fqrate", self.fqrate);
        put_nonzero(map, "pacing_timer", self.pacing_timer);
        put_nonzero(map, "burst", self.burst);
        if self.protocol == Protocol::Udp {
            // Always, zeros too: a 3.21 server keeps gso and gro of the test before.
            put(map, "gso", u64::from(self.gso));
            put(map, "gso_dg_size", self.gso_dg_size);
            put(map, "gso_bf_size", self.gso_bf_size);
            put(map, "gro", u64::from(self.gro));
            put(map, "gro_bf_size", self.gro_bf_size);
        }
        put_nonzero(map, "TOS", self.tos);
        put_nonzero(map, "flowlabel", self.flowlabel);
    }

    fn write_texts(&self, map: &mut Map<String, Value>) {
        put_text(map, "title", self.title.as_deref());
        put_text(map, "extra_data", self.extra_data.as_deref());
        put_text(map, "congestion", self.congestion.as_deref());
        put_text(map, "congestion_used", self.congestion_used.as_deref());
    }

    fn write_flags(&self, map: &mut Map<String, Value>) {
        put_nonzero(map, "get_server_output", u64::from(self.get_server_output));
        put_nonzero(
            map,
            "udp_counters_64bit",
            u64::from(self.udp_counters_64bit),
        );
        put_nonzero(map, "repeating_payload", u64::from(self.repeating_payload));
        put_nonzero(map, "zerocopy", u64::from(self.zerocopy));
        put_nonzero(map, "dont_fragment", u64::from(self.dont_fragment));
        put_text(map, "authtoken", self.authtoken.as_deref());
        put_nonzero(map, "skip_rx_copy", u64::from(self.skip_rx_copy));
        put_text(map, "client_version", self.client_version.as_deref());
    }

    /// Reads a client's parameters, and what had to be ignored in them. Only the form is judged
    /// here; [`Self::check`] judges the content.
    pub fn from_json(bytes: &[u8]) -> Result<(Self, Vec<PlainText>), ProtocolError> {
        if bytes.len() > MAX_PARAMETERS_BYTES {
            return Err(ProtocolError::FrameTooLong {
                message: "parameters",
                length: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                bound: 8192,
            });
        }
        let map = json::object("parameters", bytes, BOUNDS)?;
        let mut warnings = Vec::new();
        let mut keys = Keys::new(&map, "parameters", String::new(), &mut warnings);
        let mut parameters = Self {
            protocol: read_protocol(&mut keys),
            ..Self::default()
        };
        parameters.read_extent(&mut keys);
        parameters.read_sizes_and_rates(&mut keys);
        parameters.read_texts_and_flags(&mut keys);
        parameters.linerate = read_extension(&mut keys);
        Ok((parameters, warnings))
    }

    fn read_extent(&mut self, keys: &mut Keys<'_>) {
        self.server_affinity = keys.count("server_affinity");
        self.nodelay = keys.is_true("nodelay");
        self.reverse = keys.is_true("reverse");
        self.bidirectional = keys.is_true("bidirectional");
        self.mptcp = keys.is_true("mptcp");
        for (key, field) in [
            ("omit", &mut self.omit),
            ("time", &mut self.time),
            ("num", &mut self.num),
            ("blockcount", &mut self.blockcount),
            ("MSS", &mut self.mss),
            ("parallel", &mut self.parallel),
        ] {
            *field = keys.count(key).unwrap_or(*field);
        }
    }

    fn read_sizes_and_rates(&mut self, keys: &mut Keys<'_>) {
        if self.protocol == Protocol::Udp {
            self.len = 0; // no datagram size can be assumed for the client
        }
        for (key, field) in [
            ("window", &mut self.window),
            ("len", &mut self.len),
            ("bandwidth", &mut self.bandwidth),
            ("fqrate", &mut self.fqrate),
            ("pacing_timer", &mut self.pacing_timer),
            ("burst", &mut self.burst),
            ("gso_dg_size", &mut self.gso_dg_size),
            ("gso_bf_size", &mut self.gso_bf_size),
            ("gro_bf_size", &mut self.gro_bf_size),
            ("TOS", &mut self.tos),
            ("flowlabel", &mut self.flowlabel),
        ] {
            *field = keys.count(key).unwrap_or(*field);
        }
        self.gso = keys.is_nonzero("gso");
        self.gro = keys.is_nonzero("gro");
    }

    fn read_texts_and_flags(&mut self, keys: &mut Keys<'_>) {
        self.title = keys.text("title");
        self.extra_data = keys.text("extra_data");
        self.congestion = keys.text("congestion");
        self.congestion_used = keys.text("congestion_used");
        self.get_server_output = keys.is_nonzero("get_server_output");
        self.udp_counters_64bit = keys.is_nonzero("udp_counters_64bit");
        self.repeating_payload = keys.is_nonzero("repeating_payload");
        self.zerocopy = keys.is_nonzero("zerocopy");
        self.dont_fragment = keys.is_nonzero("dont_fragment");
        self.authtoken = keys.text("authtoken");
        self.skip_rx_copy = keys.is_nonzero("skip_rx_copy");
        self.client_version = keys.text("client_version");
    }
}

/// The transport. Where a client names several, the last of tcp, udp, sctp counts, as upstream.
fn read_protocol(keys: &mut Keys<'_>) -> Protocol {
    let named: Vec<Protocol> = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp]
        .into_iter()
        .filter(|protocol| keys.is_true(protocol.key()))
        .collect();
    let chosen = named.last().copied().unwrap_or_default();
    if named.len() != 1 {
        keys.warn(format!(
            "the peer's parameters name {} of tcp, udp and sctp where one is expected: {} is taken",
            named.len(),
            chosen.key()
        ));
    }
    chosen
}

/// Our own key; half of it is none.
fn read_extension(keys: &mut Keys<'_>) -> Option<Extension> {
    let map = keys.object("linerate")?;
    let mut unread = Vec::new();
    let mut inner = Keys::new(map, "parameters", "linerate.".to_owned(), &mut unread);
    let version = inner
        .count("version")
        .and_then(|version| u32::try_from(version).ok());
    let software: Option<PlainText> = inner.text("software");
    let sample_ns = inner.count("sample_ns");
    let received_ns = inner.count("received_ns");
    let spin = inner.count("spin") == Some(1);
    for text in unread {
        keys.warn(text);
    }
    let (Some(version), Some(software)) = (version, software) else {
        keys.warn("the peer's offer of linerate's extension is incomplete: ignored");
        return None;
    };
    Some(Extension {
        version,
        software: beginning(&software, SOFTWARE_CHARS),
        sample_ns,
        received_ns,
        spin,
    })
}

fn put(map: &mut Map<String, Value>, key: &str, number: u64) {
    map.insert(key.to_owned(), number.into());
}

fn put_nonzero(map: &mut Map<String, Value>, key: &str, number: u64) {
    if number != 0 {
        put(map, key, number);
    }
}

fn put_true(map: &mut Map<String, Value>, key: &str, flag: bool) {
    if flag {
        map.insert(key.to_owned(), Value::Bool(true));
    }
}

fn put_text(map: &mut Map<String, Value>, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        map.insert(key.to_owned(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Parameters, Vec<PlainText>) {
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
    fn a_wrong_type_is_ignored_with_a_warning() {
        let (parameters, warnings) =
            read(r#"{"tcp":true,"time":"7","omit":-1,"parallel":1.5,"len":5.0,"nodelay":1}"#);
        assert_eq!(
            parameters,
            Parameters {
                len: 5,
                ..Parameters::default()
            }
        );
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(
            warnings
                .iter()
                .any(|w| w.contains("'time'") && w.contains("a string"))
        );
        assert!(warnings.iter().any(|w| w.contains("contain -1 as 'omit'")));
    }

    #[test]
    fn unknown_keys_are_ignored_in_silence() {
        assert_eq!(
            read(r#"{"tcp":true,"new":{"a":[1]}}"#),
            (Parameters::default(), vec![])
        );
    }

    #[test]
    fn one_transport_is_expected() {
        assert_eq!(read("{}").0.protocol, Protocol::Tcp);
        assert_eq!(read("{}").1.len(), 1);
        assert_eq!(read(r#"{"udp":true,"tcp":true}"#).0.protocol, Protocol::Udp);
        assert_eq!(read(r#"{"udp":true,"tcp":false}"#).1.len(), 0);
    }

    #[test]
    fn half_an_extension_is_none() {
        let (parameters, warnings) = read(r#"{"tcp":true,"linerate":{"version":4294967296}}"#);
        assert_eq!(parameters.linerate, None);
        assert_eq!(warnings.len(), 1);
        let (parameters, _) = read(r#"{"tcp":true,"linerate":{"version":1,"software":"x\u001b"}}"#);
        assert_eq!(
            parameters.linerate,
            Some(Extension {
                version: 1,
                software: r"x\u{1b}".into(),
                sample_ns: None,
                received_ns: None,
                spin: false,
            })
        );
    }
}
