//! iperf3's text at the end of a test.

use linerate_model::plan::{Plan, Protocol};
use linerate_model::record::{Outcome, Role, RunRecord};

use super::amounts::amount;
use super::summary::{CpuPercent, FlowSummary, Moved, StreamSummary, Summary};
use super::summary_udp::Datagrams;
use super::text::{SEPARATOR, figures, head, lost_of};
use super::timeline::Timeline;
use super::{Iperf3Settings, tag};
use crate::words;

/// All of them, without the title.
pub(super) fn lines(
    settings: &Iperf3Settings,
    timeline: &Timeline,
    record: &RunRecord,
) -> Vec<String> {
    let summary = Summary::new(record, timeline);
    let ending = Ending {
        settings,
        plan: &record.plan,
        summary: &summary,
    };
    let mut lines = Vec::new();
    if record.own_end().is_some_and(|end| !end.streams.is_empty()) {
        lines.push(SEPARATOR.to_owned());
        if settings.verbose {
            lines.push("Test Complete. Summary Results:".to_owned());
        }
        lines.push(ending.head());
        for flow in &summary.flows {
            ending.flow(flow, &mut lines);
        }
    }
    if settings.role == Role::Client {
        if settings.get_server_output {
            server_output(record, &mut lines);
        }
        if record.outcome == Outcome::Completed {
            lines.extend([String::new(), "iperf Done.".to_owned()]);
        }
    }
    lines
}

fn server_output(record: &RunRecord, lines: &mut Vec<String>) {
    let Some(peer) = &record.peer_results else {
        return;
    };
    if let Some(json) = &peer.output_json {
        let indented = serde_json::from_str(json).map(|value| super::json::pretty(&value, 0));
        lines.extend([String::new(), "Server JSON output:".to_owned()]);
        let indented = indented.as_deref().unwrap_or(json);
        lines.extend(indented.lines().map(str::to_owned));
    }
    if let Some(text) = &peer.output_text {
        lines.extend([String::new(), "Server output:".to_owned()]);
        lines.extend(text.lines().map(str::to_owned));
        lines.push(String::new());
    }
}

/// One end of a stream's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// What has a line for each side: a stream, or all of a direction together.
struct Subject<'a> {
    id: String,
    flow: &'a FlowSummary,
    sent: Option<Moved>,
    received: Option<Moved>,
    retransmits: Option<u64>,
    /// Blanks behind them: iperf3 has one more in a sum.
    after_retransmits: usize,
    udp: Option<Datagrams>,
}

struct Ending<'a> {
    settings: &'a Iperf3Settings,
    plan: &'a Plan,
    summary: &'a Summary,
}

impl Ending<'_> {
    /// iperf3's server knows its own side only.
    fn knows(&self, flow: &FlowSummary, side: Side) -> bool {
        self.settings.role == Role::Client || flow.sends == (side == Side::Sender)
    }

    /// With `-V` a server says what it does not know.
    fn shows(&self, flow: &FlowSummary, side: Side) -> bool {
        self.settings.verbose || self.knows(flow, side)
    }

    fn head(&self) -> String {
        if self.plan.protocol == Protocol::Udp {
            return head(self.plan, "         Jitter    Lost/Total Datagrams");
        }
        let mut senders = self
            .summary
            .flows
            .iter()
            .filter(|flow| self.shows(flow, Side::Sender));
        let counted = senders.any(|flow| {
            flow.streams
                .iter()
                .any(|stream| stream.retransmits.is_some())
        });
        head(self.plan, words::when(counted, "         Retr"))
    }

    fn flow(&self, flow: &FlowSummary, lines: &mut Vec<String>) {
        for stream in &flow.streams {
            self.stream(flow, stream, lines);
        }
        if self.plan.streams > 1 {
            self.sum(flow, lines);
        }
        if self.settings.verbose {
            self.extras(flow, lines);
        }
    }

    fn stream(&self, flow: &FlowSummary, stream: &StreamSummary, lines: &mut Vec<String>) {
        let subject = Subject {
            id: stream.socket.to_string(),
            flow,
            sent: stream.sent,
            received: stream.received,
            retransmits: stream.retransmits,
            after_retransmits: 12,
            udp: stream.udp,
        };
        if self.shows(flow, Side::Sender) {
            lines.push(self.line(&subject, Side::Sender));
        }
        let late = stream.udp.and_then(|udp| udp.out_of_order);
        if let Some(late) = late.filter(|late| *late > 0) {
            lines.push(self.out_of_order(&subject, late));
        }
        self.disk_file(flow, stream, lines);
        if self.shows(flow, Side::Receiver) {
            lines.push(self.line(&subject, Side::Receiver));
        }
    }

    fn sum(&self, flow: &FlowSummary, lines: &mut Vec<String>) {
        let subject = Subject {
            id: "SUM".to_owned(),
            flow,
            sent: flow.sent(),
            received: flow.received(),
            retransmits: flow.retransmits(),
            after_retransmits: 13,
            udp: flow.datagrams(),
        };
        for side in [Side::Sender, Side::Receiver] {
            let shown = subject.udp.is_none() && self.shows(flow, side);
            if shown || self.knows(flow, side) {
                lines.push(self.line(&subject, side));
            }
        }
    }

    fn line(&self, of: &Subject<'_>, side: Side) -> String {
        let moved = match side {
            Side::Sender => of.sent,
            Side::Receiver => of.received,
        };
        let Some(moved) = moved.filter(|_| self.knows(of.flow, side)) else {
            return format!("[{:>3}] ({} statistics not available)", of.id, side.name());
        };
        let tag = tag(self.plan, self.settings.role, of.flow.sends);
        let (bytes, format) = (moved.bytes, self.settings.format);
        let figures = figures(&of.id, tag, moved.span(), bytes, moved.rate(), format);
        match (side, of.udp) {
            (Side::Sender, None) => {
                let count = of.retransmits.map_or_else(
                    || " ".repeat(18),
                    |count| format!("  {count:3}{}", " ".repeat(of.after_retransmits)),
                );
                format!("{figures}{count}sender")
            }
            (Side::Receiver, None) => format!("{figures}                  receiver"),
            (Side::Sender, Some(udp)) => {
                let none_lost = lost_of(0, udp.packets(), 0.0);
                format!("{figures}  0.000 ms  {none_lost}  sender")
            }
            (Side::Receiver, Some(udp)) => {
                let jitter = udp.jitter_ms.unwrap_or(0.0);
                format!("{figures}  {jitter:5.3} ms  {}  receiver", lost(udp))
            }
        }
    }

    fn out_of_order(&self, of: &Subject<'_>, late: u64) -> String {
        let tag = tag(self.plan, self.settings.role, of.flow.sends);
        let end = of.received.map_or(0.0, |received| received.seconds);
        format!(
            "[{:>3}]{tag} {:4.1}-{end:4.1} sec  {late} datagrams received out-of-order",
            of.id, 0.0
        )
    }

    fn disk_file(&self, flow: &FlowSummary, stream: &StreamSummary, lines: &mut Vec<String>) {
        let (Some(name), Some(size)) = (&self.settings.file, stream.file_bytes) else {
            return;
        };
        let moved = if flow.sends {
            stream.sent
        } else {
            stream.received
        };
        let Some(moved) = moved else { return };
        let (done, whole) = (amount(moved.bytes as f64, 'A'), amount(size as f64, 'A'));
        let percent = super::percent_of_file(moved.bytes, size);
        lines.push(format!(
            "        Sent {done} / {whole} ({percent}%) of {name}"
        ));
    }

    fn extras(&self, flow: &FlowSummary, lines: &mut Vec<String>) {
        if let (true, Some(own), Some(peer)) =
            (flow.sends, self.summary.own_cpu, self.summary.peer_cpu)
        {
            lines.push(cpu_line(Side::Sender, own, Side::Receiver, peer));
            if self.summary.flows.len() > 1 {
                lines.push(cpu_line(Side::Receiver, own, Side::Sender, peer));
            }
        }
        if self.plan.protocol == Protocol::Tcp {
            for (key, name) in [
                ("snd", &flow.sender_congestion),
                ("rcv", &flow.receiver_congestion),
            ] {
                lines.extend(
                    name.iter()
                        .map(|name| format!("{key}_tcp_congestion {name}")),
                );
            }
        }
    }
}

fn lost(udp: Datagrams) -> String {
    match (udp.lost, udp.expected) {
        (Some(lost), Some(expected)) if !udp.with_omitted => {
            let percent = udp.lost_percent(expected);
            lost_of(i64::try_from(lost).unwrap_or(i64::MAX), expected, percent)
        }
        _ => format!("Unknown/{}", udp.packets()),
    }
}

fn cpu_line(own: Side, host: CpuPercent, peer: Side, remote: CpuPercent) -> String {
    format!(
        "CPU Utilization: local/{} {:.1}% ({:.1}%u/{:.1}%s), remote/{} {:.1}% ({:.1}%u/{:.1}%s)",
        own.name(),
        host.total,
        host.user,
        host.system,
        peer.name(),
        remote.total,
        remote.user,
        remote.system,
    )
}
