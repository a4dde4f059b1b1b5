//! Draws of paths that are full, or change.

use super::dice::Dice;
use super::family::{deepen, fast_path, length, mbit, path};
use super::sketch::{AMPLE, Change, Sketch};

/// What a full path carries of its rate at least beside what slow start leaves; at most there is no bound, for what the
/// sender's buffer still holds at the end of the test passes too.
const FULL: f64 = 0.9;
const UNBOUNDED: f64 = 9.0;
/// Queues up to so many seconds, or so many round trips, are no bufferbloat whatever fills them.
const SHORT: f64 = 0.08;
const SHORT_ROUNDS: f64 = 1.5;
/// Each stream's share of path and queue is at least so many segments.
const LEAST_SHARE: f64 = 10.0;
/// Odds of a healthy path that only bulk mode carries, and of one whose delay varies.
const FAST: f64 = 0.1;
const VARIES: f64 = 0.2;

fn full(sketch: &Sketch) -> [f64; 2] {
    let ramp = sketch.slow_start((sketch.bdp() + sketch.queue) / sketch.wire());
    [FULL - ramp / sketch.seconds, UNBOUNDED]
}

pub(super) fn healthy(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = if dice.happens(FAST) {
        fast_path(dice)
    } else {
        path(dice)
    };
    if dice.happens(VARIES) {
        sketch.jitter = sketch.rtt * dice.between(0.01, 0.05);
    }
    let deep = sketch.congestion == "cubic" || sketch.queue >= sketch.bdp();
    let short = sketch.queue_time() <= SHORT || sketch.queue_time() <= SHORT_ROUNDS * sketch.rtt;
    let holds = (sketch.bdp() + sketch.queue) / sketch.wire();
    let shared = holds >= LEAST_SHARE * f64::from(sketch.streams);
    let buffered = sketch.bdp() + sketch.queue <= AMPLE as f64 / 8.0;
    if !(deep && short && shared && buffered) {
        return None;
    }
    sketch.seconds = length(dice, sketch.slow_start(holds), 0.1)?;
    sketch.top = &["path-full"];
    sketch.utilisation = Some(full(&sketch));
    sketch.truth.push(format!(
        "{} when full; a full queue takes {:.1} ms beside a round trip of {:.1} ms.",
        mbit(sketch.capacity()),
        1e3 * sketch.queue_time(),
        1e3 * sketch.rtt
    ));
    Some(sketch)
}

pub(super) fn bufferbloat(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    if sketch.congestion == "bbr" {
        return None;
    }
    let time = dice.spread(0.3, 1.5);
    sketch.queue = (time * sketch.rate / 8.0).round();
    let packet = sketch.wire() * 8.0 / sketch.rate;
    let base = sketch.rtt + packet;
    if time < 6.0 * base || sketch.queue > AMPLE as f64 / 8.0 {
        return None;
    }
    // How long congestion avoidance takes from a full path to four round trips, which is 150 ms at least.
    let grown =
        (3.0 * base).max(0.15) * sketch.rate / 8.0 / sketch.wire() / f64::from(sketch.streams);
    let ramp = sketch.slow_start(sketch.bdp_segments()) + (grown / 0.4).cbrt().min(grown * base);
    sketch.seconds = length(dice, ramp, 0.35)?;
    sketch.top = &["bufferbloat", "path-full"];
    sketch.with = &["bufferbloat"];
    sketch.utilisation = Some(full(&sketch));
    sketch.truth.push(format!(
        "A full queue takes {:.0} ms beside a round trip of {:.1} ms.",
        1e3 * time,
        1e3 * sketch.rtt
    ));
    Some(sketch)
}

/// Marks from a tenth to a third of what fills the path.
pub(super) fn ecn(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    (sketch.congestion, sketch.streams) = ("cubic", 1);
    let threshold = sketch.bdp() * dice.between(0.05, 0.3);
    if sketch.bdp_segments() < 60.0 || threshold < 4.0 * sketch.wire() {
        return None;
    }
    deepen(&mut sketch, 2.0);
    sketch.seconds = length(dice, sketch.slow_start(sketch.bdp_segments()), 0.1)?;
    sketch
        .data_way
        .push(format!("ecn_threshold = {threshold:.0}"));
    let on = "sysctl = { \"net.ipv4.tcp_ecn\" = \"1\" }";
    sketch.data_sender.push(on.to_owned());
    sketch.data_receiver.push(on.to_owned());
    sketch.top = &["ecn", "path-full"];
    sketch.with = &["ecn"];
    sketch.truth.push(format!(
        "Packets that find {threshold:.0} bytes waiting are marked; {:.0} fill the path.",
        sketch.bdp()
    ));
    Some(sketch)
}

/// Another connections' traffic, all the time or for four tenths of it.
pub(super) fn congested(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    (sketch.congestion, sketch.streams) = ("cubic", 1);
    deepen(&mut sketch, 1.0);
    let clear = (5e6..=5e8).contains(&sketch.rate)
        && (0.005..=0.08).contains(&sketch.rtt)
        && sketch.bdp_segments() >= 30.0
        && sketch.regrowth() <= 3.0;
    if !clear {
        return None;
    }
    sketch.top = &["congested"];
    sketch.seconds = 10.0;
    if dice.happens(0.5) {
        let streams = dice.of_list(&[3, 4, 6, 8], 4);
        sketch
            .cross
            .push(format!("kind = \"tcp\"\nstreams = {streams}"));
        sketch
            .truth
            .push(format!("{streams} other connections take what they get."));
    } else {
        let rate = sketch.rate * dice.between(0.5, 0.7);
        sketch.cross.push(format!(
            "kind = \"udp\"\nrate = \"{:.0}k\"\nfrom = \"3s\"\nto = \"7s\"",
            rate / 1e3
        ));
        sketch.truth.push(format!(
            "{} of other datagrams from 3 s to 7 s, of {}.",
            mbit(rate),
            mbit(sketch.rate)
        ));
    }
    Some(sketch)
}

/// A longer round trip from the middle on, longer than the queue ever made it.
pub(super) fn path_change(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    if sketch.jitter > 0.0 || sketch.congestion == "bbr" {
        return None;
    }
    let later = 1.6 * (sketch.rtt + sketch.queue_time()) + dice.spread(0.01, 0.1);
    sketch.seconds = dice.of_list(&[8.0, 12.0, 15.0], 12.0);
    let soon = sketch.slow_start(sketch.bdp_segments()) <= 0.1 * sketch.seconds;
    // Ten slices of four round trips on each side of the step: fewer show no law.
    if later > 0.01 * sketch.seconds || !soon {
        return None;
    }
    sketch.changes.push(Change {
        at: sketch.seconds * dice.between(0.4, 0.6),
        both: true,
        setting: format!("rtt = \"{:.0}us\"", later * 1e6),
    });
    sketch.top = &["path-change"];
    sketch.truth.push(format!(
        "The round trip becomes {:.1} ms; before, it was at most {:.1} ms with a full queue.",
        1e3 * later,
        1e3 * (sketch.rtt + sketch.queue_time())
    ));
    Some(sketch)
}

/// Everything is lost for one and a half to three seconds.
pub(super) fn stall(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    let ramp = sketch.slow_start(sketch.bdp_segments());
    sketch.seconds = 12.0;
    let short = sketch.queue_time() <= 0.3 && sketch.rtt <= 0.15;
    if ramp > 0.1 * sketch.seconds || !short {
        return None;
    }
    let (at, long) = (dice.between(2.0, 5.0), dice.between(1.5, 3.0));
    for (at, loss) in [(at, "1"), (at + long, "0")] {
        sketch.changes.push(Change {
            at,
            both: false,
            setting: format!("loss = {loss}"),
        });
    }
    sketch.top = &["stall"];
    sketch
        .truth
        .push(format!("Nothing passes from {at:.2} s for {long:.2} s."));
    Some(sketch)
}

/// Changes of the rate, which the queue bridges: what fills the slow path with its queue fills the fast one without.
fn two_rates(dice: &mut Dice) -> Option<(Sketch, f64)> {
    let mut sketch = path(dice);
    (sketch.congestion, sketch.streams) = ("cubic", 1);
    sketch.rtt = (dice.spread(0.002, 0.03) * 1e6).round() / 1e6;
    let slow = (sketch.rate / dice.between(2.0, 5.0) / 1e3).round() * 1e3;
    deepen(&mut sketch, 1.0);
    let waits = sketch.queue * 8.0 / slow;
    (slow >= 2e6 && waits <= 0.1 && sketch.bdp_segments() >= 10.0).then_some((sketch, slow))
}

fn rate_at(at: f64, rate: f64) -> Change {
    Change {
        at,
        both: false,
        setting: format!("rate = \"{:.0}k\"", rate / 1e3),
    }
}

pub(super) fn bimodal(dice: &mut Dice) -> Option<Sketch> {
    let (mut sketch, slow) = two_rates(dice)?;
    sketch.seconds = 10.0;
    let fast = sketch.rate;
    for second in 1..10 {
        let rate = if second % 2 == 1 { slow } else { fast };
        sketch.changes.push(rate_at(f64::from(second), rate));
    }
    sketch.top = &["bimodal"];
    sketch.truth.push(format!(
        "{} and {} in turn, a second each.",
        mbit(fast),
        mbit(slow)
    ));
    Some(sketch)
}

pub(super) fn shaper(dice: &mut Dice) -> Option<Sketch> {
    let (mut sketch, slow) = two_rates(dice)?;
    sketch.seconds = 10.0;
    let at = dice.between(2.0, 4.0);
    sketch.changes.push(rate_at(at, slow));
    sketch.top = &["shaper"];
    sketch.truth.push(format!(
        "{} until {at:.2} s, {} from then on behind a queue.",
        mbit(sketch.rate),
        mbit(slow)
    ));
    Some(sketch)
}

/// Both directions at once, one of them with a fifth to a twentieth of the other's rate.
pub(super) fn asymmetric(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    (sketch.reversed, sketch.streams, sketch.congestion) = (false, 1, "cubic");
    let fast = sketch.rate;
    let slow = (fast / dice.between(5.0, 12.0) / 1e3).round() * 1e3;
    // The acknowledgements of the fast direction fit into the slow one.
    sketch.rate = slow;
    deepen(&mut sketch, 1.0);
    let ramp = sketch.slow_start(sketch.bdp_segments() * fast / slow);
    if slow < 2e6 || sketch.queue_time() > 0.06 {
        return None;
    }
    sketch.seconds = length(dice, ramp, 0.1)?;
    sketch
        .data_way
        .push(format!("rate = \"{:.0}k\"", fast / 1e3));
    sketch.data_way.push(format!(
        "queue = {:.0}",
        (fast * sketch.rtt / 8.0).max(30.0 * sketch.wire())
    ));
    sketch.args.push_str("--bidir");
    sketch.top = &["asymmetric", "path-full"];
    sketch.with = &["asymmetric"];
    sketch
        .truth
        .push(format!("{} one way, {} the other.", mbit(fast), mbit(slow)));
    Some(sketch)
}
