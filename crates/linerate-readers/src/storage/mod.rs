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
    pub(crate) fn end(&mut self) {
        self.below = Below::Nothing;
        self.drbd = drbd::Lines::default();
    }

    pub(crate) fn take(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        if self.drbd.take(input, parts)
            || cluster::gluster(input, parts)
            || blocks::diskstats(input, parts)
        {
            return true;
        }
        let words: Vec<&str> = input.text.split_whitespace().collect();
        if self.heading(&words, parts) {
            return true;
        }
        match &self.below {
            Below::Nothing => cluster::date(&words) || blocks::banner(&words),
            Below::Iostat => blocks::device(input.number, &words, parts) || blocks::banner(&words),
            Below::Nodes(names) => {
                cluster::nodes(input.number, names, &words, parts) || cluster::date(&words)
            }
            Below::Groups(names) => volumes::group(names, &words, parts),
            Below::Logical(names) => volumes::logical(input.number, names, &words, parts),
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
