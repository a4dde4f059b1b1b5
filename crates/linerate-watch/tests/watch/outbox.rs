//! What is sent where, and what it says.

use linerate_model::alert::{
    Alert, AlertCause, AlertCounterTest, AlertFinding, AlertId, AlertKind, AlertPair, AlertState,
    Compared, FloorOf,
};
use linerate_model::counter_test::Verdict;
use linerate_model::mesh::{MeshCauseKind, MeshDirection};
use linerate_model::record::Role;
use linerate_model::remedy::{BufferSizes, Fix, Remedy};
use linerate_model::watch::UnixMillis;
use linerate_watch::outbox::{ChannelKind, Outbox, alertmanager, body, subject, webhook};

const NOW: UnixMillis = UnixMillis(1_764_041_621_000);

fn alert() -> Alert {
    let since = UnixMillis(1_764_041_021_000);
    Alert {
        id: AlertId::of(since, 5),
        task: "uplink".into(),
        kind: AlertKind::Slow,
        state: AlertState::Firing,
        cause: AlertCause {
            kind: MeshCauseKind::Pair,
            name: "node1 > node2".into(),
            direction: MeshDirection::Out,
            from: vec!["node1".into()],
            to: vec!["node2".into()],
            in_common: Vec::new(),
        },
        since,
        fired: Some(NOW),
        until: None,
        merged_into: None,
        changed: NOW,
        finding: Some(AlertFinding {
            id: "receive-window".to_owned(),
            sentence: "The receive window limited this test 99 % of the time".into(),
            remedy: Some(Remedy {
                host: Role::Server,
                fix: Fix::ReceiveBuffer(BufferSizes {
                    first: Some([4096, 131_072]),
                    most: 67_108_864,
                }),
            }),
            host: Some("node2".into()),
            page: "docs/findings/receive-window.md".into(),
            counter_test: Some(AlertCounterTest {
                ended: NOW,
                verdict: Verdict::Confirmed,
                sentence: "confirmed by sockets of 64 MiB".into(),
            }),
            votes: (1, 1),
        }),
        host_changes: Vec::new(),
        pairs: vec![AlertPair {
            from: "node1".into(),
            to: "node2".into(),
            kind: AlertKind::Slow,
            state: AlertState::Firing,
            since,
            compared: Some(Compared {
                goodput_bps: 4.1e9,
                interval_bps: None,
                floor_bps: 8.46e9,
                floor_of: FloorOf::Baseline,
                baseline_bps: Some(9.4e9),
            }),
            failure: None,
            runs: Vec::new(),
        }],
    }
}

fn resolved() -> Alert {
    Alert {
        state: AlertState::Resolved,
        until: Some(NOW.plus_millis(600_000)),
        ..alert()
    }
}

fn outbox() -> Outbox {
    let mut outbox = Outbox::default();
    outbox.handle_channels(&[
        ("am".to_owned(), ChannelKind::Alertmanager),
        ("hook".to_owned(), ChannelKind::Webhook),
    ]);
    outbox
}

/// Sends what is due; `broken` fails. The channels that were sent to.
fn send(outbox: &mut Outbox, now: UnixMillis, broken: Option<&str>) -> Vec<String> {
    let mut channels = Vec::new();
    while let Some(sending) = outbox.poll_sending(now) {
        let fails = broken == Some(sending.channel.as_str());
        outbox.handle_sent(
            now,
            &sending,
            if fails { Err("refused".into()) } else { Ok(()) },
        );
        channels.push(sending.channel);
    }
    channels
}

#[test]
fn an_alertmanager_is_sent_it_each_minute_and_a_webhook_once() {
    let mut outbox = outbox();
    let suspect = Alert {
        fired: None,
        state: AlertState::Suspect,
        ..alert()
    };
    outbox.handle_alert(&suspect, false);
    assert_eq!(outbox.poll_timeout(), None);
    outbox.handle_alert(&alert(), false);
    assert_eq!(send(&mut outbox, NOW, None), ["am", "hook"]);
    outbox.handle_alert(&alert(), false);
    assert_eq!(send(&mut outbox, NOW.plus_millis(59_000), None), [""; 0]);
    assert_eq!(send(&mut outbox, NOW.plus_millis(60_000), None), ["am"]);
    outbox.handle_alert(&resolved(), false);
    assert_eq!(
        send(&mut outbox, NOW.plus_millis(61_000), None),
        ["am", "hook"]
    );
    assert_eq!(outbox.poll_timeout(), None, "nothing is left");
}

#[test]
fn a_broken_channel_shows_and_blocks_nothing() {
    let mut outbox = outbox();
    outbox.handle_alert(&alert(), false);
    assert_eq!(send(&mut outbox, NOW, Some("am")), ["am", "hook"]);
    assert_eq!(
        send(&mut outbox, NOW.plus_millis(9_999), Some("am")),
        [""; 0]
    );
    assert_eq!(
        send(&mut outbox, NOW.plus_millis(10_000), Some("am")),
        ["am"]
    );
    outbox.handle_alert(&resolved(), false);
    assert_eq!(
        send(&mut outbox, NOW.plus_millis(10_001), Some("am")),
        ["hook"]
    );
    let broken = outbox.broken();
    assert_eq!(
        (broken.len(), broken[0].attempts, broken[0].waiting),
        (1, 2, 1)
    );
    assert_eq!(
        (broken[0].since, broken[0].next),
        (NOW, NOW.plus_millis(30_000))
    );
    let state = serde_json::to_string(&outbox).unwrap();
    let mut outbox: Outbox = serde_json::from_str(&state).unwrap();
    // What failed may have arrived, so its end is sent.
    assert_eq!(send(&mut outbox, NOW.plus_millis(30_000), None), ["am"]);
    assert_eq!((outbox.broken(), outbox.poll_timeout()), (Vec::new(), None));
}

#[test]
fn what_is_muted_is_sent_when_the_muting_ends() {
    let mut outbox = outbox();
    outbox.handle_alert(&alert(), true);
    assert_eq!(send(&mut outbox, NOW, None), [""; 0]);
    outbox.handle_alert(&alert(), false);
    assert_eq!(send(&mut outbox, NOW, None), ["am", "hook"]);
    outbox.handle_alert(&resolved(), true);
    assert_eq!(
        send(&mut outbox, NOW, None),
        ["am", "hook"],
        "an end is sent"
    );
}

#[test]
fn the_text_says_what_since_when_why_and_what_to_do() {
    assert_eq!(
        subject(&alert()),
        "FIRING: node1 > node2 is slow: 4.10 Gbit/s, at least 8.46 Gbit/s expected by its earlier tests (uplink)"
    );
    let text = body(&alert());
    for part in [
        "Since 2025-11-25 03:23 UTC, confirmed 2025-11-25 03:33 UTC.",
        "What limits: The receive window limited this test 99 % of the time.",
        "To do on node2: set net.ipv4.tcp_rmem to 4096 131072 67108864.",
        "A counter-test agreed.",
        "  node1 > node2, slow, firing: 4.10 Gbit/s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = alertmanager(&[alert(), resolved()], NOW, |alert| {
        format!("http://hub/alerts/{}", alert.id)
    });
    assert_eq!(json[0]["labels"], json[1]["labels"]);
    assert_eq!(json[0]["startsAt"], "2025-11-25T03:33:41.000Z");
    assert_eq!(json[0]["endsAt"], "2025-11-25T03:37:41.000Z");
    assert_eq!(json[1]["endsAt"], "2025-11-25T03:43:41.000Z");
    let json = webhook(&resolved(), "http://hub/alerts/1");
    assert_eq!(
        (&json["event"], &json["alert"]["task"]),
        (&"resolved".into(), &"uplink".into())
    );
}
