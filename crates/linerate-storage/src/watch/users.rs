//! Which processes read and wrote while devices were watched.

use std::collections::{BTreeMap, BTreeSet};

use linerate_kernel::process_io::{self, ProcessIo};
use linerate_model::disk_watch::DiskUser;
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;

/// Processes are looked at no more often: there are more of them than disks.
const USERS_EVERY: Nanos = Nanos::from_millis(5000);
/// Processes that are kept in the record.
const MOST_USERS: usize = 20;
/// Processes that are remembered, but for those that run.
const MOST_SEEN: usize = 1 << 14;

/// What processes did.
#[derive(Default)]
pub(super) struct Users {
    pub(super) looked: Nanos,
    /// Of each process, its counters when it was seen first and last.
    seen: BTreeMap<(u32, u64), Seen>,
    pub(super) unreadable: u64,
}

struct Seen {
    name: PlainText,
    first: ProcessIo,
    last: ProcessIo,
    ended: bool,
}

impl Users {
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        now.since(self.looked) >= USERS_EVERY
    }

    /// Reads the counters of all processes; what each did since they were read before, most first.
    pub(super) fn look(&mut self, now: Nanos) -> Vec<DiskUser> {
        let begins = self.looked == Nanos::ZERO;
        self.looked = now;
        let (all, unreadable) = process_io::all();
        self.unreadable = unreadable;
        let mut did = Vec::new();
        let there: BTreeSet<(u32, u64)> = all.iter().map(|io| (io.pid, io.began)).collect();
        self.pass_on(&all, &there);
        for io in all {
            let key = (io.pid, io.began);
            let seen = self.seen.entry(key).or_insert_with(|| {
                let none = ProcessIo {
                    read_bytes: 0,
                    written_bytes: 0,
                    cancelled_bytes: 0,
                    ..io.clone()
                };
                // A process that began since then did all of it meanwhile.
                let first = if begins { io.clone() } else { none };
                Seen {
                    name: process_io::name(io.pid).into(),
                    last: first.clone(),
                    first,
                    ended: false,
                }
            });
            if seen.last != io {
                // A shell that began a program has become that program since.
                let name = process_io::name(io.pid);
                if !name.is_empty() {
                    seen.name = name.into();
                }
            }
            did.extend(between(&seen.name, &seen.last, &io));
            seen.last = io;
        }
        // Of those that ended, what did something is remembered, as far as it was most.
        self.seen
            .retain(|key, seen| there.contains(key) || seen.first != seen.last);
        if self.seen.len() > MOST_SEEN {
            let most: BTreeSet<u32> = self.most().iter().map(|user| user.pid).collect();
            self.seen
                .retain(|key, _| there.contains(key) || most.contains(&key.0));
        }
        sort(&mut did);
        did
    }

    /// What a child did until it was seen last is not done again by the parent that waited for it.
    fn pass_on(&mut self, all: &[ProcessIo], there: &BTreeSet<(u32, u64)>) {
        let ended = self.seen.iter_mut();
        let ended = ended.filter(|(key, seen)| !there.contains(key) && !seen.ended);
        let ended: Vec<ProcessIo> = ended
            .map(|(_, seen)| {
                seen.ended = true;
                seen.last.clone()
            })
            .collect();
        for child in ended {
            let parent = all.iter().find(|io| io.pid == child.parent);
            let Some(now) = parent.filter(|io| io.began <= child.began) else {
                continue;
            };
            let Some(seen) = self.seen.get_mut(&(now.pid, now.began)) else {
                continue;
            };
            // No more than it grew: not every parent waits.
            let mut take = |value: fn(&mut ProcessIo) -> &mut u64| {
                let (mut now, mut child) = (now.clone(), child.clone());
                let grown = value(&mut now).saturating_sub(*value(&mut seen.last));
                let taken = grown.min(*value(&mut child));
                *value(&mut seen.first) += taken;
                *value(&mut seen.last) += taken;
            };
            take(|io| &mut io.read_bytes);
            take(|io| &mut io.written_bytes);
            take(|io| &mut io.cancelled_bytes);
        }
    }

    pub(super) fn most(&self) -> Vec<DiskUser> {
        let all = self.seen.values();
        let mut all: Vec<DiskUser> = all
            .filter_map(|seen| between(&seen.name, &seen.first, &seen.last))
            .collect();
        sort(&mut all);
        all
    }
}

fn between(name: &PlainText, before: &ProcessIo, now: &ProcessIo) -> Option<DiskUser> {
    let user = DiskUser {
        pid: now.pid,
        name: name.clone(),
        read_bytes: now.read_bytes.saturating_sub(before.read_bytes),
        written_bytes: now.written_bytes.saturating_sub(before.written_bytes),
        cancelled_bytes: now.cancelled_bytes.saturating_sub(before.cancelled_bytes),
    };
    (user.read_bytes > 0 || user.written_bytes > 0).then_some(user)
}

/// Most first, and no more than are kept.
fn sort(users: &mut Vec<DiskUser>) {
    users.sort_by_key(|user| std::cmp::Reverse(user.read_bytes.saturating_add(user.written_bytes)));
    users.truncate(MOST_USERS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_did_is_not_done_again_by_its_parent() {
        let io = |pid: u32, written_bytes: u64| ProcessIo {
            pid,
            began: u64::from(pid),
            parent: 1,
            read_bytes: 0,
            written_bytes,
            cancelled_bytes: 0,
        };
        let seen = |io: &ProcessIo| Seen {
            name: "sh".into(),
            first: io.clone(),
            last: io.clone(),
            ended: false,
        };
        let mut users = Users::default();
        users.seen.insert((1, 1), seen(&io(1, 100)));
        users.seen.insert((2, 2), seen(&io(2, 5000)));
        // The child ended after 10 more bytes, and its parent, which wrote 7 itself, waited for it.
        let all = [io(1, 100 + 5010 + 7)];
        users.pass_on(&all, &BTreeSet::from([(1, 1)]));
        let parent = &users.seen[&(1, 1)];
        let did = between(&parent.name, &parent.first, &all[0]).unwrap();
        assert_eq!(did.written_bytes, 17);
        // It is passed on once.
        users.pass_on(&all, &BTreeSet::from([(1, 1)]));
        assert_eq!(users.seen[&(1, 1)].first.written_bytes, 5100);
    }
}
