//! A change of settings on many hosts: what became of each, and the tests before and after.

use std::collections::BTreeMap;

use linerate_model::mesh::MeshOutcome;
use linerate_model::roll_out::{
    RollOut, RollOutHost, RollOutOutcome, RollOutState, RollOutTest, RollOutVerdict,
};

use crate::date;
use crate::json::of_kind;
use crate::text::Style;
use crate::text::layout::Page;
use crate::words;

/// So many tests are listed; the worst stay.
const MOST_TESTS: usize = 40;
/// The longest pair of names in the table of tests.
const LONGEST: usize = 46;
/// What becomes of a host, in the order in which it is shown: label and noun.
const OUTCOMES: [(&str, &str); 5] = [
    ("Changed", "changed"),
    ("Unchanged", "unchanged"),
    ("Rolled back", "rolled back"),
    ("Unreachable", "unreachable"),
    ("Unknown", "unknown"),
];

/// The roll-out as a document of kind `roll_out`, without a newline at its end.
pub fn document(roll_out: &RollOut) -> String {
    of_kind("roll_out", roll_out)
}

/// The table at the end: hosts with the same outcome on one line under their names as `fold` writes them, then the tests.
pub fn report(roll_out: &RollOut, fold: &dyn Fn(&[&str]) -> String, style: Style) -> String {
    let mut page = Page::of_width(style.text_columns());
    page.line(&format!(
        "linerate tune apply {}, {}",
        roll_out.profile,
        date::rfc1123(roll_out.started_unix_s)
    ));
    page.entry("Result", &result(roll_out));
    page.gap();
    for (place, (label, _)) in OUTCOMES.iter().enumerate() {
        let hosts = roll_out.hosts.iter();
        let hosts = hosts.filter(|host| kind(&host.outcome) == place);
        for (number, (said, names)) in by_words(hosts).into_iter().enumerate() {
            let label = format!("{:<12}", words::when(number == 0, label));
            let label = match colour(place) {
                Some(code) => style.coloured(code, &label),
                None => label,
            };
            page.headed(
                &label,
                12,
                &format!("{}: {said}", words::plain(&fold(&names))),
            );
        }
    }
    if !roll_out.tests.is_empty() {
        page.gap();
        tests(&mut page, roll_out, style);
    }
    style.settle(page.finish())
}

/// `Finished: 12 of 16 hosts changed, 1 unchanged, 2 rolled back, 1 unreachable`.
fn result(roll_out: &RollOut) -> String {
    let state = match &roll_out.state {
        RollOutState::Running => "Not finished (resume it, or take it back)".to_owned(),
        RollOutState::Finished => "Finished".to_owned(),
        RollOutState::Stopped { why } => format!("Stopped ({why})"),
        RollOutState::DryRun => "Nothing was changed (dry run)".to_owned(),
    };
    let counts = OUTCOMES
        .iter()
        .enumerate()
        .filter_map(|(place, (_, noun))| {
            let hosts = roll_out.hosts.iter();
            let count = hosts.filter(|host| kind(&host.outcome) == place).count();
            (count > 0 || place == 0).then(|| format!("{count} {noun}"))
        });
    let counts: Vec<String> = counts.collect();
    format!(
        "{state}; {} hosts: {}",
        roll_out.hosts.len(),
        counts.join(", ")
    )
}

/// The place of an outcome in [`OUTCOMES`].
const fn kind(outcome: &RollOutOutcome) -> usize {
    match outcome {
        RollOutOutcome::Changed { .. } => 0,
        RollOutOutcome::Unchanged { .. } => 1,
        RollOutOutcome::RolledBack { .. } => 2,
        RollOutOutcome::Unreachable { .. } => 3,
        RollOutOutcome::Unknown { .. } => 4,
    }
}

/// Green for what was wanted, yellow and red for what a person has to look at.
const fn colour(place: usize) -> Option<&'static str> {
    match place {
        0 => Some("32"),
        2 | 3 => Some("33"),
        4 => Some("31"),
        _ => None,
    }
}

/// Hosts of which the same is to be said.
fn by_words<'a>(hosts: impl Iterator<Item = &'a RollOutHost>) -> Vec<(String, Vec<&'a str>)> {
    let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for host in hosts {
        let said = match &host.outcome {
            RollOutOutcome::Changed { settings: 1 } => "1 setting".to_owned(),
            RollOutOutcome::Changed { settings } => format!("{settings} settings"),
            RollOutOutcome::Unchanged { why }
            | RollOutOutcome::RolledBack { why }
            | RollOutOutcome::Unreachable { why }
            | RollOutOutcome::Unknown { why } => why.to_string(),
        };
        all.entry(said).or_default().push(&host.name);
    }
    let mut all: Vec<(String, Vec<&str>)> = all.into_iter().collect();
    all.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    all
}

fn tests(page: &mut Page, roll_out: &RollOut, style: Style) {
    let name = |host: usize| roll_out.hosts.get(host).map_or("?", |host| &*host.name);
    let pair = |test: &RollOutTest| {
        let of = words::when(test.from != test.host && test.to != test.host, " (for ");
        let host = words::when(!of.is_empty(), name(test.host));
        let end = words::when(!of.is_empty(), ")");
        format!("{} → {}{of}{host}{end}", name(test.from), name(test.to))
    };
    let mut shown: Vec<&RollOutTest> = roll_out.tests.iter().collect();
    if shown.len() > MOST_TESTS {
        // What was not measured or became worse is what somebody has to see.
        shown.sort_by_key(|test| match test.verdict {
            Some(RollOutVerdict::Worse) => 0,
            None => 1,
            Some(RollOutVerdict::Same) => 2,
            Some(RollOutVerdict::Better) => 3,
        });
        shown.truncate(MOST_TESTS);
    }
    let width = shown.iter().map(|test| pair(test).chars().count());
    let width = width.max().unwrap_or(0).clamp(4, LONGEST);
    page.line(&format!(
        "{:<width$}  {:>12}  {:>12}",
        "Test", "before", "after"
    ));
    for test in &shown {
        let line = format!(
            "{:<width$}  {:>12}  {:>12}{}",
            pair(test),
            rate(test.before.as_ref()),
            rate(test.after.as_ref()),
            change(test)
        );
        page.line(&match test.verdict {
            Some(RollOutVerdict::Worse) => style.coloured("31", &line),
            _ => line,
        });
        let outcomes = [test.before.as_ref(), test.after.as_ref()];
        for why in outcomes.into_iter().filter_map(reason) {
            page.wrapped("    ", &why);
        }
    }
    if roll_out.tests.len() > shown.len() {
        let more = roll_out.tests.len() - shown.len();
        page.line(&format!(
            "and {more} more, none of them worse (--json has all)"
        ));
    }
}

/// A rate, or in what way there is none.
fn rate(outcome: Option<&MeshOutcome>) -> String {
    match outcome {
        Some(MeshOutcome::Measured(figures)) => words::rate(words::whole(figures.goodput_bps)),
        Some(MeshOutcome::Failed { .. }) => "failed".to_owned(),
        Some(MeshOutcome::NotRun { .. }) => "not begun".to_owned(),
        None => "-".to_owned(),
    }
}

/// Why there is no rate.
fn reason(outcome: Option<&MeshOutcome>) -> Option<String> {
    match outcome? {
        MeshOutcome::Measured(_) => None,
        MeshOutcome::Failed { stage, why } => Some(format!("{stage}: {why}")),
        MeshOutcome::NotRun { why } => Some(format!("did not begin: {why}")),
    }
}

/// `   +683 %, better`; nothing where not both are known.
fn change(test: &RollOutTest) -> String {
    let goodput = |outcome: Option<&MeshOutcome>| match outcome {
        Some(MeshOutcome::Measured(figures)) => Some(figures.goodput_bps),
        _ => None,
    };
    let both = goodput(test.before.as_ref()).zip(goodput(test.after.as_ref()));
    let both = both.filter(|(before, _)| *before > 0.0);
    let share = words::with(both, |(before, after)| {
        let change = format!("{:+.1} %", (after / before - 1.0) * 100.0);
        format!("  {:>9}", change.replace('-', "−"))
    });
    let verdict = match test.verdict {
        Some(RollOutVerdict::Better) => ", better",
        Some(RollOutVerdict::Same) => ", no difference",
        Some(RollOutVerdict::Worse) => ", worse",
        None => "",
    };
    format!("{share}{verdict}")
}
