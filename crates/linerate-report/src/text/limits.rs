//! Where the time went, as a bar, and where the rate went, as a table.

use linerate_analysis::apportion::apportion;
use linerate_analysis::time_budget::Class;
use linerate_analysis::waterfall::{LineRate, StepKind};

use super::chart::mark;
use super::layout::{self, INDENT, Page};
use super::style::{Charset, Style};
use crate::chart::Unit;
use crate::view::{BudgetView, DirectionView, WaterfallView};
use crate::words;

/// Width of the names in the table.
const NAMES: usize = 28;
/// Width of its bars.
const BAR: usize = 24;
/// The bar and what its letters stand for.
pub(super) fn time(page: &mut Page, style: Style, direction: &DirectionView) {
    let Some(budget) = &direction.time_budget else {
        return page.entry("Time", &time_words(direction));
    };
    page.line(&format!(
        "{:<INDENT$}{}",
        "Time",
        bar(style, budget, INDENT)
    ));
    page.entry(
        "",
        &format!("{} {}", shares(budget), direction.span_words()),
    );
}

/// The same in one sentence, without the bar: `filling the path 93 %, recovery 7 % of the plateau`.
pub(crate) fn time_words(direction: &DirectionView) -> String {
    let Some(budget) = &direction.time_budget else {
        let reason = direction.time_budget_unknown.as_deref();
        return format!("not known: {}", reason.unwrap_or("nothing was measured"));
    };
    format!(
        "{} {}",
        listed(budget, |_| String::new()),
        direction.span_words()
    )
}

/// What the letters of a bar stand for: `f filling the path 93 %, r recovery 7 %`.
pub(crate) fn shares(budget: &BudgetView) -> String {
    listed(budget, |class| format!("{} ", mark(class).0))
}

/// The classes that took time, the network's first, each behind its mark.
fn listed(budget: &BudgetView, mark: impl Fn(Class) -> String) -> String {
    let shares: Vec<String> = Class::NETWORK_FIRST
        .into_iter()
        .filter(|class| budget.share(*class) > 0.0)
        .map(|class| {
            let share = words::time_share(budget.share(class));
            format!("{}{} {share}", mark(class), class.words())
        })
        .collect();
    shares.join(", ")
}

/// One letter for each part of the plateau's time, the parts adding to the whole, behind `indent` columns.
pub(crate) fn bar(style: Style, budget: &BudgetView, indent: usize) -> String {
    let columns = style.columns().saturating_sub(indent + 1);
    let weights =
        Class::NETWORK_FIRST.map(|class| linerate_model::units::whole(budget.share(class) * 1e6));
    let parts = apportion(&weights, columns as u64);
    let mut bar = String::new();
    for (class, part) in Class::NETWORK_FIRST.into_iter().zip(parts) {
        let (letter, colour) = mark(class);
        let run = String::from(letter).repeat(usize::try_from(part).unwrap_or(0));
        if !run.is_empty() {
            bar.push_str(&style.coloured(colour, &run));
        }
    }
    bar
}

/// The table from the line's rate to goodput.
pub(super) fn rate(page: &mut Page, style: Style, direction: &DirectionView) {
    let Some(waterfall) = &direction.waterfall else {
        if let Some(reason) = &direction.waterfall_unknown {
            page.entry("Rate", &format!("not known where it went: {reason}"));
        }
        return;
    };
    let scale = Scale::of(waterfall.line_bps);
    page.line(&format!(
        "{:<NAMES$}{:>10}{:>10}",
        "Where the rate went", scale.unit, "left"
    ));
    let row = |page: &mut Page, name: &str, taken: Option<String>, left: u64| {
        let head = format!(
            "  {name:<width$}{:>10}{:>10}  {}",
            taken.unwrap_or_default(),
            scale.show(i128::from(left)),
            filled(style, left, waterfall.line_bps),
            width = NAMES - 2
        );
        page.line(&head);
    };
    row(page, line_name(waterfall.line), None, waterfall.line_bps);
    let mut before = waterfall.line_bps;
    for step in &waterfall.steps {
        // Of rounded ends, so that the table adds up as it stands.
        let taken = scale.rounded(i128::from(before)) - scale.rounded(i128::from(step.left_bps));
        before = step.left_bps;
        if taken == 0 {
            continue;
        }
        let name = name(step.step, waterfall);
        row(page, name, Some(scale.signed(-taken)), step.left_bps);
    }
    row(
        page,
        "goodput of the whole run",
        None,
        waterfall.goodput_bps,
    );
    for step in &waterfall.steps {
        if matches!(step.step, StepKind::Framing | StepKind::NotKnown) {
            let name = layout::capital(step.step.words());
            page.entry("", &format!("{name}: {}.", step.source));
        }
    }
    if let Some(note) = line_note(waterfall.line) {
        page.entry("", note);
    }
}

pub(crate) fn name(step: StepKind, waterfall: &WaterfallView) -> &'static str {
    match (step, waterfall.line) {
        // The line was taken from the path itself: what is missing is what it did not carry all the time.
        (StepKind::Path, LineRate::PathSeenFull) => "path full, not at its best",
        (StepKind::Ramp, _) if waterfall.goodput_bps > waterfall.plateau_bps => "faster beginning",
        (step, _) => step.words(),
    }
}

pub(crate) fn line_name(line: LineRate) -> &'static str {
    match line {
        LineRate::ClientInterface => "client's interface",
        LineRate::ServerInterface => "server's interface",
        LineRate::PathSeenFull => "line, as seen when full",
        LineRate::MostSeen => "highest rate in 40 ms",
    }
}

pub(crate) fn line_note(line: LineRate) -> Option<&'static str> {
    match line {
        LineRate::ClientInterface | LineRate::ServerInterface => None,
        LineRate::PathSeenFull => Some(
            "The line rate is an estimate: no plausible interface speed is known, so it is the rate that passed while \
             the path was full, plus framing.",
        ),
        LineRate::MostSeen => Some(
            "The line rate is unknown: no interface reports it. The table starts at the highest rate in any 40 ms, plus \
             framing. The path may carry more than that; or less, if in those 40 ms a queue emptied in a burst.",
        ),
    }
}

/// How much of the line is left.
fn filled(style: Style, left: u64, line: u64) -> String {
    let eighths = u128::from(left) * (BAR * 8) as u128 / u128::from(line.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(BAR * 8).min(BAR * 8);
    let bar = match style.charset() {
        Charset::Unicode => {
            let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
            format!("{}{part}", "█".repeat(eighths / 8))
        }
        Charset::Ascii => "#".repeat((eighths + 4) / 8),
    };
    format!("{bar:<BAR$}")
}

/// The unit that a table stands in, and its decimals.
struct Scale {
    unit: &'static str,
    each: f64,
    decimals: usize,
}

impl Scale {
    fn of(line_bps: u64) -> Self {
        let line = line_bps as f64;
        let (unit, each) = Unit::Rate.prefix(line);
        let decimals = match line / each {
            _ if each <= 1.0 => 0,
            below if below < 10.0 => 3,
            below if below < 100.0 => 2,
            _ => 1,
        };
        Self {
            unit,
            each,
            decimals,
        }
    }

    /// In units of the last decimal.
    fn rounded(&self, bps: i128) -> i64 {
        let steps = bps as f64 / self.each * 10_f64.powi(i32::try_from(self.decimals).unwrap_or(0));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "below 1000 units of at most three decimals"
        )]
        let whole = steps.round() as i64;
        whole
    }

    fn show(&self, bps: i128) -> String {
        self.decimal(self.rounded(bps))
    }

    fn signed(&self, rounded: i64) -> String {
        match rounded {
            0 => "0".to_owned(),
            more if more > 0 => format!("+{}", self.decimal(more)),
            less => format!("−{}", self.decimal(-less)),
        }
    }

    fn decimal(&self, rounded: i64) -> String {
        let value = rounded as f64 / 10_f64.powi(i32::try_from(self.decimals).unwrap_or(0));
        format!("{value:.*}", self.decimals)
    }
}
