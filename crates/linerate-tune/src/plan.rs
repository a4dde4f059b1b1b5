//! From wishes to a plan: what is to be changed, in which order, what speaks against it. Nothing is changed.

use std::collections::BTreeMap;

use linerate_model::audit::{Audit, Outcome, Risk, Target};
use linerate_model::host::{CpuSet, Effect, Fact, HostFacts, Interface, Owner, Setting};
use linerate_model::nearest::nearest;
use linerate_model::tuning::{
    BlockSetting, InterfaceSetting, Object, Refusal, SCHEMA_VERSION, Step, TuningPlan,
};

use crate::checks::BPFTUNE;
use crate::persist::runs;
use crate::profile::{Origin, Wish};
use crate::{block, dirty};

/// From this severity on a change has no effect either way.
const WITHOUT_EFFECT: u8 = 4;

/// The wishes that an audit amounts to: what it recommends a value for that a plan can set, at the cost of emptied
/// queues at most. Rings, channels and MTU, for which most drivers take their link down, are for a profile to ask.
pub fn wishes_of(audit: &Audit) -> Vec<Wish> {
    let mut wishes: Vec<Wish> = Vec::new();
    for verdict in audit.firing() {
        let Outcome::Fires {
            changes, severity, ..
        } = &verdict.outcome
        else {
            continue;
        };
        if *severity >= WITHOUT_EFFECT {
            continue;
        }
        for change in changes {
            let Some((object, value)) = change.advised.settable() else {
                continue;
            };
            let first = !wishes.iter().any(|wish| wish.object == object);
            if first && risk(&object) <= Risk::QueueReset {
                wishes.push(Wish {
                    object,
                    value: value.to_owned(),
                    from: Origin::Audit(verdict.check.clone()),
                });
            }
        }
    }
    wishes
}

/// What would be changed on a host to fulfil wishes; of several for one object, the last counts.
pub fn plan(facts: &HostFacts, wishes: &[Wish]) -> TuningPlan {
    let last: BTreeMap<String, &Wish> = wishes
        .iter()
        .map(|wish| (wish.object.to_string(), wish))
        .collect();
    let marks = marks(facts, wishes);
    let mut plan = TuningPlan {
        schema_version: SCHEMA_VERSION,
        steps: Vec::new(),
        fulfilled: Vec::new(),
        refused: Vec::new(),
    };
    for wish in last.values() {
        let now = now(facts, &wish.object);
        let now = now.and_then(|now| possible(facts, wish, &last).map(|()| now));
        match now {
            Err(why) => plan.refused.push(Refusal {
                object: wish.object.clone(),
                wanted: wish.value.clone(),
                from: wish.from.to_string(),
                why,
            }),
            Ok(now) if now == wanted(facts, wish, &last) => {
                plan.fulfilled.push(wish.object.clone());
            }
            Ok(now) => plan.steps.push(Step {
                object: wish.object.clone(),
                now,
                wanted: wanted(facts, wish, &last),
                risk: risk(&wish.object),
                owners: owners(facts, &wish.object),
                programs: running_owners(facts, &wish.object),
                warnings: warnings(facts, wish, &marks),
                from: wish.from.to_string(),
            }),
        }
    }
    let rebuilt = rebuilt(&plan.steps);
    plan.steps.sort_by_key(|step| place(facts, step, &rebuilt));
    plan
}

/// Interfaces whose queues are made anew by a step.
fn rebuilt(steps: &[Step]) -> Vec<String> {
    let rebuilt = |step: &Step| match &step.object {
        Object::Interface { interface, setting } => {
            let queues = [
                InterfaceSetting::RxRing,
                InterfaceSetting::TxRing,
                InterfaceSetting::Channels,
            ];
            queues.contains(setting).then(|| interface.clone())
        }
        Object::Sysctl { .. } | Object::Governor | Object::Block { .. } => None,
    };
    steps.iter().filter_map(rebuilt).collect()
}

/// The wish as it will be read back: of CPUs for interrupts no more than there are queues.
fn wanted(facts: &HostFacts, wish: &Wish, wishes: &BTreeMap<String, &Wish>) -> String {
    let Object::Interface {
        interface,
        setting: InterfaceSetting::IrqCpus,
    } = &wish.object
    else {
        return wish.value.clone();
    };
    let channels = Object::Interface {
        interface: interface.clone(),
        setting: InterfaceSetting::Channels,
    };
    let wished = wishes.get(&channels.to_string());
    let queues = match wished.and_then(|wish| wish.value.parse::<usize>().ok()) {
        Some(channels) => Some(channels),
        None => facts
            .interface(interface)
            .and_then(|one| one.queue_interrupts().ok())
            .map(|queues| queues.len()),
    };
    let cpus = wish.value.parse::<CpuSet>();
    match (cpus, queues) {
        (Ok(cpus), Some(queues)) => {
            let first: CpuSet = cpus.cpus().iter().take(queues).copied().collect();
            first.to_string()
        }
        _ => wish.value.clone(),
    }
}

/// What is to be said of a wish that can be fulfilled.
fn warnings(facts: &HostFacts, wish: &Wish, marks: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut warnings = marks
        .get(&wish.from.to_string())
        .cloned()
        .unwrap_or_default();
    if let Object::Block {
        device,
        setting: BlockSetting::Scheduler,
    } = &wish.object
    {
        warnings.extend(block::not_offered(facts, device, &wish.value));
    }
    let Object::Sysctl { key } = &wish.object else {
        return warnings;
    };
    let has = facts.sysctl("net.ipv4.tcp_available_congestion_control");
    if let ("net.ipv4.tcp_congestion_control", Some(has)) = (key.as_str(), has.known())
        && !has.split(' ').any(|each| each == wish.value)
    {
        warnings.push(format!(
            "the kernel has {has} now; it is refused unless the module tcp_{} can be loaded",
            wish.value
        ));
    }
    warnings
}

/// What an audit says of the wishes, as if they stood in a file: dead, harmful, below the kernel's default.
fn marks(facts: &HostFacts, wishes: &[Wish]) -> BTreeMap<String, Vec<String>> {
    let line = |wish: &Wish| {
        let Object::Sysctl { key } = &wish.object else {
            return None;
        };
        let Origin::Line { file, line } = &wish.from else {
            return None;
        };
        Some(Setting {
            key: key.clone(),
            value: wish.value.clone(),
            file: file.clone(),
            line: *line,
            owner: Owner::Sysctl,
            effect: Effect::Wins,
        })
    };
    let mut wished = facts.clone();
    wished.settings = Fact::Known(wishes.iter().filter_map(line).collect());
    let Ok(audit) = crate::audit(&wished, None, &Target::default()) else {
        return BTreeMap::new();
    };
    let mut marks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for verdict in audit.firing() {
        let old = ["H01", "H02", "H03", "H04", "H05", "H06"].contains(&verdict.check.as_str());
        let Outcome::Fires {
            sentence, set_by, ..
        } = &verdict.outcome
        else {
            continue;
        };
        for place in set_by.iter().filter(|_| old) {
            marks
                .entry(place.clone())
                .or_default()
                .push(format!("{}: {sentence}", verdict.check));
        }
    }
    marks
}

/// The value now, or why nothing can be said or done about it.
fn now(facts: &HostFacts, object: &Object) -> Result<String, String> {
    match object {
        Object::Sysctl { key } => match facts.sysctls.get(key) {
            Some(value) => value.ask().cloned(),
            None => Err(no_key(facts, key)),
        },
        Object::Interface { interface, setting } => {
            value_of(interface_of(facts, interface)?, *setting)
        }
        Object::Governor => {
            let governors = facts.processors.governors.ask()?;
            let names: Vec<&str> = governors.iter().map(|one| one.name.as_str()).collect();
            Ok(names.join(", "))
        }
        Object::Block { device, setting } => block::value_of(facts, device, *setting),
    }
}

fn no_key(facts: &HostFacts, key: &str) -> String {
    match nearest(key, facts.sysctls.keys().map(String::as_str)) {
        Some(meant) => format!("this host shows no key {key}; did you mean {meant}?"),
        None => format!("this host shows no key {key}"),
    }
}

fn interface_of<'a>(facts: &'a HostFacts, name: &str) -> Result<&'a Interface, String> {
    let all = facts.interfaces.ask()?;
    all.iter().find(|one| one.name == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        format!(
            "there is no interface {name}; there are {}",
            names.join(", ")
        )
    })
}

/// A setting of an interface in the words of a profile, or why it is not known.
pub(crate) fn value_of(interface: &Interface, setting: InterfaceSetting) -> Result<String, String> {
    use InterfaceSetting as S;
    let on = |on: bool| if on { "on" } else { "off" }.to_owned();
    Ok(match setting {
        S::Mtu => interface.mtu.ask()?.to_string(),
        S::Txqueuelen => interface.tx_queue_len.ask()?.to_string(),
        S::RxRing => interface.rings.ask()?.rx.to_string(),
        S::TxRing => interface.rings.ask()?.tx.to_string(),
        S::Channels => interface.channels.ask()?.combined.to_string(),
        S::AdaptiveRx => on(interface.coalescing.ask()?.adaptive_rx),
        S::RxUsecs => interface.coalescing.ask()?.rx_usecs.to_string(),
        S::RpsCpus => interface.rps_cpus()?,
        S::XpsCpus => interface.xps_cpus()?,
        S::IrqCpus => interface.irq_cpus()?,
        S::Qdisc => {
            let qdiscs = interface.qdiscs.ask()?;
            let mut kinds: Vec<&str> = qdiscs
                .iter()
                .filter(|qdisc| qdisc.leaf)
                .map(|qdisc| qdisc.kind.as_str())
                .collect();
            kinds.dedup();
            kinds.join(", ")
        }
        S::Tso | S::Gso | S::Gro | S::Lro => {
            let name = feature_name(setting);
            let features = interface.features.ask()?;
            let feature = features
                .get(name)
                .ok_or_else(|| format!("the device has no feature {name}"))?;
            on(feature.on)
        }
    })
}

const fn feature_name(setting: InterfaceSetting) -> &'static str {
    match setting {
        InterfaceSetting::Tso => "tx-tcp-segmentation",
        InterfaceSetting::Gso => "tx-generic-segmentation",
        InterfaceSetting::Gro => "rx-gro",
        _ => "rx-lro",
    }
}

/// RFC 8200, section 5; `addrconf_notify` of `net/ipv6/addrconf.c`.
const LEAST_MTU_OF_IPV6: u32 = 1280;

/// Whether an interface has addresses of IPv6.
fn has_ipv6(interface: &Interface) -> bool {
    let addresses = interface.addresses.known();
    addresses.is_some_and(|all| all.iter().any(|address| address.contains(':')))
}

/// Refuses to switch IPv6 off where there are addresses of it (`addrconf_disable_ipv6` of `net/ipv6/addrconf.c`).
fn keeps_ipv6(facts: &HostFacts, key: &str, value: &str) -> Result<(), String> {
    let of = key.strip_prefix("net.ipv6.conf.");
    let Some(name) = of.and_then(|rest| rest.strip_suffix(".disable_ipv6")) else {
        return Ok(());
    };
    let name = name.replace('/', ".");
    let with: Vec<&str> = facts
        .interfaces
        .known()
        .into_iter()
        .flatten()
        .filter(|one| (name == "all" || one.name == name) && has_ipv6(one))
        .map(|one| one.name.as_str())
        .collect();
    if value == "0" || with.is_empty() {
        return Ok(());
    }
    Err(format!(
        "it removes the IPv6 addresses of {}, which setting it back does not bring back; remove them first",
        with.join(", ")
    ))
}

/// Refuses an MTU below the least of IPv6 on an interface that has addresses of it, or on which others stand that have.
fn ends_no_ipv6(facts: &HostFacts, interface: &Interface) -> Result<(), String> {
    let name = &interface.name;
    if has_ipv6(interface) {
        return Err(format!(
            "below {LEAST_MTU_OF_IPV6} the kernel ends IPv6 on {name} and removes its addresses, which setting the MTU \
             back does not bring back; remove them first"
        ));
    }
    let above: Vec<&str> = facts
        .above(name)
        .into_iter()
        .filter(|one| has_ipv6(one))
        .map(|one| one.name.as_str())
        .collect();
    if above.is_empty() {
        return Ok(());
    }
    let above = above.join(", ");
    Err(format!(
        "IPv6 needs {LEAST_MTU_OF_IPV6} or more, and what is built on {name} has IPv6 addresses: {above}. If the \
         kernel lowers the MTU there too, it removes them, and restoring the MTU does not restore them; remove them \
         first"
    ))
}

/// Whether all CPUs of a list are there; `off` has none.
fn online(facts: &HostFacts, value: &str) -> Result<(), String> {
    let (Ok(cpus), Some(online)) = (value.parse::<CpuSet>(), facts.processors.online.known())
    else {
        return Ok(());
    };
    if online.contains_all(&cpus) {
        return Ok(());
    }
    Err(format!("the CPUs online are {online}"))
}

/// Why the host cannot be given a value that it does not have: bounds of the device, and of what is below.
fn possible(
    facts: &HostFacts,
    wish: &Wish,
    wishes: &BTreeMap<String, &Wish>,
) -> Result<(), String> {
    use InterfaceSetting as S;
    let (interface, setting) = match &wish.object {
        Object::Interface { interface, setting } => (interface, setting),
        Object::Sysctl { key } => {
            dirty::possible(key, &wish.value, |other| {
                wishes.contains_key(
                    &Object::Sysctl {
                        key: other.to_owned(),
                    }
                    .to_string(),
                )
            })?;
            return keeps_ipv6(facts, key, &wish.value);
        }
        Object::Governor | Object::Block { .. } => return Ok(()),
    };
    let one = interface_of(facts, interface)?;
    let wanted = wish.value.parse::<u32>().unwrap_or(0);
    let bound = |most: u32, what: &str| {
        if wanted > most {
            return Err(format!("{what} of {interface} is at most {most}"));
        }
        Ok(())
    };
    match setting {
        S::RxRing => bound(one.rings.ask()?.rx_max, "the receive ring"),
        S::TxRing => bound(one.rings.ask()?.tx_max, "the transmit ring"),
        S::Channels => bound(one.channels.ask()?.combined_max, "the number of channels"),
        S::Mtu => {
            if wanted < LEAST_MTU_OF_IPV6 {
                ends_no_ipv6(facts, one)?;
            }
            if let Some(most) = one.max_mtu.known() {
                bound(*most, "the MTU")?;
            }
            let below = one.parent.ask()?.as_deref();
            let Some(below) = below.and_then(|below| facts.interface(below)) else {
                return Ok(());
            };
            let object = Object::Interface {
                interface: below.name.clone(),
                setting: S::Mtu,
            };
            let theirs = match wishes.get(&object.to_string()) {
                Some(wish) => wish.value.parse().unwrap_or(0),
                None => *below.mtu.ask()?,
            };
            if wanted > theirs {
                return Err(format!(
                    "{} below {interface} has or would have an MTU of {theirs}; set it there too",
                    below.name
                ));
            }
            Ok(())
        }
        S::Tso | S::Gso | S::Gro | S::Lro => {
            let feature = one.features.ask()?.get(feature_name(*setting)).copied();
            let on = wish.value == "on";
            match feature {
                Some(feature) if feature.fixed && feature.on != on => Err(format!(
                    "the device has it fixed {}",
                    if on { "off" } else { "on" }
                )),
                _ => Ok(()),
            }
        }
        S::RpsCpus | S::XpsCpus | S::IrqCpus => online(facts, &wish.value),
        S::Txqueuelen | S::AdaptiveRx | S::RxUsecs | S::Qdisc => Ok(()),
    }
}

fn risk(object: &Object) -> Risk {
    match object {
        Object::Sysctl { .. } | Object::Governor | Object::Block { .. } => Risk::None,
        Object::Interface { setting, .. } => setting.risk(),
    }
}

/// Who else sets it: lines of files, then programs that run.
pub(crate) fn owners(facts: &HostFacts, object: &Object) -> Vec<String> {
    let mut owners = Vec::new();
    if let Object::Sysctl { key } = object {
        let lines = facts
            .setters(key)
            .filter(|line| !matches!(line.effect, Effect::Masked { .. } | Effect::NotAtBoot));
        owners.extend(lines.map(Setting::place));
    }
    owners.extend(running_owners(facts, object));
    let setting = InterfaceSetting::IrqCpus;
    if matches!(object, Object::Interface { setting: one, .. } if *one == setting) {
        let pinnings = facts.pinnings.known().into_iter().flatten();
        owners.extend(pinnings.map(|pinning| pinning.place.clone()));
    }
    owners
}

/// Programs that run and set it too.
pub(crate) fn running_owners(facts: &HostFacts, object: &Object) -> Vec<String> {
    let candidates: &[&str] = match object {
        Object::Sysctl { key } => {
            let by_tuned = facts.setters(key).any(|line| line.owner == Owner::Tuned);
            match (BPFTUNE.contains(&key.as_str()), by_tuned) {
                (true, true) => &["bpftune", "tuned"],
                (true, false) => &["bpftune"],
                (false, true) => &["tuned"],
                (false, false) => &[],
            }
        }
        Object::Interface {
            setting: InterfaceSetting::IrqCpus,
            ..
        } => &["irqbalance", "tuned"],
        Object::Interface { .. } => &["NetworkManager", "systemd-networkd", "tuned"],
        Object::Governor | Object::Block { .. } => &["tuned"],
    };
    candidates
        .iter()
        .filter(|name| runs(facts, name))
        .map(|name| (*name).to_owned())
        .collect()
}

/// Where a step stands: what risks nothing first, except what is set for queues that another step makes anew; then interface by interface, what is below before what stands on
/// it, except that an MTU shrinks from above.
fn place(facts: &HostFacts, step: &Step, rebuilt: &[String]) -> (Risk, u32, String, usize) {
    let Object::Interface { interface, setting } = &step.object else {
        let (name, order) = match &step.object {
            Object::Block { device, setting } => {
                let same = |(each, _): &(BlockSetting, &str)| each == setting;
                let order = BlockSetting::ALL.iter().position(same);
                (device.clone(), order.unwrap_or(usize::MAX))
            }
            other => (other.to_string(), 0),
        };
        return (step.risk, 0, name, order);
    };
    let depth = depth(facts, interface);
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let shrinks = *setting == InterfaceSetting::Mtu && number(&step.wanted) < number(&step.now);
    let order = InterfaceSetting::ALL
        .iter()
        .position(|(each, _)| each == setting)
        .unwrap_or(usize::MAX);
    let layer = if shrinks { u32::MAX - depth } else { depth + 1 };
    let late = setting.is_per_queue() && rebuilt.contains(interface);
    let risk = if late { Risk::LinkFlap } else { step.risk };
    (risk, layer, interface.clone(), order)
}

/// How many interfaces are below one: a VLAN on a bond of two cards is at 2.
fn depth(facts: &HostFacts, name: &str) -> u32 {
    let mut at = vec![name.to_owned()];
    let mut depth = 0;
    // There are no more layers than interfaces.
    for _ in 0..facts.interfaces.known().map_or(0, Vec::len) {
        let below: Vec<String> = at
            .iter()
            .flat_map(|name| {
                let parent = facts
                    .interface(name)
                    .and_then(|one| one.parent.known().cloned().flatten());
                let members = facts.members(name).map(|one| one.name.clone());
                parent.into_iter().chain(members).collect::<Vec<_>>()
            })
            .collect();
        if below.is_empty() {
            break;
        }
        depth += 1;
        at = below;
    }
    depth
}
