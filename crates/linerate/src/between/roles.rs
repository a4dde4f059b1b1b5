//! Who dials: which of two hosts is the client of a test between them, and to which address. Pure.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use linerate_engine::server::Network;
use linerate_model::plan::{Direction, Family, Plan};

use super::reach::{Address, Surroundings};

/// One of the two hosts of a test: `From` is `--from`, which sends unless `-R` or `--bidir` says otherwise.
pub(crate) use linerate_watch::dispatch::End;

/// Who does what in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Roles {
    /// Who runs the client, and dials. The other one serves.
    pub(crate) client: End,
    /// The direction that this client asks for, so that the data goes as was asked.
    pub(crate) direction: Direction,
}

impl Roles {
    /// Where this end dials and `asked` is the direction seen from `--from`.
    pub(crate) const fn of(client: End, asked: Direction) -> Self {
        let direction = match (client, asked) {
            (End::To, Direction::Send) => Direction::Receive,
            (End::To, Direction::Receive) => Direction::Send,
            (End::To, Direction::Both) | (End::From, _) => asked,
        };
        Self { client, direction }
    }
}

/// The first option of a plan that is about its client's own host: it cannot be kept where the other host dials.
pub(crate) fn of_the_client_alone(plan: &Plan) -> Option<&'static str> {
    [
        (plan.bind.is_some(), "-B"),
        (plan.bind_device.is_some(), "--bind-dev"),
        (plan.client_port.is_some(), "--cport"),
        (!plan.sctp_bind.is_empty(), "-X"),
        (plan.client_cpu.is_some(), "-A"),
    ]
    .into_iter()
    .find_map(|(given, option)| given.then_some(option))
}

/// Which of a server's addresses may be dialled (`--address`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Those of a network.
    Network(Network),
    /// Those of an interface.
    Interface(String),
    /// These, whether the host knows them or a NAT before it.
    These(Vec<IpAddr>),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(network) = text.parse() {
            return Ok(Self::Network(network));
        }
        // The kernel's rule (dev_valid_name): up to 15 bytes, no slash and no space.
        let is_name = (1..=15).contains(&text.len())
            && !text.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
        is_name
            .then(|| Self::Interface(text.to_owned()))
            .ok_or_else(|| {
                "expected a network such as 192.0.2.0/24, an address, or an interface such as eth1"
                    .to_owned()
            })
    }
}

impl Choice {
    fn takes(&self, address: &Address) -> bool {
        match self {
            Self::Network(network) => network.contains(address.address),
            Self::Interface(name) => *address.interface == **name,
            Self::These(addresses) => addresses.contains(&address.address),
        }
    }
}

/// The addresses at which a client may find a server, the likeliest first: the one by which this program reaches that host,
/// those in a network that the client has as well, the others; last, those that the client itself has, such as a
/// bridge that exists on every host.
pub(crate) fn candidates(
    server: &Surroundings,
    client: &Surroundings,
    choice: Option<&Choice>,
    family: Family,
) -> Vec<IpAddr> {
    if server.namespace == client.namespace && choice.is_none() {
        // One host: whatever address is dialled, loopback carries the test.
        let loopback: [IpAddr; 2] = [[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()];
        return loopback
            .into_iter()
            .filter(|address| of_family(*address, family))
            .collect();
    }
    if let Some(Choice::These(addresses)) = choice {
        let these = addresses.iter().copied();
        return these
            .filter(|address| of_family(*address, family))
            .collect();
    }
    let mut found: Vec<&Address> = server
        .addresses
        .iter()
        .filter(|address| of_family(address.address, family))
        .filter(|address| choice.is_none_or(|choice| choice.takes(address)))
        .collect();
    let has = |address: IpAddr| client.addresses.iter().any(|own| own.address == address);
    let shares_network = |address: IpAddr| {
        let mut own = client.addresses.iter();
        own.any(|own| {
            own.network()
                .is_some_and(|network| network.contains(address))
        })
    };
    // Stable: among equals the kernel's order stays.
    found.sort_by_key(|one| {
        let address = one.address;
        let reached = server.reached == Some(address);
        if has(address) {
            3
        } else if reached {
            0
        } else if shares_network(address) {
            1
        } else {
            2
        }
    });
    found.into_iter().map(|one| one.address).collect()
}

fn of_family(address: IpAddr, family: Family) -> bool {
    match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    }
}

/// The first of the candidates that answered.
pub(crate) fn first_answer(
    candidates: &[SocketAddr],
    answers: &[super::reach::Answer],
) -> Option<SocketAddr> {
    let answered = |candidate: &&SocketAddr| {
        let mut answers = answers.iter();
        answers.any(|answer| answer.address == **candidate && answer.error.is_none())
    };
    candidates.iter().find(answered).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::between::reach::Answer;

    #[test]
    fn whoever_dials_the_data_goes_as_asked() {
        use Direction::{Both, Receive, Send};
        for (client, asked, wanted) in [
            (End::From, Send, Send),
            (End::From, Receive, Receive),
            (End::From, Both, Both),
            (End::To, Send, Receive),
            (End::To, Receive, Send),
            (End::To, Both, Both),
        ] {
            let roles = Roles::of(client, asked);
            assert_eq!((roles.client, roles.direction), (client, wanted));
        }
    }

    #[test]
    fn an_address_of_a_nat_is_dialled_although_no_host_has_it() {
        let server = host("a", None, &[("10.0.0.2", 24, "eth0")]);
        let client = host("b", None, &[("192.0.2.7", 24, "eth0")]);
        let nat: IpAddr = "198.51.100.4".parse().unwrap();
        let choice = Choice::These(vec![nat, "2001:db8::4".parse().unwrap()]);
        let found = candidates(&server, &client, Some(&choice), Family::V4);
        assert_eq!(found, [nat]);
    }

    fn host(
        namespace: &str,
        reached: Option<&str>,
        addresses: &[(&str, u8, &str)],
    ) -> Surroundings {
        Surroundings {
            namespace: namespace.into(),
            reached: reached.map(|address| address.parse().unwrap()),
            addresses: addresses
                .iter()
                .map(|(address, prefix, interface)| Address {
                    address: address.parse().unwrap(),
                    prefix: *prefix,
                    interface: (*interface).into(),
                })
                .collect(),
            answers: Vec::new(),
            traffic: None,
        }
    }

    fn tried(server: &Surroundings, client: &Surroundings, choice: &str, family: Family) -> String {
        let choice: Option<Choice> = (!choice.is_empty()).then(|| choice.parse().unwrap());
        let found = candidates(server, client, choice.as_ref(), family);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        found.join(" ")
    }

    #[test]
    fn the_likeliest_address_is_tried_first() {
        let server = host(
            "b",
            Some("10.0.0.2"),
            &[
                ("172.17.0.1", 16, "docker0"),
                ("198.51.100.2", 24, "eth2"),
                ("192.0.2.2", 24, "eth1"),
                ("10.0.0.2", 24, "eth0"),
                ("2001:db8::2", 64, "eth1"),
            ],
        );
        let client = host(
            "a",
            Some("10.0.0.1"),
            &[
                ("172.17.0.1", 16, "docker0"),
                ("192.0.2.1", 24, "eth1"),
                ("2001:db8::1", 64, "eth1"),
            ],
        );
        assert_eq!(
            tried(&server, &client, "", Family::Any),
            "10.0.0.2 192.0.2.2 2001:db8::2 198.51.100.2 172.17.0.1"
        );
        assert_eq!(tried(&server, &client, "", Family::V6), "2001:db8::2");
        assert_eq!(tried(&server, &client, "eth1", Family::V4), "192.0.2.2");
        assert_eq!(
            tried(&server, &client, "198.51.100.0/24", Family::Any),
            "198.51.100.2"
        );
        assert_eq!(tried(&server, &client, "203.0.113.0/24", Family::Any), "");
        assert_eq!(tried(&server, &client, "eth9", Family::Any), "");
    }

    #[test]
    fn a_host_reaches_itself_over_loopback() {
        let one = host("a", None, &[("10.0.0.1", 24, "eth0")]);
        assert_eq!(tried(&one, &one, "", Family::Any), "127.0.0.1 ::1");
        assert_eq!(tried(&one, &one, "", Family::V6), "::1");
        assert_eq!(tried(&one, &one, "eth0", Family::Any), "10.0.0.1");
    }

    #[test]
    fn a_choice_is_a_network_or_an_interface() {
        let choice = |text: &str| text.parse::<Choice>();
        assert!(matches!(choice("192.0.2.0/24"), Ok(Choice::Network(_))));
        assert!(matches!(choice("2001:db8::1"), Ok(Choice::Network(_))));
        assert!(matches!(choice("bond0.100"), Ok(Choice::Interface(_))));
        for wrong in ["", "192.0.2.0/33", "an interface", "sixteen-letters-"] {
            assert!(choice(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_first_candidate_that_answers_wins() {
        let address = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let candidates = [address("10.0.0.2:7"), address("192.0.2.2:7")];
        let answer = |at: usize, error: Option<&str>| Answer {
            address: candidates[at],
            error: error.map(Into::into),
        };
        let first = |answers: &[Answer]| first_answer(&candidates, answers);
        assert_eq!(
            first(&[answer(1, None), answer(0, None)]),
            Some(candidates[0])
        );
        assert_eq!(
            first(&[answer(0, Some("refused")), answer(1, None)]),
            Some(candidates[1])
        );
        assert_eq!(first(&[answer(0, Some("refused"))]), None);
        assert_eq!(first(&[]), None);
    }

    #[test]
    fn options_of_the_clients_own_host_are_named() {
        let mut plan = Plan::new("h");
        assert_eq!(of_the_client_alone(&plan), None);
        plan.client_cpu = Some(1);
        assert_eq!(of_the_client_alone(&plan), Some("-A"));
        plan.bind = Some("192.0.2.1".into());
        assert_eq!(of_the_client_alone(&plan), Some("-B"));
    }
}
