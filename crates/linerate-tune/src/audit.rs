//! An audit: all checks over a host's facts and its task.

use std::collections::BTreeSet;

use linerate_model::audit::{Audit, Outcome, Role, SCHEMA_VERSION, Target, ToPeer, Verdict};
use linerate_model::host::{HostFacts, Interface};
use linerate_model::units::BitRate;

use crate::case::{Case, Place};
use crate::checks::CHECKS;

/// Judges a host for a task. `earlier` is a reading of the same boot: with it, checks that ask whether a counter
/// rises can answer. Nothing is touched, and nothing but the arguments is looked at.
///
/// # Errors
/// The name of the target's interface, where the host has none of it.
pub fn audit(
    facts: &HostFacts,
    earlier: Option<&HostFacts>,
    target: &Target,
) -> Result<Audit, String> {
    if let Some(name) = &target.interface
        && let Some(all) = facts.interfaces.known()
        && facts.interface(name).is_none()
    {
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        return Err(format!(
            "there is no interface '{name}'; there are {}",
            names.join(", ")
        ));
    }
    let mut target = target.clone();
    complete(&mut target, facts);
    let case = Case {
        facts,
        earlier,
        target: &target,
        interfaces: judged(facts, target.interface.as_deref()),
    };
    let mut verdicts: Vec<Verdict> = CHECKS
        .iter()
        .filter(|check| check.area() == target.area)
        .flat_map(|check| check.verdicts(&case))
        .collect();
    verdicts.sort_by_key(|verdict| rank(&verdict.outcome));
    Ok(Audit {
        schema_version: SCHEMA_VERSION,
        host: about(&case),
        interfaces: case.interfaces.iter().map(|one| one.name.clone()).collect(),
        verdicts,
        target: target.clone(),
    })
}

fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Fires { severity, .. } => *severity,
        Outcome::CannotKnow { .. } => 10,
        Outcome::Holds { .. } => 11,
        Outcome::DoesNotApply { .. } => 12,
    }
}

/// What is not given is taken from the tests to a peer and from the links; the role of a virtual machine stays what was
/// asked for.
fn complete(target: &mut Target, facts: &HostFacts) {
    target.flows = target.flows.max(1);
    let measured = target.measured.clone().unwrap_or_default();
    take_way(target, &measured, facts);
    if target.rate_bps.is_some() {
        "given".clone_into(&mut target.rate_from);
    } else {
        let judged = judged(facts, target.interface.as_deref());
        (target.rate_bps, target.rate_from) = rate(fastest(&judged), &measured);
    }
    let rtt_from = match (target.rtt, measured.rtt) {
        (Some(_), _) => "given".to_owned(),
        (None, Some(_)) => format!("{}, {}", measured.peer, measured.rtt_how),
        (None, None) => "not known".to_owned(),
    };
    target.rtt = target.rtt.or(measured.rtt);
    if target.rtt_from.is_empty() {
        target.rtt_from = rtt_from;
    }
}

/// The interface by which the tests left is the one in question, where no other is given.
fn take_way(target: &mut Target, measured: &ToPeer, facts: &HostFacts) {
    let Some(way) = measured.interface.as_deref() else {
        return;
    };
    match target.interface.as_deref() {
        None if facts.interface(way).is_some() => target.interface = Some(way.to_owned()),
        Some(given) if given != way => {
            let remark = format!(
                "the tests to {} left through {way}, not {given}: their results are those of that route",
                measured.peer
            );
            if let Some(measured) = &mut target.measured {
                measured.remarks.push(remark);
            }
        }
        _ => {}
    }
}

/// The fastest of the links that state a speed.
fn fastest<'a>(judged: &[&'a Interface]) -> Option<(BitRate, &'a str)> {
    judged
        .iter()
        .filter(|one| one.kind == "hardware")
        .filter_map(|one| Some((one.link.known()?.speed_mbps?, one.name.as_str())))
        .max_by_key(|(mbps, _)| *mbps)
        .map(|(mbps, name)| (BitRate(u64::from(mbps) * 1_000_000), name))
}

/// The rate that a host is to carry: its link's, or the peer's where that is slower. What was reached is less than the
/// path carries wherever the host is what is wrong, so it stands in for a link only where none of this host states a
/// speed, and where it is more than a link states: what a virtual card states is made up.
fn rate(own: Option<(BitRate, &str)>, measured: &ToPeer) -> (Option<BitRate>, String) {
    let peer = &measured.peer;
    let Some((own, name)) = own else {
        return rate_without_link(measured);
    };
    let (link, from) = match measured.peer_link_bps {
        Some(theirs) if theirs < own => (theirs, format!("the link of {peer}, slower than {name}")),
        _ => (own, format!("the link {name}")),
    };
    match measured.rate_bps {
        // The plateau has its error.
        Some(reached) if reached.0 > link.0.saturating_add(link.0 / 20) => (
            Some(reached),
            format!("{} to {peer}, more than {from}", measured.rate_how),
        ),
        Some(reached) => (
            Some(link),
            format!("{from}; {reached} were reached to {peer}, which the path carries at least"),
        ),
        None => (Some(link), from),
    }
}

fn rate_without_link(measured: &ToPeer) -> (Option<BitRate>, String) {
    let peer = &measured.peer;
    match (measured.peer_link_bps, measured.rate_bps) {
        (_, Some(rate)) => (
            Some(rate),
            format!(
                "no link of this host states a speed: {} to {peer}; the path may carry more",
                measured.rate_how
            ),
        ),
        (Some(theirs), None) => (Some(theirs), format!("the link of {peer}")),
        (None, None) => (None, "not known: no link states a speed".to_owned()),
    }
}

/// Kinds that stand on other interfaces of the host and carry its own traffic.
const CARRIERS: [&str; 7] = [
    "hardware", "vlan", "bond", "veth", "macvlan", "ipvlan", "team",
];

/// The interfaces that the traffic may take, and those below them: the one that is asked for, or those that are
/// up and hold an address. Bridges without a network card, tunnels and dummies are no way out.
pub(crate) fn judged<'a>(facts: &'a HostFacts, wanted: Option<&str>) -> Vec<&'a Interface> {
    let all = facts.interfaces.known().map_or(&[][..], Vec::as_slice);
    let mut chosen: BTreeSet<u32> = all
        .iter()
        .filter(|one| match wanted {
            Some(name) => one.name == name,
            None => is_way_out(facts, one),
        })
        .map(|one| one.index)
        .collect();
    // Layers below layers: each pass adds one, and there are no more than interfaces.
    for _ in all {
        let before = chosen.len();
        let below: Vec<u32> = all
            .iter()
            .filter(|one| {
                chosen.contains(&one.index)
                    || all
                        .iter()
                        .any(|above| chosen.contains(&above.index) && stands_on(above, one))
            })
            .map(|one| one.index)
            .collect();
        chosen.extend(below);
        if chosen.len() == before {
            break;
        }
    }
    all.iter()
        .filter(|one| chosen.contains(&one.index))
        .collect()
}

fn is_way_out(facts: &HostFacts, one: &Interface) -> bool {
    // fe80:: addresses are on every interface that is up.
    let addressed = one.addresses.known().is_some_and(|list| {
        list.iter()
            .any(|address| !address.starts_with("fe80:") && !address.starts_with("169.254."))
    });
    let carries = CARRIERS.contains(&one.kind.as_str())
        || one.kind == "bridge" && facts.members(&one.name).any(|port| port.kind == "hardware");
    one.up && addressed && carries
}

/// Whether the traffic of `above` passes `below`.
fn stands_on(above: &Interface, below: &Interface) -> bool {
    let parent = above.parent.known().and_then(Option::as_deref);
    let member = below.master.as_deref() == Some(above.name.as_str())
        && (["bond", "team"].contains(&above.kind.as_str())
            || above.kind == "bridge"
                && ["hardware", "vlan", "bond"].contains(&below.kind.as_str()));
    parent == Some(below.name.as_str()) || member
}

/// `vm1, Linux 6.12, virtual machine (kvm)`.
fn about(case: &Case<'_>) -> String {
    let system = &case.facts.system;
    let mut words: Vec<String> = Vec::new();
    words.extend(system.hostname.known().cloned());
    words.extend(
        system
            .kernel
            .known()
            .map(|release| format!("Linux {release}")),
    );
    words.push(match (case.place(), system.virtual_machine.known()) {
        (Place::Container, _) => match system.container.known() {
            Some(Some(kind)) => format!("container ({kind})"),
            _ => "a network namespace of its own".to_owned(),
        },
        (Place::VirtualMachine, Some(Some(kind))) => format!("virtual machine ({kind})"),
        (Place::VirtualMachine, _) => format!("a virtual machine (--role {})", Role::Guest),
        (Place::BareMetal, Some(None)) => "bare metal".to_owned(),
        (Place::BareMetal, _) => {
            "taken for bare metal: whether it is virtual is not known".to_owned()
        }
    });
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_says_what_a_path_should_carry_and_a_test_what_it_carries_at_least() {
        let link = |mbps: u64| BitRate(mbps * 1_000_000);
        let found = |peer: Option<u64>, reached: Option<u64>| ToPeer {
            peer: "far".to_owned(),
            rate_how: "plateau".to_owned(),
            peer_link_bps: peer.map(link),
            rate_bps: reached.map(link),
            ..ToPeer::default()
        };
        let own = Some((link(10_000), "eth0"));
        for (own, found, wanted, said) in [
            (own, found(None, None), Some(10_000), "the link eth0"),
            (own, found(None, Some(300)), Some(10_000), "at least"),
            (
                own,
                found(Some(1000), Some(300)),
                Some(1000),
                "the link of far, slower than eth0",
            ),
            (
                own,
                found(Some(25_000), Some(300)),
                Some(10_000),
                "the link eth0",
            ),
            (
                own,
                found(Some(1000), Some(9000)),
                Some(9000),
                "more than the link of far",
            ),
            (
                own,
                found(None, Some(12_000)),
                Some(12_000),
                "more than the link eth0",
            ),
            (
                own,
                found(None, Some(10_100)),
                Some(10_000),
                "the link eth0",
            ),
            (
                None,
                found(Some(25_000), Some(300)),
                Some(300),
                "the path may carry more",
            ),
            (
                None,
                found(Some(25_000), None),
                Some(25_000),
                "the link of far",
            ),
            (None, found(None, None), None, "not known"),
        ] {
            let (bps, from) = rate(own, &found);
            assert_eq!(bps, wanted.map(link), "{from}");
            assert!(from.contains(said), "{from}");
        }
    }
}
