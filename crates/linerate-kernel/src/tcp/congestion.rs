//! Congestion control: which one, and what it says of itself.

use std::io;
use std::os::fd::AsFd;

use linerate_model::units::{BitRate, Nanos};

use crate::KernelError;
use crate::address::array;
use crate::option;

/// Longest name, with its final zero (`TCP_CA_NAME_MAX`).
const NAME_LENGTH: usize = 16;
/// What BBR counts as a gain of 1 (`BBR_UNIT`).
const BBR_UNIT: f64 = 256.0;

/// BBR's model of the path (`struct tcp_bbr_info`, `include/uapi/linux/inet_diag.h`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BbrInfo {
    /// Largest delivery rate of late.
    pub bandwidth: BitRate,
    /// Least round-trip time of the last 10 s, to the microsecond; `None` before the first.
    pub min_rtt: Option<Nanos>,
    /// Pacing rate over bandwidth: 2.89 in start-up, then around 1.
    pub pacing_gain: f64,
    /// Congestion window over bandwidth × round-trip time.
    pub cwnd_gain: f64,
}

/// Chooses the congestion control.
///
/// # Errors
/// `ENOENT` where the kernel has none of this name, `EPERM` where an ordinary user may not choose it
/// (`tcp_allowed_congestion_control`).
pub fn set_congestion(fd: impl AsFd, name: &str) -> Result<(), KernelError> {
    option::set_bytes(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
        .map_err(KernelError::of("set the congestion control", name))
}

/// The congestion control in use.
pub fn congestion(fd: impl AsFd) -> io::Result<String> {
    let (raw, length) =
        option::get_with_length::<[u8; NAME_LENGTH]>(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION)?;
    let name = raw[..length.min(NAME_LENGTH)]
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// What the congestion control says of itself (`union tcp_cc_info`); `None` where it is not BBR. The union tells its
/// variant by its length alone: only BBR's is 20 bytes, the others are 16.
pub(crate) fn bbr(raw: &[u8]) -> Option<BbrInfo> {
    let word = |at| array(raw, at).map(u32::from_ne_bytes);
    let bytes_per_second = u64::from(word(4)?) << 32 | u64::from(word(0)?);
    let min_rtt_us = word(8)?;
    Some(BbrInfo {
        bandwidth: BitRate(bytes_per_second.saturating_mul(8)),
        min_rtt: (min_rtt_us != u32::MAX).then(|| Nanos(u64::from(min_rtt_us) * 1000)),
        pacing_gain: f64::from(word(12)?) / BBR_UNIT,
        cwnd_gain: f64::from(word(16)?) / BBR_UNIT,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bbr_is_read_and_the_others_are_not_taken_for_it() {
        let words = [1_000_u32, 1, 42, 739, 512];
        let raw: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let info = bbr(&raw).unwrap();
        assert_eq!(info.bandwidth, BitRate(((1 << 32) + 1000) * 8));
        assert_eq!(info.min_rtt, Some(Nanos(42_000)));
        assert!((info.pacing_gain - 2.887).abs() < 0.001);
        assert!((info.cwnd_gain - 2.0).abs() < f64::EPSILON);
        assert_eq!(bbr(&raw[..16]), None);
        assert_eq!(bbr(&[]), None);
    }
}
