//! `linerate nodes`: sets of host names, with the groups of this host's files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use linerate_fleet::nodes::{
    Groups, NodeSet, Sources, groups_in_yaml, inventory, inventory_in_yaml,
};
use serde_json::json;

use crate::action::Failure;
use crate::printer::Printer;

/// No file of groups, inventory or list is longer, bytes.
const MOST_BYTES: u64 = 64 << 20;
/// Names of this set are read from standard input.
const STDIN: &str = "-";

// `linerate nodes`.
#[derive(Args, Debug, Clone)]
pub(crate) struct NodesArguments {
    #[command(subcommand)]
    command: NodesCommand,
}

#[derive(Subcommand, Debug, Clone)]
enum NodesCommand {
    /// Print each name on a line of its own
    Expand(SetArguments),
    /// Print the names as one set; names and sets are read from standard input where none are given
    Fold(SetArguments),
    /// Print how many names a set has
    Count(SetArguments),
}

// What each of them takes.
#[derive(Args, Debug, Clone)]
struct SetArguments {
    /// Sets: node[01-64,70], A,B, A!B, A&B, A^B, @group, ^FILE; "-" reads standard input
    #[arg(value_name = "SET")]
    sets: Vec<String>,
    #[command(flatten)]
    groups: GroupArguments,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

// Where groups come from.
#[derive(Args, Debug, Clone)]
pub(crate) struct GroupArguments {
    /// File of groups, a line NAME: SET each, or a YAML file as for clush (.yaml), instead of this host's files; may be repeated
    #[arg(long = "groups", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Ansible inventory (INI, or YAML in .yaml and .yml); its groups are @GROUP, or @ansible:GROUP beside other groups; may be repeated
    #[arg(long = "inventory", value_name = "FILE")]
    inventories: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &NodesArguments, printer: &mut Printer) -> Result<(), Failure> {
    let (given, reads_stdin) = match &arguments.command {
        NodesCommand::Expand(given) | NodesCommand::Count(given) => (given, false),
        NodesCommand::Fold(given) => (given, true),
    };
    if given.sets.is_empty() && !reads_stdin {
        return Err(Failure::Usage(
            "no set of hosts was given; \"-\" reads names from standard input".to_owned(),
        ));
    }
    let groups = given.groups.read()?;
    let sources = Sources {
        groups: &groups,
        file: &read_text,
    };
    let stdin = [STDIN.to_owned()];
    let texts = if given.sets.is_empty() {
        &stdin[..]
    } else {
        &given.sets
    };
    let mut set = NodeSet::default();
    for text in texts {
        // A file with a set a line is what standard input is, too.
        let text = if text == STDIN { "^/dev/stdin" } else { text };
        let read = NodeSet::read(text, &sources).and_then(|read| set.add(&read));
        read.map_err(|error| Failure::Usage(error.to_string()))?;
    }
    print(&arguments.command, given.json, &set, printer)
}

fn print(
    command: &NodesCommand,
    as_json: bool,
    set: &NodeSet,
    printer: &mut Printer,
) -> Result<(), Failure> {
    if as_json {
        let mut document = json!({ "set": set.to_string(), "count": set.len() });
        if matches!(command, NodesCommand::Expand(_)) {
            document["names"] = set.names().collect();
        }
        return Ok(printer.json(&format!("{document:#}"))?);
    }
    match command {
        NodesCommand::Expand(_) => {
            let mut names = String::new();
            for name in set.names() {
                names.push_str(&name);
                names.push('\n');
            }
            printer.print(&names)?;
        }
        NodesCommand::Fold(_) => printer.line(&set.to_string())?,
        NodesCommand::Count(_) => printer.line(&set.len().to_string())?,
    }
    Ok(())
}

impl GroupArguments {
    /// The groups of the files given, or of those that this host has.
    pub(crate) fn read(&self) -> Result<Groups, Failure> {
        self.read_into(Groups::none())
    }

    /// The same beside others, which count where both have a group.
    pub(crate) fn read_into(&self, mut groups: Groups) -> Result<Groups, Failure> {
        for path in &self.inventories {
            let text = text_of(path)?;
            let read = if is_yaml(path) {
                inventory_in_yaml
            } else {
                inventory
            };
            read(&mut groups, &path.display().to_string(), &text)
                .map_err(|error| Failure::File(error.to_string()))?;
        }
        let usual = if self.files.is_empty() {
            usual_files()
        } else {
            self.files.clone()
        };
        for path in usual {
            let (name, text) = (path.display().to_string(), text_of(&path)?);
            let read = if is_yaml(&path) {
                groups_in_yaml(&mut groups, &name, &text)
            } else {
                groups.add_lines(&name, &text)
            };
            read.map_err(|error| Failure::File(error.to_string()))?;
        }
        Ok(groups)
    }
}

/// linerate's own files of groups and `ClusterShell`'s, as far as there are any; a group that several have is the first one's.
fn usual_files() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| home.map(|home| home.join(".config")));
    let mut files = Vec::new();
    for folder in config.into_iter().chain([PathBuf::from("/etc")]) {
        files.push(folder.join("linerate/groups"));
        let clustershell = folder.join("clustershell/groups.d");
        files.push(clustershell.join("local.cfg"));
        let entries = std::fs::read_dir(clustershell).into_iter().flatten();
        let mut yaml: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        yaml.retain(|path| is_yaml(path));
        yaml.sort();
        files.append(&mut yaml);
    }
    files.retain(|path| path.exists());
    files
}

fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end == "yaml" || end == "yml")
}

fn text_of(path: &Path) -> Result<String, Failure> {
    read_text(&path.display().to_string()).map_err(|why| Failure::cannot("read", path, &why))
}

pub(crate) fn read_text(name: &str) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(name).map_err(|error| error.to_string())?;
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > MOST_BYTES {
        return Err("it has more than 64 MiB".to_owned());
    }
    Ok(text)
}
