//! Links: L01, L02, L03, L04, L05, L06, L08, L09, L10.

use std::collections::BTreeMap;

use linerate_model::audit::Role;
use linerate_model::host::{HostFacts, Interface};
use linerate_model::tuning::InterfaceSetting;
use linerate_model::units::BitRate;

use crate::case::{Advice, Answer, Case, Rise, does_not_apply, holds, speed_mbps};

const JUMBO: u32 = 9000;
const NO_COUNTER: &str = "its driver has no such counter";

/// L01
pub(crate) fn jumbo(case: &Case<'_>, interface: &Interface) -> Answer {
    let mtu = *interface.mtu.ask()?;
    if mtu >= JUMBO {
        return holds(format!("the MTU is {mtu}"));
    }
    let capacity = case.capacity(interface)?;
    if capacity < BitRate(10_000_000_000) {
        return does_not_apply(format!(
            "packets of {mtu} bytes are no problem at {capacity}"
        ));
    }
    if let Some(most) = interface.max_mtu.known().filter(|most| **most < JUMBO) {
        return does_not_apply(format!("the driver takes no more than {most} bytes"));
    }
    match case.target.largest_packet() {
        Some(packet) if packet.bytes >= JUMBO => {}
        Some(packet) if packet.untried_above => {
            return Err(format!(
                "the MTU is {mtu}; packets of {} bytes reach the peer; larger ones cannot be sent, so it is not \
                 known whether the path carries {JUMBO} (--path-mtu)",
                packet.bytes
            ));
        }
        Some(packet) => return does_not_apply(format!("the path carries {} bytes", packet.bytes)),
        None => {
            return Err(format!(
                "the MTU is {mtu}; whether the path carries {JUMBO} is not known (--path-mtu)"
            ));
        }
    }
    let below: Vec<&str> = below(case, interface)
        .map(|one| one.name.as_str())
        .collect();
    let first = match below.as_slice() {
        [] => String::new(),
        names => format!(", {} first", names.join(" and ")),
    };
    let sentence = format!(
        "the MTU of {} is {mtu} at {capacity}, but the path carries {JUMBO}: it sends six times as many packets as \
         necessary",
        interface.name
    );
    Advice::new(sentence)
        .interface(
            &interface.name,
            InterfaceSetting::Mtu,
            JUMBO,
            format!("on every hop of the path{first}"),
        )
        .now(mtu)
        .fires()
}

/// L02
pub(crate) fn probe(case: &Case<'_>, interface: &Interface) -> Answer {
    let mtu = *interface.mtu.ask()?;
    let Some(packet) = case.target.largest_packet() else {
        return Err(format!(
            "no peer was probed with packets of {mtu} bytes and Don't Fragment (--peer probes one; --path-mtu gives \
             a known result)"
        ));
    };
    let measured = case.target.measured.as_ref();
    let way = measured.and_then(|measured| measured.interface.as_deref());
    if let (None, Some(way)) = (case.target.path_mtu, way)
        && way != interface.name
    {
        return does_not_apply(format!("the route to the probed peer uses {way}"));
    }
    let path = packet.bytes;
    if path >= mtu {
        return holds(format!("the path carries the {mtu} bytes of the MTU"));
    }
    if packet.untried_above {
        return Err(format!(
            "the peer was probed with packets of {path} bytes, the maximum of the route to it, not with the MTU of \
             {mtu}"
        ));
    }
    let sentence = format!(
        "the MTU of {} is {mtu} but the path carries {path}: larger packets vanish or come back as errors",
        interface.name
    );
    Advice::new(sentence)
        .by_hand(
            format!("MTU of {}, or of the hops of the path", interface.name),
            path,
            "one size from end to end",
        )
        .now(mtu)
        .fires()
}

/// The interfaces that carry this one: a VLAN's parent, a bond's members.
fn below<'a>(case: &'a Case<'_>, interface: &'a Interface) -> impl Iterator<Item = &'a Interface> {
    let parent = interface
        .parent
        .known()
        .and_then(|parent| case.facts.interface(parent.as_deref()?));
    let members = case
        .facts
        .members(&interface.name)
        .filter(|_| interface.kind == "bond");
    parent.into_iter().chain(members)
}

/// L03
pub(crate) fn below_carries(case: &Case<'_>, interface: &Interface) -> Answer {
    // An interface below that cannot be seen is no passed check.
    interface.parent.ask()?;
    let mtu = *interface.mtu.ask()?;
    let mut seen = Vec::new();
    for one in below(case, interface) {
        let theirs = *one.mtu.ask()?;
        if !one.up {
            return Advice::new(format!(
                "{} is down, and {} depends on it",
                one.name, interface.name
            ))
            .by_hand(
                format!("state of {}", one.name),
                "up",
                format!("before {}", interface.name),
            )
            .now("down")
            .fires();
        }
        if mtu > theirs {
            let sentence = format!(
                "the MTU of {} is {mtu}, but {} below it has {theirs}: packets of sizes between the two are lost",
                interface.name, one.name
            );
            return Advice::new(sentence)
                .interface(
                    &one.name,
                    InterfaceSetting::Mtu,
                    mtu,
                    format!("before {}", interface.name),
                )
                .now(theirs)
                .fires();
        }
        seen.push(format!("{} has {theirs}", one.name));
    }
    if seen.is_empty() {
        return does_not_apply("nothing is below it");
    }
    holds(format!("the MTU is {mtu}, and {}", seen.join(" and ")))
}

/// L04
pub(crate) fn vlan_offloads(case: &Case<'_>, interface: &Interface) -> Answer {
    if interface.kind != "vlan" {
        return does_not_apply("it is not a VLAN");
    }
    let own = interface.features.ask()?;
    let parent = interface.parent.ask()?.as_deref().unwrap_or_default();
    let parent = case
        .facts
        .interface(parent)
        .ok_or("the interface below it is not visible")?;
    let theirs = parent.features.ask()?;
    let on = |features: &BTreeMap<String, linerate_model::host::Feature>, name: &str| {
        features.get(name).is_some_and(|feature| feature.on)
    };
    let lost: Vec<&str> = [
        "tx-tcp-segmentation",
        "tx-checksum-ip-generic",
        "tx-checksum-ipv4",
    ]
    .into_iter()
    .filter(|name| on(theirs, name) && own.contains_key(*name) && !on(own, name))
    .collect();
    // A VLAN may have the generic checksum where its parent has the one of IPv4, or the other way round.
    let checksum = on(own, "tx-checksum-ip-generic") || on(own, "tx-checksum-ipv4");
    let lost: Vec<&str> = lost
        .into_iter()
        .filter(|name| *name == "tx-tcp-segmentation" || !checksum)
        .collect();
    if lost.is_empty() {
        return holds(format!("it has what {} has", parent.name));
    }
    Advice::new(format!(
        "{} has {} but its VLAN {} does not: the CPU segments and checksums every packet",
        parent.name,
        lost.join(", "),
        interface.name
    ))
    .by_hand(
        format!("ethtool -K {} txvlan", parent.name),
        "on",
        "the VLAN inherits the offloads of its parent that work with tags",
    )
    .fires()
}

/// The rate that is wanted, where all links together are slower; an unknown speed may be any, and one that was exceeded
/// is made up.
fn too_much(case: &Case<'_>) -> Option<BitRate> {
    let rate = case.rate().ok()?;
    let measured = case.target.measured.as_ref();
    if measured.and_then(|measured| measured.rate_bps) >= Some(rate) {
        return None;
    }
    let mut all = 0_u64;
    for interface in &case.interfaces {
        if interface.kind == "hardware" {
            all = all.saturating_add(u64::from(speed_mbps(interface).ok()?));
        }
    }
    (all.saturating_mul(1_000_000) < rate.0).then_some(rate)
}

/// L05
pub(crate) fn speed(case: &Case<'_>, interface: &Interface) -> Answer {
    if interface.kind != "hardware" {
        return does_not_apply("it is not hardware");
    }
    let link = interface.link.ask()?;
    let speed = speed_mbps(interface)?;
    if link.duplex.as_deref() == Some("half") {
        return Advice::new(format!(
            "{} runs at half duplex: every packet may collide",
            interface.name
        ))
        .by_hand(
            format!("autonegotiation of {}", interface.name),
            "on, at both ends",
            "one end falls back to half duplex if the other does not autonegotiate",
        )
        .fires();
    }
    let own = link
        .best_advertised_mbps
        .or(link.best_supported_mbps)
        .ok_or_else(|| format!("{} does not report its modes", interface.name))?;
    // A partner that does not say may do as well as this end.
    let best = link
        .best_partner_mbps
        .map_or(own, |partner| own.min(partner));
    if speed >= best {
        let Some(rate) = too_much(case) else {
            return holds(format!("{speed} Mbit/s, the best of both ends"));
        };
        return Advice::new(format!(
            "{} runs at {speed} Mbit/s, and no link of this host carries {rate}",
            interface.name
        ))
        .by_hand(
            format!("speed of {}", interface.name),
            rate,
            "another card at both ends, or a task that the link can carry",
        )
        .now(format!("{speed} Mbit/s"))
        .fires();
    }
    Advice::new(format!(
        "{} runs at {speed} Mbit/s but supports {best}",
        interface.name
    ))
    .by_hand(
        format!("speed of {}", interface.name),
        format!("{best} Mbit/s"),
        "cable, optic, or a speed that was fixed at one end",
    )
    .now(format!("{speed} Mbit/s"))
    .fires()
}

/// The sum of a driver's counters of a kind; `absent` says that it has none.
pub(crate) fn summed(
    facts: &HostFacts,
    name: &str,
    wanted: impl Fn(&str) -> bool,
    absent: &str,
) -> Result<u64, String> {
    let interface = facts.interface(name).ok_or("the interface is not there")?;
    let mut found = interface
        .statistics
        .ask()?
        .iter()
        .filter(|(counter, _)| wanted(counter))
        .map(|(_, value)| *value)
        .peekable();
    found.peek().ok_or(absent)?;
    Ok(found.sum())
}

/// L06
pub(crate) fn uncorrectable(case: &Case<'_>, interface: &Interface) -> Answer {
    let wanted = |counter: &str| {
        (counter.contains("fec") && counter.contains("uncorr"))
            || counter.contains("pcs_symbol_err")
            || counter.contains("rx_symbol_err")
    };
    let name = interface.name.as_str();
    let seen = case.rise("uncorrectable errors", |facts| {
        summed(facts, name, wanted, NO_COUNTER)
    })?;
    let Rise::Rose(more) = seen else {
        return holds("no uncorrectable errors");
    };
    let sentence = format!(
        "{name} had {more} uncorrectable FEC blocks during the observation: packets are lost on the cable"
    );
    Advice::new(sentence)
        .by_hand(
            format!("optic and cable of {name}"),
            "clean or replace",
            "the counter rises",
        )
        .fires()
}

/// L08
pub(crate) fn carrier(case: &Case<'_>, interface: &Interface) -> Answer {
    let name = interface.name.as_str();
    // A link that came up once has changed once or twice.
    let few = interface.carrier_changes.ask()?;
    if *few <= 2 {
        return holds(format!("the carrier changed {few} times"));
    }
    let rise = case.rise(&format!("carrier changes of {name}"), |facts| {
        let there = facts.interface(name).ok_or("the interface is not there")?;
        there.carrier_changes.ask().copied()
    })?;
    match rise {
        Rise::Still => holds("the carrier stayed"),
        Rise::Rose(more) => Advice::new(format!(
            "the carrier of {name} changed {more} times during the observation"
        ))
        .by_hand(
            format!("cable, optic and port of {name}"),
            "investigate",
            "the link flaps",
        )
        .fires(),
    }
}

/// L09
pub(crate) fn pause(case: &Case<'_>, interface: &Interface) -> Answer {
    let name = interface.name.as_str();
    let pause = interface.pause.ask()?;
    let sent = |counter: &str| {
        counter.contains("tx")
            && (counter.contains("pause") || counter.contains("flow_control_xoff"))
            && !counter.contains("duration")
    };
    if pause.tx {
        let seen = case.rise("pause frames sent", |facts| {
            summed(facts, name, sent, NO_COUNTER)
        })?;
        let Rise::Rose(more) = seen else {
            return holds("it sent no pause frames");
        };
        let sentence = format!(
            "{name} sent {more} pause frames during the observation: this host does not process packets in time, and \
             the switch delays all traffic behind them"
        );
        return Advice::new(sentence)
            .by_hand(
                format!("receiving side of {name}: rings, interrupts, CPUs"),
                "N01, C01, C02",
                "pause frames hide the place of the overload",
            )
            .fires();
    }
    match missed(case, interface)? {
        Rise::Still => holds("pause frames are off, and it missed nothing"),
        Rise::Rose(more) => Advice::new(format!(
            "{name} missed {more} packets during the observation, and pause frames are off"
        ))
        .by_hand(
            format!("ethtool -A {name} tx"),
            "on, or larger rings",
            "a question of policy: a pause also stops other traffic of the port",
        )
        .now("off")
        .fires(),
    }
}

/// Packets that the device had no descriptor for.
pub(crate) fn missed(case: &Case<'_>, interface: &Interface) -> Result<Rise, String> {
    let name = interface.name.as_str();
    case.rise(&format!("packets that {name} missed"), |facts| {
        let there = facts.interface(name).ok_or("the interface is not there")?;
        Ok(there.counters.ask()?.rx_missed)
    })
}

/// L10
pub(crate) fn bond_hash(case: &Case<'_>, interface: &Interface) -> Answer {
    let Some(bond) = &interface.bond else {
        return does_not_apply("it is not a bond");
    };
    if !["802.3ad", "balance-xor"].contains(&bond.mode.as_str()) {
        return does_not_apply(format!("a bond of mode {} does not hash", bond.mode));
    }
    let members = case.facts.members(&interface.name).count();
    let many = case.target.flows > 1 || case.target.role == Role::Server;
    if bond.hash != "layer2" || members < 2 || !many {
        return holds(format!("{} over {members} members", bond.hash));
    }
    let sentence = format!(
        "the bond {} uses hash policy layer2: all flows to one router use the same one of its {members} members",
        interface.name
    );
    Advice::new(sentence)
        .by_hand(
            format!("xmit_hash_policy of {}", interface.name),
            "layer3+4",
            "a layer3+4 hash includes ports and so spreads flows",
        )
        .now("layer2")
        .fires()
}
