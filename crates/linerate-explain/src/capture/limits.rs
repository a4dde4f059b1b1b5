//! Windows, segment sizes, marks, and packets that the capture missed.

use linerate_model::finding::{Finding, Severity};

use super::{Direction, rounded};
use crate::words;

/// A window limits where it left no room in this share of the busy time …
const HELD: f64 = 0.5;
/// … and is worth a note from this share on that it was closed for.
const CLOSED: f64 = 0.05;
/// Segments below this are small: IPv6 promises 1280 bytes to everybody, which leave 1220.
const SMALL: u32 = 1000;
/// The largest window without scaling, bytes (RFC 9293).
const UNSCALED: f64 = 65_535.0;

/// Bytes were acknowledged that the capture never saw.
pub(super) fn missed(direction: &Direction<'_>) -> Option<Finding> {
    let (missed, passed) = (direction.sent.missed_bytes, direction.sent.passed_bytes);
    if missed == 0 {
        return None;
    }
    let sentence = format!(
        "The capture is incomplete: {} acknowledged {} of {} that it does not contain, so the capture missed \
             packets, or they took another path; what it shows about losses cannot be trusted",
        direction.receiver(),
        words::size(missed as f64),
        words::size((missed + passed) as f64),
    );
    direction
        .finding("capture-gaps", Severity::Fault, sentence)
        .figure("acknowledged and never seen, bytes", missed, "capture")
        .figure("seen, bytes", passed, "capture")
        .done()
}

/// The receive window left no room for most of the time.
pub(super) fn receive_window(direction: &Direction<'_>) -> Option<Finding> {
    let window = direction.window?;
    if window.held < HELD || closed_share(direction) >= CLOSED {
        return None;
    }
    let scale = direction
        .conversation
        .ends
        .each_ref()
        .map(|end| end.syn.is_some_and(|syn| syn.window_shift.is_some()));
    let unscaled = window.usual_bytes <= UNSCALED && scale.contains(&false);
    let why = if unscaled {
        let who = if scale[1 - direction.end] {
            direction.sender()
        } else {
            direction.receiver()
        };
        format!("; {who} offered no window scaling, so no window can be larger than 65,535 bytes")
    } else {
        String::new()
    };
    let carries = direction
        .round_trip_us()
        .filter(|us| *us > 0.0)
        .map(|us| (us, window.usual_bytes * 8e6 / us));
    let most = carries.map_or_else(String::new, |(us, bps)| {
        format!(
            ", which carries {} over an RTT of {}",
            words::rate(bps),
            words::micros(us)
        )
    });
    direction
        .finding(
            "receive-window",
            Severity::Limit,
            format!(
                "The receive window of {} was full {} of the time: {}{most}{why}",
                direction.receiver(),
                words::percent(window.held),
                words::size(window.usual_bytes),
            ),
        )
        .share(window.held)
        .figure(
            "share of the busy time without room in the window",
            window.held,
            "capture",
        )
        .figure(
            "receive window median, bytes",
            window.usual_bytes,
            "capture",
        )
        .figure("minimum rtt seen, µs", carries.map(|(us, _)| us), "capture")
        .done()
}

fn closed_share(direction: &Direction<'_>) -> f64 {
    let closed = direction.window.map_or(0, |window| window.closed_ns);
    let conversation = direction.conversation;
    let all = conversation.ends_ns.saturating_sub(conversation.begins_ns);
    closed as f64 / all.max(1) as f64
}

/// The window was closed: the receiving program did not read.
pub(super) fn closed(direction: &Direction<'_>) -> Option<Finding> {
    let window = direction.window.filter(|window| window.closings > 0)?;
    let share = closed_share(direction);
    let limits = share >= CLOSED;
    direction
        .finding(
            "receiver-application",
            if limits {
                Severity::Limit
            } else {
                Severity::Note
            },
            format!(
                "{} closed its window {} for {} of the time: its program did not read in time",
                direction.receiver(),
                match window.closings {
                    1 => "once".to_owned(),
                    more => format!("{} times", rounded(f64::from(more))),
                },
                words::percent(share)
            ),
        )
        .share(share)
        .figure("windows of zero", window.closings, "capture")
        .figure("share of the time closed", share, "capture")
        .done()
}

/// Segments are small because the other end's SYN, or a device between, asked for it.
pub(super) fn small_mss(direction: &Direction<'_>) -> Option<Finding> {
    let bytes = direction
        .conversation
        .segment_bytes(direction.end)
        .filter(|bytes| *bytes < SMALL)?;
    let sentence = format!(
        "Segments have at most {bytes} bytes: the SYN of {} requests it, or a device on the path changed it",
        direction.receiver()
    );
    direction
        .finding("small-mss", Severity::Note, sentence)
        .figure("payload of a segment, bytes", bytes, "capture")
        .done()
}

/// Routers mark packets of this sender.
pub(super) fn marks(direction: &Direction<'_>) -> Option<Finding> {
    let end = &direction.conversation.ends[direction.end];
    if end.marked == 0 {
        return None;
    }
    direction
        .finding(
            "ecn",
            Severity::Note,
            format!(
                "{} of {} packets of {} carried a congestion mark (CE)",
                words::count(end.marked),
                words::count(end.packets),
                direction.sender()
            ),
        )
        .figure("packets marked", end.marked, "capture")
        .done()
}
