//! What the counters of dropped datagrams count: buffers, which are datagrams only without GRO.

use linerate_kernel::counters::Counters;
use linerate_kernel::socket;
use linerate_kernel::udp::{self, Receiver};

use crate::datagram_pair;

const SEGMENT: u16 = 1000;
const SEGMENTS: u64 = 40;
const BUFFERS: u64 = 50;

/// What a flood into a small receive buffer came to.
struct Flood {
    missing: u64,
    /// `SO_RXQ_OVFL` beside a last datagram.
    overflow: u64,
    /// `SO_MEMINFO`
    memory: u64,
    /// Growth of `Udp.RcvbufErrors`, other tests' drops included.
    receive_buffer_errors: u64,
}

fn flood(gro: bool) -> Flood {
    let (sender, socket) = datagram_pair();
    socket::set_receive_buffer(&socket, 100_000).unwrap();
    udp::enable_drop_counter(&socket).unwrap();
    if gro {
        udp::enable_gro(&socket).unwrap();
    }
    let mut counters = Counters::open().unwrap();
    let mut errors = || counters.protocols().unwrap()["Udp.RcvbufErrors"];
    let before = errors();
    let buffer = vec![1; usize::from(SEGMENT) * usize::try_from(SEGMENTS).unwrap()];
    for _ in 0..BUFFERS {
        assert_eq!(
            udp::send_segments(&sender, &buffer, SEGMENT).unwrap(),
            buffer.len()
        );
    }
    let receive_buffer_errors = errors() - before;
    let mut receiver = Receiver::new(64, 65_536);
    let mut delivered = 0;
    while receiver.receive(&socket).is_ok() {
        delivered += receiver
            .messages()
            .map(|message| message.datagram_count() as u64)
            .sum::<u64>();
    }
    // The counter comes with what is queued after the drops.
    sender.send(&[1]).unwrap();
    receiver.receive(&socket).unwrap();
    Flood {
        missing: SEGMENTS * BUFFERS - delivered,
        overflow: receiver.message(0).drops.unwrap().into(),
        memory: socket::memory(&socket).unwrap().drops.into(),
        receive_buffer_errors,
    }
}

#[test]
fn without_gro_every_missing_datagram_is_a_counted_drop() {
    let flood = flood(false);
    assert!(flood.missing > 0);
    assert_eq!(flood.overflow, flood.missing);
    assert_eq!(flood.memory, flood.missing);
    assert!(flood.receive_buffer_errors >= flood.missing);
}

#[test]
fn with_gro_a_counted_drop_is_a_buffer_of_many_datagrams() {
    let flood = flood(true);
    assert!(flood.missing > 0);
    assert_eq!(flood.overflow * SEGMENTS, flood.missing);
    assert_eq!(flood.memory, flood.overflow);
    assert!(flood.receive_buffer_errors >= flood.overflow);
}
