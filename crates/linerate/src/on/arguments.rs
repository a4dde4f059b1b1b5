//! The options by which a command runs on other hosts.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use clap::Args;
use linerate_fleet::bootstrap::binaries;
use linerate_fleet::carrier::Carrier;
use linerate_fleet::fan_out::USUAL_FAN_OUT;
use linerate_fleet::nodes::{NodeSet, Sources};
use linerate_fleet::{Elevation, Reach};
use linerate_model::units::Nanos;

use super::password;
use crate::action::Failure;
use crate::arguments::duration;
use crate::nodes::GroupArguments;

/// The options of [`OnArguments`] and [`ReachArguments`] as they are typed: they say where a command runs and are no
/// part of it.
pub(super) const NAMES: [&str; 7] = [
    "on",
    "groups",
    "inventory",
    "via",
    "fan-out",
    "become",
    "connect-timeout",
];

// Which hosts.
#[derive(Args, Debug, Clone)]
pub(crate) struct OnArguments {
    /// Run this on these hosts, by ssh, such as node[01-64]: sets as for `linerate nodes`. Equal answers are printed once
    #[arg(long, value_name = "NODES")]
    pub(crate) on: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArguments,
}

// How hosts are reached.
#[derive(Args, Debug, Clone)]
pub(crate) struct ReachArguments {
    #[command(flatten)]
    means: MeansArguments,
    /// Hosts that are worked on at once
    #[arg(long, value_name = "N", default_value_t = USUAL_FAN_OUT, value_parser = fan_out)]
    pub(crate) fan_out: usize,
    /// Give a host up that does not answer in this time while connecting
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    connect_timeout: Nanos,
}

// By what hosts are named and reached.
#[derive(Args, Debug, Clone)]
pub(crate) struct MeansArguments {
    #[command(flatten)]
    groups: GroupArguments,
    /// Reach hosts by this command line instead of ssh; {host} is the host's name, a shell script is added as the last word
    #[arg(long, value_name = "COMMAND")]
    via: Option<String>,
    /// Become root on the hosts by sudo; where it wants a password, that is asked once on the terminal
    #[arg(long = "become")]
    elevate: bool,
}

/// 1 to 4096.
fn fan_out(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=4096) => Ok(number),
        _ => Err("1 to 4096 hosts at once are possible".to_owned()),
    }
}

impl OnArguments {
    /// The hosts of `--on`; `None` where it was not given.
    pub(crate) fn hosts(&self) -> Result<Option<Vec<String>>, Failure> {
        self.on
            .as_deref()
            .map(|set| self.reach.hosts(set))
            .transpose()
    }
}

impl ReachArguments {
    /// The hosts of a set.
    ///
    /// # Errors
    /// Where the set cannot be read or is empty.
    pub(crate) fn hosts(&self, set: &str) -> Result<Vec<String>, Failure> {
        self.means.hosts(set)
    }

    /// The groups of the files, each with its hosts. One that cannot be read is left out: no set names it here.
    ///
    /// # Errors
    /// Where a file cannot be read.
    pub(crate) fn named_groups(&self) -> Result<BTreeMap<String, Vec<String>>, Failure> {
        let groups = self.means.groups.read()?;
        let sources = Sources {
            groups: &groups,
            file: &crate::nodes::read_text,
        };
        let read = |(source, group): (&str, &str)| {
            let set = NodeSet::read(&format!("@{source}:{group}"), &sources).ok()?;
            Some((group.to_owned(), set.names().collect()))
        };
        Ok(groups.names().filter_map(read).collect())
    }

    /// Where groups of hosts are defined.
    pub(crate) const fn groups(&self) -> &GroupArguments {
        &self.means.groups
    }

    /// The command line by which they are reached; absent = ssh.
    pub(crate) fn via(&self) -> Option<&str> {
        self.means.via.as_deref()
    }

    /// How they are reached. It reads this program, to know its hash.
    pub(crate) fn reach(&self) -> Result<Reach, Failure> {
        self.means.reach(self.connect_timeout)
    }
}

impl MeansArguments {
    /// As [`ReachArguments::hosts`].
    pub(crate) fn hosts(&self, set: &str) -> Result<Vec<String>, Failure> {
        let groups = self.groups.read()?;
        let sources = Sources {
            groups: &groups,
            file: &crate::nodes::read_text,
        };
        let set =
            NodeSet::read(set, &sources).map_err(|error| Failure::Usage(error.to_string()))?;
        if set.is_empty() {
            return Err(Failure::Usage("the set of hosts is empty".to_owned()));
        }
        Ok(set.names().collect())
    }

    /// Whether ssh reaches the hosts.
    pub(crate) const fn is_ssh(&self) -> bool {
        self.via.is_none()
    }

    /// As [`ReachArguments::reach`], within this time.
    pub(crate) fn reach(&self, connect_timeout: Nanos) -> Result<Reach, Failure> {
        let carrier = match &self.via {
            Some(template) => Carrier::template(template)
                .map_err(|error| Failure::Usage(format!("--via: {error}")))?,
            None => Carrier::ssh(connect_timeout),
        };
        let binaries = binaries().map_err(|error| {
            Failure::File(format!("cannot read this program to copy it: {error}"))
        })?;
        Ok(Reach {
            carrier,
            binaries: binaries.into(),
            elevation: self.elevate.then(elevation),
            connect_timeout,
        })
    }
}

/// sudo, with a password that is asked once for all hosts, by the first that wants one.
fn elevation() -> Elevation {
    let password = Arc::new(OnceLock::new());
    Elevation::new(move || password.get_or_init(password::read).clone())
}
