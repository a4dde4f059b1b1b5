//! What was typed, checked: what each command is asked to do.

use std::net::IpAddr;
use std::path::PathBuf;

use linerate_engine::server::ServerLimits;
use linerate_model::observation::Watch;
use linerate_model::plan::{Family, Plan};
use linerate_model::transcript::Given;
use linerate_model::units::{BitRate, Nanos};

use crate::report_files::ReportFiles;

use super::{ExplainArguments, ObserveArguments, ServeArguments, TestArguments, family};

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
    pub(crate) files: ReportFiles,
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
    pub(crate) files: ReportFiles,
    /// Text has all of the report.
    pub(crate) full: bool,
    pub(crate) format: Format,
}

impl TestArguments {
    pub(super) fn request(self) -> Result<TestRequest, String> {
        let plan = self
            .plan
            .plan(self.host)
            .map_err(|error| error.to_string())?;
        Ok(TestRequest {
            plan,
            format: match (self.format.json, self.format.json_stream) {
                (true, _) => Format::Json,
                (_, true) => Format::JsonStream,
                _ => Format::Text,
            },
            full: self.full,
            output: self.output,
            files: self.files,
            user: self.username,
            public_key: self.public_key,
            pkcs1: self.use_pkcs1_padding,
            fit_datagrams: !self.plan.has("-l"),
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
