//! Sets of changes as text: what was changed, what waits to be confirmed, what became of old values.

use linerate_model::change_set::{Probe, SetState, SetView, Verification, VerifiedSetting};
use linerate_model::units::Nanos;

use crate::date;
use crate::text::layout::Page;
use crate::words::plain;

/// All sets for people, the newest first.
pub fn sets_report(sets: &[SetView]) -> String {
    let mut page = Page::default();
    if sets.is_empty() {
        page.line("No changes were made.");
    }
    for (number, set) in sets.iter().rev().enumerate() {
        if number > 0 {
            page.gap();
        }
        head(&mut page, set);
        steps(&mut page, set);
    }
    page.finish()
}

/// What an apply, a revert or a rollback came to.
pub fn set_report(set: &SetView, probes: &[Probe]) -> String {
    let mut page = Page::default();
    head(&mut page, set);
    steps(&mut page, set);
    if !probes.is_empty() {
        page.gap();
    }
    for probe in probes {
        let mark = match probe.holds {
            Some(true) => "works",
            Some(false) => "FAILS",
            None => "?",
        };
        page.wrapped(
            &format!("     {mark:<6}"),
            &plain(&format!("{}: {}", probe.what, probe.seen)),
        );
    }
    if set.state == SetState::Applied {
        page.gap();
        let left = set.confirm_left_ns.unwrap_or_default();
        let root = set.root.as_ref().map(|root| format!(" --root {root}"));
        page.line(&plain(&format!(
            "Rolls back in {} unless: linerate tune confirm {}{}",
            whole_seconds(left),
            set.id,
            root.unwrap_or_default()
        )));
    }
    page.finish()
}

fn whole_seconds(time: Nanos) -> String {
    format!("{} s", time.0.div_ceil(1_000_000_000))
}

fn head(page: &mut Page, set: &SetView) {
    let mut parts = vec![format!("{}  {}", set.id, set.state.words())];
    if let SetState::Applying { step } = set.state {
        parts.push(format!("step {} of {}", step + 1, set.steps.len()));
    }
    if let Some(left) = set.confirm_left_ns {
        parts.push(format!("rolls back in {}", whole_seconds(left)));
    }
    if !set.rollback.is_empty() {
        parts.push(format!("by {}", set.rollback));
    }
    let line = parts.join(", ");
    page.line(&plain(&line));
    page.wrapped("     taken  ", &date::rfc1123(set.taken_unix_s));
    if let Some(root) = &set.root {
        page.wrapped("     root   ", &plain(root));
    }
    if !set.note.is_empty() {
        page.wrapped("     why    ", &plain(&set.note));
    }
    for file in &set.files {
        page.wrapped("     file   ", &plain(file));
    }
}

fn steps(page: &mut Page, set: &SetView) {
    for (number, step) in (1..).zip(&set.steps) {
        let fate = match (&step.restored, &step.read, step.begun) {
            (Some(restored), ..) => format!("; {restored}"),
            (None, Some(_), _) => String::new(),
            (None, None, true) => "; cut short".to_owned(),
            (None, None, false) => "; not begun".to_owned(),
        };
        page.wrapped(
            &format!("{number:>3}  "),
            &plain(&format!(
                "{} = {} (before: {}){fate}",
                step.object, step.wanted, step.before
            )),
        );
    }
}

/// Files that keep settings over a boot, each with its text, and settings that none keeps, each with the reason.
pub fn persist_report(
    written: bool,
    files: &[(String, String)],
    left_out: &[(String, String)],
    warnings: &[String],
) -> String {
    let mut page = Page::default();
    for (path, text) in files {
        let done = if written {
            "written"
        } else {
            "would be written"
        };
        page.line(&plain(&format!("{path}: {done}")));
        for line in text.lines() {
            page.line(&plain(&format!("     {line}")));
        }
        page.gap();
    }
    if files.is_empty() {
        page.line("No file is needed.");
    }
    for (object, why) in left_out {
        page.wrapped("left out  ", &plain(&format!("{object}: {why}")));
    }
    for warning in warnings {
        page.wrapped("but       ", &plain(warning));
    }
    page.finish()
}

/// What runs, what is persisted and what drifted.
pub fn verification_report(verification: &Verification) -> String {
    let mut page = Page::default();
    for one in &verification.settings {
        verified(&mut page, one);
    }
    if verification.settings.is_empty() {
        page.line("Nothing was confirmed: there is nothing to verify.");
    }
    for (head, lines) in [
        ("Files", &verification.files),
        ("Open sets", &verification.open),
    ] {
        if !lines.is_empty() {
            page.gap();
            page.line(head);
        }
        for line in lines {
            page.wrapped("     ", &plain(line));
        }
    }
    page.gap();
    let settings = &verification.settings;
    let drifted = settings.iter().filter(|one| one.has_drifted()).count();
    let kept = settings.iter().filter(|one| one.survives_boot()).count();
    page.line(&format!(
        "{} confirmed, {drifted} drifted, {kept} survive a boot",
        settings.len()
    ));
    page.finish()
}

fn verified(page: &mut Page, one: &VerifiedSetting) {
    let mark = if one.has_drifted() { "drift" } else { "holds" };
    page.wrapped(
        &format!("{mark}  "),
        &plain(&format!(
            "{} = {} (set {})",
            one.object, one.confirmed, one.set
        )),
    );
    let mut detail = |label: &str, text: &str| {
        page.wrapped(&format!("       {label:<7}"), &plain(text));
    };
    match one.runs.known() {
        Some(runs) if *runs == one.confirmed => {}
        Some(runs) => detail("runs", runs),
        None => detail("runs", &format!("unknown: {}", one.runs.why())),
    }
    match (&one.persisted, &one.at_boot) {
        (Some(file), None) => detail("boot", &format!("kept by {file}")),
        (Some(file), Some(other)) => detail("boot", &format!("{file} sets it, and {other} wins")),
        (None, Some(other)) => detail("boot", &format!("not persisted; {other}")),
        (None, None) => detail("boot", "not persisted"),
    }
    for other in &one.others {
        detail("also", other);
    }
}
