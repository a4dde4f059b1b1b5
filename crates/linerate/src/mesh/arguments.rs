//! The command line of `linerate mesh`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use linerate_model::units::BitRate;

use crate::arguments::Budget;
use crate::on::ReachArguments;

// `linerate mesh`.
#[derive(Args, Debug, Clone)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MeshArguments {
    #[command(subcommand)]
    pub(super) command: Option<MeshCommand>,
    #[command(flatten)]
    pub(super) measure: MeasureArguments,
}

#[derive(Subcommand, Debug, Clone)]
pub(super) enum MeshCommand {
    /// Add disjoint pairs between two sets of hosts until the sum of their rates stops growing
    Trunk(TrunkArguments),
    /// Print the report of a folder that a mesh or a trunk was saved to
    Show(ShowArguments),
}

// What measures every pair.
#[derive(Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a switch of the command line each"
)]
pub(super) struct MeasureArguments {
    /// Hosts: sets as `linerate nodes` reads them
    #[arg(value_name = "NODES")]
    pub(super) nodes: Vec<String>,
    /// Both directions of a pair at once
    #[arg(long)]
    pub(super) both: bool,
    /// Fewer pairs: ring (each host to the next), random:N (each host to N others), or FROM:TO (two sets)
    #[arg(long, value_name = "WHICH")]
    pub(super) only: Option<String>,
    /// Begin all tests of a round at the same moment
    #[arg(long)]
    pub(super) wave: bool,
    /// Give each test N streams with source ports that follow each other: finds a bad member of a bond
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=128))]
    pub(super) ports: Option<u16>,
    /// Begin no round that would not end within this time (30m) or this amount of data (50G, of 1024)
    #[arg(long, value_name = "LIMIT", value_parser = crate::arguments::budget)]
    pub(super) budget: Option<Budget>,
    /// The rate that each pair should reach, such as 9.2G: it is 100 % of the matrix, and the exit code is 1 where a pair reaches less than 90 % of it
    #[arg(long, value_name = "RATE")]
    pub(super) expect: Option<BitRate>,
    /// Seed of what is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Say what would be measured, how long it takes and how much it sends; measure nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Measure what an interrupted mesh of the same hosts and options has left in the folder of -o
    #[arg(long, requires = "output", conflicts_with = "dry_run")]
    pub(super) resume: bool,
    #[command(flatten)]
    pub(super) common: CommonArguments,
}

// What both kinds of measurement take.
#[derive(Args, Debug, Clone)]
pub(super) struct CommonArguments {
    #[command(flatten)]
    pub(super) reach: ReachArguments,
    /// Save all records and the report to this folder [default: mesh-DATE-TIME]
    #[arg(short = 'o', long, value_name = "FOLDER")]
    pub(super) output: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    /// Options of `linerate test` for each test [default: -t 5]
    #[arg(last = true, value_name = "TEST")]
    pub(super) test: Vec<String>,
}

// `linerate mesh trunk`.
#[derive(Args, Debug, Clone)]
pub(super) struct TrunkArguments {
    /// Hosts that send
    #[arg(long, value_name = "NODES")]
    pub(super) from: String,
    /// Hosts that receive
    #[arg(long, value_name = "NODES")]
    pub(super) to: String,
    #[command(flatten)]
    pub(super) common: CommonArguments,
}

// `linerate mesh show`.
#[derive(Args, Debug, Clone)]
pub(super) struct ShowArguments {
    /// The folder
    pub(super) folder: PathBuf,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
}
