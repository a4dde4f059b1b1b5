//! The command line of `linerate tune interfaces`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `linerate tune interfaces`.
#[derive(Args, Debug, Clone)]
pub(in crate::tune) struct InterfacesArguments {
    #[command(subcommand)]
    pub(super) command: InterfacesCommand,
}

#[derive(Subcommand, Debug, Clone)]
pub(super) enum InterfacesCommand {
    /// Configure the interfaces as declared
    Apply(InterfacesApply),
    /// Show what differs from the declaration; nothing is changed
    Status(Place),
}

#[derive(Args, Debug, Clone)]
pub(super) struct InterfacesApply {
    #[command(flatten)]
    pub(super) place: Place,
    /// Id of this start of the service. If it is a new one, manual changes are overwritten with the declaration
    #[arg(long, value_name = "ID")]
    pub(super) start: Option<String>,
    /// Show what would be done; nothing is changed
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Args, Debug, Clone)]
pub(super) struct Place {
    /// The declaration: TOML if the name ends in .toml, otherwise the old INI format [default: /etc/linerate/interfaces.toml]
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Where the applied state is kept [default: /var/lib/linerate]
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
    /// Work on the files below this folder instead of / (a guest image), not on the kernel's interfaces
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,
    /// With --root: also use the interfaces of the running kernel
    #[arg(long, requires = "root")]
    pub(super) live: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
}
