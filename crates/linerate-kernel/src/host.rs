//! What host this is.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use linerate_model::host::CpuSet;
use linerate_model::record::HostFacts;

use crate::namespace;
use crate::proc_file::{number, word};

/// The second level's cache of the first CPU, bytes (`/sys/devices/system/cpu/cpu0/cache`), which others of its cluster may
/// share and which may be a little core's; `None` where nothing tells it.
pub fn second_cache_bytes() -> Option<usize> {
    let of = |index: u32, what| {
        word(format!(
            "/sys/devices/system/cpu/cpu0/cache/index{index}/{what}"
        ))
    };
    let second = (0..4).find(|index| of(*index, "level").as_deref() == Some("2"))?;
    let kibibytes: usize = of(second, "size")?.strip_suffix('K')?.parse().ok()?;
    Some(kibibytes << 10)
}

/// What does not change while a process runs; the rest is absent. The kernel writes /proc/cpuinfo anew for each reader,
/// for every CPU.
fn fixed() -> HostFacts {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    HostFacts {
        boot_id: boot_id().ok().map(Into::into),
        cpu_model: cpu_model(&cpuinfo).map(Into::into),
        virtualisation: virtualisation(has_hypervisor(&cpuinfo)).map(Into::into),
        ..HostFacts::default()
    }
}

/// Facts of this host. Network settings are those of the calling thread's network namespace; some exist in the first
/// namespace only.
///
/// It takes well below a millisecond on a small machine, the first time more with many CPUs. What
/// does not change while a process runs is read once.
pub fn facts() -> HostFacts {
    static FIXED: OnceLock<HostFacts> = OnceLock::new();
    let [hostname, kernel, architecture] = names().map(|name| Some(name.into()));
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let bounds = |name: &str| triple(&word(format!("/proc/sys/net/ipv4/{name}"))?);
    HostFacts {
        hostname,
        kernel,
        architecture,
        network_namespace: namespace::network_id().ok(),
        cpus: cpus_online(),
        memory_bytes: memory_bytes(&meminfo),
        tcp_rmem: bounds("tcp_rmem"),
        tcp_wmem: bounds("tcp_wmem"),
        rmem_max: number("/proc/sys/net/core/rmem_max"),
        wmem_max: number("/proc/sys/net/core/wmem_max"),
        congestion: word("/proc/sys/net/ipv4/tcp_congestion_control").map(Into::into),
        default_qdisc: word("/proc/sys/net/core/default_qdisc").map(Into::into),
        ..FIXED.get_or_init(fixed).clone()
    }
}

/// Switches of TCP in the calling thread's network namespace; absent where the kernel has none of the name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpSettings {
    /// `net.ipv4.tcp_adv_win_scale`: which share of a receive buffer is overhead. Gone from Linux 6.6 on, where
    /// it is measured.
    pub adv_win_scale: Option<i32>,
    /// `net.ipv4.tcp_timestamps`
    pub timestamps: Option<bool>,
    /// `net.ipv4.tcp_window_scaling`
    pub window_scaling: Option<bool>,
    /// `net.ipv4.tcp_moderate_rcvbuf`
    pub moderate_rcvbuf: Option<bool>,
}

/// Reads them.
pub fn tcp_settings() -> TcpSettings {
    let switch =
        |name: &str| number(format!("/proc/sys/net/ipv4/{name}")).map(|value: u64| value != 0);
    // `adv_win_scale` stays readable in later kernels, where it does nothing: the release decides.
    let measured = measures_overhead(&names()[1]);
    let scale = || word("/proc/sys/net/ipv4/tcp_adv_win_scale")?.parse().ok();
    TcpSettings {
        adv_win_scale: if measured { None } else { scale() },
        timestamps: switch("tcp_timestamps"),
        window_scaling: switch("tcp_window_scaling"),
        moderate_rcvbuf: switch("tcp_moderate_rcvbuf"),
    }
}

/// The running kernel's release, major and minor number; `None` where its name begins with no two numbers.
pub(crate) fn release() -> Option<(u32, u32)> {
    release_of(&names()[1])
}

fn release_of(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse::<u32>().ok();
    Some((next()?, next()?))
}

/// Whether a kernel of this release measures a receive buffer's overhead (`scaling_ratio`, 6.6).
fn measures_overhead(release: &str) -> bool {
    release_of(release).is_none_or(|release| release >= (6, 6))
}

/// The id of this boot: another one after each.
///
/// # Errors
/// Where `/proc` is not mounted.
pub fn boot_id() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// The name of this host, as the kernel has it.
pub fn name() -> String {
    names()[0].clone()
}

/// Host name, kernel release, architecture.
fn names() -> [String; 3] {
    let names = rustix::system::uname();
    [names.nodename(), names.release(), names.machine()]
        .map(|name| name.to_string_lossy().into_owned())
}

fn cpus_online() -> Option<u32> {
    let online: CpuSet = word("/sys/devices/system/cpu/online")?.parse().ok()?;
    u32::try_from(online.count()).ok()
}

/// The value of `name : value`.
fn field<'a>(text: &'a str, names: &[&str]) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        names.contains(&name.trim()).then_some(value.trim())
    })
}

/// x86 and MIPS, POWER, s390 and RISC-V name it differently.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let model = field(
        cpuinfo,
        &["model name", "cpu model", "cpu", "processor 0", "uarch"],
    )?;
    (!model.is_empty()).then(|| model.to_owned())
}

fn has_hypervisor(cpuinfo: &str) -> bool {
    field(cpuinfo, &["flags"])
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// `MemTotal:  16384 kB`, which are units of 1024 bytes.
fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kib: u64 = field(meminfo, &["MemTotal"])?
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()?;
    kib.checked_mul(1024)
}

fn triple(text: &str) -> Option<[u64; 3]> {
    let mut fields = text
        .split_ascii_whitespace()
        .map(|field| field.parse().ok());
    Some([fields.next()??, fields.next()??, fields.next()??])
}

fn virtualisation(hypervisor: bool) -> Option<String> {
    let product =
        ["sys_vendor", "product_name"].map(|file| word(format!("/sys/class/dmi/id/{file}")));
    let hints: Vec<_> = machine(hypervisor, product)
        .into_iter()
        .chain(container())
        .collect();
    (!hints.is_empty()).then(|| hints.join(", "))
}

/// The flag says it on x86; elsewhere the vendor's name may.
fn machine(hypervisor: bool, product: [Option<String>; 2]) -> Option<String> {
    const VENDORS: [&str; 9] = [
        "QEMU",
        "KVM",
        "VMware",
        "Xen",
        "innotek",
        "Amazon EC2",
        "Google Compute",
        "Parallels",
        "Firecracker",
    ];
    let product = product.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let virtual_vendor = VENDORS.iter().any(|vendor| product.contains(vendor));
    match (hypervisor, virtual_vendor, product.is_empty()) {
        (false, false, _) => None,
        (_, _, true) => Some("virtual machine".to_owned()),
        _ => Some(format!("virtual machine ({product})")),
    }
}

fn container() -> Option<String> {
    if let Some(kind) = word("/run/systemd/container") {
        return Some(format!("{kind} container"));
    }
    let hints = [
        ("/.dockerenv", "docker container"),
        ("/run/.containerenv", "podman container"),
    ];
    let found = hints.iter().find(|(path, _)| Path::new(path).exists());
    found.map(|(_, kind)| (*kind).to_owned()).or_else(|| {
        std::env::var_os("KUBERNETES_SERVICE_HOST").map(|_| "kubernetes container".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_facts() {
        let facts = facts();
        let names = [facts.hostname, facts.kernel, facts.architecture].map(Option::unwrap);
        assert!(names.iter().all(|name| !name.is_empty()));
        assert!(facts.cpus.unwrap() >= 1);
        assert!(facts.memory_bytes.unwrap() > 1 << 20);
        let [least, default, greatest] = facts.tcp_rmem.unwrap();
        assert!(least <= default && default <= greatest);
    }

    #[test]
    fn the_release_tells_whether_overhead_is_measured() {
        for (release, measured) in [
            ("5.15.0-91-generic", false),
            ("6.5.13", false),
            ("6.6.1", true),
            ("6.18.44-fc", true),
            ("7.0.0-rc1", true),
            ("strange", true),
        ] {
            assert_eq!(measures_overhead(release), measured, "{release}");
        }
        assert!(tcp_settings().timestamps.is_some());
    }

    #[test]
    fn cpuinfo_of_two_architectures() {
        let x86 = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu hypervisor\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("Intel(R) Xeon(R)"));
        assert!(has_hypervisor(x86) && !has_hypervisor("flags : fpu hypervisors\n"));
        assert_eq!(
            cpu_model("processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n"),
            None
        );
    }

    #[test]
    fn amounts_are_read_or_absent() {
        assert_eq!(
            memory_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"),
            Some(16 << 20)
        );
        assert_eq!(memory_bytes("MemFree: 1 kB\n"), None);
        assert_eq!(
            triple("4096\t131072\t6291456"),
            Some([4096, 131_072, 6_291_456])
        );
        assert_eq!(triple("4096 131072"), None);
    }

    #[test]
    fn a_virtual_machine_is_told_by_flag_or_vendor() {
        assert_eq!(machine(false, [Some("Dell Inc.".to_owned()), None]), None);
        assert_eq!(
            machine(true, [None, None]).as_deref(),
            Some("virtual machine")
        );
        let arm = machine(false, [Some("QEMU".to_owned()), Some("Virtual".to_owned())]);
        assert_eq!(arm.as_deref(), Some("virtual machine (QEMU Virtual)"));
    }
}
