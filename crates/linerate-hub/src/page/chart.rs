//! Goodput over time as a drawing that needs no script, and the same as data for the one that zooms.

use std::fmt::Write as _;

use linerate_model::alert::HostChange;
use linerate_model::units::{BitRate, whole};
use linerate_model::watch::UnixMillis;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::moment::{self, DAY, HOUR};
use crate::store::OutcomeKind;
use crate::view::alert::{change, rate};
use crate::view::pair::PairView;
use crate::view::run::RunRow;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 26.0;
/// Where goodput is 0.
const FLOOR: f64 = 262.0;
/// The strip of tests without a figure.
const STRIP: [f64; 2] = [270.0, 300.0];
/// So many marks have a text of their own.
const MOST_TITLES: usize = 400;

/// Where moments and rates are.
struct Frame {
    since: UnixMillis,
    until: UnixMillis,
    /// The rate at the top, bit/s.
    most: f64,
    /// Between two lines of the grid, bit/s.
    step: f64,
}

impl Frame {
    fn of(view: &PairView) -> Self {
        let highs = view
            .runs
            .iter()
            .filter_map(|run| run.high_bps.or(run.goodput_bps));
        let floors = view.alerts.iter().flat_map(|view| &view.alert.pairs);
        let floors =
            floors.filter_map(|pair| pair.compared.as_ref().map(|compared| compared.floor_bps));
        let most = highs.chain(floors).fold(0.0, f64::max).max(1.0) * 1.04;
        let step = round_step(most / 4.0);
        Self {
            since: view.since,
            until: view.now,
            most: (most / step).ceil() * step,
            step,
        }
    }

    fn x(&self, at: UnixMillis) -> f64 {
        let share = at.since(self.since) as f64 / self.until.since(self.since).max(1) as f64;
        LEFT + share.min(1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, bps: f64) -> f64 {
        FLOOR - bps / self.most * (FLOOR - TOP)
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= least);
    factor.unwrap_or(10.0) * power
}

/// When a test ran, or was due.
fn when(run: &RunRow) -> UnixMillis {
    run.started.unwrap_or(run.due)
}

/// The drawing with its legend.
pub(super) fn figure(view: &PairView) -> Markup {
    let frame = Frame::of(view);
    html! {
        figure class="plot" {
            div class="wide still" tabindex="0" role="region" aria-label="Drawing of goodput over time" {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-labelledby="plot-title plot-about" {
                title id="plot-title" { "Goodput over time" }
                desc id="plot-about" { (about(view)) }
                (axes(&frame))
                (levels(view, &frame))
                (measured(view, &frame))
                (marks(view, &frame))
                (changes(view, &frame))
            }
            }
            figcaption { (legend(view)) }
        }
    }
}

/// The drawing in words.
fn about(view: &PairView) -> String {
    let [measured, failed, not_run, invalid] = view.counts;
    let goodput = view.runs.iter().filter_map(|run| run.goodput_bps);
    let range = goodput.fold(None, |range: Option<(f64, f64)>, bps| {
        Some(range.map_or((bps, bps), |(low, high)| (low.min(bps), high.max(bps))))
    });
    let range = range.map_or_else(
        || "nothing was measured".to_owned(),
        |(low, high)| format!("goodput from {} to {}", rate(low), rate(high)),
    );
    format!(
        "{} tests in {} days: {measured} measured, {failed} failed, {not_run} not run, {invalid} not counted; {range}.",
        view.runs.len(),
        view.days
    )
}

fn axes(frame: &Frame) -> Markup {
    let count = whole(frame.most / frame.step);
    html! {
        @for line in 0..=count {
            @let bps = line as f64 * frame.step;
            @let y = frame.y(bps);
            path class="grid-line" d={ "M" (LEFT) " " (number(y)) "H" (WIDTH - RIGHT) } {}
            text class="end" x=(LEFT - 8.0) y=(number(y + 4.0)) { @if line == 0 { "0" } @else { (tick(bps)) } }
        }
        @for (at, label) in moments(frame) {
            @let x = number(frame.x(at));
            path class="grid-line" d={ "M" (x) " " (TOP) "V" (STRIP[1]) } {}
            text class="middle" x=(x) y=(HEIGHT - 8.0) { (label) }
        }
        text class="end strip" x=(LEFT - 8.0) y=(f64::midpoint(STRIP[0], STRIP[1]) + 4.0) { "no figure" }
    }
}

/// A rate at the axis, without zeros that say nothing: `2.5 Gbit/s`.
fn tick(bps: f64) -> String {
    let (digits, unit) = BitRate(whole(bps)).in_unit();
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    format!("{digits} {unit}")
}

/// Moments on the axis of time, at most eight.
fn moments(frame: &Frame) -> Vec<(UnixMillis, String)> {
    let span = frame.until.since(frame.since);
    let steps = [
        HOUR,
        3 * HOUR,
        6 * HOUR,
        DAY,
        2 * DAY,
        5 * DAY,
        15 * DAY,
        30 * DAY,
        60 * DAY,
    ];
    let step = steps
        .into_iter()
        .find(|step| span / step <= 8)
        .unwrap_or(180 * DAY);
    let mut at = UnixMillis(frame.since.0.div_ceil(step) * step);
    let mut found = Vec::new();
    while at <= frame.until {
        let label = if step < DAY {
            moment::clock(at)
        } else {
            moment::day(at)[5..].to_owned()
        };
        // A label at the very edge would be cut.
        if frame.x(at) > LEFT + 14.0 && frame.x(at) < WIDTH - RIGHT - 16.0 {
            found.push((at, label));
        }
        at = at.plus_millis(step);
    }
    found
}

/// Levels, and the least that is expected.
fn levels(view: &PairView, frame: &Frame) -> Markup {
    html! {
        @for regime in &view.regimes {
            @let [from, to] = [regime.since, regime.until].map(|at| number(frame.x(at)));
            @let y = number(frame.y(regime.median_bps));
            path class="regime" d={ "M" (from) " " (y) "H" (to) } { title { "Level " (rate(regime.median_bps)) " since " (moment::minute(regime.since)) } }
        }
        @if let Some((floor, since)) = floor(view) {
            @let y = number(frame.y(floor));
            path class="floor" d={ "M" (number(frame.x(since))) " " (y) "H" (WIDTH - RIGHT) } { title { "Expected: at least " (rate(floor)) } }
        }
    }
}

/// The least that is expected by the open alert, and since when that is shown.
fn floor(view: &PairView) -> Option<(f64, UnixMillis)> {
    let mut pairs = view.alerts.iter().flat_map(|open| &open.alert.pairs);
    let pair = pairs
        .find(|pair| pair.from == view.from && pair.to == view.to && pair.compared.is_some())?;
    Some((pair.compared.as_ref()?.floor_bps, view.since))
}

/// Whether the line breaks before the later of two neighbours.
fn breaks(view: &PairView, earlier: &RunRow, later: &RunRow) -> bool {
    earlier.goodput_bps.is_none() || when(later).since(when(earlier)) > view.gap_millis
}

/// Intervals, the line and its points. A line never crosses a test without a figure, or a gap.
fn measured(view: &PairView, frame: &Frame) -> Markup {
    let (mut line, mut points, mut intervals) = (String::new(), String::new(), String::new());
    let mut before: Option<&RunRow> = None;
    for run in view.runs.iter().rev() {
        if let Some(bps) = run.goodput_bps {
            let (x, y) = (number(frame.x(when(run))), number(frame.y(bps)));
            let joined = before.is_some_and(|before| !breaks(view, before, run));
            let verb = if joined { 'L' } else { 'M' };
            let _ = write!(line, "{verb}{x} {y}");
            let _ = write!(points, "M{x} {y}h0");
            if let (Some(low), Some(high)) = (run.low_bps, run.high_bps) {
                let _ = write!(
                    intervals,
                    "M{x} {}V{}",
                    number(frame.y(low)),
                    number(frame.y(high))
                );
            }
        }
        before = Some(run);
    }
    html! {
        path class="interval" d=(intervals) {}
        path class="goodput" d=(line) {}
        path class={ "points" (if view.counts[0] > 400 { " dense" } else { "" }) } d=(points) {}
    }
}

/// Tests without a figure, in a strip below the plot.
fn marks(view: &PairView, frame: &Frame) -> Markup {
    let without = view
        .runs
        .iter()
        .filter(|run| run.outcome != OutcomeKind::Measured);
    html! {
        @for (place, run) in without.enumerate() {
            @let x = frame.x(when(run));
            path class=(super::run::class(run.outcome)) d=(mark(run.outcome, x)) {
                @if place < MOST_TITLES { title { (mark_words(run)) } }
            }
        }
    }
}

fn mark(kind: OutcomeKind, x: f64) -> String {
    let [top, bottom] = STRIP;
    let (x, middle) = (number(x), f64::midpoint(top, bottom));
    match kind {
        OutcomeKind::Failed => format!("M{x} {middle}m-4 -4l8 8m0 -8l-8 8"),
        OutcomeKind::Invalid => format!("M{x} {}v7m0 4v1", top + 6.0),
        OutcomeKind::NotRun | OutcomeKind::Measured => format!("M{x} {}v12", middle - 6.0),
    }
}

fn mark_words(run: &RunRow) -> String {
    let what = super::run::outcome_words(run.outcome);
    let why = run.reason_words().unwrap_or_default();
    format!("{} {what}: {why}", moment::minute(when(run)))
}

/// Changes of hosts that are close together in the drawing.
struct Group {
    at: UnixMillis,
    /// The numbers that the list below the drawing has: `1`, `2–4`.
    label: String,
    words: String,
}

/// The latest group first, as the changes are.
fn groups(view: &PairView) -> Vec<Group> {
    let span = view.now.since(view.since);
    let close = |two: &[&HostChange]| two[0].first_after.since(two[1].first_after) < span / 50;
    let changes: Vec<&HostChange> = view.host_changes.iter().collect();
    let mut number = changes.len();
    let mut groups = Vec::new();
    for group in changes.chunk_by(|a, b| close(&[a, b])) {
        let (high, low) = (number, number + 1 - group.len());
        number -= group.len();
        let words: Vec<String> = group.iter().map(|one| change(one)).collect();
        groups.push(Group {
            at: group[0].first_after,
            label: if low == high {
                format!("{high}")
            } else {
                format!("{low}–{high}")
            },
            words: words.join(" "),
        });
    }
    groups
}

/// Changes of hosts as numbered lines; the list below the drawing has their words.
fn changes(view: &PairView, frame: &Frame) -> Markup {
    html! {
        @for group in groups(view) {
            @let x = frame.x(group.at);
            g class="change" {
                title { (moment::minute(group.at)) ": " (group.words) }
                path d={ "M" (number(x)) " " (TOP) "V" (FLOOR) } {}
                text class=(if x > WIDTH - 60.0 { "end" } else { "middle" }) x=(number(x)) y=(TOP - 8.0) { (group.label) }
            }
        }
    }
}

fn legend(view: &PairView) -> Markup {
    let [measured, failed, not_run, invalid] = view.counts;
    let entry = |class: &str, path: &str, words: &str| {
        html! { li { svg class="sample" viewBox="0 0 28 14" aria-hidden="true" { path class=(class) d=(path) {} } (words) } }
    };
    html! {
        ul class="legend" {
            @if measured > 0 { (entry("goodput", "M2 7H26", "goodput, with its 95 % interval")) }
            @if !view.regimes.is_empty() { (entry("regime", "M2 7H26", "level")) }
            @if floor(view).is_some() { (entry("floor", "M2 7H26", "least that is expected")) }
            @if failed > 0 { (entry("failing", "M10 3l8 8m0 -8l-8 8", "failed")) }
            @if not_run > 0 { (entry("not_run", "M14 1v12", "not run")) }
            @if invalid > 0 { (entry("invalid", "M14 2v7m0 3v1", "does not count")) }
            @if !view.host_changes.is_empty() { (entry("change-line", "M14 0v14", "a host changed")) }
        }
    }
}

/// What the script draws: the same points, breaks as null.
pub(super) fn data(view: &PairView) -> Value {
    let (mut t, mut v, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut before: Option<&RunRow> = None;
    let mut push = |at: f64, run: Option<&RunRow>| {
        t.push(at);
        v.push(run.and_then(|run| run.goodput_bps));
        low.push(run.and_then(|run| run.low_bps));
        high.push(run.and_then(|run| run.high_bps));
    };
    for run in view.runs.iter().rev() {
        let at = seconds(when(run));
        if let Some(before) = before
            && before.goodput_bps.is_some()
            && run.goodput_bps.is_some()
            && breaks(view, before, run)
        {
            push(f64::midpoint(seconds(when(before)), at), None);
        }
        push(at, Some(run));
        before = Some(run);
    }
    let without = view
        .runs
        .iter()
        .rev()
        .filter(|run| run.outcome != OutcomeKind::Measured);
    let marks: Vec<Value> = without
        .map(|run| {
            json!([
                seconds(when(run)),
                super::run::class(run.outcome),
                mark_words(run)
            ])
        })
        .collect();
    let groups = groups(view);
    let changes: Vec<Value> = groups
        .iter()
        .map(|group| json!([seconds(group.at), group.label, group.words]))
        .collect();
    let regimes: Vec<Value> = view
        .regimes
        .iter()
        .map(|one| json!([seconds(one.since), seconds(one.until), one.median_bps]))
        .collect();
    json!({
        "since": seconds(view.since), "until": seconds(view.now),
        "t": t, "v": v, "low": low, "high": high,
        "marks": marks, "changes": changes, "regimes": regimes,
        "floor": floor(view).map(|(bps, _)| bps),
        "most": Frame::of(view).most,
    })
}

fn seconds(at: UnixMillis) -> f64 {
    at.0 as f64 / 1000.0
}

/// A coordinate with one digit.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
