//! Three namespaces in a row, made by this room alone: what the middle one forwards waits in a queue
//! until it is let go. The test runs itself again, since its own process has threads already.

use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_kernel::forward_rules::{self, ToQueue};
use linerate_kernel::link::{self, RouteThrough, VethEnd};
use linerate_kernel::namespace::{self, NetworkNamespace};
use linerate_kernel::packet_queue::{PacketQueue, QueueOptions, RawSender};
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{route, setting};
use linerate_model::units::Nanos;
use linerate_testing::{USER_AND_NETWORK, in_namespaces};

const OPTIONS: QueueOptions = QueueOptions {
    copied: 2048,
    whole: false,
    longest: 1000,
    receive_buffer: 1 << 20,
};

#[test]
fn forwarded_packets_wait_for_their_verdict() {
    let test = "forwarding::forwarded_packets_wait_for_their_verdict";
    in_namespaces(&USER_AND_NETWORK, test, "", inside);
}

fn connect(name: &str, host: &NetworkNamespace, network: u8) {
    let here = NetworkNamespace::current().unwrap();
    let end = |namespace, name| VethEnd {
        name,
        namespace,
        mtu: 1500,
    };
    link::make_veth(end(&here, name), end(host, "eth0")).unwrap();
    let of = |last| IpAddr::from([10, 9, network, last]);
    link::add_address(name, of(1), 24).unwrap();
    link::set_offloads(name, false).unwrap();
    link::cut_datagrams(name).unwrap();
    setting::set_up(name, true).unwrap();
    host.run(|| {
        link::add_address("eth0", of(2), 24).unwrap();
        setting::set_up("eth0", true).unwrap();
        link::add_route(RouteThrough {
            to: None,
            gateway: of(1),
            interface: "eth0",
            congestion: Some("reno"),
        })
        .unwrap();
        let refused = link::add_route(RouteThrough {
            to: Some((IpAddr::from([10, 77, 0, 0]), 16)),
            gateway: of(1),
            interface: "eth0",
            congestion: Some("no-such-control"),
        });
        assert!(refused.unwrap_err().to_string().contains("no-such-control"),);
    })
    .unwrap();
}

/// The packets that wait, at least one.
fn waiting(queue: &mut PacketQueue) -> Vec<(u32, u32, Vec<u8>)> {
    let mut packets = Vec::new();
    let mut entries = [PollEntry::new(queue.as_fd(), Interest::READ)];
    assert_eq!(
        poll::wait(&mut entries, Some(Nanos::from_millis(5000))).unwrap(),
        1
    );
    while queue
        .receive(|packet| packets.push((packet.id, packet.length, packet.start.to_vec())))
        .unwrap()
        > 0
    {}
    packets
}

fn inside() {
    let (one, other) = (
        NetworkNamespace::make().unwrap(),
        NetworkNamespace::make().unwrap(),
    );
    assert_ne!(one.id().unwrap(), other.id().unwrap());
    assert_ne!(one.id().unwrap(), namespace::network_id().unwrap());
    connect("left", &one, 1);
    connect("right", &other, 2);
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    let index = route::index_of("left").unwrap();
    let by = forward_rules::queue_forwarded(&[ToQueue {
        interface: index,
        queue: 3,
    }])
    .unwrap();
    let mut queue = PacketQueue::open(&[3], OPTIONS).unwrap();
    assert!(PacketQueue::open(&[3], OPTIONS).is_err(), "two listeners");
    let receiver = other
        .run(|| UdpSocket::bind("10.9.2.2:7000").unwrap())
        .unwrap();
    let sender = one.run(|| UdpSocket::bind("10.9.1.2:0").unwrap()).unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    for each in 0..6_u8 {
        sender.send_to(&[each; 100], "10.9.2.2:7000").unwrap();
    }
    let mut packets = Vec::new();
    while packets.len() < 6 {
        packets.extend(waiting(&mut queue));
    }
    assert!(packets.iter().all(|(_, length, _)| *length == 128));
    let id = |at: usize| packets[at].0;
    // The first is dropped, the fourth overtakes, the second and third go together, then a changed one,
    // and a copy of the last stands for it.
    queue.discard(3, id(0)).unwrap();
    queue.accept(3, id(3)).unwrap();
    queue.flush().unwrap();
    queue.accept_until(3, id(2)).unwrap();
    let mut changed = packets[4].2.clone();
    // UDP over IPv4 without a checksum.
    changed[26..28].fill(0);
    changed[28] = 77;
    queue.accept_changed(3, id(4), &changed).unwrap();
    queue.discard(3, id(5)).unwrap();
    queue.flush().unwrap();
    RawSender::open().unwrap().send(&packets[5].2).unwrap();
    let mut data = [0; 200];
    let got: Vec<u8> = (0..5)
        .map(|_| {
            assert_eq!(receiver.recv(&mut data).unwrap(), 100);
            data[0]
        })
        .collect();
    assert_eq!(got, [3, 1, 2, 77, 5], "queued by {by:?}");
    // A verdict for what is gone is said to be refused, and is no error.
    queue.discard(3, id(0)).unwrap();
    queue.flush().unwrap();
    waiting(&mut queue);
    assert_eq!((queue.refused(), queue.overruns()), (1, 0));
}
