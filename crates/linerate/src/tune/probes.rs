//! Whether what worked before a change works after it: links, addresses, default routes, gateways, the session's own
//! route, and hosts that the user names.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use linerate_kernel::{echo, route};
use linerate_model::change_set::Probe;
use linerate_model::host::HostFacts;
use linerate_tune::connectivity;

use super::place::Place;
use crate::action::Failure;

/// A link that went down for a change may take so long to come again.
const SETTLE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(250);
/// One answer to a ping, one connection.
const ANSWER: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(3);
const TRIES: u32 = 3;
/// A session has no more processes above it.
const MOST_PARENTS: usize = 32;

/// Something to ask, and whether it worked before.
struct Question {
    what: String,
    kind: Kind,
    worked: bool,
}

enum Kind {
    /// It answers a ping, or its link-layer address is known.
    Gateway { address: IpAddr, interface: u32 },
    /// Packets to it still leave as they did.
    Session { client: IpAddr, way: String },
    /// It answers a ping.
    Ping(IpAddr),
    /// It takes a connection.
    Port(SocketAddr),
}

/// What worked before.
pub(super) struct Probes {
    before: Option<HostFacts>,
    questions: Vec<Question>,
}

impl Probes {
    /// Asks everything once. Below a folder there is nothing but what the user names.
    ///
    /// # Errors
    /// A host that the user names and that is not reached already: after the change that would say nothing.
    pub(super) fn before(place: &Place, named: &[String]) -> Result<Self, Failure> {
        let mut questions = Vec::new();
        for host in named {
            let kind = named_host(host)?;
            let (worked, seen) = ask(&kind);
            if !worked {
                return Err(Failure::Refused(format!(
                    "nothing was changed: --probe {host}: {seen}, before any change"
                )));
            }
            questions.push(Question {
                what: format!("--probe {host}"),
                kind,
                worked,
            });
        }
        if place.root.is_some() {
            return Ok(Self {
                before: None,
                questions,
            });
        }
        let facts = place.facts();
        for (address, interface) in gateways(&facts) {
            let kind = Kind::Gateway { address, interface };
            let (worked, _) = ask(&kind);
            questions.push(Question {
                what: format!("gateway {address}"),
                kind,
                worked,
            });
        }
        if let Some(client) = session_client()
            && let Some(way) = way_to(client)
        {
            questions.push(Question {
                what: format!("this session's route to {client}"),
                kind: Kind::Session { client, way },
                worked: true,
            });
        }
        Ok(Self {
            before: Some(facts),
            questions,
        })
    }

    /// Asks again, and gives links time to come again.
    pub(super) fn after(&mut self, place: &Place) -> Vec<Probe> {
        let end = Instant::now() + SETTLE;
        let mut probes: Vec<Probe> = self
            .questions
            .iter()
            .map(|question| again(question, end))
            .collect();
        // Last, so that what goes down while others are asked is seen; told first, because it explains the others.
        if let Some(links) = self.links(place, end) {
            probes.insert(0, links);
        }
        probes
    }

    fn links(&self, place: &Place, end: Instant) -> Option<Probe> {
        let before = self.before.as_ref()?;
        let what = "links, addresses and default routes".to_owned();
        loop {
            let lost = connectivity::lost(before, &place.facts());
            if lost.is_empty() || Instant::now() >= end {
                return Some(Probe {
                    what,
                    holds: Some(lost.is_empty()),
                    seen: if lost.is_empty() {
                        "as before".to_owned()
                    } else {
                        lost.join(", ")
                    },
                });
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// The same question after the change, until it is answered or the time is over.
fn again(question: &Question, end: Instant) -> Probe {
    loop {
        let (works, seen) = ask(&question.kind);
        if works || !question.worked || Instant::now() >= end {
            let seen = if works || question.worked {
                seen
            } else {
                format!("{seen}, nor before the change: not judged")
            };
            return Probe {
                what: question.what.clone(),
                holds: (works || question.worked).then_some(works),
                seen,
            };
        }
        std::thread::sleep(LOOK);
    }
}

fn ask(kind: &Kind) -> (bool, String) {
    match kind {
        Kind::Gateway { address, interface } => {
            let (answers, seen) = ping(*address, *interface);
            if !answers && is_neighbour(*address) {
                return (
                    true,
                    "its link-layer address is known; no answer to a ping".to_owned(),
                );
            }
            (answers, seen)
        }
        Kind::Ping(address) => ping(*address, 0),
        Kind::Port(address) => match TcpStream::connect_timeout(address, CONNECT) {
            Ok(_) => (true, format!("{address} takes connections")),
            Err(error) => (false, format!("no connection to {address}: {error}")),
        },
        Kind::Session { client, way } => match way_to(*client) {
            Some(now) if now == *way => (true, now),
            Some(now) => (false, format!("was {way}, is {now}")),
            None => (false, format!("was {way}, there is none now")),
        },
    }
}

fn ping(address: IpAddr, interface: u32) -> (bool, String) {
    let mut seen = "no answer to a ping".to_owned();
    for _ in 0..TRIES {
        match echo::answers(address, interface, ANSWER) {
            Ok(true) => return (true, "answers a ping".to_owned()),
            Ok(false) => {}
            Err(error) => seen = format!("cannot be pinged: {error}"),
        }
    }
    (false, seen)
}

/// Whether the kernel knows an IPv4 neighbour's link-layer address (`/proc/net/arp`, the flag `ATF_COM`).
fn is_neighbour(address: IpAddr) -> bool {
    let table = std::fs::read_to_string("/proc/net/arp").unwrap_or_default();
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace();
        let is_it = words.next().and_then(|word| word.parse().ok()) == Some(address);
        let flags = words.nth(1).and_then(|word| word.strip_prefix("0x"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags, 16).ok());
        is_it && flags.is_some_and(|flags| flags & 2 != 0)
    })
}

/// The gateways of default routes, with the index of their interface.
fn gateways(facts: &HostFacts) -> Vec<(IpAddr, u32)> {
    let mut gateways = Vec::new();
    for route in facts.routes.known().into_iter().flatten() {
        let address = route.gateway.as_ref().and_then(|to| to.parse().ok());
        let interface = route.interface.as_deref();
        let index = interface.and_then(|name| facts.interface(name));
        if let Some(address) = address.filter(|_| route.destination == "default") {
            gateways.push((address, index.map_or(0, |one| one.index)));
        }
    }
    gateways.sort_unstable();
    gateways.dedup();
    gateways
}

/// `via 192.0.2.1 on eth0 from 192.0.2.7`.
fn way_to(client: IpAddr) -> Option<String> {
    let route = route::to(client).ok()??;
    let via = route.gateway.map(|to| format!("via {to} "));
    let from = route.source.map(|from| format!(" from {from}"));
    Some(format!(
        "{}on {}{}",
        via.unwrap_or_default(),
        route.interface_name,
        from.unwrap_or_default()
    ))
}

/// Where the user's ssh session comes from: `SSH_CONNECTION` of this process, or of one above it, since sudo passes
/// it on to nobody.
fn session_client() -> Option<IpAddr> {
    if let Ok(own) = std::env::var("SSH_CONNECTION") {
        return client_in(&own);
    }
    let mut pid = std::process::id();
    for _ in 0..MOST_PARENTS {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        pid = parent.trim().parse().ok().filter(|pid| *pid > 1)?;
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let found = environment
            .split(|byte| *byte == 0)
            .filter_map(|entry| std::str::from_utf8(entry).ok())
            .find_map(|entry| entry.strip_prefix("SSH_CONNECTION="));
        if let Some(client) = found.and_then(client_in) {
            return Some(client);
        }
    }
    None
}

/// `CLIENT PORT SERVER PORT`; a link-local client has its interface behind a percent sign.
fn client_in(connection: &str) -> Option<IpAddr> {
    let client = connection.split_whitespace().next()?;
    client.split('%').next()?.parse().ok()
}

fn named_host(text: &str) -> Result<Kind, Failure> {
    let unknown = |why: String| Failure::Usage(format!("--probe {text}: {why}"));
    if let Ok(address) = text.parse() {
        return Ok(Kind::Ping(address));
    }
    let with_port = text
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    let target = if with_port {
        text.to_owned()
    } else {
        format!("{text}:0")
    };
    let mut addresses = target
        .to_socket_addrs()
        .map_err(|error| unknown(error.to_string()))?;
    let address = addresses
        .next()
        .ok_or_else(|| unknown("it has no address".to_owned()))?;
    Ok(if with_port {
        Kind::Port(address)
    } else {
        Kind::Ping(address.ip())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_s_client_is_the_first_word() {
        let client = |text| client_in(text).map(|client| client.to_string());
        assert_eq!(
            client("192.0.2.7 51234 192.0.2.1 22").as_deref(),
            Some("192.0.2.7")
        );
        assert_eq!(
            client("fe80::1%eth0 1 fe80::2%eth0 22").as_deref(),
            Some("fe80::1")
        );
        assert_eq!(client(""), None);
    }

    #[test]
    fn a_probe_is_a_host_or_a_port_of_one() {
        assert!(matches!(named_host("192.0.2.1"), Ok(Kind::Ping(_))));
        assert!(matches!(named_host("2001:db8::1"), Ok(Kind::Ping(_))));
        assert!(matches!(named_host("127.0.0.1:22"), Ok(Kind::Port(_))));
        assert!(matches!(named_host("[::1]:22"), Ok(Kind::Port(_))));
        assert!(named_host("").is_err());
    }
}
