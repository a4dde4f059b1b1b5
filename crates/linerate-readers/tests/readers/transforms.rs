//! The cases as others would have pasted them: other line ends, prompts, quotes, indentation, blank lines, cut ends,
//! one behind the other. What is said stays the same, but for the numbers of the lines.

use std::collections::BTreeSet;
use std::path::Path;

use linerate_explain::transcript::explain;
use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::Given;
use linerate_readers::{ReadError, read};

/// Each case with its name.
fn cases() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = std::fs::read(path.join("input.txt")).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, String::from_utf8_lossy(&text).into_owned())
        })
        .collect();
    cases.sort();
    cases
}

fn findings(text: &str) -> Vec<Finding> {
    let Ok(read) = read("pasted", text.as_bytes()) else {
        return Vec::new();
    };
    let reading = explain(vec![read], Given::default());
    let parts = reading.explained.into_iter();
    parts.flat_map(|one| one.findings).collect()
}

/// Titles, computed figures, findings and what each rests on, without line numbers.
fn said(text: &str) -> Vec<String> {
    let read = read("pasted", text.as_bytes()).unwrap();
    let reading = explain(vec![read], Given::default());
    let mut said = Vec::new();
    for one in &reading.explained {
        said.push(without_lines(&one.title));
        said.extend(one.recomputed.as_deref().map(without_lines));
        for finding in &one.findings {
            said.push(without_lines(&format!(
                "{}: {}",
                finding.id, finding.sentence
            )));
            for figure in &finding.figures {
                said.push(without_lines(&format!(
                    "{} = {} ({})",
                    figure.name, figure.value, figure.place
                )));
            }
        }
    }
    said
}

/// `line 12` and `lines 3 to 9` without their numbers.
fn without_lines(text: &str) -> String {
    let mut words = Vec::new();
    let mut behind = false;
    for word in text.split(' ') {
        let bare = word.trim_start_matches('(');
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        if !(behind && (number || word == "to" || word == "and")) {
            words.push(word);
            behind = matches!(bare, "line" | "Line" | "lines" | "Lines");
        }
    }
    words.join(" ")
}

/// A change of the text that leaves everything in it.
type Change = fn(&str) -> String;

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(change).collect::<Vec<_>>().join("\n")
}

const CHANGES: [(&str, Change); 9] = [
    ("carriage returns", |text| text.replace('\n', "\r\n")),
    ("spaces behind", |text| {
        each_line(text, |line| format!("{line}   "))
    }),
    ("four spaces before", |text| {
        each_line(text, |line| format!("    {line}"))
    }),
    ("quoted", |text| each_line(text, |line| format!("> {line}"))),
    ("blank lines around", |text| format!("\n\n  \n{text}\n\n\n")),
    ("blank lines doubled", |text| {
        text.replace("\n\n", "\n\n\n\n")
    }),
    ("a prompt behind", |text| {
        format!("{}\n[root@node7 ~]# \n", text.trim_end())
    }),
    ("a prompt before", |text| format!("admin@gw:~$ \n{text}")),
    ("no newline at the end", |text| text.trim_end().to_owned()),
];

#[test]
fn what_is_said_does_not_depend_on_how_it_was_pasted() {
    let mut wrong = Vec::new();
    for (name, text) in cases() {
        let expected = said(&text);
        assert!(!expected.is_empty(), "{name}");
        for (what, change) in CHANGES {
            // JSON with marks between its lines is no JSON; the reader names the line.
            let json = text
                .lines()
                .any(|line| line == "{" || line.starts_with("{\""));
            if json && what == "quoted" {
                continue;
            }
            let now = said(&change(&text));
            if now != expected {
                let apart = expected.iter().zip(&now).find(|(a, b)| a != b);
                wrong.push(format!(
                    "{name}, {what}: {} against {}: {apart:?}",
                    expected.len(),
                    now.len()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_said_of_one_does_not_depend_on_what_stands_behind_it() {
    let cases = cases();
    let mut wrong = Vec::new();
    for (place, (name, text)) in cases.iter().enumerate() {
        let (next_name, next) = &cases[(place + 7) % cases.len()];
        let mut expected = said(text);
        expected.extend(said(next));
        let now = said(&format!("{}\n\n$ date\n\n{next}", text.trim_end()));
        if now != expected {
            let apart = expected.iter().zip(&now).find(|(a, b)| a != b);
            wrong.push(format!("{name}, then {next_name}: {apart:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_case_cut_at_any_line_claims_nothing_that_the_whole_does_not() {
    let severe = |findings: &[Finding]| -> BTreeSet<String> {
        let worst = findings
            .iter()
            .filter(|one| one.severity == Severity::Fault);
        worst.map(|one| one.id.clone()).collect()
    };
    let mut wrong = BTreeSet::new();
    for (name, text) in cases() {
        let whole = severe(&findings(&text));
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        for end in ends {
            for id in severe(&findings(&text[..end])).difference(&whole) {
                wrong.insert(format!(
                    "{name}: {id} where it ends with line {}",
                    text[..end].lines().count()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_case_cut_within_a_line_is_read_or_refused_with_its_line() {
    for (name, text) in cases() {
        for end in (0..text.len())
            .step_by((text.len() / 300).max(7))
            .filter(|end| text.is_char_boundary(*end))
        {
            match read("pasted", &text.as_bytes()[..end]) {
                Ok(_) | Err(ReadError::Empty { .. }) => {}
                Err(ReadError::Unknown { line, .. }) => assert!(line > 0, "{name}"),
                Err(other) => panic!("{name} cut at {end}: {other}"),
            }
        }
    }
}
