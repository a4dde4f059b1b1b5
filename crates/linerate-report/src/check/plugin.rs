//! The output of a plugin of Nagios and Icinga: <https://www.monitoring-plugins.org/doc/guidelines.html>.

use std::fmt::Write as _;

use linerate_model::check::{CheckRun, Outcome, State};
use linerate_model::units::Nanos;

use super::{line, words};
use crate::words::plain;

/// The exit code: 0 ok, 1 warning, 2 critical, 3 unknown.
pub const fn nagios_code(state: State) -> u8 {
    match state {
        State::Ok => 0,
        State::Warn => 1,
        State::Fail => 2,
        State::Unknown => 3,
    }
}

const fn status(state: State) -> &'static str {
    match state {
        State::Ok => "OK",
        State::Warn => "WARNING",
        State::Fail => "CRITICAL",
        State::Unknown => "UNKNOWN",
    }
}

/// What a plugin prints: the worst in the first line with figures behind a bar, then a line for each thing that is not well.
pub fn nagios(run: &CheckRun) -> String {
    let mut text = format!(
        "LINERATE {} - {} |",
        status(run.state),
        without_bar(&line(run))
    );
    for outcome in &run.outcomes {
        text.push_str(&figure(outcome));
    }
    text.push('\n');
    for outcome in &run.outcomes {
        for item in outcome.items.iter().filter(|item| item.state != State::Ok) {
            let found = without_bar(&words::with_object(outcome, item));
            // Texts are written into a string, which does not fail.
            let _ = writeln!(text, "{} {}: {found}", item.state.name(), outcome.check);
        }
    }
    text
}

/// What a plugin prints that could not check anything.
pub fn nagios_unknown(why: &str) -> String {
    format!("LINERATE UNKNOWN - {}\n", without_bar(&plain(why)))
}

/// A bar would begin the figures, and a line end the long text.
fn without_bar(text: &str) -> String {
    text.replace('|', "/")
        .replace("\\n", " ")
        .replace('\n', " ")
}

/// How long a check took, and its limit as the critical bound: `'label'=value[unit];[warn];[crit];[min]`.
fn figure(outcome: &Outcome) -> String {
    // A label may hold no quote and no equals sign.
    let label = outcome.check.replace(['\'', '='], "_");
    let seconds = |time: Nanos| time.as_secs_f64();
    format!(
        " '{label}'={:.3}s;;{:.3};0",
        seconds(outcome.took),
        seconds(outcome.limit)
    )
}
