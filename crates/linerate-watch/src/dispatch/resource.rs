//! What tests hold while they run: hosts, directions of interfaces, segments.

use std::collections::VecDeque;
use std::sync::Arc;

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{Holding, UnixMillis};

/// How many past holdings of a resource are kept, to say who held it.
const HISTORY: usize = 4_096;

/// At most so many holdings are named for a test.
const NAMED: usize = 8;

/// Something of which tests hold a part.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    pub(super) name: PlainText,
    /// How much of it there is: 1 where one test at a time has it, else slots or bit/s.
    pub(super) capacity: u64,
    used: u64,
    holders: Vec<(u64, Held)>,
    history: VecDeque<Held>,
}

#[derive(Debug, Clone)]
struct Held {
    by: Arc<str>,
    amount: u64,
    from: UnixMillis,
    /// Until when; while it is held, 0.
    until: UnixMillis,
}

impl Resource {
    pub(super) fn new(name: PlainText, capacity: u64) -> Self {
        Self {
            name,
            capacity: capacity.max(1),
            used: 0,
            holders: Vec::new(),
            history: VecDeque::new(),
        }
    }

    /// Whether so much of it is free; a test that needs more than there is takes all of it.
    pub(super) fn is_free(&self, amount: u64) -> bool {
        let amount = amount.min(self.capacity);
        self.used.saturating_add(amount) <= self.capacity
    }

    pub(super) fn hold(&mut self, grant: u64, by: &Arc<str>, amount: u64, from: UnixMillis) {
        let amount = amount.min(self.capacity);
        self.used = self.used.saturating_add(amount);
        let held = Held {
            by: Arc::clone(by),
            amount,
            from,
            until: UnixMillis(0),
        };
        self.holders.push((grant, held));
    }

    /// A test no longer holds it. What ended so many ms before now and earlier is forgotten.
    pub(super) fn free(&mut self, grant: u64, now: UnixMillis, remembered: u64) {
        let Some(place) = self.holders.iter().position(|(by, _)| *by == grant) else {
            return;
        };
        let (_, mut held) = self.holders.swap_remove(place);
        self.used = self.used.saturating_sub(held.amount);
        held.until = now;
        let is_old = |held: &Held| held.until.plus_millis(remembered) < now;
        while self.history.len() == HISTORY || self.history.front().is_some_and(is_old) {
            self.history.pop_front();
        }
        self.history.push_back(held);
    }

    /// Takes over what is known of the past of the same resource.
    pub(super) fn remember(&mut self, old: &mut Self) {
        self.history = std::mem::take(&mut old.history);
    }

    /// Who held it in a span, a test at a time.
    fn held(&self, from: UnixMillis, until: UnixMillis) -> impl Iterator<Item = (Arc<str>, u64)> {
        let now = self.holders.iter().map(move |(_, held)| (held, until));
        let past = self.history.iter().rev().map(|held| (held, held.until));
        // The history is in the order of the ends: what ended before the span, and all before it, is of no matter.
        let past = past.take_while(move |(_, end)| *end > from);
        now.chain(past).filter_map(move |(held, end)| {
            let millis = end.min(until).since(held.from.max(from));
            (millis > 0).then(|| (Arc::clone(&held.by), millis))
        })
    }
}

/// Who held what of these resources in a span, the longest first.
pub(super) fn holdings<'a>(
    resources: impl Iterator<Item = &'a Resource>,
    from: UnixMillis,
    until: UnixMillis,
) -> Vec<Holding> {
    let mut found: Vec<Holding> = Vec::new();
    for resource in resources {
        let begin = found.len();
        for (by, millis) in resource.held(from, until) {
            let known = found[begin..].iter_mut().find(|held| *held.by == *by);
            if let Some(known) = known {
                known.millis += millis;
            } else {
                found.push(Holding {
                    resource: resource.name.clone(),
                    by: PlainText::from(&*by),
                    millis,
                });
            }
        }
    }
    found.sort_by(|a, b| b.millis.cmp(&a.millis).then_with(|| a.by.cmp(&b.by)));
    found.truncate(NAMED);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_names_who_held_it() {
        let mut link = Resource::new("segment uplink".into(), 10);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        link.hold(1, &a, 4, UnixMillis(0));
        assert!(link.is_free(6) && !link.is_free(7) && !link.is_free(100));
        link.hold(2, &b, 6, UnixMillis(10));
        link.free(1, UnixMillis(30), 1_000);
        link.free(9, UnixMillis(30), 1_000);
        link.hold(3, &a, 1, UnixMillis(40));
        let held = holdings([&link].into_iter(), UnixMillis(20), UnixMillis(50));
        let held: Vec<_> = held.iter().map(|h| (h.by.as_str(), h.millis)).collect();
        assert_eq!(held, [("b", 30), ("a", 20)]);
        let mut alone = Resource::new("x".into(), 10);
        assert!(alone.is_free(100), "one that needs more takes all");
        alone.hold(1, &a, 100, UnixMillis(0));
        assert!(!alone.is_free(1));
    }

    #[test]
    fn a_resource_forgets_who_held_it_before_any_test_that_waits() {
        let mut link = Resource::new("link".into(), 1);
        let by: Arc<str> = "a".into();
        for turn in 0..10_000 {
            link.hold(turn, &by, 1, UnixMillis(turn * 10));
            link.free(turn, UnixMillis(turn * 10 + 5), 100);
        }
        assert!(link.history.len() <= 12, "{}", link.history.len());
        let held = holdings([&link].into_iter(), UnixMillis(99_900), UnixMillis(100_000));
        let millis: Vec<u64> = held.iter().map(|held| held.millis).collect();
        assert_eq!(millis, [50]);
    }
}
