//! The text report, line by line. `cargo test -p linerate-report -- --ignored` writes the expected files anew.

use linerate_report::{reference, text};

use crate::runs;

const EXPECTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/expected");
const REFERENCE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/record.md"
);

fn made() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, record) in runs::all() {
        let view = runs::view(&record);
        if name == "tcp_bidir" {
            all.push((
                format!("{EXPECTED}/{name}_detailed.txt"),
                text::detailed(&view),
            ));
        }
        all.push((format!("{EXPECTED}/{name}.txt"), text::report(&view)));
    }
    all.push((REFERENCE.to_owned(), reference::record()));
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
fn one_stream_fits_a_screen() {
    for (name, record) in runs::all() {
        let text = text::report(&runs::view(&record));
        let wide = text
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0);
        assert!(wide <= 100, "{name}: {wide} columns\n{text}");
        if !name.contains("bidir") && !name.contains("broken") {
            assert!(
                text.lines().count() <= 32,
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
    server.host.hostname = Some(evil.clone());
    server.host.kernel = Some(evil.clone());
    server.software.name.clone_from(&evil);
    server.streams[0].error = Some(evil.clone());
    record.control.remote.clone_from(&evil);
    record.plan.host = evil;
    let text = text::detailed(&runs::view(&record));
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
    assert!(!text.contains("\nGoodput 1 Tbit/s"));
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
        text::report(&view)
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
