//! The families of causes, and what they are drawn from.

use super::dice::Dice;
use super::sketch::{AMPLE, Sketch};
use super::{hosts, losses, paths};

/// Lengths of tests, seconds.
const LENGTHS: [f64; 7] = [3.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0];
/// The least queue that a flow fills without stumbling over its own bursts, segments.
const LEAST_QUEUE: f64 = 20.0;

/// A cause.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) weight: f64,
    /// `None`: the truth of what was drawn is not clear.
    pub(super) draw: fn(&mut Dice) -> Option<Sketch>,
}

/// All of them; healthy paths are the most frequent.
pub(super) const FAMILIES: &[Family] = &[
    family("healthy", 30.0, paths::healthy),
    family("bufferbloat", 4.0, paths::bufferbloat),
    family("receive-window", 7.0, hosts::receive_window),
    family("send-buffer", 6.0, hosts::send_buffer),
    family("receiver-application", 4.0, hosts::slow_reader),
    family("rate-capped", 3.0, hosts::rate_capped),
    family("sender-cpu", 1.0, hosts::sender_cpu),
    family("receiver-cpu", 1.0, hosts::receiver_cpu),
    family("slow-start", 2.0, hosts::slow_start),
    family("random-loss", 8.0, losses::random),
    family("burst-loss", 3.0, losses::bursts),
    family("small-mss", 1.0, losses::small_segments),
    family("policer", 8.0, losses::policer),
    family("shallow-queue", 3.0, losses::shallow_queue),
    family("reno", 2.0, losses::reno),
    family("reordering", 3.0, losses::reordering),
    family("black-hole", 3.0, losses::black_hole),
    family("udp-loss", 2.0, losses::udp),
    family("udp-capped", 2.0, hosts::udp_capped),
    family("window-and-loss", 3.0, losses::window_and_loss),
    family("two-buffers", 2.0, hosts::two_buffers),
    family("ecn", 2.0, paths::ecn),
    family("congested", 3.0, paths::congested),
    family("path-change", 2.0, paths::path_change),
    family("stall", 2.0, paths::stall),
    family("bimodal", 1.0, paths::bimodal),
    family("shaper", 1.0, paths::shaper),
    family("asymmetric", 1.0, paths::asymmetric),
];

const fn family(name: &'static str, weight: f64, draw: fn(&mut Dice) -> Option<Sketch>) -> Family {
    Family { name, weight, draw }
}

/// A path and hosts with nothing in the way, and a queue of half to two products of rate and round trip.
pub(super) fn path(dice: &mut Dice) -> Sketch {
    let ipv6 = dice.happens(0.25);
    let reversed = dice.happens(0.25);
    let mtus = [
        (14.0, 1500),
        (2.0, 1280),
        (1.0, 1400),
        (1.0, 4000),
        (2.0, 9000),
    ];
    let mtu = dice.weighted(&mtus, 1500);
    let streams = match dice.weighted(&[(13.0, 0), (4.0, 1), (3.0, 2)], 0) {
        1 => dice.of_list(&[2, 3, 4], 2),
        2 => dice.of_list(&[5, 6, 8, 10, 12, 16], 8),
        _ => 1,
    };
    let controls = [(15.0, "cubic"), (2.5, "reno"), (2.5, "bbr")];
    let congestion = dice.weighted(&controls, "cubic");
    let rate = dice.spread(1e6, 1e9);
    let rtt = dice.spread(0.001, 0.25);
    let depth = dice.spread(0.5, 2.0);
    let mut sketch = Sketch {
        ipv6,
        reversed,
        mtu,
        mss: None,
        streams,
        congestion,
        rate: (rate / 1e3).round() * 1e3,
        rtt: (rtt * 1e6).round() / 1e6,
        queue: 0.0,
        jitter: 0.0,
        data_way: Vec::new(),
        changes: Vec::new(),
        cross: Vec::new(),
        wmem: AMPLE,
        rmem: AMPLE,
        data_sender: Vec::new(),
        data_receiver: Vec::new(),
        seconds: 0.0,
        args: String::new(),
        top: &[],
        with: &[],
        utilisation: None,
        truth: Vec::new(),
    };
    deepen(&mut sketch, depth);
    sketch
}

/// The same with one to twenty gigabits a second, which only bulk mode carries.
pub(super) fn fast_path(dice: &mut Dice) -> Sketch {
    let mut sketch = path(dice);
    let depth = dice.spread(0.5, 2.0);
    sketch.rate = (dice.spread(1e9, 20e9) / 1e3).round() * 1e3;
    sketch.rtt = (dice.spread(0.001, 0.05) * 1e6).round() / 1e6;
    deepen(&mut sketch, depth);
    sketch
}

/// Gives it a queue of so many products of rate and round trip.
pub(super) fn deepen(sketch: &mut Sketch, depth: f64) {
    let least = LEAST_QUEUE * sketch.wire();
    sketch.queue = (depth * sketch.bdp()).max(least).round();
}

/// A length of which `ramp` is at most `share`; `None` where no length is long enough.
pub(super) fn length(dice: &mut Dice, ramp: f64, share: f64) -> Option<f64> {
    let enough: Vec<f64> = LENGTHS
        .into_iter()
        .filter(|seconds| ramp <= share * seconds)
        .collect();
    let first = *enough.first()?;
    // The shortest three, so that a campaign does not take a day.
    let few = enough.get(..3).unwrap_or(&enough);
    Some(dice.of_list(few, first))
}

/// A rate in words.
pub(super) fn mbit(bps: f64) -> String {
    format!("{:.2} Mbit/s", bps / 1e6)
}
