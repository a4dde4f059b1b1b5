//! Which connections are watched.

use std::collections::BTreeSet;
use std::net::{IpAddr, ToSocketAddrs as _};

use linerate_kernel::process::start_ticks;
use linerate_kernel::process_sockets::{self, Process};
use linerate_kernel::tcp_table::{Condition, SocketFilter, TcpSocket, TcpTable};
use linerate_model::observation::Watch;
use linerate_model::units::Nanos;

use crate::EngineError;
use crate::server::Network;

/// Between two looks at what a process holds, and at the ports that are listened on …
const LOOK_EVERY: Nanos = Nanos::from_millis(200);
/// … and where a connection was seen that was never seen before.
const LOOK_AT_NEWS_EVERY: Nanos = Nanos::from_millis(30);
/// More listening ports than this are not told to the kernel's filter but sorted out here.
const MOST_FILTERED: usize = 256;

/// What is asked for, as it stands now.
#[derive(Debug)]
pub(super) struct Scope {
    watch: Watch,
    networks: Vec<Network>,
    filter: SocketFilter,
    listening: BTreeSet<u16>,
    family: Option<Family>,
    looked: Nanos,
    news: bool,
}

/// The process that is watched, and its descendants.
#[derive(Debug)]
struct Family {
    pid: u32,
    /// With its number it names the process for good.
    started: u64,
    held: Vec<(Process, BTreeSet<u64>)>,
    /// Descendants whose descriptors may not be looked at.
    closed_to_us: usize,
}

impl Scope {
    /// Finds the peers' addresses and looks at the process.
    pub(super) fn new(watch: &Watch, table: &mut TcpTable) -> Result<Self, EngineError> {
        let mut networks = Vec::new();
        for peer in &watch.peers {
            networks.extend(networks_of(peer)?);
        }
        let family = watch.pid.map(Family::of).transpose()?;
        let mut scope = Self {
            watch: watch.clone(),
            networks,
            filter: SocketFilter::default(),
            listening: BTreeSet::new(),
            family,
            looked: Nanos::ZERO,
            news: false,
        };
        scope.learn_listening(table);
        Ok(scope)
    }

    /// The kernel's part of the choice.
    pub(super) fn filter(&self) -> &SocketFilter {
        &self.filter
    }

    /// Whether a port is listened on.
    pub(super) fn listens(&self, port: u16) -> bool {
        self.listening.contains(&port)
    }

    /// Looks again, where it is time or `news` were seen. False once the process that is watched has ended.
    pub(super) fn look(&mut self, now: Nanos, news: bool, table: &mut TcpTable) -> bool {
        self.news |= news;
        let every = if self.news {
            LOOK_AT_NEWS_EVERY
        } else {
            LOOK_EVERY
        };
        if now.since(self.looked) < every {
            return true;
        }
        self.looked = now;
        self.news = false;
        self.learn_listening(table);
        self.family.as_mut().is_none_or(Family::look)
    }

    /// Whether a connection is to be watched.
    pub(super) fn admits(&self, socket: &TcpSocket<'_>) -> bool {
        let (local, remote) = (socket.local.port(), socket.remote.port());
        let ports = &self.watch.ports;
        let port = ports.is_empty() || ports.contains(&local) || ports.contains(&remote);
        let peer = self.networks.is_empty()
            || self
                .networks
                .iter()
                .any(|network| network.contains(socket.remote.ip()));
        let listened = !self.watch.listening || self.listens(local);
        let held = self
            .family
            .as_ref()
            .is_none_or(|family| family.holder(u64::from(socket.inode)).is_some());
        port && peer && listened && held
    }

    /// The process that holds a socket, where one is watched.
    pub(super) fn holder(&self, inode: u64) -> Option<&Process> {
        self.family.as_ref()?.holder(inode)
    }

    /// Whether processes are watched: then who holds a socket is known without looking at all others.
    pub(super) fn knows_holders(&self) -> bool {
        self.family.is_some()
    }

    /// Descendants of the process whose sockets may not be seen.
    pub(super) fn closed_to_us(&self) -> usize {
        self.family.as_ref().map_or(0, |family| family.closed_to_us)
    }

    fn learn_listening(&mut self, table: &mut TcpTable) {
        // Where the kernel does not answer now, what was known holds.
        if let Ok(ports) = table.listening_ports() {
            self.listening = ports.into_iter().collect();
        }
        let ports: Vec<Condition> = if self.watch.ports.is_empty() && self.watch.listening {
            let few = self.listening.len() <= MOST_FILTERED;
            // Port 0 is nobody's: without a listener there is nothing to watch.
            let none = [0].into_iter().filter(|_| self.listening.is_empty());
            let ports = self.listening.iter().copied().filter(|_| few).chain(none);
            ports.map(Condition::LocalPort).collect()
        } else {
            let both = |port: &u16| [Condition::LocalPort(*port), Condition::RemotePort(*port)];
            self.watch.ports.iter().flat_map(both).collect()
        };
        let peers: Vec<Condition> = self
            .networks
            .iter()
            .map(|network| Condition::Remote {
                address: network.address(),
                prefix: u8::try_from(network.prefix()).unwrap_or(u8::MAX),
            })
            .collect();
        // What the kernel's filter has no room for is sorted out here.
        let filters = [vec![ports.clone(), peers.clone()], vec![peers], vec![ports]];
        self.filter = filters
            .iter()
            .map(|groups| SocketFilter::all_of(groups))
            .find(SocketFilter::fits)
            .unwrap_or_default();
    }
}

/// A network as written, or the addresses of a name.
fn networks_of(peer: &str) -> Result<Vec<Network>, EngineError> {
    if let Ok(network) = peer.parse() {
        return Ok(vec![network]);
    }
    let fail = |reason: String| EngineError::Resolve {
        host: peer.to_owned(),
        reason,
    };
    if peer.contains('/') {
        return Err(fail(
            "a network is an address and a prefix length, such as 192.0.2.0/24".to_owned(),
        ));
    }
    let found = (peer, 0)
        .to_socket_addrs()
        .map_err(|error| fail(error.to_string()))?;
    let addresses: BTreeSet<IpAddr> = found.map(|address| address.ip().to_canonical()).collect();
    Ok(addresses.into_iter().map(Network::of).collect())
}

impl Family {
    fn of(pid: u32) -> Result<Self, EngineError> {
        let absent = || EngineError::Process {
            pid,
            source: std::io::ErrorKind::NotFound.into(),
        };
        let started = start_ticks(pid).ok_or_else(absent)?;
        process_sockets::sockets_of(pid).map_err(|source| EngineError::Process { pid, source })?;
        let mut family = Self {
            pid,
            started,
            held: Vec::new(),
            closed_to_us: 0,
        };
        family.look();
        Ok(family)
    }

    fn look(&mut self) -> bool {
        let lives = start_ticks(self.pid) == Some(self.started);
        if !lives {
            return false;
        }
        self.closed_to_us = 0;
        self.held.clear();
        for pid in process_sockets::family_of(self.pid) {
            match process_sockets::sockets_of(pid) {
                Ok(inodes) => {
                    let name = process_sockets::name_of(pid);
                    self.held.push((Process { pid, name }, inodes));
                }
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    self.closed_to_us += 1;
                }
                // It ended while we looked.
                Err(_) => {}
            }
        }
        true
    }

    fn holder(&self, inode: u64) -> Option<&Process> {
        // A connection that nobody has accepted yet has no inode.
        let holds = |(_, inodes): &&(Process, BTreeSet<u64>)| inode != 0 && inodes.contains(&inode);
        self.held.iter().find(holds).map(|(process, _)| process)
    }
}
