//! The facts of the interface that carries a test.
//!
//! A VLAN's, a bond's or a bridge's are those of the devices below. Where these differ, all of their values are there.

use std::collections::BTreeSet;

use crate::host::{Channels, Fact, HostFacts, Interface};
use crate::plain_text::PlainText;

use super::{Key, Subject};

/// Between the values of several devices.
const BETWEEN: &str = " / ";

impl HostFacts {
    /// The devices that carry what is sent by an interface: itself, or for a VLAN, bond or bridge those below it,
    /// without interfaces of containers and virtual machines, which come and go.
    pub fn carriers<'a>(&'a self, name: &str) -> Vec<&'a Interface> {
        let mut seen: Vec<&Interface> = self.interface(name).into_iter().collect();
        let mut lowest = Vec::new();
        let mut at = 0;
        // Each interface is added once, and there are as many as there are.
        while let Some(one) = seen.get(at).copied() {
            let parent = one.parent.known().and_then(Option::as_deref);
            let parent = parent.and_then(|parent| self.interface(parent));
            let lasting = |other: &&Interface| other.kind == "hardware" || other.is_stacked();
            let members = self.members(&one.name).filter(lasting);
            let below: Vec<&Interface> = parent.into_iter().chain(members).collect();
            if !one.is_stacked() || below.is_empty() {
                lowest.push(one);
            } else {
                for other in below {
                    if seen.iter().all(|known| known.name != other.name) {
                        seen.push(other);
                    }
                }
            }
            at += 1;
        }
        lowest
    }
}

pub(super) fn facts(host: &HostFacts, interface: &str) -> Vec<(Key, PlainText)> {
    let carriers = host.carriers(interface);
    let mut own: Vec<(Key, String)> = Vec::new();
    for one in &carriers {
        own.extend(device(host, one));
    }
    own.extend(
        host.interface(interface)
            .into_iter()
            .chain(carriers.iter().copied())
            .filter_map(|one| Some((Key::of(Subject::Qdisc), qdiscs(one)?))),
    );
    let keys: BTreeSet<&Key> = own.iter().map(|(key, _)| key).collect();
    keys.into_iter()
        .map(|key| {
            let values = own.iter().filter(|(other, _)| other == key);
            let values: BTreeSet<&str> = values.map(|(_, value)| value.as_str()).collect();
            let values: Vec<&str> = values.into_iter().collect();
            (key.clone(), values.join(BETWEEN).into())
        })
        .collect()
}

fn device(host: &HostFacts, one: &Interface) -> Vec<(Key, String)> {
    let mut facts = Vec::new();
    let mut put =
        |key: Key, value: Option<String>| facts.extend(value.map(|value| (key.clone(), value)));
    if let Some(driver) = one.driver.known() {
        put(Key::of(Subject::Driver), Some(driver.name.clone()));
        // `ethtool_get_drvinfo` of net/ethtool/ioctl.c reports the kernel's release for drivers without a version.
        let kernel = host.system.kernel.known();
        let version = driver.version.clone();
        put(
            Key::of(Subject::DriverVersion),
            version.filter(|version| Some(version) != kernel),
        );
        put(Key::of(Subject::Firmware), driver.firmware.clone());
    }
    for (name, feature) in one.features.known().into_iter().flatten() {
        let word = if feature.on { "on" } else { "off" };
        put(Key::named(Subject::Offload, name), Some(word.to_owned()));
    }
    let number = |value: u32| Some(value.to_string());
    if let Some(rings) = one.rings.known() {
        put(Key::named(Subject::Ring, "rx"), number(rings.rx));
        put(Key::named(Subject::Ring, "tx"), number(rings.tx));
    }
    facts.extend(coalescing(one));
    facts.extend(queues(host, one));
    facts
}

/// The values of an adaptive side are the driver's choice of the moment, which some drivers report.
fn coalescing(one: &Interface) -> Vec<(Key, String)> {
    let Some(all) = one.coalescing.known() else {
        return Vec::new();
    };
    let sides = [
        ("rx", all.adaptive_rx, all.rx_usecs, all.rx_frames),
        ("tx", all.adaptive_tx, all.tx_usecs, all.tx_frames),
    ];
    let key = |side: &str, what: &str| Key::named(Subject::Coalescing, &format!("{side}-{what}"));
    sides
        .into_iter()
        .flat_map(|(side, adaptive, usecs, frames)| {
            if adaptive {
                return vec![(key(side, "adaptive"), "on".to_owned())];
            }
            vec![
                (key(side, "adaptive"), "off".to_owned()),
                (key(side, "usecs"), usecs.to_string()),
                (key(side, "frames"), frames.to_string()),
            ]
        })
        .collect()
}

fn queues(host: &HostFacts, one: &Interface) -> Vec<(Key, String)> {
    let counts = match one.channels.known() {
        Some(Channels {
            rx, tx, combined, ..
        }) => vec![
            ("rx", Some(*rx)),
            ("tx", Some(*tx)),
            ("combined", Some(*combined)),
        ],
        None => vec![
            ("rx", one.rx_queues.known().copied()),
            ("tx", one.tx_queues.known().copied()),
        ],
    };
    let counts = counts
        .into_iter()
        .filter_map(|(name, count)| Some((name, count?.to_string())));
    // irqbalance moves interrupts every ten seconds: that it does is what is set.
    let keeper = host.keepers.iter().find(|one| one.name == "irqbalance");
    let interrupts = match keeper.map(|keeper| &keeper.running) {
        Some(Fact::Known(true)) => one
            .queue_interrupts()
            .map(|_| "chosen by irqbalance".to_owned()),
        Some(Fact::Unknown { unknown }) => Err(unknown.clone()),
        Some(Fact::Known(false)) | None => one.irq_cpus(),
    };
    let cpus = [
        ("rps-cpus", one.rps_cpus()),
        ("xps-cpus", one.xps_cpus()),
        ("irq-cpus", interrupts),
    ];
    let cpus = cpus
        .into_iter()
        .filter_map(|(name, cpus)| Some((name, cpus.ok()?)));
    counts
        .chain(cpus)
        .map(|(name, value)| (Key::named(Subject::Queues, name), value))
        .collect()
}

/// The kinds from the root on, each once: `mq fq_codel`; a rate that somebody set belongs to it.
fn qdiscs(one: &Interface) -> Option<String> {
    let mut kinds: Vec<String> = Vec::new();
    for qdisc in one.qdiscs.known()? {
        let rate = qdisc.rate_bps.or(qdisc.flow_max_rate_bps);
        let word = match rate {
            Some(rate) => format!("{} ({rate} bit/s)", qdisc.kind),
            None => qdisc.kind.clone(),
        };
        if !kinds.contains(&word) {
            kinds.push(word);
        }
    }
    (!kinds.is_empty()).then(|| kinds.join(" "))
}
