//! iperf3's text at the end of a test.

use linerate_model::plan::{Plan, Protocol};
use linerate_model::record::{Outcome, Role, RunRecord};

use super::amounts::amount;
use super::summary::{CpuPercent, FlowSummary, Moved, StreamSummary, Summary};
use super::summary_udp::Datagrams;
use super::text::{SEPARATOR, figures, head, lost_of};
use super::timeline::{Span, Timeline};
use super::{Iperf3Settings, tag};

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
        lines.extend(
            indented
                .as_deref()
                .unwrap_or(json)
                .lines()
                .map(str::to_owned),
        );
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

    /// What a side moved, where this end knows it.
    fn known(&self, flow: &FlowSummary, side: Side, moved: Option<Moved>) -> Option<Moved> {
        moved.filter(|_| self.knows(flow, side))
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
        head(self.plan, if counted { "         Retr" } else { "" })
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
        let id = stream.socket.to_string();
        if self.shows(flow, Side::Sender) {
            let sent = self.known(flow, Side::Sender, stream.sent);
            lines.push(match (sent, stream.udp) {
                (None, _) => not_available(&id, Side::Sender),
                (Some(sent), None) => {
                    let count = stream
                        .retransmits
                        .map_or_else(|| " ".repeat(7), |count| format!("  {count:3} "));
                    format!("{}{count}           sender", self.figures(&id, flow, sent))
                }
                (Some(sent), Some(udp)) => self.sent_datagrams(&id, flow, sent, udp),
            });
        }
        if let Some(late) = stream
            .udp
            .and_then(|udp| udp.out_of_order)
            .filter(|late| *late > 0)
        {
            lines.push(self.out_of_order(&id, flow, stream, late));
        }
        self.disk_file(flow, stream, lines);
        if self.shows(flow, Side::Receiver) {
            let received = self.known(flow, Side::Receiver, stream.received);
            lines.push(match (received, stream.udp) {
                (None, _) => not_available(&id, Side::Receiver),
                (Some(received), None) => format!(
                    "{}                  receiver",
                    self.figures(&id, flow, received)
                ),
                (Some(received), Some(udp)) => self.received_datagrams(&id, flow, received, udp),
            });
        }
    }

    fn sum(&self, flow: &FlowSummary, lines: &mut Vec<String>) {
        let udp = flow.datagrams();
        let shows = |side| self.knows(flow, side) || (udp.is_none() && self.shows(flow, side));
        if shows(Side::Sender) {
            let sent = self.known(flow, Side::Sender, flow.sent());
            lines.push(match (sent, udp) {
                (None, _) => not_available("SUM", Side::Sender),
                (Some(sent), Some(udp)) => self.sent_datagrams("SUM", flow, sent, udp),
                (Some(sent), None) => {
                    let count = flow
                        .retransmits()
                        .map_or_else(|| " ".repeat(5), |count| format!("  {count:3}"));
                    format!(
                        "{}{count}             sender",
                        self.figures("SUM", flow, sent)
                    )
                }
            });
        }
        if shows(Side::Receiver) {
            let received = self.known(flow, Side::Receiver, flow.received());
            lines.push(match (received, udp) {
                (None, _) => not_available("SUM", Side::Receiver),
                (Some(received), Some(udp)) => self.received_datagrams("SUM", flow, received, udp),
                (Some(received), None) => format!(
                    "{}                  receiver",
                    self.figures("SUM", flow, received)
                ),
            });
        }
    }

    fn figures(&self, id: &str, flow: &FlowSummary, moved: Moved) -> String {
        let span = Span {
            start: 0.0,
            end: moved.seconds,
            seconds: moved.seconds,
        };
        let tag = tag(self.plan, self.settings.role, flow.sends);
        figures(
            id,
            tag,
            span,
            moved.bytes,
            moved.rate(),
            self.settings.format,
        )
    }

    fn sent_datagrams(&self, id: &str, flow: &FlowSummary, sent: Moved, udp: Datagrams) -> String {
        let none_lost = lost_of(0, udp.packets(), 0.0);
        format!(
            "{}  0.000 ms  {none_lost}  sender",
            self.figures(id, flow, sent)
        )
    }

    fn received_datagrams(
        &self,
        id: &str,
        flow: &FlowSummary,
        received: Moved,
        udp: Datagrams,
    ) -> String {
        let figures = self.figures(id, flow, received);
        let jitter = udp.jitter_ms.unwrap_or(0.0);
        let lost = match (udp.lost, udp.expected) {
            (Some(lost), Some(expected)) if !udp.with_omitted => lost_of(
                i64::try_from(lost).unwrap_or(i64::MAX),
                expected,
                udp.lost_percent(expected),
            ),
            _ => format!("Unknown/{}", udp.packets()),
        };
        format!("{figures}  {jitter:5.3} ms  {lost}  receiver")
    }

    fn out_of_order(
        &self,
        id: &str,
        flow: &FlowSummary,
        stream: &StreamSummary,
        late: u64,
    ) -> String {
        let tag = tag(self.plan, self.settings.role, flow.sends);
        let end = stream.received.map_or(0.0, |received| received.seconds);
        format!(
            "[{id:>3}]{tag} {:4.1}-{end:4.1} sec  {late} datagrams received out-of-order",
            0.0
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
            let sender = flow
                .sender_congestion
                .as_ref()
                .map(|name| format!("snd_tcp_congestion {name}"));
            let receiver = flow
                .receiver_congestion
                .as_ref()
                .map(|name| format!("rcv_tcp_congestion {name}"));
            lines.extend(sender.into_iter().chain(receiver));
        }
    }
}

fn not_available(id: &str, side: Side) -> String {
    format!("[{id:>3}] ({} statistics not available)", side.name())
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
