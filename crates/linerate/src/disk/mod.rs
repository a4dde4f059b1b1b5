//! `linerate disk`: what block devices do, and how fast they are.

mod probe;
mod replication;
mod watch;

use clap::{Args, Subcommand};

use crate::action::Failure;
use crate::printer::Printer;

pub(crate) use watch::show;

// `linerate disk`.
#[derive(Args, Debug, Clone)]
pub(crate) struct DiskArguments {
    #[command(subcommand)]
    command: DiskCommand,
}

#[derive(Subcommand, Debug, Clone)]
enum DiskCommand {
    /// Show what the disks below a file, folder or device do, level by level, and whether one is at its limit
    Watch(watch::DiskWatchArguments),
    /// Read and write a new file in a directory, and say how fast its disk is and what limits it
    Probe(Box<probe::ProbeArguments>),
}

pub(crate) fn run(arguments: &DiskArguments, printer: &Printer) -> Result<(), Failure> {
    match &arguments.command {
        DiskCommand::Watch(arguments) => watch::run(arguments, printer),
        DiskCommand::Probe(arguments) => probe::run(arguments, printer),
    }
}
