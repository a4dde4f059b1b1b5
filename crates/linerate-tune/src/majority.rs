//! Many hosts against what most of them have.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::host::{Deviation, Difference, HostFacts, Majority, Weight};

use crate::difference::compare;

/// Compares hosts one after the other, and keeps only what differs.
#[derive(Debug)]
pub struct Gathered {
    first: String,
    reference: HostFacts,
    /// Each other host, and how it differs from the first.
    others: Vec<(String, Vec<Difference>)>,
}

/// A value of a path; absent where a host has none.
type Value = Option<String>;

impl Gathered {
    /// Begins with a host, with which the others are compared.
    pub fn new(host: String, facts: HostFacts) -> Self {
        Self {
            first: host,
            reference: facts,
            others: Vec::new(),
        }
    }

    /// Adds a host. What is noise ([`Weight::Noise`]) is not kept.
    pub fn add(&mut self, host: String, facts: &HostFacts) {
        let mut differences = compare(&self.reference, facts).differences;
        differences.retain(|one| one.weight != Weight::Noise);
        self.others.push((host, differences));
    }

    /// What most hosts have, path by path, and who differs from it. Where two values are equally frequent, the first
    /// host's counts, then the smaller one.
    pub fn judge(&self) -> Majority {
        let usual = self.usual();
        let mut scattered = BTreeSet::new();
        let mut ways: Vec<Deviation> = Vec::new();
        for (path, one) in &usual {
            if 2 * one.hosts < self.others.len() + 1 {
                scattered.insert(path.clone());
            }
        }
        let none = Vec::new();
        let all = std::iter::once((&self.first, &none)).chain(
            self.others
                .iter()
                .map(|(host, differences)| (host, differences)),
        );
        let mut hosts = Vec::new();
        for (host, differences) in all {
            hosts.push(host.clone());
            let own: BTreeMap<&str, &Value> = differences
                .iter()
                .map(|one| (one.path.as_str(), &one.b))
                .collect();
            let deviating: Vec<Difference> = usual
                .iter()
                .filter(|(path, _)| !scattered.contains(*path))
                .filter_map(|(path, usual)| {
                    let value = own.get(path.as_str()).copied().unwrap_or(&usual.first);
                    (*value != usual.value).then(|| Difference {
                        path: path.clone(),
                        a: usual.value.clone(),
                        b: value.clone(),
                        weight: usual.weight.clone(),
                    })
                })
                .collect();
            if deviating.is_empty() {
                continue;
            }
            match ways.iter_mut().find(|way| way.differences == deviating) {
                Some(way) => way.hosts.push(host.clone()),
                None => ways.push(Deviation {
                    hosts: vec![host.clone()],
                    differences: deviating,
                }),
            }
        }
        ways.sort_by_key(|way| usize::MAX - way.hosts.len());
        Majority {
            hosts,
            deviations: ways,
            scattered: scattered.into_iter().collect(),
        }
    }

    /// Each path in which any host differs from the first, with the most frequent value.
    fn usual(&self) -> BTreeMap<String, Usual> {
        let mut paths: BTreeMap<&str, (&Difference, BTreeMap<&Value, usize>)> = BTreeMap::new();
        for one in self.others.iter().flat_map(|(_, differences)| differences) {
            let (_, values) = paths
                .entry(&one.path)
                .or_insert_with(|| (one, BTreeMap::new()));
            *values.entry(&one.b).or_default() += 1;
        }
        let usual = paths.into_iter().map(|(path, (one, values))| {
            let differing: usize = values.values().sum();
            let mut most = (&one.a, self.others.len() + 1 - differing);
            for (value, hosts) in values {
                if hosts > most.1 {
                    most = (value, hosts);
                }
            }
            let usual = Usual {
                first: one.a.clone(),
                value: most.0.clone(),
                hosts: most.1,
                weight: one.weight.clone(),
            };
            (path.to_owned(), usual)
        });
        usual.collect()
    }
}

/// What most hosts have at a path.
struct Usual {
    /// What the first host has.
    first: Value,
    value: Value,
    /// How many have it.
    hosts: usize,
    weight: Weight,
}

#[cfg(test)]
mod tests {
    use linerate_model::host::Fact;

    use super::*;

    fn facts(kernel: &str, rmem: &str, memory: u64) -> HostFacts {
        let mut facts = HostFacts::default();
        facts.system.kernel = Fact::Known(kernel.into());
        facts.system.memory_bytes = Fact::Known(memory);
        let known = Fact::Known(rmem.to_owned());
        facts.sysctls.insert("net.ipv4.tcp_rmem".to_owned(), known);
        facts
    }

    fn gathered(hosts: &[(&str, HostFacts)]) -> Majority {
        let (first, facts) = &hosts[0];
        let mut gathered = Gathered::new((*first).to_owned(), facts.clone());
        for (host, facts) in &hosts[1..] {
            gathered.add((*host).to_owned(), facts);
        }
        gathered.judge()
    }

    #[test]
    fn the_first_host_may_be_the_one_that_differs() {
        let usual = || facts("6.1", "4096 1 6", 1);
        let found = gathered(&[
            ("a", facts("2.6.32", "4096 1 6", 1)),
            ("b", usual()),
            ("c", usual()),
            ("d", facts("2.6.32", "4096 1 6", 1)),
            ("e", usual()),
            ("f", facts("6.1", "4096 1 4", 1)),
        ]);
        assert_eq!(found.hosts.len(), 6);
        let shown: Vec<_> = found
            .deviations
            .iter()
            .map(|way| {
                let one = &way.differences[0];
                assert_eq!(way.differences.len(), 1);
                (
                    way.hosts.join(","),
                    one.path.as_str(),
                    one.a.as_deref(),
                    one.b.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (
                    "a,d".to_owned(),
                    "system.kernel",
                    Some("6.1"),
                    Some("2.6.32")
                ),
                (
                    "f".to_owned(),
                    "sysctls.net.ipv4.tcp_rmem",
                    Some("4096 1 6"),
                    Some("4096 1 4")
                ),
            ]
        );
        assert!(found.scattered.is_empty());
    }

    #[test]
    fn what_each_host_has_for_itself_is_named_once() {
        let of = |memory| facts("6.1", "4096 1 6", memory);
        let found = gathered(&[("a", of(1)), ("b", of(2)), ("c", of(3)), ("d", of(4))]);
        assert!(found.deviations.is_empty(), "{found:?}");
        assert_eq!(found.scattered, ["system.memory_bytes"]);
    }

    #[test]
    fn one_host_is_like_itself() {
        let found = gathered(&[("a", facts("6.1", "4096 1 6", 1))]);
        assert_eq!((found.hosts.len(), found.deviations.len()), (1, 0));
    }
}
