//! What is due to a channel.

use linerate_model::alert::{AlertCause, AlertCounterTest, AlertFinding, AlertPair};
use linerate_model::mesh::{MeshCauseKind, MeshDirection};

use super::*;

const AT: UnixMillis = UnixMillis(150_000);

/// An alert that fires for some pairs.
pub(super) fn alert(pairs: &[(&str, &str)]) -> Alert {
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
