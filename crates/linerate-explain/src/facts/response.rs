//! What a congestion control reaches under loss, its response function, and that function turned round: the
//! loss that a rate bears, and the round trip up to which a loss allows it.

/// BBR as Linux has it (version 1) does not slow down for loss alone below a share of about this (Cardwell et
/// al. 2017: 15 to 20 %). Version 3, which bears 2 %, bears the same name and is not in the mainline kernel.
const BBR_BEARS: f64 = 0.15;

/// Segments a round trip times the root of the loss: Mathis et al. 1997, without delayed acknowledgements.
const RENO: f64 = 1.224_744_871_391_589;
/// (C (3 + β) / (4 (1 − β)))^¼ with C = 0.4 and β = 0.7: RFC 9438 §5.1.
const CUBIC: f64 = 1.054;

/// Whether it slows down for a loss of `share` of the segments.
pub(crate) fn heeds(algorithm: &str, share: f64) -> bool {
    share > 0.0 && (!algorithm.starts_with("bbr") || share >= BBR_BEARS)
}

/// Rate of one stream, bit/s of payload, at a loss of `share` of its segments (0 to 1); infinite where the
/// algorithm does not slow down for it.
///
/// Reno: Mathis et al. 1997, sqrt(3/2) segments a round trip over the root of the loss; CUBIC: RFC 9438 §5.1
/// with C = 0.4 and β = 0.7, and never less than Reno. Others count as CUBIC.
pub(crate) fn rate(algorithm: &str, mss_bytes: f64, rtt_s: f64, share: f64) -> f64 {
    if !heeds(algorithm, share) {
        return f64::INFINITY;
    }
    let reno = RENO / share.sqrt();
    let window = if algorithm == "reno" {
        reno
    } else {
        reno.max(CUBIC * (rtt_s / share).powf(0.75))
    };
    window * mss_bytes * 8.0 / rtt_s
}

/// The largest share of its segments that one stream may lose at `bps`; `None` where the algorithm does not
/// slow down for loss.
pub(crate) fn bearable(algorithm: &str, mss_bytes: f64, rtt_s: f64, bps: f64) -> Option<f64> {
    if algorithm.starts_with("bbr") {
        return None;
    }
    let window = bps * rtt_s / (mss_bytes * 8.0);
    let reno = (RENO / window).powi(2);
    let share = if algorithm == "reno" {
        reno
    } else {
        reno.max(rtt_s * (CUBIC / window).powf(4.0 / 3.0))
    };
    Some(share.min(1.0))
}

/// The longest round trip, s, at which a loss of `share` still allows one stream `bps`; infinite where the
/// algorithm does not slow down for it.
pub(crate) fn longest_rtt_s(algorithm: &str, mss_bytes: f64, share: f64, bps: f64) -> f64 {
    if !heeds(algorithm, share) {
        return f64::INFINITY;
    }
    let segments_a_second = bps / (mss_bytes * 8.0);
    let reno = RENO / share.sqrt() / segments_a_second;
    if algorithm == "reno" {
        return reno;
    }
    // CUBIC's rate falls with the fourth root of the round trip.
    reno.max((CUBIC / segments_a_second).powi(4) / share.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_published_figures_come_out() {
        // RFC 9438, table 1 (RTT 0.1 s): Reno 12 and 120 segments at 1e-2 and 1e-4, CUBIC 12 and 187.
        let window = |algorithm, share| rate(algorithm, 1500.0, 0.1, share) * 0.1 / 12_000.0;
        assert!((window("reno", 1e-4) - 122.0).abs() < 1.0);
        assert!((window("reno", 1e-2) - 12.2).abs() < 0.1);
        assert!((window("cubic", 1e-4) - 187.0).abs() < 1.0);
        assert!((window("cubic", 1e-2) - 12.2).abs() < 0.1);
    }

    #[test]
    fn no_loss_and_bbr_under_little_loss_are_not_held() {
        assert!(rate("cubic", 1448.0, 0.01, 0.0).is_infinite());
        assert!(rate("bbr", 1448.0, 0.01, 0.1).is_infinite());
        assert!(rate("bbr", 1448.0, 0.01, 0.2).is_finite());
        assert_eq!(bearable("bbr", 1448.0, 0.01, 1e9), None);
        assert!(longest_rtt_s("bbr", 1448.0, 0.01, 1e9).is_infinite());
    }

    #[test]
    fn what_ten_gigabits_bear_is_what_rfc_9438_says() {
        // RFC 9438 §5.2 (1500 bytes, RTT 0.1 s): 10 Gbit/s need 83,333 segments; Reno bears 2.0e-10,
        // CUBIC 2.9e-8.
        let reno = bearable("reno", 1500.0, 0.1, 1e10).unwrap();
        assert!((reno / 2.16e-10 - 1.0).abs() < 0.02, "{reno}");
        let cubic = bearable("cubic", 1500.0, 0.1, 1e10).unwrap();
        assert!((cubic / 2.9e-8 - 1.0).abs() < 0.02, "{cubic}");
    }

    proptest! {
        #[test]
        fn turned_round_it_gives_back_what_it_was_given(
            reno in any::<bool>(),
            mss in 500.0..9000.0_f64,
            rtt in 1e-4..0.5_f64,
            exponent in -8.0..-1.5_f64,
        ) {
            let algorithm = if reno { "reno" } else { "cubic" };
            let share = 10_f64.powf(exponent);
            let bps = rate(algorithm, mss, rtt, share);
            let back = bearable(algorithm, mss, rtt, bps).unwrap();
            prop_assert!((back / share - 1.0).abs() < 1e-6, "{back} of {share}");
            let longest = longest_rtt_s(algorithm, mss, share, bps);
            prop_assert!((longest / rtt - 1.0).abs() < 1e-6, "{longest} of {rtt}");
        }
    }
}
