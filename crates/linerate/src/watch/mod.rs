//! `linerate watch`: what is tested regularly.

mod file;
mod plan;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::action::Failure;
use crate::nodes::GroupArguments;
use crate::printer::Printer;

// `linerate watch`.
#[derive(Args, Debug, Clone)]
pub(crate) struct WatchArguments {
    #[command(subcommand)]
    command: WatchCommand,
}

#[derive(Subcommand, Debug, Clone)]
enum WatchCommand {
    /// Say what a plan tests and costs before anything runs: pairs, tests a day, how busy hosts and segments get, bytes, disk
    Plan(PlanArguments),
}

// `linerate watch plan`.
#[derive(Args, Debug, Clone)]
struct PlanArguments {
    /// watch.toml, or a pSConfig template with throughput tasks (JSON)
    file: PathBuf,
    #[command(flatten)]
    groups: GroupArguments,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &WatchArguments, printer: &mut Printer) -> Result<(), Failure> {
    match &arguments.command {
        WatchCommand::Plan(given) => plan::run(given, printer),
    }
}
