//! Without Slurm: what an ordinary user sees, and what plugins, NHC and Prometheus read.

use std::process::Stdio;

use crate::harness::{Folder, LONG, beside, lacks_programs, linerate, run, start_with};

/// A run with these checks, remembered in the folder.
fn check(folder: &Folder, checks: &str, words: &str) -> std::process::Command {
    let config = folder.with("check.toml", checks);
    let mut command = linerate("check");
    command.arg("--config").arg(config);
    command.arg("--run-folder").arg(folder.file("run"));
    command.args(words.split_whitespace());
    command
}

fn ending_with(code: u8) -> String {
    format!(
        "[[command]]\nname = \"probe\"\nrun = [\"/bin/sh\", \"-c\", \"echo 'warm | t=8'; exit {code}\"]\n"
    )
}

#[test]
fn exit_codes_are_those_of_the_form_that_is_asked_for() {
    let _beside = beside();
    let folder = Folder::new();
    for (state, plain, nagios, nhc, status) in [
        (0, 0, 0, 0, "OK"),
        (1, 0, 1, 0, "WARNING"),
        (2, 1, 2, 1, "CRITICAL"),
        (3, 3, 3, 0, "UNKNOWN"),
    ] {
        let checks = ending_with(state);
        run(&mut check(&folder, &checks, ""), LONG).expect(plain);
        let plugin = run(&mut check(&folder, &checks, "--nagios"), LONG)
            .expect(nagios)
            .out;
        let (text, figures) = plugin.lines().next().unwrap().split_once(" | ").unwrap();
        assert!(
            text.starts_with(&format!("LINERATE {status} - ")),
            "{plugin}"
        );
        assert!(
            !text.contains('|') && figures.starts_with("'probe'="),
            "{plugin}"
        );
        let line = run(&mut check(&folder, &checks, "--nhc"), LONG)
            .expect(nhc)
            .out;
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn what_is_wrong_with_the_file_is_unknown_to_a_plugin_and_takes_no_node_out() {
    let _beside = beside();
    let folder = Folder::new();
    let wrong = "[[mount]]\npaht = \"/home\"\n";
    let done = run(&mut check(&folder, wrong, ""), LONG).expect(2);
    assert!(
        done.error.contains("check.toml:2: unknown key 'paht'"),
        "{done:?}"
    );
    let plugin = run(&mut check(&folder, wrong, "--nagios"), LONG)
        .expect(3)
        .out;
    assert!(plugin.starts_with("LINERATE UNKNOWN - "), "{plugin}");
    run(&mut check(&folder, wrong, "--nhc"), LONG).expect(0);
    run(&mut check(&folder, wrong, "--slurm --node n1"), LONG).expect(0);
    run(&mut check(&folder, &ending_with(0), "prob"), LONG).expect(2);
    let missing = run(
        linerate("check --config /nonexistent/check.toml").arg("--nagios"),
        LONG,
    );
    assert!(missing.expect(3).out.contains("there is no such file"));
}

#[test]
fn a_check_that_does_not_end_is_ended_with_all_that_it_started() {
    let _beside = beside();
    let folder = Folder::new();
    let checks = "[[command]]\nname = \"probe\"\nrun = [\"/bin/sh\", \"-c\", \"sleep 1234.5 & sleep 1234.5\"]\nlimit = \"500ms\"\n";
    let document = run(&mut check(&folder, checks, "--json"), LONG)
        .expect(3)
        .json();
    assert_eq!(
        document["outcomes"][0]["items"][0]["found"]["what"],
        "no-answer"
    );
    let left = run(
        std::process::Command::new("pgrep").args(["-f", "^sleep 1234.5$"]),
        LONG,
    );
    assert_eq!(left.out, "", "{left:?}");
    let fails = checks.replace("limit", "silence = \"fail\"\nlimit");
    run(&mut check(&folder, &fails, ""), LONG).expect(1);
}

#[test]
fn without_a_file_and_without_root_it_looks_at_what_is_here() {
    let _beside = beside();
    let folder = Folder::new();
    // A machine that runs tests may lack room; what is looked at is the same.
    let mut command = linerate("check --json");
    command.arg("--run-folder").arg(folder.file("run"));
    let document = run(&mut command, LONG).json();
    let outcomes = document["outcomes"].as_array().unwrap();
    let kinds: Vec<&str> = outcomes
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["space", "read-only", "link", "md"]);
    for outcome in outcomes {
        assert_ne!(outcome["state"], "unknown", "{outcome}");
    }
}

#[test]
fn promtool_reads_the_text_file() {
    let test = "check::alone::promtool_reads_the_text_file";
    if lacks_programs(test, &["promtool"]) {
        return;
    }
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.file("linerate.prom");
    let checks = format!("{}[space]\n[md]\n", ending_with(2));
    let mut command = check(&folder, &checks, "--prometheus");
    run(command.arg(&file), LONG).expect(1);
    let mut promtool = std::process::Command::new("promtool");
    promtool.args(["check", "metrics"]);
    let input = Stdio::from(std::fs::File::open(&file).unwrap());
    let done = start_with(&mut promtool, input).wait(LONG).expect(0);
    assert_eq!(done.error, "", "{done:?}");
}
