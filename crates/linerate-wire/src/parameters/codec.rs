//! The parameters as JSON, written and read.

use serde_json::{Map, Value, json};

use super::{Extension, MAX_PARAMETERS_BYTES, Parameters, Protocol};
use crate::error::ProtocolError;
use crate::extension::software;
use crate::json::{self, Bounds, Keys};

const BOUNDS: Bounds = Bounds {
    depth: 8,
    values: 1024,
};

impl Parameters {
    /// The JSON a client sends, keys and order as iperf3 3.21 writes them, ours last.
    pub fn to_json(&self) -> Vec<u8> {
        let mut map = Map::new();
        put_true(&mut map, key(self.protocol), true);
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
        parameters.read_extent(&keys);
        parameters.read_sizes_and_rates(&keys);
        parameters.read_texts_and_flags(&keys);
        parameters.linerate = read_extension(&keys);
        Ok(parameters)
    }

    fn read_extent(&mut self, keys: &Keys<'_>) {
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

    fn read_sizes_and_rates(&mut self, keys: &Keys<'_>) {
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

    fn read_texts_and_flags(&mut self, keys: &Keys<'_>) {
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
            })
        );
    }
}
