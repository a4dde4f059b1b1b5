//! What has to be done so that a declaration holds.

use std::collections::BTreeMap;

use linerate_model::host::{HostFacts, Interface, RouteFacts};
use serde::Serialize;

use super::{Action, Declaration, Declared, Mac, Network, Route, State, files};
use crate::persist;

/// An interface that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// The link-layer address that it has.
    pub mac: Mac,
    /// The one that its device has of its own; `None` where the kernel does not tell.
    pub permanent_mac: Option<Mac>,
    /// As the kernel has it now.
    pub name: String,
    /// `ifindex`.
    pub index: u32,
    /// Whether it is up.
    pub up: bool,
    /// Largest packet, bytes; `None` where the kernel does not say.
    pub mtu: Option<u32>,
    /// As the kernel has them, link-local ones included.
    pub addresses: Vec<Network>,
}

/// What is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Situation {
    /// Interfaces with a device of their own: no VLAN, bond or bridge, which have the address of what is below. `None`:
    /// only files are looked at.
    pub interfaces: Option<Vec<Present>>,
    /// Names of all interfaces.
    pub names: Vec<String>,
    /// Names of those that carry a default route, and of those below them.
    pub carriers: Vec<String>,
    /// The routes of the main table.
    pub routes: Vec<RouteFacts>,
    /// Files that are there, of those that we write: path and text.
    pub files: BTreeMap<String, String>,
    /// `.link` files that `tune persist` wrote: path and text.
    pub links: BTreeMap<String, String>,
    /// Programs that run and look after interfaces.
    pub running: Vec<String>,
    /// Id of this boot.
    pub boot_id: String,
    /// This start of the service; empty by hand, which is no start.
    pub start: String,
    /// What was applied the last time.
    pub state: State,
}

impl Situation {
    /// What of it a host's facts tell; files, start and state are left empty.
    ///
    /// # Errors
    /// Why interfaces or routes are not known: without routes it is not known which interface must not be touched.
    pub fn of(facts: &HostFacts) -> Result<Self, String> {
        let all = facts.interfaces.ask()?;
        let routes = facts.routes.ask()?.clone();
        let own = |one: &&Interface| !one.is_stacked();
        let present = all.iter().filter(own).filter_map(|one| {
            Some(Present {
                mac: one.mac.as_deref()?.parse().ok()?,
                permanent_mac: one
                    .permanent_mac
                    .as_deref()
                    .and_then(|mac| mac.parse().ok()),
                name: one.name.clone(),
                index: one.index,
                up: one.up,
                mtu: one.mtu.known().copied(),
                addresses: one
                    .addresses
                    .known()
                    .into_iter()
                    .flatten()
                    .filter_map(|address| address.parse().ok())
                    .collect(),
            })
        });
        let running = facts
            .keepers
            .iter()
            .filter(|keeper| keeper.running.known() == Some(&true));
        Ok(Self {
            interfaces: Some(present.collect()),
            names: all.iter().map(|one| one.name.clone()).collect(),
            carriers: carriers(facts, &routes),
            running: running.map(|keeper| keeper.name.clone()).collect(),
            boot_id: facts.system.boot_id.known().cloned().unwrap_or_default(),
            routes,
            ..Self::default()
        })
    }

    /// The interfaces that a declared address means: those that have it of their own, else those that have it now.
    fn meant(&self, mac: Mac) -> Vec<&Present> {
        let all = || self.interfaces.iter().flatten();
        let own: Vec<&Present> = all().filter(|one| one.permanent_mac == Some(mac)).collect();
        if own.is_empty() {
            return all().filter(|one| one.mac == mac).collect();
        }
        own
    }
}

/// Interfaces of default routes, with all below: a VLAN's, a bond's members.
fn carriers(facts: &HostFacts, routes: &[RouteFacts]) -> Vec<String> {
    let default = |route: &&RouteFacts| route.destination == "default";
    let mut carriers: Vec<String> = routes
        .iter()
        .filter(default)
        .filter_map(|route| route.interface.clone())
        .collect();
    let mut at = 0;
    // Each interface is added once, and there are as many as there are.
    while let Some(name) = carriers.get(at).cloned() {
        let parent = facts
            .interface(&name)
            .and_then(|one| one.parent.known().cloned().flatten());
        let members = facts.members(&name).map(|one| one.name.clone());
        for below in parent.into_iter().chain(members) {
            if !carriers.contains(&below) {
                carriers.push(below);
            }
        }
        at += 1;
    }
    carriers
}

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GuestPlan {
    /// In this order.
    pub actions: Vec<Action>,
    /// Interfaces whose settings are made as declared, with their index.
    #[serde(skip)]
    pub due: BTreeMap<Mac, u32>,
    /// Interfaces that are as declared.
    pub fulfilled: Vec<String>,
    /// What is as somebody made it by hand since the last time, and stays so.
    pub by_hand: Vec<String>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// What is declared and must not be done. With one of these nothing is done to its interface.
    pub refused: Vec<String>,
}

/// Plans: files first, so that other programs let go, then interface by interface.
pub fn plan(declaration: &Declaration, situation: &Situation) -> GuestPlan {
    let mut plan = GuestPlan {
        notes: declaration.notes.clone(),
        ..GuestPlan::default()
    };
    let mut ours = Vec::new();
    for declared in &declaration.interfaces {
        match refusal(declaration, declared, situation) {
            Some(why) => plan.refused.push(format!("{}: {why}", declared.mac)),
            None => ours.push(declared),
        }
    }
    // What must not be touched now keeps the files that it has.
    let kept = |one: &&Declared| {
        let file = files::network_file(one.mac);
        ours.contains(one)
            || (situation.files.contains_key(&file) && !declaration.ignore.contains(&one.mac))
    };
    let with_files: Vec<&Declared> = declaration.interfaces.iter().filter(kept).collect();
    plan_files(&with_files, situation, &mut plan);
    if situation.interfaces.is_some() {
        for declared in &ours {
            plan_interface(declared, situation, &mut plan);
        }
    }
    for (mac, applied) in &situation.state.applied {
        let declared = |one: &Declared| one.mac == *mac;
        if !declaration.interfaces.iter().any(declared) {
            let name = applied.declared.name.as_deref().unwrap_or("it");
            plan.notes.push(format!(
                "{mac} is no longer declared: {name} is left as it is"
            ));
        }
    }
    plan
}

/// Why an interface must not be touched.
fn refusal(
    declaration: &Declaration,
    declared: &Declared,
    situation: &Situation,
) -> Option<String> {
    let found = situation.meant(declared.mac);
    let of_it = found
        .iter()
        .flat_map(|one| one.permanent_mac.into_iter().chain([one.mac]));
    let mut of_it = of_it.chain([declared.mac]);
    if of_it.any(|mac| declaration.ignore.contains(&mac)) {
        return Some("it is among those to ignore; take it out of one of the two".to_owned());
    }
    if let Some((file, _)) = persisted(declared, situation) {
        return Some(format!(
            "{file} of linerate tune persist is for it already, and systemd takes only one .link file, so that it would \
             not keep its name: take the name out of its declaration, or remove that file with linerate tune persist \
             --remove"
        ));
    }
    let one = found.first()?;
    if let Some(other) = found.get(1) {
        return Some(format!(
            "{} and {} both have this address",
            one.name, other.name
        ));
    }
    let same =
        |other: &&Declared| other.mac != declared.mac && situation.meant(other.mac).contains(one);
    if let Some(other) = declaration.interfaces.iter().find(same) {
        return Some(format!(
            "{} means {} too: one is the address of its own, the other the one that it has now; declare it once",
            other.mac, one.name
        ));
    }
    if situation.carriers.contains(&one.name) && !declared.allow_default_route {
        return Some(format!(
            "{} has the default route, through which this host is reached; if that is intended, declare \
             allow_default_route = true",
            one.name
        ));
    }
    None
}

/// The file of `tune persist` that stands against the name of an interface.
fn persisted<'a>(
    declared: &Declared,
    situation: &'a Situation,
) -> Option<(&'a String, &'a String)> {
    declared.name.as_ref()?;
    let of_it = |(_, text): &(&String, &String)| persist::link_for(text) == Some(declared.mac);
    situation.links.iter().find(of_it)
}

fn plan_files(ours: &[&Declared], situation: &Situation, plan: &mut GuestPlan) {
    let wanted: BTreeMap<String, String> = files::files(ours).into_iter().collect();
    let mut changed = Vec::new();
    for (path, text) in &wanted {
        if situation.files.get(path) != Some(text) {
            changed.push(path.clone());
            plan.actions.push(Action::WriteFile {
                path: path.clone(),
                text: text.clone(),
            });
        }
    }
    for path in situation.files.keys() {
        if !wanted.contains_key(path) {
            changed.push(path.clone());
            plan.actions.push(Action::RemoveFile { path: path.clone() });
        }
    }
    for (program, ours) in [
        ("NetworkManager", files::MANAGER),
        ("systemd-networkd", files::NETWORK),
    ] {
        let runs = situation.running.iter().any(|one| one == program);
        if runs && changed.iter().any(|path| path.starts_with(ours)) {
            plan.actions.push(Action::Reload {
                program: program.to_owned(),
            });
        }
    }
}

fn plan_interface(declared: &Declared, situation: &Situation, plan: &mut GuestPlan) {
    let Some(one) = situation.meant(declared.mac).first().copied() else {
        plan.notes.push(format!(
            "no interface has the address {}; it is set up when it is there and this is run again",
            declared.mac
        ));
        return;
    };
    if let Some(own) = one.permanent_mac.filter(|own| *own != declared.mac) {
        plan.notes.push(format!(
            "{} has the address {} now and {own} of its own, by which systemd finds it at the next boot: declare that one",
            one.name, declared.mac
        ));
    }
    let before = situation.state.applied.get(&declared.mac);
    let same = before.is_some_and(|applied| {
        applied.declared == *declared
            && applied.index == one.index
            && situation.state.boot_id == situation.boot_id
            // By hand it is no start of the service.
            && (situation.start.is_empty() || situation.start == situation.state.start)
    });
    let old = before.map(|applied| applied.declared.routes.as_slice());
    let actions = wanted(
        declared,
        one,
        situation,
        old.unwrap_or_default(),
        &mut plan.notes,
    );
    if actions.is_empty() {
        plan.fulfilled
            .push(format!("{} ({})", one.name, declared.mac));
    }
    if same {
        let by_hand = actions.iter().map(|action| {
            format!("left: {action}; something else changed it since, and it stays so until the declaration changes \
                or the service restarts")
        });
        plan.by_hand.extend(by_hand);
    } else {
        plan.due.insert(declared.mac, one.index);
        plan.actions.extend(actions);
    }
}

/// All that differs from the declaration.
fn wanted(
    declared: &Declared,
    one: &Present,
    situation: &Situation,
    before: &[Route],
    notes: &mut Vec<String>,
) -> Vec<Action> {
    let mac = declared.mac;
    let mut actions = Vec::new();
    let interface = name_of(declared, one, situation, &mut actions, notes);
    if let Some(mtu) = declared.mtu.filter(|mtu| one.mtu != Some(*mtu)) {
        let interface = interface.clone();
        actions.push(Action::Mtu {
            mac,
            interface,
            mtu,
        });
    }
    if declared.up != one.up {
        let interface = interface.clone();
        let up = declared.up;
        actions.push(Action::Up { mac, interface, up });
    }
    if !declared.up {
        // A link that is down has no routes, and the kernel has taken its addresses of IPv6.
        return actions;
    }
    let address = |address: &Network, add| Action::Address {
        mac,
        interface: interface.clone(),
        address: *address,
        add,
    };
    let kept = |given: &&Network| !declared.addresses.contains(given) && !given.is_link_local();
    let missing = |wanted: &&Network| !one.addresses.contains(wanted);
    // New ones first, so that a connection over one of both is not cut in between.
    let added = declared.addresses.iter().filter(missing);
    actions.extend(added.map(|wanted| address(wanted, true)));
    let removed = one.addresses.iter().filter(kept);
    actions.extend(removed.map(|given| address(given, false)));
    let route = |route: &Route, add| Action::Route {
        mac,
        interface: interface.clone(),
        route: route.clone(),
        add,
    };
    let there = |route: &&Route| is_there(route, &one.name, &situation.routes);
    let gone = before
        .iter()
        .filter(|route| !declared.routes.contains(route));
    actions.extend(gone.filter(there).map(|old| route(old, false)));
    let new = declared.routes.iter().filter(|route| !there(route));
    actions.extend(new.map(|new| route(new, true)));
    actions
}

/// The name that it has from then on.
fn name_of(
    declared: &Declared,
    one: &Present,
    situation: &Situation,
    actions: &mut Vec<Action>,
    notes: &mut Vec<String>,
) -> String {
    let Some(name) = declared.name.as_ref().filter(|name| **name != one.name) else {
        return one.name.clone();
    };
    if situation.names.contains(name) {
        notes.push(format!(
            "{} is to be called {name}, and another interface has this name; at the next boot it is given to the right one",
            one.name
        ));
    } else if one.up && !declared.rename_while_up {
        notes.push(format!(
            "{} is up and is called {name} at the next boot; rename_while_up = true does it at once",
            one.name
        ));
    } else {
        actions.push(Action::Rename {
            mac: declared.mac,
            from: one.name.clone(),
            to: name.clone(),
        });
        return name.clone();
    }
    one.name.clone()
}

fn is_there(route: &Route, interface: &str, routes: &[RouteFacts]) -> bool {
    let destination = route
        .to
        .map_or("default".to_owned(), |network| network.to_string());
    let via = route.via.map(|via| via.to_string());
    routes.iter().any(|one| {
        one.destination == destination
            && one.interface.as_deref() == Some(interface)
            && one.gateway == via
            && (route.metric.is_none() || one.metric == route.metric)
    })
}
