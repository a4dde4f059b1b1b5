//! Groups of runs for people.

use super::{Change, Group, GroupDirection, GroupEffect, Grouped, Says};
use crate::text::layout::Page;
use crate::text::{Style, way};
use crate::words;

/// Of what changed with the fact, so many are listed with their values; the names of the others follow.
const MOST_CHANGES: usize = 8;
/// A value is shortened to so many characters.
const LONGEST: usize = 48;

/// The groups as text.
pub fn report(grouped: &Grouped, style: Style) -> String {
    let mut page = Page::of_width(style.text_columns());
    let runs: usize = grouped.groups.iter().map(|group| group.runs).sum();
    let count = grouped.groups.len();
    page.line(&format!(
        "{runs} run{} in {count} group{} by {}",
        words::when(runs != 1, "s"),
        words::when(count != 1, "s"),
        words::plain(&grouped.by)
    ));
    for group in &grouped.groups {
        page.gap();
        describe(&mut page, group, grouped);
    }
    page.gap();
    if count == 1 {
        page.entry(
            "Note",
            &format!(
                "{} is the same in all runs, so there is nothing to compare.",
                words::plain(&grouped.by)
            ),
        );
    }
    if grouped.unknown > 0 {
        page.entry(
            "Left out",
            &format!(
                "{} run{} in which {} is not known.",
                grouped.unknown,
                words::when(grouped.unknown != 1, "s"),
                words::plain(&grouped.by)
            ),
        );
    }
    if grouped
        .groups
        .iter()
        .any(|group| !group.changed_too.is_empty())
    {
        page.entry(
            "Note",
            "Confounded means that these runs cannot tell which of the changes made the difference. To find out, change one \
             of them alone, or alternate: `linerate prove`.",
        );
    }
    style.settle(page.finish())
}

fn describe(page: &mut Page, group: &Group, grouped: &Grouped) {
    let head = format!("  {:<3} ", group.letter);
    page.wrapped(
        &head,
        &format!(
            "{}, {} run{}",
            words::plain(&group.value),
            group.runs,
            words::when(group.runs != 1, "s")
        ),
    );
    let several = group.directions.len() > 1;
    for direction in &group.directions {
        let way = if several {
            format!("{}: ", way(direction.flow))
        } else {
            String::new()
        };
        page.wrapped("      ", &format!("{way}{}", figures(direction, grouped)));
    }
    if !group.changed_too.is_empty() {
        confounded(page, group, grouped);
    }
    if !group.known_in_one.is_empty() {
        page.wrapped(
            "      ",
            &format!(
                "Not compared, known in one of the two groups alone: {}",
                names(group.known_in_one.iter().map(String::as_str))
            ),
        );
    }
}

/// `median 9.41 Gbit/s; mean −80.6 % against A, 95 % interval −82.0 to −79.3 %: slower`.
fn figures(direction: &GroupDirection, grouped: &Grouped) -> String {
    let median = words::known(direction.median_bps, |bps| words::rate(words::whole(bps)));
    let effect = words::with(direction.effect.as_ref(), |one| {
        format!("; {}", effect(one, grouped.least))
    });
    format!("median {median}{effect}")
}

fn effect(effect: &GroupEffect, least: f64) -> String {
    let percent = |share: f64| format!("{:+.1}", 100.0 * share).replace('-', "−");
    let head = format!("mean {} % against A", percent(effect.share));
    let interval = words::with(effect.low.zip(effect.high), |(low, high)| {
        format!(", 95 % interval {} to {} %", percent(low), percent(high))
    });
    let interest = 100.0 * least;
    let says = match effect.says {
        Says::Faster => "faster".to_owned(),
        Says::Slower => "slower".to_owned(),
        Says::NoEffect => format!("no effect (less than {interest} % either way)"),
        Says::Undecided => {
            format!(
                "cannot tell whether there is an effect of {interest} %; more runs of each would"
            )
        }
        Says::TooFewRuns => {
            "cannot tell: at least two runs of each are needed to know what changes from run to run"
                .to_owned()
        }
    };
    format!("{head}{interval}: {says}")
}

/// What cannot be told apart from the fact.
fn confounded(page: &mut Page, group: &Group, grouped: &Grouped) {
    let changes = &group.changed_too;
    let listed = &changes[..changes.len().min(MOST_CHANGES)];
    let all = std::iter::once(grouped.by.as_str())
        .chain(listed.iter().map(|change| change.name.as_str()));
    page.wrapped(
        "      ",
        &format!("Confounded: {} changed together", names(all)),
    );
    for change in listed {
        page.wrapped("        ", &values(change));
    }
    if changes.len() > listed.len() {
        let others = changes[listed.len()..]
            .iter()
            .map(|change| change.name.as_str());
        page.wrapped("        ", &format!("and {}", names(others)));
    }
}

fn values(change: &Change) -> String {
    let side = |values: &[String]| {
        let short = values
            .iter()
            .map(|value| words::shortened(&words::plain(value), LONGEST));
        short.collect::<Vec<_>>().join(" or ")
    };
    format!(
        "{}: {} in A, {} here",
        words::plain(&change.name),
        side(&change.first),
        side(&change.here)
    )
}

/// `a`, `a and b`, `a, b and c`.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = all.map(words::plain).collect();
    match all.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}
