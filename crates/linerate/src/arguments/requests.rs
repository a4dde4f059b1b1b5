//! What was typed, checked: what each command is asked to do.

use std::net::IpAddr;
use std::path::PathBuf;

use linerate_engine::server::ServerLimits;
use linerate_model::observation::Watch;
use linerate_model::plan::{
    DEFAULT_TCP_BLOCK, DEFAULT_UDP_BLOCK, DEFAULT_UDP_RATE, Direction, End, Family, Pace, Plan,
    Protocol,
};
use linerate_model::precision::DEFAULT_MOST;
use linerate_model::transcript::Given;
use linerate_model::units::{BitRate, Nanos};

use super::{
    ExplainArguments, ObserveArguments, PictureArguments, ServeArguments, TestArguments, family,
};

/// Records to compare.
#[derive(Debug)]
pub(crate) struct CompareRequest {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) html: Option<PathBuf>,
    pub(crate) format: Format,
}

/// Output of other tools, or a record, to explain.
#[derive(Debug)]
pub(crate) struct ExplainRequest {
    /// `None` = standard input.
    pub(crate) inputs: Vec<Option<PathBuf>>,
    pub(crate) given: Given,
    pub(crate) format: Format,
}

/// Connections to watch.
#[derive(Debug)]
pub(crate) struct ObserveRequest {
    pub(crate) watch: Watch,
    pub(crate) format: Format,
    pub(crate) output: Option<PathBuf>,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
    JsonStream,
}

/// A test to run.
#[derive(Debug)]
pub(crate) struct TestRequest {
    pub(crate) plan: Plan,
    pub(crate) format: Format,
    /// Text has all of the report.
    pub(crate) full: bool,
    pub(crate) output: Option<PathBuf>,
    pub(crate) pictures: PictureArguments,
    pub(crate) user: Option<String>,
    pub(crate) public_key: Option<PathBuf>,
    pub(crate) pkcs1: bool,
    /// `-l` was not given.
    pub(crate) fit_datagrams: bool,
    pub(crate) runs: Runs,
}

/// Which runs a test makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    One,
    /// And those that decide its first finding.
    CounterTests,
    /// The steps of RFC 6349 instead.
    Rfc6349,
}

/// A server to run.
#[derive(Debug)]
pub(crate) struct ServeRequest {
    pub(crate) port: u16,
    pub(crate) bind: Option<IpAddr>,
    pub(crate) bind_device: Option<String>,
    pub(crate) family: Family,
    pub(crate) one_off: bool,
    pub(crate) limits: ServerLimits,
    pub(crate) grace: Nanos,
    pub(crate) read_rate: Option<BitRate>,
    pub(crate) private_key: Option<PathBuf>,
    pub(crate) users: Option<PathBuf>,
    pub(crate) pkcs1: bool,
    pub(crate) skew_seconds: Option<u64>,
    pub(crate) output: Option<PathBuf>,
    pub(crate) json_stream: bool,
}

/// A record to show.
#[derive(Debug)]
pub(crate) struct ShowRequest {
    pub(crate) file: PathBuf,
    pub(crate) pictures: PictureArguments,
    /// Text has all of the report.
    pub(crate) full: bool,
    pub(crate) format: Format,
}

impl TestArguments {
    pub(super) fn request(self) -> Result<TestRequest, String> {
        let mut plan = Plan::new(self.host);
        plan.port = self.port;
        plan.family = family(self.v4, self.v6);
        plan.protocol = if self.udp {
            Protocol::Udp
        } else {
            Protocol::Tcp
        };
        plan.mptcp = self.mptcp;
        plan.direction = match (self.reverse, self.bidir) {
            (true, _) => Direction::Receive,
            (_, true) => Direction::Both,
            _ => Direction::Send,
        };
        plan.streams = self.parallel;
        plan.end = match (self.time, self.bytes, self.blocks) {
            (_, Some(bytes), _) => End::Bytes(bytes),
            (_, _, Some(blocks)) => End::Blocks(blocks.count()),
            (Some(time), None, None) => End::TimeNs(time),
            (None, None, None) if self.precision.is_some() => End::TimeNs(DEFAULT_MOST),
            (None, None, None) => End::TimeNs(Nanos::from_millis(10_000)),
        };
        plan.omit_ns = Nanos::from_millis(u64::from(self.omit) * 1000);
        plan.interval_ns = self.interval;
        plan.sample_ns = self.sample;
        plan.block_bytes = self.length.unwrap_or(if self.udp {
            DEFAULT_UDP_BLOCK
        } else {
            DEFAULT_TCP_BLOCK
        });
        plan.rate_is_default = self.rate.is_none() && self.udp;
        plan.rate_bps = match self.rate {
            Some(BitRate(0)) => None,
            None if self.udp => Some(DEFAULT_UDP_RATE),
            rate => rate,
        };
        plan.kernel_pacing_bps = self.fq_rate.filter(|rate| rate.0 > 0);
        plan.pace = self.pace;
        if plan.pace == Pace::Spin && plan.rate_bps.is_none() && self.udp {
            return Err("--pace: without a rate nothing is paced: say -b".to_owned());
        }
        plan.window_bytes = self.window.filter(|window| window.0 > 0);
        plan.mss_bytes = self.mss;
        plan.nodelay = self.no_delay;
        plan.congestion = self.congestion.map(Into::into);
        plan.tos = self.tos.or(self.dscp.map(|dscp| dscp << 2)).unwrap_or(0);
        plan.flow_label = self.flowlabel;
        plan.bind = self.bind.map(Into::into);
        plan.bind_device = self.bind_dev.map(Into::into);
        plan.client_port = self.cport;
        plan.zerocopy = self.zerocopy;
        plan.skip_receive_copy = self.skip_rx_copy;
        plan.client_cpu = self.affinity.map(|(client, _)| client);
        plan.server_cpu = self.affinity.and_then(|(_, server)| server);
        plan.dont_fragment = self.dont_fragment;
        plan.connect_timeout_ns = self.connect_timeout;
        plan.idle_timeout_ns = self.idle_timeout;
        plan.precision = self.precision;
        plan.expect = self.expect;
        plan.provisioned_bps = self.provisioned;
        plan.title = self.title.map(Into::into);
        plan.check().map_err(|error| error.to_string())?;
        Ok(TestRequest {
            plan,
            format: match (self.format.json, self.format.json_stream) {
                (true, _) => Format::Json,
                (_, true) => Format::JsonStream,
                _ => Format::Text,
            },
            full: self.full,
            output: self.output,
            pictures: self.pictures,
            user: self.username,
            public_key: self.public_key,
            pkcs1: self.use_pkcs1_padding,
            fit_datagrams: self.length.is_none(),
            runs: match (self.counter_test, self.rfc6349) {
                (true, _) => Runs::CounterTests,
                (_, true) => Runs::Rfc6349,
                _ => Runs::One,
            },
        })
    }
}

impl ServeArguments {
    pub(super) fn request(self) -> ServeRequest {
        let defaults = ServerLimits::default();
        ServeRequest {
            port: self.port,
            bind: self.bind,
            bind_device: self.bind_dev,
            family: family(self.v4, self.v6),
            one_off: self.one_off,
            limits: ServerLimits {
                clients: self.max_clients,
                clients_per_address: self.max_clients_per_address,
                streams: self.max_streams,
                all_streams: self.max_total_streams.unwrap_or(defaults.all_streams),
                memory: self.max_memory.unwrap_or(defaults.memory),
                samples_per_second: self.max_sample_rate.unwrap_or(defaults.samples_per_second),
                duration: self.max_duration,
                rate: self.max_rate,
                idle: self.idle_timeout,
                allowed: self.allow,
                ..defaults
            },
            grace: self.grace,
            read_rate: self.read_rate.filter(|rate| rate.0 > 0),
            private_key: self.private_key,
            users: self.users,
            pkcs1: self.use_pkcs1_padding,
            skew_seconds: self.time_skew_threshold,
            output: self.output,
            json_stream: self.json_stream,
        }
    }
}

impl ObserveArguments {
    pub(super) fn request(self) -> Result<ObserveRequest, String> {
        let between = |option: &str, value: Nanos, least: Nanos, most: Nanos| {
            if (least..=most).contains(&value) {
                Ok(value)
            } else {
                Err(format!(
                    "{option}: {value} asked for; {least} to {most} is possible"
                ))
            }
        };
        let millis = Nanos::from_millis;
        if self.port.contains(&0) {
            return Err("--port: no connection has port 0; 1 to 65535 can be watched".to_owned());
        }
        let year = millis(365 * 86_400_000);
        Ok(ObserveRequest {
            watch: Watch {
                ports: self.port,
                peers: self.to.into_iter().map(Into::into).collect(),
                pid: self.pid,
                listening: self.listen,
                time_ns: self
                    .time
                    .map(|time| between("-t", time, millis(1), year))
                    .transpose()?,
                sample_ns: between("--interval", self.interval, millis(1), millis(10_000))?,
                interval_ns: between("--progress", self.progress, millis(100), millis(3_600_000))?,
            },
            format: match (self.format.json, self.format.json_stream) {
                (true, _) => Format::Json,
                (_, true) => Format::JsonStream,
                _ => Format::Text,
            },
            output: self.output,
        })
    }
}

impl ExplainArguments {
    pub(super) fn request(self) -> ExplainRequest {
        let standard = |file: PathBuf| (file.as_os_str() != "-").then_some(file);
        let mut inputs: Vec<_> = self.files.into_iter().map(standard).collect();
        if inputs.is_empty() {
            inputs.push(None);
        }
        ExplainRequest {
            inputs,
            given: Given {
                rtt: self.rtt.filter(|rtt| rtt.0 > 0),
                link: self.link.filter(|rate| rate.0 > 0),
                buffer: self.buffer,
                kernel_bytes: self.kernel_bytes,
                asked: self.asked.filter(|rate| rate.0 > 0),
                amounts: self.asked_amounts,
                queue_depth: self.queue_depth,
                changed: self.changed,
            },
            format: if self.json {
                Format::Json
            } else {
                Format::Text
            },
        }
    }
}
