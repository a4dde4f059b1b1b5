//! What is due to a channel.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use linerate_archive::SilenceKey;
use linerate_model::alert::{
    AlertCause, AlertCounterTest, AlertFinding, AlertPair, Matcher, MatcherOf,
};
use linerate_model::mesh::{MeshCauseKind, MeshDirection};

use super::*;

const AT: UnixMillis = UnixMillis(150_000);

/// An alert that fires for some pairs.
pub(crate) fn alert(pairs: &[(&str, &str)]) -> Alert {
    let pair = |&(from, to): &(&str, &str)| AlertPair {
        from: from.into(),
        to: to.into(),
        kind: AlertKind::Slow,
        state: AlertState::Firing,
        since: AT,
        compared: None,
        failure: None,
        passes: 0,
        runs: Vec::new(),
    };
    Alert {
        id: AlertId::of(AT, 1),
        task: "mesh".into(),
        kind: AlertKind::Slow,
        state: AlertState::Firing,
        cause: AlertCause {
            kind: MeshCauseKind::HostOut,
            name: "a".into(),
            direction: MeshDirection::Out,
            from: vec!["a".into()],
            to: Vec::new(),
            in_common: Vec::new(),
        },
        since: AT,
        fired: Some(AT),
        until: None,
        merged_into: None,
        accepted: None,
        changed: AT,
        finding: Some(AlertFinding {
            id: "receive-window".to_owned(),
            sentence: "The receive window limited this test".into(),
            remedy: None,
            host: None,
            page: PlainText::default(),
            counter_test: None,
            votes: (1, 1),
        }),
        host_changes: Vec::new(),
        pairs: pairs.iter().map(pair).collect(),
    }
}

fn sent(kind: &ChannelKind, alert: &Alert, before: Option<&Alert>, muted: bool) -> Vec<Alert> {
    let alerts = BTreeMap::from([(alert.id, alert.clone())]);
    let said = before.map(|before| (before.id, Said::of(before, AT)));
    due(kind, &alerts, &said.into_iter().collect(), |_| muted)
}

#[test]
fn nothing_new_of_a_muted_alert_is_sent_and_what_alertmanager_has_stays() {
    let (webhook, manager) = (ChannelKind::Webhook, ChannelKind::Alertmanager);
    let fires = alert(&[("a", "b")]);
    assert_eq!(sent(&webhook, &fires, None, false).len(), 1);
    assert_eq!(sent(&webhook, &fires, None, true), []);
    assert_eq!(sent(&manager, &fires, None, true), []);
    let other = Alert {
        kind: AlertKind::Failing,
        ..fires.clone()
    };
    assert_eq!(sent(&webhook, &other, Some(&fires), true), []);
    let kept = sent(&manager, &other, Some(&fires), true);
    assert_eq!(kept[0].kind, AlertKind::Slow, "as it was sent before");
    let over = Alert {
        state: AlertState::Resolved,
        ..fires.clone()
    };
    assert_eq!(sent(&webhook, &over, Some(&fires), true), []);
    assert_eq!(sent(&manager, &over, Some(&fires), true), []);
    assert_eq!(sent(&webhook, &over, Some(&fires), false), [over]);
}

#[test]
fn what_a_counter_test_showed_is_a_change_but_no_mail() {
    let before = alert(&[("a", "b")]);
    let mut after = before.clone();
    after.finding.as_mut().unwrap().counter_test = Some(AlertCounterTest {
        ended: AT,
        verdict: Verdict::Refuted,
        sentence: "no faster with sockets of 8 MB".into(),
    });
    assert_eq!(
        sent(&ChannelKind::Webhook, &after, Some(&before), false).len(),
        1
    );
    assert_eq!(
        sent(&ChannelKind::Webhook, &before, Some(&before), false),
        []
    );
    let said = Said::of(&before, AT);
    let mail = ChannelKind::Mail(linerate_watch::watched::Mail {
        server: "mail".to_owned(),
        port: None,
        wrapped: false,
        user: None,
        from: "a@b".to_owned(),
        to: Vec::new(),
    });
    assert!(said.is_of(&after, &mail) && !said.is_of(&after, &ChannelKind::Webhook));
}

/// Less than the time after which a channel looks for itself.
const SOON: Duration = Duration::from_secs(45);

/// A server that answers each request, and when each came by a clock.
fn webhook(clock: HubClock) -> (String, mpsc::Receiver<UnixMillis>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (came, times) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = BufReader::new(&stream).lines();
            let head = head
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty());
            head.for_each(drop);
            let at = clock.now();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .unwrap();
            if came.send(at).is_err() {
                return;
            }
        }
    });
    (url, times)
}

fn silence(archive: &Archive, until: UnixMillis) {
    let silence = Silence {
        id: 1,
        matchers: vec![Matcher {
            of: MatcherOf::Task,
            pattern: "mesh".into(),
        }],
        since: UnixMillis(0),
        until,
        by: "ann".into(),
        why: "cable".into(),
    };
    let key = SilenceKey {
        id: "1",
        since: silence.since,
        until,
    };
    archive.put_silence(key, &silence).unwrap();
}

#[test]
fn an_alert_that_still_fires_is_sent_when_its_silence_ends() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(Archive::open(folder.path()).unwrap());
    let clock = HubClock::start();
    let shared = Arc::new(Shared::new(archive.clone(), move || clock.now()));
    for by_hand in [false, true] {
        let (url, came) = webhook(clock);
        let mut outbox = Outbox::new(
            folder.path(),
            clock,
            archive.clone(),
            shared.clone(),
            Vec::new(),
        );
        let lasts = if by_hand { 3_600_000 } else { 2_000 };
        let mut until = clock.now().plus_millis(lasts);
        silence(&archive, until);
        outbox.keep(&Watched {
            channels: vec![Channel {
                name: format!("hook, by hand: {by_hand}").into(),
                kind: ChannelKind::Webhook,
                url,
                secret_file: None,
            }],
            ..Watched::default()
        });
        outbox.put(&alert(&[("a", "b")]));
        if by_hand {
            // Longer than a channel that has been told takes to send.
            assert!(came.recv_timeout(Duration::from_secs(2)).is_err());
            until = clock.now();
            silence(&archive, until);
            outbox.wake();
        }
        let at = came.recv_timeout(SOON).unwrap();
        assert!(at >= until, "{at:?} {until:?}");
        outbox.end();
    }
}
