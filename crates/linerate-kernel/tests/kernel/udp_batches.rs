//! Datagrams in batches, from one socket to another and back into single ones.

use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;

use linerate_kernel::poll::{Interest, PollEntry, wait};
use linerate_kernel::udp::{self, Receiver};
use linerate_model::units::Nanos;
use linerate_testing::{Need, skipped};

use crate::datagram_pair;

/// Receives until nothing comes: the datagrams, and the number of messages that they came in.
fn receive_all(receiver: &mut Receiver, socket: &UdpSocket) -> (Vec<Vec<u8>>, usize) {
    let (mut datagrams, mut count) = (Vec::new(), 0);
    loop {
        let mut entries = [PollEntry::new(socket.as_fd(), Interest::READ)];
        if wait(&mut entries, Some(Nanos::from_millis(50))).unwrap() == 0 {
            return (datagrams, count);
        }
        count += receiver.receive(socket).unwrap();
        for message in receiver.messages() {
            assert!(!message.truncated);
            datagrams.extend(message.datagrams().map(<[u8]>::to_vec));
        }
    }
}

/// `count` datagrams of `segment` bytes, the last one shorter, each filled with its own number.
fn numbered(count: u8, segment: usize, last: usize) -> Vec<u8> {
    let mut buffer: Vec<u8> = (0..count)
        .flat_map(|number| vec![number; segment])
        .collect();
    buffer.truncate(buffer.len() - segment + last);
    buffer
}

#[test]
fn a_buffer_is_cut_into_segments_and_comes_back_as_one_message() {
    let (sender, socket) = datagram_pair();
    let mut receiver = Receiver::new(4, 65_536);
    let buffer = numbered(40, 1000, 10);
    for (gro, messages) in [(false, 40), (true, 1)] {
        if gro {
            udp::enable_gro(&socket).unwrap();
        }
        assert_eq!(
            udp::send_segments(&sender, &buffer, 1000).unwrap(),
            buffer.len()
        );
        let (datagrams, count) = receive_all(&mut receiver, &socket);
        assert_eq!((datagrams.len(), count), (40, messages), "GRO {gro}");
        assert_eq!(datagrams.concat(), buffer);
        assert_eq!(datagrams[39].len(), 10);
    }
}

#[test]
fn a_message_tells_where_it_comes_from_and_went_to() {
    let (sender, socket) = datagram_pair();
    udp::enable_gro(&socket).unwrap();
    udp::enable_drop_counter(&socket).unwrap();
    udp::enable_packet_info(&socket).unwrap();
    udp::send_segments(&sender, &numbered(3, 100, 50), 100).unwrap();
    let mut receiver = Receiver::new(4, 65_536);
    assert_eq!(receiver.receive(&socket).unwrap(), 1);
    let message = receiver.message(0);
    assert_eq!(
        (
            message.data.len(),
            message.segment,
            message.datagram_count()
        ),
        (250, 100, 3)
    );
    assert_eq!(message.source, Some(sender.local_addr().unwrap()));
    assert_eq!(message.destination, Some(IpAddr::from([127, 0, 0, 1])));
    assert_eq!(message.drops, None, "nothing was dropped yet");
    assert_eq!(
        receiver.receive(&socket).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    assert_eq!(receiver.count(), 0);
}

#[test]
fn what_exceeds_a_buffer_is_left_to_the_caller() {
    let (sender, socket) = datagram_pair();
    let much = vec![1; 100_000];
    assert_eq!(udp::send_segments(&sender, &much, 1000).unwrap(), 64_000);
    assert_eq!(
        receive_all(&mut Receiver::new(64, 2048), &socket).0.len(),
        64
    );
    assert_eq!(udp::send_segments(&sender, &much, 100).unwrap(), 6400);
    assert_eq!(
        receive_all(&mut Receiver::new(64, 2048), &socket).0.len(),
        64
    );
    assert_eq!(
        udp::send_segments(&sender, &much, 0).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn a_small_receiver_says_what_it_cut_and_an_empty_datagram_is_one() {
    let (sender, socket) = datagram_pair();
    sender.send(&[1; 3000]).unwrap();
    sender.send(&[]).unwrap();
    sender.send(&[2; 2048]).unwrap();
    let mut receiver = Receiver::new(16, 2048);
    assert_eq!(receiver.receive(&socket).unwrap(), 3);
    let cut: Vec<_> = receiver
        .messages()
        .map(|one| (one.data.len(), one.truncated))
        .collect();
    assert_eq!(cut, [(2048, true), (0, false), (2048, false)]);
    assert_eq!(
        receiver.message(1).datagrams().collect::<Vec<_>>(),
        [&[0_u8; 0]]
    );
}

#[test]
fn an_ipv6_socket_tells_mapped_addresses() {
    let Ok(socket) = UdpSocket::bind("[::]:0") else {
        return skipped(Need::Ipv6, "datagrams at an IPv6 socket", "no IPv6");
    };
    udp::enable_packet_info(&socket).unwrap();
    udp::enable_gro(&socket).unwrap();
    let port = socket.local_addr().unwrap().port();
    let mut receiver = Receiver::new(4, 2048);
    for (from, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
        let Ok(sender) = UdpSocket::bind(from) else {
            return skipped(Need::Ipv6, "datagrams over IPv6", "no IPv6 loopback");
        };
        sender.connect((to, port)).unwrap();
        assert_eq!(
            udp::send_segments(&sender, &numbered(2, 500, 500), 500).unwrap(),
            1000
        );
        receiver.receive(&socket).unwrap();
        let message = receiver.message(0);
        assert_eq!((message.segment, message.data.len()), (500, 1000));
        assert_eq!(message.destination.unwrap().to_canonical().to_string(), to);
        let source = message.source.unwrap();
        assert_eq!(source.ip().to_canonical().to_string(), to);
        assert_eq!(source.port(), sender.local_addr().unwrap().port());
        // What was received can be answered.
        socket.send_to(b"answer", source).unwrap();
    }
}

#[test]
fn a_receiver_can_move_to_another_thread() {
    let (sender, socket) = datagram_pair();
    let mut receiver = Receiver::new(2, 2048);
    sender.send(b"one").unwrap();
    receiver.receive(&socket).unwrap();
    let thread = std::thread::spawn(move || receiver.message(0).data.to_vec());
    assert_eq!(thread.join().unwrap(), b"one");
}
