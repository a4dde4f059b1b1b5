//! Observations of other programs' connections.

use linerate_model::observation::{Clocks, Glimpse, Holder, Observation, Sighting};
use linerate_model::record::{RecordError, Role};
use linerate_model::units::Nanos;
use linerate_report::observation::{self, ObservationView, Watching};
use linerate_report::record;
use linerate_testing::fixture::{self, Traffic};
use serde_json::Value;

use crate::runs;

fn seen(traffic: &Traffic, at: Role) -> Observation {
    fixture::watched(&fixture::run(&runs::tcp(), traffic), at, 0).expect("both ends are known")
}

fn view(seen: &Observation) -> ObservationView<'_> {
    ObservationView::of(seen, &mut linerate_explain::explain)
}

#[test]
fn an_observation_that_was_kept_shows_identically() {
    for at in [Role::Client, Role::Server] {
        let made = seen(&Traffic::default(), at);
        let back = observation::from_json(&observation::to_json(&made)).unwrap();
        assert_eq!(back, made);
        assert_eq!(view(&back).text(), view(&made).text());
        assert_eq!(view(&back).json(), view(&made).json());
    }
}

#[test]
fn one_kind_of_record_is_not_taken_for_another() {
    let bytes = observation::to_json(&seen(&Traffic::default(), Role::Client));
    assert_eq!(
        record::kind_of(&bytes),
        Some(linerate_model::record::Kind::Observation)
    );
    match record::from_json(&bytes) {
        Err(RecordError::NotARecord { reason }) => {
            assert!(reason.contains("linerate show"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let test = record::to_json(&fixture::run(&runs::tcp(), &Traffic::default()));
    assert!(observation::from_json(&test).is_err());
    for cut in [0, 1, 100, bytes.len() / 2] {
        assert!(
            observation::from_json(&bytes[..cut]).is_err(),
            "cut after {cut}"
        );
    }
}

#[test]
fn the_report_says_what_one_end_can_know() {
    let at_sender = view(&seen(&Traffic::default(), Role::Client)).text();
    for word in [
        "path-full",
        "acknowledged, by this host's kernel",
        "rsync (815)",
        "Balanced",
        "the receiving kernel, application and interface",
        "the kernel reported its final counters",
    ] {
        assert!(at_sender.contains(word), "{word}:\n{at_sender}");
    }
    let at_receiver = view(&seen(&Traffic::default(), Role::Server)).text();
    for word in [
        "read by this host's application",
        "cannot-tell",
        "the sending kernel, application and interface",
        "not known: the sender's kernel",
    ] {
        assert!(at_receiver.contains(word), "{word}:\n{at_receiver}");
    }
    for text in [at_sender, at_receiver] {
        assert!(!text.contains("stock"), "{text}");
        assert!(
            !text.contains("the client") && !text.contains("the server"),
            "{text}"
        );
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn what_was_missed_is_said() {
    let run = fixture::run(&runs::tcp(), &Traffic::default());
    let late = fixture::watched(&run, Role::Client, 500).unwrap();
    let text = view(&late).text();
    assert!(text.contains("Beginning   missed: "), "{text}");
    let mut thinned = late;
    thinned.connections[0].thinned = 8;
    thinned.sampling.missed = 7;
    thinned.sampling.not_kept = 3;
    let text = view(&thinned).text();
    for word in [
        "only 1 in 8 was kept",
        "7 samples fell out",
        "3 closed connections",
    ] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    thinned.connections.clear();
    assert!(view(&thinned).text().contains("No connection was seen."));
}

#[test]
fn strangers_names_stay_within_their_line() {
    let mut hostile = seen(&Traffic::default(), Role::Client);
    let one = &mut hostile.connections[0];
    one.process = Some(Holder {
        pid: 1,
        name: "\u{1b}[2J\nFAULT".into(),
    });
    one.congestion = Some("\u{7}bell".into());
    hostile.host.hostname = Some("a\r\nb".into());
    let text = view(&hostile).text();
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    assert!(
        !text.lines().any(|line| line.starts_with("FAULT")),
        "{text}"
    );
    let parsed: Value = serde_json::from_str(&view(&hostile).json()).unwrap();
    assert_eq!(
        parsed["connections"][0]["process"]["name"],
        r"\u{1b}[2J\nFAULT"
    );
}

#[test]
fn the_document_holds_figures_findings_and_samples() {
    let made = seen(&Traffic::default(), Role::Client);
    let parsed: Value = serde_json::from_str(&view(&made).json()).unwrap();
    let one = &parsed["connections"][0];
    assert_eq!(parsed["kind"], "observation");
    assert_eq!(one["this_host_is"], "client");
    assert_eq!(one["findings"][0]["id"], "path-full");
    assert_eq!(
        one["directions"][0]["measured_at"],
        "sending_kernel_acknowledged"
    );
    assert_eq!(one["ledger"]["balanced"], true);
    let rows = one["samples"]["rows"].as_u64().unwrap();
    assert_eq!(rows, made.connections[0].samples.len() as u64);
    let line = view(&made).end_line();
    assert!(!line.contains('\n') && line.starts_with("{\"event\":\"end\""));
}

fn glimpse(id: u32, sent_bps: u64) -> Glimpse {
    Glimpse {
        id,
        local: "192.0.2.1:40000".into(),
        remote: "192.0.2.2:873".into(),
        process: Some(Holder {
            pid: 815,
            name: "rsync".into(),
        }),
        sent_bps,
        received_bps: 0,
        retransmits: Some(3),
        rtt_us: Some(12_000),
        congestion_window_bytes: Some(4 << 20),
        receive_window_bytes: Some(212 << 10),
        unread_bytes: 0,
        unacknowledged_bytes: 0,
        clocks: Some(Clocks {
            application: 0.1,
            send_buffer: 0.0,
            receive_window: 0.83,
            network: 0.07,
        }),
    }
}

fn interval(second: u64, connections: Vec<Glimpse>) -> Sighting {
    Sighting::Interval {
        from_ns: Nanos::from_millis((second - 1) * 1000),
        to_ns: Nanos::from_millis(second * 1000),
        connections,
        left_ns: None,
    }
}

#[test]
fn a_pipe_gets_lines_and_rest_is_said_once() {
    let mut watching = Watching::default();
    let moving = interval(1, vec![glimpse(1, 143_000_000)]);
    assert_eq!(
        watching.line(&moving).unwrap(),
        "    1.00 s  #1     143 Mbit/s sent  RTT 12.0 ms  cwnd 4.00 MiB  peer's window 212 KiB  3 retransmitted  \
         receive window 83 %, application 10 %"
    );
    let still = interval(2, vec![glimpse(1, 0)]);
    assert!(watching.line(&still).unwrap().contains("nothing moves"));
    assert_eq!(watching.line(&still), None);
    assert!(watching.line(&moving).is_some());
    let many: Vec<Glimpse> = (0..30).map(|id| glimpse(id, 1_000_000)).collect();
    let text = watching.line(&interval(3, many)).unwrap();
    assert!(
        text.lines().count() <= 9 && text.contains("and 22 more"),
        "{text}"
    );
}

#[test]
fn waiting_is_said_once_and_not_after_something_came() {
    let mut watching = Watching::default();
    let nobody = interval(1, Vec::new());
    assert!(watching.begins_to_wait(&nobody));
    assert!(!watching.begins_to_wait(&nobody));
    let mut watching = Watching::default();
    let found = Sighting::Found {
        at_ns: Nanos(0),
        id: 1,
        local: "a".into(),
        remote: "b".into(),
        opener: linerate_model::observation::Opener::Peer,
        began_before: true,
        process: None,
    };
    assert!(!watching.begins_to_wait(&found));
    assert!(!watching.begins_to_wait(&nobody));
    assert_eq!(
        observation::line(&found),
        r#"{"event":"found","at_ns":0,"id":1,"local":"a","remote":"b","opener":"peer","began_before":true}"#
    );
}

#[test]
fn a_table_fits_its_terminal() {
    let many: Vec<Glimpse> = (0..100).map(|id| glimpse(id, 1_000_000)).collect();
    let shown = interval(3, many);
    for (width, height) in [(80, 24), (40, 5), (200, 60), (20, 4)] {
        let lines = Watching::default().table(&shown, width, height).unwrap();
        assert!(lines.len() < height.max(5), "{} of {height}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() < width));
    }
}
