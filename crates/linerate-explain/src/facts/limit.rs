//! What limited a direction: the one decision that the rules share.
//!
//! The largest share of the time budget decides. A cause other than the network is named from a fifth of
//! the time on where the bytes in flight or the size of the buffer confirm it: the network's share is only
//! what the other clocks leave over, and they stop between two segments. Then these corrections, each a
//! false alarm that the kernel's clocks alone would raise:
//!
//! - a rate that was asked for and reached is no limit of anything;
//! - behind a standing queue a window or a buffer only bounds the queue: the path is the limit;
//! - a program that leaves data unread while its thread idles is the limit, whatever windows and round trips show;
//! - a large window that the bytes in flight never fill does not limit, however its clock ticks;
//! - bytes in flight that stand at the send buffer mean the send buffer, although its clock stops
//!   whenever an acknowledgement frees space (0 to 7 % seen where nothing else limited);
//! - bytes in flight that fill or overrun the send buffer, nothing behind them and a path that runs dry in between mean
//!   the send buffer, whatever queue its bursts made: the kernel adds to a segment that it split without asking for room;
//! - on a link that is full neither a window nor a buffer is the limit;
//! - a sender with a rate asked for idles by design: its application limits only where it wrote less than
//!   that rate, and no stall explains it;
//! - on one machine the application is never the limit: each end idles while the other computes;
//! - a thread that computes or waits for a CPU all the time is the limit wherever the bytes seem to wait,
//!   unless a queue stands between two hosts.

use linerate_model::column::Column;
use linerate_model::finding::Severity;

use crate::facts::case::Case;
use crate::facts::{queue, reader};

/// A rate counts as reached from this share of what was asked on.
pub(crate) const REACHED: f64 = 0.97;
/// A thread computes all the time from this share of a core on.
pub(crate) const CPU_FULL: f64 = 0.95;
/// Windows and buffers below this are believed to limit whenever their clock says so, bytes.
const SMALL: f64 = 262_144.0;
/// A cause that is confirmed is named over a network that took longer, from this share of the time on.
const NAMED: f64 = 0.20;
/// In flight at this share of the send buffer, it is full (its size is counted with overhead).
const BUFFER_FULL: f64 = 0.5;
/// In flight below this share of the other bounds, they do not limit.
const WELL_BELOW: f64 = 0.7;

/// What limited a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The rate that was asked for.
    Asked,
    /// The sending thread computes all the time.
    SenderCpu,
    /// The receiving thread computes all the time.
    ReceiverCpu,
    /// The sending application had nothing to send.
    Application,
    /// The send buffer.
    SendBuffer,
    /// The receive window.
    ReceiveWindow,
    /// The receive window, because the receiving application did not read.
    ReceiverApplication,
    /// Congestion window, recovery, the path.
    Network,
}

impl Limit {
    /// `None` where the record does not tell.
    pub(crate) fn of(case: &Case<'_>) -> Option<Self> {
        case.rate().filter(|rate| *rate > 0.0)?;
        if reached(case) {
            return Some(Self::Asked);
        }
        if case.udp() {
            return (case.asked().is_none()).then(|| cpu(case, true).unwrap_or(Self::Network));
        }
        let waits = waits_at(case);
        let queue_between_hosts = waits == Some(Self::Network)
            && queue::standing_queue_us(case).is_some()
            && !case.one_host();
        if queue_between_hosts {
            waits
        } else {
            // Waiting for a CPU explains what neither a window nor a buffer does, and why nobody reads.
            let idle = matches!(
                waits,
                None | Some(Self::Network | Self::Application | Self::ReceiverApplication)
            );
            cpu(case, idle).or(waits)
        }
    }
}

/// Whether the rate that was asked for was reached.
fn reached(case: &Case<'_>) -> bool {
    let (Some(asked), Some(rate)) = (case.asked(), case.rate()) else {
        return false;
    };
    let rate = if case.udp() {
        // The figure that `udp-sender-short` judges by: never both.
        case.sent_bps().unwrap_or(rate)
    } else {
        rate.max(case.direction.whole_run_bps().unwrap_or(0.0))
    };
    rate >= REACHED * asked
}

/// Whether less was written than the rate asked for allows; false where it is not known.
pub(crate) fn wrote_less(case: &Case<'_>) -> bool {
    case.asked()
        .zip(case.sent_bps())
        .is_some_and(|(asked, sent)| sent < REACHED * asked)
}

/// The end whose threads compute all the time, or, where that counts, wait for a CPU for the rest of it.
fn cpu(case: &Case<'_>, waiting_counts: bool) -> Option<Limit> {
    let flow = case.direction.flow;
    // A thread that could run and had to wait for a CPU is held by the CPU as well.
    let held = |role| {
        let threads = case
            .threads(role)
            .filter(|_| waiting_counts)
            .map_or(0.0, |threads| threads.computes + threads.waits);
        threads.max(case.cpu_share(role).unwrap_or(0.0))
    };
    let (sender, receiver) = (held(flow.sender()), held(flow.receiver()));
    if sender.max(receiver) < CPU_FULL {
        return None;
    }
    Some(if sender >= receiver {
        Limit::SenderCpu
    } else {
        Limit::ReceiverCpu
    })
}

/// Where the bytes waited.
fn waits_at(case: &Case<'_>) -> Option<Limit> {
    if reader::leaves_data(case) {
        return Some(Limit::ReceiverApplication);
    }
    if !case.direction.link_full && (case.bursts().is_some() || stands_at_buffer_in_stretches(case))
    {
        return Some(Limit::SendBuffer);
    }
    let found = waits_by_budget(case);
    match found {
        // On a full link a window or a buffer only bounds what waits in front of it.
        Some(Limit::ReceiveWindow | Limit::SendBuffer) if case.direction.link_full => {
            Some(Limit::Network)
        }
        _ => found,
    }
}

/// Bytes in flight fill the send buffer although its bursts make a queue: nothing waits unsent, and the path is not
/// full all the time.
fn stands_at_buffer_in_stretches(case: &Case<'_>) -> bool {
    let path = case.path();
    case.waits_for_room().is_some()
        && path
            .in_flight_bytes
            .zip(path.send_buffer_bytes)
            .is_some_and(|(flight, buffer)| flight >= BUFFER_FULL * buffer as f64)
}

/// Where they waited by the kernel's clocks and what stands against those.
fn waits_by_budget(case: &Case<'_>) -> Option<Limit> {
    let Some(budget) = case.budget() else {
        // The receiver alone can still show that it did not read.
        return unread_fills_window(case, own_window(case)).then_some(Limit::ReceiverApplication);
    };
    let named = [
        (budget.receive_window, Limit::ReceiveWindow),
        (budget.send_buffer, Limit::SendBuffer),
        (budget.application, Limit::Application),
    ];
    let (share, cause) = named
        .into_iter()
        .reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    let named = share > budget.network || (share >= NAMED && confirmed(case, cause));
    let largest = if named { cause } else { Limit::Network };
    Some(match largest {
        Limit::ReceiveWindow => receive_window(case),
        Limit::SendBuffer
            if bloated(
                case,
                case.path().send_buffer_bytes.map(|bytes| bytes as f64),
            ) =>
        {
            Limit::Network
        }
        Limit::SendBuffer
            if case.next_door()
                && !small(case.path().send_buffer_bytes.map(|bytes| bytes as f64)) =>
        {
            Limit::Network
        }
        Limit::Network if stands_at_send_buffer(case) => Limit::SendBuffer,
        // A paced sender idles by design, and what it missed may be a stall's; on one machine both ends
        // idle while the other computes.
        Limit::Application
            if case.asked().is_some() && (!wrote_less(case) || case.stall().is_some()) =>
        {
            return None;
        }
        Limit::Application if case.one_host() => Limit::Network,
        other => other,
    })
}

/// Whether more than a clock speaks for a cause that took less time than the network.
fn confirmed(case: &Case<'_>, cause: Limit) -> bool {
    let path = case.path();
    let fills = |bound: Option<f64>, share: f64| {
        bound
            .zip(path.in_flight_bytes)
            .is_some_and(|(bound, flight)| flight >= share * bound)
    };
    let buffer = path.send_buffer_bytes.map(|bytes| bytes as f64);
    match cause {
        Limit::ReceiveWindow => {
            small(path.receive_window_bytes) || fills(path.receive_window_bytes, WELL_BELOW)
        }
        Limit::SendBuffer => small(buffer) || fills(buffer, BUFFER_FULL),
        Limit::Application => !case.one_host() && queue::standing_queue_us(case).is_none(),
        _ => false,
    }
}

fn receive_window(case: &Case<'_>) -> Limit {
    let path = case.path();
    if unread_fills_window(case, path.receive_window_bytes) {
        return Limit::ReceiverApplication;
    }
    let window = path.receive_window_bytes;
    let never_filled = window
        .zip(path.in_flight_bytes)
        .is_some_and(|(window, flight)| flight < 0.5 * window);
    let ceiling = ceiling_bps(case);
    let far_below = ceiling
        .zip(case.rate())
        .is_some_and(|(ceiling, rate)| rate < ceiling / 4.0);
    if bloated(case, window) || (!small(window) && never_filled && far_below) {
        return Limit::Network;
    }
    Limit::ReceiveWindow
}

/// What lies unread closes the window by as much: from half of what is open on, the reader is why it is not wider. One
/// that reads at once leaves nothing (measured: medians of 0 where the buffer is the limit; 0.9 to 10 windows where the
/// program is).
const UNREAD: f64 = 0.5;
/// Less than this, bytes, lies in any buffer between two reads …
const UNREAD_LEAST: f64 = 131_072.0;
/// … unless it is this many times what the window was open, and so much at least, bytes: half of the time the buffer, however
/// small, was full of what nobody read.
const CLOSED: f64 = 4.0;
const CLOSED_LEAST: f64 = 16_384.0;

/// At least half as much lay unread as the window was open; a small buffer says that of its reader only where it was
/// nearly full most of the time.
fn unread_fills_window(case: &Case<'_>, window: Option<f64>) -> bool {
    let streams = case.streams();
    let unread = case.direction.unread_bytes.map(|bytes| bytes / streams);
    unread.zip(window).is_some_and(|(unread, window)| {
        let much = unread >= UNREAD_LEAST && unread >= UNREAD * window;
        much || unread >= CLOSED_LEAST && unread >= CLOSED * window
    })
}

/// What the receiver itself advertises, bytes: the last sample of its first stream.
fn own_window(case: &Case<'_>) -> Option<f64> {
    let stream = case.receiver()?.streams_of(case.direction.flow).next()?;
    stream
        .samples
        .last(Column::rcv_wnd_bytes)
        .map(|bytes| bytes as f64)
}

/// Whether a queue stands that is deeper than what a window of `bound` bytes would need without it.
fn bloated(case: &Case<'_>, bound: Option<f64>) -> bool {
    let Some((mean, least)) = case.round_trips() else {
        return false;
    };
    let segments = bound
        .zip(case.path().mss_bytes)
        .map(|(bytes, mss)| bytes / mss.max(1) as f64);
    linerate_analysis::queue::is_bloated(mean, least, segments)
}

fn small(bound: Option<f64>) -> bool {
    bound.is_some_and(|bytes| bytes < SMALL)
}

/// Bytes in flight stand at the send buffer, below every other bound, and nothing waits unsent.
fn stands_at_send_buffer(case: &Case<'_>) -> bool {
    let path = case.path();
    let figures = (
        path.in_flight_bytes,
        path.congestion_window_bytes,
        path.receive_window_bytes,
        path.send_buffer_bytes,
    );
    let (Some(flight), Some(congestion), Some(window), Some(buffer)) = figures else {
        return false;
    };
    let unsent = path.notsent_bytes.unwrap_or(f64::INFINITY);
    flight < WELL_BELOW * congestion
        && flight < WELL_BELOW * window
        && flight >= BUFFER_FULL * buffer as f64
        && unsent < 0.1 * flight
        && !bloated(case, Some(buffer as f64))
}

/// The most that the receive windows carry: window / round-trip time of each stream, bit/s.
pub(crate) fn ceiling_bps(case: &Case<'_>) -> Option<f64> {
    let path = case.path();
    let (window, rtt) = path
        .receive_window_bytes
        .zip(path.rtt_us.filter(|rtt| *rtt > 0.0))?;
    Some(window * 8e6 / rtt * f64::from(case.plan().streams))
}

/// Payload that the slower interface carries, bit/s, where its speed is known.
pub(crate) fn link_payload_bps(case: &Case<'_>) -> Option<f64> {
    let framing = case.direction.framing.as_ref().ok()?;
    Some(framing.payload_of(case.direction.link_bps?) as f64)
}

/// A cause that is not the first one is worth a note from this share of the time on.
const WORTH_A_NOTE: f64 = 0.20;

/// How much a cause matters: a limit where it is the first one, a note where it took a fifth of the
/// time beside another cause; nothing behind a full path, where it only bounds the queue.
pub(crate) fn weight(case: &Case<'_>, cause: Limit, share: f64) -> Option<Severity> {
    match case.limit {
        Some(limit) if limit == cause => Some(Severity::Limit),
        Some(Limit::ReceiveWindow | Limit::SendBuffer | Limit::Application)
            if share >= WORTH_A_NOTE && !case.next_door() && !idles(case, cause) =>
        {
            Some(Severity::Note)
        }
        Some(Limit::Network)
            if share >= WORTH_A_NOTE
                && !case.next_door()
                && !idles(case, cause)
                && !case.direction.link_full
                && queue::standing_queue_us(case).is_none() =>
        {
            Some(Severity::Note)
        }
        _ => None,
    }
}

/// Whether idling is no cause: a sender with a rate asked for idles by design, and so does each end of one
/// machine while the other computes.
fn idles(case: &Case<'_>, cause: Limit) -> bool {
    cause == Limit::Application && (case.asked().is_some() || case.one_host())
}
