//! The options of `linerate hub`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use linerate_hub::access::users::Role;
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
    /// Serve pages, API and metrics at this address. Off loopback this needs users (`linerate hub user add`), and --tls-cert or --behind-proxy
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5281")]
    pub(crate) listen: SocketAddr,
    /// Serve pages over TLS 1.3 with the certificates in this file (PEM, the hub's own first). Read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A reverse proxy at this address (several: separated by commas) ends TLS. Only it and programs on this host may connect to --listen
    #[arg(
        long,
        value_name = "ADDRESS",
        value_delimiter = ',',
        conflicts_with = "tls_cert"
    )]
    pub(crate) behind_proxy: Vec<IpAddr>,
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
    /// Who may log in to the pages, and API tokens
    #[command(subcommand)]
    User(UserCommand),
}

#[derive(Subcommand, Debug)]
pub(crate) enum UserCommand {
    /// Add a user, or give one another role and password. Once there is a user, everyone has to log in
    Add(UserAddArguments),
    /// List users and the labels of their API tokens
    List(FolderArguments),
    /// Remove a user: its sessions end at once, and its API tokens are refused
    Remove(UserNameArguments),
    /// Print a new API token of a user, for `Authorization: Bearer TOKEN`. It may do what the user may; the hub keeps its hash alone
    Token(UserTokenArguments),
}

#[derive(Args, Debug)]
pub(crate) struct UserAddArguments {
    /// Its name: letters, digits, '.', '_', '-' and '@'
    pub(crate) name: String,
    /// What it may do: a viewer reads; an operator also makes silences and asks for tests; an admin does at present the same
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub(crate) role: Role,
    /// Read the password from the first line of this file, not from the terminal
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Without a password: a program that has API tokens alone
    #[arg(long, conflicts_with = "password_file")]
    pub(crate) no_password: bool,
    #[command(flatten)]
    pub(crate) folder: FolderArguments,
}

#[derive(Args, Debug)]
pub(crate) struct UserNameArguments {
    /// The user's name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) folder: FolderArguments,
}

#[derive(Args, Debug)]
pub(crate) struct UserTokenArguments {
    /// The user's name
    pub(crate) name: String,
    /// What the token is for, such as prometheus
    pub(crate) label: String,
    /// Remove the token of this label
    #[arg(long)]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) folder: FolderArguments,
}

fn role(text: &str) -> Result<Role, String> {
    let found = Role::ALL.into_iter().find(|role| role.word() == text);
    found.ok_or_else(|| "a role is viewer, operator or admin".to_owned())
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
