//! What a path did, for people.

use std::fmt::Write as _;

use linerate_lab::path::{ClassCounters, Counters};
use linerate_lab::runner::{Account, LabReport, Passed, Shaped};
use linerate_lab::scenario::{Mode, Scenario};
use linerate_model::units::{Bytes, grouped};
use linerate_model::words;

/// Of the kernel's disciplines, instead of a word that the lab kept pace.
const UNKNOWN_LATENESS: &str = "It is not known how late packets left, nor whether the lab kept up: the kernel's \
    qdiscs do not report it.\n";

/// What the path was, did, and how well.
pub(super) fn report(scenario: &Scenario, lab: &LabReport) -> String {
    let mut out = String::new();
    let force = &lab.in_force;
    let mode = match (force.mode, scenario.resolved_mode()) {
        // Only netem, which has no other mode.
        (Mode::Packet, Mode::Bulk) => "packet by packet (by packet queues it would be in bulk)",
        (Mode::Packet, Mode::Packet) => "packet by packet",
        (Mode::Bulk, _) => "bulk mode (probabilities apply per segment)",
    };
    let _ = writeln!(
        out,
        "Path        {}{}\n            {}, {mode}, seed {}",
        scenario.name,
        match scenario.about.as_str() {
            "" => String::new(),
            about => format!(": {about}"),
        },
        match force.queued_by {
            Some(by) => format!("{} ({by})", force.engine),
            None => force.engine.to_owned(),
        },
        force.seed
    );
    if let Some(why) = &force.instead {
        let _ = writeln!(out, "            because NFQUEUE is not available: {why}");
    }
    match &lab.path {
        Account::Queues(path) => {
            direction(&mut out, "forward", &path.forward);
            direction(&mut out, "back", &path.back);
        }
        Account::Disciplines(path) => {
            for (name, shaped) in [("forward", &path.forward), ("back", &path.back)] {
                let _ = writeln!(out, "  {name:<16} {}", counted(shaped));
            }
        }
    }
    for (name, host) in &force.hosts {
        let setting = |key: &str| host.settings.get(key).map_or("unknown", String::as_str);
        let mtu = host.mtu.map_or("unknown".to_owned(), |mtu| mtu.to_string());
        let _ = writeln!(
            out,
            "  {name:<16} {}, MTU {mtu}, tcp_rmem {}, tcp_wmem {}",
            host.route_congestion.as_deref().unwrap_or("unknown"),
            setting("net.ipv4.tcp_rmem"),
            setting("net.ipv4.tcp_wmem")
        );
        if let Some(cpu) = host.cpu {
            let used = cpu
                .used
                .map_or("unknown".to_owned(), |used| format!("{used:.2}"));
            let _ = writeln!(
                out,
                "    its program was to have {} of a CPU: the weights make {:.2}, and it used {used}",
                cpu.asked, cpu.weights
            );
        }
        for (key, asked) in &host.refused {
            let _ = writeln!(out, "    {key} was set to {asked} but is {}", setting(key));
        }
    }
    if let Some(peak) = lab.memory_peak {
        let _ = writeln!(out, "  {:<16} peak memory {peak}", "the lab itself");
    }
    if !lab.other_labs.is_empty() {
        let _ = writeln!(
            out,
            "{} other labs ran on this machine's CPUs, which makes this one late at times.",
            lab.other_labs.len()
        );
    }
    if matches!(lab.path, Account::Disciplines(_)) {
        out.push_str(UNKNOWN_LATENESS);
    } else if lab.bottleneck.is_empty() {
        out.push_str("The lab kept up with the path's rate and delay.\n");
    }
    for reason in &lab.bottleneck {
        let _ = writeln!(
            out,
            "The lab itself may have been the bottleneck: {reason}."
        );
    }
    out
}

fn direction(out: &mut String, name: &str, passed: &Passed) {
    let counters = &passed.counters;
    for (class, of) in [("", &counters.ours), (", competing", &counters.cross)] {
        if of.offered.packets > 0 {
            let title = format!("{name}{class}");
            let _ = writeln!(out, "  {title:<16} {}", traffic(of));
        }
    }
    let queue = queue(counters);
    let late = passed.lateness;
    let _ = writeln!(
        out,
        "  {:<16} {queue}delivered late by {} (median), {} (p99), {} (max)",
        "", late.median, late.p99, late.most
    );
}

/// What the kernel's disciplines tell of a direction.
fn counted(shaped: &Shaped) -> String {
    let Some(packets) = shaped.delivered_packets else {
        return "it has no limits, and nothing counts its packets".to_owned();
    };
    let bytes = words::with(shaped.delivered_bytes, |bytes| {
        format!("{} in ", Bytes(bytes))
    });
    let mut text = format!(
        "{}: {bytes}{} packets left",
        shaped.disciplines.join(" and "),
        grouped(packets)
    );
    for (what, count) in [
        ("lost", shaped.lost),
        ("dropped by the full queue", shaped.queue_dropped),
        ("still in flight", shaped.held_packets),
    ] {
        if let Some(count) = count.filter(|count| *count > 0) {
            let _ = write!(text, ", {} {what}", grouped(count));
        }
    }
    if let Some(burst) = shaped.burst {
        let _ = write!(text, "; a rest lets {burst} pass at once");
    }
    text
}

fn traffic(of: &ClassCounters) -> String {
    let mut text = format!(
        "{} in {} packets arrived, ",
        Bytes(of.offered.bytes),
        grouped(of.offered.segments)
    );
    if of.delivered.segments == of.offered.segments {
        text.push_str("all delivered");
    } else {
        let _ = write!(text, "{} delivered", grouped(of.delivered.segments));
    }
    let drops = &of.dropped;
    for (what, tally) in [
        ("dropped by the full queue", drops.queue),
        ("dropped by the policer", drops.policer),
        ("lost", drops.loss),
        ("dropped by CoDel", drops.codel),
        ("too big", drops.too_big),
        ("marked", of.marked),
        ("duplicated", of.duplicated),
        ("overtaken", of.overtaken),
        ("cut", of.fragmented),
        ("still in flight", of.held),
    ] {
        if tally.packets > 0 {
            let _ = write!(text, ", {} {what}", grouped(tally.segments));
        }
    }
    text
}

fn queue(counters: &Counters) -> String {
    let longest = counters
        .ours
        .queue_time_max
        .max(counters.cross.queue_time_max);
    if counters.queue_bytes_max == Bytes(0) {
        return String::new();
    }
    format!("queue up to {}, {longest}; ", counters.queue_bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_lab::path::Tally;

    #[test]
    fn what_no_discipline_counts_is_not_told_as_nothing() {
        let mut shaped = Shaped::default();
        assert!(counted(&shaped).contains("nothing counts"));
        shaped = Shaped {
            disciplines: vec!["netem", "tbf"],
            burst: Some(Bytes(4096)),
            delivered_packets: Some(1000),
            lost: Some(7),
            queue_dropped: Some(0),
            ..shaped
        };
        assert_eq!(
            counted(&shaped),
            "netem and tbf: 1,000 packets left, 7 lost; a rest lets 4.00 KiB pass at once"
        );
    }

    #[test]
    fn what_came_is_told_apart_from_what_was_delivered() {
        let tally = |packets| Tally {
            packets,
            segments: packets,
            bytes: packets * 1500,
        };
        let mut of = ClassCounters {
            offered: tally(1000),
            delivered: tally(1000),
            ..ClassCounters::default()
        };
        assert_eq!(
            traffic(&of),
            "1.43 MiB in 1,000 packets arrived, all delivered"
        );
        of.delivered = tally(900);
        of.dropped.queue = tally(60);
        of.held = tally(40);
        assert_eq!(
            traffic(&of),
            "1.43 MiB in 1,000 packets arrived, 900 delivered, 60 dropped by the full queue, 40 still in flight"
        );
    }
}
