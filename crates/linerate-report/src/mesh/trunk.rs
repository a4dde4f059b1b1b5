//! What a link between two sets of hosts carries: the steps of the ramp, and who loses.

use linerate_model::mesh::{MeshOutcome, TrunkEnd, TrunkRamp, TrunkStep};

use super::cell;
use super::view::{bit_rate, counted};
use crate::json::of_kind;
use crate::text::Style;
use crate::text::layout::Page;
use crate::words;

/// Columns of the longest bar.
const BAR: usize = 40;

/// The ramp as a document of kind `mesh_trunk`, without a newline at its end.
pub fn document(ramp: &TrunkRamp) -> String {
    of_kind("mesh_trunk", ramp)
}

/// The ramp for people.
pub fn report(ramp: &TrunkRamp, style: Style) -> String {
    let mut page = Page::of_width(style.text_columns());
    page.line("linerate mesh trunk");
    page.entry("Link", &capacity(ramp));
    page.entry("Shares", &fairness(ramp));
    for (number, loser) in losers(ramp).iter().enumerate() {
        page.entry(words::when(number == 0, "Losers"), loser);
    }
    for host in &ramp.hosts {
        if let Some(why) = &host.unreachable {
            page.entry("Unreachable", &format!("{}: {why}", host.name));
        }
    }
    page.gap();
    steps(&mut page, ramp, style);
    style.settle(page.finish())
}

fn capacity(ramp: &TrunkRamp) -> String {
    let last = ramp.steps.last();
    let most = last.and_then(|step| step.sum_bps);
    match (ramp.capacity_bps, most, ramp.ended) {
        (Some(capacity), _, _) => format!(
            "it carries {}: more pairs bring no more",
            bit_rate(capacity)
        ),
        (None, Some(most), TrunkEnd::NoMorePairs) => format!(
            "it carries at least {}: the sum still grew when no further pair was left",
            bit_rate(most)
        ),
        (None, Some(most), _) => format!(
            "it carries at least {}; most tests of the last step failed",
            bit_rate(most)
        ),
        (None, None, _) => "not known: no test of the last step was measured".to_owned(),
    }
}

fn fairness(ramp: &TrunkRamp) -> String {
    let pairs = ramp.steps.last().map_or(0, |step| step.tests.len());
    words::known(ramp.fairness, |index| {
        format!(
            "Jain's index is {index:.2} over {} (1: all have the same, {:.2}: one has all)",
            counted(pairs, "pair"),
            1.0 / (pairs.max(1) as f64)
        )
    })
}

/// Who got less than half of the median, in words.
fn losers(ramp: &TrunkRamp) -> Vec<String> {
    let Some(step) = ramp.steps.last() else {
        return Vec::new();
    };
    let name = |host: usize| ramp.hosts.get(host).map_or("?", |host| &*host.name);
    let loser = |place: &usize| {
        let test = step.tests.get(*place)?;
        let said = match &test.outcome {
            MeshOutcome::Measured(figures) => bit_rate(figures.goodput_bps),
            MeshOutcome::Failed { stage, why } => format!("failed, {stage}: {why}"),
            MeshOutcome::NotRun { why } => format!("did not begin: {why}"),
        };
        Some(format!("{} → {}: {said}", name(test.from), name(test.to)))
    };
    ramp.losers.iter().filter_map(loser).collect()
}

fn steps(page: &mut Page, ramp: &TrunkRamp, style: Style) {
    let sums = ramp.steps.iter().filter_map(|step| step.sum_bps);
    let most = sums.fold(1.0_f64, f64::max);
    page.line("Pairs at once, and the sum of their goodput");
    for step in &ramp.steps {
        let bar = words::with(step.sum_bps, |sum| {
            let length = usize::try_from(words::whole(sum / most * BAR as f64)).unwrap_or(0);
            style.pick("█", "#").repeat(length.min(BAR))
        });
        let sum = words::known(step.sum_bps, bit_rate);
        let line = format!("  {:>4}  {sum:>12}  {bar}{}", step.tests.len(), lost(step));
        page.line(&line);
    }
}

/// `  2 failed`; nothing where none did.
fn lost(step: &TrunkStep) -> String {
    let measured = step
        .tests
        .iter()
        .filter(|test| cell::measured(test).is_some());
    let lost = step.tests.len() - measured.count();
    if lost > 0 {
        format!("  {lost} failed")
    } else {
        String::new()
    }
}
