//! What a server allows, and what it counts to hold it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::str::FromStr;

use linerate_model::plan::{End, Plan};
use linerate_model::units::{BitRate, Nanos};

/// iperf3's error numbers (`iperf_api.h`).
pub(crate) const RATE_TOO_HIGH: i32 = 27;
pub(crate) const TOO_LONG: i32 = 37;
pub(crate) const NOT_AUTHENTICATED: i32 = 142;
pub(crate) const EXPIRED: i32 = 160;
pub(crate) const UNUSABLE_PARAMETERS: i32 = 114;

/// The bounds of a server. `None` = none.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Tests at once.
    pub clients: usize,
    /// Tests at once from one address.
    pub clients_per_address: usize,
    /// Streams of a test, both directions together.
    pub streams: u16,
    /// Longest test, without the omitted part.
    pub duration: Option<Nanos>,
    /// Highest rate of a test, all streams together.
    pub rate: Option<BitRate>,
    /// Over how long that rate is averaged.
    pub rate_window: Nanos,
    /// A test in which nothing moves for this long is ended.
    pub idle: Nanos,
    /// Networks that may test; empty = all.
    pub allowed: Vec<Network>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            clients: 256,
            clients_per_address: 128,
            streams: 256,
            duration: None,
            rate: None,
            rate_window: Nanos::from_millis(5000),
            idle: Nanos::from_millis(60_000),
            allowed: Vec::new(),
        }
    }
}

impl ServerLimits {
    /// Why a plan is not run: iperf3's error number and a sentence.
    pub(crate) fn refuse(&self, plan: &Plan) -> Option<(i32, String)> {
        if plan.total_streams() > self.streams {
            let text = format!(
                "{} streams asked for, {} allowed",
                plan.total_streams(),
                self.streams
            );
            return Some((UNUSABLE_PARAMETERS, text));
        }
        if let (Some(most), End::TimeNs(asked)) = (self.duration, plan.end)
            && (asked > most || asked == Nanos::ZERO)
        {
            return Some((
                TOO_LONG,
                format!("a test of {asked} asked for, {most} allowed"),
            ));
        }
        if let (Some(most), Some(asked)) = (self.rate, plan.rate_bps) {
            let all = asked.0.saturating_mul(u64::from(plan.total_streams()));
            if all > most.0 {
                return Some((
                    RATE_TOO_HIGH,
                    format!("{} asked for, {most} allowed", BitRate(all)),
                ));
            }
        }
        None
    }

    pub(crate) fn allows(&self, peer: IpAddr) -> bool {
        self.allowed.is_empty() || self.allowed.iter().any(|network| network.contains(peer))
    }
}

/// A network: an address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

/// A text that is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no network: an address, or an address and a prefix length such as 192.0.2.0/24, is"
)]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.to_owned());
        let (address, prefix) = text
            .split_once('/')
            .map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(longest), |prefix| prefix.parse().map_err(|_| wrong()))?;
        if prefix > longest {
            Err(wrong())
        } else {
            Ok(Self { address, prefix })
        }
    }
}

impl Network {
    /// One address alone.
    pub fn of(address: IpAddr) -> Self {
        let prefix = if address.is_ipv4() { 32 } else { 128 };
        Self { address, prefix }
    }

    /// An address of it.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Length of its prefix: 0 to 32, or to 128.
    pub const fn prefix(&self) -> u32 {
        self.prefix
    }

    pub(crate) fn contains(&self, peer: IpAddr) -> bool {
        let same = |ours: u128, theirs: u128, bits: u32| {
            let shift = bits - self.prefix;
            shift >= 128 || ours >> shift == theirs >> shift
        };
        match (self.address, peer.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => same(
                u128::from(u32::from(ours)),
                u128::from(u32::from(theirs)),
                32,
            ),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                same(u128::from(ours), u128::from(theirs), 128)
            }
            _ => false,
        }
    }
}

/// Tests that run, in all and for each address.
#[derive(Debug, Default)]
pub(crate) struct Occupancy {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Occupancy {
    /// Takes a place, or says why there is none.
    pub(crate) fn enter(
        &mut self,
        peer: IpAddr,
        limits: &ServerLimits,
    ) -> Result<(), &'static str> {
        if self.total >= limits.clients {
            return Err("the server runs as many tests as it allows");
        }
        let here = self.by_address.entry(peer).or_default();
        if *here >= limits.clients_per_address {
            return Err("the server runs as many tests as it allows from this address");
        }
        *here += 1;
        self.total += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self, peer: IpAddr) {
        self.total = self.total.saturating_sub(1);
        if let Some(here) = self.by_address.get_mut(&peer) {
            *here = here.saturating_sub(1);
            if *here == 0 {
                self.by_address.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_own() {
        let network: Network = "192.0.2.0/24".parse().unwrap();
        assert!(network.contains("192.0.2.77".parse().unwrap()));
        assert!(network.contains("::ffff:192.0.2.77".parse().unwrap()));
        assert!(!network.contains("192.0.3.1".parse().unwrap()));
        assert!(
            "0.0.0.0/0"
                .parse::<Network>()
                .unwrap()
                .contains("203.0.113.9".parse().unwrap())
        );
        assert!(
            "::/0"
                .parse::<Network>()
                .unwrap()
                .contains("2001:db8::1".parse().unwrap())
        );
        assert!(
            "2001:db8::/32"
                .parse::<Network>()
                .unwrap()
                .contains("2001:db8::1".parse().unwrap())
        );
        for wrong in ["", "x", "1.2.3.4/33", "1.2.3.4/-1", "::/129"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn places_are_given_back() {
        let limits = ServerLimits {
            clients: 2,
            clients_per_address: 1,
            ..ServerLimits::default()
        };
        let (a, b) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let mut occupancy = Occupancy::default();
        assert!(occupancy.enter(a, &limits).is_ok());
        assert!(occupancy.enter(a, &limits).is_err());
        assert!(occupancy.enter(b, &limits).is_ok());
        occupancy.leave(a);
        assert!(occupancy.enter(a, &limits).is_ok());
    }

    #[test]
    fn plans_over_the_limits_are_refused_with_iperf3s_numbers() {
        let mut limits = ServerLimits {
            duration: Some(Nanos::from_millis(5000)),
            ..ServerLimits::default()
        };
        let mut plan = Plan::new("h");
        assert_eq!(limits.refuse(&plan).unwrap().0, TOO_LONG);
        limits.duration = None;
        limits.rate = Some(BitRate(1000));
        assert_eq!(limits.refuse(&plan), None);
        plan.rate_bps = Some(BitRate(1001));
        assert_eq!(limits.refuse(&plan).unwrap().0, RATE_TOO_HIGH);
    }
}
