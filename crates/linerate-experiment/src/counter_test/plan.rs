//! Which changes would decide a finding, and what each predicts.

use linerate_analysis::evidence::{DirectionEvidence, Evidence};
use linerate_model::counter_test::{Measure, Variation};
use linerate_model::finding::{Finding, Quantity, Severity};
use linerate_model::plan::{Direction, Plan, Protocol};
use linerate_model::record::Flow;
use linerate_model::units::{BitRate, Bytes, whole};

/// A window this many times what is in flight tells one limit from another.
const WIDER: f64 = 3.0;
/// Streams instead of one.
const MORE_STREAMS: u16 = 4;
/// Pacing below and above a rate. A policer's tokens are known to a tenth, so that a tenth above may be below.
const BELOW: f64 = 0.9;
const ABOVE: f64 = 1.2;
/// Segments that pass everywhere, bytes.
const SMALL_SEGMENT: u16 = 1200;
/// Four streams give this many times one's rate where each was held by itself.
const EACH_HELD: f64 = 1.5;
/// A flow alone leaves this part of a path at most unused between its losses (CUBIC gives up 30 %).
const STILL_FULL: f64 = 1.35;
/// Tests of the first finding, and of the one that comes next.
const FIRST: usize = 2;
const NEXT: usize = 1;

/// A change, and what a finding predicts of it: the ratio of `measure`, with the change over as it was, lies above
/// or below `threshold`.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Id of the finding that predicts it.
    pub finding: String,
    /// The change.
    pub variation: Variation,
    /// What is compared.
    pub measure: Measure,
    /// What divides the two answers.
    pub threshold: f64,
    /// Whether the finding predicts more than that.
    pub predicts_more: bool,
    /// What it means when it comes as predicted, and when it does not.
    pub means: [&'static str; 2],
    /// Whether the finding is wrong then; else it says more of it.
    pub refutes: bool,
}

/// What is known of the direction that a finding is about.
pub(crate) struct Known<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) direction: &'a DirectionEvidence,
    /// Goodput, all streams, bit/s.
    pub(crate) rate_bps: f64,
    /// The congestion control in use, as the sender tells.
    control: Option<&'a str>,
    /// The largest socket buffer that both hosts grant, bytes.
    granted: Option<u64>,
}

/// The trials that decide the first finding, and one for the next that could take its place; empty where none
/// would.
pub fn trials(findings: &[Finding], evidence: &Evidence<'_>) -> Vec<Trial> {
    let Some(first) = findings.first() else {
        return Vec::new();
    };
    let mut trials = of_finding(first, evidence);
    trials.truncate(FIRST);
    let next = findings[1..]
        .iter()
        .find(|finding| finding.severity == Severity::Limit);
    let others = next.map_or_else(Vec::new, |next| of_finding(next, evidence));
    let mut added = 0;
    for other in others {
        // One change may decide both.
        let shared = trials
            .iter()
            .any(|trial| trial.variation == other.variation);
        if shared || added < NEXT {
            added += usize::from(!shared);
            trials.push(other);
        }
    }
    trials
}

/// All trials that would decide a finding, the best first.
pub fn of_finding(finding: &Finding, evidence: &Evidence<'_>) -> Vec<Trial> {
    Known::of(finding, evidence).map_or_else(Vec::new, |known| known.trials(finding))
}

impl<'a> Known<'a> {
    pub(crate) fn of(finding: &Finding, evidence: &'a Evidence<'a>) -> Option<Self> {
        let record = evidence.record;
        let flow = finding.flow.unwrap_or(match record.plan.direction {
            Direction::Receive => Flow::ServerToClient,
            Direction::Send | Direction::Both => Flow::ClientToServer,
        });
        let direction = evidence.directions.iter().find(|one| one.flow == flow)?;
        let reached = direction.plateau.map(|plateau| plateau.estimate.mean);
        let limits = [
            record.end(flow.receiver()).map(|end| end.host.rmem_max),
            record.end(flow.sender()).map(|end| end.host.wmem_max),
        ];
        let sender = record.end(flow.sender());
        let mut streams = sender.into_iter().flat_map(|end| &end.streams);
        let control = streams
            .find(|stream| stream.flow == flow)
            .and_then(|stream| stream.congestion.as_deref());
        // A stock peer does not tell its own: it is believed to grant what ours does.
        let granted = limits.into_iter().flatten().flatten().min();
        Some(Self {
            plan: &record.plan,
            direction,
            control,
            rate_bps: reached.or(direction.whole_run_bps()).unwrap_or(0.0),
            granted,
        })
    }

    fn trials(&self, finding: &Finding) -> Vec<Trial> {
        let udp = self.plan.protocol == Protocol::Udp;
        let all = match finding.id.as_str() {
            "receive-window" | "send-buffer" if !udp => {
                vec![self.another_window(), self.streams(true)]
            }
            "receiver-application" => vec![self.paced_reader(), self.streams(false)],
            "random-loss" if !udp => vec![self.streams(true), self.datagrams()],
            "network-loss" if !udp => {
                // It does not say what lost them: that datagrams arrive tells that it was no chance.
                let told = self.datagrams().map(|trial| Trial {
                    refutes: false,
                    ..trial
                });
                vec![self.streams(true), told]
            }
            "policer" => {
                let tokens = finding.figure(Quantity::TokenRate).unwrap_or(self.rate_bps);
                vec![pacing(BELOW * tokens, false), pacing(ABOVE * tokens, true)]
            }
            "path-full" | "bufferbloat" if !udp => {
                vec![self.streams(false), self.queue_goes()]
            }
            "congestion-control" => vec![self.cubic(), self.streams(true)],
            "mtu-black-hole" => vec![Some(self.small_segments())],
            "rate-capped" => vec![Some(unpaced())],
            "sender-cpu" | "sender-application" if !udp => vec![self.streams(true)],
            "asymmetric" => vec![self.other_direction()],
            "udp-receiver-drop" => vec![self.larger_socket()],
            "cannot-tell" if !udp => vec![self.streams(true), self.another_window()],
            _ => Vec::new(),
        };
        let named = |trial: Trial| Trial {
            finding: finding.id.clone(),
            ..trial
        };
        all.into_iter().flatten().map(named).collect()
    }

    /// Whether it was one direction of TCP.
    pub(crate) fn carried_by_tcp(&self) -> bool {
        self.plan.protocol == Protocol::Tcp && self.plan.direction != Direction::Both
    }

    /// Share of the segments that were sent again.
    pub(crate) fn lost_share(&self) -> Option<f64> {
        let path = self.direction.path?;
        let (again, all) = path.retransmits.zip(path.data_segments)?;
        (all > 0).then(|| again as f64 / all as f64)
    }

    /// A wider window, where both hosts grant it, else one half as wide.
    pub(crate) fn another_window(&self) -> Option<Trial> {
        let path = self.direction.path?;
        let now = path
            .in_flight_bytes
            .filter(|bytes| *bytes > 0.0)
            .or(path.receive_window_bytes)?;
        let asked = self.plan.window_bytes.map_or(0, Bytes::count);
        let wider = whole(WIDER * now)
            .max(asked.saturating_mul(2))
            .next_power_of_two();
        // The kernel doubles what is asked for, and about half of that is window.
        let narrower = whole(now / 2.0).max(4096);
        let widens = self.granted.is_some_and(|granted| wider <= granted);
        let bytes = Bytes(if widens { wider } else { narrower });
        Some(Trial {
            variation: Variation::Window { bytes },
            threshold: if widens { EACH_HELD } else { 0.75 },
            predicts_more: widens,
            means: [
                "the rate follows the window",
                "the window does not limit the rate",
            ],
            ..goodput()
        })
    }

    /// Several streams: more in sum where each is held by itself, as much where something holds them together.
    pub(crate) fn streams(&self, each_held: bool) -> Option<Trial> {
        let streams = self.plan.streams.checked_mul(MORE_STREAMS)?;
        let [each, together] = [
            "each connection is limited separately",
            "what they share is the limit",
        ];
        (streams <= linerate_model::plan::MAX_STREAMS).then(|| Trial {
            variation: Variation::Streams { streams },
            threshold: if each_held { EACH_HELD } else { STILL_FULL },
            predicts_more: each_held,
            means: if each_held {
                [each, together]
            } else {
                [together, each]
            },
            ..goodput()
        })
    }

    /// Paced below what the path carries, the queue that its own traffic made is gone.
    fn queue_goes(&self) -> Option<Trial> {
        let path = self.direction.path?;
        let (mean, least) = path.rtt_us.zip(path.min_rtt_us)?;
        // Where no queue stood there is none to go.
        let stood = mean >= 1.25 * least;
        let variation = self.paced(BELOW).filter(|_| stood)?;
        Some(Trial {
            variation,
            measure: Measure::RoundTrip,
            threshold: f64::midpoint(1.0, least / mean),
            predicts_more: false,
            means: [
                "the queue was this test's own",
                "the queue, or the path, is there without this test",
            ],
            ..goodput()
        })
    }

    /// Paced below what it reads, a slow reader keeps up and nothing lies unread.
    fn paced_reader(&self) -> Option<Trial> {
        self.direction.unread_bytes?;
        self.paced(BELOW).map(|variation| Trial {
            variation,
            measure: Measure::Unread,
            threshold: 0.5,
            predicts_more: false,
            means: [
                "just below its rate the receiver keeps up and nothing lies unread",
                "even below its rate data lies unread",
            ],
            ..goodput()
        })
    }

    fn paced(&self, share: f64) -> Option<Variation> {
        let bps = BitRate(whole(share * self.rate_bps));
        (bps.0 > 0).then_some(Variation::Pacing { bps })
    }

    /// Datagrams at so many times the rate.
    pub(crate) fn datagrams_at(&self, times: f64) -> Option<Variation> {
        let bps = BitRate(whole(times * self.rate_bps));
        (bps.0 > 0).then_some(Variation::Datagrams { bps })
    }

    /// Datagrams just below the rate lose what the path loses by chance, whatever the congestion control does.
    fn datagrams(&self) -> Option<Trial> {
        self.datagrams_at(BELOW).map(|variation| Trial {
            variation,
            measure: Measure::Loss,
            threshold: 0.2,
            predicts_more: true,
            means: [
                "datagrams just below the rate are lost as well",
                "datagrams just below the rate arrive: bursts are lost, not single segments by chance",
            ],
            ..goodput()
        })
    }

    fn small_segments(&self) -> Trial {
        let bytes = self.plan.mss_bytes.unwrap_or(u16::MAX).min(SMALL_SEGMENT);
        Trial {
            variation: Variation::SegmentSize { bytes },
            threshold: EACH_HELD,
            predicts_more: true,
            means: ["small segments pass", "small segments do not pass either"],
            ..goodput()
        }
    }

    /// The congestion control in use, or asked for where the sender does not tell.
    pub(crate) fn control(&self) -> Option<&str> {
        self.control.or(self.plan.congestion.as_deref())
    }

    pub(crate) fn cubic(&self) -> Option<Trial> {
        (self.control() != Some("cubic")).then(|| Trial {
            variation: Variation::Congestion {
                name: "cubic".to_owned(),
            },
            threshold: 1.2,
            predicts_more: true,
            means: [
                "another congestion control gets more of the same path",
                "CUBIC gets no more",
            ],
            ..goodput()
        })
    }

    fn other_direction(&self) -> Option<Trial> {
        (self.plan.direction != Direction::Both).then(|| Trial {
            variation: Variation::OtherDirection,
            threshold: EACH_HELD,
            predicts_more: true,
            means: [
                "the other direction carries more",
                "the other direction carries no more",
            ],
            ..goodput()
        })
    }

    /// A larger receive buffer keeps what a small one drops.
    fn larger_socket(&self) -> Option<Trial> {
        let now = self.plan.window_bytes.map_or(212_992, Bytes::count);
        let bytes = self.granted.filter(|granted| *granted > now)?;
        Some(Trial {
            variation: Variation::Window {
                bytes: Bytes(bytes),
            },
            measure: Measure::Loss,
            threshold: 0.5,
            predicts_more: false,
            means: [
                "a larger receive buffer keeps them",
                "a larger receive buffer drops them too",
            ],
            ..goodput()
        })
    }
}

fn unpaced() -> Trial {
    Trial {
        variation: Variation::Unpaced,
        threshold: 1.05,
        predicts_more: true,
        means: [
            "the path carries more than was requested",
            "the path does not carry more than was requested",
        ],
        ..goodput()
    }
}

/// Pacing below a policer's rate ends the losses, above it does not.
fn pacing(bps: f64, loses: bool) -> Option<Trial> {
    let bps = BitRate(whole(bps));
    (bps.0 > 0).then(|| Trial {
        variation: Variation::Pacing { bps },
        measure: Measure::Loss,
        threshold: if loses { 0.2 } else { 0.5 },
        predicts_more: loses,
        means: if loses {
            [
                "above its rate the losses stay",
                "above its rate the losses end as well",
            ]
        } else {
            [
                "below its rate the losses end",
                "the losses do not depend on the rate",
            ]
        },
        ..goodput()
    })
}

/// A trial of goodput, to be filled in.
fn goodput() -> Trial {
    Trial {
        finding: String::new(),
        variation: Variation::Unpaced,
        measure: Measure::Goodput,
        threshold: 1.0,
        predicts_more: true,
        means: ["", ""],
        refutes: true,
    }
}
