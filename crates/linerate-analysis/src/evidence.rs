//! What the rules look at: figures derived from a record, computed again each time.

use crate::ends::Ends;
use crate::framing::Framing;
use crate::ledger::{DirectionLedger, Ledger};
use crate::moments::Surroundings;
use crate::precision;
use crate::round_trip;
use crate::sending;
use crate::statistics::{self, Plateau};
use crate::time_budget::{Band, StreamBands, TimeBudget};
use crate::triage::Triage;
use crate::waterfall::{self, Waterfall};
use linerate_model::column::Column;
use linerate_model::plan::Protocol;
use linerate_model::record::{EndRecord, Flow, Role, RunRecord, StreamRecord};
use linerate_model::units::{Nanos, whole};

/// A grid of rates has at most this many points.
pub const GRID_POINTS: u64 = 1000;

/// The ramp has ended at this share of the plateau's rate.
const REACHED: f64 = 0.95;

/// Where a rate was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// By the receiving application: goodput proper.
    ReceivingApplication,
    /// By the sending kernel from acknowledgements: what the receiving kernel got, a round trip ago.
    Acknowledged,
    /// By the sending application: what its kernel accepted, which is not delivery.
    SendingApplication,
}

impl Place {
    /// The end of a direction that measured, whose clock the instants of its rates stand on.
    pub const fn end(self, flow: Flow) -> Role {
        match self {
            Self::ReceivingApplication => flow.receiver(),
            Self::Acknowledged | Self::SendingApplication => flow.sender(),
        }
    }
}

/// Everything that the rules may use.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// The raw facts.
    pub record: &'a RunRecord,
    /// The book.
    pub ledger: Ledger,
    /// Derived figures of each direction, in the order of [`RunRecord::flows`].
    pub directions: Vec<DirectionEvidence>,
}

/// Derived figures of one direction.
#[derive(Debug, Clone)]
pub struct DirectionEvidence {
    /// Which.
    pub flow: Flow,
    /// Where the rates below were measured.
    pub measured_at: Place,
    /// Rate of all streams together, bit/s, on an even grid.
    pub rates_bps: Vec<f64>,
    /// The grid's first instant, ns on the measuring end's clock.
    pub grid_from_ns: u64,
    /// The grid's step, ns.
    pub grid_step_ns: u64,
    /// The steady part; absent where nothing was moved.
    pub plateau: Option<Plateau>,
    /// Bytes without the omitted part.
    pub bytes: u64,
    /// The same for each stream, by id.
    pub stream_bytes: Vec<(u32, u64)>,
    /// The rate at which the sending application sent: what it wrote from its first byte to its last, bit/s. Which is no
    /// delivery.
    pub sent_bps: Option<f64>,
    /// Time that they took: from the first byte (or the end of the omitted part) to the last.
    pub span_ns: u64,
    /// Where the time of the sending streams went, over the plateau, from their samples.
    pub budget: Result<TimeBudget, String>,
    /// What the sending kernel's clocks alone say of it.
    pub clocks: Result<KernelClocks, String>,
    /// What most of the sending streams' time went to, over the whole run; empty where the budget is not known.
    pub bands: Vec<Band>,
    /// The same for each sending stream.
    pub stream_bands: Vec<StreamBands>,
    /// From the line's rate to goodput.
    pub waterfall: Result<Waterfall, String>,
    /// The sender's path figures over the plateau, where its kernel is known.
    pub path: Option<PathFigures>,
    /// Median over the plateau of what lay unread at the receiver, bytes, all streams; absent = not known.
    pub unread_bytes: Option<f64>,
    /// How far the ends are apart.
    pub ends: Ends,
    /// Whether the slower interface carries all that it can over the plateau, by the framing of these packets. A rate
    /// above its speed shows that the speed is made up, and several paths at once have none.
    pub link_full: bool,
    /// How payload lies on the wire.
    pub framing: Result<Framing, String>,
    /// The speed of the slower of both ends' interfaces, of those whose speed is real, bit/s.
    pub link_bps: Option<u64>,
    /// This direction's page of the book.
    pub ledger: DirectionLedger,
}

/// Where the time of the sending streams went over the plateau, by the kernel's clocks alone (Linux 4.10). Shares
/// of 0 to 1 that add to one. They mislead now and then: see [`crate::time_budget`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelClocks {
    /// Nothing to send: the sending application (elapsed − `busy_time`).
    pub application: f64,
    /// Limited by the send buffer (`sndbuf_limited`).
    pub send_buffer: f64,
    /// Limited by the peer's receive window (`rwnd_limited`).
    pub receive_window: f64,
    /// The rest of `busy_time`: congestion window, recovery, the path itself.
    pub network: f64,
    /// Begin and end of the samples that it rests on, ns on the sender's clock.
    pub span_ns: [u64; 2],
}

impl KernelClocks {
    /// From what the clocks of busy time, receive window and send buffer counted in a time, µs; `None` where no time
    /// passed.
    pub fn of(elapsed_us: f64, counted_us: [f64; 3], span_ns: [u64; 2]) -> Option<Self> {
        let [busy, window, buffer] = counted_us;
        let busy = busy.clamp(0.0, elapsed_us.max(0.0));
        let (window, buffer) = (window.min(busy), buffer.min(busy));
        (elapsed_us > 0.0).then(|| Self {
            application: (elapsed_us - busy) / elapsed_us,
            send_buffer: buffer / elapsed_us,
            receive_window: window / elapsed_us,
            network: (busy - window - buffer).max(0.0) / elapsed_us,
            span_ns,
        })
    }
}

/// The sending kernel's view of the path, over the plateau.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PathFigures {
    /// Mean of the smoothed round-trip time, µs.
    pub rtt_us: Option<f64>,
    /// Least round-trip time of the whole run, µs.
    pub min_rtt_us: Option<f64>,
    /// Segments sent again in the whole run.
    pub retransmits: Option<u64>,
    /// Segments that the receiver reported as received twice (DSACK, RFC 2883) in the whole run: sent again
    /// without need, or duplicated by the path; more than `retransmits` shows the latter.
    pub received_twice: Option<u64>,
    /// How often the sending kernel saw that segments had overtaken one another (`reord_seen`), in the whole
    /// run.
    pub overtaken: Option<u64>,
    /// Segments that carried data in the whole run.
    pub data_segments: Option<u64>,
    /// Median peer's receive window, bytes, one stream.
    pub receive_window_bytes: Option<f64>,
    /// Median congestion window, bytes, one stream.
    pub congestion_window_bytes: Option<f64>,
    /// Median of what was in flight, bytes, one stream.
    pub in_flight_bytes: Option<f64>,
    /// Median of what the send buffer held unsent, bytes, one stream.
    pub notsent_bytes: Option<f64>,
    /// Send buffer granted, bytes, one stream.
    pub send_buffer_bytes: Option<u64>,
    /// Maximum segment size, bytes.
    pub mss_bytes: Option<u64>,
}

impl<'a> Evidence<'a> {
    /// Derives all figures of a record.
    pub fn of(record: &'a RunRecord) -> Self {
        let ledger = Ledger::of(record);
        let directions = ledger
            .directions
            .iter()
            .map(|direction| DirectionEvidence::of(record, direction.clone()))
            .collect();
        Self {
            record,
            ledger,
            directions,
        }
    }
}

/// A stream's cumulative count of bytes, and when it was taken.
#[derive(Debug, Clone, Copy)]
pub struct Counts<'a> {
    /// Instants, ns.
    pub at_ns: &'a [u64],
    /// As many counts, bytes.
    pub bytes: &'a [u64],
}

/// Rate of all streams together on an even grid, bit/s, and its step, ns: a sample's interval, or as much more
/// as makes a thousand points of the span.
pub fn rates(streams: &[Counts<'_>], [from, to]: [u64; 2], sample: Nanos) -> (u64, Vec<f64>) {
    let span = to.saturating_sub(from);
    let step = sample.0.max(span.div_ceil(GRID_POINTS)).max(1);
    let points = usize::try_from(span / step).unwrap_or(0);
    let mut sums = vec![0.0; points + 1];
    for stream in streams {
        let mut curve = Curve::new(stream.at_ns, stream.bytes);
        for (point, sum) in sums.iter_mut().enumerate() {
            *sum += curve.at(from.saturating_add(point as u64 * step));
        }
    }
    let rates = sums
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).max(0.0) * 8e9 / step as f64);
    (step, rates.collect())
}

/// The samples of a direction at the place where they are best measured.
struct Source<'a> {
    place: Place,
    role: Role,
    end: &'a EndRecord,
    column: Column,
}

fn source(record: &RunRecord, flow: Flow) -> Option<Source<'_>> {
    if let Some(end) = record.end(flow.receiver()) {
        return Some(Source {
            place: Place::ReceivingApplication,
            role: flow.receiver(),
            end,
            column: Column::app_bytes,
        });
    }
    let end = record.end(flow.sender())?;
    let acknowledged = record.plan.protocol == Protocol::Tcp
        && end
            .streams_of(flow)
            .all(|stream| stream.samples.column(Column::bytes_acked).is_some());
    let (place, column) = if acknowledged {
        (Place::Acknowledged, Column::bytes_acked)
    } else {
        (Place::SendingApplication, Column::app_bytes)
    };
    Some(Source {
        place,
        role: flow.sender(),
        end,
        column,
    })
}

impl DirectionEvidence {
    fn of(record: &RunRecord, ledger: DirectionLedger) -> Self {
        let flow = ledger.flow;
        let mut evidence = Self {
            flow,
            measured_at: Place::ReceivingApplication,
            rates_bps: Vec::new(),
            grid_from_ns: 0,
            grid_step_ns: 0,
            plateau: None,
            bytes: 0,
            stream_bytes: Vec::new(),
            span_ns: 0,
            sent_bps: sending::rate_bps(record, flow),
            budget: Err("nothing was measured".to_owned()),
            clocks: Err("nothing was measured".to_owned()),
            bands: Vec::new(),
            stream_bands: Vec::new(),
            waterfall: Err("nothing was measured".to_owned()),
            path: None,
            unread_bytes: None,
            ends: Ends::of(record, flow, None),
            link_full: false,
            framing: Framing::of(record, flow),
            link_bps: waterfall::slower_interface(record).map(|(_, bps)| bps),
            ledger,
        };
        let Some(source) = source(record, flow) else {
            return evidence;
        };
        evidence.measured_at = source.place;
        let streams: Vec<&StreamRecord> = source.end.streams_of(flow).collect();
        let Some((from, to)) = span(source.end, &streams) else {
            return evidence;
        };
        evidence.lay_grid(record, &source, &streams, from, to);
        let acknowledged = source.place == Place::Acknowledged;
        evidence.stream_bytes = streams
            .iter()
            .map(|stream| (stream.id, counted(stream, flow, acknowledged)))
            .collect();
        evidence.bytes = evidence
            .stream_bytes
            .iter()
            .fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let moved = |stream: &&StreamRecord| {
            let written = stream.last_byte_ns.map(|at| at.0);
            if acknowledged {
                acknowledged_at(stream).max(written)
            } else {
                written
            }
        };
        let last = streams.iter().filter_map(moved).max().unwrap_or(to);
        evidence.span_ns = last.saturating_sub(from);
        evidence.clocks = evidence.kernel_clocks(record, source.role);
        evidence.path = evidence.path_figures(record, source.role);
        let min_rtt_us = evidence.path.and_then(|path| path.min_rtt_us);
        evidence.ends = Ends::of(record, flow, min_rtt_us);
        evidence.link_full = waterfall::link_full(record, &evidence);
        evidence.triage(record, source.role);
        evidence.unread_bytes = evidence.unread(record);
        evidence
    }

    /// Rate over the whole run, without the omitted part, bit/s.
    pub fn whole_run_bps(&self) -> Option<f64> {
        (self.span_ns > 0).then(|| self.bytes as f64 * 8e9 / self.span_ns as f64)
    }

    /// From the first byte until the rate (the mean of five steps of the grid) first came up to 95 % of the
    /// plateau's, ns; at most to where the plateau was cut. `None` where the run is not steady.
    ///
    /// Where the plateau was cut is no ramp by itself: MSER-5 also cuts off a beginning that is merely more
    /// restless than the rest.
    pub fn ramp_ns(&self) -> Option<u64> {
        let plateau = self.plateau.filter(|plateau| plateau.unsteady.is_none())?;
        let enough = REACHED * plateau.estimate.mean;
        let batches = self.rates_bps.chunks_exact(statistics::BATCH);
        let reached = batches
            .map(statistics::mean)
            .position(|rate| rate >= enough);
        let steps = reached.map_or(plateau.from, |batch| {
            (batch * statistics::BATCH).min(plateau.from)
        });
        Some((steps as u64).saturating_mul(self.grid_step_ns))
    }

    /// Begin and end of the plateau, ns on the measuring end's clock.
    pub fn plateau_span_ns(&self) -> Option<[u64; 2]> {
        let plateau = self.plateau?;
        let at = |point: usize| {
            self.grid_from_ns
                .saturating_add((point as u64).saturating_mul(self.grid_step_ns))
        };
        Some([at(plateau.from), at(self.rates_bps.len())])
    }

    fn lay_grid(
        &mut self,
        record: &RunRecord,
        source: &Source<'_>,
        streams: &[&StreamRecord],
        from: u64,
        to: u64,
    ) {
        let mut counts = Vec::new();
        for stream in streams {
            match stream
                .samples
                .column(source.column)
                .filter(|values| values.len() > 1)
            {
                Some(bytes) => counts.push(Counts {
                    at_ns: stream.samples.at_ns(),
                    bytes,
                }),
                None if stream.app_bytes == 0 => {}
                // Bytes without samples: a rate of zero would be a lie.
                None => return,
            }
        }
        let (step, rates) = rates(&counts, [from, to], record.plan.sample_ns);
        self.grid_from_ns = from;
        self.grid_step_ns = step;
        self.plateau = precision::plateau(&record.plan, &rates);
        self.rates_bps = rates;
    }

    /// The plateau on the clock of `role`, given that it stands on that of `measured_by`.
    fn plateau_on(&self, record: &RunRecord, measured_by: Role, role: Role) -> Option<[u64; 2]> {
        let [from, to] = self.plateau_span_ns()?;
        if measured_by == role {
            return Some([from, to]);
        }
        let Some(clock) = record.clock else {
            // Both ends were let go at the same time, but for half a round trip.
            let (here, there) = (
                record.end(measured_by)?.start_ns,
                record.end(role)?.start_ns,
            );
            return Some([from, to].map(|at| there.plus(Nanos(at).since(here)).0));
        };
        Some(match measured_by {
            // The record's offset is the server's clock minus the client's.
            Role::Server => [clock.to_ours(from), clock.to_ours(to)],
            Role::Client => {
                let to_server = |at: u64| at.saturating_add_signed(clock.offset_at(at));
                [to_server(from), to_server(to)]
            }
        })
    }

    /// The sender's half, where its kernel's clocks are in it.
    fn clocked<'a>(&self, record: &'a RunRecord) -> Result<&'a EndRecord, String> {
        if record.plan.protocol == Protocol::Udp {
            return Err("UDP has no windows: the kernel keeps no such timers for it".to_owned());
        }
        if record.plan.protocol == Protocol::Sctp {
            return Err("Linux does not report what an SCTP sender waits for".to_owned());
        }
        let absent = if record.is_observation() {
            "the sender's kernel, whose TCP timers show it, was not observed; run `linerate observe` on its host"
        } else if record.control.peer_software.is_some() {
            "the sender's part of the record, with its kernel's TCP timers, did not arrive"
        } else {
            let peer = record.control.stock_peer();
            return record.end(self.flow.sender()).ok_or_else(|| {
                format!(
                    "the sender is a stock {peer}, which does not report its kernel's TCP timers (busy, window-limited, \
                     buffer-limited)"
                )
            });
        };
        record.end(self.flow.sender()).ok_or(absent.to_owned())
    }

    /// Classifies the sender's samples; budget, bands and waterfall rest on them.
    fn triage(&mut self, record: &RunRecord, measured_by: Role) {
        let around = self.surroundings(record);
        let triage = self
            .clocked(record)
            .and_then(|end| Triage::of(end, self.flow, &around));
        let span = self.plateau_on(record, measured_by, self.flow.sender());
        self.waterfall = Waterfall::of(record, self, triage.as_ref(), span);
        match triage {
            Ok(triage) => {
                self.bands = triage.bands();
                self.stream_bands = triage.stream_bands();
                self.budget = span
                    .ok_or("no plateau on the sender's clock".to_owned())
                    .and_then(|span| triage.budget(span));
            }
            Err(why) => self.budget = Err(why),
        }
    }

    fn surroundings(&self, record: &RunRecord) -> Surroundings {
        let least = self.path.and_then(|path| path.min_rtt_us);
        Surroundings {
            min_rtt_us: least.map_or(0, whole),
            ends: self.ends,
            link_full: self.link_full,
            rate_asked: record
                .plan
                .rate_bps
                .or(record.plan.kernel_pacing_bps)
                .is_some(),
        }
    }

    fn kernel_clocks(&self, record: &RunRecord, measured_by: Role) -> Result<KernelClocks, String> {
        let end = self.clocked(record)?;
        let role = self.flow.sender();
        let span = self
            .plateau_on(record, measured_by, role)
            .ok_or("no plateau on the sender's clock")?;
        let (mut elapsed, mut busy, mut window, mut buffer) = (0.0, 0.0, 0.0, 0.0);
        for stream in end.streams_of(self.flow) {
            let rows = Rows::within(stream, span)
                .ok_or("too few samples of the sender's kernel over the plateau")?;
            let absent = "the sender's kernel does not report it (busy_time needs Linux 4.10)";
            elapsed += rows.elapsed_us();
            busy += rows.growth(Column::busy_time_us).ok_or(absent)?;
            window += rows.growth(Column::rwnd_limited_us).ok_or(absent)?;
            buffer += rows.growth(Column::sndbuf_limited_us).ok_or(absent)?;
        }
        KernelClocks::of(elapsed, [busy, window, buffer], span)
            .ok_or("too few samples of the sender's kernel over the plateau".to_owned())
    }

    /// The sum over the streams of the median of what lay unread, over the plateau (which stands on the
    /// receiver's clock whenever the receiver is known).
    fn unread(&self, record: &RunRecord) -> Option<f64> {
        let span = self.plateau_span_ns()?;
        let medians: Option<Vec<f64>> = record
            .end(self.flow.receiver())?
            .streams_of(self.flow)
            .map(|stream| {
                statistics::median(&Rows::within(stream, span)?.values(Column::unread_bytes)?)
            })
            .collect();
        medians.map(|values| values.iter().sum())
    }

    fn path_figures(&self, record: &RunRecord, measured_by: Role) -> Option<PathFigures> {
        if record.plan.protocol != Protocol::Tcp {
            return None;
        }
        let role = self.flow.sender();
        let end = record.end(role)?;
        let span = self.plateau_on(record, measured_by, role)?;
        let streams: Vec<&StreamRecord> = end.streams_of(self.flow).collect();
        let gather = |of: &dyn Fn(&Rows<'_>) -> Option<Vec<f64>>| -> Vec<f64> {
            streams
                .iter()
                .filter_map(|stream| of(&Rows::within(stream, span)?))
                .flatten()
                .collect()
        };
        let product = |rows: &Rows<'_>, packets: Column| -> Option<Vec<f64>> {
            let mss = rows.values(Column::snd_mss_bytes)?;
            Some(
                rows.values(packets)?
                    .iter()
                    .zip(mss)
                    .map(|(packets, mss)| packets * mss)
                    .collect(),
            )
        };
        let rtt = gather(&|rows| rows.values(Column::rtt_us));
        let total = |column: Column| -> Option<u64> {
            streams
                .iter()
                .map(|stream| stream.samples.last(column))
                .sum::<Option<u64>>()
        };
        let least = streams.iter().copied().filter_map(round_trip::least_us);
        Some(PathFigures {
            rtt_us: (!rtt.is_empty()).then(|| statistics::mean(&rtt)),
            min_rtt_us: least.min().map(|rtt| rtt as f64),
            retransmits: total(Column::total_retrans_packets),
            received_twice: total(Column::dsack_dups_packets),
            overtaken: total(Column::reord_seen),
            data_segments: total(Column::data_segs_out),
            receive_window_bytes: statistics::median(&gather(&|rows| {
                rows.values(Column::snd_wnd_bytes)
            })),
            congestion_window_bytes: statistics::median(&gather(&|rows| {
                product(rows, Column::snd_cwnd_packets)
            })),
            in_flight_bytes: statistics::median(&gather(&|rows| {
                product(rows, Column::unacked_packets)
            })),
            notsent_bytes: statistics::median(&gather(&|rows| rows.values(Column::notsent_bytes))),
            send_buffer_bytes: streams
                .iter()
                .filter_map(|stream| stream.send_buffer_bytes)
                .max(),
            mss_bytes: streams
                .iter()
                .filter_map(|stream| stream.samples.last(Column::snd_mss_bytes))
                .max(),
        })
    }
}

/// From the start of the test at the measuring end, or the end of the omitted part, to the last byte or
/// the end of the test, whichever came first: draining afterwards is no part of the plateau.
fn span(end: &EndRecord, streams: &[&StreamRecord]) -> Option<(u64, u64)> {
    let first = streams
        .iter()
        .filter_map(|stream| stream.first_byte_ns)
        .min()?;
    let omitted = streams
        .iter()
        .filter_map(|stream| stream.omit_until_ns)
        .min();
    // A byte before the start would be a record's slip; its own instant is then the better one.
    let from = omitted.unwrap_or(end.start_ns.min(first)).0;
    let last = streams
        .iter()
        .filter_map(|stream| stream.last_byte_ns)
        .max()?
        .0;
    let to = if end.end_ns.0 > from {
        last.min(end.end_ns.0)
    } else {
        last
    };
    (to > from).then_some((from, to))
}

/// What a stream moved without the omitted part, at the place where the direction is measured.
fn counted(stream: &StreamRecord, flow: Flow, acknowledged: bool) -> u64 {
    let app = stream.app_bytes.saturating_sub(stream.omitted_bytes);
    if !acknowledged || stream.drained {
        return app;
    }
    // Not drained: what was written and never acknowledged was not delivered.
    let cookie = if flow == Flow::ClientToServer {
        stream.cookie_bytes
    } else {
        0
    };
    let around = cookie.saturating_add(u64::from(stream.active_opener));
    let acked = stream
        .tcp
        .as_ref()
        .and_then(|facts| facts.bytes_acked)
        .or_else(|| stream.samples.last(Column::bytes_acked));
    acked.map_or(app, |acked| {
        acked
            .saturating_sub(around)
            .saturating_sub(stream.omitted_bytes)
            .min(app)
    })
}

/// When the last acknowledgement was seen, but for that of the FIN: what was written last is then
/// delivered.
fn acknowledged_at(stream: &StreamRecord) -> Option<u64> {
    let column = stream.samples.column(Column::bytes_acked)?;
    let all = column.last()?.saturating_sub(1);
    let row = column.partition_point(|acked| *acked < all);
    stream.samples.at_ns().get(row).copied()
}

/// A cumulative count between samples, by linear interpolation; asked in order of time.
struct Curve<'a> {
    at: &'a [u64],
    values: &'a [u64],
    row: usize,
}

impl<'a> Curve<'a> {
    fn new(at: &'a [u64], values: &'a [u64]) -> Self {
        Self { at, values, row: 0 }
    }

    fn at(&mut self, instant: u64) -> f64 {
        let Some(last) = self.at.len().checked_sub(1) else {
            return 0.0;
        };
        while self.row < last && self.at[self.row + 1] <= instant {
            self.row += 1;
        }
        let (here, value) = (self.at[self.row], self.values[self.row] as f64);
        if self.row == last || instant <= here {
            return value;
        }
        let (next, next_value) = (self.at[self.row + 1], self.values[self.row + 1] as f64);
        value + (next_value - value) * (instant - here) as f64 / (next - here).max(1) as f64
    }
}

/// The rows of a stream's samples within a span.
pub(crate) struct Rows<'a> {
    stream: &'a StreamRecord,
    from: usize,
    to: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn within(stream: &'a StreamRecord, [from, to]: [u64; 2]) -> Option<Self> {
        let at = stream.samples.at_ns();
        let rows = Self {
            stream,
            from: at.partition_point(|t| *t < from),
            to: at.partition_point(|t| *t <= to),
        };
        (rows.to >= rows.from + 2).then_some(rows)
    }

    fn values(&self, column: Column) -> Option<Vec<f64>> {
        Some(
            self.stream.samples.column(column)?[self.from..self.to]
                .iter()
                .map(|value| *value as f64)
                .collect(),
        )
    }

    pub(crate) fn growth(&self, column: Column) -> Option<f64> {
        let values = self.stream.samples.column(column)?;
        Some(values[self.to - 1].saturating_sub(values[self.from]) as f64)
    }

    pub(crate) fn elapsed_us(&self) -> f64 {
        let at = self.stream.samples.at_ns();
        at[self.to - 1].saturating_sub(at[self.from]) as f64 / 1e3
    }
}
