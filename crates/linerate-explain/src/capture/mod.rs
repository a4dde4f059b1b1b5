//! What a packet capture shows of each TCP connection in it, what it hides, and what is wrong in it.
//!
//! Said is what the packets decide: amounts, round trips from where the capture was taken, losses with what came
//! before them, windows, and what the SYNs offered. A capture taken behind the loss never saw the lost copy, so
//! it cannot tell a policer; one that missed packets says so first.

mod bucket;
mod file;
mod limits;
mod losses;
mod place;
mod policer;
mod title;
mod transmissions;
mod window;

use linerate_model::capture::Conversation;
use linerate_model::finding::{Finding, Severity};
use linerate_model::record::Flow;
use linerate_model::units::{grouped, whole};

use crate::draft::Draft;
use crate::words;
pub(crate) use file::explain as file;
use place::Place;
use transmissions::Transmissions;
use window::Window;

/// Payload below which a direction is not judged, bytes: an exchange of a few segments measures nothing.
const LEAST_BYTES: u64 = 65_536;
/// A direction with less than this share of the other's payload is its echo.
const ECHO: f64 = 0.1;

/// One direction of a connection, as the rules ask about it.
struct Direction<'a> {
    conversation: &'a Conversation,
    /// The end that sent: 0 or 1.
    end: usize,
    sent: &'a Transmissions,
    place: Place,
    window: Option<Window>,
}

impl Direction<'_> {
    fn sender(&self) -> &str {
        &self.conversation.ends[self.end].address
    }

    fn receiver(&self) -> &str {
        &self.conversation.ends[1 - self.end].address
    }

    /// Payload that got through in the time that it took, bit/s; without acknowledgements, what passed here.
    fn goodput_bps(&self) -> Option<f64> {
        let bytes = self
            .sent
            .acknowledged_bytes
            .unwrap_or(self.sent.passed_bytes);
        (self.sent.span_ns > 0).then(|| bytes as f64 * 8e9 / self.sent.span_ns as f64)
    }

    /// Least round trip between the ends that the capture shows, µs.
    fn round_trip_us(&self) -> Option<f64> {
        let near = self.place.near() == Some(self.end);
        self.place
            .whole_us()
            .or(self.place.to_end_us[1 - self.end].filter(|_| near))
    }

    fn finding(&self, id: &str, severity: Severity, sentence: String) -> Draft {
        let mut draft = Draft::new(id, severity, sentence);
        draft.finding.flow = Some(if self.end == 0 {
            Flow::ClientToServer
        } else {
            Flow::ServerToClient
        });
        draft
    }
}

/// What is said of a connection: what it is, its figures, and findings.
pub(crate) fn conversation(conversation: &Conversation) -> (String, Option<String>, Vec<Finding>) {
    let sent = [0, 1].map(|end| Transmissions::of(conversation, end));
    let place = Place::of(conversation, &sent);
    let payload = [0, 1].map(|end: usize| sent[end].passed_bytes);
    let larger = payload[0].max(payload[1]);
    let mut directions: Vec<Direction<'_>> = [0, 1]
        .into_iter()
        .filter(|end| {
            payload[*end] == larger
                || payload[*end] >= LEAST_BYTES && payload[*end] as f64 >= ECHO * larger as f64
        })
        .map(|end| Direction {
            conversation,
            end,
            sent: &sent[end],
            place,
            window: window::of(conversation, end),
        })
        .collect();
    directions.sort_by_key(|one| std::cmp::Reverse(one.sent.passed_bytes));
    let findings = directions.iter().flat_map(judge).collect();
    let figures = title::figures(conversation, &directions);
    (title::conversation(&directions), Some(figures), findings)
}

fn judge(direction: &Direction<'_>) -> Vec<Finding> {
    let missed = limits::missed(direction);
    // Behind a hole in the capture nothing of losses is certain.
    let sound = missed.is_none();
    let mut findings: Vec<Finding> = missed.into_iter().collect();
    if direction.sent.passed_bytes < LEAST_BYTES {
        let draft = direction.finding(
            "cannot-tell",
            Severity::Note,
            format!(
                "Only {} of payload passed: too little to find the limit",
                words::size(direction.sent.passed_bytes as f64)
            ),
        );
        findings.push(draft.finding);
        return findings;
    }
    let held = limits::receive_window(direction);
    let by_window = held.is_some();
    findings.extend(limits::closed(direction));
    findings.extend(held);
    if sound {
        findings.extend(losses::judge(direction, by_window));
    }
    findings.extend(limits::small_mss(direction));
    findings.extend(limits::marks(direction));
    if !findings.iter().any(|one| {
        one.severity >= Severity::Limit || one.id == "path-full" || one.id == "cannot-tell"
    }) {
        let draft = direction.finding(
            "cannot-tell",
            Severity::Note,
            "No loss, no queue and no closed window shows: the sending program, its buffer or the congestion window \
             was the limit; `ss -ti` on the sender while it runs, or `linerate test` between these hosts, shows which"
                .to_owned(),
        );
        findings.push(draft.finding);
    }
    findings
}

/// `1,234`.
fn count(value: usize) -> String {
    grouped(value as u64)
}

/// A rounded figure in separators.
fn rounded(value: f64) -> String {
    grouped(whole(value))
}
