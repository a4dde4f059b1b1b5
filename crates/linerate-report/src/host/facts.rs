//! The facts of a host as text: what an engineer wants on one screen, or everything.

use linerate_model::host::{Effect, Fact, HostFacts, Interface, QueueSide, Setting};
use linerate_model::units::Bytes;

use crate::text::layout::Page;
use crate::words::{self, count, plain};

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
    super::storage::facts(&mut page, facts, all);
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
                let names = list.iter().map(|governor| governor.name.as_str());
                names.collect::<Vec<_>>().join(", ")
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
    let fingerprints = facts.fingerprints();
    for (interface, fingerprint) in &fingerprints {
        let (hash, count) = (fingerprint.hash, fingerprint.facts().count());
        entry(
            "Fingerprint",
            format!("{hash} ({interface}, {count} facts)"),
        );
    }
    if all {
        entry("Boot", text(&system.command_line));
        entry("Build", text(&system.kernel_build));
        entry("Microcode", text(&processors.microcode));
    }
}

fn interfaces(page: &mut Page, facts: &HostFacts, all: bool) {
    let Some(list) = facts.interfaces.known() else {
        page.gap();
        let why = plain(facts.interfaces.why());
        return page.entry("Interfaces", &format!("unknown ({why})"));
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
    let state = if one.up {
        one.operstate.known().map_or("up", String::as_str)
    } else {
        "down"
    };
    let most = one.max_mtu.known();
    let head = format!(
        "{}, {state}, MTU {}{}",
        place(facts, one),
        told(&one.mtu, ToString::to_string),
        words::with(most, |most| format!(" (most {most})"))
    );
    page.entry(&plain(&one.name), &plain(&head));
    let whole = one.kind != "loopback" || all;
    let whole = |words: &dyn Fn() -> String| if whole { words() } else { String::new() };
    let addresses = one.addresses.known();
    for (label, words) in [
        ("link", whole(&|| link(one))),
        ("addresses", words::with(addresses, |list| list.join(" "))),
        ("queueing", queueing(one)),
        ("queues", whole(&|| hardware_queues(one, all))),
        ("offloads", whole(&|| offloads(one))),
        ("interrupts", whole(&|| interrupts(one, all))),
        ("pcie", whole(&|| pcie(one))),
        ("counters", whole(&|| counters(one, all))),
        (
            "driver's",
            if all { statistics(one) } else { String::new() },
        ),
    ] {
        if !words.is_empty() {
            page.wrapped(&format!("  {label:<11}"), &plain(&words));
        }
    }
}

/// What it is, on what it stands, and to what it belongs.
fn place(facts: &HostFacts, one: &Interface) -> String {
    let mut place = vec![one.kind.clone()];
    place.extend(one.vlan.map(|id| format!("id {id}")));
    match one.parent.known() {
        Some(Some(parent)) => place.push(format!("on {parent}")),
        Some(None) => {}
        None => place.push(one.parent.why().to_owned()),
    }
    let master = one.master.as_ref();
    place.extend(master.map(|master| format!("member of {master}")));
    let bond = one.bond.as_ref();
    place.extend(bond.map(|bond| format!("{}, {}", bond.mode, bond.hash)));
    let members = facts.members(&one.name).map(|each| each.name.as_str());
    let members: Vec<&str> = members.collect();
    if !members.is_empty() {
        place.push(format!("members {}", members.join(" ")));
    }
    place.join(", ")
}

fn offloads(one: &Interface) -> String {
    const SHOWN: [(&str, &str); 5] = [
        ("tso", "tx-tcp-segmentation"),
        ("gso", "tx-generic-segmentation"),
        ("gro", "rx-gro"),
        ("lro", "rx-lro"),
        ("rx-checksum", "rx-checksum"),
    ];
    told(&one.features, |features| {
        let words = SHOWN.iter().filter_map(|(short, name)| {
            let feature = features.get(*name)?;
            let on = if feature.on { "on" } else { "off" };
            let fixed = words::when(feature.fixed, " (fixed)");
            Some(format!("{short} {on}{fixed}"))
        });
        words.collect::<Vec<_>>().join(", ")
    })
}

fn pcie(one: &Interface) -> String {
    let Some(Some(pcie)) = one.pcie.known() else {
        return String::new();
    };
    let [now, most] = [pcie.speed_mts, pcie.max_speed_mts].map(|speed| f64::from(speed) / 1000.0);
    format!(
        "{now} GT/s × {} (most {most} GT/s × {})",
        pcie.width, pcie.max_width
    )
}

fn counters(one: &Interface, all: bool) -> String {
    let Some(counters) = one.counters.known() else {
        return String::new();
    };
    let rows = [
        ("errors in", counters.rx_errors),
        ("errors out", counters.tx_errors),
        ("dropped in", counters.rx_dropped),
        ("dropped out", counters.tx_dropped),
        ("missed", counters.rx_missed),
    ];
    let bad = rows.iter().filter(|(_, value)| *value > 0 || all);
    let bad = bad.map(|(name, value)| format!("{name} {}", count(*value)));
    bad.collect::<Vec<_>>().join(", ")
}

/// What the driver itself counts.
fn statistics(one: &Interface) -> String {
    let all = one.statistics.known().into_iter().flatten();
    let moved = all.filter(|(_, value)| **value > 0);
    let words = moved.map(|(name, value)| format!("{name} {value}"));
    words.collect::<Vec<_>>().join(", ")
}

fn link(one: &Interface) -> String {
    let driver = told(&one.driver, |driver| {
        let firmware = words::with(driver.firmware.as_ref(), |firmware| {
            format!(", firmware {firmware}")
        });
        format!("driver {}{firmware}", driver.name)
    });
    let speed = told(&one.link, |link| {
        let speed = link.speed_mbps.map(|mbps| format!("{mbps} Mbit/s"));
        let speed = speed.unwrap_or_else(|| "speed unknown".to_owned());
        match &link.duplex {
            Some(duplex) => format!("{speed} {duplex} duplex"),
            None => speed,
        }
    });
    format!("{speed}; {driver}")
}

fn queueing(one: &Interface) -> String {
    let qdiscs = told(&one.qdiscs, |list| {
        // A hundred leaves of one kind are one word with their number.
        let mut grouped: Vec<(String, usize)> = Vec::new();
        for qdisc in list {
            let drops = Some(qdisc.drops).filter(|drops| *drops > 0);
            let drops = words::with(drops, |drops| format!(" ({} dropped)", count(drops)));
            let word = format!("{}{drops}", qdisc.kind);
            match grouped.last_mut() {
                Some((last, times)) if *last == word => *times += 1,
                _ => grouped.push((word, 1)),
            }
        }
        let words = grouped.into_iter().map(|(word, times)| match times {
            1 => word,
            times => format!("{times} × {word}"),
        });
        words.collect::<Vec<_>>().join(", ")
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
    let set = facts.settings.known().into_iter().flatten();
    let set = set.map(|setting| setting.key.as_str());
    let set: Vec<&str> = set.filter(|key| key.starts_with("net.")).collect();
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
            page.wrapped("  ", &format!("{key} cannot be read here"));
        }
    }
    if facts.settings.known().is_none() {
        let why = facts.settings.why();
        page.wrapped("  ", &format!("what files set is unknown ({why})"));
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
        let why = plain(facts.counters.why());
        return page.wrapped("  ", &format!("counters are unknown ({why})"));
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
        "nothing retransmitted, dropped or lost".to_owned()
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
