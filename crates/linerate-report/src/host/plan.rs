//! A plan as text.

use linerate_model::tuning::TuningPlan;

use crate::text::layout::Page;
use crate::words::plain;

/// The plan for people: steps in their order, then what the host cannot be given.
pub fn report(plan: &TuningPlan) -> String {
    let mut page = Page::default();
    page.line("linerate tune plan: it changes nothing");
    page.gap();
    for (number, step) in (1..).zip(&plan.steps) {
        let head = format!("{number:>3}  ");
        page.wrapped(
            &head,
            &plain(&format!(
                "{} = {} (now: {})",
                step.object, step.wanted, step.now
            )),
        );
        let mut detail = |label: &str, text: &str| {
            page.wrapped(&format!("     {label:<6}"), &plain(text));
        };
        detail(
            "risk",
            &format!("{}; from {}", step.risk.words(), step.from),
        );
        for owner in &step.owners {
            detail("owner", &format!("{owner} sets it too"));
        }
        for warning in &step.warnings {
            detail("mark", warning);
        }
    }
    if plan.steps.is_empty() {
        page.line("Nothing is to be changed.");
    }
    if !plan.refused.is_empty() {
        page.gap();
        page.line("Cannot be done; a plan with these must not be applied");
        for refusal in &plan.refused {
            page.wrapped(
                "     ",
                &plain(&format!(
                    "{} = {} ({}): {}",
                    refusal.object, refusal.wanted, refusal.from, refusal.why
                )),
            );
        }
    }
    page.gap();
    page.line(&format!(
        "{} to change, {} so already, {} cannot be done",
        plan.steps.len(),
        plan.fulfilled.len(),
        plan.refused.len()
    ));
    page.finish()
}
