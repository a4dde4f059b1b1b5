//! What leaves the archive: CSV, copies, figures that are computed again; and archives that are refused.

use std::fs;

use linerate_archive::{Archive, ArchiveError, Recomputed, RunFilter, SCHEMA};
use linerate_model::watch::{UnixMillis, WatchFigures, WatchOutcome};
use tempfile::tempdir;

use crate::runs::{START, failed, invalid, measured, not_run, run};

/// RFC 4180, read back: rows of cells.
pub(crate) fn cells(csv: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = csv.chars().peekable();
    while let Some(c) = characters.next() {
        let row = rows.last_mut().unwrap();
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                row.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\r' if !quoted => {
                assert_eq!(characters.next(), Some('\n'));
                rows.push(vec![String::new()]);
            }
            c => row.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(rows.pop().unwrap(), [""]);
    rows
}

#[test]
fn in_csv_a_test_that_did_not_measure_has_no_figure_and_never_a_zero() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let outcomes = [measured(1.5e9), failed(), not_run(), invalid()];
    for (at, outcome) in (0..).zip(outcomes) {
        archive.append(&run(START + at, 1, outcome), None).unwrap();
    }
    let mut csv = Vec::new();
    let rows = archive.export_csv(&RunFilter::default(), &mut csv).unwrap();
    let table = cells(&String::from_utf8(csv).unwrap());
    assert_eq!((rows, table.len()), (4, 5));
    assert_eq!(
        table[0].join(","),
        "id,task,from,to,class,due,deadline,started,ended,outcome,stage,reason,why,goodput_bps,low_bps,high_bps,whole_bps,\
         ramp_ns,retransmitted,lost,rtt_ns,sender_cpu,receiver_cpu,with_traffic,findings,computed_by,record_sha256"
    );
    let cell = |row: usize, name: &str| {
        let column = table[0].iter().position(|one| *one == name).unwrap();
        table[row][column].as_str()
    };
    assert_eq!(cell(1, "outcome"), "measured");
    assert_eq!(cell(1, "goodput_bps"), "1500000000");
    assert_eq!(cell(1, "retransmitted"), "0.30000000000000004");
    assert_eq!(cell(1, "lost"), "");
    assert_eq!(cell(1, "due"), "2025-11-25T02:40:00.000Z");
    assert_eq!(cell(1, "with_traffic"), "true");
    assert_eq!(cell(1, "findings"), "window.receive loss.random");
    assert_eq!(cell(2, "why"), "b said \"no\", twice");
    assert_eq!((cell(3, "reason"), cell(3, "started")), ("missed", ""));
    let first = table[0]
        .iter()
        .position(|one| *one == "goodput_bps")
        .unwrap();
    for (row, outcome) in [(2, "failed"), (3, "not_run"), (4, "invalid")] {
        assert_eq!(cell(row, "outcome"), outcome);
        assert!(
            table[row][first..].iter().all(String::is_empty),
            "{:?}",
            table[row]
        );
    }
}

#[test]
fn a_newer_schema_is_refused_with_what_to_do() {
    let folder = tempdir().unwrap();
    drop(Archive::open(folder.path()).unwrap());
    let database = folder.path().join("archive.sqlite3");
    let connection = rusqlite::Connection::open(&database).unwrap();
    let sql = "UPDATE meta SET value = value + 1 WHERE key = 'schema'";
    assert_eq!(connection.execute(sql, []).unwrap(), 1);
    drop(connection);
    let Err(error) = Archive::open(folder.path()) else {
        panic!("it was opened");
    };
    assert!(
        matches!(error, ArchiveError::Newer { found, known, .. } if found == SCHEMA + 1 && known == SCHEMA),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains("use the linerate that wrote it, or a newer one"),
        "{text}"
    );

    let empty = tempdir().unwrap();
    let Err(error) = Archive::open_existing(empty.path()) else {
        panic!("it was opened");
    };
    assert!(matches!(error, ArchiveError::NoArchive(_)), "{error}");
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn a_run_that_no_archive_can_keep_is_refused_and_the_next_is_not() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let mut other_due = run(START, 1, failed());
    other_due.due = UnixMillis(START + 1);
    let no_number = run(START, 2, measured(f64::NAN));
    for unfit in [other_due, no_number] {
        let error = archive.append(&unfit, None).unwrap_err();
        assert!(matches!(error, ArchiveError::Unfit { .. }), "{error}");
    }
    archive.append(&run(START, 3, failed()), None).unwrap();
    assert_eq!(archive.runs(&RunFilter::default()).unwrap().len(), 1);
}

#[test]
fn a_backup_is_the_archive_of_one_moment_while_tests_are_appended() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(&folder.path().join("archive")).unwrap();
    for at in 0..50 {
        let record = format!("{{\"of\": {at}}}");
        let run = run(START + at, 1, measured(1e9));
        archive.append(&run, Some(record.as_bytes())).unwrap();
    }
    let copy = folder.path().join("copy");
    let made = std::thread::scope(|scope| {
        let appending = scope.spawn(|| {
            for at in 50..100 {
                let record = format!("{{\"of\": {at}}}");
                let run = run(START + at, 1, measured(1e9));
                archive.append(&run, Some(record.as_bytes())).unwrap();
            }
        });
        let made = archive.backup(&copy, UnixMillis(START)).unwrap();
        appending.join().unwrap();
        made
    });
    assert!((50..=100).contains(&made.tests), "{made:?}");
    assert_eq!((made.linked + made.copied, made.gone), (made.tests, 0));
    let error = archive.backup(&copy, UnixMillis(START)).unwrap_err();
    assert!(matches!(error, ArchiveError::Exists(_)), "{error}");
    let copy = Archive::open_existing(&copy).unwrap();
    let found = copy.verify().unwrap();
    assert!(found.is_sound(), "{found:?}");
    assert_eq!((found.tests, found.records), (made.tests, made.tests));
    let newest = copy.runs(&RunFilter::default()).unwrap();
    for stored in newest {
        assert_eq!(archive.run(stored.run.id).unwrap(), Some(stored));
    }
}

#[test]
fn figures_of_older_definitions_are_computed_again_from_the_records() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap().with_figures_of(1);
    let old = run(START, 1, measured(1e9));
    archive.append(&old, Some(b"old")).unwrap();
    let bare = run(START + 1, 1, measured(1e9));
    archive.append(&bare, None).unwrap();
    archive
        .append(&run(START + 2, 1, failed()), Some(b"failed"))
        .unwrap();
    let broken = run(START + 3, 1, measured(1e9));
    archive.append(&broken, Some(b"broken")).unwrap();
    let archive = archive.with_figures_of(2);
    archive
        .append(&run(START + 4, 1, measured(1e9)), Some(b"new"))
        .unwrap();

    let compute = |_: &_, json: &[u8]| match json {
        b"old" => Ok(WatchFigures {
            goodput_bps: 2e9,
            findings: vec!["another".to_owned()],
            ..WatchFigures::default()
        }),
        b"broken" => Err("it is no record".to_owned()),
        other => panic!("{other:?} is not asked for"),
    };
    let done = archive.recompute(2, compute).unwrap();
    let wanted = Recomputed {
        computed: 1,
        changed: 1,
        current: 1,
        without_record: 1,
        failed: vec![(broken.id, "it is no record".to_owned())],
    };
    assert_eq!(done, wanted);
    let stored = archive.run(old.id).unwrap().unwrap();
    assert_eq!(stored.computed_by, 2);
    let WatchOutcome::Measured(figures) = stored.run.outcome else {
        panic!("it measured");
    };
    assert_eq!((figures.goodput_bps, figures.interval_bps), (2e9, None));
    assert_eq!(figures.findings, ["another"]);
    // The record does not know of other traffic.
    assert!(figures.with_traffic);
    assert_eq!(archive.run(bare.id).unwrap().unwrap().computed_by, 1);
    let again = archive.recompute(2, compute).unwrap();
    assert_eq!((again.computed, again.current), (0, 2));
}
