//! `linerate reach`, which other linerates run on a far host: its addresses, and which addresses of another host take a TCP
//! connection from it.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use clap::Args;
use linerate_engine::server::Network;
use linerate_kernel::inventory::{Devices as _, RunningKernel};
use linerate_kernel::{clock, counters};
use linerate_model::host::Interface;
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::action::Failure;
use crate::arguments::duration;
use crate::printer::Printer;

/// The most addresses that are tried at once, a thread each.
pub(crate) const MOST: usize = 64;
/// The longest time for which traffic is counted.
const MOST_LOOKING: Nanos = Nanos::from_millis(10_000);

// `linerate reach`.
#[derive(Args, Debug, Clone)]
pub(crate) struct ReachArguments {
    /// Addresses with ports to connect to, all at once
    #[arg(value_name = "ADDRESS:PORT")]
    pub(crate) addresses: Vec<SocketAddr>,
    /// How long a connection may take to open
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2s")]
    pub(crate) within: Nanos,
    /// Connect to nothing: count for so long what passes the interface that leads to the first address
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "addresses")]
    pub(crate) traffic: Option<Nanos>,
}

/// What a host says of itself and of the way to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// Equal for two hosts that are one: its boot and its network namespace.
    pub(crate) namespace: PlainText,
    /// The address at which its SSH server took this program's connection.
    pub(crate) reached: Option<IpAddr>,
    /// Its addresses, those of loopback and of single links left out.
    pub(crate) addresses: Vec<Address>,
    /// What came of the connections that it was to open.
    pub(crate) answers: Vec<Answer>,
    /// What passed an interface, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traffic: Option<Traffic>,
}

/// What passed an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) interface: PlainText,
    /// Its speed as its driver reports it, bit/s; absent = the driver does not know.
    pub(crate) link_bps: Option<u64>,
    /// Sent by this host, with headers of the link, bit/s.
    pub(crate) sent_bps: u64,
    /// Received by it, bit/s.
    pub(crate) received_bps: u64,
}

/// An address of a host.
#[expect(clippy::struct_field_names, reason = "a name of the JSON")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    pub(crate) address: IpAddr,
    /// Length of its network's prefix, bits.
    pub(crate) prefix: u8,
    pub(crate) interface: PlainText,
}

impl Address {
    /// The network that it is in; `None` where the prefix is longer than the address.
    pub(crate) fn network(&self) -> Option<Network> {
        format!("{}/{}", self.address, self.prefix).parse().ok()
    }
}

/// What came of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) address: SocketAddr,
    /// Why it did not open; absent = it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<PlainText>,
}

/// Prints the surroundings of this host as one line of JSON.
pub(crate) fn run(arguments: &ReachArguments, printer: &Printer) -> Result<(), Failure> {
    if arguments.addresses.len() > MOST {
        return Err(Failure::Usage(format!(
            "{} addresses given; {MOST} can be tried at once",
            arguments.addresses.len()
        )));
    }
    let mut surroundings = here()?;
    match (arguments.traffic, arguments.addresses.first()) {
        (Some(time), _) if time.0 == 0 || time > MOST_LOOKING => {
            return Err(Failure::Usage(format!(
                "--traffic takes more than 0 and at most {} s",
                MOST_LOOKING.as_secs_f64()
            )));
        }
        (Some(time), Some(towards)) => surroundings.traffic = Some(traffic(towards.ip(), time)?),
        _ => surroundings.answers = try_all(&arguments.addresses, arguments.within),
    }
    let line = serde_json::to_string(&surroundings).map_err(|error| {
        Failure::File(format!("writing this host's addresses as JSON: {error}"))
    })?;
    Ok(printer.json(&line)?)
}

/// This host.
fn here() -> Result<Surroundings, Failure> {
    let interfaces = RunningKernel.interfaces().map_err(|error| {
        Failure::Lab(format!(
            "reading this host's addresses from the kernel: {error}"
        ))
    })?;
    let facts = linerate_kernel::host::facts();
    let namespace = format!(
        "{}/{}",
        facts.boot_id.unwrap_or_default(),
        facts.network_namespace.unwrap_or_default()
    );
    Ok(Surroundings {
        namespace: namespace.into(),
        reached: std::env::var("SSH_CONNECTION")
            .ok()
            .and_then(|text| reached(&text)),
        addresses: interfaces.iter().flat_map(addresses_of).collect(),
        answers: Vec::new(),
        traffic: None,
    })
}

/// Counts what passes the interface that leads to an address.
fn traffic(towards: IpAddr, time: Nanos) -> Result<Traffic, Failure> {
    let failed = |why: String| {
        Failure::Lab(format!(
            "counting the traffic of the interface that leads to {towards}: {why}"
        ))
    };
    let route = linerate_kernel::route::to(towards).map_err(|error| failed(error.to_string()))?;
    let route = route.ok_or_else(|| failed("no route leads there".into()))?;
    let count = || {
        let counters = counters::interface(route.interface_index);
        let counters = counters.map_err(|error| failed(error.to_string()))?;
        let counters = counters.ok_or_else(|| failed("the interface is gone".into()))?;
        Ok::<_, Failure>((clock::monotonic(), counters))
    };
    let (began, before) = count()?;
    std::thread::sleep(Duration::from_nanos(time.0));
    let (ended, after) = count()?;
    let rate = |before: u64, after: u64| {
        let bits = u128::from(after.saturating_sub(before)) * 8 * 1_000_000_000;
        u64::try_from(bits / u128::from(ended.since(began).0.max(1))).unwrap_or(u64::MAX)
    };
    Ok(Traffic {
        link_bps: speed(&route.interface_name),
        sent_bps: rate(before.tx_bytes, after.tx_bytes),
        received_bps: rate(before.rx_bytes, after.rx_bytes),
        interface: route.interface_name.into(),
    })
}

/// The speed of an interface, bit/s.
fn speed(interface: &str) -> Option<u64> {
    let all = RunningKernel.interfaces().ok()?;
    let mut found = all.into_iter().find(|one| one.name == interface)?;
    RunningKernel.drivers(&mut found);
    let link = found.link.known()?;
    link.speed_mbps.map(|mbps| u64::from(mbps) * 1_000_000)
}

/// Of `SSH_CONNECTION` (ssh(1)): the client's address and port, the server's address and port.
fn reached(text: &str) -> Option<IpAddr> {
    let address = text.split_whitespace().nth(2)?;
    address
        .parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical())
}

fn addresses_of(interface: &Interface) -> Vec<Address> {
    if !interface.up {
        return Vec::new();
    }
    let addresses = interface.addresses.known().map_or(&[][..], Vec::as_slice);
    let read = addresses.iter().filter_map(|text| {
        let (address, prefix) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        is_of_more_than_a_link(address).then(|| {
            Some(Address {
                address,
                prefix: prefix.parse().ok()?,
                interface: interface.name.as_str().into(),
            })
        })?
    });
    read.collect()
}

fn is_of_more_than_a_link(address: IpAddr) -> bool {
    let alone = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(alone || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

/// Opens a connection to each, all at once, and closes it without a byte.
fn try_all(addresses: &[SocketAddr], within: Nanos) -> Vec<Answer> {
    let within = Duration::from_nanos(within.0.max(1));
    std::thread::scope(|scope| {
        let tries: Vec<_> = addresses
            .iter()
            .map(|address| scope.spawn(move || TcpStream::connect_timeout(address, within)))
            .collect();
        let answer = |(address, attempt): (&SocketAddr, std::thread::ScopedJoinHandle<'_, _>)| {
            let error = match attempt.join() {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(std::io::Error::to_string(&error).into()),
                Err(_) => Some("its thread failed".into()),
            };
            Answer {
                address: *address,
                error,
            }
        };
        addresses.iter().zip(tries).map(answer).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listening_address_answers_and_a_closed_one_says_why_not() {
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [&open, &closed].map(|one| one.local_addr().unwrap());
        drop(closed);
        let answers = try_all(&addresses, Nanos::from_millis(5000));
        assert_eq!(answers[0].error, None);
        let why = answers[1].error.clone().unwrap();
        assert!(why.contains("refused"), "{why}");
    }

    #[test]
    fn traffic_is_that_of_the_interface_that_leads_there() {
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        let counted = std::thread::scope(|scope| {
            let counting = scope.spawn(|| traffic(here, Nanos::from_millis(300)));
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = socket.local_addr().unwrap();
            while !counting.is_finished() {
                socket.send_to(&[0; 1000], to).unwrap();
            }
            counting.join().unwrap().unwrap()
        });
        assert_eq!((counted.interface.as_str(), counted.link_bps), ("lo", None));
        assert!(
            counted.sent_bps > 0 && counted.received_bps > 0,
            "{counted:?}"
        );
    }

    #[test]
    fn the_servers_address_of_an_ssh_connection() {
        let read = |text| reached(text).map(|address| address.to_string());
        assert_eq!(read("10.0.0.9 50000 10.0.0.2 22").unwrap(), "10.0.0.2");
        assert_eq!(read("::1 5 ::ffff:10.0.0.2 22").unwrap(), "10.0.0.2");
        assert_eq!(read("10.0.0.9 50000"), None);
        assert_eq!(read("a b c d"), None);
    }

    #[test]
    fn only_addresses_of_interfaces_that_are_up_and_lead_somewhere_count() {
        let mut interface = Interface {
            name: "eth0".to_owned(),
            up: true,
            addresses: linerate_model::host::Fact::Known(
                [
                    "10.0.0.1/24",
                    "fe80::1/64",
                    "2001:db8::1/64",
                    "169.254.1.1/16",
                    "127.0.0.1/8",
                ]
                .map(str::to_owned)
                .to_vec(),
            ),
            ..Interface::default()
        };
        let found: Vec<String> = addresses_of(&interface)
            .iter()
            .map(|one| format!("{} {}", one.address, one.prefix))
            .collect();
        assert_eq!(found, ["10.0.0.1 24", "2001:db8::1 64"]);
        interface.up = false;
        assert_eq!(addresses_of(&interface), []);
    }
}
