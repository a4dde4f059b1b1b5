//! How often a login may be tried: by address, by user, and in sum. Takes the same memory whatever is tried.

use std::net::IpAddr;

use linerate_model::watch::UnixMillis;

use super::{random, sha256};

/// Addresses and users share so many counters each, by a keyed hash.
const COUNTERS: usize = 256;
/// For each address: so many at once, and one more in each time, ms.
const OF_ADDRESS: Pace = Pace::of(20, 5_000);
/// For each user.
const OF_USER: Pace = Pace::of(5, 30_000);
/// In sum; each takes some ten milliseconds of a CPU.
const OF_ALL: Pace = Pace::of(40, 500);

#[derive(Debug, Clone, Copy)]
struct Pace {
    burst: u64,
    each_millis: u64,
}

/// The moment at which all that was taken is given back.
#[derive(Debug, Clone, Copy, Default)]
struct Counter(u64);

#[derive(Debug)]
pub(super) struct Attempts {
    key: [u8; 32],
    addresses: [Counter; COUNTERS],
    users: [Counter; COUNTERS],
    all: Counter,
}

impl Pace {
    const fn of(burst: u64, each_millis: u64) -> Self {
        Self { burst, each_millis }
    }
}

impl Counter {
    /// Takes one; else how long until there is one again, ms.
    fn take(&mut self, pace: Pace, now: UnixMillis) -> Result<(), u64> {
        let taken = self.0.max(now.0).saturating_add(pace.each_millis);
        let most = now.0.saturating_add(pace.burst * pace.each_millis);
        if taken > most {
            return Err(taken - most);
        }
        self.0 = taken;
        Ok(())
    }
}

impl Attempts {
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self {
            key: random()?,
            addresses: [Counter::default(); COUNTERS],
            users: [Counter::default(); COUNTERS],
            all: Counter::default(),
        })
    }

    /// Whether a login may be tried now; else after how many ms. A refused address takes nothing from others.
    pub(super) fn take(&mut self, user: &str, from: IpAddr, now: UnixMillis) -> Result<(), u64> {
        let (address, user) = (self.place(&of_network(from)), self.place(user.as_bytes()));
        self.addresses[address].take(OF_ADDRESS, now)?;
        self.users[user].take(OF_USER, now)?;
        self.all.take(OF_ALL, now)
    }

    /// A login succeeded: what its user had tried before does not count.
    pub(super) fn succeeded(&mut self, user: &str) {
        let place = self.place(user.as_bytes());
        self.users[place] = Counter::default();
    }

    fn place(&self, of: &[u8]) -> usize {
        usize::from(sha256(&[&self.key[..], of].concat())[0])
    }
}

/// The address; of IPv6 the first 64 bits, which one host may have for itself.
fn of_network(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets()[..8].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_bounded_and_a_success_counts_nothing() {
        let mut attempts = Attempts::new().unwrap();
        let here = "192.0.2.1".parse().unwrap();
        let now = UnixMillis(1_000_000);
        let tried = |attempts: &mut Attempts, now| {
            (0..100)
                .filter(|_| attempts.take("ada", here, now).is_ok())
                .count()
        };
        assert_eq!(tried(&mut attempts, now), 5);
        assert!(
            attempts
                .take("ada", here, now)
                .is_err_and(|wait| wait <= 30_000)
        );
        assert_eq!(tried(&mut attempts, now.plus_millis(3_600_000)), 5);
        attempts.succeeded("ada");
        assert_eq!(
            tried(&mut attempts, now.plus_millis(3_600_000 + 1_000)),
            0,
            "its address"
        );
        assert_eq!(
            tried(&mut attempts, now.plus_millis(3_600_000 + 400_000)),
            5
        );
        // Whatever names and addresses are tried: forty at once, then two a second.
        let mut attempts = Attempts::new().unwrap();
        let all = (0..5_000_u32).filter(|number| {
            let from = IpAddr::from(number.to_be_bytes());
            attempts.take(&number.to_string(), from, now).is_ok()
        });
        assert_eq!(all.count(), 40);
    }
}
