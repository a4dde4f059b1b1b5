//! A mesh for people: the causes first, then the rounds, then the matrix.

use super::failure::FailureView;
use super::matrix;
use super::ports::PortsView;
use super::view::{MeshView, PairView, VerdictKind, bit_rate, counted, grouped};
use crate::date;
use crate::text::Style;
use crate::text::layout::{Page, capital};
use crate::words;

/// Where the text after a label begins.
const HEAD: usize = 12;
/// So many causes are shown in full.
const MOST_CAUSES: usize = 6;
/// So many reasons of failures are shown.
const MOST_REASONS: usize = 8;
/// Of so many pairs the source ports are shown.
const MOST_PORTS: usize = 5;
/// The longest name of a host among the slowest pairs.
const LONGEST: usize = 22;
/// So many unreachable hosts are named.
const MOST_UNREACHABLE: usize = 10;

/// The whole report.
pub fn report(view: &MeshView, style: Style) -> String {
    let mut page = Page::of_width(style.text_columns());
    head(&mut page, view);
    page.gap();
    causes(&mut page, view, style);
    unreachable(&mut page, view);
    failures(&mut page, &view.failures);
    page.gap();
    matrix::write(&mut page, view, style);
    page.gap();
    slowest(&mut page, view);
    ports(&mut page, view, style);
    style.settle(page.finish())
}

fn head(page: &mut Page, view: &MeshView) {
    let names = format!("{}: {}", counted(view.hosts.len(), "host"), view.names);
    page.line(&format!(
        "linerate mesh, {}",
        date::rfc1123(view.started_unix_s)
    ));
    page.entry("Hosts", &names);
    page.entry("Tests", &tests(view));
    page.entry("Rounds", &rounds(view));
}

/// `240 tests of 240 pairs (all of them), 238 measured, 2 failed`.
pub(super) fn tests(view: &MeshView) -> String {
    let counts = &view.counts;
    let mut parts = vec![format!("{} measured", grouped(counts.measured))];
    for (count, what) in [(counts.failed, "failed"), (counts.not_run, "did not begin")] {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    }
    let of = if counts.pairs == counts.possible {
        "all".to_owned()
    } else {
        format!("{} of the", grouped(counts.pairs))
    };
    let how = [
        (view.both, ", both directions at once"),
        (view.wave, ", a round at the same moment"),
    ];
    let how: String = how
        .iter()
        .map(|(is, text)| words::when(*is, text))
        .collect();
    let options = words::when(!view.options.is_empty(), " with ");
    format!(
        "{}{options}{} between {of} {}{how}: {}",
        counted(counts.tests, "test"),
        &*view.options,
        counted(counts.possible, "ordered pair"),
        parts.join(", ")
    )
}

/// `15, the lower bound is 15; 47.9 s, 3.19 s a round`.
pub(super) fn rounds(view: &MeshView) -> String {
    let rounds = &view.rounds;
    let ran = if rounds.run < rounds.planned {
        format!("{}, data flowed in {}", rounds.planned, rounds.run)
    } else {
        rounds.planned.to_string()
    };
    let time = rounds.elapsed.filter(|_| rounds.run > 0);
    let time = words::with(time, |time| {
        let each = time.as_secs_f64() / f64::from(rounds.run.max(1));
        format!("; {:.1} s, {each:.2} s a round", time.as_secs_f64())
    });
    format!("{ran}, the lower bound is {}{time}", rounds.bound)
}

fn causes(page: &mut Page, view: &MeshView, style: Style) {
    let (label, colour) = match view.verdict.kind {
        VerdictKind::Healthy => ("Healthy", "32"),
        VerdictKind::Cause => ("Cause", "31"),
        VerdictKind::Unexplained => ("Verdict", "33"),
    };
    if view.causes.is_empty() {
        let head = style.coloured(colour, &format!("{label:<HEAD$}"));
        page.headed(&head, HEAD, &view.verdict.sentence);
    }
    for (number, cause) in view.causes.iter().take(MOST_CAUSES).enumerate() {
        let label = match (view.causes.len(), number) {
            (1, _) => label.to_owned(),
            _ => format!("{label} {}", number + 1),
        };
        let head = style.coloured(colour, &format!("{label:<HEAD$}"));
        page.headed(&head, HEAD, &cause.sentence);
        if !cause.evidence.is_empty() {
            page.entry("", &format!("{}.", capital(&cause.evidence.join("; "))));
        }
        if !cause.in_common.is_empty() {
            let common = cause.in_common.join(", ");
            page.entry("", &format!("{} {}.", cause.only, words::plain(&common)));
        }
        for step in &cause.next {
            page.entry("", &format!("To see {}:", step.what));
            // A command stays on one line, so that it can be copied.
            page.line(&format!("{:HEAD$}  {}", "", step.command));
        }
    }
    if view.causes.len() > MOST_CAUSES {
        let more = counted(view.causes.len() - MOST_CAUSES, "more cause");
        page.entry("", &format!("and {more} (--json lists all)"));
    }
    for note in &view.notes {
        page.entry("Note", note);
    }
}

fn unreachable(page: &mut Page, view: &MeshView) {
    let gone: Vec<_> = view
        .hosts
        .iter()
        .filter(|host| host.unreachable.is_some())
        .collect();
    for (number, host) in gone.iter().take(MOST_UNREACHABLE).enumerate() {
        let label = words::when(number == 0, "Unreachable");
        let why = words::with(host.unreachable.as_deref(), str::to_owned);
        page.entry(label, &format!("{}: {why}", host.name));
    }
    if gone.len() > MOST_UNREACHABLE {
        page.entry("", &format!("and {} more", gone.len() - MOST_UNREACHABLE));
    }
}

fn failures(page: &mut Page, all: &[FailureView]) {
    for (number, one) in all.iter().take(MOST_REASONS).enumerate() {
        let label = words::when(number == 0, "Failed");
        page.entry(
            label,
            &format!(
                "{} {}: {}",
                counted(one.tests, "test"),
                one.between(),
                one.sentence()
            ),
        );
    }
    if all.len() > MOST_REASONS {
        page.entry(
            "",
            &format!("and {}", counted(all.len() - MOST_REASONS, "more reason")),
        );
    }
}

fn slowest(page: &mut Page, view: &MeshView) {
    if view.slowest.is_empty() {
        return;
    }
    page.line("Slowest pairs");
    let end = |host: usize| words::shortened(view.name(host), LONGEST);
    let name = |pair: &PairView| format!("{} → {}", end(pair.from), end(pair.to));
    let width = view.slowest.iter().map(|pair| name(pair).chars().count());
    let width = width.max().unwrap_or(0);
    for pair in &view.slowest {
        page.wrapped(
            &format!("  {:<width$}  ", name(pair)),
            &words_of(&pair.figures),
        );
    }
}

/// `2.95 Gbit/s (31 %), RTT 210 µs, 0.26 % retransmitted, receiver-cpu`.
pub(super) fn words_of(figures: &super::Figures) -> String {
    let mut parts = vec![format!(
        "{} ({})",
        bit_rate(figures.goodput_bps),
        words::percent(figures.share)
    )];
    if figures.tests > 1 {
        parts.push(format!("median of {}", counted(figures.tests, "test")));
    }
    if figures.failed > 0 {
        parts.push(format!("{} more failed", grouped(figures.failed)));
    }
    parts.extend(
        figures
            .alone_bps
            .map(|alone| format!("{} alone", bit_rate(alone))),
    );
    parts.extend(figures.rtt.map(|rtt| format!("RTT {rtt}")));
    let again = figures.retransmitted;
    parts.extend(again.map(|again| format!("{} retransmitted", words::percent(again))));
    parts.extend(figures.finding.as_deref().map(str::to_owned));
    parts.join(", ")
}

fn ports(page: &mut Page, view: &MeshView, style: Style) {
    let uneven: Vec<&PortsView> = view.ports.iter().filter(|pair| pair.slow > 0).collect();
    if view.ports.is_empty() {
        return;
    }
    page.gap();
    page.line(
        "Goodput by source port, in tenths of the rate of the fastest quarter of a pair's ports",
    );
    if uneven.is_empty() {
        page.line(&format!(
            "  {}: no port is below 70 %",
            counted(view.ports.len(), "pair")
        ));
    }
    for pair in uneven.iter().take(MOST_PORTS) {
        let glyphs = pair
            .ports
            .iter()
            .map(|port| matrix::tenths(style, port.share));
        let ends = [pair.ports.first(), pair.ports.last()];
        let [first, last] = ends.map(|port| port.map_or(0, |port| port.port));
        page.wrapped(
            "  ",
            &format!(
                "{} → {}, ports {first} to {last}: {} of {} below 70 % of {}",
                pair.from,
                pair.to,
                pair.slow,
                pair.ports.len(),
                bit_rate(pair.expected_bps)
            ),
        );
        for row in glyphs.collect::<Vec<_>>().chunks(64) {
            page.line(&format!("    {}", row.concat()));
        }
    }
    if uneven.len() > MOST_PORTS {
        page.line(&format!(
            "  and {}",
            counted(uneven.len() - MOST_PORTS, "more pair")
        ));
    }
}
