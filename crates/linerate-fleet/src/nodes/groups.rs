//! Groups of hosts, by the files that name them.

use std::collections::BTreeMap;

use super::NodesError;

/// Where a group is looked for that names no source.
const DEFAULT: &str = "local";
/// So many groups are listed where one is not found.
const LISTED: usize = 12;

/// Sources of groups, each with its groups' sets as text. The source that was added first is asked where a set names
/// none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    sources: Vec<(String, BTreeMap<String, String>)>,
}

impl Groups {
    /// None at all.
    pub const fn none() -> Self {
        Self {
            sources: Vec::new(),
        }
    }

    /// Adds groups to a source. A group that it has keeps its hosts.
    pub fn add(&mut self, source: &str, groups: impl IntoIterator<Item = (String, String)>) {
        if !self.sources.iter().any(|(name, _)| name == source) {
            self.sources.push((source.to_owned(), BTreeMap::new()));
        }
        let Some((_, known)) = self.sources.iter_mut().find(|(name, _)| name == source) else {
            return;
        };
        for (group, set) in groups {
            known.entry(group).or_insert(set);
        }
    }

    /// Adds the lines of a file, `NAME: SET` each, as in `ClusterShell`'s `groups.d/local.cfg`; `#` begins a comment.
    pub fn add_lines(&mut self, file: &str, text: &str) -> Result<(), NodesError> {
        let mut groups = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let Some((name, set)) = line.split_once(':') else {
                return Err(NodesError::Line {
                    file: file.to_owned(),
                    line: number + 1,
                    why: format!("'{line}' is no group; write NAME: HOSTS"),
                });
            };
            groups.push((name.trim().to_owned(), set.trim().to_owned()));
        }
        self.add(DEFAULT, groups);
        Ok(())
    }

    /// Each group by its source and name, as a set names it: `local`, `rack1` for `@local:rack1`.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sources.iter().flat_map(|(source, groups)| {
            let names = groups.keys().map(String::as_str);
            names.map(move |group| (source.as_str(), group))
        })
    }

    /// The set of a group, as text; `*` has all hosts of the source.
    pub(super) fn find(&self, source: Option<&str>, group: &str) -> Result<String, NodesError> {
        let asked = match source {
            Some(source) => self.sources.iter().find(|(name, _)| name == source),
            None => self.sources.first(),
        };
        let Some((name, groups)) = asked else {
            return Err(match source {
                Some(source) => NodesError::Source(source.to_owned()),
                None => NodesError::Group {
                    group: group.to_owned(),
                    source_name: "any file of groups".to_owned(),
                    known: "no group at all: no file of groups was found".to_owned(),
                },
            });
        };
        if group == "*" {
            return Ok(groups.get("all").cloned().unwrap_or_else(|| {
                let each = groups.keys().map(|group| format!("@{name}:{group}"));
                each.collect::<Vec<_>>().join(",")
            }));
        }
        groups.get(group).cloned().ok_or_else(|| {
            let mut known: Vec<&str> = groups.keys().map(String::as_str).take(LISTED).collect();
            if groups.len() > LISTED {
                known.push("…");
            }
            NodesError::Group {
                group: group.to_owned(),
                source_name: format!("the groups of '{name}'"),
                known: known.join(", "),
            }
        })
    }
}
