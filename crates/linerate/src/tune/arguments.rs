//! The command line of `linerate tune`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use linerate_model::audit::{Area, Risk, Role, Target};
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::interfaces::arguments::InterfacesArguments;
use super::roll_out::arguments::RollOutArguments;
use crate::arguments::duration;
use crate::on::OnArguments;

// `linerate tune`.
#[derive(Args, Debug, Clone)]
pub(crate) struct TuneArguments {
    #[command(subcommand)]
    pub(super) command: TuneCommand,
}

#[derive(Subcommand, Debug, Clone)]
pub(super) enum TuneCommand {
    /// Show what would be changed, in which order and at which risk; change nothing
    Plan(PlanArguments),
    /// Change settings; rolls back unless you run `tune confirm` in time
    Apply(Box<ApplyArguments>),
    /// Keep the applied changes and cancel the pending rollback
    Confirm(SetArguments),
    /// Undo a set of changes: restore the previous values, and delete the files that it wrote
    Revert(RevertArguments),
    /// List sets of changes and which of them wait for confirmation
    Status(ShowArguments),
    /// Check which confirmed changes are in effect, persisted or drifted, and what changed them
    Verify(ShowArguments),
    /// Write confirmed changes to files so that they survive a reboot, or remove those files
    Persist(PersistArguments),
    /// Roll a set back now, or when its time to confirm ends; run by timers
    #[command(hide = true)]
    Rollback(RollbackArguments),
    /// Revert changes that were never confirmed; meant for a service at boot
    Recover(ShowArguments),
    /// Set up a guest's data-plane interfaces as a file declares them
    Interfaces(InterfacesArguments),
}

#[derive(Args, Debug, Clone)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    pub(super) wishes: WishArguments,
    /// Plan for the files below this folder instead of this machine
    #[arg(long, value_name = "FOLDER", conflicts_with = "from")]
    pub(super) root: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

/// The desired settings.
#[derive(Args, Debug, Clone)]
pub(super) struct WishArguments {
    /// Profiles (TOML), or files of lines `key = value` (.conf) [default: what an audit recommends]
    pub(super) profiles: Vec<PathBuf>,
    /// Without profiles: required rate, all flows together, bit/s (K, M, G of 1000)
    #[arg(long, value_name = "RATE", conflicts_with = "profiles")]
    rate: Option<BitRate>,
    /// Without profiles: round-trip time to the peer
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "profiles")]
    rtt: Option<Nanos>,
    /// Without profiles: flows that share the rate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536), conflicts_with = "profiles")]
    flows: Option<u32>,
    /// Without profiles: transfer, measurement, server or guest
    #[arg(long, value_name = "ROLE", conflicts_with = "profiles")]
    role: Option<Role>,
    /// Without profiles: what an audit of the disks recommends, not of the network
    #[arg(long, conflicts_with_all = ["profiles", "rate", "rtt", "flows"])]
    storage: bool,
    /// With --storage: what the disks write per second, bytes (K, M, G of 1024), if you have measured it
    #[arg(long, value_name = "BYTES", requires = "storage")]
    disk_rate: Option<Bytes>,
    /// Plan for these facts (`linerate host --json`) instead of this host
    #[arg(long, value_name = "FILE")]
    pub(super) from: Option<PathBuf>,
}

impl WishArguments {
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
            flows: self.flows.unwrap_or(1),
            role: self.role.unwrap_or_default(),
            ..Target::default()
        }
    }
}

/// Where settings are, and where their old values are kept.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct PlaceArguments {
    /// Work on the files below this folder instead of this machine
    #[arg(long, value_name = "FOLDER")]
    pub(super) root: Option<PathBuf>,
    /// Where old values are kept [default: /var/lib/linerate/tune, below the root]
    #[arg(long, value_name = "FOLDER")]
    pub(super) state: Option<PathBuf>,
}

#[derive(Args, Debug, Clone)]
pub(super) struct ApplyArguments {
    #[command(flatten)]
    pub(super) wishes: WishArguments,
    #[command(flatten)]
    pub(super) place: PlaceArguments,
    /// Roll back after this time without `tune confirm`; 1s to 1h
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "120s")]
    pub(super) confirm_within: Nanos,
    /// Confirm at once if all probes that succeeded before the change succeed after it
    #[arg(long, conflicts_with = "on")]
    pub(super) yes: bool,
    /// This host must also be reachable before and after: HOST by ping, HOST:PORT by TCP
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(super) probe: Vec<String>,
    /// Highest risk allowed: none, queue-reset or link-flap
    #[arg(long, alias = "max-risk", value_name = "RISK", value_parser = risk, default_value = "queue-reset")]
    pub(super) allow: Risk,
    /// Also change settings that the named program manages, for example tuned
    #[arg(long, value_name = "OWNER")]
    pub(super) over: Vec<String>,
    /// First measure against this HOST, which runs `linerate serve`, in pairs of tests with and without the change; apply
    /// only if that shows a gain. With --on the hosts of --canary do so
    #[arg(long, value_name = "HOST", conflicts_with_all = ["root", "from", "dry_run", "storage"])]
    pub(super) prove: Option<String>,
    /// With --prove: number of pairs, 3 to 100 [default: 6 or more, until decided]
    #[arg(long, value_name = "N", requires = "prove", value_parser = clap::value_parser!(u32).range(3..=100))]
    pub(super) pairs: Option<u32>,
    /// With --prove: arguments for `linerate test`
    #[arg(last = true, value_name = "TEST", requires = "prove")]
    pub(super) test: Vec<String>,
    /// Show what would be done; change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) roll_out: RollOutArguments,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

/// A risk by the name that messages give it.
fn risk(text: &str) -> Result<Risk, String> {
    [Risk::None, Risk::QueueReset, Risk::LinkFlap]
        .into_iter()
        .find(|risk| risk.words().replace(' ', "-") == text)
        .ok_or_else(|| format!("'{text}' is none of none, queue-reset, link-flap"))
}

#[derive(Args, Debug, Clone)]
pub(super) struct SetArguments {
    /// The set of changes [default: the one waiting for confirmation]
    pub(super) id: Option<String>,
    #[command(flatten)]
    pub(super) place: PlaceArguments,
    /// Show what would be done; change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

#[derive(Args, Debug, Clone)]
pub(super) struct RevertArguments {
    /// The set of changes [default: the last one that is not reverted]
    pub(super) id: Option<String>,
    #[command(flatten)]
    pub(super) place: PlaceArguments,
    /// Also restore values that something else has changed since
    #[arg(long)]
    pub(super) force: bool,
    /// Show what would be done; change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

#[derive(Args, Debug, Clone)]
pub(super) struct ShowArguments {
    #[command(flatten)]
    pub(super) place: PlaceArguments,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

#[derive(Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a switch of the command line each"
)]
pub(super) struct PersistArguments {
    #[command(flatten)]
    pub(super) place: PlaceArguments,
    /// Remove the files and restore what was there before
    #[arg(long)]
    pub(super) remove: bool,
    /// Overwrite files that linerate did not write, or that were changed since
    #[arg(long)]
    pub(super) force: bool,
    /// Show the files; write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
    /// With --root: the facts of that machine (from `linerate host --json`)
    #[arg(long, value_name = "FILE", requires = "root")]
    pub(super) from: Option<PathBuf>,
}

#[derive(Args, Debug, Clone)]
pub(super) struct RollbackArguments {
    /// The set
    pub(super) id: String,
    #[command(flatten)]
    pub(super) place: PlaceArguments,
    /// Wait until its time to confirm ends, or until it is confirmed
    #[arg(long)]
    pub(super) wait: bool,
}
