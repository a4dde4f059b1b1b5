//! What a peer, a record or a transcript says is shown as text, and never obeyed by a terminal.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use linerate_model::plan::Plan;
use linerate_model::record::Role;
use linerate_testing::fixture::{self, Traffic};
use serde_json::{Value, json};

use crate::harness::raw::{self, Answers, Raw};
use crate::harness::{
    Folder, HOSTILE, LONG, Server, assert_harmless, beside, linerate, run, wait_until,
};

/// What the hostile text's middle becomes: the escapes can be read.
const SHOWN: &str = r"\u{9b}31m";

fn results() -> String {
    let stream =
        json!({"id": 1, "bytes": 1000, "retransmits": 0, "jitter": 0, "errors": 0, "packets": 0});
    let results = json!({
        "cpu_util_total": 1, "cpu_util_user": 1, "cpu_util_system": 0, "sender_has_retransmits": -1,
        "congestion_used": HOSTILE,
        "server_output_text": format!("first\n\t{}\n", HOSTILE.replace('\n', " ")),
        "server_output_json": { HOSTILE: [HOSTILE] },
        "streams": [stream],
    });
    results.to_string()
}

/// A run whose texts are hostile wherever a record has text.
fn hostile_record() -> Value {
    let mut record = json!(fixture::run(&Plan::new("host"), &Traffic::default()));
    for place in ["/plan/host", "/cookie", "/control/local", "/control/remote"] {
        *record.pointer_mut(place).unwrap() = HOSTILE.into();
    }
    for key in ["title", "congestion"] {
        record["plan"][key] = HOSTILE.into();
    }
    // It may have lines.
    record["plan"]["extra_data"] = HOSTILE.replace('\n', "").into();
    record["software"] = json!({"name": HOSTILE, "version": HOSTILE});
    record["control"]["peer_software"] = HOSTILE.into();
    record["outcome"] = json!({"how": "failed", "error": HOSTILE});
    record["notes"] = json!([{"id": HOSTILE, "text": HOSTILE}]);
    record["peer_results"] = serde_json::from_str::<Value>(&results()).unwrap();
    record["peer_results"] = json!({
        "cpu_total_percent": 0.0, "cpu_user_percent": 0.0, "cpu_system_percent": 0.0, "streams": [],
        "congestion": HOSTILE, "output_text": HOSTILE, "output_json": json!([HOSTILE]).to_string(),
    });
    for end in ["client", "server"] {
        record[end] = hostile_half(record[end].take());
    }
    record
}

/// One end's half with hostile texts.
fn hostile_half(mut half: Value) -> Value {
    half["software"] = json!({"name": HOSTILE, "version": HOSTILE});
    for key in [
        "hostname",
        "kernel",
        "architecture",
        "cpu_model",
        "virtualisation",
        "congestion",
        "default_qdisc",
    ] {
        half["host"][key] = HOSTILE.into();
    }
    half["interface"] =
        json!({"name": HOSTILE, "index": 1, "kind": HOSTILE, "driver": HOSTILE, "qdisc": HOSTILE});
    half["protocol_growth"][HOSTILE] = 5.into();
    for stream in half["streams"].as_array_mut().unwrap() {
        for key in ["local", "remote", "congestion", "error"] {
            stream[key] = HOSTILE.into();
        }
        let columns = stream["samples"]["columns"].as_object_mut().unwrap();
        let column = columns["app_bytes"].clone();
        columns.insert(HOSTILE.to_owned(), column);
    }
    half
}

/// All that can be made of a record, on the outputs and in files.
fn shows_harmless(folder: &Folder, record: &Path) {
    let words = [
        "show",
        "show --json",
        "explain",
        "explain --json",
        "compare --json",
        "compare",
    ];
    for words in words {
        let mut command = linerate(words);
        command.arg(record);
        if words.starts_with("compare") {
            command.arg(record);
        }
        let done = run(&mut command, LONG).harmless();
        assert!(done.out.len() > 100, "{words}: {}{}", done.out, done.error);
        if words.ends_with("--json") {
            done.json();
        }
    }
    let (page, figure) = (folder.file("page.html"), folder.file("figure.svg"));
    let mut command = linerate("show --html");
    command.arg(&page).arg("--svg").arg(&figure).arg(record);
    run(&mut command, LONG).harmless();
    for drawn in [page, figure] {
        let text = std::fs::read_to_string(&drawn).unwrap();
        assert!(text.contains("31m"), "{}", drawn.display());
        assert_harmless(&text, &drawn.display().to_string());
    }
}

#[test]
fn a_record_of_hostile_texts_is_shown_as_text() {
    let _beside = beside();
    let folder = Folder::new();
    let record = folder.with("hostile.json", hostile_record().to_string());
    shows_harmless(&folder, &record);
    let shown = run(linerate("show").arg(&record), LONG);
    assert!(shown.out.contains(SHOWN), "{}", shown.out);
}

#[test]
fn an_observation_of_hostile_texts_is_shown_as_text() {
    let _beside = beside();
    let run_of = fixture::run(&Plan::new("host"), &Traffic::default());
    let mut seen = json!(fixture::watched(&run_of, Role::Client, 0).unwrap());
    seen["host"]["hostname"] = HOSTILE.into();
    seen["watch"]["peers"] = json!([HOSTILE]);
    seen["notes"] = json!([{"id": HOSTILE, "text": HOSTILE}]);
    for key in ["local", "remote", "interface", "congestion"] {
        seen["connections"][0][key] = HOSTILE.into();
    }
    seen["connections"][0]["process"] = json!({"pid": 1, "name": HOSTILE});
    let folder = Folder::new();
    let file = folder.with("seen.json", seen.to_string());
    for words in ["show", "show --json", "explain"] {
        let done = run(linerate(words).arg(&file), LONG).harmless();
        assert!(done.out.contains("31m"), "{}{}", done.out, done.error);
    }
}

#[test]
fn what_is_no_record_is_quoted_as_text() {
    let _beside = beside();
    let folder = Folder::new();
    let mut unknown_variant = hostile_record();
    unknown_variant["kind"] = HOSTILE.into();
    let mut wrong_type = hostile_record();
    wrong_type["plan"]["port"] = HOSTILE.into();
    let mut wrong_rate = hostile_record();
    wrong_rate["plan"]["expect"] = HOSTILE.into();
    let socket = json!({"socket": 5, "local_host": HOSTILE, "remote_host": HOSTILE});
    let foreign_json = json!({
        "start": {"version": HOSTILE, "connecting_to": {"host": HOSTILE}, "connected": [socket]},
        "intervals": [], "end": {}, "error": HOSTILE,
    });
    let sockets = format!(
        "ESTAB 0 0 10.0.0.1:1{0} 10.0.0.2:2\n\t cubic{0} rto:204 rtt:1/2 cwnd:10 mss:1448\n",
        HOSTILE.replace('\n', "")
    );
    let files = [
        ("variant", unknown_variant.to_string()),
        ("type", wrong_type.to_string()),
        ("rate", wrong_rate.to_string()),
        ("text", HOSTILE.to_owned()),
        ("foreign", foreign_json.to_string()),
        ("sockets", sockets),
    ];
    for (name, text) in files {
        let file = folder.with(name, text);
        for words in ["show", "show --json", "explain", "explain --json"] {
            let done = run(linerate(words).arg(&file), LONG).harmless();
            let told = done.out.len() + done.error.len();
            assert!(told > 20, "{words} {name} says nothing");
        }
    }
    // The name of a file is no better than what is in it.
    let named = format!("{}/{}", folder.path().display(), HOSTILE.replace('\n', ""));
    let done = run(linerate("show").arg(named), LONG).expect(5).harmless();
    assert!(done.error.contains(SHOWN), "{}", done.error);
}

#[test]
fn a_servers_texts_reach_no_terminal_of_a_client() {
    let _beside = beside();
    let folder = Folder::new();
    let half = json!(
        fixture::run(&Plan::new("host"), &Traffic::default())
            .server
            .unwrap()
    );
    let hello = json!({"version": 1, "software": HOSTILE}).to_string();
    let mut bad_half = half.clone();
    bad_half["role"] = HOSTILE.into();
    let servers = [
        ("stock", None),
        ("linerate", Some(hostile_half(half).to_string())),
        ("bad-half", Some(bad_half.to_string())),
    ];
    for (name, half) in servers {
        let port = Answers {
            results: results(),
            linerate: half.map(|half| [hello.clone(), half]),
        }
        .serve();
        for format in ["", "--json", "--json-stream"] {
            let record = folder.file(&format!("{name}{format}.json"));
            let words = format!("test 127.0.0.1 -p {port} -n 1000 {format} -o");
            let done = run(linerate(&words).arg(&record), LONG).harmless();
            assert!(done.out.len() > 100, "{name}: {}{}", done.out, done.error);
            if name == "bad-half" {
                // In a stream of JSON the warning is an event.
                let told = format!("{}{}", done.out, done.error);
                assert!(
                    told.contains("cannot be read") && told.contains(SHOWN),
                    "{told}"
                );
            }
            assert_harmless(&std::fs::read_to_string(&record).unwrap(), name);
            if format.is_empty() {
                shows_harmless_again(&record);
            }
        }
        for words in ["", "-J"] {
            let log = folder.file(&format!("{name}{words}.log"));
            let words = format!(
                "iperf3 -c 127.0.0.1 -p {port} -n 1000 --get-server-output {words} --logfile"
            );
            run(linerate(&words).arg(&log), LONG).expect(0).harmless();
            let text = std::fs::read_to_string(&log).unwrap();
            assert!(text.contains(SHOWN), "{text}");
            assert_harmless(&text, &words);
        }
        for words in ["", "-J", "--json-stream"] {
            let words =
                format!("iperf3 -c 127.0.0.1 -p {port} -n 1000 --get-server-output {words}");
            let done = run(&mut linerate(&words), LONG).expect(0).harmless();
            assert!(done.out.contains(SHOWN), "{}", done.out);
            if words.ends_with("-J") {
                // A parser reads the peer's JSON as it was.
                let document = done.json();
                assert_eq!(
                    document["server_output_json"],
                    json!({ HOSTILE: [HOSTILE] })
                );
                let text = document["server_output_text"].as_str().unwrap();
                assert!(text.starts_with("first\n\t"), "{text:?}");
            }
        }
    }
}

/// What was kept of a hostile peer is shown again.
fn shows_harmless_again(record: &Path) {
    for words in ["show", "show --json", "explain"] {
        let done = run(linerate(words).arg(record), LONG).harmless();
        assert!(
            done.out.contains("Goodput") || done.out.contains("findings"),
            "{}",
            done.out
        );
    }
}

/// A client whose every text is hostile; it runs its test to the end where the server lets it.
fn hostile_client(port: u16, congestion: &str) {
    let parameters = json!({
        "tcp": true, "omit": 0, "time": 1, "num": 0, "blockcount": 0, "parallel": 1, "len": 1000,
        "title": HOSTILE, "extra_data": HOSTILE, "congestion": congestion, "congestion_used": HOSTILE,
        "client_version": HOSTILE, "get_server_output": 1,
    });
    let mut client = Raw::connect(port);
    client.expect(raw::PARAM_EXCHANGE);
    client.message(&parameters.to_string());
    if client.state() != Some(raw::CREATE_STREAMS) {
        return;
    }
    let mut data = client.data();
    if client.state() != Some(raw::TEST_START) {
        return;
    }
    client.expect(raw::TEST_RUNNING);
    data.write_all(&[0; 1000]).unwrap();
    client.send(&[raw::TEST_END]);
    client.expect(raw::EXCHANGE_RESULTS);
    client.message(&results());
    assert!(!client.is_closed_within(Duration::from_millis(1)) || client.state().is_none());
}

#[test]
fn a_clients_texts_reach_no_terminal_of_a_server() {
    let _beside = beside();
    let servers = [
        Server::linerate(&[]),
        Server::linerate(&["--json-stream"]),
        Server::iperf3(&mut linerate("iperf3")),
        Server::iperf3(&mut linerate("iperf3 -V")),
        Server::iperf3(&mut linerate("iperf3 -J")),
    ];
    for server in servers {
        // Taken; refused by name; parameters that are no JSON; no iperf3 at all.
        hostile_client(server.port, "cubic");
        hostile_client(server.port, HOSTILE);
        let mut broken = Raw::connect(server.port);
        broken.expect(raw::PARAM_EXCHANGE);
        broken.message(&format!("{{\"tcp\":true,\"{HOSTILE}\""));
        assert!(broken.is_closed_within(Duration::from_secs(20)));
        let mut other = Raw::connect(server.port);
        other.expect(raw::PARAM_EXCHANGE);
        other.send(HOSTILE.as_bytes());
        assert!(other.is_closed_within(Duration::from_secs(20)));
        let told = |server: &Server| {
            let out = server.process.out() + &server.process.error();
            out.matches("refused").count() + out.matches("error").count()
        };
        assert!(
            wait_until(Duration::from_secs(20), || told(&server) >= 2),
            "{}",
            server.process.out()
        );
        server.process.signal("TERM");
        let done = server.ends().harmless();
        assert!(done.out.len() > 100, "{}", done.out);
        // It was there to be shown; iperf3's own sentences quote nobody.
        let shown = done.out.contains("31m") || done.error.contains("31m");
        assert!(
            shown || done.what.contains("iperf3"),
            "{}: {}",
            done.what,
            done.out
        );
    }
}
