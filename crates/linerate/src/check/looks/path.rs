//! A path to a peer: a few echo requests, and one of the size that is to pass.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use linerate_check::judge;
use linerate_check::settings::PathCheck;
use linerate_kernel::echo::{Echo, round_trip};
use linerate_model::check::Item;
use linerate_model::units::Nanos;

use super::cannot_tell;

/// So many requests, 0.1 s apart: cheap enough for a node that computes, and enough to tell loss from a single accident.
const REQUESTS: u64 = 5;
const APART: Duration = Duration::from_millis(100);
/// An answer that takes longer does not count.
const ANSWER: Duration = Duration::from_secs(1);
/// A large packet that is lost by accident is sent again so often.
const TRIES: u32 = 3;
/// Headers before the payload: IPv4 or IPv6, and the echo's.
const HEADERS: [u32; 2] = [20 + 8, 40 + 8];

pub(super) fn look(check: &PathCheck) -> Vec<Item> {
    let (address, scope) = match resolve(&check.to) {
        Ok(address) => address,
        Err(error) => {
            let why = format!("cannot find the address of {}: {error}", check.to);
            return vec![cannot_tell(&check.to, why)];
        }
    };
    let echo = |payload, whole| {
        let limit = ANSWER;
        let echo = Echo {
            payload,
            whole,
            limit,
        };
        round_trip(address, scope, echo)
    };
    let mut round_trips = Vec::new();
    for number in 0..REQUESTS {
        if number > 0 {
            std::thread::sleep(APART);
        }
        match echo(56, false) {
            Ok(Some(took)) => {
                round_trips.push(Nanos(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let why = "no right to send echo requests: run it as root, or widen net.ipv4.ping_group_range";
                return vec![cannot_tell(&check.to, why)];
            }
            // No answer; and no route, or a neighbour that does not answer, are as good as none.
            Ok(None) | Err(_) => {}
        }
    }
    let passes = check.mtu.filter(|_| !round_trips.is_empty()).map(|mtu| {
        let headers = HEADERS[usize::from(address.is_ipv6())];
        let payload = u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX);
        (0..TRIES).any(|_| matches!(echo(payload, true), Ok(Some(_))))
    });
    judge::path(check, REQUESTS, &mut round_trips, passes)
}

/// The first address of a name, with the interface where it is link-local.
fn resolve(name: &str) -> io::Result<(IpAddr, u32)> {
    let mut found = (name, 0).to_socket_addrs()?;
    let first = found.next().ok_or(io::ErrorKind::NotFound)?;
    let scope = match first {
        SocketAddr::V6(address) => address.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    Ok((first.ip(), scope))
}
