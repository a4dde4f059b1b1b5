use linerate_archive::{Appended, Archive, OutcomeKind, RecordHash, RunFilter};
use linerate_model::watch::{RunId, UnixMillis, WatchOutcome};
use tempfile::tempdir;

use crate::runs::{START, failed, invalid, measured, not_run, run};

#[test]
fn what_was_appended_comes_back_as_it_was() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap().with_figures_of(3);
    let outcomes = [measured(9.4e9 + 0.1), failed(), not_run(), invalid()];
    let mut runs = Vec::new();
    for (at, outcome) in (0..).zip(outcomes) {
        let run = run(START + at * 60_000, u128::from(at), outcome);
        let record = format!("{{\"record\": {at}}}\n");
        let json = (at < 2).then_some(record.as_bytes());
        assert_eq!(archive.append(&run, json).unwrap(), Appended::New);
        assert_eq!(archive.append(&run, json).unwrap(), Appended::Known);
        let stored = archive.run(run.id).unwrap().unwrap();
        assert_eq!(stored.run, run);
        assert_eq!(stored.computed_by, 3);
        assert_eq!(stored.record, json.map(RecordHash::of));
        assert_eq!(archive.record(run.id).unwrap().as_deref(), json);
        runs.push(run);
    }
    // Newest first, and again after it was opened anew.
    runs.reverse();
    drop(archive);
    let archive = Archive::open_existing(folder.path()).unwrap();
    let found = archive.runs(&RunFilter::default()).unwrap();
    assert_eq!(
        found.into_iter().map(|one| one.run).collect::<Vec<_>>(),
        runs
    );
    assert_eq!(archive.run(RunId::of(UnixMillis(1), 1)).unwrap(), None);
    let sound = archive.verify().unwrap();
    assert!(sound.is_sound(), "{sound:?}");
    assert_eq!((sound.tests, sound.records, sound.orphans), (4, 2, 0));
}

#[test]
fn filters_agree_with_a_plain_search() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let mut all = Vec::new();
    for (at, index) in (0..60_u64).zip(0_usize..) {
        let outcome = [measured(1e9), failed(), not_run(), invalid()][index % 4].clone();
        let mut run = run(START + at * 1000, u128::from(at), outcome);
        run.task = ["one", "two"][index % 2].into();
        run.from = ["a", "b", "c"][index % 3].into();
        archive.append(&run, None).unwrap();
        all.insert(0, run);
    }
    let filters = [
        RunFilter {
            task: Some("one".into()),
            ..RunFilter::default()
        },
        RunFilter {
            from: Some("b".into()),
            to: Some("b".into()),
            limit: 3,
            ..RunFilter::default()
        },
        RunFilter {
            since: Some(UnixMillis(START + 10_000)),
            until: Some(UnixMillis(START + 20_000)),
            ..RunFilter::default()
        },
        RunFilter {
            kinds: vec![OutcomeKind::Measured, OutcomeKind::NotRun],
            before: Some(all[20].id),
            limit: 7,
            ..RunFilter::default()
        },
        RunFilter {
            task: Some("three".into()),
            ..RunFilter::default()
        },
    ];
    for filter in filters {
        let fits = |wanted: &Option<_>, found: &_| wanted.as_ref().is_none_or(|one| one == found);
        let limit = if filter.limit == 0 { 100 } else { filter.limit };
        let wanted: Vec<_> = all
            .iter()
            .filter(|run| {
                fits(&filter.task, &run.task)
                    && fits(&filter.from, &run.from)
                    && fits(&filter.to, &run.to)
                    && filter.since.is_none_or(|since| run.due >= since)
                    && filter.until.is_none_or(|until| run.due < until)
                    && filter.before.is_none_or(|before| run.id < before)
                    && (filter.kinds.is_empty()
                        || filter.kinds.contains(&OutcomeKind::of(&run.outcome)))
            })
            .take(limit)
            .cloned()
            .collect();
        let found = archive.runs(&filter).unwrap();
        let found: Vec<_> = found.into_iter().map(|one| one.run).collect();
        assert_eq!(found, wanted, "{filter:?}");
    }
}

#[test]
fn a_late_result_takes_the_place_of_a_test_that_did_not_run_and_is_counted() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let of = |outcome| run(START, 1, outcome);
    let append =
        |outcome: WatchOutcome, json: Option<&[u8]>| archive.append(&of(outcome), json).unwrap();
    assert_eq!(append(not_run(), None), Appended::New);
    assert_eq!(append(measured(2e9), Some(b"{}")), Appended::Replaced);
    assert_eq!(append(not_run(), None), Appended::Known);
    assert_eq!(append(failed(), None), Appended::Known);
    // A second measurement of the same test is not believed.
    assert_eq!(append(measured(3e9), None), Appended::Known);
    let stored = archive.run(of(not_run()).id).unwrap().unwrap();
    assert_eq!(stored.run.outcome, measured(2e9));
    assert_eq!(archive.record(stored.run.id).unwrap().unwrap(), b"{}");
    assert_eq!(archive.late_results().unwrap(), 1);
    let [pair] = archive.pairs().unwrap().try_into().unwrap();
    assert_eq!(pair.latest, stored);
    assert_eq!(pair.measured, Some(stored));
    // Each change is an event, what changed nothing is none.
    assert_eq!(archive.newest_event().0, 2);
}
