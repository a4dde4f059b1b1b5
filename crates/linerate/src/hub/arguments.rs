//! The options of `linerate hub`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use linerate_model::units::Nanos;

use crate::arguments::duration;
use crate::on::arguments::ReachArguments;

// `linerate hub`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true
)]
pub(crate) struct HubArguments {
    #[command(subcommand)]
    pub(crate) command: Option<HubCommand>,
    /// What is tested, between which hosts and when: watch.toml, or a template of pSConfig. Read again when it changes, and on SIGHUP
    pub(crate) file: Option<PathBuf>,
    /// Keep results in this folder [default: ~/.local/share/linerate, for root /var/lib/linerate]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Serve pages, API and metrics at this loopback address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5281")]
    pub(crate) listen: SocketAddr,
    /// Take agents that connect to this address, over TLS with certificates of this hub (`linerate agent --hub`) [default: none]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) agents: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) reach: ReachArguments,
}

#[derive(Subcommand, Debug)]
pub(crate) enum HubCommand {
    /// Invitations for hosts that are to enrol
    #[command(subcommand)]
    Token(TokenCommand),
    /// The agents that have enrolled
    #[command(subcommand)]
    Agent(AgentCommand),
}

#[derive(Subcommand, Debug)]
pub(crate) enum TokenCommand {
    /// Print an invitation for `linerate agent --enrol`: the hub's address, a secret token and the pin of the hub's authority
    New(TokenArguments),
}

#[derive(Args, Debug)]
pub(crate) struct TokenArguments {
    /// Valid for this long (90m, 12h, 7d), at most 30 days
    #[arg(long, value_name = "TIME", value_parser = ttl, default_value = "1h")]
    pub(crate) ttl: Nanos,
    /// So many hosts may enrol with it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) uses: u32,
    /// Where hosts reach the hub [default: where the hub last took agents, by this host's name if it listens on all addresses]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) address: Option<String>,
    #[command(flatten)]
    pub(crate) folder: FolderArguments,
}

#[derive(Subcommand, Debug)]
pub(crate) enum AgentCommand {
    /// List the agents
    List(FolderArguments),
    /// Revoke an agent: its connection ends at once, and its certificate is refused
    Revoke(RevokeArguments),
}

#[derive(Args, Debug)]
pub(crate) struct RevokeArguments {
    /// The name that it enrolled with
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) folder: FolderArguments,
}

#[derive(Args, Debug)]
pub(crate) struct FolderArguments {
    /// The hub's folder [default: ~/.local/share/linerate, for root /var/lib/linerate]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

/// A time, also in days.
fn ttl(text: &str) -> Result<Nanos, String> {
    let Some(days) = text.strip_suffix('d') else {
        return duration(text).map_err(|_| "expected a time, such as 90m, 12h or 7d".to_owned());
    };
    let days: u16 = days
        .parse()
        .map_err(|_| format!("'{days}' is no whole number of days"))?;
    Ok(Nanos::from_millis(u64::from(days) * 86_400_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_may_be_valid_for_days() {
        let hours = |hours: u64| Ok(Nanos::from_millis(hours * 3_600_000));
        assert_eq!(ttl("30d"), hours(720));
        assert_eq!(ttl("12h"), hours(12));
        assert!(ttl("d").is_err() && ttl("-1d").is_err() && ttl("1w").is_err());
    }
}
