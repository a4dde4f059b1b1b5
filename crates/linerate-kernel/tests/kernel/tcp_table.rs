//! The table of sockets against the sockets themselves.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;

use linerate_kernel::tcp::{self, BbrInfo};
use linerate_kernel::tcp_table::{Condition, Destroyed, SocketFilter, TcpTable};
use linerate_model::tcp_info::{FIELDS, TcpFacts};
use linerate_model::units::{BitRate, Nanos};
use linerate_testing::{Need, skipped};

use crate::{connection, facts, until};

/// What is kept of a socket.
#[derive(Debug, Clone)]
struct Seen {
    cookie: u64,
    remote: SocketAddr,
    state: u8,
    unread: u32,
    facts: TcpFacts,
    congestion: Option<String>,
    receive_buffer: u32,
    bbr: Option<BbrInfo>,
}

/// The connections of a filter by their local address.
fn table(filter: &SocketFilter) -> BTreeMap<SocketAddr, Seen> {
    let mut seen = BTreeMap::new();
    let whole = TcpTable::open().unwrap().connections(filter, |_, socket| {
        // Of a socket that has ended (TIME_WAIT) only the addresses are left.
        let (Some(info), Some(memory)) = (socket.info.as_ref(), socket.memory) else {
            return;
        };
        let one = Seen {
            cookie: socket.cookie,
            remote: socket.remote,
            state: socket.state,
            unread: socket.unread,
            facts: TcpFacts::from(info),
            congestion: socket.congestion.map(str::to_owned),
            receive_buffer: memory.receive_buffer,
            bbr: socket.bbr,
        };
        seen.insert(socket.local, one);
    });
    assert!(whole.unwrap());
    seen
}

fn either_port(port: u16) -> SocketFilter {
    SocketFilter::all_of(&[vec![
        Condition::LocalPort(port),
        Condition::RemotePort(port),
    ]])
}

#[test]
fn the_table_tells_what_the_socket_tells() {
    let (mut active, passive) = connection();
    active.write_all(&[1; 5000]).unwrap();
    until("it arrived", || {
        facts(&passive).bytes_received == Some(5000)
    });
    until("it is acknowledged", || {
        facts(&active).bytes_acked == Some(5001)
    });
    let port = passive.local_addr().unwrap().port();
    let seen = table(&either_port(port));
    assert_eq!(seen.len(), 2, "{seen:?}");
    let (sender, receiver) = (
        &seen[&active.local_addr().unwrap()],
        &seen[&passive.local_addr().unwrap()],
    );
    assert_eq!(sender.remote, passive.local_addr().unwrap());
    assert_eq!((sender.state, receiver.state), (1, 1));
    assert_eq!((sender.unread, receiver.unread), (0, 5000));
    assert_eq!(sender.facts.bytes_sent, Some(5000));
    assert_eq!(sender.facts.bytes_acked, facts(&active).bytes_acked);
    assert_eq!(receiver.facts.bytes_received, Some(5000));
    assert_eq!(sender.congestion, tcp::congestion(active.as_fd()).ok());
    let buffer = linerate_kernel::socket::receive_buffer(passive.as_fd()).unwrap();
    assert_eq!(receiver.receive_buffer as usize, buffer);
    assert_ne!(sender.cookie, receiver.cookie);
    // The same fields, however they are asked for.
    let asked = tcp::info(active.as_fd()).unwrap().fields().count();
    let told = FIELDS.len() - serde_none(&sender.facts);
    assert_eq!(told, asked);
}

/// How many fields are absent.
fn serde_none(facts: &TcpFacts) -> usize {
    FIELDS.len() - format!("{facts:?}").matches("Some(").count()
}

#[test]
fn bbr_tells_its_model() {
    let (mut active, passive) = connection();
    let (near, far) = (active.local_addr().unwrap(), passive.local_addr().unwrap());
    let bbr = || table(&either_port(far.port()))[&near].bbr;
    tcp::set_congestion(&active, "reno").unwrap();
    assert_eq!(bbr(), None);
    if let Err(error) = tcp::set_congestion(&active, "bbr") {
        return skipped(Need::Bbr, "the model of BBR", &error.to_string());
    }
    active.write_all(&[1; 10_000]).unwrap();
    until("it was received", || {
        tcp::unread(&passive).unwrap() == 10_000
    });
    until("it has a model", || bbr().unwrap().bandwidth > BitRate(0));
    let info = bbr().unwrap();
    assert!(info.min_rtt.unwrap() < Nanos::from_millis(1000));
    assert!(info.pacing_gain > 0.5 && info.pacing_gain < 4.0, "{info:?}");
}

#[test]
fn filters_pick_by_port_and_address() {
    let (active, passive) = connection();
    let (server, client) = (passive.local_addr().unwrap(), active.local_addr().unwrap());
    let only = |groups: &[Vec<Condition>]| -> Vec<SocketAddr> {
        table(&SocketFilter::all_of(groups)).into_keys().collect()
    };
    assert_eq!(only(&[vec![Condition::LocalPort(server.port())]]), [server]);
    assert_eq!(
        only(&[vec![Condition::RemotePort(server.port())]]),
        [client]
    );
    let network = |address: &str, prefix| Condition::Remote {
        address: address.parse().unwrap(),
        prefix,
    };
    let here = vec![Condition::LocalPort(server.port())];
    let near = network("127.0.0.0", 8);
    let far = network("192.0.2.0", 24);
    assert_eq!(only(&[here.clone(), vec![near]]), [server]);
    assert_eq!(only(&[here.clone(), vec![far, near]]), [server]);
    assert!(only(&[here.clone(), vec![far]]).is_empty());
    assert!(only(&[here, vec![network("::", 0)]]).is_empty());
    // As many alternatives as fit a message.
    let many: Vec<Condition> = (1..1000).map(Condition::LocalPort).collect();
    assert!(only(&[many]).iter().all(|local| local.port() < 1000));
    let too_many: Vec<Condition> = (1..6000).map(Condition::LocalPort).collect();
    let refused = TcpTable::open()
        .unwrap()
        .connections(&SocketFilter::all_of(&[too_many]), |_, _| {});
    assert_eq!(
        refused.unwrap_err().kind(),
        std::io::ErrorKind::InvalidInput
    );
}

#[test]
fn ipv6_and_mapped_addresses_are_told() {
    let Ok(listener) = TcpListener::bind("[::]:0") else {
        return skipped(Need::Ipv6, "IPv6 in the table of sockets", "no IPv6");
    };
    let port = listener.local_addr().unwrap().port();
    let over_ipv4 = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mapped, _) = listener.accept().unwrap();
    let seen = table(&either_port(port));
    // The server's socket is an IPv6 one; its addresses read as the client's do.
    assert!(seen.contains_key(&over_ipv4.local_addr().unwrap()));
    assert!(seen.contains_key(&SocketAddr::from(([127, 0, 0, 1], port))));
    let near = Condition::Remote {
        address: IpAddr::from([127, 0, 0, 1]),
        prefix: 32,
    };
    let both = SocketFilter::all_of(&[vec![Condition::LocalPort(port)], vec![near]]);
    assert_eq!(table(&both).len(), 1);
    drop(mapped);
    let over_ipv6 = TcpStream::connect(("::1", port)).unwrap();
    let seen = table(&either_port(port));
    assert!(
        seen.contains_key(&over_ipv6.local_addr().unwrap()),
        "{seen:?}"
    );
}

#[test]
fn listeners_are_told_by_their_ports() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut table = TcpTable::open().unwrap();
    assert!(table.listening_ports().unwrap().contains(&port));
    drop(listener);
    assert!(!table.listening_ports().unwrap().contains(&port));
}

#[test]
fn the_last_word_on_a_socket_is_heard() {
    let mut destroyed = match Destroyed::open() {
        Ok(destroyed) => destroyed,
        Err(error) => return skipped(Need::Root, "notices of closed sockets", &error.to_string()),
    };
    let (mut active, mut passive) = connection();
    let port = passive.local_addr().unwrap().port();
    let cookie = table(&SocketFilter::all_of(&[vec![Condition::RemotePort(port)]]))
        .into_values()
        .next()
        .unwrap()
        .cookie;
    active.write_all(&[1; 3000]).unwrap();
    active.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    passive.read_to_end(&mut rest).unwrap();
    drop(passive);
    drop(active);
    let mut last = None;
    until("the kernel has told of it", || {
        destroyed.each(|socket| {
            if socket.cookie == cookie {
                last = socket.info.as_ref().map(TcpFacts::from);
            }
        });
        last.is_some()
    });
    let last = last.unwrap();
    assert_eq!(last.bytes_sent, Some(3000));
    assert_eq!(last.bytes_acked, Some(1 + 3000 + 1));
}
