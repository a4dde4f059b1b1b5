//! Lines around the rows: who connects to whom, with which buffers.

use linerate_model::plan::Protocol;
use linerate_model::transcript::{Connection, Printed, TestOutput, Window};

use crate::number::size;

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    Version(String),
    Listening,
    Begins {
        newer: bool,
        udp: Option<bool>,
        host: Option<String>,
    },
    Protocol(Protocol),
    Window(Window),
    Datagrams(f64),
    Segment(f64),
    Reverse,
    /// Time that the connections took to open.
    Connects {
        least_ms: f64,
        failed: bool,
    },
    Error {
        newer: bool,
    },
    /// Known, and of no use here.
    Nothing,
}

/// Beginnings of lines that say nothing about the figures.
const IDLE: [&str; 32] = [
    "Bursting:",
    "Bounce-back test",
    "Enabled ",
    "TCP three-way-handshake",
    "iperf Done",
    "Time:",
    "Cookie:",
    "Linux ",
    "Darwin ",
    "FreeBSD ",
    "Control connection MSS",
    "Test Complete",
    "CPU Utilization",
    "snd_tcp_congestion",
    "rcv_tcp_congestion",
    "Binding to local address",
    "Server output:",
    "TOS will be set",
    "TOS set to",
    "Setting ",
    "Write buffer size",
    "Read buffer size",
    "TCP congestion control",
    "Sending on every",
    "IPG target",
    "Receiving 1",
    "Waiting for server",
    "NOTE:",
    "Target bitrate",
    "Target Bitrate",
    "Submitting task",
    "Server listening on UDP",
];

pub(super) fn line(text: &str) -> Option<Said> {
    let words: Vec<&str> = text
        .split([' ', '\t', ','])
        .filter(|word| !word.is_empty())
        .collect();
    Some(match words.as_slice() {
        ["iperf", "version" | "3", version, ..] => Said::Version((*version).to_owned()),
        ["iperf", version, ..] if version.starts_with(|c: char| c.is_ascii_digit()) => {
            Said::Version((*version).to_owned())
        }
        ["Server", "listening", ..] => Said::Listening,
        ["Accepted", "connection", "from", ..] => Said::Begins {
            newer: true,
            udp: None,
            host: None,
        },
        ["Client", "connecting", "to", host, kind, "port", ..] => Said::Begins {
            newer: false,
            udp: Some(*kind == "UDP"),
            host: Some((*host).to_owned()),
        },
        ["Connecting", "to", "host", host, ..] => Said::Begins {
            newer: true,
            udp: None,
            host: Some((*host).to_owned()),
        },
        ["Starting", "Test:", "protocol:", kind, ..] => Said::Protocol(protocol(kind)),
        ["TCP", "window", "size:", number, unit, rest @ ..] => {
            Said::Window(window(number, unit, rest)?)
        }
        ["UDP", "buffer", "size:", ..] => Said::Protocol(Protocol::Udp),
        ["Sending" | "Receiving", bytes, "byte", "datagrams", ..] => {
            Said::Datagrams(bytes.parse().ok().filter(|bytes| *bytes > 0.0)?)
        }
        ["TCP", "MSS:", bytes, ..] => {
            Said::Segment(bytes.parse().ok().filter(|bytes| *bytes > 0.0)?)
        }
        ["Reverse", "mode", ..] => Said::Reverse,
        [
            "[",
            "CT]",
            "final",
            "connect",
            "times",
            _,
            "=",
            times,
            "ms",
            rest @ ..,
        ] => Said::Connects {
            least_ms: times.split('/').next()?.parse().ok()?,
            failed: rest.last().is_some_and(|counts| !counts.ends_with("/0")),
        },
        [
            first @ ("iperf3:" | "iperf:" | "WARNING:" | "warning:" | "error:"),
            ..,
        ]
        | [first, "failed:", ..]
        | [first, "did", "not", "receive", ..] => Said::Error {
            newer: *first == "iperf3:",
        },
        _ if IDLE.iter().any(|start| text.starts_with(start)) => Said::Nothing,
        _ => return None,
    })
}

/// By the name that iperf3 prints.
pub(crate) fn protocol(name: &str) -> Protocol {
    match name {
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        _ => Protocol::Tcp,
    }
}

/// `51200 Byte (WARNING: requested 25600 Byte)`, `19.3 KByte (default)`.
fn window(number: &str, unit: &str, rest: &[&str]) -> Option<Window> {
    let asked = |at: usize| -> Option<Printed> {
        size(rest.get(at + 1)?, rest.get(at + 2)?.trim_end_matches(')'))
    };
    Some(Window {
        bytes: size(number, unit)?,
        asked_bytes: rest
            .iter()
            .position(|word| word.trim_end_matches(':') == "requested")
            .and_then(asked),
        is_default: rest.contains(&"(default)"),
    })
}

/// `local A port B connected with C port D`.
pub(super) fn connection(id: u32, text: &str) -> Option<Connection> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [
        "local",
        local,
        "port",
        port,
        "connected",
        "with" | "to",
        remote,
        "port",
        far,
        ..,
    ] = words.as_slice()
    else {
        return None;
    };
    Some(Connection {
        id,
        local: (*local).into(),
        local_port: port.parse().ok()?,
        remote: (*remote).into(),
        remote_port: far.trim_end_matches(',').parse().ok()?,
    })
}

/// What iperf 2 says of a connection in brackets behind its addresses.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Marks {
    full_duplex: bool,
    reverse: bool,
    bounceback: bool,
    mss_bytes: Option<f64>,
    connect_ms: Option<f64>,
}

impl Marks {
    /// `(full-duplex) (icwnd/mss/irtt=14/1448/20262) (ct=20.30 ms)`.
    pub(super) fn of(text: &str) -> Self {
        let mut marks = Self::default();
        let pieces = text
            .split('(')
            .skip(1)
            .filter_map(|piece| piece.split(')').next());
        for piece in pieces {
            let word = piece.split_whitespace().next();
            marks.full_duplex |= word == Some("full-duplex");
            marks.reverse |= word == Some("reverse");
            marks.bounceback |= word == Some("bb");
            let positive = |text: &str| text.parse().ok().filter(|number: &f64| *number > 0.0);
            if let Some(numbers) = piece.strip_prefix("icwnd/mss/irtt=") {
                let numbers: Vec<Option<f64>> = numbers.split('/').map(positive).collect();
                marks.mss_bytes = numbers.get(1).copied().flatten();
                let rtt_us = numbers.get(2).copied().flatten();
                marks.connect_ms = rtt_us.map(|us| us / 1e3);
            }
        }
        marks
    }

    pub(super) fn put_into(&self, test: &mut TestOutput) {
        test.asked.both_ways |= self.full_duplex;
        test.asked.reverse |= self.reverse;
        test.is_bounceback |= self.bounceback;
        test.mss_bytes = test.mss_bytes.or(self.mss_bytes);
        let least = |before: f64| self.connect_ms.map_or(before, |ms| ms.min(before));
        test.connect_ms = test.connect_ms.map(least).or(self.connect_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_was_changed_keeps_both_sizes() {
        let Some(Said::Window(window)) =
            line("TCP window size: 51200 Byte (WARNING: requested 25600 Byte)")
        else {
            panic!("no window");
        };
        assert_eq!(window.bytes, Printed::exact(51_200.0));
        assert_eq!(window.asked_bytes, Some(Printed::exact(25_600.0)));
        let Some(Said::Window(window)) = line("TCP window size: 19.3 KByte (default)") else {
            panic!("no window");
        };
        assert!(window.is_default && window.asked_bytes.is_none());
    }

    #[test]
    fn strangers_are_not_taken() {
        for text in [
            "",
            "hello world",
            "TCP window size: big",
            "Sending x byte datagrams",
        ] {
            assert_eq!(line(text), None, "{text}");
        }
    }
}
