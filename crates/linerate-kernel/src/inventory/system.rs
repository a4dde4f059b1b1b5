//! The machine, its kernel, its processors, and the programs that look after settings.

use std::collections::BTreeMap;

use linerate_model::host::{
    CpuSet, Fact, Governor, Keeper, Node, Processors, Softnet, System, is_ban,
};

use super::root::Root;

/// The limit that version 1 of the control groups writes where there is none is a number of this size.
const NO_LIMIT: u64 = 1 << 62;

pub(super) fn system(root: &Root) -> System {
    let cpuinfo = root.text("/proc/cpuinfo");
    System {
        hostname: root
            .word("/proc/sys/kernel/hostname")
            .or_else(|_| root.word("/etc/hostname"))
            .into(),
        distribution: distribution(root),
        kernel: kernel(root),
        kernel_build: kernel_build(root),
        architecture: root
            .word("/proc/sys/kernel/arch")
            .or_else(|_| architecture(root))
            .into(),
        command_line: root.word("/proc/cmdline").into(),
        boot_id: root.word("/proc/sys/kernel/random/boot_id").into(),
        virtual_machine: virtual_machine(root, cpuinfo.as_deref().ok()),
        container: container(root),
        first_namespace: first_namespace(root),
        memory_bytes: memory(root).into(),
        page_bytes: page_bytes(root),
        cgroup_memory_bytes: cgroup_memory(root),
        modules: root
            .text("/proc/modules")
            .map(|text| {
                let name = |line: &str| line.split(' ').next().map(str::to_owned);
                text.lines().filter_map(name).collect()
            })
            .into(),
    }
}

/// The kernel and its build, and nothing else of the machine.
pub(super) fn kernel_alone(root: &Root) -> System {
    System {
        kernel: kernel(root),
        kernel_build: kernel_build(root),
        ..System::default()
    }
}

fn kernel(root: &Root) -> Fact<String> {
    root.word("/proc/sys/kernel/osrelease").into()
}

fn kernel_build(root: &Root) -> Fact<String> {
    root.word("/proc/sys/kernel/version").into()
}

fn distribution(root: &Root) -> Fact<String> {
    let text = root
        .text("/etc/os-release")
        .or_else(|_| root.text("/usr/lib/os-release"));
    match text {
        Ok(text) => Fact::of(
            text.lines()
                .find_map(|line| line.strip_prefix("PRETTY_NAME="))
                .map(|name| name.trim_matches(['"', '\'']).to_owned()),
            "os-release does not name it",
        ),
        Err(why) => Fact::unknown(why),
    }
}

fn architecture(root: &Root) -> Result<String, String> {
    if root.is_this_machine() {
        return Ok(rustix::system::uname()
            .machine()
            .to_string_lossy()
            .into_owned());
    }
    Err("/proc/sys/kernel/arch is not there (before Linux 6.1)".to_owned())
}

fn memory(root: &Root) -> Result<u64, String> {
    let text = root.text("/proc/meminfo")?;
    text.lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map(|kib| kib.saturating_mul(1024))
        .ok_or_else(|| "/proc/meminfo has no MemTotal".to_owned())
}

fn page_bytes(root: &Root) -> Fact<u64> {
    if root.is_this_machine() {
        return Fact::Known(rustix::param::page_size() as u64);
    }
    Fact::unknown("files do not show the page size")
}

/// `net.ipv4.tcp_mem` exists in the first network namespace only (`ipv4_table` in `net/ipv4/sysctl_net_ipv4.c`).
fn first_namespace(root: &Root) -> Fact<bool> {
    if !root.has("/proc/sys/net/ipv4/tcp_rmem") {
        return Fact::unknown("/proc/sys/net/ipv4 is not there");
    }
    Fact::Known(root.has("/proc/sys/net/ipv4/tcp_mem"))
}

/// Names in DMI and device trees that only hypervisors have, with what systemd-detect-virt(1) calls them.
const VENDORS: [(&str, &str); 14] = [
    ("KVM", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("Virtual Machine", "microsoft"),
    ("Firecracker", "firecracker"),
];

fn virtual_machine(root: &Root, cpuinfo: Option<&str>) -> Fact<Option<String>> {
    let dmi = ["product_name", "sys_vendor", "board_vendor", "bios_vendor"]
        .map(|file| root.word(&format!("/sys/class/dmi/id/{file}")));
    let known_dmi = dmi.iter().any(Result::is_ok);
    let flag = cpuinfo.and_then(hypervisor_flag);
    if root.is_this_machine()
        && flag != Some(false)
        && let Some(name) = super::machine::hypervisor()
    {
        return Fact::Known(Some(name));
    }
    let by_vendor = dmi.iter().flatten().find_map(|text| {
        // EC2's bare-metal instances have Amazon's vendor too, and `.metal` in their product.
        let metal = text.rsplit('.').next() == Some("metal");
        let vendor = VENDORS.iter().find(|(part, _)| text.contains(part));
        vendor
            .filter(|_| !metal)
            .map(|(_, name)| (*name).to_owned())
    });
    let by_tree = root
        .word("/proc/device-tree/hypervisor/compatible")
        .ok()
        .map(|text| text.trim_end_matches('\0').to_owned());
    let found = by_vendor
        // Without the processor's flag, the vendor's name alone is on ARM a proof, on x86 it is none.
        .filter(|_| flag != Some(false))
        .or(by_tree)
        .or_else(|| root.word("/sys/hypervisor/type").ok())
        .or_else(|| (flag == Some(true)).then(|| "virtual machine".to_owned()));
    match (found, flag, known_dmi) {
        (Some(name), _, _) => Fact::Known(Some(name)),
        (None, Some(false), _) | (None, None, true) => Fact::Known(None),
        (None, _, _) => Fact::unknown("neither the processor nor the firmware reports it"),
    }
}

/// Whether x86's processor says that a hypervisor is there; `None` where it says nothing of the kind.
fn hypervisor_flag(cpuinfo: &str) -> Option<bool> {
    let flags = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("flags")?.split_once(':'))?;
    Some(flags.1.split(' ').any(|flag| flag == "hypervisor"))
}

fn container(root: &Root) -> Fact<Option<String>> {
    if let Ok(kind) = root.word("/run/systemd/container") {
        return Fact::Known(Some(kind));
    }
    let marks = [
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/run/secrets/kubernetes.io", "kubernetes"),
        ("/proc/vz/veinfo", "openvz"),
    ];
    if let Some((_, kind)) = marks.iter().find(|(path, _)| root.has(path)) {
        return Fact::Known(Some((*kind).to_owned()));
    }
    let environment = root.text("/proc/1/environ");
    let told = environment.as_deref().ok().and_then(|text| {
        let kind = text
            .split('\0')
            .find_map(|one| one.strip_prefix("container="))?;
        Some(kind.to_owned())
    });
    let groups = root.text("/proc/1/cgroup");
    let by_group = groups.as_deref().ok().and_then(|text| {
        ["kubepods", "docker", "libpod", "lxc"]
            .into_iter()
            .find(|part| text.contains(&format!("/{part}")))
            .map(str::to_owned)
    });
    match (told.or(by_group), environment.is_ok() || groups.is_ok()) {
        (Some(kind), _) => Fact::Known(Some(kind)),
        (None, true) => Fact::Known(None),
        (None, false) => Fact::unknown("the first process does not show itself"),
    }
}

/// The least limit of the groups above this process, of either version.
fn cgroup_memory(root: &Root) -> Fact<Option<u64>> {
    let groups = match root.text("/proc/self/cgroup") {
        Ok(text) => text,
        Err(why) => return Fact::unknown(why),
    };
    let mut least: Option<u64> = None;
    let mut seen = false;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            if let Ok(limit) = root.word(&format!("{mount}{path}/{file}")) {
                seen = true;
                let limit = limit.parse().ok().filter(|bytes| *bytes < NO_LIMIT);
                least = least.into_iter().chain(limit).min();
            }
            match path.rfind('/') {
                Some(at) => path = &path[..at],
                None => break,
            }
        }
        // The first group of version 2 has no file, and so no limit.
        seen |= controllers.is_empty() && root.has("/sys/fs/cgroup/cgroup.controllers");
    }
    if seen {
        Fact::Known(least)
    } else {
        Fact::unknown("no control group with the memory controller is mounted")
    }
}

pub(super) fn processors(root: &Root) -> Processors {
    let cpu = "/sys/devices/system/cpu";
    let cpuinfo = root.text("/proc/cpuinfo");
    let model = cpuinfo.as_deref().map(|text| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, value)| name.trim() == "model name" && !value.trim().is_empty())
            .map(|(_, value)| value.trim().to_owned())
    });
    Processors {
        model: match model {
            Ok(model) => Fact::of(model, "/proc/cpuinfo does not name it"),
            Err(why) => Fact::unknown(why.clone()),
        },
        microcode: microcode(root),
        mitigations: mitigations(root),
        online: root.value(&format!("{cpu}/online")).into(),
        smt: root
            .word(&format!("{cpu}/smt/active"))
            .map(|active| active == "1")
            .into(),
        nodes: nodes(root),
        governors: governors(root, cpu),
    }
}

/// What of the processors may differ between two boots of a machine, and nothing else of them.
pub(super) fn software_of_processors(root: &Root) -> Processors {
    Processors {
        microcode: microcode(root),
        mitigations: mitigations(root),
        ..Processors::default()
    }
}

/// Of the first processor. The kernel writes the file anew for each reader, processor by processor, and this one stops
/// within the first.
fn microcode(root: &Root) -> Fact<String> {
    let found = root.beginning("/proc/cpuinfo").and_then(|text| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let own = lines.find(|(name, _)| name.trim() == "microcode");
        own.map(|(_, revision)| revision.trim().to_owned())
            .ok_or_else(|| "/proc/cpuinfo has no microcode".to_owned())
    });
    found.into()
}

/// Documentation/ABI/testing/sysfs-devices-system-cpu of the kernel, since Linux 4.15.
fn mitigations(root: &Root) -> Fact<BTreeMap<String, String>> {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let names = root.names(folder);
    if names.is_empty() {
        return Fact::unknown(format!("{folder} is not there (before Linux 4.15)"));
    }
    let read = |name: String| {
        let words = root.word(&format!("{folder}/{name}")).ok()?;
        Some((name, words))
    };
    Fact::Known(names.into_iter().filter_map(read).collect())
}

fn nodes(root: &Root) -> Fact<Vec<Node>> {
    let folder = "/sys/devices/system/node";
    let nodes: Vec<Node> = root
        .names(folder)
        .iter()
        .filter_map(|name| {
            let id = name.strip_prefix("node")?.parse().ok()?;
            let cpus = root.text(&format!("{folder}/{name}/cpulist")).ok()?;
            Some(Node {
                id,
                cpus: cpus.parse().ok()?,
            })
        })
        .collect();
    if nodes.is_empty() {
        return Fact::unknown(format!("{folder} is not there"));
    }
    Fact::Known(nodes)
}

fn governors(root: &Root, folder: &str) -> Fact<Vec<Governor>> {
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for name in root.names(folder) {
        let Some(cpu) = name
            .strip_prefix("cpu")
            .and_then(|number| number.parse().ok())
        else {
            continue;
        };
        if let Ok(governor) = root.word(&format!("{folder}/{name}/cpufreq/scaling_governor")) {
            found.entry(governor).or_default().push(cpu);
        }
    }
    if found.is_empty() {
        return Fact::unknown("the kernel scales no frequency here (no cpufreq)");
    }
    let governor = |(name, cpus): (String, Vec<u32>)| Governor {
        name,
        cpus: CpuSet::from_iter(cpus),
    };
    Fact::Known(found.into_iter().map(governor).collect())
}

pub(super) fn softnet(root: &Root) -> Fact<Vec<Softnet>> {
    root.text("/proc/net/softnet_stat")
        .map(|text| {
            crate::counters::parse_softnet(&text)
                .into_iter()
                .map(|row| Softnet {
                    cpu: u32::try_from(row.cpu).unwrap_or(u32::MAX),
                    processed: row.processed,
                    dropped: row.dropped,
                    time_squeeze: row.time_squeeze,
                })
                .collect()
        })
        .into()
}

/// Programs that look after settings, by the name of their process (15 bytes of it are kept).
const KEEPERS: [(&str, &str); 6] = [
    ("irqbalance", "irqbalance"),
    ("tuned", "tuned"),
    ("bpftune", "bpftune"),
    ("NetworkManager", "NetworkManager"),
    ("systemd-networkd", "systemd-network"),
    ("cloud-init", "cloud-init"),
];

/// irqbalance alone.
pub(super) fn interrupt_keeper(root: &Root) -> Vec<Keeper> {
    keepers_of(root, |name| name == "irqbalance")
}

pub(super) fn keepers(root: &Root) -> Vec<Keeper> {
    keepers_of(root, |_| true)
}

fn keepers_of(root: &Root, wanted: fn(&str) -> bool) -> Vec<Keeper> {
    let names: Vec<String> = root
        .names("/proc")
        .iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|pid| root.word(&format!("/proc/{pid}/comm")).ok())
        .collect();
    // The parent of the kernel's threads is seen by who sees all processes: not in a container, and not where `/proc` is
    // mounted with `hidepid=` (`ProtectProc=` of systemd).
    let all = root
        .word("/proc/2/comm")
        .is_ok_and(|name| name == "kthreadd");
    let running = |process: &str| match names.iter().any(|each| each == process) {
        true => Fact::Known(true),
        false if all => Fact::Known(false),
        false => Fact::unknown("not all processes are to be seen"),
    };
    KEEPERS
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, process)| Keeper {
            name: (*name).to_owned(),
            running: running(process),
            told: told(root, name),
        })
        .collect()
}

fn told(root: &Root, keeper: &str) -> Fact<Option<String>> {
    match keeper {
        "tuned" => Fact::Known(root.word("/etc/tuned/active_profile").ok()),
        "irqbalance" => {
            let texts = IRQBALANCE.iter().filter_map(|file| root.text(file).ok());
            let texts: Vec<String> = texts.collect();
            Fact::Known(irqbalance_arguments(&texts.join("\n")))
        }
        _ => Fact::Known(None),
    }
}

/// Files of environment that units of irqbalance name: Debian's, Red Hat's, Arch's.
const IRQBALANCE: [&str; 3] = [
    "/etc/default/irqbalance",
    "/etc/sysconfig/irqbalance",
    "/etc/irqbalance.env",
];

/// The line that bans interrupts or CPUs; where there is none, the one with arguments.
fn irqbalance_arguments(text: &str) -> Option<String> {
    let lines = || {
        let lines = text.lines().map(str::trim);
        lines.filter(|line| !line.starts_with('#'))
    };
    let arguments = |line: &&str| {
        let value = line.strip_prefix("IRQBALANCE_ARGS=");
        value.is_some_and(|value| !value.trim_matches(['"', '\'', ' ']).is_empty())
    };
    lines()
        .find(|line| is_ban(line))
        .or_else(|| lines().find(arguments))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn irqbalance_was_told_its_bans_else_its_arguments() {
        for (text, wanted) in [
            ("", None),
            (
                "#IRQBALANCE_ARGS=-j\nIRQBALANCE_ARGS=\"\"\nIRQBALANCE_ONESHOT=\n",
                None,
            ),
            ("IRQBALANCE_ARGS=\"-j\"\n", Some("IRQBALANCE_ARGS=\"-j\"")),
            (
                "IRQBALANCE_ARGS=-j\nIRQBALANCE_BANNED_CPULIST=0\n",
                Some("IRQBALANCE_BANNED_CPULIST=0"),
            ),
        ] {
            assert_eq!(irqbalance_arguments(text).as_deref(), wanted, "{text}");
        }
    }
}
