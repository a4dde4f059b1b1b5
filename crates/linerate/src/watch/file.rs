//! Reading what is watched: `watch.toml`, or a template of pSConfig.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::Path;

use linerate_fleet::nodes::{Groups, NodeSet, Sources};
use linerate_model::plan::DEFAULT_PORT;
use linerate_watch::plan::{self, Groups as OwnGroups};
use linerate_watch::psconfig;
use linerate_watch::watched::{Reach, Watched};

use crate::action::Failure;
use crate::nodes::{GroupArguments, read_text};

/// Reads a file; what it holds says which kind it is.
pub(crate) fn read(path: &Path, groups: &GroupArguments) -> Result<Watched, Failure> {
    let name = path.display().to_string();
    let text = read_text(&name).map_err(|why| Failure::cannot("read", path, &why))?;
    if psconfig::is_template(&text) {
        let read = psconfig::read(&name, &text, &Reach::Iperf3(DEFAULT_PORT));
        return read.map_err(|error| Failure::File(error.to_string()));
    }
    let sets = Sets {
        given: groups,
        last: RefCell::new(None),
    };
    let nodes = |set: &str, own: &OwnGroups| sets.expand(set, own);
    plan::parse(&name, &text, &nodes).map_err(|error| Failure::File(error.to_string()))
}

/// Sets of host names with the groups of a plan and of this host.
struct Sets<'a> {
    given: &'a GroupArguments,
    /// The groups as they were read last, and the plan's that are among them.
    last: RefCell<Option<(OwnGroups, Groups)>>,
}

impl Sets<'_> {
    fn expand(&self, set: &str, own: &OwnGroups) -> Result<Vec<String>, String> {
        let mut last = self.last.borrow_mut();
        let known = last.as_ref().is_some_and(|(known, _)| known == own);
        if !known || last.is_none() {
            *last = Some((own.clone(), self.read(own)?));
        }
        let groups = last.as_ref().map(|(_, groups)| groups);
        let none = Groups::none();
        let sources = Sources {
            groups: groups.unwrap_or(&none),
            file: &read_text,
        };
        let set = NodeSet::read(set, &sources).map_err(|error| error.to_string())?;
        if set.len() > plan::MOST_HOSTS {
            return Err(format!("a plan has at most {} hosts", plan::MOST_HOSTS));
        }
        Ok(set.names().collect())
    }

    /// The plan's own groups first: they count where this host has others of the same name.
    fn read(&self, own: &OwnGroups) -> Result<Groups, String> {
        let mut lines = String::new();
        for (group, names) in own {
            let _ = writeln!(lines, "{group}: {}", names.join(","));
        }
        let mut groups = Groups::none();
        // The first source is the one that a set without a source asks.
        if !lines.is_empty() {
            let read = groups.add_lines("the plan", &lines);
            read.map_err(|error| error.to_string())?;
        }
        let read = self.given.read_into(groups);
        read.map_err(|failure| failure.to_string())
    }
}
