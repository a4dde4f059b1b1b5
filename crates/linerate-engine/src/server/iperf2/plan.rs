//! The plan of a test from what an iperf2's client says.

use std::net::IpAddr;

use linerate_model::plan::{Direction, End, Plan, Protocol};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_wire::iperf2::caller::{Caller, Way};
use linerate_wire::iperf2::header::Amount;
use linerate_wire::iperf2::{DEFAULT_UDP_BLOCK, DEFAULT_UDP_RATE};

/// Bytes of a datagram over IPv6 where the client says nothing: 20 less for the longer header.
const DEFAULT_UDP_BLOCK_V6: u64 = 1450;
/// The unit of a time on the wire.
const TIME_UNIT: u64 = 10_000_000;

/// Which of a test's streams run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Those that the client opened, and with `-d` those back to it.
    First,
    /// With `-r`: those back to it, when the first have ended.
    Back,
}

/// The plan of one part of a test. A client that does not say when it ends has a plan without an end.
pub(super) fn plan(caller: &Caller, over_udp: bool, peer: IpAddr, port: u16, part: Part) -> Plan {
    let mut plan = Plan::new(peer.to_canonical().to_string());
    plan.port = port;
    plan.protocol = if over_udp {
        Protocol::Udp
    } else {
        Protocol::Tcp
    };
    plan.direction = match (part, caller.way) {
        (Part::Back, _) | (_, Way::ToClient) => Direction::Receive,
        (_, Way::Dual | Way::FullDuplex) => Direction::Both,
        (_, Way::ToServer | Way::Tradeoff | Way::Bounceback) => Direction::Send,
    };
    plan.streams = caller.streams.unwrap_or(1);
    plan.end = match caller.amount {
        None => End::TimeNs(Nanos::ZERO),
        Some(Amount::Time(units)) => End::TimeNs(Nanos(u64::from(units) * TIME_UNIT)),
        // Of each stream.
        Some(Amount::Bytes(bytes)) => End::Bytes(Bytes(u64::from(bytes) * u64::from(plan.streams))),
    };
    if over_udp {
        let most = if peer.to_canonical().is_ipv4() {
            DEFAULT_UDP_BLOCK
        } else {
            DEFAULT_UDP_BLOCK_V6
        };
        let block = caller.block_bytes.map_or(most, u64::from);
        plan.block_bytes = Bytes(block.clamp(16, linerate_model::plan::MAX_UDP_BLOCK));
        plan.rate_bps = Some(BitRate(caller.rate.map_or(DEFAULT_UDP_RATE, |rate| {
            if caller.counts_packets {
                rate.saturating_mul(8 * plan.block_bytes.0)
            } else {
                rate
            }
        })));
        // Nobody said one.
        plan.rate_is_default = caller.rate.is_none();
    } else if let Some(block) = caller.block_bytes {
        plan.block_bytes = Bytes(u64::from(block).clamp(1, linerate_model::plan::MAX_TCP_BLOCK));
    }
    if let Some(bounceback) = &caller.bounceback {
        plan.block_bytes = Bytes(bounceback.request_bytes as u64);
        plan.nodelay = true;
    }
    if !over_udp {
        plan.rate_bps = caller.rate.map(BitRate);
    }
    plan.tos = caller.tos;
    plan
}

/// What each stream sends of a test that ends by bytes.
pub(super) fn bytes_a_stream(caller: &Caller) -> Option<u64> {
    match caller.amount {
        Some(Amount::Bytes(bytes)) => Some(u64::from(bytes)),
        Some(Amount::Time(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_wire::iperf2::caller::Generation;

    fn of(caller: &Caller, over_udp: bool, peer: &str, part: Part) -> Plan {
        plan(caller, over_udp, peer.parse().unwrap(), 5001, part)
    }

    #[test]
    fn what_is_not_said_has_no_end_and_one_stream() {
        let caller = Caller::unknown(Generation::Headerless);
        let plan = of(&caller, false, "::ffff:192.0.2.1", Part::First);
        assert_eq!((plan.streams, plan.end), (1, End::TimeNs(Nanos::ZERO)));
        assert_eq!((&*plan.host, plan.rate_bps), ("192.0.2.1", None));
        let plan = of(&caller, true, "2001:db8::1", Part::First);
        assert_eq!(plan.block_bytes, Bytes(DEFAULT_UDP_BLOCK_V6));
        assert!(plan.rate_is_default);
    }

    #[test]
    fn bytes_are_each_stream_s_and_a_rate_may_count_packets() {
        let caller = Caller {
            streams: Some(4),
            amount: Some(Amount::Bytes(1000)),
            rate: Some(50),
            counts_packets: true,
            block_bytes: Some(200),
            way: Way::Tradeoff,
            ..Caller::unknown(Generation::V2_1)
        };
        let first = of(&caller, true, "192.0.2.1", Part::First);
        assert_eq!(first.end, End::Bytes(Bytes(4000)));
        assert_eq!(first.rate_bps, Some(BitRate(50 * 200 * 8)));
        assert_eq!(first.direction, Direction::Send);
        let back = of(&caller, true, "192.0.2.1", Part::Back);
        assert_eq!(back.direction, Direction::Receive);
        assert_eq!(bytes_a_stream(&caller), Some(1000));
    }
}
