//! Counters of the host, to be read before, during and after a test: CPUs, softirq, protocols,
//! interfaces, queueing disciplines, the memory limit of the process's cgroup.
//!
//! [`Counters`] keeps files and buffers open for reading ten times a second; the functions of the same
//! names open, read once and close. Network counters are those of the network namespace that the
//! opening thread was in.

mod cgroup;
mod cpu;
mod device;
mod protocol;

use std::collections::BTreeMap;
use std::io;

pub use cgroup::memory_limit;
pub(crate) use cpu::parse_softnet;
pub use cpu::{CpuCounters, MachineTime, Softnet};
pub use device::QdiscCounters;
pub(crate) use device::link_stats;
pub(crate) use protocol::parse as parse_protocols;

use linerate_model::host::LinkCounters;
use linerate_model::plain_text::PlainText;

use crate::KernelError;
use crate::netlink::Netlink;
use crate::proc_file::ProcFile;

const STAT: &str = "/proc/stat";
const SOFTNET: &str = "/proc/thread-self/net/softnet_stat";
const PROTOCOLS: [&str; 3] = [
    "/proc/thread-self/net/snmp",
    "/proc/thread-self/net/netstat",
    "/proc/thread-self/net/snmp6",
];

/// Counters to be read often: open files and their buffers.
#[derive(Debug)]
pub struct Counters {
    stat: ProcFile,
    softnet: ProcFile,
    protocols: Vec<ProcFile>,
}

impl Counters {
    /// Opens everything in the calling thread's network namespace, and stays with it.
    ///
    /// # Errors
    /// A file of /proc that cannot be opened.
    pub fn open() -> Result<Self, KernelError> {
        let open = |path: &str| ProcFile::open(path).map_err(KernelError::of("open", path));
        Ok(Self {
            stat: open(STAT)?,
            softnet: open(SOFTNET)?,
            protocols: open_protocols(),
        })
    }

    /// Time of each CPU that is online.
    pub fn cpu(&mut self) -> io::Result<Vec<CpuCounters>> {
        self.stat.read().map(cpu::parse_stat)
    }

    /// Packet processing of each CPU.
    pub fn softnet(&mut self) -> io::Result<Vec<Softnet>> {
        self.softnet.read().map(cpu::parse_softnet)
    }

    /// The namespace's protocol counters by name: `Tcp.RetransSegs`, `TcpExt.TCPTimeouts`,
    /// `Udp6.RcvbufErrors`. `Udp6.…` counts apart from `Udp.…`. What is below zero is no counter and left out.
    pub fn protocols(&mut self) -> io::Result<BTreeMap<String, u64>> {
        let mut counters = BTreeMap::new();
        for file in &mut self.protocols {
            protocol::parse(file.read()?, &mut counters);
        }
        Ok(counters)
    }
}

/// The protocol counters at one instant, to tell later what has grown since.
#[derive(Debug, Default)]
pub struct ProtocolsBefore(Vec<(ProcFile, String)>);

impl ProtocolsBefore {
    /// Reads them in the calling thread's network namespace. What cannot be read counts as nothing.
    pub fn read() -> Self {
        let files = open_protocols().into_iter().filter_map(|mut file| {
            let text = file.read().ok()?.to_owned();
            Some((file, text))
        });
        Self(files.collect())
    }

    /// What has grown, by the names of [`Counters::protocols`].
    pub fn growth(&mut self) -> BTreeMap<PlainText, u64> {
        let mut grown = BTreeMap::new();
        for (file, before) in &mut self.0 {
            if let Ok(after) = file.read() {
                protocol::growth(before, after, &mut grown);
            }
        }
        let named = |(name, growth): (String, u64)| (name.into(), growth);
        grown.into_iter().map(named).collect()
    }
}

fn open_protocols() -> Vec<ProcFile> {
    // A kernel without IPv6 has no snmp6.
    PROTOCOLS
        .iter()
        .filter_map(|path| ProcFile::open(path).ok())
        .collect()
}

/// As [`Counters::cpu`], once.
pub fn cpu() -> io::Result<Vec<CpuCounters>> {
    ProcFile::open(STAT)?.read().map(cpu::parse_stat)
}

/// All CPUs together.
///
/// # Errors
/// As [`cpu`].
pub fn machine() -> io::Result<MachineTime> {
    cpu().map(|cpus| MachineTime::of(&cpus))
}

/// As [`Counters::softnet`], once.
pub fn softnet() -> io::Result<Vec<Softnet>> {
    ProcFile::open(SOFTNET)?.read().map(cpu::parse_softnet)
}

/// An interface's counters; `None` where there is no such interface.
pub fn interface(index: u32) -> io::Result<Option<LinkCounters>> {
    device::interface(&mut Netlink::open()?, index)
}

/// The counters of an interface's queueing disciplines, children included, root first.
pub fn qdiscs(index: u32) -> io::Result<Vec<QdiscCounters>> {
    device::qdiscs(&mut Netlink::open()?, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read_and_read_again() {
        let mut counters = Counters::open().unwrap();
        for _ in 0..2 {
            assert!(!counters.cpu().unwrap().is_empty());
            assert!(!counters.softnet().unwrap().is_empty());
            let protocols = counters.protocols().unwrap();
            assert!(protocols.contains_key("Tcp.RetransSegs"));
            assert!(protocols.contains_key("Udp.RcvbufErrors"));
            assert!(protocols.contains_key("TcpExt.TCPBacklogDrop"));
        }
    }

    #[test]
    fn the_loopback_interface_counts_both_ways_alike() {
        let lo = crate::route::index_of("lo").unwrap();
        let before = interface(lo).unwrap().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .send_to(&[0; 1000], socket.local_addr().unwrap())
            .unwrap();
        let after = interface(lo).unwrap().unwrap();
        assert!(after.tx_bytes >= before.tx_bytes + 1028);
        assert!(after.rx_bytes >= before.rx_bytes + 1028);
        assert!(
            qdiscs(lo)
                .unwrap()
                .iter()
                .all(|qdisc| qdisc.kind == "noqueue")
        );
        assert_eq!(interface(1 << 30).unwrap(), None);
        assert_eq!(qdiscs(1 << 30).unwrap(), []);
    }
}
