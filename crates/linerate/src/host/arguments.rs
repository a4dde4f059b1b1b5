//! The command line of `linerate host`.
#![expect(clippy::doc_markdown, reason = "these comments are the help texts")]

use std::path::PathBuf;

use clap::{Args, Subcommand};
use linerate_model::audit::{Area, Role, Target};
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::arguments::duration;
use crate::on::OnArguments;

// `linerate host`.
#[derive(Args, Debug, Clone)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HostArguments {
    #[command(subcommand)]
    pub(super) command: Option<HostCommand>,
    #[command(flatten)]
    pub(super) show: ShowArguments,
}

impl HostArguments {
    /// Whether it reads this host alone, and no file that its user names.
    pub(crate) fn is_this_host(&self) -> bool {
        self.command.is_none() && self.show.root.is_none() && self.show.on.on.is_none()
    }
}

#[derive(Subcommand, Debug, Clone)]
pub(super) enum HostCommand {
    /// List this host's wrong settings for a task, with the recommended values: severity 1 is the worst, and the exit
    /// code is 1 where something is found
    Audit(AuditArguments),
    /// Compare the facts of two hosts, and say which differences matter
    Diff(DiffArguments),
}

#[derive(Args, Debug, Clone)]
pub(super) struct ShowArguments {
    /// Everything, not only what fits a screen
    #[arg(long)]
    pub(super) all: bool,
    /// Read files below this folder instead of /; interfaces stay unknown
    #[arg(long, value_name = "FOLDER")]
    pub(super) root: Option<PathBuf>,
    /// One JSON document, which `host audit --from` and `host diff` read
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

#[derive(Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub(super) struct AuditArguments {
    /// Audit its disks, arrays and file systems instead of its network
    #[arg(long, conflicts_with_all = ["rate", "rtt", "flows", "interface", "peer", "path_mtu", "fixed_buffers", "span", "since"])]
    storage: bool,
    /// With --storage: what the disks write per second, bytes (K, M, G of 1024), if you have measured it
    #[arg(long, value_name = "BYTES", requires = "storage")]
    disk_rate: Option<Bytes>,
    /// Required rate, all flows together, bit/s (K, M, G of 1000) [default: that of its fastest link]
    #[arg(long, value_name = "RATE")]
    rate: Option<BitRate>,
    /// Round-trip time to the peer
    #[arg(long, value_name = "TIME", value_parser = duration)]
    rtt: Option<Nanos>,
    /// Flows that share the rate
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    flows: u32,
    /// Purpose of this host: transfer, measurement, server or guest
    #[arg(long, value_name = "ROLE", default_value = "transfer")]
    role: Role,
    /// Interface of the traffic [default: all that are up and have an address]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Probe a host that runs `linerate serve` or `iperf3 -s` for some seconds: measures RTT, rate and path MTU if
    /// not given, and shows which counters rise
    #[arg(long, value_name = "HOST", conflicts_with_all = ["from", "root", "span"])]
    pub(super) peer: Option<String>,
    /// The peer's port
    #[arg(short = 'p', long, value_name = "PORT", requires = "peer", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: Option<u16>,
    /// Path MTU, bytes, if you know it from a probe
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(68..=65_535))]
    path_mtu: Option<u32>,
    /// Applications set their socket buffers (iperf3 -w, GridFTP -tcp-bs)
    #[arg(long)]
    fixed_buffers: bool,
    /// Audit these facts (`linerate host --json`) instead of this host
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    pub(super) from: Option<PathBuf>,
    /// Earlier facts of the same boot: report counters that rose since then
    #[arg(long, value_name = "FILE")]
    pub(super) since: Option<PathBuf>,
    /// Read twice, this long apart, to see which counters rise; run it under load
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with_all = ["since", "from", "root"])]
    pub(super) span: Option<Nanos>,
    /// Read files below this folder instead of /; interfaces stay unknown
    #[arg(long, value_name = "FOLDER")]
    pub(super) root: Option<PathBuf>,
    /// Also show checks that passed
    #[arg(long)]
    pub(super) all: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

impl AuditArguments {
    /// The required load of the host.
    pub(super) fn target(&self) -> Target {
        Target {
            area: if self.storage {
                Area::Storage
            } else {
                Area::Network
            },
            disk_rate: self.disk_rate,
            rate_bps: self.rate.filter(|rate| rate.0 > 0),
            rtt: self.rtt.filter(|rtt| rtt.0 > 0),
            flows: self.flows,
            role: self.role,
            interface: self.interface.clone(),
            path_mtu: self.path_mtu,
            fixed_buffers: self.fixed_buffers.then_some(true),
            ..Target::default()
        }
    }
}

#[derive(Args, Debug, Clone)]
pub(super) struct DiffArguments {
    /// Facts of the first host (`linerate host --json`)
    #[arg(required_unless_present = "on", conflicts_with = "on")]
    pub(super) a: Option<PathBuf>,
    /// Facts of the second host
    #[arg(required_unless_present = "on", conflicts_with = "on")]
    pub(super) b: Option<PathBuf>,
    /// Also counters, names and addresses
    #[arg(long)]
    pub(super) all: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}
