//! The options of a roll-out, and the change that a command line asks for.

use std::path::PathBuf;

use clap::Args;
use linerate_model::plain_text::PlainText;
use linerate_watch::roll_out::{Change, ChangeFile};
use linerate_wire::agent::Word;

use super::super::arguments::ApplyArguments;
use crate::action::Failure;
use crate::on::Typed;

/// Options of `tune apply` that are not handed on to the hosts as they are.
const OWN: [&str; 14] = [
    "root",
    "state",
    "confirm-within",
    "prove",
    "pairs",
    "dry-run",
    "canary",
    "batch",
    "one-per",
    "max-failures",
    "tolerance",
    "journal",
    "resume",
    "back",
];
/// All groups.
const ANY_GROUP: &str = "groups";

// How a change comes to many hosts.
#[derive(Args, Debug, Clone)]
pub(in crate::tune) struct RollOutArguments {
    /// With --on: change this many hosts first; where one of them fails, no other is changed
    #[arg(long, value_name = "N", default_value_t = 0, requires = "on")]
    pub(super) canary: usize,
    /// With --on: change at most this many hosts at once, a number or a share of all
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = batch, requires = "on")]
    pub(super) batch: Batch,
    /// With --on: at most one host at once of each group whose name begins so; 'groups' = of every group
    #[arg(long, value_name = "PREFIX", requires = "on")]
    pub(super) one_per: Option<String>,
    /// With --on: begin no further host once this many have failed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = failures, requires = "on")]
    pub(super) max_failures: usize,
    /// With --on: roll a host back that loses more than this share of its goodput to a neighbour, %
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=99), requires = "on")]
    pub(super) tolerance: u8,
    /// With --on: write down each step in this file [default: below ~/.local/state/linerate/roll-outs]
    #[arg(long, value_name = "FILE", requires = "on")]
    pub(super) journal: Option<PathBuf>,
    /// Go on with the roll-out of this journal, which was interrupted
    #[arg(long, value_name = "FILE", conflicts_with_all = ["on", "profiles", "back", "dry_run"])]
    pub(super) resume: Option<PathBuf>,
    /// Put the old values back on every host that the roll-out of this journal changed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["on", "profiles", "dry_run"])]
    pub(super) back: Option<PathBuf>,
}

impl RollOutArguments {
    /// Whether an earlier run goes on.
    pub(in crate::tune) const fn is_of_earlier(&self) -> bool {
        self.resume.is_some() || self.back.is_some()
    }
}

/// How many hosts are changed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batch {
    /// So many.
    Hosts(usize),
    /// So many of a hundred, rounded up.
    Percent(usize),
}

impl Batch {
    /// Of so many hosts: at least one.
    pub(super) fn hosts(self, all: usize) -> usize {
        match self {
            Self::Hosts(hosts) => hosts.max(1),
            Self::Percent(percent) => (all * percent).div_ceil(100).max(1),
        }
    }
}

fn batch(text: &str) -> Result<Batch, String> {
    let wrong =
        || format!("'{text}' is neither a number of hosts from 1 on nor a share from 1% to 100%");
    let read = |digits: &str| digits.parse::<usize>().map_err(|_| wrong());
    let batch = match text.strip_suffix('%') {
        Some(digits) => Batch::Percent(read(digits)?),
        None => Batch::Hosts(read(text)?),
    };
    match batch {
        Batch::Hosts(1..) | Batch::Percent(1..=100) => Ok(batch),
        Batch::Hosts(_) | Batch::Percent(_) => Err(wrong()),
    }
}

fn failures(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => Err("from 1 failure on a roll-out can stop".to_owned()),
    }
}

/// The change that was typed, with the profiles that it names.
pub(super) fn change(arguments: &ApplyArguments) -> Result<Change, Failure> {
    if arguments.wishes.from.is_some() {
        return Err(Failure::Usage(
            "--from plans for another host's facts; --on plans with those of each host".to_owned(),
        ));
    }
    let (command, matches) = crate::arguments::matches(std::env::args_os().collect())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let typed = Typed::without(&command, &matches, &OWN)?;
    let mut place = Vec::new();
    let folders = [
        ("--state", &arguments.place.state),
        ("--root", &arguments.place.root),
    ];
    for (option, folder) in folders {
        if let Some(folder) = folder {
            let folder = folder
                .to_str()
                .ok_or_else(|| Failure::Usage(format!("{} is not UTF-8 text", folder.display())))?;
            place.extend([option.to_owned(), folder.to_owned()]);
        }
    }
    let mut prove = Vec::new();
    if let Some(peer) = &arguments.prove {
        prove.extend(["--prove".to_owned(), peer.clone()]);
        if let Some(pairs) = arguments.pairs {
            prove.extend(["--pairs".to_owned(), pairs.to_string()]);
        }
        if !arguments.test.is_empty() {
            prove.push("--".to_owned());
            prove.extend(arguments.test.iter().cloned());
        }
    }
    let options = typed.options.iter().filter_map(|word| match word {
        Word::Text(text) => Some(text.clone()),
        Word::In(_) | Word::Out(_) => None,
    });
    Ok(Change {
        options: options.collect(),
        place,
        prove,
        files: typed
            .files
            .into_iter()
            .map(text_file)
            .collect::<Result<_, _>>()?,
        confirm_within: arguments.confirm_within,
    })
}

fn text_file((name, bytes): (String, Vec<u8>)) -> Result<ChangeFile, Failure> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(ChangeFile { name, text }),
        Err(_) => Err(Failure::File(format!("{name} is not UTF-8 text"))),
    }
}

/// What is applied, in words.
pub(super) fn profile(change: &Change) -> PlainText {
    let names: Vec<&str> = change.files.iter().map(|file| file.name.as_str()).collect();
    if names.is_empty() {
        return "what an audit recommends".into();
    }
    PlainText::from(names.join(", "))
}

/// The group of each host, where at most one of a group is changed at once.
pub(super) fn groups(
    arguments: &ApplyArguments,
    names: &[String],
) -> Result<Vec<Option<PlainText>>, Failure> {
    let Some(prefix) = &arguments.roll_out.one_per else {
        return Ok(vec![None; names.len()]);
    };
    let groups = arguments.on.reach.named_groups()?;
    let counts = |group: &str| prefix == ANY_GROUP || group.starts_with(prefix.as_str());
    let of = |name: &String| {
        let mut found = groups
            .iter()
            .filter(|(group, members)| counts(group) && members.contains(name));
        found
            .next()
            .map(|(group, _)| PlainText::from(group.as_str()))
    };
    let found: Vec<Option<PlainText>> = names.iter().map(of).collect();
    if found.iter().all(Option::is_none) {
        return Err(Failure::Usage(format!(
            "--one-per {prefix}: no group whose name begins so has one of these hosts"
        )));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_a_number_or_a_share_and_never_nothing() {
        for (text, all, hosts) in [("10%", 8, 1), ("10%", 41, 5), ("100%", 7, 7), ("3", 2, 3)] {
            assert_eq!(batch(text).unwrap().hosts(all), hosts, "{text} of {all}");
        }
        for text in ["", "0", "0%", "101%", "-1", "x", "%", "1.5%"] {
            assert!(batch(text).is_err(), "{text}");
        }
    }
}
