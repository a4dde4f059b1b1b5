//! A captured connection in words: what it is, and its figures.

use linerate_analysis::statistics::median;
use linerate_model::capture::{Conversation, SynOptions};

use super::{Direction, count};
use crate::words;

/// `10.0.0.1:40000 to 10.0.0.2:5201: 10.0 MiB in 8.10 s, 10.4 Mbit/s`.
pub(super) fn conversation(directions: &[Direction<'_>]) -> String {
    let one = |direction: &Direction<'_>| {
        let rate = direction
            .goodput_bps()
            .map_or_else(String::new, |bps| format!(", {}", words::rate(bps)));
        format!(
            "{} to {}: {} in {}{rate}",
            direction.sender(),
            direction.receiver(),
            words::size(direction.sent.passed_bytes as f64),
            words::seconds(direction.sent.span_ns),
        )
    };
    let all: Vec<String> = directions.iter().map(one).collect();
    format!("TCP connection {}", all.join("; back: "))
}

/// Where it was taken, what the ends offered, what was repeated.
pub(super) fn figures(conversation: &Conversation, directions: &[Direction<'_>]) -> String {
    let mut said = Vec::new();
    if let Some(direction) = directions.first() {
        said.push(place(direction));
        said.push(offers(conversation));
    }
    for direction in directions {
        said.push(sent(direction));
    }
    if conversation.not_kept > 0 {
        said.push(format!(
            "its last {} packets are not looked at",
            words::count(conversation.not_kept)
        ));
    }
    said.join("; ")
}

fn place(direction: &Direction<'_>) -> String {
    let place = direction.place;
    let ends = &direction.conversation.ends;
    let trip = |end: usize| place.to_end_us[end].map(|us| (end, us));
    let trips: Vec<String> = [trip(direction.end), trip(1 - direction.end)]
        .into_iter()
        .flatten()
        .map(|(end, us)| format!("{} to {}", words::micros(us), ends[end].address))
        .collect();
    let whence = match place.near() {
        Some(end) => format!("taken at or near {}", ends[end].address),
        None => "taken on the path, or at an unknown place".to_owned(),
    };
    if trips.is_empty() {
        format!("{whence}; no RTT known")
    } else {
        format!("{whence} (minimum RTTs: {})", trips.join(", "))
    }
}

fn offers(conversation: &Conversation) -> String {
    match [conversation.ends[0].syn, conversation.ends[1].syn] {
        [None, None] => {
            "its handshake is not in the capture, so window scale and largest segment are not known"
                .to_owned()
        }
        [Some(first), Some(second)] => {
            let both = format!("{} and {}", offer(&first), offer(&second));
            format!("the SYNs offer {both}")
        }
        [one, other] => {
            let syn = one.or(other).unwrap_or_default();
            format!(
                "only one of the SYNs is in the capture; it offers {}",
                offer(&syn)
            )
        }
    }
}

fn offer(syn: &SynOptions) -> String {
    let mut words = Vec::new();
    words.push(
        syn.mss_bytes
            .map_or_else(|| "no MSS".to_owned(), |mss| format!("MSS {mss}")),
    );
    words.push(syn.window_shift.map_or_else(
        || "no window scaling".to_owned(),
        |shift| format!("scale {shift}"),
    ));
    words.push(if syn.sack { "SACK" } else { "no SACK" }.to_owned());
    words.push(
        if syn.timestamps {
            "timestamps"
        } else {
            "no timestamps"
        }
        .to_owned(),
    );
    if syn.ecn {
        words.push("ECN".to_owned());
    }
    if syn.clipped {
        words.push("options cut by the snapshot length".to_owned());
    }
    format!("({})", words.join(", "))
}

fn sent(direction: &Direction<'_>) -> String {
    let sent = direction.sent;
    let mut words = vec![format!(
        "{} sent {} segments, {} again",
        direction.sender(),
        count(sent.sent.len()),
        count(sent.repeats()),
    )];
    if let Some(usual) = median(&sent.round_trips_us()) {
        words.push(format!("median RTT {}", words::micros(usual)));
    }
    if sent.super_segments > 0 {
        words.push(format!(
            "{} packets are of several segments (offload), so when each left is not known exactly",
            words::count(sent.super_segments)
        ));
    }
    if sent.cut {
        words.push("the rest is not looked at".to_owned());
    }
    words.join(", ")
}
