//! What a path did, for people.

use std::fmt::Write as _;

use linerate_lab::path::{ClassCounters, Counters};
use linerate_lab::runner::{LabReport, Passed};
use linerate_lab::scenario::{Mode, Scenario};
use linerate_model::units::{Bytes, grouped};

/// What the path was, did, and how well.
pub(super) fn report(scenario: &Scenario, lab: &LabReport) -> String {
    let mut out = String::new();
    let force = &lab.in_force;
    let mode = match force.mode {
        Mode::Packet => "packet by packet",
        Mode::Bulk => "in bulk (odds count per segment)",
    };
    let _ = writeln!(
        out,
        "Path        {}: {}\n            {} ({}), {mode}, seed {}",
        scenario.name, scenario.about, force.engine, force.queued_by, force.seed
    );
    for (name, passed) in [("forward", &lab.path.forward), ("back", &lab.path.back)] {
        direction(&mut out, name, passed);
    }
    for (name, host) in &force.hosts {
        let setting = |key: &str| host.settings.get(key).map_or("unknown", String::as_str);
        let mtu = host.mtu.map_or("unknown".to_owned(), |mtu| mtu.to_string());
        let _ = writeln!(
            out,
            "  {name:<16} {}, MTU {mtu}, tcp_rmem {}, tcp_wmem {}",
            host.route_congestion,
            setting("net.ipv4.tcp_rmem"),
            setting("net.ipv4.tcp_wmem")
        );
        for (key, asked) in &host.refused {
            let _ = writeln!(
                out,
                "    {key} was asked to be {asked} and is {}",
                setting(key)
            );
        }
    }
    if lab.bottleneck.is_empty() {
        out.push_str("The lab kept pace with what it was asked for.\n");
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
        "  {:<16} {queue}left late by {} (median), {} (99 %), {} (most)",
        "", late.median, late.p99, late.most
    );
}

fn traffic(of: &ClassCounters) -> String {
    let mut text = format!(
        "{} in {} packets",
        Bytes(of.offered.bytes),
        grouped(of.offered.segments)
    );
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
