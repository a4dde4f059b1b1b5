//! Disks, replication and clusters.

mod blocks;
mod cluster;
mod drbd;
mod volumes;

use linerate_model::transcript::Part;
use serde_json::Value;

use crate::Input;

/// What the last heading announced.
#[derive(Debug, Default, PartialEq, Eq)]
enum Below {
    #[default]
    Nothing,
    Iostat,
    /// Words of `sinfo`'s heading.
    Nodes(Vec<String>),
    Groups(Vec<String>),
    Logical(Vec<String>),
}

/// Readers that go by headings.
#[derive(Default)]
pub(crate) struct Storage {
    below: Below,
    drbd: drbd::Lines,
}

impl Storage {
    /// Something else begins, or nothing follows.
    pub(crate) fn end(&mut self, parts: &mut [Part]) {
        self.below = Below::Nothing;
        self.drbd.end(parts);
    }

    pub(crate) fn take(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        let words: Vec<&str> = input.text.split_whitespace().collect();
        self.drbd.take(input, &words, parts)
            || cluster::gluster(input, parts).is_some()
            || blocks::diskstats(input.number, &words, parts).is_some()
            || self.heading(&words, parts)
            || self.row(input.number, &words, parts).is_some()
            || match &self.below {
                Below::Nothing => cluster::date(&words) || blocks::banner(&words),
                Below::Iostat => blocks::banner(&words),
                Below::Nodes(_) => cluster::date(&words),
                Below::Groups(_) | Below::Logical(_) => false,
            }
    }

    /// A row below the last heading; `None` where it is none.
    fn row(&self, line: usize, words: &[&str], parts: &mut Vec<Part>) -> Option<()> {
        match &self.below {
            Below::Nothing => None,
            Below::Iostat => blocks::device(line, words, parts),
            Below::Nodes(names) => cluster::nodes(line, names, words, parts),
            Below::Groups(names) => volumes::group(names, words, parts),
            Below::Logical(names) => volumes::logical(line, names, words, parts),
        }
    }

    fn heading(&mut self, words: &[&str], parts: &mut Vec<Part>) -> bool {
        let owned = || words.iter().map(|word| (*word).to_owned()).collect();
        let has = |word: &str| words.contains(&word);
        self.below = match words.first() {
            Some(&("Device:" | "Device")) if has("%util") => {
                blocks::heading(words, parts);
                Below::Iostat
            }
            Some(_) if has("NODELIST") && (has("STATE") || has("REASON")) => {
                parts.push(Part::Nodes(Vec::new()));
                Below::Nodes(owned())
            }
            Some(&"VG") if has("VSize") => Below::Groups(owned()),
            Some(&"LV") if has("Attr") => Below::Logical(owned()),
            _ => return false,
        };
        true
    }
}

/// A JSON document of a storage tool.
pub(crate) fn take_json(value: &Value, line: usize, parts: &mut Vec<Part>) -> bool {
    drbd::take_json(value, line, parts)
}
