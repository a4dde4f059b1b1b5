//! Checks of a node: for people, as a plugin of Nagios or Icinga, for Prometheus's `node_exporter`, as one line.

mod plugin;
mod prometheus;
mod words;

use linerate_model::check::{CheckRun, Outcome, State};

pub use plugin::{nagios, nagios_code, nagios_unknown};
pub use prometheus::prometheus;
pub use words::{held_comment, words};

use crate::text::Style;
use crate::text::layout::Page;
use crate::words::plain;

/// Columns of a state.
const STATE: usize = 9;
/// The widest name that the others are lined up with.
const NAME: usize = 24;

/// For people: a line for each thing that was found, then the sum, then what is told to the controller.
pub fn text(run: &CheckRun, style: Style) -> String {
    let mut page = Page::of_width(style.text_columns());
    let name = |outcome: &Outcome| outcome.check.chars().count();
    let width = run.outcomes.iter().map(name).max().unwrap_or(0).min(NAME) + 2;
    for outcome in &run.outcomes {
        for item in &outcome.items {
            let state = format!("{:<STATE$}", item.state.name());
            let head = style.coloured(colour(item.state), &state);
            let head = format!("{head}{:<width$}", outcome.check);
            let indent = STATE + width.max(name(outcome));
            page.headed(&head, indent, &words::with_object(outcome, item));
        }
    }
    page.gap();
    page.line(&sum(run));
    if let Some(told) = &run.controller {
        page.wrapped("Slurm: ", &words::told(told));
    }
    for note in &run.notes {
        page.wrapped("Note: ", &plain(note));
    }
    style.settle(page.finish())
}

const fn colour(state: State) -> &'static str {
    match state {
        State::Ok => "32",
        State::Warn => "33",
        State::Fail => "31",
        State::Unknown => "35",
    }
}

/// `fail: 1 of 9 checks failed, 2 warn (1.2 s, 31.0 ms of CPU)`.
fn sum(run: &CheckRun) -> String {
    let all = run.outcomes.len();
    let count = |state| run.outcomes.iter().filter(|one| one.state == state).count();
    let mut parts = Vec::new();
    for (state, word) in [
        (State::Fail, "failed"),
        (State::Warn, "warned"),
        (State::Unknown, "could not tell"),
    ] {
        match count(state) {
            0 => {}
            some => parts.push(format!("{some} of {all} {word}")),
        }
    }
    if parts.is_empty() {
        let checks = if all == 1 { "check" } else { "checks" };
        parts.push(format!("{all} {checks}, all well"));
    }
    format!(
        "{}: {} ({}, {} of CPU)",
        run.state.name(),
        parts.join(", "),
        run.took,
        run.cpu
    )
}

/// One line: the first check that is worst, or that all are well.
pub fn line(run: &CheckRun) -> String {
    let worst = run.outcomes.iter().find(|one| one.state == run.state);
    match worst.and_then(|outcome| Some((outcome, outcome.worst()?))) {
        Some((outcome, item)) if run.state != State::Ok => {
            let others = run.outcomes.iter().filter(|one| one.state == run.state);
            let more = match others.count() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            format!(
                "{}: {}{more}",
                outcome.check,
                words::with_object(outcome, item)
            )
        }
        _ => sum(run),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::check::{Act, CheckKind, Found, Held, Idle, Item, Told};
    use linerate_model::units::{Bytes, Nanos};
    use linerate_model::watch::UnixMillis;

    use super::*;
    use crate::text::Charset;

    fn outcome(check: &str, kind: CheckKind, items: Vec<Item>) -> Outcome {
        Outcome {
            check: check.into(),
            kind,
            state: State::of_all(items.iter().map(|item| item.state)),
            items,
            took: Nanos::from_millis(3),
            limit: Nanos::from_millis(8_000),
        }
    }

    pub(super) fn run() -> CheckRun {
        let silent = Found::NoAnswer {
            after: Nanos::from_millis(8_000),
            stuck: Some(4711),
        };
        let room = |free: u64| Found::Room {
            free: Bytes(free << 30),
            size: Bytes(100 << 30),
            free_files_percent: Some(80.0),
        };
        let outcomes = vec![
            outcome(
                "mount /home",
                CheckKind::Mount,
                vec![Item::new("", State::Fail, silent)],
            ),
            outcome(
                "space",
                CheckKind::Space,
                vec![
                    Item::new("/", State::Ok, room(40)),
                    Item::new("/var \"x\"", State::Warn, room(4)),
                ],
            ),
            outcome(
                "md",
                CheckKind::Md,
                vec![Item::new("", State::Ok, Found::Nothing)],
            ),
        ];
        CheckRun {
            host: "n1".into(),
            begun: UnixMillis(1_795_000_000_000),
            took: Nanos::from_millis(8_012),
            cpu: Nanos::from_millis(12),
            state: State::Fail,
            outcomes,
            controller: Some(Told {
                node: "n1".into(),
                act: Act::Drain {
                    reason: "LR:mount/home no answer".into(),
                },
                done: true,
                trouble: None,
            }),
            notes: vec![],
        }
    }

    #[test]
    fn a_line_for_each_thing_and_a_sum() {
        let style = Style::default().with_charset(Charset::Ascii);
        assert_eq!(
            text(&run(), style),
            "\
fail     mount /home  no answer for 8.00 s: process 4711 waits in the kernel, and the check is not
                      begun again before it is gone
ok       space        /: 40.0 GiB of 100 GiB are free (40 %)
warn     space        /var \"x\": 4.00 GiB of 100 GiB are free (4.0 %)
ok       md           none here

fail: 1 of 3 failed, 1 of 3 warned (8.01 s, 12.0 ms of CPU)
Slurm: n1 was drained: LR:mount/home no answer
"
        );
        assert_eq!(
            line(&run()),
            "mount /home: no answer for 8.00 s: process 4711 waits in the kernel, and the check is not begun again before it is gone"
        );
    }

    #[test]
    fn a_plugin_says_the_worst_first_and_its_figures_behind_a_bar() {
        let text = nagios(&run());
        let first = text.lines().next().unwrap();
        assert!(
            first.starts_with("LINERATE CRITICAL - mount /home: no answer for 8.00 s"),
            "{first}"
        );
        let figures = first.split_once(" | ").unwrap().1;
        assert!(
            figures.contains("'mount /home'=0.003s;;8.000;0"),
            "{figures}"
        );
        assert_eq!(nagios_code(State::Unknown), 3);
        assert_eq!(nagios_code(State::Fail), 2);
        let odd = nagios_unknown("a | b\nc");
        assert_eq!(odd, "LINERATE UNKNOWN - a / b c\n");
    }

    #[test]
    fn a_text_file_for_prometheus_escapes_what_its_labels_may_not_hold() {
        let text = prometheus(&run());
        let state =
            "linerate_check_state{check=\"space\",kind=\"space\",on=\"/var \\\"x\\\"\"} 1\n";
        assert!(text.contains(state), "{text}");
        assert!(
            text.contains("linerate_check_state{check=\"mount /home\",kind=\"mount\",on=\"\"} 2\n")
        );
        assert!(
            text.contains("linerate_check_last_run_seconds 1795000000"),
            "{text}"
        );
    }

    #[test]
    fn what_is_told_says_whether_it_was_done() {
        let mut told = run().controller.unwrap();
        told.done = false;
        assert_eq!(
            words::told(&told),
            "n1 would be drained: LR:mount/home no answer"
        );
        told.act = Act::Hold {
            held: Held::Cap {
                drained: 2,
                most: 2,
                of: 20,
            },
            reason: "LR:md x".into(),
        };
        let held = words::told(&told);
        assert!(
            held.contains("2 of 20 nodes of its partition are drained by checks"),
            "{held}"
        );
        told.act = Act::Nothing { why: Idle::Foreign };
        assert!(words::told(&told).starts_with("n1 is left alone"));
    }
}
