//! Settings of TCP sockets and the calls that move bytes without copying them.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;

use linerate_kernel::poll::{Interest, PollEntry, wait};
use linerate_kernel::{socket, tcp};
use linerate_model::units::{BitRate, Nanos};

use crate::{connection, facts, until};

#[test]
fn discarded_bytes_are_counted_and_gone() {
    let (mut active, passive) = connection();
    assert_eq!(
        tcp::discard(&passive, 1 << 20).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    active.write_all(&[1; 1000]).unwrap();
    until("the bytes are there", || {
        tcp::unread(&passive).unwrap() == 1000
    });
    assert_eq!(tcp::discard(&passive, 600).unwrap(), 600);
    assert_eq!(tcp::unread(&passive).unwrap(), 400);
    assert_eq!(tcp::discard(&passive, 1 << 20).unwrap(), 400);
    active.shutdown(Shutdown::Write).unwrap();
    until("the end of data", || {
        matches!(tcp::discard(&passive, 1 << 20), Ok(0))
    });
    assert_eq!(
        tcp::discard(&passive, 0).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    let (sender, receiver) = crate::datagram_pair();
    sender.send(&[1; 100]).unwrap();
    assert!(
        tcp::discard(&receiver, 100).is_err(),
        "a datagram would be written to address 0"
    );
}

#[test]
fn every_zero_copy_send_is_completed_and_on_loopback_copied_all_the_same() {
    let (active, passive) = connection();
    tcp::enable_zerocopy(&active).unwrap();
    let (mut asked, mut seen) = (0, tcp::ZerocopyCompletions::default());
    until("all is completed", || {
        if asked < 20 && tcp::send_zerocopy(&active, &[7; 10_000], 100_000).is_ok() {
            asked += 1;
        }
        while matches!(tcp::discard(&passive, 1 << 20), Ok(1..)) {}
        let more = tcp::zerocopy_completions(&active).unwrap();
        seen.completed += more.completed;
        seen.copied += more.copied;
        seen.other += more.other;
        asked == 20 && seen.completed == 20
    });
    assert_eq!(
        seen,
        tcp::ZerocopyCompletions {
            completed: 20,
            copied: 20,
            other: 0
        }
    );
    assert_eq!(tcp::zerocopy_completions(&active).unwrap().completed, 0);
}

#[test]
fn a_waiting_completion_polls_as_error() {
    let (active, passive) = connection();
    tcp::enable_zerocopy(&active).unwrap();
    tcp::send_zerocopy(&active, &[7; 10_000], 10_000).unwrap();
    until("it was received", || {
        tcp::unread(&passive).unwrap() == 10_000
    });
    tcp::discard(&passive, 1 << 20).unwrap();
    let mut entries = [PollEntry::new(active.as_fd(), Interest::NONE)];
    assert_eq!(
        wait(&mut entries, Some(Nanos::from_millis(5000))).unwrap(),
        1
    );
    assert!(entries[0].readiness().error && !entries[0].readiness().hangup);
}

#[test]
fn congestion_control_is_chosen_by_name() {
    let (active, _passive) = connection();
    tcp::set_congestion(&active, "reno").unwrap();
    assert_eq!(tcp::congestion(&active).unwrap(), "reno");
    let error = tcp::set_congestion(&active, "no-such-one").unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("cannot set the congestion control no-such-one: "),
        "{text}"
    );
}

#[test]
fn settings_are_taken_and_read_back() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp::set_mss(&listener, 1000).unwrap();
    let active = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert!(tcp::mss(&active).unwrap() <= 1000);
    assert!(tcp::set_mss(&active, 1).is_err());
    tcp::set_nodelay(&active, true).unwrap();
    assert!(active.nodelay().unwrap());
    tcp::set_user_timeout(&active, Nanos::from_millis(30_000)).unwrap();
    let before = tcp::keepalive(&active).unwrap();
    let asked = tcp::Keepalive {
        idle_s: Some(10),
        interval_s: None,
        count: Some(3),
    };
    tcp::set_keepalive(&active, asked).unwrap();
    let interval_s = before.interval_s;
    assert_eq!(
        tcp::keepalive(&active).unwrap(),
        tcp::Keepalive {
            interval_s,
            ..asked
        }
    );
    assert!(socket2::SockRef::from(&active).keepalive().unwrap());
    let too_many = tcp::Keepalive {
        count: Some(1000),
        ..asked
    };
    assert!(tcp::set_keepalive(&active, too_many).is_err());
    for (rate, expected) in [(8_000_000, 1_000_000), (1, 1), (u64::MAX, u64::MAX)] {
        socket::set_max_pacing_rate(&active, BitRate(rate)).unwrap();
        assert_eq!(facts(&active).max_pacing_rate_bytes_per_s, Some(expected));
    }
    // Beyond 32 bits of bytes per second.
    socket::set_max_pacing_rate(&active, BitRate(100_000_000_000)).unwrap();
    assert_eq!(
        facts(&active).max_pacing_rate_bytes_per_s,
        Some(12_500_000_000)
    );
}
