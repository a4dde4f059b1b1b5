//! What a running test shows: plain lines for a pipe, one line that overwrites itself for a terminal.
//!
//! Figures are of the end that shows them: `sent` is what its kernel took over, `received` what its
//! application read.
//!
//! ```
//! use linerate_model::{plan::Plan, progress::Event};
//! use linerate_report::progress::Progress;
//!
//! let progress = Progress::new(&Plan::new("server"));
//! assert_eq!(progress.line(&Event::Ending).as_deref(), Some("Ending: draining what is under way"));
//! ```

use linerate_analysis::statistics;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::Plan;
use linerate_model::progress::{Event, Interval, StreamInterval, StreamOpened};
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::words;

/// With more streams than these only their sum is shown.
const EACH_UP_TO: usize = 4;

/// The formatter; it keeps no state but the plan.
#[derive(Debug, Clone)]
pub struct Progress {
    host: PlainText,
    port: u16,
    udp: bool,
    /// It may end before its time.
    precise: bool,
}

/// Streams of an interval added up.
struct Sum {
    sends: bool,
    bytes: u64,
    bps: Option<u64>,
    retransmits: Option<u64>,
    rtt_us: Option<f64>,
    lost: Option<(i64, u64)>,
    streams: usize,
}

impl Progress {
    /// For a test of this plan.
    pub fn new(plan: &Plan) -> Self {
        Self {
            host: plan.host.clone(),
            port: plan.port,
            udp: plan.protocol == linerate_model::plan::Protocol::Udp,
            precise: plan.precision.is_some(),
        }
    }

    /// Lines for a pipe, without the last newline; `None` where there is nothing to say.
    pub fn line(&self, event: &Event) -> Option<String> {
        match event {
            Event::Connected { control, .. } => Some(format!(
                "Connected to {} port {} ({})",
                self.host,
                self.port,
                control.peer_software.as_deref().unwrap_or("a stock iperf3")
            )),
            Event::Opened { streams } => Some(opened(streams)),
            Event::Started => None,
            Event::Interval(interval) => Some(self.interval(interval)),
            Event::Ending => Some("Ending: draining what is under way".to_owned()),
            Event::Warning { text } => Some(format!("warning: {text}")),
        }
    }

    /// What the status line of a terminal of `width` columns becomes. A warning ends with a line end and is left standing
    /// on a line of its own; the end leaves the line empty.
    pub fn status(&self, event: &Event, width: usize) -> Option<String> {
        let text = match event {
            Event::Connected { .. } => format!("connected to {} port {}", self.host, self.port),
            Event::Opened { .. } | Event::Started => return None,
            Event::Interval(interval) => self.short(interval),
            Event::Ending => return Some(String::new()),
            Event::Warning { text } => return Some(format!("warning: {text}\n")),
        };
        // The last column stays free: a terminal wraps there.
        let fits: String = text.chars().take(width.saturating_sub(1)).collect();
        Some(fits)
    }

    fn interval(&self, interval: &Interval) -> String {
        let sums = sums(&interval.streams);
        let each = interval.streams.len() > sums.len()
            && interval.streams.len() <= EACH_UP_TO * sums.len().max(1);
        let mut lines = Vec::new();
        if each {
            for stream in &interval.streams {
                lines.push(self.row(interval, &format!("{:>3}", stream.id), &add(&[stream])));
            }
        }
        for sum in &sums {
            let name = if sum.streams > 1 { "sum" } else { "   " };
            lines.push(self.row(interval, name, sum));
        }
        lines.join("\n")
    }

    fn row(&self, interval: &Interval, name: &str, sum: &Sum) -> String {
        let mut text = format!(
            "{:>7.2} - {:>7.2} s  {name}  {:>10} {:<8}  {:>11}",
            interval.from_ns.as_secs_f64(),
            interval.to_ns.as_secs_f64(),
            Bytes(sum.bytes).to_string(),
            if sum.sends { "sent" } else { "received" },
            sum.bps.map_or_else(String::new, words::rate),
        );
        for part in self.details(sum) {
            text.push_str("  ");
            text.push_str(&part);
        }
        if interval.omitted {
            text.push_str("  (omitted)");
        }
        text.trim_end().to_owned()
    }

    fn details(&self, sum: &Sum) -> Vec<String> {
        let mut parts = Vec::new();
        if let Some(count) = sum.retransmits {
            parts.push(format!(
                "{} retransmit{}",
                words::count(count),
                if count == 1 { "" } else { "s" }
            ));
        }
        parts.extend(sum.rtt_us.map(|rtt| format!("RTT {}", words::micros(rtt))));
        if let (true, false, Some((lost, all))) = (self.udp, sum.sends, sum.lost) {
            parts.push(format!("{lost} of {} missing", words::count(all)));
        }
        parts
    }

    fn short(&self, interval: &Interval) -> String {
        let mut parts: Vec<String> = Vec::new();
        for sum in sums(&interval.streams) {
            let way = if sum.sends { "sending" } else { "receiving" };
            parts.push(format!(
                "{way} {}",
                sum.bps.map_or_else(|| "-".to_owned(), words::rate)
            ));
            parts.extend(self.details(&sum));
        }
        if interval.omitted {
            parts.push("omitted".to_owned());
        }
        parts.push(match interval.left_ns {
            Some(left) if self.precise => format!("at most {} left", whole_seconds(left)),
            Some(left) => format!("{} left", whole_seconds(left)),
            None => format!("{} so far", whole_seconds(interval.to_ns)),
        });
        parts.join(", ")
    }
}

fn whole_seconds(span: Nanos) -> String {
    format!("{:.0} s", span.as_secs_f64())
}

fn opened(streams: &[StreamOpened]) -> String {
    if streams.len() > EACH_UP_TO {
        return format!("{} streams stand", streams.len());
    }
    let lines: Vec<String> = streams
        .iter()
        .map(|stream| {
            let (from, to) = if stream.sends {
                (&stream.local, &stream.remote)
            } else {
                (&stream.remote, &stream.local)
            };
            let mss = stream
                .mss_bytes
                .map_or_else(String::new, |mss| format!(", MSS {mss} B"));
            format!("Stream {}: {} → {}{mss}", stream.id, from, to)
        })
        .collect();
    lines.join("\n")
}

/// One sum for what this end sends and one for what it receives.
fn sums(streams: &[StreamInterval]) -> Vec<Sum> {
    [true, false]
        .into_iter()
        .filter_map(|sends| {
            let part: Vec<&StreamInterval> = streams
                .iter()
                .filter(|stream| stream.sends == sends)
                .collect();
            (!part.is_empty()).then(|| add(&part))
        })
        .collect()
}

/// Rates of streams add up, each over its own measured duration.
fn add(streams: &[&StreamInterval]) -> Sum {
    let rate = |stream: &&StreamInterval| {
        BitRate::of(Bytes(stream.bytes), stream.to_ns.since(stream.from_ns)).map(|rate| rate.0)
    };
    let tcp: Option<Vec<_>> = streams.iter().map(|stream| stream.tcp).collect();
    let udp: Option<Vec<_>> = streams.iter().map(|stream| stream.udp).collect();
    let rtts: Vec<f64> = tcp
        .iter()
        .flatten()
        .map(|tcp| tcp.rtt_us as f64)
        .filter(|rtt| *rtt > 0.0)
        .collect();
    Sum {
        sends: streams.first().is_some_and(|stream| stream.sends),
        bytes: streams
            .iter()
            .fold(0, |sum, stream| sum.saturating_add(stream.bytes)),
        bps: streams
            .iter()
            .map(rate)
            .try_fold(0_u64, |sum, rate| Some(sum.saturating_add(rate?))),
        retransmits: tcp.map(|all| {
            all.iter()
                .fold(0_u64, |sum, tcp| sum.saturating_add(tcp.retransmits))
        }),
        rtt_us: (!rtts.is_empty()).then(|| statistics::mean(&rtts)),
        lost: udp.map(|all| {
            all.iter().fold((0, 0), |(lost, packets), udp| {
                (
                    udp.lost.saturating_add(lost),
                    udp.packets.saturating_add(packets),
                )
            })
        }),
        streams: streams.len(),
    }
}
