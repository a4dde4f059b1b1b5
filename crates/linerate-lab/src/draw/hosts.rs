//! Draws in which a host limits.

use super::dice::Dice;
use super::family::{fast_path, length, mbit, path};
use super::sketch::{AMPLE, Sketch};

/// What limits gives at most this part of what the path carries.
const WELL_BELOW: f64 = 0.5;
/// More of the bottleneck than this is not carried where a host limits.
const IDLE: [f64; 2] = [0.0, 0.7];
/// Odds of a path that only bulk mode carries.
const FAST: f64 = 0.1;
/// A window holds so many segments at least, half of the buffer.
const LEAST_SEGMENTS: f64 = 8.0;
/// The smallest rate that is drawn as a limit, bit/s.
const LEAST_RATE: f64 = 1e6;

fn any_path(dice: &mut Dice) -> Sketch {
    if dice.happens(FAST) {
        fast_path(dice)
    } else {
        path(dice)
    }
}

/// A buffer that holds the rate below half of what the path carries, whichever part of it the kernel offers, and the
/// most that it gives, bit/s.
fn buffer(dice: &mut Dice, sketch: &mut Sketch) -> Option<(u64, f64)> {
    let bytes = dice.spread(32_768.0, 16_777_216.0).round();
    let most = bytes * 8.0 / sketch.rtt * f64::from(sketch.streams);
    if bytes < 2.0 * LEAST_SEGMENTS * f64::from(sketch.mtu)
        || most > WELL_BELOW * sketch.capacity()
        || most < LEAST_RATE
    {
        return None;
    }
    let ramp = sketch.slow_start(bytes / sketch.payload() * f64::from(sketch.streams));
    sketch.seconds = length(dice, ramp, 0.1)?;
    sketch.utilisation = Some(IDLE);
    Some((linerate_model::units::whole(bytes), most))
}

pub(super) fn receive_window(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = any_path(dice);
    let (bytes, most) = buffer(dice, &mut sketch)?;
    sketch.rmem = bytes;
    sketch.top = &["receive-window"];
    sketch.truth.push(format!(
        "At most {} from windows of {bytes} bytes; the path carries {}.",
        mbit(most),
        mbit(sketch.capacity())
    ));
    Some(sketch)
}

pub(super) fn send_buffer(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = any_path(dice);
    let (bytes, most) = buffer(dice, &mut sketch)?;
    sketch.wmem = bytes;
    sketch.top = &["send-buffer"];
    sketch.truth.push(format!(
        "At most {} from send buffers of {bytes} bytes; the path carries {}.",
        mbit(most),
        mbit(sketch.capacity())
    ));
    Some(sketch)
}

/// Both buffers are small, one of them four times as small as the other.
pub(super) fn two_buffers(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    let (bytes, most) = buffer(dice, &mut sketch)?;
    let other = linerate_model::units::whole(bytes as f64 * dice.between(4.0, 8.0));
    let window = dice.happens(0.5);
    (sketch.rmem, sketch.wmem) = if window {
        (bytes, other)
    } else {
        (other, bytes)
    };
    sketch.top = if window {
        &["receive-window"]
    } else {
        &["send-buffer"]
    };
    sketch.truth.push(format!(
        "At most {} from buffers of {bytes} bytes at one end and {other} at the other; the path carries {}.",
        mbit(most),
        mbit(sketch.capacity())
    ));
    Some(sketch)
}

pub(super) fn slow_reader(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    // The server is the one that can read slowly, and it shares the rate among its streams.
    (sketch.reversed, sketch.streams) = (false, 1);
    let read = dice.spread(LEAST_RATE, 5e8);
    sketch.rmem = linerate_model::units::whole(dice.spread(262_144.0, 6_291_456.0));
    let over = sketch.capacity() - read;
    // Until the buffer is full, the path limits.
    let fills = sketch.rmem as f64 * 8.0 / over;
    let window = sketch.rmem as f64 / 2.0 * 8.0 / sketch.rtt;
    let clear = read <= WELL_BELOW * sketch.capacity() && window >= 2.0 * read;
    if !clear {
        return None;
    }
    let ramp = fills + sketch.slow_start(sketch.bdp_segments());
    sketch.seconds = length(dice, ramp, 0.15)?;
    sketch
        .data_receiver
        .push(format!("read_rate = \"{:.0}k\"", read / 1e3));
    sketch.top = &["receiver-application"];
    sketch.utilisation = Some(IDLE);
    sketch.truth.push(format!(
        "It reads {}; the path carries {}, and its buffer is full after {fills:.2} s.",
        mbit(read),
        mbit(sketch.capacity())
    ));
    Some(sketch)
}

pub(super) fn rate_capped(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = any_path(dice);
    let asked = sketch.capacity() * dice.between(0.05, 0.6);
    if asked < 2.0 * LEAST_RATE {
        return None;
    }
    let each = asked / f64::from(sketch.streams);
    let ramp = sketch.slow_start(asked * sketch.rtt / 8.0 / sketch.payload());
    sketch.seconds = length(dice, ramp, 0.1)?;
    sketch.args = format!("-b {:.0}k", each / 1e3);
    sketch.top = &["rate-capped"];
    sketch.utilisation = Some([0.0, 0.75]);
    sketch.truth.push(format!(
        "{} is asked for; the path carries {}.",
        mbit(asked),
        mbit(sketch.capacity())
    ));
    Some(sketch)
}

pub(super) fn udp_capped(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    sketch.streams = 1;
    let asked = sketch.capacity() * dice.between(0.05, 0.6);
    if asked < LEAST_RATE {
        return None;
    }
    sketch.seconds = length(dice, sketch.rtt, 0.05)?;
    sketch.args = format!("-u -b {:.0}k", asked / 1e3);
    sketch.top = &["rate-capped"];
    sketch.utilisation = Some([0.0, 0.75]);
    sketch.truth.push(format!(
        "Datagrams of {} are asked for; the path carries {}.",
        mbit(asked),
        mbit(sketch.capacity())
    ));
    Some(sketch)
}

/// A path without a rate, so that a small share of a CPU limits.
fn by_cpu(dice: &mut Dice) -> Option<(Sketch, String)> {
    let mut sketch = path(dice);
    sketch.reversed = false;
    sketch.rate = 0.0;
    sketch.rtt = (dice.spread(0.001, 0.003) * 1e6).round() / 1e6;
    sketch.streams = 1;
    sketch.congestion = "cubic";
    (sketch.wmem, sketch.rmem) = (AMPLE / 4, AMPLE / 4);
    sketch.seconds = length(dice, 0.1, 0.1)?;
    let share = format!("cpu = {:.3}", dice.spread(0.03, 0.1));
    sketch
        .truth
        .push("The path has no rate; a program has a small share of a CPU.".to_owned());
    Some((sketch, share))
}

pub(super) fn sender_cpu(dice: &mut Dice) -> Option<Sketch> {
    let (mut sketch, share) = by_cpu(dice)?;
    sketch.data_sender.push(share);
    sketch.top = &["sender-cpu", "virtualisation-limit"];
    Some(sketch)
}

pub(super) fn receiver_cpu(dice: &mut Dice) -> Option<Sketch> {
    let (mut sketch, share) = by_cpu(dice)?;
    sketch.data_receiver.push(share);
    sketch.top = &["receiver-cpu", "virtualisation-limit"];
    Some(sketch)
}

/// Slow start takes half of the run or more.
pub(super) fn slow_start(dice: &mut Dice) -> Option<Sketch> {
    let mut sketch = path(dice);
    sketch.congestion = "cubic";
    super::family::deepen(&mut sketch, 1.0);
    let ramp = sketch.slow_start(sketch.bdp_segments());
    sketch.seconds = dice.of_list(&[1.0, 2.0, 3.0], 1.0);
    let share = ramp / sketch.seconds;
    if !(0.5..=0.8).contains(&share) {
        return None;
    }
    sketch.top = &["slow-start", "early-slow-start-exit"];
    sketch.truth.push(format!(
        "Slow start to {:.0} segments takes {ramp:.2} s of {:.0}.",
        sketch.bdp_segments(),
        sketch.seconds
    ));
    Some(sketch)
}
