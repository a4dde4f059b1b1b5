//! The facts of a host as text: what an engineer wants on one screen, or everything.

use linerate_model::host::{Effect, Fact, HostFacts, Interface, QueueSide, Setting};
use linerate_model::units::Bytes;

use crate::text::layout::Page;
use crate::words::{count, plain};

/// Settings that are shown without `all`.
const MAIN_KEYS: [&str; 8] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.core.default_qdisc",
    "net.ipv4.tcp_mtu_probing",
    "net.core.netdev_max_backlog",
];

/// The facts for people, at most 100 columns wide.
pub fn report(facts: &HostFacts, all: bool) -> String {
    let mut page = Page::default();
    machine(&mut page, facts, all);
    interfaces(&mut page, facts, all);
    settings(&mut page, facts, all);
    traffic(&mut page, facts, all);
    page.finish()
}

/// A value, or why it is not known in brackets.
fn told<T>(fact: &Fact<T>, show: impl FnOnce(&T) -> String) -> String {
    match fact.known() {
        Some(value) => show(value),
        None => format!("unknown ({})", fact.why()),
    }
}

fn text(fact: &Fact<String>) -> String {
    told(fact, Clone::clone)
}

fn machine(page: &mut Page, facts: &HostFacts, all: bool) {
    let system = &facts.system;
    let mut entry = |label: &str, words: String| page.entry(label, &plain(&words));
    entry(
        "Host",
        format!("{}, {}", text(&system.hostname), text(&system.distribution)),
    );
    entry(
        "Kernel",
        format!(
            "Linux {}, {}",
            text(&system.kernel),
            text(&system.architecture)
        ),
    );
    let virtual_machine = told(&system.virtual_machine, |kind| match kind {
        Some(kind) => format!("virtual machine ({kind})"),
        None => "no virtual machine".to_owned(),
    });
    let container = told(&system.container, |kind| match kind {
        Some(kind) => format!("container ({kind})"),
        None => "no container".to_owned(),
    });
    let namespace = match system.first_namespace.known() {
        Some(false) => ", in a network namespace of its own",
        _ => "",
    };
    entry(
        "Runs as",
        format!("{virtual_machine}, {container}{namespace}"),
    );
    let processors = &facts.processors;
    entry(
        "CPUs",
        format!(
            "{}, online {}; {}; governor {}",
            text(&processors.model),
            told(&processors.online, ToString::to_string),
            told(&processors.nodes, |nodes| match nodes.len() {
                1 => "1 node".to_owned(),
                count => format!("{count} nodes"),
            }),
            told(&processors.governors, |list| {
                list.iter()
                    .map(|governor| governor.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            })
        ),
    );
    let group = match system.cgroup_memory_bytes.known() {
        Some(Some(bytes)) => format!(", of which its control group may use {}", Bytes(*bytes)),
        _ => String::new(),
    };
    entry(
        "Memory",
        format!(
            "{}{group}",
            told(&system.memory_bytes, |bytes| Bytes(*bytes).to_string())
        ),
    );
    let running: Vec<&str> = facts
        .keepers
        .iter()
        .filter(|keeper| keeper.running.known() == Some(&true))
        .map(|keeper| keeper.name.as_str())
        .collect();
    if !running.is_empty() {
        entry("Keepers", running.join(", "));
    }
    if all {
        entry("Boot", text(&system.command_line));
    }
}

fn interfaces(page: &mut Page, facts: &HostFacts, all: bool) {
    let Some(list) = facts.interfaces.known() else {
        page.gap();
        page.entry(
            "Interfaces",
            &format!("unknown ({})", plain(facts.interfaces.why())),
        );
        return;
    };
    for one in list.iter().filter(|one| all || one.up) {
        page.gap();
        interface(page, facts, one, all);
    }
    let down = list.iter().filter(|one| !one.up).count();
    if down > 0 && !all {
        page.gap();
        page.entry("Down", &format!("{down} interfaces (--all lists them)"));
    }
}

fn interface(page: &mut Page, facts: &HostFacts, one: &Interface, all: bool) {
    let mut place = vec![one.kind.clone()];
    place.extend(one.vlan.map(|id| format!("id {id}")));
    if let Some(Some(parent)) = one.parent.known() {
        place.push(format!("on {parent}"));
    } else if one.parent.known().is_none() {
        place.push(one.parent.why().to_owned());
    }
    place.extend(
        one.master
            .as_ref()
            .map(|master| format!("member of {master}")),
    );
    if let Some(bond) = &one.bond {
        place.push(format!("{}, {}", bond.mode, bond.hash));
    }
    let members: Vec<&str> = facts
        .members(&one.name)
        .map(|each| each.name.as_str())
        .collect();
    if !members.is_empty() {
        place.push(format!("members {}", members.join(" ")));
    }
    let state = if one.up {
        one.operstate.known().map_or("up", String::as_str)
    } else {
        "down"
    };
    page.entry(
        &plain(&one.name),
        &plain(&format!(
            "{}, {state}, MTU {}{}",
            place.join(", "),
            told(&one.mtu, ToString::to_string),
            one.max_mtu
                .known()
                .map_or_else(String::new, |most| format!(" (most {most})"))
        )),
    );
    let mut entry = |label: &str, words: String| {
        page.wrapped(&format!("  {label:<11}"), &plain(&words));
    };
    if one.kind != "loopback" || all {
        entry("link", link(one));
    }
    if let Some(list) = one.addresses.known().filter(|list| !list.is_empty()) {
        entry("addresses", list.join(" "));
    }
    entry("queueing", queueing(one));
    if one.kind == "loopback" && !all {
        return;
    }
    let queues = hardware_queues(one, all);
    if !queues.is_empty() {
        entry("queues", queues);
    }
    if let Some(features) = one.features.known() {
        let shown = [
            ("tso", "tx-tcp-segmentation"),
            ("gso", "tx-generic-segmentation"),
            ("gro", "rx-gro"),
            ("lro", "rx-lro"),
            ("rx-checksum", "rx-checksum"),
        ];
        let words = shown.iter().filter_map(|(short, name)| {
            let feature = features.get(*name)?;
            let fixed = if feature.fixed { " (fixed)" } else { "" };
            Some(format!(
                "{short} {}{fixed}",
                if feature.on { "on" } else { "off" }
            ))
        });
        entry("offloads", words.collect::<Vec<_>>().join(", "));
    } else {
        entry("offloads", format!("unknown ({})", one.features.why()));
    }
    let interrupts = interrupts(one, all);
    if !interrupts.is_empty() {
        entry("interrupts", interrupts);
    }
    if let Some(Some(pcie)) = one.pcie.known() {
        entry(
            "pcie",
            format!(
                "{} GT/s × {} (most {} GT/s × {})",
                f64::from(pcie.speed_mts) / 1000.0,
                pcie.width,
                f64::from(pcie.max_speed_mts) / 1000.0,
                pcie.max_width
            ),
        );
    }
    if let Some(counters) = one.counters.known() {
        let rows = [
            ("errors in", counters.rx_errors),
            ("errors out", counters.tx_errors),
            ("dropped in", counters.rx_dropped),
            ("dropped out", counters.tx_dropped),
            ("missed", counters.rx_missed),
        ];
        let bad: Vec<String> = rows
            .iter()
            .filter(|(_, value)| *value > 0 || all)
            .map(|(name, value)| format!("{name} {}", count(*value)))
            .collect();
        if !bad.is_empty() {
            entry("counters", bad.join(", "));
        }
    }
    if let Some(statistics) = one.statistics.known().filter(|_| all) {
        let rows = statistics.iter().filter(|(_, value)| **value > 0);
        let words: Vec<String> = rows
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        entry("driver's", words.join(", "));
    }
}

fn link(one: &Interface) -> String {
    let driver = told(&one.driver, |driver| {
        let firmware = driver
            .firmware
            .as_ref()
            .map_or_else(String::new, |firmware| format!(", firmware {firmware}"));
        format!("driver {}{firmware}", driver.name)
    });
    let speed = told(&one.link, |link| {
        let speed = link.speed_mbps.map_or_else(
            || "speed unknown".to_owned(),
            |mbps| format!("{mbps} Mbit/s"),
        );
        match &link.duplex {
            Some(duplex) => format!("{speed} {duplex} duplex"),
            None => speed,
        }
    });
    format!("{speed}; {driver}")
}

fn queueing(one: &Interface) -> String {
    let qdiscs = told(&one.qdiscs, |list| {
        let mut words: Vec<String> = Vec::new();
        for qdisc in list {
            let drops = match qdisc.drops {
                0 => String::new(),
                drops => format!(" ({} dropped)", count(drops)),
            };
            words.push(format!("{}{drops}", qdisc.kind));
        }
        // A hundred leaves of one kind are one word with their number.
        let mut grouped: Vec<(String, usize)> = Vec::new();
        for word in words {
            match grouped.last_mut() {
                Some((last, times)) if *last == word => *times += 1,
                _ => grouped.push((word, 1)),
            }
        }
        grouped
            .into_iter()
            .map(|(word, times)| match times {
                1 => word,
                times => format!("{times} × {word}"),
            })
            .collect::<Vec<_>>()
            .join(", ")
    });
    format!(
        "{qdiscs}; txqueuelen {}",
        told(&one.tx_queue_len, ToString::to_string)
    )
}

fn hardware_queues(one: &Interface, all: bool) -> String {
    let mut words = Vec::new();
    if let Some(channels) = one.channels.known() {
        let (now, most) = if channels.combined_max > 0 {
            (channels.combined, channels.combined_max)
        } else {
            (channels.rx, channels.rx_max)
        };
        words.push(format!("{now} of {most} channels"));
    }
    if let Some(rings) = one.rings.known() {
        words.push(format!(
            "rings rx {} of {}, tx {} of {}",
            rings.rx, rings.rx_max, rings.tx, rings.tx_max
        ));
    }
    if let Some(coalescing) = one.coalescing.known() {
        words.push(if coalescing.adaptive_rx {
            "interrupts adapt".to_owned()
        } else {
            format!(
                "interrupts wait {} µs, {} frames",
                coalescing.rx_usecs, coalescing.rx_frames
            )
        });
    }
    if let Some(pause) = one.pause.known() {
        let on = |on: bool| if on { "on" } else { "off" };
        words.push(format!("pause rx {} tx {}", on(pause.rx), on(pause.tx)));
    }
    if let Some(queues) = one.queues.known().filter(|_| all) {
        for queue in queues {
            let (side, what) = match queue.side {
                QueueSide::Rx => ("rx", "RPS"),
                QueueSide::Tx => ("tx", "XPS"),
            };
            if let Some(cpus) = queue.cpus.known().filter(|cpus| !cpus.is_empty()) {
                words.push(format!("{side}-{} {what} {cpus}", queue.index));
            }
        }
    }
    words.join("; ")
}

fn interrupts(one: &Interface, all: bool) -> String {
    let Some(list) = one.interrupts.known() else {
        return match one.kind.as_str() {
            "hardware" => format!("unknown ({})", one.interrupts.why()),
            _ => String::new(),
        };
    };
    // As many as one screen holds.
    let most = if all { usize::MAX } else { 8 };
    let shown = list.iter().filter(|each| each.count > 0 || all);
    let total = shown.clone().count();
    let mut words: Vec<String> = shown
        .take(most)
        .map(|each| {
            let cpus = each.effective.known().or(each.allowed.known());
            let cpus = cpus.map_or_else(|| "?".to_owned(), ToString::to_string);
            format!("{} on CPU {cpus}", each.name)
        })
        .collect();
    if total > most {
        words.push(format!("and {} more", total - most));
    }
    if let Some(Some(node)) = one.numa_node.known() {
        words.push(format!("device at node {node}"));
    }
    words.join(", ")
}

fn settings(page: &mut Page, facts: &HostFacts, all: bool) {
    page.gap();
    page.line("Settings");
    let set: Vec<&str> = facts
        .settings
        .known()
        .into_iter()
        .flatten()
        .map(|setting| setting.key.as_str())
        .filter(|key| key.starts_with("net."))
        .collect();
    for (key, value) in &facts.sysctls {
        let wanted = all || MAIN_KEYS.contains(&key.as_str()) || set.contains(&key.as_str());
        if !wanted {
            continue;
        }
        let value = text(value);
        page.wrapped("  ", &plain(&format!("{key} = {value}")));
        for line in facts.setters(key) {
            page.wrapped("      ", &plain(&setter(line)));
        }
    }
    for key in MAIN_KEYS {
        if !facts.sysctls.contains_key(key) {
            page.wrapped("  ", &format!("{key} is not to be read here"));
        }
    }
    if facts.settings.known().is_none() {
        page.wrapped(
            "  ",
            &format!("what files set is unknown ({})", facts.settings.why()),
        );
    }
}

fn setter(line: &Setting) -> String {
    let effect = match &line.effect {
        Effect::Wins => String::new(),
        Effect::Overridden { by } => format!(", overridden by {by}"),
        Effect::Masked { by } => format!(", hidden by {by}"),
        Effect::NotAtBoot => ", which nothing reads at boot".to_owned(),
    };
    format!("set to {} by {}{effect}", line.value, line.place())
}

fn traffic(page: &mut Page, facts: &HostFacts, all: bool) {
    page.gap();
    page.line("Since the start");
    let Some(counters) = facts.counters.known() else {
        page.wrapped(
            "  ",
            &format!("counters are unknown ({})", plain(facts.counters.why())),
        );
        return;
    };
    let shown = [
        "Tcp.RetransSegs",
        "TcpExt.TCPTimeouts",
        "TcpExt.TCPRcvCollapsed",
        "TcpExt.TCPMemoryPressures",
        "TcpExt.TCPBacklogDrop",
        "Udp.RcvbufErrors",
        "Udp.SndbufErrors",
        "Ip.ReasmFails",
    ];
    let words: Vec<String> = counters
        .iter()
        .filter(|(name, value)| **value > 0 && (all || shown.contains(&name.as_str())))
        .map(|(name, value)| format!("{name} {}", count(*value)))
        .collect();
    let words = if words.is_empty() {
        "nothing repeated, dropped or lost".to_owned()
    } else {
        words.join(", ")
    };
    page.wrapped("  ", &words);
    if let Some(rows) = facts.softnet.known() {
        let sum = |read: fn(&linerate_model::host::Softnet) -> u32| {
            rows.iter().map(|row| u64::from(read(row))).sum::<u64>()
        };
        page.wrapped(
            "  ",
            &format!(
                "packet processing: {} dropped at the backlog, {} times out of budget",
                count(sum(|row| row.dropped)),
                count(sum(|row| row.time_squeeze))
            ),
        );
    }
}
