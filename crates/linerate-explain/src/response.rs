//! What rate a congestion control reaches under loss: its response function.

/// BBR as Linux has it (version 1) does not slow down for loss alone below a share of about this (Cardwell et
/// al. 2017: 15 to 20 %). Version 3, which bears 2 %, bears the same name and is not in the mainline kernel.
const BBR_BEARS: f64 = 0.15;

/// Rate of one stream, bit/s of payload, at a loss of `share` of its segments (0 to 1); infinite where the
/// algorithm does not slow down for it.
///
/// Reno: Mathis et al. 1997, sqrt(3/2) segments a round trip over the root of the loss; CUBIC: RFC 9438 §5.1
/// with C = 0.4 and β = 0.7, and never less than Reno. Others count as CUBIC.
pub(crate) fn rate(algorithm: &str, mss_bytes: f64, rtt_s: f64, share: f64) -> f64 {
    if share <= 0.0 || (algorithm.starts_with("bbr") && share < BBR_BEARS) {
        return f64::INFINITY;
    }
    let reno = (1.5 / share).sqrt();
    let window = if algorithm == "reno" {
        reno
    } else {
        reno.max(1.054 * (rtt_s / share).powf(0.75))
    };
    window * mss_bytes * 8.0 / rtt_s
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
