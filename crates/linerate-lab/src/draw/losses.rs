//! Draws in which segments are lost, late or too large.

use super::dice::Dice;
use super::family::{deepen, length, mbit, path};
use super::sketch::Sketch;

/// Losses give at most this part of what the path carries.
const WELL_BELOW: f64 = 0.4;
/// One of two causes binds where the other allows so many times as much.
const APART: f64 = 3.0;
/// So many losses are expected at least.
const LEAST_LOSSES: f64 = 12.0;
/// A window under loss is at least so many segments: below, timeouts decide.
const LEAST_WINDOW: f64 = 8.0;
/// More of the bottleneck than this is not carried where losses limit.
const IDLE: [f64; 2] = [0.0, 0.75];

/// How long slow start and the way down from it take, seconds: it ends with the first loss, or where path and queue are
/// full, and each loss takes away 0.3 of the window.
fn settling(sketch: &Sketch, share: f64, window: f64) -> f64 {
    let full = (sketch.bdp() + sketch.queue) / sketch.wire() / f64::from(sketch.streams);
    let mut now = (0.5 / share).min(full);
    let mut took = sketch.slow_start(now * f64::from(sketch.streams));
    // Ends: it falls by a third each turn.
    while now > window.max(1.0) {
        took += sketch.rtt * (1.0 / (share * now)).max(1.0);
        now *= 0.7;
    }
    took
}

/// Loses `share` of the segments, or as many bursts; the rate that the congestion control gets, bit/s.
fn lossy(dice: &mut Dice, sketch: &mut Sketch, share: f64) -> Option<f64> {
    if sketch.congestion == "bbr" {
        return None;
    }
    let model = sketch.under_loss(share);
    let window = model * sketch.rtt / 8.0 / sketch.payload() / f64::from(sketch.streams);
    if model > WELL_BELOW * sketch.capacity() || window < LEAST_WINDOW {
        return None;
    }
    sketch.seconds = length(dice, settling(sketch, share, window), 0.2)?;
    (share * sketch.segments_at(model) >= LEAST_LOSSES).then_some(model)
}

fn told(sketch: &mut Sketch, share: f64, model: f64) {
    sketch.utilisation = Some(IDLE);
    sketch.truth.push(format!(
        "{} at one loss in {:.0} segments; the path carries {}.",
        mbit(model),
        1.0 / share,
        mbit(sketch.capacity())
    ));
}

pub(super) fn random(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    let share = dice.spread(1e-5, 0.02);
    let model = lossy(dice, &mut sketch, share)?;
    sketch.data_way.push(format!("loss = {share:.6}"));
    sketch.top = &["random-loss"];
    told(&mut sketch, share, model);
    Some(sketch)
}

pub(super) fn bursts(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    let share = dice.spread(1e-5, 0.005);
    let ends = dice.between(0.2, 0.6);
    let model = lossy(dice, &mut sketch, share)?;
    // A burst is one loss to the congestion control where it is much shorter than the window.
    let window = model * sketch.rtt / 8.0 / sketch.payload() / f64::from(sketch.streams);
    if window < 8.0 / ends {
        return None;
    }
    sketch.data_way.push(format!(
        "loss = {{ model = \"gilbert\", p = {share:.6}, r = {ends:.3} }}"
    ));
    // One run does not tell bursts from a shallow queue.
    sketch.top = &["random-loss", "network-loss"];
    told(&mut sketch, share, model);
    sketch
        .truth
        .push(format!("Bursts of {:.1} segments.", 1.0 / ends));
    Some(sketch)
}

pub(super) fn small_segments(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    sketch.mss = Some(dice.of_list(&[536, 600, 700, 800], 536));
    let share = dice.spread(1e-4, 0.02);
    let model = lossy(dice, &mut sketch, share)?;
    sketch.data_way.push(format!("loss = {share:.6}"));
    sketch.top = &["small-mss", "random-loss"];
    sketch.with = &["small-mss"];
    told(&mut sketch, share, model);
    Some(sketch)
}

/// A small receive window and losses, one of which alone gives a third of what the other does.
pub(super) fn window_and_loss(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    if sketch.congestion == "bbr" {
        return None;
    }
    let share = dice.spread(1e-5, 0.01);
    let bytes = dice.spread(65_536.0, 16_777_216.0).round();
    let per_round = 8.0 / sketch.rtt * f64::from(sketch.streams);
    // The kernel offers half to nearly all of a buffer.
    let [least, most] = [bytes / 2.0 * per_round, bytes * per_round];
    let model = sketch.under_loss(share);
    let capacity = sketch.capacity();
    sketch.rmem = linerate_model::units::whole(bytes);
    sketch.data_way.push(format!("loss = {share:.6}"));
    sketch.utilisation = Some(IDLE);
    let window = model * sketch.rtt / 8.0 / sketch.payload() / f64::from(sketch.streams);
    let segments = bytes / f64::from(sketch.mtu);
    if most * APART <= model && most <= WELL_BELOW * capacity && segments >= 2.0 * LEAST_WINDOW {
        let ramp = sketch.slow_start(segments * f64::from(sketch.streams));
        sketch.seconds = length(dice, ramp, 0.1)?;
        sketch.top = &["receive-window"];
    } else if model * APART <= least && model <= WELL_BELOW * capacity && window >= LEAST_WINDOW {
        sketch.seconds = length(dice, settling(&sketch, share, window), 0.2)?;
        if share * sketch.segments_at(model) < LEAST_LOSSES {
            return None;
        }
        sketch.top = &["random-loss"];
    } else {
        return None;
    }
    sketch.truth.push(format!(
        "{} to {} from windows of {bytes:.0} bytes, {} at one loss in {:.0} segments; the path carries {}.",
        mbit(least),
        mbit(most),
        mbit(model),
        1.0 / share,
        mbit(capacity)
    ));
    Some(sketch)
}

pub(super) fn policer(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    sketch.rtt = (dice.spread(0.001, 0.1) * 1e6).round() / 1e6;
    let tokens = (dice.spread(5e6, 5e8) / 1e3).round() * 1e3;
    sketch.rate = (tokens * dice.spread(1.6, 8.0) / 1e3).round() * 1e3;
    let burst = dice.spread(10e3, 5e6).round();
    if sketch.rate > 1e9 || burst < 6.0 * sketch.wire() {
        return None;
    }
    deepen(&mut sketch, 2.0);
    // The bucket's first credit is a quarter of what passes at most, and slow start reaches the rate soon.
    let ramp = sketch.slow_start(tokens * sketch.rtt / 8.0 / sketch.wire());
    let credit = burst * 8.0 / tokens;
    sketch.seconds = length(dice, (4.0 * credit).max(10.0 * ramp), 1.0)?;
    sketch.data_way.push(format!(
        "policer = {{ rate = \"{:.0}k\", burst = {burst:.0} }}",
        tokens / 1e3
    ));
    sketch.top = &["policer"];
    sketch.utilisation = Some([0.0, 0.85]);
    sketch.truth.push(format!(
        "Tokens for {} of goodput and a bucket of {burst:.0} bytes; behind it the path carries {}.",
        mbit(sketch.goodput_of(tokens)),
        mbit(sketch.capacity())
    ));
    Some(sketch)
}

/// A queue of 5 to 100 packets, a tenth of what fills the path at most.
pub(super) fn shallow_queue(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    let packets = dice.spread(5.0, 100.0).round();
    sketch.queue = (packets * sketch.wire()).round();
    if sketch.congestion == "bbr" || sketch.queue > 0.1 * sketch.bdp() {
        return None;
    }
    let ramp = sketch.slow_start(sketch.bdp_segments());
    sketch.seconds = length(dice, ramp, 0.1)?;
    sketch.top = &["network-loss", "path-full", "congestion-control"];
    sketch.truth.push(format!(
        "A queue of {packets:.0} packets, where {:.0} fill the path.",
        sketch.bdp_segments()
    ));
    Some(sketch)
}

/// Reno needs longer to recover from one loss than the test takes.
pub(super) fn reno(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    (sketch.congestion, sketch.streams) = ("reno", 1);
    deepen(&mut sketch, 0.2);
    let ramp = sketch.slow_start(sketch.bdp_segments());
    sketch.seconds = length(dice, ramp, 0.2)?;
    if sketch.regrowth() < sketch.seconds {
        return None;
    }
    sketch.top = &["congestion-control"];
    sketch.utilisation = Some([0.0, 0.8]);
    sketch.truth.push(format!(
        "From half of {:.0} segments, one a round trip, Reno needs {:.0} s.",
        sketch.bdp_segments(),
        sketch.regrowth()
    ));
    Some(sketch)
}

pub(super) fn reordering(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    let share = dice.spread(0.02, 0.2);
    let late = sketch.rtt * dice.between(0.3, 1.0);
    if sketch.rtt < 0.01 || sketch.congestion == "bbr" || sketch.bdp_segments() < 40.0 {
        return None;
    }
    let ramp = sketch.slow_start(sketch.bdp_segments());
    sketch.seconds = length(dice, ramp, 0.1)?;
    sketch.data_way.push(format!(
        "reorder = {{ fraction = {share:.4}, delay = \"{:.0}us\" }}",
        late * 1e6
    ));
    sketch.top = &["reordering"];
    sketch.utilisation = Some([0.0, 0.7]);
    sketch.truth.push(format!(
        "One packet in {:.0} is overtaken by {:.1} ms.",
        1.0 / share,
        late * 1e3
    ));
    Some(sketch)
}

pub(super) fn black_hole(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    let least = if sketch.ipv6 { 1280.0 } else { 600.0 };
    let most = f64::from(sketch.mtu) - 20.0;
    if least + 60.0 > most {
        return None;
    }
    let bytes = dice.between(least, most).round();
    sketch.seconds = dice.of_list(&[5.0, 6.0, 8.0], 6.0);
    sketch.data_way.push(format!(
        "max_packet = {{ bytes = {bytes:.0}, icmp = false }}"
    ));
    sketch
        .data_sender
        .push("sysctl = { \"net.ipv4.tcp_mtu_probing\" = \"0\" }".to_owned());
    sketch.top = &["mtu-black-hole"];
    sketch.truth.push(format!(
        "Packets of more than {bytes:.0} bytes vanish; the sender's have {}.",
        sketch.mtu
    ));
    Some(sketch)
}

pub(super) fn udp(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    sketch.streams = 1;
    let asked = sketch.capacity() * dice.between(0.05, 0.6);
    let share = dice.spread(0.005, 0.1);
    sketch.seconds = length(dice, sketch.rtt, 0.05)?;
    if asked < 1e6 || share * sketch.segments_at(asked) < LEAST_LOSSES {
        return None;
    }
    sketch.data_way.push(format!("loss = {share:.6}"));
    sketch.args = format!("-u -b {:.0}k", asked / 1e3);
    sketch.top = &["udp-path-loss"];
    sketch.truth.push(format!(
        "{} of datagrams are sent, of {} that the path carries, and {:.1} % of them are lost.",
        mbit(asked),
        mbit(sketch.capacity()),
        100.0 * share
    ));
    Some(sketch)
}
