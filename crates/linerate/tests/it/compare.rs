//! `linerate compare`: records, folders of them, and what is neither.

use linerate_model::plan::Plan;
use linerate_report::record::to_json;
use linerate_testing::fixture::{self, Traffic};
use serde_json::Value;

use crate::harness::{Folder, LONG, beside, linerate, run};

fn record(rate_bps: f64) -> Vec<u8> {
    let traffic = Traffic {
        rate_bps,
        ..Traffic::default()
    };
    to_json(&fixture::run(&Plan::new("server"), &traffic))
}

#[test]
fn records_and_folders_stand_side_by_side() {
    let _beside = beside();
    let folder = Folder::new();
    let before = folder.with("before.json", record(50e6));
    std::fs::create_dir(folder.file("after")).unwrap();
    for (number, rate) in [80e6, 81e6, 82e6].into_iter().enumerate() {
        folder.with(&format!("after/{number}.json"), record(rate));
    }
    folder.with("after/notes.txt", "no record");
    let words = format!(
        "compare {} {}",
        before.display(),
        folder.file("after").display()
    );
    let text = run(&mut linerate(&words), LONG).expect(0).out;
    for word in [
        "one run",
        "3 runs",
        "95 % interval",
        "between runs",
        "path-full",
    ] {
        assert!(text.contains(word), "no '{word}' in: {text}");
    }
    let json = run(&mut linerate(&format!("{words} --json")), LONG)
        .expect(0)
        .out;
    let document: Value = serde_json::from_str(&json).unwrap();
    let against = &document["directions"][0]["sides"][1]["against_first"];
    assert_eq!(against["differs"], true, "{against}");
    let share = against["share"].as_f64().unwrap();
    assert!((share - 0.62).abs() < 0.02, "{share}");
}

#[test]
fn what_is_no_record_is_refused_with_what_would_do() {
    let _beside = beside();
    let folder = Folder::new();
    let good = folder.with("run.json", record(50e6));
    let other = folder.with(
        "iperf.txt",
        "[  3]  0.0- 3.0 sec  337 MBytes  942 Mbits/sec\n",
    );
    let words =
        |second: &std::path::Path| format!("compare {} {}", good.display(), second.display());
    let done = run(&mut linerate(&words(&other)), LONG).expect(5);
    assert!(
        done.error.contains("iperf.txt") && done.error.contains("linerate explain"),
        "{}",
        done.error
    );
    assert_eq!(done.out, "");
    std::fs::create_dir(folder.file("empty")).unwrap();
    let done = run(&mut linerate(&words(&folder.file("empty"))), LONG).expect(5);
    assert!(done.error.contains("contains no record"), "{}", done.error);
    let done = run(&mut linerate(&format!("compare {}", good.display())), LONG).expect(2);
    assert!(done.error.contains("RECORD"), "{}", done.error);
}

#[test]
fn a_locale_without_utf_8_is_answered_in_ascii() {
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.with("run.json", record(50e6));
    let words = format!("show {}", file.display());
    let mut ascii = linerate(&words);
    ascii.env("LC_ALL", "C");
    let plain = run(&mut ascii, LONG).expect(0).out;
    assert!(plain.is_ascii() && plain.contains("Goodput"), "{plain}");
    let mut wide = linerate(&words);
    wide.env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color");
    let text = run(&mut wide, LONG).expect(0).out;
    assert!(text.contains('█') && !text.contains('\u{1b}'), "{text}");
}
