//! The command line of `linerate archive`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

// `linerate archive`.
#[derive(Args, Debug, Clone)]
pub(crate) struct ArchiveArguments {
    #[command(subcommand)]
    pub(super) command: ArchiveCommand,
}

#[derive(Subcommand, Debug, Clone)]
pub(super) enum ArchiveCommand {
    /// Check the database, and read every record and compare its hash
    Verify(FolderArguments),
    /// Write the tests as a table, the oldest first; a figure that is not known is empty or null, never 0
    Export(ExportArguments),
    /// Show how fast the archive grows, and when its disk is full
    Forecast(FolderArguments),
    /// Compute the figures and findings again that an older version computed, from the records
    Recompute(FolderArguments),
    /// Copy the archive to a new folder while it is in use; records are hard links where both are on one file system
    Backup(BackupArguments),
}

// What takes a folder alone.
#[derive(Args, Debug, Clone)]
pub(super) struct FolderArguments {
    /// The archive
    pub(super) folder: PathBuf,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
}

// `linerate archive export`.
#[derive(Args, Debug, Clone)]
pub(super) struct ExportArguments {
    /// The archive
    pub(super) folder: PathBuf,
    /// As CSV (RFC 4180); moments are RFC 3339 in UTC
    #[arg(long, required_unless_present = "parquet")]
    pub(super) csv: bool,
    /// As a Parquet file with the same columns, whole or not at all
    #[arg(long, value_name = "FILE", conflicts_with = "csv")]
    pub(super) parquet: Option<PathBuf>,
    /// CSV to this file, whole or not at all [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE", conflicts_with = "parquet")]
    pub(super) output: Option<PathBuf>,
    /// Only tests of this task
    #[arg(long, value_name = "NAME")]
    pub(super) task: Option<String>,
    /// Only tests that this host sends
    #[arg(long, value_name = "HOST")]
    pub(super) from: Option<String>,
    /// Only tests that this host receives
    #[arg(long, value_name = "HOST")]
    pub(super) to: Option<String>,
    /// Only tests that were due in the last N days
    #[arg(long, value_name = "N")]
    pub(super) days: Option<u32>,
}

// `linerate archive backup`.
#[derive(Args, Debug, Clone)]
pub(super) struct BackupArguments {
    /// The archive
    pub(super) folder: PathBuf,
    /// The folder to make
    #[arg(long, value_name = "FOLDER")]
    pub(super) to: PathBuf,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
}
