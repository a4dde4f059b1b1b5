//! All charts of a run.

use linerate_analysis::evidence::{DirectionEvidence, Evidence, Place};
use linerate_analysis::{round_trip, statistics};
use linerate_model::column::Column;
use linerate_model::plan::Protocol;
use linerate_model::record::{EndRecord, Flow, Role, RunRecord, StreamRecord};
use linerate_model::units::{Nanos, whole};

use super::axis::Axis;
use super::windows;
use super::{
    Band, COLOURS, Chart, Charts, Level, Line, Panel, Point, Shape, Stroke, flow_name, host, tcp,
    udp,
};
use crate::view::{DirectionView, MeasuredAt, RunView};

/// A stream's samples at one end, with their instants on the axis.
pub(super) struct Sampled<'a> {
    pub(super) stream: &'a StreamRecord,
    pub(super) role: Role,
    /// Its place among the streams of its direction, which gives its colour.
    pub(super) place: usize,
    /// Whether its direction has no other.
    alone: bool,
    times: Vec<i64>,
}

/// What the charts of a direction are made from.
pub(super) struct Ground<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) flow: Flow,
    pub(super) axis: Axis,
    pub(super) sender: Vec<Sampled<'a>>,
    pub(super) receiver: Vec<Sampled<'a>>,
    /// The window of its rates and counts, ns.
    window_ns: u64,
}

pub(super) fn charts(view: &RunView, evidence: &Evidence<'_>) -> Charts {
    let record = evidence.record;
    let axis = Axis::of(record);
    let mut charts = Vec::new();
    let mut plateaus = Vec::new();
    for direction in &evidence.directions {
        let flow = direction.flow;
        let ground = Ground::of(record, axis, flow);
        let role = direction.measured_at.end(flow);
        if let Some(span) = direction.plateau_span_ns() {
            plateaus.push((flow, span.map(|at| axis.at(role, at))));
        }
        charts.extend(goodput(view, direction, &ground, role));
        match record.plan.protocol {
            Protocol::Tcp => charts.extend(tcp::charts(&ground)),
            Protocol::Udp => {
                let shown = view.directions.iter().find(|of| of.flow == flow);
                let delays = shown.and_then(|direction| direction.delay.as_ref());
                charts.extend(udp::charts(&ground, delays));
            }
            // Beside the goodput nothing of it is sampled.
            Protocol::Sctp => {}
        }
    }
    charts.extend(host::charts(evidence, axis));
    for chart in &mut charts {
        chart.lines.retain(|line| line.most().is_some());
    }
    charts.retain(|chart| !chart.lines.is_empty());
    let times = || {
        let lines = charts.iter().flat_map(|chart| &chart.lines);
        lines.flat_map(|line| line.points.first().into_iter().chain(line.points.last()))
    };
    let rests_on = view.findings.iter().map(|finding| {
        let of =
            |direction: &&DirectionEvidence| finding.flow.is_none_or(|of| of == direction.flow);
        let direction = evidence.directions.iter().find(of)?;
        let role = direction.measured_at.end(direction.flow);
        let span = finding.span_ns?;
        Some(span.map(|since| axis.since_start(role, since)))
    });
    Charts {
        from_ns: times().map(|point| point.at_ns).min().unwrap_or(0).min(0),
        to_ns: times().map(|point| point.at_ns).max().unwrap_or(0).max(1),
        omitted_to_ns: omitted(record, axis),
        ended_ns: ended(record, axis),
        plateaus,
        bands: bands(view, axis),
        evidence: rests_on.collect(),
        charts,
    }
}

fn ends(record: &RunRecord) -> impl Iterator<Item = (Role, &EndRecord)> {
    let roles = [Role::Client, Role::Server].into_iter();
    roles.filter_map(|role| Some((role, record.end(role)?)))
}

fn omitted(record: &RunRecord, axis: Axis) -> Option<i64> {
    let until = ends(record).flat_map(|(role, end)| {
        let streams = end.streams.iter();
        streams.filter_map(move |stream| Some(axis.at(role, stream.omit_until_ns?.0)))
    });
    until.min()
}

fn bands(view: &RunView, axis: Axis) -> Vec<(Flow, Vec<Band>)> {
    let of = |direction: &DirectionView| {
        let at = |since: u64| axis.since_start(direction.flow.sender(), since);
        let bands = direction.bands.iter().map(|band| Band {
            from_ns: at(band.from_ns),
            to_ns: at(band.to_ns),
            class: band.class,
        });
        (direction.flow, bands.collect())
    };
    view.directions.iter().map(of).collect()
}

fn ended(record: &RunRecord, axis: Axis) -> Option<i64> {
    ends(record)
        .map(|(role, end)| axis.at(role, end.end_ns.0))
        .min()
}

fn sampled(record: &RunRecord, axis: Axis, flow: Flow, role: Role) -> Vec<Sampled<'_>> {
    let streams = || {
        let end = record.end(role).into_iter();
        end.flat_map(|end| end.streams_of(flow)).enumerate()
    };
    let alone = streams().count() == 1;
    let sampled = streams().map(|(place, stream)| {
        let at = stream.samples.at_ns().iter();
        Sampled {
            alone,
            stream,
            role,
            place,
            times: at.map(|at| axis.at(role, *at)).collect(),
        }
    });
    sampled.collect()
}

/// The direction's rate at the place where it is measured best: fine, over the plan's intervals, and the plateau.
fn goodput(
    view: &RunView,
    direction: &DirectionEvidence,
    ground: &Ground<'_>,
    role: Role,
) -> Option<Chart> {
    let flow = direction.flow;
    let axis = ground.axis;
    let (points, window_ns) = fine(direction, ground, role);
    let intervals = || {
        view.intervals
            .iter()
            .filter(|interval| interval.flow == flow)
    };
    let at = |since: u64, value| Point {
        at_ns: axis.at(role, direction.grid_from_ns.saturating_add(since)),
        value,
    };
    let begins = intervals().map(|interval| at(interval.from_ns, interval.bps));
    let end = intervals().next_back().map(|last| at(last.to_ns, last.bps));
    let coarse = begins.chain(end).collect();
    let figures = view
        .directions
        .iter()
        .find(|of| of.flow == flow)
        .map(|of| &of.figures)?;
    let level = direction
        .plateau_span_ns()
        .zip(figures.goodput_bps)
        .filter(|_| {
            figures.measured_at != Some(MeasuredAt::SendingApplication)
                && figures.measured_at != Some(MeasuredAt::ReceivingApplicationToldByPeer)
        });
    let step = Nanos(window_ns);
    let (title, place) = match direction.measured_at {
        Place::ReceivingApplication => ("Goodput", "read by the receiving application"),
        Place::Acknowledged => (
            "Goodput",
            "acknowledged, at the sending kernel: the receiver reports no samples",
        ),
        Place::SendingApplication => (
            "Rate sent",
            "handed to the sending kernel, which is not delivery",
        ),
    };
    let interval = format!("over {} s", view.plan.interval_ns.as_secs_f64());
    let lines = [
        Line::steps(format!("over {step}"), 0, Stroke::Faint, points),
        Line::steps(interval, 0, Stroke::Strong, coarse),
    ];
    let about = format!(
        "Payload of all streams together, {place}; mean over {step} (thin) and over the plan's interval (thick)"
    );
    Some(Chart {
        title,
        level: level.map(|(span, mean)| {
            let [from_ns, to_ns] = span.map(|at| axis.at(role, at));
            let interval = figures.goodput_low_bps.zip(figures.goodput_high_bps);
            Level {
                from_ns,
                to_ns,
                mean,
                interval: interval.map(|(low, high)| [low, high]),
            }
        }),
        ..ground.chart(Panel::Goodput, about, lines)
    })
}

/// The direction's rate over windows of several steps of its grid: single steps show single reads.
fn fine(direction: &DirectionEvidence, ground: &Ground<'_>, role: Role) -> (Vec<Point>, u64) {
    let step = direction.grid_step_ns.max(1);
    let steps = (ground.window_ns / step).max(1);
    let at = |number: u64| {
        ground.axis.at(
            role,
            direction
                .grid_from_ns
                .saturating_add(number.saturating_mul(step)),
        )
    };
    let chunks = direction
        .rates_bps
        .chunks(usize::try_from(steps).unwrap_or(1));
    let mut points: Vec<Point> = chunks
        .enumerate()
        .map(|(number, rates)| Point {
            at_ns: at(number as u64 * steps),
            value: Some(whole(statistics::mean(rates))),
        })
        .collect();
    if let Some(last) = points.last().copied() {
        let at_ns = at(direction.rates_bps.len() as u64);
        points.push(Point { at_ns, ..last });
    }
    (points, steps * step)
}

impl Sampled<'_> {
    /// A gauge at each sample; `of` says what a value means, `None` where it means that nothing is known.
    pub(super) fn gauge(
        &self,
        column: Column,
        of: impl Fn(usize, u64) -> Option<u64>,
    ) -> Vec<Point> {
        let values = self.stream.samples.column(column).unwrap_or_default();
        self.times
            .iter()
            .zip(values)
            .enumerate()
            .map(|(row, (at_ns, value))| Point {
                at_ns: *at_ns,
                value: of(row, *value),
            })
            .collect()
    }

    /// A count of segments as bytes, by the segment size of its moment.
    pub(super) fn segments_as_bytes(
        &self,
        column: Column,
        of: impl Fn(usize, u64) -> Option<u64>,
    ) -> Vec<Point> {
        let Some(mss) = self.stream.samples.column(Column::snd_mss_bytes) else {
            return Vec::new();
        };
        self.gauge(column, |row, segments| {
            Some(of(row, segments)?.saturating_mul(*mss.get(row)?))
        })
    }

    /// A counter's growth in each window; `scale` of it for each second, or as it is for `None`.
    pub(super) fn windowed(
        &self,
        ground: &Ground<'_>,
        column: Column,
        scale: Option<u128>,
    ) -> Vec<Point> {
        let (Some(end), Some(values)) = (
            ground.record.end(self.role),
            self.stream.samples.column(column),
        ) else {
            return Vec::new();
        };
        let at = self.stream.samples.at_ns();
        let to = at.last().copied().unwrap_or(0);
        let edges = windows::edges([end.start_ns.0, to], ground.window_ns);
        let growth = windows::growth(at, values, &edges);
        let values = match scale {
            Some(scale) => windows::per_second(&edges, &growth, scale),
            None => growth.into_iter().map(Some).collect(),
        };
        windows::steps(&ground.axis, self.role, &edges, &values)
    }

    /// A line of the rate at which a count of bytes grows.
    pub(super) fn rate_line(
        &self,
        ground: &Ground<'_>,
        column: Column,
        kind: usize,
        what: &str,
        stroke: Stroke,
    ) -> Line {
        let bits = self.windowed(ground, column, Some(8_000_000_000));
        self.line(kind, what, stroke, Shape::Step, bits)
    }

    /// A line of this stream, the `kind`th of its chart. A stream that is alone needs no name, and its lines
    /// differ in colour.
    pub(super) fn line(
        &self,
        kind: usize,
        what: &str,
        stroke: Stroke,
        shape: Shape,
        points: Vec<Point>,
    ) -> Line {
        let name = match (self.alone, what) {
            (_, "") => format!("stream {}", self.stream.id),
            (true, what) => what.to_owned(),
            (false, what) => format!("stream {}, {what}", self.stream.id),
        };
        let colour = if self.alone { kind } else { self.place };
        Line {
            name,
            kind: (!what.is_empty()).then(|| what.to_owned()),
            stream: Some(self.stream.id),
            colour: colour % COLOURS,
            stroke,
            shape,
            points,
        }
    }
}

impl<'a> Ground<'a> {
    fn of(record: &'a RunRecord, axis: Axis, flow: Flow) -> Self {
        let sender = sampled(record, axis, flow, flow.sender());
        let receiver = sampled(record, axis, flow, flow.receiver());
        let both = || sender.iter().chain(&receiver);
        let spans = both().filter_map(|of| {
            let start = record.end(of.role)?.start_ns.0;
            Some(of.stream.samples.at_ns().last()?.saturating_sub(start))
        });
        let round_trips = sender
            .iter()
            .filter_map(|of| Some(round_trip::least_us(of.stream)?.saturating_mul(1000)));
        let span = spans.max().unwrap_or(0);
        let round_trip = round_trips.min().unwrap_or(0);
        let window_ns = windows::length(span, record.plan.sample_ns.0, round_trip);
        Self {
            record,
            flow,
            axis,
            sender,
            receiver,
            window_ns,
        }
    }

    /// A chart of this direction.
    pub(super) fn chart(
        &self,
        panel: Panel,
        about: impl Into<String>,
        lines: impl IntoIterator<Item = Line>,
    ) -> Chart {
        let lines = lines.into_iter().collect();
        Chart {
            flow: Some(self.flow),
            ..Chart::of(panel, flow_name(self.flow), about, lines)
        }
    }

    /// The window of the rates, in words.
    pub(super) fn window(&self) -> String {
        Nanos(self.window_ns).to_string()
    }
}
