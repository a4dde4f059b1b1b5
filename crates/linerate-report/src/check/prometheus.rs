//! A text file for `node_exporter`'s textfile collector, in Prometheus's text format
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linerate_model::check::{CheckRun, State};

use super::plugin::nagios_code;

/// The states, how long each check took, and when the run was: an old one is one that does not run any more.
pub fn prometheus(run: &CheckRun) -> String {
    let mut text = String::new();
    let mut family = |name: &str, help: &str, rows: &[(String, f64)]| {
        // Texts are written into a string, which does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, value) in rows {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let labels = |check: &str, kind: &str| format!("check=\"{}\",kind=\"{kind}\"", escaped(check));
    // What is said of one object by several items is one row: the worst of it.
    let mut states: BTreeMap<String, State> = BTreeMap::new();
    for outcome in &run.outcomes {
        let of = labels(&outcome.check, outcome.kind.name());
        for item in &outcome.items {
            let row = format!("{{{of},on=\"{}\"}}", escaped(&item.on));
            let state = states.entry(row).or_insert(item.state);
            *state = item.state.max(*state);
        }
    }
    let states = states
        .into_iter()
        .map(|(labels, state)| (labels, f64::from(nagios_code(state))));
    family(
        "linerate_check_state",
        "What a check found: 0 ok, 1 warn, 2 fail, 3 unknown.",
        &states.collect::<Vec<_>>(),
    );
    let times = run.outcomes.iter().map(|outcome| {
        let labels = labels(&outcome.check, outcome.kind.name());
        (format!("{{{labels}}}"), outcome.took.as_secs_f64())
    });
    family(
        "linerate_check_duration_seconds",
        "How long a check took.",
        &times.collect::<Vec<_>>(),
    );
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds since 1970 are exact"
    )]
    let begun = run.begun.0 as f64 / 1000.0;
    family(
        "linerate_check_last_run_seconds",
        "When the checks were made, seconds since 1970.",
        &[(String::new(), begun)],
    );
    text
}

/// A label's value: backslash, quote and line end are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
