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
    Status(InterfacesStatus),
}

#[derive(Args, Debug, Clone)]
pub(super) struct InterfacesApply {
    #[command(flatten)]
    pub(super) place: Place,
    /// Id of a service start: if it differs from the last one, manual changes are reset to the declaration
    #[arg(long, value_name = "ID")]
    pub(super) start: Option<String>,
    /// Show what would be done; nothing is changed
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Args, Debug, Clone)]
pub(super) struct InterfacesStatus {
    #[command(flatten)]
    pub(super) place: Place,
}

#[derive(Args, Debug, Clone)]
pub(super) struct Place {
    /// The declaration: TOML where its name ends in .toml, else the old INI request [default: /etc/linerate/interfaces.toml]
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Where the applied state is kept [default: /var/lib/linerate]
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
    /// Only write files, below this folder instead of / (a guest image)
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,
    /// With --root: this kernel's interfaces as well
    #[arg(long, requires = "root")]
    pub(super) live: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
}
