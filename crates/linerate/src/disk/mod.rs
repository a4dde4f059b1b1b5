//! `linerate disk`: how fast the disk of a directory is.

mod probe;

use clap::{Args, Subcommand};

use crate::action::Failure;
use crate::printer::Printer;
use probe::ProbeArguments;

// `linerate disk`.
#[derive(Args, Debug, Clone)]
pub(crate) struct DiskArguments {
    #[command(subcommand)]
    command: DiskCommand,
}

#[derive(Subcommand, Debug, Clone)]
enum DiskCommand {
    /// Read and write a new file in a directory, and say how fast its disk is and what limits it
    Probe(Box<ProbeArguments>),
}

pub(crate) fn run(arguments: &DiskArguments, printer: &Printer) -> Result<(), Failure> {
    match &arguments.command {
        DiskCommand::Probe(arguments) => probe::run(arguments, printer),
    }
}
