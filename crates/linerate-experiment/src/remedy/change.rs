//! A remedy as a change of a scenario.

use std::fmt;

use linerate_lab::scenario::Scenario;
use linerate_model::plan::MAX_STREAMS;
use linerate_model::record::Role;
use linerate_model::remedy::{BufferSizes, Fix, Remedy};
use linerate_model::units::{BitRate, Bytes, Nanos};
use serde::Serialize;

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
        /// As the kernel's file takes it.
        value: String,
    },
    /// MTU of a host's interface, bytes.
    Mtu {
        /// Whose.
        host: Role,
        /// Largest IP packet, bytes.
        bytes: u32,
    },
    /// Congestion control of a host's connections.
    Congestion {
        /// Whose.
        host: Role,
        /// The kernel's name: `cubic`.
        name: String,
    },
    /// Socket buffers asked for (`-w`); `None` = autotuned.
    Window {
        /// As `-w` takes it; the kernel doubles it.
        bytes: Option<Bytes>,
    },
    /// Maximum segment size (`-M`); `None` = what the MTU allows.
    SegmentSize {
        /// TCP payload of a segment, bytes.
        bytes: Option<u16>,
    },
    /// Streams in each direction (`-P`).
    Streams {
        /// How many.
        streams: u16,
    },
    /// How long the test measures (`-t`).
    Duration {
        /// How long, ns.
        span_ns: Nanos,
    },
    /// Pacing by the kernel, each stream (`--fq-rate`).
    Pacing {
        /// Bit/s.
        bps: BitRate,
    },
}

/// Why a remedy cannot be applied to a scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmapped {
    /// Not a setting of a host in a lab.
    #[error(
        "a lab cannot set {setting}: it is neither an option of the test nor a setting of a network namespace"
    )]
    Setting {
        /// Name of the setting, as reports print it.
        setting: &'static str,
    },
    /// The value is none that a lab can set.
    #[error("{setting} cannot be set to '{value}' in a lab: {wanted} is wanted")]
    Value {
        /// Name of the setting, as reports print it.
        setting: &'static str,
        /// As the remedy has it.
        value: String,
        /// What would be right.
        wanted: &'static str,
    },
}

impl Change {
    /// What a remedy changes of a scenario.
    ///
    /// # Errors
    /// [`Unmapped`]: a setting that a lab does not have, or a value that it cannot set.
    pub fn of(remedy: &Remedy) -> Result<Self, Unmapped> {
        let host = remedy.host;
        let setting = remedy.fix.setting();
        let wrong = |wanted| Unmapped::Value {
            setting,
            value: remedy.fix.value(),
            wanted,
        };
        let bytes = |sizes| triple(sizes).ok_or_else(|| wrong("three whole numbers of bytes"));
        Ok(match &remedy.fix {
            Fix::ReceiveBuffer(sizes) => Self::ReceiveBuffer {
                host,
                bytes: bytes(*sizes)?,
            },
            Fix::SendBuffer(sizes) => Self::SendBuffer {
                host,
                bytes: bytes(*sizes)?,
            },
            Fix::Window(bytes) => Self::Window { bytes: *bytes },
            Fix::SegmentSize(bytes) => Self::SegmentSize { bytes: *bytes },
            Fix::Pacing(rate) => Self::Pacing { bps: *rate },
            Fix::Streams(streams @ 1..=MAX_STREAMS) => Self::Streams { streams: *streams },
            Fix::Streams(_) => return Err(wrong("1 to 128 streams")),
            Fix::Duration(span @ Nanos(1..)) => Self::Duration { span_ns: *span },
            Fix::Duration(_) => return Err(wrong("a number of seconds above 0")),
            Fix::Congestion(name) => Self::Congestion {
                host,
                name: name.clone(),
            },
            Fix::Mtu(bytes @ 576..=65_535) => Self::Mtu {
                host,
                bytes: *bytes,
            },
            Fix::Mtu(_) => return Err(wrong("576 to 65535 bytes")),
            Fix::MtuProbing => Self::Sysctl {
                host,
                key: setting.to_owned(),
                value: remedy.fix.value(),
            },
            Fix::ReceiveBufferLimit(_) | Fix::HystartOff => {
                return Err(Unmapped::Setting { setting });
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
                scenario.test.replace("-C", Some(name.as_str()));
            }
            Self::Window { bytes } => option(&mut scenario, "-w", bytes.map(|b| b.0)),
            Self::SegmentSize { bytes } => option(&mut scenario, "-M", *bytes),
            Self::Streams { streams } => option(&mut scenario, "-P", Some(*streams)),
            Self::Duration { span_ns } => {
                scenario.test.replace("-n", None);
                scenario.test.replace("-k", None);
                option(&mut scenario, "-t", Some(span_ns.as_secs_f64()));
            }
            Self::Pacing { bps } => option(&mut scenario, "--fq-rate", Some(bps.0)),
        }
        scenario
    }
}

fn option(scenario: &mut Scenario, name: &str, value: Option<impl fmt::Display>) {
    let value = value.map(|value| value.to_string());
    scenario.test.replace(name, value.as_deref());
}

/// The values as a network namespace takes them: the kernel refuses less than 1 and more than a C int.
fn triple(sizes: BufferSizes) -> Option<[u64; 3]> {
    let [least, initial] = sizes.first?;
    (least > 0 && least <= initial && initial <= sizes.most && i32::try_from(sizes.most).is_ok())
        .then_some([least, initial, sizes.most])
}
