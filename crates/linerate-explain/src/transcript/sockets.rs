//! Sockets of `ss -ti`: the kernel's limit clocks, repeats, windows.

use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::Socket;
use linerate_model::units::{BitRate, Bytes, Nanos, grouped, whole};

use super::socket_series;
use crate::draft::Draft;

/// From this share of the busy time on a limit is said.
const MATTERS: f64 = 0.05;
/// From this share of the segments on repeats are said.
const REPEATED: f64 = 0.001;

/// Words of a socket without a value that are no congestion control.
const FLAGS: [&str; 6] = ["ts", "sack", "ecn", "ecnseen", "fastopen", "app_limited"];

/// How many sockets and readings there are.
pub(super) fn title(sockets: &[Socket]) -> String {
    let connections = socket_series::connections(sockets);
    let most = connections.iter().map(|one| one.sockets.len()).max();
    match most {
        Some(readings @ 2..) => format!(
            "sockets of `ss -ti`: {} connections, up to {readings} readings of each",
            connections.len()
        ),
        _ => format!("sockets of `ss -ti`: {}", sockets.len()),
    }
}

pub(super) fn explain(sockets: &[Socket]) -> Vec<Finding> {
    let connections = socket_series::connections(sockets);
    let all_idle = connections.iter().all(socket_series::is_idle);
    let looked_at = connections
        .iter()
        .filter(|readings| all_idle || !socket_series::is_idle(readings));
    let mut findings: Vec<Finding> = looked_at
        .flat_map(|readings| match socket_series::judge(readings) {
            judged if !judged.is_empty() => judged,
            // The last reading's clocks have counted since the connection began.
            _ => readings
                .sockets
                .last()
                .map(|(_, socket)| one(socket))
                .unwrap_or_default(),
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::new(
            "cannot-tell",
            Severity::Note,
            "One reading of these sockets shows no limit; take two readings some seconds apart"
                .to_owned(),
        ));
    }
    findings
}

fn one(socket: &Socket) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [
        clock(
            socket,
            "rwnd_limited",
            "receive-window",
            "its peer's receive window",
        ),
        clock(
            socket,
            "sndbuf_limited",
            "send-buffer",
            "its own send buffer",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.extend(repeats(socket));
    if findings.is_empty() && known(socket) {
        findings.push(Finding::new(
            "cannot-tell",
            Severity::Note,
            format!("{}: {}", who(socket), state(socket)),
        ));
    }
    findings
}

pub(super) fn who(socket: &Socket) -> String {
    if socket.local.is_empty() {
        format!("The socket of line {}", socket.line)
    } else {
        format!("{} to {}", socket.local, socket.remote)
    }
}

/// Whether a word says something else than which congestion control is in use.
pub(super) fn is_flag(word: &str) -> bool {
    FLAGS.contains(&word)
}

fn known(socket: &Socket) -> bool {
    text(socket, "cwnd").is_some() || text(socket, "rtt").is_some()
}

pub(super) fn text<'a>(socket: &'a Socket, key: &str) -> Option<&'a str> {
    let found = socket.facts.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value.as_str())
}

pub(super) fn number(socket: &Socket, key: &str) -> Option<f64> {
    let text = text(socket, key)?;
    let digits = text.split(['/', '(', 'm', 's']).next()?;
    digits
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite() && *value >= 0.0)
}

/// `11.6Mbps`.
fn rate(socket: &Socket, key: &str) -> Option<f64> {
    let text = text(socket, key)?.strip_suffix("bps")?;
    let (digits, factor) = match text.chars().last()? {
        'K' => (&text[..text.len() - 1], 1e3),
        'M' => (&text[..text.len() - 1], 1e6),
        'G' => (&text[..text.len() - 1], 1e9),
        'T' => (&text[..text.len() - 1], 1e12),
        _ => (text, 1.0),
    };
    digits
        .parse::<f64>()
        .ok()
        .map(|value| value * factor)
        .filter(|value| value.is_finite() && *value >= 0.0)
}

pub(super) fn milliseconds(text: &str) -> Option<f64> {
    text.split("ms").next()?.parse().ok()
}

/// `rwnd_limited:2340ms(78.0%)`: of the time in which there was something to send.
fn clock(socket: &Socket, key: &str, id: &str, what: &str) -> Option<Finding> {
    let (limited, busy) = (
        milliseconds(text(socket, key)?)?,
        milliseconds(text(socket, "busy")?)?,
    );
    let share = limited / busy;
    if !(MATTERS..=1.001).contains(&share) {
        return None;
    }
    Draft::new(
        id,
        Severity::Limit,
        format!(
            "{} was limited by {what} for {:.0} % of the time it had data to send; {}",
            who(socket),
            share * 100.0,
            state(socket)
        ),
    )
    .figure(
        format!("{key}, ms"),
        limited,
        format!("line {}", socket.line),
    )
    .figure("busy, ms", busy, format!("line {}", socket.line))
    .done()
}

/// `retrans:0/12`, against all that was sent.
fn repeats(socket: &Socket) -> Option<Finding> {
    let all: f64 = text(socket, "retrans")?.split('/').nth(1)?.parse().ok()?;
    let sent = number(socket, "data_segs_out")
        .or_else(|| Some(number(socket, "bytes_sent")? / number(socket, "mss")?))?;
    let share = all / sent;
    if share < REPEATED || !share.is_finite() {
        return None;
    }
    let sentence = format!(
        "{} retransmitted {} of {} segments ({:.2} %): congestion, random loss or a policer; one reading does \
             not show which; {}",
        who(socket),
        grouped(whole(all)),
        grouped(whole(sent)),
        share * 100.0,
        state(socket)
    );
    Draft::new("cannot-tell", Severity::Note, sentence)
        .figure(
            "segments retransmitted",
            all,
            format!("line {}", socket.line),
        )
        .done()
}

/// Window, round-trip time and rates, and what they give.
fn state(socket: &Socket) -> String {
    let mut words = Vec::new();
    let (cwnd, mss) = (number(socket, "cwnd"), number(socket, "mss"));
    let rtt = number(socket, "rtt");
    if let (Some(cwnd), Some(mss), Some(rtt)) = (cwnd, mss, rtt.filter(|rtt| *rtt > 0.0)) {
        let bytes = cwnd * mss;
        words.push(format!(
            "a congestion window of {} over {} carries {}",
            Bytes(whole(bytes)),
            Nanos(whole(rtt * 1e6)),
            BitRate(whole(bytes * 8.0 / rtt * 1e3))
        ));
    }
    words.extend(
        rate(socket, "delivery_rate").map(|bps| format!("{} are delivered", BitRate(whole(bps)))),
    );
    if text(socket, "app_limited").is_some() {
        words.push("the last rate sample was application-limited (app_limited)".to_owned());
    }
    if socket.receive_queue.is_some_and(|bytes| bytes > 65_536) {
        words.push(format!(
            "{} are unread by the application",
            Bytes(socket.receive_queue.unwrap_or(0))
        ));
    }
    if words.is_empty() {
        "no limit shows".to_owned()
    } else {
        words.join(", ")
    }
}
