//! The options of a test whose server, or whose both ends, are started by it.

use clap::Args;

use linerate_fleet::session::USUAL_CONNECT_TIMEOUT;
use linerate_fleet::{Reach, bootstrap, carrier::Carrier};

use super::roles::Choice;
use crate::action::Failure;

// A part of `linerate test`.
#[derive(Args, Debug, Clone, Default)]
#[expect(clippy::doc_markdown, reason = "these comments are the help texts")]
pub(crate) struct BetweenArguments {
    /// Test from this host to the one of --to; either may be localhost. Both ends are started over ssh
    #[arg(long, value_name = "HOST", requires = "to")]
    pub(crate) from: Option<String>,
    /// The host that receives, or sends with -R
    #[arg(long, value_name = "HOST", requires = "from")]
    pub(crate) to: Option<String>,
    /// With --from or ssh://: dial only addresses in this network or of this interface (of the host that serves)
    #[arg(long, value_name = "NETWORK|INTERFACE")]
    pub(crate) address: Option<Choice>,
    /// Reach hosts by this command instead of ssh: {host} in it stands for the host, and a shell script becomes its last word
    #[arg(long, value_name = "COMMAND")]
    pub(crate) via: Option<String>,
}

/// The scheme of a host whose server is started.
const SCHEME: &str = "ssh://";
/// This host.
pub(crate) const HERE: &str = "localhost";

/// What a host is called: without the scheme.
pub(crate) fn called(host: &str) -> &str {
    host.strip_prefix(SCHEME).unwrap_or(host)
}

/// The two hosts of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hosts {
    pub(crate) from: String,
    pub(crate) to: String,
}

impl BetweenArguments {
    /// The host that serves as far as the user says.
    pub(crate) fn server(&self) -> Option<&str> {
        self.to.as_deref()
    }

    /// How the hosts are reached.
    ///
    /// # Errors
    /// A template that reaches none; where this program cannot be read.
    pub(crate) fn reach(&self) -> Result<Reach, Failure> {
        let carrier = match &self.via {
            Some(template) => Carrier::template(template)
                .map_err(|error| Failure::Usage(format!("--via: {error}")))?,
            None => Carrier::ssh(USUAL_CONNECT_TIMEOUT),
        };
        let binaries = bootstrap::binaries()
            .map_err(|error| Failure::File(format!("reading this program: {error}")))?;
        Ok(Reach {
            carrier,
            binaries: binaries.into(),
            elevation: None,
            connect_timeout: USUAL_CONNECT_TIMEOUT,
        })
    }

    /// The hosts, where this test starts at least one end elsewhere; `host` is the positional argument.
    ///
    /// # Errors
    /// What contradicts itself.
    pub(crate) fn hosts(&self, host: Option<&str>) -> Result<Option<Hosts>, String> {
        let hosts = match (&self.from, &self.to, host) {
            (Some(from), Some(to), _) => Some((from.as_str(), to.as_str())),
            (_, _, Some(host)) => host.strip_prefix(SCHEME).map(|_| (HERE, host)),
            _ => None,
        };
        let Some((from, to)) = hosts else {
            return match self.address {
                Some(_) => Err(
                    "--address: it chooses among the addresses of a host on which this test starts the server: give \
                     --from and --to, or ssh://HOST"
                        .to_owned(),
                ),
                None => Ok(None),
            };
        };
        let host = |text: &str| {
            let name = text
                .strip_prefix(SCHEME)
                .map_or(text, |name| name.trim_end_matches('/'));
            match name {
                "" => Err(format!("'{text}' names no host")),
                name if name.starts_with('-') => Err(format!("'{text}' is no host")),
                _ => Ok(if text.starts_with(SCHEME) { text } else { name }.to_owned()),
            }
        };
        Ok(Some(Hosts {
            from: host(from)?,
            to: host(to)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(from: &str, to: &str, host: &str) -> Result<Option<(String, String)>, String> {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let arguments = BetweenArguments {
            from: given(from),
            to: given(to),
            address: None,
            via: None,
        };
        let hosts = arguments.hosts(given(host).as_deref())?;
        Ok(hosts.map(|hosts| (hosts.from, hosts.to)))
    }

    #[test]
    fn a_test_has_far_hosts_by_its_options_or_its_scheme() {
        let pair = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
        assert_eq!(hosts("a", "b", ""), Ok(pair("a", "b")));
        assert_eq!(hosts("", "", "192.0.2.1"), Ok(None));
        let far = "ssh://ann@b:2222";
        assert_eq!(hosts("", "", far), Ok(pair(HERE, far)));
        for wrong in ["ssh://", "ssh:///", "ssh://-oProxyCommand=x"] {
            assert!(hosts("", "", wrong).is_err(), "{wrong}");
        }
        assert!(hosts("-oProxyCommand=x", "b", "").is_err());
    }

    #[test]
    fn an_address_is_chosen_where_a_server_is_started() {
        let arguments = BetweenArguments {
            address: Some("eth1".parse().unwrap()),
            ..BetweenArguments::default()
        };
        assert!(arguments.hosts(Some("ssh://b")).is_ok());
        assert!(
            arguments
                .hosts(Some("b"))
                .unwrap_err()
                .contains("--address")
        );
    }
}
