//! A remedy as a change of a scenario.

use std::fmt;

use linerate_lab::scenario::Scenario;
use linerate_model::finding::Remedy;
use linerate_model::plan::MAX_STREAMS;
use linerate_model::record::Role;
use linerate_model::units::{BitRate, Bytes, Nanos};
use serde::Serialize;

/// What begins the value of an option that is better left out.
const NONE: &str = "none";

/// What a remedy changes. The lab's sender is the client, its receiver the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Change {
    /// `net.ipv4.tcp_rmem`: least, initial, most bytes.
    ReceiveBuffer {
        /// Whose.
        host: Role,
        /// The values.
        bytes: [u64; 3],
    },
    /// `net.ipv4.tcp_wmem`: least, initial, most bytes.
    SendBuffer {
        /// Whose.
        host: Role,
        /// The values.
        bytes: [u64; 3],
    },
    /// Another setting of a network namespace.
    Sysctl {
        /// Whose.
        host: Role,
        /// The setting, `net.…`.
        key: String,
        /// Its value.
        value: String,
    },
    /// MTU of a host's interface, bytes.
    Mtu {
        /// Whose.
        host: Role,
        /// Bytes.
        bytes: u32,
    },
    /// Congestion control of a host's connections.
    Congestion {
        /// Whose.
        host: Role,
        /// Its name.
        name: String,
    },
    /// Socket buffers asked for (`-w`); `None` = autotuned.
    Window(Option<Bytes>),
    /// Maximum segment size (`-M`); `None` = what the MTU allows.
    SegmentSize(Option<u16>),
    /// Streams in each direction (`-P`).
    Streams(u16),
    /// How long the test measures (`-t`).
    Duration(Nanos),
    /// Pacing by the kernel, each stream (`--fq-rate`); `None` = none.
    Pacing(Option<BitRate>),
}

/// Why a remedy cannot be applied to a scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmapped {
    /// Not a setting of a host in a lab.
    #[error(
        "a lab cannot set {setting}: it is neither an option of the test nor a setting of a network namespace"
    )]
    Setting {
        /// The setting.
        setting: String,
    },
    /// The value cannot be read.
    #[error("{setting} cannot be set to '{value}' in a lab: {wanted} is wanted")]
    Value {
        /// The setting.
        setting: String,
        /// The value.
        value: String,
        /// What would be right.
        wanted: &'static str,
    },
}

impl Change {
    /// Reads a remedy.
    ///
    /// # Errors
    /// [`Unmapped`]: a setting that a lab does not have, or a value that cannot be read.
    pub fn of(remedy: &Remedy) -> Result<Self, Unmapped> {
        let host = remedy.host;
        let value = remedy.value.trim();
        let wrong = |wanted| Unmapped::Value {
            setting: remedy.setting.clone(),
            value: remedy.value.clone(),
            wanted,
        };
        Ok(match remedy.setting.as_str() {
            "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => {
                let bytes = triple(value).ok_or_else(|| wrong("three whole numbers of bytes"))?;
                if remedy.setting.ends_with("rmem") {
                    Self::ReceiveBuffer { host, bytes }
                } else {
                    Self::SendBuffer { host, bytes }
                }
            }
            "-w" => Self::Window(optional(value).map_err(|_| wrong("a size or none"))?),
            "-M" => Self::SegmentSize(optional(value).map_err(|_| wrong("bytes or none"))?),
            "--fq-rate" => Self::Pacing(optional(value).map_err(|_| wrong("a rate or none"))?),
            "-P" => Self::Streams(
                value
                    .parse()
                    .ok()
                    .filter(|streams| (1..=MAX_STREAMS).contains(streams))
                    .ok_or_else(|| wrong("1 to 128 streams"))?,
            ),
            "-t" => {
                Self::Duration(seconds(value).ok_or_else(|| wrong("a number of seconds above 0"))?)
            }
            "-C" | "net.ipv4.tcp_congestion_control" => Self::Congestion {
                host,
                name: value.to_owned(),
            },
            "mtu" => Self::Mtu {
                host,
                bytes: value
                    .parse()
                    .ok()
                    .filter(|bytes| (576..=65_535).contains(bytes))
                    .ok_or_else(|| wrong("576 to 65535 bytes"))?,
            },
            key if key.starts_with("net.") && !key.starts_with("net.core.") => Self::Sysctl {
                host,
                key: key.to_owned(),
                value: value.to_owned(),
            },
            _ => {
                return Err(Unmapped::Setting {
                    setting: remedy.setting.clone(),
                });
            }
        })
    }

    /// The scenario with the change made.
    pub fn applied(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        let spec = |scenario: &mut Scenario, host: Role, set: &dyn Fn(&mut _)| {
            set(match host {
                Role::Client => &mut scenario.sender,
                Role::Server => &mut scenario.receiver,
            });
        };
        match self {
            Self::ReceiveBuffer { host, bytes } => {
                spec(&mut scenario, *host, &|spec| spec.tcp_rmem = Some(*bytes));
            }
            Self::SendBuffer { host, bytes } => {
                spec(&mut scenario, *host, &|spec| spec.tcp_wmem = Some(*bytes));
            }
            Self::Sysctl { host, key, value } => spec(&mut scenario, *host, &|spec| {
                spec.sysctl.insert(key.clone(), value.clone());
            }),
            Self::Mtu { host, bytes } => spec(&mut scenario, *host, &|spec| spec.mtu = *bytes),
            Self::Congestion { host, name } => {
                spec(&mut scenario, *host, &|spec| {
                    spec.congestion.clone_from(name);
                });
                scenario
                    .test
                    .replace(&["-C", "--congestion"], Some(name.as_str()));
            }
            Self::Window(bytes) => option(&mut scenario, &["-w", "--window"], bytes.map(|b| b.0)),
            Self::SegmentSize(bytes) => option(&mut scenario, &["-M", "--set-mss"], *bytes),
            Self::Streams(streams) => {
                option(&mut scenario, &["-P", "--parallel"], Some(*streams));
            }
            Self::Duration(span) => {
                let amounts: [&[&str]; 2] = [&["-n", "--bytes"], &["-k", "--blocks"]];
                for names in amounts {
                    scenario.test.replace(names, None);
                }
                option(&mut scenario, &["-t", "--time"], Some(span.as_secs_f64()));
            }
            Self::Pacing(rate) => option(&mut scenario, &["--fq-rate"], rate.map(|rate| rate.0)),
        }
        scenario
    }
}

fn option(scenario: &mut Scenario, names: &[&str], value: Option<impl fmt::Display>) {
    let value = value.map(|value| value.to_string());
    scenario.test.replace(names, value.as_deref());
}

/// `none: …`, or a value.
fn optional<T: std::str::FromStr>(value: &str) -> Result<Option<T>, T::Err> {
    if value.starts_with(NONE) {
        return Ok(None);
    }
    value.parse().map(Some)
}

fn triple(value: &str) -> Option<[u64; 3]> {
    let values: Vec<u64> = value
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let [least, initial, most] = values[..] else {
        return None;
    };
    // The kernel takes them as C ints and refuses less than 1.
    (least > 0 && least <= initial && initial <= most && i32::try_from(most).is_ok())
        .then_some([least, initial, most])
}

fn seconds(value: &str) -> Option<Nanos> {
    let seconds: f64 = value.trim_end_matches('s').parse().ok()?;
    (seconds.is_finite() && seconds > 0.0).then(|| Nanos::from_secs_f64(seconds))
}
