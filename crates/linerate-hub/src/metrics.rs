//! Metrics in Prometheus' text format, version 0.0.4, by its naming conventions.
//!
//! A pair whose latest test did not measure has no goodput, round-trip time or retransmits: the series is absent, never 0.

use std::fmt::Write as _;

use linerate_model::alert::AlertState;

use crate::live::Snapshot;
use crate::shared::Shared;
use crate::store::StoreError;
use crate::view::cell::{Cell, CellState};
use crate::view::grid;

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Above so many pairs only sums are exposed: every series costs a Prometheus memory.
const MOST_PAIRS: usize = 20_000;

/// All metrics.
pub(crate) fn text(shared: &Shared) -> Result<String, StoreError> {
    let (cells, _) = grid::cells(shared, shared.now())?;
    let live = shared.live().snapshot();
    let mut text = String::new();
    if cells.len() <= MOST_PAIRS {
        of_pairs(&mut text, &cells);
    }
    states(&mut text, &cells);
    of_hub(&mut text, &live);
    Ok(text)
}

/// A family: its name, kind and help.
fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A family with a sample of each pair that has a value.
fn each(
    text: &mut String,
    cells: &[Cell],
    name: &str,
    help: &str,
    value: impl Fn(&Cell) -> Option<f64>,
) {
    family(text, name, "gauge", help);
    for cell in cells {
        if let Some(value) = value(cell) {
            let _ = writeln!(text, "{name}{{{}}} {value}", labels(cell));
        }
    }
}

fn of_pairs(text: &mut String, cells: &[Cell]) {
    each(
        text,
        cells,
        "linerate_goodput_bytes_per_second",
        "Payload at the receiving application in the pair's latest test; absent where it did not measure.",
        |cell| cell.goodput_bps.map(|bps| bps / 8.0),
    );
    each(
        text,
        cells,
        "linerate_rtt_seconds",
        "Smoothed round-trip time in the pair's latest test; absent where it is not known.",
        |cell| cell.rtt_ns.map(|ns| ns as f64 / 1e9),
    );
    each(
        text,
        cells,
        "linerate_retransmit_ratio",
        "Share of segments that were retransmitted in the pair's latest test; absent where it is not known.",
        |cell| cell.retransmitted,
    );
    each(
        text,
        cells,
        "linerate_last_test_timestamp_seconds",
        "When the pair's latest test that measured ended; absent where none did.",
        |cell| cell.measured.map(|at| at.0 as f64 / 1000.0),
    );
    each(
        text,
        cells,
        "linerate_failures_in_a_row",
        "Tests of the pair that failed since the latest one that measured.",
        |cell| Some(f64::from(cell.failures_in_a_row)),
    );
    each(
        text,
        cells,
        "linerate_expectation_state",
        "Whether the pair is as expected: 0 no alert, 1 suspect, 2 firing.",
        |cell| Some(expectation(cell)),
    );
    family(
        text,
        "linerate_finding_info",
        "gauge",
        "The findings of the pair's latest test.",
    );
    for cell in cells {
        for finding in &cell.findings {
            let finding = label(finding);
            let _ = writeln!(
                text,
                "linerate_finding_info{{{},finding=\"{finding}\"}} 1",
                labels(cell)
            );
        }
    }
}

fn expectation(cell: &Cell) -> f64 {
    match cell.alert_state {
        None | Some(AlertState::Resolved) => 0.0,
        Some(AlertState::Suspect) => 1.0,
        Some(AlertState::Firing) => 2.0,
    }
}

fn states(text: &mut String, cells: &[Cell]) {
    family(text, "linerate_pairs", "gauge", "Pairs by how they are.");
    for state in CellState::ALL {
        let count = cells.iter().filter(|cell| cell.state == state).count();
        let _ = writeln!(text, "linerate_pairs{{state=\"{}\"}} {count}", state.word());
    }
}

fn of_hub(text: &mut String, live: &Snapshot) {
    family(
        text,
        "linerate_tests_total",
        "counter",
        "Tests that were due, by what they came to, since the hub started.",
    );
    let ended = live.ended;
    for (outcome, count) in [
        ("measured", ended.measured),
        ("failed", ended.failed),
        ("not_run", ended.not_run),
        ("invalid", ended.invalid),
    ] {
        let _ = writeln!(
            text,
            "linerate_tests_total{{outcome=\"{outcome}\"}} {count}"
        );
    }
    family(
        text,
        "linerate_agent_up",
        "gauge",
        "Whether the host's agent is connected.",
    );
    for agent in &live.agents {
        let up = u8::from(agent.connected);
        let _ = writeln!(
            text,
            "linerate_agent_up{{host=\"{}\"}} {up}",
            label(&agent.host)
        );
    }
    family(
        text,
        "linerate_tests_running",
        "gauge",
        "Tests that run now.",
    );
    let _ = writeln!(text, "linerate_tests_running {}", live.running.len());
    family(
        text,
        "linerate_notifications_waiting",
        "gauge",
        "Notifications that a channel has not taken yet.",
    );
    for channel in &live.channels {
        let _ = writeln!(
            text,
            "linerate_notifications_waiting{{channel=\"{}\"}} {}",
            label(&channel.name),
            channel.waiting
        );
    }
    family(
        text,
        "linerate_build_info",
        "gauge",
        "The version of the hub.",
    );
    let _ = writeln!(
        text,
        "linerate_build_info{{version=\"{}\"}} 1",
        env!("CARGO_PKG_VERSION")
    );
}

fn labels(cell: &Cell) -> String {
    let (task, from, to) = (label(&cell.task), label(&cell.from), label(&cell.to));
    format!("task=\"{task}\",source=\"{from}\",dest=\"{to}\"")
}

/// A stranger's text as the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
