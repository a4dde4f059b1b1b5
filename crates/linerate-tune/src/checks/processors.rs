//! Which CPU does what: C01, C02, C03, C04, C05, C07, N08.

use std::collections::BTreeMap;

use linerate_model::audit::Advised;
use linerate_model::host::{CpuSet, Interface, Interrupt, QueueSide, is_ban};
use linerate_model::tuning::InterfaceSetting;
use linerate_model::units::grouped;

use crate::case::{Advice, Answer, Case, Rise, does_not_apply, holds};

/// An interrupt with less than this share of its device's is no queue's that matters.
const BUSY_SHARE: f64 = 0.05;

/// Interrupts of the queues that took packets: not those of control, and of a virtio device those that receive.
fn busy<'a>(case: &Case<'_>, interface: &'a Interface) -> Result<Vec<&'a Interrupt>, String> {
    let all = interface.interrupts.ask()?;
    let receives = |one: &&Interrupt| {
        !["config", "output", "async", "mgmt", "fdir"]
            .iter()
            .any(|part| one.name.contains(part))
    };
    let before = |number: u32| {
        let earlier = case.earlier?.interface(&interface.name)?;
        let mut list = earlier.interrupts.known()?.iter();
        list.find(|one| one.number == number).map(|one| one.count)
    };
    let rose = |one: &Interrupt| one.count.saturating_sub(before(one.number).unwrap_or(0));
    let total: u64 = all.iter().filter(receives).map(rose).sum();
    Ok(all
        .iter()
        .filter(receives)
        .filter(|one| rose(one) as f64 > BUSY_SHARE * total as f64)
        .collect())
}

fn where_it_goes(interrupt: &Interrupt) -> Result<&CpuSet, String> {
    interrupt
        .effective
        .ask()
        .or_else(|why| interrupt.allowed.ask().map_err(|_| why))
}

/// C01
pub(crate) fn affinity(case: &Case<'_>, interface: &Interface) -> Answer {
    let nodes = case.facts.processors.nodes.ask()?;
    if nodes.len() < 2 {
        return holds("the machine has one NUMA node");
    }
    let node = interface.numa_node.ask()?;
    let Some(node) = *node else {
        return Err("the firmware does not report the device's NUMA node".to_owned());
    };
    let local = case.local_cpus(interface)?;
    let mut off = Vec::new();
    let busy = busy(case, interface)?;
    for one in &busy {
        if !local.contains_all(where_it_goes(one)?) {
            off.push(one);
        }
    }
    let Some(first) = off.first() else {
        return holds(format!("its interrupts are on NUMA node {node}"));
    };
    Advice::new(format!(
        "{} of {} interrupts of {} go to CPUs outside its NUMA node ({node}): {} to {}",
        off.len(),
        busy.len(),
        interface.name,
        first.name,
        where_it_goes(first)?
    ))
    .by_hand(
        format!("smp_affinity_list of {}'s interrupts", interface.name),
        local,
        format!("the CPUs of node {node}: memory and card are near"),
    )
    .now(where_it_goes(first)?.to_string())
    .fires()
}

/// C02
pub(crate) fn spread(case: &Case<'_>, interface: &Interface) -> Answer {
    let busy = busy(case, interface)?;
    if busy.len() < 2 {
        return holds("no two busy queues");
    }
    let local = case.local_cpus(interface)?;
    let mut by_cpu: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for one in &busy {
        if let [cpu] = where_it_goes(one)?.cpus() {
            by_cpu.entry(*cpu).or_default().push(&one.name);
        }
    }
    let crowded = by_cpu.iter().max_by_key(|(_, names)| names.len());
    let free = local.cpus().iter().any(|cpu| !by_cpu.contains_key(cpu));
    match crowded {
        Some((cpu, names)) if names.len() > 1 && free => Advice::new(format!(
            "{} busy queues of {} use CPU {cpu} for interrupts ({}), while other CPUs handle none",
            names.len(),
            interface.name,
            names.iter().take(4).copied().collect::<Vec<_>>().join(", ")
        ))
        .by_hand(
            format!("smp_affinity_list of {}'s interrupts", interface.name),
            format!("one each of {local}"),
            "one core for a queue",
        )
        .now(cpu)
        .fires(),
        _ => holds(format!(
            "{} busy queues over {} CPUs",
            busy.len(),
            by_cpu.len()
        )),
    }
}

/// C03
pub(crate) fn balancer(case: &Case<'_>) -> Answer {
    let keeper = case
        .facts
        .keepers
        .iter()
        .find(|keeper| keeper.name == "irqbalance")
        .ok_or("whether irqbalance runs was not read")?;
    if !*keeper.running.ask()? {
        return holds("irqbalance does not run");
    }
    let ena = case.interfaces.iter().any(|one| {
        one.driver
            .known()
            .is_some_and(|driver| driver.name == "ena")
    });
    if ena {
        return holds("irqbalance runs, as Amazon advises with ENA");
    }
    if let Some(told) = keeper.told.ask()?.as_ref().filter(|told| is_ban(told)) {
        return holds(format!("irqbalance is configured: {told}"));
    }
    let pinnings = case.facts.pinnings.ask()?;
    let Some(first) = pinnings.first() else {
        return holds("irqbalance runs, and no start-up file pins interrupts");
    };
    Advice::new(format!(
        "{} pins interrupts ({}), but irqbalance moves them again: they are not banned there",
        first.place, first.text
    ))
    .set_by(pinnings.iter().map(|pinning| pinning.place.clone()))
    .by_hand(
        "IRQBALANCE_ARGS",
        "--policyscript with ban=true for the interface's interrupts",
        "one owner for each interrupt",
    )
    .fires()
}

/// C04
pub(crate) fn steering(case: &Case<'_>, interface: &Interface) -> Answer {
    /// More CPUs than this for a queue are many.
    const FAR_FEWER: usize = 4;
    let queues = interface.queues.ask()?;
    let receive: Vec<_> = queues
        .iter()
        .filter(|queue| queue.side == QueueSide::Rx)
        .collect();
    let in_use = interface
        .channels
        .known()
        .map(|channels| channels.combined.max(channels.rx))
        .and_then(|count| usize::try_from(count).ok())
        .filter(|count| *count > 0)
        .unwrap_or(receive.len());
    let local = case.local_cpus(interface)?;
    let mut on = 0;
    for queue in &receive {
        on += usize::from(!queue.cpus.ask()?.is_empty());
    }
    let change = |now: &str, value: String, why: &str, sentence: String| {
        Advice::new(sentence)
            .interface(&interface.name, InterfaceSetting::RpsCpus, value, why)
            .now(now.to_owned())
            .fires()
    };
    if on > 0 && in_use >= local.count() {
        return change(
            "on",
            "off".to_owned(),
            "the device spreads flows itself",
            format!(
                "RPS is on for {on} queues of {}, which has {in_use} queues for {} CPUs: it moves packets between \
                 CPUs without benefit",
                interface.name,
                local.count()
            ),
        );
    }
    if on == 0 && in_use * FAR_FEWER < local.count() {
        return change(
            "off",
            local.to_string(),
            "the CPUs of the device's node share the work behind the interrupt",
            format!(
                "{} has {in_use} receive queues for {} CPUs, and RPS is off: few CPUs do all of the work",
                interface.name,
                local.count()
            ),
        );
    }
    holds(format!(
        "RPS is {} with {in_use} queues for {} CPUs",
        if on > 0 { "on" } else { "off" },
        local.count()
    ))
}

/// C05
pub(crate) fn governor(case: &Case<'_>) -> Answer {
    let governors = case.facts.processors.governors.ask()?;
    let others: Vec<_> = governors
        .iter()
        .filter(|governor| governor.name != "performance")
        .collect();
    let Some(first) = others.first() else {
        return holds("the governor is performance");
    };
    let cpus: usize = others.iter().map(|governor| governor.cpus.count()).sum();
    Advice::new(format!(
        "{cpus} CPUs use the governor {}: they clock down between bursts, and transfers are bursty",
        first.name
    ))
    .change(
        Advised::Governor {
            cpus: first.cpus.clone(),
            name: "performance",
        },
        "no time lost to speeding up",
    )
    .now(&first.name)
    .fires()
}

/// C07
pub(crate) fn squeeze(case: &Case<'_>) -> Answer {
    let rise = case.rise("time squeezes", |facts| {
        let rows = facts.softnet.ask()?;
        Ok(rows.iter().map(|row| u64::from(row.time_squeeze)).sum())
    })?;
    let Rise::Rose(more) = rise else {
        return holds("no CPU ran out of its budget for packets");
    };
    let mut advice = Advice::new(format!(
        "CPUs exhausted the NAPI budget {} times during the observation with packets left",
        grouped(more)
    ));
    for key in ["net.core.netdev_budget", "net.core.netdev_budget_usecs"] {
        let now = case.number(key)?;
        advice = advice
            .sysctl(
                key,
                now.saturating_mul(2),
                "double it and measure again; it costs latency for other work",
            )
            .now(now);
    }
    advice.fires()
}

/// N08
pub(crate) fn spreading_table(case: &Case<'_>, interface: &Interface) -> Answer {
    let one = interface
        .channels
        .known()
        .is_some_and(|channels| channels.combined_max.saturating_add(channels.rx_max) == 1);
    if one {
        return does_not_apply("the device has one receive queue");
    }
    let table = interface.indirection.ask()?;
    if table.len() < 2 {
        return does_not_apply("the device has one receive queue");
    }
    let (least, most) = (table.iter().min(), table.iter().max());
    let (least, most) = (*least.unwrap_or(&0), *most.unwrap_or(&0));
    let rows = table.len();
    let uneven = most > least.saturating_add(1);
    let change = |sentence: String| {
        Advice::new(sentence)
            .by_hand(
                format!("ethtool -X {} equal", interface.name),
                rows,
                "each queue the same share of flows",
            )
            .fires()
    };
    if uneven {
        return change(format!(
            "the RSS table of {} is uneven: {least} to {most} entries per queue",
            interface.name
        ));
    }
    let Some(earlier) = case
        .earlier
        .and_then(|facts| facts.interface(&interface.name))
    else {
        return holds(format!(
            "the table spreads flows equally over {rows} queues"
        ));
    };
    let before = earlier.interrupts.ask()?;
    let rose: Vec<u64> = busy(case, interface)?
        .iter()
        .map(|one| {
            let then = before.iter().find(|other| other.number == one.number);
            one.count.saturating_sub(then.map_or(0, |then| then.count))
        })
        .collect();
    holds(format!(
        "the table spreads flows equally; {} of {rows} queues were busy",
        rose.len()
    ))
}
