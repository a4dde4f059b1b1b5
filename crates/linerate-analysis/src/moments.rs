//! A sending stream's samples, one by one: what limited it between each and the next.

use crate::ends::Ends;
use crate::queue;
use crate::time_budget::{Class, ClassTimes};
use linerate_model::column::Column;
use linerate_model::record::StreamRecord;

/// Windows and buffers below this are believed to limit whenever their clock says so, bytes.
const SMALL: u64 = 262_144;
/// A window is full at this share of it.
const FULL: f64 = 0.9;
/// A large window that is filled less than this does not limit, however its clock ticks.
const NEVER_FILLED: f64 = 0.5;
/// In flight at this share of the send buffer, it is full (its size is counted with overhead).
const BUFFER_FULL: f64 = 0.5;
/// Less than this share of what is in flight waits unsent: nothing does.
const NOTHING_WAITS: f64 = 0.1;
/// Acknowledgements that are late by this and by a round trip do not come any more, µs: RFC 6298's least timer
/// is a second, Linux's 200 ms, and a tail-loss probe goes before it.
const LATE_US: u64 = 100_000;

/// `ca_state` of `tcp_info` (`enum tcp_ca_state`).
const RECOVERY: u64 = 3;
const LOSS: u64 = 4;

/// What is known of the direction that a stream belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings {
    /// Least round trip of the run, µs.
    pub(crate) min_rtt_us: u64,
    /// How far the ends are apart.
    pub(crate) ends: Ends,
    /// The slower interface carries all that it can.
    pub(crate) link_full: bool,
    /// A rate was asked for.
    pub(crate) rate_asked: bool,
}

/// The time from one sample to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The earlier sample, ns.
    pub(crate) from_ns: u64,
    /// The later one.
    pub(crate) to_ns: u64,
    /// What the time between went to; their sum is `to_ns − from_ns`.
    pub(crate) times: ClassTimes,
    /// Payload sent for the first time meanwhile, bytes.
    pub(crate) sent_bytes: u64,
    /// Payload that passed the path meanwhile, repeats included, bytes.
    pub(crate) passed_bytes: u64,
}

/// Every moment of a stream, in the order of time.
pub(crate) fn of(stream: &StreamRecord, around: &Surroundings) -> Result<Vec<Moment>, String> {
    let columns = Columns::of(stream)?;
    let mut clocks = Clocks::default();
    let mut moments = Vec::with_capacity(columns.at.len().saturating_sub(1));
    for row in 1..columns.at.len() {
        let (from_ns, to_ns) = (columns.at[row - 1], columns.at[row]);
        let sample = columns.sample(row);
        let mut times = ClassTimes::default();
        let left = clocks.spend(&columns, row, |class, ns| {
            times.add(sample.instead_of(class, around), ns);
        });
        times.add(sample.class(around), left);
        moments.push(Moment {
            from_ns,
            to_ns,
            times,
            sent_bytes: columns.sent(row).saturating_sub(columns.sent(row - 1)),
            passed_bytes: columns.passed(row).saturating_sub(columns.passed(row - 1)),
        });
    }
    Ok(moments)
}

/// The columns that moments are read from.
struct Columns<'a> {
    at: &'a [u64],
    busy: &'a [u64],
    window_clock: &'a [u64],
    buffer_clock: &'a [u64],
    in_flight: &'a [u64],
    congestion_window: &'a [u64],
    mss: &'a [u64],
    rtt: &'a [u64],
    state: &'a [u64],
    acked: &'a [u64],
    /// From here on a kernel may not tell.
    peer_window: Option<&'a [u64]>,
    unsent: Option<&'a [u64]>,
    timeouts: Option<&'a [u64]>,
    probes: Option<&'a [u64]>,
    last_ack_ms: Option<&'a [u64]>,
    sent: Option<(&'a [u64], &'a [u64])>,
    delivered_packets: Option<&'a [u64]>,
    send_buffer: Option<u64>,
    paced_to_path: bool,
}

impl<'a> Columns<'a> {
    fn of(stream: &'a StreamRecord) -> Result<Self, String> {
        let samples = &stream.samples;
        let needed = |column: Column, since: &str| {
            samples.column(column).ok_or(format!(
                "the sender's kernel does not report it ({column} needs Linux {since})"
            ))
        };
        let sent = samples
            .column(Column::bytes_sent)
            .zip(samples.column(Column::bytes_retrans));
        Ok(Self {
            at: samples.at_ns(),
            busy: needed(Column::busy_time_us, "4.10")?,
            window_clock: needed(Column::rwnd_limited_us, "4.10")?,
            buffer_clock: needed(Column::sndbuf_limited_us, "4.10")?,
            in_flight: needed(Column::unacked_packets, "2.6")?,
            congestion_window: needed(Column::snd_cwnd_packets, "2.6")?,
            mss: needed(Column::snd_mss_bytes, "2.6")?,
            rtt: needed(Column::rtt_us, "2.6")?,
            state: needed(Column::ca_state, "2.6")?,
            acked: needed(Column::bytes_acked, "4.1")?,
            peer_window: samples.column(Column::snd_wnd_bytes),
            unsent: samples.column(Column::notsent_bytes),
            timeouts: samples.column(Column::retransmits),
            probes: samples.column(Column::probes),
            last_ack_ms: samples.column(Column::last_ack_recv_ms),
            sent,
            delivered_packets: samples
                .column(Column::delivered_packets)
                .filter(|packets| packets.last() > Some(&0)),
            send_buffer: stream.send_buffer_bytes,
            paced_to_path: stream
                .congestion
                .as_deref()
                .is_some_and(|name| name.starts_with("bbr")),
        })
    }

    /// Payload sent once until a row, bytes; a kernel before 4.19 tells what was acknowledged.
    fn sent(&self, row: usize) -> u64 {
        self.sent.map_or(self.acked[row], |(all, again)| {
            all[row].saturating_sub(again[row])
        })
    }

    /// Payload that had passed the path until a row, repeats and what was acknowledged selectively included,
    /// bytes; a kernel before 4.18 tells what was acknowledged.
    fn passed(&self, row: usize) -> u64 {
        self.delivered_packets.map_or(self.acked[row], |packets| {
            packets[row].saturating_mul(self.mss[row])
        })
    }

    fn sample(&self, row: usize) -> Sample {
        let now = |column: Option<&[u64]>| column.map(|values| values[row]);
        let flight = self.in_flight[row].max(self.in_flight[row - 1]);
        Sample {
            in_flight: flight.saturating_mul(self.mss[row]),
            congestion_window: self.congestion_window[row].saturating_mul(self.mss[row]),
            mss: self.mss[row].max(1),
            rtt_us: self.rtt[row],
            state: self.state[row],
            peer_window: now(self.peer_window),
            unsent: now(self.unsent),
            waits_for_timer: now(self.timeouts).is_some_and(|count| count > 0),
            probes: now(self.probes).is_some_and(|count| count > 0),
            since_ack_us: now(self.last_ack_ms).map(|ms| ms.saturating_mul(1000)),
            send_buffer: self.send_buffer,
            paced_to_path: self.paced_to_path,
        }
    }
}

/// The kernel's clocks so far, ns. They tick in jiffies, so a step may say more than the time that it took: what
/// is too much waits for the next.
#[derive(Debug, Default)]
struct Clocks {
    elapsed: u64,
    busy: u64,
    idle: u64,
    window: u64,
    buffer: u64,
}

impl Clocks {
    /// Books the time up to a row as far as a clock says what it went to; the rest is returned, ns.
    fn spend(
        &mut self,
        columns: &Columns<'_>,
        row: usize,
        mut book: impl FnMut(Class, u64),
    ) -> u64 {
        let grown = |values: &[u64]| {
            values[row]
                .saturating_sub(values[row - 1])
                .saturating_mul(1000)
        };
        let mut left = columns.at[row].saturating_sub(columns.at[row - 1]);
        self.elapsed = self.elapsed.saturating_add(left);
        self.busy = self.busy.saturating_add(grown(columns.busy));
        let idle = self.elapsed.saturating_sub(self.busy);
        let mut take = |class: Class, waiting: &mut u64| {
            let taken = left.min(*waiting);
            *waiting -= taken;
            left -= taken;
            if taken > 0 {
                book(class, taken);
            }
        };
        // The most idle time so far: jiffies that come late are not idle time that comes and goes.
        let mut more = idle.saturating_sub(self.idle);
        self.idle = self.idle.max(idle);
        take(Class::Application, &mut more);
        self.window = self.window.saturating_add(grown(columns.window_clock));
        take(Class::ReceiveWindow, &mut self.window);
        self.buffer = self.buffer.saturating_add(grown(columns.buffer_clock));
        take(Class::SendBuffer, &mut self.buffer);
        left
    }
}

/// What the kernel said of a stream at one moment. Bytes, unless a name says otherwise.
#[derive(Debug, Clone, Copy)]
struct Sample {
    in_flight: u64,
    congestion_window: u64,
    mss: u64,
    rtt_us: u64,
    state: u64,
    peer_window: Option<u64>,
    unsent: Option<u64>,
    waits_for_timer: bool,
    probes: bool,
    since_ack_us: Option<u64>,
    send_buffer: Option<u64>,
    paced_to_path: bool,
}

impl Sample {
    /// What time is booked on that a clock has booked on `class`.
    fn instead_of(&self, class: Class, around: &Surroundings) -> Class {
        let bound = match class {
            Class::ReceiveWindow => self.peer_window,
            Class::SendBuffer => self.send_buffer,
            _ => return class,
        };
        if self.stalls() && self.peer_window.is_none_or(|window| window >= self.mss) {
            return Class::Timeout;
        }
        let large = bound.is_some_and(|bytes| bytes >= SMALL);
        let filled = bound.is_none_or(|bytes| self.in_flight as f64 >= NEVER_FILLED * bytes as f64);
        if around.link_full || self.bloated(bound, around) || (large && around.ends.next_door()) {
            Class::FillingPath
        } else if class == Class::ReceiveWindow && large && !filled {
            self.class(around)
        } else {
            class
        }
    }

    /// What held the stream where no clock says it.
    fn class(&self, around: &Surroundings) -> Class {
        if self.probes || self.peer_window.is_some_and(|window| window < self.mss) {
            return Class::ReceiveWindow;
        }
        if self.state == LOSS || self.waits_for_timer || self.stalls() {
            return Class::Timeout;
        }
        if self.state == RECOVERY {
            return Class::Recovery;
        }
        let fills = |bound: u64| {
            self.in_flight as f64 >= FULL * bound as f64
                || self.in_flight.saturating_add(3 * self.mss) >= bound
        };
        let network = self.path_or_window(around);
        if fills(self.congestion_window) {
            return network;
        }
        if let Some(window) = self.peer_window.filter(|window| fills(*window)) {
            return self.instead_of_window(window, around);
        }
        if self.unsent.is_some_and(|unsent| {
            unsent as f64 > (NOTHING_WAITS * self.in_flight as f64).max(self.mss as f64)
        }) {
            // Windows are open and data waits: it is paced, to a rate that was asked for or to the path's.
            return if around.rate_asked {
                Class::Application
            } else {
                network
            };
        }
        let buffer = self
            .send_buffer
            .filter(|buffer| self.in_flight as f64 >= BUFFER_FULL * *buffer as f64);
        match (buffer, self.unsent) {
            (Some(buffer), _)
                if !self.bloated(Some(buffer), around) && !around.ends.next_door() =>
            {
                Class::SendBuffer
            }
            (None, Some(_)) => Class::Application,
            _ => network,
        }
    }

    fn instead_of_window(&self, window: u64, around: &Surroundings) -> Class {
        if around.link_full || self.bloated(Some(window), around) {
            Class::FillingPath
        } else {
            Class::ReceiveWindow
        }
    }

    /// The congestion window was full, or it paced: was the path full as well?
    fn path_or_window(&self, around: &Surroundings) -> Class {
        let (rtt, least) = (self.rtt_us as f64, around.min_rtt_us as f64);
        let queue = queue::at_instant(rtt, least, around.ends).is_some();
        if queue || around.link_full || around.ends.next_door() || self.paced_to_path {
            Class::FillingPath
        } else {
            Class::CongestionWindow
        }
    }

    /// Whether a queue stands that is deeper than what a window of `bound` bytes would need without it.
    fn bloated(&self, bound: Option<u64>, around: &Surroundings) -> bool {
        let segments = bound.map(|bytes| bytes as f64 / self.mss.max(1) as f64);
        queue::is_bloated(self.rtt_us as f64, around.min_rtt_us as f64, segments)
    }

    /// Whether acknowledgements are due and do not come.
    fn stalls(&self) -> bool {
        let late = self.rtt_us.saturating_add(self.rtt_us.max(LATE_US));
        self.in_flight > 0 && self.since_ack_us.is_some_and(|since| since > late)
    }
}
