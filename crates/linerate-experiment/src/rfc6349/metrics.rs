//! The metrics of RFC 6349, section 4, and the rates that they compare with.

use serde::Serialize;

/// Ethernet's bytes around an IP packet: preamble 8, header 14, check sequence 4, gap 12.
pub const FRAMING: f64 = 38.0;
/// Headers of IPv4 and TCP without options, as the RFC counts.
pub const HEADERS: f64 = 40.0;
/// What TCP's timestamps (RFC 7323) take of a segment, where they are on.
pub const TIMESTAMPS: f64 = 12.0;

/// The three metrics. What is not known is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Metrics {
    /// §4.1 TCP Transfer Time Ratio: actual time over ideal time, both for the same bytes; 1 is ideal.
    pub transfer_time_ratio: Option<f64>,
    /// §4.2 TCP Efficiency, %: (transmitted − retransmitted bytes) / transmitted bytes × 100.
    pub efficiency_percent: Option<f64>,
    /// §4.3 Buffer Delay, %: (mean round trip during the transfer − base) / base × 100.
    pub buffer_delay_percent: Option<f64>,
}

/// §4.1: frames that `bandwidth_bps` of layer 2 carries a second, times the payload of each, bit/s:
/// (MTU − 40) × 8 × bandwidth / ((MTU + 38) × 8).
pub fn achievable_bps(bandwidth_bps: f64, mtu: u32) -> f64 {
    let mtu = f64::from(mtu);
    (mtu - HEADERS).max(0.0) * bandwidth_bps / (mtu + FRAMING)
}

/// The bandwidth of layer 2 that a payload rate needs, where each segment carries `headers` bytes of IP and TCP.
pub fn bandwidth_bps(payload_bps: f64, mtu: u32, headers: f64) -> f64 {
    let mtu = f64::from(mtu);
    payload_bps * (mtu + FRAMING) / (mtu - headers).max(1.0)
}

/// What a window allows over a round trip, bit/s, at most what the path carries.
pub fn ideal_bps(window_bytes: f64, rtt_s: f64, achievable_bps: f64) -> f64 {
    (window_bytes * 8.0 / rtt_s.max(1e-9)).min(achievable_bps)
}

/// §4.1: of rates, since both times are for the same bytes.
pub fn transfer_time_ratio(achieved_bps: f64, ideal_bps: f64) -> Option<f64> {
    (achieved_bps > 0.0 && ideal_bps > 0.0).then(|| ideal_bps / achieved_bps)
}

/// §4.2, in percent.
pub fn efficiency_percent(transmitted: u64, retransmitted: u64) -> Option<f64> {
    (transmitted > 0)
        .then(|| 100.0 * transmitted.saturating_sub(retransmitted) as f64 / transmitted as f64)
}

/// §4.3, in percent; a mean below the base is none.
pub fn buffer_delay_percent(mean_rtt_us: f64, base_rtt_us: f64) -> Option<f64> {
    (base_rtt_us > 0.0).then(|| (100.0 * (mean_rtt_us - base_rtt_us) / base_rtt_us).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_come_out() {
        // §4.1: GigE with an MTU of 1500: 81,274 frames a second, 949 Mbit/s. 100 Mbit/s: 94.9 Mbit/s.
        assert!((achievable_bps(1e9, 1500) / 1e6 - 949.3).abs() < 0.1);
        assert!((achievable_bps(1e8, 1500) / 1e6 - 94.9).abs() < 0.1);
        // §4.2: 100,000 bytes of which 2,000 were retransmitted: 102,000 transmitted, 98.03 %.
        assert!((efficiency_percent(102_000, 2_000).unwrap() - 98.03).abs() < 0.01);
        // §4.3: base 25 ms, mean 32 ms: 28 %.
        assert!((buffer_delay_percent(32_000.0, 25_000.0).unwrap() - 28.0).abs() < 1e-9);
        // §4.1: 12 seconds where 10 would be ideal: 1.2.
        assert!((transfer_time_ratio(1.0 / 12.0, 1.0 / 10.0).unwrap() - 1.2).abs() < 1e-9);
    }

    #[test]
    fn a_window_allows_itself_each_round_trip_and_never_more_than_the_path() {
        // §3.3.1: 64 KB over 25 ms is about 21 Mbit/s.
        assert!((ideal_bps(65_536.0, 0.025, 1e9) / 1e6 - 20.97).abs() < 0.01);
        assert!((ideal_bps(1e9, 0.025, 949e6) - 949e6).abs() < 1e-6);
    }

    #[test]
    fn bandwidth_and_payload_undo_each_other() {
        let payload = 941.5e6;
        let bandwidth = bandwidth_bps(payload, 1500, HEADERS + TIMESTAMPS);
        assert!((bandwidth / 1e9 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn nothing_sent_has_no_metric() {
        assert_eq!(efficiency_percent(0, 0), None);
        assert_eq!(transfer_time_ratio(0.0, 1.0), None);
        assert_eq!(buffer_delay_percent(1.0, 0.0), None);
    }
}
