//! Everything that is to be known of a host without any privilege: [`HostFacts`], from netlink, ethtool, sysfs,
//! proc and the files that set things.
//!
//! Files are read below a [`Root`], so that a copy of another machine's can be looked at; what only a running
//! kernel tells comes through [`Devices`]. What could not be read says why.

pub mod blocks;
mod device;
mod interrupt_queues;
mod links;
mod machine;
mod root;
mod settings;
mod storage;
mod system;

use std::collections::BTreeMap;
use std::io;

use linerate_model::fingerprint::SYSCTLS;
use linerate_model::host::{Fact, HostFacts, Interface, RouteFacts, SCHEMA_VERSION};

use crate::counters::parse_protocols;
use crate::ethtool;
pub use root::Root;
pub use storage::scheduler;

/// What a running kernel tells of its interfaces and no file does.
pub trait Devices {
    /// All interfaces with addresses and queueing disciplines, in order of their index.
    ///
    /// # Errors
    /// Where there is no kernel to ask, or it does not answer.
    fn interfaces(&self) -> io::Result<Vec<Interface>>;
    /// The routes of the main table.
    fn routes(&self, interfaces: &[Interface]) -> Fact<Vec<RouteFacts>>;
    /// Fills in what the driver knows.
    fn drivers(&self, interface: &mut Interface);
    /// Fills in of that what somebody can set or install, without the driver's counters, which some devices take long to
    /// tell.
    fn driver_settings(&self, interface: &mut Interface);
    /// Fills in which queue each of its interrupts is of, where that is known.
    fn queues_of_interrupts(&self, interface: &mut Interface);
}

/// The running kernel, in the calling thread's network namespace.
#[derive(Debug, Clone, Copy)]
pub struct RunningKernel;

impl Devices for RunningKernel {
    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        links::interfaces()
    }

    fn routes(&self, interfaces: &[Interface]) -> Fact<Vec<RouteFacts>> {
        links::routes(interfaces)
    }

    fn drivers(&self, interface: &mut Interface) {
        self.driver_settings(interface);
        let name = interface.name.as_str();
        interface.link = ethtool::facts::link(name).into();
        interface.pause = ethtool::facts::pause(name).into();
        interface.statistics = ethtool::facts::statistics(name).into();
        interface.indirection = ethtool::facts::indirection(name).into();
    }

    fn driver_settings(&self, interface: &mut Interface) {
        let name = interface.name.as_str();
        interface.driver = ethtool::facts::driver(name).into();
        interface.rings = ethtool::facts::rings(name).into();
        interface.channels = ethtool::facts::channels(name).into();
        interface.coalescing = ethtool::facts::coalescing(name).into();
        interface.features = ethtool::facts::features(name).into();
    }

    fn queues_of_interrupts(&self, interface: &mut Interface) {
        let Fact::Known(interrupts) = &mut interface.interrupts else {
            return;
        };
        // An older kernel does not tell; their names do then.
        let queues = if interrupts.is_empty() {
            BTreeMap::new()
        } else {
            interrupt_queues::of(interface.index).unwrap_or_default()
        };
        for interrupt in interrupts {
            interrupt.queue = queues.get(&interrupt.number).copied();
        }
    }
}

/// No kernel: a folder of files has no interfaces.
#[derive(Debug, Clone, Copy)]
pub struct NoKernel;

const FILES_ONLY: &str = "only files were read, and interfaces are known to a running kernel";

impl Devices for NoKernel {
    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, FILES_ONLY))
    }

    fn routes(&self, _: &[Interface]) -> Fact<Vec<RouteFacts>> {
        Fact::unknown(FILES_ONLY)
    }

    fn drivers(&self, _: &mut Interface) {}

    fn driver_settings(&self, _: &mut Interface) {}

    fn queues_of_interrupts(&self, _: &mut Interface) {}
}

/// Reads everything. `now_unix_s` is the wall clock, a label.
///
/// It takes some milliseconds, more with many processes and interfaces.
pub fn collect(root: &Root, devices: &impl Devices, now_unix_s: u64) -> HostFacts {
    let lines = device::interrupt_lines(root);
    let interfaces = devices.interfaces().map(|mut interfaces| {
        for interface in &mut interfaces {
            devices.drivers(interface);
            device::describe(root, interface, &lines);
            devices.queues_of_interrupts(interface);
        }
        interfaces
    });
    let interfaces: Fact<Vec<Interface>> = interfaces.map_err(|error| error.to_string()).into();
    let settings = settings::read(root);
    let keys = settings.iter().map(|setting| setting.key.clone());
    HostFacts {
        schema_version: SCHEMA_VERSION,
        taken_unix_s: now_unix_s,
        root: root.folder().display().to_string(),
        system: system::system(root),
        processors: system::processors(root),
        routes: devices.routes(interfaces.known().map_or(&[], Vec::as_slice)),
        sysctls: sysctls(root, keys),
        settings: Fact::Known(settings),
        pinnings: Fact::Known(settings::pinnings(root)),
        keepers: system::keepers(root),
        counters: counters(root),
        softnet: system::softnet(root),
        storage: storage::read(root),
        interfaces,
    }
}

/// What a fingerprint rests on and nothing else: of the interfaces those that carry what `interface` sends.
///
/// It needs no privilege, and takes about a millisecond, more with many disks; where the interface has interrupts, also
/// some microseconds for each process of the host.
pub fn of_fingerprint(root: &Root, devices: &impl Devices, interface: Option<&str>) -> HostFacts {
    let interfaces = match interface {
        Some(_) => devices.interfaces().map_err(|error| error.to_string()),
        None => Ok(Vec::new()),
    };
    let mut facts = HostFacts {
        schema_version: SCHEMA_VERSION,
        system: system::kernel_alone(root),
        processors: system::software_of_processors(root),
        sysctls: running_sysctls(root, SYSCTLS.iter().map(|key| (*key).to_owned())),
        storage: storage::read(root),
        interfaces: interfaces.into(),
        ..HostFacts::default()
    };
    let carriers = interface.map(|name| facts.carriers(name));
    let carriers = carriers.unwrap_or_default().into_iter();
    let carriers: Vec<String> = carriers.map(|one| one.name.clone()).collect();
    let mut interrupts = false;
    if let Fact::Known(all) = &mut facts.interfaces {
        for one in all.iter_mut().filter(|one| carriers.contains(&one.name)) {
            devices.driver_settings(one);
            device::describe_queues(root, one);
            devices.queues_of_interrupts(one);
            interrupts |= one.interrupts.known().is_some_and(|all| !all.is_empty());
        }
    }
    if interrupts {
        facts.keepers = system::interrupt_keeper(root);
    }
    facts
}

/// One interface, as [`collect`] tells of it; `None` where there is none of this name.
///
/// # Errors
/// As [`Devices::interfaces`].
pub fn interface(root: &Root, devices: &impl Devices, name: &str) -> io::Result<Option<Interface>> {
    let all = devices.interfaces()?;
    let mut found = all.into_iter().find(|interface| interface.name == name);
    if let Some(interface) = &mut found {
        devices.drivers(interface);
        device::describe(root, interface, &device::interrupt_lines(root));
        devices.queues_of_interrupts(interface);
    }
    Ok(found)
}

/// Keys outside the folders of [`sysctls`] that a host's throughput or its disks depend on.
const OTHER_KEYS: [&str; 12] = [
    "net.ipv4.ip_forward",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.ip_local_port_range",
    "vm.overcommit_memory",
    "kernel.numa_balancing",
    "net.netfilter.nf_conntrack_max",
    // How much may wait in memory to be written, and for how long.
    "vm.dirty_bytes",
    "vm.dirty_ratio",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
];

/// Secrets of the kernel, which have no business in a report.
const SECRETS: [&str; 3] = [
    "net.core.netdev_rss_key",
    "net.ipv4.tcp_fastopen_key",
    // Of each interface.
    ".stable_secret",
];

/// All of `net.core`, TCP's and UDP's of `net.ipv4`, those of each interface for IPv4 and IPv6, and the keys that files set.
fn sysctls(root: &Root, set: impl Iterator<Item = String>) -> BTreeMap<String, Fact<String>> {
    let folder = |folder: &str, wanted: fn(&str) -> bool| {
        let prefix = folder.replace('/', ".");
        root.names(&format!("/proc/sys/{folder}"))
            .into_iter()
            .filter(move |name| wanted(name))
            .map(move |name| format!("{prefix}.{name}"))
    };
    // Folders are `all`, `default` and interfaces; a dot in a name is a slash in its key.
    let interfaces = |family: &'static str| {
        let below = format!("/proc/sys/net/{family}/conf");
        let names = root.names(&below).into_iter();
        names.flat_map(move |name| {
            let part = name.replace('.', "/");
            let keys = root.names(&format!("{below}/{name}")).into_iter();
            keys.map(move |key| format!("net.{family}.conf.{part}.{key}"))
        })
    };
    let transport = |name: &str| name.starts_with("tcp_") || name.starts_with("udp_");
    let keys = folder("net/core", |_| true)
        .chain(folder("net/ipv4", transport))
        .chain(interfaces("ipv4"))
        .chain(interfaces("ipv6"))
        .chain(OTHER_KEYS.iter().map(|key| (*key).to_owned()))
        .chain(set.filter(|key| !key.contains('*')))
        .filter(|key| !SECRETS.iter().any(|secret| key.ends_with(secret)));
    running_sysctls(root, keys)
}

fn running_sysctls(
    root: &Root,
    keys: impl Iterator<Item = String>,
) -> BTreeMap<String, Fact<String>> {
    keys.map(|key| {
        let value = running(root, &key);
        (key, value)
    })
    .collect()
}

fn running(root: &Root, key: &str) -> Fact<String> {
    let Some(path) = crate::setting::sysctl_path(key) else {
        return Fact::unknown("it is not a key");
    };
    root.text(&path)
        .map(|text| settings::single_blanks(&text))
        .into()
}

fn counters(root: &Root) -> Fact<BTreeMap<String, u64>> {
    let mut counters = BTreeMap::new();
    let mut why = String::new();
    for file in ["snmp", "netstat", "snmp6"] {
        match root.text(&format!("/proc/net/{file}")) {
            Ok(text) => parse_protocols(&text, &mut counters),
            Err(error) => why = error,
        }
    }
    if counters.is_empty() {
        return Fact::unknown(why);
    }
    Fact::Known(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_facts_and_reads_the_same_kernel_as_everybody() {
        let facts = collect(&Root::of_this_machine(), &RunningKernel, 7);
        assert_eq!(
            (facts.schema_version, facts.taken_unix_s),
            (SCHEMA_VERSION, 7)
        );
        let lo = facts.interface("lo").unwrap();
        assert_eq!(lo.kind, "loopback");
        assert_eq!(lo.pcie, Fact::Known(None));
        let rmem = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
        assert_eq!(
            facts.sysctl("net.ipv4.tcp_rmem").known().unwrap(),
            &settings::single_blanks(&rmem)
        );
        assert!(
            facts
                .counters
                .known()
                .unwrap()
                .contains_key("Tcp.RetransSegs")
        );
        assert!(!facts.softnet.known().unwrap().is_empty());
        assert!(!facts.sysctls.contains_key("net.ipv4.tcp_fastopen_key"));
    }

    #[test]
    fn a_fingerprint_is_the_same_whoever_collects_and_reads_it_again() {
        let root = Root::of_this_machine();
        for interface in [None, Some("lo")] {
            let of = || of_fingerprint(&root, &RunningKernel, interface).fingerprint(interface);
            let all = collect(&root, &RunningKernel, 0).fingerprint(interface);
            assert_eq!((of(), of()), (all.clone(), all));
        }
    }

    #[test]
    fn an_empty_folder_knows_nothing_and_says_so() {
        let path = tempfile::tempdir().unwrap();
        let folder = Root::at(path.path()).unwrap();
        let facts = collect(&folder, &NoKernel, 0);
        assert_eq!(facts.interfaces.why(), FILES_ONLY);
        assert!(
            facts
                .system
                .kernel
                .why()
                .starts_with("cannot read /proc/sys/kernel/osrelease")
        );
        assert_eq!(facts.settings, Fact::Known(Vec::new()));
        assert!(facts.system.virtual_machine.known().is_none());
        assert!(facts.counters.known().is_none() && facts.softnet.known().is_none());
    }
}
