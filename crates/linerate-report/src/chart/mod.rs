//! A run's samples as charts: lines over time, ready to be drawn.
//!
//! The time axis of all charts is the same: nanoseconds since the client let its streams go (the server, where
//! only its half is known), with the other end's samples moved by the difference of the clocks. Values are
//! whole numbers of the chart's [`Unit`]. Nothing here is thinned; [`thin`] says how a drawing is.

mod axis;
mod collect;
mod host;
pub mod scale;
pub(crate) mod svg;
mod tcp;
pub mod thin;
mod udp;
mod windows;

use linerate_analysis::evidence::Evidence;
use linerate_analysis::time_budget::Class;
use linerate_model::record::Flow;

use crate::view::RunView;
pub use scale::Unit;

/// A value at an instant; without one the line is broken there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// ns since the start.
    pub at_ns: i64,
    /// The value, in the chart's unit.
    pub value: Option<u64>,
}

/// How points are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// By straight lines: samples of a gauge.
    Curve,
    /// A value holds until the next point: means and counts over windows of time.
    Step,
}

/// How a line is stroked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// The line that matters.
    Strong,
    /// One of several.
    Plain,
    /// Behind the others.
    Faint,
    /// Of another kind than the plain ones: the other end, the other place.
    Dashed,
    /// A bound: a window, a threshold. One far above the other lines does not press them to the axis, but
    /// runs along the upper edge.
    Dotted,
    /// Filled down to zero.
    Filled,
}

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// The direction's rate.
    Goodput,
    /// Rates of the streams, at both ends.
    Streams,
    /// Rates of the streams as they were read.
    StreamsRead,
    /// Rates of the streams as they were acknowledged.
    StreamsAcknowledged,
    /// The congestion window and its threshold.
    CongestionWindow,
    /// Bytes in flight, and the receive window.
    InFlight,
    /// The round-trip time.
    Rtt,
    /// Segments retransmitted in each window of time.
    Retransmits,
    /// What waits in socket buffers.
    Buffers,
    /// Datagrams lost, reordered, duplicated.
    Datagrams,
    /// How long datagrams were on their way.
    Delay,
    /// A host's processors.
    Cpu,
    /// Threads of a host's streams.
    Threads,
    /// What a host dropped.
    Drops,
}

impl Panel {
    /// Its part of a chart's id, its title where that does not depend on the run, and the unit of its values.
    const fn facts(self) -> (&'static str, &'static str, Unit) {
        match self {
            Self::Goodput => ("goodput", "Goodput", Unit::Rate),
            Self::Streams => ("streams", "Rate of each stream, both ends", Unit::Rate),
            Self::StreamsRead => (
                "streams-read",
                "Rate of each stream at the receiver",
                Unit::Rate,
            ),
            Self::StreamsAcknowledged => (
                "streams-acknowledged",
                "Rate of each stream at the sender",
                Unit::Rate,
            ),
            Self::CongestionWindow => (
                "congestion-window",
                "Congestion window and ssthresh",
                Unit::Bytes,
            ),
            Self::InFlight => (
                "in-flight",
                "Bytes in flight and receive window",
                Unit::Bytes,
            ),
            Self::Rtt => ("rtt", "Round-trip time", Unit::Micros),
            Self::Retransmits => ("retransmits", "Retransmits", Unit::Count),
            Self::Buffers => ("buffers", "Waiting in the socket buffers", Unit::Bytes),
            Self::Datagrams => (
                "datagrams",
                "Datagrams lost, reordered, duplicated",
                Unit::Count,
            ),
            Self::Delay => ("delay", "One-way delay", Unit::Micros),
            Self::Cpu => ("cpu", "Processors", Unit::Share),
            Self::Threads => ("threads", "Threads of the streams", Unit::Share),
            Self::Drops => ("drops", "Drops on the host", Unit::Count),
        }
    }
}

/// A direction's part of a chart's id.
pub(crate) const fn flow_name(flow: Flow) -> &'static str {
    match flow {
        Flow::ClientToServer => "c2s",
        Flow::ServerToClient => "s2c",
    }
}

/// A curve of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// What its kind is called where lines of many streams share a panel; absent = the panel's own subject.
    pub kind: Option<String>,
    /// The stream that it is about; absent = several, or the host.
    pub stream: Option<u32>,
    /// Its colour, an index into the palette.
    pub colour: usize,
    /// How prominent it is; dashed for the other end or place.
    pub stroke: Stroke,
    /// How its points are joined.
    pub shape: Shape,
    /// Its points, in the order of time.
    pub points: Vec<Point>,
}

/// A mean with its interval over a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Begin, ns since the start.
    pub from_ns: i64,
    /// End.
    pub to_ns: i64,
    /// Mean over the span, in the unit of the chart.
    pub mean: u64,
    /// Its interval of confidence.
    pub interval: Option<[u64; 2]>,
}

/// What most of the sending streams' time went to, over a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// Begin, ns since the start.
    pub from_ns: i64,
    /// End.
    pub to_ns: i64,
    /// What it went to.
    pub class: Class,
}

/// Curves on one pair of axes over the time of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// What it shows, of whichever direction or host.
    pub panel: Panel,
    /// A stable name, unique in the run: `congestion-window-c2s`.
    pub id: String,
    /// The direction that it is about; absent = a host.
    pub flow: Option<Flow>,
    /// What it shows.
    pub title: &'static str,
    /// Where its values come from, and over what they are taken.
    pub about: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Its lines; none is without a value.
    pub lines: Vec<Line>,
    /// The plateau, where it shows one.
    pub level: Option<Level>,
}

/// The charts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charts {
    /// The first instant that a chart shows, ns since the start.
    pub from_ns: i64,
    /// The last one.
    pub to_ns: i64,
    /// Where the omitted part ends.
    pub omitted_to_ns: Option<i64>,
    /// When the test was ended; what was under way then still arrived.
    pub ended_ns: Option<i64>,
    /// The plateau of each direction that has one.
    pub plateaus: Vec<(Flow, [i64; 2])>,
    /// What the time of each direction's sending streams went to, in the order of time.
    pub bands: Vec<(Flow, Vec<Band>)>,
    /// What each finding rests on, in the view's order.
    pub evidence: Vec<Option<[i64; 2]>>,
    /// The charts: each direction's, then the hosts'.
    pub charts: Vec<Chart>,
}

impl Charts {
    /// The charts of a run, from the evidence that its view was made of. They are apart from the view because they
    /// take longer than all of it, and only pictures have them.
    pub fn of(view: &RunView, evidence: &Evidence<'_>) -> Self {
        Self::whole(view, evidence).condensed()
    }

    /// The same with every point, also those that a drawing does not need.
    pub fn whole(view: &RunView, evidence: &Evidence<'_>) -> Self {
        collect::charts(view, evidence)
    }

    /// Without the points that change no drawing.
    #[must_use]
    pub fn condensed(mut self) -> Self {
        for line in self.charts.iter_mut().flat_map(|chart| &mut chart.lines) {
            line.points = thin::condensed(&line.points);
        }
        self
    }

    /// What a direction's time went to; nothing where that is not known.
    pub fn bands_of(&self, flow: Option<Flow>) -> &[Band] {
        let mut all = self.bands.iter();
        all.find(|(of, _)| Some(*of) == flow)
            .map_or(&[], |(_, bands)| bands)
    }

    /// The charts of a direction; of the hosts for `None`.
    pub fn about(&self, flow: Option<Flow>) -> impl Iterator<Item = &Chart> {
        self.charts.iter().filter(move |chart| chart.flow == flow)
    }
}

impl Chart {
    /// A chart of a direction or of a host, named `whose` in its id.
    fn of(panel: Panel, whose: &str, about: impl Into<String>, lines: Vec<Line>) -> Self {
        let (name, title, unit) = panel.facts();
        Self {
            panel,
            id: format!("{name}-{whose}"),
            flow: None,
            title,
            about: about.into(),
            unit,
            lines,
            level: None,
        }
    }

    /// The value that its axis has to reach: the largest of its lines and of its level; of bounds, what lies
    /// within [`BOUND_SHOWN`] times that.
    pub fn most(&self) -> u64 {
        let level = self
            .level
            .map(|level| level.interval.map_or(level.mean, |[_, high]| high));
        let of = |bounds: bool| {
            let lines = self.lines.iter();
            lines
                .filter(move |line| (line.stroke == Stroke::Dotted) == bounds)
                .filter_map(Line::most)
                .max()
        };
        let bound = of(true).unwrap_or(0);
        match of(false).max(level).filter(|most| *most > 0) {
            Some(most) => {
                let shown = linerate_model::units::whole(most as f64 * BOUND_SHOWN);
                most.max(bound.min(shown))
            }
            None => bound,
        }
    }
}

/// Bounds are shown up to this many times the largest of the other lines.
pub const BOUND_SHOWN: f64 = 1.5;

impl Line {
    /// A line of steps that is about no stream alone.
    fn steps(name: impl Into<String>, colour: usize, stroke: Stroke, points: Vec<Point>) -> Self {
        Self {
            name: name.into(),
            kind: None,
            stream: None,
            colour: colour % COLOURS,
            stroke,
            shape: Shape::Step,
            points,
        }
    }

    /// Its largest value.
    pub fn most(&self) -> Option<u64> {
        self.points.iter().filter_map(|point| point.value).max()
    }

    /// Its name; of a bound that lies beyond its chart's axis, which reaches `most`, with how far.
    pub fn named(&self, unit: Unit, most: u64) -> String {
        match self
            .most()
            .filter(|own| self.stroke == Stroke::Dotted && *own > most)
        {
            Some(own) => format!(
                "{} (up to {}, above the axis)",
                self.name,
                unit.spelled(own)
            ),
            None => self.name.clone(),
        }
    }

    /// Its smallest value.
    pub fn least(&self) -> Option<u64> {
        self.points.iter().filter_map(|point| point.value).min()
    }
}

/// Colours before they come again.
pub const COLOURS: usize = 8;
