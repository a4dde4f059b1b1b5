//! An audit: all checks over a host's facts and its task.

use std::collections::BTreeSet;

use linerate_model::audit::{Audit, Outcome, Role, SCHEMA_VERSION, Target, Verdict};
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

/// The rate of the fastest link, where none is given; the role of a virtual machine stays what was asked for.
fn complete(target: &mut Target, facts: &HostFacts) {
    target.flows = target.flows.max(1);
    if target.rate_bps.is_some() {
        "given".clone_into(&mut target.rate_from);
    } else {
        let fastest = judged(facts, target.interface.as_deref())
            .into_iter()
            .filter(|one| one.kind == "hardware")
            .filter_map(|one| Some((one.link.known()?.speed_mbps?, &one.name)))
            .max_by_key(|(mbps, _)| *mbps);
        match fastest {
            Some((mbps, name)) => {
                target.rate_bps = Some(BitRate(u64::from(mbps) * 1_000_000));
                target.rate_from = format!("the link {name}");
            }
            None => "not known: no link states a speed".clone_into(&mut target.rate_from),
        }
    }
    let rtt_from = if target.rtt.is_some() {
        "given"
    } else {
        "not known"
    };
    if target.rtt_from.is_empty() {
        rtt_from.clone_into(&mut target.rtt_from);
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
