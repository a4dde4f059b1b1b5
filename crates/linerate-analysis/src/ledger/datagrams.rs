//! The datagrams of a UDP stream: sent, delivered, and where the others were lost.

use super::equation::{DATAGRAMS_DELIVERED, DATAGRAMS_READ};
use super::{Check, Counted, DatagramEntry, Entry, Halves};

/// The places of a UDP stream; `checks` takes its equations.
pub(super) fn udp_entry(halves: Halves<'_>, checks: &mut Vec<Check>) -> Entry {
    let datagrams = datagrams(halves);
    let datagram_check = |equation, left: u64, right: u64, holds, trust| Check {
        counted: Counted::Datagrams,
        ..halves.check(equation, left, right, holds, trust)
    };
    if let (Some(sent), Some(delivered)) = (datagrams.sent, datagrams.delivered) {
        let trust = "the receiver's figure: more was delivered than the sender reports as sent";
        checks.push(datagram_check(
            DATAGRAMS_DELIVERED,
            sent,
            delivered,
            sent >= delivered,
            trust,
        ));
    }
    if let Some(counts) = halves.received.and_then(|stream| stream.udp.as_ref()) {
        let parts = counts
            .unique
            .saturating_add(counts.duplicates)
            .saturating_add(counts.too_old);
        let (read, trust) = (counts.received, "the number of datagrams read");
        checks.push(datagram_check(
            DATAGRAMS_READ,
            read,
            parts,
            read == parts,
            trust,
        ));
    }
    Entry {
        id: Some(halves.id),
        written: halves.counted(halves.sent),
        read: halves.counted(halves.received),
        datagrams: Some(datagrams),
        ..Entry::default()
    }
}

fn datagrams(halves: Halves<'_>) -> DatagramEntry {
    let Halves { sent, received, .. } = halves;
    let out = sent.and_then(|stream| stream.udp.as_ref());
    let inn = received.and_then(|stream| stream.udp.as_ref());
    let results = halves.record.peer_results.as_ref();
    let told = results.and_then(|results| results.streams.iter().find(|one| one.id == halves.id));
    let mut datagrams = DatagramEntry {
        sent: out
            .map(|counts| counts.sent)
            .or_else(|| inn.and_then(|counts| counts.peer_sent))
            .or(told
                .filter(|_| received.is_some())
                .map(|stream| stream.packets)),
        delivered: inn.map(|counts| counts.unique),
        socket_dropped: inn.and_then(|counts| counts.socket_drops),
        duplicated: inn.map(|counts| counts.duplicates),
        reordered: inn.map(|counts| counts.reordered),
        too_old: inn.map(|counts| counts.too_old).filter(|count| *count > 0),
        ..DatagramEntry::default()
    };
    if received.is_none() {
        // A stock receiver tells the highest counter it saw and what it holds lost up to there.
        datagrams.delivered = told.map(|stream| {
            stream
                .packets
                .saturating_sub(stream.errors.max(0).unsigned_abs())
        });
    }
    datagrams.lost = datagrams
        .sent
        .zip(datagrams.delivered)
        .map(|(sent, delivered)| sent.saturating_sub(delivered));
    if let Some(lost) = datagrams.lost {
        datagrams.socket_dropped = datagrams.socket_dropped.map(|dropped| dropped.min(lost));
        datagrams.path_lost = datagrams.socket_dropped.map(|dropped| lost - dropped);
    }
    datagrams
}
