//! A plan is replaced while tests run.

use std::cmp::Reverse;

use linerate_model::watch::UnixMillis;

use super::{Dispatcher, Running};
use crate::watched::Watched;

impl Dispatcher {
    /// The plan was loaded again.
    ///
    /// Pairs, hosts and segments are the same where their names are. Tests that run go on. Those that wait keep their
    /// deadline, and are `dropped` where the plan no longer has their pair. Budgets keep what is left of them.
    pub fn handle_plan(&mut self, now: UnixMillis, watched: Watched) {
        self.advance(now);
        let new = Self::empty(watched, self.seed, self.now);
        let mut old = std::mem::replace(self, new);
        self.epoch = old.epoch;
        self.grants = old.grants;
        self.slots = old.slots;
        self.before = old.before;
        self.settled = old.settled;
        self.actions = std::mem::take(&mut old.actions);
        self.keep_hosts(&mut old);
        self.keep_resources(&mut old);
        self.keep_pairs(&old);
        self.keep_running(&mut old);
        self.keep_tests(&mut old);
        self.reconsider();
        self.dispatch();
    }

    fn keep_hosts(&mut self, old: &mut Self) {
        for (place, host) in self.watched.hosts.iter().enumerate() {
            let same = |known: &crate::watched::WatchedHost| known.name == host.name;
            let Some(before) = old.watched.hosts.iter().position(same) else {
                continue;
            };
            let mut state = std::mem::take(&mut old.hosts[before]);
            state.parked.clear();
            // One that is now only tested against needs no agent; one that needs an agent now has to connect.
            let commanded = old.watched.hosts[before].reach.commands();
            state.connected = !host.reach.commands() || (commanded && state.connected);
            self.hosts[place] = state;
        }
    }

    fn keep_resources(&mut self, old: &mut Self) {
        for resource in &mut self.resources {
            let mut before = old.resources.iter_mut();
            if let Some(before) = before.find(|before| before.name == resource.name) {
                resource.remember(before);
            }
        }
        for bucket in &mut self.buckets {
            let mut before = old.buckets.iter().filter(|before| before.is_limited());
            if let Some(before) = before.find(|before| before.name == bucket.name) {
                bucket.go_on(Some(&before.level()), before.at());
            }
        }
    }

    fn keep_pairs(&mut self, old: &Self) {
        for pair in 0..self.pairs.len() {
            let before = old.plan.places.get(&self.plan.pairs[pair].key);
            if let Some(before) = before {
                self.pairs[pair].clone_from(&old.pairs[*before]);
                self.pairs[pair].running = None;
            }
            let after = self.pairs[pair].last_due.plus_millis(1);
            let next = self.moments(pair).first_from(self.now.max(after));
            self.schedule(pair, next);
        }
    }

    fn keep_running(&mut self, old: &mut Self) {
        let expiries = std::mem::take(&mut old.expiries).into_vec();
        for (key, running) in std::mem::take(&mut old.running) {
            let pair = self.new_pair(old, running.pair);
            let known = expiries.iter().find(|Reverse((_, of))| *of == key);
            let expiry = known.map_or(running.lease.expiry, |Reverse((at, _))| *at);
            self.adopt(Running { pair, ..running }, expiry);
        }
    }

    fn keep_tests(&mut self, old: &mut Self) {
        for mut test in std::mem::take(&mut old.tests).into_values() {
            if let Some(pair) = self.new_pair(old, Some(test.pair)) {
                test.pair = pair;
                self.add(test);
            } else {
                let row = old.row_of_dropped(&test);
                self.actions.push_back(row);
            }
        }
    }

    fn new_pair(&self, old: &Self, pair: Option<usize>) -> Option<usize> {
        let key = &old.plan.pairs.get(pair?)?.key;
        let pair = *self.plan.places.get(key)?;
        self.plan.pairs[pair].client.map(|_| pair)
    }
}
