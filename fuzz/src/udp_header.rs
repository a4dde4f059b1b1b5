//! Datagrams of 18 bytes: handshake, header in both widths, sequence, jitter. The counts must add
//! up whatever the counters are.

use linerate_model::units::Nanos;
use linerate_wire::jitter::Jitter;
use linerate_wire::sequence::SequenceTracker;
use linerate_wire::udp::{self, CounterWidth, DataHeader, TokenHandshake};

/// Feeds one input.
pub fn run(data: &[u8]) {
    let _ = (udp::is_answer(data), udp::is_request(data));
    if let Some(handshake) = TokenHandshake::decode(data) {
        assert_eq!(handshake.encode(), data);
    }
    let (mut wide, mut narrow) = (SequenceTracker::default(), SequenceTracker::default());
    let mut jitter = Jitter::default();
    let mut delivered = 0_u64;
    for (index, datagram) in data.chunks(18).enumerate() {
        let arrived = Nanos(index as u64 * 1_000_000);
        if let Some(header) = DataHeader::decode(CounterWidth::Bits64, datagram) {
            jitter.record(header.sent(), arrived);
            let run = datagram.get(16).map_or(1, |count| u64::from(*count));
            wide.record_run(header.counter, run);
            delivered += run;
        }
        if let Some(header) = DataHeader::decode(CounterWidth::Bits32, datagram) {
            let highest = || narrow.counts().highest;
            narrow.record(CounterWidth::Bits32.whole(header.counter, highest));
        }
    }
    let counts = wide.counts();
    assert_eq!(counts.received, delivered);
    assert_eq!(
        counts.received,
        counts.unique + counts.duplicates + counts.too_old + counts.invalid
    );
    assert!(counts.unique <= counts.highest && counts.reordered <= counts.unique);
    let jitter = jitter.distribution();
    assert!(jitter.quantile(500) <= jitter.quantile(990));
    assert!(jitter.quantile(990) <= jitter.max());
    let narrow = narrow.counts();
    assert!(narrow.unique <= narrow.highest);
}
