//! The options of `linerate hub`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::on::arguments::ReachArguments;

// `linerate hub`.
#[derive(Args, Debug)]
pub(crate) struct HubArguments {
    /// What is tested, between which hosts and when: watch.toml, or a template of pSConfig. Read again when it changes, and on SIGHUP
    pub(crate) file: Option<PathBuf>,
    /// Keep results in this folder [default: ~/.local/share/linerate, for root /var/lib/linerate]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Serve pages, API and metrics at this loopback address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5281")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) reach: ReachArguments,
}
