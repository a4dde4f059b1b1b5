//! `linerate explain`: other tools' output, records, and what is neither.

use linerate_model::{fixture, plan::Plan};
use linerate_report::record::to_json;
use serde_json::Value;

use crate::harness::{Folder, LONG, beside, findings, linerate, run};

const IPERF: &str = "$ iperf -c 10.0.0.9 -i 1 -t 3\n\
    [  3] local 10.0.0.8 port 40000 connected with 10.0.0.9 port 5001\n\
    [  3]  0.0- 1.0 sec  112 MBytes  942 Mbits/sec\n\
    [  3]  1.0- 2.0 sec  112 MBytes  942 Mbits/sec\n\
    [  3]  2.0- 3.0 sec  112 MBytes  941 Mbits/sec\n\
    [  3]  0.0- 3.0 sec  337 MBytes  942 Mbits/sec\n";

#[test]
fn another_tool_s_output_is_explained_as_text_and_as_json() {
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.with("pasted.txt", IPERF);
    let words = format!("explain {}", file.display());
    let text = run(&mut linerate(&words), LONG).expect(0).out;
    assert!(
        text.contains("path-full: 942 Mbit/s is all of 1 GbE"),
        "{text}"
    );
    let json = run(&mut linerate(&format!("{words} --json")), LONG)
        .expect(0)
        .out;
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["kind"], "transcript");
    assert_eq!(
        findings(&document["transcripts"][0]["parts"][0]),
        ["path-full"]
    );
}

#[test]
fn a_record_is_explained_as_show_does() {
    let _beside = beside();
    let folder = Folder::new();
    let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
    let file = folder.with("run.json", to_json(&record));
    let explained = run(&mut linerate(&format!("explain {}", file.display())), LONG).expect(0);
    let shown = run(&mut linerate(&format!("show {}", file.display())), LONG).expect(0);
    assert!(explained.out.contains("Goodput"), "{}", explained.out);
    assert_eq!(explained.out, shown.out);
}

#[test]
fn an_unknown_layout_names_its_line_and_what_is_known() {
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.with("notes.txt", "\nbread\nmilk\n");
    let done = run(&mut linerate(&format!("explain {}", file.display())), LONG).expect(5);
    for word in ["notes.txt", "line 2", "'bread'", "iperf3", "iostat -x"] {
        assert!(done.error.contains(word), "no '{word}' in: {}", done.error);
    }
    let missing = folder.file("none");
    let done = run(
        &mut linerate(&format!("explain {}", missing.display())),
        LONG,
    )
    .expect(5);
    assert!(done.error.contains("cannot read"), "{}", done.error);
}
