//! What a running test shows on a terminal: one block of lines that is drawn again at each interval.
//!
//! Figures are of the end that shows them, as in [`crate::progress`]. The limit is that of the interval by the sending
//! kernel's clocks alone; the report at the end knows more, and may say something else.
//!
//! ```
//! use linerate_model::{plan::Plan, progress::Event};
//! use linerate_report::live::Block;
//! use linerate_report::text::Style;
//!
//! let mut block = Block::new(&Plan::new("server"), Style::plain());
//! assert_eq!(block.show(&Event::Ending, 80), Some(Vec::new()));
//! ```

use linerate_analysis::evidence::KernelClocks;
use linerate_model::plan::{Plan, Protocol};
use linerate_model::progress::{Event, Interval, StreamInterval};
use linerate_model::units::Nanos;

use crate::progress::{Sum, retransmits, sums};
use crate::text::Style;
use crate::words;

/// The steps of a sparkline; the first is nothing at all.
const STEPS: [&str; 2] = [" ▁▂▃▄▅▆▇█", " .:-=+*%#"];
/// A sparkline is no longer than this.
const LONGEST: usize = 40;
/// Columns in front of a line's text.
const INDENT: usize = 11;

/// The block and what it has shown so far.
#[derive(Debug, Clone)]
pub struct Block {
    to: String,
    udp: bool,
    /// A rate was asked for: then an idle sender is none that a program holds up.
    paced: bool,
    /// It may end before its time.
    precise: bool,
    style: Style,
    /// What is sent, and what is received.
    ways: [Way; 2],
}

/// One way's figures so far.
#[derive(Debug, Clone, Default)]
struct Way {
    rates: Vec<u64>,
    retransmits: u64,
}

impl Block {
    /// For a test of this plan, on a terminal of this style.
    pub fn new(plan: &Plan, style: Style) -> Self {
        Self {
            to: format!("{} port {}", plan.host, plan.port),
            udp: plan.protocol == Protocol::Udp,
            paced: plan.rate_bps.or(plan.kernel_pacing_bps).is_some(),
            precise: plan.precision.is_some(),
            style,
            ways: [Way::default(), Way::default()],
        }
    }

    /// The lines that take the place of the block on a terminal of `width` columns, none where it ends; `None` where the event
    /// changes nothing. A warning is for standard error.
    pub fn show(&mut self, event: &Event, width: usize) -> Option<Vec<String>> {
        match event {
            Event::Connected { .. } => {
                Some(self.fit(vec![format!("Connected to {}", self.to)], width))
            }
            Event::Opened { .. } | Event::Started | Event::Warning { .. } => None,
            Event::Interval(interval) => {
                let lines = self.interval(interval, width);
                Some(self.fit(lines, width))
            }
            Event::Ending => Some(Vec::new()),
        }
    }

    /// Lines as wide as the terminal at most. Its last column stays free: it wraps there.
    fn fit(&self, lines: Vec<String>, width: usize) -> Vec<String> {
        let width = width.saturating_sub(1);
        let fits = |line: String| self.style.settle(line.chars().take(width).collect());
        lines.into_iter().map(fits).collect()
    }

    fn interval(&mut self, interval: &Interval, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for sum in sums(&interval.streams) {
            let way = &mut self.ways[usize::from(!sum.sends)];
            way.rates.extend(sum.bps);
            way.retransmits = way.retransmits.saturating_add(sum.retransmits.unwrap_or(0));
            let streams = interval.streams.iter();
            let limit = streams.filter(|stream| stream.sends == sum.sends);
            let limit = clocks(limit).map(|clocks| self.limit(&clocks));
            lines.push(self.rate_line(&sum, width));
            lines.extend(self.detail_line(&sum, limit));
        }
        let (now, left) = (interval.to_ns, interval.left_ns);
        let mut last = match left {
            Some(left) if self.precise => {
                format!("{}, at most {} left", seconds(now), seconds(left))
            }
            Some(left) => format!("{} of {}", seconds(now), seconds(Nanos(now.0 + left.0))),
            None => format!("{} so far", seconds(now)),
        };
        if interval.omitted {
            last.push_str(", left out of the result");
        }
        lines.push(format!("{:INDENT$}{last}", ""));
        lines
    }

    fn rate_line(&self, sum: &Sum, width: usize) -> String {
        let name = if sum.sends { "Sending" } else { "Receiving" };
        let rate = sum.bps.map_or_else(|| "-".to_owned(), words::rate);
        let line = self.sparkline(&self.ways[usize::from(!sum.sends)].rates, width);
        format!("{name:<INDENT$}{rate:>11}  {line}")
    }

    fn detail_line(&self, sum: &Sum, limit: Option<String>) -> Option<String> {
        let mut parts: Vec<String> = limit.into_iter().collect();
        if let Some(count) = sum.retransmits {
            let all = self.ways[usize::from(!sum.sends)].retransmits;
            let in_all = if all > count {
                format!(" ({} in all)", words::count(all))
            } else {
                String::new()
            };
            parts.push(retransmits(count) + &in_all);
        }
        parts.extend(sum.details(self.udp));
        (!parts.is_empty()).then(|| format!("{:INDENT$}{}", "", parts.join(", ")))
    }

    /// The latest rates as columns, the highest of the run as the tallest.
    fn sparkline(&self, rates: &[u64], width: usize) -> String {
        let room = width.saturating_sub(INDENT + 14).min(LONGEST);
        let steps: Vec<char> = self.style.pick(STEPS[0], STEPS[1]).chars().collect();
        let most = rates.iter().copied().max().unwrap_or(0).max(1);
        let step = |rate: &u64| {
            let height = u128::from(*rate) * (steps.len() as u128 - 1);
            let at = height.div_ceil(u128::from(most));
            usize::try_from(at).ok().and_then(|at| steps.get(at))
        };
        let shown = &rates[rates.len().saturating_sub(room)..];
        shown.iter().filter_map(step).collect()
    }

    /// What limited the interval, by the clocks of the kernel.
    fn limit(&self, clocks: &KernelClocks) -> String {
        let idle = if self.paced {
            "the requested rate"
        } else {
            "the sending program"
        };
        let (share, what) = [
            (clocks.network, "the network"),
            (clocks.receive_window, "the receive window"),
            (clocks.send_buffer, "the send buffer"),
            (clocks.application, idle),
        ]
        .into_iter()
        .fold(
            (-1.0, ""),
            |most, one| if one.0 > most.0 { one } else { most },
        );
        format!("limited by {what} {:.0} % of the time", share * 100.0)
    }
}

/// What the sending kernel's clocks say of all streams together; `None` where it does not tell.
fn clocks<'a>(streams: impl Iterator<Item = &'a StreamInterval>) -> Option<KernelClocks> {
    let (mut elapsed, mut counted, mut span) = (0.0, [0.0; 3], [u64::MAX, 0]);
    for stream in streams {
        let clocks = stream.tcp?.clocks?;
        elapsed += stream.to_ns.since(stream.from_ns).0 as f64 / 1e3;
        let of = [
            clocks.busy_us,
            clocks.rwnd_limited_us,
            clocks.sndbuf_limited_us,
        ];
        for (sum, one) in counted.iter_mut().zip(of) {
            *sum += one as f64;
        }
        span = [span[0].min(stream.from_ns.0), span[1].max(stream.to_ns.0)];
    }
    KernelClocks::of(elapsed, counted, span)
}

fn seconds(span: Nanos) -> String {
    format!("{:.0} s", span.as_secs_f64())
}
