//! Ansible's inventories in INI form: their groups. Variables are left out, patterns such as `[01:50]` become ranges.

use std::collections::BTreeMap;

use super::{Groups, NodesError};

/// Adds the groups of an inventory as a source named `ansible`. What is not understood is an error: a variable that makes
/// another host of a name (`ansible_host`) is named, since linerate would reach the wrong one.
pub fn inventory(groups: &mut Groups, file: &str, text: &str) -> Result<(), NodesError> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut section = Section::Hosts("ungrouped".to_owned());
    for (number, line) in text.lines().enumerate() {
        let refused = |why: String| NodesError::Line {
            file: file.to_owned(),
            line: number + 1,
            why,
        };
        let line = line.split(['#', ';']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(inside) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = Section::of(inside).map_err(refused)?;
            continue;
        }
        let (group, member) = match &section {
            Section::Variables => continue,
            Section::Hosts(group) => (group, host(line).map_err(refused)?),
            Section::Children(group) => (group, format!("@ansible:{line}")),
        };
        found.entry(group.clone()).or_default().push(member);
    }
    let sets = found
        .into_iter()
        .map(|(group, members)| (group, members.join(",")));
    groups.add("ansible", sets);
    Ok(())
}

enum Section {
    Hosts(String),
    Children(String),
    Variables,
}

impl Section {
    fn of(inside: &str) -> Result<Self, String> {
        match inside.split_once(':') {
            None => Ok(Self::Hosts(inside.to_owned())),
            Some((group, "children")) => Ok(Self::Children(group.to_owned())),
            Some((_, "vars")) => Ok(Self::Variables),
            Some((_, other)) => Err(format!(
                "[…:{other}] is not known; sections are [GROUP], [GROUP:children] and [GROUP:vars]"
            )),
        }
    }
}

/// The host of a line, its variables left out.
fn host(line: &str) -> Result<String, String> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let mut found = name.to_owned();
    for word in words {
        match word.split_once('=') {
            Some(("ansible_host", address)) => {
                address.trim_matches(['"', '\'']).clone_into(&mut found);
            }
            Some(_) => {}
            None => return Err(format!("'{word}' is no variable; write NAME=VALUE")),
        }
    }
    ranges(&found)
}

/// `node[01:50:2]` as `node[01-50/2]`.
fn ranges(name: &str) -> Result<String, String> {
    let mut written = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, after) = after
            .split_once(']')
            .ok_or_else(|| format!("'{name}': a bracket is missing"))?;
        written.push_str(before);
        let bounds: Vec<&str> = inside.split(':').collect();
        let digits =
            |bound: &&str| !bound.is_empty() && bound.bytes().all(|byte| byte.is_ascii_digit());
        let range = match bounds.as_slice() {
            [from, to] if bounds.iter().all(digits) => format!("[{from}-{to}]"),
            [from, to, step] if bounds.iter().all(digits) => format!("[{from}-{to}/{step}]"),
            _ => {
                return Err(format!(
                    "'[{inside}]': only ranges of numbers such as [01:50] are known"
                ));
            }
        };
        written.push_str(&range);
        rest = after;
    }
    written.push_str(rest);
    Ok(written)
}
