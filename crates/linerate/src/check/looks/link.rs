//! Links: speed, duplex, carrier, errors since the last run, members of a bond.

use std::collections::BTreeMap;

use linerate_check::judge::{self, LinkBefore};
use linerate_check::settings::LinkCheck;
use linerate_kernel::clock;
use linerate_kernel::inventory::{self, Devices as _, Root, RunningKernel};
use linerate_model::check::{Found, Item, State};

use super::{cannot_tell, nothing};

type Before = BTreeMap<String, LinkBefore>;

/// Looks, and gives back the counters for the next time.
pub(super) fn look(
    check: &LinkCheck,
    before: Option<serde_json::Value>,
) -> (Vec<Item>, serde_json::Value) {
    let before: Before = before
        .and_then(|before| serde_json::from_value(before).ok())
        .unwrap_or_default();
    let mut next = Before::new();
    let items = match names(check) {
        Err(error) => vec![cannot_tell("", format!("cannot list interfaces: {error}"))],
        Ok(names) if names.is_empty() => nothing(),
        Ok(names) => names
            .iter()
            .flat_map(|name| one(check, name, &before, &mut next))
            .collect(),
    };
    let next = serde_json::to_value(next).unwrap_or_default();
    (items, next)
}

/// The interface that is named, or each that is hardware and up.
fn names(check: &LinkCheck) -> std::io::Result<Vec<String>> {
    if let Some(name) = &check.name {
        return Ok(vec![name.clone()]);
    }
    let all = RunningKernel.interfaces()?;
    let wanted = all
        .into_iter()
        .filter(|one| one.kind == "hardware" && one.up);
    Ok(wanted.map(|one| one.name).collect())
}

fn one(check: &LinkCheck, name: &str, before: &Before, next: &mut Before) -> Vec<Item> {
    let root = Root::of_this_machine();
    let interface = match inventory::interface(&root, &RunningKernel, name) {
        Ok(Some(interface)) => interface,
        Ok(None) => return vec![Item::new(name, State::Fail, Found::NoInterface)],
        Err(error) => return vec![cannot_tell(name, format!("cannot read {name}: {error}"))],
    };
    let now = clock::boot();
    if let Some(counters) = interface.counters.known() {
        let had = before.get(name).is_some_and(|before| before.carrier);
        let seen = LinkBefore {
            at: now,
            index: interface.index,
            counters: *counters,
            carrier: had || !judge::has_no_carrier(&interface),
        };
        next.insert(name.to_owned(), seen);
    }
    let members = members(&root, name);
    judge::link(check, &interface, &members, now, before.get(name))
}

/// Members of a bond, and whether each takes part: its link is up and, with LACP, it is in the aggregate that carries traffic
/// (`ad_aggregator_id`, Documentation/networking/bonding.rst).
fn members(root: &Root, bond: &str) -> Vec<bool> {
    let bond = format!("/sys/class/net/{bond}/bonding");
    let active = root.word(&format!("{bond}/ad_aggregator")).ok();
    let members = root
        .whole_text(format!("{bond}/slaves"))
        .unwrap_or_default();
    let takes_part = |member: &str| {
        let own = |file: &str| {
            let folder = format!("/sys/class/net/{member}/bonding_slave");
            root.word(&format!("{folder}/{file}")).ok()
        };
        let up = own("mii_status").as_deref() == Some("up");
        up && (active.is_none() || own("ad_aggregator_id") == active)
    };
    members.split_whitespace().map(takes_part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_outside_the_active_aggregate_takes_no_part() {
        let folder = std::env::temp_dir().join(format!("linerate-bond-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = folder.join("sys/class/net").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("bond0/bonding/slaves", "eth0 eth1 eth2\n");
        for (member, status, aggregate) in [
            ("eth0", "up", "1"),
            ("eth1", "up", "2"),
            ("eth2", "down", "1"),
        ] {
            write(&format!("{member}/bonding_slave/mii_status"), status);
            write(
                &format!("{member}/bonding_slave/ad_aggregator_id"),
                aggregate,
            );
        }
        let root = Root::at(&folder).unwrap();
        let backup = members(&root, "bond0");
        write("bond0/bonding/ad_aggregator", "1\n");
        let lacp = members(&root, "bond0");
        let none = members(&root, "eth0");
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(backup, [true, true, false]);
        assert_eq!(lacp, [true, false, false]);
        assert!(none.is_empty());
    }
}
