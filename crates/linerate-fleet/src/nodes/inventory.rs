//! Ansible's inventories in INI form: their groups. Variables are left out, patterns such as `[01:50]` become ranges.

use std::collections::BTreeMap;

use super::{Groups, NodesError};

/// The source of an inventory's groups.
pub(super) const ANSIBLE: &str = "ansible";
/// Ranges of letters are spelled out, into no more names than this for one line.
const MOST_SPELLED_OUT: usize = 10_000;

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
            Section::Children(group) => (group, format!("@{ANSIBLE}:{line}")),
        };
        found.entry(group.clone()).or_default().push(member);
    }
    let sets = found
        .into_iter()
        .map(|(group, members)| (group, members.join(",")));
    groups.add(ANSIBLE, sets);
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
    renamed(&found)
}

/// `node[01:50:2]` as `node[01-50/2]`, `rack[a:c]` as `racka,rackb,rackc`.
pub(super) fn renamed(name: &str) -> Result<String, String> {
    let mut names = vec![String::new()];
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, after) = after
            .split_once(']')
            .ok_or_else(|| format!("'{name}': a bracket is missing"))?;
        let parts = parts(inside)?;
        if names.len() * parts.len() > MOST_SPELLED_OUT {
            return Err(format!(
                "'{name}': more than {MOST_SPELLED_OUT} names by letters"
            ));
        }
        let with_each = |written: String| {
            let each = move |part: &String| format!("{written}{before}{part}");
            parts.iter().map(each).collect::<Vec<_>>()
        };
        names = names.into_iter().flat_map(with_each).collect();
        rest = after;
    }
    for written in &mut names {
        written.push_str(rest);
    }
    Ok(names.join(","))
}

/// What stands for a range of an inventory: one range of numbers, or each letter.
fn parts(inside: &str) -> Result<Vec<String>, String> {
    let bounds: Vec<&str> = inside.split(':').collect();
    let digits =
        |bound: &&str| !bound.is_empty() && bound.bytes().all(|byte| byte.is_ascii_digit());
    match bounds.as_slice() {
        [from, to] if bounds.iter().all(digits) => Ok(vec![format!("[{from}-{to}]")]),
        [from, to, step] if bounds.iter().all(digits) => Ok(vec![format!("[{from}-{to}/{step}]")]),
        [from, to] => match (from.as_bytes(), to.as_bytes()) {
            ([from], [to])
                if from.is_ascii_alphabetic() && to.is_ascii_alphabetic() && from <= to =>
            {
                Ok((*from..=*to)
                    .map(|letter| char::from(letter).to_string())
                    .collect())
            }
            _ => Err(not_a_range(inside)),
        },
        _ => Err(not_a_range(inside)),
    }
}

fn not_a_range(inside: &str) -> String {
    format!("'[{inside}]' is no range; write [01:50], [01:50:2] or [a:f]")
}
