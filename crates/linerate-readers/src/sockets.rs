//! `ss -ti`: a line of addresses, then an indented line of facts.

use linerate_model::plain_text::PlainText;
use linerate_model::transcript::{Part, Socket};

use crate::Input;

/// States that a line may begin with.
const STATES: [&str; 11] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "CLOSE-WAIT",
    "LAST-ACK",
    "CLOSING",
    "LISTEN",
    "UNCONN",
];

/// All dumps of a transcript: a socket that comes again is read again.
#[derive(Default)]
pub(crate) struct Sockets {
    /// Whether the last line was one of a dump.
    open: bool,
    /// The part that they are read into.
    part: Option<usize>,
}

impl Sockets {
    pub(crate) fn end(&mut self) {
        self.open = false;
    }

    pub(crate) fn take(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        let words: Vec<&str> = input.text.split_whitespace().collect();
        if matches!(words.as_slice(), ["State" | "Netid" | "Recv-Q", ..])
            && input.text.contains("Send-Q")
        {
            return true;
        }
        if let Some(socket) = addresses(input.number, &words) {
            self.sockets(parts).push(socket);
            return true;
        }
        let facts = facts(&words);
        let likely = facts
            .iter()
            .any(|(key, _)| key == "rto" || key == "rtt" || key == "cwnd" || key == "mss");
        if !likely || !self.open && facts.len() < 3 {
            return false;
        }
        let open = self.open;
        let sockets = self.sockets(parts);
        match sockets.last_mut().filter(|_| open) {
            Some(socket) => socket.facts = facts,
            None => sockets.push(Socket {
                line: input.number,
                facts,
                ..Socket::default()
            }),
        }
        true
    }

    fn sockets<'a>(&mut self, parts: &'a mut Vec<Part>) -> &'a mut Vec<Socket> {
        self.open = true;
        let part = *self.part.get_or_insert_with(|| {
            parts.push(Part::Sockets(Vec::new()));
            parts.len() - 1
        });
        match &mut parts[part] {
            Part::Sockets(sockets) => sockets,
            _ => unreachable!("parts are never taken away, so it is the one pushed above"),
        }
    }
}

/// `ESTAB 0 2172 10.0.0.1:5201 10.0.0.2:34444 …`, with or without a protocol or a state before it.
fn addresses(line: usize, words: &[&str]) -> Option<Socket> {
    let words = match words {
        ["tcp" | "mptcp" | "udp", rest @ ..] => rest,
        _ => words,
    };
    let words = match words {
        [state, rest @ ..] if STATES.contains(state) => rest,
        _ => words,
    };
    let [receive, send, local, remote, ..] = words else {
        return None;
    };
    let address = |text: &str| {
        text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty()
                && (port == "*" || port.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        })
    };
    (address(local) && address(remote)).then_some(())?;
    Some(Socket {
        line,
        local: (*local).into(),
        remote: (*remote).into(),
        receive_queue: Some(receive.parse().ok()?),
        send_queue: Some(send.parse().ok()?),
        facts: Vec::new(),
    })
}

/// `cwnd:10`, and pairs of a name and a rate: `pacing_rate 23.1Mbps`, `send 11.6Mbps`.
fn facts(words: &[&str]) -> Vec<(PlainText, PlainText)> {
    let mut facts = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if let Some((key, value)) = word.split_once(':') {
            facts.push((key.into(), value.into()));
        } else if let Some(rate) = words.next_if(|next| next.ends_with("bps")) {
            facts.push(((*word).into(), (*rate).into()));
        } else {
            facts.push(((*word).into(), PlainText::default()));
        }
    }
    facts.truncate(200);
    facts
}
