//! A star that is up: a network namespace for each host and each switch.
//!
//! ```text
//! node01 ── eth0 ─── to-node01 ┐                                ┌ to-node09 ─── eth0 ── node09
//! node02 ── eth0 ─── to-node02 ┤ rack1 ─ trunk1-1 … trunk1-4 ─ rack2 ├ …
//! ```
//!
//! A switch forwards by addresses: it is a router with a route to each host of another switch, over all members of the
//! trunk that leads there. The kernel's hash of addresses and ports takes one of them. Each interface has a token bucket
//! with the rate of its link on its way out. Everything hangs on descriptors and threads of one process, as with a
//! [`Lab`](super::Lab).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use linerate_kernel::KernelError;
use linerate_kernel::forward_rules::{self, ToQueue};
use linerate_kernel::link::{self, NextHop, VethEnd};
use linerate_kernel::namespace::NetworkNamespace;
use linerate_kernel::setting;
use linerate_kernel::setting::emulation::{self, Place, TokenBucket};
use linerate_kernel::thread;
use linerate_model::units::{BitRate, Nanos};

use super::error::LabError;
use super::host::{self, Crossing, Host, INTERFACE};
use super::lab::share_out;
use super::queues::{QUEUES, QueueSettings, Queues};
use crate::path::{DEFAULT_OVERHEAD, DirectionSpec};
use crate::scenario::{Family, Mode, PACKET_MODE_LIMIT};
use crate::star::{Down, Member, Star, StarHost, Trunk};

/// A rest lets so much of the rate pass at once, at least two packets.
const BURST: Nanos = Nanos::from_millis(2);
/// So many packets fit into a queue, whatever its rate.
const FEWEST_PACKETS: u64 = 10;
/// Bits of the network of a trunk's member.
const PREFIX_V4: u8 = 30;
const PREFIX_V6: u8 = 64;
/// Source and destination address, protocol, source and destination port (`FIB_MULTIPATH_HASH_FIELD_…` in
/// `include/net/ip_fib.h`).
const HASH_FIELDS: &str = "55";
/// What a switch's seed is multiplied by, so that seeds next to each other give hashes that have nothing in common.
const SEED_STEP: u64 = 0x9E37_79B9;

/// Hosts, switches and trunks, up.
#[derive(Debug)]
pub struct StarLab {
    switches: Vec<StandingSwitch>,
    hosts: Vec<StandingHost>,
    warnings: Vec<String>,
}

/// A host that is up.
#[derive(Debug)]
pub struct StandingHost {
    host: Host,
    switch: String,
    down: Option<Down>,
}

/// A switch that is up.
#[derive(Debug)]
pub struct StandingSwitch {
    name: String,
    namespace: NetworkNamespace,
    /// What delays the packets of its hosts.
    delay: Option<Queues>,
}

impl StarLab {
    /// Brings it up. [`isolate`](super::isolate) has been called.
    ///
    /// # Errors
    /// Each names what was tried, on which host or switch, and what to do.
    pub fn up(star: &Star) -> Result<Self, LabError> {
        let mut switches = star
            .switches
            .iter()
            .enumerate()
            .map(|(at, switch)| StandingSwitch::make(&switch.name, seed(star.seed, at)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut hosts = Vec::new();
        for (spec, number) in star.hosts.iter().zip(1..) {
            hosts.push(StandingHost::make(spec, number, &switches[spec.switch])?);
        }
        let mut first = 0;
        for (trunk, number) in star.trunks.iter().zip(1..) {
            Links {
                trunk,
                number,
                first,
            }
            .make(&switches)?;
            first += trunk.members.len();
        }
        add_routes(star, &switches, &hosts)?;
        for (at, spec) in star.switches.iter().enumerate() {
            if spec.delay > Nanos::ZERO {
                let own = hosts.iter().zip(&star.hosts);
                let own = own.filter(|(_, spec)| spec.switch == at);
                let ports: Vec<u32> = own.map(|(standing, _)| standing.host.port).collect();
                switches[at].delay = Some(switches[at].delayed(spec.delay, &ports)?);
            }
        }
        Ok(Self {
            switches,
            hosts,
            warnings: too_much(star).into_iter().collect(),
        })
    }

    /// The hosts, in the star's order.
    pub fn hosts(&self) -> &[StandingHost] {
        &self.hosts
    }

    /// The switches, in the star's order.
    pub fn switches(&self) -> &[StandingSwitch] {
        &self.switches
    }

    /// Why the lab itself may become the bottleneck.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether what delays packets goes on; it ends by itself only by an error.
    pub fn is_running(&self) -> bool {
        let mut delays = self.switches.iter().filter_map(|one| one.delay.as_ref());
        delays.all(Queues::is_running)
    }
}

impl StandingHost {
    fn make(spec: &StarHost, number: u8, switch: &StandingSwitch) -> Result<Self, LabError> {
        let host = switch.inside(|| {
            let host = Host::make(&spec.name, number, &spec.spec, Crossing::Packets, &[])?;
            shape(&host.port_name, spec.rate_in, spec.queue, spec.spec.mtu)?;
            Ok(host)
        })?;
        host.inside(|| {
            // Else the bucket would count what the stack hands over, up to 64 KiB with one frame's overhead.
            setting::set_gso_max_segments(INTERFACE, 1).map_err(LabError::network(&spec.name))?;
            shape(INTERFACE, spec.rate_out, spec.queue, spec.spec.mtu)?;
            if spec.down.is_some() {
                setting::set_up(INTERFACE, false).map_err(LabError::network(&spec.name))?;
            }
            Ok(())
        })??;
        Ok(Self {
            host,
            switch: switch.name.clone(),
            down: spec.down,
        })
    }

    /// Its namespace and addresses.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The name of its switch.
    pub fn switch(&self) -> &str {
        &self.switch
    }

    /// What of it does not work.
    pub const fn down(&self) -> Option<Down> {
        self.down
    }
}

impl StandingSwitch {
    fn make(name: &str, seed: u32) -> Result<Self, LabError> {
        let namespace = NetworkNamespace::make()
            .map_err(LabError::work("make a network namespace for", name))?;
        let switch = Self {
            name: name.to_owned(),
            namespace,
            delay: None,
        };
        switch.inside(|| {
            setting::set_up("lo", true).map_err(LabError::network(name))?;
            for (key, value) in [
                // A connection's packets come back over another member than they went.
                ("net.ipv4.conf.all.rp_filter", "0"),
                ("net.ipv4.conf.default.rp_filter", "0"),
                ("net.ipv4.ip_forward", "1"),
                ("net.ipv6.conf.all.forwarding", "1"),
            ] {
                host::set(name, key, value)?;
            }
            hash_by_ports(name)?;
            let key = "net.ipv4.fib_multipath_hash_seed";
            if host::read(key).is_some() {
                host::set(name, key, &seed.to_string())?;
            }
            Ok(())
        })?;
        Ok(switch)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where another process finds its namespace as long as this one lives.
    pub fn namespace_file(&self) -> PathBuf {
        host::file_of(&self.namespace)
    }

    fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, LabError> + Send,
    ) -> Result<T, LabError> {
        self.namespace
            .run(work)
            .map_err(LabError::work("enter the network namespace of", &self.name))?
    }

    /// Starts what lets the packets of these interfaces wait. Each packet meets it once, where it comes from its host.
    fn delayed(&self, delay: Nanos, ports: &[u32]) -> Result<Queues, LabError> {
        let mut spec = DirectionSpec::default();
        spec.settings.delay = delay;
        let rules: Vec<ToQueue> = ports
            .iter()
            .zip(QUEUES.into_iter().cycle())
            .map(|(port, queue)| ToQueue {
                interface: *port,
                queue,
            })
            .collect();
        let settings = QueueSettings {
            forward: &spec,
            back: &spec,
            seed: 1,
            mode: Mode::Packet,
            cross: Vec::new(),
            mtu: [1500; 2],
            // A thread that changed its CPU would let packets overtake those that still wait on the other one.
            cpus: share_out(&thread::affinity().unwrap_or_default()),
        };
        self.inside(|| {
            forward_rules::queue_forwarded(&rules)
                .and_then(|_| Queues::start(&settings))
                .map_err(|source| LabError::Queue { source })
        })
    }
}

/// Has the calling thread's namespace choose members of trunks by addresses, protocol and ports.
///
/// Policy 1 would do so too, were it not that it trusts a hash that a packet brings along: that of a sender on the same
/// machine is the socket's own, thrown anew for each connection (`fib_multipath_hash` in `net/ipv4/route.c`). Policy 3
/// looks into the packet; Linux 5.13. Before, a connection keeps its member, but another one with the same ports may
/// take another.
fn hash_by_ports(switch: &str) -> Result<(), LabError> {
    for family in ["ipv4", "ipv6"] {
        let fields = format!("net.{family}.fib_multipath_hash_fields");
        let policy = if host::read(&fields).is_some() {
            host::set(switch, &fields, HASH_FIELDS)?;
            "3"
        } else {
            "1"
        };
        let key = format!("net.{family}.fib_multipath_hash_policy");
        host::set(switch, &key, policy)?;
    }
    Ok(())
}

/// The members of a trunk.
struct Links<'a> {
    trunk: &'a Trunk,
    /// Which trunk, from 1.
    number: usize,
    /// Its first member's number among those of all trunks.
    first: usize,
}

impl Links<'_> {
    fn make(&self, switches: &[StandingSwitch]) -> Result<(), LabError> {
        let [one, other] = self.trunk.between.map(|at| &switches[at]);
        for (at, member) in self.trunk.members.iter().enumerate() {
            let name = self.name(at);
            let end = |switch: &StandingSwitch| -> Result<NetworkNamespace, LabError> {
                NetworkNamespace::open(&switch.namespace_file())
                    .map_err(LabError::work("find the namespace of", &switch.name))
            };
            let (here, there) = (end(one)?, end(other)?);
            let end = |namespace| VethEnd {
                name: &name,
                namespace,
                mtu: self.trunk.mtu,
            };
            link::make_veth(end(&here), end(&there)).map_err(LabError::network(&one.name))?;
            one.inside(|| self.set_up(one, at, 0, member))?;
            other.inside(|| self.set_up(other, at, 1, member))?;
        }
        Ok(())
    }

    fn name(&self, member: usize) -> String {
        format!("trunk{}-{}", self.number, member + 1)
    }

    /// The address of an end (0 or 1) of a member.
    fn address(&self, member: usize, end: usize, family: Family) -> IpAddr {
        let link = self.first + member;
        let short = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
        match family {
            Family::Ipv4 => Ipv4Addr::new(198, 51, 100, short(4 * link + 1 + end)).into(),
            Family::Ipv6 => {
                let [link, end] = [link, 1 + end].map(short).map(u16::from);
                Ipv6Addr::new(0x2001, 0xdb8, 1, link, 0, 0, 0, end).into()
            }
        }
    }

    fn set_up(
        &self,
        switch: &StandingSwitch,
        at: usize,
        end: usize,
        member: &Member,
    ) -> Result<(), LabError> {
        let name = self.name(at);
        let made = || -> Result<(), KernelError> {
            for family in host::families(self.trunk.mtu) {
                let prefix = match family {
                    Family::Ipv4 => PREFIX_V4,
                    Family::Ipv6 => PREFIX_V6,
                };
                link::add_address(&name, self.address(at, end, *family), prefix)?;
            }
            link::set_offloads(&name, false)?;
            link::cut_datagrams(&name)?;
            setting::set_up(&name, true)
        };
        made().map_err(LabError::network(&switch.name))?;
        shape(&name, member.rate, member.queue, self.trunk.mtu)
    }

    /// Over which next hops the other end is reached from end 0 or 1.
    fn hops(&self, from: usize, family: Family) -> Vec<NextHop> {
        let members = 0..self.trunk.members.len();
        members
            .map(|member| NextHop {
                gateway: self.address(member, 1 - from, family),
                interface: self.name(member),
            })
            .collect()
    }
}

/// On each switch a route to each host of another one.
fn add_routes(
    star: &Star,
    switches: &[StandingSwitch],
    hosts: &[StandingHost],
) -> Result<(), LabError> {
    let next = star.next_trunks();
    let firsts: Vec<usize> = star
        .trunks
        .iter()
        .scan(0, |first, trunk| {
            let this = *first;
            *first += trunk.members.len();
            Some(this)
        })
        .collect();
    for (at, switch) in switches.iter().enumerate() {
        switch.inside(|| {
            for (standing, spec) in hosts.iter().zip(&star.hosts) {
                let Some(number) = next[at][spec.switch] else {
                    continue;
                };
                let trunk = &star.trunks[number];
                let from = usize::from(trunk.between[1] == at);
                let links = Links {
                    trunk,
                    number: number + 1,
                    first: firsts[number],
                };
                for family in host::families(spec.spec.mtu.min(trunk.mtu)) {
                    let to = standing.host.network(*family);
                    link::add_multipath_route(to, &links.hops(from, *family))
                        .map_err(LabError::network(&switch.name))?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Gives an interface's way out a rate and a queue.
fn shape(interface: &str, rate: BitRate, queue: Nanos, mtu: u32) -> Result<(), LabError> {
    let bucket = bucket(rate, queue, mtu);
    emulation::set_token_bucket(interface, &bucket, Place::Alone, DEFAULT_OVERHEAD)
        .map_err(|source| LabError::Shaping { source })
}

fn bucket(rate: BitRate, queue: Nanos, mtu: u32) -> TokenBucket {
    let largest = u64::from(mtu + DEFAULT_OVERHEAD);
    let at_least = |span: Nanos, least: u64| {
        let bytes = u128::from(rate.0) * u128::from(span.0) / 8 / 1_000_000_000;
        u32::try_from(bytes.max(u128::from(least))).unwrap_or(u32::MAX)
    };
    TokenBucket {
        rate,
        burst: at_least(BURST, 2 * largest),
        queue: at_least(queue, FEWEST_PACKETS * largest),
    }
}

/// The seed of a switch's hash: not 0, which leaves it to the kernel.
fn seed(star: u64, switch: usize) -> u32 {
    let step = (switch as u64).wrapping_mul(0x85EB_CA6B);
    let mixed = star
        .wrapping_add(1)
        .wrapping_mul(SEED_STEP)
        .wrapping_add(step);
    u32::try_from(mixed % u64::from(u32::MAX)).unwrap_or(0) + 1
}

/// Where half of the hosts send to the other half at the same moment, as a mesh of tests lets them.
fn too_much(star: &Star) -> Option<String> {
    let sum: u64 = star.hosts.iter().map(|host| host.rate_out.0 / 2).sum();
    let sum = BitRate(sum);
    (sum > PACKET_MODE_LIMIT).then(|| {
        format!(
            "half of the hosts can send {sum} together, and about {PACKET_MODE_LIMIT} is what a lab carries packet by packet; lower rates take the lab out of it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_as_long_as_it_says_and_holds_ten_packets() {
        let fast = bucket(BitRate(100_000_000), Nanos::from_millis(10), 1500);
        assert_eq!((fast.burst, fast.queue), (25_000, 125_000));
        let slow = bucket(BitRate(1_000_000), Nanos::from_millis(10), 1500);
        assert_eq!((slow.burst, slow.queue), (3076, 15_380));
    }

    #[test]
    fn each_switch_has_a_seed_of_its_own_and_none_is_zero() {
        let seeds: Vec<u32> = (0..8).map(|at| seed(7, at)).collect();
        let mut others = seeds.clone();
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), 8);
        assert!(!seeds.contains(&0) && seed(u64::MAX >> 1, 59) > 0);
    }
}
