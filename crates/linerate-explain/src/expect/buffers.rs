//! What the kernel makes of a buffer's size: the window that it offers, the bytes in flight that it holds.
//!
//! A receive buffer is counted with overhead. Until Linux 6.5 the window is the buffer less a fixed share
//! (`tcp_adv_win_scale`, half by default: `tcp_win_from_space`); from 6.6 on it is a share that is measured from
//! what payload and memory of the segments that arrive relate like (`scaling_ratio`), half until something was
//! measured, and nearly all where a driver merges segments. A send buffer counts payload nearly alone, but its
//! application is only woken when a third is free (`sk_stream_is_writeable`).

use linerate_model::expectation::{HostSettings, Need, Question};
use linerate_model::units::Bytes;

use super::Limits;

/// Share of a receive buffer that is offered as window at least, and at most.
pub(super) const LEAST_OFFERED: f64 = 0.5;
const MOST_OFFERED: f64 = 1.0;
/// Share of a send buffer that is in flight at least, and at most.
pub(super) const LEAST_FILLED: f64 = 2.0 / 3.0;
const MOST_FILLED: f64 = 1.0;
/// The largest window without scaling (RFC 9293).
const UNSCALED: f64 = 65_535.0;
/// The largest value that the kernel takes.
const MOST_BUFFER: f64 = 2_147_483_647.0;
const MIB: f64 = 1_048_576.0;

/// What the settings allow one stream; `None` where they are not known.
pub(super) fn configured(asked: &Question, settings: &HostSettings) -> Option<Limits> {
    let autotuned = settings.moderate_rcvbuf.unwrap_or(true);
    let (receive, send) = if let Some(window) = asked.window_bytes {
        let granted = |most: Option<u64>| Some(2.0 * window.0.min(most?) as f64);
        (granted(settings.rmem_max)?, granted(settings.wmem_max)?)
    } else {
        let [_, initial, most] = settings.tcp_rmem?;
        let receive = if autotuned { most } else { initial };
        (receive as f64, settings.tcp_wmem?[2] as f64)
    };
    Some(limits(receive, send, settings))
}

/// What the buffers that are needed allow one stream; buffers that are asked for are granted.
pub(super) fn tuned(asked: &Question, settings: &HostSettings, need: &Need) -> Limits {
    let twice = |window: Bytes| 2.0 * window.0 as f64;
    let (receive, send) = asked.window_bytes.map_or(
        (
            need.advised_rmem_bytes as f64,
            need.advised_wmem_bytes as f64,
        ),
        |window| (twice(window), twice(window)),
    );
    limits(receive, send, settings)
}

fn limits(receive: f64, send: f64, settings: &HostSettings) -> Limits {
    let [least, most] = offered(settings.adv_win_scale);
    let scaled = settings.window_scaling.unwrap_or(true);
    let bound = |bytes: f64| if scaled { bytes } else { bytes.min(UNSCALED) };
    Limits {
        window: [bound(receive * least), bound(receive * most)],
        send: [send * LEAST_FILLED, send * MOST_FILLED],
    }
}

/// Shares of a receive buffer that are offered, least and most.
fn offered(adv_win_scale: Option<i32>) -> [f64; 2] {
    match adv_win_scale {
        None => [LEAST_OFFERED, MOST_OFFERED],
        Some(scale) if scale > 0 => [1.0 - 2_f64.powi(-scale); 2],
        Some(scale) => [2_f64.powi(scale); 2],
    }
}

/// Twice what is needed at least, so that a queue as deep as the path does not bound it, in whole MiB.
pub(super) fn advised(least_bytes: f64) -> u64 {
    let mib = (2.0 * least_bytes / MIB).ceil().max(1.0);
    crate::words::whole((mib * MIB).min(MOST_BUFFER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_is_offered_follows_the_kernel() {
        // tcp_win_from_space(): space - (space >> scale), or space >> -scale.
        for (scale, least, most) in [
            (Some(1), 0.5, 0.5),
            (Some(2), 0.75, 0.75),
            (Some(0), 1.0, 1.0),
            (Some(-2), 0.25, 0.25),
            (None, 0.5, 1.0),
        ] {
            let found = offered(scale);
            assert!(
                (found[0] - least).abs() < 1e-12 && (found[1] - most).abs() < 1e-12,
                "{scale:?}"
            );
        }
    }

    #[test]
    fn what_is_advised_is_whole_and_the_kernel_takes_it() {
        assert_eq!(advised(1.0), 1 << 20);
        assert_eq!(advised(600_000.0), 2 << 20);
        assert_eq!(advised(1e12), 2_147_483_647);
    }
}
