//! Which addresses have shown that they are where they say: those of this host, which the kernel does not take from
//! outside, and those that completed a TCP handshake with this server a short time ago.

use std::collections::HashMap;
use std::net::IpAddr;

use linerate_model::units::Nanos;

/// For so long a TCP connection proves its address.
const LASTS: Nanos = Nanos::from_millis(600_000);
/// Addresses that are remembered.
const MOST: usize = 1024;

/// Addresses with the last proof of each.
#[derive(Debug, Default)]
pub(crate) struct Proofs(HashMap<IpAddr, Nanos>);

impl Proofs {
    /// A TCP connection came from an address. Where there are too many, the oldest is forgotten.
    pub(crate) fn note(&mut self, address: IpAddr, now: Nanos) {
        let address = address.to_canonical();
        if self.0.len() >= MOST && !self.0.contains_key(&address) {
            let oldest = self.0.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(address, now);
    }

    /// Whether UDP may be sent to an address for one test. It is the last one by this proof: otherwise whoever forges the
    /// address of a client could have it flooded as often as it liked.
    pub(crate) fn take(&mut self, address: IpAddr, now: Nanos) -> bool {
        let holds = self.holds(address, now);
        self.0.remove(&address.to_canonical());
        holds
    }

    /// Whether an address has proved itself.
    pub(crate) fn holds(&self, address: IpAddr, now: Nanos) -> bool {
        let address = address.to_canonical();
        // A packet from outside with such a source is a "martian" and dropped (RFC 1812, section 5.3.7).
        address.is_loopback()
            || self
                .0
                .get(&address)
                .is_some_and(|at| now.since(*at) <= LASTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::from((0x0A00_0000 + n).to_be_bytes())
    }

    #[test]
    fn an_address_is_proved_by_tcp_for_a_while() {
        let mut proofs = Proofs::default();
        assert!(proofs.holds("127.0.0.9".parse().unwrap(), Nanos(0)));
        assert!(proofs.holds("::1".parse().unwrap(), Nanos(0)));
        assert!(!proofs.holds(address(1), Nanos(5)));
        proofs.note(address(1), Nanos(5));
        assert!(proofs.holds(address(1), Nanos(5).plus(LASTS)));
        assert!(proofs.holds("::ffff:10.0.0.1".parse().unwrap(), Nanos(6)));
        assert!(!proofs.holds(address(1), Nanos(6).plus(LASTS)));
        assert!(!proofs.holds(address(2), Nanos(5)));
    }

    #[test]
    fn a_proof_is_good_for_one_test() {
        let mut proofs = Proofs::default();
        proofs.note(address(1), Nanos(5));
        assert!(proofs.take("::ffff:10.0.0.1".parse().unwrap(), Nanos(6)));
        assert!(!proofs.take(address(1), Nanos(6)));
        assert!(proofs.take("::1".parse().unwrap(), Nanos(6)));
        assert!(proofs.take("::1".parse().unwrap(), Nanos(6)));
    }

    #[test]
    fn the_oldest_of_too_many_is_forgotten() {
        let mut proofs = Proofs::default();
        for n in 0..=u32::try_from(MOST).unwrap() {
            proofs.note(address(n), Nanos(u64::from(n)));
        }
        assert_eq!(proofs.0.len(), MOST);
        assert!(!proofs.holds(address(0), Nanos(2000)));
        assert!(proofs.holds(address(1), Nanos(2000)));
    }
}
