//! A device as sysfs shows it: its node, its PCI Express link, its queues and interrupts.

use std::collections::BTreeMap;

use linerate_model::host::{CpuSet, Fact, Interface, Interrupt, Pcie, Queue, QueueSide};

use super::root::Root;

const ELSEWHERE: &str = "sysfs does not show this network namespace";

/// The folder of an interface. A sysfs that another network namespace mounted shows that one's devices, so it must agree
/// with what netlink said.
fn folder_of(root: &Root, interface: &Interface) -> Option<String> {
    let folder = format!("/sys/class/net/{}", interface.name);
    let index = root.value::<u32>(&format!("{folder}/ifindex"));
    let mac = root.word(&format!("{folder}/address")).ok();
    let mac = mac.filter(|mac| mac.bytes().any(|byte| byte != b'0' && byte != b':'));
    (index == Ok(interface.index) && mac == interface.mac).then_some(folder)
}

/// Fills in the queues and interrupts of an interface, and nothing else of what sysfs knows.
pub(super) fn describe_queues(root: &Root, interface: &mut Interface) {
    let Some(folder) = folder_of(root, interface) else {
        interface.queues = Fact::unknown(ELSEWHERE);
        interface.interrupts = Fact::unknown(ELSEWHERE);
        return;
    };
    interface.queues = Fact::Known(queues(root, &folder));
    interface.interrupts = match device_folder(root, &folder) {
        None => Fact::Known(Vec::new()),
        Some(device) => match interrupt_lines(root) {
            Ok(lines) => interrupts(root, &device, &interface.name, &lines),
            Err(why) => Fact::unknown(why),
        },
    };
}

/// Fills in what sysfs and /proc/irq know of an interface.
pub(super) fn describe(root: &Root, interface: &mut Interface, lines: &Result<Lines, String>) {
    let Some(folder) = folder_of(root, interface) else {
        let why = ELSEWHERE;
        interface.numa_node = Fact::unknown(why);
        interface.local_cpus = Fact::unknown(why);
        interface.pcie = Fact::unknown(why);
        interface.queues = Fact::unknown(why);
        interface.interrupts = Fact::unknown(why);
        return;
    };
    let device = device_folder(root, &folder);
    interface.queues = Fact::Known(queues(root, &folder));
    let Some(device) = device else {
        interface.numa_node = Fact::Known(None);
        interface.local_cpus = Fact::unknown("it has no device of its own");
        interface.pcie = Fact::Known(None);
        interface.interrupts = Fact::Known(Vec::new());
        return;
    };
    interface.numa_node = root
        .value::<i64>(&format!("{device}/numa_node"))
        .map(|node| u32::try_from(node).ok())
        .into();
    interface.local_cpus = root.value(&format!("{device}/local_cpulist")).into();
    interface.pcie = pcie(root, &device);
    interface.interrupts = match lines {
        Ok(lines) => interrupts(root, &device, &interface.name, lines),
        Err(why) => Fact::unknown(why.clone()),
    };
}

/// The device behind an interface. virtio's own is a child of the PCI device, which has the interrupts.
fn device_folder(root: &Root, folder: &str) -> Option<String> {
    let device = format!("{folder}/device");
    if !root.has(&device) {
        return None;
    }
    let virtio = root.link_name(&format!("{device}/subsystem")).as_deref() == Some("virtio");
    Some(if virtio {
        format!("{device}/..")
    } else {
        device
    })
}

fn pcie(root: &Root, device: &str) -> Fact<Option<Pcie>> {
    if !root.has(&format!("{device}/current_link_speed")) {
        return Fact::Known(None);
    }
    let speed = |file: &str| {
        let text = root.word(&format!("{device}/{file}"))?;
        transfers(&text).ok_or_else(|| format!("{file} is '{text}'"))
    };
    let width = |file: &str| root.value::<u32>(&format!("{device}/{file}"));
    let read = || {
        Ok(Pcie {
            speed_mts: speed("current_link_speed")?,
            width: width("current_link_width")?,
            max_speed_mts: speed("max_link_speed")?,
            max_width: width("max_link_width")?,
        })
    };
    let read: Result<Pcie, String> = read();
    // A virtual function has the files and writes 0 lanes, or 255.
    match read {
        Ok(link) if !(1..=32).contains(&link.width) => {
            Fact::unknown("the device does not know its PCI Express link")
        }
        read => read.map(Some).into(),
    }
}

/// `8.0 GT/s PCIe` in MT/s.
fn transfers(text: &str) -> Option<u32> {
    let number: f64 = text.split(' ').next()?.parse().ok()?;
    u32::try_from(linerate_model::units::whole(number * 1000.0)).ok()
}

fn queues(root: &Root, folder: &str) -> Vec<Queue> {
    let mut queues: Vec<Queue> = root
        .names(&format!("{folder}/queues"))
        .iter()
        .filter_map(|name| {
            let (side, index) = name.split_once('-')?;
            let (side, file) = match side {
                "rx" => (QueueSide::Rx, "rps_cpus"),
                "tx" => (QueueSide::Tx, "xps_cpus"),
                _ => return None,
            };
            let mask = root.word(&format!("{folder}/queues/{name}/{file}"));
            Some(Queue {
                side,
                index: index.parse().ok()?,
                cpus: mask
                    // A device of one transmit queue refuses to be asked.
                    .and_then(|mask| CpuSet::of_mask(&mask).ok_or(format!("{file} is '{mask}'")))
                    .into(),
            })
        })
        .collect();
    queues.sort_by_key(|queue| (queue.side, queue.index));
    queues
}

/// A line of /proc/interrupts: its name, and how often it came to each CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    name: String,
    counts: Vec<(u32, u64)>,
}

/// The numbered lines of /proc/interrupts.
pub(super) type Lines = BTreeMap<u32, Line>;

pub(super) fn interrupt_lines(root: &Root) -> Result<Lines, String> {
    root.text("/proc/interrupts").map(|text| parse_lines(&text))
}

/// A head that names the CPUs online, then for each interrupt its number, a count for each of them, its
/// controller, its hardware number and its name.
fn parse_lines(text: &str) -> Lines {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    lines
        .filter_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let mut words = rest.split_ascii_whitespace();
            let counts: Vec<(u32, u64)> = cpus
                .iter()
                .map(|cpu| Some((*cpu, words.next()?.parse().ok()?)))
                .collect::<Option<_>>()?;
            let name = words.next_back().unwrap_or_default().to_owned();
            Some((number.trim().parse().ok()?, Line { name, counts }))
        })
        .collect()
}

fn interrupts(root: &Root, device: &str, name: &str, lines: &Lines) -> Fact<Vec<Interrupt>> {
    let listed: Vec<u32> = root
        .names(&format!("{device}/msi_irqs"))
        .iter()
        .filter_map(|number| number.parse().ok())
        .collect();
    let own = |number: &u32, line: &Line| {
        listed.contains(number) || (listed.is_empty() && belongs(&line.name, name))
    };
    let found: Vec<Interrupt> = lines
        .iter()
        .filter(|(number, line)| own(number, line))
        .map(|(number, line)| interrupt(root, *number, line))
        .collect();
    if found.is_empty() {
        return Fact::unknown("no interrupt is listed for its device");
    }
    Fact::Known(found)
}

/// `eth0`, `eth0-TxRx-3`, and not `eth01`.
fn belongs(interrupt: &str, interface: &str) -> bool {
    interrupt
        .strip_prefix(interface)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', ':', '@']))
}

fn interrupt(root: &Root, number: u32, line: &Line) -> Interrupt {
    let set = |file: &str| root.value(&format!("/proc/irq/{number}/{file}")).into();
    let busiest = line.counts.iter().max_by_key(|(_, count)| *count);
    Interrupt {
        number,
        name: line.name.clone(),
        queue: None,
        allowed: set("smp_affinity_list"),
        effective: set("effective_affinity_list"),
        count: line.counts.iter().map(|(_, count)| count).sum(),
        busiest_cpu: busiest.filter(|(_, count)| *count > 0).map(|(cpu, _)| *cpu),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "            CPU0       CPU2
 24:          1          7  IR-PCI-MSI 524288-edge      eth0-TxRx-0
 25:          0          0  IR-PCI-MSI 524289-edge      eth0-TxRx-1
NMI:          0          0   Non-maskable interrupts
ERR:          0
";

    #[test]
    fn interrupts_have_counts_by_cpu_and_a_name() {
        let lines = parse_lines(TEXT);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[&24].name, "eth0-TxRx-0");
        assert_eq!(lines[&24].counts, [(0, 1), (2, 7)]);
        let seen = interrupt(&Root::of_this_machine(), u32::MAX, &lines[&24]);
        assert_eq!((seen.count, seen.busiest_cpu), (8, Some(2)));
        assert!(seen.effective.known().is_none());
    }

    #[test]
    fn names_belong_to_their_interface_only() {
        assert!(belongs("eth0-TxRx-3", "eth0") && belongs("eth0", "eth0"));
        assert!(!belongs("eth01-TxRx-3", "eth0") && !belongs("meth0", "eth0"));
    }

    #[test]
    fn speeds_of_pcie_are_read() {
        assert_eq!(transfers("8.0 GT/s PCIe"), Some(8000));
        assert_eq!(transfers("2.5 GT/s"), Some(2500));
        assert_eq!(transfers("Unknown"), None);
    }
}
