//! The options of a test whose server, or whose both ends, are started by it.

use clap::Args;

use super::roles::Choice;
use crate::action::Failure;
use crate::on::arguments::MeansArguments;

// A part of `linerate test`.
#[derive(Args, Debug, Clone)]
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
    #[command(flatten)]
    pub(crate) means: MeansArguments,
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

    /// The hosts, where this test starts at least one end elsewhere; `host` is the positional argument.
    ///
    /// # Errors
    /// What contradicts itself; a set that is not one host.
    pub(crate) fn hosts(&self, host: Option<&str>) -> Result<Option<Hosts>, Failure> {
        let (from, to) = match (&self.from, &self.to, host) {
            (Some(from), Some(to), _) => (from.as_str(), to.as_str()),
            (_, _, Some(host)) if host.starts_with(SCHEME) => (HERE, host),
            _ if self.address.is_some() => {
                return Err(Failure::Usage(
                    "--address: it chooses among the addresses of a host on which this test starts the server: give \
                     --from and --to, or ssh://HOST"
                        .to_owned(),
                ));
            }
            _ => return Ok(None),
        };
        Ok(Some(Hosts {
            from: self.one(from)?,
            to: self.one(to)?,
        }))
    }

    /// One host as it is given to the carrier.
    fn one(&self, text: &str) -> Result<String, Failure> {
        let is_uri = text.starts_with(SCHEME);
        let name = called(text).trim_end_matches('/');
        if name.is_empty() || name.starts_with('-') {
            return Err(Failure::Usage(format!("'{text}' names no host")));
        }
        if is_uri {
            // ssh reads the user and the port of a URI itself.
            let scheme = if self.means.is_ssh() { SCHEME } else { "" };
            return Ok(format!("{scheme}{name}"));
        }
        if !name.starts_with('@') && !name.contains(['[', ',', '!', '&', '^']) {
            return Ok(name.to_owned());
        }
        let mut names = self.means.hosts(name)?;
        match (names.pop(), names.len()) {
            (Some(only), 0) => Ok(only),
            (_, others) => Err(Failure::Usage(format!(
                "'{name}' are {} hosts; a test has one at each end (`linerate mesh` tests many)",
                others + 1
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use crate::action::Action;
    use crate::arguments::{Command, parse};

    /// The hosts of a command line, or why it has none.
    fn hosts(words: &str) -> Result<Option<(String, String)>, String> {
        let words = ["linerate", "test"]
            .into_iter()
            .chain(words.split_whitespace());
        match parse(words.map(OsString::from).collect()) {
            Action::Run(Command::Test(test)) => {
                let hosts = test.between.hosts(test.host.as_deref());
                let hosts = hosts.map_err(|failure| failure.to_string())?;
                Ok(hosts.map(|hosts| (hosts.from, hosts.to)))
            }
            Action::Refuse(why) => Err(why),
            _ => panic!("another action"),
        }
    }

    #[test]
    fn a_test_has_far_hosts_by_its_options_or_its_scheme() {
        let pair = |from: &str, to: &str| Ok(Some((from.to_owned(), to.to_owned())));
        assert_eq!(hosts("--from a --to ann@b"), pair("a", "ann@b"));
        assert_eq!(hosts("--from a[1-2]!a1 --to b[7]"), pair("a2", "b7"));
        assert_eq!(hosts("192.0.2.1"), Ok(None));
        let far = "ssh://ann@b:2222";
        assert_eq!(hosts(far), pair("localhost", far));
        assert_eq!(hosts("ssh://b/"), pair("localhost", "ssh://b"));
        assert_eq!(hosts("ssh://b --via x{host}"), pair("localhost", "b"));
        assert!(hosts("ssh://b --address eth1").is_ok());
    }

    #[test]
    fn what_is_no_pair_of_hosts_is_refused_by_name() {
        for (words, why) in [
            ("ssh://", "ssh://"),
            ("ssh:///", "ssh:///"),
            ("ssh://-oProxyCommand=x", "names no host"),
            ("--from=-oProxyCommand=x --to b", "names no host"),
            ("--from a", "--to"),
            ("--to b", "--from"),
            ("h --from a --to b", "--from"),
            ("b --address eth1", "--address"),
            ("--from a[1-3] --to b", "3 hosts"),
            ("", "HOST"),
        ] {
            let said = hosts(words).unwrap_err();
            assert!(said.contains(why), "{words}: {said}");
        }
    }
}
