//! What a rule found.

use serde::{Deserialize, Serialize};

use crate::counter_test::Tested;
use crate::record::Flow;
use crate::remedy::Remedy;
use crate::units::Bytes;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Healthy,
    /// Worth knowing.
    Note,
    /// It costs throughput.
    Limit,
    /// A figure cannot be trusted.
    Fault,
}

/// What a figure is, where more than a reader wants to know it: nothing looks a figure up by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The rate asked for, all streams of a direction, bit/s.
    RateAsked,
    /// The rate of the sending application, bit/s.
    RateSent,
    /// The rate of a policer's tokens, bit/s.
    TokenRate,
    /// Datagrams handed to the sending kernel.
    Datagrams,
    /// Datagrams that a full receive buffer dropped.
    Dropped,
    /// Datagrams lost elsewhere, or where their place is not known.
    Lost,
    /// The rate of a total if a 32-bit counter wrapped so many times, Mbit/s.
    IfWrapped {
        /// How many times.
        times: u64,
        /// The total then, bytes.
        bytes: u64,
        /// Whether that is known to the byte.
        exact: bool,
    },
}

impl Quantity {
    /// What it is, without its unit.
    pub fn subject(self) -> String {
        match self {
            Self::RateAsked => "requested rate".to_owned(),
            Self::RateSent => "rate sent".to_owned(),
            Self::TokenRate => "token rate".to_owned(),
            Self::Datagrams => "datagrams sent".to_owned(),
            Self::Dropped => "datagrams dropped in the socket".to_owned(),
            Self::Lost => "datagrams lost".to_owned(),
            Self::IfWrapped {
                times,
                bytes,
                exact: true,
            } => format!("k = {times}: {bytes} bytes"),
            Self::IfWrapped { times, bytes, .. } => format!("k = {times}: {}", Bytes(bytes)),
        }
    }

    /// Its unit; absent for a count.
    pub const fn unit(self) -> Option<&'static str> {
        match self {
            Self::RateAsked | Self::RateSent | Self::TokenRate => Some("bit/s"),
            Self::IfWrapped { .. } => Some("Mbit/s"),
            Self::Datagrams | Self::Dropped | Self::Lost => None,
        }
    }
}

/// What a figure is called, and what it is where that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The name, with its unit.
    pub name: String,
    /// What it is.
    pub quantity: Option<Quantity>,
}

impl From<String> for Label {
    fn from(name: String) -> Self {
        let quantity = None;
        Self { name, quantity }
    }
}

impl From<&str> for Label {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

impl From<Quantity> for Label {
    fn from(quantity: Quantity) -> Self {
        let subject = quantity.subject();
        Self {
            name: match quantity.unit() {
                Some(unit) => format!("{subject}, {unit}"),
                None => subject,
            },
            quantity: Some(quantity),
        }
    }
}

/// One figure that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is, with its unit: `rwnd_limited share of the plateau, %`.
    pub name: String,
    /// In the unit that the name ends with.
    pub value: f64,
    /// Where it was measured: `client kernel`, `server application` …
    pub place: String,
    /// What it is, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Quantity>,
}

impl Figure {
    /// A figure that was measured there.
    pub fn new(label: impl Into<Label>, value: f64, place: impl Into<String>) -> Self {
        let Label { name, quantity } = label.into();
        Self {
            name,
            value,
            place: place.into(),
            quantity,
        }
    }
}

/// The rate to expect after the remedy, and what would limit then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Payload rate of the direction, all streams together, bit/s.
    pub rate_bps: f64,
    /// Lower end of what the model's uncertainty allows, bit/s.
    pub low_bps: f64,
    /// Upper end, bit/s.
    pub high_bps: f64,
    /// What would limit next, in words: `the path itself`, `the send buffer` …
    pub then: String,
}

/// What was found, and on what it rests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's stable name, as in docs/findings: `receive-window`, `path-full` …
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// The direction it is about; absent = the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// One sentence that a network engineer would write.
    pub sentence: String,
    /// Share of the time that it explains, 0 to 1, where it explains time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_time: Option<f64>,
    /// Span of the samples that it rests on, ns since the start of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<[u64; 2]>,
    /// The figures used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// What to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// The rate to expect after the remedy, where a model gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// Where the same would have been enough, a part of a sentence: `this window is enough for 1 Gbit/s up to
    /// 5.3 ms`; the figures in it are among `figures`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_pass: Option<String>,
    /// The page that explains it, a path in the project: `docs/findings/path-full.md`.
    #[serde(default)]
    pub page: String,
    /// The next command, which would confirm or refute it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What counter-tests made of it; absent where none were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<Tested>,
}

impl Finding {
    /// A finding of the whole run with nothing but its sentence; its page is that of its id.
    pub fn new(id: &str, severity: Severity, sentence: String) -> Self {
        Self {
            id: id.to_owned(),
            severity,
            flow: None,
            sentence,
            share_of_time: None,
            span_ns: None,
            figures: Vec::new(),
            remedy: None,
            expected: None,
            would_pass: None,
            page: format!("docs/findings/{id}.md"),
            next: None,
            tested: None,
        }
    }

    /// The value of a figure.
    pub fn figure(&self, quantity: Quantity) -> Option<f64> {
        let figure = |figure: &&Figure| figure.quantity == Some(quantity);
        self.figures.iter().find(figure).map(|figure| figure.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_what_it_is_and_not_by_its_name() {
        let wrapped = Quantity::IfWrapped {
            times: 3,
            bytes: 4096,
            exact: true,
        };
        for (quantity, name) in [
            (Quantity::RateAsked, "requested rate, bit/s"),
            (Quantity::Datagrams, "datagrams sent"),
            (wrapped, "k = 3: 4096 bytes, Mbit/s"),
        ] {
            let known = Figure::new(quantity, 1.0, "client kernel");
            let named = Figure::new(name, 2.0, "client kernel");
            assert_eq!((known.name.as_str(), named.quantity), (name, None));
            let json = serde_json::to_value([named, known]).unwrap();
            assert_eq!(json[0].get("quantity"), None);
            let finding = Finding {
                id: "rate-capped".to_owned(),
                severity: Severity::Note,
                flow: None,
                sentence: String::new(),
                share_of_time: None,
                span_ns: None,
                figures: serde_json::from_value(json).unwrap(),
                remedy: None,
                expected: None,
                would_pass: None,
                page: String::new(),
                next: None,
                tested: None,
            };
            assert_eq!(finding.figure(quantity), Some(1.0), "{name}");
        }
    }
}
