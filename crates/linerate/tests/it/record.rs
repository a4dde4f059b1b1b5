//! The record that `-o` keeps and `show` shows again, and the streams of events.

use std::io::Read as _;
use std::process::{Command, Stdio};

use linerate_testing::{Need, skipped};
use serde_json::Value;

use crate::harness::{Folder, LINERATE, LONG, Server, beside, lacks_programs, linerate, run};

/// Where the final report begins in what a test prints into a pipe.
fn report_of(out: &str) -> &str {
    let begins = |line: &str| {
        let line = line.strip_prefix("title: ").unwrap_or(line);
        line.starts_with("TCP, ") || line.starts_with("UDP, ")
    };
    let mut at = 0;
    for line in out.split_inclusive('\n') {
        if begins(line) {
            return &out[at..];
        }
        at += line.len();
    }
    panic!("no report in:\n{out}");
}

#[test]
fn show_prints_what_the_test_printed() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let folder = Folder::new();
    let file = folder.file("run.json");
    for words in [
        "-t 1",
        "-n 1M -P 3 -R",
        "-u -b 20M -t 1 --bidir",
        "-t 1 -O 1 -T title",
    ] {
        let printed = run(server.client(&format!("{words} -o")).arg(&file), LONG).expect(0);
        let shown = run(linerate("show").arg(&file), LONG).expect(0);
        assert_eq!(shown.out, report_of(&printed.out), "{words}");
        assert_eq!(shown.error, "");
        let printed = run(
            server.client(&format!("{words} --json -o")).arg(&file),
            LONG,
        )
        .expect(0);
        let shown = run(linerate("show --json").arg(&file), LONG).expect(0);
        assert_eq!(shown.out, printed.out, "{words}");
    }
}

#[test]
fn an_iperf3_peers_record_is_shown_again_too() {
    let _beside = beside();
    let Some(binary) = crate::harness::iperf3("the record of a test with iperf3") else {
        return;
    };
    let server = Server::iperf3(&mut Command::new(binary));
    let folder = Folder::new();
    let file = folder.file("run.json");
    let printed = run(server.client("-t 1 -R -o").arg(&file), LONG).expect(0);
    let shown = run(linerate("show").arg(&file), LONG).expect(0);
    assert_eq!(shown.out, report_of(&printed.out));
    assert!(shown.out.contains("stock iperf3"), "{}", shown.out);
}

/// A kept record as JSON.
fn kept(folder: &Folder) -> Value {
    let server = Server::linerate(&[]);
    let file = folder.file("run.json");
    run(server.client("-n 1M -o").arg(&file), LONG).expect(0);
    serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap()
}

#[test]
fn a_newer_schema_is_refused_by_its_version() {
    let _beside = beside();
    let folder = Folder::new();
    let mut record = kept(&folder);
    let ours = record["schema_version"].as_u64().unwrap();
    record["schema_version"] = Value::from(ours + 41);
    record["plan"] = Value::from("told in another way");
    let file = folder.with("newer.json", record.to_string());
    let done = run(linerate("show").arg(&file), LONG).expect(5);
    for word in [
        format!("version {}", ours + 41),
        format!("up to {ours}"),
        "newer.json".to_owned(),
    ] {
        assert!(done.error.contains(&word), "{word}: {}", done.error);
    }
    assert_eq!(done.out, "");
}

#[test]
fn fields_that_are_not_known_are_ignored() {
    let _beside = beside();
    let folder = Folder::new();
    let mut record = kept(&folder);
    let before = run(linerate("show").arg(folder.file("run.json")), LONG).expect(0);
    record["weather"] = Value::from("fair");
    record["plan"]["mood"] = Value::from(7);
    record["client"]["streams"][0]["colour"] = serde_json::json!({ "red": [1, 2, 3] });
    let file = folder.with("more.json", record.to_string());
    let after = run(linerate("show").arg(&file), LONG).expect(0);
    assert_eq!(after.out, before.out);
}

#[test]
fn what_is_no_record_says_so() {
    let _beside = beside();
    let folder = Folder::new();
    let whole = kept(&folder).to_string();
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("cut.json", whole.as_bytes()[..whole.len() / 2].to_vec()),
        ("garbage", (0..=255).cycle().take(4000).collect()),
        ("list.json", b"[1,2]".to_vec()),
        ("other.json", b"{\"a\":1}".to_vec()),
        ("deep.json", b"{\"a\":".repeat(100_000)),
    ] {
        let file = folder.with(name, bytes);
        let done = run(linerate("show").arg(&file), LONG).expect(5);
        assert!(
            done.error.contains(name) && done.error.contains("not a linerate record"),
            "{name}: {}",
            done.error
        );
    }
    let done = run(&mut linerate("show /nowhere/run.json"), LONG).expect(5);
    assert!(done.error.contains("/nowhere/run.json"), "{}", done.error);
}

#[test]
fn a_path_that_cannot_be_written_is_refused_before_the_test() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let folder = Folder::new();
    for path in ["nowhere/run.json", "file/run.json"] {
        folder.with("file", "");
        let path = folder.file(path);
        let done = run(server.client("-t 1 -o").arg(&path), LONG).expect(5);
        assert!(
            done.error.contains(path.to_str().unwrap()),
            "{}",
            done.error
        );
    }
    assert!(
        !server.process.out().contains("test 1"),
        "{}",
        server.process.out()
    );
}

#[test]
fn an_older_record_stays_where_a_new_one_does_not_come_about() {
    let _beside = beside();
    let folder = Folder::new();
    let file = folder.with("run.json", "an older record");
    run(linerate("test 127.0.0.1 -p 1 -t 1 -o").arg(&file), LONG).expect(3);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "an older record");
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_full_disk_loses_the_record_but_not_the_report() {
    let _beside = beside();
    let what = "a full disk";
    if lacks_programs(what, &["unshare"]) {
        return;
    }
    let folder = Folder::new();
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c"]);
        command.arg(format!("mount -t tmpfs -o size=8k none \"$0\" && {script}"));
        command.arg(folder.path());
        command
    };
    let possible = inside("true").output().unwrap();
    if !possible.status.success() {
        let why = String::from_utf8_lossy(&possible.stderr).trim().to_owned();
        return skipped(Need::UserNamespaces, what, &why);
    }
    let server = Server::linerate(&[]);
    let script = format!(
        "exec {LINERATE} test {} -t 1 -P 8 --sample 1ms -o \"$0\"/run.json",
        server.at()
    );
    let done = run(&mut inside(&script), LONG).expect(5);
    assert!(done.error.contains("run.json"), "{}", done.error);
    assert!(done.error.contains("No space left"), "{}", done.error);
    assert!(report_of(&done.out).contains("Goodput"), "{}", done.out);
}

#[test]
fn a_record_into_a_device_or_through_a_link_replaces_neither() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let folder = Folder::new();
    let (device, link) = (folder.file("device"), folder.file("link"));
    let kept = folder.with("kept.json", "an older record");
    std::os::unix::fs::symlink("/dev/full", &device).unwrap();
    std::os::unix::fs::symlink(&kept, &link).unwrap();

    let done = run(server.client("-n 1M -o").arg(&device), LONG).expect(5);
    assert!(
        done.error.contains("device: No space left"),
        "{}",
        done.error
    );
    assert!(report_of(&done.out).contains("Goodput"), "{}", done.out);
    run(server.client("-n 1M -o").arg(&link), LONG).expect(0);
    for each in [&device, &link] {
        assert!(each.symlink_metadata().unwrap().is_symlink(), "{each:?}");
    }
    let shown = run(linerate("show").arg(&kept), LONG).expect(0);
    assert!(shown.out.contains("Goodput"), "{}", shown.out);

    let piped = run(&mut server.client("-n 1M -o /dev/stdout"), LONG).expect(0);
    assert!(piped.out.contains("\"schema_version\""), "{}", piped.out);

    // A link to what is not there yet stays a link too.
    let (target, early) = (folder.file("later.json"), folder.file("early"));
    std::os::unix::fs::symlink("later.json", &early).unwrap();
    run(server.client("-n 1M -o").arg(&early), LONG).expect(0);
    assert!(early.symlink_metadata().unwrap().is_symlink());
    assert!(target.symlink_metadata().unwrap().is_file());

    // Where the record goes to the file that the report goes to, it holds both.
    let both = folder.file("both");
    let mut command = server.client("-n 1M -o /dev/stdout");
    command.stdout(std::fs::File::create(&both).unwrap());
    assert!(command.status().unwrap().success());
    let text = std::fs::read_to_string(&both).unwrap();
    assert!(
        text.contains("Goodput") && text.contains("\"schema_version\""),
        "{text}"
    );

    let pipe = folder.file("pipe");
    if !lacks_programs("a pipe without a reader", &["mkfifo"]) {
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let done = run(server.client("-n 1M -o").arg(&pipe), LONG).expect(5);
        assert!(done.error.contains("nobody reads"), "{}", done.error);
    }
}

#[test]
fn every_line_of_a_stream_of_events_is_an_object() {
    let _beside = beside();
    let folder = Folder::new();
    let server = Server::linerate(&["--json-stream", "--one-off"]);
    let port = server.port;
    let client = server.client("-t 1 -i 0.3 --json-stream");
    let client = run(&mut { client }, LONG).expect(0);
    let server = server.ends().expect(0);
    let events = |out: &str| -> Vec<Value> {
        out.lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:.200}"))
            })
            .collect()
    };
    let told = events(&client.out);
    let names: Vec<&str> = told
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names.first(), Some(&"connected"), "{names:?}");
    assert!(
        names.contains(&"started") && names.contains(&"interval"),
        "{names:?}"
    );
    assert_eq!(names.last(), Some(&"end"));
    assert_eq!(names.iter().filter(|name| **name == "end").count(), 1);
    assert_eq!(told.last().unwrap()["ledger"]["balanced"], true);
    let told = events(&server.out);
    let names: Vec<&str> = told
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names.first(), Some(&"listening"), "{names:?}");
    assert!(
        told[0]["address"]
            .as_str()
            .unwrap()
            .ends_with(&port.to_string())
    );
    assert!(names.contains(&"accepted"), "{names:?}");
    assert_eq!(names.last(), Some(&"finished"), "{names:?}");
    drop(folder);
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    for words in ["--json-stream", "-i 0.1", "--json", ""] {
        let mut child = server
            .client(&format!("-t 1 {words}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut one = [0];
        let mut out = child.stdout.take().unwrap();
        if words != "--json" {
            out.read_exact(&mut one).unwrap();
        }
        drop(out);
        let done = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{words}: {error}");
        assert!(!error.contains("panicked"), "{words}: {error}");
    }
}
