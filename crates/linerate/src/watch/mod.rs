//! `linerate watch`: what is tested regularly.

pub(crate) mod file;
mod plan;
mod status;
mod why;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::action::Failure;
use crate::hub::folder;
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
    /// Show what a plan tests and costs before anything runs: pairs, tests a day, how busy hosts and segments get, bytes, disk
    Plan(PlanArguments),
    /// Show why a pair has no result: what became of its tests since the last one that measured
    Why(WhyArguments),
    /// Print what a hub's archive has of each pair, and the alerts that are open
    Status(StatusArguments),
}

// `linerate watch plan`.
#[derive(Args, Debug, Clone)]
struct PlanArguments {
    /// watch.toml, or a pSConfig template with throughput tasks (JSON)
    file: PathBuf,
    #[command(flatten)]
    groups: GroupArguments,
    /// Run the schedule of this many days on virtual time as well: what does not run and why, how long tests wait
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=31))]
    simulate: Option<u64>,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

// `linerate watch why`.
#[derive(Args, Debug, Clone)]
struct WhyArguments {
    /// The sending host
    from: String,
    /// The receiving host
    to: String,
    #[command(flatten)]
    kept: FolderArguments,
}

// `linerate watch status`.
#[derive(Args, Debug, Clone)]
struct StatusArguments {
    #[command(flatten)]
    kept: FolderArguments,
}

// Where results are.
#[derive(Args, Debug, Clone)]
struct FolderArguments {
    /// The folder of the hub [default: ~/.local/share/linerate, for root /var/lib/linerate]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl FolderArguments {
    fn folder(&self) -> Result<PathBuf, Failure> {
        folder::given_or_usual(self.folder.as_ref())
    }
}

pub(crate) fn run(arguments: &WatchArguments, printer: &mut Printer) -> Result<(), Failure> {
    match &arguments.command {
        WatchCommand::Plan(given) => plan::run(given, printer),
        WatchCommand::Why(given) => why::run(given, printer),
        WatchCommand::Status(given) => status::run(given, printer),
    }
}
