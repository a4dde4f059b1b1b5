//! What an observation shows while it runs: plain lines for a pipe, a table that overwrites itself for a terminal.

use linerate_model::observation::{Glimpse, Holder, Sighting};
use linerate_model::units::{Bytes, Nanos};

use crate::words;

/// Connections that a pipe gets a line of in an interval, the fastest first.
const LINES: usize = 8;
/// Rows of a terminal's table that are no connection.
const FRAME: usize = 4;
/// A cause is named from this share of an interval on.
const NAMED: f64 = 0.05;

/// The formatter.
#[derive(Debug, Clone, Default)]
pub struct Watching {
    /// Whether the last line said that nothing moves.
    rests: bool,
    waits: bool,
    seen: bool,
}

impl Watching {
    /// Lines for a pipe, without the last newline; `None` where there is nothing to say.
    pub fn line(&mut self, sighting: &Sighting) -> Option<String> {
        match sighting {
            Sighting::Found {
                at_ns,
                id,
                local,
                remote,
                process,
                began_before,
                ..
            } => {
                let stood = words::when(*began_before, ", stood already");
                Some(format!(
                    "{}  #{id} found: {local} ↔ {remote}{}{stood}",
                    at(*at_ns),
                    words::with(process.as_ref(), |one| format!(", {}", held(one))),
                ))
            }
            Sighting::Gone {
                at_ns,
                id,
                bytes_acked,
                bytes_received,
                ..
            } => {
                let known =
                    |bytes: &Option<u64>| words::known(bytes.map(Bytes), |it| it.to_string());
                Some(format!(
                    "{}  #{id} closed: {} acknowledged and {} received in all",
                    at(*at_ns),
                    known(bytes_acked),
                    known(bytes_received)
                ))
            }
            Sighting::Interval {
                to_ns, connections, ..
            } => self.interval(*to_ns, connections),
            Sighting::Warning { .. } => None,
        }
    }

    /// Whether a person should be told now that no connection was seen yet: true once.
    pub fn begins_to_wait(&mut self, sighting: &Sighting) -> bool {
        self.seen |= matches!(sighting, Sighting::Found { .. });
        let waits = matches!(sighting, Sighting::Interval { .. }) && !self.seen && !self.waits;
        self.waits |= waits;
        waits
    }

    /// The table for a terminal of this width and height, line by line; `None` where it stays as it is.
    pub fn table(&self, sighting: &Sighting, width: usize, height: usize) -> Option<Vec<String>> {
        let Sighting::Interval {
            to_ns,
            connections,
            left_ns,
            ..
        } = sighting
        else {
            return None;
        };
        let moving = connections.iter().filter(|one| moves(one));
        let [sent, received] = rates(connections);
        let left = words::with(*left_ns, |left| {
            format!(", {:.0} s left", left.as_secs_f64())
        });
        let mut lines = vec![
            format!(
                "{:.0} s{left}: {} connections, {} moving; {} sent, {} received",
                to_ns.as_secs_f64(),
                connections.len(),
                moving.count(),
                words::rate(sent),
                words::rate(received),
            ),
            format!(
                "{:>5} {:<22} {:>11} {:>11} {:>8}  {:<36} {:>9} {:>5}  {:<16} this host",
                "#", "peer", "sent", "received", "RTT", "limited by", "cwnd", "again", "held by"
            ),
        ];
        let room = height.saturating_sub(FRAME).max(1);
        lines.extend(connections.iter().take(room).map(row));
        if connections.len() > room {
            lines.push(format!("      … and {} more", connections.len() - room));
        }
        // The last column stays free: a terminal wraps there.
        let fits = |line: String| line.chars().take(width.saturating_sub(1)).collect();
        Some(lines.into_iter().map(fits).collect())
    }

    fn interval(&mut self, to: Nanos, connections: &[Glimpse]) -> Option<String> {
        let moving: Vec<&Glimpse> = connections.iter().filter(|one| moves(one)).collect();
        if moving.is_empty() {
            let said = std::mem::replace(&mut self.rests, true);
            return (!said && !connections.is_empty()).then(|| {
                format!(
                    "{}  {} connections, nothing moves",
                    at(to),
                    connections.len()
                )
            });
        }
        self.rests = false;
        let mut lines: Vec<String> = moving
            .iter()
            .take(LINES)
            .map(|one| format!("{}  {}", at(to), figures(one)))
            .collect();
        if moving.len() > LINES {
            let rest = &moving[LINES..];
            let [sent, received] = rates(rest.iter().copied());
            lines.push(format!(
                "{}  and {} more: {} sent, {} received",
                at(to),
                rest.len(),
                words::rate(sent),
                words::rate(received)
            ));
        }
        Some(lines.join("\n"))
    }
}

fn at(instant: Nanos) -> String {
    format!("{:>8.2} s", instant.as_secs_f64())
}

/// What connections send and receive together, bit/s.
fn rates<'a>(of: impl IntoIterator<Item = &'a Glimpse>) -> [u64; 2] {
    of.into_iter().fold([0, 0], |[sent, received], one| {
        [
            sent.saturating_add(one.sent_bps),
            received.saturating_add(one.received_bps),
        ]
    })
}

fn moves(one: &Glimpse) -> bool {
    one.sent_bps > 0 || one.received_bps > 0
}

pub(super) fn held(holder: &Holder) -> String {
    format!("{} ({})", holder.name, holder.pid)
}

fn figures(one: &Glimpse) -> String {
    let mut parts = vec![format!("#{:<4}", one.id)];
    if one.sent_bps > 0 {
        parts.push(format!("{} sent", words::rate(one.sent_bps)));
    }
    if one.received_bps > 0 {
        parts.push(format!("{} received", words::rate(one.received_bps)));
    }
    let rtt = one.rtt_us.map(|us| words::micros(us as f64));
    parts.extend(rtt.map(|rtt| format!("RTT {rtt}")));
    if one.sent_bps > one.received_bps {
        let [own, theirs] =
            [one.congestion_window_bytes, one.receive_window_bytes].map(|bytes| bytes.map(Bytes));
        parts.extend(own.map(|bytes| format!("cwnd {bytes}")));
        parts.extend(theirs.map(|bytes| format!("peer's window {bytes}")));
        let again = one.retransmits.map(words::count);
        parts.extend(again.map(|count| format!("{count} retransmitted")));
    } else if one.unread_bytes > 0 {
        parts.push(format!("{} unread", Bytes(one.unread_bytes)));
    }
    let limit = limited(one);
    if !limit.is_empty() {
        parts.push(limit);
    }
    parts.join("  ")
}

/// The columns stand in the order in which a narrow terminal can do without them, the last first.
fn row(one: &Glimpse) -> String {
    let rate = |bps: u64| {
        if bps == 0 {
            "-".to_owned()
        } else {
            words::rate(bps)
        }
    };
    let known =
        |value: Option<u64>, word: fn(u64) -> String| value.map_or_else(|| "-".to_owned(), word);
    format!(
        "{:>5} {:<22} {:>11} {:>11} {:>8}  {:<36} {:>9} {:>5}  {:<16} {}",
        one.id,
        one.remote,
        rate(one.sent_bps),
        rate(one.received_bps),
        known(one.rtt_us, |rtt| words::micros(rtt as f64)),
        limited(one),
        known(one.congestion_window_bytes, |bytes| Bytes(bytes)
            .to_string()),
        known(one.retransmits, words::count),
        one.process.as_ref().map_or_else(|| "-".to_owned(), held),
        one.local,
    )
}

/// What the sending kernel's clocks say of the interval, the largest cause first; nothing of what only receives.
fn limited(one: &Glimpse) -> String {
    let Some(clocks) = one.clocks.filter(|_| one.sent_bps > one.received_bps / 20) else {
        return String::new();
    };
    let mut causes = [
        (clocks.application, "application"),
        (clocks.send_buffer, "send buffer"),
        (clocks.receive_window, "receive window"),
        (clocks.network, "network"),
    ];
    causes.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named: Vec<String> = causes
        .iter()
        .filter(|(share, _)| *share >= NAMED)
        .take(2)
        .map(|(share, name)| format!("{name} {}", words::time_share(*share)))
        .collect();
    named.join(", ")
}
