//! What was typed, checked: what each command is asked to do.

use std::path::PathBuf;

use linerate_engine::server::ServerLimits;
use linerate_model::observation::Watch;
use linerate_model::plan::{Family, Plan};
use linerate_model::transcript::Given;
use linerate_model::units::Nanos;
use linerate_wire::iperf2;

use super::{
    Budget, ExplainArguments, FormatArguments, ObserveArguments, ServeArguments, TestArguments,
};

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
    JsonStream,
}

impl Format {
    /// Of a command that has no other JSON than a document.
    pub(crate) const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

impl FormatArguments {
    pub(crate) const fn format(self) -> Format {
        match (self.json, self.json_stream) {
            (true, _) => Format::Json,
            (_, true) => Format::JsonStream,
            _ => Format::Text,
        }
    }
}

/// Which runs a test makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    One,
    /// And those that decide its first finding.
    CounterTests,
    /// And those that separate the causes, within a limit.
    Diagnose(Budget),
    /// The steps of RFC 6349 instead.
    Rfc6349,
}

/// A test to run.
#[derive(Debug)]
pub(crate) struct TestRequest {
    pub(crate) plan: Plan,
    pub(crate) arguments: TestArguments,
}

impl TestArguments {
    pub(crate) fn request(self) -> Result<TestRequest, String> {
        let host = self.between.server().or(self.host.as_deref());
        let plan = self.plan.plan(host.unwrap_or_default().to_owned());
        let mut plan = plan.map_err(|error| error.to_string())?;
        if self.iperf2 && !self.plan.has("-p") {
            plan.port = iperf2::DEFAULT_PORT;
        }
        Ok(TestRequest {
            plan,
            arguments: self,
        })
    }

    /// Whether `-l` was given.
    pub(crate) fn has_length(&self) -> bool {
        self.plan.has("-l")
    }

    pub(crate) fn runs(&self) -> Runs {
        if self.counter_test {
            Runs::CounterTests
        } else if self.rfc6349 {
            Runs::Rfc6349
        } else if self.diagnose {
            Runs::Diagnose(self.budget.unwrap_or_default())
        } else {
            Runs::One
        }
    }
}

impl ServeArguments {
    pub(crate) const fn family(&self) -> Family {
        match (self.v4, self.v6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        }
    }

    pub(crate) fn limits(&self) -> ServerLimits {
        let defaults = ServerLimits::default();
        ServerLimits {
            clients: self.max_clients,
            clients_per_address: self.max_clients_per_address,
            streams: self.max_streams,
            all_streams: self.max_total_streams.unwrap_or(defaults.all_streams),
            memory: self.max_memory.unwrap_or(defaults.memory),
            samples_per_second: self.max_sample_rate.unwrap_or(defaults.samples_per_second),
            duration: self.max_duration.unwrap_or(defaults.duration),
            transfer: self.max_duration.unwrap_or(defaults.transfer),
            rate: self.max_rate,
            idle: self.idle_timeout,
            allowed: self.allow.clone(),
            ..defaults
        }
    }
}

impl ObserveArguments {
    /// The connections to watch.
    pub(crate) fn watch(&self) -> Result<Watch, String> {
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
        let time = self.time.map(|time| between("-t", time, millis(1), year));
        Ok(Watch {
            ports: self.port.clone(),
            peers: self.to.iter().cloned().map(Into::into).collect(),
            pid: self.pid,
            listening: self.listen,
            time_ns: time.transpose()?,
            sample_ns: between("--interval", self.interval, millis(1), millis(10_000))?,
            interval_ns: between("--progress", self.progress, millis(100), millis(3_600_000))?,
        })
    }
}

impl ExplainArguments {
    /// What to read; `None` = standard input.
    pub(crate) fn inputs(&self) -> Vec<Option<&PathBuf>> {
        if self.files.is_empty() {
            return vec![None];
        }
        let standard = |file| Some(file).filter(|file: &&PathBuf| file.as_os_str() != "-");
        self.files.iter().map(standard).collect()
    }

    pub(crate) fn given(&self) -> Given {
        Given {
            rtt: self.rtt.filter(|rtt| rtt.0 > 0),
            link: self.link.filter(|rate| rate.0 > 0),
            buffer: self.buffer,
            kernel_bytes: self.kernel_bytes,
            asked: self.asked.filter(|rate| rate.0 > 0),
            amounts: self.asked_amounts,
            queue_depth: self.queue_depth,
            files_per_second: self.files_per_second.filter(|rate| *rate > 0.0),
            files_lost: self.files_lost.filter(|count| *count > 0.0),
            changed: self.changed.clone(),
        }
    }
}
