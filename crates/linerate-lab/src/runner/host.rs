//! A host of the lab: a network namespace with one interface, `eth0`, towards the router.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::{Child, Command};

use linerate_kernel::inventory::Root;
use linerate_kernel::link::{self, RouteThrough, VethEnd};
use linerate_kernel::namespace::NetworkNamespace;
use linerate_kernel::process::{self, ChildSettings};
use linerate_kernel::{KernelError, route, setting};

use super::error::LabError;
use super::in_force::HostInForce;
use crate::scenario::{Family, HostSpec};

/// The interface of each host.
pub const INTERFACE: &str = "eth0";
/// Bits of the networks between a host and the router.
const PREFIX_V4: u8 = 30;
const PREFIX_V6: u8 = 64;
/// The least MTU of IPv6, bytes.
const IPV6_LEAST: u32 = 1280;
/// The longest name of an interface.
const LONGEST_NAME: usize = 15;

/// What crosses the links between hosts and router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crossing {
    /// What the stacks make, up to 64 KiB.
    Whole,
    /// Single segments of TCP. Batches of datagrams come whole: a packet queue has the kernel cut them.
    Segments,
    /// Single packets.
    Packets,
}

/// A host.
#[derive(Debug)]
pub struct Host {
    name: String,
    namespace: NetworkNamespace,
    number: u8,
    /// CPUs of its programs.
    cpus: Vec<usize>,
    /// Index of the router's interface towards it.
    pub(super) port: u32,
    /// The name of that interface.
    pub(super) port_name: String,
}

impl Host {
    /// Makes it, its link to the router, and its settings. The calling thread is in the router's namespace.
    ///
    /// `number` tells its network, 1 to 63; its programs stay on `cpus`.
    pub(super) fn make(
        name: &str,
        number: u8,
        spec: &HostSpec,
        crossing: Crossing,
        cpus: &[usize],
    ) -> Result<Self, LabError> {
        let namespace = NetworkNamespace::make()
            .map_err(LabError::work("make a network namespace for", name))?;
        let router = NetworkNamespace::current().map_err(LabError::work(
            "find the network namespace of",
            "the router",
        ))?;
        let port = port_name(name, number);
        let end = |name, namespace| VethEnd {
            name,
            namespace,
            mtu: spec.mtu,
        };
        let failed = LabError::network(name);
        link::make_veth(end(&port, &router), end(INTERFACE, &namespace)).map_err(&failed)?;
        let mut host = Self {
            name: name.to_owned(),
            namespace,
            number,
            cpus: cpus.to_vec(),
            port: 0,
            port_name: port.clone(),
        };
        host.set_up_link(&port, 1, spec.mtu, crossing)
            .map_err(&failed)?;
        host.port = route::index_of(&port).ok_or_else(|| {
            failed(KernelError {
                operation: "find",
                object: port.clone(),
                source: ErrorKind::NotFound.into(),
            })
        })?;
        host.inside(|| host.set_up(spec, crossing))??;
        Ok(host)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub fn address(&self, family: Family) -> IpAddr {
        self.side(family, 2)
    }

    /// The CPUs that its programs are held to, so that its packets keep their order; empty: any.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Does something inside, on a thread of its own.
    pub(super) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        self.namespace
            .run(work)
            .map_err(LabError::work("enter the network namespace of", &self.name))
    }

    /// Starts a program on this host. The kernel kills it when the calling thread ends.
    ///
    /// # Errors
    /// [`LabError::Work`]: no such program, no memory …
    pub fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        self.spawn_with(command, &ChildSettings::default())
    }

    /// The same on a certain CPU, or with another niceness. The namespace in `settings` is replaced.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn spawn_with(
        &self,
        command: &mut Command,
        settings: &ChildSettings<'_>,
    ) -> Result<Child, LabError> {
        use std::os::fd::AsFd as _;
        let program = command.get_program().to_string_lossy().into_owned();
        let mut settings = ChildSettings {
            namespace: Some(self.namespace.as_fd()),
            ..settings.clone()
        };
        if settings.cpus.is_empty() {
            settings.cpus.clone_from(&self.cpus);
        }
        process::spawn_bound(command, &settings).map_err(LabError::work("start", program))
    }

    /// Where another process finds its namespace as long as this one lives.
    pub fn namespace_file(&self) -> PathBuf {
        file_of(&self.namespace)
    }

    /// The network that it is in, with its prefix's length.
    pub(super) fn network(&self, family: Family) -> (IpAddr, u8) {
        let prefix = match family {
            Family::Ipv4 => PREFIX_V4,
            Family::Ipv6 => PREFIX_V6,
        };
        (self.side(family, 0), prefix)
    }

    /// 1 is the router's side, 2 the host's. The networks are those for documentation (RFC 5737, RFC 3849).
    fn side(&self, family: Family, side: u8) -> IpAddr {
        match family {
            Family::Ipv4 => Ipv4Addr::new(192, 0, 2, self.number * 4 + side).into(),
            Family::Ipv6 => {
                let number = u16::from(self.number);
                Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0, 0, u16::from(side)).into()
            }
        }
    }

    /// One end of the link: addresses, offloads, up.
    fn set_up_link(
        &self,
        name: &str,
        side: u8,
        mtu: u32,
        crossing: Crossing,
    ) -> Result<(), KernelError> {
        for family in families(mtu) {
            let prefix = match family {
                Family::Ipv4 => PREFIX_V4,
                Family::Ipv6 => PREFIX_V6,
            };
            link::add_address(name, self.side(*family, side), prefix)?;
        }
        if crossing != Crossing::Whole {
            link::set_offloads(name, false)?;
        }
        if crossing == Crossing::Packets {
            link::cut_datagrams(name)?;
        }
        setting::set_up(name, true)
    }

    /// Inside.
    fn set_up(&self, spec: &HostSpec, crossing: Crossing) -> Result<(), LabError> {
        let failed = LabError::network(&self.name);
        setting::set_up("lo", true).map_err(&failed)?;
        self.set_up_link(INTERFACE, 2, spec.mtu, crossing)
            .map_err(&failed)?;
        if let Some(packets) = spec.txqueuelen {
            setting::set_tx_queue_len(INTERFACE, packets).map_err(&failed)?;
        }
        for family in families(spec.mtu) {
            let wanted = RouteThrough {
                to: None,
                gateway: self.side(*family, 1),
                interface: INTERFACE,
                congestion: Some(&spec.congestion),
            };
            link::add_route(wanted).map_err(|source| self.no_route(spec, source))?;
        }
        for (key, value) in wanted_settings(spec) {
            set(&self.name, &key, &value)?;
        }
        Ok(())
    }

    fn no_route(&self, spec: &HostSpec, source: KernelError) -> LabError {
        let place = self.name.clone();
        let available = read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
        if available
            .split_whitespace()
            .any(|name| name == spec.congestion)
        {
            return LabError::Network { place, source };
        }
        LabError::Congestion {
            place,
            available,
            source,
        }
    }

    /// What is really in force, read back.
    pub(super) fn in_force(&self, spec: &HostSpec) -> Result<HostInForce, LabError> {
        let asked = wanted_settings(spec);
        // No host has this one, and each has a route to it.
        let beyond = IpAddr::from(Ipv4Addr::new(192, 0, 2, 1));
        self.inside(|| HostInForce::read(INTERFACE, beyond, &asked))
    }
}

/// The name of the router's interface towards a host.
fn port_name(name: &str, number: u8) -> String {
    let port = format!("to-{name}");
    if port.len() <= LONGEST_NAME {
        port
    } else {
        format!("port{number}")
    }
}

/// Where another process finds a namespace as long as this one lives.
pub(super) fn file_of(namespace: &NetworkNamespace) -> PathBuf {
    use std::os::fd::{AsFd as _, AsRawFd as _};
    let fd = namespace.as_fd().as_raw_fd();
    PathBuf::from(format!("/proc/{}/fd/{fd}", std::process::id()))
}

/// The families that a link of this MTU carries: the kernel has no IPv6 below 1280 bytes (RFC 8200, section 5).
pub(super) fn families(mtu: u32) -> &'static [Family] {
    if mtu >= IPV6_LEAST {
        &[Family::Ipv4, Family::Ipv6]
    } else {
        &[Family::Ipv4]
    }
}

fn wanted_settings(spec: &HostSpec) -> Vec<(String, String)> {
    let triple = |[least, initial, most]: [u64; 3]| format!("{least} {initial} {most}");
    let memory = [
        ("net.ipv4.tcp_wmem", spec.tcp_wmem),
        ("net.ipv4.tcp_rmem", spec.tcp_rmem),
    ];
    let memory = memory
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), triple(value?))));
    let others = spec
        .sysctl
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()));
    memory.chain(others).collect()
}

/// Where a per-namespace setting lies. `None` for one that is no setting of a network namespace.
fn path_of(key: &str) -> Option<String> {
    setting::sysctl_path(key).filter(|path| path.starts_with("/proc/sys/net/"))
}

/// A setting of the calling thread's namespace; `None` where there is no such one.
pub(super) fn read(key: &str) -> Option<String> {
    path_of(key)?;
    setting::sysctl(&Root::of_this_machine(), key).ok()
}

/// Sets one.
pub(super) fn set(place: &str, key: &str, value: &str) -> Result<(), LabError> {
    let failed = |reason: &str| LabError::Setting {
        place: place.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
    };
    if path_of(key).is_none() {
        return Err(failed(
            "it is not a setting of a network namespace; those begin with `net.`",
        ));
    }
    let written = setting::set_sysctl(&Root::of_this_machine(), key, value);
    written.map_err(|error| match error.source.kind() {
        ErrorKind::NotFound => failed("this kernel has it not, or for the whole machine alone"),
        ErrorKind::PermissionDenied => {
            failed("it applies to the whole machine, which a lab does not change")
        }
        _ => failed(&error.source.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_the_host_s_name_where_that_is_short_enough() {
        assert_eq!(port_name("node01", 1), "to-node01");
        assert_eq!(port_name("cross-sender", 3), "to-cross-sender");
        assert_eq!(port_name("node01.example", 7), "port7");
    }

    #[test]
    fn only_settings_of_a_namespace_have_a_place() {
        let path = path_of("net.ipv4.conf.eth0/100.rp_filter").unwrap();
        assert_eq!(path, "/proc/sys/net/ipv4/conf/eth0.100/rp_filter");
        for key in [
            "kernel.pid_max",
            "net",
            "net./../kernel.x",
            "net..x",
            "net.ipv4./..",
            "",
        ] {
            assert_eq!(path_of(key), None, "{key}");
        }
    }

    #[test]
    fn what_the_scenario_asks_comes_in_the_kernels_words() {
        let spec = HostSpec {
            tcp_wmem: Some([4096, 16384, 4_194_304]),
            ..HostSpec::default()
        };
        assert_eq!(
            wanted_settings(&spec),
            [(
                "net.ipv4.tcp_wmem".to_owned(),
                "4096 16384 4194304".to_owned()
            )]
        );
    }
}
