use linerate_archive::{
    AlertFilter, AlertKey, Archive, Event, EventId, EventKind, FactsPut, SilenceKey,
};
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};
use tempfile::tempdir;

use crate::runs::{START, measured, run};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Said {
    text: String,
}

#[test]
fn facts_are_kept_where_they_change_in_whatever_order_they_come() {
    let told = [
        (10, "5.14"),
        (20, "5.14"),
        (30, "6.1"),
        (40, "6.1"),
        (50, "5.14"),
    ];
    let changes = |order: &[usize]| {
        let folder = tempdir().unwrap();
        let archive = Archive::open(folder.path()).unwrap();
        for at in order {
            let (at, kernel) = told[*at];
            archive
                .put_facts("a", UnixMillis(at), kernel.as_bytes())
                .unwrap();
        }
        let before = archive.facts("a", UnixMillis(9)).unwrap();
        let at = archive.facts("a", UnixMillis(35)).unwrap().unwrap();
        assert_eq!((before, at.json), (None, b"6.1".to_vec()));
        let changes = archive.fact_changes("a", UnixMillis(25)).unwrap();
        let changes = changes.into_iter().map(|one| (one.since.0, one.json));
        changes.collect::<Vec<_>>()
    };
    let wanted = [(10, "5.14"), (30, "6.1"), (50, "5.14")];
    let wanted = wanted.map(|(at, kernel)| (at, kernel.as_bytes().to_vec()));
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]] {
        assert_eq!(changes(&order), wanted, "{order:?}");
    }
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let put = |at| archive.put_facts("a", UnixMillis(at), b"{}").unwrap();
    assert_eq!((put(1), put(2)), (FactsPut::Changed, FactsPut::Same));
}

#[test]
fn alerts_and_silences_are_what_was_put_last() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let said = |text: &str| Said {
        text: text.to_owned(),
    };
    let put = |id, task, state, since, changed| {
        let key = AlertKey {
            id,
            task,
            state,
            since: UnixMillis(since),
            changed: UnixMillis(changed),
        };
        archive
            .put_alert(key, &said(&format!("{id} {state}")))
            .unwrap();
    };
    put("1", "x", "suspect", 10, 10);
    put("2", "y", "firing", 20, 25);
    put("1", "x", "firing", 10, 30);
    put("3", "x", "resolved", 5, 40);
    let of = |filter: &AlertFilter| {
        let alerts: Vec<Said> = archive.alerts(filter).unwrap();
        alerts.into_iter().map(|one| one.text).collect::<Vec<_>>()
    };
    let all = of(&AlertFilter::default());
    assert_eq!(all, ["2 firing", "1 firing", "3 resolved"]);
    let firing = AlertFilter {
        task: Some("x".to_owned()),
        states: vec!["firing".to_owned(), "suspect".to_owned()],
        ..AlertFilter::default()
    };
    assert_eq!(of(&firing), ["1 firing"]);
    let new = AlertFilter {
        changed_since: Some(UnixMillis(30)),
        limit: 1,
        ..AlertFilter::default()
    };
    assert_eq!(of(&new), ["1 firing"]);
    assert_eq!(archive.alert("2").unwrap(), Some(said("2 firing")));
    assert_eq!(archive.alert::<Said>("4").unwrap(), None);

    for (id, until) in [("7", 100), ("8", 60), ("7", 50)] {
        let key = SilenceKey {
            id,
            since: UnixMillis(1),
            until: UnixMillis(until),
        };
        archive.put_silence(key, &said(id)).unwrap();
    }
    let silences: Vec<Said> = archive.silences(UnixMillis(50)).unwrap();
    assert_eq!(silences, [said("8")]);
}

#[test]
fn events_come_in_the_order_of_commits_and_begin_behind_any_of_them() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    assert_eq!(archive.newest_event(), EventId(0));
    let run = run(START, 1, measured(1e9));
    archive.append(&run, None).unwrap();
    archive.put_facts("a", UnixMillis(1), b"{}").unwrap();
    let events = archive.events(EventId(0), 10).unwrap();
    let wanted = [
        (1, EventKind::Run, run.id.to_string()),
        (2, EventKind::Facts, "a".to_owned()),
    ];
    let wanted = wanted.map(|(id, kind, subject)| Event {
        id: EventId(id),
        kind,
        subject,
        by: None,
    });
    assert_eq!(events, wanted);
    assert_eq!(archive.events(EventId(1), 10).unwrap(), wanted[1..]);
    assert_eq!(archive.events(EventId(0), 1).unwrap(), wanted[..1]);
    assert_eq!(archive.newest_event(), EventId(2));
}

#[test]
fn an_archive_of_the_first_schema_is_brought_to_the_present_one() {
    let folder = tempdir().unwrap();
    let database = folder.path().join("archive.sqlite3");
    let connection = rusqlite::Connection::open(database).unwrap();
    connection
        .execute_batch(include_str!("../../migrations/0001.sql"))
        .unwrap();
    connection
        .execute_batch(
            "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
             INSERT INTO meta VALUES ('schema', 1);
             INSERT INTO event (kind, subject) VALUES ('facts', 'a');",
        )
        .unwrap();
    drop(connection);
    let archive = Archive::open(folder.path()).unwrap();
    archive
        .put_acceptance("7", "ann", UnixMillis(1_764_038_400_000))
        .unwrap();
    let events = archive.events(EventId(0), 10).unwrap();
    assert_eq!((events[0].kind, &events[0].by), (EventKind::Facts, &None));
    let by = Some(("ann".to_owned(), UnixMillis(1_764_038_400_000)));
    assert_eq!((events[1].kind, &events[1].by), (EventKind::Accepted, &by));
    assert_eq!(events[1].subject, "7");
}
