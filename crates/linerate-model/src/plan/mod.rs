//! What a test does: typed, validated, and kept whole in every record.

pub mod command_line;
pub mod options;
pub mod values;

use serde::{Deserialize, Serialize};

use crate::plain_text::{PlainLines, PlainText};
use crate::precision;
use crate::record::Flow;
use crate::units::{BitRate, Bytes, Nanos};
use crate::wanted::Wanted;

/// The port of iperf3, and so ours.
pub const DEFAULT_PORT: u16 = 5201;
/// The most streams a test may have in one direction.
pub const MAX_STREAMS: u16 = 128;
/// Bytes of a TCP block when nothing else is asked for, as iperf3 has it.
pub const DEFAULT_TCP_BLOCK: Bytes = Bytes(128 << 10);
/// Bytes of an SCTP message when nothing else is asked for, as iperf3 has it.
pub const DEFAULT_SCTP_BLOCK: Bytes = Bytes(64 << 10);
/// UDP payload when the path's MTU is not known: fits Ethernet with some encapsulation.
pub const DEFAULT_UDP_BLOCK: Bytes = Bytes(1460);
/// The rate of a UDP test that asks for none, as iperf has it.
pub const DEFAULT_UDP_RATE: BitRate = BitRate(1_000_000);
/// Smallest UDP payload: the header with a 64-bit counter.
pub const MIN_UDP_BLOCK: u64 = 16;
/// Largest UDP payload over IPv4 without jumbograms.
pub const MAX_UDP_BLOCK: u64 = 65_507;
/// Largest TCP block.
pub const MAX_TCP_BLOCK: u64 = 16 << 20;
/// Largest SCTP message, iperf3's largest block.
pub const MAX_SCTP_BLOCK: u64 = 1 << 20;

/// What carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// TCP (RFC 9293).
    Tcp,
    /// UDP (RFC 768).
    Udp,
    /// SCTP (RFC 9260), an association for each stream. None of the kernel's figures is read of it: what is
    /// known are the bytes that the applications moved.
    Sctp,
}

/// Which way the bytes go, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Client to server.
    Send,
    /// Server to client (`-R`).
    Receive,
    /// Both at once (`--bidir`).
    Both,
}

/// What ends a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A time after the omitted part.
    TimeNs(Nanos),
    /// A number of bytes in each direction, over all its streams.
    Bytes(Bytes),
    /// A number of blocks in each direction, over all its streams.
    Blocks(u64),
}

/// The address family asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Whatever the name resolves to first and answers.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// How a sender of datagrams waits for the instant at which the next ones are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// It sleeps, and sends a seventh of a millisecond's traffic at once.
    #[default]
    Sleep,
    /// It looks at the clock all the time, and sends datagram by datagram up to 1 Gbit/s: a whole core a stream.
    Spin,
}

/// A test as it will be run: every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a switch of the command line each"
)]
pub struct Plan {
    /// The server's name or address, as typed.
    pub host: PlainText,
    /// The server's port.
    pub port: u16,
    /// Address family.
    #[serde(default)]
    pub family: Family,
    /// TCP, UDP or SCTP.
    pub protocol: Protocol,
    /// Multipath TCP (RFC 8684) for the data streams.
    #[serde(default)]
    pub mptcp: bool,
    /// Which way.
    pub direction: Direction,
    /// Streams in each direction, 1 to 128.
    pub streams: u16,
    /// When it ends.
    pub end: End,
    /// The beginning that summaries leave out.
    #[serde(default)]
    pub omit_ns: Nanos,
    /// Between two lines of live progress.
    pub interval_ns: Nanos,
    /// Between two samples of a stream, 1 ms to 1 s.
    pub sample_ns: Nanos,
    /// Bytes of a block (TCP) or a message (SCTP), or payload bytes of a datagram (UDP). A TCP write is one block; with [`DEFAULT_TCP_BLOCK`] and
    /// no rate a linerate that sends to a linerate writes eight at once.
    pub block_bytes: Bytes,
    /// Rate asked for, each stream; absent = as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<BitRate>,
    /// Whether the rate is a default and not the user's.
    #[serde(default)]
    pub rate_is_default: bool,
    /// Pacing by the kernel (`SO_MAX_PACING_RATE`), each stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_pacing_bps: Option<BitRate>,
    /// How UDP's senders wait between datagrams (`--pace`).
    #[serde(default)]
    pub pace: Pace,
    /// Socket buffers asked for (`-w`); absent = autotuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<Bytes>,
    /// Maximum segment size asked for (`-M`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u16>,
    /// `TCP_NODELAY`, `SCTP_NODELAY`.
    #[serde(default)]
    pub nodelay: bool,
    /// SCTP streams of an association (`--nstreams`); the first of them is used. Absent = the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sctp_streams: Option<u16>,
    /// Local addresses of an SCTP association (`-X`), in the place of [`Plan::bind`]; none = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sctp_bind: Vec<PlainText>,
    /// Congestion control asked for (`-C`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<PlainText>,
    /// IP type of service, 0 to 255.
    #[serde(default)]
    pub tos: u8,
    /// IPv6 flow label (`-L`), 20 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_label: Option<u32>,
    /// Local address (`-B`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<PlainText>,
    /// Local interface (`--bind-dev`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_device: Option<PlainText>,
    /// First local port of the data streams (`--cport`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_port: Option<u16>,
    /// Send without copying where the kernel can (`-Z`).
    #[serde(default)]
    pub zerocopy: bool,
    /// Let the receiver discard without copying (`--skip-rx-copy`).
    #[serde(default)]
    pub skip_receive_copy: bool,
    /// CPU of the client's first stream (`-A n`), and of the server's (`-A n,m`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu: Option<u16>,
    /// See [`Plan::client_cpu`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu: Option<u16>,
    /// Set don't-fragment on UDP over IPv4.
    #[serde(default)]
    pub dont_fragment: bool,
    /// Longest wait for the control connection to open.
    pub connect_timeout_ns: Nanos,
    /// A test that ends by bytes is given up when it moved less than 1 KiB, or than half of the rate asked for, in this
    /// time.
    #[serde(default = "default_idle_timeout")]
    pub idle_timeout_ns: Nanos,
    /// The client gives up when nothing arrived for this long (`--rcv-timeout`); absent = no such bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_timeout_ns: Option<Nanos>,
    /// The kernel gives a data connection up whose bytes stay unacknowledged for this long (`--snd-timeout`, RFC 5482);
    /// absent = as long as the kernel repeats them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_timeout_ns: Option<Nanos>,
    /// The test ends when the plateau's goodput is known within this share of it (95 % interval), and at the
    /// latest at [`Plan::end`]; absent = it lasts as long as planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// The round trips of small messages are measured before, under and after the load (`--latency`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub latency: bool,
    /// The required goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Wanted>,
    /// Rate that was bought, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned_bps: Option<BitRate>,
    /// Title (`-T`), kept in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<PlainText>,
    /// Free text for both ends' records (`--extra-data`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_data: Option<PlainLines>,
}

/// The shortest test by time under whose load latency is measured.
pub const LEAST_UNDER_LOAD: Nanos = Nanos::from_millis(2000);

/// Where nothing else is asked for.
const fn default_idle_timeout() -> Nanos {
    Nanos::from_millis(60_000)
}

/// A plan that contradicts itself or asks for what cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {reason}")]
pub struct PlanError {
    /// The option at fault, as typed.
    pub option: &'static str,
    /// What is wrong and what would be right.
    pub reason: String,
}

fn refuse(option: &'static str, reason: impl Into<String>) -> Result<(), PlanError> {
    let reason = reason.into();
    Err(PlanError { option, reason })
}

/// Refuses the first of these that is wrong.
fn refuse_any<const N: usize>(checks: [(bool, &'static str, String); N]) -> Result<(), PlanError> {
    let mut wrong = checks.into_iter().filter(|(is_wrong, ..)| *is_wrong);
    wrong
        .next()
        .map_or(Ok(()), |(_, option, reason)| refuse(option, reason))
}

impl Default for Plan {
    /// A test of a host that is not known yet.
    fn default() -> Self {
        Self::new("")
    }
}

impl Plan {
    /// How long a test measures where nothing else is asked for.
    pub const DEFAULT_TIME: Nanos = Nanos::from_millis(10_000);

    /// A TCP test of ten seconds to `host`.
    pub fn new(host: impl Into<PlainText>) -> Self {
        Self {
            host: host.into(),
            port: DEFAULT_PORT,
            family: Family::Any,
            protocol: Protocol::Tcp,
            mptcp: false,
            direction: Direction::Send,
            streams: 1,
            end: End::TimeNs(Self::DEFAULT_TIME),
            omit_ns: Nanos::ZERO,
            interval_ns: Nanos::from_millis(1000),
            sample_ns: Nanos::from_millis(10),
            block_bytes: DEFAULT_TCP_BLOCK,
            rate_bps: None,
            rate_is_default: false,
            kernel_pacing_bps: None,
            pace: Pace::Sleep,
            window_bytes: None,
            mss_bytes: None,
            nodelay: false,
            sctp_streams: None,
            sctp_bind: Vec::new(),
            congestion: None,
            tos: 0,
            flow_label: None,
            bind: None,
            bind_device: None,
            client_port: None,
            zerocopy: false,
            skip_receive_copy: false,
            client_cpu: None,
            server_cpu: None,
            dont_fragment: false,
            connect_timeout_ns: Nanos::from_millis(10_000),
            idle_timeout_ns: default_idle_timeout(),
            receive_timeout_ns: None,
            send_timeout_ns: None,
            precision: None,
            latency: false,
            expect: None,
            provisioned_bps: None,
            title: None,
            extra_data: None,
        }
    }

    /// Refuses what cannot be run, naming the option at fault.
    pub fn check(&self) -> Result<(), PlanError> {
        self.check_ranges()?;
        self.check_end()?;
        self.check_questions()?;
        self.check_protocol()
    }

    fn check_ranges(&self) -> Result<(), PlanError> {
        let (streams, sample, interval) = (self.streams, self.sample_ns, self.interval_ns);
        let millis = Nanos::from_millis;
        refuse_any([
            (
                !(1..=MAX_STREAMS).contains(&streams),
                "-P",
                format!("{streams} streams requested; 1 to {MAX_STREAMS} can be run"),
            ),
            (
                self.port == 0,
                "-p",
                "port 0 cannot be connected to; 1 to 65535 can".to_owned(),
            ),
            (
                !(millis(1)..=millis(1000)).contains(&sample),
                "--sample",
                format!("a sample every {sample} requested; 1 ms to 1 s is possible"),
            ),
            (
                !(millis(10)..=millis(3_600_000)).contains(&interval),
                "-i",
                format!("an interval of {interval} requested; 0.01 s to 3600 s is possible"),
            ),
            (
                self.omit_ns > millis(600_000),
                "-O",
                format!("{} requested; at most 600 s can be omitted", self.omit_ns),
            ),
        ])
    }

    fn check_end(&self) -> Result<(), PlanError> {
        match self.end {
            End::TimeNs(span) if span.0 == 0 || span.0 > 86_400_000_000_000 => refuse(
                "-t",
                format!("a test of {span} requested; more than 0 and at most 86400 s is possible"),
            ),
            End::Bytes(Bytes(0)) => refuse("-n", "a test of 0 bytes measures nothing"),
            End::Blocks(0) => refuse("-k", "a test of 0 blocks measures nothing"),
            _ => Ok(()),
        }
    }

    /// What the test is to answer.
    fn check_questions(&self) -> Result<(), PlanError> {
        if let Some(precision) = self.precision {
            if !(0.0005..=0.5).contains(&precision) {
                return refuse("--precision", "0.05% to 50% of the rate is possible");
            }
            let End::TimeNs(most) = self.end else {
                let reason = "the interval decides when the test ends: leave -n or -k away";
                return refuse("--precision", reason);
            };
            if most < precision::LEAST {
                let reason = format!(
                    "the test may last {most}, but the interval is not used before {}: raise -t",
                    precision::LEAST
                );
                return refuse("--precision", reason);
            }
        }
        if let (true, End::TimeNs(most)) = (self.latency, self.end)
            && most < LEAST_UNDER_LOAD
        {
            let reason = format!(
                "a test of {most} does not fill a queue: {LEAST_UNDER_LOAD} or more with -t"
            );
            return refuse("--latency", reason);
        }
        if self.provisioned_bps == Some(BitRate(0)) {
            return refuse("--provisioned", "the contracted rate cannot be 0 bit/s");
        }
        let needs = self.expect.is_some_and(|wanted| wanted.needs_provisioned());
        if needs && self.provisioned_bps.is_none() {
            let reason = "a percentage refers to the contracted rate: give it with --provisioned";
            return refuse("--expect", reason);
        }
        Ok(())
    }

    fn check_protocol(&self) -> Result<(), PlanError> {
        let (udp, sctp) = (
            self.protocol == Protocol::Udp,
            self.protocol == Protocol::Sctp,
        );
        if self.pace == Pace::Spin && !udp {
            return refuse("--pace", "only datagrams are paced so: it needs -u");
        }
        let block = self.block_bytes.count();
        let (least, most) = match self.protocol {
            Protocol::Tcp => (1, MAX_TCP_BLOCK),
            Protocol::Udp => (MIN_UDP_BLOCK, MAX_UDP_BLOCK),
            Protocol::Sctp => (1, MAX_SCTP_BLOCK),
        };
        if !(least..=most).contains(&block) {
            let (asked, most) = (self.block_bytes, Bytes(most));
            let reason = match self.protocol {
                Protocol::Tcp => {
                    format!("writes of {asked} requested; 1 byte to {most} is possible over TCP")
                }
                Protocol::Udp => format!(
                    "datagrams of {block} bytes requested; {MIN_UDP_BLOCK} to {MAX_UDP_BLOCK} are possible"
                ),
                Protocol::Sctp => {
                    format!("messages of {asked} requested; 1 byte to {most} is possible over SCTP")
                }
            };
            return refuse("-l", reason);
        }
        let (name, also) = if udp {
            ("UDP", "-u")
        } else {
            ("SCTP", "--sctp")
        };
        let meaningless = || format!("has no effect for {name}; omit it or {also}");
        let of_tcp = udp || sctp;
        refuse_any([
            (of_tcp && self.mptcp, "--mptcp", meaningless()),
            (udp && self.nodelay, "-N", meaningless()),
            (of_tcp && self.congestion.is_some(), "-C", meaningless()),
            (udp && self.mss_bytes.is_some(), "-M", meaningless()),
            (of_tcp && self.zerocopy, "-Z", meaningless()),
            (
                sctp && self.skip_receive_copy,
                "--skip-rx-copy",
                meaningless(),
            ),
            (
                self.mss_bytes
                    .is_some_and(|mss| !(88..=32_767).contains(&mss)),
                "-M",
                "a segment size of 88 to 32767 bytes is possible".to_owned(),
            ),
            (
                self.flow_label
                    .is_some_and(|label| !(1..=0xF_FFFF).contains(&label)),
                "-L",
                "a flow label has 20 bits: 1 to 1048575".to_owned(),
            ),
            (
                self.rate_bps == Some(BitRate(0)),
                "-b",
                "a rate of 0 is spelled by leaving the rate out of the plan".to_owned(),
            ),
        ])
    }

    /// Streams in both directions together.
    pub fn total_streams(&self) -> u16 {
        if self.direction == Direction::Both {
            self.streams * 2
        } else {
            self.streams
        }
    }

    /// Bytes to move in each direction, where the plan says so.
    pub fn byte_target(&self) -> Option<Bytes> {
        match self.end {
            End::TimeNs(_) => None,
            End::Bytes(bytes) => Some(bytes),
            End::Blocks(blocks) => Some(Bytes(blocks.saturating_mul(self.block_bytes.count()))),
        }
    }

    /// When a test that began at `start` ends; absent where bytes end it, or nothing does.
    pub fn ends_at(&self, start: Nanos) -> Option<Nanos> {
        match self.end {
            End::TimeNs(Nanos::ZERO) | End::Bytes(_) | End::Blocks(_) => None,
            End::TimeNs(span) => Some(start.plus(self.omit_ns).plus(span)),
        }
    }

    /// Which way the stream opened as number `index` (from 0) goes: in both directions, the client's
    /// come first.
    pub const fn flow_of(&self, index: u16) -> Flow {
        let first_half = index < self.streams;
        match self.direction {
            Direction::Send => Flow::ClientToServer,
            Direction::Both if first_half => Flow::ClientToServer,
            Direction::Receive | Direction::Both => Flow::ServerToClient,
        }
    }

    /// Whether the client's streams, the first `streams` of them, send.
    pub fn client_sends(&self) -> bool {
        self.direction != Direction::Receive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plan_can_be_run() {
        assert_eq!(Plan::new("h").check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_run_names_its_option() {
        type Spoil = fn(&mut Plan);
        let cases: [(&str, Spoil); 16] = [
            ("-P", |plan| plan.streams = 0),
            ("-P", |plan| plan.streams = 129),
            ("-t", |plan| plan.end = End::TimeNs(Nanos::ZERO)),
            ("-n", |plan| plan.end = End::Bytes(Bytes(0))),
            ("-l", |plan| plan.block_bytes = Bytes(0)),
            ("-M", |plan| plan.mss_bytes = Some(10)),
            ("--precision", |plan| plan.precision = Some(0.0)),
            ("--precision", |plan| plan.precision = Some(f64::NAN)),
            ("--precision", |plan| {
                plan.precision = Some(0.02);
                plan.end = End::TimeNs(Nanos::from_millis(5000));
            }),
            ("--latency", |plan| {
                plan.latency = true;
                plan.end = End::TimeNs(Nanos::from_millis(1999));
            }),
            ("--expect", |plan| plan.expect = ">= 90%".parse().ok()),
            ("--provisioned", |plan| {
                plan.provisioned_bps = Some(BitRate(0));
            }),
            ("--sample", |plan| plan.sample_ns = Nanos(999)),
            ("-Z", |plan| {
                plan.protocol = Protocol::Sctp;
                plan.zerocopy = true;
            }),
            ("-l", |plan| {
                plan.protocol = Protocol::Sctp;
                plan.block_bytes = Bytes(MAX_SCTP_BLOCK + 1);
            }),
            ("-C", |plan| {
                plan.protocol = Protocol::Udp;
                plan.block_bytes = DEFAULT_UDP_BLOCK;
                plan.congestion = Some("cubic".into());
            }),
        ];
        for (option, spoil) in cases {
            let mut plan = Plan::new("h");
            spoil(&mut plan);
            assert_eq!(plan.check().unwrap_err().option, option);
        }
    }
}
