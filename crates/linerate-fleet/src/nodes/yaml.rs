//! Groups in YAML: Ansible's inventories and `ClusterShell`'s files of groups. Variables are left out but for
//! `ansible_host`.

use std::collections::BTreeMap;

use yaml_rust2::parser::{Event, MarkedEventReceiver, Parser};
use yaml_rust2::scanner::Marker;
use yaml_rust2::yaml::Hash;
use yaml_rust2::{Yaml, YamlLoader};

use super::inventory::{ANSIBLE, renamed};
use super::{Groups, NodesError};

/// No file nests deeper. An inventory has two levels for each level of groups.
const DEEPEST: usize = 64;

/// Adds the groups of an inventory as a source named `ansible`.
///
/// # Errors
/// [`NodesError::Entry`] with the group that is not understood, [`NodesError::Line`] where the text is no YAML.
pub fn inventory_in_yaml(groups: &mut Groups, file: &str, text: &str) -> Result<(), NodesError> {
    let file = File { name: file };
    let mut found = BTreeMap::new();
    for (name, group) in file.mappings(text)? {
        file.group(&name, &group, &mut found)?;
    }
    let sets = found
        .into_iter()
        .map(|(group, members): (String, Vec<String>)| (group, members.join(",")));
    groups.add(ANSIBLE, sets);
    Ok(())
}

/// Adds the groups of a file as in `ClusterShell`'s `groups.d/cluster.yaml`: sources, each with its groups and their sets.
///
/// # Errors
/// As [`inventory_in_yaml`].
pub fn groups_in_yaml(groups: &mut Groups, file: &str, text: &str) -> Result<(), NodesError> {
    let file = File { name: file };
    for (source, members) in file.mappings(text)? {
        let members = file.mapping(&source, &members)?;
        let mut sets = Vec::new();
        for (group, set) in members {
            let group = file.scalar(&source, group)?;
            sets.push((group.clone(), file.set(&group, set)?));
        }
        groups.add(&source, sets);
    }
    Ok(())
}

/// A file, for messages.
struct File<'a> {
    name: &'a str,
}

impl File<'_> {
    /// The mapping of the text's one document; nothing where it is empty.
    fn mappings(&self, text: &str) -> Result<Vec<(String, Yaml)>, NodesError> {
        let bad = |error: &yaml_rust2::ScanError| NodesError::Line {
            file: self.name.to_owned(),
            line: error.marker().line(),
            why: format!("it is no YAML: {}", error.info()),
        };
        let mut bounds = Bounds::default();
        Parser::new_from_str(text)
            .load(&mut bounds, true)
            .map_err(|error| bad(&error))?;
        if let Some((line, why)) = bounds.refused {
            return Err(NodesError::Line {
                file: self.name.to_owned(),
                line,
                why: why.to_owned(),
            });
        }
        let documents = YamlLoader::load_from_str(text).map_err(|error| bad(&error))?;
        let Some(first) = documents.into_iter().next() else {
            return Ok(Vec::new());
        };
        let mut named = Vec::new();
        for (name, value) in self.mapping("the file", &first)? {
            named.push((self.scalar("the file", name)?, value.clone()));
        }
        Ok(named)
    }

    /// A group of an inventory, and those below it.
    fn group(
        &self,
        name: &str,
        group: &Yaml,
        found: &mut BTreeMap<String, Vec<String>>,
    ) -> Result<(), NodesError> {
        let mut members = Vec::new();
        for (key, value) in self.mapping(name, group)? {
            match key.as_str() {
                Some("hosts") => {
                    for (host, variables) in self.mapping(name, value)? {
                        let host = self.scalar(name, host)?;
                        let address = &variables["ansible_host"];
                        let named = if address.is_badvalue() {
                            host
                        } else {
                            self.scalar(&host, address)?
                        };
                        members.push(renamed(&named).map_err(|why| self.entry(name, why))?);
                    }
                }
                Some("children") => {
                    for (child, below) in self.mapping(name, value)? {
                        let child = self.scalar(name, child)?;
                        members.push(format!("@{ANSIBLE}:{child}"));
                        self.group(&child, below, found)?;
                    }
                }
                Some("vars") => {}
                _ => {
                    let key = self.scalar(name, key)?;
                    let why = format!("'{key}' is not known; a group has hosts, children and vars");
                    return Err(self.entry(name, why));
                }
            }
        }
        found
            .entry(name.to_owned())
            .or_default()
            .append(&mut members);
        Ok(())
    }

    /// A mapping; nothing where a key has no value.
    fn mapping<'y>(
        &self,
        of: &str,
        value: &'y Yaml,
    ) -> Result<Vec<(&'y Yaml, &'y Yaml)>, NodesError> {
        match value {
            Yaml::Null => Ok(Vec::new()),
            Yaml::Hash(entries) => Ok(Hash::iter(entries).collect()),
            _ => Err(self.entry(of, "a mapping of names is expected here".to_owned())),
        }
    }

    /// A set: a text, or a list of them.
    fn set(&self, group: &str, value: &Yaml) -> Result<String, NodesError> {
        let Yaml::Array(sets) = value else {
            return self.scalar(group, value);
        };
        let sets: Result<Vec<String>, _> = sets.iter().map(|set| self.scalar(group, set)).collect();
        Ok(sets?.join(","))
    }

    fn scalar(&self, of: &str, value: &Yaml) -> Result<String, NodesError> {
        match value {
            Yaml::String(text) | Yaml::Real(text) => Ok(text.clone()),
            Yaml::Integer(number) => Ok(number.to_string()),
            _ => Err(self.entry(of, "a name is expected here".to_owned())),
        }
    }

    fn entry(&self, entry: &str, why: String) -> NodesError {
        NodesError::Entry {
            file: self.name.to_owned(),
            entry: entry.to_owned(),
            why,
        }
    }
}

/// Refuses what would grow when it is loaded: aliases, and depth.
#[derive(Default)]
struct Bounds {
    depth: usize,
    refused: Option<(usize, &'static str)>,
}

impl MarkedEventReceiver for Bounds {
    fn on_event(&mut self, event: Event, mark: Marker) {
        let why = match event {
            Event::Alias(_) => Some("aliases (*NAME) are not read; write the hosts there"),
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                self.depth += 1;
                (self.depth > DEEPEST).then_some("it is nested too deeply")
            }
            Event::MappingEnd | Event::SequenceEnd => {
                self.depth = self.depth.saturating_sub(1);
                None
            }
            _ => None,
        };
        if let Some(why) = why {
            self.refused.get_or_insert((mark.line(), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NodeSet, Sources};
    use super::*;

    fn folded(groups: &Groups, set: &str) -> String {
        let none = |_: &str| Err("no file".to_owned());
        let sources = Sources {
            groups,
            file: &none,
        };
        NodeSet::read(set, &sources).unwrap().to_string()
    }

    #[test]
    fn an_inventory_has_groups_below_groups_and_hosts_by_other_names() {
        let text = "\
all:
  hosts:
    login:
      ansible_host: login.example.net
      ansible_port: 2222
  children:
    compute:
      children:
        rack1:
          hosts:
            node[01:04]:
            gpu[a:c]:
        rack2:
          hosts: {node05: , node06: {ansible_user: root}}
          vars: {mtu: 9000}
";
        let mut groups = Groups::none();
        inventory_in_yaml(&mut groups, "hosts.yaml", text).unwrap();
        assert_eq!(folded(&groups, "@rack1"), "gpua,gpub,gpuc,node[01-04]");
        assert_eq!(folded(&groups, "@compute"), "gpua,gpub,gpuc,node[01-06]");
        assert_eq!(
            folded(&groups, "@*"),
            "gpua,gpub,gpuc,login.example.net,node[01-06]"
        );
    }

    #[test]
    fn a_file_of_clustershell_has_sources_and_lists() {
        let text = "roles:\n  adm: 'mgmt[1-2]'\n  io: ['io1', 'io[2-3]']\n  all: '@adm,@io'\n  one: 7\nracks:\n  r1: node[1-8/2]\n";
        let mut groups = Groups::none();
        groups_in_yaml(&mut groups, "cluster.yaml", text).unwrap();
        assert_eq!(folded(&groups, "@*"), "io[1-3],mgmt[1-2]");
        assert_eq!(folded(&groups, "@racks:r1"), "node[1,3,5,7]");
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let refused = |text: &str| {
            let read = inventory_in_yaml(&mut Groups::none(), "i.yml", text);
            read.unwrap_err().to_string()
        };
        assert!(refused("all: [a, b]").contains("i.yml, all: a mapping of names"));
        assert!(refused("all:\n  host: {a: }\n").contains("'host' is not known"));
        assert!(refused("all:\n\thosts:\n").contains("i.yml, line 2"));
        assert!(refused("a: &x {hosts: {n: }}\nb: *x\n").contains("i.yml, line 2: aliases"));
        let deep = format!("a: {}", "[".repeat(4000));
        assert!(refused(&deep).contains("i.yml, line 1"));
        assert!(inventory_in_yaml(&mut Groups::none(), "i.yml", "").is_ok());
    }
}
