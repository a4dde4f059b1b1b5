//! Which addresses a group of a template tests with each other, as pSConfig 5.2.4 combines them.

use std::collections::{HashMap, HashSet};

use super::classes::Classes;
use super::template::{Address, ExcludesSelf, Group, GroupKind, Selector, Template};
use super::{MOST_COMBINATIONS, TemplateError};

/// An address that takes part in a test: that of an address, of one of its labels, or of what it is for the other end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'t> {
    /// The address's name in the template.
    pub(super) name: &'t str,
    /// The address that the group names.
    pub(super) parent: &'t Address,
    /// What counts in its place.
    pub(super) own: &'t Address,
    pub(super) disabled: bool,
    pub(super) no_agent: bool,
}

/// The ends of a test: two, or one of a list.
pub(super) type Combination<'t> = Vec<Chosen<'t>>;

/// An address that a selector selects, and the label by which.
#[derive(Clone, Copy)]
struct Selected<'t> {
    name: &'t str,
    address: &'t Address,
    label: Option<&'t str>,
}

/// The combinations of a group.
pub(super) struct Combiner<'t, 'c> {
    template: &'t Template,
    group: &'t Group,
    classes: &'c mut Classes<'t>,
    /// How many were looked at; [`MOST_COMBINATIONS`] of all groups together.
    looked_at: &'c mut usize,
    /// Names of addresses that the template does not have.
    unknown: Vec<&'t str>,
}

impl<'t, 'c> Combiner<'t, 'c> {
    pub(super) const fn new(
        template: &'t Template,
        group: &'t Group,
        classes: &'c mut Classes<'t>,
        looked_at: &'c mut usize,
    ) -> Self {
        Self {
            template,
            group,
            classes,
            looked_at,
            unknown: Vec::new(),
        }
    }

    /// All combinations, and the names of addresses that the template does not have.
    pub(super) fn combinations(
        mut self,
    ) -> Result<(Vec<Combination<'t>>, Vec<&'t str>), TemplateError> {
        let group = self.group;
        let mut found = Vec::new();
        if group.kind == GroupKind::List {
            for selector in &group.addresses {
                for selected in self.selected(selector) {
                    self.look()?;
                    let chosen = self.choose(selected, selected.name);
                    found.extend(chosen.map(|chosen| vec![chosen]));
                }
            }
        } else {
            for (first, second) in self.pairs_of_selectors()? {
                self.combine(first, second, &mut found)?;
            }
        }
        self.unknown.dedup();
        Ok((found, self.unknown))
    }

    /// Counts one more that was looked at.
    fn look(&mut self) -> Result<(), TemplateError> {
        *self.looked_at += 1;
        if *self.looked_at > MOST_COMBINATIONS {
            return Err(TemplateError::TooLarge);
        }
        Ok(())
    }

    /// The selectors that are combined, in order, without those that `excludes` names.
    fn pairs_of_selectors(&mut self) -> Result<Vec<(&'t Selector, &'t Selector)>, TemplateError> {
        let group = self.group;
        let all: Vec<&Selector> = match group.kind {
            GroupKind::Disjoint => group.a_addresses.iter().chain(&group.b_addresses).collect(),
            GroupKind::Mesh | GroupKind::List => group.addresses.iter().collect(),
        };
        // Equal selectors have the same number.
        let mut numbers: HashMap<&Selector, usize> = HashMap::new();
        for selector in &all {
            let next = numbers.len();
            numbers.entry(selector).or_insert(next);
        }
        let number = |selector: &Selector| numbers.get(selector).copied();
        let mut excluded = HashSet::new();
        for exclude in &group.excludes {
            let targets = exclude.target_addresses.iter().filter_map(number);
            let local = number(&exclude.local_address);
            excluded.extend(targets.filter_map(|target| Some((local?, target))));
        }
        let side = |side: &[Selector]| side.iter().filter_map(number).collect::<HashSet<_>>();
        let (a, b) = (side(&group.a_addresses), side(&group.b_addresses));
        let mut seen = HashSet::new();
        let mut pairs = Vec::new();
        for first in &all {
            for second in &all {
                self.look()?;
                let (Some(x), Some(y)) = (number(first), number(second)) else {
                    continue;
                };
                if group.kind == GroupKind::Disjoint {
                    let crosses = a.contains(&x) && b.contains(&y)
                        || !group.unidirectional && a.contains(&y) && b.contains(&x);
                    if !crosses || !seen.insert((x, y)) {
                        continue;
                    }
                }
                if !excluded.contains(&(x, y)) {
                    pairs.push((*first, *second));
                }
            }
        }
        Ok(pairs)
    }

    fn combine(
        &mut self,
        first: &'t Selector,
        second: &'t Selector,
        found: &mut Vec<Combination<'t>>,
    ) -> Result<(), TemplateError> {
        let seconds = self.selected(second);
        for a in self.selected(first) {
            for b in &seconds {
                self.look()?;
                let chosen = (self.choose(a, b.name), self.choose(*b, a.name));
                if let (Some(x), Some(y)) = chosen
                    && !self.is_itself(&x, &y)
                {
                    found.push(vec![x, y]);
                }
            }
        }
        Ok(())
    }

    fn selected(&mut self, selector: &'t Selector) -> Vec<Selected<'t>> {
        let addresses = &self.template.addresses;
        if let Some(name) = selector.name.as_deref().filter(|name| !name.is_empty()) {
            let Some(address) = addresses.named(name) else {
                self.unknown.push(name);
                return Vec::new();
            };
            let label = selector.label.as_deref();
            return vec![Selected {
                name,
                address,
                label,
            }];
        }
        let class = selector.class.as_deref().unwrap_or_default();
        let members = self.classes.members(class);
        let members = members.iter().filter_map(|place| addresses.at(*place));
        let without_label = |(name, address)| Selected {
            name,
            address,
            label: None,
        };
        members.map(without_label).collect()
    }

    /// What an address is for an end of this name; `None` where its labels leave it out.
    fn choose(&self, selected: Selected<'t>, other: &str) -> Option<Chosen<'t>> {
        let (name, parent) = (selected.name, selected.address);
        let own_label = selected.label.filter(|label| !label.is_empty());
        let label = own_label.or(self.group.default_address_label.as_deref());
        let label = label.filter(|label| !label.is_empty());
        let chosen = |own: &'t Address, between: Option<&Address>| {
            let parents = [Some(parent), between];
            let any = |has: fn(&Address) -> bool| {
                has(own) || parents.iter().flatten().any(|parent| has(parent))
            };
            let host = parent.host.as_deref();
            let host = host.and_then(|host| self.template.hosts.named(host));
            Chosen {
                name,
                parent,
                own,
                disabled: any(|address| address.disabled) || host.is_some_and(|host| host.disabled),
                no_agent: any(|address| address.no_agent) || host.is_some_and(|host| host.no_agent),
            }
        };
        if let Some(remote) = parent.remote_addresses.get(other) {
            let has_address = remote
                .address
                .as_deref()
                .is_some_and(|text| !text.is_empty());
            match label {
                Some(label) => {
                    if let Some(own) = remote.labels.get(label) {
                        return Some(chosen(own, Some(remote)));
                    }
                    if !has_address {
                        return None;
                    }
                }
                None if has_address => return Some(chosen(remote, None)),
                None => {}
            }
        }
        match label {
            Some(label) => Some(chosen(parent.labels.get(label)?, None)),
            None => Some(chosen(parent, None)),
        }
    }

    /// Whether `excludes-self` excludes them.
    fn is_itself(&self, x: &Chosen<'_>, y: &Chosen<'_>) -> bool {
        let scope = self.group.excludes_self;
        let host =
            |chosen: &Chosen<'_>| chosen.parent.host.as_ref().map(|host| host.to_lowercase());
        if scope == ExcludesSelf::Host && host(x).is_some() && host(x) == host(y) {
            return true;
        }
        let same = x.parent.address.is_some() && x.parent.address == y.parent.address;
        scope != ExcludesSelf::Disabled && same
    }
}
