//! What a running test shows where no terminal is: plain lines. For a terminal there is [`crate::live`].
//!
//! Figures are of the end that shows them: `sent` is what its kernel took over, `received` what its
//! application read.
//!
//! ```
//! use linerate_model::{plan::Plan, progress::Event};
//! use linerate_report::progress::Progress;
//!
//! let progress = Progress::new(&Plan::new("server"));
//! assert_eq!(progress.line(&Event::Ending).as_deref(), Some("Ending: draining the data in flight"));
//! ```

use linerate_analysis::statistics;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::Plan;
use linerate_model::progress::{Event, Interval, StreamInterval, StreamOpened};
use linerate_model::units::{BitRate, Bytes};

use crate::words;

/// With more streams than these only their sum is shown.
const EACH_UP_TO: usize = 4;

/// The formatter; it keeps no state but the plan.
#[derive(Debug, Clone)]
pub struct Progress {
    host: PlainText,
    port: u16,
    udp: bool,
}

/// Streams of an interval added up.
pub(crate) struct Sum {
    pub(crate) sends: bool,
    bytes: u64,
    pub(crate) bps: Option<u64>,
    pub(crate) retransmits: Option<u64>,
    pub(crate) rtt_us: Option<f64>,
    pub(crate) lost: Option<(i64, u64)>,
    streams: usize,
}

impl Progress {
    /// For a test of this plan.
    pub fn new(plan: &Plan) -> Self {
        Self {
            host: plan.host.clone(),
            port: plan.port,
            udp: plan.protocol == linerate_model::plan::Protocol::Udp,
        }
    }

    /// Lines for a pipe, without the last newline; `None` where there is nothing to say.
    pub fn line(&self, event: &Event) -> Option<String> {
        match event {
            Event::Connected { control, .. } => Some(format!(
                "Connected to {} port {} ({})",
                self.host,
                self.port,
                control
                    .peer_software
                    .as_deref()
                    .or(control.iperf2.as_deref())
                    .unwrap_or("a stock iperf3")
            )),
            Event::Opened { streams } => Some(opened(streams)),
            Event::Started => None,
            Event::Interval(interval) => Some(self.interval(interval)),
            Event::Ending => Some("Ending: draining the data in flight".to_owned()),
            Event::Warning { text } => Some(format!("warning: {text}")),
        }
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
            words::with(sum.bps, words::rate),
        );
        let again = sum.retransmits.map(retransmits);
        for part in again.into_iter().chain(sum.details(self.udp)) {
            text.push_str("  ");
            text.push_str(&part);
        }
        if interval.omitted {
            text.push_str("  (omitted)");
        }
        text.trim_end().to_owned()
    }
}

impl Sum {
    /// Round-trip time, and datagrams that did not arrive.
    pub(crate) fn details(&self, udp: bool) -> impl Iterator<Item = String> {
        let rtt = self.rtt_us.map(|rtt| format!("RTT {}", words::micros(rtt)));
        let lost = self.lost.filter(|_| udp && !self.sends);
        let lost = lost.map(|(lost, all)| format!("{lost} of {} missing", words::count(all)));
        rtt.into_iter().chain(lost)
    }
}

/// `1 retransmit`, `3,210 retransmits`.
pub(crate) fn retransmits(count: u64) -> String {
    let plural = words::when(count != 1, "s");
    format!("{} retransmit{plural}", words::count(count))
}

fn opened(streams: &[StreamOpened]) -> String {
    if streams.len() > EACH_UP_TO {
        return format!("{} streams connected", streams.len());
    }
    let lines: Vec<String> = streams
        .iter()
        .map(|stream| {
            let (from, to) = if stream.sends {
                (&stream.local, &stream.remote)
            } else {
                (&stream.remote, &stream.local)
            };
            let mss = words::with(stream.mss_bytes, |mss| format!(", MSS {mss} B"));
            format!("Stream {}: {} → {}{mss}", stream.id, from, to)
        })
        .collect();
    lines.join("\n")
}

/// One sum for what this end sends and one for what it receives.
pub(crate) fn sums(streams: &[StreamInterval]) -> Vec<Sum> {
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
    let rtts = tcp.iter().flatten().map(|tcp| tcp.rtt_us as f64);
    let rtts: Vec<f64> = rtts.filter(|rtt| *rtt > 0.0).collect();
    let bytes = streams.iter().map(|stream| stream.bytes);
    let mut rates = streams.iter().map(rate);
    Sum {
        sends: streams.first().is_some_and(|stream| stream.sends),
        bytes: bytes.fold(0, u64::saturating_add),
        bps: rates.try_fold(0_u64, |sum, rate| Some(sum.saturating_add(rate?))),
        retransmits: tcp.map(|all| {
            let again = all.iter().map(|tcp| tcp.retransmits);
            again.fold(0, u64::saturating_add)
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
