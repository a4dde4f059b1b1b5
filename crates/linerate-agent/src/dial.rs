//! Connecting to the hub, and how long to wait before the next try.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::tunnel::{Tunnel, TunnelError};
use linerate_kernel::clock;
use linerate_model::units::Nanos;
use linerate_wire::enrol::{AGENT, HUB_NAME};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection};

use crate::error::AgentError;
use crate::identity::Identity;

/// Connecting and the handshake take no longer, each.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(10_000);
/// The first wait after a failure.
const FIRST: Duration = Duration::from_secs(1);
/// The longest one.
const LONGEST: Duration = Duration::from_secs(60);

/// Connects to the hub at `HOST:PORT` as this host.
///
/// # Errors
/// Where it cannot be reached, or is not the hub that this host enrolled with.
pub fn dial(hub: &str, identity: &Identity) -> Result<Tunnel, AgentError> {
    let config = identity.client(AGENT).map_err(|why| connecting(hub, why))?;
    connect(hub, config)
}

pub(crate) fn connect(hub: &str, config: Arc<ClientConfig>) -> Result<Tunnel, AgentError> {
    let tcp = reach(hub)?;
    let name =
        ServerName::try_from(HUB_NAME).map_err(|error| connecting(hub, error.to_string()))?;
    let failed = |source| match source {
        TunnelError::Tls(_) | TunnelError::Revoked => AgentError::Hub {
            hub: hub.to_owned(),
            source,
        },
        // A hub that restarts or has too many connections at the moment.
        passing => connecting(hub, passing.to_string()),
    };
    let tls =
        ClientConnection::new(config, name).map_err(|error| failed(TunnelError::Tls(error)))?;
    let until = clock::monotonic().plus(PATIENCE);
    Tunnel::shake(tcp, Connection::from(tls), until).map_err(failed)
}

/// The first of its addresses that answers.
fn reach(hub: &str) -> Result<TcpStream, AgentError> {
    let addresses = hub
        .to_socket_addrs()
        .map_err(|error| connecting(hub, error.to_string()))?;
    let mut why = "it has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE.as_duration()) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error.to_string(),
        }
    }
    Err(connecting(hub, why))
}

fn connecting(hub: &str, why: String) -> AgentError {
    AgentError::Connect {
        hub: hub.to_owned(),
        why,
    }
}

/// Waits that double from a second to a minute, each shortened by chance by up to a half, so that the agents of a hub that
/// restarts do not all come at once.
#[derive(Debug, Default)]
pub struct BackOff {
    failures: u32,
}

impl BackOff {
    /// The next wait; `chance` is any number.
    pub fn next(&mut self, chance: u64) -> Duration {
        let doubled = FIRST.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1).min(16);
        let full = doubled.min(LONGEST);
        let half = full / 2;
        let spread = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).max(1);
        full.saturating_sub(Duration::from_millis(chance % spread))
    }

    /// One to two minutes, by chance: for an agent that the hub does not serve until somebody there acts.
    pub fn long(chance: u64) -> Duration {
        let spread = u64::try_from(LONGEST.as_millis()).unwrap_or(1).max(1);
        LONGEST.saturating_add(Duration::from_millis(chance % spread))
    }

    /// A connection stood: the next wait is the first one again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_are_spread() {
        let mut back_off = BackOff::default();
        let full: Vec<u64> = (0..8).map(|_| back_off.next(0).as_secs()).collect();
        assert_eq!(full, [1, 2, 4, 8, 16, 32, 60, 60]);
        for chance in 0..2_000 {
            let wait = back_off.next(chance * 7_919);
            assert!((30..=60).contains(&wait.as_secs()), "{wait:?}");
        }
        back_off.reset();
        assert_eq!(back_off.next(0), FIRST);
        for chance in 0..2_000 {
            let wait = BackOff::long(chance * 7_919);
            assert!((60..=120).contains(&wait.as_secs()), "{wait:?}");
        }
    }
}
