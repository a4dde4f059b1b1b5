//! Runs side by side: their figures with intervals, whether these allow saying that they differ, what differs in
//! their settings, and what was found in each.
//!
//! A *side* is one run or several of one kind. Of one run the interval is the one within it: how the rate wavered
//! while it ran, and nothing of what changes from run to run. Of several it comes from the runs' own rates
//! (Student's t), which covers both. The difference of two means that do not depend on one another has a half
//! width of √(a² + b²) of theirs; where its interval leaves out zero, the sides differ, with 95 % confidence for
//! each pair taken by itself.
//!
//! ```
//! use linerate_analysis::evidence::Evidence;
//! use linerate_model::plan::Plan;
//! use linerate_testing::fixture;
//! use linerate_report::compare::{Comparison, Side};
//! use linerate_report::view::RunView;
//!
//! let run = |rate_bps| {
//!     let traffic = fixture::Traffic { rate_bps, ..Default::default() };
//!     let record = fixture::run(&Plan::new("server"), &traffic);
//!     RunView::of(&Evidence::of(&record), &[])
//! };
//! let (before, after) = (run(50e6), run(80e6));
//! let sides = [Side::of("before", vec![&before]), Side::of("after", vec![&after])];
//! let comparison = Comparison::of(&sides);
//! assert_eq!(comparison.directions[0].sides[1].against_first.as_ref().unwrap().differs, Some(true));
//! ```

mod by;
mod by_text;
mod settings;
mod text;

use linerate_analysis::statistics;
use linerate_model::finding::Severity;
use linerate_model::record::{Flow, Outcome};
use serde::Serialize;

use crate::view::{BudgetView, DirectionView, MeasuredAt, RunView};
use crate::words;

pub use by::{Change, Group, GroupDirection, GroupEffect, GroupError, Grouped, Says};
pub use by_text::report as grouped_report;
pub use settings::Setting;
pub use text::report;
pub(crate) use text::{difference as difference_words, figures, goodput as goodput_words};

/// One run, or several of one kind, under a name.
#[derive(Debug, Clone)]
pub struct Side<'a> {
    name: String,
    runs: Vec<&'a RunView>,
}

impl<'a> Side<'a> {
    /// A side; of no run at all nothing is known.
    pub fn of(name: &str, runs: Vec<&'a RunView>) -> Self {
        Self {
            name: name.to_owned(),
            runs,
        }
    }
}

/// Sides next to one another, each against the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The sides, in the order given.
    pub sides: Vec<SideView>,
    /// What each direction gave.
    pub directions: Vec<DirectionComparison>,
    /// Settings and facts of hosts that are not the same everywhere.
    pub settings: Vec<Setting>,
    /// What has to be known before the figures are believed.
    pub remarks: Vec<String>,
}

/// A side and what was found in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideView {
    /// The letter that it has in text: A, B …
    pub letter: String,
    /// Its name: a file's or a folder's.
    pub name: String,
    /// How many records: 1 for a file, all of a folder.
    pub runs: usize,
    /// Wall-clock label of its first run's start, ms since 1970-01-01 UTC.
    pub started_at_unix_ms: Option<u64>,
    /// What was found, each once, with the number of runs that it was found in.
    pub findings: Vec<Found>,
}

/// A finding of a side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// The rule's stable name.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// The direction that it is about.
    pub flow: Option<Flow>,
    /// Runs that it was found in.
    pub runs: usize,
    /// Whether it is the first finding of its direction in any of them.
    pub verdict: bool,
    /// The sentence of the first of them.
    pub sentence: String,
}

/// One direction of all sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionComparison {
    /// Which.
    pub flow: Flow,
    /// What each side gave, in their order.
    pub sides: Vec<SideFigures>,
}

/// A side's figures in one direction; the mean of its runs where there are several. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SideFigures {
    /// Goodput, bit/s: of the plateau.
    pub goodput_bps: Option<u64>,
    /// Lower end of its 95 % interval.
    pub goodput_low_bps: Option<u64>,
    /// Upper end.
    pub goodput_high_bps: Option<u64>,
    /// What the interval covers.
    pub interval: Option<Coverage>,
    /// Goodput of the whole run, bit/s.
    pub whole_run_bps: Option<f64>,
    /// Time of the ramp, ns.
    pub ramp_ns: Option<f64>,
    /// Segments sent again, share of all, 0 to 1 (TCP).
    pub retransmit_share: Option<f64>,
    /// Mean round trip over the plateau, µs.
    pub rtt_us: Option<f64>,
    /// Least round trip, µs.
    pub min_rtt_us: Option<f64>,
    /// Datagrams lost, share of those sent, 0 to 1 (UDP).
    pub loss_share: Option<f64>,
    /// Smoothed jitter, ns (UDP).
    pub jitter_ns: Option<f64>,
    /// CPU time at the client, s per 10^9 bytes.
    pub client_seconds_per_gigabyte: Option<f64>,
    /// CPU time at the server, s per 10^9 bytes.
    pub server_seconds_per_gigabyte: Option<f64>,
    /// Where the sender's time went; of the first run where there are several.
    pub time_budget: Option<BudgetView>,
    /// Against the first side; absent for the first itself.
    pub against_first: Option<Difference>,
}

/// What an interval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// How the rate wavered within one run.
    WithinOneRun,
    /// How several runs differ from one another.
    BetweenRuns,
}

/// A side's goodput less the first side's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The difference, bit/s.
    pub bps: i64,
    /// Lower end of its 95 % interval, bit/s; absent where a side has no interval.
    pub low_bps: Option<i64>,
    /// Upper end.
    pub high_bps: Option<i64>,
    /// The difference as a share of the first side's; absent where that is zero.
    pub share: Option<f64>,
    /// Whether the interval leaves out zero; absent where there is none.
    pub differs: Option<bool>,
}

impl Comparison {
    /// Compares each side with the first.
    pub fn of(sides: &[Side<'_>]) -> Self {
        let mut flows: Vec<Flow> = sides
            .iter()
            .flat_map(|side| &side.runs)
            .flat_map(|run| run.directions.iter().map(|direction| direction.flow))
            .collect();
        flows.sort_unstable();
        flows.dedup();
        Self {
            sides: sides
                .iter()
                .enumerate()
                .map(|(place, side)| side_view(place, side))
                .collect(),
            directions: flows.iter().map(|flow| direction(sides, *flow)).collect(),
            settings: settings::differing(sides),
            remarks: remarks(sides),
        }
    }
}

/// A, B … Z, then AA: as a spreadsheet counts.
fn letter(place: usize) -> String {
    let last = char::from(b'A' + u8::try_from(place % 26).unwrap_or(0));
    match place / 26 {
        0 => last.to_string(),
        before => format!("{}{last}", letter(before - 1)),
    }
}

fn side_view(place: usize, side: &Side<'_>) -> SideView {
    let mut findings: Vec<Found> = Vec::new();
    for run in &side.runs {
        let verdicts: Vec<usize> = run
            .directions
            .iter()
            .filter_map(|direction| direction.verdict)
            .collect();
        for (number, finding) in run.findings.iter().enumerate() {
            let verdict = verdicts.contains(&number);
            let same = |found: &&mut Found| found.id == finding.id && found.flow == finding.flow;
            if let Some(found) = findings.iter_mut().find(same) {
                found.runs += 1;
                found.verdict |= verdict;
                continue;
            }
            findings.push(Found {
                id: finding.id.clone(),
                severity: finding.severity,
                flow: finding.flow,
                runs: 1,
                verdict,
                sentence: finding.sentence.clone(),
            });
        }
    }
    // What most runs say comes first, then what the first of them says first.
    findings.sort_by_key(|found| (!found.verdict, std::cmp::Reverse(found.runs)));
    SideView {
        letter: letter(place),
        name: side.name.clone(),
        runs: side.runs.len(),
        started_at_unix_ms: side.runs.iter().map(|run| run.started_at_unix_ms).min(),
        findings,
    }
}

fn direction(sides: &[Side<'_>], flow: Flow) -> DirectionComparison {
    let mut figures: Vec<SideFigures> = sides.iter().map(|side| side_figures(side, flow)).collect();
    if let Some((first, others)) = figures.split_first_mut() {
        for other in others {
            other.against_first = difference(first, other);
        }
    }
    DirectionComparison {
        flow,
        sides: figures,
    }
}

fn side_figures(side: &Side<'_>, flow: Flow) -> SideFigures {
    let of_flow = |run: &&RunView| {
        run.directions
            .iter()
            .find(|direction| direction.flow == flow)
            .cloned()
    };
    let directions: Vec<DirectionView> = side.runs.iter().filter_map(of_flow).collect();
    let mean = |of: fn(&DirectionView) -> Option<f64>| {
        mean(directions.iter().map(of)).and_then(words::finite)
    };
    let cpu = |of: fn(&RunView) -> Option<f64>| self::mean(side.runs.iter().map(|run| of(run)));
    let goodput = goodput(&directions);
    let interval = goodput.and_then(|goodput| goodput.interval);
    SideFigures {
        goodput_bps: goodput.map(|goodput| goodput.mean),
        goodput_low_bps: interval.map(|(low, _, _)| low),
        goodput_high_bps: interval.map(|(_, high, _)| high),
        interval: interval.map(|(_, _, covers)| covers),
        whole_run_bps: mean(|direction| direction.figures.whole_run_bps.map(|bps| bps as f64)),
        ramp_ns: mean(|direction| direction.figures.ramp_ns.map(|ns| ns as f64)),
        retransmit_share: mean(|direction| direction.figures.retransmit_share),
        rtt_us: mean(|direction| direction.figures.rtt_us),
        min_rtt_us: mean(|direction| direction.figures.min_rtt_us),
        loss_share: mean(|direction| direction.loss_share),
        jitter_ns: mean(|direction| direction.jitter_ns.map(|ns| ns as f64)),
        client_seconds_per_gigabyte: cpu(|run| {
            run.summary.cpu.client.as_ref()?.seconds_per_gigabyte
        }),
        server_seconds_per_gigabyte: cpu(|run| {
            run.summary.cpu.server.as_ref()?.seconds_per_gigabyte
        }),
        time_budget: directions
            .first()
            .and_then(|direction| direction.time_budget),
        against_first: None,
    }
}

/// The mean; `None` of nothing, and where one is not known.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    (!values.is_empty()).then(|| statistics::mean(&values))
}

/// A side's goodput: its mean, and the interval with what that covers.
#[derive(Debug, Clone, Copy)]
struct Goodput {
    mean: u64,
    interval: Option<(u64, u64, Coverage)>,
}

fn goodput(directions: &[DirectionView]) -> Option<Goodput> {
    if let [one] = directions {
        let interval = one
            .figures
            .goodput_low_bps
            .zip(one.figures.goodput_high_bps);
        return Some(Goodput {
            mean: one.figures.goodput_bps?,
            interval: interval.map(|(low, high)| (low, high, Coverage::WithinOneRun)),
        });
    }
    let rates: Option<Vec<f64>> = directions
        .iter()
        .map(|direction| direction.figures.goodput_bps.map(|bps| bps as f64))
        .collect();
    let rates = rates.filter(|rates| !rates.is_empty())?;
    let estimate = statistics::estimate_of_runs(&rates);
    Some(Goodput {
        mean: words::whole(estimate.mean),
        interval: Some((
            words::whole(estimate.low),
            words::whole(estimate.high),
            Coverage::BetweenRuns,
        )),
    })
}

fn difference(first: &SideFigures, other: &SideFigures) -> Option<Difference> {
    let (here, there) = (first.goodput_bps?, other.goodput_bps?);
    let bps = signed(there as f64 - here as f64);
    // The upper half: the lower end is cut off at zero.
    let half = |side: &SideFigures| {
        let high = side.goodput_high_bps?;
        Some(high.saturating_sub(side.goodput_bps?) as f64)
    };
    let half = half(first).zip(half(other)).map(|(a, b)| a.hypot(b));
    let ends = half.map(|half| (signed(bps as f64 - half), signed(bps as f64 + half)));
    Some(Difference {
        bps,
        low_bps: ends.map(|(low, _)| low),
        high_bps: ends.map(|(_, high)| high),
        share: (here > 0).then(|| bps as f64 / here as f64),
        differs: ends.map(|(low, high)| low > 0 || high < 0),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float that is too large becomes the largest number"
)]
fn signed(value: f64) -> i64 {
    value.round() as i64
}

/// What stands between the figures and their being believed.
fn remarks(sides: &[Side<'_>]) -> Vec<String> {
    let mut remarks = Vec::new();
    for (place, side) in sides.iter().enumerate() {
        for run in &side.runs {
            let who = if side.runs.len() > 1 {
                format!("A run of {}", letter(place))
            } else {
                letter(place)
            };
            match &run.outcome {
                Outcome::Completed => {}
                Outcome::Interrupted | Outcome::PeerInterrupted => {
                    remarks.push(format!("{who} was stopped before its end."));
                }
                Outcome::Failed { error } => {
                    remarks.push(format!(
                        "{who} failed before its end: {}.",
                        words::plain(error)
                    ));
                }
            }
            for direction in run
                .directions
                .iter()
                .filter(|direction| direction.figures.steady == Some(false))
            {
                let why = direction
                    .figures
                    .unsteady_reason
                    .as_deref()
                    .unwrap_or("the rate varies");
                remarks.push(format!(
                    "{who} was not steady: {why}. One rate does not describe it."
                ));
            }
        }
    }
    let mut places: Vec<MeasuredAt> = Vec::new();
    for measured in all_directions(sides).filter_map(|direction| direction.figures.measured_at) {
        if !places.contains(&measured) {
            places.push(measured);
        }
    }
    if places.len() > 1 {
        remarks.push(
            "The rates were not all measured at the same place: --json gives the place of each."
                .to_owned(),
        );
    }
    if sides.iter().any(|side| side.runs.len() == 1) {
        remarks.push(
            "The interval of a single run covers how the rate varied within it, not what changes from run to run: \
             other traffic, the route, the placement of threads and interrupts. One of these may cause a difference \
             between two single runs. To find out, alternate several runs of each, put the records of each side \
             into its own folder and compare the folders."
                .to_owned(),
        );
    }
    remarks.dedup();
    remarks
}

fn all_directions<'a>(sides: &'a [Side<'_>]) -> impl Iterator<Item = &'a DirectionView> {
    sides
        .iter()
        .flat_map(|side| &side.runs)
        .flat_map(|run| &run.directions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(mean: u64, low: u64, high: u64) -> SideFigures {
        SideFigures {
            goodput_bps: Some(mean),
            goodput_low_bps: Some(low),
            goodput_high_bps: Some(high),
            ..SideFigures::default()
        }
    }

    #[test]
    fn half_widths_add_as_squares() {
        let found = difference(&figures(100, 97, 103), &figures(110, 106, 114)).unwrap();
        assert_eq!(
            (found.bps, found.low_bps, found.high_bps),
            (10, Some(5), Some(15))
        );
        assert_eq!(found.differs, Some(true));
        assert_eq!(found.share, Some(0.1));
    }

    #[test]
    fn intervals_that_reach_zero_or_are_missing_say_nothing() {
        let near = difference(&figures(100, 90, 110), &figures(105, 95, 115)).unwrap();
        assert_eq!(near.differs, Some(false));
        let bare = SideFigures {
            goodput_bps: Some(1),
            ..SideFigures::default()
        };
        assert_eq!(
            difference(&figures(100, 90, 110), &bare).unwrap().differs,
            None
        );
        assert_eq!(difference(&SideFigures::default(), &bare), None);
    }

    #[test]
    fn letters_go_on_after_the_last() {
        let all: Vec<String> = [0, 25, 26, 51, 52, 702].into_iter().map(letter).collect();
        assert_eq!(all, ["A", "Z", "AA", "AZ", "BA", "AAA"]);
    }
}
