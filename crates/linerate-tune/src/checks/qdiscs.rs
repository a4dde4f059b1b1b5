//! Queueing disciplines: Q01, Q02, Q05, Q06, N09.

use linerate_model::audit::{Advised, Risk, Role};
use linerate_model::host::{Interface, Qdisc};
use linerate_model::tuning::InterfaceSetting;
use linerate_model::units::BitRate;

use super::tcp::CONTROL;
use crate::case::{Advice, Answer, Case, Place, Rise, does_not_apply, holds, speed_mbps};

/// Disciplines that hold no more than the device's transmit queue length, packets (`net/sched/sch_generic.c`,
/// `sch_fifo.c`).
const BY_LENGTH: [&str; 3] = ["pfifo_fast", "pfifo", "bfifo"];

fn leaves(interface: &Interface) -> Result<Vec<&Qdisc>, String> {
    let qdiscs = interface.qdiscs.ask()?;
    Ok(qdiscs.iter().filter(|qdisc| qdisc.leaf).collect())
}

fn root(interface: &Interface) -> Result<&Qdisc, String> {
    let qdiscs = interface.qdiscs.ask()?;
    qdiscs
        .iter()
        .find(|qdisc| qdisc.parent == "root")
        .ok_or_else(|| format!("{} shows no qdisc", interface.name))
}

fn no_queue(leaves: &[&Qdisc]) -> bool {
    leaves.iter().all(|leaf| leaf.kind == "noqueue")
}

/// Disciplines that somebody set to hold a rate, or to delay.
const SHAPES: [&str; 7] = ["cake", "tbf", "htb", "hfsc", "netem", "taprio", "etf"];

/// Q01
pub(crate) fn pacing(case: &Case<'_>, interface: &Interface) -> Answer {
    if case.target.role == Role::Server {
        return does_not_apply("pacing is for few large flows");
    }
    let leaves = leaves(interface)?;
    if leaves.is_empty() || no_queue(&leaves) {
        return does_not_apply("it queues nothing (noqueue)");
    }
    if let Some(leaf) = leaves
        .iter()
        .find(|leaf| SHAPES.contains(&leaf.kind.as_str()))
    {
        return does_not_apply(format!(
            "{} shapes outgoing traffic, presumably on purpose",
            leaf.kind
        ));
    }
    let other: Vec<&&Qdisc> = leaves.iter().filter(|leaf| leaf.kind != "fq").collect();
    let Some(first) = other.first() else {
        return holds(format!("fq on {}", counted(leaves.len(), "queue")));
    };
    let several = root(interface)?.kind == "mq";
    let name = &interface.name;
    let kinds = if leaves.len() == 1 {
        format!("{} is {}", name, first.kind)
    } else {
        format!(
            "{} of {} queues of {name} do not use fq ({})",
            other.len(),
            leaves.len(),
            first.kind
        )
    };
    let bbr = case
        .text(CONTROL)
        .is_ok_and(|control| control.starts_with("bbr"));
    let own = if bbr {
        "; bbr paces itself, with a timer for each connection"
    } else {
        ""
    };
    Advice::new(format!(
        "{kinds}: bursts leave at line rate and overflow the first small buffer on the path{own}"
    ))
    .severity(if bbr { 3 } else { 2 })
    .risk(Risk::QueueReset)
    .change(
        if several {
            Advised::EachQueue {
                interface: name.to_owned(),
                kind: "fq",
            }
        } else {
            Advised::interface(name, InterfaceSetting::Qdisc, "fq")
        },
        if several {
            "fq on mq's leaves; `tc qdisc replace dev … root fq` would replace them by one queue"
        } else {
            "it paces each flow (SO_MAX_PACING_RATE, TCP's own pacing)"
        },
    )
    .now(&first.kind)
    .sysctl(
        "net.core.default_qdisc",
        "fq",
        "applies to qdiscs created from now on",
    )
    .now_where_known(case.text("net.core.default_qdisc").ok())
    .fires()
}

/// Q02
pub(crate) fn multiqueue(case: &Case<'_>, interface: &Interface) -> Answer {
    const FROM: BitRate = BitRate(25_000_000_000);
    let root = root(interface)?;
    let queues = *interface.tx_queues.ask()?;
    let in_use = interface
        .channels
        .known()
        .map_or(queues, |channels| channels.combined.max(channels.tx).max(1));
    if root.kind == "mq" || in_use < 2 || root.kind == "noqueue" {
        return holds(format!(
            "the root is {} over {}",
            root.kind,
            counted(usize::try_from(in_use).unwrap_or(usize::MAX), "queue")
        ));
    }
    let capacity = case.capacity(interface)?;
    if capacity < FROM {
        return holds(format!("one {} is enough for {capacity}", root.kind));
    }
    Advice::new(format!(
        "the root of {} is {}: one lock for all of its {in_use} queues, at {capacity}",
        interface.name, root.kind
    ))
    .by_hand(
        format!("qdisc of {}", interface.name),
        "mq with fq on each leaf",
        "a queue and a lock for each channel",
    )
    .now(&root.kind)
    .fires()
}

/// Q05
pub(crate) fn bucket(case: &Case<'_>, interface: &Interface) -> Answer {
    let qdiscs = interface.qdiscs.ask()?;
    let Some((qdisc, rate)) = qdiscs
        .iter()
        .find_map(|qdisc| Some((qdisc, BitRate(qdisc.rate_bps?))))
    else {
        return does_not_apply("it has no tbf");
    };
    let speed = speed_mbps(interface).map(|mbps| BitRate(u64::from(mbps) * 1_000_000));
    let beyond_link = speed.as_ref().is_ok_and(|speed| rate > *speed);
    // 8 times: somebody wrote `mbps`, which tc takes as megabytes.
    let eightfold = case
        .rate()
        .is_ok_and(|plan| rate.0 >= plan.0.saturating_mul(8));
    if !beyond_link && !eightfold {
        let why = speed.err().filter(|_| case.rate().is_err());
        return match why {
            Some(why) => Err(format!(
                "tbf's rate is {rate}; {why}, and no --rate is given"
            )),
            None => holds(format!("tbf's rate is {rate}")),
        };
    }
    let than = match speed {
        Ok(speed) if beyond_link => format!("the link's {speed}"),
        _ => format!("8 × the plan's {}", case.rate()?),
    };
    let sentence = format!(
        "tbf on {} has a rate of {rate}, not below {than}: it has no effect. tc's `mbps` is megabytes per second, \
         `mbit` is megabits per second",
        interface.name
    );
    Advice::new(sentence)
        .by_hand(
            format!("tbf {} of {}", qdisc.handle, interface.name),
            BitRate(rate.0 / 8).to_string(),
            "an eighth: bits instead of bytes",
        )
        .now(rate)
        .fires()
}

/// Q06
pub(crate) fn drops(case: &Case<'_>, interface: &Interface) -> Answer {
    let name = interface.name.as_str();
    let rise = case.rise(&format!("drops of {name}'s qdiscs"), |facts| {
        let there = facts.interface(name).ok_or("the interface is not there")?;
        Ok(leaves(there)?.iter().map(|leaf| leaf.drops).sum())
    })?;
    match rise {
        Rise::Still => holds("its queues dropped nothing"),
        Rise::Rose(more) => {
            let kind = leaves(interface)?
                .iter()
                .max_by_key(|leaf| leaf.drops)
                .map_or_else(String::new, |leaf| leaf.kind.clone());
            Advice::new(format!(
                "{kind} on {name} dropped {more} packets during the observation"
            ))
            .by_hand(
                format!("{kind} of {name}: limit, flow_limit"),
                "twice the present value",
                "then measure again: drops on this host count as loss too",
            )
            .fires()
        }
    }
}

/// N09
pub(crate) fn length(case: &Case<'_>, interface: &Interface) -> Answer {
    const MOST: u32 = 2000;
    const DEFAULT: u32 = 1000;
    let length = *interface.tx_queue_len.ask()?;
    let leaves = leaves(interface)?;
    let counts = leaves
        .iter()
        .any(|leaf| BY_LENGTH.contains(&leaf.kind.as_str()));
    let kind = leaves.first().map_or("nothing", |leaf| leaf.kind.as_str());
    let read = format!("txqueuelen is {length} on {kind}");
    if counts && length <= MOST || !counts && length <= DEFAULT {
        return holds(read);
    }
    let advice = |sentence: String, why: &str| {
        Advice::new(sentence)
            .interface(&interface.name, InterfaceSetting::Txqueuelen, DEFAULT, why)
            .now(length)
    };
    if counts && case.place() != Place::VirtualMachine {
        return advice(
            format!(
                "{read} at {}: this many packets queue before the first drop, which adds delay",
                interface.name
            ),
            "the kernel's default",
        )
        .fires();
    }
    let why = if counts {
        "in a virtual machine the queue of the host behind it decides"
    } else {
        "this qdisc has its own limit and ignores it"
    };
    advice(
        format!("{read} at {}: no effect; {why}", interface.name),
        "no effect either way; use the default to avoid confusion",
    )
    .severity(4)
    .fires()
}

pub(crate) fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
