//! iperf2: the first bytes of a connection as a server reads them, a datagram, a server's report and its answer. What is read
//! and written again must be read as the same.

use linerate_model::units::Nanos;
use linerate_wire::iperf2::ack::Ack;
use linerate_wire::iperf2::bounceback::{BYTES, Bounceback, LONGEST, is_last, stamp};
use linerate_wire::iperf2::caller::{LEAST, Opening, of_connection, of_datagram};
use linerate_wire::iperf2::datagram::Head;
use linerate_wire::iperf2::header::{LONGEST_HEADER, TcpHeader, UdpHeader};
use linerate_wire::iperf2::report::Report;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let mut have = LEAST;
    while let Opening::Partial { bytes } = of_connection(&data[..have.min(data.len())]) {
        assert!(bytes <= LONGEST_HEADER);
        if bytes > data.len() {
            break;
        }
        assert!(
            bytes > have || have == LEAST,
            "{bytes} bytes wanted after {have}"
        );
        have = bytes;
    }
    if let Ok((header, length)) = TcpHeader::decode(data) {
        assert!(length <= data.len());
        let written = header.encode();
        if header.extension.is_some()
            && let Ok((again, _)) = TcpHeader::decode(&written)
        {
            assert_eq!(again.first.streams, header.first.streams);
            assert_eq!(again.first.amount, header.first.amount);
        }
    }
    if let Some((layout, _)) = of_datagram(data) {
        let head = Head::decode(layout, data).expect("a first datagram has a head");
        let mut written = data.to_vec();
        head.encode(layout, &mut written);
        assert_eq!(written, data);
        assert_eq!(head.ends(u64::MAX), None);
    }
    if let Some(header) = data.get(16..).and_then(UdpHeader::decode) {
        assert_eq!(UdpHeader::decode(&header.encode()), Some(header));
    }
    if let Some((form, report)) = Report::decode(data) {
        let again = Report::decode(&report.encode(form, data)).map(|(_, report)| report);
        assert_eq!(again.map(|report| report.bytes), Some(report.bytes));
    }
    if let Some(bounceback) = Bounceback::decode(data) {
        assert!((BYTES..=LONGEST).contains(&bounceback.request_bytes));
        assert!((1..=LONGEST).contains(&bounceback.reply_bytes));
        let mut reply = data.to_vec();
        stamp(&mut reply, Nanos(1), Nanos(2));
        assert_eq!(is_last(&reply), is_last(data));
    }
    if let Some(ack) = Ack::decode(data) {
        assert_eq!(Ack::decode(&ack.encode()), Some(ack));
    }
}
