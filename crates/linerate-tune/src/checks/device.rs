//! The device and its offloads: N01, N02, N03, N04, N05, N06, N07, P01, P02, V01.

use linerate_model::audit::Advised;
use linerate_model::host::{Feature, Interface, Pcie};
use linerate_model::tuning::InterfaceSetting;
use linerate_model::units::BitRate;

use super::links::{missed, summed};
use super::qdiscs::counted;
use crate::case::{Advice, Answer, Case, Rise, does_not_apply, holds};

/// N01
pub(crate) fn receive_ring(case: &Case<'_>, interface: &Interface) -> Answer {
    let rings = *interface.rings.ask()?;
    match missed(case, interface)? {
        Rise::Still => holds(format!("it missed nothing with {} descriptors", rings.rx)),
        Rise::Rose(more) => ring(
            interface,
            InterfaceSetting::RxRing,
            rings.rx,
            rings.rx_max,
            &format!("missed {more} packets"),
        ),
    }
}

/// N02
pub(crate) fn transmit_ring(case: &Case<'_>, interface: &Interface) -> Answer {
    let rings = *interface.rings.ask()?;
    let name = interface.name.as_str();
    let rise = case.rise(&format!("stops of {name}'s transmit queues"), |facts| {
        let of_queues = |counter: &str| {
            let parts = [
                "queue_stopped",
                "restart_queue",
                "tx_stop",
                "tx_busy",
                "queue_stop",
            ];
            counter.contains("tx") && parts.iter().any(|part| counter.contains(part))
        };
        let absent = "its driver does not count when a queue stops";
        summed(facts, name, of_queues, absent)
    })?;
    match rise {
        Rise::Still => holds(format!(
            "its queues never stopped with {} descriptors",
            rings.tx
        )),
        Rise::Rose(more) => ring(
            interface,
            InterfaceSetting::TxRing,
            rings.tx,
            rings.tx_max,
            &format!("stopped its queues {more} times"),
        ),
    }
}

fn ring(
    interface: &Interface,
    setting: InterfaceSetting,
    now: u32,
    most: u32,
    what: &str,
) -> Answer {
    let side = if setting == InterfaceSetting::RxRing {
        "rx"
    } else {
        "tx"
    };
    let name = &interface.name;
    if now >= most {
        return holds(format!(
            "it {what} during the observation, and its {side} ring of {now} is already at the maximum"
        ));
    }
    Advice::new(format!(
        "{name} {what} during the observation with a {side} ring of {now} (maximum: {most})"
    ))
    .interface(
        name,
        setting,
        now.saturating_mul(2).min(most),
        "double it and measure again, up to the maximum",
    )
    .now(now)
    .fires()
}

/// N03
pub(crate) fn channels(case: &Case<'_>, interface: &Interface) -> Answer {
    let channels = *interface.channels.ask()?;
    let combined = channels.combined_max > 0;
    let (now, most) = if combined {
        (channels.combined, channels.combined_max)
    } else {
        (channels.rx, channels.rx_max)
    };
    if most < 2 {
        return holds("the device has one channel");
    }
    let cpus = u32::try_from(case.local_cpus(interface)?.count()).unwrap_or(u32::MAX);
    let wanted = most.min(cpus).max(1);
    if now == wanted {
        return holds(format!(
            "{now} channels for {cpus} local CPUs (maximum: {most})"
        ));
    }
    let cost = if now < wanted {
        "some CPUs that could process packets are unused"
    } else {
        "queues share CPUs, some on another NUMA node"
    };
    let advised = if combined {
        Advised::interface(
            interface.name.clone(),
            InterfaceSetting::Channels,
            wanted.to_string(),
        )
    } else {
        Advised::by_hand(
            format!("ethtool -L {} rx", interface.name),
            wanted.to_string(),
        )
    };
    Advice::new(format!(
        "{} has {now} channels for {cpus} local CPUs (maximum: {most}): {cost}",
        interface.name
    ))
    .change(advised, "one channel for each CPU of the device's node")
    .now(now)
    .fires()
}

/// Whether a small number of microseconds is a driver's name for an algorithm that adapts: Intel's read it so
/// (`*_get_coalesce` in drivers/net/ethernet/intel/{e1000,e1000e,igb,igc,ixgbe}).
fn adapts(driver: &str, rx_usecs: u32) -> bool {
    match driver {
        "e1000" | "e1000e" => [1, 3, 4].contains(&rx_usecs),
        "igb" | "igbvf" | "igc" => [1, 3].contains(&rx_usecs),
        "ixgbe" | "ixgbevf" => rx_usecs == 1,
        _ => false,
    }
}

/// N04
pub(crate) fn coalescing(_: &Case<'_>, interface: &Interface) -> Answer {
    const LEAST: u32 = 8;
    let now = *interface.coalescing.ask()?;
    let driver = interface
        .driver
        .known()
        .map_or("", |driver| driver.name.as_str());
    if driver == "virtio_net" && !now.adaptive_rx && now.rx_usecs == 0 {
        return Err("whether this virtio device supports coalescing (VIRTIO_NET_F_NOTF_COAL) shows only when it is set".to_owned());
    }
    if now.adaptive_rx || adapts(driver, now.rx_usecs) {
        return holds("the driver uses adaptive coalescing");
    }
    if now.rx_usecs >= LEAST {
        return holds(format!("coalescing is {} µs", now.rx_usecs));
    }
    Advice::new(format!(
        "interrupt coalescing of {} is {} µs and not adaptive: nearly one interrupt per packet",
        interface.name, now.rx_usecs
    ))
    .by_hand(
        format!("ethtool -C {} adaptive-rx", interface.name),
        "on; if the driver does not support it, rx-usecs 32 to 84",
        "0 µs was worse than 32 µs in measurements",
    )
    .now("off")
    .fires()
}

fn feature(interface: &Interface, name: &str) -> Result<Option<Feature>, String> {
    Ok(interface.features.ask()?.get(name).copied())
}

/// N05
pub(crate) fn offloads(_: &Case<'_>, interface: &Interface) -> Answer {
    use InterfaceSetting as S;
    // Checksums are no setting of a plan.
    const WANTED: [(&str, &str, Option<S>); 6] = [
        ("tx-tcp-segmentation", "tso", Some(S::Tso)),
        ("tx-generic-segmentation", "gso", Some(S::Gso)),
        ("rx-gro", "gro", Some(S::Gro)),
        ("tx-checksum-ip-generic", "tx", None),
        ("tx-checksum-ipv4", "tx", None),
        ("rx-checksum", "rx", None),
    ];
    let mut off = Vec::new();
    for (name, short, setting) in WANTED {
        let there = feature(interface, name)?;
        // A device has one of the two checksums.
        if there.is_some_and(|feature| !feature.on && !feature.fixed)
            && !off.contains(&(short, setting))
        {
            off.push((short, setting));
        }
    }
    let generic = feature(interface, "tx-checksum-ip-generic")?;
    let version4 = feature(interface, "tx-checksum-ipv4")?;
    if [generic, version4]
        .into_iter()
        .flatten()
        .any(|feature| feature.on)
    {
        off.retain(|(short, _)| *short != "tx");
    }
    // The kernel drops segmentation again where a device cannot gather, and the device's own besides where it cannot
    // sum (netdev_fix_features, net/core/dev.c): that is how the device is, and nothing to switch.
    let never = |name: &str| -> Result<bool, String> {
        Ok(feature(interface, name)?.is_some_and(|feature| !feature.on && feature.fixed))
    };
    let gathers = !never("tx-scatter-gather")?;
    let sums = !(never("tx-checksum-ip-generic")? && never("tx-checksum-ipv4")?);
    let before = off.len();
    off.retain(|(_, setting)| match setting {
        Some(S::Tso) => gathers && sums,
        Some(S::Gso) => gathers,
        _ => true,
    });
    if off.is_empty() && before > 0 {
        return holds(
            "segmentation offload cannot be enabled: the device has no scatter-gather or checksum offload (fixed)",
        );
    }
    if off.is_empty() {
        return holds("segmentation, merging and checksums are the device's or the stack's");
    }
    let names: Vec<&str> = off.iter().map(|(short, _)| *short).collect();
    let mut advice = Advice::new(format!(
        "{} has {} off: the CPU segments, merges or checksums every packet",
        interface.name,
        names.join(", ")
    ));
    for (short, setting) in off {
        let name = &interface.name;
        let advised = match setting {
            Some(setting) => Advised::interface(name.clone(), setting, "on"),
            None => Advised::by_hand(format!("ethtool -K {name} {short}"), "on"),
        };
        advice = advice.change(advised, "it can be switched on").now("off");
    }
    advice.fires()
}

/// N06
pub(crate) fn large_receive(case: &Case<'_>, interface: &Interface) -> Answer {
    let on = feature(interface, "rx-lro")?.is_some_and(|feature| feature.on);
    if !on {
        return holds("LRO is off");
    }
    let bridged = interface.master.as_deref().is_some_and(|master| {
        let master = case.facts.interface(master);
        master.is_some_and(|master| master.kind == "bridge")
    });
    let forwards = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"]
        .iter()
        .map(|key| case.number(key))
        .find(|value| value.as_ref().is_ok_and(|value| *value != 0));
    let why = match (bridged, forwards) {
        (true, _) => "it is a port of a bridge",
        (false, Some(_)) => "this host forwards",
        (false, None) => {
            // Not known is not off.
            case.number("net.ipv4.ip_forward")?;
            return holds("LRO is on, and nothing is forwarded");
        }
    };
    Advice::new(format!(
        "{} merges packets with LRO and {why}: merged packets cannot be forwarded",
        interface.name
    ))
    .interface(
        &interface.name,
        InterfaceSetting::Lro,
        "off",
        "packets merged by GRO can be split again",
    )
    .now("on")
    .fires()
}

/// N07
pub(crate) fn big_segments(case: &Case<'_>, interface: &Interface) -> Answer {
    const CLASSIC: u32 = 65_536;
    if case.capacity(interface)? < BitRate(100_000_000_000) {
        return does_not_apply("it pays off from 100 Gbit/s");
    }
    let most = *interface.tso_max_size.ask()?;
    let (gso, gro) = (
        *interface.gso_max_size.ask()?,
        *interface.gro_max_size.ask()?,
    );
    if gso > CLASSIC && gro > CLASSIC || most <= CLASSIC {
        return holds(format!(
            "gso_max_size {gso}, gro_max_size {gro} (the device: {most})"
        ));
    }
    Advice::new(format!(
        "{}: gso_max_size is {gso} and gro_max_size {gro} bytes; the device supports {most}",
        interface.name
    ))
    .by_hand(
        format!("gso_max_size, gro_max_size of {}", interface.name),
        most,
        "BIG TCP: compare both in alternating runs; it does not always gain",
    )
    .now(gso)
    .fires()
}

/// Bits of payload of a second over a PCI Express link: 128 of 130 bits are data from 8 GT/s on, 8 of 10
/// below; headers and flow control leave about 85 % of that.
fn carries(speed_mts: u32, width: u32) -> f64 {
    let coding = if speed_mts >= 8000 {
        128.0 / 130.0
    } else {
        0.8
    };
    f64::from(speed_mts) * 1e6 * f64::from(width) * coding * 0.85
}

/// P01
pub(crate) fn slot(case: &Case<'_>, interface: &Interface) -> Answer {
    let Some(link) = *interface.pcie.ask()? else {
        return does_not_apply("it has no PCI Express link");
    };
    let Pcie {
        speed_mts,
        width,
        max_speed_mts,
        max_width,
    } = link;
    let gts = |mts: u32| f64::from(mts) / 1000.0;
    let now = carries(speed_mts, width);
    let text = format!(
        "PCI Express {} GT/s × {width} carries {}",
        gts(speed_mts),
        BitRate(linerate_model::units::whole(now))
    );
    let ports = ports(case, interface)?;
    let less = speed_mts < max_speed_mts || width < max_width;
    let short = now < ports.0 as f64;
    if !less && !short {
        return holds(format!("{text}, and the card's ports {ports}"));
    }
    let cost = if short {
        format!("less than the {ports} of the card's ports")
    } else {
        format!("enough for the card's ports ({ports})")
    };
    Advice::new(format!(
        "{text}, {cost}; the device supports {} GT/s × {max_width}",
        gts(max_speed_mts)
    ))
    .severity(if short { 1 } else { 3 })
    .by_hand(
        format!("slot of {}", interface.name),
        format!("{} GT/s × {max_width}", gts(max_speed_mts)),
        "use another slot, or reseat the card",
    )
    .now(format!("{} GT/s × {width}", gts(speed_mts)))
    .fires()
}

/// What all ports of an interface's card can carry: those whose bus address differs in the function only.
fn ports(case: &Case<'_>, interface: &Interface) -> Result<BitRate, String> {
    let card = |interface: &Interface| {
        let bus = interface.driver.known()?.bus.clone()?;
        bus.rsplit_once('.').map(|(card, _)| card.to_owned())
    };
    let own = card(interface);
    let best = |interface: &Interface| {
        let link = interface.link.known()?;
        link.best_supported_mbps.max(link.speed_mbps)
    };
    best(interface).ok_or_else(|| format!("{} states no speed", interface.name))?;
    let same =
        |other: &&Interface| other.name == interface.name || own.is_some() && card(other) == own;
    let all = case.facts.interfaces.known().into_iter().flatten();
    let mbps: u64 = all.filter(same).filter_map(best).map(u64::from).sum();
    Ok(BitRate(mbps * 1_000_000))
}

/// P02
pub(crate) fn iommu(case: &Case<'_>) -> Answer {
    let line = case.facts.system.command_line.ask()?;
    let has = |word: &str| line.split(' ').any(|one| one == word);
    if !has("intel_iommu=on") && !has("amd_iommu=on") && !has("iommu=force") {
        return holds("the command line switches no IOMMU on");
    }
    if has("iommu=pt") {
        return holds("iommu=pt");
    }
    let rate = case
        .interfaces
        .iter()
        .filter_map(|interface| case.capacity(interface).ok())
        .max();
    let rate = match rate {
        Some(rate) => rate,
        None => case.rate()?,
    };
    if rate < BitRate(40_000_000_000) {
        return holds(format!(
            "the IOMMU translates addresses; acceptable at {rate}"
        ));
    }
    Advice::new(format!(
        "the IOMMU translates every packet's address, at {rate}"
    ))
    .by_hand(
        "kernel command line",
        "iommu=pt",
        "the host's own devices bypass the translation",
    )
    .now("iommu without pt")
    .fires()
}

/// V01
pub(crate) fn allowance(case: &Case<'_>, interface: &Interface) -> Answer {
    let driver = &interface.driver.ask()?.name;
    if driver != "ena" {
        return does_not_apply("only Amazon's ENA reports packets that the host dropped");
    }
    let name = interface.name.as_str();
    let rise = case.rise("packets over the instance's allowance", |facts| {
        let exceeded = |counter: &str| counter.ends_with("_allowance_exceeded");
        summed(
            facts,
            name,
            exceeded,
            "this version of ena does not count them",
        )
    })?;
    match rise {
        Rise::Still => holds("within the instance's allowance"),
        Rise::Rose(more) => Advice::new(format!(
            "{name}: {} exceeded the instance's allowance during the observation",
            counted(usize::try_from(more).unwrap_or(usize::MAX), "packet")
        ))
        .by_hand(
            "instance type",
            "a larger one",
            "no setting in the guest changes it",
        )
        .fires(),
    }
}
