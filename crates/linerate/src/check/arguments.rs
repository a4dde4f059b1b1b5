//! The command line of `linerate check`.
#![expect(clippy::doc_markdown, reason = "these comments are the help texts")]

use std::path::PathBuf;

use clap::{Args, Subcommand};
use linerate_model::plan::values::duration;
use linerate_model::units::Nanos;

use crate::on::OnArguments;

// `linerate check`.
#[derive(Args, Debug, Clone)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CheckArguments {
    #[command(subcommand)]
    pub(super) command: Option<CheckCommand>,
    #[command(flatten)]
    pub(super) run: RunArguments,
}

#[derive(Subcommand, Debug, Clone)]
pub(super) enum CheckCommand {
    /// Show what `linerate check --slurm` would do now, and do nothing
    Plan(PlanArguments),
}

#[derive(Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a switch of the command line each"
)]
pub(super) struct RunArguments {
    /// Only these checks, by name ("mount /home") or kind: mount, space, read-only, link, path, md, drbd, lvm, smart, clock, ecc,
    /// audit, command [default: all]
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    #[command(flatten)]
    pub(super) place: PlaceArguments,
    /// Tell Slurm's controller: drain this node when a check failed often enough, resume it when all is well again
    #[arg(long, conflicts_with_all = ["nagios", "nhc", "names"])]
    pub(super) slurm: bool,
    /// With --slurm, let the exit code tell the state as well: some releases of Slurm repeat a health check that does not end with 0
    #[arg(long, requires = "slurm")]
    pub(super) exit_code: bool,
    /// One line and exit codes of a Nagios or Icinga plugin: 0 ok, 1 warning, 2 critical, 3 unknown
    #[arg(long, conflicts_with_all = ["json", "nhc"])]
    pub(super) nagios: bool,
    /// One line and exit codes for a line of nhc.conf: 1 if a check fails, else 0
    #[arg(long, conflicts_with = "json")]
    pub(super) nhc: bool,
    /// Write the states as a text file for Prometheus's node_exporter (its textfile folder)
    #[arg(long, value_name = "FILE")]
    pub(super) prometheus: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    /// Carry out the order on standard input
    #[arg(long, hide = true)]
    pub(super) one: bool,
}

#[derive(Args, Debug, Clone)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    pub(super) place: PlaceArguments,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

#[derive(Args, Debug, Clone)]
pub(super) struct PlaceArguments {
    /// The checks [default: /etc/linerate/check.toml; where that is not there: space, read-only file systems, links, md]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Time for all checks and the controller's answers [default: that of the file, else 40s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) deadline: Option<Nanos>,
    /// The node's name at Slurm's controller [default: SLURMD_NODENAME, else the host's name up to its first dot]
    #[arg(long, value_name = "NAME")]
    pub(super) node: Option<String>,
    /// Where states are remembered until the next boot [default: /run/linerate/check]
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(super) run_folder: Option<PathBuf>,
    /// Where drains are remembered [default: /var/lib/linerate/check]
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(super) state_folder: Option<PathBuf>,
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
    Nagios,
    Nhc,
}

impl RunArguments {
    pub(super) fn form(&self) -> Form {
        match (self.json, self.nagios, self.nhc) {
            (true, ..) => Form::Json,
            (_, true, _) => Form::Nagios,
            (.., true) => Form::Nhc,
            _ => Form::Text,
        }
    }
}
