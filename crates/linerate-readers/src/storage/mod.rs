//! Disks, replication and clusters.

mod arrays;
mod blocks;
mod cluster;
mod copies;
mod drbd;
mod gluster;
mod probes;
mod session;
mod volumes;

use linerate_model::storage::{FirstBlock, SessionKind};
use linerate_model::transcript::{Line, Part};
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
    Physical(Vec<String>),
}

/// Readers that go by headings.
#[derive(Default)]
pub(crate) struct Storage {
    below: Below,
    drbd: drbd::Lines,
    arrays: arrays::Lines,
    gluster: gluster::Lines,
    session: session::Lines,
    probes: probes::Lines,
    /// What the next block of iostat covers.
    first: FirstBlock,
}

impl Storage {
    /// What no reader knows, and what stands around outputs.
    pub(crate) fn around(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        let words: Vec<&str> = input.text.split_whitespace().collect();
        self.session.take(input, &words, parts)
    }

    /// Lines that begin as iperf's do: warnings of LVM, and iostat's banner.
    pub(crate) fn before_iperf(&mut self, input: &Input<'_>) -> bool {
        if input.text.starts_with("Linux ") && input.text.ends_with(" CPU)") {
            return self.banner(&input.text.split_whitespace().collect::<Vec<_>>());
        }
        let known = session::Lines::is_warning(input.text);
        if known {
            self.session.note(input, SessionKind::Message);
        }
        known
    }

    /// Something else begins, or nothing follows. What is given back is known only beside something else.
    pub(crate) fn finish(&mut self, parts: &mut Vec<Part>) -> Vec<Line> {
        self.drbd.end(parts);
        let session = self.session.finish(parts);
        *self = Self::default();
        let back = session.into_iter();
        back.map(|line| Line {
            number: line.number,
            text: line.text,
        })
        .collect()
    }

    /// A command line: with `-y` iostat leaves out the time since boot.
    pub(crate) fn typed(&mut self, command: &str) {
        let mut words = command
            .split_whitespace()
            .skip_while(|word| !word.ends_with("iostat"));
        let without = |word: &str| word.starts_with('-') && word.contains('y');
        if words.next().is_some() && words.any(without) {
            self.first = FirstBlock::Interval;
        }
    }

    pub(crate) fn take(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        let words: Vec<&str> = input.text.split_whitespace().collect();
        self.drbd.take(input, &words, parts)
            || self.arrays.take(input.number, &words, parts)
            || self.gluster.take(input, &words, parts)
            || self.probes.take(input.number, &words, parts)
            || copies::take(input, &words, parts)
            || blocks::diskstats(input.number, &words, parts).is_some()
            || self.heading(&words, parts)
            || self.row(input.number, &words, parts).is_some()
            || match &self.below {
                Below::Nothing => cluster::date(&words) || self.banner(&words),
                Below::Iostat => self.banner(&words),
                Below::Nodes(_) => cluster::date(&words),
                Below::Groups(_) | Below::Logical(_) | Below::Physical(_) => false,
            }
    }

    /// iostat's banner: the block behind it covers the time since boot, unless `-y` was typed.
    fn banner(&mut self, words: &[&str]) -> bool {
        let known = blocks::banner(words);
        if known && words.first() == Some(&"Linux") && self.first == FirstBlock::Unknown {
            self.first = FirstBlock::SinceBoot;
        }
        known
    }

    /// A row below the last heading; `None` where it is none.
    fn row(&self, line: usize, words: &[&str], parts: &mut Vec<Part>) -> Option<()> {
        match &self.below {
            Below::Nothing => None,
            Below::Iostat => blocks::device(line, words, parts),
            Below::Nodes(names) => cluster::nodes(line, names, words, parts),
            Below::Groups(names) => volumes::group(names, words, parts),
            Below::Logical(names) => volumes::logical(line, names, words, parts),
            Below::Physical(names) => volumes::physical(names, words, parts),
        }
    }

    /// A heading of iostat.
    fn blocks(&mut self, words: &[&str], parts: &mut Vec<Part>) -> Below {
        blocks::heading(words, std::mem::take(&mut self.first), parts);
        Below::Iostat
    }

    /// A JSON document of a storage tool.
    pub(crate) fn document(&mut self, value: &Value, line: usize, parts: &mut Vec<Part>) -> bool {
        let first = match self.first {
            FirstBlock::Unknown => FirstBlock::SinceBoot,
            known => known,
        };
        take_json(value, line, first, parts)
    }

    fn heading(&mut self, words: &[&str], parts: &mut Vec<Part>) -> bool {
        let owned = || words.iter().map(|word| (*word).to_owned()).collect();
        let has = |word: &str| words.contains(&word);
        self.below = match words.first() {
            Some(&("Device:" | "Device")) if has("%util") => self.blocks(words, parts),
            Some(_) if has("%util") && words.last() == Some(&"Device") => self.blocks(words, parts),
            Some(_) if has("NODELIST") && (has("STATE") || has("REASON")) => {
                parts.push(Part::Nodes(Vec::new()));
                Below::Nodes(owned())
            }
            Some(&"VG") if has("VSize") => Below::Groups(owned()),
            Some(&"LV") if has("Attr") => Below::Logical(owned()),
            Some(&"PV") if has("PSize") => Below::Physical(owned()),
            _ => return false,
        };
        true
    }
}

/// A JSON document of a storage tool.
fn take_json(value: &Value, line: usize, first: FirstBlock, parts: &mut Vec<Part>) -> bool {
    drbd::take_json(value, line, parts)
        || volumes::take_json(value, line, parts)
        || probes::take_json(value, line, parts)
        // lsblk, and Slurm's answers: names and states that the text beside them has as well.
        || value["blockdevices"].is_array()
        || value["meta"]["Slurm"].is_object()
        || blocks::take_json(value, line, first, parts)
}
