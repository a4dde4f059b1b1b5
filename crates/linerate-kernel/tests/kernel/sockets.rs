//! Settings of any socket.

use std::io::ErrorKind;
use std::net::{Ipv6Addr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};

use linerate_kernel::route;
use linerate_kernel::socket::{self, Family};
use linerate_testing::{Need, skipped};

use crate::{connection, datagram_pair, until};

#[test]
fn bytes_go_in_and_come_out_without_waiting() {
    let (active, passive) = connection();
    let mut buffer = [0; 10];
    assert_eq!(
        socket::receive(&passive, &mut buffer).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    assert_eq!(socket::send(&active, b"linerate").unwrap(), 8);
    until("it arrived", || {
        linerate_kernel::tcp::unread(&passive).unwrap() == 8
    });
    assert_eq!(socket::receive(&passive, &mut buffer).unwrap(), 8);
    assert_eq!(&buffer[..8], b"linerate");
    drop(active);
    until("the end of data", || {
        matches!(socket::receive(&passive, &mut buffer), Ok(0))
    });
}

#[test]
fn a_pattern_is_repeated_to_the_length_and_no_further() {
    let (active, passive) = connection();
    let pattern: Vec<u8> = (0..10).collect();
    for (length, sent) in [(25, 25), (10, 10), (3, 3), (1000, 10 * socket::MOST_PARTS)] {
        assert_eq!(
            socket::send_repeated(&active, &pattern, length).unwrap(),
            sent
        );
        until("it arrived", || {
            linerate_kernel::tcp::unread(&passive).unwrap() == sent as u64
        });
        let mut all = vec![0; sent + 1];
        assert_eq!(socket::receive(&passive, &mut all).unwrap(), sent);
        let expected: Vec<u8> = pattern.iter().copied().cycle().take(sent).collect();
        assert_eq!(&all[..sent], expected);
    }
    assert_eq!(
        socket::send_repeated(&active, &[], 1).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn what_is_received_over_a_scratch_stays_within_it() {
    let (active, passive) = connection();
    // Guards on both sides of the scratch.
    let mut memory = [0xEE_u8; 12];
    assert_eq!(
        socket::receive_over(&passive, &mut memory[4..8], 9)
            .unwrap_err()
            .kind(),
        ErrorKind::WouldBlock
    );
    let sent: Vec<u8> = (1..=20).collect();
    assert_eq!(socket::send(&active, &sent).unwrap(), 20);
    until("it arrived", || {
        linerate_kernel::tcp::unread(&passive).unwrap() == 20
    });
    // Nine bytes in parts of four: the ninth lies over the first.
    assert_eq!(
        socket::receive_over(&passive, &mut memory[4..8], 9).unwrap(),
        9
    );
    assert_eq!(memory[..4], [0xEE; 4]);
    assert_eq!(memory[4..8], [9, 6, 7, 8]);
    assert_eq!(memory[8..], [0xEE; 4]);
    assert_eq!(
        socket::receive_over(&passive, &mut memory[4..8], 100).unwrap(),
        11
    );
    drop(active);
    until("the end of data", || {
        matches!(socket::receive_over(&passive, &mut memory[4..8], 9), Ok(0))
    });
}

#[test]
fn a_write_to_a_closed_connection_is_an_error_and_no_signal() {
    let (active, passive) = connection();
    drop(passive);
    until("it is refused", || socket::send(&active, &[1]).is_err());
}

#[test]
fn buffers_are_granted_doubled() {
    let (sender, receiver) = datagram_pair();
    socket::set_send_buffer(&sender, 20_000).unwrap();
    socket::set_receive_buffer(&receiver, 20_000).unwrap();
    assert_eq!(socket::send_buffer(&sender).unwrap(), 40_000);
    assert_eq!(socket::receive_buffer(&receiver).unwrap(), 40_000);
    assert_eq!(socket::memory(&receiver).unwrap().rcvbuf, 40_000);
    // More than an int or the sysctl holds: the kernel grants less and says nothing.
    socket::set_receive_buffer(&receiver, usize::MAX).unwrap();
    let granted = socket::receive_buffer(&receiver).unwrap();
    assert!((40_000..usize::MAX).contains(&granted));
}

#[test]
fn the_memory_of_what_waits_is_accounted() {
    let (sender, receiver) = datagram_pair();
    assert_eq!(socket::memory(&receiver).unwrap().rmem_alloc, 0);
    sender.send(&[0; 1000]).unwrap();
    assert!(socket::memory(&receiver).unwrap().rmem_alloc > 1000);
}

#[test]
fn marking_and_fragments_for_both_families() {
    let (sender, _receiver) = datagram_pair();
    let lo = route::index_of("lo").unwrap();
    let mtu = route::interface_facts(lo)
        .unwrap()
        .unwrap()
        .mtu_bytes
        .unwrap();
    socket::set_tos(&sender, 0xb8).unwrap();
    socket::set_dont_fragment(&sender, Family::V4).unwrap();
    if mtu < 65_507 {
        let error = socket::send(&sender, &vec![0; mtu as usize]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(90), "EMSGSIZE");
    }
    let Ok(six) = UdpSocket::bind("[::]:0") else {
        return skipped(Need::Ipv6, "marks over IPv6", "no IPv6");
    };
    socket::set_tos(&six, 0xb8).unwrap();
    socket::set_dont_fragment(&six, Family::V6).unwrap();
}

#[test]
fn a_flow_label_can_be_reserved() {
    let Ok(socket) = UdpSocket::bind("[::1]:0") else {
        return skipped(Need::Ipv6, "flow labels", "no IPv6 loopback");
    };
    for label in [0, 1 << 20] {
        let error = socket::set_flow_label(&socket, Ipv6Addr::LOCALHOST, label).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    socket::set_flow_label(&socket, Ipv6Addr::LOCALHOST, 0x12345).unwrap();
    let port = socket.local_addr().unwrap().port();
    let peer = SocketAddrV6::new(Ipv6Addr::LOCALHOST, port, 0x12345, 0);
    socket.connect(peer).unwrap();
    socket.send(b"labelled").unwrap();
}

#[test]
fn an_interface_that_does_not_exist_is_named() {
    let (sender, _receiver) = datagram_pair();
    let text = socket::bind_device(&sender, "nosuch0")
        .unwrap_err()
        .to_string();
    assert!(
        text.starts_with("cannot bind the socket to interface nosuch0: "),
        "{text}"
    );
    socket::bind_device(&sender, "lo").unwrap();
}

#[test]
fn a_refused_datagram_is_a_pending_error_once() {
    let (sender, receiver) = datagram_pair();
    assert!(socket::pending_error(&sender).unwrap().is_none());
    drop(receiver);
    sender.send(&[1]).unwrap();
    let mut pending = None;
    until("the port is unreachable", || {
        pending = socket::pending_error(&sender).unwrap();
        pending.is_some()
    });
    assert_eq!(pending.unwrap().kind(), ErrorKind::ConnectionRefused);
    assert!(socket::pending_error(&sender).unwrap().is_none());
}

#[test]
fn a_port_can_be_listened_on_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    socket::set_reuse_address(&listener, true).unwrap();
}

#[test]
fn a_multipath_socket_is_a_stream() {
    let fd = match socket::mptcp_stream_socket(Family::V4) {
        Ok(fd) => fd,
        Err(error) => return skipped(Need::Mptcp, "a multipath socket", &error.to_string()),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::from(fd);
    assert!(stream.peer_addr().is_err());
    drop(listener);
}
