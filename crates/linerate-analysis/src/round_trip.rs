//! The least round trip of a connection.

use linerate_model::column::Column;
use linerate_model::record::StreamRecord;

/// What the kernel says where it knows none.
const UNKNOWN: u64 = u32::MAX as u64;
/// The clock of TCP's timestamps ticks in milliseconds.
const TICK_US: u64 = 1000;

/// The least round trip that the sending kernel measured, µs; `None` where it does not tell.
///
/// Where a retransmission leaves open which copy was acknowledged, the kernel measures by TCP's timestamps instead
/// (`tcp_ack_update_rtt`, `net/ipv4/tcp_input.c`), whose clock ticks in milliseconds: such a round trip can come out nearly
/// one millisecond too short, and the kernel's minimum keeps it. So whole milliseconds count only where it never said
/// anything else.
pub fn least_us(stream: &StreamRecord) -> Option<u64> {
    let known = || {
        let column = stream.samples.column(Column::min_rtt_us)?;
        let known = |rtt: &u64| *rtt > 0 && *rtt < UNKNOWN;
        Some(column.iter().copied().filter(known))
    };
    let exact = known()?.filter(|rtt| rtt % TICK_US != 0).min();
    exact.or_else(|| known()?.min())
}

#[cfg(test)]
mod tests {
    use linerate_model::plan::Plan;
    use linerate_testing::fixture;

    use super::*;

    #[test]
    fn a_round_trip_by_the_clock_of_timestamps_does_not_undercut_the_others() {
        let traffic = fixture::Traffic {
            rtt_us: 3300,
            min_rtt_us: 2851,
            ..fixture::Traffic::default()
        };
        let mut record = fixture::run(&Plan::new("server"), &traffic);
        let end = record.client.as_mut().unwrap();
        let stream = end.streams.first_mut().unwrap();
        assert_eq!(least_us(stream), Some(2851));
        let rows = stream.samples.len();
        let undercut = (0..rows).map(|row| if row > 5 { 2000 } else { 2851 });
        stream
            .samples
            .insert(Column::min_rtt_us.name(), undercut.collect())
            .unwrap();
        assert_eq!(least_us(stream), Some(2851));
        stream
            .samples
            .insert(Column::min_rtt_us.name(), vec![2000; rows])
            .unwrap();
        assert_eq!(least_us(stream), Some(2000));
    }
}
