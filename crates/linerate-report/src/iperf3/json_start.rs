//! The `start` part of iperf3's JSON.

use linerate_model::plan::{Direction, End, Plan, Protocol};
use linerate_model::progress::StreamOpened;
use linerate_model::record::{ControlFacts, Role};
use linerate_model::units::{BitRate, Bytes};
use serde_json::{Map, Value, json};

use super::json::{insert, number};
use super::text::{protocol_name, whole_seconds};
use super::timeline::Timeline;
use super::{Iperf3Settings, host_and_port};
use crate::date;

/// What is known of the beginning.
#[derive(Debug, Clone, Default)]
pub(super) struct Start {
    connected: Option<Connected>,
    started: bool,
    /// A server's listener's: sent from, received into.
    buffers: Option<(u64, u64)>,
}

#[derive(Debug, Clone)]
struct Connected {
    control: ControlFacts,
    cookie: String,
    at_unix_ms: u64,
}

impl Start {
    /// The control connection stands.
    pub(super) fn connected(&mut self, control: &ControlFacts, cookie: &str, at_unix_ms: u64) {
        self.connected = Some(Connected {
            control: control.clone(),
            cookie: cookie.to_owned(),
            at_unix_ms,
        });
    }

    /// What the sockets of TCP streams start with, bytes.
    pub(super) fn set_buffers(&mut self, send: u64, receive: u64) {
        self.buffers = Some((send, receive));
    }

    /// The streams were let go.
    pub(super) fn started(&mut self) {
        self.started = true;
    }

    /// As far as it got.
    pub(super) fn value(&self, settings: &Iperf3Settings, timeline: &Timeline) -> Value {
        let mut start = Map::new();
        let connected: Vec<Value> = timeline.streams.iter().map(stream).collect();
        insert(&mut start, "connected", connected);
        insert(&mut start, "version", settings.version_line());
        insert(&mut start, "system_info", settings.system_info.clone());
        // iperf3's server has the settings before it says who came.
        let server = settings.role == Role::Server;
        let tcp = timeline.plan().protocol == Protocol::Tcp;
        let rated = |plan: &&Plan| server && plan.rate_bps.is_some();
        if let Some(plan) = timeline.told().filter(rated) {
            insert(&mut start, "target_bitrate", rate(plan));
        }
        if server && tcp {
            self.add_buffers(&mut start, timeline);
        }
        if let Some(connected) = &self.connected {
            connected.add_to(&mut start, settings, timeline);
        }
        if !(server && tcp) {
            self.add_buffers(&mut start, timeline);
        }
        if self.started {
            let value = match timeline.told() {
                Some(plan) => test_start(settings, plan),
                None => test_seen(&timeline.plan()),
            };
            insert(&mut start, "test_start", value);
        }
        Value::Object(start)
    }

    /// The socket buffers, asked for and had.
    fn add_buffers(&self, start: &mut Map<String, Value>, timeline: &Timeline) {
        if timeline.plan().protocol == Protocol::Sctp {
            return;
        }
        let first = timeline.streams.first();
        let of_first = first.map(|first| (first.send_buffer_bytes, first.receive_buffer_bytes));
        let all = self
            .buffers
            .map(|(sent, received)| (Some(sent), Some(received)));
        let Some((send, receive)) = all.or(of_first) else {
            return;
        };
        if let Some(plan) = timeline.told() {
            let asked = plan.window_bytes.map_or(0, Bytes::count);
            insert(start, "sock_bufsize", asked);
        }
        for (key, bytes) in [("sndbuf_actual", send), ("rcvbuf_actual", receive)] {
            if let Some(bytes) = bytes {
                insert(start, key, bytes);
            }
        }
    }
}

impl Connected {
    fn add_to(
        &self,
        start: &mut Map<String, Value>,
        settings: &Iperf3Settings,
        timeline: &Timeline,
    ) {
        let plan = &timeline.plan();
        let seconds = self.at_unix_ms / 1000;
        let (time, millis) = (date::rfc1123(seconds), self.at_unix_ms);
        let timestamp = json!({"time": time, "timesecs": seconds, "timemillisecs": millis});
        insert(start, "timestamp", timestamp);
        let (key, host, port) = match settings.role {
            Role::Client => ("connecting_to", plan.host.to_string(), plan.port),
            Role::Server => {
                let (host, port) = host_and_port(&self.control.remote);
                ("accepted_connection", host, port)
            }
        };
        insert(start, key, json!({"host": host, "port": port}));
        insert(start, "cookie", self.cookie.clone());
        if let Some(plan) = timeline.told() {
            match plan.mss_bytes {
                _ if plan.protocol != Protocol::Tcp => {}
                Some(mss) => insert(start, "tcp_mss", mss),
                None => insert(start, "tcp_mss_default", self.segment_size(timeline)),
            }
            insert(start, "target_bitrate", rate(plan));
            insert(start, "fq_rate", pacing(plan));
        }
    }

    /// The data streams', where they stand: the control connection's may be held down so that it
    /// survives a path on which large packets vanish.
    fn segment_size(&self, timeline: &Timeline) -> u32 {
        let stream = timeline.streams.first().and_then(|stream| stream.mss_bytes);
        stream.or(self.control.mss_bytes).unwrap_or(0)
    }
}

fn stream(stream: &StreamOpened) -> Value {
    let ((local, local_port), (remote, remote_port)) =
        (host_and_port(&stream.local), host_and_port(&stream.remote));
    json!({
        "socket": stream.socket,
        "local_host": local,
        "local_port": local_port,
        "remote_host": remote,
        "remote_port": remote_port,
    })
}

fn rate(plan: &Plan) -> u64 {
    plan.rate_bps.map_or(0, BitRate::bits_per_second)
}

fn pacing(plan: &Plan) -> u64 {
    plan.kernel_pacing_bps.map_or(0, BitRate::bits_per_second)
}

/// What the streams show of a test whose plan was not told.
fn test_seen(plan: &Plan) -> Value {
    json!({
        "protocol": protocol_name(plan),
        "num_streams": plan.streams,
        "reverse": u8::from(plan.direction == Direction::Receive),
        "bidir": u8::from(plan.direction == Direction::Both),
    })
}

fn test_start(settings: &Iperf3Settings, plan: &Plan) -> Value {
    let (duration, bytes, blocks) = match plan.end {
        End::TimeNs(_) if settings.endless => (0, 0, 0),
        End::TimeNs(span) => (whole_seconds(span.as_secs_f64()), 0, 0),
        End::Bytes(bytes) => (0, bytes.count(), 0),
        End::Blocks(blocks) => (0, 0, blocks),
    };
    let interval = if settings.without_intervals {
        0.0
    } else {
        plan.interval_ns.as_secs_f64()
    };
    json!({
        "protocol": protocol_name(plan),
        "num_streams": plan.streams,
        "blksize": plan.block_bytes.count(),
        "omit": whole_seconds(plan.omit_ns.as_secs_f64()),
        "duration": duration,
        "bytes": bytes,
        "blocks": blocks,
        "reverse": u8::from(plan.direction == Direction::Receive),
        "tos": plan.tos,
        "target_bitrate": rate(plan),
        "bidir": u8::from(plan.direction == Direction::Both),
        "fqrate": pacing(plan),
        "interval": number(interval),
        "gso": u8::from(settings.gsro),
        "gro": u8::from(settings.gsro),
    })
}
