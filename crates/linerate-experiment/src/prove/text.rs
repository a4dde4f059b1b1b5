//! A proof as text.

use std::fmt::Write as _;

use linerate_model::units::{BitRate, whole};

use super::{Proof, Run, Side};
use crate::aligned::headed;
use crate::interval::Interval;
use crate::prove::judge::counting;

pub(super) fn text(proof: &Proof) -> String {
    let mut text = format!("After against before: {}\n\n", proof.sentence);
    for (name, side) in [("Before", proof.before), ("After", proof.after)] {
        let said = side.map_or("too few runs".to_owned(), rates);
        let _ = writeln!(text, "{name:<9} {said}");
    }
    if let Some(effect) = proof.effect {
        let looked = if effect.looked_at {
            "; widened, as the series ended when it was decided"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "Interval  95 %, bootstrap over {} paired ratios (seed {}){looked}",
            effect.pairs, proof.question.seed
        );
    }
    let _ = writeln!(text, "Order     {}\n", proof.order);
    text.push_str(&table(proof));
    for run in proof.runs.iter().filter(|run| run.measured.is_doubtful()) {
        let _ = writeln!(text, "{}", remark(proof, run));
    }
    text
}

fn rates(side: Interval) -> String {
    let rate = |bps: f64| BitRate(whole(bps));
    format!(
        "{} ({} to {})",
        rate(side.mean),
        rate(side.low),
        rate(side.high)
    )
}

fn table(proof: &Proof) -> String {
    let head = [
        "pair",
        "before",
        "after",
        "ratio",
        "first finding before",
        "after",
    ];
    let pairs = proof
        .runs
        .iter()
        .map(|run| run.turn.pair)
        .max()
        .unwrap_or(0);
    let row = |pair| {
        let [before, after] =
            [Side::Before, Side::After].map(|side| counting(&proof.runs, pair, side));
        let bps = |run: Option<&Run>| run.and_then(|run| run.measured.goodput_bps);
        let rate = |run: Option<&Run>| {
            let rate = bps(run).map_or("-".to_owned(), |bps| BitRate(whole(bps)).to_string());
            let mark = if run.is_some_and(|run| run.measured.is_doubtful()) {
                " ?"
            } else {
                ""
            };
            format!("{rate}{mark}")
        };
        let finding = |run: Option<&Run>| {
            let finding = run.and_then(|run| run.measured.finding.clone());
            finding.unwrap_or_else(|| "-".to_owned())
        };
        let ratio = bps(before)
            .zip(bps(after))
            .map(|(before, after)| after / before);
        vec![
            pair.to_string(),
            rate(before),
            rate(after),
            ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}")),
            finding(before),
            finding(after),
        ]
    };
    headed(head, (1..=pairs).map(row))
}

fn remark(proof: &Proof, run: &Run) -> String {
    let turn = run.turn;
    let why = match &run.measured.failed {
        Some(why) => format!("failed: {why}"),
        None => format!("disturbed: {}", run.measured.disturbed.join("; ")),
    };
    let counts =
        counting(&proof.runs, turn.pair, turn.side).is_some_and(|counting| counting.turn == turn);
    let then = if counts {
        "no attempt was better, so it is kept, marked ?"
    } else {
        "made again"
    };
    format!(
        "  pair {}, {} (attempt {}) {why}; {then}",
        turn.pair,
        turn.side.word(),
        turn.attempt
    )
}
