//! `/proc/mdstat`, and the files of sysfs that people print behind it.

use linerate_model::storage::{Array, ArrayMember, ArraySync, Arrays};
use linerate_model::transcript::Part;

use crate::number::printed;

/// Lines of `/proc/mdstat`; those below an array belong to it until something else begins.
#[derive(Default)]
pub(super) struct Lines {
    open: bool,
}

impl Lines {
    pub(super) fn take(&mut self, line: usize, words: &[&str], parts: &mut Vec<Part>) -> bool {
        match words {
            ["Personalities", ":", ..] => {
                parts.push(Part::Arrays(Arrays::default()));
                self.open = true;
                return true;
            }
            ["unused", "devices:", ..] if self.open => return true,
            [
                name,
                ":",
                state @ ("active" | "inactive" | "broken"),
                rest @ ..,
            ] if name.starts_with("md") => {
                if !self.open || !matches!(parts.last(), Some(Part::Arrays(_))) {
                    parts.push(Part::Arrays(Arrays::default()));
                    self.open = true;
                }
                if let Some(Part::Arrays(held)) = parts.last_mut() {
                    held.arrays.push(array(line, name, state, rest));
                }
                return true;
            }
            _ => {}
        }
        let Some(Part::Arrays(held)) = parts.last_mut().filter(|_| self.open) else {
            return false;
        };
        let array = held.arrays.last_mut();
        array.is_some_and(|array| below(array, words) || sysfs(array, words))
    }
}

/// `md0 : active (auto-read-only) raid10 vdd[3] vdc[2](F) …`.
fn array(line: usize, name: &str, state: &str, rest: &[&str]) -> Array {
    let bracketed = rest.iter().take_while(|word| word.starts_with('(')).count();
    let (marks, rest) = rest.split_at(bracketed);
    let (level, members) = match rest.split_first() {
        Some((level, members)) if !level.contains('[') => (Some((*level).into()), members),
        _ => (None, rest),
    };
    Array {
        line,
        name: name.into(),
        state: [&[state], marks].concat().join(" ").into(),
        level,
        members: members.iter().filter_map(|word| member(word)).collect(),
        ..Array::default()
    }
}

/// `sda1[0](F)`.
fn member(word: &str) -> Option<ArrayMember> {
    let (name, rest) = word.split_once('[')?;
    let (_, marks) = rest.split_once(']')?;
    Some(ArrayMember {
        name: name.into(),
        marks: marks.chars().filter(char::is_ascii_uppercase).collect(),
    })
}

/// Lines below an array.
fn below(array: &mut Array, words: &[&str]) -> bool {
    match words {
        [size, "blocks", rest @ ..] => {
            array.size_kib = size.parse().ok();
            geometry(array, rest);
            true
        }
        ["bitmap:", ..] => {
            array.has_bitmap = true;
            true
        }
        // `resync=DELAYED`.
        [word] if word.contains('=') => {
            let (action, waits) = word.split_once('=').unwrap_or((word, ""));
            let waits = ["DELAYED", "PENDING", "REMOTE"]
                .contains(&waits)
                .then(|| waits.into());
            let is_waiting = waits.is_some() && is_action(action);
            if is_waiting {
                array.sync = Some(ArraySync {
                    action: action.into(),
                    waits,
                    done_percent: None,
                    done_whole_kib: None,
                    kib_per_second: None,
                });
            }
            is_waiting
        }
        [bar, action, "=", rest @ ..] if bar.starts_with('[') && is_action(action) => {
            array.sync = Some(progress(action, rest));
            true
        }
        [bar, action, rest @ ..]
            if bar.starts_with('[') && action.strip_suffix('=').is_some_and(is_action) =>
        {
            array.sync = Some(progress(action.trim_end_matches('='), rest));
            true
        }
        _ => false,
    }
}

fn is_action(action: &str) -> bool {
    ["resync", "recovery", "reshape", "check", "repair"].contains(&action)
}

/// `super 1.2 64K chunks 2 near-copies [4/4] [UUUU]`.
fn geometry(array: &mut Array, words: &[&str]) {
    for (at, word) in words.iter().enumerate() {
        let bracketed = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'));
        if let Some((all, up)) = bracketed.and_then(|text| text.split_once('/')) {
            array.disks = all.parse().ok().zip(up.parse().ok()).map(Into::into);
        } else if let Some(up) = bracketed {
            array.up = up.into();
        } else if word.ends_with("-copies") {
            let copies = at
                .checked_sub(1)
                .and_then(|at| words[at].parse::<u64>().ok());
            // Near and far copies multiply.
            array.copies = copies.map(|copies| array.copies.unwrap_or(1).saturating_mul(copies));
        }
    }
}

/// `74.0% (144704/194560) finish=0.0min speed=72352K/sec`.
fn progress(action: &str, words: &[&str]) -> ArraySync {
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key));
    let amounts = words.iter().find_map(|word| {
        let (done, whole) = word.strip_prefix('(')?.strip_suffix(')')?.split_once('/')?;
        Some([done.parse().ok()?, whole.parse().ok()?])
    });
    ArraySync {
        action: action.into(),
        waits: None,
        done_percent: words
            .iter()
            .find_map(|word| printed(word.strip_suffix('%')?)),
        done_whole_kib: amounts,
        kib_per_second: value("speed=")
            .and_then(|text| text.strip_suffix("K/sec"))
            .and_then(|text| text.parse().ok()),
    }
}

/// `sync_speed_max = 200000 (system)`: files of `/sys/block/md0/md`.
fn sysfs(array: &mut Array, words: &[&str]) -> bool {
    let [key, "=", values @ ..] = words else {
        return false;
    };
    let number = || values.first().and_then(|text| text.parse().ok());
    match *key {
        "mismatch_cnt" => array.mismatches = number(),
        "sync_speed_min" => array.speed_limits_kib_s[0] = number(),
        "sync_speed_max" => array.speed_limits_kib_s[1] = number(),
        "sync_action" | "sync_speed" | "sync_completed" | "level" | "layout" | "chunk_size"
        | "raid_disks" | "degraded" | "array_state" | "consistency_policy" | "bitmap/location"
        | "stripe_cache_size" | "metadata_version" => {}
        _ => return false,
    }
    true
}
