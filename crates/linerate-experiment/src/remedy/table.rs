//! The remedies as text.

use linerate_model::units::{BitRate, whole};

use super::{Outcome, Report, Trial, WITHIN};
use crate::aligned::remarked;

pub(super) fn text(report: &Report) -> String {
    let mut text = rows(report);
    text.push('\n');
    text.push_str(&summary(report));
    text
}

fn rows(report: &Report) -> String {
    let head = [
        "", "scenario", "seed", "finding", "remedy", "before", "expected", "measured", "off",
    ];
    let trials = report.trials.iter();
    remarked(
        head,
        trials.map(|trial| (row(trial), Vec::from_iter(remark(trial)))),
    )
}

fn row(trial: &Trial) -> Vec<String> {
    let rate = |bps: Option<f64>| bps.map_or("-".to_owned(), |bps| BitRate(whole(bps)).to_string());
    let mark = match trial.outcome {
        Outcome::Kept { .. } => "✓",
        Outcome::Broken { .. } | Outcome::Failed { .. } => "✗",
        Outcome::Disturbed { .. } => "?",
        Outcome::NoRate | Outcome::NotApplied { .. } => "·",
    };
    let remedy = &trial.promise.remedy;
    let measured = trial
        .off()
        .zip(trial.rate())
        .map(|(off, rate)| (1.0 + off) * rate);
    vec![
        mark.to_owned(),
        trial.scenario.clone(),
        trial.seed.to_string(),
        trial.promise.finding.clone(),
        format!("{} {}", remedy.fix.setting(), remedy.fix.value()),
        rate(trial.before_bps),
        rate(trial.rate()),
        rate(measured),
        trial
            .off()
            .map_or("-".to_owned(), |off| format!("{:+.0} %", 100.0 * off)),
    ]
}

fn remark(trial: &Trial) -> Option<String> {
    Some(match &trial.outcome {
        Outcome::Kept { .. } | Outcome::Broken { .. } => return None,
        Outcome::NoRate => "no rate was predicted, so none was measured".to_owned(),
        Outcome::NotApplied { why } => why.clone(),
        Outcome::Failed { why } => format!("the run with the remedy failed: {why}"),
        Outcome::Disturbed { why, .. } => format!(
            "the lab itself may have been the bottleneck: {}",
            why.join("; ")
        ),
    })
}

fn summary(report: &Report) -> String {
    let (kept, judged) = report.kept();
    let trials = report.trials.len();
    let shows_nothing = |trial: &&Trial| matches!(trial.outcome, Outcome::Disturbed { .. });
    let disturbed = report.trials.iter().filter(shows_nothing).count();
    format!(
        "{trials} remedies, {judged} of them applied and judged: {kept} within {:.0} % of the predicted rate (✓), {} \
         not (✗); {disturbed} disturbed and further off (?), {} without a rate or not applicable in a lab (·)\n",
        100.0 * WITHIN,
        judged - kept,
        trials - judged - disturbed
    )
}
