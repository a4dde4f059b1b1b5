//! The text report, line by line. `cargo test -p linerate-report -- --ignored` writes the expected files anew.

use linerate_report::text::{Charset, Style};
use linerate_report::{compare, text};

use crate::runs;

const EXPECTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/expected");
fn made() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, record) in runs::all() {
        let view = runs::view(&record);
        if name == "tcp_bidir" {
            all.push((
                format!("{EXPECTED}/{name}_detailed.txt"),
                text::detailed(&view, Style::plain()),
            ));
        }
        all.push((
            format!("{EXPECTED}/{name}.txt"),
            text::report(&view, Style::plain()),
        ));
        all.push((
            format!("{EXPECTED}/{name}_brief.txt"),
            text::brief(&view, Style::plain()),
        ));
    }
    all.push((
        format!("{EXPECTED}/compare_tuned.txt"),
        compare::report(&crate::compare::tuned(), Style::plain()),
    ));
    all
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads what is expected")]
fn reports_are_as_expected() {
    for (file, text) in made() {
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            expected == text,
            "{file} differs:\n{}",
            difference(&expected, &text)
        );
    }
}

#[test]
#[ignore = "writes the expected files"]
#[expect(
    clippy::disallowed_methods,
    reason = "writes what is expected from now on"
)]
fn write_expected() {
    for (file, text) in made() {
        std::fs::write(file, text).unwrap();
    }
}

fn difference(expected: &str, text: &str) -> String {
    let (mut old, mut new) = (expected.lines(), text.lines());
    let mut shown = String::new();
    loop {
        match (old.next(), new.next()) {
            (None, None) => return shown,
            (old, new) if old == new => {}
            (old, new) => {
                for (sign, line) in [('-', old), ('+', new)] {
                    shown.extend(line.map(|line| format!("{sign} {line}\n")));
                }
            }
        }
    }
}

#[test]
fn the_short_report_fits_a_screen_and_begins_with_the_answer() {
    for (name, record) in runs::all() {
        let view = runs::view(&record);
        let text = text::brief(&view, Style::plain());
        let lines = text.lines().count();
        let whole = view.ledger.balanced == Some(false);
        assert!(whole || lines <= 40, "{name}: {lines} lines\n{text}");
        let wide = text.lines().map(|line| line.chars().count()).max();
        assert!(wide <= Some(100), "{name}\n{text}");
        let verdict = text.lines().position(|line| {
            ["Verdict", "FAULT", "Note"]
                .iter()
                .any(|label| line.starts_with(label))
        });
        assert!(verdict < Some(9), "{name}: {verdict:?}\n{text}");
        if view.ledger.balanced == Some(true) {
            assert!(text.contains("\nLedger balanced: "), "{name}\n{text}");
        }
    }
}

#[test]
fn one_stream_fits_a_screen() {
    for (name, record) in runs::all() {
        let text = text::report(&runs::view(&record), Style::plain());
        let wide = text
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0);
        assert!(wide <= 100, "{name}: {wide} columns\n{text}");
        if !name.contains("bidir") && !name.contains("broken") {
            assert!(
                text.lines().count() <= 56,
                "{name}: {} lines\n{text}",
                text.lines().count()
            );
        }
    }
}

#[test]
fn a_stranger_s_strings_move_no_cursor() {
    let (_, mut record) = runs::all().remove(0);
    let evil = "x\u{1b}[2J\r\nGoodput 1 Tbit/s".to_owned();
    let server = record.server.as_mut().unwrap();
    server.host.hostname = Some(evil.clone().into());
    server.host.kernel = Some(evil.clone().into());
    server.software.name = evil.as_str().into();
    server.streams[0].error = Some(evil.clone().into());
    record.control.remote = evil.as_str().into();
    record.plan.host = evil.into();
    let text = text::detailed(&runs::view(&record), Style::plain());
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
    assert!(!text.contains("\nGoodput 1 Tbit/s"));
}

#[test]
fn a_narrow_screen_without_utf_8_gets_a_report_as_well() {
    let style = Style::plain().of_columns(72).with_charset(Charset::Ascii);
    for (name, record) in runs::all() {
        let text = text::report(&runs::view(&record), style);
        assert!(text.is_ascii(), "{name}\n{text}");
        let chart = text
            .lines()
            .filter(|line| line.contains('|') || line.contains('#'));
        for line in chart {
            assert!(line.len() <= 100, "{name}: {line}");
        }
    }
}

#[test]
fn colours_are_only_added() {
    let (_, record) = runs::all().remove(0);
    let view = runs::view(&record);
    let coloured = Style::plain().with_colour(true);
    let text = text::report(&view, coloured);
    assert!(text.contains("\u{1b}["));
    let mut bare = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    bare.push_str(rest);
    assert_eq!(bare, text::report(&view, Style::plain()));
}

#[test]
fn a_table_of_rates_adds_up_as_it_stands() {
    for (name, record) in runs::all() {
        let text = text::report(&runs::view(&record), Style::plain());
        let rows = text
            .lines()
            .skip_while(|line| !line.starts_with("Where the rate went"))
            .skip(1)
            .take_while(|line| line.starts_with("  ") && !line.starts_with("   "));
        let mut left: Option<f64> = None;
        for row in rows {
            let figures: String = row.chars().skip(28).take(20).collect();
            let figures = figures.replace('−', "-");
            let figures: Vec<f64> = figures
                .split_whitespace()
                .map(|figure| {
                    let number = figure.parse();
                    number.unwrap_or_else(|_| panic!("{name}: {row}"))
                })
                .collect();
            match (left, figures.as_slice()) {
                (Some(before), [taken, now]) => {
                    assert!((before + taken - now).abs() < 1e-6, "{name}: {row}");
                    left = Some(*now);
                }
                (Some(before), [now]) => assert!((before - now).abs() < 1e-6, "{name}: {row}"),
                (None, [now]) => left = Some(*now),
                _ => panic!("{name}: {row}"),
            }
        }
    }
}

#[test]
fn what_counter_tests_say_stands_beneath_its_finding() {
    use linerate_model::counter_test::{Tested, Verdict};
    let (_, record) = runs::all().swap_remove(0);
    let mut view = runs::view(&record);
    view.findings.truncate(1);
    let mut said = |verdict, sentence: &str| {
        view.findings[0].tested = Some(Tested {
            verdict,
            sentence: sentence.to_owned(),
            tests: Vec::new(),
        });
        text::report(&view, Style::plain())
    };
    let confirmed = said(Verdict::Confirmed, "confirmed: the rate follows");
    assert!(
        confirmed.contains("\n            Confirmed: the rate follows\n")
            && confirmed.contains("\nVerdict ")
    );
    let refuted = said(Verdict::Refuted, "refuted: it does not");
    assert!(refuted.contains("\nWithdrawn ") && refuted.contains("Refuted: it does not"));
    assert!(refuted.contains("nothing else in the record explains the rate"));
}
