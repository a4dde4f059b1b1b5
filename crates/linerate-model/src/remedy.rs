//! What a finding advises to change, as data. Its words are for people: nothing reads them back.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::Role;
use crate::units::{BitRate, Bytes, Nanos};

/// A change, and the end of the connection whose host needs it.
///
/// In JSON it has the words (`setting`, `value`) beside the data (`fix`); only the data is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written")]
pub struct Remedy {
    /// The end whose host needs it.
    pub host: Role,
    /// What to change.
    pub fix: Fix,
}

/// What to change: a setting of a host, or an option of `linerate test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fix {
    /// `net.ipv4.tcp_rmem`.
    ReceiveBuffer(BufferSizes),
    /// `net.ipv4.tcp_wmem`.
    SendBuffer(BufferSizes),
    /// `net.core.rmem_max`: the most that a program may ask for.
    ReceiveBufferLimit(Bytes),
    /// `net.ipv4.tcp_mtu_probing` = 1: search for a smaller packet after a black hole was met.
    MtuProbing,
    /// CUBIC's early end of slow start, switched off.
    HystartOff,
    /// MTU of the interface that the path begins with, bytes.
    Mtu(u32),
    /// Socket buffers asked for (`-w`); `None` = autotuned.
    Window(Option<Bytes>),
    /// Maximum segment size (`-M`), bytes; `None` = what the MTU allows.
    SegmentSize(Option<u16>),
    /// Streams in each direction (`-P`).
    Streams(u16),
    /// How long the test measures (`-t`).
    Duration(Nanos),
    /// Pacing of each stream by the kernel (`--fq-rate`).
    Pacing(BitRate),
    /// Congestion control (`-C`).
    Congestion(String),
}

/// The three values of `tcp_rmem` or `tcp_wmem`, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferSizes {
    /// The minimum and the initial size, which stay as they are; absent where the host did not report them.
    pub first: Option<[u64; 2]>,
    /// The maximum, to which autotuning may grow.
    pub most: u64,
}

impl Fix {
    /// Whether it is an option of `linerate test`, which the finding's next command has.
    pub const fn is_option(&self) -> bool {
        matches!(
            self,
            Self::Window(_)
                | Self::SegmentSize(_)
                | Self::Streams(_)
                | Self::Duration(_)
                | Self::Pacing(_)
                | Self::Congestion(_)
        )
    }

    /// Whether segments may have another size with it, and headers another share of the line.
    pub const fn resizes_segments(&self) -> bool {
        matches!(self, Self::Mtu(_) | Self::SegmentSize(_) | Self::MtuProbing)
    }

    /// The check of `linerate host audit` that judges the same setting.
    pub const fn check(&self) -> Option<&'static str> {
        Some(match self {
            Self::ReceiveBuffer(_) => "T01",
            Self::SendBuffer(_) => "T02",
            Self::ReceiveBufferLimit(_) => "T03",
            Self::Streams(_) => "T06",
            Self::MtuProbing => "T09",
            _ => return None,
        })
    }

    /// The name of the setting or option.
    pub const fn setting(&self) -> &'static str {
        match self {
            Self::ReceiveBuffer(_) => "net.ipv4.tcp_rmem",
            Self::SendBuffer(_) => "net.ipv4.tcp_wmem",
            Self::ReceiveBufferLimit(_) => "net.core.rmem_max",
            Self::MtuProbing => "net.ipv4.tcp_mtu_probing",
            Self::HystartOff => "/sys/module/tcp_cubic/parameters/hystart",
            Self::Mtu(_) => "mtu",
            Self::Window(_) => "-w",
            Self::SegmentSize(_) => "-M",
            Self::Streams(_) => "-P",
            Self::Duration(_) => "-t",
            Self::Pacing(_) => "--fq-rate",
            Self::Congestion(_) => "-C",
        }
    }

    /// Its value in words.
    pub fn value(&self) -> String {
        match self {
            Self::ReceiveBuffer(sizes) | Self::SendBuffer(sizes) => sizes.to_string(),
            Self::ReceiveBufferLimit(bytes) => bytes.count().to_string(),
            Self::MtuProbing => "1".to_owned(),
            Self::HystartOff => "0".to_owned(),
            Self::Mtu(bytes) => bytes.to_string(),
            Self::Window(Some(bytes)) => bytes.as_option(),
            Self::Window(None) => "none: autotuning goes further".to_owned(),
            Self::SegmentSize(Some(bytes)) => bytes.to_string(),
            Self::SegmentSize(None) => "none: what the MTU allows".to_owned(),
            Self::Streams(streams) => streams.to_string(),
            Self::Duration(span) => span.as_secs_f64().to_string(),
            Self::Pacing(rate) => rate.bits_per_second().to_string(),
            Self::Congestion(name) => name.clone(),
        }
    }
}

impl fmt::Display for BufferSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            Some([least, initial]) => write!(f, "{least} {initial} {}", self.most),
            None => write!(f, "(the first two as they are) {}", self.most),
        }
    }
}

/// A remedy as JSON has it.
#[derive(Serialize)]
struct Written {
    host: Role,
    setting: &'static str,
    value: String,
    fix: Fix,
}

impl From<Remedy> for Written {
    fn from(Remedy { host, fix }: Remedy) -> Self {
        Self {
            host,
            setting: fix.setting(),
            value: fix.value(),
            fix,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words, and back from JSON by the data alone.
    fn written(fix: Fix) -> String {
        let remedy = Remedy {
            host: Role::Client,
            fix,
        };
        let mut json = serde_json::to_value(&remedy).unwrap();
        let words = format!("{} {}", json["setting"], json["value"]).replace('"', "");
        json["setting"] = "mtu".into();
        json["value"] = "nonsense".into();
        assert_eq!(serde_json::from_value::<Remedy>(json).unwrap(), remedy);
        words
    }

    #[test]
    fn each_fix_has_its_words_and_comes_back_from_json_by_its_data() {
        let sizes = |first| BufferSizes { first, most: 4096 };
        for (fix, words) in [
            (
                Fix::ReceiveBuffer(sizes(Some([1, 2]))),
                "net.ipv4.tcp_rmem 1 2 4096",
            ),
            (
                Fix::SendBuffer(sizes(None)),
                "net.ipv4.tcp_wmem (the first two as they are) 4096",
            ),
            (
                Fix::ReceiveBufferLimit(Bytes(9000)),
                "net.core.rmem_max 9000",
            ),
            (Fix::MtuProbing, "net.ipv4.tcp_mtu_probing 1"),
            (
                Fix::HystartOff,
                "/sys/module/tcp_cubic/parameters/hystart 0",
            ),
            (Fix::Mtu(1500), "mtu 1500"),
            (Fix::Window(Some(Bytes(524_288))), "-w 512K"),
            (Fix::Window(None), "-w none: autotuning goes further"),
            (Fix::SegmentSize(Some(1400)), "-M 1400"),
            (Fix::SegmentSize(None), "-M none: what the MTU allows"),
            (Fix::Streams(8), "-P 8"),
            (Fix::Duration(Nanos(30_000_000_000)), "-t 30"),
            (Fix::Pacing(BitRate(86_000_000)), "--fq-rate 86000000"),
            (Fix::Congestion("cubic".to_owned()), "-C cubic"),
        ] {
            assert_eq!(fix.is_option(), fix.setting().starts_with('-'), "{words}");
            assert_eq!(written(fix), words);
        }
    }
}
