//! How the kernel counts SYN, FIN and what is left after the end: the ledger rests on it.

use std::io::{Read, Write};
use std::net::Shutdown;

use linerate_kernel::tcp;
use linerate_model::tcp_info::{FIELDS, LENGTH};

use crate::{connection, facts, until};

const ESTABLISHED: Option<u64> = Some(1);
const FIN_WAIT2: Option<u64> = Some(5);
const CLOSE: Option<u64> = Some(7);
const CLOSE_WAIT: Option<u64> = Some(8);

#[test]
fn the_answer_has_as_many_fields_as_this_kernel_knows() {
    let (active, _passive) = connection();
    let info = tcp::info(&active).unwrap();
    let last = info.fields().last().unwrap().0;
    // 4.19 ends at offset 224; 6.18 fills all of it.
    assert!(last.offset + last.width >= 224, "{last:?}");
    let release = linerate_kernel::host::facts().kernel.unwrap();
    if release.starts_with("6.18.") {
        assert_eq!(last.offset + last.width, LENGTH);
        assert_eq!(info.fields().count(), FIELDS.len());
    }
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(tcp::info(&socket).is_err());
}

#[test]
fn a_syn_is_acknowledged_as_a_byte_for_the_active_opener_alone() {
    let (active, passive) = connection();
    assert_eq!(facts(&active).bytes_acked, Some(1));
    assert_eq!(facts(&passive).bytes_acked, Some(0));
    assert_eq!(facts(&active).bytes_received, Some(0));
    assert_eq!(facts(&passive).bytes_received, Some(0));
    assert_eq!(facts(&active).bytes_sent, Some(0));
}

#[test]
fn a_fin_is_a_byte_acknowledged_and_a_byte_received_but_none_sent_or_unread() {
    let (mut active, passive) = connection();
    active.write_all(&[1; 1000]).unwrap();
    active.shutdown(Shutdown::Write).unwrap();
    until("the FIN is acknowledged", || {
        facts(&active).state == FIN_WAIT2
    });
    let sent = facts(&active);
    assert_eq!((sent.bytes_sent, sent.bytes_retrans), (Some(1000), Some(0)));
    assert_eq!(sent.bytes_acked, Some(1 + 1000 + 1));
    assert_eq!(tcp::unacknowledged(&active).unwrap(), 0);
    assert_eq!(tcp::unsent(&active).unwrap(), 0);
    let received = facts(&passive);
    assert_eq!(
        (received.state, received.bytes_received),
        (CLOSE_WAIT, Some(1000 + 1))
    );
    assert_eq!(tcp::unread(&passive).unwrap(), 1000);
}

#[test]
fn a_passive_opener_that_sends_has_its_fin_alone_beyond_the_payload() {
    let (active, mut passive) = connection();
    passive.write_all(&[1; 500]).unwrap();
    passive.shutdown(Shutdown::Write).unwrap();
    until("the FIN is acknowledged", || {
        facts(&passive).state == FIN_WAIT2
    });
    assert_eq!(facts(&passive).bytes_acked, Some(500 + 1));
    assert_eq!(facts(&active).bytes_received, Some(500 + 1));
}

#[test]
fn a_queued_fin_counts_in_the_queues() {
    let (mut active, mut passive) = connection();
    active.set_nonblocking(true).unwrap();
    let mut written = 0;
    let data = vec![0; 65_536];
    // Until the peer's window and the own buffer stay full.
    until("the queue is full", || {
        let before = written;
        while let Ok(count) = active.write(&data) {
            written += count as u64;
        }
        before == written && facts(&active).unacked_packets == Some(0)
    });
    let once = |stream| facts(stream).bytes_sent.unwrap() - facts(stream).bytes_retrans.unwrap();
    assert_eq!(
        once(&active) + facts(&active).notsent_bytes.unwrap(),
        written
    );
    assert_eq!(
        once(&active) + tcp::unacknowledged(&active).unwrap(),
        written
    );
    active.shutdown(Shutdown::Write).unwrap();
    assert_eq!(
        once(&active) + facts(&active).notsent_bytes.unwrap(),
        written + 1
    );
    assert_eq!(once(&active) + tcp::unsent(&active).unwrap(), written + 1);
    let mut read = 0;
    let mut buffer = vec![0; 1 << 20];
    while let count @ 1.. = passive.read(&mut buffer).unwrap() {
        read += count as u64;
    }
    assert_eq!(read, written);
    until("the FIN is acknowledged", || {
        facts(&active).state == FIN_WAIT2
    });
    assert_eq!(facts(&active).bytes_acked, Some(written + 2));
    assert_eq!(facts(&passive).bytes_received, Some(written + 1));
    assert_eq!(tcp::unacknowledged(&active).unwrap(), 0);
}

#[test]
fn after_both_ends_closed_the_account_can_still_be_read() {
    let (mut active, mut passive) = connection();
    active.write_all(&[1; 1000]).unwrap();
    active.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    passive.read_to_end(&mut all).unwrap();
    drop(passive);
    // The kernel keeps TIME_WAIT in a table of its own; the socket says CLOSE.
    until("the peer's FIN came", || facts(&active).state == CLOSE);
    let account = facts(&active);
    assert_eq!(
        (account.bytes_acked, account.bytes_received),
        (Some(1002), Some(1))
    );
}

#[test]
fn after_a_reset_the_account_stays_as_it_was() {
    let (mut active, mut passive) = connection();
    active.write_all(&[1; 1000]).unwrap();
    passive.write_all(&[1; 700]).unwrap();
    until("both arrived", || {
        facts(&active).bytes_received == Some(700) && facts(&active).bytes_acked == Some(1001)
    });
    assert_eq!(facts(&active).state, ESTABLISHED);
    // Closing with unread data resets.
    drop(passive);
    until("the reset came", || facts(&active).state == CLOSE);
    let account = facts(&active);
    assert_eq!(
        (account.bytes_sent, account.bytes_acked),
        (Some(1000), Some(1001))
    );
    assert_eq!(account.bytes_received, Some(700));
    assert_eq!(tcp::unread(&active).unwrap(), 700);
    assert_eq!(active.read(&mut [0; 1000]).unwrap(), 700);
    let error = linerate_kernel::socket::pending_error(&active)
        .unwrap()
        .unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(active.write(&[1]).is_err());
    assert_eq!(facts(&active).bytes_acked, Some(1001));
}

#[test]
fn what_a_reset_cut_off_stays_unacknowledged() {
    let (mut active, passive) = connection();
    drop(passive);
    until("the peer's FIN came", || facts(&active).state == CLOSE_WAIT);
    active.write_all(&[1; 300]).unwrap();
    until("the reset came", || facts(&active).state == CLOSE);
    let account = facts(&active);
    assert_eq!(
        (account.bytes_sent, account.bytes_acked),
        (Some(300), Some(1))
    );
    assert_eq!(account.bytes_received, Some(1));
    assert_eq!(tcp::unacknowledged(&active).unwrap(), 300);
}
