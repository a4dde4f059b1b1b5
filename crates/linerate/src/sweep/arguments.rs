//! The command line of `linerate sweep`.

use std::path::PathBuf;

use clap::Args;

// `linerate sweep`.
#[derive(Args, Debug, Clone)]
pub(crate) struct SweepArguments {
    /// What to measure: factors with their levels, and where
    #[arg(required_unless_present = "show", conflicts_with = "show")]
    pub(super) file: Option<PathBuf>,
    /// Save runs, table, CSV and charts to this folder, and continue with what is there [default: the file's name
    /// without .toml]
    #[arg(short = 'o', long, value_name = "FOLDER", conflicts_with = "show")]
    pub(super) output: Option<PathBuf>,
    /// Between hosts: where `linerate tune` keeps old values; refused while `linerate tune` changes settings there or
    /// a set of changes waits for confirmation [default: /var/lib/linerate/tune]
    #[arg(long, value_name = "FOLDER", conflicts_with = "show")]
    pub(super) state: Option<PathBuf>,
    /// Measure nothing: show what is in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) show: Option<PathBuf>,
    /// Measure nothing: show the cells and their settings
    #[arg(long, requires = "file")]
    pub(super) dry_run: bool,
    /// One JSON document instead of the table
    #[arg(long, conflicts_with = "csv")]
    pub(super) json: bool,
    /// The runs as CSV instead of the table
    #[arg(long)]
    pub(super) csv: bool,
}
