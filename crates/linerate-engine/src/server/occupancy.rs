//! Who uses how much of a server, and who gets the next place.
//!
//! A connection has a place among those that wait for admission until its parameters and credentials are known; then its
//! test has a place among the tests, its streams among the streams of all tests, and what it holds in memory among what all
//! of them hold. Pure: a caller tells it who comes and goes.
//!
//! A datagram says an address and proves none. Tests that begin with one have a quarter of all places, streams and memory
//! together, whatever their addresses: they take nothing from a connection that waits, nothing of what is kept for newcomers
//! (each forged address would be one), and nothing of the share of the address that they say.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, TcpStream};

use linerate_model::units::{Bytes, Nanos};

use super::limits::ServerLimits;

/// A quarter of all streams and of the memory is kept for addresses that run no test yet.
const KEPT: usize = 4;
/// So many streams such an address may have of that.
const FIRST_STREAMS: usize = 8;
/// Tests whose addresses are only claimed have a quarter together.
const CLAIMED: usize = 4;
/// So often one of them may begin, and so many at once after a while without any: each has threads, a line and a record.
const CLAIM_EVERY: Nanos = Nanos::from_millis(250);
const CLAIMS_AT_ONCE: u64 = 16;
/// The parameters of a well-behaved client have come by then.
const PROMPT: Nanos = Nanos::from_millis(1000);

/// Whom bounds for each address count as one: an IPv4 address, or an IPv6 network of 64 bits, as one host may have
/// all of its addresses (RFC 8981).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Site(IpAddr);

impl Site {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            // All hosts of a link have the same prefix there.
            IpAddr::V6(address) if !address.is_unicast_link_local() => {
                let network = u128::from(address) >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from(network))
            }
            address => address,
        })
    }
}

/// What a test needs from admission to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) streams: usize,
    pub(crate) bytes: usize,
    /// Streams that keep a CPU busy by looking at the clock.
    pub(crate) spinning: usize,
}

/// How sure it is that a client is where its address says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It completed a handshake, or is this host.
    Proved,
    /// Its datagrams say so.
    Claimed,
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    tests: usize,
    streams: usize,
}

/// What tests of claimed addresses use.
#[derive(Debug, Clone, Copy, Default)]
struct Claimed {
    /// With those that wait for admission.
    places: usize,
    used: Used,
    bytes: usize,
    /// When the next one would be due that keeps to its turn.
    next: Nanos,
}

impl Used {
    fn add(&mut self, demand: Demand) {
        self.tests += 1;
        self.streams += demand.streams;
    }

    fn take_off(&mut self, demand: Demand) {
        self.tests = self.tests.saturating_sub(1);
        self.streams = self.streams.saturating_sub(demand.streams);
    }
}

/// A connection that waits for admission.
#[derive(Debug)]
struct Waiting {
    number: u64,
    site: Site,
    since: Nanos,
    /// To end it when its place is needed.
    connection: Option<TcpStream>,
}

/// What is in use.
#[derive(Debug, Default)]
pub(crate) struct Occupancy {
    all: Used,
    bytes: usize,
    spinning: usize,
    by_site: HashMap<Site, Used>,
    waiting: Vec<Waiting>,
    claimed: Claimed,
}

impl Occupancy {
    /// Takes a place among those that wait for admission, or says why not. Where the places of this address are taken, the
    /// connection that has waited longest loses its own if it is late; where all are taken, that of the address with the
    /// most.
    pub(crate) fn wait(
        &mut self,
        number: u64,
        site: Site,
        connection: Option<TcpStream>,
        now: Nanos,
        limits: &ServerLimits,
    ) -> Result<(), &'static str> {
        self.has_place(site, Origin::Proved, limits)?;
        // So many clients of an address may come at the same moment as it may have tests.
        let most_here = limits.waiting_per_address.max(limits.clients_per_address);
        let mut here = self.waiting.iter().filter(|one| one.site == site);
        let oldest = here.next().map(|one| one.since);
        if usize::from(oldest.is_some()) + here.count() >= most_here {
            if oldest.is_some_and(|since| now.since(since) < PROMPT) {
                return Err(
                    "its address has as many connections without parameters as it may have",
                );
            }
            self.turn_away(site);
        } else if self.waiting.len() >= limits.waiting.max(most_here)
            && let Some(site) = most_frequent(self.waiting.iter().map(|one| one.site))
        {
            self.turn_away(site);
        }
        self.waiting.push(Waiting {
            number,
            site,
            since: now,
            connection,
        });
        Ok(())
    }

    /// Takes a place for a test whose address is claimed, or says why there is none. Nobody else loses one.
    pub(crate) fn claim(
        &mut self,
        site: Site,
        now: Nanos,
        limits: &ServerLimits,
    ) -> Result<(), &'static str> {
        self.has_place(site, Origin::Claimed, limits)?;
        if self.claimed.places >= limits.clients / CLAIMED {
            return Err("as many tests run as may whose addresses only their datagrams say");
        }
        let earliest = now.since(Nanos(CLAIM_EVERY.0 * (CLAIMS_AT_ONCE - 1)));
        let next = self.claimed.next.max(earliest);
        if next > now {
            return Err("tests whose addresses only their datagrams say began a moment ago");
        }
        self.claimed.next = next.plus(CLAIM_EVERY);
        self.claimed.places += 1;
        Ok(())
    }

    /// Gives such a place back, when its test has left.
    pub(crate) fn give_up_claim(&mut self) {
        self.claimed.places = self.claimed.places.saturating_sub(1);
    }

    fn has_place(
        &self,
        site: Site,
        origin: Origin,
        limits: &ServerLimits,
    ) -> Result<(), &'static str> {
        let newcomer = self.used_by(site).tests == 0 && origin == Origin::Proved;
        let kept = if newcomer { 0 } else { limits.clients / KEPT };
        if self.all.tests >= limits.clients - kept {
            return Err("the server runs as many tests as it allows");
        }
        if origin == Origin::Proved && self.used_by(site).tests >= limits.clients_per_address {
            return Err("the server runs as many tests as it allows from this address");
        }
        Ok(())
    }

    fn turn_away(&mut self, site: Site) {
        if let Some(index) = self.waiting.iter().position(|one| one.site == site) {
            let waiting = self.waiting.remove(index);
            if let Some(connection) = waiting.connection {
                // Its thread sees the end of the connection.
                drop(connection.shutdown(std::net::Shutdown::Both));
            }
        }
    }

    /// Gives up a place among those that wait.
    pub(crate) fn stop_waiting(&mut self, number: u64) {
        self.waiting.retain(|one| one.number != number);
    }

    /// Makes a waiting connection a test, or says what there is too little of.
    pub(crate) fn admit(
        &mut self,
        number: u64,
        site: Site,
        demand: Demand,
        origin: Origin,
        limits: &ServerLimits,
    ) -> Result<(), String> {
        self.has_place(site, origin, limits)?;
        if origin == Origin::Claimed {
            self.claims(demand, limits)?;
        }
        let here = self.used_by(site);
        let first = here.tests == 0 && demand.streams <= FIRST_STREAMS;
        // Nothing is kept from the only one there is.
        let alone = self.all.tests == self.claimed.used.tests;
        let first = (first || alone) && origin == Origin::Proved;
        let of = |all: usize| if first { all } else { all - all / KEPT };
        let most = of(limits.all_streams);
        if self.all.streams + demand.streams > most {
            return Err(format!(
                "{} streams requested, {} in use, and at most {most} of {} may be: the rest is reserved for \
                 addresses without a test",
                demand.streams, self.all.streams, limits.all_streams
            ));
        }
        let most_here = (limits.all_streams / 2).max(usize::from(limits.streams));
        if origin == Origin::Proved && here.streams + demand.streams > most_here {
            return Err(format!(
                "{} streams requested, {} in use by this address, and at most {most_here} may be",
                demand.streams, here.streams
            ));
        }
        let most = of(limits.held_bytes());
        if self.bytes + demand.bytes > most {
            let bytes = |count: usize| Bytes(count as u64);
            return Err(format!(
                "it needs {}, {} are in use, and {} of {} may be for running tests",
                bytes(demand.bytes),
                bytes(self.bytes),
                bytes(most),
                limits.memory
            ));
        }
        self.stop_waiting(number);
        self.bytes += demand.bytes;
        self.spinning += demand.spinning;
        self.all.add(demand);
        match origin {
            Origin::Proved => self.by_site.entry(site).or_default().add(demand),
            Origin::Claimed => {
                self.claimed.used.add(demand);
                self.claimed.bytes += demand.bytes;
            }
        }
        Ok(())
    }

    /// Whether tests of claimed addresses may have so much more.
    fn claims(&self, demand: Demand, limits: &ServerLimits) -> Result<(), String> {
        let few = "tests whose addresses only their datagrams say have a quarter of all together";
        let streams = (limits.all_streams / CLAIMED).max(1);
        if self.claimed.used.streams + demand.streams > streams {
            return Err(format!(
                "{} streams requested, {} of {streams} in use: {few}",
                demand.streams, self.claimed.used.streams
            ));
        }
        let (bytes, most) = (self.claimed.bytes, limits.held_bytes() / CLAIMED);
        if bytes + demand.bytes > most {
            let of = |count: usize| Bytes(count as u64);
            return Err(format!(
                "it needs {}, {} of {} are in use: {few}",
                of(demand.bytes),
                of(bytes),
                of(most)
            ));
        }
        Ok(())
    }

    /// Gives a test's places back.
    pub(crate) fn leave(&mut self, site: Site, demand: Demand, origin: Origin) {
        self.give_back(demand.bytes);
        self.spinning = self.spinning.saturating_sub(demand.spinning);
        self.all.take_off(demand);
        if origin == Origin::Claimed {
            self.claimed.used.take_off(demand);
            self.claimed.bytes = self.claimed.bytes.saturating_sub(demand.bytes);
            return;
        }
        let mut here = self.used_by(site);
        here.take_off(demand);
        if here.tests == 0 {
            self.by_site.remove(&site);
        } else {
            self.by_site.insert(site, here);
        }
    }

    /// Takes memory for a while: as much of `wanted` as there is.
    pub(crate) fn hold(&mut self, wanted: usize, limits: &ServerLimits) -> usize {
        let held = wanted.min(limits.held_bytes().saturating_sub(self.bytes));
        self.bytes += held;
        held
    }

    /// Gives memory back.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Streams that may look at the clock all the time, of all tests together: one CPU stays for everything else.
    pub(crate) fn may_spin(&self, streams: usize, cpus: usize) -> bool {
        self.spinning + streams < cpus
    }

    /// Connections that are here: they wait for admission, or run a test.
    pub(crate) fn present(&self) -> usize {
        let claimed = self.claimed.places.saturating_sub(self.claimed.used.tests);
        self.waiting.len() + claimed + self.all.tests
    }

    /// Tests that were admitted and have not ended.
    pub(crate) fn tests(&self) -> usize {
        self.all.tests
    }

    fn used_by(&self, site: Site) -> Used {
        self.by_site.get(&site).copied().unwrap_or_default()
    }
}

/// Who comes most often.
pub(super) fn most_frequent(sites: impl Iterator<Item = Site>) -> Option<Site> {
    let mut counts: HashMap<Site, usize> = HashMap::new();
    for site in sites {
        *counts.entry(site).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .map(|(site, _)| site)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(last: u8) -> Site {
        Site::of(IpAddr::from([192, 0, 2, last]))
    }

    fn streams(streams: usize) -> Demand {
        Demand {
            streams,
            bytes: 1,
            spinning: 0,
        }
    }

    /// 100 streams in all, 40 of a test.
    fn limits() -> ServerLimits {
        ServerLimits {
            all_streams: 100,
            streams: 40,
            waiting: 4,
            waiting_per_address: 2,
            memory: Bytes(4 << 20),
            ..ServerLimits::default()
        }
    }

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_site() {
        let of = |text: &str| Site::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_ne!(of("fe80::1"), of("fe80::2"), "a link has one prefix");
    }

    #[test]
    fn places_are_given_back() {
        let limits = ServerLimits {
            clients: 2,
            clients_per_address: 1,
            ..limits()
        };
        let mut occupancy = Occupancy::default();
        assert!(
            occupancy
                .admit(1, site(1), streams(1), Origin::Proved, &limits)
                .is_ok()
        );
        assert!(
            occupancy
                .admit(2, site(1), streams(1), Origin::Proved, &limits)
                .is_err()
        );
        assert!(occupancy.wait(2, site(1), None, Nanos(0), &limits).is_err());
        assert!(
            occupancy
                .admit(2, site(2), streams(1), Origin::Proved, &limits)
                .is_ok()
        );
        assert!(occupancy.wait(3, site(3), None, Nanos(0), &limits).is_err());
        occupancy.leave(site(1), streams(1), Origin::Proved);
        assert!(
            occupancy
                .admit(1, site(1), streams(1), Origin::Proved, &limits)
                .is_ok()
        );
        occupancy.leave(site(1), streams(1), Origin::Proved);
        occupancy.leave(site(2), streams(1), Origin::Proved);
        assert_eq!((occupancy.present(), occupancy.bytes), (0, 0));
        assert!(occupancy.by_site.is_empty());
    }

    #[test]
    fn streams_are_bounded_in_all_and_for_each_address_and_some_are_kept_for_newcomers() {
        let limits = limits();
        let mut occupancy = Occupancy::default();
        let mut admit = |last, count| {
            occupancy
                .admit(
                    u64::from(last),
                    site(last),
                    streams(count),
                    Origin::Proved,
                    &limits,
                )
                .is_ok()
        };
        assert!(
            admit(1, 40) && !admit(1, 11) && admit(1, 10),
            "half for one address"
        );
        assert!(!admit(2, 26) && admit(2, 25), "three quarters in general");
        assert!(
            !admit(3, 9) && admit(3, 8),
            "eight of the rest for a newcomer"
        );
        assert!(!admit(3, 1), "which it is no longer");
        assert!(admit(4, 8) && admit(5, 8) && !admit(6, 2) && admit(6, 1));
        assert!(!admit(7, 1), "all of them");
    }

    #[test]
    fn memory_is_bounded_in_all() {
        let limits = limits();
        let all = limits.held_bytes();
        let mut occupancy = Occupancy::default();
        let demand = Demand {
            streams: 1,
            bytes: all - all / 2,
            spinning: 0,
        };
        assert!(
            occupancy
                .admit(1, site(1), demand, Origin::Proved, &limits)
                .is_ok()
        );
        assert!(
            occupancy
                .admit(2, site(1), demand, Origin::Proved, &limits)
                .is_err()
        );
        assert_eq!(occupancy.hold(all, &limits), all / 2);
        assert_eq!(occupancy.hold(1, &limits), 0);
        occupancy.give_back(all / 2);
        occupancy.leave(site(1), demand, Origin::Proved);
        assert_eq!(occupancy.hold(1, &limits), 1);
    }

    #[test]
    fn who_waits_longest_makes_room() {
        let limits = ServerLimits {
            clients_per_address: 2,
            ..limits()
        };
        let mut occupancy = Occupancy::default();
        let numbers = |occupancy: &Occupancy| -> Vec<u64> {
            occupancy.waiting.iter().map(|one| one.number).collect()
        };
        let wait = |occupancy: &mut Occupancy, number, last, at| {
            occupancy
                .wait(number, site(last), None, Nanos::from_millis(at), &limits)
                .is_ok()
        };
        assert!(wait(&mut occupancy, 1, 1, 0) && wait(&mut occupancy, 2, 1, 500));
        assert!(!wait(&mut occupancy, 3, 1, 999), "two of an address");
        assert!(wait(&mut occupancy, 3, 1, 1000), "the first is late");
        assert_eq!(numbers(&occupancy), [2, 3]);
        for (number, last) in [(4, 2), (5, 3), (6, 4)] {
            assert!(wait(&mut occupancy, number, last, 1000));
        }
        assert_eq!(
            numbers(&occupancy),
            [3, 4, 5, 6],
            "four in all: of the most"
        );
        occupancy.stop_waiting(4);
        assert_eq!(numbers(&occupancy), [3, 5, 6]);
    }

    #[test]
    fn spinning_streams_of_all_tests_leave_a_cpu() {
        let mut occupancy = Occupancy::default();
        assert!(occupancy.may_spin(3, 4) && !occupancy.may_spin(4, 4));
        let demand = Demand {
            spinning: 2,
            ..streams(2)
        };
        occupancy
            .admit(1, site(1), demand, Origin::Proved, &limits())
            .unwrap();
        assert!(occupancy.may_spin(1, 4) && !occupancy.may_spin(2, 4));
        occupancy.leave(site(1), demand, Origin::Proved);
        assert!(occupancy.may_spin(3, 4));
    }

    #[test]
    fn forged_addresses_begin_four_tests_a_second() {
        let mut occupancy = Occupancy::default();
        let limits = ServerLimits::default();
        let mut begun = |from: u64, to: u64| {
            let times = (from..to).step_by(10).map(Nanos::from_millis);
            times
                .filter(|now| {
                    let claimed = occupancy.claim(site(1), *now, &limits).is_ok();
                    occupancy.give_up_claim();
                    claimed
                })
                .count()
        };
        let first = begun(60_000, 70_000);
        assert!((55..=56).contains(&first), "16 at once and 40: {first}");
        let then = begun(70_000, 80_000);
        assert!((39..=40).contains(&then), "{then}");
    }

    #[test]
    fn a_server_of_few_tests_keeps_them_for_those_who_are_proved() {
        let mut occupancy = Occupancy::default();
        let few = ServerLimits {
            clients: 3,
            ..limits()
        };
        let now = Nanos::from_millis(60_000);
        assert!(occupancy.claim(site(1), now, &few).is_err());
    }

    #[test]
    fn forged_addresses_have_a_quarter_together_and_take_nothing_from_others() {
        let limits = ServerLimits {
            clients: 8,
            ..limits()
        };
        let mut occupancy = Occupancy::default();
        occupancy.wait(1, site(1), None, Nanos(0), &limits).unwrap();
        let claims = |occupancy: &mut Occupancy, last: u8, count: usize| {
            occupancy
                .claim(site(last), Nanos::from_millis(60_000), &limits)
                .map_err(str::to_owned)?;
            let admitted = occupancy.admit(
                u64::from(last),
                site(last),
                streams(count),
                Origin::Claimed,
                &limits,
            );
            if admitted.is_err() {
                occupancy.give_up_claim();
            }
            admitted
        };
        assert!(claims(&mut occupancy, 2, 26).is_err(), "a quarter of 100");
        assert!(claims(&mut occupancy, 2, 20).is_ok());
        assert!(claims(&mut occupancy, 3, 6).is_err());
        assert!(claims(&mut occupancy, 3, 5).is_ok());
        assert!(claims(&mut occupancy, 4, 1).is_err(), "two places of eight");
        assert_eq!(occupancy.waiting.len(), 1, "who waits stays");
        assert_eq!(occupancy.present(), 3);
        for last in 5..=9 {
            let admitted = occupancy.admit(
                u64::from(last),
                site(last),
                streams(8),
                Origin::Proved,
                &limits,
            );
            assert!(admitted.is_ok(), "{admitted:?}");
        }
        occupancy.leave(site(2), streams(20), Origin::Claimed);
        occupancy.give_up_claim();
        assert!(
            claims(&mut occupancy, 10, 1).is_err(),
            "the last quarter of the places is kept"
        );
        occupancy.leave(site(5), streams(8), Origin::Proved);
        assert!(claims(&mut occupancy, 10, 20).is_ok());
    }
}
